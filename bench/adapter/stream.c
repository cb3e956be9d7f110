/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth and rate: as many requests as the depth allows are posted, and one more whenever one completes.
 *
 * UC asks nothing of its peer: what does not find room there is lost, and a sender does not know. The ends count what
 * has arrived, and only that counts in the result. A Write tells nobody that it has come, and of one of which a packet
 * is lost the others may have: so each carries immediate data, which comes when all of it is there.
 */
#include "bench/adapter/adapter.h"

#include "bench/common/clock.h"
#include "bench/common/data.h"

#include <error.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SILENCE 0.02 /* s: what has not come by then, */
#define LOOKS   100  /* in so many polls, was lost */

static bool sends(const struct bench_adapter *p)
{
	return !p->team.rank || p->o->bidirectional;
}

static bool receives(const struct bench_adapter *p)
{
	return p->o->operation->echoed && (p->team.rank || p->o->bidirectional);
}

/* Does it learn of each message that comes? */
static bool is_told(const struct bench_adapter *p)
{
	return receives(p) && (p->o->operation->type == RWK_REQUEST_SEND || p->tells);
}

/*
 * UC: what is still on its way. Nothing is, once so many looks in so long a time have brought nothing: who has been
 * away for that time finds in his next looks what has come meanwhile.
 */
static int let_arrive(struct bench_adapter *p, unsigned long messages)
{
	double last = bench_now();
	unsigned looks = 0;
	int rc = 0;

	while (!rc && p->received < messages && (looks < LOOKS || bench_now() - last < SILENCE)) {
		unsigned long before = p->received;

		rc = bench_adapter_poll(p, &(struct bench_adapter_wait){0});
		looks++;
		if (p->received > before) {
			last = bench_now();
			looks = 0;
		}
	}
	return rc;
}

/* Writes that tell nobody are looked at when all of the round are there. */
static void inspect_writes(struct bench_adapter *p, unsigned long messages)
{
	struct bench_run *r = p->run;

	for (unsigned long i = messages > r->slots ? messages - r->slots : 0; i < messages; i++)
		bench_after_recv(r, bench_adapter_slot(p, r->recv, i), r->size,
			bench_adapter_seed(r, p->team.rank, p->base + i));
}

static int move(struct bench_adapter *p, unsigned long messages)
{
	bool counted = is_told(p) && p->o->type != RWK_QP_UC;
	unsigned long to_send = sends(p) ? messages : 0, to_receive = counted ? messages : 0;
	struct bench_adapter_wait w = {0};
	int rc = 0;

	while (!rc && (p->completed < to_send || p->received < to_receive)) {
		while (!rc && p->posted < to_send && p->posted - p->completed < p->run->window)
			rc = bench_adapter_post(p);
		if (!rc)
			rc = bench_adapter_poll(p, &w);
	}
	return rc;
}

/* The end of a round: how many of ours the other end has, and what came here is looked at. */
static int settle(struct bench_adapter *p, unsigned long messages, unsigned long *lost)
{
	bool uc = p->o->type == RWK_QP_UC;
	uint64_t theirs = messages, ignored;
	int rc = bench_adapter_exchange(p, 0, &ignored); /* all is sent */

	if (!rc && uc && receives(p))
		rc = let_arrive(p, messages);
	if (!rc && uc) {
		rc = bench_adapter_exchange(p, p->received, &theirs);
		theirs = sends(p) ? theirs : messages;
	}
	if (rc)
		return rc;
	*lost += messages - (theirs < messages ? theirs : messages);
	if (receives(p) && !is_told(p))
		inspect_writes(p, messages);
	return 0;
}

/* Adds to `seconds` what the messages took, without the agreements around them. */
static int play_round(
	struct bench_adapter *p, unsigned long base, unsigned long messages, unsigned long *lost, double *seconds)
{
	int rc = bench_adapter_begin(p, p->run, base);
	uint64_t ignored;
	double start;

	if (!rc && is_told(p))
		rc = bench_adapter_expect(p, messages);
	if (!rc)
		rc = bench_adapter_exchange(p, 0, &ignored);
	start = bench_now();
	if (!rc)
		rc = move(p, messages);
	*seconds += bench_now() - start;
	return rc ? rc : settle(p, messages, lost);
}

/*
 * UC: tells of what this end has lost, and learns of the other's. A receive that nothing took is still posted then, and
 * must not be there for the next loop.
 */
static int forget(struct bench_adapter *p, unsigned long lost, uint64_t *theirs)
{
	int rc = bench_adapter_exchange(p, lost, theirs);

	return rc || (!lost && !*theirs) ? rc : bench_adapter_reconnect(p);
}

/* Both ends know the losses of both, and count alike: what has arrived is all that the time was for. */
static int count_losses(struct bench_run *r, unsigned long lost, double *seconds)
{
	struct bench_adapter *p = (struct bench_adapter *)r->team;
	unsigned long sent = r->iterations * (p->o->bidirectional ? 2 : 1);

	r->sent += sent;
	r->lost += lost;
	if (lost >= sent) {
		error(0, 0, "size %zu: none of %lu messages has arrived; take fewer at a time (-t)", r->size, sent);
		return -EIO;
	}
	*seconds *= (double)sent / (double)(sent - lost);
	return 0;
}

int bench_adapter_stream(struct bench_run *r, double *seconds)
{
	struct bench_adapter *p = (struct bench_adapter *)r->team;
	unsigned long round = r->touch == BENCH_TOUCH_CHECK ? r->window : r->iterations, lost = 0, n;
	uint64_t theirs = 0;
	int rc = 0;

	*seconds = 0;
	p->run = r;
	p->tells = p->o->type == RWK_QP_UC && p->o->operation->type == RWK_REQUEST_WRITE;
	if (p->o->operation->atomic)
		memset(r->recv, 0, r->size);
	if (p->o->operation->type == RWK_REQUEST_READ)
		for (unsigned i = 0; i < r->slots; i++)
			bench_before_send(
				r, r->send + i * r->stride, r->size, bench_adapter_seed(r, 1 - p->team.rank, 0));
	for (unsigned long base = 0; !rc && base < r->iterations; base += n) {
		n = r->iterations - base < round ? r->iterations - base : round;
		rc = play_round(p, base, n, &lost, seconds);
		if (!rc && p->o->type == RWK_QP_UC)
			rc = forget(p, lost, &theirs);
	}
	return rc || p->o->type != RWK_QP_UC ? rc : count_losses(r, lost + theirs, seconds);
}

void bench_adapter_print_lost(struct bench_run *r)
{
	if (r->lost && !r->team->rank)
		printf("# size %zu: %lu of %lu messages were lost, and do not count\n", r->size, r->lost, r->sent);
}
