/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP link over loopback, each test over IPv4 and IPv6:
 *
 *   a -- lo -- b
 */
#include "udp_pair.h"

#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <arpa/inet.h>
#include <sys/wait.h>
#include <unistd.h>

static struct udp_end *a, *b;

static void open_ends(const uint8_t ip[16])
{
	a = udp_end_open(ip, 0);
	b = udp_end_open(ip, 0);
}

static void close_ends(void)
{
	udp_end_close(a);
	udp_end_close(b);
}

/* Sends `count` packets of the sizes that `size` says for each, flushes at the end, and looks at what arrives. */
static void check_sizes(size_t (*size)(unsigned i), unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(udp_send(a, &b->here, i, size(i)), 0);
	udp_flush(a);
	udp_receive(b, count);
	assert_int_equal(b->arrived, count);
	assert_int_equal(b->damaged, 0);
	assert_memory_equal(&b->from, &a->here, sizeof(a->here));
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(b->length[i], size(i));
		assert_int_equal(b->number[i], size(i) >= 4 ? i : 0);
	}
	assert_int_equal(udp_counters(a).packets_out, count);
	assert_int_equal(udp_counters(b).packets_in, count);
	assert_int_equal(udp_counters(a).bytes_out, udp_counters(b).bytes_in);
}

static size_t equal(unsigned i)
{
	(void)i;
	return 1000;
}

static size_t all_different(unsigned i)
{
	return 1 + i * 37 % 1400;
}

static size_t messages_with_tails(unsigned i)
{
	return i % 5 == 4 ? 333 : 1044;
}

static size_t tiny(unsigned i)
{
	(void)i;
	return 1;
}

/* Packets of one size go in batches, which are cut where they should be. */
static void test_equal(void **state)
{
	open_ends(*state);
	check_sizes(equal, 150);
	assert_true(udp_counters(a).batches_out >= 3);
	assert_true(udp_counters(a).calls_out <= 3);
	assert_true(udp_counters(b).batches_in >= 1);
	close_ends();
}

static void test_different(void **state)
{
	open_ends(*state);
	check_sizes(all_different, 150);
	assert_int_equal(udp_counters(a).calls_out, 3);
	assert_true(udp_counters(b).calls_in <= 20);
	close_ends();
}

/* A packet alone: one call at each end. */
static void test_alone(void **state)
{
	open_ends(*state);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(udp_send(a, &b->here, i, 32), 0);
		udp_flush(a);
		udp_receive(b, i + 1);
		assert_int_equal(b->link->ops->progress(b->link, 10), 0);
	}
	assert_int_equal(b->arrived, 20);
	assert_int_equal(udp_counters(a).calls_out, 20);
	assert_int_equal(udp_counters(b).calls_in, 20);
	close_ends();
}

/* The short last packet of each message ends its batch. */
static void test_tails(void **state)
{
	open_ends(*state);
	check_sizes(messages_with_tails, 50);
	assert_int_equal(udp_counters(a).batches_out, 10);
	close_ends();
}

/* How many packets of a run, each `every` of which ends with a shorter one, wait for the flush. */
static unsigned waiting_of(unsigned count, unsigned every)
{
	struct rwk_udp_counters before = udp_counters(a);
	unsigned waiting;

	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(udp_send(a, &b->here, i, (i + 1) % every ? 1364 : 500), 0);
	waiting = count - (unsigned)(udp_counters(a).packets_out - before.packets_out);
	udp_flush(a);
	assert_int_equal(udp_counters(a).packets_out - before.packets_out, count);
	udp_receive(b, (unsigned)udp_counters(a).packets_out);
	return waiting;
}

/* Of many packets that fill batches two of these do not wait for the rest; what comes in other portions does. */
static void test_long_run(void **state)
{
	open_ends(*state);
	assert_int_equal(waiting_of(90, 1000), 90); /* 45 fill one */
	assert_int_equal(waiting_of(91, 1000), 1);
	assert_int_equal(waiting_of(185, 1000), 5);
	assert_int_equal(waiting_of(150, 50), 150);
	assert_int_equal(waiting_of(150, 15), 150);
	assert_int_equal(b->damaged, 0);
	close_ends();
}

static void test_tiny(void **state)
{
	open_ends(*state);
	check_sizes(tiny, 200);
	close_ends();
}

/* Each size up to the largest packet alone; one more byte is refused, and nothing is lost of what follows. */
static void test_every_size(void **state)
{
	size_t mtu, i = 0;

	open_ends(*state);
	mtu = a->link->ops->mtu(a->link, &b->here);
	assert_true(mtu > 60000 && mtu <= 65527);
	for (size_t len = 1; len <= mtu; len = len < 300 ? len + 1 : len * 2 < mtu || len == mtu ? len * 2 : mtu) {
		b->arrived = 0;
		assert_int_equal(udp_send(a, &b->here, 7, len), 0);
		udp_flush(a);
		udp_receive(b, 1);
		assert_int_equal(b->arrived, 1);
		assert_int_equal(b->length[0], len);
		i++;
	}
	assert_int_equal(udp_send(a, &b->here, 8, mtu + 1), -EMSGSIZE);
	udp_flush(a);
	assert_int_equal(udp_send(a, &b->here, 9, mtu), 0);
	udp_flush(a);
	udp_receive(b, 2);
	assert_int_equal(b->arrived, 2);
	assert_int_equal(b->damaged, 0);
	assert_int_equal(udp_counters(b).packets_in, i + 1);
	close_ends();
}

/* Many pieces, short and long ones mixed: a short piece is the caller's again at once, a long one after the flush. */
static void test_pieces(void **state)
{
	uint8_t packet[3000];
	struct iovec iov[12];
	static const size_t length[12] = {12, 300, 0, 256, 257, 1, 700, 4, 3, 1000, 200, 267};
	size_t at = 0;

	open_ends(*state);
	for (uint32_t n = 0; n < 30; n++) {
		uint8_t *shorts[12];

		udp_fill(packet, sizeof(packet), 5);
		at = 0;
		for (int i = 0; i < 12; i++) {
			shorts[i] = malloc(length[i] + 1);
			memcpy(shorts[i], packet + at, length[i]);
			iov[i] = (struct iovec){length[i] > RWK_LINK_COPIED ? packet + at : shorts[i], length[i]};
			at += length[i];
		}
		assert_int_equal(at, sizeof(packet));
		assert_int_equal(a->link->ops->send(a->link, &b->here, iov, 12), 0);
		for (int i = 0; i < 12; i++)
			free(shorts[i]);
	}
	udp_flush(a);
	udp_receive(b, 30);
	assert_int_equal(b->arrived, 30);
	assert_int_equal(b->damaged, 0);
	close_ends();
}

/* Packet `i` of that length, made in the link's memory; false: the link has not taken it. */
static bool make_there(uint32_t i, size_t len)
{
	void *room = a->link->ops->reserve(a->link, &b->here, len);

	if (room)
		udp_fill(room, len, i);
	return room;
}

/* What is made in the link's memory is in one batch with what is sent, and fills batches as that does. */
static void test_made_there(void **state)
{
	const size_t mtu = 70000, len = 1344;
	unsigned sent = 0;

	open_ends(*state);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 40; i++, sent++) {
			if (round && i % (1 + round) == 0)
				assert_int_equal(udp_send(a, &b->here, sent, len), 0);
			else
				assert_true(make_there(sent, len));
		}
		assert_int_equal(udp_counters(a).calls_out, round);
		udp_flush(a);
		udp_receive(b, sent);
		assert_int_equal(udp_counters(a).batches_out, round + 1);
	}
	assert_false(make_there(0, mtu));
	assert_int_equal(udp_send(a, &b->here, 0, mtu), -EMSGSIZE);
	udp_flush(a);
	for (unsigned i = 0; i < 91; i++) /* those that fill two batches do not wait for the last */
		assert_true(make_there(sent + i, 1364));
	assert_int_equal(udp_counters(a).packets_out, sent + 90);
	udp_flush(a);
	udp_receive(b, sent + 91);
	assert_int_equal(b->arrived, sent + 91);
	assert_int_equal(b->damaged, 0);
	for (unsigned i = 0; i < b->arrived; i++) {
		assert_int_equal(b->number[i], i);
		assert_int_equal(b->length[i], i < sent ? len : 1364);
	}
	close_ends();
}

/* Destinations in turn: nobody gets what is for another. */
static void test_destinations(void **state)
{
	struct udp_end *c;

	open_ends(*state);
	c = udp_end_open(*state, 0);
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(udp_send(a, i % 3 == 2 ? &c->here : &b->here, i, 500), 0);
	udp_flush(a);
	udp_receive(b, 200);
	udp_receive(c, 100);
	assert_int_equal(b->arrived, 200);
	assert_int_equal(c->arrived, 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(c->number[i], 3 * i + 2);
	assert_int_equal(b->damaged + c->damaged, 0);
	udp_end_close(c);
	close_ends();
}

/* progress keeps to its budget, and what it leaves of a batch comes with the next. */
static void test_budget(void **state)
{
	open_ends(*state);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(udp_send(a, &b->here, i, 900), 0);
	udp_flush(a);
	for (unsigned n = 0; n < 60; n += 7) {
		assert_true(n || udp_wait(b, 20000));
		assert_int_equal(b->link->ops->progress(b->link, 7), n + 7 <= 60 ? 7 : 60 - n);
		assert_int_equal(b->link->ops->arm(b->link), n + 7 < 60 ? -EAGAIN : 0);
	}
	assert_int_equal(b->arrived, 60);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(b->number[i], i);
	close_ends();
}

/* A strict link sends no batches over IPv4, and still all in one call. */
static void test_strict(void **state)
{
	struct rwk_udp_attr attr = {.strict = true};

	memcpy(attr.ip, *state, 16);
	a = udp_end_open_with(&attr);
	b = udp_end_open(*state, 0);
	check_sizes(equal, 60);
	assert_int_equal(udp_counters(a).batches_out, *state == udp_ip4 ? 0 : 1);
	assert_int_equal(udp_counters(a).calls_out, 1);
	close_ends();
}

/* To sleep: not while something is staged or has come; a packet wakes. */
static void test_sleep(void **state)
{
	open_ends(*state);
	assert_int_equal(b->link->ops->arm(b->link), 0);
	assert_false(udp_wait(b, 0));
	assert_int_equal(a->link->ops->arm(a->link), 0);
	assert_int_equal(udp_send(a, &b->here, 1, 8), 0);
	assert_int_equal(a->link->ops->arm(a->link), -EAGAIN);
	udp_flush(a);
	assert_int_equal(a->link->ops->arm(a->link), 0);
	assert_true(udp_wait(b, 20000));
	assert_int_equal(b->link->ops->arm(b->link), -EAGAIN);
	assert_int_equal(b->link->ops->progress(b->link, 10), 1);
	assert_int_equal(b->link->ops->arm(b->link), 0);
	close_ends();
}

/* Another process's packet wakes one that sleeps. */
static void test_wakes(void **state)
{
	pid_t pid;

	open_ends(*state);
	assert_int_equal(b->link->ops->arm(b->link), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		usleep(50000); /* most likely b sleeps by then; if not, that is right too */
		udp_send(a, &b->here, 1, 8);
		udp_flush(a);
		_exit(0);
	}
	assert_true(udp_wait(b, 20000));
	assert_int_equal(b->link->ops->progress(b->link, 10), 1);
	assert_int_equal(b->length[0], 8);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close_ends();
}

/* Packets to a port where nobody listens and to one where somebody does in turn: the latter all arrive, and word comes.
 */
static void check_closed_port(const uint8_t ip[16], bool one_by_one)
{
	struct rwk_link_address gone;

	open_ends(ip);
	gone = b->here;
	udp_end_close(b);
	b = udp_end_open(ip, 0);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(udp_send(a, &gone, i, 100), 0);
		if (one_by_one)
			udp_flush(a);
		assert_int_equal(udp_send(a, &b->here, i, 200), 0);
	}
	udp_flush(a);
	udp_receive(b, 20);
	assert_int_equal(b->arrived, 20);
	for (int i = 0; i < 100; i++) /* the notices are here already: loopback does not wait */
		assert_int_equal(a->link->ops->progress(a->link, 64), 0);
	assert_true(a->words >= 1);
	assert_int_equal(a->word, -ECONNREFUSED);
	assert_memory_equal(&a->who, &gone, sizeof(gone));
	assert_int_equal(udp_counters(a).notices, a->words);
	assert_int_equal(udp_counters(a).failed, 0);
	assert_int_equal(udp_counters(a).packets_out, 40);
	assert_int_equal(a->link->ops->arm(a->link), 0);
	close_ends();
}

/* The kernel reports the first packet's error when the second is to be sent, which then has not been. */
static void test_closed_port_one_by_one(void **state)
{
	check_closed_port(*state, true);
}

/* The error ends the call in the middle of the packets, and is not reported again. */
static void test_closed_port_together(void **state)
{
	check_closed_port(*state, false);
}

/* What rwk_udp_room says fits, whatever the packets' size, in the small buffer that many hosts give. */
static void test_room(void **state)
{
	static const size_t lengths[] = {1, 605, 1024, 1044, 1629, 1700, 2100, 3677, 4136, 7773, 8192, 20000};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		a = udp_end_open(*state, 0);
		b = udp_end_open(*state, 106496); /* 212,992 as the kernel counts */
		udp_check_room(a, b, lengths[i], false);
		udp_check_room(a, b, lengths[i], true);
		close_ends();
	}
}

/* A full buffer loses what does not fit, which is counted, and nothing else. */
static void test_overrun(void **state)
{
	unsigned last;

	a = udp_end_open(*state, 0);
	b = udp_end_open(*state, 106496);
	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(udp_send(a, &b->here, i, 1044), 0);
		udp_flush(a);
	}
	udp_drain(b);
	assert_true(b->arrived < 3000);
	assert_true(b->arrived * 1044 >= rwk_udp_room(b->link));
	assert_int_equal(b->damaged, 0);
	for (unsigned i = 0; i < b->arrived; i++)
		assert_int_equal(b->number[i], i);
	assert_int_equal(udp_counters(b).overruns, 3000 - b->arrived);
	last = b->arrived;
	assert_int_equal(udp_send(a, &b->here, 5, 1044), 0);
	udp_flush(a);
	udp_receive(b, last + 1);
	assert_int_equal(b->arrived, last + 1);
	close_ends();
}

/* Word comes to a sleeper too. */
static void test_closed_port_wakes(void **state)
{
	struct rwk_link_address gone;

	open_ends(*state);
	gone = b->here;
	udp_end_close(b);
	b = udp_end_open(*state, 0);
	assert_int_equal(a->link->ops->arm(a->link), 0);
	assert_int_equal(udp_send(a, &gone, 1, 8), 0);
	udp_flush(a);
	assert_true(udp_wait(a, 20000));
	assert_int_equal(a->link->ops->arm(a->link), -EAGAIN);
	assert_int_equal(a->link->ops->progress(a->link, 64), 0);
	assert_int_equal(a->words, 1);
	assert_int_equal(a->link->ops->arm(a->link), 0);
	close_ends();
}

/* The headers below BTH as an ICRC sees them, written out. test_udp_pseudo compares them with packets. */
static void test_pseudo(void **state)
{
	static const uint8_t ip4[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x45, 0xff, 0x01, 0x48, 0xbe,
		0xef, 0x40, 0, 0xff, 17, 0xff, 0xff};
	static const uint8_t ip6[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x6f, 0xff, 0xff, 0xff, 0x01, 0x34, 17, 0xff};
	const bool is4 = *state == udp_ip4;
	const size_t head = is4 ? sizeof(ip4) : sizeof(ip6), ip_size = is4 ? 4 : 16;
	uint8_t peer_ip[16];
	struct rwk_link_address peer;

	open_ends(*state);
	udp_ip(is4 ? "10.1.2.3" : "fd00::9", peer_ip);
	peer = rwk_udp_address(peer_ip, 0x1234);
	for (int outgoing = 0; outgoing < 2; outgoing++) {
		uint16_t port = rwk_udp_port(a->link);
		const uint8_t ours[2] = {(uint8_t)(port >> 8), (uint8_t)port}, theirs[2] = {0x12, 0x34};
		const uint8_t end[4] = {0x01, 0x34, 0xff, 0xff};
		const uint8_t *own_ip = is4 ? udp_ip4 + 12 : udp_ip6, *other_ip = is4 ? peer_ip + 12 : peer_ip;
		uint8_t out[RWK_LINK_PSEUDO_MAX], *p = out + head;

		assert_int_equal(
			a->link->ops->pseudo(a->link, &peer, outgoing, 300, 0xbeef, out), head + 2 * ip_size + 8);
		assert_memory_equal(out, is4 ? ip4 : ip6, head);
		assert_memory_equal(p, outgoing ? own_ip : other_ip, ip_size);
		assert_memory_equal(p + ip_size, outgoing ? other_ip : own_ip, ip_size);
		p += 2 * ip_size;
		assert_memory_equal(p, outgoing ? ours : theirs, 2);
		assert_memory_equal(p + 2, outgoing ? theirs : ours, 2);
		assert_memory_equal(p + 4, end, 4);
	}
	close_ends();
}

/* Datagrams of a stranger, from 0 bytes to the largest, are handed on with their bounds. */
static void test_stranger(void **state)
{
	static uint8_t bytes[65507];
	static const size_t length[] = {0, 1, 3, 11, 12, 1500, 9000, 65487, 0, 5};
	const bool ip4 = *state == udp_ip4;
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(ip4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);

	open_ends(*state);
	to4.sin_port = to6.sin6_port = htons(rwk_udp_port(b->link));
	for (unsigned i = 0; i < 10; i++) {
		udp_fill(bytes, length[i], length[i] < 4 ? 0 : i);
		assert_int_equal(sendto(fd, bytes, length[i], 0, ip4 ? (void *)&to4 : (void *)&to6,
					 ip4 ? sizeof(to4) : sizeof(to6)),
			length[i]);
	}
	udp_receive(b, 10);
	assert_int_equal(b->arrived, 10);
	assert_int_equal(b->damaged, 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(b->length[i], length[i]);
	assert_int_equal(udp_send(a, &b->here, 1, 100), 0);
	udp_flush(a);
	udp_receive(b, 11);
	assert_int_equal(b->length[10], 100);
	close(fd);
	close_ends();
}

/* RoCEv2 of other makers has UDP checksum 0, which an IPv6 socket does not take by itself. */
static void test_without_checksum(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int on = 1, fd = socket(AF_INET6, SOCK_DGRAM, 0);
	uint8_t bytes[100];

	(void)state;
	open_ends(udp_ip6);
	assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)), 0);
	to.sin6_port = htons(rwk_udp_port(b->link));
	udp_fill(bytes, sizeof(bytes), 1);
	assert_int_equal(sendto(fd, bytes, sizeof(bytes), 0, (void *)&to, sizeof(to)), sizeof(bytes));
	udp_receive(b, 1);
	assert_int_equal(b->arrived, 1);
	assert_int_equal(b->damaged, 0);
	close(fd);
	close_ends();
}

#define BOTH(f)                                                                                                        \
	{#f " IPv4", f, NULL, NULL, (void *)udp_ip4},                                                                  \
	{                                                                                                              \
#f " IPv6", f, NULL, NULL, (void *)udp_ip6                                                             \
	}

/* What arrived last, as its receiver was given it. */
static struct {
	unsigned count;
	uint8_t byte4;
	size_t len;
} seen;

static void see(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	(void)user;
	(void)from;
	seen.count++;
	seen.len = len;
	seen.byte4 = len > 4 ? ((const uint8_t *)bytes)[4] : 0;
}

static void await(unsigned count)
{
	for (int i = 0; i < 50 && seen.count < count; i++) {
		udp_wait(b, 100);
		b->link->ops->progress(b->link, 64);
	}
	assert_int_equal(seen.count, count);
}

/* The two bits in the header of what a sends, as a router would set them. */
static void set_ecn(int value)
{
	int fd = a->link->ops->wait_fd(a->link, 0);

	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_TOS, &value, sizeof(value)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof(value)), 0);
}

/*
 * Congestion marked on the way is FECN for who receives, of each packet of a batch, and of no later one. A packet too
 * short to be one is left alone.
 */
static void test_congestion(void **state)
{
	static const uint8_t zeros[300];
	struct iovec iov = {(void *)zeros, sizeof(zeros)};

	open_ends(*state);
	b->link->packet = see;
	memset(&seen, 0, sizeof(seen));
	set_ecn(3);
	for (unsigned i = 0; i < 10; i++) {
		iov.iov_len = i < 9 ? 300 : 4;
		assert_int_equal(a->link->ops->send(a->link, &b->here, &iov, 1), 0);
		if (i == 8) {
			udp_flush(a);
			await(9);
			assert_int_equal(seen.byte4, 0x80);
			assert_int_equal(udp_counters(b).congested, 9);
		}
	}
	udp_flush(a);
	await(10);
	assert_int_equal(seen.len, 4);
	set_ecn(2);
	iov.iov_len = 300;
	assert_int_equal(a->link->ops->send(a->link, &b->here, &iov, 1), 0);
	udp_flush(a);
	await(11);
	assert_int_equal(seen.byte4, 0);
	assert_int_equal(udp_counters(b).congested, 9);
	close_ends();
}

/* Routers see that they may mark. */
static void test_may_be_marked(void **state)
{
	int value = -1, fd;
	socklen_t len = sizeof(value);
	bool ip4 = *state == udp_ip4;

	open_ends(*state);
	fd = a->link->ops->wait_fd(a->link, 0);
	assert_int_equal(getsockopt(fd, ip4 ? IPPROTO_IP : IPPROTO_IPV6, ip4 ? IP_TOS : IPV6_TCLASS, &value, &len), 0);
	assert_int_equal(value, 2);
	close_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_congestion),
		BOTH(test_may_be_marked),
		BOTH(test_equal),
		BOTH(test_different),
		BOTH(test_alone),
		BOTH(test_tails),
		BOTH(test_long_run),
		BOTH(test_tiny),
		BOTH(test_every_size),
		BOTH(test_pieces),
		BOTH(test_made_there),
		BOTH(test_destinations),
		BOTH(test_budget),
		BOTH(test_strict),
		BOTH(test_sleep),
		BOTH(test_wakes),
		BOTH(test_closed_port_one_by_one),
		BOTH(test_closed_port_together),
		BOTH(test_closed_port_wakes),
		BOTH(test_pseudo),
		BOTH(test_room),
		BOTH(test_overrun),
		BOTH(test_stranger),
		cmocka_unit_test(test_without_checksum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
