/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machines ask of their host: memory by key, receives, and what has ended. `user` is the qp. */
#include "channel_adapter/internal.h"

#include "base/compiler.h"
#include "base/copy.h"
#include "base/iov.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The oldest request has ended. */
static inline void end_request(struct rwk_qp *qp, const struct request_slot *s, int status)
{
	struct rwk_wc wc = {
		.id = s->id, .qpn = qp->number, .type = s->wr.type, .status = status, .length = s->wr.length};

	qp->request_head = (qp->request_head + 1) % qp->request_max;
	qp->request_count--;
	if (qp->silent || (s->unsignalled && !status))
		qp->send_cq->claimed--;
	else
		rwk_ca_complete(qp->send_cq, &wc);
}

void rwk_ca_end_locals(struct rwk_qp *qp)
{
	struct request_slot *s;

	while (qp->request_count && (s = &qp->requests[qp->request_head])->wr.type >= RWK_REQUEST_BIND) {
		qp->locals--;
		end_request(qp, s, s->status);
	}
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct rwk_qp *qp = user;
	struct request_slot *s = rwk_container_of(wr, struct request_slot, wr);

	assert(s == &qp->requests[qp->request_head]); /* the machines end them in the order of posting */
	end_request(qp, s, status);
	if (rwk_unlikely(qp->locals))
		rwk_ca_end_locals(qp);
}

static void on_failed(void *user, int err)
{
	struct rwk_qp *qp = user;

	qp->error = err;
	rwk_ca_flush_receives(qp);
	rwk_ca_raise(qp->adapter, &qp->events, RWK_ASYNC_QP_ERROR);
	if (qp->srq)
		rwk_ca_raise(qp->adapter, &qp->events, RWK_ASYNC_QP_LAST_RECEIVE);
	if (qp->stream)
		qp->stream->failed(qp->stream, err);
}

/* Each packet of an un-ordered Write says all of it, and may come between packets of other messages. */
static bool is_unordered(const struct rwk_wire *w)
{
	return w->opcode >= RWK_WIRE_OWN;
}

static bool has_imm(const struct rwk_wire *w)
{
	switch (RWK_WIRE_OPERATION(w->opcode)) {
	case RWK_WIRE_SEND_LAST_IMM:
	case RWK_WIRE_SEND_ONLY_IMM:
	case RWK_WIRE_WRITE_LAST_IMM:
	case RWK_WIRE_WRITE_ONLY_IMM:
		return true;
	default:
		return false;
	}
}

static bool invalidates(const struct rwk_wire *w)
{
	unsigned operation = RWK_WIRE_OPERATION(w->opcode);

	return operation == RWK_WIRE_SEND_LAST_INV || operation == RWK_WIRE_SEND_ONLY_INV;
}

/*
 * Whose receives and memory a request is for. For SRC the number in each packet says so, and the machine asks once all
 * of RC's checks are passed (S1-5). No such srq, or one of another domain: -EACCES, NAK 0x62 (S1-6), since the request
 * is one that RC would grant, if it were not for somebody that this connection does not reach; 0x61 says that the
 * request itself is wrong, as when a message goes on with another number than it has begun with: -EINVAL.
 */
static int find_srq(const struct rwk_qp *qp, const struct rwk_wire *w, bool begins, struct rwk_srq **srq)
{
	struct rwk_srq *found;

	if (rwk_likely(qp->type != RWK_QP_SRC)) {
		*srq = qp->srq;
		return 0;
	}
	found = rwk_ca_find_srq(qp->adapter, w->srqn);
	if (rwk_unlikely(!found || found->domain != qp->domain))
		return -EACCES;
	if (rwk_unlikely(!begins && w->srqn != qp->srqn))
		return -EINVAL;
	*srq = found;
	return 0;
}

/* Whose memory the peer may reach: for SRC that srq's (S1-8), else the qp's. */
static int find_pd(const struct rwk_qp *qp, const struct rwk_wire *w, bool begins, uint32_t *pd)
{
	struct rwk_srq *srq;
	int rc = find_srq(qp, w, begins, &srq);

	if (rwk_unlikely(rc))
		return rc;
	*pd = (qp->type == RWK_QP_SRC ? srq->pd : qp->pd)->number;
	return 0;
}

/* Where that lies, by the key of an mr or of a window: as rwk_keys_find. */
static inline int reach(const struct rwk_qp *qp, uint32_t pd, uint32_t key, uint64_t address, size_t len,
	unsigned access, struct iovec *iov, int max)
{
	int n = rwk_keys_find(qp->adapter->keys, pd, key, address, len, access, iov, max);

	return rwk_likely(n != -EACCES) ? n : rwk_ca_reach_window(qp, pd, key, address, len, access, iov, max);
}

/* The window that a Send invalidates. NULL: there is none that it may. */
static struct rwk_mw *condemned(const struct rwk_qp *qp, const struct rwk_wire *w, const struct rwk_srq *srq)
{
	return rwk_ca_find_window(qp, (qp->type == RWK_QP_SRC ? srq->pd : qp->pd)->number, w->invalidate);
}

/* The receive that a message takes is here: whatever has been put into it was of one that UC dropped half-way. */
static int begin_receive(struct rwk_qp *qp, const struct rwk_wire *w, struct rwk_srq *srq)
{
	int rc = rwk_ca_take_receive(qp, srq);

	if (rc)
		return rc;
	qp->received = 0;
	qp->srqn = w->srqn;
	return 0;
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct rwk_qp *qp = user;
	struct rwk_wc wc = {.type = RWK_WC_RECEIVE};
	struct rwk_mw *window = NULL;
	struct receive_slot *s;
	struct rwk_srq *srq;
	int rc = find_srq(qp, w, where & RWK_PIECE_FIRST, &srq);

	if (!rc && where & RWK_PIECE_FIRST)
		rc = begin_receive(qp, w, srq);
	if (rwk_unlikely(rc))
		return rc;
	s = qp->taken;
	if (rwk_unlikely(!s || (invalidates(w) && !(window = condemned(qp, w, srq)))))
		return -EINVAL; /* it goes on with nothing, or may not do that */
	if (rwk_unlikely(len > s->length - qp->received)) {
		wc.status = -EMSGSIZE;
		rwk_ca_end_receive(qp, &wc);
		return -EMSGSIZE;
	}
	rwk_iov_scatter(s->iov, s->count, qp->received, bytes, len);
	qp->received += len;
	if (!(where & RWK_PIECE_LAST))
		return 0;
	wc.length = qp->received;
	wc.has_imm = has_imm(w);
	wc.imm = wc.has_imm ? w->imm : 0;
	if (rwk_unlikely(window)) {
		wc.invalidated = true;
		wc.imm = w->invalidate;
		rwk_ca_unbind(window);
	}
	wc.solicited = w->solicited;
	rwk_ca_end_receive(qp, &wc);
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	struct rwk_qp *qp = user;
	struct iovec where;
	uint32_t pd;
	int rc = find_pd(qp, w, true, &pd);

	if (rwk_unlikely(rc))
		return rc;
	if (access & RWK_REACH_WRITE && !is_unordered(w)) {
		qp->write_length = len;
		qp->srqn = w->srqn;
	}
	rc = len ? reach(qp, pd, key, address, len, access, &where, 1) : 0;
	return rc < 0 ? rc : 0;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct rwk_qp *qp = user;
	struct iovec to;
	uint32_t pd;
	int n = find_pd(qp, w, is_unordered(w), &pd);

	if (!n)
		n = reach(qp, pd, key, address, len, RWK_REACH_WRITE, &to, 1);
	if (rwk_unlikely(n < 0))
		return n;
	if (n && !rwk_copy_word(to.iov_base, bytes, len)) /* a word may be what its reader waits for */
		rwk_copy(to.iov_base, bytes, len);
	return 0;
}

static int on_written(void *user, const struct rwk_wire *w)
{
	struct rwk_qp *qp = user;
	bool all = RWK_WIRE_OPERATION(w->opcode) == RWK_WIRE_WRITE_ONLY_IMM || is_unordered(w);
	struct rwk_srq *srq;
	int rc = find_srq(qp, w, is_unordered(w), &srq);

	if (!rc)
		rc = rwk_ca_take_receive(qp, srq);
	if (rwk_unlikely(rc))
		return rc;
	rwk_ca_end_receive(qp, &(struct rwk_wc){.type = RWK_WC_RECEIVE_WRITE,
				       .has_imm = true,
				       .imm = w->imm,
				       .solicited = w->solicited,
				       .length = all ? w->reth.length : qp->write_length});
	return 0;
}

/* SRC: that the key is one that may be named was seen when the request came (on_reach), from its srq. */
static int on_read(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	struct rwk_qp *qp = user;
	uint32_t pd = qp->pd->number;
	int rc = qp->type == RWK_QP_SRC ? rwk_keys_pd(qp->adapter->keys, key, &pd) : 0;

	return rc ? rc : reach(qp, pd, key, address, len, RWK_REACH_READ, iov, max);
}

static int on_atomic(void *user, const struct rwk_wire *w, uint64_t *before)
{
	struct rwk_qp *qp = user;
	uint64_t expected = w->atomic.compare, *at;
	struct iovec where;
	uint32_t pd;
	int n;

	if (w->atomic.address % sizeof(*at))
		return -EINVAL;
	n = find_pd(qp, w, true, &pd);
	if (!n)
		n = reach(qp, pd, w->atomic.key, w->atomic.address, sizeof(*at), RWK_REACH_ATOMIC, &where, 1);
	if (n < 0)
		return n;
	at = where.iov_base;
	if (RWK_WIRE_OPERATION(w->opcode) == RWK_WIRE_FETCH_ADD) {
		*before = __atomic_fetch_add(at, w->atomic.swap_add, __ATOMIC_SEQ_CST);
		return 0;
	}
	__atomic_compare_exchange_n(at, &expected, w->atomic.swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*before = expected;
	return 0;
}

const struct rwk_machine_host rwk_ca_host = {
	.emit = rwk_ca_emit,
	.done = on_done,
	.failed = on_failed,
	.receive = on_receive,
	.reach = on_reach,
	.write = on_write,
	.written = on_written,
	.read = on_read,
	.atomic = on_atomic,
	.keep = rwk_ca_keep,
	.kept = rwk_ca_kept,
	.drop = rwk_ca_drop,
	.mark = rwk_ca_mark,
};
