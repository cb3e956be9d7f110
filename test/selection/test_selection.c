/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choices and the sentences that go with them. Each case starts from one situation, a job of 4 nodes with 4 ranks each
 * on nodes of 8 processors, and flips some of it.
 */
#include "rwk_test.h"

#include "selection/cost.h"
#include "selection/selection.h"

/* A version that has nothing for other nodes shows what is said of strands that are missing. */
#define NODE_ONLY (RWK_STRAND_BIT(RWK_STRAND_SELF) | RWK_STRAND_BIT(RWK_STRAND_UC_SHM))
#define ALL_BUILT ((1u << RWK_STRAND_COUNT) - 1)

static struct rwk_sel_facts start(enum rwk_sel_node node)
{
	static const struct rwk_params params;
	struct rwk_sel_facts f;
	struct rwk_job_map *map;

	assert_int_equal(rwk_job_map_imagine(4, 4, &map), 0);
	rwk_sel_facts_init(&f, map, &params);
	rwk_job_map_free(map);
	f.node = node;
	f.processors = 8;
	f.built = NODE_ONLY;
	return f;
}

/* The parameter sets the limit. */
static void limit(struct rwk_sel_facts *f, size_t connections)
{
	rwk_sel_set_limit(f, connections);
}

static void expect(const struct rwk_sel_facts *f, enum rwk_strand strand, int error, const char *reason)
{
	struct rwk_sel_choice c;

	rwk_sel_choose(f, &c);
	if (c.strand != strand || c.error != error || strcmp(c.reason, reason))
		fail_msg("%s, error %d, \"%s\"\nin place of %s, error %d, \"%s\"", rwk_strand_text(c.strand), c.error,
			c.reason, rwk_strand_text(strand), error, reason);
	for (enum rwk_strand s = 0; s < RWK_STRAND_COUNT; s++) {
		if ((s == strand) != !c.lost[s][0])
			fail_msg("%s: %s lost because of \"%s\"", rwk_strand_text(strand), rwk_strand_text(s),
				c.lost[s]);
	}
	assert_true((strand == RWK_STRAND_NONE) == (error != 0));
}

static void expect_lost(const struct rwk_sel_facts *f, enum rwk_strand s, const char *why)
{
	struct rwk_sel_choice c;

	rwk_sel_choose(f, &c);
	assert_string_equal(c.lost[s], why);
}

/* Facts from a job map and parameters. */
static void test_facts(void **state)
{
	struct rwk_params params = {.service = RWK_SERVICE_SRC, .link = RWK_LINK_UDP, .cma = RWK_OFF};
	struct rwk_sel_facts f = start(RWK_SEL_OTHER);
	struct rwk_job_map *map;

	(void)state;
	assert_int_equal(f.size, 16);
	assert_int_equal(f.local_size, 4);
	assert_true(f.job_known && f.udp && f.tcp && !f.cma_error && !f.shm_error);
	assert_int_equal(rwk_job_map_imagine(1, 1, &map), 0);
	rwk_sel_facts_init(&f, map, &params);
	rwk_job_map_free(map);
	assert_int_equal(f.built, RWK_STRANDS_BUILT);
	assert_int_equal(f.service, RWK_SERVICE_SRC);
	assert_int_equal(f.link, RWK_LINK_UDP);
	assert_int_equal(f.cma_error, EOPNOTSUPP);
	assert_false(f.job_known);
}

/* Myself: loop-back, whatever is forced. */
static void test_self(void **state)
{
	struct rwk_sel_facts f = start(RWK_SEL_UNKNOWN);

	(void)state;
	f.self = true;
	expect(&f, RWK_STRAND_SELF, 0, "the peer is this process: messages are copied in place");
	expect_lost(&f, RWK_STRAND_UC_SHM, "no link is needed to oneself");
	f.service = RWK_SERVICE_RC;
	f.link = RWK_LINK_UDP;
	expect(&f, RWK_STRAND_SELF, 0, "the peer is this process: messages are copied in place");
}

/* The same node: shared memory, as long as it can be shared. */
static void test_same_node(void **state)
{
	struct rwk_sel_facts f = start(RWK_SEL_CLAIMED);

	(void)state;
	expect(&f, RWK_STRAND_UC_SHM, 0,
		"the peer is on this node (to be proven by attaching) and memory can be shared, which loses nothing: "
		"acknowledgements would be waste");
	expect_lost(&f, RWK_STRAND_RC_UDP, "shared memory is faster; nor is it in this version of ropewalk");
	f.built = ALL_BUILT;
	expect_lost(&f, RWK_STRAND_RC_UDP, "shared memory is faster");
	f.built = NODE_ONLY;
	f.node = RWK_SEL_PROVEN;
	expect(&f, RWK_STRAND_UC_SHM, 0,
		"the peer is on this node (proven by attaching) and memory can be shared, which loses nothing: "
		"acknowledgements would be waste");
	f.shm_error = EACCES;
	f.shm_reason = "mapping the peer's ring";
	expect(&f, RWK_STRAND_NONE, -EHOSTUNREACH,
		"memory cannot be shared (mapping the peer's ring: Permission denied), and RC/udp, which would carry "
		"it, is not in "
		"this version of ropewalk");
	expect_lost(&f, RWK_STRAND_UC_SHM, "memory cannot be shared (mapping the peer's ring: Permission denied)");
	f.built = ALL_BUILT;
	expect(&f, RWK_STRAND_RC_UDP, 0, "UDP gets through, and RC takes 12 connections a process, not more than 1024");
}

/* Another node is refused by a version without strands for it, by name of the one that would have carried it. */
static void test_other_node(void **state)
{
	struct rwk_sel_facts f = start(RWK_SEL_OTHER);

	(void)state;
	expect(&f, RWK_STRAND_NONE, -EHOSTUNREACH,
		"the peer is on another node, and RC/udp, which would carry it, is not in this version of ropewalk");
	expect_lost(&f, RWK_STRAND_RC_UDP, "it is not in this version of ropewalk");
	f.node = RWK_SEL_UNKNOWN;
	expect(&f, RWK_STRAND_NONE, -EHOSTUNREACH,
		"nothing says that the peer is on this node, and RC/udp, which would carry it, is not in this version "
		"of ropewalk");
	f.node = RWK_SEL_OTHER;
	limit(&f, 11);
	expect(&f, RWK_STRAND_NONE, -EHOSTUNREACH,
		"the peer is on another node, and SRC/udp, which would carry it, is not in this version of ropewalk");
	f.udp = f.tcp = false;
	expect(&f, RWK_STRAND_NONE, -EHOSTUNREACH, "nothing reaches the peer: UDP does not get through to the peer");
}

/* This version has every strand; one that lacks SRC says so. */
static void test_this_version(void **state)
{
	struct rwk_sel_facts f = start(RWK_SEL_OTHER);

	(void)state;
	assert_int_equal(RWK_STRANDS_BUILT, ALL_BUILT);
	f.built = ALL_BUILT & ~RWK_STRAND_BIT(RWK_STRAND_SRC_UDP);
	expect(&f, RWK_STRAND_RC_UDP, 0, "UDP gets through, and RC takes 12 connections a process, not more than 1024");
	limit(&f, 11);
	expect(&f, RWK_STRAND_RC_UDP, 0,
		"UDP gets through, and RC would take 12 connections a process, more than 11 (FI_ROPEWALK_SRC_LIMIT); "
		"SRC takes 3");
	expect_lost(&f, RWK_STRAND_SRC_UDP, "it is not in this version of ropewalk");
	f.udp = false;
	expect(&f, RWK_STRAND_UC_TCP, 0, "a byte stream gets through, and nothing better does");
}

/* A peer that shares no connections is carried by RC, whatever the limit; forced, it cannot be. */
static void test_unshared(void **state)
{
	struct rwk_sel_facts f = start(RWK_SEL_OTHER);

	(void)state;
	f.built = ALL_BUILT;
	limit(&f, 11);
	f.unshared = "the peer's node shares none";
	expect(&f, RWK_STRAND_RC_UDP, 0,
		"UDP gets through, and RC would take 12 connections a process, more than 11 (FI_ROPEWALK_SRC_LIMIT); "
		"SRC takes 3");
	expect_lost(&f, RWK_STRAND_SRC_UDP, "no connection can be shared: the peer's node shares none");
	f.service = RWK_SERVICE_SRC;
	expect(&f, RWK_STRAND_NONE, -EINVAL,
		"FI_ROPEWALK_SERVICE=src leaves nothing that reaches the peer; auto would take RC/udp");
}

/* With every strand there: connections decide between RC and SRC, to the one; then UDP, then TCP. */
static void test_connections(void **state)
{
	struct rwk_sel_facts f = start(RWK_SEL_OTHER);

	(void)state;
	f.built = ALL_BUILT;
	limit(&f, 12);
	expect(&f, RWK_STRAND_RC_UDP, 0,
		"UDP gets through, and RC takes 12 connections a process, not more than 12 (FI_ROPEWALK_SRC_LIMIT)");
	expect_lost(
		&f, RWK_STRAND_SRC_UDP, "connections are few enough for one flow a pair, which has the least latency");
	limit(&f, 11);
	expect(&f, RWK_STRAND_SRC_UDP, 0,
		"UDP gets through, and RC would take 12 connections a process, more than 11 (FI_ROPEWALK_SRC_LIMIT); "
		"SRC takes 3");
	expect_lost(&f, RWK_STRAND_RC_UDP,
		"RC would take 12 connections a process, more than 11 (FI_ROPEWALK_SRC_LIMIT); SRC takes 3");
	f.size = 15; /* one rank less: 11 connections */
	expect(&f, RWK_STRAND_RC_UDP, 0,
		"UDP gets through, and RC takes 11 connections a process, not more than 11 (FI_ROPEWALK_SRC_LIMIT)");
	f.size = 16;
	f.nodes = 16; /* the same ranks on more nodes: nothing to share */
	f.local_size = f.ranks_per_node = 1;
	expect(&f, RWK_STRAND_RC_UDP, 0,
		"UDP gets through, and RC takes 15 connections a process, more than 11 (FI_ROPEWALK_SRC_LIMIT), but "
		"SRC would take as many");
	expect_lost(
		&f, RWK_STRAND_SRC_UDP, "it would take as many connections, and one flow a pair has the least latency");
	f.job_known = false;
	f.size = f.nodes = 1;
	expect(&f, RWK_STRAND_RC_UDP, 0, "UDP gets through, and no launcher tells of a large job");
	f.udp = false;
	expect(&f, RWK_STRAND_UC_TCP, 0, "a byte stream gets through, and nothing better does");
	expect_lost(&f, RWK_STRAND_RC_UDP, "UDP does not get through to the peer");
	f.no_network = "there is no network";
	expect_lost(&f, RWK_STRAND_RC_UDP, "there is no network");
	f.no_network = NULL;
	f.built &= ~RWK_STRAND_BIT(RWK_STRAND_RC_UDP);
	f.udp = true;
	expect(&f, RWK_STRAND_SRC_UDP, 0, "UDP gets through, and no launcher tells of a large job");
	expect_lost(&f, RWK_STRAND_RC_UDP, "it is not in this version of ropewalk");
}

#define GIB ((uint64_t)1 << 30)

/*
 * Where the parameter says nothing: nodes, ranks a node and memory decide. Each case after the first differs from one
 * before it in one of the three, and is on the other side of the limit, or just this side of it.
 */
static void test_memory(void **state)
{
	static const struct {
		uint32_t nodes, per_node;
		uint64_t memory;
		enum rwk_strand strand;
		const char *reason;
	} cases[] = {
		{16, 32, 256 * GIB, RWK_STRAND_RC_UDP,
			"UDP gets through, and RC takes 480 connections a process, 81.7 MiB on this node, not more "
			"than "
			"256 MiB (1/1024 of its memory)"},
		{64, 32, 256 * GIB, RWK_STRAND_SRC_UDP,
			"UDP gets through, and RC would take 2016 connections a process, 343 MiB on this node, more "
			"than "
			"256 MiB (1/1024 of its memory); SRC takes 63"},
		{16, 128, 256 * GIB, RWK_STRAND_SRC_UDP,
			"UDP gets through, and RC would take 1920 connections a process, 1.3 GiB on this node, more "
			"than "
			"256 MiB (1/1024 of its memory); SRC takes 15"},
		{16, 32, 64 * GIB, RWK_STRAND_SRC_UDP,
			"UDP gets through, and RC would take 480 connections a process, 81.7 MiB on this node, more "
			"than "
			"64.0 MiB (1/1024 of its memory); SRC takes 15"},
		{16, 32, (uint64_t)480 * 32 * RWK_COST_RC * 1024, RWK_STRAND_RC_UDP,
			"UDP gets through, and RC takes 480 connections a process, 81.7 MiB on this node, not more "
			"than "
			"81.7 MiB (1/1024 of its memory)"},
		{16, 32, (uint64_t)480 * 32 * RWK_COST_RC * 1024 - 1, RWK_STRAND_SRC_UDP,
			"UDP gets through, and RC would take 480 connections a process, 81.7 MiB on this node, more "
			"than "
			"81.7 MiB (1/1024 of its memory); SRC takes 15"},
		{2, 1, 1 << 20, RWK_STRAND_RC_UDP,
			"UDP gets through, and RC takes 1 connection a process, 5.4 KiB on this node, more than 1.0 "
			"KiB "
			"(1/1024 of its memory), but SRC would take as many"},
		{16, 64, 0, RWK_STRAND_RC_UDP,
			"UDP gets through, and RC takes 960 connections a process, not more than 1024"},
		{17, 64, 0, RWK_STRAND_RC_UDP,
			"UDP gets through, and RC takes 1024 connections a process, not more than 1024"},
		{18, 64, 0, RWK_STRAND_SRC_UDP,
			"UDP gets through, and RC would take 1088 connections a process, more than 1024; SRC takes 17"},
		{262144, 64, GIB, RWK_STRAND_SRC_UDP,
			"UDP gets through, and RC would take 16777152 connections a process, 5.4 TiB on this node, "
			"more "
			"than 1.0 MiB (1/1024 of its memory); SRC takes 262143"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const struct rwk_params params;
		struct rwk_sel_facts f;
		struct rwk_job_map *map;

		assert_int_equal(rwk_job_map_imagine(cases[i].nodes, cases[i].per_node, &map), 0);
		map->machine.memory = cases[i].memory;
		rwk_sel_facts_init(&f, map, &params);
		rwk_job_map_free(map);
		f.node = RWK_SEL_OTHER;
		f.built = ALL_BUILT;
		expect(&f, cases[i].strand, 0, cases[i].reason);
	}
}

/* The parameter comes before memory, both ways. */
static void test_limit_parameter(void **state)
{
	static const struct rwk_params forced = {.src_limit = 1}, free_hand = {.src_limit = 1 << 24};
	struct rwk_sel_facts f;
	struct rwk_job_map *map;

	(void)state;
	assert_int_equal(rwk_job_map_imagine(4, 4, &map), 0);
	map->machine.memory = 1024 * GIB;
	rwk_sel_facts_init(&f, map, &forced);
	f.node = RWK_SEL_OTHER;
	f.built = ALL_BUILT;
	expect(&f, RWK_STRAND_SRC_UDP, 0,
		"UDP gets through, and RC would take 12 connections a process, more than 1 (FI_ROPEWALK_SRC_LIMIT); "
		"SRC takes 3");
	f.node = RWK_SEL_PROVEN; /* it is about other nodes alone */
	expect(&f, RWK_STRAND_UC_SHM, 0,
		"the peer is on this node (proven by attaching) and memory can be shared, which loses nothing: "
		"acknowledgements would be waste");
	map->machine.memory = 1;
	rwk_sel_facts_init(&f, map, &free_hand);
	rwk_job_map_free(map);
	f.node = RWK_SEL_OTHER;
	f.built = ALL_BUILT;
	expect(&f, RWK_STRAND_RC_UDP, 0,
		"UDP gets through, and RC takes 12 connections a process, not more than 16777216 "
		"(FI_ROPEWALK_SRC_LIMIT)");
}

/* What is forced: taken if it can serve, else an error that says what is wrong and what would do. */
static void test_forced(void **state)
{
	static const struct {
		enum rwk_sel_node node;
		int service, link;
		bool all_built;
		enum rwk_strand strand;
		int error;
		const char *reason;
	} cases[] = {
		{RWK_SEL_PROVEN, RWK_SERVICE_UC, RWK_LINK_SHM, false, RWK_STRAND_UC_SHM, 0, NULL},
		{RWK_SEL_PROVEN, RWK_SERVICE_RC, RWK_LINK_AUTO, false, RWK_STRAND_NONE, -EINVAL,
			"FI_ROPEWALK_SERVICE=rc asks for RC/udp, which is not in this version of ropewalk; auto would "
			"take UC/shm"},
		{RWK_SEL_PROVEN, RWK_SERVICE_RC, RWK_LINK_AUTO, true, RWK_STRAND_RC_UDP, 0, NULL},
		{RWK_SEL_PROVEN, RWK_SERVICE_SRC, RWK_LINK_AUTO, true, RWK_STRAND_SRC_UDP, 0, NULL},
		{RWK_SEL_PROVEN, RWK_SERVICE_AUTO, RWK_LINK_TCP, true, RWK_STRAND_UC_TCP, 0, NULL},
		{RWK_SEL_PROVEN, RWK_SERVICE_AUTO, RWK_LINK_UDP, false, RWK_STRAND_NONE, -EINVAL,
			"FI_ROPEWALK_LINK=udp asks for RC/udp, which is not in this version of ropewalk; auto would "
			"take UC/shm"},
		{RWK_SEL_PROVEN, RWK_SERVICE_RC, RWK_LINK_SHM, true, RWK_STRAND_NONE, -EINVAL,
			"FI_ROPEWALK_SERVICE=rc with FI_ROPEWALK_LINK=shm leaves nothing that reaches the peer; auto "
			"would take UC/shm"},
		{RWK_SEL_OTHER, RWK_SERVICE_AUTO, RWK_LINK_SHM, true, RWK_STRAND_NONE, -EINVAL,
			"FI_ROPEWALK_LINK=shm leaves nothing that reaches the peer; auto would take RC/udp"},
		{RWK_SEL_OTHER, RWK_SERVICE_UC, RWK_LINK_AUTO, true, RWK_STRAND_UC_TCP, 0, NULL},
		{RWK_SEL_OTHER, RWK_SERVICE_UC, RWK_LINK_AUTO, false, RWK_STRAND_NONE, -EHOSTUNREACH,
			"the peer is on another node, and UC/tcp, which would carry it, is not in this version of "
			"ropewalk"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_sel_facts f = start(cases[i].node);
		struct rwk_sel_choice c;

		f.service = cases[i].service;
		f.link = cases[i].link;
		f.built = cases[i].all_built ? ALL_BUILT : NODE_ONLY;
		rwk_sel_choose(&f, &c);
		if (c.strand != cases[i].strand || c.error != cases[i].error ||
			(cases[i].reason && strcmp(c.reason, cases[i].reason)))
			fail_msg("case %zu: %s, error %d, \"%s\"", i, rwk_strand_text(c.strand), c.error, c.reason);
	}
}

static void expect_manner(const struct rwk_sel_facts *f, bool across, bool yield, const char *manner)
{
	struct rwk_sel_choice c;

	rwk_sel_choose(f, &c);
	assert_string_equal(c.manner, manner);
	assert_true(c.copy_across == across);
	assert_true(c.yield == yield);
}

/* Cross-memory copy, ranks and processors decide how shared memory is used. */
static void test_manner(void **state)
{
	struct rwk_sel_facts f = start(RWK_SEL_PROVEN);

	(void)state;
	expect_manner(&f, true, false,
		"large messages are copied across address spaces; waiting spins (4 ranks on 8 processors)");
	f.processors = 4;
	expect_manner(&f, true, false,
		"large messages are copied across address spaces; waiting spins (4 ranks on 4 processors)");
	f.local_size = 5;
	expect_manner(&f, true, true,
		"large messages are copied across address spaces; waiting yields the core (5 ranks on 4 processors)");
	f.local_size = 1;
	f.processors = 1;
	expect_manner(&f, true, false,
		"large messages are copied across address spaces; waiting spins (1 rank on 1 processor)");
	f.processors = 0;
	f.cma_error = EPERM;
	expect_manner(&f, false, false,
		"large messages go through shared memory, as cross-memory copy is refused: Operation not permitted");
	f.cma_error = EOPNOTSUPP;
	expect_manner(&f, false, false,
		"large messages go through shared memory, as cross-memory copy is switched off by FI_ROPEWALK_CMA");
	f.node = RWK_SEL_OTHER;
	expect_manner(&f, false, false, "");
}

static const char explained[] =
	"ropewalk: rank 0: 3 peers on this node: UC/shm, because the peer is on this node (proven by attaching) "
	"and memory can be shared, which loses nothing: acknowledgements would be waste; "
	"large messages are copied across address spaces; waiting spins (4 ranks on 8 processors); "
	"not self: the peer is another process; not RC/udp: shared memory is faster; "
	"nor is it in this version of ropewalk; not SRC/udp: shared memory is faster; "
	"nor is it in this version of ropewalk; not UC/tcp: shared memory is faster; "
	"nor is it in this version of ropewalk\n"
	"ropewalk: rank 0: some of 3 peers on this node: UC/shm, because the peer is on this node (proven by "
	"attaching) and memory can be shared, which loses nothing: acknowledgements would be waste; "
	"large messages go through shared memory, as cross-memory copy is refused: Operation not permitted; "
	"waiting spins (4 ranks on 8 processors); not self: the peer is another process; "
	"not RC/udp: shared memory is faster; nor is it in this version of ropewalk; "
	"not SRC/udp: shared memory is faster; nor is it in this version of ropewalk; "
	"not UC/tcp: shared memory is faster; nor is it in this version of ropewalk\n"
	"ropewalk: 12 peers on other nodes: refused: the peer is on another node, and RC/udp, which would carry "
	"it, is not in this version of ropewalk; "
	"not self: the peer is another process; not UC/shm: the peer is on another node; "
	"not RC/udp: it is not in this version of ropewalk; "
	"not SRC/udp: connections are few enough for one flow a pair, which has the least latency; "
	"nor is it in this version of ropewalk; not UC/tcp: RC/udp is faster, and UDP gets through; "
	"nor is it in this version of ropewalk\n";

/* Each kind of peer is explained once, the kinds counted as far as the job is known. */
static void test_explain(void **state)
{
	struct rwk_sel_explainer ex = {0};
	struct rwk_sel_facts f = start(RWK_SEL_PROVEN);
	struct rwk_sel_choice c;
	char *text = NULL;
	size_t len;

	(void)state;
	ex.to = open_memstream(&text, &len);
	assert_non_null(ex.to);
	rwk_sel_choose(&f, &c);
	assert_true(rwk_sel_explain(&ex, &f, &c));
	assert_false(rwk_sel_explain(&ex, &f, &c));
	f.cma_error = EPERM;
	rwk_sel_choose(&f, &c);
	assert_true(rwk_sel_explain(&ex, &f, &c));
	f.node = RWK_SEL_OTHER;
	f.rank = RWK_RANK_NONE;
	rwk_sel_choose(&f, &c);
	assert_true(rwk_sel_explain(&ex, &f, &c));
	assert_false(rwk_sel_explain(&ex, &f, &c));
	fclose(ex.to);
	assert_int_equal(ex.kinds, 3);
	assert_int_equal(ex.kind[0].peers, 2);
	assert_int_equal(ex.kind[1].peers, 1);
	assert_string_equal(text, explained);
	free(text);
}

/* More kinds than can be kept: one line says so, once. */
static void test_explain_overflow(void **state)
{
	struct rwk_sel_explainer ex = {0};
	struct rwk_sel_facts f = start(RWK_SEL_PROVEN);
	struct rwk_sel_choice c;
	char *text = NULL, *said;
	size_t len;
	int printed = 0;

	(void)state;
	ex.to = open_memstream(&text, &len);
	assert_non_null(ex.to);
	for (int error = 1; error <= RWK_SEL_KINDS + 5; error++) {
		f.shm_error = error;
		rwk_sel_choose(&f, &c);
		printed += rwk_sel_explain(&ex, &f, &c);
	}
	fclose(ex.to);
	assert_int_equal(printed, RWK_SEL_KINDS);
	said = strstr(text, "more than 16 kinds of peers");
	assert_non_null(said);
	assert_null(strstr(said + 1, "more than 16 kinds of peers"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_same_node),
		cmocka_unit_test(test_other_node),
		cmocka_unit_test(test_this_version),
		cmocka_unit_test(test_unshared),
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_limit_parameter),
		cmocka_unit_test(test_forced),
		cmocka_unit_test(test_manner),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_explain_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
