/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with FI_TRIGGER: their contexts are a struct fi_triggered_context, which says what they wait for. */
#ifndef RWK_FI_TRIGGER_H
#define RWK_FI_TRIGGER_H

#include "bindings/libfabric/deferred.h"

/**
 * Queue one: 0; -FI_EOPNOTSUPP: the endpoint was opened without FI_TRIGGER; -FI_EINVAL: the context is NULL, or names
 * no counter of the domain's; -FI_ENOSYS: it waits for something else than a threshold; or as rwk_fi_defer_send.
 */
ssize_t rwk_fi_trigger_send(struct rwk_fi_ep *ep, const struct fi_msg *msg, uint32_t flags);
ssize_t rwk_fi_trigger_recv(struct rwk_fi_ep *ep, const struct fi_msg *msg, uint32_t flags);
ssize_t rwk_fi_trigger_tsend(struct rwk_fi_ep *ep, const struct fi_msg_tagged *msg, uint32_t flags);
ssize_t rwk_fi_trigger_trecv(struct rwk_fi_ep *ep, const struct fi_msg_tagged *msg, uint32_t flags);

/** With RWK_FI_DEFERRED too in a->flags a->context is a struct rwk_fi_when, and it is that of deferred work. */
ssize_t rwk_fi_trigger_access(
	struct rwk_fi_ep *ep, fi_addr_t to, const struct rwk_rma_args *a, rwk_fi_starter *start, bool atomic);

#endif
