/* SPDX-License-Identifier: BSD-3-Clause */
/* FI_EP_DGRAM: messages, one way and the other, and who is told of them. */
#include "fi_dgram.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>
#include <sys/socket.h>
#include <unistd.h>

/* bytes of a datagram */

/* Each length, with each kind of address, bound to any and to one; who sent it is known once it is inserted. */
static void lengths(void **state)
{
	static const struct t_dgram_how ways[] = {{0}, {.format = FI_SOCKADDR_IN}, {.format = FI_SOCKADDR_IN6},
		{.format = FI_SOCKADDR_IN, .family = AF_INET}, {.format = FI_SOCKADDR_IN6, .family = AF_INET6},
		{.threading = FI_THREAD_DOMAIN}};
	static const size_t len[] = {0, 1, 2, 3, 4, 255, 256, 257, T_DGRAM_MAX - 1, T_DGRAM_MAX};

	(void)state;
	for (unsigned w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		t_dgram_open(&ways[w], NULL);
		t_dgram_exchange(5, w, FI_ADDR_NOTAVAIL);
		t_insert(&receiver, receiver.name);
		t_insert(&receiver, sender.name);
		for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++)
			t_dgram_exchange(len[i], w + i, 1);
		t_dgram_close();
	}
}

/* All calls that send and receive: pieces, data of 32 bits, injected ones whose memory is the caller's at once. */
static void calls(void **state)
{
	struct iovec pieces[2] = {{in, 100}, {in + 100, 900}}, from[3] = {{out, 1}, {NULL, 0}, {out + 1, 199}};
	struct fi_msg msg = {.msg_iov = from, .iov_count = 3, .context = &sender, .data = 0x89abcdef};
	struct fi_msg recv_msg = {.msg_iov = pieces, .iov_count = 2, .context = &receiver};
	struct fi_cq_tagged_entry e;

	(void)state;
	t_dgram_open(NULL, NULL);
	msg.addr = to;
	for (int call = 0; call < 7; call++) {
		bool injected = call == 3 || call == 4, data = call == 1 || call == 2 || call == 4 || call == 6;
		struct fid_ep *ep = sender.ep;

		memset(in, 0, sizeof(in));
		t_fill(out, 200, (unsigned)call);
		if (call % 2)
			assert_int_equal(fi_recvv(receiver.ep, pieces, NULL, 2, 0, &receiver), 0);
		else
			assert_int_equal(fi_recvmsg(receiver.ep, &recv_msg, FI_COMPLETION), 0);
		assert_int_equal(call == 0   ? fi_sendv(ep, from, NULL, 3, to, &sender)
				 : call == 1 ? fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_MORE)
				 : call == 2 ? fi_senddata(ep, out, 200, NULL, 0x89abcdef, to, &sender)
				 : call == 3 ? fi_inject(ep, out, 200, to)
				 : call == 4 ? fi_injectdata(ep, out, 200, 0x89abcdef, to)
				 : call == 5 ? fi_send(ep, out, 200, NULL, to, &sender)
					     : fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA | FI_INJECT),
			0);
		memset(out, 0xee, 200); /* it is ours again, whatever the call */
		e = t_wait(receiver.cq, NULL, NULL);
		t_dgram_check(&e, &receiver, 200, (unsigned)call);
		assert_int_equal(!!(e.flags & FI_REMOTE_CQ_DATA), data);
		assert_int_equal(e.data, data ? 0x89abcdef : 0);
		if (injected) {
			t_nothing(sender.cq, NULL);
			continue;
		}
		e = t_wait(sender.cq, NULL, NULL);
		assert_ptr_equal(e.op_context, &sender);
	}
	t_dgram_close();
}

/* A datagram for which no receive is posted is dropped; the receive that is posted then takes the next one. */
static void without_a_receive(void **state)
{
	(void)state;
	t_dgram_open(NULL, NULL);
	t_fill(out, 10, 1);
	assert_int_equal(fi_inject(sender.ep, out, 10, to), 0);
	usleep(20000); /* the kernel may deliver later than the send returns */
	t_nothing(receiver.cq, sender.cq);
	t_dgram_exchange(10, 2, FI_ADDR_NOTAVAIL);
	t_nothing(receiver.cq, sender.cq);
	t_dgram_close();
}

/* Of a datagram that is longer than its receive the beginning is there. */
static void truncated(void **state)
{
	struct fi_cq_err_entry e;

	(void)state;
	t_dgram_open(NULL, NULL);
	t_fill(out, 100, 3);
	memset(in, 0, sizeof(in));
	assert_int_equal(fi_recv(receiver.ep, in, 60, NULL, 0, &receiver), 0);
	assert_int_equal(fi_inject(sender.ep, out, 100, to), 0);
	e = t_wait_error(receiver.cq, sender.cq);
	assert_int_equal(e.err, FI_ETRUNC);
	assert_int_equal(e.olen, 40);
	assert_int_equal(e.len, 60);
	assert_ptr_equal(e.op_context, &receiver);
	t_check(in, 60, 3);
	assert_int_equal(in[60], 0);
	t_dgram_close();
}

/* As many receives as were asked for can be posted; one that is cancelled makes room, and takes nothing. */
static void posted(void **state)
{
	int tag[3];
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;

	(void)state;
	t_dgram_open(&(struct t_dgram_how){.rx_size = 3}, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &tag[i]), 0);
	assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, NULL), -FI_EAGAIN);
	assert_int_equal(fi_cancel(&receiver.ep->fid, &tag[0]), 0);
	assert_int_equal(fi_cancel(&receiver.ep->fid, &tag[0]), -FI_ENOENT);
	err = t_wait_error(receiver.cq, NULL);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &tag[0]);
	assert_int_equal(fi_inject(sender.ep, out, 1, to), 0);
	e = t_wait(receiver.cq, NULL, NULL);
	assert_ptr_equal(e.op_context, &tag[1]);
	assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &tag[1]), 0);
	assert_int_equal(fi_inject(sender.ep, out, 1, to), 0);
	e = t_wait(receiver.cq, NULL, NULL);
	assert_ptr_equal(e.op_context, &tag[2]);
	t_dgram_close();
}

/* Counters count what goes and what comes, and wake who waits for them; queues have what is asked for alone. */
static void counters(void **state)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
	struct t_options o = {.bind_flags = FI_SELECTIVE_COMPLETION};

	(void)state;
	t_domain_open_with(&dgrams, t_dgram_hints(&(struct t_dgram_how){0}));
	assert_int_equal(fi_cntr_open(dgrams.domain, &attr, &o.tx_cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(dgrams.domain, &attr, &o.rx_cntr, NULL), 0);
	t_end_open(&sender, &dgrams, &o);
	to = t_insert(&sender, sender.name);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fi_recv(sender.ep, in, T_DGRAM_MAX, NULL, 0, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			i % 2 ? fi_send(sender.ep, out, 9, NULL, to, NULL) : fi_inject(sender.ep, out, 9, to), 0);
	assert_int_equal(fi_cntr_read(o.tx_cntr), 4);
	assert_int_equal(fi_cntr_wait(o.rx_cntr, 4, T_PATIENCE), 0);
	assert_int_equal(fi_cntr_wait(o.rx_cntr, 5, 20), -FI_ETIMEDOUT);
	assert_int_equal(fi_cntr_read(o.rx_cntr), 4);
	t_nothing(sender.cq, NULL);
	t_end_close(&sender);
	assert_int_equal(fi_close(&o.tx_cntr->fid), 0);
	assert_int_equal(fi_close(&o.rx_cntr->fid), 0);
	t_domain_close(&dgrams);
}

static void *send_later(void *arg)
{
	(void)arg;
	usleep(50000);
	assert_int_equal(fi_inject(sender.ep, out, 20, to), 0);
	return NULL;
}

/*
 * Who sleeps, in fi_cq_sread and on the queue's descriptor, is woken by a datagram; sleep is what happens. The sender is
 * of another domain, so that it does nothing for the receiver but to send.
 */
static void asleep(void **state)
{
	struct t_domain apart;
	struct t_options o = {.wait = FI_WAIT_FD};
	struct fi_cq_tagged_entry e;
	struct pollfd p = {.events = POLLIN};
	struct fid *fids[1];
	pthread_t thread;

	(void)state;
	t_dgram_open(NULL, &o);
	t_end_close(&sender);
	t_domain_open_with(&apart, t_dgram_hints(&(struct t_dgram_how){0}));
	t_end_open(&sender, &apart, &o);
	to = t_insert(&sender, receiver.name);
	fids[0] = &receiver.cq->fid;
	assert_int_equal(fi_control(&receiver.cq->fid, FI_GETWAIT, &p.fd), 0);
	for (int way = 0; way < 2; way++) {
		assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &receiver), 0);
		assert_int_equal(fi_cq_sread(receiver.cq, &e, 1, NULL, 10), -FI_EAGAIN);
		assert_int_equal(pthread_create(&thread, NULL, send_later, NULL), 0);
		if (way == 0) {
			assert_int_equal(fi_cq_sread(receiver.cq, &e, 1, NULL, T_PATIENCE), 1);
		} else {
			while (fi_trywait(dgrams.fabric, fids, 1) == 0)
				assert_int_equal(poll(&p, 1, T_PATIENCE), 1);
			e = t_wait(receiver.cq, NULL, NULL);
		}
		assert_int_equal(e.len, 20);
		pthread_join(thread, NULL);
	}
	assert_int_equal(fi_trywait(dgrams.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	t_dgram_close();
	t_domain_close(&apart);
}

/* With automatic progress a datagram takes its receive while the program calls nothing. */
static void by_itself(void **state)
{
	volatile unsigned char *last = in + 9;
	int64_t end = t_now() + T_PATIENCE;
	struct fi_cq_tagged_entry e;

	(void)state;
	t_dgram_open(&(struct t_dgram_how){.progress = FI_PROGRESS_AUTO}, NULL);
	memset(in, 0, sizeof(in));
	memset(out, 1, 10);
	assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &receiver), 0);
	assert_int_equal(fi_inject(sender.ep, out, 10, to), 0);
	while (!*last) {
		if (t_now() > end)
			fail_msg("no progress");
		usleep(1000);
	}
	e = t_wait(receiver.cq, NULL, NULL);
	assert_int_equal(e.len, 10);
	t_dgram_close();
}

/* Many at once: those that find a receive come whole and in the order in which one socket gives them to another. */
static void many(void **state)
{
	static unsigned char place[128][T_DGRAM_MAX];
	unsigned next = 0;
	int64_t end = t_now() + T_PATIENCE;

	(void)state;
	t_dgram_open(NULL, NULL);
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned i = 0; i < 128; i++)
			assert_int_equal(fi_recv(receiver.ep, place[i], T_DGRAM_MAX, NULL, 0, place[i]), 0);
		for (unsigned i = 0; i < 128; i++) {
			t_fill(out, 128 + i, round + i);
			t_post(fi_inject(sender.ep, out, 1 + i, to), sender.cq, NULL);
		}
		for (unsigned i = 0; i < 128 && t_now() < end; i++, next++) {
			struct fi_cq_tagged_entry e = t_wait(receiver.cq, NULL, NULL);

			assert_ptr_equal(e.op_context, place[i]);
			assert_int_equal(e.len, 1 + i);
			t_check(place[i], e.len, round + i);
		}
	}
	assert_int_equal(next, 8 * 128);
	t_dgram_close();
}

/* Nothing is deferred, not even what counts alone. */
static void nothing_deferred(void **state)
{
	struct fi_op_cntr op = {.value = 1};
	struct fi_deferred_work work = {.op_type = FI_OP_CNTR_ADD, .op.cntr = &op};

	(void)state;
	t_dgram_open(NULL, NULL);
	assert_int_equal(fi_cntr_open(sender.d->domain, NULL, &op.cntr, NULL), 0);
	work.triggering_cntr = op.cntr;
	assert_int_equal(fi_control(&sender.d->domain->fid, FI_QUEUE_WORK, &work), -FI_ENOSYS);
	assert_int_equal(fi_control(&sender.d->domain->fid, FI_FLUSH_WORK, NULL), -FI_ENOSYS);
	assert_int_equal(fi_close(&op.cntr->fid), 0);
	t_dgram_close();
}

static void no_atomics(void **state)
{
	static const uint64_t flags[] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
	struct fi_atomic_attr attr;

	(void)state;
	t_dgram_open(NULL, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_query_atomic(dgrams.domain, FI_UINT64, i == 2 ? FI_CSWAP : FI_SUM, &attr, flags[i]),
			-FI_EOPNOTSUPP);
	assert_int_equal(fi_query_atomic(dgrams.domain, FI_UINT64, FI_SUM, &attr, FI_MORE), -FI_EBADFLAGS);
	t_dgram_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(calls),
		cmocka_unit_test(without_a_receive),
		cmocka_unit_test(truncated),
		cmocka_unit_test(posted),
		cmocka_unit_test(counters),
		cmocka_unit_test(asleep),
		cmocka_unit_test(by_itself),
		cmocka_unit_test(many),
		cmocka_unit_test(nothing_deferred),
		cmocka_unit_test(no_atomics),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
