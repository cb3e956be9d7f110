/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for libpmix.so.2, for jobs that are not there: the few calls that the job map makes, answered from a
 * table.
 */
#include "topology/fake_pmix.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

PMIX_EXPORT struct fake_pmix fake_pmix;

PMIX_EXPORT int PMIx_Initialized(void)
{
	return fake_pmix.initialized > 0;
}

PMIX_EXPORT pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
	(void)info;
	(void)ninfo;
	if (fake_pmix.fail_init)
		return PMIX_ERR_UNREACH;
	strncpy(proc->nspace, fake_pmix.nspace, PMIX_MAX_NSLEN);
	proc->rank = fake_pmix.rank;
	fake_pmix.initialized++;
	return PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
	(void)info;
	(void)ninfo;
	fake_pmix.initialized--;
	return PMIX_SUCCESS;
}

PMIX_EXPORT const char *PMIx_Error_string(pmix_status_t status)
{
	return status == PMIX_ERR_UNREACH ? "UNREACHABLE" : "OTHER";
}

static pmix_status_t give_number(pmix_value_t *v, uint32_t number, uint32_t none)
{
	if (number == none)
		return PMIX_ERR_NOT_FOUND;
	v->type = PMIX_UINT32;
	v->data.uint32 = number;
	return PMIX_SUCCESS;
}

static pmix_status_t answer(const pmix_proc_t *proc, const char *key, pmix_value_t *v)
{
	if (!strcmp(key, PMIX_JOB_SIZE))
		return give_number(v, fake_pmix.size, 0);
	if (!strcmp(key, PMIX_NUM_NODES))
		return give_number(v, fake_pmix.nodes, 0);
	if (!strcmp(key, PMIX_NODEID) && proc->rank < FAKE_RANKS) {
		fake_pmix.node_gets++;
		return give_number(v, fake_pmix.node[proc->rank], FAKE_NO_NODE);
	}
	if (strcmp(key, PMIX_LOCAL_PEERS) || !fake_pmix.local)
		return PMIX_ERR_NOT_FOUND;
	v->type = PMIX_STRING;
	v->data.string = strdup(fake_pmix.local);
	return PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Get(
	const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t ninfo, pmix_value_t **val)
{
	pmix_status_t status;

	if (ninfo != 1 || strcmp(info[0].key, PMIX_OPTIONAL) || !info[0].value.data.flag)
		fake_pmix.blocking_gets++;
	*val = calloc(1, sizeof(**val));
	status = answer(proc, key, *val);
	if (status != PMIX_SUCCESS) {
		free(*val);
		*val = NULL;
	}
	return status;
}
