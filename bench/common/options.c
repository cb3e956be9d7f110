/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/common/options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY_DIRTY = 256,
	KEY_JSON,
	KEY_TICKS,
	KEY_NO_INJECT,
	KEY_DELIVERED,
	KEY_SYNC,
	KEY_OWN_MEMORY,
	KEY_AT,
	KEY_USAGE
};

const char *const bench_sync_names[] = {
	[BENCH_FLUSH] = "flush",
	[BENCH_LOCK] = "lock",
	[BENCH_FENCE] = "fence",
	[BENCH_PSCW] = "pscw",
};

static const struct argp_option common_options[] = {
	{"sizes", 's', "LIST", 0, "Message sizes in bytes: 8 or 0,8,4K or 1:4M (doubling) or a mixture", 0},
	{"iterations", 'i', "N", 0, "Iterations of a repeat (default: as many as fill its time)", 0},
	{"warmup", 'x', "N", 0, "Iterations before the first repeat of a size (default 10)", 0},
	{"time", 't', "SECONDS", 0, "Time wanted for one repeat (default 0.05)", 0},
	{"repeats", 'r', "N", 0, "Repeats of each size; the median is the result (default 5)", 0},
	{"window", 'W', "N", 0, "Messages in flight, where a test has a window (default 64)", 0},
	{"at", KEY_AT, "N[,M]", 0,
		"Buffers that are sent from begin N bytes behind a page's beginning, those received into M "
		"(default 0,0; long blocks of malloc begin at 16)",
		0},
	{"dirty", KEY_DIRTY, NULL, 0, "Write the data before each send and read it after each receive", 0},
	{"check", 'c', NULL, 0, "Check the contents of every message (implies --dirty)", 0},
	{"json", KEY_JSON, "FILE", 0, "Write the results to FILE", 0},
	{"ticks", KEY_TICKS, "FILE", 0, "Run without end and count in FILE, for bench/slices; takes one size", 0},
	{"help", 'h', NULL, 0, "Print this text", -1},
	{"usage", KEY_USAGE, NULL, OPTION_HIDDEN, NULL, 0}, /* argp's errors recommend it */
	{0},
};

static const struct argp_option fabric_options[] = {
	{"provider", 'p', "NAME", 0, "The libfabric provider, for example shm or \"tcp;ofi_rxm\" (required)", 0},
	{"no-inject", KEY_NO_INJECT, NULL, 0, "Send small messages with a completion each instead of fi_tinject", 0},
	{"delivered", KEY_DELIVERED, NULL, 0,
		"A message's send is complete once its receiver's end has it (FI_DELIVERY_COMPLETE; implies "
		"--no-inject)",
		0},
	{0},
};

static const struct argp_option one_sided_options[] = {
	{"sync", KEY_SYNC, "HOW", 0, "flush (default), lock, fence or pscw: what ends an iteration's operations", 0},
	{"own-memory", KEY_OWN_MEMORY, NULL, 0, "MPI_Win_create over memory of the program, not MPI_Win_allocate", 0},
	{0},
};

struct parser {
	const struct bench_test *test;
	struct bench_options *o;
	bool help;
};

/* Reads a whole number with an optional unit from *text, and moves *text behind it. */
static int parse_size(const char **text, size_t *size)
{
	unsigned long long n;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	n = strtoull(*text, &end, 10);
	switch (toupper((unsigned char)*end)) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	}
	if (shift)
		end++;
	if (errno || n > BENCH_MAX_SIZE >> shift)
		return -ERANGE;
	*size = n << shift;
	*text = end;
	return 0;
}

static int add_range(struct bench_options *o, size_t first, size_t last, size_t grain, char *why, size_t len)
{
	for (size_t size = first;; size *= 2) {
		if (grain && size % grain) {
			snprintf(why, len, "%zu is not a multiple of %zu, as this test needs", size, grain);
			return -EINVAL;
		}
		if (o->sizes == BENCH_MAX_SIZES) {
			snprintf(why, len, "more than %d sizes", BENCH_MAX_SIZES);
			return -EINVAL;
		}
		o->size[o->sizes++] = size;
		if (!size || size > last / 2)
			return 0;
	}
}

int bench_sizes_parse(const char *text, size_t grain, struct bench_options *o, char *why, size_t len)
{
	const char *p = text;
	size_t first, last;
	int rc;

	o->sizes = 0;
	for (;;) {
		rc = parse_size(&p, &first);
		last = first;
		if (!rc && *p == ':') {
			p++;
			rc = parse_size(&p, &last);
			if (!rc && (!first || last < first)) {
				snprintf(why, len, "a range goes from a size above 0 to one that is not smaller");
				return -EINVAL;
			}
		}
		if (rc || (*p && *p != ',')) {
			snprintf(why, len, "sizes are 0 to 1G, written like 8 or 0,8,4K or 1:4M");
			return -EINVAL;
		}
		rc = add_range(o, first, last, grain, why, len);
		if (rc)
			return rc;
		if (!*p)
			return 0;
		p++;
	}
}

static error_t parse_count(
	struct argp_state *state, const char *name, const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || !*value || *value > max) {
		argp_error(state, "--%s %s: a whole number from 1 to %lu is needed", name, text, max);
		return EINVAL;
	}
	return 0;
}

static error_t parse_seconds(struct argp_state *state, const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value < 1e-4 || *value > 60) {
		argp_error(state, "--time %s: seconds from 0.0001 to 60 are needed", text);
		return EINVAL;
	}
	return 0;
}

/* "16" for both, or "0,16". */
static error_t parse_at(struct argp_state *state, const char *text, size_t grain, struct bench_options *o)
{
	unsigned long send, recv;
	char *end;

	send = recv = strtoul(text, &end, 10);
	if (*end == ',' && isdigit((unsigned char)end[1]))
		recv = strtoul(end + 1, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || send >= BENCH_PAGE || recv >= BENCH_PAGE) {
		argp_error(state, "--at %s: N or N,M are needed, each from 0 to %u", text, BENCH_PAGE - 1);
		return EINVAL;
	}
	if (grain && (send % grain || recv % grain)) {
		argp_error(state, "--at %s: this test needs multiples of %zu", text, grain);
		return EINVAL;
	}
	o->send_at = send;
	o->recv_at = recv;
	return 0;
}

static error_t parse_fabric_option(int key, char *arg, struct argp_state *state)
{
	struct parser *p = state->input;

	switch (key) {
	case 'p':
		p->o->provider = arg;
		return 0;
	case KEY_NO_INJECT:
		p->o->inject = false;
		return 0;
	case KEY_DELIVERED:
		p->o->delivered = true;
		p->o->inject = false;
		return 0;
	case ARGP_KEY_END:
		if (p->o->provider || p->help)
			return 0;
		argp_error(state,
			"--provider is missing: name a libfabric provider, as `fi_info -t FI_EP_RDM` lists them");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_one_sided_option(int key, char *arg, struct argp_state *state)
{
	struct parser *p = state->input;

	switch (key) {
	case KEY_SYNC:
		for (unsigned i = 0; i <= BENCH_PSCW; i++) {
			if (!strcmp(arg, bench_sync_names[i])) {
				p->o->sync = (enum bench_sync)i;
				return 0;
			}
		}
		argp_error(state, "--sync %s: it is one of flush, lock, fence, pscw", arg);
		return EINVAL;
	case KEY_OWN_MEMORY:
		p->o->own_memory = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_sizes(const char *text, const struct bench_test *test, struct bench_options *o, char *why, size_t len)
{
	int rc = bench_sizes_parse(text, test->grain, o, why, len);

	for (size_t i = 0; !rc && test->only && i < o->sizes; i++) {
		if (o->size[i] == test->only)
			continue;
		snprintf(why, len, "this test knows only %zu", test->only);
		rc = -EINVAL;
	}
	return rc;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct parser *p = state->input;
	struct bench_options *o = p->o;
	unsigned long n;
	char why[120];
	error_t err;

	switch (key) {
	case ARGP_KEY_INIT:
		if (state->root_argp->children)
			state->child_inputs[0] = p;
		return 0;
	case 's':
		if (!parse_sizes(arg, p->test, o, why, sizeof(why)))
			return 0;
		argp_error(state, "--sizes %s: %s", arg, why);
		return EINVAL;
	case 'i':
		return parse_count(state, "iterations", arg, 1000000000, &o->iterations);
	case 'x':
		return parse_count(state, "warmup", arg, 1000000000, &o->warmup);
	case 't':
		return parse_seconds(state, arg, &o->seconds);
	case 'r':
		err = parse_count(state, "repeats", arg, BENCH_MAX_REPEATS, &n);
		o->repeats = err ? o->repeats : n;
		return err;
	case 'W':
		if (!p->test->windowed) {
			argp_error(state, "--window %s: %s has one message in flight at a time", arg, p->test->name);
			return EINVAL;
		}
		err = parse_count(state, "window", arg, 4096, &n);
		o->window = err ? o->window : n;
		return err;
	case KEY_AT:
		return parse_at(state, arg, p->test->grain, o);
	case KEY_DIRTY:
		if (o->touch == BENCH_TOUCH_NONE)
			o->touch = BENCH_TOUCH_DIRTY;
		return 0;
	case 'c':
		o->touch = BENCH_TOUCH_CHECK;
		return 0;
	case KEY_JSON:
		o->json = arg;
		return 0;
	case KEY_TICKS:
		o->ticks = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->ticks || p->help || (o->sizes == 1 && o->touch != BENCH_TOUCH_CHECK))
			return 0;
		argp_error(state, "--ticks %s: give one size, and no --check, of which nobody would be told", o->ticks);
		return EINVAL;
	case 'h':
	case KEY_USAGE:
		p->help = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: not an option; --help lists them", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int bench_options_parse(int argc, char **argv, const struct bench_test *test, enum bench_option_set set, bool talk,
	struct bench_options *o)
{
	/* No exit from inside: in an MPI job every rank must reach MPI_Finalize, or the launcher reports a crash. */
	unsigned flags = ARGP_NO_EXIT | ARGP_NO_HELP | (talk ? 0 : ARGP_NO_ERRS);
	const struct argp fabric = {.options = fabric_options, .parser = parse_fabric_option};
	const struct argp one_sided = {.options = one_sided_options, .parser = parse_one_sided_option};
	const struct argp_child fabric_child[] = {{&fabric, 0, "libfabric:", 0}, {0}};
	const struct argp_child one_sided_child[] = {{&one_sided, 0, "One-sided:", 0}, {0}};
	struct argp argp = {.options = common_options, .parser = parse_option, .doc = test->what};
	struct parser p = {.test = test, .o = o};
	char why[120];

	*o = (struct bench_options){.warmup = 10, .seconds = 0.05, .window = 64, .repeats = 5, .inject = true};
	o->one_sided = set == BENCH_OPTIONS_ONE_SIDED;
	if (parse_sizes(test->sizes, test, o, why, sizeof(why)))
		abort(); /* a test's own default */
	if (!test->windowed)
		o->window = 1;
	if (set == BENCH_OPTIONS_FABRIC)
		argp.children = fabric_child;
	else if (o->one_sided)
		argp.children = one_sided_child;
	if (argp_parse(&argp, argc, argv, flags, NULL, &p))
		return -EINVAL;
	if (!p.help)
		return 0;
	if (talk)
		argp_help(&argp, stdout, ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK, argv[0]);
	return 1;
}
