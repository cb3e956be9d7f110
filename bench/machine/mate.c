/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/machine/mate.h"

#include "bench/common/clock.h"
#include "bench/common/cpu.h"
#include "bench/common/report.h"
#include "bench/common/stats.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_REPEATS    100
#define SPINS_PER_LOOK 1000000

static void give_up(const struct mate *m, const char *why)
{
	fprintf(stderr, "limits: process %d: %s\n", m->side, why);
	if (!m->side)
		kill(m->other, SIGKILL);
	if (m->json)
		bench_json_discard(m->json, m->json_path);
	exit(2);
}

void mate_look_round(struct mate *m, double *since)
{
	siginfo_t ended = {0};

	if (*since == 0)
		*since = bench_now();
	if (!m->side && !waitid(P_PID, m->other, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid)
		give_up(m, "the other process has ended");
	if (bench_now() - *since > MATE_PATIENCE)
		give_up(m, "the other process has not answered for too long; is its core busy with something else?");
}

void mate_await(struct mate *m, const uint64_t *word, uint64_t value)
{
	double since = 0;

	for (unsigned long spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < value; spins++)
		if (spins % SPINS_PER_LOOK == 0)
			mate_look_round(m, &since);
}

void mate_meet(struct mate *m)
{
	m->meetings++;
	__atomic_store_n(&m->shared->met[m->side].word, m->meetings, __ATOMIC_RELEASE);
	mate_await(m, &m->shared->met[!m->side].word, m->meetings);
}

uint64_t mate_agree(struct mate *m, uint64_t value)
{
	if (!m->side)
		m->shared->agreed = value;
	mate_meet(m);
	value = m->shared->agreed;
	mate_meet(m);
	return value;
}

int mate_start(struct mate *m)
{
	pid_t leader = getpid();

	m->shared = mmap(NULL, sizeof(*m->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	m->private_data = aligned_alloc(4096, 2 * MATE_LARGEST);
	if (m->shared == MAP_FAILED || !m->private_data) {
		fprintf(stderr, "limits: no memory for buffers of %zu bytes\n", 4 * MATE_LARGEST);
		return -ENOMEM;
	}
	fflush(NULL);
	m->other = fork();
	if (m->other < 0) {
		perror("limits: fork");
		return -EAGAIN;
	}
	m->side = !m->other;
	if (m->side) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		m->other = leader;
		m->json = NULL;
		m->quiet = true;
	}
	bench_bind_to_cpu(m->side);
	/* Each side makes its pages present itself; the mapping of the leader would be copied on write. */
	memset(m->private_data, 1 + m->side, 2 * MATE_LARGEST);
	m->shared->pid[m->side] = getpid();
	m->shared->private_data[m->side] = m->private_data;
	mate_meet(m);
	return 0;
}

int mate_finish(struct mate *m, int status)
{
	int ended;

	mate_meet(m);
	if (m->side)
		_exit(0);
	if (waitpid(m->other, &ended, 0) == m->other && ended)
		status = 2;
	free(m->private_data);
	munmap(m->shared, sizeof(*m->shared));
	return status;
}

/* The leader's seconds for so many iterations. */
static double timed(struct mate *m, const struct mate_measurement *what, uint64_t iterations)
{
	double start;

	if (!m->side) {
		memset(m->shared->line, 0, sizeof(m->shared->line));
		memset(m->shared->sent, 0, sizeof(m->shared->sent));
		memset(m->shared->taken, 0, sizeof(m->shared->taken));
	}
	mate_meet(m);
	start = bench_now();
	if (what->run)
		what->run(m, what->size, iterations);
	else if (!m->side)
		what->alone(m, what->size, iterations);
	else
		usleep(1000 * (useconds_t)(m->seconds * 1000));
	start = bench_now() - start;
	mate_meet(m);
	return start;
}

static double value_of(const struct mate_measurement *what, double seconds, uint64_t iterations)
{
	double each = seconds / ((double)iterations * what->operations);

	switch (what->unit) {
	case MATE_NS:
		return each * 1e9;
	case MATE_US:
		return each * 1e6;
	case MATE_MB_S:
		return what->size / each * 1e-6;
	}
	return 0;
}

void mate_report(
	struct mate *m, const char *name, size_t size, enum mate_unit unit, double median, double min, double max)
{
	static const char *const units[] = {[MATE_NS] = "ns", [MATE_US] = "us", [MATE_MB_S] = "MB/s"};
	int decimals = unit == MATE_US ? 2 : 1;

	if (m->side)
		return;
	if (!m->quiet) {
		char text[24] = "";

		if (size)
			snprintf(text, sizeof(text), "%zu", size);
		printf("%-44s %8s %10.*f %10.*f %10.*f  %s\n", name, text, decimals, median, decimals, min, decimals,
			max, units[unit]);
		fflush(stdout);
	}
	if (m->json) {
		fprintf(m->json, "%s\n{\"name\": ", m->rows ? "," : "");
		bench_json_string(m->json, name);
		fprintf(m->json, ", \"size\": %zu, \"unit\": \"%s\", \"median\": %.9g, \"min\": %.9g, \"max\": %.9g}",
			size, units[unit], median, min, max);
	}
	m->rows++;
}

double mate_measure(struct mate *m, const struct mate_measurement *what)
{
	double sample[MAX_REPEATS];
	struct bench_stats s;
	uint64_t n = 1;
	double seconds;

	for (;;) {
		seconds = timed(m, what, n);
		if (mate_agree(m, seconds >= m->seconds / 8))
			break;
		n *= 4;
	}
	n = mate_agree(m, n * (m->seconds / seconds) + 1);
	for (unsigned i = 0; i < m->repeats; i++)
		sample[i] = value_of(what, timed(m, what, n), n);
	if (m->side)
		return 0;
	s = bench_stats_of(sample, m->repeats);
	mate_report(m, what->name, what->size, what->unit, s.median, s.min, s.max);
	return s.median;
}
