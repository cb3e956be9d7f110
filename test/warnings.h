/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines that warn: how many there were, and the last one. */
#ifndef RWK_TEST_WARNINGS_H
#define RWK_TEST_WARNINGS_H

#include "base/log.h"

#include <stdio.h>

static unsigned warnings;
static char last_warning[1024];

static inline void keep_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level != RWK_LOG_WARN)
		return;
	warnings++;
	snprintf(last_warning, sizeof(last_warning), "%s", text);
}

/** From now on, from none; warnings_end: no more. */
static inline void warnings_begin(void)
{
	warnings = 0;
	last_warning[0] = '\0';
	rwk_log_set_sink(keep_warning);
}

static inline void warnings_end(void)
{
	rwk_log_set_sink(NULL);
}

#endif
