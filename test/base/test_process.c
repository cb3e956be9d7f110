/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be seen of other processes: that they have ended, that they are stopped, where a tracer has stopped them,
 * which threads sleep. */
#define _GNU_SOURCE /* process_vm_readv */
#include "rwk_test.h"

#include "base/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { PATIENCE = 20000 }; /* milliseconds */

static void wait_stopped(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
}

static void end(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The first thread's state, as /proc has it. */
static char state_of_first(pid_t child)
{
	char path[40], text[512] = "";
	const char *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	p = strrchr(text, ')');
	assert_non_null(p);
	return p[2];
}

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A process whose first thread has ended goes on with the others, and ends with the last. */
static void first_thread_ended(void **state)
{
	pid_t child = fork();
	siginfo_t info;
	uint64_t start;

	(void)state;
	if (!child) {
		pthread_t other;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&other, NULL, stay, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	assert_true(child > 0);
	start = rwk_process_start(child);
	for (int i = 0; i < PATIENCE && state_of_first(child) != 'Z'; i++)
		usleep(1000);
	assert_int_equal(state_of_first(child), 'Z');
	assert_true(rwk_process_is_alive(child, start));
	assert_true(rwk_process_is_alive(child, 0));
	assert_false(rwk_process_is_alive(child, start + 1));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(state_of_first(child), 'Z');
	assert_false(rwk_process_is_alive(child, start));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(rwk_process_is_alive(child, start));
}

/* In a child whose clock since the boot is ahead of ours: 0, if it sees that we began when we did. */
static int look_from_ahead(pid_t pid, uint64_t start)
{
	struct timespec t;

	if (clock_gettime(CLOCK_BOOTTIME, &t) || t.tv_sec < 1000000)
		return 77;
	if (rwk_process_start(pid) != start)
		return 1;
	if (!rwk_process_is_alive(pid, start) || rwk_process_is_alive(pid, start + 1))
		return 2;
	return 0;
}

/* Forks it; the status of its end. */
static int go_ahead(pid_t pid, uint64_t start)
{
	static const char ahead[] = "boottime 1000000 0\n";
	pid_t child;
	int status, fd;

	if (unshare(CLONE_NEWTIME) && unshare(CLONE_NEWUSER | CLONE_NEWTIME))
		return 77;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, ahead, sizeof(ahead) - 1) != sizeof(ahead) - 1)
		return 77;
	/* /proc has its children's offsets now, not its own. */
	if (!rwk_process_is_alive(pid, start))
		return 3;
	child = fork();
	if (!child)
		_exit(look_from_ahead(pid, start));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

/* Who is in another time namespace sees another start in /proc. */
static void another_clock(void **state)
{
	uint64_t start = rwk_process_start(getpid());
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(go_ahead(getppid(), start));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool becomes_stopped(pid_t child)
{
	for (int i = 0; i < PATIENCE && !rwk_process_is_stopped(child); i++)
		usleep(1000);
	return rwk_process_is_stopped(child);
}

static void stopped(void **state)
{
	pid_t child = fork();

	(void)state;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	assert_false(rwk_process_is_stopped(child));
	assert_int_equal(kill(child, SIGSTOP), 0);
	wait_stopped(child);
	assert_true(becomes_stopped(child));
	end(child);
	assert_false(rwk_process_is_stopped(child));
}

/* Copies from its parent, again and again. */
static void copy_for_ever(void)
{
	unsigned char byte = 0;
	struct iovec here = {&byte, 1};

	for (;;)
		process_vm_readv(getppid(), &here, 1, &here, 1, 0);
}

/* The call that it is about to make or has just made; -1: none. */
static long at_the_door_of(pid_t child)
{
	struct __ptrace_syscall_info info;

	if (ptrace((enum __ptrace_request)PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof(info), &info) <= 0)
		return -2; /* not to be had here */
	return info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long)info.entry.nr : -1;
}

/* A tracer can stop a thread that has begun to make a copy, and will make it: that is not stopped. */
static void stopped_at_the_door(void **state)
{
	pid_t child = fork();
	bool copy = false, other = false;

	(void)state;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		copy_for_ever();
	}
	wait_stopped(child);
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD), 0);
	for (int i = 0; i < 100 && !(copy && other); i++) {
		long number;

		assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
		wait_stopped(child);
		number = at_the_door_of(child);
		if (number == -2) {
			end(child);
			skip();
		}
		if (number == SYS_process_vm_readv) {
			copy = true;
			assert_false(rwk_process_is_stopped(child));
		} else if (number == SYS_getppid) {
			other = true;
			assert_true(becomes_stopped(child));
		}
	}
	assert_true(copy && other);
	end(child);
}

/* Threads, in the order in which they were made: one is busy, one sleeps. */
static _Atomic pid_t busy, asleep;
static _Atomic bool over;
static sem_t wake;

static void *be_busy(void *arg)
{
	busy = (pid_t)syscall(SYS_gettid);
	while (!over)
		continue;
	return arg;
}

static void *sleep_on(void *arg)
{
	asleep = (pid_t)syscall(SYS_gettid);
	while (sem_wait(&wake))
		continue;
	return arg;
}

static void idle_thread(void **state)
{
	pthread_t thread[2];

	(void)state;
	assert_int_equal(rwk_process_idle_thread(getpid()), 0);
	assert_int_equal(sem_init(&wake, 0, 0), 0);
	assert_int_equal(pthread_create(&thread[0], NULL, be_busy, NULL), 0);
	while (!busy)
		usleep(1000);
	assert_int_equal(pthread_create(&thread[1], NULL, sleep_on, NULL), 0);
	while (!asleep)
		usleep(1000);
	for (int i = 0; i < PATIENCE && rwk_process_idle_thread(getpid()) != asleep; i++)
		usleep(1000);
	assert_int_equal(rwk_process_idle_thread(getpid()), asleep);
	over = true;
	sem_post(&wake);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(rwk_process_idle_thread(getpid()), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_thread_ended),
		cmocka_unit_test(another_clock),
		cmocka_unit_test(stopped),
		cmocka_unit_test(stopped_at_the_door),
		cmocka_unit_test(idle_thread),
	};

	return cmocka_run_group_tests_name("base/process", tests, NULL, NULL);
}
