/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints: they listen, and hand to the program who connects. */
#include "bindings/libfabric/msg.h"

#include "base/cancel.h"
#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/info.h"
#include "bindings/libfabric/msg_domain.h"

#include "base/socket.h"

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rwk_fi_msg_passive *pep_of(fid_t fid)
{
	return rwk_container_of(fid, struct rwk_fi_msg_passive, fid.fid);
}

void rwk_fi_msg_drop_request(struct rwk_fi_msg_request *r)
{
	if (r->connection)
		rwk_connection_destroy(r->connection);
	rwk_list_remove(&r->link);
	free(r);
}

void rwk_fi_msg_drop_requests(struct rwk_fi_device *d)
{
	while (!rwk_list_empty(&d->requests))
		rwk_fi_msg_drop_request(rwk_container_of(d->requests.next, struct rwk_fi_msg_request, link));
}

static struct rwk_fi_msg_request *request_of(struct fid *handle)
{
	return rwk_container_of(handle, struct rwk_fi_msg_request, fid);
}

/* The request's FI_CONNREQ is taken out of the queue, unless the program has it, or (not `seen`) has seen it. */
static bool take_back(struct rwk_fi_msg_request *r, bool seen)
{
	struct fi_info *info = r->pep ? rwk_fi_eq_withdraw(r->pep->eq, &r->fid, seen) : NULL;

	if (!info)
		return false;
	rwk_fi_info_free(info);
	return true;
}

void rwk_fi_msg_withdraw(struct rwk_fi_msg_request *r)
{
	rwk_connection_destroy(r->connection);
	r->connection = NULL;
	if (take_back(r, false))
		rwk_fi_msg_drop_request(r);
}

/*
 * The name of this end towards a peer: the address that is listened at, or for any the one that the peer sees, with the
 * port.
 */
static void own_end(struct rwk_fi_msg_passive *pep, const uint8_t peer[16], struct rwk_address *a)
{
	static const uint8_t any[16] = {[10] = 0xff, [11] = 0xff};
	uint8_t ip[16];

	memcpy(ip, pep->source.ip, sizeof(ip));
	if (!memcmp(ip, any, sizeof(any)))
		rwk_adapter_source(pep->device->adapter, peer, ip);
	rwk_fi_address_partial(ip, rwk_listener_port(pep->listener), a);
}

/* A program that will not answer: the peer is hung up on. */
static int request_close(struct fid *fid)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_request *r = request_of(fid);
	struct rwk_fi_mutex *lock = &r->device->group.mutex;
	bool taken;

	if (rwk_fi_is_inherited(r->device->process))
		return 0;
	rwk_fi_lock(lock);
	taken = r->taken;
	if (!taken)
		rwk_fi_msg_drop_request(r);
	rwk_fi_unlock(lock);
	return taken ? -FI_EBUSY : 0;
}

static const struct fi_ops request_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = request_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static struct rwk_fi_msg_request *new_request(struct rwk_fi_msg_passive *pep, const struct rwk_connection_event *e)
{
	struct rwk_fi_msg_request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->fid.fclass = FI_CLASS_CONNREQ;
	r->fid.ops = (struct fi_ops *)&request_ops;
	r->device = pep->device;
	r->pep = pep;
	r->connection = e->connection;
	rwk_fi_address_partial(e->peer_ip, e->peer_port, &r->peer);
	rwk_list_append(&pep->device->requests, &r->link);
	return r;
}

/* From one of our own kind: by a stream, for an RC qp. Others are told no. */
void rwk_fi_msg_ask(struct rwk_fi_msg_passive *pep, const struct rwk_connection_event *e)
{
	struct rwk_fi_msg_request *r;
	struct rwk_fi_event *ev;
	struct rwk_address own;
	struct fi_info *info;

	if (e->service != RWK_QP_RC || e->transport != RWK_TRANSPORT_STREAM || e->deferred) {
		rwk_info("fi_listen: somebody asks for a service that endpoints do not have");
		if (rwk_reject(e->connection, NULL, 0))
			rwk_connection_destroy(e->connection);
		return;
	}
	r = new_request(pep, e);
	if (!r) {
		rwk_connection_destroy(e->connection);
		return;
	}
	own_end(pep, e->peer_ip, &own);
	info = rwk_fi_info_again(pep->fabric->fid.api_version, pep->info, &own, &r->peer);
	ev = rwk_fi_eq_new_event(e->private_length);
	if (info && ev) {
		info->handle = &r->fid;
		rwk_fi_eq_put(pep->eq, ev, FI_CONNREQ, &pep->fid.fid, info, e->private_data, e->private_length);
		return;
	}
	rwk_warn("event queue: a connection is refused for want of memory, or as its address has no form in the "
		 "program's format");
	free(ev);
	rwk_fi_info_free(info);
	rwk_fi_msg_drop_request(r);
}

/* The address as the connection layer has it: any of both families is all zero, any of IPv4 is not. */
static void socket_ip(uint32_t format, const struct rwk_address *a, uint8_t ip[16])
{
	static const uint8_t any[16] = {[10] = 0xff, [11] = 0xff};

	if (format == FI_SOCKADDR_IN6 && !memcmp(a->ip, any, sizeof(any)))
		memset(ip, 0, 16);
	else
		memcpy(ip, a->ip, 16);
}

void rwk_fi_msg_release(int *reserved)
{
	if (*reserved >= 0)
		close(*reserved);
	*reserved = -1;
}

int rwk_fi_msg_reserve(uint32_t format, struct rwk_address *name, int *reserved)
{
	uint8_t ip[16];
	uint16_t port;
	int fd;

	socket_ip(format, name, ip);
	fd = rwk_socket_reserve(ip, rwk_address_port(name), &port);
	if (fd < 0)
		return fd;
	rwk_fi_msg_release(reserved);
	*reserved = fd;
	rwk_fi_address_partial(ip, port, name);
	return 0;
}

/* Its port is its own from now on, before it listens; the kernel chooses it, unless the program has. */
static int reserve(struct rwk_fi_msg_passive *pep)
{
	if (pep->listener || pep->reserved >= 0)
		return 0;
	return rwk_fi_msg_reserve(pep->info->addr_format, &pep->source, &pep->reserved);
}

int rwk_fi_msg_inherit(struct rwk_fi_msg_ep *ep, fid_t passive)
{
	struct rwk_fi_msg_passive *pep = pep_of(passive);
	int err = -FI_EINVAL;

	rwk_fi_lock(&pep->device->group.mutex);
	if (pep->device == ep->device && !pep->listener)
		err = reserve(pep);
	else
		rwk_warn("fi_endpoint: the passive endpoint in the info's handle %s",
			pep->listener ? "listens" : "is another fabric's");
	if (!err) {
		ep->source = pep->source;
		ep->reserved = pep->reserved;
		pep->reserved = -1;
	}
	rwk_fi_unlock(&pep->device->group.mutex);
	return err;
}

static int start(struct rwk_fi_msg_passive *pep)
{
	struct rwk_listen_attr attr = {.port = rwk_address_port(&pep->source),
		.patient = true,
		.timeout_ms = rwk_fi_msg_patience(),
		.backlog = pep->backlog};
	int err;

	if (pep->listener)
		return -FI_EOPBADSTATE;
	if (!pep->eq) {
		rwk_warn("fi_listen: no event queue is bound to the passive endpoint");
		return -FI_ENOEQ;
	}
	socket_ip(pep->info->addr_format, &pep->source, attr.ip);
	err = rwk_listen(pep->device->channel, &attr, &pep->listener);
	if (err) {
		rwk_warn("fi_listen: port %u: %s", attr.port, fi_strerror(-err));
		return err;
	}
	rwk_fi_msg_release(&pep->reserved);
	rwk_list_append(&pep->device->passives, &pep->link);
	return 0;
}

static int pep_listen(struct fid_pep *fid)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_passive *pep = pep_of(&fid->fid);
	int err;

	rwk_fi_lock(&pep->device->group.mutex);
	err = start(pep);
	rwk_fi_unlock(&pep->device->group.mutex);
	return err;
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_passive *pep = pep_of(&fid->fid);
	struct rwk_fi_msg_request *r = request_of(handle);
	bool taken;

	if (handle->fclass != FI_CLASS_CONNREQ || r->device != pep->device)
		return -FI_EINVAL;
	rwk_fi_lock(&pep->device->group.mutex);
	taken = r->taken;
	if (!taken && r->connection &&
		!rwk_reject(r->connection, param, rwk_fi_msg_data_length("fi_reject", paramlen)))
		r->connection = NULL;
	if (!taken)
		rwk_fi_msg_drop_request(r);
	rwk_fi_unlock(&pep->device->group.mutex);
	return taken ? -FI_EINVAL : 0;
}

static int pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_passive *pep = pep_of(fid);
	uint32_t format = pep->info->addr_format;

	if (pep->listener)
		return -FI_EOPBADSTATE;
	if (addrlen < rwk_fi_address_size(format))
		return -FI_EINVAL;
	rwk_fi_msg_release(&pep->reserved);
	return rwk_fi_address_read(format, addr, &pep->source);
}

/* Where it listens, or will listen: a port that is told is reserved. */
static int pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_passive *pep = pep_of(fid);
	struct rwk_address name;
	int err = 0;

	rwk_fi_lock(&pep->device->group.mutex);
	if (!rwk_address_port(&pep->source))
		err = reserve(pep);
	name = pep->source;
	if (pep->listener)
		rwk_fi_address_partial(pep->source.ip, rwk_listener_port(pep->listener), &name);
	rwk_fi_unlock(&pep->device->group.mutex);
	return err ? err : rwk_fi_address_give(pep->info->addr_format, &name, addr, addrlen);
}

static int pep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_msg_passive *pep = pep_of(fid);
	struct rwk_fi_eq *eq = rwk_container_of(other, struct rwk_fi_eq, fid.fid);
	int err;

	if (other->fclass != FI_CLASS_EQ || eq->fabric != pep->fabric) {
		rwk_warn("fi_pep_bind: %s", other->fclass != FI_CLASS_EQ ? "the object is no event queue"
									 : "the event queue is another fabric's");
		return -FI_EINVAL;
	}
	err = rwk_fi_eq_watch(eq, rwk_event_channel_fd(pep->device->channel));
	return err ? err : rwk_fi_bind_eq(&pep->eq, eq, flags);
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_msg_passive *pep = pep_of(fid);

	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (*(const int *)arg < 0)
		return -FI_EINVAL;
	pep->backlog = (uint32_t) * (const int *)arg;
	return 0;
}

/*
 * Requests whose event the program has taken stay, without it, and such as have an endpoint. Of one that it has only
 * looked at, by FI_PEEK, nothing is left to answer.
 */
static void leave_requests(struct rwk_fi_msg_passive *pep)
{
	struct rwk_list *next;

	for (struct rwk_list *l = pep->device->requests.next; l != &pep->device->requests; l = next) {
		struct rwk_fi_msg_request *r = rwk_container_of(l, struct rwk_fi_msg_request, link);

		next = l->next;
		if (r->pep != pep)
			continue;
		if (take_back(r, true) && !r->taken)
			rwk_fi_msg_drop_request(r);
		else
			r->pep = NULL;
	}
}

static int pep_close(struct fid *fid)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_passive *pep = pep_of(fid);

	if (rwk_fi_is_inherited(pep->fabric->process))
		return 0;
	rwk_fi_lock(&pep->device->group.mutex);
	if (pep->listener)
		rwk_listener_close(pep->listener);
	rwk_fi_msg_release(&pep->reserved);
	rwk_list_remove(&pep->link);
	leave_requests(pep);
	if (pep->eq)
		rwk_fi_eq_forget(pep->eq, fid);
	rwk_fi_unlock(&pep->device->group.mutex);
	if (pep->eq)
		rwk_fi_drop(&pep->eq->refs);
	rwk_fi_drop(&pep->fabric->refs);
	rwk_fi_info_free(pep->info);
	free(pep);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = pep_close,
	.bind = pep_bind,
	.control = pep_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_ep pep_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = rwk_fi_no_cancel,
	.getopt = rwk_fi_msg_getopt,
	.setopt = rwk_fi_msg_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

static const struct fi_ops_cm cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = pep_setname,
	.getname = pep_getname,
	.getpeer = rwk_fi_no_getpeer,
	.connect = rwk_fi_no_connect,
	.listen = pep_listen,
	.accept = rwk_fi_no_accept,
	.reject = pep_reject,
	.shutdown = rwk_fi_no_shutdown,
	.join = rwk_fi_no_join,
};

/* A copy of the info, and the address in it. */
static int take_info(struct rwk_fi_msg_passive *pep, const struct fi_info *info)
{
	static const uint8_t any[16];
	uint32_t format = info->addr_format;

	if (!info->ep_attr || info->ep_attr->type != FI_EP_MSG || format == RWK_FI_ADDR_FORMAT ||
		!rwk_fi_address_size(format)) {
		rwk_warn("fi_passive_ep: the info is none of FI_EP_MSG with addresses of FI_SOCKADDR_IN or "
			 "FI_SOCKADDR_IN6");
		return -FI_EINVAL;
	}
	rwk_fi_address_partial(any, 0, &pep->source);
	if (info->src_addr && (info->src_addrlen < rwk_fi_address_size(format) ||
				      rwk_fi_address_read(format, info->src_addr, &pep->source)))
		return -FI_EINVAL;
	pep->info = rwk_fi_info_again(pep->fabric->fid.api_version, info, &pep->source, NULL);
	return pep->info ? 0 : -FI_ENOMEM;
}

static int use(struct rwk_fi_device *device)
{
	int err;

	rwk_fi_lock(&device->group.mutex);
	err = rwk_fi_device_use(device);
	rwk_fi_unlock(&device->group.mutex);
	return err;
}

int rwk_fi_msg_passive_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out, void *context)
{
	struct rwk_fi_msg_passive *pep = calloc(1, sizeof(*pep));
	int err;

	if (!pep)
		return -FI_ENOMEM;
	pep->fabric = rwk_fi_fabric_of(fid);
	pep->reserved = -1;
	rwk_list_init(&pep->link);
	err = take_info(pep, info);
	if (err)
		goto free_pep;
	err = rwk_fi_device_get(pep->fabric, &pep->device);
	if (!err)
		err = use(pep->device);
	if (err)
		goto free_info;
	rwk_fi_hold(&pep->fabric->refs);
	pep->fid.fid.fclass = FI_CLASS_PEP;
	pep->fid.fid.context = context;
	pep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	pep->fid.ops = (struct fi_ops_ep *)&pep_ops;
	pep->fid.cm = (struct fi_ops_cm *)&cm_ops;
	*out = &pep->fid;
	return 0;

free_info:
	rwk_fi_info_free(pep->info);
free_pep:
	free(pep);
	return err;
}
