/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and receives: posted, taken, and their data looked at. */
#include "bench/adapter/adapter.h"

#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/common/sweep.h"

#include <errno.h>
#include <error.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH 64 /* completions taken at a time */
#define OPEN  (RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC | RWK_ACCESS_LOCAL_WRITE)

static int failed(int rc, const char *what)
{
	if (rc < 0)
		error(0, -rc, "%s", what);
	return rc;
}

char *bench_adapter_slot(const struct bench_adapter *p, char *buffer, unsigned long i)
{
	const struct bench_run *r = p->run;

	return buffer + i % r->slots * r->stride;
}

uint64_t bench_adapter_seed(const struct bench_run *r, int to, unsigned long i)
{
	return bench_seed(1 - to, to, r->base + i);
}

/* ---- a run ---- */

static int share_memory(struct bench_adapter *p, const struct bench_run *r)
{
	size_t bytes = bench_buffer_bytes(p->test, &p->o->common, &p->team);
	uint64_t keys, theirs;
	int rc = rwk_mr_register(p->pd, r->send, bytes, OPEN, &p->send_mr);

	if (!rc)
		rc = rwk_mr_register(p->pd, r->recv, bytes, OPEN, &p->recv_mr);
	if (rc)
		return failed(rc, "the buffers");
	keys = (uint64_t)rwk_mr_key(p->send_mr) << 32 | rwk_mr_key(p->recv_mr);
	rc = bench_adapter_exchange(p, keys, &theirs);
	p->their_send_key = (uint32_t)(theirs >> 32);
	p->their_recv_key = (uint32_t)theirs;
	if (!rc)
		rc = bench_adapter_exchange(p, (uintptr_t)r->send, &p->their_send);
	return rc ? rc : bench_adapter_exchange(p, (uintptr_t)r->recv, &p->their_recv);
}

int bench_adapter_begin(struct bench_adapter *p, struct bench_run *r, unsigned long base)
{
	int rc = p->send_mr ? 0 : share_memory(p, r);

	if (rc)
		return rc;
	p->run = r;
	p->base = p->next = base;
	p->posted = p->completed = p->receives_wanted = p->receives_posted = p->received = 0;
	return 0;
}

/* ---- receives ---- */

static int post_receive(struct bench_adapter *p)
{
	struct rwk_sge sge = {.address = bench_adapter_slot(p, p->run->recv, p->receives_posted),
		.length = p->run->size,
		.key = rwk_mr_key(p->recv_mr)};
	struct rwk_receive r = {.id = p->receives_posted, .sge = &sge, .sge_count = 1};
	int rc = p->srq ? rwk_srq_post_receive(p->srq, &r) : rwk_qp_post_receive(p->qp, &r);

	p->receives_posted += !rc;
	return failed(rc, "a receive");
}

static int top_up(struct bench_adapter *p)
{
	int rc = 0;

	while (!rc && p->receives_posted < p->receives_wanted &&
		p->receives_posted - p->received < 2ul * p->o->common.window)
		rc = post_receive(p);
	return rc;
}

int bench_adapter_expect(struct bench_adapter *p, unsigned long messages)
{
	p->receives_wanted = messages;
	return top_up(p);
}

/*
 * With -c a Send says its number, and over UC a Write does: those before may be lost there, and nothing comes twice or
 * late; elsewhere it is the next.
 */
static unsigned long number_of(struct bench_adapter *p, const struct rwk_wc *wc)
{
	int32_t gap = wc->has_imm ? (int32_t)(wc->imm - (uint32_t)p->next) : 0;

	if (gap < 0 || (gap && p->o->type != RWK_QP_UC))
		bench_wrong(p->run, 0, (uint32_t)p->next, wc->imm);
	p->next += (unsigned long)(long)gap + 1;
	return p->next - 1;
}

static int take_receive(struct bench_adapter *p, const struct rwk_wc *wc)
{
	struct bench_run *r = p->run;
	unsigned long number = number_of(p, wc), place = p->tells ? number - p->base : wc->id;

	p->received++;
	if (wc->length != r->size)
		bench_wrong(r, wc->length, r->size, wc->length);
	bench_after_recv(
		r, bench_adapter_slot(p, r->recv, place), r->size, bench_adapter_seed(r, p->team.rank, number));
	return top_up(p);
}

/* ---- requests ---- */

/* Atomics are told by their number: each finds the value that the one before has left. */
static void describe_atomic(const struct bench_adapter *p, struct rwk_request *q, unsigned long number)
{
	q->remote = p->their_recv;
	q->key = p->their_recv_key;
	q->compare = number;
	q->swap_add = q->type == RWK_REQUEST_FETCH_ADD ? 1 : number + 1;
}

int bench_adapter_post(struct bench_adapter *p)
{
	struct bench_run *r = p->run;
	unsigned long number = p->base + p->posted;
	bool in = p->o->operation->type == RWK_REQUEST_READ;
	char *data = bench_adapter_slot(p, in ? r->recv : r->send, p->posted);
	struct rwk_sge sge = {.address = data, .length = r->size, .key = rwk_mr_key(in ? p->recv_mr : p->send_mr)};
	struct rwk_request q = {.id = p->posted,
		.type = p->o->operation->type,
		.sge = &sge,
		.sge_count = 1,
		.imm = (uint32_t)number,
		.srqn = p->srq ? rwk_srq_number(p->srq) : 0}; /* the peer's has the same */
	int rc;

	if (p->o->operation->atomic) {
		describe_atomic(p, &q, number);
	} else if (in) {
		q.remote = p->their_send;
		q.key = p->their_send_key;
		if (r->touch == BENCH_TOUCH_CHECK)
			memset(data, 0, r->size);
	} else {
		q.remote = p->their_recv + (uint64_t)(bench_adapter_slot(p, r->recv, p->posted) - r->recv);
		q.key = p->their_recv_key;
		bench_before_send(r, data, r->size, bench_adapter_seed(r, 1 - p->team.rank, number));
		if (p->marked)
			data[r->size - 1] = bench_adapter_mark(number);
		if (r->size <= p->o->inline_max)
			q.flags |= RWK_REQUEST_INLINE;
		if (p->tells || (q.type == RWK_REQUEST_SEND && r->touch == BENCH_TOUCH_CHECK))
			q.flags |= RWK_REQUEST_IMM;
	}
	rc = rwk_qp_post(p->qp, &q);
	p->posted += !rc;
	return failed(rc, "a request");
}

/* What a Read or an atomic has brought. */
static void take_request(struct bench_adapter *p, const struct rwk_wc *wc)
{
	struct bench_run *r = p->run;
	uint64_t before;

	p->completed++;
	if (p->o->operation->type == RWK_REQUEST_READ) {
		bench_after_recv(
			r, bench_adapter_slot(p, r->recv, wc->id), r->size, bench_adapter_seed(r, p->team.rank, 0));
	} else if (p->o->operation->atomic && r->touch == BENCH_TOUCH_CHECK) {
		memcpy(&before, bench_adapter_slot(p, r->send, wc->id), sizeof(before));
		if (before != p->base + wc->id)
			bench_wrong(r, 0, p->base + wc->id, before);
	}
}

/* ---- completions ---- */

/* Nothing has come: whether to wait on. */
static int idle(struct bench_adapter *p, struct bench_adapter_wait *w)
{
	char byte;

	if (++w->empty % 1024)
		return 0;
	sched_yield(); /* the other program may want this core */
	if (!w->since)
		w->since = bench_now();
	if (recv(p->talk, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
		error(0, 0, "the other program has ended");
		return -ECONNRESET;
	}
	if (bench_now() - w->since < BENCH_ADAPTER_PATIENCE)
		return 0;
	error(0, 0, "size %zu: nothing completes within %d s%s", p->run->size, BENCH_ADAPTER_PATIENCE,
		p->o->type == RWK_QP_UC ? "; UC may have lost a message" : "");
	return -ETIMEDOUT;
}

int bench_adapter_poll(struct bench_adapter *p, struct bench_adapter_wait *w)
{
	struct rwk_wc wc[BATCH];
	int n = rwk_cq_poll(p->cq, wc, BATCH), rc = 0;

	if (!n)
		return idle(p, w);
	*w = (struct bench_adapter_wait){0};
	for (int i = 0; !rc && i < n; i++) {
		bool receive = wc[i].type == RWK_WC_RECEIVE || wc[i].type == RWK_WC_RECEIVE_WRITE;

		if (wc[i].status)
			rc = failed(wc[i].status, receive ? "a receive" : "a request");
		else if (receive)
			rc = take_receive(p, &wc[i]);
		else
			take_request(p, &wc[i]);
	}
	return rc;
}
