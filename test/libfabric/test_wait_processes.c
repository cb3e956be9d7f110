/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes that wait for one another: by read, by sread, asleep and with a yielded core, by descriptor, by peeks.
 */
#include "fi_test.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child process does with its end, and the parent with the other. */
struct role {
	struct t_domain d;
	struct t_end e;
	fi_addr_t peer;
	int in, out; /* pipes to the other process: names at first, a byte at the end */
};

static void read_all(int fd, void *buf, size_t len)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (size_t at = 0; at < len;) {
		ssize_t n;

		if (poll(&p, 1, T_PATIENCE) != 1)
			fail_msg("the other process does not answer");
		n = read(fd, (char *)buf + at, len - at);
		assert_true(n > 0);
		at += (size_t)n;
	}
}

static void role_open(struct role *r, const struct t_options *o)
{
	unsigned char name[64];

	t_domain_open(&r->d, 0, FI_THREAD_DOMAIN);
	t_end_open(&r->e, &r->d, o);
	assert_int_equal(write(r->out, r->e.name, sizeof(name)), sizeof(name));
	read_all(r->in, name, sizeof(name));
	r->peer = t_insert(&r->e, name);
}

/* Both are done before either closes. */
static void role_close(struct role *r)
{
	char byte = 0;

	assert_int_equal(write(r->out, &byte, 1), 1);
	read_all(r->in, &byte, 1);
	t_end_close(&r->e);
	t_domain_close(&r->d);
}

/* Runs the two functions in two processes; the child reports through its exit status. */
static void two_processes(void (*parent)(struct role *), void (*child)(struct role *))
{
	int up[2], down[2], status;
	struct role r;
	pid_t pid;

	assert_int_equal(pipe(up) | pipe(down), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends the child, not just its test */
		alarm(2 * T_PATIENCE / 1000);
		r.in = down[0];
		r.out = up[1];
		close(up[0]);
		close(down[1]);
		child(&r);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	r.in = up[0];
	r.out = down[1];
	parent(&r);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(up[0]);
	close(down[1]);
}

static const size_t sizes[] = {0, 1, 40, 41, 256, 1024, 4096, 16384, 65536, 65537, 1 << 20, (4 << 20) + 1};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Sends each size and expects the same bytes plus one seed back; waits by `next`. */
static void ping(struct role *r, bool first, struct fi_cq_tagged_entry (*next)(struct role *))
{
	char *out = malloc((4 << 20) + 1), *in = malloc((4 << 20) + 1);

	for (size_t i = 0; i < SIZES; i++) {
		for (unsigned turn = 0; turn < 2; turn++) {
			unsigned seed = (unsigned)(2 * i) + turn;

			if ((turn == 0) == first) {
				t_fill(out, sizes[i], seed);
				t_post(fi_tsend(r->e.ep, out, sizes[i], NULL, r->peer, seed, out), r->e.cq, NULL);
				assert_int_equal(next(r).flags, FI_SEND | FI_TAGGED);
			} else {
				struct fi_cq_tagged_entry e;

				assert_int_equal(fi_trecv(r->e.ep, in, sizes[i], NULL, r->peer, seed, 0, in), 0);
				e = next(r);
				assert_int_equal(e.flags, FI_RECV | FI_TAGGED);
				assert_int_equal(e.len, sizes[i]);
				t_check(in, sizes[i], seed);
			}
		}
	}
	free(out);
	free(in);
}

static struct fi_cq_tagged_entry next_by_read(struct role *r)
{
	return t_wait(r->e.cq, NULL, NULL);
}

static struct fi_cq_tagged_entry next_by_sread(struct role *r)
{
	struct fi_cq_tagged_entry e = {0};

	assert_int_equal(fi_cq_sread(r->e.cq, &e, 1, NULL, T_PATIENCE), 1);
	return e;
}

/* As a program with an event loop does it: trywait, poll, read. */
static struct fi_cq_tagged_entry next_by_fd(struct role *r)
{
	struct fi_cq_tagged_entry e = {0};
	struct fid *fid = &r->e.cq->fid;
	struct pollfd p = {.events = POLLIN};
	int64_t end = t_now() + T_PATIENCE;
	ssize_t n;
	int err;

	assert_int_equal(fi_control(fid, FI_GETWAIT, &p.fd), 0);
	while ((n = fi_cq_read(r->e.cq, &e, 1)) == -FI_EAGAIN) {
		assert_true(t_now() < end);
		err = fi_trywait(r->d.fabric, &fid, 1);
		if (err == -FI_EAGAIN)
			continue;
		assert_int_equal(err, 0);
		if (poll(&p, 1, T_PATIENCE) != 1)
			fail_msg("the descriptor stays silent");
	}
	assert_int_equal(n, 1);
	return e;
}

static void by_read(struct role *r, bool first)
{
	role_open(r, NULL);
	ping(r, first, next_by_read);
	role_close(r);
}

static void by_sread(struct role *r, bool first)
{
	role_open(r, &(struct t_options){.wait = FI_WAIT_UNSPEC});
	ping(r, first, next_by_sread);
	role_close(r);
}

static void by_yield(struct role *r, bool first)
{
	role_open(r, &(struct t_options){.wait = FI_WAIT_YIELD});
	ping(r, first, next_by_sread);
	role_close(r);
}

static void by_fd(struct role *r, bool first)
{
	role_open(r, &(struct t_options){.wait = FI_WAIT_FD});
	ping(r, first, next_by_fd);
	role_close(r);
}

static void read_first(struct role *r) { by_read(r, true); }
static void read_second(struct role *r) { by_read(r, false); }
static void sread_first(struct role *r) { by_sread(r, true); }
static void sread_second(struct role *r) { by_sread(r, false); }
static void yield_first(struct role *r) { by_yield(r, true); }
static void yield_second(struct role *r) { by_yield(r, false); }
static void fd_first(struct role *r) { by_fd(r, true); }
static void fd_second(struct role *r) { by_fd(r, false); }

static void processes_read(void **state)
{
	(void)state;
	two_processes(read_first, read_second);
}

static void processes_sread(void **state)
{
	(void)state;
	two_processes(sread_first, sread_second);
}

static void processes_yield(void **state)
{
	(void)state;
	two_processes(yield_first, yield_second);
}

static void processes_fd(void **state)
{
	(void)state;
	two_processes(fd_first, fd_second);
}

/* A long sleep in sread ends when the peer sends. */
static void sleeper(struct role *r)
{
	struct fi_cq_tagged_entry e[3];
	char in[3];

	role_open(r, &(struct t_options){.wait = FI_WAIT_FD});
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(r->e.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]), 0);
	for (int got = 0; got < 3;) {
		ssize_t n = fi_cq_sread(r->e.cq, e, 3, NULL, T_PATIENCE);

		if (n < 0)
			fail_msg("fi_cq_sread says %zd after %d messages", n, got);
		got += (int)n;
	}
	role_close(r);
}

static void waker(struct role *r)
{
	role_open(r, NULL);
	for (int i = 0; i < 3; i++) {
		usleep(50000); /* time to fall asleep; the test holds without it, too */
		t_post(fi_send(r->e.ep, "w", 1, NULL, r->peer, r), r->e.cq, NULL);
		t_wait(r->e.cq, NULL, NULL);
	}
	role_close(r);
}

static void sleeping_process(void **state)
{
	(void)state;
	two_processes(sleeper, waker);
}

/* Who only peeks, and reads one entry for each peek, sees the message come all the same. */
static void peeker(struct role *r)
{
	struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = 3};
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {0};
	int64_t end = t_now() + T_PATIENCE;
	char in = 0;
	ssize_t n;

	role_open(r, &(struct t_options){.wait = FI_WAIT_FD});
	do {
		assert_true(t_now() < end);
		assert_int_equal(fi_trecvmsg(r->e.ep, &msg, FI_PEEK), 0);
		n = fi_cq_sread(r->e.cq, &e, 1, NULL, T_PATIENCE);
		if (n == -FI_EAVAIL)
			assert_int_equal(fi_cq_readerr(r->e.cq, &err, 0), 1);
	} while (n == -FI_EAVAIL && err.err == FI_ENOMSG);
	assert_int_equal(n, 1);
	assert_int_equal(e.len, 1);
	assert_int_equal(fi_trecv(r->e.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 3, 0, NULL), 0);
	t_wait(r->e.cq, NULL, NULL);
	role_close(r);
}

static void peeked(struct role *r)
{
	role_open(r, NULL);
	t_post(fi_tsend(r->e.ep, "p", 1, NULL, r->peer, 3, r), r->e.cq, NULL);
	t_wait(r->e.cq, NULL, NULL);
	role_close(r);
}

static void peeking_process(void **state)
{
	(void)state;
	two_processes(peeker, peeked);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_read),
		cmocka_unit_test(processes_sread),
		cmocka_unit_test(processes_yield),
		cmocka_unit_test(processes_fd),
		cmocka_unit_test(sleeping_process),
		cmocka_unit_test(peeking_process),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
