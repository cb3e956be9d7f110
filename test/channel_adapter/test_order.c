/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ordering hints through ropewalk.h, RC and SRC, on the simulated network in place of udp: what a program sees of
 * them when a packet is lost. (On a stream, and on shm, nothing comes out of order.)
 *
 *     near   qp ---- first packet lost ----> qp   far
 *
 * Links: sim.
 */
#include "channel_adapter/ends.h"
#include "channel_adapter/sim_udp.h"

#include "channel_adapter/cq.h"

#include <errno.h>

#define IMM 77u

static struct job job; /* SRC: whose receives and memory */

static void open_both(enum rwk_qp_type type, bool unordered, uint32_t drop)
{
	struct rwk_sim_attr sim = rwk_sim_attr_default;

	sim.mtu = 4096;
	sim.seed = drop + 1;
	sim.path.drop = sim.path.reorder = drop;
	assert_int_equal(rwk_sim_open(&sim, &sim_udp), 0);
	ends_unordered = unordered;
	ends_open(type);
	if (type == RWK_QP_SRC)
		ends_open_job(&job, &far, far.domain, 0);
}

static void close_both(enum rwk_qp_type type)
{
	if (type == RWK_QP_SRC)
		ends_close_job(&job);
	ends_close();
	rwk_sim_close(sim_udp);
	ends_unordered = false;
}

/* Where far's bytes are, and what completes there. */
static uint8_t *memory(enum rwk_qp_type type)
{
	return type == RWK_QP_SRC ? job.in : far.in;
}

static struct rwk_cq *receives(enum rwk_qp_type type)
{
	return type == RWK_QP_SRC ? job.cq : far.receive_cq;
}

/* `len` bytes of far's memory from `at` on, to receive in. */
static void receive(enum rwk_qp_type type, uint64_t id, size_t at, size_t len)
{
	struct rwk_sge sge = {memory(type) + at, len, rwk_mr_key(type == RWK_QP_SRC ? job.mr : far.in_mr)};
	struct rwk_receive r = {.id = id, .sge = &sge, .sge_count = 1};

	assert_int_equal(type == RWK_QP_SRC ? rwk_srq_post_receive(job.srq, &r) : rwk_qp_post_receive(far.qp, &r), 0);
}

/* `len` bytes from `from` on of near's memory; remote: `to` of far's. */
static int post(enum rwk_qp_type type, enum rwk_request_type what, unsigned flags, size_t from, size_t len, size_t to)
{
	struct rwk_sge sge = {near.out + from, len, rwk_mr_key(near.out_mr)};
	struct rwk_request r = {.type = what,
		.flags = flags,
		.sge = &sge,
		.sge_count = 1,
		.remote = (uintptr_t)memory(type) + to,
		.key = rwk_mr_key(type == RWK_QP_SRC ? job.mr : far.in_mr),
		.imm = IMM,
		.srqn = type == RWK_QP_SRC ? job.number : 0};

	return rwk_qp_post(near.qp, &r);
}

static void go_on(rwk_time time)
{
	rwk_time until = rwk_sim_now(sim_udp) + time;

	while (rwk_sim_now(sim_udp) < until) {
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0), 0);
		assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		rwk_sim_run_until(sim_udp, rwk_sim_now(sim_udp) + 2000);
	}
}

static struct rwk_wc await(struct rwk_cq *cq)
{
	struct rwk_wc wc;

	for (unsigned i = 0; !rwk_cq_poll(cq, &wc, 1); i++) {
		assert_true(i < 1000000);
		go_on(2000);
	}
	assert_int_equal(wc.status, 0);
	return wc;
}

/* S2-6: at most one of fence, un-ordered and half-ordered; the rest is refused at post, UC knows the hints too. */
static void s2_6_at_most_one(void **state)
{
	static const unsigned bits[] = {RWK_REQUEST_FENCE, RWK_REQUEST_UNORDERED, RWK_REQUEST_HALF_ORDERED};

	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_SRC; type++)
		for (unsigned set = 0; set < 8; set++) {
			unsigned flags = 0;

			open_both(type, set & 1 && type != RWK_QP_UC, 0);
			for (unsigned i = 0; i < 3; i++)
				flags |= set >> i & 1 ? bits[i] : 0;
			assert_int_equal(post(type, RWK_REQUEST_WRITE, flags, 0, 8, 0),
				__builtin_popcount(set) > 1 ? -EINVAL : 0);
			if (__builtin_popcount(set) <= 1)
				await(near.send_cq);
			close_both(type);
		}
}

/* S2-1, S2-7: R, then S, two receives X and Y, R lost at first: S is in X if both ends know un-ordered, else R is.
 * Their sender hears of R first either way. */
static void s2_7_each_others_receive(void **state)
{
	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_SRC; type += RWK_QP_SRC)
		for (unsigned agreed = 0; agreed < 2; agreed++)
			for (unsigned long_ = 0; long_ < 2; long_++) {
				size_t len = long_ ? 3 * PMTU - 7 : 10; /* S2-12: three packets stay together */

				open_both(type, agreed, 0);
				memset(near.out, 'R', len);
				memset(near.out + len, 'S', len);
				receive(type, 'X', 0, len);
				receive(type, 'Y', len, len);
				rwk_sim_rule(sim_udp, 1, 2, 1, RWK_SIM_DROP);
				assert_int_equal(post(type, RWK_REQUEST_SEND, RWK_REQUEST_UNORDERED, 0, len, 0), 0);
				assert_int_equal(post(type, RWK_REQUEST_SEND, RWK_REQUEST_UNORDERED, len, len, 0), 0);
				assert_int_equal(await(receives(type)).id, 'X');
				assert_int_equal(await(receives(type)).id, 'Y');
				for (size_t i = 0; i < 2 * len; i++)
					assert_int_equal(memory(type)[i], (i < len) == !agreed ? 'R' : 'S');
				assert_int_equal(await(near.send_cq).length, len);
				await(near.send_cq);
				close_both(type);
			}
}

/* S2-11: a Write is placed, and a Read brings its bytes, while the Send before them is missing; they complete behind
 * it. */
static void s2_11_before_the_lost_one(void **state)
{
	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_SRC; type += RWK_QP_SRC)
		for (unsigned agreed = 0; agreed < 2; agreed++) {
			size_t len = 2 * PMTU + 5;
			struct rwk_wc wc;

			open_both(type, agreed, 0);
			receive(type, 1, 0, 10);
			memset(near.out, 'W', 2 * len);
			memset(memory(type) + 5000, 'R', len);
			for (unsigned i = 1; i <= 8; i++) /* it, and all that is sent again */
				rwk_sim_rule(sim_udp, 1, 2, i == 1 ? 1 : i + 4, RWK_SIM_DROP);
			assert_int_equal(post(type, RWK_REQUEST_SEND, RWK_REQUEST_UNORDERED, 0, 10, 0), 0);
			assert_int_equal(post(type, RWK_REQUEST_WRITE, RWK_REQUEST_UNORDERED, 0, len, 10000), 0);
			assert_int_equal(post(type, RWK_REQUEST_READ, RWK_REQUEST_UNORDERED, len, len, 5000), 0);
			go_on(50000);
			for (size_t i = 0; i < len; i++) {
				assert_int_equal(memory(type)[10000 + i], agreed ? 'W' : 0xee);
				assert_int_equal(near.out[len + i], agreed ? 'R' : 'W');
			}
			assert_int_equal(rwk_cq_poll(near.send_cq, &wc, 1), 0);
			assert_int_equal(await(near.send_cq).type, RWK_WC_SEND);
			assert_int_equal(await(near.send_cq).type, RWK_WC_WRITE);
			assert_int_equal(await(near.send_cq).type, RWK_WC_READ);
			assert_int_equal(memory(type)[10000 + len - 1], 'W');
			close_both(type);
		}
}

/* S2-11, S2-12: a Write with immediate data that comes while a Send is under way leaves it its receive. */
static void s2_11_immediate_behind_a_send(void **state)
{
	size_t len = 3 * PMTU - 7;

	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_SRC; type += RWK_QP_SRC) {
		struct rwk_wc wc;

		open_both(type, true, 0);
		receive(type, 'X', 0, len);
		receive(type, 'Y', len, len);
		rwk_sim_rule(sim_udp, 1, 2, 2, RWK_SIM_DROP); /* of the Send's three packets */
		assert_int_equal(post(type, RWK_REQUEST_SEND, RWK_REQUEST_UNORDERED, 0, len, 0), 0);
		assert_int_equal(
			post(type, RWK_REQUEST_WRITE, RWK_REQUEST_UNORDERED | RWK_REQUEST_IMM, len, 16, 2 * len), 0);
		wc = await(receives(type));
		assert_int_equal(wc.id, 'X');
		assert_int_equal(wc.type, RWK_WC_RECEIVE);
		assert_int_equal(wc.length, len);
		assert_memory_equal(memory(type), near.out, len);
		wc = await(receives(type));
		assert_int_equal(wc.id, 'Y');
		assert_int_equal(wc.type, RWK_WC_RECEIVE_WRITE);
		assert_int_equal(wc.imm, IMM);
		assert_int_equal(wc.length, 16);
		assert_memory_equal(memory(type) + 2 * len, near.out + len, 16);
		assert_int_equal(await(near.send_cq).type, RWK_WC_SEND);
		assert_int_equal(await(near.send_cq).type, RWK_WC_WRITE);
		close_both(type);
	}
}

/*
 * An RTR that is refused, of a qp that is connected, does nothing, whatever it asks for: neither to packets that were
 * kept before, nor to those that come later.
 */
static void refused_rtr_keeps_packets(void **state)
{
	size_t len = 3 * PMTU - 7;

	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_SRC; type += RWK_QP_SRC)
		for (unsigned agreed = 0; agreed < 2; agreed++)
			for (unsigned kept = 0; kept < 2; kept++) {
				struct rwk_qp_attr attr = {
					.pmtu = PMTU, .retry = 7, .peer_qpn = 5, .unordered = agreed};
				struct rwk_qp_info info;

				open_both(type, true, 0);
				memcpy(attr.peer_ip, near.ip, 16);
				rwk_sim_rule(sim_udp, 1, 2, 2, RWK_SIM_DROP);
				assert_int_equal(post(type, RWK_REQUEST_WRITE, RWK_REQUEST_UNORDERED, 0, len, 0), 0);
				if (kept)
					go_on(50000);
				rwk_qp_query(far.qp, &info);
				assert_int_equal(info.early, kept);
				assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RTR, &attr), -EINVAL);
				assert_int_equal(await(near.send_cq).type, RWK_WC_WRITE);
				assert_memory_equal(memory(type), near.out, len);
				close_both(type);
			}
}

/*
 * S2-3, S2-10: rounds of un-ordered Writes and one half-ordered Send that says that they are there, each round sent
 * without waiting for the one before, while packets are lost and reordered: when the Send is received, they are.
 */
static void s2_3_half_ordered_says_so(void **state)
{
	enum { ROUNDS = 6, WRITES = 4, LENGTH = 400 };
	uint64_t before_turn = 0;

	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_SRC; type += RWK_QP_SRC)
		for (uint32_t seed = 0; seed < 30; seed++) {
			struct rwk_qp_info info;

			open_both(type, true, 100000 + seed);
			for (unsigned r = 0; r < ROUNDS; r++) {
				receive(type, r, 0, 4);
				for (unsigned w = 0; w < WRITES; w++) {
					size_t at = (r * WRITES + w) * LENGTH;

					assert_int_equal(post(type, RWK_REQUEST_WRITE, RWK_REQUEST_UNORDERED, at,
								 LENGTH, 1000 + at),
						0);
				}
				assert_int_equal(post(type, RWK_REQUEST_SEND, RWK_REQUEST_HALF_ORDERED, 0, 4, 0), 0);
			}
			for (unsigned r = 0; r < ROUNDS; r++) {
				await(receives(type));
				assert_memory_equal(memory(type) + 1000, near.out, (r + 1) * WRITES * LENGTH);
			}
			for (unsigned i = 0; i < ROUNDS * (WRITES + 1); i++)
				await(near.send_cq);
			rwk_qp_query(far.qp, &info);
			before_turn += info.before_turn;
			close_both(type);
		}
	assert_true(before_turn > 100);
}

static void send_and_leave(void)
{
	assert_int_equal(post(RWK_QP_RC, RWK_REQUEST_SEND, 0, 0, 1, 0), 0);
	await(near.send_cq);
}

/* A cq that grows keeps what is in it, in its order, wherever its ring began. */
static void grown(void **state)
{
	enum { HEAD = 40 };
	uint64_t id = 0;

	(void)state;
	open_both(RWK_QP_RC, false, 0);
	for (uint64_t i = 0; i < DEPTH; i++)
		receive(RWK_QP_RC, i, 0, 1);
	for (; id < HEAD; id++) {
		send_and_leave();
		assert_int_equal(await(far.receive_cq).id, id);
		receive(RWK_QP_RC, DEPTH + id, 0, 1);
	}
	for (unsigned i = 0; i < HEAD; i++)
		send_and_leave();
	assert_int_equal(rwk_ca_cq_grow(far.receive_cq, DEPTH - 1), 0);
	assert_int_equal(rwk_ca_cq_grow(far.receive_cq, 2 * DEPTH + 1), 0);
	assert_int_equal(rwk_ca_cq_grow(far.receive_cq, SIZE_MAX), -ENOMEM);
	for (unsigned i = 0; i < DEPTH - HEAD; i++)
		send_and_leave();
	for (; id < HEAD + DEPTH; id++)
		assert_int_equal(await(far.receive_cq).id, id);
	close_both(RWK_QP_RC);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s2_6_at_most_one),
		cmocka_unit_test(s2_7_each_others_receive),
		cmocka_unit_test(s2_11_before_the_lost_one),
		cmocka_unit_test(s2_11_immediate_behind_a_send),
		cmocka_unit_test(refused_rtr_keeps_packets),
		cmocka_unit_test(s2_3_half_ordered_says_so),
		cmocka_unit_test(grown),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
