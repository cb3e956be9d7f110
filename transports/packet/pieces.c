/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that a way does not carry whole any more (narrow.c) go in pieces, each a datagram to QPN 1 like a greeting;
 * HANDSHAKE.md has the layout. Who has all of them has the packet, with its ICRC, as if it had come whole. What is lost
 * of one is lost with it: the machines send it again. Of the packets whose pieces come, the last PUZZLES are kept; of
 * those that come to a domain's socket, of which each of its processes may get some pieces, the domain keeps them
 * (shared_rc.h).
 */
#include "packet/path.h"
#include "packet/port.h"

#include "base/iov.h"
#include "machine.h"
#include "memory/puzzle.h"
#include "shared_rc/shared_rc.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC   "RWKP"
#define HEAD    16u /* bytes in front of a piece */
#define PUZZLES 32u
#define QPN_AT  4u /* the word of a packet whose low 24 bits are its QPN */

static_assert(RWK_PUZZLE_MAX <= RWK_PUZZLE_PIECES * (256 - HEAD), "the shortest pieces are not too many");

/** As on the wire; little-endian. */
struct head {
	char magic[4];
	uint32_t serial; /* of the packet, among those that its sender has cut */
	uint16_t at, of; /* where the piece lies in it, and how long it is */
	uint16_t unit;   /* bytes of each piece but the last */
	uint16_t zero;
};

static_assert(sizeof(struct head) == HEAD, "a piece's head has no gaps");

bool rwk_packet_is_piece(const void *payload, size_t len)
{
	return len > HEAD && !memcmp(payload, MAGIC, 4);
}

/** One piece: its head, and what of the packet it carries. As the link's send. */
static int put_piece(struct rwk_port *port, const struct rwk_packet_path *path, const struct head *head,
	const struct iovec *part, unsigned count, size_t len)
{
	const struct rwk_wire w = {.opcode = RWK_WIRE_UD | RWK_WIRE_SEND_ONLY,
		.migrated = true,
		.pkey = RWK_WIRE_PKEY,
		.qpn = RWK_WIRE_GSI_QPN,
		.psn = le32toh(head->serial) & RWK_PSN_MASK,
		.deth = {RWK_PACKET_GSI_QKEY, RWK_WIRE_GSI_QPN}};
	uint8_t front[RWK_WIRE_HEADER_MAX + HEAD], tail[3 + RWK_WIRE_ICRC] = {0}, pseudo[RWK_LINK_PSEUDO_MAX];
	struct rwk_link *l = port->link[path->way];
	struct iovec iov[2 * RWK_MACHINE_IOV];
	size_t header = rwk_wire_pack(&w, HEAD + len, front), all;
	unsigned pad = -len & 3;
	uint32_t crc;
	int rc;

	memcpy(front + header, head, HEAD);
	header += HEAD;
	all = header + len + pad + RWK_WIRE_ICRC;
	crc = rwk_icrc_begin(RWK_CRC_32, pseudo, rwk_link_pseudo(l, &path->to, true, all, 0, pseudo));
	crc = rwk_icrc_packet(RWK_CRC_32, crc, front, header, part, (int)count, pad);
	memcpy(tail + pad, &crc, RWK_WIRE_ICRC);
	iov[0] = (struct iovec){front, header};
	memcpy(iov + 1, part, count * sizeof(*part));
	iov[count + 1] = (struct iovec){tail, pad + RWK_WIRE_ICRC};
	rc = l->ops->send(l, &path->to, iov, (int)count + 2);
	if (rc)
		return rc;
	port->count.pieces_out++;
	rwk_packet_sent(port, path->way, &path->to, iov, (int)count + 2);
	return 0;
}

int rwk_packet_put_pieces(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct iovec *iov, int count, size_t len)
{
	size_t unit = path->cut - HEAD;
	struct head head = {.magic = MAGIC, .of = htole16((uint16_t)len), .unit = htole16((uint16_t)unit)};

	/* Siblings send from the same address: each begins somewhere. */
	if (!port->cut_serial && rwk_packet_random(&port->cut_serial, sizeof(port->cut_serial)))
		return -EAGAIN;
	head.serial = htole32(++port->cut_serial);
	for (size_t at = 0; at < len; at += unit) {
		struct iovec part[RWK_MACHINE_IOV + 2];
		size_t n = len - at < unit ? len - at : unit;
		unsigned parts = rwk_iov_slice(iov, (size_t)count, at, &n, part, RWK_MACHINE_IOV + 2);
		int rc;

		head.at = htole16((uint16_t)at);
		rc = put_piece(port, path, &head, part, parts, n);
		if (rc)
			return at ? 0 : rc; /* the rest is lost, as on the way */
	}
	return 0;
}

/** The packet that the piece is of, or the place of the one that has had its own for longest. */
static struct rwk_puzzle *find(
	struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_piece *piece)
{
	for (struct rwk_puzzle *p = port->puzzles; p < port->puzzles + PUZZLES; p++)
		if (rwk_puzzle_is_of(p, from, piece))
			return p;
	return &port->puzzles[port->next_puzzle++ % PUZZLES];
}

/**
 * All pieces of a packet are there. None is for QPN 1: pieces of pieces would let a stranger choose how deep they nest.
 */
static void whole_arrived(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *whole, size_t of)
{
	uint32_t qpn = 0;

	if (of >= QPN_AT + sizeof(qpn))
		memcpy(&qpn, whole + QPN_AT, sizeof(qpn));
	if ((be32toh(qpn) & RWK_PSN_MASK) == RWK_WIRE_GSI_QPN) {
		port->count.malformed++;
		return;
	}
	rwk_packet_arrived(port, way, from, whole, of);
}

/** A sound piece has come to our own socket. */
static void take_own(struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_piece *piece)
{
	struct rwk_puzzle *p;
	size_t of;

	if (!port->puzzles)
		port->puzzles = calloc(PUZZLES, sizeof(*port->puzzles));
	if (!port->puzzles)
		return; /* lost, as on the way */
	p = find(port, from, piece);
	of = rwk_puzzle_put(p, from, piece);
	if (of)
		whole_arrived(port, way, from, p->bytes, of);
}

/** One has come to the domain's. */
static rwk_outline void take_of_domain(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_piece *piece)
{
	uint8_t whole[RWK_PUZZLE_MAX];
	size_t of = rwk_src_piece(port->view, from, piece, whole);

	if (of)
		whole_arrived(port, way, from, whole, of);
}

void rwk_packet_piece(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *payload, size_t len)
{
	struct rwk_piece piece;
	struct head head;

	memcpy(&head, payload, HEAD);
	piece = (struct rwk_piece){.serial = head.serial,
		.at = le16toh(head.at),
		.of = le16toh(head.of),
		.unit = le16toh(head.unit),
		.len = (uint16_t)(len - HEAD),
		.bytes = payload + HEAD};
	if (way == RWK_WAY_STREAM || head.zero || len - HEAD > RWK_PUZZLE_MAX || !rwk_piece_is_sound(&piece)) {
		port->count.malformed++;
		return;
	}
	port->count.pieces_in++;
	if (way == RWK_WAY_DOMAIN)
		take_of_domain(port, way, from, &piece);
	else
		take_own(port, way, from, &piece);
}
