/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of datagram endpoints, and the connection calls that they do not have. */
#include "bindings/libfabric/dgram.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"

#include <rdma/fi_cm.h>
#include <stdio.h>
#include <string.h>

#define ROCE_PORT 4791 /* where all others receive, whatever port they send from */

/*
 * The number of an address by IP, port and QPN, or without a QPN by IP and port; of another maker's queue pair by IP
 * and QPN: of these there may be several at an IP.
 */
static fi_addr_t find(const struct rwk_fi_dgram_ep *ep, const struct rwk_ud_address *from)
{
	struct rwk_address a;
	fi_addr_t number;

	rwk_fi_address_partial(from->ip, from->port, &a);
	number = rwk_fi_av_find_qp(ep->av, &a, from->qpn);
	if (number == FI_ADDR_NOTAVAIL)
		number = rwk_fi_av_find_qp(ep->av, &a, 0);
	if (number != FI_ADDR_NOTAVAIL)
		return number;
	rwk_fi_address_partial(from->ip, ROCE_PORT, &a);
	return rwk_fi_av_find_qp(ep->av, &a, from->qpn);
}

fi_addr_t rwk_fi_dgram_source(const struct rwk_fi_dgram_ep *ep, const struct rwk_ud_address *from)
{
	fi_addr_t number = ep->caps & FI_SOURCE ? find(ep, from) : FI_ADDR_NOTAVAIL;

	return number == FI_ADDR_NOTAVAIL ? number : rwk_fi_av_user(ep->av, number);
}

int rwk_fi_dgram_peer(const struct rwk_fi_dgram_ep *ep, fi_addr_t to, struct rwk_ud_address *peer)
{
	struct rwk_address found;
	const struct rwk_address *a = rwk_fi_av_address(ep->av, to, &found);

	if (!a || !(a->flags_rank & RWK_ADDR_PARTIAL)) {
		rwk_warn("fi_addr %#llx is %s", (unsigned long long)to,
			a ? "no datagram endpoint's" : "not in the address vector");
		return -FI_EINVAL;
	}
	memcpy(peer->ip, a->ip, sizeof(peer->ip));
	peer->port = rwk_address_port(a);
	peer->qpn = a->version_srq & 0xffffff;
	if (!peer->qpn)
		peer->qpn = rwk_ud_qpn(peer->port);
	peer->qkey = a->job ? a->job : RWK_UD_QKEY;
	return 0;
}

static void own_address(const struct rwk_fi_dgram_ep *ep, struct rwk_address *a)
{
	const struct rwk_ud_address *own = rwk_ud_own(ep->ud);

	rwk_fi_address_partial(own->ip, own->port, a);
	a->version_srq |= own->qpn;
	a->job = own->qkey;
}

void rwk_fi_dgram_print(const struct rwk_fi_dgram_ep *ep)
{
	struct rwk_ud_counters c;
	struct rwk_address a;
	char name[128];

	own_address(ep, &a);
	rwk_fi_address_show(&a, name, sizeof(name));
	rwk_ud_get_counters(ep->ud, &c);
	fprintf(stderr,
		"ropewalk: %s: sent %llu datagrams, received %llu; dropped %llu that found no receive, %llu damaged, "
		"%llu of strangers, %llu longer than our MTU\n",
		name, (unsigned long long)c.sent, (unsigned long long)c.received, (unsigned long long)c.no_receive,
		(unsigned long long)c.bad_icrc,
		(unsigned long long)(c.malformed + c.unknown_qpn + c.wrong_pkey + c.wrong_qkey),
		(unsigned long long)c.too_long);
}

/* The address to bind to, until the endpoint is enabled. */
static int setname(fid_t fid, void *addr, size_t addrlen)
{
	struct rwk_fi_dgram_ep *ep = rwk_container_of(fid, struct rwk_fi_dgram_ep, fid.fid);

	return rwk_fi_address_bind(ep->domain->addr_format, addr, addrlen, ep->ud, &ep->source);
}

/* The endpoint's address; it has none before it is enabled. */
static int getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct rwk_fi_dgram_ep *ep = rwk_container_of(fid, struct rwk_fi_dgram_ep, fid.fid);
	struct rwk_address a;

	if (!ep->ud)
		return -FI_EOPBADSTATE;
	own_address(ep, &a);
	return rwk_fi_address_give(ep->domain->addr_format, &a, addr, addrlen);
}

const struct fi_ops_cm rwk_fi_dgram_cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = setname,
	.getname = getname,
	.getpeer = rwk_fi_no_getpeer,
	.connect = rwk_fi_no_connect,
	.listen = rwk_fi_no_listen,
	.accept = rwk_fi_no_accept,
	.reject = rwk_fi_no_reject,
	.shutdown = rwk_fi_no_shutdown,
	.join = rwk_fi_no_join,
};
