/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/device.h"

#include "base/cancel.h"
#include "base/log.h"
#include "bindings/libfabric/msg.h"
#include "bindings/libfabric/progress.h"
#include "channel_adapter/cq.h"

#include <stdlib.h>

#define A_POLL        32 /* completions */
#define CONNECTIONS   8  /* turns from one look at them to the next: it is a system call */
#define EVENTS_A_TURN 64
#define FIRST_ENTRIES 1024u /* of the cq, until more are reserved */

/* All completions that there are, to whom they belong. */
static int take_completions(struct rwk_fi_device *d)
{
	struct rwk_wc wc[A_POLL];
	int n, all = 0;

	do {
		n = rwk_cq_poll(d->cq, wc, A_POLL);
		for (int i = 0; i < n; i++)
			rwk_fi_msg_complete(&wc[i]);
		all += n;
	} while (n == A_POLL);
	return all;
}

static int take_events(struct rwk_fi_device *d)
{
	struct rwk_connection_event e;
	int n = 0;

	while (n < EVENTS_A_TURN && rwk_event_channel_poll(d->channel, &e)) {
		rwk_fi_msg_event(d, &e);
		n++;
	}
	return n;
}

int rwk_fi_device_progress(struct rwk_fi_device *d)
{
	int before, n = 0;

	if (rwk_unlikely(!d->adapter))
		return 0;
	before = rwk_cancel_hold_off();
	if (!(d->turns++ % CONNECTIONS))
		n = take_events(d);
	n += take_completions(d);
	rwk_cancel_as_before(before);
	return n;
}

void rwk_fi_device_look(struct rwk_fi_fabric *fabric)
{
	struct rwk_fi_device *d = atomic_load_explicit(&fabric->device, memory_order_acquire);
	int before;

	if (!d)
		return;
	before = rwk_cancel_hold_off();
	rwk_fi_lock(&d->group.mutex);
	if (d->adapter) {
		take_events(d);
		take_completions(d);
	}
	rwk_fi_unlock(&d->group.mutex);
	rwk_cancel_as_before(before);
}

/* Those that sleep look for themselves. */
static void rouse(struct rwk_fi_device *d)
{
	for (struct rwk_list *l = d->waits.next; l != &d->waits; l = l->next)
		rwk_fi_wait_arrived(rwk_container_of(l, struct rwk_fi_wait, of_device));
}

int rwk_fi_device_arm(struct rwk_fi_device *d)
{
	int before = rwk_cancel_hold_off(), err = 0;

	if (d->adapter && (take_events(d) || rwk_cq_arm(d->cq, RWK_CQ_NEXT))) {
		rouse(d);
		err = -FI_EAGAIN;
	}
	rwk_cancel_as_before(before);
	return err;
}

static int open_adapter(struct rwk_fi_device *d)
{
	int err = rwk_adapter_open(&(struct rwk_adapter_attr){.any_port = true}, &d->adapter);

	if (err)
		return err;
	err = rwk_cq_create(d->adapter, FIRST_ENTRIES, &d->cq);
	if (err)
		goto close_adapter;
	err = rwk_ca_cq_fds(d->cq, d->fd);
	if (err)
		goto destroy_cq;
	err = rwk_event_channel_create(d->adapter, &d->channel);
	if (err)
		goto destroy_cq;
	d->fd[2] = rwk_event_channel_fd(d->channel);
	return 0;

destroy_cq:
	rwk_cq_destroy(d->cq);
close_adapter:
	rwk_adapter_close(d->adapter);
	d->adapter = NULL;
	return err;
}

static void close_adapter(struct rwk_fi_device *d)
{
	rwk_event_channel_destroy(d->channel);
	rwk_cq_destroy(d->cq);
	rwk_adapter_close(d->adapter);
	d->adapter = NULL;
}

/* Those that have joined watch it from now on; who sleeps already looks again, and arms it. */
static int join_waits(struct rwk_fi_device *d)
{
	int err = 0;

	for (struct rwk_list *l = d->waits.next; l != &d->waits && !err; l = l->next)
		err = rwk_fi_wait_watch(rwk_container_of(l, struct rwk_fi_wait, of_device), d);
	if (!err)
		rouse(d);
	return err;
}

int rwk_fi_device_use(struct rwk_fi_device *d)
{
	RWK_CANCEL_HELD_OFF;
	int err;

	if (d->adapter)
		return 0;
	err = open_adapter(d);
	if (!err) {
		err = join_waits(d);
		if (err)
			close_adapter(d);
	}
	if (err)
		rwk_warn("connected endpoints: no adapter can be opened: %s", fi_strerror(-err));
	return err;
}

/* It doubles, so that not each of many endpoints has it copied; it does not shrink, as others may come. */
int rwk_fi_device_reserve(struct rwk_fi_device *d, size_t operations)
{
	size_t entries = FIRST_ENTRIES;
	int err;

	while (entries < d->reserved + operations)
		entries *= 2;
	err = rwk_ca_cq_grow(d->cq, entries);
	if (err)
		return err;
	d->reserved += operations;
	return 0;
}

void rwk_fi_device_release(struct rwk_fi_device *d, size_t operations)
{
	d->reserved -= operations;
}

static struct rwk_fi_device *open_device(void)
{
	struct rwk_fi_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->process = rwk_this_process();
	rwk_list_init(&d->waits);
	rwk_fi_ears_init(&d->ears, 16, 16, 3);
	rwk_fi_ears_init(&d->of_eq, 16, 8, 3);
	rwk_list_init(&d->passives);
	rwk_list_init(&d->requests);
	rwk_fi_group_init(&d->group);
	return d;
}

int rwk_fi_device_get(struct rwk_fi_fabric *fabric, struct rwk_fi_device **out)
{
	int before = rwk_cancel_hold_off(), err = 0;
	struct rwk_fi_device *d;

	pthread_mutex_lock(&fabric->opening);
	d = atomic_load_explicit(&fabric->device, memory_order_relaxed);
	if (!d) {
		d = open_device();
		err = d ? 0 : -FI_ENOMEM;
		atomic_store_explicit(&fabric->device, d, memory_order_release);
	}
	pthread_mutex_unlock(&fabric->opening);
	rwk_cancel_as_before(before);
	if (!err)
		*out = d;
	return err;
}

void rwk_fi_device_close(struct rwk_fi_device *d)
{
	RWK_CANCEL_HELD_OFF;

	if (!d)
		return;
	rwk_fi_msg_drop_requests(d);
	if (d->adapter)
		close_adapter(d);
	free(d);
}

/* The progress thread sleeps as others do. */
static int open_engines(struct rwk_fi_device *d)
{
	int err = rwk_fi_wait_open(&d->group.engines, FI_WAIT_FD, "fi_endpoint");

	if (err)
		return err;
	rwk_fi_lock(&d->group.mutex);
	err = rwk_fi_wait_join(&d->group.engines, d);
	rwk_fi_unlock(&d->group.mutex);
	if (err)
		rwk_fi_wait_close(&d->group.engines);
	return err;
}

/* By the descriptor others see whether there is a thread that sleeps on it. */
static void close_engines(struct rwk_fi_device *d)
{
	rwk_fi_lock(&d->group.mutex);
	rwk_fi_wait_part(&d->group.engines);
	rwk_fi_wait_close(&d->group.engines);
	rwk_fi_wait_open(&d->group.engines, FI_WAIT_NONE, "fi_close");
	rouse(d); /* who fell asleep beside the thread */
	rwk_fi_unlock(&d->group.mutex);
}

static int start_progress(struct rwk_fi_device *d)
{
	int err = open_engines(d);

	if (err)
		return err;
	err = rwk_fi_progress_start(&d->group, &d->progress);
	if (err)
		close_engines(d);
	return err;
}

int rwk_fi_device_start(struct rwk_fi_fabric *fabric, bool *started)
{
	struct rwk_fi_device *d = atomic_load_explicit(&fabric->device, memory_order_acquire);
	int err;

	pthread_mutex_lock(&fabric->opening);
	err = d->automatic ? 0 : start_progress(d);
	if (!err && !*started) {
		d->automatic++;
		*started = true;
	}
	pthread_mutex_unlock(&fabric->opening);
	return err;
}

void rwk_fi_device_stop(struct rwk_fi_fabric *fabric, bool *started)
{
	struct rwk_fi_device *d = atomic_load_explicit(&fabric->device, memory_order_acquire);

	pthread_mutex_lock(&fabric->opening);
	if (*started && !--d->automatic) {
		rwk_fi_progress_stop(d->progress);
		close_engines(d);
	}
	*started = false;
	pthread_mutex_unlock(&fabric->opening);
}
