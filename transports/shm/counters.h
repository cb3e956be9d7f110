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
};

void rwk_shm_channel_counters(const struct rwk_channel *ch, struct rwk_shm_channel_counters *out);
const struct rwk_shm_port_counters *rwk_shm_port_counters(const struct rwk_port *port);

#endif
