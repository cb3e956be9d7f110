/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages by which two ends agree on a connection; CONNECT.md has them byte by byte. Pure: bytes in, bytes out.
 * What comes is from strangers: nothing of it is believed before it was looked at, and what unpack takes is in its
 * range.
 */
#ifndef RWK_CONNECT_MESSAGE_H
#define RWK_CONNECT_MESSAGE_H

#include "include/ropewalk.h"

#define RWK_CM_VERSION 1u
#define RWK_CM_HEAD    32u /* bytes before the private data */
#define RWK_CM_MAX     (RWK_CM_HEAD + RWK_PRIVATE_MAX)

enum rwk_cm_type {
	RWK_CM_REQUEST = 1,
	RWK_CM_ACCEPT = 2,
	RWK_CM_REJECT = 3,
	RWK_CM_READY = 4,
	RWK_CM_GREETING = 5,
};

struct rwk_cm {
	enum rwk_cm_type type;
	/* The terms; zero in REJECT and READY. */
	enum rwk_qp_type service;
	enum rwk_connection_transport transport;
	bool deferred;
	bool unordered;    /* the sender knows the un-ordered types, and is to use them; not UC */
	uint8_t reads;     /* Reads and atomics of the peer's that the sender keeps, 1 to 16; UC: 0 */
	uint16_t udp_port; /* UDP: where the sender takes packets; else 0 */
	uint16_t pmtu;     /* 256, 512, 1024, 2048 or 4096 */
	uint32_t qpn;      /* the sender's, 2 to 0xfffffe */
	uint32_t psn;      /* the first that the sender will send, 24 bits */
	/* Not in READY. */
	uint16_t private_length;
	const uint8_t *private_data; /* of the bytes that were unpacked */
};

/** Into `out`; returns the length. */
size_t rwk_cm_pack(const struct rwk_cm *m, uint8_t out[RWK_CM_MAX]);
/**
 * The message that begins at `bytes`, of which `len` are here: 0 and *m set, *whole its length. -EAGAIN: so far it is
 * good, *whole bytes are needed to go on. -EPROTO: it is none; -EPROTONOSUPPORT: of another version.
 */
int rwk_cm_unpack(struct rwk_cm *m, const uint8_t *bytes, size_t len, size_t *whole);

#endif
