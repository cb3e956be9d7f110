/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the examples on ropewalk.h have in common, and what each program on it begins with:
 *
 *   node   an adapter, a protection domain, a completion queue, and an event channel, where connections come and go
 *   peer   a program elsewhere: a connection, and the queue pair that is connected with one of its
 *   offer  memory that a program opens to its peer. What opens it, address and key, travels with the connection itself:
 *          in the private data of the answer
 *
 *       server                                        client
 *       rwk_listen
 *                                           <-------  rwk_connect
 *       event REQUEST: rwk_accept, offer    ------->
 *       event ESTABLISHED                             event ESTABLISHED, with the offer
 *                      ... requests, completions ...
 *       event DISCONNECTED                  <-------  rwk_connection_destroy, or the program has ended
 *
 * What goes wrong here ends the program with a sentence on stderr: these are examples.
 */
#ifndef RWK_EXAMPLES_NODE_H
#define RWK_EXAMPLES_NODE_H

#include <ropewalk.h>

#include <stdbool.h>

#define NODE_PORT     18515u /* TCP, if none is named */
#define NODE_PORT_MAX 65535u

struct node {
	struct rwk_adapter *adapter;
	struct rwk_pd *pd;
	struct rwk_cq *cq; /* of all queue pairs, for requests and receives */
	struct rwk_event_channel *channel;
};

struct offer {
	uint64_t address;
	uint32_t key;
};

struct peer {
	struct rwk_connection *connection;
	struct rwk_qp *qp;
	bool over;
	struct offer offer; /* the peer's; a client has it once it is connected */
};

/** With the UDP port that is well known if that is free, or with any. */
void node_open(struct node *n, bool well_known);
void node_close(struct node *n);

/** Connects to a program that listens at that TCP port, or will within so many seconds; blocks until that is done. */
void peer_connect(struct node *n, struct peer *p, const char *host, unsigned port, unsigned seconds);
/** Grants a REQUEST, with an offer or (NULL) without. False: who has asked is gone already. */
bool peer_accept(struct node *n, struct peer *p, struct rwk_connection *c, const struct offer *offer);
void peer_close(struct peer *p);

/** A completion: true. False: the connection to the peer, the only one of this node, is over. */
bool node_await(struct node *n, struct peer *p, struct rwk_wc *wc);
/** Waits for an event of that type, at most so many seconds; others end the program. */
struct rwk_connection_event node_await_event(struct node *n, enum rwk_connection_event_type type, unsigned seconds);

/** An argument that is a whole number from 1 to `most`; anything else ends the program (64). */
unsigned number_of(const char *what, const char *text, unsigned most);

/** Ends the program if `rc` is a negative errno. */
void demand(int rc, const char *what);

#endif
