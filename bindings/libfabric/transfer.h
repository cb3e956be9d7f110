/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What plain and tagged calls share: from libfabric's arguments to the engine's. The lock-free way is inline and short.
 */
#ifndef RWK_FI_TRANSFER_H
#define RWK_FI_TRANSFER_H

#include "bindings/libfabric/ep.h"

/* The arguments of the calls for one buffer are in the order of libfabric's and of the engine's; the space is in the
 * flags. */

/** Anything but a lock-free send to a peer that has been used before. */
ssize_t rwk_fi_send1_any(struct rwk_fi_ep *ep, const void *buf, size_t len, uint32_t flags, uint64_t data, fi_addr_t to,
	uint64_t tag, void *context);

/** A send of one buffer. */
static inline ssize_t rwk_fi_send1(struct rwk_fi_ep *ep, const void *buf, size_t len, uint32_t flags, uint64_t data,
	fi_addr_t to, uint64_t tag, void *context)
{
	struct rwk_peer *peer = rwk_unlikely(rwk_fi_mutex_of(&ep->lock) != NULL) ? NULL : rwk_fi_ep_known(ep, to);

	if (rwk_unlikely(!peer))
		return rwk_fi_send1_any(ep, buf, len, flags, data, to, tag, context);
	return rwk_engine_send1(ep->engine, buf, len, flags, data, peer, tag, context);
}

/** A send of several pieces. */
ssize_t rwk_fi_sendv(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov, size_t count, fi_addr_t to,
	uint64_t tag, uint64_t data, uint32_t flags, void *context);

#define RWK_FI_WAITS 1 /* FI_TRIGGER: to be passed on to trigger.h */

/** The slow half of rwk_fi_sendmsg_flags: any flags. */
int rwk_fi_sendmsg_any(struct rwk_fi_ep *ep, uint64_t flags, fi_addr_t to, uint32_t *out);

/** The engine's flags for fi_sendmsg's: 0 and *out set, or -FI_EBADFLAGS; -FI_EAGAIN: what FI_FENCE waits for is under
 * way; RWK_FI_WAITS. */
static inline int rwk_fi_sendmsg_flags(
	struct rwk_fi_ep *ep, enum rwk_space space, uint64_t flags, fi_addr_t to, uint32_t *out)
{
	*out = ep->sendmsg_flags[!!(flags & FI_COMPLETION)] | rwk_space_flag(space);
	if (rwk_likely(!(flags & ~(uint64_t)FI_COMPLETION) && !ep->sendmsg_level))
		return 0;
	return rwk_fi_sendmsg_any(ep, flags, to, out);
}

/** A receive into several pieces, a peek, claim or discard. */
ssize_t rwk_fi_recvv(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov, size_t count, fi_addr_t from,
	uint64_t tag, uint64_t ignore, uint32_t flags, void *context);

/** Anything but a lock-free receive from anyone, or from a peer that has been used before. */
ssize_t rwk_fi_recv1_any(struct rwk_fi_ep *ep, void *buf, size_t len, uint32_t flags, fi_addr_t from, uint64_t tag,
	uint64_t ignore, void *context);

/** A receive into one buffer. */
static inline ssize_t rwk_fi_recv1(struct rwk_fi_ep *ep, void *buf, size_t len, uint32_t flags, fi_addr_t from,
	uint64_t tag, uint64_t ignore, void *context)
{
	struct rwk_peer *peer = NULL;

	if (rwk_unlikely(rwk_fi_mutex_of(&ep->lock) != NULL))
		return rwk_fi_recv1_any(ep, buf, len, flags, from, tag, ignore, context);
	from |= ep->undirected;
	if (from != FI_ADDR_UNSPEC) {
		peer = rwk_fi_ep_known(ep, from);
		if (rwk_unlikely(!peer))
			return rwk_fi_recv1_any(ep, buf, len, flags, from, tag, ignore, context);
	}
	return rwk_inbox_recv1(ep->inbox, buf, len, flags, peer, tag, ignore, context);
}

/** The slow half of rwk_fi_recvmsg_flags: any flags. */
int rwk_fi_recvmsg_any(enum rwk_space space, uint64_t flags, uint32_t *out);

/** Looks for messages that have come: before a peek, whose caller may do nothing else in a loop. */
void rwk_fi_look(struct rwk_fi_ep *ep);

/**
 * The engine's flags for fi_recvmsg's, with those of the endpoint (rwk_fi_ep.recvmsg_flags): 0 and *out set, or
 * -FI_EBADFLAGS, or -FI_EINVAL for a senseless combination; or RWK_FI_WAITS.
 */
static inline int rwk_fi_recvmsg_flags(
	const uint32_t recvmsg_flags[2], enum rwk_space space, uint64_t flags, uint32_t *out)
{
	*out = recvmsg_flags[!!(flags & FI_COMPLETION)] | rwk_space_flag(space);
	if (rwk_likely(!(flags & ~(uint64_t)FI_COMPLETION)))
		return 0;
	return rwk_fi_recvmsg_any(space, flags, out);
}

#endif
