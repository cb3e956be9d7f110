/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet service from inside.
 *
 *   port.c      links, the clock, what the client asks of a port
 *   progress.c  looking: what a progress does, timers
 *   arrive.c    packets in, and to whom they go
 *   vote.c      whom most packets are from
 *   sleep.c     the descriptor to sleep on
 *   close.c     the end of a port
 *   connect.c   the handshake, and which way a channel goes
 *   terms.c     what a greeting says of our end, and what both have agreed on
 *   names.c     which channel a greeting is about, and what the peer's name is
 *   streams.c   streams to peers' processes, and what is heard of them
 *   numbers.c   which channel has a QPN, a target or a nonce
 *   places.c    peers that are at more than one place
 *   channel.c   a channel's life: made, open, failed, gone
 *   outbound.c  messages into frames, ops into work requests
 *   requests.c  those from their beginning to their end, and without the op that they were for
 *   put.c       packets out
 *   inbound.c   frames into messages; what the peer's RDMA touches
 *   regions.c   memory that peers may reach
 *   share.c     how many packets each of those that send may have under way to us
 *   summary.c   counters for the user
 *   initiator.c SRC: connections to other nodes that channels share
 *   domain.c    SRC: what this node's processes take together
 *   evidence.c  SRC: one stream to a process of another node, for all processes of this one
 *   reach.c     SRC: reads and writes that the peer's siblings carry out as well as it does
 *   narrow.c    ways that have become narrower than what was agreed
 *   pieces.c    packets in pieces, for those
 *   pull.c      a Read where the machine has none: asks the peer to write; a Write that nobody answers: asks
 *
 * A channel's states:
 *   CONNECTING  we have asked; greetings are sent again until there is an answer
 *   ACCEPTING   the peer has asked, and we have answered; its packets are taken, ours wait until it has heard us
 *   OPEN
 *   FAILED      the client has been told, or will be in this progress
 *
 * Upcalls of a machine may call the client, which may send on any channel. Nothing is pumped then: whoever has
 * something to send is in the port's list `dirty`, which is pumped when the machines are done with what has come.
 */
#ifndef RWK_PACKET_INTERNAL_H
#define RWK_PACKET_INTERNAL_H

#include "packet/capture.h"
#include "packet/greeting.h"
#include "packet/packet.h"

#include "base/compiler.h"
#include "base/hash_table.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/param.h"
#include "base/pool.h"
#include "machine.h"
#include "memory/keys.h"
#include "memory/puzzle.h"
#include "rc/rc.h"
#include "shared_rc/shared_rc.h"
#include "uc/uc.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* DOMAIN: the socket that this node's processes take SRC's packets by; no channel goes by it. */
enum { RWK_WAY_LOSSY, RWK_WAY_STREAM, RWK_WAY_DOMAIN, RWK_WAYS };

/* A frame: its own four bytes, then records. */
#define RWK_FRAME_HEAD      4u
#define RWK_FRAME_ACK       0x01000000u /* the other bits are rwk_rc_take_ack's */
#define RWK_RECORD_MAX      24u         /* bytes of a record's head, with data */
#define RWK_FRAMES_MAX      64u         /* frames of a channel that are under way; beyond it send says -EAGAIN */
#define RWK_READ_BATCH      15u         /* packets of a Read Request: as many as the link sends in one go */
#define RWK_SEND_MAX        65536u      /* bytes of a message that goes as a Send */
#define RWK_RELIEF_MAX      (512u << 10) /* bytes of copies for a peer that is late */
#define RWK_ROOM_PACKET     256u        /* bytes: a longer packet takes room in the receive buffer that counts */
#define RWK_KEY_TABLES      64u         /* 4 million regions */
#define RWK_RKEY_MARK       0x726f7065u /* in an rkey's second word: it is of this service */
#define RWK_RKEY_PUBLISHED  1u          /* its third: SRC's Reads and Writes reach it; the fourth is its length */
#define RWK_PACKET_COST     512u        /* bytes that the kernel counts for a packet beside its payload, about */
#define RWK_PACKET_LEAST    256u        /* bytes of payload that every way is believed to carry */
#define RWK_PACKET_OVERHEAD 80u         /* bytes of a packet beside its payload, at most */
#define RWK_PACKET_GSI_QKEY 0x80010000u /* of management datagrams */
#define RWK_PACKET_PROBED   20u         /* headers of a probe; what is not longer than it gets through */
#define RWK_CLOCK_GAP       16u         /* progresses between looks at the clock, when nothing comes */
#define RWK_PACKET_SRC_OWN  (RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_BUSY) /* SRC, if both have it */

/** Kinds of the service's own records. */
enum {
	RWK_KIND_PULL = RWK_KIND_SERVICE, /* please write to me; struct rwk_pull */
	RWK_KIND_PULLED,                  /* that is done: tag the id, small the positive errno */
	RWK_KIND_BYE,                     /* the last record: the channel ends in good order */
	RWK_KIND_WROTE, /* UC, SRC: please say (PULLED, with this tag) whether all that I wrote, and sent, has come */
};

struct rwk_pull {
	uint64_t id;     /* the asker's */
	uint64_t offset; /* into the region with key `from` */
	uint64_t length;
	uint32_t from, to; /* keys: of the region to read at the peer asked, and to write at the asker */
};

enum rwk_channel_state { RWK_CH_CONNECTING, RWK_CH_ACCEPTING, RWK_CH_OPEN, RWK_CH_FAILED };

/** A work request and what it is for. */
struct rwk_request {
	struct rwk_wr wr;
	struct rwk_list all;           /* rwk_packet_channel.requests */
	struct rwk_packet_channel *ch; /* NULL: an orphan */
	struct rwk_pool *home;
	enum rwk_request_kind {
		RWK_REQ_FRAME,  /* records in `bytes`; nobody waits for it */
		RWK_REQ_SEND,   /* a long message of op */
		RWK_REQ_COPY,   /* one whose op was cancelled after it had begun: `copy` has it */
		RWK_REQ_OP,     /* a part of op, a read or write */
		RWK_REQ_STATUS, /* a part of op: have the others been carried out? The answer comes into `bytes` */
		RWK_REQ_PULL,   /* a part of what the peer has asked for */
		RWK_REQ_ORPHAN, /* SRC: its channel is gone, but its packets stand among those of others */
	} kind;
	uint32_t used; /* bytes of a frame */
	struct rwk_op *op;
	struct rwk_pulling *pulling;
	void *copy; /* of what is sent, where it cannot lie with the client any more; or NULL */
	struct iovec iov[RWK_MACHINE_IOV];
	unsigned char bytes[]; /* of a frame: all of it; of a long message: its head */
};

/** Where packets go. */
struct rwk_packet_path {
	struct rwk_link_address to;
	uint8_t way;
	uint16_t cut;   /* longer payloads go in pieces of so many bytes (narrow.c); 0: all packets are whole */
	uint32_t begun; /* ICRC's beginning for packets of begun_len bytes */
	uint32_t begun_len;
};

/** narrow.c: what is known of how long packets may be now. */
struct rwk_packet_narrow {
	uint64_t token;        /* of our last round of probes */
	uint64_t heard;        /* when the peer, or its node, had what it last told us to believe, by its clock */
	rwk_time wider_at;
	uint32_t whom;         /* SRC: the channel whose peer was asked, by its number */
	uint16_t best;         /* the longest probe of this round that was answered, */
	uint16_t widest;       /* and of those rounds that said the way is narrow */
	uint8_t rounds, asked; /* that said the way is narrow; without an answer */
	bool untold;           /* SRC: the domain there may not know what we believe now */
};

/**
 * SRC: what sends to the processes of one other node, for all channels to them. It lives as long as the port, for the
 * target there does too.
 */
struct rwk_packet_initiator {
	struct rwk_port *port;
	struct rwk_packet_path path;  /* to the domain there */
	struct rwk_link_address seen; /* where its acknowledgements come from */
	uint32_t node;                /* rwk_address.node of those processes */
	uint64_t domain;              /* theirs; 0: not known yet */
	uint32_t target;              /* the QP there; 0: not known yet, and rc is NULL */
	uint32_t qpn, psn;
	struct rwk_rc *rc; /* lies at the start of its memory */
	uint32_t pmtu;
	struct rwk_packet_narrow *narrow; /* as a channel's */
	bool failed;
	bool ceased;         /* the domain knows that nothing more comes, or is gone */
	uint8_t ceases;      /* how often it was told, */
	rwk_time cease_at;   /* and when it is told next; 0: not yet */
	uint16_t window;     /* packets that may be under way, as agreed */
	uint32_t channels;   /* that go by it */
	rwk_time give_up_at; /* no channel is left: what is under way then is given up; 0: there are some */
	struct rwk_list all, dirty;
	UT_hash_handle by_qpn;
};

/** Where a peer is that is not at one place. */
struct rwk_packet_elsewhere {
	struct rwk_link_address seen;   /* its packets come from there, */
	struct rwk_link_address stream; /* and its stream leads there */
};

/**
 * There is one for each peer, of which there may be as many as a job has ranks: it is kept small, and in the order in
 * which it is used. What an SRC message touches, out or in, lies in the first three lines, one of RC in the first four;
 * the rest is for what is rare.
 */
struct rwk_packet_channel {
	union {
		struct rwk_channel base;
		struct {
			const struct rwk_transport *transport;
			struct rwk_port *port;
		};
	};
	uint32_t qpn;
	uint32_t target; /* SRC: of our domain, what takes from the peer; 0: it is not shared */
	struct rwk_packet_initiator *by; /* SRC: it sends by this one, */

	uint32_t srqn;  /* to this SRQ, */
	bool shared;    /* if it goes so at all */
	bool deaf;      /* the peer has said good-bye, or broken the protocol: nothing more is taken */
	bool ack_came;  /* frames have brought acknowledgements that the machine has not been told, */
	uint8_t frames; /* under way; at most RWK_FRAMES_MAX and a good-bye */
	uint32_t ack;   /* the last of those */
	uint32_t pmtu;
	struct rwk_rc *rc; /* one of the two from ACCEPTING or OPEN on, at the start of its memory; neither if `shared` */
	struct rwk_uc *uc;
	struct rwk_request *frame; /* records gather in it; NULL: none */
	struct rwk_pulling *pulls; /* what the peer has asked for, in order */
	enum rwk_channel_state state;
	uint32_t running; /* requests under way that are neither frames nor go on from copies */
	uint32_t sent_in; /* the port's epoch of the last send, its low bits, */
	uint8_t burst;    /* how many sends it has had, */
	uint8_t at_once;  /* and how many more may go within the send */
	int16_t doom;     /* 0, or the error with which it fails at the end of this progress */

	struct rwk_list queue;    /* rwk_op.link: sends in order; reads and writes stand behind the sends before them */
	struct rwk_list requests; /* rwk_request.all: posted to the machine */
	struct rwk_list dirty;
	struct rwk_place *place;    /* of a message in several packets that is arriving */
	uint32_t expected, arrived; /* bytes of it */

	struct rwk_packet_path path;
	uint32_t heard_in;                      /* rwk_port.period in which it last sent something of length */
	struct rwk_packet_elsewhere *elsewhere; /* NULL: the peer is where `path` leads, with all that is its */
	struct rwk_list timed;                  /* rwk_port.connecting, until it is open; then active */

	struct rwk_list asked; /* rwk_op.link: reads that the peer is asked to write */
	struct rwk_list all;
	struct rwk_hash_link by_qpn, by_target, by_nonce; /* numbers.c */
	uint32_t copied;    /* bytes of long messages under way that go on from copies */
	int16_t denied;     /* UC, SRC: 0, or why a Write of the peer's was not taken that it has not asked about yet */
	uint16_t pmtu_most; /* as much as has got through, or may; 0: what the link says */
	struct rwk_kept **kept;           /* early packets, from the first loss on */
	struct rwk_packet_narrow *narrow; /* NULL: no doubt yet that packets get through, or it is shared */

	/* The handshake. */
	struct rwk_address address; /* the peer's, perhaps partial */
	uint64_t token, peer_token; /* of our CONNECT and the peer's */
	rwk_time ask_at;
	union {
		rwk_time give_up_at; /* CONNECTING */
		rwk_time alone_at;   /* SRC, OPEN: from then on it gets a stream if nobody else holds one */
	};
	uint32_t peer_qpn, psn;
	uint16_t peer_pad; /* of the CONNECT that is being answered */
	uint8_t tries, tries_with_stream; /* greetings without an answer; the last number stands for more, too */
	bool may_share : 1, decided : 1;  /* SRC: may this channel go so? Decided once */
	bool gone : 1;                    /* the peer's process has ended */
	bool published : 1;               /* SRC: regions of ours, to this peer */
	bool stream_open : 1, stream_asked : 1;
	bool answered_short : 1, asked_since : 1; /* by an answer that does not show that long packets get through */
	bool release_said : 1, release_came : 1; /* SRC: neither this end, nor the peer, needs the stream that is open */
	bool stream_lost : 1;                    /* there is no stream, and none will be: no evidence */
	bool on_this_machine : 1;                /* in whichever container */
	bool takes_pieces : 1;                   /* the peer joins packets that come in pieces */
	bool named : 1;                          /* it is found by its peer's nonce */
	bool asks_by_stream : 1;                 /* CONNECTING: and by nothing else any more */
};
_Static_assert(offsetof(struct rwk_packet_channel, port) == offsetof(struct rwk_channel, port), "port is base.port");
_Static_assert(offsetof(struct rwk_packet_channel, srqn) == RWK_CACHE_LINE &&
		       offsetof(struct rwk_packet_channel, queue) == 2 * RWK_CACHE_LINE &&
		       offsetof(struct rwk_packet_channel, path) == 3 * RWK_CACHE_LINE &&
		       offsetof(struct rwk_packet_channel, asked) == 4 * RWK_CACHE_LINE,
	"a message touches the first lines of its channel");
_Static_assert(sizeof(struct rwk_packet_channel) <= 424, "a process may have a channel for each rank (cost.h)");

struct rwk_port {
	const struct rwk_packet_ways *ways;
	const struct rwk_transport *transport;
	struct rwk_link *link[RWK_WAYS];
	const struct rwk_client *client;
	void *cookie;
	struct rwk_address address;
	uint8_t key[32];
	struct rwk_hash_table by_qpn, by_target, by_nonce; /* channels: numbers.c */
	uint32_t unnamed;                              /* channels that are not found by a nonce: it is not known yet */
	struct rwk_packet_channel *last;               /* whose packet came last */
	struct rwk_packet_initiator *initiators;       /* by QPN */
	const struct rwk_packet_path *leader, *favourite; /* of the vote; of the link. NULL: none */
	uint32_t lead;                                 /* packets that the leader is ahead */
	struct rwk_list all, dirty, active, connecting; /* of channels: the last two by `timed` */
	struct rwk_list all_initiators, dirty_initiators;
	struct rwk_packet_domain domain;
	struct rwk_src_view *view;     /* of that domain; NULL: it is in none */
	struct rwk_packet_path answer; /* of the last acknowledgement from there */
	rwk_time attend_at, bury_at, evidence_at;
	struct rwk_port_attr attr; /* if shared: as it was opened with */
	bool joining;              /* nothing is decided yet about connections */
	rwk_time join_until;
	struct rwk_keys *keys[RWK_KEY_TABLES]; /* the first key_tables of them exist */
	uint32_t key_tables;
	struct rwk_pool requests, frames;
	uint64_t last_pull; /* number of a question that a peer will answer */
	uint64_t epoch;     /* counts progress */
	uint64_t own_epoch; /* when the process's own socket brought something for a channel */
	rwk_time now, deadline;
	rwk_time stream_at; /* when to look at the streams again */
	rwk_time seek_at;   /* when to look for channels without one */
	rwk_time cease_until; /* the port is closed, and waits so long for its initiators to have ceased; 0: it is not */
	uint32_t by_stream; /* channels that go by it */
	uint32_t running;   /* of all channels: each waits for an acknowledgement, or for the data of a Read */
	uint32_t copies;    /* of messages, for whose acknowledgement nobody waits, but others behind them do */
	struct rwk_request *lone; /* one of those, posted while there was no other: it is copied when nothing comes */
	bool inside, armed, doomed, wants_shared;
	rwk_time linger_until; /* it has been left: so long it waits for its peers; 0: it has not */
	bool pressing; /* of what is dirty, something does not wait; */
	bool waited;   /* what can has, for a progress; */
	bool answers_waited; /* SRC: and so have the acknowledgements that this process owes for the domain */
	bool hurry;    /* what is sent now is one packet, for which somebody may wait: at once, all else after it */
	uint32_t room;   /* bytes of packets that our receive buffer holds, */
	uint32_t window; /* so many of the largest */
	uint32_t period, heard, senders;
	rwk_time period_end, moment_at;
	rwk_time wider_at; /* when to ask whether a narrow way is wide again */
	struct rwk_puzzle *puzzles; /* packets of which pieces have come; NULL: none ever has */
	uint32_t next_puzzle, cut_serial;
	uint32_t machine, processors; /* as in rwk_port_attr */
	uint32_t crowd;      /* processes of the job that are known to be on this machine, this one too */
	rwk_time late_until; /* and more than it has processors: a peer is, or was late a moment ago; 0: none */
	int epoll, timer;
	struct rwk_packet_counters count;
	struct rwk_capture *capture; /* NULL: none */
	struct {
		struct rwk_link_address from;
		size_t len; /* 0: none */
		uint32_t crc;
	} begun; /* with what the ICRC of the last packet began: senders and lengths repeat */
};

static inline struct rwk_packet_channel *rwk_packet_channel(struct rwk_channel *ch)
{
	return (struct rwk_packet_channel *)ch;
}

/** The machine that carries what the channel sends, if that is RC or SRC; else NULL. */
static inline struct rwk_rc *rwk_packet_requester(const struct rwk_packet_channel *ch)
{
	return ch->shared ? ch->by->rc : ch->rc;
}

/** Bytes of an RDMA request at most; longer ops are several. Of an orphan's all must be copied. */
static inline size_t rwk_packet_part_max(const struct rwk_packet_channel *ch)
{
	return (size_t)1 << (ch->shared ? 20 : 30);
}

/* port.c */
/** The time, asked for once a progress. */
rwk_time rwk_packet_now(struct rwk_port *port);
/** Sends a datagram of the handshake. */
void rwk_packet_greet(struct rwk_port *port, int way, const struct rwk_link_address *to, const struct rwk_greeting *g);
void rwk_packet_flush(struct rwk_port *port);
int rwk_packet_random(void *to, size_t len);
/** An address as a user would write it; until the next call of this thread. */
const char *rwk_packet_name(const struct rwk_address *a);
/** Payload of the largest packet that reaches `to` by that way. */
uint32_t rwk_packet_pmtu(struct rwk_port *port, int way, const struct rwk_link_address *to);
/** The next to be tried if packets of that payload do not get through. */
static inline uint32_t rwk_packet_narrower(uint32_t pmtu)
{
	uint32_t quarter = pmtu / 4 - pmtu / 4 % RWK_WIRE_OWN_STEP;

	return quarter > RWK_PACKET_LEAST ? quarter : RWK_PACKET_LEAST;
}
/** Writes a packet, from or to `peer`, into port->capture, which there must be. */
void rwk_packet_capture(struct rwk_port *port, int way, bool outgoing, const struct rwk_link_address *peer,
	const struct iovec *iov, int count);
/** The link has taken a packet. */
void rwk_packet_sent(
	struct rwk_port *port, int way, const struct rwk_link_address *to, const struct iovec *iov, int count);

/* arrive.c */
/** A packet has come, by that link. */
void rwk_packet_arrived(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const void *bytes, size_t len);

/* progress.c */
/** Something is to be sent: the channel is pumped at the end of the progress, or now if we are not in one. */
void rwk_packet_stir(struct rwk_packet_channel *ch);
/** The same, after a message has come: at the end of this progress or, if that can wait, of the next. */
void rwk_packet_stir_for_message(struct rwk_packet_channel *ch);
/** The machine wants to be pumped then. */
void rwk_packet_deadline(struct rwk_packet_channel *ch, rwk_time at);

/* vote.c */
/**
 * By which path do most packets come? Each is a vote for its path and against all others (R. Boyer, J Moore, "MJRTY",
 * 1981). Whose path is far enough ahead becomes the link's favourite, if it is eligible; it takes more to take
 * another's place. Called from within the link's `packet`, of one that comes from `seen`.
 */
void rwk_packet_vote(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct rwk_link_address *seen, bool eligible);
/** The path is no more. */
void rwk_packet_vote_ends(struct rwk_port *port, const struct rwk_packet_path *path);

/* sleep.c */
int rwk_packet_open_waiting(struct rwk_port *port);
void rwk_packet_disarm(struct rwk_port *port);

/* close.c */
void rwk_packet_close_links(struct rwk_port *port);
/** Who is told what comes while a port is being closed. */
extern const struct rwk_client rwk_packet_nobody;
/** Its client has left it. */
static inline bool rwk_packet_is_left(const struct rwk_port *port)
{
	return port->client == &rwk_packet_nobody;
}

/** A number that no QP of this port has; 0: none could be drawn. */
uint32_t rwk_packet_new_qpn(struct rwk_port *port);

/* connect.c */
void rwk_packet_greeted(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g);
/** Asks again who has not answered. */
void rwk_packet_ask(struct rwk_packet_channel *ch, rwk_time now);
/** Whether the peer is there cannot be told for sure: it is asked for half a minute more, and given up then. */
void rwk_packet_ask_on(struct rwk_packet_channel *ch);
/** A packet of the channel's QP has come: the peer has heard our answer. */
void rwk_packet_confirmed(struct rwk_packet_channel *ch);

/* terms.c */
/** Payload of the largest packet that the channel may send by that way. */
uint32_t rwk_packet_path_pmtu(const struct rwk_packet_channel *ch, int way);
/** Writes our terms into a greeting that goes by that way and has its type. */
void rwk_packet_terms(struct rwk_packet_channel *ch, int way, struct rwk_greeting *g);
/**
 * SRC: what the greeting has added to the decision. A peer that has more than one address, and greets from one that it
 * did not name, is not shared: a target hears one address. Nor is one of another domain than the initiator for its node
 * is aimed at; there an asker has been promised it already, and finds out when it aims.
 */
void rwk_packet_decide(struct rwk_packet_channel *ch, int way, const struct rwk_greeting *g);
/**
 * The peer may be in another container of this machine. The job map shows that to nobody: the kernel's name does. Those
 * of this node are counted already, as local_peers.
 */
void rwk_packet_place(struct rwk_packet_channel *ch, const struct rwk_greeting *g);

/* numbers.c */
/** The channel that has that QPN; NULL: none has. */
static inline struct rwk_packet_channel *rwk_packet_by_qpn(const struct rwk_port *port, uint32_t qpn)
{
	for (struct rwk_hash_link *l = rwk_hash_list(&port->by_qpn, qpn); l; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, by_qpn);

		if (rwk_likely(ch->qpn == qpn))
			return ch;
	}
	return NULL;
}
/** The same by its target. */
static inline struct rwk_packet_channel *rwk_packet_by_target(const struct rwk_port *port, uint32_t target)
{
	for (struct rwk_hash_link *l = rwk_hash_list(&port->by_target, target); l; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, by_target);

		if (rwk_likely(ch->target == target))
			return ch;
	}
	return NULL;
}
/** The oldest channel whose peer has that nonce; NULL: none has, or it is not known. */
struct rwk_packet_channel *rwk_packet_by_nonce(const struct rwk_port *port, uint64_t nonce);
/** The next one with the same; NULL: none. */
struct rwk_packet_channel *rwk_packet_next_by_nonce(const struct rwk_packet_channel *ch);
/** The channel is found by its peer's nonce from now on, if that is known; else it is one of rwk_port.unnamed. */
void rwk_packet_name_add(struct rwk_packet_channel *ch);
void rwk_packet_name_remove(struct rwk_packet_channel *ch);
void rwk_packet_numbers_init(struct rwk_port *port);
void rwk_packet_numbers_free(struct rwk_port *port);

/* places.c */
/** Where packets of the peer come from, which need not be where ours go: it may have several IPs. */
static inline const struct rwk_link_address *rwk_packet_seen(const struct rwk_packet_channel *ch)
{
	return rwk_unlikely(ch->elsewhere != NULL) ? &ch->elsewhere->seen : &ch->path.to;
}
/** By what the link knows the stream: it may have come from another address than the peer's first. */
static inline const struct rwk_link_address *rwk_packet_stream(const struct rwk_packet_channel *ch)
{
	return ch->elsewhere ? &ch->elsewhere->stream : &ch->path.to;
}
/** The channel's packets go there from now on, and the peer's come from there: 0 or -ENOMEM. */
int rwk_packet_goes(
	struct rwk_packet_channel *ch, const struct rwk_link_address *to, const struct rwk_link_address *from);
/** The peer's packets come from there; its stream leads there. 0 or -ENOMEM. */
int rwk_packet_set_seen(struct rwk_packet_channel *ch, const struct rwk_link_address *from);
int rwk_packet_set_stream(struct rwk_packet_channel *ch, const struct rwk_link_address *at);

/* names.c */
static inline uint64_t rwk_packet_nonce(const struct rwk_address *a)
{
	return a->nonce_port >> 16;
}
/** Is that all that is known: where it is? */
static inline bool rwk_packet_is_partial(const struct rwk_address *a)
{
	return a->flags_rank & RWK_ADDR_PARTIAL;
}
/** The peer's nonce; 0: not known yet. */
static inline uint64_t rwk_packet_peer_nonce(const struct rwk_packet_channel *ch)
{
	return rwk_packet_is_partial(&ch->address) ? 0 : rwk_packet_nonce(&ch->address);
}
/** The channel to who has sent this greeting: by its nonce, or by where it is while that is all we know; or NULL. */
struct rwk_packet_channel *rwk_packet_find(
	struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g);
/** The peer's full address is known now. 0, or why the client does not want it. An upcall. */
int rwk_packet_acquainted(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
/** A new channel to who has sent this greeting; NULL, and *rc says why there is none. An upcall. */
struct rwk_packet_channel *rwk_packet_channel_from(struct rwk_port *port, const struct rwk_greeting *g, int *rc);
/** Where we ask somebody is, who takes us by SRC if we ask for him by name: there is somebody, and that is the name. */
void rwk_packet_take_name(struct rwk_packet_channel *ch, const struct rwk_greeting *g);

/* streams.c */
/** The link's word of a stream: 0, it is open; else why it is not. */
void rwk_packet_word(struct rwk_port *port, const struct rwk_link_address *who, int status);
/** The kernel there says that nobody has that port. */
void rwk_packet_hint(struct rwk_port *port, const struct rwk_link_address *who);
/** The channel is open, and not shared: one end starts the stream, and both know which. */
void rwk_packet_stream_begin(struct rwk_packet_channel *ch);
/** Starts the streams that peers should have started and have not. */
void rwk_packet_seek(struct rwk_port *port);
/** Starts a stream to the peer's process, if there is none and there can be one. */
void rwk_packet_reach(struct rwk_packet_channel *ch);

/* channel.c */
struct rwk_packet_channel *rwk_packet_channel_new(struct rwk_port *port, const struct rwk_address *to);
void rwk_packet_channel_free(struct rwk_packet_channel *ch);
/** Makes the machine for the way. 0 or -ENOMEM. */
int rwk_packet_machine(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
/** One piece of memory: machine, then responder. NULL: there is none. */
void *rwk_packet_machine_memory(size_t size, size_t responder, void **responder_at);
/** It may send. */
void rwk_packet_opened(struct rwk_packet_channel *ch);
/** Ends all that is under way with `status`. */
void rwk_packet_stop(struct rwk_packet_channel *ch, int status);
/** It fails at the end of this progress. */
void rwk_packet_doom(struct rwk_packet_channel *ch, int err);
void rwk_packet_breach(struct rwk_packet_channel *ch, const char *what);
bool rwk_packet_idle(const struct rwk_packet_channel *ch);
/** The client leaves: its ops are cancelled, a good-bye goes behind what it has sent. */
void rwk_packet_farewell(struct rwk_packet_channel *ch);
/** Tells a peer that has said good-bye that it was heard. */
void rwk_packet_say_bye(struct rwk_packet_channel *ch);

/* put.c */
/** Sends a packet by that path: 0 or -EAGAIN. */
int rwk_packet_put(struct rwk_port *port, struct rwk_packet_path *path, const struct rwk_wire *w,
	const struct iovec *payload, int count);
int rwk_packet_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count);

/* outbound.c */
/** Tells the machine of the acknowledgements that frames have brought. */
void rwk_packet_take_ack(struct rwk_packet_channel *ch);
/** Moves what waits: ops into requests, requests into packets. Returns packets made. */
int rwk_packet_pump(struct rwk_packet_channel *ch);
/** A record of the service's own; false: out of memory. */
bool rwk_packet_control(struct rwk_packet_channel *ch, const struct rwk_envelope *env, const void *bytes, size_t len);
/** Posts the parts of an RDMA request, each of at most as much as a machine takes. 0 or -ENOMEM. */
int rwk_packet_rdma(struct rwk_packet_channel *ch, struct rwk_op *op);

/* requests.c */
/** Words of rwk_op.service; a kind of op may have more. */
enum { RWK_WORD_STATE, RWK_WORD_PARTS, RWK_WORD_STATUS };
enum { RWK_OP_QUEUED = 1, RWK_OP_RUNNING };
/** Is a posted send to be told of only when the peer has said that it has come? UC's machine does not know. */
static inline bool rwk_packet_asks_for_arrival(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return ch->uc && op->arrival;
}
/** A request of the channel's, with nothing in it; NULL: out of memory. */
struct rwk_request *rwk_packet_request(struct rwk_packet_channel *ch, enum rwk_request_kind kind);
void rwk_packet_request_free(struct rwk_request *r);
/** Posts it to the channel's machine: 0, or why not, and it stays the caller's. */
int rwk_packet_start(struct rwk_request *r);
/** The machine is done with it: an upcall. */
void rwk_packet_done(void *user, struct rwk_wr *wr, int status);
/** Such an op has one part more, or less: with the last it is done. With the first status of a part that failed. */
void rwk_packet_part_add(struct rwk_op *op);
void rwk_packet_part_failed(struct rwk_op *op, int status);
void rwk_packet_part_done(struct rwk_packet_channel *ch, struct rwk_op *op, int status);
/**
 * Takes the ops that run back from the machine: long messages go on from copies. False: an RDMA request runs, or there
 * is no memory; the channel cannot go on.
 */
bool rwk_packet_detach(struct rwk_packet_channel *ch);
/**
 * Who sends need not wait for a peer that answers late: long messages that run end now, and go on from copies, of which
 * there are at most RWK_RELIEF_MAX. An upcall.
 */
void rwk_packet_relieve(struct rwk_packet_channel *ch);
/** The same for rwk_port.lone, which there is. Returns whether it has ended. */
bool rwk_packet_relieve_lone(struct rwk_port *port);
/**
 * SRC: the channel's requests leave its initiator's queue, or stay in it as orphans if packets of them are made: those
 * have numbers that others' packets stand behind.
 */
void rwk_packet_release(struct rwk_packet_channel *ch, int status);

/* narrow.c */
/** The machine waits in vain for an answer, and has for some time: an upcall. `anew`: something came since the last. */
void rwk_packet_silent(struct rwk_packet_channel *ch, bool anew);
/** The same, of an initiator's. */
void rwk_packet_node_silent(struct rwk_packet_initiator *by, bool anew);
/** PROBE and PROBED have come from the channel's peer. */
void rwk_packet_probe_came(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
void rwk_packet_probed(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
/** Asks whether narrow ways are wide again; at port->wider_at. */
void rwk_packet_wider(struct rwk_port *port, rwk_time now);

/* pieces.c */
/** Sends a packet of `len` bytes, all that it consists of in iov, in pieces: 0 or -EAGAIN. */
int rwk_packet_put_pieces(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct iovec *iov, int count, size_t len);
/** Is that, the payload of a datagram to QPN 1, a piece of a packet? Then: it has come. */
bool rwk_packet_is_piece(const void *payload, size_t len);
void rwk_packet_piece(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *payload, size_t len);

/* initiator.c */
/**
 * The one to that node and domain (0: whichever is there now), made if there is none: NULL for want of memory.
 */
struct rwk_packet_initiator *rwk_packet_initiator(struct rwk_port *port, uint32_t node, uint64_t domain);
/**
 * Aims it where the peer's ACCEPT says, if it was not yet: 0; -ESTALE: it is aimed at another domain; -ENOMEM.
 */
int rwk_packet_aim(struct rwk_packet_initiator *by, const struct rwk_link_address *from, const struct rwk_greeting *g,
	uint32_t pmtu);
/** A channel goes by it no more; `gone`: the peer's process has ended. */
void rwk_packet_initiator_left(struct rwk_packet_initiator *by, bool gone);
int rwk_packet_initiator_pump(struct rwk_packet_initiator *by);
/** The port wakes when the machine wants to be pumped. */
void rwk_packet_initiator_deadline(struct rwk_packet_initiator *by);
/** A packet to that QPN has come by the lossy way; false: there is no such initiator. */
bool rwk_packet_initiator_packet(struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_wire *w,
	const void *payload, size_t len);
int rwk_packet_initiators_pump(struct rwk_port *port);
void rwk_packet_initiators_ring(struct rwk_port *port, rwk_time now);
/**
 * The port is closed, and its channels are done: those whose packets have all arrived say so where they went. Is there
 * something to wait for? To be called again until there is not.
 */
bool rwk_packet_initiators_cease(struct rwk_port *port);
/** CEASED has come. */
void rwk_packet_initiator_ceased(struct rwk_port *port, const struct rwk_greeting *g);
/** Nobody has that port any more. */
void rwk_packet_initiators_refused(struct rwk_port *port, const struct rwk_link_address *who);
void rwk_packet_initiators_free(struct rwk_port *port);

/* domain.c */
/** Joins this node's domain. Without one the port goes on without SRC. */
void rwk_packet_domain_join(struct rwk_port *port, const struct rwk_port_attr *attr);
void rwk_packet_domain_leave(struct rwk_port *port);
/** What the channel's own terms of SRC are; false: there is no memory for them. */
bool rwk_packet_domain_terms(struct rwk_packet_channel *ch, enum rwk_greeting_type type, struct rwk_greeting_shared *s);
/** From now on the channel takes by the domain. 0; -ENOSPC: the domain is full. */
int rwk_packet_domain_take(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
void rwk_packet_domain_forget(struct rwk_packet_channel *ch);
/** A greeting that came by the domain's socket, or was meant to. */
void rwk_packet_domain_greeted(struct rwk_port *port, int way, const struct rwk_greeting *g);
int rwk_packet_domain_progress(struct rwk_port *port);
void rwk_packet_domain_by_clock(struct rwk_port *port, rwk_time now);

/* evidence.c: all for channels that are shared */
/** The channel is open: who looks after its peer? */
void rwk_packet_evidence_begin(struct rwk_packet_channel *ch);
/** Its stream has ended, or is going to. */
void rwk_packet_evidence_lost(struct rwk_packet_channel *ch);
/** Looks who has died, and that every peer is looked after. */
void rwk_packet_evidence_by_clock(struct rwk_port *port, rwk_time now);
/** When it is to be called next; RWK_NEVER: there is nothing to look after. */
rwk_time rwk_packet_evidence_next(const struct rwk_port *port);

/* inbound.c */
/** A piece of a Send, and of a Write, for this channel: 0, or a refusal. */
int rwk_packet_receive(struct rwk_packet_channel *ch, unsigned where, const void *bytes, size_t len);
int rwk_packet_write(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, const void *bytes, size_t len);
extern const struct rwk_machine_host rwk_packet_host;
void rwk_packet_kept_free(struct rwk_packet_channel *ch);

/* regions.c: what this channel's peer may reach */
int rwk_packet_region_add(
	struct rwk_packet_channel *ch, const struct iovec *iov, uint32_t count, unsigned reach, uint32_t *key);
void rwk_packet_region_remove(struct rwk_packet_channel *ch, uint32_t key);
/** As rwk_keys_check and rwk_keys_find. */
int rwk_packet_region_check(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, size_t len, unsigned reach);
int rwk_packet_region_find(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, size_t len, unsigned reach,
	struct iovec *iov, int max);
/** All are gone. */
void rwk_packet_regions_free(struct rwk_port *port);

/* reach.c: SRC */
/** May long reads and writes go directly? The channel is open. */
void rwk_packet_reach_begin(struct rwk_packet_channel *ch);
/** Lets the siblings carry out what the peer does with a region that was added; completes *key. As expose. */
int rwk_packet_publish(struct rwk_packet_channel *ch, const struct iovec *iov, uint32_t count, struct rwk_rkey *key);
void rwk_packet_withdraw_key(struct rwk_packet_channel *ch, uint32_t key);
/** Is that a read or write that the peer's siblings carry out? */
static inline bool rwk_packet_is_published(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return ch->shared && op->rkey.word[2] == RWK_RKEY_PUBLISHED;
}
/** Is it beyond the region's end? */
static inline bool rwk_packet_is_beyond(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return rwk_packet_is_published(ch, op) &&
	       (op->offset > op->rkey.word[3] || op->length > op->rkey.word[3] - op->offset);
}
/** Starts one: 0 or -ENOMEM. */
int rwk_packet_reach_out(struct rwk_packet_channel *ch, struct rwk_op *op);
/** All parts of a read are there: true, if it is to be asked whether that is so, and it is not done yet. */
bool rwk_packet_reach_read(struct rwk_packet_channel *ch, struct rwk_op *op);
/** The answer has come: what it says. */
int rwk_packet_reach_status(const struct rwk_request *r);

/* share.c */
/** A packet that takes room has come, the first of its channel in this period. */
void rwk_packet_heard(struct rwk_packet_channel *ch);
/** SRC: an initiator's packets are cut, or cut otherwise: as many are under way as the domain there has room for. */
void rwk_packet_recount(struct rwk_packet_initiator *by);
/** A period is over. */
void rwk_packet_period(struct rwk_port *port, rwk_time now);

/* summary.c */
void rwk_packet_summary(const struct rwk_port *port);

/* pull.c */
int rwk_packet_pull(struct rwk_packet_channel *ch, struct rwk_op *op);
void rwk_packet_pull_asked(struct rwk_packet_channel *ch, const void *bytes, size_t len);
void rwk_packet_pull_answered(struct rwk_packet_channel *ch, const struct rwk_envelope *env);
void rwk_packet_pull_part(struct rwk_request *r, int status);
/** UC, SRC: a write that is done when the peer has said that it is in place. 0 or -ENOMEM. */
int rwk_packet_push(struct rwk_packet_channel *ch, struct rwk_op *op);
/** Asks whether the send that is posted next has come: the answer is one of its parts. False: out of memory or room. */
bool rwk_packet_ask_behind(struct rwk_packet_channel *ch, struct rwk_op *op);
/** Sends that wait for such an answer go without: the channel ends in good order. */
void rwk_packet_sends_unasked(struct rwk_packet_channel *ch);
void rwk_packet_push_asked(struct rwk_packet_channel *ch, const struct rwk_envelope *env);
/** Answers those that have been written. */
void rwk_packet_pulls_answer(struct rwk_packet_channel *ch);
/** The region with that key is concealed: what the peer is being sent of it goes on from a copy. */
void rwk_packet_pulls_conceal(struct rwk_packet_channel *ch, uint32_t key);
void rwk_packet_pulls_stop(struct rwk_packet_channel *ch, int status);

#endif
