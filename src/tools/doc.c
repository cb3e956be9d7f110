/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doc.h"

#include "tools/text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static void put_text(struct rwk_doc *d, const char *text)
{
	while (*text) {
		size_t n = rwk_text_character(text);

		if (!n) {
			fputc('?', d->to);
			text++;
			continue;
		}
		if (d->json && (*text == '"' || *text == '\\'))
			fputc('\\', d->to);
		fwrite(text, 1, n, d->to);
		text += n;
	}
}

/** Of lists people see the entries alone, which stand as deep as the list. */
static void indent(struct rwk_doc *d, unsigned depth)
{
	for (unsigned i = 1; i <= depth; i++) {
		if (d->json)
			fputc('\t', d->to);
		else if (!d->list[i])
			fputs("    ", d->to);
	}
}

/** What stands before a value, up to its name and what divides the two. */
static void put_name(struct rwk_doc *d, const char *name)
{
	if (d->json) {
		fprintf(d->to, "%s\n\t", d->some[d->depth] ? "," : "");
		indent(d, d->depth);
		if (!d->list[d->depth])
			fprintf(d->to, "\"%s\": ", name);
	} else {
		indent(d, d->depth);
		for (const char *c = name; *c; c++)
			fputc(*c == '_' ? ' ' : *c, d->to);
		fputs(":", d->to);
	}
	d->some[d->depth] = true;
}

static void descend(struct rwk_doc *d, bool list)
{
	assert(d->depth + 1 < RWK_DOC_DEPTH);
	d->depth++;
	d->some[d->depth] = false;
	d->list[d->depth] = list;
}

void rwk_doc_open(struct rwk_doc *d, FILE *to, bool json)
{
	*d = (struct rwk_doc){.to = to, .json = json};
	if (json)
		fputc('{', to);
}

void rwk_doc_close(struct rwk_doc *d)
{
	if (d->json)
		fputs(d->some[0] ? "\n}\n" : "}\n", d->to);
}

void rwk_doc_object(struct rwk_doc *d, const char *name)
{
	put_name(d, name);
	fputs(d->json ? "{" : "\n", d->to);
	descend(d, false);
}

/* For people a list's entries stand where its name would. */
void rwk_doc_list(struct rwk_doc *d, const char *name)
{
	if (d->json) {
		put_name(d, name);
		fputc('[', d->to);
	}
	descend(d, true);
}

void rwk_doc_end(struct rwk_doc *d)
{
	bool some = d->some[d->depth], list = d->list[d->depth];

	assert(d->depth > 0);
	d->depth--;
	if (!d->json)
		return;
	if (some) {
		fputs("\n\t", d->to);
		indent(d, d->depth);
	}
	fputc(list ? ']' : '}', d->to);
}

void rwk_doc_text(struct rwk_doc *d, const char *name, const char *value)
{
	put_name(d, name);
	if (!value) {
		fputs(d->json ? "null" : " none\n", d->to);
		return;
	}
	fputc(d->json ? '"' : ' ', d->to);
	put_text(d, value);
	fputc(d->json ? '"' : '\n', d->to);
}

void rwk_doc_number_if(struct rwk_doc *d, const char *name, bool known, uint64_t value)
{
	put_name(d, name);
	if (known)
		fprintf(d->to, d->json ? "%" PRIu64 : " %" PRIu64 "\n", value);
	else
		fputs(d->json ? "null" : " not known\n", d->to);
}

void rwk_doc_number(struct rwk_doc *d, const char *name, uint64_t value)
{
	rwk_doc_number_if(d, name, true, value);
}

void rwk_doc_count(struct rwk_doc *d, const char *name, uint64_t value)
{
	if (d->json || value)
		rwk_doc_number(d, name, value);
}

void rwk_doc_flag(struct rwk_doc *d, const char *name, bool value)
{
	put_name(d, name);
	if (d->json)
		fputs(value ? "true" : "false", d->to);
	else
		fputs(value ? " yes\n" : " no\n", d->to);
}
