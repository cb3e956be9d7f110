/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both: who reads or writes and its peer copy at once, across address spaces, chunk by chunk (transfer_claim.h). This
 * file is the asker: a read of memory that was exposed for it, which the peer pushes from the front with
 * process_vm_writev while the reader pulls from the back; or a direct op, of which the peer pushes or
 * fetches the front.
 *
 * A helper that never comes leaves all chunks to the asker; one that cannot copy says so, and the asker copies what was
 * claimed in vain.
 *
 * A copy under way writes into the target of a read, and takes out of the source of a write what goes into the region:
 * the op is not given back while one may be, whatever became of it. It goes behind the asker's guard, which keeps it
 * out of a process that is not the one that asked; and once the guard has been changed a helper that is seen stopped
 * will not copy the chunk that it had claimed any more: then the asker does (transfer_guard.c).
 */
#include "shm/transfer_area.h"

#include <errno.h>

/*
 * Asking.
 */

bool rwk_shm_both_possible(const struct rwk_op *op, bool alone)
{
	return op->iov_count && op->iov[0].iov_len >= op->length &&
	       op->length > (alone ? RWK_SHM_BOTH_LONE : RWK_SHM_BOTH_LEAST) &&
	       rwk_shm_chunks_in(op->length) <= RWK_SHM_CHUNKS_MOST;
}

static struct rwk_shm_border *border_of(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	return rwk_shm_read_of(op)->direct ? &t->direct_border[op->type == RWK_OP_WRITE] : &t->border;
}

/* Is no other copied by both before it, or with it? */
static bool is_by_itself(const struct rwk_shm_transfers *t, struct rwk_op *op)
{
	if (!rwk_shm_read_of(op)->direct)
		return t->begun == 1;
	return t->direct.next == &op->link && op->link.next == &t->direct && !op->behind;
}

/*
 * Lets the peer begin, with a claim in that place, in which the last chunk is ours already: it would be in any case,
 * and the line stays with the helper, who takes the first. 0, or -ENOMEM.
 */
static int ask(struct rwk_shm_transfers *t, struct rwk_op *op, unsigned place)
{
	enum rwk_shm_transfer_control_kind kind = op->type == RWK_OP_WRITE ? RWK_SHM_FETCH_ASK : RWK_SHM_PUSH_ASK;
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	int lead = rwk_shm_border_lead(border_of(t, op), op->length);
	struct rwk_shm_help_ask ask = {
		.cookie = op->rkey.word[0],
		.offset = op->offset,
		.length = op->length,
		.target = (uint64_t)(uintptr_t)op->iov[0].iov_base,
		.id = r->id,
		.place = (uint16_t)place,
		.lead = (int16_t)lead,
	};
	int rc;

	rwk_shm_guard_up(t); /* without one the peer does not copy, and says so */
	atomic_store_explicit(
		&rwk_shm_area_of(t, true)->claim[place].word, rwk_shm_claim_pack(r->id, 0, 1), memory_order_release);
	rc = rwk_shm_tell(t, kind, &ask, sizeof(ask));
	if (rc)
		return rc;
	t->claims_used |= 1ull << place;
	r->claim = (uint8_t)(place + 1);
	r->lead = (int8_t)lead;
	r->by_itself = is_by_itself(t, op);
	r->pulled = 1;
	return 0;
}

bool rwk_shm_both_ask(struct rwk_shm_transfers *t)
{
	struct rwk_list *n = t->reads.next;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < t->begun; i++, n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);
		struct rwk_shm_read *r = rwk_shm_read_of(op);
		unsigned place = (unsigned)__builtin_ctzll(~t->claims_used); /* one for each of these reads */

		bytes += op->length;
		if (r->method != RWK_SHM_BOTH || !rwk_shm_shares(i, bytes))
			break;
		if (!r->claim && ask(t, op, place))
			return i > 0;
	}
	return true;
}

/* The first place that is free for the claim of a direct op, from 0; RWK_SHM_SHARED_MOST: there is none. */
static unsigned direct_place(const struct rwk_shm_transfers *t)
{
	return (unsigned)__builtin_ctzll(~(t->claims_used >> RWK_SHM_CLAIM_DIRECT));
}

/* Has the peer seen what it was last asked for with that place? */
static bool seen(struct rwk_shm_transfers *t, unsigned place)
{
	uint64_t word = atomic_load_explicit(
		&rwk_shm_area_of(t, false)->pushed[RWK_SHM_CLAIM_DIRECT + place].word, memory_order_relaxed);

	return rwk_shm_claim_unpack(word).id == t->direct_id[place];
}

bool rwk_shm_both_listens(struct rwk_shm_transfers *t, bool first)
{
	unsigned place = direct_place(t);

	return place < RWK_SHM_SHARED_MOST && seen(t, first ? t->direct_last : place) && rwk_shm_peer_polls(t->ch);
}

bool rwk_shm_both_ask_direct(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	unsigned place = direct_place(t);

	rwk_shm_read_of(op)->id = ++t->direct_asked;
	if (ask(t, op, RWK_SHM_CLAIM_DIRECT + place))
		return false;
	t->direct_id[place] = t->direct_asked;
	t->direct_last = (uint8_t)place;
	return true;
}

/*
 * Sharing out.
 */

static _Atomic uint64_t *claim_word(struct rwk_shm_transfers *t, const struct rwk_shm_read *r)
{
	return &rwk_shm_area_of(t, true)->claim[r->claim - 1].word;
}

/* Reads the claim and looks whether it makes sense: what stands there for us must be what we put there. */
static bool claim_get(struct rwk_shm_transfers *t, struct rwk_op *op, uint64_t *word, struct rwk_shm_claim *c)
{
	const struct rwk_shm_read *r = rwk_shm_read_of(op);

	*word = atomic_load_explicit(claim_word(t, r), memory_order_acquire);
	*c = rwk_shm_claim_unpack(*word);
	if (c->id == r->id && c->mine == r->pulled && c->theirs + c->mine <= rwk_shm_chunks_in(op->length))
		return true;
	rwk_shm_transfers_broken(t, "claims of a transfer that were never made");
	return false;
}

/* What the helper has finished of at most `claimed` chunks; *gave_up: it will not do more. */
static uint32_t pushed(struct rwk_shm_transfers *t, const struct rwk_shm_read *r, uint32_t claimed, bool *gave_up)
{
	struct rwk_shm_claim p = rwk_shm_claim_unpack(
		atomic_load_explicit(&rwk_shm_area_of(t, false)->pushed[r->claim - 1].word, memory_order_acquire));

	*gave_up = p.id == r->id && p.theirs;
	if (p.id != r->id)
		return 0;
	if (p.mine > claimed) {
		rwk_shm_transfers_broken(t, "chunks of a transfer that were not claimed");
		return claimed;
	}
	return p.mine;
}

/* Has the helper done all that is not ours? Its word says so, without a look at the claim, which it had last. */
static bool helped_out(struct rwk_shm_transfers *t, const struct rwk_op *op, const struct rwk_shm_read *r)
{
	uint32_t rest = (uint32_t)rwk_shm_chunks_in(op->length) - r->pulled;
	bool gave_up;

	return pushed(t, r, rest, &gave_up) == rest && !t->broken;
}

/*
 * Of the helper's `claimed` chunks, when no more can be claimed: no copy is under way, and *done of them are in place.
 * A helper that is stopped is not waited for.
 */
static bool settled(struct rwk_shm_transfers *t, struct rwk_shm_read *r, uint32_t claimed, uint32_t *done)
{
	bool gave_up;

	*done = pushed(t, r, claimed, &gave_up);
	return gave_up || *done == claimed || rwk_shm_guard_shuts_out(t, &r->waits);
}

/* Sets the front to what the helper has finished of `claimed` chunks; true if no copy of its can be under way. */
static bool take_front(struct rwk_shm_transfers *t, struct rwk_op *op, uint32_t claimed)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	uint32_t done;
	bool all = settled(t, r, claimed, &done);
	uint64_t front = rwk_shm_chunk_at(op->length, r->lead, done);

	front = front < r->back ? front : r->back;
	if (op->at < front)
		op->at = front;
	return all;
}

/* Claims all that is left, so that no push begins from now on; returns the helper's chunks. */
static uint32_t close_claim(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	uint32_t all = (uint32_t)rwk_shm_chunks_in(op->length);
	uint64_t word;
	struct rwk_shm_claim c;

	/* each failure means that the helper has taken one more chunk, which takes it a while */
	for (int tries = 0; tries < 64 && claim_get(t, op, &word, &c); tries++) {
		if (c.theirs + c.mine == all)
			return c.theirs;
		if (atomic_compare_exchange_strong(
			    claim_word(t, r), &word, rwk_shm_claim_pack(r->id, c.theirs, all - c.theirs))) {
			r->pulled = (uint16_t)(all - c.theirs);
			return c.theirs;
		}
	}
	rwk_shm_transfers_broken(t, "claims of a transfer that change without end");
	return 0;
}

void rwk_shm_both_give_up(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	if (rwk_shm_read_of(op)->claim)
		take_front(t, op, close_claim(t, op));
}

bool rwk_shm_both_leave(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	uint32_t done;

	if (!r->claim)
		return true;
	if (!helped_out(t, op, r) && !settled(t, r, close_claim(t, op), &done) && !t->broken)
		return false;
	t->claims_used &= ~(1ull << (r->claim - 1));
	r->claim = 0;
	return true;
}

static bool being_pushed(struct rwk_shm_transfers *t, void *op)
{
	return !rwk_shm_both_leave(t, op);
}

void rwk_shm_both_abandon(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	if (rwk_shm_read_of(op)->claim && rwk_shm_here(t->ch))
		rwk_shm_guard_wait(t, being_pushed, op);
}

/* What lies between there and the back, or as much of it as one call moves. */
static size_t from_back(const struct rwk_shm_read *r, uint64_t from)
{
	uint64_t length = r->back - from;

	return length < RWK_SHM_CHUNK_MOST ? length : RWK_SHM_CHUNK_MOST;
}

/* What is claimed for this side and has not come. */
static size_t own_left(const struct rwk_op *op, const struct rwk_shm_read *r)
{
	uint64_t from = rwk_shm_chunk_at(op->length, r->lead, rwk_shm_chunks_in(op->length) - r->pulled);

	return from < r->back ? from_back(r, from) : 0;
}

/* Claims the next chunk of a read of which c says that there is one left; its bytes, or 0: the helper was faster. */
static size_t claim_next(struct rwk_shm_transfers *t, struct rwk_op *op, uint64_t word, struct rwk_shm_claim c)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);

	if (!atomic_compare_exchange_strong(claim_word(t, r), &word, rwk_shm_claim_pack(r->id, c.theirs, c.mine + 1)))
		return 0;
	r->pulled++;
	return own_left(op, r);
}

/* Is the asker's half all claimed? */
static bool half_claimed(const struct rwk_op *op, const struct rwk_shm_read *r)
{
	return r->pulled >= rwk_shm_chunks_in(op->length) - rwk_shm_chunks_to_help(op->length);
}

size_t rwk_shm_both_own(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	const struct rwk_shm_read *r = rwk_shm_read_of(op);
	size_t length = own_left(op, r);
	struct rwk_shm_claim c;
	uint64_t word;

	if (length || half_claimed(op, r) || !claim_get(t, op, &word, &c))
		return length;
	return claim_next(t, op, word, c);
}

/* This side has copied its half: the first look says who was `early`. */
static void note_helper(struct rwk_shm_transfers *t, struct rwk_op *op, bool early)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);

	if (r->by_itself)
		rwk_shm_border_seen(border_of(t, op), op->length, early);
	r->by_itself = false;
}

size_t rwk_shm_both_rest(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	struct rwk_shm_claim c;
	uint64_t word, from;

	if (helped_out(t, op, r)) {
		note_helper(t, op, true);
		op->at = r->back;
		return 0;
	}
	if (!claim_get(t, op, &word, &c))
		return 0;
	if (c.theirs)
		note_helper(t, op, false);
	if (c.theirs + c.mine < rwk_shm_chunks_in(op->length))
		return claim_next(t, op, word, c);
	from = take_front(t, op, c.theirs) ? op->at : rwk_shm_chunk_at(op->length, r->lead, c.theirs);
	return t->broken || from >= r->back ? 0 : from_back(r, from);
}

bool rwk_shm_both_whole(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);

	if (r->method != RWK_SHM_BOTH || !r->claim || own_left(op, r) || !half_claimed(op, r) || !helped_out(t, op, r))
		return false;
	note_helper(t, op, true);
	op->at = r->back;
	return true;
}

/* Finishes those of the first reads that are whole, all of them as if one call had brought them. Returns how many. */
static int finish_whole(struct rwk_shm_transfers *t)
{
	struct rwk_list *n = t->reads.next;
	unsigned whole = 0, done = 0;
	uint64_t now;

	while (whole < t->begun && rwk_shm_both_whole(t, rwk_container_of(n, struct rwk_op, link))) {
		n = n->next;
		whole++;
	}
	now = whole ? rwk_clock_now() : 0;
	while (done < whole && !t->broken) {
		n = t->reads.next;
		t->pace.of_call = whole - ++done;
		rwk_shm_read_finish_if_whole(t, rwk_container_of(n, struct rwk_op, link), now);
	}
	t->pace.of_call = 0;
	t->pace.inside = false;
	return (int)done;
}

/* Takes over what the helper has not begun of the first read, or has given up. Returns whether it did anything. */
static int take_rest(struct rwk_shm_transfers *t)
{
	struct rwk_op *op = rwk_container_of(t->reads.next, struct rwk_op, link);
	size_t length = rwk_shm_both_rest(t, op);

	if (length)
		rwk_shm_pull_back(t, op, length);
	return length || (!t->broken && rwk_shm_read_finish_if_whole(t, op, 0));
}

/*
 * Its own halves of those asked for, as the helper does, before it waits for the helper's half of any of them, or takes
 * that, too.
 */
int rwk_shm_both_read(struct rwk_shm_transfers *t)
{
	int did;

	if (!rwk_shm_both_ask(t))
		return 0;
	did = rwk_shm_pull_halves(t);
	if (!did && !t->broken)
		did = finish_whole(t);
	return did || t->broken ? did : take_rest(t);
}

size_t rwk_shm_both_ahead(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	const struct rwk_list *end = rwk_shm_read_of(op)->direct ? &t->direct : &t->reads;
	struct rwk_list *n = op->link.next;
	size_t ahead = 0;

	for (unsigned i = 1; i < RWK_SHM_SHARED_MOST && n != end; i++, n = n->next) {
		struct rwk_op *next = rwk_container_of(n, struct rwk_op, link);
		const struct rwk_shm_read *r = rwk_shm_read_of(next);
		bool gave_up;

		if (!r->claim)
			break;
		ahead += next->length - r->back;
		ahead += rwk_shm_chunk_at(
			next->length, r->lead, pushed(t, r, (uint32_t)rwk_shm_chunks_to_help(next->length), &gave_up));
	}
	return ahead;
}
