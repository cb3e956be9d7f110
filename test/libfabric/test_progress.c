/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic progress: what happens while a program calls nothing, and that its thread is there only where it was asked
 * for, and gone when it should be. Manual progress is the cross-check: there nothing happens.
 */
#include "fi_pair.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG   ((size_t)1 << 20) /* a rendezvous: its receiver has to do something */
#define MOMENT 200               /* ms in which something that must not happen would */

#define CHILDREN 10

static void domain_open(struct t_domain *d, enum fi_progress progress, enum fi_threading threading)
{
	struct fi_info *hints = t_hints();

	hints->domain_attr->data_progress = progress;
	hints->domain_attr->threading = threading;
	t_domain_open_with(d, hints);
	assert_int_equal(d->info->domain_attr->data_progress, progress);
	assert_int_equal(d->info->domain_attr->threading, threading);
}

/* The line of a thread's status that begins so; empty if it has none, or has just ended. */
static void status_line(const char *thread, const char *begin, char *line, size_t size)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
	line[0] = 0;
	f = fopen(path, "r");
	if (!f)
		return;
	while (fgets(line, (int)size, f) && strncmp(line, begin, strlen(begin)))
		line[0] = 0;
	fclose(f);
}

/* How many progress threads this process has; each takes no signals. */
static int threads(void)
{
	const unsigned long long kill_and_stop = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
	const unsigned long long usual = (1ull << 31) - 1;
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		unsigned long long blocked = 0;
		char line[256];

		if (entry->d_name[0] == '.')
			continue;
		status_line(entry->d_name, "Name:", line, sizeof(line));
		if (!strstr(line, "rwk-progress"))
			continue;
		status_line(entry->d_name, "SigBlk:", line, sizeof(line));
		if (!line[0])
			continue;
		n++;
		assert_int_equal(sscanf(line, "SigBlk: %llx", &blocked), 1);
		assert_int_equal((blocked | kill_and_stop) & usual, usual);
	}
	closedir(dir);
	return n;
}

/* A thread that has been joined may be listed for a moment still. */
static void assert_no_thread(void)
{
	const struct timespec ms = {0, 1000000};

	for (int i = 0; i < 25 * MOMENT && threads(); i++)
		nanosleep(&ms, NULL);
	assert_int_equal(threads(), 0);
}

/* Waits without a call of libfabric for what the other process says. */
static void passive(struct t_process *p)
{
	const enum fi_progress *progress = p->arg;
	struct t_domain d;
	struct t_end e;
	char *in = calloc(1, LONG), byte;

	domain_open(&d, *progress, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	t_greet(p, &e);
	assert_int_equal(fi_trecv(e.ep, in, LONG, NULL, FI_ADDR_UNSPEC, 1, 0, in), 0);
	for (int i = 0; i < 3; i++) {
		usleep(20000); /* the thread sleeps by now, and this takes back what it has armed */
		t_drive(e.cq);
	}
	t_meet(p, NULL);
	t_hear(p, &byte, 1);
#ifndef __SANITIZE_THREAD__ /* it does not know that the other process has seen the end of it */
	if (*progress == FI_PROGRESS_AUTO)
		t_check(in, LONG, 3); /* though nothing has been called since */
#endif
	assert_ptr_equal(t_wait(e.cq, NULL, NULL).op_context, in);
	t_check(in, LONG, 3);
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
	free(in);
}

static void active(struct t_process *p)
{
	const enum fi_progress *progress = p->arg;
	struct t_options o = {.tx_op_flags = FI_DELIVERY_COMPLETE};
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;
	char *out = malloc(LONG), byte = 0;

	domain_open(&d, FI_PROGRESS_MANUAL, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, &o);
	to = t_greet(p, &e);
	t_fill(out, LONG, 3);
	t_meet(p, NULL);
	usleep(50000); /* the other side's thread sleeps again */
	t_post(fi_tsend(e.ep, out, LONG, NULL, to, 1, out), e.cq, NULL);
	if (*progress == FI_PROGRESS_AUTO) {
		t_wait(e.cq, NULL, NULL);
		t_say(p, &byte, 1);
	} else {
		struct fi_cq_tagged_entry entry;

		for (int64_t end = t_now() + MOMENT; t_now() < end;)
			assert_int_equal(fi_cq_read(e.cq, &entry, 1), -FI_EAGAIN);
		t_say(p, &byte, 1);
		t_wait(e.cq, NULL, NULL);
	}
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
	free(out);
}

static const char *const links[] = {NULL, "udp", "tcp"};

/* A long message is received by a process that calls nothing, over each link. */
static void a_passive_receiver(void **state)
{
	static const enum fi_progress by_itself = FI_PROGRESS_AUTO;

	(void)state;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		t_two(links[i], passive, active, &by_itself);
}

/* And is not, without automatic progress: the test above could fail. */
static void a_manual_receiver(void **state)
{
	static const enum fi_progress manual = FI_PROGRESS_MANUAL;

	(void)state;
	t_two(NULL, passive, active, &manual);
}

/* The thread is there from a domain's first endpoint until the domain is closed. */
static void thread_comes_and_goes(struct t_process *p)
{
	struct t_domain d;
	struct t_end e, other;

	(void)p;
	domain_open(&d, FI_PROGRESS_MANUAL, FI_THREAD_SAFE);
	t_end_open(&e, &d, NULL);
	assert_int_equal(threads(), 0);
	t_end_close(&e);
	t_domain_close(&d);
	for (int i = 0; i < 20; i++) {
		domain_open(&d, FI_PROGRESS_AUTO, FI_THREAD_SAFE);
		assert_int_equal(threads(), 0);
		t_end_open(&e, &d, NULL);
		t_end_open(&other, &d, NULL);
		assert_int_equal(threads(), 1);
		t_end_close(&e);
		t_end_close(&other);
		t_domain_close(&d);
		assert_no_thread();
	}
}

/* A child has no such thread, may end as it likes and have one of its own; ours goes on. */
static void forks(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	int status;
	pid_t pid;

	(void)p;
	domain_open(&d, FI_PROGRESS_AUTO, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(T_PATIENCE / 1000);
		assert_int_equal(threads(), 0);
#ifndef __SANITIZE_THREAD__ /* it ends a process that starts threads after such a fork */
		struct t_domain own;
		struct t_end ours;

		domain_open(&own, FI_PROGRESS_AUTO, FI_THREAD_DOMAIN);
		t_end_open(&ours, &own, NULL);
		assert_int_equal(threads(), 1);
		t_end_close(&ours);
		t_domain_close(&own);
#endif
		exit(0); /* libfabric's own end runs here too */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(threads(), 1);
	t_end_close(&e);
	t_domain_close(&d);
	assert_no_thread();
}

/*
 * In a child, whatever the thread of its parent is about. What else a process does at its end is none of this: a
 * sanitizer would look for leaks there, and wait for threads that the child does not have.
 */
static void close_inherited(struct t_domain *d, struct t_end *e)
{
	alarm(T_PATIENCE / 1000);
	t_end_close(e);
	t_domain_close(d);
	_exit(0);
}

static void await_child(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Long messages each way at once. If it forks: the child closes all, and that is its own affair. */
static void exchange(struct t_process *p, bool forks)
{
	struct t_options o = {.wait = FI_WAIT_FD};
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;
	char *out = malloc(LONG), *in = malloc(LONG);

	domain_open(&d, *(const enum fi_progress *)p->arg, FI_THREAD_SAFE);
	t_end_open(&e, &d, &o);
	to = t_greet(p, &e);
	for (unsigned round = 0; round < CHILDREN; round++) {
		pid_t pid = -1;

		t_fill(out, LONG, round);
		assert_int_equal(fi_trecv(e.ep, in, LONG, NULL, to, round, 0, in), 0);
		t_post(fi_tsend(e.ep, out, LONG, NULL, to, round, out), e.cq, NULL);
		if (forks) {
			pid = fork();
			assert_true(pid >= 0);
		}
		if (!pid)
			close_inherited(&d, &e);
		for (int n = 0; n < 2; n++) {
			struct fi_cq_tagged_entry entry;

			assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, T_PATIENCE), 1);
		}
		t_check(in, LONG, round);
		if (forks)
			await_child(pid);
	}
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
	free(out);
	free(in);
}

static void has_children(struct t_process *p)
{
	exchange(p, true);
}

static void has_none(struct t_process *p)
{
	exchange(p, false);
}

/* Leaves everything open; t_two calls exit. What is static is no leak. */
static void leaves(struct t_process *p)
{
	static struct t_domain d;
	static struct t_end e;

	(void)p;
	domain_open(&d, FI_PROGRESS_AUTO, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
}

static void a_thread_if_asked_for(void **state)
{
	(void)state;
	t_two(NULL, thread_comes_and_goes, forks, NULL);
}

static void closed_by_children(void **state)
{
	static const enum fi_progress kinds[] = {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL};

	(void)state;
	for (int i = 0; i < 6; i++)
		t_two(links[i / 2], has_children, has_none, &kinds[i % 2]);
}

static void left_running(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		t_two(NULL, leaves, leaves, NULL);
}

/* Both ends have the thread and call all the time, too: messages of all lengths, each way at once. */
static void talks(struct t_process *p)
{
	static const size_t lengths[] = {0, 40, 300, 5000, 70000, LONG};
	struct t_options o = {.wait = FI_WAIT_FD};
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;
	char *out = malloc(LONG), *in = malloc(LONG);

	domain_open(&d, FI_PROGRESS_AUTO, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, &o);
	to = t_greet(p, &e);
	for (unsigned round = 0; round < 60; round++) {
		size_t len = lengths[round % (sizeof(lengths) / sizeof(lengths[0]))];

		t_fill(out, len, round);
		assert_int_equal(fi_trecv(e.ep, in, len, NULL, to, round, 0, in), 0);
		t_post(fi_tsend(e.ep, out, len, NULL, to, round, out), e.cq, NULL);
		for (int n = 0; n < 2; n++) {
			struct fi_cq_tagged_entry entry;

			if (round % 3)
				t_wait(e.cq, NULL, NULL);
			else
				assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, T_PATIENCE), 1);
		}
		t_check(in, len, round);
	}
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
	free(out);
	free(in);
}

static void beside_the_program(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		t_two(links[i], talks, talks, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_passive_receiver),
		cmocka_unit_test(a_manual_receiver),
		cmocka_unit_test(a_thread_if_asked_for),
		cmocka_unit_test(closed_by_children),
		cmocka_unit_test(left_running),
		cmocka_unit_test(beside_the_program),
	};

	return cmocka_run_group_tests_name("libfabric/progress", tests, NULL, NULL);
}
