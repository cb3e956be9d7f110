/* SPDX-License-Identifier: BSD-3-Clause */
/* What this host has for messages to go by: interfaces, RDMA devices, and the limits that the system sets. */
#define _GNU_SOURCE /* struct ifaddrs and its flags */
#include "base/param.h"
#include "engine/engine.h"
#include "tools/info.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/** The first number in a file; false: there is none, or it is negative. */
static bool read_number(const char *path, uint64_t *out)
{
	FILE *f = fopen(path, "re");
	long long v = -1;

	if (!f)
		return false;
	if (fscanf(f, "%lld", &v) != 1)
		v = -1;
	fclose(f);
	if (v >= 0)
		*out = (uint64_t)v;
	return v >= 0;
}

static void number_of(struct rwk_doc *d, const char *name, const char *path)
{
	uint64_t v = 0;
	bool known = read_number(path, &v);

	rwk_doc_number_if(d, name, known, v);
}

static void addresses_of(struct rwk_doc *d, const struct ifaddrs *all, const char *interface)
{
	char text[INET6_ADDRSTRLEN];

	rwk_doc_list(d, "addresses");
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		const void *ip = NULL;

		if (!i->ifa_addr || strcmp(i->ifa_name, interface) != 0)
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			ip = &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
		else if (i->ifa_addr->sa_family == AF_INET6)
			ip = &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr;
		if (ip && inet_ntop(i->ifa_addr->sa_family, ip, text, sizeof(text)))
			rwk_doc_text(d, "address", text);
	}
	rwk_doc_end(d);
}

static void interface_doc(struct rwk_doc *d, const struct ifaddrs *all, const struct ifaddrs *i)
{
	char path[128];

	rwk_doc_object(d, "interface");
	rwk_doc_text(d, "name", i->ifa_name);
	rwk_doc_flag(d, "up", (i->ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING));
	rwk_doc_flag(d, "loopback", i->ifa_flags & IFF_LOOPBACK);
	snprintf(path, sizeof(path), "/sys/class/net/%.32s/mtu", i->ifa_name);
	number_of(d, "mtu_bytes", path);
	snprintf(path, sizeof(path), "/sys/class/net/%.32s/speed", i->ifa_name);
	number_of(d, "mbit_per_second", path);
	snprintf(path, sizeof(path), "/sys/class/net/%.32s/device/numa_node", i->ifa_name);
	number_of(d, "numa_node", path);
	addresses_of(d, all, i->ifa_name);
	rwk_doc_end(d);
}

static bool is_first(const struct ifaddrs *all, const struct ifaddrs *i)
{
	while (strcmp(all->ifa_name, i->ifa_name) != 0)
		all = all->ifa_next;
	return all == i;
}

static void interfaces_doc(struct rwk_doc *d)
{
	struct ifaddrs *all;

	rwk_doc_list(d, "interfaces");
	if (!getifaddrs(&all)) {
		for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
			if (is_first(all, i))
				interface_doc(d, all, i);
		}
		freeifaddrs(all);
	}
	rwk_doc_end(d);
}

/** They are told of although this version goes by none: who has one will wonder. */
static void rdma_doc(struct rwk_doc *d)
{
	DIR *dir = opendir("/sys/class/infiniband");

	rwk_doc_list(d, "rdma_devices");
	if (dir) {
		for (struct dirent *e; (e = readdir(dir));) {
			if (e->d_name[0] == '.')
				continue;
			rwk_doc_object(d, "rdma_device");
			rwk_doc_text(d, "name", e->d_name);
			rwk_doc_flag(d, "used", false);
			rwk_doc_end(d);
		}
		closedir(dir);
	}
	rwk_doc_end(d);
}

static void limit_doc(struct rwk_doc *d, const char *name, int resource)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	bool bounded = !getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY;

	if (bounded)
		rwk_doc_number(d, name, limit.rlim_cur);
	else
		rwk_doc_text(d, name, "unlimited");
}

static void limits_doc(struct rwk_doc *d)
{
	rwk_doc_object(d, "limits");
	limit_doc(d, "descriptors", RLIMIT_NOFILE);
	limit_doc(d, "address_space_bytes", RLIMIT_AS);
	limit_doc(d, "locked_memory_bytes", RLIMIT_MEMLOCK);
	number_of(d, "largest_receive_buffer_bytes", "/proc/sys/net/core/rmem_max");
	number_of(d, "largest_send_buffer_bytes", "/proc/sys/net/core/wmem_max");
	number_of(d, "yama_ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope");
	rwk_doc_number(d, "eager_max_bytes", rwk_params.eager_max);
	rwk_doc_number(d, "eager_max_network_bytes", rwk_params.eager_max_network);
	rwk_doc_number(d, "inject_max_bytes", RWK_INJECT_MAX);
	rwk_doc_number(d, "pieces_of_a_message", RWK_ENGINE_IOV_MAX);
	rwk_doc_end(d);
}

void rwk_info_devices(struct rwk_doc *d)
{
	interfaces_doc(d);
	rdma_doc(d);
	limits_doc(d);
}
