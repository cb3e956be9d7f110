/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rows of UC ask of a connection as a whole, between adapters: over UDP, on a TCP connection and on the
 * simulated network. What each operation does: test_operations; packets by hand: test_packets.
 *
 * Links: udp, tcp, sim.
 */
#define _GNU_SOURCE /* memfd_create */
#include "channel_adapter/by_hand.h"
#include "channel_adapter/internal.h"
#include "channel_adapter/world.h"

#include "repeated.h"

#define LARGEST 0x80000000u /* bytes of a message */
#define PIECES  ((REGION + PMTU - 1) / PMTU)

#define UNDER_WAY 64u /* packets */

static struct rwk_adapter_counters counters_of(const struct end *e)
{
	struct rwk_adapter_counters c;

	rwk_adapter_get_counters(e->adapter, &c);
	return c;
}

static const struct rwk_link_ops *link_ops;

static int send_paced(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	if (counters_of(&near).packets_out >= counters().packets_in + UNDER_WAY)
		return -EAGAIN;
	return link_ops->send(l, to, iov, count);
}

/* Opens both, with a link that takes no more than that at once: a stream's own, UDP's socket would lose the rest. */
static void open_paced(void)
{
	static struct rwk_link_ops paced;

	ends_open(RWK_QP_UC);
	if (world_is_stream)
		return;
	link_ops = near.qp->link->ops;
	paced = *link_ops;
	paced.send = send_paced;
	near.qp->link->ops = &paced;
}

static void step(void)
{
	if (ends_step)
		ends_step();
}

/* S0-2: the step to RTR is refused without the peer's number and address, or with values that do not exist. (tcp:
 * test_convert)
 */
static void s0_2_connection(void **state)
{
	static const uint8_t somebody[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};
	static const uint8_t nobody[16], nobody4[16] = {[10] = 0xff, [11] = 0xff};
	static const struct {
		const uint8_t *ip;
		uint32_t qpn, pmtu;
		unsigned access;
		int rc;
	} cases[] = {
		{somebody, 5, 300, ACCESS, -EINVAL},
		{somebody, 5, 8192, ACCESS, -ENETUNREACH},
		{somebody, 5, 0, RWK_ACCESS_LOCAL_WRITE, -EINVAL},
		{somebody, 0, 0, ACCESS, -EINVAL},
		{somebody, 1, 0, ACCESS, -EINVAL},
		{somebody, 0xffffff, 0, ACCESS, -EINVAL},
		{somebody, 1 << 24 | 5, 0, ACCESS, -EINVAL},
		{nobody, 5, 0, ACCESS, -EINVAL},
		{nobody4, 5, 0, ACCESS, -EINVAL},
		{nobody, 0, 0, ACCESS, -EINVAL},
		{somebody, 5, 0, ACCESS, 0},
	};
	struct rwk_qp_attr attr = {.peer_qpn = 5};

	if (world_is_stream)
		skip();
	ends_open_one(&near, 1, service_of(state));
	memcpy(attr.peer_ip, somebody, 16);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTR, &attr), -EINVAL);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTS, NULL), -EINVAL);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTR, NULL), -EINVAL);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(attr.peer_ip, cases[i].ip, 16);
		attr.peer_qpn = cases[i].qpn;
		attr.pmtu = cases[i].pmtu;
		attr.access = cases[i].access;
		assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTR, &attr), cases[i].rc);
	}
	ends_close_one(&near);
}

/* A third adapter, whose qp names far's as its peer, does not reach it, and the connection is not hurt. */
static void third(uint8_t host)
{
	struct end c;

	ends_open(RWK_QP_UC);
	ends_open_one(&c, host, RWK_QP_UC);
	ends_connect(&c, &far, ACCESS);
	ends_receive(&far, 1, 100);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(ends_request(&c, RWK_REQUEST_SEND, 8, 0, 0), 0);
	await_packets(20);
	assert_int_equal(counters().stranger, 20);
	untouched();
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 9, 0, 0), 0);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 9);
	assert_int_equal(ends_lost(&far), 0);
	ends_close_one(&c);
	ends_close();
}

/* S0-3: from another host; and from the peer's, where it is known that it keeps to its port. (tcp: test_convert) */
static void s0_3_third(void **state)
{
	(void)state;
	if (world_is_stream)
		skip();
	third(3);
	if (!world_has_fd)
		return; /* a host has one port there */
	ends_one_port = true;
	third(1);
	ends_one_port = false;
}

/* However long it takes, as long as packets come. */
static struct rwk_wc await_large(void)
{
	uint64_t before = 0, now;
	struct rwk_wc wc;

	for (unsigned idle = 0; !rwk_cq_poll(far.receive_cq, &wc, 1); idle++) {
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0), 0);
		step();
		now = counters().packets_in;
		if (now != before)
			idle = 0;
		before = now;
		assert_true(idle < 1000000);
	}
	return wc;
}

static void large(enum rwk_request_type type, struct rwk_sge *from, struct rwk_sge *to)
{
	struct rwk_request r = {.type = type, .flags = RWK_REQUEST_IMM, .sge = from, .sge_count = 1};
	struct rwk_receive v = {.sge = to, .sge_count = 1};
	struct rwk_wc wc;

	r.remote = (uintptr_t)to->address;
	r.key = to->key;
	memset(to->address, 0xee, REPEATED_PERIOD);
	assert_int_equal(rwk_qp_post_receive(far.qp, &v), 0);
	assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	wc = await_large();
	assert_true(!wc.status && wc.length == from->length);
	assert_memory_equal(from->address, to->address, REPEATED_PERIOD);
	assert_int_equal(ends_await(&near, near.send_cq).length, from->length);
	from->length = LARGEST + 1;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EMSGSIZE);
}

/* A stream carries 2 GB in some seconds: once; UDP takes too long for it. */
static size_t longest(enum rwk_request_type type)
{
	bool some = world_is_stream ? type == RWK_REQUEST_WRITE : ends_step != NULL;

	return some && !getenv("RWK_TEST_SHORT") ? LARGEST : 4 * REPEATED_PERIOD;
}

/* S0-4: up to 2 GB, and not a byte more; where that takes too long, some MB. */
static void s0_4_large(void **state)
{
	size_t mapped = LARGEST + (size_t)REPEATED_PERIOD;
	uint8_t *from = repeated_map(mapped), *to = repeated_map(mapped);
	struct rwk_mr *from_mr, *to_mr;

	(void)state;
	repeated_fill(from);
	open_paced();
	assert_int_equal(rwk_mr_register(near.pd, from, mapped, 0, &from_mr), 0);
	assert_int_equal(rwk_mr_register(far.pd, to, mapped, ACCESS | RWK_ACCESS_LOCAL_WRITE, &to_mr), 0);
	for (unsigned type = RWK_REQUEST_SEND; type <= RWK_REQUEST_WRITE; type++)
		large(type, &(struct rwk_sge){from, longest(type), rwk_mr_key(from_mr)},
			&(struct rwk_sge){to, longest(type), rwk_mr_key(to_mr)});
	assert_int_equal(counters().packets_out, 0);
	rwk_mr_deregister(from_mr);
	rwk_mr_deregister(to_mr);
	ends_close();
	munmap(from, mapped);
	munmap(to, mapped);
}

/*
 * S0-6: a request completes when its last packet is with the link, not before, though that takes no more now; and then
 * its memory is the client's: what is stored there at once does not go out.
 */
static void s0_6_sent(void **state)
{
	unsigned count = world_is_stream ? DEPTH : 1; /* more than the link takes */
	uint8_t *sent = malloc(REGION);
	struct rwk_wc wc;

	(void)state;
	assert_non_null(sent);
	open_paced();
	memcpy(sent, near.out, REGION);
	for (unsigned i = 0; i < count; i++) {
		ends_receive(&far, i, REGION);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, REGION, 0, 0), 0);
	}
	for (unsigned i = 0; i < count; i++) {
		for (unsigned idle = 0; !rwk_cq_poll(near.send_cq, &wc, 1); step(), idle++)
			if (idle > 100) /* so much for what goes while nobody takes it */
				assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		assert_int_equal(wc.status, 0);
		assert_true(counters_of(&near).packets_out >= (i + 1) * PIECES);
	}
	memset(near.out, 0x55, REGION);
	for (unsigned i = 0; i < count; i++) {
		wc = ends_await(&far, far.receive_cq);
		assert_true(!wc.status && wc.id == i && wc.length == REGION);
		assert_memory_equal(far.in, sent, REGION);
	}
	assert_int_equal(ends_lost(&far), 0);
	free(sent);
	ends_close();
}

/* S0-12: of a message of three packets one is damaged: it is found by its ICRC, and the message dropped. */
static void s0_12_damaged(void **state)
{
	(void)state;
	if (!world_corrupt)
		skip();
	ends_open(RWK_QP_UC);
	for (unsigned nth = 1; nth <= 3; nth++) {
		ends_receive(&far, nth, 3 * PMTU);
		world_corrupt(nth);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 3 * PMTU, 0, 0), 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		ends_quiet();
		assert_int_equal(counters().bad_icrc, nth);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, nth, 0, 0), 0);
		assert_int_equal(ends_await(&far, far.receive_cq).length, nth);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		assert_int_equal(ends_lost(&far), 1);
	}
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(s0_2_connection, world_rc),
		in_world_by(s0_2_connection, world_uc),
		in_world(s0_3_third),
		in_world(s0_4_large),
		in_world(s0_6_sent),
		in_world(s0_12_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
