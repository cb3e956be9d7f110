/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a host is known by. Which IPs are its own: with interfaces of the test's, and a count of how often the system is
 * asked. Which node it is.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "engine/job.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 30 /* s */

static struct sockaddr_in v4[2] = {{.sin_family = AF_INET}, {.sin_family = AF_INET}};
static struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
static struct sockaddr other = {.sa_family = AF_PACKET};
static struct ifaddrs interfaces[5];
static int asked, broken;

/* These two stand before the C library's. */
int getifaddrs(struct ifaddrs **all)
{
	asked++;
	*all = interfaces;
	return broken ? -1 : 0;
}

void freeifaddrs(struct ifaddrs *all)
{
	assert_ptr_equal(all, interfaces);
}

static const char *host;  /* NULL: the boot id can be read */
static uint32_t child_is; /* when that is next looked for, a child is forked, which is to be on that node; 0: none */
static pid_t child;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

/* In the midst of loading. */
static void fork_here(void)
{
	struct rwk_port_attr attr = {0};
	uint32_t node = child_is;

	child_is = 0;
	child = node ? fork() : -1;
	if (child)
		return;
	alarm(PATIENCE);
	if (rwk_job_load())
		_exit(1);
	rwk_job_describe(&attr);
	rwk_job_unload();
	_exit(attr.address.node == node ? 0 : 2);
}

/* The library's. */
int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list rest;

	if (host && !strcmp(path, "/proc/sys/kernel/random/boot_id")) {
		fork_here();
		errno = EACCES;
		return -1;
	}
	va_start(rest, flags);
	mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
	va_end(rest);
	return __real_open(path, flags, mode);
}

int __wrap_gethostname(char *name, size_t len);

int __wrap_gethostname(char *name, size_t len)
{
	return snprintf(name, len, "%s", host ? host : "any") < 0;
}

static int set_up(void **state)
{
	struct sockaddr *addr[5] = {&other, (struct sockaddr *)(void *)&v4[0], NULL, (struct sockaddr *)(void *)&v4[1],
		(struct sockaddr *)(void *)&v6};

	(void)state;
	for (int i = 0; i < 5; i++) {
		interfaces[i].ifa_addr = addr[i];
		interfaces[i].ifa_next = i < 4 ? &interfaces[i + 1] : NULL;
	}
	inet_pton(AF_INET, "192.0.2.1", &v4[0].sin_addr);
	inet_pton(AF_INET, "198.51.100.7", &v4[1].sin_addr);
	inet_pton(AF_INET6, "2001:db8::5", &v6.sin6_addr);
	return 0;
}

static bool is_local(const char *text)
{
	uint8_t ip[16];

	assert_int_equal(inet_pton(AF_INET6, text, ip), 1);
	return rwk_ip_is_local(ip);
}

/* Loopback always, and what the interfaces have, in both families; nothing else. */
static void own_and_foreign(void **state)
{
	(void)state;
	assert_true(is_local("::ffff:127.0.0.1"));
	assert_true(is_local("::ffff:127.9.9.9"));
	assert_true(is_local("::1"));
	assert_true(is_local("::ffff:192.0.2.1"));
	assert_true(is_local("::ffff:198.51.100.7"));
	assert_true(is_local("2001:db8::5"));
	assert_false(is_local("::ffff:192.0.2.2"));
	assert_false(is_local("2001:db8::6"));
	assert_false(is_local("::192.0.2.1"));
	assert_false(is_local("::ffff:0.0.0.0"));
}

/* The system is asked once a second at most, however many addresses there are. */
static void seldom_asked(void **state)
{
	time_t begin = time(NULL);

	(void)state;
	asked = 0;
	for (int i = 0; i < 100000; i++)
		assert_true(is_local("::ffff:192.0.2.1"));
	assert_true(asked <= time(NULL) - begin + 2);
}

/* An IP that the host gets later is known soon, one that it has lost forgotten, and a failure changes nothing. */
static void changes(void **state)
{
	(void)state;
	broken = 1;
	asked = 0;
	for (int i = 0; i < 100 && !asked; i++, usleep(100000))
		assert_true(is_local("::ffff:192.0.2.1"));
	assert_true(asked);
	assert_true(is_local("::ffff:192.0.2.1"));
	broken = 0;
	inet_pton(AF_INET, "203.0.113.9", &v4[0].sin_addr);
	for (int i = 0; i < 100 && !is_local("::ffff:203.0.113.9"); i++)
		usleep(100000);
	assert_true(is_local("::ffff:203.0.113.9"));
	assert_false(is_local("::ffff:192.0.2.1"));
	assert_true(is_local("::ffff:198.51.100.7"));
}

static uint32_t node_of(const char *name)
{
	struct rwk_port_attr attr = {0};

	host = name;
	assert_int_equal(rwk_job_load(), 0);
	rwk_job_describe(&attr);
	rwk_job_unload();
	host = NULL;
	return attr.address.node;
}

/* Where nothing but the network namespace's inode could tell hosts apart, their names do. */
static void without_boot_id(void **state)
{
	(void)state;
	assert_int_equal(node_of("alpha"), node_of("alpha"));
	assert_int_not_equal(node_of("alpha"), node_of("beta"));
	assert_int_equal(node_of(NULL), node_of(NULL));
	assert_int_not_equal(node_of("alpha"), node_of(NULL));
	assert_int_not_equal(node_of("alpha"), 0);
}

/* A child that is forked while that is looked for, with a lock held that nobody has there, looks for it itself. */
static void forked_meanwhile(void **state)
{
	uint32_t node = node_of("beta");
	int status;

	(void)state;
	assert_int_equal(rwk_job_watch_forks(), 0);
	assert_int_not_equal(node_of("alpha"), node);
	child_is = node;
	assert_int_equal(node_of("beta"), node);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_and_foreign),
		cmocka_unit_test(seldom_asked),
		cmocka_unit_test(changes),
		cmocka_unit_test(without_boot_id),
		cmocka_unit_test(forked_meanwhile),
	};

	return cmocka_run_group_tests_name("engine/own_ips", tests, set_up, NULL);
}
