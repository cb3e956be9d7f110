/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What connected endpoints (FI_EP_MSG) stand on: a channel adapter, and its event channel, for a whole fabric. It is
 * the fabric's, not a domain's, because who listens belongs to the fabric alone, and a connection stays with the
 * adapter at which it has come. It is opened with the first domain of connected endpoints, or the first passive one:
 * programs that have none get no socket of it.
 *
 *   fabric - device - adapter - cq        one for all endpoints, which grows with what they may post: what has
 *                   |                     completed goes on to the queues and counters of the endpoint that it belongs
 *                   |                     to (msg_complete.c)
 *                   `-------- - channel   what has happened to connections goes on to event queues (msg_event.c)
 *
 * Its lock is that of all its domains, whatever their threading: event queues, which are the fabric's, drive it too.
 *
 * Who sleeps (wait.h) has the cq armed, or the cq's descriptor is readable, or he has been rung. So who cannot arm it,
 * because there is something to do, rings the others: they look for themselves and arm it again.
 */
#ifndef RWK_FI_DEVICE_H
#define RWK_FI_DEVICE_H

#include "bindings/libfabric/fabric.h"
#include "bindings/libfabric/group.h"
#include "base/list.h"
#include "include/ropewalk.h"

#include <stdbool.h>

struct rwk_fi_progress;

struct rwk_fi_device {
	struct rwk_fi_group group; /* whose lock is of all that follows; its engines are the device itself, while some
				      domain has automatic progress */
	struct rwk_adapter *adapter; /* NULL, as the next ones, until there is an endpoint or what else needs it */
	struct rwk_cq *cq;
	size_t reserved; /* entries of the cq */
	int fd[3]; /* who sleeps hears these: the cq's two, the channel's */
	struct rwk_event_channel *channel;
	struct rwk_list waits;    /* rwk_fi_wait.of_device */
	struct rwk_fi_ears ears;  /* theirs; each is in two of a stream's sets */
	struct rwk_fi_ears of_eq; /* of event queues; each is in one */
	struct rwk_list passives; /* struct rwk_fi_msg_passive, those that listen */
	struct rwk_list requests; /* struct rwk_fi_msg_request, not answered */
	unsigned turns;           /* of progress */
	uint64_t process;         /* that has opened it */
	/* Automatic progress; coming and going is under the fabric's `opening`. */
	struct rwk_fi_progress *progress;
	unsigned automatic; /* such domains */
};

/** The fabric's, made if need be: 0 and *device set; -FI_ENOMEM. It stays until the fabric is closed. */
int rwk_fi_device_get(struct rwk_fi_fabric *fabric, struct rwk_fi_device **device);
/** Opens its adapter, its sockets and descriptors with it, if they are not: 0 or negative errno. Under the lock. */
int rwk_fi_device_use(struct rwk_fi_device *device);
/**
 * So many operations more may be posted from now on, each of which completes into an entry of the cq: 0; -FI_ENOMEM.
 * And as many less. Under the lock.
 */
int rwk_fi_device_reserve(struct rwk_fi_device *device, size_t operations);
void rwk_fi_device_release(struct rwk_fi_device *device, size_t operations);
/** With the fabric, which has neither domains nor passive endpoints any more. NULL: it never had one. */
void rwk_fi_device_close(struct rwk_fi_device *device);

/**
 * A domain makes progress by itself from now on, or does no more; nothing is done if *started says that it is so.
 * Without the device's lock. 0 or negative errno.
 */
int rwk_fi_device_start(struct rwk_fi_fabric *fabric, bool *started);
void rwk_fi_device_stop(struct rwk_fi_fabric *fabric, bool *started);

/** Drives the adapter, and now and then the connections: the completions and events that there were. Under the lock. */
int rwk_fi_device_progress(struct rwk_fi_device *device);

/** The same, and the connections in any case, for who reads an event queue. A fabric without a device has none. */
void rwk_fi_device_look(struct rwk_fi_fabric *fabric);

/** Before a sleep: 0; -FI_EAGAIN: there is something to do, look first. Under the lock. */
int rwk_fi_device_arm(struct rwk_fi_device *device);

#endif
