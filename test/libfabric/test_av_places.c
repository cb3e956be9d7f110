/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint in an address vector by its name and by IP and port, while the name of one that was at that port before
 * is there, too. By either number of its own it is reached, and a receive takes what it sends; what it sends is from
 * one of them, always the same. Two processes: one has the endpoint at that port, the other talks to it.
 */
#include "fi_pair.h"
#include "own_port.h"

#include <stdio.h>
#include <stdlib.h>

#define WORDS 5 /* of a name in the provider's own format; the third has the port in its last bits */

static uint16_t port_of(const uint64_t name[WORDS])
{
	return (uint16_t)name[2];
}

/* Opens the endpoint at the port of `name`, and tells its name. */
static void open_at(struct t_process *p, struct t_domain *d, struct t_end *e, uint64_t name[WORDS])
{
	static const unsigned char any_ip[16] = {[10] = 0xff, [11] = 0xff};

	name[2] = port_of(name);
	memcpy(name + 3, any_ip, sizeof(any_ip));
	free(d->info->src_addr);
	d->info->src_addr = malloc(WORDS * sizeof(*name));
	assert_non_null(d->info->src_addr);
	memcpy(d->info->src_addr, name, WORDS * sizeof(*name));
	d->info->src_addrlen = WORDS * sizeof(*name);
	t_end_open(e, d, NULL);
	memcpy(name, e->name, WORDS * sizeof(*name));
	t_say(p, name, WORDS * sizeof(*name));
}

static void open_domain(struct t_domain *d)
{
	struct fi_info *hints = t_hints();

	hints->caps = FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	t_domain_open_with(d, hints);
}

/* Does as it is told, a letter each time: hear who talks to it, open, answer a message, send one, close. */
static void serve(struct t_process *p)
{
	uint64_t name[WORDS] = {0}, other[WORDS];
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	struct t_domain d;
	struct t_end e;
	bool is_open = false;
	char what, in;

	open_domain(&d);
	for (t_hear(p, &what, 1); what != 'q'; t_hear_driving(p, &what, 1, is_open ? e.cq : NULL)) {
		is_open = is_open ? what != 'c' : what == 'o';
		if (what == 'h') {
			t_hear(p, other, sizeof(other));
			memcpy(name, other, sizeof(name));
			name[2] = own_port();
		} else if (what == 'o') {
			open_at(p, &d, &e, name);
			to = t_insert(&e, other);
		} else if (what == 'c') {
			t_end_close(&e);
		}
		if (what == 'a') {
			assert_int_equal(fi_trecv(e.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
			t_wait(e.cq, NULL, NULL);
		}
		if (what == 'a' || what == 's') {
			t_post(fi_tsend(e.ep, &in, 1, NULL, to, 2, NULL), e.cq, NULL);
			t_wait(e.cq, NULL, NULL);
		}
		t_meet(p, is_open ? e.cq : NULL);
	}
	t_domain_close(&d);
}

/* Who talks to it. Numbers are by letter, as in take_steps. */
struct talk {
	struct t_process *p;
	struct t_end e;
	uint64_t name[WORDS], stale[WORDS];
	fi_addr_t number[128];
	fi_addr_t source; /* what it is from */
};

static void order(struct talk *t, char what)
{
	t_say(t->p, &what, 1);
}

static void open_other(struct talk *t, uint64_t name[WORDS])
{
	order(t, 'o');
	t_hear(t->p, name, WORDS * sizeof(*name));
	t_meet(t->p, t->e.cq);
}

static void close_other(struct talk *t)
{
	order(t, 'c');
	t_meet(t->p, t->e.cq);
}

/* Puts it in by that letter, again if it was there. */
static fi_addr_t put_in(struct talk *t, char what)
{
	fi_addr_t *number = &t->number[(int)what];
	uint64_t name[WORDS], found[WORDS] = {0};
	size_t len = sizeof(found);
	char port[8];

	memcpy(name, what == 'd' ? t->stale : t->name, sizeof(name));
	if (what == 'i')
		memcpy((char *)(name + WORDS) - 4, (unsigned char[]){127, 0, 0, 2}, 4);
	if (*number != FI_ADDR_NOTAVAIL) {
		assert_int_equal(fi_av_remove(t->e.av, number, 1, 0), 0);
		t->source = t->source == *number ? FI_ADDR_NOTAVAIL : t->source;
	}
	if (strchr("fdi", what)) {
		assert_int_equal(fi_av_insert(t->e.av, name, 1, number, 0, NULL), 1);
	} else {
		snprintf(port, sizeof(port), "%u", port_of(t->name));
		assert_int_equal(
			fi_av_insertsvc(t->e.av, what == 'p' ? "127.0.0.1" : "127.0.0.2", port, number, 0, NULL), 1);
	}
	assert_int_equal(fi_av_lookup(t->e.av, *number, found, &len), 0);
	assert_int_equal(len, sizeof(found));
	if (strchr("fdi", what))
		assert_memory_equal(found, name, sizeof(found));
	else
		assert_int_equal(found[2], port_of(t->name));
	return *number;
}

/* It has sent a message, which is received from that number: whose it is does not change, once it is somebody's. */
static void come(struct talk *t, fi_addr_t from)
{
	fi_addr_t source;
	char in;

	assert_int_equal(fi_trecv(t->e.ep, &in, 1, NULL, from, 2, 0, &in), 0);
	while (t_wait(t->e.cq, NULL, &source).op_context != &in)
		;
	if (t->source == FI_ADDR_NOTAVAIL)
		t->source = source;
	assert_int_equal(source, t->source);
	t_meet(t->p, t->e.cq);
}

static void use(struct talk *t, fi_addr_t to, fi_addr_t from)
{
	order(t, 'a');
	t_post(fi_tinject(t->e.ep, "x", 1, to, 1), t->e.cq, NULL);
	come(t, from);
	assert_true(t->source != FI_ADDR_NOTAVAIL && t->source != t->number['d']);
}

/* Who is not there any more is not reached, whoever is there now. */
static void fail_to_use(struct talk *t, fi_addr_t to)
{
	struct fi_msg_tagged msg = {
		.msg_iov = &(struct iovec){t, 1}, .iov_count = 1, .addr = to, .tag = 1, .context = t};
	ssize_t rc = fi_tsendmsg(t->e.ep, &msg, FI_COMPLETION);

	if (!rc)
		rc = -t_wait_error(t->e.cq, NULL).err;
	assert_int_equal(rc, -FI_ECONNRESET);
}

/* Of a dead one and of who is at that port now, both of which are asked for at once, one is reached. */
static void use_both(struct talk *t, fi_addr_t dead)
{
	fi_addr_t to = put_in(t, 'p');
	char in;

	assert_int_equal(fi_tsend(t->e.ep, t, 1, NULL, dead, 1, t), 0);
	assert_int_equal(fi_trecv(t->e.ep, &in, 1, NULL, to, 3, 0, &in), 0);
	assert_ptr_equal(t_wait_error(t->e.cq, NULL).op_context, t);
	assert_int_equal(fi_cancel(&t->e.ep->fid, &in), 0);
	assert_ptr_equal(t_wait_error(t->e.cq, NULL).op_context, &in);
	use(t, to, to);
}

/*
 * Letters: by its name (f), by 127.0.0.1 and its port (p), by 127.0.0.2 (l), by its name with that IP (i); the name of
 * the one before (d), which is dead, or that and the port at once (D). It makes contact, as a stranger (c), or when it
 * is in by its name with that IP (C).
 */
static void take_steps(struct talk *t, const char *steps)
{
	for (; *steps; steps++) {
		switch (*steps) {
		case 'c':
		case 'C':
			if (*steps == 'C')
				put_in(t, 'i');
			order(t, 's');
			come(t, FI_ADDR_UNSPEC);
			assert_int_equal(t->source, t->number['i']);
			break;
		case 'd':
			fail_to_use(t, put_in(t, 'd'));
			break;
		case 'D':
			use_both(t, put_in(t, 'd'));
			break;
		default:
			put_in(t, *steps);
			use(t, t->number[(int)*steps], t->number[(int)*steps]);
		}
	}
}

/* Each of its numbers alone leads to it, and whose it is is one of those that are left. */
static void take_out(struct talk *t)
{
	static const char own[] = "fpli";

	for (const char *a = own; *a; a++) {
		for (const char *b = own; *b; b++) {
			if (t->number[(int)*a] != FI_ADDR_NOTAVAIL && t->number[(int)*b] != FI_ADDR_NOTAVAIL)
				use(t, t->number[(int)*a], t->number[(int)*b]);
		}
	}
	for (const char *a = own; *a; a++) {
		fi_addr_t number = t->number[(int)*a];

		if (number == FI_ADDR_NOTAVAIL)
			continue;
		use(t, number, number);
		assert_int_equal(fi_av_remove(t->e.av, &number, 1, 0), 0);
		t->number[(int)*a] = FI_ADDR_NOTAVAIL;
		t->source = t->source == number ? FI_ADDR_NOTAVAIL : t->source;
	}
	order(t, 's');
	come(t, FI_ADDR_UNSPEC);
	assert_int_equal(t->source, FI_ADDR_NOTAVAIL);
}

static void talk_once(struct t_process *p, struct t_domain *d, const char *steps)
{
	struct talk t = {.p = p, .source = FI_ADDR_NOTAVAIL};

	print_message("%s\n", steps);
	memset(t.number, 0xff, sizeof(t.number));
	t_end_open(&t.e, d, NULL);
	order(&t, 'h');
	t_say(p, t.e.name, sizeof(t.name));
	t_meet(p, t.e.cq);
	open_other(&t, t.stale);
	close_other(&t);
	open_other(&t, t.name);
	assert_int_equal(port_of(t.name), port_of(t.stale));
	assert_int_not_equal(t.name[2], t.stale[2]);
	take_steps(&t, steps);
	take_out(&t);
	close_other(&t);
	t_end_close(&t.e);
}

static void talk(struct t_process *p)
{
	static const char *const steps[] = {
		"fp", "pl", "lfp", "cp", "clf", "dp", "pd", "pdp", "D", "dlf", "if", "pi", "cCp"};
	static const char *const dead_after_contact[] = {"fdp", "cdpf", "fD"};
	struct t_domain d;

	open_domain(&d);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		talk_once(p, &d, steps[i]);
	/* By TCP alone it is not so soon that the dead are told from who has a stream by now. */
	for (size_t i = 0; i < sizeof(dead_after_contact) / sizeof(*dead_after_contact) && strcmp(p->link, "tcp"); i++)
		talk_once(p, &d, dead_after_contact[i]);
	t_say(p, "q", 1);
	t_domain_close(&d);
}

static void orders(void **state)
{
	t_two(*state, talk, serve, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(orders, "shm"),
		cmocka_unit_test_prestate(orders, "udp"),
		cmocka_unit_test_prestate(orders, "tcp"),
	};

	return cmocka_run_group_tests_name("fi: one port", tests, NULL, NULL);
}
