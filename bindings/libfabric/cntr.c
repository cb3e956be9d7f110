/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/cntr.h"

#include "base/log.h"
#include "bindings/libfabric/peer.h"
#include "bindings/libfabric/wait_set.h"

#include <stdlib.h>

static struct rwk_fi_cntr *cntr_of(struct fid_cntr *fid)
{
	return rwk_container_of(fid, struct rwk_fi_cntr, fid);
}

/* Reading drives the engines: a program may call nothing else while it waits. */
static uint64_t look(struct rwk_fi_cntr *cntr, const uint64_t *number, uint64_t *told)
{
	uint64_t value;
	bool tired;

	rwk_fi_enter(&cntr->lock);
	tired = !rwk_fi_wait_progress(&cntr->wait) && rwk_fi_wait_tires(&cntr->wait);
	value = *told = *number;
	rwk_fi_leave(&cntr->lock);
	if (rwk_unlikely(tired))
		rwk_fi_rest();
	return value;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct rwk_fi_cntr *cntr = cntr_of(fid);

	return look(cntr, &cntr->value, &cntr->told.value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct rwk_fi_cntr *cntr = cntr_of(fid);

	return look(cntr, &cntr->errors, &cntr->told.errors);
}

/* Changes one of the two numbers; whoever waits looks again, and so do works. */
static int change(struct rwk_fi_cntr *cntr, uint64_t *number, uint64_t value)
{
	rwk_fi_enter(&cntr->lock);
	*number = value;
	rwk_fi_cntr_moved(cntr);
	rwk_fi_leave(&cntr->lock);
	return 0;
}

static int add(struct rwk_fi_cntr *cntr, uint64_t *number, uint64_t value)
{
	rwk_fi_enter(&cntr->lock);
	*number += value;
	rwk_fi_cntr_moved(cntr);
	rwk_fi_leave(&cntr->lock);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return add(cntr_of(fid), &cntr_of(fid)->value, value);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return add(cntr_of(fid), &cntr_of(fid)->errors, value);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return change(cntr_of(fid), &cntr_of(fid)->value, value);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(cntr_of(fid), &cntr_of(fid)->errors, value);
}

/* What fi_cntr_wait waits for: a value, or an error that was not there before. */
struct want {
	const struct rwk_fi_cntr *cntr;
	uint64_t threshold, errors;
};

static bool reached(const void *arg)
{
	const struct want *w = arg;

	return w->cntr->value >= w->threshold || w->cntr->errors != w->errors;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct rwk_fi_cntr *cntr = cntr_of(fid);
	struct want want = {cntr, threshold, 0};
	int err;

	rwk_fi_enter(&cntr->lock);
	want.errors = cntr->errors;
	err = rwk_fi_wait_for(&cntr->wait, &cntr->lock, timeout, reached, &want);
	if (!err && cntr->value < threshold)
		err = -FI_EAVAIL;
	rwk_fi_leave(&cntr->lock);
	return err;
}

int rwk_fi_cntr_trywait(struct rwk_fi_cntr *cntr, struct rwk_fi_told *told)
{
	int err;

	rwk_fi_enter(&cntr->lock);
	rwk_fi_wait_progress(&cntr->wait);
	err = rwk_fi_cntr_tell(cntr, told ? told : &cntr->told) ? -FI_EAGAIN : rwk_fi_wait_arm_given(&cntr->wait);
	if (!err)
		rwk_fi_wait_sleeps(&cntr->wait, &cntr->lock);
	rwk_fi_leave(&cntr->lock);
	return err;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_cntr *cntr = rwk_container_of(fid, struct rwk_fi_cntr, fid.fid);

	return rwk_fi_wait_control(&cntr->wait, &cntr->lock, command, arg);
}

static int cntr_close(struct fid *fid)
{
	struct rwk_fi_cntr *cntr = rwk_container_of(fid, struct rwk_fi_cntr, fid.fid);

	if (rwk_fi_is_inherited(cntr->domain->process))
		return 0;
	if (rwk_fi_busy(&cntr->refs))
		return -FI_EBUSY;
	rwk_fi_wait_set_leave(cntr->wait.set, fid, cntr->wait.given_fd);
	rwk_fi_domain_undrive(cntr->domain, &cntr->wait);
	rwk_fi_enter(&cntr->lock);
	rwk_list_remove(&cntr->of_works);
	rwk_fi_wait_close(&cntr->wait);
	rwk_fi_leave(&cntr->lock);
	rwk_fi_part(&cntr->domain->groups, &cntr->member);
	rwk_fi_drop(&cntr->domain->refs);
	free(cntr);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = cntr_close,
	.bind = rwk_fi_no_bind,
	.control = cntr_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_cntr cntr_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cntr, seterr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int rwk_fi_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr, struct fid_cntr **fid, void *context)
{
	struct rwk_fi_cntr *cntr;
	int err;

	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags & ~(uint64_t)FI_PEER)) {
		rwk_warn("fi_cntr_open: events %d, flags %#llx; there is FI_CNTR_EVENTS_COMP, and FI_PEER",
			attr->events, (unsigned long long)attr->flags);
		return attr->flags & ~(uint64_t)FI_PEER ? -FI_EBADFLAGS : -FI_ENOSYS;
	}
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	err = rwk_fi_wait_open_in(&cntr->wait, attr ? attr->wait_obj : FI_WAIT_NONE, attr ? attr->wait_set : NULL,
		rwk_fi_domain_of(domain_fid), "fi_cntr_open");
	if (err)
		goto free_cntr;
	err = rwk_fi_domain_drive(rwk_fi_domain_of(domain_fid), &cntr->wait);
	if (err)
		goto close_wait;
	err = rwk_fi_domain_join(rwk_fi_domain_of(domain_fid), &cntr->member, &cntr->lock);
	if (err)
		goto undrive;
	cntr->domain = rwk_fi_domain_of(domain_fid);
	rwk_list_init(&cntr->works);
	rwk_list_init(&cntr->of_works);
	rwk_fi_hold(&cntr->domain->refs);
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = (struct fi_ops *)&fid_ops;
	cntr->fid.ops = (struct fi_ops_cntr *)&cntr_ops;
	err = attr && attr->flags & FI_PEER ? rwk_fi_peer_cntr_import(cntr, context) : 0;
	if (!err)
		err = rwk_fi_wait_set_enter(cntr->wait.set, &cntr->fid.fid, cntr->wait.given_fd);
	if (err) {
		cntr_close(&cntr->fid.fid);
		return err;
	}
	*fid = &cntr->fid;
	return 0;

undrive:
	rwk_fi_domain_undrive(rwk_fi_domain_of(domain_fid), &cntr->wait);
close_wait:
	rwk_fi_wait_close(&cntr->wait);
free_cntr:
	free(cntr);
	return err;
}
