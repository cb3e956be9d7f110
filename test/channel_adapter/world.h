/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link under a test: its program is linked with world_udp.c, for loopback, with world_tcp.c, for TCP connections
 * there, or with world_sim.c and sim_udp.c, for the simulated network. Each test opens it before its ends, and closes
 * it behind them.
 */
#ifndef RWK_TEST_CHANNEL_ADAPTER_WORLD_H
#define RWK_TEST_CHANNEL_ADAPTER_WORLD_H

#include "channel_adapter/ends.h"

#include <stdbool.h>

int world_open(void **state);
int world_close(void **state);

/** Is there a descriptor that the kernel makes readable when a packet comes? */
extern const bool world_has_fd;

/** Are packets on streams? Else from one address to another. */
extern const bool world_is_stream;

/** The nth packet from now on from near to far is damaged on its way; NULL: by this link none can be. */
extern void (*const world_corrupt)(uint64_t nth);

/** A test that opens its ends once; with a service (world_rc, ...), which it asks for by service_of(state). */
/** SRC has no connections on streams. */
extern const bool world_has_src;

#define in_world(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)
#define in_world_by(f, service)                                                                                        \
	{                                                                                                              \
		.name = #f ", " #service, .test_func = f, .setup_func = world_open, .teardown_func = world_close,      \
		.initial_state = &service,                                                                             \
	}

extern enum rwk_qp_type world_rc, world_uc;

static inline enum rwk_qp_type service_of(void **state)
{
	return *(enum rwk_qp_type *)*state;
}

#endif
