/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address vectors beyond a table of numbers: insertion that is told of by events, numbers of the program's own, peers
 * that are taken out and put in again. The vectors that processes share are in test_av_shared.c.
 */
#include "fi_pair.h"
#include "own_port.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 200 /* addresses */

static struct t_domain domain;

/* Opens a vector with FI_EVENT, and its queue, bound. */
static void open_with_events(struct fid_av **av, struct fid_eq **eq)
{
	struct fi_av_attr attr = {.flags = FI_EVENT};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};

	assert_int_equal(fi_av_open(domain.domain, &attr, av, NULL), 0);
	assert_int_equal(fi_eq_open(domain.fabric, &eq_attr, eq, NULL), 0);
	assert_int_equal(fi_av_insert(*av, NULL, 0, NULL, 0, NULL), -FI_ENOEQ);
	assert_int_equal(fi_av_bind(*av, &domain.domain->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_av_bind(*av, &(*eq)->fid, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_av_bind(*av, &(*eq)->fid, 0), 0);
	assert_int_equal(fi_av_bind(*av, &(*eq)->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&(*eq)->fid), -FI_EBUSY);
}

/* The next event: that the address with that index has failed. */
static void assert_failed(struct fid_eq *eq, struct fid_av *av, void *context, uint64_t index)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	uint32_t event;

	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), sizeof(err));
	assert_ptr_equal(err.fid, &av->fid);
	assert_ptr_equal(err.context, context);
	assert_int_equal(err.data, index);
	assert_int_not_equal(err.err, 0);
}

/* The next event: that all is done, and how many are in. */
static void assert_done(struct fid_eq *eq, struct fid_av *av, void *context, uint64_t inserted)
{
	struct fi_eq_entry entry;
	uint32_t event = 0;

	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), T_PATIENCE, 0), sizeof(entry));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_ptr_equal(entry.fid, &av->fid);
	assert_ptr_equal(entry.context, context);
	assert_int_equal(entry.data, inserted);
}

/*
 * With FI_EVENT each insertion has one event at its end, before it one for each address that has failed, and all have
 * the call's context. What the program is told is right also when the vector has been closed in the meantime.
 */
static void events(void **state)
{
	int contexts[4], errors[3];
	struct sockaddr_in in[3] = {{.sin_family = AF_INET, .sin_port = htons(5000)}, {.sin_family = AF_UNIX},
		{.sin_family = AF_INET, .sin_port = htons(5001)}};
	fi_addr_t number[3];
	struct fid_eq *eq;
	struct fid_av *av;
	uint32_t event;
	struct fi_eq_entry entry;

	(void)state;
	for (int i = 0; i < 3; i++)
		in[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	open_with_events(&av, &eq);
	assert_int_equal(fi_av_insert(av, in, 3, number, FI_SYNC_ERR, errors), -FI_EINVAL);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	assert_int_equal(fi_av_insert(av, in, 3, number, 0, &contexts[0]), 0);
	assert_int_equal(fi_av_insert(av, in, 0, number, 0, &contexts[1]), 0);
	assert_int_equal(fi_av_insertsvc(av, "no.such.host.invalid", "7", number + 1, 0, &contexts[2]), 0);
	assert_failed(eq, av, &contexts[0], 1);
	assert_done(eq, av, &contexts[0], 2);
	assert_int_equal(number[0], 0);
	assert_int_equal(number[1], FI_ADDR_NOTAVAIL);
	assert_int_equal(number[2], 1);
	assert_done(eq, av, &contexts[1], 0);
	assert_failed(eq, av, &contexts[2], 0);
	assert_done(eq, av, &contexts[2], 0);
	assert_int_equal(fi_av_insertsym(av, "127.0.0.1", 1, "65535", 2, number, 0, &contexts[3]), 0);
	assert_int_equal(number[0], 2);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_failed(eq, av, &contexts[3], 1);
	assert_done(eq, av, &contexts[3], 1);
	assert_int_equal(fi_close(&eq->fid), 0);
}

/* Vectors without FI_EVENT have no use for a queue. */
static void no_events(void **state)
{
	struct fi_av_attr attr = {0};
	struct fid_eq *eq;
	struct fid_av *av;

	(void)state;
	assert_int_equal(fi_av_open(domain.domain, &attr, &av, NULL), 0);
	assert_int_equal(fi_eq_open(domain.fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_av_bind(av, &eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
}

static void insert_ports(struct fid_av *av, unsigned first, unsigned count, fi_addr_t *numbers)
{
	struct sockaddr_in in[MANY];

	for (unsigned i = 0; i < count; i++) {
		in[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)(first + i))};
		in[i].sin_addr.s_addr = htonl(0x0a000001);
	}
	assert_int_equal(fi_av_insert(av, in, count, numbers, 0, NULL), count);
}

static void assert_port(struct fid_av *av, fi_addr_t number, unsigned port)
{
	struct sockaddr_in in;
	size_t len = sizeof(in);

	assert_int_equal(fi_av_lookup(av, number, &in, &len), 0);
	assert_int_equal(ntohs(in.sin_port), port);
}

/* Who gives no room for numbers counts on it: each address has the lowest that is free. */
static void lowest_number(void **state)
{
	fi_addr_t removed[3] = {150, 4, 2}, again[3] = {2, 4, 150}, numbers[4];
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fid_av *av;

	(void)state;
	assert_int_equal(fi_av_open(domain.domain, &attr, &av, NULL), 0);
	insert_ports(av, 1000, MANY, NULL);
	assert_int_equal(fi_av_remove(av, removed, 3, 0), 0);
	insert_ports(av, 2000, 4, numbers);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(numbers[i], again[i]);
	assert_int_equal(numbers[3], MANY);
	assert_int_equal(fi_av_remove(av, again, 3, 0), 0);
	insert_ports(av, 3000, MANY, NULL); /* more than there was room for */
	for (unsigned i = 0; i < 3; i++)
		assert_port(av, again[i], 3000 + i);
	assert_port(av, MANY, 2003);
	assert_port(av, MANY + 1, 3003);
	assert_port(av, 2 * MANY - 3, 3000 + MANY - 1);
	assert_port(av, 3, 1003);
	assert_int_equal(fi_close(&av->fid), 0);
}

/* One message from a to b: the source that b sees. */
static fi_addr_t source_seen(struct t_end *a, fi_addr_t to_b, struct t_end *b)
{
	fi_addr_t source;
	char in;

	assert_int_equal(fi_trecv(b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), 0);
	t_post(fi_tinject(a->ep, "x", 1, to_b, 0), a->cq, b->cq);
	t_wait(b->cq, a->cq, &source);
	return source;
}

/*
 * What a program gives with FI_AV_USER_ID is a message's source, also of a peer that has written before; sends go to
 * the number. An address that is put in again without one has its number as others have.
 */
static void user_ids(void **state)
{
	struct t_end a, b, c;
	fi_addr_t to_b, to_c, of_a = 0xabcdef0123456789, of_c = 7;
	fi_addr_t numbers[3];

	(void)state;
	t_end_open(&a, &domain, NULL);
	t_end_open(&b, &domain, NULL);
	t_end_open(&c, &domain, NULL);
	to_b = t_insert(&a, b.name);
	assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
	numbers[0] = of_a;
	assert_int_equal(fi_av_insert(b.av, a.name, 1, &numbers[0], FI_AV_USER_ID, NULL), 1);
	assert_int_equal(numbers[0], 0);
	numbers[1] = of_c;
	assert_int_equal(fi_av_insert(b.av, c.name, 1, &numbers[1], FI_AV_USER_ID, NULL), 1);
	assert_int_equal(numbers[1], 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(source_seen(&a, to_b, &b), of_a);
	assert_int_equal(source_seen(&b, numbers[0], &a), to_b);
	to_c = numbers[1];
	assert_int_equal(source_seen(&b, to_c, &c), FI_ADDR_NOTAVAIL);
	assert_int_equal(source_seen(&c, t_insert(&c, b.name), &b), of_c);

	assert_int_equal(t_set_user_id(b.av, numbers[0], 55, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(t_set_user_id(b.av, 99, 55, 0), -FI_EINVAL);
	assert_int_equal(t_set_user_id(b.av, numbers[0], 55, 0), 0);
	assert_int_equal(source_seen(&a, to_b, &b), 55);
	assert_int_equal(source_seen(&c, 0, &b), of_c);

	assert_int_equal(fi_av_remove(b.av, &numbers[0], 1, 0), 0);
	assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
	assert_int_equal(t_insert(&b, a.name), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(source_seen(&a, to_b, &b), 0);
	assert_int_equal(source_seen(&c, 0, &b), of_c);
	t_end_close(&a);
	t_end_close(&b);
	t_end_close(&c);
}

/*
 * In a vector that was opened with FI_AV_USER_ID (libfabric 1.20) nothing stands for an address, also of a peer that is
 * known, until the program says what does, and nothing again once it is removed. Sends and receives go by the number.
 */
static void user_ids_apart(void **state)
{
	static const struct t_options apart = {.av_flags = FI_AV_USER_ID};
	fi_addr_t to_b, number = 7;
	struct t_end a, b;

	(void)state;
	t_end_open(&a, &domain, NULL);
	t_end_open(&b, &domain, &apart);
	to_b = t_insert(&a, b.name);
	assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_insert(b.av, a.name, 1, &number, FI_AV_USER_ID, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(b.av, a.name, 1, &number, 0, NULL), 1);
	assert_int_equal(number, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
	assert_int_equal(t_set_user_id(b.av, number, 4711, 0), 0);
	assert_int_equal(source_seen(&a, to_b, &b), 4711);
	assert_int_equal(source_seen(&b, number, &a), to_b);

	/* There is room for IDs by now; the number has none again, and the next has none either. */
	assert_int_equal(fi_av_remove(b.av, &number, 1, 0), 0);
	for (fi_addr_t i = 0; i < 2; i++) {
		assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
		assert_int_equal(t_insert(&b, a.name), i);
		assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
	}
	assert_int_equal(fi_av_remove(b.av, &number, 1, 0), 0);
	assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
	assert_int_equal(t_set_user_id(b.av, 1, 12, 0), 0);
	assert_int_equal(source_seen(&a, to_b, &b), 12);
	t_end_close(&a);
	t_end_close(&b);
}

#define LONG ((size_t)4 << 20)

/*
 * Who is taken out while messages to and from him are under way gets and sends them all the same; what comes later has
 * no number, until he is put in again: then it is his, also if somebody else has the old one.
 */
static void removed_under_way(void **state)
{
	char *out = malloc(LONG), *in = malloc(LONG), *back = malloc(LONG), byte;
	struct t_end a, b, c;
	fi_addr_t to_a, to_b, source;

	(void)state;
	t_end_open(&a, &domain, NULL);
	t_end_open(&b, &domain, NULL);
	t_end_open(&c, &domain, NULL);
	to_b = t_insert(&a, b.name);
	to_a = t_insert(&b, a.name);
	t_fill(out, LONG, 1);
	assert_int_equal(fi_trecv(b.ep, back, LONG, NULL, to_a, 2, 0, back), 0);
	t_post(fi_tsend(b.ep, out, LONG, NULL, to_a, 1, out), b.cq, a.cq);
	assert_int_equal(fi_av_remove(b.av, &to_a, 1, 0), 0);
	assert_int_equal(fi_tsend(b.ep, out, 1, NULL, to_a, 1, NULL), -FI_EINVAL);
	assert_int_equal(fi_trecv(a.ep, in, LONG, NULL, FI_ADDR_UNSPEC, 1, 0, in), 0);
	assert_ptr_equal(t_wait(a.cq, b.cq, NULL).op_context, in);
	t_check(in, LONG, 1);
	assert_ptr_equal(t_wait(b.cq, a.cq, NULL).op_context, out);
	t_post(fi_tsend(a.ep, out, LONG, NULL, to_b, 2, out), a.cq, b.cq);
	assert_ptr_equal(t_wait(b.cq, a.cq, &source).op_context, back);
	assert_int_equal(source, FI_ADDR_NOTAVAIL);
	t_check(back, LONG, 1);
	t_wait(a.cq, b.cq, NULL);

	assert_int_equal(t_insert(&b, c.name), to_a); /* the number is another's now */
	assert_int_equal(source_seen(&a, to_b, &b), FI_ADDR_NOTAVAIL);
	assert_int_equal(source_seen(&c, t_insert(&c, b.name), &b), to_a);
	assert_int_equal(source_seen(&b, to_a, &c), 0);
	to_a = t_insert(&b, a.name);
	assert_int_equal(source_seen(&a, to_b, &b), to_a);
	assert_int_equal(source_seen(&b, to_a, &a), to_b);
	assert_int_equal(fi_trecv(a.ep, &byte, 1, NULL, to_b, 3, 0, NULL), 0);
	t_post(fi_tinject(b.ep, "x", 1, to_a, 3), b.cq, a.cq);
	t_wait(a.cq, b.cq, NULL);
	t_end_close(&a);
	t_end_close(&b);
	t_end_close(&c);
	free(out);
	free(in);
	free(back);
}

/* What a mortal says of itself. */
struct mortal {
	pid_t pid;
	struct sockaddr_in name;
};

/* A process with an endpoint on the port that it is told; it answers a message, and waits for its end. */
static void live(struct t_process *p)
{
	struct mortal self = {.pid = getpid()};
	struct t_domain d;
	fi_addr_t from;
	struct t_end e;
	char in;

	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	((struct sockaddr_in *)d.info->src_addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	t_hear(p, &((struct sockaddr_in *)d.info->src_addr)->sin_port, sizeof(in_port_t));
	t_end_open(&e, &d, NULL);
	memcpy(&self.name, e.name, sizeof(self.name));
	t_say(p, &self, sizeof(self));
	from = t_greet(p, &e);
	assert_int_equal(fi_trecv(e.ep, &in, 1, NULL, from, 1, 0, NULL), 0);
	t_wait(e.cq, NULL, NULL);
	t_post(fi_tsend(e.ep, &in, 1, NULL, from, 2, NULL), e.cq, NULL);
	for (;;)
		t_drive(e.cq);
}

/* Has one after another of them. */
static void mortals(struct t_process *p)
{
	int status;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			alarm(2 * T_PATIENCE / 1000);
			live(p);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static void exchange(struct t_end *e, fi_addr_t to)
{
	fi_addr_t source;
	char in;

	assert_int_equal(fi_trecv(e->ep, &in, 1, NULL, to, 2, 0, &in), 0);
	t_post(fi_tinject(e->ep, "x", 1, to, 1), e->cq, NULL);
	assert_ptr_equal(t_wait(e->cq, NULL, &source).op_context, &in);
	assert_int_equal(source, to);
	assert_int_equal(in, 'x');
}

static void survivor(struct t_process *p)
{
	struct mortal other = {.name.sin_port = htons(own_port())};
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;
	char in;

	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	for (int i = 0; i < 2; i++) {
		t_say(p, &other.name.sin_port, sizeof(in_port_t));
		t_hear(p, &other, sizeof(other));
		to = t_greet(p, &e);
		assert_int_equal(to, 0);
		exchange(&e, to);
		assert_int_equal(fi_trecv(e.ep, &in, 1, NULL, to, 3, 0, &in), 0);
		assert_int_equal(kill(other.pid, SIGKILL), 0);
		assert_ptr_equal(t_wait_error(e.cq, NULL).op_context, &in);
		assert_int_equal(fi_av_remove(e.av, &to, 1, 0), 0);
	}
	t_end_close(&e);
	t_domain_close(&d);
}

/* Who was killed, and has begun anew at the same IP and port, is reached again once he was taken out and put in. */
static void restarted(void **state)
{
	(void)state;
	t_two("shm", survivor, mortals, NULL);
	t_two("udp", survivor, mortals, NULL);
}

/* An endpoint that is bound to its IP, which the name of one that is not says. */
static void open_named(struct t_process *p, struct t_domain *d, struct t_end *e, fi_addr_t *to)
{
	struct sockaddr_in *own;

	t_domain_open(d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	own = d->info->src_addr;
	t_end_open(e, d, NULL);
	memcpy(own, e->name, sizeof(*own));
	own->sin_port = 0;
	t_end_close(e);
	t_end_open(e, d, NULL);
	*to = t_greet(p, e);
}

static void asks(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;

	open_named(p, &d, &e, &to);
	exchange(&e, to);
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
}

static void answers(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;
	char in;

	open_named(p, &d, &e, &to);
	assert_int_equal(fi_trecv(e.ep, &in, 1, NULL, to, 1, 0, NULL), 0);
	t_wait(e.cq, NULL, NULL);
	t_post(fi_tsend(e.ep, &in, 1, NULL, to, 2, NULL), e.cq, NULL);
	t_wait(e.cq, NULL, NULL);
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
}

/* Who has one IP of his host's is reached by that one, from the same host too, by whichever link. */
static void one_of_its_ips(void **state)
{
	(void)state;
	t_two("shm", asks, answers, NULL);
	t_two("udp", asks, answers, NULL);
	t_two("tcp", asks, answers, NULL);
}

static int open_domain(void **state)
{
	struct fi_info *hints = t_hints();

	hints->caps = FI_TAGGED | FI_SOURCE | FI_AV_USER_ID;
	hints->addr_format = *(const uint32_t *)*state;
	t_domain_open_with(&domain, hints);
	assert_true(domain.info->caps & FI_AV_USER_ID);
	assert_true(domain.info->domain_attr->caps & FI_AV_USER_ID);
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
	static uint32_t native = 0, sockets = FI_SOCKADDR_IN;
	const struct CMUnitTest processes[] = {
		cmocka_unit_test(restarted),
		cmocka_unit_test(one_of_its_ips),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate_setup_teardown(events, open_domain, close_domain, &sockets),
		cmocka_unit_test_prestate_setup_teardown(no_events, open_domain, close_domain, &native),
		cmocka_unit_test_prestate_setup_teardown(lowest_number, open_domain, close_domain, &sockets),
		cmocka_unit_test_prestate_setup_teardown(user_ids, open_domain, close_domain, &native),
		cmocka_unit_test_prestate_setup_teardown(user_ids, open_domain, close_domain, &sockets),
		cmocka_unit_test_prestate_setup_teardown(user_ids_apart, open_domain, close_domain, &native),
		cmocka_unit_test_prestate_setup_teardown(user_ids_apart, open_domain, close_domain, &sockets),
		cmocka_unit_test_prestate_setup_teardown(removed_under_way, open_domain, close_domain, &native),
		cmocka_unit_test_prestate_setup_teardown(removed_under_way, open_domain, close_domain, &sockets),
	};
	int failed = cmocka_run_group_tests_name("processes", processes, NULL, NULL);

	t_use_provider();
	return failed + cmocka_run_group_tests_name("one process", tests, NULL, NULL);
}
