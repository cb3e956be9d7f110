/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who works when. A rank does one thing after the other: deadlines that have passed, then by turns packets that have
 * come and a message that is to be sent. While its processor is busy it is left alone, and an alarm calls it when it is
 * not. Packets of a domain are taken by whichever rank of the node comes by; an idle one is woken for them.
 */
#include "bench/scale_internal.h"

#include "base/compiler.h"

#include <stdlib.h>

#define BACKLOG 20000u /* ns of packets before the cable, beyond which no message is begun */

static rwk_time now_of(const struct rank *r)
{
	return rwk_sim_now(r->node->job->sim);
}

void scale_work(struct rank *r)
{
	rwk_time now = now_of(r);

	r->busy = (r->busy > now ? r->busy : now) + r->node->job->attr.packet_ns;
}

uint32_t scale_rank_of_srqn(const struct node *n, uint32_t srqn)
{
	uint32_t ranks = n->job->attr.per_node;

	return srqn - SCALE_SRQN < ranks ? n->number * ranks + srqn - SCALE_SRQN : UINT32_MAX;
}

/* Notes the half's next deadline, in what keeps the earliest of its kind. */
static void set_next(struct half *h, rwk_time next, rwk_time *earliest)
{
	struct job *j = h->rank->node->job;

	j->armed -= h->next != RWK_NEVER;
	h->next = next;
	j->armed += next != RWK_NEVER;
	if (j->armed > j->result.waiting)
		j->result.waiting = j->armed;
	if (next < *earliest)
		*earliest = next;
}

static void pump(struct half *h)
{
	rwk_rc_pump(h->rc, now_of(h->rank));
	set_next(h, rwk_rc_next(h->rc), &h->rank->earliest);
}

/* A target's machine, for as long as the rank is at it. */
static struct rwk_rc *open_target(struct rank *r, struct half *h)
{
	h->rank = r;
	return scale_open(h, r->server, h->responder, false);
}

static void pump_target(struct rank *r, struct half *h)
{
	struct rwk_rc *rc = open_target(r, h);

	rwk_rc_pump(rc, now_of(r));
	set_next(h, rwk_rc_next(rc), &r->node->earliest);
}

/* It is pumped when all packets of this batch have been taken. */
static void touch(struct rank *r, struct half *h)
{
	if (h->touched)
		return;
	h->touched = true;
	r->touched[r->touched_count++] = h;
}

static void pump_touched(struct rank *r)
{
	for (uint32_t i = 0; i < r->touched_count; i++) {
		struct half *h = r->touched[i];

		h->touched = false;
		if (h->rc)
			pump(h);
		else
			pump_target(r, h);
	}
	r->touched_count = 0;
}

/* To a rank's own socket. */
static void on_own_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rank *r = user;
	const uint8_t *payload;
	struct rwk_wire w;
	struct half *h;

	(void)from;
	scale_work(r);
	if (rwk_wire_unpack(&w, bytes, len, &payload, &len) || w.qpn - SCALE_QPN >= r->half_count ||
		!r->halves[w.qpn - SCALE_QPN].rc) {
		r->node->job->result.wrong++;
		return;
	}
	h = &r->halves[w.qpn - SCALE_QPN];
	rwk_rc_packet(h->rc, &w, payload, len, now_of(r));
	if (h->acked) {
		h->acked = false;
		rwk_rc_acked(h->rc, h->head.ack, now_of(r));
	}
	touch(r, h);
}

/* To the socket of the node's domain. */
static void on_domain_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct node *n = user;
	struct rank *r = n->serving;
	const uint8_t *payload;
	struct rwk_wire w;
	struct half *h;

	(void)from;
	scale_work(r);
	if (rwk_wire_unpack(&w, bytes, len, &payload, &len) || w.qpn - SCALE_QPN >= n->job->rank_count ||
		!n->targets[w.qpn - SCALE_QPN].rank) {
		n->job->result.wrong++;
		return;
	}
	h = &n->targets[w.qpn - SCALE_QPN];
	rwk_rc_packet(open_target(r, h), &w, payload, len, now_of(r));
	touch(r, h);
}

/* Deadlines that have passed: of the rank's own halves, and of the domain's. */
static bool ring(struct rank *r)
{
	rwk_time now = now_of(r);

	if (r->earliest > now)
		return false;
	r->earliest = RWK_NEVER;
	for (uint32_t i = 0; i < r->half_count; i++) {
		struct half *h = &r->halves[i];

		if (!h->rc)
			continue;
		if (h->next <= now)
			pump(h);
		else if (h->next < r->earliest)
			r->earliest = h->next;
	}
	return true;
}

static bool ring_domain(struct rank *r)
{
	struct node *n = r->node;
	rwk_time now = now_of(r);

	if (n->earliest > now)
		return false;
	n->earliest = RWK_NEVER;
	for (uint32_t i = 0; i < n->job->rank_count; i++) {
		struct half *h = &n->targets[i];

		if (!h->rank)
			continue;
		if (h->next <= now)
			pump_target(r, h);
		else if (h->next < n->earliest)
			n->earliest = h->next;
	}
	return true;
}

/* Those that have come: to the rank's own socket, or else to the domain's. */
static bool take_packets(struct rank *r)
{
	struct rwk_link *l = rwk_sim_waiting(r->link) ? r->link : r->node->link;

	if (!l || !rwk_sim_waiting(l))
		return false;
	r->node->serving = r;
	l->ops->progress(l, (int)r->node->job->attr.batch);
	pump_touched(r);
	return true;
}

/* The rank that the next message goes to: node after node from the next one on, and on each from one's own place on. */
static uint32_t next_receiver(const struct rank *r)
{
	const struct scale_attr *a = &r->node->job->attr;
	uint32_t node = (r->node->number + 1 + r->sent / a->per_node) % a->nodes;

	return node * a->per_node + (r->number + r->sent) % a->per_node;
}

static bool has_messages(const struct rank *r)
{
	return r->sent < r->node->job->rank_count - r->node->job->attr.per_node;
}

static bool send_message(struct rank *r)
{
	struct job *j = r->node->job;
	struct message *m;
	struct half *h;
	uint32_t to;

	if (!has_messages(r) || r->node->out_free > now_of(r) + BACKLOG)
		return false;
	to = next_receiver(r);
	h = &r->halves[j->attr.src ? to / j->attr.per_node : to];
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	m->head.from = r->number;
	m->head.to = to;
	m->head.has_ack = rwk_rc_take_ack(h->rc, false, &m->head.ack);
	j->result.acks_along += m->head.has_ack;
	m->iov[0] = (struct iovec){&m->head, sizeof(m->head)};
	m->iov[1] = (struct iovec){j->pattern, j->attr.size};
	m->wr = (struct rwk_wr){.type = RWK_WR_SEND,
		.iov = m->iov,
		.iov_count = 2,
		.length = sizeof(m->head) + j->attr.size,
		.srqn = SCALE_SRQN + to % j->attr.per_node};
	r->sent++;
	if (rwk_rc_post(h->rc, &m->wr))
		abort(); /* our own request */
	pump(h);
	return true;
}

static bool do_something(struct rank *r)
{
	if (ring(r) || (r->node->link && ring_domain(r)))
		return true;
	r->took = !r->took;
	return r->took ? take_packets(r) || send_message(r) : send_message(r) || take_packets(r);
}

static void call_at(struct rank *r, rwk_time at)
{
	rwk_time now = now_of(r);

	if (at == RWK_NEVER || (r->alarm > now && r->alarm <= at))
		return;
	r->alarm = at;
	rwk_sim_alarm(r->link, at);
}

static void call_domain(struct node *n)
{
	rwk_time now = rwk_sim_now(n->job->sim);

	if (!n->link || n->earliest == RWK_NEVER || (n->alarm > now && n->alarm <= n->earliest))
		return;
	n->alarm = n->earliest;
	rwk_sim_alarm(n->link, n->earliest);
}

static void run(struct rank *r)
{
	rwk_time now = now_of(r);

	while (r->busy <= now && do_something(r))
		;
	call_domain(r->node);
	if (r->busy > now) {
		call_at(r, r->busy);
		return;
	}
	call_at(r, r->earliest);
	if (has_messages(r))
		call_at(r, r->node->out_free - BACKLOG);
}

static void on_own_wake(void *user)
{
	run(user);
}

/* A packet has come, or a deadline: an idle rank sees to it; if there is none, the first that has time comes by. */
static void on_domain_wake(void *user)
{
	struct node *n = user;
	uint32_t ranks = n->job->attr.per_node;

	for (uint32_t i = 0; i < ranks; i++) {
		struct rank *r = &n->job->ranks[n->number * ranks + (n->turn + i) % ranks];

		if (r->busy > now_of(r))
			continue;
		n->turn += i + 1;
		run(r);
		return;
	}
}

void scale_start(struct job *j)
{
	static const struct rwk_sim_hooks own = {.wake = on_own_wake}, domain = {.wake = on_domain_wake};

	for (uint32_t i = 0; i < j->attr.nodes && j->attr.src; i++) {
		j->nodes[i].link->packet = on_domain_packet;
		j->nodes[i].link->user = &j->nodes[i];
		rwk_sim_set_hooks(j->nodes[i].link, &domain);
	}
	for (uint32_t i = 0; i < j->rank_count; i++) {
		j->ranks[i].link->packet = on_own_packet;
		j->ranks[i].link->user = &j->ranks[i];
		rwk_sim_set_hooks(j->ranks[i].link, &own);
		rwk_sim_alarm(j->ranks[i].link, 0);
	}
}
