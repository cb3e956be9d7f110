/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets in: each is checked, and goes to whom it is for. Nothing of one that is malformed, has a wrong ICRC, is for a
 * QP that is not there or from somebody else than that QP's peer is looked at further: it is counted.
 */
#include "packet/channel.h"
#include "packet/handshake.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/request.h"

#include "base/log.h"
#include "rc/rc.h"
#include "shared_rc/shared_rc.h"
#include "uc/uc.h"
#include "wire/icrc.h"

#include <errno.h>
#include <string.h>

#define SAY_AGAIN (1000 * 1000ull) /* ns between good-byes to who has not heard of the end */
#define RING      1                /* bytes: a sibling rings, and the inbox is looked into anyway */
#define LONG      256u             /* bytes: a longer packet takes room in the receive buffer that counts */

/** The ICRC of a packet between our own ends, where IPv4's identification counts as 0. */
static bool icrc_right(struct rwk_port *port, int way, const struct rwk_link_address *from, enum rwk_crc kind,
	const uint8_t *bytes, size_t len)
{
	struct rwk_link *l = port->link[way];
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];
	uint32_t icrc;

	if (way == RWK_WAY_STREAM)
		return true; /* TCP has its own */
	memcpy(&icrc, bytes + len - RWK_WIRE_ICRC, sizeof(icrc));
	if (len == port->begun.len && kind == port->begun.kind &&
		!memcmp(from, &port->begun.from, sizeof(*from)) &&
		rwk_icrc_bytes(kind, port->begun.crc, bytes, len - RWK_WIRE_ICRC) == icrc)
		return true;
	/* Another sender, length or kind, or another address of ours; or it is wrong. */
	port->begun.from = *from;
	port->begun.len = len;
	port->begun.kind = kind;
	port->begun.crc = rwk_icrc_begin(kind, pseudo, rwk_link_pseudo(l, from, false, len, 0, pseudo));
	return rwk_icrc_bytes(kind, port->begun.crc, bytes, len - RWK_WIRE_ICRC) == icrc;
}

static void management(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *payload, size_t len)
{
	struct rwk_greeting g;
	uint8_t version;
	int rc;

	if (rwk_packet_is_piece(payload, len)) {
		rwk_packet_piece(port, way, from, payload, len);
		return;
	}
	rc = rwk_greeting_unpack(payload, len, port->key, &g, &version);
	if (!rc) {
		rwk_packet_greeted(port, way, from, &g);
		return;
	}
	if (rc == -EPROTONOSUPPORT)
		rwk_warn("packets: a peer of this job speaks version %u of the handshake, this is version %u", version,
			RWK_GREETING_VERSION);
	port->count.wrong_key++;
}

static struct rwk_packet_channel *find_qp(struct rwk_port *port, uint32_t qpn)
{
	struct rwk_packet_channel *ch = port->last;

	if (rwk_likely(ch && ch->qpn == qpn))
		return ch;
	ch = rwk_packet_by_qpn(port, qpn);
	if (ch)
		port->last = ch;
	return ch;
}

static void deliver(struct rwk_packet_channel *ch, const struct rwk_wire *w, const uint8_t *payload, size_t len)
{
	ch->port->own_epoch = ch->port->epoch;
	if (ch->state == RWK_CH_ACCEPTING)
		rwk_packet_confirmed(ch);
	if (rwk_unlikely(ch->heard_in != ch->port->period && len > LONG))
		rwk_packet_heard(ch);
	if (rwk_likely(ch->rc))
		rwk_rc_packet(ch->rc, w, payload, len, rwk_packet_now(ch->port));
	else
		rwk_uc_packet(ch->uc, w, payload, len);
	if (ch->running) /* the client hears of its operations in the order in which the peer has seen to them */
		rwk_packet_take_ack(ch);
	rwk_packet_stir_for_message(ch);
}

/** The peer has not heard that the connection has ended: what told it was lost. Once a millisecond at most. */
static void say_again(struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from)
{
	rwk_time now = rwk_packet_now(ch->port);

	if (ch->path.way != way || memcmp(rwk_packet_seen(ch), from, sizeof(*from)) || now < ch->ask_at)
		return;
	ch->ask_at = now + SAY_AGAIN;
	rwk_packet_say_bye(ch);
}

void rwk_packet_arrived(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_packet_channel *ch;
	const uint8_t *payload;
	struct rwk_wire w;
	size_t payload_len;

	if (rwk_unlikely(len == RING && port->view))
		return;
	port->count.packets_in++;
	if (rwk_unlikely(port->capture != NULL)) {
		const struct iovec iov = {(void *)bytes, len};

		rwk_packet_capture(port, way, false, from, &iov, 1);
	}
	if (rwk_wire_unpack(&w, bytes, len, &payload, &payload_len)) {
		port->count.malformed++;
		return;
	}
	if (!icrc_right(port, way, from, rwk_packet_crc(w.qpn), bytes, len)) {
		port->count.wrong_icrc++;
		return;
	}
	if (w.qpn == RWK_WIRE_GSI_QPN) {
		if (w.opcode == (RWK_WIRE_UD | RWK_WIRE_SEND_ONLY))
			management(port, way, from, payload, payload_len);
		else
			port->count.malformed++;
		return;
	}
	if (rwk_unlikely(way == RWK_WAY_DOMAIN)) {
		rwk_src_packet(port->view, from, &w, payload, payload_len, rwk_packet_now(port));
		return;
	}
	ch = find_qp(port, w.qpn);
	if (!ch && way == RWK_WAY_LOSSY && rwk_packet_initiator_packet(port, from, &w, payload, payload_len))
		return;
	if (!ch || ch->state == RWK_CH_CONNECTING || ch->state == RWK_CH_FAILED || ch->deaf || ch->shared) {
		port->count.unknown_qp++;
		if (ch && ch->state == RWK_CH_FAILED)
			say_again(ch, way, from);
		return;
	}
	if (ch->path.way != way || memcmp(rwk_packet_seen(ch), from, sizeof(*from))) {
		port->count.wrong_sender++;
		return;
	}
	if (rwk_likely(way == RWK_WAY_LOSSY))
		rwk_packet_vote(port, &ch->path, rwk_packet_seen(ch), ch->state == RWK_CH_OPEN);
	deliver(ch, &w, payload, payload_len);
}
