/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/job.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rwk_job_map *job_map;
static uint32_t job_node;

/** FNV-1a, to fold names into the words of an address. */
static uint64_t fold(uint64_t h, const void *bytes, size_t len)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

/**
 * What the processes of one booted system and one network namespace share, and nobody else: the kernel's boot id and the
 * namespace's inode. Never 0.
 */
static uint32_t node_hash(void)
{
	uint64_t h = 0xcbf29ce484222325u;
	char boot_id[64];
	struct stat st;
	ssize_t n;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, boot_id, sizeof(boot_id));
		if (n > 0)
			h = fold(h, boot_id, (size_t)n);
		close(fd);
	}
	if (!stat("/proc/self/ns/net", &st))
		h = fold(h, &st.st_ino, sizeof(st.st_ino));
	h ^= h >> 32;
	return (uint32_t)h ? (uint32_t)h : 1;
}

int rwk_job_load(void)
{
	int rc = 0;

	pthread_mutex_lock(&job_lock);
	if (!job_map) {
		rc = rwk_job_map_get(NULL, &job_map);
		job_node = node_hash();
	}
	pthread_mutex_unlock(&job_lock);
	return rc;
}

void rwk_job_unload(void)
{
	pthread_mutex_lock(&job_lock);
	rwk_job_map_free(job_map);
	job_map = NULL;
	pthread_mutex_unlock(&job_lock);
}

void rwk_job_facts(struct rwk_sel_facts *f)
{
	rwk_sel_facts_init(f, job_map, &rwk_params);
}

void rwk_job_describe(struct rwk_port_attr *attr)
{
	struct rwk_address *a = &attr->address;

	a->version_srq = RWK_ADDR_VERSION << 24;
	a->flags_rank = job_map->rank < RWK_ADDR_NO_RANK ? job_map->rank : RWK_ADDR_NO_RANK;
	a->job = (uint32_t)(job_map->hash ^ job_map->hash >> 32);
	a->node = job_node;
	attr->local_peers = job_map->local_size - 1;
	attr->oversubscribed = job_map->oversubscribed;
}

bool rwk_ip_is_local(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = !memcmp(ip, mapped, sizeof(mapped)), found = false;
	struct ifaddrs *all;

	if ((v4 && ip[12] == 127) || (!v4 && IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)ip)))
		return true;
	if (getifaddrs(&all))
		return false;
	for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr)
			continue;
		if (v4 && i->ifa_addr->sa_family == AF_INET)
			found = !memcmp(&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, ip + 12, 4);
		else if (!v4 && i->ifa_addr->sa_family == AF_INET6)
			found = !memcmp(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr, ip, 16);
	}
	freeifaddrs(all);
	return found;
}
