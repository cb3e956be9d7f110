/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets out: headers, pad and ICRC around the payload that a machine names, and to the link; in pieces, where the way
 * has become narrow.
 */
#include "packet/channel.h"
#include "packet/path.h"
#include "packet/port.h"

#include "base/iov.h"
#include "machine.h"
#include "wire/icrc.h"

#include <string.h>

#define PROBED     20u   /* headers of a probe; what is not longer than it gets through */
#define JOINED_MAX 2048u /* bytes up to which a copy is cheaper than several pieces */

/** The ICRC of what goes that way begins like this; lengths repeat. Without a way it is wrong, and asked for again. */
static uint32_t begun(struct rwk_packet_path *path, struct rwk_link *l, size_t len)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];

	if (path->begun_len != len) {
		size_t n = rwk_link_pseudo(l, &path->to, true, len, 0, pseudo);

		path->begun_len = n || !l->ops->pseudo ? (uint32_t)len : 0;
		path->begun = rwk_icrc_begin(RWK_CRC_32C, pseudo, n);
	}
	return path->begun;
}

/** On a stream it is 0: TCP has a check of its own, and nobody looks at this one. */
static uint32_t icrc(struct rwk_packet_path *path, struct rwk_link *l, size_t size, const uint8_t *header,
	size_t header_len, const struct iovec *payload, int count, unsigned pad)
{
	if (path->way == RWK_WAY_STREAM)
		return 0;
	return rwk_icrc_packet(RWK_CRC_32C, begun(path, l, size), header, header_len, payload, count, pad);
}

/** The link copies it anyway, or takes it at once: headers, payload, pad and ICRC in one piece. */
static void join(struct rwk_packet_path *path, struct rwk_link *l, uint8_t *packet, size_t header_len,
	const struct iovec *payload, int count, size_t covered)
{
	size_t len = rwk_iov_gather(payload, (size_t)count, 0, packet + header_len, covered - header_len);
	uint32_t crc;

	memset(packet + header_len + len, 0, covered - header_len - len);
	crc = icrc(path, l, covered + RWK_WIRE_ICRC, packet, covered, NULL, 0, 0);
	memcpy(packet + covered, &crc, RWK_WIRE_ICRC);
}

/** The packet is with the link, which says so, or why not. */
static int handed_over(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct iovec *iov, int count, int rc)
{
	if (!rc)
		rwk_packet_sent(port, path->way, &path->to, iov, count);
	return rc;
}

/* As rwk_packet_put, from a copy. */
static rwk_noinline int put_copy(struct rwk_port *port, struct rwk_packet_path *path, const uint8_t *header,
	size_t header_len, const struct iovec *payload, int count, size_t covered)
{
	uint8_t packet[RWK_WIRE_HEADER_MAX + RWK_WIRE_OWN_MAX + RWK_WIRE_ICRC];
	struct iovec iov = {packet, covered + RWK_WIRE_ICRC};
	struct rwk_link *l = port->link[path->way];
	int rc;

	memcpy(packet, header, header_len);
	join(path, l, packet, header_len, payload, count, covered);
	if (path->cut && covered > path->cut + PROBED)
		rc = rwk_packet_put_pieces(port, path, &iov, 1, iov.iov_len);
	else
		rc = handed_over(port, path, &iov, 1, l->ops->send(l, &path->to, &iov, 1));
	l->ops->flush(l); /* which reads it */
	return rc;
}

int rwk_packet_put(struct rwk_port *port, struct rwk_packet_path *path, const struct rwk_wire *w,
	const struct iovec *payload, int count)
{
	struct rwk_link *l = port->link[path->way];
	bool hastens = port->hurry && l->ops->hasten && !path->cut;
	struct iovec iov[RWK_MACHINE_IOV + 2];
	uint8_t header[JOINED_MAX], trailer[3 + RWK_WIRE_ICRC] = {0};
	size_t len = rwk_iov_length(payload, (size_t)count), header_len = rwk_wire_pack(w, len, header);
	unsigned pad = -len & 3;
	size_t covered = header_len + len + pad, size = covered + RWK_WIRE_ICRC;
	bool copies = w->changing && path->way != RWK_WAY_STREAM; /* what goes out is what the ICRC is of */
	uint32_t crc;
	void *room;

	if (size <= (hastens ? JOINED_MAX : RWK_LINK_COPIED)) {
		join(path, l, header, header_len, payload, count, covered);
		iov[0] = (struct iovec){header, size};
		if (hastens && !l->ops->hasten(l, &path->to, header, size))
			return handed_over(port, path, iov, 1, 0);
		if (size <= RWK_LINK_COPIED)
			return handed_over(port, path, iov, 1, l->ops->send(l, &path->to, iov, 1));
	}
	if ((len <= JOINED_MAX || copies) && l->ops->reserve && !path->cut &&
		(room = l->ops->reserve(l, &path->to, size))) {
		memcpy(room, header, header_len);
		join(path, l, room, header_len, payload, count, covered);
		iov[0] = (struct iovec){room, size};
		return handed_over(port, path, iov, 1, 0);
	}
	if (copies)
		return put_copy(port, path, header, header_len, payload, count, covered);
	crc = icrc(path, l, size, header, header_len, payload, count, pad);
	memcpy(trailer + pad, &crc, RWK_WIRE_ICRC);
	iov[0] = (struct iovec){header, header_len};
	for (int i = 0; i < count; i++)
		iov[i + 1] = payload[i];
	iov[count + 1] = (struct iovec){trailer, pad + RWK_WIRE_ICRC};
	if (rwk_unlikely(path->cut && covered > path->cut + PROBED))
		return rwk_packet_put_pieces(port, path, iov, count + 2, size);
	return handed_over(port, path, iov, count + 2, l->ops->send(l, &path->to, iov, count + 2));
}

int rwk_packet_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct rwk_packet_channel *ch = user;

	return rwk_packet_put(ch->port, &ch->path, w, payload, count);
}
