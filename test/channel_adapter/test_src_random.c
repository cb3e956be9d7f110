/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC over a network that loses, repeats, reorders, delays and damages packets: random operations both ways, over two
 * connections that share the jobs at each end, against a model of what SRC promises (S1-4 to S1-8): each operation is
 * done once, in the order of its connection, for the job that it names and for nobody else.
 *
 *     near: jobs, qp 0 ----- SRC ----- qp 0 : far
 *                 qp 1 ----- SRC ----- qp 1
 *
 * In each job's memory each connection has a part of its own, with bytes that it writes and reads and words for
 * atomics; behind them are the places of receives. The model is applied when an operation is posted: so what is done
 * twice, or out of order, or elsewhere, shows. Receives are posted now and then, so that senders have to wait for them.
 *
 * A failure prints its seed: RWK_TEST_SEED=<seed> runs it alone.
 *
 * Links: sim.
 */
#include "channel_adapter/ends.h"
#include "channel_adapter/sim_udp.h"
#include "seeded.h"

#include <assert.h>

#define QPS     2u
#define JOBS    3u
#define WRITTEN 1024u /* bytes of a connection's part that are written and read */
#define WORDS   8u    /* for atomics, behind them */
#define PART    (WRITTEN + 8 * WORDS)
#define PLACES  4u /* of receives */
#define LONGEST 4096u
#define BEHIND  (QPS * PART)
#define OPS     24u /* under way on a connection */
#define WAITING (2 * OPS + 2)
#define SEEDS   12u
#define EACH    400u  /* operations of a connection and direction */
#define STEP    2000u /* ns */

static_assert(BEHIND + PLACES * LONGEST <= JOB_MEMORY, "what fits where");

/* A message that a job has to get. */
struct message {
	uint32_t number;
	size_t len;
	bool written; /* a Write with immediate: only its immediate comes */
};

struct op {
	enum rwk_request_type type;
	size_t len;
	uint64_t before;         /* an atomic's value */
	uint8_t expect[WRITTEN]; /* a Read's bytes */
};

/* One direction of a connection, as the requester sees it. */
struct way {
	struct rwk_qp *qp;
	struct op ops[OPS];
	uint8_t bytes[OPS][LONGEST]; /* of each op: source or target */
	struct rwk_mr *mr;
	uint32_t posted, ended;
	/* At the peer's jobs. */
	uint8_t written[JOBS][WRITTEN];
	uint64_t words[JOBS][WORDS];
	struct message waiting[JOBS][WAITING];
	unsigned first[JOBS], count[JOBS];
};

struct side {
	struct end *e;
	struct side *peer;
	struct way way[QPS];
	struct job jobs[JOBS];
	bool busy[JOBS][PLACES]; /* a receive is posted there */
};

static struct side sides[2];
static uint8_t byte_of(uint32_t number, unsigned qp, size_t i)
{
	return (uint8_t)(number * 131 + qp * 67 + i * 7 + i / 253);
}

/* ---- requests ---- */

static void expect_message(struct way *w, unsigned job, size_t len, bool written)
{
	check(w->count[job] < WAITING);
	w->waiting[job][(w->first[job] + w->count[job]++) % WAITING] = (struct message){w->posted, len, written};
}

/* Applies it to the model, and completes the request. */
static void plan(struct way *w, unsigned q, unsigned job, struct op *o, struct rwk_request *r)
{
	uint8_t *bytes = w->bytes[w->posted % OPS];
	uint64_t *word = &w->words[job][pick(WORDS)], base = r->remote;
	size_t at = pick(WRITTEN - o->len % WRITTEN);

	for (size_t i = 0; i < o->len; i++)
		bytes[i] = byte_of(w->posted, q, i);
	switch (o->type) {
	case RWK_REQUEST_SEND:
		expect_message(w, job, o->len, false);
		break;
	case RWK_REQUEST_WRITE:
		r->remote += at;
		r->flags |= RWK_REQUEST_FENCE;
		memcpy(w->written[job] + at, bytes, o->len);
		if (r->flags & RWK_REQUEST_IMM)
			expect_message(w, job, o->len, true);
		break;
	case RWK_REQUEST_READ:
		r->remote += at;
		memcpy(o->expect, w->written[job] + at, o->len);
		break;
	default:
		r->remote = base + WRITTEN + (size_t)((char *)word - (char *)w->words[job]);
		o->before = *word;
		r->compare = pick(2) ? *word : *word + 1;
		r->swap_add = pick(1u << 30);
		if (o->type == RWK_REQUEST_FETCH_ADD)
			*word += r->swap_add;
		else if (r->compare == *word)
			*word = r->swap_add;
	}
}

static void post_one(struct side *s, unsigned q)
{
	struct way *w = &s->way[q];
	struct op *o = &w->ops[w->posted % OPS];
	unsigned job = pick(JOBS);
	struct job *j = &s->peer->jobs[job];
	struct rwk_sge sge = {w->bytes[w->posted % OPS], 0, rwk_mr_key(w->mr)};
	struct rwk_request r = {.id = w->posted,
		.sge = &sge,
		.sge_count = 1,
		.imm = w->posted,
		.remote = (uintptr_t)j->in + q * PART,
		.key = rwk_mr_key(j->mr),
		.srqn = j->number};

	o->type = r.type = pick(RWK_REQUEST_FETCH_ADD + 1);
	o->len = r.type == RWK_REQUEST_SEND   ? pick(pick(3) ? 64 : LONGEST + 1)
		 : r.type <= RWK_REQUEST_READ ? pick(WRITTEN)
					      : 8;
	if (r.type <= RWK_REQUEST_WRITE && pick(2))
		r.flags = RWK_REQUEST_IMM;
	sge.length = o->len;
	plan(w, q, job, o, &r);
	check(!rwk_qp_post(w->qp, &r));
	w->posted++;
}

static void request_ended(struct side *s, const struct rwk_wc *wc)
{
	struct way *w = &s->way[wc->qpn == rwk_qp_number(s->way[1].qp)];
	struct op *o = &w->ops[w->ended % OPS];
	const uint8_t *bytes = w->bytes[w->ended % OPS];

	check(!wc->status && wc->id == w->ended && wc->type == (uint8_t)o->type);
	if (o->type == RWK_REQUEST_READ)
		check(!memcmp(bytes, o->expect, o->len));
	if (o->type >= RWK_REQUEST_COMPARE_SWAP)
		check(!memcmp(bytes, &o->before, 8));
	w->ended++;
}

/* ---- receives ---- */

static void post_receives(struct side *s, unsigned chance)
{
	for (unsigned k = 0; k < JOBS; k++) {
		for (unsigned p = 0; p < PLACES; p++) {
			struct job *j = &s->jobs[k];
			struct rwk_sge sge = {j->in + BEHIND + p * LONGEST, LONGEST, rwk_mr_key(j->mr)};

			if (s->busy[k][p] || pick(chance))
				continue;
			check(!rwk_srq_post_receive(j->srq, &(struct rwk_receive){p, &sge, 1}));
			s->busy[k][p] = true;
		}
	}
}

/* S1-7: it is the next message for that job of the connection through which it came. */
static void received(struct side *s, unsigned job, const struct rwk_wc *wc)
{
	unsigned q = wc->qpn == rwk_qp_number(s->way[1].qp);
	struct way *w = &s->peer->way[q];
	const struct message *m = &w->waiting[job][w->first[job] % WAITING];
	const uint8_t *bytes = s->jobs[job].in + BEHIND + wc->id * LONGEST;

	check(!wc->status && wc->srqn == s->jobs[job].number && w->count[job] && s->busy[job][wc->id]);
	check(wc->length == m->len && (wc->type == RWK_WC_RECEIVE_WRITE) == m->written);
	check(!wc->has_imm || wc->imm == m->number);
	for (size_t i = 0; !m->written && i < m->len; i++)
		check(bytes[i] == byte_of(m->number, q, i));
	w->first[job]++;
	w->count[job]--;
	s->busy[job][wc->id] = false;
}

/* ---- the run ---- */

static void connect_way(struct side *s, unsigned q)
{
	struct rwk_qp_attr attr = {.peer_qpn = rwk_qp_number(s->peer->way[q].qp),
		.pmtu = 256u << pick(3),
		.access = ACCESS,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 3,
		.timeout_ns = 200000};

	memcpy(attr.peer_ip, s->peer->e->ip, 16);
	check(!rwk_qp_modify(s->way[q].qp, RWK_QPS_INIT, NULL));
	check(!rwk_qp_modify(s->way[q].qp, RWK_QPS_RTR, &attr));
	check(!rwk_qp_modify(s->way[q].qp, RWK_QPS_RTS, NULL));
}

static void open_side(struct side *s, struct end *e, struct side *peer)
{
	struct rwk_qp_create_attr create = {.type = RWK_QP_SRC, .send_max = OPS};

	memset(s, 0, sizeof(*s));
	s->e = e;
	s->peer = peer;
	ends_open_one(e, e == &near ? 1 : 2, RWK_QP_SRC);
	create.send_cq = e->send_cq;
	create.domain = e->domain;
	s->way[0].qp = e->qp;
	check(!rwk_qp_create(e->pd, &create, &s->way[1].qp));
	for (unsigned q = 0; q < QPS; q++)
		check(!rwk_mr_register(
			e->pd, s->way[q].bytes, sizeof(s->way[q].bytes), RWK_ACCESS_LOCAL_WRITE, &s->way[q].mr));
	for (unsigned k = 0; k < JOBS; k++) {
		ends_open_job(&s->jobs[k], e, e->domain, 0);
		memset(s->jobs[k].in, 0, JOB_MEMORY);
	}
}

static void close_side(struct side *s)
{
	rwk_qp_destroy(s->way[1].qp);
	for (unsigned q = 0; q < QPS; q++)
		rwk_mr_deregister(s->way[q].mr);
	for (unsigned k = 0; k < JOBS; k++)
		ends_close_job(&s->jobs[k]);
	ends_close_one(s->e);
}

/* What has come and gone at one side. */
static void poll_side(struct side *s)
{
	struct rwk_wc wc;

	while (rwk_cq_poll(s->e->send_cq, &wc, 1))
		request_ended(s, &wc);
	for (unsigned k = 0; k < JOBS; k++)
		while (rwk_cq_poll(s->jobs[k].cq, &wc, 1))
			received(s, k, &wc);
}

static bool is_done(const struct side *s)
{
	for (unsigned q = 0; q < QPS; q++) {
		if (s->way[q].ended < EACH)
			return false;
		for (unsigned k = 0; k < JOBS; k++)
			if (s->way[q].count[k])
				return false;
	}
	return true;
}

static void run_all(void)
{
	for (unsigned steps = 0; !is_done(&sides[0]) || !is_done(&sides[1]); steps++) {
		check(steps < 1000000);
		for (unsigned i = 0; i < 2; i++) {
			struct side *s = &sides[i];

			post_receives(s, 40);
			for (unsigned q = 0; q < QPS; q++)
				if (s->way[q].posted < EACH && s->way[q].posted - s->way[q].ended < OPS && pick(2))
					post_one(s, q);
			poll_side(s);
		}
		rwk_sim_run_until(sim_udp, rwk_sim_now(sim_udp) + STEP);
	}
}

/* S1-8: every part of every job's memory is as the model has it. */
static void compare(struct side *s)
{
	for (unsigned q = 0; q < QPS; q++) {
		for (unsigned k = 0; k < JOBS; k++) {
			const uint8_t *part = s->peer->jobs[k].in + q * PART;

			check(!memcmp(part, s->way[q].written[k], WRITTEN));
			check(!memcmp(part + WRITTEN, s->way[q].words[k], 8 * WORDS));
		}
	}
}

/* The network was what it should be. */
static void note_trouble(const struct side *s, struct rwk_qp_info *sum)
{
	for (unsigned q = 0; q < QPS; q++) {
		struct rwk_qp_info i;

		rwk_qp_query(s->way[q].qp, &i);
		check(i.state == RWK_QPS_RTS && !i.bad_access && !i.bad_length);
		sum->sent_again += i.sent_again;
		sum->duplicates += i.duplicates;
		sum->early += i.early;
		sum->rnr_out += i.rnr_out;
	}
}

static void run(uint64_t seed, struct rwk_qp_info *sum)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	begin_with(seed);
	attr.seed = seed;
	attr.mtu = 2000;
	attr.path = (struct rwk_sim_path){.delay = 2000, .jitter = 500, .reorder_by = 20000};
	attr.path.drop = attr.path.duplicate = attr.path.reorder = 20000;
	attr.path.corrupt = 5000;
	check(!rwk_sim_open(&attr, &sim_udp));
	open_side(&sides[0], &near, &sides[1]);
	open_side(&sides[1], &far, &sides[0]);
	for (unsigned q = 0; q < QPS; q++) {
		uint64_t same = random_state; /* for the PMTU */

		connect_way(&sides[0], q);
		random_state = same;
		connect_way(&sides[1], q);
	}
	run_all();
	for (unsigned i = 0; i < 2; i++) {
		compare(&sides[i]);
		note_trouble(&sides[i], sum);
	}
	close_side(&sides[0]);
	close_side(&sides[1]);
	rwk_sim_close(sim_udp);
}

/* S1-4, S1-5, S1-7, S1-8 */
static void everything_once(void **state)
{
	const char *one = getenv("RWK_TEST_SEED");
	struct rwk_qp_info sum = {0};

	(void)state;
	if (one) {
		run(strtoull(one, NULL, 0), &sum);
		return;
	}
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run(seed, &sum);
	print_message("sent again %llu, duplicates %llu, early %llu, not ready %llu\n",
		(unsigned long long)sum.sent_again, (unsigned long long)sum.duplicates, (unsigned long long)sum.early,
		(unsigned long long)sum.rnr_out);
	assert_true(sum.sent_again > 1000 && sum.duplicates > 1000 && sum.early > 100 && sum.rnr_out > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
