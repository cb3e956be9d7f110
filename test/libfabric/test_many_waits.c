/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More queues and counters that one can sleep on than the kernel lets hear of one socket, and descriptors in sets in
 * descriptors: all can be opened, slept on, and are woken.
 */
#include "fi_msg.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MANY 130

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
		cmocka_unit_test(counters),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
