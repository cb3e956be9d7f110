/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whoever dies while he makes a domain, joins it, or lets somebody in: the others come in. A process is killed at each
 * of its system calls in turn (ptrace), and at random moments. RWK_SRC_ROUNDS: how many of the latter (60).
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "members.h"

#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS_MAX = 400, ROUNDS = 60, TOGETHER = 5 };

static int be_traced(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return -errno;
	raise(SIGSTOP);
	return 0;
}

/* Lets a traced process run up to its next system call, or out of the one that it is in. */
static void next_call(const struct member *m)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SYSCALL, m->pid, NULL, NULL), 0);
	assert_int_equal(waitpid(m->pid, &status, 0), m->pid);
	assert_true(WIFSTOPPED(status));
}

/* Starts one that is stopped after so many steps since it began to join: into a system call, and out of it, are two.
 * False: it has come in before that. */
static bool start_stopped(struct member *m, uint8_t key, unsigned step)
{
	const struct plan plan = {.key = key, .before = be_traced};
	int status;

	member_start(m, &plan);
	assert_int_equal(waitpid(m->pid, &status, 0), m->pid);
	assert_true(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, m->pid, NULL, PTRACE_O_EXITKILL);
	for (unsigned i = 0; i < step; i++) {
		if (member_speaks(m))
			return false;
		next_call(m);
	}
	return true;
}

/* The maker is killed at each step, while another knocks: that one comes in, and nothing of the first is left. */
static void maker(void **state)
{
	const struct plan plan = {.key = 1};
	unsigned step;

	(void)state;
	for (step = 1; step < CALLS_MAX; step++) {
		struct member first, second;
		bool within = start_stopped(&first, 1, step);

		member_start(&second, &plan);
		sleep_ms(3);
		member_kill(&first);
		assert_true(member_hear(&second));
		assert_int_equal(second.told.rc, 0);
		assert_int_equal(holders_of(&second.told), 1);
		member_leave(&second);
		assert_nothing_left(&second.told, 1);
		if (!within)
			break;
	}
	print_message("           %u steps\n", step);
	assert_true(step > 20 && step < CALLS_MAX);
}

static unsigned descriptors_of(const struct member *m)
{
	char path[40];
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)m->pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A visitor is killed at each step: the member goes on to let others in, and has nothing left of him. */
static void visitor(void **state)
{
	const struct plan plan = {.key = 2};
	struct member host;
	unsigned step, before;

	(void)state;
	member_join(&host, &plan);
	before = descriptors_of(&host);
	for (step = 1; step < CALLS_MAX; step++) {
		struct member first, second;
		bool within = start_stopped(&first, 2, step);

		member_start(&second, &plan);
		member_kill(&first);
		assert_true(member_hear(&second));
		assert_int_equal(second.told.rc, 0);
		assert_true(same_domain(&second.told, &host.told));
		member_leave(&second);
		for (int i = 0; i < 2000 && descriptors_of(&host) != before; i++)
			sleep_ms(10);
		assert_int_equal(descriptors_of(&host), before);
		assert_int_equal(holders_of(&host.told), 1);
		if (!within)
			break;
	}
	print_message("           %u steps\n", step);
	assert_true(step > 20 && step < CALLS_MAX);
	member_leave(&host);
	assert_nothing_left(&host.told, 2);
}

/* A member is killed at each step of letting a visitor in: another one lets him in. */
static void doorman(void **state)
{
	const struct plan plan = {.key = 3};
	bool within = true;
	unsigned steps;

	(void)state;
	for (steps = 1; within && steps < CALLS_MAX; steps++) {
		struct member man, other, late;
		int status;

		member_join(&other, &plan);
		member_join(&man, &plan);
		member_order(&other, COMPUTE);
		assert_int_equal(ptrace(PTRACE_SEIZE, man.pid, NULL, PTRACE_O_EXITKILL), 0);
		assert_int_equal(ptrace(PTRACE_INTERRUPT, man.pid, NULL, NULL), 0);
		assert_int_equal(waitpid(man.pid, &status, 0), man.pid);
		member_start(&late, &plan);
		for (unsigned i = 0; within && i < steps; i++) {
			next_call(&man);
			within = !member_speaks(&late);
		}
		member_kill(&man);
		member_order(&other, ATTEND);
		assert_true(member_hear(&late));
		assert_int_equal(late.told.rc, 0);
		assert_true(same_domain(&late.told, &other.told));
		assert_int_equal(holders_of(&other.told), 2);
		member_leave(&late);
		member_leave(&other);
		assert_nothing_left(&other.told, 3);
	}
	print_message("           %u steps\n", steps);
	assert_true(steps > 10 && steps < CALLS_MAX);
}

/* A maker is stopped for a while between having the name and listening: whoever knocks waits for him, and comes in. */
static void slow_maker(void **state)
{
	const struct plan plan = {.key = 4};
	struct member first, second;
	unsigned step = 0;

	(void)state;
	assert_true(start_stopped(&first, 4, 0));
	for (; !name_is_taken(4, geteuid()); step++) {
		assert_true(step < CALLS_MAX);
		next_call(&first);
	}
	member_start(&second, &plan);
	sleep_ms(700);
	assert_false(member_speaks(&second));
	assert_int_equal(ptrace(PTRACE_DETACH, first.pid, NULL, NULL), 0);
	assert_true(member_hear(&first) && member_hear(&second));
	assert_int_equal(first.told.rc, 0);
	assert_int_equal(second.told.rc, 0);
	assert_true(first.told.made && same_domain(&first.told, &second.told));
	member_leave(&first);
	member_leave(&second);
	assert_nothing_left(&first.told, 4);
}

/* Kills it within the next millisecond: true if it has not been in before. */
static bool kill_soon(struct member *m, unsigned *seed)
{
	bool early;

	usleep((unsigned)rand_r(seed) % 1000);
	early = !member_speaks(m);
	member_kill(m);
	return early;
}

/* Some join at once, and one or two of them are killed at random moments: as soon as they have begun, or when all have.
 * The others come in, to one domain. */
static void at_random(void **state)
{
	const char *rounds = getenv("RWK_SRC_ROUNDS");
	const struct plan plan = {.key = 5};
	unsigned seed = 11, early = 0, killed = 0;

	(void)state;
	for (int round = rounds ? atoi(rounds) : ROUNDS; round > 0; round--) {
		unsigned victims = 1u << rand_r(&seed) % TOGETHER | 1u << rand_r(&seed) % TOGETHER;
		bool at_once = round % 2;
		struct member m[TOGETHER];
		const struct told *told = NULL;

		for (int i = 0; i < TOGETHER; i++) {
			member_start(&m[i], &plan);
			if (at_once && victims & 1u << i)
				early += kill_soon(&m[i], &seed);
		}
		for (int i = 0; i < TOGETHER; i++) {
			killed += victims >> i & 1;
			if (!at_once && victims & 1u << i)
				early += kill_soon(&m[i], &seed);
		}
		for (int i = 0; i < TOGETHER; i++) {
			if (victims & 1u << i)
				continue;
			assert_true(member_hear(&m[i]));
			assert_int_equal(m[i].told.rc, 0);
			told = told ? told : &m[i].told;
			assert_true(same_domain(&m[i].told, told));
		}
		for (int i = 0; i < TOGETHER; i++) {
			if (!(victims & 1u << i))
				member_leave(&m[i]);
		}
		assert_nothing_left(told, 5);
	}
	print_message("           %u killed, %u before they were in\n", killed, early);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maker),
		cmocka_unit_test(visitor),
		cmocka_unit_test(doorman),
		cmocka_unit_test(slow_maker),
		cmocka_unit_test(at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
