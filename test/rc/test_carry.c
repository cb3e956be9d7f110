/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a reliable connection carries when nothing is lost, over the simulated network with real packets: strict ends,
 * and our own.
 *
 * Links: sim.
 */
#include "rwk_test.h"

#include "rc/end.h"

#define MS 1000000ull

static uint8_t bytes[END_REGION], back[END_REGION];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
}

static const size_t lengths[] = {0, 1, 255, 256, 257, 511, 512, 513, 5000, 100001};

struct run {
	struct rwk_sim *sim;
	struct end *a, *b;
};

static void begin(struct run *r, const struct rwk_rc_attr *attr)
{
	struct rwk_sim_attr sim = rwk_sim_attr_default;

	sim.mtu = 8192;
	assert_int_equal(rwk_sim_open(&sim, &r->sim), 0);
	end_pair(r->sim, attr, &r->a, &r->b);
	fill();
}

static void end(struct run *r)
{
	end_close(r->a);
	end_close(r->b);
	rwk_sim_close(r->sim);
}

/* S3-1, S3-2, S3-3, S3-9: Sends, Writes and Reads of every boundary length arrive whole. */
static void carries(const struct rwk_rc_attr *attr)
{
	struct run r;

	begin(&r, attr);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct iovec iov[3];
		struct rwk_wr send = end_wr(RWK_WR_SEND, &iov[0], bytes, lengths[i]);
		struct rwk_wr write = end_wr(RWK_WR_WRITE, &iov[1], bytes + 1, lengths[i]);
		struct rwk_wr read = end_wr(RWK_WR_READ, &iov[2], back, lengths[i]);
		struct end_message *m;

		memset(back, 0xee, sizeof(back));
		read.flags = RWK_WR_FENCE;
		end_post(r.a, &send);
		end_post(r.a, &write);
		end_post(r.a, &read);
		assert_true(end_settle(r.a, r.b, 100 * MS));
		assert_int_equal(r.a->done_count, 3 * (i + 1));
		assert_int_equal(r.a->failed_count + r.b->failed_count, 0);
		m = end_take(r.b);
		assert_non_null(m);
		assert_int_equal(m->len, lengths[i]);
		assert_memory_equal(m->bytes, bytes, lengths[i]);
		free(m);
		assert_memory_equal(r.b->region, bytes + 1, lengths[i]);
		assert_memory_equal(back, bytes + 1, lengths[i]);
		assert_int_equal(back[lengths[i]], 0xee);
	}
	assert_int_equal(rwk_rc_counters(r.a->qp)->sent_again, 0);
	assert_int_equal(rwk_rc_counters(r.b->qp)->duplicates, 0);
	end(&r);
}

static void test_strict(void **state)
{
	struct rwk_rc_attr attr = end_strict();

	(void)state;
	carries(&attr);
	attr.read_chunk = 1024;
	carries(&attr);
	attr.service = RWK_WIRE_SRC;
	carries(&attr);
}

static void test_own(void **state)
{
	struct rwk_rc_attr attr = end_own();

	(void)state;
	carries(&attr);
	attr.own = RWK_RC_SELECTIVE;
	carries(&attr);
	attr.own = RWK_RC_LAZY;
	carries(&attr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
