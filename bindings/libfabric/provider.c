/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loading: what happens between dlopen and the first fi_getinfo. Our parameters are mirrored into libfabric's registry,
 * so that `fi_info -e` lists them, and our log lines go to libfabric's log. A warning is for the user and must not be
 * lost because FI_LOG_LEVEL is unset, as it usually is: then it goes to stderr, each text once.
 */
#include "bindings/libfabric/progress.h"
#include "bindings/libfabric/provider.h"

#include "base/log.h"
#include "base/param.h"
#include "engine/job.h"

#include <rdma/providers/fi_log.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cleanup(void)
{
	rwk_fi_progress_stop_all();
	rwk_log_set_sink(NULL);
	rwk_job_unload();
}

struct fi_provider rwk_fi_provider = {
	.version = FI_VERSION(0, 1),
	.name = RWK_FI_NAME,
	.getinfo = rwk_fi_getinfo,
	.fabric = rwk_fi_fabric,
	.cleanup = cleanup,
};

int rwk_fi_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid, (void)other, (void)flags;
	return -FI_ENOSYS;
}

int rwk_fi_no_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

int rwk_fi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

int rwk_fi_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	(void)fid, (void)buf, (void)len;
	return -FI_ENOSYS;
}

int rwk_fi_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

const char *rwk_fi_strerror(int prov_errno, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

#define SEEN_MAX 64 /* different warnings that are told apart; beyond them all are shown */

/* Whether this text has not been shown before. Without a lock, which a forked child could find held for ever. */
static bool first_time(const char *text)
{
	static _Atomic uint64_t seen[SEEN_MAX]; /* 0: nothing yet, as from there on */
	uint64_t hash = 14695981039346656037u;

	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	hash |= 1;
	for (unsigned i = 0; i < SEEN_MAX; i++) {
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&seen[i], &there, hash))
			break;
		if (there == hash)
			return false;
	}
	return true;
}

static void sink(enum rwk_log_level level, const char *file, int line, const char *text)
{
	static const enum fi_log_level levels[] = {
		[RWK_LOG_WARN] = FI_LOG_WARN, [RWK_LOG_INFO] = FI_LOG_INFO, [RWK_LOG_DEBUG] = FI_LOG_DEBUG};

	if (fi_log_enabled(&rwk_fi_provider, levels[level], FI_LOG_CORE))
		fi_log(&rwk_fi_provider, levels[level], FI_LOG_CORE, file, line, "%s\n", text);
	else if (level != RWK_LOG_WARN || first_time(text))
		fprintf(stderr, "ropewalk: %s\n", text);
}

/* The most talkative of what FI_ROPEWALK_LOG asks for and what libfabric's log would show. */
static enum rwk_log_level wanted_level(void)
{
	enum rwk_log_level level = (enum rwk_log_level)rwk_params.log;

	if (level < RWK_LOG_INFO && fi_log_enabled(&rwk_fi_provider, FI_LOG_INFO, FI_LOG_CORE))
		level = RWK_LOG_INFO;
	if (level < RWK_LOG_DEBUG && fi_log_enabled(&rwk_fi_provider, FI_LOG_DEBUG, FI_LOG_CORE))
		level = RWK_LOG_DEBUG;
	return level;
}

static void define_param(const struct rwk_param *p)
{
	char good[128];

	/* Always as a string: libfabric's own parsing knows neither choices nor K, M and G, nor what to say about a
	 * wrong value. */
	fi_param_define(&rwk_fi_provider, p->name, FI_PARAM_STRING, "%s (%s%s; default: %s)", p->help,
		rwk_param_good(p, good, sizeof(good)), p->type == RWK_PARAM_SIZE ? ", K, M and G may follow" : "",
		p->initial ? p->initial : "none");
}

/*
 * The value libfabric has for *p: its registry may know more sources than the environment. But it logs
 * what it gives.
 */
static void take_param(const struct rwk_param *p)
{
	char *text = NULL, *kept;
	char why[160], name[64];

	if (p->secret)
		text = getenv(rwk_param_variable(p, name, sizeof(name)));
	else if (fi_param_get_str(&rwk_fi_provider, p->name, &text))
		return;
	if (!text)
		return;
	kept = p->type == RWK_PARAM_TEXT ? strdup(text) : text; /* the registry keeps the value as long as we do not */
	if (kept && !rwk_param_set(&rwk_params, p, kept, why, sizeof(why)))
		return;
	rwk_warn("%s=%s is %s; %s is used", rwk_param_variable(p, name, sizeof(name)), text,
		kept ? why : "too much for memory", p->initial ? p->initial : "nothing");
}

static void set_defaults(void)
{
	char why[160];

	for (size_t i = 0; i < rwk_param_count; i++) {
		if (rwk_param_table[i].initial)
			rwk_param_set(&rwk_params, &rwk_param_table[i], rwk_param_table[i].initial, why, sizeof(why));
	}
}

FI_EXT_INI; /* libfabric has the prototype as a macro alone */

FI_EXT_INI
{
	if (rwk_job_watch_forks())
		return NULL;
	/* Whatever library has loaded us, its own version is the one it accepts. */
	rwk_fi_provider.fi_version = fi_version();
	rwk_log_set_sink(sink);
	set_defaults();
	for (size_t i = 0; i < rwk_param_count; i++)
		define_param(&rwk_param_table[i]);
	for (size_t i = 0; i < rwk_param_count; i++)
		take_param(&rwk_param_table[i]);
	rwk_log_set_level(wanted_level());
	return &rwk_fi_provider;
}
