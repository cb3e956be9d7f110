/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads that wait for one queue or counter at a time: none of them takes from another what wakes it. */
#define _GNU_SOURCE /* cpu_set_t */

#include "fi_sleeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* The provider's as well: the rings of its queues, for which there is no memory while this is set. */
static atomic_bool no_rings;

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size)
{
	void *memory;

	return atomic_load(&no_rings) || posix_memalign(&memory, alignment, size) ? NULL : memory;
}

/* A signal ends the waits of all who sleep on the queue, and not the next one's. */
static void a_signal_for_all(void **state)
{
	struct fi_cq_tagged_entry e;
	struct sleeper sleeper[2];
	struct t_domain d;
	struct t_end a;
	pthread_t id[2];
	int64_t start;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&a, &d, &(struct t_options){.wait = FI_WAIT_FD});
	for (int i = 0; i < 2; i++) {
		sleeper[i] = (struct sleeper){.cq = a.cq};
		assert_int_equal(pthread_create(&id[i], NULL, sleep_on_queue, &sleeper[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		wait_until_asleep(&sleeper[i]);
	start = t_now();
	assert_int_equal(fi_cq_signal(a.cq), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(id[i], NULL), 0);
		assert_int_equal(sleeper[i].result, -FI_EAGAIN);
	}
	assert_in_range(t_now() - start, 0, LONG_SLEEP / 4);
	start = t_now();
	assert_int_equal(fi_cq_sread(a.cq, &e, 1, NULL, 30), -FI_EAGAIN);
	assert_in_range(t_now() - start, 29, T_PATIENCE);
	t_end_close(&a);
	t_domain_close(&d);
}

/* What starts from here on shares one core: one thread sleeps again before the next wakes. Gives what it was before. */
static cpu_set_t share_a_core(void)
{
	cpu_set_t before, one;
	int first = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	return before;
}

/*
 * Two threads wait for one counter: it comes to what the one wants, whoever of them started first. The other wakes as
 * well, and sleeps on; that does not keep the one from waking.
 */
static void thresholds_of_two(void **state)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
	cpu_set_t cores = share_a_core();
	struct fid_cntr *cntr;
	struct t_domain d;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	assert_int_equal(fi_cntr_open(d.domain, &attr, &cntr, NULL), 0);
	for (uint64_t round = 0; round < 20; round++) {
		struct sleeper s[2];
		pthread_t id[2];

		for (uint64_t i = 0; i < 2; i++) {
			s[i] = (struct sleeper){.cntr = cntr, .threshold = 2 * round + 1 + (i ^ round % 2)};
			assert_int_equal(pthread_create(&id[i], NULL, sleep_on_counter, &s[i]), 0);
		}
		for (int i = 0; i < 2; i++)
			wait_until_asleep(&s[i]);
		for (uint64_t i = 0; i < 2; i++) {
			uint64_t who = i ^ round % 2;

			assert_int_equal(fi_cntr_add(cntr, 1), 0);
			assert_int_equal(pthread_join(id[who], NULL), 0);
			assert_int_equal(s[who].result, 0);
		}
	}
	assert_int_equal(fi_close(&cntr->fid), 0);
	t_domain_close(&d);
	assert_int_equal(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

/* Sleeps anew after each signal. */
struct rouser {
	struct sleeper sleeper;
	atomic_uint woken;
	atomic_bool stop;
};

static void *sleep_again(void *arg)
{
	struct rouser *r = arg;
	struct fi_cq_tagged_entry e;

	atomic_store(&r->sleeper.tid, gettid());
	while (!atomic_load(&r->stop)) {
		fi_cq_sread(r->sleeper.cq, &e, 1, NULL, LONG_SLEEP);
		atomic_fetch_add(&r->woken, 1);
	}
	return NULL;
}

/* A signal wakes each of those who sleep, though the first of them is asleep again before the other is awake. */
static void a_signal_for_each(void **state)
{
	cpu_set_t cores = share_a_core();
	struct rouser r[2];
	struct t_domain d;
	struct t_end a;
	pthread_t id[2];

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&a, &d, &(struct t_options){.wait = FI_WAIT_FD});
	for (int i = 0; i < 2; i++) {
		r[i] = (struct rouser){.sleeper = {.cq = a.cq}};
		assert_int_equal(pthread_create(&id[i], NULL, sleep_again, &r[i]), 0);
	}
	for (unsigned round = 1; round <= 20; round++) {
		int64_t end;

		for (int i = 0; i < 2; i++)
			wait_until_asleep(&r[i].sleeper);
		for (int i = 0; i < 2 && round == 20; i++)
			atomic_store(&r[i].stop, true);
		assert_int_equal(fi_cq_signal(a.cq), 0);
		end = t_now() + LONG_SLEEP / 4;
		for (int i = 0; i < 2; i++) {
			while (atomic_load(&r[i].woken) < round) {
				assert_true(t_now() < end);
				usleep(1000);
			}
		}
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(id[i], NULL), 0);
	t_end_close(&a);
	t_domain_close(&d);
	assert_int_equal(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

/*
 * A thread asleep on a queue until there are more entries than there will be, in a domain that makes progress by
 * itself: whoever takes its lock stirs nobody. The endpoint sends to itself.
 */
struct many {
	struct t_domain d;
	struct t_end e;
	fi_addr_t self;
	struct fid_cntr *cntr; /* of receives */
	pthread_t id;
	struct sleeper sleeper;
	atomic_bool done;
};

#define MANY 1000u
#define RING 64u /* entries of a queue before it grows */

static void *sleep_on_many(void *arg)
{
	static struct fi_cq_tagged_entry e[MANY];
	struct many *m = arg;

	atomic_store(&m->sleeper.tid, gettid());
	m->sleeper.result = fi_cq_sread(m->e.cq, e, MANY, (const void *)(uintptr_t)MANY, -1);
	atomic_store(&m->done, true);
	return NULL;
}

static void many_open(struct many *m)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_FD,
		.wait_cond = FI_CQ_COND_THRESHOLD};
	struct t_options o = {0};
	struct fi_info *hints = t_hints();

	*m = (struct many){0};
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	t_domain_open_with(&m->d, hints);
	assert_int_equal(fi_cq_open(m->d.domain, &attr, &o.cq, NULL), 0);
	assert_int_equal(fi_cntr_open(m->d.domain, NULL, &m->cntr, NULL), 0);
	o.rx_cntr = m->cntr;
	t_end_open(&m->e, &m->d, &o);
	m->self = t_insert(&m->e, m->e.name);
}

/* Two entries: of a message that comes, and of one that goes. */
static void two_entries(struct many *m)
{
	int64_t end = t_now() + T_PATIENCE;
	uint64_t before = fi_cntr_read(m->cntr);

	assert_int_equal(fi_trecv(m->e.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	assert_int_equal(fi_tsend(m->e.ep, NULL, 0, NULL, m->self, 1, NULL), 0);
	while (fi_cntr_read(m->cntr) == before)
		assert_true(t_now() < end);
}

static void many_asleep(struct many *m)
{
	assert_int_equal(pthread_create(&m->id, NULL, sleep_on_many, m), 0);
	wait_until_asleep(&m->sleeper);
}

/* The sleeper has been woken: what it has got. */
static ssize_t many_awake(struct many *m)
{
	int64_t end = t_now() + T_PATIENCE;

	while (!atomic_load(&m->done)) {
		assert_true(t_now() < end);
		usleep(1000);
	}
	assert_int_equal(pthread_join(m->id, NULL), 0);
	return m->sleeper.result;
}

static void many_close(struct many *m)
{
	t_end_close(&m->e);
	assert_int_equal(fi_close(&m->cntr->fid), 0);
	t_domain_close(&m->d);
}

/*
 * Who sleeps wakes for an error that another thread's read has brought to the front, however much that has read, and
 * whether or not somebody has the queue's descriptor.
 */
static void woken_for_an_error(void **state)
{
	struct fi_cq_tagged_entry e[4];
	struct fi_cq_err_entry err = {0};
	struct many m;
	int fd;

	(void)state;
	for (size_t count = 2; count < 4; count++) {
		many_open(&m);
		if (count == 3)
			assert_int_equal(fi_control(&m.e.cq->fid, FI_GETWAIT, &fd), 0);
		assert_int_equal(fi_trecv(m.e.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 2, 0, &m), 0);
		many_asleep(&m);
		two_entries(&m);
		assert_int_equal(fi_cancel(&m.e.ep->fid, &m), 0);
		wait_until_asleep(&m.sleeper);
		assert_int_equal(fi_cq_read(m.e.cq, e, count), 2);
		assert_int_equal(many_awake(&m), -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(m.e.cq, &err, 0), 1);
		assert_ptr_equal(err.op_context, &m);
		many_close(&m);
	}
}

/* And when a completion is lost for want of memory: no more entries will come than there are. */
static void woken_by_a_loss(void **state)
{
	struct fi_cq_tagged_entry e;
	struct many m;

	(void)state;
	many_open(&m);
	for (unsigned i = 0; i < RING; i += 2)
		two_entries(&m);
	many_asleep(&m);
	atomic_store(&no_rings, true);
	two_entries(&m);
	assert_int_equal(many_awake(&m), RING);
	atomic_store(&no_rings, false);
	assert_int_equal(fi_cq_read(m.e.cq, &e, 1), -FI_EOVERRUN);
	many_close(&m);
}

/* Polls the descriptor of its counter, unless it has moved: the result is that of poll. */
static void *poll_counter(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = {.events = POLLIN};

	atomic_store(&s->tid, gettid());
	s->result = fi_control(&s->cntr->fid, FI_GETWAIT, &p.fd) ? -1 : poll(&p, 1, LONG_SLEEP);
	return NULL;
}

/*
 * One thread waits for a counter in a call, and another polls its descriptor: who polls is told of each change, though
 * the other wakes first, has not got what it wants, and sleeps on.
 */
static void polled_beside_sleeper(void **state)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
	cpu_set_t cores = share_a_core();
	struct t_domain d;
	struct fid_cntr *cntr;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	assert_int_equal(fi_cntr_open(d.domain, &attr, &cntr, NULL), 0);
	for (uint64_t round = 0; round < 10; round++) {
		struct sleeper calls = {.cntr = cntr, .threshold = 2 * round + 2}, polls = {.cntr = cntr};
		struct fid *fid = &cntr->fid;
		pthread_t id[2];

		fi_cntr_read(cntr);
		assert_int_equal(fi_trywait(d.fabric, &fid, 1), 0);
		for (uint64_t i = 0; i < 2; i++) {
			bool in_call = i ^ round % 2;

			assert_int_equal(pthread_create(&id[in_call], NULL, in_call ? sleep_on_counter : poll_counter,
						 in_call ? &calls : &polls),
				0);
			wait_until_asleep(in_call ? &calls : &polls);
		}
		assert_int_equal(fi_cntr_add(cntr, 1), 0);
		assert_int_equal(pthread_join(id[0], NULL), 0);
		assert_int_equal(polls.result, 1);
		assert_int_equal(fi_cntr_add(cntr, 1), 0);
		assert_int_equal(pthread_join(id[1], NULL), 0);
		assert_int_equal(calls.result, 0);
	}
	assert_int_equal(fi_close(&cntr->fid), 0);
	t_domain_close(&d);
	assert_int_equal(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

/* One of them is waited for, without an end. */
struct blocked {
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_cntr *cntr;
	struct fid_wait *set;
	ssize_t result;
	atomic_bool over;
};

static void *block(void *arg)
{
	struct blocked *b = arg;
	struct fi_cq_tagged_entry e;
	uint32_t number;

	if (b->cq)
		b->result = fi_cq_sread(b->cq, &e, 1, NULL, -1);
	else if (b->eq)
		b->result = fi_eq_sread(b->eq, &number, &e, sizeof(e), -1, 0);
	else if (b->cntr)
		b->result = fi_cntr_wait(b->cntr, 1, -1);
	else
		b->result = fi_wait(b->set, -1);
	atomic_store(&b->over, true);
	return NULL;
}

static void ignore(int number)
{
	(void)number;
}

/* A signal of the system ends whatever wait it comes into. */
static void interrupted(void **state)
{
	struct sigaction action = {.sa_handler = ignore}, before;
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	struct blocked b[4] = {0};
	struct t_domain d;
	struct t_end a;
	int64_t end = t_now() + T_PATIENCE;
	pthread_t id;
	int rc;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&a, &d, &(struct t_options){.wait = FI_WAIT_FD});
	b[0].cq = a.cq;
	assert_int_equal(fi_eq_open(d.fabric, &eq_attr, &b[1].eq, NULL), 0);
	assert_int_equal(fi_cntr_open(d.domain, &cntr_attr, &b[2].cntr, NULL), 0);
	assert_int_equal(fi_wait_open(d.fabric, NULL, &b[3].set), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_create(&id, NULL, block, &b[i]), 0);
		while (!atomic_load(&b[i].over)) {
			usleep(10000);
			rc = atomic_load(&b[i].over) ? 0 : pthread_kill(id, SIGUSR1);
			assert_true(!rc || rc == ESRCH);
			assert_true(t_now() < end);
		}
		assert_int_equal(pthread_join(id, NULL), 0);
		assert_int_equal(b[i].result, i < 2 ? -FI_EAGAIN : -FI_EINTR);
	}
	assert_int_equal(fi_close(&b[1].eq->fid), 0);
	assert_int_equal(fi_close(&b[2].cntr->fid), 0);
	assert_int_equal(fi_close(&b[3].set->fid), 0);
	t_end_close(&a);
	t_domain_close(&d);
	sigaction(SIGUSR1, &before, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_for_all),
		cmocka_unit_test(thresholds_of_two),
		cmocka_unit_test(a_signal_for_each),
		cmocka_unit_test(woken_for_an_error),
		cmocka_unit_test(woken_by_a_loss),
		cmocka_unit_test(polled_beside_sleeper),
		cmocka_unit_test(interrupted),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
