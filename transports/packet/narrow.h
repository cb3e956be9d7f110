/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways that have become narrower than what was agreed: narrow.c. */
#ifndef RWK_PACKET_NARROW_H
#define RWK_PACKET_NARROW_H

#include "packet/channel.h"
#include "packet/initiator.h"

/** What is known of how long packets may be now. */
struct rwk_packet_narrow {
	uint64_t token;        /* of our last round of probes */
	uint64_t heard;        /* when the peer, or its node, had what it last told us to believe, by its clock */
	rwk_time wider_at;
	uint32_t whom;         /* SRC: the channel whose peer was asked, by its number */
	uint16_t best;         /* the longest probe of this round that was answered, */
	uint16_t widest;       /* and of those rounds that said the way is narrow */
	uint8_t rounds, asked; /* that said the way is narrow; without an answer */
	bool untold;           /* SRC: the domain there may not know what we believe now */
};

/** The machine waits in vain for an answer, and has for some time: an upcall. `anew`: something came since the last. */
void rwk_packet_silent(struct rwk_packet_channel *ch, bool anew);
/** The same, of an initiator's. */
void rwk_packet_node_silent(struct rwk_packet_initiator *by, bool anew);
/** PROBE and PROBED have come from the channel's peer. */
void rwk_packet_probe_came(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
void rwk_packet_probed(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
/** Asks whether narrow ways are wide again; at port->wider_at. */
void rwk_packet_wider(struct rwk_port *port, rwk_time now);

#endif
