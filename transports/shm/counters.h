/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port and a channel count, for summaries, benchmarks and tests. */
#ifndef RWK_SHM_COUNTERS_H
#define RWK_SHM_COUNTERS_H

#include "transport.h"

#include <stdint.h>

struct rwk_shm_channel_counters {
	uint32_t lines_sent, lines_received; /* mod 2^21 */
	uint32_t slabs_minted;
	uint32_t growths;    /* of the ring that this side writes */
	uint32_t ring_lines; /* in use in it now */
};

struct rwk_shm_port_counters {
	uint64_t queued;     /* ops that did not go at once */
	uint64_t bells;      /* doorbells rung */
	uint64_t wakes;      /* datagrams sent to sleepers */
	uint64_t sleeps;     /* times that arm said yes */
	uint64_t strangers;  /* datagrams dropped: wrong user, job, nonce, version, or garbage */
	uint64_t refused;    /* of those, answered with a refusal */
	uint64_t channels;   /* made since open */
	uint64_t deaths;     /* peers found dead */
	uint64_t violations; /* peers that broke the protocol */
	uint64_t demotions;  /* channels that changed from polled to doorbell */
	uint64_t yields;
	uint64_t early, in_time; /* first looks for an answer after a rest: it was not there, or it was; of channels ended */
};

/* Bytes that this process has copied for reads and writes of exposed memory. */
struct rwk_shm_transfer_counts {
	uint64_t pulled;   /* by process_vm_readv, into reads of ours */
	uint64_t pushed;   /* by process_vm_writev, into reads of the peer's */
	uint64_t fetched;  /* by process_vm_readv, out of writes of the peer's into regions of ours */
	uint64_t written;  /* by process_vm_writev, into regions of the peer's */
	uint64_t staged;   /* into our area, for reads of the peer's */
	uint64_t unstaged; /* out of the peer's area */
	uint64_t takeovers; /* pieces pulled because the peer had not staged in time */
	uint64_t denials;   /* channels that were found not to allow cross-memory copies */
};

void rwk_shm_channel_counters(const struct rwk_channel *ch, struct rwk_shm_channel_counters *out);
const struct rwk_shm_port_counters *rwk_shm_port_counters(const struct rwk_port *port);
/** All zero before the first transfer. */
const struct rwk_shm_transfer_counts *rwk_shm_transfer_counters(struct rwk_port *port);

#endif
