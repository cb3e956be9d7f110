/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of captures: their names, who shares them, who may not, and what is in them after a death. */
#define _GNU_SOURCE
#include "packet/captured.h"

#include "base/log.h"
#include "transport.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Names: the parts that are replaced, and those that are not. */
static void names(void **state)
{
	static const struct {
		const char *pattern;
		uint32_t rank;
		const char *name;
	} cases[] = {
		{"a", 7, "a"},
		{"a.%r", 7, "a.7"},
		{"%r%r", 12, "1212"},
		{"%r", RWK_ADDR_NO_RANK, "none"},
		{"100%%r", 7, "100%r"},
		{"%x%", 7, "%x%"},
	};
	char pattern[PATH_MAX + 100], name[PATH_MAX];
	struct rwk_capture *c;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(pattern, sizeof(pattern), "%s/%s", folder, cases[i].pattern);
		snprintf(name, sizeof(name), "%s/%s", folder, cases[i].name);
		c = rwk_capture_open(pattern, cases[i].rank);
		assert_non_null(c);
		rwk_capture_close(c);
		assert_int_equal(unlink(name), 0);
	}
	snprintf(pattern, sizeof(pattern), "%s/%%p.%%r", folder);
	snprintf(name, sizeof(name), "%s/%d.3", folder, (int)getpid());
	c = rwk_capture_open(pattern, 3);
	rwk_capture_close(c);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(warnings, 0);
	memset(pattern, 'a', sizeof(pattern) - 1);
	pattern[PATH_MAX - 1] = 0;
	pattern[PATH_MAX - 3] = '%';
	pattern[PATH_MAX - 2] = 'p';
	assert_null(rwk_capture_open(pattern, 0));
	assert_int_equal(warnings, 1);
}

/* Nothing asked for, nothing done. */
static void nothing(void **state)
{
	(void)state;
	assert_null(rwk_capture_open(NULL, 0));
	assert_null(rwk_capture_open("", 0));
	write_packet(NULL, 0, 8, T0);
	rwk_capture_close(NULL);
	assert_int_equal(warnings, 0);
}

/* Ports of a process share the file; the last one closes it. What was there before is gone. */
static void shared(void **state)
{
	struct rwk_capture *a = rwk_capture_open(path, 0), *b;
	struct stat st;
	struct file *f;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600); /* it has the users' data */
	for (uint32_t i = 0; i < 100; i++)
		write_packet(a, i, 4000, T0);
	rwk_capture_close(a);
	a = rwk_capture_open(path, 0);
	b = rwk_capture_open(path, 0);
	assert_ptr_equal(a, b);
	write_packet(a, 1, 8, T0);
	rwk_capture_close(a);
	write_packet(b, 2, 8, T0);
	rwk_capture_close(b);
	f = parse(path);
	assert_int_equal(f->count, 2);
	assert_int_equal(number_of(&f->record[0]), 1);
	assert_int_equal(number_of(&f->record[1]), 2);
	forget(f);
	assert_int_equal(warnings, 0);
}

static void *write_many(void *arg)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);

	for (uint32_t i = 0; i < 2000; i++)
		write_packet(c, i, 100, T0);
	rwk_capture_close(c);
	return arg;
}

/* Threads write at the same time: every packet is there, whole. */
static void threads(void **state)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);
	unsigned seen[2000] = {0};
	pthread_t thread[4];
	struct file *f;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_many, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	rwk_capture_close(c);
	f = parse(path);
	assert_int_equal(f->count, 8000);
	for (unsigned i = 0; i < f->count; i++) {
		assert_true(number_of(&f->record[i]) < 2000);
		seen[number_of(&f->record[i])]++;
	}
	for (int i = 0; i < 2000; i++)
		assert_int_equal(seen[i], 4);
	forget(f);
}

/* Places that cannot be written to: said once, with the reason, and no capture. */
static void refused(void **state)
{
	char name[sizeof(folder) + 30], fifo[sizeof(folder) + 30];
	const struct {
		const char *name, *why;
	} cases[] = {
		{name, "No such file"},
		{folder, "Is a directory"},
		{fifo, "No such device or address"},
	};
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "%s/absent/file", folder);
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (size_t i = 0; i < 3; i++) {
		warnings = 0;
		assert_null(rwk_capture_open(cases[i].name, 0));
		assert_int_equal(warnings, 1);
		assert_non_null(strstr(warning, "FI_ROPEWALK_PCAP"));
		assert_non_null(strstr(warning, cases[i].name));
		assert_non_null(strstr(warning, cases[i].why));
	}
	fd = open(fifo, O_RDONLY | O_NONBLOCK); /* a reader, who may go away */
	assert_null(rwk_capture_open(fifo, 0));
	assert_int_equal(warnings, 2);
	assert_non_null(strstr(warning, "neither a file nor a character device"));
	close(fd);
	unlink(fifo);
}

static struct rwk_capture *inherited;

static void meddle(void)
{
	write_packet(inherited, 99, 8, T0);
	write_packet(inherited, 99, 8, T0 + 9 * SECOND);
	if (rwk_capture_open(path, 0) || warnings != 1 || !strstr(warning, "another process"))
		_exit(1);
	rwk_capture_close(inherited);
	exit(0); /* with what exit does to buffers */
}

/* A child of fork adds nothing to its parent's file, neither of its own nor of what was buffered. */
static void forked(void **state)
{
	struct file *f;

	(void)state;
	inherited = rwk_capture_open(path, 0);
	write_packet(inherited, 1, 8, T0);
	write_packet(inherited, 2, 8, T0);
	assert_int_equal(in_child(meddle), 0);
	write_packet(inherited, 3, 8, T0);
	rwk_capture_close(inherited);
	f = parse(path);
	assert_int_equal(f->count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(number_of(&f->record[i]), i + 1);
	forget(f);
	assert_int_equal(warnings, 0);
}

static void be_killed(void)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);

	write_packet(c, 1, 8, T0);
	write_packet(c, 2, 8, T0 + SECOND / 2);
	write_packet(c, 3, 8, T0 + SECOND + 1);
	kill(getpid(), SIGKILL);
}

/* A process that is killed takes a second of packets with it, not more. */
static void killed(void **state)
{
	int status = in_child(be_killed);
	struct file *f;

	(void)state;
	assert_true(WIFSIGNALED(status));
	f = parse(path);
	assert_int_equal(f->count, 2);
	assert_int_equal(number_of(&f->record[1]), 2);
	forget(f);
}

static sem_t refused_now, go_on;

static void wait_in_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
	sem_post(&refused_now);
	sem_wait(&go_on);
}

static void *open_in_vain(void *nothing_more)
{
	(void)nothing_more;
	return rwk_capture_open("/dev/null/none", 0);
}

/* A child of fork opens a capture, though another thread was just opening one (with none of the C library's locks). */
static void forked_meanwhile(void **state)
{
	pthread_t thread;
	void *none;
	int status;
	pid_t pid;

	(void)state;
	rwk_log_set_sink(wait_in_warning);
	assert_int_equal(sem_init(&refused_now, 0, 0) | sem_init(&go_on, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, open_in_vain, NULL), 0);
	assert_int_equal(sem_wait(&refused_now), 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(rwk_capture_open(path, 0) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sem_post(&go_on);
	assert_int_equal(pthread_join(thread, &none), 0);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURED(names),
		CAPTURED(nothing),
		CAPTURED(shared),
		CAPTURED(threads),
		CAPTURED(refused),
		CAPTURED(forked),
		CAPTURED(forked_meanwhile),
		CAPTURED(killed),
	};

	return cmocka_run_group_tests_name("packet/capture_file", tests, captured_open, captured_close);
}
