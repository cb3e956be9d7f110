/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests are posted: many at once, without a completion, with their bytes. Over UDP and on the simulated network.
 *
 * Links: udp, sim, tcp.
 */
#include "channel_adapter/world.h"

#define MANY 40u

static struct rwk_wc done(void)
{
	return ends_await(&near, near.send_cq);
}

/* A Send of `len` bytes from near.out + at. */
static struct rwk_request a_send(uint64_t id, unsigned flags, struct rwk_sge *sge, size_t at, size_t len)
{
	*sge = (struct rwk_sge){near.out + at, len, rwk_mr_key(near.out_mr)};
	return (struct rwk_request){.id = id, .flags = flags, .sge = sge, .sge_count = 1};
}

static void receive_many(unsigned count, size_t len)
{
	struct rwk_sge sge[MANY];
	struct rwk_receive r[MANY];
	uint32_t posted;

	for (unsigned i = 0; i < count; i++) {
		sge[i] = (struct rwk_sge){far.in + i * len, len, rwk_mr_key(far.in_mr)};
		r[i] = (struct rwk_receive){.id = i, .sge = &sge[i], .sge_count = 1};
	}
	assert_int_equal(rwk_qp_post_receive_batch(far.qp, r, count, &posted), 0);
	assert_int_equal(posted, count);
}

/* S4-3: many requests and receives in one call; they begin and complete in that order. */
static void batch(void **state)
{
	struct rwk_request r[MANY];
	struct rwk_sge sge[MANY];
	uint32_t posted;

	ends_open(service_of(state));
	receive_many(MANY, 500);
	for (unsigned i = 0; i < MANY; i++)
		r[i] = a_send(100 + i, 0, &sge[i], i * 500, 500);
	assert_int_equal(rwk_qp_post_batch(near.qp, r, MANY, &posted), 0);
	assert_int_equal(posted, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(ends_await(&far, far.receive_cq).id, i);
		assert_int_equal(done().id, 100 + i);
	}
	assert_memory_equal(far.in, near.out, MANY * 500);
	ends_close();
}

/* S4-3: of a batch in which one is wrong those before it are posted, and it is named. */
static void batch_fails(void **state)
{
	struct rwk_receive v[3] = {{.id = 1}, {.id = 2}, {.id = 3, .sge_count = RWK_SGE_MAX + 1}};
	struct rwk_request r[4];
	struct rwk_sge sge[4];
	uint32_t posted;

	ends_open(service_of(state));
	for (unsigned i = 0; i < 4; i++)
		r[i] = a_send(i, 0, &sge[i], 0, 0);
	r[2].flags = 1u << 30;
	assert_int_equal(rwk_qp_post_receive_batch(far.qp, v, 3, &posted), -EINVAL);
	assert_int_equal(posted, 2);
	assert_int_equal(rwk_qp_post_batch(near.qp, r, 4, &posted), -EINVAL);
	assert_int_equal(posted, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(done().id, i);
		assert_int_equal(ends_await(&far, far.receive_cq).id, 1 + i);
	}
	assert_int_equal(rwk_qp_post_batch(near.qp, r + 2, 1, &posted), -EINVAL);
	assert_int_equal(posted, 0);
	ends_quiet();
	ends_close();
}

/* S4-3: a queue's length of unsignalled requests, again and again, and no completion but that of the signalled one. */
static void unsignalled(void **state)
{
	struct rwk_request r[DEPTH];
	struct rwk_sge sge[DEPTH];
	uint32_t posted;

	ends_open(service_of(state));
	for (unsigned i = 0; i < DEPTH; i++) {
		r[i] = a_send(i, i + 1 < DEPTH ? RWK_REQUEST_UNSIGNALLED : 0, &sge[i], i, 8);
		r[i].type = RWK_REQUEST_WRITE;
		r[i].remote = (uintptr_t)far.in + 8 * i;
		r[i].key = rwk_mr_key(far.in_mr);
	}
	for (unsigned k = 0; k < 3; k++) {
		assert_int_equal(rwk_qp_post_batch(near.qp, r, DEPTH, &posted), 0);
		assert_int_equal(done().id, DEPTH - 1);
	}
	ends_quiet();
	for (unsigned i = 0; i < 8 * DEPTH; i++)
		assert_int_equal(far.in[i], near.out[i / 8 + i % 8]);
	ends_close();
}

/* S4-3: one that fails completes, and so do those that it takes along; they had an entry in the cq. */
static void unsignalled_fails(void **state)
{
	struct rwk_request r[DEPTH];
	struct rwk_sge sge[DEPTH];
	uint32_t posted;

	(void)state;
	ends_open(RWK_QP_RC);
	for (unsigned i = 0; i < DEPTH; i++) {
		r[i] = a_send(i, RWK_REQUEST_UNSIGNALLED, &sge[i], 0, 8);
		r[i].type = RWK_REQUEST_WRITE;
		r[i].remote = (uintptr_t)far.in;
		r[i].key = rwk_mr_key(far.in_mr) ^ (i == 1 ? 1u << 31 : 0);
	}
	assert_int_equal(rwk_qp_post_batch(near.qp, r, DEPTH, &posted), 0);
	for (unsigned i = 1; i < DEPTH; i++) {
		struct rwk_wc wc = done();

		assert_int_equal(wc.id, i);
		assert_int_equal(wc.status, i == 1 ? -EACCES : -ECANCELED);
	}
	ends_quiet();
	ends_close();
}

/* S4-5: bytes that are the client's again at once, though the peer is not ready yet; their memory has no key. */
static void inlined(void **state)
{
	uint8_t bytes[INLINE + 1], expected[INLINE];
	struct rwk_sge sge[2] = {{bytes, 30, 0}, {bytes + 30, INLINE - 30, 0}};
	struct rwk_request r = {.flags = RWK_REQUEST_INLINE, .sge = sge, .sge_count = 2};

	ends_open(service_of(state));
	for (unsigned k = 0; k < 2; k++) {
		receive_many(1, INLINE);
		for (unsigned i = 0; i < INLINE; i++)
			bytes[i] = expected[i] = (uint8_t)(i * 3 + k);
		r.type = k ? RWK_REQUEST_WRITE : RWK_REQUEST_SEND;
		r.remote = (uintptr_t)far.in;
		r.key = rwk_mr_key(far.in_mr);
		memset(far.in, 0xee, INLINE + 1);
		assert_int_equal(rwk_qp_post(near.qp, &r), 0);
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(done().length, INLINE);
		if (!k)
			assert_int_equal(ends_await(&far, far.receive_cq).length, INLINE);
		ends_quiet();
		assert_memory_equal(far.in, expected, INLINE);
		assert_int_equal(far.in[INLINE], 0xee);
	}
	sge[1].length++;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EMSGSIZE);
	r.sge_count = RWK_SGE_MAX + 1;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EINVAL);
	r.type = RWK_REQUEST_READ;
	r.sge_count = 1;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EINVAL);
	ends_close();
}

/* S4-5: RC keeps the bytes for as long as it may have to send them again. */
static void inlined_again(void **state)
{
	uint8_t bytes[INLINE], expected[2 * INLINE];
	struct rwk_sge sge = {bytes, INLINE, 0};
	struct rwk_request r = {.flags = RWK_REQUEST_INLINE, .sge = &sge, .sge_count = 1};
	struct rwk_qp_info info;

	(void)state;
	ends_open(RWK_QP_RC);
	for (unsigned i = 1; i <= 2; i++) {
		memset(bytes, (int)i, INLINE);
		assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	}
	memset(bytes, 0, INLINE);
	do { /* no receive is posted */
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0) + rwk_cq_poll(far.send_cq, NULL, 0), 0);
		if (ends_step)
			ends_step();
		rwk_qp_query(near.qp, &info);
	} while (info.rnr_in < 2);
	receive_many(2, INLINE);
	for (unsigned i = 1; i <= 2; i++) {
		memset(expected + (i - 1) * INLINE, (int)i, INLINE);
		assert_int_equal(ends_await(&far, far.receive_cq).length, INLINE);
		assert_int_equal(done().status, 0);
	}
	assert_memory_equal(far.in, expected, 2 * INLINE);
	ends_close();
}

/* Pieces of all memory whose lengths have no sum are too long to be sent, and room enough for what comes. */
static void endless(void **state)
{
	const size_t half = SIZE_MAX / 2 + 1;
	struct rwk_mr *all[2];
	struct rwk_sge sge[3];
	struct rwk_receive v = {.id = 1, .sge = sge, .sge_count = 3};
	struct rwk_request r = {.id = 2, .sge = sge, .sge_count = 3};

	ends_open(service_of(state));
	assert_int_equal(rwk_mr_register(near.pd, NULL, SIZE_MAX, RWK_ACCESS_LOCAL_WRITE, &all[0]), 0);
	assert_int_equal(rwk_mr_register(far.pd, NULL, SIZE_MAX, RWK_ACCESS_LOCAL_WRITE, &all[1]), 0);
	for (unsigned i = 0; i < 3; i++)
		sge[i] = (struct rwk_sge){i ? (void *)(8 * (uintptr_t)i) : far.in, half, rwk_mr_key(all[1])};
	sge[2].length = 16;
	assert_int_equal(rwk_qp_post_receive(far.qp, &v), 0);
	for (unsigned i = 0; i < 3; i++)
		sge[i].key = rwk_mr_key(all[0]);
	assert_int_equal(rwk_qp_post(near.qp, &r), -EMSGSIZE);
	r = a_send(3, 0, sge, 0, 500);
	assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	assert_int_equal(done().status, 0);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 500);
	assert_memory_equal(far.in, near.out, 500);
	rwk_mr_deregister(all[0]);
	rwk_mr_deregister(all[1]);
	ends_close();
}

/* S4-13: who sends by RC hears of the end when it has arrived, however often he looks before. */
static void ends_on_arrival(void **state)
{
	static const size_t lengths[] = {0, 8, 3 * PMTU + 1};

	(void)state;
	ends_open(RWK_QP_RC);
	for (unsigned i = 0; i < 3; i++) {
		struct rwk_wc wc;

		ends_receive(&far, i, lengths[i]);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, lengths[i], 0, 0), 0);
		for (unsigned k = 0; k < 200; k++) {
			assert_int_equal(rwk_cq_poll(near.send_cq, &wc, 1), 0);
			if (ends_step)
				ends_step();
		}
		assert_int_equal(done().status, 0);
		assert_int_equal(rwk_cq_poll(far.receive_cq, &wc, 1), 1);
		assert_true(wc.id == i && !wc.status && wc.length == lengths[i]);
	}
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(batch, world_rc),
		in_world_by(batch, world_uc),
		in_world_by(batch_fails, world_rc),
		in_world_by(batch_fails, world_uc),
		in_world_by(unsignalled, world_rc),
		in_world_by(unsignalled, world_uc),
		in_world_by(inlined, world_rc),
		in_world_by(inlined, world_uc),
		in_world_by(endless, world_rc),
		in_world_by(endless, world_uc),
		in_world(ends_on_arrival),
		in_world(unsignalled_fails),
		in_world(inlined_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
