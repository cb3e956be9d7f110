/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses in the two formats that users see: native (struct rwk_address as it is) and FI_SOCKADDR_IN. Inside there is
 * one: struct rwk_address, partial if it came from a socket address.
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

/** The reverse, into rwk_fi_address_size(format) bytes at `to`. */
void rwk_fi_address_write(uint32_t format, const struct rwk_address *a, void *to);

/**
 * Gives `a` to a caller with room for *len bytes, in the manner of fi_getname: as much as fits, *len the size needed,
 * -FI_ETOOSMALL if that was more.
 */
int rwk_fi_address_give(uint32_t format, const struct rwk_address *a, void *to, size_t *len);

/**
 * Asks the resolver for the IPv4 address of `node` and `service` (either may be NULL). `passive`: for binding, so that
 * no node means any. 0 and *a set to a partial address; -FI_ENODATA: no such address. May block on the resolver unless
 * `numeric`.
 */
int rwk_fi_address_resolve(const char *node, const char *service, bool passive, bool numeric, struct rwk_address *a);

/** A partial address from its parts; `ip` in network order, as sin_addr.s_addr. */
void rwk_fi_address_partial(uint32_t ip, uint16_t port, struct rwk_address *a);

/** Writes an address for people to read, at most `len` bytes with the terminator; returns the bytes that it needs. */
size_t rwk_fi_address_show(const struct rwk_address *a, char *buf, size_t len);

#endif
