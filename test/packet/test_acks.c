/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acknowledgements: they travel with messages, alone only now and then, and are seen to when they matter. What ends
 * without one: test_endings.c.
 */
#include "packet/pair.h"

#include "base/param.h"
#include "machine.h"
#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/port.h"
#include "packet/request.h"
#include "rc/rc.h"

#include <errno.h>

/* 200 messages by turns, each some time after the one before it has come. */
static void exchange(void)
{
	for (int i = 0; i < 200; i++) {
		struct side *from = ends_side(i % 2, 1 - i % 2), *to = ends_side(1 - i % 2, i % 2);

		assert_int_equal(ends_send(from), 0);
		while (to->received < from->sent) {
			ends_progress_all();
			assert_true(to->received == from->sent || rwk_sim_step(ends_net));
		}
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 20000);
	}
}

/*
 * In an exchange of messages, each answered before an acknowledgement is due by itself, the acknowledgements travel
 * along. Packets of their own are only those that a sender asks for, once in half a window.
 */
static void no_acks_in_exchange(void **state)
{
	static const size_t lengths_of[] = {8, 100, 3};
	uint64_t packets;

	(void)state;
	pair_open_list(4224, lengths_of, 3, NULL);
	packets = rwk_sim_sent(ends_net, 1, 2) + rwk_sim_sent(ends_net, 2, 1);
	exchange();
	assert_in_range(pair_qp_counts(0, 1)->acks_out + pair_qp_counts(1, 0)->acks_out, 0, 200 / 10);
	ends_settle();
	packets = rwk_sim_sent(ends_net, 1, 2) + rwk_sim_sent(ends_net, 2, 1) - packets;
	assert_in_range(packets, 200, 200 + 200 / 10 + 2);
	assert_int_equal(pair_qp_counts(0, 1)->sent_again + pair_qp_counts(1, 0)->sent_again, 0);
	ends_close();
}

/* Packets that the domain of `from` has sent to the process of `to`: acknowledgements that travelled alone. */
static uint64_t sent_alone(unsigned from, unsigned to)
{
	return rwk_sim_sent(ends_net, ends[from]->port->domain.port, rwk_address_port(&ends[to]->address));
}

/*
 * SRC: the answer to some messages, each in a packet of its own, brings their acknowledgement along; a packet is sent
 * for it but now and then. What it says is what has come: the sender has nothing to send again, and none
 * is left waiting.
 */
static void acks_ride(void **state)
{
	uint64_t alone, acks;

	(void)state;
	pair_open(4224, 3000);
	assert_true(rwk_packet_is_shared(ends_side(0, 1)->ch) && rwk_packet_is_shared(ends_side(1, 0)->ch));
	alone = sent_alone(1, 0);
	acks = pair_qp_counts(0, 1)->acks_in;
	for (unsigned i = 0; i < 340; i++) {
		for (unsigned k = 0; k < 5; k++)
			assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		while (ends_side(1, 0)->received < ends_side(0, 1)->sent) {
			ends_progress_all();
			rwk_sim_step(ends_net);
		}
		assert_int_equal(ends_send(ends_side(1, 0)), 0);
		while (ends_side(0, 1)->received < ends_side(1, 0)->sent) {
			ends_progress_all();
			rwk_sim_step(ends_net);
		}
	}
	assert_in_range(sent_alone(1, 0) - alone, 340 / 34, 340 / 8);
	assert_in_range(pair_qp_counts(0, 1)->acks_in - acks, 280, 400);
	ends_settle();
	assert_int_equal(pair_qp_counts(0, 1)->sent_again + pair_qp_counts(1, 0)->sent_again, 0);
	assert_true(rwk_rc_idle(rwk_packet_channel(ends_side(0, 1)->ch)->by->rc));
	ends_close();
}

/* SRC: where messages do not follow each other closely each takes along the acknowledgement of the one that came. */
static void acks_ride_singly(void **state)
{
	uint64_t alone;

	(void)state;
	pair_open(4224, 8);
	alone = sent_alone(0, 1) + sent_alone(1, 0);
	exchange();
	assert_in_range(sent_alone(0, 1) + sent_alone(1, 0) - alone, 200 / 20, 200 / 12);
	ends_settle();
	assert_int_equal(pair_qp_counts(0, 1)->sent_again + pair_qp_counts(1, 0)->sent_again, 0);
	ends_close();
}

/* Both ends look by turns, once each, until the first has got all that the second has sent. */
static void until_received(struct side *to, const struct side *from)
{
	for (unsigned turns = 0; to->received < from->sent; turns++) {
		assert_true(turns < 10000);
		rwk_sim_step(ends_net);
		ends_progress(ends[0]);
		ends_progress(ends[1]);
	}
}

/* As many copies as there may be are under way: what is posted now is not copied when nothing comes. */
static void take_all_copies(struct side *s)
{
	rwk_packet_channel(s->ch)->copied = RWK_RELIEF_MAX;
}

/*
 * SRC: the acknowledgement of a long message, which its sender waits for, travels with the answer, though the message
 * has come in parts and the client looks a few times more before it answers.
 */
static void asked_ack_rides(void **state)
{
	static const size_t lengths_of[] = {40000, 44000, 48000}; /* the last packet comes in an odd progress, or not */
	uint64_t alone, acks;

	(void)state;
	pair_open_list(4224, lengths_of, 3, NULL);
	for (unsigned i = 0; i < 2; i++)
		take_all_copies(ends_side(i, 1 - i));
	alone = sent_alone(1, 0);
	acks = pair_qp_counts(0, 1)->acks_in;
	for (unsigned i = 0; i < 170; i++) {
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		until_received(ends_side(1, 0), ends_side(0, 1));
		for (unsigned k = 0; k < 2; k++)
			ends_progress(ends[1]);
		assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
		until_received(ends_side(0, 1), ends_side(1, 0));
	}
	assert_in_range(sent_alone(1, 0) - alone, 1, 170 / 10);
	assert_in_range(pair_qp_counts(0, 1)->acks_in - acks, 150, 200);
	ends_settle();
	for (unsigned i = 0; i < 2; i++)
		rwk_packet_channel(ends_side(i, 1 - i)->ch)->copied = 0;
	ends_close();
}

/*
 * Who goes says that all has come, so that a message which is waited for has not failed: however often the client has
 * looked since, and though the good-bye may overtake the acknowledgement.
 */
static void good_bye_acknowledges(void **state)
{
	static uint8_t bytes[40000];

	(void)state;
	for (unsigned looks = 0; looks < 8; looks++) {
		struct ends_op op;
		struct side *s;

		pair_open(4224, sizeof(bytes));
		s = ends_side(0, 1);
		ends_make_op(&op, RWK_OP_SEND, bytes, sizeof(bytes));
		ends_fill(s, bytes, sizeof(bytes));
		op.op.env = ends_envelope(s);
		s->sent++;
		take_all_copies(s);
		assert_int_equal(ends_transport->post(s->ch, &op.op), 0);
		until_received(ends_side(1, 0), s);
		for (unsigned i = 0; i < looks; i++)
			ends_progress(ends[1]);
		ends_close_port(1);
		ends_settle();
		assert_int_equal(op.done, 1);
		assert_int_equal(op.status, 0);
		ends_close();
	}
}

static const struct rwk_link_ops *under;
static bool unsent; /* the domain's link has been given something that it was not told to send off */

static int keep(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	unsent = true;
	return under->send(l, to, iov, count);
}

static void let_go(struct rwk_link *l)
{
	unsent = false;
	under->flush(l);
}

/* SRC: once a progress says that there is nothing to do, no acknowledgement lies in the domain's link. */
static void acks_do_not_stay(void **state)
{
	static const size_t lengths_of[] = {8, 3000, 40000};
	struct rwk_link_ops ops;
	struct rwk_link *domain;
	uint64_t acks;

	(void)state;
	pair_open_list(4224, lengths_of, 3, NULL);
	domain = ends[1]->port->link[RWK_WAY_DOMAIN];
	under = domain->ops;
	ops = *under;
	ops.send = keep;
	ops.flush = let_go;
	domain->ops = &ops;
	unsent = false;
	acks = pair_qp_counts(0, 1)->acks_in;
	for (int i = 0; i < 60; i++) {
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		for (int k = 0; k < 40; k++) {
			while (ends_progress(ends[1]))
				;
			assert_false(unsent);
			rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 1000);
			ends_progress(ends[0]);
		}
	}
	ends_settle();
	assert_in_range(pair_qp_counts(0, 1)->acks_in - acks, 20, 600);
	domain->ops = under;
	ends_close();
}

/* The second end alone looks, until what it acknowledges is there. */
static void let_acknowledge(void)
{
	for (int k = 0; k < 16; k++) {
		ends_progress(ends[1]);
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 10 * 1000);
	}
}

/*
 * SRC: the acknowledgement of a long message that is waited for is heard of in the first progress after it has come;
 * what else comes to the own socket may wait for a few.
 */
static void long_ack_at_once(void **state)
{
	(void)state;
	pair_open(4224, 40000);
	take_all_copies(ends_side(0, 1));
	for (int i = 0; i < 2000; i++) /* nothing has come to the own socket for long */
		ends_progress(ends[0]);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(ends_post(ends_side(0, 1)), 0);
		let_acknowledge();
		assert_int_equal(ends_side(0, 1)->ops, 1);
		ends_progress(ends[0]);
		assert_int_equal(ends_side(0, 1)->ops, 0);
	}
	assert_int_equal(ends[0]->port->running, 0);
	assert_int_equal(ends[0]->port->asking, 0);
	rwk_packet_channel(ends_side(0, 1)->ch)->copied = 0;
	ends_close();
}

static unsigned looks;

static int count_look(struct rwk_link *l, int budget)
{
	looks++;
	return under->progress(l, budget);
}

/* In 64 progresses of the first end, which nothing comes of, how often does it look at its own socket? */
static unsigned looks_in_64(void)
{
	struct rwk_link *own = ends[0]->port->link[RWK_WAY_LOSSY];
	struct rwk_link_ops ops;

	under = own->ops;
	ops = *under;
	ops.progress = count_look;
	own->ops = &ops;
	looks = 0;
	for (int i = 0; i < 64; i++)
		ends_progress(ends[0]);
	own->ops = under;
	return looks;
}

/* So many processes of the job are on the machine, which has one processor. */
static void crowd(uint32_t processes)
{
	ends[0]->port->processors = 1;
	ends[0]->port->crowd = processes;
}

/*
 * SRC: a message that has not asked for its acknowledgement gets it with one of the peer's, or after a while: the own
 * socket is looked at now and then, and seldom when nobody waits, since what is under way goes on from a copy. But
 * always where processes share a processor.
 */
static void unasked_ack_is_not_sought(void **state)
{
	(void)state;
	pair_open(4224, 12000);
	for (int i = 0; i < 2000; i++)
		ends_progress(ends[0]);
	crowd(2);
	assert_int_equal(looks_in_64(), 64);
	crowd(1);
	assert_int_equal(looks_in_64(), 64 / 16);
	assert_int_equal(ends_post(ends_side(0, 1)), 0);
	ends_progress(ends[0]);
	assert_int_equal(ends_side(0, 1)->ops, 0); /* from a copy */
	assert_int_equal(looks_in_64(), 64 / 16);
	for (unsigned i = 0; i <= RWK_RELIEF_MAX / 12000; i++) /* too many for copies */
		assert_int_equal(ends_post(ends_side(0, 1)), 0);
	assert_int_equal(looks_in_64(), 64 / 4);
	assert_int_equal(ends_side(0, 1)->ops, RWK_RELIEF_MAX / 12000 + 1);
	ends_settle();
	assert_int_equal(ends_side(0, 1)->ops, 0);
	assert_int_equal(rwk_packet_channel(ends_side(0, 1)->ch)->copied, 0);
	ends_close();
}

/* SRC: of messages that follow one another closely not each is acknowledged by itself. */
static void stream_asks_seldom(void **state)
{
	uint64_t alone;

	(void)state;
	pair_open(4224, 12000);
	alone = sent_alone(1, 0);
	for (int i = 0; i < 64; i++)
		assert_int_equal(ends_post(ends_side(0, 1)), 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 64);
	assert_in_range(sent_alone(1, 0) - alone, 64 * 3 / 64, 64 / 4); /* of three packets each; some travel along */
	ends_close();
}

static void arrives(unsigned at, unsigned from)
{
	unsigned before = ends_side(at, from)->received;

	rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 3000);
	ends_progress(ends[at]);
	assert_true(ends_side(at, from)->received > before);
}

#define PULLED 30000 /* bytes: so few packets that no acknowledgement is asked for */

/*
 * SRC: a read is answered behind the Writes that it consists of, whether they have been acknowledged or not. What says
 * next that their bytes are no longer needed acknowledges them, and they are not copied for who has not heard of it.
 */
static void read_is_answered_at_once(void **state)
{
	static uint8_t there[PULLED], here[PULLED];
	const struct rwk_sim_path nothing = {.delay = 1000, .drop = 1000000}, all = {.delay = 1000};
	uint32_t domain, own;
	struct iovec iov = {there, PULLED};
	struct rwk_rkey key;
	struct ends_op op;

	(void)state;
	pair_open(4224, 8);
	domain = ends[0]->port->domain.port;
	own = rwk_address_port(&ends[1]->address);
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &key), 0);
	for (int i = 0; i < 40; i++) {
		memset(there, i + 1, PULLED);
		rwk_sim_set_path(ends_net, domain, own, &nothing);
		ends_make_op(&op, RWK_OP_READ, here, PULLED);
		op.op.rkey = key;
		assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
		while (!op.done) {
			ends_progress_all();
			assert_int_equal(ends[1]->port->asking, 0);
			assert_true(op.done || rwk_sim_step(ends_net));
		}
		assert_int_equal(op.status, 0);
		assert_memory_equal(here, there, PULLED);
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
		arrives(1, 0);
		assert_int_equal(ends[1]->port->running, 0);
		assert_int_equal(ends[1]->port->asking, 0);
		rwk_sim_set_path(ends_net, domain, own, &all);
	}
	ends_settle();
	assert_int_equal(pair_qp_counts(1, 0)->sent_again, 0);
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
	ends_close();
}

/*
 * SRC: who is asked for a read has answered it, and closes the channel before all of it has come: it is not said to be
 * there with other bytes than it had.
 */
static void read_outlasts_its_channel(void **state)
{
	static uint8_t there[PULLED], here[PULLED];
	const struct rwk_sim_path nothing = {.delay = 1000, .drop = 1000000};
	struct iovec iov = {there, PULLED};
	struct rwk_rkey key;
	struct ends_op op;
	uint32_t domain, own;
	uint64_t sent;

	(void)state;
	pair_open(4224, 8);
	domain = ends[0]->port->domain.port;
	own = rwk_address_port(&ends[1]->address);
	memset(there, 1, PULLED);
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &key), 0);
	ends_make_op(&op, RWK_OP_READ, here, PULLED);
	op.op.rkey = key;
	sent = rwk_sim_sent(ends_net, own, domain);
	rwk_sim_rule(ends_net, own, domain, 3, RWK_SIM_DROP);
	assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
	while (rwk_sim_sent(ends_net, own, domain) < sent + PULLED / 4096 + 2) { /* the answer is one */
		ends_progress_all();
		assert_true(rwk_sim_step(ends_net));
	}
	assert_int_equal(op.done, 0);
	rwk_sim_set_path(ends_net, own, rwk_address_port(&ends[0]->address), &nothing); /* its good-bye */
	ends_transport->disconnect(ends_side(1, 0)->ch);
	memset(there, 2, PULLED);
	for (int i = 0; i < 100 && !op.done; i++) {
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 1000 * 1000);
		ends_progress_all();
	}
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, 0);
	for (size_t i = 0; i < PULLED; i++)
		assert_int_equal(here[i], 1);
	ends_close();
}

/* Nobody answers: an acknowledgement goes by itself after a while, and nothing is sent again. */
static void ack_alone(void **state)
{
	(void)state;
	pair_open_list(4224, NULL, 0, NULL);
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	ends_settle();
	assert_in_range(pair_qp_counts(1, 0)->acks_out, 1, 2);
	assert_int_equal(pair_qp_counts(0, 1)->sent_again, 0);
	ends_close();
}

/* Frames of that end's that its machine has not been told the end of. */
static uint32_t unsettled(unsigned from, unsigned to)
{
	const struct rwk_packet_channel *ch = (const struct rwk_packet_channel *)ends_side(from, to)->ch;

	return ch->frames;
}

/*
 * What a message brings along of the peer's, that ours has arrived, can wait until the client has had it and has
 * answered: the answer goes out first. Once: then it is seen to, whether the client has answered or not, and whether
 * more has come.
 */
static void answer_first(void **state)
{
	uint64_t packets;

	(void)state;
	pair_open(4224, 8);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
		arrives(1, 0);
		assert_int_equal(ends_send(ends_side(1, 0)), 0);
		arrives(0, 1);
		assert_int_equal(unsettled(0, 1), 1);
		packets = rwk_sim_sent(ends_net, 1, 2);
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
		assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets + 1);
		assert_int_equal(unsettled(0, 1), 2);
		ends_progress(ends[0]);
		assert_int_equal(unsettled(0, 1), 1);
		arrives(1, 0);
		assert_int_equal(ends_send(ends_side(1, 0)), 0);
		assert_int_equal(ends_send(ends_side(1, 0)), 0);
		arrives(0, 1); /* both at once */
		assert_int_equal(unsettled(0, 1), 1);
		ends_progress(ends[0]);
		assert_int_equal(unsettled(0, 1), 0);
		ends_settle();
	}
	ends_close();
}

/* The peer's messages come without a pause: what we have under way is settled all the same. */
static void answer_in_stream(void **state)
{
	(void)state;
	pair_open(4224, 8);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	arrives(1, 0);
	assert_int_equal(ends_send(ends_side(1, 0)), 0);
	arrives(0, 1);
	assert_int_equal(unsettled(0, 1), 1);
	assert_int_equal(ends_send(ends_side(1, 0)), 0);
	arrives(0, 1);
	assert_int_equal(unsettled(0, 1), 0);
	ends_close();
}

/* A long message whose end says how many of the peer's had come by then. */
struct told {
	struct rwk_op op;
	struct iovec iov;
	uint8_t bytes[20000];
	uint64_t came;
	unsigned done;
};

static void told_end(struct rwk_op *op, int status)
{
	struct told *t = rwk_container_of(op, struct told, op);

	assert_int_equal(status, 0);
	t->came = ends_side(0, 1)->received;
	t->done++;
}

/*
 * The client hears of the end of what it has posted before the messages that the peer has sent later, though they come
 * in the same progress, and though it was a message that brought the acknowledgement: by SRC before that one, too.
 */
static void ends_in_order(void **state)
{
	static const size_t long_and_short[] = {sizeof(((struct told *)0)->bytes), 8, 8, 8};
	struct told t = {.iov = {t.bytes, sizeof(t.bytes)}};
	struct side *s;

	(void)state;
	pair_open_list(4224, long_and_short, 4, NULL);
	assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
	ends_settle();
	s = ends_side(0, 1);
	ends_fill(s, t.bytes, sizeof(t.bytes));
	t.op = (struct rwk_op){.type = RWK_OP_SEND,
		.iov_count = 1,
		.iov = &t.iov,
		.length = sizeof(t.bytes),
		.env = ends_envelope(s),
		.done = told_end};
	take_all_copies(s);
	assert_int_equal(s->ch->transport->post(s->ch, &t.op), 0);
	ends_progress(ends[0]);
	arrives(1, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ends_send(ends_side(1, 0)), 0);
	assert_int_equal(pair_qp_counts(1, 0)->acks_out, 0);
	arrives(0, 1);
	assert_int_equal(s->received, 4);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.came, rwk_packet_is_shared(s->ch) ? 1 : 2);
	rwk_packet_channel(s->ch)->copied = 0;
	ends_close();
}

/* As many frames as may be under way, within the sends; so many packets ask for no acknowledgement. */
static void send_all_frames(struct side *s)
{
	for (unsigned i = 0; i < RWK_FRAMES_MAX; i++)
		assert_int_equal(ends_send(s), 0);
	assert_int_equal(rwk_packet_channel(s->ch)->frames, RWK_FRAMES_MAX);
}

/* What the first end asks of the second, whose answer finds no room among its frames. */
struct crowded {
	uint8_t there[8], here[8];
	struct iovec iov;
	struct rwk_rkey key;
	struct ends_op op;
};

static void open_crowded(void)
{
	static const size_t length = 4064; /* one fills a frame: nothing else goes along */
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.mtu = 4224;
	attr.inbox = 4 << 20;
	ends_lengths = &length;
	ends_lengths_count = 1;
	ends_open(&attr, NULL, 2);
	ends_connect(0, 1);
	ends_settle();
	rwk_params.rendezvous = RWK_RENDEZVOUS_WRITE;
}

static void ask(struct crowded *c, enum rwk_op_type type)
{
	unsigned access = type == RWK_OP_READ ? RWK_EXPOSE_READ : RWK_EXPOSE_WRITE;

	memset(c->there, 7, sizeof(c->there));
	memset(c->here, 8, sizeof(c->here));
	c->iov = (struct iovec){c->there, sizeof(c->there)};
	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &c->iov, 1, access, &c->key), 0);
	ends_make_op(&c->op, type, c->here, sizeof(c->here));
	c->op.op.rkey = c->key;
	assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &c->op.op), 0);
}

static void end_crowded(struct crowded *c)
{
	ends_settle();
	assert_int_equal(ends_side(0, 1)->received, ends_side(1, 0)->sent);
	assert_int_equal(c->op.done, 1);
	assert_int_equal(c->op.status, 0);
	assert_memory_equal(c->here, c->there, sizeof(c->here));
	ends_close();
}

/* The answer to a read waits for room, and goes when there is some, though no message waits. */
static void answer_waits_for_room(void **state)
{
	struct crowded c;

	(void)state;
	open_crowded();
	ask(&c, RWK_OP_READ);
	send_all_frames(ends_side(1, 0));
	end_crowded(&c);
}

static int full(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	(void)l;
	(void)to;
	(void)iov;
	(void)count;
	return -EAGAIN;
}

/* The same of a write, on a stream that takes nothing for a while. */
static void answer_waits_for_stream(void **state)
{
	const struct rwk_link_ops *open;
	struct rwk_link_ops ops;
	struct rwk_link *stream;
	struct crowded c;

	(void)state;
	open_crowded();
	ask(&c, RWK_OP_WRITE);
	stream = ends[1]->port->link[RWK_WAY_STREAM];
	open = stream->ops;
	ops = *open;
	ops.send = full;
	stream->ops = &ops;
	send_all_frames(ends_side(1, 0));
	ends_progress(ends[0]);
	rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 3000);
	ends_progress(ends[1]); /* has been asked */
	stream->ops = open;
	end_crowded(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(no_acks_in_exchange),
		ENDS_ON(acks_ride, "SRC", sim_shared_transport),
		ENDS_ON(acks_ride_singly, "SRC", sim_shared_transport),
		ENDS_ON(asked_ack_rides, "SRC", sim_shared_transport),
		ENDS_RC(good_bye_acknowledges),
		ENDS_ON(good_bye_acknowledges, "SRC", sim_shared_transport),
		ENDS_ON(acks_do_not_stay, "SRC", sim_shared_transport),
		ENDS_ON(long_ack_at_once, "SRC", sim_shared_transport),
		ENDS_ON(unasked_ack_is_not_sought, "SRC", sim_shared_transport),
		ENDS_ON(stream_asks_seldom, "SRC", sim_shared_transport),
		ENDS_ON(read_is_answered_at_once, "SRC", sim_shared_transport),
		ENDS_ON(read_outlasts_its_channel, "SRC", sim_shared_transport),
		ENDS_RC(ack_alone),
		ENDS_RC(answer_first),
		ENDS_RC(answer_in_stream),
		ENDS_RC(ends_in_order),
		ENDS_ON(ends_in_order, "SRC", sim_shared_transport),
		ENDS_RC(answer_waits_for_room),
		ENDS_UC(answer_waits_for_stream),
		ENDS_ON(answer_waits_for_room, "SRC", sim_shared_transport),
	};

	return cmocka_run_group_tests_name("packet/acks", tests, NULL, NULL);
}
