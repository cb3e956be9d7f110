/* SPDX-License-Identifier: BSD-3-Clause */
/* What a QP consists of: shared by uc.c (states, requester) and responder.c. */
#ifndef RWK_UC_INTERNAL_H
#define RWK_UC_INTERNAL_H

#include "uc/uc.h"

/** The message that the responder is in. */
enum uc_message {
	UC_NONE, /* none: a First or an Only comes next */
	UC_SEND,
	UC_WRITE,
	UC_DROPPED, /* perhaps one that is dropped: what is no First or Only is passed over */
};

/**
 * Fixed in size and without a pointer: what it takes to go on with a message is here, so that any process that maps it
 * can take the next packet. Zeroed it is a new one.
 */
struct uc_responder {
	uint32_t open;    /* the rest is in use */
	uint32_t message; /* enum uc_message */
	uint32_t psn;     /* expected next */
	uint32_t key;     /* WRITE: from the First packet (S3-2) */
	uint64_t address; /* WRITE: where the next piece goes */
	uint64_t left;    /* WRITE: bytes to come */
};

struct rwk_uc {
	const struct rwk_machine_host *host;
	void *user;
	struct uc_responder *responder;
	void (*lost)(void *user);
	enum rwk_qp_state state;
	struct rwk_uc_attr attr;
	struct rwk_list posted; /* of rwk_wr.link; the first may have packets out */
	struct rwk_list end;    /* among these, during a pump: of those that were posted when it began */
	uint32_t psn;           /* of the next packet out */
	struct rwk_qp_counters counters;
};

/** Ends all that is posted with -ECANCELED. */
void uc_flush(struct rwk_uc *qp);

#endif
