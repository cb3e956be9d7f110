/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint ends in the middle of a handshake, and another user takes its names, number and nonce, which all can see:
 * no memory is handed to him, nor is what he writes into some taken for the peer's.
 *
 *   ours  <---- HELLO, OFFER, ACCEPT ---->  a port that goes; taker, a socket with its names, after it
 */
#define _GNU_SOURCE /* struct ucred */
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"
#include "shm/note.h"
#include "shm/segment.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct taker {
	int fd, name;
};

static struct taker take(const struct rwk_address *gone)
{
	struct taker t = {rwk_shm_note_socket(), rwk_shm_note_name(gone->nonce_port)};
	uint16_t number = rwk_address_port(gone);

	assert_int_equal(rwk_shm_note_bind(t.fd, &number), 0);
	assert_true(t.name >= 0);
	return t;
}

/* Descriptors that it has got: none. */
static void got_none(struct taker t)
{
	struct rwk_shm_sender from;
	struct rwk_shm_note note;

	while (rwk_shm_note_receive(t.fd, &note, &from) >= 0)
		assert_int_equal(from.fds, 0);
	close(t.fd);
	close(t.name);
}

/* The pair's memory is made by the lower one. */
static struct end *open_beside(const struct rwk_address *a, bool lower)
{
	struct end *e = end_open(0, false);

	while ((e->address.nonce_port < a->nonce_port) != lower) {
		end_close(e);
		e = end_open(0, false);
	}
	return e;
}

/* Says HELLO to the lower one, tells who it is, and waits to be killed. */
static int asks(int fd, void *arg)
{
	struct end *e = open_beside(arg, false);

	end_connect(e, arg);
	if (tell(fd, &e->address, sizeof(e->address)))
		poll(NULL, 0, 20000);
	return 1;
}

/* Offers to the higher one, which answers its HELLO. */
static int offers(int fd, void *arg)
{
	struct end *e = open_beside(arg, true);
	const struct end_peer *p = end_connect(e, arg);
	uint64_t end = now_ms() + 10000;

	while (rwk_shm_channel(p->ch)->state != RWK_SHM_OFFERED && now_ms() < end)
		rwk_shm_transport.progress(e->port);
	if (tell(fd, &e->address, sizeof(e->address)))
		poll(NULL, 0, 20000);
	return 1;
}

static struct taker kill_and_take(pid_t child, const struct rwk_address *gone)
{
	kill(child, SIGKILL);
	assert_int_equal(child_wait(child), 128 + SIGKILL);
	return take(gone);
}

static void failed_without_a_word(struct end *e, struct taker t)
{
	assert_true(end_until_peers(e, 1, 10000));
	assert_true(end_until_failed(e, &e->peer[0], 10000));
	assert_int_equal(e->peer[0].failed, -ECONNRESET);
	assert_int_equal(e->peer[0].received, 0);
	got_none(t);
}

/* Who has asked is gone when the question is heard, or when what was offered is to be offered again. */
static void asker_gone(void **state)
{
	(void)state;
	for (int offered = 0; offered < 2; offered++) {
		struct end *e = end_open(0, false);
		struct rwk_address a;
		pid_t child;
		int fd;

		child = child_run(asks, &e->address, &fd);
		assert_true(hear(fd, &a, sizeof(a)));
		if (offered)
			assert_true(end_until_peers(e, 1, 10000));
		failed_without_a_word(e, kill_and_take(child, &a));
		close(fd);
		end_close(e);
	}
}

/* It has but closed its port; and the number alone is another's. */
static void asker_closed(void **state)
{
	struct end *e = end_open(0, false), *b = open_beside(&e->address, false);
	struct taker t = {rwk_shm_note_socket(), -1};
	uint16_t number = rwk_address_port(&b->address);

	(void)state;
	end_connect(b, &e->address);
	end_close(b);
	assert_int_equal(rwk_shm_note_bind(t.fd, &number), 0);
	failed_without_a_word(e, t);
	end_close(e);
}

/* Who has offered is gone when that is to be accepted. */
static void offerer_gone(void **state)
{
	struct end *e = end_open(0, false);
	struct pollfd told = {.events = POLLIN};
	struct rwk_address a;
	pid_t child;

	(void)state;
	child = child_run(offers, &e->address, &told.fd);
	/* Hears its HELLO, and nothing after. */
	assert_true(end_until_peers(e, 1, 10000));
	assert_true(hear(told.fd, &a, sizeof(a)));
	failed_without_a_word(e, kill_and_take(child, &a));
	close(told.fd);
	end_close(e);
}

/* Writes a message into the pair that has come to it; false: none has. */
static bool forge(struct taker t)
{
	struct rwk_shm_sender from;
	struct rwk_shm_note note;
	struct rwk_shm_line *line;
	size_t size = 0;
	unsigned char *pair;

	if (rwk_shm_note_receive(t.fd, &note, &from) != sizeof(note) || from.fds != 2)
		return false;
	pair = rwk_shm_segment_map(from.fd[0], &size);
	assert_non_null(pair);
	line = (void *)(pair + rwk_shm_ring_at(((struct rwk_shm_pair_header *)pair)->ring_lines, 1));
	rwk_publish64(&line->word, RWK_SHM_STAMP_FIRST + 7);
	munmap(pair, size);
	close(from.fd[0]);
	close(from.fd[1]);
	return true;
}

static struct end *closing; /* just before it is sent the next descriptors, */
static struct taker *takes; /* and who takes its number, */
static bool forged;         /* and has written into the pair */

ssize_t sendmsg(int fd, const struct msghdr *h, int flags)
{
	struct end *e = closing;
	uint16_t number;
	ssize_t n;

	if (!e || h->msg_controllen <= CMSG_SPACE(sizeof(struct ucred)))
		return syscall(SYS_sendmsg, fd, h, flags);
	number = rwk_address_port(&e->address);
	closing = NULL;
	end_close(e);
	assert_int_equal(rwk_shm_note_bind(takes->fd, &number), 0);
	n = syscall(SYS_sendmsg, fd, h, flags);
	forged = forge(*takes);
	return n;
}

/* It goes in the moment in which it is sent the memory: another may have that, but is not heard. */
static void gone_just_then(void **state)
{
	struct end *e = end_open(0, false), *b = open_beside(&e->address, false);
	struct taker t = {rwk_shm_note_socket(), -1};

	(void)state;
	e->tolerant = true;
	end_connect(b, &e->address);
	closing = b;
	takes = &t;
	assert_true(end_until_peers(e, 1, 10000));
	assert_null(closing);
	assert_true(forged);
	failed_without_a_word(e, t);
	end_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asker_gone),
		cmocka_unit_test(asker_closed),
		cmocka_unit_test(offerer_gone),
		cmocka_unit_test(gone_just_then),
	};

	return cmocka_run_group_tests_name("shm/taken_over", tests, NULL, NULL);
}
