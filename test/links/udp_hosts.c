/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* unshare, setns */
#include "udp_hosts.h"

#include "rwk_test.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

static int host_fd[UDP_HOSTS];

int udp_hosts_make(void)
{
	for (int i = 0; i < UDP_HOSTS; i++) {
		if (unshare(CLONE_NEWNET))
			return -errno;
		host_fd[i] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		if (host_fd[i] < 0)
			return -errno;
	}
	for (int i = 0; i < UDP_HOSTS; i++)
		udp_host_run(i, "ip link set lo up");
	udp_host_enter(0);
	return 0;
}

void udp_host_enter(int host)
{
	assert_int_equal(setns(host_fd[host], CLONE_NEWNET), 0);
}

static int run(int host, const char *command, va_list args)
{
	char line[1024];
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), code;

	vsnprintf(line, sizeof(line), command, args);
	udp_host_enter(host);
	code = system(line);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(here);
	if (code)
		print_message("'%s' in host %d: exit %d\n", line, host, code);
	return code;
}

void udp_host_run(int host, const char *command, ...)
{
	va_list args;

	va_start(args, command);
	assert_int_equal(run(host, command, args), 0);
	va_end(args);
}

void udp_host_cable(int from, const char *name, int to, const char *far, int mtu)
{
	udp_host_run(from, "ip link add %s mtu %d type veth peer name %s mtu %d netns /proc/%d/fd/%d", name, mtu, far,
		mtu, (int)getpid(), host_fd[to]);
	udp_host_run(from, "ip link set %s up", name);
	udp_host_run(to, "ip link set %s up", far);
}
