/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency: one message at a time. Those that are echoed count as two; the others end with their completion. */
#include "bench/adapter/adapter.h"

#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/common/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int put(struct bench_adapter *p)
{
	struct bench_adapter_wait w = {0};
	int rc = bench_adapter_post(p);

	while (!rc && p->completed < p->posted)
		rc = bench_adapter_poll(p, &w);
	return rc;
}

/* A Write tells nobody that it has come: its last byte does. */
static int await_write(struct bench_adapter *p, unsigned long i)
{
	struct bench_run *r = p->run;
	volatile char *last = &r->recv[r->size - 1];
	struct bench_adapter_wait w = {0};
	int rc = 0;

	while (!rc && *last != bench_adapter_mark(i))
		rc = bench_adapter_poll(p, &w);
	if (!rc)
		bench_after_recv(r, r->recv, r->size - 1, bench_adapter_seed(r, p->team.rank, i));
	return rc;
}

static int await(struct bench_adapter *p, unsigned long i)
{
	struct bench_adapter_wait w = {0};
	int rc = 0;

	if (p->o->operation->type == RWK_REQUEST_WRITE)
		return await_write(p, i);
	while (!rc && p->received == i)
		rc = bench_adapter_poll(p, &w);
	return rc;
}

static int begin(struct bench_adapter *p, struct bench_run *r)
{
	uint64_t ignored;
	int rc = bench_adapter_begin(p, r, 0);

	if (rc)
		return rc;
	p->marked = p->o->operation->type == RWK_REQUEST_WRITE;
	if (p->marked)
		r->recv[r->size - 1] = 0;
	if (p->o->operation->atomic)
		memset(r->recv, 0, r->size);
	if (p->o->operation->type == RWK_REQUEST_READ)
		bench_before_send(r, r->send, r->size, bench_adapter_seed(r, 1 - p->team.rank, 0));
	if (p->o->operation->type == RWK_REQUEST_SEND)
		rc = bench_adapter_expect(p, r->iterations);
	return rc ? rc : bench_adapter_exchange(p, 0, &ignored);
}

static int one(struct bench_adapter *p, unsigned long i)
{
	bool echoed = p->o->operation->echoed;
	int rc = 0;

	if (p->team.rank)
		rc = await(p, i);
	if (!rc)
		rc = put(p);
	if (!rc && !p->team.rank && echoed)
		rc = await(p, i);
	return rc;
}

static int make_room(struct bench_adapter *p, unsigned long times)
{
	double *more;

	if (!p->o->all_times || times <= p->times_room)
		return 0;
	more = realloc(p->times, times * sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->times = more;
	p->times_room = times;
	return 0;
}

int bench_adapter_pingpong(struct bench_run *r, double *seconds)
{
	struct bench_adapter *p = (struct bench_adapter *)r->team;
	bool active = !p->team.rank || p->o->operation->echoed;
	double start, before, now;
	uint64_t ignored;
	int rc = make_room(p, r->iterations);

	if (!rc)
		rc = begin(p, r);
	start = before = bench_now();
	for (unsigned long i = 0; active && !rc && i < r->iterations; i++) {
		rc = one(p, i);
		if (!p->times)
			continue;
		now = bench_now();
		p->times[i] = (now - before) * 1e6 / p->test->messages;
		before = now;
	}
	*seconds = bench_now() - start;
	return rc ? rc : bench_adapter_exchange(p, 0, &ignored);
}

void bench_adapter_print_times(struct bench_run *r)
{
	struct bench_adapter *p = (struct bench_adapter *)r->team;
	unsigned long n = r->iterations;
	struct bench_stats s;

	if (!p->times || p->team.rank)
		return;
	if (p->o->unsorted)
		for (unsigned long i = 0; i < n; i++)
			printf("%lu, %.3f\n", i + 1, p->times[i]);
	s = bench_stats_of(p->times, n);
	if (!p->o->unsorted)
		for (unsigned long i = 0; i < n; i++)
			printf("%lu, %.3f\n", i + 1, p->times[i]);
	printf("# size %zu, %lu times, us: least %.3f, median %.3f, 99 %% %.3f, 99.9 %% %.3f, most %.3f\n", r->size, n,
		s.min, s.median, p->times[n - 1 - n / 100], p->times[n - 1 - n / 1000], s.max);
}
