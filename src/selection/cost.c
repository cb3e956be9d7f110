/* SPDX-License-Identifier: BSD-3-Clause */
#include "selection/cost.h"

#include <inttypes.h>
#include <stdio.h>

/* Each rank has a UDP socket and one that listens for streams. */
static struct rwk_cost rc_node(uint64_t nodes, uint64_t ranks)
{
	uint64_t pairs = ranks * ranks * (nodes - 1);

	return (struct rwk_cost){
		.queue_pairs = pairs,
		.initiators = pairs,
		.targets = pairs,
		.machines = pairs * (RWK_COST_REQUESTER + RWK_COST_RESPONDER),
		.bytes = pairs * RWK_COST_RC,
		.timers = 2 * pairs,
		.sockets = pairs + 2 * ranks,
	};
}

/*
 * Targets are responders alone: a rank serves any of them with one requester half of its own, which stands for it, and
 * all its initiators have one idle responder half. Requests come to one socket of the node, answers to one of each
 * rank; the node has another for who wants to join. What a rank keeps of a peer beside is not shared.
 */
static struct rwk_cost src_node(uint64_t nodes, uint64_t ranks)
{
	uint64_t each = ranks * (nodes - 1), own = nodes > 1 ? ranks : 0, pairs = ranks * each;
	uint64_t machines = (each + own) * (RWK_COST_REQUESTER + RWK_COST_RESPONDER);

	return (struct rwk_cost){
		.queue_pairs = 2 * each,
		.initiators = each,
		.targets = each,
		.machines = machines,
		.bytes = machines + each * (RWK_COST_INITIATOR + RWK_COST_TARGET + RWK_COST_STREAM) +
			 pairs * RWK_COST_CHANNEL,
		.timers = each,
		.sockets = each + 2 * ranks + 2,
	};
}

struct rwk_cost rwk_cost_of_node(uint32_t nodes, uint32_t per_node, bool src)
{
	return src ? src_node(nodes, per_node) : rc_node(nodes, per_node);
}

static uint64_t share(uint64_t n, uint32_t ranks)
{
	return (n + ranks - 1) / ranks;
}

struct rwk_cost rwk_cost_of_rank(uint32_t nodes, uint32_t per_node, bool src)
{
	struct rwk_cost node = rwk_cost_of_node(nodes, per_node, src);

	return (struct rwk_cost){
		.queue_pairs = share(node.queue_pairs, per_node),
		.initiators = share(node.initiators, per_node),
		.targets = share(node.targets, per_node),
		.machines = share(node.machines, per_node),
		.bytes = share(node.bytes, per_node),
		.timers = share(node.timers, per_node),
		.sockets = share(node.sockets, per_node),
	};
}

uint64_t rwk_cost_queue_pairs(uint32_t nodes, uint32_t per_node, bool src)
{
	return nodes * rwk_cost_of_node(nodes, per_node, src).queue_pairs;
}

const char *rwk_cost_bytes(uint64_t bytes, char *to)
{
	static const char units[] = "KMGTPE";
	double v = (double)bytes;
	int unit = -1;

	/* The next unit from where it would be rounded up to 1024. */
	for (; v >= 1023.5; v /= 1024)
		unit++;
	if (unit < 0)
		snprintf(to, RWK_COST_TEXT, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
	else
		snprintf(to, RWK_COST_TEXT, v < 100 ? "%.1f %ciB" : "%.0f %ciB", v, units[unit]);
	return to;
}
