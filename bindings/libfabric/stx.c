/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared transmit contexts, of both kinds of endpoints. */
#include "bindings/libfabric/shared.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/info.h"

#include <stdlib.h>

int rwk_fi_bind_stx(
	struct rwk_fi_stx **slot, const struct rwk_fi_domain *domain, struct rwk_fi_stx *stx, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (*slot || stx->domain != domain) {
		rwk_warn("fi_ep_bind: %s", *slot ? "the endpoint has a shared transmit context"
						 : "the shared transmit context is another domain's");
		return -FI_EINVAL;
	}
	*slot = stx;
	rwk_fi_hold(&stx->refs);
	return 0;
}

static int stx_close(struct fid *fid)
{
	struct rwk_fi_stx *stx = rwk_container_of(fid, struct rwk_fi_stx, fid.fid);

	if (rwk_fi_is_inherited(stx->domain->process))
		return 0;
	if (rwk_fi_busy(&stx->refs))
		return -FI_EBUSY;
	rwk_fi_drop(&stx->domain->refs);
	free(stx);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = stx_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_ep stx_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = rwk_fi_no_cancel,
	.getopt = rwk_fi_no_getopt,
	.setopt = rwk_fi_no_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

int rwk_fi_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **out, void *context)
{
	const struct rwk_fi_kind *k = rwk_fi_domain_of(domain)->device ? &rwk_fi_msg : &rwk_fi_rdm;
	struct rwk_fi_stx *stx;

	if (attr && (attr->caps & ~(k->tx_caps | RWK_FI_DOMAIN_CAPS) || attr->size > k->tx_size_max)) {
		rwk_warn("fi_stx_context: more is asked for than %s has", k->name);
		return -FI_EINVAL;
	}
	stx = calloc(1, sizeof(*stx));
	if (!stx)
		return -FI_ENOMEM;
	stx->domain = rwk_fi_domain_of(domain);
	rwk_fi_hold(&stx->domain->refs);
	stx->fid.fid.fclass = FI_CLASS_STX_CTX;
	stx->fid.fid.context = context;
	stx->fid.fid.ops = (struct fi_ops *)&fid_ops;
	stx->fid.ops = (struct fi_ops_ep *)&stx_ops;
	*out = &stx->fid;
	return 0;
}
