/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of the handshake between our own ends: who asks whom for a connection, on which terms. Layout, order and
 * what is done about loss are in HANDSHAKE.md beside this file. Pure: no socket, no clock, no memory of its own.
 *
 *   CONNECT  I want a connection with you, on these terms
 *   ACCEPT   agreed, on these terms
 *   REFUSE   no; `reason` says why: -ESTALE, you mean another process that had my port before me; -EDESTADDRREQ, ask
 *            again by my name, which stands in `from`
 *   BYE      I am closing in good order: what you have not got by now will not come
 *   PROBE    does what is as long as this get through? `pmtu`: what I believe to
 *   PROBED   this did, and its answer is as long
 *   RELEASE  SRC, on a stream: I do not need this stream; end it if you do not either
 *   CEASE    SRC, to a domain: nothing more comes from this initiator of mine; its target is nobody's
 *   CEASED   that has been heard
 *
 * A greeting travels as the payload of a UD Send Only to QPN 1 (RWK_WIRE_GSI_QPN). All types have the same size, but
 * that CONNECT, ACCEPT and the probes may be made as long as the packets that they are about; an answer is never longer
 * than what it answers. Each ends with a MAC under the job's key: who does not know the key can neither make nor change
 * one, and is not answered.
 */
#ifndef RWK_PACKET_GREETING_H
#define RWK_PACKET_GREETING_H

#include "transport.h"
#include "wire/wire.h"

#define RWK_GREETING_VERSION 15u
#define RWK_GREETING_SIZE    164u /* bytes on the wire, all types, without `pad` */
#define RWK_GREETING_PAD_MAX (RWK_WIRE_OWN_MAX - RWK_GREETING_SIZE)
#define RWK_GREETING_KEY     32u /* bytes of the job's key */

enum rwk_greeting_type {
	RWK_GREETING_CONNECT = 1,
	RWK_GREETING_ACCEPT = 2,
	RWK_GREETING_REFUSE = 3,
	RWK_GREETING_BYE = 4,
	RWK_GREETING_RELEASE = 5,
	RWK_GREETING_PROBE = 6,
	RWK_GREETING_PROBED = 7,
	RWK_GREETING_CEASE = 8,
	RWK_GREETING_CEASED = 9,
};

/**
 * Features: each end says what it can do, both do what both can (the AND of the two). The low 16 bits are those of enum
 * rwk_rc_own; a bit that this version does not know is passed over.
 */
enum rwk_greeting_feature {
	RWK_GREETING_MASKED_ID = 1 << 16,  /* the ICRC takes the identification of IPv4 as 0 */
	RWK_GREETING_RDMA_READ = 1 << 17,  /* Reads of exposed regions are answered */
	RWK_GREETING_RDMA_WRITE = 1 << 18, /* Writes to exposed regions are taken */
	RWK_GREETING_PIECES = 1 << 20,     /* packets that come in pieces are joined; PROBE is answered */
	RWK_GREETING_SHARED = 1 << 19,     /* SRC: the end is in a domain, and its terms are complete (below) */
	RWK_GREETING_UNNAMED = 1 << 21,    /* a CONNECT that would be SHARED if its sender knew whom it asks */
};

/**
 * What SRC needs to know beside. All zero without RWK_GREETING_SHARED. The sender takes by a domain of its node, and
 * sends by the initiator that it has for the receiver's node, the same for every process there. CEASE and CEASED have
 * the domain and the target that the initiator was aimed at, and nothing else of it.
 */
struct rwk_greeting_shared {
	uint64_t domain; /* its identity, not 0 */
	uint32_t srqn;   /* the sender's SRQ number in it, 24 bits, not 0 */
	uint32_t target; /* ACCEPT: the QPN there that the receiver's packets are to name; CONNECT: 0 */
	uint32_t qpn;    /* the sender's initiator: where it takes acknowledgements, */
	uint32_t psn;    /* and the first number that it has sent, 24 bits */
	uint16_t port;   /* the domain's, UDP; its IP is the sender's */
};

/**
 * One greeting. The terms (psn to shared) are those of CONNECT and ACCEPT; in the others they are zero, and qpn is
 * zero or the number that the sender has for this peer; in CEASE and CEASED it is the initiator's. Each end has one qpn
 * and psn for a peer, the same in every CONNECT and ACCEPT to it: so repeated and crossing greetings say nothing new.
 */
struct rwk_greeting {
	uint8_t type;            /* enum rwk_greeting_type */
	int16_t reason;          /* REFUSE: why, a negative errno; else 0 */
	struct rwk_address from; /* the sender's, complete */
	struct rwk_address to;   /* who is meant; in a CONNECT it may be partial: IP and port alone */
	uint32_t qpn;            /* where the sender takes packets of this connection, 2 to 0xfffffe */
	uint32_t psn;            /* the first that it will send, 24 bits */
	uint16_t pmtu;           /* the largest payload it takes (rwk_wire_is_pmtu); the smaller holds */
	uint16_t window;         /* packets that it takes unacknowledged, 1 to RWK_RC_WINDOW_MAX */
	uint8_t reads;           /* Reads and atomics of the peer's that it keeps, 1 to RWK_RC_READS_MAX */
	uint32_t machine;        /* what names the running kernel under the sender, 24 bits; 0: not known */
	uint32_t features;       /* enum rwk_greeting_feature */
	uint32_t room;           /* bytes of its link's receive buffer, which all its connections share; 0: not known */
	uint16_t pad; /* zero bytes more, a multiple of 4: what is as long as a packet shows that packets get through */
	struct rwk_greeting_shared shared;
	uint64_t echo; /* CONNECT: of the sender's choice (its clock); answers: that of what they answer */
};

/**
 * Writes a greeting of RWK_GREETING_SIZE + g->pad bytes to `out`, with its MAC under `key` (RWK_GREETING_KEY bytes). 0;
 * -EINVAL: a member is out of its range, and unpack would refuse it (nothing was written).
 */
int rwk_greeting_pack(const struct rwk_greeting *g, const uint8_t *key, uint8_t *out);

/**
 * Reads a greeting of `len` bytes. What is looked at first, and so says the least to a stranger, comes first:
 *   -EBADMSG          no greeting: wrong magic, or too short
 *   -EACCES           wrong MAC: of another job, a stranger, or changed on its way; compared in constant time
 *   -EPROTONOSUPPORT  of this job, but of another version of ropewalk: *version says which
 *   -EBADMSG          of this job and version, and still wrong: the length, a member out of its range, not zero what
 *                     has to be
 *   0                 *g and *version are set
 * Nothing is logged, and only what gave 0 may be answered: once, to the IP and port in g->from, which the MAC covers,
 * and not to where the packet seems to come from. `version` may be NULL.
 */
int rwk_greeting_unpack(const uint8_t *bytes, size_t len, const uint8_t *key, struct rwk_greeting *g, uint8_t *version);

/**
 * Whether `g` is meant for the end at `me`: 0; -ESTALE, for another that had this IP and port before (a CONNECT
 * or ACCEPT is answered with a REFUSE of that reason). The IP of g->to is not looked at, for a host has several; nor is
 * the job, for the key decides.
 */
int rwk_greeting_meant(const struct rwk_greeting *g, const struct rwk_address *me);

/** Begins an answer to `q` from the end at `me`: type, from, to and echo set, all else zero. */
void rwk_greeting_answer(struct rwk_greeting *a, const struct rwk_greeting *q, enum rwk_greeting_type type,
	const struct rwk_address *me);

#endif
