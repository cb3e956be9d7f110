/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain of a job on a node: one makes it, the others join, the last one out leaves nothing. All members are real
 * processes.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "members.h"

#include "shared_rc/card.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT = 300 /* ms that a join waits that is to fail */ };

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

/* A system call fails from now on, with a first argument that is `argument` in the bits of `mask`. */
static int deny(unsigned call, unsigned mask, unsigned argument, unsigned err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

/* As where Yama or a seccomp filter forbids it. */
static int deny_taking(void)
{
	return deny(__NR_pidfd_getfd, 0, 0, EPERM);
}

/* All members compute, or are stopped, and the kernel does not let a late comer help itself: it gets -ETIMEDOUT, and can
 * come in when one looks again. */
static void nobody_looks(void **state)
{
	const struct plan plan = {.key = 7}, hasty = {.key = 7, .wait_ms = SHORT, .before = deny_taking};
	const struct plan patient = {.key = 7, .before = deny_taking};
	struct member m[2], late;

	(void)state;
	member_join(&m[0], &plan);
	member_join(&m[1], &plan);
	member_order(&m[0], COMPUTE);
	kill(m[1].pid, SIGSTOP);
	member_start(&late, &hasty);
	assert_true(member_hear(&late));
	assert_int_equal(late.told.rc, -ETIMEDOUT);
	assert_false(late.told.made);
	member_leave(&late);

	member_start(&late, &patient);
	kill(m[1].pid, SIGCONT);
	assert_true(member_hear(&late));
	assert_int_equal(late.told.rc, 0);
	assert_true(same_domain(&late.told, &m[0].told));
	member_leave(&late);
	member_leave(&m[0]);
	member_leave(&m[1]);
}

/*
 * One member looks at nothing but a pipe, the other, which came last, is stopped: a late comer takes what it needs by
 * itself, and is as good a member as they are. It lets in others.
 */
static void nobody_needed(void **state)
{
	const struct plan plan = {.key = 19}, denied = {.key = 19, .before = deny_taking};
	struct member m[2], late[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		member_join(&m[i], &plan);
		member_order(&m[i], COMPUTE);
	}
	kill(m[1].pid, SIGSTOP);
	member_join(&late[0], &plan);
	assert_false(late[0].told.made);
	assert_true(same_domain(&late[0].told, &m[0].told));
	assert_int_equal(holders_of(&m[0].told), 3);
	member_join(&late[1], &denied); /* by late[0], which looks */
	assert_true(same_domain(&late[1].told, &m[0].told));
	kill(m[1].pid, SIGCONT);
	for (int i = 0; i < 2; i++) {
		member_leave(&m[i]);
		member_leave(&late[i]);
	}
	assert_nothing_left(&m[0].told, 19);
}

/* The member that listened last, whom the kernel names, has died: the others are met when they look, nothing hangs. */
static void named_one_died(void **state)
{
	const struct plan plan = {.key = 20}, hasty = {.key = 20, .wait_ms = SHORT};
	struct member m[2], late;

	(void)state;
	member_join(&m[0], &plan);
	member_join(&m[1], &plan);
	member_order(&m[0], COMPUTE);
	member_kill(&m[1]);
	member_start(&late, &hasty);
	assert_true(member_hear(&late));
	assert_int_equal(late.told.rc, -ETIMEDOUT);
	member_leave(&late);
	member_start(&late, &plan);
	member_order(&m[0], ATTEND);
	assert_true(member_hear(&late));
	assert_int_equal(late.told.rc, 0);
	assert_true(same_domain(&late.told, &m[0].told));
	member_leave(&late);
	member_leave(&m[0]);
}

/* A program that puts other things under numbers that are not its own. */
static void replace_memory(void)
{
	for (int fd = 3; fd < 64; fd++) {
		char to[64] = "", path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, to, sizeof(to) - 1) > 0 && strstr(to, "/memfd:ropewalk src"))
			dup2(0, fd);
	}
}

/*
 * The member's numbers are other things' by now: its card is not believed. The child of a fork has no card, nor has one
 * of another job, or one that does not have the job's key.
 */
static void other_things(void **state)
{
	const struct plan plan = {.key = 21};
	struct rwk_src_holding holding;
	struct rwk_src_secret secret, other;
	struct rwk_src_seat *seat;
	struct told told;
	uint8_t key[32];
	bool made;
	struct rwk_src_join_attr attr = attr_of(&plan, &made);

	(void)state;
	assert_int_equal(rwk_src_join(&attr, &seat), 0);
	tell_of(seat, &told);
	rwk_src_secret_draw(attr.key, geteuid(), &secret);
	key_of(22, key);
	rwk_src_secret_draw(key, geteuid(), &other);
	memset(holding.fd, 0xff, sizeof(holding.fd));
	assert_int_equal(rwk_src_card_take(getpid(), &secret, &holding), 0);
	assert_true(holding.id == told.id);
	rwk_src_holding_close(&holding);
	assert_int_equal(rwk_src_card_take(getpid(), &other, &holding), -ENOENT);
	memcpy(other.name, secret.name, sizeof(other.name)); /* it knows the name, which is public, and not the key */
	assert_int_equal(rwk_src_card_take(getpid(), &other, &holding), -ENOENT);
	assert_int_equal(rwk_src_card_take(getppid(), &secret, &holding), -ENOENT);
	assert_int_equal(rwk_src_card_take(-1, &secret, &holding), -ESRCH);
	replace_memory();
	assert_int_equal(rwk_src_card_take(getpid(), &secret, &holding), -EACCES);
	for (int i = 0; i < RWK_SRC_THINGS; i++)
		assert_int_equal(holding.fd[i], -1);
	rwk_src_leave(seat);
}

/* Nobody lets it in, and it has waited enough: it is alone, and so is the next seat of its process, at once. */
static void alone(void **state)
{
	const struct plan plan = {.key = 23};
	bool made[2] = {false, false};
	struct rwk_src_join_attr attr[2] = {attr_of(&plan, &made[0]), attr_of(&plan, &made[1])};
	struct rwk_src_seat *seat[2];
	struct told told[2];
	struct member m;
	unsigned before;

	(void)state;
	member_join(&m, &plan);
	member_order(&m, COMPUTE);
	before = open_descriptors();
	assert_int_equal(rwk_src_join(&attr[0], &seat[0]), 0);
	assert_int_equal(rwk_src_join_go_on(seat[0]), -EAGAIN);
	assert_int_equal(rwk_src_join_alone(seat[0]), 0);
	assert_int_equal(rwk_src_join(&attr[1], &seat[1]), 0);
	for (int i = 0; i < 2; i++)
		tell_of(seat[i], &told[i]);
	assert_true(made[0] && !made[1] && same_domain(&told[0], &told[1]));
	assert_true(told[0].id != m.told.id && told[0].inode != m.told.inode);
	rwk_src_leave(seat[0]);
	rwk_src_leave(seat[1]);
	assert_int_equal(open_descriptors(), before);
	member_leave(&m);
	assert_nothing_left(&m.told, 23);
}

/*
 * Two seats are in a domain where the first can do nothing, since who holds its lock is stopped: it leaves that, and
 * has another domain, whatever its neighbour has. The second follows it there.
 */
static void alone_afterwards(void **state)
{
	const struct plan plan = {.key = 25};
	bool made[2] = {false, false};
	struct rwk_src_join_attr attr[2] = {attr_of(&plan, &made[0]), attr_of(&plan, &made[1])};
	struct rwk_src_seat *seat[2];
	unsigned before = open_descriptors(), in;
	struct told told[2], alone[2];
	struct member m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rwk_src_join(&attr[i], &seat[i]), 0);
		tell_of(seat[i], &told[i]);
	}
	assert_true(same_domain(&told[0], &told[1]) && !made[1]);
	in = open_descriptors();
	made[0] = false;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rwk_src_join_alone(seat[i]), 0);
		tell_of(seat[i], &alone[i]);
		assert_int_equal(open_descriptors(), in);
		assert_int_equal(rwk_src_segment_check(rwk_src_seat_memory(seat[1]), &attr[1].size), 0);
	}
	assert_true(made[0] && !made[1] && same_domain(&alone[0], &alone[1]));
	assert_true(alone[0].id != told[0].id && alone[0].inode != told[0].inode);
	assert_nothing_left(&told[0], 25);
	member_join(&m, &plan); /* who does not find them */
	assert_true(m.told.made);
	member_leave(&m);
	rwk_src_leave(seat[0]);
	rwk_src_leave(seat[1]);
	assert_int_equal(open_descriptors(), before);
}

/* The member that has come to the door goes away in the middle of a visit: the visitor knocks again, another opens. */
static void left_standing(void **state)
{
	const struct plan plan = {.key = 8}, visit = {.key = 8, .before = deny_taking};
	struct member m[2], late;

	(void)state;
	member_join(&m[0], &plan);
	member_join(&m[1], &plan);
	member_order(&m[0], ONCE);
	member_order(&m[1], COMPUTE);
	member_start(&late, &visit);
	sleep_ms(50); /* it has been met, or will be: either way it is let in */
	member_order(&m[1], ATTEND);
	assert_true(member_hear(&late));
	assert_int_equal(late.told.rc, 0);
	assert_true(same_domain(&late.told, &m[0].told));
	member_leave(&late);
	member_leave(&m[0]);
	member_leave(&m[1]);
}

/* The last one leaves while one waits in the queue, who then makes a domain of its own. */
static void last_one_leaves(void **state)
{
	const struct plan plan = {.key = 9}, visit = {.key = 9, .before = deny_taking};
	struct member m, late;

	(void)state;
	member_join(&m, &plan);
	member_order(&m, COMPUTE);
	member_start(&late, &visit);
	sleep_ms(30);
	member_leave(&m);
	assert_true(member_hear(&late));
	assert_int_equal(late.told.rc, 0);
	assert_true(late.told.made);
	member_leave(&late);
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
	for (int i = 0; i < 200 && holders_of(&m.told) > 2; i++)
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

/* A member that has no descriptor for a visitor is in nobody's way. */
static void poor_member(void **state)
{
	const struct plan plan = {.key = 13}, visit = {.key = 13, .before = deny_taking};
	const struct rlimit none = {3, 3};
	struct member m[2], late;

	(void)state;
	member_join(&m[0], &plan);
	member_join(&m[1], &plan);
	assert_int_equal(prlimit(m[0].pid, RLIMIT_NOFILE, &none, NULL), 0);
	member_order(&m[1], COMPUTE);
	member_start(&late, &visit);
	sleep_ms(50);
	member_order(&m[1], ATTEND);
	assert_true(member_hear(&late));
	assert_int_equal(late.told.rc, 0);
	member_leave(&late);
	member_leave(&m[0]);
	member_leave(&m[1]);
}

/* Sends itself so many descriptors, and does not take them: they are under way until the pair is closed. */
static bool send_under_way(int pair[2], unsigned count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec iov = {(char[]){0}, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int))};

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
	for (unsigned i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &pair[0], sizeof(int));
	return sendmsg(pair[0], &msg, 0) == 1;
}

/* All of them: what each says. Those who are let in close what they get. */
static bool all_say(struct rwk_src_knock *k, const struct rwk_src_secret *secret, int expected)
{
	bool all = true;

	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		struct rwk_src_holding holding = {.fd = {-1, -1, -1, -1, -1}};

		all = all && rwk_src_door_knock(&k[i], secret, 60000, &holding) == expected;
		rwk_src_holding_close(&holding);
	}
	return all;
}

/* The seat's door, at which all places are taken by who has proven that he belongs there, and perhaps others wait. */
static bool let_in_later(struct rwk_src_seat *seat, const struct rwk_src_secret *secret, bool crowded)
{
	struct rwk_src_holding none = {.fd = {-1, -1, -1, -1, -1}};
	struct rwk_src_knock k[RWK_SRC_VISITORS], another = {.fd = -1};
	struct rlimit usual, little;
	int pair[2] = {-1, -1};
	bool right;

	for (int i = 0; i < RWK_SRC_VISITORS; i++)
		k[i].fd = -1;
	right = all_say(k, secret, -EAGAIN);
	rwk_src_attend(seat);
	right = right && all_say(k, secret, -EAGAIN) && send_under_way(pair, 64) && !getrlimit(RLIMIT_NOFILE, &usual);
	little = (struct rlimit){32, usual.rlim_max};
	if (crowded) {
		right = right && rwk_src_door_knock(&another, secret, 60000, &none) == -EAGAIN;
		sleep_ms(150); /* longer than a visitor may take who says nothing */
	}
	right = right && !setrlimit(RLIMIT_NOFILE, &little);
	rwk_src_attend(seat);
	rwk_src_attend(seat);
	right = right && all_say(k, secret, -EAGAIN) && !setrlimit(RLIMIT_NOFILE, &usual);
	rwk_src_attend(seat);
	close(pair[0]);
	close(pair[1]);
	rwk_src_door_leave(&another);
	return right && all_say(k, secret, 0);
}

static uint8_t later_key; /* of the job that the next child looks at */

static int check_let_in_later(void)
{
	const struct plan plan = {.key = later_key};
	bool made;
	struct rwk_src_join_attr attr = attr_of(&plan, &made);
	struct rwk_src_secret secret;
	struct rwk_src_seat *seat;
	bool right;

	rwk_src_secret_draw(attr.key, geteuid(), &secret);
	if (rwk_src_join(&attr, &seat))
		return -EIO;
	right = let_in_later(seat, &secret, false) && let_in_later(seat, &secret, true);
	rwk_src_leave(seat);
	return right ? 0 : -EKEYREJECTED;
}

/*
 * The kernel takes no more descriptors of that user's for a while: those who have shown that they belong there wait,
 * and are let in when it does again. It takes all of root's.
 */
static void too_many_under_way(void **state)
{
	const struct plan plan = {.key = 24, .uid = geteuid() ? 0 : STRANGER, .before = check_let_in_later};
	struct member m;

	(void)state;
	later_key = plan.key;
	member_join(&m, &plan);
	member_leave(&m);
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
		cmocka_unit_test(nobody_looks),
		cmocka_unit_test(nobody_needed),
		cmocka_unit_test(named_one_died),
		cmocka_unit_test(other_things),
		cmocka_unit_test(alone),
		cmocka_unit_test(alone_afterwards),
		cmocka_unit_test(left_standing),
		cmocka_unit_test(last_one_leaves),
		cmocka_unit_test(forked_children),
		cmocka_unit_test(forks_meanwhile),
		cmocka_unit_test(spawned_program),
		cmocka_unit_test(two_seats),
		cmocka_unit_test(few_descriptors),
		cmocka_unit_test(poor_member),
		cmocka_unit_test(too_many_under_way),
		cmocka_unit_test(denied),
		cmocka_unit_test(impossible_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
