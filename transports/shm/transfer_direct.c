/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct: reads and writes of a region that stays exposed, by cross-memory copies of who asks for them; alone, or, of a
 * long one, from the back, while a peer that polls copies from the front (transfer_both.c).
 *
 * A read is believed as a pull is (transfer_proof.c). A write is announced: the writer sees where the peer's guard is,
 * the cookie goes into `writing` of our area, then, after a full barrier, the peer's `valid` must still name it; then a
 * chunk is written behind that guard, and the announcement withdrawn. See transfer_guard.c.
 *
 * What goes at once ends in post; or, where one side copies it with one call, and nothing is before it, in access, which
 * does without an op: of 16 KB that is a tenth of the time. The rest waits in a list and goes on in progress, a chunk a
 * call; but of the first few that are shared each side copies its halves with one call (transfer_help.c). They end in
 * the order of their posts, but are not carried out in it: nobody is promised that of what goes directly
 * (src/engine/rma.h).
 */
#include "shm/transfer_area.h"

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"
#include "base/param.h"

#include <errno.h>
#include <string.h>

#define CHUNK       RWK_SHM_PULL_MOST /* bytes a call: so long conceal waits, and progress takes */
#define OPS_MOST    32                /* a progress */

void rwk_shm_direct_deny(struct rwk_shm_transfers *t)
{
	t->direct_denied = true;
	((struct rwk_channel *)t->ch)->direct_min = 0;
}

/* A call has failed. What the op ends with. */
static int failed(struct rwk_shm_transfers *t, int err)
{
	if (err == -EFAULT || err == -EACCES)
		return err;
	if (err == -ESRCH && !rwk_shm_peer_alive(t->ch))
		return -ECONNRESET;
	if (!t->direct_denied) {
		t->port->counts.denials++;
		rwk_log(rwk_params.cma == RWK_ON ? RWK_LOG_WARN : RWK_LOG_INFO, __FILE__, __LINE__,
			"cross-memory copies between this process and process %d are denied (%s): its memory is "
			"reached by messages",
			(int)rwk_shm_peer_pid(t->ch), strerror(-err));
	}
	rwk_shm_direct_deny(t);
	return -EOPNOTSUPP;
}

#define HAUL_IOV (2 * RWK_SHM_SHARED_MOST + RWK_EXPOSE_IOV_MAX)

/*
 * What one call moves: a chunk of an op, or this side's halves of several that are of the same region. A write's first
 * entry is the guard's, which is counted; behind a read's last one there is room for the cookie, which is not.
 */
struct haul {
	size_t length;
	unsigned locals, remotes, parts;
	struct {
		struct rwk_op *op;
		size_t length;
	} part[RWK_SHM_SHARED_MOST];
	struct iovec local[HAUL_IOV], remote[HAUL_IOV];
};

/* Its bytes from `at` on, or, if not `all` are needed, as many as there is room for: how many, or negative errno. */
static ssize_t add_part(
	struct rwk_shm_transfers *t, struct haul *h, struct rwk_op *op, size_t at, size_t length, bool all)
{
	unsigned locals, remotes;
	ssize_t n =
		rwk_shm_op_pieces(t, op, at, length, h->local + h->locals, &locals, h->remote + h->remotes, &remotes);

	if (n < 0)
		return n;
	if (all && (size_t)n < length)
		return -EFAULT;
	h->locals += locals;
	h->remotes += remotes;
	h->length += (size_t)n;
	h->part[h->parts].op = op;
	h->part[h->parts++].length = (size_t)n;
	return n;
}

/*
 * Bytes that have come; 0: the proof was too old for them, as after a pause in which nobody looked at the clock, or
 * they may not have been the peer's (transfer_reach.c); or negative errno.
 */
static ssize_t read_once(struct rwk_shm_transfers *t, const struct rwk_rkey *rkey, struct haul *h)
{
	bool proves = rwk_shm_proof_needed(t, rkey, t->pulled_at), whole;
	uint64_t cookie = 0, begun = proves ? rwk_clock_now() : 0;
	ssize_t got;

	h->local[h->locals] = (struct iovec){&cookie, sizeof(cookie)};
	h->remote[h->remotes] = rwk_shm_cookie_of(rkey);
	got = rwk_shm_vm_read(t, h->local, h->locals + proves, h->remote, h->remotes + proves);
	if (got < 0 && got != -EFAULT)
		return got;
	whole = got == (ssize_t)(h->length + (proves ? sizeof(cookie) : 0));
	if ((!whole || (proves && cookie != rkey->word[0])) && rwk_shm_reach_anew(t))
		return 0;
	if (!whole)
		return rwk_shm_region_readable(t, rkey->word[0]) ? -EFAULT : -EACCES;
	if (proves && cookie != rkey->word[0])
		return -EACCES;
	t->pulled_at = rwk_clock_now();
	if (!proves && !rwk_shm_proof_held(t, rkey->word[0], t->pulled_at))
		return 0;
	t->proven = proves ? begun : t->proven;
	t->port->counts.pulled += h->length;
	return (ssize_t)h->length;
}

/* Bytes that have come, perhaps none, then it is tried again; or negative errno. */
static ssize_t read_haul(struct rwk_shm_transfers *t, const struct rwk_rkey *rkey, struct haul *h)
{
	ssize_t n = read_once(t, rkey, h);

	return n ? n : read_once(t, rkey, h);
}

/* Bytes that have gone, perhaps none, then it is tried again; or negative errno. */
static ssize_t write_haul(struct rwk_shm_transfers *t, const struct rwk_rkey *rkey, struct haul *h)
{
	_Atomic uint64_t *writing = &rwk_shm_area_of(t, true)->writing.word;
	uint64_t cookie = rkey->word[0], guard = rwk_shm_guard_see(t);
	ssize_t put = -EACCES;

	rwk_publish64(writing, cookie);
	rwk_barrier_full();
	if (rwk_shm_region_writable(t, cookie))
		put = rwk_shm_guarded_write(t, guard, h->local, h->locals, h->remote, h->remotes);
	rwk_publish64(writing, 0);
	if (put == (ssize_t)h->length) {
		t->port->counts.written += h->length;
		return put;
	}
	if (put >= 0)
		return -EFAULT;
	if (put != -ESTALE)
		return put;
	/* The guard was changed on our account; or the region went at the same time; or the process is another one. */
	if (rwk_shm_guard_see(t) != guard)
		return 0;
	return rwk_shm_region_writable(t, cookie) ? -ECONNRESET : -EACCES;
}

#define DIRECT_METHODS (1u << RWK_SHM_PULL | 1u << RWK_SHM_BOTH)

/*
 * Its turn has come: alone, or with the peer's help. What nobody waits behind is lone, unless it is one of several
 * whose first have been short enough to end in their posts.
 */
static void begin(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	bool first = t->direct.next == &op->link, lone = first && op->link.next == &t->direct && !op->behind;

	r->begun = true;
	r->method = RWK_SHM_PULL;
	if (!rwk_shm_both_possible(op, lone) || !rwk_shm_both_listens(t, first))
		return;
	r->started = rwk_clock_now();
	r->method = (uint8_t)rwk_shm_choice_pick(&t->direct_pace[op->type == RWK_OP_WRITE].choice, rwk_shm_load_of(op),
		t->force ? t->force : DIRECT_METHODS);
	if (r->method == RWK_SHM_BOTH && !rwk_shm_both_ask_direct(t, op)) {
		r->method = RWK_SHM_PULL;
		r->started = 0;
	}
}

/* Begins the first ops, as long as they are shared: what a call copies alone is copied when its turn comes. */
static void begin_first(struct rwk_shm_transfers *t)
{
	struct rwk_list *n = t->direct.next;
	uint64_t bytes = 0;

	for (unsigned i = 0; n != &t->direct; i++, n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);
		struct rwk_shm_read *r = rwk_shm_read_of(op);

		bytes += op->length;
		if (!rwk_shm_shares(i, bytes))
			break;
		if (!r->begun)
			begin(t, op);
		if (r->method != RWK_SHM_BOTH)
			break;
	}
}

/*
 * This side's halves of the op and of those behind it: bytes, or negative errno if the op itself cannot be had. Of the
 * op there may be nothing left to move, while the peer still has its half to do.
 */
static ssize_t gather_halves(struct rwk_shm_transfers *t, struct haul *h, struct rwk_op *first)
{
	for (struct rwk_list *n = &first->link; n != &t->direct && h->length < RWK_SHM_AT_ONCE; n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);
		const struct rwk_shm_read *r = rwk_shm_read_of(op);
		size_t length;
		ssize_t added;

		if (!r->claim || op->type != first->type || op->rkey.word[0] != first->rkey.word[0] ||
			h->parts == RWK_SHM_SHARED_MOST || h->remotes + RWK_EXPOSE_IOV_MAX >= HAUL_IOV)
			break;
		length = rwk_shm_both_own(t, op);
		added = length ? add_part(t, h, op, r->back - length, length, true) : 0;
		if (added < 0 && op == first)
			return added;
		if (added < 0 || rwk_shm_read_of(first)->alone)
			break;
	}
	return (ssize_t)h->length;
}

/* What to move next of the op by itself: bytes, 0: the peer's must be waited for, or negative errno. */
static ssize_t gather_one(struct rwk_shm_transfers *t, struct haul *h, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	size_t left = r->claim ? rwk_shm_both_rest(t, op) : r->back - op->at;

	if (!r->claim)
		return add_part(t, h, op, op->at, left < CHUNK ? left : CHUNK, false);
	return left ? add_part(t, h, op, r->back - left, left, true) : 0;
}

/* Moves a chunk of the op, and of those behind it: how many bytes that was, or what the op ends with. */
static ssize_t move(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	bool write = op->type == RWK_OP_WRITE;
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	struct haul h;
	ssize_t n = 0;

	if (t->direct_denied || t->cma_denied)
		return -EOPNOTSUPP;
	h.locals = h.remotes = write;
	h.parts = 0;
	h.length = 0;
	if (r->claim)
		n = gather_halves(t, &h, op);
	if (!n)
		n = gather_one(t, &h, op);
	if (n > 0)
		n = write ? write_haul(t, &op->rkey, &h) : read_haul(t, &op->rkey, &h);
	if (n < 0 && h.parts && (h.parts > 1 || h.part[0].op != op)) {
		r->alone = true; /* whoever it is bears his error alone */
		return 0;
	}
	if (n < 0)
		return n == -ECONNRESET ? n : failed(t, (int)n);
	for (unsigned i = 0; n && i < h.parts; i++) {
		if (r->claim)
			rwk_shm_read_of(h.part[i].op)->back -= h.part[i].length;
		else
			op->at += h.part[i].length;
	}
	return n;
}

/* True: the op is over, and nobody copies for it any more. False: the peer still does; what it ends with is kept. */
static bool end(struct rwk_shm_transfers *t, struct rwk_op *op, int status)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);

	r->status = status;
	if (!rwk_shm_both_leave(t, op)) {
		r->method = RWK_SHM_METHODS;
		r->started = 0; /* how long the peer stays is no matter of the method's, which is not known any more */
		return false;
	}
	if (!status && r->started) {
		struct rwk_shm_pace *pace = &t->direct_pace[op->type == RWK_OP_WRITE];

		pace->ahead = rwk_shm_both_ahead(t, op);
		rwk_shm_pace_done(pace, r->method, rwk_shm_load_of(op), r->started, rwk_clock_now(),
			op->link.next != &t->direct);
	}
	return true;
}

/*
 * Moves what can be moved of the first op, about `most` bytes, and of those behind it that are shared: true if it is
 * over, with r->status. *moved counts the bytes.
 */
static bool work(struct rwk_shm_transfers *t, struct rwk_op *op, size_t most, size_t *moved)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	ssize_t n;

	if (r->method == RWK_SHM_METHODS)
		return end(t, op, r->status);
	if (rwk_shm_both_whole(t, op))
		return end(t, op, 0); /* and the next ones, before any are asked for: these are copied together */
	begin_first(t);
	do {
		n = move(t, op);
		if (n < 0)
			return end(t, op, (int)n);
		*moved += (size_t)n;
		if (!t->broken && op->at >= r->back)
			return end(t, op, 0);
	} while (n && *moved < most);
	return false;
}

int rwk_shm_direct_post(struct rwk_shm_transfers *t, struct rwk_op *op, const struct rwk_shm_key *key)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	size_t moved = 0;

	if (!(key->access & (op->type == RWK_OP_WRITE ? RWK_EXPOSE_WRITE : RWK_EXPOSE_READ)))
		return -EACCES;
	op->at = 0;
	r->direct = true;
	r->back = op->length;
	rwk_list_append(&t->direct, &op->link);
	if (t->direct.next != &op->link) {
		begin_first(t); /* the helper need not wait until this one has its turn here */
	} else if (work(t, op, CHUNK, &moved)) {
		rwk_list_remove(&op->link);
		return r->status ? r->status : 1;
	}
	rwk_shm_transfers_activate(t);
	return 0;
}

/* Is it for this side alone? Then *started is when it begins, ns, if it is to be measured as of *load, else 0. */
static bool alone_now(struct rwk_shm_transfers *t, const struct rwk_direct_access *a, const char *there,
	struct rwk_shm_load *load, uint64_t *started)
{
	bool write = a->type == RWK_OP_WRITE;

	*started = 0;
	if (a->length <= RWK_SHM_BOTH_LONE)
		return true;
	if (t->force)
		return false;
	if (!rwk_shm_both_listens(t, true))
		return true;
	load->length = a->length;
	load->collides = write ? rwk_copy_collides(there, a->here) : rwk_copy_collides(a->here, there);
	if (!rwk_shm_choice_take(&t->direct_pace[write].choice, RWK_SHM_PULL, *load, DIRECT_METHODS))
		return false;
	*started = rwk_clock_now();
	return true;
}

int rwk_shm_direct_now(struct rwk_shm_transfers *t, const struct rwk_direct_access *a, const struct rwk_shm_key *key)
{
	bool write = a->type == RWK_OP_WRITE;
	char *there = (char *)(uintptr_t)(key->address + a->offset);
	struct rwk_shm_pace *pace = &t->direct_pace[write];
	struct rwk_shm_load load;
	uint64_t started;
	struct haul h;
	ssize_t n;

	if (!(key->access & (write ? RWK_EXPOSE_WRITE : RWK_EXPOSE_READ)) || !rwk_list_empty(&t->direct) ||
		t->direct_denied || t->cma_denied || !alone_now(t, a, there, &load, &started))
		return -EAGAIN;
	h.local[write] = (struct iovec){a->here, a->length};
	h.remote[write] = (struct iovec){there, a->length};
	h.locals = h.remotes = 1u + write;
	h.length = a->length;
	n = write ? write_haul(t, a->rkey, &h) : read_haul(t, a->rkey, &h);
	if (n != (ssize_t)a->length)
		return -EAGAIN;
	if (started) {
		pace->ahead = 0; /* no other is under way */
		rwk_shm_pace_done(pace, RWK_SHM_PULL, load, started, rwk_clock_now(), false);
	}
	return 0;
}

int rwk_shm_direct_progress(struct rwk_shm_transfers *t)
{
	size_t moved = 0;
	int did = 0;

	while (!rwk_list_empty(&t->direct) && moved < CHUNK && did < OPS_MOST) {
		struct rwk_op *op = rwk_container_of(t->direct.next, struct rwk_op, link);
		size_t before = moved;

		if (!work(t, op, CHUNK, &moved))
			return did + (moved > before);
		did++;
		rwk_list_remove(&op->link);
		op->done(op, rwk_shm_read_of(op)->status);
	}
	return did;
}
