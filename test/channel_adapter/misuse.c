/* SPDX-License-Identifier: BSD-3-Clause */
#include "rwk_test.h"

#include "channel_adapter/misuse.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a process says that does it, and by what it ends. */
static int end_of(void (*call)(void), char *said, size_t size)
{
	int ends[2], status;
	ssize_t len;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		call();
		_exit(0);
	}
	close(ends[1]);
	len = read(ends[0], said, size - 1);
	said[len > 0 ? len : 0] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

void misuses_are_caught(const struct misuse *cases, unsigned count)
{
	char said[1000];

	for (unsigned i = 0; i < count; i++) {
		int status = end_of(cases[i].call, said, sizeof(said));

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, cases[i].name))
			fail_msg("case %u (%s): status %#x, it said: %s", i, cases[i].name, (unsigned)status, said);
	}
}
