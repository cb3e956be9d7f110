/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends: their objects, how they are connected, how the two programs agree. */
#include "bench/adapter/adapter.h"

#include "bench/common/clock.h"
#include "config.h"

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCESS  (RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC)
#define LINE    4096 /* has room for all sizes that there may be */
#define SRQN    1u
#define TIMEOUT 500000000u /* ns; eight of them: a peer that waits for its core is no dead one */
#define TRIES   64         /* UDP ports */

static int failed(int rc, const char *what)
{
	if (rc < 0)
		error(0, -rc, "%s", what);
	return rc;
}

/* ---- objects ---- */

/* Without a port that is wanted: one of those behind 4791. */
static int open_adapter(struct bench_adapter *p)
{
	struct rwk_adapter_attr attr = {.port = (uint16_t)p->o->udp_port};
	int rc = -EADDRINUSE;

	memcpy(attr.ip, p->o->ip, sizeof(attr.ip));
	if (attr.port)
		return rwk_adapter_open(&attr, &p->adapter);
	for (int i = 0; i < TRIES && rc == -EADDRINUSE; i++) {
		attr.port = (uint16_t)(RWK_PORT + 1 + (getpid() + i) % 4000);
		rc = rwk_adapter_open(&attr, &p->adapter);
	}
	return rc;
}

static int open_qp(struct bench_adapter *p)
{
	uint32_t depth = p->o->common.window;
	struct rwk_qp_create_attr create = {.type = p->o->type,
		.send_cq = p->cq,
		.send_max = depth,
		.receive_cq = p->cq,
		.receive_max = 2 * depth,
		.inline_max = p->o->inline_max};
	struct rwk_srq_attr srq = {.receive_max = 2 * depth, .number = SRQN, .cq = p->cq};
	int rc;

	if (p->o->type == RWK_QP_SRC) {
		rc = rwk_src_domain_create(p->adapter, &p->domain);
		srq.domain = p->domain;
		if (!rc)
			rc = rwk_srq_create(p->pd, &srq, &p->srq);
		if (rc)
			return rc;
		create.domain = p->domain;
		create.receive_cq = NULL;
		create.receive_max = 0;
	}
	return rwk_qp_create(p->pd, &create, &p->qp);
}

static int open_objects(struct bench_adapter *p)
{
	int rc = open_adapter(p);

	if (rc)
		return failed(rc, "the adapter (--udp-port chooses its port)");
	rc = rwk_pd_create(p->adapter, &p->pd);
	if (!rc)
		rc = rwk_cq_create(p->adapter, 3 * p->o->common.window, &p->cq);
	if (!rc)
		rc = open_qp(p);
	return failed(rc, "the queue pair");
}

void bench_adapter_close(struct bench_adapter *p)
{
	if (p->qp)
		rwk_qp_destroy(p->qp);
	if (p->srq)
		rwk_srq_destroy(p->srq);
	if (p->domain)
		rwk_src_domain_destroy(p->domain);
	if (p->cq)
		rwk_cq_destroy(p->cq);
	if (p->send_mr)
		rwk_mr_deregister(p->send_mr);
	if (p->recv_mr)
		rwk_mr_deregister(p->recv_mr);
	if (p->pd)
		rwk_pd_destroy(p->pd);
	if (p->adapter)
		rwk_adapter_close(p->adapter);
	if (p->talk >= 0)
		close(p->talk);
}

/* ---- the connection ---- */

static int connect_qp(struct bench_adapter *p)
{
	struct rwk_qp_attr attr = {.peer_port = (uint16_t)p->theirs.port,
		.peer_qpn = p->theirs.qpn,
		.send_psn = p->mine.psn,
		.receive_psn = p->theirs.psn,
		.pmtu = p->pmtu,
		.access = ACCESS,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 1,
		.timeout_ns = TIMEOUT};
	int rc;

	memcpy(attr.peer_ip, p->theirs.ip, sizeof(attr.peer_ip));
	rc = rwk_qp_modify(p->qp, RWK_QPS_INIT, NULL);
	if (!rc)
		rc = rwk_qp_modify(p->qp, RWK_QPS_RTR, &attr);
	if (!rc)
		rc = rwk_qp_modify(p->qp, RWK_QPS_RTS, NULL);
	return failed(rc, "the connection (-m: the PMTU must fit the way)");
}

int bench_adapter_reconnect(struct bench_adapter *p)
{
	uint64_t ignored;
	int rc = failed(rwk_qp_modify(p->qp, RWK_QPS_RESET, NULL), "the queue pair");

	if (!rc)
		rc = bench_adapter_exchange(p, 0, &ignored);
	if (!rc)
		rc = connect_qp(p);
	return rc ? rc : bench_adapter_exchange(p, 0, &ignored);
}

/* What both ends must have been told alike. */
static void print_terms(const struct bench_adapter *p, char *text, size_t len)
{
	const struct bench_options *o = &p->o->common;
	int n = snprintf(text, len, " %s -o %s -c %s%s -n %lu -D %g -t %u --repeats %u --warmup %lu touch %d",
		p->test->name, p->o->operation->name, p->o->type_name, p->o->bidirectional ? " -b" : "", o->iterations,
		o->seconds * o->repeats, o->window, o->repeats, o->warmup, o->touch);

	for (size_t i = 0; i < o->sizes; i++)
		n += snprintf(text + n, len - (size_t)n, "%s%zu", i ? "," : " -s ", o->size[i]);
}

/* The line of the one that waits; that of the other has come with it. */
static int hear(struct bench_adapter *p, char *line)
{
	if (!p->o->host)
		return 0;
	rwk_meet_read_line(p->talk, BENCH_ADAPTER_PATIENCE, line, LINE);
	if (*line)
		return 0;
	error(0, 0, "the other program has ended, or says nothing within %d s", BENCH_ADAPTER_PATIENCE);
	return -ECONNRESET;
}

/* Both must have the same, and a packet must fit the way of each end: where these are not alike, the narrower. */
static int agree_on_pmtu(struct bench_adapter *p)
{
	uint64_t mine = p->o->pmtu ? p->o->pmtu : rwk_adapter_pmtu(p->adapter, p->theirs.ip), theirs;
	int rc = bench_adapter_exchange(p, mine, &theirs);

	if (!rc)
		p->pmtu = (uint32_t)(theirs < mine ? theirs : mine);
	return rc;
}

/* `heard`, of LINE bytes: the other program's line, if it has come already. */
static int introduce(struct bench_adapter *p, char *heard)
{
	char said[LINE], *terms;
	const char *rest;
	uint8_t ip[16];
	int rc = rwk_meet_peer(p->talk, ip);

	if (!rc)
		rc = rwk_adapter_source(p->adapter, ip, p->mine.ip);
	if (rc)
		return failed(rc, "the way to the other program");
	p->mine.port = rwk_adapter_port(p->adapter);
	p->mine.qpn = rwk_qp_number(p->qp);
	if (getrandom(&p->mine.psn, sizeof(p->mine.psn), 0) != sizeof(p->mine.psn))
		return failed(-errno, "a first PSN");
	p->mine.psn &= 0xffffff;
	rwk_place_print(said, &p->mine);
	terms = said + strlen(said);
	print_terms(p, terms, sizeof(said) - (size_t)(terms - said));
	if (dprintf(p->talk, "%s\n", said) < 0)
		return failed(-ECONNRESET, "the other program");
	rc = hear(p, heard);
	if (rc)
		return rc;
	rest = rwk_place_parse(heard, &p->theirs);
	if (rest && !strcmp(rest, terms))
		return agree_on_pmtu(p);
	error(0, 0, "the other program was started as\n %s\nand this one as\n %s", rest ? rest : heard, terms);
	return -EINVAL;
}

/* A host that is gone or cut off is not waited for without end: neither while its word is due, nor while ours is. */
static void limit_patience(int talk)
{
	const int on = 1, idle = 2, interval = 1, most = 1000 * BENCH_ADAPTER_PATIENCE;

	setsockopt(talk, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(talk, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(talk, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof(most));
	setsockopt(talk, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

int bench_adapter_open(struct bench_adapter *p)
{
	const struct bench_adapter_options *o = p->o;
	char heard[LINE];
	uint64_t ignored;
	int rc;

	p->talk = o->host ? rwk_meet(o->host, o->tcp_port, BENCH_ADAPTER_PATIENCE)
			  : rwk_meet_await(o->tcp_port, BENCH_ADAPTER_PATIENCE, heard, sizeof(heard));
	if (p->talk < 0)
		return p->talk;
	limit_patience(p->talk);
	rc = open_objects(p);
	if (!rc)
		rc = introduce(p, heard);
	if (!rc)
		rc = connect_qp(p);
	return rc ? rc : bench_adapter_exchange(p, 0, &ignored);
}

/* ---- agreement ---- */

int bench_adapter_exchange(struct bench_adapter *p, uint64_t mine, uint64_t *theirs)
{
	size_t have = 0;
	uint64_t told;
	ssize_t n;
	int rc;

	if (send(p->talk, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine))
		return failed(-ECONNRESET, "the other program");
	for (unsigned turns = 0; have < sizeof(told); turns++) {
		/* No patience: the other one is at work, or ends. */
		rc = bench_adapter_poll(p, &(struct bench_adapter_wait){0});
		if (rc)
			return rc;
		if (turns % 16)
			continue;
		n = recv(p->talk, (char *)&told + have, sizeof(told) - have, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			error(0, n ? errno : 0, "the other program has ended, or is cut off");
			return -ECONNRESET;
		}
		have += n > 0 ? (size_t)n : 0;
		if (turns % 1024 == 0)
			sched_yield();
	}
	*theirs = told;
	return 0;
}

int bench_adapter_largest(struct bench_team *team, double *value)
{
	uint64_t mine, theirs;
	double other;
	int rc;

	memcpy(&mine, value, sizeof(mine));
	rc = bench_adapter_exchange((struct bench_adapter *)team, mine, &theirs);
	if (rc)
		return rc;
	memcpy(&other, &theirs, sizeof(other));
	*value = other > *value ? other : *value;
	return 0;
}
