/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that were not known, or by IP and port alone, and such as are not who they say, over the simulated service,
 * packets and shared memory.
 */
#include "engine/internal.h"
#include "engine/job.h"
#include "engine/world.h"

#include <unistd.h>

static void open_strangers(struct world *w, void **state)
{
	world_open(w, &(struct world_attr){.transport = *state, .count = 2, .strangers = true});
}

/* Who was not known makes itself known with its first message: one new_peer, and the peer is the one of its address. */
static void unknown_peer(void **state)
{
	struct task s = {0}, r = {0};
	struct rwk_peer *p;
	uint32_t in = 0;
	struct world w;

	open_strangers(&w, state);
	assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_TAGGED, &in, 4, 1, 0, 0, &r), 0);
	p = rwk_engine_peer(w.e[0], rwk_engine_address(w.e[1]));
	assert_int_equal(rwk_engine_send1(w.e[0], &(uint32_t){5}, 4, RWK_F_TAGGED | RWK_F_INJECT, 0, p, 1, &s), 0);
	world_wait(&w, &r);
	assert_int_equal(in, 5);
	assert_int_equal(w.new_peers[0], 0);
	assert_int_equal(w.new_peers[1], 1);
	p = r.c.peer;
	assert_ptr_equal(p, rwk_engine_peer(w.e[1], rwk_engine_address(w.e[0])));
	assert_int_equal(rwk_peer_user(p), UINT64_MAX);
	rwk_peer_set_user(p, 12);
	assert_int_equal(rwk_peer_user(p), 12);
	world_close(&w);
}

static struct rwk_address place_of(const struct world *w, unsigned who)
{
	const struct rwk_address *a = rwk_engine_address(w->e[who]);
	struct rwk_address to = {.flags_rank = RWK_ADDR_PARTIAL, .nonce_port = rwk_address_port(a)};

	memcpy(to.ip, a->ip, sizeof(to.ip));
	return to;
}

/*
 * A peer known by IP and port alone: its sends can be cancelled before it has answered, others arrive, and then its
 * address is full and leads to the same peer.
 */
static void partial_address(void **state)
{
	struct task cancelled = {0}, s = {0}, r = {0};
	uint32_t out[2] = {6, 7}, in = 0;
	struct rwk_address to;
	struct rwk_peer *p;
	struct world w;

	open_strangers(&w, state);
	to = place_of(&w, 1);
	p = rwk_engine_peer(w.e[0], &to);
	assert_ptr_equal(rwk_engine_peer(w.e[0], &to), p);
	assert_int_equal(rwk_engine_send1(w.e[0], &out[0], 4, RWK_F_TAGGED, 0, p, 1, &cancelled), 0);
	assert_int_equal(rwk_engine_send1(w.e[0], &out[1], 4, RWK_F_TAGGED, 0, p, 1, &s), 0);
	assert_int_equal(rwk_engine_cancel(w.e[0], &cancelled), 0);
	assert_int_equal(cancelled.c.status, -ECANCELED);
	assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_TAGGED, &in, 4, 1, 0, 0, &r), 0);
	world_wait(&w, &r);
	world_wait(&w, &s);
	assert_int_equal(in, 7);
	world_settle(&w);
	assert_memory_equal(rwk_peer_address(p), rwk_engine_address(w.e[1]), sizeof(to));
	assert_ptr_equal(rwk_engine_peer(w.e[0], rwk_engine_address(w.e[1])), p);
	assert_ptr_equal(rwk_engine_peer(w.e[0], &to), p);
	assert_int_equal(w.new_peers[0], 0);
	world_close(&w);
}

static int refuse(struct rwk_port *port, const struct rwk_address *to, void *peer, struct rwk_channel **ch)
{
	(void)port;
	(void)to;
	(void)peer;
	(void)ch;
	return -ECONNREFUSED;
}

/*
 * Contact with an IP and port has failed. Who is there by now, and gives his full address, is another: sends to him
 * arrive, and his own.
 */
static void failed_place(void **state)
{
	const struct rwk_transport *real;
	struct rwk_transport refusing;
	struct task s = {0}, r = {0}, back_s = {0}, back_r = {0};
	struct rwk_peer *dead, *p, *back;
	uint32_t out = 8, in[2] = {0};
	struct rwk_address to;
	struct world w;

	open_strangers(&w, state);
	to = place_of(&w, 1);
	real = w.e[0]->transport;
	refusing = *real;
	refusing.connect = refuse;
	w.e[0]->transport = &refusing;
	dead = rwk_engine_peer(w.e[0], &to);
	assert_int_equal(rwk_engine_send1(w.e[0], &out, 4, RWK_F_TAGGED, 0, dead, 1, NULL), -ECONNREFUSED);
	w.e[0]->transport = real;
	p = rwk_engine_peer(w.e[0], rwk_engine_address(w.e[1]));
	assert_ptr_not_equal(p, dead);
	world_contact(&w);
	assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_TAGGED, &in[1], 4, 1, 0, 0, &r), 0);
	assert_int_equal(rwk_engine_send1(w.e[0], &out, 4, RWK_F_TAGGED, 0, p, 1, &s), 0);
	world_wait(&w, &s);
	world_wait(&w, &r);
	assert_int_equal(in[1], 8);
	back = rwk_engine_peer(w.e[1], rwk_engine_address(w.e[0]));
	assert_int_equal(world_recv(&w, 0, WORLD_ANY, RWK_TAGGED, &in[0], 4, 1, 0, 0, &back_r), 0);
	assert_int_equal(rwk_engine_send1(w.e[1], &out, 4, RWK_F_TAGGED, 0, back, 1, &back_s), 0);
	world_wait(&w, &back_r);
	assert_int_equal(in[0], 8);
	assert_ptr_equal(back_r.c.peer, p);
	world_close(&w);
}

/** Sends a number, which is its tag too, and as its own context. */
static void send_to(struct world *w, struct rwk_peer *p, uint32_t number, struct task *t)
{
	static const uint32_t numbers[] = {0, 1, 2, 3, 4};

	assert_int_equal(
		rwk_engine_send1(w->e[0], &numbers[number], sizeof(number), RWK_F_TAGGED, number, p, number, t), 0);
}

/*
 * A port that pretends to be the engine that it asks.
 */

static void heard(void *pretender, struct rwk_channel *ch, const struct rwk_envelope *env, const void *bytes, size_t n)
{
	(void)pretender;
	(void)ch;
	(void)env;
	(void)bytes;
	(void)n;
	fail_msg("a stranger hears what was not said to it");
}

static struct rwk_place *hears(void *pretender, struct rwk_channel *ch, const struct rwk_envelope *env, size_t n)
{
	heard(pretender, ch, env, NULL, n);
	return NULL;
}

static int asked(void *pretender, struct rwk_channel *ch, const struct rwk_address *from)
{
	(void)pretender;
	(void)ch;
	(void)from;
	return -EACCES;
}

static void refused(void *pretender, struct rwk_channel *ch, int err)
{
	int *why = pretender;

	(void)ch;
	*why = err;
}

static const struct rwk_client pretending = {.connected = asked, .message = heard, .begin = hears, .failed = refused};

/* Who says that he is us is refused, and what we send to ourselves is for us. */
static void ourselves(void **state)
{
	const struct rwk_transport *t = *state;
	struct task s = {0}, r = {0};
	struct rwk_port_attr attr = {0};
	struct rwk_channel *ch;
	struct rwk_port *port;
	struct rwk_address me;
	struct rwk_peer *self;
	uint32_t in = 0;
	struct world w;
	int why = 0;

	open_strangers(&w, state);
	me = *rwk_engine_address(w.e[0]);
	self = rwk_engine_peer(w.e[0], &me);
	rwk_job_describe(&attr);
	memcpy(attr.address.ip, me.ip, sizeof(me.ip));
	attr.address.nonce_port = me.nonce_port & ~0xffffull;
	assert_int_equal(t->open(&attr, &pretending, &why, &port), 0);
	assert_int_equal(t->connect(port, &me, &why, &ch), 0);
	for (int i = 0; i < 10000 && !why; i++) {
		t->progress(port);
		world_step(&w);
		if (!w.net)
			usleep(1000);
	}
	assert_true(why);
	assert_false(ch->answered);
	assert_null(self->channel);
	assert_int_equal(w.new_peers[0], 0);
	send_to(&w, self, 4, &s);
	assert_int_equal(world_recv(&w, 0, WORLD_ANY, RWK_TAGGED, &in, 4, 4, 0, 0, &r), 0);
	world_wait(&w, &s);
	world_wait(&w, &r);
	assert_int_equal(in, 4);
	me = place_of(&w, 0);
	if (rwk_ip_is_local(me.ip)) /* on the simulated network not all have one that is */
		assert_ptr_equal(rwk_engine_peer(w.e[0], &me), self);
	t->disconnect(ch);
	t->close(port);
	world_close(&w);
}

/* The simulated service draws its nonces itself. */
#define EACH_BUT_SIMULATED(test)                                                                                       \
	{#test ", packets", test, NULL, NULL, (void *)&sim_packet_transport},                                          \
		{#test ", shared", test, NULL, NULL, (void *)&sim_shared_transport},                                   \
	{                                                                                                              \
#test ", shared memory", test, NULL, NULL, (void *)&rwk_shm_transport                                  \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(unknown_peer),
		WORLD_EACH(partial_address),
		WORLD_EACH(failed_place),
		EACH_BUT_SIMULATED(ourselves),
	};

	return cmocka_run_group_tests_name("engine strangers", tests, NULL, NULL);
}
