/* SPDX-License-Identifier: BSD-3-Clause */
#include "connect/message.h"

#include <errno.h>
#include <string.h>

#define PSN_MAX   0xffffffu
#define QPN_MIN   2u
#define QPN_MAX   0xfffffeu
#define PMTU_MIN  256u
#define PMTU_MAX  4096u
#define READS_MAX 16u

/* Flags. */
#define DEFERRED  1u
#define UNORDERED 2u

/* Offsets. */
enum {
	AT_VERSION = 8,
	AT_TYPE = 9,
	AT_SERVICE = 10,
	AT_TRANSPORT = 11,
	AT_FLAGS = 12,
	AT_READS = 13,
	AT_UDP_PORT = 14,
	AT_PMTU = 16,
	AT_PRIVATE_LENGTH = 18,
	AT_QPN = 20,
	AT_PSN = 24,
	AT_ZERO = 28,
};

static const uint8_t magic[AT_VERSION] = {'r', 'o', 'p', 'e', 'c', 'o', 'n', '\n'};

static void put(uint8_t *out, unsigned bytes, uint32_t v)
{
	for (unsigned i = 0; i < bytes; i++)
		out[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get(const uint8_t *in, unsigned bytes)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint32_t)in[i] << 8 * i;
	return v;
}

size_t rwk_cm_pack(const struct rwk_cm *m, uint8_t out[RWK_CM_MAX])
{
	memset(out, 0, RWK_CM_HEAD);
	memcpy(out, magic, sizeof(magic));
	out[AT_VERSION] = RWK_CM_VERSION;
	out[AT_TYPE] = (uint8_t)m->type;
	out[AT_SERVICE] = (uint8_t)m->service;
	out[AT_TRANSPORT] = (uint8_t)m->transport;
	out[AT_FLAGS] = (m->deferred ? DEFERRED : 0) | (m->unordered ? UNORDERED : 0);
	out[AT_READS] = m->reads;
	put(out + AT_UDP_PORT, 2, m->udp_port);
	put(out + AT_PMTU, 2, m->pmtu);
	put(out + AT_PRIVATE_LENGTH, 2, m->private_length);
	put(out + AT_QPN, 4, m->qpn);
	put(out + AT_PSN, 4, m->psn);
	if (m->private_length)
		memcpy(out + RWK_CM_HEAD, m->private_data, m->private_length);
	return RWK_CM_HEAD + m->private_length;
}

static bool good_terms(const struct rwk_cm *m)
{
	bool udp = m->transport == RWK_TRANSPORT_UDP;

	if (m->service > RWK_QP_SRC || m->transport > RWK_TRANSPORT_STREAM)
		return false;
	if (udp ? !m->udp_port || m->deferred : m->udp_port || m->service == RWK_QP_SRC)
		return false;
	if (m->service == RWK_QP_UC ? m->reads || m->unordered : !m->reads || m->reads > READS_MAX)
		return false;
	if (m->pmtu < PMTU_MIN || m->pmtu > PMTU_MAX || m->pmtu & (m->pmtu - 1))
		return false;
	return m->qpn >= QPN_MIN && m->qpn <= QPN_MAX && m->psn <= PSN_MAX;
}

static bool all_zero(const uint8_t *bytes, size_t len)
{
	while (len--)
		if (bytes[len])
			return false;
	return true;
}

/* Is the whole head as the type of the message demands it? */
static bool good_head(const struct rwk_cm *m, const uint8_t *bytes)
{
	if (m->private_length > RWK_PRIVATE_MAX || bytes[AT_FLAGS] & ~(DEFERRED | UNORDERED) || get(bytes + AT_ZERO, 4))
		return false;
	switch (m->type) {
	case RWK_CM_REQUEST:
	case RWK_CM_ACCEPT:
		return good_terms(m);
	case RWK_CM_GREETING: /* the streaming, if there was any, is over */
		return good_terms(m) && m->transport == RWK_TRANSPORT_STREAM && !m->deferred;
	case RWK_CM_REJECT:
		return all_zero(bytes + AT_SERVICE, AT_PRIVATE_LENGTH - AT_SERVICE) &&
		       all_zero(bytes + AT_QPN, RWK_CM_HEAD - AT_QPN);
	case RWK_CM_READY:
		return all_zero(bytes + AT_SERVICE, RWK_CM_HEAD - AT_SERVICE);
	default:
		return false;
	}
}

int rwk_cm_unpack(struct rwk_cm *m, const uint8_t *bytes, size_t len, size_t *whole)
{
	if (memcmp(bytes, magic, len < sizeof(magic) ? len : sizeof(magic)))
		return -EPROTO;
	if (len > AT_VERSION && bytes[AT_VERSION] != RWK_CM_VERSION)
		return -EPROTONOSUPPORT;
	*whole = RWK_CM_HEAD;
	if (len < RWK_CM_HEAD)
		return -EAGAIN;
	*m = (struct rwk_cm){
		.type = bytes[AT_TYPE],
		.service = bytes[AT_SERVICE],
		.transport = bytes[AT_TRANSPORT],
		.deferred = bytes[AT_FLAGS] & DEFERRED,
		.unordered = bytes[AT_FLAGS] & UNORDERED,
		.reads = bytes[AT_READS],
		.udp_port = (uint16_t)get(bytes + AT_UDP_PORT, 2),
		.pmtu = (uint16_t)get(bytes + AT_PMTU, 2),
		.private_length = (uint16_t)get(bytes + AT_PRIVATE_LENGTH, 2),
		.qpn = get(bytes + AT_QPN, 4),
		.psn = get(bytes + AT_PSN, 4),
		.private_data = bytes + RWK_CM_HEAD,
	};
	if (!good_head(m, bytes))
		return -EPROTO;
	*whole = RWK_CM_HEAD + m->private_length;
	return len < *whole ? -EAGAIN : 0;
}
