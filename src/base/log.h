/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines. They go to a sink: stderr to begin with, libfabric's log once the provider has set its own. The first
 * function that decides about an error logs it; those above pass the errno on in silence.
 */
#ifndef RWK_BASE_LOG_H
#define RWK_BASE_LOG_H

#include "base/compiler.h"

#include <stdarg.h>

enum rwk_log_level {
	RWK_LOG_WARN,  /* something the user should mend; always shown */
	RWK_LOG_INFO,  /* a decision or a rare event */
	RWK_LOG_DEBUG, /* the rest */
};

typedef void (*rwk_log_sink)(enum rwk_log_level level, const char *file, int line, const char *text);

/** Sets where lines go from now on; NULL: stderr. The sink may be called from any thread that calls ropewalk. */
void rwk_log_set_sink(rwk_log_sink sink);

/** Sets the most talkative level that is passed to the sink. Default RWK_LOG_WARN. */
void rwk_log_set_level(enum rwk_log_level level);

/** One line, without the line feed. Never blocks beyond the sink; keeps errno. */
void rwk_log(enum rwk_log_level level, const char *file, int line, const char *fmt, ...) rwk_printf(4, 5);

#define rwk_warn(...)  rwk_log(RWK_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define rwk_info(...)  rwk_log(RWK_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define rwk_debug(...) rwk_log(RWK_LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)

#endif
