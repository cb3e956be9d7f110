/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More queues and counters that one can sleep on than the kernel lets hear of one socket, and descriptors in sets in
 * descriptors: all can be opened, slept on, and are woken.
 */
#include "fi_msg.h"
#include "full_sets.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MANY 130
#define FEW  40

static struct t_side client, server;

static void put_into(int epoll, struct fid *fid)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd;

	assert_int_equal(fi_control(fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev), 0);
}

/* Until it lets sleep. */
static void try_wait(struct fid_fabric *fabric, struct fid *fid)
{
	int64_t end = t_now() + T_PATIENCE;
	int err;

	while ((err = fi_trywait(fabric, &fid, 1))) {
		assert_int_equal(err, -FI_EAGAIN);
		assert_true(t_now() < end);
	}
}

/* The server sleeps on that object, and what it sleeps with is in `epoll`; a message wakes it, every time. */
static void assert_woken(struct fid *fid, int epoll)
{
	int64_t end = t_now() + T_PATIENCE;
	struct fi_cq_tagged_entry e;
	struct epoll_event ev;
	char in = 0, out;

	for (char i = 1; i < 4; i++) {
		assert_int_equal(fi_recv(server.ep, &in, 1, NULL, 0, NULL), 0);
		try_wait(server.fabric, fid);
		out = i;
		assert_int_equal(fi_inject(client.ep, &out, 1, 0), 0);
		t_drive(client.cq);
		assert_int_equal(epoll_wait(epoll, &ev, 1, T_PATIENCE), 1);
		while (fi_cq_read(server.cq, &e, 1) != 1) {
			assert_true(t_now() < end);
			if (!fi_trywait(server.fabric, &fid, 1))
				assert_int_equal(epoll_wait(epoll, &ev, 1, T_PATIENCE), 1);
			t_drive(client.cq);
		}
		assert_int_equal(in, i);
	}
}

/* A connected endpoint's queue in a set, and this in the program's own. */
static void set_in_epoll(void **state)
{
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	client = server = (struct t_side){0};
	t_sides_listen(&client, &server, NULL);
	assert_int_equal(fi_wait_open(server.fabric, &attr, &server.set), 0);
	put_into(epoll, &server.set->fid);
	t_side_connect(&client, &server);
	assert_woken(&server.set->fid, epoll);
	assert_int_equal(fi_close(&server.ep->fid), 0);
	assert_int_equal(fi_close(&server.cq->fid), 0);
	assert_int_equal(fi_close(&server.set->fid), 0);
	server.ep = NULL;
	server.cq = NULL;
	server.set = NULL;
	t_sides_close(&client, &server);
	close(epoll);
}

/* A server with many queues, all in its epoll descriptor and slept on while there comes a connection. */
static void queues(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
	int epoll = epoll_create1(EPOLL_CLOEXEC), own = epoll_create1(EPOLL_CLOEXEC);
	struct fid_cq *cq[MANY];

	(void)state;
	t_sides_listen(&client, &server, &o);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(fi_cq_open(server.domain, &attr, &cq[i], NULL), 0);
		put_into(epoll, &cq[i]->fid);
		try_wait(server.fabric, &cq[i]->fid);
	}
	t_side_connect(&client, &server);
	for (int i = 0; i < MANY; i++)
		try_wait(server.fabric, &cq[i]->fid);
	put_into(own, &server.cq->fid);
	assert_woken(&server.cq->fid, own);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fi_close(&cq[i]->fid), 0);
	t_sides_close(&client, &server);
	close(epoll);
	close(own);
}

/* An event queue, and a passive endpoint that it tells of connections. */
struct told {
	struct fid_eq *eq;
	struct fid_pep *pep;
};

/* `set` NULL: it can be polled. */
static void open_told(struct told *t, struct fid_wait *set)
{
	struct fi_eq_attr attr = {.wait_obj = set ? FI_WAIT_SET : FI_WAIT_FD, .wait_set = set};

	assert_int_equal(fi_eq_open(server.fabric, &attr, &t->eq, NULL), 0);
	assert_int_equal(fi_passive_ep(server.fabric, server.info, &t->pep, NULL), 0);
}

static void bind_told(struct told *t)
{
	assert_int_equal(fi_pep_bind(t->pep, &t->eq->fid, 0), 0);
}

static void close_told(struct told *t)
{
	assert_int_equal(fi_close(&t->pep->fid), 0);
	assert_int_equal(fi_close(&t->eq->fid), 0);
}

/* That many of them hear, so that they sleep as long as nothing happens; whoever does not wakes by itself. */
static void assert_hear(struct told *t, int count, int hear)
{
	struct pollfd p = {.events = POLLIN};

	for (int i = 0; i < count; i++)
		try_wait(server.fabric, &t[i].eq->fid);
	usleep(20000);
	for (int i = 0; i < count; i++) {
		assert_int_equal(fi_control(&t[i].eq->fid, FI_GETWAIT, &p.fd), 0);
		assert_int_equal(poll(&p, 1, i < hear ? 0 : T_PATIENCE), i >= hear);
	}
}

/* The server sleeps on its event queue, that it has in `epoll`, until there is that event. */
static void assert_told(uint32_t number, int epoll)
{
	int64_t end = t_now() + T_PATIENCE;
	struct fi_eq_cm_entry e;
	struct epoll_event ev;
	uint32_t got = 0;

	while (fi_eq_read(server.eq, &got, &e, sizeof(e), 0) == -FI_EAGAIN) {
		assert_true(t_now() < end);
		try_wait(server.fabric, &server.eq->fid);
		assert_int_equal(epoll_wait(epoll, &ev, 1, T_PATIENCE), 1);
	}
	assert_int_equal(got, number);
}

/*
 * As many completion queues as may hear, in calls, by descriptors and in a set, and event queues, all in the program's
 * set; and more of both. There is a connection all the same, of whose end an event queue hears that came last.
 */
static void event_queues(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	struct fi_wait_attr set_attr = {.wait_obj = FI_WAIT_FD};
	int epoll = epoll_create1(EPOLL_CLOEXEC), own = epoll_create1(EPOLL_CLOEXEC);
	struct told polled[MANY], in_set[FEW], called[FEW];
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
	struct fid_cq *cq[FEW], *cq_in_set[FEW];
	struct fid_wait *set;

	(void)state;
	client = server = (struct t_side){0};
	t_side_open(&server, &o);
	t_side_open(&client, &o);
	assert_int_equal(fi_wait_open(server.fabric, &set_attr, &set), 0);
	put_into(epoll, &set->fid);
	for (int i = 0; i < FEW; i++) {
		attr.wait_obj = FI_WAIT_FD;
		assert_int_equal(fi_cq_open(server.domain, &attr, &cq[i], NULL), 0);
		put_into(epoll, &cq[i]->fid);
		attr.wait_obj = FI_WAIT_SET;
		attr.wait_set = set;
		assert_int_equal(fi_cq_open(server.domain, &attr, &cq_in_set[i], NULL), 0);
		open_told(&in_set[i], set);
		bind_told(&in_set[i]);
		open_told(&called[i], NULL);
	}
	for (int i = 0; i < MANY; i++) {
		open_told(&polled[i], NULL);
		if (i % 2)
			bind_told(&polled[i]);
		put_into(epoll, &polled[i].eq->fid);
		if (i % 2 == 0)
			bind_told(&polled[i]);
	}
	for (int i = 0; i < FEW; i++)
		bind_told(&called[i]);
	put_into(own, &server.eq->fid);
	t_side_listen(&server);
	t_side_connect(&client, &server);
	assert_hear(polled, MANY, 8);
	assert_int_equal(fi_shutdown(client.ep, 0), 0);
	assert_told(FI_SHUTDOWN, own);
	for (int i = 0; i < MANY; i++)
		close_told(&polled[i]);
	assert_hear(&called[FEW - 1], 1, 1); /* one that was deaf in calls hears by its descriptor */
	for (int i = 0; i < FEW; i++) {
		close_told(&called[i]);
		close_told(&in_set[i]);
		assert_int_equal(fi_close(&cq[i]->fid), 0);
		assert_int_equal(fi_close(&cq_in_set[i]->fid), 0);
	}
	assert_int_equal(fi_close(&set->fid), 0);
	t_sides_close(&client, &server);
	close(epoll);
	close(own);
}

/* An event queue that cannot be slept on hears of nothing, and has no part in what may be heard. */
static void event_queue_without(void **state)
{
	struct told none, polled;

	(void)state;
	server = (struct t_side){0};
	t_side_open(&server, NULL);
	open_told(&polled, NULL);
	assert_int_equal(fi_eq_open(server.fabric, NULL, &none.eq, NULL), 0);
	assert_int_equal(fi_passive_ep(server.fabric, server.info, &none.pep, NULL), 0);
	sets_are_full = true;
	assert_int_equal(fi_pep_bind(polled.pep, &polled.eq->fid, 0), -FI_ENOSPC);
	assert_int_equal(fi_pep_bind(none.pep, &none.eq->fid, 0), 0);
	sets_are_full = false;
	bind_told(&polled);
	close_told(&polled);
	close_told(&none);
	t_side_close(&server);
}

/* Counters of registrations, each of which hears of all endpoints of the domain. */
static void counters(void **state)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct fid_cntr *cntr[MANY];
	struct fid_mr *mr[MANY];
	struct t_domain domain;
	struct t_end e;
	char memory;

	(void)state;
	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	t_end_open(&e, &domain, NULL);
	for (uint64_t i = 0; i < MANY; i++) {
		assert_int_equal(fi_cntr_open(domain.domain, &attr, &cntr[i], NULL), 0);
		assert_int_equal(fi_mr_reg(domain.domain, &memory, 1, FI_REMOTE_WRITE, 0, i, 0, &mr[i], NULL), 0);
		assert_int_equal(fi_mr_bind(mr[i], &cntr[i]->fid, FI_REMOTE_WRITE), 0);
		put_into(epoll, &cntr[i]->fid);
		try_wait(domain.fabric, &cntr[i]->fid);
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(fi_close(&mr[i]->fid), 0);
		assert_int_equal(fi_close(&cntr[i]->fid), 0);
	}
	t_end_close(&e);
	t_domain_close(&domain);
	close(epoll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_in_epoll),
		cmocka_unit_test(queues),
		cmocka_unit_test(event_queues),
		cmocka_unit_test(event_queue_without),
		cmocka_unit_test(counters),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
