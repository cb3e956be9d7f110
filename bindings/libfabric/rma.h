/* SPDX-License-Identifier: BSD-3-Clause */
/* What the calls of rma.c and atomic.c share: from libfabric's arguments to the engine's. */
#ifndef RWK_FI_RMA_H
#define RWK_FI_RMA_H

#include "bindings/libfabric/ep.h"
#include "engine/rma.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

/** Calls of the engine, by one signature. */
typedef ssize_t rwk_fi_starter(struct rwk_engine *e, const struct rwk_rma_args *a);

/**
 * Starts an operation on the memory of the peer of that address, as far as the endpoint has been enabled for it:
 * `needs` are libfabric's capabilities. Else -FI_EOPBADSTATE or -FI_EOPNOTSUPP.
 */
ssize_t rwk_fi_rma_start(
	struct rwk_fi_ep *ep, uint64_t needs, fi_addr_t to, struct rwk_rma_args *a, rwk_fi_starter *start);

/**
 * fi_readmsg or fi_writemsg, and fi_atomicmsg, fi_fetch_atomicmsg or fi_compare_atomicmsg, with the engine's flags.
 * With RWK_FI_DEFERRED and RWK_FI_TRIGGERED msg->context is a struct rwk_fi_when (deferred.h).
 */
ssize_t rwk_fi_rma_message(struct rwk_fi_ep *ep, bool read, const struct fi_msg_rma *msg, uint32_t flags);
ssize_t rwk_fi_atomic_message(struct rwk_fi_ep *ep, const struct fi_msg_atomic *msg,
	const struct fi_msg_compare *compare, const struct fi_msg_fetch *result, uint32_t flags);

/** The engine's flags for those of a call with flags, of which `known` are there: 0, or -FI_EBADFLAGS, logged. */
int rwk_fi_rma_flags(const struct rwk_fi_ep *ep, const char *call, uint64_t flags, uint64_t known, uint32_t *out);

/* Flags that calls of both kinds know. FI_MORE is a hint, not taken; every level is FI_DELIVERY_COMPLETE. */
#define RWK_FI_RMA_FLAGS                                                                                               \
	((uint64_t)(FI_COMPLETION | FI_MORE | FI_FENCE | FI_TRIGGER | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |      \
		    FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE))

#endif
