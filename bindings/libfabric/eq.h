/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event queue: a list of events that programs write, and that connections and address vectors report.
 * Its own lock, because it belongs to the fabric; where both are held, the device's is taken first. Its descriptor is
 * readable while there is an event, and while connections have something to do that may bring one: who reads the queue
 * does it. Of that it hears if there is an ear left (wait.h). If it is deaf, the descriptor is readable a moment after
 * the queue was last looked at, too.
 */
#ifndef RWK_FI_EQ_H
#define RWK_FI_EQ_H

#include "base/list.h"
#include "bindings/libfabric/fabric.h"
#include "bindings/libfabric/wait_set.h"

#include <rdma/fi_eq.h>

struct rwk_fi_eq {
	struct fid_eq fid;
	struct rwk_fi_fabric *fabric;
	pthread_mutex_t lock;
	struct rwk_list events;    /* struct rwk_fi_event of eq.c, oldest first */
	struct rwk_fi_event *told; /* the error whose data the program has last been shown; NULL: none */
	int bell;                  /* eventfd, non-zero while events is not empty */
	int fd;                    /* epoll: the bell, and what is watched or, if it is deaf, the alarm */
	int watched;               /* of the device's connections; -1: nothing yet */
	int alarm;                 /* timerfd; -1: none has been needed */
	atomic_int *ear;           /* that it has of the device's; NULL: none, and with something watched it is deaf */
	bool given;                /* the program has the descriptor, and may put it into a set of its own */
	enum fi_wait_obj wait_obj;
	struct rwk_fi_wait_set *set; /* in which it was opened, and which it holds; NULL: in none */
	bool can_write;   /* FI_WRITE was asked for */
	atomic_uint refs; /* endpoints, passive ones and domains bound */
};

int rwk_fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);

/** For fi_trywait: 0, or -FI_EAGAIN if there is an event. */
int rwk_fi_eq_trywait(struct rwk_fi_eq *eq);

/**
 * An event of a connection, to be put, which cannot fail then, or freed by free(). The peer's program may have added as
 * much as there is room for. NULL: no memory.
 */
struct rwk_fi_event *rwk_fi_eq_new_event(size_t room);

/**
 * Something has happened to a connection: FI_CONNREQ with the info, FI_CONNECTED or FI_SHUTDOWN. `data`: what the
 * peer's program has added, copied. The event is the queue's from now on, the info until the program has it.
 */
void rwk_fi_eq_put(struct rwk_fi_eq *eq, struct rwk_fi_event *ev, uint32_t number, struct fid *fid,
	struct fi_info *info, const void *data, size_t len);

/** The same for an error: `err` is a positive FI_E*. */
void rwk_fi_eq_put_error(
	struct rwk_fi_eq *eq, struct rwk_fi_event *ev, struct fid *fid, int err, const void *data, size_t len);

/**
 * Of an insertion into an address vector: one address has failed, `value` its index, `err` a positive FI_E*; or, `err`
 * 0, all is done, `value` how many are in. 0 or -FI_ENOMEM.
 */
int rwk_fi_eq_put_insert(struct rwk_fi_eq *eq, struct fid *fid, void *context, uint64_t value, int err);

/** The object is gone: nobody reads of it any more. */
void rwk_fi_eq_forget(struct rwk_fi_eq *eq, const struct fid *fid);

/**
 * The FI_CONNREQ of that handle is taken back: its info, the caller's again. NULL: it is not there any more, or the
 * program has seen it, by FI_PEEK, and not `seen`.
 */
struct fi_info *rwk_fi_eq_withdraw(struct rwk_fi_eq *eq, const struct fid *handle, bool seen);

/**
 * From now on the queue's descriptor is readable whenever that one is, of its fabric's device, or deaf: 0 (also once
 * more), or negative errno.
 */
int rwk_fi_eq_watch(struct rwk_fi_eq *eq, int fd);

#endif
