/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_DGRAM between two processes: parameters, and the death of one.
 */
#include "fi_pair.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST 4096u

static unsigned char bytes[LONGEST + 1];

static void open_end(struct t_domain *d, struct t_end *e)
{
	struct fi_info *hints = t_hints();

	hints->ep_attr->type = FI_EP_DGRAM;
	t_domain_open_with(d, hints);
	t_end_open(e, d, NULL);
}

static void close_end(struct t_domain *d, struct t_end *e)
{
	t_end_close(e);
	t_domain_close(d);
}

/* Sends so many, whatever becomes of them. */
static void send_many(struct t_end *e, fi_addr_t to, int count)
{
	for (int i = 0; i < count; i++)
		t_post(fi_inject(e->ep, bytes, 200, to), e->cq, NULL);
}

/* The peer is killed: sends go on as if it were there, and what is for others gets there. */
static void sends_on(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to, self;
	char byte;

	open_end(&d, &e);
	to = t_greet(p, &e);
	self = t_insert(&e, e.name);
	while (recv(p->fd, &byte, 1, MSG_DONTWAIT) < 0)
		send_many(&e, to, 1);
	send_many(&e, to, 1000);
	t_nothing(e.cq, NULL);
	assert_int_equal(fi_recv(e.ep, bytes, sizeof(bytes), NULL, 0, &e), 0);
	send_many(&e, self, 1);
	assert_ptr_equal(t_wait(e.cq, NULL, NULL).op_context, &e);
	close_end(&d, &e);
}

static void is_killed(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;

	open_end(&d, &e);
	t_greet(p, &e);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(fi_recv(e.ep, bytes, sizeof(bytes), NULL, 0, &e), 0);
		assert_int_equal(t_wait(e.cq, NULL, NULL).len, 200);
	}
	kill(getpid(), SIGKILL);
}

static void death(void **state)
{
	(void)state;
	t_two(NULL, sends_on, is_killed, NULL);
}

/* FI_ROPEWALK_PMTU: what a datagram carries at most, here at both ends. */
static void sends_longest(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;

	open_end(&d, &e);
	assert_int_equal(d.info->ep_attr->max_msg_size, LONGEST);
	to = t_greet(p, &e);
	t_meet(p, e.cq);
	t_fill(bytes, LONGEST, 7);
	assert_int_equal(fi_send(e.ep, bytes, LONGEST + 1, NULL, to, NULL), -FI_EMSGSIZE);
	assert_int_equal(fi_send(e.ep, bytes, LONGEST, NULL, to, NULL), 0);
	t_meet(p, e.cq);
	close_end(&d, &e);
}

static void receives_longest(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;

	open_end(&d, &e);
	t_greet(p, &e);
	assert_int_equal(fi_recv(e.ep, bytes, LONGEST, NULL, 0, &e), 0);
	t_meet(p, e.cq);
	assert_int_equal(t_wait(e.cq, NULL, NULL).len, LONGEST);
	t_check(bytes, LONGEST, 7);
	t_meet(p, e.cq);
	close_end(&d, &e);
}

static void longest(void **state)
{
	(void)state;
	setenv("FI_ROPEWALK_PMTU", "4096", 1);
	t_two(NULL, sends_longest, receives_longest, NULL);
	unsetenv("FI_ROPEWALK_PMTU");
}

/* Without UDP there are none, and the other kinds are there. */
static void finds_none(struct t_process *p)
{
	struct fi_info *hints = t_hints(), *info;

	(void)p;
	hints->ep_attr->type = FI_EP_DGRAM;
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	hints->ep_attr->type = FI_EP_UNSPEC;
	assert_int_equal(t_getinfo(hints, &info), 0);
	for (struct fi_info *i = info; i; i = i->next)
		assert_int_not_equal(i->ep_attr->type, FI_EP_DGRAM);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void without_udp(void **state)
{
	(void)state;
	setenv("FI_ROPEWALK_UDP", "no", 1);
	t_two(NULL, finds_none, finds_none, NULL);
	unsetenv("FI_ROPEWALK_UDP");
}

/* FI_ROPEWALK_STATS: what became of the datagrams is said when the endpoint is closed. */
static void is_asked(struct t_process *p)
{
	char text[2048] = "";
	struct t_domain d;
	struct t_end e;
	int fd[2], kept = dup(STDERR_FILENO);

	(void)p;
	assert_int_equal(pipe(fd), 0);
	dup2(fd[1], STDERR_FILENO);
	open_end(&d, &e);
	send_many(&e, t_insert(&e, e.name), 3);
	usleep(20000); /* the kernel may deliver later than the send returns */
	t_nothing(e.cq, NULL);
	close_end(&d, &e);
	dup2(kept, STDERR_FILENO);
	assert_true(read(fd[0], text, sizeof(text) - 1) > 0);
	if (!strstr(text, "sent 3 datagrams, received 0; dropped 3 that found no receive, 0 damaged"))
		fail_msg("it says: %s", text);
}

static void statistics(void **state)
{
	(void)state;
	setenv("FI_ROPEWALK_STATS", "yes", 1);
	t_two(NULL, is_asked, is_asked, NULL);
	unsetenv("FI_ROPEWALK_STATS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death),
		cmocka_unit_test(longest),
		cmocka_unit_test(without_udp),
		cmocka_unit_test(statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
