/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/av_table.h"

#include "bindings/libfabric/address.h"
#include "engine/job.h"

#include <stdatomic.h>
#include <string.h>

#define HINT_MAX   ((size_t)1 << 20) /* entries that a program's wish may reserve */
#define ANY_NUMBER UINT32_MAX        /* SRQ number or QPN */

/** The IP that stands for all of this host's. */
static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

static bool is_partial(const struct rwk_address *a)
{
	return a->flags_rank & RWK_ADDR_PARTIAL;
}

static bool is_used(const struct rwk_fi_av_entry *entry)
{
	return entry->address.version_srq;
}

/* The address by which an endpoint is indexed where only IP and port are known of it. */
static struct rwk_address by_port(const struct rwk_address *a)
{
	struct rwk_address here;

	if (!rwk_address_is_here(a))
		return *a;
	rwk_fi_address_partial(loopback, rwk_address_port(a), &here);
	return here;
}

/* The IP by which an entry is indexed. */
static const uint8_t *indexed_ip(const struct rwk_fi_av_entry *entry)
{
	return entry->here ? loopback : entry->address.ip;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t nonce_of(const struct rwk_address *a)
{
	return a->nonce_port >> 16;
}

/* An address in full by its nonce, whichever of the host's IPs it has; a partial one by what it has: IP and port. */
static uint64_t hash(const uint8_t by_ip[16], const struct rwk_address *a, bool partial)
{
	uint64_t ip[2];

	if (!partial)
		return mix(0, nonce_of(a));
	memcpy(ip, by_ip, sizeof(ip));
	return mix(mix(mix(0, ip[0]), ip[1]), rwk_address_port(a));
}

static uint32_t *chain_of(const struct rwk_fi_av_table *t, const struct rwk_address *a, bool partial)
{
	return &t->heads[hash(a->ip, a, partial) & (t->counts->room - 1)];
}

static uint32_t *chain_with(const struct rwk_fi_av_table *t, const struct rwk_fi_av_entry *entry)
{
	return &t->heads[hash(indexed_ip(entry), &entry->address, is_partial(&entry->address)) & (t->counts->room - 1)];
}

static void index_entry(struct rwk_fi_av_table *t, uint32_t i)
{
	struct rwk_fi_av_entry *entry = &t->entries[i];
	uint32_t *head = chain_with(t, entry);

	entry->next = *head;
	*head = i;
}

static void unindex_entry(struct rwk_fi_av_table *t, uint32_t i)
{
	struct rwk_fi_av_entry *entry = &t->entries[i];
	uint32_t *at = chain_with(t, entry);

	while (*at != i)
		at = &t->entries[*at].next;
	*at = entry->next;
}

/* A change begins or ends: what is written before stands before. */
static void changing(struct rwk_fi_av_table *t, bool now)
{
	atomic_signal_fence(memory_order_seq_cst);
	t->counts->changing = now;
	atomic_signal_fence(memory_order_seq_cst);
}

uint32_t rwk_fi_av_room(size_t wanted)
{
	uint32_t room = RWK_FI_AV_ROOM_MIN;

	while (room < wanted && room < HINT_MAX)
		room *= 2;
	return room;
}

void rwk_fi_av_rebuild(struct rwk_fi_av_table *t)
{
	struct rwk_fi_av_counts *c = t->counts;

	memset(t->heads, 0xff, c->room * sizeof(*t->heads)); /* RWK_FI_AV_NONE */
	c->partials = 0;
	for (uint32_t i = c->count; i--;) {
		index_entry(t, i);
		c->partials += is_partial(&t->entries[i].address);
	}
	changing(t, false);
}

/* Writes an entry; after that it may be counted. */
static void fill(struct rwk_fi_av_entry *entry, const struct rwk_address *a)
{
	entry->address = *a;
	entry->here = is_partial(a) && rwk_address_is_here(a);
	entry->removed = false;
	atomic_signal_fence(memory_order_seq_cst);
}

/* The removed entry of that address in a shared table. */
static uint32_t find_removed(const struct rwk_fi_av_table *t, const struct rwk_address *a)
{
	const struct rwk_fi_av_entry as = {.address = *a, .here = is_partial(a) && rwk_address_is_here(a)};
	uint32_t i = *chain_with(t, &as);

	while (i != RWK_FI_AV_NONE && (!t->entries[i].removed || memcmp(&t->entries[i].address, a, sizeof(*a))))
		i = t->entries[i].next;
	return i;
}

/* The lowest number that is free. */
static uint32_t lowest_free(struct rwk_fi_av_table *t)
{
	uint32_t count = t->counts->count, words = (count + RWK_FI_AV_WORD - 1) / RWK_FI_AV_WORD;

	if (t->keeps_numbers)
		return count;
	while (t->first_hole < words && !t->holes[t->first_hole])
		t->first_hole++;
	if (t->first_hole == words)
		return count;
	return t->first_hole * RWK_FI_AV_WORD + (uint32_t)__builtin_ctzll(t->holes[t->first_hole]);
}

/* Twice the room, where there are no holes. The counts may be elsewhere then, too. */
static int extend(struct rwk_fi_av_table *t)
{
	uint32_t room = t->counts->room;
	int err = room < RWK_FI_AV_ROOM_MAX ? t->grow(t, 2 * room) : -FI_ENOMEM;

	if (err)
		return err;
	rwk_fi_av_rebuild(t);
	changing(t, true);
	return 0;
}

int rwk_fi_av_add(struct rwk_fi_av_table *t, const struct rwk_address *a, fi_addr_t *number)
{
	struct rwk_fi_av_counts *c;
	uint32_t i = t->keeps_numbers ? find_removed(t, a) : RWK_FI_AV_NONE;
	int err;

	if (i != RWK_FI_AV_NONE) {
		t->entries[i].removed = false;
		*number = i;
		return 0;
	}
	changing(t, true);
	i = lowest_free(t);
	err = i == t->counts->room ? extend(t) : 0;
	if (err) {
		changing(t, false);
		return err;
	}
	c = t->counts;
	fill(&t->entries[i], a);
	c->partials += is_partial(a);
	index_entry(t, i);
	if (i == c->count)
		c->count++;
	else
		t->holes[i / RWK_FI_AV_WORD] &= ~(1ull << i % RWK_FI_AV_WORD);
	changing(t, false);
	*number = i;
	return 0;
}

void rwk_fi_av_take(struct rwk_fi_av_table *t, uint32_t i)
{
	struct rwk_fi_av_counts *c = t->counts;
	struct rwk_fi_av_entry *entry = &t->entries[i];

	c->removals++;
	if (t->keeps_numbers) {
		entry->removed = true;
		return;
	}
	unindex_entry(t, i);
	c->partials -= is_partial(&entry->address);
	entry->address.version_srq = 0;
	t->holes[i / RWK_FI_AV_WORD] |= 1ull << i % RWK_FI_AV_WORD;
	if (i / RWK_FI_AV_WORD < t->first_hole)
		t->first_hole = i / RWK_FI_AV_WORD;
}

const struct rwk_fi_av_entry *rwk_fi_av_entry(const struct rwk_fi_av_table *t, fi_addr_t number)
{
	const struct rwk_fi_av_entry *entry = &t->entries[number < t->counts->count ? number : 0];

	return number < t->counts->count && is_used(entry) && !entry->removed ? entry : NULL;
}

static uint32_t find_full(const struct rwk_fi_av_table *t, const struct rwk_address *a)
{
	uint32_t i = *chain_of(t, a, false);

	while (i != RWK_FI_AV_NONE && (t->entries[i].removed || nonce_of(&t->entries[i].address) != nonce_of(a)))
		i = t->entries[i].next;
	return i;
}

static bool has_number(const struct rwk_address *a, uint32_t number)
{
	return number == ANY_NUMBER || (a->version_srq & 0xffffff) == number;
}

static uint32_t find_partial(const struct rwk_fi_av_table *t, const struct rwk_address *a, uint32_t number)
{
	uint32_t i = *chain_of(t, a, true);

	for (; i != RWK_FI_AV_NONE; i = t->entries[i].next) {
		const struct rwk_fi_av_entry *entry = &t->entries[i];

		if (!entry->removed && is_partial(&entry->address) && has_number(&entry->address, number) &&
			rwk_address_port(a) == rwk_address_port(&entry->address) &&
			!memcmp(a->ip, indexed_ip(entry), sizeof(a->ip)))
			break;
	}
	return i;
}

uint32_t rwk_fi_av_search(const struct rwk_fi_av_table *t, const struct rwk_address *a)
{
	uint32_t i = is_partial(a) ? RWK_FI_AV_NONE : find_full(t, a);
	struct rwk_address key;

	if (i == RWK_FI_AV_NONE && t->counts->partials) {
		key = by_port(a);
		i = find_partial(t, &key, ANY_NUMBER);
	}
	return i;
}

uint32_t rwk_fi_av_search_qp(const struct rwk_fi_av_table *t, const struct rwk_address *a, uint32_t qpn)
{
	const struct rwk_address key = by_port(a);

	return find_partial(t, &key, qpn);
}
