/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which node each rank is on, small enough for a million ranks in every process. Launchers place ranks in blocks or in
 * turn, so the map is a list of runs: within a run, `block` ranks in a row share a node, the next block is on the next
 * node, and after `cycle` nodes it starts again at the first. 15625 nodes of 64 ranks are one run of 20 bytes, by
 * blocks or in turn. A placement without a pattern is kept as a plain array of 4 bytes a rank, so that it never takes
 * more than that.
 *
 * Built rank by rank with rwk_node_map_add, then closed by rwk_node_map_finish; read-only from then on (any thread may
 * read).
 */
#ifndef RWK_TOPOLOGY_NODE_MAP_H
#define RWK_TOPOLOGY_NODE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define RWK_NODE_NONE UINT32_MAX /* the node is not known */
#define RWK_MAX_NODES (1u << 24) /* node numbers are labels below this, not necessarily without gaps */
#define RWK_MAX_RANKS (1u << 24)

struct rwk_node_run {
	uint32_t first;      /* rank */
	uint32_t count;      /* ranks; the last block may be cut short */
	uint32_t first_node; /* RWK_NODE_NONE: the nodes of these ranks are not known; then block = count, cycle = 1 */
	uint32_t block;      /* ranks in a row on a node, > 0 */
	uint32_t cycle;      /* nodes before it starts again at first_node, > 0 */
};

struct rwk_node_map {
	struct rwk_node_run *runs; /* sorted by first, without gaps */
	uint32_t *dense;           /* node of each rank; non-NULL: used in place of runs */
	size_t run_count, run_room;
	uint32_t ranks;
};

/** An empty map. */
void rwk_node_map_init(struct rwk_node_map *m);

/**
 * Adds `count` (> 0) ranks, which all live on `node` (below RWK_MAX_NODES, or RWK_NODE_NONE), behind those added so
 * far; at most RWK_MAX_RANKS in all. Returns 0 or -ENOMEM.
 */
int rwk_node_map_add(struct rwk_node_map *m, uint32_t count, uint32_t node);

/**
 * Closes the map: trims its memory, and changes to the plain array where that is smaller. Returns 0 or -ENOMEM (still
 * usable).
 */
int rwk_node_map_finish(struct rwk_node_map *m);

/** Frees what the map holds; it is empty again. */
void rwk_node_map_free(struct rwk_node_map *m);

/**
 * The node of `rank`, RWK_NODE_NONE if it is not known or the rank not in the map. Logarithmic in the number of runs.
 */
uint32_t rwk_node_map_at(const struct rwk_node_map *m, uint32_t rank);

/**
 * How many nodes have ranks, and how many ranks the fullest one has. Takes memory for a count a node while it runs.
 * Returns 0, -ENODATA (empty, or the node of some rank is not known) or -ENOMEM; outputs are set only on success.
 */
int rwk_node_map_count(const struct rwk_node_map *m, uint32_t *nodes, uint32_t *most);

/** Bytes on the heap. */
size_t rwk_node_map_bytes(const struct rwk_node_map *m);

#endif
