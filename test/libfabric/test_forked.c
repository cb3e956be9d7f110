/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Children that are forked in the midst of a call, with a lock held that nobody has in the child: they end by exit, and
 * have a fabric of their own. The calls of the C library that fork here are those which the provider makes with such a
 * lock. What a child leaves is no leak: it is what its parent had begun.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "fi_test.h"

#include <dlfcn.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static struct t_domain domain, own;
static struct t_end end, ours;

static void (*in_child)(void); /* does that in a child of the next call that forks; NULL: it has, or is not to */
static pid_t pid;

__attribute__((visibility("default"))) int getifaddrs(struct ifaddrs **all);
__attribute__((visibility("default"))) int pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

static void fork_here(void)
{
	void (*then)(void) = in_child;

	if (!then)
		return;
	in_child = NULL;
	pid = fork();
	if (pid)
		return;
	alarm(T_PATIENCE / 1000);
	then();
	_exit(0);
}

/* These two stand before the C library's. */
int getifaddrs(struct ifaddrs **all)
{
	static int (*next)(struct ifaddrs **all);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "getifaddrs");
	fork_here();
	return next(all);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static int (*next)(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	fork_here();
	return next(thread, attr, start, arg);
}

static void await_child(void)
{
	int status;

	assert_null(in_child);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* libfabric's own end runs here too; of a sanitizer, which would take what is left for leaks, nothing. */
static void end_by_exit(void)
{
#ifdef __SANITIZE_ADDRESS__
	_exit(0);
#else
	exit(0);
#endif
}

/* The host's own IPs are asked for once a second. */
static void insert_until_forked(struct fid_av *av)
{
	struct sockaddr_in stranger = {
		.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(0x0a010203)};
	fi_addr_t number;

	while (in_child) {
		assert_int_equal(fi_av_insert(av, &stranger, 1, &number, 0, NULL), 1);
		assert_int_equal(fi_av_remove(av, &number, 1, 0), 0);
	}
}

static void while_ips_are_looked_for(void (*then)(void))
{
	t_domain_open(&domain, FI_SOCKADDR_IN, FI_THREAD_SAFE);
	t_end_open(&end, &domain, NULL);
	in_child = then;
	insert_until_forked(end.av);
	await_child();
	t_end_close(&end);
	t_domain_close(&domain);
}

static void ends(void **state)
{
	(void)state;
	while_ips_are_looked_for(end_by_exit);
}

static void open_domain(struct t_domain *d, struct t_end *e)
{
	struct fi_info *hints = t_hints();

	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->addr_format = FI_SOCKADDR_IN;
	t_domain_open_with(d, hints);
	t_end_open(e, d, NULL);
}

/* Its own progress threads, too: one goes with its domain, one with the process. */
static void has_its_own(void)
{
#ifndef __SANITIZE_THREAD__ /* it ends a process that starts threads after such a fork */
	open_domain(&own, &ours);
	t_insert(&ours, ours.name);
	t_end_close(&ours);
	t_domain_close(&own);
	open_domain(&own, &ours);
#endif
	end_by_exit();
}

static void has_its_own_meanwhile(void **state)
{
	(void)state;
	while_ips_are_looked_for(has_its_own);
	in_child = has_its_own;
	open_domain(&domain, &end);
	await_child();
	t_end_close(&end);
	t_domain_close(&domain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),
		cmocka_unit_test(has_its_own_meanwhile),
	};

	t_use_provider();
	return cmocka_run_group_tests_name("libfabric/forked", tests, NULL, NULL);
}
