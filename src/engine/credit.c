/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credit: so many bytes of messages that nobody has asked for may a peer have here. Each begins with eager_credit.
 *
 * That bounds what waits here, but also what is under way, for which it may be too little. Who announces a short
 * message for lack of credit, and finds its receive posted, was held back for nothing: it is given as much more as that
 * message would have taken, within bounds. A message that does have to wait for its receive takes as much back.
 */
#include "engine/internal.h"

#define MORE     3u  /* at most, for one peer; times eager_credit */
#define MORE_ALL 16u /* for all together */

rwk_outline void rwk_credit_send(struct rwk_peer *p)
{
	struct rwk_envelope env = {.kind = RWK_CREDIT, .tag = p->owed};

	p->owed = 0;
	p->late_asked = !rwk_list_empty(&p->late_in);
	if (p->late_asked) {
		env.flags = RWK_ENV_DATA;
		env.data = rwk_container_of(p->late_in.next, struct rwk_unexpected, late)->rts.id;
	}
	if (p->self)
		p->credit += (int64_t)env.tag;
	else
		rwk_send_own(p, &env);
}

void rwk_credit_more(struct rwk_peer *p, uint64_t len)
{
	struct rwk_engine *e = p->engine;
	size_t credit = rwk_params.eager_credit;

	if (len >= p->eager_limit)
		return;
	len += RWK_MESSAGE_COST;
	if (p->more + len > MORE * credit || e->credit_more + len > MORE_ALL * credit)
		return;
	p->more += (uint32_t)len;
	e->credit_more += len;
	rwk_credit_owe(p, len);
}

void rwk_credit_return_kept(struct rwk_peer *p, size_t len)
{
	size_t back = len + RWK_MESSAGE_COST < p->more ? len + RWK_MESSAGE_COST : p->more;

	p->more -= (uint32_t)back;
	p->engine->credit_more -= back;
	rwk_credit_owe(p, len + RWK_MESSAGE_COST - back);
}

void rwk_credit_forget(struct rwk_peer *p)
{
	p->engine->credit_more -= p->more;
	p->more = 0;
}
