/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link: how packets move. What a packet machine (transports/rc, uc, shared_rc) is written against, and what
 * links/sim, links/udp and links/tcp implement. A link may lose, duplicate, reorder and delay packets, and says
 * which of these it does; it keeps a packet's bounds. No call blocks. The machines take the time as an argument, so
 * that a link with a virtual clock (sim) drives them as well as the real one.
 */
#ifndef RWK_LINK_H
#define RWK_LINK_H

#include <stdbool.h>
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

#define RWK_LINK_COPIED     256u /* bytes */
#define RWK_LINK_PSEUDO_MAX 56u  /* bytes */

/**
 * Bytes of packets that udp sends in one batch at most: below 64 KB with headers, and few enough for an skb of single
 * pages. Who asks for packets asks for no more at a time.
 */
#define RWK_LINK_BATCH (60u << 10)

struct rwk_link;

struct rwk_link_ops {
	const char *name;
	unsigned traits; /* of enum rwk_link_trait */
	/** Bytes of the largest packet that reaches `to` whole. */
	size_t (*mtu)(struct rwk_link *l, const struct rwk_link_address *to);
	/**
	 * Hands one packet to the link: the pieces of `iov`, one behind the other. Pieces of at most RWK_LINK_COPIED
	 * bytes are the caller's again on return; longer ones may be read until the next flush, and stay as they are
	 * till then. 0: taken; if it is lost later that is no error. Else nothing of it was taken: -EAGAIN: no room
	 * now, a later progress makes some; -EMSGSIZE: longer than the link carries; -ENOTCONN: no stream is open to
	 * there; -EHOSTUNREACH: the simulator has no such node.
	 */
	int (*send)(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count);
	/**
	 * May be NULL: as send, but that the packet is made in the link's own memory: `len` bytes, which the caller
	 * writes, all of them, before any other call of the link. NULL: nothing was taken, and send says why not, or
	 * does it.
	 */
	void *(*reserve)(struct rwk_link *l, const struct rwk_link_address *to, size_t len);
	/**
	 * May be NULL: as send of one piece and flush, by the shortest way, after which the piece is the caller's
	 * again. 0: it is sent; else nothing was done, and send says why not, or does it.
	 */
	int (*hasten)(struct rwk_link *l, const struct rwk_link_address *to, const void *bytes, size_t len);
	/** Sends off all that send has taken, as far as there is room; what must wait is copied first. */
	void (*flush)(struct rwk_link *l);
	/**
	 * Delivers what has arrived through `packet` (the bytes are the link's, valid until it returns), at most
	 * `budget` packets; returns their number. It need not look everywhere each time: that nothing is here, only
	 * arm tells.
	 */
	int (*progress)(struct rwk_link *l, int budget);
	rwk_time (*now)(struct rwk_link *l);
	/**
	 * What an ICRC between this end and `peer` begins with: 8 bytes of 0xff and the headers below BTH as the ICRC
	 * sees them (wire/FORMAT.md), for a packet of `len` bytes from BTH to ICRC, `outgoing` or not, into `out`
	 * (RWK_LINK_PSEUDO_MAX bytes). The identification of IPv4 is written as `id`. Returns their number; 0: there is
	 * no way to `peer` now, and so no ICRC that is right; ask again. NULL: the link has no such headers, or checks
	 * its bytes itself; so users call rwk_link_pseudo.
	 */
	size_t (*pseudo)(struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len,
		uint16_t id, uint8_t *out);
	/**
	 * May be NULL. Most packets come from `peer`, and go there: the link may do something for that, as it did for
	 * the last that it was told before. Only from within `packet`, of a packet that came from there.
	 */
	void (*favour)(struct rwk_link *l, const struct rwk_link_address *peer);
	/**
	 * To sleep, as rwk_transport.arm and wait_fd, but that there may be several descriptors: i counts from 0 to the
	 * first that is -1. -EAGAIN: something is here.
	 */
	int (*arm)(struct rwk_link *l);
	int (*wait_fd)(struct rwk_link *l, int i);
	/** May be NULL, and then it is so: has all that send has taken come to the peers' hosts? */
	bool (*sent)(struct rwk_link *l);
	void (*close)(struct rwk_link *l);
};

/** The part of a link that its user sees; an implementation puts it first in its own. */
struct rwk_link {
	const struct rwk_link_ops *ops;
	void (*packet)(void *user, const struct rwk_link_address *from, const void *bytes, size_t len);
	/**
	 * From progress, may be NULL: evidence about who is at `who`. On a stream: 0, it is open; negative, why it
	 * is none any more: -ECONNREFUSED nobody listens there, -ECONNRESET its process has ended, -ESTALE another
	 * process than the one asked for is there, -ESHUTDOWN it has left in good order, -EACCES, -EPROTO and
	 * -EPROTONOSUPPORT what is there is none of ours; -ETIMEDOUT, -EHOSTUNREACH no way through, -EMFILE and the
	 * like something is missing at this end, which are evidence of nothing. On udp -ECONNREFUSED: the kernel
	 * there says that the port is closed; a hint to look closer.
	 */
	void (*word)(void *user, const struct rwk_link_address *who, int status);
	void *user;
};

/** As ops.pseudo; 0 for a link without such headers. */
static inline size_t rwk_link_pseudo(
	struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len, uint16_t id, uint8_t *out)
{
	return l->ops->pseudo ? l->ops->pseudo(l, peer, outgoing, len, id, out) : 0;
}

#endif
