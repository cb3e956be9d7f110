/* SPDX-License-Identifier: BSD-3-Clause */
/* Places as text. */
#include "tools/meet.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A number up to `most`, behind a comma at `*at`, which moves behind it. */
static bool read_number(const char **at, int base, uint64_t most, uint64_t *number)
{
	char *end;

	if (**at != ',' || !isdigit((unsigned char)(*at)[1]))
		return false;
	errno = 0;
	*number = strtoull(*at + 1, &end, base);
	*at = end;
	return !errno && *number <= most;
}

const char *rwk_place_parse(const char *text, struct rwk_place *p)
{
	static const struct {
		int base;
		uint64_t most;
	} form[] = {{10, UINT16_MAX}, {0, 0xffffff}, {0, 0xffffff}, {0, UINT32_MAX}, {0, UINT64_MAX}};
	size_t length = strcspn(text, ",");
	const char *at = text + length;
	char ip[INET6_ADDRSTRLEN];
	struct rwk_place read;
	uint64_t number[5];

	for (int i = 0; i < 5; i++)
		if (!read_number(&at, form[i].base, form[i].most, &number[i]))
			return NULL;
	if (length >= sizeof(ip))
		return NULL;
	memcpy(ip, text, length);
	ip[length] = '\0';
	if (rwk_ip_from_text(ip, read.ip))
		return NULL;
	read.port = (unsigned)number[0];
	read.qpn = (unsigned)number[1];
	read.psn = (unsigned)number[2];
	read.key = (unsigned)number[3];
	read.address = number[4];
	*p = read;
	return at;
}
