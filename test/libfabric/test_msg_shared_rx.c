/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shared receive context of FI_EP_MSG: two endpoints of one side have it, each with a queue of its own, and two
 * clients are connected to them.
 */
#include "fi_msg.h"

#include <stdlib.h>

#define LONG ((size_t)4 << 20)

struct group {
	struct t_side server, client[2];
	struct fid_ep *srx, *ep[2];
	struct fid_cq *cq[2];
};

static void open_group(struct group *g, const struct t_msg_options *o)
{
	struct fi_rx_attr few = {.size = 4}; /* less than a test posts in all */

	memset(g, 0, sizeof(*g));
	t_side_open(&g->server, o);
	assert_int_equal(fi_srx_context(g->server.domain, &few, &g->srx, NULL), 0);
	g->server.srx = g->srx;
	t_side_listen(&g->server);
	for (int i = 0; i < 2; i++) {
		t_side_open(&g->client[i], o);
		t_side_connect(&g->client[i], &g->server);
		g->ep[i] = g->server.ep;
		g->cq[i] = g->server.cq;
	}
	g->server.ep = NULL;
	g->server.cq = NULL;
}

static void close_one(struct group *g, int i)
{
	assert_int_equal(fi_close(&g->ep[i]->fid), 0);
	assert_int_equal(fi_close(&g->cq[i]->fid), 0);
	g->ep[i] = NULL;
	g->cq[i] = NULL;
}

static void close_group(struct group *g)
{
	for (int i = 0; i < 2; i++) {
		if (g->ep[i])
			close_one(g, i);
		t_side_close(&g->client[i]);
	}
	assert_int_equal(fi_close(&g->srx->fid), 0);
	t_side_close(&g->server);
}

/* The entry of a receive, in that endpoint's queue alone. */
static struct fi_cq_tagged_entry told_to(struct group *g, int i)
{
	struct fi_cq_tagged_entry entry = t_wait(g->cq[i], g->client[i].cq, NULL);

	if (g->cq[1 - i])
		t_nothing(g->cq[1 - i], NULL);
	return entry;
}

/*
 * Receives are taken in the order of posting, by whichever endpoint a message comes; who sends when there is none waits
 * for one.
 */
static void either_endpoint(void **state)
{
	static const size_t lengths[] = {0, 200, 100000};
	unsigned char *in[2] = {malloc(100000), malloc(100000)}, *out = malloc(100000);
	struct group g;

	(void)state;
	open_group(&g, &(struct t_msg_options){0});
	for (unsigned n = 0; n < 12; n++) {
		size_t len = lengths[n / 4];
		int i = n % 2, early = n / 2 % 2;
		struct fi_cq_tagged_entry entry;

		t_fill(out, len, n);
		if (!early)
			for (int k = 0; k < 2; k++)
				assert_int_equal(fi_recv(g.srx, in[k], 100000, NULL, FI_ADDR_UNSPEC, in[k]), 0);
		t_post(fi_send(g.client[i].ep, out, len, NULL, 0, NULL), g.client[i].cq, g.cq[i]);
		for (int k = 0; k < 100 && early; k++) {
			t_drive(g.cq[i]);
			t_drive(g.client[i].cq);
		}
		if (early)
			for (int k = 0; k < 2; k++)
				assert_int_equal(fi_recv(g.srx, in[k], 100000, NULL, FI_ADDR_UNSPEC, in[k]), 0);
		entry = told_to(&g, i);
		assert_ptr_equal(entry.op_context, in[0]);
		assert_int_equal(entry.len, len);
		t_check(in[0], len, n);
		t_wait(g.client[i].cq, g.cq[i], NULL);
		t_fill(out, len, n + 1);
		t_post(fi_send(g.client[1 - i].ep, out, len, NULL, 0, NULL), g.client[1 - i].cq, g.cq[i]);
		assert_ptr_equal(told_to(&g, 1 - i).op_context, in[1]);
		t_check(in[1], len, n + 1);
		t_wait(g.client[1 - i].cq, g.cq[i], NULL);
	}
	close_group(&g);
	free(in[0]);
	free(in[1]);
	free(out);
}

/* With selective completion an entry is for who asks for one. */
static void selective(void **state)
{
	struct group g;
	char in = 0, out = 1;
	const struct iovec iov = {&in, 1};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &in};

	(void)state;
	open_group(&g, &(struct t_msg_options){.bind_flags = FI_SELECTIVE_COMPLETION});
	assert_int_equal(fi_recv(g.srx, &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_recvmsg(g.srx, &msg, FI_COMPLETION), 0);
	for (int n = 0; n < 2; n++)
		t_post(fi_send(g.client[1].ep, &out, 1, NULL, 0, NULL), g.client[1].cq, g.cq[1]);
	assert_ptr_equal(t_wait(g.cq[1], g.client[1].cq, NULL).op_context, &in);
	t_nothing(g.cq[1], g.client[1].cq);
	close_group(&g);
}

/* One of the clients goes, and its endpoint: what is posted is for the other. */
static void one_goes(void **state)
{
	struct group g;
	char in = 0, out = 7;

	(void)state;
	open_group(&g, &(struct t_msg_options){0});
	assert_int_equal(fi_recv(g.srx, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(fi_shutdown(g.client[1].ep, 0), 0);
	assert_ptr_equal(t_side_event(&g.server, &g.client[1], FI_SHUTDOWN).fid, &g.ep[1]->fid);
	t_nothing(g.cq[1], NULL);
	assert_int_equal(fi_close(&g.srx->fid), -FI_EBUSY);
	close_one(&g, 1);
	t_post(fi_send(g.client[0].ep, &out, 1, NULL, 0, NULL), g.client[0].cq, g.cq[0]);
	assert_ptr_equal(told_to(&g, 0).op_context, &in);
	assert_int_equal(in, 7);
	close_group(&g);
}

/* An endpoint is shut down in the middle of a message: its buffer is told of, or is there for the next. */
static void no_buffer_is_lost(void **state)
{
	unsigned char *in = malloc(LONG), *out = calloc(1, LONG);
	unsigned seen[2] = {0};

	(void)state;
	for (unsigned n = 0; n < 12; n++) {
		struct fi_cq_tagged_entry entry;
		struct group g;
		ssize_t got;

		open_group(&g, &(struct t_msg_options){0});
		assert_int_equal(fi_recv(g.srx, in, LONG, NULL, FI_ADDR_UNSPEC, in), 0);
		t_post(fi_send(g.client[1].ep, out, LONG, NULL, 0, NULL), g.client[1].cq, g.cq[1]);
		for (unsigned k = 0; k < n; k++) {
			t_drive(g.client[1].cq);
			t_drive(g.cq[1]);
		}
		assert_int_equal(fi_shutdown(g.ep[1], 0), 0);
		got = fi_cq_read(g.cq[1], &entry, 1);
		seen[got == -FI_EAVAIL]++;
		if (got == -FI_EAVAIL)
			assert_ptr_equal(t_wait_error(g.cq[1], NULL).op_context, in);
		if (got != -FI_EAGAIN)
			assert_int_equal(fi_recv(g.srx, in, LONG, NULL, FI_ADDR_UNSPEC, in), 0);
		t_post(fi_send(g.client[0].ep, out, 10, NULL, 0, NULL), g.client[0].cq, g.cq[0]);
		entry = t_wait(g.cq[0], g.client[0].cq, NULL);
		assert_ptr_equal(entry.op_context, in);
		assert_int_equal(entry.len, 10);
		close_group(&g);
	}
	assert_true(seen[0] && seen[1]);
	free(in);
	free(out);
}

/*
 * Who has it has no receives of his own, and it sends nothing; it is of its domain, and as large as it is
 * asked to be.
 */
static void rules(void **state)
{
	struct fi_rx_attr two = {.size = 2}, many = {.size = SIZE_MAX / 2}, tagged = {.caps = FI_TAGGED};
	struct fid_ep *srx, *ep;
	struct fid_stx *stx;
	struct group g;
	char c = 0;

	(void)state;
	open_group(&g, &(struct t_msg_options){0});
	assert_int_equal(fi_recv(g.ep[0], &c, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_send(g.srx, &c, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_srx_context(g.server.domain, &many, &srx, NULL), -FI_EINVAL);
	assert_int_equal(fi_srx_context(g.server.domain, &tagged, &srx, NULL), -FI_EINVAL);
	assert_int_equal(fi_srx_context(g.server.domain, &two, &srx, NULL), 0);
	assert_int_equal(fi_recv(srx, &c, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_recv(srx, &c, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_recv(srx, &c, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EAGAIN);
	assert_int_equal(fi_endpoint(g.server.domain, g.server.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &srx->fid, FI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &srx->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &srx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_stx_context(g.server.domain, NULL, &stx, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &stx->fid, 0), 0);
	assert_int_equal(fi_close(&stx->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&srx->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&stx->fid), 0);
	assert_int_equal(fi_endpoint(g.client[0].domain, g.client[0].info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &srx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&srx->fid), 0);
	close_group(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_endpoint),
		cmocka_unit_test(selective),
		cmocka_unit_test(one_goes),
		cmocka_unit_test(no_buffer_is_lost),
		cmocka_unit_test(rules),
	};

	t_use_provider();
	return cmocka_run_group_tests_name("shared receives of connected endpoints", tests, NULL, NULL);
}
