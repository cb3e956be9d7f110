/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing libfabric's objects for the worker. */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int rc, const char *call)
{
	if (rc)
		wrong("%s: %d (%s)", call, rc, fi_strerror(rc < 0 ? -rc : rc));
}

static struct fi_info *wanted(const struct options *o, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_TAGGED | FI_DIRECTED_RECV | caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = 0;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(o->provider);
	return hints;
}

void fabric_say_address(struct fabric *f)
{
	unsigned char addr[256];
	char hex[2 * sizeof(addr) + 1];
	size_t len = sizeof(addr);

	must(fi_getname(&f->ep->fid, addr, &len), "fi_getname");
	for (size_t i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", addr[i]);
	say("addr %s", hex);
}

void fabric_open(struct fabric *f, const struct options *o, uint64_t caps)
{
	struct fi_info *hints = wanted(o, caps);
	struct fi_av_attr av = {0};
	struct fi_cq_attr cq = {
		.size = 1024, .format = FI_CQ_FORMAT_TAGGED, .wait_obj = o->sread ? FI_WAIT_UNSPEC : FI_WAIT_NONE};

	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &f->info), "fi_getinfo");
	if (strcmp(f->info->fabric_attr->prov_name, o->provider))
		wrong("asked for provider %s, got %s", o->provider, f->info->fabric_attr->prov_name);
	must(fi_fabric(f->info->fabric_attr, &f->fabric, NULL), "fi_fabric");
	must(fi_domain(f->fabric, f->info, &f->domain, NULL), "fi_domain");
	av.type = f->info->domain_attr->av_type;
	av.count = (size_t)o->ranks;
	must(fi_av_open(f->domain, &av, &f->av, NULL), "fi_av_open");
	must(fi_cq_open(f->domain, &cq, &f->cq, NULL), "fi_cq_open");
	must(fi_endpoint(f->domain, f->info, &f->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(f->ep, &f->av->fid, 0), "fi_ep_bind to the AV");
	must(fi_ep_bind(f->ep, &f->cq->fid, FI_SEND | FI_RECV), "fi_ep_bind to the CQ");
	must(fi_enable(f->ep), "fi_enable");
	fi_freeinfo(hints);
}

void fabric_insert(struct fabric *f, int rank, const char *hex)
{
	unsigned char addr[256];
	size_t len = strlen(hex) / 2;
	unsigned byte;

	if (rank >= MAX_RANKS || len > sizeof(addr))
		wrong("address %d has %zu bytes", rank, len);
	for (size_t i = 0; i < len; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			wrong("address %d is not hexadecimal: %s", rank, hex);
		addr[i] = (unsigned char)byte;
	}
	if (fi_av_insert(f->av, addr, 1, &f->peers[rank], 0, NULL) != 1)
		wrong("fi_av_insert refuses rank %d", rank);
}

void fabric_close(struct fabric *f)
{
	must(fi_close(&f->ep->fid), "fi_close of the endpoint");
	must(fi_close(&f->cq->fid), "fi_close of the CQ");
	must(fi_close(&f->av->fid), "fi_close of the AV");
	must(fi_close(&f->domain->fid), "fi_close of the domain");
	must(fi_close(&f->fabric->fid), "fi_close of the fabric");
	fi_freeinfo(f->info);
}

bool fabric_reap(struct fabric *f, int wait_ms, void (*completed)(const struct fi_cq_tagged_entry *e),
	void (*in_error)(const struct fi_cq_err_entry *e))
{
	struct fi_cq_tagged_entry e[16];
	struct fi_cq_err_entry bad = {0};
	ssize_t n = wait_ms ? fi_cq_sread(f->cq, e, 16, NULL, wait_ms) : fi_cq_read(f->cq, e, 16);

	if (n == -FI_EAVAIL) {
		if (fi_cq_readerr(f->cq, &bad, 0) != 1)
			return true;
		if (!bad.op_context)
			wrong("an error entry without a context: %d (%s)", bad.err, fi_strerror(bad.err));
		in_error(&bad);
		return true;
	}
	if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR)
		wrong("fi_cq_read: %zd (%s)", n, fi_strerror((int)-n));
	for (ssize_t i = 0; i < n; i++)
		completed(&e[i]);
	return n > 0;
}
