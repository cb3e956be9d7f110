/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scalable endpoints, two of one process: A sends with two contexts to the three receive contexts of B.
 *
 *   A  tx 0, tx 1 ----> fi_rx_addr(B, 0 ... 2)  rx 0, rx 1, rx 2  B
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include "fi_sep.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONG ((size_t)300000)

static struct t_domain domain;
static struct t_sep a, b;
static fi_addr_t to_b, from_a; /* A's number of B, B's of A */
static unsigned char in[LONG], out[LONG];
static struct fid_cntr *counter; /* bound by told_if_counted */

static int open_both(void **state)
{
	(void)state;
	t_domain_open_with(&domain, t_sep_hints());
	t_sep_open(&a, &domain);
	t_sep_open(&b, &domain);
	t_sep_insert(&a, a.name); /* so that numbers are not equal by chance */
	to_b = t_sep_insert(&a, b.name);
	from_a = t_sep_insert(&b, a.name);
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	t_sep_close(&a);
	t_sep_close(&b);
	if (counter)
		assert_int_equal(fi_close(&counter->fid), 0);
	t_domain_close(&domain);
	return 0;
}

static fi_addr_t context(unsigned rx)
{
	return fi_rx_addr(to_b, (int)rx, T_BITS);
}

/* Of a message from tx to rx: who hears of it, and that nobody else does. */
static void check_told(unsigned tx, unsigned rx, size_t len, uint64_t kind)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t source;

	entry = t_wait(b.rxq[rx], a.txq[0], &source);
	assert_ptr_equal(entry.op_context, in);
	assert_int_equal(entry.len, len);
	assert_int_equal(entry.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | kind);
	assert_int_equal(source, from_a);
	entry = t_wait(a.txq[tx], b.rxq[0], NULL);
	assert_ptr_equal(entry.op_context, out);
	assert_int_equal(entry.flags & (FI_SEND | FI_MSG | FI_TAGGED), FI_SEND | kind);
	t_sep_nothing(&a);
	t_sep_nothing(&b);
}

static void let_arrive(void)
{
	for (int i = 0; i < 200; i++) {
		t_drive(a.txq[0]);
		t_drive(b.rxq[0]);
	}
}

static void post_receive(unsigned rx, size_t len, bool tagged, unsigned tag)
{
	memset(in, 0, len);
	if (tagged)
		assert_int_equal(fi_trecv(b.rx[rx], in, len, NULL, FI_ADDR_UNSPEC, tag, 0, in), 0);
	else
		assert_int_equal(fi_recv(b.rx[rx], in, len, NULL, FI_ADDR_UNSPEC, in), 0);
}

static void post_send(unsigned tx, unsigned rx, size_t len, bool tagged, unsigned tag)
{
	t_fill(out, len, tag);
	if (tagged)
		t_post(fi_tsend(a.tx[tx], out, len, NULL, context(rx), tag, out), a.txq[0], b.rxq[0]);
	else
		t_post(fi_send(a.tx[tx], out, len, NULL, context(rx), out), a.txq[0], b.rxq[0]);
}

/*
 * Each transmit context reaches each receive context, and that one alone, whatever the message's length and space,
 * posted for before it comes or after; the queues of the two contexts tell of it, and of the endpoint that sent it.
 */
static void each_context(void **state)
{
	static const size_t lengths[] = {0, 8, 200, 5000, LONG};
	unsigned n = 0;

	(void)state;
	for (unsigned l = 0; l < 5; l++) {
		for (unsigned k = 0; k < 4 * T_TX * T_RX; k++, n++) {
			unsigned tx = k / 4 % T_TX, rx = k / (4 * T_TX);
			bool early = k & 1, tagged = k & 2;

			if (!early)
				post_receive(rx, lengths[l], tagged, n);
			post_send(tx, rx, lengths[l], tagged, n);
			if (early) {
				let_arrive();
				post_receive(rx, lengths[l], tagged, n);
			}
			check_told(tx, rx, lengths[l], tagged ? FI_TAGGED : FI_MSG);
			t_check(in, lengths[l], n);
		}
	}
}

/* An endpoint reaches its own receive contexts, too. */
static void to_itself(void **state)
{
	static const size_t lengths[] = {8, LONG};

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		size_t len = lengths[k / 2];
		fi_addr_t source;

		t_fill(out, len, k);
		if (k & 1)
			assert_int_equal(fi_recv(a.rx[2], in, len, NULL, FI_ADDR_UNSPEC, in), 0);
		assert_int_equal(fi_send(a.tx[1], out, len, NULL, fi_rx_addr(0, 2, T_BITS), out), 0);
		if (!(k & 1))
			assert_int_equal(fi_recv(a.rx[2], in, len, NULL, FI_ADDR_UNSPEC, in), 0);
		assert_ptr_equal(t_wait(a.rxq[2], NULL, &source).op_context, in);
		assert_int_equal(source, 0);
		assert_ptr_equal(t_wait(a.txq[1], NULL, NULL).op_context, out);
		t_check(in, len, k);
		t_sep_nothing(&a);
	}
}

/* Plain endpoints name receive contexts likewise, and get answers: by the number that their vector has of the endpoint.
 */
static void from_a_plain_endpoint(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .rx_ctx_bits = T_BITS};
	struct t_end plain;
	fi_addr_t number, source;

	(void)state;
	t_end_open(&plain, &domain, NULL);
	number = t_sep_insert(&b, plain.name);
	assert_int_equal(fi_close(&plain.ep->fid), 0);
	assert_int_equal(fi_close(&plain.av->fid), 0);
	assert_int_equal(fi_av_open(domain.domain, &attr, &plain.av, NULL), 0);
	assert_int_equal(fi_endpoint(domain.domain, domain.info, &plain.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(plain.ep, &plain.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(plain.ep, &plain.av->fid, 0), 0);
	assert_int_equal(fi_enable(plain.ep), 0);
	assert_int_equal(fi_av_remove(b.av, &number, 1, 0), 0);
	plain.name_len = sizeof(plain.name);
	assert_int_equal(fi_getname(&plain.ep->fid, plain.name, &plain.name_len), 0);
	number = t_sep_insert(&b, plain.name);
	t_insert(&plain, b.name);

	assert_int_equal(fi_recv(b.rx[1], in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	assert_int_equal(fi_send(plain.ep, "plainly", 8, NULL, fi_rx_addr(0, 1, T_BITS), NULL), 0);
	assert_int_equal(t_wait(b.rxq[1], plain.cq, &source).len, 8);
	assert_int_equal(source, number);
	assert_string_equal((char *)in, "plainly");
	t_wait(plain.cq, NULL, NULL);
	assert_int_equal(fi_recv(plain.ep, in, 8, NULL, fi_rx_addr(0, 2, T_BITS), in), 0);
	assert_int_equal(fi_send(b.tx[1], "answers", 8, NULL, number, NULL), 0);
	assert_int_equal(t_wait(plain.cq, b.txq[1], &source).len, 8);
	assert_int_equal(source, 0);
	t_wait(b.txq[1], plain.cq, NULL);
	t_end_close(&plain);
}

/* A receive directed at an endpoint takes what any of its contexts sends, and nobody else's. */
static void directed(void **state)
{
	struct t_sep other;
	fi_addr_t source, to_b_too;

	(void)state;
	t_sep_open(&other, &domain);
	to_b_too = t_sep_insert(&other, b.name);
	t_sep_insert(&b, other.name);
	for (unsigned k = 0; k < 8; k++) {
		unsigned tx = k % 2;
		/* Which context is named does not matter. */
		fi_addr_t from = k & 2 ? fi_rx_addr(from_a, 2, T_BITS) : from_a;

		assert_int_equal(fi_trecv(b.rx[1], in, 8, NULL, from, 7, 0, in), 0);
		assert_int_equal(
			fi_tsend(other.tx[tx], "strange", 8, NULL, fi_rx_addr(to_b_too, 1, T_BITS), 7, NULL), 0);
		t_wait(other.txq[tx], b.rxq[0], NULL);
		t_nothing(b.rxq[1], other.txq[0]);
		assert_int_equal(fi_tsend(a.tx[tx], "fitting", 8, NULL, context(1), 7, NULL), 0);
		t_wait(b.rxq[1], a.txq[0], &source);
		assert_int_equal(source, from_a);
		assert_string_equal((char *)in, "fitting");
		t_wait(a.txq[tx], NULL, NULL);
		assert_int_equal(fi_trecv(b.rx[1], in, 8, NULL, FI_ADDR_UNSPEC, 7, 0, in), 0);
		t_wait(b.rxq[1], other.txq[0], NULL);
		assert_string_equal((char *)in, "strange");
	}
	t_sep_close(&other);
}

/* Peek, claim, cancel and multi-receive look at their own context. */
static void receives_of_a_context(void **state)
{
	struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = 3, .context = in};
	struct iovec iov = {in, 4096};
	struct fi_msg many = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in};
	struct fi_cq_tagged_entry entry;

	(void)state;
	post_send(0, 1, 100, true, 3);
	t_wait(a.txq[0], b.rxq[0], NULL);
	assert_int_equal(fi_trecvmsg(b.rx[2], &msg, FI_PEEK), 0);
	assert_int_equal(t_wait_error(b.rxq[2], NULL).err, FI_ENOMSG);
	do {
		struct fi_cq_err_entry err;

		assert_int_equal(fi_trecvmsg(b.rx[1], &msg, FI_PEEK | FI_CLAIM), 0);
		if (fi_cq_read(b.rxq[1], &entry, 1) == 1)
			break;
		err = t_wait_error(b.rxq[1], a.txq[0]);
		assert_int_equal(err.err, FI_ENOMSG);
	} while (true);
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	assert_int_equal(fi_trecvmsg(b.rx[1], &msg, FI_CLAIM), 0);
	assert_int_equal(t_wait(b.rxq[1], a.txq[0], NULL).len, 100);
	t_check(in, 100, 3);

	assert_int_equal(fi_recv(b.rx[0], in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	assert_int_equal(fi_recv(b.rx[2], in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	assert_int_equal(fi_cancel(&b.rx[2]->fid, in), 0);
	assert_int_equal(t_wait_error(b.rxq[2], NULL).err, FI_ECANCELED);
	assert_int_equal(fi_cancel(&b.tx[0]->fid, in), -FI_ENOENT); /* the receive is not its own */
	assert_int_equal(fi_cancel(&b.rx[0]->fid, in), 0);
	assert_int_equal(t_wait_error(b.rxq[0], NULL).err, FI_ECANCELED);

	assert_int_equal(fi_recvmsg(b.rx[2], &many, FI_MULTI_RECV), 0);
	for (unsigned i = 0; i < 4; i++) {
		post_send(1, 2, 1024, false, i);
		entry = t_wait(b.rxq[2], a.txq[0], NULL);
		assert_ptr_equal(entry.buf, in + 1024 * i);
		assert_int_equal(!!(entry.flags & FI_MULTI_RECV), i == 3);
		t_check(in + 1024 * i, 1024, i);
		t_wait(a.txq[1], NULL, NULL);
	}
	t_sep_nothing(&b);
}

/* Inject, data, several pieces, triggered sends. */
static void other_sends(void **state)
{
	struct iovec iov[2] = {{out, 100}, {out + 100, 200}};
	struct fi_msg_tagged msg = {.msg_iov = iov, .iov_count = 2, .addr = context(2), .tag = 5, .data = 0x1234};
	struct fi_cq_tagged_entry entry;

	(void)state;
	t_fill(out, 300, 1);
	assert_int_equal(fi_tinject(a.tx[1], out, 100, context(2), 5), 0);
	assert_int_equal(fi_tsendmsg(a.tx[1], &msg, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE), 0);
	assert_int_equal(fi_injectdata(a.tx[0], out, 60, 77, context(2)), 0);
	assert_int_equal(fi_trecv(b.rx[2], in, 300, NULL, FI_ADDR_UNSPEC, 5, 0, in), 0);
	assert_int_equal(t_wait(b.rxq[2], a.txq[0], NULL).len, 100);
	assert_int_equal(fi_trecv(b.rx[2], in, 300, NULL, FI_ADDR_UNSPEC, 5, 0, in), 0);
	entry = t_wait(b.rxq[2], a.txq[0], NULL);
	assert_int_equal(entry.len, 300);
	assert_int_equal(entry.data, 0x1234);
	t_check(in, 300, 1);
	assert_int_equal(fi_recv(b.rx[2], in, 300, NULL, FI_ADDR_UNSPEC, in), 0);
	entry = t_wait(b.rxq[2], a.txq[0], NULL);
	assert_int_equal(entry.data, 77);
	t_wait(a.txq[1], b.rxq[0], NULL);
	t_sep_nothing(&a);
	t_sep_nothing(&b);
}

/* Reads, writes and atomics of each context reach the endpoint's memory, by whichever of its contexts it is named. */
static void memory(void **state)
{
	static uint64_t target[64];
	uint64_t one = 1, before;
	struct fid_mr *mr;
	struct fi_cq_tagged_entry entry;

	(void)state;
	assert_int_equal(
		fi_mr_reg(domain.domain, target, sizeof(target), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 17, 0, &mr, NULL),
		0);
	for (unsigned k = 0; k < T_TX * T_RX; k++) {
		unsigned tx = k % T_TX;
		fi_addr_t to = context(k / T_TX);

		t_fill(out, sizeof(target), k);
		assert_int_equal(fi_write(a.tx[tx], out, sizeof(target), NULL, to, 0, 17, out), 0);
		assert_int_equal(t_wait(a.txq[tx], b.rxq[0], NULL).flags & (FI_RMA | FI_WRITE), FI_RMA | FI_WRITE);
		t_check(target, sizeof(target), k);
		memset(in, 0, sizeof(target));
		assert_int_equal(fi_read(a.tx[tx], in, sizeof(target), NULL, to, 0, 17, in), 0);
		assert_int_equal(t_wait(a.txq[tx], b.rxq[0], NULL).flags & (FI_RMA | FI_READ), FI_RMA | FI_READ);
		t_check(in, sizeof(target), k);
		target[1] = 41;
		assert_int_equal(
			fi_fetch_atomic(a.tx[tx], &one, 1, NULL, &before, NULL, to, 8, 17, FI_UINT64, FI_SUM, NULL), 0);
		t_wait(a.txq[tx], b.rxq[0], NULL);
		assert_int_equal(before, 41);
		assert_int_equal(target[1], 42);
		assert_int_equal(fi_inject_write(a.tx[tx], &one, 8, to, 16, 17), 0);
		assert_int_equal(fi_writedata(a.tx[tx], out, 8, NULL, 99 + k, to, 0, 17, out), 0);
		entry = t_wait(b.rxq[k / T_TX], a.txq[0], NULL);
		assert_int_equal(entry.data, 99 + k);
		t_wait(a.txq[tx], b.rxq[0], NULL);
		assert_int_equal(target[2], 1);
		t_sep_nothing(&a);
		t_sep_nothing(&b);
	}
	assert_int_equal(fi_read(b.rx[0], in, 8, NULL, from_a, 0, 17, in), -FI_EOPNOTSUPP);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* Contexts that are not there. */
static void wrong_index(void **state)
{
	struct fid_ep *ep;

	(void)state;
	assert_int_equal(fi_tx_context(a.sep, -1, NULL, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_tx_context(a.sep, T_TX, NULL, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_rx_context(a.sep, T_RX, NULL, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_rx_context(a.sep, 0, NULL, &ep, NULL), -FI_EBUSY);
	/* B has no context 5: the endpoint that has it knows. What is short is gone, and what is long is refused. */
	assert_int_equal(fi_send(a.tx[0], out, 8, NULL, context(5), NULL), 0);
	t_wait(a.txq[0], b.rxq[0], NULL);
	assert_int_equal(fi_send(a.tx[1], out, LONG, NULL, context(5), NULL), 0);
	assert_int_equal(t_wait_error(a.txq[1], b.rxq[0]).err, FI_EINVAL);
	assert_int_equal(fi_send(a.tx[0], out, 8, NULL, fi_rx_addr(0, 5, T_BITS), NULL), -FI_EINVAL); /* itself */
	assert_int_equal(fi_send(a.tx[0], out, 8, NULL, 12345, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(a.tx[0], out, 8, NULL, fi_rx_addr(12345, 1, T_BITS), NULL), -FI_EINVAL);
	post_receive(1, 8, false, 0);
	post_send(0, 1, 8, false, 4);
	check_told(0, 1, 8, FI_MSG);
}

/* However much is sent to a context that is not there, the sender's credit comes back. */
static void nothing_is_lost(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		t_post(fi_send(a.tx[0], out, 8000, NULL, context(6), out), a.txq[0], b.rxq[0]);
		t_wait(a.txq[0], b.rxq[0], NULL);
		let_arrive();
	}
	post_receive(2, 20000, false, 0);
	post_send(1, 2, 20000, false, 4);
	check_told(1, 2, 20000, FI_MSG);
}

/* Reads so many times from b, whose progress helps only with what has not ended by itself; returns how many had not. */
static unsigned reads_helped(void *to, size_t len, uint64_t from, uint64_t key, unsigned times)
{
	struct fi_cq_tagged_entry entry;
	unsigned helped = 0;

	for (unsigned i = 0; i < times; i++) {
		int64_t patience = t_now() + 20;
		ssize_t n;

		assert_int_equal(fi_read(a.tx[0], to, len, NULL, to_b, from, key, out), 0);
		do
			n = fi_cq_read(a.txq[0], &entry, 1);
		while (n == -FI_EAGAIN && t_now() < patience);
		if (n != 1) {
			helped++;
			entry = t_wait(a.txq[0], b.rxq[0], NULL);
		}
		assert_ptr_equal(entry.op_context, out);
	}
	return helped;
}

/*
 * Long reads end without the peer, once it has said where its memory is. A counter counts them all, whenever it was
 * bound, as the peer makes progress.
 */
static void told_if_counted(void **state)
{
	static char there[1 << 20], here[1 << 20];
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct fid_mr *mr;
	uint64_t from;

	(void)state;
	assert_int_equal(fi_mr_reg(domain.domain, there, sizeof(there), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 77, 0, &mr,
				 NULL), 0);
	from = domain.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)there : 0;
	reads_helped(here, sizeof(here), from, fi_mr_key(mr), 20);
	assert_in_range(reads_helped(here, sizeof(here), from, fi_mr_key(mr), 60), 0, 30);
	assert_int_equal(fi_cntr_open(domain.domain, &attr, &counter, NULL), 0);
	assert_int_equal(fi_ep_bind(b.rx[1], &counter->fid, FI_REMOTE_READ), 0);
	reads_helped(here, sizeof(here), from, fi_mr_key(mr), 20);
	for (int64_t end = t_now() + 5000; fi_cntr_read(counter) < 20 && t_now() < end;)
		fi_cq_read(b.rxq[0], NULL, 0);
	assert_int_equal(fi_cntr_read(counter), 20);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* Sends a message to s's first receive context: by which number s knows who sent it. */
static fi_addr_t source_of(struct t_sep *s, struct t_end *from, fi_addr_t to_s)
{
	fi_addr_t source;

	assert_int_equal(fi_recv(s->rx[0], in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	assert_int_equal(fi_send(from->ep, "whoever", 8, NULL, to_s, NULL), 0);
	assert_int_equal(t_wait(s->rxq[0], from->cq, &source).len, 8);
	t_wait(from->cq, s->rxq[0], NULL);
	return source;
}

/*
 * The one context that has sent to a peer is closed. What the vector says of the peer's number later holds all the
 * same: that it is removed, and another's then, or (`named`) that something else stands for it.
 */
static void known_to_a_closed_context(bool named)
{
	fi_addr_t number, to_s, other_to_s;
	struct t_end peer, other;
	struct t_sep s;

	t_sep_open(&s, &domain);
	t_end_open(&peer, &domain, NULL);
	t_end_open(&other, &domain, NULL);
	t_sep_insert(&s, s.name); /* so that numbers are not equal by chance */
	number = t_sep_insert(&s, peer.name);
	to_s = t_insert(&peer, s.name);
	other_to_s = t_insert(&other, s.name);
	assert_int_equal(fi_recv(peer.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	assert_int_equal(fi_send(s.tx[0], "a start", 8, NULL, number, NULL), 0);
	t_wait(peer.cq, s.txq[0], NULL);
	t_wait(s.txq[0], peer.cq, NULL);
	assert_int_equal(source_of(&s, &peer, to_s), number);
	assert_int_equal(fi_close(&s.tx[0]->fid), 0);
	s.tx[0] = NULL;
	if (named) {
		assert_int_equal(t_set_user_id(s.av, number, 77, 0), 0);
		assert_int_equal(source_of(&s, &peer, to_s), 77);
	} else {
		assert_int_equal(fi_av_remove(s.av, &number, 1, 0), 0);
		assert_int_equal(source_of(&s, &peer, to_s), FI_ADDR_NOTAVAIL);
		assert_int_equal(t_sep_insert(&s, other.name), number);
		assert_int_equal(source_of(&s, &peer, to_s), FI_ADDR_NOTAVAIL);
		assert_int_equal(source_of(&s, &other, other_to_s), number);
	}
	t_end_close(&peer);
	t_end_close(&other);
	t_sep_close(&s);
}

static void a_context_is_closed(void **state)
{
	(void)state;
	known_to_a_closed_context(false);
	known_to_a_closed_context(true);
}

#define SET_OFF 2000              /* messages that wait for the counter at the same time */
#define MANY    ((size_t)1 << 18) /* names, for which a close takes long enough that others come to sleep on the lock */

static struct fid_cntr *setting_off;
static atomic_bool enough;
static _Thread_local bool gives_way;

/* Before the C library's. Who gives a lock to one who sleeps on it lets him have it, where `gives_way`. */
long syscall(long number, ...)
{
	long (*real)(long, ...), arg[6], rc;
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	rc = real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (gives_way && number == SYS_futex && arg[1] == FUTEX_WAKE_PRIVATE)
		usleep(1000);
	return rc;
}

/* Sets off one after the other, and leaves the lock to others most of the time. */
static void *add(void *arg)
{
	while (!atomic_load(&enough)) {
		assert_int_equal(fi_cntr_add(setting_off, 1), 0);
		usleep(1);
	}
	return arg;
}

/* Messages of the context to that number, one for each step of the counter from where it is. */
static void send_at_each_step(struct fid_ep *ep, fi_addr_t to, struct fi_triggered_context context[SET_OFF])
{
	const struct iovec iov = {out, 8};
	uint64_t from = fi_cntr_read(setting_off);

	for (unsigned i = 0; i < SET_OFF; i++) {
		const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = to, .context = &context[i]};

		context[i] = (struct fi_triggered_context){.event_type = FI_TRIGGER_THRESHOLD};
		context[i].trigger.threshold = (struct fi_trigger_threshold){setting_off, from + i + 1};
		assert_int_equal(fi_sendmsg(ep, &msg, FI_TRIGGER), 0);
	}
}

/*
 * A context is closed while another thread sets off what it is to send: nothing that begins then makes it know a peer
 * again, whose number would stand for it for ever.
 */
static void closed_while_set_off(void **state)
{
	static struct fi_triggered_context context[SET_OFF];

	(void)state;
	assert_int_equal(fi_cntr_open(domain.domain, NULL, &setting_off, NULL), 0);
	for (int i = 0; i < 10; i++) {
		fi_addr_t number, to_s;
		struct t_end peer;
		struct t_sep s;
		pthread_t other;
		uint64_t before;

		t_sep_make(&s, &domain, MANY);
		t_sep_enable(&s);
		t_end_open(&peer, &domain, NULL);
		number = t_sep_insert(&s, peer.name);
		to_s = t_insert(&peer, s.name);
		assert_int_equal(fi_recv(peer.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
		assert_int_equal(fi_send(s.tx[0], "a start", 8, NULL, number, NULL), 0);
		t_wait(peer.cq, s.txq[0], NULL);
		send_at_each_step(s.tx[0], number, context);
		atomic_store(&enough, false);
		before = fi_cntr_read(setting_off);
		assert_int_equal(pthread_create(&other, NULL, add, NULL), 0);
		while (fi_cntr_read(setting_off) == before)
			usleep(1);
		gives_way = true;
		assert_int_equal(fi_close(&s.tx[0]->fid), 0);
		gives_way = false;
		s.tx[0] = NULL;
		atomic_store(&enough, true);
		pthread_join(other, NULL);
		assert_int_equal(fi_av_remove(s.av, &number, 1, 0), 0);
		assert_int_equal(source_of(&s, &peer, to_s), FI_ADDR_NOTAVAIL);
		t_end_close(&peer);
		t_sep_close(&s);
	}
	assert_int_equal(fi_close(&setting_off->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_context),
		cmocka_unit_test(to_itself),
		cmocka_unit_test(from_a_plain_endpoint),
		cmocka_unit_test(directed),
		cmocka_unit_test(receives_of_a_context),
		cmocka_unit_test(other_sends),
		cmocka_unit_test(memory),
		cmocka_unit_test(wrong_index),
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(told_if_counted),
		cmocka_unit_test(a_context_is_closed),
		cmocka_unit_test(closed_while_set_off),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, open_both, close_both);
}
