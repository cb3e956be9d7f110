/* SPDX-License-Identifier: BSD-3-Clause */
/* Scalable endpoints: what fi_getinfo says of them, how they and their contexts are opened, bound, enabled and closed.
 */
#include "fi_sep.h"
#include "full_sets.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>

static struct t_domain domain;

static int open_domain(void **state)
{
	(void)state;
	t_domain_open_with(&domain, t_sep_hints());
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_domain_close(&domain);
	return 0;
}

/* Who does not ask has one context of each kind, as ever; who does gets as many as there may be, and not more. */
static void announced(void **state)
{
	struct fi_info *hints = t_hints(), *info;
	size_t most;

	(void)state;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_int_equal(info->ep_attr->tx_ctx_cnt, 1);
	assert_int_equal(info->ep_attr->rx_ctx_cnt, 1);
	assert_false(info->caps & FI_NAMED_RX_CTX);
	most = info->domain_attr->max_ep_tx_ctx;
	assert_true(most >= 2);
	assert_int_equal(info->domain_attr->max_ep_rx_ctx, most);
	fi_freeinfo(info);
	hints->caps = FI_TAGGED;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_false(info->caps & FI_NAMED_RX_CTX);
	fi_freeinfo(info);
	hints->caps |= FI_NAMED_RX_CTX;
	hints->ep_attr->tx_ctx_cnt = most;
	hints->ep_attr->rx_ctx_cnt = 2;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_true(info->caps & FI_NAMED_RX_CTX);
	assert_int_equal(info->ep_attr->tx_ctx_cnt, most);
	assert_int_equal(info->ep_attr->rx_ctx_cnt, 2);
	fi_freeinfo(info);
	hints->ep_attr->rx_ctx_cnt = most + 1;
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	hints->ep_attr->rx_ctx_cnt = 2;
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* What cannot be had is refused when it is opened. */
static void refused(void **state)
{
	struct fi_av_attr av = {.rx_ctx_bits = 40};
	struct fi_ep_attr *ep = domain.info->ep_attr;
	struct fid_ep *sep;
	struct fid_av *none;

	(void)state;
	ep->rx_ctx_cnt = FI_SHARED_CONTEXT;
	assert_int_equal(fi_scalable_ep(domain.domain, domain.info, &sep, NULL), -FI_EOPNOTSUPP);
	ep->rx_ctx_cnt = 1000;
	assert_int_equal(fi_scalable_ep(domain.domain, domain.info, &sep, NULL), -FI_EINVAL);
	ep->rx_ctx_cnt = T_RX;
	assert_int_equal(fi_av_open(domain.domain, &av, &none, NULL), -FI_EINVAL);
	av.rx_ctx_bits = -1;
	assert_int_equal(fi_av_open(domain.domain, &av, &none, NULL), -FI_EINVAL);
}

/* A context has its own queues and no vector, the endpoint a vector and no queues. */
static void bound(void **state)
{
	struct fi_cq_attr attr = {0};
	struct fid_cq *cq;
	struct t_sep s;

	(void)state;
	t_sep_make(&s, &domain, 0);
	assert_int_equal(fi_cq_open(domain.domain, &attr, &cq, NULL), 0);
	assert_int_equal(fi_scalable_ep_bind(s.sep, &cq->fid, FI_TRANSMIT), -FI_EBADFLAGS);
	assert_int_equal(fi_scalable_ep_bind(s.sep, &cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_scalable_ep_bind(s.sep, &s.av->fid, 0), -FI_EINVAL); /* it has one */
	assert_int_equal(fi_ep_bind(s.tx[0], &s.av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(s.tx[0], &cq->fid, FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(s.rx[0], &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(s.tx[0], &cq->fid, FI_TRANSMIT), -FI_EINVAL); /* it has one */
	assert_int_equal(fi_close(&cq->fid), 0);
	t_sep_close(&s);
}

/* Nothing can be sent or received before, nor a context enabled that nobody hears of, nor anything twice. */
static void enabled(void **state)
{
	struct fid_ep *sep, *tx, *rx;
	unsigned char name[64];
	size_t len = sizeof(name);
	struct fid_cq *cq;
	struct t_sep s;

	(void)state;
	t_sep_make(&s, &domain, 0);
	assert_int_equal(fi_getname(&s.sep->fid, name, &len), -FI_EOPBADSTATE);
	assert_int_equal(fi_send(s.tx[0], name, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_recv(s.rx[0], name, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(s.tx[1]), 0); /* the endpoint has its name from here on */
	assert_int_equal(fi_enable(s.tx[1]), -FI_EOPBADSTATE);
	assert_int_equal(fi_getname(&s.sep->fid, name, &len), 0);
	assert_int_equal(fi_enable(s.sep), 0);
	assert_int_equal(fi_enable(s.sep), -FI_EOPBADSTATE);
	assert_int_equal(fi_send(s.tx[0], name, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_recv(s.tx[1], name, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(s.rx[0]), 0);
	assert_int_equal(fi_send(s.rx[0], name, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	t_sep_close(&s);

	assert_int_equal(fi_scalable_ep(domain.domain, domain.info, &sep, NULL), 0);
	assert_int_equal(fi_enable(sep), -FI_ENOAV);
	assert_int_equal(fi_tx_context(sep, 0, NULL, &tx, NULL), 0);
	assert_int_equal(fi_enable(tx), -FI_ENOCQ);
	assert_int_equal(fi_rx_context(sep, 0, NULL, &rx, NULL), 0);
	assert_int_equal(fi_enable(rx), -FI_ENOCQ);
	assert_int_equal(fi_cq_open(domain.domain, &(struct fi_cq_attr){0}, &cq, NULL), 0);
	assert_int_equal(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_enable(tx), -FI_ENOAV);
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&sep->fid), 0);
}

/* Contexts before the endpoint, and the endpoint before its vector. What a closed context still had is dropped. */
static void closed(void **state)
{
	static char buf[64], big[300000];
	struct fid_ep *again;
	struct t_sep s;

	(void)state;
	t_sep_open(&s, &domain);
	t_sep_insert(&s, s.name);
	assert_int_equal(fi_close(&s.sep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&s.av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&s.txq[0]->fid), -FI_EBUSY);
	assert_int_equal(fi_recv(s.rx[1], buf, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(s.tx[0], big, sizeof(big), NULL, fi_rx_addr(0, 2, T_BITS), NULL), 0);
	assert_int_equal(fi_close(&s.rx[1]->fid), 0);
	assert_int_equal(fi_close(&s.tx[0]->fid), 0);
	assert_int_equal(fi_tx_context(s.sep, 0, NULL, &again, NULL), 0); /* its send has ended with it */
	assert_int_equal(fi_close(&again->fid), 0);
	/* The others go on, and what is sent to the closed one bothers nobody. */
	assert_int_equal(fi_send(s.tx[1], "for none", 9, NULL, fi_rx_addr(0, 1, T_BITS), NULL), 0);
	t_wait(s.txq[1], NULL, NULL);
	assert_int_equal(fi_recv(s.rx[0], buf, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(s.tx[1], "for one", 8, NULL, 0, NULL), 0);
	t_wait(s.rxq[0], NULL, NULL);
	assert_string_equal(buf, "for one");
	t_wait(s.txq[1], NULL, NULL);
	t_sep_nothing(&s);
	assert_int_equal(fi_close(&s.sep->fid), -FI_EBUSY);
	for (int i = 0; i < T_RX; i++)
		assert_int_equal(i == 1 ? 0 : fi_close(&s.rx[i]->fid), 0);
	assert_int_equal(fi_close(&s.tx[1]->fid), 0);
	for (int i = 0; i < T_RX; i++)
		assert_int_equal(fi_close(&s.rxq[i]->fid), 0);
	for (int i = 0; i < T_TX; i++)
		assert_int_equal(fi_close(&s.txq[i]->fid), 0);
	assert_int_equal(fi_close(&s.sep->fid), 0);
	assert_int_equal(fi_close(&s.av->fid), 0);
}

/* Waits until what has been begun there is done, and makes the context anew. */
static void open_again(struct t_sep *s, bool tx, unsigned i)
{
	struct fid_ep **ep = tx ? &s->tx[i] : &s->rx[i];
	struct fid_cq *cq = tx ? s->txq[i] : s->rxq[i];
	int64_t end = t_now() + T_PATIENCE;
	int err;

	do {
		t_drive(s->rxq[2]); /* its own drives nothing any more */
		err = tx ? fi_tx_context(s->sep, (int)i, NULL, ep, NULL)
			 : fi_rx_context(s->sep, (int)i, NULL, ep, NULL);
	} while (err == -FI_EBUSY && t_now() < end);
	assert_int_equal(err, 0);
	assert_int_equal(fi_ep_bind(*ep, &cq->fid, tx ? FI_TRANSMIT : FI_RECV), 0);
	assert_int_equal(fi_enable(*ep), 0);
}

/* A message that waits in its send, but not in the program's memory. */
static void inject_matched(struct fid_ep *ep, const char *text, fi_addr_t to)
{
	const struct iovec iov = {(void *)text, strlen(text) + 1};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = to};

	assert_int_equal(fi_sendmsg(ep, &msg, FI_INJECT | FI_MATCH_COMPLETE), 0);
}

/*
 * A context that was closed is opened again: it gets what has come in between, and nothing of what the one before it
 * had begun; while that is under way it is refused. A message that lay in the program's memory fails where it is
 * received, one that was injected comes.
 */
static void opened_again(void **state)
{
	static char big[300000] = "long", in[300000], old[64], new[64];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct fid_ep *again;
	struct t_sep s;

	(void)state;
	t_sep_open(&s, &domain);
	t_sep_insert(&s, s.name);
	assert_int_equal(fi_tx_context(s.sep, 0, NULL, &again, NULL), -FI_EBUSY);
	assert_int_equal(fi_recv(s.rx[1], old, 64, NULL, FI_ADDR_UNSPEC, old), 0);
	assert_int_equal(fi_send(s.tx[0], big, sizeof(big), NULL, fi_rx_addr(0, 2, T_BITS), big), 0);
	inject_matched(s.tx[0], "injected", fi_rx_addr(0, 2, T_BITS));
	assert_int_equal(fi_close(&s.rx[1]->fid), 0);
	assert_int_equal(fi_close(&s.tx[0]->fid), 0);
	assert_int_equal(fi_tx_context(s.sep, 0, NULL, &again, NULL), -FI_EBUSY);
	assert_int_equal(fi_send(s.tx[1], "in between", 11, NULL, fi_rx_addr(0, 1, T_BITS), NULL), 0);
	t_wait(s.txq[1], NULL, NULL);

	open_again(&s, false, 1);
	assert_int_equal(fi_recv(s.rx[1], new, 64, NULL, FI_ADDR_UNSPEC, new), 0);
	entry = t_wait(s.rxq[1], NULL, NULL);
	assert_ptr_equal(entry.op_context, new);
	assert_string_equal(new, "in between");
	assert_int_equal(fi_recv(s.rx[2], in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	err = t_wait_error(s.rxq[2], NULL);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, in);
	assert_string_equal(in, "");
	assert_int_equal(fi_tx_context(s.sep, 0, NULL, &again, NULL), -FI_EBUSY);
	assert_int_equal(fi_recv(s.rx[2], in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	t_wait(s.rxq[2], NULL, NULL);
	assert_string_equal(in, "injected");
	open_again(&s, true, 0);
	t_sep_nothing(&s);
	assert_int_equal(fi_send(s.tx[0], "anew", 5, NULL, 0, new), 0);
	assert_int_equal(fi_recv(s.rx[0], old, 64, NULL, FI_ADDR_UNSPEC, NULL), 0);
	t_wait(s.rxq[0], NULL, NULL);
	assert_string_equal(old, "anew");
	entry = t_wait(s.txq[0], NULL, NULL);
	assert_ptr_equal(entry.op_context, new);
	t_sep_nothing(&s);
	t_sep_close(&s);
}

/* An endpoint of a domain of its own, whose memory can be accessed, and its number in the vector of `s`. */
struct target {
	struct t_domain d;
	struct t_end e;
	struct fid_mr *mr;
	void *memory;
	fi_addr_t number;
};

static void open_target(struct target *t, struct t_sep *s, size_t len, enum fi_progress progress)
{
	struct fi_info *hints = t_hints();

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = progress;
	t_domain_open_with(&t->d, hints);
	t_end_open(&t->e, &t->d, NULL);
	t->memory = calloc(1, len);
	assert_non_null(t->memory);
	assert_int_equal(
		fi_mr_reg(t->d.domain, t->memory, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &t->mr, NULL), 0);
	t->number = t_sep_insert(s, t->e.name);
}

static void close_target(struct target *t)
{
	assert_int_equal(fi_close(&t->mr->fid), 0);
	t_end_close(&t->e);
	t_domain_close(&t->d);
	free(t->memory);
}

/*
 * A context is closed while a read and a message that is announced wait for their target: no memory of theirs is
 * touched when that comes, and the others go on with it.
 */
static void closed_while_awaited(void **state)
{
	enum { LENGTH = 300000 };
	unsigned char *big = calloc(1, LENGTH), *got = calloc(1, LENGTH), in[8] = {0};
	struct fid_ep *again;
	struct target t;
	struct t_sep s;

	(void)state;
	t_sep_open(&s, &domain);
	open_target(&t, &s, 8, FI_PROGRESS_MANUAL);
	t_post(fi_read(s.tx[0], in, 8, NULL, t.number, 0, 7, NULL), s.txq[0], t.e.cq);
	t_wait(s.txq[0], t.e.cq, NULL);
	memset(t.memory, 1, 8);
	assert_int_equal(fi_read(s.tx[0], in, 8, NULL, t.number, 0, 7, NULL), 0);
	assert_int_equal(fi_send(s.tx[0], big, LENGTH, NULL, t.number, NULL), 0);
	assert_int_equal(fi_close(&s.tx[0]->fid), 0);
	free(big);
	assert_int_equal(fi_tx_context(s.sep, 0, NULL, &again, NULL), -FI_EBUSY);
	assert_int_equal(fi_recv(t.e.ep, got, LENGTH, NULL, FI_ADDR_UNSPEC, NULL), 0);
	t_wait_error(t.e.cq, s.txq[0]);
	open_again(&s, true, 0);
	assert_int_equal(in[0], 0);
	for (int i = 0; i < T_TX; i++) {
		t_post(fi_read(s.tx[i], in, 8, NULL, t.number, 0, 7, NULL), s.txq[i], t.e.cq);
		t_wait(s.txq[i], t.e.cq, NULL);
		assert_int_equal(in[0], 1);
	}
	t_sep_nothing(&s);
	close_target(&t);
	t_sep_close(&s);
	free(got);
}

/* One is closed while an injected atomic waits for its target: that is done, and what it fetches goes nowhere. */
static void closed_with_fetch(void **state)
{
	uint64_t one = 1, before[2] = {99, 99}, *word;
	struct target t;
	struct t_sep s;

	(void)state;
	t_sep_open(&s, &domain);
	open_target(&t, &s, 8, FI_PROGRESS_MANUAL);
	word = t.memory;
	for (int i = 0; i < 2; i++) { /* the first makes the contact */
		struct fi_ioc from = {&one, 1}, into = {&before[i], 1};
		struct fi_rma_ioc range = {0, 1, 7};
		const struct fi_msg_atomic msg = {.msg_iov = &from,
			.iov_count = 1,
			.addr = t.number,
			.rma_iov = &range,
			.rma_iov_count = 1,
			.datatype = FI_UINT64,
			.op = FI_SUM};

		assert_int_equal(fi_fetch_atomicmsg(s.tx[0], &msg, &into, NULL, 1, FI_INJECT | FI_COMPLETION), 0);
		if (!i)
			t_wait(s.txq[0], t.e.cq, NULL);
	}
	assert_int_equal(before[0], 0);
	assert_int_equal(fi_close(&s.tx[0]->fid), 0);
	before[1] = 55;
	t_post(fi_read(s.tx[1], before, 8, NULL, t.number, 0, 7, NULL), s.txq[1], t.e.cq);
	t_wait(s.txq[1], t.e.cq, NULL);
	assert_int_equal(before[0], 2);
	assert_int_equal(*word, 2);
	assert_int_equal(before[1], 55);
	open_again(&s, true, 0);
	t_sep_nothing(&s);
	close_target(&t);
	t_sep_close(&s);
}

/* One is closed while its long write goes out: it waits until that needs its memory no more, which may be unmapped. */
static void closed_while_written(void **state)
{
	enum { LENGTH = 16 << 20 };
	struct target t;
	struct t_sep s;
	char word = 1;

	(void)state;
	t_sep_open(&s, &domain);
	open_target(&t, &s, LENGTH, FI_PROGRESS_AUTO);
	for (int i = 0; i < 3; i++) { /* by messages, and then directly where that can be */
		void *from =
			mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		assert_ptr_not_equal(from, MAP_FAILED);
		t_post(fi_write(s.tx[0], from, LENGTH, NULL, t.number, 0, 7, NULL), s.txq[0], NULL);
		assert_int_equal(fi_close(&s.tx[0]->fid), 0);
		munmap(from, LENGTH);
		open_again(&s, true, 0);
		t_post(fi_write(s.tx[1], &word, 1, NULL, t.number, 0, 7, NULL), s.txq[1], NULL);
		t_wait(s.txq[1], NULL, NULL);
		assert_int_equal(*(char *)t.memory, 1);
		t_sep_nothing(&s);
	}
	close_target(&t);
	t_sep_close(&s);
}

/* Data that comes with a write goes to the context that is named, or to the first that is open. */
static void data_without_first(void **state)
{
	static uint64_t target;
	struct fid_mr *mr;
	struct t_sep s;

	(void)state;
	t_sep_open(&s, &domain);
	t_sep_insert(&s, s.name);
	assert_int_equal(fi_mr_reg(domain.domain, &target, 8, FI_REMOTE_WRITE, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(fi_close(&s.rx[0]->fid), 0);
	for (unsigned i = 0; i < T_RX; i++) {
		fi_addr_t to = fi_rx_addr(0, (int)i, T_BITS);

		assert_int_equal(fi_writedata(s.tx[0], &to, 8, NULL, 42 + i, to, 0, 3, NULL), 0);
		assert_int_equal(t_wait(s.rxq[i ? i : 1], NULL, NULL).data, 42 + i);
		t_wait(s.txq[0], NULL, NULL);
		t_sep_nothing(&s);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
	open_again(&s, false, 0);
	t_sep_close(&s);
}

static bool is_all(const unsigned char *buf, size_t len, unsigned char byte)
{
	return buf[0] == byte && !memcmp(buf, buf + 1, len - 1);
}

/* Until context 0 has a message, or the announcement of one, for which there is no receive yet. */
static void wait_announced(struct t_sep *s, struct t_end *from)
{
	const struct fi_msg peek = {.addr = FI_ADDR_UNSPEC};
	int64_t end = t_now() + T_PATIENCE;
	struct fi_cq_tagged_entry e;

	for (;;) {
		assert_true(t_now() < end);
		t_drive(from->cq);
		assert_int_equal(fi_recvmsg(s->rx[0], &peek, FI_PEEK), 0);
		if (fi_cq_read(s->rxq[0], &e, 1) == 1)
			return;
		assert_int_equal(t_wait_error(s->rxq[0], from->cq).err, FI_ENOMSG);
	}
}

/*
 * One is closed while it gets a long message: then it gets no more of it. The receive of one that is announced begins
 * to read it, and goes on in progress alone, nor does its sender before.
 */
static void closed_while_received(void **state)
{
	enum { LENGTH = 4 << 20 };
	unsigned char *in = malloc(LENGTH), *out = calloc(1, LENGTH);
	struct t_end from;
	struct t_sep s;

	(void)state;
	t_sep_open(&s, &domain);
	t_end_open(&from, &domain, NULL);
	t_insert(&from, s.name);
	for (int i = 0; i < 4; i++) {
		t_post(fi_send(from.ep, out, LENGTH, NULL, 0, NULL), from.cq, s.rxq[1]);
		wait_announced(&s, &from);
		assert_int_equal(fi_recv(s.rx[0], in, LENGTH, NULL, FI_ADDR_UNSPEC, NULL), 0);
		assert_int_equal(fi_close(&s.rx[0]->fid), 0);
		memset(in, 0xee, LENGTH);
		for (int j = 0; j < 1000; j++) {
			t_drive(s.rxq[1]);
			t_drive(from.cq);
		}
		assert_true(is_all(in, LENGTH, 0xee));
		open_again(&s, false, 0);
	}
	t_end_close(&from);
	t_sep_close(&s);
	free(in);
	free(out);
}

/* A context may have less than its endpoint, and is told what it has. */
static void attributes(void **state)
{
	struct fi_tx_attr tx = {.caps = FI_MSG, .size = 16}, none = {.caps = FI_RECV};
	struct fi_rx_attr rx = {0};
	struct fid_ep *sep, *ep[2];

	(void)state;
	assert_int_equal(fi_scalable_ep(domain.domain, domain.info, &sep, NULL), 0);
	assert_int_equal(fi_tx_context(sep, 0, &none, &ep[0], NULL), -FI_EINVAL);
	assert_int_equal(fi_tx_context(sep, 0, &tx, &ep[0], NULL), 0);
	assert_int_equal(tx.size, 16);
	assert_int_equal(tx.caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_RMA), FI_MSG | FI_SEND);
	assert_int_equal(fi_rx_context(sep, 0, &rx, &ep[1], NULL), 0);
	assert_true(rx.size > 0);
	assert_int_equal(rx.caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV), FI_MSG | FI_TAGGED | FI_RECV);
	assert_int_equal(fi_close(&ep[0]->fid), 0);
	assert_int_equal(fi_close(&ep[1]->fid), 0);
	assert_int_equal(fi_close(&sep->fid), 0);
}

static struct fid_cntr *open_cntr(struct fid_ep *ep, uint64_t flags)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(domain.domain, &attr, &cntr, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, flags), 0);
	return cntr;
}

static void count(struct fid_cntr *cntr, uint64_t n)
{
	int64_t end = t_now() + T_PATIENCE;

	while (fi_cntr_read(cntr) < n && t_now() < end)
		;
	assert_int_equal(fi_cntr_read(cntr), n);
}

/* Counters count what their own context does; those of peers' accesses, what comes to the endpoint. */
static void counted(void **state)
{
	static uint64_t target, in;
	struct fid_cntr *sent[2], *came[2], *written;
	struct fid_mr *mr;
	struct t_sep s;

	(void)state;
	t_sep_open(&s, &domain);
	t_sep_insert(&s, s.name);
	for (int i = 0; i < 2; i++) {
		sent[i] = open_cntr(s.tx[i], FI_SEND | FI_WRITE);
		came[i] = open_cntr(s.rx[i], FI_RECV);
	}
	written = open_cntr(s.rx[2], FI_REMOTE_WRITE);
	assert_int_equal(fi_mr_reg(domain.domain, &target, 8, FI_REMOTE_WRITE, 0, 3, 0, &mr, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_recv(s.rx[1], &in, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
		assert_int_equal(fi_inject(s.tx[0], "counted", 8, fi_rx_addr(0, 1, T_BITS)), 0);
		count(came[1], (uint64_t)i + 1);
		assert_int_equal(fi_inject_write(s.tx[1], "written", 8, 0, 0, 3), 0);
		count(written, (uint64_t)i + 1);
	}
	count(sent[0], 3);
	count(sent[1], 3);
	count(came[0], 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	t_sep_close(&s);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_close(&sent[i]->fid), 0);
		assert_int_equal(fi_close(&came[i]->fid), 0);
	}
	assert_int_equal(fi_close(&written->fid), 0);
}

/* A context of that index again, with a queue that can be slept on. */
static void open_with_descriptor(struct t_sep *s, int index)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};

	assert_int_equal(fi_close(&s->rx[index]->fid), 0);
	assert_int_equal(fi_close(&s->rxq[index]->fid), 0);
	assert_int_equal(fi_rx_context(s->sep, index, NULL, &s->rx[index], NULL), 0);
	assert_int_equal(fi_cq_open(domain.domain, &attr, &s->rxq[index], NULL), 0);
	assert_int_equal(fi_ep_bind(s->rx[index], &s->rxq[index]->fid, FI_RECV), 0);
}

/*
 * A context that fails to be enabled takes nothing from another one, with which it shares a counter: that still counts
 * what the other one receives, though nothing else moves the endpoint on.
 */
static void not_enabled(void **state)
{
	struct fid_cntr *came;
	struct t_end peer;
	fi_addr_t to;
	struct t_sep s;
	char in;

	(void)state;
	t_sep_make(&s, &domain, 0);
	open_with_descriptor(&s, 1);
	came = open_cntr(s.rx[0], FI_RECV);
	assert_int_equal(fi_ep_bind(s.rx[1], &came->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(s.rx[0]), 0);
	sets_are_full = true;
	assert_int_equal(fi_enable(s.rx[1]), -FI_ENOSPC);
	sets_are_full = false;
	assert_int_equal(fi_enable(s.sep), 0);
	t_end_open(&peer, &domain, NULL);
	s.name_len = sizeof(s.name);
	assert_int_equal(fi_getname(&s.sep->fid, s.name, &s.name_len), 0);
	to = t_insert(&peer, s.name);
	for (uint64_t i = 1; i <= 2; i++) {
		assert_int_equal(fi_recv(s.rx[0], &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
		t_post(fi_inject(peer.ep, "x", 1, to), peer.cq, NULL);
		for (int64_t end = t_now() + T_PATIENCE; fi_cntr_read(came) < i && t_now() < end;)
			t_drive(peer.cq);
		assert_int_equal(fi_cntr_read(came), i);
		if (i == 1)
			assert_int_equal(fi_enable(s.rx[1]), 0);
	}
	t_end_close(&peer);
	t_sep_close(&s);
	assert_int_equal(fi_close(&came->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(announced),
		cmocka_unit_test(refused),
		cmocka_unit_test(bound),
		cmocka_unit_test(enabled),
		cmocka_unit_test(closed),
		cmocka_unit_test(opened_again),
		cmocka_unit_test(closed_while_awaited),
		cmocka_unit_test(closed_with_fetch),
		cmocka_unit_test(closed_while_written),
		cmocka_unit_test(closed_while_received),
		cmocka_unit_test(data_without_first),
		cmocka_unit_test(attributes),
		cmocka_unit_test(counted),
		cmocka_unit_test(not_enabled),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, open_domain, close_domain);
}
