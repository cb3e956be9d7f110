/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags of calls: looking for plain messages, levels of completion, fences, and what is refused. */
#include "pair.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <string.h>

#define LONG 100000 /* by rendezvous */

/* A send or receive with flags, of plain messages or of those with a tag. */
static ssize_t send_with(struct pair *p, bool tagged, const void *buf, size_t len, uint64_t flags, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = p->to_b, .context = context, .data = len};
	const struct fi_msg_tagged with_tag = {
		.msg_iov = &iov, .iov_count = 1, .addr = p->to_b, .tag = TAG, .context = context, .data = len};

	return tagged ? fi_tsendmsg(p->a.ep, &with_tag, flags) : fi_sendmsg(p->a.ep, &msg, flags);
}

static ssize_t receive_with(struct pair *p, bool tagged, void *buf, size_t len, uint64_t flags, void *context)
{
	const struct iovec iov = {buf, len};
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = buf ? 1 : 0, .addr = FI_ADDR_UNSPEC, .context = context};
	const struct fi_msg_tagged with_tag = {
		.msg_iov = &iov, .iov_count = buf ? 1 : 0, .addr = FI_ADDR_UNSPEC, .tag = TAG, .context = context};

	return tagged ? fi_trecvmsg(p->b.ep, &with_tag, flags) : fi_recvmsg(p->b.ep, &msg, flags);
}

/* Looks until there is one: its entry. */
static struct fi_cq_tagged_entry peek(struct pair *p, bool tagged, uint64_t flags, void *context)
{
	int64_t end = t_now() + T_PATIENCE;
	struct fi_cq_tagged_entry e = {0};

	for (;;) {
		assert_true(t_now() < end);
		t_drive(p->a.cq);
		assert_int_equal(receive_with(p, tagged, NULL, 0, FI_PEEK | flags, context), 0);
		if (fi_cq_read(p->b.cq, &e, 1) == 1)
			break;
		assert_int_equal(t_wait_error(p->b.cq, p->a.cq).err, FI_ENOMSG);
	}
	assert_ptr_equal(e.op_context, context);
	return e;
}

static void nothing_to_see(struct pair *p)
{
	char context;

	assert_int_equal(receive_with(p, false, NULL, 0, FI_PEEK, &context), 0);
	assert_int_equal(t_wait_error(p->b.cq, p->a.cq).err, FI_ENOMSG);
}

/* Of plain messages the first is seen, and left, taken or dropped: short ones, and long ones whose sender waits. */
static void peek_at_plain_messages(void **state)
{
	static char out[4][LONG], in[LONG];

	(void)state;
	for (size_t len = 10; len <= LONG; len += LONG - 10) {
		struct fi_cq_tagged_entry e;
		char c1, c2;
		struct pair p;

		pair_open(&p, NULL);
		nothing_to_see(&p);
		for (unsigned i = 0; i < 4; i++) {
			t_fill(out[i], len, i);
			t_post(send_with(&p, false, out[i], len - i, FI_REMOTE_CQ_DATA, out[i]), p.a.cq, p.b.cq);
		}
		e = peek(&p, false, 0, &c1);
		assert_int_equal(e.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
		assert_int_equal(e.len, len);
		assert_int_equal(e.data, len);
		assert_int_equal(peek(&p, false, FI_CLAIM, &c1).len, len);
		assert_int_equal(peek(&p, false, 0, &c2).len, len - 1);
		assert_int_equal(peek(&p, false, FI_DISCARD, &c2).len, len - 1);
		assert_int_equal(peek(&p, false, FI_CLAIM, &c2).len, len - 2);
		assert_int_equal(fi_recv(p.b.ep, in, len, NULL, FI_ADDR_UNSPEC, in), 0); /* of nobody's, the fourth */
		assert_int_equal(t_wait(p.b.cq, p.a.cq, NULL).len, len - 3);
		t_check(in, len - 3, 3);
		assert_int_equal(receive_with(&p, false, in, len, FI_CLAIM, &c1), 0);
		assert_int_equal(t_wait(p.b.cq, p.a.cq, NULL).len, len);
		t_check(in, len, 0);
		assert_int_equal(receive_with(&p, false, NULL, 0, FI_CLAIM | FI_DISCARD, &c2), 0);
		assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, &c2);
		nothing_to_see(&p);
		for (int i = 0; i < 4; i++) /* all senders are told */
			t_wait(p.a.cq, p.b.cq, NULL);
		pair_close(&p);
	}
}

/* FI_MATCH_COMPLETE: not before a receive has matched the message, or it was dropped. */
static void match_complete(void **state)
{
	static char out[LONG], in[LONG];

	(void)state;
	for (int tagged = 0; tagged < 2; tagged++) {
		for (size_t len = 0; len <= LONG; len = 10 * len + 10) {
			struct pair p;
			char c;

			pair_open(&p, NULL);
			t_post(send_with(&p, tagged, out, len, FI_MATCH_COMPLETE, out), p.a.cq, p.b.cq);
			t_nothing(p.a.cq, p.b.cq);
			assert_int_equal(receive_with(&p, tagged, in, len, 0, in), 0);
			assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, out);
			t_wait(p.b.cq, p.a.cq, NULL);
			t_post(send_with(&p, tagged, out, len, FI_MATCH_COMPLETE, in), p.a.cq, p.b.cq);
			t_nothing(p.a.cq, p.b.cq);
			peek(&p, tagged, FI_DISCARD, &c);
			assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, in);
			pair_close(&p);
		}
	}
}

/* FI_INJECT_COMPLETE and FI_TRANSMIT_COMPLETE: from its completion on the buffer is the program's again. */
static void buffer_is_free(void **state)
{
	static const uint64_t levels[] = {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_INJECT_COMPLETE | FI_MORE};
	static char out[LONG], in[LONG];

	(void)state;
	for (size_t len = 1; len <= LONG; len *= 10) {
		for (size_t i = 0; i < 3; i++) {
			struct pair p;

			pair_open(&p, NULL);
			t_fill(out, len, 3);
			t_post(send_with(&p, true, out, len, levels[i], out), p.a.cq, p.b.cq);
			assert_int_equal(receive_with(&p, true, in, len, 0, in), 0);
			t_wait(p.a.cq, p.b.cq, NULL);
			memset(out, 0, len);
			assert_int_equal(t_wait(p.b.cq, p.a.cq, NULL).len, len);
			t_check(in, len, 3);
			pair_close(&p);
		}
	}
}

/* FI_MORE promises a further call, and does not wait for it. */
static void more_may_not_come(void **state)
{
	char in[2];
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(receive_with(&p, i, &in[i], 1, FI_MORE, &in[i]), 0);
	for (int i = 0; i < 2; i++)
		t_post(send_with(&p, i, "x", 1, FI_MORE, NULL), p.a.cq, p.b.cq);
	for (int i = 0; i < 2; i++)
		t_wait(p.b.cq, p.a.cq, NULL);
	pair_close(&p);
}

/* A fenced send is taken once all before it to that peer are complete: until then -FI_EAGAIN; others are not held up.
 */
static void fence(void **state)
{
	static char out[LONG], in[LONG];
	char got[2];
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(receive_with(&p, false, &got[i], 1, 0, &got[i]), 0);
	t_post(send_with(&p, true, out, LONG, 0, out), p.a.cq, p.b.cq);
	assert_int_equal(send_with(&p, false, "f", 1, FI_FENCE, NULL), -FI_EAGAIN);
	t_post(send_with(&p, false, "o", 1, 0, NULL), p.a.cq, p.b.cq);
	assert_int_equal(send_with(&p, false, "f", 1, FI_FENCE, NULL), -FI_EAGAIN);
	assert_int_equal(receive_with(&p, true, in, LONG, 0, in), 0);
	t_post(send_with(&p, false, "f", 1, FI_FENCE, NULL), p.a.cq, p.b.cq);
	for (int i = 0; i < 3; i++)
		t_wait(p.b.cq, p.a.cq, NULL);
	assert_memory_equal(got, "of", 2);
	pair_close(&p);
}

/* What is not there is refused by each call; what libfabric has for the call and means nothing here is taken. */
static void refused(void **state)
{
	static const uint64_t flags[] = {FI_COMMIT_COMPLETE, FI_MULTICAST, 1ULL << 44 /* FI_XPU_TRIGGER */, 1ULL << 63};
	struct fi_rma_iov range = {0, 1, 0};
	struct fi_rma_ioc element = {0, 1, 0};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct fi_ioc ioc = {&byte, 1};
	struct fi_msg_rma rma = {.msg_iov = &iov, .iov_count = 1, .rma_iov = &range, .rma_iov_count = 1};
	struct fi_msg_atomic atomic = {.msg_iov = &ioc,
		.iov_count = 1,
		.rma_iov = &element,
		.rma_iov_count = 1,
		.datatype = FI_UINT8,
		.op = FI_SUM};
	struct fi_info *hints = t_hints(), *info;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	rma.addr = atomic.addr = p.to_b;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		for (int tagged = 0; tagged < 2; tagged++) {
			assert_int_equal(send_with(&p, tagged, &byte, 1, flags[i], NULL), -FI_EBADFLAGS);
			assert_int_equal(receive_with(&p, tagged, &byte, 1, flags[i], NULL), -FI_EBADFLAGS);
		}
		assert_int_equal(fi_writemsg(p.a.ep, &rma, flags[i]), -FI_EBADFLAGS);
		assert_int_equal(fi_readmsg(p.a.ep, &rma, flags[i]), -FI_EBADFLAGS);
		assert_int_equal(fi_atomicmsg(p.a.ep, &atomic, flags[i]), -FI_EBADFLAGS);
		hints->tx_attr->op_flags = flags[i];
		assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	}
	assert_int_equal(receive_with(&p, false, &byte, 1, FI_FENCE, NULL), -FI_EBADFLAGS);
	assert_int_equal(receive_with(&p, false, &byte, 1, FI_TRANSMIT_COMPLETE, NULL), 0);
	assert_int_equal(fi_readmsg(p.a.ep, &rma, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	fi_freeinfo(hints);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peek_at_plain_messages),
		cmocka_unit_test(match_complete),
		cmocka_unit_test(buffer_is_free),
		cmocka_unit_test(more_may_not_come),
		cmocka_unit_test(fence),
		cmocka_unit_test(refused),
	};

	return pair_run(tests);
}
