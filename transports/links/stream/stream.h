/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link on streams that it is given (link.h): connected TCP sockets, each with the packets of one peer. Who made the
 * connection, and what was said on it before, is not the link's affair: from rwk_streams_take on there are frames on it
 * (STREAM.md), in both directions, and nothing else.
 *
 *   stream   a socket, from rwk_streams_take to its word or rwk_streams_leave
 *   frame    a packet with its length in front
 *   segment  what TCP sends as one packet of its own. Where that can be had, each begins with a frame and holds whole
 *            frames alone (S2-13): as many as fit (S4-12), or one
 *
 * How a stream ends, as `word` (link.h) tells it, after all packets that had come were delivered:
 *
 *   -ESHUTDOWN   the peer has left in good order
 *   -ECONNRESET  it ended without a good-bye: with its process, or by a peer that says none
 *   -EPROTO      what came is no frame
 *   -ETIMEDOUT, -EHOSTUNREACH and the like: its kernel does not answer any more; nothing is known about the process
 *
 * An idle stream asks the peer's kernel after five seconds of silence whether it is there, and ends five seconds after
 * the first question that is not answered; one with data under way ends when the kernel gives up sending it (minutes).
 * A stopped process leads to no word.
 *
 * Nothing but close blocks. One thread at a time. Upcalls come from progress; they may call send, flush and
 * rwk_streams_leave, not progress, take, give_back or close.
 */
#ifndef RWK_LINKS_STREAM_H
#define RWK_LINKS_STREAM_H

#include "framing.h"
#include "link.h"

#include <stdbool.h>

#define RWK_STREAMS_MTU RWK_FRAME_MAX /* bytes of the longest packet */

/**
 * Makes a link without a stream. `packet`, `word` and `user` of the link are the caller's to set before the first
 * progress. 0 and *l set; -EMFILE; -ENOMEM. Its close leaves every stream, and waits until the peers' kernels have what
 * send has taken: for two seconds at most, from when each was left.
 */
int rwk_streams_open(struct rwk_link **l);

/**
 * Takes a connected TCP socket, as it is: from now on it is the link's, which closes it in the end; `at` names it.
 * `alone`: each packet has a segment to itself; else several may share one. `owner` is the caller's
 * (rwk_streams_owner). 0; -EINVAL: no TCP socket; -ENOTCONN: it is not connected (any more); -EMFILE; -ENOMEM: it is
 * still the caller's then.
 */
int rwk_streams_take(struct rwk_link *l, int fd, bool alone, void *owner, struct rwk_link_address *at);

/** As if it had not been taken: the socket is the caller's again. Before anything is sent, and before progress. */
void rwk_streams_give_back(struct rwk_link *l, const struct rwk_link_address *at);

/** What its stream was taken with, also from within the word of its end; NULL: there is none. */
void *rwk_streams_owner(struct rwk_link *l, const struct rwk_link_address *at);

/**
 * Ends the stream in good order: what send has taken still goes, for two seconds at most while progress is called; the
 * peer hears -ESHUTDOWN. No more word of it here; packets that come are dropped. Nothing, if there is no such stream.
 */
void rwk_streams_leave(struct rwk_link *l, const struct rwk_link_address *at);

/*
 * Of link.h's calls: mtu is the longest packet that fits a segment of that stream beside its length; longer ones, up to
 * RWK_STREAMS_MTU, are sent too, over several segments. send copies all, and says -ENOTCONN where no stream is open,
 * -EMSGSIZE beyond RWK_STREAMS_MTU, -EAGAIN while the stream's buffer (256 KiB) is full. What it has taken is delivered
 * in order and once, or the stream ends.
 */

#endif
