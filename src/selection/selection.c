/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two passes over the strands. The first asks of each whether it could carry the peer at all, and writes down what
 * speaks against it. The second takes the first in the order of preference that could, and that this version has; the
 * others then lost to it.
 */
#include "selection/selection.h"

#include "base/compiler.h"
#include "selection/cost.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const struct {
	const char *text;
	int service, link; /* enum rwk_param_service, enum rwk_param_link */
} strands[RWK_STRAND_COUNT + 1] = {
	[RWK_STRAND_SELF] = {"self", RWK_SERVICE_AUTO, RWK_LINK_AUTO},
	[RWK_STRAND_UC_SHM] = {"UC/shm", RWK_SERVICE_UC, RWK_LINK_SHM},
	[RWK_STRAND_RC_UDP] = {"RC/udp", RWK_SERVICE_RC, RWK_LINK_UDP},
	[RWK_STRAND_SRC_UDP] = {"SRC/udp", RWK_SERVICE_SRC, RWK_LINK_UDP},
	[RWK_STRAND_UC_TCP] = {"UC/tcp", RWK_SERVICE_UC, RWK_LINK_TCP},
	[RWK_STRAND_NONE] = {"none", RWK_SERVICE_AUTO, RWK_LINK_AUTO},
};

static const char *const service_texts[] = {"auto", "rc", "uc", "src"};
static const char *const link_texts[] = {"auto", "shm", "udp", "tcp"};

const char *rwk_strand_text(enum rwk_strand s)
{
	return strands[s].text;
}

uint64_t rwk_sel_rc_connections(const struct rwk_sel_facts *f)
{
	return f->size > f->local_size ? f->size - f->local_size : 0;
}

uint64_t rwk_sel_src_connections(const struct rwk_sel_facts *f)
{
	return f->nodes > 1 ? f->nodes - 1 : 0;
}

uint64_t rwk_sel_rc_bytes(const struct rwk_sel_facts *f)
{
	return rwk_sel_rc_connections(f) * f->local_size * RWK_COST_RC;
}

void rwk_sel_set_limit(struct rwk_sel_facts *f, size_t parameter)
{
	uint64_t limit = RWK_SEL_SRC_LIMIT;

	f->limit_from = RWK_SEL_LIMIT_FIXED;
	if (parameter) {
		limit = parameter;
		f->limit_from = RWK_SEL_LIMIT_PARAMETER;
	} else if (f->memory) {
		limit = f->memory / RWK_SEL_MEMORY_PART / RWK_COST_RC / f->local_size;
		f->limit_from = RWK_SEL_LIMIT_MEMORY;
	}
	f->src_limit = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

void rwk_sel_facts_init(struct rwk_sel_facts *f, const struct rwk_job_map *map, const struct rwk_params *params)
{
	*f = (struct rwk_sel_facts){
		.node = RWK_SEL_UNKNOWN,
		.cma_error = params->cma == RWK_OFF ? EOPNOTSUPP : 0,
		.rank = map->rank,
		.size = map->size,
		.nodes = map->nodes,
		.ranks_per_node = map->ranks_per_node,
		.local_size = map->local_size,
		.processors = map->machine.processors,
		.job_known = map->source != RWK_JOB_NONE || map->size > 1,
		.memory = map->machine.memory,
		.udp = true,
		.tcp = true,
		.built = RWK_STRANDS_BUILT,
		.service = params->service,
		.link = params->link,
	};
	rwk_sel_set_limit(f, params->src_limit);
}

static void say(char *to, const char *fmt, ...) rwk_printf(2, 3);

static void say(char *to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to, RWK_SEL_TEXT, fmt, ap);
	va_end(ap);
}

static bool on_this_node(const struct rwk_sel_facts *f)
{
	return f->node == RWK_SEL_CLAIMED || f->node == RWK_SEL_PROVEN;
}

static bool beyond_limit(const struct rwk_sel_facts *f)
{
	return rwk_sel_rc_connections(f) > f->src_limit;
}

/* Too many, and SRC takes fewer. */
static bool shares_connections(const struct rwk_sel_facts *f)
{
	return beyond_limit(f) && rwk_sel_src_connections(f) < rwk_sel_rc_connections(f);
}

static bool forced_out(const struct rwk_sel_facts *f, enum rwk_strand s)
{
	return (f->service != RWK_SERVICE_AUTO && f->service != strands[s].service) ||
	       (f->link != RWK_LINK_AUTO && f->link != strands[s].link);
}

/* Why memory is not shared with a peer on this node. */
static void say_denied(const struct rwk_sel_facts *f, char *to)
{
	say(to, "memory cannot be shared (%s%s%s)", f->shm_reason ? f->shm_reason : "", f->shm_reason ? ": " : "",
		strerror(f->shm_error));
}

/*
 * Whether the strand could carry the peer if this version had it and nothing were forced; else `why` says what is
 * against it.
 */
static bool reaches(const struct rwk_sel_facts *f, enum rwk_strand s, char *why)
{
	if (f->self || s == RWK_STRAND_SELF) {
		if (s != RWK_STRAND_SELF)
			say(why, "no link is needed to oneself");
		else if (!f->self)
			say(why, "the peer is another process");
		return f->self && s == RWK_STRAND_SELF;
	}
	switch (s) {
	case RWK_STRAND_UC_SHM:
		if (f->node == RWK_SEL_OTHER)
			say(why, "the peer is on another node");
		else if (f->node == RWK_SEL_UNKNOWN)
			say(why, "nothing says that the peer is on this node");
		else if (f->shm_error)
			say_denied(f, why);
		return on_this_node(f) && !f->shm_error;
	case RWK_STRAND_RC_UDP:
	case RWK_STRAND_SRC_UDP:
		if (!f->udp)
			say(why, "%s", f->no_network ? f->no_network : "UDP does not get through to the peer");
		else if (s == RWK_STRAND_SRC_UDP && f->unshared)
			say(why, "no connection can be shared: %s", f->unshared);
		return f->udp && !(s == RWK_STRAND_SRC_UDP && f->unshared);
	default:
		if (!f->tcp)
			say(why, "%s", f->no_network ? f->no_network : "TCP does not get through to the peer");
		return f->tcp;
	}
}

static void say_forced(const struct rwk_sel_facts *f, char *to)
{
	if (f->service != RWK_SERVICE_AUTO && f->link != RWK_LINK_AUTO)
		say(to, "FI_ROPEWALK_SERVICE=%s with FI_ROPEWALK_LINK=%s", service_texts[f->service],
			link_texts[f->link]);
	else if (f->service != RWK_SERVICE_AUTO)
		say(to, "FI_ROPEWALK_SERVICE=%s", service_texts[f->service]);
	else
		say(to, "FI_ROPEWALK_LINK=%s", link_texts[f->link]);
}

/* Best first; the middle two change places with the number of connections. */
static void order_strands(const struct rwk_sel_facts *f, enum rwk_strand order[RWK_STRAND_COUNT])
{
	bool many = shares_connections(f);

	order[0] = RWK_STRAND_SELF;
	order[1] = RWK_STRAND_UC_SHM;
	order[2] = many ? RWK_STRAND_SRC_UDP : RWK_STRAND_RC_UDP;
	order[3] = many ? RWK_STRAND_RC_UDP : RWK_STRAND_SRC_UDP;
	order[4] = RWK_STRAND_UC_TCP;
}

/* The best of `could` (RWK_STRAND_BITs). */
static enum rwk_strand best_of(const struct rwk_sel_facts *f, unsigned could)
{
	enum rwk_strand order[RWK_STRAND_COUNT];

	order_strands(f, order);
	for (int i = 0; i < RWK_STRAND_COUNT; i++) {
		if (could & RWK_STRAND_BIT(order[i]))
			return order[i];
	}
	return RWK_STRAND_NONE;
}

/* What is held against the limit, and the limit: "1.4 GiB on this node, more than 256 MiB (1/1024 of its memory)". */
static void say_limit(const struct rwk_sel_facts *f, char *to)
{
	const char *more = beyond_limit(f) ? "more than" : "not more than";
	char bytes[RWK_COST_TEXT], most[RWK_COST_TEXT];

	if (f->limit_from == RWK_SEL_LIMIT_MEMORY)
		say(to, "%s on this node, %s %s (1/%d of its memory)", rwk_cost_bytes(rwk_sel_rc_bytes(f), bytes), more,
			rwk_cost_bytes(f->memory / RWK_SEL_MEMORY_PART, most), RWK_SEL_MEMORY_PART);
	else
		say(to, "%s %u%s", more, f->src_limit,
			f->limit_from == RWK_SEL_LIMIT_PARAMETER ? " (FI_ROPEWALK_SRC_LIMIT)" : "");
}

/* What decided between RC and SRC. */
static void say_connections(const struct rwk_sel_facts *f, char *to)
{
	unsigned long long rc = rwk_sel_rc_connections(f), src = rwk_sel_src_connections(f);
	const char *s = rc == 1 ? "" : "s";
	char limit[RWK_SEL_TEXT];

	say_limit(f, limit);
	if (!f->job_known)
		say(to, "no launcher tells of a large job");
	else if (shares_connections(f))
		say(to, "RC would take %llu connection%s a process, %.100s; SRC takes %llu", rc, s, limit, src);
	else if (beyond_limit(f))
		say(to, "RC takes %llu connection%s a process, %.100s, but SRC would take as many", rc, s, limit);
	else
		say(to, "RC takes %llu connection%s a process, %.100s", rc, s, limit);
}

static void say_reason(const struct rwk_sel_facts *f, enum rwk_strand s, char *to)
{
	char count[RWK_SEL_TEXT];

	switch (s) {
	case RWK_STRAND_SELF:
		say(to, "the peer is this process: messages are copied in place");
		break;
	case RWK_STRAND_UC_SHM:
		say(to,
			"the peer is on this node (%s) and memory can be shared, which loses nothing: acknowledgements "
			"would be waste",
			f->node == RWK_SEL_PROVEN ? "proven by attaching" : "to be proven by attaching");
		break;
	case RWK_STRAND_RC_UDP:
	case RWK_STRAND_SRC_UDP:
		if (f->service == RWK_SERVICE_SRC && !shares_connections(f)) {
			say(to, "UDP gets through, and FI_ROPEWALK_SERVICE=src asks for it");
			break;
		}
		say_connections(f, count);
		say(to, "UDP gets through, and %.200s", count);
		break;
	case RWK_STRAND_UC_TCP:
		say(to, "a byte stream gets through, and nothing better does");
		break;
	default:
		break;
	}
}

/*
 * Why a strand that could have carried the peer lost to the one that is better by the rules, whether this version has
 * it or not.
 */
static void say_beaten(const struct rwk_sel_facts *f, enum rwk_strand winner, enum rwk_strand loser, char *to)
{
	const char *absent = f->built & RWK_STRAND_BIT(loser) ? "" : "; nor is it in this version of ropewalk";
	char count[RWK_SEL_TEXT];

	if (winner == loser) {
		say(to, "it is not in this version of ropewalk");
	} else if (winner == RWK_STRAND_UC_SHM) {
		say(to, "shared memory is faster%s", absent);
	} else if (winner == RWK_STRAND_RC_UDP && loser == RWK_STRAND_SRC_UDP && beyond_limit(f)) {
		say(to, "it would take as many connections, and one flow a pair has the least latency%s", absent);
	} else if (winner == RWK_STRAND_RC_UDP && loser == RWK_STRAND_SRC_UDP) {
		say(to, "connections are few enough for one flow a pair, which has the least latency%s", absent);
	} else if (winner == RWK_STRAND_SRC_UDP && loser == RWK_STRAND_RC_UDP) {
		say_connections(f, count);
		say(to, "%.170s%s", count, absent);
	} else {
		say(to, "%s is faster, and UDP gets through%s", strands[winner].text, absent);
	}
}

/* How shared memory is used with this peer. */
static void decide_manner(const struct rwk_sel_facts *f, struct rwk_sel_choice *c)
{
	char wait[80] = "";

	c->copy_across = !f->cma_error;
	c->yield = f->processors && f->local_size > f->processors;
	if (f->processors)
		snprintf(wait, sizeof(wait), "; waiting %s (%u rank%s on %u processor%s)",
			c->yield ? "yields the core" : "spins", f->local_size, f->local_size == 1 ? "" : "s",
			f->processors, f->processors == 1 ? "" : "s");
	if (c->copy_across)
		say(c->manner, "large messages are copied across address spaces%s", wait);
	else
		say(c->manner, "large messages go through shared memory, as cross-memory copy is %s%s%s",
			f->cma_error == EOPNOTSUPP ? "switched off by FI_ROPEWALK_CMA" : "refused: ",
			f->cma_error == EOPNOTSUPP ? "" : strerror(f->cma_error), wait);
}

/* The first thing in the way: of shared memory, or of the network where that is in the way too. */
static const char *obstacle(const struct rwk_sel_facts *f, const struct rwk_sel_choice *c)
{
	return c->lost[on_this_node(f) || f->udp ? RWK_STRAND_UC_SHM : RWK_STRAND_RC_UDP];
}

/*
 * Nothing carries the peer: is it what was forced, this version, or the network? `reach`: what could, if nothing were
 * forced.
 */
static void refuse(const struct rwk_sel_facts *f, struct rwk_sel_choice *c, unsigned reach)
{
	bool forced = f->service != RWK_SERVICE_AUTO || f->link != RWK_LINK_AUTO;
	enum rwk_strand unforced = best_of(f, reach & f->built);
	char force[80];

	say_forced(f, force);
	c->error = forced && unforced != RWK_STRAND_NONE ? -EINVAL : -EHOSTUNREACH;
	if (c->error == -EINVAL && c->wanted == RWK_STRAND_NONE)
		say(c->reason, "%s leaves nothing that reaches the peer; auto would take %s", force,
			strands[unforced].text);
	else if (c->error == -EINVAL)
		say(c->reason, "%s asks for %s, which is not in this version of ropewalk; auto would take %s", force,
			strands[c->wanted].text, strands[unforced].text);
	else if (c->wanted == RWK_STRAND_NONE && forced)
		say(c->reason,
			"%.120s, and %s leaves nothing else; nor has auto anything else in this version of ropewalk",
			obstacle(f, c), force);
	else if (c->wanted == RWK_STRAND_NONE)
		say(c->reason, "nothing reaches the peer: %.120s", obstacle(f, c));
	else
		say(c->reason, "%.120s, and %s, which would carry it, is not in this version of ropewalk",
			obstacle(f, c), strands[c->wanted].text);
}

void rwk_sel_choose(const struct rwk_sel_facts *f, struct rwk_sel_choice *c)
{
	unsigned reach = 0, could = 0;

	memset(c, 0, sizeof(*c));
	for (enum rwk_strand s = 0; s < RWK_STRAND_COUNT; s++) {
		if (!reaches(f, s, c->lost[s]))
			continue;
		reach |= RWK_STRAND_BIT(s);
		if (s == RWK_STRAND_SELF || !forced_out(f, s))
			could |= RWK_STRAND_BIT(s);
	}
	c->wanted = best_of(f, could);
	c->strand = best_of(f, could & f->built);
	for (enum rwk_strand s = 0; s < RWK_STRAND_COUNT; s++) {
		if (s == c->strand || !(reach & RWK_STRAND_BIT(s)))
			continue;
		if (!(could & RWK_STRAND_BIT(s)))
			say_forced(f, c->lost[s]);
		else
			say_beaten(f, c->wanted, s, c->lost[s]);
	}
	if (c->strand == RWK_STRAND_NONE)
		refuse(f, c, reach);
	else
		say_reason(f, c->strand, c->reason);
	if (c->strand == RWK_STRAND_UC_SHM)
		decide_manner(f, c);
}
