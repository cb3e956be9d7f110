/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams to peers' processes, and what becomes of a channel by what is heard of its stream.
 *
 * Evidence: once a channel is open, one end (that with the smaller nonce) starts a stream. The other does so too if
 * none has come after a second: the peer may have ended before. (If it is shared, evidence.c sees to that.) If the
 * stream breaks or leads to another process, the peer is dead. While there can be none (a firewall, no descriptors
 * left, a network that is cut) the kernel's word that nobody listens on the port must do; it is tried again.
 */
#include "packet/channel.h"
#include "packet/handshake.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/port.h"
#include "packet/streams.h"

#include "base/log.h"
#include "machine.h"

#include <errno.h>
#include <string.h>

#define SEEK_AFTER  (1000 * 1000 * 1000ull) /* ns that an end waits for the stream that the peer is to start */
#define AGAIN_FIRST (2 * SEEK_AFTER)        /* until one that was lost is looked for again; doubled, up to */
#define AGAIN_MAX   (64 * SEEK_AFTER)

static void seek_by(struct rwk_port *port, rwk_time at)
{
	if (at < port->seek_at)
		port->seek_at = at;
}

/**
 * There is a stream to another process at that address: one of the two has ended, and which is not known before that
 * stream ends, or our peer answers otherwise. We try again.
 */
static void stream_taken(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;

	ch->stream_asked = false;
	if (ch->state == RWK_CH_CONNECTING)
		rwk_packet_ask_on(ch);
	seek_by(port, rwk_packet_now(port) + SEEK_AFTER);
}

/**
 * A channel is without a stream. What kept that away may pass, as a network that is cut for some seconds does; so it is
 * looked for again, ever more seldom.
 */
static void seek_again(struct rwk_port *port)
{
	if (port->again_at != RWK_NEVER || !port->link[RWK_WAY_STREAM])
		return;
	if (port->again_gap < AGAIN_MAX)
		port->again_gap = port->again_gap ? 2 * port->again_gap : AGAIN_FIRST;
	port->again_at = rwk_packet_now(port) + port->again_gap;
	seek_by(port, port->again_at);
}

/** No stream comes: what that means for a channel. */
static void without_stream(struct rwk_packet_channel *ch, int status)
{
	ch->stream_lost = true;
	if (ch->path.way == RWK_WAY_STREAM && ch->state == RWK_CH_OPEN) {
		rwk_packet_doom(ch, -ECONNRESET);
	} else if (ch->state == RWK_CH_CONNECTING) {
		if (!ch->port->link[RWK_WAY_LOSSY])
			rwk_packet_doom(ch, -EHOSTUNREACH);
		else
			rwk_packet_ask_on(ch);
	} else {
		rwk_info("packets: no stream to %s (%s): until there is one, its death can be told only by its kernel's "
			 "refusals",
			rwk_packet_name(&ch->address), strerror(-status));
		seek_again(ch->port);
	}
}

static void channel_word(struct rwk_packet_channel *ch, int status)
{
	bool partial = rwk_packet_is_partial(&ch->address);

	if (status)
		rwk_info("packets: the stream to %s: %s", rwk_packet_name(&ch->address), strerror(-status));
	ch->stream_asked = false;
	ch->stream_open = !status;
	if (status && ch->shared)
		rwk_packet_evidence_lost(ch);
	if (status == -ESHUTDOWN && ch->shared)
		return; /* the peer does not need it any more; what its process does, evidence.c finds out */
	if (status && partial && ch->state == RWK_CH_CONNECTING)
		rwk_packet_ask_on(ch); /* nothing shows any more that somebody is there */
	ch->gone = status == -ESTALE || status == -ECONNRESET || status == -ECONNREFUSED;
	switch (status) {
	case 0:
		ch->stream_lost = false;
		ch->port->again_gap = 0;
		ch->ask_at = 0;
		if (ch->state == RWK_CH_CONNECTING) {
			rwk_packet_ask_there(ch);
			rwk_packet_stir(ch);
		}
		break;
	case -EACCES:
	case -EPROTONOSUPPORT:
		if (ch->state != RWK_CH_CONNECTING)
			break;
		rwk_warn("packets: %s does not know this job's key: it is of another job or user, or of another "
			 "version (FI_ROPEWALK_JOB_KEY makes jobs one)",
			rwk_packet_name(&ch->address));
		rwk_packet_doom(ch, -EACCES);
		break;
	case -ECONNREFUSED:
		if (!partial)
			rwk_packet_doom(ch, -ECONNRESET); /* it had an address, so it was there */
		break;
	case -ESTALE:
	case -ECONNRESET:
	case -ESHUTDOWN:
	case -EPROTO:
		if (ch->state != RWK_CH_CONNECTING || !partial)
			rwk_packet_doom(ch, -ECONNRESET);
		break;
	default:
		without_stream(ch, status);
	}
}

void rwk_packet_reach(struct rwk_packet_channel *ch)
{
	int rc;

	if (ch->stream_asked || ch->stream_open || ch->stream_lost)
		return;
	ch->stream_asked = true;
	rc = ch->port->ways->reach(ch->port->link[RWK_WAY_STREAM], &ch->path.to,
		rwk_packet_peer_nonce(ch));
	if (rc == -EEXIST)
		stream_taken(ch);
	else if (rc)
		channel_word(ch, rc);
}

void rwk_packet_stream_over(struct rwk_packet_channel *ch, struct rwk_packet_channel *to)
{
	bool open = ch->stream_open;

	ch->stream_open = ch->stream_asked = false;
	ch->stream_lost = true; /* it looks for none any more */
	if (open && !to->stream_open && !rwk_packet_set_stream(to, rwk_packet_stream(ch)))
		channel_word(to, 0);
}

void rwk_packet_stream_begin(struct rwk_packet_channel *ch)
{
	if (ch->stream_lost)
		seek_again(ch->port);
	else if (rwk_packet_nonce(&ch->port->address) < rwk_packet_peer_nonce(ch))
		rwk_packet_reach(ch);
	else if (!ch->stream_open)
		seek_by(ch->port, rwk_packet_now(ch->port) + SEEK_AFTER);
}

void rwk_packet_seek(struct rwk_port *port)
{
	bool again = rwk_packet_now(port) >= port->again_at;

	if (again)
		port->again_at = RWK_NEVER;
	port->seek_at = port->again_at;
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->state != RWK_CH_OPEN)
			continue;
		ch->stream_lost = ch->stream_lost && !again;
		if (!ch->shared)
			rwk_packet_reach(ch);
	}
}

/** Its peer's stream is known by that place now: it may have come from another of its IPs, or been asked for at one. */
static int follow(struct rwk_packet_channel *ch, const struct rwk_link_address *who)
{
	int rc = rwk_packet_set_stream(ch, who);

	if (!rc && ch->path.way == RWK_WAY_STREAM && ch->uc)
		rc = rwk_packet_goes(ch, who, who);
	return rc;
}

/** There is news of a stream to that place, at which is the process with that nonce; 0: it is not known which. */
static void hear(struct rwk_packet_channel *ch, const struct rwk_link_address *who, uint64_t nonce, int status)
{
	uint64_t known = rwk_packet_peer_nonce(ch);

	if (ch->state == RWK_CH_FAILED)
		return;
	if (!status && ch->doom)
		return; /* it may have given way: the stream is the other channel's, and is not left with this one */
	if (nonce && known && known != nonce)
		return; /* one was there, and another is there now */
	if (!status && nonce && known == nonce && follow(ch, who))
		rwk_packet_doom(ch, -ENOMEM);
	if (memcmp(&ch->path.to, who, sizeof(*who)) && memcmp(rwk_packet_stream(ch), who, sizeof(*who))) {
		if (nonce && !known && ch->stream_open)
			ch->stream_open = ch->port->ways->nonce(ch->port->link[RWK_WAY_STREAM], rwk_packet_stream(ch));
		return; /* perhaps it was this one's: the link knows a process's only stream by the latest place */
	}
	if (status && known && ch->stream_open && memcmp(rwk_packet_stream(ch), who, sizeof(*who)))
		return; /* both ends had begun one, at two addresses: the other of the two has ended */
	/* Which of two goes on while neither is open is agreed on by greetings. */
	if (status || !nonce || !rwk_packet_doubles(ch, nonce, RWK_CH_OPEN))
		channel_word(ch, status);
}

void rwk_packet_word(struct rwk_port *port, const struct rwk_link_address *who, int status)
{
	uint64_t nonce = port->ways->nonce ? port->ways->nonce(port->link[RWK_WAY_STREAM], who) : 0;

	if (nonce && !port->unnamed) {
		for (struct rwk_packet_channel *ch = rwk_packet_by_nonce(port, nonce); ch;
			ch = rwk_packet_next_by_nonce(ch))
			hear(ch, who, nonce, status);
		return;
	}
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next)
		hear(rwk_container_of(l, struct rwk_packet_channel, all), who, nonce, status);
}

/** To its process, or to the domain that it is in. */
static bool goes_to(const struct rwk_packet_channel *ch, const struct rwk_link_address *who)
{
	return !memcmp(&ch->path.to, who, sizeof(*who)) || (ch->shared && !memcmp(&ch->by->path.to, who, sizeof(*who)));
}

void rwk_packet_hint(struct rwk_port *port, const struct rwk_link_address *who)
{
	rwk_packet_initiators_refused(port, who);
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->state == RWK_CH_FAILED || ch->path.way != RWK_WAY_LOSSY || !goes_to(ch, who))
			continue;
		if (!ch->stream_lost) {
			rwk_packet_reach(ch); /* which tells for sure */
		} else if (!rwk_packet_is_partial(&ch->address)) {
			ch->gone = true;
			rwk_packet_doom(ch, -ECONNRESET);
		}
	}
}
