/* SPDX-License-Identifier: BSD-3-Clause */
/* Places as text. */
#include "tools/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int rwk_ip_from_text(const char *text, uint8_t ip[16])
{
	char mapped[256];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	return inet_pton(AF_INET6, mapped, ip) == 1 ? 0 : -EINVAL;
}

void rwk_place_print(char *text, const struct rwk_place *p)
{
	char ip[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, p->ip, ip, sizeof(ip));
	snprintf(text, RWK_PLACE_LENGTH, "%s,%u,0x%06x,0x%06x,0x%08x,0x%" PRIx64,
		!strncmp(ip, "::ffff:", 7) && strchr(ip, '.') ? ip + 7 : ip, p->port, p->qpn, p->psn, p->key,
		p->address);
}

const char *rwk_place_parse(const char *text, struct rwk_place *p)
{
	char ip[INET6_ADDRSTRLEN];
	int read = 0;

	if (sscanf(text, "%45[^,],%u,%i,%i,%i,%" SCNi64 "%n", ip, &p->port, (int *)&p->qpn, (int *)&p->psn,
		    (int *)&p->key, (int64_t *)&p->address, &read) != 6 ||
		rwk_ip_from_text(ip, p->ip))
		return NULL;
	return text + read;
}
