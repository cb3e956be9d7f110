/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: what shares a packet and what goes out when, lengths at their bounds (transports/packet/FRAME.md). */
#include "packet/pair.h"

#include "packet/port.h"

#include "base/iov.h"
#include "wire/wire.h"

/*
 * Messages of each length at which something changes, alone in a packet, filling it, one byte more, and up to the
 * longest that a channel takes: by send, and by post, each with and without data, over paths that lose.
 */
static void lengths(void **state)
{
	static const uint32_t pmtus[] = {256, 512, 1024, 1344, 2048, 4096, RWK_WIRE_OWN_MAX};
	size_t list[64], n, longest = ends_transport == &sim_packet_transport ? LENGTH : 65536;

	(void)state;
	for (unsigned i = 0; i < sizeof(pmtus) / sizeof(*pmtus); i++) {
		for (int post = 0; post < 2; post++) {
			size_t p = pmtus[i];
			const size_t around[] = {p - 28, p - 20, p, 2 * p - 28, 2 * p - 20, 3 * p, 7 * p - 20};

			n = 0;
			for (size_t k = 0; k < 4; k++)
				list[n++] = k;
			for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++)
				for (size_t d = 0; d < 3; d++)
					list[n++] = around[k] + d - 1;
			list[n++] = longest - 1;
			list[n++] = longest;
			list[n++] = 5; /* their number is odd: each comes with data and without */
			list[n++] = longest;
			assert_true(n % 2);
			pair_open_list(p + 80, list, n, &ends_lossy);
			assert_int_equal(ends_side(0, 1)->ch->send_max, longest);
			for (unsigned k = 0; k < 2 * n; k++) {
				if (post || ends_send(ends_side(0, 1)))
					assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
				if (k % 7 == 0)
					ends_settle();
			}
			ends_settle();
			assert_int_equal(ends_side(1, 0)->received, 2 * n);
			ends_close();
		}
	}
}

/* A page takes one packet, with data and without, where the way is wide enough; what fills the way, too. */
static void page(void **state)
{
	static const struct {
		size_t mtu, length;
	} cases[] = {{8972, 4096}, {8972, 8704 - 28}, {RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD, 8192}, {1472, 1316}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t packets;

		pair_open(cases[i].mtu, cases[i].length);
		packets = rwk_sim_sent(ends_net, 1, 2);
		for (unsigned n = 1; n <= 4; n++) {
			assert_int_equal(ends_send(ends_side(0, 1)), 0);
			ends_settle();
			assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets + n);
		}
		assert_int_equal(ends_side(1, 0)->received, 4);
		ends_close();
	}
}

/* As many as fill a frame and one more take two: by bytes, with a PMTU of 256. */
static void full_frame(void **state)
{
	uint64_t frames, packets;

	(void)state;
	pair_open(336, 30); /* records of 46 and 54 bytes in turn */
	pair_burst(7);
	assert_int_equal(ends_send(ends_side(0, 1)), 0); /* alone */
	frames = pair_counts(0)->frames_out;
	packets = rwk_sim_sent(ends_net, 1, 2);
	for (int i = 0; i < 5; i++) /* 4 + 46 + 54 + 46 + 54 + 46 = 250 bytes */
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
	assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets);
	assert_int_equal(ends_send(ends_side(0, 1)), 0); /* of 54: does not fit */
	assert_int_equal(pair_counts(0)->frames_out, frames + 1);
	assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets);
	ends_settle();
	assert_int_equal(pair_counts(0)->frames_out, frames + 2);
	assert_int_equal(ends_side(1, 0)->received, 14);
	ends_close();
}

static const struct rwk_link_ops *under;

/* Has a packet of a connection no ICRC, but room for one? */
static int look(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	static const uint8_t none[RWK_WIRE_ICRC];
	uint8_t bytes[RWK_WIRE_HEADER_MAX + RWK_WIRE_OWN_MAX + 3 + RWK_WIRE_ICRC];
	size_t len = rwk_iov_gather(iov, (size_t)count, 0, bytes, sizeof(bytes)), payload_len;
	const uint8_t *payload;
	struct rwk_wire w;

	assert_int_equal(rwk_wire_unpack(&w, bytes, len, &payload, &payload_len), 0);
	if (w.qpn != RWK_WIRE_GSI_QPN)
		assert_memory_equal(bytes + len - RWK_WIRE_ICRC, none, RWK_WIRE_ICRC);
	return under->send(l, to, iov, count);
}

/* What checks the bytes itself is given none of ours: packets that go in one piece, and in several. */
static void no_icrc_on_a_stream(void **state)
{
	static const size_t list[] = {0, 8, 1000, 40000};
	struct rwk_link_ops ops;
	struct rwk_link *stream;
	uint64_t packets;

	(void)state;
	pair_open_list(4224, list, 4, NULL);
	stream = ends[0]->port->link[RWK_WAY_STREAM];
	under = stream->ops;
	ops = *under;
	ops.send = look;
	stream->ops = &ops;
	packets = rwk_sim_sent(ends_net, 1, 2);
	for (int i = 0; i < 8; i++)
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 8);
	assert_true(rwk_sim_sent(ends_net, 1, 2) - packets >= 2 * 40000 / 4096);
	stream->ops = under;
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(lengths),
		ENDS_UC(lengths),
		ENDS_RC(page),
		ENDS_RC(full_frame),
		ENDS_UC(no_icrc_on_a_stream),
	};

	return cmocka_run_group_tests_name("packet/frames", tests, NULL, NULL);
}
