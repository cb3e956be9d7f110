/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider needs of completion queues beside ropewalk.h. */
#ifndef RWK_CHANNEL_ADAPTER_CQ_H
#define RWK_CHANNEL_ADAPTER_CQ_H

#include "include/ropewalk.h"

/** It has so many entries at least from now on, RWK_QUEUE_MAX is no limit; what is in it stays. 0; -ENOMEM. */
int rwk_ca_cq_grow(struct rwk_cq *cq, size_t entries);

/**
 * What is in the set that rwk_cq_fd is, for who puts them into one of his own: its bell, and what the adapter's
 * sleepers have in common. 0; a negative errno.
 */
int rwk_ca_cq_fds(struct rwk_cq *cq, int fd[2]);

#endif
