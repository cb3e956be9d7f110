/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that is taken out of the address vector and put in again, while both endpoints live on: over each link. Its
 * connection stays, since a removal is one vector's matter, and the peer may still send.
 */
#include "fi_test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG 1000000

static struct t_domain d;

static int open_domain(void **state)
{
	t_domain_open(&d, *(const uint32_t *)*state, FI_THREAD_SAFE);
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_domain_close(&d);
	return 0;
}

/* One byte, from anyone: the number that its sender has. */
static fi_addr_t send_byte(struct t_end *from, fi_addr_t number, struct t_end *to)
{
	fi_addr_t source;
	char in = 0;

	assert_int_equal(fi_trecv(to->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
	t_post(fi_tinject(from->ep, "x", 1, number, 0), from->cq, to->cq);
	t_wait(to->cq, from->cq, &source);
	assert_int_equal(in, 'x');
	return source;
}

static void out_and_in_again(void **state)
{
	char *out = malloc(LONG), *in = malloc(LONG);
	struct t_end a, b;
	fi_addr_t to_a, to_b;

	(void)state;
	t_end_open(&a, &d, NULL);
	t_end_open(&b, &d, NULL);
	to_b = t_insert(&a, b.name);
	to_a = t_insert(&b, a.name);
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(send_byte(&a, to_b, &b), to_a);
		assert_int_equal(send_byte(&b, to_a, &a), to_b);
		/* What is under way goes on. */
		t_fill(out, LONG, round);
		memset(in, 0, LONG);
		t_post(fi_tsend(a.ep, out, LONG, NULL, to_b, 7, out), a.cq, b.cq);
		assert_int_equal(fi_av_remove(a.av, &to_b, 1, 0), 0);
		assert_int_equal(fi_tinject(a.ep, "x", 1, to_b, 0), -FI_EINVAL);
		assert_int_equal(fi_trecv(b.ep, in, LONG, NULL, to_a, 7, 0, in), 0);
		t_wait(b.cq, a.cq, NULL);
		t_wait(a.cq, b.cq, NULL);
		t_check(in, LONG, round);
		/* It is heard, and has no number. */
		assert_int_equal(send_byte(&b, to_a, &a), FI_ADDR_NOTAVAIL);
		to_b = t_insert(&a, b.name);
		assert_int_equal(send_byte(&b, to_a, &a), to_b);
	}
	assert_int_equal(send_byte(&a, to_b, &b), to_a);
	t_end_close(&a);
	t_end_close(&b);
	free(out);
	free(in);
}

/* Parameters are read once: a process for each link. */
static int over(const char *link)
{
	static uint32_t formats[] = {0, FI_SOCKADDR_IN};
	const struct CMUnitTest tests[] = {
		{"native", out_and_in_again, open_domain, close_domain, &formats[0]},
		{"FI_SOCKADDR_IN", out_and_in_again, open_domain, close_domain, &formats[1]},
	};
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("FI_ROPEWALK_LINK", link, 1);
		t_use_provider();
		exit(cmocka_run_group_tests_name(link, tests, NULL, NULL));
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
	return over("shm") + over("udp") + over("tcp");
}
