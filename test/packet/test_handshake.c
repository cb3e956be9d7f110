/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake on a network that does with each single greeting what it can do to it (transports/packet/HANDSHAKE.md).
 * RWK_TEST_SHORT: some of each kind of case.
 */
#include "links/ends.h"

#include "base/log.h"
#include "base/param.h"
#include "machine.h"
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/regions.h"
#include "packet/sim_domain.h"
#include "packet/sim_stream.h"

#define SECOND 1000000000ull /* ns */

static const enum rwk_sim_fate fates[] = {
	RWK_SIM_PASS, RWK_SIM_DROP, RWK_SIM_DUPLICATE, RWK_SIM_DELAY, RWK_SIM_CORRUPT};

static const struct rwk_packet_counters *counts(unsigned end)
{
	return rwk_packet_counters(ends[end]->port);
}

static bool is_shared(void)
{
	return ends_transport == &sim_shared_transport;
}

/* Both ends have one channel, open, and one message gets through in each direction. */
static void check_channel(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = ends_side(i, 1 - i);

		assert_non_null(s->ch);
		assert_int_equal(s->failed, 0);
		assert_int_equal(s->ops, 0);
		assert_int_equal(s->sent, 1);
		assert_int_equal(ends_side(1 - i, i)->received, 1);
		assert_int_equal(counts(i)->wrong_key, 0);
		assert_true(!counts(i)->refused || is_shared());
		assert_int_equal(rwk_packet_is_shared(s->ch), is_shared());
	}
}

enum { ONE_ASKS, BOTH_ASK, PARTIAL, BOTH_PARTIAL };

static int ask_by_place(unsigned from, unsigned to)
{
	const struct rwk_address place = {
		.flags_rank = RWK_ADDR_PARTIAL, .nonce_port = rwk_address_port(&ends[to]->address)};
	struct side *s = ends_side(from, to);

	return ends_transport->connect(ends[from]->port, &place, s, &s->ch);
}

/* The first greetings of each direction have these fates; the second end asks `later` ns after the first. */
static void meet(int how, const unsigned *fate, unsigned count, rwk_time later)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;
	bool both = how == BOTH_ASK || how == BOTH_PARTIAL;

	attr.path.reorder_by = 30 * 1000 * 1000; /* longer than it takes to ask again */
	ends_open(&attr, NULL, 2);
	for (unsigned n = 0; n < count; n++)
		rwk_sim_rule(ends_net, 1 + n % 2, 2 - n % 2, 1 + n / 2, fates[fate[n]]);
	if (how == PARTIAL || how == BOTH_PARTIAL)
		assert_int_equal(ask_by_place(0, 1), 0);
	else
		ends_connect(0, 1);
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	if (both) {
		while (rwk_sim_now(ends_net) < later && rwk_sim_step(ends_net))
			ends_progress_all();
		if (!ends_side(1, 0)->ch && how == BOTH_PARTIAL)
			assert_int_equal(ask_by_place(1, 0), 0);
		else if (!ends_side(1, 0)->ch)
			ends_connect(1, 0);
		assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
	}
	ends_settle();
	assert_int_equal(ends[0]->connects, how == PARTIAL || how == BOTH_PARTIAL);
	assert_int_equal(ends[1]->connects, !both || ends[1]->connects);
	if (!both) {
		assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
		ends_settle();
	}
	check_channel();
	ends_close();
}

/* Of many cases all, or one in so many; no pattern of theirs has this period. */
static unsigned one_in(void)
{
	return getenv("RWK_TEST_SHORT") ? 11 : 1;
}

static void every_fate(int how, unsigned count, rwk_time later)
{
	unsigned fate[8], all = 1;

	for (unsigned n = 0; n < count; n++)
		all *= 5;
	for (unsigned i = 0; i < all; i += one_in()) {
		for (unsigned n = 0, rest = i; n < count; n++, rest /= 5)
			fate[n] = rest % 5;
		meet(how, fate, count, later);
	}
}

/* One asks, and the first two greetings in each direction are lost, doubled, delayed, damaged in every combination. */
static void one_asks(void **state)
{
	(void)state;
	every_fate(ONE_ASKS, 4, 0);
}

/* The same, where the asker knows but IP and port. */
static void partial(void **state)
{
	(void)state;
	every_fate(PARTIAL, 4, 0);
}

/* Both know but IP and port: with SRC each is told the name first. */
static void both_partial(void **state)
{
	static const rwk_time later[] = {0, 500, 1500, 2500};

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		every_fate(BOTH_PARTIAL, 4, later[i]);
}

/*
 * Nobody lets the second end into the domain, and it cannot help itself. For two seconds it decides nothing; then it
 * has a domain of its own, and shares its connections as everybody does.
 */
static void left_outside(void **state)
{
	(void)state;
	ends_open(&rwk_sim_attr_default, NULL, 1);
	sim_domain_shut(true);
	ends_add();
	ends_connect(0, 1);
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	ends_settle();
	assert_true(rwk_sim_now(ends_net) >= 2 * SECOND);
	assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
	ends_settle();
	check_channel();
	sim_domain_shut(false);
	ends_close();
}

/* Both ask: at once, while the other's greeting is under way, when it has arrived, when it has been answered. */
static void both_ask(void **state)
{
	static const rwk_time later[] = {0, 500, 1500, 2500, 5000};

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		every_fate(BOTH_ASK, 4, later[i]);
}

/* The nth greeting, for each n, and all up to it. */
static void later_losses(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 8; n++) {
		for (int all = 0; all < 2; all++) {
			for (int dir = 0; dir < 2; dir++) {
				ends_open(NULL, NULL, 2);
				for (unsigned i = all ? 1 : n; i <= n; i++)
					rwk_sim_rule(ends_net, 1 + dir, 2 - dir, i, RWK_SIM_DROP);
				ends_connect(0, 1);
				assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
				ends_settle();
				assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
				ends_settle();
				assert_int_equal(ends[1]->connects, 1);
				check_channel();
				ends_close();
			}
		}
	}
}

/* Nobody is lost and nothing is in the way: three greetings, as the picture has it, and one channel. */
static void three_greetings(void **state)
{
	(void)state;
	ends_open_two();
	assert_int_equal(counts(0)->greetings_out, 2);
	assert_int_equal(counts(1)->greetings_out, 1);
	assert_int_equal(counts(0)->greetings_in, 1);
	assert_int_equal(counts(1)->greetings_in, 2);
	assert_int_equal(ends[1]->connects, 1);
	ends_close();
}

/* The asked end's client does not want the peer: the asker's channel fails, for that reason; no channel stays. */
static void client_refuses(void **state)
{
	(void)state;
	for (int lost = 0; lost < 3; lost++) {
		ends_open(NULL, NULL, 2);
		ends[1]->refuse = -EACCES;
		for (int i = 1; i <= lost; i++)
			rwk_sim_rule(ends_net, 2, 1, (uint64_t)i, RWK_SIM_DROP);
		ends_connect(0, 1);
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		ends_settle();
		assert_int_equal(ends_side(0, 1)->failed, 1);
		assert_int_equal(ends_side(0, 1)->error, -EACCES);
		assert_int_equal(counts(1)->refused, lost + 1);
		assert_int_equal(ends_side(1, 0)->failed, 0);
		/* Another time it does want it. */
		ends_transport->disconnect(ends_side(0, 1)->ch);
		ends_side(0, 1)->failed = 0;
		ends_side(0, 1)->sent = 0;
		ends[1]->refuse = 0;
		ends_connect(0, 1);
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		ends_settle();
		assert_int_equal(ends_side(1, 0)->received, 1);
		ends_close();
	}
}

/*
 * Two ways.
 */

static uint32_t node_of(unsigned end)
{
	return rwk_address_port(&ends[end]->address);
}

static uint32_t key; /* of what waits at end 0 to be read */

/* Both go the same way, whichever that is, and one message gets through in each direction. What was exposed before is. */
static void check_same_way(void)
{
	if (!ends_side(1, 0)->sent)
		assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
	ends_settle();
	for (unsigned i = 0; i < 2; i++) {
		const struct side *s = ends_side(i, 1 - i), *peer = ends_side(1 - i, i);

		assert_non_null(s->ch);
		assert_int_equal(s->failed, 0);
		assert_int_equal(s->received, 1);
		assert_int_equal(rwk_packet_by_stream(s->ch), rwk_packet_by_stream(peer->ch));
		assert_int_equal(rwk_packet_is_shared(s->ch), rwk_packet_is_shared(peer->ch));
	}
	assert_int_equal(rwk_packet_region_check(rwk_packet_channel(ends_side(0, 1)->ch), key, 0, sizeof(key),
				 RWK_REACH_READ),
		0);
}

static void ask(bool both)
{
	struct iovec iov = {&key, sizeof(key)};

	ends_connect(0, 1);
	assert_int_equal(
		rwk_packet_region_add(rwk_packet_channel(ends_side(0, 1)->ch), &iov, 1, RWK_REACH_READ, &key), 0);
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	if (!both)
		return;
	ends_connect(1, 0);
	assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
}

/* While an end is at its domain's door it answers no greeting by UDP: the other may have begun to ask by the stream. */
static void let_in_late(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i += 3 * one_in()) { /* an odd step: one asks, or both */
		ends_open(NULL, NULL, 1);
		sim_domain_shut(true);
		ends_add();
		ask(i % 2);
		while (rwk_sim_now(ends_net) < i * (SECOND / 90) && rwk_sim_step(ends_net))
			ends_progress_all();
		sim_domain_shut(false);
		ends_settle();
		check_same_way();
		ends_close();
	}
}

/* So many greetings by UDP are lost, one way or the other, or both. */
static void long_losses(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20 * 2 * 3; i++) {
		unsigned lost = i / 6, which = 1 + i % 3;

		ends_open(NULL, NULL, 2);
		for (unsigned n = 1; n <= lost; n++) {
			if (which & 1)
				rwk_sim_rule(ends_net, node_of(0), node_of(1), n, RWK_SIM_DROP);
			if (which & 2)
				rwk_sim_rule(ends_net, node_of(1), node_of(0), n, RWK_SIM_DROP);
		}
		ask(i / 3 % 2);
		ends_settle();
		check_same_way();
		ends_close();
	}
}

/* Greetings by UDP are lost, late and out of order by chance; those by the stream are all late. */
static void chance(void **state)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;
	struct rwk_sim_path udp = {.drop = 500000, .reorder = 300000, .reorder_by = SECOND}, stream = {.delay = 1000};

	(void)state;
	for (unsigned i = 0; i < 600; i += one_in()) {
		attr.seed = i;
		udp.delay = i % 5 * (SECOND / 20);
		udp.drop = i % 3 * 300000;
		stream.delay = i % 7 * (SECOND / 30);
		ends_open(&attr, NULL, 2);
		for (unsigned k = 0; k < 2; k++) {
			rwk_sim_set_path(ends_net, node_of(k), node_of(1 - k), &udp);
			sim_stream_set_path(ends_net, node_of(k), node_of(1 - k), &stream);
		}
		ask(i % 2);
		ends_settle();
		check_same_way();
		ends_close();
	}
}

static unsigned warnings;

static void count_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	warnings += level == RWK_LOG_WARN && strstr(text, "allows nothing else");
}

/* UDP does not get through for a minute, and nothing else is allowed: that is said, once; then there is the channel. */
static void udp_alone(void **state)
{
	static const int services[] = {RWK_SERVICE_SRC, RWK_SERVICE_RC};
	struct rwk_sim_path blocked = {.drop = 1000000}, open = {.delay = 1000};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		rwk_params.service = services[i];
		warnings = 0;
		rwk_log_set_sink(count_warning);
		ends_open(NULL, NULL, 2);
		for (unsigned k = 0; k < 2; k++)
			rwk_sim_set_path(ends_net, node_of(k), node_of(1 - k), &blocked);
		ask(false);
		do
			ends_progress_all();
		while (rwk_sim_now(ends_net) < 60 * SECOND && rwk_sim_step(ends_net));
		assert_null(ends_side(1, 0)->ch);
		assert_int_equal(warnings, 1);
		for (unsigned k = 0; k < 2; k++)
			rwk_sim_set_path(ends_net, node_of(k), node_of(1 - k), &open);
		ends_settle();
		check_same_way();
		assert_false(rwk_packet_by_stream(ends_side(0, 1)->ch));
		ends_close();
		rwk_log_set_sink(NULL);
	}
}

/*
 * A way swallows long packets both ways, and both ask at much the same time: neither takes the other's short CONNECT for
 * a way that carries the packets which that names.
 */
static void both_narrow(void **state)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;
	struct rwk_sim_path udp = {.most = 1500};

	(void)state;
	attr.mtu = RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD;
	for (unsigned i = 0; i < 200; i += one_in()) {
		rwk_time later;

		attr.seed = i;
		udp.delay = 1000 + i % 5 * (SECOND / 200);
		ends_open(&attr, NULL, 2);
		for (unsigned k = 0; k < 2; k++)
			rwk_sim_set_path(ends_net, node_of(k), node_of(1 - k), &udp);
		ask(false);
		later = rwk_sim_now(ends_net) + i % 7 * (SECOND / 1000);
		while (rwk_sim_now(ends_net) < later && rwk_sim_step(ends_net))
			ends_progress_all();
		if (!ends_side(1, 0)->ch)
			ends_connect(1, 0);
		ends_settle();
		check_same_way();
		for (unsigned k = 0; k < 2; k++) {
			struct rwk_channel *ch = ends_side(k, 1 - k)->ch;

			assert_false(rwk_packet_by_stream(ch));
			assert_int_equal(rwk_packet_channel(ch)->pmtu, 1024);
		}
		ends_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(three_greetings),
		ENDS_RC(one_asks),
		ENDS_RC(partial),
		ENDS_ON(partial, "SRC", sim_shared_transport),
		ENDS_RC(both_partial),
		ENDS_ON(both_partial, "SRC", sim_shared_transport),
		ENDS_ON(left_outside, "SRC", sim_shared_transport),
		ENDS_RC(both_ask),
		ENDS_RC(later_losses),
		ENDS_RC(client_refuses),
		ENDS_ON(let_in_late, "SRC, UC", sim_both_transport),
		ENDS_ON(long_losses, "SRC, UC", sim_both_transport),
		ENDS_ON(chance, "SRC, UC", sim_both_transport),
		ENDS_ON(udp_alone, "SRC, UC", sim_both_transport),
		ENDS_ON(both_narrow, "SRC, UC", sim_both_transport),
	};

	return cmocka_run_group_tests_name("packet/handshake", tests, NULL, NULL);
}
