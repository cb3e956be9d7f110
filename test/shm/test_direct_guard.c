/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is given back does not change any more, and memory of a stranger never does: writers in a tight loop that
 * are concealed from, stopped, killed, or write to a process number that belongs to somebody else by now.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"

#include "base/call_if.h"
#include "base/process.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIME_MOST 8000000000u /* ns that a race takes where cores are short */

enum { MOST = 256 << 10, KEYS = 256 };

static unsigned char shared_place[MOST]; /* at the same address in every process here */

static int write_to(struct rwk_shm_channel *ch, const struct rwk_rkey *key, const unsigned char *from, size_t length)
{
	struct iovec iov = {(void *)from, length};
	struct tp_op o;
	int rc = tp_write(ch, &o, key, 0, &iov, 1, length);

	return rc ? rc : tp_finish(ch, &o, 10000);
}

static bool is(const unsigned char *p, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != value)
			return false;
	}
	return true;
}

static void spin(uint64_t ns)
{
	for (uint64_t end = rwk_clock_now() + ns; rwk_clock_now() < end;)
		rwk_cpu_relax();
}

/* Writes into the region of each round until it is told that it is gone. Word 5 of the exposer is the round. */
static int tireless(struct rwk_shm_channel *ch, const void *arg)
{
	size_t length = *(const size_t *)arg;
	unsigned char *buf = malloc(length);
	uint64_t round;

	CHECK(buf && tp_wait(ch, 1, 1));
	memset(buf, 0x11, length);
	while (!tp_heard(ch, 2)) {
		int rc;

		round = tp_heard(ch, 5);
		rc = write_to(ch, &tp_side(ch, false)->key[round % KEYS], buf, length);
		tp_say(ch, 6, round);
		if (rc == -EACCES || rc == -ECONNRESET)
			sched_yield();
		else if (rc)
			return __LINE__;
	}
	free(buf);
	return 0;
}

/* Exposes the buffer for the next round. */
static int next_round(struct rwk_shm_channel *ch, unsigned char *buf, size_t length, uint64_t round)
{
	struct iovec iov = {buf, length};

	memset(buf, 0, length);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[round % KEYS]));
	tp_say(ch, 5, round);
	tp_say(ch, 1, 1);
	return 0;
}

/* Waits until the peer has written into it at least once, and a random while. */
static bool written(struct rwk_shm_channel *ch, const volatile unsigned char *buf, size_t length)
{
	uint64_t end = rwk_clock_now() + 10000000000u;

	for (unsigned n = 0; !buf[length - 1]; n++) {
		if (n % 256 == 255)
			sched_yield();
		if (rwk_clock_now() > end || !rwk_shm_peer_alive(ch))
			return false;
	}
	spin((uint64_t)rand() % 20000);
	return true;
}

/* Fills what has been given back, and sees that it stays so for a while. */
static bool stays(unsigned char *buf, size_t length)
{
	memset(buf, 0xee, length);
	spin(20000);
	sched_yield();
	return is(buf, length, 0xee);
}

struct race {
	size_t length;
	unsigned rounds;
};

static int concealer(struct rwk_shm_channel *ch, const void *arg)
{
	const struct race *race = arg;
	unsigned char *buf = malloc(race->length);
	uint64_t end = rwk_clock_now() + TIME_MOST;

	CHECK(buf);
	for (uint64_t round = 1; round <= race->rounds && rwk_clock_now() < end; round++) {
		int rc = next_round(ch, buf, race->length, round);

		CHECK(!rc);
		CHECK(written(ch, buf, race->length));
		rwk_shm_conceal(ch, &tp_side(ch, true)->key[round % KEYS]);
		CHECK(stays(buf, race->length));
	}
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* Concealed while the peer writes as fast as it can: after conceal not a byte changes. */
static void concealed_in_a_race(void **state)
{
	static const struct race races[] = {{8, 3000}, {65536, 2000}, {MOST, 1000}};

	(void)state;
	for (size_t i = 0; i < sizeof(races) / sizeof(races[0]); i++)
		tp_run(concealer, tireless, &races[i]);
}

static int closer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(MOST);
	int rc = next_round(ch, buf, MOST, 1);

	(void)arg;
	CHECK(buf && !rc);
	CHECK(written(ch, buf, MOST));
	rwk_shm_transfer_stop(ch, -ECANCELED);
	CHECK(stays(buf, MOST));
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* The same where the exposer's channel ends. */
static void closed_in_a_race(void **state)
{
	static const struct race race = {MOST, 1};

	(void)state;
	for (int i = 0; i < 50; i++)
		tp_run(closer, tireless, &race);
}

/*
 * Stopped.
 */

static int stopper(struct rwk_shm_channel *ch, const void *arg)
{
	const struct race *race = arg;
	unsigned char *buf = malloc(race->length);
	uint64_t end = rwk_clock_now() + TIME_MOST;
	pid_t peer;

	CHECK(buf);
	for (uint64_t round = 1; round <= race->rounds && rwk_clock_now() < end; round += 2) {
		int rc = next_round(ch, buf, race->length, round);

		CHECK(!rc);
		CHECK(written(ch, buf, race->length));
		peer = tp_side(ch, false)->pid;
		CHECK(!kill(peer, SIGSTOP));
		rwk_shm_conceal(ch, &tp_side(ch, true)->key[round % KEYS]);
		memset(buf, 0xee, race->length);
		CHECK(!kill(peer, SIGCONT));
		/* it goes on, and has been told */
		rc = next_round(ch, shared_place, 8, round + 1);
		CHECK(!rc);
		CHECK(written(ch, shared_place, 8) && is(buf, race->length, 0xee));
		rwk_shm_conceal(ch, &tp_side(ch, true)->key[(round + 1) % KEYS]);
	}
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* Writes MOST bytes or what there is room for. */
static int fitting(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(MOST);

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	memset(buf, 0x11, MOST);
	while (!tp_heard(ch, 2)) {
		struct rwk_rkey key = tp_side(ch, false)->key[tp_heard(ch, 5) % KEYS];
		int rc = write_to(ch, &key, buf, MOST);

		if (rc == -EINVAL)
			rc = write_to(ch, &key, buf, 8);
		CHECK(!rc || rc == -EACCES);
		if (rc)
			sched_yield();
	}
	free(buf);
	return 0;
}

/* The writer is stopped at any moment, and concealed from meanwhile: it writes no more when it goes on. */
static void stopped_in_a_race(void **state)
{
	static const struct race race = {MOST, 100};

	(void)state;
	tp_run(stopper, fitting, &race);
}

/* The peer says in word 4 that it stops itself now: waits until it has. A SIGCONT before that would be lost. */
static bool peer_stops(struct rwk_shm_channel *ch)
{
	bool said = tp_wait_deaf(ch, 4, 1);
	pid_t peer = tp_side(ch, false)->pid;

	for (int i = 0; said && i < 10000 && !rwk_process_is_stopped(peer); i++)
		usleep(1000);
	return said && rwk_process_is_stopped(peer);
}

/* A writer, by hand: stops between having looked and the call, and does that call when it goes on. */
static int stopped_at_the_worst(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char bytes[64];
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true), *theirs = rwk_shm_transfer_area(ch, false);
	const struct rwk_rkey *key = tp_side(ch, false)->key;
	struct iovec local[2] = {{bytes, 8}, {bytes, sizeof(bytes)}}, remote[2] = {{NULL, 8}, {NULL, sizeof(bytes)}};
	bool close = *(const bool *)arg;
	ssize_t put;

	memset(bytes, 0x11, sizeof(bytes));
	CHECK(tp_wait(ch, 1, 1));
	remote[0].iov_base = (void *)(uintptr_t)theirs->guard.word;
	remote[1].iov_base = (void *)(uintptr_t)key[0].word[2];
	CHECK(process_vm_writev(tp_side(ch, false)->pid, local, 2, remote, 2, 0) == 72); /* a good call, so far */
	mine->writing.word = key[0].word[0];
	atomic_thread_fence(memory_order_seq_cst);
	CHECK(theirs->valid[rwk_shm_cookie_index(key[0].word[0])] == key[0].word[0]);
	tp_say(ch, 4, 1);
	raise(SIGSTOP);
	put = process_vm_writev(tp_side(ch, false)->pid, local, 2, remote, 2, 0);
	mine->writing.word = 0;
	tp_say(ch, 6, put < 0 ? 1 : 2);
	while (close)
		pause();
	/* what is still exposed is written as ever, behind the new guard */
	CHECK(write_to(ch, &key[1], bytes, sizeof(bytes)) == 0);
	CHECK(write_to(ch, &key[0], bytes, sizeof(bytes)) == -EACCES);
	tp_say(ch, 7, 1);
	CHECK(tp_wait(ch, 2, 1));
	return put < 0 ? 0 : __LINE__;
}

static int patient_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[2][64];
	struct iovec iov[2] = {{buf[0], 64}, {buf[1], 64}};
	bool close = *(const bool *)arg;
	pid_t peer = tp_side(ch, false)->pid;

	for (int i = 0; i < 2; i++)
		CHECK(!rwk_shm_expose(ch, &iov[i], 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[i]));
	tp_say(ch, 1, 1);
	CHECK(peer_stops(ch));
	if (close) { /* a process that ends in the meantime */
		rwk_shm_transfer_stop(ch, -ECANCELED);
		memset(buf, 0xee, sizeof(buf));
		CHECK(!kill(peer, SIGCONT));
		tp_wait(ch, 6, 1);
		CHECK(tp_heard(ch, 6) == 1 && is(buf[0], 64, 0xee));
		kill(peer, SIGKILL);
		return 0;
	}
	rwk_shm_conceal(ch, &tp_side(ch, true)->key[0]);
	memset(buf, 0xee, sizeof(buf));
	CHECK(!kill(peer, SIGCONT));
	CHECK(tp_wait(ch, 7, 1));
	CHECK(tp_heard(ch, 6) == 1 && is(buf[0], 64, 0xee) && is(buf[1], 64, 0x11));
	tp_say(ch, 2, 1);
	return 0;
}

/* Stopped at the worst moment: conceal comes back, and the write that comes late does not land. */
static void stopped_before_the_call(void **state)
{
	bool close = false;

	(void)state;
	tp_run(patient_exposer, stopped_at_the_worst, &close);
}

static void stopped_before_the_end(void **state)
{
	bool close = true;

	(void)state;
	tp_run_mortal(stopped_at_the_worst, patient_exposer, &close);
}

/* The exposer of a read that both copy, by hand: claims a chunk and stops, and pushes it when it goes on. */
static int stopped_with_a_claim(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_shm_area *theirs = rwk_shm_transfer_area(ch, false);
	struct iovec from = {shared_place, MOST}, local[2] = {{shared_place, 8}, {shared_place, 64}}, remote[2];
	ssize_t put;

	(void)arg;
	memset(shared_place, 0x11, MOST);
	CHECK(!rwk_shm_expose(ch, &from, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait_deaf(ch, 3, 1));
	remote[0] = (struct iovec){(void *)(uintptr_t)theirs->guard.word, 8};
	remote[1] = (struct iovec){shared_place, 64};
	theirs->claim[0].word = 1 << 16;
	tp_say(ch, 4, 1);
	raise(SIGSTOP);
	put = process_vm_writev(tp_side(ch, false)->pid, local, 2, remote, 2, 0);
	tp_say(ch, 6, put < 0 ? 1 : 2);
	CHECK(tp_wait(ch, 2, 1));
	return put < 0 ? 0 : __LINE__;
}

static int leaving_reader(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec iov = {shared_place, MOST};
	struct tp_op o;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, MOST));
	CHECK(rwk_shm_both_ask(rwk_shm_transfers_of(ch)));
	tp_say(ch, 3, 1);
	CHECK(peer_stops(ch));
	rwk_shm_transfer_stop(ch, -ECANCELED);
	CHECK(o.status == -ECANCELED);
	memset(shared_place, 0xee, MOST);
	CHECK(!kill(tp_side(ch, false)->pid, SIGCONT) && tp_wait_deaf(ch, 6, 1));
	CHECK(tp_heard(ch, 6) == 1 && is(shared_place, MOST, 0xee));
	tp_say(ch, 2, 1);
	return 0;
}

/* The same for a read that both copy: its channel ends while the exposer is stopped with a chunk claimed. */
static void stopped_before_the_push(void **state)
{
	(void)state;
	tp_run(stopped_with_a_claim, leaving_reader, NULL);
}

/*
 * Killed.
 */

static int mortal_writer(struct rwk_shm_channel *ch, const void *arg)
{
	static const size_t length = MOST;

	(void)arg;
	return tireless(ch, &length);
}

static int killer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(MOST);
	int rc = next_round(ch, buf, MOST, 1);

	(void)arg;
	CHECK(buf && !rc);
	CHECK(written(ch, buf, MOST));
	CHECK(!kill(tp_side(ch, false)->pid, SIGKILL));
	rwk_shm_conceal(ch, &tp_side(ch, true)->key[1]);
	CHECK(stays(buf, MOST));
	free(buf);
	return 0;
}

/* The writer is killed in the middle: conceal comes back, and nothing changes any more. */
static void writer_killed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		srand(i);
		tp_run_mortal(mortal_writer, killer, NULL);
	}
}

static int mortal_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(MOST);
	int rc = next_round(ch, buf, MOST, 1);

	(void)arg;
	CHECK(buf && !rc);
	pause();
	return 0;
}

static int killing_writer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned when = *(const unsigned *)arg;
	unsigned char *buf = malloc(16 << 20);
	int rc = 0;

	CHECK(buf && tp_wait(ch, 1, 1));
	memset(buf, 0x11, 16 << 20);
	for (unsigned i = 0; !rc && i < 2000000; i++) {
		if (i == when)
			CHECK(!kill(tp_side(ch, false)->pid, SIGKILL));
		rc = write_to(ch, &tp_side(ch, false)->key[1], buf, MOST);
	}
	/* the second is what there is to say while it is being taken down: it goes on by messages, which will fail */
	CHECK(rc == -ECONNRESET || rc == -EOPNOTSUPP);
	free(buf);
	return 0;
}

/* The exposer is killed: an error soon, never a hang. */
static void exposer_killed(void **state)
{
	(void)state;
	for (unsigned when = 0; when < 40; when++)
		tp_run_mortal(mortal_exposer, killing_writer, &when);
}

/*
 * Strangers.
 */

static int common_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	pid_t child;
	int status;

	(void)arg;
	CHECK(!next_round(ch, shared_place, 64, 1));
	child = fork();
	if (!child) {
		while (!tp_heard(ch, 3) && getppid() != 1)
			usleep(1000);
		_exit(is(shared_place, 64, 0) ? 0 : 1);
	}
	tp_say(ch, 6, (uint64_t)child);
	CHECK(tp_wait(ch, 3, 1));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(is(shared_place, 64, 0x11));
	return 0;
}

static int misled_writer(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[1];
	unsigned char bytes[64];
	pid_t peer;

	(void)arg;
	memset(bytes, 0x11, sizeof(bytes));
	CHECK(tp_wait(ch, 6, 1));
	peer = tp_side(ch, false)->pid;
	CHECK(key->word[2] == (uint64_t)(uintptr_t)shared_place);
	tp_side(ch, false)->pid = getpid(); /* the number belongs to somebody else now */
	CHECK(write_to(ch, key, bytes, sizeof(bytes)) == -ECONNRESET);
	CHECK(is(shared_place, 64, 0));
	tp_side(ch, false)->pid =
		(pid_t)tp_heard(ch, 6); /* or to a child of the exposer's, all of whose memory it has */
	CHECK(write_to(ch, key, bytes, sizeof(bytes)) == -ECONNRESET);
	tp_side(ch, false)->pid = peer;
	CHECK(write_to(ch, key, bytes, sizeof(bytes)) == 0);
	tp_say(ch, 3, 1);
	return 0;
}

/* Another process has the number by now, with memory at the very same address: it is not touched. */
static void stranger_with_the_same_pid(void **state)
{
	(void)state;
	tp_run(common_exposer, misled_writer, NULL);
}

static int changing_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec all = {NULL, SIZE_MAX};

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	CHECK(!next_round(ch, shared_place, 64, 1));
	CHECK(tp_wait(ch, 3, 1));
	execlp("sleep", "sleep", "60", (char *)NULL);
	return __LINE__;
}

static int changed_writer(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = tp_side(ch, false)->key;
	unsigned char bytes[64] = {0};
	int rc;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	CHECK(write_to(ch, &key[1], bytes, sizeof(bytes)) == 0);
	tp_say(ch, 3, 1);
	do {
		rc = write_to(ch, &key[1], bytes, sizeof(bytes));
	} while (!rc);
	CHECK(rc == -ECONNRESET && rwk_shm_peer_alive(ch));
	CHECK(write_to(ch, &key[0], bytes, 1) == -ECONNRESET);
	CHECK(!kill(tp_side(ch, false)->pid, SIGKILL));
	return 0;
}

/* The process runs another program by now: that is not written to. */
static void another_program(void **state)
{
	(void)state;
	tp_run_mortal(changing_exposer, changed_writer, NULL);
}

static int announcer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	((struct rwk_shm_area *)rwk_shm_transfer_area(ch, true))->writing.word = tp_side(ch, false)->key[1].word[0];
	tp_say(ch, 3, 1);
	CHECK(tp_wait(ch, 2, 1));
	return 0;
}

static int announced_to(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	CHECK(!next_round(ch, shared_place, 64, 1));
	CHECK(tp_wait(ch, 3, 1));
	rwk_shm_conceal(ch, &tp_side(ch, true)->key[1]);
	tp_say(ch, 2, 1);
	return 0;
}

/* A peer that announces a write and never withdraws it does not hold conceal for ever. */
static void announced_for_ever(void **state)
{
	(void)state;
	tp_run(announcer, announced_to, NULL);
}

/*
 * Without the guard's entry.
 */

static int often_written(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	CHECK(!next_round(ch, shared_place, 64, 1));
	CHECK(tp_wait(ch, 2, 1));
	CHECK(is(shared_place, 64, 0x11));
	return 0;
}

/* Can that be had here? */
static bool call_if_is_made(void)
{
	static const _Atomic uint64_t word = 1;
	static const long nothing[6];

	for (int i = 0; i < 100; i++) {
		if (rwk_call_if(&word, 1, SYS_getppid, nothing) != -EAGAIN)
			return true;
	}
	return false;
}

/* A write soon after another one goes without the entry, if a thread is named; after a pause none does. */
static int frequent_writer(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[1];
	uint64_t let_in = 0;
	unsigned char bytes[64];
	bool without = false;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	memset(bytes, 0x11, sizeof(bytes));
	for (unsigned i = 0; i < 1000; i++) {
		CHECK(write_to(ch, key, bytes, sizeof(bytes)) == 0);
		without |= let_in == rwk_shm_transfers_of(ch)->let_in;
		let_in = rwk_shm_transfers_of(ch)->let_in;
	}
	CHECK(without == (call_if_is_made() && tp_exposers_sleep));
	spin(100000000);
	CHECK(write_to(ch, key, bytes, sizeof(bytes)) == 0);
	CHECK(let_in != rwk_shm_transfers_of(ch)->let_in);
	/* However long the pause: not either where 32 bits of the ticks are what they were before it. */
	let_in = rwk_shm_transfers_of(ch)->let_in = rwk_clock_ticks();
	CHECK(write_to(ch, key, bytes, sizeof(bytes)) == 0);
	CHECK(let_in != rwk_shm_transfers_of(ch)->let_in);
	tp_say(ch, 2, 1);
	return 0;
}

static void written_often(void **state)
{
	(void)state;
	tp_run(often_written, frequent_writer, NULL);
}

/* Who has seen another guard than there is now is not let in, however lately he was. */
static int outdated_writer(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[1];
	unsigned char good[64], bad[64];
	struct iovec local[2] = {[1] = {bad, sizeof(bad)}}, remote[2] = {[1] = {NULL, sizeof(bad)}};
	struct rwk_shm_transfers *t;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	memset(good, 0x11, sizeof(good));
	memset(bad, 0x22, sizeof(bad));
	remote[1].iov_base = (void *)(uintptr_t)key->word[2];
	for (unsigned i = 0; i < 100; i++)
		CHECK(write_to(ch, key, good, sizeof(good)) == 0);
	t = rwk_shm_transfers_of(ch);
	CHECK(!t->named == !tp_exposers_sleep);
	CHECK(rwk_shm_guarded_write(t, rwk_shm_guard_see(t) + (64 << 20), local, 2, remote, 2) == -ESTALE);
	tp_say(ch, 2, 1);
	return 0;
}

static void outdated(void **state)
{
	(void)state;
	tp_run(often_written, outdated_writer, NULL);
}

int main(void)
{
	const struct CMUnitTest by_thread[] = {
		cmocka_unit_test(written_often),
		cmocka_unit_test(outdated),
		cmocka_unit_test(concealed_in_a_race),
		cmocka_unit_test(closed_in_a_race),
		cmocka_unit_test(stopped_in_a_race),
		cmocka_unit_test(writer_killed),
		cmocka_unit_test(exposer_killed),
		cmocka_unit_test(another_program),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_often),
		cmocka_unit_test(outdated),
		cmocka_unit_test(concealed_in_a_race),
		cmocka_unit_test(closed_in_a_race),
		cmocka_unit_test(stopped_in_a_race),
		cmocka_unit_test(stopped_before_the_call),
		cmocka_unit_test(stopped_before_the_end),
		cmocka_unit_test(stopped_before_the_push),
		cmocka_unit_test(writer_killed),
		cmocka_unit_test(exposer_killed),
		cmocka_unit_test(stranger_with_the_same_pid),
		cmocka_unit_test(another_program),
		cmocka_unit_test(announced_for_ever),
	};

	if (cmocka_run_group_tests_name("shm/direct_guard", tests, NULL, NULL))
		return 1;
	tp_exposers_sleep = true;
	return cmocka_run_group_tests_name("shm/direct_guard, by a thread", by_thread, NULL, NULL);
}
