/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that processes share by a descriptor: what it is, and what the limit on files means for it. */
#define _GNU_SOURCE /* F_ADD_SEALS */
#include "rwk_test.h"

#include "base/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 8192 };

/* It has the size that was asked for, can be sealed, and does not go on to another program. */
static void made(void **state)
{
	int fd = rwk_shared_make("test", SIZE);
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(ftruncate(fd, SIZE / 2), -1);
	close(fd);
}

/* Memory is put where there is some to be had; where a store would end by a signal is none. */
static void populated(void **state)
{
	int fd = rwk_shared_make("test", SIZE);
	char *at = mmap(NULL, (size_t)2 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_true(rwk_shared_populate(at, SIZE));
	for (size_t from = SIZE; from < SIZE + 2; from++) { /* the begin of a page, or not */
		errno = 0;
		assert_false(rwk_shared_populate(at + from, SIZE / 2));
		assert_int_equal(errno, ENOMEM);
	}
	munmap(at, (size_t)2 * SIZE);
	close(fd);
}

/* More than a file may have is refused, where the kernel would end the process; up to that it is had. */
static void limited(void **state)
{
	struct rlimit before, low;
	int more, most;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = before;
	low.rlim_cur = SIZE;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	more = rwk_shared_make("test", SIZE + 1);
	most = rwk_shared_make("test", SIZE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(more, -EFBIG);
	assert_true(most >= 0);
	close(most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made),
		cmocka_unit_test(populated),
		cmocka_unit_test(limited),
	};

	return cmocka_run_group_tests_name("base/shared", tests, NULL, NULL);
}
