/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels to somebody who is not there: no more, not yet, or never. */
#include "rwk_test.h"

#include "ends.h"

#include "shm/note.h"

#include <unistd.h>

/* Nobody is there: the channel fails; so it does when the port has been opened anew by someone else since. */
static void nobody_home(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(own_number(), false), *c;
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
	end_close(a);
	end_close(c);
}

/*
 * Who is gone is missed, though its number is another port's by now, to which we have a channel: that one says so, or
 * the name with the nonce is nobody's.
 */
static void succeeded(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct end *a = end_open(0, false), *b = end_open(own_number(), false), *c;
		struct rwk_address gone = b->address;
		struct end_peer *p, *q;
		int name = -1;

		end_close(b);
		c = end_open(rwk_address_port(&gone), false);
		q = end_meet(a, c);
		if (named) {
			name = rwk_shm_note_name(gone.nonce_port);
			assert_true(name >= 0);
		}
		p = end_connect(a, &gone);
		assert_int_equal(end_post(a, p, 8, 1, 0), 0);
		assert_true(turn_until_failed(a, c, p, 10000));
		assert_int_equal(p->failed, -ECONNRESET);
		assert_int_equal(p->done_error, 1);
		assert_int_equal(q->failed, 0);
		if (named)
			close(name);
		end_close(a);
		end_close(c);
	}
}

/*
 * So is one whose number another user's port has, which says nothing to us. Here it is a socket that is read and not
 * listened to; the one that was asked goes while it is awaited.
 */
static void succeeded_silently(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(own_number(), false);
	struct rwk_address gone = b->address;
	uint16_t number = rwk_address_port(&gone);
	struct rwk_shm_sender from;
	struct rwk_shm_note note;
	int fd = rwk_shm_note_socket(), name;
	unsigned heard = 0;
	struct end_peer *p;

	(void)state;
	end_close(b);
	assert_int_equal(rwk_shm_note_bind(fd, &number), 0);
	name = rwk_shm_note_name(gone.nonce_port);
	assert_true(name >= 0);
	p = end_connect(a, &gone);
	assert_int_equal(end_post(a, p, 8, 1, 0), 0);
	for (uint64_t end = now_ms() + 10000; !p->failed && now_ms() < end;) {
		rwk_shm_transport.progress(a->port);
		if (rwk_shm_note_receive(fd, &note, &from) < 0 || ++heard != 3)
			continue;
		close(name);
	}
	assert_int_equal(heard, 3);
	assert_int_equal(p->failed, -ECONNRESET);
	assert_int_equal(p->done_error, 1);
	close(fd);
	end_close(a);
}

/*
 * A client that knows IP and port, and begins before its server: what it sends waits, and arrives when the server has
 * come, whether the client polls or sleeps.
 */
static void before_the_server(void **state)
{
	(void)state;
	for (int sleeping = 0; sleeping < 2; sleeping++) {
		struct end *a = end_open(0, false), *b = end_open(own_number(), false);
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
		struct end *a = end_open(0, false), *b = end_open(own_number(), false);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_home),
		cmocka_unit_test(succeeded),
		cmocka_unit_test(succeeded_silently),
		cmocka_unit_test(before_the_server),
		cmocka_unit_test(waited_long_enough),
	};

	return cmocka_run_group_tests_name("shm/absent", tests, NULL, NULL);
}
