/* SPDX-License-Identifier: BSD-3-Clause */
/* FI_ROPEWALK_STATS: what an engine has done, for the user to read. */
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/engine.h"

#include <stdio.h>

/* A line of its own, if there was any: most programs do nothing of that kind. */
static void print_rma(const char *name, const struct rwk_engine_counters *c)
{
	if (!c->reads && !c->writes && !c->atomics)
		return;
	fprintf(stderr,
		"ropewalk: %s: of others' memory read %llu times, %llu bytes; written %llu times, %llu bytes; changed by "
		"%llu atomics, %llu bytes\n",
		name, (unsigned long long)c->reads, (unsigned long long)c->read_bytes, (unsigned long long)c->writes,
		(unsigned long long)c->written_bytes, (unsigned long long)c->atomics,
		(unsigned long long)c->atomic_bytes);
}

void rwk_fi_engine_print(const struct rwk_engine *engine)
{
	const struct rwk_engine_counters *c = rwk_engine_counters(engine);
	char name[128];

	rwk_fi_address_show(rwk_engine_address(engine), name, sizeof(name));
	fprintf(stderr,
		"ropewalk: %s: sent %llu messages, %llu bytes (%llu eager, %llu rendezvous, %llu of these for want of "
		"credit and %llu of those sent late); received %llu, %llu bytes (%llu unexpected, at most "
		"%llu bytes of them at once); %llu peers failed or ended first\n",
		name, (unsigned long long)(c->sent_eager + c->sent_rendezvous), (unsigned long long)c->sent_bytes,
		(unsigned long long)c->sent_eager, (unsigned long long)c->sent_rendezvous,
		(unsigned long long)c->credits_waited, (unsigned long long)c->sent_late,
		(unsigned long long)c->received, (unsigned long long)c->received_bytes,
		(unsigned long long)c->unexpected, (unsigned long long)c->unexpected_bytes_peak,
		(unsigned long long)c->failed_peers);
	print_rma(name, c);
}
