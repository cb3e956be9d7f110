/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram endpoints: FI_EP_DGRAM. Each is a queue pair of the datagram service (transports/ud) with a socket of its
 * own. A send is done once the kernel has it, and its completion is there when the call returns; what is lost on the
 * way, or finds no receive posted, is lost without a word.
 *
 * Addresses: an endpoint is known by IP and port, as FI_SOCKADDR_IN and FI_SOCKADDR_IN6 have them, and then by the QPN
 * and Q_Key that go with these (ud/ud.h). The native format is a partial struct rwk_address that may say both: the QPN
 * in place of the SRQ number, the Q_Key in place of the job, 0 for those that go with the port. So queue pairs of
 * others can be named, too.
 *
 * dgram_ep.c opens, binds, enables and closes endpoints, dgram_name.c has their addresses, dgram_message.c has the
 * calls that move data.
 */
#ifndef RWK_FI_DGRAM_H
#define RWK_FI_DGRAM_H

#include "bindings/libfabric/av.h"
#include "bindings/libfabric/bound.h"
#include "ud/ud.h"

#include <rdma/fi_endpoint.h>

/** A receive, from its posting to its completion. */
struct rwk_fi_dgram_receive {
	struct rwk_ud_receive place;
	void *context;
	uint32_t flags; /* RWK_F_*, RWK_FI_* */
	bool posted;
};

struct rwk_fi_dgram_ep {
	struct fid_ep fid;
	struct rwk_fi_domain *domain;
	struct rwk_fi_guard lock;
	struct rwk_fi_member member;
	struct rwk_ud *ud; /* NULL until enabled */
	struct rwk_fi_av *av;
	struct rwk_fi_side side[RWK_FI_SIDES];
	struct rwk_fi_cntr *cntr[RWK_FI_COUNTED];
	struct rwk_fi_eq *eq;
	struct rwk_fi_datagrams driven[RWK_FI_SIDES + RWK_FI_COUNTED + 1]; /* by whom: bound ones, and the domain */
	struct rwk_fi_dgram_receive *receives;
	struct rwk_list unused; /* rwk_ud_receive.link of those that are not posted */
	uint64_t caps;          /* of info, tx_attr and rx_attr together */
	uint64_t op_flags[RWK_FI_SIDES];
	size_t rx_size;
	struct rwk_address source; /* to bind to; zero: any */
};

static inline struct rwk_fi_dgram_ep *rwk_fi_dgram_ep_of(struct fid_ep *fid)
{
	return rwk_container_of(fid, struct rwk_fi_dgram_ep, fid);
}

/** fi_endpoint. */
int rwk_fi_dgram_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

/* In dgram_name.c. */
extern const struct fi_ops_cm rwk_fi_dgram_cm_ops;
/** Who is meant by a number: 0 and *peer set; -FI_EINVAL, logged: nobody, or no datagram endpoint. */
int rwk_fi_dgram_peer(const struct rwk_fi_dgram_ep *ep, fi_addr_t to, struct rwk_ud_address *peer);
/** What stands for who has sent: FI_ADDR_NOTAVAIL: it is not known, or FI_SOURCE not asked for. */
fi_addr_t rwk_fi_dgram_source(const struct rwk_fi_dgram_ep *ep, const struct rwk_ud_address *from);
/** FI_ROPEWALK_STATS. */
void rwk_fi_dgram_print(const struct rwk_fi_dgram_ep *ep);

/* In dgram_message.c. */
/** From the service: a datagram has taken a receive. `user` is the endpoint. */
void rwk_fi_dgram_received(void *user, struct rwk_ud_receive *place, const struct rwk_ud_arrival *a);
/** fi_cancel. */
ssize_t rwk_fi_dgram_cancel(fid_t fid, void *context);

/* Tables of calls of an enabled endpoint, and of those that are not there; ep.h has these too. */
extern const struct fi_ops_msg rwk_fi_dgram_message_ops;
extern const struct fi_ops_msg rwk_fi_no_msg_ops;
extern const struct fi_ops_tagged rwk_fi_no_tagged_ops;
extern const struct fi_ops_collective rwk_fi_no_collective_ops;

#endif
