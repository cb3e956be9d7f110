/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives through the provider: in pieces, of many messages, directed, peeked at, cancelled, too short. */
#include "pair.h"

/* A receive into several pieces, whoever sent before: each piece is filled, and not one byte more. */
static void receive_in_pieces(void **state)
{
	static const size_t sizes[] = {1, 10, 11, 40, 100, 300, 70000};
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	exchange(&p, 1, 0, true);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i], rest = len > 10 ? len - 10 : 0;
		unsigned char *out = malloc(len), *all = malloc(len), *last = malloc(rest + 1), first[18];
		const struct iovec iov[2] = {{first, 10}, {last, rest}};

		assert_true(out && all && last);
		t_fill(out, len, 3);
		memset(first, 0x5a, sizeof(first));
		last[rest] = 0x5a;
		assert_int_equal(fi_trecvv(p.b.ep, iov, NULL, 2, FI_ADDR_UNSPEC, TAG, 0, first), 0);
		t_post(fi_tsend(p.a.ep, out, len, NULL, p.to_b, TAG, out), p.a.cq, p.b.cq);
		assert_int_equal(t_wait(p.b.cq, p.a.cq, NULL).len, len);
		t_wait(p.a.cq, p.b.cq, NULL);
		memcpy(all, first, len - rest);
		memcpy(all + len - rest, last, rest);
		t_check(all, len, 3);
		for (size_t g = 10; g < sizeof(first); g++)
			assert_int_equal(first[g], 0x5a);
		assert_int_equal(last[rest], 0x5a);
		free(out);
		free(all);
		free(last);
	}
	pair_close(&p);
}

/* One buffer takes message after message, tells where each begins, and says when it is full. */
static void multi_recv(void **state)
{
	unsigned char *buf = malloc(4096), out[1000];
	struct iovec iov = {buf, 4096};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf};
	size_t min = 500, at = 0;
	struct fi_cq_tagged_entry e;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(fi_setopt(&p.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)), 0);
	assert_int_equal(fi_recvmsg(p.b.ep, &msg, FI_MULTI_RECV), 0);
	for (unsigned i = 0; i < 4; i++) {
		t_fill(out, sizeof(out), i);
		t_post(fi_send(p.a.ep, out, sizeof(out), NULL, p.to_b, NULL), p.a.cq, p.b.cq);
		e = t_wait(p.b.cq, p.a.cq, NULL);
		t_wait(p.a.cq, p.b.cq, NULL);
		assert_ptr_equal(e.op_context, buf);
		assert_ptr_equal(e.buf, buf + at);
		assert_int_equal(e.len, sizeof(out));
		assert_int_equal(e.flags & ~FI_MULTI_RECV, FI_RECV | FI_MSG);
		assert_int_equal(!!(e.flags & FI_MULTI_RECV), i == 3); /* 96 bytes are left */
		t_check(e.buf, e.len, i);
		at += e.len;
	}
	pair_close(&p);
	free(buf);
}

static ssize_t peek(struct t_end *e, uint64_t tag, uint64_t flags, void *context, void *buf, size_t len)
{
	struct iovec iov = {buf, len};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = buf ? 1 : 0, .addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};

	return fi_trecvmsg(e->ep, &msg, flags);
}

/* A message is seen by FI_PEEK and left, taken by FI_CLAIM, dropped by FI_DISCARD; nothing to see is FI_ENOMSG. */
static void peek_claim_discard(void **state)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	char in[100], out[100], c1, c2;
	fi_addr_t source;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(peek(&p.b, 1, FI_PEEK, &c1, NULL, 0), 0);
	err = t_wait_error(p.b.cq, p.a.cq);
	assert_int_equal(err.err, FI_ENOMSG);
	assert_ptr_equal(err.op_context, &c1);
	for (uint64_t tag = 1; tag <= 3; tag++) {
		t_fill(out, sizeof(out), (unsigned)tag);
		t_post(fi_tinjectdata(p.a.ep, out, sizeof(out), 70 + tag, p.to_b, tag), p.a.cq, p.b.cq);
	}
	for (int64_t end = t_now() + T_PATIENCE;;) { /* until the last of the three has come */
		assert_true(t_now() < end);
		t_drive(p.a.cq);
		t_drive(p.b.cq);
		assert_int_equal(peek(&p.b, 3, FI_PEEK, &c1, NULL, 0), 0);
		if (fi_cq_readfrom(p.b.cq, &e, 1, &source) == 1)
			break;
		err = t_wait_error(p.b.cq, p.a.cq);
		assert_int_equal(err.err, FI_ENOMSG);
	}
	assert_int_equal(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	assert_int_equal(e.len, sizeof(out));
	assert_int_equal(e.data, 73);
	assert_int_equal(e.tag, 3);
	assert_int_equal(source, p.to_a);

	assert_int_equal(peek(&p.b, 1, FI_PEEK | FI_CLAIM, &c2, NULL, 0), 0);
	assert_int_equal(t_wait(p.b.cq, p.a.cq, NULL).len, sizeof(out));
	assert_int_equal(peek(&p.b, 1, FI_PEEK, &c1, NULL, 0), 0); /* taken: nobody else sees it */
	assert_int_equal(t_wait_error(p.b.cq, p.a.cq).err, FI_ENOMSG);
	assert_int_equal(peek(&p.b, 1, FI_CLAIM, &c2, in, sizeof(in)), 0);
	e = t_wait(p.b.cq, p.a.cq, NULL);
	assert_ptr_equal(e.op_context, &c2);
	t_check(in, sizeof(in), 1);

	assert_int_equal(peek(&p.b, 2, FI_PEEK | FI_DISCARD, &c1, NULL, 0), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	assert_int_equal(peek(&p.b, 2, FI_PEEK, &c1, NULL, 0), 0);
	assert_int_equal(t_wait_error(p.b.cq, p.a.cq).err, FI_ENOMSG);

	assert_int_equal(peek(&p.b, 3, FI_PEEK | FI_CLAIM, &c2, NULL, 0), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	assert_int_equal(peek(&p.b, 3, FI_CLAIM | FI_DISCARD, &c2, NULL, 0), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	assert_int_equal(fi_trecv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0, ~0ULL, in), 0);
	t_nothing(p.b.cq, p.a.cq); /* not one of the three is left */
	pair_close(&p);
}

/* A cancelled receive ends with FI_ECANCELED under its context; the next message goes to the other one. */
static void cancel(void **state)
{
	struct fi_cq_err_entry err;
	struct fid_cntr *rx;
	char one = 0, two = 0;
	struct pair p;

	(void)state;
	assert_int_equal(fi_cntr_open(pair_domain.domain, NULL, &rx, NULL), 0);
	pair_open(&p, &(struct t_options){.rx_cntr = rx});
	assert_int_equal(fi_trecv(p.b.ep, &one, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &one), 0);
	assert_int_equal(fi_trecv(p.b.ep, &two, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &two), 0);
	assert_int_equal(fi_cancel(&p.b.ep->fid, &one), 0);
	err = t_wait_error(p.b.cq, p.a.cq);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &one);
	assert_int_equal(err.flags, FI_RECV | FI_TAGGED);
	assert_int_equal(fi_cancel(&p.b.ep->fid, &one), -FI_ENOENT);
	t_post(fi_tinject(p.a.ep, "x", 1, p.to_b, 0), p.a.cq, p.b.cq);
	assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, &two);
	assert_int_equal(two, 'x');
	assert_int_equal(fi_cntr_read(rx), 1);
	assert_int_equal(fi_cntr_readerr(rx), 1);
	pair_close(&p);
	assert_int_equal(fi_close(&rx->fid), 0);
}

/* A message longer than its buffer: as much as fits, and an error entry that says how much did not. */
static void truncation(void **state)
{
	static const size_t sizes[] = {100, 100000};
	struct fi_cq_err_entry err;
	char in[64], guard = 0x5a;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (int i = 0; i < 2; i++) {
		struct { char in[64], guard[8]; } r;
		char *out = malloc(sizes[i]);

		t_fill(out, sizes[i], 9);
		memset(&r, guard, sizeof(r));
		assert_int_equal(fi_trecv(p.b.ep, r.in, sizeof(r.in), NULL, FI_ADDR_UNSPEC, 5, 0, in), 0);
		t_post(fi_tsend(p.a.ep, out, sizes[i], NULL, p.to_b, 5, out), p.a.cq, p.b.cq);
		err = t_wait_error(p.b.cq, p.a.cq);
		t_wait(p.a.cq, p.b.cq, NULL);
		assert_int_equal(err.err, FI_ETRUNC);
		assert_int_equal(err.len, 64);
		assert_int_equal(err.olen, sizes[i] - 64);
		assert_int_equal(err.tag, 5);
		assert_ptr_equal(err.op_context, in);
		t_check(r.in, sizeof(r.in), 9);
		for (size_t g = 0; g < sizeof(r.guard); g++)
			assert_int_equal(r.guard[g], guard);
		free(out);
	}
	pair_close(&p);
}

/* A receive directed at one peer leaves the messages of others alone. */
static void directed(void **state)
{
	struct t_end third;
	fi_addr_t source;
	char in = 0;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	t_end_open(&third, &pair_domain, NULL);
	fi_addr_t from_third = t_insert(&p.b, third.name), to_b = t_insert(&third, p.b.name);
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, from_third, 0, ~0ULL, &in), 0);
	t_post(fi_tinject(p.a.ep, "a", 1, p.to_b, 1), p.a.cq, p.b.cq);
	t_nothing(p.b.cq, p.a.cq);
	t_post(fi_tinject(third.ep, "c", 1, to_b, 2), third.cq, p.b.cq);
	assert_int_equal(t_wait(p.b.cq, third.cq, &source).tag, 2);
	assert_int_equal(source, from_third);
	assert_int_equal(in, 'c');
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, &in), 0);
	assert_int_equal(t_wait(p.b.cq, p.a.cq, &source).tag, 1);
	assert_int_equal(source, p.to_a);
	t_end_close(&third);
	pair_close(&p);
}

/* Who is not inserted has no number; once inserted, and after removal and another insert, it has that of the entry. */
static void source_of_strangers(void **state)
{
	struct t_end a, b;
	fi_addr_t to_b, number, source;
	char in;

	(void)state;
	t_end_open(&a, &pair_domain, NULL);
	t_end_open(&b, &pair_domain, NULL);
	to_b = t_insert(&a, b.name);
	for (int round = 0; round < 4; round++) {
		fi_addr_t want[] = {FI_ADDR_NOTAVAIL, 0, FI_ADDR_NOTAVAIL, 1};

		if (round == 1)
			number = t_insert(&b, a.name);
		if (round == 2)
			assert_int_equal(fi_av_remove(b.av, &number, 1, 0), 0);
		if (round == 3) {
			t_insert(&b, b.name);
			number = t_insert(&b, a.name);
		}
		assert_int_equal(fi_trecv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
		t_post(fi_tinject(a.ep, "x", 1, to_b, 0), a.cq, b.cq);
		t_wait(b.cq, a.cq, &source);
		assert_int_equal(source, want[round]);
	}
	t_end_close(&a);
	t_end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_in_pieces),
		cmocka_unit_test(multi_recv),
		cmocka_unit_test(peek_claim_discard),
		cmocka_unit_test(cancel),
		cmocka_unit_test(truncation),
		cmocka_unit_test(directed),
		cmocka_unit_test(source_of_strangers),
	};

	return pair_run(tests);
}
