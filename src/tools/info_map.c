/* SPDX-License-Identifier: BSD-3-Clause */
/* The job map and the machine, as a document. */
#include "tools/info.h"

#include <inttypes.h>

#define RUNS 4096 /* stretches of ranks on one node that are told */

static void machine_doc(struct rwk_doc *d, const struct rwk_machine *m)
{
	rwk_doc_object(d, "machine");
	rwk_doc_flag(d, "this_one", m->this_system);
	rwk_doc_number(d, "cores", m->cores);
	rwk_doc_number(d, "processors", m->processors);
	rwk_doc_number_if(d, "packages", m->known, m->packages);
	rwk_doc_number_if(d, "numa_nodes", m->known, m->numa_nodes);
	rwk_doc_number_if(d, "l3_caches", m->known, m->l3_caches);
	rwk_doc_number_if(d, "memory_bytes", m->memory, m->memory);
	rwk_doc_number(d, "my_cores", m->my_cores);
	rwk_doc_number(d, "my_processors", m->my_processors);
	rwk_doc_flag(d, "bound", m->bound);
	rwk_doc_end(d);
}

/** Who is where: ranks in a row that are on the same node. */
static void ranks_doc(struct rwk_doc *d, const struct rwk_job_map *m)
{
	uint32_t first = 0, end;

	rwk_doc_list(d, "ranks");
	for (uint32_t runs = 0; first < m->size && runs < RUNS; first = end, runs++) {
		uint32_t node = rwk_job_map_node_of(m, first);

		for (end = first + 1; end < m->size && rwk_job_map_node_of(m, end) == node; end++)
			;
		rwk_doc_object(d, "ranks");
		rwk_doc_number(d, "first", first);
		rwk_doc_number(d, "last", end - 1);
		rwk_doc_number_if(d, "node", node != RWK_NODE_NONE, node);
		rwk_doc_end(d);
	}
	rwk_doc_end(d);
	rwk_doc_flag(d, "ranks_cut", first < m->size);
}

void rwk_info_map_doc(struct rwk_doc *d, const char *name, const struct rwk_job_map *m)
{
	char hash[20];

	snprintf(hash, sizeof(hash), "%016" PRIx64, m->hash);
	rwk_doc_object(d, name);
	rwk_doc_text(d, "source", rwk_job_source_text(m->source));
	rwk_doc_text(d, "job", m->id);
	rwk_doc_text(d, "hash", hash);
	rwk_doc_number_if(d, "rank", m->rank != RWK_RANK_NONE, m->rank);
	rwk_doc_number(d, "size", m->size);
	rwk_doc_number(d, "nodes", m->nodes);
	rwk_doc_flag(d, "nodes_exact", m->nodes_exact);
	rwk_doc_number(d, "ranks_per_node", m->ranks_per_node);
	rwk_doc_number_if(d, "node", m->node != RWK_NODE_NONE, m->node);
	if (m->rank != RWK_RANK_NONE) {
		rwk_doc_number(d, "local_index", m->local_index);
		rwk_doc_number(d, "local_size", m->local_size);
	}
	ranks_doc(d, m);
	if (m->machine.processors) {
		rwk_doc_flag(d, "oversubscribed", m->oversubscribed);
		machine_doc(d, &m->machine);
	}
	rwk_doc_end(d);
}
