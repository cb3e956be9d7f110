/* SPDX-License-Identifier: BSD-3-Clause */
/* A process tells itself from those that it comes from, also where all of them have the same pid, as here. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "base/this_process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pid = 1;
static bool no_memory;

pid_t getpid_here(void)
{
	return pid;
}

void *mmap_here(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (no_memory) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

static bool ends_well(pid_t child)
{
	int status;

	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

/* Without memory for more the pid is told: always the same, also when there is memory again. The first to ask. */
static void without_memory(void **state)
{
	pid_t child = fork();

	(void)state;
	if (!child) {
		uint64_t me;

		no_memory = true;
		me = rwk_this_process();
		no_memory = false;
		if (!me || rwk_this_process() != me)
			_exit(1);
		pid = 2;
		_exit(rwk_this_process() == me);
	}
	assert_true(ends_well(child));
}

/* The first process forks the second, that one the third, and so on: none takes itself for an earlier one. */
static int generations(uint64_t *seen, unsigned count, unsigned most)
{
	pid_t child;

	seen[count] = rwk_this_process();
	for (unsigned i = 0; i < count; i++)
		if (seen[count] == seen[i] || !seen[count] || rwk_this_process() != seen[count])
			return 1;
	if (count + 1 == most)
		return 0;
	child = count % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* no handlers of fork run */
	if (!child)
		_exit(generations(seen, count + 1, most));
	return !ends_well(child) || rwk_this_process() != seen[count];
}

static void descendants(void **state)
{
	uint64_t seen[5];

	(void)state;
	assert_int_equal(generations(seen, 0, 5), 0);
}

/* A child that asks before its parent has. */
static void child_asks_first(void **state)
{
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(!rwk_this_process());
	assert_true(ends_well(child));
	assert_int_not_equal(rwk_this_process(), 0);
}

static void *ask(void *arg)
{
	*(uint64_t *)arg = rwk_this_process();
	return NULL;
}

/* Threads that ask at the same time are told the same. */
static void threads(void **state)
{
	enum { THREADS = 8 };
	uint64_t told[THREADS];
	pthread_t thread[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, &told[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(told[i], rwk_this_process());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory),
		cmocka_unit_test(child_asks_first),
		cmocka_unit_test(threads),
		cmocka_unit_test(descendants),
	};

	return cmocka_run_group_tests_name("base/this_process", tests, NULL, NULL);
}
