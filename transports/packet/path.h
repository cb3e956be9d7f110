/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where packets go, and how they get there: put.c sends them, pieces.c in pieces where they are too long, and vote.c
 * sees whom most of those that come are from.
 */
#ifndef RWK_PACKET_PATH_H
#define RWK_PACKET_PATH_H

#include "packet/packet.h"
#include "wire/crc32.h"
#include "wire/wire.h"

/**
 * Which CRC is the ICRC of a packet for that QP. Ours are taken by our own ends alone, and CRC-32C takes half of
 * CRC-32's time; what is for QPN 1 is to be understood by other versions of us, too.
 */
static inline enum rwk_crc rwk_packet_crc(uint32_t qpn)
{
	return qpn == RWK_WIRE_GSI_QPN ? RWK_CRC_32 : RWK_CRC_32C;
}

/** Where packets go. */
struct rwk_packet_path {
	struct rwk_link_address to;
	uint8_t way;
	uint16_t cut;   /* longer payloads go in pieces of so many bytes (narrow.c); 0: all packets are whole */
	uint32_t begun; /* ICRC's beginning for packets of begun_len bytes, none for QPN 1 */
	uint32_t begun_len;
};

/* port.c */
/** The link has taken a packet. */
void rwk_packet_sent(
	struct rwk_port *port, int way, const struct rwk_link_address *to, const struct iovec *iov, int count);

/* put.c */
/** Sends a packet by that path: 0 or -EAGAIN. */
int rwk_packet_put(struct rwk_port *port, struct rwk_packet_path *path, const struct rwk_wire *w,
	const struct iovec *payload, int count);
int rwk_packet_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count);

/* pieces.c */
/** Sends a packet of `len` bytes, all that it consists of in iov, in pieces: 0 or -EAGAIN. */
int rwk_packet_put_pieces(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct iovec *iov, int count, size_t len);
/** Is that, the payload of a datagram to QPN 1, a piece of a packet? Then: it has come. */
bool rwk_packet_is_piece(const void *payload, size_t len);
void rwk_packet_piece(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *payload, size_t len);

/* vote.c */
/**
 * By which path do most packets come? Each is a vote for its path and against all others (R. Boyer, J Moore, "MJRTY",
 * 1981). Whose path is far enough ahead becomes the link's favourite, if it is eligible; it takes more to take
 * another's place. Called from within the link's `packet`, of one that comes from `seen`.
 */
void rwk_packet_vote(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct rwk_link_address *seen, bool eligible);
/** The path is no more. */
void rwk_packet_vote_ends(struct rwk_port *port, const struct rwk_packet_path *path);

#endif
