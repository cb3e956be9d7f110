/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that are threads of one process, for the thread sanitizer to look at: they take packets of four speakers from
 * one socket, put pieces into each other's inboxes, keep early packets for each other, come and go, and make and end
 * targets meanwhile.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "shared_rc/traffic.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

#define HERE    4u /* speakers */
#define THREADS 3u
#define TOTAL   300u /* messages of each speaker */

struct member {
	pthread_t thread;
	struct listener listener;
	struct ear ear;
};

static void *memory;
static int net[2];
static atomic_bool over;
static struct member member[THREADS];
static struct speaker speaker[HERE];
static uint32_t seed = 99;

static rwk_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (rwk_time)t.tv_sec * 1000000000ull + (rwk_time)t.tv_nsec;
}

static int emit(void *user, const struct packet *p)
{
	return send(*(int *)user, p, offsetof(struct packet, bytes) + p->len, MSG_DONTWAIT) < 0 ? -EAGAIN : 0;
}

/* Some of the packets are lost on their way to the domain. */
static int emit_lossy(void *user, const struct packet *p)
{
	return chance(&seed) % 20 ? emit(user, p) : 0;
}

static void *serve(void *arg)
{
	struct member *m = arg;
	struct packet p;

	while (!atomic_load(&over)) {
		int n = 0;

		while (n < 8 && recv(net[1], &p, sizeof(p), MSG_DONTWAIT) > 0) {
			listener_packet(&m->listener, &p, now());
			n++;
		}
		n += rwk_src_pump(m->listener.view, now());
		n += rwk_src_drain(m->listener.view, 100);
		if (!n && !rwk_src_sleep(m->listener.view))
			poll(&(struct pollfd){net[1], POLLIN, 0}, 1, 2);
		rwk_src_bury(m->listener.view, now());
	}
	while (rwk_src_drain(m->listener.view, 100))
		;
	return NULL;
}

/* Comes and goes, and so do targets of its own. */
static void *visit(void *arg)
{
	uint32_t n = 0, qpn;

	(void)arg;
	while (!atomic_load(&over)) {
		struct rwk_src_initiator i = speaker_initiator(HERE + n++ % 2, 256), found;
		struct listener l;
		struct ear e = {0};

		if (listener_open(&l, memory, &e))
			continue;
		if (!rwk_src_target_make(l.view, &i, &qpn)) {
			rwk_src_target_find(l.view, qpn, &found);
			rwk_src_target_end(l.view, qpn);
		}
		rwk_src_view_close(l.view);
	}
	return NULL;
}

static void open_all(void)
{
	memory = segment(8, 8, 1 << 18);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, net), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		member[i].ear.member = i;
		assert_int_equal(listener_open(&member[i].listener, memory, &member[i].ear), 0);
		member[i].listener.emit = emit;
		member[i].listener.user = &net[1];
	}
	for (unsigned i = 0; i < HERE; i++) {
		struct rwk_src_initiator initiator = speaker_initiator(i, 1024);
		uint32_t qpn;

		assert_int_equal(rwk_src_target_make(member[0].listener.view, &initiator, &qpn), 0);
		speaker_open(&speaker[i], i, qpn, 1024);
		speaker[i].emit = emit_lossy;
		speaker[i].user = &net[0];
		for (unsigned j = 0; j < THREADS; j++)
			speaker[i].srqn[j] = rwk_src_srqn(member[j].listener.view);
	}
}

static bool converse(void)
{
	rwk_time until = now() + 120 * 1000000000ull;
	unsigned idle = 0;
	struct packet p;

	while (idle < HERE && now() < until) {
		while (recv(net[0], &p, sizeof(p), MSG_DONTWAIT) > 0)
			speaker_answer(&speaker[p.speaker], &p, now());
		idle = 0;
		for (unsigned i = 0; i < HERE; i++) {
			speaker_speak(&speaker[i], TOTAL, now());
			idle += speaker_idle(&speaker[i]) && speaker_posted(&speaker[i]) == TOTAL;
		}
		poll(&(struct pollfd){net[0], POLLIN, 0}, 1, 1);
	}
	return idle == HERE;
}

static void threads(void **state)
{
	pthread_t visitor;

	(void)state;
	open_all();
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&member[i].thread, NULL, serve, &member[i]), 0);
	assert_int_equal(pthread_create(&visitor, NULL, visit, NULL), 0);
	assert_true(converse());
	atomic_store(&over, true);
	pthread_join(visitor, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(member[i].thread, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		if (member[i].ear.wrong)
			fail_msg("%s", member[i].ear.why);
		for (unsigned j = 0; j < HERE; j++)
			assert_int_equal(member[i].ear.heard[j], speaker[j].posted[i]);
		rwk_src_view_close(member[i].listener.view);
	}
	for (unsigned i = 0; i < HERE; i++)
		speaker_close(&speaker[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
