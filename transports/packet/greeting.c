/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/greeting.h"

#include "rc/rc.h"
#include "wire/wire.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#define MAC       16u /* bytes */
#define MAGIC     "RWKG"
#define ERRNO_MAX 4095

/* Where the fields are; HANDSHAKE.md has the table. Magic, version and the MAC at the end stay there in all versions.
 */
enum place {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_TYPE = 5,
	AT_REASON = 6,
	AT_FROM = 8,
	AT_TO = 48,
	AT_QPN = 88,
	AT_PSN = 92,
	AT_PMTU = 96,
	AT_WINDOW = 98,
	AT_READS = 100,
	AT_MACHINE = 101, /* three bytes */
	AT_FEATURES = 104,
	AT_ROOM = 108,
	AT_ECHO = 112,
	AT_SHARED_DOMAIN = 120,
	AT_SHARED_SRQN = 128,
	AT_SHARED_TARGET = 132,
	AT_SHARED_QPN = 136,
	AT_SHARED_PSN = 140,
	AT_SHARED_PORT = 144,
	AT_PAD = 146,
	AT_END = 148, /* so many zero bytes as AT_PAD says, then the MAC */
};

_Static_assert(AT_END + MAC == RWK_GREETING_SIZE, "the MAC ends a greeting");

static void put16(uint8_t *to, uint16_t v)
{
	v = htole16(v);
	memcpy(to, &v, sizeof(v));
}

static void put24(uint8_t *to, uint32_t v)
{
	v = htole32(v);
	memcpy(to, &v, 3);
}

static void put32(uint8_t *to, uint32_t v)
{
	v = htole32(v);
	memcpy(to, &v, sizeof(v));
}

static void put64(uint8_t *to, uint64_t v)
{
	v = htole64(v);
	memcpy(to, &v, sizeof(v));
}

static uint16_t get16(const uint8_t *from)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	return le16toh(v);
}

static uint32_t get24(const uint8_t *from)
{
	uint32_t v = 0;

	memcpy(&v, from, 3);
	return le32toh(v);
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return le64toh(v);
}

/*
 * BLAKE2b works without sodium_init, which would only choose a faster variant of it, and which takes random numbers
 * that are not needed here.
 */
static void make_mac(const uint8_t *bytes, size_t len, const uint8_t *key, uint8_t *mac)
{
	crypto_generichash(mac, MAC, bytes, len, key, RWK_GREETING_KEY);
}

static bool is_partial(const struct rwk_address *a)
{
	return a->flags_rank & RWK_ADDR_PARTIAL;
}

static uint64_t nonce_of(const struct rwk_address *a)
{
	return a->nonce_port >> 16;
}

static bool complete_address_good(const struct rwk_address *a)
{
	return a->version_srq >> 24 == RWK_ADDR_VERSION && !(a->flags_rank >> 24) && nonce_of(a) && rwk_address_port(a);
}

/* What a program knows that was given an IP and a port has all else zero, but for the version perhaps. */
static bool partial_address_good(const struct rwk_address *a)
{
	return !(a->version_srq & 0xffffffu) && a->flags_rank == RWK_ADDR_PARTIAL && !a->job && !a->node &&
	       !nonce_of(a) && rwk_address_port(a);
}

static bool qpn_good(uint32_t qpn)
{
	return qpn >= 2 && qpn <= 0xfffffeu;
}

static bool all_zero(const uint8_t *bytes, size_t len)
{
	while (len && !bytes[len - 1])
		len--;
	return !len;
}

static bool none_shared(const struct rwk_greeting_shared *s)
{
	return !s->domain && !s->srqn && !s->target && !s->qpn && !s->psn && !s->port;
}

static bool shared_good(const struct rwk_greeting *g)
{
	const struct rwk_greeting_shared *s = &g->shared;
	bool target_good = g->type == RWK_GREETING_CONNECT ? !s->target : qpn_good(s->target);

	if (!(g->features & RWK_GREETING_SHARED))
		return none_shared(s);
	return s->domain && s->srqn && s->srqn <= 0xffffffu && target_good && qpn_good(s->qpn) && s->psn <= 0xffffffu &&
	       s->port;
}

static bool terms_good(const struct rwk_greeting *g)
{
	return !g->reason && g->pad <= RWK_GREETING_PAD_MAX && g->pad % 4 == 0 && qpn_good(g->qpn) &&
	       g->psn <= 0xffffffu && rwk_wire_is_pmtu(g->pmtu) && g->window && g->window <= RWK_RC_WINDOW_MAX &&
	       g->reads && g->reads <= RWK_RC_READS_MAX && g->machine <= 0xffffffu && shared_good(g);
}

/* Nothing but a QPN, what is believed, and a length. */
static bool probe_good(const struct rwk_greeting *g)
{
	return qpn_good(g->qpn) && !g->psn && !g->window && !g->reads && !g->machine && !g->features && !g->room &&
	       !g->reason && g->pad <= RWK_GREETING_PAD_MAX && g->pad % 4 == 0 && none_shared(&g->shared);
}

/* Neither terms, but perhaps for what is shared, nor a length. */
static bool bare(const struct rwk_greeting *g)
{
	return !g->psn && !g->pmtu && !g->window && !g->reads && !g->machine && !g->features && !g->room && !g->pad;
}

static bool no_terms(const struct rwk_greeting *g)
{
	return (!g->qpn || qpn_good(g->qpn)) && bare(g) && none_shared(&g->shared);
}

/* An initiator, and the target of which domain it was aimed at. */
static bool cease_good(const struct rwk_greeting *g)
{
	const struct rwk_greeting_shared *s = &g->shared;

	return qpn_good(g->qpn) && bare(g) && !g->reason && s->domain && qpn_good(s->target) && !s->srqn && !s->qpn &&
	       !s->psn && !s->port;
}

static bool good(const struct rwk_greeting *g)
{
	if (!complete_address_good(&g->from))
		return false;
	if (!complete_address_good(&g->to) && (g->type != RWK_GREETING_CONNECT || !partial_address_good(&g->to)))
		return false;
	switch (g->type) {
	case RWK_GREETING_CONNECT:
	case RWK_GREETING_ACCEPT:
		return terms_good(g);
	case RWK_GREETING_REFUSE:
		return no_terms(g) && g->reason < 0 && g->reason >= -ERRNO_MAX;
	case RWK_GREETING_PROBE:
		return probe_good(g) && rwk_wire_is_pmtu(g->pmtu);
	case RWK_GREETING_PROBED:
		return probe_good(g) && !g->pmtu;
	case RWK_GREETING_BYE:
	case RWK_GREETING_RELEASE:
		return no_terms(g) && !g->reason;
	case RWK_GREETING_CEASE:
	case RWK_GREETING_CEASED:
		return cease_good(g);
	default:
		return false;
	}
}

int rwk_greeting_pack(const struct rwk_greeting *g, const uint8_t *key, uint8_t *out)
{
	if (!good(g))
		return -EINVAL;
	memcpy(out + AT_MAGIC, MAGIC, 4);
	out[AT_VERSION] = RWK_GREETING_VERSION;
	out[AT_TYPE] = g->type;
	put16(out + AT_REASON, (uint16_t)g->reason);
	memcpy(out + AT_FROM, &g->from, sizeof(g->from));
	memcpy(out + AT_TO, &g->to, sizeof(g->to));
	put32(out + AT_QPN, g->qpn);
	put32(out + AT_PSN, g->psn);
	put16(out + AT_PMTU, g->pmtu);
	put16(out + AT_WINDOW, g->window);
	out[AT_READS] = g->reads;
	put24(out + AT_MACHINE, g->machine);
	put32(out + AT_FEATURES, g->features);
	put32(out + AT_ROOM, g->room);
	put64(out + AT_ECHO, g->echo);
	put64(out + AT_SHARED_DOMAIN, g->shared.domain);
	put32(out + AT_SHARED_SRQN, g->shared.srqn);
	put32(out + AT_SHARED_TARGET, g->shared.target);
	put32(out + AT_SHARED_QPN, g->shared.qpn);
	put32(out + AT_SHARED_PSN, g->shared.psn);
	put16(out + AT_SHARED_PORT, g->shared.port);
	put16(out + AT_PAD, g->pad);
	memset(out + AT_END, 0, g->pad);
	make_mac(out, AT_END + g->pad, key, out + AT_END + g->pad);
	return 0;
}

/* The fields of a greeting of this version. */
static int read_fields(const uint8_t *bytes, size_t len, struct rwk_greeting *g)
{
	struct rwk_greeting r = {
		.type = bytes[AT_TYPE],
		.reason = (int16_t)get16(bytes + AT_REASON),
		.qpn = get32(bytes + AT_QPN),
		.psn = get32(bytes + AT_PSN),
		.pmtu = get16(bytes + AT_PMTU),
		.window = get16(bytes + AT_WINDOW),
		.reads = bytes[AT_READS],
		.machine = get24(bytes + AT_MACHINE),
		.features = get32(bytes + AT_FEATURES),
		.room = get32(bytes + AT_ROOM),
		.pad = get16(bytes + AT_PAD),
		.echo = get64(bytes + AT_ECHO),
		.shared = {.domain = get64(bytes + AT_SHARED_DOMAIN),
			.srqn = get32(bytes + AT_SHARED_SRQN),
			.target = get32(bytes + AT_SHARED_TARGET),
			.qpn = get32(bytes + AT_SHARED_QPN),
			.psn = get32(bytes + AT_SHARED_PSN),
			.port = get16(bytes + AT_SHARED_PORT)},
	};

	memcpy(&r.from, bytes + AT_FROM, sizeof(r.from));
	memcpy(&r.to, bytes + AT_TO, sizeof(r.to));
	if (!good(&r) || len != RWK_GREETING_SIZE + r.pad || !all_zero(bytes + AT_END, r.pad))
		return -EBADMSG;
	*g = r;
	return 0;
}

int rwk_greeting_unpack(const uint8_t *bytes, size_t len, const uint8_t *key, struct rwk_greeting *g, uint8_t *version)
{
	uint8_t mac[MAC];

	if (len < AT_TYPE + MAC || memcmp(bytes + AT_MAGIC, MAGIC, 4) != 0)
		return -EBADMSG;
	make_mac(bytes, len - MAC, key, mac);
	if (crypto_verify_16(mac, bytes + len - MAC))
		return -EACCES;
	if (version)
		*version = bytes[AT_VERSION];
	if (bytes[AT_VERSION] != RWK_GREETING_VERSION)
		return -EPROTONOSUPPORT;
	return len >= RWK_GREETING_SIZE ? read_fields(bytes, len, g) : -EBADMSG;
}

int rwk_greeting_meant(const struct rwk_greeting *g, const struct rwk_address *me)
{
	return is_partial(&g->to) || nonce_of(&g->to) == nonce_of(me) ? 0 : -ESTALE;
}

void rwk_greeting_answer(
	struct rwk_greeting *a, const struct rwk_greeting *q, enum rwk_greeting_type type, const struct rwk_address *me)
{
	*a = (struct rwk_greeting){.type = (uint8_t)type, .from = *me, .to = q->from, .echo = q->echo};
}
