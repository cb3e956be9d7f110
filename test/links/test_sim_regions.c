/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer may read and write of a region that was exposed, on the simulated service and the packet service. */
#include "links/ends.h"

#include "base/param.h"

#define BIG  100000
#define MANY 140000 /* regions */

static const struct region_case {
	enum rwk_op_type type;
	size_t offset, length;
	bool writable, wrong_key;
	int status;
} region_cases[] = {
	{RWK_OP_READ, 0, BIG, false, false, 0},
	{RWK_OP_READ, 777, 5000, false, false, 0},
	{RWK_OP_READ, BIG, 0, false, false, 0},
	{RWK_OP_READ, 1, BIG, false, false, -EINVAL},
	{RWK_OP_READ, SIZE_MAX, 2, false, false, -EINVAL},
	{RWK_OP_READ, 0, 10, false, true, -EACCES},
	{RWK_OP_WRITE, 0, BIG, true, false, 0},
	{RWK_OP_WRITE, 49999, 3, true, false, 0},
	{RWK_OP_WRITE, BIG - 3, 4, true, false, -EINVAL},
	{RWK_OP_WRITE, 0, 4, false, false, -EACCES},
};

/* Posts an op on the region of that key from end 0 to end 1, and waits for its end. */
static void try_region(
	struct ends_op *op, enum rwk_op_type type, const struct rwk_rkey *key, size_t at, void *buf, size_t len)
{
	struct rwk_channel *ch = ends_side(0, 1)->ch;

	ends_make_op(op, type, buf, len);
	op->op.rkey = *key;
	op->op.offset = at;
	assert_int_equal(ch->transport->post(ch, &op->op), 0);
	ends_settle();
	assert_int_equal(op->done, 1);
}

static void try_case(const struct region_case *c, uint8_t *there, uint8_t *here, uint8_t *was)
{
	struct iovec iov[3] = {{there, 1000}, {there + 1000, 0}, {there + 1000, BIG - 1000}};
	struct rwk_channel *ch = ends_side(0, 1)->ch;
	struct rwk_rkey key, used;
	struct ends_op op;

	for (size_t n = 0; n < BIG; n++)
		there[n] = (uint8_t)(n * 11 + n / 256), here[n] = (uint8_t)(n * 3 + 1);
	memcpy(was, there, BIG);
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, iov, 3,
		RWK_EXPOSE_READ | (c->writable ? RWK_EXPOSE_WRITE : 0u), &key), 0);
	used = key;
	used.word[ends_packets() ? 0 : 1] += c->wrong_key;
	try_region(&op, c->type, &used, c->offset, here, c->length);
	if (!ends_packets() || !c->status)
		assert_int_equal(op.status, c->status);
	else
		assert_int_equal(op.status, -EACCES);
	if (c->status || c->type == RWK_OP_READ)
		assert_memory_equal(there, was, BIG);
	if (!c->status && c->length)
		assert_memory_equal(there + c->offset, here, c->length);
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
	try_region(&op, RWK_OP_READ, &key, 0, here, 10);
	assert_int_equal(op.status, -EACCES);
	assert_int_equal(ends_side(0, 1)->failed + ends_side(1, 0)->failed, 0);
	op.op.rkey = (struct rwk_rkey){{0}};
	assert_int_equal(ch->transport->post(ch, &op.op), -EINVAL);
}

/*
 * What a peer may read and write: an exposed region, in its range, writable for writes; data goes where offset and iov
 * say.
 */
static void regions(void **state)
{
	uint8_t *there = malloc(BIG), *here = malloc(BIG), *was = malloc(BIG);
	struct rwk_sim_service how = rwk_sim_service_default;
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	(void)state;
	attr.path = ends_lossy;
	how.late = 500000;
	for (size_t i = 0; i < sizeof(region_cases) / sizeof(region_cases[0]); i++) {
		ends_open(&attr, &how, 2);
		ends_connect(0, 1);
		ends_settle();
		try_case(&region_cases[i], there, here, was);
		ends_close();
	}
	free(there);
	free(here);
	free(was);
}

/* A port's regions may be limited: -ENOSPC beyond, room again after conceal. */
static void region_limit(void **state)
{
	struct rwk_sim_service how = rwk_sim_service_default;
	struct iovec iov = {"abc", 3};
	struct rwk_rkey key[3];

	(void)state;
	how.regions = 2;
	ends_open(NULL, &how, 2);
	ends_connect(0, 1);
	assert_int_equal(ends_transport->expose(ends_side(0, 1)->ch, &iov, 1, RWK_EXPOSE_READ, &key[0]), 0);
	assert_int_equal(ends_transport->expose(ends_side(0, 1)->ch, &iov, 1, RWK_EXPOSE_READ, &key[1]), 0);
	assert_int_equal(ends_transport->expose(ends_side(0, 1)->ch, &iov, 1, RWK_EXPOSE_READ, &key[2]), -ENOSPC);
	ends_transport->conceal(ends_side(0, 1)->ch, &key[0]);
	assert_int_equal(ends_transport->expose(ends_side(0, 1)->ch, &iov, 1, RWK_EXPOSE_READ, &key[2]), 0);
	ends_close();
}

/* The packet service has as many as anybody wants, and each is what its key says: more than a table holds. */
static void many_regions(void **state)
{
	static struct rwk_rkey key[MANY];
	static uint32_t there[MANY];
	uint32_t here;
	struct ends_op op;

	(void)state;
	ends_open_two();
	for (uint32_t i = 0; i < MANY; i++) {
		struct iovec iov = {&there[i], sizeof(there[i])};

		there[i] = i;
		assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &key[i]), 0);
	}
	for (uint32_t i = 0; i < MANY; i += 997) {
		try_region(&op, RWK_OP_READ, &key[i], 0, &here, sizeof(here));
		assert_int_equal(op.status, 0);
		assert_int_equal(here, i);
	}
	for (uint32_t i = 0; i < MANY; i++)
		if (i != MANY / 2)
			ends_transport->conceal(ends_side(1, 0)->ch, &key[i]);
	try_region(&op, RWK_OP_READ, &key[MANY / 2], 0, &here, sizeof(here));
	assert_int_equal(here, MANY / 2);
	try_region(&op, RWK_OP_READ, &key[MANY - 1], 0, &here, sizeof(here));
	assert_true(op.status < 0);
	ends_close();
}

/*
 * Concealed in the middle of a read: not a byte is read from then on. The read ends with an error; where the peer
 * writes instead, it may end well, from what has been copied by then. Messages go on.
 */
static void conceal_in_the_middle(void **state)
{
	uint8_t *there = malloc(BIG), *here = malloc(BIG);
	struct iovec iov = {there, BIG};
	int rendezvous = rwk_params.rendezvous;
	struct rwk_rkey key;
	struct ends_op op;

	(void)state;
	if (rendezvous == RWK_RENDEZVOUS_AUTO) /* which takes either, by the length */
		rwk_params.rendezvous = RWK_RENDEZVOUS_READ;
	memset(there, 0x5a, BIG);
	memset(here, 0, BIG);
	ends_open_two();
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &key), 0);
	ends_make_op(&op, RWK_OP_READ, here, BIG);
	op.op.rkey = key;
	assert_int_equal(ends_side(0, 1)->ch->transport->post(ends_side(0, 1)->ch, &op.op), 0);
	for (int i = 0; i < 20; i++) {
		rwk_sim_step(ends_net);
		ends_progress_all();
	}
	assert_int_equal(op.done, 0);
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
	memset(there, 0xa5, BIG); /* what is read from now on is wrong */
	assert_int_equal(ends_post(ends_side(1, 0)), 0);
	ends_settle();
	assert_int_equal(op.done, 1);
	assert_true(!op.status || op.status == -EACCES);
	if (!op.status)
		for (size_t i = 0; i < BIG; i++)
			assert_int_equal(here[i], 0x5a);
	assert_int_equal(op.status == 0,
		ends_transport == &sim_stream_transport || rwk_params.rendezvous == RWK_RENDEZVOUS_WRITE);
	assert_int_equal(ends_side(0, 1)->received, 1);
	rwk_params.rendezvous = rendezvous;
	free(there);
	free(here);
	ends_close();
}

/* The same where the peer is asked to write. */
static void regions_written(void **state)
{
	rwk_params.rendezvous = RWK_RENDEZVOUS_WRITE;
	regions(state);
}

static void conceal_in_the_middle_written(void **state)
{
	rwk_params.rendezvous = RWK_RENDEZVOUS_WRITE;
	conceal_in_the_middle(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_EACH(regions),
		ENDS_SIM(region_limit),
		ENDS_RC(many_regions),
		ENDS_UC(many_regions),
		ENDS_EACH(conceal_in_the_middle),
		ENDS_RC(regions_written),
		ENDS_RC(conceal_in_the_middle_written),
	};

	return cmocka_run_group_tests_name("channel services, regions", tests, NULL, NULL);
}
