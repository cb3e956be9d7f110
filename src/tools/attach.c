/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* F_GET_SEALS */
#include "tools/attach.h"

#include "base/process.h"
#include "tools/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH "/proc/%ld/fd/%s"

/** What became of a descriptor that has the name. */
enum found { TAKEN, NONE, STRANGE, OTHER_VERSION, INHERITED };

static int refuse(char *why, int rc, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(char *why, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, RWK_ATTACH_WHY, format, args);
	va_end(args);
	return rc;
}

static bool has_name(pid_t pid, const char *fd)
{
	static const char name[] = "/memfd:" RWK_STATUS_NAME " (deleted)";
	char path[300], link[sizeof(name) + 1];
	ssize_t n;

	snprintf(path, sizeof(path), PATH, (long)pid, fd);
	n = readlink(path, link, sizeof(link));
	return n == (ssize_t)sizeof(name) - 1 && !memcmp(link, name, sizeof(name) - 1);
}

/** Are the numbers in the page not those of our PID namespace? */
static bool is_elsewhere(pid_t pid)
{
	char path[64], his[64], mine[64];
	ssize_t h, m;

	snprintf(path, sizeof(path), "/proc/%ld/ns/pid", (long)pid);
	h = readlink(path, his, sizeof(his));
	m = readlink("/proc/self/ns/pid", mine, sizeof(mine));
	return h > 0 && (h != m || memcmp(his, mine, (size_t)h) != 0);
}

static bool is_owner(const struct rwk_attached *a, const struct rwk_status *s)
{
	if (a->start && s->start && a->start != s->start)
		return false;
	return s->pid == a->pid || is_elsewhere(a->pid);
}

/** The page that the descriptor leads to, if it is one: sealed, so that it stays as long as it is. */
static void *map_page(int fd, size_t *size)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_SEAL;
	int seals = fcntl(fd, F_GET_SEALS); /* -1: a file that knows none */
	struct stat st;
	void *at;

	if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
		st.st_size < (off_t)sizeof(struct rwk_status_head))
		return NULL;
	*size = (size_t)st.st_size;
	at = mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

static enum found judge(struct rwk_attached *a, const struct rwk_status *s, size_t size, char *why)
{
	if (memcmp(s->head.magic, RWK_STATUS_MAGIC, sizeof(s->head.magic)) != 0)
		return STRANGE;
	if (s->head.layout != RWK_STATUS_LAYOUT) {
		char version[sizeof(s->head.version) + 1] = "";

		memcpy(version, s->head.version, sizeof(s->head.version));
		rwk_text_make_safe(version);
		refuse(why, 0,
			"process %ld has ropewalk %s with status layout %" PRIu32
			", this reads layout %u: take the rwk_info of that version",
			(long)a->pid, version, s->head.layout, RWK_STATUS_LAYOUT);
		return OTHER_VERSION;
	}
	if (s->head.size != sizeof(*s) || size < sizeof(*s))
		return STRANGE;
	if (!is_owner(a, s)) {
		refuse(why, 0,
			"process %ld has no endpoint of its own, it was forked by process %" PRId64
			": look at that one",
			(long)a->pid, s->pid);
		return INHERITED;
	}
	return TAKEN;
}

static enum found take(struct rwk_attached *a, const char *fd, char *why)
{
	enum found found = STRANGE;
	struct rwk_status *s;
	char path[300];
	size_t size;
	int own;

	if (!has_name(a->pid, fd))
		return NONE;
	snprintf(path, sizeof(path), PATH, (long)a->pid, fd);
	own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (own < 0)
		return NONE; /* closed by now */
	s = map_page(own, &size);
	close(own);
	if (s)
		found = judge(a, s, size, why);
	if (found == TAKEN && a->count < RWK_ATTACH_MAX) {
		a->page[a->count++] = s;
		return found;
	}
	a->more += found == TAKEN;
	if (s)
		munmap(s, size);
	return found;
}

/** Why there is nothing to see, when the process has been looked through. */
static int nothing(const struct rwk_attached *a, enum found best, char *why)
{
	long pid = a->pid;

	if (!rwk_attach_lives(a))
		return refuse(why, -ESRCH, "process %ld has ended", pid);
	switch (best) {
	case OTHER_VERSION:
		return -EPROTO;
	case INHERITED:
		return -ENOENT;
	case STRANGE:
		return refuse(why, -EPROTO, "process %ld has a status page that is none of ropewalk's, or is damaged",
			pid);
	default:
		return refuse(why, -ENOENT,
			"process %ld has no endpoint of ropewalk open that shows itself: those of type FI_EP_RDM do, "
			"unless FI_ROPEWALK_VISIBLE=no",
			pid);
	}
}

int rwk_attach(pid_t pid, struct rwk_attached *a, char *why)
{
	enum found best = NONE;
	char path[64];
	DIR *fds;
	int err;

	*a = (struct rwk_attached){.pid = pid, .start = rwk_process_start(pid)};
	if (!rwk_process_is_alive(pid, 0))
		return refuse(why, -ESRCH, "there is no process %ld", (long)pid);
	snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	fds = opendir(path);
	if (!fds) {
		err = errno;
		if (err == EACCES || err == EPERM)
			return refuse(why, -EACCES,
				"process %ld may not be looked into: it is another user's, or protected; its user and "
				"root may",
				(long)pid);
		return refuse(why, err == ENOENT ? -ESRCH : -err, "process %ld cannot be looked into: %s", (long)pid,
			strerror(err));
	}
	for (struct dirent *d; (d = readdir(fds));) {
		enum found f = take(a, d->d_name, why);

		best = f == NONE ? best : f;
	}
	closedir(fds);
	return a->count ? 0 : nothing(a, best, why);
}

void rwk_detach(struct rwk_attached *a)
{
	for (unsigned i = 0; i < a->count; i++)
		munmap((void *)(uintptr_t)a->page[i], sizeof(*a->page[i]));
	a->count = 0;
}

bool rwk_attach_lives(const struct rwk_attached *a)
{
	return rwk_process_is_alive(a->pid, a->start);
}

static uint32_t at_most(uint32_t v, uint32_t most)
{
	return v < most ? v : most;
}

#define END(text) ((text)[sizeof(text) - 1] = '\0')

static void make_safe(struct rwk_status *s)
{
	END(s->head.version);
	END(s->program);
	END(s->host);
	END(s->job);
	END(s->settings);
	for (uint32_t i = 0; i < s->kinds; i++) {
		struct rwk_status_kind *k = &s->kind[i];

		END(k->reason);
		END(k->manner);
		for (int l = 0; l < RWK_STRAND_COUNT; l++)
			END(k->lost[l]);
		k->strand = at_most(k->strand, RWK_STRAND_NONE);
	}
	for (uint32_t i = 0; i < s->peers; i++)
		s->peer[i].kind = s->peer[i].kind < s->kinds ? s->peer[i].kind : RWK_STATUS_KINDS;
}

/* The counts first: what they cover is there before them. A kind is there before a peer of that kind. */
void rwk_attach_read(const struct rwk_attached *a, unsigned i, struct rwk_status *to)
{
	const struct rwk_status *from = a->page[i];
	uint32_t peers = at_most(__atomic_load_n(&from->peers, __ATOMIC_ACQUIRE), RWK_STATUS_PEERS);
	uint32_t kinds = at_most(__atomic_load_n(&from->kinds, __ATOMIC_ACQUIRE), RWK_STATUS_KINDS);

	memcpy(to, from, offsetof(struct rwk_status, kind));
	memcpy(to->kind, from->kind, kinds * sizeof(to->kind[0]));
	memcpy(to->peer, from->peer, peers * sizeof(to->peer[0]));
	to->peers = peers;
	to->kinds = kinds;
	make_safe(to);
}
