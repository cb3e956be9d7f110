/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel_adapter/by_hand.h"

#include "wire/icrc.h"

#include <arpa/inet.h>
#include <sys/socket.h>

struct sender open_sender(uint8_t host)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u | host)};
	struct sender s = {socket(AF_INET, SOCK_DGRAM, 0), host, 0};
	struct timeval most = {.tv_sec = 20};
	socklen_t len = sizeof(at);

	assert_int_equal(bind(s.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(s.fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
	s.port = ntohs(at.sin_port);
	return s;
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/* The ICRC of `len` bytes from BTH on, as if IPv4's identification were `id`. */
static uint32_t icrc(const struct sender *s, const uint8_t *bytes, size_t len, uint16_t id)
{
	uint8_t h[36], *p = h + 8;

	memset(h, 0xff, sizeof(h));
	*p = 0x45;
	p = put16(p + 2, (unsigned)(28 + len + 4));
	p = put16(p, id);
	p = put16(p, 0x4000);
	p[1] = 17;
	p += 4;
	memcpy(p, (uint8_t[]){127, 0, 0, s->host, 127, 0, 0, far.ip[15]}, 8);
	p = put16(p + 8, s->port);
	p = put16(p, rwk_adapter_port(far.adapter));
	put16(p, (unsigned)(8 + len + 4));
	return rwk_icrc_bytes(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, h, sizeof(h)), bytes, len);
}

void send_bytes(const struct sender *s, const uint8_t *bytes, size_t len)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(rwk_adapter_port(far.adapter)),
		.sin_addr.s_addr = htonl(0x7f000000u | far.ip[15])};

	assert_int_equal(sendto(s->fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)len);
}

size_t make(
	const struct sender *s, const struct rwk_wire *w, const uint8_t *payload, size_t len, uint16_t id, uint8_t *out)
{
	size_t n = rwk_wire_pack(w, len, out), pad = -len & 3;
	uint32_t crc;

	if (len)
		memcpy(out + n, payload, len);
	memset(out + n + len, 0, pad);
	n += len + pad;
	crc = icrc(s, out, n, id);
	for (unsigned i = 0; i < 4; i++)
		out[n + i] = (uint8_t)(crc >> 8 * i);
	return n + 4;
}

struct rwk_wire to_far(unsigned opcode, uint32_t psn)
{
	return (struct rwk_wire){.opcode = (uint8_t)opcode,
		.pkey = RWK_WIRE_PKEY,
		.migrated = true,
		.qpn = rwk_qp_number(far.qp),
		.psn = psn};
}

void send_packet(const struct sender *s, const struct rwk_wire *w, const void *payload, size_t len)
{
	uint8_t packet[PACKET];

	send_bytes(s, packet, make(s, w, payload, len, 0, packet));
}

void connect_with(const struct sender *s, uint32_t send_psn)
{
	struct rwk_qp_attr attr = {.peer_port = s->port,
		.peer_qpn = 0xabcdef,
		.send_psn = send_psn,
		.receive_psn = PSN,
		.pmtu = PMTU,
		.access = ACCESS,
		.timeout_ns = 60000000000u,
		.unordered = ends_unordered};

	ends_ip(attr.peer_ip, s->host);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RTR, &attr), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RTS, NULL), 0);
}

size_t take_packet(const struct sender *s, struct rwk_wire *w, uint8_t payload[PACKET])
{
	uint8_t packet[PACKET];
	ssize_t got = recv(s->fd, packet, sizeof(packet), 0);
	const uint8_t *at;
	size_t len;

	assert_true(got > 0);
	assert_int_equal(rwk_wire_unpack(w, packet, (size_t)got, &at, &len), 0);
	memcpy(payload, at, len);
	return len;
}

struct rwk_adapter_counters counters(void)
{
	struct rwk_adapter_counters c;

	rwk_adapter_get_counters(far.adapter, &c);
	return c;
}

struct rwk_qp_info info(void)
{
	struct rwk_qp_info i;

	rwk_qp_query(far.qp, &i);
	return i;
}

void await_packets(uint64_t n)
{
	for (unsigned tries = 0; counters().packets_in < n; tries++) {
		assert_true(tries < 1000000);
		assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		if (ends_step)
			ends_step();
	}
}

void untouched(void)
{
	ends_quiet();
	for (size_t i = 0; i < REGION; i++)
		assert_int_equal(far.in[i], 0xee);
}
