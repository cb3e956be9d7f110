/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pull: the reader copies out of the exposer's memory with process_vm_readv, alone.
 *
 * In a call that proves whose the bytes are (transfer_proof.c) each piece is followed by the cookie of its region's
 * record, and bytes count as come only when their cookie has.
 */
#include "shm/transfer_state.h"

#include "base/log.h"
#include "base/param.h"

#include <errno.h>
#include <string.h>

#define PIECES_MOST 32u
#define IOV_MOST    96u /* entries on each side of a call */

/* A part of a read, as it stands in one call. */
struct piece {
	struct rwk_op *op;
	size_t length;
	uint64_t cookie; /* what was found behind the bytes, in a call that proves */
};

struct call {
	struct iovec local[IOV_MOST], remote[IOV_MOST];
	unsigned locals, remotes;
	struct piece piece[PIECES_MOST];
	unsigned pieces;
	size_t bytes;
	size_t got; /* bytes that came, cookies among them, of pieces not looked at yet */
	bool proves;
	bool from_back; /* pieces are for the backs of their reads, not the fronts */
	uint64_t begun; /* ns, of one that proves */
};

/* The region's record in the peer's memory, for its pieces. 0, or negative errno. */
static int remote_record(struct rwk_shm_transfers *t, const struct rwk_shm_key *key, struct rwk_shm_region *copy)
{
	struct iovec local = {copy, sizeof(*copy)}, remote = {(void *)(uintptr_t)key->region, sizeof(*copy)};
	ssize_t got;

	got = rwk_shm_vm_read(t, &local, 1, &remote, 1);
	if (got < 0)
		return (int)got;
	if (got != sizeof(*copy))
		return -EFAULT;
	if (copy->cookie != key->cookie)
		return rwk_shm_reach_anew(t) ? remote_record(t, key, copy) : -EACCES;
	return copy->count && copy->count <= RWK_EXPOSE_IOV_MAX ? 0 : -EACCES;
}

ssize_t rwk_shm_op_pieces(struct rwk_shm_transfers *t, const struct rwk_op *op, size_t at, size_t length,
	struct iovec *local, unsigned *locals, struct iovec *remote, unsigned *remotes)
{
	struct rwk_shm_region region;
	struct rwk_shm_key key;
	size_t local_length;
	int rc;

	rwk_shm_key_unpack(&op->rkey, &key);
	*locals = rwk_iov_slice(op->iov, op->iov_count, at, &length, local, RWK_EXPOSE_IOV_MAX);
	if (!length)
		return -EFAULT;
	if (key.one) {
		*remote = (struct iovec){(void *)(uintptr_t)(key.address + op->offset + at), length};
		*remotes = 1;
		return (ssize_t)length;
	}
	rc = remote_record(t, &key, &region);
	if (rc)
		return rc;
	local_length = length;
	*remotes = rwk_iov_slice(region.iov, region.count, op->offset + at, &length, remote, RWK_EXPOSE_IOV_MAX);
	if (!length)
		return -EFAULT;
	if (length < local_length)
		*locals = rwk_iov_slice(op->iov, op->iov_count, at, &length, local, RWK_EXPOSE_IOV_MAX);
	return (ssize_t)length;
}

/* The time as it was last looked up: a pull follows the post of its read, or another pull. */
static uint64_t lately(const struct rwk_shm_transfers *t, struct rwk_op *op)
{
	uint64_t started = rwk_shm_read_of(op)->started;

	return started > t->pulled_at ? started : t->pulled_at;
}

/*
 * Adds [offset, offset + length) of the read to the call, or as much of it as there is room for; 0 bytes if there is
 * none. Negative errno if the read cannot be pulled.
 */
static ssize_t add_piece(struct rwk_shm_transfers *t, struct call *c, struct rwk_op *op, size_t offset, size_t length)
{
	struct piece *p = &c->piece[c->pieces];
	unsigned locals, remotes;
	ssize_t n;

	if (c->pieces == PIECES_MOST || c->locals + RWK_EXPOSE_IOV_MAX + 1 > IOV_MOST ||
		c->remotes + RWK_EXPOSE_IOV_MAX + 1 > IOV_MOST)
		return 0;
	if (!c->proves && rwk_shm_proof_needed(t, &op->rkey, lately(t, op))) {
		if (c->pieces)
			return 0;
		c->proves = true;
		c->begun = rwk_clock_now();
	}
	n = rwk_shm_op_pieces(t, op, offset, length, c->local + c->locals, &locals, c->remote + c->remotes, &remotes);
	if (n < 0)
		return n;
	*p = (struct piece){.op = op, .length = (size_t)n};
	c->locals += locals;
	c->remotes += remotes;
	if (c->proves) {
		c->local[c->locals++] = (struct iovec){&p->cookie, sizeof(p->cookie)};
		c->remote[c->remotes++] = rwk_shm_cookie_of(&op->rkey);
	}
	c->pieces++;
	c->bytes += (size_t)n;
	return n;
}

static void deny(struct rwk_shm_transfers *t, int err)
{
	struct rwk_list *n = t->reads.next;

	if (!t->cma_denied) {
		t->cma_denied = true;
		rwk_shm_direct_deny(t);
		t->port->counts.denials++;
		rwk_log(rwk_params.cma == RWK_ON ? RWK_LOG_WARN : RWK_LOG_INFO, __FILE__, __LINE__,
			"process_vm_readv from process %d is denied (%s): copying through shared memory",
			(int)rwk_shm_peer_pid(t->ch), strerror(-err));
	}
	for (uint32_t i = 0; i < t->begun; i++, n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);

		if (rwk_shm_read_of(op)->method == RWK_SHM_BOTH)
			rwk_shm_both_give_up(t, op);
		if (rwk_shm_read_of(op)->method <= RWK_SHM_BOTH && !rwk_shm_read_of(op)->asked &&
			op->at < rwk_shm_read_of(op)->back && rwk_shm_stage_ask(t, op))
			return; /* no memory to ask: the next pull is denied again and comes here again */
	}
}

/* The pull of this read has failed as a whole. */
static void failed(struct rwk_shm_transfers *t, struct rwk_op *op, int err)
{
	if (err == -EFAULT || err == -EACCES)
		rwk_shm_read_finish(t, op, err);
	else if (err == -ESRCH && !rwk_shm_peer_alive(t->ch))
		rwk_shm_read_finish(t, op, -ECONNRESET);
	else
		deny(t, err);
}

/*
 * Pieces came up to the first that is not whole: that one is tried again by itself, so that it alone bears its error.
 */
static void broke_off(struct rwk_shm_transfers *t, struct call *c, unsigned at)
{
	if (c->pieces == 1)
		rwk_shm_read_finish(t, c->piece[at].op, -EFAULT);
	else
		rwk_shm_read_of(c->piece[at].op)->alone = true;
}

static bool make_call(struct rwk_shm_transfers *t, struct call *c)
{
	ssize_t got = rwk_shm_vm_read(t, c->local, c->locals, c->remote, c->remotes);

	if (got < 0 && got != -EFAULT) {
		failed(t, c->piece[0].op, (int)got);
		return false;
	}
	c->got = got < 0 ? 0 : (size_t)got;
	t->pulled_at = rwk_clock_now();
	return true;
}

/*
 * Has piece `i` come, and was it still exposed? If not, its read is dealt with here, or goes on in the next call, as do
 * those behind it when nothing is left of c->got.
 */
static bool piece_good(struct rwk_shm_transfers *t, struct call *c, unsigned i)
{
	struct piece *p = &c->piece[i];
	size_t length = p->length + (c->proves ? sizeof(p->cookie) : 0);

	if (c->got < length) {
		if (!rwk_shm_reach_anew(t))
			broke_off(t, c, i);
		c->got = 0;
		return false;
	}
	c->got -= length;
	if (c->proves && p->cookie != p->op->rkey.word[0]) {
		if (rwk_shm_reach_anew(t))
			c->got = 0;
		else
			rwk_shm_read_finish(t, p->op, -EACCES);
		return false;
	}
	if (!c->proves && !rwk_shm_proof_held(t, p->op->rkey.word[0], t->pulled_at)) {
		c->got = 0;
		return false;
	}
	t->proven = c->proves ? c->begun : t->proven;
	t->port->counts.pulled += p->length;
	return true;
}

static void call_init(struct call *c, bool from_back)
{
	c->locals = c->remotes = c->pieces = 0;
	c->bytes = 0;
	c->proves = false;
	c->from_back = from_back;
}

/* Fills the call from the head of the list; false if the first read cannot be pulled (it has been dealt with). */
static bool fill_call(struct rwk_shm_transfers *t, struct call *c)
{
	struct rwk_list *n = t->reads.next;

	for (uint32_t i = 0; i < t->begun && c->bytes < RWK_SHM_PULL_MOST; i++, n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);
		struct rwk_shm_read *r = rwk_shm_read_of(op);
		size_t want = r->back - op->at, room = RWK_SHM_PULL_MOST - c->bytes;
		ssize_t added;

		if (r->method != RWK_SHM_PULL || (r->alone && c->pieces))
			break;
		added = add_piece(t, c, op, op->at, want < room ? want : room);
		if (added < 0 && !c->pieces) {
			failed(t, op, (int)added);
			return false;
		}
		if (added < (ssize_t)want || r->alone)
			break;
	}
	return c->pieces > 0;
}

/* Makes the call, and finishes the reads that are whole by it. */
static void carry_out(struct rwk_shm_transfers *t, struct call *c)
{
	if (!make_call(t, c))
		return;
	for (unsigned i = 0; i < c->pieces; i++) {
		struct rwk_op *op = c->piece[i].op;

		if (!piece_good(t, c, i)) {
			if (!c->got)
				break;
			continue;
		}
		if (c->from_back)
			rwk_shm_read_of(op)->back -= c->piece[i].length;
		else
			op->at += c->piece[i].length;
		t->pace.of_call = c->pieces - 1 - i;
		rwk_shm_read_finish_if_whole(t, op, t->pulled_at);
	}
	t->pace.of_call = 0;
	t->pace.inside = false;
}

int rwk_shm_pull(struct rwk_shm_transfers *t)
{
	struct rwk_op *op = rwk_container_of(t->reads.next, struct rwk_op, link);
	struct call c;

	if (rwk_shm_read_of(op)->method != RWK_SHM_PULL)
		return 0;
	call_init(&c, false);
	if (!fill_call(t, &c))
		return 1;
	carry_out(t, &c);
	return (int)c.pieces;
}

/* As add_piece, at the back of the read: all of it, or nothing. */
static ssize_t add_back(struct rwk_shm_transfers *t, struct call *c, struct rwk_op *op, size_t length)
{
	unsigned locals = c->locals, remotes = c->remotes;
	ssize_t added = add_piece(t, c, op, rwk_shm_read_of(op)->back - length, length);

	if (added <= 0 || (size_t)added == length)
		return added;
	c->locals = locals;
	c->remotes = remotes;
	c->bytes -= (size_t)added;
	c->pieces--;
	return 0;
}

int rwk_shm_pull_halves(struct rwk_shm_transfers *t)
{
	struct rwk_list *n = t->reads.next;
	struct call c;

	call_init(&c, true);
	for (uint32_t i = 0; i < t->begun && c.bytes < RWK_SHM_AT_ONCE; i++, n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);
		struct rwk_shm_read *r = rwk_shm_read_of(op);
		size_t length;
		ssize_t added;

		if (r->method != RWK_SHM_BOTH || !r->claim || (r->alone && c.pieces))
			break;
		length = rwk_shm_both_own(t, op);
		if (!length)
			continue;
		added = add_back(t, &c, op, length);
		if (added <= 0 && !c.pieces) {
			failed(t, op, added ? (int)added : -EFAULT); /* 0: the peer's pieces are fewer than it said */
			return 1;
		}
		if (added <= 0 || r->alone)
			break;
	}
	if (c.pieces)
		carry_out(t, &c);
	return (int)c.pieces;
}

void rwk_shm_pull_back(struct rwk_shm_transfers *t, struct rwk_op *op, size_t length)
{
	struct call c;
	ssize_t added;

	call_init(&c, true);
	do /* the piece must end at the back: a shorter one, if its entries do not all fit into a call */
		added = add_back(t, &c, op, length);
	while (!added && (length /= 2));
	if (added < 0)
		failed(t, op, (int)added);
	else if (added)
		carry_out(t, &c);
}
