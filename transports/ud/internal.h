/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair. */
#ifndef RWK_UD_INTERNAL_H
#define RWK_UD_INTERNAL_H

#include "link.h"
#include "ud/ud.h"

struct rwk_ud {
	struct rwk_link *link;
	struct rwk_ud_attr attr; /* complete */
	struct rwk_list posted;  /* rwk_ud_receive.link, the oldest first */
	uint32_t psn;            /* of the next datagram; it means nothing */
	struct rwk_ud_counters count;
};

#endif
