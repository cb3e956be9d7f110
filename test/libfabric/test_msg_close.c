/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_MSG: how connections end, and requests for one. Two sides in one process, each with a fabric of its own:
 *
 *     client ---- TCP on loopback: handshake, then packets ---- server, which listens
 */
#include "fi_msg.h"

#include <poll.h>

static struct t_side client, server;

/* The peer hears of fi_shutdown and of fi_close, and who calls fi_shutdown too; then nothing goes any more. */
static void shuts_down(void **state)
{
	struct t_event e;
	char byte = 0;

	(void)state;
	for (int by_close = 0; by_close < 2; by_close++) {
		t_sides_open(&client, &server, NULL);
		if (by_close) {
			assert_int_equal(fi_close(&client.ep->fid), 0);
			client.ep = NULL;
		} else {
			assert_int_equal(fi_shutdown(client.ep, 0), 0);
			assert_int_equal(fi_shutdown(client.ep, 0), -FI_ENOTCONN);
			assert_ptr_equal(t_side_event(&client, NULL, FI_SHUTDOWN).fid, &client.ep->fid);
			assert_int_equal(fi_send(client.ep, &byte, 1, NULL, 0, NULL), -FI_ENOTCONN);
			assert_int_equal(fi_recv(client.ep, &byte, 1, NULL, 0, NULL), -FI_ENOTCONN);
		}
		e = t_side_event(&server, &client, FI_SHUTDOWN);
		assert_ptr_equal(e.fid, &server.ep->fid);
		assert_int_equal(fi_send(server.ep, &byte, 1, NULL, 0, NULL), -FI_ENOTCONN);
		t_side_no_event(&client, &server);
		t_sides_close(&client, &server);
	}
}

/* Both ends end it, neither has heard of the other: each has one event. */
static void both_shut_down(void **state)
{
	(void)state;
	t_sides_open(&client, &server, NULL);
	assert_int_equal(fi_shutdown(client.ep, 0), 0);
	assert_int_equal(fi_shutdown(server.ep, 0), 0);
	t_side_event(&client, &server, FI_SHUTDOWN);
	t_side_event(&server, &client, FI_SHUTDOWN);
	t_side_no_event(&client, &server);
	t_side_no_event(&server, &client);
	t_sides_close(&client, &server);
}

/*
 * The peer has ended it, which is seen while what was injected is waited for, or before: one event all the same. Now
 * and then alone events are looked for besides what has come, so with so many looks before.
 */
static void shut_down_once(void **state)
{
	struct fi_cq_entry entry;
	char byte = 0;

	(void)state;
	for (int looks = 0; looks < 8; looks++) {
		t_sides_open(&client, &server, NULL);
		for (int i = 0; i < looks; i++)
			assert_int_equal(fi_cq_read(client.cq, &entry, 1), -FI_EAGAIN);
		assert_int_equal(fi_close(&server.ep->fid), 0);
		server.ep = NULL;
		for (int i = 0; i < 100; i++)
			t_side_drive(&server);
		fi_inject(client.ep, &byte, 1, 0);
		fi_shutdown(client.ep, 0);
		t_side_event(&client, &server, FI_SHUTDOWN);
		t_side_no_event(&client, &server);
		t_sides_close(&client, &server);
	}
}

/* An endpoint may be closed whatever it is about; its events go with it. */
static void closes_in_any_state(void **state)
{
	char byte;

	(void)state;
	for (int when = 0; when < 5; when++) {
		t_sides_listen(&client, &server, NULL);
		if (when == 0) {
			assert_int_equal(fi_endpoint(client.domain, client.info, &client.ep, NULL), 0);
		} else {
			t_side_endpoint(&client, NULL);
			assert_int_equal(fi_recv(client.ep, &byte, 1, NULL, 0, NULL), 0);
		}
		if (when == 2 || when == 3)
			assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
		if (when == 3) /* its error waits */
			fi_freeinfo(t_side_event(&server, &client, FI_CONNREQ).info);
		if (when == 4) {
			t_side_connect(&client, &server);
			assert_int_equal(fi_shutdown(server.ep, 0), 0);
			for (int i = 0; i < 100; i++)
				t_side_drive(&client); /* FI_SHUTDOWN waits */
		}
		assert_int_equal(fi_close(&client.ep->fid), 0);
		client.ep = NULL;
		t_side_no_event(&client, &server);
		t_sides_close(&client, &server);
	}
}

/*
 * What connections have to do is done, though the server's program takes nothing from its queue: `other` is one of the
 * same fabric, in which there is never anything.
 */
static void drive_past(struct fid_eq *other)
{
	struct fi_eq_cm_entry entry;
	uint32_t number;

	t_side_drive(&client);
	assert_int_equal(fi_eq_read(other, &number, &entry, sizeof(entry), 0), -FI_EAGAIN);
}

/* What a look at the server's queue says that takes nothing and sees nothing: -FI_ETOOSMALL if there is something. */
static ssize_t fullness(void)
{
	uint32_t number;

	return fi_eq_read(server.eq, &number, NULL, 0, FI_PEEK);
}

/* Nothing is in the queue, by any way to find out. */
static bool is_empty(void)
{
	struct fid *fids[] = {&server.eq->fid};
	struct pollfd p = {.events = POLLIN};

	assert_int_equal(fi_control(fids[0], FI_GETWAIT, &p.fd), 0);
	return fullness() == -FI_EAGAIN && !fi_trywait(server.fabric, fids, 1) && !poll(&p, 1, 0);
}

static void open_past(struct fid_eq **other)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	struct fi_eq_attr attr = {0};

	t_sides_listen(&client, &server, &o);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_eq_open(server.fabric, &attr, other, NULL), 0);
}

/* Who hangs up before the program has seen that he asks leaves nothing behind, in whatever order they go. */
static void hang_up_unseen(void **state)
{
	enum { ROUNDS = 10, N = 20 };
	struct fid_ep *ep[N];
	struct fid_eq *other;
	int64_t end = t_now() + T_PATIENCE;

	(void)state;
	open_past(&other);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++) {
			assert_int_equal(fi_endpoint(client.domain, client.info, &ep[i], NULL), 0);
			assert_int_equal(fi_ep_bind(ep[i], &client.eq->fid, 0), 0);
			assert_int_equal(fi_ep_bind(ep[i], &client.cq->fid, FI_TRANSMIT | FI_RECV), 0);
			assert_int_equal(fi_connect(ep[i], &server.name, NULL, 0), 0);
		}
		while (fullness() != -FI_ETOOSMALL && t_now() < end)
			drive_past(other);
		assert_int_equal(fullness(), -FI_ETOOSMALL);
		for (int i = 0; i < 100; i++)
			drive_past(other);
		for (int i = 0; i < N; i++)
			assert_int_equal(fi_close(&ep[round % 2 ? N - 1 - i : i]->fid), 0);
		while (!is_empty() && t_now() < end)
			drive_past(other);
		assert_true(is_empty());
	}
	t_side_no_event(&server, &client);
	t_side_connect(&client, &server);
	assert_int_equal(fi_close(&other->fid), 0);
	t_sides_close(&client, &server);
}

/* The server's program has seen FI_CONNREQ, and left it where it is. */
static struct fi_info *peek(struct fid_eq *other)
{
	struct fi_eq_cm_entry entry;
	int64_t end = t_now() + T_PATIENCE;
	uint32_t number = 0;

	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
	while (fi_eq_read(server.eq, &number, &entry, sizeof(entry), FI_PEEK) == -FI_EAGAIN && t_now() < end)
		drive_past(other);
	assert_int_equal(number, FI_CONNREQ);
	return entry.info;
}

/* A request that has been seen, by FI_PEEK, stays when the client hangs up. */
static void hangs_up_seen(void **state)
{
	struct fi_info *info;
	struct fid_eq *other;
	struct t_event e;

	(void)state;
	open_past(&other);
	info = peek(other);
	assert_int_equal(fi_close(&client.ep->fid), 0);
	client.ep = NULL;
	for (int i = 0; i < 100; i++)
		drive_past(other);
	e = t_side_event(&server, NULL, FI_CONNREQ);
	assert_ptr_equal(e.info, info);
	t_side_endpoint(&server, e.info);
	fi_freeinfo(e.info);
	assert_int_equal(fi_accept(server.ep, NULL, 0), -FI_ENOTCONN);
	assert_int_equal(fi_close(&other->fid), 0);
	t_sides_close(&client, &server);
}

/* So it does when the passive endpoint is closed, if it has an endpoint by then, or is answered. */
static void closes_with_one_seen(void **state)
{
	struct fid_eq *other;

	(void)state;
	for (int accepts = 0; accepts < 2; accepts++) {
		open_past(&other);
		t_side_endpoint(&server, peek(other));
		if (accepts)
			assert_int_equal(fi_accept(server.ep, NULL, 0), 0);
		assert_int_equal(fi_close(&server.pep->fid), 0);
		server.pep = NULL;
		t_side_no_event(&server, NULL);
		if (!accepts)
			assert_int_equal(fi_accept(server.ep, NULL, 0), 0);
		t_side_event(&client, &server, FI_CONNECTED);
		t_side_event(&server, &client, FI_CONNECTED);
		assert_int_equal(fi_close(&other->fid), 0);
		t_sides_close(&client, &server);
	}
}

/* One that has been seen and nothing more goes with the passive endpoint: nobody could answer it any more. */
static void closes_with_one_only_seen(void **state)
{
	unsigned char data[T_CM_DATA];
	struct fid_eq *other;

	(void)state;
	open_past(&other);
	peek(other);
	assert_int_equal(fi_close(&server.pep->fid), 0);
	server.pep = NULL;
	t_side_no_event(&server, NULL);
	assert_int_equal(t_side_error(&client, &server, data).err, FI_ECONNRESET);
	assert_int_equal(fi_close(&other->fid), 0);
	t_sides_close(&client, &server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shuts_down),
		cmocka_unit_test(both_shut_down),
		cmocka_unit_test(shut_down_once),
		cmocka_unit_test(closes_in_any_state),
		cmocka_unit_test(hang_up_unseen),
		cmocka_unit_test(hangs_up_seen),
		cmocka_unit_test(closes_with_one_seen),
		cmocka_unit_test(closes_with_one_only_seen),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
