/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The door of a domain: an abstract Unix socket that all members listen at, and by which they let in who belongs to
 * them. Whichever member comes to it first serves a visitor, from beginning to end.
 *
 *   visitor                       member
 *     | ------- connect ----------> |   each looks who the other is, by the kernel's word (SO_PEERCRED)
 *     | <------ GREETING ---------- |   a nonce
 *     | ------- PROOF ------------> |   a nonce; the MAC over both, by who has the job's key
 *     | <------ WELCOME ----------- |   a MAC of the other role; the domain's id, size and descriptors
 *
 * Between GREETING and WELCOME the visitor depends on one member, who may begin to compute in the meantime: so it does
 * not wait long for the WELCOME, but knocks again.
 */
#ifndef RWK_SHARED_RC_DOOR_H
#define RWK_SHARED_RC_DOOR_H

#include "shared_rc/shared_rc.h"

#include <sys/types.h>

enum rwk_src_thing { RWK_SRC_MEMORY, RWK_SRC_SOCKET, RWK_SRC_DOOR, RWK_SRC_THINGS };

/** A domain, as it is handed from one process to another. */
struct rwk_src_holding {
	uint64_t id;
	struct rwk_src_size size;
	int fd[RWK_SRC_THINGS]; /* -1: not there */
};

/** What job and user are known by to each other: the door's name, and the key of the proofs. */
struct rwk_src_secret {
	uint8_t name[16];
	uint8_t key[32];
	uid_t uid;
};

#define RWK_SRC_VISITORS 16 /* at a time; the others wait in the socket's queue */

struct rwk_src_visitor {
	int fd;            /* -1: nobody */
	uint64_t since;    /* milliseconds */
	uint8_t nonce[32]; /* what we have sent */
};

/** A member's side: those that it is letting in. */
struct rwk_src_porch {
	const struct rwk_src_secret *secret;
	const struct rwk_src_holding *holding;
	int epoll; /* the door and the visitors; -1: closed */
	struct rwk_src_visitor visitor[RWK_SRC_VISITORS];
};

void rwk_src_secret_draw(const uint8_t key[32], uid_t uid, struct rwk_src_secret *secret);
/** Closes what of a holding is open; with the lock of forked.h. */
void rwk_src_holding_close(struct rwk_src_holding *holding);
/** Milliseconds since whenever. */
uint64_t rwk_src_ms(void);

/** A socket that has the name, and at which nobody can knock before listen; negative errno: -EADDRINUSE. */
int rwk_src_door_bind(const struct rwk_src_secret *secret);
/** Opens the door to those who knock. 0; negative errno. */
int rwk_src_door_listen(int door);
/**
 * Knocks, and is let in: 0 and *holding set; its descriptors, -1 until then, are the caller's; nobody has looked yet
 * what the memory is. Waits until `deadline` for a member to come to the door, and then `patience` ms for it to let us
 * in, both in ms. -ETIMEDOUT; -EACCES: another user, or one who does not know the key; -EPROTONOSUPPORT; -EMFILE; what
 * may be otherwise the next time: -ECONNREFUSED (nobody listens), -ECONNRESET (it has hung up), -EKEYREJECTED (it has,
 * after our proof), -EAGAIN (the queue is full, or patience is at its end).
 */
int rwk_src_door_knock(
	const struct rwk_src_secret *secret, uint64_t deadline, unsigned patience, struct rwk_src_holding *holding);

/** Begins to look after the door of `holding`. 0; negative errno, and the porch is closed. With the lock of forked.h,
 * as close. */
int rwk_src_porch_open(
	struct rwk_src_porch *porch, const struct rwk_src_secret *secret, const struct rwk_src_holding *holding);
/** Serves who waits; never blocks. */
void rwk_src_porch_attend(struct rwk_src_porch *porch);
/** Sends the visitors away: they knock again. Nothing if it is closed, as after `forget`. */
void rwk_src_porch_close(struct rwk_src_porch *porch);
/** In a forked child: closes its copies of the descriptors; the parent's visitors stay. */
void rwk_src_porch_forget(struct rwk_src_porch *porch);

#endif
