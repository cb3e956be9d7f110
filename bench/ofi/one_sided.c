/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that rank 0 reaches, and the loop. */
#include "bench/ofi/one_sided.h"

#include "bench/common/clock.h"
#include "bench/common/data.h"

#include <errno.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define POLLS_PER_LOOK 64 /* of rank 1 between two looks whether rank 0 has done */

static int mode(const struct bench_pair *p)
{
	return p->info->domain_attr->mr_mode;
}

static int register_memory(struct bench_pair *p, void *at, size_t bytes, uint64_t access, struct fid_mr **mr)
{
	static uint64_t key; /* unless the provider chooses it */
	int rc = fi_mr_reg(p->domain, at, bytes, access, 0, ++key, 0, mr, NULL);

	if (rc)
		return bench_pair_failed(p, "fi_mr_reg", rc);
	if (!(mode(p) & FI_MR_ENDPOINT))
		return 0;
	rc = fi_mr_bind(*mr, &p->ep->fid, 0);
	if (!rc)
		rc = fi_mr_enable(*mr);
	return rc ? bench_pair_failed(p, "fi_mr_enable", rc) : 0;
}

int bench_pair_expose(struct bench_pair *p, size_t bytes)
{
	struct bench_reach *m = &p->reach;
	uint64_t mine[2], theirs[2];
	int rc;

	m->bytes = bytes;
	m->memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!m->memory)
		return -ENOMEM;
	memset(m->memory, 0, bytes);
	rc = register_memory(p, m->memory, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, &m->mr);
	if (rc)
		return rc;
	mine[0] = mode(p) & FI_MR_VIRT_ADDR ? (uintptr_t)m->memory : 0;
	mine[1] = fi_mr_key(m->mr);
	rc = bench_pair_exchange(p, mine, theirs, sizeof(mine));
	m->address = rc ? 0 : theirs[0];
	m->key = rc ? 0 : theirs[1];
	return rc;
}

/* The buffers of the sweep are there now. */
static int register_buffers(struct bench_pair *p, const struct bench_run *r)
{
	struct bench_reach *m = &p->reach;
	int rc;

	if (!(mode(p) & FI_MR_LOCAL) || m->local[0])
		return 0;
	rc = register_memory(p, r->send, m->bytes, FI_WRITE | FI_READ, &m->local[0]);
	if (!rc)
		rc = register_memory(p, r->recv, m->bytes, FI_WRITE | FI_READ, &m->local[1]);
	if (rc)
		return rc;
	m->send_desc = fi_mr_desc(m->local[0]);
	m->recv_desc = fi_mr_desc(m->local[1]);
	return 0;
}

void bench_pair_conceal(struct bench_pair *p)
{
	struct fid_mr *const mr[] = {p->reach.mr, p->reach.local[0], p->reach.local[1]};

	for (unsigned i = 0; i < 3; i++) {
		if (mr[i])
			fi_close(&mr[i]->fid);
	}
	free(p->reach.memory);
}

/* Both are here. Meanwhile each serves the other. */
static int meet(struct bench_pair *p)
{
	char here = 0, there;

	return bench_pair_exchange(p, &here, &there, 1);
}

/* Rank 1 until rank 0 says that it has done. */
static int serve(struct bench_pair *p)
{
	struct bench_wait w = {0};
	char done;

	for (;;) {
		for (unsigned i = 0; i < POLLS_PER_LOOK; i++) {
			int rc = bench_pair_poll(p, &w);

			if (rc)
				return rc;
		}
		if (recv(p->channel, &done, 1, MSG_DONTWAIT) == 1)
			return 0;
		w.since = 0; /* it is for rank 0 to lose patience */
	}
}

static int say_done(struct bench_pair *p)
{
	char done = 1;

	return send(p->channel, &done, 1, MSG_NOSIGNAL) == 1 ? 0 : -ECONNRESET;
}

static int post(struct bench_pair *p, struct bench_run *r, unsigned i, uint64_t seq)
{
	struct bench_wait w = {0};
	ssize_t rc;

	while ((rc = p->one_sided->post(p, r, bench_slot(r, i), seq, &p->send_context[i])) == -FI_EAGAIN) {
		rc = bench_pair_poll(p, &w);
		if (rc)
			return (int)rc;
	}
	if (rc)
		return bench_pair_failed(p, p->one_sided->test.name, rc);
	p->sends++;
	return 0;
}

/* One iteration of rank 0. */
static int operate(struct bench_pair *p, struct bench_run *r, unsigned long iteration)
{
	uint64_t seq = (uint64_t)iteration * r->window;
	int rc = 0;

	for (unsigned i = 0; !rc && i < r->window; i++) {
		if (r->touch != BENCH_TOUCH_NONE && p->one_sided->fill)
			p->one_sided->fill(r, bench_slot(r, i), seq + i);
		rc = post(p, r, i, seq + i);
	}
	if (!rc)
		rc = bench_pair_wait_sends(p);
	for (unsigned i = 0; !rc && r->touch != BENCH_TOUCH_NONE && p->one_sided->take && i < r->window; i++)
		p->one_sided->take(r, bench_slot(r, i), seq + i);
	return rc;
}

static void look(struct bench_pair *p, struct bench_run *r, unsigned long iteration,
	void (*how)(struct bench_run *r, char *memory, uint64_t seq))
{
	for (unsigned i = 0; how && i < r->window; i++)
		how(r, p->reach.memory + bench_slot(r, i), (uint64_t)iteration * r->window + i);
}

static int run_touched(struct bench_pair *p, struct bench_run *r, double *seconds)
{
	int rc = 0;

	for (unsigned long i = 0; !rc && i < r->iterations; i++) {
		double start;

		if (r->team->rank)
			look(p, r, i, p->one_sided->prepare);
		rc = meet(p);
		if (rc)
			break;
		start = bench_now();
		rc = r->team->rank ? serve(p) : operate(p, r, i);
		if (r->team->rank)
			look(p, r, i, p->one_sided->inspect);
		else
			*seconds += bench_now() - start;
		if (!rc && !r->team->rank)
			rc = say_done(p);
	}
	return rc;
}

static int run_untouched(struct bench_pair *p, struct bench_run *r, double *seconds)
{
	double start = bench_now();
	int rc = 0;

	if (r->team->rank)
		return serve(p);
	for (unsigned long i = 0; !rc && i < r->iterations; i++)
		rc = operate(p, r, i);
	*seconds = bench_now() - start;
	return rc ? rc : say_done(p);
}

int bench_pair_one_sided_run(struct bench_run *r, double *seconds)
{
	struct bench_pair *p = (struct bench_pair *)r->team;
	int rc = register_buffers(p, r);

	*seconds = 0;
	memset(p->reach.memory, 0, p->reach.bytes);
	if (!rc)
		rc = meet(p);
	if (rc)
		return rc;
	return r->touch == BENCH_TOUCH_NONE ? run_untouched(p, r, seconds) : run_touched(p, r, seconds);
}

ssize_t bench_write_post(struct bench_pair *p, struct bench_run *r, size_t at, uint64_t seq, void *context)
{
	(void)seq;
	return fi_write(p->ep, r->send + at, r->size, p->reach.send_desc, p->peer, p->reach.address + at, p->reach.key,
		context);
}

void bench_write_fill(struct bench_run *r, size_t at, uint64_t seq)
{
	bench_before_send(r, r->send + at, r->size, bench_seed(0, 1, r->base + seq));
}

void bench_write_inspect(struct bench_run *r, char *memory, uint64_t seq)
{
	bench_after_recv(r, memory, r->size, bench_seed(0, 1, r->base + seq));
}

ssize_t bench_read_post(struct bench_pair *p, struct bench_run *r, size_t at, uint64_t seq, void *context)
{
	(void)seq;
	return fi_read(p->ep, r->recv + at, r->size, p->reach.recv_desc, p->peer, p->reach.address + at, p->reach.key,
		context);
}

void bench_read_prepare(struct bench_run *r, char *memory, uint64_t seq)
{
	bench_before_send(r, memory, r->size, bench_seed(1, 0, r->base + seq));
}

void bench_read_take(struct bench_run *r, size_t at, uint64_t seq)
{
	bench_after_recv(r, r->recv + at, r->size, bench_seed(1, 0, r->base + seq));
}

void bench_expect_word(struct bench_run *r, const void *at, uint64_t value)
{
	uint64_t found = *(const uint64_t *)at;

	if (r->touch == BENCH_TOUCH_CHECK && found != value)
		bench_wrong(r, 0, value, found);
}
