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
#define RWK_FI_TX_CAPS     (FI_MSG | FI_TAGGED | FI_SEND)
#define RWK_FI_RX_CAPS     (FI_MSG | FI_TAGGED | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV)
#define RWK_FI_CAPS        (RWK_FI_TX_CAPS | RWK_FI_RX_CAPS | RWK_FI_DOMAIN_CAPS)

/*
 * What a request that names no capabilities gets. FI_REMOTE_COMM is not among them: peers on other nodes cannot be
 * reached yet, and a send to one says so (-FI_EHOSTUNREACH). It is granted to those who ask, because MPI libraries ask
 * for it whether or not the job leaves the node.
 */
#define RWK_FI_CAPS_UNASKED (RWK_FI_CAPS & ~FI_REMOTE_COMM)

#define RWK_FI_TX_OP_FLAGS \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
		FI_MATCH_COMPLETE)
#define RWK_FI_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

#define RWK_FI_MSG_ORDER  FI_ORDER_SAS
#define RWK_FI_MAX_MSG    (SIZE_MAX / 2)
#define RWK_FI_TAG_FORMAT 0xaaaaaaaaaaaaaaaaULL /* "generic": all 64 bits can be matched and ignored */
#define RWK_FI_PROTO      (0x80000000u | 0x52574bu)

#define RWK_FI_TX_SIZE     1024 /* sends under way at an endpoint, unless asked otherwise */
#define RWK_FI_TX_SIZE_MAX 65536
#define RWK_FI_RX_SIZE     8192 /* a promise only: the number of receives posted is not limited */
#define RWK_FI_RX_SIZE_MAX ((size_t)1 << 20)
#define RWK_FI_OBJECTS     65536 /* endpoints, queues, counters of a domain; memory is the real limit */
#define RWK_FI_DATA_SIZE   8     /* bytes of remote CQ data */

/** Whether what we have covers the hints: 0, or -FI_ENODATA with each mismatch logged at info level. */
int rwk_fi_check_hints(const struct fi_info *hints);

#endif
