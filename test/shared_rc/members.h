/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real processes that join a domain. A member is a child that joins, tells what came of it, and then does what its
 * parent says: it attends to the door until it is told something else.
 */
#ifndef TEST_SHARED_RC_MEMBERS_H
#define TEST_SHARED_RC_MEMBERS_H

#include "shared_rc/door.h"
#include "shared_rc/join.h"

#include <stdbool.h>
#include <sys/types.h>

#define STRANGER 65534u /* another user */

/* How a member joins. */
struct plan {
	uint8_t key;         /* of which job */
	uid_t uid;           /* 0: ours */
	unsigned wait_ms;    /* 0: 10 s */
	int (*before)(void); /* called in the child, if it is set: 0, or what join is to be thought to have said */
};

/* What a member tells: of its domain, what no other one has. */
struct told {
	int rc;
	bool made;                  /* it was asked for the socket */
	uint64_t id, cookie, inode; /* of the domain, its socket, its memory */
	uint32_t srqn;              /* of the view that it has of the memory */
};

struct member {
	pid_t pid;
	int fd;
	struct told told;
};

enum order {
	ATTEND = 'a',  /* until something else is said; a member begins with it */
	COMPUTE = 'c', /* does not look at the door */
	ONCE = 'o',    /* attends as soon as there is something, once, and then computes */
	LEAVE = 'l',   /* leaves and ends with status 0 */
	FORK = 'f',    /* member_fork */
	SPAWN = 's',   /* member_spawn */
};

void key_of(uint8_t number, uint8_t key[32]);
/** Arguments of a join with the key of that number, of an own UDP socket, which sets *made. */
struct rwk_src_join_attr attr_of(const struct plan *plan, bool *made);
/** Joins; -ETIMEDOUT: nobody has let us in within so many milliseconds (0: 10 s). */
int join_within(const struct rwk_src_join_attr *attr, unsigned ms, struct rwk_src_seat **seat);
/** Fills *told from a seat, but for the number. */
void tell_of(const struct rwk_src_seat *seat, struct told *told);

/** Starts one, and does not wait for it. */
void member_start(struct member *m, const struct plan *plan);
/** Has it said whether it has joined, or ended? */
bool member_speaks(struct member *m);
/** Waits until it has joined, or not; false: it has died, or has not said anything within 20 s. */
bool member_hear(struct member *m);
/** Starts, hears, and demands that it has joined. */
void member_join(struct member *m, const struct plan *plan);
/** Gives an order; the member has taken it when this returns (not LEAVE). */
void member_order(struct member *m, enum order order);
/** Lets it fork a child that does not exec, and stays; the second one leaves its parent's seat. Returns its pid. */
pid_t member_fork(struct member *m);
/** Lets it start a program that stays; without fork's handlers (posix_spawn). Returns its pid. */
pid_t member_spawn(struct member *m);
/** Gives LEAVE and waits; the status must be 0. */
void member_leave(struct member *m);
void member_kill(struct member *m);
bool same_domain(const struct told *a, const struct told *b);

/** Is there a socket of that name in this network namespace? */
bool name_is_taken(uint8_t key, uid_t uid);
/** Does this process have the domain's memory open? */
bool has_memory(const struct told *told);
/** How many processes have the domain's memory, as a descriptor or mapped. */
unsigned holders_of(const struct told *told);
/** Demands that the domain is gone: its name, and its memory everywhere. Waits a little for processes to end. */
void assert_nothing_left(const struct told *told, uint8_t key);
unsigned open_descriptors(void);
void sleep_ms(unsigned ms);
/** A system call of this process fails from now on, with a first argument that is `argument` in the bits of `mask`. */
int deny(unsigned call, unsigned mask, unsigned argument, unsigned err);

#endif
