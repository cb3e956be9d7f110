/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is looked at among many channels: not all of them each time. The port is bare, and its channels have no
 * machines.
 */
#include "rwk_test.h"

#include "packet/channel.h"
#include "packet/handshake.h"
#include "packet/numbers.h"
#include "packet/port.h"
#include "packet/streams.h"

#define MANY    20000
#define AT_ONCE 8192 /* as in evidence.c */

static struct rwk_port port;
static struct rwk_packet_channel *channels[MANY];
static uint64_t nonce_there;

/* Each peer has a place of its own. */
static struct rwk_link_address place(const struct rwk_address *a)
{
	struct rwk_link_address at = {{0}};

	memcpy(at.byte, &a->ip, sizeof(a->ip));
	return at;
}

static uint64_t nonce_at(struct rwk_link *l, const struct rwk_link_address *to)
{
	(void)l, (void)to;
	return nonce_there;
}

static int no_news(const struct rwk_packet_domain *d, uint64_t *key, int count)
{
	(void)d, (void)key, (void)count;
	return 0;
}

static void leave(struct rwk_link *l, const struct rwk_link_address *to)
{
	(void)l, (void)to;
}

static const struct rwk_packet_ways ways = {.address = place, .nonce = nonce_at, .look = no_news, .leave = leave};

/* The i-th; its peer has that nonce, if that is not 0. */
static void add(uint32_t i, uint64_t nonce)
{
	struct rwk_address to = {.version_srq = RWK_ADDR_VERSION << 24, .nonce_port = nonce << 16 | 1};

	memcpy(&to.ip, &(uint32_t){i + 1}, sizeof(uint32_t));
	channels[i] = rwk_packet_channel_new(&port, &to);
	assert_non_null(channels[i]);
	channels[i]->state = RWK_CH_OPEN;
}

static void open_port(uint32_t count)
{
	port = (struct rwk_port){.ways = &ways};
	rwk_list_init(&port.all);
	rwk_list_init(&port.dirty);
	rwk_packet_numbers_init(&port);
	for (uint32_t i = 0; i < count; i++)
		add(i, 1000 + i);
}

static void close_port(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		rwk_packet_channel_free(channels[i]);
	rwk_packet_numbers_free(&port);
}

static void hear_of(uint32_t i, int status)
{
	const struct rwk_link_address who = channels[i]->path.to;

	rwk_packet_word(&port, &who, status);
}

/* News of a stream comes to the channel whose peer is at its other end, though the list of all is not gone through. */
static void test_stream(void **state)
{
	struct rwk_list *first;

	(void)state;
	open_port(40);
	first = port.all.next;
	port.all.next = &port.all; /* nobody finds one there */
	nonce_there = 1016;
	hear_of(16, 0);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(channels[i]->stream_open, i == 16);
	hear_of(17, 0); /* another process is there now */
	assert_false(channels[17]->stream_open);
	hear_of(16, -ECONNRESET); /* another stream of its process, whose latest is known by the other place */
	assert_int_equal(channels[16]->doom, 0);
	hear_of(17, -ECONNRESET);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(channels[i]->doom, i == 16 ? -ECONNRESET : 0);
	port.all.next = first;
	close_port(40);
}

/* All of them hear of it, if several have that peer, at one place or at two; and all others are left alone. */
static void test_several(void **state)
{
	(void)state;
	open_port(40);
	add(40, 1016);
	channels[40]->path.to = channels[16]->path.to;
	nonce_there = 1016;
	hear_of(16, 0);
	for (uint32_t i = 0; i < 41; i++)
		assert_int_equal(channels[i]->stream_open, i == 16 || i == 40);
	close_port(41);
}

/*
 * Of whom only the place is known hears of it, too; and if it is not known who is there all who are at the place do. Who
 * was there before hears nothing of the one who is there now.
 */
static void test_by_place(void **state)
{
	(void)state;
	open_port(40);
	nonce_there = 0;
	hear_of(5, 0);
	assert_true(channels[5]->stream_open);
	add(40, 0);
	nonce_there = 7;
	hear_of(40, 0);
	for (uint32_t i = 0; i < 41; i++)
		assert_int_equal(channels[i]->stream_open, i == 5 || i == 40);
	hear_of(16, -ECONNRESET);
	assert_int_equal(channels[16]->doom, 0);
	close_port(41);
}

static void look(void)
{
	rwk_packet_evidence_by_clock(&port, 0);
}

/* A look for evidence is at some thousands at most; the next one goes on behind them, and comes round. */
static void test_turns(void **state)
{
	(void)state;
	open_port(MANY);
	for (uint32_t at = 0, looks = 0; looks < 8; looks++) {
		assert_ptr_equal(port.all.next, &channels[at]->all);
		look();
		at = (at + AT_ONCE) % MANY;
	}
	close_port(MANY);
	open_port(100);
	look();
	assert_ptr_equal(port.all.next, &channels[0]->all);
	close_port(100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_by_place),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
