/* SPDX-License-Identifier: BSD-3-Clause */
/* States RESET to ERR: which steps there are, what each state does and refuses; posting, withdrawing, flushing. */
#include "rwk_test.h"

#include "rc/end.h"
#include "rc/internal.h"

static uint8_t bytes[4096];
static struct rwk_wr wrs[16];
static struct iovec iovs[16];

static struct end *fresh(const struct rwk_rc_attr *attr, enum rwk_qp_state state)
{
	struct end *e = end_alone(attr);

	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RESET, NULL), 0);
	if (state >= RWK_QP_INIT && state <= RWK_QP_RTS)
		assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_INIT, NULL), 0);
	if (state >= RWK_QP_RTR && state <= RWK_QP_RTS)
		assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTR, attr), 0);
	if (state == RWK_QP_RTS || state == RWK_QP_ERR)
		assert_int_equal(rwk_rc_modify(e->qp, state, NULL), 0);
	assert_int_equal(rwk_rc_state(e->qp), state);
	return e;
}

static struct rwk_wr *wr(unsigned i, size_t len)
{
	wrs[i] = end_wr(RWK_WR_SEND, &iovs[i], bytes, len);
	return &wrs[i];
}

/* Every step from every state: those of the order RESET, INIT, RTR, RTS; ERR and RESET from anywhere. */
static void steps(void **state)
{
	struct rwk_rc_attr attr = end_strict();

	(void)state;
	for (enum rwk_qp_state from = RWK_QP_RESET; from <= RWK_QP_ERR; from++)
		for (enum rwk_qp_state to = RWK_QP_RESET; to <= RWK_QP_ERR; to++) {
			struct end *e = fresh(&attr, from);
			bool may = to == RWK_QP_RESET || to == RWK_QP_ERR || (to == from + 1 && from != RWK_QP_RTS);

			assert_int_equal(rwk_rc_modify(e->qp, to, &attr), may ? 0 : -EINVAL);
			assert_int_equal(rwk_rc_state(e->qp), may ? to : from);
			assert_int_equal(e->failed_count, 0); /* its owner asked for it */
			end_close(e);
		}
}

/* Values out of their range are refused, and nothing is done. */
static void values(void **state)
{
	static const struct rwk_rc_attr good = {.peer_qpn = 1, .pmtu = 256, .window = 1, .reads = 1, .timeout = 1};
	struct rwk_rc_attr bad[24];
	unsigned n = 0;
	struct end *e;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		bad[i] = good;
	bad[n++].peer_qpn = 1 << 24;
	bad[n++].send_psn = 1 << 24;
	bad[n++].receive_psn = 1 << 24;
	bad[n++].pmtu = 128;
	bad[n++].pmtu = 8768;
	bad[n++].pmtu = 1000;
	bad[n++].window = 0;
	bad[n++].window = RWK_RC_WINDOW_MAX + 1;
	bad[n++].reads = 0;
	bad[n++].reads = RWK_RC_READS_MAX + 1;
	bad[n++].peer_reads = RWK_RC_READS_MAX + 1;
	bad[n++].retry = 8;
	bad[n++].rnr_retry = 8;
	bad[n++].rnr_timer = 32;
	bad[n++].service = RWK_WIRE_UC;
	bad[n++].service = RWK_WIRE_OWN;
	bad[n++].own = 16;
	bad[n++].own = RWK_RC_UNORDERED; /* without SELECTIVE */
	bad[n++].timeout = 0;
	bad[n++].own = RWK_RC_LAZY; /* without ack_every */
	bad[n++].read_chunk = 255;
	bad[n++].ack_delay = 1ull << 32;
	bad[n].read_chunk = 257;
	bad[n++].pmtu = 512;
	bad[n++].reach = 8;
	assert_int_equal(n, sizeof(bad) / sizeof(*bad));
	e = fresh(&good, RWK_QP_INIT);
	for (unsigned i = 0; i < n; i++)
		if (rwk_rc_modify(e->qp, RWK_QP_RTR, &bad[i]) != -EINVAL)
			fail_msg("case %u is let through", i);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTR, NULL), -EINVAL);
	assert_int_equal(rwk_rc_state(e->qp), RWK_QP_INIT);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTR, &good), 0);
	end_close(e);
}

/* Posting is for RTS; in ERR it is accepted and flushed; RTR takes requests already, and no answers. */
static void what_a_state_does(void **state)
{
	struct rwk_rc_attr attr = end_strict();
	struct rwk_wire w = {.opcode = RWK_WIRE_SEND_ONLY, .psn = attr.receive_psn, .ack_request = true};

	(void)state;
	for (enum rwk_qp_state s = RWK_QP_RESET; s <= RWK_QP_ERR; s++) {
		struct end *e = fresh(&attr, s);
		bool takes = s == RWK_QP_RTR || s == RWK_QP_RTS;

		assert_int_equal(rwk_rc_post(e->qp, wr(0, 10)), s >= RWK_QP_RTS ? 0 : -EINVAL);
		assert_int_equal(e->done_count, 0);
		end_pump(e);
		assert_int_equal(e->done_count, s == RWK_QP_ERR);
		if (s == RWK_QP_ERR)
			assert_int_equal(e->done_status[0], -ECANCELED);
		assert_int_equal(end_sent(e), s == RWK_QP_RTS);
		w.opcode = RWK_WIRE_SEND_ONLY;
		end_give(e, &w, bytes, 10);
		assert_int_equal(e->message_count, takes);
		assert_int_equal(end_sent(e), takes);
		assert_int_equal(rwk_rc_counters(e->qp)->bad_state, !takes);
		end_give_ack(e, attr.send_psn, RWK_WIRE_ACK_NO_LIMIT);
		assert_int_equal(e->done_count, s >= RWK_QP_RTS);
		assert_int_equal(rwk_rc_counters(e->qp)->bad_state, !takes + (s != RWK_QP_RTS));
		end_close(e);
	}
}

/* What cannot be posted. */
static void refused_posts(void **state)
{
	static struct iovec many[RWK_MACHINE_IOV + 1];
	struct rwk_rc_attr attr = end_strict();
	struct end *e = end_alone(&attr);
	struct rwk_wr *w = wr(0, 8);

	(void)state;
	w->type = RWK_WR_FETCH_ADD + 1;
	assert_int_equal(rwk_rc_post(e->qp, w), -EINVAL);
	for (unsigned type = RWK_WR_READ; type <= RWK_WR_FETCH_ADD; type++)
		for (unsigned flag = RWK_WR_IMM; flag <= RWK_WR_SOLICITED; flag <<= 1) {
			w = wr(0, 8);
			w->type = (uint8_t)type;
			w->flags = (uint8_t)flag;
			assert_int_equal(rwk_rc_post(e->qp, w), -EINVAL);
		}
	w = wr(0, 8);
	w->flags = RWK_WR_IMM | RWK_WR_INVALIDATE;
	assert_int_equal(rwk_rc_post(e->qp, w), -EINVAL);
	w->flags = 0x80;
	assert_int_equal(rwk_rc_post(e->qp, w), -EINVAL);
	w = wr(0, 8);
	w->type = RWK_WR_WRITE;
	w->flags = RWK_WR_INVALIDATE;
	assert_int_equal(rwk_rc_post(e->qp, w), -EINVAL);
	w = wr(0, 4);
	w->type = RWK_WR_COMPARE_SWAP;
	assert_int_equal(rwk_rc_post(e->qp, w), -EINVAL);
	w = wr(0, 0);
	w->iov = many;
	w->iov_count = RWK_MACHINE_IOV + 1;
	assert_int_equal(rwk_rc_post(e->qp, w), -EINVAL);
	w = wr(0, 8);
	w->length = (size_t)RWK_WIRE_LENGTH_MAX + 1;
	assert_int_equal(rwk_rc_post(e->qp, w), -EMSGSIZE);
	assert_true(rwk_rc_idle(e->qp));
	assert_int_equal(e->done_count, 0);
	end_close(e);
}

/* A posted request can be withdrawn until a packet of it is made; the others stay as they were. */
static void withdrawing(void **state)
{
	struct rwk_rc_attr attr = end_strict();
	struct end *e;

	(void)state;
	attr.window = 2;
	e = end_alone(&attr);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rwk_rc_post(e->qp, wr(i, 8)), 0);
	assert_int_equal(rwk_rc_withdraw(e->qp, &wrs[0]), 0);
	end_pump(e);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(rwk_rc_withdraw(e->qp, &wrs[1]), -EBUSY);
	assert_int_equal(rwk_rc_post(e->qp, wr(3, 8)), 0);
	assert_int_equal(rwk_rc_post(e->qp, wr(4, 8)), 0);
	end_pump(e);
	assert_int_equal(rwk_rc_withdraw(e->qp, &wrs[3]), 0);
	end_give_ack(e, attr.send_psn + 1, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(e->done_count, 2);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(rwk_rc_withdraw(e->qp, &wrs[4]), -EBUSY);
	end_give_ack(e, attr.send_psn + 2, RWK_WIRE_ACK_NO_LIMIT);
	assert_ptr_equal(e->done_last, &wrs[4]);
	assert_true(rwk_rc_idle(e->qp));
	end_close(e);
}

/* A long one of which a part is sent is not withdrawn, whatever the window says. */
static void withdrawing_half(void **state)
{
	struct rwk_rc_attr attr = end_strict();
	struct end *e;

	(void)state;
	attr.window = 2;
	e = end_alone(&attr);
	end_post(e, wr(0, 4096));
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(rwk_rc_withdraw(e->qp, &wrs[0]), -EBUSY);
	end_close(e);
	assert_int_equal(wrs[0].packets, 16);
}

static unsigned posted_again;

static void post_again(struct end *e, struct rwk_wr *w, int status)
{
	assert_int_equal(status, -ECANCELED);
	posted_again++;
	assert_int_equal(rwk_rc_post(e->qp, w), 0);
}

/* Evidence that the peer is gone: all is flushed, the host hears it once; `done` may post, and is asked again later. */
static void failing(void **state)
{
	struct rwk_rc_attr attr = end_strict();
	struct end *e = end_alone(&attr);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		end_post(e, wr(i, 600));
	rwk_rc_fail(e->qp, -ECONNRESET);
	assert_int_equal(e->done_count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(e->done_status[i], -ECANCELED);
	assert_int_equal(e->failed_count, 1);
	assert_int_equal(e->failed_err, -ECONNRESET);
	rwk_rc_fail(e->qp, -EIO);
	assert_int_equal(e->failed_count, 1);
	e->on_done = post_again;
	assert_int_equal(rwk_rc_post(e->qp, &wrs[0]), 0);
	assert_int_equal(rwk_rc_next(e->qp), 0);
	for (unsigned i = 1; i <= 5; i++) {
		end_pump(e);
		assert_int_equal(posted_again, i);
	}
	end_close(e);
}

/* RESET ends what is posted, drops what is kept, and the QP begins afresh with other numbers. */
static void resetting(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_SEND_ONLY, .psn = attr.receive_psn + 5};
	struct end *e = end_alone(&attr);

	(void)state;
	end_post(e, wr(0, 600));
	end_give(e, &w, bytes, 8);
	assert_int_equal(e->kept_now, 1);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RESET, NULL), 0);
	assert_int_equal(e->kept_now, 0);
	assert_int_equal(e->done_count, 1);
	assert_int_equal(e->done_status[0], -ECANCELED);
	attr.send_psn = 77;
	attr.receive_psn = 99;
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTR, &attr), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTS, NULL), 0);
	end_sent(e);
	end_post(e, wr(0, 6));
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, 77);
	w.psn = 99;
	end_give(e, &w, bytes, 8);
	assert_int_equal(e->message_count, 1);
	end_close(e);
}

/* In ERR a strict QP is silent; one of ours says its NAK again to a peer that never gives up. */
static void nak_again(void **state)
{
	struct rwk_rc_attr attrs[] = {end_strict(), end_own()};

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct rwk_wire w = {.opcode = RWK_WIRE_SEND_LAST, .psn = attrs[k].receive_psn};
		struct end *e = end_alone(&attrs[k]);

		end_give(e, &w, bytes, 8);
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(rwk_rc_state(e->qp), RWK_QP_ERR);
		for (unsigned i = 0; i < 3; i++) {
			end_give(e, &w, bytes, 8);
			assert_int_equal(end_sent(e), k);
			if (k)
				assert_int_equal(e->out[0].w.aeth.syndrome, RWK_WIRE_NAK_INVALID);
			end_pump(e);
			assert_int_equal(end_sent(e), 0);
		}
		assert_int_equal(e->failed_count, 1);
		end_close(e);
	}
}

/* What a connected idle peer costs. */
static void memory(void **state)
{
	(void)state;
	assert_in_range(rwk_rc_size() + rwk_rc_responder_size(), 1, 1024);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),
		cmocka_unit_test(values),
		cmocka_unit_test(what_a_state_does),
		cmocka_unit_test(refused_posts),
		cmocka_unit_test(withdrawing),
		cmocka_unit_test(withdrawing_half),
		cmocka_unit_test(failing),
		cmocka_unit_test(resetting),
		cmocka_unit_test(nak_again),
		cmocka_unit_test(memory),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
