/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the stream link share. stream.c: the link, its streams, their ends; frames.c: what is on them. */
#ifndef RWK_LINKS_STREAM_INTERNAL_H
#define RWK_LINKS_STREAM_INTERNAL_H

#include "base/compiler.h"
#include "base/keyed.h"
#include "base/list.h"
#include "framing.h"
#include "links/stream/stream.h"

#define OUT_BYTES 262144u

enum state {
	OPEN,    /* in the table */
	LEAVING, /* what is left to go goes, until `due`; what comes is dropped, until the peer ends it too */
	ENDED,   /* no socket; its word is still to be told */
	DEAD,    /* nothing but memory that an upper call may still look at; freed by the end of progress */
};

struct stream {
	struct link *link;
	enum state state;
	int fd;
	void *owner;
	struct rwk_link_address at;
	UT_hash_handle hh;
	struct rwk_list all;   /* of the link */
	struct rwk_list dirty; /* something was sent since the last flush */
	struct rwk_list word;  /* `status` is to be told */
	int status;
	rwk_time due;   /* LEAVING */
	bool wants_out; /* EPOLLOUT is asked for: the socket had no room */
	int broke;      /* errno of the write that found it broken; the reading side tells of it */

	size_t segment; /* bytes */
	bool alone;     /* one frame a segment */
	/* What is to go, out[out_at] to out[out_end]: first the rest of a segment that has begun to go, then frames. */
	uint8_t *out; /* OUT_BYTES + RWK_FRAME_HEAD, so that there is always room for the good-bye */
	size_t out_at, out_end, rest;

	struct rwk_frame_part part;
};

struct link {
	struct rwk_link pub;
	int epoll;
	uint64_t taken; /* streams, ever */
	struct stream *table;
	struct stream *last;    /* that was found last */
	struct stream *telling; /* whose word is being told; else NULL */
	struct rwk_list all, dirty, words;
	unsigned leaving; /* of `all` */
	bool any_dead;
	struct rwk_frame_reader in;
};

/* stream.c */
void rwk_streams_end(struct stream *s, int status);        /* with a word */
void rwk_streams_drop(struct stream *s);                   /* without */
void rwk_streams_watch_out(struct stream *s, bool wanted); /* that there is room again */

/* frames.c; those with a stream may end it */
int rwk_frames_put(struct stream *s, const struct iovec *iov, int count);
void rwk_frames_put_goodbye(struct stream *s);
void rwk_frames_flush(struct stream *s);            /* as far as the socket has room */
int rwk_frames_read(struct stream *s, int budget);  /* returns how many packets were delivered */
int rwk_frames_deliver(struct link *l, int budget); /* those read already */
void rwk_frames_drain(struct stream *s);            /* LEAVING */

#endif
