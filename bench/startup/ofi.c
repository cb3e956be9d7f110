/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/startup/startup.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av;
static fi_addr_t *peer;
static struct fi_info *info;

static const char *wrong(const char *what, long err)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s: %s", what, fi_strerror((int)-err));
	return text;
}

static const char *open_endpoint(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 4 * STARTUP_RANKS};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = STARTUP_RANKS};
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int err;

	if ((err = fi_fabric(info->fabric_attr, &fabric, NULL)))
		return wrong("fi_fabric", err);
	if ((err = fi_domain(fabric, info, &domain, NULL)))
		return wrong("fi_domain", err);
	if ((err = fi_av_open(domain, &av_attr, &av, NULL)))
		return wrong("fi_av_open", err);
	if ((err = fi_cq_open(domain, &cq_attr, &cq, NULL)))
		return wrong("fi_cq_open", err);
	if ((err = fi_endpoint(domain, info, &ep, NULL)))
		return wrong("fi_endpoint", err);
	if ((err = fi_ep_bind(ep, &av->fid, 0)) || (err = fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV)))
		return wrong("fi_ep_bind", err);
	err = fi_enable(ep);
	return err ? wrong("fi_enable", err) : NULL;
}

static const char *ofi_find(const char *name)
{
	struct fi_info *hints = fi_allocinfo();
	int err;

	if (!hints)
		return "out of memory";
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(name);
	err = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	return err ? wrong("fi_getinfo", err) : NULL;
}

static const char *ofi_open(struct startup_address *own)
{
	const char *why = open_endpoint();
	int err;

	fi_freeinfo(info);
	if (why)
		return why;
	own->len = sizeof(own->bytes);
	err = fi_getname(&ep->fid, own->bytes, &own->len);
	return err ? wrong("fi_getname", err) : NULL;
}

static const char *ofi_meet(const struct startup_address *all, unsigned n)
{
	peer = calloc(n, sizeof(*peer));
	if (!peer)
		return "out of memory";
	for (unsigned i = 0; i < n; i++) {
		if (fi_av_insert(av, all[i].bytes, 1, &peer[i], 0, NULL) != 1)
			return "fi_av_insert: it takes an address not";
	}
	return NULL;
}

/** Takes what is complete. */
static const char *read_queue(unsigned *done)
{
	struct fi_cq_tagged_entry entry[2];
	ssize_t n = fi_cq_read(cq, entry, 2);

	if (n > 0)
		*done += (unsigned)n;
	else if (n == -FI_EAGAIN)
		sched_yield();
	else
		return wrong("fi_cq_read", n);
	return NULL;
}

static const char *ofi_exchange(unsigned to)
{
	static struct fi_context2 context[2];
	static char out[8], in[8];
	const char *why = NULL;
	unsigned done = 0;
	ssize_t err = fi_trecv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, &context[0]);

	if (err)
		return wrong("fi_trecv", err);
	while (!why && (err = fi_tsend(ep, out, sizeof(out), NULL, peer[to], 1, &context[1])) == -FI_EAGAIN)
		why = read_queue(&done);
	if (!why && err)
		return wrong("fi_tsend", err);
	while (!why && done < 2)
		why = read_queue(&done);
	return why;
}

/** Some providers' endpoints have files. */
static void ofi_end(void)
{
	if (ep)
		fi_close(&ep->fid);
}

const struct startup_stack startup_ofi = {ofi_find, ofi_open, ofi_meet, ofi_exchange, ofi_end};
