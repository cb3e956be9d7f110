/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/interfaces.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define ENTRY_MAX 64 /* bytes; the longest address with bits has 49 */

/** One entry, read. */
struct entry {
	bool exclude;
	bool by_address;
	char name[IF_NAMESIZE];
	uint8_t ip[16];
	unsigned bits; /* of ip */
};

static bool read_bits(const char *text, unsigned max, unsigned *out)
{
	unsigned v = 0;

	for (const char *c = text; *c; c++) {
		if (!isdigit((unsigned char)*c) || c - text > 2)
			return false;
		v = 10 * v + (unsigned)(*c - '0');
	}
	*out = v;
	return *text && v <= max;
}

/* "10.0.0.0/8", "fe80::1"; cuts `text` at the slash. */
static bool read_network(char *text, struct entry *e)
{
	char *bits = strchr(text, '/');
	bool v4;

	if (bits)
		*bits++ = 0;
	memset(e->ip, 0, sizeof(e->ip));
	v4 = inet_pton(AF_INET, text, e->ip + 12) == 1;
	if (v4)
		e->ip[10] = e->ip[11] = 0xff;
	else if (inet_pton(AF_INET6, text, e->ip) != 1)
		return false;
	e->bits = v4 ? 32 : 128;
	if (bits && !read_bits(bits, e->bits, &e->bits))
		return false;
	e->bits += v4 ? 96 : 0;
	e->by_address = true;
	return true;
}

static bool read_name(const char *text, struct entry *e)
{
	size_t len = strlen(text);

	if (!len || len >= sizeof(e->name) || strpbrk(text, "/! \t"))
		return false;
	memcpy(e->name, text, len + 1);
	e->by_address = false;
	return true;
}

/* The entry between `from` and `end`. */
static bool read_entry(const char *from, const char *end, struct entry *e)
{
	char text[ENTRY_MAX];
	size_t len;

	while (from < end && isspace((unsigned char)*from))
		from++;
	while (end > from && isspace((unsigned char)end[-1]))
		end--;
	e->exclude = from < end && *from == '!';
	from += e->exclude;
	len = (size_t)(end - from);
	if (len >= sizeof(text))
		return false;
	memcpy(text, from, len);
	text[len] = 0;
	if (strchr(text, '/') || strchr(text, ':') || (isdigit((unsigned char)text[0]) && strchr(text, '.')))
		return read_network(text, e);
	return read_name(text, e);
}

int rwk_interfaces_check(const char *list, char *why, size_t len)
{
	const char *end;
	struct entry e;

	if (!list || !*list)
		return 0;
	for (const char *at = list;; at = end + 1) {
		end = strchrnul(at, ',');
		if (!read_entry(at, end, &e)) {
			snprintf(why, len,
				"no list of interfaces: \"%.*s\" is neither a name nor a network; one as %s "
				"would be right",
				(int)(end - at > ENTRY_MAX ? ENTRY_MAX : end - at), at, RWK_INTERFACES_EXAMPLE);
			return -EINVAL;
		}
		if (!*end)
			return 0;
	}
}

static bool in_network(const struct entry *e, const uint8_t ip[16])
{
	unsigned whole = e->bits / 8, rest = e->bits % 8;

	if (memcmp(e->ip, ip, whole) != 0)
		return false;
	return !rest || !((e->ip[whole] ^ ip[whole]) >> (8 - rest));
}

static bool is_about(const struct entry *e, const char *name, const uint8_t ip[16])
{
	return e->by_address ? in_network(e, ip) : !fnmatch(e->name, name, 0);
}

bool rwk_interfaces_allow(const char *list, const char *name, const uint8_t ip[16])
{
	bool any_included = false, included = false;
	const char *end;
	struct entry e;

	if (!list || !*list)
		return true;
	for (const char *at = list;; at = end + 1) {
		end = strchrnul(at, ',');
		if (read_entry(at, end, &e)) {
			bool about = is_about(&e, name, ip);

			if (e.exclude && about)
				return false;
			any_included |= !e.exclude;
			included |= !e.exclude && about;
		}
		if (!*end)
			return included || !any_included;
	}
}
