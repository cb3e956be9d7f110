/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the bare shared-memory channel does between two processes, each bound to a CPU of its own: no engine, no
 * matching. Latency one way (ping-pong from within the upcall, the payload copied out once as a client must),
 * messages a second and bytes a second one way; beside it the time that one line takes from core to core in the same
 * run, which is the limit.
 *
 *   shm_channel [-s size] [-n loops]       the quickest of so many short loops; sizes: all
 *   shm_channel -1 [-s size] [-n messages] one process with two ports, in turn: for counting instructions
 */
#include "bench/common/clock.h"
#include "bench/common/cpu.h"
#include "bench/common/report.h"

#include "transport.h"

#include "base/param.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE_MAX_BYTES 65536u
#define COUNT_MAX      1000000000ul

static const size_t sizes[] = {0, 8, 40, 48, 64, 104, 128, 160, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

/* Shared by both processes beside what is measured. */
struct board {
	_Atomic uint64_t line[2] __attribute__((aligned(128)));
	_Atomic uint32_t ready[2];
	struct rwk_address address[2];
};

struct end {
	struct rwk_port *port;
	struct rwk_channel *ch;
	bool leads; /* it ends the run; the other follows when the channel is gone */
	uint64_t received;
	struct rwk_place place;
	struct iovec iov;
	unsigned char *in, *out;
};

static int on_connected(void *cookie, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct end *e = cookie;

	(void)from;
	if (!e->ch)
		e->ch = ch;
	return 0;
}

static void on_message(
	void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct end *e = cookie;

	(void)ch;
	(void)env;
	memcpy(e->in, payload, len);
	e->received++;
}

static struct rwk_place *on_begin(void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct end *e = cookie;

	(void)ch;
	(void)env;
	e->iov = (struct iovec){e->in, len};
	e->place = (struct rwk_place){.iov = &e->iov, .iov_count = 1};
	return &e->place;
}

static void on_end(void *cookie, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct end *e = cookie;

	(void)ch;
	(void)place;
	e->received += !status;
}

static void on_failed(void *cookie, struct rwk_channel *ch, int err)
{
	struct end *e = cookie;

	(void)ch;
	if (err == -ECONNRESET && !e->leads)
		exit(0);
	fprintf(stderr, "shm_channel: the channel failed: %s\n", strerror(-err));
	exit(1);
}

static const struct rwk_client client = {
	.connected = on_connected,
	.message = on_message,
	.begin = on_begin,
	.end = on_end,
	.failed = on_failed,
};

static struct rwk_address end_open(struct end *e)
{
	struct rwk_port_attr attr = {.address.version_srq = RWK_ADDR_VERSION << 24};
	int rc = rwk_shm_transport.open(&attr, &client, e, &e->port);

	if (rc) {
		fprintf(stderr, "shm_channel: cannot open a port: %s\n", strerror(-rc));
		exit(1);
	}
	e->in = aligned_alloc(4096, SIZE_MAX_BYTES);
	e->out = aligned_alloc(4096, SIZE_MAX_BYTES);
	if (!e->in || !e->out) {
		fprintf(stderr, "shm_channel: out of memory\n");
		exit(1);
	}
	memset(e->in, 1, SIZE_MAX_BYTES);
	memset(e->out, 2, SIZE_MAX_BYTES);
	return attr.address;
}

static const struct rwk_envelope envelope = {.kind = 1, .tag = 42};

static void no_done(struct rwk_op *op, int status)
{
	op->service[0] = 1;
	(void)status;
}

static inline void push(struct end *e, size_t size)
{
	struct iovec iov = {e->out, size};
	struct rwk_op op = {
		.type = RWK_OP_SEND, .iov = &iov, .iov_count = 1, .length = size, .env = envelope, .done = no_done};

	if (!rwk_shm_transport.send(e->ch, &envelope, e->out, size))
		return;
	op.service[0] = 0;
	if (rwk_shm_transport.post(e->ch, &op))
		return;
	while (!((volatile struct rwk_op *)&op)->service[0])
		rwk_shm_transport.progress(e->port);
}

static void await(struct end *e, uint64_t goal)
{
	while (e->received < goal)
		rwk_shm_transport.progress(e->port);
}

/* Ping-pong: seconds one way. */
static double latency(struct end *e, int rank, size_t size, unsigned long n)
{
	uint64_t base = e->received;
	double start = 0;

	for (unsigned long i = 0; i < n + n / 10; i++) {
		if (i == n / 10)
			start = bench_now();
		if (rank == 0)
			push(e, size);
		await(e, base + i + 1);
		if (rank == 1)
			push(e, size);
	}
	return (bench_now() - start) / (double)n / 2;
}

/* One way, an answer at the end: seconds a message. */
static double stream(struct end *e, int rank, size_t size, unsigned long n)
{
	uint64_t base = e->received;
	double start = 0;

	for (int round = 0; round < 2; round++) {
		unsigned long count = round ? n : n / 10;

		start = bench_now();
		if (rank == 0) {
			for (unsigned long i = 0; i < count; i++)
				push(e, size);
			await(e, ++base);
		} else {
			await(e, base += count);
			push(e, 0);
		}
	}
	return (bench_now() - start) / (double)n;
}

/* One word to and fro: seconds one way. */
static double line_time(struct board *b, int rank, unsigned long n)
{
	uint64_t base = atomic_load(&b->line[rank]);
	double start = bench_now();

	for (uint64_t i = base + 1; i <= base + n; i++) {
		if (rank == 0)
			atomic_store_explicit(&b->line[0], i, memory_order_release);
		while (atomic_load_explicit(&b->line[!rank], memory_order_acquire) != i)
			;
		if (rank == 1)
			atomic_store_explicit(&b->line[1], i, memory_order_release);
	}
	return (bench_now() - start) / (double)n / 2;
}

/* Both know the other's address; the first connects. */
static void meet(struct board *b, int rank, struct end *e)
{
	struct rwk_address to;
	int rc = 0;

	while (!atomic_load(&b->ready[!rank]))
		bench_pause();
	to = b->address[!rank];
	if (rank == 0)
		rc = rwk_shm_transport.connect(e->port, &to, NULL, &e->ch);
	if (rc) {
		fprintf(stderr, "shm_channel: cannot connect: %s\n", strerror(-rc));
		exit(1);
	}
	while (!e->ch)
		rwk_shm_transport.progress(e->port);
	push(e, 0);
	await(e, 1);
}

struct options {
	bool one_process;
	size_t size;
	bool all_sizes;
	unsigned long n;
};

/* Many short loops, of which the quickest counts: what disturbs a loop from outside only makes it longer. */
static void run_size(struct end *e, struct board *b, int rank, size_t size, unsigned long n)
{
	unsigned long turns = size > 4096 ? 300 : 1000, count = size > 256 ? 1000 : 10000;
	double line = 1, there = 1, each = 1;

	for (unsigned long i = 0; i < (n ? n : 60); i++) {
		line = fmin(line, line_time(b, rank, turns));
		there = fmin(there, latency(e, rank, size, turns));
		each = fmin(each, stream(e, rank, size, count));
	}
	if (rank == 0)
		printf("%8zu %9.1f %9.1f %9.2f %10.0f\n", size, line * 1e9, there * 1e9, 1e-6 / each,
			(double)size / each * 1e-6);
	fflush(stdout);
}

/* Most waiting is spinning, which would not notice. */
static void child_ended(int signal)
{
	static const char text[] = "shm_channel: the other process has ended\n";

	(void)signal;
	_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

static void two_processes(const struct options *o)
{
	struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct end e = {0};
	int rank, status;
	pid_t child;

	if (b == MAP_FAILED) {
		perror("shm_channel: mmap");
		exit(1);
	}
	signal(SIGCHLD, child_ended);
	child = fork();
	if (child < 0) {
		perror("shm_channel: fork");
		exit(1);
	}
	rank = child ? 0 : 1;
	e.leads = child;
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_bind_to_cpu(rank);
	b->address[rank] = end_open(&e);
	atomic_store(&b->ready[rank], 1);
	meet(b, rank, &e);
	if (rank == 0)
		printf("# %6s %9s %9s %9s %10s\n", "bytes", "line ns", "oneway ns", "Mmsg/s", "MB/s");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (o->all_sizes)
			run_size(&e, b, rank, sizes[i], o->n);
	}
	if (!o->all_sizes)
		run_size(&e, b, rank, o->size, o->n);
	if (rank == 1)
		await(&e, UINT64_MAX); /* ends when the other has closed */
	signal(SIGCHLD, SIG_DFL);
	rwk_shm_transport.close(e.port);
	if (waitpid(child, &status, 0) == child && status) {
		fprintf(stderr, "shm_channel: the other process failed\n");
		exit(1);
	}
}

/* Sends a few, takes a few, in one process. */
static void one_process(const struct options *o)
{
	struct end from = {0}, to = {0};
	struct rwk_address address;
	unsigned long n = o->n ? o->n : 100000;

	end_open(&from);
	address = end_open(&to);
	if (rwk_shm_transport.connect(from.port, &address, NULL, &from.ch)) {
		fprintf(stderr, "shm_channel: cannot connect\n");
		exit(1);
	}
	while (rwk_shm_transport.send(from.ch, &envelope, from.out, 0)) {
		rwk_shm_transport.progress(from.port);
		rwk_shm_transport.progress(to.port);
	}
	await(&to, 1);
	for (unsigned long i = 0; i < n; i++) {
		while (rwk_shm_transport.send(from.ch, &envelope, from.out, o->size)) /* slabs come back */
			rwk_shm_transport.progress(from.port);
		await(&to, i + 2);
	}
}

/* A whole number within these bounds; others end the program. */
static unsigned long number(int option, const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-') || v < least || v > most) {
		fprintf(stderr, "shm_channel: -%c %s: a whole number from %lu to %lu is needed\n", option, text, least,
			most);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	struct options o = {.all_sizes = true};
	int c;

	while ((c = getopt(argc, argv, "1s:n:")) != -1) {
		if (c == '1') {
			o.one_process = true;
		} else if (c == 's') {
			o.size = number(c, optarg, 0, SIZE_MAX_BYTES);
			o.all_sizes = false;
		} else if (c == 'n') {
			o.n = number(c, optarg, 1, COUNT_MAX);
		} else {
			fprintf(stderr, "usage: shm_channel [-1] [-s bytes] [-n messages]\n");
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "shm_channel: '%s': there are options alone\n", argv[optind]);
		return 2;
	}
	rwk_param_load();
	if (o.one_process)
		one_process(&o);
	else
		two_processes(&o);
	return bench_printed("shm_channel") ? 2 : 0;
}
