/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/av.h"

#include "base/log.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/ep.h"
#include "engine/job.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 64
#define ROOM_MAX ((size_t)1 << 31)
#define HINT_MAX ((size_t)1 << 20) /* entries that a program's wish may reserve */

static struct rwk_fi_av *av_of(struct fid_av *fid)
{
	return rwk_container_of(fid, struct rwk_fi_av, fid);
}

static bool is_partial(const struct rwk_address *a)
{
	return a->flags_rank & RWK_ADDR_PARTIAL;
}

static bool is_used(const struct rwk_fi_av_entry *entry)
{
	return entry->address.version_srq;
}

static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

/* The address by which an endpoint is indexed where only IP and port are known of it. */
static struct rwk_address by_port(const struct rwk_address *a)
{
	struct rwk_address here;

	if (!rwk_address_is_here(a))
		return *a;
	rwk_fi_address_partial(loopback, rwk_address_port(a), &here);
	return here;
}

/* The IP by which an entry is indexed. */
static const uint8_t *indexed_ip(const struct rwk_fi_av_entry *entry)
{
	return entry->here ? loopback : entry->address.ip;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* An address in full by all of it; a partial one by what it has: IP and port. */
static uint64_t hash(const uint8_t by_ip[16], const struct rwk_address *a, bool partial)
{
	uint64_t ip[2], h;

	memcpy(ip, by_ip, sizeof(ip));
	h = mix(mix(mix(0, ip[0]), ip[1]), rwk_address_port(a));
	if (partial)
		return h;
	return mix(mix(mix(h, a->nonce_port), (uint64_t)a->job << 32 | a->node),
		(uint64_t)a->version_srq << 32 | a->flags_rank);
}

static uint32_t *chain_of(const struct rwk_fi_av *av, const struct rwk_address *a, bool partial)
{
	return &av->heads[hash(a->ip, a, partial) & (av->room - 1)];
}

static uint32_t *chain_with(const struct rwk_fi_av *av, const struct rwk_fi_av_entry *entry)
{
	return &av->heads[hash(indexed_ip(entry), &entry->address, is_partial(&entry->address)) & (av->room - 1)];
}

static void index_entry(struct rwk_fi_av *av, uint32_t i)
{
	struct rwk_fi_av_entry *entry = &av->entries[i];
	uint32_t *head = chain_with(av, entry);

	entry->next = *head;
	*head = i;
}

static void unindex_entry(struct rwk_fi_av *av, uint32_t i)
{
	struct rwk_fi_av_entry *entry = &av->entries[i];
	uint32_t *at = chain_with(av, entry);

	while (*at != i)
		at = &av->entries[*at].next;
	*at = entry->next;
}

/* Makes room for `room` entries (a power of two) and builds the index anew. */
static int resize(struct rwk_fi_av *av, uint32_t room)
{
	struct rwk_fi_av_entry *entries = realloc(av->entries, room * sizeof(*entries));
	uint32_t *heads;

	if (!entries)
		return -FI_ENOMEM;
	av->entries = entries;
	heads = malloc(room * sizeof(*heads));
	if (!heads)
		return -FI_ENOMEM;
	free(av->heads);
	av->heads = heads;
	av->room = room;
	memset(heads, 0xff, room * sizeof(*heads)); /* RWK_FI_AV_NONE */
	for (uint32_t i = 0; i < av->count; i++) {
		if (is_used(&av->entries[i]))
			index_entry(av, i);
	}
	return 0;
}

static int add_address(struct rwk_fi_av *av, const struct rwk_address *a, fi_addr_t *number)
{
	uint32_t i = av->free;
	int err;

	if (i != RWK_FI_AV_NONE) {
		av->free = av->entries[i].next;
	} else {
		err = av->count < av->room ? 0 : av->room < ROOM_MAX ? resize(av, 2 * av->room) : -FI_ENOMEM;
		if (err)
			return err;
		i = av->count++;
	}
	av->entries[i].address = *a;
	av->entries[i].here = is_partial(a) && rwk_address_is_here(a);
	av->partials += is_partial(a);
	index_entry(av, i);
	*number = i;
	return 0;
}

static const struct rwk_fi_av_entry *entry_of(const struct rwk_fi_av *av, fi_addr_t number)
{
	return number < av->count && is_used(&av->entries[number]) ? &av->entries[number] : NULL;
}

const struct rwk_address *rwk_fi_av_address(struct rwk_fi_av *av, fi_addr_t number)
{
	const struct rwk_fi_av_entry *entry = entry_of(av, number);

	if (!entry || !entry->here)
		return entry ? &entry->address : NULL;
	av->loopback = entry->address;
	memcpy(av->loopback.ip, loopback, sizeof(loopback));
	return &av->loopback;
}

const struct rwk_address *rwk_fi_av_inserted(const struct rwk_fi_av *av, fi_addr_t number)
{
	const struct rwk_fi_av_entry *entry = entry_of(av, number);

	return entry ? &entry->address : NULL;
}

static uint32_t find_full(const struct rwk_fi_av *av, const struct rwk_address *a)
{
	uint32_t i = *chain_of(av, a, false);

	while (i != RWK_FI_AV_NONE && memcmp(&av->entries[i].address, a, sizeof(*a)))
		i = av->entries[i].next;
	return i;
}

static uint32_t find_partial(const struct rwk_fi_av *av, const struct rwk_address *a)
{
	uint32_t i = *chain_of(av, a, true);

	for (; i != RWK_FI_AV_NONE; i = av->entries[i].next) {
		const struct rwk_fi_av_entry *entry = &av->entries[i];

		if (is_partial(&entry->address) && rwk_address_port(a) == rwk_address_port(&entry->address) &&
			!memcmp(a->ip, indexed_ip(entry), sizeof(a->ip)))
			break;
	}
	return i;
}

fi_addr_t rwk_fi_av_find(const struct rwk_fi_av *av, const struct rwk_address *a)
{
	uint32_t i = is_partial(a) ? RWK_FI_AV_NONE : find_full(av, a);
	struct rwk_address key;

	if (i == RWK_FI_AV_NONE && av->partials) {
		key = by_port(a);
		i = find_partial(av, &key);
	}
	return i == RWK_FI_AV_NONE ? FI_ADDR_NOTAVAIL : i;
}

/* Reads and adds one address. A bad one is logged: it is a program's mistake. */
static int insert_one(struct rwk_fi_av *av, const void *from, fi_addr_t *number)
{
	struct rwk_address a;
	int err = rwk_fi_address_read(av->domain->addr_format, from, &a);

	if (!err && !rwk_address_port(&a))
		err = -FI_EINVAL;
	if (!err)
		return add_address(av, &a, number);
	rwk_info("fi_av_insert: not an address of this vector's format (%s) with a port",
		rwk_fi_address_format_name(av->domain->addr_format));
	return err;
}

/* How a list of addresses is taken in: what the program wants to know of each. */
struct results {
	fi_addr_t *numbers; /* or NULL */
	int *errors;        /* with FI_SYNC_ERR, else NULL */
	int inserted;
};

static void note(struct results *r, size_t i, int err, fi_addr_t number)
{
	if (r->numbers)
		r->numbers[i] = err ? FI_ADDR_NOTAVAIL : number;
	if (r->errors)
		r->errors[i] = -err;
	r->inserted += !err;
}

static int check_flags(uint64_t flags, const void *context)
{
	if (flags & ~(uint64_t)(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	return flags & FI_SYNC_ERR && !context ? -FI_EINVAL : 0;
}

static int av_insert(
	struct fid_av *fid, const void *addr, size_t count, fi_addr_t *numbers, uint64_t flags, void *context)
{
	struct rwk_fi_av *av = av_of(fid);
	struct results r = {numbers, flags & FI_SYNC_ERR ? context : NULL, 0};
	size_t size = rwk_fi_address_size(av->domain->addr_format);
	int err = check_flags(flags, context);

	if (!err && count && !addr) {
		rwk_warn("fi_av_insert: the addresses are at NULL");
		err = -FI_EINVAL;
	}
	if (err)
		return err;
	rwk_fi_lock(av->lock);
	for (size_t i = 0; i < count; i++) {
		fi_addr_t number = FI_ADDR_NOTAVAIL;

		err = insert_one(av, (const char *)addr + i * size, &number);
		note(&r, i, err, number);
	}
	rwk_fi_unlock(av->lock);
	return r.inserted;
}

static void insert_resolved(struct rwk_fi_av *av, const struct rwk_address *a, struct results *r, size_t i)
{
	fi_addr_t number = FI_ADDR_NOTAVAIL;
	int err;

	rwk_fi_lock(av->lock);
	err = rwk_address_port(a) ? add_address(av, a, &number) : -FI_EINVAL;
	rwk_fi_unlock(av->lock);
	note(r, i, err, number);
}

static int av_insertsvc(
	struct fid_av *fid, const char *node, const char *service, fi_addr_t *number, uint64_t flags, void *context)
{
	struct results r = {number, flags & FI_SYNC_ERR ? context : NULL, 0};
	struct rwk_address a;
	int err = check_flags(flags, context);

	if (!err)
		err = rwk_fi_address_resolve(av_of(fid)->domain->addr_format, node, service, false, false, &a);
	if (err)
		return err;
	insert_resolved(av_of(fid), &a, &r, 0);
	return r.inserted;
}

/* "node" and "service" stand for themselves and the numbers after them: addresses by IP, ports by number. */
static int av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service, size_t services,
	fi_addr_t *numbers, uint64_t flags, void *context)
{
	struct results r = {numbers, flags & FI_SYNC_ERR ? context : NULL, 0};
	struct rwk_address first, a;
	uint32_t ip;
	int err = check_flags(flags, context);

	if (!err)
		err = rwk_fi_address_resolve(av_of(fid)->domain->addr_format, node, service, false, false, &first);
	if (err)
		return err;
	memcpy(&ip, first.ip + 12, sizeof(ip));
	for (size_t n = 0; n < nodes; n++) {
		for (size_t s = 0; s < services; s++) {
			size_t port = rwk_address_port(&first) + s;
			uint32_t next = htonl(ntohl(ip) + (uint32_t)n);

			memcpy(first.ip + 12, &next, sizeof(next));
			rwk_fi_address_partial(first.ip, port <= UINT16_MAX ? (uint16_t)port : 0, &a);
			insert_resolved(av_of(fid), &a, &r, n * services + s);
		}
	}
	return r.inserted;
}

static int remove_one(struct rwk_fi_av *av, fi_addr_t number)
{
	uint32_t i = (uint32_t)number;

	if (!entry_of(av, number)) {
		rwk_warn("fi_av_remove: %llu is not in the address vector", (unsigned long long)number);
		return -FI_EINVAL;
	}
	for (uint32_t e = 0; e < av->ep_count; e++)
		rwk_fi_ep_forget(av->eps[e], number);
	unindex_entry(av, i);
	av->partials -= is_partial(&av->entries[i].address);
	av->entries[i].address.version_srq = 0;
	av->entries[i].next = av->free;
	av->free = i;
	return 0;
}

static int av_remove(struct fid_av *fid, fi_addr_t *numbers, size_t count, uint64_t flags)
{
	struct rwk_fi_av *av = av_of(fid);
	int err = 0;

	if (flags)
		return -FI_EBADFLAGS;
	rwk_fi_lock(av->lock);
	for (size_t i = 0; i < count && !err; i++)
		err = remove_one(av, numbers[i]);
	rwk_fi_unlock(av->lock);
	return err;
}

static int av_lookup(struct fid_av *fid, fi_addr_t number, void *addr, size_t *len)
{
	struct rwk_fi_av *av = av_of(fid);
	const struct rwk_fi_av_entry *entry;
	int err = -FI_EINVAL;

	rwk_fi_lock(av->lock);
	entry = entry_of(av, number);
	if (entry) /* As much as fits; that it was too little shows in *len alone, by this call's definition. */
		err = rwk_fi_address_give(av->domain->addr_format, &entry->address, addr, len);
	rwk_fi_unlock(av->lock);
	return err == -FI_ETOOSMALL ? 0 : err;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	struct rwk_address a;

	if (!rwk_fi_address_read(av_of(fid)->domain->addr_format, addr, &a))
		*len = rwk_fi_address_show(&a, buf, *len);
	else
		*len = (size_t)snprintf(buf, *len, "not an address") + 1;
	return buf;
}

static int no_av_set(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context)
{
	(void)fid, (void)attr, (void)set, (void)context;
	return -FI_ENOSYS;
}

int rwk_fi_av_attach(struct rwk_fi_av *av, struct rwk_fi_ep *ep)
{
	struct rwk_fi_ep **eps;
	uint32_t room;

	if (av->ep_count == av->ep_room) {
		room = av->ep_room ? 2 * av->ep_room : 4;
		eps = realloc(av->eps, room * sizeof(struct rwk_fi_ep *));
		if (!eps)
			return -FI_ENOMEM;
		av->eps = eps;
		av->ep_room = room;
	}
	av->eps[av->ep_count++] = ep;
	return 0;
}

void rwk_fi_av_detach(struct rwk_fi_av *av, struct rwk_fi_ep *ep)
{
	uint32_t i = 0;

	while (av->eps[i] != ep)
		i++;
	av->eps[i] = av->eps[--av->ep_count];
}

static int av_close(struct fid *fid)
{
	struct rwk_fi_av *av = rwk_container_of(fid, struct rwk_fi_av, fid.fid);

	if (av->ep_count || rwk_fi_busy(&av->refs))
		return -FI_EBUSY;
	rwk_fi_drop(&av->domain->refs);
	free(av->eps);
	free(av->heads);
	free(av->entries);
	free(av);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = av_close,
	.bind = rwk_fi_no_bind, /* an event queue: all calls answer at once */
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_av av_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_av, av_set),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = no_av_set,
};

static int check_attr(const struct rwk_fi_domain *domain, const struct fi_av_attr *attr)
{
	const char *missing = NULL;

	if (attr->flags & FI_EVENT)
		missing = "asynchronous inserts (FI_EVENT)";
	else if (attr->flags)
		missing = "these flags";
	else if (attr->name)
		missing = "named (shared) address vectors";
	else if (attr->rx_ctx_bits)
		missing = "receive contexts";
	if (missing) {
		rwk_info("fi_av_open: there are no %s", missing);
		return -FI_ENOSYS;
	}
	if (attr->type > FI_AV_TABLE || (domain->av_type && attr->type && domain->av_type != attr->type)) {
		rwk_warn("fi_av_open: type %d, the domain was opened for type %d", attr->type, domain->av_type);
		return -FI_EINVAL;
	}
	return 0;
}

static uint32_t first_room(size_t wanted)
{
	uint32_t room = ROOM_MIN;

	while (room < wanted && room < HINT_MAX)
		room *= 2;
	return room;
}

int rwk_fi_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr, struct fid_av **fid, void *context)
{
	struct rwk_fi_domain *domain = rwk_fi_domain_of(domain_fid);
	struct rwk_fi_av *av;
	int err = attr ? check_attr(domain, attr) : 0;

	if (err)
		return err;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->free = RWK_FI_AV_NONE;
	err = resize(av, first_room(attr ? attr->count : 0));
	if (err) {
		free(av->entries);
		free(av);
		return err;
	}
	if (attr && attr->type == FI_AV_UNSPEC)
		attr->type = domain->av_type ? domain->av_type : FI_AV_TABLE;
	av->domain = domain;
	av->lock = domain->lock;
	rwk_fi_hold(&domain->refs);
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = (struct fi_ops *)&fid_ops;
	av->fid.ops = (struct fi_ops_av *)&av_ops;
	*fid = &av->fid;
	return 0;
}
