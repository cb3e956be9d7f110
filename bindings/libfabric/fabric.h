/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric: what domains and event queues are opened on. It owns nothing but its count of them. */
#ifndef RWK_FI_FABRIC_H
#define RWK_FI_FABRIC_H

#include "bindings/libfabric/provider.h"

#include <stdbool.h>

struct rwk_fi_fabric {
	struct fid_fabric fid; /* api_version is set by the core after rwk_fi_fabric */
	atomic_uint refs;      /* domains and event queues */
};

static inline struct rwk_fi_fabric *rwk_fi_fabric_of(struct fid_fabric *fid)
{
	return rwk_container_of(fid, struct rwk_fi_fabric, fid);
}

/** Whether an open fabric, of whatever provider, is one of ours. */
bool rwk_fi_fabric_is_ours(const struct fid_fabric *fid);

#endif
