/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that are cancelled (pthread_cancel) in calls that are slow: those that open, connect, share addresses and
 * close. A cancellation that is pending when such a call begins does not strike in it, whatever it opens and writes;
 * and another thread can make the same calls after it. Who sleeps without an end is cancelled in his sleep, and leaves
 * nobody behind that others would wait for.
 */
#include "fi_msg.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define MANY 1000 /* addresses: more than a table has room for at first */

struct stage {
	void (*what)(void);
	bool done;
};

static void *perform(void *arg)
{
	struct stage *s = arg;

	pthread_cancel(pthread_self());
	s->what();
	s->done = true;
	return NULL;
}

/* By a thread that is cancelled: does it come to its end? */
static bool is_done(void (*what)(void))
{
	struct stage s = {.what = what};
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, perform, &s), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
	return s.done;
}

/* By one that is cancelled, and then by one that is not. */
static void by_two(void (*what)(void))
{
	assert_true(is_done(what));
	what();
}

static void close_one(struct fid *fid)
{
	assert_int_equal(fi_close(fid), 0);
}

/*
 * Connected endpoints: two sides, each with a fabric of its own.
 */

static struct t_side client, server;

static void close_end(struct t_side *s)
{
	close_one(&s->ep->fid);
	close_one(&s->cq->fid);
	s->ep = NULL;
	s->cq = NULL;
}

static struct fid_pep *open_passive(const struct t_side *s)
{
	struct fid_pep *pep;

	assert_int_equal(fi_passive_ep(s->fabric, s->info, &pep, NULL), 0);
	return pep;
}

/* At the port that it was told before. */
static void listens(void)
{
	struct fid_pep *pep = open_passive(&server);
	struct sockaddr_in name;
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&pep->fid, &name, &len), 0);
	assert_int_equal(fi_pep_bind(pep, &server.eq->fid, 0), 0);
	assert_int_equal(fi_listen(pep), 0);
	close_one(&pep->fid);
}

static void connects(void)
{
	t_side_connect(&client, &server);
	close_end(&client);
	t_side_event(&server, NULL, FI_SHUTDOWN);
	close_end(&server);
}

/* Who has sent by inject waits for the peer to take it, for a moment: the peer does not. */
static void shuts_down(void)
{
	t_side_connect(&client, &server);
	assert_int_equal(fi_inject(client.ep, "x", 1, 0), 0);
	assert_int_equal(fi_shutdown(client.ep, 0), 0);
	t_side_event(&client, NULL, FI_SHUTDOWN);
	close_end(&client);
	close_end(&server);
}

static struct fid *ask(void)
{
	struct t_event e;
	struct fid *request;

	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
	e = t_side_event(&server, &client, FI_CONNREQ);
	request = e.info->handle;
	fi_freeinfo(e.info);
	return request;
}

static void is_refused(void)
{
	unsigned char data[T_CM_DATA];

	t_side_error(&client, &server, data);
	close_end(&client);
}

static void rejects(void)
{
	assert_int_equal(fi_reject(server.pep, ask(), NULL, 0), 0);
	is_refused();
	close_one(ask());
	is_refused();
}

static int take_place(struct fid_pep *pep, struct fid_ep **ep)
{
	int err;

	client.info->handle = &pep->fid;
	err = fi_endpoint(client.domain, client.info, ep, NULL);
	client.info->handle = NULL;
	return err;
}

/* Ports are held by passive endpoints that are asked for their names, and by endpoints that take their places. */
static void gets_names(void)
{
	struct fid_pep *pep = open_passive(&client);
	struct sockaddr_in name = {0};
	size_t len = sizeof(name);
	struct fid_ep *ep;

	assert_int_equal(fi_getname(&pep->fid, &name, &len), 0);
	assert_int_not_equal(name.sin_port, 0);
	name.sin_port = 0;
	assert_int_equal(fi_setname(&pep->fid, &name, sizeof(name)), 0);
	assert_int_equal(take_place(pep, &ep), 0);
	assert_int_equal(fi_setname(&ep->fid, &name, sizeof(name)), 0);
	close_one(&ep->fid);
	close_one(&pep->fid);
}

/* No address of this machine. */
static void gets_no_name(void)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
	struct fid_pep *pep = open_passive(&client);
	size_t len = sizeof(name);
	struct fid_ep *ep;

	assert_int_equal(fi_setname(&pep->fid, &name, sizeof(name)), 0);
	assert_int_equal(fi_getname(&pep->fid, &name, &len), -FI_EADDRNOTAVAIL);
	close_one(&pep->fid);
	pep = open_passive(&client);
	assert_int_equal(fi_setname(&pep->fid, &name, sizeof(name)), 0);
	assert_int_equal(take_place(pep, &ep), -FI_EADDRNOTAVAIL);
	close_one(&pep->fid);
}

static void opens_in_vain(void)
{
	struct fid_pep *pep;

	assert_int_not_equal(fi_passive_ep(client.fabric, client.info, &pep, NULL), 0);
}

/* The device that connected endpoints share needs some descriptors, and there are fewer. */
static void lacks_descriptors(void)
{
	int fd = dup(STDERR_FILENO);
	struct rlimit before, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (few = before, few.rlim_cur = (rlim_t)fd + 1; few.rlim_cur < (rlim_t)fd + 4; few.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		by_two(opens_in_vain);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(fd);
}

static void asks_what_there_is(void)
{
	struct fi_info *hints = t_msg_hints(), *info;

	assert_int_equal(t_getinfo(hints, &info), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void closes_all(void)
{
	t_sides_close(&client, &server);
}

static void connected(enum fi_progress progress)
{
	const struct t_msg_options o = {.threading = FI_THREAD_SAFE, .progress = progress, .wait = FI_WAIT_FD};

	t_side_open(&client, &o);
	t_side_open(&server, &o);
	by_two(asks_what_there_is);
	by_two(listens);
	lacks_descriptors(); /* not first: with what it needs to cancel threads the C library is content now */
	t_side_listen(&server);
	by_two(connects);
	by_two(shuts_down);
	by_two(rejects);
	by_two(gets_names);
	by_two(gets_no_name);
	assert_true(is_done(closes_all));
}

static void connected_ends(void **state)
{
	(void)state;
	connected(FI_PROGRESS_MANUAL);
	connected(FI_PROGRESS_AUTO);
}

/*
 * Address vectors that processes share, of domains with locks and without.
 */

static struct t_domain domain;

static struct fid_av *open_shared(void)
{
	struct fi_av_attr attr = {0};
	struct fid_av *av;
	char name[32];

	snprintf(name, sizeof(name), "cancelled-%d", (int)getpid());
	attr.name = name;
	assert_int_equal(fi_av_open(domain.domain, &attr, &av, NULL), 0);
	return av;
}

static void shares(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct fid_av *av = open_shared();
	size_t len = sizeof(in);
	fi_addr_t number;

	for (uint16_t i = 0; i < MANY; i++) {
		in.sin_port = htons(i + 1);
		assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), 1);
		assert_int_equal(number, i);
	}
	assert_int_equal(fi_av_lookup(av, number, &in, &len), 0);
	assert_int_equal(fi_av_remove(av, &number, 1, 0), 0);
	close_one(&av->fid);
}

/* And who looks for a host's address. */
static void resolves(void)
{
	struct fid_av *av = open_shared();
	fi_addr_t number;

	assert_int_equal(fi_av_insertsvc(av, "localhost", "4711", &number, 0, NULL), 1);
	close_one(&av->fid);
}

static struct fid_ep *sharer;
static fi_addr_t myself;

/* The first message to an address is when the vector is asked. */
static void sends(void)
{
	assert_int_equal(fi_send(sharer, "x", 1, NULL, myself, NULL), 0);
}

static void open_sharer(struct fid_av *av, struct fid_cq **cq)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct sockaddr_in name;
	size_t len = sizeof(name);

	assert_int_equal(fi_endpoint(domain.domain, domain.info, &sharer, NULL), 0);
	assert_int_equal(fi_cq_open(domain.domain, &attr, cq, NULL), 0);
	assert_int_equal(fi_ep_bind(sharer, &(*cq)->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(sharer, &av->fid, 0), 0);
	assert_int_equal(fi_enable(sharer), 0);
	assert_int_equal(fi_getname(&sharer->fid, &name, &len), 0);
	assert_int_equal(fi_av_insert(av, &name, 1, &myself, 0, NULL), 1);
}

static void sends_to_shared(void)
{
	struct fid_av *av = open_shared();
	struct fid_cq *cq;
	char in[2];

	open_sharer(av, &cq);
	by_two(sends);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_recv(sharer, &in[i], 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	for (int i = 0; i < 4; i++)
		t_wait(cq, NULL, NULL);
	close_one(&sharer->fid);
	close_one(&cq->fid);
	close_one(&av->fid);
}

static void shared_addresses(void **state)
{
	static const enum fi_threading kinds[] = {FI_THREAD_SAFE, FI_THREAD_DOMAIN};

	(void)state;
	for (int i = 0; i < 2; i++) {
		t_domain_open(&domain, FI_SOCKADDR_IN, kinds[i]);
		by_two(shares);
		by_two(resolves);
		sends_to_shared();
		t_domain_close(&domain);
	}
}

/*
 * Event queues, counters and sets: one of each, the queue and the counter in the set.
 */

static struct fid_wait *set;
static struct fid_eq *eq, *eq_in_set;
static struct fid_cntr *cntr, *cntr_in_set;

static void open_waits(enum fi_wait_obj object)
{
	struct fi_wait_attr set_attr = {.wait_obj = object};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_FD};

	assert_int_equal(fi_wait_open(domain.fabric, &set_attr, &set), 0);
	assert_int_equal(fi_eq_open(domain.fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_cntr_open(domain.domain, &cntr_attr, &cntr, NULL), 0);
	eq_attr.wait_obj = cntr_attr.wait_obj = FI_WAIT_SET;
	eq_attr.wait_set = cntr_attr.wait_set = set;
	assert_int_equal(fi_eq_open(domain.fabric, &eq_attr, &eq_in_set, NULL), 0);
	assert_int_equal(fi_cntr_open(domain.domain, &cntr_attr, &cntr_in_set, NULL), 0);
}

static void close_waits(void)
{
	close_one(&cntr_in_set->fid);
	close_one(&eq_in_set->fid);
	close_one(&cntr->fid);
	close_one(&eq->fid);
	close_one(&set->fid);
}

static void opens_and_closes(void)
{
	int fd;

	open_waits(FI_WAIT_MUTEX_COND);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(fi_control(&cntr->fid, FI_GETWAIT, &fd), 0);
	close_waits();
}

static void sleeps_on_eq(void)
{
	uint32_t number;

	fi_eq_sread(eq, &number, NULL, 0, -1, 0);
}

static void sleeps_on_cntr(void)
{
	fi_cntr_wait(cntr, UINT64_MAX, -1);
}

static void sleeps_on_set(void)
{
	fi_wait(set, -1);
}

static void asks(void)
{
	struct fid *all[] = {&set->fid, &eq->fid, &cntr->fid};

	fi_cntr_read(cntr); /* what it has counted is told */
	assert_int_equal(fi_trywait(domain.fabric, all, 3), 0);
}

/* Each of them tells who waits what happens. */
static void wakes(void)
{
	struct fi_eq_entry event = {.data = 7}, got;
	uint64_t value = fi_cntr_read(cntr);
	uint32_t number;

	assert_int_equal(fi_eq_write(eq, 1, &event, sizeof(event), 0), sizeof(event));
	assert_int_equal(fi_eq_sread(eq, &number, &got, sizeof(got), T_PATIENCE, 0), sizeof(got));
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_int_equal(fi_cntr_wait(cntr, value + 1, T_PATIENCE), 0);
	assert_int_equal(fi_cntr_add(cntr_in_set, 1), 0);
	assert_int_equal(fi_wait(set, T_PATIENCE), 0);
	assert_int_equal(fi_eq_write(eq_in_set, 1, &event, sizeof(event), 0), sizeof(event));
	assert_int_equal(fi_wait(set, T_PATIENCE), 0);
	assert_int_equal(fi_eq_read(eq_in_set, &number, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
}

static void waits(void **state)
{
	static const enum fi_wait_obj objects[] = {FI_WAIT_FD, FI_WAIT_MUTEX_COND};

	(void)state;
	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	by_two(opens_and_closes);
	for (int i = 0; i < 2; i++) {
		open_waits(objects[i]);
		assert_false(is_done(sleeps_on_eq));
		assert_false(is_done(sleeps_on_cntr));
		assert_false(is_done(sleeps_on_set));
		by_two(wakes);
		by_two(asks);
		close_waits();
	}
	t_domain_close(&domain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connected_ends),
		cmocka_unit_test(shared_addresses),
		cmocka_unit_test(waits),
	};

	t_use_provider();
	return cmocka_run_group_tests_name("cancelled in slow calls", tests, NULL, NULL);
}
