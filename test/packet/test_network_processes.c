/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet service between processes, over this host's loopback: a peer that is killed, stopped, or leaves.
 *
 *   test process   end 0
 *   child          end 1; connects to end 0 and sends without end, or takes what comes
 */
#include "links/ends.h"

#include "base/param.h"
#include "packet/packet.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a child tells, in memory shared with it. */
struct told {
	volatile uint64_t received, sent, failed;
	volatile int error;
	volatile bool quiet; /* it shall send no more */
};

struct child {
	pid_t pid;
	struct told *told;
};

static const size_t small[] = {1000};
static const size_t some[] = {8, 3000, 0, 40000, 500, 60, 10000};

static void tell(struct told *t)
{
	struct side *s = ends_side(1, 0);

	t->received = s->received;
	t->sent = s->sent;
	t->error = s->error;
	t->failed = s->failed;
}

/* A child's life: until its peer has gone. */
static void live(struct told *t, int fd)
{
	struct rwk_address parent;
	struct side *s;

	assert_int_equal(read(fd, &parent, sizeof(parent)), sizeof(parent));
	ends_open(NULL, NULL, 0);
	ends_add_foreign(&parent);
	ends_add();
	assert_int_equal(write(fd, &ends[1]->address, sizeof(struct rwk_address)), sizeof(struct rwk_address));
	ends_connect(1, 0);
	s = ends_side(1, 0);
	while (!s->failed) {
		if ((!t->quiet || !s->sent) && s->ops < 10)
			assert_in_range(ends_post(s), 0, 1);
		ends_turn();
		tell(t);
	}
	for (;;) /* it stays, to be looked at */
		usleep(1000);
}

static struct child begin(bool quiet, const size_t *lengths, size_t count)
{
	struct child c = {
		.told = mmap(NULL, sizeof(*c.told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
	struct rwk_address address;
	int fd[2];

	assert_true(c.told != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	ends_lengths = lengths;
	ends_lengths_count = count;
	c.told->quiet = quiet;
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd[0]);
		live(c.told, fd[1]);
	}
	close(fd[1]);
	ends_open(NULL, NULL, 1);
	assert_int_equal(write(fd[0], &ends[0]->address, sizeof(address)), sizeof(address));
	assert_int_equal(read(fd[0], &address, sizeof(address)), sizeof(address));
	close(fd[0]);
	ends_add_foreign(&address);
	ends_wait(&ends_side(0, 1)->received, 1);
	return c;
}

static void end(struct child *c)
{
	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	munmap(c->told, sizeof(*c->told));
	ends_close();
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pass(double time)
{
	double end = seconds() + time;

	while (seconds() < end)
		ends_turn();
}

/*
 * A peer that is killed, under load, with nothing under way, and as soon as it has connected, before or after it has
 * started its stream: told as its end. Three seconds are promised; a busy machine may take longer.
 */
static void killed(void **state)
{
	(void)state;
	for (int how = 0; how < 10; how++) {
		struct child c;

		rwk_params.link = how == 2 || how == 3 ? RWK_LINK_TCP : RWK_LINK_AUTO;
		c = begin(how % 2 || how >= 4, some, 7);
		if (how < 4 && how % 2)
			pass(1.5);
		else if (how < 4)
			ends_wait(&ends_side(0, 1)->received, 200);
		assert_int_equal(ends_side(0, 1)->failed, 0);
		kill(c.pid, SIGKILL);
		ends_wait_failed(ends_side(0, 1));
		assert_int_equal(ends_side(0, 1)->error, -ECONNRESET);
		end(&c);
	}
}

/* A peer that is stopped for seconds, while it is sent to and sends: nothing is lost, nothing fails. */
static void stopped(void **state)
{
	(void)state;
	for (int tcp = 0; tcp < 2; tcp++) {
		struct side *s;
		struct child c;
		double until;

		rwk_params.link = tcp ? RWK_LINK_TCP : RWK_LINK_AUTO;
		c = begin(false, some, 7);
		s = ends_side(0, 1);
		ends_wait(&s->received, 100);
		kill(c.pid, SIGSTOP);
		until = seconds() + 4;
		for (int i = 0; i < 200; i++)
			assert_in_range(ends_post(s), 0, 1);
		while (seconds() < until)
			ends_turn();
		assert_int_equal(s->failed, 0);
		assert_true(c.told->received < 200);
		kill(c.pid, SIGCONT);
		ends_wait(&c.told->received, s->sent);
		c.told->quiet = true;
		pass(0.2);
		ends_wait(&s->received, c.told->sent);
		assert_int_equal(s->failed, 0);
		assert_int_equal(c.told->failed, 0);
		end(&c);
	}
}

/* Lets the process go on in a fifth of a second, whatever this one does. */
static void wake_later(pid_t pid)
{
	if (fork())
		return;
	usleep(200000);
	kill(pid, SIGCONT);
	_exit(0);
}

/* So many, or until there is no room even after a while. */
static void send_up_to(struct side *s, int most)
{
	for (int i = 0, refused = 0; i < most && refused < 100;) {
		if (!ends_send(s)) {
			refused = 0;
			i++;
		} else {
			refused++;
			ends_turn();
		}
	}
}

/*
 * What send has taken arrives though the port is closed at once, one message or many; then the peer hears of the end.
 * It is stopped at first, so that what it does not read yet fills buffers on both sides.
 */
static void closed_with_messages(void **state)
{
	(void)state;
	for (int how = 0; how < 6; how++) {
		struct child c;
		struct side *s;
		double until;

		rwk_params.link = how >= 3 ? RWK_LINK_TCP : RWK_LINK_AUTO;
		c = begin(true, small, 1);
		s = ends_side(0, 1);
		kill(c.pid, SIGSTOP);
		wake_later(c.pid);
		send_up_to(s, how % 3 == 0 ? 1 : how % 3 == 1 ? 20 : 10000);
		assert_true(s->sent > 0);
		ends_close_port(0);
		for (until = seconds() + 20; !c.told->failed && seconds() < until;)
			usleep(1000);
		assert_int_equal(c.told->failed, 1);
		assert_int_equal(c.told->error, -ECONNRESET);
		assert_int_equal(c.told->received, s->sent);
		end(&c);
		wait(NULL);
	}
}

/* A child's life at a port that another process has had; end 2, and connected to end 0. */
static void live_again(struct told *t, const struct rwk_address *parent, const struct rwk_address *before, int fd)
{
	struct side *s;

	ends_open(NULL, NULL, 0);
	ends_add_foreign(parent);
	ends_add_foreign(before);
	ends_add_at(rwk_address_port(before));
	assert_int_equal(write(fd, &ends[2]->address, sizeof(struct rwk_address)), sizeof(struct rwk_address));
	ends_connect(2, 0);
	s = ends_side(2, 0);
	for (;;) {
		if (s->ops < 10 && !s->failed)
			assert_in_range(ends_post(s), 0, 1);
		ends_progress_all();
		t->failed = s->failed;
		t->sent = s->sent;
		usleep(500); /* there is always something: its peer would have no processor left for itself */
	}
}

static struct child begin_again(const struct rwk_address *before)
{
	struct child c = {
		.told = mmap(NULL, sizeof(*c.told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
	struct rwk_address address, parent = ends[0]->address;
	int fd[2];

	assert_true(c.told != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		live_again(c.told, &parent, before, fd[1]);
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], &address, sizeof(address)), sizeof(address));
	close(fd[0]);
	assert_int_equal(rwk_address_port(&address), rwk_address_port(before));
	assert_true(address.nonce_port != before->nonce_port);
	ends_add_foreign(&address);
	return c;
}

/*
 * A peer is killed and started again at the same IP and port, and connects at once: whether its end has been heard of
 * by then or not, the old connection fails, and the new one is not taken for it. Its end is told as well.
 */
static void started_again(void **state)
{
	(void)state;
	for (int how = 0; how < 8; how++) { /* twice: whose nonce is smaller is chance */
		struct rwk_address before;
		struct child first, second;

		rwk_params.link = how % 2 ? RWK_LINK_TCP : RWK_LINK_AUTO;
		first = begin(false, some, 7);
		pass(0.3);
		before = ends[1]->address;
		kill(first.pid, SIGKILL);
		assert_int_equal(waitpid(first.pid, NULL, 0), first.pid);
		if (how & 2)
			ends_wait_failed(ends_side(0, 1));
		second = begin_again(&before);
		usleep(100000); /* it connects, and nobody looks yet */
		ends_wait_failed(ends_side(0, 1));
		assert_int_equal(ends_side(0, 1)->error, -ECONNRESET);
		ends_wait(&ends_side(0, 2)->received, 100);
		pass(2); /* longer than it takes to look for a stream */
		assert_int_equal(ends_side(0, 2)->failed, 0);
		assert_int_equal(second.told->failed, 0);
		kill(second.pid, SIGKILL); /* it has evidence of its own */
		ends_wait_failed(ends_side(0, 2));
		munmap(first.told, sizeof(*first.told));
		end(&second);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_NET(killed),
		ENDS_NET(stopped),
		ENDS_NET(closed_with_messages),
		ENDS_NET(started_again),
	};

	return cmocka_run_group_tests_name("packet/network, processes", tests, NULL, NULL);
}
