/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S4-1, S4-2: the objects of a logical adapter: each belongs to one, is found there alone, and stays while it has
 * children. S4-5: what two qps can do, with and without the target's doing. Over UDP and on the simulated network.
 *
 * Links: udp, sim, tcp.
 */
#include "channel_adapter/world.h"

static void stays(struct end *e)
{
	assert_int_equal(rwk_adapter_close(e->adapter), -EBUSY);
}

/* S4-2: an adapter stays, whatever kind of child is its only one. */
static void children_of_adapter(void **state)
{
	struct rwk_event_channel *channel;
	struct rwk_src_domain *domain;
	struct rwk_pd *pd;
	struct rwk_cq *cq;
	struct end e;

	(void)state;
	ends_open_adapter(&e, 1);
	assert_int_equal(rwk_pd_create(e.adapter, &pd), 0);
	stays(&e);
	assert_int_equal(rwk_pd_destroy(pd), 0);
	assert_int_equal(rwk_cq_create(e.adapter, 4, &cq), 0);
	stays(&e);
	assert_int_equal(rwk_cq_destroy(cq), 0);
	assert_int_equal(rwk_src_domain_create(e.adapter, &domain), 0);
	stays(&e);
	assert_int_equal(rwk_src_domain_destroy(domain), 0);
	assert_int_equal(rwk_event_channel_create(e.adapter, &channel), 0);
	stays(&e);
	assert_int_equal(rwk_event_channel_destroy(channel), 0);
	assert_int_equal(rwk_adapter_close(e.adapter), 0);
}

/* S4-2: and so does what is below it. */
static void children(void **state)
{
	struct rwk_srq_attr shared = {.receive_max = 1}, src = {.receive_max = 1};
	struct rwk_qp_create_attr create = {.type = RWK_QP_UC, .send_max = 1};
	struct rwk_pd *pd;
	struct rwk_cq *cq, *cq_of_srq, *cq_of_receives;
	struct rwk_mr *mr;
	struct rwk_mw *mw;
	struct rwk_srq *srq, *srq_of_domain;
	struct rwk_src_domain *domain;
	struct rwk_qp *qp, *qp_of_domain;
	struct end e;
	uint8_t memory[8];

	(void)state;
	ends_open_adapter(&e, 1);
	assert_int_equal(rwk_cq_create(e.adapter, 4, &cq), 0);
	assert_int_equal(rwk_cq_create(e.adapter, 4, &cq_of_srq), 0);
	assert_int_equal(rwk_cq_create(e.adapter, 4, &cq_of_receives), 0);
	assert_int_equal(rwk_pd_create(e.adapter, &pd), 0);
	assert_int_equal(rwk_src_domain_create(e.adapter, &domain), 0);

	assert_int_equal(rwk_mr_register(pd, memory, sizeof(memory), ACCESS, &mr), 0);
	assert_int_equal(rwk_pd_destroy(pd), -EBUSY);
	assert_int_equal(rwk_mr_deregister(mr), 0);
	assert_int_equal(rwk_mw_create(pd, RWK_MW_2, &mw), 0);
	assert_int_equal(rwk_pd_destroy(pd), -EBUSY);
	rwk_mw_destroy(mw);
	assert_int_equal(rwk_srq_create(pd, &shared, &srq), 0);
	assert_int_equal(rwk_pd_destroy(pd), -EBUSY);
	src.domain = domain;
	src.cq = cq_of_srq;
	assert_int_equal(rwk_srq_create(pd, &src, &srq_of_domain), 0);
	assert_int_equal(rwk_src_domain_destroy(domain), -EBUSY);
	assert_int_equal(rwk_cq_destroy(cq_of_srq), -EBUSY);

	create.send_cq = cq;
	create.receive_cq = cq_of_receives;
	create.srq = srq;
	assert_int_equal(rwk_qp_create(pd, &create, &qp), 0);
	assert_int_equal(rwk_srq_destroy(srq), -EBUSY);
	assert_int_equal(rwk_cq_destroy(cq), -EBUSY);
	assert_int_equal(rwk_cq_destroy(cq_of_receives), -EBUSY);
	create = (struct rwk_qp_create_attr){.type = RWK_QP_SRC, .send_max = 1, .send_cq = cq, .domain = domain};
	assert_int_equal(rwk_qp_create(pd, &create, &qp_of_domain), 0);
	assert_int_equal(rwk_srq_destroy(srq_of_domain), 0);
	assert_int_equal(rwk_src_domain_destroy(domain), -EBUSY);
	rwk_qp_destroy(qp);
	assert_int_equal(rwk_cq_destroy(cq_of_receives), 0);
	assert_int_equal(rwk_srq_destroy(srq), 0);
	assert_int_equal(rwk_pd_destroy(pd), -EBUSY);
	assert_int_equal(rwk_cq_destroy(cq), -EBUSY);
	rwk_qp_destroy(qp_of_domain);

	assert_int_equal(rwk_pd_destroy(pd), 0);
	assert_int_equal(rwk_cq_destroy(cq), 0);
	assert_int_equal(rwk_cq_destroy(cq_of_srq), 0);
	assert_int_equal(rwk_src_domain_destroy(domain), 0);
	assert_int_equal(rwk_adapter_close(e.adapter), 0);
}

/* S4-1: objects of one adapter do not go with those of another; the same number at each names an object of each. */
static void organised(void **state)
{
	struct rwk_srq_attr attr = {.receive_max = 1, .number = 77};
	struct rwk_qp_create_attr create = {.type = RWK_QP_UC, .send_max = 1, .receive_max = 1};
	struct rwk_src_domain *domains[2];
	struct rwk_srq *srqs[2], *shared;
	struct rwk_qp *qp;

	(void)state;
	ends_open(RWK_QP_RC);
	create.send_cq = near.send_cq;
	create.receive_cq = far.receive_cq;
	assert_int_equal(rwk_qp_create(near.pd, &create, &qp), -EINVAL);
	create.send_cq = far.send_cq;
	create.receive_cq = near.receive_cq;
	assert_int_equal(rwk_qp_create(near.pd, &create, &qp), -EINVAL);
	create.send_cq = near.send_cq;
	assert_int_equal(rwk_qp_create(far.pd, &create, &qp), -EINVAL);
	assert_int_equal(rwk_srq_create(far.pd, &(struct rwk_srq_attr){.receive_max = 1}, &shared), 0);
	create.srq = shared;
	create.receive_max = 0;
	assert_int_equal(rwk_qp_create(near.pd, &create, &qp), -EINVAL);
	assert_int_equal(rwk_srq_destroy(shared), 0);

	assert_int_equal(rwk_src_domain_create(near.adapter, &domains[0]), 0);
	assert_int_equal(rwk_src_domain_create(far.adapter, &domains[1]), 0);
	attr.cq = near.receive_cq;
	attr.domain = domains[1];
	assert_int_equal(rwk_srq_create(near.pd, &attr, &srqs[0]), -EINVAL);
	create = (struct rwk_qp_create_attr){.type = RWK_QP_SRC, .send_max = 1, .send_cq = near.send_cq};
	create.domain = domains[1];
	assert_int_equal(rwk_qp_create(near.pd, &create, &qp), -EINVAL);
	attr.domain = domains[0];
	assert_int_equal(rwk_srq_create(near.pd, &attr, &srqs[0]), 0);
	attr.cq = far.receive_cq;
	attr.domain = domains[1];
	assert_int_equal(rwk_srq_create(far.pd, &attr, &srqs[1]), 0);
	assert_int_equal(rwk_srq_number(srqs[0]), rwk_srq_number(srqs[1]));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rwk_srq_destroy(srqs[i]), 0);
		assert_int_equal(rwk_src_domain_destroy(domains[i]), 0);
	}
	ends_close();
}

/* S4-1: a key is the adapter's that gave it: at another one it opens nothing. */
static void keys(void **state)
{
	struct rwk_wc wc;

	(void)state;
	ends_open(RWK_QP_RC);
	assert_int_equal(ends_request(&near, RWK_REQUEST_READ, 8, (uintptr_t)near.in, rwk_mr_key(near.in_mr)), 0);
	wc = ends_await(&near, near.send_cq);
	assert_int_equal(wc.status, -EACCES);
	ends_close();
}

static struct rwk_wc does(enum rwk_request_type type, size_t len)
{
	assert_int_equal(ends_request(&near, type, len, (uintptr_t)far.in, rwk_mr_key(far.in_mr)), 0);
	return ends_await(&near, near.send_cq);
}

/* S4-5: two-sided, the target posts a receive and hears of it; one-sided, it does neither. */
static void sides(void **state)
{
	enum rwk_qp_type type = service_of(state);
	struct rwk_wc wc;

	ends_open(type);
	ends_receive(&far, 3, 2000);
	assert_int_equal(does(RWK_REQUEST_SEND, 2000).type, RWK_WC_SEND);
	wc = ends_await(&far, far.receive_cq);
	assert_true(wc.type == RWK_WC_RECEIVE && wc.id == 3 && wc.length == 2000 && !wc.status);
	assert_memory_equal(far.in, near.out, 2000);
	memset(far.in, 0xee, REGION);
	ends_receive(&far, 4, 2000);
	assert_int_equal(does(RWK_REQUEST_WRITE, 2000).type, RWK_WC_WRITE);
	ends_quiet();
	assert_memory_equal(far.in, near.out, 2000);
	assert_int_equal(far.in[2000], 0xee);
	if (type == RWK_QP_RC) {
		memset(far.in, 0x44, 16);
		assert_int_equal(does(RWK_REQUEST_READ, 16).type, RWK_WC_READ);
		assert_memory_equal(near.out, far.in, 16);
		assert_int_equal(does(RWK_REQUEST_FETCH_ADD, 8).type, RWK_WC_FETCH_ADD);
		assert_memory_equal(near.out, far.in, 8);
	}
	ends_quiet(); /* the receive is still there */
	assert_int_equal(does(RWK_REQUEST_SEND, 8).status, 0);
	assert_int_equal(ends_await(&far, far.receive_cq).id, 4);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(children_of_adapter),
		in_world(children),
		in_world(organised),
		in_world(keys),
		in_world_by(sides, world_rc),
		in_world_by(sides, world_uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
