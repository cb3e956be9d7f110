/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes on two cores that measure the machine together. Both run the same measurements in the same order;
 * `side` tells them apart: 0 leads and reports, 1 is its mate. They meet in memory that both map.
 *
 * Waiting is spinning on that memory. Every wait ends: with what it waits for, or the program ends with a message when
 * the mate is gone or MATE_PATIENCE seconds have passed.
 */
#ifndef BENCH_MACHINE_MATE_H
#define BENCH_MACHINE_MATE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define MATE_PATIENCE 30
#define MATE_LARGEST  ((size_t)4 << 20) /* the largest size measured */

/** A word that has its cache line, and the line that prefetchers fetch along with it, to itself. */
struct mate_line {
	_Alignas(128) uint64_t word;
};

/** What both processes map. All zero to begin with. */
struct mate_shared {
	struct mate_line met[2];            /* how many meetings each side has come to */
	struct mate_line line[2];           /* for the measurements; zero at the start of each */
	struct mate_line sent[2], taken[2]; /* counts of the ring in each direction, in bytes */
	uint64_t agreed;                    /* what the leader has decided */
	pid_t pid[2];
	struct sockaddr_in address[2];
	void *private_data[2];                     /* each side's own buffer */
	_Alignas(4096) char data[2][MATE_LARGEST]; /* one message area for each direction */
};

struct mate {
	int side;
	pid_t other;
	struct mate_shared *shared;
	uint64_t meetings;
	char *private_data; /* 2 * MATE_LARGEST of this side's own */
	double seconds;     /* wanted for one repeat */
	unsigned repeats;
	pid_t between[2]; /* processes that hold the network of each side's host; 0: both sides use loopback */
	FILE *json;       /* of the leader, if wanted and not complete yet */
	const char *json_path;
	bool quiet; /* no table */
	unsigned rows;
};

enum mate_unit { MATE_NS, MATE_US, MATE_MB_S };

struct mate_measurement {
	const char *name;
	size_t size; /* bytes in one operation; 0: none */
	enum mate_unit unit;
	unsigned operations; /* in one iteration: 2 for a ping-pong */
	/** Runs that many iterations on this side. Both sides begin together, the leader's time counts. */
	void (*run)(struct mate *m, size_t size, uint64_t iterations);
	void (*alone)(struct mate *m, size_t size,
		uint64_t iterations); /* instead of run: the leader only, its mate sleeps */
};

/** Forks the mate and binds both to cores of their own. Returns 0 or a negative errno, reported. */
int mate_start(struct mate *m);

/** The mate ends here; the leader waits for it and returns the exit status. */
int mate_finish(struct mate *m, int status);

/** Waits until both sides are here. */
void mate_meet(struct mate *m);

/** Gives the leader's value to both. Waits until both sides are here. */
uint64_t mate_agree(struct mate *m, uint64_t value);

/** Spins until *word >= value. */
void mate_await(struct mate *m, const uint64_t *word, uint64_t value);

/** Now and then, while spinning on something else: ends the program where waiting on makes no sense. `since` is 0 at
 * first. */
void mate_look_round(struct mate *m, double *since);

/** Measures and reports; returns the median in the measurement's unit on the leader, 0 on its mate. */
double mate_measure(struct mate *m, const struct mate_measurement *what);

/** Reports a value that was worked out from others. */
void mate_report(
	struct mate *m, const char *name, size_t size, enum mate_unit unit, double median, double min, double max);

/** The groups of measurements. */
void measure_line(struct mate *m);
void measure_copy(struct mate *m);
void measure_ring(struct mate *m);
void measure_cross(struct mate *m);
void measure_udp(struct mate *m);

/** Time of a line to the other core and back, halved, in ns; takes about 10 ms in all. */
double measure_probe(struct mate *m);

#endif
