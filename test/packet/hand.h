/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer made by hand, on the simulated network of links/ends.h: greetings and packets as a test wants them, right or
 * wrong, and a note of all that comes back.
 */
#ifndef RWK_TEST_PACKET_HAND_H
#define RWK_TEST_PACKET_HAND_H

#include "links/ends.h"

#include "packet/greeting.h"
#include "wire/wire.h"

#define HAND_PSN 0x123456u /* the first that it sends */
#define HAND_QPN 0x4711u   /* where it takes packets */

struct hand {
	struct rwk_link *link;
	struct rwk_address address;
	struct rwk_link_address to; /* the port that it talks to */
	uint8_t key[RWK_GREETING_KEY];
	uint32_t qpn, psn;                      /* where that port takes packets, what it sends first */
	uint32_t features;                      /* that it says it has */
	unsigned packets_out, packets_in;       /* all */
	size_t bytes_out, bytes_in;             /* of all packets */
	struct rwk_greeting greeting;           /* the last that came, */
	unsigned accepts, refusals, byes, acks; /* and how many of each kind, with the acknowledgements */
	unsigned own_acks;                      /* those of our own ends among them */
	uint8_t syndrome;                       /* of the last acknowledgement */
};

/** A node, with the job's key; talks to that end. */
void hand_open(struct hand *h, unsigned end);
void hand_close(struct hand *h);
/** Takes what has come. */
void hand_poll(struct hand *h);
/** Time passes: so long. Ends and hand take what has come. */
void hand_pass(struct hand *h, rwk_time time);

/** A greeting with all members as they should be. */
struct rwk_greeting hand_greeting(const struct hand *h, enum rwk_greeting_type type);
/** Sends it, under its key; or bytes of a greeting as they are; or bytes of a packet as they are. */
void hand_greet(struct hand *h, const struct rwk_greeting *g);
void hand_greet_bytes(struct hand *h, const void *bytes, size_t len);
void hand_raw(struct hand *h, const void *bytes, size_t len);
/** A packet with a right ICRC, but for what `spoil` flips in it. */
void hand_packet(struct hand *h, const struct rwk_wire *w, const void *payload, size_t len, uint32_t spoil);
/** Connects: the port has the channel when it returns. Its client must take it (ends_guest). */
void hand_connect(struct hand *h);
/** A Send packet of the connection; psn counts from HAND_PSN. */
void hand_send(struct hand *h, uint8_t operation, uint32_t psn, const void *payload, size_t len);
/** The counters of the port that it talks to. */
const struct rwk_packet_counters *hand_counts(const struct hand *h);

#endif
