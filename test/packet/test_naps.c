/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: two members of a domain, of which one sleeps while the other polls. Real sockets, over this host's loopback; two
 * ports in one process.
 *
 * Links: udp.
 */
#include "network_ends.h"

#include "base/param.h"
#include "packet/port.h"
#include "shared_rc/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

static struct {
	struct end member[2];
	int silent; /* a socket whose owner never answers */
	struct side nobody;
} f;

/* No wait here is longer: 20 seconds from now. */
static rwk_time patience(void)
{
	return rwk_clock_now() + 20 * 1000000000ull;
}

static struct rwk_port *port(unsigned i)
{
	return f.member[i].port;
}

static int open_two(void **state)
{
	const pid_t run = getpid(); /* nobody else is to be in that domain */

	ends_use(state);
	rwk_params.tcp = false; /* by a stream it would be known soon that nobody answers */
	memset(&f, 0, sizeof(f));
	for (unsigned i = 0; i < 2; i++) {
		struct rwk_port_attr attr = {
			.local_peers = 2, .address.version_srq = RWK_ADDR_VERSION << 24, .shared = true};

		memcpy(attr.address.ip, loopback, sizeof(loopback));
		memcpy(attr.key, &run, sizeof(run));
		assert_int_equal(ends_transport->open(&attr, &ends_client, &f.member[i], &f.member[i].port), 0);
		assert_non_null(port(i)->view);
	}
	assert_ptr_equal(port(0)->domain.memory, port(1)->domain.memory);
	f.silent = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(f.silent >= 0);
	return 0;
}

static int close_two(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		ends_transport->close(port(i));
	close(f.silent);
	return 0;
}

static void progress(unsigned i, unsigned times)
{
	while (times--)
		ends_transport->progress(port(i));
}

/* From now on this one has a channel: it waits for somebody who never answers. */
static void give_channel(unsigned i)
{
	struct rwk_address to = {.version_srq = RWK_ADDR_VERSION << 24};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	assert_int_equal(bind(f.silent, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(f.silent, (struct sockaddr *)&at, &len), 0);
	memcpy(to.ip, loopback, sizeof(loopback));
	to.nonce_port = 77ull << 16 | ntohs(at.sin_port);
	assert_int_equal(ends_transport->connect(port(i), &to, &f.nobody, &f.nobody.ch), 0);
}

static int socket_of(unsigned i, int way)
{
	struct rwk_link *l = port(i)->link[way];

	return l->ops->wait_fd(l, 0);
}

/* Does that port's sleeper wait for that socket? */
static bool watches(unsigned i, int way)
{
	struct epoll_event e = {.events = 0};
	int rc = epoll_ctl(port(i)->epoll, EPOLL_CTL_DEL, socket_of(i, way), &e);

	assert_true(!rc || errno == ENOENT);
	return !rc;
}

static void fall_asleep(unsigned i)
{
	rwk_time end = patience();

	while (ends_transport->arm(port(i))) {
		assert_true(rwk_clock_now() < end);
		progress(i, 1);
	}
}

static void wait_until_readable(unsigned i)
{
	struct pollfd fd = {.fd = ends_transport->wait_fd(port(i)), .events = POLLIN};

	assert_int_equal(poll(&fd, 1, 20000), 1);
}

/* Member 1 goes to sleep while member 0 polls: again if that has lost its core for so long that nobody sees it poll. */
static void sleep_beside_one_that_polls(void)
{
	rwk_time end = patience();

	do {
		assert_true(rwk_clock_now() < end);
		progress(1, 1);
		progress(0, 1000);
		fall_asleep(1);
	} while (!port(1)->left_since);
}

/*
 * Who sleeps beside a sibling that polls leaves the domain's socket to it, not its own. It wakes from each nap by the
 * clock, and when the sibling polls no more it sleeps on that socket, too.
 */
static void nap(void **state)
{
	rwk_time end = patience();

	(void)state;
	port(1)->bury_at = RWK_NEVER; /* what it would wake for some time or other */
	give_channel(0);
	sleep_beside_one_that_polls();
	assert_false(watches(1, RWK_WAY_DOMAIN));
	assert_true(watches(1, RWK_WAY_LOSSY));
	do {
		assert_true(rwk_clock_now() < end);
		wait_until_readable(1);
		progress(1, 1);
		fall_asleep(1);
	} while (port(1)->left_since);
	assert_true(watches(1, RWK_WAY_DOMAIN));
}

/* Nobody leaves it to one that sleeps itself, nor to one without a channel, which has other things to look for. */
static void no_nap(void **state)
{
	(void)state;
	progress(0, 1000);
	fall_asleep(1);
	assert_int_equal(port(1)->left_since, 0);
	assert_true(watches(1, RWK_WAY_DOMAIN));
	give_channel(0);
	sleep_beside_one_that_polls();
	fall_asleep(0);
	progress(1, 1);
	fall_asleep(1);
	assert_int_equal(port(1)->left_since, 0);
}

/* So many packets that are none have come to member i. */
static uint64_t rubbish(unsigned i)
{
	return rwk_packet_counters(port(i))->malformed;
}

static void send_rubbish(void)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	int fd = socket_of(1, RWK_WAY_DOMAIN);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(sendto(fd, "none", 4, 0, (struct sockaddr *)&at, len), 4);
}

/* What comes to the domain's socket a member takes at once that has a channel, else when it looks, now and then. */
static void looks(void **state)
{
	(void)state;
	progress(1, 1024);
	assert_int_equal(port(1)->epoch % 64, 0);
	send_rubbish();
	progress(1, 63);
	assert_int_equal(rubbish(1), 0);
	progress(1, 1);
	assert_int_equal(rubbish(1), 1);
	send_rubbish();
	give_channel(1);
	progress(1, 1);
	assert_int_equal(rubbish(1), 2);
}

/* Its next progress is not one of those in which any member looks. */
static void between_looks(unsigned i)
{
	while (port(i)->epoch % 64)
		port(i)->epoch++;
}

/*
 * Who is back from a nap leaves the socket alone, if it sees the sibling poll (which may have lost its core); but not
 * when it is to take all that has come, as before it gives up a peer.
 */
static void back_from_a_nap(void **state)
{
	rwk_time end = patience();
	uint64_t before;

	(void)state;
	give_channel(0);
	do {
		assert_true(rwk_clock_now() < end);
		sleep_beside_one_that_polls();
		between_looks(1);
		before = rubbish(1);
		send_rubbish();
		progress(1, 1);
	} while (!port(1)->left_since);
	assert_int_equal(rubbish(1), before);
	port(1)->starved = true;
	progress(1, 1);
	assert_int_equal(rubbish(1), before + 1);
}

/* Who is back from a nap and sees nobody poll, or was woken by that socket, looks. (A clock that is ahead lies.) */
static void nobody_polls(void **state)
{
	uint64_t before = rubbish(1);

	(void)state;
	give_channel(0);
	sleep_beside_one_that_polls();
	between_looks(1);
	send_rubbish();
	rwk_src_polls(port(0)->view, rwk_clock_now() + 1000000000);
	progress(1, 1);
	assert_int_equal(rubbish(1), before + 1);
	fall_asleep(1);
	assert_true(watches(1, RWK_WAY_DOMAIN));
	between_looks(1);
	send_rubbish();
	progress(1, 1);
	assert_int_equal(rubbish(1), before + 2);
}

#define WITH_TWO(test)                                                                                                 \
	cmocka_unit_test_prestate_setup_teardown(test, open_two, close_two, (void *)&rwk_network_transport)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO(nap),
		WITH_TWO(no_nap),
		WITH_TWO(looks),
		WITH_TWO(back_from_a_nap),
		WITH_TWO(nobody_polls),
	};

	return cmocka_run_group_tests_name("packet/naps", tests, NULL, NULL);
}
