/* SPDX-License-Identifier: BSD-3-Clause */
/* The port that an endpoint is told to have, on each link: its own, or refused with a line that says which it was. */
#include "own_port.h"
#include "rwk_test.h"
#include "warnings.h"

#include "base/param.h"
#include "engine/engine.h"
#include "engine/job.h"
#include "shm/note.h"

#include <errno.h>
#include <stdio.h>

static void complete(void *owner, const struct rwk_completion *c)
{
	(void)owner;
	(void)c;
}

static int engine_open(uint16_t port, struct rwk_engine **e)
{
	struct rwk_engine_attr attr = {.complete = complete, .tx_limit = 1, .port = port};

	return rwk_engine_open(&attr, e);
}

static void check_refused(uint16_t port)
{
	struct rwk_engine *e;
	char text[16];

	snprintf(text, sizeof(text), "port %u", port);
	warnings_begin();
	assert_int_equal(engine_open(port, &e), -EADDRINUSE);
	warnings_end();
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(last_warning, text));
}

static int set_up(void **state)
{
	setenv("FI_ROPEWALK_LINK", *state, 1);
	return rwk_param_load() || rwk_job_load();
}

static int tear_down(void **state)
{
	(void)state;
	rwk_job_unload();
	return 0;
}

/* An endpoint has it, and another cannot until that is closed. */
static void taken_and_given_back(void **state)
{
	uint16_t port = own_port();
	struct rwk_engine *e;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(engine_open(port, &e), 0);
		assert_int_equal(rwk_address_port(rwk_engine_address(e)), port);
		check_refused(port);
		rwk_engine_close(e);
	}
}

/* On shared memory somebody else has it. */
static void taken_near(void **state)
{
	uint16_t port = own_port();
	int fd = rwk_shm_note_socket();
	struct rwk_engine *e;

	(void)state;
	assert_int_equal(rwk_shm_note_bind(fd, &port), 0);
	check_refused(port);
	close(fd);
	assert_int_equal(engine_open(port, &e), 0);
	rwk_engine_close(e);
}

/* Who wants no certain one gets none of those that somebody might want. */
static void any(void **state)
{
	struct rwk_engine *e;

	(void)state;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(engine_open(0, &e), 0);
		assert_in_range(rwk_address_port(rwk_engine_address(e)), 0x8000, 0xffff);
		rwk_engine_close(e);
	}
}

#define ON_LINK(test, link)                                                                                            \
	{                                                                                                              \
#test " " link, test, set_up, tear_down, link                                                          \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINK(taken_and_given_back, "shm"),
		ON_LINK(taken_and_given_back, "udp"),
		ON_LINK(taken_and_given_back, "tcp"),
		ON_LINK(taken_near, "shm"),
		ON_LINK(taken_near, "udp"),
		ON_LINK(taken_near, "tcp"),
		ON_LINK(any, "shm"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
