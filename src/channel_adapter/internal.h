/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the channel adapter share. The objects are those of ropewalk.h.
 *
 *   number  of a qp: the low bits are its place in the adapter's table, the rest is drawn
 *   slot    a request or a receive from its posting to its completion
 *   claim   an entry of a cq that is kept free for something posted: so a completion always finds room
 *   due     qps whose machine has something to do now: they are pumped before the link is flushed
 *
 *   local   a request of which nothing goes out: done when it is posted, completed in its turn
 *   sleeper whoever waits for a descriptor, or for a callback: one for each cq
 *
 * adapter.c has the objects above a qp and what is done when somebody polls; cq.c completion queues; sleep.c what wakes
 * a sleeper; event.c asynchronous events; srq.c SRC domains and shared receive queues; packet.c packets from and to the
 * link, and their ICRC; stream.c streams in place of the UDP socket; qp.c states; post.c requests; window.c local ones;
 * receive.c receives; upcalls.c what the machines ask of their host.
 */
#ifndef RWK_CHANNEL_ADAPTER_INTERNAL_H
#define RWK_CHANNEL_ADAPTER_INTERNAL_H

#include "include/ropewalk.h"

#include "base/compiler.h"
#include "base/list.h"
#include "channel_adapter/object.h"
#include "channel_adapter/stream.h"
#include "machine.h"
#include "memory/keys.h"
#include "rc/rc.h"
#include "uc/uc.h"

#include <assert.h>

/** Beside those of enum rwk_reach, in the key table: our own receives and reads may write there. */
#define REACH_LOCAL_WRITE ((unsigned)RWK_ACCESS_LOCAL_WRITE)

/** In the key table, in place of a pd: what opens such a key is a window, see rwk_ca_reach_window. */
#define WINDOWS UINT32_MAX

#define RWK_CA_NUMBER_MAX 0xffffffu /* of a qp, of an srq: 24 bits */

/* What wakes the sleepers of an adapter, see sleep.c. */
struct sleep {
	unsigned armed;         /* sleepers that have not been woken */
	struct rwk_list hear;   /* of sleeper.link: armed, and hear */
	struct rwk_list deaf;   /* armed, and do not hear, though they have a descriptor */
	struct rwk_list idle;   /* hear, and are not armed */
	unsigned hear_count;    /* of hear and idle */
	struct rwk_list called; /* those woken whose callbacks are to be called */
	int epoll, timer;       /* descriptors; -1: nobody has asked for one */
	rwk_time alarm;         /* what the timer is set to; RWK_NEVER */
	bool watching;          /* the links' descriptors are in epoll's set */
	bool unread;            /* the last look at the link left something there */
	bool full;              /* some qps wait for room at the adapter's own link */
	bool calling;           /* a callback is being called */
};

struct sleeper {
	bool armed;
	bool hears;     /* the adapter's epoll is in its set */
	bool rung;      /* the bell is readable, or will be once there is one */
	unsigned calls; /* of its callback that are to be made: one for each time that it was woken */
	int fd;         /* epoll: the bell, and, if it hears, the adapter's; -1: nobody has asked for one */
	int bell;       /* eventfd */
	struct rwk_adapter *adapter;
	struct rwk_list link;   /* of sleep.hear, deaf or idle */
	struct rwk_list called; /* of sleep.called, if there are calls */
	void (*call_back)(struct sleeper *s);
};

/* An object's events that nobody has taken yet. */
struct event_source {
	struct rwk_list link; /* of the adapter's, if some wait */
	unsigned waiting;     /* a bit for each type */
};

struct early_packet;

struct rwk_adapter {
	uint32_t kind;
	struct rwk_link *link;
	struct rwk_link *streams; /* links/stream; NULL: there is no event channel yet */
	uint8_t ip[16];
	struct rwk_keys *keys;
	uint32_t pds, cqs, domains, srqs, channels;
	uint32_t next_pd;
	struct rwk_list due; /* of rwk_qp.due */
	rwk_time now;        /* when work began */
	rwk_time next;       /* the earliest time that a qp waits for */
	struct sleep sleep;
	struct rwk_cq *polled;  /* polled or armed, as soon as the callbacks have been called; NULL: it is gone */
	struct rwk_list events; /* of event_source.link */
	struct sleeper event_sleeper;
	struct rwk_adapter_counters counters;
	struct rwk_qp *qp[RWK_QPS_MAX];
	struct rwk_srq *srq[RWK_SRQS_MAX]; /* those with a number, by its lowest bits */
	struct rwk_mw *mw[RWK_MRS_MAX];    /* those that are bound, by the slot of their key */
};

struct rwk_pd {
	uint32_t kind;
	struct rwk_adapter *adapter;
	uint32_t number;
	uint32_t children;
};

struct rwk_mr {
	uint32_t kind;
	struct rwk_pd *pd;
	uint32_t key;
	uint32_t windows; /* that are bound to it */
};

struct rwk_mw {
	uint32_t kind;
	struct rwk_pd *pd;
	enum rwk_mw_type type;
	uint32_t key;
	struct rwk_mr *mr;    /* NULL: it is not bound */
	struct rwk_qp *qp;    /* type 2, bound: through which alone it is reached; else NULL */
	struct rwk_list link; /* of that qp's */
};

struct rwk_cq {
	uint32_t kind;
	struct rwk_adapter *adapter;
	uint32_t children;
	uint32_t entries;
	uint32_t claimed;
	uint32_t head, count; /* of wc */
	struct sleeper sleeper;
	enum rwk_cq_event awaited; /* by the sleeper */
	void (*event)(void *user, struct rwk_cq *cq);
	void *user;
	struct rwk_wc *wc;
};

static_assert(offsetof(struct rwk_cq, sleeper.armed) < RWK_CACHE_LINE, "one line of a cq, and that of the entry");

struct request_slot {
	struct rwk_wr wr;
	uint64_t id;
	bool unsignalled;
	int status; /* of local work */
	struct iovec iov[RWK_SGE_MAX];
};

/* What a request of one piece touches of it, from its posting to its end. */
static_assert(offsetof(struct request_slot, iov[1]) <= 2 * RWK_CACHE_LINE, "two lines for a request of one piece");
static_assert(sizeof(struct rwk_wc) == 40, "a completion is copied twice");

struct receive_slot {
	struct rwk_list link; /* of its queue */
	uint64_t id;
	size_t length;
	uint32_t count;
	struct iovec iov[RWK_SGE_MAX];
};

/* What a message of one piece touches of it. */
static_assert(offsetof(struct receive_slot, iov[1]) <= RWK_CACHE_LINE, "one line for a receive of one piece");

struct receive_queue {
	struct rwk_list posted; /* in the order of posting */
	struct rwk_list free;
	struct receive_slot *slots;
	uint32_t max, used; /* of slots; 0: the qp has no queue of its own */
	uint32_t count;     /* of posted */
};

struct rwk_src_domain {
	uint32_t kind;
	struct rwk_adapter *adapter;
	uint32_t children;
};

struct rwk_srq {
	uint32_t kind;
	struct rwk_adapter *adapter;
	struct rwk_pd *pd;
	struct rwk_src_domain *domain; /* NULL: not for SRC; then there is no number and no cq */
	struct rwk_cq *cq;
	struct rwk_srq *next; /* in its place of the adapter's table */
	uint32_t number;
	uint32_t children; /* qps that were created with it */
	uint32_t taken;    /* of its receives, with qps now */
	uint32_t limit;    /* with fewer receives posted there is an event; 0: none */
	struct receive_queue receives;
	struct event_source events;
};

struct rwk_qp {
	uint32_t kind;
	struct rwk_adapter *adapter;
	struct rwk_pd *pd;
	uint32_t number;
	enum rwk_qp_type type;
	struct rwk_cq *send_cq, *receive_cq; /* SRC: no receive_cq */
	struct rwk_srq *srq;                 /* RC, UC: where its receives are; NULL: in `own` */
	struct rwk_src_domain *domain;       /* SRC */
	void *memory, *responder;
	union {
		struct rwk_rc *rc;
		struct rwk_uc *uc;
	};
	struct rwk_link *link;        /* that its packets go by: the adapter's, or its streams */
	struct rwk_ca_stream *stream; /* of its connection; NULL */
	struct rwk_link_address peer;
	uint8_t peer_ip[16];
	uint16_t peer_port;
	bool one_port; /* that its packets come from, too */
	struct rwk_list due;
	bool link_full; /* the link took no more in the last pump */
	bool silent;    /* what ends now ends without a completion */
	int error;
	struct event_source events;
	struct rwk_list windows; /* of type 2 that it has bound */
	uint64_t lost;           /* UC: messages since the last event that said so */

	/* A ring: head, and how many. */
	struct request_slot *requests;
	uint32_t request_max, request_head, request_count;
	uint32_t locals;     /* of them */
	uint32_t inline_max; /* bytes */
	uint8_t *inlined;    /* so many for each of the ring's slots; NULL: 0 */

	struct receive_queue own;
	struct receive_slot *taken; /* by the Send that is under way (UC: or was, and has been dropped); NULL */
	struct rwk_srq *taken_of;   /* whose receive that is; NULL: its own */
	size_t received;            /* bytes of it that are in place */
	size_t write_length;        /* of the Write that is under way */
	uint32_t srqn;              /* SRC: which the message that is under way has named */
	struct early_packet **early; /* RWK_RC_WINDOW_MAX of them; NULL: the un-ordered types are not agreed on */
};

extern const struct rwk_machine_host rwk_ca_host;

/** Whether the un-ordered types are agreed on, from now on: 0; -ENOMEM. What was kept has been dropped. */
int rwk_ca_open_early(struct rwk_qp *qp, bool agreed);
void rwk_ca_close_early(struct rwk_qp *qp);
/** Upcalls. */
int rwk_ca_keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len);
const void *rwk_ca_kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len);
void rwk_ca_drop(void *user, uint32_t slot);
void rwk_ca_mark(void *user, uint32_t slot, const struct rwk_wire *w);

/** SRC is RC to the machines, in opcodes of its own and with a number in each request. */
static inline bool rwk_ca_is_uc(const struct rwk_qp *qp)
{
	return qp->type == RWK_QP_UC;
}

static inline enum rwk_qps rwk_ca_state(const struct rwk_qp *qp)
{
	return (enum rwk_qps)(rwk_ca_is_uc(qp) ? rwk_uc_state(qp->uc) : rwk_rc_state(qp->rc));
}

/** Makes its machine be pumped before the next flush. */
static inline void rwk_ca_set_due(struct rwk_qp *qp)
{
	if (rwk_list_empty(&qp->due))
		rwk_list_append(&qp->adapter->due, &qp->due);
}

/** Pumps the qps that are due, and flushes. */
void rwk_ca_pump(struct rwk_adapter *a);
/** Takes what has come by UDP so far. */
void rwk_ca_take_packets(struct rwk_adapter *a);
void rwk_ca_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len);
void rwk_ca_stream_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len);
/** The qp is reset or destroyed: its connection hears of it. */
void rwk_ca_forsake_stream(struct rwk_qp *qp);
int rwk_ca_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count);

/** Claims an entry: false, the cq is full. */
bool rwk_ca_claim(struct rwk_cq *cq);
/** Puts a completion into the entry that was claimed for it. */
void rwk_ca_complete(struct rwk_cq *cq, const struct rwk_wc *wc);

/** An event of that type waits at the source. */
void rwk_ca_raise(struct rwk_adapter *a, struct event_source *source, enum rwk_async_event_type type);
/** Nothing waits at it any more. */
void rwk_ca_forget_events(struct event_source *source);

void rwk_ca_open_sleep(struct sleep *s);
void rwk_ca_close_sleep(struct sleep *s);
void rwk_ca_open_sleeper(struct sleeper *s, struct rwk_adapter *a);
void rwk_ca_close_sleeper(struct sleeper *s);
/** The descriptor that it sleeps with; a negative errno. */
int rwk_ca_sleeper_fd(struct sleeper *s);
/** Ahead of the work before rwk_ca_arm, or rwk_ca_disarm: not armed meanwhile, and its descriptor is not readable. */
void rwk_ca_before_arm(struct sleeper *s);
/**
 * From now on rwk_ca_wake, packets and the time wake it: 0; -EAGAIN: there is something to do already, and
 * rwk_ca_disarm is to be called.
 */
int rwk_ca_arm(struct sleeper *s);
/** No longer; and its descriptor is not readable. Its calls that are to be made stay. */
void rwk_ca_disarm(struct sleeper *s);
/** What an armed one sleeps for has come: disarms it. */
void rwk_ca_wake(struct sleeper *s);
/** Behind all work, if some are armed: when there is more to do. */
void rwk_ca_set_alarm(struct rwk_adapter *a);
/** The adapter has another link: who is asleep is woken by that, too. */
void rwk_ca_watch_again(struct rwk_adapter *a);
/** Calls the callbacks of those that were woken. */
void rwk_ca_call_back(struct rwk_adapter *a);
/** The real time that is so far away. */
rwk_time rwk_ca_deadline(uint64_t timeout_ns);
/**
 * Waits until the descriptor is readable, if `asleep`, and at most until then: 0; -ETIMEDOUT: it is that late; -EINTR:
 * a signal has come; another negative errno.
 */
int rwk_ca_sleep(int fd, bool asleep, rwk_time until);

/**
 * Where the pieces lie, each in an mr of the pd: 0, their number in *used and all their bytes in *length; -EINVAL,
 * -EACCES.
 */
int rwk_ca_find_pieces(struct rwk_pd *pd, const struct rwk_sge *sge, uint32_t count, unsigned reach, struct iovec *iov,
	uint32_t *used, size_t *length);

/** Ends the oldest requests, as far as they are local. */
void rwk_ca_end_locals(struct rwk_qp *qp);
/** Posts a local request, as rwk_qp_post; `type` is that of the window that it may bind. */
int rwk_ca_post_local(struct rwk_qp *qp, const struct rwk_request *r, enum rwk_mw_type type);
/**
 * As rwk_keys_find, of a peer's packet that came through the qp and reaches that pd: for a key that is none of the pd's
 * mrs.
 */
int rwk_ca_reach_window(const struct rwk_qp *qp, uint32_t pd, uint32_t key, uint64_t address, size_t len,
	unsigned access, struct iovec *iov, int max);
/** The window of type 2 that a request through the qp, which reaches that pd, may invalidate; NULL. */
struct rwk_mw *rwk_ca_find_window(const struct rwk_qp *qp, uint32_t pd, uint32_t key);
void rwk_ca_unbind(struct rwk_mw *mw);
/** Those of type 2 that it has bound. */
void rwk_ca_unbind_all(struct rwk_qp *qp);

/** The srq with that number, whatever its domain; NULL. */
struct rwk_srq *rwk_ca_find_srq(const struct rwk_adapter *a, uint32_t number);

/** Fewer receives are posted than its limit: says so, once. */
void rwk_ca_below_limit(struct rwk_srq *srq);

/** Room for `max` receives, which may be 0: 0; -ENOMEM. */
int rwk_ca_open_receives(struct receive_queue *q, uint32_t max);
void rwk_ca_close_receives(struct receive_queue *q);
/** What is posted is the client's again, without completions, for which entries of `cq` (or NULL) were claimed. */
void rwk_ca_drop_receives(struct receive_queue *q, struct rwk_cq *cq);
/**
 * The qp takes the next receive, of `srq` or (NULL) of its own, if it does not hold one already: 0; -EAGAIN: there is
 * none, or no room for its completion.
 */
int rwk_ca_take_receive(struct rwk_qp *qp, struct rwk_srq *srq);
/** Completes the receive that the qp has taken: id, qpn and srqn of wc are set here. */
void rwk_ca_end_receive(struct rwk_qp *qp, struct rwk_wc *wc);
/**
 * Completes the receive that it has taken and all of its own with -ECANCELED; if qp->silent none, and what it has taken
 * is the first of its queue again.
 */
void rwk_ca_flush_receives(struct rwk_qp *qp);

#endif
