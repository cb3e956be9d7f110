/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets made by hand, from ordinary sockets, to the adapter `far`. The ICRC here is computed from headers written
 * down here, so that it is not the link's own opinion.
 */
#ifndef RWK_TEST_CHANNEL_ADAPTER_BY_HAND_H
#define RWK_TEST_CHANNEL_ADAPTER_BY_HAND_H

#include "channel_adapter/ends.h"

#include "wire/wire.h"

#define PACKET 2000u
#define PSN    0xfffff0u /* what far expects of near */

/* A socket at 127.0.0.`host`, not the adapter's: another UDP port of the same address. What is read from it waits 20 s
 * at most. */
struct sender {
	int fd;
	uint8_t host;
	uint16_t port;
};

struct sender open_sender(uint8_t host);
void send_bytes(const struct sender *s, const uint8_t *bytes, size_t len);
/** A whole packet into `out`, with the ICRC as if IPv4's identification were `id`. Returns its length. */
size_t make(const struct sender *s, const struct rwk_wire *w, const uint8_t *payload, size_t len, uint16_t id,
	uint8_t *out);
struct rwk_wire to_far(unsigned opcode, uint32_t psn);
void send_packet(const struct sender *s, const struct rwk_wire *w, const void *payload, size_t len);

/** far's qp, whatever state it is in, to RTS towards the socket in place of near: so its packets come there, once. */
void connect_with(const struct sender *s, uint32_t send_psn);
/** The next packet that comes there, its payload in the buffer. Returns how long that is. */
size_t take_packet(const struct sender *s, struct rwk_wire *w, uint8_t payload[PACKET]);

/** far's. */
struct rwk_adapter_counters counters(void);
struct rwk_qp_info info(void);

/** far has taken so many packets from its socket since it was opened. */
void await_packets(uint64_t n);
/** Nothing completes anywhere, and far.in is as it was. */
void untouched(void);

#endif
