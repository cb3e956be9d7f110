/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What FI_ROPEWALK_STATS prints of a port (rwk_packet_summary).
 *
 *   host 0: ends 0 and 2, which share a domain          host 1: end 1, which sends to both
 */
#include "links/ends.h"

#include "packet/port.h"

#include "base/param.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static int heard[2], kept;

static void listen_to(void)
{
	kept = dup(STDERR_FILENO);
	assert_int_equal(pipe(heard), 0);
	dup2(heard[1], STDERR_FILENO);
}

/* What has been said since. */
static const char *what_was_said(void)
{
	static char text[8192];
	ssize_t n;

	dup2(kept, STDERR_FILENO);
	close(kept);
	close(heard[1]);
	n = read(heard[0], text, sizeof(text) - 1);
	close(heard[0]);
	assert_true(n >= 0);
	text[n] = 0;
	return text;
}

/* What a port says of itself. */
static const char *said_by(unsigned i)
{
	listen_to();
	rwk_packet_summary(ends[i]->port);
	return what_was_said();
}

struct domain_line {
	uint64_t itself, for_siblings, from_siblings, acks;
};

static struct domain_line domain_line(unsigned i)
{
	const char *text = said_by(i), *line = strstr(text, "SRC domain: ");
	struct domain_line d = {0};

	if (!line || sscanf(line,
			     "SRC domain: pieces for itself %" SCNu64 ", for siblings %" SCNu64
			     ", from siblings %" SCNu64 ", put into memory 0, not put 0; ACKs out %" SCNu64
			     ", duplicates 0",
			     &d.itself, &d.for_siblings, &d.from_siblings, &d.acks) != 4)
		fail_msg("it says: %s", text);
	assert_non_null(strstr(line, "locked out 0, turned away 0, no room 0, for the dead 0, unknown target 0, wrong "
				     "sender 0\n"));
	return d;
}

/* Messages that end 0 takes from the network, for itself or for end 2, while that one computes. */
static void send_some(unsigned to, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_in_range(ends_post(ends_side(1, to)), 0, 1);
		ends_progress(ends[1]);
		while (rwk_sim_step(ends_net))
			while (ends_progress(ends[0]))
				;
	}
}

static void of_a_domain(void **state)
{
	static const size_t one_piece[] = {8};
	struct domain_line first[3], last[3];

	(void)state;
	ends_lengths = one_piece;
	ends_lengths_count = 1;
	ends_open(NULL, NULL, 3);
	ends_connect(1, 0);
	ends_connect(1, 2);
	for (unsigned to = 0; to < 3; to += 2)
		assert_in_range(ends_post(ends_side(1, to)), 0, 1);
	ends_settle();
	for (unsigned i = 0; i < 3; i++)
		first[i] = domain_line(i);
	send_some(0, 5);
	send_some(2, 7);
	ends_settle();
	assert_int_equal(ends_side(0, 1)->received, 6);
	assert_int_equal(ends_side(2, 1)->received, 8);
	for (unsigned i = 0; i < 3; i++)
		last[i] = domain_line(i);
	assert_int_equal(last[0].itself - first[0].itself, 5);
	assert_int_equal(last[0].for_siblings - first[0].for_siblings, 7);
	assert_in_range(last[0].acks - first[0].acks, 1, 12);
	assert_int_equal(last[2].from_siblings - first[2].from_siblings, 7);
	assert_int_equal(last[2].itself - first[2].itself, 0);
	assert_int_equal(last[1].itself - first[1].itself, 0);
	assert_non_null(strstr(said_by(1), ": SRC/udp to "));
	ends_close();
}

static void of_no_domain(void **state)
{
	const char *text;

	(void)state;
	ends_open_two();
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	ends_settle();
	text = said_by(0);
	if (!strstr(text, ": RC/udp to ") || strstr(text, "SRC"))
		fail_msg("it says: %s", text);
	ends_close();
}

/* A connection that ends before its port is told of when it does, once. */
static void of_one_that_ends(void **state)
{
	const char *text, *first;
	char line[64];

	(void)state;
	ends_open_two();
	snprintf(line, sizeof(line), ": RC/udp to %s", rwk_packet_name(&ends[1]->address));
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	ends_settle();
	rwk_params.stats = true;
	listen_to();
	ends_close_port(1);
	ends_settle();
	ends_close();
	rwk_params.stats = false;
	text = what_was_said();
	first = strstr(text, line);
	if (!first || strstr(first + 1, line))
		fail_msg("it says: %s", text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_ON(of_a_domain, "SRC", sim_shared_transport),
		ENDS_RC(of_no_domain),
		ENDS_RC(of_one_that_ends),
	};

	return cmocka_run_group_tests_name("packet/summary", tests, NULL, NULL);
}
