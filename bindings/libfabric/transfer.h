/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What plain and tagged calls share: from libfabric's arguments to the engine's. The lock-free way is inline and short,
 * the way under the domain's lock is a function around it.
 */
#ifndef RWK_FI_TRANSFER_H
#define RWK_FI_TRANSFER_H

#include "bindings/libfabric/ep.h"

/** A send of one buffer. */
static inline ssize_t rwk_fi_send1_unlocked(struct rwk_fi_ep *ep, enum rwk_space space, const void *buf, size_t len,
	fi_addr_t to, uint64_t tag, uint64_t data, uint32_t flags, void *context)
{
	struct rwk_peer *peer;
	int err = rwk_fi_ep_peer(ep, to, &peer);

	if (rwk_unlikely(err))
		return err;
	return rwk_engine_send1(ep->engine, space, peer, buf, len, tag, data, flags, context);
}

ssize_t rwk_fi_send1_locked(struct rwk_fi_ep *ep, enum rwk_space space, const void *buf, size_t len, fi_addr_t to,
	uint64_t tag, uint64_t data, uint32_t flags, void *context);

static inline ssize_t rwk_fi_send1(struct rwk_fi_ep *ep, enum rwk_space space, const void *buf, size_t len,
	fi_addr_t to, uint64_t tag, uint64_t data, uint32_t flags, void *context)
{
	if (rwk_unlikely(ep->lock != NULL))
		return rwk_fi_send1_locked(ep, space, buf, len, to, tag, data, flags, context);
	return rwk_fi_send1_unlocked(ep, space, buf, len, to, tag, data, flags, context);
}

/** A send of several pieces. */
ssize_t rwk_fi_sendv(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov, size_t count, fi_addr_t to,
	uint64_t tag, uint64_t data, uint32_t flags, void *context);

/** The slow half of rwk_fi_sendmsg_flags: any flags. */
int rwk_fi_sendmsg_any(const struct rwk_fi_ep *ep, uint64_t flags, uint32_t *out);

/** The engine's flags for fi_sendmsg's: 0 and *out set, or -FI_EBADFLAGS. */
static inline int rwk_fi_sendmsg_flags(const struct rwk_fi_ep *ep, enum rwk_space space, uint64_t flags, uint32_t *out)
{
	*out = ep->sendmsg_flags[!!(flags & FI_COMPLETION)] | (space == RWK_TAGGED ? RWK_FI_TAGGED_SEND : 0);
	if (rwk_likely(!(flags & ~(uint64_t)FI_COMPLETION) && !ep->sendmsg_delivered))
		return 0;
	return rwk_fi_sendmsg_any(ep, flags, out);
}

/** A receive, peek, claim or discard. */
static inline ssize_t rwk_fi_recv_unlocked(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov,
	size_t count, fi_addr_t from, uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	struct rwk_peer *peer = NULL;
	int err;

	from |= ep->undirected;
	if (from != FI_ADDR_UNSPEC) {
		err = rwk_fi_ep_peer(ep, from, &peer);
		if (rwk_unlikely(err))
			return err;
	}
	return rwk_engine_recv(ep->engine, space, peer, iov, count, tag, ignore, flags, context);
}

ssize_t rwk_fi_recv_locked(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov, size_t count,
	fi_addr_t from, uint64_t tag, uint64_t ignore, uint32_t flags, void *context);

static inline ssize_t rwk_fi_recv(struct rwk_fi_ep *ep, enum rwk_space space, const struct iovec *iov, size_t count,
	fi_addr_t from, uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	if (rwk_unlikely(ep->lock != NULL))
		return rwk_fi_recv_locked(ep, space, iov, count, from, tag, ignore, flags, context);
	return rwk_fi_recv_unlocked(ep, space, iov, count, from, tag, ignore, flags, context);
}

/** The slow half of rwk_fi_recvmsg_flags: any flags. */
int rwk_fi_recvmsg_any(enum rwk_space space, uint64_t flags, uint32_t *out);

/** Looks for messages that have come: before a peek, whose caller may do nothing else in a loop. */
void rwk_fi_look(struct rwk_fi_ep *ep);

/** The engine's flags for fi_recvmsg's: 0 and *out set, or -FI_EBADFLAGS, or -FI_EINVAL for a senseless combination. */
static inline int rwk_fi_recvmsg_flags(const struct rwk_fi_ep *ep, enum rwk_space space, uint64_t flags, uint32_t *out)
{
	*out = ep->recvmsg_flags[!!(flags & FI_COMPLETION)];
	if (rwk_likely(!(flags & ~(uint64_t)FI_COMPLETION)))
		return 0;
	return rwk_fi_recvmsg_any(space, flags, out);
}

#endif
