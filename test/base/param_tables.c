/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the table of parameters as the documents show it: `param_tables markdown` or `param_tables man`. */
#include "base/param.h"

#include <stdio.h>
#include <string.h>

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

		rwk_param_variable(p, name, sizeof(name));
		rwk_param_good(p, values, sizeof(values));
		if (man)
			printf(".TP\n.BR %s \" (%s; default %s)\"\n%s.\n", name, values,
				p->initial ? p->initial : "unset", p->help);
		else
			printf("| `%s` | %s | %s | %s |\n", name, p->initial ? p->initial : "", values, p->help);
	}
	return 0;
}
