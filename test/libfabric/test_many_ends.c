/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process with as many endpoints as a SHMEM program has contexts: each shares the connections of its node (SRC),
 * where nothing else is allowed.
 */
#include "fi_pair.h"

#include <stdlib.h>
#include <unistd.h>

#define ENDS 30 /* of each process: with those of the other they fit into the smallest domain */
#define TAG  7

struct side {
	struct t_domain d;
	struct t_end e[ENDS];
	fi_addr_t to[ENDS]; /* its namesake in the other process */
};

static void open_side(struct side *s, struct t_process *p)
{
	unsigned char name[sizeof(s->e->name)];
	struct t_options o = {0};

	setenv("FI_ROPEWALK_SERVICE", "src", 1);
	t_domain_open_with(&s->d, t_hints());
	for (int i = 0; i < ENDS; i++) {
		t_end_open(&s->e[i], &s->d, &o);
		o.cq = s->e[0].cq;
		t_say(p, s->e[i].name, sizeof(name));
		t_hear(p, name, sizeof(name));
		s->to[i] = t_insert(&s->e[i], name);
	}
}

static void close_side(struct side *s)
{
	for (int i = 0; i < ENDS; i++)
		assert_int_equal(fi_close(&s->e[i].ep->fid), 0);
	for (int i = 0; i < ENDS; i++)
		assert_int_equal(fi_close(&s->e[i].av->fid), 0);
	assert_int_equal(fi_close(&s->e[0].cq->fid), 0);
	t_domain_close(&s->d);
}

static void exchanges(struct t_process *p)
{
	struct fi_cq_tagged_entry entry;
	unsigned left = 2 * ENDS;
	struct side s;

	open_side(&s, p);
	for (int i = 0; i < ENDS; i++)
		t_post(fi_trecv(s.e[i].ep, NULL, 0, NULL, s.to[i], TAG, 0, NULL), s.e[0].cq, NULL);
	for (int i = 0; i < ENDS; i++)
		t_post(fi_tsend(s.e[i].ep, NULL, 0, NULL, s.to[i], TAG, NULL), s.e[0].cq, NULL);
	for (int64_t end = t_now() + T_PATIENCE; left && t_now() < end;) {
		ssize_t n = fi_cq_read(s.e[0].cq, &entry, 1);

		assert_true(n == 1 || n == -FI_EAGAIN);
		left -= n == 1;
	}
	assert_int_equal(left, 0);
	t_meet(p, s.e[0].cq);
	close_side(&s);
}

static void test_all_share(void **state)
{
	char key[32];

	(void)state;
	/* a job of its own: tests that run at the same time would take seats in its domain */
	snprintf(key, sizeof(key), "many_ends %d", (int)getpid());
	setenv("FI_ROPEWALK_JOB_KEY", key, 1);
	t_two("udp", exchanges, exchanges, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
