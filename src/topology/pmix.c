/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx as a guest. Where the host program has initialised PMIx, its library is in the process already: it is looked up
 * there (never loaded, never linked), and Init, some Gets of local data, and Finalize run in one call; Init and
 * Finalize only count up and down then. Being the first would be wrong: Open MPI's launcher calls the clean exit of a
 * process that initialised PMIx beside MPI abnormal, and a first Init that fails poisons the host's own. The parameter
 * pmix=on is for programs that use none. There Finalize ends PMIx for good, and a second Init would find no data: the
 * first answer is kept for the life of the process.
 */
#include "topology/source.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef HAVE_PMIX

#include <dlfcn.h>
#include <pmix.h>

#define WHO     "PMIx"
#define LIBRARY "libpmix.so.2"

/*
 * A Get takes some 10 us. In larger jobs only this node's ranks are asked for: all others are elsewhere, which decides
 * the choice, and on which node a peer is stands in its address too.
 */
#define ASK_NODES_OF 8192

struct pmix {
	void *library;
	int (*initialized)(void);
	pmix_status_t (*init)(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo);
	pmix_status_t (*get)(
		const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t ninfo, pmix_value_t **val);
	pmix_status_t (*finalize)(const pmix_info_t info[], size_t ninfo);
	const char *(*error_text)(pmix_status_t status);
	pmix_proc_t me;
};

/*
 * The value of `key` if this process has it at hand; nobody else is asked, so that it cannot block. To be freed by the
 * caller.
 */
static pmix_value_t *look_up(const struct pmix *p, uint32_t rank, const char *key)
{
	pmix_info_t optional;
	pmix_value_t *value;
	pmix_proc_t proc = p->me;

	memset(&optional, 0, sizeof(optional));
	strncpy(optional.key, PMIX_OPTIONAL, PMIX_MAX_KEYLEN);
	optional.value.type = PMIX_BOOL;
	optional.value.data.flag = true;
	proc.rank = rank;
	return p->get(&proc, key, &optional, 1, &value) == PMIX_SUCCESS ? value : NULL;
}

static int get_u32(const struct pmix *p, uint32_t rank, const char *key, uint32_t *out)
{
	pmix_value_t *v = look_up(p, rank, key);
	int rc = -ENODATA;

	if (v && v->type == PMIX_UINT32) {
		*out = v->data.uint32;
		rc = 0;
	}
	free(v);
	return rc;
}

/* A text for the caller to free, or NULL. */
static char *get_text(const struct pmix *p, uint32_t rank, const char *key)
{
	pmix_value_t *v = look_up(p, rank, key);
	char *text = v && v->type == PMIX_STRING ? v->data.string : NULL;

	free(v);
	return text;
}

/* A job that is not all on this node: each rank's node, where PMIx has it at hand. */
static int ask_nodes(const struct pmix *p, struct rwk_job_map *d)
{
	uint32_t node;
	int rc = 0;

	if (d->size > ASK_NODES_OF)
		return rwk_node_map_add(&d->map, d->size, RWK_NODE_NONE);
	for (uint32_t r = 0; r < d->size && !rc; r++) {
		if (get_u32(p, r, PMIX_NODEID, &node) || node >= RWK_MAX_NODES)
			node = RWK_NODE_NONE;
		rc = rwk_node_map_add(&d->map, 1, node);
	}
	return rc;
}

static int ask_local(const struct pmix *p, struct rwk_job_map *d)
{
	char *list = get_text(p, PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
	int rc = -EINVAL;

	if (list)
		rc = rwk_read_ranks(list, d->size, false, &d->local_ranks, &d->local_size);
	if (!rc && rwk_job_map_local_index(d, d->rank) == RWK_RANK_NONE)
		rc = -EINVAL;
	if (rc == -EINVAL)
		rwk_warn("%s: %s=%.200s is not a list of this node's ranks, rank %u of %u among them; "
			 "this source of the job map is passed over",
			WHO, PMIX_LOCAL_PEERS, list ? list : "(not there)", d->rank, d->size);
	free(list);
	return rc;
}

static int ask(const struct pmix *p, const struct rwk_job_env *env, struct rwk_job_map *d)
{
	int rc;

	d->rank = p->me.rank;
	if (get_u32(p, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &d->size) || !d->size || d->size > RWK_MAX_RANKS ||
		d->rank >= d->size) {
		rwk_warn("%s: rank %u, and %s is %u; a number above the rank and up to %u would be right; "
			 "this source of the job map is passed over",
			WHO, d->rank, PMIX_JOB_SIZE, d->size, RWK_MAX_RANKS);
		return -EINVAL;
	}
	rc = ask_local(p, d);
	if (rc)
		return rc;
	rc = d->local_size == d->size ? rwk_job_one_node(d) : ask_nodes(p, d);
	if (rc)
		return rc;
	d->ranks_per_node = d->local_size;
	if (get_u32(p, PMIX_RANK_WILDCARD, PMIX_NUM_NODES, &d->nodes) || !d->nodes)
		d->nodes = (d->size + d->local_size - 1) / d->local_size;
	rc = rwk_job_identify_launch(env, d, p->me.nspace);
	return rc ? rc : 1;
}

static bool open_library(struct pmix *p, bool load)
{
	/* Not unloaded once loaded here: PMIx leaves threads' code and exit handlers behind. */
	p->library = dlopen(LIBRARY, RTLD_NOW | (load ? RTLD_NODELETE : RTLD_NOLOAD));
	if (!p->library)
		return false;
	*(void **)&p->initialized = dlsym(p->library, "PMIx_Initialized");
	*(void **)&p->init = dlsym(p->library, "PMIx_Init");
	*(void **)&p->get = dlsym(p->library, "PMIx_Get");
	*(void **)&p->finalize = dlsym(p->library, "PMIx_Finalize");
	*(void **)&p->error_text = dlsym(p->library, "PMIx_Error_string");
	return p->initialized && p->init && p->get && p->finalize && p->error_text;
}

/* pmix=on without a server: an Init would fail and poison one that the program may want to make later. */
static bool server_there(const struct rwk_job_env *env)
{
	if (rwk_job_getenv(env, "PMIX_NAMESPACE"))
		return true;
	rwk_warn("FI_ROPEWALK_PMIX=on, but no launcher with PMIx started this process (PMIX_NAMESPACE is not set); "
		 "this source of the job map is passed over");
	return false;
}

/* Init, Gets and Finalize. */
static int visit(struct pmix *p, const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	pmix_status_t status = p->init(&p->me, NULL, 0);
	int rc;

	if (status != PMIX_SUCCESS) {
		rwk_warn(
			"%s: PMIx_Init says %s; this source of the job map is passed over", WHO, p->error_text(status));
		return -EINVAL;
	}
	rc = ask(p, env, draft);
	p->finalize(NULL, 0);
	return rc;
}

/* Copies what a source drafts. Returns 1 (as a source does) or -ENOMEM. */
static int copy_draft(struct rwk_job_map *to, const struct rwk_job_map *from)
{
	int rc = 0;

	to->hash = from->hash;
	to->size = from->size;
	to->rank = from->rank;
	to->nodes = from->nodes;
	to->ranks_per_node = from->ranks_per_node;
	to->local_size = from->local_size;
	to->id = strdup(from->id);
	to->local_ranks = malloc(from->local_size * sizeof(*to->local_ranks));
	if (!to->id || !to->local_ranks)
		return -ENOMEM;
	memcpy(to->local_ranks, from->local_ranks, from->local_size * sizeof(*to->local_ranks));
	for (uint32_t r = 0; r < from->size && !rc; r++)
		rc = rwk_node_map_add(&to->map, 1, rwk_node_map_at(&from->map, r));
	return rc ? rc : 1;
}

/*
 * pmix=on, and the host program has not initialised PMIx: once in the life of the process, then from memory. A child
 * that is forked in the middle of that has a PMIx that is half initialised: it does without.
 */
static int visit_once(struct pmix *p, const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	static struct rwk_job_map answer;
	static int answer_rc = -EINVAL;
	static bool asked;

	if (!asked) {
		asked = true;
		rwk_job_map_clear(&answer);
		answer_rc = visit(p, env, &answer);
	}
	return answer_rc > 0 ? copy_draft(draft, &answer) : answer_rc;
}

int rwk_job_from_pmix(const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	bool on = (env->params ? env->params : &rwk_params)->pmix == RWK_ON;
	struct pmix p = {0};
	int rc = 0;

	if (env->no_pmix || (env->params ? env->params : &rwk_params)->pmix == RWK_OFF || (on && !server_there(env)))
		return 0;
	if (!open_library(&p, on)) {
		if (on)
			rwk_warn("FI_ROPEWALK_PMIX=on, but %s cannot be loaded; this source of the job map is passed "
				 "over",
				LIBRARY);
	} else if (p.initialized()) {
		rc = visit(&p, env, draft);
	} else if (on) {
		rc = visit_once(&p, env, draft);
	}
	if (p.library)
		dlclose(p.library);
	return rc;
}

#else

int rwk_job_from_pmix(const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	(void)draft;
	if (!env->no_pmix && (env->params ? env->params : &rwk_params)->pmix == RWK_ON)
		rwk_warn("FI_ROPEWALK_PMIX=on, but this build of ropewalk has no PMIx; this source of the job map is "
			 "passed over");
	return 0;
}

#endif
