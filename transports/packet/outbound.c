/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From messages to packets. A short message is copied into the channel's frame. The first few after a progress are sent
 * within the send, since somebody may wait for them and the client may compute from then on; what follows before the
 * next progress gathers behind them and goes out together. Of a client that sends by the dozen only the first goes at
 * once. A long message is a Send of its own, read where it lies until it is acknowledged. One that is alone under way
 * and not very long is copied when nothing comes, since there is nothing else to do then: whoever waits for its end need
 * not wait for the peer.
 */
#include "packet/internal.h"

enum { OP_QUEUED = 1, OP_RUNNING };

#define AT_ONCE 4 /* sends between two progresses that go within the send; one after a burst of more than */
#define BURST   16

#define LONE_MAX (16u << 10) /* bytes of a message up to which it takes less to copy it than to hear that it has come */

#define JOINED_MAX 2048u /* bytes of a packet that goes at once, up to which a copy is cheaper than several pieces */

#define OP_STATE  0 /* words of rwk_op.service */
#define OP_PARTS  1
#define OP_STATUS 2

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

static void free_request(struct rwk_request *r)
{
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

static void begins(const struct rwk_request *r)
{
	if (!is_awaited(r))
		return;
	r->ch->running++;
	r->ch->port->running++;
}

static void ends(const struct rwk_request *r)
{
	struct rwk_port *port = r->ch->port;

	if (!is_awaited(r))
		return;
	r->ch->running--;
	port->running--;
	if (port->lone == r)
		port->lone = NULL;
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

/** The frame's own word: what we acknowledge by it. */
static uint32_t frame_word(struct rwk_packet_channel *ch)
{
	uint32_t ack;

	if (ch->shared ? !rwk_src_take_ack(ch->port->view, ch->target, &ack)
		       : !ch->rc || !rwk_rc_take_ack(ch->rc, &ack))
		return 0;
	return RWK_FRAME_ACK | ack;
}

/** The frame is full, or due. */
static void close_frame(struct rwk_packet_channel *ch)
{
	struct rwk_request *r = ch->frame;
	uint32_t word = frame_word(ch);

	ch->frame = NULL;
	memcpy(r->bytes, &word, sizeof(word));
	r->iov[0] = (struct iovec){r->bytes, r->used};
	r->wr.length = r->used;
	ch->port->count.frames_out++;
	if (rwk_packet_start(r)) {
		ch->frames--;
		free_request(r);
		rwk_packet_doom(ch, -EIO);
	}
}

/** Room for a record of `need` bytes in the frame, or in a new one; NULL: none now, or never. */
static struct rwk_request *frame_room(struct rwk_packet_channel *ch, uint8_t kind, size_t need)
{
	struct rwk_request *r = ch->frame;

	if (rwk_likely(r && r->used + need <= ch->pmtu))
		return r;
	if (RWK_FRAME_HEAD + need > ch->pmtu || (ch->frames >= RWK_FRAMES_MAX && kind != RWK_KIND_BYE))
		return NULL;
	r = rwk_packet_request(ch, RWK_REQ_FRAME);
	if (!r)
		return NULL;
	if (ch->frame)
		close_frame(ch);
	r->used = RWK_FRAME_HEAD;
	ch->frames++;
	ch->frame = r;
	return r;
}

/** Writes a record's head; returns its bytes. The envelope's spare word carries the length. */
static size_t put_head(unsigned char *to, const struct rwk_envelope *env, size_t len)
{
	uint64_t head = (env->head & UINT32_MAX) | (uint64_t)len << 32;

	memcpy(to, &head, 8);
	memcpy(to + 8, &env->tag, 8);
	if (!(env->flags & RWK_ENV_DATA))
		return 16;
	memcpy(to + 16, &env->data, 8);
	return 24;
}

static size_t record_size(const struct rwk_envelope *env, size_t len)
{
	return (env->flags & RWK_ENV_DATA ? 24 : 16) + len;
}

static bool append(struct rwk_packet_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len)
{
	struct rwk_request *r = frame_room(ch, env->kind, record_size(env, len));
	unsigned char *to;

	if (!r)
		return false;
	to = r->bytes + r->used;
	to += put_head(to, env, len);
	if (len)
		memcpy(to, buf, len);
	r->used = (uint32_t)(to + len - r->bytes);
	ch->port->count.records_out++;
	return true;
}

/** Another send of the client's: is it one of those that go at once? */
static bool goes_at_once(struct rwk_packet_channel *ch)
{
	uint32_t epoch = (uint32_t)ch->port->epoch;

	if (ch->sent_in != epoch) {
		ch->sent_in = epoch;
		ch->at_once = ch->burst > BURST ? 1 : AT_ONCE;
		ch->burst = 0;
	}
	ch->burst += ch->burst <= BURST;
	if (!ch->at_once)
		return false;
	ch->at_once--;
	return true;
}

/**
 * One short message alone, and somebody may wait for it: the link has its packet before anything else is seen to.
 * False: it is not alone, or does not go.
 */
static bool hurry(struct rwk_packet_channel *ch)
{
	struct rwk_rc *rc = rwk_packet_requester(ch);
	struct rwk_port *port = ch->port;
	int n;

	if (!rc || !ch->frame || ch->running || !rwk_list_empty(&ch->queue) || !rwk_rc_at_rest(rc))
		return false;
	close_frame(ch);
	port->hurry = true;
	n = rwk_rc_hurry(rc);
	port->hurry = false;
	if (!n)
		return false;
	rwk_rc_hurried(rc, rwk_packet_now(port));
	if (ch->rc)
		rwk_packet_deadline(ch, rwk_rc_next(rc));
	else
		rwk_packet_initiator_deadline(ch->by);
	return true;
}

/** Sends what there is within a call of the client's, if that can be done without an upcall. */
static void send_now(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;

	if (port->inside || !goes_at_once(ch) || (ch->uc && ch->running)) {
		rwk_packet_stir(ch);
		return;
	}
	port->now = 0;
	port->inside = true;
	if (!hurry(ch))
		rwk_packet_pump(ch);
	port->inside = false;
	rwk_packet_flush(port);
}

int rwk_packet_send(struct rwk_channel *c, const struct rwk_envelope *env, const void *buf, size_t len)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(c);

	if (rwk_unlikely(ch->state != RWK_CH_OPEN))
		return c->error ? c->error : -EAGAIN;
	if (rwk_unlikely(!rwk_list_empty(&ch->queue)) || !append(ch, env, buf, len))
		return -EAGAIN;
	send_now(ch);
	return 0;
}

bool rwk_packet_control(struct rwk_packet_channel *ch, const struct rwk_envelope *env, const void *bytes, size_t len)
{
	if (!append(ch, env, bytes, len))
		return false;
	rwk_packet_stir(ch);
	return true;
}

/** Is a posted send to be told of only when the peer has said that it has come? UC's machine does not know. */
static bool asks_for_arrival(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return ch->uc && op->arrival;
}

/** A Send has ended. */
static void send_over(struct rwk_packet_channel *ch, struct rwk_op *op, int status)
{
	if (asks_for_arrival(ch, op))
		rwk_packet_part_done(ch, op, status);
	else
		op->done(op, status);
}

/** One that will be copied need not be acknowledged at once. UC has nothing that keeps a copy until it has come. */
static bool is_lone(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return !ch->port->running && !ch->uc && !op->arrival && op->length <= LONE_MAX &&
	       ch->copied + op->length <= RWK_RELIEF_MAX;
}

/**
 * A long message, or one whose arrival is waited for: a Send of its own, its head in the request. False: out of memory,
 * or of room for the question behind it.
 */
static bool start_alone(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	struct rwk_request *r = rwk_packet_request(ch, RWK_REQ_SEND);
	size_t len = op->length;
	uint32_t word;
	unsigned n;
	bool lone;

	if (!r)
		return false;
	if (ch->frame)
		close_frame(ch);
	op->service[OP_PARTS] = 1;
	op->service[OP_STATUS] = 0;
	if (asks_for_arrival(ch, op) && !rwk_packet_ask_behind(ch, op)) {
		free_request(r);
		return false;
	}
	word = frame_word(ch);
	memcpy(r->bytes, &word, sizeof(word));
	r->iov[0] = (struct iovec){r->bytes, RWK_FRAME_HEAD + put_head(r->bytes + RWK_FRAME_HEAD, &op->env, len)};
	n = rwk_iov_slice(op->iov, op->iov_count, 0, &len, r->iov + 1, RWK_MACHINE_IOV - 1);
	r->wr.iov_count = (uint16_t)(1 + n);
	r->wr.length = r->iov[0].iov_len + len;
	/* Somebody waits for its acknowledgement, or no message of the peer's brings that along. */
	lone = is_lone(ch, op);
	r->wr.flags = !ch->uc && (op->arrival || (ch->shared && !lone)) ? RWK_WR_PROMPT : 0;
	r->op = op;
	op->service[OP_STATE] = OP_RUNNING;
	ch->port->count.frames_out++;
	ch->port->count.records_out++;
	if (rwk_packet_start(r)) {
		rwk_list_remove(&op->link); /* the answer is nobody's then */
		free_request(r);
		return false;
	}
	if (lone)
		ch->port->lone = r;
	return true;
}

int rwk_packet_rdma(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	bool published = rwk_packet_is_published(ch, op); /* a Read behind it brings the acknowledgement */
	size_t at = 0;

	op->service[OP_STATE] = OP_RUNNING;
	op->service[OP_PARTS] = 1; /* ours, until all are posted */
	op->service[OP_STATUS] = 0;
	do { /* one of no bytes is a request, too */
		struct rwk_request *r = rwk_packet_request(ch, RWK_REQ_OP);
		size_t len = op->length - at < rwk_packet_part_max(ch) ? op->length - at : rwk_packet_part_max(ch);

		if (!r)
			break;
		r->wr.type = op->type == RWK_OP_READ ? RWK_WR_READ : RWK_WR_WRITE;
		r->wr.flags = op->type == RWK_OP_WRITE && !ch->uc && !published ? RWK_WR_PROMPT : 0;
		r->wr.iov_count = (uint16_t)rwk_iov_slice(op->iov, op->iov_count, at, &len, r->iov, RWK_MACHINE_IOV);
		r->wr.length = len;
		r->wr.remote = (op->offset + at) | (published ? RWK_SRC_REACH : 0);
		r->wr.key = (uint32_t)op->rkey.word[0];
		r->op = op;
		if ((!len && op->length) || rwk_packet_start(r)) {
			free_request(r);
			break;
		}
		op->service[OP_PARTS]++;
		at += len;
	} while (at < op->length);
	if (at < op->length)
		op->service[OP_STATUS] = ENOMEM;
	return --op->service[OP_PARTS] ? 0 : -ENOMEM;
}

/** A short message joins the frame; false: no room now. */
static bool start_short(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	unsigned char bytes[RWK_WIRE_OWN_MAX];

	if (!frame_room(ch, op->env.kind, record_size(&op->env, op->length)))
		return false;
	rwk_iov_gather(op->iov, op->iov_count, 0, bytes, op->length);
	append(ch, &op->env, bytes, op->length);
	rwk_list_remove(&op->link);
	op->done(op, 0);
	return true;
}

static bool is_short(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return op->type == RWK_OP_SEND && !op->arrival &&
	       RWK_FRAME_HEAD + record_size(&op->env, op->length) <= ch->pmtu;
}

/**
 * Is that read to be written by the peer? UC has no Read, nor do the processes of a domain answer for one another. On
 * RC the peer's Writes flow by acknowledgements, where Reads wait for one another's requests: measured, they are ahead
 * from about four Read Requests' worth on, and at 1 MB by a third. Below, the Read is, which is answered one trip
 * sooner.
 */
static bool is_pulled(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	if (op->type != RWK_OP_READ)
		return false;
	if (!ch->rc || rwk_params.rendezvous == RWK_RENDEZVOUS_WRITE)
		return true;
	return rwk_params.rendezvous == RWK_RENDEZVOUS_AUTO && op->length >= (size_t)4 * RWK_READ_BATCH * ch->pmtu;
}

static bool start_access(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	if (rwk_packet_is_published(ch, op))
		return !rwk_packet_reach_out(ch, op);
	if (is_pulled(ch, op))
		return !rwk_packet_pull(ch, op);
	if (ch->rc || op->type != RWK_OP_WRITE)
		return !rwk_packet_rdma(ch, op);
	if (rwk_packet_push(ch, op))
		return false;
	close_frame(ch); /* its question is about this write, not the next */
	return true;
}

/** Starts the first of the queue, which is not short; false: it must wait, for memory. */
static bool start_first(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	rwk_list_remove(&op->link);
	if (op->type == RWK_OP_SEND ? start_alone(ch, op) : start_access(ch, op))
		return true;
	op->service[OP_STATE] = OP_QUEUED;
	rwk_list_append(ch->queue.next, &op->link); /* in front of what is first now */
	return false;
}

int rwk_packet_post(struct rwk_channel *c, struct rwk_op *op)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(c);

	if (c->error)
		return c->error;
	if (op->type != RWK_OP_SEND && op->rkey.word[1] != RWK_RKEY_MARK)
		return -EINVAL;
	if (op->type != RWK_OP_SEND && rwk_packet_is_beyond(ch, op))
		return -EINVAL;
	op->service[OP_STATE] = OP_QUEUED;
	rwk_list_append(&ch->queue, &op->link);
	rwk_packet_stir(ch);
	if (ch->state == RWK_CH_OPEN && ch->queue.next == &op->link && !is_short(ch, op) && start_first(ch, op))
		send_now(ch);
	return 0;
}

int rwk_packet_withdraw(struct rwk_channel *c, struct rwk_op *op)
{
	(void)c;
	if (op->service[OP_STATE] != OP_QUEUED)
		return -EBUSY;
	rwk_list_remove(&op->link);
	return 0;
}

void rwk_packet_part_add(struct rwk_op *op)
{
	op->service[OP_PARTS]++;
}

void rwk_packet_part_failed(struct rwk_op *op, int status)
{
	if (status && !op->service[OP_STATUS])
		op->service[OP_STATUS] = (uint64_t)-status;
}

void rwk_packet_part_done(struct rwk_packet_channel *ch, struct rwk_op *op, int status)
{
	rwk_packet_part_failed(op, status);
	if (--op->service[OP_PARTS])
		return;
	if (ch->shared && !op->service[OP_STATUS] && rwk_packet_reach_read(ch, op))
		return;
	op->done(op, -(int)op->service[OP_STATUS]);
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
		free(r->copy);
		free_request(r);
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
		ch->copied -= (uint32_t)r->iov[1].iov_len;
	if (kind == RWK_REQ_COPY || kind == RWK_REQ_PULL)
		free(r->copy);
	free_request(r);
	if (ch->shared && !rwk_list_empty(&ch->queue))
		rwk_packet_stir(
			ch); /* it may wait for room among the frames, and its initiator's packets are not its own */
	if (kind == RWK_REQ_SEND)
		send_over(ch, op, status);
	else if (kind == RWK_REQ_OP || kind == RWK_REQ_STATUS)
		rwk_packet_part_done(ch, op, status);
}

/** The payload of a long message that runs is copied, and its op no longer needed. False: out of memory. */
static bool copy_message(struct rwk_request *r)
{
	size_t head = r->iov[0].iov_len, len = r->wr.length - head;

	r->copy = malloc(len);
	if (!r->copy)
		return false;
	rwk_iov_gather(r->op->iov, r->op->iov_count, 0, r->copy, len);
	r->iov[1] = (struct iovec){r->copy, len};
	r->wr.iov_count = 2;
	return true;
}

/**
 * A message that has begun cannot be taken out of the stream: the rest of it is sent from a copy, and its op ends.
 * False: it is no message, or there is no memory.
 */
static bool go_on_from_copy(struct rwk_request *r, int status)
{
	struct rwk_op *op = r->op;

	if (r->kind != RWK_REQ_SEND || !copy_message(r))
		return false;
	r->ch->copied += (uint32_t)op->length;
	ends(r);
	r->kind = RWK_REQ_COPY;
	r->op = NULL;
	send_over(r->ch, op, status);
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

bool rwk_packet_relieve_lone(struct rwk_port *port)
{
	struct rwk_request *r = port->lone;

	port->lone = NULL;
	end_reading(r->ch);
	return go_on_from_copy(r, 0);
}

bool rwk_packet_detach(struct rwk_packet_channel *ch)
{
	end_reading(ch);
	rwk_packet_sends_unasked(ch);
	for (struct rwk_list *l = ch->requests.next; l != &ch->requests; l = l->next) {
		struct rwk_request *r = rwk_container_of(l, struct rwk_request, all);

		if (r->kind != RWK_REQ_FRAME && r->kind != RWK_REQ_COPY && !go_on_from_copy(r, -ECANCELED))
			return false;
	}
	return rwk_list_empty(&ch->asked) && !ch->pulls;
}

/**
 * What an orphan still has to send: a message's own bytes, since the peer may yet take it as whole; of a Write, whose
 * end nobody will tell the peer, zeros. And where a Read's data goes, which nobody wants any more. False: out of
 * memory.
 */
static bool keep_bytes(struct rwk_request *r)
{
	if (r->kind == RWK_REQ_FRAME || r->kind == RWK_REQ_COPY || r->copy)
		return true;
	if (r->kind == RWK_REQ_SEND)
		return copy_message(r);
	r->copy = calloc(1, r->wr.length + 1);
	if (!r->copy)
		return false;
	r->iov[0] = (struct iovec){r->copy, r->wr.length};
	r->wr.iov_count = 1;
	return true;
}

static void orphan(struct rwk_request *r, int status)
{
	struct rwk_packet_channel *ch = r->ch;
	struct rwk_packet_initiator *by = ch->by;
	enum rwk_request_kind kind = r->kind;
	struct rwk_op *op = r->op;

	if (!keep_bytes(r)) {
		r->wr.iov_count = 0; /* it goes nowhere any more: */
		by->failed = true;
	}
	ends(r);
	r->kind = RWK_REQ_ORPHAN;
	rwk_list_remove(&r->all);
	if (kind == RWK_REQ_PULL)
		rwk_packet_pull_part(r, status);
	r->ch = NULL;
	if (kind == RWK_REQ_SEND)
		op->done(op, status);
	else if (kind == RWK_REQ_OP || kind == RWK_REQ_STATUS)
		rwk_packet_part_done(ch, op, status);
}

void rwk_packet_release(struct rwk_packet_channel *ch, int status)
{
	while (!rwk_list_empty(&ch->requests)) {
		struct rwk_request *r = rwk_container_of(ch->requests.next, struct rwk_request, all);

		if (!rwk_rc_withdraw(ch->by->rc, &r->wr))
			rwk_packet_done(NULL, &r->wr, status);
		else
			orphan(r, status);
	}
	if (ch->by->failed && ch->by->rc)
		rwk_rc_fail(ch->by->rc, -ENOMEM);
}

void rwk_packet_take_ack(struct rwk_packet_channel *ch)
{
	struct rwk_rc *rc = rwk_packet_requester(ch);

	if (!ch->ack_came || !rc) /* a peer on UC has no business to send one */
		return;
	ch->ack_came = false;
	rwk_rc_acked(rc, ch->ack, rwk_packet_now(ch->port));
}

int rwk_packet_pump(struct rwk_packet_channel *ch)
{
	rwk_time now = rwk_packet_now(ch->port);
	int n = 0;

	if (ch->state == RWK_CH_OPEN) {
		while (!rwk_list_empty(&ch->queue)) {
			struct rwk_op *op = rwk_container_of(ch->queue.next, struct rwk_op, link);

			if (!(is_short(ch, op) ? start_short(ch, op) : start_first(ch, op)))
				break;
		}
		if (ch->frame)
			close_frame(ch);
	}
	if (ch->rc) {
		rwk_packet_take_ack(ch);
		n = rwk_rc_pump(ch->rc, now);
		rwk_packet_deadline(ch, rwk_rc_next(ch->rc));
	} else if (ch->shared) {
		n = rwk_packet_initiator_pump(ch->by);
	} else if (ch->uc) {
		n = rwk_uc_pump(ch->uc);
		if (!rwk_uc_idle(ch->uc))
			rwk_packet_deadline(ch, now + 50000); /* the stream is full: look again */
		else if (!rwk_list_empty(&ch->queue))
			rwk_packet_stir(ch); /* it waited for frames, and no acknowledgement will wake it */
	}
	return n;
}

/** The ICRC of what goes that way begins like this; lengths repeat. */
static uint32_t begun(struct rwk_packet_path *path, struct rwk_link *l, size_t len)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];

	if (path->begun_len != len) {
		path->begun_len = (uint32_t)len;
		path->begun = rwk_icrc_begin(pseudo, rwk_link_pseudo(l, &path->to, true, len, 0, pseudo));
	}
	return path->begun;
}

/** The link copies it anyway, or takes it at once: headers, payload, pad and ICRC in one piece. */
static void join(
	uint8_t *packet, size_t header_len, const struct iovec *payload, int count, size_t covered, uint32_t crc)
{
	size_t len = rwk_iov_gather(payload, (size_t)count, 0, packet + header_len, covered - header_len);

	memset(packet + header_len + len, 0, covered - header_len - len);
	crc = rwk_icrc_bytes(crc, packet, covered);
	memcpy(packet + covered, &crc, RWK_WIRE_ICRC);
}

/** The packet is with the link, which says so, or why not. */
static int handed_over(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct iovec *iov, int count, int rc)
{
	if (!rc)
		rwk_packet_sent(port, path->way, &path->to, iov, count);
	return rc;
}

int rwk_packet_put(struct rwk_port *port, struct rwk_packet_path *path, const struct rwk_wire *w,
	const struct iovec *payload, int count)
{
	struct rwk_link *l = port->link[path->way];
	bool hastens = port->hurry && l->ops->hasten && !path->cut;
	struct iovec iov[RWK_MACHINE_IOV + 2];
	uint8_t header[JOINED_MAX], trailer[3 + RWK_WIRE_ICRC] = {0};
	size_t len = rwk_iov_length(payload, (size_t)count), header_len = rwk_wire_pack(w, len, header);
	unsigned pad = -len & 3;
	size_t covered = header_len + len + pad, size = covered + RWK_WIRE_ICRC;
	uint32_t crc = begun(path, l, size);

	if (size <= (hastens ? JOINED_MAX : RWK_LINK_COPIED)) {
		join(header, header_len, payload, count, covered, crc);
		iov[0] = (struct iovec){header, size};
		if (hastens && !l->ops->hasten(l, &path->to, header, size))
			return handed_over(port, path, iov, 1, 0);
		if (size <= RWK_LINK_COPIED)
			return handed_over(port, path, iov, 1, l->ops->send(l, &path->to, iov, 1));
	}
	crc = rwk_icrc_packet(crc, header, header_len, payload, count, pad);
	memcpy(trailer + pad, &crc, RWK_WIRE_ICRC);
	iov[0] = (struct iovec){header, header_len};
	for (int i = 0; i < count; i++)
		iov[i + 1] = payload[i];
	iov[count + 1] = (struct iovec){trailer, pad + RWK_WIRE_ICRC};
	if (rwk_unlikely(path->cut && covered > path->cut + RWK_PACKET_PROBED))
		return rwk_packet_put_pieces(port, path, iov, count + 2, size);
	return handed_over(port, path, iov, count + 2, l->ops->send(l, &path->to, iov, count + 2));
}

int rwk_packet_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct rwk_packet_channel *ch = user;

	return rwk_packet_put(ch->port, &ch->path, w, payload, count);
}
