/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How peers are found: by the nonce, or by the place. All have a place, since some are known by that alone. Of several
 * at one place, which have been there one after the other, only one can be there now, and we may know of none that it
 * is. So who is known by place alone and who is known by nonce are two peers until that is known: the transport finds
 * out when they answer (merge.c).
 */
#include "engine/internal.h"

#include "base/cancel.h"
#include "engine/job.h"

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

bool rwk_directory_finds(const struct rwk_engine *e, const struct rwk_address *a)
{
	int before;
	bool found;

	if (rwk_peer_is_partial(a) || a->node != e->address.node || !e->transport->finds)
		return false;
	before = rwk_cancel_hold_off();
	found = e->transport->finds(e->port, a);
	rwk_cancel_as_before(before);
	return found;
}

/** An IP that this host does not have any more, or may use without having it, is no reason to leave shared memory. */
static bool is_here(const struct rwk_engine *e, const struct rwk_address *a)
{
	return rwk_address_claims(a, e->address.node) || rwk_directory_finds(e, a);
}

static uint64_t nonce_of(const struct rwk_address *a)
{
	return a->nonce_port >> 16;
}

/* Hosts of a network differ in the last bytes alone, the upper ones of a word, which have to reach the low bits. */
static uint32_t hash_place(const struct place *key)
{
	uint32_t word[4], hash = key->port;

	memcpy(word, key->ip, sizeof(word));
	for (int i = 0; i < 4; i++)
		hash = (hash ^ word[i]) * 0x9e3779b1u;
	hash = (hash ^ hash >> 16) * 0x9e3779b1u;
	return hash ^ hash >> 13;
}

/* A nonce is drawn: its last bits are as good as any. */
static uint32_t nonce_hash(const struct rwk_hash_link *l)
{
	return (uint32_t)nonce_of(&rwk_container_of(l, struct rwk_peer, by_nonce)->address);
}

static uint32_t place_hash(const struct rwk_hash_link *l)
{
	const struct rwk_peer *p = rwk_container_of(l, struct rwk_peer, by_place);
	struct place key = place_of(&p->address, p->here);

	return hash_place(&key);
}

static bool is_at(const struct rwk_peer *p, const struct place *key)
{
	struct place its = place_of(&p->address, p->here);

	return its.port == key->port && !memcmp(its.ip, key->ip, sizeof(its.ip));
}

void rwk_directory_enter(struct rwk_peer *p)
{
	p->here = is_here(p->engine, &p->address);
	if (!rwk_peer_is_partial(&p->address))
		rwk_hash_add(&p->engine->by_nonce, &p->by_nonce);
	rwk_hash_add(&p->engine->by_place, &p->by_place);
}

void rwk_directory_correct(struct rwk_peer *p, const struct rwk_address *a)
{
	rwk_hash_remove(&p->engine->by_place, &p->by_place);
	p->address = *a;
	rwk_directory_enter(p);
}

/** Of one that is known to be another: that. */
static struct rwk_peer *itself(struct rwk_peer *p)
{
	return p && p->of ? p->of : p;
}

struct rwk_peer *rwk_directory_by_nonce(const struct rwk_engine *e, const struct rwk_address *a)
{
	for (struct rwk_hash_link *l = rwk_hash_list(&e->by_nonce, (uint32_t)nonce_of(a)); l; l = l->next) {
		struct rwk_peer *p = rwk_container_of(l, struct rwk_peer, by_nonce);

		if (nonce_of(&p->address) == nonce_of(a))
			return itself(p);
	}
	return NULL;
}

/** Is it known to be there still? By its place alone is known whoever is there. */
static bool is_there(const struct rwk_peer *p)
{
	const struct rwk_engine *e = p->engine;

	if (p->error)
		return false;
	if (p->self || rwk_peer_is_partial(&p->address))
		return true;
	if (p->here && e->transport->finds)
		return rwk_directory_finds(e, &p->address);
	return p->channel && p->channel->answered;
}

struct rwk_peer *rwk_directory_by_place(const struct rwk_engine *e, const struct rwk_address *a)
{
	struct place key = place_of(a, is_here(e, a));
	struct rwk_peer *latest = NULL;

	for (struct rwk_hash_link *l = rwk_hash_list(&e->by_place, hash_place(&key)); l; l = l->next) {
		struct rwk_peer *at = rwk_container_of(l, struct rwk_peer, by_place), *p = itself(at);

		if (!is_at(at, &key) || !is_there(p))
			continue;
		latest = p;
		if (rwk_peer_is_partial(&p->address))
			break;
	}
	return latest;
}

void rwk_directory_open(struct rwk_engine *e)
{
	rwk_hash_init(&e->by_nonce, nonce_hash);
	rwk_hash_init(&e->by_place, place_hash);
}

void rwk_directory_close(struct rwk_engine *e)
{
	rwk_hash_free(&e->by_nonce);
	rwk_hash_free(&e->by_place);
}
