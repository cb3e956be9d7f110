/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and counters: what is told, in which format, and how they grow, wrap and are shared. */
#include "pair.h"

/* Each format writes its members and not one byte more, several at a time. */
static void formats(void **state)
{
	static const struct { enum fi_cq_format format; size_t size;
	} cases[] = {{FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry)},
		{FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry)},
		{FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry)},
		{FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry)}};

	(void)state;
	for (size_t c = 0; c < 4; c++) {
		struct t_options o = {.format = cases[c].format};
		unsigned char raw[4 * sizeof(struct fi_cq_tagged_entry)];
		struct fi_cq_tagged_entry e;
		char byte[3] = {0};
		struct pair p;
		ssize_t n;

		pair_open(&p, &o);
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(fi_trecv(p.a.ep, &byte[i], 1, NULL, FI_ADDR_UNSPEC, i, 0, &byte[i]), 0);
		fi_addr_t me = t_insert(&p.a, p.a.name);
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(fi_tinjectdata(p.a.ep, "x", 1, 90 + i, me, i), 0);
		memset(raw, 0xa5, sizeof(raw));
		n = fi_cq_read(p.a.cq, raw, 4);
		assert_int_equal(n, 3);
		for (uint64_t i = 0; i < 3; i++) {
			memset(&e, 0, sizeof(e));
			memcpy(&e, raw + i * cases[c].size, cases[c].size);
			assert_ptr_equal(e.op_context, &byte[i]);
			if (c >= 1)
				assert_int_equal(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
			assert_int_equal(e.len, c >= 1 ? 1 : 0);
			assert_int_equal(e.data, c >= 2 ? 90 + i : 0);
			assert_int_equal(e.tag, c >= 3 ? i : 0);
		}
		for (size_t i = 3 * cases[c].size; i < sizeof(raw); i++)
			assert_int_equal(raw[i], 0xa5);
		pair_close(&p);
	}
}

/* A queue of 10 entries takes 5000 completions that nobody reads, and gives them back in order. */
static void queue_grows(void **state)
{
	enum { COUNT = 5000 };
	struct t_options o = {.cq_size = 10};
	struct t_end e;
	fi_addr_t me;
	char byte;

	(void)state;
	t_end_open(&e, &pair_domain, &o);
	me = t_insert(&e, e.name);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(fi_trecv(e.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, i, 0, &byte), 0);
		assert_int_equal(fi_tinject(e.ep, "x", 1, me, i), 0);
	}
	for (uint64_t i = 0; i < COUNT; i++)
		assert_int_equal(t_wait(e.cq, NULL, NULL).tag, i);
	t_nothing(e.cq, NULL);
	t_end_close(&e);
}

/*
 * Between two endpoints, where completions need no call: queues of 64 entries that are read too slowly, so that they
 * wrap round and grow many times over, give back all in order.
 */
static void queues_wrap_and_grow(void **state)
{
	enum { COUNT = 3000 };
	char in, marks[COUNT];
	uint64_t read = 0;
	struct pair p;

	(void)state;
	memset(marks, 'm', sizeof(marks));
	pair_open(&p, &(struct t_options){.cq_size = 10});
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, i, 0, &marks[i]), 0);
		t_post(fi_tsend(p.a.ep, &marks[i], 1, NULL, p.to_b, i, &marks[i]), p.a.cq, p.b.cq);
		t_drive(p.b.cq);
		for (uint64_t until = i + 1 < COUNT ? i / 3 : COUNT; read < until; read++) {
			struct fi_cq_tagged_entry got = t_wait(p.b.cq, p.a.cq, NULL);

			assert_int_equal(got.tag, read);
			assert_ptr_equal(got.op_context, &marks[read]);
			assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &marks[read]);
		}
	}
	assert_int_equal(read, COUNT);
	t_nothing(p.a.cq, p.b.cq);
	t_nothing(p.b.cq, p.a.cq);
	pair_close(&p);
}

/* A program that finds entries of its own sends at each read, of which it takes `most`, receives all the same. */
static void own_sends_and_a_receive(size_t most)
{
	struct fi_cq_tagged_entry e[2];
	bool received = false;
	struct pair p;
	char in = 0;

	pair_open(&p, NULL);
	exchange(&p, 1, 0, true);
	t_post(fi_tinject(p.b.ep, "c", 1, p.to_a, 2), p.a.cq, p.b.cq); /* the first one from this side */
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	t_post(fi_tinject(p.a.ep, "r", 1, p.to_b, 1), p.a.cq, p.b.cq);
	for (int i = 0; i < 20 && !received; i++) { /* few enough to need no room that only a read can make */
		ssize_t n;

		t_post(fi_tsend(p.b.ep, "s", 1, NULL, p.to_a, 2, &p), p.a.cq, NULL);
		n = fi_cq_read(p.b.cq, e, most);
		assert_true(n >= 1);
		received = n == 2 || e[0].op_context == &in;
	}
	assert_true(received);
	assert_int_equal(in, 'r');
	pair_close(&p);
}

static void own_sends_one_by_one(void **state)
{
	(void)state;
	own_sends_and_a_receive(1);
}

static void own_sends_and_more(void **state)
{
	(void)state;
	own_sends_and_a_receive(2);
}

/*
 * With FI_SELECTIVE_COMPLETION only operations with FI_COMPLETION have entries; the counters count all of them,
 * injects too.
 */
static void selective_and_counters(void **state)
{
	char in[4], out = 7;
	struct iovec iov = {&out, 1};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .context = &out};
	struct fid_cntr *tx, *rx;
	struct pair p;

	(void)state;
	assert_int_equal(fi_cntr_open(pair_domain.domain, NULL, &tx, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain.domain, NULL, &rx, NULL), 0);
	pair_open(&p, &(struct t_options){.bind_flags = FI_SELECTIVE_COMPLETION, .tx_cntr = tx, .rx_cntr = rx});
	msg.addr = p.to_b;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(fi_trecv(p.b.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), 0);
	t_post(fi_tsend(p.a.ep, &out, 1, NULL, p.to_b, 0, &out), p.a.cq, p.b.cq);
	t_post(fi_tinject(p.a.ep, &out, 1, p.to_b, 0), p.a.cq, p.b.cq);
	t_post(fi_tsendmsg(p.a.ep, &msg, 0), p.a.cq, p.b.cq);
	t_post(fi_tsendmsg(p.a.ep, &msg, FI_COMPLETION), p.a.cq, p.b.cq);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &out);
	assert_int_equal(fi_cntr_wait(rx, 4, T_PATIENCE), 0);
	assert_int_equal(fi_cntr_wait(tx, 4, T_PATIENCE), 0);
	t_nothing(p.a.cq, p.b.cq);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(fi_cntr_read(tx), 4);
	assert_int_equal(fi_cntr_read(rx), 4);
	assert_int_equal(fi_cntr_readerr(rx), 0);
	pair_close(&p);
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
}

/*
 * A send that wants no entry has one all the same when it fails, but not if it has no context either: nobody could tell
 * what it is about. A counter counts both.
 */
static void failures_of_quiet_sends(void **state)
{
	static char buf[1 << 20];
	struct iovec iov = {buf, sizeof(buf)};
	struct t_options options = {.bind_flags = FI_SELECTIVE_COMPLETION};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fid_cntr *counted;

	(void)state;
	assert_int_equal(fi_cntr_open(pair_domain.domain, &attr, &counted, NULL), 0);
	for (int how = 0; how < 2; how++) {
		struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1};
		struct fi_cq_err_entry err;
		struct pair p;

		options.tx_cntr = how ? counted : NULL;
		pair_open(&p, &options);
		msg.addr = p.to_b;
		t_post(fi_tsendmsg(p.a.ep, &msg, 0), p.a.cq, p.b.cq);
		msg.context = &p;
		t_post(fi_tsendmsg(p.a.ep, &msg, 0), p.a.cq, p.b.cq);
		t_drive(p.b.cq);
		t_end_close(&p.b);
		err = t_wait_error(p.a.cq, NULL);
		assert_ptr_equal(err.op_context, &p);
		t_nothing(p.a.cq, NULL);
		assert_int_equal(fi_cntr_readerr(counted), how ? 2 : 0);
		t_end_close(&p.a);
	}
	assert_int_equal(fi_close(&counted->fid), 0);
}

/*
 * Counters bound to endpoints at work count from then on what has entries too; Sandia OpenSHMEM binds them so late.
 */
static void late_counters(void **state)
{
	struct fid_cntr *tx, *rx;
	struct pair p;

	(void)state;
	assert_int_equal(fi_cntr_open(pair_domain.domain, NULL, &tx, NULL), 0);
	assert_int_equal(fi_cntr_open(pair_domain.domain, NULL, &rx, NULL), 0);
	pair_open(&p, NULL);
	exchange(&p, 1, 0, true);
	exchange(&p, 1, 1, true);
	assert_int_equal(fi_ep_bind(p.a.ep, &tx->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(p.b.ep, &rx->fid, FI_RECV), 0);
	for (uint64_t tag = 2; tag < 5; tag++)
		exchange(&p, 8, tag, true);
	assert_int_equal(fi_cntr_read(tx), 3);
	assert_int_equal(fi_cntr_read(rx), 3);
	pair_close(&p);
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
}

/* The same binding with FI_COMPLETION among the endpoint's default flags: calls without flags have entries. */
static void completion_by_default(void **state)
{
	char in = 0, out = 7;
	struct pair p;

	(void)state;
	pair_open(&p, &(struct t_options){.bind_flags = FI_SELECTIVE_COMPLETION, .tx_op_flags = FI_COMPLETION});
	/* Directed, so that the sender is known, and nobody need be asked who it is. */
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, p.to_a, 0, 0, NULL), 0);
	t_post(fi_tsend(p.a.ep, &out, 1, NULL, p.to_b, 0, &out), p.a.cq, p.b.cq);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &out);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(in, out);
	pair_close(&p);
}

/* Two endpoints on one queue: their completions come together, each under its own context. */
static void shared_queue(void **state)
{
	char in[2];
	struct t_end a, b, c;
	unsigned seen = 0;

	(void)state;
	t_end_open(&a, &pair_domain, NULL);
	t_end_open(&b, &pair_domain, &(struct t_options){.cq = a.cq});
	t_end_open(&c, &pair_domain, NULL);
	fi_addr_t to[] = {t_insert(&c, a.name), t_insert(&c, b.name)};
	assert_int_equal(fi_trecv(a.ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in[0]), 0);
	assert_int_equal(fi_trecv(b.ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in[1]), 0);
	for (int i = 0; i < 2; i++)
		t_post(fi_tinject(c.ep, &"xy"[i], 1, to[i], 0), c.cq, a.cq);
	for (int i = 0; i < 2; i++)
		seen |= 1u << ((char *)t_wait(a.cq, c.cq, NULL).op_context - in);
	assert_int_equal(seen, 3);
	assert_memory_equal(in, "xy", 2);
	t_end_close(&b);
	t_end_close(&a);
	t_end_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
		cmocka_unit_test(queue_grows),
		cmocka_unit_test(queues_wrap_and_grow),
		cmocka_unit_test(own_sends_one_by_one),
		cmocka_unit_test(own_sends_and_more),
		cmocka_unit_test(selective_and_counters),
		cmocka_unit_test(failures_of_quiet_sends),
		cmocka_unit_test(late_counters),
		cmocka_unit_test(completion_by_default),
		cmocka_unit_test(shared_queue),
	};

	return pair_run(tests);
}
