/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* syscall */
#include "full_sets.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

bool sets_are_full;

__attribute__((visibility("default"))) int epoll_ctl(int set, int what, int fd, struct epoll_event *e)
{
	if (!sets_are_full || what != EPOLL_CTL_ADD)
		return (int)syscall(SYS_epoll_ctl, set, what, fd, e);
	errno = ENOSPC;
	return -1;
}
