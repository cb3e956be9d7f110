/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints in one process that do as they are told on standard input, for test_rwk_info_pid; each command is
 * answered by a line "done".
 *
 *   send N LENGTH   the first sends N messages to the second, which receives them
 *   elsewhere       from now on the first sends to the second's port at 198.51.100.7
 *   idle MS         both make progress, so long
 *   fork            a child, which closes its copy of the second, and does nothing for a minute, or until it is killed;
 *                   the answer is its pid
 *   close           the second is closed
 *   open            it is opened again, as another one
 */
#include "base/param.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct rwk_engine *engine[2];
static struct rwk_peer *second;
static unsigned completions;

static void complete(void *owner, const struct rwk_completion *c);
static void merged(void *owner, struct rwk_peer *old, struct rwk_peer *peer);

static const struct rwk_engine_attr attr = {.complete = complete, .merged = merged, .tx_limit = 64, .multi_min = 64};

static void complete(void *owner, const struct rwk_completion *c)
{
	(void)owner;
	if (c->status) {
		fprintf(stderr, "a completion with %s\n", strerror(-c->status));
		exit(1);
	}
	completions++;
}

/* The peer at 198.51.100.7 is one that is known. */
static void merged(void *owner, struct rwk_peer *old, struct rwk_peer *peer)
{
	(void)owner;
	if (second == old)
		second = peer;
}

static void go_elsewhere(void)
{
	struct rwk_address a = {.flags_rank = RWK_ADDR_PARTIAL,
		.nonce_port = rwk_address_port(rwk_engine_address(engine[1])),
		.ip = {[10] = 0xff, [11] = 0xff, [12] = 198, [13] = 51, [14] = 100, [15] = 7}};

	second = rwk_engine_peer(engine[0], &a);
}

static void progress(void)
{
	for (int i = 0; i < 2; i++) {
		if (engine[i])
			rwk_engine_progress(engine[i]);
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void idle(double ms)
{
	for (double end = seconds() + ms / 1e3; seconds() < end;)
		progress();
}

/** One after the other, so that each is received by a receive that waits for it. */
static void send_some(unsigned n, size_t len)
{
	struct iovec out = {calloc(1, len), len}, in = {malloc(len), len};

	for (unsigned i = 0; i < n; i++) {
		completions = 0;
		if (rwk_engine_recv(engine[1], RWK_TAGGED, NULL, &in, 1, 1, 0, 0, &in))
			exit(1);
		while (rwk_engine_send(engine[0], RWK_TAGGED, second, &out, 1, 1, 0, 0, &out))
			progress();
		while (completions < 2)
			progress();
	}
	free(out.iov_base);
	free(in.iov_base);
}

static long fork_one(void)
{
	int closed[2];
	pid_t child;
	char none;

	if (pipe(closed))
		exit(1);
	child = fork();
	if (!child) {
		fclose(stdin);
		fclose(stdout);
		rwk_engine_close(engine[1]);
		close(closed[1]);
		sleep(60);
		_exit(0);
	}
	close(closed[1]);
	if (read(closed[0], &none, 1))
		exit(1);
	close(closed[0]);
	return child;
}

static void open_second(void)
{
	if (rwk_engine_open(&attr, &engine[1]))
		exit(1);
	second = rwk_engine_peer(engine[0], rwk_engine_address(engine[1]));
}

static void obey(const char *line)
{
	unsigned n, value;

	if (sscanf(line, "send %u %u", &n, &value) == 2)
		send_some(n, value);
	else if (sscanf(line, "idle %u", &value) == 1)
		idle(value);
	else if (!strcmp(line, "elsewhere\n"))
		go_elsewhere();
	else if (!strcmp(line, "fork\n"))
		printf("%ld\n", fork_one());
	else if (!strcmp(line, "close\n")) {
		rwk_engine_close(engine[1]);
		engine[1] = NULL;
	} else if (!strcmp(line, "open\n"))
		open_second();
	printf("done\n");
	fflush(stdout);
}

int main(void)
{
	char line[64];

	rwk_param_load();
	if (rwk_engine_open(&attr, &engine[0])) {
		fprintf(stderr, "no endpoint could be opened\n");
		return 1;
	}
	open_second();
	printf("done\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	for (int i = 0; i < 2; i++) {
		if (engine[i])
			rwk_engine_close(engine[i]);
	}
	return 0;
}
