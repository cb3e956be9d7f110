/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages through the provider within one process: to oneself and between two endpoints, with every flag and queue
 * format.
 */
#include "fi_test.h"

static struct t_domain d;

/* Two endpoints that know each other, opened alike. */
struct pair {
	struct t_end a, b;
	fi_addr_t to_a, to_b; /* b's number of a, a's of b */
};

static void pair_open(struct pair *p, const struct t_options *o)
{
	t_end_open(&p->a, &d, o);
	t_end_open(&p->b, &d, o);
	p->to_b = t_insert(&p->a, p->b.name);
	p->to_a = t_insert(&p->b, p->a.name);
}

static void pair_close(struct pair *p)
{
	t_end_close(&p->a);
	t_end_close(&p->b);
}

/* One tagged message from a to b with a completion at each end; the receive is posted first if `expected`. */
static void exchange(struct pair *p, size_t len, uint64_t tag, bool expected)
{
	char *out = malloc(len + 1), *in = calloc(1, len + 1);
	struct fi_cq_tagged_entry sent, got;

	assert_true(out && in);
	t_fill(out, len, (unsigned)tag);
	if (expected)
		assert_int_equal(fi_trecv(p->b.ep, in, len, NULL, FI_ADDR_UNSPEC, tag, 0, in), 0);
	t_post(fi_tsend(p->a.ep, out, len, NULL, p->to_b, tag, out), p->a.cq, p->b.cq);
	if (!expected) {
		for (int i = 0; i < 50; i++) {
			t_drive(p->a.cq);
			t_drive(p->b.cq);
		}
		assert_int_equal(fi_trecv(p->b.ep, in, len, NULL, FI_ADDR_UNSPEC, tag, 0, in), 0);
	}
	got = t_wait(p->b.cq, p->a.cq, NULL);
	sent = t_wait(p->a.cq, p->b.cq, NULL);
	assert_ptr_equal(sent.op_context, out);
	assert_int_equal(sent.flags, FI_SEND | FI_TAGGED);
	assert_ptr_equal(got.op_context, in);
	assert_int_equal(got.flags, FI_RECV | FI_TAGGED);
	assert_int_equal(got.len, len);
	assert_int_equal(got.tag, tag);
	t_check(in, len, (unsigned)tag);
	free(out);
	free(in);
}

/* Sizes around every border that there is, expected and not. */
static void every_size(void **state)
{
	static const size_t sizes[] = {0, 1, 8, 40, 41, 104, 105, 256, 257, 1023, 1024, 4096, 8191, 8193, 65535, 65536,
		65537, 1 << 20, (4 << 20) + 3};
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		exchange(&p, sizes[i], i, true);
		exchange(&p, sizes[i], 100 + i, false);
	}
	pair_close(&p);
}

/* The same to oneself. */
static void to_myself(void **state)
{
	static const size_t sizes[] = {0, 1, 256, 4096, 65536, 1 << 20};
	struct pair p;

	(void)state;
	t_end_open(&p.a, &d, NULL);
	p.to_b = t_insert(&p.a, p.a.name);
	p.b = p.a;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *out = malloc(sizes[i] + 1), *in = calloc(1, sizes[i] + 1);
		unsigned seen = 0;

		t_fill(out, sizes[i], (unsigned)i);
		assert_int_equal(fi_tsend(p.a.ep, out, sizes[i], NULL, p.to_b, i, out), 0);
		assert_int_equal(fi_trecv(p.a.ep, in, sizes[i], NULL, p.to_b, i, 0, in), 0);
		for (int n = 0; n < 2; n++)
			seen |= t_wait(p.a.cq, NULL, NULL).flags & FI_RECV ? 1u : 2u;
		assert_int_equal(seen, 3);
		t_check(in, sizes[i], (unsigned)i);
		free(out);
		free(in);
	}
	t_end_close(&p.a);
}

/* Every way to send: what arrives, and what the sender is told. */
struct way {
	const char *name;
	bool tagged, data, completes;
	ssize_t (*send)(struct pair *p, const void *buf, size_t len);
};

#define TAG  0x1122334455667788u
#define DATA 0x8877665544332211u

static ssize_t msg_with(struct pair *p, const void *buf, size_t len, uint64_t flags, size_t pieces)
{
	struct iovec iov[8];
	struct fi_msg msg = {.msg_iov = iov, .iov_count = pieces, .addr = p->to_b, .context = p, .data = DATA};

	for (size_t i = 0; i < pieces; i++)
		iov[i] = (struct iovec){(char *)(uintptr_t)buf + i * (len / pieces),
			i + 1 < pieces ? len / pieces : len - i * (len / pieces)};
	return fi_sendmsg(p->a.ep, &msg, flags);
}

static ssize_t tmsg_with(struct pair *p, const void *buf, size_t len, uint64_t flags, size_t pieces)
{
	struct iovec iov[8];
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = pieces, .addr = p->to_b, .context = p, .data = DATA, .tag = TAG};

	for (size_t i = 0; i < pieces; i++)
		iov[i] = (struct iovec){(char *)(uintptr_t)buf + i * (len / pieces),
			i + 1 < pieces ? len / pieces : len - i * (len / pieces)};
	return fi_tsendmsg(p->a.ep, &msg, flags);
}

static ssize_t w_send(struct pair *p, const void *b, size_t n) { return fi_send(p->a.ep, b, n, NULL, p->to_b, p); }
static ssize_t w_sendv(struct pair *p, const void *b, size_t n)
{
	const struct iovec iov[2] = {{(void *)(uintptr_t)b, 10}, {(char *)(uintptr_t)b + 10, n - 10}};

	return fi_sendv(p->a.ep, iov, NULL, 2, p->to_b, p);
}
static ssize_t w_inject(struct pair *p, const void *b, size_t n) { return fi_inject(p->a.ep, b, n, p->to_b); }
static ssize_t w_senddata(struct pair *p, const void *b, size_t n)
{
	return fi_senddata(p->a.ep, b, n, NULL, DATA, p->to_b, p);
}
static ssize_t w_injectdata(struct pair *p, const void *b, size_t n)
{
	return fi_injectdata(p->a.ep, b, n, DATA, p->to_b);
}
static ssize_t w_sendmsg(struct pair *p, const void *b, size_t n) { return msg_with(p, b, n, FI_COMPLETION, 1); }
static ssize_t w_sendmsg8(struct pair *p, const void *b, size_t n) { return msg_with(p, b, n, FI_MORE, 8); }
static ssize_t w_sendmsg_all(struct pair *p, const void *b, size_t n)
{
	return msg_with(p, b, n, FI_INJECT | FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, 1);
}
static ssize_t w_tsend(struct pair *p, const void *b, size_t n)
{
	return fi_tsend(p->a.ep, b, n, NULL, p->to_b, TAG, p);
}
static ssize_t w_tsendv(struct pair *p, const void *b, size_t n)
{
	const struct iovec iov[2] = {{(void *)(uintptr_t)b, 10}, {(char *)(uintptr_t)b + 10, n - 10}};

	return fi_tsendv(p->a.ep, iov, NULL, 2, p->to_b, TAG, p);
}
static ssize_t w_tinject(struct pair *p, const void *b, size_t n) { return fi_tinject(p->a.ep, b, n, p->to_b, TAG); }
static ssize_t w_tsenddata(struct pair *p, const void *b, size_t n)
{
	return fi_tsenddata(p->a.ep, b, n, NULL, DATA, p->to_b, TAG, p);
}
static ssize_t w_tinjectdata(struct pair *p, const void *b, size_t n)
{
	return fi_tinjectdata(p->a.ep, b, n, DATA, p->to_b, TAG);
}
static ssize_t w_tsendmsg(struct pair *p, const void *b, size_t n)
{
	return tmsg_with(p, b, n, FI_TRANSMIT_COMPLETE, 1);
}
static ssize_t w_tsendmsg8(struct pair *p, const void *b, size_t n)
{
	return tmsg_with(p, b, n, FI_INJECT_COMPLETE, 8);
}
static ssize_t w_tsendmsg_all(struct pair *p, const void *b, size_t n)
{
	return tmsg_with(p, b, n, FI_INJECT | FI_REMOTE_CQ_DATA | FI_MATCH_COMPLETE, 1);
}

static const struct way ways[] = {
	{"send", false, false, true, w_send},
	{"sendv", false, false, true, w_sendv},
	{"inject", false, false, false, w_inject},
	{"senddata", false, true, true, w_senddata},
	{"injectdata", false, true, false, w_injectdata},
	{"sendmsg", false, false, true, w_sendmsg},
	{"sendmsg in 8 pieces", false, false, true, w_sendmsg8},
	{"sendmsg with all flags", false, true, true, w_sendmsg_all},
	{"tsend", true, false, true, w_tsend},
	{"tsendv", true, false, true, w_tsendv},
	{"tinject", true, false, false, w_tinject},
	{"tsenddata", true, true, true, w_tsenddata},
	{"tinjectdata", true, true, false, w_tinjectdata},
	{"tsendmsg", true, false, true, w_tsendmsg},
	{"tsendmsg in 8 pieces", true, false, true, w_tsendmsg8},
	{"tsendmsg with all flags", true, true, true, w_tsendmsg_all},
};

static void try_way(struct pair *p, const struct way *w, size_t len)
{
	unsigned char out[256], in[256] = {0};
	struct fi_cq_tagged_entry e;
	fi_addr_t source;

	t_fill(out, len, 1);
	if (w->tagged)
		assert_int_equal(fi_trecv(p->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, TAG, 0, in), 0);
	else
		assert_int_equal(fi_recv(p->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	t_post(w->send(p, out, len), p->a.cq, p->b.cq);
	if (!w->completes)
		memset(out, 0xee, sizeof(out)); /* an injected buffer is ours again */
	e = t_wait(p->b.cq, p->a.cq, &source);
	if (e.len != len || e.op_context != in || source != p->to_a ||
		e.flags != (FI_RECV | (w->tagged ? FI_TAGGED : FI_MSG) | (w->data ? FI_REMOTE_CQ_DATA : 0)))
		fail_msg("%s: length %zu, flags %#llx, source %llu", w->name, e.len, (unsigned long long)e.flags,
			(unsigned long long)source);
	assert_int_equal(e.data, w->data ? DATA : 0);
	assert_int_equal(e.tag, w->tagged ? TAG : 0);
	t_check(in, len, 1);
	if (w->completes) {
		e = t_wait(p->a.cq, p->b.cq, &source);
		assert_ptr_equal(e.op_context, p);
		assert_int_equal(e.flags, FI_SEND | (w->tagged ? FI_TAGGED : FI_MSG));
		assert_int_equal(source, FI_ADDR_NOTAVAIL);
	}
	t_nothing(p->a.cq, p->b.cq);
}

static void every_way(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		try_way(&p, &ways[i], 16);
		try_way(&p, &ways[i], 256);
	}
	pair_close(&p);
}

/* Flags that are not there and buffers that are too long are refused at once. */
static void refused_calls(void **state)
{
	char buf[257] = {0};
	struct iovec iov = {buf, 16}, nine[9];
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1};
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (int i = 0; i < 9; i++)
		nine[i] = (struct iovec){buf + i, 1};
	msg.addr = p.to_b;
	assert_int_equal(fi_tsendmsg(p.a.ep, &msg, FI_FENCE), -FI_EBADFLAGS);
	assert_int_equal(fi_tsendmsg(p.a.ep, &msg, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(p.a.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(p.a.ep, &msg, FI_DISCARD), -FI_EINVAL);
	assert_true(fi_tinject(p.a.ep, buf, 257, p.to_b, 0) < 0);
	assert_int_equal(fi_tsendv(p.a.ep, nine, NULL, 9, p.to_b, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_trecvv(p.a.ep, nine, NULL, 9, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_tsend(p.a.ep, buf, 1, NULL, 77, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_trecv(p.a.ep, buf, 1, NULL, 77, 0, 0, NULL), -FI_EINVAL);
	t_nothing(p.b.cq, p.a.cq);
	pair_close(&p);
}

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
	t_end_open(&e, &d, &o);
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

/* A program that finds entries of its own sends at each read receives all the same, if it asks for more than those. */
static void own_sends_and_a_receive(void **state)
{
	struct fi_cq_tagged_entry e[2];
	bool received = false;
	struct pair p;
	char in = 0;

	(void)state;
	pair_open(&p, NULL);
	exchange(&p, 1, 0, true);
	t_post(fi_tinject(p.b.ep, "c", 1, p.to_a, 2), p.a.cq, p.b.cq); /* the first one from this side */
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	t_post(fi_tinject(p.a.ep, "r", 1, p.to_b, 1), p.a.cq, p.b.cq);
	for (int i = 0; i < 20 && !received; i++) { /* few enough to need no room that only a read can make */
		ssize_t n;

		t_post(fi_tsend(p.b.ep, "s", 1, NULL, p.to_a, 2, &p), p.a.cq, NULL);
		n = fi_cq_read(p.b.cq, e, 2);
		assert_true(n >= 1);
		received = n == 2 || e[0].op_context == &in;
	}
	assert_true(received);
	assert_int_equal(in, 'r');
	pair_close(&p);
}

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
	assert_int_equal(fi_cntr_open(d.domain, NULL, &tx, NULL), 0);
	assert_int_equal(fi_cntr_open(d.domain, NULL, &rx, NULL), 0);
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
 * Counters bound to endpoints at work count from then on what has entries too; Sandia OpenSHMEM binds them so late.
 */
static void late_counters(void **state)
{
	struct fid_cntr *tx, *rx;
	struct pair p;

	(void)state;
	assert_int_equal(fi_cntr_open(d.domain, NULL, &tx, NULL), 0);
	assert_int_equal(fi_cntr_open(d.domain, NULL, &rx, NULL), 0);
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
	assert_int_equal(fi_cntr_open(d.domain, NULL, &rx, NULL), 0);
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
	assert_int_equal(fi_cntr_open(d.domain, &attr, &counted, NULL), 0);
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
	t_end_open(&third, &d, NULL);
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
	t_end_open(&a, &d, NULL);
	t_end_open(&b, &d, NULL);
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

/* Delivery complete: no completion before there is a receive, one after. */
static void delivery_complete(void **state)
{
	char in, out = 'd';
	struct pair p;

	(void)state;
	pair_open(&p, &(struct t_options){.tx_op_flags = FI_DELIVERY_COMPLETE});
	t_post(fi_tsend(p.a.ep, &out, 1, NULL, p.to_b, 0, &out), p.a.cq, p.b.cq);
	t_nothing(p.a.cq, p.b.cq);
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &out);
	pair_close(&p);
}

/* Two endpoints on one queue: their completions come together, each under its own context. */
static void shared_queue(void **state)
{
	char in[2];
	struct t_end a, b, c;
	unsigned seen = 0;

	(void)state;
	t_end_open(&a, &d, NULL);
	t_end_open(&b, &d, &(struct t_options){.cq = a.cq});
	t_end_open(&c, &d, NULL);
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

static int open_domain(void **state)
{
	(void)state;
	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	return 0;
}

static int open_locked_domain(void **state)
{
	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	return 0;
}

static int open_socket_domain(void **state)
{
	(void)state;
	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_domain_close(&d);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size),
		cmocka_unit_test(to_myself),
		cmocka_unit_test(every_way),
		cmocka_unit_test(refused_calls),
		cmocka_unit_test(formats),
		cmocka_unit_test(queue_grows),
		cmocka_unit_test(queues_wrap_and_grow),
		cmocka_unit_test(own_sends_and_a_receive),
		cmocka_unit_test(receive_in_pieces),
		cmocka_unit_test(selective_and_counters),
		cmocka_unit_test(failures_of_quiet_sends),
		cmocka_unit_test(late_counters),
		cmocka_unit_test(completion_by_default),
		cmocka_unit_test(multi_recv),
		cmocka_unit_test(peek_claim_discard),
		cmocka_unit_test(cancel),
		cmocka_unit_test(truncation),
		cmocka_unit_test(directed),
		cmocka_unit_test(source_of_strangers),
		cmocka_unit_test(delivery_complete),
		cmocka_unit_test(shared_queue),
	};
	int failed = 0;

	t_use_provider();
	setenv("FI_ROPEWALK_CONNECT_WAIT", "1", 1); /* who is known by IP and port alone and has gone is waited for */
	/* All of it three times: without a lock, with one, and with socket addresses. */
	failed += cmocka_run_group_tests_name("FI_THREAD_DOMAIN", tests, open_domain, close_domain);
	failed += cmocka_run_group_tests_name("FI_THREAD_SAFE", tests, open_locked_domain, close_domain);
	failed += cmocka_run_group_tests_name("FI_SOCKADDR_IN", tests, open_socket_domain, close_domain);
	return failed;
}
