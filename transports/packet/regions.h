/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers may reach: regions.c. */
#ifndef RWK_PACKET_REGIONS_H
#define RWK_PACKET_REGIONS_H

#include "packet/channel.h"
#include "packet/port.h"

#include "memory/keys.h"

#define RWK_RKEY_MARK      0x726f7065u /* in an rkey's second word: it is of this service */
#define RWK_RKEY_PUBLISHED 1u          /* its third: SRC's Reads and Writes reach it */

int rwk_packet_region_add(
	struct rwk_packet_channel *ch, const struct iovec *iov, uint32_t count, unsigned reach, uint32_t *key);
void rwk_packet_region_remove(struct rwk_packet_channel *ch, uint32_t key);
/** The channel is gone: so are its regions, which the client has no way to conceal any more. */
void rwk_packet_regions_drop(struct rwk_packet_channel *ch);
/** As rwk_keys_check and rwk_keys_find. */
int rwk_packet_region_check(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, size_t len, unsigned reach);
int rwk_packet_region_find(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, size_t len, unsigned reach,
	struct iovec *iov, int max);
/** The channel is to have that QPN, by which its regions are known as its own: they stay so. */
void rwk_packet_regions_move(struct rwk_packet_channel *ch, uint32_t qpn);
/** All are gone. */
void rwk_packet_regions_free(struct rwk_port *port);

#endif
