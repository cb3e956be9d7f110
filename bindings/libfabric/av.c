/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/av.h"

#include "base/log.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/ep.h"
#include "bindings/libfabric/eq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rwk_fi_av *av_of(struct fid_av *fid)
{
	return rwk_container_of(fid, struct rwk_fi_av, fid);
}

int rwk_fi_av_begin(struct rwk_fi_av *av)
{
	int err = av->shared ? rwk_fi_av_shared_lock(av->shared) : 0;
	struct rwk_fi_av_counts *c = av->table.counts;

	if (err || av->removals == c->removals)
		return err;
	av->removals = c->removals;
	for (uint32_t e = 0; e < av->ep_count; e++) {
		for (uint32_t i = 0; i < c->count; i++)
			rwk_fi_ep_forget(av->eps[e], i);
	}
	for (uint32_t i = 0; i < av->user_room && i < c->count; i++) {
		if (!rwk_fi_av_entry(&av->table, i))
			av->users[i] = rwk_fi_av_unnamed(av, i);
	}
	return 0;
}

void rwk_fi_av_end(struct rwk_fi_av *av)
{
	if (av->shared)
		rwk_fi_av_shared_unlock(av->shared);
}

/* What stands at a number, copied: of a shared vector it may be another's in the next moment. */
const struct rwk_address *rwk_fi_av_address(struct rwk_fi_av *av, fi_addr_t number, struct rwk_address *room)
{
	const struct rwk_fi_av_entry *entry;

	if (rwk_fi_av_begin(av))
		return NULL;
	entry = rwk_fi_av_entry(&av->table, number);
	if (entry)
		*room = entry->address;
	rwk_fi_av_end(av);
	return entry ? room : NULL;
}

fi_addr_t rwk_fi_av_find(struct rwk_fi_av *av, const struct rwk_address *a)
{
	uint32_t i;

	if (rwk_fi_av_begin(av))
		return FI_ADDR_NOTAVAIL;
	i = rwk_fi_av_search(&av->table, a);
	rwk_fi_av_end(av);
	return i == RWK_FI_AV_NONE ? FI_ADDR_NOTAVAIL : i;
}

fi_addr_t rwk_fi_av_find_qp(struct rwk_fi_av *av, const struct rwk_address *a, uint32_t qpn)
{
	uint32_t i;

	if (rwk_fi_av_begin(av))
		return FI_ADDR_NOTAVAIL;
	i = rwk_fi_av_search_qp(&av->table, a, qpn);
	rwk_fi_av_end(av);
	return i == RWK_FI_AV_NONE ? FI_ADDR_NOTAVAIL : i;
}

static int remove_one(struct rwk_fi_av *av, fi_addr_t number)
{
	if (!rwk_fi_av_entry(&av->table, number)) {
		rwk_warn("fi_av_remove: %llu is not in the address vector", (unsigned long long)number);
		return -FI_EINVAL;
	}
	for (uint32_t e = 0; e < av->ep_count; e++)
		rwk_fi_ep_forget(av->eps[e], number);
	if (number < av->user_room)
		av->users[number] = rwk_fi_av_unnamed(av, number);
	rwk_fi_av_take(&av->table, (uint32_t)number);
	av->removals++;
	return 0;
}

static int av_remove(struct fid_av *fid, fi_addr_t *numbers, size_t count, uint64_t flags)
{
	struct rwk_fi_av *av = av_of(fid);
	int err;

	if (flags)
		return -FI_EBADFLAGS;
	if (av->read_only)
		return -FI_EACCES;
	rwk_fi_domain_stop(av->domain);
	err = rwk_fi_av_begin(av);
	if (!err) {
		for (size_t i = 0; i < count && !err; i++)
			err = remove_one(av, numbers[i]);
		rwk_fi_av_end(av);
	}
	rwk_fi_domain_go(av->domain);
	return err;
}

static int av_lookup(struct fid_av *fid, fi_addr_t number, void *addr, size_t *len)
{
	struct rwk_fi_av *av = av_of(fid);
	const struct rwk_address *a;
	struct rwk_address found;
	int err = -FI_EINVAL;

	rwk_fi_domain_stop(av->domain);
	a = rwk_fi_av_address(av, number, &found);
	if (a) /* As much as fits; that it was too little shows in *len alone, by this call's definition. */
		err = rwk_fi_address_give(av->domain->addr_format, a, addr, len);
	rwk_fi_domain_go(av->domain);
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

/* The event queue of who has asked for FI_EVENT. */
static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_av *av = rwk_container_of(fid, struct rwk_fi_av, fid.fid);
	struct rwk_fi_eq *eq = rwk_container_of(other, struct rwk_fi_eq, fid.fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (other->fclass != FI_CLASS_EQ || !av->events || av->eq || eq->fabric != av->domain->fabric) {
		rwk_warn("fi_av_bind: %s",
			other->fclass != FI_CLASS_EQ ? "the object is no event queue"
			: !av->events                ? "the address vector was opened without FI_EVENT"
			: av->eq                     ? "the address vector has an event queue"
						     : "the event queue is another fabric's");
		return -FI_EINVAL;
	}
	av->eq = eq;
	rwk_fi_hold(&eq->refs);
	return 0;
}

static void free_table(struct rwk_fi_av *av)
{
	if (av->shared) {
		rwk_fi_av_shared_close(av->shared);
		return;
	}
	free(av->table.heads);
	free(av->table.holes);
	free(av->table.entries);
}

static int av_close(struct fid *fid)
{
	struct rwk_fi_av *av = rwk_container_of(fid, struct rwk_fi_av, fid.fid);

	if (rwk_fi_is_inherited(av->process))
		return 0;
	if (av->ep_count || rwk_fi_busy(&av->refs))
		return -FI_EBUSY;
	if (av->eq)
		rwk_fi_drop(&av->eq->refs);
	rwk_fi_part(&av->domain->groups, &av->member);
	rwk_fi_drop(&av->domain->refs);
	free_table(av);
	free(av->users);
	free(av->numbers);
	free(av->eps);
	free(av);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = av_close,
	.bind = av_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static int no_insert_auth_key(
	struct fid_av *av, const void *auth_key, size_t auth_key_size, fi_addr_t *number, uint64_t flags)
{
	(void)av, (void)auth_key, (void)auth_key_size, (void)number, (void)flags;
	return -FI_ENOSYS;
}

static int no_lookup_auth_key(struct fid_av *av, fi_addr_t number, void *auth_key, size_t *auth_key_size)
{
	(void)av, (void)number, (void)auth_key, (void)auth_key_size;
	return -FI_ENOSYS;
}

/* fi_ops_av as it is since libfabric 1.20, whichever headers we see. */
static const struct {
	size_t size;
	typeof(rwk_fi_av_insert) *insert;
	typeof(rwk_fi_av_insertsvc) *insertsvc;
	typeof(rwk_fi_av_insertsym) *insertsym;
	typeof(av_remove) *remove;
	typeof(av_lookup) *lookup;
	typeof(av_straddr) *straddr;
	typeof(no_av_set) *av_set;
	typeof(no_insert_auth_key) *insert_auth_key;
	typeof(no_lookup_auth_key) *lookup_auth_key;
	typeof(rwk_fi_av_set_user_id) *set_user_id;
} av_ops = {
	.size = sizeof(av_ops),
	.insert = rwk_fi_av_insert,
	.insertsvc = rwk_fi_av_insertsvc,
	.insertsym = rwk_fi_av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = no_av_set,
	.insert_auth_key = no_insert_auth_key,
	.lookup_auth_key = no_lookup_auth_key,
	.set_user_id = rwk_fi_av_set_user_id,
};
_Static_assert(offsetof(typeof(av_ops), av_set) == offsetof(struct fi_ops_av, av_set),
	"the calls are where the headers have them; `size` says that later ones are missing");

#define CONTEXT_BITS 16 /* at most: more than there are contexts, far from what a number takes */

static int check_attr(const struct rwk_fi_domain *domain, const struct fi_av_attr *attr)
{
	const uint64_t known = FI_EVENT | FI_READ | FI_SYMMETRIC | FI_AV_USER_ID;

	if (attr->flags & ~known) {
		rwk_info("fi_av_open: there are no flags %#llx", (unsigned long long)(attr->flags & ~known));
		return -FI_ENOSYS;
	}
	if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > CONTEXT_BITS) {
		rwk_warn("fi_av_open: %d bits of an fi_addr_t for the receive context, there are %d", attr->rx_ctx_bits,
			CONTEXT_BITS);
		return -FI_EINVAL;
	}
	if (attr->flags & FI_READ && !attr->name) {
		rwk_warn("fi_av_open: FI_READ without the name of a shared address vector");
		return -FI_EINVAL;
	}
	if (attr->type > FI_AV_TABLE || (domain->av_type && attr->type && domain->av_type != attr->type)) {
		rwk_warn("fi_av_open: type %d, the domain was opened for type %d", attr->type, domain->av_type);
		return -FI_EINVAL;
	}
	return 0;
}

/* More memory of the process's own, where there are no holes. */
static int grow(struct rwk_fi_av_table *t, uint32_t room)
{
	struct rwk_fi_av_entry *entries = realloc(t->entries, room * sizeof(*entries));
	uint32_t *heads = malloc(room * sizeof(*heads));
	uint64_t *holes = calloc(room / RWK_FI_AV_WORD, sizeof(*holes));

	t->entries = entries ? entries : t->entries;
	if (!entries || !heads || !holes) {
		free(heads);
		free(holes);
		return -FI_ENOMEM;
	}
	free(t->heads);
	free(t->holes);
	t->heads = heads;
	t->holes = holes;
	t->counts->room = room;
	return 0;
}

static int open_own(struct rwk_fi_av *av, size_t wanted)
{
	int err;

	av->table = (struct rwk_fi_av_table){.counts = &av->own, .grow = grow};
	err = grow(&av->table, rwk_fi_av_room(wanted));
	if (err)
		free(av->table.entries);
	else
		rwk_fi_av_rebuild(&av->table);
	return err;
}

/*
 * What programs look for at map_addr: the fi_addr_t of the first address, the second and so on. Here each is its own
 * number; there are as many as the table has room for when it is opened.
 */
static int list_numbers(struct rwk_fi_av *av, uint32_t room)
{
	av->numbers = malloc(room * sizeof(*av->numbers));
	for (uint32_t i = 0; av->numbers && i < room; i++)
		av->numbers[i] = i;
	return av->numbers ? 0 : -FI_ENOMEM;
}

static int look_into(struct rwk_fi_av *av, struct fi_av_attr *attr)
{
	int err = rwk_fi_av_shared_lock(av->shared);
	const struct rwk_fi_av_counts *c = av->table.counts;

	if (err)
		return err;
	if (!attr->map_addr)
		err = list_numbers(av, c->room);
	if (!err) {
		av->removals = c->removals;
		attr->count = c->count;
	}
	rwk_fi_av_shared_unlock(av->shared);
	return err;
}

/* The program is told how many addresses there are. */
static int open_shared(struct rwk_fi_av *av, struct fi_av_attr *attr)
{
	int err = rwk_fi_av_shared_open(
		attr->name, attr->flags & FI_READ, rwk_fi_av_room(attr->count), &av->table, &av->shared);

	if (err)
		return err;
	err = look_into(av, attr);
	if (err)
		rwk_fi_av_shared_close(av->shared);
	return err;
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
	err = attr && attr->name ? open_shared(av, attr) : open_own(av, attr ? attr->count : 0);
	if (!err && av->shared) {
		err = rwk_fi_domain_join(domain, &av->member, &av->lock);
		if (err)
			rwk_fi_av_shared_close(av->shared);
	}
	if (err) {
		free(av->numbers);
		free(av);
		return err;
	}
	if (av->numbers)
		attr->map_addr = av->numbers;
	if (attr && attr->type == FI_AV_UNSPEC)
		attr->type = domain->av_type ? domain->av_type : FI_AV_TABLE;
	av->events = attr && attr->flags & FI_EVENT;
	av->read_only = attr && attr->flags & FI_READ;
	av->names_apart = attr && attr->flags & FI_AV_USER_ID;
	av->context_bits = attr ? (unsigned)attr->rx_ctx_bits : 0;
	av->domain = domain;
	av->process = rwk_this_process();
	rwk_fi_hold(&domain->refs);
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = (struct fi_ops *)&fid_ops;
	av->fid.ops = (struct fi_ops_av *)&av_ops;
	*fid = &av->fid;
	return 0;
}
