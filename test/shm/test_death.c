/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Death: a killed peer is reported once (three seconds are promised, a busy machine may take longer), a stopped one
 * never; what had been sent is delivered first.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sends without end, all sizes, until killed. */
static int flood(int fd, void *arg)
{
	struct end *e = end_open(0, true);
	struct end_peer *p = end_connect(e, arg);
	unsigned seed = 9;

	(void)fd;
	for (;;) {
		size_t len = (size_t)rand_r(&seed) % 3 ? (size_t)rand_r(&seed) % 300 : (size_t)rand_r(&seed) % 60000;

		if (p->sent - p->done > 4000 || end_send(e, p, len, 0, true))
			rwk_shm_transport.progress(e->port);
		rwk_shm_transport.progress(e->port);
		if (p->failed)
			return 1;
	}
}

static unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:ropewalk") != NULL;
	fclose(f);
	return n;
}

/* Takes in what has been said to it so far: polls for a while, and a little longer, should the while pass elsewhere. */
static void take_in(struct end *e)
{
	for (uint64_t end = now_ms() + 20; now_ms() < end;)
		rwk_shm_transport.progress(e->port);
	for (int i = 0; i < 1000; i++)
		rwk_shm_transport.progress(e->port);
}

/*
 * Killed at random moments, after the start of the process (it may still be connecting) and after its first message:
 * always one report, never a wrong message, nothing left.
 */
static void killed(void **state)
{
	struct end *e = end_open(0, true);
	unsigned seed = 4, fds = 0, maps = 0, seen = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		unsigned before = e->peers;
		uint64_t pause = (uint64_t)rand_r(&seed) % 20;
		int fd;
		pid_t child = child_run(flood, &e->address, &fd);
		struct end_peer *p = &e->peer[before];

		if (i % 2)
			assert_true(end_until(e, &p->received, 1, 10000));
		for (uint64_t end = now_ms() + pause; now_ms() < end;)
			rwk_shm_transport.progress(e->port);
		kill(child, SIGKILL);
		assert_int_equal(child_wait(child), 128 + SIGKILL);
		close(fd);
		/* It may have died before it said anything, or its word is still in the socket. */
		take_in(e);
		if (e->peers > before) {
			assert_true(end_until_failed(e, p, 20000));
			assert_int_equal(p->failed_calls, 1);
			seen += p->received > 0;
			rwk_shm_transport.disconnect(p->ch);
		}
		assert_null(e->from);
		if (i == 10) {
			fds = count_fds();
			maps = count_maps();
		}
	}
	assert_int_equal(e->wrong, 0);
	assert_true(seen >= 30);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_maps(), maps);
	end_close(e);
}

struct last_words {
	struct rwk_address to;
	unsigned messages;
	bool close; /* in good order, else just exit */
};

static int speak_and_go(int fd, void *arg)
{
	const struct last_words *w = arg;
	struct end *e = end_open(0, true);
	struct end_peer *p = end_connect(e, &w->to);
	char go;

	if (end_send(e, p, 8, 0, true) || !end_until(e, &p->done, 1, 20000))
		return 1;
	for (unsigned i = 1; i < w->messages; i++) {
		if (end_send(e, p, i * 10 % 5000, 0, false))
			return 2;
	}
	if (w->close)
		end_close(e);
	/* Stays until told, so that it is the good-bye that is noticed and not the death. */
	return w->close && (!tell(fd, "x", 1) || !hear(fd, &go, 1));
}

enum { FEW = 40 };
static int used[FEW], used_up;

/* All but three of the first FEW. */
static void use_up_descriptors(void)
{
	int fd;

	while ((fd = dup(0)) >= 0 && fd < FEW - 4)
		used[used_up++] = fd;
	close(fd);
}

/* Sleeps whenever there is nothing to do; somebody must wake us. */
static bool sleep_until_failed(struct end *e, struct end_peer *p, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	while (!p->failed && now_ms() < end) {
		struct pollfd wait = {.fd = rwk_shm_transport.wait_fd(e->port), .events = POLLIN};

		if (!rwk_shm_transport.arm(e->port) && !poll(&wait, 1, ms))
			return false;
		rwk_shm_transport.progress(e->port);
	}
	return p->failed != 0;
}

/*
 * All that a peer had sent comes before the report, whether it closed in good order or just ended, and whether we poll
 * or sleep.
 */
static void last_words(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		struct end *e = end_open(0, true);
		struct last_words w = {.to = e->address, .messages = 20, .close = i & 1};
		struct rlimit old, few = {.rlim_cur = 0};
		char x;
		int fd;
		pid_t child = child_run(speak_and_go, &w, &fd);

		/* At times descriptors are few, so that there is no pidfd: evidence then comes from /proc. */
		getrlimit(RLIMIT_NOFILE, &old);
		few = old;
		few.rlim_cur = FEW;
		if (i & 2) {
			use_up_descriptors();
			setrlimit(RLIMIT_NOFILE, &few);
		}
		assert_true(end_until_peers(e, 1, 20000));
		assert_true(i & 4 ? sleep_until_failed(e, &e->peer[0], 20000) : end_until_failed(e, &e->peer[0], 20000));
		assert_int_equal(e->peer[0].failed, -ECONNRESET);
		assert_int_equal(e->peer[0].received, w.messages);
		assert_int_equal(e->wrong, 0);
		if (w.close) {
			assert_true(hear(fd, &x, 1));
			assert_true(tell(fd, "x", 1));
		}
		assert_int_equal(child_wait(child), 0);
		setrlimit(RLIMIT_NOFILE, &old);
		close(fd);
		end_close(e);
	}
	while (used_up)
		close(used[--used_up]);
}

/* What fits into a ring that has not grown: messages, three records that give slabs back, and messages again. */
enum { LAST_EACH = 20, LAST_SLABS = 60 };

/* Sends all that to one who does not poll, and waits for its end. */
static int speak_until_killed(int fd, void *arg)
{
	struct end *e = end_open(0, true);
	struct end_peer *p = end_connect(e, arg);
	char go;

	if (!end_push(e, p, 8, 0) || !hear(fd, &go, 1))
		return 1;
	for (int i = 0; i < LAST_EACH; i++) {
		if (end_send(e, p, 8, 0, false))
			return 2;
	}
	if (!end_until(e, &p->received, LAST_SLABS, 10000))
		return 3;
	for (int i = 0; i < LAST_EACH; i++) {
		if (end_send(e, p, 8, 0, false))
			return 4;
	}
	if (!tell(fd, &p->sent, sizeof(p->sent)))
		return 5;
	for (;;)
		pause();
}

/*
 * The receiver sleeps, and its next poll finds the death before it looks at the ring: all messages come, also those
 * behind several records of the service's own, of which each ends a delivery then.
 */
static void much_to_say(void **state)
{
	struct end *e = end_open(0, true);
	struct end_peer *p = &e->peer[0];
	uint64_t sent;
	pid_t child;
	int fd;

	(void)state;
	child = child_run(speak_until_killed, &e->address, &fd);
	assert_true(end_until(e, &p->received, 1, 10000));
	for (int i = 0; i < LAST_SLABS; i++)
		assert_int_equal(end_send(e, p, 8000, 0, false), 0);
	while (rwk_shm_transport.arm(e->port))
		rwk_shm_transport.progress(e->port);
	assert_true(tell(fd, "x", 1));
	assert_true(hear(fd, &sent, sizeof(sent)));
	assert_int_equal(sent, 1 + 2 * LAST_EACH);
	assert_int_equal(p->received, 1);
	kill(child, SIGKILL);
	assert_int_equal(child_wait(child), 128 + SIGKILL);
	assert_true(end_until_failed(e, p, 20000));
	assert_int_equal(p->failed, -ECONNRESET);
	assert_int_equal(p->received, sent);
	assert_int_equal(e->wrong, 0);
	close(fd);
	end_close(e);
}

/* Says something, and begins another program without a good-bye. */
static int exec_another(int fd, void *arg)
{
	struct end *e = end_open(0, true);
	struct end_peer *p = end_connect(e, arg);

	(void)fd;
	if (!end_push(e, p, 8, 0) || !end_push(e, p, 5000, 0))
		return 1;
	execlp("sleep", "sleep", "60", NULL);
	return 2;
}

/* Says something, and begins this program once more, while a forked child lives on. */
static int exec_again(int fd, void *arg)
{
	struct end *e = end_open(own_number(), true);
	struct end_peer *p = end_connect(e, arg);
	char byte, number[8];
	int forked[2];

	(void)fd;
	if (!end_push(e, p, 8, 0) || !end_push(e, p, 5000, 0) || pipe2(forked, O_CLOEXEC))
		return 1;
	if (!fork()) {
		assert_int_equal(write(forked[1], "", 1), 1); /* it has let go of the name */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		pause();
		_exit(0);
	}
	assert_int_equal(read(forked[0], &byte, 1), 1);
	snprintf(number, sizeof(number), "%u", own_number());
	execl("/proc/self/exe", "test_death", "again", number, NULL);
	return 2;
}

/* What it is then: a port with the number that it has had before. */
static _Noreturn void again(const char *number)
{
	struct end *e = end_open((uint16_t)atoi(number), true);

	for (;;) {
		rwk_shm_transport.progress(e->port);
		poll(NULL, 0, 1);
	}
}

/*
 * A process that runs another program is as good as dead, though it has the same pid; or the same program once more,
 * with a port of the same number. Whether we poll or sleep.
 */
static void another_program(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		bool asleep = i & 1;
		struct end *e = end_open(0, true);
		struct end_peer *p = &e->peer[0];
		pid_t child;
		int fd;

		child = child_run(i & 2 ? exec_again : exec_another, &e->address, &fd);
		assert_true(end_until_peers(e, 1, 10000));
		assert_true(asleep ? sleep_until_failed(e, p, 20000) : end_until_failed(e, p, 20000));
		assert_int_equal(p->failed, -ECONNRESET);
		assert_int_equal(p->failed_calls, 1);
		assert_int_equal(p->received, 2);
		assert_int_equal(e->wrong, 0);
		assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
		kill(child, SIGKILL);
		assert_int_equal(child_wait(child), 128 + SIGKILL);
		close(fd);
		end_close(e);
	}
}

static int echo_forever(int fd, void *arg)
{
	struct end *e = end_open(0, true);

	(void)arg;
	e->echo = true;
	if (!tell(fd, &e->address, sizeof(e->address)) || !end_until_peers(e, 1, 10000))
		return 1;
	return !end_until_failed(e, &e->peer[0], 20000);
}

/* Stopped is not dead: nothing is reported, sends queue, and everything goes on afterwards. */
static void stopped(void **state)
{
	struct end *e = end_open(0, true);
	struct end_peer *p;
	struct rwk_address a;
	pid_t child;
	int fd;

	(void)state;
	child = child_run(echo_forever, NULL, &fd);
	assert_true(hear(fd, &a, sizeof(a)));
	p = end_connect(e, &a);
	for (int i = 0; i < 3; i++) {
		kill(child, SIGSTOP);
		for (int k = 0; k < 1000; k++)
			assert_int_equal(end_send(e, p, 300, 0, true), 0);
		assert_false(end_until_failed(e, p, 400));
		kill(child, SIGCONT);
		assert_true(end_until(e, &p->received, p->sent, 10000));
	}
	assert_int_equal(e->wrong, 0);
	end_close(e);
	assert_int_equal(child_wait(child), 0);
	close(fd);
}

/* Outstanding ops: with an error when the peer dies, cancelled when we leave; then calls return the channel's error. */
static void outstanding(void **state)
{
	struct end *e = end_open(0, true);
	struct end_peer *p;
	struct rwk_address a;
	pid_t child;
	int fd;

	(void)state;
	child = child_run(echo_forever, NULL, &fd);
	assert_true(hear(fd, &a, sizeof(a)));
	p = end_connect(e, &a);
	assert_true(end_push(e, p, 8, 0));
	kill(child, SIGSTOP);
	for (int k = 0; k < 200; k++)
		assert_int_equal(end_send(e, p, 60000, 0, true), 0);
	assert_true(p->done < 190);
	kill(child, SIGKILL);
	assert_true(end_until_failed(e, p, 20000));
	assert_int_equal(p->done, rwk_shm_port_counters(e->port)->queued);
	assert_true(p->done_error > 180);
	assert_int_equal(end_send(e, p, 8, 0, false), -ECONNRESET);
	assert_int_equal(end_post(e, p, 8, 1, 0), -ECONNRESET);
	assert_int_equal(child_wait(child), 128 + SIGKILL);
	close(fd);
	end_close(e);
}

/* In a child: its own memory, where its parent has something that the child does not have. */
static void *own_memory_at(void *at, size_t size)
{
	void *own = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (own != at)
		_exit(2);
	return memset(own, 7, size);
}

static bool is_mine(const unsigned char *at, size_t size)
{
	return at[0] == 7 && !memcmp(at, at + 1, size - 1);
}

/* The memory of a forked child, which lies where the segments of its parent do, is left alone by its close. */
static void forked_memory(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_meet(a, b);
	pid_t child;

	(void)state;
	assert_true(turn_both(a, b, &p->done, 1));
	child = fork();
	if (!child) {
		const struct rwk_shm_channel *ch = rwk_shm_channel(p->ch);
		size_t pair_size = ch->pair_size, page = RWK_SHM_PAGE;
		void *pair = own_memory_at(ch->pair, pair_size), *inbox = own_memory_at(ch->inbox, page),
		     *own_inbox = own_memory_at(a->port->inbox, page);

		end_close(a);
		_exit(!is_mine(pair, pair_size) || !is_mine(inbox, page) || !is_mine(own_inbox, page));
	}
	assert_int_equal(child_wait(child), 0);
	assert_int_equal(end_send(a, p, 8, 0, false), 0);
	assert_true(turn_both(a, b, &b->peer[0].received, 2));
	end_close(a);
	end_close(b);
}

/* A forked child of the host program has no port: its calls say so, and its close does not disturb the parent. */
static void forked(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_connect(a, &b->address);
	pid_t child;

	(void)state;
	assert_int_equal(end_send(a, p, 8, 0, true), 0);
	for (int i = 0; i < 100000 && !b->peers; i++) {
		rwk_shm_transport.progress(a->port);
		rwk_shm_transport.progress(b->port);
	}
	for (int i = 0; i < 1000; i++) {
		rwk_shm_transport.progress(a->port);
		rwk_shm_transport.progress(b->port);
	}
	child = fork();
	if (!child) {
		bool ok = end_send(a, p, 8, 0, false) == -ECHILD && end_send(a, p, 8000, 0, false) == -ECHILD &&
			end_post(a, p, 8, 1, 0) == -ECHILD && rwk_shm_transport.progress(a->port) == 0 &&
			rwk_shm_transport.arm(a->port) == -ECHILD;

		end_close(a);
		end_close(b);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(child_wait(child), 0);
	assert_int_equal(end_send(a, p, 8, 0, false), 0);
	assert_true(end_until(b, &b->peer[0].received, 2, 20000));
	for (uint64_t end = now_ms() + 250; now_ms() < end;)
		rwk_shm_transport.progress(a->port);
	assert_int_equal(p->failed, 0);
	end_close(a);
	end_close(b);
}

/* Has a forked child that lives as long as the test wants; then closes, or waits to be killed. */
static int leave_a_child(int fd, void *arg)
{
	struct end *e = end_open(0, true);
	char x;
	pid_t child;

	if (!tell(fd, &e->address, sizeof(e->address)))
		return 1;
	child = fork();
	if (!child) {
		if (tell(fd, "x", 1))
			(void)!read(fd, &x, 1); /* until the test closes its end */
		_exit(0);
	}
	if (child < 0)
		return 2;
	while (!*(bool *)arg)
		pause();
	end_close(e);
	return 0;
}

/* A forked child that outlives a port does not keep its name: who comes learns at once that nobody is there. */
static void outlived(void **state)
{
	(void)state;
	for (int closes = 0; closes < 2; closes++) {
		struct end *e = end_open(0, true);
		struct rwk_address a;
		struct end_peer *p;
		bool arg = closes;
		pid_t child;
		char x;
		int fd;

		child = child_run(leave_a_child, &arg, &fd);
		assert_true(hear(fd, &a, sizeof(a)));
		assert_true(hear(fd, &x, 1));
		if (!closes)
			kill(child, SIGKILL);
		assert_int_equal(child_wait(child), closes ? 0 : 128 + SIGKILL);
		p = end_connect(e, &a);
		assert_true(end_until_failed(e, p, 10000));
		assert_int_equal(p->failed, -ECONNRESET);
		close(fd);
		end_close(e);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed),
		cmocka_unit_test(last_words),
		cmocka_unit_test(much_to_say),
		cmocka_unit_test(another_program),
		cmocka_unit_test(stopped),
		cmocka_unit_test(outstanding),
		cmocka_unit_test(forked),
		cmocka_unit_test(forked_memory),
		cmocka_unit_test(outlived),
	};

	if (argc > 2 && !strcmp(argv[1], "again"))
		again(argv[2]);
	return cmocka_run_group_tests_name("shm/death", tests, NULL, NULL);
}
