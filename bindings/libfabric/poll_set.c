/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/poll_set.h"

#include "base/log.h"
#include "bindings/libfabric/cntr.h"
#include "bindings/libfabric/cq.h"
#include "bindings/libfabric/watched.h"

#include <stdlib.h>

struct poll_set {
	struct fid_poll fid;
	struct rwk_fi_domain *domain;
	pthread_mutex_t lock; /* of the list; taken before a member's */
	struct rwk_fi_watched_list list;
	size_t turn; /* where the next look begins, so that a short array of contexts starves nobody */
};

static struct poll_set *set_of(struct fid_poll *fid)
{
	return rwk_container_of(fid, struct poll_set, fid);
}

/* What counts a member's users, and which domain it is of; NULL: neither a queue nor a counter. */
static atomic_uint *refs_of(struct fid *fid, const struct rwk_fi_domain **domain)
{
	struct rwk_fi_cntr *cntr = rwk_container_of(fid, struct rwk_fi_cntr, fid.fid);
	struct rwk_fi_cq *cq = rwk_container_of(fid, struct rwk_fi_cq, fid.fid);

	switch (fid->fclass) {
	case FI_CLASS_CQ:
		*domain = cq->domain;
		return &cq->refs;
	case FI_CLASS_CNTR:
		*domain = cntr->domain;
		return &cntr->refs;
	default:
		return NULL;
	}
}

static int poll_add(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct poll_set *set = set_of(fid);
	const struct rwk_fi_domain *domain;
	atomic_uint *refs = refs_of(member, &domain);
	int err;

	if (flags)
		return -FI_EBADFLAGS;
	if (!refs || domain != set->domain) {
		rwk_warn("fi_poll_add: %s",
			refs ? "the object is another domain's"
			     : "the object is neither a completion queue nor a counter");
		return -FI_EINVAL;
	}
	pthread_mutex_lock(&set->lock);
	err = rwk_fi_watched_add(&set->list, member);
	pthread_mutex_unlock(&set->lock);
	if (!err)
		rwk_fi_hold(refs);
	return err;
}

static int poll_del(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct poll_set *set = set_of(fid);
	const struct rwk_fi_domain *domain;
	bool was;

	if (flags)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&set->lock);
	was = rwk_fi_watched_remove(&set->list, member);
	pthread_mutex_unlock(&set->lock);
	if (!was)
		return -FI_EINVAL;
	rwk_fi_drop(refs_of(member, &domain));
	return 0;
}

/* The contexts of those that have something, at most `count`. */
static int poll_all(struct fid_poll *fid, void **contexts, int count)
{
	struct poll_set *set = set_of(fid);
	int n = 0;

	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; i < set->list.count && n < count; i++) {
		struct rwk_fi_watched *w = &set->list.all[set->turn++ % set->list.count];

		if (rwk_fi_watched_look(w, false))
			contexts[n++] = w->fid->context;
	}
	pthread_mutex_unlock(&set->lock);
	return n;
}

static int poll_close(struct fid *fid)
{
	struct poll_set *set = rwk_container_of(fid, struct poll_set, fid.fid);

	if (rwk_fi_is_inherited(set->domain->process))
		return 0;
	if (set->list.count)
		return -FI_EBUSY;
	rwk_fi_drop(&set->domain->refs);
	pthread_mutex_destroy(&set->lock);
	free(set->list.all);
	free(set);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = poll_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_poll poll_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_poll, poll_del),
	.poll = poll_all,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int rwk_fi_poll_set_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **fid)
{
	struct poll_set *set;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	pthread_mutex_init(&set->lock, NULL);
	set->domain = rwk_fi_domain_of(domain);
	rwk_fi_hold(&set->domain->refs);
	set->fid.fid.fclass = FI_CLASS_POLL;
	set->fid.fid.ops = (struct fi_ops *)&fid_ops;
	set->fid.ops = (struct fi_ops_poll *)&poll_ops;
	*fid = &set->fid;
	return 0;
}
