/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of network interfaces that may be used, as a user writes it: entries with commas between them, blanks around
 * them do not count. An entry is an interface's name, an address, or a network (address/bits, IPv4 or IPv6); with ! in
 * front of it, it is one not to use.
 */
#ifndef RWK_BASE_INTERFACES_H
#define RWK_BASE_INTERFACES_H

#include <stddef.h>

#define RWK_INTERFACES_EXAMPLE "eth0,10.0.0.0/8,!docker0"

/**
 * Whether `list` can be read: 0, or -EINVAL with the reason in `why` (at most `len` bytes), which goes behind
 * "FI_ROPEWALK_INTERFACES=... is".
 */
int rwk_interfaces_check(const char *list, char *why, size_t len);

/**
 * Takes a good list apart: what to use and what not to use, each a list without ! and blanks, empty if there is none.
 * Both have room for strlen(list) + 1 bytes. NULL is an empty list.
 */
void rwk_interfaces_split(const char *list, char *include, char *exclude);

#endif
