/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a reliable connection for tests: a QP, its memory, and a host that checks every upcall's bounds. Either
 * two ends over the simulated network, with real packets and ICRCs, or one end alone: what it sends is looked at, and
 * packets are made up for it.
 *
 *     a ---- sim path 1 -> 2 ----> b        (alone: the test is the network)
 *       <--- sim path 2 -> 1 -----
 */
#ifndef TEST_RC_END_H
#define TEST_RC_END_H

#include "links/sim/sim.h"
#include "rc/rc.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define END_REGION (1u << 20) /* bytes */
#define END_KEY    0x51ed5u
#define END_OUT    4096u /* packets that are remembered */

struct end_packet {
	struct rwk_wire w;
	uint32_t len;
	uint8_t payload[RWK_WIRE_OWN_MAX];
};

/* A message as it was received. */
struct end_message {
	struct end_message *next;
	uint32_t imm, invalidate, srqn;
	bool has_imm, has_invalidate, solicited, written; /* written: the receive that a Write with immediate took */
	size_t len;
	uint8_t bytes[];
};

struct end {
	struct rwk_rc *qp;
	void *memory, *responder;
	struct rwk_rc_attr attr;
	struct rwk_sim *sim;
	struct rwk_link *link;
	struct rwk_link_address peer;
	uint32_t qpn;
	rwk_time now;   /* alone: set by the test */
	rwk_time alarm; /* the last that was set */

	uint8_t *region;
	uint64_t base; /* what the peer calls its first byte */
	unsigned reach;
	uint32_t domain;  /* of the SRQs here: another srqn is refused with -EACCES; 0: any */
	bool revoked;     /* the region is gone */
	int receive_says; /* what a Send hears; 0: the truth */
	uint64_t busy;    /* a bit for each SRQ that turns Sends away */

	unsigned receives; /* posted; UINT_MAX: always */
	size_t receive_size;
	uint8_t *partial; /* the Send under way */
	size_t partial_len, partial_room;
	bool in_message;
	struct end_message *first, **last;
	unsigned message_count, written_count, reads, writes, atomics;

	unsigned room; /* packets that emit takes still; UINT_MAX */
	uint32_t lose_psn; /* this packet does not reach the link, so many times */
	unsigned lose_times;
	struct end_packet *out; /* what was emitted, of an end alone; NULL: not remembered */
	unsigned out_count;
	uint64_t sent, bad_icrc;

	struct end_packet *kept[RWK_RC_WINDOW_MAX];
	unsigned kept_now;

	unsigned done_count, failed_count;
	struct rwk_wr *done_last;
	int done_status[4096], failed_err;
	void (*on_done)(struct end *e, struct rwk_wr *wr, int status);
	/* A Send is delivered (its bytes), a piece of a Write placed or of a Read fetched, an atomic done; or NULL. */
	void (*on_effect)(struct end *e, unsigned type, uint64_t address, const void *bytes, size_t len);
	/* A Write with immediate data has taken a receive. May be NULL. */
	void (*on_written)(struct end *e, uint32_t imm);
	void *user;
};

/* Attributes to start from: strict, or everything between our own ends. */
struct rwk_rc_attr end_strict(void);
struct rwk_rc_attr end_own(void);

/* An end alone, in RTS, its first PSNs those of attr. */
struct end *end_alone(const struct rwk_rc_attr *attr);
/* Two ends over a network; attr is a's, b has it the other way round. */
void end_pair(struct rwk_sim *s, const struct rwk_rc_attr *attr, struct end **a, struct end **b);
void end_close(struct end *e);
/* Its qp is as it was when it was new, and nothing is received. */
void end_renew(struct end *e);

static inline const struct rwk_qp_counters *counters(const struct end *e)
{
	return rwk_rc_counters(e->qp);
}

/* Lets everything happen until both ends are idle and nothing is under way, or for `limit` more. True: idle. */
bool end_settle(struct end *a, struct end *b, rwk_time limit);
/* One event of the network or the clock. False: there is none before `until`. */
bool end_step(struct end *a, struct end *b, rwk_time until);

/* A work request; `iov` must live as long. */
struct rwk_wr end_wr(unsigned type, struct iovec *iov, void *bytes, size_t len);
/* Posts and pumps. */
void end_post(struct end *e, struct rwk_wr *wr);
void end_pump(struct end *e);
/* The oldest message received, taken out (free it); NULL. */
struct end_message *end_take(struct end *e);

/* Alone: a packet arrives, then the end is pumped. */
void end_give(struct end *e, const struct rwk_wire *w, const void *payload, size_t len);
/* Alone: an acknowledgement or NAK arrives. */
void end_give_ack(struct end *e, uint32_t psn, uint8_t syndrome);
/* The packets sent since the last call; `out` holds them. */
unsigned end_sent(struct end *e);

#endif
