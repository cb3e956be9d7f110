/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several members in one process, several initiators, a network that loses, doubles and overtakes, and gives each
 * packet to whichever member: each message arrives once, in order, with its bytes, at the member it was meant for.
 *
 *   speaker ---\               /---> listener (view, ear)
 *   speaker ----> a bag of packets ---> listener
 *   speaker ---/               \---> listener
 *
 * Links: none: packets are handed over by hand.
 */
#include "rwk_test.h"

#include "shared_rc/traffic.h"

#include <sys/mman.h>

#define BAG 4096u

struct under_way {
	bool answer;
	struct packet p;
};

struct net {
	struct speaker speaker[SPEAKERS];
	struct listener listener[MEMBERS];
	struct ear ear[MEMBERS];
	unsigned speakers, members;
	uint32_t seed, lost, doubled; /* in a thousand */
	bool in_order;                /* nothing overtakes */
	unsigned takers, idle;        /* members that get packets; turns in which nobody looks into its inbox */
	rwk_time now;
	struct under_way *bag[BAG];
	unsigned count;
	void *memory;
};

static struct net net;

static int put(const struct packet *p, bool answer)
{
	struct under_way *w;

	for (unsigned times = chance(&net.seed) % 1000 < net.doubled ? 2 : 1; times; times--) {
		if (chance(&net.seed) % 1000 < net.lost)
			continue;
		if (net.count == BAG)
			return -EAGAIN;
		w = malloc(sizeof(*w));
		assert_non_null(w);
		w->answer = answer;
		w->p = *p;
		net.bag[net.count++] = w;
	}
	return 0;
}

static int emit_request(void *user, const struct packet *p)
{
	(void)user;
	return put(p, false);
}

static int emit_answer(void *user, const struct packet *p)
{
	(void)user;
	return put(p, true);
}

static void open_net(unsigned speakers, unsigned members, uint32_t inbox_bytes, uint32_t seed)
{
	net = (struct net){.speakers = speakers, .members = members, .takers = members, .seed = seed, .now = 1000};
	net.memory = segment(MEMBERS, 16, inbox_bytes);
	for (unsigned i = 0; i < members; i++) {
		net.ear[i].member = i;
		assert_int_equal(listener_open(&net.listener[i], net.memory, &net.ear[i]), 0);
		net.listener[i].emit = emit_answer;
	}
	for (unsigned i = 0; i < speakers; i++) {
		uint16_t pmtu = (uint16_t)(i % 6 == 5 ? RWK_WIRE_OWN_MAX : 256u << i % 6);
		struct rwk_src_initiator initiator = speaker_initiator(i, pmtu);
		uint32_t qpn;

		assert_int_equal(rwk_src_target_make(net.listener[i % members].view, &initiator, &qpn), 0);
		speaker_open(&net.speaker[i], i, qpn, pmtu);
		net.speaker[i].emit = emit_request;
		for (unsigned j = 0; j < members; j++)
			net.speaker[i].srqn[j] = rwk_src_srqn(net.listener[j].view);
	}
}

/* One packet of the first few, by chance. */
static void deliver(void)
{
	unsigned i = net.in_order ? 0 : chance(&net.seed) % (net.count < 8 ? net.count : 8), last = --net.count;
	struct under_way *w = net.bag[i];
	struct listener *l = &net.listener[chance(&net.seed) % net.takers];

	memmove(&net.bag[i], &net.bag[i + 1], (last - i) * sizeof(*net.bag));
	if (w->answer) {
		speaker_answer(&net.speaker[w->p.speaker], &w->p, net.now);
	} else {
		listener_packet(l, &w->p, net.now);
		if (chance(&net.seed) % 3 == 0)
			rwk_src_pump(l->view, net.now);
	}
	free(w);
}

static bool is_quiet(uint32_t total)
{
	for (unsigned i = 0; i < net.speakers; i++)
		if (!speaker_idle(&net.speaker[i]) || speaker_posted(&net.speaker[i]) < total)
			return false;
	return true;
}

static void run(uint32_t total)
{
	for (unsigned turns = 0; !is_quiet(total); turns++) {
		assert_true(turns < 20000000);
		net.now += 1000;
		if (net.count)
			deliver();
		for (unsigned i = 0; turns % 16 == 0 && i < net.speakers; i++)
			speaker_speak(&net.speaker[i], total, net.now);
		if (turns % 8 == 0 && turns % (net.idle + 8) >= net.idle) {
			struct listener *l = &net.listener[chance(&net.seed) % net.members];

			rwk_src_drain(l->view, (int)(chance(&net.seed) % 20));
			rwk_src_pump(l->view, net.now);
		}
	}
	for (unsigned i = 0; i < net.members; i++)
		while (rwk_src_drain(net.listener[i].view, 100))
			;
}

static void check_all_heard(void)
{
	for (unsigned i = 0; i < net.members; i++) {
		if (net.ear[i].wrong)
			fail_msg("%s", net.ear[i].why);
		for (unsigned j = 0; j < net.speakers; j++) {
			assert_int_equal(net.ear[i].heard[j], net.speaker[j].posted[i]);
			assert_int_equal(net.ear[i].at[j], 0);
		}
	}
}

/* What all views have counted together. */
static struct rwk_src_counters sum(void)
{
	struct rwk_src_counters s = {0};

	for (unsigned i = 0; i < net.members; i++) {
		const struct rwk_src_counters *c = rwk_src_get_counters(net.listener[i].view);

		s.own += c->own;
		s.handed_on += c->handed_on;
		s.drained += c->drained;
		s.turned_away += c->turned_away;
		s.no_room += c->no_room;
		s.repeated += c->repeated;
		s.locked_out += c->locked_out;
		s.corrupt += c->corrupt;
		s.qp.kept += c->qp.kept;
		s.qp.duplicates += c->qp.duplicates;
		s.qp.rnr_out += c->qp.rnr_out;
	}
	return s;
}

static void close_net(void)
{
	for (unsigned i = 0; i < net.speakers; i++)
		speaker_close(&net.speaker[i]);
	for (unsigned i = 0; i < net.members; i++)
		rwk_src_view_close(net.listener[i].view);
	while (net.count)
		free(net.bag[--net.count]);
}

/* S1-5, S1-7: whoever gets a packet, its message arrives at the SRQ it names, by RC's rules. */
static void whole_network(void **state)
{
	struct rwk_src_counters c;

	(void)state;
	open_net(4, 4, 1 << 20, 1);
	run(300);
	check_all_heard();
	c = sum();
	assert_true(c.own > 100 && c.handed_on > 100);
	assert_int_equal(c.drained, c.handed_on);
	assert_int_equal(c.repeated + c.locked_out + c.corrupt, 0);
	close_net();
}

/* The same where packets are lost and doubled. */
static void lossy_network(void **state)
{
	struct rwk_src_counters c;

	(void)state;
	for (uint32_t seed = 1; seed <= 4; seed++) {
		open_net(SPEAKERS, MEMBERS, 1 << 20, seed);
		net.lost = 30 * (seed - 1);
		net.doubled = 20 * seed;
		run(200);
		check_all_heard();
		c = sum();
		assert_true(c.qp.kept > 10 && c.qp.duplicates > 10);
		assert_int_equal(c.repeated + c.corrupt, 0);
		close_net();
	}
}

/* Inboxes that are too small: initiators are told to wait, in the middle of a message too, and nothing is lost. */
static void small_inboxes(void **state)
{
	struct rwk_src_counters c;

	(void)state;
	open_net(4, 3, 65536, 7);
	net.lost = 10;
	net.takers = 1;
	net.idle = 400;
	run(200);
	check_all_heard();
	c = sum();
	assert_true(c.no_room > 0 && c.qp.rnr_out > 0);
	close_net();
}

static void run_for(unsigned turns)
{
	while (turns--) {
		net.now += 1000;
		if (net.count)
			deliver();
		for (unsigned i = 0; turns % 16 == 0 && i < net.speakers; i++)
			speaker_speak(&net.speaker[i], 0, net.now);
		for (unsigned i = 0; turns % 8 == 0 && i + 1 < net.members; i++) {
			rwk_src_drain(net.listener[i].view, 20);
			rwk_src_pump(net.listener[i].view, net.now);
		}
	}
}

/*
 * A member computes, and its inbox is full: what the same initiators send to its siblings arrives meanwhile, all of it,
 * though it was posted behind; then it looks, and has all that is its own.
 */
static void one_is_full(void **state)
{
	struct rwk_src_counters c;

	(void)state;
	speakers_own |= RWK_RC_BUSY;
	for (uint32_t seed = 1; seed <= 4; seed++) {
		open_net(4, 4, 1 << 18, seed);
		net.lost = 10 * (seed - 1);
		net.takers = 3;
		for (unsigned i = 0; i < net.speakers; i++) {
			for (unsigned n = 0; n < 60; n++)
				speaker_post(&net.speaker[i], 3);
			for (unsigned n = 0; n < 90; n++)
				speaker_post(&net.speaker[i], n % 3);
		}
		run_for(200000);
		c = sum();
		assert_int_equal(c.no_room, 0);
		assert_true(c.turned_away > 0);
		for (unsigned i = 0; i < net.speakers; i++) {
			assert_false(speaker_idle(&net.speaker[i]));
			for (unsigned j = 0; j < 3; j++)
				assert_int_equal(net.ear[j].heard[i], net.speaker[i].posted[j]);
			assert_int_equal(net.ear[3].heard[i], 0);
		}
		run(0);
		check_all_heard();
		assert_int_equal(sum().repeated + sum().corrupt, 0);
		close_net();
	}
	speakers_own &= (uint16_t)~RWK_RC_BUSY;
}

/* The same with inboxes that fill all the time. */
static void all_are_small(void **state)
{
	(void)state;
	speakers_own |= RWK_RC_BUSY;
	open_net(4, 3, 65536, 7);
	net.lost = 10;
	net.takers = 1;
	net.idle = 400;
	run(200);
	check_all_heard();
	assert_true(sum().turned_away > 0);
	assert_int_equal(sum().repeated + sum().corrupt, 0);
	close_net();
	speakers_own &= (uint16_t)~RWK_RC_BUSY;
}

/* Initiators that go back at a loss, by RC's plain rules. */
static void strict_initiators(void **state)
{
	(void)state;
	speakers_own = RWK_RC_ENDLESS;
	open_net(4, 4, 1 << 20, 3);
	net.in_order = true;
	net.lost = 20;
	net.doubled = 20;
	run(100);
	check_all_heard();
	assert_int_equal(sum().qp.kept + sum().repeated, 0);
	close_net();
	speakers_own = RWK_RC_SELECTIVE | RWK_RC_ENDLESS;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_network),
		cmocka_unit_test(lossy_network),
		cmocka_unit_test(small_inboxes),
		cmocka_unit_test(one_is_full),
		cmocka_unit_test(all_are_small),
		cmocka_unit_test(strict_initiators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
