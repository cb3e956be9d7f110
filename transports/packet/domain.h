/* SPDX-License-Identifier: BSD-3-Clause */
/* SRC: what this node's processes take together: domain.c. */
#ifndef RWK_PACKET_DOMAIN_H
#define RWK_PACKET_DOMAIN_H

#include "packet/channel.h"
#include "packet/greeting.h"
#include "packet/port.h"

#include "rc/rc.h"

#define RWK_PACKET_SRC_OWN (RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_BUSY) /* if both have it */

/** Joins this node's domain. Without one the port goes on without SRC. */
void rwk_packet_domain_join(struct rwk_port *port, const struct rwk_port_attr *attr);
void rwk_packet_domain_leave(struct rwk_port *port);
/** Writes the channel's own terms of SRC into a greeting that has all others; false: there is no memory for them. */
bool rwk_packet_domain_terms(struct rwk_packet_channel *ch, struct rwk_greeting *g);
/** From now on the channel takes by the domain. 0; -ENOSPC: the domain is full, or its initiator has failed. */
int rwk_packet_domain_take(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
void rwk_packet_domain_forget(struct rwk_packet_channel *ch);
/** The channel ends, its peer's process does not: if that sends something after all, it is told once more. */
void rwk_packet_domain_ended(const struct rwk_packet_channel *ch);
/** A greeting that came by the domain's socket, or was meant to. */
void rwk_packet_domain_greeted(struct rwk_port *port, int way, const struct rwk_greeting *g);
/** Takes what has come for the domain; port->answering: what is due then is to be sent in this progress. */
int rwk_packet_domain_progress(struct rwk_port *port);
/** Sends it; returns how many packets. */
int rwk_packet_domain_answer(struct rwk_port *port);
void rwk_packet_domain_by_clock(struct rwk_port *port, rwk_time now);

#endif
