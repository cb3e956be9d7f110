/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what is said between nodes before there is a connection: a greeting (transports/packet), or the messages
 * before a stream is open (transports/links/tcp). From a stranger, who does not know the secret, and from one who does
 * and says what he likes. What must hold: of a stranger nothing is taken; of the other what is taken is in range, and
 * pack gives back the bytes that came.
 *
 *   byte 0 says who, and what; the message
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "links/tcp/hello.h"
#include "packet/greeting.h"
#include "rc/rc.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define MAC 16u

static const uint8_t key[RWK_GREETING_KEY] = {1, 2, 3};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void look_at(const struct rwk_greeting *g, const uint8_t *bytes)
{
	uint8_t out[RWK_WIRE_OWN_MAX];
	struct rwk_address other = g->from;
	struct rwk_greeting answer;

	must(g->type >= RWK_GREETING_CONNECT && g->type <= RWK_GREETING_CEASED);
	must(g->psn <= 0xffffff && g->qpn <= 0xffffff && g->window <= RWK_RC_WINDOW_MAX &&
		g->reads <= RWK_RC_READS_MAX);
	must(g->pmtu <= RWK_WIRE_OWN_MAX &&
		(g->type > RWK_GREETING_ACCEPT || (g->pmtu >= 256 && g->window && g->reads)));
	must(g->shared.srqn <= 0xffffff && g->shared.qpn <= 0xffffff && g->shared.target <= 0xffffff);
	must(!rwk_greeting_pack(g, key, out));
	must(!memcmp(out, bytes, RWK_GREETING_SIZE + g->pad));
	must(!rwk_greeting_meant(g, &g->to));
	if (g->to.flags_rank & RWK_ADDR_PARTIAL)
		return;
	other.nonce_port = g->to.nonce_port ^ 1ull << 20;
	must(rwk_greeting_meant(g, &other) == -ESTALE);
	rwk_greeting_answer(&answer, g, RWK_GREETING_BYE, &g->to);
	must(!rwk_greeting_pack(&answer, key, out));
}

static void greet(uint8_t *bytes, size_t len, bool known)
{
	struct rwk_greeting g;
	uint8_t version = 0;
	int rc;

	if (known && len >= MAC)
		crypto_generichash(bytes + len - MAC, MAC, bytes, len - MAC, key, sizeof(key));
	rc = rwk_greeting_unpack(bytes, len, key, &g, &version);
	must(rc == 0 || rc == -EBADMSG || rc == -EACCES || rc == -EPROTONOSUPPORT);
	must(known || (rc != 0 && rc != -EPROTONOSUPPORT));
	must(!known || rc != -EACCES);
	must(rc != -EPROTONOSUPPORT || version != RWK_GREETING_VERSION);
	if (rc)
		return;
	must(len == RWK_GREETING_SIZE + g.pad && version == RWK_GREETING_VERSION);
	look_at(&g, bytes);
}

/* Each message by itself, in a place that has no byte more. */
static void stream_opens(const uint8_t *bytes, size_t len)
{
	static const uint64_t secret[2] = {7, 9};
	struct {
		struct knock knock;
		struct challenge challenge;
		struct proof proof;
		struct verdict verdict;
	} said;
	int rc;

	memset(&said, 0, sizeof(said));
	memcpy(&said, bytes, len < sizeof(said) ? len : sizeof(said));
	rc = rwk_hello_check_knock(&said.knock);
	must(rc == 0 || rc == -EPROTO);
	rc = rwk_hello_check_challenge(&said.challenge);
	must(rc == 0 || rc == -EPROTO || rc == -EPROTONOSUPPORT);
	must(rc != -EPROTONOSUPPORT || said.challenge.version != RWK_TCP_VERSION);
	must(rwk_hello_check_proof(secret, &said.challenge, &said.proof) == -EACCES);
	must(rwk_hello_check_verdict(secret, &said.challenge, &said.proof, &said.verdict) == -EACCES);
	/* Who knows the secret may say what he likes, */
	rwk_hello_prove(secret, &said.challenge, &said.proof);
	must(!rwk_hello_check_proof(secret, &said.challenge, &said.proof));
	rwk_hello_answer(secret, &said.challenge, &said.proof, &said.verdict);
	must(!rwk_hello_check_verdict(secret, &said.challenge, &said.proof, &said.verdict));
	/* and to nobody else. */
	said.challenge.random[0] ^= 1;
	must(rwk_hello_check_proof(secret, &said.challenge, &said.proof) == -EACCES);
	must(rwk_hello_check_verdict(secret, &said.challenge, &said.proof, &said.verdict) == -EACCES);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t *copy;

	if (!len)
		return 0;
	copy = malloc(len > 1 ? len - 1 : 1);
	must(copy != NULL);
	if (len > 1)
		memcpy(copy, bytes + 1, len - 1);
	if (bytes[0] & 2)
		stream_opens(copy, len - 1);
	else
		greet(copy, len - 1, bytes[0] & 1);
	free(copy);
	return 0;
}
