/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames (transports/packet/FRAME.md), and packets, that no end of ours sends: what they end, and what they do not. */
#include "packet/pair.h"

#include "packet/channel.h"
#include "packet/hand.h"
#include "packet/inbound.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/pull.h"

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
	(void)state;
	for (enum broken how = 0; how < BROKEN_WAYS; how++) {
		struct side guest = {.peer = 5};
		struct frame f;
		struct hand h;

		ends_guest = &guest;
		pair_open(336, 0);
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

/* What is within the rules at their edge is taken: nothing in a frame, and a record that fits exactly. */
static void edges_are_taken(void **state)
{
	struct side guest = {.peer = 5};
	struct frame f;
	struct hand h;

	(void)state;
	ends_guest = &guest;
	pair_open(336, 256 - 20);
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

/* A pair that shares connections, and its first end's channel, which has carried a message. */
static struct rwk_packet_channel *open_shared(void)
{
	struct rwk_packet_channel *ch;

	pair_open_list(4224, NULL, 0, NULL);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	ch = rwk_packet_channel(ends_side(0, 1)->ch);
	assert_true(ch->shared);
	return ch;
}

/* A shared connection has no machine of its own: what its peer's own socket sends to its QPN goes nowhere. */
static void shared_has_no_machine(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_RC | RWK_WIRE_SEND_ONLY, .pkey = RWK_WIRE_PKEY};
	const struct iovec payload = {"none of these", 12};
	struct rwk_packet_channel *to;
	uint64_t unknown;

	(void)state;
	to = open_shared();
	unknown = pair_counts(0)->unknown_qp;
	w.qpn = to->qpn;
	assert_int_equal(
		rwk_packet_put(ends[1]->port, &rwk_packet_channel(ends_side(1, 0)->ch)->path, &w, &payload, 1), 0);
	rwk_packet_flush(ends[1]->port);
	ends_settle();
	assert_int_equal(pair_counts(0)->unknown_qp, unknown + 1);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 2);
	ends_close();
}

/* Nor does it take as long a message as another: it would have to find room where it waits for its receiver. */
static void shared_takes_less(void **state)
{
	struct rwk_packet_channel *to;
	struct frame f;

	(void)state;
	to = open_shared();
	assert_int_equal(to->base.send_max, 65536);
	begin_frame(&f);
	put_record(&f, 3, 65537, 256);
	assert_int_equal(rwk_packet_receive(to, RWK_PIECE_FIRST, f.bytes, f.len), -EINVAL);
	ends_settle();
	assert_int_equal(ends_side(0, 1)->error, -EPROTO);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_ON(shared_has_no_machine, "SRC", sim_shared_transport),
		ENDS_ON(shared_takes_less, "SRC", sim_shared_transport),
		ENDS_RC(broken_frames),
		ENDS_RC(edges_are_taken),
	};

	return cmocka_run_group_tests_name("packet/broken_frames", tests, NULL, NULL);
}
