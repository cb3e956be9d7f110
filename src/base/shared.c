/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include "base/shared.h"

#include "base/log.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

int rwk_shared_allowed(const char *name, size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur)
		return 0;
	rwk_warn("%s: no memory that can be shared, of %zu bytes: this process may make files of %llu bytes; "
		 "raise `ulimit -f`",
		name, size, (unsigned long long)limit.rlim_cur);
	return -EFBIG;
}

int rwk_shared_make(const char *name, size_t size)
{
	int rc = rwk_shared_allowed(name, size), fd;

	if (rc)
		return rc;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)size))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/*
 * What the kernel says of a store that would end by a signal depends on why: ENOMEM, EFAULT at a limit on memory that
 * is promised (overcommit_memory 2) or on a file system's size, EHWPOISON.
 */
bool rwk_shared_populate(void *at, size_t size)
{
	uintptr_t from = (uintptr_t)at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	if (!madvise((void *)from, (uintptr_t)at + size - from, MADV_POPULATE_WRITE) || errno == EINVAL)
		return true;
	errno = ENOMEM;
	return false;
}
