/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A way that becomes narrow while a connection is up, and says nothing, on the simulated network:
 *
 *   end 0 ---- what is longer than `most` is lost ----> end 1
 *         <--- the same, or not ---------------------
 *
 * Everything comes all the same, once and whole; the ends find out how much gets through, and send no more at once
 * until the way is wide again (transports/packet/narrow.c, pieces.c). And a way that is gone for a moment (put.c).
 */
#include "packet/narrow_ends.h"

#include "packet/channel.h"
#include "packet/narrow.h"

#include "base/param.h"

/* What gets through from now on; 0: all. */
static void width(unsigned from, unsigned to, size_t most, uint32_t drop)
{
	const struct rwk_sim_path path = {.delay = 5000, .most = most, .drop = drop};

	rwk_sim_set_path(ends_net, number(from), number(to), &path);
}

static void open_two_by(uint64_t seed, uint32_t drop)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.seed = seed;
	attr.mtu = RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD;
	attr.path = (struct rwk_sim_path){.delay = 5000, .drop = drop};
	ends_open(&attr, NULL, 2);
	ends_connect(0, 1);
	ends_settle();
}

static void open_two(uint32_t drop)
{
	open_two_by(rwk_sim_attr_default.seed, drop);
}

static void send_some(unsigned from, unsigned to, unsigned n)
{
	uint64_t before = ends_side(to, from)->received;

	for (unsigned i = 0; i < n; i++)
		assert_in_range(ends_post(ends_side(from, to)), 0, 1);
	ends_settle();
	assert_int_equal(ends_side(to, from)->received, before + n);
	assert_int_equal(ends_side(from, to)->failed + ends_side(to, from)->failed, 0);
}

/* Lets so much time pass, with a little traffic. */
static void pass(rwk_time time)
{
	for (rwk_time until = rwk_sim_now(ends_net) + time; rwk_sim_now(ends_net) < until;) {
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + SECOND);
		ends_progress_all();
		ends_settle();
	}
}

#define ALIKE 1000u /* bytes of a message in a packet of its own */

static size_t no_way_at; /* the ICRC of one longer packet out is asked for when there is no way; 0: not any more */

/* As of a link on which packets have headers below, which it can tell only as long as there is a way. */
static size_t pseudo(
	struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len, uint16_t id, uint8_t *out)
{
	(void)l;
	(void)peer;
	(void)id;
	if (outgoing && no_way_at && len >= no_way_at) {
		no_way_at = 0;
		return 0;
	}
	memset(out, 0x45, 36);
	out[35] = (uint8_t)len;
	return 36;
}

/*
 * There is no way at the moment at which a packet's ICRC is begun: that one is lost. Those of its length that go when
 * there is one again arrive.
 */
static void no_way(void **state)
{
	static const size_t alike[] = {ALIKE};
	struct rwk_link_ops ops[2];

	(void)state;
	ends_lengths = alike;
	ends_lengths_count = 1;
	open_two(0);
	for (unsigned i = 0; i < 2; i++) {
		struct rwk_link *l = ends[i]->port->link[RWK_WAY_LOSSY];

		ops[i] = *l->ops;
		ops[i].pseudo = pseudo;
		l->ops = &ops[i];
	}
	send_some(0, 1, 3);
	send_some(1, 0, 1);
	assert_int_equal(counts(1)->wrong_icrc, 0);
	no_way_at = ALIKE;
	channel(0, 1)->path.begun_len = 0;
	send_some(0, 1, 3);
	assert_int_equal(no_way_at, 0);
	assert_int_equal(counts(1)->wrong_icrc, 1);
	ends_close();
}

/* Long messages, in one direction or both, over a way that becomes narrow, narrower, and wide again. */
static void messages(void **state)
{
	(void)state;
	for (unsigned ways = 1; ways < 4; ways++) {
		use_lengths();
		open_two(0);
		send_some(0, 1, 12);
		send_some(1, 0, 12);
		assert_int_equal(counts(0)->narrowed + counts(1)->narrowed, 0);
		width(0, 1, ways & 1 ? 1472 : 0, 0);
		width(1, 0, ways & 2 ? 1472 : 0, 0);
		send_some(0, 1, 24);
		send_some(1, 0, 24);
		assert_int_equal(channel(0, 1)->path.cut, 1024);
		assert_int_equal(channel(1, 0)->path.cut, 1024);
		send_some(0, 1, 6);
		assert_true(counts(0)->pieces_out && counts(1)->pieces_out);
		width(0, 1, ways & 1 ? 548 : 0, 0);
		width(1, 0, ways & 2 ? 548 : 0, 0);
		send_some(0, 1, 24);
		send_some(1, 0, 24);
		assert_int_equal(channel(0, 1)->path.cut, 256);
		assert_int_equal(channel(1, 0)->path.cut, 256);
		width(0, 1, 0, 0);
		width(1, 0, 0, 0);
		for (unsigned i = 0; i < 30; i++) {
			send_some(0, 1, 6);
			pass(SECOND);
		}
		assert_int_equal(channel(0, 1)->path.cut, 0);
		assert_int_equal(channel(1, 0)->path.cut, 0);
		ends_close();
	}
}

/* What is lost beside changes nothing of that. */
static void and_lossy(void **state)
{
	(void)state;
	use_lengths();
	open_two(50000);
	send_some(0, 1, 12);
	width(0, 1, 1472, 50000);
	width(1, 0, 1472, 50000);
	send_some(0, 1, 60);
	send_some(1, 0, 60);
	assert_int_equal(channel(0, 1)->path.cut, 1024);
	ends_close();
}

/* An answer of middle length is lost in the round that decides: the one before has shown that so much gets through. */
static void middle_lost(void **state)
{
	(void)state;
	use_lengths();
	open_two(0);
	send_some(0, 1, 12);
	width(0, 1, 1472, 0);
	for (unsigned i = 0; i < 6; i++)
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	while (!counts(0)->narrowed) {
		const struct rwk_packet_narrow *n = channel(0, 1)->narrow;

		width(1, 0, n && n->rounds == 1 ? 548 : 0, 0);
		ends_progress_all();
		assert_true(rwk_sim_step(ends_net));
	}
	width(1, 0, 0, 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 18);
	assert_int_equal(channel(0, 1)->path.cut, 1024);
	ends_close();
}

/* A Read: who waits sends only what is short, and its peer what is long. And a Write that the reader asks for. */
static void reads(void **state)
{
	(void)state;
	for (int way = RWK_RENDEZVOUS_READ; way <= RWK_RENDEZVOUS_WRITE; way++) {
		struct ends_op op;
		struct rwk_rkey key;
		uint8_t *there = malloc(READ), *here = calloc(1, READ);
		struct iovec iov = {there, READ};

		rwk_params.rendezvous = way;
		for (uint32_t i = 0; i < READ; i++)
			there[i] = (uint8_t)(i * 7 + i / 251);
		open_two(0);
		send_some(0, 1, 1);
		assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &key), 0);
		width(1, 0, 1472, 0);
		ends_make_op(&op, RWK_OP_READ, here, READ);
		op.op.rkey = key;
		assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
		ends_settle();
		assert_int_equal(op.done, 1);
		assert_int_equal(op.status, 0);
		assert_memory_equal(here, there, READ);
		assert_int_equal(channel(1, 0)->path.cut, 1024);
		ends_close();
		free(there);
		free(here);
	}
	rwk_params.rendezvous = RWK_RENDEZVOUS_AUTO;
}

/* A peer that does not answer, because it computes, makes no way narrow; nor does one that loses its long packets for
 * a while. */
static void silence(void **state)
{
	(void)state;
	use_lengths();
	open_two(0);
	send_some(0, 1, 12);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	for (unsigned i = 0; i < 20000; i++) { /* end 1 takes nothing */
		ends_progress(ends[0]);
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS);
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 16);
	send_some(0, 1, 12);
	assert_int_equal(counts(0)->narrowed + counts(1)->narrowed, 0);
	assert_true(counts(0)->greetings_out < 60);
	ends_close();
}

/*
 * A peer that runs seldom, and a way that loses one packet of ten: there are silences, and rounds of probes that only a
 * short one comes back from, but with this seed no two of one silence.
 */
static void late_and_lossy(void **state)
{
	(void)state;
	use_lengths();
	open_two_by(7, 100000);
	for (unsigned i = 0; i < 4000; i++) {
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		for (unsigned k = 0; k < 10; k++) {
			ends_progress(ends[0]);
			rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS);
		}
		ends_progress(ends[1]);
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 4000);
	assert_int_equal(counts(0)->narrowed + counts(1)->narrowed, 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(no_way),
		ENDS_RC(messages),
		ENDS_RC(and_lossy),
		ENDS_RC(middle_lost),
		ENDS_RC(reads),
		ENDS_RC(silence),
		ENDS_RC(late_and_lossy),
	};

	return cmocka_run_group_tests_name("packet/narrow", tests, NULL, NULL);
}
