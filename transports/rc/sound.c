/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder that lies where others may write (shared_rc): is there anything in it that the machine would stumble
 * over? What is only wrong, and not dangerous, is for its peer to find out.
 */
#include "internal.h"

static bool is_agreed(const struct rwk_rc_responder *r)
{
	return r->open && r->service == RWK_WIRE_SRC && r->pmtu >= 256 && r->pmtu <= RWK_WIRE_PMTU_MAX &&
	       !(r->pmtu & (r->pmtu - 1)) &&
	       !(r->own & ~(RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_BUSY)) &&
	       !(r->reach & ~(RWK_REACH_READ | RWK_REACH_WRITE));
}

static unsigned count(const struct rwk_rc_bits *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < RWK_RC_WINDOW_MAX / 64; i++)
		n += (unsigned)__builtin_popcountll(b->word[i]);
	return n;
}

/* Those that are due are as many as it says, and there is a place for one more. */
static bool results_are_sound(const struct rwk_rc_responder *r)
{
	unsigned due = 0, again = 0;

	if (!r->due && !(r->reach & RWK_REACH_READ))
		return true; /* they are not even copied */
	for (const struct rwk_rc_result *x = r->results; x < r->results + RWK_RC_RESULTS; x++) {
		if (x->kind > RWK_RC_RESULT_READ || (x->due && x->kind == RWK_RC_RESULT_NONE) ||
			x->left > RWK_WIRE_LENGTH_MAX)
			return false;
		due += x->due;
		again += x->due && x->again;
	}
	return due == r->due && due - again <= RWK_RC_READS_MAX;
}

bool rwk_rc_responder_is_sound(const void *responder)
{
	const struct rwk_rc_responder *r = responder;

	return is_agreed(r) && r->message <= RWK_RC_MESSAGE_TURNED && r->answer <= RWK_RC_ANSWER_FATAL &&
	       r->peer_qpn <= RWK_PSN_MASK && r->expected <= RWK_PSN_MASK && r->msn <= RWK_PSN_MASK &&
	       r->refused <= RWK_PSN_MASK && r->share <= RWK_RC_SHARE_MAX && r->kept_count == count(&r->kept) &&
	       r->kept_reads <= r->kept_count && results_are_sound(r);
}
