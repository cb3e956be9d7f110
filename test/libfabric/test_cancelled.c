/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that are cancelled (pthread_cancel) with a call of ours on their stack. A cancellation that is pending when a
 * call begins strikes at the first point in it where a thread can be cancelled: so nothing here goes by time. There is
 * none but in a sleep; and who is cancelled there leaves to others what he has slept on.
 */
#include "fi_pair.h"

#include <pthread.h>

#define LOOKS    20000 /* so many that a process looks at everything that it looks at by turns */
#define LONG     300000
#define SHORT    8
#define ROUNDS   3
#define PATIENCE 10000 /* ms */

struct stage {
	struct t_end *e;
	fi_addr_t to;
	char *out, *in;
	int posted; /* errors of what was posted */
};

static void *talks(void *arg)
{
	struct stage *s = arg;
	struct fi_cq_tagged_entry entry;

	pthread_cancel(pthread_self());
	s->posted |= (int)fi_trecv(s->e->ep, s->in, LONG, NULL, s->to, 1, 0, NULL);
	s->posted |= (int)fi_trecv(s->e->ep, s->in + LONG, SHORT, NULL, s->to, 2, 0, NULL);
	s->posted |= (int)fi_tsend(s->e->ep, s->out, LONG, NULL, s->to, 1, NULL);
	s->posted |= (int)fi_tsend(s->e->ep, s->out, SHORT, NULL, s->to, 2, NULL);
	for (int i = 0; i < LOOKS; i++)
		fi_cq_read(s->e->cq, &entry, 0);
	return s;
}

static void *sleeps(void *arg)
{
	struct fid_cq *cq = arg;
	struct fi_cq_tagged_entry entry;

	pthread_cancel(pthread_self());
	fi_cq_sread(cq, &entry, 1, NULL, -1);
	return arg;
}

/* What the thread returned; NULL: it was cancelled. */
static void *run(void *(*what)(void *), void *arg)
{
	pthread_t id;
	void *got;

	assert_int_equal(pthread_create(&id, NULL, what, arg), 0);
	assert_int_equal(pthread_join(id, &got), 0);
	return got == PTHREAD_CANCELED ? NULL : got;
}

/* A signal of the queue is for who waits there, and else for who comes next: is there one that is counted and gone? */
static void nobody_waits(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	int64_t end = t_now() + PATIENCE;

	assert_int_equal(fi_cq_signal(cq), 0);
	assert_int_equal(fi_cq_sread(cq, &entry, 1, NULL, PATIENCE), -FI_EAGAIN);
	assert_true(t_now() < end);
}

static void both(struct t_process *p)
{
	struct t_options o = {.wait = FI_WAIT_FD};
	struct t_domain d;
	struct t_end e;
	struct stage s = {.e = &e};

	s.out = calloc(2, LONG + SHORT);
	s.in = s.out + LONG + SHORT;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&e, &d, &o);
	s.to = t_greet(p, &e);
	t_fill(s.out, LONG, 3);
	for (int round = 0; round < ROUNDS; round++) {
		memset(s.in, 0, LONG + SHORT);
		assert_ptr_equal(run(talks, &s), &s);
		assert_int_equal(s.posted, 0);
		for (int i = 0; i < 4; i++)
			t_wait(e.cq, NULL, NULL);
		t_check(s.in, LONG, 3);
		t_meet(p, e.cq);
		t_nothing(e.cq, NULL);
		assert_null(run(sleeps, e.cq));
		nobody_waits(e.cq);
		t_meet(p, e.cq);
	}
	t_end_close(&e);
	t_domain_close(&d);
	free(s.out);
}

static void by_shm(void **state)
{
	(void)state;
	t_two("shm", both, both, NULL);
}

static void by_udp(void **state)
{
	(void)state;
	t_two("udp", both, both, NULL);
}

static void by_tcp(void **state)
{
	(void)state;
	t_two("tcp", both, both, NULL);
}

/* Domain and endpoint, from their opening to their close. */
static void *lives(void *arg)
{
	struct fi_info *info = arg;
	struct t_domain d = {.info = info};
	struct t_options o = {.wait = FI_WAIT_FD};
	struct t_end e;

	pthread_cancel(pthread_self());
	if (fi_fabric(info->fabric_attr, &d.fabric, NULL) || fi_domain(d.fabric, info, &d.domain, NULL))
		return NULL;
	t_end_open(&e, &d, &o);
	t_insert(&e, e.name);
	t_end_close(&e);
	return fi_close(&d.domain->fid) || fi_close(&d.fabric->fid) ? NULL : arg;
}

static void *datagrams(void *arg)
{
	struct fi_info *info = arg;
	struct t_domain d = {.info = info};
	struct fi_cq_tagged_entry entry;
	char out[2 * SHORT] = {0};
	struct t_end e;
	int n = 0;

	t_domain_open_with(&d, fi_dupinfo(info));
	pthread_cancel(pthread_self());
	t_end_open(&e, &d, NULL);
	for (int i = 0; i < ROUNDS; i++)
		n += fi_send(e.ep, out, SHORT, NULL, t_insert(&e, e.name), NULL) == 0;
	for (int i = 0; i < LOOKS; i++)
		fi_cq_read(e.cq, &entry, 0);
	t_end_close(&e);
	t_domain_close(&d);
	return n == ROUNDS ? arg : NULL;
}

static void alone(struct t_process *p)
{
	struct fi_info *hints = t_hints(), *info;

	hints->domain_attr->threading = FI_THREAD_SAFE;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_ptr_equal(run(lives, info), info);
	fi_freeinfo(info);
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_ptr_equal(run(lives, info), info);
	fi_freeinfo(info);
	hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_ptr_equal(run(datagrams, hints), hints);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	t_meet(p, NULL);
}

static void waits(struct t_process *p)
{
	t_meet(p, NULL);
}

static void opened_and_closed(void **state)
{
	(void)state;
	t_two(NULL, alone, waits, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_shm),
		cmocka_unit_test(by_udp),
		cmocka_unit_test(by_tcp),
		cmocka_unit_test(opened_and_closed),
	};

	t_use_provider();
	return cmocka_run_group_tests_name("cancelled threads", tests, NULL, NULL);
}
