/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/common/ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(const char *path, struct bench_ticks **ticks)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), rc = 0;
	struct stat st;
	void *at;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (st.st_size < (off_t)sizeof(**ticks))
		rc = -EINVAL;
	at = rc ? MAP_FAILED : mmap(NULL, sizeof(**ticks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!rc && at == MAP_FAILED)
		rc = -errno;
	close(fd);
	if (!rc)
		*ticks = at;
	return rc;
}

int bench_ticks_open(const char *path, const struct bench_team *team, struct bench_ticks **ticks)
{
	int rc = team->ranks > BENCH_TICKS_RANKS ? -E2BIG : map(path, ticks);

	if (rc) {
		fprintf(stderr, "--ticks %s: %s; a file of %zu zeros is needed, for %d ranks at most\n", path,
			strerror(-rc), sizeof(**ticks), BENCH_TICKS_RANKS);
		return rc;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may be stopped when who has started it dies */
	atomic_store(&(*ticks)->pid[team->rank], (uint32_t)getpid());
	return 0;
}
