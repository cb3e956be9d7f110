/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses in the formats that users see: native (struct rwk_address as it is), FI_SOCKADDR_IN and FI_SOCKADDR_IN6.
 * Inside there is one: struct rwk_address, partial if it came from a socket address. The IP that stands for any is
 * 0.0.0.0 inside, whatever family it came from. An FI_SOCKADDR_IN6 may have an IPv4 address mapped into it; the scope
 * of a link-local one is not kept.
 */
#ifndef RWK_FI_ADDRESS_H
#define RWK_FI_ADDRESS_H

#include "transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of an address in that format; 0: a format that is not ours. */
size_t rwk_fi_address_size(uint32_t format);

/**
 * Reads the address at `from`, of rwk_fi_address_size(format) bytes, not necessarily aligned.
 * 0 and *a set; -FI_EINVAL: not an address of that format (wrong family, foreign version). The port may be 0.
 */
int rwk_fi_address_read(uint32_t format, const void *from, struct rwk_address *a);

/**
 * The same of an address that a program gives, of `len` bytes, for an endpoint to be bound to. 0 and *a set;
 * -FI_EINVAL; -FI_EOPBADSTATE: it is `enabled`, and has one already.
 */
int rwk_fi_address_bind(uint32_t format, const void *from, size_t len, bool enabled, struct rwk_address *a);

/** The format's name, for messages. */
const char *rwk_fi_address_format_name(uint32_t format);

/**
 * The reverse, into rwk_fi_address_size(format) bytes at `to`. 0; -FI_EADDRNOTAVAIL: an address of IPv6 in
 * FI_SOCKADDR_IN.
 */
int rwk_fi_address_write(uint32_t format, const struct rwk_address *a, void *to);

/**
 * Gives `a` to a caller with room for *len bytes, in the manner of fi_getname: as much as fits, *len the size needed,
 * -FI_ETOOSMALL if that was more. -FI_EADDRNOTAVAIL as rwk_fi_address_write, logged.
 */
int rwk_fi_address_give(uint32_t format, const struct rwk_address *a, void *to, size_t *len);

/**
 * Asks the resolver for the address of `node` and `service` (either may be NULL): for FI_SOCKADDR_IN of IPv4, for
 * FI_SOCKADDR_IN6 of IPv6 or else one of IPv4 mapped into it, for any other format of IPv4 or else of IPv6. `passive`:
 * for binding, so that no node means any. 0 and *a set to a partial address; -FI_ENODATA: no such address. May block on
 * the resolver unless `numeric`.
 */
int rwk_fi_address_resolve(
	uint32_t format, const char *node, const char *service, bool passive, bool numeric, struct rwk_address *a);

/** A partial address from its parts; `ip` as in struct rwk_address. */
void rwk_fi_address_partial(const uint8_t ip[16], uint16_t port, struct rwk_address *a);

/** An IPv4 address (in network order, as sin_addr.s_addr) as struct rwk_address has it, and whether that is one. */
void rwk_fi_address_ip4(uint32_t ip, uint8_t to[16]);
bool rwk_fi_address_is_ip4(const struct rwk_address *a);

/** Writes an address for people to read, at most `len` bytes with the terminator; returns the bytes that it needs. */
size_t rwk_fi_address_show(const struct rwk_address *a, char *buf, size_t len);

#endif
