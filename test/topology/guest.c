/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of test/topology/run_launchers: makes its job map and prints one line of it, for the script to compare.
 * Whatever the map did to PMIx, the host program must not notice: MPI goes on working, and where PMIx was not
 * initialised it is not afterwards.
 *
 *     guest [mpi] [loaded] [on|off] [linger]
 *
 * mpi: MPI_Init first; loaded: libpmix is in the process, but nobody has initialised it; on, off: the parameter pmix;
 * linger: do not end at once (a pipe of Hydra's mpiexec breaks now and then if all ranks are gone before it has
 * finished starting them).
 */
#define _GNU_SOURCE
#include "topology/job_map.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
	fprintf(stderr, "guest: %s\n", what);
	return EXIT_FAILURE;
}

/* Whether PMIx is in the process and initialised. */
static bool pmix_alive(void)
{
	void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
	int (*initialized)(void) = NULL;
	bool alive;

	if (!library)
		return false;
	*(void **)&initialized = dlsym(library, "PMIx_Initialized");
	alive = initialized && initialized();
	dlclose(library);
	return alive;
}

/* MPI and the map agree, all ranks have the same hash, and MPI still works. */
static int check_mpi(const struct rwk_job_map *map)
{
	uint64_t hash[2] = {map->hash, ~map->hash}, least[2];
	int rank, size;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(hash, least, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
	if ((uint32_t)rank != map->rank || (uint32_t)size != map->size)
		return fail("MPI has another rank or size");
	if (least[0] != hash[0] || least[1] != hash[1])
		return fail("the ranks' hashes differ");
	return 0;
}

int main(int argc, char **argv)
{
	struct rwk_job_env env = {.params = &rwk_params, .machine = RWK_JOB_NO_MACHINE};
	bool mpi = false, linger = false, alive;
	struct rwk_job_map *map;
	int rc = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "mpi"))
			mpi = true;
		else if (!strcmp(argv[i], "linger"))
			linger = true;
		else if (!strcmp(argv[i], "on"))
			rwk_params.pmix = RWK_ON;
		else if (!strcmp(argv[i], "off"))
			rwk_params.pmix = RWK_OFF;
		else if (strcmp(argv[i], "loaded") || !dlopen("libpmix.so.2", RTLD_NOW))
			return fail(argv[i]);
	}
	if (mpi)
		MPI_Init(NULL, NULL);
	alive = pmix_alive();
	/* More than once: a program may open several domains. */
	for (int i = 0; i < 3 && !rc; i++) {
		if (rwk_job_map_get(&env, &map))
			return fail("no map");
		if (mpi)
			rc = check_mpi(map);
		if (i == 2)
			printf("%s: rank %u of %u, %u here, nodes %u %s, hash %016" PRIx64 "\n",
				rwk_job_source_text(map->source), map->rank, map->size, map->local_size, map->nodes,
				map->nodes_exact ? "exact" : "about", map->hash);
		rwk_job_map_free(map);
	}
	if (pmix_alive() != alive)
		rc = fail(alive ? "PMIx was finalised under its host"
				: "PMIx was initialised for a host that did not ask");
	if (mpi) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Finalize();
	}
	if (linger)
		usleep(300000);
	return rc;
}
