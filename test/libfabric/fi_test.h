/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the provider's tests share: an opened fabric and domain, endpoints with their queue and address vector, and
 * waits that end. Every failure ends the test through cmocka.
 */
#ifndef RWK_FI_TEST_H
#define RWK_FI_TEST_H

#include "rwk_test.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>

/* Without the FI_: names of an older API, which libfabric 2's headers warn of wherever used. */
#define T_MR_BASIC     (1 << 0)
#define T_MR_SCALABLE  (1 << 1)
#define T_ORDER_STRICT 0x1ff

#define T_NATIVE (0x80000000u | 0x52574bu) /* the provider's own format of addresses */

#define T_PATIENCE 60000 /* ms before a wait is a failure; machines under test are busy machines */

/** A domain, and what its endpoints are opened with. */
struct t_domain {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

/** An endpoint, one queue for both directions (unless opened otherwise) and an address vector of its own. */
struct t_end {
	struct t_domain *d;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	unsigned char name[64];
	size_t name_len;
};

/** How to open an end; zeroed: FI_CQ_FORMAT_TAGGED, no wait object, all completions, no counters. */
struct t_options {
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	size_t cq_size;
	uint64_t av_flags;
	uint64_t bind_flags; /* FI_SELECTIVE_COMPLETION */
	uint64_t tx_op_flags;
	struct fid_cntr *tx_cntr, *rx_cntr;
	struct fid_cq *cq; /* a queue to share */
	struct fid_ep *srx;
	struct fid_stx *stx;
};

/** Makes libfabric load the provider under test. To be called first in main. */
void t_use_provider(void);

/** Fresh hints for ropewalk: FI_EP_RDM, prov_name. To be freed with fi_freeinfo. */
struct fi_info *t_hints(void);

/** fi_getinfo of API 1.17 for ropewalk alone: its result; *info may be NULL. */
int t_getinfo(const struct fi_info *hints, struct fi_info **info);

/** Opens a domain as the first entry for these hints has it, with FI_MR_ENDPOINT if they have; they are freed. */
void t_domain_open_with(struct t_domain *d, struct fi_info *hints);

/** The same for a program of that API version. */
void t_domain_open_api(struct t_domain *d, struct fi_info *hints, uint32_t version);

/** Opens a domain; addr_format 0: native. */
void t_domain_open(struct t_domain *d, uint32_t addr_format, enum fi_threading threading);
void t_domain_close(struct t_domain *d);

void t_end_open(struct t_end *e, struct t_domain *d, const struct t_options *o);
void t_end_close(struct t_end *e);

/** Inserts `name` into e's vector: its number. */
fi_addr_t t_insert(struct t_end *e, const void *name);

/** fi_av_set_user_id, which came with libfabric 1.20: the table of calls has it all the same. */
int t_set_user_id(struct fid_av *av, fi_addr_t number, fi_addr_t user, uint64_t flags);

/** Milliseconds of a clock that only runs forward. */
int64_t t_now(void);

/**
 * The next completion of `cq`, in the longest format, with its source if `source`; fails after T_PATIENCE. `other` (or
 * NULL) is driven meanwhile, its completions are left where they are.
 */
struct fi_cq_tagged_entry t_wait(struct fid_cq *cq, struct fid_cq *other, fi_addr_t *source);

/** The same for an error entry. */
struct fi_cq_err_entry t_wait_error(struct fid_cq *cq, struct fid_cq *other);

/** Drives the queues for a moment and fails if `cq` has anything. */
void t_nothing(struct fid_cq *cq, struct fid_cq *other);

/** Fills or checks `len` bytes with a pattern that depends on `seed` and position. */
void t_fill(void *buf, size_t len, unsigned seed);
void t_check(const void *buf, size_t len, unsigned seed);

/** Posts until it is taken, driving both queues. */
#define t_post(call, cq, other) \
	do { \
		int64_t t_end_ = t_now() + T_PATIENCE; \
		ssize_t t_ret_; \
		while ((t_ret_ = (call)) == -FI_EAGAIN && t_now() < t_end_) { \
			t_drive(cq); \
			t_drive(other); \
		} \
		assert_int_equal(t_ret_, 0); \
	} while (0)

/** Makes progress without taking anything. NULL: nothing. */
void t_drive(struct fid_cq *cq);

#endif
