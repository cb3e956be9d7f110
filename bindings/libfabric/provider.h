/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider as libfabric sees it, and what all of its objects share.
 *
 * Objects and who holds whom (a holder counts as a reference; an object with references refuses to close with
 * -FI_EBUSY):
 *
 *   fabric <- domain <- av, cq, cntr, mr, ep        ep holds the av, cqs, cntrs and eq that it is bound to
 *   fabric <- eq, passive ep                        mr holds the cntrs, and the ep, that it is bound to
 *                                                   domain and passive ep hold the eq that they are bound to
 *
 * The kinds of endpoints: FI_EP_RDM (ep.h) is an engine, FI_EP_MSG (msg.h) a qp of the fabric's adapter (device.h),
 * FI_EP_DGRAM (dgram.h) a queue pair of the datagram service. A domain has endpoints of one kind; all else is the same
 * objects for all.
 *
 * Threads: a domain of FI_EP_RDM opened with FI_THREAD_DOMAIN and manual progress has no lock, its user serialises all
 * calls on it. In every other case objects that are bound to one another share a lock (lock.h, group.h); with
 * FI_EP_DGRAM there is one a domain, with FI_EP_MSG one a fabric.
 *
 * libfabric's structures have grown over time. A hint comes in the running library's layout, an application's structure
 * in that of fabric->api_version; no member younger than API 1.5 is touched without a look at the version. What we hand
 * out is allocated larger than any layout known (RWK_FI_SPARE) and zero, piece by piece, because the core frees it with
 * free().
 */
#ifndef RWK_FI_PROVIDER_H
#define RWK_FI_PROVIDER_H

#include "base/this_process.h"
#include "bindings/libfabric/lock.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define RWK_FI_NAME  "ropewalk"
#define RWK_FI_SPARE 256 /* bytes added to each structure handed out, for members of newer libraries */

/** The native address format: struct rwk_address as it is. In the range that libfabric leaves to providers. */
#define RWK_FI_ADDR_FORMAT (0x80000000u | 0x52574bu)

/** The size that a table of calls declares: up to and with the last one that we fill in, whatever the header knows
 * beyond. */
#define RWK_FI_OPS_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

extern struct fi_provider rwk_fi_provider;

/** Entry points, in info.c and fabric.c. */
int rwk_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
	struct fi_info **info);
int rwk_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/** Takes and drops a reference; the count is atomic because objects of one parent may belong to different threads. */
static inline void rwk_fi_hold(atomic_uint *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static inline void rwk_fi_drop(atomic_uint *refs)
{
	atomic_fetch_sub_explicit(refs, 1, memory_order_release);
}

static inline int rwk_fi_busy(atomic_uint *refs)
{
	return atomic_load_explicit(refs, memory_order_acquire) ? -FI_EBUSY : 0;
}

/** What a queue says of its entries' prov_errno, which is libfabric's own errno: in `buf` too, if that has room. */
const char *rwk_fi_strerror(int prov_errno, char *buf, size_t len);

/**
 * A child of fork has copies of its parent's objects, but not their threads, nor all their memory; and what the kernel
 * keeps of them (connections, epoll's lists) both have in common. So fi_close of what another process has opened does
 * nothing there, and takes no lock, which a thread may have had that is not there.
 */
static inline bool rwk_fi_is_inherited(uint64_t opener)
{
	return opener != rwk_this_process();
}

/* Calls of struct fi_ops that an object does not have; each answers -FI_ENOSYS. */
int rwk_fi_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int rwk_fi_no_control(struct fid *fid, int command, void *arg);
int rwk_fi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int rwk_fi_no_tostr(const struct fid *fid, char *buf, size_t len);
int rwk_fi_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

#endif
