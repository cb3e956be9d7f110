/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses come into an address vector, and what becomes of each is told. */
#include "bindings/libfabric/av.h"

#include "base/log.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/eq.h"
#include "bindings/libfabric/peer.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a list of addresses is taken in: what the program wants to know of each. */
struct results {
	struct rwk_fi_av *av;
	fi_addr_t *numbers; /* or NULL */
	bool named;         /* FI_AV_USER_ID: they are what shall stand for each first */
	int *errors;        /* with FI_SYNC_ERR, else NULL */
	void *context;
	int inserted;
	bool lost; /* no memory for an event */
};

static int begin(struct results *r, struct rwk_fi_av *av, fi_addr_t *numbers, uint64_t flags, void *context)
{
	if (flags & ~(uint64_t)(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID))
		return -FI_EBADFLAGS;
	if (av->read_only)
		return -FI_EACCES;
	if (av->events && !av->eq)
		return -FI_ENOEQ;
	if ((flags & FI_SYNC_ERR && (av->events || !context)) || (flags & FI_AV_USER_ID && !numbers))
		return -FI_EINVAL;
	if (flags & FI_AV_USER_ID && av->names_apart) {
		rwk_warn("fi_av_insert: the vector was opened with FI_AV_USER_ID: IDs come by fi_av_set_user_id");
		return -FI_EINVAL;
	}
	*r = (struct results){.av = av,
		.numbers = numbers,
		.named = flags & FI_AV_USER_ID,
		.errors = flags & FI_SYNC_ERR ? context : NULL,
		.context = context};
	return 0;
}

/* Of the address with that index. */
static void note(struct results *r, size_t i, int err, fi_addr_t number)
{
	if (r->numbers)
		r->numbers[i] = err ? FI_ADDR_NOTAVAIL : number;
	if (r->errors)
		r->errors[i] = -err;
	if (err && r->av->events)
		r->lost |= rwk_fi_eq_put_insert(r->av->eq, &r->av->fid.fid, r->context, i, -err) != 0;
	r->inserted += !err;
}

/* What the call returns. */
static int end(struct results *r)
{
	rwk_fi_peer_told(r->av);
	if (!r->av->events)
		return r->inserted;
	r->lost |= rwk_fi_eq_put_insert(r->av->eq, &r->av->fid.fid, r->context, (uint64_t)r->inserted, 0) != 0;
	return r->lost ? -FI_ENOMEM : 0;
}

/* Remembers what shall stand for a number. */
static int set_user(struct rwk_fi_av *av, fi_addr_t number, uint64_t user)
{
	size_t room = av->table.counts->room;
	uint64_t *users;

	if (number >= av->user_room) {
		users = realloc(av->users, room * sizeof(*users));
		if (!users)
			return -FI_ENOMEM;
		for (size_t i = av->user_room; i < room; i++)
			users[i] = rwk_fi_av_unnamed(av, i);
		av->users = users;
		av->user_room = room;
	}
	av->users[number] = user;
	return 0;
}

int rwk_fi_av_set_user_id(struct fid_av *fid, fi_addr_t number, fi_addr_t user, uint64_t flags)
{
	struct rwk_fi_av *av = rwk_fi_av_of(fid);
	uint64_t old;
	int err;

	if (flags)
		return -FI_EBADFLAGS;
	rwk_fi_domain_stop(av->domain);
	old = rwk_fi_av_user(av, number);
	err = rwk_fi_av_begin(av);
	if (!err) {
		err = rwk_fi_av_entry(&av->table, number) ? set_user(av, number, user) : -FI_EINVAL;
		rwk_fi_av_end(av);
	}
	for (uint32_t e = 0; e < av->ep_count && !err; e++) {
		struct rwk_peer *peer = rwk_fi_ep_known(av->eps[e], number);

		if (peer && rwk_peer_user(peer) == old)
			rwk_peer_set_user(peer, user);
	}
	rwk_fi_domain_go(av->domain);
	return err;
}

static int add(struct results *r, size_t i, const struct rwk_address *a, fi_addr_t *number)
{
	int err = rwk_fi_av_begin(r->av);

	if (err)
		return err;
	err = rwk_fi_av_add(&r->av->table, a, number);
	if (!err && r->named) {
		err = set_user(r->av, *number, r->numbers[i]);
		if (err)
			rwk_fi_av_take(&r->av->table, (uint32_t)*number);
	}
	rwk_fi_av_end(r->av);
	return err;
}

/* Reads and adds one address. A bad one is logged: it is a program's mistake. */
static int insert_one(struct results *r, size_t i, const void *from, fi_addr_t *number)
{
	uint32_t format = r->av->domain->addr_format;
	struct rwk_address a;
	int err = rwk_fi_address_read(format, from, &a);

	if (!err && !rwk_address_port(&a))
		err = -FI_EINVAL;
	if (!err)
		return add(r, i, &a, number);
	rwk_info("fi_av_insert: not an address of this vector's format (%s) with a port",
		rwk_fi_address_format_name(format));
	return err;
}

int rwk_fi_av_insert(
	struct fid_av *fid, const void *addr, size_t count, fi_addr_t *numbers, uint64_t flags, void *context)
{
	struct rwk_fi_av *av = rwk_fi_av_of(fid);
	size_t size = rwk_fi_address_size(av->domain->addr_format);
	struct results r;
	int err = begin(&r, av, numbers, flags, context);

	if (!err && count && !addr) {
		rwk_warn("fi_av_insert: the addresses are at NULL");
		err = -FI_EINVAL;
	}
	if (err)
		return err;
	rwk_fi_domain_stop(av->domain);
	for (size_t i = 0; i < count; i++) {
		fi_addr_t number = FI_ADDR_NOTAVAIL;

		err = insert_one(&r, i, (const char *)addr + i * size, &number);
		note(&r, i, err, number);
	}
	rwk_fi_domain_go(av->domain);
	return end(&r);
}

static void insert_resolved(struct results *r, size_t i, const struct rwk_address *a)
{
	fi_addr_t number = FI_ADDR_NOTAVAIL;
	int err = -FI_EINVAL;

	rwk_fi_domain_stop(r->av->domain);
	if (rwk_address_port(a))
		err = add(r, i, a, &number);
	note(r, i, err, number);
	rwk_fi_domain_go(r->av->domain);
}

/* So many addresses from that index on have failed. */
static void note_all(struct results *r, size_t i, size_t count, int err)
{
	for (size_t k = 0; k < count; k++)
		note(r, i + k, err, FI_ADDR_NOTAVAIL);
}

/* No such node or service: that is the call's own error, unless there are events. */
static int unresolved(struct results *r, size_t count, int err)
{
	note_all(r, 0, count, err);
	return r->av->events ? end(r) : err;
}

int rwk_fi_av_insertsvc(
	struct fid_av *fid, const char *node, const char *service, fi_addr_t *number, uint64_t flags, void *context)
{
	struct rwk_fi_av *av = rwk_fi_av_of(fid);
	struct rwk_address a;
	struct results r;
	int err = begin(&r, av, number, flags, context);

	if (err)
		return err;
	err = rwk_fi_address_resolve(av->domain->addr_format, node, service, false, false, &a);
	if (err)
		return unresolved(&r, 1, err);
	insert_resolved(&r, 0, &a);
	return end(&r);
}

static bool is_ip(const char *node)
{
	struct in_addr ip;

	return !node || strchr(node, ':') || inet_pton(AF_INET, node, &ip) == 1;
}

/* The name of the host that comes n after that one, by the number at its end: 0; -FI_EINVAL: there is none. */
static int name_host(const char *first, size_t n, char *name, size_t size)
{
	size_t len = strlen(first), stem = len;
	int need;

	while (stem && isdigit((unsigned char)first[stem - 1]))
		stem--;
	if (stem == len) {
		rwk_warn("fi_av_insertsym: there is no number at the end of the host name %s", first);
		return -FI_EINVAL;
	}
	need = snprintf(
		name, size, "%.*s%0*llu", (int)stem, first, (int)(len - stem), strtoull(first + stem, NULL, 10) + n);
	return need >= 0 && (size_t)need < size ? 0 : -FI_EINVAL;
}

/* The n-th node, of which the first has that address: IPs count, or else the numbers of hosts. */
static int find_node(struct rwk_fi_av *av, const char *node, const char *service, size_t n, struct rwk_address *a)
{
	char name[NI_MAXHOST];
	uint32_t ip;
	int err;

	if (!n)
		return 0;
	if (is_ip(node)) {
		memcpy(&ip, a->ip + 12, sizeof(ip));
		ip = htonl(ntohl(ip) + (uint32_t)n);
		memcpy(a->ip + 12, &ip, sizeof(ip));
		return 0;
	}
	err = name_host(node, n, name, sizeof(name));
	return err ? err : rwk_fi_address_resolve(av->domain->addr_format, name, service, false, false, a);
}

static void insert_ports(struct results *r, size_t i, const struct rwk_address *first, size_t services)
{
	struct rwk_address a;

	for (size_t s = 0; s < services; s++) {
		size_t port = rwk_address_port(first) + s;

		rwk_fi_address_partial(first->ip, port <= UINT16_MAX ? (uint16_t)port : 0, &a);
		insert_resolved(r, i + s, &a);
	}
}

/* "node" and "service" stand for themselves and the numbers after them. */
int rwk_fi_av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service, size_t services,
	fi_addr_t *numbers, uint64_t flags, void *context)
{
	struct rwk_fi_av *av = rwk_fi_av_of(fid);
	struct rwk_address first, a;
	struct results r;
	int err = begin(&r, av, numbers, flags, context);

	if (err)
		return err;
	err = rwk_fi_address_resolve(av->domain->addr_format, node, service, false, false, &first);
	if (err)
		return unresolved(&r, nodes * services, err);
	for (size_t n = 0; n < nodes; n++) {
		a = first;
		err = find_node(av, node, service, n, &a);
		if (err)
			note_all(&r, n * services, services, err);
		else
			insert_ports(&r, n * services, &a, services);
	}
	return end(&r);
}
