/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for a peer that is late gives its core away if, and only if, the job has more processes on the machine than
 * this has processors; the greetings tell which peers are there, whatever container they are in.
 */
#include "links/ends.h"

#include <sched.h>

#define HERE 3 /* an end and the two others that its job map says are on its node (ends_add) */

static unsigned yields;

/* In place of the C library's. */
int sched_yield(void)
{
	yields++;
	return 0;
}

static struct rwk_sim_attr slow_attr(void)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.path.delay = 1000 * 1000; /* there and back: more than any peer that has a processor takes */
	return attr;
}

/* How often end 0 yields in 100 empty looks, while a message to its slow peer is under way. */
static unsigned yields_for(unsigned peer)
{
	struct side *s = ends_side(0, peer);
	uint64_t counted;

	for (int i = 0; i < 8; i++) {
		assert_in_range(ends_post(s), 0, 1);
		ends_settle();
	}
	assert_in_range(ends_post(s), 0, 1);
	yields = 0;
	counted = rwk_packet_counters(ends[0]->port)->yields;
	for (int i = 0; i < 100; i++)
		ends_progress(ends[0]);
	assert_int_equal(rwk_packet_counters(ends[0]->port)->yields - counted, yields);
	return yields;
}

static void add(uint32_t machine, uint32_t processors, uint32_t node)
{
	ends_node = node;
	ends_machine = machine;
	ends_processors = processors;
	ends_add();
}

static void by_crowd(void **state)
{
	static const struct {
		uint32_t machine, peers_machine, processors;
		bool yields, one_node;
	} cases[] = {
		{0xabcdef, 0xabcdef, HERE, true, false},
		{0xabcdef, 0xabcdef, HERE, false, true}, /* the peer is one of those two */
		{0xabcdef, 0xabcdef, HERE + 1, false, false}, /* one each */
		{0xabcdef, 0xabcdee, HERE, false, false},     /* the peer is somewhere else */
		{0xabcdef, 0xabcdee, HERE - 1, true, false},  /* those of its own node suffice */
		{0, 0, HERE, false, false},                   /* nobody knows where it is */
		{0xabcdef, 0xabcdef, 0, false, false},        /* or how many there are */
	};
	const struct rwk_sim_attr attr = slow_attr();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned n;

		ends_open(&attr, NULL, 0);
		add(cases[i].machine, cases[i].processors, 1);
		add(cases[i].peers_machine, cases[i].processors, cases[i].one_node ? 1 : 2);
		ends_connect(0, 1);
		n = yields_for(1);
		if (cases[i].yields ? n < 90 : n)
			fail_msg("case %zu: %u yields", i, n);
		ends_close();
	}
}

/* Whose channel has ended does not count any more. */
static void crowd_shrinks(void **state)
{
	const struct rwk_sim_attr attr = slow_attr();

	(void)state;
	ends_open(&attr, NULL, 0);
	add(0xabcdef, HERE, 1);
	add(0xabcdef, HERE, 2);
	add(0x123456, HERE, 3);
	ends_connect(0, 1);
	assert_in_range(yields_for(1), 90, 100);
	ends_settle();
	ends_transport->disconnect(ends_side(0, 1)->ch);
	ends_settle();
	rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 1000 * 1000 * 1000);
	ends_progress(ends[0]); /* that a peer was late is forgotten */
	ends_connect(0, 2);
	assert_int_equal(yields_for(2), 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {ENDS_RC(by_crowd), ENDS_RC(crowd_shrinks)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
