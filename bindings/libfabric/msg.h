/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connected endpoints: FI_EP_MSG. Each is a qp of the device's adapter (device.h), connected by the project's own
 * connection layer (src/connect/CONNECT.md); its packets go by the connection's TCP stream, which loses nothing and
 * tells of the end of the peer's process. So silence is not death here either: a peer that computes is waited for.
 *
 *   endpoint  fi_endpoint .. fi_close; it has a qp from fi_enable, fi_connect or fi_accept on
 *   passive   an endpoint that listens; it belongs to the fabric
 *   request   what somebody who connects has said: the handle in the info of FI_CONNREQ. It belongs to the program,
 *             until it is rejected or closed (fi_close), or an endpoint that was opened with it has it; at last to the
 *             fabric. Its connection waits for the program for as long as the peer's kernel says that he is there; of
 *             who goes before the program has seen the event, that is taken back; who comes while a passive endpoint's
 *             backlog of them waits is hung up on
 *   op        an operation from its posting to its completion; the id of its request
 *
 *   IDLE - fi_connect, fi_accept - CONNECTING - FI_CONNECTED - CONNECTED - FI_SHUTDOWN, fi_shutdown - OVER
 *                                       `------- an error event ------------------------------------'
 *
 * An endpoint connects once in its life, so it has two events at most: of the beginning, and of the end or an error in
 * place of both. Both are made before it connects: whatever is lacking later, the program hears of it. With OVER what
 * was posted comes back as cancelled. All is under the device's lock.
 *
 * msg_ep.c opens, binds, enables and closes endpoints; msg_cm.c connects them; msg_passive.c listens; msg_event.c turns
 * the connections' events into those of event queues; msg_srx.c has shared receives; msg_post.c posts, msg_complete.c
 * takes back what has completed; msg_message.c, msg_rma.c and msg_atomic.c are the calls that move data.
 */
#ifndef RWK_FI_MSG_H
#define RWK_FI_MSG_H

#include "bindings/libfabric/bound.h"
#include "bindings/libfabric/device.h"
#include "bindings/libfabric/disabled.h"
#include "bindings/libfabric/shared.h"
#include "base/keyed.h"
#include "transport.h"

#include <rdma/fi_endpoint.h>
#include <sys/uio.h>

#define RWK_FI_MSG_INJECT 256u /* bytes that inject takes; each send under way has so much memory for it */
#define RWK_FI_MSG_IOV    8u   /* pieces */
_Static_assert(RWK_FI_MSG_IOV <= RWK_SGE_MAX && RWK_FI_MSG_INJECT <= RWK_INLINE_MAX, "the adapter takes them");

enum rwk_fi_msg_state { RWK_FI_IDLE, RWK_FI_CONNECTING, RWK_FI_CONNECTED, RWK_FI_OVER };

struct rwk_fi_msg_ep;

struct rwk_fi_msg_op {
	struct rwk_list link; /* free ones */
	struct rwk_fi_msg_ep *ep;
	struct rwk_fi_msg_srx *srx; /* whose it is in place of an endpoint's; NULL */
	void *context;
	void *buffer;    /* a receive's */
	uint64_t before; /* an atomic that fetches nothing: what stood there; nobody looks */
	uint32_t flags;  /* RWK_F_*, RWK_FI_* */
};

struct rwk_fi_msg_request {
	struct fid fid;
	struct rwk_list link; /* rwk_fi_device.requests */
	struct rwk_fi_device *device;
	struct rwk_fi_msg_passive *pep;    /* where it came; NULL: that is closed */
	struct rwk_connection *connection; /* NULL: the peer has gone */
	bool taken;                        /* by an endpoint */
	struct rwk_address peer;
};

struct rwk_fi_msg_ep {
	struct fid_ep fid;
	struct rwk_fi_domain *domain;
	struct rwk_fi_device *device;
	struct rwk_fi_mutex *lock;
	struct rwk_qp *qp; /* NULL until enabled */
	uint32_t key;      /* of all local memory */
	enum rwk_fi_msg_state state;
	bool closing;           /* nobody wants to hear of what completes */
	bool takes_data;        /* FI_RX_CQ_DATA: the program knows that a write with data takes a receive */
	struct rwk_list unused; /* ops */
	struct rwk_fi_msg_op *ops;
	size_t owed; /* injected messages under way: nobody waits for them */
	struct rwk_fi_side side[RWK_FI_SIDES];
	struct rwk_fi_cntr *cntr[RWK_FI_COUNTED];
	struct rwk_fi_eq *eq;
	struct rwk_fi_stx *stx;     /* or NULL */
	struct rwk_fi_msg_srx *srx; /* where its receives are; NULL: in its qp */
	uint32_t qpn;               /* its qp's, for: */
	UT_hash_handle of_srx;
	bool shares_rx, shares_tx; /* opened for such contexts: it is not enabled without */
	struct rwk_connection *connection;
	struct rwk_fi_event *begins, *ends; /* to be put; NULL: not made yet, or put */
	struct rwk_fi_msg_request *request; /* that it was opened with, and has not accepted */
	struct rwk_address source, peer;    /* partial; `peer` zeroed while it is not known */
	int reserved;                       /* holds source's port for it; -1: it has none of its own */
	uint64_t caps;                      /* of info, tx_attr and rx_attr together */
	uint64_t op_flags[RWK_FI_SIDES];
	size_t tx_size, rx_size;
	atomic_uint aliases;
};

/** A shared receive context. */
struct rwk_fi_msg_srx {
	struct fid_ep fid;
	struct rwk_fi_domain *domain;
	struct rwk_fi_mutex *lock;
	struct rwk_srq *srq;
	size_t size;               /* receives that may be posted */
	uint32_t recv_flags;       /* of calls that have no flags of their own: RWK_FI_ASKED or none */
	struct rwk_list unused;    /* ops */
	struct rwk_fi_msg_op *ops;
	struct rwk_fi_msg_ep *eps; /* those that have it and a qp, by qpn */
	atomic_uint refs;          /* endpoints bound */
};

struct rwk_fi_msg_passive {
	struct fid_pep fid;
	struct rwk_fi_fabric *fabric;
	struct rwk_fi_device *device;
	struct rwk_fi_eq *eq;
	struct rwk_listener *listener; /* NULL: it does not listen yet */
	struct rwk_list link;          /* rwk_fi_device.passives */
	struct fi_info *info;          /* what it was opened with, for those of requests */
	struct rwk_address source;
	int reserved;     /* holds source's port, which the program was told before it listens; -1: nobody asked */
	uint32_t backlog; /* 0: the connection layer's */
};

static inline struct rwk_fi_msg_ep *rwk_fi_msg_ep_of(struct fid_ep *fid)
{
	return rwk_container_of(fid, struct rwk_fi_msg_ep, fid);
}

/* msg_ep.c */
int rwk_fi_msg_enable(struct rwk_fi_msg_ep *ep);
/** It reports to that queue from now on. 0 or negative errno. */
int rwk_fi_msg_bind_eq(struct rwk_fi_msg_ep *ep, struct rwk_fi_eq *eq, uint64_t flags);
/** fi_getopt of endpoints and passive ones: FI_OPT_CM_DATA_SIZE. fi_setopt: there is nothing to set. */
int rwk_fi_msg_getopt(fid_t fid, int level, int name, void *value, size_t *len);
int rwk_fi_msg_setopt(fid_t fid, int level, int name, const void *value, size_t len);

/* msg_cm.c */
/** It connects from that address; the port, if it has one, is its own from now on: 0 or negative errno. */
int rwk_fi_msg_assign(struct rwk_fi_msg_ep *ep, const struct rwk_address *name);
extern const struct fi_ops_cm rwk_fi_msg_cm_ops;
/** So much of what a program adds to a request or an answer goes along: the rest is cut off, as fi_cm(3) says. */
uint32_t rwk_fi_msg_data_length(const char *call, size_t len);
/** So long, in ms, may a peer take to answer. */
uint32_t rwk_fi_msg_patience(void);
/** Ends the connection, if there is one; what was posted is cancelled. What was injected has a moment to go out. */
void rwk_fi_msg_disconnect(struct rwk_fi_msg_ep *ep);

/* msg_srx.c */
/** As fi_ep_bind. */
int rwk_fi_msg_bind_srx(struct rwk_fi_msg_ep *ep, struct fid *srx, uint64_t flags);
/** The endpoint, which has one bound, has got its qp: 0; -FI_ENOMEM. And is closed, its qp gone, if there was one.
 * Under the lock. */
int rwk_fi_msg_srx_enter(struct rwk_fi_msg_ep *ep);
void rwk_fi_msg_srx_leave(struct rwk_fi_msg_ep *ep);
/** Whose qp has that number. */
struct rwk_fi_msg_ep *rwk_fi_msg_srx_find(struct rwk_fi_msg_srx *srx, uint32_t qpn);

/* msg_passive.c */
/** Drops a request, whose peer is hung up on if he still waits. */
void rwk_fi_msg_drop_request(struct rwk_fi_msg_request *r);
/** Who asked has gone: who accepts or rejects will see, and a program that has not seen the event never hears of it. */
void rwk_fi_msg_withdraw(struct rwk_fi_msg_request *r);
/** All of them: before the device is closed. */
void rwk_fi_msg_drop_requests(struct rwk_fi_device *device);
/**
 * An endpoint opened with a passive one that does not listen: it connects from there. 0; -FI_EINVAL;
 * no such address.
 */
int rwk_fi_msg_inherit(struct rwk_fi_msg_ep *ep, fid_t passive);
/**
 * Holds the port of the name (0: one of the kernel's choice, which is the name's then) for who listens there or
 * connects from there, in place of what was reserved: 0; negative errno, nothing being changed.
 */
int rwk_fi_msg_reserve(uint32_t format, struct rwk_address *name, int *reserved);
/** Gives up what is reserved, if anything is. */
void rwk_fi_msg_release(int *reserved);
/** Somebody connects: the program is told. */
void rwk_fi_msg_ask(struct rwk_fi_msg_passive *pep, const struct rwk_connection_event *e);

/* msg_event.c */
/** Memory for all events that a connection may have: 0, also once more; -FI_ENOMEM. */
int rwk_fi_msg_make_events(struct rwk_fi_msg_ep *ep);
/** Its connection was there, and is no more. */
void rwk_fi_msg_put_shutdown(struct rwk_fi_msg_ep *ep);

/* msg_event.c, msg_complete.c: upcalls of device.c */
void rwk_fi_msg_event(struct rwk_fi_device *device, const struct rwk_connection_event *e);
void rwk_fi_msg_complete(const struct rwk_wc *wc);

/* msg_post.c */
/** The pieces, of memory with that key, as the adapter wants them: their number; -FI_EINVAL: too many. */
int rwk_fi_msg_pieces(
	uint32_t key, const struct iovec *iov, size_t count, struct rwk_sge sge[RWK_FI_MSG_IOV]);
/**
 * Posts a request, whose id is set here. With `fetch` NULL an atomic's old value goes nowhere. 0; -FI_ENOTCONN: it is
 * not connected (any more); -FI_EAGAIN; -FI_EOPNOTSUPP: `needs` are not all among the endpoint's capabilities; as
 * rwk_qp_post.
 */
ssize_t rwk_fi_msg_post(struct rwk_fi_msg_ep *ep, uint64_t needs, struct rwk_request *r, uint32_t flags, void *context);
/** Posts a receive: 0; -FI_ENOTCONN: it is connected no more; -FI_EAGAIN. */
ssize_t rwk_fi_msg_post_receive(
	struct rwk_fi_msg_ep *ep, const struct iovec *iov, size_t count, uint32_t flags, void *context);
/** What flags of a call with flags say of a request: 0, *request and *flags set; -FI_EBADFLAGS, logged. */
int rwk_fi_msg_flags(const struct rwk_fi_msg_ep *ep, const char *call, uint64_t asked, uint64_t known,
	unsigned *request, uint32_t *flags);

/* Tables of calls of an enabled endpoint; RMA and atomics look for themselves. */
extern const struct fi_ops_msg rwk_fi_msg_message_ops;
extern const struct fi_ops_msg rwk_fi_msg_message_send_ops; /* with a shared receive context */
extern const struct fi_ops_rma rwk_fi_msg_rma_ops;
extern const struct fi_ops_atomic rwk_fi_msg_atomic_ops;

#endif
