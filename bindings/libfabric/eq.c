/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* syscall */

#include "bindings/libfabric/eq.h"

#include "base/cancel.h"
#include "base/log.h"
#include "bindings/libfabric/deadline.h"
#include "bindings/libfabric/device.h"
#include "bindings/libfabric/info.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MOMENT 1000000 /* ns, until who sleeps on a deaf queue looks at it again */

struct rwk_fi_event {
	struct rwk_list link;
	uint32_t number;
	int err;              /* 0: no error */
	struct fid *fid;      /* whose; NULL: the program's own event */
	void *context;        /* of an error */
	uint64_t value;       /* the same: what stands in its `data` */
	struct fi_info *info; /* FI_CONNREQ */
	bool seen;            /* by FI_PEEK */
	size_t len, least;    /* of data; of it what a program must have room for */
	unsigned char data[];
};

static struct rwk_fi_eq *eq_of(struct fid_eq *fid)
{
	return rwk_container_of(fid, struct rwk_fi_eq, fid);
}

static struct rwk_fi_event *event_of(struct rwk_list *l)
{
	return rwk_container_of(l, struct rwk_fi_event, link);
}

/* Under the lock from here on to the next such line. */

static struct rwk_fi_event *first(const struct rwk_fi_eq *eq)
{
	return rwk_list_empty(&eq->events) ? NULL : event_of(eq->events.next);
}

static void remove_event(struct rwk_fi_eq *eq, struct rwk_fi_event *ev)
{
	uint64_t one;

	rwk_list_remove(&ev->link);
	if (rwk_list_empty(&eq->events) && syscall(SYS_read, eq->bell, &one, sizeof(one)) < 0) /* base/cancel.h */
		rwk_debug("event queue: its descriptor was empty already");
}

static ssize_t take(struct rwk_fi_eq *eq, uint32_t *number, void *buf, size_t len, uint64_t flags)
{
	struct rwk_fi_event *ev = first(eq);

	if (!ev)
		return -FI_EAGAIN;
	if (ev->err)
		return -FI_EAVAIL;
	if (len < ev->least)
		return -FI_ETOOSMALL;
	if (len > ev->len)
		len = ev->len;
	*number = ev->number;
	memcpy(buf, ev->data, len);
	if (flags & FI_PEEK) {
		ev->seen = true;
		return (ssize_t)len;
	}
	remove_event(eq, ev);
	free(ev);
	return (ssize_t)len;
}

/* In the layout of the program's API: with 1.5 it may have a buffer of its own for the data. */
static void show_error(struct rwk_fi_eq *eq, struct rwk_fi_event *ev, struct fi_eq_err_entry *to)
{
	to->fid = ev->fid;
	to->context = ev->context;
	to->data = ev->value;
	to->err = ev->err;
	to->prov_errno = ev->err;
	if (FI_VERSION_LT(eq->fabric->fid.api_version, FI_VERSION(1, 5))) {
		to->err_data = ev->len ? ev->data : NULL;
		return;
	}
	if (!to->err_data_size) {
		to->err_data = ev->len ? ev->data : NULL;
		to->err_data_size = ev->len;
		return;
	}
	if (to->err_data_size > ev->len)
		to->err_data_size = ev->len;
	memcpy(to->err_data, ev->data, to->err_data_size);
}

static int watch(struct rwk_fi_eq *eq, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(eq->fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_alarm(struct rwk_fi_eq *eq)
{
	RWK_CANCEL_HELD_OFF;
	int err;

	if (eq->alarm >= 0)
		return 0;
	eq->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (eq->alarm < 0)
		return -errno;
	err = watch(eq, eq->alarm);
	if (err) {
		close(eq->alarm);
		eq->alarm = -1;
	}
	return err;
}

/* Only who is deaf has one that rings. */
static void set_alarm(struct rwk_fi_eq *eq)
{
	const struct itimerspec when = {.it_value.tv_nsec = eq->ear ? 0 : MOMENT};

	if (eq->alarm >= 0)
		timerfd_settime(eq->alarm, 0, &when, NULL);
}

/* One of those for who sleeps as this queue's program may, with which it hears; NULL: none is left. */
static atomic_int *take_ear(struct rwk_fi_eq *eq)
{
	struct rwk_fi_ears *ears = &atomic_load_explicit(&eq->fabric->device, memory_order_acquire)->of_eq;
	atomic_int *ear = eq->set ? &ears->in_set : eq->given ? &ears->given : &ears->called;

	return rwk_fi_ear_take(ear) ? ear : NULL;
}

/* Begins to hear what is watched, or goes on with another ear; without one it is deaf. 0 or negative errno. */
static int hear(struct rwk_fi_eq *eq)
{
	atomic_int *ear = take_ear(eq);
	int err = ear && !eq->ear ? watch(eq, eq->watched) : 0;

	if (ear && err) {
		rwk_fi_ear_return(ear);
		ear = NULL;
		err = err == -EINVAL || err == -ELOOP ? 0 : err; /* the program has made deeper sets */
	}
	if (!ear && !err)
		err = open_alarm(eq);
	if (err)
		return err;
	if (eq->ear && !ear)
		epoll_ctl(eq->fd, EPOLL_CTL_DEL, eq->watched, NULL);
	if (eq->ear)
		rwk_fi_ear_return(eq->ear);
	eq->ear = ear;
	set_alarm(eq);
	return 0;
}

/* No longer. */

/* What connections have to do is done first, if there is nothing yet. */
static void look(struct rwk_fi_eq *eq)
{
	bool empty;

	pthread_mutex_lock(&eq->lock);
	empty = !first(eq);
	if (empty)
		set_alarm(eq);
	pthread_mutex_unlock(&eq->lock);
	if (empty)
		rwk_fi_device_look(eq->fabric);
}

/* The oldest event, left in place with FI_PEEK. Its payload must fit; of a connection's data there comes what does. */
static ssize_t eq_read(struct fid_eq *fid, uint32_t *number, void *buf, size_t len, uint64_t flags)
{
	struct rwk_fi_eq *eq = eq_of(fid);
	ssize_t ret;

	if (flags & ~(uint64_t)FI_PEEK)
		return -FI_EBADFLAGS;
	look(eq);
	pthread_mutex_lock(&eq->lock);
	ret = take(eq, number, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct rwk_fi_eq *eq = eq_of(fid);
	struct rwk_fi_event *ev;
	ssize_t ret = -FI_EAGAIN;

	(void)flags;
	look(eq);
	pthread_mutex_lock(&eq->lock);
	ev = first(eq);
	if (ev && ev->err) {
		remove_event(eq, ev);
		free(eq->told);
		eq->told = ev;
		show_error(eq, ev, buf);
		ret = sizeof(*buf);
	}
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

/* The last of the queue, whose it is from now on. */
static void append(struct rwk_fi_eq *eq, struct rwk_fi_event *ev)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&eq->lock);
	if (rwk_list_empty(&eq->events) && syscall(SYS_write, eq->bell, &one, sizeof(one)) < 0)
		rwk_debug("event queue: its descriptor was full already");
	rwk_list_append(&eq->events, &ev->link);
	pthread_mutex_unlock(&eq->lock);
}

static struct rwk_fi_event *new_event(size_t len)
{
	struct rwk_fi_event *ev = calloc(1, sizeof(*ev) + len);

	if (ev)
		ev->len = len;
	return ev;
}

struct rwk_fi_event *rwk_fi_eq_new_event(size_t room)
{
	return new_event(sizeof(struct fi_eq_cm_entry) + room);
}

void rwk_fi_eq_put(struct rwk_fi_eq *eq, struct rwk_fi_event *ev, uint32_t number, struct fid *fid,
	struct fi_info *info, const void *data, size_t len)
{
	const struct fi_eq_cm_entry entry = {.fid = fid, .info = info};

	ev->number = number;
	ev->fid = fid;
	ev->info = info;
	ev->len = sizeof(entry) + len;
	ev->least = sizeof(entry);
	memcpy(ev->data, &entry, sizeof(entry));
	if (len)
		memcpy(ev->data + sizeof(entry), data, len);
	append(eq, ev);
}

void rwk_fi_eq_put_error(
	struct rwk_fi_eq *eq, struct rwk_fi_event *ev, struct fid *fid, int err, const void *data, size_t len)
{
	ev->err = err;
	ev->fid = fid;
	ev->context = fid->context;
	ev->len = len;
	if (len)
		memcpy(ev->data, data, len);
	append(eq, ev);
}

int rwk_fi_eq_put_insert(struct rwk_fi_eq *eq, struct fid *fid, void *context, uint64_t value, int err)
{
	const struct fi_eq_entry entry = {.fid = fid, .context = context, .data = value};
	struct rwk_fi_event *ev = new_event(err ? 0 : sizeof(entry));

	if (!ev)
		return -FI_ENOMEM;
	ev->number = FI_AV_COMPLETE;
	ev->err = err;
	ev->fid = fid;
	ev->context = context;
	ev->value = value;
	ev->least = ev->len;
	if (!err)
		memcpy(ev->data, &entry, sizeof(entry));
	append(eq, ev);
	return 0;
}

void rwk_fi_eq_forget(struct rwk_fi_eq *eq, const struct fid *fid)
{
	struct rwk_list *next;

	pthread_mutex_lock(&eq->lock);
	for (struct rwk_list *l = eq->events.next; l != &eq->events; l = next) {
		struct rwk_fi_event *ev = event_of(l);

		next = l->next;
		if (ev->fid != fid)
			continue;
		remove_event(eq, ev);
		rwk_fi_info_free(ev->info);
		free(ev);
	}
	pthread_mutex_unlock(&eq->lock);
}

struct fi_info *rwk_fi_eq_withdraw(struct rwk_fi_eq *eq, const struct fid *handle, bool seen)
{
	struct fi_info *info = NULL;

	pthread_mutex_lock(&eq->lock);
	for (struct rwk_list *l = eq->events.next; l != &eq->events; l = l->next) {
		struct rwk_fi_event *ev = event_of(l);

		if ((ev->seen && !seen) || !ev->info || ev->info->handle != handle)
			continue;
		info = ev->info;
		remove_event(eq, ev);
		free(ev);
		break;
	}
	pthread_mutex_unlock(&eq->lock);
	return info;
}

int rwk_fi_eq_watch(struct rwk_fi_eq *eq, int fd)
{
	int err = 0;

	pthread_mutex_lock(&eq->lock);
	if (eq->watched < 0 && eq->wait_obj != FI_WAIT_NONE) {
		eq->watched = fd;
		err = hear(eq);
		if (err)
			eq->watched = -1;
	}
	pthread_mutex_unlock(&eq->lock);
	return err;
}

/* 0 and *fd set, or negative errno. */
static int give(struct rwk_fi_eq *eq, int *fd)
{
	bool before;
	int err = 0;

	pthread_mutex_lock(&eq->lock);
	before = eq->given;
	eq->given = true;
	if (!before && eq->watched >= 0)
		err = hear(eq);
	if (err)
		eq->given = before;
	else
		*fd = eq->fd;
	pthread_mutex_unlock(&eq->lock);
	return err;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t number, const void *buf, size_t len, uint64_t flags)
{
	struct rwk_fi_eq *eq = eq_of(fid);
	struct rwk_fi_event *ev;

	if (flags)
		return -FI_EBADFLAGS;
	if (!eq->can_write) {
		rwk_warn("fi_eq_write: the event queue was opened without FI_WRITE");
		return -FI_EINVAL;
	}
	ev = new_event(len);
	if (!ev)
		return -FI_ENOMEM;
	ev->number = number;
	ev->least = len;
	memcpy(ev->data, buf, len);
	append(eq, ev);
	return (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *number, void *buf, size_t len, int timeout, uint64_t flags)
{
	struct pollfd p = {.fd = eq_of(fid)->fd, .events = POLLIN};
	struct rwk_fi_deadline end = rwk_fi_deadline(timeout);
	ssize_t ret;

	if (eq_of(fid)->wait_obj == FI_WAIT_NONE) {
		rwk_warn("fi_eq_sread: the event queue was opened with FI_WAIT_NONE; others can be waited for");
		return -FI_EINVAL;
	}
	for (;;) {
		ret = eq_read(fid, number, buf, len, flags);
		if (ret != -FI_EAGAIN || rwk_fi_deadline_past(&end))
			return ret;
		if (poll(&p, 1, rwk_fi_deadline_left(&end)) < 0) /* a signal's handler may have something to say, too */
			return errno == EINTR ? eq_read(fid, number, buf, len, flags) : -errno;
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid, (void)err_data;
	return rwk_fi_strerror(prov_errno, buf, len);
}

int rwk_fi_eq_trywait(struct rwk_fi_eq *eq)
{
	int err;

	look(eq);
	pthread_mutex_lock(&eq->lock);
	err = first(eq) ? -FI_EAGAIN : 0;
	pthread_mutex_unlock(&eq->lock);
	return err;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_eq *eq = rwk_container_of(fid, struct rwk_fi_eq, fid.fid);

	if (command == FI_GETWAIT && eq->set)
		return rwk_fi_wait_set_control(eq->set, command, arg);
	if (command == FI_GETWAIT && eq->wait_obj == FI_WAIT_FD)
		return give(eq, arg);
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	}
	return -FI_ENOSYS;
}

/* 0, or negative errno; those that there are must be closed in any case. */
static int open_descriptors(struct rwk_fi_eq *eq)
{
	eq->watched = eq->alarm = -1;
	eq->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	eq->fd = epoll_create1(EPOLL_CLOEXEC);
	return eq->bell < 0 || eq->fd < 0 ? -errno : watch(eq, eq->bell);
}

static void close_descriptors(struct rwk_fi_eq *eq)
{
	RWK_CANCEL_HELD_OFF;

	if (eq->bell >= 0)
		close(eq->bell);
	if (eq->alarm >= 0)
		close(eq->alarm);
	if (eq->fd >= 0)
		close(eq->fd);
}

static int eq_close(struct fid *fid)
{
	struct rwk_fi_eq *eq = rwk_container_of(fid, struct rwk_fi_eq, fid.fid);
	struct rwk_list *l;

	if (rwk_fi_is_inherited(eq->fabric->process))
		return 0;
	if (rwk_fi_busy(&eq->refs))
		return -FI_EBUSY;
	if (eq->set) {
		rwk_fi_wait_set_leave(eq->set, fid, eq->fd);
		rwk_fi_wait_set_drop(eq->set);
	}
	while ((l = rwk_list_pop(&eq->events)))
		free(event_of(l));
	free(eq->told);
	if (eq->ear)
		rwk_fi_ear_return(eq->ear);
	close_descriptors(eq);
	pthread_mutex_destroy(&eq->lock);
	rwk_fi_drop(&eq->fabric->refs);
	free(eq);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = eq_close,
	.bind = rwk_fi_no_bind,
	.control = eq_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_eq eq_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_eq, strerror),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int rwk_fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid, void *context)
{
	enum fi_wait_obj wait = attr ? attr->wait_obj : FI_WAIT_NONE;
	struct rwk_fi_eq *eq;
	int err;

	if (wait > FI_WAIT_YIELD || wait == FI_WAIT_MUTEX_COND) {
		rwk_warn("fi_eq_open: wait object %d; there is FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_SET, FI_WAIT_FD "
			 "and FI_WAIT_YIELD",
			wait);
		return -FI_ENOSYS;
	}
	if (attr && attr->flags & FI_PEER) {
		rwk_warn("fi_eq_open: events of connections go into no other provider's queue");
		return -FI_EINVAL;
	}
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	err = open_descriptors(eq);
	if (err)
		goto close_eq;
	if (wait == FI_WAIT_SET) {
		eq->set = rwk_fi_wait_set_hold(attr->wait_set, fabric, "fi_eq_open");
		err = -FI_EINVAL;
		if (!eq->set)
			goto close_eq;
	}
	pthread_mutex_init(&eq->lock, NULL);
	rwk_list_init(&eq->events);
	eq->wait_obj = wait == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait;
	eq->can_write = attr && (attr->flags & FI_WRITE);
	eq->fabric = rwk_fi_fabric_of(fabric);
	rwk_fi_hold(&eq->fabric->refs);
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = (struct fi_ops *)&fid_ops;
	eq->fid.ops = (struct fi_ops_eq *)&eq_ops;
	err = rwk_fi_wait_set_enter(eq->set, &eq->fid.fid, eq->fd);
	if (err) {
		eq_close(&eq->fid.fid);
		return err;
	}
	*fid = &eq->fid;
	return 0;

close_eq:
	close_descriptors(eq);
	free(eq);
	return err;
}
