/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: an initiator is as good as the word that a peer has been given of it. Until the handshake is over it may be given
 * up, because the last channel by it has gone, or be aimed elsewhere (transports/packet/HANDSHAKE.md, "No is final").
 *
 *   host 0: ends 0 and 1; host 1: end 2, whose initiator it is
 *
 * Links: sim.
 */
#include "links/ends.h"

#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/port.h"
#include "packet/sim_domain.h"

#define SECOND 1000000000ull /* ns */

enum { FIRST = 0, OTHER = 1, HERE = 2 };

static struct rwk_packet_initiator *initiator(void)
{
	return rwk_container_of(ends[HERE]->port->all_initiators.next, struct rwk_packet_initiator, all);
}

static void pass(rwk_time time)
{
	rwk_time until = rwk_sim_now(ends_net) + time;

	while (rwk_sim_now(ends_net) < until) {
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + SECOND / 100);
		ends_progress_all();
	}
}

/* As long as greetings go to and fro once, and none is said again. */
static void pass_briefly(void)
{
	for (unsigned i = 0; i < 20; i++) {
		ends_progress_all();
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + SECOND / 10000);
	}
}

/* What the end sends comes to nobody, or to all again. */
static void cut_off(bool now)
{
	const struct rwk_sim_path path = {.delay = 1000, .drop = now ? 1000000 : 0};
	uint32_t from = rwk_address_port(&ends[HERE]->address);

	rwk_sim_set_path(ends_net, from, ends[FIRST]->port->domain.port, &path);
	for (unsigned i = 0; i < 2; i++)
		rwk_sim_set_path(ends_net, from, rwk_address_port(&ends[i]->address), &path);
}

static void say(unsigned from, unsigned to)
{
	assert_in_range(ends_post(ends_side(from, to)), 0, 1);
}

/* So many messages come, both ways; in lengths that ends_lengths says. */
static void check_messages(unsigned peer, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		say(HERE, peer);
		say(peer, HERE);
	}
	ends_settle();
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = i ? ends_side(peer, HERE) : ends_side(HERE, peer);

		assert_int_equal(s->failed, 0);
		assert_int_equal(s->received, count);
	}
}

/* The end and that peer have a channel, by which messages come. */
static void check_channel(unsigned peer, bool shared)
{
	check_messages(peer, 1);
	assert_int_equal(rwk_packet_is_shared(ends_side(HERE, peer)->ch), shared);
	assert_int_equal(rwk_packet_is_shared(ends_side(peer, HERE)->ch), shared);
}

/*
 * The end has a channel to one peer, says something that does not come, and gives the channel up. Before that it has
 * asked the other for one, which has not come either.
 */
static void leave_behind(void)
{
	ends_open(NULL, NULL, 0);
	sim_packet_host(0);
	ends_add();
	ends_add();
	sim_packet_host(1);
	ends_add();
	ends_connect(HERE, FIRST);
	ends_settle();
	assert_true(rwk_packet_is_shared(ends_side(HERE, FIRST)->ch));
	cut_off(true);
	say(HERE, FIRST);
	ends_connect(HERE, OTHER);
	ends_progress(ends[HERE]);
	ends_transport->disconnect(ends_side(HERE, FIRST)->ch);
}

/* It is given up, and then the other asks: it gets a connection of its own. */
static void given_up_before(void **state)
{
	(void)state;
	leave_behind();
	pass(3 * SECOND);
	assert_true(initiator()->failed);
	ends_connect(OTHER, HERE);
	pass(SECOND / 10);
	cut_off(false);
	check_channel(OTHER, false);
	ends_close();
}

/* The other asks before that: the initiator has a channel again, though it cannot be told so for long. */
static void taken_up(void **state)
{
	(void)state;
	leave_behind();
	pass(SECOND);
	ends_connect(OTHER, HERE);
	pass(3 * SECOND);
	assert_false(initiator()->failed);
	cut_off(false);
	check_channel(OTHER, true);
	ends_close();
}

static void open_two_domains(void)
{
	ends_open(NULL, NULL, 0);
	sim_packet_host(0);
	ends_add();
	sim_domain_shut(true);
	ends_add();
	ends_settle();
	pass(3 * SECOND); /* alone */
	sim_domain_shut(false);
	sim_packet_host(1);
	ends_add();
	assert_true(ends[FIRST]->port->domain.id != ends[OTHER]->port->domain.id);
}

/*
 * The peers are in two domains, and the end has asked both by one initiator. One asks, too, and is taken; before it has
 * heard of that the other's answer comes. That one gets a connection of its own.
 */
static void promised_twice(void **state)
{
	(void)state;
	open_two_domains();
	rwk_sim_rule(ends_net, rwk_address_port(&ends[HERE]->address), rwk_address_port(&ends[OTHER]->address), 1,
		RWK_SIM_DROP);
	ends_connect(HERE, OTHER);
	ends_connect(HERE, FIRST);
	ends_connect(OTHER, HERE);
	ends_settle();
	check_channel(OTHER, true);
	check_channel(FIRST, false);
	ends_close();
}

/*
 * The peers are in two domains. One asks, is promised the end's initiator, and goes before it has heard of that: the
 * other shares it.
 */
static void promised_to_the_dead(void **state)
{
	(void)state;
	open_two_domains();
	rwk_sim_rule(ends_net, rwk_address_port(&ends[HERE]->address), rwk_address_port(&ends[FIRST]->address), 1,
		RWK_SIM_DROP);
	ends_connect(FIRST, HERE);
	pass_briefly();
	assert_int_equal(rwk_packet_channel(ends_side(HERE, FIRST)->ch)->state, RWK_CH_ACCEPTING);
	assert_true(initiator()->domain == ends[FIRST]->port->domain.id);
	ends_close_port(FIRST);
	ends_settle();
	assert_int_equal(ends_side(HERE, FIRST)->failed, 1);
	ends_connect(HERE, OTHER);
	ends_settle();
	check_channel(OTHER, true);
	ends_close();
}

static const size_t all_lengths[] = {0, 700, 9000, 1300, 3000, 1450, 40, 4000, 20000};
#define MESSAGES (2 * sizeof(all_lengths) / sizeof(*all_lengths))

/* From now on the links carry packets of so many bytes. */
static void set_mtu(size_t mtu)
{
	((struct rwk_sim_attr *)rwk_sim_attr(ends_net))->mtu = mtu;
}

static void open_hosts(size_t mtu)
{
	ends_lengths = all_lengths;
	ends_lengths_count = sizeof(all_lengths) / sizeof(*all_lengths);
	ends_open(&(struct rwk_sim_attr){.seed = 1, .mtu = mtu, .path.delay = 1000}, NULL, 0);
	sim_packet_host(0);
	ends_add();
	ends_add();
	sim_packet_host(1);
	ends_add();
}

/*
 * The end gets a channel to one peer, and then, when the links carry packets of another length, to the other; `late`:
 * the answer of the first one comes behind that of the second. All channels by one initiator have packets as long as
 * its target takes.
 */
static void change_between(size_t before, size_t after, bool late)
{
	open_hosts(before);
	if (late)
		rwk_sim_rule(ends_net, rwk_address_port(&ends[FIRST]->address), rwk_address_port(&ends[HERE]->address),
			1, RWK_SIM_DROP);
	ends_connect(HERE, FIRST);
	pass_briefly();
	assert_int_equal(rwk_packet_channel(ends_side(HERE, FIRST)->ch)->state == RWK_CH_OPEN, !late);
	set_mtu(after);
	ends_connect(HERE, OTHER);
	ends_settle();
	assert_true(rwk_packet_is_shared(ends_side(HERE, OTHER)->ch));
	assert_int_equal(rwk_packet_channel(ends_side(HERE, OTHER)->ch)->pmtu, initiator()->pmtu);
	if (after < before)
		set_mtu(before); /* these links cut nothing in fragments */
	check_messages(OTHER, MESSAGES);
	check_messages(FIRST, MESSAGES);
	ends_close();
}

static void narrower_between(void **state)
{
	(void)state;
	change_between(4224, 1500, false);
	change_between(4224, 1500, true);
}

static void wider_between(void **state)
{
	(void)state;
	change_between(1500, 4224, false);
	change_between(1500, 4224, true);
}

/*
 * The same, but what has been asked by the initiator is answered when that has failed: the two get a connection of their
 * own, with packets as long as both have said.
 */
static void failed_between(void **state)
{
	(void)state;
	open_hosts(1500);
	ends_connect(HERE, FIRST);
	ends_settle();
	set_mtu(4224);
	ends_connect(HERE, OTHER);
	ends_progress(ends[HERE]);
	initiator()->failed = true;
	ends_settle();
	assert_false(rwk_packet_is_shared(ends_side(HERE, OTHER)->ch));
	assert_int_equal(rwk_packet_channel(ends_side(HERE, OTHER)->ch)->pmtu, 4096);
	check_messages(OTHER, MESSAGES);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_ON(given_up_before, "SRC", sim_shared_transport),
		ENDS_ON(taken_up, "SRC", sim_shared_transport),
		ENDS_ON(promised_twice, "SRC", sim_shared_transport),
		ENDS_ON(promised_to_the_dead, "SRC", sim_shared_transport),
		ENDS_ON(narrower_between, "SRC", sim_shared_transport),
		ENDS_ON(wider_between, "SRC", sim_shared_transport),
		ENDS_ON(failed_between, "SRC", sim_shared_transport),
	};

	return cmocka_run_group_tests_name("packet/initiator", tests, NULL, NULL);
}
