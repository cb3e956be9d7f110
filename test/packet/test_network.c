/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet service on real sockets, over this host's loopback: two ports in one process. */
#include "network_ends.h"

#include "base/forked.h"
#include "base/log.h"
#include "base/param.h"
#include "packet/channel.h"
#include "packet/packet.h"
#include "packet/port.h"
#include "packet/streams.h"
#include "shared_rc/door.h"
#include "shared_rc/layout.h"

#include <dirent.h>
#include <poll.h>
#include <unistd.h>

/* Both send each size, some at once, and all arrive. */
static void exchange_between(unsigned x, unsigned y, unsigned rounds)
{
	struct side *a = ends_side(x, y), *b = ends_side(y, x);

	if (!a->ch || !b->ch) { /* who was not asked hears of the other by its first message */
		network_send(a->ch ? a : b);
		ends_wait(a->ch ? &b->received : &a->received, 1);
	}
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < NETWORK_LENGTHS; k++) {
			network_send(a);
			network_send(b);
		}
		ends_wait(&b->received, a->sent);
		ends_wait(&a->received, b->sent);
	}
	while (a->ops || b->ops)
		ends_progress_all();
	assert_int_equal(a->failed + b->failed, 0);
}

static void exchange(unsigned rounds)
{
	exchange_between(0, 1, rounds);
}

static void open_and_connect(void)
{
	network_use_lengths();
	ends_open(NULL, NULL, 2);
	ends_connect(0, 1);
}

/*
 * One end leaves and the other hears of it before the ports are closed: a port that is closed waits two seconds for who
 * has not heard, and here that one makes no progress meanwhile.
 */
static void leave(void)
{
	ends_transport->disconnect(ends_side(0, 1)->ch);
	ends_wait_failed(ends_side(1, 0));
	ends_close();
}

/* RC on UDP, with PMTUs of each size. */
static void all_sizes(void **state)
{
	(void)state;
	for (int pmtu = 0; pmtu <= 5; pmtu++) {
		rwk_params.pmtu = pmtu;
		open_and_connect();
		ends_lengths_count = NETWORK_LENGTHS;
		exchange(10);
		assert_false(rwk_packet_by_stream(ends_side(0, 1)->ch));
		assert_int_equal(ends[0]->by_stream + ends[1]->by_stream, 0);
		assert_int_equal(ends_side(0, 1)->ch->send_max, LENGTH);
		leave();
	}
}

/* Waits until the descriptor says that there is something, which an end that is lost would never hear of. */
static void awake(struct end *e)
{
	struct pollfd fd = {.fd = ends_transport->wait_fd(e->port), .events = POLLIN};

	assert_true(poll(&fd, 1, 20000) > 0);
}

/* The receiver is asleep when the message is sent, each time; so is the sender when the answer comes. */
static void sleep_exchange(void)
{
	for (unsigned i = 0; i < 300; i++) {
		struct side *from = ends_side(i % 2, 1 - i % 2), *to = ends_side(1 - i % 2, i % 2);

		for (;;) {
			ends_progress_all();
			if (!ends_transport->arm(to->end->port))
				break;
		}
		network_send(from);
		ends_progress(from->end);
		while (to->received < from->sent) {
			awake(to->end);
			while (ends_progress(to->end) || ends_transport->arm(to->end->port))
				;
			ends_progress(from->end); /* a long one goes on when the first of it is acknowledged */
		}
	}
}

static void sleeping(void **state)
{
	(void)state;
	for (int tcp = 0; tcp < 2; tcp++) {
		rwk_params.link = tcp ? RWK_LINK_TCP : RWK_LINK_AUTO;
		open_and_connect();
		exchange(1);
		sleep_exchange();
		ends_close();
	}
}

#define BIG 3000000

/* Reads and writes a region of the peer's. */
static void regions_both_ways(void)
{
	uint8_t *there = malloc(BIG), *here = malloc(BIG);
	struct iovec iov = {there, BIG};
	struct rwk_rkey key;
	struct ends_op op;

	for (size_t i = 0; i < BIG; i++)
		there[i] = (uint8_t)(i * 7 + i / 251);
	memset(here, 0, BIG);
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1,
		RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key), 0);
	for (int write = 0; write < 2; write++) {
		ends_make_op(&op, write ? RWK_OP_WRITE : RWK_OP_READ, here, BIG - 5);
		op.op.rkey = key;
		op.op.offset = write ? 0 : 5;
		assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
		while (!op.done)
			ends_progress_all();
		assert_int_equal(op.status, 0);
		assert_memory_equal(here, there + (write ? 0 : 5), BIG - 5);
	}
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
	free(there);
	free(here);
}

/*
 * A write to a region that is concealed, or beyond it, or to one that is to be read only, is an error of that request
 * alone, whatever is under way beside it; and the like for a read.
 */
static void denied_by(int link, enum rwk_op_type type)
{
	static uint8_t there[30000], here[30000];
	struct iovec iov = {there, sizeof(there)};
	unsigned wanted = type == RWK_OP_READ ? RWK_EXPOSE_READ : RWK_EXPOSE_WRITE;
	struct rwk_rkey good, bad, other;
	struct ends_op op[5];

	rwk_params.link = link;
	open_and_connect();
	exchange(1);
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, wanted, &good), 0);
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, wanted, &bad), 0);
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, wanted ^ 3, &other), 0);
	ends_transport->conceal(ends_side(1, 0)->ch, &bad);
	memset(here, type == RWK_OP_WRITE ? 7 : 0, sizeof(here));
	memset(there, type == RWK_OP_READ ? 7 : 0, sizeof(there));
	for (int i = 0; i < 5; i++) {
		ends_make_op(&op[i], type, here, sizeof(here));
		op[i].op.rkey = i == 1 ? bad : i == 3 ? other : good;
		op[i].op.offset = i == 2;
		assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op[i].op), 0);
	}
	while (!op[4].done)
		ends_progress_all();
	for (int i = 0; i < 5; i++) {
		assert_int_equal(op[i].done, 1);
		assert_int_equal(op[i].status, i && i < 4 ? -EACCES : 0);
	}
	assert_memory_equal(here, there, sizeof(here));
	ends_transport->conceal(ends_side(1, 0)->ch, &good);
	ends_transport->conceal(ends_side(1, 0)->ch, &other);
	exchange(1);
	assert_int_equal(ends_side(0, 1)->failed + ends_side(1, 0)->failed, 0);
	ends_close();
}

static void denied(void **state)
{
	(void)state;
	denied_by(RWK_LINK_TCP, RWK_OP_WRITE);
	denied_by(RWK_LINK_UDP, RWK_OP_WRITE);
	denied_by(RWK_LINK_UDP, RWK_OP_READ);
}

static void regions(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		rwk_params.rendezvous = how == 1 ? RWK_RENDEZVOUS_WRITE : RWK_RENDEZVOUS_AUTO;
		rwk_params.link = how == 2 ? RWK_LINK_TCP : RWK_LINK_AUTO;
		open_and_connect();
		exchange(1);
		regions_both_ways();
		ends_close();
	}
}

/* One end takes no UDP: the channel goes by the stream, whoever asks, and both clients are told. */
static void without_udp(void **state)
{
	(void)state;
	for (int asks = 0; asks < 3; asks++) {
		rwk_params.udp = true;
		network_use_lengths();
		ends_open(NULL, NULL, 1);
		rwk_params.udp = false;
		ends_add();
		if (asks != 1)
			ends_connect(0, 1);
		if (asks != 0)
			ends_connect(1, 0);
		for (unsigned i = 0; i < 2; i++)
			if (ends_side(i, 1 - i)->ch)
				assert_int_equal(ends_post(ends_side(i, 1 - i)), 0);
		if (asks == 0)
			ends_wait(&ends_side(1, 0)->received, 1);
		else
			ends_wait(&ends_side(0, 1)->received, 1);
		exchange(5);
		for (unsigned i = 0; i < 2; i++) {
			assert_true(rwk_packet_by_stream(ends_side(i, 1 - i)->ch));
			assert_int_equal(ends[i]->by_stream, 1);
			assert_int_equal(ends_side(i, 1 - i)->ch->send_max, 65536);
			assert_int_equal(rwk_packet_counters(ends[i]->port)->fell_back, 1);
		}
		regions_both_ways();
		ends_close();
	}
}

/* UC was asked for: the stream alone carries it, from the beginning. */
static void uc_alone(void **state)
{
	(void)state;
	rwk_params.service = RWK_SERVICE_UC;
	open_and_connect();
	exchange(5);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rwk_packet_by_stream(ends_side(i, 1 - i)->ch));
		assert_null(ends[i]->port->link[RWK_WAY_LOSSY]);
	}
	ends_close();
	rwk_params.tcp = false; /* which leaves nothing */
	assert_int_equal(rwk_network_transport.open(&(struct rwk_port_attr){.key = ENDS_KEY}, &ends_client, NULL,
				 &(struct rwk_port *){NULL}),
		-ENETDOWN);
}

/* A network that was cut for some seconds has broken the stream, and nothing else: there is one again. */
static void stream_again(void **state)
{
	struct rwk_packet_channel *ch;

	(void)state;
	open_and_connect();
	exchange(1);
	ch = rwk_container_of(ends_side(0, 1)->ch, struct rwk_packet_channel, base);
	assert_true(network_has_stream(ch));
	rwk_packet_word(ends[0]->port, rwk_packet_stream(ch), -ETIMEDOUT);
	assert_false(ch->stream_open);
	assert_int_equal(ends_side(0, 1)->failed, 0);
	exchange(1);
	assert_true(network_has_stream(ch));
	exchange(1);
	ends_close();
}

/* The kernel's ordinary limit of a receive buffer: what is sent to it at once arrives all the same. */
static void ordinary_buffer(void **state)
{
	struct side *s;

	(void)state;
	rwk_params.receive_buffer = 212992 / 2; /* the kernel doubles it */
	open_and_connect();
	exchange(1);
	s = ends_side(0, 1);
	for (int i = 0; i < 600; i++)
		assert_in_range(ends_post(s), 0, 1);
	while (s->ops) /* the receiver looks rarely */
		for (unsigned i = 0; i < 50; i++)
			ends_progress(ends[i == 0]);
	ends_wait(&ends_side(1, 0)->received, s->sent);
	ends_close();
}

/* A port that is closed in good order is gone for its peers: over UDP, and over the stream. */
static void good_order(void **state)
{
	(void)state;
	for (int tcp = 0; tcp < 2; tcp++) {
		rwk_params.link = tcp ? RWK_LINK_TCP : RWK_LINK_AUTO;
		open_and_connect();
		exchange(1);
		ends_close_port(0);
		ends_wait_failed(ends_side(1, 0));
		assert_int_equal(ends_side(1, 0)->error, -ECONNRESET);
		ends_close();
	}
}

/* Who has the port now is not who had it before: a channel to that one fails. Its number can be asked for again. */
static void another_at_the_port(void **state)
{
	struct rwk_port_attr attr = {.address.version_srq = RWK_ADDR_VERSION << 24, .key = ENDS_KEY};
	struct rwk_port *p;

	(void)state;
	network_use_lengths();
	ends_open(NULL, NULL, 2);
	memcpy(attr.address.ip, ends[1]->address.ip, 16);
	attr.address.nonce_port = rwk_address_port(&ends[1]->address);
	assert_int_equal(ends_transport->open(&attr, &ends_client, ends[1], &p), -EADDRINUSE);
	ends_close_port(1);
	attr.address.nonce_port = rwk_address_port(&ends[1]->address);
	assert_int_equal(ends_transport->open(&attr, &ends_client, ends[1], &ends[1]->port), 0);
	assert_int_equal(rwk_address_port(&attr.address), rwk_address_port(&ends[1]->address));
	assert_true(attr.address.nonce_port != ends[1]->address.nonce_port);
	ends_connect(0, 1);
	assert_int_equal(ends_post(ends_side(0, 1)), 0);
	ends_wait_failed(ends_side(0, 1));
	assert_int_equal(ends_side(0, 1)->error, -ECONNRESET);
	assert_int_equal(ends[1]->connects, 0);
	ends_close();
}

/* Nobody is there: a full address is one of a process that has ended; of IP and port the time to wait ends it. */
static void nobody_there(void **state)
{
	struct rwk_address to;

	(void)state;
	for (int partial = 0; partial < 2; partial++) {
		rwk_params.connect_wait = 1;
		ends_open(NULL, NULL, 2);
		ends_close_port(1);
		to = ends[1]->address;
		if (partial) {
			to.version_srq = 0;
			to.flags_rank = RWK_ADDR_PARTIAL;
			to.nonce_port = rwk_address_port(&to);
		}
		assert_int_equal(ends_transport->connect(ends[0]->port, &to, ends_side(0, 1), &ends_side(0, 1)->ch), 0);
		ends_wait_failed(ends_side(0, 1));
		assert_int_equal(ends_side(0, 1)->error, partial ? -ECONNREFUSED : -ECONNRESET);
		ends_close();
	}
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Ports and channels come and go, closed first here, then there, and by both ways: no descriptor stays. */
static void descriptors_stay(void **state)
{
	unsigned before = 0;

	(void)state;
	for (int i = 0; i < 40; i++) {
		bool closes = i % 10 == 5; /* which waits, since nobody takes its good-bye meanwhile */

		if (i == 4)
			before = descriptors();
		rwk_params.link = i % 4 == 3 ? RWK_LINK_TCP : RWK_LINK_AUTO;
		open_and_connect();
		exchange(1);
		if (closes)
			ends_close_port(1);
		else
			ends_transport->disconnect(ends_side(i % 2, 1 - i % 2)->ch);
		ends_wait_failed(ends_side(closes ? 0 : 1 - i % 2, closes ? 1 : i % 2));
		ends_close();
	}
	assert_int_equal(descriptors(), before);
}

/* The link is told of a peer that most packets come from; all goes on, asleep too; no descriptor is left of it. */
static void favourite(void **state)
{
	unsigned before = descriptors();

	(void)state;
	open_and_connect();
	exchange(60);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rwk_packet_counters(ends[i]->port)->favourites, 1);
	sleep_exchange();
	exchange(10);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rwk_packet_counters(ends[i]->port)->favourites, 1);
		assert_int_equal(rwk_packet_counters(ends[i]->port)->wrong_icrc, 0);
		assert_int_equal(rwk_packet_counters(ends[i]->port)->wrong_sender, 0);
	}
	ends_close();
	assert_int_equal(descriptors(), before);
}

/* Who has two peers alike has no favourite, until one of them has sent far more. */
static void no_favourite(void **state)
{
	(void)state;
	network_use_lengths();
	ends_open(NULL, NULL, 3);
	ends_connect(0, 1);
	ends_connect(0, 2);
	for (int i = 0; i < 60; i++) {
		exchange_between(0, 1, 1);
		exchange_between(0, 2, 1);
	}
	assert_int_equal(rwk_packet_counters(ends[0]->port)->favourites, 0);
	assert_int_equal(rwk_packet_counters(ends[1]->port)->favourites, 1);
	assert_int_equal(rwk_packet_counters(ends[2]->port)->favourites, 1);
	exchange_between(0, 2, 60);
	assert_int_equal(rwk_packet_counters(ends[0]->port)->favourites, 1);
	exchange_between(0, 1, 120); /* not enough to unseat it */
	assert_int_equal(rwk_packet_counters(ends[0]->port)->favourites, 1);
	ends_close();
}

static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

/*
 * Who shares connections and sleeps wakes by the clock, though nothing comes: what is in its inbox may be from a member
 * that died before it rang the bell (test/models/domain.pml, NO_CLOCK).
 */
static void in_a_domain(void **state)
{
	struct rwk_port_attr attr = {
		.local_peers = 2, .address.version_srq = RWK_ADDR_VERSION << 24, .key = ENDS_KEY, .shared = true};
	struct end e = {0};

	(void)state;
	memcpy(attr.address.ip, loopback, sizeof(loopback));
	assert_int_equal(ends_transport->open(&attr, &ends_client, &e, &e.port), 0);
	for (int i = 0; i < 3; i++) {
		for (int tries = 0; ends_transport->arm(e.port); tries++) {
			assert_in_range(tries, 0, 1000000);
			ends_transport->progress(e.port);
		}
		awake(&e);
		ends_transport->progress(e.port);
	}
	ends_transport->close(e.port);
}

/*
 * A member that sleeps wakes for a visitor whom it has met, since he counts on nobody else: it hears what he says, and
 * lets him in.
 */
static void lets_in_asleep(void **state)
{
	struct rwk_port_attr attr = {.local_peers = 2, .address.version_srq = RWK_ADDR_VERSION << 24, .shared = true};
	struct rwk_src_holding holding = {.fd = {-1, -1, -1, -1, -1}};
	struct rwk_src_knock knock = {.fd = -1};
	const pid_t run = getpid(); /* nobody else is to be in that domain */
	struct rwk_src_secret secret;
	struct end e = {0};

	(void)state;
	memcpy(attr.address.ip, loopback, sizeof(loopback));
	memcpy(attr.key, &run, sizeof(run));
	assert_int_equal(ends_transport->open(&attr, &ends_client, &e, &e.port), 0);
	rwk_src_secret_draw(attr.key, geteuid(), &secret);
	while (!knock.met) {
		ends_transport->progress(e.port);
		assert_int_equal(rwk_src_door_knock(&knock, &secret, 60000, &holding), -EAGAIN);
	}
	e.port->bury_at = RWK_NEVER; /* what it would wake for some time or other */
	while (rwk_src_door_knock(&knock, &secret, 60000, &holding) == -EAGAIN) {
		if (!ends_transport->arm(e.port))
			awake(&e);
		ends_transport->progress(e.port);
	}
	assert_true(holding.id == e.port->domain.id);
	rwk_fork_lock();
	rwk_src_holding_close(&holding);
	rwk_fork_unlock();
	ends_transport->close(e.port);
}

/*
 * Who has been let into a domain and gets no seat, since somebody has its lock and is stopped, has a domain of its own
 * after two seconds.
 */
static void no_seat(void **state)
{
	struct rwk_port_attr attr[2] = {{.local_peers = 2, .shared = true}, {.local_peers = 2, .shared = true}};
	const pid_t run = getpid(); /* nobody else is to be in that domain */
	rwk_time end = rwk_clock_now() + 20 * 1000000000ull;
	struct rwk_src_header *domain;
	struct end e[2] = {{0}};

	(void)state;
	for (int i = 0; i < 2; i++) {
		attr[i].address.version_srq = RWK_ADDR_VERSION << 24;
		memcpy(attr[i].address.ip, loopback, sizeof(loopback));
		memcpy(attr[i].key, &run, sizeof(run));
	}
	assert_int_equal(ends_transport->open(&attr[0], &ends_client, &e[0], &e[0].port), 0);
	assert_non_null(e[0].port->view);
	domain = e[0].port->domain.memory;
	assert_int_equal(pthread_mutex_lock(&domain->lock), 0);
	assert_int_equal(ends_transport->open(&attr[1], &ends_client, &e[1], &e[1].port), 0);
	assert_null(e[1].port->view);
	assert_ptr_equal(e[1].port->domain.memory, domain);
	while (!e[1].port->view && rwk_clock_now() < end)
		ends_transport->progress(e[1].port);
	assert_non_null(e[1].port->view);
	assert_ptr_not_equal(e[1].port->domain.memory, domain);
	assert_true(e[1].port->domain.id != e[0].port->domain.id);
	assert_int_equal(pthread_mutex_unlock(&domain->lock), 0);
	for (int i = 0; i < 2; i++)
		ends_transport->close(e[i].port);
}

/*
 * A port that has been left lingers until its peers have what was sent, and the memory that they could reach is its
 * owner's again: what a peer has written to it before it heard of the end does not come there.
 */
static void left_alone(void **state)
{
	static uint8_t there[20000], here[20000];
	struct iovec iov = {there, sizeof(there)};
	struct rwk_port *port;
	struct rwk_rkey key;
	struct ends_op op;

	(void)state;
	memset(here, 7, sizeof(here));
	open_and_connect();
	exchange(1);
	port = ends[1]->port;
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_WRITE, &key), 0);
	ends_make_op(&op, RWK_OP_WRITE, here, sizeof(here));
	op.op.rkey = key;
	assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
	ends_progress(ends[0]);
	ends_transport->leave(port);
	while (ends_transport->linger(port))
		ends_progress(ends[0]);
	assert_true(op.done);
	assert_true(op.status);
	assert_int_equal(ends_side(0, 1)->failed, 1);
	for (size_t i = 0; i < sizeof(there); i++)
		assert_int_equal(there[i], 0);
	ends_close();
}

static unsigned in_vain;

static void hear_in_vain(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	in_vain += strstr(text, "closed although what was sent last is not known to have come (1 of") != NULL;
}

/* A port whose peer answers is closed in silence; one that has waited for an answer in vain says so. */
static void unanswered(void **state)
{
	(void)state;
	rwk_log_set_sink(hear_in_vain);
	rwk_log_set_level(RWK_LOG_INFO);
	for (unsigned silent = 0; silent < 2; silent++) {
		in_vain = 0;
		open_and_connect();
		exchange(1);
		network_send(ends_side(1, 0));
		ends_transport->leave(ends[1]->port);
		while (ends_transport->linger(ends[1]->port)) {
			if (!silent)
				ends_progress(ends[0]);
		}
		ends_close_port(1);
		assert_int_equal(in_vain, silent);
		ends_close();
	}
	rwk_log_set_level(RWK_LOG_WARN);
	rwk_log_set_sink(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_NET(all_sizes),
		ENDS_NET(sleeping),
		ENDS_NET(in_a_domain),
		ENDS_NET(lets_in_asleep),
		ENDS_NET(no_seat),
		ENDS_NET(regions),
		ENDS_NET(denied),
		ENDS_NET(without_udp),
		ENDS_NET(uc_alone),
		ENDS_NET(stream_again),
		ENDS_NET(ordinary_buffer),
		ENDS_NET(good_order),
		ENDS_NET(another_at_the_port),
		ENDS_NET(nobody_there),
		ENDS_NET(descriptors_stay),
		ENDS_NET(favourite),
		ENDS_NET(no_favourite),
		ENDS_NET(left_alone),
		ENDS_NET(unanswered),
	};

	return cmocka_run_group_tests_name("packet/network", tests, NULL, NULL);
}
