/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between the link and the client. Whoever sends one is believed only what the receiver can check: that the
 * packet is whole, and that its sender knows the Q_Key. What is not as it should be is counted and dropped.
 *
 * The ICRC covers the IPv4 identification, which a datagram socket does not show. Ours is 0; a packet whose ICRC is
 * right for another one is another maker's, and taken (wire/icrc.h).
 */
#include "ud/internal.h"

#include "base/cancel.h"
#include "base/compiler.h"
#include "base/iov.h"
#include "links/udp/udp.h"
#include "wire/icrc.h"
#include "wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS_A_TURN 64
#define PKEY_PARTITION 0x7fffu /* the bit above says: a full member */

static uint32_t begin_icrc(
	struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len, size_t *pseudo_len)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];

	*pseudo_len = rwk_link_pseudo(l, peer, outgoing, len, 0, pseudo);
	return rwk_icrc_begin(RWK_CRC_32, pseudo, *pseudo_len);
}

static bool icrc_is_right(struct rwk_link *l, const struct rwk_link_address *from, const uint8_t *bytes, size_t len)
{
	size_t covered = len - RWK_WIRE_ICRC, pseudo_len;
	uint32_t computed = rwk_icrc_bytes(RWK_CRC_32, begin_icrc(l, from, false, len, &pseudo_len), bytes, covered);
	const uint8_t *end = bytes + covered;
	uint32_t received = end[0] | end[1] << 8 | end[2] << 16 | (uint32_t)end[3] << 24;

	return computed == received || rwk_icrc_has_id(computed, received, pseudo_len, covered);
}

/* The counter of what is wrong with a packet; NULL: nothing. */
static uint64_t *fault(struct rwk_ud *ud, const struct rwk_link_address *from, const struct rwk_wire *w,
	const uint8_t *bytes, size_t len, size_t payload_len)
{
	if (RWK_WIRE_CLASS(w->opcode) != RWK_WIRE_UD)
		return &ud->count.malformed;
	if (w->qpn != ud->attr.own.qpn)
		return &ud->count.unknown_qpn;
	if ((w->pkey & PKEY_PARTITION) != (RWK_WIRE_PKEY & PKEY_PARTITION))
		return &ud->count.wrong_pkey;
	if (w->deth.qkey != ud->attr.own.qkey)
		return &ud->count.wrong_qkey;
	if (payload_len > ud->attr.mtu)
		return &ud->count.too_long;
	return icrc_is_right(ud->link, from, bytes, len) ? NULL : &ud->count.bad_icrc;
}

static void deliver(struct rwk_ud *ud, const struct rwk_link_address *from, const struct rwk_wire *w,
	const uint8_t *payload, size_t len)
{
	struct rwk_list *l = rwk_list_pop(&ud->posted);
	struct rwk_ud_receive *r;
	struct rwk_ud_arrival a = {
		.from.qpn = w->deth.qpn,
		.length = len,
		.has_imm = RWK_WIRE_OPERATION(w->opcode) == RWK_WIRE_SEND_ONLY_IMM,
		.imm = w->imm,
	};

	if (!l) {
		ud->count.no_receive++;
		return;
	}
	r = rwk_container_of(l, struct rwk_ud_receive, link);
	rwk_iov_scatter(r->iov, r->count, 0, payload, len);
	rwk_udp_split(from, a.from.ip, &a.from.port);
	ud->count.received++;
	ud->attr.received(ud->attr.user, r, &a);
}

/* From the link: any bytes of anyone's. */
static void packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_ud *ud = user;
	const uint8_t *payload;
	size_t payload_len;
	struct rwk_wire w;
	uint64_t *wrong;

	if (rwk_wire_unpack(&w, bytes, len, &payload, &payload_len)) {
		ud->count.malformed++;
		return;
	}
	wrong = fault(ud, from, &w, bytes, len, payload_len);
	if (wrong)
		++*wrong;
	else
		deliver(ud, from, &w, payload, payload_len);
}

int rwk_ud_open_on(struct rwk_link *link, const struct rwk_ud_attr *attr, struct rwk_ud **out)
{
	struct rwk_ud *ud = calloc(1, sizeof(*ud));

	if (!ud)
		return -ENOMEM;
	ud->link = link;
	ud->attr = *attr;
	if (!ud->attr.mtu)
		ud->attr.mtu = rwk_ud_mtu();
	rwk_list_init(&ud->posted);
	link->packet = packet;
	link->user = ud;
	*out = ud;
	return 0;
}

void rwk_ud_close(struct rwk_ud *ud)
{
	int before = rwk_cancel_hold_off();

	ud->link->ops->flush(ud->link);
	ud->link->ops->close(ud->link);
	rwk_cancel_as_before(before);
	free(ud);
}

const struct rwk_ud_address *rwk_ud_own(const struct rwk_ud *ud)
{
	return &ud->attr.own;
}

void rwk_ud_get_counters(const struct rwk_ud *ud, struct rwk_ud_counters *c)
{
	*c = ud->count;
}

/* The headers, the payload as it lies with the client, the pad and the ICRC. */
static int emit(struct rwk_ud *ud, const struct rwk_link_address *to, const struct rwk_wire *w, size_t len,
	const struct iovec *payload, unsigned count)
{
	uint8_t header[RWK_WIRE_HEADER_MAX], tail[3 + RWK_WIRE_ICRC] = {0};
	size_t header_len = rwk_wire_pack(w, len, header), pseudo_len;
	struct iovec iov[RWK_UD_IOV + 2];
	unsigned pad = -len & 3;
	uint32_t icrc = begin_icrc(ud->link, to, true, header_len + len + pad + RWK_WIRE_ICRC, &pseudo_len);

	icrc = rwk_icrc_packet(RWK_CRC_32, icrc, header, header_len, payload, (int)count, pad);
	for (unsigned i = 0; i < RWK_WIRE_ICRC; i++)
		tail[pad + i] = (uint8_t)(icrc >> 8 * i);
	iov[0] = (struct iovec){header, header_len};
	if (count)
		memcpy(iov + 1, payload, count * sizeof(*iov));
	iov[1 + count] = (struct iovec){tail, pad + RWK_WIRE_ICRC};
	return ud->link->ops->send(ud->link, to, iov, (int)count + 2);
}

int rwk_ud_send(struct rwk_ud *ud, const struct rwk_ud_address *to, const struct iovec *iov, unsigned count,
	const uint32_t *imm)
{
	struct rwk_link_address place = rwk_udp_address(to->ip, to->port);
	struct rwk_wire w = {
		.opcode = RWK_WIRE_UD | (imm ? RWK_WIRE_SEND_ONLY_IMM : RWK_WIRE_SEND_ONLY),
		.migrated = true,
		.pkey = RWK_WIRE_PKEY,
		.qpn = to->qpn,
		.psn = ud->psn,
		.imm = imm ? *imm : 0,
		.deth = {to->qkey, ud->attr.own.qpn},
	};
	size_t len;
	int err;

	if (count > RWK_UD_IOV)
		return -EINVAL;
	len = rwk_iov_length(iov, count);
	if (len > ud->attr.mtu)
		return -EMSGSIZE;
	err = emit(ud, &place, &w, len, iov, count);
	if (err)
		return err;
	ud->link->ops->flush(ud->link); /* what it points to is the caller's again */
	ud->psn = (ud->psn + 1) & 0xffffff;
	ud->count.sent++;
	return 0;
}

void rwk_ud_receive(struct rwk_ud *ud, struct rwk_ud_receive *r)
{
	rwk_list_append(&ud->posted, &r->link);
}

void rwk_ud_cancel(struct rwk_ud *ud, struct rwk_ud_receive *r)
{
	(void)ud;
	rwk_list_remove(&r->link);
}

int rwk_ud_progress(struct rwk_ud *ud)
{
	int before = rwk_cancel_hold_off(), n = ud->link->ops->progress(ud->link, PACKETS_A_TURN);

	rwk_cancel_as_before(before);
	return n;
}

int rwk_ud_arm(struct rwk_ud *ud)
{
	int before = rwk_cancel_hold_off(), rc = ud->link->ops->arm(ud->link);

	rwk_cancel_as_before(before);
	return rc;
}

int rwk_ud_fd(const struct rwk_ud *ud)
{
	return ud->link->ops->wait_fd(ud->link, 0);
}
