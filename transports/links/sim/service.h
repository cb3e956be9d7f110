/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated service: a channel (transport.h) over the simulated network, for tests of whatever uses channels. It is
 * a real one: messages are cut into packets, numbered, acknowledged and sent again, peers connect on demand. And it is
 * a hard one to live with: send takes few messages, a posted send's buffer is read again for each retransmission until
 * the peer has acknowledged it, pieces of messages from different peers mix, and breaches of the contract by the client
 * abort the test with a sentence.
 */
#ifndef RWK_SIM_SERVICE_H
#define RWK_SIM_SERVICE_H

#include "links/sim/sim.h"
#include "transport.h"

/** How the service behaves on the ports opened next. Chances are parts in a million. */
struct rwk_sim_service {
	size_t send_max;  /* bytes; send_max of its channels */
	size_t direct_min; /* bytes; of its channels */
	uint32_t window;  /* packets of a channel that may be under way, 1 to RWK_SIM_WINDOW_MAX */
	uint32_t room;    /* messages of a channel that send has taken and the peer has not acknowledged */
	uint32_t regions; /* that a port may have exposed at once; beyond it expose says -ENOSPC; 0: no limit */
	rwk_time timeout; /* of the first retransmission; doubles up to 64 times as much */
	uint32_t refuse;  /* chance that send says -EAGAIN for no reason */
	uint32_t late;    /* chance that an op is done only after what the peer sent in answer to it */
	uint32_t finish;  /* chance that post copies a send for which there is room, and returns 1 */
};

#define RWK_SIM_WINDOW_MAX 64

/** send_max 4096, window 16, room 4, timeout 20 us, nothing by chance. */
extern const struct rwk_sim_service rwk_sim_service_default;

extern const struct rwk_transport rwk_sim_transport;

/**
 * Ports are opened on `s` from now on; NULL: on none (open says -ENETDOWN). Close every port before rwk_sim_close:
 * those that still have something for their peers linger on the network, driven by its steps, and end with it.
 */
void rwk_sim_transport_use(struct rwk_sim *s, const struct rwk_sim_service *how);

/** The node of the port with that address; 0: none. */
uint32_t rwk_sim_node_of(const struct rwk_address *a);

/**
 * The channel from the port at `a` to the one at `b` fails with `err` in the port's next progress. False if there is
 * none.
 */
bool rwk_sim_break(const struct rwk_address *a, const struct rwk_address *b, int err);

#endif
