/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory registration. Messages need none: any memory can be sent from and received into. Programs that register all
 * the same get a region that remembers its key, and nothing is pinned or looked up. Remote access is refused: there is
 * no RMA to serve.
 */
#include "bindings/libfabric/domain.h"

#include "base/log.h"

#include <stdlib.h>

struct rwk_fi_mr {
	struct fid_mr fid;
	struct rwk_fi_domain *domain;
};

static int mr_close(struct fid *fid)
{
	struct rwk_fi_mr *mr = rwk_container_of(fid, struct rwk_fi_mr, fid.fid);

	rwk_fi_drop(&mr->domain->refs);
	free(mr);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = mr_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t requested_key,
	uint64_t flags, struct fid_mr **out, void *context)
{
	struct rwk_fi_domain *domain = rwk_container_of(fid, struct rwk_fi_domain, fid.fid);
	struct rwk_fi_mr *mr;

	(void)buf, (void)len, (void)offset;
	if (access & ~(uint64_t)(FI_SEND | FI_RECV)) {
		rwk_warn("fi_mr_reg: access %#llx asks for RMA, there is FI_SEND and FI_RECV",
			(unsigned long long)access);
		return -FI_EOPNOTSUPP;
	}
	if (flags)
		return -FI_EBADFLAGS;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	rwk_fi_hold(&domain->refs);
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = context;
	mr->fid.fid.ops = (struct fi_ops *)&fid_ops;
	mr->fid.key = requested_key;
	*out = &mr->fid;
	return 0;
}

static int regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
	uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	(void)iov, (void)count;
	return reg(fid, NULL, 0, access, offset, requested_key, flags, mr, context);
}

static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	/* Of the attributes only those that every API version has. */
	return reg(fid, NULL, 0, attr->access, attr->offset, attr->requested_key, flags, mr, attr->context);
}

const struct fi_ops_mr rwk_fi_mr_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_mr, regattr),
	.reg = reg,
	.regv = regv,
	.regattr = regattr,
};
