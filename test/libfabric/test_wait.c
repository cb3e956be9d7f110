/* SPDX-License-Identifier: BSD-3-Clause */
/* What a wait within a process promises: sread, descriptors, fi_trywait, signals, counters; beside others that look. */
#include "fi_sleeper.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/*
 * A timeout that passes is -FI_EAGAIN and not shorter than asked for. One may wait for a queue that yields the core in
 * the same way, but it has no descriptor; without a wait object there is nothing to wait for.
 */
static void timeouts(void **state)
{
	static const enum fi_wait_obj objects[] = {FI_WAIT_FD, FI_WAIT_YIELD};
	struct t_options o = {.wait = FI_WAIT_NONE};
	struct fi_cq_tagged_entry entry;
	struct t_domain d;
	struct t_end e;
	int64_t start;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	for (int i = 0; i < 2; i++) {
		enum fi_wait_obj told = FI_WAIT_NONE;
		int fd;

		t_end_open(&e, &d, &(struct t_options){.wait = objects[i]});
		assert_int_equal(fi_control(&e.cq->fid, FI_GETWAITOBJ, &told), 0);
		assert_int_equal(told, objects[i]);
		assert_int_equal(fi_control(&e.cq->fid, FI_GETWAIT, &fd), told == FI_WAIT_FD ? 0 : -FI_ENODATA);
		start = t_now();
		assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, 30), -FI_EAGAIN);
		assert_true(t_now() - start >= 29);
		assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, 0), -FI_EAGAIN);
		assert_int_equal(fi_cq_signal(e.cq), 0); /* ends the next wait */
		assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, T_PATIENCE), -FI_EAGAIN);
		t_end_close(&e);
	}
	t_end_open(&e, &d, &o);
	assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_cq_signal(e.cq), -FI_ENOSYS);
	assert_int_equal(fi_control(&e.cq->fid, FI_GETWAIT, &(int){0}), -FI_ENODATA);
	t_end_close(&e);
	t_domain_close(&d);
}

/* Two threads of one FI_THREAD_SAFE domain, each with an endpoint, send to each other all the time. */
struct thread {
	struct t_end e;
	fi_addr_t peer;
	unsigned received;
	bool failed;
	atomic_uint *busy; /* threads that have not received all: what was sent to them may need our progress */
};

#define ROUNDS 20000

static void *run(void *arg)
{
	struct thread *t = arg;
	struct fi_cq_tagged_entry e;
	int64_t end = t_now() + T_PATIENCE;
	unsigned sent = 0, posted = 0;
	uint64_t in[16] = {0};
	bool used[16] = {false};

	while (atomic_load(t->busy) && !t->failed) {
		uint64_t word = sent;

		if (posted < ROUNDS && !used[posted % 16] &&
			!fi_trecv(t->e.ep, &in[posted % 16], 8, NULL, FI_ADDR_UNSPEC, posted, 0, &in[posted % 16]))
			used[posted++ % 16] = true;
		if (sent < ROUNDS && !fi_tinject(t->e.ep, &word, 8, t->peer, sent))
			sent++;
		if (fi_cq_read(t->e.cq, &e, 1) == 1) {
			/* In any order: what waited for credit may end after what came when there was some again. */
			t->failed |= e.op_context != &in[e.tag % 16] || in[e.tag % 16] != e.tag || !used[e.tag % 16];
			used[e.tag % 16] = false;
			if (++t->received == ROUNDS)
				atomic_fetch_sub(t->busy, 1);
		}
		t->failed |= t_now() > end;
	}
	return NULL;
}

static void two_threads(void **state)
{
	struct thread t[2] = {0};
	atomic_uint busy = 2;
	struct t_domain d;
	pthread_t id[2];

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	for (int i = 0; i < 2; i++)
		t_end_open(&t[i].e, &d, NULL);
	for (int i = 0; i < 2; i++) {
		t[i].busy = &busy;
		t[i].peer = t_insert(&t[i].e, t[1 - i].e.name);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&id[i], NULL, run, &t[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(id[i], NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_false(t[i].failed);
		assert_int_equal(t[i].received, ROUNDS);
		t_end_close(&t[i].e);
	}
	t_domain_close(&d);
}

/*
 * A thread asleep in sread is woken by fi_cq_signal, and one asleep in fi_cntr_wait by fi_cntr_add, from another
 * thread.
 */
struct asleep {
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	ssize_t cq_result;
	int cntr_result;
};

static void *sleep_in_both(void *arg)
{
	struct asleep *a = arg;
	struct fi_cq_tagged_entry e;

	a->cq_result = fi_cq_sread(a->cq, &e, 1, NULL, T_PATIENCE);
	a->cntr_result = fi_cntr_wait(a->cntr, 1, T_PATIENCE);
	return NULL;
}

static void woken_by_threads(void **state)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
	struct asleep a = {0};
	struct t_domain d;
	struct t_end e;
	pthread_t id;
	int64_t start = t_now();

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&e, &d, &(struct t_options){.wait = FI_WAIT_FD});
	a.cq = e.cq;
	assert_int_equal(fi_cntr_open(d.domain, &attr, &a.cntr, NULL), 0);
	assert_int_equal(pthread_create(&id, NULL, sleep_in_both, &a), 0);
	usleep(50000);
	assert_int_equal(fi_cq_signal(e.cq), 0);
	usleep(50000);
	assert_int_equal(fi_cntr_add(a.cntr, 1), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_int_equal(a.cq_result, -FI_EAGAIN);
	assert_int_equal(a.cntr_result, 0);
	assert_true(t_now() - start < T_PATIENCE); /* woken, not timed out */
	t_end_close(&e);
	assert_int_equal(fi_close(&a.cntr->fid), 0);
	t_domain_close(&d);
}

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

/* Until there is nothing left to do: the queue is empty, and who polls the descriptor may sleep. */
static void fall_asleep(struct t_end *e)
{
	struct fid *fid = &e->cq->fid;
	int64_t end = t_now() + T_PATIENCE;

	while (fi_trywait(e->d->fabric, &fid, 1)) {
		assert_true(t_now() < end);
		t_drive(e->cq);
	}
}

/*
 * The descriptor tells of a send that another thread starts, and that completes at once, while a thread may be asleep
 * on the queue; a look at the empty queue in between does not hide it.
 */
static void told_of_a_send(void **state)
{
	struct t_domain d;
	struct t_end a, b;
	fi_addr_t to_b;
	char in;
	int fd;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	t_end_open(&a, &d, &(struct t_options){.wait = FI_WAIT_FD});
	t_end_open(&b, &d, NULL);
	to_b = t_insert(&a, b.name);
	assert_int_equal(fi_control(&a.cq->fid, FI_GETWAIT, &fd), 0);
	for (uint64_t i = 0; i < 6; i++) {
		struct fi_cq_tagged_entry e;
		int64_t end = t_now() + T_PATIENCE;

		assert_int_equal(fi_trecv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, i, 0, &in), 0);
		for (;;) {
			fall_asleep(&a);
			if (!i || !readable(fd)) /* the first one makes contact */
				break;
			assert_true(t_now() < end);
			t_drive(a.cq); /* it was a clock, or something of the service's own */
		}
		if (i % 2)
			assert_int_equal(fi_cq_sread(a.cq, &e, 1, NULL, 0), -FI_EAGAIN);
		t_post(fi_tsend(a.ep, "s", 1, NULL, to_b, i, &a), a.cq, b.cq);
		if (i)
			assert_int_equal(readable(fd), 1);
		assert_ptr_equal(t_wait(a.cq, b.cq, NULL).op_context, &a);
		t_wait(b.cq, a.cq, NULL);
	}
	t_end_close(&a);
	t_end_close(&b);
	t_domain_close(&d);
}

/*
 * Two endpoints of one FI_THREAD_SAFE domain that makes no progress by itself. The first has a counter besides, which
 * may be waited for, too. What the second sends is all that happens.
 */
struct beside {
	struct t_domain d;
	struct t_end a, b;
	struct fid_cntr *cntr;
	fi_addr_t to_a;
	uint64_t sent;
};

static void beside_open(struct beside *s)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};

	t_domain_open(&s->d, 0, FI_THREAD_SAFE);
	assert_int_equal(fi_cntr_open(s->d.domain, &attr, &s->cntr, NULL), 0);
	t_end_open(&s->a, &s->d, &(struct t_options){.wait = FI_WAIT_FD, .rx_cntr = s->cntr});
	t_end_open(&s->b, &s->d, NULL);
	s->to_a = t_insert(&s->b, s->a.name);
	s->sent = 0;
}

static void beside_close(struct beside *s)
{
	t_end_close(&s->a);
	t_end_close(&s->b);
	assert_int_equal(fi_close(&s->cntr->fid), 0);
	t_domain_close(&s->d);
}

/* The first endpoint gets receives for so many. */
static void expect(struct beside *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(fi_trecv(s->a.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, s->sent + i, 0, NULL), 0);
}

/* Sent without a look at the first one's side. */
static void send_expected(struct beside *s)
{
	t_post(fi_tsend(s->b.ep, NULL, 0, NULL, s->to_a, s->sent++, NULL), s->b.cq, NULL);
	t_wait(s->b.cq, NULL, NULL);
}

/* They know each other, and have done all that this leaves to be done. */
static void make_contact(struct beside *s)
{
	expect(s, 1);
	t_post(fi_tsend(s->b.ep, NULL, 0, NULL, s->to_a, s->sent++, NULL), s->b.cq, s->a.cq);
	t_wait(s->b.cq, s->a.cq, NULL);
	t_wait(s->a.cq, s->b.cq, NULL);
	t_nothing(s->b.cq, s->a.cq);
}

/* Who sleeps on a queue hears of what comes, though another thread has read it, or its endpoint's counter, since. */
static void woken_beside_reader(void **state)
{
	struct fi_cq_tagged_entry e;
	struct beside s;
	pthread_t id;

	(void)state;
	beside_open(&s);
	make_contact(&s);
	for (int i = 0; i < 4; i++) {
		struct sleeper sleeper = {.cq = s.a.cq};
		int64_t start;

		expect(&s, 1);
		assert_int_equal(pthread_create(&id, NULL, sleep_on_queue, &sleeper), 0);
		wait_until_asleep(&sleeper);
		if (i % 2)
			assert_int_equal(fi_cq_read(s.a.cq, &e, 1), -FI_EAGAIN);
		else
			fi_cntr_read(s.cntr);
		send_expected(&s);
		start = t_now();
		assert_int_equal(pthread_join(id, NULL), 0);
		assert_in_range(t_now() - start, 0, LONG_SLEEP / 4);
		assert_int_equal(sleeper.result, 1);
	}
	beside_close(&s);
}

/* Nor does it matter that the other one has been asleep, too, and was woken by what came for it. */
static void woken_beside_sleeper(void **state)
{
	struct beside s;
	pthread_t id[2];

	(void)state;
	beside_open(&s);
	make_contact(&s);
	for (int i = 0; i < 10; i++) {
		struct sleeper once = {.cq = s.a.cq}, twice = {.cntr = s.cntr, .threshold = s.sent + 2};
		struct fi_cq_tagged_entry e;
		int64_t start;

		expect(&s, 2);
		assert_int_equal(pthread_create(&id[0], NULL, sleep_on_queue, &once), 0);
		assert_int_equal(pthread_create(&id[1], NULL, sleep_on_counter, &twice), 0);
		wait_until_asleep(&once);
		wait_until_asleep(&twice);
		send_expected(&s);
		assert_int_equal(pthread_join(id[0], NULL), 0);
		assert_int_equal(once.result, 1);
		wait_until_asleep(&twice);
		send_expected(&s);
		start = t_now();
		assert_int_equal(pthread_join(id[1], NULL), 0);
		assert_in_range(t_now() - start, 0, LONG_SLEEP / 4);
		assert_int_equal(twice.result, 0);
		assert_int_equal(fi_cq_read(s.a.cq, &e, 1), 1);
	}
	beside_close(&s);
}

/* So does who polls its descriptor. */
static void told_beside_reader(void **state)
{
	struct pollfd p = {.events = POLLIN};
	struct fi_cq_tagged_entry e;
	struct beside s;

	(void)state;
	beside_open(&s);
	make_contact(&s);
	assert_int_equal(fi_control(&s.a.cq->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 4; i++) {
		expect(&s, 1);
		fall_asleep(&s.a);
		if (i % 2)
			assert_int_equal(fi_cq_read(s.a.cq, &e, 1), -FI_EAGAIN);
		else
			fi_cntr_read(s.cntr);
		send_expected(&s);
		assert_int_equal(poll(&p, 1, LONG_SLEEP), 1);
		t_wait(s.a.cq, NULL, NULL);
	}
	beside_close(&s);
}

/* Who has read a counter and asks whether he may sleep is told of what has been counted since: now, or by poll. */
static void told_of_a_count(void **state)
{
	struct pollfd p = {.events = POLLIN};
	struct fid *cntr;
	struct beside s;

	(void)state;
	beside_open(&s);
	make_contact(&s);
	cntr = &s.cntr->fid;
	assert_int_equal(fi_control(cntr, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 6; i++) {
		int64_t end = t_now() + T_PATIENCE;

		expect(&s, 1);
		assert_int_equal(fi_cntr_read(s.cntr), s.sent);
		if (i % 3 == 2)
			while (fi_trywait(s.d.fabric, &cntr, 1))
				assert_true(t_now() < end);
		send_expected(&s);
		if (i % 3)
			t_drive(s.a.cq); /* as another thread may */
		if (!fi_trywait(s.d.fabric, &cntr, 1))
			assert_int_equal(poll(&p, 1, LONG_SLEEP), 1);
		while (fi_cntr_read(s.cntr) != s.sent)
			assert_true(t_now() < end);
		while (fi_trywait(s.d.fabric, &cntr, 1))
			assert_true(t_now() < end);
		t_wait(s.a.cq, NULL, NULL);
	}
	assert_int_equal(fi_cntr_adderr(s.cntr, 1), 0);
	assert_int_equal(fi_trywait(s.d.fabric, &cntr, 1), -FI_EAGAIN);
	beside_close(&s);
}

/* Who asks for the descriptor after fi_trywait is told by it of what has come in between: at once, not by an alarm. */
static void descriptor_asked_for_late(void **state)
{
	struct beside s;
	struct fid *cq;
	int fd;

	(void)state;
	beside_open(&s);
	make_contact(&s);
	cq = &s.a.cq->fid;
	expect(&s, 1);
	fall_asleep(&s.a);
	send_expected(&s);
	while (fi_cntr_read(s.cntr) != s.sent)
		t_drive(s.b.cq);
	assert_int_equal(fi_control(cq, FI_GETWAIT, &fd), 0);
	assert_int_equal(readable(fd), 1);
	t_wait(s.a.cq, NULL, NULL);
	beside_close(&s);
}

/* Eventfds of this process that are readable. */
static unsigned rung_eventfds(void)
{
	DIR *all = opendir("/proc/self/fdinfo");
	const struct dirent *one;
	unsigned n = 0;

	assert_non_null(all);
	while ((one = readdir(all))) {
		char path[300], line[100];
		unsigned long long count;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", one->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			n += sscanf(line, "eventfd-count: %llx", &count) == 1 && count;
		if (f)
			fclose(f);
	}
	closedir(all);
	return n;
}

/* While nobody sleeps in a call, what rings for who polls rings for him alone. */
static void a_ring_for_who_polls(void **state)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_cntr *cntr;
	struct t_domain d;
	int fd;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_SAFE);
	assert_int_equal(fi_cntr_open(d.domain, &attr, &cntr, NULL), 0);
	assert_int_equal(fi_control(&cntr->fid, FI_GETWAIT, &fd), 0);
	for (int i = 0; i < 3; i++) {
		struct fid *fid = &cntr->fid;
		unsigned before;

		fi_cntr_read(cntr);
		assert_int_equal(fi_trywait(d.fabric, &fid, 1), 0);
		assert_int_equal(readable(fd), 0);
		before = rung_eventfds();
		assert_int_equal(fi_cntr_add(cntr, 1), 0);
		assert_int_equal(readable(fd), 1);
		assert_int_equal(rung_eventfds(), before + 1);
		assert_int_equal(fi_cntr_wait(cntr, (uint64_t)i + 2, 1), -FI_ETIMEDOUT);
	}
	assert_int_equal(fi_close(&cntr->fid), 0);
	t_domain_close(&d);
}

#define TRIES 100

/*
 * Two threads that look and poll, each at its own object of one endpoint, do not wake each other for ever: when both
 * have come to rest it stays so.
 */
static void two_pollers_rest(void **state)
{
	struct fi_cq_tagged_entry e;
	struct fid *cntr;
	struct beside s;
	bool rest = false;
	int fd[2];

	(void)state;
	beside_open(&s);
	make_contact(&s);
	cntr = &s.cntr->fid;
	assert_int_equal(fi_control(&s.a.cq->fid, FI_GETWAIT, &fd[0]), 0);
	assert_int_equal(fi_control(cntr, FI_GETWAIT, &fd[1]), 0);
	for (int tries = 0; tries < TRIES && !rest; tries++) { /* it may have been a clock of the service's own */
		fall_asleep(&s.a);
		assert_int_equal(fi_cq_read(s.a.cq, &e, 1), -FI_EAGAIN);
		fi_cntr_read(s.cntr);
		rest = !fi_trywait(s.d.fabric, &cntr, 1);
		usleep(30000);
		rest = rest && !readable(fd[0]) && !readable(fd[1]);
	}
	assert_true(rest);
	beside_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts),
		cmocka_unit_test(two_threads),
		cmocka_unit_test(woken_by_threads),
		cmocka_unit_test(told_of_a_send),
		cmocka_unit_test(woken_beside_reader),
		cmocka_unit_test(woken_beside_sleeper),
		cmocka_unit_test(told_beside_reader),
		cmocka_unit_test(descriptor_asked_for_late),
		cmocka_unit_test(told_of_a_count),
		cmocka_unit_test(a_ring_for_who_polls),
		cmocka_unit_test(two_pollers_rest),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
