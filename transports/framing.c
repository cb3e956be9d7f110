/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DRAIN_ROUNDS 16 /* the rest another time */

ssize_t rwk_frame_read(struct rwk_frame_reader *r, struct rwk_frame_part *part, int fd)
{
	ssize_t n = recv(fd, r->bytes + part->len, RWK_FRAME_READ, MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return 0;
	if (part->len)
		memcpy(r->bytes, part->bytes, part->len);
	r->part = part;
	r->at = 0;
	r->end = part->len + (size_t)n;
	part->len = 0;
	return n;
}

/* What is wrong with the stream, or -EAGAIN: no whole frame is here; 0 and its length. */
static int look(const struct rwk_frame_reader *r, uint32_t *len)
{
	size_t here = r->end - r->at;

	if (here < RWK_FRAME_HEAD)
		return -EAGAIN;
	memcpy(len, r->bytes + r->at, RWK_FRAME_HEAD);
	if (*len == RWK_FRAME_GOODBYE)
		return -ESHUTDOWN;
	if (*len > RWK_FRAME_MAX)
		return -EPROTO;
	return here - RWK_FRAME_HEAD < *len ? -EAGAIN : 0;
}

/* The rest, which is no whole frame, waits with its stream for what follows. */
static int keep_part(const struct rwk_frame_reader *r, struct rwk_frame_part *part)
{
	size_t len = r->end - r->at;

	if (len && !part->bytes)
		part->bytes = malloc(RWK_FRAME_HEAD + RWK_FRAME_MAX);
	if (len && !part->bytes)
		return -ENOMEM;
	if (len)
		memcpy(part->bytes, r->bytes + r->at, len);
	part->len = len;
	return -EAGAIN;
}

int rwk_frame_next(struct rwk_frame_reader *r, const uint8_t **packet, size_t *len)
{
	struct rwk_frame_part *part = r->part;
	uint32_t next;
	int err = part ? look(r, &next) : -EAGAIN;

	if (!err) {
		*packet = r->bytes + r->at + RWK_FRAME_HEAD;
		*len = next;
		r->at += RWK_FRAME_HEAD + next;
		return 0;
	}
	r->part = NULL;
	return part && err == -EAGAIN ? keep_part(r, part) : err;
}

void rwk_frame_forget(struct rwk_frame_reader *r, const struct rwk_frame_part *part)
{
	if (r->part == part)
		r->part = NULL;
}

void rwk_frame_part_close(struct rwk_frame_part *part)
{
	free(part->bytes);
	*part = (struct rwk_frame_part){0};
}

bool rwk_frame_drain(struct rwk_frame_reader *r, int fd)
{
	ssize_t n;
	int rounds = DRAIN_ROUNDS;

	do
		n = recv(fd, r->bytes, RWK_FRAME_READ, MSG_DONTWAIT | MSG_TRUNC); /* TCP writes nothing there */
	while (n > 0 && --rounds);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

bool rwk_frame_no_room(int err)
{
	return err == EAGAIN || err == EINTR || err == ENOBUFS || err == ENOMEM;
}
