/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain's parts one by one: seats and their numbers, the dead, targets, who sleeps, what is refused.
 *
 * Links: none: packets are handed over by hand.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "shared_rc/internal.h"
#include "shared_rc/traffic.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PMTU 256u

static const struct rwk_src_size size = {4, 4, 65536};

struct fixture {
	void *memory;
	int fd;
	struct listener listener[MEMBERS];
	struct ear ear[MEMBERS];
	struct speaker speaker;
	uint32_t qpn;
	struct packet queue[256], answer;
	unsigned queued, answers, room; /* room: answers that the link takes */
};

static struct fixture f;

static int emit_request(void *user, const struct packet *p)
{
	(void)user;
	if (f.queued == 256)
		return -EAGAIN;
	f.queue[f.queued++] = *p;
	return 0;
}

static int emit_answer(void *user, const struct packet *p)
{
	(void)user;
	if (f.answers == f.room)
		return -EAGAIN;
	f.answer = *p;
	f.answers++;
	return 0;
}

static void open_listener(unsigned i)
{
	f.ear[i].member = i;
	assert_int_equal(listener_open(&f.listener[i], f.memory, &f.ear[i]), 0);
	f.listener[i].emit = emit_answer;
	f.speaker.srqn[i] = rwk_src_srqn(f.listener[i].view);
}

/* Two members, one speaker. */
static int setup(void **state)
{
	struct rwk_src_initiator initiator = speaker_initiator(0, PMTU);

	(void)state;
	f = (struct fixture){.room = 1000};
	f.memory = shared_memory(rwk_src_segment_size(&size), &f.fd);
	assert_int_equal(rwk_src_segment_format(f.memory, &size), 0);
	open_listener(0);
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &initiator, &f.qpn), 0);
	speaker_open(&f.speaker, 0, f.qpn, PMTU);
	f.speaker.emit = emit_request;
	f.speaker.srqn[0] = rwk_src_srqn(f.listener[0].view);
	open_listener(1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	speaker_close(&f.speaker);
	for (unsigned i = 0; i < MEMBERS; i++)
		if (f.listener[i].view)
			rwk_src_view_close(f.listener[i].view);
	munmap(f.memory, rwk_src_segment_size(&size));
	close(f.fd);
	return 0;
}

/* With initiators that need not be acknowledged at once. */
static int setup_lazy(void **state)
{
	uint16_t own = speakers_own;
	int rc;

	speakers_own |= RWK_RC_LAZY;
	rc = setup(state);
	speakers_own = own;
	return rc;
}

static void leave(unsigned i)
{
	rwk_src_view_close(f.listener[i].view);
	f.listener[i].view = NULL;
}

/* Posts until the next message to that member is a Send of that many packets, and posts that. Its packets are queued.
 */
static void post(unsigned member, unsigned packets)
{
	for (;;) {
		bool write;
		uint32_t n = message_length(0, member, f.speaker.posted[member], &write);

		if (!write && (n + PMTU - 1) / PMTU == packets)
			break;
		f.speaker.posted[member]++;
		f.ear[member].heard[0]++;
	}
	speaker_post(&f.speaker, member);
	speaker_speak(&f.speaker, 0, 1000);
}

static void serve(unsigned member, unsigned packet)
{
	listener_packet(&f.listener[member], &f.queue[packet], 1000);
}

/* All that is queued is taken by that member, and acknowledged. */
static void serve_all(unsigned member)
{
	for (unsigned i = 0; i < f.queued; i++)
		serve(member, i);
	f.queued = 0;
	if (rwk_src_pump(f.listener[member].view, 1000))
		speaker_answer(&f.speaker, &f.answer, 2000);
}

static const struct rwk_src_counters *count(unsigned member)
{
	return rwk_src_get_counters(f.listener[member].view);
}

static void check_heard(unsigned member)
{
	if (f.ear[member].wrong)
		fail_msg("%s", f.ear[member].why);
	assert_int_equal(f.ear[member].heard[0], f.speaker.posted[member]);
}

/* Seats have numbers that differ, and a seat taken again has another; those that were given and are gone are dead. */
static void seats(void **state)
{
	uint32_t number[40];
	struct rwk_src_view *none;

	(void)state;
	open_listener(2);
	open_listener(3);
	assert_int_equal(rwk_src_view_open(f.memory, &(struct rwk_src_host){.wake = NULL}, NULL, &none), -ENOSPC);
	for (unsigned i = 0; i < 40; i++) {
		number[i] = rwk_src_srqn(f.listener[3].view);
		assert_in_range(number[i], 1, 0xffffff);
		assert_false(rwk_src_is_dead(f.listener[0].view, number[i]));
		leave(3);
		assert_true(rwk_src_is_dead(f.listener[0].view, number[i]));
		open_listener(3);
		for (unsigned j = 0; j <= i; j++) {
			assert_int_not_equal(rwk_src_srqn(f.listener[3].view), number[j]);
			assert_true(rwk_src_is_dead(f.listener[0].view, number[j]));
		}
	}
	assert_false(rwk_src_is_dead(f.listener[0].view, 0));
	assert_false(rwk_src_is_dead(f.listener[0].view, 0xffffff));
	assert_int_equal(rwk_src_bury(f.listener[0].view), 0);
}

/* A member that shows its life, in a PID namespace of its own, becomes another program when it is told. */
static int show_life_and_exec(void *told)
{
	const int *fd = told;
	struct ear e = {0};
	struct listener l;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	char path[40], c;
	uint32_t srqn;
	int life;

	listener_open(&l, f.memory, &e);
	srqn = rwk_src_srqn(l.view);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f.fd);
	life = open(path, O_RDWR | O_CLOEXEC);
	lock.l_start = rwk_src_seat_of(srqn);
	if (fcntl(life, F_OFD_SETLK, &lock))
		_exit(1);
	rwk_src_show_life(l.view, life);
	if (write(fd[1], &srqn, sizeof(srqn)) != sizeof(srqn) || read(fd[1], &c, 1) != 1)
		_exit(1);
	execlp("sleep", "sleep", "60", NULL);
	_exit(1);
}

/* By its lock a member is seen to live and to end, wherever it is, also when its process goes on as another program. */
static void shows_life(void **state)
{
	static unsigned char stack[65536] __attribute__((aligned(16)));
	char path[40], c = 0;
	int fd[2], own;
	uint32_t srqn;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f.fd);
	own = open(path, O_RDWR | O_CLOEXEC);
	rwk_src_show_life(f.listener[0].view, own);
	pid = clone(show_life_and_exec, stack + sizeof(stack), SIGCHLD | (geteuid() ? 0 : CLONE_NEWPID), fd);
	assert_true(pid > 0);
	close(fd[1]);
	assert_int_equal(read(fd[0], &srqn, sizeof(srqn)), sizeof(srqn));
	assert_int_equal(rwk_src_bury(f.listener[0].view), 0);
	assert_int_equal(write(fd[0], &c, 1), 1);
	assert_int_equal(read(fd[0], &c, 1), 0); /* it is another program */
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(rwk_src_bury(f.listener[0].view), 1);
	assert_true(rwk_src_is_dead(f.listener[0].view, srqn));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fd[0]);
	close(own);
}

/* A process that has ended is found by one of the others, once, though nobody has waited for it yet. */
static void dead_process(void **state)
{
	int status, ready[2];
	uint32_t srqn;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct ear e = {0};
		struct listener l;
		bool sent;

		listener_open(&l, f.memory, &e);
		srqn = rwk_src_srqn(l.view);
		sent = write(ready[1], &srqn, sizeof(srqn)) == sizeof(srqn);
		_exit(!sent);
	}
	assert_int_equal(read(ready[0], &srqn, sizeof(srqn)), sizeof(srqn));
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(rwk_src_bury(f.listener[0].view), 1);
	assert_int_equal(rwk_src_bury(f.listener[1].view), 0);
	assert_true(rwk_src_is_dead(f.listener[1].view, srqn));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* What is sent to it is acknowledged, and nobody's. */
	f.speaker.srqn[2] = srqn;
	post(2, 3);
	serve_all(1);
	assert_true(speaker_idle(&f.speaker));
	assert_int_equal(count(1)->for_the_dead, 3);
	assert_int_equal(count(1)->handed_on, 0);
	close(ready[0]);
	close(ready[1]);
}

/* What was for a member that has left does not come to the next one on its seat. */
static void next_on_the_seat(void **state)
{
	uint32_t seat = rwk_src_srqn(f.listener[1].view) % RWK_SRC_MEMBERS_MAX;
	struct rwk_src_piece p = {.kind = RWK_SRC_SEND, .target = f.qpn, .number = 1000, .bytes = "", .len = 1};
	struct ear silent = {.member = 1};

	(void)state;
	post(1, 2);
	serve(0, 0);
	leave(1);
	do {
		if (f.listener[2].view)
			leave(2);
		open_listener(2);
	} while (rwk_src_srqn(f.listener[2].view) % RWK_SRC_MEMBERS_MAX != seat);
	f.listener[2].ear = &silent;
	serve(0, 1);
	/* Nor what a member had looked up for the last one just before. */
	assert_int_equal(rwk_src_inbox_put(f.listener[0].view, f.speaker.srqn[1], &p), 0);
	assert_int_equal(count(0)->for_the_dead, 2);
	assert_int_equal(rwk_src_drain(f.listener[2].view, 10), 0);
	assert_int_equal(silent.heard[0] + silent.at[0] + silent.wrong, 0);
}

/* S1-6: an SRQ that never was: a NAK goes back, the target is in the error state; other targets are not. */
static void refused(void **state)
{
	struct rwk_src_initiator other = speaker_initiator(1, PMTU);
	uint32_t qpn;

	(void)state;
	f.speaker.srqn[2] = 3 | 77 << 10;
	post(2, 2);
	serve(0, 0);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 1);
	assert_int_equal(f.answer.w.opcode, RWK_WIRE_SRC | RWK_WIRE_ACK);
	assert_int_equal(f.answer.w.aeth.syndrome, RWK_WIRE_NAK_INVALID);
	assert_int_equal(count(0)->unknown_srq, 1);
	/* It takes nothing more, whoever serves it, and says so again. */
	f.queue[1].w.srqn = f.speaker.srqn[1];
	serve(1, 1);
	assert_int_equal(rwk_src_pump(f.listener[1].view, 1000), 1);
	assert_int_equal(f.answer.w.aeth.syndrome, RWK_WIRE_NAK_INVALID);
	assert_int_equal(f.ear[1].at[0] + f.ear[1].heard[0], 0);
	speaker_answer(&f.speaker, &f.answer, 2000);
	assert_int_equal(f.speaker.failed, -EINVAL);
	/* An unknown SRQ is refused for a Write too. */
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &other, &qpn), 0);
	f.queue[0].w = (struct rwk_wire){.opcode = RWK_WIRE_SRC | RWK_WIRE_WRITE_ONLY,
		.qpn = qpn,
		.psn = other.psn,
		.srqn = f.speaker.srqn[2],
		.reth.length = 5};
	f.queue[0].speaker = 1;
	f.queue[0].len = 5;
	serve(1, 0);
	assert_int_equal(rwk_src_pump(f.listener[1].view, 1000), 1);
	assert_int_equal(f.answer.w.aeth.syndrome, RWK_WIRE_NAK_INVALID);
	assert_int_equal(count(1)->unknown_srq, 1);
}

/* Targets: one for each initiator, known to all members, gone when it has ended. */
static void targets(void **state)
{
	struct rwk_src_initiator i = speaker_initiator(0, PMTU), found, bad;
	uint32_t qpn, qpns[4] = {f.qpn};

	(void)state;
	i.pmtu = 512; /* what was agreed first stays */
	assert_int_equal(rwk_src_target_make(f.listener[1].view, &i, &qpn), 0);
	assert_int_equal(qpn, f.qpn);
	assert_int_equal(rwk_src_target_find(f.listener[1].view, qpn, &found), 0);
	assert_int_equal(found.pmtu, PMTU);
	assert_int_equal(found.nonce, 1000);
	assert_int_equal(found.about[1], 0x5a);
	for (unsigned n = 1; n < 4; n++) {
		i = speaker_initiator(n, PMTU);
		assert_int_equal(rwk_src_target_make(f.listener[n % 2].view, &i, &qpns[n]), 0);
		assert_in_range(qpns[n], 2, 0xfffffe);
		for (unsigned m = 0; m < n; m++)
			assert_int_not_equal(qpns[m] % 4, qpns[n] % 4);
	}
	i = speaker_initiator(5, PMTU);
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &i, &qpn), -ENOSPC);
	rwk_src_target_end(f.listener[0].view, qpns[2]);
	assert_int_equal(rwk_src_target_find(f.listener[1].view, qpns[2], &found), -ENOENT);
	assert_int_equal(rwk_src_target_make(f.listener[1].view, &i, &qpn), 0);
	assert_int_equal(qpn % 4, qpns[2] % 4);
	assert_int_not_equal(qpn, qpns[2]);
	/* Whoever says it later ends nobody else. */
	rwk_src_target_end(f.listener[1].view, qpns[2]);
	assert_int_equal(rwk_src_target_find(f.listener[0].view, qpn, &found), 0);
	bad = i;
	bad.nonce = 0;
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &bad, &qpn), -EINVAL);
	bad = i;
	bad.pmtu = 300;
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &bad, &qpn), -EINVAL);
	bad = i;
	bad.psn = 1 << 24;
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &bad, &qpn), -EINVAL);
}

/* Who holds a target: one at a time, who lives, and of this target, not of the one before it on its place. */
static void holders(void **state)
{
	struct rwk_src_initiator i = speaker_initiator(0, PMTU);
	struct rwk_src_view *a = f.listener[0].view, *b = f.listener[1].view;
	uint32_t next;

	(void)state;
	assert_int_equal(rwk_src_holder(a, f.qpn), 0);
	rwk_src_hold(a, f.qpn);
	assert_int_equal(rwk_src_holder(a, f.qpn), rwk_src_srqn(a));
	assert_int_equal(rwk_src_holder(b, f.qpn), rwk_src_srqn(a));
	rwk_src_hold(b, f.qpn);
	rwk_src_let_go(a, f.qpn);
	assert_int_equal(rwk_src_holder(a, f.qpn), rwk_src_srqn(b));
	rwk_src_let_go(b, f.qpn);
	assert_int_equal(rwk_src_holder(a, f.qpn), 0);

	rwk_src_hold(b, f.qpn);
	assert_true(rwk_src_target_lives(a, f.qpn));
	rwk_src_target_end(a, f.qpn);
	assert_false(rwk_src_target_lives(b, f.qpn));
	assert_int_equal(rwk_src_target_make(a, &i, &next), 0);
	assert_int_equal(rwk_src_holder(a, next), 0);
	rwk_src_hold(b, f.qpn); /* too late */
	assert_int_equal(rwk_src_holder(a, next), 0);
	rwk_src_hold(b, next);
	assert_int_equal(rwk_src_holder(a, next), rwk_src_srqn(b));
	rwk_src_view_close(b);
	f.listener[1].view = NULL;
	assert_int_equal(rwk_src_holder(a, next), 0);
}

/* The next initiator on a target's place is heard from its first packet on, though the count goes on. */
static void next_at_the_place(void **state)
{
	struct rwk_src_initiator i = speaker_initiator(2, PMTU);

	(void)state;
	post(1, 3);
	serve_all(0);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 3);
	check_heard(1);
	rwk_src_target_end(f.listener[0].view, f.qpn);
	serve(0, 0);
	assert_int_equal(count(0)->unknown_target, 1);
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &i, &f.qpn), 0);
	speaker_close(&f.speaker);
	speaker_open(&f.speaker, 2, f.qpn, PMTU);
	f.speaker.emit = emit_request;
	f.speaker.srqn[1] = rwk_src_srqn(f.listener[1].view);
	speaker_post(&f.speaker, 1);
	speaker_speak(&f.speaker, 0, 1000);
	serve_all(0);
	while (rwk_src_drain(f.listener[1].view, 10))
		;
	assert_int_equal(f.ear[1].heard[2], 1);
	assert_int_equal(f.ear[1].wrong + count(1)->repeated, 0);
}

#define MANY 4096u

/* The longest chain; each target that is known is in one, once. */
static uint32_t longest_chain(struct rwk_src_view *v, const uint32_t *qpn)
{
	uint32_t longest = 0, found = 0, known = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t n = 0;

		known += qpn[i] != 0;
		for (uint32_t next = *rwk_src_chain(v, i); next; next = rwk_src_entry(v, next - 1)->next) {
			assert_in_range(next, 1, MANY);
			assert_true(++n <= MANY);
			found += rwk_src_entry(v, next - 1)->qpn != 0;
		}
		longest = n > longest ? n : longest;
	}
	assert_int_equal(found, known);
	return longest;
}

/*
 * Many initiators come and go, as a list says: each has one target as long as it lives, whichever member asks; a place
 * that has become free is used before one that never was, and there is room as long as there is a place. Looking for
 * one takes a few steps.
 */
static void many_targets(void **state)
{
	static uint32_t qpn[MANY];
	void *m = segment(2, MANY, 65536);
	uint32_t seed = 1, most = 0, now = 0;
	struct ear e[2] = {0};
	struct listener l[2];

	(void)state;
	memset(qpn, 0, sizeof(qpn));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(listener_open(&l[i], m, &e[i]), 0);
	for (unsigned step = 0; step < 6 * MANY; step++) {
		uint32_t i = chance(&seed) % MANY, got = 0;
		struct rwk_src_initiator who = speaker_initiator(0, PMTU);
		struct rwk_src_view *v = l[step & 1].view;

		who.nonce = (i + 1) * 0x100000001ull;
		if (step > MANY && !(chance(&seed) % 3) && qpn[i]) {
			rwk_src_target_end(v, qpn[i]);
			rwk_src_target_end(l[0].view, qpn[i]);
			qpn[i] = 0;
			now--;
			continue;
		}
		assert_int_equal(rwk_src_target_make(v, &who, &got), 0);
		if (qpn[i])
			assert_int_equal(got, qpn[i]);
		now += !qpn[i];
		qpn[i] = got;
		most = now > most ? now : most;
		assert_int_equal(l[0].view->header->directed, most);
	}
	assert_in_range(longest_chain(l[0].view, qpn), 2, 16);
	for (uint32_t i = 0; i <= MANY; i++) { /* all there is room for */
		struct rwk_src_initiator who = speaker_initiator(0, PMTU);
		uint32_t got = 0;

		who.nonce = (i + 1) * 0x100000001ull;
		assert_int_equal(rwk_src_target_make(l[1].view, &who, &got), i < MANY ? 0 : -ENOSPC);
		if (i < MANY && qpn[i])
			assert_int_equal(got, qpn[i]);
		if (i < MANY)
			qpn[i] = got;
	}
	/* Whoever ended one died before it was counted. */
	atomic_store(&rwk_src_entry(l[0].view, rwk_src_place(l[0].view, qpn[77]))->qpn, 0);
	for (unsigned n = 0; n < 2; n++) {
		struct rwk_src_initiator who = speaker_initiator(0, PMTU);
		uint32_t got;

		who.nonce = UINT64_MAX - n;
		assert_int_equal(rwk_src_target_make(l[1].view, &who, &got), n ? -ENOSPC : 0);
	}
	for (unsigned i = 0; i < 2; i++)
		rwk_src_view_close(l[i].view);
	munmap(m, rwk_src_segment_size(&(struct rwk_src_size){2, MANY, 65536}));
}

/* A packet for no target, and one that does not come from where its initiator is. */
static void strangers(void **state)
{
	(void)state;
	post(1, 1);
	f.queue[0].speaker = 3;
	serve(0, 0);
	assert_int_equal(count(0)->wrong_sender, 1);
	f.queue[0].speaker = 0;
	f.queue[0].w.qpn = f.qpn ^ 0x800000;
	serve(0, 0);
	f.queue[0].w.qpn = 0;
	serve(0, 0);
	assert_int_equal(count(0)->unknown_target, 2);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	f.queue[0].w.qpn = f.qpn;
	serve_all(0);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	check_heard(1);
}

/* A member takes a piece itself while one before it is still in its inbox, and one behind it comes there too. */
static void order(void **state)
{
	(void)state;
	post(1, 3);
	serve(0, 0);
	serve(1, 1);
	serve(0, 2);
	assert_int_equal(count(1)->own, 1);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	check_heard(1);
}

/* The memory that early packets need is given back when none is kept. */
static void early_memory(void **state)
{
	struct stat before, kept, after;

	(void)state;
	post(1, 20);
	fstat(f.fd, &before);
	for (unsigned i = 1; i < 20; i++)
		serve(0, i);
	rwk_src_bury(f.listener[0].view);
	fstat(f.fd, &kept);
	assert_true(kept.st_blocks > before.st_blocks);
	serve(0, 0);
	fstat(f.fd, &kept);
	rwk_src_bury(f.listener[0].view);
	fstat(f.fd, &after);
	assert_true(kept.st_blocks - after.st_blocks >= 19 * (int)PMTU / 512);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 100), 20);
	check_heard(1);
}

/*
 * Who sleeps is woken when something is put into its inbox; who does not is left alone. Who only looks for a seat wakes
 * nobody: it has no view yet to do it by.
 */
static void sleeper(void **state)
{
	struct rwk_src_view *none;

	(void)state;
	post(1, 1);
	serve_all(0);
	assert_int_equal(f.listener[0].woken, 0);
	assert_true(rwk_src_sleep(f.listener[1].view));
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	assert_false(rwk_src_sleep(f.listener[1].view));
	post(1, 1);
	serve_all(0);
	assert_int_equal(f.listener[0].woken, 1);
	assert_int_equal(f.listener[0].last_woken, rwk_src_srqn(f.listener[1].view));
	open_listener(2);
	open_listener(3);
	assert_int_equal(rwk_src_view_open(f.memory, &(struct rwk_src_host){.wake = NULL}, NULL, &none), -ENOSPC);
	/* Whoever was to say so may have died: it is said again. */
	rwk_src_bury(f.listener[0].view);
	assert_int_equal(f.listener[0].woken, 2);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	rwk_src_bury(f.listener[0].view);
	post(1, 1);
	serve_all(0);
	assert_int_equal(f.listener[0].woken, 2);
}

/* An acknowledgement for which the link has no room is sent by the next pump. */
static void link_is_full(void **state)
{
	(void)state;
	f.room = 0;
	post(1, 1);
	serve(0, 0);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	f.room = 1;
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 1);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	speaker_answer(&f.speaker, &f.answer, 2000);
	assert_true(speaker_idle(&f.speaker));
}

static uint32_t next_cut(unsigned member)
{
	f.queued = 0;
	post(member, 1);
	serve(member, 0);
	assert_int_equal(rwk_src_pump(f.listener[member].view, 1000), 1);
	speaker_answer(&f.speaker, &f.answer, 2000);
	return f.answer.cut;
}

/*
 * How long its answers may be is what the initiator said last, by its own clock, whoever heard it
 * and whoever answers.
 */
static void cuts(void **state)
{
	struct rwk_src_view *v[2] = {f.listener[0].view, f.listener[1].view};
	struct rwk_src_target *t = rwk_src_target(v[0], rwk_src_place(v[0], f.qpn));

	(void)state;
	assert_int_equal(next_cut(0), 0);
	assert_int_equal(rwk_src_target_cut(v[1], f.qpn, 1024, 10), 0);
	assert_int_equal(next_cut(0), 1024);
	assert_int_equal(next_cut(1), 1024);
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn, 0, 9), 0); /* it has lain there for a while */
	assert_int_equal(next_cut(0), 1024);
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn ^ 0x800000, 256, 20), 0); /* somebody else's */
	assert_int_equal(next_cut(1), 1024);
	assert_true(rwk_src_lock(v[1], &t->lock));
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn, 0, 20), -EAGAIN);
	rwk_src_unlock(&t->lock);
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn, 0, 20), 0);
	assert_int_equal(next_cut(1), 0);
	for (uint32_t wrong = 1; wrong < 256; wrong += 3) {
		t->cut = wrong;
		assert_int_equal(next_cut(0), 0);
	}
}

static uint8_t whole[RWK_PUZZLE_MAX];

/* A piece of a packet of three, of which the last is shorter; its bytes follow from the number. */
static size_t put_piece(unsigned member, uint8_t sender, uint32_t serial, unsigned n)
{
	const struct rwk_link_address from = {{sender}};
	uint8_t bytes[1000];
	struct rwk_piece piece = {.serial = serial,
		.at = (uint16_t)(n * 1000),
		.of = 2500,
		.unit = 1000,
		.len = n == 2 ? 500 : 1000,
		.bytes = bytes};

	assert_true(rwk_piece_is_sound(&piece));
	memset(bytes, (int)(serial + n), sizeof(bytes));
	return rwk_src_piece(f.listener[member].view, &from, &piece, whole);
}

static void assert_whole(uint32_t serial)
{
	for (unsigned i = 0; i < 2500; i++)
		assert_int_equal(whole[i], (uint8_t)(serial + i / 1000));
}

/* Pieces that siblings have got one each make a packet, in any order and twice; each packet's stay apart. */
static void pieces(void **state)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};

	(void)state;
	for (uint32_t serial = 0; serial < 300; serial++) {
		const unsigned *order = orders[serial % 3];

		assert_int_equal(put_piece(0, 1, serial, order[0]), 0);
		assert_int_equal(put_piece(1, 1, serial + 1000, order[1]), 0);
		assert_int_equal(put_piece(1, 1, serial, order[0]), 0);
		assert_int_equal(put_piece(1, 1, serial, order[1]), 0);
		assert_int_equal(put_piece(serial & 1, 1, serial, order[2]), 2500);
		assert_whole(serial);
		assert_int_equal(put_piece(0, 1, serial + 1000, order[0]), 0);
		assert_int_equal(put_piece(0, 1, serial + 1000, order[2]), 2500);
		assert_whole(serial + 1000);
	}
	assert_int_equal(put_piece(0, 1, 5, 0), 0); /* another packet takes its place: */
	assert_int_equal(put_piece(0, 1, 5 + RWK_SRC_PUZZLES, 0), 0);
	assert_int_equal(put_piece(0, 1, 5, 1), 0);
	assert_int_equal(put_piece(0, 1, 5, 2), 0);
	assert_int_equal(put_piece(0, 1, 5, 0), 2500);
	assert_whole(5);
}

/* One message is acknowledged after a while, by whoever took it; many at once, without waiting. */
static void lazy(void **state)
{
	struct rwk_src_view *v = f.listener[0].view;
	rwk_time due;

	(void)state;
	assert_true(rwk_src_next(v) == RWK_NEVER);
	post(0, 1);
	serve(0, 0);
	due = rwk_src_next(v);
	assert_in_range(due, 1, 1000000);
	assert_int_equal(rwk_src_pump(v, due - 1), 0);
	assert_int_equal(rwk_src_pump(v, due), 1);
	assert_int_equal(f.answer.w.psn, f.queue[0].w.psn);
	assert_true(rwk_src_next(v) == RWK_NEVER);
	assert_int_equal(rwk_src_pump(v, RWK_NEVER - 1), 0);
}

/*
 * Acknowledgements of several packets may travel with messages, and none is sent then; that of few is not worth a step,
 * and after some that have travelled one goes alone.
 */
static void rides(void **state)
{
	struct rwk_src_view *v = f.listener[0].view;
	uint32_t word = 0;
	unsigned n = 0;

	(void)state;
	for (unsigned ride = 0; ride < 17; ride++) {
		for (unsigned i = 0; i < 4; i++) {
			assert_false(rwk_src_take_ack(v, f.qpn, &word));
			post(0, 1);
			serve(0, n++);
		}
		assert_int_equal(rwk_src_take_ack(v, f.qpn, &word), ride < 16);
		if (ride < 16) {
			assert_int_equal(word, f.queue[n - 1].w.psn);
			assert_true(rwk_src_next(v) == RWK_NEVER);
			rwk_rc_acked(f.speaker.qp, word, 2000);
			assert_true(rwk_rc_idle(f.speaker.qp));
		}
		assert_false(rwk_src_take_ack(v, f.qpn, &word));
	}
	assert_int_equal(rwk_src_pump(v, RWK_NEVER - 1), 1);
	assert_int_equal(f.answer.w.psn, f.queue[n - 1].w.psn);
	assert_int_equal(f.ear[0].wrong, 0);
}

/* An acknowledgement by a member that looked at the clock before the packet came says that nobody waited. */
static void clocks(void **state)
{
	struct rwk_link_address from = speaker_initiator(0, PMTU).to;

	(void)state;
	post(1, 2);
	serve(0, 0);
	rwk_src_packet(f.listener[1].view, &from, &f.queue[1].w, f.queue[1].bytes, f.queue[1].len, 9000000);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 100000), 1);
	assert_int_equal(f.answer.w.psn, f.queue[1].w.psn);
	assert_int_equal(f.answer.len, 4);
	assert_memory_equal(f.answer.bytes, "\0\0\0", 4);
}

/* Another build's segment, or none, is refused; and sizes that cannot be. */
static void layouts(void **state)
{
	static const struct rwk_src_size bad[] = {{1, 4, 65536}, {1025, 4, 65536}, {4, 3, 65536}, {4, 0, 65536},
		{4, 131072, 65536}, {4, 4, 32768}, {4, 4, 65537}};
	struct rwk_src_header *h = f.memory;
	struct rwk_src_view *v;
	struct rwk_src_host host = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rwk_src_segment_size(&bad[i]), 0);
		assert_int_equal(rwk_src_segment_format(f.memory, &bad[i]), -EINVAL);
	}
	h->layout++;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
	h->layout--;
	h->sizes[3] += 8;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
	h->sizes[3] -= 8;
	h->size.targets *= 2;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
	h->size.targets /= 2;
	h->magic++;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
}

/* A segment of the largest size costs what is used of it. */
static void largest(void **state)
{
	static const struct rwk_src_size most = {RWK_SRC_MEMBERS_MAX, RWK_SRC_TARGETS_MAX, 1 << 20};
	size_t bytes = rwk_src_segment_size(&most);
	struct rwk_src_view *v;
	struct stat st;
	int fd;
	void *m;

	(void)state;
	assert_true(bytes);
	m = shared_memory(bytes, &fd);
	assert_int_equal(rwk_src_segment_format(m, &most), 0);
	assert_int_equal(rwk_src_view_open(m, &(struct rwk_src_host){0}, NULL, &v), 0);
	rwk_src_view_close(v);
	fstat(fd, &st);
	assert_true(st.st_blocks * 512 < 2 << 20);
	munmap(m, bytes);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(seats, setup, teardown),
		cmocka_unit_test_setup_teardown(dead_process, setup, teardown),
		cmocka_unit_test_setup_teardown(shows_life, setup, teardown),
		cmocka_unit_test_setup_teardown(next_on_the_seat, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(targets, setup, teardown),
		cmocka_unit_test_setup_teardown(holders, setup, teardown),
		cmocka_unit_test_setup_teardown(next_at_the_place, setup, teardown),
		cmocka_unit_test(many_targets),
		cmocka_unit_test_setup_teardown(strangers, setup, teardown),
		cmocka_unit_test_setup_teardown(order, setup, teardown),
		cmocka_unit_test_setup_teardown(early_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(sleeper, setup, teardown),
		cmocka_unit_test_setup_teardown(link_is_full, setup, teardown),
		cmocka_unit_test_setup_teardown(cuts, setup, teardown),
		cmocka_unit_test_setup_teardown(pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(lazy, setup_lazy, teardown),
		cmocka_unit_test_setup_teardown(rides, setup_lazy, teardown),
		cmocka_unit_test_setup_teardown(clocks, setup_lazy, teardown),
		cmocka_unit_test_setup_teardown(layouts, setup, teardown),
		cmocka_unit_test(largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
