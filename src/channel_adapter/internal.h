/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the channel adapter share. The objects are those of ropewalk.h.
 *
 *   number  of a qp: the low bits are its place in the adapter's table, the rest is drawn
 *   slot    a request or a receive from its posting to its completion; the queues are rings of them
 *   claim   an entry of a cq that is kept free for something posted: so a completion always finds room
 *   due     qps whose machine has something to do now: they are pumped before the link is flushed
 *
 * adapter.c has the objects above a qp and what is done when somebody polls; packet.c packets from and to the link, and
 * their ICRC; qp.c states; post.c requests and receives; upcalls.c what the machines ask of their host.
 */
#ifndef RWK_CHANNEL_ADAPTER_INTERNAL_H
#define RWK_CHANNEL_ADAPTER_INTERNAL_H

#include "include/ropewalk.h"

#include "base/list.h"
#include "machine.h"
#include "memory/keys.h"
#include "rc/rc.h"
#include "uc/uc.h"

/** Beside those of enum rwk_reach, in the key table: our own receives and reads may write there. */
#define REACH_LOCAL_WRITE ((unsigned)RWK_ACCESS_LOCAL_WRITE)

struct rwk_adapter {
	struct rwk_link *link;
	uint8_t ip[16];
	struct rwk_keys *keys;
	uint32_t pds, cqs, qps;
	uint32_t next_pd;
	struct rwk_list due; /* of rwk_qp.due */
	rwk_time now;        /* when work began */
	rwk_time next;       /* the earliest time that a qp waits for */
	struct rwk_adapter_counters counters;
	struct rwk_qp *qp[RWK_QPS_MAX];
};

struct rwk_pd {
	struct rwk_adapter *adapter;
	uint32_t number;
	uint32_t children;
};

struct rwk_mr {
	struct rwk_pd *pd;
	uint32_t key;
};

struct rwk_cq {
	struct rwk_adapter *adapter;
	uint32_t children;
	uint32_t entries;
	uint32_t claimed;
	uint32_t head, count; /* of wc */
	struct rwk_wc wc[];
};

struct request_slot {
	struct rwk_wr wr;
	struct iovec iov[RWK_SGE_MAX];
	uint64_t id;
};

struct receive_slot {
	struct iovec iov[RWK_SGE_MAX];
	uint32_t count;
	size_t length;
	uint64_t id;
};

struct rwk_qp {
	struct rwk_adapter *adapter;
	struct rwk_pd *pd;
	uint32_t number;
	enum rwk_qp_type type;
	struct rwk_cq *send_cq, *receive_cq;
	void *memory, *responder;
	union {
		struct rwk_rc *rc;
		struct rwk_uc *uc;
	};
	struct rwk_link_address peer;
	uint8_t peer_ip[16];
	struct rwk_list due;
	bool link_full; /* the link took no more in the last pump */
	bool silent;    /* what ends now ends without a completion */
	int error;
	void (*lost)(void *user);
	void *user;

	/* Rings: head, and how many. */
	struct request_slot *requests;
	uint32_t request_max, request_head, request_count;
	struct receive_slot *receives;
	uint32_t receive_max, receive_head, receive_count;
	size_t received;     /* bytes of the receive at the head that are in place */
	size_t write_length; /* of the Write that is under way */
};

extern const struct rwk_machine_host rwk_ca_host;

/** Makes its machine be pumped before the next flush. */
static inline void rwk_ca_set_due(struct rwk_qp *qp)
{
	if (rwk_list_empty(&qp->due))
		rwk_list_append(&qp->adapter->due, &qp->due);
}

/** Pumps the qps that are due, and flushes. */
void rwk_ca_pump(struct rwk_adapter *a);
void rwk_ca_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len);
int rwk_ca_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count);

/** Claims an entry: false, the cq is full. */
bool rwk_ca_claim(struct rwk_cq *cq);
/** Puts a completion into the entry that was claimed for it. */
void rwk_ca_complete(struct rwk_cq *cq, const struct rwk_wc *wc);

/** Completes all receives with -ECANCELED, or none if qp->silent. */
void rwk_ca_flush_receives(struct rwk_qp *qp);
/** Takes the receive at the head out of its queue, and completes it. */
void rwk_ca_end_receive(struct rwk_qp *qp, struct rwk_wc *wc);

#endif
