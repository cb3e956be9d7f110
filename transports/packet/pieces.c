/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that a way does not carry whole any more (narrow.c) go in pieces, each a datagram to QPN 1 like a greeting;
 * HANDSHAKE.md has the layout. Who has all of them has the packet, with its ICRC, as if it had come whole. What is lost
 * of one is lost with it: the machines send it again. Of the packets whose pieces come, the last PUZZLES are kept.
 */
#include "packet/internal.h"

#include <assert.h>
#include <endian.h>

#define MAGIC      "RWKP"
#define HEAD       16u /* bytes in front of a piece */
#define PIECES_MAX 32u
#define PUZZLES    8u
#define PACKET_MAX (RWK_WIRE_HEADER_MAX + RWK_WIRE_PMTU_MAX + 3 + RWK_WIRE_ICRC)

static_assert(PACKET_MAX <= PIECES_MAX * (256 - HEAD), "the shortest pieces are not too many");

/** As on the wire; little-endian. */
struct head {
	char magic[4];
	uint32_t serial; /* of the packet, among those that its sender has cut */
	uint16_t at, of; /* where the piece lies in it, and how long it is */
	uint16_t unit;   /* bytes of each piece but the last */
	uint16_t zero;
};

static_assert(sizeof(struct head) == HEAD, "a piece's head has no gaps");

struct rwk_packet_puzzle {
	struct rwk_link_address from;
	uint32_t serial, have; /* a bit for each piece; 0: this one is free */
	uint16_t of, unit;
	uint8_t way;
	uint8_t bytes[PACKET_MAX];
};

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
	crc = rwk_icrc_begin(pseudo, rwk_link_pseudo(l, &path->to, true, all, 0, pseudo));
	crc = rwk_icrc_packet(crc, front, header, part, (int)count, pad);
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
	struct head head = {.magic = MAGIC,
		.serial = htole32(++port->cut_serial),
		.of = htole16((uint16_t)len),
		.unit = htole16((uint16_t)unit)};

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

/** The packet that the piece is of, or a free place, or the one that has had its place for longest. */
static struct rwk_packet_puzzle *find(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct head *head)
{
	struct rwk_packet_puzzle *p;

	for (p = port->puzzles; p < port->puzzles + PUZZLES; p++)
		if (p->have && p->serial == head->serial && p->way == way && p->of == le16toh(head->of) &&
			p->unit == le16toh(head->unit) && !memcmp(&p->from, from, sizeof(*from)))
			return p;
	p = &port->puzzles[port->next_puzzle++ % PUZZLES];
	p->from = *from;
	p->serial = head->serial;
	p->have = 0;
	p->of = le16toh(head->of);
	p->unit = le16toh(head->unit);
	p->way = (uint8_t)way;
	return p;
}

static bool is_sound(const struct head *head, size_t len)
{
	size_t at = le16toh(head->at), of = le16toh(head->of), unit = le16toh(head->unit);

	if (head->zero || !unit || at % unit || at >= of || of > PACKET_MAX || (of - 1) / unit >= PIECES_MAX)
		return false;
	return len == (of - at < unit ? of - at : unit);
}

void rwk_packet_piece(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *payload, size_t len)
{
	struct rwk_packet_puzzle *p;
	uint32_t all;
	struct head head;

	memcpy(&head, payload, HEAD);
	if (way == RWK_WAY_STREAM || !is_sound(&head, len - HEAD)) {
		port->count.malformed++;
		return;
	}
	if (!port->puzzles)
		port->puzzles = calloc(PUZZLES, sizeof(*port->puzzles));
	if (!port->puzzles)
		return; /* lost, as on the way */
	port->count.pieces_in++;
	p = find(port, way, from, &head);
	memcpy(p->bytes + le16toh(head.at), payload + HEAD, len - HEAD);
	p->have |= 1u << le16toh(head.at) / p->unit;
	all = UINT32_MAX >> (31 - (p->of - 1) / p->unit);
	if (p->have != all)
		return;
	p->have = 0;
	if (p->bytes[0] == (RWK_WIRE_UD | RWK_WIRE_SEND_ONLY)) { /* of pieces no pieces are made */
		port->count.malformed++;
		return;
	}
	rwk_packet_arrived(port, way, from, p->bytes, p->of);
}
