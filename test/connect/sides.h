/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ends of channel_adapter/ends.h with an event channel each: near, the client, connects to far, the server.
 *
 *     client = near 127.0.0.1  ---- TCP on loopback: handshake, streams ----  server = far 127.0.0.2, listens
 *                              ---- packets: UDP on loopback, or the sim ---
 */
#ifndef RWK_TEST_CONNECT_SIDES_H
#define RWK_TEST_CONNECT_SIDES_H

#include "channel_adapter/world.h"

#define EVENTS_MAX 8

struct side {
	struct end *end;
	struct rwk_event_channel *channel;
	struct rwk_connection *c;
	struct rwk_connection_event events[EVENTS_MAX]; /* taken and not looked at yet */
	unsigned first, count;
};

extern struct side client, server;
extern struct rwk_listener *listener; /* server's, once there is one */

/** One of them. */
void sides_open_one(struct side *s, struct end *e, uint8_t host, enum rwk_qp_type type);
void sides_close_one(struct side *s);
/** Both, their qps in RESET, with event channels. */
void sides_open(enum rwk_qp_type type);
/** Connections that there are still are destroyed, then all else: nothing may be left over. */
void sides_close(void);

/** What the tests ask for, with `private_data` (text; NULL: none). */
struct rwk_connection_attr sides_attr(enum rwk_connection_transport transport, const char *private_data);

/** Polls both; events are kept. */
void sides_poll(void);
/** Polls both until there is an event at s: that one, which must be of the type. Fails after 20 s. */
struct rwk_connection_event sides_await(struct side *s, enum rwk_connection_event_type type);
/** Polls both for a while: no event must come to s. */
void sides_no_event(struct side *s);
uint64_t sides_ms(void); /* now */

void sides_listen(const struct rwk_listen_attr *attr);
/** client asks, server.c is what the server was asked for; returns the server's event. */
struct rwk_connection_event sides_ask(const struct rwk_connection_attr *attr);
/** The whole: asked, accepted, established (or streaming) at both. */
void sides_connect(const struct rwk_connection_attr *attr);

/** A Send each way, and an RDMA Write from the client; with RC a Read too. Both qps are in RTS. */
void sides_exchange(void);
enum rwk_qps sides_state(const struct side *s);
/** Both in RTS, each with the other's number. */
void sides_in_rdma_mode(void);

/** Two ends of a TCP connection on loopback; its segments have at most so many bytes, options included. */
void sides_tcp(int fd[2]);
void sides_tcp_segments(int fd[2], int most);
/** A socket connected to the listener. */
int sides_bare(void);

#endif
