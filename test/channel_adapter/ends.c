/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel_adapter/ends.h"

#include <time.h>
#include <unistd.h>

struct end near, far;
bool ends_unordered, ends_one_port;
unsigned ends_far_access = ACCESS;
void (*ends_step)(void);
void (*ends_join)(void);
void (*ends_leave)(const struct end *e);

void ends_ip(uint8_t ip[16], uint8_t host)
{
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127};

	memcpy(ip, loopback, 16);
	ip[15] = host;
}

uint64_t ends_lost(const struct end *e)
{
	struct rwk_async_event event;
	uint64_t lost = 0;

	while (rwk_async_event_poll(e->adapter, &event, 1))
		if (event.type == RWK_ASYNC_QP_LOST)
			lost += event.count;
	return lost;
}

/* Ports below those that the kernel gives out itself; others than another process's, so that tests can run side by
 * side. */
void ends_open_adapter(struct end *e, uint8_t host)
{
	static uint16_t next;
	struct rwk_adapter_attr attr = {0};
	int rc = -EADDRINUSE;

	memset(e, 0, sizeof(*e));
	ends_ip(e->ip, host);
	memcpy(attr.ip, e->ip, 16);
	if (!next)
		next = (uint16_t)(10000 + (unsigned)getpid() * 97u % 9000);
	for (unsigned i = 0; i < 100 && rc == -EADDRINUSE; i++) {
		attr.port = next++;
		rc = rwk_adapter_open(&attr, &e->adapter);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(rwk_adapter_port(e->adapter), attr.port);
}

void ends_open_one(struct end *e, uint8_t host, enum rwk_qp_type type)
{
	struct rwk_qp_create_attr create = {
		.type = type, .send_max = DEPTH, .receive_max = DEPTH, .inline_max = INLINE};

	ends_open_adapter(e, host);
	e->out = aligned_alloc(8, REGION);
	e->in = aligned_alloc(8, REGION);
	assert_true(e->out && e->in);
	for (size_t i = 0; i < REGION; i++)
		e->out[i] = (uint8_t)(i * 7 + i / 256 + host);
	memset(e->in, 0xee, REGION);
	assert_int_equal(rwk_pd_create(e->adapter, &e->pd), 0);
	assert_int_equal(rwk_cq_create(e->adapter, DEPTH, &e->send_cq), 0);
	assert_int_equal(rwk_cq_create(e->adapter, DEPTH, &e->receive_cq), 0);
	assert_int_equal(rwk_mr_register(e->pd, e->out, REGION, RWK_ACCESS_LOCAL_WRITE, &e->out_mr), 0);
	assert_int_equal(rwk_mr_register(e->pd, e->in, REGION, ACCESS | RWK_ACCESS_LOCAL_WRITE, &e->in_mr), 0);
	create.send_cq = e->send_cq;
	create.receive_cq = e->receive_cq;
	if (type == RWK_QP_SRC) {
		assert_int_equal(rwk_src_domain_create(e->adapter, &e->domain), 0);
		create.domain = e->domain;
		create.receive_cq = NULL;
		create.receive_max = 0;
	}
	assert_int_equal(rwk_qp_create(e->pd, &create, &e->qp), 0);
}

void ends_connect(struct end *e, const struct end *peer, unsigned access)
{
	struct rwk_qp_attr attr = {
		.peer_port = rwk_adapter_port(peer->adapter),
		.peer_qpn = rwk_qp_number(peer->qp),
		.send_psn = e == &near ? 0xfffff0 : 5,
		.receive_psn = e == &near ? 5 : 0xfffff0,
		.pmtu = PMTU,
		.access = access,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 1,
		.timeout_ns = 20000000,
		.unordered = ends_unordered,
		.one_port = ends_one_port,
	};

	memcpy(attr.peer_ip, peer->ip, 16);
	assert_int_equal(rwk_qp_modify(e->qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(e->qp, RWK_QPS_RTR, &attr), 0);
	assert_int_equal(rwk_qp_modify(e->qp, RWK_QPS_RTS, NULL), 0);
}

void ends_open(enum rwk_qp_type type)
{
	ends_open_one(&near, 1, type);
	ends_open_one(&far, 2, type);
	if (ends_join) {
		ends_join();
		return;
	}
	ends_connect(&near, &far, ACCESS);
	ends_connect(&far, &near, ends_far_access);
}

/* A parent with children stays. */
void ends_close_one(struct end *e)
{
	if (ends_leave)
		ends_leave(e);
	assert_int_equal(rwk_adapter_close(e->adapter), -EBUSY);
	assert_int_equal(rwk_cq_destroy(e->send_cq), -EBUSY);
	if (e->domain)
		assert_int_equal(rwk_src_domain_destroy(e->domain), -EBUSY);
	rwk_qp_destroy(e->qp);
	assert_int_equal(rwk_pd_destroy(e->pd), -EBUSY);
	rwk_mr_deregister(e->out_mr);
	rwk_mr_deregister(e->in_mr);
	assert_int_equal(rwk_pd_destroy(e->pd), 0);
	assert_int_equal(rwk_cq_destroy(e->send_cq), 0);
	assert_int_equal(rwk_adapter_close(e->adapter), -EBUSY);
	assert_int_equal(rwk_cq_destroy(e->receive_cq), 0);
	if (e->domain) {
		assert_int_equal(rwk_adapter_close(e->adapter), -EBUSY);
		assert_int_equal(rwk_src_domain_destroy(e->domain), 0);
	}
	assert_int_equal(rwk_adapter_close(e->adapter), 0);
	e->adapter = NULL;
	free(e->out);
	free(e->in);
}

void ends_close(void)
{
	ends_close_one(&near);
	ends_close_one(&far);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct rwk_wc ends_await(struct end *e, struct rwk_cq *cq)
{
	double until = seconds() + 20;
	struct end *other = e == &near ? &far : &near;
	struct rwk_wc wc;

	while (!rwk_cq_poll(cq, &wc, 1)) {
		if (other->adapter) /* takes no completion, only does the work */
			assert_int_equal(rwk_cq_poll(other->send_cq, NULL, 0), 0);
		assert_true(seconds() < until);
		if (ends_step)
			ends_step();
	}
	assert_int_equal(wc.qpn, rwk_qp_number(e->qp));
	return wc;
}

static void nothing(struct end *e)
{
	struct rwk_wc wc;

	if (e->adapter)
		assert_int_equal(rwk_cq_poll(e->send_cq, &wc, 1) + rwk_cq_poll(e->receive_cq, &wc, 1), 0);
}

void ends_quiet(void)
{
	struct timespec pause = {.tv_nsec = 100000};

	for (unsigned i = 0; i < 50; i++) {
		nothing(&near);
		nothing(&far);
		if (ends_step)
			ends_step();
		else
			nanosleep(&pause, NULL);
	}
}

int ends_request_src(
	struct end *e, enum rwk_request_type type, size_t len, uint32_t srqn, uint64_t remote, uint32_t key)
{
	struct rwk_sge sge = {e->out, len, rwk_mr_key(e->out_mr)};
	struct rwk_request r = {
		.id = len, .type = type, .sge = &sge, .sge_count = 1, .remote = remote, .key = key, .srqn = srqn};

	return rwk_qp_post(e->qp, &r);
}

int ends_request(struct end *e, enum rwk_request_type type, size_t len, uint64_t remote, uint32_t key)
{
	return ends_request_src(e, type, len, 0, remote, key);
}

void ends_receive(struct end *e, uint64_t id, size_t len)
{
	struct rwk_sge sge = {e->in, len, rwk_mr_key(e->in_mr)};
	struct rwk_receive r = {.id = id, .sge = &sge, .sge_count = 1};

	assert_int_equal(rwk_qp_post_receive(e->qp, &r), 0);
}

void ends_open_job(struct job *j, struct end *e, struct rwk_src_domain *domain, uint32_t number)
{
	struct rwk_srq_attr attr = {.receive_max = DEPTH, .domain = domain, .number = number};

	j->in = aligned_alloc(8, JOB_MEMORY);
	assert_non_null(j->in);
	memset(j->in, 0xee, JOB_MEMORY);
	assert_int_equal(rwk_pd_create(e->adapter, &j->pd), 0);
	assert_int_equal(rwk_cq_create(e->adapter, DEPTH, &j->cq), 0);
	assert_int_equal(rwk_mr_register(j->pd, j->in, JOB_MEMORY, ACCESS | RWK_ACCESS_LOCAL_WRITE, &j->mr), 0);
	attr.cq = j->cq;
	assert_int_equal(rwk_srq_create(j->pd, &attr, &j->srq), 0);
	j->number = rwk_srq_number(j->srq);
	assert_in_range(j->number, 1, 0xffffff);
}

void ends_close_job(struct job *j)
{
	assert_int_equal(rwk_cq_destroy(j->cq), -EBUSY);
	assert_int_equal(rwk_srq_destroy(j->srq), 0);
	assert_int_equal(rwk_cq_destroy(j->cq), 0);
	rwk_mr_deregister(j->mr);
	assert_int_equal(rwk_pd_destroy(j->pd), 0);
	free(j->in);
}

void ends_receive_job(struct job *j, uint64_t id, size_t len)
{
	struct rwk_sge sge = {j->in, len, rwk_mr_key(j->mr)};
	struct rwk_receive r = {.id = id, .sge = &sge, .sge_count = 1};

	assert_int_equal(rwk_srq_post_receive(j->srq, &r), 0);
}
