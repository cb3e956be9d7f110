/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct: reads and writes of a region that stays exposed, by cross-memory copies of who asks for them; alone, or, of a
 * long one, from the back, while a peer that polls copies from the front (transfer_both.c).
 *
 * A read is believed as a pull is (transfer_proof.c). A write is announced: the writer sees where the peer's guard is,
 * the cookie goes into `writing` of our area, then, after a full barrier, the peer's `valid` must still name it; then a
 * chunk is written behind that guard, and the announcement withdrawn. See transfer_guard.c.
 *
 * What goes at once ends in post. The rest waits in a list and goes on in progress, in order, a chunk a call. Only the
 * first is shared, as those behind it may need what it brings.
 */
#include "shm/transfer_area.h"

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

/* The pieces of a chunk, with room for one entry more. */
struct chunk {
	struct iovec local[RWK_EXPOSE_IOV_MAX + 1], remote[RWK_EXPOSE_IOV_MAX + 1];
	unsigned locals, remotes;
	size_t length;
};

/*
 * Bytes that have come; 0: the proof was too old for them, as after a pause in which nobody looked at the clock, or
 * they may not have been the peer's (transfer_reach.c); or negative errno.
 */
static ssize_t read_once(struct rwk_shm_transfers *t, struct rwk_op *op, struct chunk *c)
{
	bool proves = rwk_shm_proof_needed(t, &op->rkey, t->pulled_at), whole;
	uint64_t cookie = 0, begun = proves ? rwk_clock_now() : 0;
	ssize_t got;

	c->local[c->locals] = (struct iovec){&cookie, sizeof(cookie)};
	c->remote[c->remotes] = rwk_shm_cookie_of(&op->rkey);
	got = rwk_shm_vm_read(t, c->local, c->locals + proves, c->remote, c->remotes + proves);
	if (got < 0 && got != -EFAULT)
		return got;
	whole = got == (ssize_t)(c->length + (proves ? sizeof(cookie) : 0));
	if ((!whole || (proves && cookie != op->rkey.word[0])) && rwk_shm_reach_anew(t))
		return 0;
	if (!whole)
		return rwk_shm_region_readable(t, op->rkey.word[0]) ? -EFAULT : -EACCES;
	if (proves && cookie != op->rkey.word[0])
		return -EACCES;
	t->pulled_at = rwk_clock_now();
	if (!proves && !rwk_shm_proof_held(t, op->rkey.word[0], t->pulled_at))
		return 0;
	t->proven = proves ? begun : t->proven;
	t->port->counts.pulled += c->length;
	return (ssize_t)c->length;
}

/* Bytes that have come, perhaps none, then it is tried again; or negative errno. */
static ssize_t read_chunk(struct rwk_shm_transfers *t, struct rwk_op *op, struct chunk *c)
{
	ssize_t n = read_once(t, op, c);

	return n ? n : read_once(t, op, c);
}

/* Bytes that have gone, perhaps none, then it is tried again; or negative errno. */
static ssize_t write_chunk(struct rwk_shm_transfers *t, struct rwk_op *op, struct chunk *c)
{
	_Atomic uint64_t *writing = &rwk_shm_area_of(t, true)->writing.word;
	uint64_t cookie = op->rkey.word[0], guard = rwk_shm_guard_see(t);
	ssize_t put = -EACCES;

	rwk_publish64(writing, cookie);
	rwk_barrier_full();
	if (rwk_shm_region_writable(t, cookie))
		put = rwk_shm_guarded_write(t, guard, c->local, c->locals, c->remote, c->remotes);
	rwk_publish64(writing, 0);
	if (put == (ssize_t)c->length) {
		t->port->counts.written += c->length;
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

/* Its turn has come: alone, or with the peer's help. */
static void begin(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	unsigned allowed = 1u << RWK_SHM_PULL | 1u << RWK_SHM_BOTH;

	r->begun = true;
	r->method = RWK_SHM_PULL;
	if (!rwk_shm_both_possible(op, true) || !rwk_shm_both_listens(t))
		return;
	r->started = rwk_clock_now();
	r->method = (uint8_t)rwk_shm_choice_pick(
		&t->direct_pace[op->type == RWK_OP_WRITE].choice, rwk_shm_load_of(op), t->force ? t->force : allowed);
	if (r->method == RWK_SHM_BOTH && !rwk_shm_both_ask_direct(t, op))
		r->started = 0;
}

/* Which bytes to move next: sets *at, returns how many; 0: the peer's must be waited for. */
static size_t next_chunk(struct rwk_shm_transfers *t, struct rwk_op *op, size_t *at)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	size_t left = r->back - op->at;

	*at = op->at;
	if (!r->claim)
		return left < CHUNK ? left : CHUNK;
	left = rwk_shm_both_own(t, op);
	left = left ? left : rwk_shm_both_rest(t, op);
	*at = r->back - left;
	return left;
}

/* Moves a chunk of the op: how many bytes that was, or what the op ends with. */
static ssize_t move(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	bool write = op->type == RWK_OP_WRITE; /* the guard goes first, the cookie last */
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	size_t at, length;
	struct chunk c;
	ssize_t n;

	if (t->direct_denied || t->cma_denied)
		return -EOPNOTSUPP;
	length = next_chunk(t, op, &at);
	if (!length)
		return 0;
	n = rwk_shm_op_pieces(t, op, at, length, c.local + write, &c.locals, c.remote + write, &c.remotes);
	if (n > 0 && r->claim && (size_t)n < length)
		n = -EFAULT; /* one piece here and no more there than fit */
	if (n > 0) {
		c.length = (size_t)n;
		c.locals += write;
		c.remotes += write;
		n = write ? write_chunk(t, op, &c) : read_chunk(t, op, &c);
	}
	if (n < 0)
		return n == -ECONNRESET ? n : failed(t, (int)n);
	if (r->claim)
		r->back -= (size_t)n;
	else
		op->at += (size_t)n;
	return n;
}

/* True: the op is over, and nobody copies for it any more. False: the peer still does; what it ends with is kept. */
static bool end(struct rwk_shm_transfers *t, struct rwk_op *op, int status)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);

	r->status = status;
	if (!rwk_shm_both_leave(t, op)) {
		r->method = RWK_SHM_METHODS;
		return false;
	}
	if (!status && r->started)
		rwk_shm_pace_done(&t->direct_pace[op->type == RWK_OP_WRITE], r->method, rwk_shm_load_of(op), r->started,
			rwk_clock_now(), !rwk_list_empty(&t->direct) && t->direct.next->next != &t->direct);
	return true;
}

/*
 * Moves what can be moved of the first op, about `most` bytes: true if it is over, with r->status. *moved counts its
 * bytes.
 */
static bool work(struct rwk_shm_transfers *t, struct rwk_op *op, size_t most, size_t *moved)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	ssize_t n;

	if (r->method == RWK_SHM_METHODS)
		return end(t, op, r->status);
	if (!r->begun)
		begin(t, op);
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
	if (rwk_list_empty(&t->direct) && work(t, op, CHUNK, &moved))
		return r->status ? r->status : 1;
	rwk_list_append(&t->direct, &op->link);
	rwk_shm_transfers_activate(t);
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
