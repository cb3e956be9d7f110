/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender and a receiver of the unreliable connection on the simulated link, each with a QP, packed and unpacked as on
 * a wire, with ICRC. The machines are real, the clients are here.
 *
 * A message's bytes follow from its number and nothing of it is allocated, however long it is: all messages read from
 * one pattern, which is mapped again and again behind itself. The receiver finds the number in the first four bytes (or
 * in the immediate, if there are fewer), and compares all pieces with what must be there.
 *
 *   number   0, 1, ... in the order of posting
 *   log      what the receiver's client was told, message by message
 */
#ifndef RWK_TEST_UC_ENDS_H
#define RWK_TEST_UC_ENDS_H

#include "rwk_test.h"

#include "links/sim/sim.h"
#include "uc/uc.h"
#include "wire/psn.h"

#define SENDER_QPN   0x12u
#define RECEIVER_QPN 0xabcdefu
#define FIRST_PSN    0xfffffau /* so that every test wraps */
#define KEY          0x5eedu
#define BASE         0x1000000000000u /* of the receiver's region */
#define STRIDE       0x100000000u     /* message n is written from BASE + n * STRIDE on */
#define MESSAGES     1024

enum { PLAIN = 0, IMM = RWK_WR_IMM };

struct message {
	struct rwk_wr wr;
	struct iovec iov[3];
	uint8_t head[4]; /* its number */
	unsigned done;
	int status;
	uint32_t first_psn, packets;
	/* at the receiver */
	unsigned begun, ended;
	uint64_t placed; /* bytes of a Write */
	unsigned solicited;
};

struct end {
	struct rwk_link *link;
	struct rwk_link_address peer;
	struct rwk_uc *qp;
	void *memory, *responder;
	unsigned emitted, bad_icrc, lost, failed;
	int error;
	int64_t room; /* packets that the link takes; negative: all */
	/* what `receive` and its like say */
	int64_t receives; /* posted; negative: without end */
	size_t receive_length;
	int refuse; /* what write says, if not 0 */
	bool blind; /* packets are made up: messages are counted, their bytes not looked at */
	unsigned reaches, writes, blind_ends;
	/* the receive that is being filled */
	struct message *in;
	size_t at;
	void (*seen)(const struct rwk_wire *w, size_t len); /* each packet that the QP is given */
	void (*told)(const struct message *m); /* what the client does when one has ended, within the upcall */
};

extern struct rwk_sim *net;
extern struct end sender, receiver;
extern struct message *messages; /* MESSAGES of them */
extern unsigned message_count;   /* posted */
extern unsigned logged;
extern uint32_t log_of[MESSAGES]; /* numbers, in the order in which they ended at the receiver */

/** What attr a QP of these ends has. */
struct rwk_uc_attr ends_attr(const struct end *e, uint16_t pmtu);
/** Two ends in RTS; path NULL: nothing is lost. */
void ends_open(uint64_t seed, uint16_t pmtu, const struct rwk_sim_path *path);
/** Asserts that the receiver has not sent a packet (S0-1). */
void ends_close(void);

/** Makes the next message, of type RWK_WR_SEND or RWK_WR_WRITE, without posting it. */
struct message *ends_make(unsigned type, unsigned flags, uint64_t len);
/** And posts it. */
struct message *ends_post(unsigned type, unsigned flags, uint64_t len);
/** Pumps, flushes, and lets everything arrive. */
void ends_settle(void);
/** The sender's next packet (1: the next) has this fate. */
void ends_rule(uint64_t nth, enum rwk_sim_fate fate);
/** A packet as if it had come from the peer, to either end's QP, with a right ICRC. */
void ends_inject(struct end *e, const struct rwk_wire *w, const void *payload, size_t len);
/** Headers of a packet to the receiver. */
struct rwk_wire ends_wire(unsigned operation, uint32_t psn);

static inline const struct rwk_qp_counters *ends_counters(const struct end *e)
{
	return rwk_uc_counters(e->qp);
}

/** The log is exactly these numbers. */
#define assert_log(...)                                                                                                \
	do {                                                                                                           \
		static const uint32_t want_[] = {__VA_ARGS__};                                                         \
		assert_int_equal(logged, sizeof(want_) / sizeof(want_[0]));                                            \
		assert_memory_equal(log_of, want_, sizeof(want_));                                                     \
	} while (0)

#endif
