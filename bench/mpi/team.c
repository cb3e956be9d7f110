/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/team.h"

#include "bench/common/options.h"
#include "bench/common/sweep.h"

#include <mpi.h>

static int largest(struct bench_team *team, double *value)
{
	(void)team;
	MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return 0;
}

int bench_mpi_partner(const struct bench_run *r)
{
	int half = r->team->ranks / 2;

	return r->team->rank < half ? r->team->rank + half : r->team->rank - half;
}

int bench_mpi_main(int argc, char **argv, const struct bench_test *test)
{
	char library[MPI_MAX_LIBRARY_VERSION_STRING];
	struct bench_team team = {.library = library, .largest = largest};
	struct bench_options o;
	int rc, len;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &team.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &team.ranks);
	MPI_Get_library_version(library, &len);
	rc = bench_options_parse(argc, argv, test, BENCH_OPTIONS_MPI, !team.rank, &o);
	if (!rc)
		rc = bench_sweep(test, &o, &team);
	else if (rc == 1)
		rc = 0;
	MPI_Finalize();
	return rc < 0 ? 2 : rc;
}
