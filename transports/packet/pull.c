/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A read by asking: the reader exposes where the data is to go and sends PULL; the peer writes it there by RDMA Write
 * and answers PULLED. UC has no Read, and of SRC we use none; on RC it is the other of two ways
 * (FI_ROPEWALK_RENDEZVOUS).
 *
 *   asker   rwk_packet_channel.asked: ops, by id, until PULLED
 *   asked   rwk_packet_channel.pulls: one rwk_pulling for each, until it is answered
 *
 * The answer comes behind the Writes: where it is, they are. A short read is answered at once, therefore, by SRC, where
 * acknowledgements are dear; by RC, which answers short ones by its machine, and a long one, when they have been
 * acknowledged. The asker's next word may be that the memory is no longer needed, and what is not acknowledged then has
 * to be copied.
 *
 * UC has no answer to a Write either, and SRC's says only that the peer's node has it: WROTE asks for one behind it,
 * and PULLED says whether the memory could be reached. So it is asked on UC whether a Send has come.
 *
 * Who has said good-bye does not answer: nothing goes behind that, which is the answer.
 */
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/pull.h"
#include "packet/regions.h"
#include "packet/request.h"

#include "base/iov.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OP_KEY = 3, OP_ID };

/** What PULL carries. */
struct rwk_pull {
	uint64_t id;     /* the asker's */
	uint64_t offset; /* into the region with key `from` */
	uint64_t length;
	uint32_t from, to; /* keys: of the region to read at the peer asked, and to write at the asker */
};

struct rwk_pulling {
	struct rwk_pulling *next;
	struct rwk_pull ask;
	uint32_t parts; /* that it waits for: being written, and one for ourselves until all are posted */
	int status;
};

static void append(struct rwk_packet_channel *ch, struct rwk_pulling *p)
{
	struct rwk_pulling **at = &ch->pulls;

	while (*at)
		at = &(*at)->next;
	p->next = NULL;
	*at = p;
}

int rwk_packet_pull(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	struct rwk_pull ask = {.id = ++ch->port->last_pull, .offset = op->offset, .length = op->length};
	const struct rwk_envelope env = {.kind = RWK_KIND_PULL};
	struct iovec iov[RWK_KEYS_IOV];
	size_t len = op->length;
	unsigned n = rwk_iov_slice(op->iov, op->iov_count, 0, &len, iov, RWK_KEYS_IOV);

	if (rwk_packet_region_add(ch, iov, n, RWK_REACH_WRITE, &ask.to))
		return -ENOMEM;
	ask.from = (uint32_t)op->rkey.word[0];
	if (!rwk_packet_control(ch, &env, &ask, sizeof(ask))) {
		rwk_packet_region_remove(ch, ask.to);
		return -ENOMEM;
	}
	op->service[RWK_WORD_STATE] = RWK_OP_RUNNING;
	op->service[OP_KEY] = ask.to;
	op->service[OP_ID] = ask.id;
	rwk_list_append(&ch->asked, &op->link);
	return 0;
}

/** A write or send that runs has the answer as one of its parts; a read is nothing else. */
static void asked_is_over(struct rwk_packet_channel *ch, struct rwk_op *op, int status)
{
	if (op->type != RWK_OP_READ) {
		rwk_packet_part_done(ch, op, status);
		return;
	}
	rwk_packet_region_remove(ch, (uint32_t)op->service[OP_KEY]);
	op->done(op, status);
}

int rwk_packet_push(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	const struct rwk_envelope env = {.kind = RWK_KIND_WROTE, .tag = ++ch->port->last_pull};
	struct rwk_request *first = rwk_packet_request(ch, RWK_REQ_OP);

	if (!first)
		return -ENOMEM; /* before it is asked about, which would be again with each try */
	rwk_packet_request_free(first);
	/* The record is in a frame that is sent behind what is posted now. */
	if (!rwk_packet_control(ch, &env, NULL, 0) || rwk_packet_rdma(ch, op))
		return -ENOMEM;
	rwk_packet_part_add(op);
	op->service[OP_ID] = env.tag;
	rwk_list_append(&ch->asked, &op->link);
	return 0;
}

bool rwk_packet_ask_behind(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	const struct rwk_envelope env = {.kind = RWK_KIND_WROTE, .tag = ++ch->port->last_pull};

	if (!rwk_packet_control(ch, &env, NULL, 0))
		return false;
	rwk_packet_part_add(op);
	op->service[OP_ID] = env.tag;
	rwk_list_append(&ch->asked, &op->link);
	return true;
}

void rwk_packet_push_asked(struct rwk_packet_channel *ch, const struct rwk_envelope *env)
{
	struct rwk_pulling *p;

	if (rwk_packet_is_left(ch->port))
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		rwk_packet_breach(ch, "no memory for its request");
		return;
	}
	p->ask.id = env->tag;
	p->status = ch->denied;
	ch->denied = 0;
	append(ch, p);
	rwk_packet_stir(ch);
}

void rwk_packet_pull_answered(struct rwk_packet_channel *ch, const struct rwk_envelope *env)
{
	for (struct rwk_list *l = ch->asked.next; l != &ch->asked; l = l->next) {
		struct rwk_op *op = rwk_container_of(l, struct rwk_op, link);

		if (op->service[OP_ID] != env->tag)
			continue;
		rwk_list_remove(&op->link);
		ch->has_taken = true;
		asked_is_over(ch, op, -(int)env->small);
		return;
	}
	rwk_info("an answer to a read that nobody waits for was dropped");
}

/** It waits for room like everything else; without memory for it the channel cannot go on. */
static bool answer(struct rwk_packet_channel *ch, const struct rwk_pulling *p)
{
	const struct rwk_envelope env = {.kind = RWK_KIND_PULLED, .small = (uint16_t)-p->status, .tag = p->ask.id};

	return rwk_packet_control(ch, &env, NULL, 0);
}

void rwk_packet_pulls_answer(struct rwk_packet_channel *ch)
{
	struct rwk_pulling **at = &ch->pulls, *p;

	while ((p = *at)) {
		if (p->parts || !answer(ch, p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
}

static void part_over(struct rwk_packet_channel *ch, struct rwk_pulling *p, int status)
{
	if (status && !p->status)
		p->status = status;
	if (!--p->parts)
		rwk_packet_stir(ch); /* which answers */
}

void rwk_packet_pull_part(struct rwk_request *r, int status)
{
	if (r->pulling)
		part_over(r->ch, r->pulling, status);
}

/** Behind the Writes, whoever acknowledges them when: SRC, of no more than may have to be copied. */
static bool is_answered_at_once(const struct rwk_packet_channel *ch, const struct rwk_pulling *p)
{
	return ch->shared && p->ask.length <= RWK_SEND_MAX_LESS;
}

/** A message that waits does not: its region is to be read only. One that may be written, too, is the program's. */
static bool may_change(struct rwk_packet_channel *ch, const struct rwk_pulling *p)
{
	return !rwk_packet_region_check(ch, p->ask.from, 0, 0, RWK_REACH_WRITE);
}

/** UC's machine knows none of them: it is acknowledged by nobody, and has no ICRC on a stream. */
static uint8_t flags_of(struct rwk_packet_channel *ch, const struct rwk_pulling *p)
{
	if (ch->uc)
		return 0;
	return (is_answered_at_once(ch, p) ? 0 : RWK_WR_PROMPT) | (may_change(ch, p) ? RWK_WR_CHANGING : 0);
}

/** Posts one part; bytes, or negative errno. */
static ssize_t post_part(struct rwk_packet_channel *ch, struct rwk_pulling *p, size_t at)
{
	size_t most = rwk_packet_part_max(ch), len = p->ask.length - at < most ? p->ask.length - at : most;
	struct rwk_request *r;
	int n, rc;

	r = rwk_packet_request(ch, RWK_REQ_PULL);
	if (!r)
		return -ENOMEM;
	n = rwk_packet_region_find(ch, p->ask.from, p->ask.offset + at, len, RWK_REACH_READ, r->iov, RWK_KEYS_IOV);
	r->wr.type = RWK_WR_WRITE;
	r->wr.flags = flags_of(ch, p);
	r->wr.iov_count = (uint16_t)n;
	r->wr.length = len;
	r->wr.remote = at;
	r->wr.key = p->ask.to;
	r->pulling = is_answered_at_once(ch, p) ? NULL : p;
	r->pulled = p->ask.from;
	rc = n < 0 ? n : rwk_packet_start(r);
	if (rc) {
		rwk_pool_put(&ch->port->requests, r);
		return rc;
	}
	return (ssize_t)len;
}

void rwk_packet_pull_asked(struct rwk_packet_channel *ch, const void *bytes, size_t len)
{
	struct rwk_pulling *p;
	ssize_t n = 0;

	if (rwk_packet_is_left(ch->port))
		return;
	p = len == sizeof(p->ask) ? malloc(sizeof(*p)) : NULL;
	if (!p) {
		rwk_packet_breach(
			ch, len == sizeof(p->ask) ? "no memory for its request" : "a request of a wrong size");
		return;
	}
	memcpy(&p->ask, bytes, sizeof(p->ask));
	p->parts = 1;
	p->status = 0;
	append(ch, p);
	for (size_t at = 0; at < p->ask.length; at += (size_t)n) {
		n = post_part(ch, p, at);
		if (n < 0)
			break;
		p->parts += !is_answered_at_once(ch, p);
	}
	part_over(ch, p, n < 0 ? (int)n : 0);
}

void rwk_packet_pulls_conceal(struct rwk_packet_channel *ch, uint32_t key)
{
	for (struct rwk_list *l = ch->requests.next, *next; l != &ch->requests; l = next) {
		struct rwk_request *r = rwk_container_of(l, struct rwk_request, all);

		next = l->next;
		if (r->kind != RWK_REQ_PULL || r->pulled != key || rwk_packet_take_out(r, -EACCES))
			continue;
		if (rwk_packet_keep_bytes(r))
			continue;
		r->wr.iov_count = 0;
		rwk_packet_doom(ch, -ENOMEM); /* what little goes out until then is empty */
	}
}

void rwk_packet_pulls_stop(struct rwk_packet_channel *ch, int status)
{
	struct rwk_pulling *p;
	struct rwk_list *l;

	while ((p = ch->pulls)) {
		ch->pulls = p->next;
		free(p);
	}
	while ((l = rwk_list_pop(&ch->asked))) {
		struct rwk_op *op = rwk_container_of(l, struct rwk_op, link);

		asked_is_over(ch, op, status);
	}
}
