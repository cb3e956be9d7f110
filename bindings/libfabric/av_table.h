/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entries of an address vector and the index over them: 48 bytes an address, at most 8 of index, and a bit. They
 * are in memory of the process, or in a segment that processes share (av_shared.h).
 *
 * Numbers of removed entries are given out again, the lowest first, as programs expect of FI_AV_TABLE. In a shared
 * table a number stands for one address for ever, because others may remember it: who inserts a removed address again
 * gets its number again. The index finds the entry of an address, for the source of a message: one hash chain for the
 * nonce of an address in full, or for the IP and port of a partial one. This host has several IPs and one set of ports:
 * all its IPs count as 127.0.0.1.
 *
 * Who changes a table may be killed while he does: `changing` stays set then, and the next one builds anew what follows
 * from the entries. An entry is there once it is counted.
 */
#ifndef RWK_FI_AV_TABLE_H
#define RWK_FI_AV_TABLE_H

#include "bindings/libfabric/provider.h"
#include "transport.h"

#include <stdbool.h>

#define RWK_FI_AV_NONE     UINT32_MAX
#define RWK_FI_AV_WORD     64 /* numbers in a word of holes */
#define RWK_FI_AV_ROOM_MIN RWK_FI_AV_WORD
#define RWK_FI_AV_ROOM_MAX ((uint32_t)1 << 31)

struct rwk_fi_av_entry {
	struct rwk_address address; /* version_srq 0: the entry is free */
	uint32_t next;              /* in its hash chain */
	bool here;                  /* a partial address with an IP of this host's */
	bool removed;               /* of a shared table: not there, but its number is kept */
};
_Static_assert(
	sizeof(struct rwk_fi_av_entry) == 48, "with its share of the index and a peer's slot: 64 bytes an address");

struct rwk_fi_av_counts {
	uint32_t count; /* entries ever used: numbers are below it */
	uint32_t room;  /* a power of two: for so many entries, and of so many hash chains */
	uint32_t partials; /* entries that are partial addresses */
	uint32_t removals; /* since the beginning */
	bool changing;
};

struct rwk_fi_av_table {
	struct rwk_fi_av_counts *counts;
	struct rwk_fi_av_entry *entries;
	uint32_t *heads; /* hash chains */
	/**
	 * Sets counts->room to that, entries and heads to memory for it, which begins as it was, and holes, which has
	 * none: 0 or -FI_ENOMEM.
	 */
	int (*grow)(struct rwk_fi_av_table *t, uint32_t room);
	void *memory;        /* for grow: whose memory it is */
	bool keeps_numbers;  /* it is shared: there are no holes */
	uint64_t *holes;     /* a bit for each number below room: it is below count, and free */
	uint32_t first_hole; /* no word of them before this has any */
};

/** A power of two of entries, for a program that expects so many. */
uint32_t rwk_fi_av_room(size_t wanted);

/** Builds the index, from the entries, of which none is free. */
void rwk_fi_av_rebuild(struct rwk_fi_av_table *t);

/** Adds an address: 0 and its number; -FI_ENOMEM. */
int rwk_fi_av_add(struct rwk_fi_av_table *t, const struct rwk_address *a, fi_addr_t *number);

/** Takes one away that is there. */
void rwk_fi_av_take(struct rwk_fi_av_table *t, uint32_t number);

/** The entry of a number, or NULL. */
const struct rwk_fi_av_entry *rwk_fi_av_entry(const struct rwk_fi_av_table *t, fi_addr_t number);

/** The number of an address, or RWK_FI_AV_NONE. */
uint32_t rwk_fi_av_search(const struct rwk_fi_av_table *t, const struct rwk_address *a);

/** The same of a partial address that stands for a queue pair: with that QPN in place of the SRQ number. */
uint32_t rwk_fi_av_search_qp(const struct rwk_fi_av_table *t, const struct rwk_address *a, uint32_t qpn);

#endif
