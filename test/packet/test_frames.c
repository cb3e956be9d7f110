/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames: what shares a packet and what goes out when, lengths at their bounds, and what a broken one does
 * (transports/packet/FRAME.md).
 */
#include "packet/hand.h"

#include "machine.h"
#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/pull.h"
#include "packet/request.h"
#include "rc/rc.h"

static const struct rwk_packet_counters *counts(unsigned end)
{
	return rwk_packet_counters(ends[end]->port);
}

static const struct rwk_qp_counters *qp_counts(unsigned from, unsigned to)
{
	return rwk_packet_qp_counters(ends_side(from, to)->ch);
}

static void open_two(size_t mtu, const struct rwk_sim_path *path)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.mtu = mtu;
	if (path)
		attr.path = *path;
	ends_open(&attr, NULL, 2);
	ends_connect(0, 1);
	ends_settle();
}

/*
 * Messages of each length at which something changes, alone in a packet, filling it, one byte more, and up to the
 * longest that a channel takes: by send, and by post, each with and without data, over paths that lose.
 */
static void lengths(void **state)
{
	static const uint32_t pmtus[] = {256, 512, 1024, 1344, 2048, 4096, RWK_WIRE_OWN_MAX};
	size_t list[64], n;

	(void)state;
	for (unsigned i = 0; i < sizeof(pmtus) / sizeof(*pmtus); i++) {
		for (int post = 0; post < 2; post++) {
			size_t p = pmtus[i];
			const size_t around[] = {p - 28, p - 20, p, 2 * p - 28, 2 * p - 20, 3 * p, 9 * p - 20};

			n = 0;
			for (size_t k = 0; k < 4; k++)
				list[n++] = k;
			for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++)
				for (size_t d = 0; d < 3; d++)
					list[n++] = around[k] + d - 1;
			list[n++] = LENGTH - 1;
			list[n++] = LENGTH;
			list[n++] = 5; /* their number is odd: each comes with data and without */
			list[n++] = LENGTH;
			assert_true(n % 2);
			ends_lengths = list;
			ends_lengths_count = n;
			open_two(p + 80, &ends_lossy);
			assert_int_equal(ends_side(0, 1)->ch->send_max, LENGTH);
			for (unsigned k = 0; k < 2 * n; k++) {
				if (post || ends_send(ends_side(0, 1)))
					assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
				if (k % 7 == 0)
					ends_settle();
			}
			ends_settle();
			assert_int_equal(ends_side(1, 0)->received, 2 * n);
			ends_close();
		}
	}
}

/*
 * Of many small sends between two progress calls the first four go out within the send, the others share a packet; and
 * after so many the next time only the first.
 */
static void small_ones_share(void **state)
{
	static const size_t eight[] = {8};
	uint64_t packets, frames;

	(void)state;
	ends_lengths = eight;
	ends_lengths_count = 1;
	open_two(4224, NULL);
	packets = rwk_sim_sent(ends_net, 1, 2);
	frames = counts(0)->frames_out;
	for (unsigned i = 1; i <= 100; i++) {
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
		assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets + (i < 4 ? i : 4));
	}
	ends_progress(ends[0]);
	assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets + 5);
	assert_int_equal(counts(0)->frames_out, frames + 5);
	assert_int_equal(counts(0)->records_out, 100);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
		assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets + 6);
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 102);
	assert_int_equal(counts(1)->frames_in, frames + 7);
	assert_int_equal(counts(1)->records_in, 102);
	ends_close();
}

/* A page takes one packet, with data and without, where the way is wide enough; what fills the way, too. */
static void page(void **state)
{
	static const struct {
		size_t mtu, length;
	} cases[] = {{8972, 4096}, {RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD, 4096}, {1472, 1316}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t packets;

		ends_lengths = &cases[i].length;
		ends_lengths_count = 1;
		open_two(cases[i].mtu, NULL);
		packets = rwk_sim_sent(ends_net, 1, 2);
		for (unsigned n = 1; n <= 4; n++) {
			assert_int_equal(ends_send(ends_side(0, 1)), 0);
			ends_settle();
			assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets + n);
		}
		assert_int_equal(ends_side(1, 0)->received, 4);
		ends_close();
	}
}

/* As many as fill a frame and one more take two: by bytes, with a PMTU of 256. */
static void full_frame(void **state)
{
	static const size_t thirty[] = {30}; /* records of 46 and 54 bytes in turn */
	uint64_t frames, packets;

	(void)state;
	ends_lengths = thirty;
	ends_lengths_count = 1;
	open_two(336, NULL);
	for (int i = 0; i < 4; i++) /* alone */
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
	frames = counts(0)->frames_out;
	packets = rwk_sim_sent(ends_net, 1, 2);
	for (int i = 0; i < 5; i++) /* 4 + 46 + 54 + 46 + 54 + 46 = 250 bytes */
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
	assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets);
	assert_int_equal(ends_send(ends_side(0, 1)), 0); /* of 54: does not fit */
	assert_int_equal(counts(0)->frames_out, frames + 1);
	assert_int_equal(rwk_sim_sent(ends_net, 1, 2), packets);
	ends_settle();
	assert_int_equal(counts(0)->frames_out, frames + 2);
	assert_int_equal(ends_side(1, 0)->received, 10);
	ends_close();
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
	ends_lengths = lengths_of;
	ends_lengths_count = 3;
	open_two(4224, NULL);
	packets = rwk_sim_sent(ends_net, 1, 2) + rwk_sim_sent(ends_net, 2, 1);
	for (int i = 0; i < 200; i++) {
		struct side *from = ends_side(i % 2, 1 - i % 2), *to = ends_side(1 - i % 2, i % 2);

		assert_int_equal(ends_send(from), 0);
		while (to->received < from->sent) {
			ends_progress_all();
			assert_true(to->received == from->sent || rwk_sim_step(ends_net));
		}
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 20000);
	}
	assert_in_range(qp_counts(0, 1)->acks_out + qp_counts(1, 0)->acks_out, 0, 200 / 10);
	ends_settle();
	packets = rwk_sim_sent(ends_net, 1, 2) + rwk_sim_sent(ends_net, 2, 1) - packets;
	assert_in_range(packets, 200, 200 + 200 / 10 + 2);
	assert_int_equal(qp_counts(0, 1)->sent_again + qp_counts(1, 0)->sent_again, 0);
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
	static const size_t lengths_of[] = {3000};
	uint64_t alone, acks;

	(void)state;
	ends_lengths = lengths_of;
	ends_lengths_count = 1;
	open_two(4224, NULL);
	assert_true(rwk_packet_is_shared(ends_side(0, 1)->ch) && rwk_packet_is_shared(ends_side(1, 0)->ch));
	alone = sent_alone(1, 0);
	acks = qp_counts(0, 1)->acks_in;
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
	assert_in_range(qp_counts(0, 1)->acks_in - acks, 300, 400);
	ends_settle();
	assert_int_equal(qp_counts(0, 1)->sent_again + qp_counts(1, 0)->sent_again, 0);
	assert_true(rwk_rc_idle(rwk_packet_channel(ends_side(0, 1)->ch)->by->rc));
	ends_close();
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
	ends_lengths = lengths_of;
	ends_lengths_count = 3;
	open_two(4224, NULL);
	domain = ends[1]->port->link[RWK_WAY_DOMAIN];
	under = domain->ops;
	ops = *under;
	ops.send = keep;
	ops.flush = let_go;
	domain->ops = &ops;
	unsent = false;
	acks = qp_counts(0, 1)->acks_in;
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
	assert_in_range(qp_counts(0, 1)->acks_in - acks, 40, 600);
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
 * SRC: the acknowledgement of a long message is heard of in the first progress after it has come; what else comes to
 * the own socket may wait for a few.
 */
static void long_ack_at_once(void **state)
{
	static const size_t lengths_of[] = {40000};

	(void)state;
	ends_lengths = lengths_of;
	ends_lengths_count = 1;
	open_two(4224, NULL);
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
	ends_close();
}

/* So is that of one that goes on from a copy: nobody waits for it, but what the client sends next may. */
static void copied_ack_at_once(void **state)
{
	static const size_t lengths_of[] = {12000};

	(void)state;
	ends_lengths = lengths_of;
	ends_lengths_count = 1;
	open_two(4224, NULL);
	for (int i = 0; i < 2000; i++)
		ends_progress(ends[0]);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(ends_post(ends_side(0, 1)), 0);
		ends_progress(ends[0]);
		assert_int_equal(ends_side(0, 1)->ops, 0);
		assert_int_equal(ends[0]->port->copies, 1);
		let_acknowledge();
		ends_progress(ends[0]);
		assert_int_equal(ends[0]->port->copies, 0);
	}
	ends_close();
}

/* Nobody answers: an acknowledgement goes by itself after a while, and nothing is sent again. */
static void ack_alone(void **state)
{
	(void)state;
	open_two(4224, NULL);
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	ends_settle();
	assert_in_range(qp_counts(1, 0)->acks_out, 1, 2);
	assert_int_equal(qp_counts(0, 1)->sent_again, 0);
	ends_close();
}

/* A frame by hand: the word, then records. */
struct frame {
	uint8_t bytes[4096];
	size_t len;
};

static void put(struct frame *f, const void *bytes, size_t len)
{
	memcpy(f->bytes + f->len, bytes, len);
	f->len += len;
}

static void begin_frame(struct frame *f)
{
	memset(f, 0, sizeof(*f));
	f->len = 4;
}

/** A record whose head says `len`, with `has` bytes behind it. */
static void put_record(struct frame *f, uint8_t kind, uint32_t len, size_t has)
{
	uint8_t head[16] = {kind};

	memcpy(head + 4, &len, sizeof(len));
	put(f, head, sizeof(head));
	f->len += has;
}

enum broken {
	LONGER_THAN_FRAME,
	HALF_A_HEAD,
	DATA_CUT_OFF,
	UNKNOWN_OWN_KIND,
	BEHIND_BYE,
	NO_WORD,
	PULL_OF_WRONG_SIZE,
	LONG_WITHOUT_HEAD,
	LONG_OWN_KIND,
	LONG_TOO_LONG,
	LONG_FRAME_LONGER,
	LONG_FRAME_SHORTER,
	BROKEN_WAYS
};

/** Sends what is broken so; all of it behind a whole record in a packet of its own. */
static void send_broken(struct hand *h, enum broken how)
{
	struct frame f;
	bool many = how >= LONG_WITHOUT_HEAD;

	begin_frame(&f);
	if (how == LONGER_THAN_FRAME)
		put_record(&f, 3, 9, 8);
	else if (how == HALF_A_HEAD)
		put(&f, "12345678", 8);
	else if (how == DATA_CUT_OFF)
		put_record(&f, 3, 0, 0), f.bytes[5] = RWK_ENV_DATA;
	else if (how == UNKNOWN_OWN_KIND)
		put_record(&f, RWK_KIND_WROTE + 1, 0, 0);
	else if (how == BEHIND_BYE)
		put_record(&f, RWK_KIND_BYE, 0, 0), put_record(&f, 3, 0, 0);
	else if (how == NO_WORD)
		f.len = 3;
	else if (how == PULL_OF_WRONG_SIZE)
		put_record(&f, RWK_KIND_PULL, 31, 31);
	else if (how == LONG_WITHOUT_HEAD)
		memset(f.bytes + 4, 0xff, f.len = 256);
	else
		put_record(&f, how == LONG_OWN_KIND ? RWK_KIND_PULL : 3,
			how == LONG_TOO_LONG       ? LENGTH + 1
			: how == LONG_FRAME_LONGER ? 300
						   : 400,
			256 - 20);
	hand_send(h, many ? RWK_WIRE_SEND_FIRST : RWK_WIRE_SEND_ONLY, 1, f.bytes, f.len);
	if (many) /* all in all 256 - 20 + 100 bytes */
		hand_send(h, RWK_WIRE_SEND_LAST, 2, f.bytes, 100);
}

/* Each breach ends this channel with -EPROTO, is told the peer by a NAK, and touches nothing else. */
static void broken_frames(void **state)
{
	static const size_t nothing[] = {0};

	(void)state;
	for (enum broken how = 0; how < BROKEN_WAYS; how++) {
		struct side guest = {.peer = 5};
		struct frame f;
		struct hand h;

		ends_lengths = nothing;
		ends_lengths_count = 1;
		ends_guest = &guest;
		open_two(336, NULL);
		hand_open(&h, 0);
		hand_connect(&h);
		begin_frame(&f);
		put_record(&f, 3, 0, 0);
		hand_send(&h, RWK_WIRE_SEND_ONLY, 0, f.bytes, f.len);
		hand_pass(&h, 1000000);
		assert_int_equal(guest.received, 1);
		assert_int_equal(guest.failed, 0);
		send_broken(&h, how);
		hand_pass(&h, 1000000);
		if (guest.error != -EPROTO || h.syndrome != RWK_WIRE_NAK_INVALID)
			fail_msg("breach %d: error %d, syndrome %x", how, guest.error, h.syndrome);
		assert_int_equal(guest.failed, 1);
		assert_int_equal(guest.received, 1);
		assert_false(guest.in_place);
		assert_int_equal(ends_post(ends_side(1, 0)), 0);
		assert_int_equal(ends_post(ends_side(0, 1)), 0);
		ends_settle();
		assert_int_equal(ends_side(0, 1)->received + ends_side(1, 0)->received, 2);
		hand_close(&h);
		ends_close();
	}
}

/* A record of a peer that is within the rules at their edge is taken: nothing in a frame, and a record that fits
 * exactly. */
static void edges_are_taken(void **state)
{
	static const size_t whole[] = {256 - 20};
	struct side guest = {.peer = 5};
	struct frame f;
	struct hand h;

	(void)state;
	ends_lengths = whole;
	ends_lengths_count = 1;
	ends_guest = &guest;
	open_two(336, NULL);
	hand_open(&h, 0);
	hand_connect(&h);
	begin_frame(&f);
	hand_send(&h, RWK_WIRE_SEND_ONLY, 0, f.bytes, f.len);
	put_record(&f, 3, 256 - 20, 256 - 20);
	guest.sent = 0;
	for (size_t i = 0; i < 256 - 20; i++) /* the bytes that number 5 sends as its message 0 */
		f.bytes[20 + i] = (uint8_t)(i * 7 + 5);
	hand_send(&h, RWK_WIRE_SEND_ONLY, 1, f.bytes, f.len);
	begin_frame(&f);
	put_record(&f, RWK_KIND_BYE, 0, 0);
	hand_pass(&h, 1000000);
	assert_int_equal(guest.failed, 0);
	assert_int_equal(guest.received, 1);
	hand_send(&h, RWK_WIRE_SEND_ONLY, 2, f.bytes, f.len);
	hand_pass(&h, 1000000);
	assert_int_equal(guest.failed, 1);
	assert_int_equal(guest.error, -ECONNRESET);
	assert_int_equal(h.byes, 1);
	assert_int_equal(h.greeting.qpn, h.qpn);
	hand_close(&h);
	ends_close();
}

/* Frames of that end's that its machine has not been told the end of. */
static uint32_t unsettled(unsigned from, unsigned to)
{
	const struct rwk_packet_channel *ch = (const struct rwk_packet_channel *)ends_side(from, to)->ch;

	return ch->frames;
}

static void arrives(unsigned at, unsigned from)
{
	unsigned before = ends_side(at, from)->received;

	rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 3000);
	ends_progress(ends[at]);
	assert_true(ends_side(at, from)->received > before);
}

/*
 * What a message brings along of the peer's, that ours has arrived, can wait until the client has had it and has
 * answered: the answer goes out first. Once: then it is seen to, whether the client has answered or not, and whether
 * more has come.
 */
static void answer_first(void **state)
{
	static const size_t eight[] = {8};
	uint64_t packets;

	(void)state;
	ends_lengths = eight;
	ends_lengths_count = 1;
	open_two(4224, NULL);
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
	static const size_t eight[] = {8};

	(void)state;
	ends_lengths = eight;
	ends_lengths_count = 1;
	open_two(4224, NULL);
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
	uint8_t bytes[20000]; /* longer than what is copied when nothing comes */
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
 * in the same progress, and though it was a message that brought the acknowledgement.
 */
static void ends_in_order(void **state)
{
	static const size_t long_and_short[] = {sizeof(((struct told *)0)->bytes), 8, 8, 8};
	struct told t = {.iov = {t.bytes, sizeof(t.bytes)}};
	struct side *s;

	(void)state;
	ends_lengths = long_and_short;
	ends_lengths_count = 4;
	open_two(4224, NULL);
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
	assert_int_equal(s->ch->transport->post(s->ch, &t.op), 0);
	ends_progress(ends[0]);
	arrives(1, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ends_send(ends_side(1, 0)), 0);
	assert_int_equal(qp_counts(1, 0)->acks_out, 0);
	arrives(0, 1);
	assert_int_equal(s->received, 4);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.came, 2);
	ends_close();
}

/*
 * A message that is alone under way ends when nothing comes, whether the peer looks or not, and its bytes are those it
 * had, though they have to be sent again. Of several that are under way the first does; and none that is too long, or
 * is to end when it has arrived.
 */
static void lone_ends(void **state)
{
	static const size_t lengths_of[] = {5000, 5000, 5000, LENGTH, 5000};
	uint8_t bytes[5000];
	struct ends_op arrival;
	struct side *s;

	(void)state;
	ends_lengths = lengths_of;
	ends_lengths_count = 5;
	open_two(4224, NULL);
	s = ends_side(0, 1);
	rwk_sim_rule(ends_net, 1, 2, 1, RWK_SIM_DROP);
	assert_int_equal(ends_post(s), 0);
	assert_int_equal(s->ops, 1);
	ends_progress(ends[0]);
	assert_int_equal(s->ops, 0);
	assert_int_equal(ends_post(s), 0);
	assert_int_equal(ends_post(s), 0);
	for (int i = 0; i < 10; i++)
		ends_progress(ends[0]);
	assert_int_equal(s->ops, 1);
	ends_settle();
	assert_int_equal(s->ops, 0);
	if (ends_transport == &sim_packet_transport) /* SRC's packets go another way */
		assert_true(qp_counts(0, 1)->sent_again > 0);
	assert_int_equal(ends_post(s), 0);
	for (int i = 0; i < 10; i++)
		ends_progress(ends[0]);
	assert_int_equal(s->ops, 1);
	ends_settle();
	ends_make_op(&arrival, RWK_OP_SEND, bytes, sizeof(bytes));
	ends_fill(s, bytes, sizeof(bytes));
	arrival.op.env = ends_envelope(s);
	arrival.op.arrival = true;
	assert_int_equal(s->ch->transport->post(s->ch, &arrival.op), 0);
	for (int i = 0; i < 10; i++)
		ends_progress(ends[0]);
	assert_int_equal(arrival.done, 0);
	ends_settle();
	assert_int_equal(arrival.done, 1);
	assert_int_equal(ends_side(1, 0)->received, 5);
	ends_close();
}

/* The peer takes nothing: who sends on and on to it is not let go on from copies without end. */
static void lone_are_bounded(void **state)
{
	static const size_t lengths_of[] = {16384};
	struct side *s;
	unsigned i;

	(void)state;
	ends_lengths = lengths_of;
	ends_lengths_count = 1;
	open_two(4224, NULL);
	s = ends_side(0, 1);
	for (i = 0; i < 100 && !s->ops; i++) {
		assert_int_equal(ends_post(s), 0);
		ends_progress(ends[0]);
		ends_progress(ends[0]);
	}
	assert_int_equal(i, RWK_RELIEF_MAX / 16384 + 1);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, i);
	assert_int_equal(s->ops, 0);
	ends_close();
}

/* A message that went the shortest way is lost, and nothing else is under way: it is sent again. */
static void hurried_is_awaited(void **state)
{
	static const size_t eight[] = {8};

	(void)state;
	ends_lengths = eight;
	ends_lengths_count = 1;
	open_two(4224, NULL);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	rwk_sim_rule(ends_net, 1, 2, 1, RWK_SIM_DROP);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 2);
	assert_int_equal(qp_counts(0, 1)->sent_again, 1);
	ends_close();
}

/* A shared connection has no machine of its own: what its peer's own socket sends to its QPN goes nowhere. */
static void shared_has_no_machine(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_RC | RWK_WIRE_SEND_ONLY, .pkey = RWK_WIRE_PKEY};
	const struct iovec payload = {"none of these", 12};
	struct rwk_packet_channel *to;
	uint64_t unknown;

	(void)state;
	open_two(4224, NULL);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	to = rwk_packet_channel(ends_side(0, 1)->ch);
	assert_true(to->shared);
	unknown = counts(0)->unknown_qp;
	w.qpn = to->qpn;
	assert_int_equal(
		rwk_packet_put(ends[1]->port, &rwk_packet_channel(ends_side(1, 0)->ch)->path, &w, &payload, 1), 0);
	rwk_packet_flush(ends[1]->port);
	ends_settle();
	assert_int_equal(counts(0)->unknown_qp, unknown + 1);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 2);
	ends_close();
}

static bool stream_sent;

static bool is_sent(struct rwk_link *l)
{
	(void)l;
	return stream_sent;
}

/* A port that is closed goes on while its stream has something that has not come to the peers' hosts, and no longer. */
static void stream_is_awaited(void **state)
{
	struct rwk_link_ops ops;
	struct rwk_link *stream;

	(void)state;
	open_two(4224, NULL);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	stream = ends[0]->port->link[RWK_WAY_STREAM];
	ops = *stream->ops;
	ops.sent = is_sent;
	stream->ops = &ops;
	assert_true(rwk_packet_go_on(ends[0]->port));
	stream_sent = true;
	assert_false(rwk_packet_go_on(ends[0]->port));
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(lengths),
		ENDS_UC(lengths),
		ENDS_RC(small_ones_share),
		ENDS_UC(small_ones_share),
		ENDS_RC(page),
		ENDS_RC(full_frame),
		ENDS_RC(no_acks_in_exchange),
		ENDS_ON(acks_ride, "SRC", sim_shared_transport),
		ENDS_ON(acks_do_not_stay, "SRC", sim_shared_transport),
		ENDS_ON(long_ack_at_once, "SRC", sim_shared_transport),
		ENDS_ON(copied_ack_at_once, "SRC", sim_shared_transport),
		ENDS_RC(ack_alone),
		ENDS_RC(answer_first),
		ENDS_RC(answer_in_stream),
		ENDS_RC(ends_in_order),
		ENDS_RC(lone_ends),
		ENDS_ON(lone_ends, "SRC", sim_shared_transport),
		ENDS_RC(lone_are_bounded),
		ENDS_RC(hurried_is_awaited),
		ENDS_ON(shared_has_no_machine, "SRC", sim_shared_transport),
		ENDS_UC(stream_is_awaited),
		ENDS_RC(broken_frames),
		ENDS_RC(edges_are_taken),
	};

	return cmocka_run_group_tests_name("packet/frames", tests, NULL, NULL);
}
