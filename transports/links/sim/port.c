/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports of the simulated service: how channels come to be and end. Both sides may greet at once: a greeting that finds
 * our own under way is as good as its answer. A channel to a peer that has left and come back is made when the old one
 * has ended, not before, so that nothing that the old one still carries is lost.
 */
#include "links/sim/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct channel *rwk_sim_channel(
	struct rwk_port *p, const struct rwk_link_address *to, const struct rwk_address *address)
{
	struct channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->pub.transport = &rwk_sim_transport;
	ch->pub.port = p;
	ch->pub.send_max = p->how.send_max;
	ch->pub.direct_min = p->how.direct_min;
	ch->to = *to;
	ch->address = *address;
	ch->id = (uint64_t)rwk_sim_number(p->net) << 32 | ++p->last_id;
	ch->timeout = p->how.timeout;
	rwk_list_init(&ch->records);
	rwk_list_init(&ch->waiting);
	for (unsigned i = 0; i < LANES; i++)
		rwk_list_init(&ch->lanes[i]);
	rwk_list_append(&p->channels, &ch->link);
	return ch;
}

void rwk_sim_free_channel(struct channel *ch)
{
	struct rwk_list *l, *next;

	while ((l = ch->records.next) != &ch->records)
		rwk_sim_drop(ch, rwk_container_of(l, struct record, all));
	for (unsigned i = 0; i < RWK_SIM_WINDOW_MAX; i++)
		free(ch->held[i]);
	for (l = ch->pub.port->regions.next; l != &ch->pub.port->regions; l = next) {
		struct region *r = rwk_container_of(l, struct region, link);

		next = l->next;
		if (r->channel == ch)
			rwk_sim_free_region(ch->pub.port, r);
	}
	rwk_list_remove(&ch->link);
	free(ch);
}

/*
 * Ends.
 */

/* A record that still reads a client's memory; NULL if none does. */
static struct record *find_posted(struct channel *ch)
{
	for (struct rwk_list *l = ch->records.next; l != &ch->records; l = l->next) {
		struct record *r = rwk_container_of(l, struct record, all);

		if (r->op)
			return r;
	}
	return NULL;
}

/* Gives every op and place back with `err`; what they would still have sent is hollow from then on. */
static void give_back(struct channel *ch, int err)
{
	const struct rwk_client *client = ch->pub.port->client;
	struct record *r;
	struct rwk_list *l;

	while ((r = find_posted(ch))) {
		struct rwk_op *op = r->op;

		r->op = NULL;
		r->hollow = true;
		op->done(op, err);
	}
	while ((l = rwk_list_pop(&ch->waiting))) {
		struct rwk_op *op = rwk_container_of(l, struct rwk_op, link);

		r = (struct record *)(uintptr_t)op->service[1];
		if (r) {
			r->asked = NULL;
			r->hollow = true;
		}
		op->done(op, err);
	}
	for (unsigned i = 0; i < LANES; i++) {
		struct rwk_place *place = ch->inflow[i].place;

		memset(&ch->inflow[i], 0, sizeof(ch->inflow[i]));
		if (place)
			client->end(ch->pub.port->cookie, &ch->pub, place, err);
	}
}

/* What has not begun and has no source any more never will. */
static void drop_unsendable(struct channel *ch)
{
	struct rwk_list *l, *next;

	for (l = ch->records.next; l != &ch->records; l = next) {
		struct record *r = rwk_container_of(l, struct record, all);

		next = l->next;
		if (r->from_region || r->head.kind == R_READ || r->head.kind == R_WRITE)
			r->hollow = true;
		if (r->hollow && !r->begun)
			rwk_sim_drop(ch, r);
	}
}

void rwk_sim_orphan(struct channel *ch)
{
	struct rwk_port *p = ch->pub.port;

	ch->orphan = true;
	if (ch->state != FAILED)
		give_back(ch, -ECANCELED);
	if (ch->state != OPEN || ch->failing || !rwk_sim_alive(p->sim, rwk_sim_number(p->net))) {
		rwk_sim_free_channel(ch);
		return;
	}
	drop_unsendable(ch);
	rwk_sim_enqueue(ch, LANE_MESSAGES, rwk_sim_record(R_FAREWELL, 0));
	rwk_sim_pump(ch);
	rwk_sim_timers(ch);
}

static void fail(struct channel *ch)
{
	const struct rwk_client *client = ch->pub.port->client;

	ch->state = FAILED;
	ch->pub.error = ch->failing;
	ch->timer = 0;
	give_back(ch, ch->failing);
	client->failed(ch->pub.port->cookie, &ch->pub, ch->failing);
}

static void on_gone(void *user, const struct rwk_link_address *who)
{
	struct rwk_port *p = user;

	for (struct rwk_list *l = p->channels.next; l != &p->channels; l = l->next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		if (!memcmp(&ch->to, who, sizeof(*who)) && !ch->failing && ch->state != FAILED)
			ch->failing = -ECONNRESET;
	}
}

/*
 * Handshake.
 */

void rwk_sim_greet(struct channel *ch)
{
	struct greeting g = {.from = ch->pub.port->address, .to = ch->address};

	rwk_sim_signal(ch->pub.port, &ch->to, P_CONNECT, ch->id, 0, 0, &g, sizeof(g));
}

static void opened(struct channel *ch, uint64_t peer_id, const struct rwk_address *from)
{
	struct rwk_port *p = ch->pub.port;
	bool partial = ch->address.flags_rank & RWK_ADDR_PARTIAL;

	ch->state = OPEN;
	ch->pub.answered = true;
	ch->peer_id = peer_id;
	ch->address = *from;
	ch->timer = 0;
	ch->timeout = p->how.timeout;
	if (partial && p->client->connected(p->cookie, &ch->pub, from))
		ch->failing = -ECONNRESET;
}

/* The live channel to a node; NULL if there is none. */
static struct channel *channel_to(struct rwk_port *p, const struct rwk_link_address *to)
{
	for (struct rwk_list *l = p->channels.next; l != &p->channels; l = l->next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		if (!memcmp(&ch->to, to, sizeof(*to)) && ch->state != FAILED && !ch->failing && !ch->orphan)
			return ch;
	}
	return NULL;
}

static struct channel *channel_by_id(struct rwk_port *p, uint64_t id)
{
	for (struct rwk_list *l = p->channels.next; l != &p->channels; l = l->next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		if (ch->id == id)
			return ch;
	}
	return NULL;
}

static bool meant_for(const struct rwk_port *p, const struct rwk_address *to)
{
	return to->flags_rank & RWK_ADDR_PARTIAL || to->nonce_port == p->address.nonce_port;
}

static void answer(
	struct rwk_port *p, const struct rwk_link_address *to, enum packet_type type, uint64_t from_id, uint64_t to_id)
{
	struct greeting g = {.from = p->address};

	rwk_sim_signal(p, to, type, from_id, to_id, 0, &g, sizeof(g));
}

static void on_connect(
	struct rwk_port *p, const struct rwk_link_address *from, const struct packet *in, const struct greeting *g)
{
	struct channel *ch = channel_to(p, from);

	if (p->lingering || !meant_for(p, &g->to)) {
		answer(p, from, P_REFUSE, 0, in->from_id);
		return;
	}
	if (ch && ch->state == OPEN && ch->peer_id != in->from_id)
		return; /* it asks again; by then the old one will have ended */
	if (!ch) {
		ch = rwk_sim_channel(p, from, &g->from);
		if (!ch)
			return;
		opened(ch, in->from_id, &g->from);
		if (p->client->connected(p->cookie, &ch->pub, &g->from)) {
			rwk_sim_free_channel(ch);
			answer(p, from, P_REFUSE, 0, in->from_id);
			return;
		}
	} else if (ch->state == CONNECTING) {
		opened(ch, in->from_id, &g->from);
	}
	answer(p, from, P_ACCEPT, ch->id, in->from_id);
}

static void on_answer(
	struct rwk_port *p, const struct rwk_link_address *from, const struct packet *in, const struct greeting *g)
{
	struct channel *ch = channel_by_id(p, in->to_id);

	if (!ch || ch->orphan) {
		if (in->type == P_ACCEPT && !ch)
			answer(p, from, P_RESET, in->to_id, in->from_id);
		else if (ch && in->type == P_RESET)
			ch->failing = -ECONNRESET;
		return;
	}
	if (in->type == P_ACCEPT && ch->state == CONNECTING)
		opened(ch, in->from_id, &g->from);
	else if (in->type == P_REFUSE && ch->state == CONNECTING)
		ch->failing = -ECONNRESET;
	else if (in->type == P_RESET && ch->state == OPEN && !ch->failing)
		ch->failing = -ECONNRESET;
}

static void on_numbered(struct rwk_port *p, const struct rwk_link_address *from, const struct packet *in, size_t len)
{
	struct channel *ch = channel_by_id(p, in->to_id);
	bool late = p->how.late && rwk_sim_random(p->sim, 1000000) < p->how.late;

	if (!ch || ch->state == FAILED) {
		if (in->type == P_DATA)
			answer(p, from, P_RESET, in->to_id, in->from_id);
		return;
	}
	if (ch->state != OPEN || ch->failing || ch->peer_id != in->from_id)
		return;
	if (!late)
		rwk_sim_acked(ch, in->ack);
	if (in->type == P_DATA)
		rwk_sim_data(ch, in, len);
	if (late)
		rwk_sim_acked(ch, in->ack);
}

void rwk_sim_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_port *p = user;
	const struct packet *in = bytes;

	if (!rwk_sim_intact(bytes, len))
		return;
	len -= sizeof(*in);
	switch (in->type) {
	case P_CONNECT:
		on_connect(p, from, in, (const struct greeting *)(in + 1));
		break;
	case P_ACCEPT:
	case P_REFUSE:
	case P_RESET:
		on_answer(p, from, in, (const struct greeting *)(in + 1));
		break;
	default:
		on_numbered(p, from, in, len);
	}
}

/*
 * Progress.
 */

static bool orphan_finished(const struct channel *ch)
{
	return ch->orphan && (ch->failing || rwk_list_empty(&ch->records));
}

int rwk_sim_port_progress(struct rwk_port *p)
{
	struct rwk_list *l, *next;
	int done;

	breach_if(p->in_progress, "called from an upcall");
	p->in_progress = true;
	if (p->alarm && p->alarm <= rwk_sim_now(p->sim))
		p->alarm = 0;
	done = p->net->ops->progress(p->net, 64);
	for (l = p->channels.next; l != &p->channels; l = l->next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		if (!ch->failing)
			done += rwk_sim_pump(ch);
		done += rwk_sim_timers(ch);
	}
	for (l = p->channels.next; l != &p->channels; l = next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		next = l->next;
		if (orphan_finished(ch)) {
			rwk_sim_free_channel(ch);
		} else if (ch->failing && ch->state != FAILED) {
			fail(ch);
			done++;
		}
	}
	p->in_progress = false;
	return done;
}

void rwk_sim_free_port(struct rwk_port *p)
{
	while (!rwk_list_empty(&p->channels))
		rwk_sim_free_channel(rwk_container_of(p->channels.next, struct channel, link));
	p->net->ops->close(p->net);
	if (p->event_fd >= 0)
		close(p->event_fd);
	free(p);
}

static void on_wake(void *user)
{
	struct rwk_port *p = user;
	uint64_t one = 1;

	if (p->lingering) {
		rwk_sim_port_progress(p);
		if (rwk_list_empty(&p->channels))
			rwk_sim_free_port(p);
	} else if (p->armed) {
		p->armed = false;
		if (write(p->event_fd, &one, sizeof(one)) < 0)
			abort(); /* an eventfd written once a wake cannot be full */
	}
}

/* The network ends before its last lingering ports. */
static void on_end(void *user)
{
	struct rwk_port *p = user;

	breach_if(!p->lingering, "the network is closed before a port on it");
	rwk_sim_free_port(p);
}

const struct rwk_sim_hooks rwk_sim_port_hooks = {.gone = on_gone, .wake = on_wake, .end = on_end};
