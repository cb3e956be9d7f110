/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stand-in for libpmix (fake_pmix.c) answers; the test finds `fake_pmix` by name and fills it in. */
#ifndef RWK_TEST_FAKE_PMIX_H
#define RWK_TEST_FAKE_PMIX_H

#include <stdint.h>

#define FAKE_RANKS   10000
#define FAKE_NO_NODE UINT32_MAX

struct fake_pmix {
	int initialized; /* as a host program left it; Init and Finalize count up and down from there */
	int fail_init;   /* PMIx_Init fails */
	const char *nspace;
	uint32_t rank;
	uint32_t size;             /* 0: not told */
	uint32_t nodes;            /* 0: not told */
	const char *local;         /* list of the node's ranks; NULL: not told */
	uint32_t node[FAKE_RANKS]; /* FAKE_NO_NODE: not told */
	int node_gets;             /* how often a node was asked for */
	int blocking_gets;         /* Gets without PMIX_OPTIONAL: might have asked the server */
};

#endif
