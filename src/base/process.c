/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads /proc/<pid>/stat: 0 and both outputs; -ESRCH: no such process; another errno: no answer to be had. */
static int read_stat(pid_t pid, char *state, uint64_t *start)
{
	char path[40], text[1024], *p;
	unsigned long long v;
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
	/* The name in parentheses may hold anything; the fields begin after it: 3 is the state, 22 the start. */
	p = strrchr(text, ')');
	if (!p || sscanf(p, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", state,
			  &v) != 2)
		return -EAGAIN;
	*start = v;
	return 0;
}

uint64_t rwk_process_start(pid_t pid)
{
	uint64_t start;
	char state;

	return read_stat(pid, &state, &start) ? 0 : start;
}

bool rwk_process_is_alive(pid_t pid, uint64_t start)
{
	uint64_t began;
	char state;
	int rc = read_stat(pid, &state, &began);

	if (rc)
		return rc != -ESRCH;
	return state != 'Z' && state != 'X' && (!start || began == start);
}
