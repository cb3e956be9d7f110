/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of a connection: of memory that changes, to a peer that may be silent, and to one that is gone. By UDP, on
 * the simulated network (test_packets_sim) and on streams.
 *
 * Links: udp, sim, tcp.
 */
#include "connect/sides.h"
#include "connect/ways.h"

#include "channel_adapter/internal.h"

static const struct rwk_link_ops *link_ops;

/* Somebody stores to memory that is just being read. */
static int send_changing(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	far.in[1]++;
	return link_ops->send(l, to, iov, count);
}

/*
 * A Read of memory that changes meanwhile brings something: nothing is lost by it, and nobody waits for a time-out. By a
 * link that has room of its own for what it sends, and without.
 */
static void read_of_changing(void **state, bool room)
{
	static const uint32_t lengths[] = {8, 1000, 4000, 20000};
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_adapter_counters c;
	struct rwk_link_ops changing;
	struct rwk_qp_info info;
	struct rwk_link *l;

	sides_connect(&attr);
	l = far.qp->link;
	link_ops = l->ops;
	changing = *l->ops;
	changing.send = send_changing;
	if (!room)
		changing.reserve = NULL;
	l->ops = &changing;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_int_equal(ends_request(&near, RWK_REQUEST_READ, lengths[i], (uintptr_t)far.in, rwk_mr_key(far.in_mr)),
			0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	}
	l->ops = link_ops;
	rwk_adapter_get_counters(near.adapter, &c);
	assert_int_equal(c.bad_icrc, 0);
	rwk_qp_query(near.qp, &info);
	assert_int_equal(info.timeouts, 0);
	sides_close();
}

static void read_with_room(void **state)
{
	read_of_changing(state, true);
}

static void read_without_room(void **state)
{
	read_of_changing(state, false);
}

/* Who wants no limit says so by the largest number: silence is not noticed at once then. */
static void patient_for_ever(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_qp_info info;

	attr.qp.timeout_ns = UINT64_MAX;
	sides_connect(&attr);
	sides_exchange();
	rwk_qp_query(near.qp, &info);
	assert_int_equal(info.timeouts, 0);
	sides_close();
}

/* The peer is gone when a qp would tell it that it refuses what it has sent: who sleeps on the adapter's queues can. */
static void nobody_to_refuse(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_wc wc;
	int rc = -EAGAIN;

	sides_connect(&attr);
	ends_receive(&far, 1, 8);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 16, 0, 0), 0);
	rwk_cq_poll(near.send_cq, &wc, 1);
	assert_int_equal(rwk_disconnect(client.c), 0);
	sides_await(&server, RWK_CONNECTION_DISCONNECTED);
	sides_await(&client, RWK_CONNECTION_DISCONNECTED);
	for (uint64_t end = sides_ms() + 5000; rc && sides_ms() < end; rc = rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT)) {
		while (rwk_cq_poll(far.receive_cq, &wc, 1))
			;
	}
	assert_int_equal(rc, 0);
	sides_close();
}

/*
 * S0-3: who is connected by a call takes packets from the peer's adapter alone, and not from others of its host. (The
 * hosts of the simulated network have one.)
 */
static void s0_3_other_adapter(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_adapter_counters counters[2] = {0};
	struct end *ends[] = {&far, &near}, c;

	if (!world_has_fd) {
		sides_close();
		return;
	}
	sides_connect(&attr);
	for (unsigned i = 0; i < 2; i++) {
		ends_open_one(&c, ends[!i]->ip[15], w->service);
		ends_connect(&c, ends[i], ACCESS);
		assert_int_equal(ends_request(&c, RWK_REQUEST_SEND, 8, 0, 0), 0);
		for (uint64_t end = sides_ms() + 20000; !counters[i].packets_in; sides_poll()) {
			assert_true(sides_ms() < end);
			rwk_adapter_get_counters(ends[i]->adapter, &counters[i]);
		}
		assert_int_equal(counters[i].stranger, counters[i].packets_in);
		ends_close_one(&c);
	}
	sides_exchange();
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		by(read_with_room, rc_udp),
		by(read_with_room, rc_stream),
		by(read_without_room, rc_udp),
		by(patient_for_ever, rc_udp),
		by(patient_for_ever, rc_stream),
		by(nobody_to_refuse, rc_stream),
		by(s0_3_other_adapter, uc_udp),
		by(s0_3_other_adapter, rc_udp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
