/* SPDX-License-Identifier: BSD-3-Clause */
/* What the calls of one-sided operations hand to the engine (bindings/libfabric/rma.c), which is this test here. */
#include "rwk_test.h"

#include "bindings/libfabric/trigger.h"

static uint32_t flags; /* of the last one */
static unsigned reads, writes;

ssize_t rwk_engine_read(struct rwk_engine *e, const struct rwk_rma_args *a)
{
	(void)e;
	flags = a->flags;
	reads++;
	return 0;
}

ssize_t rwk_engine_write(struct rwk_engine *e, const struct rwk_rma_args *a)
{
	(void)e;
	flags = a->flags;
	writes++;
	return 0;
}

/* Not reached: all can be done at once, and without a lock. */

ssize_t rwk_fi_trigger_access(
	struct rwk_fi_ep *ep, fi_addr_t to, const struct rwk_rma_args *a, rwk_fi_starter *start, bool atomic)
{
	(void)ep;
	(void)to;
	(void)a;
	(void)start;
	(void)atomic;
	fail();
	return 0;
}

int rwk_fi_ep_meet_whole(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer **peer)
{
	(void)ep;
	(void)number;
	(void)peer;
	fail();
	return 0;
}

bool rwk_peer_sending(const struct rwk_peer *p)
{
	(void)p;
	fail();
	return false;
}

void rwk_fi_lock_stir(struct rwk_fi_mutex *lock)
{
	(void)lock;
	fail();
}

static char engine, peer; /* their addresses stand for them */
static struct rwk_peer *peers[] = {(struct rwk_peer *)(void *)&peer};
static struct rwk_fi_cq cq;
static struct rwk_fi_ep ep;

/* An endpoint with that queue, which reaches one peer. */
static void open_ep(struct rwk_fi_cq *tx)
{
	ep = (struct rwk_fi_ep){.engine = (struct rwk_engine *)(void *)&engine,
		.caps = FI_RMA | FI_READ | FI_WRITE,
		.peers = peers,
		.peer_room = 1};
	ep.side[RWK_FI_TX].cq = tx;
}

static bool told_behind(bool read)
{
	unsigned before = read ? reads : writes;
	struct fid_ep *fid = &ep.fid;
	char buf[8] = {0};
	ssize_t rc = read ? rwk_fi_rma_ops.read(fid, buf, sizeof(buf), NULL, 0, 0, 1, NULL)
			  : rwk_fi_rma_ops.write(fid, buf, sizeof(buf), NULL, 0, 0, 1, NULL);

	assert_int_equal(rc, 0);
	assert_int_equal(read ? reads : writes, before + 1);
	return flags & RWK_F_BEHIND;
}

/* The engine learns that completions of before have not been looked at, while there are any. */
static void behind(void **state)
{
	(void)state;
	open_ep(&cq);
	for (int read = 0; read < 2; read++) {
		assert_false(told_behind(read));
		cq.done.tail++;
		assert_true(told_behind(read));
		cq.done.head++;
		assert_false(told_behind(read));
	}
	open_ep(NULL);
	assert_false(told_behind(true) || told_behind(false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
