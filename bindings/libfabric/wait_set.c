/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/wait_set.h"

#include "base/cancel.h"
#include "base/log.h"
#include "bindings/libfabric/device.h"
#include "bindings/libfabric/domain.h"
#include "bindings/libfabric/fabric.h"
#include "bindings/libfabric/wait.h"
#include "bindings/libfabric/waker.h"
#include "bindings/libfabric/watched.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LOOKS_BEFORE_SLEEP 100

struct rwk_fi_wait_set {
	struct fid_wait fid;
	struct rwk_fi_fabric *fabric;
	enum fi_wait_obj object;         /* FI_WAIT_FD, FI_WAIT_MUTEX_COND or FI_WAIT_YIELD */
	int epoll_fd;                    /* -1 with FI_WAIT_YIELD */
	atomic_uint refs;                /* objects opened in it */
	pthread_mutex_t lock;            /* of the members; taken before any of theirs */
	struct rwk_fi_watched_list list;
	struct rwk_fi_waker waker;       /* with FI_WAIT_MUTEX_COND */
};

static struct rwk_fi_wait_set *set_of(struct fid_wait *fid)
{
	return rwk_container_of(fid, struct rwk_fi_wait_set, fid);
}

struct rwk_fi_wait_set *rwk_fi_wait_set_hold(struct fid_wait *fid, const struct fid_fabric *fabric, const char *what)
{
	if (!fid || fid->fid.fclass != FI_CLASS_WAIT || &set_of(fid)->fabric->fid != fabric) {
		rwk_warn("%s: FI_WAIT_SET, and wait_set is no wait set of this fabric", what);
		return NULL;
	}
	rwk_fi_hold(&set_of(fid)->refs);
	return set_of(fid);
}

void rwk_fi_wait_set_drop(struct rwk_fi_wait_set *set)
{
	rwk_fi_drop(&set->refs);
}

int rwk_fi_wait_open_in(struct rwk_fi_wait *w, enum fi_wait_obj wanted, struct fid_wait *fid,
	struct rwk_fi_domain *domain, const char *what)
{
	struct rwk_fi_ears *ears = domain->device ? &domain->device->ears : &domain->ears;
	struct rwk_fi_wait_set *set;
	int err;

	if (wanted != FI_WAIT_SET) {
		err = rwk_fi_wait_open(w, wanted, what);
		if (!err)
			rwk_fi_wait_share_ears(w, ears);
		return err;
	}
	set = rwk_fi_wait_set_hold(fid, &domain->fabric->fid, what);
	if (!set)
		return -FI_EINVAL;
	err = rwk_fi_wait_open(w, set->object == FI_WAIT_YIELD ? FI_WAIT_YIELD : FI_WAIT_FD, what);
	if (err) {
		rwk_fi_wait_set_drop(set);
		return err;
	}
	w->set = set;
	rwk_fi_wait_share_ears(w, ears);
	err = rwk_fi_wait_give(w);
	if (err)
		rwk_fi_wait_close(w);
	return err;
}

int rwk_fi_wait_set_enter(struct rwk_fi_wait_set *set, struct fid *fid, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
	int err;

	if (!set)
		return 0;
	pthread_mutex_lock(&set->lock);
	err = rwk_fi_watched_add(&set->list, fid);
	if (!err && set->epoll_fd >= 0 && epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		err = -errno;
		rwk_fi_watched_remove(&set->list, fid);
	}
	pthread_mutex_unlock(&set->lock);
	return err;
}

void rwk_fi_wait_set_leave(struct rwk_fi_wait_set *set, struct fid *fid, int fd)
{
	if (!set)
		return;
	pthread_mutex_lock(&set->lock);
	if (rwk_fi_watched_remove(&set->list, fid) && set->epoll_fd >= 0)
		epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	pthread_mutex_unlock(&set->lock);
}

/* Has a member something? Each is driven. */
static bool look(struct rwk_fi_wait_set *set)
{
	bool found = false;

	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; i < set->list.count; i++)
		found |= rwk_fi_watched_look(&set->list.all[i], true);
	pthread_mutex_unlock(&set->lock);
	return found;
}

static int trywait(struct rwk_fi_wait_set *set)
{
	int err = 0;

	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; i < set->list.count && !err; i++)
		err = rwk_fi_watched_trywait(&set->list.all[i]);
	pthread_mutex_unlock(&set->lock);
	return err;
}

int rwk_fi_wait_set_trywait(struct fid_wait *fid)
{
	struct rwk_fi_wait_set *set = set_of(fid);
	int err = trywait(set);

	if (!err && set->object == FI_WAIT_MUTEX_COND)
		rwk_fi_waker_watch(&set->waker);
	return err;
}

/* 0: a member has something, or might, as after fi_cq_signal; -FI_ETIMEDOUT; -FI_EINTR. */
static int wait_all(struct fid_wait *fid, int timeout)
{
	struct rwk_fi_wait_set *set = set_of(fid);
	struct pollfd p = {.fd = set->epoll_fd, .events = POLLIN};
	struct rwk_fi_deadline end = rwk_fi_deadline(timeout);
	int err;

	for (unsigned looks = 0;; looks++) {
		if (look(set))
			return 0;
		if (looks < LOOKS_BEFORE_SLEEP && timeout && set->object != FI_WAIT_YIELD)
			continue;
		if (rwk_fi_deadline_past(&end))
			return -FI_ETIMEDOUT;
		if (set->object == FI_WAIT_YIELD) {
			sched_yield();
			continue;
		}
		err = trywait(set);
		if (err)
			return err == -FI_EAGAIN ? 0 : err;
		if (poll(&p, 1, rwk_fi_deadline_left(&end)) < 0)
			return look(set) ? 0 : -FI_EINTR;
	}
}

int rwk_fi_wait_set_control(struct rwk_fi_wait_set *set, int command, void *arg)
{
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = set->object;
		return 0;
	}
	if (command != FI_GETWAIT)
		return -FI_ENOSYS;
	if (set->object == FI_WAIT_YIELD)
		return -FI_ENODATA;
	if (set->object == FI_WAIT_FD)
		*(int *)arg = set->epoll_fd;
	else
		*(struct fi_mutex_cond *)arg = (struct fi_mutex_cond){&set->waker.mutex, &set->waker.cond};
	return 0;
}

static int set_control(struct fid *fid, int command, void *arg)
{
	return rwk_fi_wait_set_control(rwk_container_of(fid, struct rwk_fi_wait_set, fid.fid), command, arg);
}

static void close_parts(struct rwk_fi_wait_set *set)
{
	if (set->epoll_fd >= 0)
		close(set->epoll_fd);
	pthread_mutex_destroy(&set->lock);
	free(set->list.all);
	free(set);
}

static int set_close(struct fid *fid)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_wait_set *set = rwk_container_of(fid, struct rwk_fi_wait_set, fid.fid);

	if (rwk_fi_is_inherited(set->fabric->process))
		return 0;
	if (rwk_fi_busy(&set->refs))
		return -FI_EBUSY;
	if (set->object == FI_WAIT_MUTEX_COND)
		rwk_fi_waker_stop(&set->waker);
	rwk_fi_drop(&set->fabric->refs);
	close_parts(set);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = set_close,
	.bind = rwk_fi_no_bind,
	.control = set_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_wait wait_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_wait, wait),
	.wait = wait_all,
};

static int open_object(struct rwk_fi_wait_set *set, enum fi_wait_obj wanted)
{
	set->object = wanted == FI_WAIT_UNSPEC ? FI_WAIT_FD : wanted;
	set->epoll_fd = -1;
	if (wanted == FI_WAIT_YIELD)
		return 0;
	set->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (set->epoll_fd < 0)
		return -errno;
	return wanted == FI_WAIT_MUTEX_COND ? rwk_fi_waker_start(&set->waker, set->epoll_fd) : 0;
}

int rwk_fi_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **fid)
{
	enum fi_wait_obj wanted = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct rwk_fi_wait_set *set;
	int err;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	if (wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD && wanted != FI_WAIT_MUTEX_COND &&
		wanted != FI_WAIT_YIELD) {
		rwk_warn("fi_wait_open: wait object %d; there is FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND and "
			 "FI_WAIT_YIELD",
			wanted);
		return -FI_ENOSYS;
	}
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	pthread_mutex_init(&set->lock, NULL);
	err = open_object(set, wanted);
	if (err) {
		close_parts(set);
		return err;
	}
	set->fabric = rwk_fi_fabric_of(fabric);
	rwk_fi_hold(&set->fabric->refs);
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = (struct fi_ops *)&fid_ops;
	set->fid.ops = (struct fi_ops_wait *)&wait_ops;
	*fid = &set->fid;
	return 0;
}
