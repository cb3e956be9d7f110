/* SPDX-License-Identifier: BSD-3-Clause */
/* Which interface an endpoint goes out by. That of those who name no IP is looked for once. */
#include "bindings/libfabric/nic.h"

#include "base/socket.h"
#include "ud/ud.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <string.h>

static char usual[IF_NAMESIZE]; /* "": there is none */

static void find(const uint8_t ip[16], char name[IF_NAMESIZE])
{
	struct ifaddrs *all;
	uint8_t own[16];
	uint16_t port;

	name[0] = 0;
	if (getifaddrs(&all))
		return;
	for (struct ifaddrs *i = all; i && !name[0]; i = i->ifa_next) {
		if (i->ifa_addr && rwk_socket_address_parts(i->ifa_addr, own, &port) && !memcmp(own, ip, sizeof(own)))
			strncpy(name, i->ifa_name, IF_NAMESIZE - 1);
	}
	freeifaddrs(all);
}

static void find_usual(void)
{
	uint8_t ip[16];
	char why[200];

	if (!rwk_ud_own_ip(ip, why, sizeof(why)))
		find(ip, usual);
}

/* No IP, of either family. */
static bool is_any(const uint8_t ip[16])
{
	static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff};

	return rwk_ip_is_any(ip) || !memcmp(ip, any4, sizeof(any4));
}

struct fid_nic *rwk_fi_nic_of(const uint8_t ip[16])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char name[IF_NAMESIZE] = "";

	if (!is_any(ip)) {
		find(ip, name);
		return name[0] ? rwk_fi_nic_read("", name) : NULL;
	}
	pthread_once(&once, find_usual);
	return usual[0] ? rwk_fi_nic_read("", usual) : NULL;
}
