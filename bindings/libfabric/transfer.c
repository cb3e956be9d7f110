/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/transfer.h"

#include "base/log.h"
#include "engine/rma.h"

/* The flags that there are. FI_MORE is a hint, not taken; a receive that is complete is so on every level. */
#define SENDMSG_FLAGS                                                                                                  \
	(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |         \
		FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE | FI_TRIGGER)
#define RECVMSG_FLAGS                                                                                                  \
	(FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV | FI_TRANSMIT_COMPLETE | FI_TRIGGER)
#define SENDMSG_LEVELS (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

rwk_noinline ssize_t rwk_fi_send1_any(struct rwk_fi_ep *ep, const void *buf, size_t len, uint32_t flags, uint64_t data,
	fi_addr_t to, uint64_t tag, void *context)
{
	struct rwk_peer *peer;
	ssize_t err;

	rwk_fi_enter(&ep->lock);
	err = rwk_fi_ep_peer(ep, to, &peer);
	if (rwk_likely(!err))
		err = rwk_engine_send1(ep->engine, buf, len, flags, data, peer, tag, context);
	rwk_fi_leave(&ep->lock);
	return err;
}

ssize_t rwk_fi_sendv(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov, size_t count, fi_addr_t to,
	uint64_t tag, uint64_t data, uint32_t flags, void *context)
{
	struct rwk_peer *peer;
	ssize_t err;

	if (rwk_unlikely(count > RWK_ENGINE_IOV_MAX))
		return -FI_EINVAL;
	rwk_fi_enter(&ep->lock);
	err = rwk_fi_ep_peer(ep, to, &peer);
	if (rwk_likely(!err))
		err = rwk_engine_send(ep->engine, space, peer, iov, count, tag, data, flags, context);
	rwk_fi_leave(&ep->lock);
	return err;
}

ssize_t rwk_fi_recvv(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov, size_t count, fi_addr_t from,
	uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	struct rwk_peer *peer = NULL;
	ssize_t err = 0;

	from |= ep->undirected;
	rwk_fi_enter(&ep->lock);
	if (from != FI_ADDR_UNSPEC)
		err = rwk_fi_ep_whole(ep, from, &peer);
	if (rwk_likely(!err))
		err = rwk_inbox_recv(ep->inbox, space, peer, iov, count, tag, ignore, flags, context);
	rwk_fi_leave(&ep->lock);
	return err;
}

rwk_noinline ssize_t rwk_fi_recv1_any(struct rwk_fi_ep *ep, void *buf, size_t len, uint32_t flags, fi_addr_t from,
	uint64_t tag, uint64_t ignore, void *context)
{
	const struct iovec iov = {buf, len};

	return rwk_fi_recvv(ep, rwk_space_of(flags), &iov, 1, from, tag, ignore, flags, context);
}

rwk_noinline void rwk_fi_look(struct rwk_fi_ep *ep)
{
	rwk_fi_enter(&ep->lock);
	rwk_engine_look(ep->engine);
	rwk_fi_leave(&ep->lock);
}

/* A fenced send waits for all that is under way to its peer: 0; -FI_EAGAIN: the program makes progress and tries again;
 * or as rwk_fi_ep_whole. */
static int fence(struct rwk_fi_ep *ep, fi_addr_t to)
{
	struct rwk_peer *peer;
	int err;

	rwk_fi_enter(&ep->lock);
	err = rwk_fi_ep_whole(ep, to, &peer);
	if (!err && (rwk_peer_sending(peer) || rwk_peer_accessing(peer)))
		err = -FI_EAGAIN;
	rwk_fi_leave(&ep->lock);
	return err;
}

uint32_t rwk_fi_send_level(uint64_t flags)
{
	if (flags & FI_MATCH_COMPLETE)
		return RWK_F_MATCHED;
	if (flags & FI_DELIVERY_COMPLETE)
		return RWK_F_DELIVERED;
	return flags & FI_TRANSMIT_COMPLETE ? RWK_F_ARRIVED : 0;
}

rwk_noinline int rwk_fi_sendmsg_any(struct rwk_fi_ep *ep, uint64_t flags, fi_addr_t to, uint32_t *out)
{
	if (flags & ~(uint64_t)SENDMSG_FLAGS) {
		rwk_info("fi_sendmsg: flags %#llx are not there",
			(unsigned long long)(flags & ~(uint64_t)SENDMSG_FLAGS));
		return -FI_EBADFLAGS;
	}
	if (flags & FI_INJECT)
		*out |= RWK_F_INJECT;
	if (flags & FI_REMOTE_CQ_DATA)
		*out |= RWK_F_DATA;
	*out |= flags & SENDMSG_LEVELS ? rwk_fi_send_level(flags) : ep->sendmsg_level;
	if (flags & FI_TRIGGER) {
		*out |= flags & FI_FENCE ? RWK_F_FENCE : 0;
		return flags & FI_INJECT ? -FI_EINVAL : RWK_FI_WAITS; /* the buffer is looked at when it begins */
	}
	return flags & FI_FENCE ? fence(ep, to) : 0;
}

rwk_noinline int rwk_fi_recvmsg_any(enum rwk_space space, uint64_t flags, uint32_t *out)
{
	if (flags & ~(uint64_t)RECVMSG_FLAGS) {
		rwk_info("fi_recvmsg: flags %#llx are not there",
			(unsigned long long)(flags & ~(uint64_t)RECVMSG_FLAGS));
		return -FI_EBADFLAGS;
	}
	if (flags & FI_MULTI_RECV) {
		if (space == RWK_TAGGED)
			return -FI_EBADFLAGS; /* tagged messages have no multi-receive buffers */
		*out |= RWK_F_MULTI;
	}
	if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
		if (flags & (FI_MULTI_RECV | FI_TRIGGER) || !(flags & (FI_PEEK | FI_CLAIM)))
			return -FI_EINVAL;
		if (flags & FI_PEEK) /* a peek is for its completion */
			*out = (*out & ~RWK_FI_QUIET) | RWK_F_PEEK | RWK_FI_NOT_COUNTED;
		if (flags & FI_CLAIM)
			*out |= RWK_F_CLAIM;
		if (flags & FI_DISCARD)
			*out |= RWK_F_DISCARD;
	}
	return flags & FI_TRIGGER ? RWK_FI_WAITS : 0;
}
