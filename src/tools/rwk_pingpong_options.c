/* SPDX-License-Identifier: BSD-3-Clause */
/* What rwk_pingpong is asked to do. */
#include "tools/rwk_pingpong.h"
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MOST  (1u << 30)
#define COUNT_MOST 10000000u

/* The C library looks for it; hidden, as all is by default, there is no --version. */
__attribute__((visibility("default"))) const char *argp_program_version = "rwk_pingpong " PACKAGE_VERSION;

static const struct operation operations[] = {
	{"send", RWK_REQUEST_SEND, false, false},
	{"write", RWK_REQUEST_WRITE, false, false},
	{"read", RWK_REQUEST_READ, true, false},
	{"compare-swap", RWK_REQUEST_COMPARE_SWAP, true, true},
	{"fetch-add", RWK_REQUEST_FETCH_ADD, true, true},
};

static const struct {
	const char *name, *title;
} types[] = {
	[RWK_QP_RC] = {"rc", "RC"},
	[RWK_QP_UC] = {"uc", "UC"},
	[RWK_QP_SRC] = {"src", "SRC"},
};

struct want want = {operations, RWK_QP_RC, 8, 1000, 0, RWK_MEET_PORT, RWK_PORT, 10, NULL, NULL, NULL, false};

enum { KEY_PEER = 256, KEY_FIRST };

static const struct argp_option options[] = {
	{"operation", 'o', "NAME", 0, "send (the default), write, read, compare-swap or fetch-add", 0},
	{"type", 't', "TYPE", 0, "rc (the default), uc or src", 0},
	{"size", 's', "BYTES", 0, "bytes of a message, 1 to 1073741824 (8); atomics always have 8", 0},
	{"count", 'n', "N", 0, "messages there, and back (1000)", 0},
	{"pmtu", 'm', "BYTES", 0, "256, 512, 1024, 2048 or 4096 (the largest that fits)", 0},
	{"ip", 'a', "IP", 0, "this end's address (by the route to the peer)", 0},
	{"udp-port", 'u', "PORT", 0, "this end's UDP port (4791, the only one that others use)", 0},
	{"tcp-port", 'p', "PORT", 0, "where the two programs find each other (18515)", 0},
	{"wait", 'w', "SECONDS", 0, "how long to wait for the peer (10)", 0},
	{"peer", KEY_PEER, "PLACE", 0,
		"the other end, which cannot be asked: IP,PORT,QPN,PSN,KEY,ADDRESS; - : it will be typed", 0},
	{"first", KEY_FIRST, NULL, 0, "with --peer: this end begins", 0},
	{NULL, 0, NULL, 0, NULL, 0},
};

static uint32_t number(struct argp_state *state, const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || n < least || n > most)
		argp_error(state, "'%s' is not a number from %u to %u", text, least, most);
	return (uint32_t)n;
}

static const struct operation *find_operation(struct argp_state *state, const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	argp_error(state, "'%s' is no operation: send, write, read, compare-swap or fetch-add", name);
	return NULL;
}

static enum rwk_qp_type find_type(struct argp_state *state, const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, name))
			return (enum rwk_qp_type)i;
	argp_error(state, "'%s' is no type: rc, uc or src", name);
	return RWK_QP_RC;
}

static void check_together(struct argp_state *state)
{
	if (want.type == RWK_QP_UC && want.operation->passive)
		argp_error(state, "uc has send and write alone");
	if (want.peer && want.host)
		argp_error(state, "the other end is either asked (HOST) or given (--peer)");
	if (want.first && !want.peer)
		argp_error(state, "--first goes with --peer: without it, the end that is given HOST begins");
	if (want.operation->atomic)
		want.size = sizeof(uint64_t);
	want.first |= want.host != NULL;
}

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'o':
		want.operation = find_operation(state, arg);
		break;
	case 't':
		want.type = find_type(state, arg);
		break;
	case 's':
		want.size = number(state, arg, 1, SIZE_MOST);
		break;
	case 'n':
		want.count = number(state, arg, 1, COUNT_MOST);
		break;
	case 'm':
		want.pmtu = number(state, arg, 256, 4096);
		if (want.pmtu & (want.pmtu - 1))
			argp_error(state, "'%s' is no PMTU: 256, 512, 1024, 2048 or 4096", arg);
		break;
	case 'a':
		want.ip = arg;
		break;
	case 'u':
		want.udp_port = number(state, arg, 1, 65535);
		break;
	case 'p':
		want.tcp_port = number(state, arg, 1, 65535);
		break;
	case 'w':
		want.seconds = number(state, arg, 1, 86400);
		break;
	case KEY_PEER:
		want.peer = arg;
		break;
	case KEY_FIRST:
		want.first = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_usage(state);
		want.host = arg;
		break;
	case ARGP_KEY_END:
		check_together(state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp parser = {options, read_option, "[HOST]",
	"Sends messages to and fro between two queue pairs over RoCEv2, compares every byte, and says how long it "
	"takes.\v"
	"Without HOST and --peer it waits for another rwk_pingpong, which is given this host's name as HOST. Both are "
	"given "
	"the same operation, type, size and count; with --peer the same PMTU, too.",
	NULL, NULL, NULL};

void read_arguments(int argc, char **argv)
{
	argp_parse(&parser, argc, argv, 0, NULL, NULL);
}

const char *type_name(enum rwk_qp_type type)
{
	return types[type].name;
}

const char *type_title(enum rwk_qp_type type)
{
	return types[type].title;
}
