/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_MSG: two processes, one of which is killed.
 *
 *     process 1: client ---- TCP on loopback ---- process 2: server
 *
 * The survivor sleeps, or polls, in whatever call it is about: it hears of the death, gets back what it had posted, and
 * can go on to serve somebody else.
 */
#include "fi_msg.h"
#include "fi_pair.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is under way when the server dies. */
enum when {
	IDLE,         /* receives posted */
	SENDING,      /* sends that no receive takes */
	WRITING,      /* a long write */
	NOT_ANSWERED, /* the server has read FI_CONNREQ and does not answer */
	WHENS
};

static const enum when whens[] = {IDLE, SENDING, WRITING, NOT_ANSWERED};
static const struct t_msg_options options = {.wait = FI_WAIT_FD};

static void die(void)
{
	raise(SIGKILL);
}

static unsigned char memory[1 << 20];

struct greeting {
	struct sockaddr_storage name;
	uint64_t key, base;
};

static void be_server(struct t_process *p)
{
	enum when when = *(const enum when *)p->arg;
	struct greeting g = {0};
	struct fid_mr *mr;
	struct t_side s;
	struct t_event e;

	t_side_open(&s, &options);
	t_side_listen(&s);
	assert_int_equal(fi_mr_reg(s.domain, memory, sizeof(memory), FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0);
	g = (struct greeting){s.name, fi_mr_key(mr), (uintptr_t)memory};
	t_say(p, &g, sizeof(g));
	e = t_side_event(&s, NULL, FI_CONNREQ);
	if (when == NOT_ANSWERED)
		die();
	t_side_endpoint(&s, e.info);
	assert_int_equal(fi_accept(s.ep, NULL, 0), 0);
	t_side_event(&s, NULL, FI_CONNECTED);
	t_meet(p, s.cq);
	die();
}

static void post(struct t_side *s, enum when when, const struct greeting *g)
{
	for (uintptr_t i = 0; i < 3; i++) {
		if (when == IDLE)
			assert_int_equal(fi_recv(s->ep, memory, 8, NULL, 0, (void *)i), 0);
		else if (when == SENDING)
			assert_int_equal(fi_send(s->ep, memory, 8, NULL, 0, (void *)i), 0);
		else
			assert_int_equal(
				fi_write(s->ep, memory, sizeof(memory), NULL, 0, g->base, g->key, (void *)i), 0);
	}
}

/* Sleeps until an event has come, however often it is woken. */
static void await(struct t_side *s, uint32_t number)
{
	struct fi_eq_cm_entry entry;
	uint32_t got;

	assert_int_equal(fi_eq_sread(s->eq, &got, &entry, sizeof(entry), T_PATIENCE, 0), sizeof(entry));
	assert_int_equal(got, number);
}

/* All that was posted ends, with an error unless it had gone through. */
static void take_back(struct t_side *s)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;

	for (uintptr_t i = 0; i < 3; i++) {
		ssize_t n = fi_cq_sread(s->cq, &e, 1, NULL, T_PATIENCE);

		if (n == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			assert_int_equal(fi_cq_readerr(s->cq, &err, 0), 1);
			assert_true(err.err == FI_ECANCELED || err.err == FI_ECONNRESET);
			assert_ptr_equal(err.op_context, (void *)i);
		} else {
			assert_int_equal(n, 1);
			assert_ptr_equal(e.op_context, (void *)i);
		}
	}
}

static void be_client(struct t_process *p)
{
	enum when when = *(const enum when *)p->arg;
	struct fi_eq_err_entry err = {0};
	struct fi_eq_cm_entry entry;
	struct greeting g;
	struct t_side s;
	uint32_t number;

	t_side_open(&s, &options);
	t_side_endpoint(&s, NULL);
	t_hear(p, &g, sizeof(g));
	assert_int_equal(fi_connect(s.ep, &g.name, NULL, 0), 0);
	if (when == NOT_ANSWERED) {
		assert_int_equal(fi_eq_sread(s.eq, &number, &entry, sizeof(entry), T_PATIENCE, 0), -FI_EAVAIL);
		assert_int_equal(fi_eq_readerr(s.eq, &err, 0), sizeof(err));
		assert_int_equal(err.err, FI_ECONNRESET);
		t_side_close(&s);
		return;
	}
	await(&s, FI_CONNECTED);
	post(&s, when, &g);
	t_meet(p, NULL);
	if (when == SENDING) { /* first the event, or first what comes back: the order is the program's */
		take_back(&s);
		await(&s, FI_SHUTDOWN);
	} else {
		await(&s, FI_SHUTDOWN);
		take_back(&s);
	}
	assert_int_equal(fi_send(s.ep, memory, 1, NULL, 0, NULL), -FI_ENOTCONN);
	t_side_close(&s);
}

static void server_dies(void **state)
{
	(void)state;
	for (int i = 0; i < WHENS; i++)
		t_two(NULL, be_client, be_server, &whens[i]);
}

static void kill_and_wait(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A client that dies while it waits for its answer, and one that dies connected; the third is served. */
static void be_mortal_client(struct t_process *p)
{
	struct greeting g;
	struct t_side s;

	t_hear(p, &g, sizeof(g));
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork(); /* before the provider is loaded in this process */
		char byte = 0;

		assert_true(pid >= 0);
		if (pid) {
			t_hear(p, &byte, 1);
			if (i == 0) {
				kill_and_wait(pid);
				t_say(p, &byte, 1);
				t_hear(p, &byte, 1);
			}
			continue;
		}
		t_side_open(&s, &options);
		t_side_endpoint(&s, NULL);
		assert_int_equal(fi_connect(s.ep, &g.name, NULL, 0), 0);
		await(&s, FI_CONNECTED); /* the first one is killed here */
		if (i == 1)
			die();
		assert_int_equal(fi_inject(s.ep, "served", 7, 0), 0);
		t_side_close(&s);
		exit(0);
	}
}

static void be_patient_server(struct t_process *p)
{
	struct greeting g = {0};
	struct t_side s;
	struct t_event e;
	char text[8], byte = 0;

	t_side_open(&s, &options);
	t_side_listen(&s);
	g.name = s.name;
	t_say(p, &g, sizeof(g));
	e = t_side_event(&s, NULL, FI_CONNREQ);
	t_meet(p, NULL); /* it is dead by now, and nobody has looked */
	assert_int_equal(fi_endpoint(s.domain, e.info, &s.ep, NULL), 0);
	assert_int_equal(fi_close(&s.ep->fid), 0);
	fi_freeinfo(e.info);
	t_say(p, &byte, 1);
	for (int i = 1; i < 3; i++) {
		e = t_side_event(&s, NULL, FI_CONNREQ);
		t_side_endpoint(&s, e.info);
		fi_freeinfo(e.info);
		assert_int_equal(fi_recv(s.ep, text, sizeof(text), NULL, 0, NULL), 0);
		assert_int_equal(fi_accept(s.ep, NULL, 0), 0);
		await(&s, FI_CONNECTED);
		await(&s, FI_SHUTDOWN);
		if (i == 1)
			assert_int_equal(t_wait_error(s.cq, NULL).err, FI_ECANCELED);
		else
			assert_int_equal(t_wait(s.cq, NULL, NULL).len, 7);
		assert_int_equal(fi_close(&s.ep->fid), 0);
		assert_int_equal(fi_close(&s.cq->fid), 0);
		s.ep = NULL;
		s.cq = NULL;
		t_say(p, &byte, 1);
	}
	assert_string_equal(text, "served");
	t_side_close(&s);
}

static void clients_die(void **state)
{
	(void)state;
	t_two(NULL, be_mortal_client, be_patient_server, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_dies),
		cmocka_unit_test(clients_die),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
