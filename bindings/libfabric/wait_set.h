/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wait set: one wait object for several completion queues, counters and event queues of a fabric, which are opened
 * with FI_WAIT_SET and leave it when they are closed. Its epoll descriptor holds theirs, which they have as with
 * FI_WAIT_FD; with FI_WAIT_YIELD there are none.
 *
 * With FI_WAIT_MUTEX_COND a program sleeps on a condition variable, which follows the descriptor (waker.h): it holds
 * the mutex from before fi_trywait, that has found nothing, until it sleeps.
 */
#ifndef RWK_FI_WAIT_SET_H
#define RWK_FI_WAIT_SET_H

#include <rdma/fi_domain.h>

struct rwk_fi_domain;
struct rwk_fi_wait;
struct rwk_fi_wait_set;

/** fi_wait_open: 0; -FI_ENOSYS: no such wait object; -FI_EBADFLAGS; -FI_ENOMEM; the errno of what it opens. */
int rwk_fi_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set);

/**
 * What the attributes of an object to be opened say: opens *w as rwk_fi_wait_open, and with FI_WAIT_SET as the set
 * needs it, with the domain's ears. -FI_EINVAL: the set is none of its fabric's.
 */
int rwk_fi_wait_open_in(struct rwk_fi_wait *w, enum fi_wait_obj wanted, struct fid_wait *set,
	struct rwk_fi_domain *domain, const char *what);

/** The set, held; NULL if that is none of the fabric's sets, logged with `what`. */
struct rwk_fi_wait_set *rwk_fi_wait_set_hold(
	struct fid_wait *set, const struct fid_fabric *fabric, const char *what);
void rwk_fi_wait_set_drop(struct rwk_fi_wait_set *set);

/** An open object enters: 0, -FI_ENOMEM, the errno of epoll. `fd`: its descriptor. `set` NULL: nothing is done. */
int rwk_fi_wait_set_enter(struct rwk_fi_wait_set *set, struct fid *fid, int fd);
/** It leaves, before it is closed; nothing is done if it is not in it. Without its lock. */
void rwk_fi_wait_set_leave(struct rwk_fi_wait_set *set, struct fid *fid, int fd);

/** FI_GETWAIT, of the set or of a member. */
int rwk_fi_wait_set_control(struct rwk_fi_wait_set *set, int command, void *arg);

/** For fi_trywait: 0, or -FI_EAGAIN if a member has something. */
int rwk_fi_wait_set_trywait(struct fid_wait *set);

#endif
