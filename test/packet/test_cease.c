/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: initiators that cease. The targets of peers that closed in good order become free again, and nobody but such a
 * peer can say so (transports/packet/HANDSHAKE.md, "Initiators that cease").
 *
 *   host 0: ends 0 and 1, which stay; host 1: end 2, which comes and goes, and perhaps end 3, which stays
 *
 * Links: sim.
 */
#include "packet/hand.h"

#include "packet/initiator.h"
#include "packet/port.h"
#include "shared_rc/internal.h"

#define VISITS   150u /* more than twice the targets of a domain */
#define MESSAGES 5u

#define MILLISECOND 1000000ull

enum { HERE = 0, THERE = 1, VISITOR = 2, NEIGHBOUR = 3 };

static const size_t some[] = {0, 40, 700};

static void open_hosts(const struct rwk_sim_path *path, bool neighbour)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	if (path)
		attr.path = *path;
	ends_lengths = some;
	ends_lengths_count = sizeof(some) / sizeof(*some);
	ends_open(&attr, NULL, 0);
	sim_packet_host(HERE);
	ends_add();
	ends_add();
	sim_packet_host(THERE);
	ends_add();
	if (!neighbour)
		return;
	ends_add();
	ends_connect(NEIGHBOUR, 0);
	ends_settle();
}

static struct rwk_packet_initiator *initiator_of(unsigned end)
{
	return rwk_container_of(ends[end]->port->all_initiators.next, struct rwk_packet_initiator, all);
}

/* Targets of that end's domain that are somebody's. */
static unsigned in_use(unsigned end)
{
	const struct rwk_src_view *v = ends[end]->port->view;
	unsigned n = 0;

	for (uint32_t i = 0; i < v->size.targets; i++)
		n += rwk_src_entry(v, i)->qpn != 0;
	return n;
}

/* Is it connected to both that stay on the other host, by shared connections? */
static void meet(void)
{
	for (unsigned i = 0; i < 2; i++)
		ends_connect(VISITOR, i);
	ends_settle();
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rwk_packet_is_shared(ends_side(VISITOR, i)->ch));
		assert_true(rwk_packet_is_shared(ends_side(i, VISITOR)->ch));
	}
}

/* The visitor says something to both, and goes without waiting for anything: all of it arrives. */
static void take_leave(void)
{
	for (unsigned n = 0; n < 2 * MESSAGES; n++)
		assert_in_range(ends_post(ends_side(VISITOR, n % 2)), 0, 1);
	ends_progress(ends[VISITOR]);
	ends_close_port(VISITOR);
	ends_settle();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ends_side(i, VISITOR)->received, MESSAGES);
		assert_int_equal(ends_side(i, VISITOR)->failed, 1);
		assert_int_equal(ends_side(i, VISITOR)->error, -ECONNRESET);
		ends_transport->disconnect(ends_side(i, VISITOR)->ch);
	}
}

static void visit_many(const struct rwk_sim_path *path, bool neighbour)
{
	open_hosts(path, neighbour);
	for (unsigned n = 0; n < VISITS; n++) {
		if (n)
			ends_open_again(VISITOR);
		meet();
		take_leave();
		assert_int_equal(in_use(0), neighbour);
	}
	ends_close();
}

/* Many come one after the other, from a host that others stay on, or that is left by all each time. */
static void come_and_go(void **state)
{
	(void)state;
	visit_many(NULL, false);
	visit_many(NULL, true);
}

/* Packets are lost, doubled and overtake each other: what was sent before the end is not lost with it. */
static void come_and_go_with_loss(void **state)
{
	(void)state;
	visit_many(&ends_lossy, false);
	visit_many(&ends_lossy, true);
}

/*
 * The channels were given up before, and the packets with what was sent last are lost: all that came before the end is
 * sent again, and acknowledged, before the initiator ceases.
 */
static void all_arrives_first(void **state)
{
	uint32_t from, to;

	(void)state;
	open_hosts(NULL, false);
	meet();
	from = rwk_address_port(&ends[VISITOR]->address);
	to = rwk_sim_address_number(&initiator_of(VISITOR)->path.to);
	for (unsigned nth = 1; nth <= 4; nth++)
		rwk_sim_rule(ends_net, from, to, nth, RWK_SIM_DROP);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ends_send(ends_side(VISITOR, i)), 0);
	for (unsigned i = 0; i < 2; i++)
		ends_transport->disconnect(ends_side(VISITOR, i)->ch);
	ends_close_port(VISITOR);
	ends_settle();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ends_side(i, VISITOR)->received, 1);
	assert_int_equal(in_use(0), 0);
	ends_close();
}

/* How long the visitor's close takes, once the other host has been left by all; `word`: its kernel says so. */
static rwk_time close_after_all(bool word)
{
	struct rwk_packet_initiator *by;
	rwk_time begun, taken;
	struct rwk_link *l;
	uint32_t from, to;
	uint64_t sent;

	open_hosts(NULL, false);
	meet();
	for (unsigned i = 0; i < 2; i++)
		ends_close_port(i);
	ends_settle();
	by = initiator_of(VISITOR);
	l = ends[VISITOR]->port->link[RWK_WAY_LOSSY];
	from = rwk_sim_number(l);
	to = rwk_sim_address_number(&by->path.to);
	sent = rwk_sim_sent(ends_net, from, to);
	begun = rwk_sim_now(ends_net);
	ends_close_port(VISITOR);
	for (unsigned n = 1; rwk_sim_alive(ends_net, from); n++) {
		assert_true(rwk_sim_step(ends_net));
		if (word && n == 1)
			l->word(l->user, &by->path.to, -ECONNREFUSED);
	}
	taken = rwk_sim_now(ends_net) - begun;
	assert_in_range(rwk_sim_sent(ends_net, from, to), sent + 1, word ? sent + 1 : sent + 6);
	ends_close();
	return taken;
}

/* Where nobody is left, nobody answers: a close waits a moment for that, or until it hears that there is nobody. */
static void nobody_left(void **state)
{
	(void)state;
	assert_in_range(close_after_all(false), 50 * MILLISECOND, 150 * MILLISECOND);
	assert_in_range(close_after_all(true), 0, 3 * MILLISECOND);
}

/* What the visitor would say. */
static struct rwk_greeting cease_of(const struct rwk_packet_initiator *by)
{
	return (struct rwk_greeting){.type = RWK_GREETING_CEASE,
		.from = ends[VISITOR]->address,
		.to = ends[0]->address,
		.qpn = by->qpn,
		.shared = {.domain = by->domain, .target = by->target}};
}

static uint64_t stale(void)
{
	return ends[0]->port->count.stale + ends[1]->port->count.stale;
}

static uint64_t said(void)
{
	return ends[0]->port->count.greetings_out + ends[1]->port->count.greetings_out;
}

/* It is counted, and not answered; the target is there as it was. */
static void expect_stale(struct hand *h, const struct rwk_greeting *g)
{
	uint64_t before = stale(), greetings = said();

	hand_greet(h, g);
	hand_pass(h, 100000);
	assert_int_equal(stale(), before + 1);
	assert_int_equal(said(), greetings);
	assert_int_equal(h->packets_in, 0);
	assert_true(rwk_src_target_lives(ends[0]->port->view, initiator_of(VISITOR)->target));
}

/* Of another process, another initiator, another domain; to a process, not to its domain; another greeting there. */
static void not_said_by_its_own(void **state)
{
	struct rwk_packet_initiator *by;
	struct rwk_greeting right, g;
	struct hand h;

	(void)state;
	open_hosts(NULL, false);
	meet();
	by = initiator_of(VISITOR);
	right = cease_of(by);
	hand_open(&h, 0);
	expect_stale(&h, &right);
	h.to = by->path.to;
	g = right;
	g.from = h.address;
	expect_stale(&h, &g);
	g = right;
	g.from.nonce_port ^= 1ull << 40;
	expect_stale(&h, &g);
	g = right;
	g.qpn ^= 1;
	expect_stale(&h, &g);
	g = right;
	g.shared.domain++;
	expect_stale(&h, &g);
	g.type = RWK_GREETING_CEASED;
	expect_stale(&h, &g);
	g = (struct rwk_greeting){.type = RWK_GREETING_BYE, .from = h.address, .to = ends[0]->address, .qpn = 2};
	expect_stale(&h, &g);
	hand_close(&h);
	ends_close();
}

/* Under another key: not a word. And an answer that nobody has asked for ends nothing. */
static void strangers(void **state)
{
	struct rwk_packet_initiator *by;
	struct rwk_greeting right;
	uint64_t before;
	struct hand h;

	(void)state;
	open_hosts(NULL, false);
	meet();
	by = initiator_of(VISITOR);
	right = cease_of(by);
	hand_open(&h, 0);
	h.to = by->path.to;
	h.key[0] ^= 1;
	before = said();
	hand_greet(&h, &right);
	hand_pass(&h, 100000);
	assert_int_equal(ends[0]->port->count.wrong_key + ends[1]->port->count.wrong_key, 1);
	assert_int_equal(said(), before);
	h.key[0] ^= 1;
	h.to = rwk_sim_address(rwk_address_port(&ends[VISITOR]->address));
	right.type = RWK_GREETING_CEASED;
	right.from = ends[0]->address;
	right.to = ends[VISITOR]->address;
	hand_greet(&h, &right);
	hand_pass(&h, 100000);
	assert_false(by->ceased);
	assert_int_equal(ends[VISITOR]->port->count.stale, 1);
	hand_close(&h);
	take_leave();
	assert_int_equal(in_use(0), 0);
	ends_close();
}

/* Said twice, as when the answer was lost: the second one is answered, too, and ends nothing that came in between. */
static void said_twice(void **state)
{
	struct rwk_greeting right;
	struct hand h;
	uint64_t before;

	(void)state;
	open_hosts(NULL, false);
	meet();
	right = cease_of(initiator_of(VISITOR));
	hand_open(&h, 0);
	h.to = initiator_of(VISITOR)->path.to;
	ends_close_port(VISITOR);
	ends_settle();
	assert_int_equal(in_use(0), 0);
	ends_open_again(VISITOR);
	meet();
	assert_int_equal(in_use(0), 1);
	before = said();
	hand_greet(&h, &right);
	hand_pass(&h, 100000);
	assert_int_equal(said(), before + 1);
	assert_int_equal(in_use(0), 1);
	hand_close(&h);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_ON(come_and_go, "SRC", sim_shared_transport),
		ENDS_ON(come_and_go_with_loss, "SRC", sim_shared_transport),
		ENDS_ON(all_arrives_first, "SRC", sim_shared_transport),
		ENDS_ON(nobody_left, "SRC", sim_shared_transport),
		ENDS_ON(not_said_by_its_own, "SRC", sim_shared_transport),
		ENDS_ON(strangers, "SRC", sim_shared_transport),
		ENDS_ON(said_twice, "SRC", sim_shared_transport),
	};

	return cmocka_run_group_tests_name("packet/cease", tests, NULL, NULL);
}
