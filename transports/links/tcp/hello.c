/* SPDX-License-Identifier: BSD-3-Clause */
#include "links/tcp/hello.h"

#include <errno.h>
#include <string.h>

#include <sodium.h>

_Static_assert(crypto_shorthash_KEYBYTES == 16 && crypto_shorthash_BYTES == 8, "the secret is the key");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the messages are little-endian");

static const uint8_t magic[8] = {'r', 'o', 'p', 'e', 't', 'c', 'p', '\n'};

/* All that has been said, in the order that it was; the last field, the MAC itself, is left out. */
struct said {
	struct challenge challenge;
	struct proof proof;
	struct verdict verdict;
};

static uint64_t mac_of(const uint64_t secret[2], const struct said *said, size_t len)
{
	uint64_t mac;

	crypto_shorthash((uint8_t *)&mac, (const uint8_t *)said, len, (const uint8_t *)secret);
	return mac;
}

static uint64_t mac_of_proof(const uint64_t secret[2], const struct challenge *c, const struct proof *p)
{
	struct said said = {.challenge = *c, .proof = *p};

	return mac_of(secret, &said, offsetof(struct said, proof.mac));
}

/* It covers the proof's MAC too, and is of another length than what that covers: neither can stand for the other. */
static uint64_t mac_of_verdict(
	const uint64_t secret[2], const struct challenge *c, const struct proof *p, const struct verdict *v)
{
	struct said said = {.challenge = *c, .proof = *p, .verdict = *v};

	return mac_of(secret, &said, offsetof(struct said, verdict.mac));
}

static int compare(uint64_t a, uint64_t b)
{
	return sodium_memcmp(&a, &b, sizeof(a)) ? -EACCES : 0;
}

void rwk_hello_knock(struct knock *k)
{
	memset(k, 0, sizeof(*k));
	memcpy(k->magic, magic, sizeof(magic));
	k->version = RWK_TCP_VERSION;
}

int rwk_hello_check_knock(const struct knock *k)
{
	return memcmp(k->magic, magic, sizeof(magic)) ? -EPROTO : 0;
}

void rwk_hello_challenge(struct challenge *c)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->magic, magic, sizeof(magic));
	c->version = RWK_TCP_VERSION;
	randombytes_buf(c->random, sizeof(c->random));
}

int rwk_hello_check_challenge(const struct challenge *c)
{
	if (memcmp(c->magic, magic, sizeof(magic)))
		return -EPROTO;
	return c->version == RWK_TCP_VERSION ? 0 : -EPROTONOSUPPORT;
}

void rwk_hello_prove(const uint64_t secret[2], const struct challenge *c, struct proof *p)
{
	randombytes_buf(p->random, sizeof(p->random));
	p->mac = mac_of_proof(secret, c, p);
}

int rwk_hello_check_proof(const uint64_t secret[2], const struct challenge *c, const struct proof *p)
{
	return compare(p->mac, mac_of_proof(secret, c, p));
}

void rwk_hello_answer(const uint64_t secret[2], const struct challenge *c, const struct proof *p, struct verdict *v)
{
	v->mac = mac_of_verdict(secret, c, p, v);
}

int rwk_hello_check_verdict(
	const uint64_t secret[2], const struct challenge *c, const struct proof *p, const struct verdict *v)
{
	return compare(v->mac, mac_of_verdict(secret, c, p, v));
}
