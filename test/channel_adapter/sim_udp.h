/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In place of links/udp: adapters in this program stand on the simulated network, with its clock. The address 127.0.0.N
 * is node N: so open them in that order. It defines what the adapter calls of links/udp/udp.h, which is then not
 * linked.
 */
#ifndef RWK_TEST_CHANNEL_ADAPTER_SIM_UDP_H
#define RWK_TEST_CHANNEL_ADAPTER_SIM_UDP_H

#include "links/sim/sim.h"

/** Where adapters are opened from now on. */
extern struct rwk_sim *sim_udp;

#endif
