/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of sleepers do: far sleeps, or has callbacks, and near sends to it. */
#ifndef RWK_TEST_CHANNEL_ADAPTER_ASLEEP_H
#define RWK_TEST_CHANNEL_ADAPTER_ASLEEP_H

#include "channel_adapter/world.h"

/** Is its descriptor, or becomes so within that time? */
bool is_readable(struct rwk_cq *cq, unsigned ms);
/** One Send of nothing. */
void send_to_far(unsigned flags);
/** Receives. */
void post_to_far(unsigned count);
/** How many completions there were. */
int take(struct rwk_cq *cq);
/** For far by another cq than the one that is slept on. */
void work(void);
/** One of far's with a receive, which completes when the qp goes to ERR. */
struct rwk_qp *open_qp_on(struct rwk_cq *cq);

#endif
