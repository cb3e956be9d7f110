/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric: what domains, event queues and passive endpoints are opened on. It owns the device (device.h). */
#ifndef RWK_FI_FABRIC_H
#define RWK_FI_FABRIC_H

#include "bindings/libfabric/provider.h"

#include <pthread.h>
#include <stdbool.h>

struct rwk_fi_device;

struct rwk_fi_fabric {
	struct fid_fabric fid; /* api_version is set by the core after rwk_fi_fabric */
	uint64_t process;      /* that has opened it */
	atomic_uint refs;      /* domains, event queues and passive endpoints */
	pthread_mutex_t opening;                /* of the device, and its automatic progress */
	_Atomic(struct rwk_fi_device *) device; /* NULL: nobody needs one yet */
};

static inline struct rwk_fi_fabric *rwk_fi_fabric_of(struct fid_fabric *fid)
{
	return rwk_container_of(fid, struct rwk_fi_fabric, fid);
}

/** Whether an open fabric, of whatever provider, is one of ours. */
bool rwk_fi_fabric_is_ours(const struct fid_fabric *fid);

#endif
