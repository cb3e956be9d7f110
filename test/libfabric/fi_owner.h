/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An owner, as a provider is one that uses ours as its peer (fi_peer(3)): it has the queue and the receives, posts and
 * matches in the simplest way, and an endpoint of ours that it lets do the rest. It compiles with both forms of the
 * interface, and counts what it gives out and gets back.
 */
#ifndef RWK_FI_OWNER_H
#define RWK_FI_OWNER_H

#include "fi_test.h"

#include <rdma/fi_ext.h>
#if __has_include(<rdma/providers/fi_peer.h>)
#include <rdma/providers/fi_peer.h>
#endif

#define O_RECEIVES 512 /* entries of an owner, in all its life */

enum o_space { O_TAGGED, O_PLAIN };

/** What fi_peer_rx_entry is in; the owner's record of a receive or of a message. */
struct o_entry {
	struct fi_peer_rx_entry entry;
	struct iovec iov[8];
	enum o_space space;
	uint64_t ignore;
	enum o_state { O_FREE, O_POSTED, O_GIVEN, O_ASKED, O_QUEUED, O_BACK } state;
};

/** A completion that has been written to the owner. */
struct o_done {
	struct fi_cq_tagged_entry entry;
	fi_addr_t source;
	int err; /* 0, or of writeerr */
	size_t overflow;
};

struct o_owner {
	struct t_domain *d;
	struct fid_ep *ep, *srx_ep;
	struct fid_cq *cq; /* the peer's, to be driven */
	struct fid_av *av;
	unsigned char name[64];
	size_t name_len;
	struct fid_peer_cq peer_cq;
	struct fid_peer_srx srx;
	struct o_entry entries[O_RECEIVES]; /* in the order of their use */
	unsigned used;
	struct o_done done[O_RECEIVES];
	unsigned written, taken;
	bool calling; /* we make progress: a message may be offered */
	void (*told)(struct o_owner *o); /* or NULL; called before the peer is asked who has sent what is queued */
};

/** Opens it: a peer queue for both directions, a peer receive context, an endpoint with both; enabled. */
void o_open(struct o_owner *o, struct t_domain *d, uint64_t bind_flags);
void o_close(struct o_owner *o);

/** The attributes of the two contexts, for who opens them alone. */
struct fi_cq_attr o_cq_attr(void);
struct fi_rx_attr o_srx_attr(void);

/** Makes progress. */
void o_drive(struct o_owner *o);

/** Posts a receive; a message that is queued is started at once. `flags`: FI_COMPLETION. */
void o_receive(struct o_owner *o, enum o_space space, void *buf, size_t len, fi_addr_t from, uint64_t tag,
	uint64_t ignore, uint64_t flags);

/** Messages that wait with the peer. */
unsigned o_queued(const struct o_owner *o);

/** The first of them, or NULL. */
struct o_entry *o_first_queued(struct o_owner *o);

/** Has the peer drop that. */
void o_discard(struct o_owner *o, struct o_entry *e);

/** The next completion; fails after T_PATIENCE. */
struct o_done o_wait(struct o_owner *o);

/** Fails unless all that was given out has come back, once. */
void o_check_all_back(const struct o_owner *o);

/** The length that an entry says its message has (of 2.x; else 0), and its data. */
uint64_t o_data(const struct o_entry *e);

#endif
