/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member dies at any instruction. A child serves one packet, or does something else with the segment, under ptrace,
 * and is killed after k instructions, for many k from the first to the last (with the argument `full`: for nearly every
 * one; with RWK_TEST_SHORT: for few). The survivors take over, the initiator sends again what was not acknowledged, and
 * each message has been heard once. Or it is only stopped there.
 *
 *   this process: speaker, listeners A and B        child: listener C, stepped
 */
#include "rwk_test.h"

#include "shared_rc/internal.h"
#include "shared_rc/traffic.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { A, B, C, LISTENERS };

#define PMTU    256u
#define ANSWERS 16u

/* What the child and this process share besides the segment. */
struct board {
	struct ear ear[C];
	uint32_t srqn;
	struct packet served; /* what the child is to serve */
	_Atomic uint32_t answers;
	struct packet answer[ANSWERS]; /* what it has sent */
};

struct scene {
	void *memory;
	struct board *board;
	struct listener listener[LISTENERS];
	struct speaker speaker, other; /* other: only while the child is stopped */
	uint32_t qpn;
	struct packet *queue;
	unsigned queued;
	rwk_time now;
	pid_t child;
};

static struct scene scene;
static bool full;

struct kind {
	const char *what;
	void (*prepare)(void); /* sends what comes before, and says what the child is to serve */
	void (*act)(struct listener *l);
};

static int emit_request(void *user, const struct packet *p)
{
	(void)user;
	if (scene.queued == 512)
		return -EAGAIN;
	scene.queue[scene.queued++] = *p;
	return 0;
}

static int emit_answer(void *user, const struct packet *p)
{
	(void)user;
	speaker_answer(p->speaker ? &scene.other : &scene.speaker, p, scene.now);
	return 0;
}

/* The child's upcalls are short, since they are stepped through too. What it has sent is in the network, and outlives
 * it.
 */
static int child_emit(void *user, const struct rwk_link_address *to, uint32_t cut, const struct rwk_wire *w,
	const struct iovec *payload, int count)
{
	struct board *b = user;
	uint32_t n = atomic_load(&b->answers);
	struct packet *p = &b->answer[n];

	if (n == ANSWERS)
		return -EAGAIN;
	p->speaker = to->byte[0];
	p->cut = cut;
	p->w = *w;
	p->len = count ? (uint32_t)payload->iov_len : 0;
	if (count)
		memcpy(p->bytes, payload->iov_base, payload->iov_len);
	atomic_store(&b->answers, n + 1);
	return 0;
}

static void child_receive(void *user, uint32_t target, unsigned where, const void *bytes, size_t len)
{
	(void)user;
	(void)target;
	(void)where;
	(void)bytes;
	(void)len;
}

static void child_write(void *user, uint32_t target, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	(void)key;
	(void)address;
	child_receive(user, target, 0, bytes, len);
}

static void child_wake(void *user, uint32_t srqn)
{
	(void)user;
	(void)srqn;
}

static const struct rwk_src_host child_host = {child_emit, child_receive, child_write, child_wake};

static void serve(struct listener *l)
{
	listener_packet(l, &scene.board->served, scene.now);
}

static void serve_and_answer(struct listener *l)
{
	serve(l);
	rwk_src_pump(l->view, scene.now);
}

static void child(const struct kind *k)
{
	struct listener *l = &scene.listener[C];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	if (rwk_src_view_open(scene.memory, &child_host, scene.board, &l->view))
		_exit(1);
	scene.board->srqn = rwk_src_srqn(l->view);
	raise(SIGSTOP);
	k->act(l);
	raise(SIGSTOP);
	_exit(0);
}

static void open_scene(const struct kind *k)
{
	struct rwk_src_initiator initiator = speaker_initiator(0, PMTU);
	int status;

	scene = (struct scene){.now = 1000000, .queue = malloc(512 * sizeof(struct packet))};
	assert_non_null(scene.queue);
	scene.memory = segment(4, 4, 65536);
	scene.board = shared_memory(sizeof(*scene.board), NULL);
	for (unsigned i = A; i <= B; i++) {
		scene.board->ear[i].member = i;
		assert_int_equal(listener_open(&scene.listener[i], scene.memory, &scene.board->ear[i]), 0);
		scene.listener[i].emit = emit_answer;
	}
	assert_int_equal(rwk_src_target_make(scene.listener[A].view, &initiator, &scene.qpn), 0);
	scene.child = fork();
	assert_true(scene.child >= 0);
	if (!scene.child)
		child(k);
	assert_int_equal(waitpid(scene.child, &status, 0), scene.child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	speaker_open(&scene.speaker, 0, scene.qpn, PMTU);
	scene.speaker.emit = emit_request;
	for (unsigned i = A; i <= B; i++)
		scene.speaker.srqn[i] = rwk_src_srqn(scene.listener[i].view);
	scene.speaker.srqn[C] = scene.board->srqn;
	k->prepare();
}

static void close_scene(void)
{
	struct rwk_src_size size = {4, 4, 65536};

	speaker_close(&scene.speaker);
	rwk_src_view_close(scene.listener[A].view);
	rwk_src_view_close(scene.listener[B].view);
	munmap(scene.memory, rwk_src_segment_size(&size));
	munmap(scene.board, sizeof(*scene.board));
	free(scene.queue);
}

/* Everything that speaker has sent is served by B, until all is acknowledged. */
static void settle_one(struct speaker *s)
{
	for (unsigned turns = 0; !speaker_idle(s) || scene.queued; turns++) {
		assert_true(turns < 20000);
		for (unsigned i = 0; i < scene.queued; i++)
			listener_packet(&scene.listener[B], &scene.queue[i], scene.now);
		scene.queued = 0;
		rwk_src_pump(scene.listener[B].view, scene.now);
		rwk_src_drain(scene.listener[A].view, 10);
		rwk_src_drain(scene.listener[B].view, 10);
		scene.now += 200000;
		speaker_speak(s, 0, scene.now);
	}
}

static void settle(void)
{
	settle_one(&scene.speaker);
}

/* Posts to that member until the next will be a Send, or a Write, of between `from` and `to` bytes. */
static void until(unsigned member, bool write, uint32_t from, uint32_t to)
{
	for (;;) {
		bool is_write;
		uint32_t len = message_length(0, member, scene.speaker.posted[member], &is_write);

		if (is_write == write && len >= from && len <= to)
			return;
		speaker_post(&scene.speaker, member);
		speaker_speak(&scene.speaker, 0, scene.now);
		settle();
	}
}

/* Posts such a message. */
static void post(unsigned member, bool write, uint32_t from, uint32_t to)
{
	until(member, write, from, to);
	speaker_post(&scene.speaker, member);
	speaker_speak(&scene.speaker, 0, scene.now);
}

/* What the child serves; B serves packets from..to before, the others are lost. */
static void choose(unsigned served, unsigned from, unsigned to)
{
	assert_true(served < scene.queued && to <= scene.queued);
	scene.board->served = scene.queue[served];
	for (unsigned i = from; i < to; i++)
		listener_packet(&scene.listener[B], &scene.queue[i], scene.now);
	scene.queued = 0;
}

static void for_itself(void)
{
	post(C, false, 1, PMTU);
	choose(0, 0, 0);
}

static void for_a_sibling(void)
{
	post(A, false, 1, PMTU);
	choose(0, 0, 0);
}

static void write_for_a_sibling(void)
{
	post(A, true, 1, PMTU);
	choose(0, 0, 0);
}

static void early(void)
{
	post(A, false, 4 * PMTU, 8 * PMTU);
	choose(2, 0, 0);
}

static void closes_a_gap(void)
{
	post(A, false, 4 * PMTU, 8 * PMTU);
	choose(0, 1, scene.queued);
}

/* Its own, then one for each of the others that was kept. */
static void closes_a_mixed_gap(void)
{
	until(A, false, 1, PMTU);
	until(B, true, 1, PMTU);
	until(C, false, 1, PMTU);
	for (unsigned i = C + 1; i-- > A;)
		speaker_post(&scene.speaker, i);
	speaker_speak(&scene.speaker, 0, scene.now);
	choose(0, 1, scene.queued);
}

static void last_of_many(void)
{
	post(A, false, 4 * PMTU, 20 * PMTU);
	choose(scene.queued - 1, 0, scene.queued - 1);
}

/* Its inbox has something. */
static void something_to_drain(void)
{
	post(C, false, PMTU, 4 * PMTU);
	settle();
}

static void drain(struct listener *l)
{
	rwk_src_drain(l->view, 10);
}

static void nothing(void)
{
}

static void leave(struct listener *l)
{
	rwk_src_view_close(l->view);
}

/* It gives back the memory of early packets of which it has kept one. */
static void serve_and_leave(struct listener *l)
{
	serve(l);
	leave(l);
}

static void sit_down(struct listener *l)
{
	struct rwk_src_view *other;

	(void)l;
	rwk_src_view_open(scene.memory, &child_host, scene.board, &other);
}

static void make_target(struct listener *l)
{
	struct rwk_src_initiator i = speaker_initiator(1, PMTU);
	uint32_t qpn;

	rwk_src_target_make(l->view, &i, &qpn);
}

static void end_and_make_target(struct listener *l)
{
	struct rwk_src_initiator i = speaker_initiator(1, PMTU);
	uint32_t qpn;

	if (rwk_src_target_make(l->view, &i, &qpn))
		return;
	rwk_src_target_end(l->view, qpn);
	rwk_src_target_make(l->view, &i, &qpn);
}

/* Whoever has a seat, or makes a target, is not in the way of others: all that is free can be had. */
static void check_room(void)
{
	struct listener more[2];
	struct rwk_src_view *none;
	struct ear ear = {0};
	uint32_t qpn[4];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(listener_open(&more[i], scene.memory, &ear), 0);
	assert_int_equal(
		rwk_src_view_open(scene.memory, more[0].view ? &(struct rwk_src_host){0} : NULL, NULL, &none), -ENOSPC);
	for (unsigned i = 0; i < 2; i++)
		rwk_src_view_close(more[i].view);
	for (unsigned i = 1; i < 4; i++) {
		struct rwk_src_initiator initiator = speaker_initiator(i, PMTU);

		assert_int_equal(rwk_src_target_make(scene.listener[B].view, &initiator, &qpn[i]), 0);
	}
	for (unsigned i = 1; i < 4; i++)
		assert_true(rwk_src_target_lives(scene.listener[A].view, qpn[i]));
}

static void check_ears(unsigned long k, const char *what)
{
	while (rwk_src_drain(scene.listener[A].view, 10) + rwk_src_drain(scene.listener[B].view, 10))
		;
	for (unsigned i = A; i <= B; i++) {
		const struct ear *e = &scene.board->ear[i];

		if (e->wrong || e->at[0] || e->heard[0] != scene.speaker.posted[i])
			fail_msg("%s, killed after %lu: member %u has heard %u of %u; %s", what, k, i, e->heard[0],
				scene.speaker.posted[i], e->why);
	}
}

/* The child is dead; what it sent before arrives, and everybody else goes on. */
static void go_on(unsigned long k, const char *what)
{
	for (uint32_t i = 0; i < atomic_load(&scene.board->answers); i++)
		speaker_answer(&scene.speaker, &scene.board->answer[i], scene.now);
	rwk_src_bury(scene.listener[B].view, scene.now);
	assert_int_equal(rwk_src_bury(scene.listener[A].view, scene.now), 0);
	assert_true(rwk_src_is_dead(scene.listener[B].view, scene.board->srqn));
	settle();
	for (unsigned i = A; i <= C; i++) {
		speaker_post(&scene.speaker, i);
		speaker_speak(&scene.speaker, 0, scene.now);
	}
	settle();
	check_ears(k, what);
	assert_int_equal(rwk_src_get_counters(scene.listener[B].view)->locked_out, 0);
	check_room();
}

/* The child goes on by so many instructions. Returns how many it did; fewer: it had come to the end. */
static unsigned long step(unsigned long k)
{
	unsigned long n = 0;
	int status = 0;

	for (; n < k; n++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, scene.child, NULL, NULL), 0);
		assert_int_equal(waitpid(scene.child, &status, 0), scene.child);
		assert_true(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
	}
	return n;
}

static void kill_child(void)
{
	int status;

	kill(scene.child, SIGKILL);
	assert_int_equal(waitpid(scene.child, &status, 0), scene.child);
	assert_true(WIFSIGNALED(status));
}

struct seen {
	uint64_t repeated, recovered, runs;
};

static struct seen seen; /* in one test */

static unsigned long once(const struct kind *kind, unsigned long k)
{
	unsigned long n;

	open_scene(kind);
	n = step(k);
	kill_child();
	go_on(k, kind->what);
	for (unsigned i = A; i <= B; i++) {
		const struct rwk_src_counters *c = rwk_src_get_counters(scene.listener[i].view);

		seen.repeated += c->repeated;
		seen.recovered += c->recovered;
	}
	seen.runs++;
	close_scene();
	return n;
}

/* Steps of all children of a kind together, about: some 40 kills, or with `full` one at each instruction. */
#define BUDGET 20000ul
#define FULL   10000000ul

/* Of n instructions: one dies at four places or twelve at least. */
static unsigned long longest_stride(unsigned long n)
{
	return n / (getenv("RWK_TEST_SHORT") ? 4 : 12) + 1;
}

/* Kills at as many places as that allows. */
static void kills(const char *what, void (*prepare)(void), void (*act)(struct listener *))
{
	const struct kind kind = {.what = what, .prepare = prepare, .act = act};
	unsigned long n = once(&kind, ULONG_MAX), longest = longest_stride(n);
	unsigned long stride = n * n / 2 / (full ? FULL : BUDGET) + 1;

	if (stride > longest)
		stride = longest;

	for (unsigned long k = 0; k < n; k += stride)
		once(&kind, k);
	print_message("%s: %lu instructions; %lu kills up to here, %lu locks taken over, %lu pieces repeated\n", what,
		n, (unsigned long)seen.runs, (unsigned long)seen.recovered, (unsigned long)seen.repeated);
}

/* Sends and Writes in order. */
static void packets(void **state)
{
	(void)state;
	seen = (struct seen){0};
	kills("a packet for itself", for_itself, serve);
	kills("a packet for a sibling", for_a_sibling, serve);
	kills("a packet for a sibling, and its acknowledgement", for_a_sibling, serve_and_answer);
	kills("a Write for a sibling", write_for_a_sibling, serve);
	kills("the last of a long Send", last_of_many, serve);
	assert_true(seen.recovered > 0 && seen.repeated > 0);
}

static void early_packets(void **state)
{
	(void)state;
	seen = (struct seen){0};
	kills("an early packet", early, serve);
	kills("a packet that closes a gap", closes_a_gap, serve);
	kills("a packet that closes a gap before others' packets", closes_a_mixed_gap, serve);
	kills("the last packet before a gap, then leaving", closes_a_gap, serve_and_leave);
	assert_true(seen.recovered > 0 && seen.repeated > 0);
}

static void seats_and_targets(void **state)
{
	(void)state;
	kills("draining its inbox", something_to_drain, drain);
	kills("leaving", nothing, leave);
	kills("taking a seat", nothing, sit_down);
	kills("making a target", nothing, make_target);
	kills("ending a target and making it anew", nothing, end_and_make_target);
}

/* Killed at the instant at which the target is there. */
static void target_begun(void **state)
{
	const struct kind kind = {.what = "a target that is just there", .prepare = nothing, .act = make_target};
	const struct rwk_src_entry *place;
	unsigned long k = 0;

	(void)state;
	open_scene(&kind);
	place = rwk_src_entry(scene.listener[B].view, 1);
	for (; !rwk_observe32(&place->qpn); k++)
		assert_int_equal(step(1), 1);
	kill_child();
	go_on(k, kind.what);
	close_scene();
}

/*
 * Stopped after so many instructions: what another initiator sends to B is heard; its own initiator's packet is dropped
 * or taken. Then it goes on to its end, and all is as it should be. Returns how many packets were dropped.
 */
static uint64_t stop_once(const struct kind *kind, unsigned long k)
{
	struct rwk_src_initiator initiator = speaker_initiator(1, PMTU);
	struct rwk_src_view *b;
	uint64_t locked_out;
	uint32_t qpn;
	int status;

	open_scene(kind);
	b = scene.listener[B].view;
	assert_int_equal(rwk_src_target_make(b, &initiator, &qpn), 0);
	speaker_open(&scene.other, 1, qpn, PMTU);
	scene.other.emit = emit_request;
	scene.other.srqn[B] = rwk_src_srqn(b);
	step(k);
	listener_packet(&scene.listener[B], &scene.board->served, scene.now);
	locked_out = rwk_src_get_counters(b)->locked_out;
	for (unsigned i = 0; i < 5; i++)
		speaker_post(&scene.other, B);
	speaker_speak(&scene.other, 0, scene.now);
	settle_one(&scene.other);
	assert_int_equal(rwk_src_bury(b, scene.now), 0);
	assert_int_equal(scene.board->ear[B].heard[1], 5);
	ptrace(PTRACE_CONT, scene.child, NULL, NULL);
	assert_int_equal(waitpid(scene.child, &status, 0), scene.child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	settle();
	check_ears(k, "stopped");
	kill_child();
	speaker_close(&scene.other);
	close_scene();
	return locked_out;
}

/* A member is stopped at any instruction, and may hold any lock: others' targets are served meanwhile. */
static void stopped(void **state)
{
	const struct kind kind = {.what = "stopped", .prepare = closes_a_gap, .act = serve};
	unsigned long n, stride;
	uint64_t locked_out = 0;

	(void)state;
	seen = (struct seen){0};
	n = once(&kind, ULONG_MAX);
	stride = full ? 7 : longest_stride(n);
	for (unsigned long k = 0; k < n; k += stride)
		locked_out += stop_once(&kind, k);
	assert_true(locked_out > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets),
		cmocka_unit_test(early_packets),
		cmocka_unit_test(seats_and_targets),
		cmocka_unit_test(target_begun),
		cmocka_unit_test(stopped),
	};

	full = argc > 1 && !strcmp(argv[1], "full");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
