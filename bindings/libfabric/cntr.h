/* SPDX-License-Identifier: BSD-3-Clause */
/* The counter: how many operations have succeeded and how many have failed. */
#ifndef RWK_FI_CNTR_H
#define RWK_FI_CNTR_H

#include "bindings/libfabric/domain.h"
#include "bindings/libfabric/wait.h"

struct rwk_fi_cntr {
	struct fid_cntr fid;
	struct rwk_fi_mutex *lock;
	uint64_t value, errors;
	struct rwk_fi_wait wait;
	struct rwk_fi_domain *domain;
	atomic_uint refs; /* endpoints bound, once for each kind of operation */
};

int rwk_fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);

/** For fi_trywait: 0, or -FI_EAGAIN if there is something to do. */
int rwk_fi_cntr_trywait(struct rwk_fi_cntr *cntr);

/** Counts one operation. Under the lock. */
static inline void rwk_fi_cntr_count(struct rwk_fi_cntr *cntr, bool failed)
{
	if (rwk_unlikely(failed))
		cntr->errors++;
	else
		cntr->value++;
	rwk_fi_wait_arrived(&cntr->wait);
}

#endif
