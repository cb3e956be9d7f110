/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long direct reads and writes, of which the target copies a part, whoever is stopped, killed, denied, conceals the
 * region or lies in between.
 */
#define _GNU_SOURCE
#include "direct_help.h"

#include "base/process.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* In one piece. */
static const struct plan write_and_read[] = {{true, 1, false}, {false, 1, false}};

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
	CHECK(tp_wait_deaf(ch, 3, 1));
	local[0] = (struct iovec){&word, 8};
	remote[0] = (struct iovec){(void *)(uintptr_t)theirs->guard.word, 8};
	local[1] = remote[1] = (struct iovec){shared_place, 64};
	theirs->claim[PLACE].word += 1 << 16;
	tp_say(ch, 4, 1);
	raise(SIGSTOP);
	moved = p->write ? process_vm_readv(tp_side(ch, false)->pid, local, 2, remote, 2, 0)
			 : process_vm_writev(tp_side(ch, false)->pid, local, 2, remote, 2, 0);
	tp_say(ch, 6, 1);
	CHECK(moved < 0 && tp_wait_deaf(ch, 2, 1));
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
	CHECK(tp_wait_deaf(ch, 4, 1));
	for (int i = 0; !rwk_process_is_stopped(peer) && i < 20000; i++)
		usleep(1000);
	if (p->stop)
		rwk_shm_transfer_stop(ch, -ECANCELED);
	CHECK((p->stop ? o.status : tp_finish(ch, &o, 20000)) == (p->stop ? -ECANCELED : 0) &&
		rwk_process_is_stopped(peer));
	CHECK(p->stop || is(shared_place, LONG, p->write ? 0x22 : 0x11));
	CHECK(rwk_shm_transfers_of(ch)->direct_pace[p->write].run.method < RWK_SHM_METHODS);
	memset(shared_place, 0x33, LONG); /* its memory is its own again */
	CHECK(!kill(peer, SIGCONT) && tp_wait_deaf(ch, 6, 1));
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
	CHECK(tp_wait_deaf(ch, 3, 1));
	while (!helped(ch) && rwk_shm_peer_alive(ch))
		tp_progress(ch);
	rwk_shm_conceal(ch, &tp_side(ch, true)->key[0]);
	memset(shared_place, 0x44, LONG);
	for (int i = 0; i < 100; i++)
		tp_progress(ch); /* while the peer has chunks to take and does nothing */
	CHECK(is(shared_place, LONG, 0x44));
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
	CHECK(tp_wait_deaf(ch, 4, 1));
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
		CHECK(tp_wait_deaf(ch, 6, 1));
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
	CHECK(tp_wait_deaf(ch, 3, 1));
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
	CHECK(tp_wait_deaf(ch, 4, 1));
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
	CHECK(tp_wait_deaf(ch, 3, 1));
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
	CHECK(tp_wait_deaf(ch, 6, 1) && is(shared_place, LONG, 0x11));
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
		cmocka_unit_test(stopped),
		cmocka_unit_test(concealed),
		cmocka_unit_test(denied),
		cmocka_unit_test(killed),
		cmocka_unit_test(lies),
	};

	rwk_param_load();
	return cmocka_run_group_tests_name("shm/direct_help_fails", tests, NULL, NULL);
}
