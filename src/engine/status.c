/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* F_ADD_SEALS */
#include "engine/status.h"

#include "base/log.h"
#include "base/process.h"
#include "base/shared.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAKS_ARE_LOOKED_FOR
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define LEAKS_ARE_LOOKED_FOR
#endif
#ifdef LEAKS_ARE_LOOKED_FOR
#include <sanitizer/lsan_interface.h>
#endif

enum {
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL,
	DESCRIPTORS_LEFT = 16, /* that others must still be able to have */
};

static size_t pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

/** The leak check follows pointers that lie in the heap alone: a program may end with an endpoint open. */
static void tell_leak_check(const void *at, size_t size, bool begin)
{
#ifdef LEAKS_ARE_LOOKED_FOR
	(begin ? __lsan_register_root_region : __lsan_unregister_root_region)(at, size);
#else
	(void)at;
	(void)size;
	(void)begin;
#endif
}

/** Is the limit of descriptors near? They are for peers before they are for the curious. */
static bool are_few(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd + DESCRIPTORS_LEFT >= limit.rlim_cur;
}

/** Puts memory that can be seen in the place of the page at `at`; its descriptor, or a negative errno. */
static int show(void *at, size_t size)
{
	int fd = rwk_shared_make(RWK_STATUS_NAME, size), rc;

	if (fd < 0)
		return fd;
	rc = are_few(fd) ? -EMFILE : 0;
	if (!rc && mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		rc = -errno;
	if (!rc && fcntl(fd, F_ADD_SEALS, SEALS))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

struct rwk_status *rwk_status_make(size_t before, int *fd)
{
	size_t size = pages(sizeof(struct rwk_status)), own = pages(before);
	char *at = mmap(NULL, own + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	tell_leak_check(at, own, true);
	*fd = -1;
	if (rwk_params.visible) {
		*fd = show(at + own, size);
		if (*fd < 0) {
			rwk_info("rwk_info will not see this endpoint: %s", strerror(-*fd));
			*fd = -1;
		}
	}
	return (struct rwk_status *)(at + own);
}

void rwk_status_free(struct rwk_status *s, size_t before, int fd)
{
	tell_leak_check((char *)s - pages(before), pages(before), false);
	munmap((char *)s - pages(before), pages(before) + pages(sizeof(*s)));
	if (fd >= 0)
		close(fd);
}

/** The parameters that the environment has set to something good. */
static void write_settings(char *to, size_t len)
{
	static const char more[] = "...\n";
	size_t at = 0;

	for (size_t i = 0; i < rwk_param_count; i++) {
		const struct rwk_param *p = &rwk_param_table[i];
		char name[64], value[1024];
		size_t need;

		if (!rwk_param_is_set(p))
			continue;
		rwk_param_variable(p, name, sizeof(name));
		rwk_param_show(&rwk_params, p, value, sizeof(value));
		need = strlen(name) + strlen(value) + 2;
		if (at + need + sizeof(more) > len) {
			memcpy(to + at, more, sizeof(more));
			return;
		}
		at += (size_t)snprintf(to + at, len - at, "%s=%s\n", name, value);
	}
}

void rwk_status_open(struct rwk_status *s, const struct rwk_address *me, const struct rwk_job_map *map)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	s->pid = getpid();
	s->start = rwk_process_start(getpid());
	s->opened = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	s->address = *me;
	snprintf(s->program, sizeof(s->program), "%s", program_invocation_short_name);
	gethostname(s->host, sizeof(s->host) - 1);
	snprintf(s->job, sizeof(s->job), "%s", map->id);
	s->source = (uint32_t)map->source;
	s->rank = map->rank;
	s->size = map->size;
	s->nodes = map->nodes;
	s->node = map->node;
	s->local_index = map->local_index;
	s->local_size = map->local_size;
	s->nodes_exact = map->nodes_exact;
	s->oversubscribed = map->oversubscribed;
	write_settings(s->settings, sizeof(s->settings));
	s->head.layout = RWK_STATUS_LAYOUT;
	s->head.size = sizeof(*s);
	snprintf(s->head.version, sizeof(s->head.version), "%s", PACKAGE_VERSION);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(s->head.magic, RWK_STATUS_MAGIC, sizeof(s->head.magic));
}

static bool is_kind(const struct rwk_status_kind *k, const struct rwk_status_kind *other)
{
	return k->self == other->self && k->here == other->here && k->strand == other->strand &&
	       !memcmp(k->reason, other->reason, sizeof(*k) - offsetof(struct rwk_status_kind, reason));
}

static void copy_text(char *to, const char *from)
{
	snprintf(to, RWK_SEL_TEXT, "%s", from);
}

/** The index of the kind that this choice is of, made if there is none. */
static uint32_t kind_of(struct rwk_status *s, const struct rwk_sel_facts *f, const struct rwk_sel_choice *c)
{
	struct rwk_status_kind k = {0};
	uint32_t i;

	k.self = f->self;
	k.here = f->node == RWK_SEL_CLAIMED || f->node == RWK_SEL_PROVEN;
	k.strand = c->strand;
	copy_text(k.reason, c->reason);
	copy_text(k.manner, c->manner);
	for (int l = 0; l < RWK_STRAND_COUNT; l++)
		copy_text(k.lost[l], c->lost[l]);
	for (i = 0; i < s->kinds; i++) {
		if (is_kind(&s->kind[i], &k))
			return i;
	}
	if (i == RWK_STATUS_KINDS)
		return i;
	s->kind[i] = k;
	__atomic_store_n(&s->kinds, i + 1, __ATOMIC_RELEASE);
	return i;
}

static uint32_t count(struct rwk_status *s, const struct rwk_sel_facts *f, const struct rwk_sel_choice *c)
{
	uint32_t kind = kind_of(s, f, c);

	if (kind < RWK_STATUS_KINDS)
		s->kind[kind].peers++;
	return kind;
}

struct rwk_status_peer *rwk_status_met(struct rwk_status *s, const struct rwk_address *peer,
	const struct rwk_sel_facts *f, const struct rwk_sel_choice *c)
{
	uint32_t kind = count(s, f, c);
	struct rwk_status_peer *p;

	if (s->peers == RWK_STATUS_PEERS) {
		s->unlisted++;
		return NULL;
	}
	p = &s->peer[s->peers];
	p->address = *peer;
	p->kind = kind;
	p->error = c->error ? -c->error : 0;
	__atomic_store_n(&s->peers, s->peers + 1, __ATOMIC_RELEASE);
	return p;
}

void rwk_status_changed(struct rwk_status *s, struct rwk_status_peer *p, const struct rwk_sel_facts *f,
	const struct rwk_sel_choice *c)
{
	uint32_t kind = count(s, f, c);

	if (p)
		p->kind = kind;
}

void rwk_status_traffic(struct rwk_status_peer *p, const struct rwk_traffic *t, uint64_t now)
{
	for (size_t i = 0; i < RWK_TRAFFIC_COUNTS; i++)
		__atomic_store_n(&p->traffic.count[i], t->count[i], __ATOMIC_RELAXED);
	__atomic_store_n(&p->traffic_at, now, __ATOMIC_RELAXED);
}
