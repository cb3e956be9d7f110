/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of TCP links for the tests: in this process, or each in a process of its own. */
#ifndef RWK_TEST_TCP_PEERS_H
#define RWK_TEST_TCP_PEERS_H

#include "rwk_test.h"

#include "links/tcp/tcp.h"

#include <stdbool.h>
#include <sys/types.h>

#define WORDS_MAX 64
#define NO_WORD   1 /* no status is positive */

struct peer {
	struct rwk_link *l;
	struct rwk_link_address at; /* where it is reached */
	uint64_t nonce;
	int words[WORDS_MAX]; /* statuses, in order, of all peers */
	struct rwk_link_address word_of[WORDS_MAX];
	unsigned word_count;
	uint64_t got;                 /* packets, each looked at */
	uint32_t next;                /* number that the next packet must have, where there is one sender */
	bool any_order;               /* several senders: numbers are not looked at */
	struct rwk_link_address from; /* of the last packet */
};

extern const uint8_t loopback4[16], loopback6[16];
extern const uint64_t secret[2];

/* attr with nonce and secret filled in, on loopback. */
struct rwk_tcp_attr tcp_attr(uint64_t nonce);
struct peer *open_peer(const struct rwk_tcp_attr *attr);
void close_peer(struct peer *p);

/* Packet `number`, whose length and bytes follow from it. The link's answer. */
int send_number(struct peer *p, const struct rwk_link_address *to, uint32_t number);

/* Progress of one or two peers (b may be NULL) until `count` words are there in a, or 20 seconds have passed. */
void until_words(struct peer *a, struct peer *b, unsigned count);
/* The same until p, which is one of them, has got so many packets. */
void until_got(struct peer *a, struct peer *b, const struct peer *p, uint64_t count);
/* Both, for so many milliseconds. */
void run_for(struct peer *a, struct peer *b, unsigned ms);
/* a's stream to b is open at both ends. */
void connect_peers(struct peer *a, struct peer *b);
/* `count` packets in both directions, with flushes here and there, all there and in order. */
void exchange(struct peer *a, struct peer *b, uint32_t count);
/* The last word of p; NO_WORD if there is none. */
int last_word(const struct peer *p);

uint64_t now_ms(void);

/* A child that holds what this process has open, and does nothing, until it is ended. */
pid_t fork_holder(void);
void end_holder(pid_t child);

#endif
