/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel adapter in software: queue pairs with the semantics of verbs, on any machine. It speaks RoCEv2 as it is
 * written, so that the peer may be another adapter of this kind, the kernel's soft RoCE, or hardware.
 *
 *   adapter  a logical adapter: an address on the network, and all objects below, which belong to it (S4-1)
 *   pd       protection domain: queue pairs reach the memory of their own domain alone
 *   mr       memory region: memory that is registered with a pd, and the key that opens it
 *   mw       memory window: a key to a part of an mr, made and revoked while work goes on (S4-4, S0-13)
 *   cq       completion queue: what has become of requests and receives; and the event dispatcher on top of it, which
 *            others call EVD: to sleep until something has (S4-10)
 *   srq      shared receive queue: receives for several qps
 *   qp       queue pair: a queue of requests to send, a queue of receives, and a connection to one qp elsewhere
 *   domain   SRC domain: the srqs that a peer reaches by one connection, and the qps that reach them
 *
 * SRC, the scalable reliable connection, is RC but for this: a request names the srq at the peer that it is for, by
 * number, and that srq takes the place of what else belongs to the peer's qp. A Send takes a receive of it and
 * completes into its cq; Writes, Reads and atomics reach the memory of its pd. So one connection serves many receivers
 * (S1-1).
 *
 * The two ends of a connection tell each other address, QP number and first PSN, and each puts the other's into its qp:
 * by means of their own (rwk_qp_modify), or by the calls under "connections", which do both (rwk_listen, rwk_connect).
 *
 * Functions that return int return 0 or a negative errno; outputs are set only on success. Nothing blocks: work is done
 * by the calls, above all by rwk_cq_poll, and by no thread of ours.
 *
 * What is created is destroyed by its creator, children before parents: a parent that still has some stays, and says
 * -EBUSY. In debug builds (--enable-debug) a call that is given an object that was destroyed ends the program and says
 * which.
 *
 * Threads: an adapter and all that belongs to it is for one thread at a time; a lock of the client's for each adapter
 * is enough. Adapters have nothing to do with each other. Without the lock, while the object exists, any thread may
 *
 *   adapter  ask for its port, sleep on the descriptor of its events
 *   pd       nothing
 *   mr       ask for its key
 *   mw       nothing: its key changes
 *   cq       sleep on its descriptor
 *   srq      ask for its number
 *   qp       ask for its number
 *   domain   nothing
 *
 * and of the objects under "connections"
 *
 *   event channel  ask for its descriptor, and sleep on it
 *   listener       ask for its port
 *   connection     nothing: its descriptor comes and goes
 *
 * A thread that may be cancelled (pthread_cancel) holds that off around the calls: some make system calls at which it
 * would end with its adapter half changed.
 *
 * What was made before a fork is the parent's alone: the child neither uses nor destroys it, or peers would hear of it.
 */
#ifndef ROPEWALK_H
#define ROPEWALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RWK_API __attribute__((visibility("default")))

#define RWK_PORT       4791u  /* where others expect RoCEv2 */
#define RWK_SGE_MAX    10u    /* pieces of a request or a receive */
#define RWK_QPS_MAX    1024u  /* of an adapter */
#define RWK_MRS_MAX    1024u  /* of an adapter, bound windows among them */
#define RWK_SRQS_MAX   1024u  /* of an adapter */
#define RWK_QUEUE_MAX  65536u /* entries of a queue of a qp, of an srq, or of a cq */
#define RWK_INLINE_MAX 1024u  /* bytes of a request that are copied when it is posted */

struct rwk_adapter;
struct rwk_pd;
struct rwk_mr;
struct rwk_mw;
struct rwk_cq;
struct rwk_src_domain;
struct rwk_srq;
struct rwk_qp;

/* ---- adapter ---- */

/** IPs are 16 bytes: IPv6, or IPv4 mapped into it (::ffff:1.2.3.4). */
struct rwk_adapter_attr {
	uint8_t ip[16]; /* the address to use; zero: any of this host's, by the route to each peer */
	uint16_t port;  /* UDP; 0: RWK_PORT. Two adapters of one host and address have different ones. */
	bool any_port;  /* with port 0: the kernel's choice, for who tells his peers, or goes by streams alone */
};

/** Packets that were dropped before they reached a qp, by reason; and what was seen beside. */
struct rwk_adapter_counters {
	uint64_t packets_in, packets_out; /* all of them */
	uint64_t malformed;               /* not a packet, or of an operation that does not exist */
	uint64_t bad_icrc;
	uint64_t wrong_pkey;    /* of another partition */
	uint64_t unknown_qp;    /* to a number that no qp has */
	uint64_t wrong_service; /* of another service than the qp's */
	uint64_t stranger;      /* from another address than the qp's peer, or (one_port) from another port (S0-3) */
	uint64_t id_solved;     /* IPv4 packets whose ICRC is right for one identification other than 0: no drop, but a
				   check of 16 bits in place of 32 (the socket does not show the identification) */
};

/**
 * Opens an adapter with an UDP socket of its own; needs no privilege. 0 and *a set; -EADDRINUSE: the port is taken;
 * -EADDRNOTAVAIL: no such address here; -ENOMEM, -EMFILE. The caller owns it until rwk_adapter_close.
 */
RWK_API int rwk_adapter_open(const struct rwk_adapter_attr *attr, struct rwk_adapter **a);
/**
 * Closes it: 0; -EBUSY: it has pds, cqs, SRC domains or event channels. What has been sent on a stream, and that a
 * connection has ended, is waited for until the peer's kernel has it: two seconds from that end at most.
 */
RWK_API int rwk_adapter_close(struct rwk_adapter *a);
/** The UDP port, in the host's byte order. */
RWK_API uint16_t rwk_adapter_port(const struct rwk_adapter *a);
/**
 * The address of this host that a peer at `peer` sees: 0 and ip set; -ENETUNREACH and the like: there is no way. Of an
 * adapter of all addresses it is the kernel's choice, and stays the same as long as a qp is connected with that host,
 * or is being connected with it by rwk_connect and UDP.
 */
RWK_API int rwk_adapter_source(struct rwk_adapter *a, const uint8_t peer[16], uint8_t ip[16]);
/**
 * The largest PMTU on the way to a peer, in bytes of payload: 256, 512, 1024, 2048 or 4096; 0: not even the smallest,
 * or there is no way.
 */
RWK_API uint32_t rwk_adapter_pmtu(struct rwk_adapter *a, const uint8_t peer[16]);
/** The counters as they are now, from the opening of the adapter on. */
RWK_API void rwk_adapter_get_counters(const struct rwk_adapter *a, struct rwk_adapter_counters *c);

/*
 * Asynchronous events: what happens to an object without a request of its own that could complete. They wait in the
 * objects themselves: so none is lost, the same event of the same object is there once until it is taken, and those of
 * an object that is destroyed (or reset) are gone with it. A cq is never overrun: what may complete has an entry. What
 * happens to connections comes by another way, the event channel (rwk_event_channel_poll).
 */

enum rwk_async_event_type {
	RWK_ASYNC_QP_ERROR,        /* the qp went to ERR by itself; `error` says why */
	RWK_ASYNC_QP_LAST_RECEIVE, /* a qp with an srq is in ERR: what it had taken of the srq has completed, and it
				      takes no more */
	RWK_ASYNC_QP_LOST,         /* UC: so many messages of the peer's were lost (S0-11), as far as the numbers of
				      packets tell: `count` */
	RWK_ASYNC_SRQ_LIMIT,       /* the srq has fewer receives than its limit, which is 0 again */
};

struct rwk_async_event {
	enum rwk_async_event_type type;
	int error;
	uint64_t count;
	struct rwk_qp *qp;   /* whose; NULL: an srq's */
	struct rwk_srq *srq; /* whose; NULL: a qp's */
};

/** Does the adapter's work as rwk_cq_poll, then takes at most `max` events. Returns their number. Never waits. */
RWK_API int rwk_async_event_poll(struct rwk_adapter *a, struct rwk_async_event *events, int max);
/** To sleep until there are events: as rwk_cq_arm for completions. 0: it is armed; -EAGAIN: poll first. */
RWK_API int rwk_async_event_arm(struct rwk_adapter *a);
/** The descriptor to sleep with, as rwk_cq_fd. A negative errno: -EMFILE, -ENOMEM. */
RWK_API int rwk_async_event_fd(struct rwk_adapter *a);

/* ---- protection domain ---- */

/** 0 and *pd set; -ENOMEM. */
RWK_API int rwk_pd_create(struct rwk_adapter *a, struct rwk_pd **pd);
/** 0; -EBUSY: it has mrs, mws, srqs or qps. */
RWK_API int rwk_pd_destroy(struct rwk_pd *pd);

/* ---- memory region ---- */

enum rwk_access {
	RWK_ACCESS_READ = 1 << 0,        /* the peer may read it by RDMA */
	RWK_ACCESS_WRITE = 1 << 1,       /* and write to it */
	RWK_ACCESS_ATOMIC = 1 << 2,      /* and do atomics on it */
	RWK_ACCESS_LOCAL_WRITE = 1 << 3, /* receives, RDMA Reads and atomics of our own may put bytes there */
};

/**
 * Registers memory (S4-4): `length` bytes from `address` on, which the peer names by the same address. The memory stays
 * the caller's and must exist until rwk_mr_deregister. 0 and *mr set; -EINVAL: it wraps, or an access that does not
 * exist; -ENOSPC: RWK_MRS_MAX; -ENOMEM.
 */
RWK_API int rwk_mr_register(struct rwk_pd *pd, void *address, size_t length, unsigned access, struct rwk_mr **mr);
/** From now on nobody reaches it. What is posted with it and not completed must not be. 0; -EBUSY: windows are bound.
 */
RWK_API int rwk_mr_deregister(struct rwk_mr *mr);
/** The key: drawn at random, the same for our own requests and for the peer's. */
RWK_API uint32_t rwk_mr_key(const struct rwk_mr *mr);

/* ---- memory window ---- */

enum rwk_mw_type {
	RWK_MW_1, /* bound by rwk_mw_bind, and by the next one elsewhere: whoever reaches its pd reaches it */
	RWK_MW_2, /* bound by a request of a qp (RWK_REQUEST_BIND), whose peer alone reaches it, until a request of
		     either end invalidates it (RWK_REQUEST_LOCAL_INVALIDATE, RWK_REQUEST_WITH_INVALIDATE) */
};

/** The part of an mr that a window is to open to the peer, and for what. */
struct rwk_bind {
	struct rwk_mr *mr; /* of the window's pd */
	void *address;
	size_t length;   /* bytes, all of them in the mr */
	unsigned access; /* of READ, WRITE, ATOMIC, and of those that the mr has */
};

/** A window that opens nothing yet. 0 and *mw set; -EINVAL: no such type; -ENOMEM. */
RWK_API int rwk_mw_create(struct rwk_pd *pd, enum rwk_mw_type type, struct rwk_mw **mw);
/** From now on nobody reaches what it was bound to. */
RWK_API void rwk_mw_destroy(struct rwk_mw *mw);
/**
 * The key that the binding drew at random; it is for the peer, our own requests do not take it. It is there as soon as
 * the binding is posted, so that a Send behind it can tell the peer. Of a window that is not bound: one that opens
 * nothing.
 */
RWK_API uint32_t rwk_mw_key(const struct rwk_mw *mw);
/**
 * Binds a window of type 1, as a request of that qp with that id (RWK_WC_BIND) and those flags (RWK_REQUEST_UNSIGNALLED
 * or 0): from the next request on it has a new key, the one before opens nothing. A length of 0 leaves it unbound. 0;
 * else as rwk_qp_post says to RWK_REQUEST_BIND.
 */
RWK_API int rwk_mw_bind(struct rwk_qp *qp, struct rwk_mw *mw, uint64_t id, unsigned flags, const struct rwk_bind *bind);

/** A piece of registered memory: all of it in one mr of the qp's or the srq's pd. */
struct rwk_sge {
	void *address;
	size_t length; /* bytes */
	uint32_t key;  /* of the mr */
};

struct rwk_receive {
	uint64_t id;               /* the client's */
	const struct rwk_sge *sge; /* where a Send goes (S3-1), LOCAL_WRITE */
	uint32_t sge_count;        /* 0 to RWK_SGE_MAX */
};

/* ---- completion queue ---- */

enum rwk_wc_type {
	RWK_WC_SEND,
	RWK_WC_WRITE,
	RWK_WC_READ,
	RWK_WC_COMPARE_SWAP,
	RWK_WC_FETCH_ADD,
	RWK_WC_BIND,
	RWK_WC_LOCAL_INVALIDATE,
	RWK_WC_RECEIVE,       /* a Send has come */
	RWK_WC_RECEIVE_WRITE, /* a Write with immediate has come; the receive's memory is as it was */
};

/** What has become of a request or a receive, which is the client's again. */
struct rwk_wc {
	uint64_t id;      /* the client's, from the request */
	uint32_t qpn;     /* whose; of a receive of an srq: through which it came */
	uint32_t srqn;    /* receives of an srq with a number (SRC): that number; else 0 */
	uint8_t type;     /* enum rwk_wc_type; of a receive that failed RWK_WC_RECEIVE */
	bool has_imm;     /* receives: `imm` is set */
	bool solicited;   /* receives: the peer asked for an event */
	bool invalidated; /* receives: the peer's Send has invalidated the window whose key is `imm` */
	int status; /* 0; -ECANCELED: the qp went to the error state before; requests: -EACCES, -EINVAL, -EIO, -EAGAIN:
		       the peer's NAK (access, SRC: or an srq that is not reached through the peer's qp; invalid
		       request; its own error; no receive posted there); -ETIMEDOUT: the peer does not answer; receives:
		       -EMSGSIZE: what came was longer */
	uint32_t imm;
	size_t length; /* bytes: receives what has come, requests what they moved; valid if status is 0 */
};

/** 0 and *cq set; -EINVAL: `entries` is not 1 to RWK_QUEUE_MAX; -ENOMEM. */
RWK_API int rwk_cq_create(struct rwk_adapter *a, uint32_t entries, struct rwk_cq **cq);
/** 0; -EBUSY: it has qps or srqs. */
RWK_API int rwk_cq_destroy(struct rwk_cq *cq);
/**
 * Does what there is to do for the whole adapter, then takes at most `max` completions into `wc`. Those of one qp's
 * requests come in the order in which they were posted, those of its receives too; receives of an srq are taken in that
 * order, and complete as the messages end that took them. Returns their number. Never waits.
 */
RWK_API int rwk_cq_poll(struct rwk_cq *cq, struct rwk_wc *wc, int max);

/*
 * To sleep (S4-10). The adapter works within calls alone: so whoever sleeps is woken when there is work to do, too,
 * even if it turns out to be for somebody else, and calls then. Arm, sleep if that says 0, and begin again:
 *
 *	while (!(n = rwk_cq_poll(cq, wc, max)))
 *		if (!rwk_cq_arm(cq, RWK_CQ_NEXT))
 *			poll(&(struct pollfd){.fd = rwk_cq_fd(cq), .events = POLLIN}, 1, timeout);
 *
 * No wake-up is lost: what comes after rwk_cq_arm has said 0 makes the descriptor readable, whether it comes before the
 * sleep or in it, and by whoever's call. It is no harm to poll once more between the two.
 *
 * Work to do wakes eight of an adapter's descriptors at most: of those that are armed now the eight that were armed
 * last. The others are woken by the calls of these. So no wake-up is lost as long as somebody sleeps on one of the
 * eight; who waits in rwk_cq_wait has armed last. To be armed and not slept on any more (after a time-out, say) harms
 * the others only if all eight are: a cq that was in rwk_cq_wait, with a time of 0 too, is not armed any more. More
 * than eight are not possible where they are in a set of the program's: Linux allows 50 ways from a socket to a set of
 * sets, and four sets on each. For the same reason such a set may be in one other, but that in no third.
 */

enum rwk_cq_event {
	RWK_CQ_NEXT,      /* any completion */
	RWK_CQ_SOLICITED, /* one that the peer asked an event for (RWK_REQUEST_SOLICITED), or that failed */
};

/**
 * Does the adapter's work, then arms the cq once for a completion of that kind. When one has come, or there is work to
 * do that may bring one, the descriptor is readable, until the next rwk_cq_arm; when one has come the callback is
 * called. Whoever sleeps polls, arms, sleeps if that has said 0, and begins again: what comes behind the arming makes
 * the descriptor readable, whether it comes before the sleep or in it. Never waits. 0: it is armed; -EAGAIN: there is
 * such a completion already, or work to do: poll, it is not armed; -EINVAL: no such kind; -ECANCELED: a callback has
 * destroyed it.
 */
RWK_API int rwk_cq_arm(struct rwk_cq *cq, enum rwk_cq_event what);
/**
 * The descriptor to sleep with, in poll and the like: the cq's own, and the same each time; nobody reads it. A negative
 * errno: -EMFILE, -ENOMEM. Any thread may sleep on it while others use the adapter.
 */
RWK_API int rwk_cq_fd(struct rwk_cq *cq);
/**
 * Sets the callback, NULL for none: called once for each time that the cq was armed and its completion has come, from
 * within rwk_cq_poll or rwk_cq_arm for any cq of the adapter, when they have done their work: what rwk_cq_poll returns
 * is what the callbacks have left. It may call everything but rwk_adapter_close, also for the cq itself, and for the
 * one that is polled (rwk_cq_poll returns 0 if that is destroyed), armed, or waited with; callbacks of what comes then
 * are called after it has returned.
 */
RWK_API void rwk_cq_on_event(struct rwk_cq *cq, void (*event)(void *user, struct rwk_cq *cq), void *user);
/**
 * Sleeps until there is a completion of that kind, which is left for rwk_cq_poll, and does the adapter's work
 * meanwhile. 0; -ETIMEDOUT: there was none for so many ns; -EINTR: a signal was caught; -EINVAL: no such kind, or the
 * cq has a callback, which another one's may have given it: then it stays armed; -ECANCELED: a callback has destroyed
 * it; -EMFILE, -ENOMEM. Else it is not armed afterwards. The calling thread has the adapter all the time: threads that
 * share one sleep with rwk_cq_fd.
 */
RWK_API int rwk_cq_wait(struct rwk_cq *cq, enum rwk_cq_event what, uint64_t timeout_ns);

/* ---- SRC domain (S1-1) ---- */

/** 0 and *domain set; -ENOMEM. */
RWK_API int rwk_src_domain_create(struct rwk_adapter *a, struct rwk_src_domain **domain);
/** 0; -EBUSY: it has srqs or qps. */
RWK_API int rwk_src_domain_destroy(struct rwk_src_domain *domain);

/* ---- shared receive queue ---- */

/**
 * With domain, number and cq it is for SRC: peers reach it through each SRC qp of that domain. With none of the three
 * RC and UC qps may share it (rwk_qp_create_attr.srq). Some of them alone are refused (S1-2).
 */
struct rwk_srq_attr {
	uint32_t receive_max; /* receives that may be posted or under way, 1 to RWK_QUEUE_MAX */
	struct rwk_src_domain *domain;
	uint32_t number;   /* 24 bits, no other srq's of the adapter, whatever its domain; 0: drawn at random */
	struct rwk_cq *cq; /* where its receives complete; without: where those of the qp do that has taken one */
};

/**
 * 0 and *srq set; -EINVAL: some of domain, number and cq without the others (a number of 0 goes with both), a value out
 * of its range, or an object of another adapter; -EADDRINUSE: another srq has the number; -ENOSPC: RWK_SRQS_MAX;
 * -ENOMEM. pd, domain and cq must exist as long as it does.
 */
RWK_API int rwk_srq_create(struct rwk_pd *pd, const struct rwk_srq_attr *attr, struct rwk_srq **srq);
/**
 * Its receives are the client's again, without completions; those that were not polled stay in the cq. SRC: who names
 * it from then on is refused, in the middle of a Write, too. 0; -EBUSY: a qp was created with it, or a Send has begun
 * to arrive in a receive of it: let that end, or the qp go to ERR.
 */
RWK_API int rwk_srq_destroy(struct rwk_srq *srq);
/**
 * RWK_ASYNC_SRQ_LIMIT comes once, as soon as fewer receives than that are posted, which may be at once; 0: never. 0;
 * -EINVAL: more than receive_max.
 */
RWK_API int rwk_srq_set_limit(struct rwk_srq *srq, uint32_t limit);
/** The number by which peers name it, 24 bits; 0: it is not for SRC. */
RWK_API uint32_t rwk_srq_number(const struct rwk_srq *srq);
/**
 * Posts a receive: taken by the next Send, or the next Write with immediate, that comes through any of its qps and has
 * none yet. If there is none, that qp waits (RC, SRC: RNR, and all that the peer has sent behind waits with it,
 * whatever srq that is for) or drops the message (UC). The same if the srq has no cq and the qp's is full then. When a
 * qp goes to ERR in the middle of a Send, the receive completes with -ECANCELED; when it goes to RESET or is destroyed,
 * the receive is the next one again; when it is UC's and has dropped the Send, its next message has the receive. 0;
 * -EINVAL: a value that does not exist; -EACCES: sge names no such memory of the srq's pd, or memory that may not be
 * written to; -EAGAIN: receive_max, or the cq is full: poll first.
 */
RWK_API int rwk_srq_post_receive(struct rwk_srq *srq, const struct rwk_receive *receive);
/** Posts `count` of them, in that order: 0, or what is wrong with receives[*posted], as rwk_qp_post_batch. */
RWK_API int rwk_srq_post_receive_batch(
	struct rwk_srq *srq, const struct rwk_receive *receives, uint32_t count, uint32_t *posted);

/* ---- queue pair ---- */

enum rwk_qp_type {
	RWK_QP_RC, /* reliable connection: each request is done once, in order, or the qp fails */
	RWK_QP_UC, /* unreliable connection: Send and Write; a message that loses a packet is dropped, without a word to
		      the sender; the receiver counts it and has an event (S0-11) */
	RWK_QP_SRC, /* scalable reliable connection: RC, but that each request names an srq at the peer */
};

enum rwk_qps {
	RWK_QPS_RESET,
	RWK_QPS_INIT, /* receives may be posted */
	RWK_QPS_RTR,  /* it takes packets */
	RWK_QPS_RTS,  /* and sends */
	RWK_QPS_ERR,  /* what is posted comes back with -ECANCELED */
};

struct rwk_qp_create_attr {
	enum rwk_qp_type type;
	struct rwk_cq *send_cq, *receive_cq; /* may be the same; SRC: no receive_cq */
	uint32_t send_max, receive_max; /* requests and receives that may be posted, 1 to RWK_QUEUE_MAX; with an srq,
					   and SRC: receive_max is 0 */
	uint32_t inline_max;            /* bytes of a request with RWK_REQUEST_INLINE, 0 to RWK_INLINE_MAX: so much
					   memory is kept for each of send_max */
	struct rwk_srq *srq;            /* RC, UC, may be NULL: where its receives are; not one for SRC */
	struct rwk_src_domain *domain;  /* SRC alone, and needed there: whose srqs the peer may name (S1-3) */
};

/**
 * The connection: what RTR needs. S0-2: both ends hold the peer's QP number and its address. The PMTU stays: what a way
 * that becomes narrower does not carry any more is lost, each time that it is sent.
 */
struct rwk_qp_attr {
	uint8_t peer_ip[16];            /* not the unspecified one */
	uint16_t peer_port;             /* UDP; 0: RWK_PORT */
	uint32_t peer_qpn;              /* 2 to 0xfffffe */
	uint32_t send_psn, receive_psn; /* the first of each direction, 24 bits */
	uint32_t pmtu;                  /* bytes; the same at both ends; 0: rwk_adapter_pmtu to that peer */
	unsigned access;                /* of READ, WRITE, ATOMIC: what the peer may do through this qp at all */
	/* RC and SRC. 0 stands for the value in brackets, where that is another. */
	uint8_t reads;       /* Reads and atomics of ours under way at once, 1 to 16 [16] */
	uint8_t peer_reads;  /* of the peer's, that are kept, 1 to 16 [16] */
	uint8_t retry;       /* times that silence is answered by sending again, 0 to 7 */
	uint8_t rnr_retry;   /* times that the peer may have no receive posted, 0 to 6; 7: for ever */
	uint8_t rnr_timer;   /* code of the time that a sender waits when we have none, 0 to 31 */
	uint64_t timeout_ns; /* until silence is noticed [67 ms]; two hours at most */
	/*
	 * The peer is a ropewalk too, and its qp has this set as well: what is lost is sent again alone, and un-ordered
	 * requests may be done before their turn (RWK_REQUEST_UNORDERED). Any other peer would answer nothing. In
	 * rwk_connection_attr it is a wish, which is granted if both ends have it.
	 */
	bool unordered;
	/*
	 * The peer's packets come from peer_port, as a ropewalk's do: those from other ports are a stranger's, and are
	 * dropped (S0-3). Else whoever sends from peer_ip passes for the peer: RoCE hardware changes the port from flow
	 * to flow. What rwk_connect and rwk_accept connect has it set.
	 */
	bool one_port;
};

/** Packets of one qp; what is dropped, by reason. */
struct rwk_qp_info {
	enum rwk_qps state;
	int error;                                             /* 0; in ERR: why, if the qp went there by itself */
	uint64_t packets_out, bytes_out, packets_in, bytes_in; /* bytes of payload */
	uint64_t sent_again, timeouts, acks_in, acks_out, naks_in, naks_out, rnr_in, rnr_out;
	uint64_t duplicates, early, lost; /* lost: UC, messages of the peer's (S0-11) */
	uint64_t before_turn;             /* un-ordered packets taken although earlier ones were missing */
	uint64_t bad_opcode, bad_length, bad_access, bad_state;
};

/**
 * A qp in RESET, its number drawn at random. 0 and *qp set; -EINVAL: a value out of its range, one that its type needs
 * and has not, or may not have and has, or an object of another adapter; -ENOSPC: RWK_QPS_MAX; -ENOMEM. pd, cqs, srq
 * and domain must exist as long as it does.
 */
RWK_API int rwk_qp_create(struct rwk_pd *pd, const struct rwk_qp_create_attr *attr, struct rwk_qp **qp);
/**
 * What is posted is the client's again, without completions; those that were not polled stay in the cq. Windows of
 * type 2 that it has bound are not bound any more: so it is with RESET, too.
 */
RWK_API void rwk_qp_destroy(struct rwk_qp *qp);
/** The number by which the peer names it, 24 bits. */
RWK_API uint32_t rwk_qp_number(const struct rwk_qp *qp);
/**
 * The next state: RESET to INIT to RTR to RTS, or any to ERR or RESET. `attr` for RTR (copied), else NULL. To ERR:
 * everything posted completes with -ECANCELED. To RESET: everything posted is the client's again, without completions.
 * 0; -EINVAL: no such step, or a value out of its range: nothing was done; -ENETUNREACH: no PMTU fits the way there.
 */
RWK_API int rwk_qp_modify(struct rwk_qp *qp, enum rwk_qps state, const struct rwk_qp_attr *attr);
/** State and counters of the qp as they are now. */
RWK_API void rwk_qp_query(const struct rwk_qp *qp, struct rwk_qp_info *info);

enum rwk_request_type {
	RWK_REQUEST_SEND,
	RWK_REQUEST_WRITE,
	RWK_REQUEST_READ,
	RWK_REQUEST_COMPARE_SWAP,     /* atomic towards the atomic instructions of the peer's host, too (S3-5) */
	RWK_REQUEST_FETCH_ADD,        /* so is this one (S3-4) */
	RWK_REQUEST_BIND,             /* binds a window of type 2 (S0-13) */
	RWK_REQUEST_LOCAL_INVALIDATE, /* from now on the window of type 2 with that key opens nothing */
};

enum rwk_request_flag {
	RWK_REQUEST_IMM = 1 << 0,       /* SEND, WRITE: `imm` travels along */
	RWK_REQUEST_SOLICITED = 1 << 1, /* the peer's completion is solicited */
	RWK_REQUEST_FENCE = 1 << 2,     /* begins when all Reads and atomics before it have ended */
	/*
	 * Hints on order (S2-1), at most one of them and FENCE. Does the second of two requests wait at the peer until
	 * the first is done?
	 *
	 *     first \ second   neither   HALF_ORDERED   UNORDERED
	 *     neither          yes       yes            yes
	 *     HALF_ORDERED     yes       yes            no
	 *     UNORDERED        yes       yes            no
	 *
	 * (but a SEND or WRITE need not wait for a READ, if it has no FENCE). So of two un-ordered SENDs the second may
	 * take the first receive (S2-7). Requests complete in the order of posting, whatever they are. RC and SRC qps
	 * with rwk_qp_attr.unordered make use of the hints, others pass them over; so do atomics.
	 */
	RWK_REQUEST_UNORDERED = 1 << 3,
	RWK_REQUEST_HALF_ORDERED = 1 << 4,
	/*
	 * No completion, unless it fails. That it has ended, and its memory is the client's again, is known when a
	 * later request of the qp has completed.
	 */
	RWK_REQUEST_UNSIGNALLED = 1 << 5,
	/*
	 * SEND, WRITE: the bytes are copied, and their memory is the client's again at once; it need not be
	 * registered, no key is looked at.
	 */
	RWK_REQUEST_INLINE = 1 << 6,
	/* SEND, not UC, not with IMM: the window of type 2 with that `key` at the peer opens nothing when it arrives.
	 */
	RWK_REQUEST_WITH_INVALIDATE = 1 << 7,
};

struct rwk_request {
	uint64_t id; /* the client's */
	enum rwk_request_type type;
	unsigned flags;            /* of enum rwk_request_flag */
	const struct rwk_sge *sge; /* SEND, WRITE: the source; READ: the target, LOCAL_WRITE; atomics: 8 bytes,
				      LOCAL_WRITE, for the value before, in the host's byte order */
	uint32_t sge_count;        /* 0 to RWK_SGE_MAX */
	uint32_t imm;
	uint64_t remote;            /* WRITE, READ, atomics: address in the peer's mr; of an atomic a multiple of 8 */
	uint32_t key;               /* of the peer's mr or mw; LOCAL_INVALIDATE: of our mw */
	uint64_t swap_add, compare; /* atomics: the value to swap in or to add; COMPARE_SWAP: what must be there */
	uint32_t srqn;              /* SRC: the srq at the peer whose receives or memory it is for (S1-4), 24 bits */
	struct rwk_mw *mw;          /* BIND: what, and to what; both are the caller's again at once */
	const struct rwk_bind *bind;
};

/**
 * Posts a request (S4-3): sge is the caller's again at once, the memory that it names when the request completes. A UC
 * request completes as soon as its last packet is sent (S0-6), an RC or SRC request when the peer has acknowledged it.
 * 0; -EINVAL: not in RTS (or ERR), or a value that does not exist, or two flags that exclude each other; -EACCES: sge
 * names no such memory of this pd, or memory that may not be written to; -EMSGSIZE: more than 2 GB, an atomic not of 8
 * bytes, or more than inline_max; -EOPNOTSUPP: a READ or an atomic on UC (S0-7); -EAGAIN: the qp's queue is full, or
 * the cq's, where every request has an entry until it ends, an unsignalled one too: poll first.
 *
 * Of BIND and LOCAL_INVALIDATE nothing goes out, and nothing of sge: they are done when they are posted, and complete
 * behind what was posted before. Their only flag is UNSIGNALLED. -EACCES: the mr's pd, or the window's, is not the
 * qp's, the range or the access is not all the mr's, or no window that this qp has bound has the key; -EBUSY: the
 * window is bound; -ENOSPC: RWK_MRS_MAX; -EINVAL: a value that does not exist, or a window of type 1. Whoever tells the
 * peer of a window over memory that a READ is to fill fences the request that tells.
 */
RWK_API int rwk_qp_post(struct rwk_qp *qp, const struct rwk_request *request);
/**
 * Posts `count` of them, in that order, for less than so many calls cost. 0; else what rwk_qp_post says to
 * requests[*posted]: those before it are posted, it and those behind it are not. *posted is always set.
 */
RWK_API int rwk_qp_post_batch(struct rwk_qp *qp, const struct rwk_request *requests, uint32_t count, uint32_t *posted);

/**
 * Posts a receive: taken by the next Send, or the next Write with immediate, that has none yet. 0; -EINVAL: in RESET, a
 * value that does not exist, or the qp's receives are an srq's; -EACCES, -EAGAIN: as rwk_qp_post.
 */
RWK_API int rwk_qp_post_receive(struct rwk_qp *qp, const struct rwk_receive *receive);
/** Posts `count` of them, in that order: 0, or what is wrong with receives[*posted], as rwk_qp_post_batch. */
RWK_API int rwk_qp_post_receive_batch(
	struct rwk_qp *qp, const struct rwk_receive *receives, uint32_t count, uint32_t *posted);

/* ---- connections (S4-11) ---- */

/*
 * How two qps find each other: above the adapter, the same for all that their packets may go by. One end listens at a
 * TCP port, the other connects to it; what each has to know of the other travels on that TCP connection, which is kept:
 * it tells of the other's end, and may carry the packets. Or a program hands in a TCP connection that it has used for
 * something else before (rwk_convert).
 *
 *   event channel  what has happened to connections, taken by rwk_event_channel_poll; works only when that is called
 *   listener       a TCP port of the adapter's address
 *   connection     of one qp, from rwk_connect, rwk_convert or a REQUEST to rwk_connection_destroy
 *   RDMA mode      the qp is in RTS, and if it goes by the stream there are packets on it and nothing else
 *   streaming      a deferred connection before that: the program sends and receives on the stream what it likes (S4-9)
 *
 * Every wait has an end: what takes longer than was allowed is an event, too.
 */

#define RWK_PRIVATE_MAX 256u /* bytes that a program may add to a request and to its answer */

struct rwk_event_channel;
struct rwk_listener;
struct rwk_connection;

/** What the packets go by. */
enum rwk_connection_transport {
	RWK_TRANSPORT_UDP,    /* RoCEv2, between the UDP ports of the adapters: RC, UC, SRC */
	RWK_TRANSPORT_STREAM, /* the connection's own TCP connection: RC, UC */
};

/** In the order in which they come to one connection: at most one of each, and of those from REJECTED on only one. */
enum rwk_connection_event_type {
	RWK_CONNECTION_REQUEST,      /* at a listener: somebody connects; accept, reject or destroy the connection */
	RWK_CONNECTION_STREAMING,    /* it was asked for deferred, and the peer has agreed */
	RWK_CONNECTION_ESTABLISHED,  /* RDMA mode */
	RWK_CONNECTION_REJECTED,     /* by the peer's program */
	RWK_CONNECTION_UNREACHABLE,  /* rwk_connect: there is nobody, or no way there, or nobody of our kind */
	RWK_CONNECTION_TIMED_OUT,    /* the peer, or at a listener this program, did not answer in time */
	RWK_CONNECTION_DISCONNECTED, /* it was a connection, or about to be, and is none any more; its qp is in ERR */
};

struct rwk_connection_event {
	enum rwk_connection_event_type type;
	struct rwk_connection *connection;
	void *user;                    /* the connection's, from its attr */
	struct rwk_listener *listener; /* REQUEST: whose */
	/*
	 * UNREACHABLE: -ECONNREFUSED, -EHOSTUNREACH and the like from the network, -ECONNRESET: hung up without an
	 * answer, -EPROTO: an answer that is none. TIMED_OUT: -ETIMEDOUT. DISCONNECTED: 0, this end did it;
	 * -ESHUTDOWN, the peer, in good order; -ECONNRESET, its process has ended, or it says no good-bye; -EPROTO; or
	 * why the qp failed (rwk_qp_info.error). Else 0.
	 */
	int status;
	/* REQUEST: what the peer wants; rwk_accept needs a qp of that type. */
	enum rwk_qp_type service;
	enum rwk_connection_transport transport;
	bool deferred;
	uint8_t peer_ip[16]; /* where the stream comes from, or leads to */
	uint16_t peer_port;  /* TCP */
	/* REQUEST, REJECTED, and STREAMING or else ESTABLISHED where the peer has answered: what it has added. */
	uint32_t private_length;
	uint8_t private_data[RWK_PRIVATE_MAX];
};

/** 0 and *ch set; -EMFILE, -ENOMEM. */
RWK_API int rwk_event_channel_create(struct rwk_adapter *a, struct rwk_event_channel **ch);
/** 0; -EBUSY: it has listeners or connections. */
RWK_API int rwk_event_channel_destroy(struct rwk_event_channel *ch);
/**
 * A descriptor that is readable while rwk_event_channel_poll has something to do or an event to give, deadlines
 * included: for poll and epoll, nothing else. It does not tell of packets by UDP, and packets on streams make it
 * readable too.
 */
RWK_API int rwk_event_channel_fd(const struct rwk_event_channel *ch);
/**
 * Does what there is to do for connections, and for the adapter as rwk_cq_poll does; then takes the next event into
 * `event`, if there is one. Those of one connection come in their order. Returns 1 or 0. Never waits.
 */
RWK_API int rwk_event_channel_poll(struct rwk_event_channel *ch, struct rwk_connection_event *event);

struct rwk_listen_attr {
	uint8_t ip[16];      /* zero: the adapter's */
	uint16_t port;       /* TCP; 0: the kernel's choice */
	bool patient;        /* this program may take as long as it likes, and who waits for it is there or is gone */
	uint32_t timeout_ms; /* so long may one who has connected take to say what it wants; and then this program to
				answer [10000] */
	uint32_t backlog;    /* so many may be about to say it at once, and so many wait for an answer [128] */
};

/** Those who came to a listener. */
struct rwk_listener_counters {
	uint64_t connected; /* TCP connections */
	uint64_t requests;  /* that became a REQUEST */
	uint64_t strangers; /* dropped: what they said is no request */
	uint64_t silent;    /* dropped: too slow, hung up before it was said, or pushed out by others */
	uint64_t refused;   /* dropped: too many wait for an answer, or no memory, or room in epoll sets */
};

/**
 * Listens at the adapter's address, or at that one of its host's. 0 and *l set; -EADDRINUSE; -EADDRNOTAVAIL; -EACCES: a
 * port below 1024; -EMFILE, -ENOMEM. Who has connected and says nothing, or nonsense, is dropped without an answer.
 */
RWK_API int rwk_listen(struct rwk_event_channel *ch, const struct rwk_listen_attr *attr, struct rwk_listener **l);
/** The TCP port, in the host's byte order. */
RWK_API uint16_t rwk_listener_port(const struct rwk_listener *l);
/** Who has come so far. */
RWK_API void rwk_listener_get_counters(const struct rwk_listener *l, struct rwk_listener_counters *c);
/** Listens no more. Connections whose REQUEST was taken stay; who still waits for his is hung up on. */
RWK_API void rwk_listener_close(struct rwk_listener *l);

/** How a connection is to be. A value that the peer has a say in becomes the smaller one of the two. */
struct rwk_connection_attr {
	enum rwk_connection_transport transport; /* rwk_connect */
	bool deferred;                /* rwk_connect with STREAM, rwk_convert: streaming, until rwk_connection_enter */
	bool alone;                   /* STREAM: each of our packets has a segment of TCP's to itself (S2-13), and a
					 pmtu too long for that is refused; else several may share one (S4-12) */
	bool told;                    /* rwk_convert: no handshake, both sides know already (S4-8) */
	bool patient; /* the peer's program may take as long as it likes: its kernel says whether it lives. timeout_ms
			 is for that kernel then */
	/*
	 * For the qp: access, pmtu (0: what fits), reads, peer_reads, retry, rnr_retry, rnr_timer, timeout_ns [on a
	 * stream, which loses nothing, 4 s], and unordered, which holds if both ends ask for it. The rest is what the
	 * ends tell each other; with `told` peer_qpn, send_psn, receive_psn and pmtu are taken too, and unordered is
	 * believed.
	 */
	struct rwk_qp_attr qp;
	uint8_t source_ip[16];    /* rwk_connect: where the TCP connection comes from; zero: the adapter's */
	uint32_t timeout_ms;      /* until the peer has answered, and its kernel before that [5000] */
	uint16_t source_port;     /* rwk_connect: and from which port; 0: any */
	const void *private_data; /* for the peer's program; copied */
	uint32_t private_length;  /* 0 to RWK_PRIVATE_MAX */
	void *user;               /* the caller's, in each event */
};

/**
 * Connects the qp, which is in RESET or INIT, to a listener: in one call (S4-6). An event follows: ESTABLISHED, with
 * the qp in RTS (or STREAMING, if deferred); REJECTED, UNREACHABLE, TIMED_OUT. Requests may be posted from ESTABLISHED
 * on, receives from now on. 0 and *c set; -EINVAL: a value out of its range, a qp of another adapter or state; -EBUSY:
 * the qp has a connection; -EOPNOTSUPP: SRC on a stream, deferred on UDP; -EADDRNOTAVAIL: source_ip is not this host's,
 * or by UDP not where the adapter's packets to that peer come from; -ENETUNREACH and the like: there is no way; -EMFILE,
 * -ENOMEM; -ENOSPC: the kernel lets no more be watched (fs.epoll.max_user_watches). Errors change nothing. The qp must
 * exist as long as the connection; when it is destroyed or reset before, that ends the connection.
 */
RWK_API int rwk_connect(struct rwk_event_channel *ch, struct rwk_qp *qp, const uint8_t ip[16], uint16_t port,
	const struct rwk_connection_attr *attr, struct rwk_connection **c);
/**
 * Grants a REQUEST, with a qp in RESET or INIT of the type that was asked for; of `attr` transport and deferred
 * are the peer's. ESTABLISHED (or STREAMING) follows when the peer has it; TIMED_OUT, DISCONNECTED. 0; -EINVAL, -EBUSY:
 * as rwk_connect; -ENOTCONN: the peer is gone already, or it took too long: an event says so; -EADDRNOTAVAIL: by UDP,
 * the peer has connected to another address of this host's than the one that rwk_adapter_source gives for it, from which
 * alone it takes packets: an adapter that is to be reached by that address is opened with it; -ENETUNREACH: no packet of
 * that pmtu fits the way there. Errors change nothing.
 */
RWK_API int rwk_accept(struct rwk_connection *c, struct rwk_qp *qp, const struct rwk_connection_attr *attr);
/**
 * Refuses a REQUEST, and destroys the connection: 0. -EINVAL: more than RWK_PRIVATE_MAX bytes, or it is not to
 * be answered (any more): it stays.
 */
RWK_API int rwk_reject(struct rwk_connection *c, const void *private_data, uint32_t private_length);

/**
 * Makes of a connected TCP socket, on which there may have been anything before, the transport of the qp, which is in
 * RESET or INIT (S4-7). All that was meant for the program must have been read, and nothing more: from now on, or if
 * deferred from rwk_connection_enter on, there are packets on it (transports/links/stream/STREAM.md). The peer does the
 * same: then the two exchange a greeting first, and ESTABLISHED comes with the peer's. Or (`told`) there is none, the
 * qp is in RTS on return, and the peer need know nothing but packets. The descriptor is the connection's from now on,
 * which closes it in the end. 0 and *c set; -EINVAL, -EBUSY, -EOPNOTSUPP, -ENOMEM, -ENOSPC: as rwk_connect, and
 * -EINVAL: no TCP socket; -ENOTCONN: not connected; -ENETUNREACH: `alone`, and packets of that pmtu fit no segment; it
 * is still the caller's then, and the qp as it was.
 */
RWK_API int rwk_convert(struct rwk_event_channel *ch, struct rwk_qp *qp, int fd, const struct rwk_connection_attr *attr,
	struct rwk_connection **c);
/**
 * The descriptor of a connection that is streaming, to send and to receive, not to close; -1: it is not streaming. That
 * the peer hangs up is for the program to see then.
 */
RWK_API int rwk_connection_fd(const struct rwk_connection *c);
/**
 * The streaming is over (S4-9): RDMA mode from now on; ESTABLISHED follows. 0; -EINVAL: it is not streaming; -ENOTCONN,
 * -ENOMEM, -ENOSPC: DISCONNECTED follows.
 */
RWK_API int rwk_connection_enter(struct rwk_connection *c);

/**
 * Ends it in good order (a qp that the program sends to ERR itself ends nothing): the qp goes to ERR, packets that are
 * on the way to a stream still go; DISCONNECTED follows, at the peer too. 0; -ENOTCONN: it is neither established nor
 * streaming.
 */
RWK_API int rwk_disconnect(struct rwk_connection *c);
/** Ends it, whatever state it is in, as rwk_disconnect does; no more event of it comes. */
RWK_API void rwk_connection_destroy(struct rwk_connection *c);

#ifdef __cplusplus
}
#endif

#endif
