/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: evidence of death. A stream to a process (streams.c) tells for sure whether it lives; but a stream for each pair
 * of processes is what SRC is there to do without. What one process of a node knows of a peer is good for all of them,
 * so one of them has the stream: the *holder* of the peer's target in the domain.
 *
 *   - A holder that sees the stream end with its process ends the target. All look a few times a second whether the
 *     targets of their peers live: no message is sent for it, so none can be lost.
 *   - A holder puts the stream's socket into the domain's watch before it says that it is the holder, and takes that
 *     back before the socket leaves the watch. So the others see a stream end even if its holder is stopped, or
 *     computes. Who sees it asks for itself, by a stream of its own.
 *   - A holder that dies, or leaves, is none any more. Who finds a peer without one gets a stream of its own, and
 *     becomes the holder; if the peer has died meanwhile, nobody is there, and that is evidence too.
 *
 * With more than some thousands of channels each look is at a part of them, in turn: 131,072 have it in 3 seconds.
 * (What the watch tells is looked at each time.)
 *
 * So each open channel has the evidence of a stream at every moment, or is about to get it. A stream serves both of its
 * ends: each may be the holder of the other. Whose seat has the same number as the peer's, its *partner*, is to be the
 * holder: it gets its stream at once, and takes the peer over from others, who wait a while with theirs. So a process
 * has about one stream to each other node. Streams that connecting has opened, or that a holder's absence has, are
 * ended when both ends have said that they do not need them (RELEASE).
 */
#include "packet/channel.h"
#include "packet/numbers.h"
#include "packet/port.h"
#include "packet/streams.h"

#include "base/log.h"
#include "machine.h"
#include "shared_rc/shared_rc.h"

#include <errno.h>
#include <string.h>

#define LOOK_GAP (200 * 1000 * 1000ull) /* ns between looks */
#define ALONE    (250 * 1000 * 1000ull) /* ns that others leave to the partner; up to as long again: each at its time */
#define LOOKS    64
#define AT_ONCE  8192 /* channels a look, which take a millisecond; if there are more they have their turn */

static uint64_t key_of(uint32_t target, uint32_t srqn)
{
	return (uint64_t)srqn << 32 | target;
}

static bool is_partner(const struct rwk_packet_channel *ch)
{
	return rwk_src_seat_of(ch->srqn) == rwk_src_seat_of(rwk_src_srqn(ch->port->view));
}

void rwk_packet_evidence_begin(struct rwk_packet_channel *ch)
{
	ch->alone_at = rwk_packet_now(ch->port) + (is_partner(ch) ? 0 : ALONE + ch->token % ALONE);
}

void rwk_packet_evidence_lost(struct rwk_packet_channel *ch)
{
	ch->release_said = ch->release_came = false;
	rwk_src_let_go(ch->port->view, ch->target);
}

/** The stream that is open tells all processes of this node from now on. */
static void hold(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;
	uint32_t target = ch->target;
	int rc = port->ways->watch(port->link[RWK_WAY_STREAM], rwk_packet_stream(ch), &port->domain,
		key_of(target, rwk_src_srqn(port->view)));

	if (!rc)
		rwk_src_hold(port->view, target);
	else
		rwk_debug(
			"packets: the stream to %s cannot be shared: %s", rwk_packet_name(&ch->address), strerror(-rc));
}

/** Another is the holder. */
static void release(struct rwk_packet_channel *ch)
{
	const struct rwk_greeting g = {
		.type = RWK_GREETING_RELEASE, .from = ch->port->address, .to = ch->address, .qpn = ch->qpn};
	struct rwk_port *port = ch->port;

	if (ch->release_came) {
		port->ways->leave(port->link[RWK_WAY_STREAM], rwk_packet_stream(ch));
		ch->stream_open = ch->release_said = ch->release_came = false;
	} else if (!ch->release_said) {
		ch->release_said = true;
		rwk_packet_greet(port, RWK_WAY_STREAM, rwk_packet_stream(ch), &g);
	}
}

static void look_after(struct rwk_packet_channel *ch, rwk_time now)
{
	struct rwk_src_view *view = ch->port->view;
	uint32_t holder;

	if (!rwk_src_target_lives(view, ch->target)) {
		ch->gone = true;
		rwk_packet_doom(ch, -ECONNRESET);
		return;
	}
	if (ch->state != RWK_CH_OPEN || ch->stream_lost)
		return;
	holder = rwk_src_holder(view, ch->target);
	if (holder == rwk_src_srqn(view))
		return;
	if (ch->stream_open) {
		if (!holder || is_partner(ch))
			hold(ch);
		else
			release(ch);
	} else if (is_partner(ch) || (!holder && now >= ch->alone_at)) {
		rwk_packet_reach(ch);
	}
}

/** A stream that a sibling holds has ended, and it has not said so yet. */
static void stream_ended(struct rwk_port *port, uint64_t key)
{
	uint32_t target = (uint32_t)key, holder = (uint32_t)(key >> 32);
	struct rwk_packet_channel *ch = rwk_packet_by_target(port, target);

	if (!ch || ch->state != RWK_CH_OPEN)
		return;
	if (holder == rwk_src_srqn(port->view) || holder != rwk_src_holder(port->view, target))
		return;
	if (ch->stream_open)
		hold(ch);
	else
		rwk_packet_reach(ch);
}

void rwk_packet_evidence_by_clock(struct rwk_port *port, rwk_time now)
{
	uint64_t key[LOOKS];
	int n = port->ways->look(&port->domain, key, LOOKS);
	uint32_t turns = port->by_qpn.count < AT_ONCE ? port->by_qpn.count : AT_ONCE;

	port->evidence_at = now + LOOK_GAP;
	for (int i = 0; i < n; i++)
		stream_ended(port, key[i]);
	while (turns--) {
		struct rwk_list *l = rwk_list_pop(&port->all);
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		rwk_list_append(&port->all, l);
		if (ch->shared)
			look_after(ch, now);
	}
}

rwk_time rwk_packet_evidence_next(const struct rwk_port *port)
{
	return port->view && port->ways->look && port->by_target.count ? port->evidence_at : RWK_NEVER;
}
