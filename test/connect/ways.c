/* SPDX-License-Identifier: BSD-3-Clause */
#include "connect/ways.h"

struct way rc_udp = {RWK_QP_RC, RWK_TRANSPORT_UDP}, uc_udp = {RWK_QP_UC, RWK_TRANSPORT_UDP},
	   rc_stream = {RWK_QP_RC, RWK_TRANSPORT_STREAM}, uc_stream = {RWK_QP_UC, RWK_TRANSPORT_STREAM};

const struct way *open_way(void **state)
{
	const struct way *w = *state;

	sides_open(w->service);
	return w;
}
