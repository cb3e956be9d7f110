/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scalable reliable connection at its receiving end: all processes of a job on a node take packets together, so
 * that a peer needs one connection to the node and not one to each of them (rows S1-1 to S1-9).
 *
 *   domain   what the processes of one job and one user on a node share: a segment of memory and an UDP socket
 *   segment  that memory: members, targets, inboxes; without a pointer, each process maps it where it likes
 *   member   a process in a domain; it has one shared receive queue, whose number (SRQ number) is its own
 *   target   the responder of one initiator: a QP of some process of another node. Its state lies in the segment, and
 *            whichever member has got a packet for it takes a step with it, under its lock
 *   inbox    what siblings have taken for a member: pieces of Sends and of Writes, in the order of their targets
 *   region   memory of a member's that one initiator reaches by a key; where it is published, whoever takes a Write or
 *            a Read carries it out, whatever its owner does meanwhile
 *   view     a member's own hold on all that
 *
 * The way of a packet: any member receives it from the domain's socket and gives it to rwk_src_packet. The target's
 * machine (transports/rc) takes it by RC's rules. What it delivers is for the SRQ that the packet names: of the
 * member's own it is told at once, else it goes into the owner's inbox, where rwk_src_drain finds it. (An early packet
 * that was kept goes through the inbox even of its own member.) Then rwk_src_pump acknowledges.
 *
 * Promises, whatever dies when:
 *   - each piece is delivered once, and in the order of its target, to its SRQ, or its owner has died
 *   - an acknowledgement is sent only for what is in the hands of its owner, in its inbox, or nobody's because the
 *     owner is dead
 *   - a Write or a Read of a published region is carried out whether its owner runs or not, and none is once the owner
 *     has withdrawn the region
 *   - a member that dies, at whatever instruction, stops nobody: the next to come finishes or undoes what it was at
 *   - a member that does not look into its inbox stops nobody: from half full on it turns messages away before they
 *     begin (RWK_RC_BUSY), which wait at their initiators, while what is for its siblings goes on. The other half is
 *     for those that have begun, of 64 KB each, and for Writes of what is not published; if that is full too, the
 *     initiator is told to wait with all (RNR), as one is that has not agreed to be turned away
 *   - a member that is stopped stops at most the initiators whose target it had locked at that instant; if it was just
 *     putting something into an inbox, those that send to that SRQ. What cannot be locked within moments is dropped, as
 *     if the network had lost it. It lasts until the member goes on or dies: a lock is not taken away from who may go
 *     on, since then it would go on in the middle of a step, with copies into inboxes and into others' memory that
 *     nobody can call back. A step is short, some 790 instructions of the 1,210 that a packet takes here
 *     (test_steps), and who waits for packets has no lock: so a signal rarely meets one
 *   - whatever a member gone mad writes into the segment, no other reads or writes outside of it for that, divides by
 *     zero or calls what there is not: what stands there is looked at before it is used, in a copy of one's own. Only
 *     what the C library keeps in its locks is believed, and by siblings where in its owner's memory a published region
 *     lies: so what they carry out for it, by the kernel, may go astray in the memory of a member that has published
 *     something, where the mad one could have written itself. The owner believes its own notes
 *
 * Pure but for its locks and for copies between members' memories: no socket, nothing allocated after open; `now` is an
 * argument, by the same clock in all members. A view is for one thread at a time. Upcalls come from within
 * rwk_src_packet, rwk_src_pump and rwk_src_drain, never with a lock of the segment held, and must not call the same
 * view again, but rwk_src_target_find and, from receive and write, rwk_src_take_ack.
 */
#ifndef RWK_SHARED_RC_H
#define RWK_SHARED_RC_H

#include "machine.h"
#include "memory/puzzle.h"

struct rwk_src_view;

/** How large a domain is. Memory is touched only as it is used. */
struct rwk_src_size {
	uint32_t members;     /* 2 to RWK_SRC_MEMBERS_MAX */
	uint32_t targets;     /* a power of two, up to RWK_SRC_TARGETS_MAX */
	uint32_t inbox_bytes; /* of each member; a power of two, at least 64 KB */
};

#define RWK_SRC_MEMBERS_MAX 1024u /* the seat is a number's low 10 bits */
#define RWK_SRC_TARGETS_MAX 65536u

/** An initiator, and what was agreed with it: who it is stays the same for as long as its target lives. */
struct rwk_src_initiator {
	uint64_t nonce;             /* of its process: tells it from all others; not 0 */
	uint8_t about[40];          /* the user's: whatever its siblings should know of it, an address */
	struct rwk_link_address to; /* where acknowledgements go, and where its packets must come from */
	uint32_t qpn;               /* where it takes them, 24 bits */
	uint32_t psn;               /* the first that it sends, 24 bits */
	uint16_t pmtu;              /* bytes (rwk_wire_is_pmtu) */
	uint16_t own;               /* of enum rwk_rc_own */
};

/** What a view tells its owner. */
struct rwk_src_host {
	/**
	 * Sends a packet (an acknowledgement, or what a Read asked for) from the domain's socket, as
	 * rwk_machine_host.emit: 0 or -EAGAIN; -EMSGSIZE: it never will, the packet is as good as lost. `cut`: what
	 * rwk_src_target_cut was told of its target.
	 */
	int (*emit)(void *user, const struct rwk_link_address *to, uint32_t cut, const struct rwk_wire *w,
		const struct iovec *payload, int count);
	/**
	 * A piece of a Send for this member, of the initiator with that target: `where` is of RWK_PIECE_*; bytes are
	 * valid during the call.
	 */
	void (*receive)(void *user, uint32_t target, unsigned where, const void *bytes, size_t len);
	/**
	 * A piece of an RDMA Write into this member's memory, but for published regions; whether `key` allows it is for
	 * the user to find out.
	 */
	void (*write)(void *user, uint32_t target, uint32_t key, uint64_t address, const void *bytes, size_t len);
	/** There is something in the inbox of a sibling that sleeps: its port is to be woken. Perhaps more than once.
	 */
	void (*wake)(void *user, uint32_t srqn);
};

/** Bytes of a segment of that size; 0: no such size. */
size_t rwk_src_segment_size(const struct rwk_src_size *size);
/** Makes a segment in zeroed memory, aligned to a page. 0; -EINVAL: no such size; -ENOMEM. */
int rwk_src_segment_format(void *memory, const struct rwk_src_size *size);
/** Is it a formatted one of that size? 0; -EPROTONOSUPPORT: of another, or made by another layout. */
int rwk_src_segment_check(const void *memory, const struct rwk_src_size *size);

/**
 * Takes a seat in a segment that has been formatted, perhaps by another process, mapped shared. 0 and *view set;
 * -EPROTONOSUPPORT: it was made by another layout; -ENOSPC: no seat is free; -EAGAIN: somebody who is stopped is just
 * taking one, try again later; -ENOMEM. The memory stays mapped until close. A process may have several views.
 */
int rwk_src_view_open(void *memory, const struct rwk_src_host *host, void *user, struct rwk_src_view **view);
/**
 * Leaves: what was in the inbox is dropped, and what comes for this SRQ from now on is acknowledged and dropped, as a
 * dead member's is. Targets stay.
 */
void rwk_src_view_close(struct rwk_src_view *view);
/** The SRQ number, 24 bits, never 0; no member has it again soon after. */
uint32_t rwk_src_srqn(const struct rwk_src_view *view);
/** The seat that a number is of: the first to join has 0, and so on, as long as nobody leaves. */
static inline uint32_t rwk_src_seat_of(uint32_t srqn)
{
	return srqn & (RWK_SRC_MEMBERS_MAX - 1);
}

/**
 * The target of that initiator: found by its nonce, or made. 0 and *qpn set, the number that its packets are
 * to name (24 bits, above 1, in part drawn at random); -ENOSPC: no room for another; -EINVAL: a value that cannot be;
 * -EEXIST: there is one for another QP of its process; -EAGAIN: somebody who is stopped is just making one, try again
 * later.
 */
int rwk_src_target_make(struct rwk_src_view *view, const struct rwk_src_initiator *initiator, uint32_t *qpn);
/** Who that is: 0 and *initiator set; -ENOENT: it has ended, or never was. */
int rwk_src_target_find(struct rwk_src_view *view, uint32_t qpn, struct rwk_src_initiator *initiator);
/** Is it still there? Two loads. */
bool rwk_src_target_lives(const struct rwk_src_view *view, uint32_t qpn);
/**
 * Its process has ended, by evidence, or has said that the initiator has ceased, all of whose packets are taken: the
 * target is nobody's from now on. Whoever says it first ends it, and with that has told all members, who look whether
 * the targets of their peers live.
 */
void rwk_src_target_end(struct rwk_src_view *view, uint32_t qpn);
/**
 * Its initiator has said, at `said` by its own clock, that the way carries payloads of so many bytes at most; 0: all.
 * What was said before that counts no more, whoever hears of it. 0; -EAGAIN: nobody has taken note, somebody who is
 * stopped has just locked it.
 */
int rwk_src_target_cut(struct rwk_src_view *view, uint32_t qpn, uint32_t cut, uint64_t said);

/*
 * The holder of a target: the member that has the evidence of the initiator's process, on behalf of all (join.h has the
 * watch, which makes it theirs even if the holder is stopped). Whose evidence it is, the domain only writes down.
 */

/**
 * The SRQ number of the target's holder; 0: it has none, or none that is known to live: who is in another PID namespace
 * than we are, or where there is no /proc, could die unseen.
 */
uint32_t rwk_src_holder(const struct rwk_src_view *view, uint32_t qpn);
/** This member is the holder from now on, whoever was: what it has is in the watch already. */
void rwk_src_hold(struct rwk_src_view *view, uint32_t qpn);
/** It is no more, if it was; before what it has leaves the watch. */
void rwk_src_let_go(struct rwk_src_view *view, uint32_t qpn);

/**
 * A packet of the domain's socket, its ICRC right, not to QPN 1. What is not for any target, or not from where its
 * initiator sends, is counted and dropped.
 */
void rwk_src_packet(struct rwk_src_view *view, const struct rwk_link_address *from, const struct rwk_wire *w,
	const void *payload, size_t len, rwk_time now);
/**
 * A sound piece of a packet, of which siblings may have others, has come to the domain's socket. Bytes of the packet,
 * copied to `whole` (RWK_PUZZLE_MAX of them), if it was the last that was missing; else 0.
 */
size_t rwk_src_piece(struct rwk_src_view *view, const struct rwk_link_address *from, const struct rwk_piece *piece,
	void *whole);
/**
 * Acknowledges what this view has taken and what is due of it by now. Returns packets sent, whose payloads stay where
 * they are until the next call.
 */
int rwk_src_pump(struct rwk_src_view *view, rwk_time now);
enum rwk_src_ride {
	RWK_SRC_RIDE_MANY,  /* of several packets that this view has taken: of fewer it is not worth a step */
	RWK_SRC_RIDE_ANY,   /* also of one, and of what siblings have taken */
	RWK_SRC_RIDE_AGAIN, /* also if it has been sent: somebody waits for it */
};
/**
 * The acknowledgement of what has been taken for that target, to travel with a message to its initiator's process:
 * true, and *word as rwk_rc_take_ack's; none will be sent for it. False: there is none of `which`; or one is to go
 * alone, after some that have travelled; or a sibling is in the middle of a step, which only AGAIN waits for a little.
 */
bool rwk_src_take_ack(struct rwk_src_view *view, uint32_t target, enum rwk_src_ride which, uint32_t *word);
/** When pump has something to do, if nothing else happens; 0: at once; RWK_NEVER. */
rwk_time rwk_src_next(const struct rwk_src_view *view);
/** Hands over what siblings have taken for this member, at most about `budget` pieces; returns how many. */
int rwk_src_drain(struct rwk_src_view *view, int budget);

/*
 * Published regions. The initiator names the bytes of a region by their offsets, with RWK_SRC_REACH set: of such a
 * Write nothing comes to its owner (host->write). What it takes to touch another process's memory (cross-memory attach)
 * is found out by doing it; what could not be carried out is dropped, and the region refuses from then on. So an
 * initiator that has sent Writes, or has got the data of its Reads, reads the word at RWK_SRC_STATUS behind them. 0
 * says that all of them were carried out; else they may or may not have been, and the owner is to be asked. 8 bytes, in
 * this machine's byte order: 0, or an errno: EACCES no such key, EOPNOTSUPP it refuses.
 */
#define RWK_SRC_REACH  (1ull << 62)
#define RWK_SRC_STATUS (1ull << 63)

/**
 * Lets that target's initiator read and write the region of this member's that iov describes (copied), by a key of the
 * caller's choice. 0; -ENOSPC: no place for it, or no memory; -EEXIST: the initiator has such a key; -EINVAL: too many
 * pieces; -EOPNOTSUPP: copies between processes are forbidden (FI_ROPEWALK_CMA=off); -EAGAIN: somebody who is stopped is
 * just publishing; -ENOMEM.
 */
int rwk_src_publish(
	struct rwk_src_view *view, uint32_t target, uint32_t key, const struct iovec *iov, uint32_t count);
/**
 * Ends that. After return no sibling touches the memory by that key. It waits for one that is at it, which takes some
 * microseconds while it has its core; who is dead or stopped will not do it any more; of one that neither ends nor is
 * stopped within a second a warning says that the memory may still change.
 */
void rwk_src_withdraw(struct rwk_src_view *view, uint32_t target, uint32_t key);
/** The same for all that this member has published to that target. */
void rwk_src_withdraw_all(struct rwk_src_view *view, uint32_t target);

/** A word for those who share the domain's sockets to agree by; 0 at first. It lies in the domain's memory. */
_Atomic uint32_t *rwk_src_socket_word(struct rwk_src_view *view);

/** Where siblings ring for this member when it sleeps, for their `wake`: an address of its own, before the first sleep.
 */
void rwk_src_set_bell(struct rwk_src_view *view, const struct rwk_link_address *at);
/** That of a sibling that `wake` was told of. */
struct rwk_link_address rwk_src_bell(const struct rwk_src_view *view, uint32_t srqn);
/**
 * Before its owner sleeps: siblings are to call wake when they put something into the inbox. True: there is something
 * already, do not sleep. Undone by the next drain.
 */
bool rwk_src_sleep(struct rwk_src_view *view);

/*
 * Whoever looks for packets takes them, whosever they are: who sleeps beside one that polls would be woken for each in
 * vain, and be in the way of the other if they share a processor. So he leaves the domain's socket to it for a nap.
 */

/** This member polls, and has for some time: it takes what comes to the domain's socket. To be said now and then. */
void rwk_src_polls(struct rwk_src_view *view, rwk_time now);
/** Did a sibling say so within the last millisecond? It may have begun to compute since, or have died. */
bool rwk_src_sibling_polls(const struct rwk_src_view *view, rwk_time now);

/**
 * `fd` has an open file description of its own of the segment's memory, and by it a lock (F_OFD_SETLK) on the byte with
 * the number of this member's seat: from now on the others know by that whether it lives, wherever they are, and it
 * knows of them. Once; `fd` stays open until close.
 */
void rwk_src_show_life(struct rwk_src_view *view, int fd);
/**
 * Looks which members have died: their SRQs become tombstones. (Locks that they held are taken over by whoever needs
 * them next.) Wakes those that sleep over a full inbox because whoever filled it died before it told them, and gives
 * back memory that early packets needed. To be called about every RWK_SRC_BURY_GAP by each member. At those that show
 * their life one of the callers looks for all, with a system call for each: a death is found within two gaps, and two
 * later for each caller that dies or is stopped while it looks. At those that do not, each caller looks into /proc; of
 * these one that is alone in a PID namespace of its own, or has no /proc, is not seen to die. Returns how many it has
 * found. SRQ numbers of the dead are told by rwk_src_is_dead.
 */
int rwk_src_bury(struct rwk_src_view *view, rwk_time now);
#define RWK_SRC_BURY_GAP (250 * 1000 * 1000ull) /* ns */
bool rwk_src_is_dead(struct rwk_src_view *view, uint32_t srqn);

/** What has happened in this view, and what its targets' machines counted while it served them. */
struct rwk_src_counters {
	struct rwk_qp_counters qp;
	uint64_t unknown_target, wrong_sender; /* packets dropped */
	uint64_t locked_out; /* packets dropped, or told to wait, because their target or inbox could not be locked */
	uint64_t own, handed_on, drained; /* pieces: for this member, at once; put into inboxes; out of its own */
	uint64_t carried_out, not_carried_out; /* pieces of Writes and Reads of published regions; dropped, or zeros */
	uint64_t turned_away;  /* Sends for which an inbox was half full: the initiator keeps what is for that SRQ */
	uint64_t no_room;      /* pieces for which one had no room: the initiator was told to wait with all (RNR) */
	uint64_t for_the_dead; /* pieces dropped because their SRQ is a tombstone */
	uint64_t unknown_srq;  /* pieces for an SRQ number that never was: the target refuses (S1-6) */
	uint64_t repeated;     /* pieces that had been handed over already, by a step that was cut off by a death */
	uint64_t corrupt;      /* times that the own inbox made no sense, and was emptied */
	uint64_t broken_targets; /* whose state made no sense, and that were ended */
	uint64_t recovered;    /* locks taken over from the dead */
};
const struct rwk_src_counters *rwk_src_get_counters(const struct rwk_src_view *view);

#endif
