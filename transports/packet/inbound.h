/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes from the machines: frames into messages, and what the peer's RDMA touches: inbound.c. */
#ifndef RWK_PACKET_INBOUND_H
#define RWK_PACKET_INBOUND_H

#include "packet/channel.h"

#include "machine.h"

/** A piece of a Send, and of a Write, for this channel: 0, or a refusal. */
int rwk_packet_receive(struct rwk_packet_channel *ch, unsigned where, const void *bytes, size_t len);
int rwk_packet_write(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, const void *bytes, size_t len);
extern const struct rwk_machine_host rwk_packet_host;
void rwk_packet_kept_free(struct rwk_packet_channel *ch);

#endif
