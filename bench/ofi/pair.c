/* SPDX-License-Identifier: BSD-3-Clause */
/* The two processes: from the command line to the exit status. */
#include "bench/ofi/one_sided.h"

#include "bench/common/cpu.h"
#include "bench/common/sweep.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int exit_status(int rc)
{
	return rc < 0 ? 2 : rc;
}

static int run_rank(struct bench_pair *p, const struct bench_test *test, const struct bench_options *o)
{
	int rc = bench_pair_open(p, o);

	if (!rc && p->one_sided)
		rc = bench_pair_expose(p, bench_buffer_bytes(test, o, &p->team));
	if (!rc)
		rc = bench_sweep(test, o, &p->team);
	bench_pair_conceal(p);
	bench_pair_close(p);
	close(p->channel);
	return exit_status(rc);
}

/* The child's exit status; a child that does not end is killed. */
static int reap_child(pid_t child)
{
	int status;

	for (int tenths = 0; tenths < 10 * BENCH_PATIENCE; tenths++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
		usleep(100000 / (tenths ? 1 : 10));
	}
	fprintf(stderr, "rank 1 does not end and is killed\n");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return 2;
}

static int run_pair(int argc, char **argv, const struct bench_test *test, const struct bench_pair_test *one_sided)
{
	struct bench_pair p = {.team = {.ranks = 2, .largest = bench_pair_largest}, .one_sided = one_sided};
	struct bench_options o;
	int rc, child_rc, ends[2];

	rc = bench_options_parse(argc, argv, test, BENCH_OPTIONS_FABRIC, true, &o);
	if (rc)
		return rc < 0 ? 2 : 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		perror("socketpair");
		return 2;
	}
	fflush(NULL);
	p.child = fork();
	if (p.child < 0) {
		perror("fork");
		return 2;
	}
	p.team.rank = !p.child;
	p.channel = ends[p.team.rank];
	close(ends[!p.team.rank]);
	bench_bind_to_cpu(p.team.rank);
	if (!p.child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return run_rank(&p, test, &o);
	}
	rc = run_rank(&p, test, &o);
	child_rc = reap_child(p.child);
	return rc > child_rc ? rc : child_rc;
}

int bench_pair_main(int argc, char **argv, const struct bench_test *test)
{
	return run_pair(argc, argv, test, NULL);
}

int bench_pair_one_sided_main(int argc, char **argv, const struct bench_pair_test *test)
{
	return run_pair(argc, argv, &test->test, test);
}
