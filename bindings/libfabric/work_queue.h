/* SPDX-License-Identifier: BSD-3-Clause */
/* Deferred work (fi_trigger(3)): a domain's commands, and from libfabric's structures to deferred.h. */
#ifndef RWK_FI_WORK_QUEUE_H
#define RWK_FI_WORK_QUEUE_H

#include "bindings/libfabric/domain.h"

/**
 * FI_QUEUE_WORK: `arg` is a struct fi_deferred_work. All that it points to, but the memory to be sent, read and
 * written, is copied. 0; -FI_EINVAL: an object is missing, or another domain's, or a counter operation has a completion
 * counter; -FI_ENOSYS: there is no such operation, or flag of one; -FI_EOPBADSTATE, -FI_EOPNOTSUPP: the endpoint is not
 * enabled, or was opened without what it takes (FI_TRIGGER too); -FI_EBADFLAGS; -FI_EAGAIN: there are too many.
 *
 * FI_CANCEL_WORK: the same structure: 0: it will not begin, and nothing counts it; -FI_ENOENT: it has begun, or there
 * is none (what has begun, fi_cancel may still find by its context).
 *
 * FI_FLUSH_WORK: NULL: cancels all of the domain; a struct fid_cntr: what waits for it. 0 or -FI_EINVAL.
 *
 * A domain of connected endpoints has none of this: -FI_ENOSYS.
 */
int rwk_fi_work_control(struct rwk_fi_domain *domain, int command, void *arg);

#endif
