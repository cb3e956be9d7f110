/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which strand carries which peer, and the sentences that say why. rwk_sel_choose is a pure function from facts to a
 * choice: it asks nobody, keeps nothing, and may be called from any thread. The engine gathers the facts when it first
 * meets a peer.
 *
 * The rules, in order:
 *   myself                                                -> loop-back
 *   same node (claimed or proven), memory can be shared   -> UC on shm
 *   UDP gets through, few connections                     -> RC on udp
 *   UDP gets through, more connections than the limit     -> SRC on udp
 *   TCP gets through                                      -> UC on tcp
 * A forced service or link (parameters) leaves out every strand that is not of it; myself is never forced away.
 *
 * The limit between RC and SRC. RC gives each pair of ranks a flow of its own, with nobody to wait for; what speaks
 * against it is what its connections take. That grows with the square of the ranks on a node (each of J has J to each
 * other node), while the node's memory does not, and the kernel's part of it, a stream for each connection, is memory
 * that no swap takes. So the limit is on what the connections of all ranks of this node take together (cost.h): a
 * 1024th of the node's memory. A user who gives a job 4 GB a rank then spends at most 4 MB of them, some 700
 * connections, before the job has sent anything; and a job that fits into less has RC, whatever its shape: it is the
 * same limit for a fat node with many ranks and for a thin one. Where memory is not known it is RWK_SEL_SRC_LIMIT. It
 * is the parameter src_limit where that is set. One rank a node: SRC would take as many connections, and is never
 * chosen by number.
 */
#ifndef RWK_SELECTION_SELECTION_H
#define RWK_SELECTION_SELECTION_H

#include "base/param.h"
#include "topology/job_map.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** A service on a link. */
enum rwk_strand {
	RWK_STRAND_SELF,
	RWK_STRAND_UC_SHM,
	RWK_STRAND_RC_UDP,
	RWK_STRAND_SRC_UDP,
	RWK_STRAND_UC_TCP,
	RWK_STRAND_COUNT,
	RWK_STRAND_NONE = RWK_STRAND_COUNT, /* the peer cannot be reached */
};

#define RWK_STRAND_BIT(s) (1u << (s))

/** The strands that this version of ropewalk has. */
#define RWK_STRANDS_BUILT                                                                                              \
	(RWK_STRAND_BIT(RWK_STRAND_SELF) | RWK_STRAND_BIT(RWK_STRAND_UC_SHM) | RWK_STRAND_BIT(RWK_STRAND_RC_UDP) |     \
		RWK_STRAND_BIT(RWK_STRAND_SRC_UDP) | RWK_STRAND_BIT(RWK_STRAND_UC_TCP))

/** RC connections of all ranks of a node may take this part of its memory, */
#define RWK_SEL_MEMORY_PART 1024
/** and where memory is not known, each rank may have so many. */
#define RWK_SEL_SRC_LIMIT 1024

/** What the limit between RC and SRC comes from. */
enum rwk_sel_limit { RWK_SEL_LIMIT_MEMORY, RWK_SEL_LIMIT_PARAMETER, RWK_SEL_LIMIT_FIXED };

/** Whether a peer is on this node. */
enum rwk_sel_node {
	RWK_SEL_OTHER,   /* no: another host, or attaching showed a stranger */
	RWK_SEL_UNKNOWN, /* nobody says so: treated as another node */
	RWK_SEL_CLAIMED, /* the job map or its address says so; attaching will prove it */
	RWK_SEL_PROVEN,  /* attached */
};

struct rwk_sel_facts {
	bool self;
	enum rwk_sel_node node;
	int shm_error;          /* 0: memory can be shared; else the positive errno with which it was refused */
	const char *shm_reason; /* what was refused ("mapping the peer's memory"); NULL: not said */
	int cma_error;  /* 0: cross-memory copy works; else the positive errno; EOPNOTSUPP: the parameter cma is off */
	uint32_t rank;  /* mine, for EXPLAIN's lines; RWK_RANK_NONE: not known */
	uint32_t size;  /* ranks of the job, at least 1 */
	uint32_t nodes; /* at least 1 */
	uint32_t ranks_per_node;
	uint32_t local_size; /* ranks on this node, me included */
	uint32_t processors; /* that can run them; 0: not known */
	bool job_known;      /* a launcher or a file told the counts above; else peers are not counted */
	uint64_t memory;     /* bytes of this node; 0: not known */
	uint32_t src_limit;  /* RC connections a process beyond which SRC is chosen, by rwk_sel_set_limit */
	enum rwk_sel_limit limit_from;
	bool udp, tcp;          /* the peer can be reached so */
	const char *unshared;   /* why no connection can be shared with it; NULL: nothing is known against it */
	const char *no_network; /* why nobody can be; NULL: not known, or there is a network */
	unsigned built;         /* RWK_STRAND_BITs */
	int service, link;      /* forced: enum rwk_param_service, enum rwk_param_link */
};

#define RWK_SEL_TEXT 240

struct rwk_sel_choice {
	enum rwk_strand strand; /* NONE: refused, see error */
	enum rwk_strand wanted; /* what the rules would take if this version had every strand */
	int error; /* 0; -EHOSTUNREACH: no strand reaches the peer; -EINVAL: a forced service or link cannot serve it */
	bool copy_across;          /* UC on shm: large messages by cross-memory copy, else through shared memory */
	bool yield;                /* UC on shm: more ranks than processors: yield the core while waiting */
	char reason[RWK_SEL_TEXT]; /* one sentence: why this one, or why none and what would help */
	char lost[RWK_STRAND_COUNT][RWK_SEL_TEXT]; /* why each other one lost; "" for the one chosen */
	char manner[RWK_SEL_TEXT];                 /* how the chosen one works: large copies, waiting, reasons; or "" */
};

/**
 * Facts as they are before any peer is known: from the job map and the parameters in force; node UNKNOWN, memory and
 * copy not refused (cma_error EOPNOTSUPP where the parameter is off), udp and tcp reachable, built RWK_STRANDS_BUILT;
 * the limit set.
 */
void rwk_sel_facts_init(struct rwk_sel_facts *f, const struct rwk_job_map *map, const struct rwk_params *params);

/** Works out src_limit: from the parameter where that is not 0, else from memory and local_size. */
void rwk_sel_set_limit(struct rwk_sel_facts *f, size_t parameter);

/** The choice for these facts. Always fills `out`; out->error says whether the peer can be reached. */
void rwk_sel_choose(const struct rwk_sel_facts *f, struct rwk_sel_choice *out);

/**
 * Connections that a process needs to reach all other nodes, with RC to each rank and with SRC to each node, and the
 * bytes that those of all ranks of this node take with RC.
 */
uint64_t rwk_sel_rc_connections(const struct rwk_sel_facts *f);
uint64_t rwk_sel_src_connections(const struct rwk_sel_facts *f);
uint64_t rwk_sel_rc_bytes(const struct rwk_sel_facts *f);

/** "self", "UC/shm", "RC/udp", "SRC/udp", "UC/tcp", "none". */
const char *rwk_strand_text(enum rwk_strand s);

#define RWK_SEL_KINDS 16

/** Remembers what EXPLAIN has said, so that each kind of peer is explained once. Zeroed: nothing said. One a domain. */
struct rwk_sel_explainer {
	FILE *to; /* NULL: stderr */
	unsigned kinds;
	bool overflow; /* said that there are more kinds */
	struct {
		uint64_t key;   /* of what distinguishes the kind: whereabouts, choice and reasons */
		int where;      /* myself, this node, elsewhere */
		uint64_t peers; /* met so far */
	} kind[RWK_SEL_KINDS];
};

/**
 * Counts the peer as one of its kind; the first of a kind gets one line that starts with "ropewalk: ": rank, the kind
 * ("3 peers on this node"; a second kind in the same place is "some of 3 peers on this node"), the choice, and why each
 * other one lost. Returns true if it printed. Not thread-safe against itself. More than RWK_SEL_KINDS kinds: the rest
 * are not explained, and one line says so.
 */
bool rwk_sel_explain(struct rwk_sel_explainer *ex, const struct rwk_sel_facts *f, const struct rwk_sel_choice *c);

#endif
