/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels where file descriptors are few. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 100 }; /* descriptors, where all are taken */

/* With 16 descriptors in all it still works: no peer needs one for long, and evidence of death comes from /proc. */
static int few_descriptors(int fd, void *arg)
{
	struct rlimit limit = {16, 16};
	struct rwk_address to[20];
	struct end *e;

	(void)arg;
	/* What the shell has left open does not count. */
	if (dup2(fd, 3) != 3 || close_range(4, ~0u, 0))
		return 99;
	fd = 3;
	if (setrlimit(RLIMIT_NOFILE, &limit) || !hear(fd, to, sizeof(to)))
		return 100;
	e = end_open(0, true);
	for (unsigned i = 0; i < 20; i++) {
		struct end_peer *p = end_connect(e, &to[i]);

		if (end_send(e, p, 1000, 0, true))
			return 101;
	}
	for (unsigned i = 0; i < 20; i++) {
		if (!end_until(e, &e->peer[i].received, 1, 10000))
			return 102;
	}
	if (e->wrong)
		return 103;
	end_close(e);
	return 0;
}

static void descriptor_limit(void **state)
{
	struct rwk_address address[20];
	struct end *e[20];
	uint64_t end = now_ms() + 30000;
	unsigned done = 0;
	pid_t child;
	int fd;

	(void)state;
	child = child_run(few_descriptors, NULL, &fd);
	for (unsigned i = 0; i < 20; i++) {
		e[i] = end_open(0, true);
		e[i]->echo = true;
		address[i] = e[i]->address;
	}
	assert_true(tell(fd, address, sizeof(address)));
	while (done < 20 && now_ms() < end) {
		done = 0;
		for (unsigned i = 0; i < 20; i++) {
			rwk_shm_transport.progress(e[i]->port);
			done += e[i]->peers == 1 && e[i]->peer[0].failed == -ECONNRESET;
		}
	}
	assert_int_equal(child_wait(child), 0);
	assert_int_equal(done, 20);
	for (unsigned i = 0; i < 20; i++)
		end_close(e[i]);
	close(fd);
}

static void turn_until(struct end *e, const struct rwk_shm_channel *ch, enum rwk_shm_state state)
{
	for (uint64_t end = now_ms() + 10000; ch->state != state && now_ms() < end;)
		rwk_shm_transport.progress(e->port);
	assert_int_equal(ch->state, state);
}

/* Takes all descriptors there are, of at most MOST; returns how many. */
static unsigned take_all(int fd[MOST])
{
	unsigned n = 0;

	while (n < MOST && (fd[n] = dup(0)) >= 0)
		n++;
	assert_true(n < MOST);
	assert_int_equal(errno, EMFILE);
	return n;
}

/* Who has offered, and has never a descriptor for what is answered, says so in the end; the other, who is open, too. */
static void none_for_the_answer(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	bool swap = a->address.nonce_port > b->address.nonce_port;
	struct end *low = swap ? b : a, *high = swap ? a : b;
	struct end_peer *p = end_connect(low, &high->address), *q = &high->peer[0];
	struct rlimit was, few;
	int fd[MOST];
	unsigned taken;

	(void)state;
	assert_true(end_until_peers(high, 1, 10000));
	turn_until(low, rwk_shm_channel(p->ch), RWK_SHM_OFFERED);
	turn_until(high, rwk_shm_channel(q->ch), RWK_SHM_OPEN);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = MOST;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	taken = take_all(fd);
	assert_true(turn_until_failed(low, high, p, 30000));
	assert_true(turn_until_failed(high, low, q, 10000));
	while (taken)
		close(fd[--taken]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(p->failed, -EMFILE);
	assert_int_equal(q->failed, -ECONNRESET);
	end_close(a);
	end_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor_limit),
		cmocka_unit_test(none_for_the_answer),
	};

	return cmocka_run_group_tests_name("shm/descriptors", tests, NULL, NULL);
}
