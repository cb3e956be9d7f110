/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job on the simulated network, made of real machines (transports/rc): each rank sends one message to each rank on
 * another node, and every message is looked at where it arrives.
 *
 *   half       a requester, a responder, or both: what a machine's upcalls belong to
 *   initiator  a half that sends; of an RC queue pair, or of SRC: from a rank to a node
 *   target     a half that receives; of an RC queue pair, or of SRC: at a node, from a rank. An SRC target is a
 *              responder alone; whichever rank of the node takes a packet for it opens it with a requester half of its
 *              own for as long as that takes, as with a segment that all of them have mapped.
 *   domain     what the ranks of a node have in common with SRC: the targets, and the socket that requests come to
 *
 * What is modelled and what is not: a processor for each rank, which takes `packet_ns` for each packet that it sends or
 * takes, and does nothing else; a cable for each node with a speed in each
 * direction, its packets one behind the other; a delay between any two nodes that is always the same. Acknowledgements
 * travel along with messages where they can, as in transports/packet. No handshake, no stream, no client's work, no
 * packing of several messages into one packet.
 */
#ifndef BENCH_SCALE_JOB_H
#define BENCH_SCALE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#define SCALE_RANKS_MAX 4096u
#define SCALE_BATCH_MAX 64u

struct scale_attr {
	uint32_t nodes, per_node; /* at least 1 each, SCALE_RANKS_MAX in all */
	bool src;                 /* else RC */
	bool src_lazy;            /* SRC acknowledges late as RC does; a real domain, without a clock, does not */
	uint32_t size;            /* bytes of a message; 16 more go with it */
	uint32_t pmtu;            /* 256, 512, 1024, 2048 or 4096 */
	uint32_t packet_ns;       /* of a rank's processor, for a packet */
	uint32_t batch; /* packets, 1 to SCALE_BATCH_MAX, that a rank takes at a time before it acknowledges */
	double gbit;    /* a second, of a node's cable, above 0 */
	uint32_t drop;  /* packets lost, in a million */
	uint64_t seed;
};

/** Of the whole job; all but the times are counted. */
struct scale_result {
	uint64_t queue_pairs, initiators, targets;
	uint64_t initiators_used, targets_used; /* those that a message has gone through */
	uint64_t machines;                      /* bytes of memory given to machines */
	uint64_t timers;                        /* deadlines that there are */
	uint64_t waiting;                       /* queue pairs with one that was set, most at a time */
	uint64_t messages, delivered, wrong;    /* wrong: to another rank, or twice, or with other bytes */
	uint64_t done;                          /* messages that their sender knows to have arrived */
	uint64_t packets, acks, bytes;          /* sent; acks by themselves; bytes with all headers, Ethernet's too */
	uint64_t acks_along;                    /* acknowledgements that travelled with a message */
	uint64_t sent_again, dropped;
	double delivered_us, done_us; /* virtual time when the last message was delivered, and was done */
};

/**
 * Makes the job, lets it send, and ends it. 0; -ENOMEM; -ETIMEDOUT: nothing moved any more, or not all of it within a
 * virtual minute; the result is set as far as it went.
 */
int scale_run(const struct scale_attr *attr, struct scale_result *result);

#endif
