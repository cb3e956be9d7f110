/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the TCP link share. tcp.c: the link, its table, its timers; meet.c: until a stream is open;
 * carry.c: an open stream; socket.c: what is wanted of the kernel; hello.c: the bytes of the meeting.
 */
#ifndef RWK_TCP_INTERNAL_H
#define RWK_TCP_INTERNAL_H

#include "base/clock.h"
#include "base/compiler.h"
#include "base/keyed.h"
#include "base/list.h"
#include "framing.h"
#include "links/tcp/hello.h"
#include "links/tcp/tcp.h"

#include <sys/socket.h>
#include <netinet/in.h>

#define NEVER      UINT64_MAX
#define MS         1000000ull /* ns */
#define OUT_BYTES  262144u
#define OUT_PIECES 64
#define OUT_COPIES 16384u
#define LOOK_EVERY (250 * MS)

enum state {
	/* Begun by this end, in its table. */
	WAITING,    /* no socket: connects when due */
	CONNECTING, /* until due */
	KNOCKED,    /* the challenge is awaited, for as long as the connection lives */
	PROVEN,     /* the verdict is awaited; the peer may take the stream as open from now on */
	/* Begun by somebody else: in the list of strangers, until due. */
	STRANGER,   /* the knock is awaited */
	CHALLENGED, /* the proof is awaited */
	HELD,       /* it has come; one of this end's to that process is PROVEN, and has its verdict first */
	/* In the table. */
	OPEN,
	/* In no table. */
	LEAVING, /* what is still to go goes, then the goodbye; what comes is dropped, until the peer ends it too */
	ENDED,   /* no socket; its word is still to be told */
	DEAD,    /* nothing but memory that an upper call may still look at; freed by the end of progress */
};

/* What waits to be sent on a stream; there is none while nothing does. */
struct outbox {
	struct outbox *next; /* of link.spare */
	int pieces;
	size_t in_pieces; /* bytes */
	size_t copied;    /* of `copy` */
	size_t at, end;   /* of `bytes`: what the socket had no room for */
	uint8_t *bytes;   /* OUT_BYTES; NULL until a socket first had no room */
	struct iovec piece[OUT_PIECES]; /* since the last flush, behind what is in `bytes` */
	uint8_t copy[OUT_COPIES];
};

struct stream {
	struct link *link;
	enum state state;
	int fd;
	struct rwk_link_address who;
	uint64_t nonce; /* who it is, once that is proven; else 0 */
	uint64_t meant; /* who was asked for; 0: whoever is there */
	int status;     /* the word to be told */
	int broke;      /* errno of a write: why a stream that cannot be written to any more ends */
	unsigned tries, laters;
	rwk_time due;          /* what this means depends on the state; NEVER */
	struct rwk_list all;   /* of the link */
	struct rwk_list timed; /* while due is not NEVER */
	struct rwk_list half;  /* STRANGER and CHALLENGED, the oldest first */
	struct rwk_list dirty; /* something was sent since the last flush */
	struct rwk_list word;  /* `status` is to be told */
	UT_hash_handle hh;
	struct rwk_list unheard; /* the epoll set has not taken its socket, or what it is to ask for */
	bool in_table;
	bool asks;        /* was open and broke; what is begun is to learn whether its process has ended */
	bool wrote;       /* something was sent, ever */
	bool say_goodbye; /* LEAVING: it has not been written yet */
	bool watched;     /* its socket is in the epoll set */
	bool wants_out;   /* EPOLLOUT is asked for: it connects, or had no room */
	int watch;        /* the caller's epoll set that `hung`, or else `fd`, is in; -1: none */
	int hung;         /* the socket of a stream that ended while it was watched; -1: it has not */

	struct challenge challenge;
	struct proof proof;
	uint8_t in[sizeof(struct proof)]; /* a message of the hello as far as it has come */
	size_t got;

	struct outbox *out;
	struct rwk_frame_part part;
};

struct link {
	struct rwk_link pub;
	struct rwk_tcp_attr attr;
	struct rwk_tcp_counts counts;
	uint16_t port;
	int epoll, listener, timer;
	bool deaf;   /* the listener is not asked for: no descriptor, or too many strangers, until listen_due */
	bool warned; /* of lacking descriptors */
	bool warned_unheard;
	unsigned half_count;
	rwk_time listen_due;
	rwk_time due; /* no stream's due, nor listen_due, nor the next look at those unheard, is before it */
	struct stream *table;
	struct stream *last; /* that send found last */
	struct rwk_list all, timed, half, dirty, words, unheard;
	struct rwk_list told; /* of the words, those that are told in this turn */
	struct outbox *spare; /* in which nothing waits: as many as there were streams at once with something to send */
	struct stream *telling; /* whose word is being told; else NULL */
	bool any_dead; /* of `all` */
	struct rwk_frame_reader in;
};

/* tcp.c */
struct stream *rwk_stream_new(struct link *l, enum state state);
struct stream *rwk_stream_find(struct link *l, const struct rwk_link_address *who);
int rwk_stream_enter(struct stream *s); /* into the table, where one that has begun here is already: 0; -ENOMEM */
void rwk_stream_leave_table(struct stream *s);
void rwk_stream_set_due(struct stream *s, rwk_time due);
void rwk_stream_tell(struct stream *s, int status); /* queues a word */
void rwk_stream_drop(struct stream *s);             /* without a word */
void rwk_stream_end(struct stream *s, int status);  /* with one */
void rwk_stream_part(struct stream *s);             /* in good order; for those that the peer may take as open */
void rwk_stream_watch(struct stream *s, bool out);  /* its socket, in the epoll set or new to it; or it is unheard */
void rwk_stream_close_socket(struct stream *s);
void rwk_stream_unwatch(struct stream *s); /* takes it out of the caller's epoll set */

/* meet.c: all may end the stream */
void rwk_meet_begin(struct stream *s); /* makes a socket and connects */
void rwk_meet_ask(struct stream *s);   /* open till now, broken: is its process still there? */
void rwk_meet_event(struct stream *s); /* something may have happened at its socket */
void rwk_meet_due(struct stream *s);
void rwk_meet_accept(struct link *l);

/* carry.c */
int rwk_carry_send(struct stream *s, const struct iovec *iov, int count);
void rwk_carry_flush(struct stream *s);
void rwk_carry_free(struct outbox *o); /* and those behind it; NULL: none */
int rwk_carry_event(struct stream *s, int budget); /* returns how many packets were delivered */
int rwk_carry_deliver(struct link *l, int budget); /* those read already */
bool rwk_carry_all_sent(const struct stream *s);   /* the peer's kernel has all that send has taken */
void rwk_carry_leaving(struct stream *s);          /* writes what is left, drops what comes */
void rwk_carry_due(struct stream *s);              /* looks whether the peer's kernel still answers */

/* socket.c: negative errno, or what they say */
int rwk_tcp_listen(struct link *l);
int rwk_tcp_accept(struct link *l, struct rwk_link_address *from); /* descriptor; the port in `from` is 0 */
int rwk_tcp_connect(const struct link *l, const struct rwk_link_address *to); /* descriptor; connects by and by */
int rwk_tcp_connected(int fd); /* 0; -EAGAIN not yet; -ECONNREFUSED, ... */
void rwk_tcp_keep_alive(int fd);
bool rwk_tcp_silent(int fd); /* nobody answers what was sent */
int rwk_tcp_broken(int err); /* errno of an open stream's socket to its word */

#endif
