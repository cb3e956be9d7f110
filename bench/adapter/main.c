/* SPDX-License-Identifier: BSD-3-Clause */
/* From the command line to the exit status. */
#include "bench/adapter/adapter.h"

#include "bench/common/cpu.h"
#include "bench/common/sweep.h"
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

int bench_adapter_main(int argc, char **argv, const struct bench_test *test)
{
	struct bench_adapter_options o;
	struct bench_test what = *test;
	struct bench_adapter p = {
		.team = {.ranks = 2, .largest = bench_adapter_largest}, .o = &o, .test = &what, .talk = -1};
	int rc;

	if (bench_adapter_parse(argc, argv, &what, &o))
		return 2;
	p.team.rank = !o.host;
	snprintf(p.library, sizeof(p.library), "ropewalk %s, %s over %s%s", PACKAGE_VERSION, o.operation->name,
		o.type_name, o.bidirectional ? ", both ways" : "");
	p.team.library = p.library;
	bench_bind_to_cpu(p.team.rank);
	rc = bench_adapter_open(&p);
	if (!rc)
		rc = bench_sweep(&what, &o.common, &p.team);
	bench_adapter_close(&p);
	free(p.times);
	return rc < 0 ? 2 : rc;
}
