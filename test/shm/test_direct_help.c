/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long direct reads and writes, of which the target copies a part: both shares make up the whole, whoever is stopped,
 * killed, denied or lies in between. A post copies 1 MB at most, so while its caller makes no more progress a longer
 * one stays open for the other side.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"
#include "shm/transfer_claim.h"

#include "bench/common/cpu.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LONG = (8 << 20) + 12345, MARGIN = 64, PLACE = RWK_SHM_CLAIM_DIRECT };

static unsigned char shared_place[LONG]; /* at the same address in every process here */

struct plan {
	bool write;
	unsigned pieces;
	bool stop; /* the channel, rather than to wait */
};

/* In one piece. */
static const struct plan write_and_read[] = {{true, 1, false}, {false, 1, false}};

static bool is(const unsigned char *p, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != value)
			return false;
	}
	return true;
}

/* Waits for a word without making progress. */
static bool deaf_wait(struct rwk_shm_channel *ch, unsigned word, uint64_t value)
{
	for (uint64_t end = rwk_clock_now() + 20000000000u; tp_heard(ch, word) < value && rwk_clock_now() < end;)
		sched_yield();
	return tp_heard(ch, word) >= value;
}

static bool is_stopped(pid_t pid)
{
	char path[64], text[512], *state;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	state = strrchr(text, ')');
	return state && state[2] == 'T';
}

static int begin(struct rwk_shm_channel *ch, struct tp_op *o, const struct plan *p, struct iovec *iov)
{
	tp_force(ch, RWK_SHM_BOTH);
	return (p->write ? tp_write : tp_read)(ch, o, &tp_side(ch, false)->key[0], 0, iov, 1, iov->iov_len);
}

static uint64_t helped(struct rwk_shm_channel *ch)
{
	return tp_counts(ch)->pushed + tp_counts(ch)->fetched;
}

/*
 * Shares.
 */

static const size_t sizes[] = {32769, 65536, 65537, 300001, 1 << 20, LONG};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Word 6: bytes that it has copied. */
static int helper(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	unsigned char *buf = malloc(LONG + 2 * MARGIN);
	struct iovec iov[RWK_EXPOSE_IOV_MAX];

	CHECK(buf);
	memset(buf, 0xee, LONG + 2 * MARGIN);
	for (size_t k = 0, at = 0; k < p->pieces; k++) {
		size_t end = (size_t)LONG * (k + 1) / p->pieces;

		iov[k] = (struct iovec){buf + MARGIN + at, end - at};
		at = end;
	}
	CHECK(!rwk_shm_expose(ch, iov, p->pieces, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	for (unsigned i = 0; i < SIZES; i++) {
		memset(buf + MARGIN, 0xee, LONG);
		if (!p->write)
			tp_fill(buf + MARGIN, sizes[i], i);
		tp_say(ch, 1, i + 1);
		while (tp_heard(ch, 3) < i + 1 && rwk_shm_peer_alive(ch)) {
			tp_progress(ch);
			tp_say(ch, 6, helped(ch));
		}
		tp_progress(ch); /* else what was done without it would stay unseen, and the next one not asked for */
		CHECK(tp_same(buf + MARGIN, sizes[i], 0, i) && is(buf, MARGIN, 0xee));
		CHECK(is(buf + MARGIN + sizes[i], LONG + MARGIN - sizes[i], 0xee));
	}
	free(buf);
	return 0;
}

static int user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	struct rwk_shm_transfer_counts *mine = tp_counts(ch);
	unsigned char *buf = malloc(LONG + 2 * MARGIN);

	CHECK(buf);
	for (unsigned i = 0; i < SIZES; i++) {
		struct iovec iov = {buf + MARGIN, sizes[i]};
		uint64_t before = tp_heard(ch, 6), alone = mine->written + mine->pulled, shared;
		struct tp_op o;

		memset(buf, 0xdd, LONG + 2 * MARGIN);
		CHECK(tp_wait(ch, 1, i + 1));
		if (p->write)
			tp_fill(iov.iov_base, sizes[i], i);
		CHECK(!begin(ch, &o, p, &iov));
		if (sizes[i] == LONG)
			CHECK(o.status == 1 && deaf_wait(ch, 6, before + 1));
		CHECK(tp_finish(ch, &o, 20000) == 0);
		CHECK(tp_same(iov.iov_base, sizes[i], 0, i) && is(buf, MARGIN, 0xdd));
		CHECK(is(buf + MARGIN + sizes[i], MARGIN, 0xdd));
		shared = sizes[i] - (mine->written + mine->pulled - alone);
		CHECK(deaf_wait(ch, 6, before + shared) && tp_heard(ch, 6) == before + shared);
		tp_say(ch, 3, i + 1);
	}
	CHECK(p->write ? !mine->pulled : !mine->written);
	CHECK(!tp_protocol_error(ch));
	free(buf);
	return 0;
}

/* Each byte is copied once, by one of the two, and of a long one both have copied some. */
static void shared_out(void **state)
{
	static const struct plan plans[] = {{true, 1, false}, {false, 1, false}, {true, 3, false}, {false, 3, false}};

	(void)state;
	for (int i = 0; i < 4; i++)
		tp_run(helper, user, &plans[i]);
}

/*
 * Several at a time.
 */

enum { FEW = 6, BAD = 3, SOME = 64 << 10, ROUNDS = 5000 };

/*
 * Word 7: its processor, and one more. On a busy machine two processes may well share one for as long as they live:
 * then who helps comes too late each time.
 */
static int window_helper(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[FEW * SOME];
	struct iovec iov = {buf, sizeof(buf)};

	(void)arg;
	tp_say(ch, 7, (uint64_t)bench_bind_to_cpu(0) + 1);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_heard(ch, 2) && rwk_shm_peer_alive(ch)) {
		tp_progress(ch);
		tp_say(ch, 6, helped(ch));
	}
	return 0;
}

/* Posts them all, and waits: 0, or a line. Of one, a page cannot be had if there is a `hole`: that one fails alone. */
static int one_window(struct rwk_shm_channel *ch, bool write, unsigned char *buf, unsigned char *hole)
{
	static struct iovec iov[FEW];
	struct tp_op o[FEW];

	CHECK(!hole || !mprotect(hole, 4096, PROT_NONE));
	for (int i = 0; i < FEW; i++) {
		int rc;

		iov[i] = (struct iovec){buf + (size_t)i * SOME, SOME};
		rc = (write ? tp_write : tp_read)(
			ch, &o[i], &tp_side(ch, false)->key[0], (uint64_t)i * SOME, &iov[i], 1, SOME);
		o[i].status = rc ? rc : o[i].status;
	}
	for (int i = 0; i < FEW; i++)
		CHECK(tp_finish(ch, &o[i], 20000) == (hole && i == BAD ? -EFAULT : 0));
	CHECK(!hole || !mprotect(hole, 4096, PROT_READ | PROT_WRITE));
	return 0;
}

static bool window_same(const unsigned char *buf, unsigned seed, bool but_one)
{
	for (int i = 0; i < FEW; i++) {
		if ((!but_one || i != BAD) && !tp_same(buf + (size_t)i * SOME, SOME, (uint64_t)i * SOME, seed))
			return false;
	}
	return true;
}

static int window_user(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = mmap(NULL, FEW * SOME, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t front = rwk_shm_chunk_at(SOME, 0, 1), enough = FEW * front * 8;
	int cpu = bench_bind_to_cpu(1);
	bool apart;

	(void)arg;
	CHECK(buf != MAP_FAILED && tp_wait(ch, 1, 1));
	apart = cpu >= 0 && tp_heard(ch, 7) && tp_heard(ch, 7) != (uint64_t)cpu + 1;
	for (unsigned i = 0; i < 30 || (apart && i < ROUNDS && tp_heard(ch, 6) < enough); i++) {
		unsigned char *bad = buf + BAD * SOME, *hole = i % 3 == 0 ? NULL : bad + (i % 3 == 1 ? 0 : front);
		int rc;

		tp_fill(buf, FEW * SOME, i);
		tp_force(ch, RWK_SHM_BOTH);
		rc = one_window(ch, true, buf, hole);
		CHECK(!rc);
		memset(buf, 0, FEW * SOME);
		rc = one_window(ch, false, buf, i % 6 < 3 ? NULL : hole);
		CHECK(!rc && window_same(buf, i, hole));
	}
	CHECK(!apart || tp_heard(ch, 6) >= enough);
	CHECK(!tp_protocol_error(ch));
	munmap(buf, FEW * SOME);
	tp_say(ch, 2, 1);
	return 0;
}

/* Each byte of each comes where it belongs, whoever copies it; one that cannot be had fails alone. */
static void several_at_once(void **state)
{
	(void)state;
	tp_run(window_helper, window_user, NULL);
}

/* The first's own half is done, and its helper slow; behind it waits one that cannot be had. */
struct innocent {
	bool write;
	bool concealed; /* the region by then, of two pieces; else the other's memory is not there */
};

enum { FIRST = 8 << 20 };

/* By hand: it has claimed its half of the first, as the user says, and ends it when it hears the id in word 4. */
static int slow_helper(struct rwk_shm_channel *ch, const void *arg)
{
	const struct innocent *in = arg;
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true);
	struct rwk_rkey *key = &tp_side(ch, true)->key[0];
	struct iovec iov[2] = {{shared_place, in->concealed ? SOME : FIRST}, {shared_place + SOME, FIRST - SOME}};

	CHECK(!rwk_shm_expose(ch, iov, 1u + in->concealed, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, key));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 2, 1));
	if (in->concealed)
		rwk_shm_conceal(ch, key);
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 4, 1));
	mine->pushed[PLACE].word =
		rwk_shm_claim_pack((uint32_t)tp_heard(ch, 4), 0, (uint32_t)rwk_shm_chunks_to_help(FIRST));
	tp_say(ch, 5, 1);
	CHECK(deaf_wait(ch, 6, 1));
	return 0;
}

static int innocent_user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct innocent *in = arg;
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	unsigned char *none = mmap(NULL, SOME, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec good = {shared_place, FIRST}, bad = {none, SOME};
	_Atomic uint64_t *claim = &((struct rwk_shm_area *)rwk_shm_transfer_area(ch, true))->claim[PLACE].word;
	struct tp_op first, other;

	CHECK(none != MAP_FAILED && tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	CHECK(!(in->write ? tp_write : tp_read)(ch, &first, key, 0, &good, 1, FIRST) && first.status == 1);
	*claim += (uint64_t)rwk_shm_chunks_to_help(FIRST) << 16;
	for (int i = 0; i < 20; i++)
		tp_progress(ch);
	tp_say(ch, 2, 1);
	CHECK(deaf_wait(ch, 3, 1));
	CHECK(!(in->write ? tp_write : tp_read)(ch, &other, key, 0, &bad, 1, SOME) && other.status == 1);
	for (int i = 0; i < 20; i++)
		tp_progress(ch);
	tp_say(ch, 4, rwk_shm_claim_unpack(*claim).id);
	CHECK(deaf_wait(ch, 5, 1));
	CHECK(tp_finish(ch, &first, 20000) == 0);
	CHECK(tp_finish(ch, &other, 20000) == (in->concealed ? -EACCES : -EFAULT));
	CHECK(!tp_protocol_error(ch));
	munmap(none, SOME);
	tp_say(ch, 6, 1);
	return 0;
}

/* One that waits for its helper does not end with the error of the one behind it. */
static void behind_an_innocent(void **state)
{
	static const struct innocent cases[] = {{true, false}, {false, false}, {true, true}, {false, true}};

	(void)state;
	for (int i = 0; i < 4; i++)
		tp_run(slow_helper, innocent_user, &cases[i]);
}

/* Was the peer asked to help when a write of that length was posted? Negative: it has failed. */
static int asks_for(struct rwk_shm_channel *ch, struct tp_op *o, size_t length)
{
	static unsigned char buf[SOME];
	static struct iovec iov = {buf, SOME};
	uint64_t before = tp_side(ch, true)->posted;

	tp_force(ch, RWK_SHM_BOTH);
	if (tp_write(ch, o, &tp_side(ch, false)->key[0], 0, &iov, 1, length))
		return -1;
	return tp_side(ch, true)->posted != before;
}

/* What would be too short to be shared if it came alone is shared behind others. */
static int short_window_user(struct rwk_shm_channel *ch, const void *arg)
{
	const uint64_t end = rwk_clock_now() + 20000000000u;
	struct tp_op o;
	int shared = 0;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	while (shared < 3 && rwk_clock_now() < end) {
		int asked;

		tp_behind(ch, false);
		CHECK(asks_for(ch, &o, RWK_SHM_BOTH_LONE) == 0 && o.status == 0);
		tp_behind(ch, true);
		CHECK(asks_for(ch, &o, RWK_SHM_BOTH_LEAST) == 0 && o.status == 0);
		asked = asks_for(ch, &o, RWK_SHM_BOTH_LONE);
		CHECK(asked >= 0 && tp_finish(ch, &o, 20000) == 0);
		shared += asked; /* not each time: the peer may not have seen what it was asked last */
	}
	CHECK(shared == 3);
	tp_say(ch, 2, 1);
	return 0;
}

static void short_ones_behind_another(void **state)
{
	(void)state;
	tp_run(window_helper, short_window_user, NULL);
}

/*
 * Who is asked.
 */

static int deaf_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec iov = {shared_place, 65536};

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 3, 1));
	CHECK(is(shared_place, 65536, 3));
	tp_progress(ch);
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 3, 2));
	tp_progress(ch);
	tp_say(ch, 15, 1);
	tp_say(ch, 3, 2);
	CHECK(deaf_wait(ch, 2, 1));
	CHECK(is(shared_place, 65536, 5));
	return 0;
}

static int write_some(struct rwk_shm_channel *ch, unsigned char value)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;

	memset(buf, value, sizeof(buf));
	return begin(ch, &o, &(struct plan){.write = true}, &iov) || o.status; /* at once */
}

static int asking_user(struct rwk_shm_channel *ch, const void *arg)
{
	_Atomic uint64_t *posted = &tp_side(ch, true)->posted;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	for (unsigned char i = 1; i <= 3; i++)
		CHECK(!write_some(ch, i) && *posted == 1); /* it has not seen the first ask */
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 3, 1));
	CHECK(!write_some(ch, 4) && *posted == 2);
	tp_say(ch, 3, 2);
	CHECK(deaf_wait(ch, 3, 2));
	CHECK(!write_some(ch, 5) && *posted == 2); /* it sleeps */
	CHECK(tp_counts(ch)->written == 5 * 65536);
	tp_say(ch, 2, 1);
	return 0;
}

/* One that computes is asked once and delays nobody; one that sleeps is not asked. */
static void computing(void **state)
{
	(void)state;
	tp_run(deaf_exposer, asking_user, NULL);
}

/*
 * Stopped.
 */

/* By hand: claims the first chunk, is stopped before it copies it, and does so when it goes on. */
static int stopped_helper(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	struct rwk_shm_area *theirs = rwk_shm_transfer_area(ch, false);
	struct iovec all = {shared_place, LONG}, local[2], remote[2];
	uint64_t word;
	ssize_t moved;

	memset(shared_place, 0x11, LONG);
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 3, 1));
	local[0] = (struct iovec){&word, 8};
	remote[0] = (struct iovec){(void *)(uintptr_t)theirs->guard.word, 8};
	local[1] = remote[1] = (struct iovec){shared_place, 64};
	theirs->claim[PLACE].word += 1 << 16;
	tp_say(ch, 4, 1);
	raise(SIGSTOP);
	moved = p->write ? process_vm_readv(tp_side(ch, false)->pid, local, 2, remote, 2, 0)
			 : process_vm_writev(tp_side(ch, false)->pid, local, 2, remote, 2, 0);
	tp_say(ch, 6, 1);
	CHECK(moved < 0 && deaf_wait(ch, 2, 1));
	CHECK(p->stop || is(shared_place, LONG, p->write ? 0x22 : 0x11));
	return 0;
}

static int undelayed_user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	struct iovec iov = {shared_place, LONG};
	pid_t peer = tp_side(ch, false)->pid;
	struct tp_op o;

	CHECK(tp_wait(ch, 1, 1));
	memset(shared_place, 0x22, LONG);
	CHECK(!begin(ch, &o, p, &iov) && o.status == 1);
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 4, 1));
	for (int i = 0; !is_stopped(peer) && i < 5000; i++)
		usleep(1000);
	if (p->stop)
		rwk_shm_transfer_stop(ch, -ECANCELED);
	CHECK((p->stop ? o.status : tp_finish(ch, &o, 20000)) == (p->stop ? -ECANCELED : 0) && is_stopped(peer));
	CHECK(p->stop || is(shared_place, LONG, p->write ? 0x22 : 0x11));
	CHECK(rwk_shm_transfers_of(ch)->direct_pace[p->write].run.method < RWK_SHM_METHODS);
	memset(shared_place, 0x33, LONG); /* its memory is its own again */
	CHECK(!kill(peer, SIGCONT) && deaf_wait(ch, 6, 1));
	CHECK(is(shared_place, LONG, 0x33));
	tp_say(ch, 2, 1);
	return 0;
}

/* A helper that is stopped with a chunk claimed delays nobody; when it goes on its copy is kept out. */
static void stopped(void **state)
{
	static const struct plan plans[] = {{true, 1, false}, {false, 1, false}, {true, 1, true}, {false, 1, true}};

	(void)state;
	for (int i = 0; i < 4; i++)
		tp_run(stopped_helper, undelayed_user, &plans[i]);
}

/*
 * Concealed.
 */

static int concealing_helper(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec all = {shared_place, LONG};

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 3, 1));
	while (!helped(ch) && rwk_shm_peer_alive(ch))
		tp_progress(ch);
	rwk_shm_conceal(ch, &tp_side(ch, true)->key[0]);
	memset(shared_place, 0x44, LONG);
	tp_say(ch, 4, 1);
	CHECK(tp_wait(ch, 2, 1));
	CHECK(is(shared_place, LONG, 0x44));
	return 0;
}

static int refused_user(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec iov = {shared_place, LONG};
	struct tp_op o;

	CHECK(tp_wait(ch, 1, 1));
	CHECK(!begin(ch, &o, arg, &iov) && o.status == 1);
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 4, 1));
	CHECK(tp_finish(ch, &o, 20000) == -EACCES && !tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	return 0;
}

/* A region that goes while both copy: the op fails, and its memory does not change any more. */
static void concealed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		tp_run(concealing_helper, refused_user, &write_and_read[i]);
}

/*
 * Denied.
 */

static int denied_helper(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec all = {shared_place, LONG};

	(void)arg;
	CHECK(!tp_deny_copies(EPERM));
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_heard(ch, 2) && rwk_shm_peer_alive(ch)) {
		tp_progress(ch);
		tp_say(ch, 6, tp_counts(ch)->denials);
	}
	CHECK(!helped(ch) && tp_counts(ch)->denials == 1);
	return 0;
}

static int user_of_denied(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec iov = {shared_place, LONG};
	struct tp_op o;

	CHECK(tp_wait(ch, 1, 1));
	for (int i = 0; i < 2; i++) {
		CHECK(!begin(ch, &o, arg, &iov) && o.status == 1);
		CHECK(deaf_wait(ch, 6, 1));
		CHECK(tp_finish(ch, &o, 20000) == 0);
	}
	CHECK(!begin(ch, &o, arg, &iov) && o.status == 1);
	CHECK(!tp_deny_copies(EPERM));
	CHECK(tp_finish(ch, &o, 20000) == -EOPNOTSUPP);
	tp_say(ch, 2, 1);
	return 0;
}

/* A helper that may not copy leaves all to the other one; who may not is told so in the middle. */
static void denied(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		tp_run(denied_helper, user_of_denied, &write_and_read[i]);
}

/*
 * Killed.
 */

/* By hand: claims a chunk, and ends. */
static int mortal_helper(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec all = {shared_place, LONG};

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 3, 1));
	((struct rwk_shm_area *)rwk_shm_transfer_area(ch, false))->claim[PLACE].word += 1 << 16;
	tp_say(ch, 4, 1);
	raise(SIGKILL);
	return __LINE__;
}

static int surviving_user(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec iov = {shared_place, LONG};
	struct tp_op o;

	CHECK(tp_wait(ch, 1, 1));
	CHECK(!begin(ch, &o, arg, &iov) && o.status == 1);
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 4, 1));
	CHECK(tp_finish(ch, &o, 20000) == -ECONNRESET);
	return 0;
}

/* Ends in the middle of its own op. */
static int mortal_user(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec iov = {shared_place, LONG};
	struct tp_op o;

	CHECK(tp_wait(ch, 1, 1));
	CHECK(!begin(ch, &o, arg, &iov) && o.status == 1);
	tp_say(ch, 3, 1);
	raise(SIGKILL);
	return __LINE__;
}

static int surviving_helper(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec all = {shared_place, LONG};

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 3, 1));
	while (rwk_shm_peer_alive(ch))
		sched_yield();
	for (int i = 0; i < 100; i++)
		tp_progress(ch);
	CHECK(!helped(ch) && !tp_busy(ch));
	return 0;
}

/* Either side killed in the middle: the other one learns of it, or need not. */
static void killed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		tp_run_mortal(mortal_helper, surviving_user, &write_and_read[i]);
		tp_run_mortal(mortal_user, surviving_helper, &write_and_read[i]);
	}
}

/*
 * Lies.
 */

static int careful_helper(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[3][65536];
	struct iovec iov[4] = {{buf[0], 65536}, {buf[1], 65536}, {NULL, SIZE_MAX}, {buf[2], 65536}};
	struct tp_side *mine = tp_side(ch, true);

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &iov[0], 1, RWK_EXPOSE_READ, &mine->key[0]));
	CHECK(!rwk_shm_expose(ch, &iov[1], 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[1]));
	CHECK(!rwk_shm_expose(ch, &iov[2], 1, RWK_EXPOSE_READ, &mine->key[2]));
	CHECK(!rwk_shm_expose(ch, &iov[3], 1, RWK_EXPOSE_WRITE, &mine->key[3]));
	tp_say(ch, 5, (uintptr_t)buf[0]);
	tp_say(ch, 1, 1);
	while (!tp_heard(ch, 2) && rwk_shm_peer_alive(ch))
		tp_progress(ch);
	CHECK(is(&buf[0][0], sizeof(buf), 0) && !helped(ch));
	while (!tp_protocol_error(ch) && rwk_shm_peer_alive(ch))
		tp_progress(ch);
	CHECK(tp_protocol_error(ch));
	tp_say(ch, 6, 1);
	return 0;
}

/* Asks, all chunks being there to take, and waits for the answer: did it give up? */
static bool given_up(struct rwk_shm_channel *ch, enum rwk_shm_transfer_control_kind kind, struct rwk_shm_help_ask *ask)
{
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true), *theirs = rwk_shm_transfer_area(ch, false);
	struct rwk_shm_claim c = {0};

	ask->id++;
	ask->target = (uintptr_t)shared_place;
	ask->place = PLACE;
	mine->claim[PLACE].word = rwk_shm_claim_pack(ask->id, 0, 0);
	if (rwk_shm_tell(rwk_shm_transfers_of(ch), kind, ask, sizeof(*ask)))
		return false;
	for (uint64_t end = rwk_clock_now() + 20000000000u; rwk_clock_now() < end && !(c.id == ask->id && c.theirs);)
		c = rwk_shm_claim_unpack(theirs->pushed[PLACE].word);
	return c.id == ask->id && c.theirs && !c.mine;
}

static int lying_user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = tp_side(ch, false)->key;
	struct rwk_shm_help_ask ask = {.cookie = key[0].word[0], .length = 65536};

	(void)arg;
	memset(shared_place, 0x11, LONG);
	CHECK(tp_wait(ch, 1, 1) && !rwk_shm_guard_up(rwk_shm_transfers_of(ch)));
	ask.cookie = key[0].word[0];
	CHECK(given_up(ch, RWK_SHM_FETCH_ASK, &ask)); /* to be read only */
	ask.cookie = key[3].word[0];
	CHECK(given_up(ch, RWK_SHM_PUSH_ASK, &ask)); /* to be written only */
	ask.cookie = key[2].word[0];
	ask.offset = tp_heard(ch, 5);
	CHECK(given_up(ch, RWK_SHM_FETCH_ASK, &ask)); /* all memory, to be read only */
	ask.offset = 64; /* beyond its end */
	ask.cookie = key[1].word[0];
	CHECK(given_up(ch, RWK_SHM_FETCH_ASK, &ask) && given_up(ch, RWK_SHM_PUSH_ASK, &ask));
	ask.offset = UINT64_MAX;
	CHECK(given_up(ch, RWK_SHM_FETCH_ASK, &ask) && given_up(ch, RWK_SHM_PUSH_ASK, &ask));
	ask.offset = 0;
	ask.cookie ^= 1ull << 40; /* nobody's */
	CHECK(given_up(ch, RWK_SHM_FETCH_ASK, &ask) && given_up(ch, RWK_SHM_PUSH_ASK, &ask));
	ask.cookie = key[2].word[0]; /* its page 0 is not mapped */
	CHECK(given_up(ch, RWK_SHM_PUSH_ASK, &ask));
	tp_say(ch, 2, 1);
	ask.place = RWK_SHM_CLAIMS;
	CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_FETCH_ASK, &ask, sizeof(ask)));
	CHECK(deaf_wait(ch, 6, 1) && is(shared_place, LONG, 0x11));
	return 0;
}

/* What the peer asks for is looked at as if nobody had: nothing is written that may not be, nothing read beyond. */
static void lies(void **state)
{
	(void)state;
	tp_run(careful_helper, lying_user, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_out),
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(behind_an_innocent),
		cmocka_unit_test(short_ones_behind_another),
		cmocka_unit_test(computing),
		cmocka_unit_test(stopped),
		cmocka_unit_test(concealed),
		cmocka_unit_test(denied),
		cmocka_unit_test(killed),
		cmocka_unit_test(lies),
	};

	rwk_param_load();
	return cmocka_run_group_tests_name("shm/direct_help", tests, NULL, NULL);
}
