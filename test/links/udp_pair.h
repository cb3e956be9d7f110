/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two UDP links that write to each other, and a book of what has arrived. A packet's bytes follow from its number and
 * length, so that a receiver can tell that it is whole. A packet of less than 4 bytes has number 0.
 */
#ifndef UDP_PAIR_H
#define UDP_PAIR_H

#include "rwk_test.h"

#include "links/udp/udp.h"

#define UDP_BOOK 20000 /* packets of an end that can be told apart */

struct udp_end {
	struct rwk_link *link;
	struct rwk_link_address here; /* by which the other end reaches it */
	unsigned arrived, damaged;
	uint32_t number[UDP_BOOK];
	uint32_t length[UDP_BOOK];
	struct rwk_link_address from;        /* of the last packet */
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX]; /* as the link said it of that packet while it came, identification 0 */
	size_t pseudo_len;
	bool favour; /* whom the next packet is from is told to the link as its favourite */
	unsigned words;
	int word;
	struct rwk_link_address who; /* the last word was about */
};

extern const uint8_t udp_ip4[16], udp_ip6[16]; /* loopback */

/** Opens a link on `ip` with that receive buffer (0: as it comes). The test fails if it cannot; a host without IPv6
 * skips it. */
struct udp_end *udp_end_open(const uint8_t ip[16], int receive_buffer);
struct udp_end *udp_end_open_with(const struct rwk_udp_attr *attr);
/** Another link on the socket of `first`, and on that line; -1: none. */
struct udp_end *udp_end_adopt(const struct udp_end *first, int line);
void udp_end_close(struct udp_end *e);

/** 16 bytes of "10.1.2.3" or "fd00::1". */
void udp_ip(const char *text, uint8_t ip[16]);

/** Fills a packet. */
void udp_fill(uint8_t *bytes, size_t len, uint32_t number);

/** Sends packet `number` of `len` bytes in one piece, which is kept until the next udp_flush; what send says. */
int udp_send(struct udp_end *e, const struct rwk_link_address *to, uint32_t number, size_t len);
void udp_flush(struct udp_end *e);

/** Progress until `count` packets have arrived in all, one is damaged, or nothing comes for five seconds. */
void udp_receive(struct udp_end *e, unsigned count);
/** Progress until nothing has come for a tenth of a second. */
void udp_drain(struct udp_end *e);

/** Waits until a wait_fd of the link's is readable, at most that long; is it? */
bool udp_wait(struct udp_end *e, int milliseconds);

/**
 * Sends b as many packets of that length as its room has, `batches` or one by one, without b reading; then goes on for
 * a while with a window of that size, b reading a few at a time. Nothing may be lost.
 */
void udp_check_room(struct udp_end *a, struct udp_end *b, size_t len, bool batches);

struct rwk_udp_counters udp_counters(const struct udp_end *e);

#endif
