/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of an end with what the test makes up by hand: greetings of those who are not there any more, wrong and
 * short ones, and what two ends agree on (transports/packet/HANDSHAKE.md).
 */
#include "packet/hand.h"

#include "base/param.h"
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/sim_domain.h"
#include "packet/streams.h"
#include "shared_rc/internal.h"

static const struct rwk_packet_counters *counts(unsigned end)
{
	return rwk_packet_counters(ends[end]->port);
}

/*
 * A greeting that means the process that had this port before is refused, whatever it is, and makes no channel; its
 * asker's channel fails as of a peer that has ended.
 */
static void stale_epoch(void **state)
{
	struct rwk_greeting g;
	struct hand h;

	(void)state;
	ends_open(NULL, NULL, 1);
	hand_open(&h, 0);
	g = hand_greeting(&h, RWK_GREETING_CONNECT);
	g.to.nonce_port ^= 1ull << 40;
	hand_greet(&h, &g);
	hand_pass(&h, 10000);
	assert_int_equal(h.refusals, 1);
	assert_int_equal(h.greeting.reason, -ESTALE);
	assert_int_equal(h.greeting.echo, g.echo);
	for (enum rwk_greeting_type t = RWK_GREETING_REFUSE; t <= RWK_GREETING_BYE; t++) {
		g = hand_greeting(&h, t);
		g.to.nonce_port ^= 1ull << 40;
		hand_greet(&h, &g);
	}
	hand_pass(&h, 10000);
	assert_int_equal(h.packets_in, 1);
	assert_int_equal(hand_counts(&h)->stale, 3);
	assert_int_equal(ends[0]->connects, 0);
	hand_close(&h);
	ends_close();

	ends_open(NULL, NULL, 2);
	ends[1]->address.nonce_port ^= 1ull << 40;
	ends_connect(0, 1);
	ends_settle();
	assert_int_equal(ends_side(0, 1)->error, -ECONNRESET);
	assert_int_equal(counts(1)->refused, 1);
	assert_int_equal(counts(1)->stale, 1);
	assert_int_equal(ends[1]->connects, 0);
	ends_close();
}

/*
 * A CONNECT that comes when its sender is gone makes a half that nobody wants. Whoever is there now refuses the ACCEPT,
 * as another process would; the client is told that the peer has ended. An end that gets such an ACCEPT does refuse it.
 */
static void nobody_wants_the_half(void **state)
{
	struct side guest = {.peer = 5};
	struct rwk_greeting g, a;
	struct hand h;

	(void)state;
	ends_open(NULL, NULL, 1);
	ends_guest = &guest;
	hand_open(&h, 0);
	g = hand_greeting(&h, RWK_GREETING_CONNECT);
	hand_greet(&h, &g);
	hand_pass(&h, 5000);
	assert_int_equal(h.accepts, 1);
	a = hand_greeting(&h, RWK_GREETING_REFUSE);
	a.reason = -ESTALE;
	a.echo = g.echo ^ 1;
	hand_greet(&h, &a);
	hand_pass(&h, 5000);
	assert_int_equal(guest.failed, 0);
	a.echo = g.echo;
	hand_greet(&h, &a);
	hand_pass(&h, 5000);
	assert_int_equal(guest.failed, 1);
	assert_int_equal(guest.error, -ECONNRESET);
	hand_pass(&h, 1000000000);
	assert_int_equal(h.packets_in, 1);

	g = hand_greeting(&h, RWK_GREETING_ACCEPT);
	g.to.nonce_port ^= 1ull << 40;
	hand_greet(&h, &g);
	hand_pass(&h, 5000);
	assert_int_equal(h.refusals, 1);
	assert_int_equal(h.greeting.reason, -ESTALE);
	assert_int_equal(h.greeting.echo, g.echo);
	hand_close(&h);
	ends_close();
}

/* A refusal or an answer of somebody who was not asked, or that carries another echo, changes nothing. */
static void wrong_answers(void **state)
{
	struct side guest = {.peer = 5};
	struct rwk_greeting g;
	struct hand h;

	(void)state;
	ends_open(NULL, NULL, 1);
	ends_guest = &guest;
	hand_open(&h, 0);
	for (enum rwk_greeting_type t = RWK_GREETING_ACCEPT; t <= RWK_GREETING_BYE; t++) {
		g = hand_greeting(&h, t); /* nobody has asked */
		hand_greet(&h, &g);
	}
	hand_pass(&h, 10000);
	assert_int_equal(h.packets_in, 0);
	assert_null(guest.ch);
	guest.end = ends[0];
	assert_int_equal(ends_transport->connect(ends[0]->port, &h.address, &guest, &guest.ch), 0);
	hand_pass(&h, 3000);
	assert_int_equal(h.packets_in, 1);
	assert_int_equal(h.greeting.type, RWK_GREETING_CONNECT);
	for (enum rwk_greeting_type t = RWK_GREETING_ACCEPT; t <= RWK_GREETING_BYE; t++) {
		g = hand_greeting(&h, t);
		g.echo ^= 1;
		hand_greet(&h, &g);
	}
	hand_pass(&h, 3000);
	assert_int_equal(guest.failed, 0);
	assert_int_equal(ends_transport->send(guest.ch, &(struct rwk_envelope){.kind = 1}, "", 0), -EAGAIN);
	assert_int_equal(hand_counts(&h)->stale, 4);
	g = hand_greeting(&h, RWK_GREETING_ACCEPT); /* the right one */
	g.echo = h.greeting.echo;
	hand_greet(&h, &g);
	hand_pass(&h, 3000);
	assert_int_equal(ends_transport->send(guest.ch, &(struct rwk_envelope){.kind = 1}, "", 0), 0);
	g = hand_greeting(&h, RWK_GREETING_BYE); /* of another connection, with this peer */
	g.qpn ^= 1;
	hand_greet(&h, &g);
	g = hand_greeting(&h, RWK_GREETING_REFUSE); /* too late */
	g.echo = h.greeting.echo;
	g.reason = -EACCES;
	hand_greet(&h, &g);
	hand_pass(&h, 3000);
	assert_int_equal(guest.failed, 0);
	g = hand_greeting(&h, RWK_GREETING_BYE);
	hand_greet(&h, &g);
	hand_pass(&h, 3000);
	assert_int_equal(guest.failed, 1);
	hand_close(&h);
	ends_close();
}

/*
 * What the two agree on is what each says of itself: PMTU and window are the smaller, and kept to. The window is what
 * the receive buffer holds of packets of that PMTU.
 */
static void terms(void **state)
{
	static uint8_t bytes[60000];
	struct side guest = {.peer = 5};
	struct ends_op op;
	struct hand h;

	(void)state;
	ends_open(&(struct rwk_sim_attr){.seed = 1, .mtu = 4224, .path.delay = 1000}, NULL, 1);
	ends_guest = &guest;
	hand_open(&h, 0);
	hand_connect(&h); /* it says 256 bytes and 16 packets */
	assert_int_equal(h.greeting.pmtu, 4096);
	assert_int_equal(h.greeting.window, 2 * h.greeting.room / (4096 + RWK_PACKET_COST));
	h.packets_in = 0;
	h.bytes_in = 0;
	ends_make_op(&op, RWK_OP_SEND, bytes, sizeof(bytes));
	op.op.env.kind = 3;
	assert_in_range(ends_transport->post(guest.ch, &op.op), 0, 1);
	hand_pass(&h, 1000000);
	assert_in_range(h.packets_in, 1, 16);
	assert_in_range(h.bytes_in, h.packets_in * 256, h.packets_in * (256 + 16));
	hand_close(&h);
	ends_close();
	assert_int_equal(op.done, 1);
}

/* Who comes back while the peer has not heard yet that the connection before has ended is refused, and asks again. */
static void too_early(void **state)
{
	struct side guest = {.peer = 5};
	struct rwk_greeting g;
	struct hand h;

	(void)state;
	ends_open(NULL, NULL, 1);
	ends_guest = &guest;
	hand_open(&h, 0);
	guest.end = ends[0];
	assert_int_equal(ends_transport->connect(ends[0]->port, &h.address, &guest, &guest.ch), 0);
	for (unsigned i = 0; i < 5; i++) {
		unsigned before = h.packets_in;

		hand_pass(&h, 600 * 1000 * 1000);
		assert_true(h.packets_in > before);
		assert_int_equal(h.greeting.type, RWK_GREETING_CONNECT);
		g = hand_greeting(&h, RWK_GREETING_REFUSE);
		g.echo = h.greeting.echo;
		g.reason = -EALREADY;
		hand_greet(&h, &g);
		hand_pass(&h, 3000);
		assert_int_equal(guest.failed, 0);
	}
	g = hand_greeting(&h, RWK_GREETING_ACCEPT);
	g.echo = h.greeting.echo;
	hand_greet(&h, &g);
	hand_pass(&h, 3000);
	assert_int_equal(ends_transport->send(guest.ch, &(struct rwk_envelope){.kind = 1}, "", 0), 0);
	hand_close(&h);
	ends_close();
}

/*
 * Who is known by IP and port is waited for as long as the user says. A stream shows that somebody is there: then he is
 * asked as long as that is open; but where UDP alone carries connections, and does not get through, nothing would end it.
 */
static void there_but_silent(void **state)
{
	static const struct {
		int link, service;
	} ways[] = {
		{RWK_LINK_AUTO, RWK_SERVICE_AUTO},
		{RWK_LINK_UDP, RWK_SERVICE_AUTO},
		{RWK_LINK_AUTO, RWK_SERVICE_RC},
		{RWK_LINK_AUTO, RWK_SERVICE_SRC},
	};

	for (int way = 0; way < 4; way++) {
		bool udp_alone = way;
		struct rwk_address to = {.flags_rank = RWK_ADDR_PARTIAL};
		struct side guest = {.peer = 5};
		struct rwk_link_address at;
		struct hand h;

		(void)state;
		rwk_params.connect_wait = 1;
		rwk_params.link = ways[way].link;
		rwk_params.service = ways[way].service;
		ends_open(NULL, NULL, 1);
		ends_guest = &guest;
		hand_open(&h, 0);
		to.nonce_port = rwk_address_port(&h.address);
		at = rwk_sim_address(rwk_address_port(&to));
		guest.end = ends[0];
		assert_int_equal(ends_transport->connect(ends[0]->port, &to, &guest, &guest.ch), 0);
		hand_pass(&h, 40 * 1000000000ull);
		assert_int_equal(guest.failed, udp_alone);
		if (!udp_alone) {
			rwk_packet_word(ends[0]->port, &at, -ETIMEDOUT);
			hand_pass(&h, 20 * 1000000000ull);
			assert_int_equal(guest.failed, 0);
			hand_pass(&h, 20 * 1000000000ull);
		}
		assert_int_equal(guest.failed, 1);
		assert_int_equal(guest.error, -ECONNREFUSED);
		hand_close(&h);
		ends_close();
	}
}

/* An end with packets of 4 KB, and the hand. */
static void open_hand(struct hand *h, struct side *guest)
{
	ends_open(&(struct rwk_sim_attr){.seed = 1, .mtu = 4224, .path.delay = 1000}, NULL, 1);
	*guest = (struct side){.end = ends[0], .peer = 5};
	ends_guest = guest;
	hand_open(h, 0);
}

/* The end asks the hand. */
static struct rwk_packet_channel *ask_hand(struct hand *h, struct side *guest)
{
	open_hand(h, guest);
	assert_int_equal(ends_transport->connect(ends[0]->port, &h->address, guest, &guest->ch), 0);
	hand_pass(h, 3000);
	assert_int_equal(h->greeting.type, RWK_GREETING_CONNECT);
	assert_int_equal(h->greeting.pmtu, 4096);
	return rwk_packet_channel(guest->ch);
}

/*
 * A CONNECT is as long as the packets that it asks for, so that a way that swallows those swallows it too; the ACCEPT
 * in answer is as long as they will be, but never longer than the CONNECT.
 */
static void as_long_as_packets(void **state)
{
	static const uint16_t pads[] = {0, 100, 4096 - RWK_GREETING_SIZE};
	struct side guest;
	struct rwk_greeting g;
	struct hand h;

	(void)state;
	for (size_t i = 0; i < sizeof(pads) / sizeof(*pads); i++) {
		open_hand(&h, &guest);
		g = hand_greeting(&h, RWK_GREETING_CONNECT);
		g.pmtu = 1024;
		g.pad = pads[i];
		hand_greet(&h, &g);
		hand_pass(&h, 3000);
		assert_int_equal(h.accepts, 1);
		assert_int_equal(h.greeting.pmtu, 4096);
		assert_int_equal(
			h.greeting.pad, pads[i] < 1024 - RWK_GREETING_SIZE ? pads[i] : 1024 - RWK_GREETING_SIZE);
		hand_close(&h);
		ends_close();
	}
	ask_hand(&h, &guest);
	assert_int_equal(h.greeting.pad, 4096 - RWK_GREETING_SIZE);
	hand_close(&h);
	ends_close();
}

/* The kernel learns that the way carries less. */
static void make_narrow(size_t mtu)
{
	((struct rwk_sim_attr *)rwk_sim_attr(ends_net))->mtu = mtu;
}

/*
 * The way becomes narrower during the handshake. Both ends make their machines by what was said with a QPN: an answer to
 * a CONNECT is one to its PMTU, and each ACCEPT has that of the first. Who asks again then asks for shorter packets, and
 * anew.
 */
static void narrower_meanwhile(void **state)
{
	struct rwk_packet_channel *ch;
	struct side guest;
	struct rwk_greeting g, asked;
	struct hand h;

	(void)state;
	ch = ask_hand(&h, &guest);
	make_narrow(1500);
	g = hand_greeting(&h, RWK_GREETING_ACCEPT);
	g.echo = h.greeting.echo;
	g.pmtu = 4096;
	hand_greet(&h, &g);
	hand_pass(&h, 3000);
	assert_int_equal(ch->state, RWK_CH_OPEN);
	assert_int_equal(ch->pmtu, 4096);
	assert_int_equal(h.greeting.pmtu, 4096); /* of its ACCEPT */
	hand_close(&h);
	ends_close();

	ask_hand(&h, &guest);
	asked = h.greeting;
	make_narrow(1500);
	hand_pass(&h, 20 * 1000 * 1000);
	assert_int_equal(h.greeting.pmtu, 1408);
	assert_int_equal(h.greeting.echo, asked.echo + 1);
	assert_int_not_equal(h.greeting.qpn, asked.qpn);
	hand_close(&h);
	ends_close();

	open_hand(&h, &guest);
	g = hand_greeting(&h, RWK_GREETING_CONNECT);
	g.pmtu = 4096;
	for (unsigned i = 1; i <= 3; i++) {
		hand_greet(&h, &g);
		hand_pass(&h, 3000);
		assert_int_equal(h.accepts, i);
		assert_int_equal(h.greeting.pmtu, 4096);
		make_narrow(1500);
	}
	assert_int_equal(rwk_packet_channel(guest.ch)->pmtu, 4096);
	hand_close(&h);
	ends_close();
}

/* A short answer to the last CONNECT: all that gets through, or all that there is room for. */
static void answer_short(struct hand *h, uint16_t pad)
{
	struct rwk_greeting g = hand_greeting(h, RWK_GREETING_ACCEPT);

	g.echo = h->greeting.echo;
	g.pmtu = h->greeting.pmtu;
	g.pad = pad;
	hand_greet(h, &g);
	hand_pass(h, 3000);
}

/*
 * A stream shows that the peer is there, long CONNECTs have no answer, and a short one has: once, that may be for want
 * of room, and the next long answer makes a connection with long packets; twice, the way swallows what is long.
 */
static void short_answers(void **state)
{
	for (unsigned answers = 1; answers <= 2; answers++) {
		struct side guest = {.peer = 5};
		struct rwk_packet_channel *ch;
		uint64_t token;
		struct hand h;

		(void)state;
		ends_open(&(struct rwk_sim_attr){.seed = 1, .mtu = 4224, .path.delay = 1000}, NULL, 1);
		ends_guest = &guest;
		hand_open(&h, 0);
		guest.end = ends[0];
		assert_int_equal(ends_transport->connect(ends[0]->port, &h.address, &guest, &guest.ch), 0);
		ch = rwk_packet_channel(guest.ch);
		ch->stream_open = true;
		hand_pass(&h, 40 * 1000 * 1000);
		token = h.greeting.echo;
		assert_int_equal(h.greeting.pad, 0);
		answer_short(&h, 0);
		answer_short(&h, 0); /* to an earlier one: it says nothing more */
		hand_pass(&h, 60 * 1000 * 1000); /* both are sent once more */
		assert_int_equal(ch->pmtu_most, 0);
		assert_int_equal(h.greeting.echo, token);
		answer_short(&h, answers == 1 ? 4096 - RWK_GREETING_SIZE : 0);
		if (answers == 1) {
			assert_int_equal(ch->state, RWK_CH_OPEN);
			assert_int_equal(ch->pmtu, 4096);
		} else {
			assert_int_equal(ch->pmtu_most, 1024);
			assert_int_equal(h.greeting.pmtu, 1024);
			assert_int_not_equal(h.greeting.echo, token);
		}
		ch->stream_open = false; /* there was none */
		hand_close(&h);
		ends_close();
	}
}

/*
 * A peer's packets leave by another of its addresses than its CONNECT has done: they are taken from where the greeting
 * comes that says that it has heard us.
 */
static void from_another_address(void **state)
{
	struct side guest = {.peer = 5};
	struct hand asking, h;
	struct rwk_greeting g;

	(void)state;
	ends_open(NULL, NULL, 1);
	ends_guest = &guest;
	hand_open(&asking, 0);
	hand_open(&h, 0);
	h.address = asking.address;
	g = hand_greeting(&asking, RWK_GREETING_CONNECT);
	hand_greet(&asking, &g);
	hand_pass(&asking, 5000);
	assert_int_equal(asking.accepts, 1);
	h.qpn = asking.greeting.qpn;
	g.type = RWK_GREETING_ACCEPT;
	hand_greet(&h, &g);
	hand_send(&h, RWK_WIRE_SEND_ONLY, 1, NULL, 0); /* behind a gap: it is answered, and given to nobody */
	hand_pass(&h, 5000);
	assert_int_equal(hand_counts(&h)->wrong_sender, 0);
	hand_poll(&asking);
	assert_int_equal(asking.acks, 1);
	hand_close(&h);
	hand_close(&asking);
	ends_close();
}

/* SRC: the end has answered the hand's CONNECT, which is returned, and waits to hear that it has heard. */
static struct rwk_greeting accept_shared(struct hand *h, struct side *guest)
{
	struct rwk_packet_channel *ch;
	struct rwk_greeting g;

	ends_open(NULL, NULL, 0);
	sim_packet_host(0);
	ends_add();
	*guest = (struct side){.end = ends[0], .peer = 5};
	ends_guest = guest;
	hand_open(h, 0);
	h->features = RWK_GREETING_SHARED;
	g = hand_greeting(h, RWK_GREETING_CONNECT);
	g.from.job = ends[0]->address.job;
	g.shared = (struct rwk_greeting_shared){
		.domain = 7, .srqn = 5, .qpn = HAND_QPN + 1, .port = (uint16_t)rwk_sim_number(h->link)};
	hand_greet(h, &g);
	hand_pass(h, 5000);
	assert_true(h->greeting.features & RWK_GREETING_SHARED);
	h->qpn = h->greeting.qpn;
	ch = rwk_packet_channel(guest->ch);
	assert_int_equal(ch->state, RWK_CH_ACCEPTING);
	assert_int_equal(ch->peer_qpn, g.qpn);
	return g;
}

/* The ACCEPT that the end waits for has another QPN than the CONNECT that it has answered: that is the peer's now. */
static void shared_anew(void **state)
{
	struct rwk_packet_channel *ch;
	struct side guest;
	struct rwk_greeting g;
	struct hand h;

	(void)state;
	g = accept_shared(&h, &guest);
	ch = rwk_packet_channel(guest.ch);
	g.type = RWK_GREETING_ACCEPT;
	g.qpn++;
	g.shared.target = HAND_QPN + 2;
	hand_greet(&h, &g);
	hand_pass(&h, 5000);
	assert_int_equal(ch->state, RWK_CH_OPEN);
	assert_true(rwk_packet_is_shared(guest.ch));
	assert_int_equal(ch->peer_qpn, g.qpn);
	hand_close(&h);
	ends_close();
}

/*
 * SRC: who has been answered asks anew, for another connection, and the domain is busy: what was agreed on before is no
 * more, so nothing is taken or sent by it, and the end asks too. Once the domain is free what is asked is answered.
 */
static void shared_anew_while_busy(void **state)
{
	struct rwk_packet_channel *ch;
	struct rwk_src_view *v;
	struct side guest;
	struct rwk_greeting g;
	struct hand h;

	(void)state;
	g = accept_shared(&h, &guest);
	ch = rwk_packet_channel(guest.ch);
	v = ends[0]->port->view;
	g.qpn++;
	g.echo++;
	assert_true(rwk_src_lock(v, &v->header->lock));
	hand_greet(&h, &g);
	hand_send(&h, RWK_WIRE_SEND_ONLY, 0, "1234", 4);
	hand_pass(&h, 20 * 1000 * 1000);
	rwk_src_unlock(&v->header->lock);
	assert_int_equal(h.accepts, 1);
	assert_int_equal(h.greeting.type, RWK_GREETING_CONNECT);
	assert_int_equal(hand_counts(&h)->unknown_qp, 1);
	hand_greet(&h, &g);
	hand_pass(&h, 5000);
	assert_int_equal(h.accepts, 2);
	assert_true(h.greeting.features & RWK_GREETING_SHARED);
	g.type = RWK_GREETING_ACCEPT;
	g.shared.target = HAND_QPN + 2;
	hand_greet(&h, &g);
	hand_pass(&h, 5000);
	assert_int_equal(ch->state, RWK_CH_OPEN);
	assert_true(rwk_packet_is_shared(guest.ch));
	assert_int_equal(ends_transport->send(guest.ch, &(struct rwk_envelope){.kind = 1}, "", 0), 0);
	hand_close(&h);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(stale_epoch),
		ENDS_RC(nobody_wants_the_half),
		ENDS_RC(wrong_answers),
		ENDS_RC(terms),
		ENDS_RC(as_long_as_packets),
		ENDS_RC(short_answers),
		ENDS_RC(narrower_meanwhile),
		ENDS_ON(shared_anew, "SRC", sim_shared_transport),
		ENDS_ON(shared_anew_while_busy, "SRC", sim_shared_transport),
		ENDS_RC(from_another_address),
		ENDS_RC(too_early),
		ENDS_ON(there_but_silent, "SRC, UC", sim_both_transport),
	};

	return cmocka_run_group_tests_name("packet/handshake by hand", tests, NULL, NULL);
}
