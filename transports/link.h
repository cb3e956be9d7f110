/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link: how packets move. What a packet machine (transports/rc, uc, shared_rc) is written against, and what
 * links/sim, later links/udp and links/tcp, implement. A link may lose, duplicate, reorder and delay packets, and says
 * which of these it does; it keeps a packet's bounds. No call blocks. The machines take the time as an argument, so
 * that a link with a virtual clock (sim) drives them as well as the real one.
 */
#ifndef RWK_LINK_H
#define RWK_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/** Who is meant on a link: 24 bytes of the link's own (an IP and a port; a number on the simulator). Compared as bytes.
 */
struct rwk_link_address {
	uint8_t byte[24];
};

/** Nanoseconds since a start of the link's choosing; never goes back. */
typedef uint64_t rwk_time;

enum rwk_link_trait {
	RWK_LINK_MAY_LOSE = 1 << 0,
	RWK_LINK_MAY_DUPLICATE = 1 << 1,
	RWK_LINK_MAY_REORDER = 1 << 2,
	RWK_LINK_IS_STREAM = 1 << 3, /* a broken link is an error for its peer, never a gap */
};

struct rwk_link;

struct rwk_link_ops {
	const char *name;
	unsigned traits; /* of enum rwk_link_trait */
	/** Bytes of the largest packet that reaches `to` whole. */
	size_t (*mtu)(struct rwk_link *l, const struct rwk_link_address *to);
	/**
	 * Hands one packet, gathered from `iov`, to the link; the buffers are the caller's again on return.
	 * 0; -EAGAIN: no room now, a later progress makes some. A packet that is lost later is no error.
	 */
	int (*send)(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count);
	/**
	 * Delivers what has arrived through `packet` (the bytes are the link's, valid until it returns), at most
	 * `budget` packets; returns their number.
	 */
	int (*progress)(struct rwk_link *l, int budget);
	rwk_time (*now)(struct rwk_link *l);
	void (*close)(struct rwk_link *l);
};

/** The part of a link that its user sees; an implementation puts it first in its own. */
struct rwk_link {
	const struct rwk_link_ops *ops;
	void (*packet)(void *user, const struct rwk_link_address *from, const void *bytes, size_t len);
	void *user;
};

#endif
