/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel_adapter/asleep.h"

#include <poll.h>

bool is_readable(struct rwk_cq *cq, unsigned ms)
{
	struct pollfd p = {.fd = rwk_cq_fd(cq), .events = POLLIN};

	assert_true(p.fd >= 0);
	return poll(&p, 1, (int)ms) == 1;
}

void send_to_far(unsigned flags)
{
	struct rwk_request r = {.flags = flags | RWK_REQUEST_UNSIGNALLED};

	assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	if (ends_step)
		ends_step();
}

void post_to_far(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ends_receive(&far, i, 8);
}

int take(struct rwk_cq *cq)
{
	struct rwk_wc wc[DEPTH];

	return rwk_cq_poll(cq, wc, DEPTH);
}

void work(void)
{
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0), 0);
		if (ends_step)
			ends_step();
	}
}

struct rwk_qp *open_qp_on(struct rwk_cq *cq)
{
	struct rwk_qp_create_attr attr = {
		.type = RWK_QP_RC, .send_cq = cq, .receive_cq = cq, .send_max = 1, .receive_max = 1};
	struct rwk_qp *qp;

	assert_int_equal(rwk_qp_create(far.pd, &attr, &qp), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_post_receive(qp, &(struct rwk_receive){0}), 0);
	return qp;
}
