/* SPDX-License-Identifier: BSD-3-Clause */
/* The counter: how many operations have succeeded and how many have failed. */
#ifndef RWK_FI_CNTR_H
#define RWK_FI_CNTR_H

#include "bindings/libfabric/domain.h"
#include "bindings/libfabric/wait.h"

/** What a counter was when somebody was last told. */
struct rwk_fi_told {
	uint64_t value, errors;
};

struct rwk_fi_cntr {
	struct fid_cntr fid;
	struct rwk_fi_guard lock;
	uint64_t value, errors;
	struct rwk_fi_wait wait;
	struct rwk_list works; /* that wait for it (deferred.h) */
	struct rwk_fi_domain *domain;
	struct fid_peer_cntr *owner; /* another provider's, that counts in its place (peer.h), or NULL */
	struct rwk_list of_works; /* rwk_fi_works.counters */
	struct rwk_fi_told told;  /* to the program, by a read, or by -FI_EAGAIN that it should read */
	struct rwk_fi_member member;
	atomic_uint refs;         /* endpoints bound, once for each kind of operation; and what its works hold */
};

int rwk_fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);

/** Is it not what was told? From now on it has been. Under the lock. */
static inline bool rwk_fi_cntr_tell(const struct rwk_fi_cntr *cntr, struct rwk_fi_told *told)
{
	bool news = cntr->value != told->value || cntr->errors != told->errors;

	told->value = cntr->value;
	told->errors = cntr->errors;
	return news;
}

/**
 * For fi_trywait: 0, or -FI_EAGAIN if it is not what was `told` (by a set; NULL: by itself), once, or if there is
 * something to do. One look: after it, who drives the engines takes back that they are armed.
 */
int rwk_fi_cntr_trywait(struct rwk_fi_cntr *cntr, struct rwk_fi_told *told);

/** Begins the works that are due. Under the lock; in deferred.c. */
void rwk_fi_cntr_look(struct rwk_fi_cntr *cntr);

/** To be called after each change of the numbers. Under the lock. */
static inline void rwk_fi_cntr_moved(struct rwk_fi_cntr *cntr)
{
	rwk_fi_wait_found(&cntr->wait);
	rwk_fi_wait_arrived(&cntr->wait);
	if (rwk_unlikely(!rwk_list_empty(&cntr->works)))
		rwk_fi_cntr_look(cntr);
}

/** Has the owner count; in peer_cntr.c. */
void rwk_fi_peer_cntr_count(const struct rwk_fi_cntr *cntr, bool failed);

/** Counts one operation. Under the lock. */
static inline void rwk_fi_cntr_count(struct rwk_fi_cntr *cntr, bool failed)
{
	if (rwk_unlikely(cntr->owner != NULL)) {
		rwk_fi_peer_cntr_count(cntr, failed);
		return;
	}
	if (rwk_unlikely(failed))
		cntr->errors++;
	else
		cntr->value++;
	rwk_fi_cntr_moved(cntr);
}

#endif
