/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_pair.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(struct t_process *p, void (*run)(struct t_process *), int close_fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends the process, not just its test */
	alarm(3 * T_PATIENCE / 1000);
	close(close_fd);
	if (p->link)
		setenv("FI_ROPEWALK_LINK", p->link, 1);
	t_use_provider();
	run(p);
	exit(0);
}

static void check_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!(WIFEXITED(status) && !WEXITSTATUS(status)) && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		fail_msg("a process has ended with status %#x", status);
}

void t_two(const char *link, void (*first)(struct t_process *), void (*second)(struct t_process *), const void *arg)
{
	struct t_process p = {.link = link, .arg = arg};
	pid_t pid[2];
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	p.fd = fd[0];
	pid[0] = start(&p, first, fd[1]);
	p.fd = fd[1];
	pid[1] = start(&p, second, fd[0]);
	close(fd[0]);
	close(fd[1]);
	check_end(pid[0]);
	check_end(pid[1]);
}

void t_say(struct t_process *p, const void *buf, size_t len)
{
	assert_int_equal(send(p->fd, buf, len, MSG_NOSIGNAL), len);
}

void t_hear_driving(struct t_process *p, void *buf, size_t len, struct fid_cq *cq)
{
	int64_t end = t_now() + T_PATIENCE;
	struct pollfd in = {.fd = p->fd, .events = POLLIN};

	for (size_t at = 0; at < len;) {
		ssize_t n;

		if (poll(&in, 1, cq ? 0 : T_PATIENCE) == 1) {
			n = read(p->fd, (char *)buf + at, len - at);
			if (n <= 0)
				fail_msg("the other process has gone");
			at += (size_t)n;
		}
		t_drive(cq);
		if (t_now() > end)
			fail_msg("the other process does not answer");
	}
}

void t_hear(struct t_process *p, void *buf, size_t len)
{
	t_hear_driving(p, buf, len, NULL);
}

void t_meet(struct t_process *p, struct fid_cq *cq)
{
	char byte = 0;

	t_say(p, &byte, 1);
	t_hear_driving(p, &byte, 1, cq);
}

fi_addr_t t_greet(struct t_process *p, struct t_end *e)
{
	unsigned char name[sizeof(e->name)];

	t_say(p, e->name, sizeof(name));
	t_hear(p, name, sizeof(name));
	return t_insert(e, name);
}
