/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, and the connection calls that a connectionless endpoint does not have. */
#include "bindings/libfabric/ep.h"

#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"

#include <rdma/fi_cm.h>

/* The address to bind to, until the endpoint is enabled. */
static int setname(fid_t fid, void *addr, size_t addrlen)
{
	struct rwk_fi_ep *ep = rwk_container_of(fid, struct rwk_fi_ep, fid.fid);

	return rwk_fi_address_bind(ep->domain->addr_format, addr, addrlen, ep->engine, &ep->source);
}

/* The endpoint's address; it has none before it is enabled. */
static int getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct rwk_fi_ep *ep = rwk_container_of(fid, struct rwk_fi_ep, fid.fid);

	if (!ep->engine)
		return -FI_EOPBADSTATE;
	return rwk_fi_address_give(ep->domain->addr_format, rwk_engine_address(ep->engine), addr, addrlen);
}

const struct fi_ops_cm rwk_fi_cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = setname,
	.getname = getname,
	.getpeer = rwk_fi_no_getpeer,
	.connect = rwk_fi_no_connect,
	.listen = rwk_fi_no_listen,
	.accept = rwk_fi_no_accept,
	.reject = rwk_fi_no_reject,
	.shutdown = rwk_fi_no_shutdown,
	.join = rwk_fi_no_join,
};
