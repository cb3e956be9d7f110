/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain of a job on a node: one makes it, the others join, the last one out leaves nothing. Who is not of it, a
 * forked child say, has nothing of it. All members are real processes.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "members.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts so many at once; all join one domain, which one of them makes. */
static void join_at_once(struct member *m, unsigned count, const struct plan *plan)
{
	unsigned made = 0;

	for (unsigned i = 0; i < count; i++)
		member_start(&m[i], plan);
	for (unsigned i = 0; i < count; i++) {
		assert_true(member_hear(&m[i]));
		assert_int_equal(m[i].told.rc, 0);
		assert_true(same_domain(&m[i].told, &m[0].told));
		made += m[i].told.made;
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(m[i].told.srqn, m[j].told.srqn);
	}
	assert_int_equal(made, 1);
	assert_int_equal(holders_of(&m[0].told), count);
}

/* One makes it and seven join; the last one out leaves nothing; the next one makes another. */
static void eight(void **state)
{
	const struct plan plan = {.key = 1};
	struct member m[8], next;

	(void)state;
	join_at_once(m, 8, &plan);
	for (int i = 0; i < 7; i++)
		member_leave(&m[i]);
	assert_true(name_is_taken(1, geteuid()));
	assert_int_equal(holders_of(&m[7].told), 1);
	member_leave(&m[7]);
	assert_nothing_left(&m[0].told, 1);

	member_join(&next, &plan);
	assert_true(next.told.made);
	assert_true(next.told.id != m[0].told.id);
	member_leave(&next);
	assert_nothing_left(&next.told, 1);
}

/* More than have a place at the door at a time. */
static void forty(void **state)
{
	const struct plan plan = {.key = 2};
	struct member m[40];

	(void)state;
	join_at_once(m, 40, &plan);
	for (int i = 0; i < 40; i++)
		member_leave(&m[i]);
	assert_nothing_left(&m[0].told, 2);
}

/* The maker is killed: any other member lets in. All are killed: nothing is left either. */
static void maker_killed(void **state)
{
	const struct plan plan = {.key = 3};
	struct member m[4];

	(void)state;
	member_join(&m[0], &plan);
	member_join(&m[1], &plan);
	assert_true(m[0].told.made && !m[1].told.made);
	member_kill(&m[0]);
	member_join(&m[2], &plan);
	member_kill(&m[1]);
	member_join(&m[3], &plan);
	assert_true(same_domain(&m[2].told, &m[1].told) && same_domain(&m[3].told, &m[1].told));
	member_kill(&m[2]);
	member_kill(&m[3]);
	assert_nothing_left(&m[3].told, 3);
}

/* Two jobs of a node never meet. */
static void two_jobs(void **state)
{
	const struct plan plan[2] = {{.key = 4}, {.key = 5}};
	struct member m[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		member_join(&m[i], &plan[i % 2]);
	assert_true(same_domain(&m[0].told, &m[2].told) && same_domain(&m[1].told, &m[3].told));
	assert_true(m[0].told.id != m[1].told.id && m[0].told.cookie != m[1].told.cookie);
	assert_true(m[0].told.inode != m[1].told.inode);
	for (int i = 0; i < 4; i++)
		member_leave(&m[i]);
}

/* Nor do two users, with the same key. */
static void two_users(void **state)
{
	const struct plan plan[2] = {{.key = 6}, {.key = 6, .uid = STRANGER}};
	struct member m[4];

	(void)state;
	if (geteuid()) {
		print_message("[  SKIPPED ] only root can become another user\n");
		skip();
	}
	for (int i = 0; i < 4; i++)
		member_join(&m[i], &plan[i % 2]);
	assert_true(same_domain(&m[0].told, &m[2].told) && same_domain(&m[1].told, &m[3].told));
	assert_true(m[0].told.id != m[1].told.id && m[0].told.inode != m[1].told.inode);
	for (int i = 0; i < 4; i++)
		member_leave(&m[i]);
}

static int leave_network(void)
{
	return unshare(CLONE_NEWNET) ? -errno : 0;
}

/* Nor do processes of two network namespaces, whose sockets are of two hosts. */
static void two_networks(void **state)
{
	const struct plan here = {.key = 17}, there = {.key = 17, .before = leave_network};
	struct member m[2];

	(void)state;
	if (geteuid()) {
		print_message("[  SKIPPED ] only root can have a network namespace of its own\n");
		skip();
	}
	member_join(&m[0], &here);
	member_join(&m[1], &there);
	assert_true(m[1].told.made && m[0].told.id != m[1].told.id);
	member_leave(&m[0]);
	member_leave(&m[1]);
}

/* Forked children of a member that do not exec neither let in nor keep the domain alive, nor harm it, whether they do
 * nothing or call what they should not. */
static void forked_children(void **state)
{
	const struct plan plan = {.key = 10};
	struct member m, second, next;
	pid_t child[2];

	(void)state;
	member_join(&m, &plan);
	for (int i = 0; i < 2; i++)
		child[i] = member_fork(&m);
	member_join(&second, &plan);
	assert_true(same_domain(&m.told, &second.told));
	for (int i = 0; i < 2000 && holders_of(&m.told) > 2; i++)
		sleep_ms(10); /* the children have only begun */
	assert_int_equal(holders_of(&m.told), 2);
	member_leave(&second);
	member_kill(&m);
	for (int i = 0; i < 2; i++)
		assert_int_equal(kill(child[i], 0), 0);
	assert_nothing_left(&m.told, 10);
	member_join(&next, &plan);
	assert_true(next.told.made);
	member_leave(&next);
	for (int i = 0; i < 2; i++)
		kill(child[i], SIGKILL);
}

struct forking {
	const struct told *told;
	atomic_bool over;
	unsigned with_memory; /* children */
};

/* Forks children, who look whether they have anything of the domain. */
static void *fork_children(void *arg)
{
	struct forking *f = arg;

	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();
		int status = 0;

		if (!pid)
			_exit(has_memory(f->told));
		waitpid(pid, &status, 0);
		f->with_memory += status != 0;
	}
	atomic_store(&f->over, true);
	return NULL;
}

/* One thread forks all the time while another joins, attends and leaves: no child has a descriptor of the domain. */
static void forks_meanwhile(void **state)
{
	const struct plan plan = {.key = 18};
	struct forking f = {.with_memory = 0};
	struct member m;
	unsigned joined = 0;
	pthread_t thread;
	bool made;
	struct rwk_src_join_attr attr = attr_of(&plan, &made);

	(void)state;
	member_join(&m, &plan);
	f.told = &m.told;
	assert_int_equal(pthread_create(&thread, NULL, fork_children, &f), 0);
	for (; !atomic_load(&f.over); joined++) {
		struct rwk_src_seat *seat;

		assert_int_equal(rwk_src_join(&attr, &seat), 0);
		rwk_src_attend(seat);
		rwk_src_leave(seat);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(joined > 10);
	assert_int_equal(f.with_memory, 0);
	member_leave(&m);
	assert_nothing_left(&m.told, 18);
}

/* A program that a member starts has nothing of the domain, whether the member has made it or joined it. */
static void spawned_program(void **state)
{
	const struct plan plan = {.key = 16};
	struct member m[2];
	pid_t program[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		member_join(&m[i], &plan);
		program[i] = member_spawn(&m[i]);
	}
	assert_int_equal(holders_of(&m[0].told), 2);
	for (int i = 0; i < 2; i++)
		member_leave(&m[i]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(kill(program[i], 0), 0);
	assert_nothing_left(&m[0].told, 16);
	for (int i = 0; i < 2; i++)
		kill(program[i], SIGKILL);
}

/*
 * A second seat of a process needs nobody else, who might wait for it in turn; it is as good as the first. Both have
 * the memory at one address, until the last of them leaves: a thread sanitizer would not know two addresses
 * for one lock.
 */
static void two_seats(void **state)
{
	const struct plan plan = {.key = 11};
	bool made[2] = {false, false};
	struct rwk_src_join_attr attr[2] = {attr_of(&plan, &made[0]), attr_of(&plan, &made[1])};
	struct rwk_src_seat *seat[2];
	struct told told[2];
	struct member m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rwk_src_join(&attr[i], &seat[i]), 0);
		tell_of(seat[i], &told[i]);
	}
	assert_true(same_domain(&told[0], &told[1]) && made[0] && !made[1]);
	assert_ptr_equal(rwk_src_seat_memory(seat[0]), rwk_src_seat_memory(seat[1]));
	rwk_src_leave(seat[0]);
	assert_int_equal(rwk_src_segment_check(rwk_src_seat_memory(seat[1]), &attr[1].size), 0);
	member_start(&m, &plan);
	for (; !member_speaks(&m); sleep_ms(1))
		rwk_src_attend(seat[1]);
	assert_true(member_hear(&m));
	assert_int_equal(m.told.rc, 0);
	assert_true(same_domain(&m.told, &told[1]));
	rwk_src_leave(seat[1]);
	member_leave(&m);
	assert_nothing_left(&told[1], 11);
}

static rlim_t descriptors; /* that the next child may have */

static int limit_descriptors(void)
{
	const struct rlimit limit = {descriptors, descriptors};

	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

/* With few descriptors it is in, or gets -EMFILE, whether it makes the domain or joins it. */
static void few_descriptors(void **state)
{
	const struct plan plan = {.key = 12}, poor = {.key = 12, .before = limit_descriptors};
	unsigned refused[2] = {0}, let_in[2] = {0};

	(void)state;
	for (int join = 0; join < 2; join++) {
		struct member m, rich;

		if (join)
			member_join(&rich, &plan);
		for (descriptors = 3; descriptors < 24; descriptors++) {
			member_start(&m, &poor);
			assert_true(member_hear(&m));
			assert_true(!m.told.rc || m.told.rc == -EMFILE);
			refused[join] += m.told.rc != 0;
			let_in[join] += m.told.rc == 0;
			member_leave(&m);
			assert_int_equal(name_is_taken(12, geteuid()), join);
		}
		if (join)
			member_leave(&rich);
	}
	assert_true(refused[0] >= 4 && refused[1] >= 4 && let_in[0] && let_in[1]);
}

static int deny_memory(void)
{
	return deny(__NR_memfd_create, 0, 0, EPERM);
}

static int deny_unix(void)
{
	return deny(__NR_socket, ~0u, AF_UNIX, EAFNOSUPPORT);
}

static int deny_udp(void)
{
	return deny(__NR_socket, ~0u, AF_INET, EADDRINUSE);
}

static int deny_names(void)
{
	return deny(__NR_bind, 0, 0, EPERM);
}

/* What the system denies is said at once, and the name is free again. */
static void denied(void **state)
{
	static const struct {
		int (*before)(void);
		int rc;
	} cases[] = {
		{deny_memory, -EPERM},
		{deny_unix, -EAFNOSUPPORT},
		{deny_udp, -EADDRINUSE}, /* of the socket: it is not the name that is meant */
		{deny_names, -EPERM},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct plan plan = {.key = 14, .before = cases[i].before};
		struct member m;

		member_start(&m, &plan);
		assert_true(member_hear(&m));
		assert_int_equal(m.told.rc, cases[i].rc);
		assert_false(name_is_taken(14, geteuid()));
		member_leave(&m);
	}
}

/* No domain has that size; and nothing is left open. */
static void impossible_size(void **state)
{
	const struct plan plan = {.key = 15};
	bool made = false;
	struct rwk_src_join_attr attr = attr_of(&plan, &made);
	struct rwk_src_seat *seat = NULL;
	unsigned before;

	(void)state;
	before = open_descriptors();
	attr.size.members = 1;
	assert_int_equal(rwk_src_join(&attr, &seat), -EINVAL);
	assert_null(seat);
	assert_int_equal(open_descriptors(), before);
	assert_false(name_is_taken(15, geteuid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eight),
		cmocka_unit_test(forty),
		cmocka_unit_test(maker_killed),
		cmocka_unit_test(two_jobs),
		cmocka_unit_test(two_users),
		cmocka_unit_test(two_networks),
		cmocka_unit_test(forked_children),
		cmocka_unit_test(forks_meanwhile),
		cmocka_unit_test(spawned_program),
		cmocka_unit_test(two_seats),
		cmocka_unit_test(few_descriptors),
		cmocka_unit_test(denied),
		cmocka_unit_test(impossible_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
