/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every byte of a packet, once: the constants of RoCEv2 and the headers that a packet can have, unpacked. The layout
 * in prose, with its sources, is in FORMAT.md beside this file. All functions are pure.
 *
 *   BTH     12 bytes in front of every packet: opcode, flags, partition, destination QP, PSN
 *   RETH    what an RDMA request is about; AtomicETH the same for atomics
 *   AETH    an acknowledgement: syndrome and MSN; AtomicAckETH the value that an atomic found
 *   OffsetETH  where in its message a packet of an un-ordered Write stands
 *   XRCETH  the shared receive queue that an SRC request is meant for
 *   ImmDt   four bytes of the client's; IETH a key to invalidate; DETH Q_Key and source QP of a datagram
 *   ICRC    the invariant CRC behind the payload and its pad (icrc.h)
 */
#ifndef RWK_WIRE_WIRE_H
#define RWK_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RWK_WIRE_UDP_PORT   4791u
#define RWK_WIRE_PKEY       0xffffu     /* the default partition */
#define RWK_WIRE_HEADER_MAX 64u         /* bytes of all headers of a packet, at most */
#define RWK_WIRE_ICRC       4u          /* bytes */
#define RWK_WIRE_PMTU_MAX   4096u       /* bytes of payload, S3-7 */
#define RWK_WIRE_OWN_MAX    8704u       /* between our own ends: fits Ethernet's 9000, and seven the kernel's 64 KB */
#define RWK_WIRE_OWN_STEP   64u         /* they agree on any multiple of it */
#define RWK_WIRE_LENGTH_MAX 0x80000000u /* bytes of a message, S0-4 */
#define RWK_WIRE_GSI_QPN    1u          /* the QP that management datagrams go to */

/** The service a packet belongs to: the top three bits of an opcode. */
enum rwk_wire_class {
	RWK_WIRE_RC = 0x00,
	RWK_WIRE_UC = 0x20,
	RWK_WIRE_UD = 0x60,
	RWK_WIRE_CNP = 0x80, /* 0x81 alone */
	RWK_WIRE_SRC = 0xa0, /* InfiniBand's XRC */
	RWK_WIRE_OWN = 0xc0, /* for the manufacturer: between our own ends, un-ordered requests of RC, and answers */
	RWK_WIRE_OWN_SRC = 0xe0, /* the same: un-ordered requests of SRC */
};

/** What it does: the low five bits. */
enum rwk_wire_operation {
	RWK_WIRE_SEND_FIRST = 0x00,
	RWK_WIRE_SEND_MIDDLE = 0x01,
	RWK_WIRE_SEND_LAST = 0x02,
	RWK_WIRE_SEND_LAST_IMM = 0x03,
	RWK_WIRE_SEND_ONLY = 0x04,
	RWK_WIRE_SEND_ONLY_IMM = 0x05,
	RWK_WIRE_WRITE_FIRST = 0x06,
	RWK_WIRE_WRITE_MIDDLE = 0x07,
	RWK_WIRE_WRITE_LAST = 0x08,
	RWK_WIRE_WRITE_LAST_IMM = 0x09,
	RWK_WIRE_WRITE_ONLY = 0x0a,
	RWK_WIRE_WRITE_ONLY_IMM = 0x0b,
	RWK_WIRE_READ_REQUEST = 0x0c,
	RWK_WIRE_READ_FIRST = 0x0d, /* responses */
	RWK_WIRE_READ_MIDDLE = 0x0e,
	RWK_WIRE_READ_LAST = 0x0f,
	RWK_WIRE_READ_ONLY = 0x10,
	RWK_WIRE_ACK = 0x11,
	RWK_WIRE_ATOMIC_ACK = 0x12,
	RWK_WIRE_COMPARE_SWAP = 0x13,
	RWK_WIRE_FETCH_ADD = 0x14,
	RWK_WIRE_SEND_LAST_INV = 0x16,
	RWK_WIRE_SEND_ONLY_INV = 0x17,
};

#define RWK_WIRE_CLASS(opcode)     ((opcode)&0xe0u)
#define RWK_WIRE_OPERATION(opcode) ((opcode)&0x1fu)

/** AETH syndromes: an ACK with a credit code below 0x20 (0x1f: no limit), an RNR NAK with a timer code in 0x20-0x3f. */
enum rwk_wire_syndrome {
	RWK_WIRE_ACK_NO_LIMIT = 0x1f,
	RWK_WIRE_RNR = 0x20,
	RWK_WIRE_NAK_SEQUENCE = 0x60,
	RWK_WIRE_NAK_INVALID = 0x61,
	RWK_WIRE_NAK_ACCESS = 0x62,
	RWK_WIRE_NAK_OPERATIONAL = 0x63,
};

/** The headers of one packet, in the host's byte order. Which of them are in it, the opcode says. */
struct rwk_wire {
	uint8_t opcode;
	bool solicited, migrated, ack_request, fecn, becn;
	uint8_t pad;   /* bytes behind the payload, 0 to 3; set by unpack, worked out from the length by pack */
	bool changing; /* not on the wire: others may store to the payload's memory meanwhile (../machine.h, emit) */
	uint16_t pkey;
	uint32_t qpn; /* destination, 24 bits */
	uint32_t psn; /* 24 bits */
	struct {
		uint64_t address;
		uint32_t key, length;
	} reth;
	struct {
		uint64_t address;
		uint32_t key;
		uint64_t swap_add, compare;
	} atomic;
	struct {
		uint8_t syndrome;
		uint32_t msn; /* 24 bits */
	} aeth;
	uint64_t atomic_ack;
	uint32_t imm; /* as a number; big-endian on the wire */
	uint32_t invalidate;
	uint32_t srqn;   /* 24 bits */
	uint32_t offset; /* bytes */
	struct {
		uint32_t qkey, qpn;
	} deth;
};

/**
 * Bytes of the headers of a packet with that opcode; 0: no such opcode. The 16 reserved bytes of a CNP are a header, so
 * that it has no payload.
 */
size_t rwk_wire_header_size(uint8_t opcode);

/** May packets have that many bytes of payload? InfiniBand's five sizes, and what our own ends may agree on beside. */
static inline bool rwk_wire_is_pmtu(uint32_t bytes)
{
	return bytes >= 256 && bytes <= RWK_WIRE_OWN_MAX && bytes % RWK_WIRE_OWN_STEP == 0;
}

/**
 * Writes the headers of a packet with `payload` bytes of payload to `out` (RWK_WIRE_HEADER_MAX bytes of room). Returns
 * their number; the caller puts payload, (-payload & 3) zero bytes and the ICRC behind them. 0: no such opcode.
 */
size_t rwk_wire_pack(const struct rwk_wire *w, size_t payload, uint8_t *out);

/**
 * Reads a packet of `len` bytes from BTH to ICRC. On success fills all of *w that the opcode has (the rest is zero) and
 * sets *payload, a pointer into `bytes`, and *payload_len. -EBADMSG: too short for its headers, pad longer than what
 * is behind them or not what makes whole words of it, payload of more than RWK_WIRE_OWN_MAX, or version not 0;
 * -EOPNOTSUPP: no such opcode. Reserved bits and the ICRC are not looked at.
 */
int rwk_wire_unpack(struct rwk_wire *w, const uint8_t *bytes, size_t len, const uint8_t **payload, size_t *payload_len);

#endif
