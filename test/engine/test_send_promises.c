/* SPDX-License-Identifier: BSD-3-Clause *
 * Links: shm, sim.
 */
/*
 * What a Send promises, on real engines: rows S0-6, S3-1 and S4-13 of the acceptance list. Each test says on which
 * links; shared memory is the one link of today's services. The simulated service is no service of ours, but the engine
 * above it is the same.
 *
 * Links: shm, sim.
 */
#define _GNU_SOURCE
#include "engine/world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Lengths at which each protocol is used: within a line, lines, a slab, pieces, and a rendezvous. */
static const size_t lengths[] = {1, 40, 300, 5000, 60000, 200000};

#define LENGTHS    (sizeof(lengths) / sizeof(lengths[0]))
#define LENGTH_MAX 200000
#define HELLO      sizeof("hello")
#define GUARD      64
#define UNTOUCHED  0x5a

static void check_untouched(const unsigned char *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != UNTOUCHED)
			fail_msg("byte %zu outside of the buffers that were chosen was written", i);
}

/* Two messages, sent in the same way always; the target takes the first into in[choice], the second into the next. */
static void choose(struct world *w, size_t len, unsigned choice, bool posted)
{
	static unsigned char out[2][LENGTH_MAX], in[3][GUARD + LENGTH_MAX + GUARD];
	struct task s[2] = {0}, r[2] = {0};

	memset(in, UNTOUCHED, sizeof(in));
	for (unsigned step = 0; step < 2; step++) {
		for (unsigned i = 0; i < 2 && posted == (step == 0); i++)
			assert_int_equal(
				world_recv(w, 1, 0, RWK_TAGGED, in[(choice + i) % 3] + GUARD, len, 7, 0, 0, &r[i]), 0);
		for (unsigned i = 0; i < 2 && step == 0; i++) {
			world_fill(out[i], len, i);
			assert_int_equal(world_send(w, 0, 1, RWK_TAGGED, out[i], len, 7, 0, &s[i]), 0);
		}
		if (!posted)
			world_settle(w);
	}
	for (unsigned i = 0; i < 2; i++) {
		unsigned char *at = in[(choice + i) % 3];

		world_wait(w, &r[i]);
		world_wait(w, &s[i]);
		world_check_receive(w, &r[i], 1, 0, RWK_TAGGED, len, 7, false);
		world_check(at + GUARD, len, i);
		check_untouched(at, GUARD);
		check_untouched(at + GUARD + len, sizeof(in[0]) - GUARD - len);
	}
	check_untouched(in[(choice + 2) % 3], sizeof(in[0]));
}

/*
 * S3-1. In a Send the target chooses the buffer: the same two Sends, which name no address, land in whichever buffers
 * the target says, before they come or after, in every protocol, and nowhere else. Links: shared memory; simulated.
 */
static void s3_1_target_chooses_the_buffer(void **state)
{
	struct world w;

	world_open_two(&w, *state);
	for (size_t i = 0; i < LENGTHS; i++)
		for (unsigned choice = 0; choice < 3; choice++)
			for (int posted = 0; posted < 2; posted++)
				choose(&w, lengths[i], choice, posted);
	world_close(&w);
}

#define SENDS 4000

/*
 * S0-6. On UC the sender's completion comes as soon as the last of the message is sent. Sent means here: put into the
 * receiver's ring and slabs. While these have room each Send completes although the receiver does nothing at all; one
 * that finds no room completes once the ring has been emptied, though nobody has asked for it. Links: shared memory.
 * Longer messages are not sent but read by the receiver (rendezvous), and credit is beside the point: there is enough.
 */
static void s0_6_completion_when_sent(void **state)
{
	static unsigned char out[SENDS][300], in[300];
	static struct task s[SENDS];
	struct task r = {0};
	unsigned done = 0;
	struct world w;

	(void)state;
	memset(s, 0, sizeof(s));
	world_open(&w, &(struct world_attr){.transport = &rwk_shm_transport, .count = 2, .eager_credit = 1 << 30});
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, HELLO, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, "hello", HELLO, 1, RWK_F_SILENT, NULL), 0);
	world_wait(&w, &r);
	world_settle(&w);
	for (unsigned i = 0; i < SENDS; i++) {
		world_fill(out[i], i % sizeof(out[0]), i);
		assert_int_equal(
			rwk_engine_send1(w.e[0], out[i], i % sizeof(out[0]), RWK_F_TAGGED, 0, w.peer[0][1], 2, &s[i]),
			0);
		rwk_engine_progress(w.e[0]);
		assert_true(i == done || !s[i].times); /* none before those that were sent before it */
		done += s[i].times;
		if (s[i].times)
			memset(out[i], 0xee, sizeof(out[i])); /* ours again: all of it has been sent */
	}
	assert_in_range(done, 40, SENDS - 1); /* else the ring was never full, or never had room */
	assert_int_equal(rwk_engine_counters(w.e[1])->unexpected, 0);
	world_settle(&w);
	for (unsigned i = 0; i < SENDS; i++) {
		assert_int_equal(s[i].times, 1);
		assert_int_equal(s[i].c.status, 0);
	}
	memset(out, 0xee, sizeof(out));
	assert_int_equal(rwk_engine_counters(w.e[1])->unexpected, SENDS);
	for (unsigned i = 0; i < SENDS; i++) {
		struct task t = {0};

		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 2, 0, 0, &t), 0);
		world_wait(&w, &t);
		assert_int_equal(t.c.length, i % sizeof(in));
		world_check(in, t.c.length, i);
	}
	world_close(&w);
}

#define LATE_SENDS 8
#define LATE_BYTES 30000

/*
 * The receiver has no CPU, or computes: what is eager completes soon all the same, and arrives as it was though the
 * buffer is another's by then. Links: the packet service, over connections of its own and shared ones.
 */
static void receiver_is_late(void **state)
{
	static unsigned char out[LATE_SENDS][LATE_BYTES], in[LATE_BYTES];
	struct task s[LATE_SENDS] = {0}, r = {0};
	unsigned done = 0;
	struct world w;
	rwk_time end;

	world_open_two(&w, *state);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, HELLO, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, "hello", HELLO, 1, RWK_F_SILENT, NULL), 0);
	world_wait(&w, &r);
	world_settle(&w);
	for (unsigned i = 0; i < LATE_SENDS; i++) {
		world_fill(out[i], LATE_BYTES, i);
		assert_int_equal(
			rwk_engine_send1(w.e[0], out[i], LATE_BYTES, RWK_F_TAGGED, 0, w.peer[0][1], 2, &s[i]), 0);
	}
	end = rwk_sim_now(w.net) + 10 * 1000 * 1000; /* ns */
	while (done < LATE_SENDS && rwk_sim_now(w.net) < end) {
		world_progress(&w, 0);
		assert_true(rwk_sim_step(w.net));
		for (done = 0; done < LATE_SENDS && s[done].times;)
			done++;
	}
	assert_int_equal(done, LATE_SENDS);
	memset(out, 0xee, sizeof(out));
	world_settle(&w);
	for (unsigned i = 0; i < LATE_SENDS; i++) {
		struct task t = {0};

		assert_int_equal(s[i].times, 1);
		assert_int_equal(s[i].c.status, 0);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, LATE_BYTES, 2, 0, 0, &t), 0);
		world_wait(&w, &t);
		world_check(in, LATE_BYTES, i);
	}
	world_close(&w);
}

/*
 * A process that sends and dies.
 */

#define PATIENCE 20 /* seconds */

static void open_one(struct world *w)
{
	world_open(w, &(struct world_attr){.transport = &rwk_shm_transport, .count = 1, .strangers = true});
}

/* In the child: everything must go well, or the parent sees a strange exit. */
static void must(bool well)
{
	if (!well)
		_exit(3);
}

static void child_say(int fd, char word)
{
	must(write(fd, &word, 1) == 1);
}

static void child_hear(int fd, char word)
{
	char got;

	must(read(fd, &got, 1) == 1 && got == word);
}

static void child_send(struct world *w, struct rwk_peer *p, const void *buf, size_t len, struct task *t)
{
	must(!rwk_engine_send1(w->e[0], buf, len, RWK_F_TAGGED, 0, p, 1, t));
}

static void child_wait(struct world *w, const struct task *t)
{
	while (!t->times)
		rwk_engine_progress(w->e[0]);
	must(t->times == 1 && !t->c.status);
}

/* Connects, sends what is eager while nobody polls, and dies as soon as all of it is completed. */
static void speak_and_die(struct world *w, struct rwk_peer *p, int fd)
{
	static unsigned char out[LENGTHS][LENGTH_MAX];
	struct task hello = {0}, s[LENGTHS] = {0};

	child_send(w, p, "hello", HELLO, &hello);
	child_wait(w, &hello);
	child_hear(fd, 'g');
	for (size_t i = 0; i + 1 < LENGTHS; i++) {
		world_fill(out[i], lengths[i], i);
		child_send(w, p, out[i], lengths[i], &s[i]);
		child_wait(w, &s[i]);
	}
	raise(SIGKILL);
}

/* Sends by rendezvous; no completion while nobody has received it; dies as soon as there is one. */
static void announce_and_die(struct world *w, struct rwk_peer *p, int fd)
{
	static unsigned char out[LENGTH_MAX];
	struct task s = {0};

	world_fill(out, sizeof(out), 1);
	child_send(w, p, out, sizeof(out), &s);
	for (char word = 0; !word;) {
		rwk_engine_progress(w->e[0]);
		if (recv(fd, &word, 1, MSG_DONTWAIT) == 1)
			must(word == 'g');
	}
	for (unsigned i = 0; i < 1000; i++)
		rwk_engine_progress(w->e[0]);
	must(!s.times);
	child_say(fd, 'n');
	child_wait(w, &s);
	raise(SIGKILL);
}

typedef void (*sender_fn)(struct world *w, struct rwk_peer *p, int fd);

/* Starts the child, which dies of SIGALRM if nobody tells it to go on. */
static pid_t start(sender_fn sender, int *fd)
{
	static struct world w;
	struct rwk_address to;
	pid_t pid;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		close(pair[1]);
		*fd = pair[0];
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE);
	close(pair[0]);
	must(read(pair[1], &to, sizeof(to)) == sizeof(to));
	open_one(&w);
	sender(&w, rwk_engine_peer(w.e[0], &to), pair[1]);
	_exit(4);
}

/* Polls until a counter has reached that; fails the test if it never does. */
static void poll_until(struct world *w, const uint64_t *counter, uint64_t reached)
{
	for (time_t end = time(NULL) + PATIENCE; *counter < reached;) {
		world_poll(w);
		if (time(NULL) > end)
			fail_msg("nothing comes from the other process, or its end is not noticed");
	}
}

static void check_killed(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("the sender should have died of its own SIGKILL; its status is %x", status);
}

/*
 * S4-13: RWK_F_ARRIVED. While the receiver makes no progress such a send does not complete, others do; then it does,
 * though nobody has asked for the message. One that has not is no reason not to close. Links: the packet service.
 */
static void told_of_arrival(void **state)
{
	static const size_t sizes[] = {0, 8, 300, 5000, LATE_BYTES};
	static unsigned char out[LATE_BYTES], in[LATE_BYTES];
	struct task free_at_once = {0}, last = {0}, r = {0};
	struct world w;
	rwk_time end;

	world_open_two(&w, *state);
	world_fill(out, LATE_BYTES, 5);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, HELLO, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, "hello", HELLO, 1, RWK_F_SILENT, NULL), 0);
	world_wait(&w, &r);
	world_settle(&w);
	for (unsigned i = 0; i < 5; i++) {
		struct task s = {0}, t = {0};

		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, sizes[i], 2, RWK_F_ARRIVED, &s), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 8, 3, 0, &free_at_once), 0);
		end = rwk_sim_now(w.net) + 10 * 1000 * 1000; /* ns */
		do {
			world_progress(&w, 0);
		} while (rwk_sim_now(w.net) < end && rwk_sim_step(w.net));
		assert_int_equal(s.times, 0);
		assert_int_equal(free_at_once.times, i + 1);
		world_settle(&w);
		assert_int_equal(s.times, 1);
		assert_int_equal(s.c.status, 0);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, LATE_BYTES, 2, 0, 0, &t), 0);
		world_wait(&w, &t);
		assert_int_equal(t.c.length, sizes[i]);
		world_check(in, sizes[i], 5);
	}
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 8, 2, RWK_F_ARRIVED, &last), 0);
	world_close(&w);
	assert_int_equal(last.times, 0);
}

/*
 * S4-13. A Send completes once its delivery is guaranteed: what has been completed arrives whole, though the sender is
 * killed in the same moment, before the receiver has looked for it even once. Links: shared memory.
 */
static void s4_13_completed_survives_the_sender(void **state)
{
	static unsigned char in[LENGTH_MAX];
	struct world w;
	pid_t child;
	int fd;

	(void)state;
	child = start(speak_and_die, &fd);
	open_one(&w);
	assert_int_equal(write(fd, rwk_engine_address(w.e[0]), sizeof(struct rwk_address)), sizeof(struct rwk_address));
	poll_until(&w, &rwk_engine_counters(w.e[0])->unexpected, 1);
	assert_int_equal(write(fd, "g", 1), 1);
	check_killed(child);
	poll_until(&w, &rwk_engine_counters(w.e[0])->failed_peers, 1);
	for (size_t i = 0; i < LENGTHS; i++) { /* the first is "hello" */
		struct task r = {0};

		assert_int_equal(world_recv(&w, 0, WORLD_ANY, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
		assert_int_equal(r.times, 1);
		assert_int_equal(r.c.status, 0);
		assert_int_equal(r.c.length, i ? lengths[i - 1] : HELLO);
		if (i)
			world_check(in, lengths[i - 1], i - 1);
	}
	close(fd);
	world_close(&w);
}

/*
 * S4-13. And not before: a Send whose bytes are still the sender's alone (rendezvous) does not complete, however often
 * both sides poll, until it has been received; then the sender may be killed at once. Links: shared memory.
 */
static void s4_13_not_completed_before(void **state)
{
	static unsigned char in[LENGTH_MAX];
	struct task r = {0};
	struct world w;
	pid_t child;
	char word;
	int fd;

	(void)state;
	child = start(announce_and_die, &fd);
	open_one(&w);
	assert_int_equal(write(fd, rwk_engine_address(w.e[0]), sizeof(struct rwk_address)), sizeof(struct rwk_address));
	poll_until(&w, &rwk_engine_counters(w.e[0])->unexpected, 1);
	assert_int_equal(write(fd, "g", 1), 1);
	while (recv(fd, &word, 1, MSG_DONTWAIT) < 0)
		world_poll(&w);
	assert_int_equal(word, 'n');
	assert_int_equal(world_recv(&w, 0, WORLD_ANY, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
	world_wait(&w, &r);
	check_killed(child);
	assert_int_equal(r.c.status, 0);
	assert_int_equal(r.c.length, sizeof(in));
	world_check(in, sizeof(in), 1);
	close(fd);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(s3_1_target_chooses_the_buffer),
		cmocka_unit_test(s0_6_completion_when_sent),
		{"receiver_is_late, packets", receiver_is_late, NULL, NULL, (void *)&sim_packet_transport},
		{"receiver_is_late, shared", receiver_is_late, NULL, NULL, (void *)&sim_shared_transport},
		{"told_of_arrival, packets", told_of_arrival, NULL, NULL, (void *)&sim_packet_transport},
		{"told_of_arrival, shared", told_of_arrival, NULL, NULL, (void *)&sim_shared_transport},
		{"told_of_arrival, stream", told_of_arrival, NULL, NULL, (void *)&sim_stream_transport},
		cmocka_unit_test(s4_13_completed_survives_the_sender),
		cmocka_unit_test(s4_13_not_completed_before),
	};

	return cmocka_run_group_tests_name("engine, S0-6 S3-1 S4-13", tests, NULL, NULL);
}
