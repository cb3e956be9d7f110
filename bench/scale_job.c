/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job: who exists, what they have, and what a packet goes through. Who works when is in scale_rank.c.
 */
#include "bench/scale_internal.h"

#include "base/compiler.h"
#include "base/iov.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As transports/packet has them. */
#define TIMEOUT   (2 * 1000 * 1000u) /* ns */
#define ACK_DELAY (60 * 1000u)       /* ns */
#define ACK_EVERY 16

#define WIRE_AROUND 46u                   /* bytes of UDP, IPv4 and Ethernet, its check sum included */
#define MOST_TIME   (60ull * 1000000000u) /* ns */

static struct half *of(void *user)
{
	return user;
}

static rwk_time later(rwk_time a, rwk_time b)
{
	return a > b ? a : b;
}

/*
 * Packets out.
 */

/* Sends it over the cables of both nodes, each of which has one packet at a time; sets how long that takes. */
static void take_cables(struct rank *r, uint32_t to, size_t len)
{
	struct job *j = r->node->job;
	struct node *there = j->at[to];
	rwk_time now = rwk_sim_now(j->sim), takes = (rwk_time)((double)(len + WIRE_AROUND) * 8 / j->attr.gbit), begins;
	struct rwk_sim_path path = {.drop = j->attr.drop};

	begins = later(r->busy, r->node->out_free);
	r->node->out_free = begins + takes;
	there->in_free = later(there->in_free, begins + SCALE_DELAY) + takes;
	path.delay = there->in_free - now;
	rwk_sim_set_path(j->sim, rwk_sim_number(r->link), to, &path);
}

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct half *h = of(user);
	struct rank *r = h->rank;
	struct scale_result *res = &r->node->job->result;
	uint8_t header[RWK_WIRE_HEADER_MAX], tail[4 + RWK_WIRE_ICRC] = {0}; /* nothing damages a packet here */
	size_t len = rwk_iov_length(payload, count), pad = -len & 3;
	struct iovec iov[RWK_MACHINE_IOV + 2];

	iov[0] = (struct iovec){header, rwk_wire_pack(w, len, header)};
	memcpy(&iov[1], payload, (size_t)count * sizeof(*payload));
	iov[count + 1] = (struct iovec){tail, pad + RWK_WIRE_ICRC};
	len += iov[0].iov_len + iov[count + 1].iov_len;
	scale_work(r);
	take_cables(r, rwk_sim_address_number(&h->to), len);
	res->packets++;
	res->bytes += len + WIRE_AROUND;
	if (RWK_WIRE_OPERATION(w->opcode) == RWK_WIRE_ACK)
		res->acks++;
	else
		h->has_sent = true;
	return r->link->ops->send(r->link, &h->to, iov, count + 2);
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct job *j = of(user)->rank->node->job;

	if (!status) {
		j->result.done++;
		j->done_at = later(j->done_at, of(user)->rank->busy);
	}
	free(rwk_container_of(wr, struct message, wr));
}

static void on_failed(void *user, int err)
{
	(void)err;
	of(user)->rank->node->job->result.wrong++;
}

/*
 * Packets in.
 */

/* All of it has come: is it this rank's, from who should have sent it, and for the first time? */
static bool is_right(struct half *h, uint32_t to)
{
	struct job *j = h->rank->node->job;
	uint8_t *came;

	if (h->head.to != to || h->head.from != h->from || h->came != sizeof(h->head) + j->attr.size)
		return false;
	came = &j->came[(size_t)to * j->rank_count + h->from];
	return !(*came)++;
}

/* Copies of the head; the rest must be the bytes that everybody sends. */
static bool take_bytes(struct half *h, const uint8_t *bytes, size_t len)
{
	struct job *j = h->rank->node->job;
	size_t head = h->came < sizeof(h->head) ? sizeof(h->head) - h->came : 0, at;

	if (head > len)
		head = len;
	if (head)
		memcpy((uint8_t *)&h->head + h->came, bytes, head);
	at = h->came + head - sizeof(h->head);
	h->came += (uint32_t)len;
	return len == head ||
	       (h->came <= sizeof(h->head) + j->attr.size && !memcmp(j->pattern + at, bytes + head, len - head));
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct half *h = of(user);
	struct job *j = h->rank->node->job;
	/* With RC the queue pair is the rank's; with SRC the number in the packet says whose queue it is. */
	uint32_t to = j->attr.src ? scale_rank_of_srqn(h->rank->node, w->srqn) : h->rank->number;

	if (where & RWK_PIECE_FIRST) {
		h->came = 0;
		h->good = true;
	}
	h->good = take_bytes(h, bytes, len) && h->good;
	h->acked = h->acked || (where & RWK_PIECE_FIRST && h->head.has_ack);
	if (!(where & RWK_PIECE_LAST))
		return 0;
	h->has_received = true;
	if (to < j->rank_count && h->good && is_right(h, to))
		j->result.delivered++;
	else
		j->result.wrong++;
	j->delivered_at = later(j->delivered_at, h->rank->busy);
	return 0;
}

static int on_keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	struct half *h = of(user);
	struct kept *k = malloc(sizeof(*k) + len);

	if (!h->kept)
		h->kept = calloc(RWK_RC_WINDOW_MAX, sizeof(*h->kept));
	if (!k || !h->kept) {
		free(k);
		return -ENOMEM;
	}
	k->w = *w;
	k->len = len;
	if (len)
		memcpy(k->bytes, bytes, len);
	h->kept[slot] = k;
	return 0;
}

static const void *on_kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	struct kept *k = of(user)->kept[slot];

	*w = k->w;
	*len = k->len;
	return k->bytes;
}

static void on_drop(void *user, uint32_t slot)
{
	struct half *h = of(user);

	free(h->kept[slot]);
	h->kept[slot] = NULL;
}

/* Nobody reads or writes another's memory here: the upcalls for that are left out. */
static const struct rwk_machine_host host = {
	.emit = on_emit,
	.done = on_done,
	.failed = on_failed,
	.receive = on_receive,
	.keep = on_keep,
	.kept = on_kept,
	.drop = on_drop,
};

/*
 * Halves. Numbers of queue pairs: at a rank the peer's rank (RC) or node (SRC), at a domain the peer's rank.
 */

static struct rwk_rc_attr attr_of(const struct half *h)
{
	const struct scale_attr *a = &h->rank->node->job->attr;

	return (struct rwk_rc_attr){
		.peer_qpn = h->peer_qpn,
		.send_psn = 7,
		.receive_psn = 7,
		.pmtu = (uint16_t)a->pmtu,
		.window = RWK_RC_WINDOW_MAX,
		.reads = 1,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 1,
		.service = a->src ? RWK_WIRE_SRC : RWK_WIRE_RC,
		.own = RWK_RC_SELECTIVE | RWK_RC_ENDLESS | (!a->src || a->src_lazy ? RWK_RC_LAZY : 0),
		.timeout = TIMEOUT,
		.ack_delay = ACK_DELAY,
		.ack_every = ACK_EVERY,
	};
}

struct rwk_rc *scale_open(struct half *h, void *memory, void *responder, bool sends)
{
	struct rwk_rc_attr attr = attr_of(h);
	struct rwk_rc *rc = rwk_rc_open(memory, responder, &host, h);

	if (rwk_rc_modify(rc, RWK_QP_INIT, NULL) || rwk_rc_modify(rc, RWK_QP_RTR, &attr) ||
		(sends && rwk_rc_modify(rc, RWK_QP_RTS, NULL)))
		abort(); /* our own attributes */
	return rc;
}

/* Memory for a machine's half; every byte of it is counted. */
static void *half_memory(struct job *j, size_t size)
{
	void *m = aligned_alloc(RWK_CACHE_LINE, (size + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1));

	if (m) {
		memset(m, 0, size);
		j->result.machines += size;
	}
	return m;
}

/* An RC queue pair with a rank, or an SRC initiator to a node. */
static int make_initiator(struct rank *r, struct half *h, uint32_t peer, struct rwk_link *link)
{
	struct job *j = r->node->job;
	bool src = j->attr.src;

	h->rank = r;
	h->from = peer;
	h->peer_qpn = SCALE_QPN + r->number;
	h->to = rwk_sim_address(rwk_sim_number(link));
	h->next = RWK_NEVER;
	h->memory = half_memory(j, rwk_rc_size());
	h->responder = src ? r->idle_responder : half_memory(j, rwk_rc_responder_size());
	if (!h->memory || !h->responder)
		return -ENOMEM;
	h->rc = scale_open(h, h->memory, h->responder, true);
	j->result.queue_pairs++;
	j->result.initiators++;
	j->result.targets += !src;
	j->result.timers += src ? 1 : 2;
	return 0;
}

static int make_target(struct node *n, struct half *h, struct rank *from)
{
	struct job *j = n->job;

	h->rank = &j->ranks[n->number * j->attr.per_node]; /* until somebody serves it */
	h->from = from->number;
	h->peer_qpn = SCALE_QPN + n->number;
	h->to = rwk_sim_address(rwk_sim_number(from->link));
	h->next = RWK_NEVER;
	h->responder = half_memory(j, rwk_rc_responder_size());
	if (!h->responder)
		return -ENOMEM;
	j->result.queue_pairs++;
	j->result.targets++;
	j->result.timers += j->attr.src_lazy;
	return 0;
}

static int make_rank(struct job *j, struct rank *r)
{
	r->half_count = j->attr.src ? j->attr.nodes : j->rank_count;
	r->halves = calloc(r->half_count, sizeof(*r->halves));
	r->earliest = RWK_NEVER;
	if (!r->halves)
		return -ENOMEM;
	if (j->attr.src && j->attr.nodes > 1) {
		r->server = half_memory(j, rwk_rc_size());
		r->idle_responder = half_memory(j, rwk_rc_responder_size());
		if (!r->server || !r->idle_responder)
			return -ENOMEM;
	}
	for (uint32_t peer = 0; peer < r->half_count; peer++) {
		struct node *n = j->attr.src ? &j->nodes[peer] : j->ranks[peer].node;
		int rc;

		if (n == r->node)
			continue;
		rc = make_initiator(r, &r->halves[peer], peer, j->attr.src ? n->link : j->ranks[peer].link);
		if (rc)
			return rc;
	}
	return 0;
}

static int make_domain(struct job *j, struct node *n)
{
	n->targets = calloc(j->rank_count, sizeof(*n->targets));
	if (!n->targets)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->rank_count; i++) {
		int rc = j->ranks[i].node == n ? 0 : make_target(n, &n->targets[i], &j->ranks[i]);

		if (rc)
			return rc;
	}
	return 0;
}

/*
 * The whole.
 */

/* Who is at which number of the simulated network. */
static int make_link(struct job *j, struct node *n, struct rwk_link **link)
{
	int rc = rwk_sim_node(j->sim, link);

	if (!rc)
		j->at[rwk_sim_number(*link)] = n;
	return rc;
}

static int make_places(struct job *j)
{
	int rc = 0;

	for (uint32_t i = 0; i < j->attr.nodes && !rc; i++) {
		j->nodes[i] = (struct node){.job = j, .number = i, .earliest = RWK_NEVER};
		if (j->attr.src)
			rc = make_link(j, &j->nodes[i], &j->nodes[i].link);
	}
	for (uint32_t i = 0; i < j->rank_count && !rc; i++) {
		j->ranks[i] = (struct rank){.number = i, .node = &j->nodes[i / j->attr.per_node]};
		rc = make_link(j, j->ranks[i].node, &j->ranks[i].link);
	}
	return rc;
}

static int make_job(struct job *j)
{
	struct rwk_sim_attr sim = {.seed = j->attr.seed, .mtu = RWK_WIRE_HEADER_MAX + j->attr.pmtu + RWK_WIRE_ICRC};
	int rc;

	j->rank_count = j->attr.nodes * j->attr.per_node;
	j->result.messages = (uint64_t)j->rank_count * (j->rank_count - j->attr.per_node);
	j->ranks = calloc(j->rank_count, sizeof(*j->ranks));
	j->nodes = calloc(j->attr.nodes, sizeof(*j->nodes));
	j->at = calloc(j->rank_count + j->attr.nodes + 1, sizeof(struct node *));
	j->came = calloc(j->rank_count, j->rank_count);
	j->pattern = malloc(j->attr.size + 1);
	if (!j->ranks || !j->nodes || !j->at || !j->came || !j->pattern)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->attr.size; i++)
		j->pattern[i] = (uint8_t)(i * 31 + i / 256);
	rc = rwk_sim_open(&sim, &j->sim);
	if (!rc)
		rc = make_places(j);
	for (uint32_t i = 0; i < j->rank_count && !rc; i++)
		rc = make_rank(j, &j->ranks[i]);
	for (uint32_t i = 0; i < j->attr.nodes && !rc && j->attr.src; i++)
		rc = make_domain(j, &j->nodes[i]);
	return rc;
}

static void free_half(struct half *h)
{
	if (h->rc)
		rwk_rc_close(h->rc);
	for (uint32_t i = 0; h->kept && i < RWK_RC_WINDOW_MAX; i++)
		free(h->kept[i]);
	free(h->kept);
	if (h->responder != h->rank->idle_responder)
		free(h->responder);
	free(h->memory);
}

/* What has carried a message is counted on the way. */
static void free_halves(struct job *j, struct half *halves, uint32_t count)
{
	for (uint32_t i = 0; halves && i < count; i++) {
		if (!halves[i].rank)
			continue;
		j->result.initiators_used += halves[i].has_sent;
		j->result.targets_used += halves[i].has_received;
		if (halves[i].rc)
			j->result.sent_again += rwk_rc_counters(halves[i].rc)->sent_again;
		free_half(&halves[i]);
	}
	free(halves);
}

static void free_job(struct job *j)
{
	for (uint32_t i = 0; j->nodes && i < j->attr.nodes; i++)
		free_halves(j, j->nodes[i].targets, j->rank_count);
	for (uint32_t i = 0; j->ranks && i < j->rank_count; i++) {
		free_halves(j, j->ranks[i].halves, j->ranks[i].half_count);
		free(j->ranks[i].server);
		free(j->ranks[i].idle_responder);
	}
	if (j->sim)
		rwk_sim_close(j->sim);
	free(j->pattern);
	free(j->came);
	free(j->at);
	free(j->nodes);
	free(j->ranks);
}

static int let_it_run(struct job *j)
{
	const struct scale_result *r = &j->result;

	scale_start(j);
	while (r->done < r->messages || r->delivered + r->wrong < r->messages) {
		if (!rwk_sim_step(j->sim) || rwk_sim_now(j->sim) > MOST_TIME)
			return -ETIMEDOUT;
	}
	return 0;
}

int scale_run(const struct scale_attr *attr, struct scale_result *result)
{
	struct job j = {.attr = *attr};
	int rc = make_job(&j);

	if (!rc)
		rc = let_it_run(&j);
	if (j.sim)
		j.result.dropped = rwk_sim_counts(j.sim)->dropped;
	free_job(&j);
	j.result.delivered_us = (double)j.delivered_at / 1000;
	j.result.done_us = (double)j.done_at / 1000;
	*result = j.result;
	return rc;
}
