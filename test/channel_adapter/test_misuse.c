/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In debug builds a call ends the program, and names itself, when it is given an object that was destroyed, or one of
 * another kind; each in a process of its own. Other builds do not look, and do not run this.
 */
#include "channel_adapter/ends.h"
#include "channel_adapter/misuse.h"

static struct rwk_adapter *adapter;
static struct rwk_pd *pd;
static struct rwk_mr *mr;
static struct rwk_mw *mw;
static struct rwk_cq *cq;
static struct rwk_src_domain *domain;
static struct rwk_srq *srq;
static struct rwk_qp *qp;
static uint32_t n;

static void close_adapter_twice(void)
{
	rwk_adapter_close(adapter);
}

static void use_adapter(void)
{
	rwk_cq_create(adapter, 1, &cq);
}

static void use_pd(void)
{
	rwk_mr_register(pd, near.in, 8, 0, &mr);
}

static void use_mr(void)
{
	rwk_mr_deregister(mr);
}

static void key_of_mr(void)
{
	rwk_mr_key(mr);
}

static void use_mw(void)
{
	rwk_mw_destroy(mw);
}

static void bind_mw(void)
{
	struct rwk_bind b = {.mr = near.in_mr, .address = near.in, .length = 8};

	rwk_mw_bind(near.qp, mw, 0, 0, &b);
}

static void bind_to_mr(void)
{
	struct rwk_bind b = {.mr = mr, .address = near.in, .length = 8};

	rwk_mw_create(near.pd, RWK_MW_1, &mw);
	rwk_mw_bind(near.qp, mw, 0, 0, &b);
}

static void use_cq(void)
{
	rwk_cq_poll(cq, NULL, 0);
}

static void sleep_on_cq(void)
{
	rwk_cq_wait(cq, RWK_CQ_NEXT, 0);
}

static void use_domain(void)
{
	rwk_src_domain_destroy(domain);
}

static void use_srq(void)
{
	rwk_srq_post_receive(srq, &(struct rwk_receive){0});
}

static void qp_of_dead_srq(void)
{
	rwk_qp_create(near.pd,
		&(struct rwk_qp_create_attr){
			.send_cq = near.send_cq, .receive_cq = near.receive_cq, .send_max = 1, .srq = srq},
		&qp);
}

static void use_qp(void)
{
	rwk_qp_post(qp, &(struct rwk_request){0});
}

static void modify_qp(void)
{
	rwk_qp_modify(qp, RWK_QPS_INIT, NULL);
}

static void post_batch(void)
{
	rwk_qp_post_batch(qp, NULL, 0, &n);
}

static void receive(void)
{
	rwk_qp_post_receive(qp, &(struct rwk_receive){0});
}

static void query(void)
{
	struct rwk_qp_info info;

	rwk_qp_query(qp, &info);
}

static void other_kind(void)
{
	rwk_pd_destroy((struct rwk_pd *)near.send_cq);
}

/* One of each is made and destroyed; near's own live on. */
static void make_dead(void)
{
	struct rwk_qp_create_attr create = {.type = RWK_QP_UC, .send_max = 1, .receive_max = 1};
	struct end second;

	ends_open_one(&near, 1, RWK_QP_RC);
	ends_connect(&near, &near, ACCESS);
	ends_open_adapter(&second, 2);
	adapter = second.adapter;
	assert_int_equal(rwk_adapter_close(adapter), 0);
	assert_int_equal(rwk_pd_create(near.adapter, &pd), 0);
	assert_int_equal(rwk_mr_register(pd, near.in, 8, 0, &mr), 0);
	assert_int_equal(rwk_mr_deregister(mr), 0);
	assert_int_equal(rwk_mw_create(pd, RWK_MW_1, &mw), 0);
	rwk_mw_destroy(mw);
	assert_int_equal(rwk_cq_create(near.adapter, 4, &cq), 0);
	assert_int_equal(rwk_src_domain_create(near.adapter, &domain), 0);
	assert_int_equal(rwk_src_domain_destroy(domain), 0);
	assert_int_equal(rwk_srq_create(pd, &(struct rwk_srq_attr){.receive_max = 1}, &srq), 0);
	assert_int_equal(rwk_srq_destroy(srq), 0);
	create.send_cq = create.receive_cq = cq;
	assert_int_equal(rwk_qp_create(pd, &create, &qp), 0);
	rwk_qp_destroy(qp);
	assert_int_equal(rwk_cq_destroy(cq), 0);
	assert_int_equal(rwk_pd_destroy(pd), 0);
}

static const struct misuse cases[] = {
	{"rwk_adapter_close", close_adapter_twice},
	{"rwk_cq_create", use_adapter},
	{"rwk_mr_register", use_pd},
	{"rwk_mr_deregister", use_mr},
	{"rwk_mr_key", key_of_mr},
	{"rwk_mw_destroy", use_mw},
	{"rwk_qp_post", bind_mw},
	{"rwk_qp_post", bind_to_mr},
	{"rwk_cq_poll", use_cq},
	{"rwk_cq_wait", sleep_on_cq},
	{"rwk_src_domain_destroy", use_domain},
	{"rwk_srq_post_receive", use_srq},
	{"rwk_qp_create", qp_of_dead_srq},
	{"rwk_qp_post", use_qp},
	{"rwk_qp_modify", modify_qp},
	{"rwk_qp_post_batch", post_batch},
	{"rwk_qp_post_receive", receive},
	{"rwk_qp_query", query},
	{"rwk_pd_destroy", other_kind},
};

static void caught(void **state)
{
	(void)state;
	make_dead();
	misuses_are_caught(cases, sizeof(cases) / sizeof(cases[0]));
	ends_close_one(&near);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caught),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
