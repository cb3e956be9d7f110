/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams to peers' processes, which show that these live: streams.c; with SRC one for all processes of a node that
 * talk to the same one: evidence.c.
 */
#ifndef RWK_PACKET_STREAMS_H
#define RWK_PACKET_STREAMS_H

#include "packet/channel.h"
#include "packet/port.h"

/* streams.c */
/** The link's word of a stream: 0, it is open; else why it is not. */
void rwk_packet_word(struct rwk_port *port, const struct rwk_link_address *who, int status);
/** The kernel there says that nobody has that port. */
void rwk_packet_hint(struct rwk_port *port, const struct rwk_link_address *who);
/** The channel is open, and not shared: one end starts the stream, and both know which. */
void rwk_packet_stream_begin(struct rwk_packet_channel *ch);
/** Starts the streams that peers should have started and have not. */
void rwk_packet_seek(struct rwk_port *port);
/** Whatever `ch` has of a stream is that of `to`, by whose peer it has turned out to be. */
void rwk_packet_stream_over(struct rwk_packet_channel *ch, struct rwk_packet_channel *to);
/** Starts a stream to the peer's process, if there is none and there can be one. */
void rwk_packet_reach(struct rwk_packet_channel *ch);

/* evidence.c: all for channels that are shared */
/** The channel is open: who looks after its peer? */
void rwk_packet_evidence_begin(struct rwk_packet_channel *ch);
/** Its stream has ended, or is going to. */
void rwk_packet_evidence_lost(struct rwk_packet_channel *ch);
/** Looks who has died, and that every peer is looked after. */
void rwk_packet_evidence_by_clock(struct rwk_port *port, rwk_time now);
/** When it is to be called next; RWK_NEVER: there is nothing to look after. */
rwk_time rwk_packet_evidence_next(const struct rwk_port *port);

#endif
