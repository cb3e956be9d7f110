/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking: what one call of progress does, in which order, and what it leaves for the next.
 *
 * Timers: each active channel has the machine's next deadline; the port keeps the earliest of all, and looks at the
 * clock only after packets and every few polls. Connecting channels are asked again by the same clock. Streams without
 * channels on them are looked at every few milliseconds: they only carry evidence.
 *
 * Lists: whatever has something to send is dirty, and pumped once in a progress, after all that has come was taken.
 */
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/handshake.h"
#include "packet/initiator.h"
#include "packet/port.h"
#include "packet/pull.h"
#include "packet/request.h"
#include "packet/streams.h"

#include "shared_rc/shared_rc.h"

#include <errno.h>
#include <sched.h>

#define BUDGET     64                    /* packets a progress and link */
#define DRAIN      256                   /* such rounds after a death: more than a receive buffer holds */
#define STREAM_GAP (5 * 1000 * 1000ull)  /* ns between looks at streams that carry nothing */
#define LATE_WORD  (50 * 1000 * 1000ull) /* ns that a peer's being late is held for news */
#define CLOCK_GAP  16                    /* progresses between looks at the clock, when nothing comes */
#define OWN_BUSY   1024                  /* progresses after a packet for a channel, while which all look for more, */
#define OWN_GAP    16                    /* and then each so many, */
#define OWN_GAP_AWAITED 4                /* where somebody waits */

static void enlist(struct rwk_packet_channel *ch)
{
	if (rwk_list_empty(&ch->dirty) && ch->state != RWK_CH_FAILED)
		rwk_list_append(&ch->port->dirty, &ch->dirty);
}

void rwk_packet_stir(struct rwk_packet_channel *ch)
{
	ch->port->pressing = true;
	enlist(ch);
}

/**
 * What is left to do about a packet can wait for the next progress if it was a message, which the client has now, and
 * what is left is that each end hears what the other has got. The client's answer goes out sooner.
 */
void rwk_packet_stir_for_message(struct rwk_packet_channel *ch)
{
	const struct rwk_rc *rc = rwk_packet_requester(ch);

	enlist(ch);
	if (!rc || ch->running || !rwk_list_empty(&ch->queue) || !rwk_rc_at_rest(rc))
		ch->port->pressing = true;
}

void rwk_packet_deadline(struct rwk_packet_channel *ch, rwk_time at)
{
	struct rwk_port *port = ch->port;

	if (at == RWK_NEVER)
		return;
	if (rwk_list_empty(&ch->timed))
		rwk_list_append(&port->active, &ch->timed);
	if (at < port->deadline)
		port->deadline = at;
}

static bool is_late(const struct rwk_packet_channel *ch)
{
	const struct rwk_rc *rc = rwk_packet_requester(ch);

	return rc && rwk_rc_is_late(rc);
}

/** Do processes of this machine share a processor, as far as is known? */
static bool is_crowded(const struct rwk_port *port)
{
	return port->processors && port->crowd > port->processors;
}

/** Pumps all that is dirty now; what becomes so meanwhile is pumped too, but each channel once. */
static int pump_dirty(struct rwk_port *port)
{
	struct rwk_list mine, *l;
	int n = 0;

	port->pressing = false;
	rwk_list_init(&mine);
	while ((l = rwk_list_pop(&port->dirty)))
		rwk_list_append(&mine, l);
	while ((l = rwk_list_pop(&mine))) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, dirty);

		if (rwk_unlikely(ch->burst_is_new))
			rwk_packet_judge_burst(ch);
		rwk_packet_pulls_answer(ch);
		n += rwk_packet_pump(ch);
		if (!is_late(ch))
			continue;
		if (is_crowded(port))
			port->late_until = rwk_packet_now(port) + LATE_WORD;
		if (ch->running)
			rwk_packet_relieve(ch);
	}
	return n;
}

/** What the clock demands of machines; the earliest next time is found anew. */
static void ring(struct rwk_port *port, rwk_time now)
{
	port->deadline = RWK_NEVER;
	for (struct rwk_list *l = port->active.next, *next; l != &port->active; l = next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, timed);
		rwk_time at = ch->rc && !rwk_packet_lacks_memory(ch) ? rwk_rc_next(ch->rc) : 0;

		next = l->next;
		if (at == RWK_NEVER)
			rwk_list_remove(&ch->timed);
		else if (at <= now)
			rwk_packet_stir(ch);
		else
			rwk_packet_deadline(ch, at);
		if (!ch->rc)
			rwk_list_remove(&ch->timed);
	}
	rwk_packet_initiators_ring(port, now);
	if (port->view) {
		rwk_time at = rwk_src_next(port->view);

		port->answers_due = at <= now;
		if (at < port->deadline)
			port->deadline = at;
	}
}

static void by_clock(struct rwk_port *port)
{
	rwk_time now = rwk_packet_now(port);

	if (now >= port->deadline)
		ring(port, now);
	if (now >= port->period_end)
		rwk_packet_period(port, now);
	if (now >= port->seek_at)
		rwk_packet_seek(port);
	if (rwk_unlikely(!rwk_list_empty(&port->connecting))) {
		for (struct rwk_list *l = port->connecting.next, *next; l != &port->connecting; l = next) {
			next = l->next;
			rwk_packet_ask(rwk_container_of(l, struct rwk_packet_channel, timed), now);
		}
	}
	if (port->link[RWK_WAY_STREAM] && now >= port->stream_at) {
		struct rwk_link *s = port->link[RWK_WAY_STREAM];

		port->stream_at = now + STREAM_GAP;
		s->ops->progress(s, BUDGET);
	}
	if (port->wants_shared)
		rwk_packet_domain_by_clock(port, now);
}

/** Takes all that has arrived. */
static void drain(struct rwk_port *port)
{
	struct rwk_link *lossy = port->link[RWK_WAY_LOSSY];

	port->left_since = 0; /* what a sibling has not taken yet is to come, too */
	for (int i = 0; lossy && i < DRAIN && (lossy->ops->progress(lossy, BUDGET) > 0 || lossy->ops->arm(lossy)); i++)
		;
	for (int i = 0; port->view && i < DRAIN && rwk_packet_domain_progress(port) > 0; i++)
		;
}

/**
 * SRC: what the peer sends is acknowledged whoever it is for, so nothing else tells it of this end. But who has ended
 * itself knows, and one process by two addresses has its other connection.
 */
static void tell_peer(struct rwk_packet_channel *ch)
{
	if (ch->shared && ch->doom != -ECONNRESET && ch->doom != -EALREADY)
		rwk_packet_say_bye(ch);
}

/** Ends the channels that are doomed. */
static void fail_doomed(struct rwk_port *port)
{
	port->doomed = false;
	rwk_packet_flush(port); /* an acknowledgement gives back what the link may have to send again */
	drain(port); /* what a dead peer had sent before */
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (!ch->doom || ch->state == RWK_CH_FAILED)
			continue;
		tell_peer(ch);
		rwk_packet_stop(ch, ch->doom);
		if (ch->base.peer)
			port->client->failed(port->cookie, &ch->base, ch->doom);
	}
}

/**
 * Whether to look at this process's own socket. As long as all that comes there is acknowledgements that nobody has
 * asked for, these can wait a little, and what somebody waits for comes to the domain's: a call that brings nothing is
 * dear. They can wait less if a message is under way, whose own has not come with another message. Where processes share
 * a processor all have their turn between two progresses, and nothing is to wait for many.
 */
static bool asks_own(const struct rwk_port *port)
{
	if (!port->view || port->asking || is_crowded(port) || port->epoch - port->own_epoch < OWN_BUSY)
		return true;
	return port->epoch % (port->running ? OWN_GAP_AWAITED : OWN_GAP) == 0;
}

/**
 * Nothing has come, and a peer was late a moment ago: it lacks a CPU. That may be this one, for the job has more
 * processes on this machine than there are processors, though the job map may not show it: each may be in a container
 * of its own. Where each can have a processor it is not yielded: it is others who have the peer's then, and would have
 * this one, too.
 */
static rwk_noinline void wait_for_late(struct rwk_port *port)
{
	if (rwk_packet_now(port) >= port->late_until) {
		port->late_until = 0;
		return;
	}
	port->count.yields++;
	sched_yield();
}

/** Packets have come: can what is left to do about them wait once, until the client has had its turn? */
static bool may_wait(const struct rwk_port *port)
{
	return !port->waited && !port->pressing && !port->doomed && rwk_list_empty(&port->dirty_initiators);
}

int rwk_packet_progress(struct rwk_port *port)
{
	struct rwk_link *lossy = port->link[RWK_WAY_LOSSY], *stream = port->link[RWK_WAY_STREAM];
	int n = 0;

	port->epoch++;
	port->now = 0;
	port->inside = true;
	if (rwk_unlikely(port->armed)) {
		rwk_packet_disarm(port);
		port->own_epoch = port->epoch;
		by_clock(port);
	}
	if (rwk_unlikely(port->starved)) {
		port->starved = false;
		drain(port);
	}
	if (lossy && asks_own(port))
		n += lossy->ops->progress(lossy, BUDGET);
	if (rwk_unlikely(port->by_stream))
		n += stream->ops->progress(stream, BUDGET);
	if (port->view)
		n += rwk_packet_domain_progress(port);
	port->waited = n && may_wait(port);
	if (port->waited) {
		port->inside = false;
		return n;
	}
	if (n || port->late_until || port->epoch % CLOCK_GAP == 0)
		by_clock(port);
	if (!rwk_list_empty(&port->dirty))
		n += pump_dirty(port);
	if (!rwk_list_empty(&port->dirty_initiators))
		n += rwk_packet_initiators_pump(port);
	if (port->answering) /* behind what took acknowledgements along */
		n += rwk_packet_domain_answer(port);
	if (rwk_unlikely(port->doomed))
		fail_doomed(port);
	if (!n && !rwk_list_empty(&port->lent))
		n += rwk_packet_relieve_first(port);
	port->inside = false;
	if (n)
		rwk_packet_flush(port);
	else if (rwk_unlikely(port->late_until))
		wait_for_late(port);
	return n;
}
