/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_getinfo: one entry for each kind of endpoint and each address format asked for. The entries are made piece by
 * piece with calloc, larger than needed: the core frees them piece by piece, and a newer one copies more than this
 * header knows.
 */
#include "bindings/libfabric/info.h"

#include "base/cancel.h"
#include "base/log.h"
#include "base/param.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/domain.h"
#include "bindings/libfabric/fabric.h"
#include "bindings/libfabric/legacy.h"
#include "bindings/libfabric/mr.h"
#include "bindings/libfabric/nic.h"
#include "bindings/libfabric/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Where from and where to. The source is what the request says, or any address of this node's with any port. */
struct ends {
	bool has_src, has_dest;
	struct rwk_address src, dest;
};

void rwk_fi_info_free(struct fi_info *info)
{
	while (info) {
		struct fi_info *next = info->next;

		if (info->fabric_attr) {
			free(info->fabric_attr->name);
			free(info->fabric_attr->prov_name);
		}
		if (info->domain_attr)
			free(info->domain_attr->name);
		free(info->fabric_attr);
		free(info->domain_attr);
		free(info->ep_attr);
		free(info->rx_attr);
		free(info->tx_attr);
		free(info->dest_addr);
		free(info->src_addr);
		if (info->nic)
			fi_close(&info->nic->fid);
		free(info);
		info = next;
	}
}

static void *spare_calloc(size_t size)
{
	return calloc(1, size + RWK_FI_SPARE);
}

static struct fi_info *alloc_info(void)
{
	struct fi_info *info = spare_calloc(sizeof(*info));

	if (!info)
		return NULL;
	info->tx_attr = spare_calloc(sizeof(*info->tx_attr));
	info->rx_attr = spare_calloc(sizeof(*info->rx_attr));
	info->ep_attr = spare_calloc(sizeof(*info->ep_attr));
	info->domain_attr = spare_calloc(sizeof(*info->domain_attr));
	info->fabric_attr = spare_calloc(sizeof(*info->fabric_attr));
	if (info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr) {
		info->domain_attr->name = strdup(RWK_FI_NAME);
		info->fabric_attr->name = strdup(RWK_FI_NAME);
		/* The core fills in prov_name. */
		if (info->domain_attr->name && info->fabric_attr->name)
			return info;
	}
	rwk_fi_info_free(info);
	return NULL;
}

#define MESSAGES  ((uint64_t)(FI_MSG | FI_TAGGED))
#define ONE_SIDED ((uint64_t)(FI_RMA | FI_ATOMIC))
#define ACCESSES  ((uint64_t)(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))

uint64_t rwk_fi_domain_caps(const struct rwk_fi_kind *k)
{
	uint64_t absent = rwk_fi_peer_known() ? 0 : FI_PEER;

	return RWK_FI_DOMAIN_CAPS | (k->domain_caps & ~absent);
}

uint64_t rwk_fi_complete_caps(const struct rwk_fi_kind *k, uint64_t caps)
{
	uint64_t all = rwk_fi_kind_caps(k);

	/*
	 * Who sees named contexts unasked takes scalable endpoints for the better choice (MPICH): they are
	 * for who asks.
	 */
	if (!caps)
		return all & ~(uint64_t)FI_NAMED_RX_CTX;
	if (!(caps & (MESSAGES | ONE_SIDED)))
		caps |= MESSAGES & all;
	if (caps & MESSAGES && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if (caps & ONE_SIDED && !(caps & ACCESSES))
		caps |= ACCESSES;
	return caps | RWK_FI_DOMAIN_CAPS; /* who sits where is not the program's choice */
}

uint64_t rwk_fi_endpoint_caps(const struct rwk_fi_kind *k, uint64_t caps)
{
	caps = rwk_fi_complete_caps(k, caps);
	if (caps & ONE_SIDED && caps & FI_SEND && !(caps & (FI_READ | FI_WRITE)))
		caps |= FI_READ | FI_WRITE;
	return caps;
}

static size_t or_default(size_t asked, size_t initial)
{
	return asked ? asked : initial;
}

static void fill_tx(const struct rwk_fi_kind *k, struct fi_tx_attr *tx, uint64_t caps, const struct fi_tx_attr *hint)
{
	tx->caps = (hint && hint->caps ? hint->caps : caps) & k->tx_caps & caps;
	tx->op_flags = hint ? hint->op_flags : 0;
	tx->msg_order = k->msg_order;
	tx->inject_size = k->inject_size;
	tx->size = or_default(hint ? hint->size : 0, k->tx_size);
	tx->iov_limit = k->iov_limit;
	tx->rma_iov_limit = caps & ONE_SIDED ? k->rma_iov_limit : 0;
}

/*
 * Under another provider the receives are that one's, and so are promises about them. These are what lnx has itself; it
 * passes ours on as its own, and refuses more.
 */
static void leave_to_owner(struct fi_rx_attr *rx)
{
	rx->total_buffered_recv = 0;
	if (rx->size > 1024)
		rx->size = 1024;
	if (rx->iov_limit > 4)
		rx->iov_limit = 4;
}

static void fill_rx(const struct rwk_fi_kind *k, struct fi_rx_attr *rx, uint64_t asked, uint64_t caps,
	const struct fi_rx_attr *hint)
{
	rx->caps = (hint && hint->caps ? hint->caps : caps) & k->rx_caps & caps;
	rx->op_flags = hint ? hint->op_flags : 0;
	rx->msg_order = k->msg_order;
	if (k->max_buffered)
		rx->total_buffered_recv = or_default(hint ? hint->total_buffered_recv : 0, rwk_params.eager_credit);
	rx->size = or_default(hint ? hint->size : 0, k->rx_size);
	rx->iov_limit = k->iov_limit;
	if (asked & FI_PEER)
		leave_to_owner(rx);
}

/* One context of each direction, or as many as are asked for, which may be a shared one. */
static size_t contexts(size_t asked)
{
	return asked ? asked : 1;
}

static void fill_ep(const struct rwk_fi_kind *k, struct fi_ep_attr *ep, const struct fi_ep_attr *hint)
{
	ep->type = k->type;
	ep->protocol = k->protocol;
	ep->protocol_version = 1;
	ep->max_msg_size = rwk_fi_kind_max_msg(k);
	ep->max_order_raw_size = k->max_order_raw;
	ep->max_order_war_size = k->max_order_war;
	ep->max_order_waw_size = k->max_order_waw;
	ep->mem_tag_format = k->tag_format;
	ep->tx_ctx_cnt = contexts(hint ? hint->tx_ctx_cnt : 0);
	ep->rx_ctx_cnt = contexts(hint ? hint->rx_ctx_cnt : 0);
}

/*
 * Those that the kind needs, and those that a program offers and that change what it sees. Programs written for an API
 * before 1.5 name one of two modes instead of bits, and want theirs back. Those that name neither should be ready for
 * either; but all other providers answer FI_MR_BASIC, and with the other one Charm++'s reads go to no buffer.
 */
static int granted_mr_mode(
	const struct rwk_fi_kind *k, uint32_t version, uint64_t caps, const struct fi_domain_attr *hint)
{
	if (hint && (hint->mr_mode == RWK_FI_MR_BASIC || hint->mr_mode == RWK_FI_MR_SCALABLE))
		return hint->mr_mode;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return RWK_FI_MR_BASIC;
	return (hint ? hint->mr_mode & k->mr_granted : 0) | (caps & ONE_SIDED ? k->mr_needed : 0);
}

/*
 * Progress for those who do not say. Who asks for one-sided operations by name expects them to be carried out while the
 * target's program does something else; Open MPI waits for ever otherwise, with a target that spins on its own window.
 */
static enum fi_progress own_progress(uint64_t asked)
{
	return asked & (FI_RMA | FI_ATOMIC) ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
}

static void fill_domain(const struct rwk_fi_kind *k, struct fi_domain_attr *d, uint32_t version, uint64_t asked,
	uint64_t caps, const struct fi_domain_attr *hint)
{
	d->domain = hint ? hint->domain : NULL;
	d->threading = hint && hint->threading ? hint->threading : FI_THREAD_SAFE;
	d->control_progress = hint && hint->control_progress ? hint->control_progress : FI_PROGRESS_MANUAL;
	d->data_progress = hint && hint->data_progress ? hint->data_progress : own_progress(asked);
	d->resource_mgmt = FI_RM_ENABLED;
	d->av_type = hint ? hint->av_type : FI_AV_UNSPEC;
	d->mr_mode = granted_mr_mode(k, version, caps, hint);
	d->mr_key_size = k->key_size;
	d->cq_data_size = k->data_size;
	d->cq_cnt = RWK_FI_OBJECTS;
	d->ep_cnt = k->ep_cnt;
	d->tx_ctx_cnt = RWK_FI_OBJECTS;
	d->rx_ctx_cnt = RWK_FI_OBJECTS;
	d->max_ep_tx_ctx = k->contexts;
	d->max_ep_rx_ctx = k->contexts;
	d->max_ep_stx_ctx = k->stx_cnt;
	d->max_ep_srx_ctx = k->srx_cnt;
	d->cntr_cnt = RWK_FI_OBJECTS;
	d->mr_iov_limit = k->mr_iov_limit;
	d->mr_cnt = k->mr_cnt;
	d->caps = (caps | (hint ? hint->caps : 0)) & rwk_fi_domain_caps(k);
}

static int give_address(uint32_t format, const struct rwk_address *a, void **addr, size_t *len)
{
	*addr = spare_calloc(rwk_fi_address_size(format));
	if (!*addr)
		return -FI_ENOMEM;
	*len = rwk_fi_address_size(format);
	return rwk_fi_address_write(format, a, *addr);
}

/* What is not asked for by name is there as far as the mr_mode lets it. */
static uint64_t caps_for(const struct rwk_fi_kind *k, uint32_t version, const struct fi_info *hints)
{
	uint64_t caps = rwk_fi_complete_caps(k, hints ? hints->caps : 0);

	if (rwk_fi_shares_receives(hints))
		caps &= ~(uint64_t)FI_DIRECTED_RECV;
	return rwk_fi_reaches(k, version, hints ? hints->domain_attr : NULL) ? caps : caps & ~(ONE_SIDED | ACCESSES);
}

static struct fi_info *make_entry(const struct rwk_fi_kind *k, uint32_t version, uint32_t format,
	const struct fi_info *hints, const struct ends *ends)
{
	struct fi_info *info = alloc_info();
	uint64_t caps = caps_for(k, version, hints);

	if (!info)
		return NULL;
	info->caps = caps;
	info->mode = hints && caps & FI_RMA ? hints->mode & k->mode : 0;
	info->addr_format = format;
	info->handle = hints ? hints->handle : NULL;
	fill_tx(k, info->tx_attr, caps, hints ? hints->tx_attr : NULL);
	fill_rx(k, info->rx_attr, hints ? hints->caps : 0, caps, hints ? hints->rx_attr : NULL);
	info->rx_attr->mode = info->mode;
	fill_ep(k, info->ep_attr, hints ? hints->ep_attr : NULL);
	fill_domain(k, info->domain_attr, version, hints ? hints->caps : 0, caps, hints ? hints->domain_attr : NULL);
	info->fabric_attr->fabric = hints && hints->fabric_attr ? hints->fabric_attr->fabric : NULL;
	info->fabric_attr->prov_version = rwk_fi_provider.version;
	info->fabric_attr->api_version = version;
	if (give_address(format, &ends->src, &info->src_addr, &info->src_addrlen) ||
		(ends->has_dest && give_address(format, &ends->dest, &info->dest_addr, &info->dest_addrlen))) {
		rwk_fi_info_free(info);
		return NULL;
	}
	return info;
}

/* In what format an address of the hints is: where they leave that open, its family or its length says so. */
static uint32_t hinted_format(uint32_t format, const void *from, size_t len)
{
	sa_family_t family = AF_UNSPEC;

	if (format == FI_SOCKADDR && len >= sizeof(family))
		memcpy(&family, from, sizeof(family));
	if (family == AF_INET6)
		return FI_SOCKADDR_IN6;
	if (format != FI_FORMAT_UNSPEC)
		return format;
	return len == sizeof(struct rwk_address)             ? RWK_FI_ADDR_FORMAT
	       : len == rwk_fi_address_size(FI_SOCKADDR_IN6) ? FI_SOCKADDR_IN6
							     : FI_SOCKADDR_IN;
}

static int hinted_address(uint32_t format, const void *from, size_t len, struct rwk_address *a, bool *has)
{
	size_t need;

	format = hinted_format(format, from, len);
	need = rwk_fi_address_size(format); /* 0: another provider's format */
	if (!need || len < need || rwk_fi_address_read(format, from, a)) {
		rwk_info("getinfo: the %zu bytes of address in the hints are no address of format %#x", len, format);
		return -FI_ENODATA;
	}
	*has = true;
	return 0;
}

static int find_ends(
	const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct ends *ends)
{
	static const uint8_t any[16];
	uint32_t format = hints ? hints->addr_format : FI_FORMAT_UNSPEC;
	bool numeric = flags & FI_NUMERICHOST;
	int err = 0;

	rwk_fi_address_partial(any, 0, &ends->src);
	if (node || service) {
		bool source = flags & FI_SOURCE;

		err = rwk_fi_address_resolve(format, node, service, source, numeric, source ? &ends->src : &ends->dest);
		if (err)
			return err;
		*(source ? &ends->has_src : &ends->has_dest) = true;
	}
	if (hints && hints->src_addr && !ends->has_src)
		err = hinted_address(
			hints->addr_format, hints->src_addr, hints->src_addrlen, &ends->src, &ends->has_src);
	if (!err && hints && hints->dest_addr && !ends->has_dest)
		err = hinted_address(
			hints->addr_format, hints->dest_addr, hints->dest_addrlen, &ends->dest, &ends->has_dest);
	return err;
}

/* An open fabric or domain named in the hints must be one of ours. */
static int check_objects(const struct fi_info *hints)
{
	if (hints->fabric_attr && hints->fabric_attr->fabric && !rwk_fi_fabric_is_ours(hints->fabric_attr->fabric)) {
		rwk_info("getinfo: fabric_attr.fabric is another provider's");
		return -FI_ENODATA;
	}
	if (hints->domain_attr && hints->domain_attr->domain && !rwk_fi_domain_is_ours(hints->domain_attr->domain)) {
		rwk_info("getinfo: domain_attr.domain is another provider's");
		return -FI_ENODATA;
	}
	return 0;
}

/* The open domain that the hints restrict the entries to, or NULL. */
static const struct rwk_fi_domain *named_domain(const struct fi_info *hints)
{
	struct fid_domain *fid = hints && hints->domain_attr ? hints->domain_attr->domain : NULL;

	return fid ? rwk_fi_domain_of(fid) : NULL;
}

/* Do both ends have a form in FI_SOCKADDR_IN? */
static bool is_ip4(const struct ends *ends)
{
	return rwk_fi_address_is_ip4(&ends->src) && (!ends->has_dest || rwk_fi_address_is_ip4(&ends->dest));
}

/* The format that the hints ask for. FI_SOCKADDR is either: that of the domain which they name, or the ends'. */
static uint32_t asked_format(const struct fi_info *hints, const struct ends *ends)
{
	const struct rwk_fi_domain *domain = named_domain(hints);
	uint32_t asked = hints ? hints->addr_format : FI_FORMAT_UNSPEC;

	if (asked != FI_SOCKADDR)
		return asked;
	if (domain && domain->addr_format == FI_SOCKADDR_IN6) /* those of IPv4 have a form in it, too */
		return FI_SOCKADDR_IN6;
	return is_ip4(ends) ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
}

/* Is an entry of that format wanted, and possible? */
static bool suits(uint32_t format, uint32_t asked, const struct ends *ends)
{
	return (asked == FI_FORMAT_UNSPEC || asked == format) && (format != FI_SOCKADDR_IN || is_ip4(ends));
}

/*
 * libfabric's own flag of a call by one of its layers, which makes of FI_EP_MSG or FI_EP_DGRAM what these have not:
 * ofi_rxm and ofi_rxd would be listed in front of our own FI_EP_RDM.
 */
#define FOR_A_LAYER (1ull << 59)

static bool wants_kind(const struct rwk_fi_kind *k, uint32_t version, uint64_t flags, const struct fi_info *hints)
{
	const struct rwk_fi_domain *domain = named_domain(hints);

	if (domain && domain->type != k->type) {
		rwk_info("getinfo: domain_attr.domain was not opened for %s", k->name);
		return false;
	}
	if (k != &rwk_fi_rdm && flags & FOR_A_LAYER) {
		rwk_info("getinfo: of what there is libfabric's own layers (ofi_rxm, ofi_rxd) get FI_EP_RDM alone");
		return false;
	}
	if (k == &rwk_fi_dgram && !rwk_params.udp) {
		rwk_info("getinfo: FI_EP_DGRAM is not there: FI_ROPEWALK_UDP=no");
		return false;
	}
	return !hints || !rwk_fi_check_hints(k, version, hints);
}

/* Has the domain that the hints name, if they do, addresses of that format? */
static bool is_spoken(uint32_t format, const struct fi_info *hints)
{
	const struct rwk_fi_domain *domain = named_domain(hints);

	if (!domain || rwk_fi_address_size(format) == rwk_fi_address_size(domain->addr_format))
		return true;
	rwk_info("getinfo: domain_attr.domain has addresses of %s, not of %s",
		rwk_fi_address_format_name(domain->addr_format), rwk_fi_address_format_name(format));
	return false;
}

/* Appends the entries of a kind, one for each format that suits. Returns the new end of the list; NULL: no memory. */
static struct fi_info **add_entries(struct fi_info **tail, const struct rwk_fi_kind *k, uint32_t version,
	const uint32_t formats[3], const struct fi_info *hints, const struct ends *ends)
{
	uint32_t asked = asked_format(hints, ends);

	for (int i = 0; i < 3; i++) {
		if (!suits(formats[i], asked, ends) || (formats[i] == RWK_FI_ADDR_FORMAT && !k->native))
			continue;
		if (!is_spoken(formats[i], hints))
			continue;
		*tail = make_entry(k, version, formats[i], hints, ends);
		if (!*tail)
			return NULL;
		tail = &(*tail)->next;
	}
	return tail;
}

/* The interface that the entries' source goes out by, if it is a device; nobody fails for want of memory for it. */
static void add_nic(struct fi_info *list, const struct ends *ends)
{
	struct fid_nic *nic = rwk_fi_nic_of(ends->src.ip);

	for (; list; list = list->next)
		list->nic = rwk_fi_nic_again(nic);
	if (nic)
		fi_close(&nic->fid);
}

int rwk_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
	struct fi_info **info)
{
	RWK_CANCEL_HELD_OFF;
	/*
	 * Who names a node or a service, or says of which end they are, speaks in socket addresses:
	 * these come first.
	 */
	static const uint32_t orders[2][3] = {{RWK_FI_ADDR_FORMAT, FI_SOCKADDR_IN, FI_SOCKADDR_IN6},
		{FI_SOCKADDR_IN, FI_SOCKADDR_IN6, RWK_FI_ADDR_FORMAT}};
	static const struct rwk_fi_kind *const kinds[] = {&rwk_fi_rdm, &rwk_fi_msg, &rwk_fi_dgram};
	struct fi_info *list = NULL, **tail = &list;
	struct ends ends = {0};
	int err = hints ? check_objects(hints) : 0;

	if (!err)
		err = find_ends(node, service, flags, hints, &ends);
	if (err)
		return err;
	for (int i = 0; i < 3 && tail; i++) {
		if (wants_kind(kinds[i], version, flags, hints))
			tail = add_entries(
				tail, kinds[i], version, orders[node || service || flags & FI_SOURCE], hints, &ends);
	}
	if (!tail) {
		rwk_fi_info_free(list);
		return -FI_ENOMEM;
	}
	if (!list)
		return -FI_ENODATA;
	add_nic(list, &ends);
	*info = list;
	return 0;
}

/* One that the program has put there may lack what libfabric leaves open. */
static struct fid_nic *like_nic(const struct fid_nic *nic)
{
	return nic && nic->device_attr && nic->bus_attr && nic->link_attr ? rwk_fi_nic_again(nic) : NULL;
}

struct fi_info *rwk_fi_info_again(
	uint32_t version, const struct fi_info *like, const struct rwk_address *src, const struct rwk_address *dest)
{
	struct ends ends = {.has_src = true, .has_dest = dest, .src = *src};
	struct fi_info *info;

	if (dest)
		ends.dest = *dest;
	info = make_entry(&rwk_fi_msg, version, like->addr_format, like, &ends);
	if (!info)
		return NULL;
	info->handle = NULL;
	info->nic = like_nic(like->nic);
	info->fabric_attr->prov_name = strdup(RWK_FI_NAME); /* as the core does in fi_getinfo */
	if (info->fabric_attr->prov_name)
		return info;
	rwk_fi_info_free(info);
	return NULL;
}
