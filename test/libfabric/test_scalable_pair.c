/* SPDX-License-Identifier: BSD-3-Clause */
/* Scalable endpoints of two processes, over each link, and what becomes of one when the other is killed. */
#include "fi_pair.h"
#include "fi_sep.h"

#include <rdma/fi_rma.h>
#include <signal.h>
#include <unistd.h>

#define LONG ((size_t)300000)

static const char *const links[] = {NULL, "udp", "tcp"};

static fi_addr_t greet(struct t_process *p, struct t_sep *s)
{
	unsigned char name[sizeof(s->name)];

	t_say(p, s->name, sizeof(name));
	t_hear(p, name, sizeof(name));
	return t_sep_insert(s, name);
}

static const size_t lengths[] = {8, 5000, LONG};

/* Each transmit context to each receive context, short and long; last a write into the other's memory. */
static void sender(struct t_process *p)
{
	static unsigned char out[LONG];
	struct t_domain d;
	struct t_sep s;
	fi_addr_t to;

	t_domain_open_with(&d, t_sep_hints());
	t_sep_open(&s, &d);
	to = greet(p, &s);
	for (unsigned k = 0; k < 3 * T_TX * T_RX; k++) {
		unsigned tx = k % T_TX;
		size_t len = lengths[k % 3];

		t_fill(out, len, k);
		t_post(fi_tsend(s.tx[tx], out, len, NULL, fi_rx_addr(to, (int)(k / T_TX % T_RX), T_BITS), k, NULL),
			s.txq[tx], NULL);
		t_wait(s.txq[tx], NULL, NULL);
		t_meet(p, s.txq[0]);
	}
	t_fill(out, 64, 77);
	t_post(fi_write(s.tx[1], out, 64, NULL, fi_rx_addr(to, 1, T_BITS), 0, 5, NULL), s.txq[1], NULL);
	t_wait(s.txq[1], NULL, NULL);
	t_meet(p, s.txq[0]);
	t_sep_nothing(&s);
	t_meet(p, s.txq[0]);
	t_sep_close(&s);
	t_domain_close(&d);
}

static void receiver(struct t_process *p)
{
	static unsigned char in[LONG], target[64];
	struct t_domain d;
	struct fid_mr *mr;
	struct t_sep s;
	fi_addr_t from;

	t_domain_open_with(&d, t_sep_hints());
	t_sep_open(&s, &d);
	assert_int_equal(fi_mr_reg(d.domain, target, sizeof(target), FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL), 0);
	from = greet(p, &s);
	for (unsigned k = 0; k < 3 * T_TX * T_RX; k++) {
		unsigned rx = k / T_TX % T_RX;
		size_t len = lengths[k % 3];
		fi_addr_t source;

		assert_int_equal(fi_trecv(s.rx[rx], in, len, NULL, k & 1 ? from : FI_ADDR_UNSPEC, k, 0, NULL), 0);
		assert_int_equal(t_wait(s.rxq[rx], NULL, &source).len, len);
		assert_int_equal(source, from);
		t_check(in, len, k);
		t_meet(p, s.rxq[0]);
	}
	t_meet(p, s.rxq[0]);
	t_check(target, sizeof(target), 77);
	t_sep_nothing(&s);
	t_meet(p, s.rxq[0]);
	assert_int_equal(fi_close(&mr->fid), 0);
	t_sep_close(&s);
	t_domain_close(&d);
}

static void between_processes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		t_two(links[i], sender, receiver, NULL);
}

static void killed(struct t_process *p)
{
	struct t_domain d;
	struct t_sep s;
	fi_addr_t to;

	t_domain_open_with(&d, t_sep_hints());
	t_sep_open(&s, &d);
	to = greet(p, &s);
	t_post(fi_send(s.tx[0], "before", 7, NULL, to, NULL), s.txq[0], NULL);
	t_wait(s.txq[0], NULL, NULL);
	t_meet(p, s.txq[0]);
	kill(getpid(), SIGKILL);
}

/* What each context waits for from the dead ends in its own queue, and no other receive does. */
static void survivor(struct t_process *p)
{
	static unsigned char in[3][8], out[LONG];
	struct t_domain d;
	struct t_sep s;
	fi_addr_t to;

	t_domain_open_with(&d, t_sep_hints());
	t_sep_open(&s, &d);
	to = greet(p, &s);
	assert_int_equal(fi_recv(s.rx[0], in[0], 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	t_wait(s.rxq[0], NULL, NULL);
	assert_int_equal(fi_recv(s.rx[0], in[0], 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_recv(s.rx[1], in[1], 8, NULL, to, in[1]), 0);
	assert_int_equal(fi_trecv(s.rx[2], in[2], 8, NULL, fi_rx_addr(to, 1, T_BITS), 1, 0, in[2]), 0);
	t_post(fi_send(s.tx[1], out, LONG, NULL, fi_rx_addr(to, 2, T_BITS), out), s.txq[1], NULL);
	t_meet(p, s.rxq[0]);
	for (int i = 1; i < 3; i++) {
		struct fi_cq_err_entry err = t_wait_error(s.rxq[i], NULL);

		assert_ptr_equal(err.op_context, in[i]);
		assert_int_equal(err.err, FI_ECONNRESET);
	}
	assert_ptr_equal(t_wait_error(s.txq[1], NULL).op_context, out);
	t_sep_nothing(&s);
	assert_int_equal(fi_send(s.tx[0], out, 8, NULL, fi_rx_addr(to, 1, T_BITS), NULL), -FI_ECONNRESET);
	t_sep_close(&s);
	t_domain_close(&d);
}

static void peer_killed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		t_two(links[i], killed, survivor, NULL);
}

#define INJECTED 500u /* more than a link takes while the receiver does not look */

/* The k-th message: to one of two receive contexts, from one of two transmit contexts. */
static unsigned rx_of(unsigned k)
{
	return k & 1 ? 2 : 0;
}

static void injects_and_closes(struct t_process *p)
{
	struct t_domain d;
	struct t_sep s;
	fi_addr_t to;

	t_domain_open_with(&d, t_sep_hints());
	t_sep_open(&s, &d);
	to = greet(p, &s);
	for (unsigned k = 0; k < INJECTED; k++) {
		unsigned tx = k / 2 % T_TX;

		t_post(fi_tinject(s.tx[tx], &k, sizeof(k), fi_rx_addr(to, (int)rx_of(k), T_BITS), k), s.txq[tx], NULL);
		if (!k)
			t_meet(p, s.txq[0]);
	}
	t_say(p, "", 1);
	t_sep_close(&s);
	t_domain_close(&d);
}

/* Takes the first message, so that there is contact, and the others once all are injected. */
static void comes_late(struct t_process *p)
{
	struct t_domain d;
	struct t_sep s;
	unsigned in;
	char byte;

	t_domain_open_with(&d, t_sep_hints());
	t_sep_open(&s, &d);
	greet(p, &s);
	for (unsigned k = 0; k < INJECTED; k++) {
		assert_int_equal(fi_trecv(s.rx[rx_of(k)], &in, sizeof(in), NULL, FI_ADDR_UNSPEC, k, 0, NULL), 0);
		t_wait(s.rxq[rx_of(k)], NULL, NULL);
		assert_int_equal(in, k);
		if (k)
			continue;
		t_meet(p, s.rxq[0]);
		t_hear(p, &byte, 1);
	}
	t_sep_nothing(&s);
	t_sep_close(&s);
	t_domain_close(&d);
}

/* What a transmit context has injected arrives, though it and its endpoint are closed before the receiver looks. */
static void closed_with_injected(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		t_two(links[i], injects_and_closes, comes_late, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_processes),
		cmocka_unit_test(peer_killed),
		cmocka_unit_test(closed_with_injected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
