/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/domain.h"

#include "base/log.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/av.h"
#include "bindings/libfabric/cntr.h"
#include "bindings/libfabric/cq.h"
#include "bindings/libfabric/dgram.h"
#include "bindings/libfabric/ep.h"
#include "bindings/libfabric/eq.h"
#include "bindings/libfabric/mr.h"
#include "bindings/libfabric/msg_domain.h"
#include "bindings/libfabric/peer.h"
#include "bindings/libfabric/poll_set.h"
#include "bindings/libfabric/progress.h"
#include "bindings/libfabric/scalable.h"
#include "bindings/libfabric/work_queue.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <stdlib.h>

static int stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context)
{
	if (rwk_fi_domain_of(domain)->type == FI_EP_DGRAM)
		return -FI_ENOSYS;
	return rwk_fi_stx_open(domain, attr, stx, context);
}

/* Of the domain's own, or (FI_PEER) another provider's. */
static int srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep, void *context)
{
	enum fi_ep_type type = rwk_fi_domain_of(domain)->type;
	bool peer = attr && attr->op_flags & FI_PEER;

	if (type == FI_EP_DGRAM || (type == FI_EP_MSG && peer))
		return -FI_ENOSYS;
	if (type == FI_EP_MSG)
		return rwk_fi_msg_srx_open(domain, attr, ep, context);
	if (peer)
		return rwk_fi_peer_srx_open(domain, attr, ep, context);
	return rwk_fi_srx_open(domain, attr, ep, context);
}

static int no_query_collective(
	struct fid_domain *domain, enum fi_collective_op op, struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain, (void)op, (void)attr, (void)flags;
	return -FI_EOPNOTSUPP;
}

/* The first endpoint brings the thread that makes progress, where it is wanted: before there is nothing to drive. */
static int begin_progress(struct rwk_fi_domain *domain)
{
	int err;

	if (domain->device)
		return rwk_fi_msg_domain_start(domain);
	if (!domain->automatic)
		return 0;
	rwk_fi_stop(&domain->groups);
	err = domain->groups.progress ? 0 : rwk_fi_progress_start(&domain->groups.first, &domain->groups.progress);
	rwk_fi_go(&domain->groups);
	return err;
}

/* The domain and its endpoints are of one kind. */
static int begin_endpoint(struct rwk_fi_domain *domain, const char *call, const struct fi_info *info)
{
	enum fi_ep_type type = info->ep_attr ? info->ep_attr->type : FI_EP_UNSPEC;

	if (type != FI_EP_UNSPEC && type != domain->type) {
		rwk_warn("%s: endpoint type %d; the domain was opened for %s", call, type,
			domain->type == FI_EP_MSG     ? "FI_EP_MSG"
			: domain->type == FI_EP_DGRAM ? "FI_EP_DGRAM"
						      : "FI_EP_RDM");
		return -FI_EINVAL;
	}
	return begin_progress(domain);
}

static int scalable_ep(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, void *context)
{
	struct rwk_fi_domain *domain = rwk_fi_domain_of(fid);
	int err;

	if (domain->type != FI_EP_RDM) {
		rwk_warn("fi_scalable_ep: the domain was opened for %s; there are scalable endpoints of FI_EP_RDM",
			domain->type == FI_EP_MSG ? "FI_EP_MSG" : "FI_EP_DGRAM");
		return -FI_ENOSYS;
	}
	err = begin_endpoint(domain, "fi_scalable_ep", info);
	return err ? err : rwk_fi_sep_open(domain, info, ep, context);
}

static int endpoint(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep, void *context)
{
	enum fi_ep_type own = rwk_fi_domain_of(fid)->type;
	int err = begin_endpoint(rwk_fi_domain_of(fid), "fi_endpoint", info);

	if (err)
		return err;
	if (own == FI_EP_MSG)
		return rwk_fi_msg_ep_open(fid, info, ep, context);
	return own == FI_EP_DGRAM ? rwk_fi_dgram_ep_open(fid, info, ep, context)
				  : rwk_fi_ep_open(fid, info, ep, context);
}

static int endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags, void *context)
{
	if (!flags)
		return endpoint(domain, info, ep, context);
	return -FI_ENOSYS;
}

/* An event queue for all endpoints that have none of their own. */
static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_domain *domain = rwk_container_of(fid, struct rwk_fi_domain, fid.fid);
	struct rwk_fi_eq *eq = rwk_container_of(other, struct rwk_fi_eq, fid.fid);

	if (flags) /* FI_REG_MR: registrations that end later, as an event */
		return -FI_EBADFLAGS;
	if (other->fclass != FI_CLASS_EQ || domain->eq || eq->fabric != domain->fabric) {
		rwk_warn("fi_domain_bind: %s",
			other->fclass != FI_CLASS_EQ ? "the object is no event queue"
			: domain->eq                 ? "the domain has an event queue"
						     : "the event queue is another fabric's");
		return -FI_EINVAL;
	}
	domain->eq = eq;
	rwk_fi_hold(&eq->refs);
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_QUEUE_WORK:
	case FI_CANCEL_WORK:
	case FI_FLUSH_WORK:
		return rwk_fi_work_control(rwk_container_of(fid, struct rwk_fi_domain, fid.fid), command, arg);
	default:
		return rwk_fi_mr_control(fid, command, arg);
	}
}

static void close_engines(struct rwk_fi_domain *domain)
{
	rwk_fi_groups_close(&domain->groups);
	rwk_fi_wait_close(&domain->hosted);
	rwk_regions_close(domain->regions);
}

static int domain_close(struct fid *fid)
{
	struct rwk_fi_domain *domain = rwk_container_of(fid, struct rwk_fi_domain, fid.fid);

	if (rwk_fi_is_inherited(domain->process))
		return 0;
	if (rwk_fi_busy(&domain->refs))
		return -FI_EBUSY;
	if (domain->eq)
		rwk_fi_drop(&domain->eq->refs);
	if (domain->device)
		rwk_fi_msg_domain_close(domain);
	else
		close_engines(domain);
	rwk_fi_drop(&domain->fabric->refs);
	free(domain);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = domain_close,
	.bind = domain_bind,
	.control = domain_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_domain domain_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_domain, endpoint2),
	.av_open = rwk_fi_av_open,
	.cq_open = rwk_fi_cq_open,
	.endpoint = endpoint,
	.scalable_ep = scalable_ep,
	.cntr_open = rwk_fi_cntr_open,
	.poll_open = rwk_fi_poll_set_open,
	.stx_ctx = stx_ctx,
	.srx_ctx = srx_ctx,
	.query_atomic = rwk_fi_query_atomic,
	.query_collective = no_query_collective,
	.endpoint2 = endpoint2,
};

bool rwk_fi_domain_is_ours(const struct fid_domain *fid)
{
	return fid->ops == &domain_ops;
}

/*
 * Control progress is the same as data progress: a peer that connects is answered by whoever drives the endpoint.
 *
 * FI_THREAD_COMPLETION too has locks: an endpoint's sends and receives may then come from two threads, one for each of
 * its queues, and they share the engine.
 */
static int open_engines(struct rwk_fi_domain *domain)
{
	bool single = domain->threading == FI_THREAD_DOMAIN;
	int err = rwk_regions_open(&domain->regions, !single);

	rwk_fi_wait_open(&domain->hosted, FI_WAIT_NONE, "fi_domain");
	if (!err)
		rwk_fi_groups_init(
			&domain->groups, !single || domain->automatic, single || domain->type == FI_EP_DGRAM);
	return err;
}

int rwk_fi_domain_join(struct rwk_fi_domain *domain, struct rwk_fi_member *m, struct rwk_fi_guard *guard)
{
	if (!domain->device)
		return rwk_fi_join(&domain->groups, m, guard);
	atomic_init(&guard->mutex, domain->lock);
	return 0;
}

void rwk_fi_domain_stop(struct rwk_fi_domain *domain)
{
	if (domain->device)
		rwk_fi_lock(domain->lock);
	else
		rwk_fi_stop(&domain->groups);
}

void rwk_fi_domain_go(struct rwk_fi_domain *domain)
{
	if (domain->device)
		rwk_fi_unlock(domain->lock);
	else
		rwk_fi_go(&domain->groups);
}

int rwk_fi_domain_drive(struct rwk_fi_domain *domain, struct rwk_fi_wait *w)
{
	int err;

	if (!domain->device)
		return 0;
	rwk_fi_lock(domain->lock);
	err = rwk_fi_wait_join(w, domain->device);
	rwk_fi_unlock(domain->lock);
	return err;
}

void rwk_fi_domain_undrive(struct rwk_fi_domain *domain, struct rwk_fi_wait *w)
{
	if (!domain->device)
		return;
	rwk_fi_lock(domain->lock);
	rwk_fi_wait_part(w);
	rwk_fi_unlock(domain->lock);
}

/* What the info says; an attribute that is not there has the default. */
static void take_info(struct rwk_fi_domain *domain, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	rwk_list_init(&domain->counted);
	rwk_fi_ears_init(&domain->ears, 40, 40, 8);
	rwk_list_init(&domain->works.all);
	rwk_list_init(&domain->works.due);
	rwk_list_init(&domain->works.counters);
	domain->mr_mode = rwk_fi_mr_bits(attr->mr_mode);
	domain->addr_format = info->addr_format ? info->addr_format : RWK_FI_ADDR_FORMAT;
	domain->type = info->ep_attr && info->ep_attr->type ? info->ep_attr->type : FI_EP_RDM;
	domain->av_type = attr->av_type;
	domain->threading = attr->threading;
	domain->automatic = attr->data_progress == FI_PROGRESS_AUTO || attr->control_progress == FI_PROGRESS_AUTO;
}

/* What a domain is asked for and does not have. */
static int check_modes(const struct rwk_fi_domain *domain)
{
	if (domain->type == FI_EP_RDM || !(domain->mr_mode & FI_MR_ENDPOINT))
		return 0;
	rwk_warn("fi_domain: FI_MR_ENDPOINT is FI_EP_RDM's alone; registrations of other kinds are the domain's");
	return -FI_EINVAL;
}

int rwk_fi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **fid, void *context)
{
	struct rwk_fi_domain *domain;
	int err;

	if (!info->domain_attr || (info->addr_format && !rwk_fi_address_size(info->addr_format))) {
		rwk_warn("fi_domain: the info is not one of ropewalk's: %s",
			info->domain_attr ? "the address format is none of native, FI_SOCKADDR_IN, FI_SOCKADDR_IN6"
					  : "it has no domain_attr");
		return -FI_EINVAL;
	}
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->fabric = rwk_fi_fabric_of(fabric);
	domain->process = rwk_this_process();
	take_info(domain, info);
	err = check_modes(domain);
	if (!err)
		err = domain->type == FI_EP_MSG ? rwk_fi_msg_domain_open(domain) : open_engines(domain);
	if (err) {
		free(domain);
		return err;
	}
	rwk_fi_hold(&domain->fabric->refs);
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = (struct fi_ops *)&fid_ops;
	domain->fid.ops = (struct fi_ops_domain *)&domain_ops;
	domain->fid.mr = (struct fi_ops_mr *)&rwk_fi_mr_ops;
	*fid = &domain->fid;
	return 0;
}
