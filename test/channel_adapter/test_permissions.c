/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S3-6: what is denied: a wrong key or range, a permission that the region does not give, or that the qp does not give.
 * Each permission is for its own operations alone. Over UDP, on TCP connections and on the simulated network.
 *
 * Links: udp, tcp, sim.
 */
#include "channel_adapter/world.h"

static unsigned right_to(enum rwk_request_type type)
{
	if (type == RWK_REQUEST_READ)
		return RWK_ACCESS_READ;
	return type == RWK_REQUEST_WRITE ? RWK_ACCESS_WRITE : RWK_ACCESS_ATOMIC;
}

/* What is refused breaks the connection: each case has a world of its own. */
static void open_both(enum rwk_qp_type type)
{
	assert_int_equal(world_open(NULL), 0);
	ends_open(type);
	memset(near.out, 0x11, 8);
}

static void close_both(void)
{
	ends_close();
	world_close(NULL);
}

/* What is wrong with a request. */
enum fault { KEY, BEFORE, BEHIND, PERMISSION, NO_PERMISSION, MISALIGNED, OTHER_PD, GONE, FAULTS };

struct target {
	uint64_t remote;
	uint32_t key;
	struct rwk_pd *pd;
	struct rwk_mr *mr;
};

/* The peer's region, with that fault; of mr and pd those that must be undone. */
static struct target faulty(enum fault fault, enum rwk_request_type type)
{
	struct target t = {.remote = (uintptr_t)far.in, .key = rwk_mr_key(far.in_mr)};
	unsigned access = ACCESS;

	if (fault == KEY)
		t.key ^= 0x40000000;
	else if (fault == BEFORE)
		t.remote -= 8;
	else if (fault == BEHIND)
		t.remote += REGION - (type >= RWK_REQUEST_COMPARE_SWAP ? 0 : 7);
	else if (fault == MISALIGNED)
		t.remote += 4;
	if (fault < PERMISSION || fault == MISALIGNED)
		return t;
	if (fault == OTHER_PD)
		assert_int_equal(rwk_pd_create(far.adapter, &t.pd), 0);
	if (fault == PERMISSION)
		access = ACCESS & ~right_to(type);
	else if (fault == NO_PERMISSION)
		access = RWK_ACCESS_LOCAL_WRITE;
	assert_int_equal(rwk_mr_register(t.pd ? t.pd : far.pd, far.in, REGION, access, &t.mr), 0);
	t.key = rwk_mr_key(t.mr);
	if (fault == GONE) {
		rwk_mr_deregister(t.mr);
		t.mr = NULL;
	}
	return t;
}

/* far's memory is as it was. */
static void untouched(void)
{
	for (size_t k = 0; k < REGION; k++)
		assert_int_equal(far.in[k], 0xee);
}

/* So is what near would have had back; its qp is in the error state for that reason. */
static void in_error(int error)
{
	struct rwk_qp_info info;

	assert_int_equal(near.out[0], 0x11);
	rwk_qp_query(near.qp, &info);
	assert_int_equal(info.state, RWK_QPS_ERR);
	assert_int_equal(info.error, error);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, -ECANCELED);
}

static void deny(enum fault fault, enum rwk_request_type type)
{
	struct target t;
	struct rwk_wc wc;

	open_both(RWK_QP_RC);
	t = faulty(fault, type);
	assert_int_equal(ends_request(&near, type, 8, t.remote, t.key), 0);
	wc = ends_await(&near, near.send_cq);
	if (wc.status != (fault == MISALIGNED ? -EINVAL : -EACCES))
		fail_msg("fault %d of a request of type %d: status %d", fault, type, wc.status);
	untouched();
	in_error(wc.status);
	if (t.mr)
		rwk_mr_deregister(t.mr);
	if (t.pd)
		assert_int_equal(rwk_pd_destroy(t.pd), 0);
	close_both();
}

/* What is wrong is denied, and said, nothing is touched, and the requester's qp is in the error state. */
static void denied(void **state)
{
	(void)state;
	for (enum fault fault = KEY; fault < FAULTS; fault++)
		for (unsigned type = RWK_REQUEST_WRITE; type <= RWK_REQUEST_FETCH_ADD; type++)
			if (fault != MISALIGNED || type >= RWK_REQUEST_COMPARE_SWAP)
				deny(fault, type);
}

/* The region gives all permissions, and the qp all but the one that is wanted: no less is denied. */
static void qp_forbids(void **state)
{
	(void)state;
	for (unsigned type = RWK_REQUEST_WRITE; type <= RWK_REQUEST_FETCH_ADD; type++) {
		ends_far_access = ACCESS & ~right_to(type);
		open_both(RWK_QP_RC);
		assert_int_equal(ends_request(&near, type, 8, (uintptr_t)far.in, rwk_mr_key(far.in_mr)), 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, -EACCES);
		untouched();
		in_error(-EACCES);
		close_both();
	}
	ends_far_access = ACCESS;
}

/* And gives it alone: that is enough. */
static void qp_allows(void **state)
{
	(void)state;
	for (unsigned type = RWK_REQUEST_WRITE; type <= RWK_REQUEST_FETCH_ADD; type++) {
		ends_far_access = right_to(type);
		open_both(RWK_QP_RC);
		assert_int_equal(ends_request(&near, type, 8, (uintptr_t)far.in, rwk_mr_key(far.in_mr)), 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		close_both();
	}
	ends_far_access = ACCESS;
}

/* UC's responder says nothing: it counts, and takes what follows. */
static void qp_forbids_uc(void **state)
{
	struct rwk_qp_info info;

	(void)state;
	ends_far_access = ACCESS & ~RWK_ACCESS_WRITE;
	open_both(RWK_QP_UC);
	assert_int_equal(ends_request(&near, RWK_REQUEST_WRITE, 5000, (uintptr_t)far.in, rwk_mr_key(far.in_mr)), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	ends_quiet();
	untouched();
	rwk_qp_query(far.qp, &info);
	assert_int_equal(info.bad_access, 1);
	assert_int_equal(info.state, RWK_QPS_RTS);
	ends_receive(&far, 1, 10);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 10, 0, 0), 0);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 10);
	close_both();
	ends_far_access = ACCESS;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denied),
		cmocka_unit_test(qp_forbids),
		cmocka_unit_test(qp_allows),
		cmocka_unit_test(qp_forbids_uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
