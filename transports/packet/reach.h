/* SPDX-License-Identifier: BSD-3-Clause */
/* SRC: reads and writes that the peer's siblings carry out as well as it does: reach.c. */
#ifndef RWK_PACKET_REACH_H
#define RWK_PACKET_REACH_H

#include "packet/regions.h"
#include "packet/request.h"

/** May long reads and writes go directly? The channel is open. */
void rwk_packet_reach_begin(struct rwk_packet_channel *ch);
/** Lets the siblings carry out what the peer does with a region that was added; completes *key. As expose. */
int rwk_packet_publish(struct rwk_packet_channel *ch, const struct iovec *iov, uint32_t count, struct rwk_rkey *key);
void rwk_packet_withdraw_key(struct rwk_packet_channel *ch, uint32_t key);
/** Is that a read or write that the peer's siblings carry out? */
static inline bool rwk_packet_is_published(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return ch->shared && op->rkey.word[2] == RWK_RKEY_PUBLISHED;
}
/** Is it beyond the region's end? */
static inline bool rwk_packet_is_beyond(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	uint64_t length = rwk_rkey_length(&op->rkey);

	return rwk_packet_is_published(ch, op) &&
	       (op->offset > length || op->length > length - op->offset);
}
/** Starts one: 0 or -ENOMEM. */
int rwk_packet_reach_out(struct rwk_packet_channel *ch, struct rwk_op *op);
/** All parts of an op are there: true, if it is to be asked once more whether that is so, and it is not done yet. */
bool rwk_packet_reach_read(struct rwk_packet_channel *ch, struct rwk_op *op);
/** The answer has come: what it says. */
int rwk_packet_reach_status(const struct rwk_request *r);

#endif
