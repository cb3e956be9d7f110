/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/hand.h"

#include "wire/icrc.h"

/* As FORMAT.md has it ("Between our own ends"); this link has no headers below BTH. */
static uint32_t icrc_of(const struct rwk_wire *w, const uint8_t *bytes, size_t len)
{
	return rwk_icrc_bytes(w->qpn == RWK_WIRE_GSI_QPN ? RWK_CRC_32 : RWK_CRC_32C, 0, bytes, len);
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct hand *h = user;
	const uint8_t *payload;
	struct rwk_wire w;
	uint32_t icrc;
	size_t size;

	(void)from;
	h->packets_in++;
	h->bytes_in += len;
	assert_int_equal(rwk_wire_unpack(&w, bytes, len, &payload, &size), 0);
	memcpy(&icrc, (const uint8_t *)bytes + len - RWK_WIRE_ICRC, sizeof(icrc));
	assert_int_equal(icrc, icrc_of(&w, bytes, len - RWK_WIRE_ICRC));
	if (w.qpn != RWK_WIRE_GSI_QPN) {
		assert_int_equal(w.qpn, HAND_QPN);
		if (RWK_WIRE_OPERATION(w.opcode) == RWK_WIRE_ACK) {
			h->acks++;
			h->own_acks += w.opcode != (RWK_WIRE_RC | RWK_WIRE_ACK);
			h->syndrome = w.aeth.syndrome;
		}
		return;
	}
	assert_int_equal(rwk_greeting_unpack(payload, size, h->key, &h->greeting, NULL), 0);
	h->accepts += h->greeting.type == RWK_GREETING_ACCEPT;
	h->refusals += h->greeting.type == RWK_GREETING_REFUSE;
	h->byes += h->greeting.type == RWK_GREETING_BYE;
}

void hand_open(struct hand *h, unsigned end)
{
	memset(h, 0, sizeof(*h));
	assert_int_equal(rwk_sim_node(ends_net, &h->link), 0);
	h->link->packet = on_packet;
	h->link->user = h;
	h->to = rwk_sim_address(rwk_address_port(&ends[end]->address));
	h->address.version_srq = RWK_ADDR_VERSION << 24;
	h->address.nonce_port = 0x123456789abull << 16 | rwk_sim_number(h->link);
	memcpy(h->key, ENDS_KEY, sizeof(ENDS_KEY));
}

void hand_close(struct hand *h)
{
	h->link->ops->close(h->link);
}

void hand_poll(struct hand *h)
{
	while (h->link->ops->progress(h->link, 64))
		;
}

void hand_pass(struct hand *h, rwk_time time)
{
	rwk_time end = rwk_sim_now(ends_net) + time;

	rwk_sim_alarm(h->link, end);
	while (rwk_sim_now(ends_net) < end && rwk_sim_step(ends_net)) {
		ends_progress_all();
		hand_poll(h);
	}
}

struct rwk_greeting hand_greeting(const struct hand *h, enum rwk_greeting_type type)
{
	struct rwk_greeting g = {.type = (uint8_t)type,
		.from = h->address,
		.to = ends[rwk_sim_address_number(&h->to) - 1]->address,
		.echo = 0x1122334455667788u};

	if (type == RWK_GREETING_REFUSE)
		g.reason = -EACCES;
	else
		g.qpn = HAND_QPN;
	if (type != RWK_GREETING_CONNECT && type != RWK_GREETING_ACCEPT)
		return g;
	g.psn = HAND_PSN;
	g.pmtu = 256;
	g.window = 16;
	g.reads = 1;
	g.features = h->features;
	return g;
}

void hand_raw(struct hand *h, const void *bytes, size_t len)
{
	struct iovec iov = {(void *)bytes, len};

	h->packets_out++;
	h->bytes_out += len;
	assert_int_equal(h->link->ops->send(h->link, &h->to, &iov, 1), 0);
}

void hand_packet(struct hand *h, const struct rwk_wire *w, const void *payload, size_t len, uint32_t spoil)
{
	uint8_t bytes[RWK_WIRE_HEADER_MAX + RWK_WIRE_OWN_MAX + 3 + RWK_WIRE_ICRC] = {0};
	size_t size = rwk_wire_pack(w, len, bytes);
	uint32_t icrc;

	assert_true(size);
	if (len)
		memcpy(bytes + size, payload, len);
	size += len + (-len & 3);
	icrc = icrc_of(w, bytes, size) ^ spoil;
	memcpy(bytes + size, &icrc, sizeof(icrc));
	hand_raw(h, bytes, size + sizeof(icrc));
}

void hand_greet_bytes(struct hand *h, const void *bytes, size_t len)
{
	const struct rwk_wire w = {.opcode = RWK_WIRE_UD | RWK_WIRE_SEND_ONLY,
		.migrated = true,
		.pkey = RWK_WIRE_PKEY,
		.qpn = RWK_WIRE_GSI_QPN,
		.deth = {0x80010000u, RWK_WIRE_GSI_QPN}};

	hand_packet(h, &w, bytes, len, 0);
}

void hand_greet(struct hand *h, const struct rwk_greeting *g)
{
	uint8_t bytes[RWK_WIRE_OWN_MAX];

	assert_int_equal(rwk_greeting_pack(g, h->key, bytes), 0);
	hand_greet_bytes(h, bytes, RWK_GREETING_SIZE + g->pad);
}

void hand_connect(struct hand *h)
{
	struct rwk_greeting g = hand_greeting(h, RWK_GREETING_CONNECT);

	hand_greet(h, &g);
	hand_pass(h, 5000);
	assert_int_equal(h->accepts, 1);
	assert_int_equal(h->greeting.echo, g.echo);
	h->qpn = h->greeting.qpn;
	h->psn = h->greeting.psn;
	g.type = RWK_GREETING_ACCEPT;
	hand_greet(h, &g);
	hand_pass(h, 5000);
	assert_int_equal(h->accepts, 1);
	assert_non_null(ends_guest->ch);
	ends[0]->connects = 0;
}

void hand_send(struct hand *h, uint8_t operation, uint32_t psn, const void *payload, size_t len)
{
	const struct rwk_wire w = {.opcode = RWK_WIRE_RC | operation,
		.migrated = true,
		.ack_request = true,
		.pkey = RWK_WIRE_PKEY,
		.qpn = h->qpn,
		.psn = (HAND_PSN + psn) & 0xffffffu};

	hand_packet(h, &w, payload, len, 0);
}

const struct rwk_packet_counters *hand_counts(const struct hand *h)
{
	return rwk_packet_counters(ends[rwk_sim_address_number(&h->to) - 1]->port);
}
