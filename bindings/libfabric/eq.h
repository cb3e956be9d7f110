/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event queue: a list of events that programs write and read. The provider itself has none to report (address
 * vectors answer at once, there are no connections), so this is for programs that open one as a matter of course. Its
 * own lock, because it belongs to the fabric, and its descriptor is readable while there is an event.
 */
#ifndef RWK_FI_EQ_H
#define RWK_FI_EQ_H

#include "base/list.h"
#include "bindings/libfabric/fabric.h"

#include <rdma/fi_eq.h>

struct rwk_fi_eq {
	struct fid_eq fid;
	struct rwk_fi_fabric *fabric;
	pthread_mutex_t lock;
	struct rwk_list events; /* struct event of eq.c, oldest first */
	int fd;                 /* eventfd, non-zero while events is not empty */
	enum fi_wait_obj wait_obj;
	bool can_write;   /* FI_WRITE was asked for */
	atomic_uint refs; /* endpoints and domains bound */
};

int rwk_fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);

/** For fi_trywait: 0, or -FI_EAGAIN if there is an event. */
int rwk_fi_eq_trywait(struct rwk_fi_eq *eq);

#endif
