/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain: the locks, the engines of its endpoints, the address format, and the count of what is open on it.
 *
 * It is of one kind, that of the info that it was opened with. One of connected endpoints has no engines and no regions
 * of an engine's: it is a protection domain of the fabric's adapter (device.h), whose lock is its lock. Its queues,
 * counters and registrations are the same objects; what they ask is whether there is a device. One of datagram
 * endpoints (dgram.h) is as one of engines, which has none.
 */
#ifndef RWK_FI_DOMAIN_H
#define RWK_FI_DOMAIN_H

#include "bindings/libfabric/fabric.h"
#include "bindings/libfabric/group.h"
#include "base/list.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

struct rwk_fi_device;
struct rwk_pd;
struct rwk_mr;

/** Operations that wait for counters (deferred.h). */
struct rwk_fi_works {
	struct rwk_list all;
	struct rwk_list due;      /* to begin, one after the other */
	struct rwk_list counters; /* that have had some */
	size_t count;
	bool beginning; /* somebody is at `due` */
};

/** An endpoint's engine has come, or goes: those counters drive it. 0 or negative errno. Under its lock. */
int rwk_fi_works_attach(struct rwk_fi_works *works, struct rwk_engine *engine);
void rwk_fi_works_detach(struct rwk_fi_works *works, struct rwk_engine *engine);

struct rwk_fi_domain {
	struct fid_domain fid;
	struct rwk_fi_fabric *fabric;
	uint64_t process;          /* that has opened it */
	struct rwk_fi_eq *eq;      /* bound, or NULL: of connected endpoints that have none of their own */
	struct rwk_fi_groups groups;  /* which lock its objects have, and who drives the engines */
	struct rwk_fi_wait hosted;    /* engines of endpoints whose receives are another provider's (peer.h), which are
					 in no group's; under the lock of the first one */
	struct rwk_fi_ears ears;      /* of its waits, if it has no device */
	struct rwk_regions *regions;  /* what peers may reach */
	struct rwk_list counted;          /* registrations with counters (mr.c) */
	struct rwk_fi_works works;
	int mr_mode;                      /* bits alone */
	atomic_uint refs;                 /* everything opened on it */
	uint32_t addr_format;             /* of its address vectors and its endpoints' names */
	enum fi_av_type av_type;          /* of address vectors that do not say */
	enum fi_threading threading;
	enum fi_ep_type type; /* of its endpoints */
	bool automatic;       /* it makes progress by itself */
	/* Of connected endpoints; else NULL. */
	struct rwk_fi_device *device;
	struct rwk_fi_mutex *lock; /* the device's, which all objects have */
	bool started; /* the device makes progress by itself for this domain */
	struct rwk_pd *pd;
	struct rwk_mr *memory; /* all of the process's, for our own requests alone: what is sent and where it is
				  received needs no registration */
};

static inline struct rwk_fi_domain *rwk_fi_domain_of(struct fid_domain *fid)
{
	return rwk_container_of(fid, struct rwk_fi_domain, fid);
}

int rwk_fi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);

/** An object opens, and closes, as rwk_fi_join and rwk_fi_part; of connected endpoints all have the device's lock. */
int rwk_fi_domain_join(struct rwk_fi_domain *domain, struct rwk_fi_member *m, struct rwk_fi_guard *guard);

/** For what the whole domain looks at: takes all locks that its objects have, and gives them back. */
void rwk_fi_domain_stop(struct rwk_fi_domain *domain);
void rwk_fi_domain_go(struct rwk_fi_domain *domain);

/** A queue's or counter's wait drives what the domain has in common; else nothing is done. 0 or negative errno. */
int rwk_fi_domain_drive(struct rwk_fi_domain *domain, struct rwk_fi_wait *w);
void rwk_fi_domain_undrive(struct rwk_fi_domain *domain, struct rwk_fi_wait *w);

/** Whether an open domain, of whatever provider, is one of ours. */
bool rwk_fi_domain_is_ours(const struct fid_domain *fid);

/** fi_query_atomic, in atomic.c. */
int rwk_fi_query_atomic(
	struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

#endif
