/* SPDX-License-Identifier: BSD-3-Clause */
/* What the calls of rma.c and atomic.c share: from libfabric's arguments to the engine's. */
#ifndef RWK_FI_RMA_H
#define RWK_FI_RMA_H

#include "bindings/libfabric/ep.h"
#include "engine/rma.h"

#include <rdma/fi_rma.h>

/** Calls of the engine, by one signature. */
typedef ssize_t rwk_fi_starter(struct rwk_engine *e, const struct rwk_rma_args *a);

/**
 * Starts an operation on the memory of the peer of that address, as far as the endpoint has been enabled for it:
 * `needs` are libfabric's capabilities. Else -FI_EOPBADSTATE or -FI_EOPNOTSUPP.
 */
ssize_t rwk_fi_rma_start(
	struct rwk_fi_ep *ep, uint64_t needs, fi_addr_t to, struct rwk_rma_args *a, rwk_fi_starter *start);

/** The engine's flags for those of a call with flags, of which `known` are there: 0, or -FI_EBADFLAGS, logged. */
int rwk_fi_rma_flags(const struct rwk_fi_ep *ep, const char *call, uint64_t flags, uint64_t known, uint32_t *out);

/* Flags that calls of both kinds know. FI_MORE is a hint, not taken; every level is FI_DELIVERY_COMPLETE. */
#define RWK_FI_RMA_FLAGS                                                                                               \
	((uint64_t)(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                   \
		    FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE))

#endif
