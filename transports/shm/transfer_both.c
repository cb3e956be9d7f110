/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both: reader and exposer copy at once, across address spaces, chunk by chunk: the exposer pushes from the front with
 * process_vm_writev, the reader pulls from the back, until all chunks are claimed.
 *
 * Claims and done-counts are apart. The claim word says how many chunks each side has taken; it is the only word that
 * both write, by compare-and-swap, and carries the read's id, so that a late exposer cannot claim in a later read's
 * name. What the exposer has finished stands in its own area. An exposer that never comes leaves all chunks to the
 * reader; one that cannot push says so, and the reader copies what was claimed in vain.
 *
 * A push under way writes into the target: the op is not given back while one may be, whatever became of the read.
 * It goes behind the reader's guard, which keeps it out of a process that is not the reader, and, where the channel
 * ends while the exposer is stopped with a chunk claimed, out of memory that is given back (transfer_guard.c).
 *
 * claim word:  id (32 bits) | exposer's chunks (16) | reader's chunks (16)
 * pushed word: id (32 bits) | gave up (1 of 16)     | chunks finished (16)
 */
#include "shm/transfer_area.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

#define CHUNK_LEAST ((uint64_t)32 << 10)
#define CHUNK_MOST  ((uint64_t)1 << 20)
#define CHUNKS_MOST 0xffffu

/* A read of the peer's that this side pushes. */
struct push {
	struct rwk_list link;
	struct rwk_shm_region *region;
	struct rwk_shm_push_ask ask;
	uint32_t finished; /* chunks */
};

struct claim {
	uint32_t id, theirs, mine; /* theirs: the exposer's chunks; mine: the reader's */
};

static uint64_t pack(uint32_t id, uint32_t high, uint32_t low)
{
	return (uint64_t)id << 32 | high << 16 | low;
}

static struct claim unpack(uint64_t word)
{
	return (struct claim){.id = (uint32_t)(word >> 32), .theirs = (word >> 16) & 0xffff, .mine = word & 0xffff};
}

/* Both sides compute it from the length. */
static uint64_t chunk_for(uint64_t length)
{
	uint64_t c = (length / 8 + 4095) / 4096 * 4096;

	return c < CHUNK_LEAST ? CHUNK_LEAST : c > CHUNK_MOST ? CHUNK_MOST : c;
}

static uint64_t chunks_in(uint64_t length)
{
	uint64_t c = chunk_for(length);

	return (length + c - 1) / c;
}

void rwk_shm_both_open(struct rwk_shm_transfers *t)
{
	rwk_list_init(&t->pushes);
	rwk_pool_init(&t->push_pool, sizeof(struct push), 8, RWK_SHM_SERVES);
}

/*
 * The reader.
 */

bool rwk_shm_both_possible(const struct rwk_op *op)
{
	return op->iov_count && op->iov[0].iov_len >= op->length && op->length > CHUNK_LEAST &&
	       chunks_in(op->length) <= CHUNKS_MOST;
}

/* Lets the exposer begin. 0, or -ENOMEM: again in the next progress. */
static int ask(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	unsigned place = (unsigned)__builtin_ctzll(~t->claims_used); /* there are more than reads with a claim */
	struct rwk_shm_push_ask ask = {
		.cookie = op->rkey.word[0],
		.offset = op->offset,
		.length = op->length,
		.target = (uint64_t)(uintptr_t)op->iov[0].iov_base,
		.id = r->id,
		.place = place,
	};
	int rc;

	rwk_shm_guard_up(t); /* without one the exposer does not push, and says so */
	atomic_store_explicit(&rwk_shm_area_of(t, true)->claim[place].word, pack(r->id, 0, 0), memory_order_release);
	rc = rwk_shm_tell(t, RWK_SHM_PUSH_ASK, &ask, sizeof(ask));
	if (rc)
		return rc;
	t->claims_used |= 1ull << place;
	r->claim = (uint8_t)(place + 1);
	r->pulled = 0;
	return 0;
}

static _Atomic uint64_t *claim_word(struct rwk_shm_transfers *t, const struct rwk_shm_read *r)
{
	return &rwk_shm_area_of(t, true)->claim[r->claim - 1].word;
}

/* Reads the claim and looks whether it makes sense: what stands there for us must be what we put there. */
static bool claim_get(struct rwk_shm_transfers *t, struct rwk_op *op, uint64_t *word, struct claim *c)
{
	const struct rwk_shm_read *r = rwk_shm_read_of(op);

	*word = atomic_load_explicit(claim_word(t, r), memory_order_acquire);
	*c = unpack(*word);
	if (c->id == r->id && c->mine == r->pulled && c->theirs + c->mine <= chunks_in(op->length))
		return true;
	rwk_shm_transfers_broken(t, "claims of a transfer that were never made");
	return false;
}

/* What the exposer has finished of its `claimed` chunks; *gave_up: it will not do more. */
static uint32_t pushed(struct rwk_shm_transfers *t, const struct rwk_shm_read *r, uint32_t claimed, bool *gave_up)
{
	struct claim p = unpack(
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

/* Sets the front to what the exposer has finished of `claimed` chunks; true if no push can be under way. */
static bool take_front(struct rwk_shm_transfers *t, struct rwk_op *op, uint32_t claimed)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	bool gave_up;
	uint32_t done = pushed(t, r, claimed, &gave_up);
	uint64_t front = done * chunk_for(op->length);

	front = front < r->back ? front : r->back;
	if (op->at < front)
		op->at = front;
	return gave_up || done == claimed;
}

/* Claims all that is left, so that no push begins from now on; returns the exposer's chunks. */
static uint32_t close_claim(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	uint32_t all = (uint32_t)chunks_in(op->length);
	uint64_t word;
	struct claim c;

	/* each failure means that the exposer has taken one more chunk, which takes it a while */
	for (int tries = 0; tries < 64 && claim_get(t, op, &word, &c); tries++) {
		if (c.theirs + c.mine == all)
			return c.theirs;
		if (atomic_compare_exchange_strong(claim_word(t, r), &word, pack(r->id, c.theirs, all - c.theirs))) {
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
	uint32_t claimed;
	bool gave_up;

	if (!r->claim)
		return true;
	claimed = close_claim(t, op);
	if (pushed(t, r, claimed, &gave_up) < claimed && !gave_up && !t->broken)
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

bool rwk_shm_both_ask_for_two(struct rwk_shm_transfers *t)
{
	struct rwk_list *n = t->reads.next;

	for (uint32_t i = 0; i < 2 && i < t->begun; i++, n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);
		struct rwk_shm_read *r = rwk_shm_read_of(op);

		if (r->method == RWK_SHM_BOTH && !r->claim && ask(t, op))
			return i > 0;
	}
	return true;
}

int rwk_shm_both_read(struct rwk_shm_transfers *t)
{
	struct rwk_op *op = rwk_container_of(t->reads.next, struct rwk_op, link);
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	uint64_t word, all = chunks_in(op->length), chunk = chunk_for(op->length);
	struct claim c;
	bool settled;

	if (!rwk_shm_both_ask_for_two(t) || !claim_get(t, op, &word, &c))
		return 0;
	if (c.theirs + c.mine < all) {
		if (atomic_compare_exchange_strong(claim_word(t, r), &word, pack(r->id, c.theirs, c.mine + 1))) {
			r->pulled++;
			rwk_shm_pull_back(t, op, r->back - (all - r->pulled) * chunk);
		}
		return 1;
	}
	settled = take_front(t, op, c.theirs);
	if (t->broken || rwk_shm_read_finish_if_whole(t, op))
		return 1;
	if (!settled)
		return 0;
	rwk_shm_pull_back(t, op, r->back - op->at < chunk ? r->back - op->at : chunk);
	return 1;
}

/*
 * The exposer.
 */

static void publish(struct rwk_shm_transfers *t, const struct rwk_shm_push_ask *ask, uint32_t finished, bool give_up)
{
	atomic_store_explicit(&rwk_shm_area_of(t, true)->pushed[ask->place].word, pack(ask->id, give_up, finished),
		memory_order_release);
}

void rwk_shm_both_asked(struct rwk_shm_transfers *t, const struct rwk_shm_push_ask *ask)
{
	struct rwk_shm_region *region = rwk_shm_region_find(t, ask->cookie);
	struct push *p;

	if (ask->place >= RWK_SHM_CLAIMS || !ask->length || chunks_in(ask->length) > CHUNKS_MOST ||
		t->push_pool.used == RWK_SHM_SERVES) {
		rwk_shm_transfers_broken(t, "a transfer to push that cannot be");
		return;
	}
	/* what is wrong with the key the reader finds out by itself */
	p = region && !region->direct && ask->offset <= region->length && ask->length <= region->length - ask->offset && !t->push_denied ?
		rwk_pool_get(&t->push_pool) : NULL;
	if (!p) {
		publish(t, ask, 0, true);
		return;
	}
	*p = (struct push){.region = region, .ask = *ask};
	rwk_list_append(&t->pushes, &p->link);
	rwk_shm_transfers_activate(t);
}

static void push_end(struct rwk_shm_transfers *t, struct push *p)
{
	rwk_list_remove(&p->link);
	rwk_pool_put(&t->push_pool, p);
}

/* Takes the next chunk; false if there is none left for us. *again: somebody was faster. */
static bool take_chunk(struct rwk_shm_transfers *t, const struct push *p, bool *again)
{
	_Atomic uint64_t *claim = &rwk_shm_area_of(t, false)->claim[p->ask.place].word;
	uint64_t word = atomic_load_explicit(claim, memory_order_acquire);
	struct claim c = unpack(word);

	if (c.id != p->ask.id || c.theirs != p->finished || c.theirs + c.mine >= chunks_in(p->ask.length))
		return false;
	*again = !atomic_compare_exchange_strong(claim, &word, pack(c.id, c.theirs + 1, c.mine));
	return true;
}

/* Copies a claimed chunk into the reader, whose guard was there when it was claimed. */
static int push_chunk(struct rwk_shm_transfers *t, struct push *p, uint64_t guard)
{
	uint64_t chunk = chunk_for(p->ask.length), at = p->finished * chunk;
	size_t length = p->ask.length - at < chunk ? p->ask.length - at : chunk, given = length;
	struct iovec local[1 + RWK_EXPOSE_IOV_MAX];
	struct iovec remote[2] = {[1] = {(void *)(uintptr_t)(p->ask.target + at), length}};
	unsigned n = rwk_iov_slice(
		p->region->iov, p->region->count, p->ask.offset + at, &given, local + 1, RWK_EXPOSE_IOV_MAX);
	ssize_t put = rwk_shm_guarded_write(t, guard, local, 1 + n, remote, 2);

	if (put < 0)
		return put == -ESTALE ? -EFAULT : (int)put;
	if ((size_t)put != length)
		return -EFAULT;
	t->port->counts.pushed += length;
	return 0;
}

int rwk_shm_both_write(struct rwk_shm_transfers *t)
{
	struct push *p = rwk_container_of(t->pushes.next, struct push, link);
	bool again = false;
	uint64_t guard;
	int rc;

	if (rwk_list_empty(&t->pushes))
		return 0;
	guard = rwk_shm_guard_see(t);
	if (!take_chunk(t, p, &again)) {
		push_end(t, p);
		return 1;
	}
	if (again)
		return 1;
	rc = push_chunk(t, p, guard);
	if (!rc) {
		publish(t, &p->ask, ++p->finished, false);
		return 1;
	}
	if (rc != -EFAULT && !t->push_denied) {
		t->push_denied = true;
		t->port->counts.denials++;
		rwk_info("process_vm_writev into process %d is denied (%s)", (int)rwk_shm_peer_pid(t->ch),
			strerror(-rc));
	}
	publish(t, &p->ask, p->finished, true);
	push_end(t, p);
	return 1;
}

void rwk_shm_both_concealed(struct rwk_shm_transfers *t, uint64_t cookie)
{
	struct rwk_list *n, *next;

	for (n = t->pushes.next; n != &t->pushes; n = next) {
		struct push *p = rwk_container_of(n, struct push, link);

		next = n->next;
		if (p->ask.cookie != cookie)
			continue;
		publish(t, &p->ask, p->finished, true);
		push_end(t, p);
	}
}
