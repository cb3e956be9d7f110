/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One endpoint by its full address and by its place, an IP and a port, in whichever order, before and after it has
 * answered or made contact itself; and the full address of one that was at that place before and has ended. Whoever
 * names the place, or the endpoint that is there, reaches it, and it is one peer; whoever names the other one does not.
 */
#include "engine/internal.h"
#include "engine/world.h"

#define STEPS 12 /* at most */

enum { FULL = 1, PLACE, STALE }; /* who they are in world.peer[0]; FULL is engine 1 */

static struct rwk_address address_as(const struct world *w, int what)
{
	struct rwk_address a = *rwk_engine_address(w->e[1]), place = {.version_srq = a.version_srq};

	if (what == FULL)
		return a;
	if (what == STALE) {
		a.nonce_port ^= 1ull << 40;
		return a;
	}
	place.flags_rank = RWK_ADDR_PARTIAL;
	place.nonce_port = rwk_address_port(&a);
	memcpy(place.ip, a.ip, sizeof(place.ip));
	return place;
}

/* Sends a message by that address. */
static void use(struct world *w, int what, struct task *t)
{
	struct rwk_address a = address_as(w, what);
	int rc;

	w->peer[0][what] = rwk_engine_peer(w->e[0], &a);
	assert_non_null(w->peer[0][what]);
	world_contact(w);
	rc = (int)world_send(w, 0, (unsigned)what, RWK_TAGGED, &(uint32_t){5}, 4, 1, 0, t);
	if (rc)
		*t = (struct task){.times = 1, .c.status = rc};
}

/* Engine 1 sends a message, which the receive gets. */
static void come(struct world *w, unsigned from, struct task *r)
{
	struct task s = {0};
	uint32_t in = 0;

	assert_int_equal(world_recv(w, 0, from, RWK_TAGGED, &in, 4, 2, 0, 0, r), 0);
	assert_int_equal(world_send(w, 1, 0, RWK_TAGGED, &(uint32_t){6}, 4, 2, 0, &s), 0);
	world_wait(w, r);
	world_wait(w, &s);
	assert_int_equal(r->c.status, 0);
	assert_int_equal(in, 6);
}

/* Both addresses mean one peer, which gets what is sent by either, and of which a receive directed at either takes. */
static void check_one_peer(struct world *w)
{
	const struct rwk_address full = address_as(w, FULL);
	struct rwk_peer *p = NULL;

	for (int what = FULL; what <= PLACE; what++) {
		struct task s = {0}, r = {0}, got = {0};
		uint32_t in = 0;

		assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, &in, 4, 1, 0, 0, &got), 0);
		use(w, what, &s);
		world_wait(w, &got);
		world_wait(w, &s);
		assert_int_equal(s.c.status, 0);
		come(w, (unsigned)what, &r);
		assert_true(!p || r.c.peer == p);
		p = r.c.peer;
		assert_ptr_equal(w->peer[0][what], p);
	}
	assert_memory_equal(rwk_peer_address(p), &full, sizeof(full));
}

/* A step is a letter: how a message is sent. `.`: all that is under way ends. `c`: engine 1 makes contact. */
static void take_steps(struct world *w, const char *steps)
{
	static const char letters[] = {[FULL] = 'f', [PLACE] = 'p', [STALE] = 's'};
	struct task sent[STEPS] = {{0}}, got[STEPS] = {{0}}, came = {0};
	uint32_t in[STEPS] = {0};

	for (int i = 0; steps[i]; i++) {
		int what = FULL;

		if (steps[i] == '.' || steps[i] == 'c') {
			if (steps[i] == 'c')
				come(w, WORLD_ANY, &came);
			else
				world_settle(w);
			continue;
		}
		while (letters[what] != steps[i])
			what++;
		if (what != STALE)
			assert_int_equal(world_recv(w, 1, WORLD_ANY, RWK_TAGGED, &in[i], 4, 1, 0, 0, &got[i]), 0);
		use(w, what, &sent[i]);
	}
	for (int i = 0; steps[i]; i++) {
		if (steps[i] == '.' || steps[i] == 'c')
			continue;
		world_wait(w, &sent[i]);
		assert_int_equal(sent[i].c.status, steps[i] == 's' ? -ECONNRESET : 0);
		if (steps[i] != 's')
			world_wait(w, &got[i]);
	}
	world_settle(w);
}

static void orders(void **state)
{
	static const char *const steps[] = {"fp", "pf", "f.p", "p.f", "pp", "fpfp", "cp", "cf", "cpf", "sp", "ps", "s.p",
		"p.s", "p.sp", "p.s.p", "cs.p", "csp", "cps", "spf", "psf", "pfs", "f.s.p", "fs.p", "sfp", "s.fp"};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct world w;

		print_message("%s\n", steps[i]);
		world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .strangers = true});
		w.peer[1][0] = rwk_engine_peer(w.e[1], rwk_engine_address(w.e[0]));
		take_steps(&w, steps[i]);
		check_one_peer(&w);
		assert_int_equal(rwk_engine_counters(w.e[1])->failed_peers, 0);
		world_close(&w);
	}
}

/* The simulated service knows an endpoint by its place alone. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		{"orders, packets", orders, NULL, NULL, (void *)&sim_packet_transport},
		{"orders, shared", orders, NULL, NULL, (void *)&sim_shared_transport},
		{"orders, shared memory", orders, NULL, NULL, (void *)&rwk_shm_transport},
	};

	return cmocka_run_group_tests_name("engine places", tests, NULL, NULL);
}
