/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures where there is no room: that is said once, what is in the file by then can be read, and the process goes
 * on.
 */
#define _GNU_SOURCE
#include "packet/captured.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A device that is always full: the first write says so, later packets do nothing. */
static void full_device(void **state)
{
	struct rwk_capture *c = rwk_capture_open("/dev/full", 0);

	(void)state;
	assert_non_null(c);
	for (uint32_t i = 0; i < 1000; i++)
		write_packet(c, i, 4000, T0);
	rwk_capture_close(c);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, "/dev/full: No space left on device; the capture ends here"));
}

#define DISK 300000 /* bytes, of 1000 packets of 1000 bytes */

static void check_full(const char *name)
{
	struct file *f = parse(name);

	assert_int_equal(warnings, 1);
	assert_true(f->len <= DISK + 4096 && f->count > 50 && f->count < 1000);
	for (unsigned i = 0; i < f->count; i++) {
		assert_int_equal(number_of(&f->record[i]), i);
		assert_int_equal(f->record[i].kept, 1028);
	}
	forget(f);
}

static void fill(const char *name)
{
	struct rwk_capture *c = rwk_capture_open(name, 0);

	for (uint32_t i = 0; i < 1000; i++)
		write_packet(c, i, 1000, T0);
	rwk_capture_close(c);
}

#define CANNOT 77

static void fill_disk(void)
{
	char size[40];

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(CANNOT);
	snprintf(size, sizeof(size), "size=%d", DISK);
	if (mount("rwk-test", folder, "tmpfs", 0, size))
		_exit(CANNOT);
	fill(path);
	check_full(path);
}

/* A disk becomes full in the middle of a packet: the file ends with the last whole one before. */
static void full_disk(void **state)
{
	int status = in_child(fill_disk);

	(void)state;
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
		print_message("no right to mount a disk: only the other tests of full ones have run\n");
		return;
	}
	assert_int_equal(status, 0);
}

static void reach_limit(void)
{
	struct rlimit limit = {DISK, DISK};

	setrlimit(RLIMIT_FSIZE, &limit);
	fill(path);
	check_full(path);
}

/* A file that reaches the limit of the process's files (ulimit -f) ends the capture and not the process. */
static void file_limit(void **state)
{
	(void)state;
	assert_int_equal(in_child(reach_limit), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURED(full_device),
		CAPTURED(full_disk),
		CAPTURED(file_limit),
	};

	return cmocka_run_group_tests_name("packet/capture_full", tests, captured_open, captured_close);
}
