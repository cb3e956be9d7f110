/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/fabric.h"

#include "base/log.h"
#include "bindings/libfabric/cntr.h"
#include "bindings/libfabric/cq.h"
#include "bindings/libfabric/device.h"
#include "bindings/libfabric/domain.h"
#include "bindings/libfabric/eq.h"
#include "bindings/libfabric/msg_domain.h"
#include "bindings/libfabric/wait_set.h"

#include <rdma/fi_endpoint.h>
#include <stdlib.h>
#include <string.h>

static int no_domain2(
	struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, uint64_t flags, void *context)
{
	if (!flags)
		return rwk_fi_domain_open(fabric, info, domain, context);
	return -FI_ENOSYS; /* flags: FI_PEER, to serve under another provider */
}

/* 0: each may be waited for; -FI_EAGAIN: one has something already. */
static int trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int err = 0;

	(void)fabric;
	for (int i = 0; i < count && !err; i++) {
		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			err = rwk_fi_cq_trywait(rwk_container_of(fids[i], struct rwk_fi_cq, fid.fid));
			break;
		case FI_CLASS_CNTR:
			err = rwk_fi_cntr_trywait(rwk_container_of(fids[i], struct rwk_fi_cntr, fid.fid), NULL);
			break;
		case FI_CLASS_EQ:
			err = rwk_fi_eq_trywait(rwk_container_of(fids[i], struct rwk_fi_eq, fid.fid));
			break;
		case FI_CLASS_WAIT:
			err = rwk_fi_wait_set_trywait(rwk_container_of(fids[i], struct fid_wait, fid));
			break;
		default:
			rwk_warn("fi_trywait: object %d is neither a queue, a counter nor a wait set", i);
			err = -FI_EINVAL;
		}
	}
	return err;
}

static int fabric_close(struct fid *fid)
{
	struct rwk_fi_fabric *fabric = rwk_container_of(fid, struct rwk_fi_fabric, fid.fid);

	if (rwk_fi_is_inherited(fabric->process))
		return 0;
	if (rwk_fi_busy(&fabric->refs))
		return -FI_EBUSY;
	rwk_fi_device_close(atomic_load(&fabric->device));
	pthread_mutex_destroy(&fabric->opening);
	free(fabric);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = fabric_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_fabric fabric_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_fabric, domain2),
	.domain = rwk_fi_domain_open,
	.passive_ep = rwk_fi_msg_passive_open,
	.eq_open = rwk_fi_eq_open,
	.wait_open = rwk_fi_wait_set_open,
	.trywait = trywait,
	.domain2 = no_domain2,
};

bool rwk_fi_fabric_is_ours(const struct fid_fabric *fid)
{
	return fid->ops == &fabric_ops;
}

int rwk_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
	struct rwk_fi_fabric *fabric;

	if (attr->name && strcmp(attr->name, RWK_FI_NAME)) {
		rwk_info("fi_fabric: there is no fabric %s, there is " RWK_FI_NAME, attr->name);
		return -FI_ENODATA;
	}
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->process = rwk_this_process();
	pthread_mutex_init(&fabric->opening, NULL);
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = (struct fi_ops *)&fid_ops;
	fabric->fid.ops = (struct fi_ops_fabric *)&fabric_ops;
	*fid = &fabric->fid;
	return 0;
}
