/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of a process that send messages at once: how the rate grows with their number, by what they have in common.
 *
 *   apart     each has a domain of its own, without a lock (FI_THREAD_DOMAIN): what there is to be had
 *   domains   each has a domain of its own, FI_THREAD_SAFE: a lock that nobody else wants
 *   domain    each has endpoints of its own in one domain, FI_THREAD_SAFE
 *   endpoint  all have the same two endpoints, FI_THREAD_SAFE
 *   one lock  endpoints of their own in one domain of FI_THREAD_DOMAIN, and the program's one lock around each call
 *
 * A thread sends windows of messages from one endpoint to another of the same process, and takes them itself. The modes
 * take turns; each figure is the median of all rounds. Where there are fewer cores than threads the rates say little;
 * what a message costs a core (ns), with what a lock takes away from it, says more.
 */
#include "bench/common/clock.h"
#include "bench/common/report.h"
#include "bench/common/stats.h"

#include <argp.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS    64
#define WINDOW     32
#define ROUNDS_MAX 99

struct mode {
	const char *name;
	enum fi_threading threading;
	bool own_domain, own_endpoints, locked;
};

static const struct mode modes[] = {
	{"apart", FI_THREAD_DOMAIN, true, true, false},
	{"domains", FI_THREAD_SAFE, true, true, false},
	{"domain", FI_THREAD_SAFE, false, true, false},
	{"endpoint", FI_THREAD_SAFE, false, false, false},
	{"one lock", FI_THREAD_DOMAIN, false, true, true},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static struct options {
	const char *provider;
	unsigned threads, rounds;
	double seconds;
} options = {"ropewalk", 4, 5, 0.2};

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

struct lane {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *from, *to;
	fi_addr_t peer;
};

/** A request; its context is what a completion names. */
struct slot {
	struct fi_context2 context;
	atomic_uint *done;
};

struct worker {
	pthread_t thread;
	struct lane *lane;
	pthread_mutex_t *lock; /* NULL: none */
	pthread_barrier_t *barrier;
	struct slot slot[2 * WINDOW];
	atomic_uint done;
	char out[8], in[WINDOW][8];
	unsigned long messages;
	double start, end, cpu; /* seconds */
};

struct figure {
	double rate, cost; /* millions a second; ns */
};

static void need(const char *call, long rc)
{
	if (!rc)
		return;
	fprintf(stderr, "threads: %s: %s\n", call, fi_strerror((int)-rc));
	exit(2);
}

static void open_node(struct node *n, enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		need("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = threading;
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(options.provider);
	need("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &n->info));
	fi_freeinfo(hints);
	need("fi_fabric", fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	need("fi_domain", fi_domain(n->fabric, n->info, &n->domain, NULL));
}

static void close_node(struct node *n)
{
	need("fi_close", fi_close(&n->domain->fid));
	need("fi_close", fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

static struct fid_ep *open_endpoint(const struct node *n, const struct lane *l)
{
	struct fid_ep *ep;

	need("fi_endpoint", fi_endpoint(n->domain, n->info, &ep, NULL));
	need("fi_ep_bind", fi_ep_bind(ep, &l->av->fid, 0));
	need("fi_ep_bind", fi_ep_bind(ep, &l->cq->fid, FI_TRANSMIT | FI_RECV));
	need("fi_enable", fi_enable(ep));
	return ep;
}

static void open_lane(struct lane *l, const struct node *n)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 2 * WINDOW * THREADS};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	char name[256];
	size_t len = sizeof(name);

	need("fi_av_open", fi_av_open(n->domain, &av, &l->av, NULL));
	need("fi_cq_open", fi_cq_open(n->domain, &cq, &l->cq, NULL));
	l->from = open_endpoint(n, l);
	l->to = open_endpoint(n, l);
	need("fi_getname", fi_getname(&l->to->fid, name, &len));
	if (fi_av_insert(l->av, name, 1, &l->peer, 0, NULL) != 1)
		need("fi_av_insert", -FI_EOTHER);
}

static void close_lane(struct lane *l)
{
	need("fi_close", fi_close(&l->from->fid));
	need("fi_close", fi_close(&l->to->fid));
	need("fi_close", fi_close(&l->cq->fid));
	need("fi_close", fi_close(&l->av->fid));
}

static void lock(const struct worker *w)
{
	if (w->lock)
		pthread_mutex_lock(w->lock);
}

static void unlock(const struct worker *w)
{
	if (w->lock)
		pthread_mutex_unlock(w->lock);
}

/** Takes what has come, whosever it is. */
static void look(struct worker *w)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t n;

	lock(w);
	n = fi_cq_read(w->lane->cq, entry, 16);
	unlock(w);
	if (n < 0 && n != -FI_EAGAIN)
		need("fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++)
		atomic_fetch_add(((struct slot *)entry[i].op_context)->done, 1);
}

static void receive(struct worker *w, unsigned i)
{
	ssize_t rc;

	lock(w);
	rc = fi_trecv(w->lane->to, w->in[i], 8, NULL, FI_ADDR_UNSPEC, (uint64_t)(uintptr_t)w, 0,
		&w->slot[WINDOW + i].context);
	unlock(w);
	need("fi_trecv", rc);
}

static void send(struct worker *w, unsigned i)
{
	ssize_t rc;

	for (;;) {
		lock(w);
		rc = fi_tsend(
			w->lane->from, w->out, 8, NULL, w->lane->peer, (uint64_t)(uintptr_t)w, &w->slot[i].context);
		unlock(w);
		if (rc != -FI_EAGAIN)
			break;
		look(w);
	}
	need("fi_tsend", rc);
}

static void window(struct worker *w)
{
	atomic_store(&w->done, 0);
	for (unsigned i = 0; i < WINDOW; i++)
		receive(w, i);
	for (unsigned i = 0; i < WINDOW; i++)
		send(w, i);
	while (atomic_load(&w->done) < 2 * WINDOW)
		look(w);
}

/** Of this thread. */
static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < 2 * WINDOW; i++)
		w->slot[i].done = &w->done;
	pthread_barrier_wait(w->barrier);
	window(w); /* connects */
	pthread_barrier_wait(w->barrier);
	w->cpu = -cpu_time();
	w->start = bench_now();
	do {
		window(w);
		w->messages += WINDOW;
		w->end = bench_now();
	} while (w->end < w->start + options.seconds);
	w->cpu += cpu_time();
	return NULL;
}

static struct figure sum_up(const struct worker *w, unsigned threads)
{
	double messages = 0, cpu = 0, start = w->start, end = w->end;

	for (unsigned i = 0; i < threads; i++) {
		start = w[i].start < start ? w[i].start : start;
		end = w[i].end > end ? w[i].end : end;
		messages += (double)w[i].messages;
		cpu += w[i].cpu;
	}
	return (struct figure){.rate = 1e-6 * messages / (end - start), .cost = 1e9 * cpu / messages};
}

static struct figure run(const struct mode *m, unsigned threads)
{
	unsigned nodes = m->own_domain ? threads : 1, lanes = m->own_endpoints ? threads : 1;
	struct worker *w = calloc(threads, sizeof(*w));
	pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	struct lane lane[THREADS];
	struct node node[THREADS];
	pthread_barrier_t barrier;
	struct figure f;

	if (!w)
		need("calloc", -FI_ENOMEM);
	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned i = 0; i < nodes; i++)
		open_node(&node[i], m->threading);
	for (unsigned i = 0; i < lanes; i++)
		open_lane(&lane[i], &node[i % nodes]);
	for (unsigned i = 0; i < threads; i++) {
		w[i].lane = &lane[i % lanes];
		w[i].lock = m->locked ? &one : NULL;
		w[i].barrier = &barrier;
		need("pthread_create", -pthread_create(&w[i].thread, NULL, work, &w[i]));
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(w[i].thread, NULL);
	f = sum_up(w, threads);
	for (unsigned i = 0; i < lanes; i++)
		close_lane(&lane[i]);
	for (unsigned i = 0; i < nodes; i++)
		close_node(&node[i]);
	pthread_barrier_destroy(&barrier);
	free(w);
	return f;
}

/** One row: all modes, round by round. */
static void row(unsigned threads)
{
	static double rate[MODES][ROUNDS_MAX], cost[MODES][ROUNDS_MAX];

	for (unsigned r = 0; r < options.rounds; r++) {
		for (size_t m = 0; m < MODES; m++) {
			struct figure f = run(&modes[m], threads);

			rate[m][r] = f.rate;
			cost[m][r] = f.cost;
		}
	}
	printf("%7u", threads);
	for (size_t m = 0; m < MODES; m++)
		printf("  %8.3f %6.0f", bench_stats_of(rate[m], options.rounds).median,
			bench_stats_of(cost[m], options.rounds).median);
	printf("\n");
	fflush(stdout);
}

static unsigned number(const char *text, unsigned max, struct argp_state *state)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < 1 || n > (long)max)
		argp_error(state, "%s is not a number from 1 to %u", text, max);
	return (unsigned)n;
}

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'p':
		options.provider = arg;
		return 0;
	case 't':
		options.threads = number(arg, THREADS, state);
		return 0;
	case 'r':
		options.rounds = number(arg, ROUNDS_MAX, state);
		return 0;
	case 'm':
		options.seconds = number(arg, 60000, state) / 1e3;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{"provider", 'p', "NAME", 0, "libfabric's provider (ropewalk)", 0},
		{"threads", 't', "N", 0, "at most (4)", 0},
		{"rounds", 'r', "N", 0, "of which each figure is the median (5)", 0},
		{"milliseconds", 'm', "N", 0, "that a thread sends for (200)", 0},
		{NULL, 0, NULL, 0, NULL, 0},
	};
	static const struct argp argp = {
		known, read_option, NULL, "Threads that send at once, by what they have in common.", NULL, NULL, NULL};

	argp_err_exit_status = 2;
	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return 2;
	printf("million messages a second, and nanoseconds of a core for each\nthreads");
	for (size_t m = 0; m < MODES; m++)
		printf("  %8s %6s", modes[m].name, "ns");
	printf("\n");
	for (unsigned threads = 1; threads <= options.threads; threads *= 2)
		row(threads);
	return bench_printed("threads") ? 2 : 0;
}
