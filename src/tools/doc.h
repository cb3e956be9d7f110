/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A document of names and values, written as it is told: JSON for programs, or indented lines ("name: value") for
 * people. The names are those of the JSON, lower case with underscores, which the lines show as blanks. In an object
 * each value has a name, in a list none has one; the lines of a list's objects begin with the name that the object is
 * given there. Text that is no UTF-8 or would move a terminal's cursor is shown with ? in its place.
 */
#ifndef RWK_TOOLS_DOC_H
#define RWK_TOOLS_DOC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RWK_DOC_DEPTH 12

struct rwk_doc {
	FILE *to;
	bool json;
	unsigned depth;
	bool some[RWK_DOC_DEPTH]; /* something stands at this depth already */
	bool list[RWK_DOC_DEPTH]; /* it is a list */
};

/** Begins the document, an object; rwk_doc_close ends it, with a newline. */
void rwk_doc_open(struct rwk_doc *d, FILE *to, bool json);
void rwk_doc_close(struct rwk_doc *d);

void rwk_doc_object(struct rwk_doc *d, const char *name);
void rwk_doc_list(struct rwk_doc *d, const char *name);
/** Ends the object or list begun last. */
void rwk_doc_end(struct rwk_doc *d);

/** NULL: none, in JSON null. */
void rwk_doc_text(struct rwk_doc *d, const char *name, const char *value);
void rwk_doc_number(struct rwk_doc *d, const char *name, uint64_t value);
/** A number that is not worth a line for people if it is 0. */
void rwk_doc_count(struct rwk_doc *d, const char *name, uint64_t value);
/** A number that may not be known: then null, for people "not known". */
void rwk_doc_number_if(struct rwk_doc *d, const char *name, bool known, uint64_t value);
void rwk_doc_flag(struct rwk_doc *d, const char *name, bool value);

#endif
