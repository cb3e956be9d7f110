/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three hosts of udp_hosts.h in a row, and UDP links on them (as root; tests are skipped otherwise):
 *
 *   host 0                      host 1                      host 2
 *   v0 10.9.0.1, fd09::1  ----  v1 10.9.0.2, fd09::2
 *                               w1 10.9.1.2, fd19::2  ----  w2 10.9.1.3, fd19::3
 *
 * Host 1 is a router. The cables are of 9000 bytes, unless a test makes them narrower for its time.
 */
#ifndef UDP_CABLES_H
#define UDP_CABLES_H

#include "udp_hosts.h"
#include "udp_pair.h"

#define EXIT_SKIPPED 77

struct udp_family {
	const char *near, *router, *far; /* of host 0, of host 1 on that side, of host 2 */
	unsigned headers;                /* below BTH: bytes */
};

extern const struct udp_family families[2]; /* IPv4, IPv6 */

/** The set-up of a group of tests, once the hosts are made. */
int plug_in(void **state);
/** Waits until that interface has one: the kernel takes up to a second to say so. */
void wait_for_carrier(int host, const char *name);

/** An end at that host, by that address of its; with a receive buffer (0: as it comes), or with `attr`. */
struct udp_end *open_at(int host, const char *ip, int receive_buffer);
struct udp_end *open_with(int host, const char *ip, struct rwk_udp_attr attr);

size_t mtu_to(struct udp_end *a, const struct udp_end *b);
/** The cable between host 0 and host 1. */
void set_mtu(int mtu);
/** Sends packets of that length in a batch and alone; all arrive. */
void check_arrives(struct udp_end *a, struct udp_end *b, size_t len);

#endif
