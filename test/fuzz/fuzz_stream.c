/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes on a stream of packets (transports/links/stream), coming in pieces that the input chooses. What must hold:
 * no packet is longer than there may be, packets are the bytes that came, in order, and what is no frame ends the
 * stream. What a packet says is for others to look at (fuzz_wire).
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "links/stream/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int status;
static size_t delivered; /* bytes of the input that were in packets, with their lengths */
static const uint8_t *input;
static size_t input_len;

static void must(int holds)
{
	if (!holds)
		abort();
}

/* In place of stream.c. */
void rwk_streams_end(struct stream *s, int err)
{
	must(!status);
	status = err;
	s->link->reading = NULL;
}

void rwk_streams_drop(struct stream *s)
{
	(void)s;
	abort();
}

void rwk_streams_watch_out(struct stream *s, bool wanted)
{
	(void)s;
	(void)wanted;
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *packet, size_t len)
{
	uint32_t written;

	(void)user;
	(void)from;
	must(!status && len <= RWK_STREAMS_MTU && delivered + FRAME_HEAD + len <= input_len);
	memcpy(&written, input + delivered, FRAME_HEAD);
	must(written == len && !memcmp(packet, input + delivered + FRAME_HEAD, len));
	delivered += FRAME_HEAD + len;
}

/* What is left when all was read: the beginning of a frame, or what ended the stream. */
static void look_at_rest(const struct stream *s)
{
	uint32_t next = 0;

	if (status == -ECONNRESET || !status) {
		must(s->part_len == input_len - delivered && s->part_len < FRAME_HEAD + RWK_STREAMS_MTU);
		return;
	}
	must(input_len - delivered >= FRAME_HEAD);
	memcpy(&next, input + delivered, FRAME_HEAD);
	must(status == (next == GOODBYE ? -ESHUTDOWN : -EPROTO));
	must(next > RWK_STREAMS_MTU);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct link link;
	struct stream s = {.link = &link};
	size_t step = len ? 1 + bytes[0] * 17u : 1;
	int pair[2];

	input = bytes;
	input_len = len;
	delivered = 0;
	status = 0;
	link.pub.packet = on_packet;
	link.reading = NULL;
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	s.fd = pair[0];
	for (size_t at = 0; at < len && !status; at += step) {
		size_t n = len - at < step ? len - at : step;

		must(send(pair[1], bytes + at, n, 0) == (ssize_t)n);
		for (int i = 0; i < 4 && !status; i++) { /* a budget of 1, and of many */
			if (link.reading)
				rwk_frames_deliver(&link, i ? 1000000 : 1);
			else
				rwk_frames_read(&s, i ? 1000000 : 1);
		}
	}
	close(pair[1]);
	if (!status)
		look_at_rest(&s);
	if (!status)
		rwk_frames_read(&s, 1000000);
	must(status);
	look_at_rest(&s);
	close(pair[0]);
	free(s.part);
	return 0;
}
