/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process whose memory is written and read by another one, which tells it over a socket what to look at. The target
 * drives its queue while it waits, unless its domain makes progress by itself: then it calls nothing. With the link
 * "self" both are one endpoint of one process.
 */
#ifndef RWK_FI_TARGET_H
#define RWK_FI_TARGET_H

#include "fi_pair.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define T_MEMORY ((size_t)(1 << 20) + 8192) /* bytes of the target's */
#define T_BEFORE 9                          /* seed of what they are filled with */

/** What to open, on both sides; zeroed: as fi_getinfo gives it for all capabilities. */
struct t_setup {
	int mr_mode;      /* of the hints, and as the domain is opened with */
	uint32_t version; /* 0: 1.17 */
	uint64_t caps;
	enum fi_progress progress;
	enum fi_threading threading;
	struct t_options options;
	uint64_t access; /* of the region; 0: FI_REMOTE_READ | FI_REMOTE_WRITE */
	bool cntrs;      /* the initiator has counters */
};

/** What the initiator has. */
struct t_user {
	struct t_process *p;
	const struct t_setup *setup;
	struct t_domain d;
	struct t_end e;
	struct t_host *host; /* its own, with the link "self"; NULL: the other process's */
	fi_addr_t to;
	uint64_t base, key;
	struct fid_cntr *reads, *writes;
	bool gone; /* the target: it has been killed */
};

enum t_what {
	T_FILL,  /* the memory, with the pattern of T_BEFORE */
	T_CHECK, /* `len` bytes from `at` on have the pattern of `seed`, begun there, and all others the one before */
	T_COPY,  /* answers with 8 bytes at `at` */
	T_ENTRY, /* answers with the next entry of its queue */
	T_EMPTY, /* its queue has nothing */
	T_REGISTER, /* the memory anew, after closing: access `at`, key `len` */
	T_CLOSE,    /* the registration */
	T_BIND,     /* counters for FI_REMOTE_READ and FI_REMOTE_WRITE, at the endpoint and at the registration */
	T_COUNT,    /* answers with these four */
	T_ADDRESS,  /* answers with the address of the memory */
	T_KILL,     /* itself */
	T_END
};

struct t_answer {
	uint64_t word[4];
	struct fi_cq_tagged_entry entry;
	fi_addr_t source;
};

/** Runs `run` in one process, with a target in another, over that link. */
void t_with_target(const char *link, const struct t_setup *setup, void (*run)(struct t_user *));

/** Tells the target, and waits until it has done so. */
struct t_answer t_ask(struct t_user *u, enum t_what what, uint64_t at, uint64_t len, unsigned seed);

/** Drives a queue of the user's, and a target of the same process. */
struct fi_cq_tagged_entry t_done(struct t_user *u);
struct fi_cq_err_entry t_failed(struct t_user *u);

/** The links that there are: shared memory, others, oneself. */
extern const char *const t_links[];
#define T_LINKS 4

#endif
