/* SPDX-License-Identifier: BSD-3-Clause */
#include "topology/node_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void rwk_node_map_init(struct rwk_node_map *m)
{
	memset(m, 0, sizeof(*m));
}

void rwk_node_map_free(struct rwk_node_map *m)
{
	free(m->runs);
	free(m->dense);
	rwk_node_map_init(m);
}

static uint32_t run_node(const struct rwk_node_run *r, uint32_t i)
{
	if (r->first_node == RWK_NODE_NONE)
		return RWK_NODE_NONE;
	return r->first_node + i / r->block % r->cycle;
}

/*
 * How many of `count` more ranks on `node` the run can take without a lie about those it has. What is still open may be
 * bent: a run of one block may have it longer, and a run that has not yet gone round may have one node more, or go
 * round now.
 */
static uint32_t run_extend(struct rwk_node_run *r, uint32_t count, uint32_t node)
{
	uint32_t into_block = r->count % r->block;
	uint32_t fits = r->block - into_block;

	if (r->count == r->block && node == run_node(r, 0)) {
		r->block += count;
		r->count += count;
		return count;
	}
	if (r->first_node == RWK_NODE_NONE || node == RWK_NODE_NONE)
		return 0;
	if (!into_block && r->count / r->block == r->cycle && node == r->first_node + r->cycle)
		r->cycle++;
	if (run_node(r, r->count) != node)
		return 0;
	/* A node's last block in a run may be longer than the pattern: the rest starts a run of its own. */
	if (fits > count)
		fits = count;
	r->count += fits;
	return fits;
}

static int run_start(struct rwk_node_map *m, uint32_t count, uint32_t node)
{
	if (m->run_count == m->run_room) {
		size_t room = m->run_room ? 2 * m->run_room : 4;
		struct rwk_node_run *runs = realloc(m->runs, room * sizeof(*runs));

		if (!runs)
			return -ENOMEM;
		m->runs = runs;
		m->run_room = room;
	}
	m->runs[m->run_count++] = (struct rwk_node_run){
		.first = m->ranks, .count = count, .first_node = node, .block = count, .cycle = 1};
	m->ranks += count;
	return 0;
}

int rwk_node_map_add(struct rwk_node_map *m, uint32_t count, uint32_t node)
{
	uint32_t taken;

	while (count) {
		taken = m->run_count ? run_extend(&m->runs[m->run_count - 1], count, node) : 0;
		if (!taken)
			return run_start(m, count, node);
		m->ranks += taken;
		count -= taken;
	}
	return 0;
}

int rwk_node_map_finish(struct rwk_node_map *m)
{
	size_t bytes = m->run_count * sizeof(*m->runs);
	struct rwk_node_run *runs;
	uint32_t *dense;

	if (bytes <= m->ranks * sizeof(*dense)) {
		runs = realloc(m->runs, bytes ? bytes : 1);
		if (!runs)
			return -ENOMEM;
		m->runs = runs;
		m->run_room = m->run_count;
		return 0;
	}
	dense = malloc(m->ranks * sizeof(*dense));
	if (!dense)
		return -ENOMEM;
	for (size_t i = 0; i < m->run_count; i++) {
		const struct rwk_node_run *r = &m->runs[i];

		for (uint32_t j = 0; j < r->count; j++)
			dense[r->first + j] = run_node(r, j);
	}
	free(m->runs);
	m->runs = NULL;
	m->run_count = m->run_room = 0;
	m->dense = dense;
	return 0;
}

uint32_t rwk_node_map_at(const struct rwk_node_map *m, uint32_t rank)
{
	size_t low = 0, high = m->run_count;

	if (rank >= m->ranks)
		return RWK_NODE_NONE;
	if (m->dense)
		return m->dense[rank];
	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (m->runs[mid].first <= rank)
			low = mid;
		else
			high = mid;
	}
	return run_node(&m->runs[low], rank - m->runs[low].first);
}

size_t rwk_node_map_bytes(const struct rwk_node_map *m)
{
	return m->run_room * sizeof(*m->runs) + (m->dense ? m->ranks * sizeof(*m->dense) : 0);
}

/* Adds the ranks of run `r` to their nodes' counts; `count` has room for every node of the map. */
static void run_tally(const struct rwk_node_run *r, uint32_t *count)
{
	for (uint32_t i = 0; i < r->count; i += r->block) {
		uint32_t left = r->count - i;

		count[run_node(r, i)] += left < r->block ? left : r->block;
	}
}

int rwk_node_map_count(const struct rwk_node_map *m, uint32_t *nodes, uint32_t *most)
{
	uint32_t room = 0, found = 0, max = 0;
	uint32_t *count;

	for (size_t i = 0; i < m->run_count; i++) {
		const struct rwk_node_run *r = &m->runs[i];

		if (r->first_node == RWK_NODE_NONE)
			return -ENODATA;
		if (r->first_node + r->cycle > room)
			room = r->first_node + r->cycle;
	}
	for (uint32_t i = 0; m->dense && i < m->ranks; i++) {
		if (m->dense[i] == RWK_NODE_NONE)
			return -ENODATA;
		if (m->dense[i] + 1 > room)
			room = m->dense[i] + 1;
	}
	if (!room)
		return -ENODATA;
	count = calloc(room, sizeof(*count));
	if (!count)
		return -ENOMEM;
	for (size_t i = 0; i < m->run_count; i++)
		run_tally(&m->runs[i], count);
	for (uint32_t i = 0; m->dense && i < m->ranks; i++)
		count[m->dense[i]]++;
	for (uint32_t i = 0; i < room; i++) {
		found += count[i] > 0;
		max = count[i] > max ? count[i] : max;
	}
	free(count);
	*nodes = found;
	*most = max;
	return 0;
}
