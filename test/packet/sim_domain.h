/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains on the simulated network: ports of a process that play the processes of a few hosts. Those of one host share
 * one segment and one node of the network. A packet to such a node comes to whichever of its ports asks first, as with
 * a socket that processes share.
 */
#ifndef RWK_TEST_PACKET_SIM_DOMAIN_H
#define RWK_TEST_PACKET_SIM_DOMAIN_H

#include "links/sim/sim.h"
#include "packet/packet.h"

/** The network on which domains are made from now on. */
void sim_domain_use(struct rwk_sim *s);
#define SIM_HOSTS 3u /* rwk_address.node says which */

/** From now on nobody is let in any more, until it is false again; one port at a time can be alone. */
void sim_domain_shut(bool now);

/* Of rwk_packet_ways. */
int sim_domain_join(const struct rwk_port_attr *attr, struct rwk_packet_domain *d);
int sim_domain_join_alone(const struct rwk_port_attr *attr, struct rwk_packet_domain *d, int *why);
void sim_domain_attend(const struct rwk_packet_domain *d);
void sim_domain_depart(const struct rwk_packet_domain *d);

#endif
