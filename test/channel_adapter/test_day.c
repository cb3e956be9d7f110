/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time: with the argument `full` a day of it, else some minutes, on the simulated network. Four adapters, each
 * connected to each by RC, UC and SRC. Every few seconds of quiet all of them talk at once, each time over a network
 * with other faults: packets lost, repeated, reordered, damaged; delays that outlast every time-out; an adapter of
 * which nothing is heard for a while. What a connection does not survive begins anew: reset at both ends, other
 * numbers.
 *
 * What must hold: of RC and SRC every Send comes once, in order and whole; what is read is what was written, and
 * atomics count each once; of UC what comes is whole, in order and never twice. No connection ends but by silence or
 * delay, and one that has ended did of each operation all or nothing, none twice.
 *
 * A failure prints its seed: RWK_TEST_SEED=<seed> runs the same again. Links: sim.
 */
#include "channel_adapter/ends.h"
#include "channel_adapter/sim_udp.h"

#define NODES    4u
#define SERVICES 3u /* RC, UC, SRC */
#define HALVES   (SERVICES * (NODES - 1))
#define OPS      12u /* under way of one half */
#define PLACES   6u  /* of receives of one half; of an srq so many for each half */
#define LONGEST  3000u
#define AREA     512u /* bytes that a half writes and reads at its peer; a word for atomics behind them */
#define AGAIN    500  /* one connection in so many begins anew though it is well: with the ordering bits, or without */
#define QUIET    20   /* s: up to so long between two rounds */
#define MS       1000000ull
#define S        (1000 * MS)
#define STEP     4000u    /* ns */
#define TURNS    2000000u /* of one round: it ends before */

static uint64_t seed_now;

#define check(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			fail_msg("RWK_TEST_SEED=%llu: at %.3f s: %s:%d: %s", (unsigned long long)seed_now,             \
				(double)rwk_sim_now(sim_udp) / 1e9, __func__, __LINE__, #condition);                   \
	} while (0)

/* In front of each Send. */
struct head {
	uint32_t from, epoch, number, len;
};

struct op {
	enum rwk_request_type type;
	size_t len;
	uint64_t before;      /* an atomic's value */
	uint8_t expect[AREA]; /* a Read's bytes */
};

/* One end of a connection. */
struct half {
	struct node *node;
	struct half *peer;
	enum rwk_qp_type type;
	struct rwk_qp *qp;
	uint32_t epoch;                      /* how often it has begun */
	uint32_t posted, ended, sends, left; /* left: to be posted this round */
	uint32_t next;                       /* Send to come */
	bool failed;
	struct op ops[OPS];
	uint8_t written[AREA]; /* at the peer, when all that was posted is done */
	uint64_t word;
	bool place[PLACES]; /* a receive is posted there */
	struct {
		uint8_t out[OPS][LONGEST], in[PLACES][LONGEST], area[AREA];
		uint64_t word;
	} * memory; /* area, word: what the peer writes */
	struct rwk_mr *mr;
};

struct node {
	struct end end; /* but for what it has none of */
	struct rwk_cq *sent, *received;
	struct rwk_srq *srq;
	struct half half[HALVES];
};

static struct node nodes[NODES];
static uint64_t random_state;
static bool may_fail; /* this round something outlasts the retries */
static struct {
	uint64_t rounds, posted[SERVICES], sends[SERVICES], taken[SERVICES], missed, reads, atomics, bytes;
	uint64_t sent_again, duplicates, early, not_ready, bad_icrc, silences, delays, restarts;
	struct rwk_sim_counts net;
} seen;

static uint32_t pick(uint64_t bound)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % bound);
}

static uint32_t name_of(const struct half *h)
{
	return (uint32_t)((h->node - nodes) * HALVES + (size_t)(h - h->node->half));
}

static void fill(uint8_t *bytes, size_t len, uint32_t name, uint32_t number)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(name * 37 + number * 131 + i * 7 + i / 253);
}

static bool is_filled(const uint8_t *bytes, size_t len, uint32_t name, uint32_t number)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != (uint8_t)(name * 37 + number * 131 + i * 7 + i / 253))
			return false;
	return true;
}

/* ---- requests ---- */

static void plan_send(struct half *h, struct op *o, uint8_t *bytes)
{
	struct head head = {name_of(h), h->epoch, h->sends++, 0};

	o->len = sizeof(head) + pick(pick(4) ? 100 : LONGEST - sizeof(head) + 1);
	head.len = (uint32_t)o->len;
	memcpy(bytes, &head, sizeof(head));
	fill(bytes + sizeof(head), o->len - sizeof(head), head.from, head.number);
	seen.sends[h->type]++;
}

static void plan_remote(struct half *h, struct op *o, uint8_t *bytes, struct rwk_request *r)
{
	size_t at = pick(AREA);

	r->key = rwk_mr_key(h->peer->mr);
	if (o->type == RWK_REQUEST_FETCH_ADD) {
		o->len = 8;
		o->before = h->word++;
		r->remote = (uintptr_t)&h->peer->memory->word;
		r->swap_add = 1;
		seen.atomics++;
		return;
	}
	o->len = pick(AREA - at + 1);
	r->remote = (uintptr_t)h->peer->memory->area + at;
	if (o->type == RWK_REQUEST_WRITE) {
		r->flags = RWK_REQUEST_FENCE; /* not past a Read before it */
		fill(bytes, o->len, name_of(h), h->posted);
		memcpy(h->written + at, bytes, o->len);
	} else {
		memcpy(o->expect, h->written + at, o->len);
		seen.reads++;
	}
}

static void post_one(struct half *h)
{
	static const enum rwk_request_type types[] = {RWK_REQUEST_SEND, RWK_REQUEST_SEND, RWK_REQUEST_SEND,
		RWK_REQUEST_WRITE, RWK_REQUEST_READ, RWK_REQUEST_FETCH_ADD};
	struct op *o = &h->ops[h->posted % OPS];
	uint8_t *bytes = h->memory->out[h->posted % OPS];
	struct rwk_sge sge = {bytes, 0, rwk_mr_key(h->mr)};
	struct rwk_request r = {.id = h->posted, .sge = &sge, .sge_count = 1};

	o->type = r.type = types[h->type == RWK_QP_UC ? 0 : pick(6)];
	if (h->type == RWK_QP_SRC)
		r.srqn = rwk_srq_number(h->peer->node->srq);
	if (r.type == RWK_REQUEST_SEND)
		plan_send(h, o, bytes);
	else
		plan_remote(h, o, bytes, &r);
	sge.length = o->len;
	check(!rwk_qp_post(h->qp, &r));
	h->posted++;
	seen.posted[h->type]++;
	seen.bytes += o->len;
}

static struct half *half_of(struct node *n, uint32_t qpn)
{
	for (unsigned i = 0; i < HALVES; i++)
		if (rwk_qp_number(n->half[i].qp) == qpn)
			return &n->half[i];
	fail_msg("no qp %u", qpn);
	return NULL;
}

static void request_ended(struct node *n, const struct rwk_wc *wc)
{
	struct half *h = half_of(n, wc->qpn);
	struct op *o = &h->ops[h->ended % OPS];
	const uint8_t *bytes = h->memory->out[h->ended % OPS];

	check(wc->id == h->ended && h->ended != h->posted);
	h->ended++;
	if (wc->status) {
		check(may_fail && h->type != RWK_QP_UC);
		h->failed = true;
		return;
	}
	check(!h->failed && wc->type == (uint8_t)o->type);
	if (o->type == RWK_REQUEST_READ)
		check(!memcmp(bytes, o->expect, o->len));
	if (o->type == RWK_REQUEST_FETCH_ADD)
		check(!memcmp(bytes, &o->before, 8));
}

/* ---- receives ---- */

/* Where the place is, and whose memory: SRC's receives are an srq's, for whichever half. */
static void post_receives(struct node *n, unsigned chance)
{
	for (unsigned i = 0; i < HALVES; i++) {
		struct half *h = &n->half[i];

		for (unsigned p = 0; p < PLACES; p++) {
			struct rwk_sge sge = {h->memory->in[p], LONGEST, rwk_mr_key(h->mr)};
			struct rwk_receive r = {i * PLACES + p, &sge, 1};

			if (h->place[p] || pick(chance) || h->failed)
				continue;
			check(!(h->type == RWK_QP_SRC ? rwk_srq_post_receive(n->srq, &r)
						      : rwk_qp_post_receive(h->qp, &r)));
			h->place[p] = true;
		}
	}
}

static void received(struct node *n, const struct rwk_wc *wc)
{
	struct half *h = half_of(n, wc->qpn), *at = &n->half[wc->id / PLACES];
	const uint8_t *bytes = at->memory->in[wc->id % PLACES];
	struct head head;

	check(at->place[wc->id % PLACES]);
	at->place[wc->id % PLACES] = false;
	if (wc->status) { /* it was reset */
		check(may_fail);
		return;
	}
	check(wc->length >= sizeof(head));
	memcpy(&head, bytes, sizeof(head));
	check(head.from == name_of(h->peer) && head.epoch == h->epoch && head.len == wc->length);
	check(h->type == RWK_QP_UC ? head.number >= h->next : head.number == h->next);
	check(head.number < h->peer->sends);
	check(is_filled(bytes + sizeof(head), head.len - sizeof(head), head.from, head.number));
	seen.missed += head.number - h->next;
	h->next = head.number + 1;
	seen.taken[h->type]++;
}

/* ---- time ---- */

static void work(struct node *n)
{
	struct rwk_wc wc;

	while (rwk_cq_poll(n->sent, &wc, 1))
		request_ended(n, &wc);
	while (rwk_cq_poll(n->received, &wc, 1))
		received(n, &wc);
}

static void pass(uint64_t ns)
{
	for (unsigned i = 0; i < NODES; i++)
		work(&nodes[i]);
	rwk_sim_run_until(sim_udp, rwk_sim_now(sim_udp) + ns);
}

/* All that was to be posted is posted, and ended. */
static bool is_over(void)
{
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < HALVES; k++) {
			const struct half *h = &nodes[i].half[k];

			if (h->posted != h->ended || (h->left && !h->failed))
				return false;
		}
	return true;
}

static void set_paths(uint32_t one, const struct rwk_sim_path *path)
{
	for (uint32_t other = 1; other <= NODES; other++)
		if (other != one) {
			rwk_sim_set_path(sim_udp, one, other, path);
			rwk_sim_set_path(sim_udp, other, one, path);
		}
}

/* The faults of a round; `one` suffers more than the others. Returns until when. */
static rwk_time trouble(uint32_t one)
{
	struct rwk_sim_path all = {.delay = 1000 + pick(5000), .jitter = pick(1000), .reorder_by = 20000}, path;
	rwk_time now = rwk_sim_now(sim_udp);

	all.drop = pick(3) ? pick(30000) : 0;
	all.duplicate = pick(3) ? pick(20000) : 0;
	all.reorder = pick(3) ? pick(50000) : 0;
	all.corrupt = pick(3) ? pick(10000) : 0;
	rwk_sim_set_paths(sim_udp, &all);
	path = all;
	may_fail = false;
	switch (pick(8)) {
	case 0:
		path.drop = 1000000;
		seen.silences++;
		break;
	case 1:
		path.delay = 100000 + pick(5 * MS);
		seen.delays++;
		break;
	default:
		return now;
	}
	may_fail = true;
	set_paths(one, &path);
	return now + pick(6 * MS);
}

/* ---- the connections ---- */

static uint32_t psn_of(const struct half *h)
{
	return (name_of(h) * 7919u + h->epoch * 104729u) * 2654435761u & 0xffffff;
}

static void connect_half(struct half *h)
{
	struct rwk_qp_attr attr = {.peer_qpn = rwk_qp_number(h->peer->qp),
		.send_psn = psn_of(h),
		.receive_psn = psn_of(h->peer),
		.pmtu = 256u << (name_of(h) < name_of(h->peer) ? name_of(h) : name_of(h->peer)) % 3,
		.access = ACCESS,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 3,
		.timeout_ns = 200000,
		.unordered = h->type != RWK_QP_UC && h->epoch % 2};

	memcpy(attr.peer_ip, h->peer->node->end.ip, 16);
	check(!rwk_qp_modify(h->qp, RWK_QPS_INIT, NULL));
	check(!rwk_qp_modify(h->qp, RWK_QPS_RTR, &attr));
	check(!rwk_qp_modify(h->qp, RWK_QPS_RTS, NULL));
}

/* What it counted in all its lives. */
static void count(const struct half *h)
{
	struct rwk_qp_info i;

	rwk_qp_query(h->qp, &i);
	check(!i.bad_access && !i.bad_length);
	seen.sent_again += i.sent_again;
	seen.duplicates += i.duplicates;
	seen.early += i.early;
	seen.not_ready += i.rnr_out;
}

/* What the peer has of it: all or nothing of each, none twice. */
static void look_at_rest(struct half *h, uint64_t word)
{
	check(h->peer->memory->word >= word && h->peer->memory->word <= h->word);
	memcpy(h->written, h->peer->memory->area, AREA);
	h->word = h->peer->memory->word;
	check(h->peer->next <= h->sends);
}

static void begin_anew(struct half *h)
{
	h->failed = false;
	h->epoch++;
	h->sends = h->next = h->posted = h->ended = h->left = 0;
}

/* The least that an atomic's word can be: of those that failed none may have been done. */
static uint64_t least_word(const struct half *h)
{
	uint64_t word = h->word;

	for (uint32_t n = h->posted > OPS ? h->posted - OPS : 0; n < h->posted; n++)
		word -= h->ops[n % OPS].type == RWK_REQUEST_FETCH_ADD;
	return word;
}

static void restart(struct half *h)
{
	uint64_t word = least_word(h), peers = least_word(h->peer);

	may_fail = true;
	check(!rwk_qp_modify(h->qp, RWK_QPS_ERR, NULL) && !rwk_qp_modify(h->peer->qp, RWK_QPS_ERR, NULL));
	pass(10 * MS); /* whatever is still on its way comes in the meantime, to nobody */
	pass(STEP);
	look_at_rest(h, word);
	look_at_rest(h->peer, peers);
	check(!rwk_qp_modify(h->qp, RWK_QPS_RESET, NULL) && !rwk_qp_modify(h->peer->qp, RWK_QPS_RESET, NULL));
	begin_anew(h);
	begin_anew(h->peer);
	connect_half(h);
	connect_half(h->peer);
	seen.restarts++;
}

/* ---- a round ---- */

static void talk(void)
{
	uint32_t one = 1 + pick(NODES);
	rwk_time until = trouble(one);
	unsigned lazy = pick(3) ? 4 : 400; /* at posting receives */

	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < HALVES; k++)
			nodes[i].half[k].left = pick(60);
	for (unsigned turn = 0; !is_over(); turn++) {
		check(turn < TURNS);
		for (unsigned i = 0; i < NODES; i++) {
			post_receives(&nodes[i], lazy);
			for (unsigned k = 0; k < HALVES; k++) {
				struct half *h = &nodes[i].half[k];

				if (h->left && !h->failed && h->posted - h->ended < OPS && pick(2)) {
					post_one(h);
					h->left--;
				}
			}
		}
		pass(STEP);
		if (until && rwk_sim_now(sim_udp) >= until) { /* it is as the others again */
			struct rwk_sim_path path = {.delay = 2000};

			set_paths(one, &path);
			until = 0;
		}
	}
}

/* Nothing is done twice, though what is late comes; then it is quiet. */
static void settle(void)
{
	struct rwk_sim_path path = {.delay = 2000};

	rwk_sim_set_paths(sim_udp, &path);
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < HALVES; k++)
			nodes[i].half[k].left = 0;
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < NODES; k++)
			post_receives(&nodes[k], 1);
		pass(MS);
	}
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < HALVES; k++)
			if (nodes[i].half[k].failed || !pick(AGAIN))
				restart(&nodes[i].half[k]);
	may_fail = false;
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < HALVES; k++) {
			const struct half *h = &nodes[i].half[k];

			check(h->type == RWK_QP_UC || h->peer->next == h->sends);
			check(!memcmp(h->peer->memory->area, h->written, AREA) && h->peer->memory->word == h->word);
		}
}

/* ---- from beginning to end ---- */

static void open_half(struct node *n, unsigned k)
{
	static const enum rwk_qp_type types[SERVICES] = {RWK_QP_RC, RWK_QP_UC, RWK_QP_SRC};
	struct half *h = &n->half[k];
	unsigned me = (unsigned)(n - nodes), other = (me + 1 + k / SERVICES) % NODES;
	struct rwk_qp_create_attr create = {.type = types[k % SERVICES], .send_cq = n->sent, .send_max = OPS};

	h->node = n;
	h->type = create.type;
	/* Counted from the other's side, this node is as far behind as that one is ahead. */
	h->peer = &nodes[other].half[(NODES - 2 - k / SERVICES) * SERVICES + k % SERVICES];
	h->memory = calloc(1, sizeof(*h->memory));
	assert_non_null(h->memory);
	if (h->type == RWK_QP_SRC) {
		create.domain = n->end.domain;
	} else {
		create.receive_cq = n->received;
		create.receive_max = PLACES;
	}
	assert_int_equal(
		rwk_mr_register(n->end.pd, h->memory, sizeof(*h->memory), ACCESS | RWK_ACCESS_LOCAL_WRITE, &h->mr), 0);
	assert_int_equal(rwk_qp_create(n->end.pd, &create, &h->qp), 0);
}

static void open_node(struct node *n, uint8_t number)
{
	struct rwk_srq_attr srq = {.receive_max = HALVES * PLACES};

	memset(n, 0, sizeof(*n));
	ends_open_adapter(&n->end, number);
	assert_int_equal(rwk_pd_create(n->end.adapter, &n->end.pd), 0);
	assert_int_equal(rwk_cq_create(n->end.adapter, HALVES * OPS, &n->sent), 0);
	assert_int_equal(rwk_cq_create(n->end.adapter, 2 * HALVES * PLACES, &n->received), 0);
	assert_int_equal(rwk_src_domain_create(n->end.adapter, &n->end.domain), 0);
	srq.domain = n->end.domain;
	srq.cq = n->received;
	assert_int_equal(rwk_srq_create(n->end.pd, &srq, &n->srq), 0);
	for (unsigned k = 0; k < HALVES; k++)
		open_half(n, k);
}

static void close_node(struct node *n)
{
	for (unsigned k = 0; k < HALVES; k++) {
		count(&n->half[k]);
		rwk_qp_destroy(n->half[k].qp);
		rwk_mr_deregister(n->half[k].mr);
		free(n->half[k].memory);
	}
	assert_int_equal(rwk_srq_destroy(n->srq), 0);
	assert_int_equal(rwk_src_domain_destroy(n->end.domain), 0);
	assert_int_equal(rwk_cq_destroy(n->sent), 0);
	assert_int_equal(rwk_cq_destroy(n->received), 0);
	assert_int_equal(rwk_pd_destroy(n->end.pd), 0);
	assert_int_equal(rwk_adapter_close(n->end.adapter), 0);
}

static void report(void)
{
	const struct rwk_sim_counts *c = &seen.net;

	print_message("%.0f s in %llu rounds; requests: %llu RC, %llu UC, %llu SRC, of which %llu Reads, %llu atomics; "
		      "%llu bytes\n",
		(double)rwk_sim_now(sim_udp) / 1e9, (unsigned long long)seen.rounds, (unsigned long long)seen.posted[0],
		(unsigned long long)seen.posted[1], (unsigned long long)seen.posted[2], (unsigned long long)seen.reads,
		(unsigned long long)seen.atomics, (unsigned long long)seen.bytes);
	print_message("Sends that came: %llu of %llu RC, %llu of %llu UC, %llu of %llu SRC\n",
		(unsigned long long)seen.taken[0], (unsigned long long)seen.sends[0], (unsigned long long)seen.taken[1],
		(unsigned long long)seen.sends[1], (unsigned long long)seen.taken[2],
		(unsigned long long)seen.sends[2]);
	print_message("packets: %llu sent, %llu lost, %llu twice, %llu damaged, %llu overtaken; silences %llu, delays "
		      "%llu\n",
		(unsigned long long)c->sent, (unsigned long long)c->dropped, (unsigned long long)c->duplicated,
		(unsigned long long)c->corrupted, (unsigned long long)c->reordered, (unsigned long long)seen.silences,
		(unsigned long long)seen.delays);
	print_message("sent again %llu, duplicates %llu, early %llu, not ready %llu, begun anew %llu\n",
		(unsigned long long)seen.sent_again, (unsigned long long)seen.duplicates,
		(unsigned long long)seen.early, (unsigned long long)seen.not_ready, (unsigned long long)seen.restarts);
}

static rwk_time how_long = 600 * S;

static void a_day(void **state)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;
	const char *one = getenv("RWK_TEST_SEED");

	(void)state;
	seed_now = random_state = attr.seed = one ? strtoull(one, NULL, 0) : 1;
	attr.mtu = 2000;
	assert_int_equal(rwk_sim_open(&attr, &sim_udp), 0);
	for (unsigned i = 0; i < NODES; i++)
		open_node(&nodes[i], (uint8_t)(1 + i));
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < HALVES; k++)
			connect_half(&nodes[i].half[k]);
	while (rwk_sim_now(sim_udp) < how_long) {
		talk();
		settle();
		pass((pick(QUIET * 1000) + 1) * MS);
		seen.rounds++;
	}
	seen.net = *rwk_sim_counts(sim_udp);
	for (unsigned i = 0; i < NODES; i++)
		close_node(&nodes[i]);
	report();
	rwk_sim_close(sim_udp);
	assert_true(seen.sent_again && seen.duplicates && seen.early && seen.not_ready && seen.restarts && seen.missed);
	assert_true(seen.net.dropped && seen.net.duplicated && seen.net.corrupted && seen.net.reordered);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_day)};

	if (argc > 1 && !strcmp(argv[1], "full"))
		how_long = 86400 * S;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
