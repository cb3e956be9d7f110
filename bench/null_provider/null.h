/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libfabric provider "rwk_null" that does nothing: messages sent vanish, receives complete at once with whatever is
 * in the buffer. What a program above it still takes is its own cost and that of its MPI library. Never installed;
 * found through FI_PROVIDER_PATH alone. One thread, one process, tagged messages only.
 */
#ifndef BENCH_NULL_PROVIDER_NULL_H
#define BENCH_NULL_PROVIDER_NULL_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>

#define NULL_NAME        "rwk_null"
#define NULL_INJECT_SIZE 128
#define NULL_QUEUE       4096 /* completions a queue holds; a power of two */

struct null_cq {
	struct fid_cq cq;
	size_t entry_size;   /* of the format asked for; each format begins with the one before */
	unsigned head, tail; /* entries added and taken */
	struct fi_cq_tagged_entry entry[NULL_QUEUE];
};

struct null_ep {
	struct fid_ep ep;
	struct null_cq *send_cq, *receive_cq;
	bool select_sends, select_receives; /* only operations that ask for a completion get one */
	uint64_t send_flags, receive_flags; /* of operations that take no flags */
};

/** The provider's description, shaped by the hints. -FI_ENODATA where the hints ask for what is not here. */
int null_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
	struct fi_info **info);

int null_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int null_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
int null_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

/** Adds a completion. Returns false when the queue is full. */
static inline bool null_complete(struct null_cq *q, const struct fi_cq_tagged_entry *e)
{
	if (q->head - q->tail == NULL_QUEUE)
		return false;
	q->entry[q->head++ % NULL_QUEUE] = *e;
	return true;
}

#endif
