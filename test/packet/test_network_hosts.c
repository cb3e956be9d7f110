/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC between hosts that are namespaces of this test's own (as root; skipped otherwise), one of which has several IPs:
 *
 *   host 0                      host 1
 *   v0 10.9.0.1/24 -----------  v1 10.9.0.2/24, 10.9.0.3/24
 *
 * From host 1 the way to host 0 leaves from 10.9.0.2. The domain's socket there is bound to no IP, so its
 * acknowledgements do as well.
 */
#include "links/udp_hosts.h"
#include "network_ends.h"

#include "base/param.h"
#include "packet/packet.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
#define MESSAGES     400 /* more than a window */

static void set_ip(struct rwk_address *a, const char *ip)
{
	memset(a->ip + 10, 0xff, 2);
	assert_int_equal(inet_pton(AF_INET, ip, a->ip + 12), 1);
}

/* What a process is: ends[host] is its own, the other its peer's. */
struct talker {
	int host;
	const char *ip; /* bound to it; or to none, and called by this network's */
	bool bound;
	bool asks;
};

static struct rwk_address open_own(const struct talker *t, struct end *e)
{
	const pid_t run = getppid(); /* nobody else is to be in those domains */
	struct rwk_port_attr attr = {.local_peers = 1, .remote_peers = 1, .shared = true};

	attr.address.version_srq = RWK_ADDR_VERSION << 24;
	attr.address.node = (uint32_t)t->host + 1;
	memcpy(attr.key, &run, sizeof(run));
	if (t->bound)
		set_ip(&attr.address, t->ip);
	else
		rwk_params.interfaces = (char *)t->ip;
	assert_int_equal(ends_transport->open(&attr, &ends_client, e, &e->port), 0);
	rwk_params.interfaces = NULL;
	return attr.address;
}

static void meet(const struct talker *t, int fd)
{
	const struct rwk_address nobody = {.job = 0};
	struct end *own, *peer;

	ends_open(NULL, NULL, 0);
	for (int i = 0; i < 2; i++)
		ends_add_foreign(&nobody);
	own = ends[t->host];
	peer = ends[1 - t->host];
	own->address = open_own(t, own);
	assert_int_equal(write(fd, &own->address, sizeof(own->address)), sizeof(own->address));
	assert_int_equal(read(fd, &peer->address, sizeof(peer->address)), sizeof(peer->address));
}

/* A process: messages go to and fro, and all arrive. Was the connection shared? */
static bool talk(const struct talker *t, int fd)
{
	rwk_time end = rwk_clock_now() + 20 * 1000000000ull;
	unsigned me = (unsigned)t->host;
	struct side *s;
	bool shared = false;

	udp_host_enter(t->host);
	meet(t, fd);
	if (t->asks)
		ends_connect(me, 1 - me);
	s = ends_side(me, 1 - me);
	while ((s->sent < MESSAGES || s->received < MESSAGES) && rwk_clock_now() < end) {
		if (s->ch && s->sent < MESSAGES && s->sent < s->received + t->asks) {
			shared = rwk_packet_is_shared(s->ch); /* while the peer waits, and does not close */
			network_send(s);
		}
		ends_turn();
	}
	assert_int_equal(s->sent + s->received, 2 * MESSAGES);
	ends_close();
	return shared;
}

enum { ALONE = 50, SHARED }; /* exit codes */

/* Begins a process, which talks by fd[host] with the other. */
static pid_t begin(const struct talker *t, const int fd[2])
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	close(fd[1 - t->host]);
	_exit(talk(t, fd[t->host]) ? SHARED : ALONE);
}

static int end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* An end shares only if what its domain sends leaves from where it is known to be; and has a connection else. */
static void several_addresses(void **state)
{
	static const struct {
		const char *ip;
		bool bound;
		int code;
	} cases[] = {
		{"10.9.0.2", true, SHARED},
		{"10.9.0.2/32", false, SHARED},
		{"10.9.0.3", true, ALONE},
		{"10.9.0.3/32", false, ALONE},
	};

	(void)state;
	network_use_lengths();
	for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct talker t[2] = {{.host = 0, .ip = "10.9.0.1", .bound = true, .asks = i % 2},
			{.host = 1, .ip = cases[i / 2].ip, .bound = cases[i / 2].bound, .asks = !(i % 2)}};
		pid_t pid[2];
		int fd[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
		for (int k = 0; k < 2; k++)
			pid[k] = begin(&t[k], fd);
		for (int k = 0; k < 2; k++) {
			close(fd[k]);
			assert_int_equal(end(pid[k]), cases[i / 2].code);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {ENDS_NET(several_addresses)};

	if (udp_hosts_make()) {
		print_message("no namespaces of its own\n");
		return EXIT_SKIPPED;
	}
	udp_host_cable(0, "v0", 1, "v1", 1500);
	udp_host_run(0, "ip addr add 10.9.0.1/24 dev v0");
	udp_host_run(1, "ip addr add 10.9.0.2/24 dev v1 && ip addr add 10.9.0.3/24 dev v1");
	return cmocka_run_group_tests_name("packet/network_hosts", tests, NULL, NULL);
}
