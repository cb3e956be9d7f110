/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hints against what there is. Strict: what is asked for and not there is refused, and the log (FI_LOG_LEVEL=info) says
 * for each mismatch what was asked and what there is, so that "no data available" has an explanation.
 */
#include "bindings/libfabric/info.h"

#include "base/log.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/legacy.h"

#include <string.h>

/* Bits asked for must be among those we have. */
static int check_bits(const char *what, uint64_t asked, uint64_t have)
{
	if (!(asked & ~have))
		return 0;
	rwk_info("getinfo: %s asks for %#llx, of which %#llx is not there (there is %#llx)", what,
		(unsigned long long)asked, (unsigned long long)(asked & ~have), (unsigned long long)have);
	return -FI_ENODATA;
}

/* A member of an attribute structure that may ask for at most `max`. */
struct limit {
	const char *what;
	size_t offset;
	size_t max;
};

static int check_limits(const void *attr, const struct limit *limits, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		size_t asked = *(const size_t *)((const char *)attr + limits[i].offset);

		if (asked <= limits[i].max)
			continue;
		rwk_info("getinfo: %s asks for %zu, there is %zu", limits[i].what, asked, limits[i].max);
		err = -FI_ENODATA;
	}
	return err;
}

static int check_choice(const char *what, unsigned asked, bool good, const char *have)
{
	if (good)
		return 0;
	rwk_info("getinfo: %s asks for %u, there is %s", what, asked, have);
	return -FI_ENODATA;
}

static int check_name(const char *what, const char *asked)
{
	if (!asked || !strcmp(asked, RWK_FI_NAME))
		return 0;
	rwk_info("getinfo: %s asks for %s, there is " RWK_FI_NAME, what, asked);
	return -FI_ENODATA;
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int check_tx(const struct rwk_fi_kind *k, const struct fi_tx_attr *tx)
{
	const struct limit limits[] = {
		{"tx_attr.inject_size", offsetof(struct fi_tx_attr, inject_size), k->inject_size},
		{"tx_attr.size", offsetof(struct fi_tx_attr, size), k->tx_size_max},
		{"tx_attr.iov_limit", offsetof(struct fi_tx_attr, iov_limit), k->iov_limit},
		{"tx_attr.rma_iov_limit", offsetof(struct fi_tx_attr, rma_iov_limit), k->rma_iov_limit},
	};
	int err = check_limits(tx, limits, COUNT(limits));

	err |= check_bits("tx_attr.caps", tx->caps, k->tx_caps | RWK_FI_DOMAIN_CAPS);
	err |= check_bits("tx_attr.op_flags", tx->op_flags, k->tx_op_flags);
	err |= check_bits("tx_attr.msg_order", tx->msg_order, k->msg_order);
	err |= check_bits("tx_attr.comp_order", tx->comp_order, 0);
	return err;
}

static int check_rx(const struct rwk_fi_kind *k, const struct fi_rx_attr *rx)
{
	const struct limit limits[] = {
		{"rx_attr.size", offsetof(struct fi_rx_attr, size), k->rx_size_max},
		{"rx_attr.iov_limit", offsetof(struct fi_rx_attr, iov_limit), k->iov_limit},
		{"rx_attr.total_buffered_recv", offsetof(struct fi_rx_attr, total_buffered_recv), k->max_buffered},
	};
	int err = check_limits(rx, limits, COUNT(limits));

	err |= check_bits("rx_attr.caps", rx->caps, k->rx_caps | RWK_FI_DOMAIN_CAPS);
	err |= check_bits("rx_attr.op_flags", rx->op_flags, k->rx_op_flags);
	err |= check_bits("rx_attr.msg_order", rx->msg_order, k->msg_order);
	err |= check_bits("rx_attr.comp_order", rx->comp_order, 0);
	return err;
}

static int check_contexts(const struct rwk_fi_kind *k, const char *what, size_t asked, size_t shared)
{
	if (asked <= k->contexts || (asked == FI_SHARED_CONTEXT && shared))
		return 0;
	rwk_info("getinfo: %s asks for %zu, there is 1 to %zu%s", what, asked, k->contexts,
		shared ? ", or FI_SHARED_CONTEXT" : "");
	return -FI_ENODATA;
}

static int check_ep(const struct rwk_fi_kind *k, const struct fi_ep_attr *ep)
{
	const struct limit limits[] = {
		{"ep_attr.max_msg_size", offsetof(struct fi_ep_attr, max_msg_size), rwk_fi_kind_max_msg(k)},
		{"ep_attr.msg_prefix_size", offsetof(struct fi_ep_attr, msg_prefix_size), 0},
		{"ep_attr.max_order_raw_size", offsetof(struct fi_ep_attr, max_order_raw_size), k->max_order_raw},
		{"ep_attr.max_order_war_size", offsetof(struct fi_ep_attr, max_order_war_size), k->max_order_war},
		{"ep_attr.max_order_waw_size", offsetof(struct fi_ep_attr, max_order_waw_size), k->max_order_waw},
		{"ep_attr.auth_key_size", offsetof(struct fi_ep_attr, auth_key_size), 0},
	};
	int err = check_limits(ep, limits, COUNT(limits));

	err |= check_contexts(k, "ep_attr.tx_ctx_cnt", ep->tx_ctx_cnt, k->stx_cnt);
	err |= check_contexts(k, "ep_attr.rx_ctx_cnt", ep->rx_ctx_cnt, k->srx_cnt);
	err |= check_choice("ep_attr.type", ep->type, ep->type == FI_EP_UNSPEC || ep->type == k->type, k->name);
	err |= check_choice("ep_attr.protocol", ep->protocol,
		ep->protocol == FI_PROTO_UNSPEC || ep->protocol == k->protocol, "ropewalk's own");
	err |= check_choice("ep_attr.protocol_version", ep->protocol_version, ep->protocol_version <= 1, "1");
	return err;
}

static int check_domain(const struct rwk_fi_kind *k, const struct fi_domain_attr *d)
{
	const struct limit limits[] = {
		{"domain_attr.cq_data_size", offsetof(struct fi_domain_attr, cq_data_size), k->data_size},
		{"domain_attr.cq_cnt", offsetof(struct fi_domain_attr, cq_cnt), RWK_FI_OBJECTS},
		{"domain_attr.ep_cnt", offsetof(struct fi_domain_attr, ep_cnt), k->ep_cnt},
		{"domain_attr.tx_ctx_cnt", offsetof(struct fi_domain_attr, tx_ctx_cnt), RWK_FI_OBJECTS},
		{"domain_attr.rx_ctx_cnt", offsetof(struct fi_domain_attr, rx_ctx_cnt), RWK_FI_OBJECTS},
		{"domain_attr.max_ep_tx_ctx", offsetof(struct fi_domain_attr, max_ep_tx_ctx), k->contexts},
		{"domain_attr.max_ep_rx_ctx", offsetof(struct fi_domain_attr, max_ep_rx_ctx), k->contexts},
		{"domain_attr.max_ep_stx_ctx", offsetof(struct fi_domain_attr, max_ep_stx_ctx), k->stx_cnt},
		{"domain_attr.max_ep_srx_ctx", offsetof(struct fi_domain_attr, max_ep_srx_ctx), k->srx_cnt},
		{"domain_attr.cntr_cnt", offsetof(struct fi_domain_attr, cntr_cnt), RWK_FI_OBJECTS},
		{"domain_attr.mr_iov_limit", offsetof(struct fi_domain_attr, mr_iov_limit), k->mr_iov_limit},
		{"domain_attr.mr_key_size", offsetof(struct fi_domain_attr, mr_key_size), sizeof(uint64_t)},
		{"domain_attr.auth_key_size", offsetof(struct fi_domain_attr, auth_key_size), 0},
	};
	int err = check_limits(d, limits, COUNT(limits));

	err |= check_name("domain_attr.name", d->name);
	err |= check_bits("domain_attr.caps", d->caps, rwk_fi_domain_caps(k));
	err |= check_choice(
		"domain_attr.threading", d->threading, d->threading <= FI_THREAD_ENDPOINT, "every model up to 5");
	/* 3: FI_PROGRESS_CONTROL_UNIFIED of 2.x. */
	err |= check_choice("domain_attr.control_progress", d->control_progress, (unsigned)d->control_progress <= 3,
		"FI_PROGRESS_MANUAL and FI_PROGRESS_AUTO");
	err |= check_choice("domain_attr.data_progress", d->data_progress, d->data_progress <= FI_PROGRESS_MANUAL,
		"FI_PROGRESS_MANUAL and FI_PROGRESS_AUTO");
	err |= check_choice(
		"domain_attr.resource_mgmt", d->resource_mgmt, d->resource_mgmt <= FI_RM_ENABLED, "FI_RM_ENABLED");
	err |= check_choice("domain_attr.mr_mode", (unsigned)d->mr_mode,
		!(d->mr_mode & (RWK_FI_MR_BASIC | RWK_FI_MR_SCALABLE)) || d->mr_mode == RWK_FI_MR_BASIC ||
			d->mr_mode == RWK_FI_MR_SCALABLE,
		"FI_MR_BASIC alone, FI_MR_SCALABLE alone, or bits without either");
	err |= check_choice("domain_attr.av_type", d->av_type, d->av_type <= FI_AV_TABLE, "FI_AV_MAP and FI_AV_TABLE");
	return err;
}

/* An address in the hints has the length of its format. */
static int check_address(const char *what, uint32_t format, const void *addr, size_t len)
{
	if (!addr)
		return 0;
	if (format == FI_FORMAT_UNSPEC)
		return check_choice(what, (unsigned)len,
			len == rwk_fi_address_size(RWK_FI_ADDR_FORMAT) || len == rwk_fi_address_size(FI_SOCKADDR_IN) ||
				len == rwk_fi_address_size(FI_SOCKADDR_IN6),
			"40 bytes (native), 16 (FI_SOCKADDR_IN) and 28 (FI_SOCKADDR_IN6)");
	return check_choice(what, (unsigned)len, len >= rwk_fi_address_size(format), "the length of that format");
}

bool rwk_fi_reaches(const struct rwk_fi_kind *k, uint32_t version, const struct fi_domain_attr *d)
{
	int mode = d ? d->mr_mode : 0;

	if (!k->mr_needed || !d || mode == RWK_FI_MR_BASIC)
		return true;
	if (!mode) /* before 1.5: either of the two that there were */
		return FI_VERSION_LT(version, FI_VERSION(1, 5));
	return mode != RWK_FI_MR_SCALABLE && !(k->mr_needed & ~mode);
}

bool rwk_fi_shares_receives(const struct fi_info *hints)
{
	return hints && hints->ep_attr && hints->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
}

/* A shared receive context does not know whom a receive is directed at. */
static int check_shared(const struct fi_info *hints)
{
	uint64_t caps = hints->caps | (hints->rx_attr ? hints->rx_attr->caps : 0);

	if (!rwk_fi_shares_receives(hints))
		return 0;
	return check_bits("caps with a shared receive context", caps & FI_DIRECTED_RECV, 0);
}

int rwk_fi_check_hints(const struct rwk_fi_kind *k, uint32_t version, const struct fi_info *hints)
{
	int err = check_bits("caps", hints->caps, rwk_fi_kind_caps(k));

	err |= check_choice("addr_format", hints->addr_format,
		hints->addr_format == FI_FORMAT_UNSPEC || rwk_fi_address_size(hints->addr_format),
		"native, FI_SOCKADDR_IN and FI_SOCKADDR_IN6");
	if (err)
		return -FI_ENODATA;
	err |= check_address("src_addrlen", hints->addr_format, hints->src_addr, hints->src_addrlen);
	err |= check_address("dest_addrlen", hints->addr_format, hints->dest_addr, hints->dest_addrlen);
	if (hints->tx_attr)
		err |= check_tx(k, hints->tx_attr);
	if (hints->rx_attr)
		err |= check_rx(k, hints->rx_attr);
	if (hints->ep_attr)
		err |= check_ep(k, hints->ep_attr);
	err |= check_shared(hints);
	if (hints->domain_attr)
		err |= check_domain(k, hints->domain_attr);
	if (hints->caps & (FI_RMA | FI_ATOMIC))
		err |= check_choice("domain_attr.mr_mode",
			hints->domain_attr ? (unsigned)hints->domain_attr->mr_mode : 0,
			rwk_fi_reaches(k, version, hints->domain_attr),
			"FI_MR_VIRT_ADDR with FI_MR_PROV_KEY for FI_EP_MSG");
	if (hints->fabric_attr) {
		err |= check_name("fabric_attr.name", hints->fabric_attr->name);
		err |= check_choice("fabric_attr.prov_version", hints->fabric_attr->prov_version,
			hints->fabric_attr->prov_version <= rwk_fi_provider.version, "an older one");
	}
	return err ? -FI_ENODATA : 0;
}
