/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for whom in a domain of FI_THREAD_SAFE (bindings/libfabric/group.h). A thread hangs in a send, which holds
 * its endpoint's lock: the memory to be sent cannot be read until the test says so. Meanwhile another thread looks at a
 * queue or a counter: of another endpoint that ends, of what is bound to the same one it does not.
 */
#include "fi_test.h"

#include <pthread.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOMENT 30 /* ms, in which a look that is not held up should have ended */

static void *page; /* that cannot be read */
static size_t page_size;
static atomic_bool hangs, goes_on;

/* In the send. */
static void hang(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if ((char *)info->si_addr < (char *)page || (char *)info->si_addr >= (char *)page + page_size)
		_exit(1);
	atomic_store(&hangs, true);
	while (!atomic_load(&goes_on))
		usleep(100);
	mprotect(page, page_size, PROT_READ);
}

static struct t_domain d;
static struct t_end from, to, other; /* `other` has nothing in common with the two */
static fi_addr_t number;

static void *send_it(void *ep)
{
	return (void *)(intptr_t)fi_tinject(ep, page, 8, number, 1);
}

struct look {
	struct fid *at; /* a queue, a counter or the domain */
	atomic_bool done;
};

static void *look(void *arg)
{
	struct look *l = arg;
	struct fi_cq_tagged_entry e = {0};
	struct fid_mr *mr;

	if (l->at->fclass == FI_CLASS_CQ)
		fi_cq_read((struct fid_cq *)l->at, &e, 1);
	else if (l->at->fclass == FI_CLASS_CNTR)
		fi_cntr_read((struct fid_cntr *)l->at);
	else if (!fi_mr_reg(d.domain, &e, sizeof(e), FI_REMOTE_READ, 0, 77, 0, &mr, NULL))
		fi_close(&mr->fid);
	atomic_store(&l->done, true);
	return NULL;
}

/* Does a look at that wait for a send by `ep`, which hangs? */
static bool waits(struct fid *at, struct fid_ep *ep)
{
	struct look l = {.at = at};
	pthread_t sender, looker;
	int64_t end;
	void *rc;
	bool waited;

	assert_int_equal(mprotect(page, page_size, PROT_NONE), 0);
	atomic_store(&hangs, false);
	atomic_store(&goes_on, false);
	assert_int_equal(pthread_create(&sender, NULL, send_it, ep), 0);
	for (end = t_now() + T_PATIENCE; !atomic_load(&hangs) && t_now() < end;)
		usleep(100);
	assert_true(atomic_load(&hangs));
	assert_int_equal(pthread_create(&looker, NULL, look, &l), 0);
	for (end = t_now() + MOMENT; !atomic_load(&l.done) && t_now() < end;)
		usleep(100);
	waited = !atomic_load(&l.done);
	atomic_store(&goes_on, true);
	assert_int_equal(pthread_join(sender, &rc), 0);
	assert_int_equal((intptr_t)rc, 0);
	assert_int_equal(pthread_join(looker, NULL), 0);
	return waited;
}

/* A look that must not wait: it has all the time there is. */
static bool passes(struct fid *at, struct fid_ep *ep)
{
	for (int64_t end = t_now() + T_PATIENCE; t_now() < end;) {
		if (!waits(at, ep))
			return true;
	}
	return false;
}

/* The first message has made the way, so that the next is copied within the call. */
static void make_way(struct fid_ep *ep, struct fid_cq *cq)
{
	char in[8];

	t_post(fi_trecv(to.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 2, 0, NULL), to.cq, cq);
	t_post(fi_tinject(ep, "1234567", 8, number, 2), cq, to.cq);
	t_wait(to.cq, cq, NULL);
}

static void open_with(const struct t_options *o)
{
	struct sigaction act = {.sa_sigaction = hang, .sa_flags = SA_SIGINFO};
	struct t_options own = {.cq = NULL};
	struct fi_info *hints = t_hints();

	assert_int_equal(sigaction(SIGSEGV, &act, NULL), 0); /* in each test anew: cmocka has set its own */
	hints->caps = FI_TAGGED | FI_RMA;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	t_domain_open_with(&d, hints);
	t_end_open(&from, &d, o);
	t_end_open(&to, &d, &own);
	t_end_open(&other, &d, &own);
	number = t_insert(&from, to.name);
	make_way(from.ep, from.cq);
}

static void close_all(void)
{
	t_end_close(&from);
	t_end_close(&to);
	t_end_close(&other);
	t_domain_close(&d);
}

/* Endpoints with queues of their own do not wait for one another; an endpoint and its queue do. */
static void queues(void **state)
{
	struct t_options o = {.cq = NULL};
	struct fid_ep *between;

	(void)state;
	open_with(&o);
	assert_true(passes(&other.cq->fid, from.ep));
	assert_true(passes(&to.cq->fid, from.ep));
	assert_true(waits(&from.cq->fid, from.ep));
	/*
	 * Another endpoint has that queue for its sends, and for receives that of one that had nothing to
	 * do with it.
	 */
	assert_int_equal(fi_endpoint(d.domain, d.info, &between, NULL), 0);
	assert_int_equal(fi_ep_bind(between, &from.cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(between, &other.cq->fid, FI_RECV), 0);
	assert_true(waits(&other.cq->fid, from.ep));
	assert_true(passes(&to.cq->fid, from.ep));
	assert_int_equal(fi_close(&between->fid), 0);
	close_all();
}

/* A counter belongs to the endpoint that it is bound to, also if that is enabled. */
static void counters(void **state)
{
	struct t_options o = {.cq = NULL};
	struct fid_cntr *cntr;

	(void)state;
	open_with(&o);
	assert_int_equal(fi_cntr_open(d.domain, NULL, &cntr, NULL), 0);
	assert_true(passes(&cntr->fid, from.ep));
	assert_int_equal(fi_ep_bind(from.ep, &cntr->fid, FI_SEND), 0);
	assert_true(waits(&cntr->fid, from.ep));
	assert_true(passes(&other.cq->fid, from.ep));
	t_end_close(&from);
	assert_int_equal(fi_close(&cntr->fid), 0);
	t_end_close(&to);
	t_end_close(&other);
	t_domain_close(&d);
}

/* Endpoints of one shared receive context have one lock, and their queues with them. */
static void shared_contexts(void **state)
{
	struct t_options o = {.cq = NULL};
	struct t_end a, b;
	struct fid_ep *srx;

	(void)state;
	open_with(&o);
	assert_int_equal(fi_srx_context(d.domain, NULL, &srx, NULL), 0);
	o.srx = srx;
	t_end_open(&a, &d, &o);
	t_end_open(&b, &d, &o);
	number = t_insert(&a, to.name);
	make_way(a.ep, a.cq);
	assert_true(waits(&b.cq->fid, a.ep));
	assert_true(passes(&other.cq->fid, a.ep));
	t_end_close(&a);
	t_end_close(&b);
	assert_int_equal(fi_close(&srx->fid), 0);
	close_all();
}

/* What the whole domain looks at changes while nobody is at work; a counter that drives all waits for all. */
static void the_whole_domain(void **state)
{
	struct t_options o = {.cq = NULL};
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	char here[8] = {0};

	(void)state;
	open_with(&o);
	assert_true(waits(&d.domain->fid, from.ep));
	assert_int_equal(fi_mr_reg(d.domain, here, sizeof(here), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_cntr_open(d.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_true(waits(&cntr->fid, from.ep));
	assert_true(waits(&other.cq->fid, from.ep));
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues),
		cmocka_unit_test(counters),
		cmocka_unit_test(shared_contexts),
		cmocka_unit_test(the_whole_domain),
	};

	page_size = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
