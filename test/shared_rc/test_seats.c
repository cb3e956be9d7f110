/* SPDX-License-Identifier: BSD-3-Clause */
/* A domain's seats and their numbers, the dead, and what is refused. Links: none: packets are handed over by hand. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "shared_rc/two.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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
	assert_int_equal(rwk_src_bury(f.listener[0].view, 0), 0);
}

/* Shows the life of a view; -1: it cannot. */
static int show_life(struct rwk_src_view *v)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rwk_src_seat_of(rwk_src_srqn(v)), .l_len = 1};
	char path[40];
	int life;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f.fd);
	life = open(path, O_RDWR | O_CLOEXEC);
	if (fcntl(life, F_OFD_SETLK, &lock))
		return -1;
	rwk_src_show_life(v, life);
	return life;
}

/* A member that shows its life, in a PID namespace of its own, becomes another program when it is told. */
static int show_life_and_exec(void *told)
{
	const int *fd = told;
	struct ear e = {0};
	struct listener l;
	uint32_t srqn;
	char c;

	listener_open(&l, f.memory, &e);
	srqn = rwk_src_srqn(l.view);
	if (show_life(l.view) < 0)
		_exit(1);
	if (write(fd[1], &srqn, sizeof(srqn)) != sizeof(srqn) || read(fd[1], &c, 1) != 1)
		_exit(1);
	execlp("sleep", "sleep", "60", NULL);
	_exit(1);
}

/*
 * By its lock a member is seen to live and to end, wherever it is, also when its process goes on as another program.
 * One looks for all, not before it is time; who cannot look does not take the turn; a time to come is not believed.
 */
static void shows_life(void **state)
{
	static unsigned char stack[65536] __attribute__((aligned(16)));
	const rwk_time first = 1000000000, next = first + RWK_SRC_BURY_GAP;
	struct rwk_src_view *v = f.listener[0].view;
	int fd[2], own, another;
	uint32_t srqn;
	pid_t pid;
	char c = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	open_listener(2);
	own = show_life(v);
	another = show_life(f.listener[2].view);
	assert_true(own >= 0 && another >= 0);
	pid = clone(show_life_and_exec, stack + sizeof(stack), SIGCHLD | (geteuid() ? 0 : CLONE_NEWPID), fd);
	assert_true(pid > 0);
	close(fd[1]);
	assert_int_equal(read(fd[0], &srqn, sizeof(srqn)), sizeof(srqn));
	assert_int_equal(rwk_src_bury(v, first), 0);
	assert_int_equal(write(fd[0], &c, 1), 1);
	assert_int_equal(read(fd[0], &c, 1), 0); /* it is another program */
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(rwk_src_bury(f.listener[2].view, next - 1), 0);
	assert_int_equal(rwk_src_bury(f.listener[1].view, next), 0);
	assert_int_equal(atomic_load(&v->header->looked), first);
	atomic_store(&v->header->looked, next + 1);
	assert_int_equal(rwk_src_bury(f.listener[2].view, next), 1);
	assert_int_equal(rwk_src_bury(v, next), 0);
	assert_true(rwk_src_is_dead(v, srqn));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fd[0]);
	close(own);
	close(another);
}

/* A child closes the view that it has inherited: its parent keeps its seat, and the child what lies where guards do. */
static void closed_in_child(void **state)
{
	struct rwk_src_view *v = f.listener[0].view;
	uint32_t srqn = rwk_src_srqn(v);
	static char bytes[64];
	const struct iovec iov = {bytes, sizeof(bytes)};
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(rwk_src_publish(v, f.qpn, 0x77, &iov, 1), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char *own = mmap(v->guard, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (own != v->guard)
			_exit(2);
		rwk_src_view_close(v);
		own[0] = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(rwk_src_is_dead(f.listener[1].view, srqn));
}

/* In the first process of a PID namespace, which has a child that is the first of another: they have the same pid. */
static int closed_by_namesake(void)
{
	struct ear e = {0};
	struct listener l;
	pid_t own = getpid(), pid;
	int status;

	listener_open(&l, f.memory, &e);
	if (unshare(CLONE_NEWPID))
		return 2;
	pid = fork();
	if (!pid) {
		if (getpid() != own)
			_exit(3);
		rwk_src_view_close(l.view);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 4;
	return rwk_src_is_dead(l.view, rwk_src_srqn(l.view));
}

/* A child is no less another process when it has its parent's pid. */
static void closed_in_namesake(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWPID : CLONE_NEWPID))
			_exit(77);
		pid = fork();
		if (!pid)
			_exit(closed_by_namesake());
		_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
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
	assert_int_equal(rwk_src_bury(f.listener[0].view, 0), 1);
	assert_int_equal(rwk_src_bury(f.listener[1].view, 0), 0);
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

/* The byte in a member's region, as another one reads it for the target. */
static char read_region(struct rwk_src_view *v, uint32_t key)
{
	char byte = 'x';

	assert_true(rwk_src_step_begin(v, f.qpn));
	rwk_src_reach_read(v, key, RWK_SRC_REACH, &byte, 1);
	rwk_src_step_abandon(v);
	return byte;
}

/*
 * Without /proc nobody knows whose pids are whose: who has a pid that is nobody's here is not taken for dead, nor
 * relied on to be seen when it dies, and no other's memory is touched; one's own is.
 */
static void no_proc(void **state)
{
	struct rwk_src_view *v = f.listener[0].view;
	struct rwk_src_member *other = f.listener[1].view->me;
	uint32_t srqn = rwk_src_srqn(f.listener[1].view);
	const struct iovec iov = {"a", 1};
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	v->pid_space = 0;
	atomic_store(&other->pid_space, 0);
	assert_int_equal(rwk_src_publish(v, f.qpn, 1, &iov, 1), 0);
	assert_int_equal(rwk_src_publish(f.listener[1].view, f.qpn, 2, &iov, 1), 0);
	assert_int_equal(read_region(v, 1), 'a');
	assert_int_equal(read_region(v, 2), 0);
	atomic_store(&other->pid, (uint32_t)pid);
	assert_int_equal(rwk_src_bury(v, 0), 0);
	assert_true(rwk_src_is_alive(v, srqn));
	assert_false(rwk_src_is_seen(v, srqn));
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

/* That member takes a queued packet, in a child that dies before the step has happened. */
static void cut_off(unsigned member, unsigned packet)
{
	struct rwk_src_view *v = f.listener[member].view;
	const struct packet *p = &f.queue[packet];
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (!rwk_src_step_begin(v, p->w.qpn))
			_exit(1);
		v->step.packet = &p->w;
		rwk_rc_packet(v->qp, &p->w, p->bytes, p->len, 1000);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* What is of no meaning is put into the second member's inbox, until that many bytes are in there. */
static void fill(uint64_t bytes)
{
	static const uint8_t nothing[1000];
	const struct rwk_src_member *m = f.listener[1].view->me;
	uint64_t left;

	while ((left = bytes - (m->tail - m->head))) {
		uint64_t record = left > 2080 ? 1040 : left > 1040 ? 520 : left;
		struct rwk_src_piece p = {
			.kind = RWK_SRC_FILLER, .bytes = nothing, .len = record - sizeof(struct rwk_src_record)};

		assert_int_equal(rwk_src_inbox_put(f.listener[0].view, f.speaker.srqn[1], &p), 0);
	}
}

#define HALF (two_size.inbox_bytes / 2)

/*
 * Two Sends are in an inbox by steps that were cut off. However full it is when they come again, they are not turned
 * away: they would come with other numbers then, and twice. What was not in there is.
 */
static void cut_off_when_busy(void **state)
{
	struct rwk_src_view *v = f.listener[1].view;
	uint32_t bytes;

	(void)state;
	post(1, 1);
	post(1, 1);
	assert_int_equal(f.queued, 2);
	serve(0, 1);
	cut_off(0, 0);
	fill(HALF);
	cut_off(0, 0);
	bytes = (sizeof(struct rwk_src_record) + f.queue[0].len + 7) & ~7u;
	fill(2 * HALF - bytes);
	serve(0, 0);
	assert_int_equal(count(0)->no_room, 1); /* for the second */
	assert_int_equal(rwk_src_drain(v, 10), 5);
	fill(HALF + bytes);
	serve(0, 1);
	assert_int_equal(rwk_src_drain(v, 10), 1);
	assert_int_equal(count(0)->turned_away, 0);
	assert_int_equal(count(1)->repeated, 4);
	check_heard(1);
	/* Where there is no room at all one that begins is turned away too: siblings do not wait for it. */
	fill(2 * HALF);
	post(1, 1);
	serve(0, f.queued - 1);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 1);
	assert_int_equal(count(0)->turned_away, 1);
	assert_int_equal(count(0)->no_room, 1);
	assert_int_not_equal(f.answer.w.aeth.syndrome & ~0x1fu, RWK_WIRE_RNR);
}

/*
 * Whose initiator has not agreed to be turned away waits with its number (RNR). It is in no inbox, and has no claim to
 * the half that is for those which have begun.
 */
static void waits_when_busy(void **state)
{
	struct rwk_src_view *v = f.listener[1].view;

	(void)state;
	fill(2 * HALF);
	post(1, 1);
	serve(0, 0);
	assert_int_equal(rwk_src_drain(v, 10), 0);
	fill(HALF + 1040);
	serve(0, 0);
	assert_int_equal(count(0)->turned_away, 2);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 1);
	assert_int_equal(count(0)->qp.rnr_out, 1);
	assert_int_equal(rwk_src_drain(v, 10), 0);
	serve(0, 0);
	assert_int_equal(rwk_src_drain(v, 10), 1);
	check_heard(1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_two(seats),
		with_two(closed_in_child),
		with_two(closed_in_namesake),
		with_two(dead_process),
		with_two(shows_life),
		with_two(no_proc),
		with_two(next_on_the_seat),
		cmocka_unit_test_setup_teardown(cut_off_when_busy, two_open_busy, two_close),
		with_two(waits_when_busy),
		with_two(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
