/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address vector: a table of addresses (av_table.h), of the process's own or, with a name, shared by processes
 * (av_shared.h). No peer is made here: an endpoint does that when it first sends to an address or directs a receive at
 * it; it takes 8 bytes an address more.
 *
 * An fi_addr_t is the number of the entry, for FI_AV_MAP as for FI_AV_TABLE; above it, in rx_ctx_bits, is the receive
 * context of a scalable endpoint that it names. What is removed is forgotten by the
 * endpoints; what is under way with such a peer ends as if it were there. That another process has removed something
 * from a shared vector is seen at the next call of it, or at the next use of a number or a peer that is new.
 *
 * Insertion is done within the call; with FI_EVENT it is told of by the event queue.
 */
#ifndef RWK_FI_AV_H
#define RWK_FI_AV_H

#include "bindings/libfabric/av_shared.h"
#include "bindings/libfabric/av_table.h"
#include "bindings/libfabric/domain.h"
#include "transport.h"

struct rwk_fi_ep;
struct rwk_fi_eq;

struct rwk_fi_av {
	struct fid_av fid;
	struct rwk_fi_domain *domain;
	uint64_t process; /* that has opened it */
	struct rwk_fi_av_table table;
	struct rwk_fi_av_counts own;     /* the table's, unless it is shared */
	struct rwk_fi_av_shared *shared; /* NULL: it is not */
	struct rwk_fi_guard lock;        /* of a shared one: its endpoints' */
	struct rwk_fi_member member;
	uint32_t removals;               /* of the table that the endpoints have heard of */
	uint64_t *users;                 /* by number, for those below user_room: what stands for it in completions */
	size_t user_room;
	fi_addr_t *numbers;     /* of a shared vector: what map_addr is */
	struct rwk_fi_eq *eq;   /* bound, or NULL */
	bool events;            /* FI_EVENT */
	bool read_only;         /* FI_READ */
	bool names_apart;       /* FI_AV_USER_ID: what stands for a number is set by rwk_fi_av_set_user_id alone */
	unsigned context_bits;  /* at the top of an fi_addr_t: which receive context it names */
	struct rwk_fi_ep **eps; /* bound to it: told of removals */
	uint32_t ep_count, ep_room;
	atomic_uint refs; /* datagram endpoints bound to it: they remember nothing of it */
};

static inline struct rwk_fi_av *rwk_fi_av_of(struct fid_av *fid)
{
	return rwk_container_of(fid, struct rwk_fi_av, fid);
}

int rwk_fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);

/** The address of a number as it was inserted, copied to *room, or NULL. Under an endpoint's lock. */
const struct rwk_address *rwk_fi_av_address(struct rwk_fi_av *av, fi_addr_t number, struct rwk_address *room);

/** The number of an address, or FI_ADDR_NOTAVAIL. Under an endpoint's lock. */
fi_addr_t rwk_fi_av_find(struct rwk_fi_av *av, const struct rwk_address *a);
/** As rwk_fi_av_search_qp. Under the same lock. */
fi_addr_t rwk_fi_av_find_qp(struct rwk_fi_av *av, const struct rwk_address *a, uint32_t qpn);

/** Of an fi_addr_t that may name a receive context (fi_rx_addr): the number, and the context. */
static inline fi_addr_t rwk_fi_av_whole(const struct rwk_fi_av *av, fi_addr_t number)
{
	return av->context_bits ? number & UINT64_MAX >> av->context_bits : number;
}

static inline unsigned rwk_fi_av_context(const struct rwk_fi_av *av, fi_addr_t number)
{
	return av->context_bits ? (unsigned)(number >> (64 - av->context_bits)) : 0;
}

/** What stands for a number in completions until the program has said what does. */
static inline uint64_t rwk_fi_av_unnamed(const struct rwk_fi_av *av, fi_addr_t number)
{
	return av->names_apart ? FI_ADDR_NOTAVAIL : number;
}

/** What stands for a number in completions: itself, or what was given with FI_AV_USER_ID. */
static inline uint64_t rwk_fi_av_user(const struct rwk_fi_av *av, fi_addr_t number)
{
	return number < av->user_room ? av->users[number] : rwk_fi_av_unnamed(av, number);
}

/** Around each use of the table; under an endpoint's lock to look at it, while all are stopped to change it. 0, or
 * -FI_ENOMEM. */
int rwk_fi_av_begin(struct rwk_fi_av *av);
void rwk_fi_av_end(struct rwk_fi_av *av);

/** Ties an endpoint to the vector, until detached: 0 or -FI_ENOMEM. While all are stopped. */
int rwk_fi_av_attach(struct rwk_fi_av *av, struct rwk_fi_ep *ep);
void rwk_fi_av_detach(struct rwk_fi_av *av, struct rwk_fi_ep *ep);

/* fi_av_insert and its sisters, in av_insert.c. */
int rwk_fi_av_insert(
	struct fid_av *fid, const void *addr, size_t count, fi_addr_t *numbers, uint64_t flags, void *context);
int rwk_fi_av_insertsvc(
	struct fid_av *fid, const char *node, const char *service, fi_addr_t *number, uint64_t flags, void *context);
int rwk_fi_av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service, size_t services,
	fi_addr_t *numbers, uint64_t flags, void *context);

/** Has `user` stand for a number in completions, as FI_AV_USER_ID does: 0; -FI_EINVAL: no such number; -FI_ENOMEM. */
int rwk_fi_av_set_user_id(struct fid_av *fid, fi_addr_t number, fi_addr_t user, uint64_t flags);

#endif
