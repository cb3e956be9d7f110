/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of a channel: numbers, windows, acknowledgements, timers. The sender keeps for each unacknowledged packet
 * where its bytes come from, not the bytes: until the peer has them they are the client's memory, and a client that
 * writes to it too early is found out by the receiver. A packet ahead of the one expected is kept until the gap is
 * filled; only the oldest is sent again.
 */
#include "links/sim/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_MAX 9216

struct record *rwk_sim_record(enum record_kind kind, size_t len)
{
	struct record *r = calloc(1, sizeof(*r) + len);

	if (!r)
		abort();
	r->head.kind = kind;
	r->own = (struct iovec){r->bytes, len};
	r->iov = &r->own;
	r->iov_count = 1;
	r->head.length = len;
	rwk_list_init(&r->all);
	rwk_list_init(&r->lane);
	return r;
}

void rwk_sim_enqueue(struct channel *ch, unsigned lane, struct record *r)
{
	rwk_list_append(&ch->records, &r->all);
	rwk_list_append(&ch->lanes[lane], &r->lane);
	if (r->counts)
		ch->copies++;
}

void rwk_sim_drop(struct channel *ch, struct record *r)
{
	rwk_list_remove(&r->all);
	rwk_list_remove(&r->lane);
	if (r->counts)
		ch->copies--;
	if (r->asked)
		r->asked->service[1] = 0;
	free(r);
}

/* FNV over words, then over the bytes left. */
static uint64_t checksum(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;
	uint64_t h = 0xcbf29ce484222325u ^ len, w;

	for (; len >= sizeof(w); b += sizeof(w), len -= sizeof(w)) {
		memcpy(&w, b, sizeof(w));
		h = (h ^ w) * 0x100000001b3u;
		h ^= h >> 32;
	}
	for (; len; b++, len--)
		h = (h ^ *b) * 0x100000001b3u;
	return h;
}

bool rwk_sim_intact(const void *bytes, size_t len)
{
	struct packet p;

	if (len < sizeof(p))
		return false;
	memcpy(&p, bytes, sizeof(p));
	return p.check == checksum((const uint8_t *)bytes + sizeof(p.check), len - sizeof(p.check));
}

/* Fills in the check, and sends. */
static int put_packet(struct rwk_port *p, const struct rwk_link_address *to, void *bytes, size_t len)
{
	struct iovec iov = {bytes, len};
	struct packet *head = bytes;

	head->check = checksum((uint8_t *)bytes + sizeof(head->check), len - sizeof(head->check));
	return p->net->ops->send(p->net, to, &iov, 1);
}

void rwk_sim_signal(struct rwk_port *p, const struct rwk_link_address *to, enum packet_type type, uint64_t from_id,
	uint64_t to_id, uint32_t ack, const void *body, size_t len)
{
	struct {
		struct packet head;
		uint8_t body[sizeof(struct greeting)];
	} out = {.head = {.type = type, .from_id = from_id, .to_id = to_id, .ack = ack}};

	if (len)
		memcpy(out.body, body, len);
	put_packet(p, to, &out, sizeof(out.head) + len);
}

void rwk_sim_set_alarm(struct rwk_port *p, rwk_time at)
{
	rwk_time now = rwk_sim_now(p->sim);

	if (p->alarm > now && p->alarm <= at)
		return;
	p->alarm = at;
	rwk_sim_alarm(p->net, at);
}

/* The bytes of a slot, gathered from where they are; false if they are gone. */
static bool gather(struct channel *ch, const struct slot *s, uint8_t *to)
{
	const struct record *r = s->record;
	const struct region *region;

	if (r->hollow)
		return false;
	if (!r->from_region)
		return rwk_sim_copy_out(r->iov, r->iov_count, s->at, to, s->len) == s->len;
	region = rwk_sim_region(ch, r->head.key);
	return region && rwk_sim_copy_out(region->iov, region->count, r->head.offset + s->at, to, s->len) == s->len;
}

static int transmit(struct channel *ch, uint32_t number)
{
	struct slot *s = &ch->slots[number % RWK_SIM_WINDOW_MAX];
	uint64_t words[PACKET_MAX / sizeof(uint64_t)];
	uint8_t *out = (uint8_t *)words;
	size_t at = sizeof(struct packet);
	struct packet p = {.type = P_DATA, .flags = s->flags, .lane = s->lane, .number = number, .ack = ch->expected,
		.from_id = ch->id, .to_id = ch->peer_id};
	int rc;

	if (s->flags & P_FIRST) {
		memcpy(out + at, &s->record->head, sizeof(struct head));
		at += sizeof(struct head);
	}
	if (s->len && gather(ch, s, out + at))
		at += s->len;
	else if (s->len)
		p.flags |= P_VOID;
	memcpy(out, &p, sizeof(p));
	rc = put_packet(ch->pub.port, &ch->to, out, at);
	if (!rc)
		ch->ack_due = false;
	return rc;
}

/* The record whose turn it is, from the lanes by turns; NULL if there is nothing to send. */
static struct record *next_record(struct channel *ch, unsigned *lane)
{
	for (unsigned i = 0; i < LANES; i++) {
		*lane = (ch->turn + i) % LANES;
		if (!rwk_list_empty(&ch->lanes[*lane])) {
			ch->turn = *lane + 1;
			return rwk_container_of(ch->lanes[*lane].next, struct record, lane);
		}
	}
	return NULL;
}

/* The next piece of a record, as a slot. */
static struct slot cut(struct channel *ch, struct record *r, unsigned lane)
{
	size_t room = ch->pub.port->net->ops->mtu(ch->pub.port->net, &ch->to) - sizeof(struct packet);
	uint64_t left = r->head.length - r->at;
	struct slot s = {.record = r, .at = r->at, .lane = (uint8_t)lane};

	if (!r->begun) {
		s.flags |= P_FIRST;
		room -= sizeof(struct head);
	}
	if (r->hollow) {
		s.flags |= P_VOID | P_LAST;
		return s;
	}
	s.len = (uint32_t)(left < room ? left : room);
	if (s.len == left)
		s.flags |= P_LAST;
	return s;
}

int rwk_sim_pump(struct channel *ch)
{
	int sent = 0;

	while (ch->state == OPEN && ch->next - ch->unacked < ch->pub.port->how.window) {
		unsigned lane;
		struct record *r = next_record(ch, &lane);
		struct slot s;

		if (!r)
			break;
		s = cut(ch, r, lane);
		ch->slots[ch->next % RWK_SIM_WINDOW_MAX] = s;
		if (transmit(ch, ch->next) == -EAGAIN) {
			rwk_sim_set_alarm(ch->pub.port, rwk_sim_now(ch->pub.port->sim) + 1000);
			break;
		}
		if (ch->unacked == ch->next) {
			ch->timeout = ch->pub.port->how.timeout;
			ch->timer = rwk_sim_now(ch->pub.port->sim) + ch->timeout;
			rwk_sim_set_alarm(ch->pub.port, ch->timer);
		}
		ch->next++;
		r->begun = true;
		r->packets++;
		r->at += s.len;
		if (s.flags & P_LAST)
			rwk_list_remove(&r->lane);
		sent++;
	}
	return sent;
}

static void finish_record(struct channel *ch, struct record *r)
{
	struct rwk_op *op = r->op;

	rwk_sim_drop(ch, r);
	if (op)
		op->done(op, 0);
}

void rwk_sim_acked(struct channel *ch, uint32_t ack)
{
	if ((int32_t)(ack - ch->unacked) <= 0 || (int32_t)(ack - ch->next) > 0)
		return;
	ch->timeout = ch->pub.port->how.timeout;
	ch->timer = rwk_sim_now(ch->pub.port->sim) + ch->timeout;
	while (ch->unacked != ack) {
		struct record *r = ch->slots[ch->unacked++ % RWK_SIM_WINDOW_MAX].record;

		if (!--r->packets && rwk_list_empty(&r->lane))
			finish_record(ch, r);
	}
	if (ch->unacked == ch->next)
		ch->timer = 0;
}

int rwk_sim_timers(struct channel *ch)
{
	struct rwk_port *p = ch->pub.port;
	rwk_time now = rwk_sim_now(p->sim);
	int done = 0;

	if (ch->timer && now >= ch->timer) {
		if (ch->state == CONNECTING)
			rwk_sim_greet(ch);
		else
			transmit(ch, ch->unacked);
		if (ch->timeout < 64 * p->how.timeout)
			ch->timeout *= 2;
		ch->timer = now + ch->timeout;
		done++;
	}
	if (ch->ack_due && ch->state == OPEN) {
		rwk_sim_signal(p, &ch->to, P_ACK, ch->id, ch->peer_id, ch->expected, NULL, 0);
		ch->ack_due = false;
	}
	if (ch->timer)
		rwk_sim_set_alarm(p, ch->timer);
	return done;
}

static void hold(struct channel *ch, const struct packet *p, size_t len)
{
	unsigned i = p->number % RWK_SIM_WINDOW_MAX;

	if (ch->held[i])
		return;
	ch->held[i] = malloc(sizeof(*p) + len);
	if (!ch->held[i])
		abort();
	memcpy(ch->held[i], p, sizeof(*p) + len);
	ch->held_len[i] = (uint32_t)len;
}

void rwk_sim_data(struct channel *ch, const struct packet *p, size_t len)
{
	uint32_t ahead = p->number - ch->expected;

	ch->ack_due = true;
	if (ahead >= RWK_SIM_WINDOW_MAX)
		return; /* seen before */
	if (ahead) {
		hold(ch, p, len);
		return;
	}
	ch->expected++;
	rwk_sim_arrived(ch, p, len);
	for (;;) {
		unsigned i = ch->expected % RWK_SIM_WINDOW_MAX;
		struct packet *next = ch->held[i];

		if (!next || ch->failing)
			break;
		ch->held[i] = NULL;
		ch->expected++;
		rwk_sim_arrived(ch, next, ch->held_len[i]);
		free(next);
	}
}
