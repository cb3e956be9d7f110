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

int bench_mpi_begin(int argc, char **argv, const struct bench_test *test, enum bench_option_set set,
	struct bench_team *team, struct bench_options *o)
{
	static char library[MPI_MAX_LIBRARY_VERSION_STRING];
	int len;

	MPI_Init(&argc, &argv);
	team->library = library;
	team->largest = largest;
	MPI_Comm_rank(MPI_COMM_WORLD, &team->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &team->ranks);
	MPI_Get_library_version(library, &len);
	return bench_options_parse(argc, argv, test, set, !team->rank, o);
}

int bench_mpi_end(int rc)
{
	MPI_Finalize();
	return rc < 0 ? 2 : rc;
}

int bench_mpi_main(int argc, char **argv, const struct bench_test *test)
{
	struct bench_team team;
	struct bench_options o;
	int rc = bench_mpi_begin(argc, argv, test, BENCH_OPTIONS_MPI, &team, &o);

	if (rc)
		return bench_mpi_end(rc < 0 ? rc : 0);
	return bench_mpi_end(bench_sweep(test, &o, &team));
}
