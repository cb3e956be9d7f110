/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A seat in the domain. Who gets the door's name makes the domain; who does not knocks, until somebody lets him in, or
 * the name is free again because the last member has gone. A maker has the name first and listens last, so that all is
 * there when somebody knocks; should he die in between, the name is free as well.
 *
 * A second seat of the same domain in a process is a copy of the first: nobody but ourselves might let us in, and all
 * of a node who take their second seats at a time would wait for each other.
 */
#define _GNU_SOURCE /* F_ADD_SEALS, F_OFD_SETLK */
#include "shared_rc/join.h"

#include "shared_rc/door.h"

#include "base/forked.h"
#include "base/list.h"
#include "base/log.h"
#include "base/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OTHERS = 1,
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	REFUSALS = 8,         /* a member may die, or leave, while it lets us in; so many in a row do not */
	PATIENCE_FIRST = 100, /* ms with a member that has met us and then does nothing; doubles up to */
	PATIENCE_MAX = 3200,
};

struct rwk_src_seat {
	struct rwk_list link;
	struct rwk_src_secret secret;
	struct rwk_src_holding holding;
	struct rwk_src_porch porch;
	struct rwk_src_join_attr attr;
	struct rwk_src_knock knock;
	unsigned patience, refusals;
	bool in;
	int life;     /* by which its place in the memory is locked; -1: not yet */
	void *memory; /* mapped once for all seats of the process in that domain; NULL in a forked child: not at all */
	size_t bytes;
	dev_t device; /* the file that it is of: inodes of huge pages are counted apart */
	ino_t file;
};

/* All of this process, also those that are not complete yet; under the lock of forked.h, as are their descriptors. */
static struct rwk_list seats = {&seats, &seats};

/* Of this process's descriptors, that which shows that it lives. */
static void die(struct rwk_src_seat *seat)
{
	if (seat->life >= 0)
		close(seat->life);
	seat->life = -1;
}

/* In a forked child, for all seats. */
static void forget(void)
{
	for (struct rwk_list *l = seats.next; l != &seats; l = l->next) {
		struct rwk_src_seat *seat = rwk_container_of(l, struct rwk_src_seat, link);

		rwk_src_porch_forget(&seat->porch);
		rwk_src_door_leave(&seat->knock);
		rwk_src_holding_close(&seat->holding);
		die(seat);
		seat->memory = NULL;
	}
}

static struct rwk_forked forgotten = {.in_child = forget};

/* Where another seat of this process has that file mapped; NULL: none has. With the lock. */
static void *mapped(const struct rwk_src_seat *seat, dev_t device, ino_t file)
{
	for (struct rwk_list *l = seats.next; l != &seats; l = l->next) {
		const struct rwk_src_seat *other = rwk_container_of(l, struct rwk_src_seat, link);

		if (other != seat && other->memory && other->device == device && other->file == file)
			return other->memory;
	}
	return NULL;
}

/* Maps the memory, if it is what a domain of that size has, and cannot be taken away again. With the lock. */
static int map(struct rwk_src_seat *seat)
{
	size_t bytes = rwk_src_segment_size(&seat->holding.size);
	int fd = seat->holding.fd[RWK_SRC_MEMORY], seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *at;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EPROTO;
	if (!bytes || fstat(fd, &st) || st.st_size != (off_t)bytes)
		return -EPROTONOSUPPORT;
	at = mapped(seat, st.st_dev, st.st_ino);
	if (!at) {
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			return -errno;
		madvise(at, bytes, MADV_DONTFORK);
	}
	seat->memory = at;
	seat->bytes = bytes;
	seat->device = st.st_dev;
	seat->file = st.st_ino;
	return 0;
}

static int make_memory(struct rwk_src_seat *seat)
{
	size_t bytes = rwk_src_segment_size(&seat->holding.size);
	int fd, rc;

	if (!bytes)
		return -EINVAL;
	fd = rwk_shared_make("ropewalk src", bytes);
	if (fd < 0)
		return fd;
	seat->holding.fd[RWK_SRC_MEMORY] = fd;
	if (fcntl(fd, F_ADD_SEALS, SEALS))
		return -errno;
	rc = map(seat);
	return rc ? rc : rwk_src_segment_format(seat->memory, &seat->holding.size);
}

static int make_sockets(struct rwk_src_seat *seat, const struct rwk_src_join_attr *attr)
{
	int fd[2], rc = attr->socket(attr->user, fd);

	if (rc)
		return rc;
	seat->holding.fd[RWK_SRC_SOCKET] = fd[0];
	seat->holding.fd[RWK_SRC_LINE] = fd[1];
	return fcntl(fd[0], F_SETFD, FD_CLOEXEC) || fcntl(fd[1], F_SETFD, FD_CLOEXEC) ? -errno : 0;
}

static int make_watch(struct rwk_src_seat *seat)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	seat->holding.fd[RWK_SRC_WATCH] = fd;
	return fd < 0 ? -errno : 0;
}

/* Makes the domain, whose name we have. */
static int make(struct rwk_src_seat *seat, const struct rwk_src_join_attr *attr)
{
	struct rwk_src_holding *h = &seat->holding;
	int rc;

	h->size = attr->size;
	if (getrandom(&h->id, sizeof(h->id), 0) != sizeof(h->id))
		return -EIO;
	rc = make_memory(seat);
	if (!rc)
		rc = make_sockets(seat, attr);
	if (!rc)
		rc = make_watch(seat);
	return rc ? rc : rwk_src_door_listen(h->fd[RWK_SRC_DOOR]);
}

/*
 * Another seat of the same job in this process, which may be alone in a domain of its own, but not in the one that this
 * seat has left; NULL: none.
 */
static const struct rwk_src_seat *neighbour(const struct rwk_src_seat *seat)
{
	for (struct rwk_list *l = seats.next; l != &seats; l = l->next) {
		const struct rwk_src_seat *other = rwk_container_of(l, struct rwk_src_seat, link);
		bool left = other->device == seat->device && other->file == seat->file;

		if (other != seat && other->memory && !left && other->secret.uid == seat->secret.uid &&
			!memcmp(other->attr.key, seat->attr.key, sizeof(seat->attr.key)))
			return other;
	}
	return NULL;
}

static int copy(struct rwk_src_seat *seat, const struct rwk_src_seat *from)
{
	seat->holding.id = from->holding.id;
	seat->holding.size = from->holding.size;
	for (int i = 0; i < RWK_SRC_THINGS; i++) {
		seat->holding.fd[i] = fcntl(from->holding.fd[i], F_DUPFD_CLOEXEC, 0);
		if (seat->holding.fd[i] < 0)
			return -errno;
	}
	return map(seat);
}

/* What can be had without waiting: 0; negative errno; OTHERS: nothing, they must let us in. With the lock. */
static int copy_or_make(struct rwk_src_seat *seat, const struct rwk_src_join_attr *attr)
{
	const struct rwk_src_seat *from = neighbour(seat);
	int door;

	if (from)
		return copy(seat, from);
	door = rwk_src_door_bind(&seat->secret);
	if (door < 0)
		return door == -EADDRINUSE ? OTHERS : door;
	seat->holding.fd[RWK_SRC_DOOR] = door;
	return make(seat, attr);
}

/* Can another try end otherwise? It counts those who have sent us away on hearing our proof, one after the other. */
static bool worth_another(struct rwk_src_seat *seat, int rc)
{
	if (rc == -EKEYREJECTED)
		return ++seat->refusals < REFUSALS;
	if (rc == -EAGAIN)
		return true;
	seat->refusals = 0;
	if (rc == -ETIMEDOUT && seat->patience < PATIENCE_MAX)
		seat->patience *= 2;
	return rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -ETIMEDOUT;
}

static int be_let_in(struct rwk_src_seat *seat)
{
	int rc = rwk_src_door_knock(&seat->knock, &seat->secret, seat->patience, &seat->holding);

	if (rc)
		return worth_another(seat, rc) ? -EAGAIN : rc == -EKEYREJECTED ? -EACCES : rc;
	rwk_fork_lock();
	rc = map(seat);
	rwk_fork_unlock();
	/* What stands in it goes by what is mapped of it: no view of it must reach beyond. */
	return rc ? rc : rwk_src_segment_check(seat->memory, &seat->holding.size);
}

static int find_or_make(struct rwk_src_seat *seat)
{
	int rc = OTHERS;

	if (seat->knock.fd < 0) {
		rwk_fork_lock();
		rc = copy_or_make(seat, &seat->attr);
		rwk_fork_unlock();
	}
	return rc == OTHERS ? be_let_in(seat) : rc;
}

static void explain(int rc)
{
	if (rc == -EACCES)
		rwk_info("SRC: the name of this node's domain is taken by another user, or by a process that does not "
			 "know the job's key");
	else if (rc == -EPROTONOSUPPORT)
		rwk_info("SRC: this node's domain was made by another version of ropewalk");
	else
		rwk_info("SRC: this node's domain can be neither joined nor made: %s%s", strerror(-rc),
			rc == -EMFILE ? " (raise `ulimit -n`)" : "");
}

/* Closes all that there is of a seat. Which domain it was in is still known. */
static void vacate(struct rwk_src_seat *seat)
{
	void *memory = seat->memory;
	bool last;

	rwk_fork_lock();
	rwk_src_porch_close(&seat->porch);
	rwk_src_door_leave(&seat->knock);
	rwk_src_holding_close(&seat->holding);
	die(seat);
	last = memory && !mapped(seat, seat->device, seat->file);
	seat->memory = NULL;
	seat->in = false;
	rwk_fork_unlock();
	if (last)
		munmap(memory, seat->bytes);
}

static void dissolve(struct rwk_src_seat *seat)
{
	vacate(seat);
	rwk_fork_lock();
	rwk_list_remove(&seat->link);
	rwk_fork_unlock();
	free(seat);
}

int rwk_src_join_go_on(struct rwk_src_seat *seat)
{
	int rc = seat->in ? 0 : find_or_make(seat);

	if (!rc && !seat->in) {
		rwk_fork_lock();
		rc = rwk_src_porch_open(&seat->porch, &seat->secret, &seat->holding);
		rwk_fork_unlock();
		seat->in = !rc;
	}
	if (rc && rc != -EAGAIN)
		explain(rc);
	return rc;
}

int rwk_src_join(const struct rwk_src_join_attr *attr, struct rwk_src_seat **out)
{
	struct rwk_src_seat *seat = calloc(1, sizeof(*seat));
	int rc;

	if (!seat)
		return -ENOMEM;
	seat->attr = *attr;
	rwk_src_secret_draw(attr->key, geteuid(), &seat->secret);
	for (int i = 0; i < RWK_SRC_THINGS; i++)
		seat->holding.fd[i] = -1;
	seat->porch.epoll = -1;
	seat->knock.fd = -1;
	seat->life = -1;
	seat->patience = PATIENCE_FIRST;
	rwk_fork_lock();
	rwk_list_append(&seats, &seat->link);
	rwk_fork_unlock();
	rc = rwk_fork_watch(&forgotten);
	if (!rc)
		rc = rwk_src_join_go_on(seat);
	if (rc && rc != -EAGAIN) {
		dissolve(seat);
		return rc;
	}
	*out = seat;
	return 0;
}

int rwk_src_join_alone(struct rwk_src_seat *seat)
{
	uint8_t drawn[32];

	if (getrandom(drawn, sizeof(drawn), 0) != sizeof(drawn))
		return -EIO;
	vacate(seat);
	rwk_fork_lock();
	rwk_src_secret_draw(drawn, seat->secret.uid, &seat->secret);
	rwk_fork_unlock();
	return rwk_src_join_go_on(seat);
}

int rwk_src_why_not_taken(const struct rwk_src_seat *seat)
{
	return seat->knock.helped;
}

void rwk_src_attend(struct rwk_src_seat *seat)
{
	rwk_src_porch_attend(&seat->porch);
}

bool rwk_src_expects(const struct rwk_src_seat *seat)
{
	return rwk_src_porch_expects(&seat->porch);
}

void rwk_src_leave(struct rwk_src_seat *seat)
{
	dissolve(seat);
}

void *rwk_src_seat_memory(const struct rwk_src_seat *seat)
{
	return seat->memory;
}

/*
 * The memory's descriptor came from another process, with which this one shares its description: that is
 * no one's own.
 */
int rwk_src_seat_sit(struct rwk_src_seat *seat, uint32_t number)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
	char path[40];
	int rc = 0;

	rwk_fork_lock();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", seat->holding.fd[RWK_SRC_MEMORY]);
	seat->life = open(path, O_RDWR | O_CLOEXEC);
	if (seat->life < 0 || fcntl(seat->life, F_OFD_SETLK, &lock)) {
		rc = -errno;
		die(seat);
	}
	rwk_fork_unlock();
	return rc ? rc : seat->life;
}

int rwk_src_seat_socket(const struct rwk_src_seat *seat)
{
	return seat->holding.fd[RWK_SRC_SOCKET];
}

int rwk_src_seat_line(const struct rwk_src_seat *seat)
{
	return seat->holding.fd[RWK_SRC_LINE];
}

int rwk_src_seat_watch(const struct rwk_src_seat *seat)
{
	return seat->holding.fd[RWK_SRC_WATCH];
}

int rwk_src_seat_door(const struct rwk_src_seat *seat)
{
	return seat->porch.epoll;
}

uint64_t rwk_src_seat_id(const struct rwk_src_seat *seat)
{
	return seat->holding.id;
}
