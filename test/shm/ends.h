/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two or more processes that talk through real ports: an end is a port and what its client has been told. Every
 * message carries its number in the tag and a pattern made of that number, so that a receiver can check order and
 * content by itself.
 */
#ifndef TEST_SHM_ENDS_H
#define TEST_SHM_ENDS_H

#include "transport.h"

#include "base/param.h"
#include "shm/counters.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define END_PEERS 320

struct end_peer {
	struct rwk_channel *ch;
	struct rwk_address address;
	uint64_t received, bytes; /* messages that came, in order and as they should be */
	uint64_t pieces;          /* of them in pieces */
	uint64_t sent;
	uint64_t done, done_error; /* posted ops that were completed; with an error */
	int failed;                /* what `failed` was told; 0: not called */
	int failed_calls;
	int ended_early; /* status of an `end` that was an error */
};

struct end {
	struct rwk_port *port;
	struct rwk_address address;
	struct end_peer peer[END_PEERS];
	unsigned peers;
	bool refuse;   /* say no in `connected` */
	unsigned lacks; /* say so many times in `connected` that there is no memory */
	bool tolerant; /* do not check content: the peer is hostile */
	bool echo;     /* send each message back from within the upcall */
	uint64_t wrong; /* messages out of order or with wrong content */
	void (*seen)(
		struct end *e, struct end_peer *p, const struct rwk_envelope *env, const void *payload, size_t len);
	/* A message in pieces. */
	struct rwk_place place;
	struct iovec iov[3];
	struct rwk_envelope env;
	struct end_peer *from;
	size_t len;
	unsigned char *buffer;
};

/** A port in this process; `number` 0: any. Fails the test if that cannot be had. */
struct end *end_open(uint16_t number, bool oversubscribed);
/**
 * A number that no port gets by chance (rwk_shm_note_bind), so that nobody has it while the test has given it up; nor
 * does another test that runs at the same time. Of this process: always the same.
 */
uint16_t own_number(void);
void end_close(struct end *e);
/** The channel to that address, made if there is none. */
struct end_peer *end_connect(struct end *e, const struct rwk_address *to);

/** Sends message number p->sent of `len` bytes with flags, as send, or posted if that says -EAGAIN and `insist`. 0, or
 * -EAGAIN. */
int end_send(struct end *e, struct end_peer *p, size_t len, uint8_t flags, bool insist);
/** Sends it, making progress until it has gone; false after ten seconds or when the channel has failed. */
bool end_push(struct end *e, struct end_peer *p, size_t len, uint8_t flags);

/** Progress until *value >= goal, or `ms` have gone by: false. */
bool end_until(struct end *e, const uint64_t *value, uint64_t goal, int ms);
bool end_until_failed(struct end *e, struct end_peer *p, int ms);
bool end_until_peers(struct end *e, unsigned count, int ms);
/** The same, but sleeping whenever there is nothing to do. */
bool end_sleep_until(struct end *e, const uint64_t *value, uint64_t goal, int ms);

/** IP and port of an address alone. */
struct rwk_address partial(const struct rwk_address *a);
/** Turns both ports, of this process, until the goal is reached; false after ten seconds. */
bool turn_both(struct end *a, struct end *b, const uint64_t *value, uint64_t goal);
/** Turns both until what `from` has sent to p, which is `to`, has come; fails the test if it is not as it should be. */
void all_there(struct end *from, struct end_peer *p, struct end *to);
/** Connects `from` to `to`, of this process, by a first message that comes; returns from's peer. */
struct end_peer *end_meet(struct end *from, struct end *to);
/** Turns a and b (or NULL) until a's channel has failed; false after `ms`. */
bool turn_until_failed(struct end *a, struct end *b, struct end_peer *p, int ms);

/** A socket such as ports have, without a name, and the name of an end's. */
int raw_socket(void);
socklen_t socket_name(struct sockaddr_un *name, const struct end *e);

uint64_t now_ms(void);
void pattern_fill(unsigned char *to, uint64_t number, size_t len);
bool pattern_is(const unsigned char *at, uint64_t number, size_t len);

/** A posted send of message number p->sent with `parts` iovecs; frees itself. Returns what post returned. */
int end_post(struct end *e, struct end_peer *p, size_t len, unsigned parts, uint8_t flags);

/** Runs fn in a child with one end of a socket pair; returns the child's pid, the other end in *fd. */
pid_t child_run(int (*fn)(int fd, void *arg), void *arg, int *fd);
/** Waits for its end: the exit status, or 128 + signal; 255: did not end within ten seconds and was killed. */
int child_wait(pid_t pid);
/** Addresses are told over the socket. False: nobody answered within ten seconds. */
bool tell(int fd, const void *what, size_t len);
bool hear(int fd, void *what, size_t len);

#endif
