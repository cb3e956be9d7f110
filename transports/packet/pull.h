/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service's own records, and what they ask of the peer: a Read where the machine has none is a Write by the peer;
 * and a Write or a Send that nobody answers is asked about.
 */
#ifndef RWK_PACKET_PULL_H
#define RWK_PACKET_PULL_H

#include "packet/request.h"

/** Kinds of the service's own records. */
enum {
	RWK_KIND_PULL = RWK_KIND_SERVICE, /* please write to me */
	RWK_KIND_PULLED,                  /* that is done: tag the id, small the positive errno */
	RWK_KIND_BYE,                     /* the last record: the channel ends in good order */
	RWK_KIND_WROTE, /* UC, SRC: please say (PULLED, with this tag) whether all that I wrote, and sent, has come */
};

int rwk_packet_pull(struct rwk_packet_channel *ch, struct rwk_op *op);
void rwk_packet_pull_asked(struct rwk_packet_channel *ch, const void *bytes, size_t len);
void rwk_packet_pull_answered(struct rwk_packet_channel *ch, const struct rwk_envelope *env);
void rwk_packet_pull_part(struct rwk_request *r, int status);
/** UC, SRC: a write that is done when the peer has said that it is in place. 0 or -ENOMEM. */
int rwk_packet_push(struct rwk_packet_channel *ch, struct rwk_op *op);
/** Asks whether the send that is posted next has come: the answer is one of its parts. False: out of memory or room. */
bool rwk_packet_ask_behind(struct rwk_packet_channel *ch, struct rwk_op *op);
void rwk_packet_push_asked(struct rwk_packet_channel *ch, const struct rwk_envelope *env);
/** Answers those that have been written. */
void rwk_packet_pulls_answer(struct rwk_packet_channel *ch);
/**
 * The region with that key is concealed: what the peer is being sent of it goes on from a copy if it has begun, and is
 * refused if it has not.
 */
void rwk_packet_pulls_conceal(struct rwk_packet_channel *ch, uint32_t key);
/** Nothing is answered any more, and nothing that waits for an answer goes on: it ends with that status. */
void rwk_packet_pulls_stop(struct rwk_packet_channel *ch, int status);

#endif
