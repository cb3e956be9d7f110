/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include "base/cancel.h"

#include <errno.h>
#include <stdio.h>

static rwk_log_sink log_sink;
static enum rwk_log_level log_level = RWK_LOG_WARN;

void rwk_log_set_sink(rwk_log_sink sink)
{
	log_sink = sink;
}

void rwk_log_set_level(enum rwk_log_level level)
{
	log_level = level;
}

void rwk_log(enum rwk_log_level level, const char *file, int line, const char *fmt, ...)
{
	int saved = errno, before;
	char text[1024];
	va_list ap;

	if (level > log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	before = rwk_cancel_hold_off();
	if (log_sink)
		log_sink(level, file, line, text);
	else
		fprintf(stderr, "ropewalk: %s\n", text);
	rwk_cancel_as_before(before);
	errno = saved;
}
