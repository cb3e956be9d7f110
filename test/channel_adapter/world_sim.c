/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel_adapter/sim_udp.h"
#include "channel_adapter/world.h"

#define STEP 2000u /* ns */

enum rwk_qp_type world_rc = RWK_QP_RC, world_uc = RWK_QP_UC;
const bool world_has_fd = false;
const bool world_has_src = true;
const bool world_is_stream = false;

static void step(void)
{
	rwk_sim_run_until(sim_udp, rwk_sim_now(sim_udp) + STEP);
}

static void corrupt(uint64_t nth)
{
	rwk_sim_rule(sim_udp, 1, 2, nth, RWK_SIM_CORRUPT);
}

void (*const world_corrupt)(uint64_t nth) = corrupt;

int world_open(void **state)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	(void)state;
	attr.mtu = 2000;
	ends_step = step;
	return rwk_sim_open(&attr, &sim_udp);
}

int world_close(void **state)
{
	(void)state;
	rwk_sim_close(sim_udp);
	return 0;
}
