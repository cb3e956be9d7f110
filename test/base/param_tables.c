/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the table of parameters as the documents show it: `param_tables markdown` or `param_tables man`. */
#include "base/param.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void good_values(const struct rwk_param *p, char *buf, size_t len)
{
	size_t at = 0;

	switch (p->type) {
	case RWK_PARAM_BOOL:
		snprintf(buf, len, "yes no");
		break;
	case RWK_PARAM_SIZE:
		snprintf(buf, len, "%zu to %zu", p->min, p->max);
		break;
	case RWK_PARAM_CHOICE:
		for (int i = 0; p->choices[i] && at < len; i++)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", i ? " " : "", p->choices[i]);
		break;
	case RWK_PARAM_TEXT:
		snprintf(buf, len, "text");
		break;
	}
}

int main(int argc, char **argv)
{
	int man = argc == 2 && !strcmp(argv[1], "man");

	if (!man && (argc != 2 || strcmp(argv[1], "markdown"))) {
		fprintf(stderr, "param_tables markdown | man\n");
		return 2;
	}
	if (!man)
		puts("| variable | default | values | what it does |\n|---|---|---|---|");
	for (size_t i = 0; i < rwk_param_count; i++) {
		const struct rwk_param *p = &rwk_param_table[i];
		char name[64], values[160];

		snprintf(name, sizeof(name), "FI_ROPEWALK_%s", p->name);
		for (char *c = name; *c; c++)
			*c = (char)toupper((unsigned char)*c);
		good_values(p, values, sizeof(values));
		if (man)
			printf(".TP\n.BR %s \" (%s; default %s)\"\n%s.\n", name, values, p->initial ? p->initial : "unset", p->help);
		else
			printf("| `%s` | %s | %s | %s |\n", name, p->initial ? p->initial : "", values, p->help);
	}
	return 0;
}
