/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: the evidence that the processes of a node have together. Ranks are processes that all share one domain, on this
 * host's loopback: each is connected to each, and has what it knows written into memory that the test looks into.
 *
 * Links: udp.
 */
#include "rwk_test.h"

#include "base/list.h"
#include "base/param.h"
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/streams.h"
#include "shared_rc/internal.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS    7
#define ALL      ((1u << RANKS) - 1)
#define PATIENCE 20.0 /* s */
#define DEATH    20.0 /* s: a wait that ends by itself; three are promised */
#define SAID     400u /* messages, more than a look into an inbox takes out of it; */
#define LENGTH   1000 /* bytes of each: half an inbox holds them */

/* What a rank says of itself, and is told. */
struct rank {
	pid_t pid;
	struct rwk_address address;
	_Atomic bool open, close, closed, reach;
	_Atomic bool compute, computes; /* it is to make no progress; it makes none */
	_Atomic unsigned say_to;        /* a bit for each rank that it is to say something to */
	_Atomic unsigned came[RANKS];   /* messages from each, of those */
	_Atomic unsigned targets;       /* in use in the domain */
	_Atomic unsigned heard;         /* a bit for each rank that a message has come from */
	_Atomic unsigned gone;          /* and that has failed; */
	_Atomic unsigned strange;       /* not as the end of its process */
	_Atomic uint32_t srqn;
	_Atomic uint32_t holder[RANKS]; /* SRQ number of each rank's holder, as this one sees it */
	_Atomic unsigned streams;       /* TCP connections that it has */
	_Atomic unsigned with;          /* a bit for each rank that it has a stream with */
};

static struct rank *ranks;
static struct rwk_channel *channels[RANKS];
static unsigned me;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * A rank.
 */

static int on_connected(void *client, struct rwk_channel *ch, const struct rwk_address *from)
{
	(void)client;
	for (unsigned i = 0; i < RANKS; i++) {
		if (ranks[i].open && ranks[i].address.nonce_port == from->nonce_port) {
			ch->peer = &ranks[i];
			channels[i] = ch;
			return 0;
		}
	}
	return -EACCES;
}

static void on_message(
	void *client, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	unsigned from = (unsigned)((struct rank *)ch->peer - ranks);

	(void)client;
	(void)env;
	(void)payload;
	ranks[me].came[from] += len == LENGTH;
	ranks[me].heard |= 1u << from;
}

static void on_failed(void *client, struct rwk_channel *ch, int err)
{
	unsigned bit = 1u << ((struct rank *)ch->peer - ranks);

	(void)client;
	if (err != -ECONNRESET)
		ranks[me].strange |= bit;
	ranks[me].gone |= bit;
}

static unsigned count_streams(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_storage a;
		socklen_t len = sizeof(a), type_len = sizeof(int);
		int type = 0;

		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len);
		count += type == SOCK_STREAM && !getpeername(fd, (struct sockaddr *)&a, &len) &&
			 (a.ss_family == AF_INET || a.ss_family == AF_INET6);
	}
	return count;
}

static unsigned count_targets(const struct rwk_src_view *v)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < v->size.targets; i++)
		count += rwk_src_entry(v, i)->qpn != 0;
	return count;
}

static void tell(struct rwk_port *port)
{
	unsigned with = 0;

	if (port->view)
		ranks[me].targets = count_targets(port->view);
	ranks[me].streams = count_streams();
	for (unsigned i = 0; i < RANKS; i++) {
		struct rwk_packet_channel *ch = (struct rwk_packet_channel *)channels[i];

		if (ch && ch->shared)
			ranks[me].holder[i] = rwk_src_holder(port->view, ch->target);
		with |= ch && (ch->stream_open || ch->stream_asked) ? 1u << i : 0;
	}
	ranks[me].with = with;
}

/* A stream for each pair, as if each had had to look for all others. */
static void reach_all(void)
{
	for (unsigned i = 0; i < RANKS; i++)
		if (channels[i])
			rwk_packet_reach((struct rwk_packet_channel *)channels[i]);
}

static void say(struct rwk_port *port, struct rwk_channel *ch)
{
	static const uint8_t bytes[LENGTH];
	const struct rwk_envelope env = {.kind = 1};

	for (unsigned n = 0; n < SAID;) {
		n += !rwk_network_transport.send(ch, &env, bytes, LENGTH);
		rwk_network_transport.progress(port);
	}
}

static void live(void)
{
	struct rwk_port_attr attr = {.local_peers = RANKS,
		.remote_peers = RANKS,
		.shared = true,
		.address = {.version_srq = RWK_ADDR_VERSION << 24, .job = 1, .node = 1}};
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	const struct rwk_envelope env = {.kind = 1};
	struct rwk_client client = rwk_packet_nobody; /* no message here has a payload */
	struct rwk_port *port;
	unsigned greeted = 0;
	double told_at = 0;

	memcpy(attr.address.ip, loopback, sizeof(loopback));
	/* Of this run alone: the domain is all its processes' who have the key, and another run may be under way. */
	snprintf((char *)attr.key, sizeof(attr.key), "of the witnesses of %d", (int)getppid());
	client.connected = on_connected;
	client.message = on_message;
	client.failed = on_failed;
	if (rwk_network_transport.open(&attr, &client, NULL, &port))
		_exit(1);
	ranks[me].address = attr.address;
	ranks[me].open = true;
	for (;;) {
		int n = rwk_network_transport.progress(port);

		for (unsigned i = 0; i < RANKS; i++) {
			if (i > me && ranks[i].open && !channels[i] && port->view)
				rwk_network_transport.connect(port, &ranks[i].address, &ranks[i], &channels[i]);
			if (channels[i] && !(greeted & 1u << i) &&
				!rwk_network_transport.send(channels[i], &env, NULL, 0))
				greeted |= 1u << i;
		}
		if (port->view)
			ranks[me].srqn = rwk_src_srqn(port->view);
		while (ranks[me].compute) {
			ranks[me].computes = true;
			usleep(500);
		}
		ranks[me].computes = false;
		for (unsigned i = 0; i < RANKS; i++)
			if (ranks[me].say_to & 1u << i)
				say(port, channels[i]);
		ranks[me].say_to = 0;
		if (ranks[me].reach) {
			reach_all();
			ranks[me].reach = false;
		}
		if (seconds() > told_at + 0.02) {
			tell(port);
			told_at = seconds();
		}
		if (ranks[me].close)
			break;
		if (!n)
			usleep(500);
	}
	rwk_network_transport.close(port);
	ranks[me].streams = count_streams();
	ranks[me].closed = true;
	for (;;)
		pause();
}

/*
 * The test.
 */

static unsigned living; /* a bit for each */

static unsigned all_but(unsigned i)
{
	return ALL & ~(1u << i);
}

static void begin(void)
{
	double end = seconds() + PATIENCE;

	rwk_param_load();
	ranks = mmap(NULL, RANKS * sizeof(*ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(ranks != MAP_FAILED);
	for (me = 0; me < RANKS; me++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid)
			ranks[me].pid = pid;
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			live();
		}
	}
	living = ALL;
	for (unsigned i = 0; i < RANKS;) {
		assert_true(seconds() < end);
		i += ranks[i].heard == all_but(i);
		usleep(1000);
	}
}

static void end_rank(unsigned i)
{
	kill(ranks[i].pid, SIGKILL);
	assert_int_equal(waitpid(ranks[i].pid, NULL, 0), ranks[i].pid);
	living &= ~(1u << i);
}

static void end(void)
{
	for (unsigned i = 0; i < RANKS; i++)
		if (living & 1u << i)
			end_rank(i);
	munmap(ranks, RANKS * sizeof(*ranks));
}

/* All of `who` hear of the end of exactly `gone` in time, and of it as of an end. */
static void expect_gone(unsigned who, unsigned gone)
{
	double end = seconds() + DEATH;

	for (unsigned i = 0; i < RANKS; i++) {
		if (!(who & 1u << i))
			continue;
		while (ranks[i].gone != gone) {
			assert_true(seconds() < end);
			assert_int_equal(ranks[i].gone & ~gone, 0);
			usleep(1000);
		}
		assert_int_equal(ranks[i].strange, 0);
	}
}

static unsigned rank_of(uint32_t srqn)
{
	for (unsigned i = 0; i < RANKS; i++)
		if (srqn && (living & 1u << i) && ranks[i].srqn == srqn)
			return i;
	return RANKS;
}

/* Who holds rank i, as all others see it; RANKS: nobody, or they do not agree yet. */
static unsigned holder_of(unsigned i)
{
	unsigned holder = RANKS + 1;

	for (unsigned j = 0; j < RANKS; j++) {
		unsigned seen = rank_of(ranks[j].holder[i]);

		if (j == i || !(living & 1u << j))
			continue;
		holder = holder > RANKS ? seen : holder == seen ? seen : RANKS;
	}
	return holder;
}

static unsigned count_of_streams(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < RANKS; i++)
		count += living & 1u << i ? ranks[i].streams : 0;
	return count;
}

/* Every rank has a holder that lives, and there are no more streams than that needs: two ends each. */
static void settle(void)
{
	double end = seconds() + PATIENCE;

	for (unsigned i = 0; i < RANKS;) {
		assert_true(seconds() < end);
		if (!(living & 1u << i) || holder_of(i) < RANKS)
			i++;
		else
			usleep(5000);
	}
	while (count_of_streams() > 2 * (unsigned)__builtin_popcount(living)) {
		assert_true(seconds() < end);
		usleep(5000);
	}
}

/* One that has no stream with rank i, nor is going to: it neither holds it nor is held by it. RANKS: all have. */
static unsigned witness_of(unsigned i)
{
	for (unsigned j = 0; j < RANKS; j++)
		if (j != i && !(ranks[j].with & 1u << i) && !(ranks[i].with & 1u << j) && holder_of(i) != j &&
			holder_of(j) != i)
			return j;
	return RANKS;
}

/* A rank that has a witness, other than 4. Who holds whom is chance: not each has one. */
static unsigned victim_with(unsigned *witness)
{
	double end = seconds() + PATIENCE;

	for (unsigned i = 3;; i = (i + 1) % RANKS) {
		*witness = i == 4 ? RANKS : witness_of(i);
		if (*witness < RANKS)
			return i;
		assert_true(seconds() < end);
		usleep(1000);
	}
}

static void stop_all(unsigned who, int signal)
{
	for (unsigned i = 0; i < RANKS; i++)
		if (who & 1u << i)
			kill(ranks[i].pid, signal);
}

/*
 * S1-9: many streams become few, which are enough: the holder of one that dies is stopped, as all others are but one;
 * then the holder of one dies together with it; then who made the domain.
 */
static void killed(void **state)
{
	unsigned victim, holder, witness, stopped;

	(void)state;
	begin();
	for (unsigned i = 0; i < RANKS; i++)
		ranks[i].reach = true;
	settle();
	victim = victim_with(&witness);
	stopped = living & ~(1u << victim | 1u << witness);
	stop_all(stopped, SIGSTOP);
	end_rank(victim);
	expect_gone(1u << witness, 1u << victim);
	stop_all(stopped, SIGCONT);
	expect_gone(living, 1u << victim);

	settle();
	victim = 4;
	holder = holder_of(victim);
	assert_in_range(holder, 0, RANKS - 1);
	stop_all(1u << victim | 1u << holder, SIGSTOP); /* not even it sees the other's end */
	end_rank(holder);
	end_rank(victim);
	expect_gone(living, ALL & ~living);
	if (living & 1)
		end_rank(0);
	expect_gone(living, ALL & ~living);
	end();
}

/* Who closes in good order is heard of by all, the others go on being looked after; and the one after the last. */
static void left(void **state)
{
	static const unsigned order[] = {0, 4, 2, 6};
	unsigned gone = 0;

	(void)state;
	begin();
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		ranks[order[i]].close = true;
		gone |= 1u << order[i];
		expect_gone(all_but(0) & ~gone, gone);
	}
	end_rank(5);
	expect_gone(1u << 1 | 1u << 3, gone | 1u << 5);
	end();
}

/*
 * One computes while another says much to it and closes: the target is free by then, and nothing is lost with it,
 * though most waits in the inbox behind what is taken out at a time.
 */
static void left_behind(void **state)
{
	double until;

	(void)state;
	begin();
	ranks[5].compute = true;
	until = seconds() + PATIENCE;
	while (!ranks[5].computes || ranks[0].targets != RANKS) {
		assert_true(seconds() < until);
		usleep(1000);
	}
	ranks[3].say_to = 1u << 5;
	until = seconds() + PATIENCE;
	while (ranks[3].say_to) {
		assert_true(seconds() < until);
		usleep(1000);
	}
	ranks[3].close = true;
	until = seconds() + PATIENCE;
	while (!ranks[3].closed || ranks[0].targets != RANKS - 1) {
		assert_true(seconds() < until);
		usleep(1000);
	}
	assert_int_equal(ranks[5].came[3], 0);
	usleep(300000); /* now it is time to look who has gone */
	ranks[5].compute = false;
	expect_gone(all_but(3), 1u << 3);
	assert_int_equal(ranks[5].came[3], SAID);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed),
		cmocka_unit_test(left),
		cmocka_unit_test(left_behind),
	};

	return cmocka_run_group_tests_name("packet/evidence", tests, NULL, NULL);
}
