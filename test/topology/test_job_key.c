/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job's key: where it comes from, that all processes of a job have the same one and others another, that what can
 * be guessed is not called secret, and that it is never logged. The digests are another implementation's of SHA-256.
 */
#include "rwk_test.h"

#include "base/log.h"
#include "engine/job.h"
#include "topology/job_map.h"

#define NONCE "25b574be11d01fbe-05cde15bbb3b7f12"

/* What decides about a key; members that are NULL are not set. */
struct world {
	const char *job_key;        /* the parameter */
	const char *ompi, *nonce;   /* number of the job; the launcher's random number */
	const char *slurm, *secret; /* number of the job; PMI_SHARED_SECRET */
	const char *hydra;          /* how many ranks are on this node, of 4 */
	uint64_t maker;             /* of Hydra's socket */
	const char *rank;           /* "1" if NULL */
	uid_t uid;
};

static const char *world_getenv(void *arg, const char *name)
{
	const struct world *w = arg;
	const char *rank = w->rank ? w->rank : "1";
	const struct {
		const char *name, *if_set, *value;
	} variables[] = {
		{"OMPI_MCA_orte_precondition_transports", w->nonce, w->nonce},
		{"PMI_SHARED_SECRET", w->secret, w->secret},
		{"OMPI_COMM_WORLD_SIZE", w->ompi, "4"},
		{"OMPI_COMM_WORLD_RANK", w->ompi, rank},
		{"OMPI_COMM_WORLD_LOCAL_SIZE", w->ompi, "4"},
		{"OMPI_COMM_WORLD_LOCAL_RANK", w->ompi, rank},
		{"PMIX_NAMESPACE", w->ompi, w->ompi},
		{"SLURM_JOB_ID", w->slurm, w->slurm},
		{"SLURM_STEP_ID", w->slurm, "0"},
		{"SLURM_PROCID", w->slurm, rank},
		{"SLURM_LOCALID", w->slurm, rank},
		{"SLURM_NODEID", w->slurm, "0"},
		{"SLURM_STEP_NUM_TASKS", w->slurm, "4"},
		{"SLURM_STEP_TASKS_PER_NODE", w->slurm, "4"},
		{"PMI_SIZE", w->hydra, "4"},
		{"PMI_RANK", w->hydra, rank},
		{"PMI_FD", w->hydra, "6"},
		{"MPI_LOCALNRANKS", w->hydra, w->hydra},
		{"MPI_LOCALRANKID", w->hydra, "0"},
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (!strcmp(variables[i].name, name))
			return variables[i].if_set ? variables[i].value : NULL;
	}
	return NULL;
}

static uint64_t world_socket_maker(void *arg, int fd)
{
	(void)fd;
	return ((const struct world *)arg)->maker;
}

/* Puts the key of a process in that world into `key`; returns whether it is secret. */
static bool key_of(struct world w, uint8_t key[32])
{
	struct rwk_params params = {.job_key = w.job_key};
	struct rwk_job_env env = {.get = world_getenv,
		.arg = &w,
		.params = &params,
		.no_pmix = true,
		.machine = RWK_JOB_NO_MACHINE,
		.uid = &w.uid,
		.socket_maker = world_socket_maker};
	struct rwk_job_map *map;
	bool secret;

	assert_int_equal(rwk_job_map_get(&env, &map), 0);
	assert_int_equal(map->source, w.ompi    ? RWK_JOB_OMPI
				      : w.hydra ? RWK_JOB_HYDRA
				      : w.slurm ? RWK_JOB_SLURM
						: RWK_JOB_NONE);
	memcpy(key, map->key, 32);
	secret = map->key_is_secret;
	rwk_job_map_free(map);
	return secret;
}

static void assert_hex(const uint8_t *bytes, const char *hex)
{
	char text[65];

	for (int i = 0; i < 32; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

static bool same(struct world a, struct world b)
{
	uint8_t x[32], y[32];

	key_of(a, x);
	key_of(b, y);
	return !memcmp(x, y, sizeof(x));
}

/* Where a key comes from, what it is then (other builds on other nodes must make the same), and whether it is secret.
 */
static void origins(void **state)
{
	static const struct {
		struct world world;
		const char *hex;
		bool secret;
	} cases[] = {
		{{.job_key = "correct horse", .ompi = "77", .nonce = NONCE},
			"cad60e990ea8ffd87a757c9840554febb11b5fb693498635e4a33f682c6e5eb4", true},
		{{.job_key = "", .ompi = "77", .nonce = NONCE},
			"0d4fc12f81fd08b3cf131ebc7e7f371805c689b4a75a2c4685250864b74508ad", true},
		{{.slurm = "812", .secret = "14250316432093180007"},
			"3d711790fe69091825399820446b8285f0ba91b87bc995ee1f85adbe380f5f42", true},
		{{.uid = 1000}, "d9e9b169f9542dc73d0869a2a150ddd7e456fc1df0a844da2c6d1723362a769d", false},
		{{.hydra = "2", .maker = 4711, .uid = 1000},
			"e3a2cba07b3ccb49321e1d92abc730b843c6fd631437480e1c9ed1be5763c62a", false},
	};
	uint8_t key[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(key_of(cases[i].world, key), cases[i].secret);
		assert_hex(key, cases[i].hex);
	}
}

/* Processes that must have the same key, and those that must not. */
static void jobs(void **state)
{
	const struct world mpirun = {.ompi = "1889730561", .nonce = NONCE},
			   unnamed = {.ompi = "1889730561", .uid = 1000}, slurm = {.slurm = "812", .uid = 1000},
			   hydra = {.hydra = "2", .maker = 4711, .uid = 1000};
	struct world w;

	(void)state;
	w = mpirun;
	w.rank = "3";
	assert_true(same(mpirun, w));
	w.ompi = "1889730562"; /* spawned by it */
	assert_true(same(mpirun, w));
	assert_true(same(mpirun, (struct world){.nonce = NONCE})); /* its map is from elsewhere */
	w.nonce = "25b574be11d01fbe-05cde15bbb3b7f13";
	assert_false(same(mpirun, w));

	w = unnamed;
	w.rank = "2";
	assert_true(same(unnamed, w));
	w.ompi = "1889795073";
	assert_false(same(unnamed, w));
	w = unnamed;
	w.uid = 1001;
	assert_false(same(unnamed, w));

	w = slurm;
	w.rank = "0";
	assert_true(same(slurm, w));
	w.slurm = "813";
	assert_false(same(slurm, w));

	w = hydra;
	w.maker = 4712; /* the daemon of another node */
	assert_true(same(hydra, w));
	w.hydra = "4"; /* all on one node: jobs of a user are told apart */
	assert_false(same(hydra, w));

	w = mpirun;
	w.job_key = "a";
	assert_true(same(w, (struct world){.slurm = "5", .uid = 7, .job_key = "a"}));
	assert_false(same(w, (struct world){.slurm = "5", .uid = 7, .job_key = "A"}));
	assert_false(same(w, (struct world){.slurm = "5", .uid = 7, .job_key = "a "}));
	w.job_key = NONCE; /* the same bytes from another origin */
	assert_false(same(w, mpirun));
}

/* What looks like the launcher's random number and can be guessed is not called secret; the job's name is taken. */
static void guessable(void **state)
{
	static const char *const nonces[] = {"", "1", "0000000000000000-0000000000000000",
		"0000000012345678-0000000000000001", /* Open MPI under srun: numbers of job and step */
		"017569a900000000-017569a900000000", /* made from a time */
		"25b574be11d01fbe-25b574be11d01fbe", "25b574be11d01fbe-00000000bb3b7f12",
		"25b574be11d01fbe-05cde15b00000000", "25b574be11d01fbe_05cde15bbb3b7f12",
		"25b574be11d01fbe-05cde15bbb3b7f1", "25b574be11d01fbe-05cde15bbb3b7f123",
		"25b574be11d01fbg-05cde15bbb3b7f12", "25b574be11d01fbe-+5cde15bbb3b7f12"};
	static const char *const secrets[] = {
		"", "0", "4294967295", "-1", "x", "14250316432093180007x", "99999999999999999999999"};
	uint8_t key[32], name[32];

	(void)state;
	for (size_t i = 0; i < sizeof(nonces) / sizeof(nonces[0]); i++) {
		if (key_of((struct world){.nonce = nonces[i], .uid = 1000}, key))
			fail_msg("\"%s\" is taken for random", nonces[i]);
		assert_false(key_of((struct world){.uid = 1000}, name));
		assert_memory_equal(key, name, sizeof(key));
	}
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		if (key_of((struct world){.slurm = "812", .secret = secrets[i]}, key))
			fail_msg("\"%s\" is taken for a secret", secrets[i]);
		assert_true(same((struct world){.slurm = "812", .secret = secrets[i]}, (struct world){.slurm = "812"}));
	}
	/* Hydra's processes inherit what Slurm gave to their node's daemon. */
	assert_false(key_of((struct world){.hydra = "2", .maker = 1, .secret = "14250316432093180007"}, key));
}

static char logged[4096];

static void keep_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	size_t at = strlen(logged);

	(void)level;
	(void)file;
	(void)line;
	snprintf(logged + at, sizeof(logged) - at, "%s\n", text);
}

/* Neither the key nor what it is made from is in the log or in the map's print; that it is no secret is. */
static void silence(void **state)
{
	uint8_t key[32];
	char hex[17];

	(void)state;
	rwk_log_set_sink(keep_log);
	rwk_log_set_level(RWK_LOG_DEBUG);
	key_of((struct world){.job_key = "correct horse"}, key);
	assert_null(strstr(logged, "horse"));
	assert_non_null(strstr(logged, "job key: made from FI_ROPEWALK_JOB_KEY\n"));
	snprintf(hex, sizeof(hex), "%02x%02x%02x%02x", key[0], key[1], key[2], key[3]);
	assert_null(strstr(logged, hex));
	logged[0] = 0;
	key_of((struct world){.ompi = "1", .nonce = NONCE}, key);
	assert_null(strstr(logged, "25b574be11d01fbe"));
	assert_null(strstr(logged, "no secret"));
	logged[0] = 0;
	key_of((struct world){.uid = 1000}, key);
	assert_non_null(strstr(logged, "job key: made from the job's name, which is no secret"));
	rwk_log_set_sink(NULL);
	rwk_log_set_level(RWK_LOG_WARN);
}

/* A port gets it. */
static void ports(void **state)
{
	struct rwk_port_attr attr = {0};

	(void)state;
	setenv("FI_ROPEWALK_JOB_KEY", "correct horse", 1);
	assert_int_equal(rwk_param_load(), 0);
	assert_int_equal(rwk_job_load(), 0);
	rwk_job_describe(&attr);
	assert_hex(attr.key, "cad60e990ea8ffd87a757c9840554febb11b5fb693498635e4a33f682c6e5eb4");
	rwk_job_unload();
	unsetenv("FI_ROPEWALK_JOB_KEY");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(origins),
		cmocka_unit_test(jobs),
		cmocka_unit_test(guessable),
		cmocka_unit_test(silence),
		cmocka_unit_test(ports),
	};

	return cmocka_run_group_tests_name("topology/job_key", tests, NULL, NULL);
}
