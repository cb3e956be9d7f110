/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that are not for us, of nobody we know, broken or forged: each is counted by its reason, changes nothing, and
 * is never answered with more than it was (transports/packet/HANDSHAKE.md, "Strangers").
 */
#include "packet/hand.h"

#include "machine.h"
#include "rc/rc.h"

#define OWN (RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS)

/* End 0 with a channel to end 1, and one to the hand, over which one message has come. */
static struct side guest;
static struct hand friend, stranger;

static void send_message(uint32_t psn)
{
	uint8_t frame[20] = {0};

	frame[4] = 3;
	memcpy(frame + 12, &(uint64_t){guest.received}, 8);
	hand_send(&friend, RWK_WIRE_SEND_ONLY, psn, frame, sizeof(frame));
	hand_pass(&friend, 200000);
}

static void open_all(uint32_t features)
{
	static const size_t nothing[] = {0};

	ends_lengths = nothing;
	ends_lengths_count = 1;
	ends_open_two();
	guest = (struct side){.peer = 5};
	ends_guest = &guest;
	hand_open(&friend, 0);
	friend.features = features;
	hand_connect(&friend);
	ends_guest = NULL;
	send_message(0);
	assert_int_equal(guest.received, 1);
	hand_open(&stranger, 0);
}

/* Nothing has come of it, and nothing has gone to it beyond what it has sent itself; all is well with the others. */
static void close_all(unsigned connects)
{
	unsigned accepts;

	hand_poll(&friend);
	accepts = friend.accepts;
	assert_int_equal(ends[0]->connects, connects);
	assert_true(stranger.bytes_in <= stranger.bytes_out);
	assert_int_equal(guest.failed, 0);
	assert_int_equal(guest.received, 1);
	send_message(1);
	assert_int_equal(guest.received, 2);
	assert_int_equal(friend.accepts, accepts);
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	assert_in_range(ends_post(ends_side(1, 0)), 0, 1);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 1);
	assert_int_equal(ends_side(0, 1)->received, 1);
	hand_close(&friend);
	hand_close(&stranger);
	ends_close();
}

/* Every greeting under another job's key: not a word, not a channel. */
static void wrong_key(void **state)
{
	(void)state;
	open_all(OWN);
	stranger.key[31] ^= 1;
	for (enum rwk_greeting_type t = RWK_GREETING_CONNECT; t <= RWK_GREETING_BYE; t++) {
		struct rwk_greeting g = hand_greeting(&stranger, t);

		hand_greet(&stranger, &g);
	}
	hand_pass(&stranger, 100000);
	assert_int_equal(stranger.packets_in, 0);
	assert_int_equal(hand_counts(&friend)->wrong_key, 4);
	close_all(0);
}

/* Each bit of a good greeting flipped, with a right ICRC: not a word. */
static void changed_greeting(void **state)
{
	uint8_t bytes[RWK_GREETING_SIZE];
	struct rwk_greeting g;

	(void)state;
	open_all(OWN);
	g = hand_greeting(&stranger, RWK_GREETING_CONNECT);
	assert_int_equal(rwk_greeting_pack(&g, stranger.key, bytes), 0);
	for (unsigned bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		hand_greet_bytes(&stranger, bytes, sizeof(bytes));
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		hand_pass(&stranger, 3000);
	}
	assert_int_equal(stranger.packets_in, 0);
	assert_int_equal(hand_counts(&friend)->wrong_key, 8 * sizeof(bytes));
	close_all(0);
}

/* Greetings cut short or with something behind, and packets of any bytes at all. */
static void garbage(void **state)
{
	uint8_t bytes[RWK_GREETING_SIZE + 8] = {0};
	const struct rwk_packet_counters *c;
	struct rwk_greeting g;
	unsigned sent = 0;

	(void)state;
	open_all(OWN);
	c = hand_counts(&friend);
	g = hand_greeting(&stranger, RWK_GREETING_CONNECT);
	assert_int_equal(rwk_greeting_pack(&g, stranger.key, bytes), 0);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		if (len == RWK_GREETING_SIZE)
			continue;
		hand_greet_bytes(&stranger, bytes, len);
		sent++;
	}
	hand_pass(&stranger, 100000);
	assert_int_equal(c->wrong_key, sent);
	for (unsigned i = 0; i < 20000; i++) {
		uint8_t any[200];
		size_t len = rwk_sim_random(ends_net, sizeof(any) + 1);

		for (size_t k = 0; k < len; k++)
			any[k] = (uint8_t)rwk_sim_random(ends_net, 256);
		if (len > 8 && i % 2) { /* at least of a class that exists, to the QP that there is */
			any[0] &= 0x1f;
			any[1] &= 0xf0;
			any[5] = (uint8_t)(friend.qpn >> 16);
			any[6] = (uint8_t)(friend.qpn >> 8);
			any[7] = (uint8_t) friend.qpn;
		}
		hand_raw(i % 3 ? &stranger : &friend, any, len);
		sent++;
		if (i % 100 == 0)
			hand_pass(&stranger, 10000);
	}
	hand_pass(&stranger, 100000);
	assert_int_equal(stranger.packets_in, 0);
	assert_int_equal(c->wrong_key + c->malformed + c->wrong_icrc + c->unknown_qp + c->wrong_sender, sent);
	assert_true(c->malformed > 1000 && c->wrong_icrc > 1000);
	close_all(0);
}

/*
 * A greeting seen on its way and sent again by someone else, as often as he likes: one answer at most for each, to the
 * address that the greeting names, and all stays as it is.
 */
static void replayed(void **state)
{
	static const enum rwk_greeting_type types[] = {RWK_GREETING_CONNECT, RWK_GREETING_ACCEPT, RWK_GREETING_REFUSE};
	unsigned in;

	(void)state;
	open_all(OWN);
	in = friend.packets_in;
	for (unsigned t = 0; t < 3; t++) {
		struct rwk_greeting g = hand_greeting(&friend, types[t]);

		for (int i = 0; i < 10; i++)
			hand_greet(&stranger, &g);
	}
	hand_pass(&stranger, 300000);
	hand_poll(&friend);
	assert_int_equal(stranger.packets_in, 0);
	assert_int_equal(friend.packets_in, in + 10);
	assert_int_equal(friend.greeting.qpn, friend.qpn);
	assert_int_equal(friend.greeting.psn, friend.psn);
	close_all(0);
}

/* The same of a peer that has gone: one half is made of it however often it comes, and its answers go to that peer. */
static void replayed_of_the_dead(void **state)
{
	struct rwk_greeting g;

	(void)state;
	open_all(OWN);
	g = hand_greeting(&friend, RWK_GREETING_CONNECT);
	g.from.nonce_port += 1ull << 20; /* another life of the same node; and nobody is there who would answer */
	for (int i = 0; i < 10; i++)
		hand_greet(&stranger, &g);
	ends_guest = &(struct side){.peer = 6};
	hand_pass(&stranger, 300000);
	assert_int_equal(stranger.packets_in, 0);
	ends_transport->disconnect(ends_guest->ch);
	close_all(1);
}

static struct rwk_wire wire(uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	return (struct rwk_wire){.opcode = opcode,
		.migrated = true,
		.ack_request = true,
		.pkey = RWK_WIRE_PKEY,
		.qpn = qpn,
		.psn = (HAND_PSN + psn) & 0xffffffu};
}

/* Packets for a connection that stands, each right but for one thing. */
static void one_thing_wrong(void **state)
{
	const struct rwk_packet_counters *c;
	const struct rwk_qp_counters *q;
	uint8_t frame[20] = {0, 0, 0, 0, 3};
	struct rwk_wire w;

	(void)state;
	open_all(OWN);
	c = hand_counts(&friend);
	q = rwk_packet_qp_counters(guest.ch);
	w = wire(RWK_WIRE_SEND_ONLY, friend.qpn, 1);
	hand_packet(&stranger, &w, frame, sizeof(frame), 0); /* by another */
	hand_pass(&stranger, 100000);
	assert_int_equal(c->wrong_sender, 1);
	hand_packet(&friend, &w, frame, sizeof(frame), 1 << 13); /* damaged */
	hand_pass(&friend, 100000);
	assert_int_equal(c->wrong_icrc, 1);
	w.qpn ^= 1; /* to nobody */
	hand_packet(&friend, &w, frame, sizeof(frame), 0);
	hand_pass(&friend, 100000);
	assert_int_equal(c->unknown_qp, 1);
	w = wire(RWK_WIRE_SEND_ONLY, friend.qpn, 400); /* far ahead */
	hand_packet(&friend, &w, frame, sizeof(frame), 0);
	hand_pass(&friend, 100000);
	assert_int_equal(q->too_far, 1);
	w = wire(RWK_WIRE_SEND_ONLY, friend.qpn, 0x800000); /* half around */
	hand_packet(&friend, &w, frame, sizeof(frame), 0);
	hand_pass(&friend, 100000);
	assert_int_equal(q->too_far, 2);
	for (unsigned class = 1; class < 8; class ++) { /* of another service */
		uint8_t opcode = (uint8_t)(class << 5 | RWK_WIRE_SEND_ONLY);

		if (!rwk_wire_header_size(opcode))
			continue;
		w = wire(opcode, friend.qpn, 1);
		hand_packet(&friend, &w, frame, sizeof(frame), 0);
		hand_pass(&friend, 100000);
	}
	assert_true(q->bad_opcode >= 3);
	w = wire(RWK_WIRE_ACK, friend.qpn, 0); /* acknowledges what was never sent */
	w.psn = (friend.psn + 1000) & 0xffffffu;
	hand_packet(&friend, &w, NULL, 0, 0);
	hand_pass(&friend, 100000);
	assert_int_equal(q->too_far, 3);
	assert_int_equal(stranger.packets_in, 0);
	close_all(0);
}

/* An acknowledgement in a frame of what was never sent is counted, the frame is taken. */
static void false_ack_in_frame(void **state)
{
	const struct rwk_qp_counters *q;
	uint8_t frame[4];
	uint32_t word;

	(void)state;
	open_all(OWN);
	q = rwk_packet_qp_counters(guest.ch);
	word = 1u << 24 | ((friend.psn + 1000) & 0xffffffu);
	memcpy(frame, &word, sizeof(word));
	hand_send(&friend, RWK_WIRE_SEND_ONLY, 1, frame, sizeof(frame));
	hand_pass(&friend, 100000);
	assert_int_equal(q->too_far, 1);
	assert_int_equal(guest.failed, 0);
	send_message(2);
	assert_int_equal(guest.received, 2);
	hand_close(&friend);
	hand_close(&stranger);
	ends_close();
}

/* Without the features of our own ends the connection is plain RC: acknowledgements are those that anybody knows. */
static void no_features(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++) {
		open_all(own ? OWN : 0);
		assert_int_equal(friend.own_acks != 0, own);
		assert_true(friend.acks > 0);
		close_all(0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(wrong_key),
		ENDS_RC(changed_greeting),
		ENDS_RC(garbage),
		ENDS_RC(replayed),
		ENDS_RC(replayed_of_the_dead),
		ENDS_RC(one_thing_wrong),
		ENDS_RC(false_ack_in_frame),
		ENDS_RC(no_features),
	};

	return cmocka_run_group_tests_name("packet/strangers", tests, NULL, NULL);
}
