/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Late comers to a domain whose members do not let them in at once: they compute, are stopped or poor, leave, or have
 * died. A late comer helps itself, knocks again, waits, or is alone. All members are real processes.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "members.h"

#include "shared_rc/card.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT = 300 /* ms that a join waits that is to fail */ };

/* As where Yama or a seccomp filter forbids it. */
static int deny_taking(void)
{
	return deny(__NR_pidfd_getfd, 0, 0, EPERM);
}

/* All members compute, or are stopped, and the kernel does not let a late comer help itself: it gets -ETIMEDOUT, and
 * can come in when one looks again. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_looks),
		cmocka_unit_test(nobody_needed),
		cmocka_unit_test(named_one_died),
		cmocka_unit_test(other_things),
		cmocka_unit_test(alone),
		cmocka_unit_test(alone_afterwards),
		cmocka_unit_test(left_standing),
		cmocka_unit_test(last_one_leaves),
		cmocka_unit_test(poor_member),
		cmocka_unit_test(too_many_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
