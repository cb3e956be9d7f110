/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes and Reads of a member's memory, carried out by a sibling whatever the member does (S1-8): its process is
 * stopped, siblings are killed in the middle, the region is withdrawn while they are at it.
 *
 *   this process: the initiator  <--- packets --->  one socket: siblings (processes that take and answer)
 *   owner: a process whose memory is written and read; it never looks at the socket
 *
 * With the argument `full` more siblings are killed. Links: none: datagrams of a Unix socket, in place of those of UDP.
 */
#define _GNU_SOURCE /* MSG_DONTWAIT with unix sockets' flags, pthread_tryjoin_np */
#include "rwk_test.h"

#include "shared_rc/internal.h"
#include "shared_rc/traffic.h"

#include "base/param.h"
#include "base/process.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PMTU     1024u
#define REGION   50000u
#define KEY      0x1234567u
#define SIBLINGS 2u
#define PATIENCE 60 /* seconds */
#define FILL     0xe7

enum order { IDLE, PUBLISH, WITHDRAW, SHOW, CHECK_FILL, NO_COPIES, FIND_NEXT, PUBLISH_NEXT, WITHDRAW_NEXT };

/* What the processes share besides the segment. */
struct board {
	_Atomic uint32_t owner_srqn, order, said; /* an order is taken back when it is done */
	_Atomic uint32_t next, place;             /* another key, and where in the segment it stands as KEY does */
	uint8_t shown[REGION];
	struct ear ear;
	_Atomic uint64_t carried_out[SIBLINGS], not_carried_out[SIBLINGS];
};

static struct board *board;
static void *memory;
static int net[2]; /* [0]: ours */
static pid_t owner, sibling[SIBLINGS];
static uint32_t qpn, seed = 99;
static uint64_t die_after; /* ns of its own processor time that a sibling to be started has; 0: for ever */
static bool full;

static rwk_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (rwk_time)t.tv_sec * 1000000000ull + (rwk_time)t.tv_nsec;
}

static int emit(void *user, const struct packet *p)
{
	(void)user;
	return send(net[1], p, offsetof(struct packet, bytes) + p->len, MSG_DONTWAIT) < 0 ? -EAGAIN : 0;
}

/*
 * The owner: computes, but for what it is told.
 */

/* A sibling that is about to come may have the lock, and no processor: it is waited for. */
static uint32_t publish(struct rwk_src_view *v, uint8_t *region, uint32_t key)
{
	const struct iovec iov[2] = {{region, 20000}, {region + 20000, REGION - 20000}};
	int rc;

	while ((rc = rwk_src_publish(v, qpn, key, iov, 2)) == -EAGAIN)
		usleep(100);
	return (uint32_t)-rc;
}

static uint64_t name_of(uint32_t key)
{
	return (uint64_t)qpn << 32 | key;
}

/* Where a region is that is published by that key for a moment. */
static uint32_t place_of(struct rwk_src_view *v, uint8_t *region, uint32_t key)
{
	uint32_t place = 0;

	publish(v, region, key);
	while (rwk_observe64(rwk_src_key_word(v, place)) != name_of(key))
		place++;
	rwk_src_withdraw(v, qpn, key);
	return place;
}

static uint32_t find_next(struct rwk_src_view *v, uint8_t *region)
{
	uint32_t key = 1, place = place_of(v, region, KEY);

	while (place_of(v, region, key) != place)
		key++;
	atomic_store(&board->next, key);
	atomic_store(&board->place, place);
	return 0;
}

static uint32_t obey(struct rwk_src_view *v, uint8_t *region, uint32_t order)
{
	switch (order) {
	case PUBLISH:
		return publish(v, region, KEY);
	case WITHDRAW:
		rwk_src_withdraw(v, qpn, KEY);
		memset(region, FILL, REGION);
		return 0;
	case SHOW:
		memcpy(board->shown, region, REGION);
		return 0;
	case CHECK_FILL:
		for (size_t i = 0; i < REGION; i++)
			if (region[i] != FILL)
				return 1;
		return 0;
	case FIND_NEXT:
		return find_next(v, region);
	case PUBLISH_NEXT:
		return publish(v, region, atomic_load(&board->next));
	case WITHDRAW_NEXT:
		rwk_src_withdraw(v, qpn, atomic_load(&board->next));
		return 0;
	default:
		rwk_params.cma = RWK_OFF;
		return publish(v, region, KEY);
	}
}

static void owner_process(void)
{
	static uint8_t region[REGION];
	struct listener l = {.emit = emit};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rwk_process_let_in();
	if (listener_join(&l, memory, &board->ear))
		_exit(1);
	atomic_store(&board->owner_srqn, rwk_src_srqn(l.view));
	for (;;) {
		uint32_t order = atomic_load(&board->order);

		if (order) {
			atomic_store(&board->said, obey(l.view, region, order));
			atomic_store(&board->order, IDLE);
		}
		usleep(100);
	}
}

static uint32_t tell(enum order order)
{
	rwk_time until = now() + PATIENCE * 1000000000ull;

	atomic_store(&board->order, order);
	while (atomic_load(&board->order) != IDLE) {
		assert_true(now() < until);
		usleep(100);
	}
	return atomic_load(&board->said);
}

/*
 * Siblings.
 */

static bool take(int fd, struct packet *p)
{
	return recv(fd, p, sizeof(*p), MSG_DONTWAIT) > 0;
}

/* The kernel kills it when it has run so long: so it is always in the middle of something. */
static void set_end(void)
{
	struct itimerspec end = {.it_value = {.tv_nsec = (long)die_after}};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	timer_t timer;

	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &e, &timer) || timer_settime(timer, 0, &end, NULL))
		_exit(2);
}

static void sibling_process(unsigned number)
{
	struct listener l = {.emit = emit};
	struct pollfd poll_net = {net[1], POLLIN, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (die_after)
		set_end();
	if (listener_join(&l, memory, &board->ear))
		_exit(1);
	for (;;) {
		const struct rwk_src_counters *c = rwk_src_get_counters(l.view);
		struct packet p;

		for (int n = 0; n < 16 && take(net[1], &p); n++)
			listener_packet(&l, &p, now());
		rwk_src_pump(l.view, now());
		atomic_store(&board->carried_out[number], c->carried_out);
		atomic_store(&board->not_carried_out[number], c->not_carried_out);
		if (rwk_src_next(l.view))
			poll(&poll_net, 1, 1);
	}
}

static void start_sibling(unsigned number)
{
	sibling[number] = fork();
	assert_true(sibling[number] >= 0);
	if (!sibling[number])
		sibling_process(number);
}

/*
 * The initiator.
 */

struct wish {
	struct rwk_wr wr;
	struct iovec iov;
	bool done;
	int status;
};

static struct rwk_rc *qp;
static void *responder;

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct packet p = {.w = *w};

	(void)user;
	p.w.qpn = qpn;
	for (int i = 0; i < count; i++) {
		memcpy(p.bytes + p.len, payload[i].iov_base, payload[i].iov_len);
		p.len += (uint32_t)payload[i].iov_len;
	}
	return send(net[0], &p, offsetof(struct packet, bytes) + p.len, MSG_DONTWAIT) < 0 ? -EAGAIN : 0;
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct wish *w = rwk_container_of(wr, struct wish, wr);

	(void)user;
	w->status = status;
	w->done = true;
}

static void on_failed(void *user, int err)
{
	(void)user;
	fail_msg("the connection has failed: %s", strerror(-err));
}

static const struct rwk_machine_host initiator_host = {.emit = on_emit, .done = on_done, .failed = on_failed};

static void open_initiator(void)
{
	struct rwk_rc_attr a = {.peer_qpn = qpn,
		.send_psn = speaker_initiator(0, PMTU).psn,
		.pmtu = PMTU,
		.window = RWK_RC_WINDOW_MAX,
		.reads = RWK_RC_READS_MAX,
		.retry = 7,
		.rnr_retry = 7,
		.service = RWK_WIRE_SRC,
		.own = speakers_own,
		.ack_delay = 60000,
		.ack_every = 1,
		.timeout = 2000000,
		.read_chunk = 15 * PMTU};

	responder = calloc(1, rwk_rc_responder_size());
	qp = rwk_rc_open(aligned_alloc(64, (rwk_rc_size() + 63) / 64 * 64), responder, &initiator_host, NULL);
	assert_int_equal(rwk_rc_modify(qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_rc_modify(qp, RWK_QP_RTR, &a), 0);
	assert_int_equal(rwk_rc_modify(qp, RWK_QP_RTS, NULL), 0);
}

static void post_by(struct wish *w, uint32_t key, unsigned type, uint64_t at, void *bytes, size_t len)
{
	*w = (struct wish){.iov = {bytes, len}};
	w->wr = (struct rwk_wr){.type = (uint8_t)type,
		.iov = &w->iov,
		.iov_count = 1,
		.length = len,
		.remote = at | RWK_SRC_REACH,
		.key = key,
		.srqn = atomic_load(&board->owner_srqn)};
	assert_int_equal(rwk_rc_post(qp, &w->wr), 0);
}

static void post(struct wish *w, unsigned type, uint64_t at, void *bytes, size_t len)
{
	post_by(w, KEY, type, at, bytes, len);
}

/* Whoever of the siblings has died gets a successor, who will die, too. */
static void replace_dead(void)
{
	for (unsigned i = 0; die_after && i < SIBLINGS; i++)
		if (waitpid(sibling[i], NULL, WNOHANG) == sibling[i]) {
			die_after = 1000000 + chance(&seed) % 4000000;
			start_sibling(i);
		}
}

static void turn(void)
{
	struct packet p;

	rwk_rc_pump(qp, now());
	while (take(net[0], &p))
		rwk_rc_packet(qp, &p.w, p.bytes, p.len, now());
	replace_dead();
}

static void wait_for(struct wish *w)
{
	rwk_time until = now() + PATIENCE * 1000000000ull;

	while (!w->done) {
		assert_true(now() < until);
		turn();
		usleep(20);
	}
	assert_int_equal(w->status, 0);
}

static uint64_t status_of(uint32_t key)
{
	uint64_t word = 77;
	struct wish w;

	post_by(&w, key, RWK_WR_READ, RWK_SRC_STATUS, &word, sizeof(word));
	wait_for(&w);
	return word;
}

static uint64_t status(void)
{
	return status_of(KEY);
}

static void open_all(void)
{
	struct rwk_src_initiator initiator = speaker_initiator(0, PMTU);
	struct rwk_src_view *maker;
	static const struct rwk_src_host none;
	rwk_time until = now() + PATIENCE * 1000000000ull;

	memory = segment(16, 16, 65536);
	board = shared_memory(sizeof(*board), NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, net), 0);
	assert_int_equal(rwk_src_view_open(memory, &none, NULL, &maker), 0);
	assert_int_equal(rwk_src_target_make(maker, &initiator, &qpn), 0);
	rwk_src_view_close(maker);
	owner = fork();
	assert_true(owner >= 0);
	if (!owner)
		owner_process();
	while (!atomic_load(&board->owner_srqn)) {
		assert_true(now() < until);
		usleep(100);
	}
	for (unsigned i = 0; i < SIBLINGS; i++)
		start_sibling(i);
	open_initiator();
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void close_all(void)
{
	struct rwk_src_size size = {16, 16, 65536};

	die_after = 0;
	end_process(owner);
	for (unsigned i = 0; i < SIBLINGS; i++)
		end_process(sibling[i]);
	free(qp);
	free(responder);
	close(net[0]);
	close(net[1]);
	munmap(memory, rwk_src_segment_size(&size));
	munmap(board, sizeof(*board));
}

static void fill(uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)chance(&seed);
}

/* Writes and Reads everywhere and of every length, some at a time; what is there at the end is what a model says. */
static void go_on_for(unsigned rounds, uint8_t *model)
{
	enum { AT_A_TIME = 6 };
	static uint8_t bytes[AT_A_TIME][REGION];

	for (unsigned i = 0; i < rounds; i++) {
		unsigned n = 1 + chance(&seed) % AT_A_TIME;
		struct wish w[AT_A_TIME];
		size_t at, len;

		for (unsigned j = 0; j < n; j++) {
			at = chance(&seed) % REGION;
			len = chance(&seed) % (chance(&seed) % 3 ? 300 : REGION);
			len = 1 + (len < REGION - at ? len : REGION - at - 1);
			fill(bytes[j], len);
			memcpy(model + at, bytes[j], len);
			post(&w[j], RWK_WR_WRITE, at, bytes[j], len);
		}
		assert_int_equal(status(), 0);
		for (unsigned j = 0; j < n; j++)
			wait_for(&w[j]);
		at = chance(&seed) % REGION;
		len = 1 + chance(&seed) % (REGION - at);
		post(&w[0], RWK_WR_READ, at, bytes[0], len);
		wait_for(&w[0]);
		assert_memory_equal(bytes[0], model + at, len);
	}
}

/* The owner is stopped; its memory is as it should be when it goes on. */
static void owner_stopped(void **state)
{
	static uint8_t model[REGION];

	(void)state;
	open_all();
	memset(model, 0, sizeof(model));
	assert_int_equal(status(), EACCES);
	assert_int_equal(tell(PUBLISH), 0);
	assert_int_equal(tell(PUBLISH), EEXIST);
	kill(owner, SIGSTOP);
	go_on_for(40, model);
	kill(owner, SIGCONT);
	assert_int_equal(tell(SHOW), 0);
	assert_memory_equal(board->shown, model, REGION);
	assert_true(atomic_load(&board->carried_out[0]) + atomic_load(&board->carried_out[1]) > 40);
	close_all();
}

/* And the siblings are killed, again and again, at whatever they are. */
static void siblings_die(void **state)
{
	static uint8_t model[REGION];

	(void)state;
	die_after = 3000000;
	open_all();
	memset(model, 0, sizeof(model));
	assert_int_equal(tell(PUBLISH), 0);
	kill(owner, SIGSTOP);
	go_on_for(full ? 3000 : 50, model);
	kill(owner, SIGCONT);
	assert_int_equal(tell(SHOW), 0);
	assert_memory_equal(board->shown, model, REGION);
	close_all();
}

/* A Write after the withdrawal never lands, and whoever asks is told. */
static void withdrawn(void **state)
{
	static uint8_t bytes[REGION];

	(void)state;
	open_all();
	for (int i = 0; i < 15; i++) {
		struct wish w[3];

		assert_int_equal(tell(PUBLISH), 0);
		for (int j = 0; j < 3; j++)
			post(&w[j], RWK_WR_WRITE, 0, bytes, REGION);
		for (unsigned turns = chance(&seed) % 5; turns; turns--)
			turn();
		assert_int_equal(tell(WITHDRAW), 0);
		for (int j = 0; j < 3; j++)
			wait_for(&w[j]);
		assert_int_equal(status(), EACCES);
		assert_int_equal(tell(CHECK_FILL), 0);
	}
	close_all();
}

static struct rwk_src_layout layout(void)
{
	struct rwk_src_size size;
	struct rwk_src_layout l;

	assert_int_equal(rwk_src_layout_check(memory, &size, &l), 0);
	return l;
}

/* Whose toucher stands in the target now? */
static uint32_t toucher(void)
{
	return atomic_load(&((struct rwk_src_target *)((char *)memory + layout().targets))->toucher);
}

/* By that name something could not be carried out where KEY's region stands, or the next one's. */
static void set_refused(uint32_t key)
{
	struct rwk_src_region *regions = (struct rwk_src_region *)((char *)memory + layout().regions);

	atomic_store(&regions[atomic_load(&board->place)].refused, name_of(key));
}

static void step(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
}

/*
 * The same with a sibling that is stopped k instructions after it has said that it is going to write: before it has
 * seen that the key is gone, or behind that and in front of the copy. The withdrawal does not wait until it goes on.
 * What it could not carry out then is not said of the region that has come to the same place: neither that it refuses
 * nor, if it does, that it does not.
 */
static void stopped_in_front(void **state)
{
	static uint8_t bytes[100];
	unsigned passed = 0, round = 0;
	uint32_t next;

	(void)state;
	open_all();
	assert_int_equal(tell(FIND_NEXT), 0);
	next = atomic_load(&board->next);
	kill(sibling[1], SIGSTOP);
	for (unsigned k = 0; k < 100000 && passed < 3; k += full ? 1 : 1 + k / 8, round++) {
		rwk_time until = now() + PATIENCE * 1000000000ull;
		struct wish w;
		int stopped;

		assert_int_equal(tell(PUBLISH), 0);
		assert_int_equal(ptrace(PTRACE_SEIZE, sibling[0], NULL, NULL), 0);
		assert_int_equal(ptrace(PTRACE_INTERRUPT, sibling[0], NULL, NULL), 0);
		assert_int_equal(waitpid(sibling[0], &stopped, 0), sibling[0]);
		post(&w, RWK_WR_WRITE, 7, bytes, sizeof(bytes));
		rwk_rc_pump(qp, now());
		while (!toucher()) {
			assert_true(now() < until);
			step(sibling[0]);
		}
		for (unsigned i = 0; i < k && toucher(); i++)
			step(sibling[0]);
		passed += !toucher();
		assert_int_equal(tell(WITHDRAW), 0);
		assert_int_equal(tell(PUBLISH_NEXT), 0);
		if (round % 4)
			set_refused(round % 4 == 1 ? KEY : next);
		assert_int_equal(ptrace(PTRACE_DETACH, sibling[0], NULL, NULL), 0);
		wait_for(&w);
		assert_int_equal(status(), EACCES);
		assert_int_equal(status_of(next), round % 4 > 1 ? EOPNOTSUPP : 0);
		post_by(&w, next, RWK_WR_WRITE, REGION - 99, bytes, sizeof(bytes));
		wait_for(&w);
		assert_int_equal(status_of(next), EOPNOTSUPP);
		assert_int_equal(tell(CHECK_FILL), 0);
		assert_int_equal(tell(WITHDRAW_NEXT), 0);
	}
	assert_int_equal(passed, 3); /* all instructions in front of the copy were tried */
	close_all();
}

/* What cannot be carried out is not, and the region says so from then on: beyond its end; the owner is gone. */
static void refused(void **state)
{
	uint8_t bytes[100] = {1};
	struct wish w;

	(void)state;
	open_all();
	assert_int_equal(tell(NO_COPIES), EOPNOTSUPP);
	close_all();
	open_all();
	assert_int_equal(tell(PUBLISH), 0);
	post(&w, RWK_WR_WRITE, REGION - 99, bytes, 100);
	wait_for(&w);
	assert_int_equal(status(), EOPNOTSUPP);
	post(&w, RWK_WR_WRITE, 0, bytes, 100);
	wait_for(&w);
	assert_int_equal(status(), EOPNOTSUPP);
	assert_int_equal(tell(SHOW), 0);
	for (size_t i = 0; i < REGION; i++)
		assert_int_equal(board->shown[i], 0);
	assert_int_equal(tell(WITHDRAW), 0);
	assert_int_equal(tell(PUBLISH), 0);
	assert_int_equal(status(), 0);
	end_process(owner);
	post(&w, RWK_WR_WRITE, 0, bytes, 100);
	wait_for(&w);
	assert_int_not_equal(status(), 0);
	close_all();
}

/* A table that is full says so; the places of who is gone are free. */
static void places(void **state)
{
	static const struct rwk_src_host none;
	const struct iovec iov = {board, 1};
	struct rwk_src_size size = {16, 16, 65536};
	struct rwk_src_view *a, *b;
	uint32_t n = 0, again = 0;

	(void)state;
	memory = segment(16, 16, 65536);
	assert_int_equal(rwk_src_view_open(memory, &none, NULL, &a), 0);
	assert_int_equal(rwk_src_view_open(memory, &none, NULL, &b), 0);
	while (!rwk_src_publish(a, 0x100, n, &iov, 1))
		n++;
	assert_in_range(n, 16, 16 * RWK_SRC_KEYS_EACH);
	assert_int_equal(rwk_src_publish(a, 0x100, n, &iov, 1), -ENOSPC);
	rwk_src_withdraw(b, 0x100, 0); /* not b's */
	assert_int_equal(rwk_src_publish(b, 0x100, 0, &iov, 1), -EEXIST);
	rwk_src_view_close(a);
	while (!rwk_src_publish(b, 0x100, again, &iov, 1))
		again++;
	assert_int_equal(again, n);
	rwk_src_withdraw_all(b, 0x101); /* none of them */
	assert_int_equal(rwk_src_publish(b, 0x100, 0, &iov, 1), -EEXIST);
	rwk_src_withdraw_all(b, 0x100);
	assert_int_equal(rwk_src_publish(b, 0x100, 0, &iov, 1), 0);
	rwk_src_view_close(b);
	munmap(memory, rwk_src_segment_size(&size));
}

/* Of targets that share a place in the directory each loses its own alone, which can be published again. */
static void of_one_place(void **state)
{
	static const struct rwk_src_host none;
	const struct iovec iov = {board, 1};
	struct rwk_src_size size = {16, 16, 65536};
	struct rwk_src_view *v;

	(void)state;
	memory = segment(16, 16, 65536);
	assert_int_equal(rwk_src_view_open(memory, &none, NULL, &v), 0);
	for (uint32_t key = 1; key <= 4; key++) {
		assert_int_equal(rwk_src_publish(v, 0x101, key, &iov, 1), 0);
		assert_int_equal(rwk_src_publish(v, 0x201, key, &iov, 1), 0);
	}
	rwk_src_withdraw(v, 0x101, 2);
	rwk_src_withdraw_all(v, 0x101);
	for (uint32_t key = 1; key <= 4; key++) {
		assert_int_equal(rwk_src_publish(v, 0x201, key, &iov, 1), -EEXIST);
		assert_int_equal(rwk_src_publish(v, 0x101, key, &iov, 1), 0);
	}
	rwk_src_withdraw_all(v, 0x201);
	for (uint32_t key = 1; key <= 4; key++) {
		assert_int_equal(rwk_src_publish(v, 0x101, key, &iov, 1), -EEXIST);
		assert_int_equal(rwk_src_publish(v, 0x201, key, &iov, 1), 0);
	}
	rwk_src_view_close(v);
	munmap(memory, rwk_src_segment_size(&size));
}

static long page_faults(void)
{
	struct rusage u;

	assert_int_equal(getrusage(RUSAGE_THREAD, &u), 0);
	return u.ru_minflt;
}

/* What was published to one is withdrawn without a look at all the places that there are: few pages are touched. */
static void many_places(void **state)
{
	static const struct rwk_src_host none;
	const struct iovec iov = {board, 1};
	struct rwk_src_size size = {16, 4096, 65536};
	struct rwk_src_view *v;
	long before;

	(void)state;
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0); /* pages are to be small */
	memory = segment(16, 4096, 65536);
	assert_int_equal(rwk_src_view_open(memory, &none, NULL, &v), 0);
	assert_int_equal(rwk_src_publish(v, 0x10001, 1, &iov, 1), 0);
	before = page_faults();
	rwk_src_withdraw_all(v, 0x10001);
	rwk_src_withdraw_all(v, 0x10002);
	assert_in_range(page_faults() - before, 0, 20);
	assert_int_equal(rwk_src_publish(v, 0x10001, 1, &iov, 1), 0);
	rwk_src_view_close(v);
	munmap(memory, rwk_src_segment_size(&size));
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

static void *withdraws(void *arg)
{
	pthread_cancel(pthread_self());
	rwk_src_withdraw(arg, 0x100, 1);
	return arg;
}

/* Who waits for a sibling that is at the region is not cancelled before he has stopped waiting. */
static void cancelled_waiter(void **state)
{
	static const struct rwk_src_host none;
	const struct iovec iov = {board, 1};
	struct rwk_src_size size = {16, 16, 65536};
	struct rwk_src_target *target;
	struct rwk_src_view *a, *b;
	bool ended = false;
	uint64_t guard;
	pthread_t id;
	void *got;

	(void)state;
	memory = segment(16, 16, 65536);
	assert_int_equal(rwk_src_view_open(memory, &none, NULL, &a), 0);
	assert_int_equal(rwk_src_view_open(memory, &none, NULL, &b), 0);
	assert_int_equal(rwk_src_publish(a, 0x100, 1, &iov, 1), 0);
	target = rwk_src_target(a, rwk_src_place(a, 0x100));
	rwk_publish32(&target->toucher, rwk_src_srqn(b));
	guard = rwk_observe64(&a->me->guard);
	assert_int_equal(pthread_create(&id, NULL, withdraws, a), 0);
	while (!ended && rwk_observe64(&a->me->guard) == guard) { /* until he has lost his patience */
		ended = !pthread_tryjoin_np(id, &got);
		usleep(100);
	}
	rwk_publish32(&target->toucher, 0);
	if (!ended)
		assert_int_equal(pthread_join(id, &got), 0);
	assert_ptr_equal(got, a);
	rwk_src_view_close(a);
	rwk_src_view_close(b);
	munmap(memory, rwk_src_segment_size(&size));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner_stopped),
		cmocka_unit_test(siblings_die),
		cmocka_unit_test(withdrawn),
		cmocka_unit_test(stopped_in_front),
		cmocka_unit_test(refused),
		cmocka_unit_test(places),
		cmocka_unit_test(of_one_place),
		cmocka_unit_test(many_places),
		cmocka_unit_test(cancelled_waiter),
	};

	full = argc > 1 && !strcmp(argv[1], "full");
	return cmocka_run_group_tests_name("S1-8: a member's memory", tests, NULL, NULL);
}
