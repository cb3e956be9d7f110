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
 * not wait long for the WELCOME. Nor does it for the GREETING: all members may stand where only the visitor's own
 * messages would wake them. Then it helps itself (card.h), where the kernel lets it, or knocks again. Each member
 * listens anew when it has come in, so that visitors are told of one who probably lives. A WELCOME that the kernel does
 * not take just now is sent by a later attend. A member that sleeps wakes for those whom it has met (`expects`).
 */
#ifndef RWK_SHARED_RC_DOOR_H
#define RWK_SHARED_RC_DOOR_H

#include "shared_rc/shared_rc.h"

#include <stdbool.h>
#include <sys/types.h>

enum rwk_src_thing { RWK_SRC_MEMORY, RWK_SRC_SOCKET, RWK_SRC_LINE, RWK_SRC_DOOR, RWK_SRC_WATCH, RWK_SRC_THINGS };

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

/** A visitor's side. */
struct rwk_src_knock {
	int fd;                      /* -1: not at the door */
	bool met;                    /* by a member, whose welcome it waits for */
	int helped;                  /* the last time it helped itself: what came of it, negative errno */
	pid_t listener;              /* who listened last, when it came */
	uint64_t until;              /* ms; then it helps itself */
	uint8_t member[32], own[32]; /* their nonces */
};

#define RWK_SRC_VISITORS 16 /* at a time; the others wait in the socket's queue */

struct rwk_src_visitor {
	int fd;                       /* -1: nobody */
	bool proven;                  /* that it knows the key; its WELCOME is still to be sent */
	uint64_t since;               /* milliseconds */
	uint8_t nonce[32], other[32]; /* what we have sent; and it, when it is proven */
};

/** A member's side: those that it is letting in. */
struct rwk_src_porch {
	const struct rwk_src_secret *secret;
	const struct rwk_src_holding *holding;
	int epoll; /* the door and the visitors; -1: closed */
	int card;  /* -1: none (card.h) */
	bool owes; /* a WELCOME that could not be sent yet */
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
 * Knocks, or goes on with it, as far as it goes without waiting: 0, we are let in, and *holding is set; its
 * descriptors, -1 until then, are the caller's; nobody has looked yet what the memory is. -EAGAIN: a member has to do
 * something first. Else the visit is over: -EACCES: another user, or one who does not know the key; -EPROTONOSUPPORT;
 * -EMFILE; and what may be otherwise the next time: -ECONNREFUSED (nobody listens), -ECONNRESET (it has hung up),
 * -EKEYREJECTED (it has, after our proof), -ETIMEDOUT (it has met us, and then done nothing for `patience` ms, or
 * nobody has come for half as long; and we could not help ourselves).
 */
int rwk_src_door_knock(struct rwk_src_knock *k, const struct rwk_src_secret *secret, unsigned patience,
	struct rwk_src_holding *holding);
/** Goes away; nothing if it is not at the door. With the lock of forked.h. */
void rwk_src_door_leave(struct rwk_src_knock *k);

/** Begins to look after the door of `holding`. 0; negative errno, and the porch is closed. With the lock of forked.h,
 * as close. */
int rwk_src_porch_open(
	struct rwk_src_porch *porch, const struct rwk_src_secret *secret, const struct rwk_src_holding *holding);
/** Serves who waits; never blocks. */
void rwk_src_porch_attend(struct rwk_src_porch *porch);
/** Has a visitor just been met, or a WELCOME to be sent: is attend to be called soon? */
bool rwk_src_porch_expects(const struct rwk_src_porch *porch);
/** Sends the visitors away: they knock again. Nothing if it is closed, as after `forget`. */
void rwk_src_porch_close(struct rwk_src_porch *porch);
/** In a forked child: closes its copies of the descriptors; the parent's visitors stay. */
void rwk_src_porch_forget(struct rwk_src_porch *porch);

#endif
