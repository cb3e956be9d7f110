/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages through the provider: every size and every way to send, to oneself and between two endpoints. */
#include "pair.h"

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
	t_end_open(&p.a, &pair_domain, NULL);
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

/* Delivery complete: once the peer has the message, though there is no receive. */
static void delivery_complete(void **state)
{
	char in, out = 'd';
	struct pair p;

	(void)state;
	pair_open(&p, &(struct t_options){.tx_op_flags = FI_DELIVERY_COMPLETE});
	t_post(fi_tsend(p.a.ep, &out, 1, NULL, p.to_b, 0, &out), p.a.cq, p.b.cq);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &out);
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	assert_int_equal(in, out);
	t_nothing(p.a.cq, p.b.cq);
	pair_close(&p);
}

/* Match complete: no completion before there is a receive, one after. */
static void match_complete(void **state)
{
	char in, out = 'd';
	struct pair p;

	(void)state;
	pair_open(&p, &(struct t_options){.tx_op_flags = FI_MATCH_COMPLETE});
	t_post(fi_tsend(p.a.ep, &out, 1, NULL, p.to_b, 0, &out), p.a.cq, p.b.cq);
	t_nothing(p.a.cq, p.b.cq);
	assert_int_equal(fi_trecv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &out);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size),
		cmocka_unit_test(to_myself),
		cmocka_unit_test(every_way),
		cmocka_unit_test(refused_calls),
		cmocka_unit_test(delivery_complete),
		cmocka_unit_test(match_complete),
	};

	return pair_run(tests);
}
