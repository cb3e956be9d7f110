/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The line, the favourite's own socket on a UDP link, over loopback. Each test over IPv4, IPv6, and with all ends bound
 * to no IP:
 *
 *   a ---\
 *         b    b is told that a is its favourite, and a that b is
 *   c ---/
 */
#include "own_port.h"
#include "udp_pair.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint8_t any_ip[16];

static struct udp_end *a, *b, *c;

/* A packet arrives at `to`, which takes its sender for its favourite from then on. */
static void favour(struct udp_end *to, struct udp_end *from)
{
	unsigned before = to->arrived;

	to->favour = true;
	assert_int_equal(udp_send(from, &to->here, 7, 300), 0);
	udp_flush(from);
	udp_receive(to, before + 1);
	assert_int_equal(to->arrived, before + 1);
}

static void open_ends(const uint8_t ip[16])
{
	struct rwk_udp_attr b_attr = {.port = own_port()};

	memcpy(b_attr.ip, ip, 16);
	a = udp_end_open(ip, 0);
	b = udp_end_open_with(&b_attr);
	c = udp_end_open(ip, 0);
	favour(b, a);
	favour(a, b);
	assert_int_equal(udp_counters(a).lines, 1);
	assert_int_equal(udp_counters(b).lines, 1);
}

static void close_ends(void)
{
	udp_end_close(a);
	udp_end_close(b);
	udp_end_close(c);
}

/* Packets from one to the other, alone and in batches: all arrive, in order, from where they should. */
static void check_way(struct udp_end *from, struct udp_end *to)
{
	unsigned before = to->arrived;

	for (uint32_t i = 0; i < 60; i++) {
		assert_int_equal(udp_send(from, &to->here, i, 400), 0);
		if (i < 20)
			udp_flush(from);
	}
	udp_flush(from);
	udp_receive(to, before + 60);
	assert_int_equal(to->arrived, before + 60);
	assert_int_equal(to->damaged, 0);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(to->number[before + i], i);
	assert_memory_equal(&to->from, &from->here, sizeof(from->here));
}

/* On which of its sockets does a packet wait? */
static bool waits_in(struct udp_end *e, int i)
{
	struct pollfd p = {.fd = e->link->ops->wait_fd(e->link, i), .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* The favourite's packets come and go by the line, and are what they were. */
static void test_favourite(void **state)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];

	open_ends(*state);
	memcpy(pseudo, b->pseudo, b->pseudo_len);
	check_way(a, b);
	check_way(b, a);
	assert_true(udp_counters(a).batches_out >= 1);
	assert_true(udp_counters(b).batches_in >= 1);
	assert_int_equal(udp_send(a, &b->here, 7, 300), 0);
	udp_flush(a);
	assert_true(waits_in(b, 1));
	assert_false(waits_in(b, 0));
	udp_receive(b, b->arrived + 1);
	assert_memory_equal(b->pseudo, pseudo, b->pseudo_len);
	close_ends();
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* Does the kernel join the packets that come by its line? Then it says which have met congestion, too. */
static bool joins(struct udp_end *e)
{
	int fd = e->link->ops->wait_fd(e->link, 1), on = option(fd, IPPROTO_UDP, UDP_GRO);
	bool ip6 = option(fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6;

	assert_int_equal(ip6 ? option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS) : option(fd, IPPROTO_IP, IP_RECVTOS), on);
	return on;
}

/* Messages of so many packets of that length: after each the receiver has looked in vain. */
static void send_apart(struct udp_end *from, struct udp_end *to, uint32_t messages, unsigned packets, size_t len)
{
	for (uint32_t i = 0; i < messages * packets; i += packets) {
		unsigned before = to->arrived;

		for (uint32_t k = 0; k < packets; k++)
			assert_int_equal(udp_send(from, &to->here, i + k, len), 0);
		udp_flush(from);
		udp_receive(to, before + packets);
		assert_int_equal(to->arrived, before + packets);
		for (uint32_t k = 0; k < packets; k++)
			assert_int_equal(to->number[before + k], i + k);
		for (int k = 0; k < 20; k++)
			assert_int_equal(to->link->ops->progress(to->link, 16), 0);
	}
}

/* Packets that come one by one. */
static void send_singly(struct udp_end *from, struct udp_end *to, uint32_t n)
{
	send_apart(from, to, n, 1, 100);
}

/*
 * A line on which short packets come one by one is read another way, until they come in runs: nothing is
 * lost of them.
 */
static void test_singles(void **state)
{
	open_ends(*state);
	assert_true(joins(b));
	send_singly(a, b, 31);
	assert_true(joins(b));
	send_singly(a, b, 1);
	assert_false(joins(b));
	send_singly(a, b, 40);
	check_way(a, b);
	assert_true(joins(b));
	check_way(a, b);
	check_way(b, a);
	send_singly(a, b, 40);
	assert_false(joins(b));
	check_way(c, b);
	assert_false(joins(b));
	favour(b, c); /* another peer's line begins anew */
	assert_true(joins(b));
	check_way(c, b);
	check_way(a, b);
	close_ends();
}

/*
 * A message of two packets is better read in one call: it does not speak for the other way, though the packets together
 * are short, and ends it. Two packets that are no message's do not.
 */
static void test_pairs(void **state)
{
	open_ends(*state);
	send_apart(a, b, 40, 2, 1000);
	assert_true(joins(b));
	send_singly(a, b, 40);
	assert_false(joins(b));
	send_apart(a, b, 40, 2, 100);
	assert_false(joins(b));
	send_apart(a, b, 5, 2, 1100);
	assert_true(joins(b));
	close_ends();
}

/* Others get through beside it, in one flush with it too, and nobody is taken for somebody else. */
static void test_others(void **state)
{
	unsigned before_a, before_c;

	open_ends(*state);
	check_way(c, b);
	check_way(a, b);
	check_way(c, b);
	check_way(b, c);
	before_a = a->arrived;
	before_c = c->arrived;
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(udp_send(b, i % 3 == 2 ? &c->here : &a->here, i, 500), 0);
	udp_flush(b);
	udp_receive(a, before_a + 200);
	udp_receive(c, before_c + 100);
	assert_int_equal(a->arrived, before_a + 200);
	assert_int_equal(c->arrived, before_c + 100);
	assert_int_equal(a->damaged + c->damaged, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(c->number[before_c + i], 3 * i + 2);
	close_ends();
}

/* Another favourite: neither loses what is sent from then on. */
static void test_another(void **state)
{
	open_ends(*state);
	favour(b, c);
	assert_int_equal(udp_counters(b).lines, 2);
	check_way(a, b);
	check_way(c, b);
	check_way(b, a);
	check_way(b, c);
	close_ends();
}

/* A child that has inherited the sockets does not keep what comes to a line that its parent has ended. */
static void test_child(void **state)
{
	pid_t pid;

	open_ends(*state);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	favour(b, c);
	check_way(a, b);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close_ends();
}

/* A child closes its copy of the link: the parent's line is as it was. */
static void test_child_closes(void **state)
{
	pid_t pid;

	open_ends(*state);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		udp_end_close(a);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	check_way(a, b);
	assert_int_equal(udp_send(b, &a->here, 1, 100), 0);
	udp_flush(b);
	assert_true(waits_in(a, 1));
	udp_receive(a, a->arrived + 1);
	check_way(b, a);
	close_ends();
}

/* The favourite's port is closed: word comes as it does otherwise; and whoever has the port then is heard. */
static void test_closed_port(void **state)
{
	struct rwk_udp_attr attr = {.port = 0};
	struct rwk_link_address gone;

	open_ends(*state);
	gone = b->here;
	memcpy(attr.ip, *state, 16);
	attr.port = rwk_udp_port(b->link);
	udp_end_close(b);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(udp_send(a, &gone, i, 100), 0);
		udp_flush(a);
		for (int n = 0; n < 100; n++)
			assert_int_equal(a->link->ops->progress(a->link, 64), 0);
	}
	assert_true(a->words >= 1);
	assert_int_equal(a->word, -ECONNREFUSED);
	assert_memory_equal(&a->who, &gone, sizeof(gone));
	assert_int_equal(udp_counters(a).failed, 0);
	assert_int_equal(a->link->ops->arm(a->link), 0);
	b = udp_end_open_with(&attr);
	check_way(a, b);
	check_way(b, a);
	close_ends();
}

/* A sleeper is woken by either socket. */
static void test_sleep(void **state)
{
	struct udp_end *from[2];

	open_ends(*state);
	from[0] = a;
	from[1] = c;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(b->link->ops->arm(b->link), 0);
		assert_false(udp_wait(b, 0));
		assert_int_equal(udp_send(from[i], &b->here, 1, 8), 0);
		udp_flush(from[i]);
		assert_true(udp_wait(b, 20000));
		assert_int_equal(b->link->ops->arm(b->link), -EAGAIN);
		udp_receive(b, b->arrived + 1);
		assert_memory_equal(&b->from, &from[i]->here, sizeof(b->from));
	}
	close_ends();
}

/* Nobody gets a socket beside ours by asking, not even this user. */
static void test_nobody_beside(void **state)
{
	struct sockaddr_in6 name = {.sin6_family = AF_INET6};
	int on = 1, fd = socket(AF_INET6, SOCK_DGRAM, 0);

	open_ends(*state);
	name.sin6_port = htons(rwk_udp_port(b->link));
	memcpy(&name.sin6_addr, *state, 16);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(fd);
	close_ends();
}

/* Without descriptors there is no line, and all goes on. */
static void test_no_descriptors(void **state)
{
	struct rlimit were, few;

	a = udp_end_open(*state, 0);
	b = udp_end_open(*state, 0);
	c = udp_end_open(*state, 0);
	check_way(a, b); /* the route is asked for with a socket */
	check_way(b, a);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &were), 0);
	few = (struct rlimit){4, were.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	favour(b, a);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &were), 0);
	assert_int_equal(udp_counters(b).lines, 0);
	check_way(a, b);
	check_way(b, a);
	close_ends();
}

/* A strict link has none: its packets must have identification 0. */
static void test_strict(void **state)
{
	struct rwk_udp_attr attr = {.strict = true};

	memcpy(attr.ip, *state, 16);
	a = udp_end_open(*state, 0);
	b = udp_end_open_with(&attr);
	c = udp_end_open(*state, 0);
	favour(b, a);
	assert_int_equal(udp_counters(b).lines, 0);
	check_way(b, a);
	close_ends();
}

/* What found no room in the line's buffer is counted too, while there is the line and after. */
static void test_overrun(void **state)
{
	uint64_t lost;

	a = udp_end_open(*state, 0);
	b = udp_end_open(*state, 106496);
	c = udp_end_open(*state, 0);
	favour(b, a);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(udp_send(a, &b->here, i, 1044), 0);
		udp_flush(a);
	}
	udp_drain(b);
	lost = 1000 - (b->arrived - 1);
	assert_true(lost > 0);
	assert_int_equal(udp_counters(b).overruns, lost);
	favour(b, c);
	assert_int_equal(udp_counters(b).overruns, lost);
	close_ends();
}

/*
 * By the line, or to anybody else, a packet goes at once, but not past one that is staged, nor if it is longer than the
 * way carries.
 */
static void test_hasten(void **state)
{
	static uint8_t bytes[65508];
	const size_t len = 64;
	unsigned before;

	open_ends(*state);
	assert_int_equal(udp_send(a, &b->here, 1, len), 0);
	udp_flush(a);
	udp_receive(b, b->arrived + 1);
	before = b->arrived;
	udp_fill(bytes, len, 2);
	memcpy(bytes, &(uint32_t){2}, 4);
	assert_int_equal(a->link->ops->hasten(a->link, &b->here, bytes, len), 0);
	udp_receive(b, before + 1);
	assert_int_equal(b->arrived, before + 1);
	assert_int_equal(b->number[before], 2);
	assert_int_equal(b->damaged, 0);
	assert_int_equal(a->link->ops->hasten(a->link, &b->here, bytes, sizeof(bytes)), -EMSGSIZE);
	assert_int_equal(udp_send(a, &b->here, 3, len), 0);
	assert_int_equal(a->link->ops->hasten(a->link, &b->here, bytes, len), -EAGAIN);
	udp_flush(a);
	udp_receive(b, before + 2);
	assert_int_equal(b->number[before + 1], 3);
	before = c->arrived;
	assert_int_equal(a->link->ops->hasten(a->link, &c->here, bytes, len), 0);
	udp_receive(c, before + 1);
	assert_int_equal(c->number[before], 2);
	assert_int_equal(udp_counters(a).packets_out, 5);
	close_ends();
}

static _Atomic uint32_t agreed;

/* Two links on one socket and one line; `line` is said by the link that made them, and is this process's. */
static struct udp_end *open_shared(const uint8_t ip[16], struct udp_end *shared[2])
{
	struct udp_end *made = udp_end_open(ip, 0);
	int line = rwk_udp_spare(made->link, made->here.byte);

	assert_true(line >= 0);
	agreed = 0;
	for (int i = 0; i < 2; i++) {
		shared[i] = udp_end_adopt(made, line);
		rwk_udp_agree(shared[i]->link, &agreed);
	}
	close(line);
	return made;
}

/* A short packet that comes alone is taken by that end, from where it should be. Did it come by the line? */
static bool comes_by_line(struct udp_end *from, struct udp_end *to)
{
	unsigned before = to->arrived;
	bool by_line;

	assert_int_equal(udp_send(from, &to->here, before, 100), 0);
	udp_flush(from);
	assert_true(udp_wait(to, 20000));
	by_line = waits_in(to, 1);
	assert_int_not_equal(by_line, waits_in(to, 0));
	udp_receive(to, before + 1);
	for (int i = 0; i < 20; i++) /* in vain: the next comes alone too */
		assert_int_equal(to->link->ops->progress(to->link, 16), 0);
	assert_int_equal(to->arrived, before + 1);
	assert_int_equal(to->damaged, 0);
	assert_memory_equal(&to->from, &from->here, sizeof(from->here));
	return by_line;
}

/*
 * A line of several: it is turned to who sends, and all of them get what comes by it, in the way of reading it that the
 * last packets spoke for, whichever of them had those; and it is turned to another.
 */
static void test_shared(void **state)
{
	struct udp_end *shared[2], *made = open_shared(*state, shared);
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];

	a = udp_end_open(*state, 0);
	c = udp_end_open(*state, 0);
	for (int i = 0; i < 32; i++)
		assert_false(comes_by_line(a, shared[0]));
	memcpy(pseudo, shared[0]->pseudo, shared[0]->pseudo_len);
	for (int i = 0; i < 32; i++) {
		assert_true(joins(shared[1]));
		assert_true(comes_by_line(a, shared[0]));
	}
	assert_false(joins(shared[1]));
	for (int i = 0; i < 40; i++) {
		assert_true(comes_by_line(a, shared[i & 1]));
		assert_memory_equal(shared[i & 1]->pseudo, pseudo, shared[i & 1]->pseudo_len);
	}
	check_way(a, shared[0]);
	assert_true(joins(shared[1]));
	check_way(a, shared[1]);
	check_way(a, shared[0]);
	assert_true(udp_counters(shared[0]).batches_in + udp_counters(shared[1]).batches_in >= 1);
	check_way(shared[1], a);
	for (int i = 0; i < 40; i++) {
		assert_false(comes_by_line(c, shared[1]));
		assert_true(comes_by_line(a, shared[1]));
	}
	assert_false(joins(shared[1]));
	for (int i = 0; i < 32; i++)
		assert_false(comes_by_line(c, shared[1]));
	assert_true(joins(shared[1]));
	for (int i = 0; i < 80; i++) /* nor is it a's that comes by plain calls from now on */
		assert_true(comes_by_line(c, shared[i & 1]));
	assert_false(joins(shared[1]));
	assert_false(comes_by_line(a, shared[0]));
	assert_int_equal(udp_counters(shared[0]).lines, 1);
	assert_int_equal(udp_counters(shared[1]).lines, 1);
	udp_end_close(shared[0]); /* it stays the other's */
	assert_true(comes_by_line(c, shared[1]));
	udp_end_close(shared[1]);
	udp_end_close(made);
	udp_end_close(a);
	udp_end_close(c);
}

/* Whatever is written into the word that was agreed on, no packet is taken for another; without it all go by, too. */
static void test_agreed_wrongly(void **state)
{
	struct udp_end *shared[2], *made = open_shared(*state, shared);

	a = udp_end_open(*state, 0);
	for (int i = 0; i < 32; i++)
		assert_false(comes_by_line(a, shared[0]));
	for (int i = 0; i < 40; i++) {
		agreed = i % 3 ? 0xffffffff : 0;
		assert_true(comes_by_line(a, shared[i & 1]));
	}
	rwk_udp_agree(shared[1]->link, NULL);
	for (int i = 0; i < 80; i++)
		assert_true(comes_by_line(a, shared[1]));
	check_way(a, shared[1]);
	for (int i = 0; i < 2; i++)
		udp_end_close(shared[i]);
	udp_end_close(made);
	udp_end_close(a);
}

/* Who sends, but with others between, does not get the line; nor does who is favoured by one of them. */
static void test_shared_by_many(void **state)
{
	struct udp_end *shared[2], *made = open_shared(*state, shared);

	a = udp_end_open(*state, 0);
	c = udp_end_open(*state, 0);
	for (int i = 0; i < 200; i++)
		assert_false(comes_by_line(i % 20 ? a : c, shared[0]));
	favour(shared[0], a);
	assert_int_equal(udp_counters(shared[0]).lines, 0);
	for (int i = 0; i < 2; i++)
		udp_end_close(shared[i]);
	udp_end_close(made);
	udp_end_close(a);
	udp_end_close(c);
}

#define EACH(f)                                                                                                        \
	{#f " IPv4", f, NULL, NULL, (void *)udp_ip4}, {#f " IPv6", f, NULL, NULL, (void *)udp_ip6},                    \
	{                                                                                                              \
#f " any", f, NULL, NULL, (void *)any_ip                                                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_favourite),
		EACH(test_singles),
		EACH(test_pairs),
		EACH(test_others),
		EACH(test_another),
		EACH(test_child),
		EACH(test_child_closes),
		EACH(test_closed_port),
		EACH(test_sleep),
		EACH(test_nobody_beside),
		EACH(test_no_descriptors),
		EACH(test_strict),
		EACH(test_overrun),
		EACH(test_hasten),
		EACH(test_shared),
		EACH(test_agreed_wrongly),
		EACH(test_shared_by_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
