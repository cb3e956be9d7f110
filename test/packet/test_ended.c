/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: whose channel has ended at the other end is told, though all that it sends is acknowledged.
 *
 *   host 0: end 0; host 1: end 1
 *
 * Links: sim.
 */
#include "links/ends.h"

#include "packet/channel.h"
#include "packet/port.h"

#define SECOND 1000000000ull /* ns */
#define MS     1000000ull

enum { THERE = 0, HERE = 1 };

static void pass(rwk_time time)
{
	rwk_time until = rwk_sim_now(ends_net) + time;

	while (rwk_sim_now(ends_net) < until) {
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS / 10);
		ends_progress_all();
	}
}

/* What the end sends to the other host's domain, or to the other end itself, comes there or not. */
static void cut_off(bool domain, bool greetings)
{
	const struct rwk_sim_path open = {.delay = 1000}, cut = {.delay = 1000, .drop = 1000000};
	uint32_t from = rwk_address_port(&ends[HERE]->address);

	rwk_sim_set_path(ends_net, from, ends[THERE]->port->domain.port, domain ? &cut : &open);
	rwk_sim_set_path(ends_net, from, rwk_address_port(&ends[THERE]->address), greetings ? &cut : &open);
}

static void open_both(void)
{
	ends_open(NULL, NULL, 0);
	for (unsigned i = 0; i < 2; i++) {
		sim_packet_host(i);
		ends_add();
	}
	ends_connect(HERE, THERE);
	ends_settle();
	assert_true(rwk_packet_is_shared(ends_side(HERE, THERE)->ch));
	assert_true(rwk_packet_is_shared(ends_side(THERE, HERE)->ch));
}

static void doom(void)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(ends_side(HERE, THERE)->ch);

	ends[HERE]->port->now = 0;
	rwk_packet_doom(ch, -ENOMEM);
	while (!ends_side(HERE, THERE)->failed)
		ends_progress(ends[HERE]);
}

static void check_told(void)
{
	assert_int_equal(ends_side(THERE, HERE)->failed, 1);
	assert_int_equal(ends_side(THERE, HERE)->error, -ECONNRESET);
}

/* The client gives the channel up while the initiator's window is shut: the frame that says good-bye is never sent. */
static void given_up_behind_a_window(void **state)
{
	static const size_t length = 60000;
	struct side *s;

	(void)state;
	ends_lengths = &length;
	ends_lengths_count = 1;
	open_both();
	s = ends_side(HERE, THERE);
	cut_off(true, false);
	for (unsigned i = 0; i < 8; i++) /* they go on from copies; no more of these are allowed */
		assert_in_range(ends_post(s), 0, 1);
	for (unsigned i = 0; i < 100; i++)
		ends_progress(ends[HERE]);
	ends_transport->disconnect(s->ch);
	pass(10 * MS);
	check_told();
	ends_close();
}

/* It fails at this end for a reason of this end's. */
static void failed_here(void **state)
{
	(void)state;
	open_both();
	doom();
	pass(10 * MS);
	check_told();
	ends_close();
}

/*
 * The good-bye is lost, and the client forgets the channel. The peer hears it with what it sends then, again and again,
 * but at most once a millisecond. A channel that both make afterwards is another.
 */
static void told_again(void **state)
{
	struct side *s, *there;
	uint64_t said;

	(void)state;
	open_both();
	s = ends_side(HERE, THERE);
	there = ends_side(THERE, HERE);
	cut_off(false, true);
	doom();
	ends_transport->disconnect(s->ch);
	pass(10 * MS);
	assert_int_equal(there->failed, 0);
	said = rwk_packet_counters(ends[HERE]->port)->greetings_out;
	for (unsigned i = 0; i < 100; i++) {
		ends_post(there);
		pass(MS / 10);
	}
	said = rwk_packet_counters(ends[HERE]->port)->greetings_out - said;
	assert_in_range(said, 2, 12);
	assert_int_equal(there->failed, 0);
	cut_off(false, false);
	pass(2 * MS);
	assert_int_equal(ends_post(there), 0);
	pass(10 * MS);
	check_told();
	ends_transport->disconnect(there->ch);
	*s = (struct side){.end = s->end, .peer = s->peer};
	*there = (struct side){.end = there->end, .peer = there->peer};
	ends_connect(HERE, THERE);
	assert_in_range(ends_post(s), 0, 1);
	ends_settle();
	assert_true(rwk_packet_is_shared(s->ch));
	assert_in_range(ends_post(there), 0, 1);
	pass(10 * MS);
	assert_int_equal(there->received, 1);
	assert_int_equal(s->received, 1);
	assert_int_equal(s->failed + there->failed, 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_ON(given_up_behind_a_window, "SRC", sim_shared_transport),
		ENDS_ON(given_up_behind_a_window, "SRC and streams", sim_both_transport),
		ENDS_ON(failed_here, "SRC", sim_shared_transport),
		ENDS_ON(failed_here, "SRC and streams", sim_both_transport),
		ENDS_ON(told_again, "SRC", sim_shared_transport),
	};

	return cmocka_run_group_tests_name("packet/ended", tests, NULL, NULL);
}
