/* SPDX-License-Identifier: BSD-3-Clause */
/* What a running process shows of its endpoints. */
#include "selection/selection.h"
#include "tools/attach.h"
#include "tools/info.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void place_doc(struct rwk_doc *d, const struct rwk_address *a)
{
	char ip[INET6_ADDRSTRLEN];
	uint32_t rank = rwk_address_rank(a);

	inet_ntop(AF_INET6, a->ip, ip, sizeof(ip));
	rwk_doc_number_if(d, "rank", rank != RWK_ADDR_NO_RANK && !(a->flags_rank & RWK_ADDR_PARTIAL), rank);
	rwk_doc_text(d, "ip", !strncmp(ip, "::ffff:", 7) && strchr(ip, '.') ? ip + 7 : ip);
	rwk_doc_number(d, "port", rwk_address_port(a));
}

static void counters_doc(struct rwk_doc *d, const struct rwk_engine_counters *c)
{
	rwk_doc_object(d, "counters");
	rwk_doc_number(d, "sent", c->sent_eager + c->sent_rendezvous);
	rwk_doc_number(d, "sent_bytes", c->sent_bytes);
	rwk_doc_number(d, "sent_eager", c->sent_eager);
	rwk_doc_number(d, "sent_rendezvous", c->sent_rendezvous);
	rwk_doc_count(d, "sent_without_credit", c->credits_waited);
	rwk_doc_count(d, "sent_late", c->sent_late);
	rwk_doc_number(d, "received", c->received);
	rwk_doc_number(d, "received_bytes", c->received_bytes);
	rwk_doc_number(d, "unexpected", c->unexpected);
	rwk_doc_count(d, "unexpected_bytes_now", c->unexpected_bytes_now);
	rwk_doc_count(d, "unexpected_bytes_peak", c->unexpected_bytes_peak);
	rwk_doc_count(d, "failed_peers", c->failed_peers);
	rwk_doc_count(d, "reads", c->reads);
	rwk_doc_count(d, "read_bytes", c->read_bytes);
	rwk_doc_count(d, "writes", c->writes);
	rwk_doc_count(d, "written_bytes", c->written_bytes);
	rwk_doc_count(d, "atomics", c->atomics);
	rwk_doc_count(d, "atomic_bytes", c->atomic_bytes);
	rwk_doc_end(d);
}

static void kind_doc(struct rwk_doc *d, const struct rwk_status_kind *k)
{
	rwk_doc_object(d, "kind");
	rwk_doc_text(d, "where", k->self ? "myself" : k->here ? "this node" : "other nodes");
	rwk_doc_number(d, "peers", k->peers);
	rwk_doc_text(d, "strand", k->strand == RWK_STRAND_NONE ? NULL : rwk_strand_text(k->strand));
	rwk_doc_text(d, "reason", k->reason);
	if (d->json || k->manner[0])
		rwk_doc_text(d, "manner", k->manner[0] ? k->manner : NULL);
	rwk_doc_object(d, "not");
	for (enum rwk_strand s = 0; s < RWK_STRAND_COUNT; s++) {
		if (k->lost[s][0])
			rwk_doc_text(d, rwk_strand_text(s), k->lost[s]);
	}
	rwk_doc_end(d);
	rwk_doc_end(d);
}

static void traffic_doc(struct rwk_doc *d, const struct rwk_status_peer *p)
{
	static const char *const name[] = {"packets_out", "bytes_out", "packets_in", "bytes_in", "sent_again",
		"timeouts", "probes", "naks_out", "naks_in", "rnr_out", "rnr_in", "duplicates", "early", "lost",
		"refused"};
	uint64_t at = now(CLOCK_MONOTONIC);

	_Static_assert(sizeof(name) / sizeof(name[0]) == RWK_TRAFFIC_COUNTS, "a name for each");
	if (!p->traffic_at)
		return;
	rwk_doc_object(d, "traffic");
	rwk_doc_number(d, "milliseconds_ago", at > p->traffic_at ? (at - p->traffic_at) / 1000000 : 0);
	for (size_t i = 0; i < RWK_TRAFFIC_COUNTS; i++)
		rwk_doc_count(d, name[i], p->traffic.count[i]);
	rwk_doc_end(d);
}

static void peer_doc(struct rwk_doc *d, const struct rwk_status *s, const struct rwk_status_peer *p)
{
	const struct rwk_status_kind *k = p->kind < s->kinds ? &s->kind[p->kind] : NULL;
	bool merged = p->error == EALREADY, failed = p->error && !merged;

	rwk_doc_object(d, "peer");
	place_doc(d, &p->address);
	rwk_doc_number_if(d, "kind", k, p->kind);
	rwk_doc_text(d, "strand", !k || k->strand == RWK_STRAND_NONE ? NULL : rwk_strand_text(k->strand));
	if (d->json || failed)
		rwk_doc_text(d, "error", failed ? strerror(p->error) : NULL);
	if (d->json || merged)
		rwk_doc_text(d, "remark", merged ? "the same process as another peer, which has the connection" : NULL);
	traffic_doc(d, p);
	rwk_doc_end(d);
}

/** What the environment has set, NAME=value each. */
static void settings_doc(struct rwk_doc *d, char *settings)
{
	char *rest, *line = strtok_r(settings, "\n", &rest);

	rwk_doc_list(d, "environment");
	for (; line; line = strtok_r(NULL, "\n", &rest))
		rwk_doc_text(d, "environment", line);
	rwk_doc_end(d);
}

static void job_doc(struct rwk_doc *d, const struct rwk_status *s)
{
	rwk_doc_object(d, "job");
	rwk_doc_text(d, "source", s->source <= RWK_JOB_SLURM ? rwk_job_source_text(s->source) : NULL);
	rwk_doc_text(d, "name", s->job);
	rwk_doc_number_if(d, "rank", s->rank != RWK_RANK_NONE, s->rank);
	rwk_doc_number(d, "size", s->size);
	rwk_doc_number(d, "nodes", s->nodes);
	rwk_doc_flag(d, "nodes_exact", s->nodes_exact);
	rwk_doc_number_if(d, "node", s->node != RWK_NODE_NONE, s->node);
	rwk_doc_number(d, "local_index", s->local_index);
	rwk_doc_number(d, "local_size", s->local_size);
	rwk_doc_flag(d, "oversubscribed", s->oversubscribed);
	rwk_doc_end(d);
}

static void endpoint_doc(struct rwk_doc *d, struct rwk_status *s)
{
	uint64_t at = now(CLOCK_REALTIME);

	rwk_doc_object(d, "endpoint");
	rwk_doc_text(d, "version", s->head.version);
	rwk_doc_text(d, "host", s->host);
	place_doc(d, &s->address);
	rwk_doc_number(d, "seconds_open", at > s->opened ? (at - s->opened) / 1000000000u : 0);
	rwk_doc_flag(d, "closed", s->closed);
	job_doc(d, s);
	settings_doc(d, s->settings);
	counters_doc(d, &s->counters);
	rwk_doc_list(d, "kinds");
	for (uint32_t i = 0; i < s->kinds; i++)
		kind_doc(d, &s->kind[i]);
	rwk_doc_end(d);
	rwk_doc_list(d, "peers");
	for (uint32_t i = 0; i < s->peers; i++)
		peer_doc(d, s, &s->peer[i]);
	rwk_doc_end(d);
	rwk_doc_count(d, "peers_not_listed", s->unlisted);
	rwk_doc_end(d);
}

static int attach(pid_t pid, struct rwk_attached *a, struct rwk_status **copy)
{
	char why[RWK_ATTACH_WHY];
	int rc = rwk_attach(pid, a, why);

	if (rc) {
		fprintf(stderr, "rwk_info: %s\n", why);
		return rc;
	}
	*copy = malloc(sizeof(**copy));
	if (*copy)
		return 0;
	rwk_detach(a);
	fprintf(stderr, "rwk_info: out of memory\n");
	return -ENOMEM;
}

int rwk_info_process(struct rwk_doc *d, pid_t pid)
{
	struct rwk_attached a;
	struct rwk_status *s;
	int rc = attach(pid, &a, &s);
	bool lives;

	if (rc)
		return rc;
	rwk_attach_read(&a, 0, s);
	rwk_doc_object(d, "process");
	rwk_doc_number(d, "pid", (uint64_t)pid);
	rwk_doc_text(d, "program", s->program);
	rwk_doc_list(d, "endpoints");
	for (unsigned i = 0; i < a.count; i++) {
		rwk_attach_read(&a, i, s);
		endpoint_doc(d, s);
	}
	rwk_doc_end(d);
	rwk_doc_count(d, "endpoints_not_shown", a.more);
	lives = rwk_attach_lives(&a);
	rwk_doc_flag(d, "lives", lives);
	rwk_doc_end(d);
	if (!lives)
		fprintf(stderr, "rwk_info: process %ld has ended meanwhile; this is what it left\n", (long)pid);
	free(s);
	rwk_detach(&a);
	return 0;
}

/* What an endpoint had counted when it was looked at. */
struct sample {
	struct rwk_address address; /* with `opened`: which endpoint */
	uint64_t opened, at;
	bool closed;
	struct rwk_engine_counters c;
};

struct watch {
	struct rwk_attached a;
	struct sample last[RWK_ATTACH_MAX]; /* of each page of `a` */
	struct rwk_status *s;               /* room for one */
};

static struct sample sample_of(const struct rwk_status *s)
{
	return (struct sample){s->address, s->opened, now(CLOCK_MONOTONIC), s->closed, s->counters};
}

/** The line of an endpoint, from what it said before. */
static void print_rates(const struct rwk_status *s, struct sample *last)
{
	struct sample cur = sample_of(s);
	double t = (double)(cur.at - last->at) / 1e9;
	uint64_t out = cur.c.sent_eager + cur.c.sent_rendezvous - last->c.sent_eager - last->c.sent_rendezvous;

	if (s->rank != RWK_RANK_NONE)
		printf("rank %" PRIu32 ": ", s->rank);
	printf("out %.0f messages/s, %.3f MB/s; in %.0f messages/s, %.3f MB/s; unexpected %.0f/s, %" PRIu64
	       " bytes wait; %" PRIu32 " peers, %" PRIu64 " failed%s\n",
		(double)out / t, (double)(cur.c.sent_bytes - last->c.sent_bytes) / 1e6 / t,
		(double)(cur.c.received - last->c.received) / t,
		(double)(cur.c.received_bytes - last->c.received_bytes) / 1e6 / t,
		(double)(cur.c.unexpected - last->c.unexpected) / t, cur.c.unexpected_bytes_now, s->peers,
		cur.c.failed_peers, s->closed ? "; closed" : "");
	*last = cur;
}

/** What was said before of the endpoint; of one that is new, what it says now. */
static struct sample known_sample(const struct watch *w, const struct rwk_status *s)
{
	for (unsigned i = 0; i < w->a.count; i++) {
		const struct sample *last = &w->last[i];

		if (last->opened == s->opened && !memcmp(&last->address, &s->address, sizeof(s->address)))
			return *last;
	}
	return sample_of(s);
}

/** Goes on with what is open now. */
static void take_up(struct watch *w, const struct rwk_attached *a)
{
	struct sample last[RWK_ATTACH_MAX];

	for (unsigned i = 0; i < a->count; i++) {
		rwk_attach_read(a, i, w->s);
		last[i] = known_sample(w, w->s);
	}
	memcpy(w->last, last, a->count * sizeof(last[0]));
	rwk_detach(&w->a);
	w->a = *a;
}

/**
 * A line for each endpoint that there was the last time; then those that have been opened since take the place of those
 * that have been closed. It is looked for them first: what is not found any more says in its line that it is closed.
 */
static void look_again(struct watch *w)
{
	char why[RWK_ATTACH_WHY];
	struct rwk_attached a;
	int rc = rwk_attach(w->a.pid, &a, why);

	for (unsigned i = 0; i < w->a.count; i++) {
		rwk_attach_read(&w->a, i, w->s);
		if (!w->last[i].closed)
			print_rates(w->s, &w->last[i]);
	}
	if ((!rc || rc == -ENOENT) && a.start == w->a.start) /* not another process that has its number by now */
		take_up(w, &a);
	else
		rwk_detach(&a);
}

static void rest(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

int rwk_info_watch(pid_t pid, double seconds, unsigned times)
{
	struct watch w = {.a = {.count = 0}};
	struct rwk_attached a;
	int rc = attach(pid, &a, &w.s);
	bool lives = true;

	if (rc)
		return rc;
	take_up(&w, &a);
	for (unsigned n = 0; lives && (!times || n < times); n++) {
		rest(seconds);
		lives = rwk_attach_lives(&w.a);
		look_again(&w);
		if (fflush(stdout))
			break;
	}
	if (!lives)
		fprintf(stderr, "rwk_info: process %ld has ended\n", (long)pid);
	free(w.s);
	rwk_detach(&w.a);
	return 0;
}
