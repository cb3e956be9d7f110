/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a great many addresses take in an address vector, and how much memory: inserted in one call or one by one,
 * looked up, and removed; then a receive from the last of them, for what an endpoint keeps for each. Nobody is talked
 * to. Each row is of a process of its own, so that none finds the memory of the one before.
 */
#include "bench/common/clock.h"
#include "bench/common/report.h"
#include "transport.h" /* what an address of ropewalk's is made of */

#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESSES_MAX 16000000ul
#define ADDRESS_MAX   256

struct options {
	const char *provider, *json;
	size_t count;
};

/* What a row is of. */
struct kind {
	const char *name;
	enum fi_av_type type;
	bool by_ip; /* sockaddr_in, not what endpoints call themselves */
	bool singly;
};

static const struct kind kinds[] = {
	{"map", FI_AV_MAP, false, false},
	{"table", FI_AV_TABLE, false, false},
	{"table, one by one", FI_AV_TABLE, false, true},
	{"map, by IP", FI_AV_MAP, true, false},
	{"table, by IP", FI_AV_TABLE, true, false},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct result {
	int missing; /* the provider does not have it */
	double insert, look_up, remove;
	double bytes, with_endpoint; /* for each address */
};

struct run {
	const struct kind *kind;
	size_t count, size; /* of addresses; bytes of one */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char *address;
	fi_addr_t *number;
};

static void fail(const char *call, long rc)
{
	fprintf(stderr, "addresses: %s: %s\n", call, fi_strerror((int)-rc));
	exit(2);
}

static void need(const char *call, long rc)
{
	if (rc)
		fail(call, rc);
}

static double resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	double pages = 0;

	if (!f || fscanf(f, "%*s %lf", &pages) != 1)
		fail("/proc/self/statm", -EIO);
	fclose(f);
	return pages * (double)sysconf(_SC_PAGESIZE);
}

static int open_all(struct run *r, const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = {.type = r->kind->type};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	int rc;

	if (!hints)
		fail("fi_allocinfo", -ENOMEM);
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = r->kind->by_ip ? FI_SOCKADDR_IN : FI_FORMAT_UNSPEC;
	hints->fabric_attr->prov_name = strdup(provider);
	rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &r->info);
	fi_freeinfo(hints);
	if (rc == -FI_ENODATA)
		return rc;
	need("fi_getinfo", rc);
	need("fi_fabric", fi_fabric(r->info->fabric_attr, &r->fabric, NULL));
	need("fi_domain", fi_domain(r->fabric, r->info, &r->domain, NULL));
	rc = fi_av_open(r->domain, &av, &r->av, NULL);
	if (rc)
		return rc;
	need("fi_cq_open", fi_cq_open(r->domain, &cq, &r->cq, NULL));
	need("fi_endpoint", fi_endpoint(r->domain, r->info, &r->ep, NULL));
	need("fi_ep_bind", fi_ep_bind(r->ep, &r->av->fid, 0));
	need("fi_ep_bind", fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV));
	need("fi_enable", fi_enable(r->ep));
	return 0;
}

/* Number i of as many processes as you like: 64 on each node. */
static void make_address(const struct run *r, const void *own, size_t i, void *to)
{
	uint32_t ip = 0x0a000001u + (uint32_t)(i / 64);

	if (r->kind->by_ip) {
		struct sockaddr_in a = {.sin_family = AF_INET,
			.sin_port = htons((uint16_t)(20000 + i % 64)),
			.sin_addr.s_addr = htonl(ip)};

		memcpy(to, &a, sizeof(a));
	} else {
		struct rwk_address a;

		memcpy(&a, own, sizeof(a));
		a.flags_rank = (uint32_t)i;
		a.node = ip;
		a.nonce_port = (uint64_t)i << 16 | (20000 + i % 64);
		memcpy(a.ip + 12, &ip, sizeof(ip));
		memcpy(to, &a, sizeof(a));
	}
}

/* False: other providers' own addresses cannot be made up. */
static bool make_addresses(struct run *r)
{
	char own[ADDRESS_MAX];
	size_t len = sizeof(own);

	need("fi_getname", fi_getname(&r->ep->fid, own, &len));
	if (!r->kind->by_ip &&
		(strcmp(r->info->fabric_attr->prov_name, "ropewalk") || len != sizeof(struct rwk_address)))
		return false;
	r->size = len;
	r->address = malloc(r->count * len);
	r->number = malloc(r->count * sizeof(*r->number));
	if (!r->address || !r->number)
		fail("the list of addresses", -ENOMEM);
	for (size_t i = 0; i < r->count; i++)
		make_address(r, own, i, r->address + i * len);
	memset(r->number, 0xff, r->count * sizeof(*r->number));
	return true;
}

static void insert(struct run *r)
{
	size_t each = r->kind->singly ? 1 : r->count;

	for (size_t i = 0; i < r->count; i += each) {
		int n = fi_av_insert(r->av, r->address + i * r->size, each, r->number + i, 0, NULL);

		if (n != (int)each)
			fail("fi_av_insert", n < 0 ? n : -EIO);
	}
}

static void look_up(struct run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		char found[ADDRESS_MAX];
		size_t len = sizeof(found);
		int rc = fi_av_lookup(r->av, r->number[i], found, &len);

		if (rc || len != r->size || memcmp(found, r->address + i * r->size, len))
			fail("fi_av_lookup: another address", rc ? rc : -EIO);
	}
}

/* What an endpoint keeps for each address it makes when it first uses one: the last, for all. */
static void receive_from_last(struct run *r, struct fi_context2 *context)
{
	need("fi_trecv", fi_trecv(r->ep, NULL, 0, NULL, r->number[r->count - 1], 1, 0, context));
	need("fi_cancel", fi_cancel(&r->ep->fid, context));
}

static void measure(struct run *r, const char *provider, struct result *to)
{
	static struct fi_context2 context;
	double before, at;

	if (open_all(r, provider) || !make_addresses(r)) {
		to->missing = 1;
		return;
	}
	before = resident();
	at = bench_now();
	insert(r);
	to->insert = bench_now() - at;
	to->bytes = (resident() - before) / (double)r->count;
	at = bench_now();
	look_up(r);
	to->look_up = bench_now() - at;
	receive_from_last(r, &context);
	to->with_endpoint = (resident() - before) / (double)r->count;
	at = bench_now();
	need("fi_av_remove", fi_av_remove(r->av, r->number, r->count, 0));
	to->remove = bench_now() - at;
}

/* In a process of its own. */
static bool take_result(const struct options *o, const struct kind *kind, struct result *to)
{
	struct run r = {.kind = kind, .count = o->count};
	int fd[2], status;
	pid_t pid = -1;
	bool all;

	memset(to, 0, sizeof(*to));
	if (pipe(fd) || (pid = fork()) < 0) {
		perror("addresses: a process for a row");
		return false;
	}
	if (!pid) {
		measure(&r, o->provider, to);
		_exit(write(fd[1], to, sizeof(*to)) != sizeof(*to));
	}
	close(fd[1]);
	all = read(fd[0], to, sizeof(*to)) == sizeof(*to);
	close(fd[0]);
	if (waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		fprintf(stderr, "addresses: %s: its process was ended by signal %d (%s)\n", kind->name,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	return !status && all;
}

static void print_row(const struct kind *k, const struct result *r)
{
	if (r->missing)
		printf("%-20s %s\n", k->name, "the provider has none such, or they cannot be made up");
	else
		printf("%-20s %10.3f %10.3f %10.3f %12.1f %16.1f\n", k->name, r->insert, r->look_up, r->remove,
			r->bytes, r->with_endpoint);
}

/* Measures and prints them all: 0, or 2 if there is nothing to say. */
static int all_kinds(const struct options *o, struct result *r)
{
	size_t missing = 0;

	for (size_t i = 0; i < KINDS; i++) {
		if (!take_result(o, &kinds[i], &r[i]))
			return 2;
		print_row(&kinds[i], &r[i]);
		missing += (size_t)r[i].missing;
		fflush(stdout);
	}
	if (missing < KINDS)
		return 0;
	fprintf(stderr,
		"addresses: --provider %s: libfabric has none of this name whose addresses can be made up; "
		"FI_PROVIDER_PATH names the folder of others\n",
		o->provider);
	return 2;
}

static int write_json(FILE *f, const struct options *o, const struct result *r)
{
	const char *comma = "";

	fprintf(f, "{\"benchmark\": \"addresses\", \"provider\": \"%s\", \"addresses\": %zu, \"results\": [",
		o->provider, o->count);
	for (size_t i = 0; i < KINDS; i++) {
		if (r[i].missing)
			continue;
		fprintf(f,
			"%s\n{\"vector\": \"%s\", \"insert_s\": %.6f, \"look_up_s\": %.6f, \"remove_s\": %.6f, "
			"\"bytes\": "
			"%.1f, \"bytes_with_endpoint\": %.1f}",
			comma, kinds[i].name, r[i].insert, r[i].look_up, r[i].remove, r[i].bytes, r[i].with_endpoint);
		comma = ",";
	}
	fprintf(f, "\n]}\n");
	return bench_json_close(f, "addresses", o->json) ? 2 : 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	char *end;

	switch (key) {
	case 'p':
		o->provider = arg;
		return 0;
	case 'n':
		o->count = strtoul(arg, &end, 10);
		if (!o->count || o->count > ADDRESSES_MAX || *end)
			argp_error(state, "-n %s: a number from 1 to %lu is needed", arg, ADDRESSES_MAX);
		return 0;
	case 'j':
		o->json = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: not an option; --help lists them", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option table[] = {
		{"provider", 'p', "NAME", 0, "libfabric's provider (default ropewalk)", 0},
		{"addresses", 'n', "N", 0, "How many (default 1000000)", 0},
		{"json", 'j', "FILE", 0, "Write the results to FILE, too", 0},
		{0},
	};
	const struct argp argp = {
		.options = table, .parser = parse_option, .doc = "A great many addresses in an address vector."};
	struct options o = {.provider = "ropewalk", .count = 1000000};
	struct result r[KINDS];
	FILE *json = NULL;
	int rc;

	argp_err_exit_status = 2;
	if (argp_parse(&argp, argc, argv, 0, NULL, &o))
		return 2;
	if (o.json && bench_json_open("addresses", o.json, &json))
		return 2;
	printf("# %zu addresses, provider %s: seconds; resident bytes for each\n%-20s %10s %10s %10s %12s %16s\n",
		o.count, o.provider, "vector", "insert", "look up", "remove", "bytes", "and an endpoint");
	fflush(stdout);
	rc = all_kinds(&o, r);
	if (json && rc)
		bench_json_discard(json, o.json);
	else if (json)
		rc = write_json(json, &o, r);
	return bench_printed("addresses") ? 2 : rc;
}
