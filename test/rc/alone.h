/* SPDX-License-Identifier: BSD-3-Clause */
/* A strict end by itself: the test is its peer, and looks at every packet. */
#ifndef TEST_RC_ALONE_H
#define TEST_RC_ALONE_H

#include "rwk_test.h"

#include "rc/end.h"

#define PMTU 256u
#define US   1000ull
#define MS   1000000ull

static uint8_t bytes[400 * PMTU], back[400 * PMTU];
static struct rwk_wr wrs[400];
static struct iovec iovs[400];
static struct rwk_rc_attr attr;

static int setup(void **state)
{
	(void)state;
	attr = end_strict();
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13 + i / 255);
	return 0;
}

static inline void post(struct end *e, unsigned i, unsigned type, size_t len)
{
	wrs[i] = end_wr(type, &iovs[i], type == RWK_WR_READ ? back : bytes, len);
	end_post(e, &wrs[i]);
}

#endif
