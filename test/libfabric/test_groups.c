/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads with endpoints of their own in one domain of FI_THREAD_SAFE: what they share is changed meanwhile, and so is
 * who shares a lock with whom (bindings/libfabric/group.h). Each sends to the next one's endpoint, and writes to its
 * memory and reads it back. Under ThreadSanitizer (contrib/check threads) it is a test of the locks.
 */
#include "fi_test.h"

#include <pthread.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>

#define LANES   4
#define ROUNDS  40
#define LONGEST 200000
#define MANY    70 /* addresses: more than a fresh vector has room for */

static const size_t lengths[] = {8, 300, 5000, 70000, LONGEST};

struct ring;

struct lane {
	struct ring *ring;
	unsigned number;
	struct t_end from, to; /* with one queue */
	fi_addr_t next;        /* whose `to` it sends to */
	char *out, *in, *back, *exposed;
	struct fid_mr *mr; /* of `exposed` */
	atomic_uint flags[4];
	pthread_t thread;
};

struct ring {
	struct t_domain d;
	struct lane lane[LANES];
	atomic_uint running;
	atomic_bool failed;
};

static bool give_up(struct lane *l, const char *what, ssize_t rc)
{
	if (!atomic_exchange(&l->ring->failed, true))
		print_message("lane %u: %s: %s\n", l->number, what, fi_strerror((int)-rc));
	return false;
}

/* An operation's context is a flag that its completion sets. */
static bool take(struct lane *l, int64_t end)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t n = fi_cq_read(l->from.cq, e, 4);

	if (n < 0 && n != -FI_EAGAIN)
		return give_up(l, "fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++)
		atomic_fetch_add((atomic_uint *)e[i].op_context, 1);
	if (t_now() > end)
		return give_up(l, "nothing comes any more", -FI_ETIMEDOUT);
	return !atomic_load(&l->ring->failed);
}

static bool wait_for(struct lane *l, const atomic_uint *flag, int64_t end)
{
	while (!atomic_load(flag)) {
		if (!take(l, end))
			return false;
	}
	return atomic_load(flag) == 1;
}

#define TRY(l, call, end)                                                                                              \
	({                                                                                                             \
		ssize_t rc_;                                                                                           \
		while ((rc_ = (call)) == -FI_EAGAIN && take(l, end))                                                   \
			;                                                                                              \
		rc_ ? give_up(l, #call, rc_) : true;                                                                   \
	})

static bool round_trip(struct lane *l, size_t len, unsigned round, int64_t end)
{
	struct lane *next = &l->ring->lane[(l->number + 1) % LANES];
	struct lane *before = &l->ring->lane[(l->number + LANES - 1) % LANES];
	uint64_t key = fi_mr_key(next->mr);
	atomic_uint *f = l->flags;

	for (size_t i = 0; i < 4; i++)
		atomic_store(&f[i], 0);
	t_fill(l->out, len, round * LANES + l->number);
	if (!TRY(l, fi_trecv(l->to.ep, l->in, len, NULL, FI_ADDR_UNSPEC, round, 0, &f[0]), end) ||
		!TRY(l, fi_tsend(l->from.ep, l->out, len, NULL, l->next, round, &f[1]), end) ||
		!TRY(l, fi_write(l->from.ep, l->out, len, NULL, l->next, 0, key, &f[2]), end) ||
		!wait_for(l, &f[2], end) ||
		!TRY(l, fi_read(l->from.ep, l->back, len, NULL, l->next, 0, key, &f[3]), end) ||
		!wait_for(l, &f[0], end) || !wait_for(l, &f[1], end) || !wait_for(l, &f[3], end))
		return false;
	if (memcmp(l->back, l->out, len))
		return give_up(l, "what was written is not what is read", -FI_EIO);
	t_fill(l->back, len, round * LANES + before->number);
	return !memcmp(l->in, l->back, len) || give_up(l, "what was sent is not what is received", -FI_EIO);
}

static void *work(void *arg)
{
	struct lane *l = arg;
	int64_t end = t_now() + T_PATIENCE;
	unsigned round = 0;

	while (round < ROUNDS && round_trip(l, lengths[round % (sizeof(lengths) / sizeof(*lengths))], round, end))
		round++;
	atomic_fetch_sub(&l->ring->running, 1);
	/* The next one may still read what is here. */
	while (atomic_load(&l->ring->running) && take(l, end))
		;
	return NULL;
}

static void lane_open(struct ring *r, unsigned number)
{
	struct lane *l = &r->lane[number];
	struct t_options o = {.cq = NULL};

	*l = (struct lane){.ring = r, .number = number};
	t_end_open(&l->from, &r->d, &o);
	o.cq = l->from.cq;
	t_end_open(&l->to, &r->d, &o);
	l->out = malloc(LONGEST);
	l->in = malloc(LONGEST);
	l->back = malloc(LONGEST);
	l->exposed = malloc(LONGEST);
	assert_true(l->out && l->in && l->back && l->exposed);
	assert_int_equal(fi_mr_reg(r->d.domain, l->exposed, LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 100 + number,
				 0, &l->mr, NULL),
		0);
}

static void lane_close(struct lane *l)
{
	assert_int_equal(fi_close(&l->mr->fid), 0);
	t_end_close(&l->to);
	t_end_close(&l->from);
	free(l->out);
	free(l->in);
	free(l->back);
	free(l->exposed);
}

static void ring_open(struct ring *r, enum fi_progress progress)
{
	struct fi_info *hints = t_hints();

	hints->caps = FI_TAGGED | FI_RMA;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = progress;
	t_domain_open_with(&r->d, hints);
	atomic_init(&r->failed, false);
	atomic_init(&r->running, LANES);
	for (unsigned i = 0; i < LANES; i++)
		lane_open(r, i);
	for (unsigned i = 0; i < LANES; i++)
		r->lane[i].next = t_insert(&r->lane[i].from, r->lane[(i + 1) % LANES].to.name);
}

static void ring_close(struct ring *r)
{
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(pthread_join(r->lane[i].thread, NULL), 0);
	assert_false(atomic_load(&r->failed));
	for (unsigned i = 0; i < LANES; i++)
		lane_close(&r->lane[i]);
	t_domain_close(&r->d);
}

/* Regions come and go, which all engines look up. */
static void change_regions(struct ring *r, unsigned turn)
{
	struct fid_mr *mr;
	char here[64] = {0};

	assert_int_equal(fi_mr_reg(r->d.domain, here, sizeof(here), FI_REMOTE_READ, 0, 1000 + turn, 0, &mr, NULL), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* Addresses come to a vector that is in use, which grows, and go. */
static void change_addresses(struct ring *r, unsigned turn)
{
	struct fid_av *av = r->lane[turn % LANES].from.av;
	unsigned char name[64];
	fi_addr_t number[MANY];
	size_t len = sizeof(name);

	assert_int_equal(fi_av_lookup(av, r->lane[turn % LANES].next, name, &len), 0);
	for (unsigned i = 0; i < MANY; i++) {
		name[len - 1] = (unsigned char)(i + 1);
		assert_int_equal(fi_av_insert(av, name, 1, &number[i], 0, NULL), 1);
	}
	assert_int_equal(fi_av_remove(av, number, MANY, 0), 0);
}

/* Endpoints come and go, with a queue of their own. */
static void change_endpoints(struct ring *r, unsigned turn)
{
	struct t_options o = {.wait = FI_WAIT_FD};
	struct t_end e;

	(void)turn;
	t_end_open(&e, &r->d, &o);
	t_drive(e.cq);
	t_end_close(&e);
}

/* Two lanes become one group, by an endpoint that has a queue of each. */
static void merge(struct ring *r, unsigned turn)
{
	struct lane *a = &r->lane[turn % LANES], *b = &r->lane[(turn / LANES + 1) % LANES];
	struct fid_cntr *cntr;
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(r->d.domain, r->d.info, &ep, NULL), 0);
	assert_int_equal(fi_cntr_open(r->d.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &a->from.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &a->from.cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(ep, &b->from.cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	assert_int_equal(fi_cntr_read(cntr), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* All become one group, by a counter that is to drive all. */
static void unite(struct ring *r, unsigned turn)
{
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	char here[64] = {0};

	assert_int_equal(fi_cntr_open(r->d.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_mr_reg(r->d.domain, here, sizeof(here), FI_REMOTE_WRITE, 0, 2000 + turn, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	fi_cntr_read(cntr);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

typedef void change(struct ring *r, unsigned turn);

static void run(enum fi_progress progress, change *const *changes, size_t count)
{
	struct ring r;
	unsigned turn = 0;

	ring_open(&r, progress);
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(pthread_create(&r.lane[i].thread, NULL, work, &r.lane[i]), 0);
	do {
		for (size_t i = 0; i < count; i++)
			changes[i](&r, turn);
		turn++;
	} while (atomic_load(&r.running) && !atomic_load(&r.failed));
	ring_close(&r);
}

static change *const all[] = {change_regions, change_addresses, change_endpoints, merge, unite};

/* All else comes and goes while the lanes have nothing in common. */
static void lanes_apart(void **state)
{
	(void)state;
	run(FI_PROGRESS_MANUAL, all, 3);
}

/* Lanes come together while they are at work, two by two, and in the end all. */
static void lanes_merge(void **state)
{
	(void)state;
	run(FI_PROGRESS_MANUAL, all, 4);
	run(FI_PROGRESS_MANUAL, all, 5);
}

/* The same with the thread that makes progress by itself. */
static void lanes_with_a_progress_thread(void **state)
{
	(void)state;
	run(FI_PROGRESS_AUTO, all, 3);
	run(FI_PROGRESS_AUTO, all, 4);
	run(FI_PROGRESS_AUTO, all, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_apart),
		cmocka_unit_test(lanes_merge),
		cmocka_unit_test(lanes_with_a_progress_thread),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
