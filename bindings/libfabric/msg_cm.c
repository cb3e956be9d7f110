/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that connect an endpoint, end its connection, and say whose ends it has. */
#include "bindings/libfabric/msg.h"

#include "base/cancel.h"
#include "base/log.h"
#include "base/param.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"

#include <rdma/fi_cm.h>
#include <string.h>

#define ALWAYS    7                              /* of the adapter's counts of attempts: without end */
#define RNR_TIMER 10                             /* 0.32 ms: so long waits who finds no receive posted */
#define SILENCE   ((uint64_t)3600 * 1000000000u) /* ns; the stream loses nothing, so who is silent is only slow */
#define FAREWELL  1000 /* ms, in which a peer that is at work takes what it has a receive for */
#define LOOK      5    /* ms, from one look at what is owed to the next */

uint32_t rwk_fi_msg_patience(void)
{
	return 1000 * (rwk_params.connect_wait ? (uint32_t)rwk_params.connect_wait : 1);
}

static struct rwk_fi_msg_ep *ep_of(fid_t fid)
{
	return rwk_container_of(fid, struct rwk_fi_msg_ep, fid.fid);
}

int rwk_fi_msg_assign(struct rwk_fi_msg_ep *ep, const struct rwk_address *name)
{
	struct rwk_address a = *name;
	int err = 0;

	if (rwk_address_port(name))
		err = rwk_fi_msg_reserve(ep->domain->addr_format, &a, &ep->reserved);
	else
		rwk_fi_msg_release(&ep->reserved);
	if (err)
		rwk_warn("endpoint: it cannot connect from port %u: %s", rwk_address_port(name), fi_strerror(-err));
	else
		ep->source = a;
	return err;
}

/* The address to connect from. Without a port, of that the kernel decides when it connects. */
static int setname(fid_t fid, void *addr, size_t addrlen)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_ep *ep = ep_of(fid);
	uint32_t format = ep->domain->addr_format;
	struct rwk_address name;
	int err;

	if (addrlen < rwk_fi_address_size(format))
		return -FI_EINVAL;
	err = rwk_fi_address_read(format, addr, &name);
	if (err)
		return err;
	rwk_fi_lock(ep->lock);
	err = ep->state == RWK_FI_IDLE ? rwk_fi_msg_assign(ep, &name) : -FI_EOPBADSTATE;
	rwk_fi_unlock(ep->lock);
	return err;
}

/* The address that it connects from; any, if none was given: without a port, which the peer alone sees. */
static int getname(fid_t fid, void *addr, size_t *addrlen)
{
	static const uint8_t any[16];
	struct rwk_fi_msg_ep *ep = ep_of(fid);
	struct rwk_address name;

	rwk_fi_lock(ep->lock);
	name = ep->source;
	rwk_fi_unlock(ep->lock);
	if (!name.version_srq)
		rwk_fi_address_partial(any, 0, &name);
	return rwk_fi_address_give(ep->domain->addr_format, &name, addr, addrlen);
}

static int getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	struct rwk_address peer;
	bool connected;

	rwk_fi_lock(ep->lock);
	peer = ep->peer;
	connected = ep->state == RWK_FI_CONNECTED;
	rwk_fi_unlock(ep->lock);
	return connected ? rwk_fi_address_give(ep->domain->addr_format, &peer, addr, addrlen) : -FI_ENOTCONN;
}

uint32_t rwk_fi_msg_data_length(const char *call, size_t len)
{
	if (len <= RWK_PRIVATE_MAX)
		return (uint32_t)len;
	rwk_info("%s: of %zu bytes of data %u go (FI_OPT_CM_DATA_SIZE)", call, len, RWK_PRIVATE_MAX);
	return RWK_PRIVATE_MAX;
}

/* Takes what an endpoint needs before it connects: 0 or negative errno. */
static int prepare(struct rwk_fi_msg_ep *ep, const char *call)
{
	int err;

	if (ep->state != RWK_FI_IDLE) {
		rwk_warn("%s: an endpoint connects once", call);
		return -FI_EISCONN;
	}
	if (!ep->eq && !ep->domain->eq) {
		rwk_warn("%s: no event queue is bound to the endpoint, and none to the domain", call);
		return -FI_ENOEQ;
	}
	err = ep->qp ? 0 : rwk_fi_msg_enable(ep);
	if (!err && !ep->eq)
		err = rwk_fi_msg_bind_eq(ep, ep->domain->eq, 0);
	return err ? err : rwk_fi_msg_make_events(ep);
}

static unsigned access_of(uint64_t caps)
{
	return (caps & FI_RMA && caps & FI_REMOTE_READ ? (unsigned)RWK_ACCESS_READ : 0) |
	       (caps & FI_RMA && caps & FI_REMOTE_WRITE ? (unsigned)RWK_ACCESS_WRITE : 0) |
	       (caps & FI_ATOMIC && caps & FI_REMOTE_WRITE ? (unsigned)RWK_ACCESS_ATOMIC : 0);
}

static struct rwk_connection_attr terms(struct rwk_fi_msg_ep *ep, const char *call, const void *param, size_t paramlen)
{
	static const uint8_t any[16] = {[10] = 0xff, [11] = 0xff};
	struct rwk_connection_attr attr = {
		.transport = RWK_TRANSPORT_STREAM,
		.patient = true, /* silence is not death */
		.qp = {.access = access_of(ep->caps),
			.retry = ALWAYS,
			.rnr_retry = ALWAYS,
			.rnr_timer = RNR_TIMER,
			.timeout_ns = SILENCE},
		.timeout_ms = rwk_fi_msg_patience(),
		.private_data = param,
		.private_length = rwk_fi_msg_data_length(call, paramlen),
		.user = ep,
	};

	if (ep->source.version_srq && memcmp(ep->source.ip, any, sizeof(any)) != 0)
		memcpy(attr.source_ip, ep->source.ip, sizeof(attr.source_ip));
	if (ep->reserved >= 0)
		attr.source_port = rwk_address_port(&ep->source);
	return attr;
}

static int start(struct rwk_fi_msg_ep *ep, const struct rwk_address *to, const void *param, size_t paramlen)
{
	struct rwk_connection_attr attr;
	int err = ep->request ? -FI_EOPBADSTATE : prepare(ep, "fi_connect");

	if (err)
		return err;
	attr = terms(ep, "fi_connect", param, paramlen);
	err = rwk_connect(ep->device->channel, ep->qp, to->ip, rwk_address_port(to), &attr, &ep->connection);
	if (err)
		return err;
	ep->peer = *to;
	ep->state = RWK_FI_CONNECTING;
	return 0;
}

static int ep_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	struct rwk_address to;
	int err = addr ? rwk_fi_address_read(ep->domain->addr_format, addr, &to) : -FI_EINVAL;

	if (err)
		return err;
	rwk_fi_lock(ep->lock);
	err = start(ep, &to, param, paramlen);
	rwk_fi_unlock(ep->lock);
	return err;
}

static int answer(struct rwk_fi_msg_ep *ep, const void *param, size_t paramlen)
{
	struct rwk_fi_msg_request *r = ep->request;
	struct rwk_connection_attr attr;
	int err;

	if (!r) {
		rwk_warn("fi_accept: the endpoint was not opened with the info of a FI_CONNREQ");
		return -FI_EOPBADSTATE;
	}
	err = prepare(ep, "fi_accept");
	if (err)
		return err;
	attr = terms(ep, "fi_accept", param, paramlen);
	err = r->connection ? rwk_accept(r->connection, ep->qp, &attr) : -FI_ENOTCONN;
	if (err)
		return err;
	ep->connection = r->connection;
	ep->state = RWK_FI_CONNECTING;
	r->connection = NULL;
	ep->request = NULL;
	rwk_fi_msg_drop_request(r);
	return 0;
}

static int ep_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	int err;

	rwk_fi_lock(ep->lock);
	err = answer(ep, param, paramlen);
	rwk_fi_unlock(ep->lock);
	return err;
}

static bool owes_nothing(const void *arg)
{
	const struct rwk_fi_msg_ep *ep = arg;

	return !ep->owed || ep->state != RWK_FI_CONNECTED;
}

/*
 * Nobody here waits for what was injected; a peer that takes it is given the time to do so. That it has may be seen by
 * another thread, that of automatic progress, say, and then nothing wakes who waits for it: so he looks himself.
 */
static void pay_debts(struct rwk_fi_msg_ep *ep)
{
	struct rwk_fi_deadline end = rwk_fi_deadline(FAREWELL);
	struct rwk_fi_wait w;

	if (owes_nothing(ep))
		return;
	rwk_fi_wait_open_last(&w, NULL, ep->device);
	while (!owes_nothing(ep) && !rwk_fi_deadline_past(&end))
		rwk_fi_wait_for(&w, &(struct rwk_fi_guard){ep->lock}, LOOK, owes_nothing, ep);
	if (!owes_nothing(ep))
		rwk_warn(
			"fi_close: %zu messages are lost, sent by inject, for which the peer has no receive", ep->owed);
	rwk_fi_wait_part(&w);
	rwk_fi_wait_close(&w);
}

static void end_connection(struct rwk_fi_msg_ep *ep)
{
	if (ep->connection)
		rwk_connection_destroy(ep->connection);
	ep->connection = NULL;
	ep->state = RWK_FI_OVER;
	rwk_qp_modify(ep->qp, RWK_QPS_ERR, NULL);
}

void rwk_fi_msg_disconnect(struct rwk_fi_msg_ep *ep)
{
	pay_debts(ep);
	end_connection(ep);
}

/*
 * What is cancelled has its entries before it returns. FI_SHUTDOWN comes here too, as programs expect of whom both ends
 * call it at once and then wait for the event: once, also if the peer's end was seen only while debts were paid.
 */
static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	int err;

	if (flags)
		return -FI_EBADFLAGS;
	rwk_fi_lock(ep->lock);
	err = ep->state == RWK_FI_CONNECTED ? 0 : -FI_ENOTCONN;
	if (!err)
		pay_debts(ep);
	if (!err && ep->state == RWK_FI_CONNECTED) {
		end_connection(ep);
		rwk_fi_device_progress(ep->device);
		rwk_fi_msg_put_shutdown(ep);
	}
	rwk_fi_unlock(ep->lock);
	return err;
}

const struct fi_ops_cm rwk_fi_msg_cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = setname,
	.getname = getname,
	.getpeer = getpeer,
	.connect = ep_connect,
	.listen = rwk_fi_no_listen,
	.accept = ep_accept,
	.reject = rwk_fi_no_reject,
	.shutdown = ep_shutdown,
	.join = rwk_fi_no_join,
};
