/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machines ask of their host: memory by key, receives, and what has ended. `user` is the qp. */
#include "channel_adapter/internal.h"

#include "base/compiler.h"
#include "base/iov.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct rwk_qp *qp = user;
	struct request_slot *s = rwk_container_of(wr, struct request_slot, wr);
	struct rwk_wc wc = {.id = s->id, .qpn = qp->number, .type = wr->type, .status = status, .length = wr->length};

	assert(s == &qp->requests[qp->request_head]); /* the machines end them in the order of posting */
	qp->request_head = (qp->request_head + 1) % qp->request_max;
	qp->request_count--;
	if (qp->silent)
		qp->send_cq->claimed--;
	else
		rwk_ca_complete(qp->send_cq, &wc);
}

static void on_failed(void *user, int err)
{
	struct rwk_qp *qp = user;

	qp->error = err;
	rwk_ca_flush_receives(qp);
}

void rwk_ca_end_receive(struct rwk_qp *qp, struct rwk_wc *wc)
{
	wc->id = qp->receives[qp->receive_head].id;
	wc->qpn = qp->number;
	qp->receive_head = (qp->receive_head + 1) % qp->receive_max;
	qp->receive_count--;
	qp->received = 0;
	if (qp->silent)
		qp->receive_cq->claimed--;
	else
		rwk_ca_complete(qp->receive_cq, wc);
}

void rwk_ca_flush_receives(struct rwk_qp *qp)
{
	while (qp->receive_count)
		rwk_ca_end_receive(qp, &(struct rwk_wc){.type = RWK_WC_RECEIVE, .status = -ECANCELED});
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

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct rwk_qp *qp = user;
	struct receive_slot *s = &qp->receives[qp->receive_head];
	struct rwk_wc wc = {.type = RWK_WC_RECEIVE};

	if (where & RWK_PIECE_FIRST) {
		if (!qp->receive_count)
			return -EAGAIN;
		qp->received = 0; /* UC: the Send before may have been dropped half-way */
	}
	if (rwk_unlikely(invalidates(w))) /* a key of an mr's is not the peer's to invalidate */
		return -EINVAL;
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
	wc.solicited = w->solicited;
	rwk_ca_end_receive(qp, &wc);
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	struct rwk_qp *qp = user;

	(void)w;
	if (access & RWK_REACH_WRITE)
		qp->write_length = len;
	return rwk_keys_check(qp->adapter->keys, qp->pd->number, key, address, len, access);
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct rwk_qp *qp = user;
	struct iovec to;
	int n = rwk_keys_find(qp->adapter->keys, qp->pd->number, key, address, len, RWK_REACH_WRITE, &to, 1);

	(void)w;
	if (rwk_unlikely(n < 0))
		return n;
	if (n)
		memcpy(to.iov_base, bytes, len);
	return 0;
}

static int on_written(void *user, const struct rwk_wire *w)
{
	struct rwk_qp *qp = user;
	bool only = RWK_WIRE_OPERATION(w->opcode) == RWK_WIRE_WRITE_ONLY_IMM;

	if (!qp->receive_count)
		return -EAGAIN;
	rwk_ca_end_receive(qp, &(struct rwk_wc){.type = RWK_WC_RECEIVE_WRITE,
				       .has_imm = true,
				       .imm = w->imm,
				       .solicited = w->solicited,
				       .length = only ? w->reth.length : qp->write_length});
	return 0;
}

static int on_read(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	struct rwk_qp *qp = user;

	return rwk_keys_find(qp->adapter->keys, qp->pd->number, key, address, len, RWK_REACH_READ, iov, max);
}

static int on_atomic(void *user, const struct rwk_wire *w, uint64_t *before)
{
	struct rwk_qp *qp = user;
	uint64_t expected = w->atomic.compare, *at;
	struct iovec where;
	int n;

	if (w->atomic.address % sizeof(*at))
		return -EINVAL;
	n = rwk_keys_find(qp->adapter->keys, qp->pd->number, w->atomic.key, w->atomic.address, sizeof(*at),
		RWK_REACH_ATOMIC, &where, 1);
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
};
