/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways that a connection can go: one test for several of them. */
#ifndef RWK_TEST_CONNECT_WAYS_H
#define RWK_TEST_CONNECT_WAYS_H

#include "connect/sides.h"

struct way {
	enum rwk_qp_type service;
	enum rwk_connection_transport transport;
};

extern struct way rc_udp, uc_udp, rc_stream, uc_stream;

/** An entry in a list of tests. */
#define by(f, w)                                                                                                       \
	{                                                                                                              \
		.name = #f ", " #w, .test_func = f, .setup_func = world_open, .teardown_func = world_close,            \
		.initial_state = &w,                                                                                   \
	}

/** The test's way, with both sides open for it. */
const struct way *open_way(void **state);

#endif
