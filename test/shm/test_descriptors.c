/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels where file descriptors are few. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include <sys/resource.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor_limit),
	};

	return cmocka_run_group_tests_name("shm/descriptors", tests, NULL, NULL);
}
