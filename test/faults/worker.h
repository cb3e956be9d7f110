/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process of a fault test: a plain libfabric program over FI_EP_RDM that exchanges checked tagged messages with all
 * others without end, or reaches into their memory, and tells the launcher (test/faults/job.py) what it sees. It takes
 * commands on standard input, a line each:
 *
 *   peers ADDRESS...   the addresses of all ranks in hexadecimal, its own among them; inserted
 *   go                 traffic begins
 *   report             answered by "count MESSAGES"; of one-sided traffic: accesses
 *   deny               from now on the kernel refuses what --deny names
 *   stop               each peer is told which message was the last
 *   exit               after "done": closes everything and exits
 *
 * and says on standard output: "addr HEX", "ready", "count N", "gone peer=P ..." (a peer's operations have all ended,
 * at least one in error, and so have two that were tried after that), "reached peer=P accesses=N" (with --mix reach,
 * now and then), "done messages=N bytes=N", or
 * "wrong ..." before it exits with 1. It ends with its launcher.
 */
#ifndef RWK_TEST_FAULTS_WORKER_H
#define RWK_TEST_FAULTS_WORKER_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_RANKS = 64, WINDOW = 2, MOST = 4 << 20 };

enum mix { MIX_ALL, MIX_SMALL, MIX_LARGE, MIX_WAIT, MIX_ACCESS, MIX_REGIONS, MIX_REACH };

struct options {
	const char *provider;
	int rank, ranks;
	enum mix mix;     /* which sizes; MIX_WAIT: nobody sends, all wait; the last three: one-sided traffic */
	bool sread;       /* sleep in fi_cq_sread instead of polling */
	bool fork;        /* have children now and then */
	const char *deny; /* system calls that `deny` makes the kernel refuse: cma pidfd membarrier */
	bool deny_now;    /* before libfabric is opened */
};

/** What libfabric has opened for us. */
struct fabric {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peers[MAX_RANKS];
};

/** Says "wrong ..." and exits with 1. */
_Noreturn void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** A line to the launcher. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** `caps`: beside those for messages. */
void fabric_open(struct fabric *f, const struct options *o, uint64_t caps);
/** Says "addr ...". */
void fabric_say_address(struct fabric *f);
void fabric_insert(struct fabric *f, int rank, const char *hex);
void fabric_close(struct fabric *f);
/**
 * Hands out what has completed, well or in error (an entry that has a context): true if anything has. `wait_ms`: sleeps
 * so long for it, if need be; 0: polls. Exits with a complaint if the queue is broken.
 */
bool fabric_reap(struct fabric *f, int wait_ms, void (*completed)(const struct fi_cq_tagged_entry *e),
	void (*in_error)(const struct fi_cq_err_entry *e));

/** Makes the kernel answer EPERM to the system calls of that group from now on, in every thread. */
void deny_calls(const char *group);

/** The messages: what rank `from` sends to rank `to` as its number `seq`, the same at both ends. */
size_t message_size(enum mix mix, int from, int to, uint64_t seq);
void message_fill(void *buf, size_t len, int from, int to, uint64_t seq);

/** What is done to the others without end. */
struct traffic {
	uint64_t caps; /* of libfabric's that it takes, beside those for messages */
	/** What there must be before anybody knows our address; NULL: nothing. */
	void (*set_up)(struct fabric *f, const struct options *o);
	void (*start)(struct fabric *f, const struct options *o);
	/** One round of progress; returns true if anything completed. */
	bool (*poll)(void);
	/** Nothing further begins; each living peer is told, if it has to know. */
	void (*stop)(void);
	/** Whether all of ours has ended, and every living peer has said that it has stopped. */
	bool (*done)(void);
	/** Messages received, or accesses that have ended well; their bytes. */
	uint64_t (*count)(void);
	uint64_t (*bytes)(void);
	/** Before the fabric is closed; NULL: nothing. */
	void (*take_down)(void);
};

extern const struct traffic message_traffic, access_traffic;

#endif
