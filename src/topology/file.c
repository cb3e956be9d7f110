/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job map file; its format stands in job_map.h. Read line by line; the first error ends it, with file, line and
 * what would be right. The nodes of the ranks are collected in an array, because node lines may name ranks in any
 * order.
 */
#define _GNU_SOURCE
#include "topology/source.h"

#include "base/log.h"

#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	const struct rwk_job_env *env;
	const char *path;
	unsigned line;
	char *why;
	size_t why_len;
	bool for_tool; /* which runs outside the job */

	char *id;
	uint32_t ranks; /* 0: not said yet */
	uint32_t rank;
	bool rank_said;
	uint32_t *node; /* of each rank */
	uint32_t nodes; /* node lines so far */
	bool laid_out;  /* a layout line was there */
	void *names;    /* a search tree of the node names so far */
};

static int refuse(struct parser *p, const char *fmt, ...) rwk_printf(2, 3);

static int refuse(struct parser *p, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(p->why, p->why_len, "%s:%u: %s", p->path, p->line, text);
	return -EINVAL;
}

static int read_job(struct parser *p, char **word)
{
	if (p->id)
		return refuse(p, "a second job line; one is right");
	p->id = strdup(word[1]);
	return p->id ? 0 : -ENOMEM;
}

static int read_ranks(struct parser *p, char **word)
{
	const char *at = word[1];
	uint32_t n;

	if (p->ranks)
		return refuse(p, "a second ranks line; one is right");
	if (rwk_read_number(&at, RWK_MAX_RANKS, &n) || *at || !n)
		return refuse(p, "ranks %s is not a number from 1 to %u", word[1], RWK_MAX_RANKS);
	p->node = malloc(n * sizeof(*p->node));
	if (!p->node)
		return -ENOMEM;
	for (uint32_t r = 0; r < n; r++)
		p->node[r] = RWK_NODE_NONE;
	p->ranks = n;
	return 0;
}

static int read_layout(struct parser *p, char **word)
{
	bool cyclic = word[2] && !strcmp(word[2], "cyclic");
	uint32_t nodes, per_node;
	const char *at = word[1];

	if (p->laid_out || p->nodes)
		return refuse(p, "layout after another layout or node line; either one layout or node lines are right");
	if (rwk_read_number(&at, RWK_MAX_NODES, &nodes) || *at++ != 'x' ||
		rwk_read_number(&at, RWK_MAX_RANKS, &per_node) || *at || !nodes || !per_node)
		return refuse(p, "layout %s is not <nodes>x<ranks a node>, as in 4x8", word[1]);
	if (word[2] && !cyclic && strcmp(word[2], "block"))
		return refuse(p, "layout %s %s: block or cyclic would be right", word[1], word[2]);
	if ((uint64_t)nodes * per_node < p->ranks)
		return refuse(p, "layout %s has room for %llu ranks, but there are %u", word[1],
			(unsigned long long)nodes * per_node, p->ranks);
	for (uint32_t r = 0; r < p->ranks; r++)
		p->node[r] = cyclic ? r % nodes : r / per_node;
	p->laid_out = true;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int add_name(struct parser *p, const char *text)
{
	char *name = strdup(text);
	char **found;

	if (!name)
		return -ENOMEM;
	found = tsearch(name, &p->names, compare_names);
	if (found && *found == name)
		return 0;
	free(name);
	return found ? refuse(p, "node %s was there before; one line a node is right", text) : -ENOMEM;
}

static int read_node(struct parser *p, char **word)
{
	const char *at = word[2];
	struct rwk_range range;
	int rc;

	if (p->laid_out)
		return refuse(p, "node after layout; either one layout or node lines are right");
	if (p->nodes == RWK_MAX_NODES)
		return refuse(p, "more than %u nodes", RWK_MAX_NODES);
	rc = add_name(p, word[1]);
	if (rc)
		return rc;
	while ((rc = rwk_read_range(&at, p->ranks, &range)) > 0) {
		for (uint64_t r = range.first; r <= range.last; r += range.step) {
			if (p->node[r] != RWK_NODE_NONE)
				return refuse(p, "rank %llu is on a node already", (unsigned long long)r);
			p->node[r] = p->nodes;
		}
	}
	if (rc)
		return refuse(p, "cannot read \"%.40s\" as ranks below %u; a list as in 0-3,8,10-20:2 would be right",
			at, p->ranks);
	p->nodes++;
	return 0;
}

/* What the job's processes are told is not known here: a remark, and no rank. */
static int leave_rank(struct parser *p, const char *word)
{
	snprintf(p->why, p->why_len, "%s:%u: rank %s: that variable is not set here; this process is none of the ranks",
		p->path, p->line, word);
	p->rank = RWK_RANK_NONE;
	p->rank_said = true;
	return 0;
}

static int read_rank(struct parser *p, char **word)
{
	const char *text = word[1], *at;

	if (p->rank_said)
		return refuse(p, "a second rank line; one is right");
	if (*text == '$') {
		text = rwk_job_getenv(p->env, word[1] + 1);
		if (!text && p->for_tool)
			return leave_rank(p, word[1]);
		if (!text)
			return refuse(p, "rank %s: that variable is not set", word[1]);
	}
	at = text;
	if (rwk_read_number(&at, p->ranks - 1, &p->rank) || *at)
		return refuse(p, "rank %s%s%s is not a number from 0 to %u", word[1], text == word[1] ? "" : " = ",
			text == word[1] ? "" : text, p->ranks - 1);
	p->rank_said = true;
	return 0;
}

static const struct directive {
	const char *name;
	int least, most; /* words behind the name */
	bool needs_ranks;
	int (*read)(struct parser *p, char **word);
} directives[] = {
	{"job", 1, 1, false, read_job},
	{"ranks", 1, 1, false, read_ranks},
	{"layout", 1, 2, true, read_layout},
	{"node", 2, 2, true, read_node},
	{"rank", 1, 1, true, read_rank},
};

static int read_line(struct parser *p, char *text)
{
	char *word[5] = {NULL}, *save = NULL;
	int words = 0;

	text[strcspn(text, "#")] = 0;
	for (char *w = strtok_r(text, " \t\r\n", &save); w && words < 4; w = strtok_r(NULL, " \t\r\n", &save))
		word[words++] = w;
	if (!words)
		return 0;
	for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
		const struct directive *d = &directives[i];

		if (strcmp(word[0], d->name))
			continue;
		if (words - 1 < d->least || words - 1 > d->most)
			return refuse(p, "%s takes %s%d word%s, not %d", d->name, d->least < d->most ? "at most " : "",
				d->most, d->most == 1 ? "" : "s", words - 1);
		if (d->needs_ranks && !p->ranks)
			return refuse(p, "%s before ranks; the number of ranks has to come first", d->name);
		return d->read(p, word);
	}
	return refuse(p, "%.40s is not one of: job ranks layout node rank", word[0]);
}

static int read_lines(struct parser *p, FILE *f)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t len;
	int rc = 0;

	errno = 0;
	while (!rc && (len = getline(&text, &room, f)) >= 0) {
		p->line++;
		rc = (size_t)len == strlen(text) ? read_line(p, text) : refuse(p, "a zero byte; text would be right");
		errno = 0;
	}
	if (!rc && ferror(f)) {
		rc = errno ? -errno : -EIO;
		snprintf(p->why, p->why_len, "%s: %s", p->path, strerror(-rc));
	}
	free(text);
	return rc;
}

static int draft_file(struct parser *p, struct rwk_job_map *draft)
{
	uint32_t start = 0;
	int rc;

	if (!p->ranks)
		return refuse(p, "the file ends without a ranks line");
	draft->size = p->ranks;
	draft->rank = p->rank_said ? p->rank : RWK_RANK_NONE;
	for (uint32_t r = 1; r <= p->ranks; r++) {
		if (p->node[r - 1] == RWK_NODE_NONE)
			return refuse(p,
				"the file ends and rank %u is on no node; a layout or another node line would be right",
				r - 1);
		if (r < p->ranks && p->node[r] == p->node[start])
			continue;
		rc = rwk_node_map_add(&draft->map, r - start, p->node[start]);
		if (rc)
			return rc;
		start = r;
	}
	return rwk_job_identify(p->env, draft, p->id ? p->id : p->path, NULL);
}

/* Fills the draft, or says in `why` what is wrong. */
static int parse_file(struct parser *p, struct rwk_job_map *draft)
{
	FILE *f = fopen(p->path, "re");
	int rc;

	if (!f) {
		rc = -errno;
		snprintf(p->why, p->why_len, "%s: %s", p->path, strerror(errno));
		return rc;
	}
	rc = read_lines(p, f);
	if (!rc)
		rc = draft_file(p, draft);
	fclose(f);
	tdestroy(p->names, free);
	free(p->node);
	free(p->id);
	return rc;
}

int rwk_job_from_file(const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	const char *path = env->params ? env->params->job_file : rwk_params.job_file;
	char why[512];
	struct parser p = {.env = env, .path = path, .why = why, .why_len = sizeof(why)};
	int rc;

	if (!path || !*path)
		return 0;
	rc = parse_file(&p, draft);
	if (!rc)
		return 1;
	if (rc == -ENOMEM)
		return rc;
	rwk_warn("FI_ROPEWALK_JOB_FILE: %s; this source of the job map is passed over", why);
	return -EINVAL;
}

int rwk_job_map_read(const char *path, const struct rwk_job_env *env, struct rwk_job_map **out, char *why, size_t len)
{
	static const struct rwk_job_env own;
	struct parser p = {.env = env ? env : &own, .path = path, .why = why, .why_len = len, .for_tool = true};
	struct rwk_job_map *m = calloc(1, sizeof(*m));
	int rc;

	*why = '\0';
	if (!m)
		return -ENOMEM;
	rwk_job_map_clear(m);
	m->source = RWK_JOB_FILE;
	rc = parse_file(&p, m);
	if (!rc)
		rc = rwk_job_map_complete(m);
	if (rc) {
		rwk_job_map_free(m);
		return rc;
	}
	*out = m;
	return 0;
}
