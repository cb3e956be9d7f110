/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct options options = {.provider = "ropewalk", .ranks = 2};
static const struct traffic *traffic;
static struct fabric fabric;
static bool started, stopping, finished, said_done;
static pid_t child;

static void line(const char *first, const char *fmt, va_list ap)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "%s", first);

	n += vsnprintf(text + n, sizeof(text) - 2 - (size_t)n, fmt, ap);
	text[n++] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(4); /* the launcher has gone */
}

void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line("", fmt, ap);
	va_end(ap);
}

void wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line("wrong ", fmt, ap);
	va_end(ap);
	exit(1);
}

static void take_peers(char *text)
{
	int rank = 0;

	for (char *hex = strtok(text, " "); hex; hex = strtok(NULL, " "), rank++)
		fabric_insert(&fabric, rank, hex);
	if (rank != options.ranks)
		wrong("%d addresses for %d ranks", rank, options.ranks);
	say("ready");
}

static void obey(char *command)
{
	if (!strncmp(command, "peers ", 6)) {
		take_peers(command + 6);
	} else if (!strcmp(command, "go")) {
		started = true;
		traffic->start(&fabric, &options);
	} else if (!strcmp(command, "report")) {
		say("count %llu", (unsigned long long)traffic->count());
	} else if (!strcmp(command, "deny")) {
		deny_calls(options.deny);
	} else if (!strcmp(command, "stop")) {
		stopping = true;
		traffic->stop();
	} else if (!strcmp(command, "exit")) {
		finished = true;
	} else {
		wrong("no command: %s", command);
	}
}

/* Reads what the launcher has sent, waiting for it up to `msec`, and does what whole lines say. */
static void listen_to_launcher(int msec)
{
	static char text[1 << 16];
	static size_t used;
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char *end;
	ssize_t n;

	if (poll(&p, 1, msec) <= 0)
		return;
	n = read(STDIN_FILENO, text + used, sizeof(text) - 1 - used);
	if (n <= 0)
		_exit(4);
	used += (size_t)n;
	text[used] = 0;
	while ((end = strchr(text, '\n'))) {
		*end = 0;
		obey(text);
		used -= (size_t)(end + 1 - text);
		memmove(text, end + 1, used + 1);
	}
}

/*
 * A child that only leaves, one that reads and writes what it inherited, and one that becomes another program, in
 * turn.
 */
static void have_child(void)
{
	static int kind;

	if (child && waitpid(child, NULL, WNOHANG) != child)
		return;
	child = fork();
	if (child < 0)
		wrong("fork: %s", strerror(errno));
	if (child > 0) {
		kind++;
		return;
	}
	if (kind % 3 == 1) {
		char *p = malloc(1 << 20);

		memset(p, 1, 1 << 20);
		free(p);
		fflush(NULL);
	} else if (kind % 3 == 2) {
		execlp("true", "true", (char *)NULL);
	}
	_exit(0);
}

static void loop(void)
{
	unsigned idle = 0;

	for (uint64_t n = 0; !finished; n++) {
		if (!started) {
			listen_to_launcher(1000);
			continue;
		}
		if (traffic->poll())
			idle = 0;
		else if (++idle > 100)
			sched_yield();
		if (n % 64 == 0 || idle > 1000)
			listen_to_launcher(0);
		if (options.fork && n % 256 == 0)
			have_child();
		if (stopping && !said_done && traffic->done()) {
			say("done messages=%llu bytes=%llu", (unsigned long long)traffic->count(),
				(unsigned long long)traffic->bytes());
			said_done = true;
		}
	}
}

static enum mix mix_named(const char *name)
{
	static const char *const names[] = {"all", "small", "large", "wait", "access", "regions", "reach"};

	for (int i = 0; i < 7; i++) {
		if (!strcmp(name, names[i]))
			return (enum mix)i;
	}
	wrong("--mix %s is not one of: all small large wait access regions reach", name);
}

static void parse(int argc, char **argv)
{
	enum { PROVIDER, RANK, RANKS, MIX, SREAD, FORK, DENY, DENY_NOW };
	static const struct option known[] = {{"provider", 1, NULL, PROVIDER}, {"rank", 1, NULL, RANK},
		{"ranks", 1, NULL, RANKS}, {"mix", 1, NULL, MIX}, {"sread", 0, NULL, SREAD}, {"fork", 0, NULL, FORK},
		{"deny", 1, NULL, DENY}, {"deny-now", 0, NULL, DENY_NOW}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case PROVIDER:
			options.provider = optarg;
			break;
		case RANK:
			options.rank = atoi(optarg);
			break;
		case RANKS:
			options.ranks = atoi(optarg);
			break;
		case MIX:
			options.mix = mix_named(optarg);
			break;
		case SREAD:
			options.sread = true;
			break;
		case FORK:
			options.fork = true;
			break;
		case DENY:
			options.deny = optarg;
			break;
		case DENY_NOW:
			options.deny_now = true;
			break;
		default:
			wrong("unknown option");
		}
	}
	if (options.ranks < 1 || options.ranks > MAX_RANKS || options.rank < 0 || options.rank >= options.ranks)
		wrong("rank %d of %d", options.rank, options.ranks);
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	parse(argc, argv);
	if (options.deny && options.deny_now)
		deny_calls(options.deny);
	traffic = options.mix >= MIX_ACCESS ? &access_traffic : &message_traffic;
	fabric_open(&fabric, &options, traffic->caps);
	if (traffic->set_up)
		traffic->set_up(&fabric, &options);
	fabric_say_address(&fabric);
	loop();
	if (traffic->take_down)
		traffic->take_down();
	fabric_close(&fabric);
	return 0;
}
