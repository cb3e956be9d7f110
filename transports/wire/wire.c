/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packing and unpacking. One table says which headers each operation has, a second which operations each class has; the
 * headers stand in a packet in the order of the bits of enum header. Nothing here has state.
 */
#include "wire/wire.h"

#include "base/compiler.h"

#include <errno.h>
#include <string.h>

/* The headers that may follow BTH, in the order in which they do. */
enum header {
	XRCETH = 1 << 0,
	DETH = 1 << 1,
	RETH = 1 << 2,
	OFFSET = 1 << 3, /* between our own ends */
	ATOMIC_ETH = 1 << 4,
	AETH = 1 << 5,
	ATOMIC_ACK_ETH = 1 << 6,
	IMM = 1 << 7,
	IETH = 1 << 8,
	CNP_RESERVED = 1 << 9, /* nothing but BTH is said in a congestion notification; 16 zero bytes follow */
	KNOWN = 1 << 10,       /* no header: the operation exists */
};

enum {
	BTH_SIZE = 12,
	CNP_RESERVED_SIZE = 16,
	OPERATIONS = 32,
	HEADERS = 10,
};

/* Bytes of each, in the order of the bits. */
static const uint8_t sizes[HEADERS] = {4, 8, 16, 4, 28, 4, 8, 4, 4, CNP_RESERVED_SIZE};

/* By operation. */
static const uint16_t headers_of[OPERATIONS] = {
	[RWK_WIRE_SEND_FIRST] = KNOWN,
	[RWK_WIRE_SEND_MIDDLE] = KNOWN,
	[RWK_WIRE_SEND_LAST] = KNOWN,
	[RWK_WIRE_SEND_LAST_IMM] = KNOWN | IMM,
	[RWK_WIRE_SEND_ONLY] = KNOWN,
	[RWK_WIRE_SEND_ONLY_IMM] = KNOWN | IMM,
	[RWK_WIRE_WRITE_FIRST] = KNOWN | RETH,
	[RWK_WIRE_WRITE_MIDDLE] = KNOWN,
	[RWK_WIRE_WRITE_LAST] = KNOWN,
	[RWK_WIRE_WRITE_LAST_IMM] = KNOWN | IMM,
	[RWK_WIRE_WRITE_ONLY] = KNOWN | RETH,
	[RWK_WIRE_WRITE_ONLY_IMM] = KNOWN | RETH | IMM,
	[RWK_WIRE_READ_REQUEST] = KNOWN | RETH,
	[RWK_WIRE_READ_FIRST] = KNOWN | AETH,
	[RWK_WIRE_READ_MIDDLE] = KNOWN,
	[RWK_WIRE_READ_LAST] = KNOWN | AETH,
	[RWK_WIRE_READ_ONLY] = KNOWN | AETH,
	[RWK_WIRE_ACK] = KNOWN | AETH,
	[RWK_WIRE_ATOMIC_ACK] = KNOWN | AETH | ATOMIC_ACK_ETH,
	[RWK_WIRE_COMPARE_SWAP] = KNOWN | ATOMIC_ETH,
	[RWK_WIRE_FETCH_ADD] = KNOWN | ATOMIC_ETH,
	[RWK_WIRE_SEND_LAST_INV] = KNOWN | IETH,
	[RWK_WIRE_SEND_ONLY_INV] = KNOWN | IETH,
};

/* Bits of operations. */
#define SENDS_AND_WRITES 0x00000fffu /* Send First to Write Only with Immediate */
#define RELIABLE         0x00dfffffu /* those, Read, atomics and their answers, Send with Invalidate */
#define RESPONSES        0x0007e000u /* Read responses, ACK, Atomic ACK */
#define DATAGRAMS        0x00000030u /* Send Only, with and without Immediate */
#define WRITES           0x00000fc0u
#define UNORDERED        0x00c01fffu /* Sends, Writes, Read Request: the un-ordered types */
#define OWN              0x0003e000u /* Read responses to one that came before its turn, ACK with a bitmap */
#define CNP_OPCODE       (RWK_WIRE_CNP | 1u)

/* What a class has, and what it puts in front of the operation's own headers. */
static const struct {
	uint32_t operations;
	uint16_t requests_have, all_have;
} classes[8] = {
	[RWK_WIRE_RC >> 5] = {RELIABLE, 0, 0},
	[RWK_WIRE_UC >> 5] = {SENDS_AND_WRITES, 0, 0},
	[RWK_WIRE_UD >> 5] = {DATAGRAMS, 0, DETH},
	[RWK_WIRE_SRC >> 5] = {RELIABLE, XRCETH, 0},
	[RWK_WIRE_OWN >> 5] = {UNORDERED | OWN, 0, 0},
	[RWK_WIRE_OWN_SRC >> 5] = {UNORDERED, XRCETH, 0},
};

/* The headers of a packet with that opcode; 0: there is none such. */
static unsigned headers(uint8_t opcode)
{
	unsigned class = RWK_WIRE_CLASS(opcode) >> 5, operation = RWK_WIRE_OPERATION(opcode);
	unsigned have;

	if (opcode == CNP_OPCODE)
		return KNOWN | CNP_RESERVED;
	if (!(classes[class].operations & 1u << operation))
		return 0;
	have = headers_of[operation] | classes[class].all_have;
	/* Each packet of an un-ordered Write says where it goes. */
	if (rwk_unlikely(opcode >= RWK_WIRE_OWN) && WRITES & 1u << operation)
		have |= RETH | OFFSET;
	return RESPONSES & 1u << operation ? have : have | classes[class].requests_have;
}

static size_t size_of(unsigned have)
{
	size_t size = BTH_SIZE;

	for (unsigned left = have & (KNOWN - 1u); left; left &= left - 1)
		size += sizes[__builtin_ctz(left)];
	return size;
}

size_t rwk_wire_header_size(uint8_t opcode)
{
	unsigned have = headers(opcode);

	return have ? size_of(have) : 0;
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
	p[0] = v >> 8;
	p[1] = v;
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v >> 16), v & 0xffff);
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return put32(put32(p, v >> 32), (uint32_t)v);
}

/* Eight bits, then 24. */
static uint8_t *put8_24(uint8_t *p, unsigned high, uint32_t low)
{
	return put32(p, (uint32_t)high << 24 | (low & 0xffffff));
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static uint32_t get24(const uint8_t *p)
{
	return get32(p) & 0xffffff;
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static uint8_t *pack_bth(const struct rwk_wire *w, size_t payload, uint8_t *p)
{
	unsigned pad = -payload & 3;

	*p++ = w->opcode;
	*p++ = w->solicited << 7 | w->migrated << 6 | pad << 4;
	p = put16(p, w->pkey);
	p = put8_24(p, w->fecn << 7 | w->becn << 6, w->qpn);
	return put8_24(p, w->ack_request << 7, w->psn);
}

size_t rwk_wire_pack(const struct rwk_wire *w, size_t payload, uint8_t *out)
{
	unsigned have = headers(w->opcode);
	uint8_t *p = out;

	if (!have)
		return 0;
	p = pack_bth(w, payload, p);
	if (have & XRCETH)
		p = put8_24(p, 0, w->srqn);
	if (have & DETH)
		p = put8_24(put32(p, w->deth.qkey), 0, w->deth.qpn);
	if (have & RETH) {
		p = put32(put32(put64(p, w->reth.address), w->reth.key), w->reth.length);
		if (rwk_unlikely(have & OFFSET))
			p = put32(p, w->offset);
	}
	if (have & ATOMIC_ETH)
		p = put64(put64(put32(put64(p, w->atomic.address), w->atomic.key), w->atomic.swap_add),
			w->atomic.compare);
	if (have & AETH)
		p = put8_24(p, w->aeth.syndrome, w->aeth.msn);
	if (have & ATOMIC_ACK_ETH)
		p = put64(p, w->atomic_ack);
	if (have & IMM)
		p = put32(p, w->imm);
	if (have & IETH)
		p = put32(p, w->invalidate);
	if (have & CNP_RESERVED) {
		memset(p, 0, CNP_RESERVED_SIZE);
		p += CNP_RESERVED_SIZE;
	}
	return p - out;
}

static void unpack_bth(struct rwk_wire *w, const uint8_t *p)
{
	w->opcode = p[0];
	w->solicited = p[1] & 0x80;
	w->migrated = p[1] & 0x40;
	w->pkey = get16(p + 2);
	w->fecn = p[4] & 0x80;
	w->becn = p[4] & 0x40;
	w->qpn = get24(p + 4);
	w->ack_request = p[8] & 0x80;
	w->psn = get24(p + 8);
}

/* What follows BTH; `p` has all of it. */
static void unpack_rest(struct rwk_wire *w, unsigned have, const uint8_t *p)
{
	if (have & XRCETH) {
		w->srqn = get24(p);
		p += 4;
	}
	if (have & DETH) {
		w->deth.qkey = get32(p);
		w->deth.qpn = get24(p + 4);
		p += 8;
	}
	if (have & RETH) {
		w->reth.address = get64(p);
		w->reth.key = get32(p + 8);
		w->reth.length = get32(p + 12);
		p += 16;
		if (rwk_unlikely(have & OFFSET)) {
			w->offset = get32(p);
			p += 4;
		}
	}
	if (have & ATOMIC_ETH) {
		w->atomic.address = get64(p);
		w->atomic.key = get32(p + 8);
		w->atomic.swap_add = get64(p + 12);
		w->atomic.compare = get64(p + 20);
		p += 28;
	}
	if (have & AETH) {
		w->aeth.syndrome = p[0];
		w->aeth.msn = get24(p);
		p += 4;
	}
	if (have & ATOMIC_ACK_ETH) {
		w->atomic_ack = get64(p);
		p += 8;
	}
	if (have & IMM) {
		w->imm = get32(p);
		p += 4;
	}
	if (have & IETH)
		w->invalidate = get32(p);
}

int rwk_wire_unpack(struct rwk_wire *w, const uint8_t *bytes, size_t len, const uint8_t **payload, size_t *payload_len)
{
	size_t size, rest;
	unsigned have, pad;

	/* All headers are of whole words: then pad is right if, and only if, the packet is. */
	if (len < BTH_SIZE + RWK_WIRE_ICRC || len % 4 || bytes[1] & 0x0f)
		return -EBADMSG;
	have = headers(bytes[0]);
	if (!have)
		return -EOPNOTSUPP;
	size = size_of(have);
	pad = bytes[1] >> 4 & 3;
	if (len < size + RWK_WIRE_ICRC + pad)
		return -EBADMSG;
	rest = len - size - RWK_WIRE_ICRC - pad;
	if (rest > RWK_WIRE_OWN_MAX)
		return -EBADMSG;
	*w = (struct rwk_wire){.pad = (uint8_t)pad};
	unpack_bth(w, bytes);
	unpack_rest(w, have, bytes + BTH_SIZE);
	*payload = bytes + size;
	*payload_len = rest;
	return 0;
}
