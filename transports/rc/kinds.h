/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operation of a request is, for those who take requests. */
#ifndef RWK_RC_KINDS_H
#define RWK_RC_KINDS_H

#include "internal.h"

enum {
	FIRST = RWK_PIECE_FIRST,
	LAST = RWK_PIECE_LAST,
	SEND = 1 << 2,
	WRITE = 1 << 3,
	IMM = 1 << 4,
	READ = 1 << 5,
	ATOMIC = 1 << 6,
};

/** By operation; 0: it is no request. */
extern const uint8_t rwk_rc_kinds[32];

static inline unsigned rwk_rc_kind(const struct rwk_wire *w)
{
	return rwk_rc_kinds[RWK_WIRE_OPERATION(w->opcode)];
}

#endif
