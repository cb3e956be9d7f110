/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/null_provider/null.h"

#include <rdma/providers/fi_prov.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CAPS (FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM)
/* The core frees what getinfo returns, piece by piece; newer cores have larger structs than this was compiled with. */
#define ROOM 256

static void free_info(struct fi_info *i)
{
	if (!i)
		return;
	if (i->fabric_attr)
		free(i->fabric_attr->name);
	if (i->domain_attr)
		free(i->domain_attr->name);
	free(i->fabric_attr);
	free(i->domain_attr);
	free(i->ep_attr);
	free(i->rx_attr);
	free(i->tx_attr);
	free(i->src_addr);
	free(i);
}

static struct fi_info *allocate_info(void)
{
	struct fi_info *i = calloc(1, sizeof(*i) + ROOM);

	if (!i)
		return NULL;
	i->src_addr = calloc(1, sizeof(uint64_t));
	i->tx_attr = calloc(1, sizeof(*i->tx_attr) + ROOM);
	i->rx_attr = calloc(1, sizeof(*i->rx_attr) + ROOM);
	i->ep_attr = calloc(1, sizeof(*i->ep_attr) + ROOM);
	i->domain_attr = calloc(1, sizeof(*i->domain_attr) + ROOM);
	i->fabric_attr = calloc(1, sizeof(*i->fabric_attr) + ROOM);
	if (i->src_addr && i->tx_attr && i->rx_attr && i->ep_attr && i->domain_attr && i->fabric_attr) {
		i->domain_attr->name = strdup(NULL_NAME);
		i->fabric_attr->name = strdup(NULL_NAME);
		if (i->domain_attr->name && i->fabric_attr->name)
			return i;
	}
	free_info(i);
	return NULL;
}

static bool suits(const struct fi_info *hints)
{
	if (!hints)
		return true;
	if (hints->caps & ~CAPS)
		return false;
	return !hints->ep_attr || hints->ep_attr->type == FI_EP_UNSPEC || hints->ep_attr->type == FI_EP_RDM;
}

static void fill(struct fi_info *i, uint32_t version)
{
	i->caps = i->tx_attr->caps = i->rx_attr->caps = CAPS;
	i->addr_format = FI_ADDR_STR;
	i->src_addrlen = sizeof(uint64_t);
	i->tx_attr->msg_order = i->rx_attr->msg_order = FI_ORDER_SAS;
	i->tx_attr->inject_size = NULL_INJECT_SIZE;
	i->tx_attr->size = i->rx_attr->size = NULL_QUEUE;
	i->tx_attr->iov_limit = i->rx_attr->iov_limit = 1;
	i->ep_attr->type = FI_EP_RDM;
	i->ep_attr->protocol = FI_PROTO_UNSPEC;
	i->ep_attr->max_msg_size = SIZE_MAX;
	i->ep_attr->mem_tag_format = UINT64_MAX / 3 * 2; /* every bit free, in fields of one bit: 1010... */
	i->ep_attr->tx_ctx_cnt = i->ep_attr->rx_ctx_cnt = 1;
	i->domain_attr->threading = FI_THREAD_DOMAIN;
	i->domain_attr->control_progress = i->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	i->domain_attr->resource_mgmt = FI_RM_ENABLED;
	i->domain_attr->av_type = FI_AV_MAP;
	i->domain_attr->mr_key_size = i->domain_attr->cq_data_size = 8;
	i->domain_attr->cq_cnt = i->domain_attr->ep_cnt = 1024;
	i->domain_attr->tx_ctx_cnt = i->domain_attr->rx_ctx_cnt = 1024;
	i->domain_attr->max_ep_tx_ctx = i->domain_attr->max_ep_rx_ctx = 1;
	i->domain_attr->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	i->fabric_attr->prov_version = FI_VERSION(1, 0);
	i->fabric_attr->api_version = version;
}

/* What the program may choose is taken over as it asks. */
static void adopt(struct fi_info *i, const struct fi_info *hints)
{
	if (hints->tx_attr)
		i->tx_attr->op_flags = hints->tx_attr->op_flags;
	if (hints->rx_attr)
		i->rx_attr->op_flags = hints->rx_attr->op_flags;
	if (!hints->domain_attr)
		return;
	if (hints->domain_attr->threading != FI_THREAD_UNSPEC)
		i->domain_attr->threading = hints->domain_attr->threading;
	if (hints->domain_attr->av_type != FI_AV_UNSPEC)
		i->domain_attr->av_type = hints->domain_attr->av_type;
	if (hints->domain_attr->control_progress != FI_PROGRESS_UNSPEC)
		i->domain_attr->control_progress = hints->domain_attr->control_progress;
	if (hints->domain_attr->data_progress != FI_PROGRESS_UNSPEC)
		i->domain_attr->data_progress = hints->domain_attr->data_progress;
}

int null_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
	struct fi_info **info)
{
	struct fi_info *i;

	(void)flags;
	/* There is nowhere to go and no name to go by. */
	if (node || service || !suits(hints))
		return -FI_ENODATA;
	i = allocate_info();
	if (!i)
		return -FI_ENOMEM;
	fill(i, version);
	if (hints)
		adopt(i, hints);
	*info = i;
	return 0;
}

static struct fi_provider provider = {
	.name = NULL_NAME,
	.version = FI_VERSION(1, 0),
	.getinfo = null_getinfo,
	.fabric = null_fabric,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	provider.fi_version = fi_version();
	return &provider;
}
