/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wait sets and poll sets: several queues, counters and event queues that are waited for, or asked, in one call; and
 * what goes with waiting for one: signals, thresholds.
 */
#include "fi_pair.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct t_domain domain;

/* Two ends whose queues, with a counter of receives and an event queue, are in one set. */
struct members {
	struct fid_wait *set;
	struct t_end a, b;
	struct fid_cntr *cntr;
	struct fid_eq *eq;
	fi_addr_t to_a, to_b;
};

static struct fid_cq *open_cq(struct fid_wait *set, void *context)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET, .wait_set = set};
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(domain.domain, &attr, &cq, context), 0);
	return cq;
}

static struct fid_cntr *open_cntr(struct fid_wait *set, void *context)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_SET, .wait_set = set};
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(domain.domain, &attr, &cntr, context), 0);
	return cntr;
}

static void members_open(struct members *m, enum fi_wait_obj object)
{
	struct fi_wait_attr attr = {.wait_obj = object};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_SET, .flags = FI_WRITE};

	*m = (struct members){0};
	assert_int_equal(fi_wait_open(domain.fabric, &attr, &m->set), 0);
	eq_attr.wait_set = m->set;
	m->cntr = open_cntr(m->set, &m->cntr);
	assert_int_equal(fi_eq_open(domain.fabric, &eq_attr, &m->eq, NULL), 0);
	t_end_open(&m->a, &domain, &(struct t_options){.cq = open_cq(m->set, &m->a)});
	t_end_open(&m->b, &domain, &(struct t_options){.cq = open_cq(m->set, &m->b), .rx_cntr = m->cntr});
	m->to_b = t_insert(&m->a, m->b.name);
	m->to_a = t_insert(&m->b, m->a.name);
}

static void members_close(struct members *m)
{
	assert_int_equal(fi_close(&m->set->fid), -FI_EBUSY);
	t_end_close(&m->a);
	t_end_close(&m->b);
	assert_int_equal(fi_close(&m->cntr->fid), 0);
	assert_int_equal(fi_close(&m->set->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&m->eq->fid), 0);
	assert_int_equal(fi_close(&m->set->fid), 0);
}

/* Waits until `cq` has its one entry, by the set alone. */
static void wait_entry(struct fid_wait *set, struct fid_cq *cq, uint64_t tag)
{
	struct fi_cq_tagged_entry e;
	int64_t end = t_now() + T_PATIENCE;
	ssize_t n;

	while ((n = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN) {
		assert_true(t_now() < end);
		assert_int_equal(fi_wait(set, T_PATIENCE), 0);
	}
	assert_int_equal(n, 1);
	assert_int_equal(e.op_context, (void *)(uintptr_t)tag);
}

/* Once what was counted has been told, nothing is left: a wait lasts as long as it may. */
static void sleeps(struct fid_wait *set)
{
	int64_t start, end = t_now() + T_PATIENCE;
	int err;

	do {
		start = t_now();
		err = fi_wait(set, 5);
		assert_true(t_now() < end);
	} while (!err);
	assert_int_equal(err, -FI_ETIMEDOUT);
	assert_true(t_now() - start >= 4);
}

static void send_in(struct members *m, uint64_t tag)
{
	static char in;

	assert_int_equal(fi_trecv(m->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, tag, 0, (void *)(uintptr_t)tag), 0);
	t_post(fi_tsend(m->a.ep, "x", 1, NULL, m->to_b, tag, (void *)(uintptr_t)tag), m->a.cq, m->b.cq);
	wait_entry(m->set, m->a.cq, tag);
	wait_entry(m->set, m->b.cq, tag);
	sleeps(m->set);
}

/* Each kind of member ends the wait, in every kind of set, and once it has been seen to no more. */
static void each_member(void **state)
{
	static const enum fi_wait_obj objects[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD, FI_WAIT_MUTEX_COND};
	struct fi_eq_entry event = {.data = 7};
	struct members m;
	uint32_t number;

	(void)state;
	for (int i = 0; i < 4; i++) {
		members_open(&m, objects[i]);
		sleeps(m.set);
		assert_int_equal(fi_wait(m.set, 0), -FI_ETIMEDOUT);
		send_in(&m, 1);
		send_in(&m, 2);
		assert_int_equal(fi_eq_write(m.eq, FI_NOTIFY, &event, sizeof(event), 0), sizeof(event));
		assert_int_equal(fi_wait(m.set, T_PATIENCE), 0);
		assert_int_equal(fi_eq_read(m.eq, &number, &event, sizeof(event), 0), sizeof(event));
		sleeps(m.set);
		assert_int_equal(fi_cntr_add(m.cntr, 1), 0);
		assert_int_equal(fi_wait(m.set, T_PATIENCE), 0);
		sleeps(m.set);
		assert_int_equal(fi_cntr_adderr(m.cntr, 1), 0);
		assert_int_equal(fi_wait(m.set, T_PATIENCE), 0);
		sleeps(m.set);
		assert_int_equal(fi_cq_signal(m.a.cq), 0);
		assert_int_equal(fi_wait(m.set, T_PATIENCE), 0);
		sleeps(m.set);
		members_close(&m);
	}
}

/* What a set and its members say of themselves; what cannot be opened. */
static void wait_objects(void **state)
{
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_POLLFD};
	struct fi_cq_attr cq_attr = {.wait_obj = FI_WAIT_SET};
	enum fi_wait_obj told = FI_WAIT_NONE;
	struct fi_mutex_cond both, of_cq;
	struct members m;
	struct fid_wait *set;
	struct fid_cq *cq;
	int fd, fd_of_cq;

	(void)state;
	assert_int_equal(fi_wait_open(domain.fabric, &attr, &set), -FI_ENOSYS);
	attr = (struct fi_wait_attr){.wait_obj = FI_WAIT_FD, .flags = 1};
	assert_int_equal(fi_wait_open(domain.fabric, &attr, &set), -FI_EBADFLAGS);
	assert_int_equal(fi_cq_open(domain.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	cq_attr.wait_set = (struct fid_wait *)(void *)domain.fabric;
	assert_int_equal(fi_cq_open(domain.domain, &cq_attr, &cq, NULL), -FI_EINVAL);

	members_open(&m, FI_WAIT_UNSPEC);
	assert_int_equal(fi_control(&m.set->fid, FI_GETWAITOBJ, &told), 0);
	assert_int_equal(told, FI_WAIT_FD);
	assert_int_equal(fi_control(&m.a.cq->fid, FI_GETWAITOBJ, &told), 0);
	assert_int_equal(told, FI_WAIT_SET);
	assert_int_equal(fi_control(&m.set->fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(fi_control(&m.a.cq->fid, FI_GETWAIT, &fd_of_cq), 0);
	assert_int_equal(fd, fd_of_cq);
	assert_int_equal(fi_control(&m.eq->fid, FI_GETWAIT, &fd_of_cq), 0);
	assert_int_equal(fd, fd_of_cq);
	members_close(&m);

	members_open(&m, FI_WAIT_YIELD);
	assert_int_equal(fi_control(&m.set->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	members_close(&m);
	members_open(&m, FI_WAIT_MUTEX_COND);
	assert_int_equal(fi_control(&m.set->fid, FI_GETWAIT, &both), 0);
	assert_int_equal(fi_control(&m.a.cq->fid, FI_GETWAIT, &of_cq), 0);
	assert_ptr_equal(both.mutex, of_cq.mutex);
	assert_ptr_equal(both.cond, of_cq.cond);
	members_close(&m);
}

/* How a process sleeps until the other one sends. */
static void sleep_in_wait(struct fid_wait *set)
{
	assert_int_equal(fi_wait(set, T_PATIENCE), 0);
}

static void sleep_on_descriptor(struct fid_wait *set)
{
	struct pollfd p = {.events = POLLIN};
	struct fid *fid = &set->fid;

	assert_int_equal(fi_control(fid, FI_GETWAIT, &p.fd), 0);
	if (!fi_trywait(domain.fabric, &fid, 1))
		assert_int_equal(poll(&p, 1, T_PATIENCE), 1);
}

/* The program's own epoll descriptor, one more on top of those below. */
static void sleep_on_epoll(struct fid_wait *set)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd, own = epoll_create1(EPOLL_CLOEXEC);
	struct fid *fid = &set->fid;

	assert_true(own >= 0);
	assert_int_equal(fi_control(fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(epoll_ctl(own, EPOLL_CTL_ADD, fd, &ev), 0);
	if (!fi_trywait(domain.fabric, &fid, 1))
		assert_int_equal(epoll_wait(own, &ev, 1, T_PATIENCE), 1);
	close(own);
}

static void sleep_on_condition(struct fid_wait *set)
{
	struct fid *fid = &set->fid;
	struct fi_mutex_cond both;
	struct timespec end;

	assert_int_equal(fi_control(fid, FI_GETWAIT, &both), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += T_PATIENCE / 1000;
	pthread_mutex_lock(both.mutex);
	if (!fi_trywait(domain.fabric, &fid, 1))
		assert_int_equal(pthread_cond_timedwait(both.cond, both.mutex, &end), 0);
	pthread_mutex_unlock(both.mutex);
}

struct way {
	enum fi_wait_obj object;
	void (*sleep)(struct fid_wait *set);
	bool counts; /* a counter is in the set, and not the queue */
};

#define MESSAGES 3

/* One queue in the set gets nothing, the other, or a counter, a message now and then. */
static void sleeper(struct t_process *p)
{
	const struct way *way = p->arg;
	struct fi_wait_attr attr = {.wait_obj = way->object};
	int64_t end = t_now() + T_PATIENCE;
	struct fi_cq_tagged_entry e;
	struct t_options o = {0};
	struct fid_cntr *cntr;
	struct fid_wait *set;
	struct fid_cq *other;
	struct t_end a;
	char in;

	t_domain_open(&domain, 0, FI_THREAD_DOMAIN);
	assert_int_equal(fi_wait_open(domain.fabric, &attr, &set), 0);
	other = open_cq(set, NULL);
	cntr = open_cntr(set, NULL);
	if (way->counts)
		o.rx_cntr = cntr;
	else
		o.cq = open_cq(set, NULL);
	t_end_open(&a, &domain, &o);
	t_greet(p, &a);
	for (int i = 0; i < MESSAGES; i++) {
		ssize_t n;

		assert_int_equal(fi_recv(a.ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
		t_say(p, "", 1);
		while ((n = fi_cq_read(a.cq, &e, 1)) == -FI_EAGAIN) {
			assert_true(t_now() < end);
			way->sleep(set);
		}
		assert_int_equal(n, 1);
		assert_int_equal(in, i);
	}
	t_meet(p, a.cq);
	t_end_close(&a);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fi_close(&set->fid), 0);
	t_domain_close(&domain);
}

static void waker(struct t_process *p)
{
	struct t_end e;
	fi_addr_t to;
	char byte;

	t_domain_open(&domain, 0, FI_THREAD_DOMAIN);
	t_end_open(&e, &domain, NULL);
	to = t_greet(p, &e);
	for (char i = 0; i < MESSAGES; i++) {
		t_hear_driving(p, &byte, 1, e.cq);
		usleep(30000); /* time to fall asleep; the test holds without it, too */
		t_post(fi_send(e.ep, &i, 1, NULL, to, NULL), e.cq, NULL);
		t_wait(e.cq, NULL, NULL);
	}
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&domain);
}

/* A message from another process ends a sleep, on both kinds of links, however one sleeps. */
static void sleeping_process(void **state)
{
	static const struct way ways[] = {{FI_WAIT_UNSPEC, sleep_in_wait, false},
		{FI_WAIT_FD, sleep_on_descriptor, false}, {FI_WAIT_MUTEX_COND, sleep_on_condition, false},
		{FI_WAIT_FD, sleep_on_epoll, false}, {FI_WAIT_UNSPEC, sleep_in_wait, true},
		{FI_WAIT_FD, sleep_on_descriptor, true}};

	(void)state;
	for (int i = 0; i < 3; i++)
		t_two("shm", sleeper, waker, &ways[i]);
	t_two("udp", sleeper, waker, &ways[3]);
	for (int i = 4; i < 6; i++)
		t_two("shm", sleeper, waker, &ways[i]);
}

/* The queues of connected endpoints, which stand on a device, and of datagrams are in a set as others are. */
static void other_kinds(void **state)
{
	static const enum fi_ep_type types[] = {FI_EP_MSG, FI_EP_DGRAM};
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fi_info *hints;
	struct fid_wait *set;
	struct fid_cq *cq;

	(void)state;
	for (int i = 0; i < 2; i++) {
		hints = t_hints();
		hints->ep_attr->type = types[i];
		t_domain_open_with(&domain, hints);
		assert_int_equal(fi_wait_open(domain.fabric, &attr, &set), 0);
		cq = open_cq(set, NULL);
		sleeps(set);
		assert_int_equal(fi_cq_signal(cq), 0);
		assert_int_equal(fi_wait(set, T_PATIENCE), 0);
		assert_int_equal(fi_close(&cq->fid), 0);
		assert_int_equal(fi_close(&set->fid), 0);
		t_domain_close(&domain);
	}
}

static int compare(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* Polls until the set names exactly these contexts, each once. */
static void assert_told(struct fid_poll *set, void *first, void *second)
{
	void *want[2] = {first, second}, *got[4];
	int64_t end = t_now() + T_PATIENCE;
	int n, wanted = !!first + !!second;

	do {
		assert_true(t_now() < end);
		n = fi_poll(set, got, 4);
		assert_in_range(n, 0, 4);
	} while (n < wanted);
	assert_int_equal(n, wanted);
	qsort(want, (size_t)n, sizeof(*want), compare);
	qsort(got, (size_t)n, sizeof(*got), compare);
	for (int i = 0; i < n; i++)
		assert_ptr_equal(got[i], want[i]);
}

/* Queues are named while they have something, counters once they have changed; a short array starves nobody. */
static void poll_set(void **state)
{
	struct fi_poll_attr attr = {.flags = 1};
	struct fid_poll *set;
	struct members m;
	void *context[2];
	char in;

	(void)state;
	members_open(&m, FI_WAIT_YIELD);
	assert_int_equal(fi_poll_open(domain.domain, &attr, &set), -FI_EBADFLAGS);
	attr.flags = 0;
	assert_int_equal(fi_poll_open(domain.domain, &attr, &set), 0);
	assert_int_equal(fi_poll_add(set, &m.a.cq->fid, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_poll_add(set, &m.eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_del(set, &m.a.cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &m.a.cq->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &m.b.cq->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &m.cntr->fid, 0), 0);
	assert_int_equal(fi_close(&set->fid), -FI_EBUSY);
	assert_told(set, NULL, NULL);
	assert_int_equal(fi_cq_signal(m.a.cq), 0);
	assert_told(set, NULL, NULL);
	assert_int_equal(fi_wait(m.set, T_PATIENCE), 0); /* that was for this one */

	assert_int_equal(fi_trecv(m.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	t_post(fi_tinject(m.a.ep, "x", 1, m.to_b, 1), m.a.cq, NULL); /* no entry for a */
	assert_told(set, &m.b, &m.cntr);
	assert_told(set, &m.b, NULL);
	t_wait(m.b.cq, NULL, NULL);
	assert_told(set, NULL, NULL);
	assert_int_equal(fi_cntr_seterr(m.cntr, 3), 0);
	assert_told(set, &m.cntr, NULL);

	for (int i = 0; i < 2; i++) {
		struct t_end *e = i ? &m.a : &m.b;

		assert_int_equal(fi_trecv(e->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
		t_post(fi_tinject(i ? m.b.ep : m.a.ep, "x", 1, i ? m.to_a : m.to_b, 2), m.a.cq, m.b.cq);
	}
	assert_int_equal(fi_poll_del(set, &m.cntr->fid, 0), 0);
	assert_told(set, &m.a, &m.b);
	assert_int_equal(fi_poll(set, &context[0], 1), 1);
	assert_int_equal(fi_poll(set, &context[1], 1), 1);
	assert_ptr_not_equal(context[0], context[1]);

	assert_int_equal(fi_poll_del(set, &m.a.cq->fid, 0), 0);
	assert_told(set, &m.b, NULL);
	assert_int_equal(fi_close(&m.b.cq->fid), -FI_EBUSY);
	assert_int_equal(fi_poll_del(set, &m.b.cq->fid, 0), 0);
	assert_int_equal(fi_close(&set->fid), 0);
	members_close(&m);
}

/* A signal ends one wait by the descriptor, too, and no more. */
static void signal_once(void **state)
{
	struct pollfd p = {.events = POLLIN};
	struct fid *fid;
	struct t_end e;

	(void)state;
	t_end_open(&e, &domain, &(struct t_options){.wait = FI_WAIT_FD});
	fid = &e.cq->fid;
	assert_int_equal(fi_control(fid, FI_GETWAIT, &p.fd), 0);
	assert_int_equal(fi_trywait(domain.fabric, &fid, 1), 0);
	assert_int_equal(fi_cq_signal(e.cq), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(fi_trywait(domain.fabric, &fid, 1), -FI_EAGAIN);
	assert_int_equal(fi_trywait(domain.fabric, &fid, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	t_end_close(&e);
}

/* A counter that nothing comes to lets sleep who asks the set. */
static void counter_rests(void **state)
{
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD};
	struct pollfd p = {.events = POLLIN};
	struct fid_cntr *cntr;
	struct fid_wait *set;
	bool rest = false;
	struct t_end e;

	(void)state;
	assert_int_equal(fi_wait_open(domain.fabric, &attr, &set), 0);
	assert_int_equal(fi_control(&set->fid, FI_GETWAIT, &p.fd), 0);
	cntr = open_cntr(set, NULL);
	t_end_open(&e, &domain, &(struct t_options){.rx_cntr = cntr});
	for (int tries = 0; tries < 100 && !rest; tries++) { /* it may have been a clock of the service's own */
		rest = !fi_trywait(domain.fabric, (struct fid *[]){&set->fid}, 1);
		usleep(30000);
		rest = rest && !poll(&p, 1, 0);
	}
	assert_true(rest);
	t_end_close(&e);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&set->fid), 0);
}

/* With FI_CQ_COND_THRESHOLD a wait ends with that many entries, or with the time, and gives what there is. */
static void threshold(void **state)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_FD,
		.wait_cond = FI_CQ_COND_THRESHOLD};
	enum { MANY = 100000 };
	struct fi_cq_tagged_entry e[4], *many = calloc(MANY, sizeof(*many));
	struct t_end a, b;
	size_t three = 3, none = 0;
	fi_addr_t to_b;
	struct fid_cq *cq;
	int64_t start;
	char in[3];

	(void)state;
	assert_int_equal(fi_cq_open(domain.domain, &attr, &cq, NULL), 0);
	t_end_open(&a, &domain, NULL);
	t_end_open(&b, &domain, &(struct t_options){.cq = cq});
	to_b = t_insert(&a, b.name);
	assert_int_equal(fi_recv(b.ep, in, 1, NULL, FI_ADDR_UNSPEC, in), 0);
	t_post(fi_inject(a.ep, "x", 1, to_b), a.cq, cq); /* makes contact, which both must move on */
	t_wait(cq, a.cq, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(b.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]), 0);
	for (int i = 0; i < 2; i++)
		t_post(fi_inject(a.ep, "x", 1, to_b), a.cq, cq);
	start = t_now();
	assert_int_equal(fi_cq_sread(cq, e, 4, &three, 30), 2);
	assert_true(t_now() - start >= 29);
	start = t_now();
	assert_int_equal(fi_cq_sread(cq, e, 4, &none, 30), -FI_EAGAIN);
	assert_true(t_now() - start >= 29);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_recv(b.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]), 0);
	for (int i = 0; i < 3; i++)
		t_post(fi_inject(a.ep, "x", 1, to_b), a.cq, cq);
	start = t_now();
	assert_int_equal(fi_cq_sread(cq, e, 4, &three, T_PATIENCE), 3);
	assert_true(t_now() - start < T_PATIENCE);

	/* The number itself in the place of a pointer to it; what has no room is not waited for. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(b.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]), 0);
	for (int i = 0; i < 2; i++)
		t_post(fi_inject(a.ep, "x", 1, to_b), a.cq, cq);
	start = t_now();
	assert_int_equal(fi_cq_sread(cq, e, 4, (const void *)(uintptr_t)3, 30), 2);
	assert_true(t_now() - start >= 29);
	t_post(fi_inject(a.ep, "x", 1, to_b), a.cq, cq);
	start = t_now();
	assert_int_equal(fi_cq_sread(cq, e, 1, (const void *)(uintptr_t)3, T_PATIENCE), 1);
	assert_true(t_now() - start < T_PATIENCE);
	assert_int_equal(fi_cq_sread(cq, many, MANY, (const void *)(uintptr_t)65535, 10), -FI_EAGAIN);
	assert_int_equal(fi_cq_sread(cq, many, MANY, (const void *)(uintptr_t)MANY, 10), -FI_EAGAIN);
	free(many);
	t_end_close(&a);
	t_end_close(&b);
}

static int open_domain(void **state)
{
	(void)state;
	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_domain_close(&domain);
	return 0;
}

int main(void)
{
	const struct CMUnitTest processes[] = {
		cmocka_unit_test(sleeping_process),
	};
	const struct CMUnitTest kinds[] = {
		cmocka_unit_test(other_kinds),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member),
		cmocka_unit_test(wait_objects),
		cmocka_unit_test(poll_set),
		cmocka_unit_test(signal_once),
		cmocka_unit_test(counter_rests),
		cmocka_unit_test(threshold),
	};
	int failed = cmocka_run_group_tests_name("processes", processes, NULL, NULL);

	t_use_provider();
	failed += cmocka_run_group_tests_name("other kinds", kinds, NULL, NULL);
	return failed + cmocka_run_group_tests_name("one process", tests, open_domain, close_domain);
}
