/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels between PID namespaces, which cannot be. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "base/process.h"
#include "shm/note.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

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

/*
 * A process that has said HELLO and ended, and whose number another one has, is no process of another namespace. Here
 * that is our own number: who has said HELLO began at another time.
 */
static void number_of_the_dead(void **state)
{
	struct end *a = end_open(0, true);
	struct rwk_shm_note hello = {.magic = RWK_SHM_NOTE_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.type = RWK_SHM_HELLO,
		.from = a->address,
		.contact = 5,
		.start = rwk_process_start(getpid()) + 1};
	uint16_t number = 0;
	int fd = rwk_shm_note_socket(), name;
	struct end_peer *p;

	(void)state;
	assert_int_equal(rwk_shm_note_bind(fd, &number), 0);
	hello.from.nonce_port = 77ull << 16 | number;
	name = rwk_shm_note_name(hello.from.nonce_port);
	assert_true(name >= 0);
	p = end_connect(a, &hello.from);
	assert_int_equal(rwk_shm_note_send(fd, rwk_address_port(&a->address), &hello, NULL, 0), 0);
	close(name);
	close(fd);
	assert_true(end_until_failed(a, p, 10000));
	assert_int_equal(p->failed, -ECONNRESET);
	end_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_pid_namespaces),
		cmocka_unit_test(number_of_the_dead),
	};

	return cmocka_run_group_tests_name("shm/namespaces", tests, NULL, NULL);
}
