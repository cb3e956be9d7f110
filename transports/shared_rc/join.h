/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the domain of one's job and user on this node, or making it. Who asks first makes it: a memfd of fixed,
 * sealed size and an UDP socket. The others get both by a Unix socket, whose name in the abstract name space is drawn
 * from the job's key, the user and nothing else; so two jobs and two users never meet, and nothing is left on a disk.
 * The listening socket is handed round too: any member can let late comers in, and the maker may die. Where none of
 * them looks, a visitor takes what it may by the kernel's leave (card.h).
 *
 * A second seat of a process in the same domain is had from the first, without anybody's help. A child forked by a
 * member has no part in the domain: it closes what it has inherited (forked.h), and what it calls with its parent's
 * seat does nothing.
 *
 * Who lets in and who comes in each see the other's user by the kernel's word (SO_PEERCRED), and that the other knows
 * the job's key, before anything is handed over. Who helps himself sees the same of the member that he takes from.
 */
#ifndef RWK_SHARED_RC_JOIN_H
#define RWK_SHARED_RC_JOIN_H

#include "shared_rc/shared_rc.h"

struct rwk_src_seat;

struct rwk_src_join_attr {
	uint8_t key[32];          /* the job's; it is not told to anybody */
	struct rwk_src_size size; /* if it is to be made */
	/** Makes the two sockets that a new domain receives by, of which the second is for a favourite: 0, and their
	 * descriptors, which are the domain's then; or a negative errno, and there is none. */
	int (*socket)(void *user, int fd[2]);
	void *user;
};

/**
 * Joins, or makes, the domain; never waits. 0 and *seat set: we are in it, or at its door until a member lets us in
 * (rwk_src_join_go_on). Else what go_on says, and there is no seat. attr is copied.
 */
int rwk_src_join(const struct rwk_src_join_attr *attr, struct rwk_src_seat **seat);
/**
 * 0: we are in the domain; -EAGAIN: not yet, call it again: no member has looked at the door since we came. -EACCES:
 * whoever has the name is another user, or does not know the key; -EPROTONOSUPPORT: made by another layout; -ENOMEM,
 * -EMFILE, what socket said: then the seat is of no use but to be left. What went wrong has been logged at info level.
 */
int rwk_src_join_go_on(struct rwk_src_seat *seat);
/**
 * At the door, or in a domain where no view can be opened, and no longer willing to wait: leaves that, and makes a
 * domain of one's own under a name that nobody else draws. Later seats of this process for that job are in it, too. 0,
 * or what go_on says but -EAGAIN. Never waits.
 */
int rwk_src_join_alone(struct rwk_src_seat *seat);
/** At the door: why it could not help itself (card.h), a negative errno; 0: it has not tried yet. */
int rwk_src_why_not_taken(const struct rwk_src_seat *seat);
/** Lets in who waits; cheap if nobody does. To be called from progress, now and then. */
void rwk_src_attend(struct rwk_src_seat *seat);
/** Is somebody being let in who counts on the next attend, and not on some member's? */
bool rwk_src_expects(const struct rwk_src_seat *seat);
/** Leaves. May be called in a forked child, where it frees the child's copy alone. The last one out leaves nothing:
 * memory, sockets and the name are gone with it. */
void rwk_src_leave(struct rwk_src_seat *seat);

/**
 * The segment, mapped once for all seats of the process in this domain; valid until leave. NULL in a forked child,
 * where it is not mapped.
 */
void *rwk_src_seat_memory(const struct rwk_src_seat *seat);
/**
 * Shows the others that this process lives, as the member with that seat (rwk_src_show_life): a descriptor, the seat's,
 * valid until leave; or a negative errno: the kernel does not let us. Once, when in.
 */
int rwk_src_seat_sit(struct rwk_src_seat *seat, uint32_t number);
/** The domain's UDP sockets, the second the favourite's; the seat's, valid until leave. */
int rwk_src_seat_socket(const struct rwk_src_seat *seat);
int rwk_src_seat_line(const struct rwk_src_seat *seat);
/**
 * The watch: an epoll set that is the domain's. Who holds a target (shared_rc.h) puts the socket of its evidence into
 * it, with EPOLLRDHUP, EPOLLET not among what it asks for, and a number that says who holds what; each member looks now
 * and then what has happened there, so that nobody depends on the holder to run. A member's sockets leave it with the
 * member. The seat's, valid until leave.
 */
int rwk_src_seat_watch(const struct rwk_src_seat *seat);
/** Becomes readable when somebody waits to be let in; the seat's. */
int rwk_src_seat_door(const struct rwk_src_seat *seat);
/** The same for all members and no other domain: drawn at random when it was made. */
uint64_t rwk_src_seat_id(const struct rwk_src_seat *seat);

#endif
