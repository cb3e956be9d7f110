/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port has sent to those who do not look: it neither fills their queues nor keeps the port from waking others.
 *
 *   a ----> silent[]    have ports, and compute
 *   a ----> b           talks with a, and sleeps
 */
#include "rwk_test.h"

#include "ends.h"

#include "shm/note.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENT = 16, RETRIES = 250 }; /* RETRIES: milliseconds, beyond the longest gap between two tries */

/* What lies at that port, taken out of its queue without being heard. */
static unsigned take_unread(struct end *e)
{
	struct rwk_shm_sender from;
	struct rwk_shm_note note;
	unsigned n = 0;

	while (rwk_shm_note_receive(e->port->sock, &note, &from) >= 0)
		n++;
	return n;
}

/* Lets the handshakes of `e` come to what they would in so many milliseconds. */
static void let_pass(struct end *e, unsigned ms)
{
	for (; ms; ms--) {
		e->port->now++;
		rwk_shm_attach_retry(e->port);
	}
}

/* Who computes finds one HELLO, and after long not many more; as soon as it is read another one may come. */
static void asked_once(void **state)
{
	struct end *a = end_open(0, false), *silent = end_open(0, false);

	(void)state;
	end_connect(a, &silent->address);
	let_pass(a, 900);
	assert_int_equal(take_unread(silent), 1);
	let_pass(a, RETRIES);
	assert_int_equal(take_unread(silent), 1);
	let_pass(a, 60000);
	assert_in_range(take_unread(silent), 2, 4);
	end_close(a);
	end_close(silent);
}

/* Who looks at last is there, though nothing was repeated; and so is who is asked while others do not look. */
static void answered_late(void **state)
{
	struct end *a = end_open(0, false), *silent = end_open(0, false), *late = end_open(0, false);
	struct end_peer *p;

	(void)state;
	end_connect(a, &silent->address);
	p = end_connect(a, &late->address);
	let_pass(a, 900);
	assert_int_equal(end_send(a, p, 8, 0, true), 0);
	assert_true(turn_both(a, late, &p->done, 1));
	end_close(a);
	end_close(silent);
	end_close(late);
}

/* Who goes with the question unread is missed, though others still have theirs unread. */
static void gone_unanswered(void **state)
{
	struct end *a = end_open(0, false), *silent = end_open(0, false), *gone = end_open(0, false);
	struct end_peer *p;

	(void)state;
	end_connect(a, &silent->address);
	p = end_connect(a, &gone->address);
	let_pass(a, 300);
	end_close(gone);
	assert_int_equal(p->failed, 0);
	let_pass(a, RETRIES);
	assert_true(end_until_failed(a, p, 10000));
	assert_int_equal(p->failed, -ECONNRESET);
	assert_int_equal(take_unread(silent), 1);
	end_close(a);
	end_close(silent);
}

/* Two who have met, of whom `b` sleeps, and so many who do not look that the socket of `a` has no room any more. */
struct crowd {
	struct end *a, *b, *silent[SILENT];
	struct end_peer *p;
};

static void crowd_open(struct crowd *c)
{
	int least = 1;

	c->a = end_open(0, false);
	c->b = end_open(0, false);
	c->p = end_meet(c->a, c->b);
	assert_true(turn_both(c->a, c->b, &c->p->done, 1));
	assert_int_equal(setsockopt(c->a->port->sock, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	for (int i = 0; i < SILENT; i++) {
		c->silent[i] = end_open(0, false);
		end_connect(c->a, &c->silent[i]->address);
	}
	/* There was no room for the last one's HELLO. */
	assert_int_equal(take_unread(c->silent[SILENT - 1]), 0);
	while (rwk_shm_transport.arm(c->b->port))
		rwk_shm_transport.progress(c->b->port);
}

static void crowd_close(struct crowd *c)
{
	end_close(c->a);
	end_close(c->b);
	for (int i = 0; i < SILENT; i++)
		end_close(c->silent[i]);
}

/* A sleeper is woken all the same. */
static void wakes_from_a_crowd(void **state)
{
	struct crowd c;
	struct pollfd fd = {.events = POLLIN};

	(void)state;
	crowd_open(&c);
	fd.fd = rwk_shm_transport.wait_fd(c.b->port);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(end_send(c.a, c.p, 8, 0, false), 0);
	assert_int_equal(poll(&fd, 1, 20000), 1);
	assert_true(end_until(c.b, &c.b->peer[0].received, c.p->sent, 10000));
	crowd_close(&c);
}

/* Where there is no descriptor either, it is woken as soon as that can be done. */
static void wakes_later(void **state)
{
	struct crowd c;
	struct pollfd fd = {.events = POLLIN};
	struct rlimit was, none;

	(void)state;
	crowd_open(&c);
	fd.fd = rwk_shm_transport.wait_fd(c.b->port);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(end_send(c.a, c.p, 8, 0, false), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(c.a->port->wakes_owed, 1);
	for (uint64_t end = now_ms() + 10000; now_ms() < end && poll(&fd, 1, 0) != 1;) {
		for (int i = 0; i < SILENT; i++)
			take_unread(c.silent[i]);
		rwk_shm_transport.progress(c.a->port);
	}
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(c.a->port->wakes_owed, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(end_until(c.b, &c.b->peer[0].received, c.p->sent, 10000));
	crowd_close(&c);
}

enum { ASKERS = 40 };

/* The lowest of them comes first: it offers, to whoever asks. */
static void lowest_first(struct end **e, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		struct end *low = e[0]->address.nonce_port < e[i]->address.nonce_port ? e[0] : e[i];

		e[i] = low == e[0] ? e[i] : e[0];
		e[0] = low;
	}
}

/* Many ask, and compute while they are offered what they have asked for: the next one is served all the same. */
static void offered_to_many(void **state)
{
	struct end *e[1 + ASKERS + 1], *next;
	struct end_peer *p;

	(void)state;
	for (unsigned i = 0; i < 1 + ASKERS + 1; i++)
		e[i] = end_open(0, false);
	lowest_first(e, 1 + ASKERS + 1);
	for (unsigned i = 1; i <= ASKERS; i++) {
		end_connect(e[i], &e[0]->address);
		assert_true(end_until_peers(e[0], i, 10000));
		assert_int_equal(rwk_shm_channel(e[0]->peer[i - 1].ch)->state, RWK_SHM_OFFERED);
	}
	next = e[ASKERS + 1];
	p = end_connect(next, &e[0]->address);
	assert_int_equal(end_send(next, p, 8, 0, true), 0);
	assert_true(turn_both(e[0], next, &e[0]->peer[ASKERS].received, 1));
	for (unsigned i = 0; i < 1 + ASKERS + 1; i++)
		end_close(e[i]);
}

/*
 * One accepts what it is offered, and finds the queue full of what others have said: it answers as soon as there is
 * room, and who has offered need not do so again.
 */
static void accepts_later(void **state)
{
	struct end *e[2] = {end_open(0, false), end_open(0, false)};
	const struct rwk_shm_channel *offered, *asked;
	struct sockaddr_un name;
	int fd = raw_socket();
	socklen_t len;

	(void)state;
	lowest_first(e, 2);
	asked = rwk_shm_channel(end_connect(e[1], &e[0]->address)->ch);
	assert_true(end_until_peers(e[0], 1, 10000));
	offered = rwk_shm_channel(e[0]->peer[0].ch);
	len = socket_name(&name, e[0]);
	while (sendto(fd, "full", 4, MSG_DONTWAIT, (struct sockaddr *)&name, len) == 4)
		;
	for (uint64_t end = now_ms() + 10000; asked->state != RWK_SHM_OPEN && now_ms() < end;)
		rwk_shm_transport.progress(e[1]->port);
	rwk_shm_attach_poll(e[0]->port);
	assert_int_equal(offered->state, RWK_SHM_OFFERED);
	let_pass(e[1], 50);
	rwk_shm_attach_poll(e[0]->port);
	assert_int_equal(offered->state, RWK_SHM_OPEN);
	let_pass(e[1], 1000);
	assert_int_equal(take_unread(e[0]), 0);
	close(fd);
	end_close(e[0]);
	end_close(e[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asked_once),
		cmocka_unit_test(answered_late),
		cmocka_unit_test(gone_unanswered),
		cmocka_unit_test(wakes_from_a_crowd),
		cmocka_unit_test(wakes_later),
		cmocka_unit_test(offered_to_many),
		cmocka_unit_test(accepts_later),
	};

	return cmocka_run_group_tests_name("shm/unread", tests, NULL, NULL);
}
