/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_MSG: messages. Two sides in one process, each with a fabric of its own, connected.
 */
#include "fi_msg.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#define LONG ((size_t)(1 << 20) + 3)

static struct t_side client, server;
static unsigned char *out, *in;

static int allocate(void **state)
{
	(void)state;
	out = malloc(LONG);
	in = malloc(LONG);
	return !out || !in;
}

#define POSTED ((size_t)8192) /* receives of an endpoint, at most */
#define CROWD  8

/* An endpoint beside the side's own, with all the receives that it may have. */
static struct fid_ep *full_endpoint(struct t_side *s)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(s->domain, s->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &s->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	for (size_t i = 0; i < POSTED; i++)
		assert_int_equal(fi_recv(ep, in, 1, NULL, 0, NULL), 0);
	assert_int_equal(fi_recv(ep, in, 1, NULL, 0, NULL), -FI_EAGAIN);
	return ep;
}

/* Receives that are posted at other endpoints, however many, keep none from sending and receiving. */
static void beside_many_receives(void **state)
{
	struct fid_ep *crowd[CROWD];
	struct fi_cq_tagged_entry e;

	(void)state;
	t_sides_open(&client, &server, &(struct t_msg_options){.rx_size = POSTED});
	for (int i = 0; i < CROWD; i++)
		crowd[i] = full_endpoint(&client);
	t_fill(out, 9, 1);
	for (int i = 0; i < 2; i++) {
		struct t_side *from = i ? &server : &client, *to = i ? &client : &server;

		assert_int_equal(fi_recv(to->ep, in, 9, NULL, 0, to), 0);
		assert_int_equal(fi_send(from->ep, out, 9, NULL, 0, from), 0);
		e = t_wait(to->cq, from->cq, NULL);
		assert_ptr_equal(e.op_context, to);
		assert_ptr_equal(t_wait(from->cq, to->cq, NULL).op_context, from);
	}
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(fi_close(&crowd[i]->fid), 0);
	t_sides_close(&client, &server);
}

static int release(void **state)
{
	(void)state;
	free(out);
	free(in);
	return 0;
}

static void check_received(const struct fi_cq_tagged_entry *e, void *context, size_t len, unsigned seed)
{
	assert_ptr_equal(e->op_context, context);
	assert_int_equal(e->flags & ~(uint64_t)FI_REMOTE_CQ_DATA, FI_RECV | FI_MSG);
	assert_int_equal(e->len, len);
	assert_ptr_equal(e->buf, in);
	t_check(in, len, seed);
}

/* Every length by way of fi_send, with the receive posted before and after: then it waits, and is not lost. */
static void lengths(void **state)
{
	static const size_t len[] = {0, 1, 255, 256, 257, 4096, 4097, 65536, LONG};
	struct fi_cq_tagged_entry e;

	(void)state;
	t_sides_open(&client, &server, NULL);
	for (unsigned i = 0; i < 2 * sizeof(len) / sizeof(len[0]); i++) {
		size_t n = len[i / 2];

		memset(in, 0, LONG);
		t_fill(out, n, i);
		if (i % 2)
			assert_int_equal(fi_recv(server.ep, in, LONG, NULL, 0, &server), 0);
		assert_int_equal(fi_send(client.ep, out, n, NULL, 0, &client), 0);
		if (!(i % 2)) {
			t_nothing(client.cq, server.cq);
			assert_int_equal(fi_recv(server.ep, in, LONG, NULL, 0, &server), 0);
		}
		e = t_wait(server.cq, client.cq, NULL);
		check_received(&e, &server, n, i);
		e = t_wait(client.cq, server.cq, NULL);
		assert_ptr_equal(e.op_context, &client);
		assert_int_equal(e.flags, FI_SEND | FI_MSG);
	}
	t_sides_close(&client, &server);
}

/* All calls that send and receive: pieces, data of 32 bits, injected ones whose memory is the caller's at once. */
static void calls(void **state)
{
	struct iovec to[2] = {{NULL, 100}, {NULL, 900}}, from[3] = {{NULL, 1}, {NULL, 0}, {NULL, 499}};
	struct fi_msg msg = {.msg_iov = from, .iov_count = 3, .context = &client, .data = 0x89abcdef};
	struct fi_msg recv_msg = {.msg_iov = to, .iov_count = 2, .context = &server};
	struct fi_cq_tagged_entry e;

	(void)state;
	t_sides_open(&client, &server, NULL);
	to[0].iov_base = in;
	to[1].iov_base = in + 100;
	from[0].iov_base = out;
	from[2].iov_base = out + 1;
	for (int call = 0; call < 7; call++) {
		size_t len = call < 3 ? 500 : 200;
		bool injected = call == 3 || call == 4;
		bool data = call == 1 || call == 2 || call == 4 || call == 6;

		memset(in, 0, 1000);
		t_fill(out, 500, (unsigned)call);
		if (call % 2)
			assert_int_equal(fi_recvv(server.ep, to, NULL, 2, 0, &server), 0);
		else
			assert_int_equal(fi_recvmsg(server.ep, &recv_msg, FI_COMPLETION), 0);
		if (call == 0)
			assert_int_equal(fi_sendv(client.ep, from, NULL, 3, 0, &client), 0);
		else if (call == 1)
			assert_int_equal(fi_sendmsg(client.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_FENCE), 0);
		else if (call == 2)
			assert_int_equal(fi_senddata(client.ep, out, len, NULL, 0x89abcdef, 0, &client), 0);
		else if (call == 3)
			assert_int_equal(fi_inject(client.ep, out, len, 0), 0);
		else if (call == 4)
			assert_int_equal(fi_injectdata(client.ep, out, len, 0x89abcdef, 0), 0);
		else if (call == 5)
			assert_int_equal(fi_send(client.ep, out, len, NULL, 0, &client), 0);
		else {
			from[2].iov_len = 199;
			assert_int_equal(fi_sendmsg(client.ep, &msg, FI_REMOTE_CQ_DATA | FI_INJECT), 0);
		}
		if (injected || call == 6)
			memset(out, 0xee, 500);
		e = t_wait(server.cq, client.cq, NULL);
		check_received(&e, &server, len, (unsigned)call);
		assert_int_equal(!!(e.flags & FI_REMOTE_CQ_DATA), data);
		if (data)
			assert_int_equal(e.data, 0x89abcdef);
		if (!injected)
			assert_ptr_equal(t_wait(client.cq, server.cq, NULL).op_context, &client);
	}
	t_nothing(client.cq, server.cq);
	assert_int_equal(fi_inject(client.ep, out, 257, 0), -FI_EMSGSIZE);
	assert_int_equal(fi_sendv(client.ep, from, NULL, 9, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_sendmsg(client.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	t_sides_close(&client, &server);
}

/* More than the queues hold, in both directions: nothing is lost or overtaken, and a full queue says so. */
static void many(void **state)
{
	enum { N = 3000 };
	const struct t_msg_options o = {.tx_size = 16, .rx_size = 16};
	struct t_side *side[2] = {&client, &server};
	unsigned sent[2] = {0, 0}, posted[2] = {0, 0}, got[2] = {0, 0}, full = 0;
	static unsigned to[2][16], from[2][N];
	int64_t end = t_now() + T_PATIENCE;

	(void)state;
	t_sides_open(&client, &server, &o);
	while ((got[0] < N || got[1] < N) && t_now() < end) {
		for (int s = 0; s < 2; s++) {
			struct fi_cq_tagged_entry e;
			ssize_t n;

			while (posted[s] < N && posted[s] - got[s] < 16) {
				n = fi_recv(side[s]->ep, &to[s][posted[s] % 16], sizeof(unsigned), NULL, 0, NULL);
				if (n)
					break;
				posted[s]++;
			}
			while (sent[s] < N) {
				from[s][sent[s]] = sent[s];
				n = fi_send(side[s]->ep, &from[s][sent[s]], sizeof(unsigned), NULL, 0, NULL);
				full += n == -FI_EAGAIN;
				if (n)
					break;
				sent[s]++;
			}
			while (fi_cq_read(side[s]->cq, &e, 1) == 1) {
				if (!(e.flags & FI_RECV))
					continue;
				assert_int_equal(*(unsigned *)e.buf, got[s]);
				got[s]++;
			}
		}
	}
	assert_true(got[0] == N && got[1] == N && full);
	t_sides_close(&client, &server);
}

/* Longer than the receive: the receiver has what fits not at all but an error, and the connection ends for both. */
static void truncated(void **state)
{
	(void)state;
	t_sides_open(&client, &server, NULL);
	assert_int_equal(fi_recv(server.ep, in, 10, NULL, 0, &server), 0);
	assert_int_equal(fi_send(client.ep, out, 11, NULL, 0, &client), 0);
	assert_int_equal(t_wait_error(server.cq, client.cq).err, FI_ETRUNC);
	assert_int_equal(t_wait_error(client.cq, server.cq).err, FI_EINVAL);
	t_side_event(&server, &client, FI_SHUTDOWN);
	t_side_event(&client, &server, FI_SHUTDOWN);
	t_sides_close(&client, &server);
}

/* What is posted when the connection ends comes back, at the end that ends it before fi_shutdown returns. */
static void flushed(void **state)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e;

	(void)state;
	t_sides_open(&client, &server, NULL);
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(fi_recv(server.ep, in, 10, NULL, 0, (void *)i), 0);
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(fi_recv(client.ep, in, 10, NULL, 0, (void *)i), 0);
	assert_int_equal(fi_shutdown(client.ep, 0), 0);
	for (uintptr_t i = 0; i < 3; i++) {
		assert_int_equal(fi_cq_read(client.cq, &e, 1), -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(client.cq, &err, 0), 1);
		assert_int_equal(err.err, FI_ECANCELED);
		assert_ptr_equal(err.op_context, (void *)i);
	}
	for (uintptr_t i = 0; i < 3; i++) {
		err = t_wait_error(server.cq, client.cq);
		assert_int_equal(err.err, FI_ECANCELED);
		assert_int_equal(err.flags, FI_RECV | FI_MSG);
		assert_ptr_equal(err.op_context, (void *)i);
	}
	t_side_event(&server, &client, FI_SHUTDOWN);
	t_sides_close(&client, &server);
}

/* A send that no receive takes is cancelled with the connection; an injected one says nothing. */
static void never_taken(void **state)
{
	(void)state;
	t_sides_open(&client, &server, NULL);
	assert_int_equal(fi_send(client.ep, out, 10, NULL, 0, &client), 0);
	assert_int_equal(fi_inject(client.ep, out, 10, 0), 0);
	t_nothing(client.cq, server.cq);
	assert_int_equal(fi_close(&server.ep->fid), 0);
	server.ep = NULL;
	assert_ptr_equal(t_wait_error(client.cq, NULL).op_context, &client);
	t_nothing(client.cq, NULL);
	t_sides_close(&client, &server);
}

/* Entries only for operations that ask for one; errors in any case. */
static void selective(void **state)
{
	const struct t_msg_options o = {.bind_flags = FI_SELECTIVE_COMPLETION};
	struct iovec iov = {NULL, 10};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &msg};

	(void)state;
	iov.iov_base = in;
	t_sides_open(&client, &server, &o);
	assert_int_equal(fi_recv(server.ep, in, 10, NULL, 0, &in), 0);
	assert_int_equal(fi_recvmsg(server.ep, &msg, FI_COMPLETION), 0);
	assert_int_equal(fi_recvmsg(server.ep, &msg, 0), 0);
	assert_int_equal(fi_recv(server.ep, in, 10, NULL, 0, &in), 0);
	assert_int_equal(fi_send(client.ep, out, 10, NULL, 0, &out), 0);
	iov.iov_base = out;
	assert_int_equal(fi_sendmsg(client.ep, &msg, FI_COMPLETION), 0);
	assert_int_equal(fi_sendmsg(client.ep, &msg, 0), 0);
	assert_ptr_equal(t_wait(server.cq, client.cq, NULL).op_context, &msg);
	assert_ptr_equal(t_wait(client.cq, server.cq, NULL).op_context, &msg);
	t_nothing(client.cq, server.cq);
	t_nothing(server.cq, client.cq);
	assert_int_equal(fi_shutdown(client.ep, 0), 0);
	assert_ptr_equal(t_wait_error(server.cq, client.cq).op_context, &in);
	t_sides_close(&client, &server);
}

/* An endpoint that has asked for completions by its default flags has them. */
static void default_flags(void **state)
{
	const struct t_msg_options o = {
		.bind_flags = FI_SELECTIVE_COMPLETION, .tx_op_flags = FI_COMPLETION | FI_INJECT};

	(void)state;
	t_sides_open(&client, &server, &o);
	assert_int_equal(fi_recv(server.ep, in, 10, NULL, 0, NULL), 0);
	t_fill(out, 10, 4);
	assert_int_equal(fi_send(client.ep, out, 10, NULL, 0, &client), 0);
	memset(out, 0, 10); /* FI_INJECT: it is copied */
	assert_ptr_equal(t_wait(client.cq, server.cq, NULL).op_context, &client);
	t_nothing(server.cq, client.cq);
	t_check(in, 10, 4);
	t_sides_close(&client, &server);
}

/* Counters in place of queues: of what goes well and of what does not. */
static void counters(void **state)
{
	const struct t_msg_options o = {.cntrs = true, .wait = FI_WAIT_FD};
	int64_t end = t_now() + T_PATIENCE;

	(void)state;
	t_sides_open(&client, &server, &o);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(server.ep, in, 10, NULL, 0, NULL), 0);
	assert_int_equal(fi_inject(client.ep, out, 10, 0), 0);
	assert_int_equal(fi_send(client.ep, out, 10, NULL, 0, NULL), 0);
	while (fi_cntr_read(client.tx_cntr) < 2 && t_now() < end)
		fi_cntr_read(server.rx_cntr);
	assert_int_equal(fi_cntr_read(client.tx_cntr), 2);
	assert_int_equal(fi_cntr_wait(server.rx_cntr, 2, 0), 0);
	assert_int_equal(fi_shutdown(client.ep, 0), 0);
	assert_int_equal(fi_cntr_wait(server.rx_cntr, 3, T_PATIENCE), -FI_EAVAIL);
	assert_int_equal(fi_cntr_readerr(server.rx_cntr), 1);
	t_sides_close(&client, &server);
}

/* The shortest entry has a context and nothing behind it. */
static void formats(void **state)
{
	const struct t_msg_options o = {.format = FI_CQ_FORMAT_CONTEXT};
	struct {
		struct fi_cq_entry e;
		uint64_t behind;
	} got = {.behind = 77};
	int64_t end = t_now() + T_PATIENCE;

	(void)state;
	t_sides_open(&client, &server, &o);
	assert_int_equal(fi_recv(server.ep, in, 10, NULL, 0, &got), 0);
	assert_int_equal(fi_send(client.ep, out, 10, NULL, 0, NULL), 0);
	while (fi_cq_read(server.cq, &got, 1) == -FI_EAGAIN && t_now() < end)
		t_drive(client.cq);
	assert_ptr_equal(got.e.op_context, &got);
	assert_int_equal(got.behind, 77);
	t_sides_close(&client, &server);
}

static void *echo(void *arg)
{
	struct fi_cq_tagged_entry e;

	(void)arg;
	for (int i = 0; i < 100; i++) {
		if (fi_cq_sread(server.cq, &e, 1, NULL, T_PATIENCE) != 1)
			return "no receive";
		if (fi_recv(server.ep, in, 8, NULL, 0, NULL) || fi_inject(server.ep, e.buf, 8, 0))
			return "cannot answer";
	}
	return NULL;
}

/* Both ends sleep: each is woken by what the other sends, and does what there is to do for it. */
static void sleeps(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	struct fi_cq_tagged_entry e;
	uint64_t answer;
	pthread_t thread;
	void *trouble;

	(void)state;
	t_sides_open(&client, &server, &o);
	assert_int_equal(fi_recv(server.ep, in, 8, NULL, 0, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, echo, NULL), 0);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(fi_recv(client.ep, &answer, 8, NULL, 0, NULL), 0);
		assert_int_equal(fi_inject(client.ep, &i, 8, 0), 0);
		assert_int_equal(fi_cq_sread(client.cq, &e, 1, NULL, T_PATIENCE), 1);
		assert_int_equal(answer, i);
	}
	pthread_join(thread, &trouble);
	assert_null(trouble);
	assert_int_equal(fi_cq_sread(client.cq, &e, 1, NULL, 10), -FI_EAGAIN);
	t_sides_close(&client, &server);
}

/* One thread sleeps on the event queue, one on the completion queue of the same endpoint: both hear. */
static void *await_shutdown(void *arg)
{
	struct fi_eq_cm_entry entry;
	uint32_t number;

	(void)arg;
	if (fi_eq_sread(server.eq, &number, &entry, sizeof(entry), T_PATIENCE, 0) != sizeof(entry))
		return "no event";
	return number == FI_SHUTDOWN ? NULL : "another event";
}

static void *await_message(void *arg)
{
	struct fi_cq_tagged_entry e;

	(void)arg;
	return fi_cq_sread(server.cq, &e, 1, NULL, T_PATIENCE) == 1 ? NULL : "no message";
}

static void two_sleepers(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	pthread_t on_eq, on_cq;
	void *trouble;

	(void)state;
	for (int i = 0; i < 20; i++) {
		t_sides_open(&client, &server, &o);
		assert_int_equal(fi_recv(server.ep, in, 8, NULL, 0, NULL), 0);
		assert_int_equal(pthread_create(&on_eq, NULL, await_shutdown, NULL), 0);
		assert_int_equal(pthread_create(&on_cq, NULL, await_message, NULL), 0);
		poll(NULL, 0, i % 4);
		assert_int_equal(fi_inject(client.ep, out, 8, 0), 0);
		pthread_join(on_cq, &trouble);
		assert_null(trouble);
		assert_int_equal(fi_shutdown(client.ep, 0), 0);
		pthread_join(on_eq, &trouble);
		assert_null(trouble);
		t_sides_close(&client, &server);
	}
}

/* FI_PROGRESS_AUTO: the server calls nothing, and its messages come and go all the same. */
static void by_itself(void **state)
{
	const struct t_msg_options o = {.progress = FI_PROGRESS_AUTO};
	struct fi_cq_tagged_entry e;

	(void)state;
	t_sides_open(&client, &server, &o);
	t_fill(out, LONG, 9);
	assert_int_equal(fi_recv(server.ep, in, LONG, NULL, 0, &server), 0);
	assert_int_equal(fi_send(client.ep, out, LONG, NULL, 0, &client), 0);
	t_wait(client.cq, NULL, NULL);
	assert_int_equal(fi_cq_read(server.cq, &e, 1), 1);
	check_received(&e, &server, LONG, 9);
	t_sides_close(&client, &server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(calls),
		cmocka_unit_test(many),
		cmocka_unit_test(beside_many_receives),
		cmocka_unit_test(truncated),
		cmocka_unit_test(flushed),
		cmocka_unit_test(never_taken),
		cmocka_unit_test(selective),
		cmocka_unit_test(default_flags),
		cmocka_unit_test(counters),
		cmocka_unit_test(formats),
		cmocka_unit_test(sleeps),
		cmocka_unit_test(two_sleepers),
		cmocka_unit_test(by_itself),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, allocate, release);
}
