/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an endpoint lets others see of it while it runs: `rwk_info --pid` reads it. One page of memory an endpoint, a
 * memfd named RWK_STATUS_NAME among the process's descriptors; whoever the kernel lets into /proc/PID/fd (the same
 * user, and root) opens it there and maps it, for reading alone: it is sealed against writing and against another size.
 *
 * The host program pays nothing for it. No thread, signal, lock or system call serves a reader, and nobody is told that
 * there is one. The engine's counters are kept in place: the page is the tail of struct rwk_engine (rwk_status_make),
 * so that they are counted where the reader finds them, by the instructions that counted them in private memory. All
 * else is written when an endpoint opens, meets a peer or loses one; what connections between nodes have carried is
 * copied a few times a second at most, on the way of the port's own clock.
 *
 * For the reader. A page may be that of a process that has ended, at any instruction, or whose memory is damaged: each
 * number and text is to be checked. What is written once is there before the count that covers it (`peers`, `kinds`,
 * release; read them with acquire); what changes is single words, each by itself: numbers of one moment do not need to
 * agree. Without a reader's pid to trust, `pid` and `start` tell whose page it is: a child of fork has its parent's.
 *
 * Layout: `head` is the same in every version. Any change of what follows changes RWK_STATUS_LAYOUT; a reader of
 * another one says so, and names the version that can read it.
 */
#ifndef RWK_ENGINE_STATUS_H
#define RWK_ENGINE_STATUS_H

#include "base/param.h"
#include "engine/engine.h"
#include "selection/selection.h"
#include "topology/job_map.h"

#define RWK_STATUS_NAME   "ropewalk status"
#define RWK_STATUS_MAGIC  "rwkstat" /* with its zero, 8 bytes */
#define RWK_STATUS_LAYOUT 3u

#define RWK_STATUS_PEERS 1024 /* peers that are listed; memory is taken only for those that there are */
#define RWK_STATUS_KINDS 16

struct rwk_status_head {
	char magic[8];
	uint32_t layout; /* RWK_STATUS_LAYOUT */
	uint32_t size;   /* bytes of the page */
	char version[48]; /* of ropewalk */
};

/** A kind of peer: where they are, what was chosen for them and why. */
struct rwk_status_kind {
	uint32_t self, here; /* it is the endpoint itself; a peer on this node */
	uint32_t strand;     /* enum rwk_strand; NONE: they cannot be reached */
	uint32_t spare;
	uint64_t peers; /* chosen so; of all, also of those that are not listed. One for whom another choice had to be
			   made later counts in both */
	char reason[RWK_SEL_TEXT];
	char lost[RWK_STRAND_COUNT][RWK_SEL_TEXT];
	char manner[RWK_SEL_TEXT];
};

/** A peer that there was contact with. */
struct rwk_status_peer {
	struct rwk_address address;
	uint32_t kind; /* index of its kind; RWK_STATUS_KINDS: there was no room for it */
	int32_t error; /* 0, or a positive errno: it has failed; EALREADY: it is another address of a peer (merge.c) */
	uint64_t traffic_at; /* CLOCK_MONOTONIC, ns: when `traffic` was copied; 0: never, nothing is counted */
	struct rwk_traffic traffic;
};

struct rwk_status {
	struct rwk_status_head head;

	/* Whose it is: as rwk_process_start has it, and in the process's own PID namespace. */
	int64_t pid;
	uint64_t start;
	uint64_t opened; /* CLOCK_REALTIME, ns */
	struct rwk_address address;
	char program[16];
	char host[64];

	/* The job, see job_map.h. */
	char job[128];
	uint32_t source;
	uint32_t rank, size, nodes, node, local_index, local_size;
	uint32_t nodes_exact, oversubscribed;

	char settings[2048]; /* NAME=value and a newline for each parameter that the environment has set; of a secret
				"(set)". What has no room is left out, and "..." stands at the end */

	uint32_t kinds, peers;
	uint64_t closed; /* not 0: the endpoint has been closed */
	uint64_t unlisted; /* peers beyond RWK_STATUS_PEERS */
	struct rwk_engine_counters counters __attribute__((aligned(64)));
	struct rwk_status_kind kind[RWK_STATUS_KINDS];
	struct rwk_status_peer peer[RWK_STATUS_PEERS];
};
_Static_assert(sizeof(struct rwk_status_head) == 64, "the head is the same in every version");
_Static_assert(sizeof(struct rwk_status_peer) == 176 && sizeof(struct rwk_status_kind) == 1704 &&
		       offsetof(struct rwk_status, counters) == 2496,
	"another layout takes another RWK_STATUS_LAYOUT");

/**
 * Memory that is zero: `before` bytes (a multiple of 64) of the caller's own, then a page. Returns where the page
 * begins, a multiple of 64; NULL when out of memory. *fd is the page's descriptor, or -1 if nobody can see it: the
 * parameter `visible` is no, descriptors are too few, or the system has no such seals.
 */
struct rwk_status *rwk_status_make(size_t before, int *fd);
/** Frees both, closes the descriptor. */
void rwk_status_free(struct rwk_status *s, size_t before, int fd);

/** Writes who this process is and what the job is; last of all the head, without which there is nothing to see. */
void rwk_status_open(struct rwk_status *s, const struct rwk_address *me, const struct rwk_job_map *map);

/** The first choice for the peer of that address was made: its entry, NULL if there is no room. */
struct rwk_status_peer *rwk_status_met(struct rwk_status *s, const struct rwk_address *peer,
	const struct rwk_sel_facts *f, const struct rwk_sel_choice *c);
/** Another choice had to be made; `p` may be NULL. */
void rwk_status_changed(struct rwk_status *s, struct rwk_status_peer *p, const struct rwk_sel_facts *f,
	const struct rwk_sel_choice *c);
/** What the peer's connection has carried so far, at that time. */
void rwk_status_traffic(struct rwk_status_peer *p, const struct rwk_traffic *t, uint64_t now);

#endif
