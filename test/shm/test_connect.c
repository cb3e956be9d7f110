/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How channels come to be: both at once, by a partial address, with strangers about, with few descriptors, and who is
 * refused.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "shm/note.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Shared by the processes of a test. */
struct board {
	struct rwk_address address[2];
	_Atomic uint32_t turn[2];
	uint32_t channels[2];
};

static struct board *board_new(void)
{
	struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(b, MAP_FAILED);
	return b;
}

static bool meet(struct board *b, int rank, uint32_t turn)
{
	uint64_t end = now_ms() + 10000;

	atomic_store(&b->turn[rank], turn);
	while (atomic_load(&b->turn[!rank]) < turn) {
		if (now_ms() > end)
			return false;
		sched_yield();
	}
	return true;
}

/*
 * One side of a simultaneous connect: both open a port, exchange addresses, connect after a random pause (or not at
 * all, but never both not), send one message, and see the other's.
 */
static int at_once(struct board *b, int rank, unsigned rounds)
{
	unsigned seed = 77;

	for (unsigned i = 1; i <= rounds; i++) {
		unsigned pause[2] = {(unsigned)rand_r(&seed) % 2000, (unsigned)rand_r(&seed) % 2000};
		int who = rand_r(&seed) % 4; /* 0: only the first connects, 1: only the second, else both */
		struct end *e = end_open(0, true);
		struct end_peer *p;
		bool ok;

		b->address[rank] = e->address;
		if (!meet(b, rank, 3 * i))
			return 101;
		for (unsigned k = 0; k < pause[rank]; k++) {
			if (k % 16 == 0)
				rwk_shm_transport.progress(e->port);
		}
		if (who >= 2 || who == rank)
			end_connect(e, &b->address[!rank]);
		if (!end_until_peers(e, 1, 10000))
			return 102;
		p = &e->peer[0];
		ok = end_send(e, p, 20, 0, true) == 0 && end_until(e, &p->received, 1, 10000) && !e->wrong;
		b->channels[rank] += (uint32_t)rwk_shm_port_counters(e->port)->channels;
		if (!ok || e->peers != 1 || p->failed)
			return 103;
		/* The message may still be queued: it must go before we do. */
		while (rwk_shm_transport.progress(e->port) || atomic_load(&b->turn[!rank]) < 3 * i + 1) {
			atomic_store(&b->turn[rank], 3 * i + 1);
			sched_yield();
		}
		if (!meet(b, rank, 3 * i + 2))
			return 104;
		end_close(e);
	}
	return 0;
}

static int at_once_child(int fd, void *arg)
{
	(void)fd;
	return at_once(arg, 1, 1000);
}

/*
 * Two connect to each other at the same moment, a thousand times: always one channel on each side, and it works both
 * ways.
 */
static void both_at_once(void **state)
{
	struct board *b = board_new();
	int fd;
	pid_t child = child_run(at_once_child, b, &fd);

	(void)state;
	assert_int_equal(at_once(b, 0, 1000), 0);
	assert_int_equal(child_wait(child), 0);
	assert_int_equal(b->channels[0], 1000);
	assert_int_equal(b->channels[1], 1000);
	munmap(b, sizeof(*b));
	close(fd);
}

static struct rwk_address partial(const struct rwk_address *a)
{
	struct rwk_address p = {.version_srq = a->version_srq, .flags_rank = RWK_ADDR_PARTIAL};

	p.nonce_port = rwk_address_port(a);
	memcpy(p.ip, a->ip, sizeof(p.ip));
	return p;
}

/* Turns both ports until the goal is reached; the two ends live in one process here. */
static bool turn_both(struct end *a, struct end *b, const uint64_t *value, uint64_t goal)
{
	uint64_t end = now_ms() + 10000;

	while (*value < goal && now_ms() < end) {
		rwk_shm_transport.progress(a->port);
		rwk_shm_transport.progress(b->port);
	}
	return *value >= goal;
}

static bool turn_until_failed(struct end *a, struct end *b, struct end_peer *p, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	while (!p->failed && now_ms() < end) {
		rwk_shm_transport.progress(a->port);
		if (b)
			rwk_shm_transport.progress(b->port);
	}
	return p->failed != 0;
}

/*
 * IP and port are enough; the full address is learned, whichever of the two has the lower nonce, also when both know
 * only that.
 */
static void partial_address(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		struct end *a = end_open(0, false), *b = end_open(0, false);
		struct rwk_address pa = partial(&a->address), pb = partial(&b->address);
		struct end_peer *p = end_connect(a, &pb), *q = NULL;

		if (i & 1)
			q = end_connect(b, &pa);
		assert_int_equal(end_send(a, p, 100, 0, true), 0);
		if (!q)
			q = &b->peer[0];
		assert_true(turn_both(a, b, &q->received, 1));
		assert_int_equal(p->address.nonce_port, b->address.nonce_port);
		assert_int_equal(q->address.nonce_port, a->address.nonce_port);
		assert_int_equal(end_send(b, q, 5000, 0, true), 0);
		assert_true(turn_both(a, b, &p->received, 1));
		assert_int_equal(a->peers + b->peers, 2);
		assert_int_equal(a->wrong + b->wrong, 0);
		end_close(a);
		end_close(b);
	}
}

/* A port number asked for is had, and cannot be had twice. */
static void port_numbers(void **state)
{
	struct end *a = end_open(0, false);
	struct rwk_port_attr attr = {.address = a->address};
	struct rwk_port *port;
	uint16_t number = rwk_address_port(&a->address);

	(void)state;
	assert_int_not_equal(number, 0);
	assert_int_equal(rwk_shm_transport.open(&attr, NULL, NULL, &port), -EADDRINUSE);
	end_close(a);
	a = end_open(number, false);
	assert_int_equal(rwk_address_port(&a->address), number);
	end_close(a);
}

/* Nobody is there: the channel fails; so it does when the port has been opened anew by someone else since. */
static void nobody_home(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false), *c;
	struct rwk_address gone = b->address, half = partial(&gone);
	struct end_peer *p;

	(void)state;
	end_close(b);
	p = end_connect(a, &gone);
	assert_true(end_until_failed(a, p, 10000));
	assert_int_equal(p->failed, -ECONNRESET);
	rwk_params.connect_wait = 0;
	p = end_connect(a, &half);
	assert_true(end_until_failed(a, p, 10000));
	assert_int_equal(p->failed, -ECONNREFUSED);
	rwk_param_load();
	c = end_open(rwk_address_port(&gone), false);
	p = end_connect(a, &gone);
	assert_true(end_send(a, p, 8, 0, true) == 0);
	assert_true(turn_until_failed(a, c, p, 10000));
	assert_int_equal(p->failed, -ECONNRESET);
	assert_int_equal(p->done_error, 1);
	assert_int_equal(c->peers, 0);
	/* A hello, and others if the first was not answered at once. */
	assert_true(rwk_shm_port_counters(c->port)->strangers >= 1);
	end_close(a);
	end_close(c);
}

/*
 * A client that knows IP and port, and begins before its server: what it sends waits, and arrives when the server has
 * come, whether the client polls or sleeps.
 */
static void before_the_server(void **state)
{
	(void)state;
	for (int sleeping = 0; sleeping < 2; sleeping++) {
		struct end *a = end_open(0, false), *b = end_open(0, false);
		struct rwk_address later = partial(&b->address);
		const uint64_t never = 0;
		struct end_peer *p;

		end_close(b);
		p = end_connect(a, &later);
		assert_int_equal(end_post(a, p, 100, 1, 0), 0);
		if (sleeping)
			assert_false(end_sleep_until(a, &never, 1, 300));
		else
			assert_false(end_until(a, &never, 1, 300));
		assert_int_equal(p->failed, 0);
		b = end_open(rwk_address_port(&later), false);
		assert_true(turn_both(a, b, &p->done, 1));
		assert_true(turn_both(a, b, &b->peer[0].received, 1));
		assert_int_equal(p->address.nonce_port, b->address.nonce_port);
		assert_int_equal(a->wrong + b->wrong, 0);
		end_close(a);
		end_close(b);
	}
}

/* The wait has an end, for one who polls and for one who sleeps. */
static void waited_long_enough(void **state)
{
	const uint64_t never = 0;

	(void)state;
	rwk_params.connect_wait = 1;
	for (int sleeping = 0; sleeping < 2; sleeping++) {
		struct end *a = end_open(0, false), *b = end_open(0, false);
		struct rwk_address gone = partial(&b->address);
		uint64_t end = now_ms() + 20000;
		struct end_peer *p;

		end_close(b);
		p = end_connect(a, &gone);
		assert_int_equal(end_post(a, p, 8, 1, 0), 0);
		while (!p->failed && now_ms() < end) {
			if (sleeping)
				end_sleep_until(a, &never, 1, 500);
			else
				end_until(a, &never, 1, 500);
		}
		assert_int_equal(p->failed, -ECONNREFUSED);
		assert_int_equal(p->done_error, 1);
		end_close(a);
	}
	rwk_param_load();
}

/* Whoever cannot be reached through memory is told so at once. */
static void unreachable(void **state)
{
	struct end *a = end_open(0, false);
	struct rwk_address to = a->address;
	struct rwk_channel *ch;

	(void)state;
	assert_int_equal(rwk_shm_transport.connect(a->port, &a->address, NULL, &ch), -EHOSTUNREACH);
	to.nonce_port ^= 1ull << 40 | 1;
	to.node++;
	assert_int_equal(rwk_shm_transport.connect(a->port, &to, NULL, &ch), -EHOSTUNREACH);
	to.node--;
	to.job++;
	assert_int_equal(rwk_shm_transport.connect(a->port, &to, NULL, &ch), -EHOSTUNREACH);
	end_close(a);
}

/* A client that says no: the other's channel fails, and its queued sends with it. */
static void refused(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_connect(a, &b->address);

	(void)state;
	b->refuse = true;
	assert_int_equal(end_post(a, p, 8, 1, 0), 0);
	assert_true(turn_until_failed(a, b, p, 10000));
	assert_int_equal(p->failed, -ECONNREFUSED);
	assert_int_equal(p->done_error, 1);
	assert_int_equal(b->peers, 0);
	end_close(a);
	end_close(b);
}

/* A channel ended by one side fails at the other after all messages were delivered, and a new one can be made. */
static void again_and_again(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct end_peer *p = end_connect(a, &b->address), *q;

		assert_int_equal(end_send(a, p, 8, 0, true), 0);
		assert_true(turn_both(a, b, &p->done, 1));
		for (int k = 0; k < 30; k++)
			assert_int_equal(end_send(a, p, 700, 0, false), 0);
		rwk_shm_transport.disconnect(p->ch);
		p->failed = 1;
		q = &b->peer[i];
		assert_true(turn_until_failed(b, a, q, 10000));
		assert_int_equal(q->failed, -ECONNRESET);
		assert_int_equal(q->received, 31);
		rwk_shm_transport.disconnect(q->ch);
	}
	assert_int_equal(a->wrong + b->wrong, 0);
	end_close(a);
	end_close(b);
}

static int raw_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static socklen_t socket_name(struct sockaddr_un *name, const struct end *e)
{
	int n;

	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "ropewalk.%u", rwk_address_port(&e->address));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Sends it, making progress at the receiver when its queue is full. */
static void raw_send(int fd, struct end *e, const void *bytes, size_t len)
{
	struct sockaddr_un name;
	socklen_t name_len = socket_name(&name, e);
	uint64_t end = now_ms() + 10000;

	while (sendto(fd, bytes, len, MSG_DONTWAIT, (struct sockaddr *)&name, name_len) != (ssize_t)len) {
		assert_int_equal(errno, EAGAIN);
		assert_true(now_ms() < end);
		rwk_shm_transport.progress(e->port);
	}
}

/*
 * One accepts what the other has offered, sends, and closes, but its acceptance finds the other's socket full: what it
 * has sent comes all the same, before the report of its end.
 */
static void accepted_unheard(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	bool swap = a->address.nonce_port > b->address.nonce_port;
	struct end *low = swap ? b : a, *high = swap ? a : b;
	struct end_peer *p = end_connect(high, &low->address);
	struct sockaddr_un name;
	socklen_t len = socket_name(&name, low);
	int fd = raw_socket();
	uint64_t sent;

	(void)state;
	assert_true(end_until_peers(low, 1, 10000)); /* the offer has gone */
	while (sendto(fd, "full", 4, MSG_DONTWAIT, (struct sockaddr *)&name, len) == 4)
		;
	assert_int_equal(errno, EAGAIN);
	assert_true(end_push(high, p, 8, 0));
	while (!end_send(high, p, p->sent * 100 % 5000, 0, false))
		;
	sent = p->sent;
	/* It goes with something queued, asleep: one who reads its ring would wake it, and has not got its inbox. */
	assert_int_equal(end_post(high, p, 8, 1, 0), 0);
	assert_int_equal(rwk_shm_transport.arm(high->port), 0);
	end_close(high);
	assert_true(end_until_failed(low, &low->peer[0], 10000));
	assert_int_equal(low->peer[0].failed, -ECONNRESET);
	assert_int_equal(low->peer[0].received, sent);
	assert_int_equal(low->wrong, 0);
	close(fd);
	end_close(low);
}

/* Garbage of all lengths at the socket is dropped and counted, and does no harm. */
static void garbage(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p;
	unsigned seed = 3;
	int fd = raw_socket();

	(void)state;
	for (int i = 0; i < 2000; i++) {
		unsigned char bytes[200];
		size_t len = i % 3 ? 80 : (size_t)(rand_r(&seed) % 200);

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (unsigned char)rand_r(&seed);
		if (i % 3 == 1) { /* the right beginning */
			bytes[0] = 0x57;
			bytes[1] = 0x4b;
			bytes[2] = 1;
			bytes[3] = (unsigned char)(i % 6);
		}
		if (len == 1)
			continue;
		raw_send(fd, a, bytes, len);
	}
	assert_true(end_until(a, &rwk_shm_port_counters(a->port)->strangers, 1901, 10000));
	assert_int_equal(a->peers, 0);
	p = end_connect(b, &a->address);
	assert_int_equal(end_send(b, p, 8, 0, true), 0);
	assert_true(turn_both(a, b, &a->peer[0].received, 1));
	close(fd);
	end_close(a);
	end_close(b);
}

/* Another user may know the address: he is not answered, and nothing of ours is handed to him. */
static int other_user(int fd, void *arg)
{
	const struct rwk_address *to = arg;
	struct end *e;
	struct pollfd told = {.fd = fd, .events = POLLIN};
	uint64_t end = now_ms() + 10000;
	struct end_peer *p;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 77;
	e = end_open(0, true);
	p = end_connect(e, to);
	/* Asks until it has been heard, and for a while after. */
	while (!poll(&told, 1, 0) && now_ms() < end)
		rwk_shm_transport.progress(e->port);
	if (end_until_failed(e, p, 100) || end_send(e, p, 8, 0, false) != -EAGAIN)
		return 1;
	end_close(e);
	return 0;
}

static void another_user(void **state)
{
	struct end *a = end_open(0, true);
	pid_t child;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	child = child_run(other_user, &a->address, &fd);
	assert_true(end_until(a, &rwk_shm_port_counters(a->port)->strangers, 3, 10000));
	assert_true(tell(fd, "x", 1));
	assert_int_equal(child_wait(child), 0);
	assert_int_equal(a->peers, 0);
	assert_int_equal(rwk_shm_port_counters(a->port)->refused, 0);
	close(fd);
	end_close(a);
}

/* What a stranger's hello differs in from a good one, and how it is answered. */
struct hello {
	const char *what;
	struct rwk_shm_note differs; /* added to a good one */
	bool answered;
	int reason; /* of the refusal; 0: an answer that is none */
};

static const struct hello hellos[] = {
	{"nothing", {.reason = 0}, true, 0},
	{"another job", {.from.job = 1}, true, -EACCES},
	{"a later layout", {.layout = 1}, true, -EPROTONOSUPPORT},
	{"an earlier layout", {.layout = 255}, true, -EPROTONOSUPPORT},
	{"for an endpoint that is gone", {.to = 1ull << 20}, true, -ECONNRESET},
	{"of another port than it came from", {.from.nonce_port = 1}, false, 0},
	{"no number for its channel", {.contact = (uint32_t)-5}, false, 0},
	{"a bell that nobody has", {.bell = RWK_SHM_BELLS}, false, 0},
	{"an unknown type", {.type = 40}, false, 0},
	{"something else", {.magic = 1}, false, 0},
};

static void add(struct rwk_shm_note *to, const struct rwk_shm_note *d)
{
	to->magic = (uint16_t)(to->magic + d->magic);
	to->layout = (uint8_t)(to->layout + d->layout);
	to->type = (uint8_t)(to->type + d->type);
	to->from.job += d->from.job;
	to->from.nonce_port += d->from.nonce_port;
	to->to += d->to;
	to->contact += d->contact;
	to->bell += d->bell;
}

/* Hellos of another job, of another build, or just wrong: the answer says why or there is none; nothing comes of it. */
static void strange_hellos(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hellos) / sizeof(hellos[0]); i++) {
		const struct hello *h = &hellos[i];
		struct end *a = end_open(0, false);
		const struct rwk_shm_port_counters *count = rwk_shm_port_counters(a->port);
		struct rwk_shm_note note = {.magic = RWK_SHM_NOTE_MAGIC,
			.layout = RWK_SHM_LAYOUT_VERSION,
			.type = RWK_SHM_HELLO,
			.from = a->address,
			.to = a->address.nonce_port,
			.contact = 5};
		struct rwk_shm_note answer = {.type = 0};
		struct rwk_shm_sender from = {.fds = 0};
		bool good = h->answered && !h->reason;
		uint64_t events = 0;
		uint16_t number = 0;
		int fd = rwk_shm_note_socket();
		ssize_t n;

		assert_int_equal(rwk_shm_note_bind(fd, &number), 0);
		note.from.nonce_port = 77ull << 16 | number;
		add(&note, &h->differs);
		assert_int_equal(rwk_shm_note_send(fd, rwk_address_port(&a->address), &note, NULL, 0), 0);
		for (uint64_t end = now_ms() + 10000; now_ms() < end && !(events = count->strangers + count->channels);)
			rwk_shm_transport.progress(a->port);
		n = rwk_shm_note_receive(fd, &answer, &from);
		if ((n == (ssize_t)sizeof(answer)) != h->answered || answer.reason != h->reason ||
			(answer.type == RWK_SHM_REFUSE) != (h->reason != 0) || (from.fds && !good) ||
			a->peers != good || events != 1)
			fail_msg("%s: %zd bytes came, type %d, reason %d; %u peers, %d descriptors", h->what, n,
				answer.type, answer.reason, a->peers, from.fds);
		while (from.fds)
			close(from.fd[--from.fds]);
		close(fd);
		end_close(a);
	}
}

/* A peer that refuses us says why, and that is what our client is told. */
static void told_why(void **state)
{
	struct end *a = end_open(0, false);
	struct rwk_address to = a->address;
	struct rwk_shm_note note = {.type = 0}, refusal = {.type = 0};
	struct rwk_shm_sender from;
	uint16_t number = 0;
	int fd = rwk_shm_note_socket();
	struct end_peer *p;

	(void)state;
	assert_int_equal(rwk_shm_note_bind(fd, &number), 0);
	to.nonce_port = 77ull << 16 | number;
	p = end_connect(a, &to);
	assert_int_equal(end_post(a, p, 8, 1, 0), 0);
	for (uint64_t end = now_ms() + 10000; !note.type && now_ms() < end;) {
		rwk_shm_transport.progress(a->port);
		rwk_shm_note_receive(fd, &note, &from);
	}
	assert_int_equal(note.type, RWK_SHM_HELLO);
	refusal = (struct rwk_shm_note){.magic = RWK_SHM_NOTE_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.type = RWK_SHM_REFUSE,
		.reason = -EPROTONOSUPPORT,
		.from = to,
		.to = a->address.nonce_port,
		.to_contact = note.contact};
	assert_int_equal(rwk_shm_note_send(fd, rwk_address_port(&a->address), &refusal, NULL, 0), 0);
	assert_true(end_until_failed(a, p, 10000));
	assert_int_equal(p->failed, -EPROTONOSUPPORT);
	assert_int_equal(p->done_error, 1);
	close(fd);
	end_close(a);
}

/* Of the processes below: runs as the first of a PID namespace of its own, connects, and says how that ended. */
static int talk_from_within(int fd)
{
	struct end *e = end_open(0, true);
	struct rwk_address to;
	struct end_peer *p;

	if (!tell(fd, &e->address, sizeof(e->address)) || !hear(fd, &to, sizeof(to)))
		return 1;
	p = end_connect(e, &to);
	if (end_post(e, p, 8, 1, 0))
		return 2;
	end_until_failed(e, p, 10000);
	if (!tell(fd, &p->failed, sizeof(p->failed)) || p->done_error != 1)
		return 3;
	/* The other one may still need an answer; it closes when it has it. */
	for (struct pollfd over = {.fd = fd, .events = POLLIN}; !poll(&over, 1, 1);)
		rwk_shm_transport.progress(e->port);
	return 0;
}

static int namespace_of_its_own(int fd, void *arg)
{
	pid_t child;

	(void)arg;
	if (unshare(CLONE_NEWPID))
		return 77;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(talk_from_within(fd));
	}
	return child_wait(child);
}

/*
 * One who is in another PID namespace can be neither watched nor copied from. It is an error for both, at once: where
 * one of the two sees the other, and where neither does.
 */
static void other_pid_namespaces(void **state)
{
	struct end *a = end_open(0, true);
	struct rwk_address address[3];
	int fd[3], failed = 0;
	struct end_peer *p;
	pid_t child[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		child[i] = child_run(namespace_of_its_own, NULL, &fd[i]);
		if (!hear(fd[i], &address[i], sizeof(address[i]))) {
			assert_int_equal(child_wait(child[i]), 77);
			skip();
		}
	}
	assert_true(tell(fd[0], &address[1], sizeof(address[1])));
	assert_true(tell(fd[1], &address[0], sizeof(address[0])));
	p = end_connect(a, &address[2]);
	assert_true(tell(fd[2], &a->address, sizeof(a->address)));
	assert_true(end_until_failed(a, p, 10000));
	assert_int_equal(p->failed, -EHOSTUNREACH);
	for (int i = 2; i >= 0; i--) {
		struct pollfd told = {.fd = fd[i], .events = POLLIN};

		for (uint64_t end = now_ms() + 10000; !poll(&told, 1, 1) && now_ms() < end;)
			rwk_shm_transport.progress(a->port);
		assert_true(hear(fd[i], &failed, sizeof(failed)));
		assert_int_equal(failed, -EHOSTUNREACH);
	}
	/* The last one first: it has inherited our ends of the others' sockets. */
	for (int i = 2; i >= 0; i--) {
		close(fd[i]);
		assert_int_equal(child_wait(child[i]), 0);
	}
	end_close(a);
}

/* With 16 descriptors in all it still works: no peer needs one for long, and evidence of death comes from /proc. */
static int few_descriptors(int fd, void *arg)
{
	struct rlimit limit = {16, 16};
	struct rwk_address to[20];
	struct end *e;

	(void)arg;
	/* What the shell has left open does not count. */
	if (dup2(fd, 3) != 3 || close_range(4, ~0u, 0))
		return 99;
	fd = 3;
	if (setrlimit(RLIMIT_NOFILE, &limit) || !hear(fd, to, sizeof(to)))
		return 100;
	e = end_open(0, true);
	for (unsigned i = 0; i < 20; i++) {
		struct end_peer *p = end_connect(e, &to[i]);

		if (end_send(e, p, 1000, 0, true))
			return 101;
	}
	for (unsigned i = 0; i < 20; i++) {
		if (!end_until(e, &e->peer[i].received, 1, 10000))
			return 102;
	}
	if (e->wrong)
		return 103;
	end_close(e);
	return 0;
}

static void descriptor_limit(void **state)
{
	struct rwk_address address[20];
	struct end *e[20];
	uint64_t end = now_ms() + 30000;
	unsigned done = 0;
	pid_t child;
	int fd;

	(void)state;
	child = child_run(few_descriptors, NULL, &fd);
	for (unsigned i = 0; i < 20; i++) {
		e[i] = end_open(0, true);
		e[i]->echo = true;
		address[i] = e[i]->address;
	}
	assert_true(tell(fd, address, sizeof(address)));
	while (done < 20 && now_ms() < end) {
		done = 0;
		for (unsigned i = 0; i < 20; i++) {
			rwk_shm_transport.progress(e[i]->port);
			done += e[i]->peers == 1 && e[i]->peer[0].failed == -ECONNRESET;
		}
	}
	assert_int_equal(child_wait(child), 0);
	assert_int_equal(done, 20);
	for (unsigned i = 0; i < 20; i++)
		end_close(e[i]);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_at_once),
		cmocka_unit_test(partial_address),
		cmocka_unit_test(port_numbers),
		cmocka_unit_test(nobody_home),
		cmocka_unit_test(before_the_server),
		cmocka_unit_test(waited_long_enough),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(refused),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(accepted_unheard),
		cmocka_unit_test(garbage),
		cmocka_unit_test(another_user),
		cmocka_unit_test(strange_hellos),
		cmocka_unit_test(told_why),
		cmocka_unit_test(other_pid_namespaces),
		cmocka_unit_test(descriptor_limit),
	};

	return cmocka_run_group_tests_name("shm/connect", tests, NULL, NULL);
}
