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
 * A TCP connection between two programs, at that port: as the client of `host`, which tries again as long as nobody
 * listens, or answers. Blocks for at most `seconds`, and a moment for each address. The file descriptor, which is the
 * caller's, and blocks; a negative errno, told on stderr.
 */
int rwk_meet(const char *host, unsigned port, unsigned seconds);
/**
 * The other end of it. A port is open to anybody: who does not begin with a place is sent away, told nothing, and told
 * of on stderr. The first line of the one that stays is in `line`, of `len` bytes, without its end, and with nothing in
 * it that a terminal would obey. Blocks for at most `seconds` until somebody comes, and as long until he has said it.
 */
int rwk_meet_await(unsigned port, unsigned seconds, char *line, size_t len);
/**
 * What comes of a line within that time, without its end, and with nothing in it that a terminal would obey; nothing
 * that stands behind it is taken. Empty: nothing has come.
 */
void rwk_meet_read_line(int fd, unsigned seconds, char *line, size_t len);
/** The address of who is at the other end of that connection: 0, or a negative errno. */
int rwk_meet_peer(int fd, uint8_t ip[16]);

#endif
