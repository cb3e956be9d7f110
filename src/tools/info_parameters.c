/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters: values, where they come from, what they are for. */
#include "base/param.h"
#include "tools/info.h"

static void print_parameter(const struct rwk_param *p)
{
	const char *initial = p->initial ? p->initial : "not set";
	char variable[64], value[4096], good[100];

	rwk_param_variable(p, variable, sizeof(variable));
	rwk_param_good(p, good, sizeof(good));
	rwk_param_show(&rwk_params, p, value, sizeof(value));
	if (rwk_param_is_set(p))
		printf("%s = %s (from the environment; the default is %s)\n", variable, value, initial);
	else
		printf("%s = %s (the default)\n", variable, value[0] ? value : initial);
	printf("    %s", p->help);
	if (p->type != RWK_PARAM_TEXT || p->form)
		printf("; %s%s", p->type == RWK_PARAM_BOOL || p->type == RWK_PARAM_CHOICE ? "one of: " : "", good);
	printf("\n");
}

void rwk_info_parameters(void)
{
	for (size_t i = 0; i < rwk_param_count; i++)
		print_parameter(&rwk_param_table[i]);
}

static void parameter_doc(struct rwk_doc *d, const struct rwk_param *p)
{
	char variable[64], value[4096], good[100];
	bool unset = p->type == RWK_PARAM_TEXT && !*rwk_param_show(&rwk_params, p, value, sizeof(value));

	rwk_doc_object(d, "parameter");
	rwk_doc_text(d, "name", rwk_param_variable(p, variable, sizeof(variable)));
	rwk_doc_text(d, "value", unset ? NULL : rwk_param_show(&rwk_params, p, value, sizeof(value)));
	rwk_doc_text(d, "source", rwk_param_is_set(p) ? "environment" : "default");
	rwk_doc_text(d, "default", p->initial);
	rwk_doc_text(d, "good", rwk_param_good(p, good, sizeof(good)));
	rwk_doc_text(d, "help", p->help);
	rwk_doc_end(d);
}

void rwk_info_parameters_doc(struct rwk_doc *d)
{
	rwk_doc_list(d, "parameters");
	for (size_t i = 0; i < rwk_param_count; i++)
		parameter_doc(d, &rwk_param_table[i]);
	rwk_doc_end(d);
}
