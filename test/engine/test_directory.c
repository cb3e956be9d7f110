/* SPDX-License-Identifier: BSD-3-Clause */
/* How peers are found, by nonce and by place, and what so many of them take. */
#include "rwk_test.h"

#include "engine/internal.h"

#include <malloc.h>

#define PEERS 4096u /* as many as the lists before there are more */

static struct rwk_engine *engine;

/* Of that rank at that port. All nonces end in the same bits, which drawn ones do not. */
static struct rwk_address address(uint32_t rank, uint16_t port)
{
	struct rwk_address a = {.version_srq = RWK_ADDR_VERSION << 24,
		.flags_rank = rank,
		.node = 2 + rank % 64,
		.nonce_port = (uint64_t)(rank + 1) << 20 << 16 | port,
		.ip = {[10] = 0xff, [11] = 0xff, 10, 1, 0, (uint8_t)(rank % 64)}};

	return a;
}

/* The same, known by its place alone. */
static struct rwk_address place(uint32_t rank, uint16_t port)
{
	struct rwk_address a = address(rank, port), p = {.flags_rank = RWK_ADDR_PARTIAL, .nonce_port = port};

	memcpy(p.ip, a.ip, sizeof(p.ip));
	return p;
}

/* The peer, which has answered. */
static struct rwk_peer *answered(const struct rwk_address *a)
{
	static struct rwk_channel channel = {.answered = true};
	struct rwk_peer *p = rwk_engine_peer(engine, a);

	assert_non_null(p);
	p->channel = &channel;
	return p;
}

static bool found; /* is who says that he is here? */

static bool finds(const struct rwk_port *port, const struct rwk_address *to)
{
	(void)port, (void)to;
	return found;
}

static const struct rwk_transport transport = {.finds = finds};

static int set_up(void **state)
{
	(void)state;
	found = false;
	engine = calloc(1, sizeof(*engine));
	assert_non_null(engine);
	engine->address.node = 1;
	engine->transport = &transport;
	rwk_pool_init(&engine->peer_pool, sizeof(struct rwk_peer), 16, 0);
	rwk_directory_open(engine);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rwk_directory_close(engine);
	rwk_pool_close(&engine->peer_pool);
	free(engine);
	return 0;
}

/* Each is found again by either, and nobody else is taken for it. */
static void each_is_found(void **state)
{
	static struct rwk_peer *peers[PEERS];
	size_t before = mallinfo2().uordblks, each;

	(void)state;
	for (uint32_t i = 0; i < PEERS; i++) {
		struct rwk_address a = address(i, (uint16_t)(1000 + i / 64));

		assert_null(rwk_directory_by_nonce(engine, &a));
		assert_null(rwk_directory_by_place(engine, &a));
		peers[i] = answered(&a);
	}
	each = (mallinfo2().uordblks - before) / PEERS;
	assert_in_range(each, 0, 288); /* the peer, its part of a chunk, and a place in two directories */
	for (uint32_t i = 0; i < PEERS; i++) {
		struct rwk_address a = address(i, (uint16_t)(1000 + i / 64)), p = place(i, (uint16_t)(1000 + i / 64));

		assert_ptr_equal(rwk_engine_peer(engine, &a), peers[i]);
		assert_ptr_equal(rwk_engine_peer(engine, &p), peers[i]);
	}
}

/* Servers at one port of many hosts of a network are no long list. */
static void hosts_of_a_network(void **state)
{
	unsigned longest = 0;

	(void)state;
	for (uint32_t i = 0; i < 64; i++) {
		struct rwk_address a = address(i, 7);

		assert_non_null(rwk_engine_peer(engine, &a));
	}
	for (uint32_t i = 0; i <= engine->by_place.mask; i++) {
		unsigned length = 0;

		for (struct rwk_hash_link *l = rwk_hash_list(&engine->by_place, i); l; l = l->next)
			length++;
		longest = length > longest ? length : longest;
	}
	assert_in_range(longest, 1, 8);
}

/*
 * On another node a place is an IP and a port; on this one it is a port. On this one is who says so and has an IP of
 * this host, or can be found here.
 */
static void places(void **state)
{
	struct rwk_address one = address(1, 7), two = address(2, 7), here = address(3, 7), also = address(4, 7);
	struct rwk_address snapshot = address(5, 7);
	struct rwk_peer *p;

	(void)state;
	assert_ptr_not_equal(answered(&one), answered(&two));
	assert_ptr_equal(rwk_directory_by_place(engine, &one), rwk_engine_peer(engine, &one));
	here.node = also.node = snapshot.node = 1;
	memcpy(here.ip, rwk_engine_loopback, sizeof(here.ip));
	memcpy(also.ip, rwk_engine_loopback, sizeof(also.ip));
	also.ip[15]++;
	p = rwk_engine_peer(engine, &here);
	found = true;
	assert_ptr_equal(rwk_directory_by_place(engine, &also), p);
	found = false;
	assert_ptr_not_equal(rwk_directory_by_place(engine, &one), p);
	assert_null(rwk_directory_by_place(engine, &snapshot));
	found = true;
	assert_ptr_equal(rwk_directory_by_place(engine, &snapshot), p);
	assert_ptr_not_equal(rwk_directory_by_place(engine, &one), p);
}

/*
 * Of several at one place, one after the other, the latest that is there is found; each by its nonce. That one is there
 * shows when it answers; on this node it can be looked for.
 */
static void one_after_another(void **state)
{
	struct rwk_address first = address(1, 7), later = address(65, 7), p = place(1, 7);
	struct rwk_peer *a = answered(&first), *b = rwk_engine_peer(engine, &later);

	(void)state;
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(rwk_engine_peer(engine, &p), a);
	assert_ptr_equal(answered(&later), b);
	assert_ptr_equal(rwk_engine_peer(engine, &p), b);
	assert_ptr_equal(rwk_engine_peer(engine, &first), a);
	b->error = -ECONNRESET;
	assert_ptr_equal(rwk_engine_peer(engine, &p), a);
	assert_ptr_equal(rwk_engine_peer(engine, &later), b);
	a->error = -ECONNRESET;
	b = rwk_engine_peer(engine, &p);
	assert_true(rwk_peer_is_partial(rwk_peer_address(b)));
	assert_ptr_equal(rwk_engine_peer(engine, &p), b);
}

/* Who has ended on this node is not there any more, also if its end has not been noticed. */
static void ended_here(void **state)
{
	struct rwk_address here = address(1, 7), p = place(1, 7);
	struct rwk_peer *a;

	(void)state;
	here.node = 1;
	memcpy(here.ip, rwk_engine_loopback, sizeof(here.ip));
	memcpy(p.ip, rwk_engine_loopback, sizeof(p.ip));
	a = answered(&here);
	found = true;
	assert_ptr_equal(rwk_engine_peer(engine, &p), a);
	found = false;
	assert_ptr_not_equal(rwk_engine_peer(engine, &p), a);
}

/* Who was known by place alone is the same peer when its name is; until then others may have been there. */
static void name_is_heard(void **state)
{
	struct rwk_address p = place(1, 7), full = address(1, 7), other = address(65, 7);
	struct rwk_peer *peer = rwk_engine_peer(engine, &p);
	struct rwk_channel channel = {.peer = peer};

	(void)state;
	assert_ptr_not_equal(answered(&other), peer);
	assert_ptr_equal(rwk_engine_peer(engine, &p), peer);
	assert_null(rwk_directory_by_nonce(engine, &full));
	peer->channel = &channel;
	assert_int_equal(rwk_peer_connected(engine, &channel, &full), 0);
	channel.answered = true;
	assert_ptr_equal(rwk_engine_peer(engine, &full), peer);
	assert_ptr_equal(rwk_directory_by_nonce(engine, &full), peer);
	assert_ptr_equal(rwk_directory_by_place(engine, &p), peer);
	assert_ptr_not_equal(rwk_engine_peer(engine, &other), peer);
}

/* On this node it can be looked for: who is there with that name is who has the place. */
static void name_is_found(void **state)
{
	struct rwk_address p = place(1, 7), full = address(1, 7), gone = address(65, 7);
	struct rwk_peer *peer;

	(void)state;
	memcpy(p.ip, rwk_engine_loopback, sizeof(p.ip));
	full.node = gone.node = 1;
	peer = rwk_engine_peer(engine, &p);
	memcpy(full.ip, rwk_engine_loopback, sizeof(full.ip));
	memcpy(gone.ip, rwk_engine_loopback, sizeof(gone.ip));
	assert_ptr_not_equal(rwk_engine_peer(engine, &gone), peer);
	found = true;
	assert_ptr_equal(rwk_engine_peer(engine, &full), peer);
	assert_ptr_equal(rwk_directory_by_nonce(engine, &full), peer);
	assert_ptr_equal(rwk_engine_peer(engine, &p), peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hosts_of_a_network, set_up, tear_down),
		cmocka_unit_test_setup_teardown(places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_after_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ended_here, set_up, tear_down),
		cmocka_unit_test_setup_teardown(name_is_heard, set_up, tear_down),
		cmocka_unit_test_setup_teardown(name_is_found, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("engine/directory", tests, NULL, NULL);
}
