/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as an address that a program hands in: in each format, or as the names of a node and a service. What must
 * hold: nothing outside of them is read, and nothing outside of the room written that was given; what is taken is
 * written back as it was, but for what the format does not have; the text for people ends where it says.
 *
 *   byte 0 says which; then the address, or node, a zero, service
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

static void *copy_of(const void *bytes, size_t len)
{
	void *copy = malloc(len ? len : 1);

	must(copy != NULL);
	if (len)
		memcpy(copy, bytes, len);
	return copy;
}

/* In a buffer of each length up to one more than it needs. */
static void show(const struct rwk_address *a)
{
	size_t need = rwk_fi_address_show(a, NULL, 0);

	must(need > 1 && need < 200);
	for (size_t room = 1; room <= need + 1; room += room < 4 ? 1 : 7) {
		char *text = malloc(room);

		must(text && rwk_fi_address_show(a, text, room) == need);
		must(strnlen(text, room) == (room < need ? room : need) - 1);
		free(text);
	}
}

/* As fi_getname, into so much room. */
static void give(uint32_t format, const struct rwk_address *a, size_t room)
{
	unsigned char *to = malloc(room ? room : 1);
	size_t len = room, need = rwk_fi_address_size(format);
	int rc = rwk_fi_address_give(format, a, to, &len);

	must(to != NULL);
	if ((format == FI_SOCKADDR_IN || format == FI_SOCKADDR) && !rwk_fi_address_is_ip4(a))
		must(rc == -FI_EADDRNOTAVAIL && len == room);
	else
		must(len == need && rc == (room < need ? -FI_ETOOSMALL : 0));
	free(to);
}

/* Does it come back as it went in? */
static void there_and_back(uint32_t format, const struct rwk_address *a)
{
	unsigned char bytes[sizeof(struct rwk_address)];
	struct rwk_address again;

	if (rwk_fi_address_write(format, a, bytes)) {
		must((format == FI_SOCKADDR_IN || format == FI_SOCKADDR) && !rwk_fi_address_is_ip4(a));
		return;
	}
	must(!rwk_fi_address_read(format, bytes, &again));
	must(rwk_address_port(&again) == rwk_address_port(a) && !memcmp(again.ip, a->ip, sizeof(a->ip)));
	must(format != RWK_FI_ADDR_FORMAT || !memcmp(&again, a, sizeof(again)));
}

static void look_at(const struct rwk_address *a, const uint32_t formats[4], size_t room)
{
	show(a);
	for (unsigned i = 0; i < 4; i++) {
		/* :: is 0.0.0.0 inside, but in a native address, which nobody changes. */
		if (!IN6_IS_ADDR_UNSPECIFIED((const struct in6_addr *)(const void *)a->ip))
			there_and_back(formats[i], a);
		give(formats[i], a, room);
	}
}

/* Numbers alone: the resolver is not what is looked at. */
static void resolve(uint32_t format, const uint8_t *bytes, size_t len, bool passive)
{
	char *text = malloc(len + 2), *service;
	struct rwk_address a;
	int rc;

	must(text != NULL);
	memcpy(text, bytes, len);
	text[len] = text[len + 1] = 0;
	service = text + strlen(text) + 1;
	rc = rwk_fi_address_resolve(format, *text ? text : NULL, *service ? service : NULL, passive, true, &a);
	must(rc == 0 || rc == -FI_ENODATA);
	if (!rc) {
		must(a.flags_rank == RWK_ADDR_PARTIAL);
		must(format != FI_SOCKADDR_IN || rwk_fi_address_is_ip4(&a));
		show(&a);
		there_and_back(format, &a);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const uint32_t formats[4] = {RWK_FI_ADDR_FORMAT, FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6};
	uint32_t format;
	struct rwk_address a;
	size_t size;
	void *copy;

	if (!len)
		return 0;
	rwk_log_set_sink(no_log);
	format = formats[bytes[0] & 3];
	if (bytes[0] & 4) {
		resolve(format, bytes + 1, len - 1, bytes[0] & 8);
		return 0;
	}
	size = rwk_fi_address_size(format);
	must(size > 0 && size <= sizeof(struct rwk_address) && !rwk_fi_address_size(bytes[0] | 0x40000000u));
	if (len - 1 < size)
		return 0;
	copy = copy_of(bytes + 1, size);
	if (!rwk_fi_address_read(format, copy, &a)) {
		there_and_back(format, &a);
		look_at(&a, formats, len - 1 - size);
	}
	free(copy);
	return 0;
}
