/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests of the machines, from their beginning to their end. What a long message or an RDMA op posts is read
 * where it lies until the machine is done with it. A message's may go on without it, from a copy: one that the client
 * wants back, since it cancels it or its peer is late, or one of a few, for which there is time. So does what has begun
 * of an RDMA op when its channel ends in good order, for messages stand behind it, unless that is too much for the
 * port; what has not is taken out. What an initiator has numbered and nobody wants any more goes on as an orphan.
 */
#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/port.h"
#include "packet/pull.h"
#include "packet/reach.h"
#include "packet/request.h"

#include "base/iov.h"
#include "rc/rc.h"
#include "uc/uc.h"

#include <errno.h>
#include <string.h>

/** Of one that is no frame; it need not have a channel any more. */
static struct rwk_port *port_of(const struct rwk_request *r)
{
	return rwk_container_of(r->home, struct rwk_port, requests);
}

void *rwk_packet_copy_room(struct rwk_request *r, size_t len)
{
	struct rwk_port *port = port_of(r);

	r->copy = rwk_spares_get(&port->spares, len);
	if (r->copy)
		port->copied += r->wr.length;
	return r->copy;
}

struct rwk_request *rwk_packet_request(struct rwk_packet_channel *ch, enum rwk_request_kind kind)
{
	struct rwk_pool *home = kind == RWK_REQ_FRAME ? &ch->port->frames : &ch->port->requests;
	struct rwk_request *r = rwk_pool_get(home);

	if (!r)
		return NULL;
	r->home = home;
	r->wr = (struct rwk_wr){.type = RWK_WR_SEND, .iov = r->iov, .iov_count = 1};
	r->ch = ch;
	r->kind = kind;
	r->used = 0;
	r->op = NULL;
	r->pulling = NULL;
	r->copy = NULL;
	return r;
}

void rwk_packet_request_free(struct rwk_request *r)
{
	if (r->copy) {
		port_of(r)->copied -= r->wr.length;
		rwk_spares_put(&port_of(r)->spares, r->copy);
	}
	rwk_pool_put(r->home, r);
}

static int post(struct rwk_packet_channel *ch, struct rwk_wr *wr)
{
	if (rwk_likely(ch->rc != NULL))
		return rwk_rc_post(ch->rc, wr);
	if (ch->uc)
		return rwk_uc_post(ch->uc, wr);
	wr->srqn = ch->srqn;
	return rwk_rc_post(ch->by->rc, wr);
}

/** Does somebody wait to hear of that request? */
static bool is_awaited(const struct rwk_request *r)
{
	return r->kind != RWK_REQ_FRAME && r->kind != RWK_REQ_COPY;
}

/**
 * Does somebody wait for its answer alone, which comes by this process's own socket? By SRC nobody does for that of a
 * Send among others, or of what the peer has asked for: it travels with a message of the peer's, to the domain's socket,
 * or comes when the machine has asked for all up to there, or the peer has waited for a message in vain. The same from
 * beginning to end: a channel that has requests stays shared, or does not become it.
 */
static bool asks(const struct rwk_request *r)
{
	return !r->ch->shared || (r->wr.type != RWK_WR_SEND && r->kind != RWK_REQ_PULL) ||
	       r->wr.flags & RWK_WR_PROMPT;
}

/** UC has nothing that keeps a copy until it has come. */
static bool is_lent(const struct rwk_request *r)
{
	return r->kind == RWK_REQ_SEND && !r->ch->uc && !r->op->arrival;
}

static void begins(struct rwk_request *r)
{
	struct rwk_port *port = r->ch->port;

	if (!is_awaited(r))
		return;
	r->ch->running++;
	port->running++;
	port->asking += asks(r);
	if (is_lent(r)) {
		rwk_list_append(&port->lent, &r->lent);
		port->lent_bytes += r->op->length;
	}
}

static void ends(struct rwk_request *r)
{
	struct rwk_port *port = r->ch->port;

	if (!is_awaited(r))
		return;
	r->ch->running--;
	port->running--;
	port->asking -= asks(r);
	if (is_lent(r)) {
		rwk_list_remove(&r->lent);
		port->lent_bytes -= r->op->length;
	}
}

int rwk_packet_start(struct rwk_request *r)
{
	struct rwk_packet_channel *ch = r->ch;
	int rc;

	rwk_list_append(&ch->requests, &r->all);
	begins(r);
	rc = post(ch, &r->wr);
	if (rc) {
		rwk_list_remove(&r->all);
		ends(r);
	}
	return rc;
}

/** A Send has ended. */
static void send_over(struct rwk_packet_channel *ch, struct rwk_op *op, int status)
{
	if (rwk_packet_asks_for_arrival(ch, op))
		rwk_packet_part_done(ch, op, status);
	else
		op->done(op, status);
}

void rwk_packet_part_add(struct rwk_op *op)
{
	op->service[RWK_WORD_PARTS]++;
}

void rwk_packet_part_failed(struct rwk_op *op, int status)
{
	if (status && !op->service[RWK_WORD_STATUS])
		op->service[RWK_WORD_STATUS] = (uint64_t)-status;
}

void rwk_packet_part_done(struct rwk_packet_channel *ch, struct rwk_op *op, int status)
{
	rwk_packet_part_failed(op, status);
	if (--op->service[RWK_WORD_PARTS])
		return;
	if (ch->shared && !op->service[RWK_WORD_STATUS] && rwk_packet_reach_read(ch, op))
		return;
	op->done(op, -(int)op->service[RWK_WORD_STATUS]);
}

/** A request of that kind has ended, or goes on without its op. */
static void op_over(struct rwk_packet_channel *ch, enum rwk_request_kind kind, struct rwk_op *op, int status)
{
	if (kind == RWK_REQ_SEND)
		send_over(ch, op, status);
	else if (kind == RWK_REQ_OP || kind == RWK_REQ_STATUS)
		rwk_packet_part_done(ch, op, status);
}

/** What the link reads where it lies is read: it may be changed. */
static void end_reading(const struct rwk_packet_channel *ch)
{
	struct rwk_link *l = ch->port->link[ch->path.way];

	l->ops->flush(l);
}

void rwk_packet_done(void *user, struct rwk_wr *wr, int status)
{
	struct rwk_request *r = rwk_container_of(wr, struct rwk_request, wr);
	struct rwk_packet_channel *ch = r->ch;
	enum rwk_request_kind kind = r->kind;
	struct rwk_op *op = r->op;

	(void)user;
	if (kind == RWK_REQ_STATUS && !status)
		status = rwk_packet_reach_status(r);
	if (rwk_unlikely(kind == RWK_REQ_ORPHAN)) {
		rwk_packet_request_free(r);
		return;
	}
	/* The link may read until its next flush. On UC that is what a request waits for; on RC only one that is cut
	 * off. */
	if (rwk_unlikely((!ch->rc && !ch->shared) || status) && wr->length > RWK_LINK_COPIED)
		end_reading(ch);
	rwk_list_remove(&r->all);
	if (status && ch->base.error)
		status = ch->base.error; /* why the channel ended says more than that it did */
	if (kind == RWK_REQ_FRAME)
		ch->frames--;
	ends(r);
	if (kind == RWK_REQ_PULL)
		rwk_packet_pull_part(r, status);
	if (kind == RWK_REQ_COPY)
		ch->copied -= r->used;
	rwk_packet_request_free(r);
	if (ch->shared && rwk_packet_wants_room(ch))
		rwk_packet_stir(ch); /* its initiator's packets are not its own */
	op_over(ch, kind, op, status);
}

/** The payload of a long message that runs is copied, and its op no longer needed. False: out of memory. */
static bool copy_message(struct rwk_request *r)
{
	size_t head = r->iov[0].iov_len, len = r->wr.length - head;

	if (!rwk_packet_copy_room(r, len))
		return false;
	rwk_iov_gather(r->op->iov, r->op->iov_count, 0, r->copy, len);
	r->iov[1] = (struct iovec){r->copy, len};
	r->wr.iov_count = 2;
	return true;
}

bool rwk_packet_keep_bytes(struct rwk_request *r)
{
	size_t len = r->wr.length;

	if (r->kind == RWK_REQ_FRAME || r->kind == RWK_REQ_COPY || r->copy)
		return true;
	if (r->kind == RWK_REQ_SEND)
		return copy_message(r);
	if (r->wr.type == RWK_WR_READ) {
		r->wr.iov_count = 0; /* what comes is dropped */
		return true;
	}
	if (!rwk_packet_copy_room(r, len) || rwk_iov_gather(r->iov, r->wr.iov_count, 0, r->copy, len) < len)
		return false;
	r->iov[0] = (struct iovec){r->copy, len};
	r->wr.iov_count = 1;
	return true;
}

/**
 * Is it a Write whose copy is one too many? Its program may have as many peers as its job has ranks. Of SRC it would be
 * copied all the same, as an orphan, and there is one or two for each node.
 */
static bool is_too_much(const struct rwk_request *r)
{
	return r->wr.type == RWK_WR_WRITE && !r->copy && !r->ch->shared &&
	       port_of(r)->copied + r->wr.length > RWK_COPIES_MAX;
}

/**
 * What has begun cannot be taken out of the stream: the rest of it is sent from a copy, and its op ends. False: there
 * is no memory, or it would be too much.
 */
static bool go_on_from_copy(struct rwk_request *r, int status)
{
	enum rwk_request_kind kind = r->kind;
	struct rwk_op *op = r->op;

	if (is_too_much(r) || !rwk_packet_keep_bytes(r))
		return false;
	ends(r);
	r->used = kind == RWK_REQ_SEND ? (uint32_t)op->length : 0;
	r->ch->copied += r->used;
	r->kind = RWK_REQ_COPY;
	r->op = NULL;
	op_over(r->ch, kind, op, status);
	return true;
}

void rwk_packet_relieve(struct rwk_packet_channel *ch)
{
	if (ch->copied >= RWK_RELIEF_MAX)
		return;
	end_reading(ch);
	for (struct rwk_list *l = ch->requests.next; l != &ch->requests && ch->copied < RWK_RELIEF_MAX; l = l->next) {
		struct rwk_request *r = rwk_container_of(l, struct rwk_request, all);

		if (r->kind == RWK_REQ_SEND && !r->op->arrival)
			go_on_from_copy(r, 0);
	}
}

bool rwk_packet_relieve_first(struct rwk_port *port)
{
	struct rwk_request *r = rwk_container_of(port->lent.next, struct rwk_request, lent);

	if (port->lent_bytes > RWK_RELIEF_MAX || r->ch->copied + r->op->length > RWK_RELIEF_MAX)
		return false;
	end_reading(r->ch);
	return go_on_from_copy(r, 0);
}

bool rwk_packet_take_out(struct rwk_request *r, int status)
{
	struct rwk_packet_channel *ch = r->ch;
	struct rwk_rc *rc = rwk_packet_requester(ch);

	if (r->kind == RWK_REQ_SEND || (r->kind == RWK_REQ_PULL && !r->pulling))
		return false;
	if (rc ? rwk_rc_withdraw(rc, &r->wr) : rwk_uc_withdraw(ch->uc, &r->wr))
		return false;
	rwk_packet_done(NULL, &r->wr, status);
	return true;
}

/** Ends what somebody waits for. What stays in the list is where to go on: who is told may take others out of it. */
static bool detach_all(struct rwk_packet_channel *ch)
{
	struct rwk_list *seen = &ch->requests;

	while (seen->next != &ch->requests) {
		struct rwk_request *r = rwk_container_of(seen->next, struct rwk_request, all);

		if (is_awaited(r)) {
			if (rwk_packet_take_out(r, -ECANCELED))
				continue;
			if (!go_on_from_copy(r, -ECANCELED))
				return false;
		}
		seen = &r->all;
	}
	return true;
}

bool rwk_packet_detach(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;
	bool before = port->inside, all;

	end_reading(ch);
	port->inside = true; /* who is told may send, and what is pumped then would be done and gone */
	all = detach_all(ch);
	port->inside = before;
	if (all)
		rwk_packet_pulls_stop(ch, -ECANCELED);
	return all;
}

static void orphan(struct rwk_request *r, int status)
{
	struct rwk_packet_channel *ch = r->ch;
	struct rwk_packet_initiator *by = ch->by;
	enum rwk_request_kind kind = r->kind;
	struct rwk_op *op = r->op;

	if (!rwk_packet_keep_bytes(r)) {
		r->wr.iov_count = 0; /* it goes nowhere any more: */
		by->failed = true;
	}
	ends(r);
	r->kind = RWK_REQ_ORPHAN;
	rwk_list_remove(&r->all);
	if (kind == RWK_REQ_PULL)
		rwk_packet_pull_part(r, status);
	r->ch = NULL;
	op_over(ch, kind, op, status);
}

bool rwk_packet_release(struct rwk_packet_channel *ch, int status)
{
	bool some = false;

	while (!rwk_list_empty(&ch->requests)) {
		struct rwk_request *r = rwk_container_of(ch->requests.next, struct rwk_request, all);

		if (!rwk_rc_withdraw(ch->by->rc, &r->wr)) {
			rwk_packet_done(NULL, &r->wr, status);
			some = true;
		} else {
			orphan(r, status);
		}
	}
	if (ch->by->failed && ch->by->rc)
		rwk_rc_fail(ch->by->rc, -ENOMEM);
	return some;
}
