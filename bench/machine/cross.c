/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies straight from one process's memory into another's: process_vm_readv and process_vm_writev. */
#define _GNU_SOURCE
#include "bench/machine/mate.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MANY_PIECES 33

static pid_t named; /* who of the other process: the thread that measures, which has the process' number, or another */

static void copy_failed(const char *call)
{
	fprintf(stderr, "limits: %s: %s, although it worked before\n", call, strerror(errno));
	exit(2);
}

static void pull(struct mate *m, size_t from, size_t size)
{
	struct iovec local = {m->private_data + MATE_LARGEST + from, size};
	struct iovec remote = {(char *)m->shared->private_data[!m->side] + from, size};

	if (process_vm_readv(named, &local, 1, &remote, 1, 0) != (ssize_t)size)
		copy_failed("process_vm_readv");
}

static void push(struct mate *m, size_t from, size_t size)
{
	struct iovec local = {m->private_data + from, size};
	struct iovec remote = {(char *)m->shared->private_data[!m->side] + MATE_LARGEST + from, size};

	if (process_vm_writev(named, &local, 1, &remote, 1, 0) != (ssize_t)size)
		copy_failed("process_vm_writev");
}

static void one_side(struct mate *m, size_t size, uint64_t iterations)
{
	for (uint64_t i = 0; i < iterations; i++)
		pull(m, 0, size);
}

static void small_pieces(struct mate *m, uint64_t iterations, size_t pieces)
{
	struct iovec remote[MANY_PIECES];
	struct iovec local = {m->private_data + MATE_LARGEST, 8 * pieces};

	/* Each piece on a page of its own, as messages would be. */
	for (size_t i = 0; i < pieces; i++)
		remote[i] = (struct iovec){(char *)m->shared->private_data[!m->side] + 8192 * i, 8};
	for (uint64_t i = 0; i < iterations; i++)
		if (process_vm_readv(named, &local, 1, remote, pieces, 0) != (ssize_t)(8 * pieces))
			copy_failed("process_vm_readv");
}

static void one_piece(struct mate *m, size_t size, uint64_t iterations)
{
	(void)size;
	small_pieces(m, iterations, 1);
}

static void many_pieces(struct mate *m, size_t size, uint64_t iterations)
{
	(void)size;
	small_pieces(m, iterations, MANY_PIECES);
}

/* One message from the leader to its mate: each copies one half; then they meet, as the end of the message is known to
 * both. */
static void both_halves(struct mate *m, size_t size, uint64_t iterations)
{
	for (uint64_t i = 0; i < iterations; i++) {
		if (m->side)
			pull(m, 0, size / 2);
		else
			push(m, size / 2, size - size / 2);
		mate_meet(m);
	}
}

static bool allowed(struct mate *m)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {m->shared->private_data[!m->side], 1};
	bool denied;
	int err;

	/* Where Yama restricts ptrace, a child may not read its parent unless the parent says so. */
	prctl(PR_SET_PTRACER, m->other);
	mate_meet(m);
	denied = process_vm_readv(m->other, &local, 1, &remote, 1, 0) != 1;
	err = errno;
	/* Both sides must be allowed. */
	m->shared->line[m->side].word = denied;
	mate_meet(m);
	if (denied)
		fprintf(stderr, "limits: process %d: process_vm_readv: %s; cross-memory copies are not measured\n",
			m->side, strerror(err));
	denied = m->shared->line[0].word || m->shared->line[1].word;
	mate_meet(m);
	return !denied;
}

static void *sleep_on(void *number)
{
	*(volatile pid_t *)number = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

/*
 * The same where each names a thread of the other's that sleeps. The kernel counts a reference in the named thread's
 * record, in a line that this thread looks at whenever it enters or leaves the kernel.
 */
static void by_sleepers(struct mate *m)
{
	static volatile pid_t number;
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_on, (void *)&number)) {
		fprintf(stderr, "limits: no thread can be made\n");
		exit(2);
	}
	while (!number)
		sched_yield();
	m->shared->line[m->side].word = (uint64_t)number;
	mate_meet(m);
	named = (pid_t)m->shared->line[!m->side].word;
	mate_meet(m);
	mate_measure(m, &(struct mate_measurement){.name = "process_vm_readv, 8 bytes, both at once, by sleepers",
				.unit = MATE_NS,
				.operations = 1,
				.run = one_piece});
	for (size_t size = 16384; size <= MATE_LARGEST; size *= 4)
		mate_measure(m, &(struct mate_measurement){.name = "one message, each side one half, by sleepers",
					.size = size,
					.unit = MATE_MB_S,
					.operations = 1,
					.run = both_halves});
}

void measure_cross(struct mate *m)
{
	struct mate_measurement call = {
		.name = "process_vm_readv, 8 bytes", .unit = MATE_NS, .operations = 1, .alone = one_piece};
	double one, many;
	size_t size;

	if (!allowed(m))
		return;
	named = m->other;
	one = mate_measure(m, &call);
	call.name = "process_vm_readv, 33 pieces of 8 bytes";
	call.alone = many_pieces;
	many = mate_measure(m, &call);
	many = (many - one) / (MANY_PIECES - 1);
	mate_report(m, "process_vm_readv, each further piece", 0, MATE_NS, many, many, many);
	call.name = "process_vm_readv, 8 bytes, both sides at once";
	call.alone = NULL;
	call.run = one_piece;
	mate_measure(m, &call);
	for (size = 4096; size <= MATE_LARGEST; size *= 4)
		mate_measure(m, &(struct mate_measurement){.name = "process_vm_readv",
					.size = size,
					.unit = MATE_MB_S,
					.operations = 1,
					.alone = one_side});
	for (size = 4096; size <= MATE_LARGEST; size *= 4)
		mate_measure(m, &(struct mate_measurement){.name = "process_vm_readv, both sides at once, the sum",
					.size = size,
					.unit = MATE_MB_S,
					.operations = 2,
					.run = one_side});
	for (size = 16384; size <= MATE_LARGEST; size *= 4)
		mate_measure(m, &(struct mate_measurement){.name = "one message, each side copies one half",
					.size = size,
					.unit = MATE_MB_S,
					.operations = 1,
					.run = both_halves});
	by_sleepers(m);
}
