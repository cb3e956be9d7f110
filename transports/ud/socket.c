/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair's socket: what the parameters say of it, and which address others are told. */
#include "ud/internal.h"

#include "base/interfaces.h"
#include "base/log.h"
#include "base/param.h"
#include "links/udp/udp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t any_ip[16];

uint32_t rwk_ud_mtu(void)
{
	uint32_t mtu = rwk_param_pmtu(&rwk_params);

	return mtu ? mtu : RWK_UD_MTU;
}

int rwk_ud_own_ip(uint8_t ip[16], char *why, size_t size)
{
	size_t room = rwk_params.interfaces ? strlen(rwk_params.interfaces) + 1 : 1;
	char *lists = malloc(2 * room);
	int err;

	snprintf(why, size, "no memory");
	if (!lists)
		return -ENOMEM;
	rwk_interfaces_split(rwk_params.interfaces, lists, lists + room);
	err = rwk_udp_own_ip(lists, lists + room, ip, why, size);
	free(lists);
	return err;
}

/* Which of this host's addresses others are told, unless the client has named one. */
static int publish_ip(uint8_t ip[16])
{
	char why[200];

	if (memcmp(ip, any_ip, sizeof(any_ip)) || !rwk_ud_own_ip(ip, why, sizeof(why)))
		return 0;
	rwk_warn("datagrams: %s", why);
	return -ENETDOWN;
}

/* Strict: identification 0 and no fragments, as others expect it. */
static int open_link(const struct rwk_ud_address *own, struct rwk_link **link)
{
	struct rwk_udp_attr udp = {
		.port = own->port,
		.port_first = rwk_params.ports.first,
		.port_last = rwk_params.ports.last,
		.receive_buffer = (int)rwk_params.receive_buffer,
		.strict = true,
	};

	memcpy(udp.ip, own->ip, sizeof(udp.ip));
	return rwk_udp_open(&udp, link);
}

int rwk_ud_open(const struct rwk_ud_attr *attr, struct rwk_ud **ud)
{
	struct rwk_ud_attr complete = *attr;
	struct rwk_ud_address *own = &complete.own;
	struct rwk_link *link;
	int err;

	if (!rwk_params.udp) {
		rwk_warn("datagrams: there are none without UDP (FI_ROPEWALK_UDP=no)");
		return -ENETDOWN;
	}
	err = publish_ip(own->ip);
	if (!err)
		err = open_link(&attr->own, &link);
	if (err)
		return err;
	own->port = rwk_udp_port(link);
	if (!own->qpn)
		own->qpn = rwk_ud_qpn(own->port);
	if (!own->qkey)
		own->qkey = RWK_UD_QKEY;
	err = rwk_ud_open_on(link, &complete, ud);
	if (err)
		link->ops->close(link);
	return err;
}
