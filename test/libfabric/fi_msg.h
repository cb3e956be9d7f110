/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connected endpoints: a side is a fabric of its own with all that one end of a connection needs, so that two sides in
 * one process share no more than two processes would. Every wait drives the other side too, and ends.
 */
#ifndef RWK_FI_MSG_TEST_H
#define RWK_FI_MSG_TEST_H

#include "fi_test.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/socket.h>

#define T_CM_DATA 256 /* bytes that a program may add to a request and to its answer */

/** How to open a side; zeroed: FI_SOCKADDR_IN, all capabilities, no wait objects, FI_CQ_FORMAT_TAGGED. */
struct t_msg_options {
	uint32_t addr_format;
	uint64_t caps, mode;
	enum fi_threading threading;
	enum fi_progress progress;
	enum fi_wait_obj wait; /* of both queues */
	enum fi_cq_format format;
	uint64_t bind_flags, tx_op_flags;
	size_t tx_size, rx_size;
	bool domain_eq; /* the event queue is bound to the domain, in place of the endpoints */
	bool cntrs; /* for all that is started, and for receives; in place of the queue */
};

struct t_side {
	struct t_msg_options o;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_pep *pep; /* that listens */
	struct fid_cq *cq;
	struct fid_cntr *tx_cntr, *rx_cntr;
	struct fid_ep *ep;
	struct fid_ep *srx; /* the test's: endpoints are bound to it, if it is there */
	struct fid_wait *set; /* the same: the queue is opened in it */
	struct sockaddr_storage name; /* of pep */
};

/** An event of a connection, with what the peer's program has added. */
struct t_event {
	struct fid *fid;
	struct fi_info *info;
	unsigned char data[T_CM_DATA];
	size_t len; /* of data */
};

/** Hints of FI_EP_MSG with all that programs may offer; to be freed with fi_freeinfo. */
struct fi_info *t_msg_hints(void);

void t_side_open(struct t_side *s, const struct t_msg_options *o);
/** At loopback, any port. */
void t_side_listen(struct t_side *s);
/** An endpoint with a queue (or counters), enabled, from the side's own info or (not NULL) from a FI_CONNREQ's. */
void t_side_endpoint(struct t_side *s, struct fi_info *info);
/** All that is open, the endpoint first. */
void t_side_close(struct t_side *s);

/** Drives a side and takes nothing. NULL: nothing. */
void t_side_drive(struct t_side *s);

/** The side's next event, which must be that one; `other` (or NULL) is driven. Fails after T_PATIENCE. */
struct t_event t_side_event(struct t_side *s, struct t_side *other, uint32_t number);
/** The same for an error, whose data is in `data`. */
struct fi_eq_err_entry t_side_error(struct t_side *s, struct t_side *other, unsigned char data[T_CM_DATA]);
/** Both are driven for a moment: `s` must have no event. */
void t_side_no_event(struct t_side *s, struct t_side *other);

/** `client` connects to `server`, which listens; both have an endpoint then, connected. */
void t_side_connect(struct t_side *client, struct t_side *server);
/** Both opened alike; the server listens. */
void t_sides_listen(struct t_side *client, struct t_side *server, const struct t_msg_options *o);
/** And connected. */
void t_sides_open(struct t_side *client, struct t_side *server, const struct t_msg_options *o);
void t_sides_close(struct t_side *client, struct t_side *server);

#endif
