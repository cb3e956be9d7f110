/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts that are one by all that their systems say of themselves, as virtual machines are that were restored from
 * one snapshot: namespaces of this test's own (as root; skipped otherwise), whose node was computed before.
 *
 *   host 0                                 host 1
 *   v0 10.9.0.1 -------------------------- v1 10.9.0.2
 *   198.51.100.0/24, of no interface
 *
 * Links: none, it is about the choice.
 */
#include "links/udp_hosts.h"
#include "rwk_test.h"

#include "engine/internal.h"
#include "engine/job.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
#define PATIENCE     60 /* seconds */

/* An operation's context: 0, 1 when it has gone well, or negative errno. */
static void complete(void *owner, const struct rwk_completion *c)
{
	(void)owner;
	*(int *)c->context = c->status ? c->status : 1;
}

/* NULL: by the host's own IP. */
static struct rwk_engine *engine_open(const char *ip)
{
	struct rwk_engine_attr attr = {.complete = complete, .tx_limit = 100};
	struct rwk_engine *e;

	if (ip)
		assert_int_equal(inet_pton(AF_INET6, ip, attr.ip), 1);
	assert_int_equal(rwk_engine_open(&attr, &e), 0);
	return e;
}

static int wait_for(const int *done, struct rwk_engine *e, struct rwk_engine *other)
{
	time_t end = time(NULL) + PATIENCE;

	while (!*done && time(NULL) < end) {
		rwk_engine_progress(e);
		if (other)
			rwk_engine_progress(other);
	}
	return *done;
}

static void receive(struct rwk_engine *e, int *in, int *done)
{
	const struct iovec iov = {in, sizeof(*in)};

	*done = 0;
	assert_int_equal(rwk_engine_recv(e, RWK_TAGGED, NULL, &iov, 1, 1, 0, 0, done), 0);
}

static void send_to(struct rwk_engine *e, struct rwk_peer *to, int *out, int *done)
{
	const struct iovec iov = {out, sizeof(*out)};

	*done = 0;
	assert_int_equal(rwk_engine_send(e, RWK_TAGGED, to, &iov, 1, 1, 0, RWK_F_DELIVERED, done), 0);
}

/* Of host 1: sends back what it gets. Its exit status. */
static int answer(int fd)
{
	int done, n = 0;
	struct rwk_address to;
	struct rwk_engine *e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	udp_host_enter(1);
	e = engine_open(NULL);
	receive(e, &n, &done);
	if (write(fd, rwk_engine_address(e), sizeof(to)) != sizeof(to) || read(fd, &to, sizeof(to)) != sizeof(to))
		return 1;
	if (wait_for(&done, e, NULL) != 1)
		return 2;
	send_to(e, rwk_engine_peer(e, &to), &n, &done);
	if (wait_for(&done, e, NULL) != 1)
		return 3;
	rwk_engine_close(e);
	return 0;
}

/* The other host's process is reached by the network, although it says that it is on this node. */
static void elsewhere(void **state)
{
	struct rwk_engine *e = engine_open(NULL);
	int fd[2], sent, got, status, in = 0, out = 4711;
	struct rwk_address to;
	struct rwk_peer *p;
	pid_t child;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	child = fork();
	if (!child) {
		close(fd[0]);
		_exit(answer(fd[1]));
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], &to, sizeof(to)), sizeof(to));
	assert_int_equal(write(fd[0], rwk_engine_address(e), sizeof(to)), sizeof(to));
	assert_int_equal(to.node, rwk_engine_address(e)->node);
	p = rwk_engine_peer(e, &to);
	receive(e, &in, &got);
	send_to(e, p, &out, &sent);
	assert_int_equal(wait_for(&sent, e, NULL), 1);
	assert_ptr_equal(p->channel->port, e->network_port);
	assert_int_equal(wait_for(&got, e, NULL), 1);
	assert_int_equal(in, out);
	while (!waitpid(child, &status, WNOHANG))
		rwk_engine_progress(e);
	assert_int_equal(status, 0);
	close(fd[0]);
	rwk_engine_close(e);
}

/* A process of this host is reached by shared memory by whatever IP it is known. */
static void by_other_ip(void **state)
{
	struct rwk_engine *e = engine_open(NULL), *other = engine_open("::ffff:198.51.100.1");
	struct rwk_peer *p = rwk_engine_peer(e, rwk_engine_address(other));
	int sent, got, in = 0, out = 4712;

	(void)state;
	assert_false(rwk_ip_is_local(rwk_engine_address(other)->ip));
	receive(other, &in, &got);
	send_to(e, p, &out, &sent);
	assert_int_equal(wait_for(&sent, e, other), 1);
	assert_ptr_equal(p->channel->port, e->port);
	assert_int_equal(wait_for(&got, e, other), 1);
	assert_int_equal(in, out);
	rwk_engine_close(other);
	rwk_engine_close(e);
}

/* One of this host's that has ended is known to be dead. */
static void ended(void **state)
{
	struct rwk_engine *e = engine_open(NULL), *other = engine_open(NULL);
	struct rwk_peer *p = rwk_engine_peer(e, rwk_engine_address(other));
	int sent, out = 4713;

	(void)state;
	rwk_engine_close(other);
	send_to(e, p, &out, &sent);
	assert_int_equal(wait_for(&sent, e, NULL), -ECONNRESET);
	rwk_engine_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elsewhere),
		cmocka_unit_test(by_other_ip),
		cmocka_unit_test(ended),
	};
	int rc;

	rwk_param_load();
	if (rwk_job_load())
		return 1;
	if (udp_hosts_make()) {
		printf("network namespaces are not to be had here\n");
		return EXIT_SKIPPED;
	}
	udp_host_cable(0, "v0", 1, "v1", 1500);
	udp_host_run(0, "ip addr add 10.9.0.1/24 dev v0");
	udp_host_run(1, "ip addr add 10.9.0.2/24 dev v1");
	udp_host_run(0, "ip route add local 198.51.100.0/24 dev lo");
	rc = cmocka_run_group_tests_name("engine/snapshot", tests, NULL, NULL);
	rwk_job_unload();
	return rc;
}
