/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint that is inserted by two of its host's addresses, that which it calls its own and another:
 *
 *   127.0.0.1 (own) ---+--- lo --- 198.51.100.0/24, which no interface has, and the loopback takes all the same
 *
 * in a network of the test's own. Two processes, of which one knows the other by the other address, or both do.
 */
#define _GNU_SOURCE /* unshare */
#include "fi_pair.h"
#include "fi_sep.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>

#define EXIT_SKIPPED 77

#define LONG 300000

#define MESSAGES 12

static char bytes[LONG], in[LONG], crossed[MESSAGES][LONG];

static void open_end(struct t_domain *d, struct t_end *e)
{
	struct fi_info *hints = t_hints();

	hints->caps = FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	hints->addr_format = FI_SOCKADDR_IN;
	t_domain_open_with(d, hints);
	t_end_open(e, d, NULL);
}

static void close_end(struct t_domain *d, struct t_end *e)
{
	t_end_close(e);
	t_domain_close(d);
}

/* The other process's name, and it by its other address, which for each of the two is another. */
static void hear_names(struct t_process *p, struct t_end *e, struct sockaddr_in name[2])
{
	unsigned char heard[sizeof(e->name)];
	struct sockaddr_in own;

	t_say(p, e->name, sizeof(e->name));
	t_hear(p, heard, sizeof(heard));
	memcpy(&name[0], heard, sizeof(name[0]));
	name[1] = name[0];
	memcpy(&own, e->name, sizeof(own));
	assert_int_equal(
		inet_pton(AF_INET, own.sin_port < name->sin_port ? "198.51.100.7" : "198.51.100.8", &name[1].sin_addr),
		1);
}

/* Sends that many long messages, each once the other process asks for it, after one that comes unasked. */
static void answers(struct t_process *p)
{
	struct sockaddr_in name[2];
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;
	char more = 1;

	open_end(&d, &e);
	hear_names(p, &e, name);
	to = t_insert(&e, &name[0]);
	t_fill(bytes, LONG, 1);
	t_post(fi_tsend(e.ep, bytes, LONG, NULL, to, 1, NULL), e.cq, NULL);
	t_wait(e.cq, NULL, NULL);
	while (more) {
		assert_int_equal(fi_trecv(e.ep, &more, 1, NULL, to, 2, 0, NULL), 0);
		t_wait(e.cq, NULL, NULL);
		t_post(fi_tsend(e.ep, bytes, LONG, NULL, to, 3, NULL), e.cq, NULL);
		t_wait(e.cq, NULL, NULL);
	}
	t_meet(p, e.cq);
	close_end(&d, &e);
}

/* Asks by that number for a message, which is received from `from`; by which number it has come. */
static fi_addr_t ask(struct t_end *e, fi_addr_t to, fi_addr_t from, char more)
{
	fi_addr_t source;

	assert_int_equal(fi_trecv(e->ep, in, LONG, NULL, from, 3, 0, in), 0);
	t_post(fi_tinject(e->ep, &more, 1, to, 2), e->cq, NULL);
	while (t_wait(e->cq, NULL, &source).op_context != in)
		;
	t_check(in, LONG, 1);
	return source;
}

/* The other process has made contact; returns whom its message, which waits, is from. */
static fi_addr_t await_message(struct t_end *e)
{
	struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = 1, .context = in};
	struct fi_cq_tagged_entry entry;
	int64_t end = t_now() + T_PATIENCE;
	fi_addr_t source = FI_ADDR_UNSPEC;
	ssize_t n = -FI_EAVAIL;

	while (n == -FI_EAVAIL && t_now() < end) {
		assert_int_equal(fi_trecvmsg(e->ep, &msg, FI_PEEK), 0);
		while ((n = fi_cq_readfrom(e->cq, &entry, 1, &source)) == -FI_EAGAIN)
			;
		if (n == -FI_EAVAIL)
			assert_int_equal(fi_cq_readerr(e->cq, &(struct fi_cq_err_entry){0}, 0), 1);
	}
	assert_int_equal(n, 1);
	return source;
}

static void asks(struct t_process *p)
{
	struct sockaddr_in name[2];
	fi_addr_t own, other, source;
	struct t_domain d;
	struct t_end e;

	open_end(&d, &e);
	hear_names(p, &e, name);
	other = t_insert(&e, &name[1]);
	/* Before contact by that address nobody can know whose it is. What has come unasked is from there all the same. */
	assert_int_equal(await_message(&e), FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_trecv(e.ep, in, LONG, NULL, other, 1, 0, in), 0);
	t_wait(e.cq, NULL, &source);
	assert_int_equal(source, other);
	t_check(in, LONG, 1);
	assert_int_equal(ask(&e, other, other, 1), other);
	/* Both are one; the first of them goes on standing for it, until it is removed. */
	own = t_insert(&e, &name[0]);
	assert_int_equal(ask(&e, own, own, 1), other);
	assert_int_equal(ask(&e, other, own, 1), other);
	assert_int_equal(ask(&e, own, FI_ADDR_UNSPEC, 1), other);
	assert_int_equal(fi_av_remove(e.av, &other, 1, 0), 0);
	assert_int_equal(ask(&e, own, FI_ADDR_UNSPEC, 1), own);
	other = t_insert(&e, &name[1]);
	assert_int_equal(ask(&e, other, own, 1), own);
	assert_int_equal(fi_av_remove(e.av, &own, 1, 0), 0);
	assert_int_equal(ask(&e, other, other, 0), other);
	t_meet(p, e.cq);
	close_end(&d, &e);
}

/* By its own name, but twice: one of the numbers stands for it until that is removed, and then the other. */
static void asks_twice(struct t_process *p)
{
	fi_addr_t number[2], one, other;
	struct sockaddr_in name[2];
	struct t_domain d;
	struct t_end e;

	open_end(&d, &e);
	hear_names(p, &e, name);
	number[0] = t_insert(&e, &name[0]);
	number[1] = t_insert(&e, &name[0]);
	assert_in_range(await_message(&e), number[0], number[1]);
	assert_int_equal(fi_trecv(e.ep, in, LONG, NULL, number[0], 1, 0, in), 0);
	t_wait(e.cq, NULL, &one);
	assert_in_range(one, number[0], number[1]);
	other = number[one == number[0]];
	assert_int_equal(ask(&e, other, other, 1), one);
	assert_int_equal(fi_av_remove(e.av, &one, 1, 0), 0);
	assert_int_equal(ask(&e, other, FI_ADDR_UNSPEC, 0), other);
	t_meet(p, e.cq);
	close_end(&d, &e);
}

static void twice(void **state)
{
	(void)state;
	t_two("udp", answers, asks_twice, NULL);
}

static void both(void **state)
{
	(void)state;
	t_two("udp", answers, asks, NULL);
	t_two("tcp", answers, asks, NULL);
}

/* By contexts of a scalable endpoint, one that sends and one that receives. */
static void asks_by_contexts(struct t_process *p)
{
	struct fi_info *hints = t_sep_hints();
	struct sockaddr_in name[2];
	struct t_domain d;
	struct t_end rx = {0};
	struct t_sep s;
	fi_addr_t other;
	char more = 0;

	hints->addr_format = FI_SOCKADDR_IN;
	t_domain_open_with(&d, hints);
	t_sep_open(&s, &d);
	rx.ep = s.rx[0];
	rx.cq = s.rxq[0];
	memcpy(rx.name, s.name, sizeof(rx.name));
	hear_names(p, &rx, name);
	other = t_sep_insert(&s, &name[1]);
	await_message(&rx);
	for (uint64_t tag = 1; tag <= 3; tag += 2) {
		fi_addr_t source;

		assert_int_equal(fi_trecv(rx.ep, in, LONG, NULL, other, tag, 0, in), 0);
		if (tag == 3)
			t_post(fi_tinject(s.tx[1], &more, 1, other, 2), s.txq[1], rx.cq);
		t_wait(rx.cq, s.txq[1], &source);
		assert_int_equal(source, other);
		t_check(in, LONG, 1);
	}
	t_meet(p, rx.cq);
	t_sep_close(&s);
	t_domain_close(&d);
}

static void contexts(void **state)
{
	(void)state;
	t_two("udp", answers, asks_by_contexts, NULL);
}

/* Who was reached by `to` is known by its own name as well: a message that waits is from there when `to` has gone. */
static void by_own_name(struct t_process *p, struct t_end *e, fi_addr_t to, const struct sockaddr_in *name)
{
	fi_addr_t own, source;

	t_post(fi_tinject(e->ep, bytes, 1, to, 1), e->cq, NULL);
	await_message(e);
	t_meet(p, e->cq);
	own = t_insert(e, name);
	assert_int_equal(fi_av_remove(e->av, &to, 1, 0), 0);
	assert_int_equal(fi_trecv(e->ep, in, LONG, NULL, FI_ADDR_UNSPEC, 1, 0, in), 0);
	t_wait(e->cq, NULL, &source);
	assert_int_equal(source, own);
}

/* Both ask by the other address before either can answer. */
static void cross(struct t_process *p)
{
	struct fi_cq_tagged_entry entry;
	struct sockaddr_in name[2];
	fi_addr_t to, source;
	struct t_domain d;
	struct t_end e;
	int got = 0;

	open_end(&d, &e);
	hear_names(p, &e, name);
	to = t_insert(&e, &name[1]);
	t_fill(bytes, LONG, 1);
	for (int i = 0; i < MESSAGES; i++) {
		size_t len = i % 3 ? (size_t)i : LONG;

		assert_int_equal(fi_trecv(e.ep, crossed[i], LONG, NULL, to, 4, 0, crossed[i]), 0);
		assert_int_equal(fi_tsend(e.ep, bytes, len, NULL, to, 4, bytes), 0);
	}
	t_meet(p, NULL);
	for (int i = 0; i < 2 * MESSAGES; i++) {
		size_t n;

		entry = t_wait(e.cq, NULL, &source);
		if (entry.op_context == bytes)
			continue;
		assert_int_equal(source, to);
		n = (size_t)((char *)entry.op_context - crossed[0]) / LONG;
		assert_int_equal(entry.len, n % 3 ? n : LONG);
		t_check(entry.op_context, entry.len, 1);
		got++;
	}
	assert_int_equal(got, MESSAGES);
	by_own_name(p, &e, to, &name[0]);
	t_meet(p, e.cq);
	close_end(&d, &e);
}

static void crossing(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		t_two("udp", cross, cross, NULL);
		t_two("tcp", cross, cross, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both),
		cmocka_unit_test(twice),
		cmocka_unit_test(contexts),
		cmocka_unit_test(crossing),
	};

	if (unshare(CLONE_NEWNET) || system("ip link set lo up && ip route add local 198.51.100.0/24 dev lo")) {
		print_message("no network of its own\n");
		return EXIT_SKIPPED;
	}
	setenv("FI_ROPEWALK_INTERFACES", "lo", 1);
	return cmocka_run_group_tests_name("fi: two addresses", tests, NULL, NULL);
}
