/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/eq.h"

#include "base/log.h"
#include "bindings/libfabric/deadline.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct event {
	struct rwk_list link;
	uint32_t number;
	size_t len;
	unsigned char data[];
};

static struct rwk_fi_eq *eq_of(struct fid_eq *fid)
{
	return rwk_container_of(fid, struct rwk_fi_eq, fid);
}

/* The oldest event, left in place with FI_PEEK. Its payload must fit. */
static ssize_t eq_read(struct fid_eq *fid, uint32_t *number, void *buf, size_t len, uint64_t flags)
{
	struct rwk_fi_eq *eq = eq_of(fid);
	struct event *ev = NULL;
	ssize_t ret = -FI_EAGAIN;
	uint64_t one;

	if (flags & ~(uint64_t)FI_PEEK)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&eq->lock);
	if (!rwk_list_empty(&eq->events)) {
		ev = rwk_container_of(eq->events.next, struct event, link);
		ret = ev->len > len ? -FI_ETOOSMALL : (ssize_t)ev->len;
	}
	if (ret < 0)
		goto unlock;
	*number = ev->number;
	memcpy(buf, ev->data, ev->len);
	if (flags & FI_PEEK)
		goto unlock;
	rwk_list_remove(&ev->link);
	free(ev);
	if (rwk_list_empty(&eq->events) && read(eq->fd, &one, sizeof(one)) < 0)
		rwk_debug("event queue: its descriptor was empty already");
unlock:
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

/* No operation of ours fails by event. */
static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	(void)fid, (void)buf, (void)flags;
	return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t number, const void *buf, size_t len, uint64_t flags)
{
	struct rwk_fi_eq *eq = eq_of(fid);
	const uint64_t one = 1;
	struct event *ev;
	ssize_t ret = (ssize_t)len;

	if (flags)
		return -FI_EBADFLAGS;
	if (!eq->can_write) {
		rwk_warn("fi_eq_write: the event queue was opened without FI_WRITE");
		return -FI_EINVAL;
	}
	ev = malloc(sizeof(*ev) + len);
	if (!ev)
		return -FI_ENOMEM;
	ev->number = number;
	ev->len = len;
	memcpy(ev->data, buf, len);
	pthread_mutex_lock(&eq->lock);
	if (rwk_list_empty(&eq->events) && write(eq->fd, &one, sizeof(one)) < 0)
		ret = -errno;
	if (ret >= 0)
		rwk_list_append(&eq->events, &ev->link);
	else
		free(ev);
	pthread_mutex_unlock(&eq->lock);
	return ret;
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
		if (poll(&p, 1, rwk_fi_deadline_left(&end)) < 0 && errno != EINTR)
			return -errno;
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid, (void)err_data;
	if (buf && len) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = 0;
	}
	return text;
}

int rwk_fi_eq_trywait(struct rwk_fi_eq *eq)
{
	int err;

	pthread_mutex_lock(&eq->lock);
	err = rwk_list_empty(&eq->events) ? 0 : -FI_EAGAIN;
	pthread_mutex_unlock(&eq->lock);
	return err;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_eq *eq = rwk_container_of(fid, struct rwk_fi_eq, fid.fid);

	if (command == FI_GETWAIT && eq->wait_obj == FI_WAIT_FD) {
		*(int *)arg = eq->fd;
		return 0;
	}
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	}
	return -FI_ENOSYS;
}

static int eq_close(struct fid *fid)
{
	struct rwk_fi_eq *eq = rwk_container_of(fid, struct rwk_fi_eq, fid.fid);
	struct rwk_list *l;

	if (rwk_fi_busy(&eq->refs))
		return -FI_EBUSY;
	while ((l = rwk_list_pop(&eq->events)))
		free(rwk_container_of(l, struct event, link));
	close(eq->fd);
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

	if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD && wait != FI_WAIT_YIELD) {
		rwk_warn("fi_eq_open: wait object %d; there is FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD and "
			 "FI_WAIT_YIELD",
			wait);
		return -FI_ENOSYS;
	}
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eq->fd < 0) {
		err = -errno;
		free(eq);
		return err;
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
	*fid = &eq->fid;
	return 0;
}
