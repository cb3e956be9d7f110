/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which address of this host others should be told: of the interfaces' addresses that the lists leave, the best by
 * struct rank. Lists are read in place, entry by entry.
 */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ENTRY_MAX 64 /* bytes of an entry of a list */
#define NOT_THERE 1000u

/* What an interface's address is to us, the smaller the better. */
enum kind { DEFAULT_ROUTE, ORDINARY, IDLE_OR_BRIDGE, LOOPBACK };

/* Compared from top to bottom. */
struct rank {
	unsigned entry; /* of the include list */
	enum kind kind;
	bool ip6;
};

struct entry {
	char name[ENTRY_MAX]; /* of an interface, if bits is negative */
	uint8_t ip[16];
	int bits; /* of the 128 that count */
};

struct search {
	const char *include, *exclude;
	uint8_t default4[16], default6[16]; /* the source of the default route; zero: none */
	char *why;
	size_t size;
};

/* 0 and *e; -EINVAL: neither a name nor a network. */
static int read_network(const char *text, struct entry *e)
{
	char ip[ENTRY_MAX], *slash, *end = NULL;
	bool ip4;
	long bits;

	memcpy(ip, text, ENTRY_MAX);
	slash = strchr(ip, '/');
	if (slash)
		*slash = '\0';
	ip4 = !strchr(ip, ':');
	memset(e->ip, 0, 10);
	memset(e->ip + 10, 0xff, 2);
	if (inet_pton(ip4 ? AF_INET : AF_INET6, ip, ip4 ? e->ip + 12 : e->ip) != 1)
		return -EINVAL;
	bits = slash ? strtol(slash + 1, &end, 10) : ip4 ? 32 : 128;
	if ((slash && (end == slash + 1 || *end)) || bits < 0 || bits > (ip4 ? 32 : 128))
		return -EINVAL;
	e->bits = (int)bits + (ip4 ? 96 : 0);
	return 0;
}

/* Reads the entry at *list and moves on: 1; 0: there is none; -EINVAL. Blanks around it do not count. */
static int next_entry(const char **list, struct entry *e)
{
	const char *from = *list, *end, *to;

	from += strspn(from, ", \t");
	if (!*from)
		return 0;
	end = from + strcspn(from, ",");
	*list = end;
	for (to = end; to > from && (to[-1] == ' ' || to[-1] == '\t');)
		to--;
	memset(e, 0, sizeof(*e));
	memcpy(e->name, from, to - from < ENTRY_MAX ? (size_t)(to - from) : ENTRY_MAX - 1);
	if (to - from >= ENTRY_MAX)
		return -EINVAL;
	if (!read_network(e->name, e))
		return 1;
	e->bits = -1;
	return strlen(e->name) < IF_NAMESIZE && !strpbrk(e->name, "/: \t") ? 1 : -EINVAL;
}

static bool matches(const struct entry *e, const char *name, const uint8_t ip[16])
{
	int whole = e->bits / 8, rest = e->bits % 8;

	if (e->bits < 0)
		return !strcmp(e->name, name);
	if (memcmp(e->ip, ip, (size_t)whole))
		return false;
	return !rest || !((e->ip[whole] ^ ip[whole]) >> (8 - rest));
}

/* The place in the list of the first entry that matches; NOT_THERE. */
static unsigned place_in(const char *list, const char *name, const uint8_t ip[16])
{
	struct entry e;

	for (unsigned i = 0; list && next_entry(&list, &e) > 0; i++)
		if (matches(&e, name, ip))
			return i;
	return NOT_THERE;
}

static bool is_empty(const char *list)
{
	return !list || !list[strspn(list, ", \t")];
}

static int check_list(struct search *s, const char *which, const char *list)
{
	struct entry e;
	int r;

	if (!list)
		return 0;
	while ((r = next_entry(&list, &e)) > 0)
		;
	if (r)
		snprintf(s->why, s->size,
			"the %s list has '%s', which is neither an interface's name nor a network such as 10.1.0.0/16 "
			"or fd00::/8",
			which, e.name);
	return r;
}

static bool is_bridge(const char *name)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq r = {.ifr_data = (char *)&info};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	is = fd >= 0 && !ioctl(fd, SIOCETHTOOL, &r) && !strcmp(info.driver, "bridge");
	if (fd >= 0)
		close(fd);
	return is;
}

static enum kind kind_of(const struct search *s, const struct ifaddrs *a, const uint8_t ip[16])
{
	if (!memcmp(ip, s->default4, 16) || !memcmp(ip, s->default6, 16))
		return DEFAULT_ROUTE;
	if (a->ifa_flags & IFF_LOOPBACK)
		return LOOPBACK;
	return !(a->ifa_flags & IFF_RUNNING) || is_bridge(a->ifa_name) ? IDLE_OR_BRIDGE : ORDINARY;
}

/* Can the address be told to others at all? Then its IP. */
static bool usable(const struct ifaddrs *a, uint8_t ip[16])
{
	struct rwk_link_address place;
	union socket_name name;

	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP))
		return false;
	if (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6)
		return false;
	memcpy(&name, a->ifa_addr, a->ifa_addr->sa_family == AF_INET ? sizeof(name.in) : sizeof(name.in6));
	place = rwk_udp_from_name(&name);
	memcpy(ip, place.byte, 16);
	return rwk_udp_is_ip4(ip) || !(ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80);
}

static bool better(const struct rank *a, const struct rank *b)
{
	if (a->entry != b->entry)
		return a->entry < b->entry;
	return a->kind != b->kind ? a->kind < b->kind : a->ip6 < b->ip6;
}

static struct rank rank_of(const struct search *s, const struct ifaddrs *a, const uint8_t ip[16])
{
	struct rank r = {.entry = is_empty(s->include) ? 0 : place_in(s->include, a->ifa_name, ip)};

	if (place_in(s->exclude, a->ifa_name, ip) != NOT_THERE)
		r.entry = NOT_THERE;
	if (r.entry == NOT_THERE)
		return r;
	r.kind = kind_of(s, a, ip);
	r.ip6 = !rwk_udp_is_ip4(ip);
	return r;
}

/* "lo 127.0.0.1, eth0 10.0.0.5" */
static void list_all(const struct ifaddrs *all, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN];
	uint8_t ip[16];
	size_t at = 0;

	snprintf(out, size, "none");
	for (const struct ifaddrs *a = all; a && at < size; a = a->ifa_next) {
		if (!usable(a, ip))
			continue;
		inet_ntop(
			rwk_udp_is_ip4(ip) ? AF_INET : AF_INET6, rwk_udp_is_ip4(ip) ? ip + 12 : ip, text, sizeof(text));
		at += (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", a->ifa_name, text);
	}
}

static int choose(struct search *s, const struct ifaddrs *all, uint8_t ip[16])
{
	struct rank best = {.entry = NOT_THERE};
	uint8_t candidate[16];
	char there[512];

	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		struct rank r;

		if (!usable(a, candidate))
			continue;
		r = rank_of(s, a, candidate);
		if (!better(&r, &best))
			continue;
		best = r;
		memcpy(ip, candidate, 16);
	}
	if (best.entry != NOT_THERE)
		return 0;
	list_all(all, there, sizeof(there));
	snprintf(s->why, s->size,
		"no interface that is up matches the include list '%s' and not the exclude list '%s'; there are: %s",
		s->include ? s->include : "", s->exclude ? s->exclude : "", there);
	return -EADDRNOTAVAIL;
}

/* Somewhere out there: an address of a root name server each. Nothing is sent. */
static void find_default_routes(struct search *s)
{
	static const uint8_t out4[16] = {[10] = 0xff, 0xff, 198, 41, 0, 4};
	static const uint8_t out6[16] = {0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, [13] = 0x02, [15] = 0x30};

	if (rwk_udp_route_ip(out4, s->default4))
		memset(s->default4, 0, 16);
	if (rwk_udp_route_ip(out6, s->default6))
		memset(s->default6, 0, 16);
}

int rwk_udp_own_ip(const char *include, const char *exclude, uint8_t ip[16], char *why, size_t size)
{
	struct search s = {.include = include, .exclude = exclude, .why = why, .size = size};
	uint8_t found[16];
	struct ifaddrs *all;
	int err = check_list(&s, "include", include);

	if (!err)
		err = check_list(&s, "exclude", exclude);
	if (err)
		return err;
	if (getifaddrs(&all)) {
		err = -errno;
		snprintf(why, size, "the interfaces of this host cannot be listed: %s", strerror(-err));
		return err;
	}
	find_default_routes(&s);
	err = choose(&s, all, found);
	freeifaddrs(all);
	if (!err)
		memcpy(ip, found, 16);
	return err;
}
