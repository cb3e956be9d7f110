/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the examples on ropewalk.h have in common, and what each program on it begins with:
 *
 *   node   an adapter, a protection domain and a completion queue
 *   peer   a program elsewhere: a queue pair that is connected with one of its, and the TCP connection over which the
 *          two have told each other how to do that
 *
 * The steps of a connection are done one by one here, where they can be read: what each end must tell the other, and
 * the states of a queue pair. rwk_listen, rwk_connect and rwk_accept do all of it for a program that need not see them.
 *
 * What goes wrong here ends the program with a sentence on stderr: these are examples.
 */
#ifndef RWK_EXAMPLES_NODE_H
#define RWK_EXAMPLES_NODE_H

#include <ropewalk.h>

#include "tools/meet.h"

#include <stdbool.h>

struct node {
	struct rwk_adapter *adapter;
	struct rwk_pd *pd;
	struct rwk_cq *cq; /* of all queue pairs, for requests and receives */
};

struct peer {
	int talk; /* TCP: its place came this way; that it ends shows that the program has */
	struct rwk_qp *qp;
	struct rwk_place place; /* where its queue pair is, and the memory that it offers */
};

/** With the UDP port that is well known if that is free, or with any. */
void node_open(struct node *n, bool well_known);
void node_close(struct node *n);

/**
 * Makes a queue pair and connects it with the one that the program at the other end of `talk` makes by the same call.
 * `mr`, at `address`, is what we offer: the peer finds key and address in its `place`; NULL: nothing. Blocks until the
 * peer has done the same.
 */
void peer_connect(struct node *n, struct peer *p, int talk, const struct rwk_mr *mr, const void *address);
/** Whether the other program has ended. */
bool peer_gone(const struct peer *p);
void peer_close(struct peer *p);

/** Polls until there is a completion: true; false: the peer's program has ended. */
bool node_await(struct node *n, const struct peer *p, struct rwk_wc *wc);

/** Ends the program if `rc` is a negative errno. */
void demand(int rc, const char *what);

#endif
