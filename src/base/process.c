/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include "base/cancel.h"
#include "base/log.h"
#include "base/param.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct stat_line {
	char state;
	long threads; /* those that have ended and not been waited for among them */
	uint64_t start;
};

/* Reads /proc/<pid>/stat: 0 and what it says; -ESRCH: no such process; another errno: no answer to be had. */
static int read_stat(pid_t pid, struct stat_line *line)
{
	char path[40], text[1024], *p;
	unsigned long long start;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT && kill(pid, 0) && errno == ESRCH ? -ESRCH : -EAGAIN;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return n < 0 && errno == ESRCH ? -ESRCH : -EAGAIN;
	text[n] = 0;
	/* The name in parentheses may hold anything. 3 is the state, 20 the number of threads, 22 the start. */
	p = strrchr(text, ')');
	if (!p || sscanf(p, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
			  &line->state, &line->threads, &start) != 3)
		return -EAGAIN;
	line->start = start;
	return 0;
}

/* Is the time namespace that /proc has the offsets of, that of our children, our own? Yes, where there are none. */
static bool own_offsets(void)
{
	char own[64], children[64];
	ssize_t n = readlink("/proc/self/ns/time", own, sizeof(own)),
		m = readlink("/proc/self/ns/time_for_children", children, sizeof(children));

	return n == m && (n < 0 || !memcmp(own, children, (size_t)n));
}

/*
 * By how much /proc shows us processes begin later than by the machine's own clock, in ticks. False: not to be told,
 * or no whole number.
 */
static bool shift_of_start(int64_t *ticks)
{
	long long seconds = 0, ns = 0, tick = 1000000000 / sysconf(_SC_CLK_TCK);
	char line[128];
	FILE *f;

	if (!own_offsets())
		return false;
	f = fopen("/proc/self/timens_offsets", "re");
	if (!f && errno != ENOENT)
		return false;
	while (f && fgets(line, sizeof(line), f) && sscanf(line, " boottime %lld %lld", &seconds, &ns) != 2)
		;
	if (f)
		fclose(f);
	*ticks = (seconds * 1000000000 + ns) / tick;
	return ns % tick == 0;
}

uint64_t rwk_process_start(pid_t pid)
{
	struct stat_line line;
	int64_t shift;

	return read_stat(pid, &line) || !shift_of_start(&shift) ? 0 : line.start - (uint64_t)shift;
}

bool rwk_process_is_alive(pid_t pid, uint64_t start)
{
	struct stat_line line;
	int rc = read_stat(pid, &line);
	int64_t shift;

	if (rc)
		return rc != -ESRCH;
	/* The state is the first thread's, which may end before the others. */
	if ((line.state == 'Z' || line.state == 'X') && line.threads <= 1)
		return false;
	return !start || line.start == start || !shift_of_start(&shift) || line.start - (uint64_t)shift == start;
}

/* Reads what /proc has about a thread under that name, as a string; false: there is none, or no answer. */
static bool read_of_thread(pid_t pid, const char *thread, const char *name, char text[512])
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", (int)pid, thread, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, 511, f);
	fclose(f);
	text[n] = 0;
	return n > 0;
}

/* The state of a thread as /proc has it; 0: there is none, or no answer. */
static char state_of(pid_t pid, const char *thread)
{
	char text[512];
	const char *p;

	if (!read_of_thread(pid, thread, "stat", text))
		return 0;
	p = strrchr(text, ')'); /* the name before it may hold anything */
	return p && p[1] ? p[2] : 0;
}

/* Stopped by a tracer on its way into a copy from or to another process: that will be made when it goes on. */
static bool enters_copy(pid_t pid, const char *thread)
{
	char text[512];
	long number;

	if (!read_of_thread(pid, thread, "syscall", text))
		return false;
	number = strtol(text, NULL, 10); /* or words, if it is in no call */
	return number == SYS_process_vm_readv || number == SYS_process_vm_writev;
}

bool rwk_process_is_stopped(pid_t pid)
{
	char path[40];
	struct dirent *d;
	unsigned stopped = 0;
	bool all = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (all && (d = readdir(dir))) {
		char state = d->d_name[0] == '.' ? 'Z' : state_of(pid, d->d_name);

		stopped += state == 'T' || state == 't';
		all = state == 'T' || (state == 't' && !enters_copy(pid, d->d_name)) || state == 'Z' || state == 'X';
	}
	closedir(dir);
	return all && stopped;
}

pid_t rwk_process_idle_thread(pid_t pid)
{
	char path[40];
	struct dirent *d;
	pid_t idle = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (!idle && (d = readdir(dir))) { /* in the order of their age */
		pid_t thread = (pid_t)strtol(d->d_name, NULL, 10);

		if (thread > 0 && thread != pid && state_of(pid, d->d_name) == 'S')
			idle = thread;
	}
	closedir(dir);
	return idle;
}

static void let_in(void)
{
	char scope = 0;
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, &scope, 1) == 1 && scope == '1' && !prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0))
		rwk_info("Yama's ptrace_scope is 1: allowed processes of this user to copy from this one "
			 "(FI_ROPEWALK_PTRACER=no forbids it)");
	close(fd);
}

void rwk_process_let_in(void)
{
	int before;

	if (!rwk_params.ptracer || rwk_params.cma == RWK_OFF)
		return;
	before = rwk_cancel_hold_off();
	let_in();
	rwk_cancel_as_before(before);
}
