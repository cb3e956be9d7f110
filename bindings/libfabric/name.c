/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, and the connection calls that a connectionless endpoint does not have. */
#include "bindings/libfabric/ep.h"

#include "bindings/libfabric/address.h"

#include <rdma/fi_cm.h>

/* The address to bind to, until the endpoint is enabled. */
static int setname(fid_t fid, void *addr, size_t addrlen)
{
	struct rwk_fi_ep *ep = rwk_container_of(fid, struct rwk_fi_ep, fid.fid);
	uint32_t format = ep->domain->addr_format;

	if (ep->engine)
		return -FI_EOPBADSTATE;
	if (addrlen < rwk_fi_address_size(format))
		return -FI_EINVAL;
	return rwk_fi_address_read(format, addr, &ep->source);
}

/* The endpoint's address; it has none before it is enabled. */
static int getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct rwk_fi_ep *ep = rwk_container_of(fid, struct rwk_fi_ep, fid.fid);

	if (!ep->engine)
		return -FI_EOPBADSTATE;
	return rwk_fi_address_give(ep->domain->addr_format, rwk_engine_address(ep->engine), addr, addrlen);
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep, (void)addr, (void)addrlen;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	(void)ep, (void)addr, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	(void)ep, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	(void)pep, (void)handle, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	(void)ep, (void)addr, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

const struct fi_ops_cm rwk_fi_cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = setname,
	.getname = getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};
