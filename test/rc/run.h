/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends over the simulated network, and so many packets from one to the other:
 *
 *     a (posts) ---- path 1 -> 2 ----> b
 *               <--- path 2 -> 1 -----
 */
#ifndef TEST_RC_RUN_H
#define TEST_RC_RUN_H

#include "rwk_test.h"

#include "rc/end.h"
#include "rc/internal.h"

#define US   1000ull
#define MS   1000000ull
#define SEC  1000000000ull
#define MOST 200u
#define PMTU 256u

static uint8_t bytes[MOST * PMTU], back[MOST * PMTU];
static struct rwk_wr wrs[1024];
static struct iovec iovs[1024];

struct run {
	struct rwk_sim *sim;
	struct end *a, *b;
	rwk_time began;
};

static void begin(struct run *r, const struct rwk_rc_attr *attr)
{
	struct rwk_sim_attr sim = rwk_sim_attr_default;

	sim.mtu = 8192;
	assert_int_equal(rwk_sim_open(&sim, &r->sim), 0);
	end_pair(r->sim, attr, &r->a, &r->b);
	r->began = rwk_sim_now(r->sim);
}

static void end(struct run *r)
{
	end_close(r->a);
	end_close(r->b);
	rwk_sim_close(r->sim);
}

/* n Sends of one packet, or one Write or Read of n packets. */
static inline void post(struct end *e, unsigned type, unsigned n)
{
	unsigned messages = type == RWK_WR_SEND ? n : 1;

	for (size_t i = 0; i < n * PMTU; i++)
		bytes[i] = (uint8_t)(i * 3 + i / PMTU * 7);
	for (unsigned i = 0; i < messages; i++) {
		if (type == RWK_WR_SEND)
			wrs[i] = end_wr(type, &iovs[i], bytes + i * PMTU, PMTU);
		else
			wrs[i] = end_wr(type, &iovs[i], type == RWK_WR_READ ? back : bytes, n * PMTU);
		assert_int_equal(rwk_rc_post(e->qp, &wrs[i]), 0);
	}
	end_pump(e);
}

static inline void check_all_came(struct run *r, unsigned type, unsigned n)
{
	unsigned messages = type == RWK_WR_SEND ? n : 1;

	assert_int_equal(r->a->done_count, messages);
	for (unsigned i = 0; i < messages; i++)
		assert_int_equal(r->a->done_status[i], 0);
	if (type == RWK_WR_SEND)
		assert_int_equal(r->b->message_count, n);
	for (unsigned i = 0; type == RWK_WR_SEND && i < n; i++) {
		struct end_message *m = end_take(r->b);

		assert_int_equal(m->len, PMTU);
		assert_memory_equal(m->bytes, bytes + i * PMTU, PMTU);
		free(m);
	}
	if (type == RWK_WR_WRITE)
		assert_memory_equal(r->b->region, bytes, n * PMTU);
	if (type == RWK_WR_READ)
		assert_memory_equal(back, bytes, n * PMTU);
	assert_int_equal(r->a->failed_count + r->b->failed_count, 0);
}

#endif
