/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/mr.h"

#include "base/log.h"
#include "bindings/libfabric/alias.h"
#include "bindings/libfabric/cntr.h"
#include "bindings/libfabric/engine.h"
#include "bindings/libfabric/ep.h"
#include "bindings/libfabric/legacy.h"
#include "bindings/libfabric/msg_domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_ACCESS  ((uint64_t)(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COLLECTIVE))
#define REMOTE_ACCESS ((uint64_t)(FI_REMOTE_READ | FI_REMOTE_WRITE))
/* What memory is for is no access, but programs name it beside (LCI FI_RMA), and other providers do not mind. */
#define PURPOSES      ((uint64_t)(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC))

enum { READS, WRITES, COUNTED };

struct rwk_fi_mr {
	struct fid_mr fid;
	struct rwk_fi_domain *domain;
	struct rwk_region *region; /* NULL: disabled, or no peer may reach it */
	struct rwk_mr *mr;         /* the same in a domain of connected endpoints */
	struct rwk_fi_ep *ep;      /* with FI_MR_ENDPOINT: the one it is reached through */
	struct rwk_fi_cntr *cntr[COUNTED];
	struct rwk_list link; /* rwk_fi_domain.counted, with a counter */
	bool enabled;
	uint64_t access, wanted_key;
	size_t count;
	struct iovec iov[RWK_ENGINE_IOV_MAX];
};

int rwk_fi_mr_bits(int mr_mode)
{
	if (mr_mode == RWK_FI_MR_BASIC)
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return mr_mode & RWK_FI_MR_MODES;
}

static struct rwk_fi_mr *mr_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_mr, fid.fid);
}

static uint64_t base_of(const struct rwk_fi_mr *mr)
{
	return mr->domain->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)mr->iov[0].iov_base : 0;
}

static bool has_counter(const struct rwk_fi_mr *mr)
{
	return mr->cntr[READS] || mr->cntr[WRITES];
}

/* The accesses that it counts. */
static unsigned counted(const struct rwk_fi_mr *mr)
{
	return (mr->cntr[READS] ? RWK_REGION_READ : 0) | (mr->cntr[WRITES] ? RWK_REGION_WRITE : 0);
}

/* The engine's upcall. A fetching operation that one counter is to count as both is one all the same. */
static void reached(void *owner, const struct rwk_reached *r)
{
	struct rwk_fi_mr *mr = owner;
	struct rwk_fi_cntr *read = r->access & RWK_REGION_READ ? mr->cntr[READS] : NULL;
	struct rwk_fi_cntr *written = r->access & RWK_REGION_WRITE ? mr->cntr[WRITES] : NULL;

	if (read)
		rwk_fi_cntr_count(read, false);
	if (written && written != read)
		rwk_fi_cntr_count(written, false);
}

/* Puts it into the domain's table, if a peer may reach it at all. Under the lock. */
static int add_region(struct rwk_fi_mr *mr)
{
	struct rwk_region_attr attr = {
		.iov = mr->iov,
		.count = mr->count,
		.base = base_of(mr),
		.access = (mr->access & FI_REMOTE_READ ? RWK_REGION_READ : 0) |
			  (mr->access & FI_REMOTE_WRITE ? RWK_REGION_WRITE : 0),
		.own_key = !(mr->domain->mr_mode & FI_MR_PROV_KEY),
		.key = mr->wanted_key,
		.only = mr->ep ? mr->ep->engine : NULL,
		.reached = reached,
		.told = counted(mr),
		.owner = mr,
	};
	int err;

	if (!(mr->access & REMOTE_ACCESS))
		return 0;
	if (mr->domain->device)
		return rwk_fi_msg_mr_add(mr->domain, &mr->iov[0], mr->access, &mr->mr, &mr->fid.key);
	err = rwk_region_add(mr->domain->regions, &attr, &mr->region);
	if (err == -ENOKEY) {
		rwk_warn("fi_mr_reg: the key %#llx is in use", (unsigned long long)mr->wanted_key);
		return -FI_ENOKEY; /* not the same number */
	}
	if (err)
		rwk_warn("fi_mr_reg: %zu pieces from %p on: %s", mr->count, mr->iov[0].iov_base, fi_strerror(-err));
	else
		mr->fid.key = rwk_region_key(mr->region);
	return err;
}

static int enable(struct rwk_fi_mr *mr)
{
	int err = 0;

	if (mr->domain->mr_mode & FI_MR_ENDPOINT && (!mr->ep || !mr->ep->engine)) {
		rwk_warn("fi_mr_enable: the region is bound to no endpoint that is enabled");
		return -FI_EOPBADSTATE;
	}
	rwk_fi_domain_stop(mr->domain);
	if (!mr->enabled)
		err = add_region(mr);
	mr->enabled |= !err;
	rwk_fi_domain_go(mr->domain);
	return err;
}

static void detach_counter(struct rwk_fi_mr *mr, int kind)
{
	rwk_fi_engines_detach(mr->domain, &mr->cntr[kind]->wait);
	rwk_fi_drop(&mr->cntr[kind]->refs);
	mr->cntr[kind] = NULL;
}

static int attach_counter(struct rwk_fi_mr *mr, int kind, struct rwk_fi_cntr *cntr)
{
	int err = rwk_fi_engines_attach(mr->domain, &cntr->wait);

	if (err)
		return err;
	mr->cntr[kind] = cntr;
	rwk_fi_hold(&cntr->refs);
	return 0;
}

/* Calls `change` for each counter of each registration. */
static int each_counter(struct rwk_fi_domain *domain, struct rwk_engine *engine,
	int (*change)(struct rwk_fi_wait *w, struct rwk_engine *e))
{
	int err = 0;

	for (struct rwk_list *l = domain->counted.next; l != &domain->counted && !err; l = l->next) {
		struct rwk_fi_mr *mr = rwk_container_of(l, struct rwk_fi_mr, link);

		for (int k = 0; k < COUNTED && !err; k++)
			err = mr->cntr[k] ? change(&mr->cntr[k]->wait, engine) : 0;
	}
	return err;
}

static int detach_one(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	rwk_fi_wait_detach(w, e);
	return 0;
}

int rwk_fi_mr_attach(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	return each_counter(domain, engine, rwk_fi_wait_attach);
}

void rwk_fi_mr_detach(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	each_counter(domain, engine, detach_one);
}

static int bind_cntr(struct rwk_fi_mr *mr, struct rwk_fi_cntr *cntr, uint64_t flags)
{
	int err = 0;

	if (!flags || flags & ~REMOTE_ACCESS)
		return -FI_EBADFLAGS;
	if (mr->domain->device) {
		rwk_warn("fi_mr_bind: what peers do to the memory of connected endpoints is not counted");
		return -FI_EOPNOTSUPP;
	}
	if ((flags & FI_REMOTE_READ && mr->cntr[READS]) || (flags & FI_REMOTE_WRITE && mr->cntr[WRITES]) ||
		cntr->domain != mr->domain) {
		rwk_warn("fi_mr_bind: %s", cntr->domain != mr->domain ? "the counter is another domain's"
								      : "the region has a counter for that");
		return -FI_EINVAL;
	}
	err = rwk_fi_unite(&mr->domain->groups);
	if (err)
		return err;
	rwk_fi_domain_stop(mr->domain);
	if (!has_counter(mr))
		rwk_list_append(&mr->domain->counted, &mr->link);
	if (flags & FI_REMOTE_READ)
		err = attach_counter(mr, READS, cntr);
	if (!err && flags & FI_REMOTE_WRITE)
		err = attach_counter(mr, WRITES, cntr);
	if (!has_counter(mr))
		rwk_list_remove(&mr->link);
	else if (mr->region)
		rwk_region_set_told(mr->region, counted(mr));
	rwk_fi_domain_go(mr->domain);
	return err;
}

static int bind_ep(struct rwk_fi_mr *mr, struct rwk_fi_ep *ep, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (mr->ep || ep->domain != mr->domain || !(mr->domain->mr_mode & FI_MR_ENDPOINT)) {
		rwk_warn("fi_mr_bind: %s", mr->ep ? "the region has an endpoint"
					   : ep->domain != mr->domain
						   ? "the endpoint is another domain's"
						   : "regions are the domain's, without FI_MR_ENDPOINT");
		return -FI_EINVAL;
	}
	mr->ep = ep;
	rwk_fi_hold(&ep->mrs);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_mr *mr = mr_of(fid);

	if (mr->enabled && mr->domain->mr_mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT)) {
		rwk_warn("fi_mr_bind: the region is enabled");
		return -FI_EOPBADSTATE;
	}
	switch (other->fclass) {
	case FI_CLASS_CNTR:
		return bind_cntr(mr, rwk_container_of(other, struct rwk_fi_cntr, fid.fid), flags);
	case FI_CLASS_EP:
	case FI_CLASS_RX_CTX:
		other = rwk_fi_unaliased(other);
		if (rwk_container_of(other, struct fid_ep, fid)->rma == &rwk_fi_rma_ops)
			return bind_ep(mr, rwk_container_of(other, struct rwk_fi_ep, fid.fid), flags);
		rwk_warn("fi_mr_bind: an endpoint that is none of FI_EP_RDM");
		return -FI_EINVAL;
	default:
		rwk_warn("fi_mr_bind: an object of class %zu; there are counters and endpoints", other->fclass);
		return -FI_EINVAL;
	}
}

/* The address and key as bytes, for who wants them so. */
static int raw_attr(const struct rwk_fi_mr *mr, const struct fi_mr_raw_attr *raw)
{
	size_t room = *raw->key_size;

	*raw->key_size = sizeof(mr->fid.key);
	if (room < sizeof(mr->fid.key))
		return -FI_ETOOSMALL;
	memcpy(raw->raw_key, &mr->fid.key, sizeof(mr->fid.key));
	*raw->base_addr = base_of(mr);
	return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE:
		return enable(mr_of(fid));
	case FI_REFRESH: /* the pages are looked up at each access */
		return 0;
	case FI_GET_RAW_MR:
		return raw_attr(mr_of(fid), arg);
	default:
		return -FI_ENOSYS;
	}
}

int rwk_fi_mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	if (command == FI_MAP_RAW_MR) {
		const struct fi_mr_map_raw *map = arg;

		if (map->key_size != sizeof(*map->key))
			return -FI_EINVAL;
		memcpy(map->key, map->raw_key, sizeof(*map->key));
		return 0;
	}
	return command == FI_UNMAP_KEY ? 0 : -FI_ENOSYS;
}

static int mr_close(struct fid *fid)
{
	struct rwk_fi_mr *mr = mr_of(fid);
	struct rwk_fi_domain *domain = mr->domain;

	if (rwk_fi_is_inherited(domain->process))
		return 0;
	rwk_fi_domain_stop(domain);
	if (mr->region)
		rwk_region_remove(domain->regions, mr->region);
	if (mr->mr)
		rwk_fi_msg_mr_remove(mr->mr);
	for (int k = 0; k < COUNTED; k++) {
		if (mr->cntr[k])
			detach_counter(mr, k);
	}
	rwk_list_remove(&mr->link);
	rwk_fi_domain_go(domain);
	if (mr->ep)
		rwk_fi_drop(&mr->ep->mrs);
	rwk_fi_drop(&domain->refs);
	free(mr);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static int check_request(const struct rwk_fi_domain *domain, const struct fi_mr_attr *attr, uint64_t flags)
{
	size_t most = domain->device ? 1 : RWK_ENGINE_IOV_MAX;

	if (flags & ~(uint64_t)FI_RMA_EVENT) {
		rwk_info("fi_mr_reg: flags %#llx; there is FI_RMA_EVENT", (unsigned long long)flags);
		return -FI_EBADFLAGS;
	}
	if (attr->access & ~(LOCAL_ACCESS | REMOTE_ACCESS | PURPOSES)) {
		rwk_warn("fi_mr_reg: access %#llx; there is FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ and "
			 "FI_REMOTE_WRITE",
			(unsigned long long)attr->access);
		return -FI_EINVAL;
	}
	if (attr->offset || !attr->iov_count || attr->iov_count > most) {
		rwk_warn("fi_mr_reg: offset %llu, %zu pieces; there is offset 0 and 1 to %zu pieces",
			(unsigned long long)attr->offset, attr->iov_count, most);
		return -FI_EINVAL;
	}
	return 0;
}

/* Of the attributes only those that every API version has are looked at. */
static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **out)
{
	struct rwk_fi_domain *domain = rwk_container_of(fid, struct rwk_fi_domain, fid.fid);
	bool later = domain->mr_mode & FI_MR_ENDPOINT || (domain->mr_mode & FI_MR_RMA_EVENT && flags & FI_RMA_EVENT);
	struct rwk_fi_mr *mr;
	int err = check_request(domain, attr, flags);

	if (err)
		return err;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->access = attr->access;
	mr->wanted_key = attr->requested_key;
	mr->count = attr->iov_count;
	memcpy(mr->iov, attr->mr_iov, attr->iov_count * sizeof(*mr->iov));
	rwk_list_init(&mr->link);
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = (struct fi_ops *)&fid_ops;
	mr->fid.key = domain->mr_mode & FI_MR_PROV_KEY ? FI_KEY_NOTAVAIL : attr->requested_key;
	err = later ? 0 : enable(mr);
	if (err) {
		free(mr);
		return err;
	}
	rwk_fi_hold(&domain->refs);
	*out = &mr->fid;
	return 0;
}

static int regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
	uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return regattr(fid, &attr, flags, mr);
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t requested_key,
	uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

const struct fi_ops_mr rwk_fi_mr_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_mr, regattr),
	.reg = reg,
	.regv = regv,
	.regattr = regattr,
};
