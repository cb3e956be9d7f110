/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes on a stream of packets (transports/framing.h), coming in pieces that the input chooses. What must hold: no
 * packet is longer than there may be, packets are the bytes that came, in order, and what is no frame ends the stream.
 * What a packet says is for others to look at (fuzz_wire).
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "framing.h"

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

static void look_at_packet(const uint8_t *packet, size_t len)
{
	uint32_t written;

	must(len <= RWK_FRAME_MAX && delivered + RWK_FRAME_HEAD + len <= input_len);
	memcpy(&written, input + delivered, RWK_FRAME_HEAD);
	must(written == len && !memcmp(packet, input + delivered + RWK_FRAME_HEAD, len));
	delivered += RWK_FRAME_HEAD + len;
}

/* What is left when all was read: the beginning of a frame, or what ended the stream. */
static void look_at_rest(const struct rwk_frame_part *part)
{
	uint32_t next = 0;

	if (!status) {
		must(part->len == input_len - delivered && part->len < RWK_FRAME_HEAD + RWK_FRAME_MAX);
		return;
	}
	must(input_len - delivered >= RWK_FRAME_HEAD);
	memcpy(&next, input + delivered, RWK_FRAME_HEAD);
	must(status == (next == RWK_FRAME_GOODBYE ? -ESHUTDOWN : -EPROTO));
	must(next > RWK_FRAME_MAX);
}

/* All that has come. */
static void deliver(struct rwk_frame_reader *r, struct rwk_frame_part *part, int fd)
{
	const uint8_t *packet;
	size_t len;
	int err;

	while (!status && rwk_frame_read(r, part, fd) > 0) {
		while (!(err = rwk_frame_next(r, &packet, &len)))
			look_at_packet(packet, len);
		must(!r->part);
		if (err != -EAGAIN)
			status = err;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct rwk_frame_reader reader;
	struct rwk_frame_part part = {0};
	size_t step = len ? 1 + bytes[0] * 17u : 1;
	int pair[2];

	input = bytes;
	input_len = len;
	delivered = 0;
	status = 0;
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (size_t at = 0; at < len && !status; at += step) {
		size_t n = len - at < step ? len - at : step;

		must(send(pair[1], bytes + at, n, 0) == (ssize_t)n);
		deliver(&reader, &part, pair[0]);
	}
	look_at_rest(&part);
	close(pair[1]);
	must(status || rwk_frame_read(&reader, &part, pair[0]) == 0);
	close(pair[0]);
	rwk_frame_part_close(&part);
	return 0;
}
