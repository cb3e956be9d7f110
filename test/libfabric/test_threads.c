/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads: several on one endpoint of an FI_THREAD_SAFE domain, as MPI_THREAD_MULTIPLE has them, and several with an
 * FI_THREAD_DOMAIN domain each, which share what a process has once. Under ThreadSanitizer (contrib/check threads) it
 * is a test of the locks.
 */
#include "fi_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 3
#define ROUNDS  60
#define OPENED  15
#define LONGEST 200000

static const size_t lengths[] = {0, 8, 40, 300, 5000, 70000, LONGEST};

/* Two endpoints, and all threads send from the one to the other. */
struct shared {
	struct t_domain d;
	struct t_end a, b;
	fi_addr_t to_b;
	atomic_bool failed;
};

struct worker {
	struct shared *shared;
	uint64_t number;
	bool sleeps; /* in fi_cq_sread */
	char *out, *in;
};

/* Takes what is there, whoever started it: the context is the starter's flag. */
static void take(struct worker *w, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[2];
	ssize_t n = w->sleeps ? fi_cq_sread(cq, e, 2, NULL, 1) : fi_cq_read(cq, e, 2);

	if (n < 0 && n != -FI_EAGAIN)
		atomic_store(&w->shared->failed, true);
	for (ssize_t i = 0; i < n; i++)
		atomic_fetch_add((atomic_uint *)e[i].op_context, 1);
}

static void take_both(struct worker *w, int64_t end)
{
	take(w, w->shared->a.cq);
	take(w, w->shared->b.cq);
	if (t_now() > end)
		atomic_store(&w->shared->failed, true);
}

static bool is_filled(const char *buf, size_t len, unsigned char with)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)buf[i] != with)
			return false;
	}
	return true;
}

/* A message of one's own tag; true if it has come. */
static bool one_message(struct worker *w, size_t len, unsigned round, int64_t end)
{
	struct shared *s = w->shared;
	atomic_uint sent = 0, received = 0;
	ssize_t rc;

	memset(w->out, (int)(round + w->number), len);
	rc = fi_trecv(s->b.ep, w->in, len, NULL, FI_ADDR_UNSPEC, w->number, 0, &received);
	if (rc)
		return false;
	while ((rc = fi_tsend(s->a.ep, w->out, len, NULL, s->to_b, w->number, &sent)) == -FI_EAGAIN &&
		!atomic_load(&s->failed))
		take_both(w, end);
	while (!rc && !(atomic_load(&sent) && atomic_load(&received)) && !atomic_load(&s->failed))
		take_both(w, end);
	return !rc && atomic_load(&sent) == 1 && atomic_load(&received) == 1 &&
	       is_filled(w->in, len, (unsigned char)(round + w->number));
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int64_t end = t_now() + T_PATIENCE;

	for (unsigned round = 0; round < ROUNDS && !atomic_load(&w->shared->failed); round++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			if (!one_message(w, lengths[i], round, end))
				atomic_store(&w->shared->failed, true);
		}
	}
	return NULL;
}

/* One endpoint, its queue and its partner's, used by all threads at once; some of them sleep in between. */
static void shared_endpoint(void **state)
{
	struct t_options o = {.wait = FI_WAIT_FD};
	struct worker w[THREADS];
	struct shared s = {0};
	pthread_t id[THREADS];

	(void)state;
	t_domain_open(&s.d, 0, FI_THREAD_SAFE);
	t_end_open(&s.a, &s.d, &o);
	t_end_open(&s.b, &s.d, &o);
	s.to_b = t_insert(&s.a, s.b.name);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.shared = &s, .number = i, .sleeps = i == 0};
		w[i].out = malloc(LONGEST);
		w[i].in = malloc(LONGEST);
		assert_true(w[i].out && w[i].in);
		assert_int_equal(pthread_create(&id[i], NULL, work, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(id[i], NULL), 0);
		free(w[i].out);
		free(w[i].in);
	}
	assert_false(atomic_load(&s.failed));
	t_end_close(&s.a);
	t_end_close(&s.b);
	t_domain_close(&s.d);
}

/* The cmocka assertions are the main thread's alone: these say false. */
struct own {
	unsigned done;
	struct fi_info *info;
};

static bool talk_to_oneself(struct fid_ep *ep, struct fid_cq *cq, struct fid_av *av)
{
	unsigned char name[64];
	size_t len = sizeof(name);
	struct fi_cq_tagged_entry e;
	uint64_t out = 7, in = 0;
	fi_addr_t me;

	return !fi_getname(&ep->fid, name, &len) && fi_av_insert(av, name, 1, &me, 0, NULL) == 1 &&
	       !fi_trecv(ep, &in, sizeof(in), NULL, me, 1, 0, &in) && !fi_tinject(ep, &out, sizeof(out), me, 1) &&
	       fi_cq_read(cq, &e, 1) == 1 && in == out;
}

static bool one_life(struct fi_info *info)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	bool good;

	if (fi_fabric(info->fabric_attr, &fabric, NULL) || fi_domain(fabric, info, &domain, NULL) ||
		fi_cq_open(domain, &cq_attr, &cq, NULL) || fi_av_open(domain, &av_attr, &av, NULL) ||
		fi_endpoint(domain, info, &ep, NULL) || fi_ep_bind(ep, &av->fid, 0) ||
		fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) || fi_enable(ep))
		return false;
	good = talk_to_oneself(ep, cq, av);
	return !fi_close(&ep->fid) && !fi_close(&av->fid) && !fi_close(&cq->fid) && !fi_close(&domain->fid) &&
	       !fi_close(&fabric->fid) && good;
}

static void *live(void *arg)
{
	struct own *o = arg;

	while (o->done < OPENED && one_life(o->info))
		o->done++;
	return NULL;
}

/* Fabrics, domains and endpoints of one thread each come and go at the same time. */
static void domains_apart(void **state)
{
	struct own o[THREADS] = {0};
	pthread_t id[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		struct fi_info *hints = t_hints();

		hints->domain_attr->threading = FI_THREAD_DOMAIN;
		assert_int_equal(t_getinfo(hints, &o[i].info), 0);
		fi_freeinfo(hints);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&id[i], NULL, live, &o[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(id[i], NULL), 0);
		assert_int_equal(o[i].done, OPENED);
		fi_freeinfo(o[i].info);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_apart), /* first, while what a process has once has not been made */
		cmocka_unit_test(shared_endpoint),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
