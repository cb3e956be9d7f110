/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "bindings/libfabric/av_shared.h"

#include "base/cancel.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/shared.h"
#include "base/this_process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GATE, LIFE, TABLE };

#define HEAD  4096
#define PIECE 65536u
#define MAGIC 0x7661206b6c617772u /* "rwalk av" */
#define BUILD (3u << 16 | sizeof(struct rwk_fi_av_entry)) /* of the layout; of another no table is taken */

struct head {
	uint64_t magic;
	uint32_t build;
	struct rwk_fi_av_counts counts;
};
_Static_assert(sizeof(struct head) <= HEAD, "it has room");

/* Takes or gives back a lock on a byte: F_RDLCK, F_WRLCK, F_UNLCK. 0, or -EAGAIN without `wait`. */
static int lock_byte(int fd, int byte, short type, bool wait)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	int rc;

	do {
		rc = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l);
	} while (rc && errno == EINTR);
	return rc ? -errno : 0;
}

static size_t size_for(uint32_t room)
{
	return HEAD + room * (sizeof(struct rwk_fi_av_entry) + sizeof(uint32_t));
}

/* The object's name: of the user, and what in the given name is neither letter nor digit as %XX. */
static int make_name(char *to, size_t len, const char *name)
{
	size_t at = (size_t)snprintf(to, len, "/ropewalk-av-%u-", (unsigned)geteuid());

	for (; *name && at < len; name++) {
		unsigned char c = (unsigned char)*name;

		at += (size_t)snprintf(to + at, len - at, isalnum(c) || c == '-' || c == '_' ? "%c" : "%%%02x", c);
	}
	if (at < len)
		return 0;
	rwk_warn("fi_av_open: the name is too long for a shared address vector");
	return -FI_EINVAL;
}

static void unmap(struct rwk_fi_av_shared *s)
{
	if (s->map)
		munmap(s->map, s->size);
	s->map = NULL;
}

static int replace_map(struct rwk_fi_av_shared *s, size_t size)
{
	int err = 0;
	void *at;

	rwk_fork_lock();
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (at == MAP_FAILED) {
		err = -errno;
	} else {
		unmap(s);
		s->map = at;
		s->size = size;
	}
	rwk_fork_unlock();
	return err;
}

/* Maps it for so many entries, in place of what was mapped. */
static int map(struct rwk_fi_av_shared *s, uint32_t room)
{
	size_t size = size_for(room);
	int err = replace_map(s, size);
	void *at = s->map;

	if (err)
		return err;
	s->table->counts = &((struct head *)at)->counts;
	s->table->entries = (struct rwk_fi_av_entry *)(void *)((char *)at + HEAD);
	s->table->heads = (uint32_t *)(void *)((char *)at + HEAD + room * sizeof(struct rwk_fi_av_entry));
	return 0;
}

/*
 * Pages for the object's bytes from `at` to `end`, before they are touched: where memory ends, a touch would be the end
 * of the process. In pieces: of one that a signal interrupts the kernel keeps nothing, and a timer's come for ever.
 */
static int provide(const struct rwk_fi_av_shared *s, size_t at, size_t end)
{
	int err = rwk_shared_allowed(s->name, end) ? -FI_ENOMEM : 0;

	while (!err && at < end) {
		size_t len = end - at < PIECE ? end - at : PIECE;

		err = -posix_fallocate(s->fd, (off_t)at, (off_t)len);
		if (!err)
			at += len;
		if (err == -EINTR)
			err = 0;
	}
	return err;
}

static int grow(struct rwk_fi_av_table *t, uint32_t room)
{
	struct rwk_fi_av_shared *s = t->memory;
	int err = provide(s, size_for(t->counts->room), size_for(room));

	if (!err)
		err = map(s, room);
	if (err)
		rwk_warn("shared address vector: no memory for %u addresses", room);
	else
		t->counts->room = room;
	return err ? -FI_ENOMEM : 0;
}

/* Nobody else has it: whatever is there goes. */
static int make(struct rwk_fi_av_shared *s, uint32_t room)
{
	struct head *head;
	int err = ftruncate(s->fd, 0) ? -errno : provide(s, 0, size_for(room));

	if (!err)
		err = map(s, room);
	if (err)
		return err;
	head = s->map;
	*head = (struct head){.magic = MAGIC, .build = BUILD, .counts.room = room};
	rwk_fi_av_rebuild(s->table);
	return 0;
}

/* Others have it: is it what this build knows? */
static int join(struct rwk_fi_av_shared *s)
{
	struct head head;

	if (pread(s->fd, &head, sizeof(head), 0) != sizeof(head) || head.magic != MAGIC || head.build != BUILD) {
		rwk_warn("fi_av_open: %s is in use by another version of ropewalk", s->name);
		return -FI_EINVAL;
	}
	return map(s, head.counts.room);
}

/* At the gate: makes it or joins those who have it. */
static int enter(struct rwk_fi_av_shared *s, bool existing, uint32_t room)
{
	bool alone = !lock_byte(s->fd, LIFE, F_WRLCK, false);
	int err;

	if (alone && existing) {
		shm_unlink(s->name);
		return -FI_ENOENT;
	}
	err = alone ? make(s, room) : join(s);
	return err ? err : lock_byte(s->fd, LIFE, F_RDLCK, false);
}

/* What this process has open. */
static struct rwk_list opened = {&opened, &opened};

static void close_object(struct rwk_fi_av_shared *s)
{
	unmap(s);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	rwk_list_remove(&s->all);
}

/* In a forked child. */
static void let_go(void)
{
	while (!rwk_list_empty(&opened))
		close_object(rwk_container_of(opened.next, struct rwk_fi_av_shared, all));
}

static struct rwk_forked forked = {.in_child = let_go};

static int open_object(struct rwk_fi_av_shared *s, bool existing)
{
	int err = rwk_fork_watch(&forked);

	if (err)
		return err;
	rwk_fork_lock();
	s->fd = shm_open(s->name, O_RDWR | (existing ? 0 : O_CREAT), 0600);
	if (s->fd >= 0)
		rwk_list_append(&opened, &s->all);
	else
		err = -errno;
	rwk_fork_unlock();
	return err;
}

static void close_again(struct rwk_fi_av_shared *s)
{
	rwk_fork_lock();
	close_object(s);
	rwk_fork_unlock();
}

/* Opens the object and passes its gate: *gone if its name was taken away in the meantime. */
static int pass_gate(struct rwk_fi_av_shared *s, bool existing, bool *gone)
{
	struct stat st;
	int err = open_object(s, existing);

	*gone = false;
	if (err)
		return err;
	err = lock_byte(s->fd, GATE, F_WRLCK, true);
	if (!err && fstat(s->fd, &st))
		err = -errno;
	if (!err && (st.st_uid != geteuid() || st.st_mode & 077))
		err = -FI_EACCES;
	if (!err)
		*gone = !st.st_nlink;
	if (err || *gone)
		close_again(s);
	return err;
}

static int open_named(struct rwk_fi_av_shared *s, bool existing, uint32_t room)
{
	bool gone;
	int err;

	do {
		err = pass_gate(s, existing, &gone);
		if (err)
			return err;
	} while (gone);
	err = enter(s, existing, room);
	lock_byte(s->fd, GATE, F_UNLCK, false);
	if (err)
		close_again(s);
	return err;
}

int rwk_fi_av_shared_open(
	const char *name, bool existing, uint32_t room, struct rwk_fi_av_table *table, struct rwk_fi_av_shared **out)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_av_shared *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -FI_ENOMEM;
	s->process = rwk_this_process();
	s->fd = -1;
	rwk_list_init(&s->all);
	s->table = table;
	*table = (struct rwk_fi_av_table){.grow = grow, .memory = s, .keeps_numbers = true};
	err = make_name(s->name, sizeof(s->name), name);
	if (!err)
		err = open_named(s, existing, room);
	if (err) {
		if (err != -FI_ENOENT) /* a reader may be early */
			rwk_warn("fi_av_open: the shared address vector %s: %s", name, fi_strerror(-err));
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void rwk_fi_av_shared_close(struct rwk_fi_av_shared *s)
{
	RWK_CANCEL_HELD_OFF;

	if (s->process == rwk_this_process()) {
		lock_byte(s->fd, GATE, F_WRLCK, true);
		if (!lock_byte(s->fd, LIFE, F_WRLCK, false))
			shm_unlink(s->name);
		lock_byte(s->fd, LIFE, F_UNLCK, false);
		lock_byte(s->fd, GATE, F_UNLCK, false);
	}
	close_again(s);
	free(s);
}

int rwk_fi_av_shared_lock(struct rwk_fi_av_shared *s)
{
	struct rwk_fi_av_table *t = s->table;
	int before = rwk_cancel_hold_off();
	int err = lock_byte(s->fd, TABLE, F_WRLCK, true);

	if (!err && size_for(t->counts->room) != s->size)
		err = map(s, t->counts->room);
	if (err) {
		rwk_warn("shared address vector %s: %s", s->name, fi_strerror(-err));
		lock_byte(s->fd, TABLE, F_UNLCK, false);
		rwk_cancel_as_before(before);
		return -FI_ENOMEM;
	}
	s->cancel = before;
	if (t->counts->changing)
		rwk_fi_av_rebuild(t);
	return 0;
}

void rwk_fi_av_shared_unlock(struct rwk_fi_av_shared *s)
{
	int before = s->cancel;

	lock_byte(s->fd, TABLE, F_UNLCK, false);
	rwk_cancel_as_before(before);
}
