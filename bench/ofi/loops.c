/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of the tests, and what can go wrong in them. */
#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/ofi/pair.h"

enum { TAG_DATA = 1, TAG_ANSWER };

static int send_one(struct bench_pair *p, struct bench_run *r, unsigned long seq)
{
	/* The buffer is free when the send before is complete. */
	int rc = bench_pair_wait_sends(p);

	if (rc)
		return rc;
	bench_before_send(r, r->send, r->size, bench_seed(r->team->rank, 1 - r->team->rank, r->base + seq));
	return bench_pair_send(p, r->send, r->size, TAG_DATA, 0);
}

/* Waits for the message whose receive is posted, and posts the next one unless it was the last. */
static int receive_one(struct bench_pair *p, struct bench_run *r, unsigned long seq)
{
	int rc = bench_pair_wait_receives(p, p->receives);

	if (rc)
		return rc;
	bench_after_recv(r, r->recv, r->size, bench_seed(1 - r->team->rank, r->team->rank, r->base + seq));
	if (seq + 1 == r->iterations)
		return 0;
	return bench_pair_receive(p, r->recv, r->size, TAG_DATA, 0);
}

int bench_pair_pingpong(struct bench_run *r, double *seconds)
{
	struct bench_pair *p = (struct bench_pair *)r->team;
	double start = bench_now();
	int rc = bench_pair_receive(p, r->recv, r->size, TAG_DATA, 0);

	for (unsigned long i = 0; !rc && i < r->iterations; i++) {
		if (!r->team->rank) {
			rc = send_one(p, r, i);
			if (!rc)
				rc = receive_one(p, r, i);
		} else {
			rc = receive_one(p, r, i);
			if (!rc)
				rc = send_one(p, r, i);
		}
	}
	if (!rc)
		rc = bench_pair_wait_sends(p);
	*seconds = bench_now() - start;
	return rc;
}

static int send_window(struct bench_pair *p, struct bench_run *r, unsigned long iteration)
{
	int rc = bench_pair_receive(p, r->recv, 0, TAG_ANSWER, r->window);

	for (unsigned i = 0; !rc && i < r->window; i++) {
		char *data = r->send + bench_slot(r, i);

		bench_before_send(r, data, r->size, bench_seed(0, 1, r->base + iteration * r->window + i));
		rc = bench_pair_send(p, data, r->size, TAG_DATA, i);
	}
	if (!rc)
		rc = bench_pair_wait_sends(p);
	if (!rc)
		rc = bench_pair_wait_receives(p, p->receives);
	return rc;
}

static int receive_window(struct bench_pair *p, struct bench_run *r, unsigned long iteration)
{
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && i < r->window; i++)
		rc = bench_pair_receive(p, r->recv + bench_slot(r, i), r->size, TAG_DATA, i);
	if (!rc)
		rc = bench_pair_wait_receives(p, p->receives);
	if (rc)
		return rc;
	for (i = 0; i < r->window; i++)
		bench_after_recv(
			r, r->recv + bench_slot(r, i), r->size, bench_seed(0, 1, r->base + iteration * r->window + i));
	rc = bench_pair_send(p, r->send, 0, TAG_ANSWER, r->window);
	return rc ? rc : bench_pair_wait_sends(p);
}

int bench_pair_stream(struct bench_run *r, double *seconds)
{
	struct bench_pair *p = (struct bench_pair *)r->team;
	double start = bench_now();
	int rc = 0;

	for (unsigned long i = 0; !rc && i < r->iterations; i++)
		rc = r->team->rank ? receive_window(p, r, i) : send_window(p, r, i);
	*seconds = bench_now() - start;
	return rc;
}
