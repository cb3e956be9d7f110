/* SPDX-License-Identifier: BSD-3-Clause */
/* Greetings: every byte where HANDSHAKE.md has it, and nothing believed that is out of range, changed, or a stranger's.
 */
#include "rwk_test.h"

#include "packet/greeting.h"
#include "rc/rc.h"

#include <sodium.h>

#define MAC 16

static const uint8_t key[RWK_GREETING_KEY] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
	21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static const struct rwk_greeting sample = {
	.type = RWK_GREETING_CONNECT,
	.from = {.version_srq = 0x01000007,
		.flags_rank = 5,
		.job = 0x11121314,
		.node = 0x21222324,
		.nonce_port = UINT64_C(0x313233343536c350),
		.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3}},
	.to = {.version_srq = 0x01000000,
		.flags_rank = 9,
		.job = 0x11121314,
		.node = 0x41424344,
		.nonce_port = UINT64_C(0x515253545556c351),
		.ip = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}},
	.qpn = 0xabcdef,
	.psn = 0x123456,
	.pmtu = 1024,
	.window = 200,
	.reads = 16,
	.machine = 0xa1a2a3,
	.features = 0x000b0007,
	.room = 212992,
	.shared = {.domain = UINT64_C(0x6162636465666768),
		.srqn = 0x717273,
		.qpn = 0x818283,
		.psn = 0x919293,
		.port = 0xc352},
	.echo = UINT64_C(0x0102030405060708),
};

/* The sample's bytes by the table in HANDSHAKE.md; the MAC is another implementation's of BLAKE2b. */
static const uint8_t sample_bytes[RWK_GREETING_SIZE] = {0x52, 0x57, 0x4b, 0x47, 0x0f, 0x01, 0x00, 0x00, 0x07, 0x00,
	0x00, 0x01, 0x05, 0x00, 0x00, 0x00, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x50, 0xc3, 0x36, 0x35,
	0x34, 0x33, 0x32, 0x31, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x0a, 0x01,
	0x02, 0x03, 0x00, 0x00, 0x00, 0x01, 0x09, 0x00, 0x00, 0x00, 0x14, 0x13, 0x12, 0x11, 0x44, 0x43, 0x42, 0x41,
	0x51, 0xc3, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xef, 0xcd, 0xab, 0x00, 0x56, 0x34, 0x12, 0x00, 0x00, 0x04, 0xc8, 0x00,
	0x10, 0xa3, 0xa2, 0xa1, 0x07, 0x00, 0x0b, 0x00, 0x00, 0x40, 0x03, 0x00, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
	0x02, 0x01, 0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, 0x73, 0x72, 0x71, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x83, 0x82, 0x81, 0x00, 0x93, 0x92, 0x91, 0x00, 0x52, 0xc3, 0x00, 0x00, 0xc5, 0x51, 0x55, 0xda, 0x8b, 0xe0,
	0x2c, 0xe1, 0x2c, 0xbd, 0x1b, 0xa4, 0xfe, 0x4b, 0x03, 0xf6};

/* A right MAC for `len` bytes in all, as somebody of the job who builds greetings in another way would make it. */
static void seal(uint8_t *bytes, size_t len)
{
	assert_int_equal(crypto_generichash(bytes + len - MAC, MAC, bytes, len - MAC, key, sizeof(key)), 0);
}

static void assert_same(const struct rwk_greeting *a, const struct rwk_greeting *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->reason, b->reason);
	assert_memory_equal(&a->from, &b->from, sizeof(a->from));
	assert_memory_equal(&a->to, &b->to, sizeof(a->to));
	assert_int_equal(a->qpn, b->qpn);
	assert_int_equal(a->psn, b->psn);
	assert_int_equal(a->pmtu, b->pmtu);
	assert_int_equal(a->window, b->window);
	assert_int_equal(a->reads, b->reads);
	assert_int_equal(a->machine, b->machine);
	assert_int_equal(a->features, b->features);
	assert_int_equal(a->room, b->room);
	assert_int_equal(a->pad, b->pad);
	assert_int_equal(a->shared.domain, b->shared.domain);
	assert_int_equal(a->shared.srqn, b->shared.srqn);
	assert_int_equal(a->shared.target, b->shared.target);
	assert_int_equal(a->shared.qpn, b->shared.qpn);
	assert_int_equal(a->shared.psn, b->shared.psn);
	assert_int_equal(a->shared.port, b->shared.port);
	assert_int_equal(a->echo, b->echo);
}

/* Every byte of the table, the MAC among them; written and read. */
static void layout(void **state)
{
	uint8_t out[RWK_GREETING_SIZE], version = 0;
	struct rwk_greeting g;

	(void)state;
	assert_int_equal(rwk_greeting_pack(&sample, key, out), 0);
	assert_memory_equal(out, sample_bytes, sizeof(out));
	assert_int_equal(rwk_greeting_unpack(sample_bytes, sizeof(sample_bytes), key, &g, &version), 0);
	assert_same(&g, &sample);
	assert_int_equal(version, RWK_GREETING_VERSION);
}

static void round_trip(const struct rwk_greeting *g)
{
	uint8_t room[RWK_GREETING_SIZE + 2], *out = room + 1; /* not aligned */
	struct rwk_greeting back;

	room[0] = room[sizeof(room) - 1] = 0x5a;
	assert_int_equal(rwk_greeting_pack(g, key, out), 0);
	assert_int_equal(room[0], 0x5a);
	assert_int_equal(room[sizeof(room) - 1], 0x5a);
	assert_int_equal(rwk_greeting_unpack(out, RWK_GREETING_SIZE, key, &back, NULL), 0);
	assert_same(&back, g);
}

/* All types, and the ends of every range. */
static void ranges(void **state)
{
	static const struct rwk_greeting low = {.qpn = 2, .psn = 0, .pmtu = 256, .window = 1, .reads = 1},
					 high = {.qpn = 0xfffffe,
						 .psn = 0xffffff,
						 .pmtu = RWK_WIRE_OWN_MAX,
						 .window = RWK_RC_WINDOW_MAX,
						 .reads = RWK_RC_READS_MAX,
						 .machine = 0xffffff,
						 .features = UINT32_MAX,
						 .room = UINT32_MAX,
						 .shared = {.domain = UINT64_MAX,
							 .srqn = 0xffffff,
							 .qpn = 0xfffffe,
							 .psn = 0xffffff,
							 .port = UINT16_MAX},
						 .echo = UINT64_MAX};
	struct rwk_greeting g;

	(void)state;
	for (int i = 0; i < 4; i++) {
		g = i & 1 ? high : low;
		g.type = i & 2 ? RWK_GREETING_CONNECT : RWK_GREETING_ACCEPT;
		if (i == 1)
			g.shared.target = 0xfffffe;
		g.from = sample.from;
		g.to = sample.to;
		round_trip(&g);
	}
	g.type = RWK_GREETING_CONNECT;
	memset(&g.to, 0, sizeof(g.to));
	g.to.flags_rank = RWK_ADDR_PARTIAL;
	g.to.nonce_port = 1;
	round_trip(&g);
	g.to.version_srq = RWK_ADDR_VERSION << 24;
	round_trip(&g);
	g = (struct rwk_greeting){.type = RWK_GREETING_REFUSE, .reason = -ESTALE, .from = sample.from, .to = sample.to};
	round_trip(&g);
	g.reason = -4095;
	g.qpn = 2;
	round_trip(&g);
	g.type = RWK_GREETING_BYE;
	g.reason = 0;
	g.echo = 7;
	round_trip(&g);
	g.qpn = 0;
	round_trip(&g);
	g.type = RWK_GREETING_RELEASE;
	round_trip(&g);
	g.shared.domain = UINT64_MAX;
	for (int i = 0; i < 2; i++) {
		g.type = i ? RWK_GREETING_CEASED : RWK_GREETING_CEASE;
		g.qpn = g.shared.target = i ? 0xfffffe : 2;
		round_trip(&g);
	}
}

/* One field of a greeting that is wrong, in bytes: `size` bytes at `at` become `value`. */
struct wrong {
	const char *what;
	uint8_t type;
	uint8_t at, size;
	uint64_t value;
};

static const struct wrong wrongs[] = {
	{"type 0", RWK_GREETING_CONNECT, 5, 1, 0},
	{"type 6", RWK_GREETING_CONNECT, 5, 1, 6},
	{"type 255", RWK_GREETING_CONNECT, 5, 1, 255},
	{"a reason in a CONNECT", RWK_GREETING_CONNECT, 6, 2, 0xffff},
	{"a reason in an ACCEPT", RWK_GREETING_ACCEPT, 6, 2, 0xffff},
	{"a reason in a BYE", RWK_GREETING_BYE, 6, 2, 0xffff},
	{"no reason in a REFUSE", RWK_GREETING_REFUSE, 6, 2, 0},
	{"a positive reason", RWK_GREETING_REFUSE, 6, 2, ESTALE},
	{"a reason that is no errno", RWK_GREETING_REFUSE, 6, 2, 0xf000},
	{"the least reason", RWK_GREETING_REFUSE, 6, 2, 0x8000},
	{"from of another address version", RWK_GREETING_CONNECT, 11, 1, 2},
	{"from partial", RWK_GREETING_CONNECT, 15, 1, 1},
	{"from with a flag nobody knows", RWK_GREETING_CONNECT, 15, 1, 2},
	{"from without a port", RWK_GREETING_CONNECT, 24, 2, 0},
	{"from without a nonce", RWK_GREETING_CONNECT, 26, 6, 0},
	{"to of another address version", RWK_GREETING_CONNECT, 51, 1, 0},
	{"to partial with a rank", RWK_GREETING_CONNECT, 55, 1, 1},
	{"to with a flag nobody knows", RWK_GREETING_CONNECT, 55, 1, 0x80},
	{"to without a port", RWK_GREETING_CONNECT, 64, 2, 0},
	{"to without a nonce", RWK_GREETING_CONNECT, 66, 6, 0},
	{"QPN 0", RWK_GREETING_CONNECT, 88, 4, 0},
	{"QPN 1", RWK_GREETING_ACCEPT, 88, 4, 1},
	{"the multicast QPN", RWK_GREETING_CONNECT, 88, 4, 0xffffff},
	{"a QPN of 25 bits", RWK_GREETING_ACCEPT, 88, 4, 0x1000002},
	{"QPN 1 in a BYE", RWK_GREETING_BYE, 88, 4, 1},
	{"a PSN of 25 bits", RWK_GREETING_CONNECT, 92, 4, 0x1000000},
	{"PMTU 0", RWK_GREETING_CONNECT, 96, 2, 0},
	{"PMTU 128", RWK_GREETING_CONNECT, 96, 2, 128},
	{"PMTU 257", RWK_GREETING_CONNECT, 96, 2, 257},
	{"PMTU 1500", RWK_GREETING_ACCEPT, 96, 2, 1500},
	{"PMTU 8768", RWK_GREETING_CONNECT, 96, 2, 8768},
	{"window 0", RWK_GREETING_CONNECT, 98, 2, 0},
	{"window 257", RWK_GREETING_CONNECT, 98, 2, RWK_RC_WINDOW_MAX + 1},
	{"no Reads", RWK_GREETING_CONNECT, 100, 1, 0},
	{"17 Reads", RWK_GREETING_CONNECT, 100, 1, RWK_RC_READS_MAX + 1},
	{"a machine in a REFUSE", RWK_GREETING_REFUSE, 103, 1, 1},
	{"a PSN in a REFUSE", RWK_GREETING_REFUSE, 92, 4, 1},
	{"a PMTU in a REFUSE", RWK_GREETING_REFUSE, 96, 2, 256},
	{"a window in a BYE", RWK_GREETING_BYE, 98, 2, 1},
	{"Reads in a BYE", RWK_GREETING_BYE, 100, 1, 1},
	{"features in a REFUSE", RWK_GREETING_REFUSE, 104, 4, 1},
	{"room in a BYE", RWK_GREETING_BYE, 108, 4, 1},
	{"shared terms without the feature", RWK_GREETING_CONNECT, 106, 1, 3},
	{"no domain", RWK_GREETING_CONNECT, 120, 8, 0},
	{"SRQ number 0", RWK_GREETING_CONNECT, 128, 4, 0},
	{"an SRQ number of 25 bits", RWK_GREETING_CONNECT, 128, 4, 0x1000000},
	{"a target in a CONNECT", RWK_GREETING_CONNECT, 132, 4, 2},
	{"no target in an ACCEPT", RWK_GREETING_ACCEPT, 132, 4, 0},
	{"target 1", RWK_GREETING_ACCEPT, 132, 4, 1},
	{"initiator 1", RWK_GREETING_CONNECT, 136, 4, 1},
	{"a shared PSN of 25 bits", RWK_GREETING_CONNECT, 140, 4, 0x1000000},
	{"no port of the domain", RWK_GREETING_CONNECT, 144, 2, 0},
	{"padding that is not there", RWK_GREETING_CONNECT, 146, 2, 0x100},
	{"padding of a BYE", RWK_GREETING_BYE, 146, 2, 1},
	{"a reason in a RELEASE", RWK_GREETING_RELEASE, 6, 2, 0xffff},
	{"a PSN in a RELEASE", RWK_GREETING_RELEASE, 92, 4, 1},
	{"a domain in a BYE", RWK_GREETING_BYE, 120, 8, 1},
	{"a CEASE of no initiator", RWK_GREETING_CEASE, 88, 4, 0},
	{"a CEASE of QPN 1", RWK_GREETING_CEASE, 88, 4, 1},
	{"a reason in a CEASE", RWK_GREETING_CEASE, 6, 2, 0xffff},
	{"a PSN in a CEASE", RWK_GREETING_CEASE, 92, 4, 1},
	{"features in a CEASE", RWK_GREETING_CEASE, 104, 4, 1},
	{"a CEASE to no domain", RWK_GREETING_CEASE, 120, 8, 0},
	{"a CEASE of no target", RWK_GREETING_CEASE, 132, 4, 0},
	{"a CEASE of a target of 25 bits", RWK_GREETING_CEASE, 132, 4, 0x1000002},
	{"an SRQ number in a CEASE", RWK_GREETING_CEASE, 128, 4, 1},
	{"an initiator among the terms of a CEASE", RWK_GREETING_CEASE, 136, 4, 2},
	{"a first PSN in a CEASED", RWK_GREETING_CEASED, 140, 4, 1},
	{"a port in a CEASED", RWK_GREETING_CEASED, 144, 2, 1},
	{"an SRQ number in a REFUSE", RWK_GREETING_REFUSE, 128, 4, 1},
};

static struct rwk_greeting of_type(uint8_t type)
{
	struct rwk_greeting g = sample;

	g.type = type;
	if (type == RWK_GREETING_ACCEPT)
		g.shared.target = 0xa1a2a3;
	if (type >= RWK_GREETING_REFUSE)
		g = (struct rwk_greeting){.type = type, .from = sample.from, .to = sample.to, .echo = 1};
	if (type == RWK_GREETING_REFUSE)
		g.reason = -ESTALE;
	if (type >= RWK_GREETING_CEASE) {
		g.qpn = 0x818283;
		g.shared.domain = 7;
		g.shared.target = 0xa1a2a3;
	}
	return g;
}

/* Each field out of its range is refused under a right MAC, with the outputs as they were. */
static void wrong_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *w = &wrongs[i];
		struct rwk_greeting g = of_type(w->type), back, untouched;
		uint8_t out[RWK_GREETING_SIZE];

		assert_int_equal(rwk_greeting_pack(&g, key, out), 0);
		for (int b = 0; b < w->size; b++)
			out[w->at + b] = (uint8_t)(w->value >> 8 * b);
		seal(out, sizeof(out));
		memset(&back, 0x5a, sizeof(back));
		untouched = back;
		if (rwk_greeting_unpack(out, sizeof(out), key, &back, NULL) != -EBADMSG)
			fail_msg("%s is believed", w->what);
		assert_memory_equal(&back, &untouched, sizeof(back));
	}
}

/* What unpack would refuse, pack does not make. */
static void nothing_wrong_is_packed(void **state)
{
	uint8_t out[RWK_GREETING_SIZE] = {0}, zero[RWK_GREETING_SIZE] = {0};
	struct rwk_greeting g[9];

	(void)state;
	for (int i = 0; i < 9; i++)
		g[i] = sample;
	g[0].type = 0;
	g[1].qpn = 1;
	g[2].psn = 0x1000000;
	g[3].pmtu = 1500;
	g[4].window = 257;
	g[5].reads = 0;
	g[6].from.flags_rank |= RWK_ADDR_PARTIAL;
	g[7].type = RWK_GREETING_BYE;
	g[8].machine = 0x1000000;
	for (int i = 0; i < 9; i++)
		assert_int_equal(rwk_greeting_pack(&g[i], key, out), -EINVAL);
	assert_memory_equal(out, zero, sizeof(out));
}

/* Only a CONNECT may be for an IP and a port alone; and then it names nothing else. */
static void partial_addresses(void **state)
{
	static const struct rwk_address partial = {
		.version_srq = RWK_ADDR_VERSION << 24, .flags_rank = RWK_ADDR_PARTIAL, .nonce_port = 4791};
	struct rwk_greeting g;
	uint8_t out[RWK_GREETING_SIZE];

	(void)state;
	for (uint8_t type = RWK_GREETING_CONNECT; type <= RWK_GREETING_BYE; type++) {
		g = of_type(type);
		g.to = partial;
		assert_int_equal(rwk_greeting_pack(&g, key, out), type == RWK_GREETING_CONNECT ? 0 : -EINVAL);
	}
	for (int i = 0; i < 6; i++) {
		g = sample;
		g.to = partial;
		g.to.job = i == 0;
		g.to.node = i == 1;
		g.to.flags_rank |= i == 2;
		g.to.nonce_port |= (uint64_t)(i == 3) << 16;
		g.to.version_srq |= i == 4;
		if (i == 5)
			g.to.nonce_port = 0;
		assert_int_equal(rwk_greeting_pack(&g, key, out), -EINVAL);
	}
}

/* A greeting with any one bit changed is nobody's: the magic's bits make it none, all others are the MAC's to notice.
 */
static void changed_bits(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 8 * RWK_GREETING_SIZE; bit++) {
		uint8_t bytes[RWK_GREETING_SIZE], version = 99;
		struct rwk_greeting g;

		memcpy(bytes, sample_bytes, sizeof(bytes));
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(
			rwk_greeting_unpack(bytes, sizeof(bytes), key, &g, &version), bit < 32 ? -EBADMSG : -EACCES);
		assert_int_equal(version, 99);
	}
}

/* Any bit of the key matters. */
static void other_keys(void **state)
{
	struct rwk_greeting g;

	(void)state;
	for (unsigned bit = 0; bit < 8 * sizeof(key); bit++) {
		uint8_t other[sizeof(key)];

		memcpy(other, key, sizeof(key));
		other[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(rwk_greeting_unpack(sample_bytes, sizeof(sample_bytes), other, &g, NULL), -EACCES);
	}
}

/* Too short, cut off, or with something behind it; under a right MAC too. Each in memory of its own length. */
static void lengths(void **state)
{
	(void)state;
	for (size_t len = 0; len <= RWK_GREETING_SIZE + 64; len++) {
		uint8_t *bytes = calloc(1, len ? len : 1);
		struct rwk_greeting g;
		int rc;

		assert_non_null(bytes);
		memcpy(bytes, sample_bytes, len < RWK_GREETING_SIZE ? len : RWK_GREETING_SIZE);
		rc = rwk_greeting_unpack(bytes, len, key, &g, NULL);
		if (len != RWK_GREETING_SIZE)
			assert_int_equal(rc, len < 5 + MAC ? -EBADMSG : -EACCES);
		if (len >= 5 + MAC)
			seal(bytes, len);
		assert_int_equal(
			rwk_greeting_unpack(bytes, len, key, &g, NULL), len == RWK_GREETING_SIZE ? 0 : -EBADMSG);
		free(bytes);
	}
}

/* As long as a packet: zeros and nothing else behind the fields, as many as it says, and the MAC is the end. */
static void padded(void **state)
{
	static const uint16_t pads[] = {4, 92, 860, RWK_GREETING_PAD_MAX};
	static uint8_t out[RWK_WIRE_OWN_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(pads) / sizeof(*pads); i++) {
		struct rwk_greeting g = sample, back;
		size_t len = RWK_GREETING_SIZE + pads[i];

		g.pad = pads[i];
		assert_int_equal(rwk_greeting_pack(&g, key, out), 0);
		assert_int_equal(rwk_greeting_unpack(out, len, key, &back, NULL), 0);
		assert_same(&back, &g);
		for (size_t wrong = len - 1; wrong <= len + 1; wrong += 2) {
			assert_int_equal(rwk_greeting_unpack(out, wrong, key, &back, NULL), -EACCES);
			seal(out, wrong);
			assert_int_equal(rwk_greeting_unpack(out, wrong, key, &back, NULL), -EBADMSG);
			assert_int_equal(rwk_greeting_pack(&g, key, out), 0);
		}
		out[148 + pads[i] / 2] = 1;
		seal(out, len);
		assert_int_equal(rwk_greeting_unpack(out, len, key, &back, NULL), -EBADMSG);
		g.pad = RWK_GREETING_PAD_MAX + 4;
		assert_int_equal(rwk_greeting_pack(&g, key, out), -EINVAL);
		g.pad = 6;
		assert_int_equal(rwk_greeting_pack(&g, key, out), -EINVAL);
	}
}

/* Another version is told from a stranger, whatever its length, and says which it is. */
static void versions(void **state)
{
	struct rwk_greeting g;
	uint8_t bytes[200] = {0}, version;

	(void)state;
	memcpy(bytes, sample_bytes, sizeof(sample_bytes));
	for (unsigned v = 0; v < 256; v++) {
		for (size_t len = RWK_GREETING_SIZE; len <= sizeof(bytes); len += 64) {
			if (v == RWK_GREETING_VERSION)
				continue;
			bytes[4] = (uint8_t)v;
			seal(bytes, len);
			assert_int_equal(rwk_greeting_unpack(bytes, len, key, &g, &version), -EPROTONOSUPPORT);
			assert_int_equal(version, v);
			assert_int_equal(rwk_greeting_unpack(bytes, len, key, &g, NULL), -EPROTONOSUPPORT);
			version = 0;
			bytes[len - 1] ^= 1;
			assert_int_equal(rwk_greeting_unpack(bytes, len, key, &g, &version), -EACCES);
			assert_int_equal(version, 0);
		}
	}
}

/* Whatever is read from random fields is written back to the same bytes; both outcomes occur. */
static void random_fields(void **state)
{
	uint64_t r = 88172645463325252u;
	unsigned taken = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint8_t bytes[RWK_GREETING_SIZE], again[RWK_GREETING_SIZE];
		struct rwk_greeting g;
		int rc;

		memcpy(bytes, sample_bytes, sizeof(bytes));
		for (int n = 0; n < 3; n++) {
			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			bytes[5 + r % 115] = (uint8_t)(r >> 32);
		}
		seal(bytes, sizeof(bytes));
		rc = rwk_greeting_unpack(bytes, sizeof(bytes), key, &g, NULL);
		if (rc) {
			assert_int_equal(rc, -EBADMSG);
			refused++;
			continue;
		}
		taken++;
		assert_int_equal(rwk_greeting_pack(&g, key, again), 0);
		assert_memory_equal(again, bytes, sizeof(bytes));
	}
	assert_true(taken > 1000);
	assert_true(refused > 1000);
}

/* A process that has the port of one that was there before is not the one that is meant. */
static void epochs(void **state)
{
	struct rwk_greeting g = sample;
	struct rwk_address me = sample.to;

	(void)state;
	assert_int_equal(rwk_greeting_meant(&g, &me), 0);
	me.ip[15] = 77; /* another of the host's IPs */
	assert_int_equal(rwk_greeting_meant(&g, &me), 0);
	me.nonce_port ^= UINT64_C(1) << 16;
	assert_int_equal(rwk_greeting_meant(&g, &me), -ESTALE);
	me.nonce_port ^= UINT64_C(1) << 16 | UINT64_C(1) << 63;
	assert_int_equal(rwk_greeting_meant(&g, &me), -ESTALE);
	g.to = (struct rwk_address){.flags_rank = RWK_ADDR_PARTIAL, .nonce_port = 0xc351};
	assert_int_equal(rwk_greeting_meant(&g, &me), 0);
}

/* An answer goes to who asked, with what was asked to be echoed, and is packed when type and reason are there. */
static void answers(void **state)
{
	struct rwk_greeting a;
	uint8_t out[RWK_GREETING_SIZE];

	(void)state;
	memset(&a, 0x5a, sizeof(a));
	rwk_greeting_answer(&a, &sample, RWK_GREETING_REFUSE, &sample.to);
	assert_int_equal(a.type, RWK_GREETING_REFUSE);
	assert_memory_equal(&a.from, &sample.to, sizeof(a.from));
	assert_memory_equal(&a.to, &sample.from, sizeof(a.to));
	assert_int_equal(a.echo, sample.echo);
	a.reason = -ESTALE;
	assert_int_equal(rwk_greeting_pack(&a, key, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),
		cmocka_unit_test(ranges),
		cmocka_unit_test(wrong_fields),
		cmocka_unit_test(nothing_wrong_is_packed),
		cmocka_unit_test(partial_addresses),
		cmocka_unit_test(changed_bits),
		cmocka_unit_test(other_keys),
		cmocka_unit_test(lengths),
		cmocka_unit_test(padded),
		cmocka_unit_test(versions),
		cmocka_unit_test(random_fields),
		cmocka_unit_test(epochs),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests_name("packet/greeting", tests, NULL, NULL);
}
