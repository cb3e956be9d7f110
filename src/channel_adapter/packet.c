/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between the link and the qps: the headers, the ICRC, and whose they are.
 *
 * The ICRC covers the IPv4 identification. Ours is 0 (the link sees to that); that of another maker's packet does not
 * reach a datagram socket. A packet whose ICRC is not right for 0 is taken if it is for one other identification: one
 * in 65536 of damaged packets passes so, after UDP and the link layer below have let it pass. IPv6 has no
 * identification. On a stream, whose bytes TCP has checked, nobody looks at the ICRC.
 */
#include "channel_adapter/internal.h"

#include "base/compiler.h"
#include "base/copy.h"
#include "base/iov.h"
#include "links/udp/udp.h"
#include "wire/icrc.h"

#include <errno.h>
#include <string.h>

#define PKEY_PARTITION 0x7fffu /* the bit above says: a full member */

static uint32_t begin_icrc(
	struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len, size_t *pseudo_len)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];

	*pseudo_len = rwk_link_pseudo(l, peer, outgoing, len, 0, pseudo);
	return rwk_icrc_begin(RWK_CRC_32, pseudo, *pseudo_len);
}

static void put_icrc(uint8_t *to, uint32_t icrc)
{
	for (unsigned i = 0; i < RWK_WIRE_ICRC; i++)
		to[i] = (uint8_t)(icrc >> 8 * i);
}

/*
 * What is read is the program's, which may store to it meanwhile: what goes out is the copy that the ICRC, begun so, is
 * of.
 */
static int send_copy(struct rwk_qp *qp, uint32_t icrc, const uint8_t *header, size_t header_len,
	const struct iovec *payload, int count, size_t size)
{
	struct rwk_link *l = qp->link;
	uint8_t own[RWK_WIRE_HEADER_MAX + RWK_WIRE_PMTU_MAX + RWK_WIRE_ICRC];
	uint8_t *room = l->ops->reserve ? l->ops->reserve(l, &qp->peer, size) : NULL, *packet = room ? room : own;
	size_t covered = size - RWK_WIRE_ICRC, len;
	int rc;

	memcpy(packet, header, header_len);
	len = rwk_iov_gather(payload, (size_t)count, 0, packet + header_len, covered - header_len);
	memset(packet + header_len + len, 0, covered - header_len - len);
	put_icrc(packet + covered, rwk_icrc_packet(RWK_CRC_32, icrc, packet, covered, NULL, 0, 0));
	if (room)
		return 0;
	rc = l->ops->send(l, &qp->peer, &(struct iovec){own, size}, 1);
	if (size > RWK_LINK_COPIED)
		l->ops->flush(l); /* which reads it */
	return rc;
}

static int send_pieces(struct rwk_qp *qp, uint32_t icrc, uint8_t *header, size_t header_len,
	const struct iovec *payload, int count, unsigned pad)
{
	struct iovec iov[RWK_MACHINE_IOV + 2];
	uint8_t tail[3 + RWK_WIRE_ICRC] = {0};

	put_icrc(tail + pad, rwk_icrc_packet(RWK_CRC_32, icrc, header, header_len, payload, count, pad));
	iov[0] = (struct iovec){header, header_len};
	for (int i = 0; i < count; i++)
		iov[1 + i] = payload[i];
	iov[1 + count] = (struct iovec){tail, pad + RWK_WIRE_ICRC};
	return qp->link->ops->send(qp->link, &qp->peer, iov, count + 2);
}

int rwk_ca_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct rwk_qp *qp = user;
	struct rwk_adapter *a = qp->adapter;
	uint8_t header[RWK_WIRE_HEADER_MAX];
	size_t len = rwk_iov_length(payload, (size_t)count), header_len = rwk_wire_pack(w, len, header), pseudo_len;
	unsigned pad = -len & 3;
	size_t size = header_len + len + pad + RWK_WIRE_ICRC;
	uint32_t icrc = begin_icrc(qp->link, &qp->peer, true, size, &pseudo_len);
	int rc;

	/* By a stream a copy goes only of what may be a word, which is read once; its ICRC nobody looks at. */
	if (w->changing && (qp->link == a->link || len <= RWK_COPY_WORD_MAX))
		rc = send_copy(qp, icrc, header, header_len, payload, count, size);
	else
		rc = send_pieces(qp, icrc, header, header_len, payload, count, pad);
	/* The way has become narrower, or the stream is gone: that does not pass, so the packet is as good as lost. */
	if (rwk_unlikely(rc == -EMSGSIZE || rc == -ENOTCONN))
		return 0;
	if (rc)
		qp->link_full = true;
	else
		a->counters.packets_out++;
	return rc;
}

static bool icrc_is_right(
	const struct rwk_qp *qp, const struct rwk_link_address *from, const uint8_t *bytes, size_t len)
{
	size_t covered = len - RWK_WIRE_ICRC, pseudo_len;
	uint32_t computed = rwk_icrc_bytes(RWK_CRC_32, begin_icrc(qp->link, from, false, len, &pseudo_len), bytes, covered);
	const uint8_t *end = bytes + covered;
	uint32_t received = end[0] | end[1] << 8 | end[2] << 16 | (uint32_t)end[3] << 24;

	if (rwk_likely(computed == received))
		return true;
	if (!rwk_icrc_has_id(computed, received, pseudo_len, covered))
		return false;
	qp->adapter->counters.id_solved++;
	return true;
}

static const uint8_t class_of[] = {
	[RWK_QP_RC] = RWK_WIRE_RC,
	[RWK_QP_UC] = RWK_WIRE_UC,
	[RWK_QP_SRC] = RWK_WIRE_SRC,
};

/* S0-3. By UDP the port is part of the address only where the peer is known to keep it: others change it at times. */
static bool is_from_peer(const struct rwk_qp *qp, const struct rwk_link *l, const struct rwk_link_address *from)
{
	uint8_t ip[16];
	uint16_t port;

	if (rwk_unlikely(qp->link != l))
		return false;
	if (l != qp->adapter->link)
		return !memcmp(from, &qp->peer, sizeof(*from));
	rwk_udp_split(from, ip, &port);
	if (qp->one_port && rwk_unlikely(port != qp->peer_port))
		return false;
	return !memcmp(ip, qp->peer_ip, sizeof(ip));
}

/* Whose packet is it? NULL: nobody's, and that is counted. */
static struct rwk_qp *addressee(struct rwk_adapter *a, const struct rwk_link *l, const struct rwk_link_address *from,
	const struct rwk_wire *w)
{
	struct rwk_qp *qp = a->qp[w->qpn % RWK_QPS_MAX];

	if (rwk_unlikely((w->pkey & PKEY_PARTITION) != (RWK_WIRE_PKEY & PKEY_PARTITION))) {
		a->counters.wrong_pkey++;
		return NULL;
	}
	if (rwk_unlikely(!qp || qp->number != w->qpn)) {
		a->counters.unknown_qp++;
		return NULL;
	}
	/* Which of our own there may be its machine knows, once they are agreed on. */
	if (rwk_unlikely(RWK_WIRE_CLASS(w->opcode) != class_of[qp->type]) &&
		!(qp->early && w->opcode >= RWK_WIRE_OWN)) {
		a->counters.wrong_service++;
		return NULL;
	}
	if (rwk_unlikely(!is_from_peer(qp, l, from))) {
		a->counters.stranger++;
		return NULL;
	}
	return qp;
}

static void take(struct rwk_adapter *a, const struct rwk_link *l, const struct rwk_link_address *from,
	const void *bytes, size_t len)
{
	const uint8_t *payload;
	struct rwk_wire w;
	struct rwk_qp *qp;
	size_t n;

	a->counters.packets_in++;
	if (rwk_unlikely(rwk_wire_unpack(&w, bytes, len, &payload, &n))) {
		a->counters.malformed++;
		return;
	}
	qp = addressee(a, l, from, &w);
	if (!qp)
		return;
	if (rwk_unlikely(l == a->link && !icrc_is_right(qp, from, bytes, len))) {
		a->counters.bad_icrc++;
		return;
	}
	if (rwk_ca_is_uc(qp))
		rwk_uc_packet(qp->uc, &w, payload, n);
	else
		rwk_rc_packet(qp->rc, &w, payload, n, a->now);
	rwk_ca_set_due(qp);
}

void rwk_ca_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_adapter *a = user;

	take(a, a->link, from, bytes, len);
}

void rwk_ca_stream_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_adapter *a = user;

	take(a, a->streams, from, bytes, len);
}
