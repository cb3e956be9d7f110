/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel_adapter/sim_udp.h"

#include "links/udp/udp.h"

#include <string.h>

#define NODES 4u
#define FREE  49152u /* a port that is any, of node 0 */

struct rwk_sim *sim_udp;
static uint16_t ports[NODES + 1]; /* by node */

int rwk_udp_open(const struct rwk_udp_attr *attr, struct rwk_link **l)
{
	int rc = rwk_sim_node(sim_udp, l);

	if (!rc)
		ports[rwk_sim_number(*l)] = attr->port ? attr->port : (uint16_t)(FREE + rwk_sim_number(*l));
	return rc;
}

uint16_t rwk_udp_port(const struct rwk_link *l)
{
	return ports[rwk_sim_number(l)];
}

size_t rwk_udp_room(const struct rwk_link *l)
{
	(void)l;
	return 64 * RWK_UDP_ROOM_PACKET;
}

struct rwk_link_address rwk_udp_address(const uint8_t ip[16], uint16_t port)
{
	(void)port;
	return rwk_sim_address(ip[15]);
}

void rwk_udp_split(const struct rwk_link_address *a, uint8_t ip[16], uint16_t *port)
{
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127};
	uint32_t number = rwk_sim_address_number(a);

	memcpy(ip, loopback, 16);
	ip[15] = (uint8_t)number;
	*port = ports[number];
}

int rwk_udp_source(struct rwk_link *l, const uint8_t peer[16], bool anew, uint8_t source[16])
{
	(void)l;
	(void)anew;
	memcpy(source, peer, 16);
	return 0;
}
