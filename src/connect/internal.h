/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the connection layer share. channel.c: event channels, what is done when one is polled, deadlines;
 * listener.c: listeners; connection.c: a connection's way from its beginning to its end; agree.c: what the two ends
 * agree on, and the qp's part; calls.c: what ropewalk.h has of connections; message.c: the bytes.
 * Sockets are base/socket.h's.
 *
 * A connection, as a client that connects sees it, and as a listener's:
 *
 *   CONNECTING - REQUESTING - CONFIRMING -+               STRANGER - ASKED - ANSWERED -+
 *                                         +- (STREAMING) -+- ESTABLISHED - OVER        +- (STREAMING) - ...
 *   (rwk_convert) GREETING - CONFIRMING --+
 *
 * Each but STREAMING, ESTABLISHED and OVER has a deadline. Where it is wanted (`patient`), CONNECTING and STRANGER alone
 * have one: what is awaited of a program may take its time, as long as its kernel says that it is there.
 */
#ifndef RWK_CONNECT_INTERNAL_H
#define RWK_CONNECT_INTERNAL_H

#include "include/ropewalk.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/socket.h"
#include "channel_adapter/object.h"
#include "channel_adapter/stream.h"
#include "connect/message.h"

#define NEVER UINT64_MAX
#define MS    1000000ull /* ns */

/* What an epoll event is about: it points to this word of the object. */
enum source { TIMER, BELL, STREAMS, LISTENER, CONNECTION };

struct rwk_event_channel {
	uint32_t kind;
	struct rwk_adapter *adapter;
	int epoll, timer, bell;
	enum source timer_source, bell_source, streams_source;
	bool rung;         /* the bell: readable while there is something that no socket tells of */
	uint32_t children; /* listeners, and connections that the client has */
	rwk_time due;      /* no deadline is before it */
	struct rwk_list listeners, connections;
	struct rwk_list ready; /* connections that have an event */
	struct rwk_list lost;  /* connections whose qp has failed, or is none of theirs any more */
	struct rwk_list dead;  /* connections to be freed when nobody looks at them any more */
};

struct rwk_listener {
	uint32_t kind;
	enum source source;
	struct rwk_event_channel *channel;
	struct rwk_list all;       /* of the channel */
	struct rwk_list strangers; /* connections in STRANGER, the oldest first */
	struct rwk_list asking;    /* and in ASKED */
	int fd;
	uint16_t port;
	uint32_t stranger_count;
	uint32_t asked;
	rwk_time deaf_until; /* for lack of descriptors; NEVER: it is not deaf */
	rwk_time timeout;
	bool patient;
	uint32_t backlog;
	struct rwk_listener_counters counters;
};

enum state {
	CONNECTING, /* the kernel connects */
	REQUESTING, /* the answer to our REQUEST is awaited */
	STRANGER,   /* at a listener: the REQUEST is awaited */
	ASKED,      /* the client is to answer */
	ANSWERED,   /* READY is awaited */
	GREETING,   /* the peer's GREETING is awaited */
	CONFIRMING, /* what was to come has come; our READY or GREETING is still to go */
	STREAMING,
	ESTABLISHED, /* the socket is the stream's */
	OVER,
	DEAD,
};

struct rwk_connection {
	uint32_t kind;
	enum source source;
	enum state state;
	struct rwk_event_channel *channel;
	struct rwk_listener *listener; /* STRANGER, ASKED: where it came; NULL: that is closed */
	bool known;                    /* to the client, who destroys it */
	bool fresh;                    /* its qp was in RESET when it was taken */
	bool taking;                   /* its qp went beyond INIT */
	int fd;                        /* -1: none, or the stream's */
	unsigned watched;              /* epoll's events of fd; 0: it is not in the set */
	rwk_time due;
	struct rwk_list all;     /* of the channel */
	struct rwk_list visitor; /* of the listener */
	struct rwk_list ready, lost;
	struct rwk_ca_stream stream; /* with its qp */
	struct rwk_connection_attr attr;
	struct rwk_cm mine, theirs;
	uint8_t peer_ip[16];
	uint16_t peer_port;

	unsigned events; /* that are to be told: 1 << enum rwk_connection_event_type */
	unsigned answer; /* which of them carries the peer's private data */
	int status;      /* of the last of them; of a qp that failed: why */

	uint8_t private_data[RWK_PRIVATE_MAX]; /* ours */
	uint8_t in[RWK_CM_MAX], out[RWK_CM_MAX];
	size_t got, out_at, out_end;
};

/* channel.c */
/* 0 or negative errno: of a descriptor that is not watched yet (`before` 0); others need no memory. */
int rwk_cm_watch(struct rwk_event_channel *ch, int fd, void *source, unsigned events, unsigned before);
void rwk_cm_due(struct rwk_event_channel *ch, rwk_time due); /* somebody waits until then */
void rwk_cm_ring(struct rwk_event_channel *ch);
void rwk_cm_free_dead(struct rwk_event_channel *ch);

/* listener.c */
void rwk_cm_accept(struct rwk_listener *l);
void rwk_cm_listener_due(struct rwk_listener *l, rwk_time now);
void rwk_cm_leave_listener(struct rwk_connection *c); /* it is STRANGER or ASKED no more */
void rwk_cm_request(struct rwk_connection *c);        /* a STRANGER has said what it wants: `theirs` */

/* connection.c */
struct rwk_connection *rwk_cm_new(struct rwk_event_channel *ch, enum state state, int fd);
void rwk_cm_free(struct rwk_connection *c); /* what it has is gone */
void rwk_cm_set_due(struct rwk_connection *c, rwk_time due);
void rwk_cm_await(struct rwk_connection *c, bool patient, rwk_time timeout); /* a program is to say something */
int rwk_cm_watch_socket(struct rwk_connection *c, unsigned events); /* as rwk_cm_watch */
/* The message `mine`, or one without terms. The socket is watched already: or else nobody would hear the answer. */
void rwk_cm_send(struct rwk_connection *c, enum rwk_cm_type type);
void rwk_cm_event(struct rwk_connection *c);                       /* something may have happened at its socket */
void rwk_cm_expired(struct rwk_connection *c);
void rwk_cm_over(struct rwk_connection *c, enum rwk_connection_event_type type, int status);
void rwk_cm_tell(struct rwk_connection *c, enum rwk_connection_event_type type);
void rwk_cm_drop(struct rwk_connection *c); /* one that the client does not know */

/* agree.c: negative errno */
int rwk_cm_take_qp(struct rwk_connection *c, struct rwk_qp *qp, const struct rwk_connection_attr *attr);
void rwk_cm_give_back_qp(struct rwk_connection *c);
void rwk_cm_untake_qp(struct rwk_connection *c); /* one that is not beyond INIT is as it was */
int rwk_cm_make_terms(struct rwk_connection *c);
bool rwk_cm_agrees(const struct rwk_connection *c, const struct rwk_cm *accept);
int rwk_cm_check_source(const struct rwk_connection *c); /* our packets come from where the peer takes them from */
int rwk_cm_receive_packets(struct rwk_connection *c);    /* RTR */
int rwk_cm_enter(struct rwk_connection *c);              /* RDMA mode */

#endif
