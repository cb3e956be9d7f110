/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts that endpoints of FI_EP_RDM share: two endpoints with one shared receive context, each with a queue of its
 * own, and a third that sends to them.
 */
#include "fi_pair.h"

#include <rdma/fi_trigger.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define LONG ((size_t)300000)

static struct t_domain domain;

/* The two, and who sends to them. */
struct group {
	struct fid_ep *srx;
	struct fid_stx *stx;
	struct t_end of[2], sender;
	fi_addr_t to[2], from[2]; /* the sender's number of each, and each's of the sender */
};

static int open_domain(void **state)
{
	(void)state;
	t_domain_open(&domain, 0, FI_THREAD_DOMAIN);
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_domain_close(&domain);
	return 0;
}

static void open_group(struct group *g, const struct t_options *second)
{
	struct t_options o = {0};

	assert_int_equal(fi_srx_context(domain.domain, NULL, &g->srx, NULL), 0);
	assert_int_equal(fi_stx_context(domain.domain, NULL, &g->stx, NULL), 0);
	o.srx = g->srx;
	o.stx = g->stx;
	t_end_open(&g->of[0], &domain, &o);
	if (second)
		o = *second;
	o.srx = g->srx;
	o.stx = g->stx;
	t_end_open(&g->of[1], &domain, &o);
	t_end_open(&g->sender, &domain, NULL);
	for (int i = 0; i < 2; i++) {
		g->to[i] = t_insert(&g->sender, g->of[i].name);
		g->from[i] = t_insert(&g->of[i], g->sender.name);
	}
}

static void close_group(struct group *g)
{
	t_end_close(&g->sender);
	for (int i = 0; i < 2; i++)
		t_end_close(&g->of[i]);
	assert_int_equal(fi_close(&g->stx->fid), 0);
	assert_int_equal(fi_close(&g->srx->fid), 0);
}

static void send_to(struct group *g, int i, const void *buf, size_t len, uint64_t tag)
{
	t_post(fi_tsend(g->sender.ep, buf, len, NULL, g->to[i], tag, NULL), g->sender.cq, g->of[i].cq);
}

/* Its queue alone tells of it. */
static struct fi_cq_tagged_entry told_to(struct group *g, int i, fi_addr_t *source)
{
	struct fi_cq_tagged_entry entry = t_wait(g->of[i].cq, g->sender.cq, source);

	t_nothing(g->of[1 - i].cq, NULL);
	return entry;
}

/*
 * A receive takes the first message that fits, whichever of the two it was sent to, posted before it or after; the
 * endpoint that it was sent to tells of it, and of who sent it.
 */
static void either_endpoint(void **state)
{
	static const size_t lengths[] = {0, 8, 200, 5000, LONG};
	static unsigned char in[LONG], out[LONG];

	(void)state;
	for (unsigned n = 0; n < 20; n++) {
		size_t len = lengths[n / 4];
		int i = n % 2, early = n / 2 % 2;
		struct fi_cq_tagged_entry entry;
		fi_addr_t source;
		struct group g;

		open_group(&g, NULL);
		t_fill(out, len, n);
		if (early)
			send_to(&g, i, out, len, n);
		for (int k = 0; k < 100 && early; k++) {
			t_drive(g.of[i].cq);
			t_drive(g.sender.cq);
		}
		assert_int_equal(fi_trecv(g.srx, in, len, NULL, FI_ADDR_UNSPEC, n, 0, in), 0);
		if (!early)
			send_to(&g, i, out, len, n);
		entry = told_to(&g, i, &source);
		assert_ptr_equal(entry.op_context, in);
		assert_int_equal(entry.len, len);
		assert_int_equal(entry.tag, n);
		assert_int_equal(entry.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
		assert_int_equal(source, g.from[i]);
		t_check(in, len, n);
		close_group(&g);
	}
}

/* In the order of posting, whichever way they come; and without tags. */
static void in_order(void **state)
{
	unsigned in[6], out[6];
	struct group g;

	(void)state;
	open_group(&g, NULL);
	for (unsigned n = 0; n < 6; n++)
		assert_int_equal(fi_recv(g.srx, &in[n], sizeof(in[n]), NULL, FI_ADDR_UNSPEC, &in[n]), 0);
	for (unsigned n = 0; n < 6; n++) {
		int i = n / 2 % 2;

		out[n] = n + 100;
		t_post(fi_send(g.sender.ep, &out[n], sizeof(out[n]), NULL, g.to[i], NULL), g.sender.cq, g.of[i].cq);
		assert_ptr_equal(told_to(&g, i, NULL).op_context, &in[n]);
		assert_int_equal(in[n], n + 100);
	}
	close_group(&g);
}

/* What an endpoint says of its entries holds for what it gets of the context: selective completion, a counter. */
static void as_each_has_it(void **state)
{
	struct fi_msg_tagged msg = {.iov_count = 1, .tag = 1};
	struct t_options o = {.bind_flags = FI_SELECTIVE_COMPLETION};
	unsigned in = 0;
	struct iovec iov = {&in, sizeof(in)};
	struct group g;

	(void)state;
	assert_int_equal(fi_cntr_open(domain.domain, NULL, &o.rx_cntr, NULL), 0);
	open_group(&g, &o);
	msg.msg_iov = &iov;
	for (unsigned n = 0; n < 6; n++) {
		int i = n / 2 % 2, asked = n % 2;

		assert_int_equal(asked ? fi_trecvmsg(g.srx, &msg, FI_COMPLETION)
				       : fi_trecv(g.srx, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
			0);
		send_to(&g, i, &n, sizeof(n), 1);
		if (!i || asked) {
			told_to(&g, i, NULL);
			continue;
		}
		for (int64_t end = t_now() + T_PATIENCE; fi_cntr_read(o.rx_cntr) < 1;) {
			assert_true(t_now() < end);
			t_drive(g.of[1].cq);
			t_drive(g.sender.cq);
		}
		t_nothing(g.of[1].cq, g.sender.cq);
		t_nothing(g.of[0].cq, g.sender.cq);
	}
	assert_int_equal(fi_cntr_read(o.rx_cntr), 2);
	close_group(&g);
	assert_int_equal(fi_close(&o.rx_cntr->fid), 0);
}

/* A buffer for many messages takes those of both, up to the least that the context is told of. */
static void multi_recv(void **state)
{
	unsigned char in[400], out[100];
	const struct iovec iov = {in, sizeof(in)};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = in};
	size_t least = 150, got = 0, len = sizeof(got);
	struct group g;

	(void)state;
	open_group(&g, NULL);
	assert_int_equal(fi_setopt(&g.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)), 0);
	assert_int_equal(fi_getopt(&g.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len), 0);
	assert_int_equal(got, least);
	assert_int_equal(fi_recvmsg(g.srx, &msg, FI_MULTI_RECV), 0);
	for (unsigned n = 0; n < 3; n++) {
		struct fi_cq_tagged_entry entry;

		t_fill(out, sizeof(out), n);
		t_post(fi_send(g.sender.ep, out, sizeof(out), NULL, g.to[n % 2], NULL), g.sender.cq, g.of[n % 2].cq);
		entry = told_to(&g, n % 2, NULL);
		assert_ptr_equal(entry.op_context, in);
		assert_ptr_equal(entry.buf, in + (size_t)100 * n);
		assert_int_equal(entry.flags & FI_MULTI_RECV, n == 2 ? FI_MULTI_RECV : 0);
		t_check(entry.buf, sizeof(out), n);
	}
	close_group(&g);
}

/* Cancelled at the context alone; told of by the endpoint that was bound first, as is a peek that finds nothing. */
static void cancel_and_peek(void **state)
{
	struct fi_cq_err_entry err;
	struct fi_msg_tagged peek = {.tag = 9};
	unsigned in;
	struct group g;

	(void)state;
	open_group(&g, NULL);
	assert_int_equal(fi_trecv(g.srx, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 9, 0, &in), 0);
	assert_int_equal(fi_cancel(&g.of[0].ep->fid, &in), -FI_ENOENT);
	assert_int_equal(fi_cancel(&g.srx->fid, &in), 0);
	err = t_wait_error(g.of[0].cq, NULL);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &in);
	assert_int_equal(fi_cancel(&g.srx->fid, &in), -FI_ENOENT);
	assert_int_equal(fi_trecvmsg(g.srx, &peek, FI_PEEK), 0);
	assert_int_equal(t_wait_error(g.of[0].cq, NULL).err, FI_ENOMSG);
	send_to(&g, 1, &in, sizeof(in), 9);
	for (int64_t end = t_now() + T_PATIENCE;;) {
		struct fi_cq_tagged_entry entry;

		assert_int_equal(fi_trecvmsg(g.srx, &peek, FI_PEEK), 0);
		t_drive(g.sender.cq);
		if (fi_cq_read(g.of[1].cq, &entry, 1) == 1) {
			assert_int_equal(entry.tag, 9);
			break;
		}
		assert_int_equal(t_wait_error(g.of[0].cq, NULL).err, FI_ENOMSG);
		assert_true(t_now() < end);
	}
	close_group(&g);
}

/* One of the two is closed: what is posted stays for the other, and what had come to the one is gone. */
static void one_is_closed(void **state)
{
	struct fi_msg_tagged peek = {.tag = 1};
	unsigned in[2] = {0}, out = 7;
	struct group g;

	(void)state;
	open_group(&g, NULL);
	send_to(&g, 1, &out, sizeof(out), 1);
	t_wait(g.sender.cq, g.of[1].cq, NULL);
	assert_int_equal(fi_trecv(g.srx, &in[0], sizeof(in[0]), NULL, FI_ADDR_UNSPEC, 2, 0, &in[0]), 0);
	t_end_close(&g.of[1]);
	assert_int_equal(fi_trecvmsg(g.srx, &peek, FI_PEEK), 0);
	assert_int_equal(t_wait_error(g.of[0].cq, NULL).err, FI_ENOMSG);
	send_to(&g, 0, &out, sizeof(out), 2);
	assert_ptr_equal(t_wait(g.of[0].cq, g.sender.cq, NULL).op_context, &in[0]);
	assert_int_equal(in[0], 7);
	t_end_close(&g.sender);
	assert_int_equal(fi_close(&g.srx->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&g.stx->fid), -FI_EBUSY);
	t_end_close(&g.of[0]);
	assert_int_equal(fi_close(&g.stx->fid), 0);
	assert_int_equal(fi_close(&g.srx->fid), 0);
}

/* Who receives has no receives of his own, and the context sends nothing; each is bound once, in its domain. */
static void rules(void **state)
{
	struct fi_rx_attr directed = {.caps = FI_TAGGED | FI_DIRECTED_RECV}, many = {.size = SIZE_MAX / 2};
	struct fi_tx_attr much = {.size = SIZE_MAX / 2};
	struct t_domain other;
	struct fid_ep *srx, *ep;
	struct fid_stx *stx;
	struct group g;
	char c = 0;

	(void)state;
	open_group(&g, NULL);
	assert_int_equal(fi_recv(g.of[0].ep, &c, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_trecv(g.of[0].ep, &c, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_send(g.srx, &c, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_tinject(g.srx, &c, 1, 0, 1), -FI_EOPBADSTATE);
	assert_int_equal(fi_recvmsg(g.srx, &(struct fi_msg){0}, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_srx_context(domain.domain, &directed, &srx, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_srx_context(domain.domain, &many, &srx, NULL), -FI_EINVAL);
	assert_int_equal(fi_stx_context(domain.domain, &much, &stx, NULL), -FI_EINVAL);
	assert_int_equal(fi_endpoint(domain.domain, domain.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &g.srx->fid, FI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &g.stx->fid, FI_TRANSMIT), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &g.srx->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &g.srx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &g.stx->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &g.stx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	t_domain_open(&other, 0, FI_THREAD_DOMAIN);
	assert_int_equal(fi_endpoint(other.domain, other.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &g.srx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &g.stx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	t_domain_close(&other);
	close_group(&g);
}

/* Who asks for shared contexts in the hints gets no FI_DIRECTED_RECV, and is not enabled without them. */
static void asked_for(void **state)
{
	struct fi_info *hints = t_hints(), *info;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;

	(void)state;
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_true(info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT && info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT);
	assert_int_equal((info->caps | info->rx_attr->caps) & FI_DIRECTED_RECV, 0);
	assert_true(info->domain_attr->max_ep_srx_ctx > 0 && info->domain_attr->max_ep_stx_ctx > 0);
	assert_int_equal(fi_endpoint(domain.domain, info, &ep, NULL), 0);
	assert_int_equal(fi_av_open(domain.domain, &(struct fi_av_attr){0}, &av, NULL), 0);
	assert_int_equal(fi_cq_open(domain.domain, &(struct fi_cq_attr){0}, &cq, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	fi_freeinfo(info);
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void two_receive(struct t_process *p)
{
	unsigned char byte, *in = malloc(LONG);
	struct fi_msg_tagged peek = {.tag = 1};
	int64_t end = t_now() + T_PATIENCE;
	struct fi_cq_tagged_entry entry;
	struct group g;

	open_domain(NULL);
	open_group(&g, NULL);
	t_say(p, g.of[1].name, sizeof(g.of[1].name));
	do {
		assert_int_equal(fi_trecvmsg(g.srx, &peek, FI_PEEK), 0);
		assert_true(t_now() < end);
		if (fi_cq_read(g.of[1].cq, &entry, 1) == 1)
			break;
	} while (t_wait_error(g.of[0].cq, NULL).err == FI_ENOMSG);
	assert_int_equal(entry.len, LONG);
	t_say(p, "", 1);
	assert_true(read(p->fd, &byte, 1) <= 0);
	assert_int_equal(fi_trecv(g.srx, in, LONG, NULL, FI_ADDR_UNSPEC, 1, 0, in), 0);
	assert_ptr_equal(t_wait_error(g.of[1].cq, g.of[0].cq).op_context, in);
	assert_int_equal(fi_trecv(g.srx, in, LONG, NULL, FI_ADDR_UNSPEC, 2, 0, in), 0);
	send_to(&g, 1, &end, sizeof(end), 2);
	t_wait(g.of[1].cq, g.sender.cq, NULL);
	close_group(&g);
	close_domain(NULL);
	free(in);
}

static void sends_and_dies(struct t_process *p)
{
	unsigned char name[64], *out = calloc(1, LONG);
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;

	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	t_hear(p, name, sizeof(name));
	to = t_insert(&e, name);
	t_post(fi_tsend(e.ep, out, LONG, NULL, to, 1, NULL), e.cq, NULL);
	t_hear_driving(p, name, 1, e.cq);
	raise(SIGKILL);
}

/* The sender of a long message dies before it is received: that receive ends, and the context goes on. */
static void a_sender_dies(void **state)
{
	static const char *const links[] = {"shm", "udp", "tcp"};

	(void)state;
	for (int i = 0; i < 3; i++)
		t_two(links[i], two_receive, sends_and_dies, NULL);
}

/*
 * A transmit context may be bound to an endpoint that is enabled, as Sandia OpenSHMEM does, and closed before it; what
 * was bound before stays.
 */
static void bound_late(void **state)
{
	struct fid_stx *stx;
	struct group g;

	(void)state;
	open_group(&g, NULL);
	assert_int_equal(fi_stx_context(domain.domain, NULL, &stx, NULL), 0);
	assert_int_equal(fi_ep_bind(g.sender.ep, &stx->fid, 0), 0);
	assert_int_equal(fi_close(&stx->fid), 0);
	assert_int_equal(fi_ep_bind(g.of[0].ep, &g.stx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(g.of[0].ep, &g.srx->fid, 0), -FI_EOPBADSTATE);
	close_group(&g);
}

static int open_triggering(void **state)
{
	struct fi_info *hints = t_hints();

	(void)state;
	hints->caps = FI_MSG | FI_TAGGED | FI_TRIGGER;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	t_domain_open_with(&domain, hints);
	return 0;
}

/*
 * An endpoint is closed while messages are on their way into receives of the context, which end with an error. That
 * counts, and would set off a deferred send of the endpoint: it is dropped before, as are all works of an endpoint that
 * is closed.
 */
static void closed_under_works(void **state)
{
	enum { COUNT = 6, LENGTH = 100000 }; /* more than shared memory takes while nobody looks */
	static unsigned char in[COUNT][LENGTH], out[LENGTH];
	struct iovec iov = {out, 8};
	struct fi_op_tagged op = {.msg = {.msg_iov = &iov, .iov_count = 1, .tag = 1}};
	struct fi_deferred_work work = {.op_type = FI_OP_TSEND, .op.tagged = &op};
	struct t_options o = {0};
	struct group g;

	(void)state;
	assert_int_equal(fi_cntr_open(domain.domain, NULL, &o.rx_cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(domain.domain, NULL, &work.completion_cntr, NULL), 0);
	open_group(&g, &o);
	assert_int_equal(fi_trecv(g.srx, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), 0);
	send_to(&g, 1, out, 8, 0);
	told_to(&g, 1, NULL);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(fi_trecv(g.srx, in[i], LENGTH, NULL, FI_ADDR_UNSPEC, 1 + i, 0, in[i]), 0);
		send_to(&g, 1, out, LENGTH, 1 + i);
	}
	for (int k = 0; k < 200; k++)
		t_drive(g.of[1].cq);
	work.triggering_cntr = o.rx_cntr;
	work.threshold = fi_cntr_read(o.rx_cntr) + 1;
	op.ep = g.of[1].ep;
	op.msg.addr = g.from[1];
	assert_int_equal(fi_control(&domain.domain->fid, FI_QUEUE_WORK, &work), 0);
	t_end_close(&g.of[1]);
	assert_true(fi_cntr_readerr(o.rx_cntr) > 0);
	assert_int_equal(fi_cntr_read(work.completion_cntr), 0);
	assert_int_equal(fi_cntr_readerr(work.completion_cntr), 0);
	t_end_close(&g.sender);
	t_end_close(&g.of[0]);
	assert_int_equal(fi_close(&g.stx->fid), 0);
	assert_int_equal(fi_close(&g.srx->fid), 0);
	assert_int_equal(fi_close(&o.rx_cntr->fid), 0);
	assert_int_equal(fi_close(&work.completion_cntr->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sender_dies),
		cmocka_unit_test_setup_teardown(either_endpoint, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(in_order, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(as_each_has_it, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(multi_recv, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(cancel_and_peek, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(one_is_closed, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(rules, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(asked_for, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(bound_late, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(closed_under_works, open_triggering, close_domain),
	};

	t_use_provider();
	return cmocka_run_group_tests_name("shared contexts", tests, NULL, NULL);
}
