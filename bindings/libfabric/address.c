/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/address.h"

#include "base/cancel.h"
#include "base/log.h"
#include "bindings/libfabric/provider.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

size_t rwk_fi_address_size(uint32_t format)
{
	switch (format) {
	case RWK_FI_ADDR_FORMAT:
		return sizeof(struct rwk_address);
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
		return sizeof(struct sockaddr_in);
	case FI_SOCKADDR_IN6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

const char *rwk_fi_address_format_name(uint32_t format)
{
	if (format == RWK_FI_ADDR_FORMAT)
		return "ropewalk's own, version 1";
	return format == FI_SOCKADDR_IN6 ? "FI_SOCKADDR_IN6" : "FI_SOCKADDR_IN";
}

bool rwk_fi_address_is_ip4(const struct rwk_address *a)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a->ip);
}

void rwk_fi_address_ip4(uint32_t ip, uint8_t to[16])
{
	memset(to, 0, 10);
	to[10] = to[11] = 0xff;
	memcpy(to + 12, &ip, sizeof(ip));
}

void rwk_fi_address_partial(const uint8_t ip[16], uint16_t port, struct rwk_address *a)
{
	static const uint8_t unspecified[16];

	memset(a, 0, sizeof(*a));
	a->version_srq = RWK_ADDR_VERSION << 24;
	a->flags_rank = RWK_ADDR_PARTIAL;
	a->nonce_port = port;
	if (!memcmp(ip, unspecified, sizeof(unspecified)))
		rwk_fi_address_ip4(INADDR_ANY, a->ip); /* one way to say any */
	else
		memcpy(a->ip, ip, sizeof(a->ip));
}

static void from_in(const struct sockaddr_in *in, struct rwk_address *a)
{
	uint8_t ip[16];

	rwk_fi_address_ip4(in->sin_addr.s_addr, ip);
	rwk_fi_address_partial(ip, ntohs(in->sin_port), a);
}

static void from_in6(const struct sockaddr_in6 *in6, struct rwk_address *a)
{
	rwk_fi_address_partial(in6->sin6_addr.s6_addr, ntohs(in6->sin6_port), a);
}

int rwk_fi_address_read(uint32_t format, const void *from, struct rwk_address *a)
{
	struct rwk_address native;
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (format == RWK_FI_ADDR_FORMAT) {
		memcpy(&native, from, sizeof(native));
		if (native.version_srq >> 24 != RWK_ADDR_VERSION)
			return -FI_EINVAL;
		*a = native;
		return 0;
	}
	if (format == FI_SOCKADDR_IN6) {
		memcpy(&in6, from, sizeof(in6));
		if (in6.sin6_family != AF_INET6)
			return -FI_EINVAL;
		from_in6(&in6, a);
		return 0;
	}
	memcpy(&in, from, sizeof(in));
	if (in.sin_family != AF_INET)
		return -FI_EINVAL;
	from_in(&in, a);
	return 0;
}

int rwk_fi_address_bind(uint32_t format, const void *from, size_t len, bool enabled, struct rwk_address *a)
{
	if (enabled)
		return -FI_EOPBADSTATE;
	return len < rwk_fi_address_size(format) ? -FI_EINVAL : rwk_fi_address_read(format, from, a);
}

static void write_in6(const struct rwk_address *a, void *to)
{
	static const uint8_t any[4];
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(rwk_address_port(a))};

	if (!rwk_fi_address_is_ip4(a) || memcmp(a->ip + 12, any, sizeof(any)))
		memcpy(&in6.sin6_addr, a->ip, sizeof(in6.sin6_addr));
	memcpy(to, &in6, sizeof(in6));
}

int rwk_fi_address_write(uint32_t format, const struct rwk_address *a, void *to)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(rwk_address_port(a))};

	if (format == RWK_FI_ADDR_FORMAT) {
		memcpy(to, a, sizeof(*a));
		return 0;
	}
	if (format == FI_SOCKADDR_IN6) {
		write_in6(a, to);
		return 0;
	}
	if (!rwk_fi_address_is_ip4(a))
		return -FI_EADDRNOTAVAIL;
	memcpy(&in.sin_addr, a->ip + 12, sizeof(in.sin_addr));
	memcpy(to, &in, sizeof(in));
	return 0;
}

int rwk_fi_address_give(uint32_t format, const struct rwk_address *a, void *to, size_t *len)
{
	unsigned char buf[sizeof(struct rwk_address)];
	size_t need = rwk_fi_address_size(format), room = *len;

	_Static_assert(sizeof(buf) >= sizeof(struct sockaddr_in6), "the native address is the longest one");
	if (rwk_fi_address_write(format, a, buf)) {
		rwk_warn(
			"an address of IPv6 has no form in FI_SOCKADDR_IN; the program should ask for FI_SOCKADDR_IN6");
		return -FI_EADDRNOTAVAIL;
	}
	if (room && to)
		memcpy(to, buf, room < need ? room : need);
	*len = need;
	return room < need ? -FI_ETOOSMALL : 0;
}

static int resolve(int family, const char *node, const char *service, int flags, struct rwk_address *a)
{
	struct addrinfo want = {.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	struct addrinfo *found;
	int err = getaddrinfo(node, service, &want, &found);

	if (err)
		return err;
	if (found->ai_family == AF_INET6) {
		memcpy(&in6, found->ai_addr, sizeof(in6));
		from_in6(&in6, a);
	} else {
		memcpy(&in, found->ai_addr, sizeof(in));
		from_in(&in, a);
	}
	freeaddrinfo(found);
	return 0;
}

int rwk_fi_address_resolve(
	uint32_t format, const char *node, const char *service, bool passive, bool numeric, struct rwk_address *a)
{
	RWK_CANCEL_HELD_OFF;
	int flags = (passive ? AI_PASSIVE : 0) | (numeric ? AI_NUMERICHOST : 0), err;

	if (format == FI_SOCKADDR_IN6) {
		err = resolve(AF_INET6, node, service, flags | AI_V4MAPPED, a);
	} else {
		err = resolve(AF_INET, node, service, flags, a);
		if (err && format != FI_SOCKADDR_IN)
			err = resolve(AF_INET6, node, service, flags, a);
	}
	if (!err)
		return 0;
	rwk_info("node %s, service %s: %s", node ? node : "(none)", service ? service : "(none)", gai_strerror(err));
	return -FI_ENODATA;
}

size_t rwk_fi_address_show(const struct rwk_address *a, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN], at[INET6_ADDRSTRLEN + 2 + 6]; /* [IP]:port */
	bool v4 = rwk_fi_address_is_ip4(a);
	int n;

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->ip + 12 : a->ip, ip, sizeof(ip));
	snprintf(at, sizeof(at), v4 ? "%s:%u" : "[%s]:%u", ip, rwk_address_port(a));
	if (a->flags_rank & RWK_ADDR_PARTIAL && a->version_srq & 0xffffff)
		n = snprintf(buf, len, "ropewalk://%s/qpn=%06x/qkey=%08x", at, a->version_srq & 0xffffff, a->job);
	else if (a->flags_rank & RWK_ADDR_PARTIAL)
		n = snprintf(buf, len, "fi_sockaddr_in%s://%s", v4 ? "" : "6", at);
	else if (rwk_address_rank(a) == RWK_ADDR_NO_RANK)
		n = snprintf(buf, len, "ropewalk://%s/node=%08x/nonce=%012llx", at, a->node,
			(unsigned long long)(a->nonce_port >> 16));
	else
		n = snprintf(
			buf, len, "ropewalk://%s/node=%08x/job=%08x/rank=%u", at, a->node, a->job, rwk_address_rank(a));
	return (size_t)n + 1;
}
