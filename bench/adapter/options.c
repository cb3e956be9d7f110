/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, which have the names that users know from perftest. */
#include "bench/adapter/adapter.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_UDP_PORT = 256, KEY_CHECK, KEY_DIRTY, KEY_JSON, KEY_REPEATS, KEY_WARMUP };

static const struct bench_operation operations[] = {
	{"send", RWK_REQUEST_SEND, true, false},
	{"write", RWK_REQUEST_WRITE, true, false},
	{"read", RWK_REQUEST_READ, false, false},
	{"compare-swap", RWK_REQUEST_COMPARE_SWAP, false, true},
	{"fetch-add", RWK_REQUEST_FETCH_ADD, false, true},
};

static const struct {
	const char *name;
	enum rwk_qp_type type;
} types[] = {
	{"RC", RWK_QP_RC},
	{"UC", RWK_QP_UC},
	{"SRC", RWK_QP_SRC},
};

static const struct argp_option options[] = {
	{"operation", 'o', "NAME", 0, "send (default), write, read, compare-swap or fetch-add", 0},
	{"connection", 'c', "TYPE", 0, "RC (default), UC or SRC", 0},
	{"size", 's', "LIST", 0, "Bytes of a message: 8 or 0,8,4K or 1:4M (doubling) or a mixture", 0},
	{"all", 'a', NULL, 0, "Sizes from 2 to 8388608, doubling", 0},
	{"iters", 'n', "N", 0, "Messages of a repeat (default: as many as fill its time)", 0},
	{"duration", 'D', "SECONDS", 0, "Time for each size, all repeats together (default 0.25)", 0},
	{"tx-depth", 't', "N", 0, "Requests posted and not completed, at most (default 128; latency: 1)", 0},
	{"bidirectional", 'b', NULL, 0, "Both ends send; bandwidth and rate are those of both together", 0},
	{"mtu", 'm', "BYTES", 0, "256, 512, 1024, 2048 or 4096 (default: the largest that fits); of two, the smaller", 0},
	{"inline_size", 'I', "BYTES", 0, "Sends and writes up to this size are posted inline (default 0)", 0},
	{"port", 'p', "PORT", 0, "TCP port where the two programs meet (default 18515)", 0},
	{"ip", 'x', "IP", 0, "This end's address, in the place of perftest's GID index (default: by the route)", 0},
	{"udp-port", KEY_UDP_PORT, "PORT", 0, "This end's UDP port (default 4791 without HOST, with it any)", 0},
	{"report-histogram", 'H', NULL, 0, "Latency: print all times of the last repeat, sorted", 0},
	{"report-unsorted", 'U', NULL, 0, "Latency: print them in their order", 0},
	{"check", KEY_CHECK, NULL, 0, "Check the contents of every message (implies --dirty)", 0},
	{"dirty", KEY_DIRTY, NULL, 0, "Write the data before each message and read it after", 0},
	{"repeats", KEY_REPEATS, "N", 0, "Repeats of each size; the median is the result (default 5)", 0},
	{"warmup", KEY_WARMUP, "N", 0, "Messages before the first repeat of a size (default 10)", 0},
	{"json", KEY_JSON, "FILE", 0, "Write the results to FILE (with HOST)", 0},
	{0},
};

struct parser {
	struct bench_test *test;
	struct bench_adapter_options *o;
	const char *sizes;
	double duration;
};

static unsigned long number(
	struct argp_state *state, const char *name, const char *text, unsigned long min, unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || value < min || value > max)
		argp_error(state, "%s %s: a whole number from %lu to %lu is needed", name, text, min, max);
	return value;
}

static double seconds(struct argp_state *state, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0.001 || value > 86400)
		argp_error(state, "-D %s: seconds from 0.001 to 86400 are needed", text);
	return value;
}

static void take_operation(struct argp_state *state, struct bench_adapter_options *o, const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (strcmp(operations[i].name, name))
			continue;
		o->operation = &operations[i];
		return;
	}
	argp_error(state, "-o %s: it is one of send, write, read, compare-swap, fetch-add", name);
}

static void take_type(struct argp_state *state, struct bench_adapter_options *o, const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(types[i].name, name))
			continue;
		o->type = types[i].type;
		o->type_name = types[i].name;
		return;
	}
	argp_error(state, "-c %s: it is one of RC, UC, SRC", name);
}

/* What can be said of sizes only when the operation is known. */
static void take_sizes(struct argp_state *state, struct parser *p)
{
	struct bench_options *o = &p->o->common;
	char why[120];

	if (p->o->operation->atomic) {
		p->test->only = sizeof(uint64_t);
		p->sizes = p->sizes ? p->sizes : "8";
	}
	if (bench_sizes_parse(p->sizes ? p->sizes : p->test->sizes, 0, o, why, sizeof(why)))
		argp_error(state, "-s %s: %s", p->sizes, why);
	for (size_t i = 0; i < o->sizes; i++) {
		if (p->test->only && o->size[i] != p->test->only)
			argp_error(state, "-s: %s has only %zu bytes", p->o->operation->name, p->test->only);
		if (!o->size[i] && p->o->operation->type != RWK_REQUEST_SEND)
			argp_error(state, "-s: %s needs 1 byte at least", p->o->operation->name);
	}
}

static void check_together(struct argp_state *state, struct parser *p)
{
	struct bench_adapter_options *o = p->o;
	bool latency = p->test->unit == BENCH_LATENCY;

	if (o->type == RWK_QP_UC && !o->operation->echoed)
		argp_error(state, "UC has send and write alone");
	if (latency && (o->bidirectional || o->common.window > 1))
		argp_error(state, "latency has one message in flight at a time: no -b, no -t");
	if (!latency && o->all_times)
		argp_error(state, "-H and -U are for latency: in a stream no message has a time of its own");
	take_sizes(state, p);
	if (!o->common.window)
		o->common.window = latency ? 1 : 128;
	if (o->bidirectional || (latency && o->operation->echoed))
		p->test->messages = 2;
	o->common.seconds = p->duration / o->common.repeats;
	if (!o->udp_port && !o->host)
		o->udp_port = RWK_PORT;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct parser *p = state->input;
	struct bench_adapter_options *o = p->o;

	switch (key) {
	case 'o':
		take_operation(state, o, arg);
		break;
	case 'c':
		take_type(state, o, arg);
		break;
	case 's':
		p->sizes = arg;
		break;
	case 'a':
		p->sizes = "2:8M";
		break;
	case 'n':
		o->common.iterations = number(state, "-n", arg, 1, 100000000);
		break;
	case 'D':
		p->duration = seconds(state, arg);
		break;
	case 't':
		o->common.window = (unsigned)number(state, "-t", arg, 1, 4096);
		break;
	case 'b':
		o->bidirectional = true;
		break;
	case 'm':
		o->pmtu = (uint32_t)number(state, "-m", arg, 256, 4096);
		break;
	case 'I':
		o->inline_max = (uint32_t)number(state, "-I", arg, 0, RWK_INLINE_MAX);
		break;
	case 'p':
		o->tcp_port = (unsigned)number(state, "-p", arg, 1, 65535);
		break;
	case 'x':
		if (rwk_ip_from_text(arg, o->ip))
			argp_error(state, "-x %s: an IP address is needed", arg);
		break;
	case KEY_UDP_PORT:
		o->udp_port = (unsigned)number(state, "--udp-port", arg, 1, 65535);
		break;
	case 'U':
		o->unsorted = true;
		o->all_times = true;
		break;
	case 'H':
		o->all_times = true;
		break;
	case KEY_CHECK:
		o->common.touch = BENCH_TOUCH_CHECK;
		break;
	case KEY_DIRTY:
		if (o->common.touch == BENCH_TOUCH_NONE)
			o->common.touch = BENCH_TOUCH_DIRTY;
		break;
	case KEY_REPEATS:
		o->common.repeats = (unsigned)number(state, "--repeats", arg, 1, BENCH_MAX_REPEATS);
		break;
	case KEY_WARMUP:
		o->common.warmup = number(state, "--warmup", arg, 1, 100000000);
		break;
	case KEY_JSON:
		o->common.json = arg;
		break;
	case ARGP_KEY_ARG:
		if (o->host)
			argp_error(state, "%s: one host is enough", arg);
		o->host = arg;
		break;
	case ARGP_KEY_END:
		check_together(state, p);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int bench_adapter_parse(int argc, char **argv, struct bench_test *test, struct bench_adapter_options *o)
{
	char doc[512];
	const struct argp argp = {options, parse_option, "[HOST]", doc, NULL, NULL, NULL};
	struct parser p = {.test = test, .o = o, .duration = 0.25};

	snprintf(doc, sizeof(doc),
		"%s\vWithout HOST it waits for the same program on another host, or on this one, which is given this "
		"host's name. Both are started with the same options but those for addresses, ports and files.",
		test->what);
	*o = (struct bench_adapter_options){
		.common = {.warmup = 10, .repeats = 5}, .operation = operations, .tcp_port = RWK_MEET_PORT};
	o->type = types[0].type;
	o->type_name = types[0].name;
	argp_err_exit_status = 2;
	return argp_parse(&argp, argc, argv, 0, NULL, &p) ? -EINVAL : 0;
}
