/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address vector: a table of addresses, 48 bytes each and at most 8 of index (and 8 more at each endpoint that uses
 * it). No peer is made here: an endpoint does that when it first sends to an address or directs a receive at it.
 *
 * An fi_addr_t is the number of the entry, for FI_AV_MAP as for FI_AV_TABLE. Numbers of removed entries are given out
 * again, the last removed first. The index finds the entry of an address, for the source of a message: one hash chain
 * for an address in full, or for the IP and port of a partial one. This host has several IPs and one set of ports: all
 * its IPs count as 127.0.0.1, but for fi_av_lookup.
 */
#ifndef RWK_FI_AV_H
#define RWK_FI_AV_H

#include "bindings/libfabric/domain.h"
#include "transport.h"

struct rwk_fi_ep;

#define RWK_FI_AV_NONE UINT32_MAX

struct rwk_fi_av_entry {
	struct rwk_address address; /* version_srq 0: the entry is free */
	uint32_t next;              /* in its hash chain, or in the list of free entries */
	bool here;                  /* a partial address with an IP of this host's */
};
_Static_assert(
	sizeof(struct rwk_fi_av_entry) == 48, "with its share of the index and a peer's slot: 64 bytes an address");

struct rwk_fi_av {
	struct fid_av fid;
	struct rwk_fi_mutex *lock;
	struct rwk_fi_domain *domain;
	struct rwk_fi_av_entry *entries;
	uint32_t count; /* entries ever used: numbers are below it */
	uint32_t room;
	uint32_t free;               /* first free entry below count */
	struct rwk_address loopback; /* what rwk_fi_av_address says of an entry that is here */
	uint32_t partials;           /* used entries that are partial addresses */
	uint32_t *heads;             /* hash chains; as many as `room`, a power of two */
	struct rwk_fi_ep **eps;      /* bound to it: told of removals */
	uint32_t ep_count, ep_room;
	atomic_uint refs; /* datagram endpoints bound to it: they remember nothing of it */
};

int rwk_fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);

/** The address of a number, or NULL. Under the lock; valid until the next call. */
const struct rwk_address *rwk_fi_av_address(struct rwk_fi_av *av, fi_addr_t number);

/** The same as it was inserted, which a socket that is bound to an IP wants. */
const struct rwk_address *rwk_fi_av_inserted(const struct rwk_fi_av *av, fi_addr_t number);

/** The number of an address, or FI_ADDR_NOTAVAIL. Under the lock. */
fi_addr_t rwk_fi_av_find(const struct rwk_fi_av *av, const struct rwk_address *a);

/** Ties an endpoint to the vector, until detached: 0 or -FI_ENOMEM. */
int rwk_fi_av_attach(struct rwk_fi_av *av, struct rwk_fi_ep *ep);
void rwk_fi_av_detach(struct rwk_fi_av *av, struct rwk_fi_ep *ep);

#endif
