/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sources of a job map share: variables, numbers, lists of ranks, the job's hash. */
#include "topology/source.h"

#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMESPACE_MAX 256 /* PMIX_MAX_NSLEN and its end */

const char *rwk_job_getenv(const struct rwk_job_env *env, const char *name)
{
	return env->get ? env->get(env->arg, name) : getenv(name);
}

int rwk_read_number(const char **at, uint32_t max, uint32_t *out)
{
	const char *c = *at;
	uint64_t v = 0;

	if (*c < '0' || *c > '9')
		return -EINVAL;
	for (; *c >= '0' && *c <= '9'; c++) {
		v = 10 * v + (uint64_t)(*c - '0');
		if (v > max)
			return -EINVAL;
	}
	*at = c;
	*out = (uint32_t)v;
	return 0;
}

int rwk_job_number(
	const struct rwk_job_env *env, const char *who, const char *name, uint32_t min, uint32_t max, uint32_t *out)
{
	const char *text = rwk_job_getenv(env, name), *at = text;
	uint32_t v;

	if (!text) {
		rwk_warn("%s: %s is not set; a number from %u to %u would be right; this source of the job map is "
			 "passed over",
			who, name, min, max);
		return -EINVAL;
	}
	if (rwk_read_number(&at, max, &v) || *at || v < min) {
		rwk_warn("%s: %s=%s is not a number from %u to %u; this source of the job map is passed over", who,
			name, text, min, max);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

int rwk_read_range(const char **at, uint32_t ranks, struct rwk_range *out)
{
	struct rwk_range r = {.step = 1};
	const char *c = *at;

	if (!*c)
		return 0;
	if (!ranks || rwk_read_number(&c, ranks - 1, &r.first))
		return -EINVAL;
	r.last = r.first;
	if (*c == '-') {
		c++;
		if (rwk_read_number(&c, ranks - 1, &r.last) || r.last < r.first)
			return -EINVAL;
		if (*c == ':') {
			c++;
			if (rwk_read_number(&c, ranks, &r.step) || !r.step)
				return -EINVAL;
		}
	}
	if (*c == ',' && c[1])
		c++;
	else if (*c)
		return -EINVAL;
	*at = c;
	*out = r;
	return 1;
}

static int compare_ranks(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int rwk_read_ranks(const char *list, uint32_t ranks, bool ordered, uint32_t **out, uint32_t *count)
{
	const char *at = list;
	uint32_t *array, n = 0;
	struct rwk_range r;
	uint64_t next = 0, room = 0;
	int rc;

	while ((rc = rwk_read_range(&at, ranks, &r)) > 0) {
		room += (r.last - r.first) / r.step + 1;
		if (room > ranks || (ordered && r.first < next))
			return -EINVAL;
		next = (uint64_t)r.last + 1;
	}
	if (rc < 0 || !room)
		return -EINVAL;
	array = malloc(room * sizeof(*array));
	if (!array)
		return -ENOMEM;
	at = list;
	while (rwk_read_range(&at, ranks, &r) > 0) {
		for (uint64_t v = r.first; v <= r.last; v += r.step)
			array[n++] = (uint32_t)v;
	}
	qsort(array, n, sizeof(*array), compare_ranks);
	for (uint32_t i = 1; i < n; i++) {
		if (array[i] == array[i - 1]) {
			free(array);
			return -EINVAL;
		}
	}
	*out = array;
	*count = n;
	return 0;
}

/* FNV-1a, for its brevity; the last step of rwk_job_identify spreads it over all bits. */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t len)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * UINT64_C(0x100000001b3);
	return h;
}

int rwk_job_identify(const struct rwk_job_env *env, struct rwk_job_map *draft, const char *id, const char *nonce)
{
	uint32_t uid = env->uid ? *env->uid : geteuid();
	uint64_t h = hash_bytes(UINT64_C(0xcbf29ce484222325), &uid, sizeof(uid));
	char *copy = strdup(id ? id : "none");

	if (!copy)
		return -ENOMEM;
	if (id)
		h = hash_bytes(h, id, strlen(id) + 1);
	if (nonce)
		h = hash_bytes(h, nonce, strlen(nonce) + 1);
	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	draft->id = copy;
	draft->hash = h ^ h >> 33;
	return 0;
}

int rwk_job_rename(struct rwk_job_map *draft, const char *id)
{
	char *copy = strdup(id);

	if (!copy)
		return -ENOMEM;
	free(draft->id);
	draft->id = copy;
	return 0;
}

/*
 * The part of a namespace that the jobs of one launch share. Open MPI 4, known by its nonce, numbers its jobs: the
 * launch in the upper 16 of 32 bits, then the job. PRRTE (Open MPI 5) counts them behind an @. Anything else names a
 * job and nothing more.
 */
static void name_launch(const char *nspace, bool open_mpi_4, char *launch, size_t len)
{
	const char *at = nspace, *suffix = strrchr(nspace, '@');
	uint32_t number;

	if (open_mpi_4 && !rwk_read_number(&at, UINT32_MAX, &number) && !*at)
		snprintf(launch, len, "%" PRIu32, number >> 16);
	else if (suffix && suffix[1] && !suffix[1 + strspn(suffix + 1, "0123456789")])
		snprintf(launch, len, "%.*s", (int)(suffix - nspace), nspace);
	else
		snprintf(launch, len, "%s", nspace);
}

int rwk_job_identify_launch(const struct rwk_job_env *env, struct rwk_job_map *draft, const char *nspace)
{
	const char *nonce = rwk_job_getenv(env, RWK_OMPI_NONCE);
	char launch[NAMESPACE_MAX];
	int rc;

	name_launch(nspace, nonce, launch, sizeof(launch));
	rc = rwk_job_identify(env, draft, launch, nonce);
	return rc ? rc : rwk_job_rename(draft, nspace);
}

int rwk_job_one_node(struct rwk_job_map *draft)
{
	return rwk_node_map_add(&draft->map, draft->size, 0);
}

int rwk_job_count_only(struct rwk_job_map *draft)
{
	draft->nodes = (draft->size + draft->local_size - 1) / draft->local_size;
	draft->ranks_per_node = draft->local_size;
	return rwk_node_map_add(&draft->map, draft->size, RWK_NODE_NONE);
}
