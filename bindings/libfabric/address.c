/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/address.h"

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
	default:
		return 0;
	}
}

void rwk_fi_address_partial(uint32_t ip, uint16_t port, struct rwk_address *a)
{
	memset(a, 0, sizeof(*a));
	a->version_srq = RWK_ADDR_VERSION << 24;
	a->flags_rank = RWK_ADDR_PARTIAL;
	a->nonce_port = port;
	a->ip[10] = a->ip[11] = 0xff;
	memcpy(a->ip + 12, &ip, sizeof(ip));
}

int rwk_fi_address_read(uint32_t format, const void *from, struct rwk_address *a)
{
	struct rwk_address native;
	struct sockaddr_in in;

	if (format == RWK_FI_ADDR_FORMAT) {
		memcpy(&native, from, sizeof(native));
		if (native.version_srq >> 24 != RWK_ADDR_VERSION)
			return -FI_EINVAL;
		*a = native;
		return 0;
	}
	memcpy(&in, from, sizeof(in));
	if (in.sin_family != AF_INET)
		return -FI_EINVAL;
	rwk_fi_address_partial(in.sin_addr.s_addr, ntohs(in.sin_port), a);
	return 0;
}

void rwk_fi_address_write(uint32_t format, const struct rwk_address *a, void *to)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(rwk_address_port(a))};

	if (format == RWK_FI_ADDR_FORMAT) {
		memcpy(to, a, sizeof(*a));
		return;
	}
	memcpy(&in.sin_addr, a->ip + 12, sizeof(in.sin_addr));
	memcpy(to, &in, sizeof(in));
}

int rwk_fi_address_give(uint32_t format, const struct rwk_address *a, void *to, size_t *len)
{
	unsigned char buf[sizeof(struct rwk_address)];
	size_t need = rwk_fi_address_size(format), room = *len;

	_Static_assert(sizeof(buf) >= sizeof(struct sockaddr_in), "the native address is the longer one");
	rwk_fi_address_write(format, a, buf);
	if (room && to)
		memcpy(to, buf, room < need ? room : need);
	*len = need;
	return room < need ? -FI_ETOOSMALL : 0;
}

int rwk_fi_address_resolve(const char *node, const char *service, bool passive, bool numeric, struct rwk_address *a)
{
	struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct sockaddr_in in;
	struct addrinfo *found;
	int err;

	want.ai_flags = (passive ? AI_PASSIVE : 0) | (numeric ? AI_NUMERICHOST : 0);
	err = getaddrinfo(node, service, &want, &found);
	if (err) {
		rwk_info("node %s, service %s: %s", node ? node : "(none)", service ? service : "(none)",
			gai_strerror(err));
		return -FI_ENODATA;
	}
	memcpy(&in, found->ai_addr, sizeof(in));
	freeaddrinfo(found);
	rwk_fi_address_partial(in.sin_addr.s_addr, ntohs(in.sin_port), a);
	return 0;
}

size_t rwk_fi_address_show(const struct rwk_address *a, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN];
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a->ip);
	int n;

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->ip + 12 : a->ip, ip, sizeof(ip));
	if (a->flags_rank & RWK_ADDR_PARTIAL)
		n = snprintf(buf, len, "fi_sockaddr_in://%s:%u", ip, rwk_address_port(a));
	else if (rwk_address_rank(a) == RWK_ADDR_NO_RANK)
		n = snprintf(buf, len, "ropewalk://%s:%u/node=%08x/nonce=%012llx", ip, rwk_address_port(a), a->node,
			(unsigned long long)(a->nonce_port >> 16));
	else
		n = snprintf(buf, len, "ropewalk://%s:%u/node=%08x/job=%08x/rank=%u", ip, rwk_address_port(a), a->node,
			a->job, rwk_address_rank(a));
	return (size_t)n + 1;
}
