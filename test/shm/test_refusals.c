/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is refused a channel, and how both hear of it: strangers, other users, jobs and builds. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "shm/note.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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
	{"for one that is gone, of another job", {.to = 1ull << 20, .from.job = 1}, true, -ECONNRESET},
	{"for one that is gone, of a later layout", {.to = 1ull << 20, .layout = 1}, true, -ECONNRESET},
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
	int fd = rwk_shm_note_socket(), name;
	struct end_peer *p;

	(void)state;
	assert_int_equal(rwk_shm_note_bind(fd, &number), 0);
	to.nonce_port = 77ull << 16 | number;
	name = rwk_shm_note_name(to.nonce_port);
	assert_true(name >= 0);
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
	close(name);
	end_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unreachable),
		cmocka_unit_test(refused),
		cmocka_unit_test(garbage),
		cmocka_unit_test(another_user),
		cmocka_unit_test(strange_hellos),
		cmocka_unit_test(told_why),
	};

	return cmocka_run_group_tests_name("shm/refusals", tests, NULL, NULL);
}
