/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Benchmarks of the channel adapter: two programs on ropewalk.h, on one host or two, each with one queue pair. The one
 * that is given a host is rank 0: it begins, measures, and prints; the one that waits for it is rank 1. They meet over
 * TCP, tell each other where they are and how they were started, and agree over it between the loops.
 *
 *   operation  what is measured: send, write, read, compare-swap, fetch-add
 *   echoed     send and write: in a ping-pong the other end answers with the same; the others need no answer
 *   round      the messages between two agreements of the ends: all of a loop; with -c those of one window, each of
 *              which is looked at before its memory is used again
 *
 * All work of an adapter is done by rwk_cq_poll: who waits, for a message or for the other program, polls.
 */
#ifndef BENCH_ADAPTER_ADAPTER_H
#define BENCH_ADAPTER_ADAPTER_H

#include "bench/common/bench.h"
#include "bench/common/options.h"
#include "include/ropewalk.h"
#include "tools/meet.h"

#define BENCH_ADAPTER_PATIENCE 10 /* seconds: without any completion; until the other program is there */

struct bench_operation {
	const char *name;
	enum rwk_request_type type;
	bool echoed, atomic;
};

struct bench_adapter_options {
	struct bench_options common; /* window: requests that are posted and not completed, at most */
	const struct bench_operation *operation;
	enum rwk_qp_type type;
	const char *type_name;
	bool bidirectional;
	bool all_times, unsorted; /* -H, -U */
	const char *host;
	uint8_t ip[16];              /* zero: any */
	unsigned tcp_port, udp_port; /* udp_port 0: one that is free */
	uint32_t pmtu, inline_max;
};

struct bench_adapter {
	struct bench_team team; /* first: a test casts its team to the adapter */
	const struct bench_adapter_options *o;
	const struct bench_test *test;
	char library[96];
	int talk; /* TCP, to the other program */

	struct rwk_adapter *adapter;
	struct rwk_pd *pd;
	struct rwk_cq *cq;
	struct rwk_src_domain *domain; /* SRC, and its one srq */
	struct rwk_srq *srq;
	struct rwk_qp *qp;
	struct rwk_place mine, theirs;
	uint32_t pmtu; /* of both ends */

	/* The two buffers of the sweep, and the peer's: it writes to `recv`, reads from `send`; atomics are on `recv`.
	 */
	struct rwk_mr *send_mr, *recv_mr;
	uint64_t their_send, their_recv;
	uint32_t their_send_key, their_recv_key;

	/* The round. */
	struct bench_run *run;
	unsigned long base;              /* messages of the loop before this round */
	bool marked;                     /* the last byte of a message is its mark: who waits for a Write looks there */
	bool tells;                      /* a Write carries immediate data */
	unsigned long posted, completed; /* requests */
	unsigned long receives_wanted, receives_posted, received;
	unsigned long next; /* number in the loop that the next message to come has, over UC at least */

	double *times; /* of each iteration of the last loop, in us; NULL: not wanted */
	unsigned long times_room;
};

/** The main function of each program: the exit status is 0, 1 for wrong data, 2 for anything else that went wrong. */
int bench_adapter_main(int argc, char **argv, const struct bench_test *test);

/** As bench_options_parse. `test` is changed to what the operation allows. */
int bench_adapter_parse(int argc, char **argv, struct bench_test *test, struct bench_adapter_options *o);

/* ---- the two ends (ends.c); 0 or a negative errno, told on stderr ---- */

/** Meets the other program and connects the queue pairs. bench_adapter_close undoes it, after a failure too. */
int bench_adapter_open(struct bench_adapter *p);
void bench_adapter_close(struct bench_adapter *p);
/** Both ends call it: the queue pair is as new, and nothing is posted. */
int bench_adapter_reconnect(struct bench_adapter *p);
/** Tells the other program a value and polls until it has told its own: neither goes on before the other is there. */
int bench_adapter_exchange(struct bench_adapter *p, uint64_t mine, uint64_t *theirs);
/** bench_team.largest. */
int bench_adapter_largest(struct bench_team *team, double *value);

/* ---- requests and receives (work.c); the same ---- */

/** Registers the run's buffers if they are new, and begins a round behind `base` messages of the loop. */
int bench_adapter_begin(struct bench_adapter *p, struct bench_run *r, unsigned long base);
/** Says that so many messages will come in this round, and posts receives for as many as there is room. */
int bench_adapter_expect(struct bench_adapter *p, unsigned long messages);
/** Posts message number p->base + p->posted. */
int bench_adapter_post(struct bench_adapter *p);
/** The mark of message `number`: not that of the one before. */
static inline char bench_adapter_mark(unsigned long number)
{
	return (char)(number + 1);
}
/** Takes what has completed. `w`, all 0 to begin with, ends a wait in which nothing happens. */
struct bench_adapter_wait {
	unsigned long empty;
	double since;
};
int bench_adapter_poll(struct bench_adapter *p, struct bench_adapter_wait *w);
/** The contents of message number `i` of the loop that is for rank `to`. */
uint64_t bench_adapter_seed(const struct bench_run *r, int to, unsigned long i);
/** The place of message `i` of a round in the buffer at `buffer`. */
char *bench_adapter_slot(const struct bench_adapter *p, char *buffer, unsigned long i);

/* ---- the loops, and what is said behind a row ---- */

int bench_adapter_pingpong(struct bench_run *r, double *seconds);
int bench_adapter_stream(struct bench_run *r, double *seconds);
void bench_adapter_print_times(struct bench_run *r);
void bench_adapter_print_lost(struct bench_run *r);

#endif
