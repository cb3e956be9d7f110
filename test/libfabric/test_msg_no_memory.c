/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_MSG: memory that is lacking, at any place, is told: by the call, or by an event where that has succeeded. The
 * provider, as everybody else, takes its memory from the calloc that is here.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "fi_msg.h"

#include <dlfcn.h>

#define MOST 100 /* that any step takes */

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size);

static struct t_side client, server;
static unsigned left; /* the last of so many is refused; 0: none is */
static bool refused;

void *calloc(size_t count, size_t size)
{
	static void *(*next)(size_t count, size_t size);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "calloc");
	if (left && !--left) {
		refused = true;
		errno = ENOMEM;
		return NULL;
	}
	return next(count, size);
}

static void lack(unsigned nth)
{
	left = nth;
	refused = false;
}

/* Whether all was there. */
static bool lacked_nothing(void)
{
	left = 0;
	return !refused;
}

static int ask(void)
{
	return fi_connect(client.ep, &server.name, NULL, 0);
}

static int answer(void)
{
	return fi_accept(server.ep, NULL, 0);
}

/* A call that says that there is no memory has done nothing, and may be repeated. Returns whether all was there. */
static bool lacking_in(int (*call)(void), unsigned nth)
{
	int err;

	lack(nth);
	err = call();
	if (lacked_nothing()) {
		assert_int_equal(err, 0);
		return true;
	}
	if (err) {
		assert_int_equal(err, -FI_ENOMEM);
		assert_int_equal(call(), 0);
	}
	return false;
}

static void be_seen(void)
{
	struct t_event e = t_side_event(&server, &client, FI_CONNREQ);

	t_side_endpoint(&server, e.info);
	fi_freeinfo(e.info);
}

static void in_calls(void **state)
{
	bool all = false;

	(void)state;
	for (unsigned nth = 1; !all; nth++) {
		assert_true(nth < MOST);
		t_sides_listen(&client, &server, NULL);
		t_side_endpoint(&client, NULL);
		all = lacking_in(ask, nth);
		be_seen();
		all &= lacking_in(answer, nth);
		t_side_event(&client, &server, FI_CONNECTED);
		t_side_event(&server, &client, FI_CONNECTED);
		t_sides_close(&client, &server);
	}
}

/* The side's next event; 0: none yet; -FI_EAVAIL: an error, which is taken. */
static int heard(struct t_side *s)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_cm_entry entry;
	uint32_t number;
	ssize_t n = fi_eq_read(s->eq, &number, &entry, sizeof(entry), 0);

	if (n == -FI_EAGAIN)
		return 0;
	if (n > 0)
		return (int)number;
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(s->eq, &err, 0), sizeof(err));
	return -FI_EAVAIL;
}

/* Both have heard something. */
static void both_hear(int event[2])
{
	int64_t end = t_now() + T_PATIENCE;

	event[0] = event[1] = 0;
	while (!event[0] || !event[1]) {
		assert_true(t_now() < end);
		if (!event[0])
			event[0] = heard(&client);
		if (!event[1])
			event[1] = heard(&server);
	}
}

/* Both ends hear that they are connected, or that they are not; and if they are, of the end. */
static void in_between(void **state)
{
	bool all = false;
	int event[2];

	(void)state;
	for (unsigned nth = 1; !all; nth++) {
		assert_true(nth < MOST);
		t_sides_listen(&client, &server, NULL);
		t_side_endpoint(&client, NULL);
		assert_int_equal(ask(), 0);
		be_seen();
		assert_int_equal(answer(), 0);
		lack(nth);
		both_hear(event);
		all = lacked_nothing();
		if (event[0] == FI_CONNECTED && event[1] == FI_CONNECTED) {
			lack(nth);
			fi_shutdown(client.ep, 0); /* it may be known already that the server has gone */
			both_hear(event);
			all &= lacked_nothing();
			assert_int_equal(event[0], FI_SHUTDOWN);
			assert_int_equal(event[1], FI_SHUTDOWN);
		}
		t_sides_close(&client, &server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_calls),
		cmocka_unit_test(in_between),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
