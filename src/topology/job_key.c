/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job's key: from the parameter job_key; else from a random number that the launcher gave to every rank and to
 * nobody else; else, so that at least jobs are kept apart, from the job's name, which is no secret.
 *
 * Open MPI's mpirun gives such a number (so does its successor, PRRTE). Slurm gives one only with its plug-in for
 * Cray's PMI, in PMI_SHARED_SECRET. Hydra gives none. What PMIx calls credentials is a process's own, not the job's.
 * All of these are variables: other users cannot read them, those of the same user and root can.
 */
#include "topology/source.h"

#include "base/log.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

_Static_assert(sizeof(((struct rwk_job_map *)0)->key) == crypto_hash_sha256_BYTES, "a key is a digest");

/* Keys from different origins never meet, whatever the bytes. */
static void make_key(struct rwk_job_map *m, const char *origin, const void *bytes, size_t len)
{
	static const char purpose[] = "ropewalk job key 1";
	crypto_hash_sha256_state s;

	crypto_hash_sha256_init(&s);
	crypto_hash_sha256_update(&s, (const void *)purpose, sizeof(purpose));
	crypto_hash_sha256_update(&s, (const void *)origin, strlen(origin) + 1);
	crypto_hash_sha256_update(&s, bytes, len);
	crypto_hash_sha256_final(&s, m->key);
}

/*
 * 16 hexadecimal digits, a dash, 16 more. mpirun's come from the system's random numbers. Where ranks were started
 * without it (srun), or a system has no random numbers, Open MPI makes them up from the job's number or the time, of 32
 * bits or fewer each: none of the four words of a random one is 0, nor are its halves equal.
 */
static bool nonce_is_random(const char *text)
{
	uint64_t half[2];

	if (strlen(text) != 33 || text[16] != '-' || strspn(text, "0123456789abcdefABCDEF") != 16 ||
		strspn(text + 17, "0123456789abcdefABCDEF") != 16)
		return false;
	half[0] = strtoull(text, NULL, 16);
	half[1] = strtoull(text + 17, NULL, 16);
	return half[0] >> 32 && (uint32_t)half[0] && half[1] >> 32 && (uint32_t)half[1] && half[0] != half[1];
}

/* A number of 64 bits; one of 32 is too easily guessed to be meant. */
static bool pmi_secret_is_good(const char *text)
{
	unsigned long long v;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 0);
	return !errno && !*end && v > UINT32_MAX;
}

/* A Hydra that names no job has a hash on each node: what the nodes have in common is the user. */
static void key_from_name(const struct rwk_job_env *env, struct rwk_job_map *m)
{
	uint32_t uid = htole32(env->uid ? *env->uid : geteuid());
	uint64_t hash = htole64(m->hash);

	if (m->hash_node_only)
		make_key(m, "user", &uid, sizeof(uid));
	else
		make_key(m, "name", &hash, sizeof(hash));
}

void rwk_job_make_key(const struct rwk_job_env *env, struct rwk_job_map *m)
{
	const char *text = env->params ? env->params->job_key : rwk_params.job_key;
	const char *nonce = rwk_job_getenv(env, RWK_OMPI_NONCE), *secret = NULL, *from;

	/* Other launchers' processes may have inherited it, each node's another one. */
	if (m->source == RWK_JOB_SLURM)
		secret = rwk_job_getenv(env, "PMI_SHARED_SECRET");
	m->key_is_secret = true;
	if (text && *text) {
		make_key(m, from = "FI_ROPEWALK_JOB_KEY", text, strlen(text));
	} else if (nonce && nonce_is_random(nonce)) {
		make_key(m, from = RWK_OMPI_NONCE, nonce, strlen(nonce));
	} else if (secret && pmi_secret_is_good(secret)) {
		make_key(m, from = "PMI_SHARED_SECRET", secret, strlen(secret));
	} else {
		m->key_is_secret = false;
		key_from_name(env, m);
		rwk_info("job key: made from the %s, which is no secret; FI_ROPEWALK_JOB_KEY would be one",
			m->hash_node_only ? "user's number" : "job's name");
		return;
	}
	rwk_info("job key: made from %s", from);
}
