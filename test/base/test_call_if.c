/* SPDX-License-Identifier: BSD-3-Clause */
/* A call that is made only as long as a word stands: single steps through it, with the word changed at each of them. */
#include "rwk_test.h"

#include "base/call_if.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS_MOST = 20000 };

/* What the process that calls and the one that watches it share. */
struct shared {
	_Atomic uint64_t word;
	_Atomic int finished;
	_Atomic long rc;
};

static struct shared *shared;
static int ends[2]; /* of a pipe: each call that is made puts a byte into it */

static long put(void)
{
	const long argument[6] = {ends[1], (long)"x", 1};

	return rwk_call_if(&shared->word, 1, SYS_write, argument);
}

static int bytes(void)
{
	int n = -1;

	return ioctl(ends[0], FIONREAD, &n) ? -1 : n;
}

static int setup(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED || pipe(ends) ? -1 : 0;
}

static void skip_unless_made(void)
{
	char byte;

	shared->word = 1;
	for (int i = 0; i < 100 && put() != 1; i++)
		continue;
	if (bytes() < 1)
		skip();
	assert_int_equal(read(ends[0], &byte, 1), 1);
}

/* The kernel's answer, or -EAGAIN and no call. */
static void made_or_not(void **state)
{
	const long nothing[6] = {-1};
	char byte;

	(void)state;
	skip_unless_made();
	assert_int_equal(put(), 1);
	assert_int_equal(bytes(), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(rwk_call_if(&shared->word, 1, SYS_getpid, nothing), getpid());
	assert_int_equal(rwk_call_if(&shared->word, 1, SYS_close, nothing), -EBADF);
	shared->word = 2;
	assert_int_equal(put(), -EAGAIN);
	assert_int_equal(bytes(), 0);
}

/* Waits until it stops; false: it has ended. */
static bool stops(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status) || (WIFEXITED(status) && !WEXITSTATUS(status)));
	return WIFSTOPPED(status);
}

/* A child that calls once, traced by this process and stopped before the call. */
static pid_t traced(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		shared->rc = put();
		shared->finished = 1;
		_exit(0);
	}
	assert_true(child > 0 && stops(child));
	return child;
}

/*
 * So many steps, then the word is changed, and the process is left to itself: the call is not made any more. False: it
 * was made or given up within those steps.
 */
static bool changed_after(int steps)
{
	pid_t child;
	bool before;

	shared->word = 1;
	shared->finished = 0;
	child = traced();
	for (int i = 0; i < steps && !shared->finished; i++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_true(stops(child));
	}
	before = !shared->finished && !bytes();
	shared->word = 2;
	assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
	assert_false(stops(child));
	assert_int_equal(bytes(), 0);
	assert_int_equal(shared->rc, -EAGAIN);
	return before;
}

static void changed_at_each_step(void **state)
{
	int steps = 0;

	(void)state;
	skip_unless_made();
	while (steps < STEPS_MOST && changed_after(steps))
		steps++;
	assert_true(steps > 10 && steps < STEPS_MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_or_not),
		cmocka_unit_test(changed_at_each_step),
	};

	return cmocka_run_group_tests_name("base/call_if", tests, setup, NULL);
}
