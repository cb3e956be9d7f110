/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two programs on ropewalk.h find each other and say what each must know of the other: a line of text each, over a
 * TCP connection, or typed. It is for rwk_pingpong, the benchmarks and the examples; a program of one's own has its own
 * ways.
 *
 *   place   IP, UDP port, QP number, first PSN, and key and address of memory, of one end
 */
#ifndef RWK_TOOLS_MEET_H
#define RWK_TOOLS_MEET_H

#include <stddef.h>
#include <stdint.h>

#define RWK_PLACE_LENGTH 128 /* bytes of a place as text, at most, with its end */
#define RWK_MEET_PORT    18515u

struct rwk_place {
	uint8_t ip[16];
	unsigned port, qpn, psn, key; /* port in the host's byte order */
	uint64_t address;
};

/** The address that a text like 10.0.0.1 or fe80::1 stands for, as ropewalk.h has addresses. 0 or -EINVAL. */
int rwk_ip_from_text(const char *text, uint8_t ip[16]);

/** IP,PORT,QPN,PSN,KEY,ADDRESS into `text`, of RWK_PLACE_LENGTH bytes. */
void rwk_place_print(char *text, const struct rwk_place *p);
/** Reads that, and returns what stands behind it; NULL: it is no place, and `p` stays as it was. */
const char *rwk_place_parse(const char *text, struct rwk_place *p);

/**
 * A TCP connection between two programs, at that port: with `host`, as its client, which tries again as long as nobody
 * listens, or answers; without, the first that comes. Blocks for at most `seconds`, and a moment for each address. The
 * file descriptor, which is the caller's, and blocks; a negative errno, told on stderr.
 */
int rwk_meet(const char *host, unsigned port, unsigned seconds);
/**
 * The same in two steps, without `host`, for who wants to see that it is the right one that comes: the listening
 * socket, and the next connection to it. Both are the caller's; a negative errno, told on stderr.
 */
int rwk_meet_listen(unsigned port);
int rwk_meet_accept(int listener, unsigned port, unsigned seconds);
/** The address of who is at the other end of that connection: 0, or a negative errno. */
int rwk_meet_peer(int fd, uint8_t ip[16]);

#endif
