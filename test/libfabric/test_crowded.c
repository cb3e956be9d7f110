/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that wait by polling, more than there are processors for them: they give the core away now and then, and none
 * keeps a lock meanwhile. The process is bound to one processor, so two threads are a crowd, and one is none.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include "fi_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOKING 500 /* ms, which are many turns of two threads */
#define ENOUGH  11  /* times that the core is given away: not by chance */

static atomic_uint yields;
static _Atomic(struct fid_cq *) queue_of_all;

/* The provider's calls come here. Whoever kept the lock of the queue would wait for himself now. */
__attribute__((visibility("default"))) int sched_yield(void)
{
	static _Thread_local bool inside;
	struct fid_cq *cq = atomic_load(&queue_of_all);
	struct fi_cq_err_entry e = {0};

	atomic_fetch_add(&yields, 1);
	if (cq && !inside) {
		inside = true;
		(void)fi_cq_readerr(cq, &e, 0);
		inside = false;
	}
	return (int)syscall(SYS_sched_yield);
}

struct looker {
	struct fid_cq *cq;
	struct fid_cntr *cntr; /* NULL: the queue is read */
	unsigned wanted; /* it looks on until the core has been given away so often */
	bool failed;
	pthread_t thread;
};

/* How many turns a time has is up to whatever else the machine does. */
static bool goes_on(const struct looker *l, int64_t passed)
{
	return !l->failed && (passed < LOOKING || (atomic_load(&yields) < l->wanted && passed < T_PATIENCE));
}

static void *look(void *arg)
{
	struct looker *l = arg;
	struct fi_cq_tagged_entry e;

	for (int64_t from = t_now(); goes_on(l, t_now() - from);)
		l->failed = l->cntr ? fi_cntr_read(l->cntr) != 0 : fi_cq_read(l->cq, &e, 1) != -FI_EAGAIN;
	return NULL;
}

/* How often the core was given away while so many looked. */
static unsigned look_all(struct looker *l, unsigned threads)
{
	usleep(150000); /* who looked before is forgotten */
	atomic_store(&yields, 0);
	for (unsigned i = 0; i < threads; i++)
		l[i].wanted = threads > 1 ? ENOUGH : 0;
	for (unsigned i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&l[i].thread, NULL, look, &l[i]), 0);
	for (unsigned i = 0; i < threads; i++) {
		assert_int_equal(pthread_join(l[i].thread, NULL), 0);
		assert_false(l[i].failed);
	}
	return atomic_load(&yields);
}

static void bind_to_one(void)
{
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) {
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Each with a domain of its own, without lock. */
static void domains_apart(void **state)
{
	struct t_domain d[2];
	struct t_end e[2];
	struct looker l[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		t_domain_open(&d[i], 0, FI_THREAD_DOMAIN);
		t_end_open(&e[i], &d[i], NULL);
		l[i] = (struct looker){.cq = e[i].cq};
	}
	assert_int_equal(look_all(l, 1), 0);
	assert_true(look_all(l, 2) >= ENOUGH);
	for (unsigned i = 0; i < 2; i++) {
		t_end_close(&e[i]);
		t_domain_close(&d[i]);
	}
}

/* On one queue, and its lock is free meanwhile. */
static void one_queue(void **state)
{
	struct t_domain d;
	struct t_end e;
	struct looker l[2];

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&e, &d, NULL);
	l[0] = l[1] = (struct looker){.cq = e.cq};
	assert_int_equal(look_all(l, 1), 0);
	atomic_store(&queue_of_all, e.cq);
	assert_true(look_all(l, 2) >= ENOUGH);
	atomic_store(&queue_of_all, NULL);
	t_end_close(&e);
	t_domain_close(&d);
}

/* On counters. */
static void counters(void **state)
{
	struct t_domain d;
	struct t_end e;
	struct looker l[2] = {{0}, {0}};

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&e, &d, NULL);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(fi_cntr_open(d.domain, NULL, &l[i].cntr, NULL), 0);
	assert_int_equal(look_all(l, 1), 0);
	assert_true(look_all(l, 2) >= ENOUGH);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(fi_close(&l[i].cntr->fid), 0);
	t_end_close(&e);
	t_domain_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_apart),
		cmocka_unit_test(one_queue),
		cmocka_unit_test(counters),
	};

	bind_to_one();
	alarm(4 * T_PATIENCE / 1000);
	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
