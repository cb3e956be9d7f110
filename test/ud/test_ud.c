/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams, packet for packet: what is sent, bit for bit; what is taken, and what is counted and dropped.
 *
 *   queue pair - a link of the test's own: what is sent lies in `wire`, what `give` is given has come
 */
#include "rwk_test.h"

#include "base/compiler.h"
#include "link.h"
#include "links/udp/udp.h"
#include "ud/ud.h"
#include "wire/icrc.h"
#include "wire/wire.h"

#define MTU    256u
#define QPN    0x123456u
#define QKEY   0xfeedbeefu
#define PSEUDO 36u /* bytes of IPv4's */
#define HEADER 20u /* BTH and DETH */
#define PACKET (RWK_WIRE_HEADER_MAX + RWK_WIRE_PMTU_MAX + 3 + RWK_WIRE_ICRC)

static const struct rwk_ud_address peer = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 7}, 4791, 0x654321, 0x80010203};

static struct {
	uint8_t wire[PACKET]; /* sent last */
	size_t len;
	int sent, flushed, closed;
	int refusal; /* what the next send says */
	struct rwk_link *link;
} net;

static uint8_t bytes[2 * RWK_WIRE_PMTU_MAX];
static struct rwk_ud *ud;
static struct rwk_ud_receive *taken; /* by the last datagram */
static struct rwk_ud_arrival arrival;
static unsigned arrivals;

/* The same both ways: 8 of ones, IP with the identification, UDP. */
static size_t pseudo(
	struct rwk_link *l, const struct rwk_link_address *to, bool outgoing, size_t len, uint16_t id, uint8_t *out)
{
	(void)l, (void)to, (void)outgoing;
	memset(out, 0xff, PSEUDO);
	out[10] = (uint8_t)(len >> 8);
	out[11] = (uint8_t)len;
	out[12] = (uint8_t)(id >> 8);
	out[13] = (uint8_t)id;
	return PSEUDO;
}

static int fake_send(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	struct rwk_link_address there = rwk_udp_address(peer.ip, peer.port);

	(void)l;
	if (net.refusal)
		return net.refusal;
	assert_memory_equal(to, &there, sizeof(there));
	net.len = 0;
	for (int i = 0; i < count; i++) {
		assert_true(net.len + iov[i].iov_len <= PACKET);
		if (iov[i].iov_len)
			memcpy(net.wire + net.len, iov[i].iov_base, iov[i].iov_len);
		net.len += iov[i].iov_len;
	}
	net.sent++;
	return 0;
}

static void fake_flush(struct rwk_link *l)
{
	(void)l;
	net.flushed = net.sent;
}

static void fake_close(struct rwk_link *l)
{
	free(l);
	net.closed++;
}

static const struct rwk_link_ops fake_ops = {
	.name = "fake", .send = fake_send, .flush = fake_flush, .pseudo = pseudo, .close = fake_close};

static void received(void *user, struct rwk_ud_receive *r, const struct rwk_ud_arrival *a)
{
	assert_ptr_equal(user, &net);
	taken = r;
	arrival = *a;
	arrivals++;
}

static int open_ud(void **state)
{
	const struct rwk_ud_attr attr = {
		.own = {.qpn = QPN, .qkey = QKEY}, .mtu = MTU, .received = received, .user = &net};

	(void)state;
	memset(&net, 0, sizeof(net));
	net.link = calloc(1, sizeof(*net.link));
	assert_non_null(net.link);
	net.link->ops = &fake_ops;
	arrivals = 0;
	taken = NULL;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 5 + (i >> 8) + 1);
	return rwk_ud_open_on(net.link, &attr, &ud);
}

static int close_ud(void **state)
{
	(void)state;
	rwk_ud_close(ud);
	return net.closed != 1;
}

static struct rwk_ud_counters counters(void)
{
	struct rwk_ud_counters c;

	rwk_ud_get_counters(ud, &c);
	return c;
}

static void give(const uint8_t *packet, size_t len)
{
	struct rwk_link_address from = rwk_udp_address(peer.ip, 0xc123);

	net.link->packet(net.link->user, &from, packet, len);
}

static void seal(uint8_t *packet, size_t len, uint16_t id)
{
	uint8_t head[PSEUDO];
	uint32_t icrc = rwk_icrc_begin(RWK_CRC_32, head, pseudo(NULL, NULL, false, len + RWK_WIRE_ICRC, id, head));

	icrc = rwk_icrc_bytes(RWK_CRC_32, icrc, packet, len);
	for (int i = 0; i < 4; i++)
		packet[len + i] = (uint8_t)(icrc >> 8 * i);
}

/* A datagram for the queue pair as its peer would send it: its length. */
static size_t make(const struct rwk_wire *w, const uint8_t *payload, size_t len, uint16_t id, uint8_t packet[PACKET])
{
	size_t n = rwk_wire_pack(w, len, packet);

	memcpy(packet + n, payload, len);
	n += len;
	for (; n % 4; n++)
		packet[n] = 0;
	seal(packet, n, id);
	return n + RWK_WIRE_ICRC;
}

static struct rwk_wire good(void)
{
	return (struct rwk_wire){.opcode = RWK_WIRE_UD | RWK_WIRE_SEND_ONLY,
		.pkey = RWK_WIRE_PKEY,
		.qpn = QPN,
		.psn = 7,
		.deth = {QKEY, 0x654321}};
}

/* Headers, payload, pad and ICRC, byte for byte; the numbers of the second datagram. */
static void what_is_sent(void **state)
{
	static const uint8_t first[] = {0x64, 0x70, 0xff, 0xff, 0, 0x65, 0x43, 0x21, 0, 0, 0, 0, 0x80, 0x01, 0x02, 0x03,
		0, 0x12, 0x34, 0x56, 'h', 'e', 'l', 'l', 'o', 0, 0, 0};
	static const uint8_t second[] = {0x65, 0x40, 0xff, 0xff, 0, 0x65, 0x43, 0x21, 0, 0, 0, 1, 0x80, 0x01, 0x02,
		0x03, 0, 0x12, 0x34, 0x56, 0x89, 0xab, 0xcd, 0xef};
	struct iovec iov[] = {{(void *)(uintptr_t) "he", 2}, {NULL, 0}, {(void *)(uintptr_t) "llo", 3}};
	uint8_t sealed[sizeof(first) + RWK_WIRE_ICRC];
	uint32_t imm = 0x89abcdef;

	(void)state;
	assert_int_equal(rwk_ud_send(ud, &peer, iov, 3, NULL), 0);
	memcpy(sealed, first, sizeof(first));
	seal(sealed, sizeof(first), 0);
	assert_int_equal(net.len, sizeof(sealed));
	assert_memory_equal(net.wire, sealed, sizeof(sealed));
	assert_int_equal(net.flushed, 1);

	assert_int_equal(rwk_ud_send(ud, &peer, NULL, 0, &imm), 0);
	assert_int_equal(net.len, sizeof(second) + RWK_WIRE_ICRC);
	assert_memory_equal(net.wire, second, sizeof(second));
	assert_int_equal(counters().sent, 2);
}

/* Too long, too many pieces, no room: nothing is sent or counted, and no number is taken. */
static void what_is_not_sent(void **state)
{
	struct iovec iov[RWK_UD_IOV + 1] = {{bytes, MTU}, {bytes, 1}};

	(void)state;
	assert_int_equal(rwk_ud_send(ud, &peer, iov, 2, NULL), -EMSGSIZE);
	assert_int_equal(rwk_ud_send(ud, &peer, iov, RWK_UD_IOV + 1, NULL), -EINVAL);
	net.refusal = -EAGAIN;
	assert_int_equal(rwk_ud_send(ud, &peer, iov, 1, NULL), -EAGAIN);
	assert_int_equal(net.sent, 0);
	assert_int_equal(counters().sent, 0);
	net.refusal = 0;
	assert_int_equal(rwk_ud_send(ud, &peer, iov, 1, NULL), 0);
	assert_int_equal(net.len, HEADER + MTU + RWK_WIRE_ICRC);
	assert_int_equal(net.wire[11], 0);
}

/* Each length, into places of two pieces, the oldest first; with and without immediate data; from whom. */
static void what_is_taken(void **state)
{
	static const size_t lengths[] = {0, 1, 3, 4, 5, 255, MTU};
	uint8_t packet[PACKET], in[MTU];
	struct rwk_ud_receive r[2] = {{.count = 2, .iov = {{in, 3}, {in + 3, MTU - 3}}}};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct rwk_wire w = good();

		if (i % 2)
			w.opcode++, w.imm = 0x1020304;
		r[1] = r[0];
		memset(in, 0, sizeof(in));
		rwk_ud_receive(ud, &r[0]);
		rwk_ud_receive(ud, &r[1]);
		give(packet, make(&w, bytes, lengths[i], 0, packet));
		assert_int_equal(arrivals, i + 1);
		assert_ptr_equal(taken, &r[0]);
		assert_int_equal(arrival.length, lengths[i]);
		assert_memory_equal(in, bytes, lengths[i]);
		assert_int_equal(arrival.has_imm, i % 2);
		assert_int_equal(arrival.imm, i % 2 ? 0x1020304 : 0);
		assert_memory_equal(arrival.from.ip, peer.ip, sizeof(peer.ip));
		assert_int_equal(arrival.from.port, 0xc123);
		assert_int_equal(arrival.from.qpn, 0x654321);
		rwk_ud_cancel(ud, &r[1]);
	}
	assert_int_equal(counters().received, arrivals);
}

/* A datagram for which there is no place is gone, and the next one is taken. */
static void without_a_place(void **state)
{
	struct rwk_wire w = good();
	uint8_t packet[PACKET], in[4];
	struct rwk_ud_receive r = {.count = 1, .iov = {{in, 4}}};

	(void)state;
	give(packet, make(&w, bytes, 4, 0, packet));
	rwk_ud_receive(ud, &r);
	assert_int_equal(arrivals, 0);
	assert_int_equal(counters().no_receive, 1);
	give(packet, make(&w, bytes + 9, 4, 0, packet));
	assert_int_equal(arrivals, 1);
	assert_memory_equal(in, bytes + 9, 4);
}

/* What is beyond its place is lost, and nothing behind the place is written. */
static void too_small_a_place(void **state)
{
	struct rwk_wire w = good();
	uint8_t packet[PACKET], in[8] = {0};
	struct rwk_ud_receive r = {.count = 1, .iov = {{in, 5}}};

	(void)state;
	rwk_ud_receive(ud, &r);
	give(packet, make(&w, bytes, 8, 0, packet));
	assert_int_equal(arrivals, 1);
	assert_int_equal(arrival.length, 8);
	assert_memory_equal(in, bytes, 5);
	assert_int_equal(in[5] | in[6] | in[7], 0);
}

/* Another maker's packet has an identification; IPv4's ICRC covers it. */
static void with_an_identification(void **state)
{
	struct rwk_wire w = good();
	uint8_t packet[PACKET], in[MTU];
	struct rwk_ud_receive r = {.count = 1, .iov = {{in, MTU}}};

	(void)state;
	rwk_ud_receive(ud, &r);
	give(packet, make(&w, bytes, 100, 0xbeef, packet));
	assert_int_equal(arrivals, 1);
	assert_memory_equal(in, bytes, 100);
}

/* Each bit of a packet, wrong: nothing comes of it, but of what a router may change. */
static void any_bit(void **state)
{
	struct rwk_wire w = good();
	uint8_t packet[PACKET], in[MTU];
	struct rwk_ud_receive r = {.count = 1, .iov = {{in, MTU}}};
	size_t len = make(&w, bytes, 30, 0, packet);
	struct rwk_ud_counters c;

	(void)state;
	rwk_ud_receive(ud, &r);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		if (bit / 8 == 4) /* FECN, BECN and what is reserved beside them */
			continue;
		packet[bit / 8] ^= 1u << bit % 8;
		give(packet, len);
		packet[bit / 8] ^= 1u << bit % 8;
	}
	assert_int_equal(arrivals, 0);
	c = counters();
	assert_int_equal(
		c.malformed + c.unknown_qpn + c.wrong_pkey + c.wrong_qkey + c.bad_icrc + c.too_long, 8 * (len - 1));
	packet[4] = 0xff;
	give(packet, len);
	assert_int_equal(arrivals, 1);
}

/* Packets in good order that are not for us: each has its counter. */
static void strangers(void **state)
{
	struct rwk_wire w[5];
	const size_t counter[] = {offsetof(struct rwk_ud_counters, wrong_qkey),
		offsetof(struct rwk_ud_counters, unknown_qpn), offsetof(struct rwk_ud_counters, wrong_pkey),
		offsetof(struct rwk_ud_counters, malformed), offsetof(struct rwk_ud_counters, too_long)};
	uint8_t packet[PACKET], in[MTU];
	struct rwk_ud_receive r = {.count = 1, .iov = {{in, MTU}}};

	(void)state;
	for (int i = 0; i < 5; i++)
		w[i] = good();
	w[0].deth.qkey++;
	w[1].qpn++;
	w[2].pkey = 0xfffe;
	w[3].opcode = RWK_WIRE_UC | RWK_WIRE_SEND_ONLY;
	rwk_ud_receive(ud, &r);
	for (int i = 0; i < 5; i++) {
		struct rwk_ud_counters c;

		give(packet, make(&w[i], bytes, i == 4 ? MTU + 1 : 8, 0, packet));
		c = counters();
		assert_int_equal(*(uint64_t *)(void *)((char *)&c + counter[i]), 1);
		assert_int_equal(arrivals, 0);
	}
	/* A limited member of our partition is in it. */
	w[0] = good();
	w[0].pkey = 0x7fff;
	give(packet, make(&w[0], bytes, 8, 0, packet));
	assert_int_equal(arrivals, 1);
}

/* No length of a packet is read beyond (the sanitizers see to that), and none but the right one is taken. */
static void cut_short(void **state)
{
	struct rwk_wire w = good();
	uint8_t packet[PACKET], in[MTU];
	struct rwk_ud_receive r = {.count = 1, .iov = {{in, MTU}}};
	size_t len = make(&w, bytes, 30, 0, packet);

	(void)state;
	rwk_ud_receive(ud, &r);
	for (size_t n = 0; n < len; n++) {
		uint8_t *exact = malloc(n + !n);

		assert_non_null(exact);
		memcpy(exact, packet, n);
		give(exact, n);
		free(exact);
	}
	assert_int_equal(arrivals, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_sent, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(what_is_not_sent, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(what_is_taken, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(without_a_place, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(too_small_a_place, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(with_an_identification, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(any_bit, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(strangers, open_ud, close_ud),
		cmocka_unit_test_setup_teardown(cut_short, open_ud, close_ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
