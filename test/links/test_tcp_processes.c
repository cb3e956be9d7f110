/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP link between processes that are killed, stopped, started again, and short of descriptors. */
#include "links/tcp_peers.h"
#include "own_port.h"

#include "base/log.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child tells, in memory shared with it. */
struct told {
	volatile uint32_t port;
	volatile uint64_t got;
	volatile int words[8];
	volatile unsigned word_count;
	volatile bool go;
};

struct child {
	pid_t pid;
	struct told *told;
	struct rwk_link_address at;
};

static void nap(void)
{
	usleep(500);
}

static void tell(struct told *t, const struct peer *p)
{
	t->got = p->got;
	for (unsigned i = 0; i < p->word_count && i < 8; i++)
		t->words[i] = p->words[i];
	t->word_count = p->word_count;
}

/* Takes what comes, until it is killed. */
static void serve(struct peer *p, struct told *t)
{
	for (;;) {
		p->l->ops->progress(p->l, 16);
		tell(t, p);
		nap();
	}
}

/* Sends to whoever opens a stream, as fast as it goes. */
static void flood(struct peer *p, struct told *t)
{
	uint32_t n = 0;

	for (;;) {
		p->l->ops->progress(p->l, 16);
		tell(t, p);
		for (int i = 0; p->word_count && i < 40; i++)
			n += send_number(p, &p->word_of[0], n) == 0;
		p->l->ops->flush(p->l);
	}
}

/* Never looks at its link. */
static void sleep_on(struct peer *p, struct told *t)
{
	(void)p;
	while (!t->go)
		nap();
	serve(p, t);
}

static struct child start(const struct rwk_tcp_attr *attr, void (*life)(struct peer *, struct told *))
{
	struct told *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct child c = {.told = t};
	uint64_t end = now_ms() + 20000;

	assert_true(t != MAP_FAILED);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		struct peer *p;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
		alarm(60);
		p = open_peer(attr);
		t->port = rwk_tcp_port(p->l);
		life(p, t);
		_exit(0);
	}
	while (!t->port) {
		assert_true(now_ms() < end);
		nap();
	}
	c.at = rwk_tcp_address(attr->ip, (uint16_t)t->port);
	return c;
}

static void end_child(struct child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	munmap(c->told, sizeof(*c->told));
}

static void kill_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	c->pid = 0;
}

static void stop_child(struct child *c)
{
	int status;

	kill(c->pid, SIGSTOP);
	assert_int_equal(waitpid(c->pid, &status, WUNTRACED), c->pid);
	assert_true(WIFSTOPPED(status));
}

static void reach_child(struct peer *p, const struct child *c, uint64_t nonce)
{
	assert_int_equal(rwk_tcp_reach(p->l, &c->at, nonce), 0);
	until_words(p, NULL, p->word_count + 1);
	assert_int_equal(last_word(p), 0);
}

/* A killed process: the stream's end is told with the process' end, and who reaches for it again is refused. */
static void killed(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);
	struct peer *p = open_peer(&attr);

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct child c = start(&child_attr, serve);

		p->word_count = 0;
		reach_child(p, &c, 22);
		kill_child(&c);
		until_words(p, NULL, 2);
		assert_int_equal(last_word(p), -ECONNRESET);
		assert_memory_equal(&p->word_of[1], &c.at, sizeof(c.at));
		assert_int_equal(send_number(p, &c.at, 0), -ENOTCONN);
		assert_int_equal(rwk_tcp_reach(p->l, &c.at, 22), 0);
		until_words(p, NULL, 3);
		assert_int_equal(last_word(p), -ECONNREFUSED);
		end_child(&c);
	}
	close_peer(p);
}

/* Killed while it sends and is sent to: what had come is whole and in order, then the word. */
static void killed_under_load(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);
	struct peer *p = open_peer(&attr);

	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		struct child c = start(&child_attr, flood);
		uint32_t n = 0;
		uint64_t end = now_ms() + 5 + i;

		p->word_count = 0;
		p->next = 0;
		p->got = 0;
		reach_child(p, &c, 22);
		while (now_ms() < end || !p->got) {
			p->l->ops->progress(p->l, 5);
			n += send_number(p, &c.at, n) == 0;
			p->l->ops->flush(p->l);
		}
		kill_child(&c);
		until_words(p, NULL, 2);
		assert_int_equal(last_word(p), -ECONNRESET);
		run_for(p, NULL, 5);
		assert_int_equal(p->word_count, 2);
		end_child(&c);
	}
	close_peer(p);
}

/*
 * Stopped for six seconds, longer than any keepalive, with a stream that is full and one where nothing moves: no word.
 * When it goes on all is there.
 */
static void stopped(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), idle_attr = tcp_attr(12), child_attr = tcp_attr(22);
	struct peer *p = open_peer(&attr), *idle = open_peer(&idle_attr);
	struct child c = start(&child_attr, serve);
	uint64_t end, more;
	uint32_t n = 0;

	(void)state;
	reach_child(p, &c, 22);
	stop_child(&c);
	end = now_ms() + 6000;
	while (now_ms() < end) {
		n += send_number(p, &c.at, n) == 0;
		p->l->ops->flush(p->l);
		p->l->ops->progress(p->l, 5);
		if (rwk_tcp_counts(p->l)->full)
			nap();
	}
	assert_int_equal(p->word_count, 1);
	assert_true(rwk_tcp_counts(p->l)->full > 0);
	kill(c.pid, SIGCONT);
	more = n + 100u;
	end = now_ms() + 20000;
	while (c.told->got < more) {
		assert_true(now_ms() < end);
		if (n < more)
			n += send_number(p, &c.at, n) == 0;
		p->l->ops->flush(p->l);
		p->l->ops->progress(p->l, 5);
	}
	assert_int_equal(c.told->got, n);
	assert_int_equal(p->word_count, 1);

	reach_child(idle, &c, 22);
	stop_child(&c);
	run_for(idle, p, 5000);
	assert_int_equal(idle->word_count, 1);
	assert_int_equal(p->word_count, 1);
	kill_child(&c);
	until_words(idle, p, 2);
	until_words(p, idle, 2);
	assert_int_equal(last_word(idle), -ECONNRESET);
	assert_int_equal(last_word(p), -ECONNRESET);
	end_child(&c);
	close_peer(p);
	close_peer(idle);
}

/* Killed while it is stopped and the stream to it is full. */
static void killed_while_stopped(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);
	struct peer *p = open_peer(&attr);
	struct child c = start(&child_attr, serve);

	(void)state;
	reach_child(p, &c, 22);
	stop_child(&c);
	for (uint32_t n = 0; !send_number(p, &c.at, n); n++)
		p->l->ops->flush(p->l);
	run_for(p, NULL, 500);
	kill_child(&c);
	until_words(p, NULL, 2);
	assert_int_equal(last_word(p), -ECONNRESET);
	end_child(&c);
	close_peer(p);
}

/* A process that is stopped, or busy, before it has looked at its link: no word, until it does; killed then: refused.
 */
static void stopped_before_hello(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);
	struct peer *p;
	struct child c = start(&child_attr, sleep_on), d = start(&child_attr, sleep_on);

	(void)state;
	attr.connect_ms = 300;
	p = open_peer(&attr);
	assert_int_equal(rwk_tcp_reach(p->l, &c.at, 22), 0);
	assert_int_equal(rwk_tcp_reach(p->l, &d.at, 22), 0);
	stop_child(&c);
	stop_child(&d);
	run_for(p, NULL, 4500);
	assert_int_equal(p->word_count, 0);
	c.told->go = true;
	kill(c.pid, SIGCONT);
	until_words(p, NULL, 1);
	assert_int_equal(last_word(p), 0);
	kill_child(&d);
	until_words(p, NULL, 2);
	assert_int_equal(last_word(p), -ECONNREFUSED);
	end_child(&c);
	end_child(&d);
	close_peer(p);
}

static struct rwk_link_address parent_at;

/* Reaches for the parent, is away longer than all patience, and goes on. */
static void reach_and_stop(struct peer *p, struct told *t)
{
	rwk_tcp_reach(p->l, &parent_at, 11);
	raise(SIGSTOP);
	serve(p, t);
}

/* The same, after it has knocked. */
static void knock_and_stop(struct peer *p, struct told *t)
{
	rwk_tcp_reach(p->l, &parent_at, 11);
	p->l->ops->progress(p->l, 16);
	raise(SIGSTOP);
	serve(p, t);
}

/* Who is stopped while it connects has been let go by the other end; back again it opens its stream all the same. */
static void stopped_itself(void **state)
{
	static void (*const lives[])(struct peer *, struct told *) = {reach_and_stop, knock_and_stop};
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);

	(void)state;
	child_attr.connect_ms = 200;
	for (unsigned i = 0; i < 2; i++) {
		bool patient = i == 0; /* else its connection has been dropped when it comes back */
		struct peer *p;
		struct child c;
		uint64_t end;

		attr.stranger_ms = patient ? 5000 : 500;
		p = open_peer(&attr);
		parent_at = p->at;
		c = start(&child_attr, lives[i]);
		assert_int_equal(waitpid(c.pid, NULL, WUNTRACED), c.pid);
		run_for(p, NULL, 600);
		for (end = now_ms() + 20000; !patient && !rwk_tcp_counts(p->l)->silent && now_ms() < end;)
			run_for(p, NULL, 1);
		assert_int_equal(rwk_tcp_counts(p->l)->silent, patient ? 0 : 1);
		assert_int_equal(p->word_count, 0);
		kill(c.pid, SIGCONT);
		until_words(p, NULL, 1);
		assert_int_equal(last_word(p), 0);
		for (end = now_ms() + 20000; !c.told->word_count && now_ms() < end;)
			run_for(p, NULL, 1);
		assert_int_equal(c.told->word_count, 1);
		assert_int_equal(c.told->words[0], 0);
		end_child(&c);
		close_peer(p);
	}
}

static void reach_parent(struct peer *p, struct told *t)
{
	rwk_tcp_reach(p->l, &parent_at, 11);
	serve(p, t);
}

/*
 * A process is killed and another started at its port. Who wants the first hears that it is stale; the new one's own
 * stream opens once the end of the old one's has been told, though it comes before anybody has looked.
 */
static void restarted(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);
	struct peer *p = open_peer(&attr);
	struct child c, d;

	(void)state;
	child_attr.port = own_port();
	c = start(&child_attr, serve);
	parent_at = p->at;
	reach_child(p, &c, 22);
	kill_child(&c);
	child_attr.nonce = 33;
	d = start(&child_attr, reach_parent);
	usleep(100000);
	until_words(p, NULL, 3);
	assert_int_equal(p->words[1], -ECONNRESET);
	assert_int_equal(p->words[2], 0);
	assert_int_equal(rwk_tcp_nonce(p->l, &d.at), 33);
	assert_int_equal(rwk_tcp_reach(p->l, &d.at, 22), -EEXIST);
	rwk_tcp_leave(p->l, &d.at);
	run_for(p, NULL, 50);
	assert_int_equal(rwk_tcp_reach(p->l, &d.at, 22), 0);
	until_words(p, NULL, 4);
	assert_int_equal(last_word(p), -ESTALE);
	end_child(&c);
	end_child(&d);
	close_peer(p);
}

/*
 * As before, but this end is about to reach for the process that was there when the one that is there now comes: the
 * first is stale, the second opens.
 */
static void restarted_meeting(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(33);
	struct peer *p = open_peer(&attr);
	struct child d;

	(void)state;
	parent_at = p->at;
	child_attr.nonce = 33;
	d = start(&child_attr, reach_parent);
	usleep(50000);
	assert_int_equal(rwk_tcp_reach(p->l, &d.at, 22), 0);
	until_words(p, NULL, 2);
	run_for(p, NULL, 50);
	assert_int_equal(p->word_count, 2);
	assert_int_equal(p->words[0], -ESTALE);
	assert_int_equal(p->words[1], 0);
	assert_int_equal(rwk_tcp_nonce(p->l, &d.at), 33);
	end_child(&d);
	close_peer(p);
}

/* A child forked later knows nothing of the sockets once it execs; here: they are closed on exec. */
static void not_inherited(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);
	struct peer *p = open_peer(&attr);
	struct child c = start(&child_attr, serve);

	(void)state;
	reach_child(p, &c, 22);
	for (int fd = 3; fd < 64; fd++) {
		int type;
		socklen_t len = sizeof(type);

		if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_STREAM)
			assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
	assert_int_equal(fcntl(p->l->ops->wait_fd(p->l, 0), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	end_child(&c);
	close_peer(p);
}

/*
 * A forked child holds the sockets of a link that is closed: nobody is there for who has come, and was not let in yet,
 * nor for who comes now; and another link has the port.
 */
static void closed_with_child(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), early_attr = tcp_attr(22), late_attr = tcp_attr(33);
	struct peer *early = open_peer(&early_attr), *late = open_peer(&late_attr), *p;
	struct rwk_link_address at;
	pid_t child;

	(void)state;
	attr.port = own_port();
	p = open_peer(&attr);
	at = p->at;
	assert_int_equal(rwk_tcp_reach(early->l, &at, 11), 0);
	run_for(early, NULL, 10); /* what it has said waits in the kernel */
	child = fork_holder();
	close_peer(p);
	assert_int_equal(rwk_tcp_reach(late->l, &at, 11), 0);
	until_words(late, NULL, 1);
	until_words(early, NULL, 1);
	assert_int_equal(last_word(late), -ECONNREFUSED);
	assert_int_equal(last_word(early), -ECONNREFUSED);
	p = open_peer(&attr);
	connect_peers(late, p);
	end_holder(child);
	close_peer(early);
	close_peer(late);
	close_peer(p);
}

static unsigned warnings;

static void count_warnings(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	(void)text;
	warnings += level == RWK_LOG_WARN;
}

/* No new descriptor from now on. */
static struct rlimit no_descriptors(void)
{
	struct rlimit before, none;
	int lowest = dup(0);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

/*
 * No descriptor left: a reach says so; one who connects waits without keeping this end busy, and comes in when there
 * are some again. One line of log.
 */
static void descriptors(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);
	struct peer *p = open_peer(&attr);
	uint64_t end = now_ms() + 20000;
	struct rlimit before;
	struct child c;

	(void)state;
	rwk_log_set_sink(count_warnings);
	warnings = 0;
	parent_at = p->at;
	c = start(&child_attr, reach_parent);
	before = no_descriptors();
	assert_int_equal(rwk_tcp_reach(p->l, &c.at, 22), 0);
	assert_int_equal(p->word_count, 0); /* words come from progress */
	until_words(p, NULL, 1);
	assert_int_equal(last_word(p), -EMFILE);
	while (!rwk_tcp_counts(p->l)->accept_full) { /* until it has come */
		assert_true(now_ms() < end);
		run_for(p, NULL, 1);
	}
	run_for(p, NULL, 1000);
	assert_int_equal(p->word_count, 1);
	assert_in_range(rwk_tcp_counts(p->l)->accept_full, 2, 20);
	assert_int_equal(warnings, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	until_words(p, NULL, 2);
	assert_int_equal(last_word(p), 0);
	rwk_log_set_sink(NULL);
	end_child(&c);
	close_peer(p);
}

/* The socket of the stream to that port. */
static int socket_to(uint32_t port)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_in6 at; /* or sockaddr_in, which has the port at the same place */
		socklen_t len = sizeof(at);

		if (!getpeername(fd, (struct sockaddr *)&at, &len) && ntohs(at.sin6_port) == port)
			return fd;
	}
	return -1;
}

/*
 * A stream breaks, its process is alive, and this end has no descriptor to ask it by: no evidence of its death. It is
 * asked later, when there are some again; and if there are none for long, that is the word.
 */
static void no_descriptor_to_ask_by(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11), child_attr = tcp_attr(22);

	(void)state;
	rwk_log_set_sink(count_warnings);
	for (int for_good = 0; for_good < 2; for_good++) {
		struct peer *p = open_peer(&attr);
		struct child c = start(&child_attr, serve);
		struct rlimit before, none;

		assert_int_equal(rwk_tcp_reach(p->l, &c.at, 22), 0);
		until_words(p, NULL, 1);
		assert_int_equal(last_word(p), 0);
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
		none = (struct rlimit){0, before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		assert_int_equal(shutdown(socket_to(c.told->port), SHUT_RDWR), 0);
		run_for(p, NULL, 100);
		assert_int_equal(p->word_count, 1);
		if (for_good)
			until_words(p, NULL, 2);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		until_words(p, NULL, 2);
		assert_int_equal(last_word(p), for_good ? -EMFILE : -ETIMEDOUT);
		end_child(&c);
		close_peer(p);
	}
	rwk_log_set_sink(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed),
		cmocka_unit_test(killed_under_load),
		cmocka_unit_test(stopped),
		cmocka_unit_test(killed_while_stopped),
		cmocka_unit_test(stopped_before_hello),
		cmocka_unit_test(stopped_itself),
		cmocka_unit_test(restarted),
		cmocka_unit_test(restarted_meeting),
		cmocka_unit_test(not_inherited),
		cmocka_unit_test(closed_with_child),
		cmocka_unit_test(descriptors),
		cmocka_unit_test(no_descriptor_to_ask_by),
	};

	return cmocka_run_group_tests_name("links/tcp processes", tests, NULL, NULL);
}
