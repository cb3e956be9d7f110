/* SPDX-License-Identifier: BSD-3-Clause */
/* What a record does where it arrives: messages and their places, requests and their answers, regions. */
#include "links/sim/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t copy(const struct iovec *iov, uint32_t count, uint64_t at, void *out, const void *in, size_t len)
{
	size_t done = 0;

	for (uint32_t i = 0; i < count && done < len; i++) {
		size_t n = iov[i].iov_len;

		if (at >= n) {
			at -= n;
			continue;
		}
		n -= at;
		if (n > len - done)
			n = len - done;
		if (out)
			memcpy((char *)out + done, (char *)iov[i].iov_base + at, n);
		else
			memcpy((char *)iov[i].iov_base + at, (const char *)in + done, n);
		done += n;
		at = 0;
	}
	return done;
}

size_t rwk_sim_copy_out(const struct iovec *iov, uint32_t count, uint64_t at, void *to, size_t len)
{
	return copy(iov, count, at, to, NULL, len);
}

size_t rwk_sim_copy_in(const struct iovec *iov, uint32_t count, uint64_t at, const void *from, size_t len)
{
	return copy(iov, count, at, NULL, from, len);
}

struct region *rwk_sim_region(struct channel *ch, uint64_t key)
{
	struct rwk_port *p = ch->pub.port;

	for (struct rwk_list *l = p->regions.next; l != &p->regions; l = l->next) {
		struct region *r = rwk_container_of(l, struct region, link);

		if (r->key == key)
			return r->channel == ch ? r : NULL;
	}
	return NULL;
}

void rwk_sim_free_region(struct rwk_port *p, struct region *r)
{
	rwk_list_remove(&r->link);
	p->exposed--;
	free(r);
}

/*
 * May the peer do what the head asks for? 0, or -EACCES (no such region for this peer, or not for that), or -EINVAL
 * (out of range).
 */
static int permitted(struct channel *ch, const struct head *h, bool write)
{
	struct region *r = rwk_sim_region(ch, h->key);

	if (!r || !(r->access & (write ? RWK_EXPOSE_WRITE : RWK_EXPOSE_READ)))
		return -EACCES;
	return h->offset <= r->length && h->amount <= r->length - h->offset ? 0 : -EINVAL;
}

static void reply(struct channel *ch, enum record_kind kind, const struct head *request, int status)
{
	struct record *r = rwk_sim_record(kind, 0);

	r->head.id = request->id;
	r->head.status = status;
	if (kind == R_READ_REPLY && !status) {
		r->head.key = request->key;
		r->head.offset = request->offset;
		r->head.length = request->amount;
		r->from_region = true;
	}
	rwk_sim_enqueue(ch, LANE_REPLIES, r);
}

/* The op that waits for the reply with this number; NULL if it is gone. */
static struct rwk_op *find_waiting(struct channel *ch, uint64_t id)
{
	for (struct rwk_list *l = ch->waiting.next; l != &ch->waiting; l = l->next) {
		struct rwk_op *op = rwk_container_of(l, struct rwk_op, link);

		if (op->service[0] == id)
			return op;
	}
	return NULL;
}

static void start(struct channel *ch, struct inflow *f)
{
	const struct rwk_client *client = ch->pub.port->client;

	switch (f->head.kind) {
	case R_MESSAGE:
		if (f->skip)
			break;
		f->place = client->begin(ch->pub.port->cookie, &ch->pub, &f->head.env, f->head.length);
		breach_if(!f->place, "begin returned no place");
		f->place->at = 0;
		break;
	case R_READ_REPLY:
	case R_WRITE_REPLY:
		f->op = find_waiting(ch, f->head.id);
		f->status = f->head.status;
		break;
	case R_WRITE:
		f->status = permitted(ch, &f->head, true);
		break;
	default:
		break;
	}
}

static void piece(struct channel *ch, struct inflow *f, const void *bytes, size_t len)
{
	struct region *r;

	if (f->place) {
		f->place->at += rwk_sim_copy_in(f->place->iov, f->place->iov_count, f->at, bytes, len);
	} else if (f->op && !f->status) {
		if (f->at + len > f->op->length)
			f->status = -EPROTO;
		else
			rwk_sim_copy_in(f->op->iov, f->op->iov_count, f->at, bytes, len);
	} else if (f->head.kind == R_WRITE && !f->status) {
		r = rwk_sim_region(ch, f->head.key);
		if (!r)
			f->status = -EACCES;
		else
			rwk_sim_copy_in(r->iov, r->count, f->head.offset + f->at, bytes, len);
	}
	f->at += len;
}

/*
 * A write's reply may come before the acknowledgement of its last packets; they are not to be read from the client's
 * memory again.
 */
static void end_op(struct rwk_op *op, int status)
{
	struct record *r = (struct record *)(uintptr_t)op->service[1];

	if (r) {
		r->hollow = true;
		r->asked = NULL;
	}
	rwk_list_remove(&op->link);
	op->done(op, status);
}

static void finish(struct channel *ch, struct inflow *f)
{
	const struct rwk_client *client = ch->pub.port->client;
	struct inflow was = *f;

	memset(f, 0, sizeof(*f));
	switch (was.head.kind) {
	case R_MESSAGE:
		if (was.place)
			client->end(ch->pub.port->cookie, &ch->pub, was.place, was.status);
		break;
	case R_READ:
		reply(ch, R_READ_REPLY, &was.head, permitted(ch, &was.head, false));
		break;
	case R_WRITE:
		reply(ch, R_WRITE_REPLY, &was.head, was.status);
		break;
	case R_READ_REPLY:
	case R_WRITE_REPLY:
		if (was.op)
			end_op(was.op, was.status);
		break;
	case R_FAREWELL:
		if (!ch->failing)
			ch->failing = -ECONNRESET;
		break;
	}
}

/* A message in one packet needs no place. */
static void whole_message(struct channel *ch, struct inflow *f, const void *bytes, size_t len)
{
	struct head h = f->head;

	memset(f, 0, sizeof(*f));
	ch->pub.port->client->message(ch->pub.port->cookie, &ch->pub, &h.env, bytes, len);
}

void rwk_sim_arrived(struct channel *ch, const struct packet *p, size_t len)
{
	struct inflow *f = &ch->inflow[p->lane % LANES];
	const uint8_t *bytes = (const uint8_t *)(p + 1);

	if (ch->orphan)
		return;
	if (!(p->flags & P_FIRST) != f->busy || ((p->flags & P_FIRST) && len < sizeof(f->head))) {
		ch->failing = -EPROTO;
		return;
	}
	if (p->flags & P_FIRST) {
		f->busy = true;
		f->skip = p->flags & P_VOID;
		memcpy(&f->head, bytes, sizeof(f->head));
		bytes += sizeof(f->head);
		len -= sizeof(f->head);
		if (f->head.kind == R_MESSAGE && (p->flags & (P_LAST | P_VOID)) == P_LAST) {
			whole_message(ch, f, bytes, len);
			return;
		}
		start(ch, f);
	}
	if (p->flags & P_VOID)
		f->status = f->head.kind == R_MESSAGE ? -ECONNRESET : -EACCES;
	else
		piece(ch, f, bytes, len);
	if (p->flags & P_LAST)
		finish(ch, f);
}
