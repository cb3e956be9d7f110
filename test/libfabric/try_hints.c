/* SPDX-License-Identifier: BSD-3-Clause */
/* What fi_getinfo says to a value in its hints. */
#include "try.h"

/* Bits of mr_mode that a program of today may offer. */
#define MR_MODES                                                                                                       \
	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY |             \
		FI_MR_RMA_EVENT | FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_COLLECTIVE)

/* fi_getinfo with these hints, which are freed; what the entry says goes to *info, to be freed if 0. */
static int ask(struct fi_info *hints, struct fi_info **info)
{
	int err = t_getinfo(hints, info);

	fi_freeinfo(hints);
	return err;
}

static long no_info(int err, struct fi_info *info)
{
	if (!err)
		fi_freeinfo(info);
	return err;
}

static long try_mode(struct t_target *t, uint64_t value)
{
	struct fi_info *hints = t_kind_hints(t->type), *info;
	long result;
	int err;

	hints->mode = value;
	err = ask(hints, &info);
	result = err ? err : info->mode & value ? 0 : T_NOT_NEEDED;
	no_info(err, info);
	return result;
}

/* The two modes of an old API stand alone; of the others all are offered, and then all but the one. */
static long try_mr_mode(struct t_target *t, int value)
{
	struct fi_info *hints = t_kind_hints(t->type), *info;
	bool alone = value == T_MR_BASIC || value == T_MR_SCALABLE;
	long result;
	int err;

	hints->domain_attr->mr_mode = alone ? value : MR_MODES;
	err = ask(hints, &info);
	result = err ? err : info->domain_attr->mr_mode & value ? 0 : T_NOT_NEEDED;
	no_info(err, info);
	if (result || alone)
		return result;
	hints = t_kind_hints(t->type);
	hints->caps = t->info->caps & (FI_RMA | FI_ATOMIC);
	hints->domain_attr->mr_mode = MR_MODES & ~value;
	err = ask(hints, &info);
	return no_info(err, info) ? T_NEEDED : 0;
}

static long try_cap(struct t_target *t, uint64_t value)
{
	struct fi_info *hints = t_kind_hints(t->type), *info;
	long result;
	int err;

	hints->caps = value;
	err = ask(hints, &info);
	result = err ? err : (info->caps & value) == value ? 0 : -FI_EOTHER;
	no_info(err, info);
	return result;
}

/* Puts a value to its place in the hints; false: no such group. */
static bool put(struct fi_info *hints, const struct t_name *n)
{
	if (!strcmp(n->group, "ep_type"))
		hints->ep_attr->type = (enum fi_ep_type)n->value;
	else if (!strcmp(n->group, "msg_order"))
		hints->tx_attr->msg_order = n->value;
	else if (!strcmp(n->group, "threading"))
		hints->domain_attr->threading = (enum fi_threading)n->value;
	else if (!strcmp(n->group, "progress"))
		hints->domain_attr->control_progress = hints->domain_attr->data_progress = (enum fi_progress)n->value;
	else if (!strcmp(n->group, "resource_mgmt"))
		hints->domain_attr->resource_mgmt = (enum fi_resource_mgmt)n->value;
	else if (!strcmp(n->group, "av_type"))
		hints->domain_attr->av_type = (enum fi_av_type)n->value;
	else if (!strcmp(n->group, "addr_format"))
		hints->addr_format = (uint32_t)n->value;
	else if (!strcmp(n->group, "tclass"))
		hints->tx_attr->tclass = (uint32_t)n->value;
	else
		return false;
	return true;
}

bool t_try_hint(struct t_target *t, const struct t_name *n)
{
	struct fi_info *hints, *info;
	long result;

	if (!strcmp(n->group, "mode")) {
		result = try_mode(t, n->value);
	} else if (!strcmp(n->group, "mr_mode")) {
		result = try_mr_mode(t, (int)n->value);
	} else if (!strcmp(n->group, "capability")) {
		result = try_cap(t, n->value);
	} else {
		hints = t_kind_hints(t->type);
		if (!put(hints, n)) {
			fi_freeinfo(hints);
			return false;
		}
		result = ask(hints, &info);
		result = no_info((int)result, info);
	}
	t_report(t, n->group, n->name, "fi_getinfo", result);
	return true;
}
