/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a QP remembers by packet numbers, millions of packets later: then a number that lies far behind would be taken
 * for one that lies ahead, or for a newer one that is the same. One end by itself; HALF is a little more than half the
 * number space.
 */
#include "rwk_test.h"

#include "rc/end.h"
#include "rc/internal.h"

#define HALF    ((1u << 23) + 256u)
#define SRQ     5u
#define ATOMICS (RWK_RC_READS_MAX + 4u)

static struct rwk_wire packet_of(uint8_t opcode, uint32_t psn)
{
	return (struct rwk_wire){
		.opcode = opcode, .migrated = true, .pkey = RWK_WIRE_PKEY, .qpn = 0x11, .psn = psn, .ack_request = true};
}

/* Drops what was received and what was sent. */
static void clear(struct end *e)
{
	struct end_message *m;

	while ((m = end_take(e)))
		free(m);
	end_sent(e);
}

/* Sends of nothing, from *psn on. */
static void receive_many(struct end *e, uint8_t class, uint32_t *psn, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, *psn = rwk_psn_add(*psn, 1)) {
		struct rwk_wire w = packet_of(class | RWK_WIRE_SEND_ONLY, *psn);

		w.srqn = SRQ + 1;
		rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
		if (i % 256 == 0) {
			end_pump(e);
			clear(e);
		}
	}
	end_pump(e);
	clear(e);
}

/* BUSY: once it is over that Sends to an SRQ are passed over, it stays so. */
static void passed_over_once(void **state)
{
	struct rwk_rc_attr attr = end_own();
	uint32_t psn = attr.receive_psn;
	struct rwk_wire w;
	struct end *e;

	(void)state;
	attr.service = RWK_WIRE_SRC;
	attr.own |= RWK_RC_BUSY;
	e = end_alone(&attr);
	e->busy = 1u << SRQ;
	w = packet_of(RWK_WIRE_SRC | RWK_WIRE_SEND_ONLY, psn);
	w.srqn = SRQ;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.aeth.syndrome, RWK_RC_NAK_BUSY);
	e->busy = 0;
	w.opcode = RWK_WIRE_SRC | RWK_WIRE_WRITE_ONLY;
	w.reth.address = 1u << 24 | rwk_psn_add(psn, 1);
	end_give(e, &w, NULL, 0);
	psn = rwk_psn_add(psn, 1);
	receive_many(e, RWK_WIRE_SRC, &psn, HALF);
	e->message_count = 0;
	w = packet_of(RWK_WIRE_SRC | RWK_WIRE_SEND_ONLY, psn);
	w.srqn = SRQ;
	end_give(e, &w, NULL, 0);
	assert_int_equal(e->message_count, 1);
	clear(e);
	end_close(e);
}

/* One atomic of the peer's, of which it has had no answer yet. */
static void add_one(struct end *e, uint32_t psn)
{
	struct rwk_wire w = packet_of(RWK_WIRE_RC | RWK_WIRE_FETCH_ADD, psn);

	w.atomic.address = e->base;
	w.atomic.key = END_KEY;
	w.atomic.swap_add = 1;
	end_give(e, &w, NULL, 0);
}

/*
 * As many atomics as results are kept, so many packets, then four more, whose answers are lost: asked for again, each
 * is answered once, with its own value.
 */
static void answered_again_after(uint32_t packets)
{
	struct rwk_rc_attr attr = end_strict();
	uint32_t psn = attr.receive_psn;
	struct end *e;

	attr.reads = attr.peer_reads = RWK_RC_READS_MAX;
	e = end_alone(&attr);
	for (unsigned i = 0; i < ATOMICS; i++, psn = rwk_psn_add(psn, 1))
		add_one(e, psn);
	receive_many(e, RWK_WIRE_RC, &psn, packets);
	for (uint32_t i = 0; i < 4; i++)
		add_one(e, rwk_psn_add(psn, i));
	clear(e);
	for (uint32_t i = 0; i < 4; i++) {
		add_one(e, rwk_psn_add(psn, i));
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(e->out[0].w.psn, rwk_psn_add(psn, i));
		assert_int_equal(e->out[0].w.atomic_ack, ATOMICS + i);
	}
	assert_int_equal(e->atomics, ATOMICS + 4);
	end_close(e);
}

static void atomics_of_any_age(void **state)
{
	(void)state;
	answered_again_after(HALF);
	answered_again_after(RWK_PSN_MASK + 1 - ATOMICS + 2); /* the four have the numbers of others */
}

static void give_bits(struct end *e, uint32_t psn, uint8_t bits)
{
	struct rwk_wire w = packet_of(RWK_WIRE_OWN | RWK_WIRE_ACK, psn);
	uint8_t payload[5] = {bits};

	w.aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT;
	end_give(e, &w, bits ? payload : payload + 1, bits ? 5 : 4);
}

#define SENDS 8u

/* Posts SENDS packets and clears the record of them. Returns the first's number. */
static uint32_t send_some(struct end *e)
{
	static struct rwk_wr wr[SENDS];
	static struct iovec iov[SENDS];
	static uint8_t byte;
	uint32_t first = e->qp->req.next;

	for (unsigned i = 0; i < SENDS; i++) {
		wr[i] = end_wr(RWK_WR_SEND, &iov[i], &byte, 1);
		end_post(e, &wr[i]);
	}
	assert_int_equal(end_sent(e), SENDS);
	return first;
}

/* A packet that one other has overtaken is not lost; one that many have overtaken is, and halves the window. */
static void look_at_loss(struct end *e)
{
	uint32_t first = send_some(e), before = rwk_psn_add(first, RWK_PSN_MASK), cwnd = e->qp->req.cwnd;

	give_bits(e, before, 1 << 1);
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(e->qp->req.cwnd, cwnd);
	give_bits(e, before, 0xfe);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, first);
	assert_int_equal(e->qp->req.cwnd, cwnd / 2);
	give_bits(e, rwk_psn_add(first, SENDS - 1), 0);
	clear(e);
}

/* What losses have left says nothing of what is lost, or whether the window is to be halved, much later. */
static void losses_of_any_age(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct end *e = end_alone(&attr);
	static uint8_t bytes[255 * 256];
	struct iovec iov;
	struct rwk_wr wr;

	(void)state;
	look_at_loss(e);
	look_at_loss(e);
	for (uint32_t sent = 0; sent < HALF; sent += 255) {
		unsigned done = e->done_count = 0;

		wr = end_wr(RWK_WR_SEND, &iov, bytes, sizeof(bytes));
		end_post(e, &wr);
		while (e->done_count == done) {
			give_bits(e, rwk_psn_add(e->qp->req.next, RWK_PSN_MASK), 0);
			e->now += 1000;
			end_sent(e);
		}
	}
	look_at_loss(e);
	look_at_loss(e);
	end_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passed_over_once),
		cmocka_unit_test(atomics_of_any_age),
		cmocka_unit_test(losses_of_any_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
