/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of network interfaces that may be used, as a user writes it: entries with commas between them, blanks around
 * them do not count. An entry is an interface's name, a pattern of names (* and ?), an address, or a network
 * (address/bits, IPv4 or IPv6); with ! in front of it, it is one not to use.
 */
#ifndef RWK_BASE_INTERFACES_H
#define RWK_BASE_INTERFACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RWK_INTERFACES_EXAMPLE "eth0,10.0.0.0/8,!docker*"

/**
 * Whether `list` can be read: 0, or -EINVAL with the reason in `why` (at most `len` bytes), which goes behind
 * "FI_ROPEWALK_INTERFACES=... is".
 */
int rwk_interfaces_check(const char *list, char *why, size_t len);

/**
 * Whether the address `ip` (IPv6, or IPv4 mapped into it) of the interface `name` may be used: no entry with ! is about
 * it, and one without is, or there is none without. NULL and an empty list allow everything; a list that check refuses
 * allows what its good entries do.
 */
bool rwk_interfaces_allow(const char *list, const char *name, const uint8_t ip[16]);

#endif
