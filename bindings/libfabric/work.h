/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A work from within: deferred.c lets works wait and drops them, begin.c begins and ends them. deferred.h says what
 * they are.
 */
#ifndef RWK_FI_WORK_H
#define RWK_FI_WORK_H

#include "bindings/libfabric/deferred.h"

enum rwk_fi_deed { RWK_FI_SEND, RWK_FI_RECEIVE, RWK_FI_ACCESS, RWK_FI_SET, RWK_FI_ADD };

/** A read, write or atomic, with what its arguments point to. */
struct rwk_fi_access {
	struct rwk_atomic_args args; /* of a read or write only args.rma */
	rwk_fi_starter *start;
	bool atomic;
	fi_addr_t to;
	struct iovec iov[RWK_ENGINE_IOV_MAX], compare[RWK_ENGINE_IOV_MAX], result[RWK_ENGINE_IOV_MAX];
	struct rwk_remote remote[RWK_ENGINE_IOV_MAX];
};

struct rwk_fi_message {
	struct rwk_fi_letter letter;
	struct iovec iov[RWK_ENGINE_IOV_MAX];
};

struct rwk_fi_count {
	struct rwk_fi_cntr *cntr; /* held */
	uint64_t value;
};

struct rwk_fi_work {
	struct rwk_list link; /* in its counter's list, what is due, or what its endpoint has stalled; alone: begun */
	struct rwk_list of_domain;
	struct rwk_fi_when when; /* its counters are held */
	enum rwk_fi_deed deed;
	struct rwk_fi_ep *ep; /* NULL: RWK_FI_SET, RWK_FI_ADD */
	union {
		struct rwk_fi_message message;
		struct rwk_fi_access access;
		struct rwk_fi_count count;
	};
};

static inline bool rwk_fi_work_has_begun(const struct rwk_fi_work *w)
{
	return rwk_list_empty(&w->link);
}

void rwk_fi_work_free(struct rwk_fi_work *w);

/** Begins what is in the domain's list of what is due. */
void rwk_fi_work_begin_due(struct rwk_fi_works *works);

/** It ends with that status without having begun. */
void rwk_fi_work_end(struct rwk_fi_work *w, int status);

#endif
