/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of rwk_pingpong share: what is wanted (rwk_pingpong_options.c), this end (rwk_pingpong_end.c), and the
 * game between the two (rwk_pingpong.c).
 *
 *   terms    what both ends must have been told alike: operation, type, size, count
 *   passive  the end that answers Reads and atomics: its program has nothing to do but to poll
 *
 * What goes wrong ends the program, with a sentence on stderr.
 */
#ifndef RWK_TOOLS_PINGPONG_H
#define RWK_TOOLS_PINGPONG_H

#include "include/ropewalk.h"
#include "tools/meet.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SRQS 4u  /* of an end, over SRC; the messages go to them in turn */
#define LINE 256 /* bytes, of what is said and typed */

struct operation {
	const char *name;
	enum rwk_request_type type;
	bool passive; /* the responder's program takes no part */
	bool atomic;
};

/* ---- what is wanted ---- */

struct want {
	const struct operation *operation;
	enum rwk_qp_type type;
	uint32_t size, count, pmtu;
	unsigned tcp_port, udp_port, seconds;
	const char *ip, *peer, *host;
	bool first; /* this end begins */
};

extern struct want want;

/* Fills `want` from the command line; ends the program with status 64 if that is wrong. */
void read_arguments(int argc, char **argv);
/* How a type is written on the command line (rc) and in what is printed (RC). */
const char *type_name(enum rwk_qp_type type);
const char *type_title(enum rwk_qp_type type);

/* ---- this end ---- */

extern struct rwk_adapter *adapter;
extern struct rwk_cq *cq;
extern struct rwk_qp *qp;
extern uint8_t *out, *in; /* want.size bytes each; the peer reaches `in` */
extern struct rwk_mr *out_mr;
extern struct rwk_place theirs;
extern int talk;        /* with the peer, over TCP; negative: places are typed */
extern FILE *listen_to; /* the same */

void open_end(void);
/* Both places are known to both ends, and both are ready, when this returns. */
void introduce(void);
/* Posts the receive into which message i will come. */
void post_receive(uint32_t i);
/* SRC: the number of the SRQ that message i is for; else 0. */
uint32_t srqn_of(uint32_t i);
/* Ends the program if rc is a negative errno. */
void demand(int rc, const char *what);

/* ---- what messages consist of ---- */

/*
 * Byte k of message i of the end that begins, or of the other one. The last byte is another one for i + 1, so that it
 * shows that a Write is there.
 */
uint8_t byte_of(bool first, uint32_t i, size_t k);
void fill(uint8_t *to, bool first, uint32_t i);
/* Ends the program if a byte is wrong. */
void check(const uint8_t *bytes, bool first, uint32_t i);

#endif
