/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets on a stream of bytes (links/stream/STREAM.md): each is a frame, its length in front of it, little-endian; the
 * good-bye in place of a length ends one direction in good order. What links/stream and links/tcp read with; how they
 * write is their own.
 *
 *   reader   a link has one for all its streams: the bytes that were read from one of them and are not delivered yet.
 *            No other is read from before they are.
 *   part     a stream has one: the beginning of a frame whose rest has not come
 *
 * Nothing blocks, nothing is locked: one thread at a time, the link's.
 */
#ifndef RWK_FRAMING_H
#define RWK_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RWK_FRAME_HEAD    4u         /* bytes: the length of what follows */
#define RWK_FRAME_MAX     8832u      /* bytes of the longest packet */
#define RWK_FRAME_GOODBYE UINT32_MAX /* in place of a length */
#define RWK_FRAME_READ    65536u     /* bytes that are read at once */

/** Zeroed to begin with. */
struct rwk_frame_part {
	uint8_t *bytes; /* RWK_FRAME_HEAD + RWK_FRAME_MAX; NULL until the first that must wait */
	size_t len;
};

/** Zeroed to begin with. */
struct rwk_frame_reader {
	struct rwk_frame_part *part; /* of the stream whose bytes these are; NULL: there are none */
	size_t at, end;              /* of `bytes`: what is not delivered */
	uint8_t bytes[RWK_FRAME_HEAD + RWK_FRAME_MAX + RWK_FRAME_READ];
};

/**
 * Reads once from the socket of the stream that `part` is of, into a reader that has nothing: the number of bytes,
 * which rwk_frame_next takes apart; 0: the stream has ended; -EAGAIN: nothing is here now; else what the kernel said.
 */
ssize_t rwk_frame_read(struct rwk_frame_reader *r, struct rwk_frame_part *part, int fd);

/**
 * The next packet, in the reader until the next call of either: 0. -EAGAIN: there is no whole one; what there is waits
 * with its stream, and the reader has nothing, as after the others, which end the stream: -ESHUTDOWN the good-bye,
 * -EPROTO no frame, -ENOMEM.
 */
int rwk_frame_next(struct rwk_frame_reader *r, const uint8_t **packet, size_t *len);

/** The stream is read no more: what was read from it is dropped. Also from within the delivery of a packet of it. */
void rwk_frame_forget(struct rwk_frame_reader *r, const struct rwk_frame_part *part);

/** Frees what the part has. */
void rwk_frame_part_close(struct rwk_frame_part *part);

/**
 * Drops what has come on a TCP stream that is being left, a bounded amount at once: true when the peer has ended it,
 * too, or it is broken. What the reader has of another stream stays.
 */
bool rwk_frame_drain(struct rwk_frame_reader *r, int fd);

/** Does that errno of a write mean that the socket has no room now, not that the stream is broken? */
bool rwk_frame_no_room(int err);

#endif
