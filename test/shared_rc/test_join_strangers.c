/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who does not belong to a domain: another user, who knows the key even; one of the same user who does not know it; one
 * who says nothing; and one who hands over what he should not. Each in either role, as a visitor and at the door.
 */
#define _GNU_SOURCE /* accept4, memfd_create */
#include "rwk_test.h"

#include "base/log.h"
#include "members.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SHORT = 300, /* ms that a join waits that is to fail */
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	/* What the messages are, as a stranger would know. */
	MAGIC = 0x43525352,
	NONCE = 32,
	MAC = 32,
	TERMS = 24, /* of a welcome, before its MAC */
};

struct greeting {
	uint32_t magic, version;
	uint8_t nonce[NONCE];
};

static struct rwk_src_secret secret_of(uint8_t number, bool knows_key)
{
	struct rwk_src_secret secret;
	uint8_t key[32];

	key_of(number, key);
	rwk_src_secret_draw(key, geteuid(), &secret);
	if (!knows_key)
		secret.key[0] ^= 1;
	return secret;
}

/* Runs fn in a child: its status, or 128 + signal. */
static pid_t child_start(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(30);
	_exit(fn(arg));
}

static int child_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * Strangers as visitors.
 */

struct visit {
	struct rwk_src_secret secret;
	uid_t uid; /* 0: ours */
};

static int knock_until_answered(const struct visit *v, struct rwk_src_holding *holding)
{
	struct rwk_src_knock k = {.fd = -1};
	uint64_t end = rwk_src_ms() + 20000;
	int rc;

	while ((rc = rwk_src_door_knock(&k, &v->secret, 20000, holding)) == -EAGAIN && rwk_src_ms() < end)
		sleep_ms(1);
	return rc;
}

/* Knocks as who he is: 0: nothing was handed over; 1: he was let in. */
static int visit(void *arg)
{
	const struct visit *v = arg;
	struct rwk_src_holding holding = {.fd = {-1, -1, -1, -1, -1}};
	unsigned before = open_descriptors();
	int rc;

	if (v->uid && setresuid(v->uid, v->uid, v->uid))
		return 2;
	rc = knock_until_answered(v, &holding);
	if (!rc || open_descriptors() != before)
		return 1;
	return rc == (v->uid ? -ECONNRESET : -EKEYREJECTED) ? 0 : 3;
}

static void visit_member(uint8_t key, const struct visit *v)
{
	const struct plan plan = {.key = key};
	struct member m, friend;

	member_join(&m, &plan);
	assert_int_equal(child_end(child_start(visit, (void *)v)), 0);
	assert_int_equal(holders_of(&m.told), 1);
	/* And those who belong there come in as ever. */
	member_join(&friend, &plan);
	assert_true(same_domain(&m.told, &friend.told));
	member_leave(&friend);
	member_leave(&m);
}

/* A stranger of the same user, who does not know the key but has seen the name, gets nothing. */
static void visitor_without_key(void **state)
{
	const struct visit v = {.secret = secret_of(1, false)};

	(void)state;
	visit_member(1, &v);
}

/* Nor does another user, who knows all. */
static void visitor_of_another_user(void **state)
{
	const struct visit v = {.secret = secret_of(2, true), .uid = STRANGER};

	(void)state;
	if (geteuid()) {
		print_message("[  SKIPPED ] only root can become another user\n");
		skip();
	}
	visit_member(2, &v);
}

static socklen_t address_of(const struct rwk_src_secret *secret, struct sockaddr_un *a)
{
	socklen_t len = sizeof(*a);
	int fd = rwk_src_door_bind(secret);

	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)a, &len), 0);
	close(fd);
	return len;
}

static int connect_to(const struct sockaddr_un *a, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)a, len), 0);
	return fd;
}

/* Three times as many as have a place say nothing, while a member looks: who belongs there comes in nevertheless. */
static void silent_visitors(void **state)
{
	const struct plan plan = {.key = 3};
	const struct rwk_src_secret secret = secret_of(3, true);
	struct member m, friend[3];
	int fd[3 * RWK_SRC_VISITORS];
	struct sockaddr_un a;
	socklen_t len = address_of(&secret, &a);

	(void)state;
	member_join(&m, &plan);
	for (int i = 0; i < 3 * RWK_SRC_VISITORS; i++)
		fd[i] = connect_to(&a, len);
	for (int i = 0; i < 3; i++)
		member_start(&friend[i], &plan);
	for (int i = 0; i < 3; i++) {
		assert_true(member_hear(&friend[i]));
		assert_int_equal(friend[i].told.rc, 0);
		assert_true(same_domain(&m.told, &friend[i].told));
		member_leave(&friend[i]);
	}
	for (int i = 0; i < 3 * RWK_SRC_VISITORS; i++)
		close(fd[i]);
	member_leave(&m);
	assert_nothing_left(&m.told, 3);
}

static bool is_sent_away(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 20000) == 1 && p.revents & (POLLRDHUP | POLLHUP);
}

/* Nobody who says nothing has a place for long while others wait for one. */
static void silent_visitors_go(void **state)
{
	const struct plan plan = {.key = 14};
	const struct rwk_src_secret secret = secret_of(14, true);
	int fd[3 * RWK_SRC_VISITORS];
	struct sockaddr_un a;
	socklen_t len = address_of(&secret, &a);
	struct member m;

	(void)state;
	member_join(&m, &plan);
	for (int i = 0; i < 3 * RWK_SRC_VISITORS; i++)
		fd[i] = connect_to(&a, len);
	for (int i = 0; i < 2 * RWK_SRC_VISITORS; i++)
		assert_true(is_sent_away(fd[i]));
	for (int i = 0; i < 3 * RWK_SRC_VISITORS; i++)
		close(fd[i]);
	member_leave(&m);
	assert_nothing_left(&m.told, 14);
}

static bool is_met(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 20000) == 1 && p.revents & POLLIN;
}

/* Many more than have a place have knocked and gone: who still waits is met the first time that a member looks. */
static void gone_visitors(void **state)
{
	const struct plan plan = {.key = 15};
	const struct rwk_src_secret secret = secret_of(15, true);
	struct sockaddr_un a;
	socklen_t len = address_of(&secret, &a);
	struct member m;
	int fd;

	(void)state;
	member_join(&m, &plan);
	member_order(&m, COMPUTE);
	for (int i = 0; i < 20 * RWK_SRC_VISITORS; i++)
		close(connect_to(&a, len));
	fd = connect_to(&a, len);
	member_order(&m, ONCE);
	assert_true(is_met(fd));
	close(fd);
	member_leave(&m);
}

/* The member has computed for long when it looks, and others wait for the places: who has proven himself is let in. */
static void late_member(void **state)
{
	const struct plan plan = {.key = 16};
	const struct rwk_src_secret secret = secret_of(16, true);
	struct rwk_src_holding none = {.fd = {-1, -1, -1, -1, -1}};
	struct rwk_src_knock k[RWK_SRC_VISITORS];
	int fd[RWK_SRC_VISITORS], rc;
	struct sockaddr_un a;
	socklen_t len = address_of(&secret, &a);
	struct member m;

	(void)state;
	member_join(&m, &plan);
	member_order(&m, COMPUTE);
	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		k[i].fd = -1;
		assert_int_equal(rwk_src_door_knock(&k[i], &secret, 60000, &none), -EAGAIN);
	}
	member_order(&m, ONCE);
	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		assert_true(is_met(k[i].fd));
		assert_int_equal(rwk_src_door_knock(&k[i], &secret, 60000, &none), -EAGAIN);
	}
	for (int i = 0; i < RWK_SRC_VISITORS; i++)
		fd[i] = connect_to(&a, len);
	sleep_ms(150); /* longer than a visitor may take then */
	member_order(&m, ONCE);
	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		struct rwk_src_holding holding = {.fd = {-1, -1, -1, -1, -1}};

		assert_true(is_met(k[i].fd));
		rc = rwk_src_door_knock(&k[i], &secret, 60000, &holding);
		rwk_src_holding_close(&holding);
		assert_int_equal(rc, 0);
		close(fd[i]);
	}
	member_leave(&m);
}

/* No visitor is greeted with what another was greeted with: what was said once proves nothing later. */
static void fresh_nonces(void **state)
{
	const struct plan plan = {.key = 8};
	const struct rwk_src_secret secret = secret_of(8, true);
	struct greeting greeting[2] = {{0}, {0}};
	struct sockaddr_un a;
	socklen_t len = address_of(&secret, &a);
	struct member m;

	(void)state;
	member_join(&m, &plan);
	for (int i = 0; i < 2; i++) {
		int fd = connect_to(&a, len);

		assert_int_equal(recv(fd, &greeting[i], sizeof(greeting[i]), 0), sizeof(greeting[i]));
		assert_int_equal(greeting[i].magic, MAGIC);
		close(fd);
	}
	assert_memory_not_equal(greeting[0].nonce, greeting[1].nonce, NONCE);
	member_leave(&m);
}

/* Visitors who say anything at all, at length or nothing, with descriptors or without, and who hang up at once. */
static void babbling_visitors(void **state)
{
	const struct plan plan = {.key = 4};
	const struct rwk_src_secret secret = secret_of(4, true);
	struct sockaddr_un a;
	socklen_t len = address_of(&secret, &a);
	unsigned char bytes[4096] = {1};
	struct member m, friend;
	unsigned seed = 7;

	(void)state;
	member_join(&m, &plan);
	for (int i = 0; i < 300; i++) {
		union {
			struct cmsghdr align;
			char bytes[CMSG_SPACE(2 * sizeof(int))];
		} control = {.align = {.cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_RIGHTS,
				     .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
		struct iovec iov = {bytes, (size_t)rand_r(&seed) % (i % 3 ? 80 : sizeof(bytes))};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
		int fd = connect_to(&a, len), own[2] = {fd, fd};

		if (i % 4 == 0) {
			memcpy(CMSG_DATA(&control.align), own, sizeof(own));
			msg.msg_control = control.bytes;
			msg.msg_controllen = sizeof(control);
		}
		sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	}
	member_join(&friend, &plan);
	assert_true(same_domain(&m.told, &friend.told));
	member_leave(&friend);
	member_leave(&m);
	assert_nothing_left(&m.told, 4);
}

/*
 * Strangers at the door: they have the name. Each gets a socket that is bound, before anybody knocks.
 */

struct squatter {
	struct rwk_src_secret secret;
	void (*behave)(struct squatter *s, int door); /* does not return but in an error */
	uid_t uid;
	struct rwk_src_size size;
	int seals; /* of the memory that it hands over */
	size_t bytes;
	struct rwk_src_size header; /* what its memory says that it is; no members: nothing, as if not formatted */
	uint32_t version;
	bool empty; /* what comes with the descriptors, */
	unsigned things; /* of which it hands over so many */
	int ready; /* written to when the door is there */
};

static int squat(void *arg)
{
	struct squatter *s = arg;
	int door;

	if (s->uid && setresuid(s->uid, s->uid, s->uid))
		return 2;
	door = rwk_src_door_bind(&s->secret);
	if (door < 0 || rwk_src_door_listen(door) || write(s->ready, "r", 1) != 1)
		return 3;
	s->behave(s, door);
	return 4;
}

/* Memory that says that it is of `header`'s size, whatever it has. */
static int squatters_memory(const struct squatter *s)
{
	int fd = memfd_create("ropewalk src", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t said = rwk_src_segment_size(&s->header), room = said > s->bytes ? said : s->bytes;
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)room))
		return -1;
	at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED || (said && rwk_src_segment_format(at, &s->header)))
		return -1;
	munmap(at, room);
	return ftruncate(fd, (off_t)s->bytes) || fcntl(fd, F_ADD_SEALS, s->seals) ? -1 : fd;
}

/* As a member would: but he has another key, is another user, or has other memory. */
static void as_member(struct squatter *s, int door)
{
	struct rwk_src_holding holding = {.id = 1, .size = s->size};
	struct rwk_src_porch porch;

	holding.fd[RWK_SRC_MEMORY] = squatters_memory(s);
	holding.fd[RWK_SRC_SOCKET] = socket(AF_INET, SOCK_DGRAM, 0);
	holding.fd[RWK_SRC_LINE] = socket(AF_INET, SOCK_DGRAM, 0);
	holding.fd[RWK_SRC_DOOR] = door;
	holding.fd[RWK_SRC_WATCH] = epoll_create1(EPOLL_CLOEXEC);
	if (holding.fd[RWK_SRC_MEMORY] < 0 || rwk_src_porch_open(&porch, &s->secret, &holding))
		return;
	for (;;) {
		struct pollfd p = {.fd = porch.epoll, .events = POLLIN};

		poll(&p, 1, -1);
		rwk_src_porch_attend(&porch);
	}
}

#define HANDED_MAX (RWK_SRC_THINGS + 1)

/* Lets everybody in, and hands over descriptors with what he has just heard as his own proof. */
static void as_impostor(struct squatter *s, int door)
{
	char proof[NONCE + MAC], bytes[TERMS + MAC] = {0};

	for (;;) {
		struct greeting greeting = {.magic = MAGIC, .version = s->version};
		union {
			struct cmsghdr align;
			char bytes[CMSG_SPACE(HANDED_MAX * sizeof(int))];
		} control = {.align = {.cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_RIGHTS,
				     .cmsg_len = CMSG_LEN(s->things * sizeof(int))}};
		const int things[HANDED_MAX] = {door, door, door, door, door, door};
		struct iovec iov = {bytes, sizeof(bytes)};
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = CMSG_SPACE(s->things * sizeof(int))};
		struct pollfd p = {.fd = door, .events = POLLIN};
		int fd;

		poll(&p, 1, -1);
		fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
		memcpy(CMSG_DATA(&control.align), things, s->things * sizeof(int));
		if (send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) > 0 && recv(fd, proof, sizeof(proof), 0) > 0) {
			memcpy(bytes + TERMS, proof + NONCE, MAC);
			iov.iov_len = s->empty ? 0 : sizeof(bytes);
			sendmsg(fd, &msg, MSG_NOSIGNAL);
		}
		close(fd);
	}
}

static void as_silent(struct squatter *s, int door)
{
	(void)s;
	(void)door;
	for (;;)
		pause();
}

static void as_babbler(struct squatter *s, int door)
{
	(void)s;
	for (;;) {
		struct pollfd p = {.fd = door, .events = POLLIN};
		int fd;

		poll(&p, 1, -1);
		fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
		send(fd, "Good day to you, Sir, and what might your name be?", 50, MSG_NOSIGNAL);
		close(fd);
	}
}

static unsigned lines; /* of the log, at info level */

static void count_line(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	(void)text;
	lines += level == RWK_LOG_INFO;
}

/*
 * What a join says while that squatter is at its door; it says once why it fails, and leaves no descriptor open. It
 * waits for long, but for one of our own user who says nothing: nothing ends that wait.
 */
static int join_squatter(uint8_t number, struct squatter *s)
{
	const struct plan plan = {.key = number, .wait_ms = s->behave == as_silent && !s->uid ? SHORT : 0};
	bool made = false;
	struct rwk_src_join_attr attr = attr_of(&plan, &made);
	struct rwk_src_seat *seat = NULL;
	unsigned before;
	int fd[2], rc;
	pid_t pid;
	char c;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	s->ready = fd[1];
	pid = child_start(squat, s);
	assert_int_equal(read(fd[0], &c, 1), 1);
	before = open_descriptors();
	lines = 0;
	rwk_log_set_sink(count_line);
	rwk_log_set_level(RWK_LOG_INFO);
	rc = join_within(&attr, plan.wait_ms, &seat);
	rwk_log_set_level(RWK_LOG_WARN);
	rwk_log_set_sink(NULL);
	assert_int_equal(lines, rc && rc != -ETIMEDOUT);
	assert_int_equal(open_descriptors(), before + (rc ? 0 : RWK_SRC_THINGS + 2)); /* a porch and a card */
	if (!rc)
		rwk_src_leave(seat);
	assert_false(made);
	kill(pid, SIGKILL);
	assert_int_equal(child_end(pid), 128 + SIGKILL);
	close(fd[0]);
	close(fd[1]);
	return rc;
}

static struct squatter member_like(uint8_t number)
{
	const struct plan plan = {.key = number};
	bool made;
	const struct rwk_src_join_attr attr = attr_of(&plan, &made);

	return (struct squatter){
		.secret = secret_of(number, true),
		.behave = as_member,
		.size = attr.size,
		.header = attr.size,
		.bytes = rwk_src_segment_size(&attr.size),
		.seals = SEALS,
		.version = 3,
		.things = RWK_SRC_THINGS,
	};
}

/* Those who do not belong there are not joined; the first line shows that the others are refused for what they are. */
static void squatters(void **state)
{
	struct squatter s = member_like(5);

	(void)state;
	assert_int_equal(join_squatter(5, &s), 0);
	s.secret = secret_of(5, false);
	assert_int_equal(join_squatter(5, &s), -EACCES); /* he sends us away, again and again */

	s = member_like(5);
	s.behave = as_impostor;
	for (s.things = 1; s.things <= HANDED_MAX; s.things++) { /* none of them stays open, the one too many neither */
		s.empty = false;
		assert_int_equal(join_squatter(5, &s), -EACCES);
		s.empty = true;
		assert_int_equal(join_squatter(5, &s), -EACCES);
	}
	s.behave = as_babbler;
	assert_int_equal(join_squatter(5, &s), -EACCES);
	s.behave = as_silent;
	assert_int_equal(join_squatter(5, &s), -ETIMEDOUT);
}

/* Another user has the name, and knows all that there is to know. */
static void squatter_of_another_user(void **state)
{
	struct squatter s = member_like(6);

	(void)state;
	if (geteuid()) {
		print_message("[  SKIPPED ] only root can become another user\n");
		skip();
	}
	s.uid = STRANGER;
	assert_int_equal(join_squatter(6, &s), -EACCES);
	s.behave = as_silent;
	assert_int_equal(join_squatter(6, &s), -EACCES);
}

/* Memory that could be cut off below us, memory of another size, and another version of all this. */
static void other_memory(void **state)
{
	static const int seals[] = {0, SEALS & ~F_SEAL_SHRINK, SEALS & ~F_SEAL_GROW, SEALS & ~F_SEAL_SEAL};
	struct squatter s = member_like(7);

	(void)state;
	for (size_t i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		s.seals = seals[i];
		assert_int_equal(join_squatter(7, &s), -EPROTO);
	}
	s = member_like(7);
	s.bytes -= 4096;
	assert_int_equal(join_squatter(7, &s), -EPROTONOSUPPORT);
	s = member_like(7);
	s.size.members = 1;
	assert_int_equal(join_squatter(7, &s), -EPROTONOSUPPORT);
	s = member_like(7);
	s.header.members = 0;
	assert_int_equal(join_squatter(7, &s), -EPROTONOSUPPORT);
	s = member_like(7);
	s.header.members *= 2; /* a view of it would reach beyond what is mapped */
	assert_int_equal(join_squatter(7, &s), -EPROTONOSUPPORT);
	s = member_like(7);
	s.behave = as_impostor;
	s.version = 4;
	assert_int_equal(join_squatter(7, &s), -EPROTONOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(visitor_without_key),
		cmocka_unit_test(visitor_of_another_user),
		cmocka_unit_test(silent_visitors),
		cmocka_unit_test(silent_visitors_go),
		cmocka_unit_test(gone_visitors),
		cmocka_unit_test(late_member),
		cmocka_unit_test(fresh_nonces),
		cmocka_unit_test(babbling_visitors),
		cmocka_unit_test(squatters),
		cmocka_unit_test(squatter_of_another_user),
		cmocka_unit_test(other_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
