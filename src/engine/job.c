/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/job.h"

#include "base/cancel.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FEW_DESCRIPTORS 32u

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rwk_job_map *job_map;
static uint32_t job_node, job_machine;

#define FOLD_START 0xcbf29ce484222325u

/** FNV-1a, to fold names into the words of an address. */
static uint64_t fold(uint64_t h, const void *bytes, size_t len)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

/** Of an id in a file; 0: it cannot be read. */
static uint64_t id_hash(const char *path)
{
	char id[64];
	ssize_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, id, sizeof(id));
		close(fd);
	}
	return n > 0 ? fold(FOLD_START, id, (size_t)n) : 0;
}

/** Of the kernel's boot id, which all containers of a running system see; 0: it cannot be read. */
static uint64_t boot_hash(void)
{
	return id_hash("/proc/sys/kernel/random/boot_id");
}

/**
 * What hosts are told apart by where the boot id cannot be read: namespaces of two hosts often have the same inode. Two
 * containers of one host may differ in it, and then use the network.
 */
static uint64_t host_hash(void)
{
	uint64_t h = id_hash("/etc/machine-id");
	char name[65] = "";

	gethostname(name, sizeof(name) - 1);
	return fold(h ? h : FOLD_START, name, strlen(name));
}

/**
 * What the processes of one booted system and one network namespace share: the kernel's boot id and the namespace's
 * inode. Nobody else does, but systems that were restored from one snapshot: these differ in their IPs. Never 0.
 */
static uint32_t node_hash(uint64_t boot)
{
	uint64_t h = boot ? boot : host_hash();
	struct stat st;

	if (!stat("/proc/self/ns/net", &st))
		h = fold(h, &st.st_ino, sizeof(st.st_ino));
	h ^= h >> 32;
	return (uint32_t)h ? (uint32_t)h : 1;
}

int rwk_job_load(void)
{
	int before = rwk_cancel_hold_off(), rc = 0;
	uint64_t boot;

	pthread_mutex_lock(&job_lock);
	if (!job_map) {
		rc = rwk_job_map_get(NULL, &job_map);
		boot = boot_hash();
		job_node = node_hash(boot);
		job_machine = (uint32_t)(boot ^ boot >> 32) & 0xffffffu;
	}
	pthread_mutex_unlock(&job_lock);
	rwk_cancel_as_before(before);
	return rc;
}

/* The host's own IPs, as of the last look. An address vector of many entries asks for each of them. */
static struct {
	pthread_mutex_t lock;
	bool known;
	int64_t asked_at; /* seconds */
	uint8_t (*ip)[16];
	size_t count;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* IPv4 or IPv6 into 16 bytes; false for other families. */
static bool take_ip(const struct sockaddr *from, uint8_t ip[16])
{
	uint16_t port;

	return from && rwk_socket_address_parts(from, ip, &port);
}

/* What cannot be had now is asked for again later; until then the last answer holds. */
static void ask_own_ips(void)
{
	int before = rwk_cancel_hold_off();
	size_t count = 0;
	struct ifaddrs *all;
	uint8_t(*ip)[16];

	if (getifaddrs(&all))
		goto as_before;
	for (struct ifaddrs *i = all; i; i = i->ifa_next)
		count++;
	ip = malloc((count + 1) * sizeof(*ip));
	if (ip) {
		count = 0;
		for (struct ifaddrs *i = all; i; i = i->ifa_next)
			count += take_ip(i->ifa_addr, ip[count]);
		free(own.ip);
		own.ip = ip;
		own.count = count;
	}
	freeifaddrs(all);
as_before:
	rwk_cancel_as_before(before);
}

static void forget_own_ips(void)
{
	pthread_mutex_lock(&own.lock);
	free(own.ip);
	own.ip = NULL;
	own.count = 0;
	own.known = false;
	pthread_mutex_unlock(&own.lock);
}

bool rwk_ip_is_local(const uint8_t ip[16])
{
	static const uint8_t loopback[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
	struct timespec now;
	bool found = false;

	if (!memcmp(ip, loopback, sizeof(loopback)) || IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)(const void *)ip))
		return true;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	pthread_mutex_lock(&own.lock);
	if (!own.known || now.tv_sec != own.asked_at) {
		ask_own_ips();
		own.known = true;
		own.asked_at = now.tv_sec;
	}
	for (size_t i = 0; i < own.count && !found; i++)
		found = !memcmp(own.ip[i], ip, 16);
	pthread_mutex_unlock(&own.lock);
	return found;
}

void rwk_job_unload(void)
{
	pthread_mutex_lock(&job_lock);
	rwk_job_map_free(job_map);
	job_map = NULL;
	pthread_mutex_unlock(&job_lock);
	forget_own_ips();
}

/* What a thread of the parent was about to change is left as it is, for ever, and asked for anew. */
static void in_child(void)
{
	if (rwk_forked_free(&job_lock))
		job_map = NULL;
	if (rwk_forked_free(&own.lock)) {
		own.ip = NULL;
		own.count = 0;
		own.known = false;
	}
}

int rwk_job_watch_forks(void)
{
	static struct rwk_forked forked = {.in_child = in_child};

	return rwk_fork_watch(&forked);
}

void rwk_job_facts(struct rwk_sel_facts *f)
{
	rwk_sel_facts_init(f, job_map, &rwk_params);
}

/** Would a peer on another node be carried by a shared connection? */
static bool is_shared(void)
{
	struct rwk_sel_choice choice;
	struct rwk_sel_facts facts;

	rwk_job_facts(&facts);
	facts.node = RWK_SEL_OTHER;
	rwk_sel_choose(&facts, &choice);
	return choice.strand == RWK_STRAND_SRC_UDP;
}

void rwk_job_describe(struct rwk_port_attr *attr)
{
	struct rwk_address *a = &attr->address;

	a->version_srq = RWK_ADDR_VERSION << 24;
	a->flags_rank = job_map->rank < RWK_ADDR_NO_RANK ? job_map->rank : RWK_ADDR_NO_RANK;
	a->job = (uint32_t)(job_map->hash ^ job_map->hash >> 32);
	a->node = job_node;
	memcpy(attr->key, job_map->key, sizeof(attr->key));
	attr->local_peers = job_map->local_size - 1;
	attr->remote_peers = job_map->size - job_map->local_size;
	attr->shared = is_shared();
	attr->oversubscribed = job_map->oversubscribed;
	attr->machine = job_machine;
	attr->processors = job_map->machine.processors;
}

bool rwk_job_is_crowd(unsigned threads)
{
	const struct rwk_machine *m = job_map ? &job_map->machine : NULL;

	if (!m)
		return false;
	return (m->my_processors && threads > m->my_processors) ||
	       (m->processors && threads + job_map->local_size - 1 > m->processors);
}

/** Where nobody says that there are other nodes, the few descriptors of a process are for those on this one. */
static bool descriptors_suffice(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= FEW_DESCRIPTORS)
		return true;
	rwk_warn("only %llu descriptors: peers on other nodes cannot be reached; raise `ulimit -n` to %u",
		(unsigned long long)limit.rlim_cur, FEW_DESCRIPTORS);
	return false;
}

void rwk_job_show(struct rwk_status *s, const struct rwk_address *me)
{
	rwk_status_open(s, me, job_map);
}

bool rwk_job_wants_network(void)
{
	bool forced = rwk_params.link == RWK_LINK_UDP || rwk_params.link == RWK_LINK_TCP ||
		      rwk_params.service == RWK_SERVICE_RC || rwk_params.service == RWK_SERVICE_SRC;

	if (rwk_params.link == RWK_LINK_SHM)
		return false;
	if (forced || job_map->nodes > 1 || job_map->spawned)
		return true;
	return job_map->source == RWK_JOB_NONE && descriptors_suffice();
}

bool rwk_address_claims(const struct rwk_address *a, uint32_t node)
{
	return (a->flags_rank & RWK_ADDR_PARTIAL || a->node == node) && rwk_ip_is_local(a->ip);
}

bool rwk_address_is_here(const struct rwk_address *a)
{
	return rwk_address_claims(a, job_node);
}
