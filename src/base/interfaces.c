/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/interfaces.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ENTRY_MAX 64 /* bytes; the longest address with bits has 49 */

/** One entry, without its ! and blanks. */
struct entry {
	bool exclude;
	const char *from;
	size_t len;
};

static bool good_bits(const char *text, unsigned max)
{
	unsigned v = 0;

	for (const char *c = text; *c; c++) {
		if (!isdigit((unsigned char)*c) || c - text > 2)
			return false;
		v = 10 * v + (unsigned)(*c - '0');
	}
	return *text && v <= max;
}

/* "10.0.0.0/8", "fe80::1"; cuts `text` at the slash. */
static bool good_network(char *text)
{
	char *bits = strchr(text, '/');
	uint8_t ip[16];
	bool v4;

	if (bits)
		*bits++ = 0;
	v4 = inet_pton(AF_INET, text, ip) == 1;
	if (!v4 && inet_pton(AF_INET6, text, ip) != 1)
		return false;
	return !bits || good_bits(bits, v4 ? 32 : 128);
}

static bool good_name(const char *text)
{
	return *text && strlen(text) < IF_NAMESIZE && !strpbrk(text, "! \t*?");
}

/* The entry at *list, which is moved to the comma or the end behind it. */
static struct entry next_entry(const char **list)
{
	const char *from = *list, *end = strchrnul(from, ',');
	struct entry e;

	*list = end;
	while (from < end && isblank((unsigned char)*from))
		from++;
	while (end > from && isblank((unsigned char)end[-1]))
		end--;
	e.exclude = from < end && *from == '!';
	e.from = from + e.exclude;
	e.len = (size_t)(end - e.from);
	return e;
}

static bool good_entry(const struct entry *e)
{
	char text[ENTRY_MAX];

	if (e->len >= sizeof(text))
		return false;
	memcpy(text, e->from, e->len);
	text[e->len] = 0;
	if (strpbrk(text, "/:") || (isdigit((unsigned char)text[0]) && strchr(text, '.')))
		return good_network(text);
	return good_name(text);
}

int rwk_interfaces_check(const char *list, char *why, size_t len)
{
	struct entry e;

	if (!list || !*list)
		return 0;
	for (const char *at = list;; at++) {
		e = next_entry(&at);
		if (!good_entry(&e)) {
			snprintf(why, len,
				"no list of interfaces: \"%.*s\" is neither a name nor a network; one as %s would be "
				"right",
				(int)(e.len > ENTRY_MAX ? ENTRY_MAX : e.len), e.from, RWK_INTERFACES_EXAMPLE);
			return -EINVAL;
		}
		if (!*at)
			return 0;
	}
}

void rwk_interfaces_split(const char *list, char *include, char *exclude)
{
	char *to[2] = {include, exclude}, *begin[2] = {include, exclude};

	for (const char *at = list; at && *at; at += *at == ',') {
		struct entry e = next_entry(&at);
		int which = e.exclude;

		if (to[which] != begin[which])
			*to[which]++ = ',';
		memcpy(to[which], e.from, e.len);
		to[which] += e.len;
	}
	*to[0] = *to[1] = 0;
}
