/* SPDX-License-Identifier: BSD-3-Clause */
/* One process by two of its addresses, on real sockets: 127.0.0.1 and 127.0.0.2, of the loopback. */
#include "network_ends.h"

#include "base/param.h"
#include "links/tcp/tcp.h"
#include "packet/packet.h"
#include "packet/port.h"
#include "packet/streams.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOKS 6

static struct side asks[2]; /* what is asked for by an address that is not a name */

static void open_everywhere(int link)
{
	network_use_lengths();
	memset(asks, 0, sizeof(asks));
	rwk_params.link = link;
	rwk_params.interfaces = (char *)"lo";
	ends_open(NULL, NULL, 2);
	rwk_params.interfaces = NULL;
}

static void ask_at(uint8_t last, unsigned from, struct side *s)
{
	struct rwk_address to = ends[1 - from]->address;

	*s = (struct side){.end = ends[from], .peer = 1 - from};
	to.ip[15] = last;
	to.version_srq = 0;
	to.flags_rank = RWK_ADDR_PARTIAL;
	to.nonce_port = rwk_address_port(&to);
	assert_int_equal(ends_transport->connect(ends[from]->port, &to, s, &s->ch), 0);
	assert_in_range(ends_post(s), 0, 1);
}

/* Two sides of one connection: messages go to and fro. */
static void talk(struct side *a, struct side *b)
{
	struct side *side[] = {a, b};

	for (unsigned i = 0; i < 6 * NETWORK_LENGTHS; i++) {
		network_send(side[i % 2]);
		ends_wait(&side[1 - i % 2]->received, side[i % 2]->sent);
	}
	assert_int_equal(a->failed + b->failed, 0);
}

/* Which of two sides has the connection: the other fails, and says that there is one already. */
static struct side *the_one(struct side *a, struct side *b)
{
	rwk_time end = rwk_clock_now() + 20 * 1000000000ull;

	while (!a->failed && !b->failed && rwk_clock_now() < end)
		ends_turn();
	assert_int_equal(a->failed + b->failed, 1);
	assert_int_equal(a->failed ? a->error : b->error, -EALREADY);
	return a->failed ? b : a;
}

/* One of the two fails, whether it is asked later or at once; the connection by the other goes on, and its stream. */
static void two_addresses(void **state)
{
	struct rwk_packet_channel *ch;
	struct side *one, *there;

	(void)state;
	for (int how = 0; how < 6; how++) {
		open_everywhere(how % 2 ? RWK_LINK_TCP : RWK_LINK_AUTO);
		there = ends_side(1, 0);
		ask_at(how < 4 ? 1 : 2, 0, &asks[0]);
		if (how / 2 == 1) {
			ends_wait(&there->received, 1);
			talk(&asks[0], there);
		}
		ask_at(how < 4 ? 2 : 1, 0, &asks[1]);
		one = the_one(&asks[0], &asks[1]);
		ends_wait(&there->received, 1);
		talk(one, there);
		ch = rwk_packet_channel(one->ch);
		assert_true(network_has_stream(ch));
		ends_transport->disconnect(asks[one == &asks[0]].ch);
		for (int i = 0; i < 200; i++)
			ends_turn();
		talk(one, there);
		assert_true(ch->stream_open);
		assert_int_equal(ends[1]->connects, 1);
		ends_close();
	}
}

/* That of an end's two sides which has the connection, when it is open and the other has none; else NULL. */
static struct side *the_only_one(unsigned end)
{
	struct side *s[] = {&asks[end], ends_side(end, 1 - end)};
	unsigned dead = s[0]->failed ? 0 : 1;

	for (int i = 0; i < 2; i++)
		assert_true(!s[i]->failed || s[i]->error == -EALREADY);
	if (s[dead]->ch && !s[dead]->failed)
		return NULL;
	s[0] = s[1 - dead];
	return s[0]->ch && rwk_packet_channel(s[0]->ch)->state == RWK_CH_OPEN ? s[0] : NULL;
}

/* Each asks the other, one of them or both by an address that the other does not call its own. */
static void crossing(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 32; how++) {
		rwk_time end = rwk_clock_now() + 20 * 1000000000ull;

		open_everywhere(how % 2 ? RWK_LINK_TCP : RWK_LINK_AUTO);
		ask_at(2, 0, &asks[0]);
		for (unsigned i = 0; i < how / 8; i++)
			ends_progress(ends[i % 2]);
		ask_at((uint8_t)(1 + how / 2 % 2), 1, &asks[1]);
		while ((!the_only_one(0) || !the_only_one(1)) && rwk_clock_now() < end)
			ends_turn();
		assert_true(the_only_one(0) && the_only_one(1));
		talk(the_only_one(0), the_only_one(1));
		ends_close();
	}
}

/* Only that end goes on, for so long. */
static void alone(unsigned end, unsigned ms)
{
	rwk_time until = rwk_clock_now() + ms * 1000000ull;

	do {
		ends[end]->port->stream_at = 0;
		ends_progress(ends[end]);
	} while (rwk_clock_now() < until);
}

static void look_at_stream(unsigned end)
{
	struct rwk_link *stream = ends[end]->port->link[RWK_WAY_STREAM];

	ends[end]->in_progress = true;
	stream->ops->progress(stream, 64);
	ends[end]->in_progress = false;
}

/* That end begins a stream to whoever is at that address of the other, or to the process with that nonce. */
static void reach(unsigned end, uint8_t last, uint64_t nonce)
{
	struct rwk_address to = ends[1 - end]->address;
	struct rwk_link_address place;

	to.ip[15] = last;
	place = rwk_tcp_address(to.ip, rwk_address_port(&to));
	assert_int_equal(rwk_tcp_reach(ends[end]->port->link[RWK_WAY_STREAM], &place, nonce), 0);
}

/*
 * Both ask each other. The end with the lesser nonce takes the peer's CONNECT, and then is away while that answers, and
 * begins a stream; it has looked at that for so many steps when it hears the answer. So its channels are joined in that
 * progress in which, by one of those counts, the stream opens: which is not of the channel that gives way, and stays.
 */
static void joined_as_a_stream_opens(void **state)
{
	(void)state;
	for (unsigned looks = 1; looks < 3; looks++) {
		rwk_time end = rwk_clock_now() + 20 * 1000000000ull;
		unsigned me, peer;
		struct side *there;

		open_everywhere(RWK_LINK_AUTO);
		me = ends[0]->address.nonce_port > ends[1]->address.nonce_port;
		peer = 1 - me;
		there = ends_side(me, peer);
		ask_at(2, me, &asks[me]);
		ask_at(2, peer, &asks[peer]);
		while (!there->ch && rwk_clock_now() < end)
			ends_progress(ends[me]);
		alone(peer, 60);
		for (unsigned i = 0; i < looks; i++) {
			look_at_stream(me);
			alone(peer, 5);
		}
		ends[me]->port->stream_at = 0;
		ends_progress(ends[me]);
		if (there->failed)
			ends_transport->disconnect(there->ch);
		while ((!the_only_one(0) || !the_only_one(1)) && rwk_clock_now() < end)
			ends_turn();
		for (int i = 0; i < 200; i++)
			ends_turn();
		assert_true(the_only_one(0) && the_only_one(1));
		talk(the_only_one(0), the_only_one(1));
		assert_true(network_has_stream(rwk_packet_channel(the_only_one(peer)->ch)));
		ends_close();
	}
}

/*
 * Each end begins a stream at the same time, that with the lesser nonce at an address of which it does not know whose
 * it is. So this end takes the peer's as well, and the peer leaves one of the two again: the connection stays, in
 * whatever order the ends look at the streams.
 */
static void two_streams(void **state)
{
	(void)state;
	for (unsigned order = 0; order < 1u << LOOKS; order++) {
		unsigned me, peer;

		open_everywhere(RWK_LINK_AUTO);
		me = ends[0]->address.nonce_port > ends[1]->address.nonce_port;
		peer = 1 - me;
		ends_connect(me, peer);
		rwk_packet_channel(ends_side(me, peer)->ch)->stream_lost = true; /* the test begins them */
		assert_in_range(ends_post(ends_side(me, peer)), 0, 1);
		ends_wait(&ends_side(peer, me)->received, 1);
		reach(me, 2, 0);
		reach(peer, 1, ends[me]->address.nonce_port >> 16);
		for (unsigned i = 0; i < LOOKS; i++)
			look_at_stream(order >> i & 1 ? me : peer);
		for (unsigned i = 0; i < 20; i++) {
			look_at_stream(peer);
			look_at_stream(me);
		}
		talk(ends_side(me, peer), ends_side(peer, me));
		assert_true(network_has_stream(rwk_packet_channel(ends_side(me, peer)->ch)));
		ends_close();
	}
}

/* A socket that takes UDP for an end at another address, and says nothing. */
static int swallow_udp(unsigned end, uint8_t last)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(rwk_address_port(&ends[end]->address)),
		.sin_addr.s_addr = htonl(0x7f000000u | last)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* UDP does not get through, and the peer's stream has come from another address than it is asked at: it carries all. */
static void stream_from_elsewhere(void **state)
{
	struct rwk_packet_channel *ch;
	struct rwk_link_address to;
	struct rwk_link *stream;
	int fd;

	(void)state;
	open_everywhere(RWK_LINK_AUTO);
	ends_close_port(1);
	rwk_params.udp = false;
	ends_open_again(1);
	rwk_params.udp = true;
	fd = swallow_udp(1, 2);
	ends[1]->address.ip[15] = 2;
	ends_connect(0, 1);
	assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	to = rwk_tcp_address(ends[0]->address.ip, rwk_address_port(&ends[0]->address));
	stream = ends[1]->port->link[RWK_WAY_STREAM];
	assert_int_equal(rwk_tcp_reach(stream, &to, ends[0]->address.nonce_port >> 16), 0);
	ch = rwk_packet_channel(ends_side(0, 1)->ch);
	ch->stream_lost = true; /* so that it begins none itself */
	assert_true(network_has_stream(ch));
	ends_wait(&ends_side(1, 0)->received, 1);
	talk(ends_side(0, 1), ends_side(1, 0));
	ends_close();
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_NET(two_addresses),
		ENDS_NET(crossing),
		ENDS_NET(joined_as_a_stream_opens),
		ENDS_NET(two_streams),
		ENDS_NET(stream_from_elsewhere),
	};

	return cmocka_run_group_tests_name("packet/network_addresses", tests, NULL, NULL);
}
