/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is said before a stream is open: four messages, one byte after the other, all numbers little-endian.
 *
 *     who connects                                            who listens
 *     knock    magic, version                            ->
 *                                                        <-   challenge  magic, version, 16 random bytes
 *     proof    nonce, nonce meant, port, 16 random bytes, MAC ->
 *                                                        <-   verdict    verdict, nonce, MAC
 *
 * Both MACs (SipHash-2-4 keyed with the secret) cover everything said before and who says it, so that none can be
 * played again, to the same end or to the other. Who listens says nothing about itself until the other has proven that
 * it knows the secret, and no answer is longer than what it answers. After a good verdict frames follow (carry.c).
 * This file is pure: bytes in, bytes out.
 */
#ifndef RWK_TCP_HELLO_H
#define RWK_TCP_HELLO_H

#include <stdint.h>

#define RWK_TCP_VERSION 1u

struct knock {
	uint8_t magic[8];
	uint32_t version;
	uint32_t zero[5];
};

struct challenge {
	uint8_t magic[8];
	uint32_t version;
	uint32_t zero;
	uint8_t random[16];
};

struct proof {
	uint64_t nonce; /* who connects */
	uint64_t meant; /* who is meant; 0: whoever is there */
	uint16_t port;  /* where the one who connects listens */
	uint16_t asks;  /* 1: no stream is wanted, only the answer whether the one meant is there */
	uint16_t zero[2];
	uint8_t random[16];
	uint64_t mac;
};

enum answer {
	WELCOME = 1, /* the stream is open */
	STALE = 2,   /* the one meant is not here */
	LATER = 3,   /* there is another stream between the two, or about to be; or none was wanted */
};

struct verdict {
	uint64_t answer; /* enum answer */
	uint64_t nonce;  /* who listens */
	uint64_t mac;
};

_Static_assert(
	sizeof(struct knock) == 32 && sizeof(struct challenge) == 32, "an answer is no longer than its question");
_Static_assert(sizeof(struct proof) == 48 && sizeof(struct verdict) == 24, "no padding");

void rwk_hello_knock(struct knock *k);
/** 0; -EPROTO: something else. Any version is good: the other end decides. */
int rwk_hello_check_knock(const struct knock *k);

/** With fresh random bytes. */
void rwk_hello_challenge(struct challenge *c);
/** 0; -EPROTO: something else; -EPROTONOSUPPORT: another version. */
int rwk_hello_check_challenge(const struct challenge *c);

/** Fills in random and mac; the rest is the caller's. */
void rwk_hello_prove(const uint64_t secret[2], const struct challenge *c, struct proof *p);
/** 0; -EACCES. */
int rwk_hello_check_proof(const uint64_t secret[2], const struct challenge *c, const struct proof *p);

/** Fills in mac. */
void rwk_hello_answer(const uint64_t secret[2], const struct challenge *c, const struct proof *p, struct verdict *v);
/** 0; -EACCES. */
int rwk_hello_check_verdict(
	const uint64_t secret[2], const struct challenge *c, const struct proof *p, const struct verdict *v);

#endif
