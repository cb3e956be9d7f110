/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes, each with one endpoint of a libfabric provider, and nothing above it. The first process is rank
 * 0 and forks rank 1; they exchange addresses and decisions through a socket pair, and each is bound to a core of its
 * own.
 *
 * One completion queue serves both directions, as in Open MPI. Waiting is polling: while it waits for anything, also
 * for a decision of the other process, a process reads its queue, since many providers move data only then. Every wait
 * ends: with what it waits for, when the other process is gone, or after BENCH_PATIENCE seconds without any completion.
 */
#ifndef BENCH_OFI_PAIR_H
#define BENCH_OFI_PAIR_H

#include "bench/common/bench.h"
#include "bench/common/options.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <sys/types.h>

#define BENCH_PATIENCE 30

/** The state of one wait, all 0 to begin with: how often nothing came, and since when. */
struct bench_wait {
	unsigned long empty;
	double since;
};

/** What rank 0 reaches at rank 1 in the tests of one-sided operations. */
struct bench_reach {
	char *memory; /* of `bytes`, on both ranks */
	size_t bytes;
	struct fid_mr *mr, *local[2]; /* of `memory`; of the run's two buffers, where the provider wants that */
	void *send_desc, *recv_desc;
	uint64_t address, key; /* of the other's memory */
};

struct bench_pair_test;

struct bench_pair {
	struct bench_team team; /* first: a test casts its team to the pair */
	char library[160];
	const char *provider;
	int channel;                             /* socket to the other process */
	pid_t child;                             /* of rank 0 */
	size_t inject_size;                      /* messages up to this go by fi_tinject; 0: none */
	const struct bench_pair_test *one_sided; /* NULL: the test is one of messages */
	struct bench_reach reach;

	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;

	/* What the provider may keep of an operation in flight; one for each of a window and one for its answer. */
	struct fi_context2 *receive_context, *send_context;
	size_t contexts;
	/* Operations posted that complete with an entry, and entries seen. */
	unsigned long sends, sends_done, receives, receives_done;
};

/** The main function of a benchmark on bare libfabric; returns the exit status as bench_mpi_main does. */
int bench_pair_main(int argc, char **argv, const struct bench_test *test);

/** The same for a test of one-sided operations (one_sided.h). */
int bench_pair_one_sided_main(int argc, char **argv, const struct bench_pair_test *test);

/** Opens the endpoint and exchanges addresses. Returns 0 or a negative errno, reported. pair_close undoes it, also
 * after a failure. */
int bench_pair_open(struct bench_pair *p, const struct bench_options *o);
void bench_pair_close(struct bench_pair *p);

/** Posts a receive or send (index `i` below the window + 1). A send of at most p->inject_size bytes is injected. 0 or a
 * negative errno, reported. */
int bench_pair_receive(struct bench_pair *p, void *data, size_t size, uint64_t tag, unsigned i);
int bench_pair_send(struct bench_pair *p, const void *data, size_t size, uint64_t tag, unsigned i);

/** Says on stderr which call failed with which errno, and returns that. */
int bench_pair_failed(const struct bench_pair *p, const char *call, long rc);

/** One poll; now and then a look whether waiting on makes sense. 0 or a negative errno, reported. */
int bench_pair_poll(struct bench_pair *p, struct bench_wait *w);

/** Sends `mine` of `size` bytes to the other process and polls until its own are in `theirs`. 0 or a negative errno,
 * reported. */
int bench_pair_exchange(struct bench_pair *p, const void *mine, void *theirs, size_t size);

/** Polls until that many receives, or all sends posted, are complete. 0 or a negative errno, reported. */
int bench_pair_wait_receives(struct bench_pair *p, unsigned long done);
int bench_pair_wait_sends(struct bench_pair *p);

/** bench_team.largest over the socket pair. */
int bench_pair_largest(struct bench_team *team, double *value);

/** The loops: ping-pong, and windows from rank 0 to rank 1, each answered by one empty message. */
int bench_pair_pingpong(struct bench_run *r, double *seconds);
int bench_pair_stream(struct bench_run *r, double *seconds);

#endif
