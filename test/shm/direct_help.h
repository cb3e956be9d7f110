/* SPDX-License-Identifier: BSD-3-Clause */
/* Long direct reads and writes, of which the target copies a part: what their tests have in common. */
#ifndef TEST_SHM_DIRECT_HELP_H
#define TEST_SHM_DIRECT_HELP_H

#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"
#include "shm/transfer_claim.h"

enum { LONG = (8 << 20) + 12345, PLACE = RWK_SHM_CLAIM_DIRECT };

extern unsigned char shared_place[LONG]; /* at the same address in every process here */

struct plan {
	bool write;
	unsigned pieces;
	bool stop; /* the channel, rather than to wait */
};

bool is(const unsigned char *p, size_t n, unsigned char value);
/** Posts it, as the plan says, to be shared. */
int begin(struct rwk_shm_channel *ch, struct tp_op *o, const struct plan *p, struct iovec *iov);
/** Bytes that this process has copied for the other one. */
uint64_t helped(struct rwk_shm_channel *ch);

#endif
