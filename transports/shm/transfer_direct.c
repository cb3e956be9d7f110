/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct: reads and writes of a region that stays exposed, by cross-memory copies of who asks for them, alone.
 *
 * A read brings the region's cookie behind its bytes, as a pull does. A write is announced: the writer sees where the
 * peer's guard is, the cookie goes into `writing` of our area, then, after a full barrier, the peer's `valid` must
 * still name it; then a chunk is written behind that guard, and the announcement withdrawn. See transfer_guard.c.
 *
 * What goes at once ends in post. The rest waits in a list and goes on in progress, in order, a chunk a call.
 */
#define _GNU_SOURCE /* process_vm_readv */
#include "shm/transfer_area.h"

#include "base/log.h"
#include "base/param.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHUNK       RWK_SHM_PULL_MOST /* bytes a call: so long conceal waits, and progress takes */
#define OPS_MOST    32                /* a progress */
#define LEAST_LEAST ((size_t)1 << 10)
#define LEAST_MOST  ((size_t)64 << 10)
#define TRIALS      8
#define TRIAL_BYTES ((size_t)4 << 10)

/* Out of this core's caches with them: so lines are that another core has written. Where that cannot be had they stay.
 */
static void flush(const unsigned char *at, size_t length)
{
	for (size_t i = 0; i < length; i += RWK_CACHE_LINE) {
#if defined(__x86_64__)
		__builtin_ia32_clflush(at + i);
#elif defined(__aarch64__)
		__asm__ volatile("dc civac, %0" : : "r"(at + i) : "memory");
#endif
	}
	rwk_barrier_full();
}

/* ns that a call takes which copies next to nothing; 0: denied. */
static uint64_t call_takes(void)
{
	uint64_t word = 1, got = 0, least = UINT64_MAX;
	struct iovec local = {&got, sizeof(got)}, remote = {&word, sizeof(word)};
	pid_t self = getpid();

	for (int i = 0; i < TRIALS; i++) {
		uint64_t start = rwk_shm_now(), took;

		if (process_vm_readv(self, &local, 1, &remote, 1, 0) != sizeof(got))
			return 0;
		took = rwk_shm_now() - start;
		least = took < least ? took : least;
	}
	return least ? least : 1;
}

/* ns that it takes to copy `bytes` from and to `at`, of which there are twice as many. */
static uint64_t copy_takes(unsigned char *at, size_t bytes)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIALS; i++) {
		uint64_t start, took;

		memset(at, i, 2 * bytes);
		flush(at, 2 * bytes);
		start = rwk_shm_now();
		memcpy(at + bytes, at, bytes);
		__asm__ volatile("" : : "r"(at) : "memory"); /* it is wanted */
		took = rwk_shm_now() - start;
		least = took < least ? took : least;
	}
	return least ? least : 1;
}

/*
 * From which size on. A message copies its payload twice where a direct copy does it once, but that is a call of the
 * kernel's, which costs as much for a byte as for a page. So direct pays from the size on that is copied in the time
 * of such a call; rounded up to a power of two, as a peer who polls copies his half of a message by himself. Both are
 * measured here, the call on this process itself: it takes the same way through the kernel as one into another process,
 * and can be had before there is a peer. The least of some trials: who loses the core in between has not measured
 * anything. Not below 1 KB, where a message is a few lines and its copies cost nothing; not above 64 KB, the longest
 * that usually goes as a message at all.
 */
size_t rwk_shm_direct_least(void)
{
	uint64_t call = rwk_params.cma == RWK_OFF ? 0 : call_takes(), copy;
	unsigned char page[2 * TRIAL_BYTES] rwk_aligned;
	size_t least = LEAST_LEAST;

	if (!call)
		return 0;
	copy = copy_takes(page, TRIAL_BYTES);
	while (least < LEAST_MOST && least * copy < call * TRIAL_BYTES)
		least *= 2;
	return least;
}

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

/* Does the peer still expose it? */
static bool valid(struct rwk_shm_transfers *t, uint64_t cookie)
{
	uint32_t index = rwk_shm_cookie_index(cookie);

	return index < RWK_SHM_DIRECT_REGIONS && rwk_observe64(&rwk_shm_area_of(t, false)->valid[index]) == cookie;
}

/* The pieces of a chunk, with room for one entry more. */
struct chunk {
	struct iovec local[RWK_EXPOSE_IOV_MAX + 1], remote[RWK_EXPOSE_IOV_MAX + 1];
	unsigned locals, remotes;
	size_t length;
};

/* Bytes that have come, or negative errno. */
static ssize_t read_chunk(struct rwk_shm_transfers *t, struct rwk_op *op, struct chunk *c)
{
	uint64_t cookie = 0;
	ssize_t got;

	c->local[c->locals++] = (struct iovec){&cookie, sizeof(cookie)};
	c->remote[c->remotes++] = (struct iovec){
		(void *)(uintptr_t)(op->rkey.word[1] + offsetof(struct rwk_shm_region, cookie)), sizeof(cookie)};
	got = rwk_shm_vm_read(t, c->local, c->locals, c->remote, c->remotes);
	if (got < 0 && got != -EFAULT)
		return got;
	if (got != (ssize_t)(c->length + sizeof(cookie)))
		return valid(t, op->rkey.word[0]) ? -EFAULT : -EACCES;
	if (cookie != op->rkey.word[0])
		return -EACCES;
	t->port->counts.pulled += c->length;
	return (ssize_t)c->length;
}

/* Bytes that have gone, perhaps none, then it is tried again; or negative errno. */
static ssize_t write_chunk(struct rwk_shm_transfers *t, struct rwk_op *op, struct chunk *c)
{
	_Atomic uint64_t *writing = &rwk_shm_area_of(t, true)->writing.word;
	uint64_t cookie = op->rkey.word[0], guard = rwk_shm_guard_see(t);
	ssize_t put = -EACCES;

	rwk_publish64(writing, cookie);
	rwk_barrier_full();
	if (valid(t, cookie))
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
	return valid(t, cookie) ? -ECONNRESET : -EACCES;
}

/* Moves a chunk of the op: how many bytes that was, or what the op ends with. */
static ssize_t move(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	size_t left = op->length - op->at;
	bool write = op->type == RWK_OP_WRITE; /* the guard goes first, the cookie last */
	struct chunk c;
	ssize_t n;

	if (t->direct_denied || t->cma_denied)
		return -EOPNOTSUPP;
	n = rwk_shm_op_pieces(
		t, op, op->at, left < CHUNK ? left : CHUNK, c.local + write, &c.locals, c.remote + write, &c.remotes);
	if (n > 0) {
		c.length = (size_t)n;
		c.locals += write;
		c.remotes += write;
		n = write ? write_chunk(t, op, &c) : read_chunk(t, op, &c);
	}
	if (n < 0)
		return n == -ECONNRESET ? n : failed(t, (int)n);
	op->at += (size_t)n;
	return n;
}

int rwk_shm_direct_post(struct rwk_shm_transfers *t, struct rwk_op *op, const struct rwk_shm_key *key)
{
	ssize_t n;

	if (op->type == RWK_OP_WRITE && !key->writable)
		return -EACCES;
	op->at = 0;
	rwk_shm_read_of(op)->direct = true;
	if (rwk_list_empty(&t->direct)) {
		n = move(t, op);
		if (n < 0)
			return (int)n;
		if (op->at == op->length)
			return 1;
	}
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
		ssize_t n = move(t, op);

		did++;
		if (n >= 0 && op->at < op->length) {
			moved += n ? (size_t)n : CHUNK;
			continue;
		}
		moved += n > 0 ? (size_t)n : 0;
		rwk_list_remove(&op->link);
		op->done(op, n < 0 ? (int)n : 0);
	}
	return did;
}
