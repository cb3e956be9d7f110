/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes have several endpoints each, in one domain, and all of them know each other.
 *
 *     first    0 1 2 3        each with each of
 *     second   0 1 2 3        the other process
 *
 * Who closes one waits until its peers have what it has sent, and answers with the others meanwhile: the peers may be
 * closing theirs, and wait likewise.
 */
#define _GNU_SOURCE /* memfd_create, pthread_timedjoin_np */
#include "fi_pair.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ENDS  4
#define TAG   7
#define LATE  300 /* ms for which the second process does nothing */
#define SLEEP 20  /* seconds: who has not woken by then will not */
#define TRIES 3

struct kind {
	const char *link, *service; /* service may be NULL */
	enum fi_threading threading;
	enum fi_progress progress;
	bool one_queue;
};

struct side {
	struct t_process *p;
	struct t_domain d;
	struct t_end e[ENDS];
	fi_addr_t to[ENDS][ENDS]; /* of the k-th of the other process, as the i-th knows it */
};

static void open_domain(struct t_domain *d, const struct kind *k)
{
	struct fi_info *hints = t_hints();

	hints->domain_attr->threading = k->threading;
	hints->domain_attr->data_progress = k->progress;
	hints->domain_attr->control_progress = k->progress;
	t_domain_open_with(d, hints);
}

static void greet(struct side *s)
{
	unsigned char name[sizeof(s->e->name)];

	for (int k = 0; k < ENDS; k++) {
		t_say(s->p, s->e[k].name, sizeof(name));
		t_hear(s->p, name, sizeof(name));
		for (int i = 0; i < ENDS; i++)
			s->to[i][k] = t_insert(&s->e[i], name);
	}
}

static void open_side(struct side *s, struct t_process *p)
{
	const struct kind *k = p->arg;
	struct t_options o = {.wait = FI_WAIT_FD};

	if (k->service)
		setenv("FI_ROPEWALK_SERVICE", k->service, 1);
	s->p = p;
	open_domain(&s->d, k);
	for (int i = 0; i < ENDS; i++) {
		t_end_open(&s->e[i], &s->d, &o);
		if (k->one_queue)
			o.cq = s->e[0].cq;
	}
	greet(s);
}

static void close_queues(struct side *s)
{
	for (int i = 0; i < ENDS; i++)
		assert_int_equal(fi_close(&s->e[i].av->fid), 0);
	for (int i = 0; i < ENDS; i++) {
		if (!i || s->e[i].cq != s->e[0].cq)
			assert_int_equal(fi_close(&s->e[i].cq->fid), 0);
	}
	t_domain_close(&s->d);
}

/* Closes these; does one of them say that it has waited in vain? */
static bool close_ends(struct side *s, int from, int to)
{
	char text[64 << 10] = "";
	int file = memfd_create("log", MFD_CLOEXEC), kept = dup(STDERR_FILENO);

	assert_true(file >= 0 && kept >= 0);
	dup2(file, STDERR_FILENO);
	for (int i = from; i < to; i++)
		assert_int_equal(fi_close(&s->e[i].ep->fid), 0);
	dup2(kept, STDERR_FILENO);
	assert_true(pread(file, text, sizeof(text) - 1, 0) >= 0);
	close(kept);
	close(file);
	return strstr(text, "closed although what was sent last is not known to have come");
}

static void drive(struct side *s, int ms)
{
	for (int64_t end = t_now() + ms; t_now() < end;) {
		for (int i = 0; i < ENDS; i++)
			t_drive(s->e[i].cq);
	}
}

/* Both have come to this place, and make progress until then: what was lost on the way is sent again by nobody else. */
static void meet(struct side *s)
{
	struct pollfd in = {.fd = s->p->fd, .events = POLLIN};
	char byte = 0;

	t_say(s->p, &byte, 1);
	for (int64_t end = t_now() + T_PATIENCE; !poll(&in, 1, 0) && t_now() < end;)
		drive(s, 1);
	t_hear(s->p, &byte, 1);
}

/* Each sends to each, until both have all that comes. */
static void exchange(struct side *s)
{
	unsigned left = 2 * ENDS * ENDS;
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < ENDS * ENDS; i++)
		t_post(fi_trecv(s->e[i % ENDS].ep, NULL, 0, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL), NULL, NULL);
	for (int i = 0; i < ENDS * ENDS; i++)
		t_post(fi_tsend(s->e[i % ENDS].ep, NULL, 0, NULL, s->to[i % ENDS][i / ENDS], TAG, NULL),
			s->e[i % ENDS].cq, NULL);
	for (int64_t end = t_now() + T_PATIENCE; left && t_now() < end;) {
		for (int i = 0; i < ENDS; i++)
			left -= fi_cq_read(s->e[i].cq, &entry, 1) == 1;
	}
	assert_int_equal(left, 0);
	meet(s);
}

/* Both processes know whether one of them did. */
static bool in_vain(struct t_process *p)
{
	bool mine, theirs;
	struct side s;

	open_side(&s, p);
	exchange(&s);
	mine = close_ends(&s, 0, ENDS);
	close_queues(&s);
	t_say(p, &mine, sizeof(mine));
	t_hear(p, &theirs, sizeof(theirs));
	return mine || theirs;
}

/* A close that waits in vain always does. One whose peer had no processor all the time is tried again. */
static void closes(struct t_process *p)
{
	unsigned tries = 0;

	while (in_vain(p))
		assert_true(++tries < TRIES);
}

static void test_both_close(void **state)
{
	static const struct kind kinds[] = {
		{"udp", "rc", FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, false},
		{"udp", "rc", FI_THREAD_DOMAIN, FI_PROGRESS_AUTO, false},
		{"udp", "rc", FI_THREAD_SAFE, FI_PROGRESS_MANUAL, false},
		{"udp", "rc", FI_THREAD_SAFE, FI_PROGRESS_MANUAL, true},
		{"udp", "rc", FI_THREAD_SAFE, FI_PROGRESS_AUTO, true},
		{"udp", "src", FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, false},
		{"udp", "src", FI_THREAD_SAFE, FI_PROGRESS_AUTO, false},
		{"tcp", NULL, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, false},
		{"tcp", NULL, FI_THREAD_SAFE, FI_PROGRESS_AUTO, false},
		{"shm", NULL, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, false},
		{"shm", NULL, FI_THREAD_SAFE, FI_PROGRESS_AUTO, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		t_two(kinds[i].link, closes, closes, &kinds[i]);
}

/*
 * Who sleeps on an endpoint while another one is closed by another thread, which drives both, sleeps no deeper. All has
 * been acknowledged before, and there are no streams to be looked after, so that no clock wakes the sleeper.
 */

struct sleeper {
	struct t_end *e;
	bool woken;
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry entry;

	s->woken = fi_cq_sread(s->e->cq, &entry, 1, NULL, -1) == 1;
	return NULL;
}

static void join(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SLEEP;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
}

static void closes_beside_sleeper(struct t_process *p)
{
	struct sleeper sleeper = {0};
	pthread_t thread;
	struct side s;
	char byte;

	open_side(&s, p);
	exchange(&s);
	drive(&s, LATE);
	sleeper.e = &s.e[1];
	t_post(fi_trecv(s.e[1].ep, NULL, 0, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL), NULL, NULL);
	assert_int_equal(pthread_create(&thread, NULL, sleeps, &sleeper), 0);
	usleep(LATE * 1000); /* time to fall asleep; without it the test sees less */
	t_meet(p, NULL);
	assert_false(close_ends(&s, 0, 1));
	/* The peer's answer was waited for: it answers once it has come to the next place. */
	assert_int_equal(recv(p->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK), 1);
	t_meet(p, NULL);
	join(thread);
	assert_true(sleeper.woken);
	close_ends(&s, 1, ENDS);
	close_queues(&s);
}

static void answers_late(struct t_process *p)
{
	struct side s;

	open_side(&s, p);
	exchange(&s);
	drive(&s, 2 * LATE);
	t_meet(p, NULL);
	usleep(LATE * 1000);
	meet(&s);
	t_post(fi_tsend(s.e[1].ep, NULL, 0, NULL, s.to[1][1], TAG, NULL), s.e[1].cq, NULL);
	t_wait(s.e[1].cq, NULL, NULL);
	close_ends(&s, 0, ENDS);
	close_queues(&s);
}

static void test_beside_sleeper(void **state)
{
	static const struct kind kind = {"udp", "rc", FI_THREAD_SAFE, FI_PROGRESS_MANUAL, false};

	(void)state;
	setenv("FI_ROPEWALK_TCP", "no", 1);
	t_two(kind.link, closes_beside_sleeper, answers_late, &kind);
	unsetenv("FI_ROPEWALK_TCP");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_close),
		cmocka_unit_test(test_beside_sleeper),
	};

	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "ropewalk", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
