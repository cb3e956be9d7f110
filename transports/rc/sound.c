/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder that lies where others may write (shared_rc): is there anything in it that the machine would stumble
 * over? What is only wrong, and not dangerous, is for its peer to find out. It is copied for that, and the copy is
 * looked at: so all of it costs each packet something, and what is seldom in use is left out.
 */
#include "internal.h"

#include <string.h>

/* Results that were or may be in use there. An atomic's stays when it is sent; so do those behind a refusal. */
static bool has_results(const struct rwk_rc_responder *r)
{
	return r->due || r->reach & RWK_REACH_ATOMIC || r->answer == RWK_RC_ANSWER_FATAL;
}

/* What is there may change meanwhile: after its first part is copied, only the copy is asked. */
void rwk_rc_copy_responder(void *to, const void *from)
{
	const struct rwk_rc_responder *r = from;
	struct rwk_rc_responder *copy = to;
	bool had_results = has_results(copy);

	memcpy(copy, r, offsetof(struct rwk_rc_responder, results));
	if (rwk_unlikely(has_results(copy)))
		memcpy(copy->results, r->results, sizeof(r->results));
	else if (rwk_unlikely(had_results))
		memset(copy->results, 0, sizeof(copy->results));
	if (rwk_unlikely(copy->skips))
		memcpy(copy + 1, r + 1, RWK_RC_BUSY_RESPONDER_SIZE);
}

static bool is_agreed(const struct rwk_rc_responder *r)
{
	return r->open && r->service == RWK_WIRE_SRC && rwk_wire_is_pmtu(r->pmtu) &&
	       !(r->own & ~(RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_BUSY)) &&
	       !(r->reach & ~(RWK_REACH_READ | RWK_REACH_WRITE));
}

static unsigned count(const struct rwk_rc_bits *b)
{
	unsigned n = 0;

	if (rwk_likely(!rwk_rc_bits_any(b)))
		return 0;
	for (unsigned i = 0; i < RWK_RC_WINDOW_MAX / 64; i++)
		n += (unsigned)__builtin_popcountll(b->word[i]);
	return n;
}

/* Those that are due are as many as it says, and there is a place for one more. */
static bool results_are_sound(const struct rwk_rc_responder *r)
{
	unsigned due = 0, again = 0;

	if (rwk_likely(!has_results(r)))
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
