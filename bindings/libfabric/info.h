/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider has: capabilities and limits, in one place. info.c offers them, hints.c measures requests by them.
 */
#ifndef RWK_FI_INFO_H
#define RWK_FI_INFO_H

#include "bindings/libfabric/provider.h"
#include "engine/engine.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#define RWK_FI_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define RWK_FI_TX_CAPS \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE)
#define RWK_FI_RX_CAPS \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | \
		FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV)
#define RWK_FI_CAPS (RWK_FI_TX_CAPS | RWK_FI_RX_CAPS | RWK_FI_DOMAIN_CAPS)

#define RWK_FI_TX_OP_FLAGS \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
		FI_MATCH_COMPLETE)
#define RWK_FI_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* What rma.h promises of reads and writes among themselves, up to RWK_FI_MAX_ORDER; nothing of sends towards them. */
#define RWK_FI_MSG_ORDER \
	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | \
		FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | \
		FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define RWK_FI_MAX_ORDER  1024 /* bytes; the least from which on they may go directly (rwk_channel.direct_min) */
#define RWK_FI_MAX_MSG    (SIZE_MAX / 2)
#define RWK_FI_TAG_FORMAT 0xaaaaaaaaaaaaaaaaULL /* "generic": all 64 bits can be matched and ignored */
#define RWK_FI_PROTO      (0x80000000u | 0x52574bu)

#define RWK_FI_TX_SIZE     1024 /* sends under way at an endpoint, unless asked otherwise */
#define RWK_FI_TX_SIZE_MAX 65536
#define RWK_FI_RX_SIZE     8192 /* a promise only: the number of receives posted is not limited */
#define RWK_FI_RX_SIZE_MAX ((size_t)1 << 20)
#define RWK_FI_OBJECTS     65536 /* endpoints, queues, counters of a domain; memory is the real limit */
#define RWK_FI_DATA_SIZE   8     /* bytes of remote CQ data */

/** Capabilities completed: none are all, and what is not restricted to a direction has both. */
uint64_t rwk_fi_complete_caps(uint64_t caps);

/** Whether what we have covers the hints: 0, or -FI_ENODATA with each mismatch logged at info level. */
int rwk_fi_check_hints(const struct fi_info *hints);

#endif
