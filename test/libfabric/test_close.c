/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint is closed while messages that were injected are still on their way: their receivers get them all the
 * same, and receivers that are no more are not waited for. Or by a child that was forked, which is nobody's affair.
 */
#include "fi_pair.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH 200
#define TAG    7

#define LIMIT   256 /* descriptors */
#define AT_ONCE 55 /* s: less than a receiver is waited for that does not receive */

static void open_end_with(struct t_domain *d, struct t_end *e, enum fi_threading threading, enum fi_progress progress)
{
	struct fi_info *hints = t_hints();

	hints->domain_attr->threading = threading;
	hints->domain_attr->data_progress = progress;
	t_domain_open_with(d, hints);
	t_end_open(e, d, NULL);
}

static void open_end(struct t_domain *d, struct t_end *e)
{
	open_end_with(d, e, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
}

static void close_end(struct t_domain *d, struct t_end *e)
{
	t_end_close(e);
	t_domain_close(d);
}

static void inject(struct t_end *e, fi_addr_t to, unsigned count)
{
	unsigned char buf[LENGTH];

	for (unsigned i = 0; i < count; i++) {
		t_fill(buf, sizeof(buf), i);
		t_post(fi_tinject(e->ep, buf, sizeof(buf), to, TAG), e->cq, NULL);
	}
}

static void receive(struct t_end *e, unsigned count)
{
	unsigned char buf[LENGTH];

	for (unsigned i = 0; i < count; i++) {
		t_post(fi_trecv(e->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, TAG, 0, buf), e->cq, NULL);
		t_wait(e->cq, NULL, NULL);
		t_check(buf, sizeof(buf), i);
	}
}

static void inject_and_close(struct t_process *p, enum fi_progress progress)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;

	open_end_with(&d, &e, FI_THREAD_DOMAIN, progress);
	to = t_greet(p, &e);
	inject(&e, to, *(const unsigned *)p->arg);
	t_say(p, "", 1);
	close_end(&d, &e);
}

/* arg: how many. */
static void injects_and_closes(struct t_process *p)
{
	inject_and_close(p, FI_PROGRESS_MANUAL);
}

/* Who does not hear that all has gone waits for a minute. */
static void injects_and_closes_automatically(struct t_process *p)
{
	alarm(AT_ONCE);
	inject_and_close(p, FI_PROGRESS_AUTO);
}

/* The sender closes its endpoint before this one has heard of it. */
static void comes_late(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	char byte;

	open_end(&d, &e);
	t_greet(p, &e);
	t_hear(p, &byte, 1);
	usleep(200 * 1000);
	receive(&e, *(const unsigned *)p->arg);
	close_end(&d, &e);
}

/* Has contact, but does not receive until the sender is closing: what has no credit stays with the sender. */
static void receives_late(struct t_process *p)
{
	int64_t end;
	struct t_domain d;
	struct t_end e;
	char byte;

	open_end(&d, &e);
	t_greet(p, &e);
	t_hear_driving(p, &byte, 1, e.cq);
	for (end = t_now() + 200; t_now() < end;)
		t_drive(e.cq);
	receive(&e, *(const unsigned *)p->arg);
	close_end(&d, &e);
}

/* Has a receive for everything, and takes it all at once when the sender has gone to sleep. */
static void receives_at_once(struct t_process *p)
{
	unsigned count = *(const unsigned *)p->arg;
	struct fi_cq_tagged_entry entry;
	unsigned char buf[LENGTH];
	struct t_domain d;
	struct t_end e;

	open_end(&d, &e);
	t_greet(p, &e);
	for (unsigned i = 0; i < count; i++)
		t_post(fi_trecv(e.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, TAG, 0, buf), e.cq, NULL);
	t_hear_driving(p, buf, 1, e.cq);
	usleep(20 * 1000);
	for (int64_t end = t_now() + T_PATIENCE; count && t_now() < end;)
		count -= fi_cq_read(e.cq, &entry, 1) == 1;
	assert_int_equal(count, 0);
	close_end(&d, &e);
}

static void closes_too(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	char byte;

	open_end(&d, &e);
	t_greet(p, &e);
	t_hear_driving(p, &byte, 1, e.cq);
	close_end(&d, &e);
}

static void is_killed(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	char byte;

	open_end(&d, &e);
	t_greet(p, &e);
	t_hear(p, &byte, 1);
	usleep(200 * 1000);
	raise(SIGKILL);
}

/* In a child: closes the endpoint, and looks whether its own memory is as it was, which lies where there was room. */
static void child_closes(struct t_end *e)
{
	enum { PARTS = 8, BYTES = 1 << 20 };
	unsigned char *own[PARTS];

	for (int i = 0; i < PARTS; i++) {
		own[i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(own[i], 7, BYTES);
	}
	if (fi_close(&e->ep->fid))
		_exit(1);
	for (int i = 0; i < PARTS; i++) {
		if (own[i][0] != 7 || memcmp(own[i], own[i] + 1, BYTES - 1))
			_exit(2);
	}
	_exit(0);
}

/* Has a child that closes its copy of the endpoint, and goes on with its own. */
static void closed_in_a_child(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;
	int status;
	pid_t pid;

	open_end(&d, &e);
	to = t_greet(p, &e);
	inject(&e, to, 1);
	receive(&e, 1);
	pid = fork();
	if (!pid)
		child_closes(&e);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	inject(&e, to, 1);
	receive(&e, 1);
	t_meet(p, e.cq);
	close_end(&d, &e);
}

static void answers_twice(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;

	open_end(&d, &e);
	to = t_greet(p, &e);
	for (int i = 0; i < 2; i++) {
		receive(&e, 1);
		inject(&e, to, 1);
	}
	t_meet(p, e.cq);
	close_end(&d, &e);
}

/* Its sender is closed before the other endpoint has looked, which nobody else would drive. arg: how many. */
static void closes_beside_receiver(struct t_process *p)
{
	static const enum fi_threading kinds[] = {FI_THREAD_DOMAIN, FI_THREAD_SAFE};

	alarm(AT_ONCE);
	for (int i = 0; i < 2; i++) {
		struct t_end sender, receiver;
		struct t_domain d;
		fi_addr_t to;

		open_end_with(&d, &sender, kinds[i], FI_PROGRESS_MANUAL);
		t_end_open(&receiver, &d, NULL);
		to = t_insert(&sender, receiver.name);
		inject(&sender, to, *(const unsigned *)p->arg);
		t_end_close(&sender);
		receive(&receiver, *(const unsigned *)p->arg);
		close_end(&d, &receiver);
	}
}

static void does_nothing(struct t_process *p)
{
	(void)p;
}

/* Has no descriptor left when it closes its endpoint. */
static void injects_and_closes_without_descriptors(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;

	open_end(&d, &e);
	to = t_greet(p, &e);
	inject(&e, to, *(const unsigned *)p->arg);
	t_say(p, "", 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){LIMIT, LIMIT}), 0);
	while (dup(p->fd) >= 0)
		;
	assert_int_equal(errno, EMFILE);
	close_end(&d, &e);
}

static const char *const links[] = {"shm", "udp", "tcp"};

/* Few enough to be sent at once, if there were contact. */
static void test_before_contact(void **state)
{
	static const unsigned count = 70;

	(void)state;
	for (int i = 0; i < 3; i++)
		t_two(links[i], injects_and_closes, comes_late, &count);
}

static void test_without_credit(void **state)
{
	static const unsigned count = 200;

	(void)state;
	setenv("FI_ROPEWALK_EAGER_CREDIT", "4096", 1);
	for (int i = 0; i < 3; i++)
		t_two(links[i], injects_and_closes, receives_late, &count);
	unsetenv("FI_ROPEWALK_EAGER_CREDIT");
}

static void test_without_descriptors(void **state)
{
	static const unsigned count = 200;

	(void)state;
	setenv("FI_ROPEWALK_EAGER_CREDIT", "4096", 1);
	for (int i = 0; i < 3; i++)
		t_two(links[i], injects_and_closes_without_descriptors, receives_late, &count);
	unsetenv("FI_ROPEWALK_EAGER_CREDIT");
}

/* The thread that makes progress sends what is owed, and he who closes sees that. */
static void test_automatic(void **state)
{
	static const unsigned count = 400;

	(void)state;
	setenv("FI_ROPEWALK_EAGER_CREDIT", "4096", 1);
	for (int i = 0; i < 12; i++)
		t_two(links[i < 3 ? i : 0], injects_and_closes_automatically, receives_at_once, &count);
	unsetenv("FI_ROPEWALK_EAGER_CREDIT");
}

static void test_beside_receiver(void **state)
{
	static const unsigned count = 70;

	(void)state;
	for (int i = 0; i < 3; i++)
		t_two(links[i], closes_beside_receiver, does_nothing, &count);
}

/* Those who will not receive are not waited for: a close that waits takes T_PATIENCE by itself. */
static void two_at_once(const char *link, void (*second)(struct t_process *), const unsigned *count)
{
	int64_t start = t_now();

	t_two(link, injects_and_closes, second, count);
	assert_true(t_now() - start < T_PATIENCE);
}

static void test_receiver_closes(void **state)
{
	static const unsigned count = 200;

	(void)state;
	setenv("FI_ROPEWALK_EAGER_CREDIT", "4096", 1);
	for (int i = 0; i < 3; i++)
		two_at_once(links[i], closes_too, &count);
	unsetenv("FI_ROPEWALK_EAGER_CREDIT");
}

static void test_receiver_dies(void **state)
{
	static const unsigned count = 70;

	(void)state;
	for (int i = 0; i < 3; i++)
		two_at_once(links[i], is_killed, &count);
}

static void test_child_closes(void **state)
{
	(void)state;
	t_two("shm", closed_in_a_child, answers_twice, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_contact),
		cmocka_unit_test(test_without_credit),
		cmocka_unit_test(test_without_descriptors),
		cmocka_unit_test(test_automatic),
		cmocka_unit_test(test_beside_receiver),
		cmocka_unit_test(test_receiver_closes),
		cmocka_unit_test(test_receiver_dies),
		cmocka_unit_test(test_child_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
