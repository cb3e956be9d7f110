/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of memory that somebody stores to meanwhile, on the simulated network and by UDP: they bring what was there at
 * one time or another, and no packet is damaged by it (put.c). Here the memory changes whenever the link is called.
 */
#include "links/ends.h"

#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/port.h"

#include "base/param.h"

#define LONGEST 100000u
#define LENGTHS 7u

static uint8_t there[LONGEST], here[LONGEST];
static const struct rwk_link_ops *under;

static void change(void)
{
	for (size_t i = 0; i < LONGEST; i++)
		there[i] = there[i] < UINT8_MAX ? there[i] + 1 : 1;
}

static int send_changing(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	change();
	return under->send(l, to, iov, count);
}

static void *reserve_changing(struct rwk_link *l, const struct rwk_link_address *to, size_t len)
{
	change();
	return under->reserve(l, to, len);
}

static void flush_changing(struct rwk_link *l)
{
	change();
	under->flush(l);
}

static void pass(void)
{
	if (ends_net)
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 10000);
	ends_turn();
}

/* Whatever it brings, all of it comes. */
static void read_all(const struct rwk_rkey *key, size_t len)
{
	struct ends_op op;

	ends_make_op(&op, RWK_OP_READ, here, len);
	op.op.rkey = *key;
	memset(here, 0, len);
	memset(there, 1, len);
	assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
	while (!op.done) {
		assert_int_equal(rwk_packet_counters(ends[0]->port)->wrong_icrc, 0);
		pass();
	}
	assert_int_equal(op.status, 0);
	for (size_t i = 0; i < len; i++) /* there was never a 0 */
		assert_in_range(here[i], 1, UINT8_MAX);
}

/*
 * Short ones, longer ones, one packet of the largest size, and many; whole, and in pieces. `room`: if it has such. The
 * region is one of those that stay exposed while their program stores to them: it may be written, too (transport.h).
 */
static void read_with(uint16_t cut, bool room)
{
	static const size_t lengths[LENGTHS] = {8, 300, 2000, 4000, RWK_WIRE_OWN_MAX - 1, RWK_WIRE_OWN_MAX, LONGEST};
	struct iovec iov = {there, LONGEST};
	struct rwk_packet_path *path;
	struct rwk_packet_channel *ch;
	struct rwk_link_ops ops;
	struct rwk_rkey key;
	struct rwk_link *l;

	ends_connect(0, 1);
	ends_post(ends_side(0, 1));
	while (ends_side(0, 1)->ops || !ends_side(1, 0)->received)
		pass();
	assert_int_equal(
		ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key), 0);
	ch = rwk_packet_channel(ends_side(1, 0)->ch);
	path = ch->shared ? &ch->by->path : &ch->path;
	path->cut = cut;
	l = ends[1]->port->link[path->way];
	under = l->ops;
	ops = *under;
	ops.send = send_changing;
	ops.flush = flush_changing;
	ops.reserve = room && under->reserve ? reserve_changing : NULL;
	l->ops = &ops;
	for (size_t i = 0; i < LENGTHS; i++)
		read_all(&key, lengths[i]);
	l->ops = under;
	assert_int_equal(path->way, RWK_WAY_LOSSY);
	assert_true(!cut || ends[0]->port->count.pieces_in);
	assert_int_equal(ends[0]->port->last_pull, rwk_params.rendezvous == RWK_RENDEZVOUS_WRITE ? LENGTHS : 0);
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
}

static void read_by(enum rwk_param_rendezvous way)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.mtu = RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD;
	attr.path = (struct rwk_sim_path){.delay = 1000};
	rwk_params.rendezvous = way;
	rwk_params.link = RWK_LINK_UDP;
	rwk_params.cma = RWK_OFF; /* by SRC nobody else answers */
	for (int i = 0; i < 4; i++) {
		ends_open(&attr, NULL, 2);
		read_with(i % 2 ? 1024 : 0, i / 2);
		ends_transport->disconnect(ends_side(0, 1)->ch); /* and the other hears of it: no close waits */
		while (!ends_side(1, 0)->failed)
			pass();
		ends_close();
	}
	rwk_params.rendezvous = RWK_RENDEZVOUS_AUTO;
	rwk_params.link = RWK_LINK_AUTO;
	rwk_params.cma = RWK_AUTO;
}

/* Of which the peer's machine makes Read responses. */
static void reads(void **state)
{
	(void)state;
	read_by(RWK_RENDEZVOUS_READ);
}

/* Which the peer answers by Writes. */
static void writes(void **state)
{
	(void)state;
	read_by(RWK_RENDEZVOUS_WRITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(reads),
		ENDS_RC(writes),
		ENDS_ON(writes, "SRC", sim_shared_transport),
		ENDS_NET(reads),
		ENDS_NET(writes),
	};

	return cmocka_run_group_tests_name("packet/changing", tests, NULL, NULL);
}
