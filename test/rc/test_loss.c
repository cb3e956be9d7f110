/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exactly one packet lost, or repeated, at every place, and what is sent again for it. Links: sim.
 *
 * Every place of every number of packets for one kind of message, some for the others; RWK_TEST_ALL: every one for each,
 * RWK_TEST_SHORT: some for each.
 */
#include "rc/run.h"

/* One of n packets lost: exactly one is sent again, and before a time-out. */
static void one_lost(const struct rwk_rc_attr *attr, unsigned type, unsigned n, unsigned lost)
{
	struct run r;

	begin(&r, attr);
	if (type == RWK_WR_READ) {
		for (size_t i = 0; i < n * PMTU; i++)
			r.b->region[i] = (uint8_t)(i * 3 + i / PMTU * 7);
		memset(back, 0, sizeof(back));
		rwk_sim_rule(r.sim, 2, 1, lost, RWK_SIM_DROP);
	} else {
		rwk_sim_rule(r.sim, 1, 2, lost, RWK_SIM_DROP);
	}
	post(r.a, type, n);
	if (!end_settle(r.a, r.b, SEC))
		fail_msg("type %u: packet %u of %u lost: no end", type, lost, n);
	check_all_came(&r, type, n);
	if (counters(r.a)->sent_again != 1 || counters(r.a)->timeouts)
		fail_msg("type %u: packet %u of %u lost: %u sent again, %u time-outs", type, lost, n,
			(unsigned)counters(r.a)->sent_again, (unsigned)counters(r.a)->timeouts);
	assert_int_equal(counters(r.b)->duplicates, type == RWK_WR_READ);
	if (type == RWK_WR_READ)
		assert_int_equal(counters(r.b)->bytes_out,
			(n + 1) * PMTU + 0u * counters(r.b)->acks_out + 4 * counters(r.b)->acks_out);
	else
		assert_int_equal(counters(r.b)->packets_in, n);
	if (lost == n && type == RWK_WR_SEND)
		assert_int_equal(counters(r.a)->probes, 1);
	end(&r);
}

static void every_place(unsigned type, unsigned own)
{
	struct rwk_rc_attr attr = end_own();
	bool few = getenv("RWK_TEST_SHORT");
	bool all = (type == RWK_WR_SEND && own & RWK_RC_LAZY && !few) || getenv("RWK_TEST_ALL");
	unsigned whole = few ? 12 : 30; /* up to so many packets each place */

	attr.own = own;
	for (unsigned n = 1; n <= MOST; n += few && n > whole && n + 7 <= MOST ? 7 : 1)
		for (unsigned lost = 1; lost <= n; lost += n < whole || n == MOST || all ? 1 : 1 + (n + lost) % 23)
			one_lost(&attr, type, n, lost);
}

/* Between our own ends: exactly one of n packets lost, exactly one sent again; the last one without a time-out. */
static void one_send_lost(void **state)
{
	(void)state;
	every_place(RWK_WR_SEND, RWK_RC_SELECTIVE);
	every_place(RWK_WR_SEND, RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS);
}

static void one_write_packet_lost(void **state)
{
	(void)state;
	every_place(RWK_WR_WRITE, RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS);
}

/* S2-8: responses are placed as they come, and only the missing one is asked for again. */
static void one_response_lost(void **state)
{
	(void)state;
	every_place(RWK_WR_READ, RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS);
}

/* Sent again, and lost again, up to four times: the packets that follow show it each time, no clock is needed. */
static void lost_again(void **state)
{
	struct rwk_rc_attr attr = end_own();

	(void)state;
	attr.own = RWK_RC_SELECTIVE;
	for (unsigned times = 1; times <= 4; times++)
		for (unsigned lost = 0; lost < 20; lost++) {
			struct run r;

			begin(&r, &attr);
			r.a->lose_psn = attr.send_psn + lost;
			r.a->lose_times = times;
			post(r.a, RWK_WR_SEND, MOST);
			assert_true(end_settle(r.a, r.b, SEC));
			check_all_came(&r, RWK_WR_SEND, MOST);
			assert_int_equal(counters(r.a)->sent_again, times);
			assert_int_equal(counters(r.a)->timeouts + counters(r.a)->probes, 0);
			end(&r);
		}
}

/* A Read Request is lost among Sends: it alone is sent again, and executed in its place. */
static void request_lost(void **state)
{
	struct rwk_rc_attr attr = end_own();

	(void)state;
	for (unsigned before = 0; before < 6; before++)
		for (unsigned after = 0; after < 6; after++) {
			struct run r;

			begin(&r, &attr);
			memset(back, 0, sizeof(back));
			for (size_t i = 0; i < 10 * PMTU; i++)
				r.b->region[i] = (uint8_t)i;
			rwk_sim_rule(r.sim, 1, 2, before + 1, RWK_SIM_DROP);
			for (unsigned i = 0; i < before + 1 + after; i++) {
				wrs[i] = end_wr(i == before ? RWK_WR_READ : RWK_WR_SEND, &iovs[i],
					i == before ? back : bytes, i == before ? 10 * PMTU : 100);
				assert_int_equal(rwk_rc_post(r.a->qp, &wrs[i]), 0);
			}
			end_pump(r.a);
			assert_true(end_settle(r.a, r.b, SEC));
			assert_int_equal(r.a->done_count, before + 1 + after);
			assert_int_equal(r.b->message_count, before + after);
			assert_memory_equal(back, r.b->region, 10 * PMTU);
			assert_int_equal(counters(r.a)->timeouts, 0);
			/* Alone it is found by a probe for its last packet, and then asked for. */
			assert_in_range(counters(r.a)->sent_again, 1, after ? 1 : 2);
			assert_int_equal(r.b->reads, 10);
			end(&r);
		}
}

/* Strict: one of n lost: one NAK, and everything from the lost one on is sent again; the last: after the time-out. */
static void go_back(void **state)
{
	struct rwk_rc_attr attr = end_strict();

	(void)state;
	for (unsigned n = 1; n <= 60; n++)
		for (unsigned lost = 1; lost <= n; lost++) {
			struct run r;

			begin(&r, &attr);
			rwk_sim_rule(r.sim, 1, 2, lost, RWK_SIM_DROP);
			post(r.a, RWK_WR_SEND, n);
			assert_true(end_settle(r.a, r.b, SEC));
			check_all_came(&r, RWK_WR_SEND, n);
			assert_int_equal(counters(r.b)->naks_out, lost < n);
			assert_int_equal(counters(r.a)->naks_in, lost < n);
			assert_int_equal(counters(r.a)->timeouts, lost == n);
			assert_int_equal(counters(r.a)->sent_again, n - lost + 1);
			assert_int_equal(counters(r.b)->duplicates, 0);
			assert_int_equal(counters(r.b)->early, n - lost);
			end(&r);
		}
}

/* Strict: a response is lost: the implied NAK; the rest of the Read is asked for once, and no more than the rest. */
static void implied_nak(void **state)
{
	struct rwk_rc_attr attr = end_strict();

	(void)state;
	for (unsigned n = 1; n <= 60; n++)
		for (unsigned lost = 1; lost <= n; lost++) {
			struct run r;

			begin(&r, &attr);
			for (size_t i = 0; i < n * PMTU; i++)
				r.b->region[i] = (uint8_t)(i * 3 + i / PMTU * 7);
			rwk_sim_rule(r.sim, 2, 1, lost, RWK_SIM_DROP);
			post(r.a, RWK_WR_READ, n);
			assert_true(end_settle(r.a, r.b, SEC));
			check_all_came(&r, RWK_WR_READ, n);
			if (counters(r.a)->sent_again != 1 || counters(r.a)->timeouts != (lost == n))
				fail_msg("response %u of %u: %u, %u", lost, n, (unsigned)counters(r.a)->sent_again,
					(unsigned)counters(r.a)->timeouts);
			assert_int_equal(counters(r.b)->packets_out, n + (n - lost + 1));
			end(&r);
		}
}

/* Every packet of every kind twice: each is done once, and the second answered again. */
static void repeated(void **state)
{
	struct rwk_rc_attr attrs[] = {end_strict(), end_own()};

	(void)state;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned type = RWK_WR_SEND; type <= RWK_WR_FETCH_ADD; type++)
			for (unsigned way = 1; way <= 2; way++) {
				uint64_t value = 0, word = 40;
				struct run r;

				begin(&r, &attrs[k]);
				memcpy(r.b->region + 4096, &word, 8);
				for (unsigned i = 1; i <= 64; i++)
					rwk_sim_rule(r.sim, way, 3 - way, i, RWK_SIM_DUPLICATE);
				if (type < RWK_WR_COMPARE_SWAP) {
					post(r.a, type, 7);
				} else {
					wrs[0] = end_wr(type, &iovs[0], &value, 8);
					wrs[0].remote = r.b->base + 4096;
					wrs[0].swap_add = 2;
					wrs[0].compare = 40;
					end_post(r.a, &wrs[0]);
				}
				assert_true(end_settle(r.a, r.b, SEC));
				assert_int_equal(r.a->done_count, type == RWK_WR_SEND ? 7 : 1);
				assert_int_equal(r.b->message_count, type == RWK_WR_SEND ? 7 : 0);
				assert_int_equal(r.b->atomics, type >= RWK_WR_COMPARE_SWAP);
				assert_int_equal(r.b->writes, type == RWK_WR_WRITE ? 7 : 0);
				if (type >= RWK_WR_COMPARE_SWAP)
					assert_int_equal(value, 40);
				assert_int_equal(counters(r.a)->timeouts, 0);
				end(&r);
			}
}

/* An atomic's answer is lost: the value before comes from the saved result, and the word changes once (S3-4, S3-5). */
static void atomic_answer_lost(void **state)
{
	struct rwk_rc_attr attrs[] = {end_strict(), end_own()};

	(void)state;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned type = RWK_WR_COMPARE_SWAP; type <= RWK_WR_FETCH_ADD; type++) {
			uint64_t value[4] = {0}, word = 40;
			struct run r;

			begin(&r, &attrs[k]);
			memcpy(r.b->region + 4096, &word, 8);
			rwk_sim_rule(r.sim, 2, 1, 1, RWK_SIM_DROP);
			rwk_sim_rule(r.sim, 2, 1, 3, RWK_SIM_DROP);
			for (unsigned i = 0; i < 4; i++) {
				wrs[i] = end_wr(type, &iovs[i], &value[i], 8);
				wrs[i].remote = r.b->base + 4096;
				wrs[i].swap_add = type == RWK_WR_FETCH_ADD ? 1 : 41 + i;
				wrs[i].compare = 40 + i;
				assert_int_equal(rwk_rc_post(r.a->qp, &wrs[i]), 0);
			}
			end_pump(r.a);
			assert_true(end_settle(r.a, r.b, SEC));
			assert_int_equal(r.a->done_count, 4);
			assert_int_equal(r.b->atomics, 4);
			for (unsigned i = 0; i < 4; i++)
				assert_int_equal(value[i], 40 + i);
			memcpy(&word, r.b->region + 4096, 8);
			assert_int_equal(word, 44);
			end(&r);
		}
}

/* All acknowledgements of a burst lost: nothing arrives twice at the client, and little is sent for it. */
static void acks_lost(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct run r;

	(void)state;
	for (unsigned lost = 1; lost <= 12; lost++) {
		begin(&r, &attr);
		for (unsigned i = 1; i <= lost; i++)
			rwk_sim_rule(r.sim, 2, 1, i, RWK_SIM_DROP);
		post(r.a, RWK_WR_SEND, 30);
		assert_true(end_settle(r.a, r.b, 100 * SEC));
		check_all_came(&r, RWK_WR_SEND, 30);
		/* One packet for each silence. */
		assert_true(counters(r.a)->sent_again <= counters(r.a)->probes + counters(r.a)->timeouts);
		end(&r);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_send_lost),
		cmocka_unit_test(one_write_packet_lost),
		cmocka_unit_test(one_response_lost),
		cmocka_unit_test(lost_again),
		cmocka_unit_test(request_lost),
		cmocka_unit_test(go_back),
		cmocka_unit_test(implied_nak),
		cmocka_unit_test(repeated),
		cmocka_unit_test(atomic_answer_lost),
		cmocka_unit_test(acks_lost),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
