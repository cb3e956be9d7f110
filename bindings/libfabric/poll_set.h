/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The poll set: several completion queues and counters of one domain, driven and asked in one call. It holds its
 * members. It has a lock of its own, and each member takes that of its group.
 */
#ifndef RWK_FI_POLL_SET_H
#define RWK_FI_POLL_SET_H

#include <rdma/fi_domain.h>

/** fi_poll_open: 0; -FI_EBADFLAGS, -FI_ENOMEM. */
int rwk_fi_poll_set_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);

#endif
