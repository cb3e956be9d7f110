/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_ROPEWALK_EXPLAIN: a line per kind of peer, put together first and written at once, so that ranks' lines do not
 * mix.
 */
#include "selection/selection.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MYSELF, THIS_NODE, ELSEWHERE };

static int whereabouts(const struct rwk_sel_facts *f)
{
	if (f->self)
		return MYSELF;
	return f->node == RWK_SEL_CLAIMED || f->node == RWK_SEL_PROVEN ? THIS_NODE : ELSEWHERE;
}

static uint64_t mix(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

static uint64_t key_of(const struct rwk_sel_facts *f, const struct rwk_sel_choice *c)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) + (uint64_t)whereabouts(f);

	h = mix(h, rwk_strand_text(c->strand));
	h = mix(h, c->reason);
	h = mix(h, c->manner);
	for (int s = 0; s < RWK_STRAND_COUNT; s++)
		h = mix(h, c->lost[s]);
	return h;
}

/* "3 peers on this node", as far as the job is known. */
static void print_kind(FILE *to, const struct rwk_sel_facts *f, bool some)
{
	static const char *const places[] = {"myself", "on this node", "on other nodes"};
	int where = whereabouts(f);
	uint64_t peers = where == THIS_NODE ? f->local_size - 1 : rwk_sel_rc_connections(f);

	if (where == MYSELF)
		fprintf(to, "myself");
	else if (!f->job_known || !peers)
		fprintf(to, "peers %s", places[where]);
	else
		fprintf(to, "%s%" PRIu64 " peer%s %s", some ? "some of " : "", peers, peers == 1 ? "" : "s",
			places[where]);
}

static void print_words(FILE *to, const struct rwk_sel_facts *f, const struct rwk_sel_choice *c, bool some)
{
	fprintf(to, "ropewalk: ");
	if (f->rank != RWK_RANK_NONE)
		fprintf(to, "rank %u: ", f->rank);
	print_kind(to, f, some);
	if (c->strand == RWK_STRAND_NONE)
		fprintf(to, ": refused: %s", c->reason);
	else
		fprintf(to, ": %s, because %s", rwk_strand_text(c->strand), c->reason);
	if (c->manner[0])
		fprintf(to, "; %s", c->manner);
	for (int s = 0; s < RWK_STRAND_COUNT; s++) {
		if (c->lost[s][0])
			fprintf(to, "; not %s: %s", rwk_strand_text((enum rwk_strand)s), c->lost[s]);
	}
	fputc('\n', to);
}

static void print_line(FILE *to, const struct rwk_sel_facts *f, const struct rwk_sel_choice *c, bool some)
{
	char *line = NULL;
	size_t len;
	FILE *words = open_memstream(&line, &len);

	if (!words)
		return;
	print_words(words, f, c, some);
	if (!fclose(words))
		fputs(line, to);
	free(line);
}

bool rwk_sel_explain(struct rwk_sel_explainer *ex, const struct rwk_sel_facts *f, const struct rwk_sel_choice *c)
{
	FILE *to = ex->to ? ex->to : stderr;
	uint64_t key = key_of(f, c);
	bool some = false;

	for (unsigned i = 0; i < ex->kinds; i++) {
		if (ex->kind[i].key == key) {
			ex->kind[i].peers++;
			return false;
		}
		some = some || ex->kind[i].where == whereabouts(f);
	}
	if (ex->kinds == RWK_SEL_KINDS) {
		if (!ex->overflow)
			fprintf(to, "ropewalk: more than %u kinds of peers: further ones are not explained\n",
				RWK_SEL_KINDS);
		ex->overflow = true;
		return false;
	}
	ex->kind[ex->kinds].key = key;
	ex->kind[ex->kinds].where = whereabouts(f);
	ex->kind[ex->kinds++].peers = 1;
	print_line(to, f, c, some);
	return true;
}
