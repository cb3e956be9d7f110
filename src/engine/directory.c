/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How peers are found: by the nonce, or by the place. All have a place, since some are known by that alone; of those at
 * one place the latest is found. A process may have a peer for each rank of a job, so the lists go on in the peers
 * themselves, and there are about as many as peers.
 */
#include "engine/internal.h"

#include "engine/job.h"

#include <stdlib.h>

#define FIRST 16u /* lists of a new directory */

/** Where an endpoint is: a port of this node, or an IP and a port elsewhere. */
struct place {
	uint8_t ip[16]; /* zero on this node */
	uint16_t port;
};

static struct place place_of(const struct rwk_address *a, bool here)
{
	struct place key = {.port = rwk_address_port(a)};

	if (!here)
		memcpy(key.ip, a->ip, sizeof(key.ip));
	return key;
}

static bool is_here(const struct rwk_engine *e, const struct rwk_address *a)
{
	return rwk_peer_is_partial(a) ? rwk_ip_is_local(a->ip) : a->node == e->address.node;
}

static uint64_t nonce_of(const struct rwk_address *a)
{
	return a->nonce_port >> 16;
}

static uint32_t hash_place(const struct place *key)
{
	uint32_t word[4], hash = key->port;

	memcpy(word, key->ip, sizeof(word));
	for (int i = 0; i < 4; i++)
		hash = (hash ^ word[i]) * 0x9e3779b1u;
	return hash ^ hash >> 16;
}

/* A nonce is drawn: its last bits are as good as any. */
static uint32_t hash_of(const struct rwk_peer *p, enum rwk_directory_kind kind)
{
	struct place key = place_of(&p->address, p->here);

	return kind == RWK_BY_NONCE ? (uint32_t)nonce_of(&p->address) : hash_place(&key);
}

static void put(struct rwk_directory *d, struct rwk_peer *p, enum rwk_directory_kind kind)
{
	struct rwk_peer **list = &d->first[hash_of(p, kind) & d->mask];

	p->next_by[kind] = *list;
	*list = p;
}

/** More lists; without memory for them those that there are become longer. */
static void grow(struct rwk_directory *d, enum rwk_directory_kind kind)
{
	struct rwk_directory more = {.mask = 2 * d->mask + 1, .count = d->count};

	more.first = calloc((size_t)more.mask + 1, sizeof(struct rwk_peer *));
	if (!more.first)
		return;
	for (uint32_t i = 0; i <= d->mask; i++) {
		for (struct rwk_peer *p = d->first[i], *next; p; p = next) {
			next = p->next_by[kind];
			put(&more, p, kind);
		}
	}
	free(d->first);
	*d = more;
}

static void add(struct rwk_peer *p, enum rwk_directory_kind kind)
{
	struct rwk_directory *d = &p->engine->directory[kind];

	if (d->count++ > d->mask)
		grow(d, kind);
	put(d, p, kind);
}

static void remove_place(struct rwk_peer *p)
{
	struct rwk_directory *d = &p->engine->directory[RWK_BY_PLACE];
	struct rwk_peer **at = &d->first[hash_of(p, RWK_BY_PLACE) & d->mask];

	while (*at != p)
		at = &(*at)->next_by[RWK_BY_PLACE];
	*at = p->next_by[RWK_BY_PLACE];
	d->count--;
}

static struct rwk_peer *find_place(const struct rwk_engine *e, const struct place *key)
{
	const struct rwk_directory *d = &e->directory[RWK_BY_PLACE];
	struct rwk_peer *p = d->first[hash_place(key) & d->mask];

	for (; p; p = p->next_by[RWK_BY_PLACE]) {
		struct place its = place_of(&p->address, p->here);

		if (its.port == key->port && !memcmp(its.ip, key->ip, sizeof(its.ip)))
			return p;
	}
	return NULL;
}

void rwk_directory_enter(struct rwk_peer *p)
{
	struct rwk_peer *old;
	struct place key;

	p->here = is_here(p->engine, &p->address);
	key = place_of(&p->address, p->here);
	if (!rwk_peer_is_partial(&p->address))
		add(p, RWK_BY_NONCE);
	old = find_place(p->engine, &key);
	if (old)
		remove_place(old);
	add(p, RWK_BY_PLACE);
}

void rwk_directory_correct(struct rwk_peer *p, const struct rwk_address *a)
{
	struct place key = place_of(&p->address, p->here);

	if (find_place(p->engine, &key) == p)
		remove_place(p);
	p->address = *a;
	rwk_directory_enter(p);
}

struct rwk_peer *rwk_directory_by_nonce(const struct rwk_engine *e, const struct rwk_address *a)
{
	const struct rwk_directory *d = &e->directory[RWK_BY_NONCE];
	struct rwk_peer *p = d->first[(uint32_t)nonce_of(a) & d->mask];

	while (p && nonce_of(&p->address) != nonce_of(a))
		p = p->next_by[RWK_BY_NONCE];
	return p;
}

struct rwk_peer *rwk_directory_by_place(const struct rwk_engine *e, const struct rwk_address *a)
{
	struct place key = place_of(a, is_here(e, a));

	return find_place(e, &key);
}

int rwk_directories_open(struct rwk_engine *e)
{
	for (int kind = 0; kind < RWK_DIRECTORIES; kind++) {
		e->directory[kind] = (struct rwk_directory){
			.first = calloc(FIRST, sizeof(struct rwk_peer *)), .mask = FIRST - 1};
		if (!e->directory[kind].first) {
			rwk_directories_close(e);
			return -ENOMEM;
		}
	}
	return 0;
}

void rwk_directories_close(struct rwk_engine *e)
{
	for (int kind = 0; kind < RWK_DIRECTORIES; kind++) {
		free(e->directory[kind].first);
		e->directory[kind].first = NULL;
	}
}
