/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scalable reliable connection between two adapters, over UDP on loopback: its objects, what reaches whom by the
 * SRQ number, and what does not; and srqs that RC and UC qps share.
 *
 * Links: udp.
 */
#include "channel_adapter/ends.h"

static const size_t lengths[] = {0, 1, PMTU, PMTU + 1, 3 * PMTU, 10000};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))
#define JOBS    4u

static struct job jobs[JOBS];

/* Numbers of jobs that meet in the adapter's table, and the last one that there is. */
static const uint32_t numbers[JOBS] = {5, 5 + RWK_SRQS_MAX, 5 + 3 * RWK_SRQS_MAX, 0xffffff};

static void open_jobs(void)
{
	ends_open(RWK_QP_SRC);
	for (unsigned i = 0; i < JOBS; i++) {
		ends_open_job(&jobs[i], &far, far.domain, numbers[i]);
		assert_int_equal(jobs[i].number, numbers[i]);
	}
}

static void close_jobs(void)
{
	for (unsigned i = 0; i < JOBS; i++)
		ends_close_job(&jobs[i]);
	ends_close();
}

static uint64_t there(const struct job *j, size_t at)
{
	return (uintptr_t)j->in + at;
}

/* Nothing is in the cq of any job, and no memory was touched. */
static void jobs_untouched(void)
{
	struct rwk_wc wc;

	ends_quiet();
	for (unsigned i = 0; i < JOBS; i++) {
		assert_int_equal(rwk_cq_poll(jobs[i].cq, &wc, 1), 0);
		for (size_t k = 0; k < JOB_MEMORY; k++)
			assert_int_equal(jobs[i].in[k], 0xee);
	}
}

/* S1-1, S1-2: an srq has domain, number and cq, or none of them; a parent with children stays. */
static void srq_attributes(void **state)
{
	struct rwk_src_domain *domain, *foreign;
	struct rwk_srq *srq = NULL, *other = NULL;
	struct rwk_srq_attr good;

	(void)state;
	ends_open(RWK_QP_RC);
	assert_int_equal(rwk_src_domain_create(near.adapter, &domain), 0);
	assert_int_equal(rwk_src_domain_create(far.adapter, &foreign), 0);
	good = (struct rwk_srq_attr){.receive_max = 1, .domain = domain, .number = 77, .cq = near.receive_cq};
	const struct {
		uint32_t receive_max;
		struct rwk_src_domain *domain;
		uint32_t number;
		struct rwk_cq *cq;
	} bad[] = {
		{1, domain, 0, NULL},
		{1, domain, 77, NULL},
		{1, NULL, 77, near.receive_cq},
		{1, NULL, 0, near.receive_cq},
		{1, NULL, 77, NULL},
		{1, foreign, 77, near.receive_cq},
		{1, domain, 77, far.receive_cq},
		{1, domain, 0x1000000, near.receive_cq},
		{0, domain, 77, near.receive_cq},
		{RWK_QUEUE_MAX + 1, domain, 77, near.receive_cq},
		{0, NULL, 0, NULL},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rwk_srq_attr attr = {bad[i].receive_max, bad[i].domain, bad[i].number, bad[i].cq};

		if (rwk_srq_create(near.pd, &attr, &srq) != -EINVAL || srq)
			fail_msg("case %u", i);
	}
	assert_int_equal(rwk_srq_create(near.pd, &good, &srq), 0);
	assert_int_equal(rwk_srq_number(srq), 77);
	assert_int_equal(rwk_srq_create(near.pd, &good, &other), -EADDRINUSE);
	assert_int_equal(rwk_src_domain_destroy(domain), -EBUSY);
	good.number = 0;
	assert_int_equal(rwk_srq_create(near.pd, &good, &other), 0);
	assert_in_range(rwk_srq_number(other), 1, 0xffffff);
	assert_int_not_equal(rwk_srq_number(other), 77);
	assert_int_equal(rwk_srq_destroy(other), 0);
	assert_int_equal(rwk_srq_destroy(srq), 0);
	good.number = 77;
	assert_int_equal(rwk_srq_create(near.pd, &good, &srq), 0); /* the number is free again */
	assert_int_equal(rwk_srq_destroy(srq), 0);
	good = (struct rwk_srq_attr){.receive_max = 1};
	assert_int_equal(rwk_srq_create(near.pd, &good, &srq), 0);
	assert_int_equal(rwk_srq_number(srq), 0);
	assert_int_equal(rwk_srq_destroy(srq), 0);
	assert_int_equal(rwk_src_domain_destroy(domain), 0);
	assert_int_equal(rwk_src_domain_destroy(foreign), 0);
	ends_close();
}

/* S1-3: an SRC qp has a domain and no receives of its own; others have no domain. */
static void qp_attributes(void **state)
{
	struct rwk_srq_attr shared = {.receive_max = 1};
	struct rwk_src_domain *foreign;
	struct rwk_srq *srq, *near_srq;
	struct rwk_receive receive = {0};
	struct rwk_qp *qp = NULL;

	(void)state;
	open_jobs();
	assert_int_equal(rwk_src_domain_create(near.adapter, &foreign), 0);
	assert_int_equal(rwk_srq_create(far.pd, &shared, &srq), 0);
	assert_int_equal(rwk_srq_create(near.pd, &shared, &near_srq), 0);
	const struct {
		int rc;
		enum rwk_qp_type type;
		struct rwk_src_domain *domain;
		struct rwk_srq *srq;
		struct rwk_cq *receive_cq;
		uint32_t receive_max;
	} cases[] = {
		{0, RWK_QP_SRC, far.domain, NULL, NULL, 0},
		{-EINVAL, RWK_QP_SRC, NULL, NULL, NULL, 0},
		{-EINVAL, RWK_QP_SRC, foreign, NULL, NULL, 0},
		{-EINVAL, RWK_QP_SRC, far.domain, jobs[0].srq, NULL, 0},
		{-EINVAL, RWK_QP_SRC, far.domain, srq, NULL, 0},
		{-EINVAL, RWK_QP_SRC, far.domain, NULL, far.receive_cq, 0},
		{-EINVAL, RWK_QP_SRC, far.domain, NULL, NULL, 1},
		{0, RWK_QP_RC, NULL, srq, far.receive_cq, 0},
		{0, RWK_QP_UC, NULL, srq, far.receive_cq, 0},
		{-EINVAL, RWK_QP_RC, far.domain, NULL, far.receive_cq, 1},
		{-EINVAL, RWK_QP_UC, far.domain, NULL, far.receive_cq, 1},
		{-EINVAL, RWK_QP_RC, NULL, srq, far.receive_cq, 1},
		{-EINVAL, RWK_QP_RC, NULL, srq, NULL, 0},
		{-EINVAL, RWK_QP_RC, NULL, jobs[0].srq, far.receive_cq, 0},
		{-EINVAL, RWK_QP_RC, NULL, near_srq, far.receive_cq, 0},
		{-EINVAL, RWK_QP_RC, NULL, NULL, far.receive_cq, 0},
		{-EINVAL, RWK_QP_SRC + 1, NULL, NULL, far.receive_cq, 1},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_qp_create_attr create = {.type = cases[i].type,
			.send_cq = far.send_cq,
			.receive_cq = cases[i].receive_cq,
			.send_max = 1,
			.receive_max = cases[i].receive_max,
			.srq = cases[i].srq,
			.domain = cases[i].domain};

		if (rwk_qp_create(far.pd, &create, &qp) != cases[i].rc)
			fail_msg("case %u", i);
		if (cases[i].rc)
			continue;
		if (cases[i].srq)
			assert_int_equal(rwk_srq_destroy(cases[i].srq), -EBUSY);
		assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
		assert_int_equal(rwk_qp_post_receive(qp, &receive), -EINVAL);
		rwk_qp_destroy(qp);
	}
	assert_int_equal(rwk_srq_destroy(srq), 0);
	assert_int_equal(rwk_srq_destroy(near_srq), 0);
	assert_int_equal(rwk_src_domain_destroy(foreign), 0);
	close_jobs();
}

/* S1-1: as many srqs as the adapter says, each found by its number. */
static void limits(void **state)
{
	static struct rwk_srq *srqs[RWK_SRQS_MAX];
	struct rwk_srq_attr attr = {.receive_max = 1};
	unsigned n = 0;

	(void)state;
	ends_open(RWK_QP_SRC);
	attr.domain = near.domain;
	attr.cq = near.receive_cq;
	for (; n < RWK_SRQS_MAX; n++)
		assert_int_equal(rwk_srq_create(near.pd, &attr, &srqs[n]), 0);
	for (unsigned i = 0; i < RWK_SRQS_MAX; i++)
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(rwk_srq_number(srqs[i]), rwk_srq_number(srqs[k]));
	attr = (struct rwk_srq_attr){.receive_max = 1};
	assert_int_equal(rwk_srq_create(near.pd, &attr, &srqs[0]), -ENOSPC);
	while (n)
		assert_int_equal(rwk_srq_destroy(srqs[--n]), 0);
	ends_close();
}

/* S1-4, S1-7: each Send goes into a receive of the srq that it names, and completes in that srq's cq. */
static void sends(void **state)
{
	(void)state;
	open_jobs();
	for (unsigned i = 0; i < LENGTHS * JOBS; i++) {
		size_t n = lengths[i / JOBS];
		struct job *j = &jobs[i % JOBS];
		struct rwk_wc wc, none;

		memset(j->in, 0xee, JOB_MEMORY);
		ends_receive_job(j, i, n);
		assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, n, j->number, 0, 0), 0);
		wc = ends_await(&far, j->cq);
		assert_true(wc.type == RWK_WC_RECEIVE && wc.id == i && !wc.status && wc.length == n);
		assert_int_equal(wc.srqn, j->number);
		assert_memory_equal(j->in, near.out, n);
		assert_int_equal(j->in[n], 0xee);
		wc = ends_await(&near, near.send_cq);
		assert_true(wc.type == RWK_WC_SEND && !wc.status && !wc.srqn);
		for (unsigned k = 0; k < JOBS; k++)
			assert_int_equal(rwk_cq_poll(jobs[k].cq, &none, 1), 0);
	}
	ends_quiet();
	close_jobs();
}

/* S1-1: the connection goes both ways, each end with jobs of its own. */
static void both_ways(void **state)
{
	struct job back;

	(void)state;
	open_jobs();
	ends_open_job(&back, &near, near.domain, numbers[0]); /* another adapter's numbers are others */
	ends_receive_job(&back, 1, 100);
	ends_receive_job(&jobs[0], 2, 100);
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 10, numbers[0], 0, 0), 0);
	assert_int_equal(ends_request_src(&far, RWK_REQUEST_SEND, 20, numbers[0], 0, 0), 0);
	assert_int_equal(ends_await(&near, back.cq).length, 20);
	assert_int_equal(ends_await(&far, jobs[0].cq).length, 10);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	assert_int_equal(ends_await(&far, far.send_cq).status, 0);
	ends_close_job(&back);
	close_jobs();
}

/* S1-8: Writes, with immediate and without, Reads and atomics reach the memory of the srq that they name. */
static void memory(void **state)
{
	(void)state;
	open_jobs();
	for (unsigned i = 0; i < LENGTHS * JOBS; i++) {
		size_t n = lengths[i / JOBS];
		struct job *j = &jobs[i % JOBS];
		uint32_t key = rwk_mr_key(j->mr);
		struct rwk_sge sge = {near.out, n, rwk_mr_key(near.out_mr)};
		struct rwk_request imm = {.type = RWK_REQUEST_WRITE,
			.flags = RWK_REQUEST_IMM,
			.sge = &sge,
			.sge_count = 1,
			.imm = i,
			.remote = there(j, 16),
			.key = key,
			.srqn = j->number};
		struct rwk_wc wc;
		uint64_t value;

		memset(j->in, 0xee, JOB_MEMORY);
		assert_int_equal(ends_request_src(&near, RWK_REQUEST_WRITE, n, j->number, there(j, 16), key), 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		assert_memory_equal(j->in + 16, near.out, n);
		assert_true(j->in[15] == 0xee && j->in[16 + n] == 0xee);
		memset(j->in, 0x44, JOB_MEMORY);
		ends_receive_job(j, i, 0);
		assert_int_equal(rwk_qp_post(near.qp, &imm), 0);
		wc = ends_await(&far, j->cq);
		assert_true(wc.type == RWK_WC_RECEIVE_WRITE && wc.id == i && wc.imm == i && wc.length == n);
		assert_int_equal(wc.srqn, j->number);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		assert_memory_equal(j->in + 16, near.out, n);

		memset(j->in, (int)(0x30 + i), JOB_MEMORY);
		assert_int_equal(ends_request_src(&near, RWK_REQUEST_READ, n, j->number, there(j, 3), key), 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		assert_memory_equal(near.out, j->in + 3, n);
		value = i;
		memcpy(j->in + 8, &value, 8);
		assert_int_equal(ends_request_src(&near, RWK_REQUEST_FETCH_ADD, 8, j->number, there(j, 8), key), 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		memcpy(&value, near.out, 8);
		assert_int_equal(value, i);
	}
	ends_quiet();
	close_jobs();
}

/* S1-8, S1-6: what the requester hears, and that the responder's qp is in the error state. */
static void refused(int status)
{
	struct rwk_qp_info info;

	assert_int_equal(ends_await(&near, near.send_cq).status, status);
	rwk_qp_query(near.qp, &info);
	assert_int_equal(info.state, RWK_QPS_ERR);
	assert_int_equal(info.naks_in, 1);
	rwk_qp_query(far.qp, &info);
	assert_int_equal(info.state, RWK_QPS_ERR);
	assert_int_equal(info.error, status);
	jobs_untouched();
}

/*
 * S1-8: a key opens its memory for requests that name an srq of its pd: not for those of a sibling in the same domain,
 * and the pd of the qp opens nothing.
 */
static void protection(void **state)
{
	(void)state;
	for (unsigned of_qp = 0; of_qp < 2; of_qp++) {
		for (unsigned type = RWK_REQUEST_WRITE; type <= RWK_REQUEST_FETCH_ADD; type++) {
			open_jobs();
			assert_int_equal(ends_request_src(&near, type, 8, jobs[0].number,
						 of_qp ? (uintptr_t)far.in : there(&jobs[1], 0),
						 rwk_mr_key(of_qp ? far.in_mr : jobs[1].mr)),
				0);
			refused(-EACCES);
			for (size_t k = 0; k < REGION; k++)
				assert_int_equal(far.in[k], 0xee);
			close_jobs();
		}
	}
}

/*
 * S1-6: an srq of another domain, one that is not there, and one that was: a NAK, and the qp is in error; nothing is
 * taken, not even of it. Requests of no bytes need no key, but an srq.
 */
static void domains(void **state)
{
	struct rwk_src_domain *other;
	struct rwk_wc wc;
	struct job j;

	(void)state;
	for (unsigned who = 0; who < 3; who++) {
		for (unsigned type = RWK_REQUEST_SEND; type <= RWK_REQUEST_FETCH_ADD; type++) {
			for (size_t n = 0; n <= 8; n += 8) {
				uint32_t number = who == 1 ? 6 : 5 + 2 * RWK_SRQS_MAX;

				if (!n && type >= RWK_REQUEST_COMPARE_SWAP)
					continue;
				open_jobs();
				assert_int_equal(rwk_src_domain_create(far.adapter, &other), 0);
				ends_open_job(&j, &far, who == 2 ? far.domain : other, 5 + 2 * RWK_SRQS_MAX);
				ends_receive_job(&j, 1, 100);
				if (who == 2)
					ends_close_job(&j);
				assert_int_equal(ends_request_src(&near, type, n, number, who == 2 ? 0 : there(&j, 0),
							 who == 2 ? 0 : rwk_mr_key(j.mr)),
					0);
				refused(-EACCES);
				if (who != 2) {
					assert_int_equal(rwk_cq_poll(j.cq, &wc, 1), 0);
					assert_int_equal(j.in[0], 0xee);
					ends_close_job(&j);
				}
				assert_int_equal(rwk_src_domain_destroy(other), 0);
				close_jobs();
			}
		}
	}
}

/* S1-7, S1-5: a Send longer than the receive ends both: that srq's receive, and the connection, as RC's. */
static void too_long(void **state)
{
	struct rwk_wc wc;

	(void)state;
	open_jobs();
	ends_receive_job(&jobs[1], 1, 2000);
	ends_receive_job(&jobs[1], 2, 2000);
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 2001, jobs[1].number, 0, 0), 0);
	wc = ends_await(&far, jobs[1].cq);
	assert_true(wc.id == 1 && wc.status == -EMSGSIZE && wc.srqn == jobs[1].number);
	assert_int_equal(ends_await(&near, near.send_cq).status, -EINVAL);
	ends_quiet();
	assert_int_equal(rwk_cq_poll(jobs[1].cq, &wc, 1), 0); /* the other receive is still the srq's */
	close_jobs();
}

/*
 * S1-5, S1-7: an srq without a receive makes the requester wait (RNR), as a qp of RC's would; and what is for another
 * srq waits behind it, since the packets of a connection are taken in order.
 */
static void not_ready(void **state)
{
	struct rwk_qp_info info;
	struct rwk_wc wc;

	(void)state;
	open_jobs();
	ends_receive_job(&jobs[1], 1, 100);
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 10, jobs[0].number, 0, 0), 0);
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 11, jobs[1].number, 0, 0), 0);
	jobs_untouched();
	rwk_qp_query(far.qp, &info);
	assert_true(info.rnr_out > 0);
	ends_receive_job(&jobs[0], 2, 100);
	wc = ends_await(&far, jobs[0].cq);
	assert_true(wc.id == 2 && wc.length == 10);
	wc = ends_await(&far, jobs[1].cq);
	assert_true(wc.id == 1 && wc.length == 11);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	close_jobs();
}

/* S1-7: posting to an srq: its pd, its room, its cq's room; what is posted goes with it. */
static void posting(void **state)
{
	struct rwk_srq_attr attr = {.receive_max = DEPTH + 1};
	struct rwk_sge sge = {NULL, 8, 0};
	struct rwk_receive r = {.sge = &sge, .sge_count = 1};
	struct rwk_srq *srq;
	struct rwk_wc wc;

	(void)state;
	open_jobs();
	sge.address = far.in;
	sge.key = rwk_mr_key(far.in_mr); /* of the qp's pd */
	assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &r), -EACCES);
	r.sge_count = RWK_SGE_MAX + 1;
	assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &r), -EINVAL);
	r.sge_count = 0;
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &r), 0);
	assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &r), -EAGAIN);
	attr.domain = far.domain;
	attr.cq = jobs[0].cq;
	assert_int_equal(rwk_srq_create(far.pd, &attr, &srq), 0);
	assert_int_equal(rwk_srq_post_receive(srq, &r), -EAGAIN); /* the cq has no entry for it */
	assert_int_equal(rwk_srq_destroy(srq), 0);
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 0, jobs[0].number, 0, 0), 0);
	ends_await(&far, jobs[0].cq);
	assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &r), 0);
	assert_int_equal(rwk_srq_destroy(jobs[0].srq), 0);
	assert_int_equal(rwk_cq_poll(jobs[0].cq, &wc, 1), 0);
	attr.receive_max = DEPTH;
	attr.number = jobs[0].number;
	assert_int_equal(rwk_srq_create(jobs[0].pd, &attr, &jobs[0].srq), 0);
	for (unsigned i = 0; i < DEPTH; i++) /* those that went with it have given their entries back */
		assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &r), 0);
	close_jobs();
}

/* S1-4: 24 bits. */
static void number_out_of_range(void **state)
{
	(void)state;
	open_jobs();
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 1, 0x1000000, 0, 0), -EINVAL);
	ends_receive_job(&jobs[3], 1, 8);
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 1, 0xffffff, 0, 0), 0);
	assert_int_equal(ends_await(&far, jobs[3].cq).status, 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	close_jobs();
}

/* A second qp at far, on the srq, connected with one at near. */
static void open_pair(enum rwk_qp_type type, struct rwk_srq *srq, struct rwk_qp **n, struct rwk_qp **f)
{
	struct rwk_qp_create_attr create = {.type = type, .send_max = 4};
	struct rwk_qp_attr attr = {.pmtu = PMTU, .retry = 7, .rnr_retry = 7, .rnr_timer = 1};

	create.send_cq = near.send_cq;
	create.receive_cq = near.receive_cq;
	create.receive_max = 1;
	assert_int_equal(rwk_qp_create(near.pd, &create, n), 0);
	create.send_cq = far.send_cq;
	create.receive_cq = far.receive_cq;
	create.receive_max = 0;
	create.srq = srq;
	assert_int_equal(rwk_qp_create(far.pd, &create, f), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct end *peer = i ? &near : &far;
		struct rwk_qp *qp = i ? *f : *n;

		memcpy(attr.peer_ip, peer->ip, 16);
		attr.peer_port = rwk_adapter_port(peer->adapter);
		attr.peer_qpn = rwk_qp_number(i ? *n : *f);
		assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
		assert_int_equal(rwk_qp_modify(qp, RWK_QPS_RTR, &attr), 0);
		assert_int_equal(rwk_qp_modify(qp, RWK_QPS_RTS, NULL), 0);
	}
}

static struct rwk_wc await_of(struct rwk_cq *cq)
{
	struct rwk_wc wc;

	for (unsigned tries = 0; !rwk_cq_poll(cq, &wc, 1); tries++) {
		assert_true(tries < 10000000);
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0), 0);
	}
	return wc;
}

/*
 * An ordinary srq, shared by qps of RC and UC: receives go to whoever has a message first, completions to its cq, which
 * must have room; when a qp goes, what is posted stays for the others.
 */
static void shared(void **state)
{
	struct rwk_srq_attr attr = {.receive_max = 2 * DEPTH};
	struct rwk_sge sge = {NULL, 9, 0}, to = {NULL, 2000, 0};
	struct rwk_request send = {.sge = &sge, .sge_count = 1};
	struct rwk_receive receive = {.sge = &to, .sge_count = 1};
	struct rwk_qp *n[2], *f[2];
	struct rwk_qp_info info;
	struct rwk_srq *srq;
	struct rwk_wc wc;

	(void)state;
	ends_open(RWK_QP_RC);
	sge.address = near.out;
	sge.key = rwk_mr_key(near.out_mr);
	to.address = far.in;
	to.key = rwk_mr_key(far.in_mr);
	assert_int_equal(rwk_srq_create(far.pd, &attr, &srq), 0);
	open_pair(RWK_QP_RC, srq, &n[0], &f[0]);
	open_pair(RWK_QP_UC, srq, &n[1], &f[1]);
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		receive.id = i;
		assert_int_equal(rwk_srq_post_receive(srq, &receive), 0);
	}
	assert_int_equal(rwk_srq_post_receive(srq, &receive), -EAGAIN);
	for (unsigned i = 0; i < DEPTH; i++) {
		sge.length = 2 + i;
		assert_int_equal(rwk_qp_post(n[i % 2], &send), 0);
		while (!rwk_cq_poll(near.send_cq, &wc, 1))
			assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		wc = await_of(far.receive_cq);
		assert_true(!wc.status && wc.id == i && wc.length == 2 + i && !wc.srqn);
		assert_int_equal(wc.qpn, rwk_qp_number(f[i % 2]));
	}
	/* The qp's cq is full: the srq has receives, but RC waits for the cq. */
	for (unsigned i = 0; i < DEPTH; i++)
		ends_receive(&far, 1000 + i, 8);
	assert_int_equal(rwk_qp_post(n[0], &send), 0);
	ends_quiet();
	rwk_qp_query(f[0], &info);
	assert_true(info.rnr_out > 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(await_of(far.receive_cq).status, -ECANCELED);
	assert_int_equal(await_of(far.receive_cq).id, DEPTH);
	assert_int_equal(await_of(near.send_cq).status, 0);
	/* Errors and ends of one qp are its own. */
	assert_int_equal(rwk_qp_modify(f[0], RWK_QPS_ERR, NULL), 0);
	ends_quiet();
	rwk_qp_destroy(f[0]);
	assert_int_equal(rwk_qp_post(n[1], &send), 0);
	assert_int_equal(await_of(near.send_cq).status, 0);
	assert_int_equal(await_of(far.receive_cq).id, DEPTH + 1);
	assert_int_equal(rwk_srq_destroy(srq), -EBUSY);
	rwk_qp_destroy(f[1]);
	rwk_qp_destroy(n[0]);
	rwk_qp_destroy(n[1]);
	assert_int_equal(rwk_srq_destroy(srq), 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(srq_attributes),
		cmocka_unit_test(qp_attributes),
		cmocka_unit_test(limits),
		cmocka_unit_test(sends),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(memory),
		cmocka_unit_test(protection),
		cmocka_unit_test(domains),
		cmocka_unit_test(too_long),
		cmocka_unit_test(not_ready),
		cmocka_unit_test(posting),
		cmocka_unit_test(number_out_of_range),
		cmocka_unit_test(shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
