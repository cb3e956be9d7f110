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
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

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

static int socket_at(int type, uint16_t port)
{
	const struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, type, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_true(type != SOCK_STREAM || !listen(fd, 1));
	return fd;
}

/* All that it may have is taken, by that type of socket: that is said, once. */
static void range_taken_by(int type)
{
	uint16_t port = own_port();
	int fd = socket_at(type, port);
	struct rwk_engine *e;
	char range[16], text[16];

	snprintf(range, sizeof(range), "%u-%u", port, port);
	snprintf(text, sizeof(text), "%u", port);
	setenv("FI_ROPEWALK_PORTS", range, 1);
	assert_int_equal(rwk_param_load(), 0);
	warnings_begin();
	assert_int_equal(engine_open(0, &e), -EADDRINUSE);
	warnings_end();
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(last_warning, text));
	close(fd);
	assert_int_equal(engine_open(0, &e), 0);
	assert_int_equal(rwk_address_port(rwk_engine_address(e)), port);
	rwk_engine_close(e);
	unsetenv("FI_ROPEWALK_PORTS");
}

static void range_taken(void **state)
{
	(void)state;
	range_taken_by(SOCK_DGRAM);
	range_taken_by(SOCK_STREAM);
}

#define ON_LINK(test, link) cmocka_unit_test_prestate_setup_teardown(test, set_up, tear_down, link)

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
		ON_LINK(range_taken, "udp"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
