/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it takes to reach every rank on other nodes: counted for jobs that need not exist. N nodes of J ranks each:
 *
 *                        RC                                    SRC
 *   queue pairs          each rank one to each rank            each rank one to send with to each node (initiator);
 *                        on other nodes                        each node one to receive with from each rank on
 *                                                              other nodes (target), served by all its ranks
 *   of the whole job     N J * (N - 1) J: O((N J)^2)           2 * N J * (N - 1): O(N^2 J)
 *   streams that tell    a pair of ranks: each rank            each rank one to each node, and what it tells is
 *   of a death           one to each on other nodes            known to all ranks of its node
 *
 * Queue pairs, machines' bytes and timers are those of the real machines: bench/scale and test/rc/test_scale.c make
 * them and count. What a connection takes beside its machines is that of transports/packet and of the kernel.
 */
#ifndef RWK_SELECTION_COST_H
#define RWK_SELECTION_COST_H

#include <stdbool.h>
#include <stdint.h>

#define RWK_COST_REQUESTER 512u /* bytes of the half of a machine that sends, with its counters: rwk_rc_size */
#define RWK_COST_RESPONDER 512u /* and of the half that receives: rwk_rc_responder_size */
#define RWK_COST_CHANNEL   456u /* what transports/packet keeps of a peer beside the machine, with malloc's own */
#define RWK_COST_INITIATOR 256u /* and of an initiator of SRC */
#define RWK_COST_TARGET    768u /* what a domain keeps of a target beside its responder: a copy to go back to, a lock */
#define RWK_COST_STREAM    4096u /* an idle TCP stream in the kernel: socket, file, a place in a poll set (3.9 KB) */

/** Of one RC connection, at one end. */
#define RWK_COST_RC (RWK_COST_REQUESTER + RWK_COST_RESPONDER + RWK_COST_CHANNEL + RWK_COST_STREAM)

/** Of one node, or of one rank: then with its share of what the node's ranks have in common. */
struct rwk_cost {
	uint64_t queue_pairs;
	uint64_t initiators, targets; /* halves that send and that receive: of an RC queue pair both */
	uint64_t machines;            /* bytes of these halves */
	uint64_t bytes;               /* in all, the kernel's streams included */
	uint64_t timers;              /* deadlines: of each requester one, of each of RC's responders one */
	uint64_t sockets;
};

/** Of a node of a job with `nodes` nodes (at least 1) of `per_node` ranks each: with RC, or with SRC. */
struct rwk_cost rwk_cost_of_node(uint32_t nodes, uint32_t per_node, bool src);
/** A rank's share of it, rounded up. */
struct rwk_cost rwk_cost_of_rank(uint32_t nodes, uint32_t per_node, bool src);
/** Queue pairs of the whole job. */
uint64_t rwk_cost_queue_pairs(uint32_t nodes, uint32_t per_node, bool src);

#define RWK_COST_TEXT 24

/** Bytes as people read them: "512 bytes", "1.3 GiB"; into `to` (RWK_COST_TEXT bytes), which is returned. */
const char *rwk_cost_bytes(uint64_t bytes, char *to);

#endif
