/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/world.h"

#include "base/compiler.h"

#include <time.h>

#define QUIET 3000       /* so many empty polls: nothing is under way on shared memory */
#define NEVER 5000000    /* steps of a simulated wait */
#define SECONDS 10       /* of a wait on shared memory */
#define CONTACT 0.01     /* seconds that a first contact may take there */
#define LOOK    0.001    /* seconds from one look for such to the next */

static uint64_t completions;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void complete(struct world_owner *o, const struct rwk_completion *c)
{
	struct task *t = c->context;

	if (c->flags & RWK_F_REMOTE_WRITE) {
		o->w->writes[o->who]++;
		o->w->written[o->who] = *c;
		return;
	}
	if (o->w->on_complete) {
		o->w->on_complete(o->w, o->who, c);
		return;
	}
	if (!t)
		fail_msg("a completion without a context: flags %x, status %d", c->flags, c->status);
	t->times++;
	t->c = *c;
	t->who = o->who;
	t->order = ++completions;
}

/* What is in the queue is told as by a call. */
static void drain(struct world_owner *o)
{
	struct rwk_completions *q = &o->done;

	while (q->head != q->tail) {
		struct rwk_completion c = q->ring[q->head & (o->w->attr.queue - 1)];

		assert_int_equal(c.status, 0);
		if (c.flags & RWK_F_RECV)
			c.peer = o->w->peer[o->who][c.user];
		c.overflow = 0;
		q->head++;
		q->limit++;
		complete(o, &c);
	}
}

static void on_complete(void *owner, const struct rwk_completion *c)
{
	drain(owner);
	complete(owner, c);
}

static void on_reached(void *owner, const struct rwk_reached *r)
{
	struct world_owner *o = owner;

	o->w->reached[o->who]++;
	o->w->reached_bytes[o->who] += r->length;
}

static void open_queue(struct world_owner *o)
{
	unsigned entries = o->w->attr.queue;

	o->done = (struct rwk_completions){.mask = entries - 1, .limit = entries};
	o->done.ring = aligned_alloc(RWK_CACHE_LINE, entries * sizeof(*o->done.ring));
	assert_non_null(o->done.ring);
	rwk_engine_set_queues(o->w->e[o->who], &o->done, &o->done, true);
}

static void on_new_peer(void *owner, struct rwk_peer *peer, const struct rwk_address *address)
{
	struct world_owner *o = owner;

	assert_memory_equal(rwk_peer_address(peer), address, sizeof(*address));
	o->w->new_peers[o->who]++;
}

static void on_merged(void *owner, struct rwk_peer *old, struct rwk_peer *peer)
{
	const struct world_owner *o = owner;

	o->w->merged[o->who]++;
	for (unsigned i = 0; i < WORLD_MAX; i++) {
		if (o->w->peer[o->who][i] == old)
			o->w->peer[o->who][i] = peer;
	}
}

static void open_net(struct world *w)
{
	struct rwk_sim_attr net = w->attr.net.mtu ? w->attr.net : rwk_sim_attr_default;

	assert_int_equal(rwk_sim_open(&net, &w->net), 0);
	rwk_sim_transport_use(w->net, w->attr.service.window ? &w->attr.service : NULL);
	sim_packet_use(w->net);
}

static void open_inbox(struct world *w)
{
	const struct rwk_inbox_attr attr = {
		.complete = on_complete,
		.owner = &w->owner[0],
		.rx_limit = w->attr.rx_limit,
		.multi_min = w->attr.multi_min ? w->attr.multi_min : 64,
	};

	assert_int_equal(rwk_inbox_open(&attr, &w->inbox), 0);
}

void world_open(struct world *w, const struct world_attr *attr)
{

	memset(w, 0, sizeof(*w));
	w->attr = *attr;
	w->transports[0] = attr->transport;
	rwk_param_load();
	rwk_params.eager_max = attr->eager_max ? attr->eager_max : 64 << 10;
	rwk_params.eager_max_network = rwk_params.eager_max;
	rwk_params.eager_credit = attr->eager_credit ? attr->eager_credit : 1 << 20;
	if (attr->transport != &rwk_shm_transport)
		open_net(w);
	if (attr->sharing)
		open_inbox(w);
	for (unsigned i = 0; i < attr->count; i++) {
		size_t tx_limit = attr->tx_limit ? attr->tx_limit : 10000;
		struct rwk_engine_attr a = {
			.complete = on_complete,
			.new_peer = on_new_peer,
			.merged = on_merged,
			.reached = on_reached,
			.owner = &w->owner[i],
			.tx_limit = tx_limit,
			.inject_limit = attr->inject_limit ? attr->inject_limit : tx_limit,
			.inject_wait = attr->inject_wait,
			.rx_limit = attr->rx_limit,
			.rooms = attr->rooms,
			.multi_min = attr->multi_min ? attr->multi_min : 64,
			.transports = w->transports,
			.inbox = i < attr->sharing ? w->inbox : NULL,
		};

		w->owner[i] = (struct world_owner){.w = w, .who = i};
		assert_int_equal(rwk_regions_open(&w->regions[i], false), 0);
		a.regions = w->regions[i];
		assert_int_equal(rwk_engine_open(&a, &w->e[i]), 0);
		if (attr->queue)
			open_queue(&w->owner[i]);
		if (w->net)
			w->node[i] = attr->transport == &rwk_sim_transport
					     ? rwk_sim_node_of(rwk_engine_address(w->e[i]))
					     : rwk_address_port(rwk_engine_address(w->e[i]));
	}
	world_contact(w);
	for (unsigned i = 0; i < attr->count; i++) {
		for (unsigned j = 0; j < attr->count && !attr->strangers; j++) {
			w->peer[i][j] = rwk_engine_peer(w->e[i], rwk_engine_address(w->e[j]));
			assert_non_null(w->peer[i][j]);
			rwk_peer_set_user(w->peer[i][j], j);
		}
	}
}

void world_engine_close(struct world *w, unsigned who)
{
	drain(&w->owner[who]);
	rwk_engine_close(w->e[who]);
	rwk_regions_close(w->regions[who]);
	free(w->owner[who].done.ring);
	w->owner[who].done = (struct rwk_completions){0};
	w->e[who] = NULL;
	w->dead[who] = true;
}

void world_kill(struct world *w, unsigned who)
{
	if (w->net)
		rwk_sim_kill(w->net, w->node[who]);
	world_engine_close(w, who);
}

void world_close(struct world *w)
{
	for (unsigned i = 0; i < w->attr.count; i++)
		if (w->e[i])
			world_engine_close(w, i);
	if (w->inbox)
		rwk_inbox_close(w->inbox);
	if (w->net) {
		rwk_sim_transport_use(NULL, NULL);
		sim_packet_use(NULL);
		rwk_sim_close(w->net);
	}
}

void world_drain(struct world *w, unsigned who)
{
	drain(&w->owner[who]);
}

int world_progress(struct world *w, unsigned who)
{
	int n = rwk_engine_progress(w->e[who]);

	drain(&w->owner[who]);
	return n;
}

static struct rwk_sim_path bad_path(struct rwk_sim *net)
{
	uint32_t bad = rwk_sim_random(net, 3) ? 0 : (uint32_t)rwk_sim_random(net, 40000);

	return (struct rwk_sim_path){.delay = 100 + rwk_sim_random(net, 20000),
		.jitter = rwk_sim_random(net, 5000),
		.reorder_by = 10000,
		.drop = bad,
		.duplicate = bad / 2,
		.corrupt = bad / 4,
		.reorder = 2 * bad};
}

void world_worsen(struct world *w)
{
	for (uint32_t from = 1; w->net && rwk_sim_alive(w->net, from); from++) {
		for (uint32_t to = 1; rwk_sim_alive(w->net, to); to++) {
			struct rwk_sim_path path = bad_path(w->net);

			rwk_sim_set_path(w->net, from, to, &path);
		}
	}
}

int world_poll(struct world *w)
{
	int n = 0;

	for (unsigned i = 0; i < w->attr.count; i++)
		if (w->e[i] && !w->computes[i] && !(w->net && !rwk_sim_alive(w->net, w->node[i])))
			n += world_progress(w, i);
	return n;
}

/*
 * A first contact may still be under way. It takes several looks of the service, which are a millisecond apart: however
 * long this process has not run on a busy machine, no more than that has passed for it.
 */
static bool makes_contact(struct world *w)
{
	double now = seconds(), passed = now - w->looked;

	w->looked = now;
	w->contact -= passed < LOOK ? passed : LOOK;
	return w->contact > 0;
}

/* Something happens, or will: polls, or lets time pass. `quiet` counts the empty polls; false once all is at rest. */
static bool go_on(struct world *w, unsigned *quiet)
{
	if (world_poll(w)) {
		*quiet = 0;
		return true;
	}
	return w->net ? rwk_sim_step(w->net) : ++*quiet < QUIET || makes_contact(w);
}

bool world_step(struct world *w)
{
	unsigned quiet = 0;

	return go_on(w, &quiet);
}

void world_settle(struct world *w)
{
	unsigned quiet = 0;

	for (unsigned n = 0; n < NEVER; n++)
		if (!go_on(w, &quiet))
			return;
	fail_msg("the engines do not come to rest");
}

void world_wait(struct world *w, const struct task *t)
{
	double end = seconds() + SECONDS;
	unsigned quiet = 0;

	while (!t->times) {
		bool going = go_on(w, &quiet);

		if (t->times)
			break;
		if (w->net ? !going : seconds() > end)
			fail_msg("an operation does not complete");
	}
	assert_int_equal(t->times, 1);
}

void world_contact(struct world *w)
{
	w->contact = CONTACT;
	w->looked = seconds();
}

static void meet(struct world *w, unsigned who, unsigned whom)
{
	if (!w->met[who][whom])
		world_contact(w);
	w->met[who][whom] = w->met[whom][who] = true;
}

bool world_retry(struct world *w, unsigned from, unsigned to, struct world_retry *retry)
{
	bool going;

	if (!retry->end) {
		retry->end = seconds() + SECONDS;
		meet(w, from, to);
	}
	going = go_on(w, &retry->quiet);
	if (w->net ? !going : seconds() > retry->end)
		fail_msg("a request is refused for ever");
	return true;
}

ssize_t world_sendv(struct world *w, unsigned from, unsigned to, enum rwk_space space, const struct iovec *iov,
	size_t count, uint64_t tag, uint32_t flags, void *context)
{
	struct world_retry retry = {0};
	ssize_t rc;

	meet(w, from, to);
	do {
		rc = rwk_engine_send(
			w->e[from], space, w->peer[from][to], iov, count, tag, WORLD_DATA(tag), flags, context);
	} while (rc == -EAGAIN && world_retry(w, from, to, &retry));
	return rc;
}

ssize_t world_send(struct world *w, unsigned from, unsigned to, enum rwk_space space, const void *buf, size_t len,
	uint64_t tag, uint32_t flags, void *context)
{
	struct iovec iov = {(void *)buf, len};

	return world_sendv(w, from, to, space, &iov, 1, tag, flags, context);
}

ssize_t world_recv(struct world *w, unsigned who, unsigned from, enum rwk_space space, void *buf, size_t len,
	uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	struct rwk_peer *peer = from == WORLD_ANY ? NULL : w->peer[who][from];
	struct iovec iov = {buf, len};

	if (peer)
		meet(w, who, from);
	return rwk_engine_recv(w->e[who], space, peer, &iov, 1, tag, ignore, flags, context);
}

static uint64_t word(uint64_t seed, size_t i)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;

	return z ^ (z >> 29);
}

void world_fill(void *buf, size_t len, uint64_t seed)
{
	unsigned char *b = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = word(seed, i);

		memcpy(b + i, &v, len - i < 8 ? len - i : 8);
	}
}

void world_check(const void *buf, size_t len, uint64_t seed)
{
	const unsigned char *b = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = word(seed, i);

		if (memcmp(b + i, &v, len - i < 8 ? len - i : 8))
			fail_msg("byte %zu or soon after of %zu is wrong", i, len);
	}
}

void world_open_two(struct world *w, const void *transport)
{
	world_open(w, &(struct world_attr){.transport = transport, .count = 2});
}

void world_check_receive(struct world *w, const struct task *t, unsigned who, unsigned from, enum rwk_space space,
	size_t len, uint64_t tag, bool data)
{
	assert_int_equal(t->times, 1);
	assert_int_equal(t->c.status, 0);
	assert_int_equal(t->c.length, len);
	assert_int_equal(t->c.overflow, 0);
	assert_ptr_equal(t->c.peer, w->peer[who][from]);
	assert_int_equal(t->c.flags, RWK_F_RECV | rwk_space_flag(space) | (data ? RWK_F_DATA : 0));
	if (space == RWK_TAGGED)
		assert_int_equal(t->c.tag, tag);
	if (data)
		assert_int_equal(t->c.data, WORLD_DATA(tag));
}

size_t world_mixed(unsigned i)
{
	static const size_t m[] = {3, 70000, 0, 300, 5000, 40, 200000, 4096, 1};

	return m[i % 9];
}

unsigned long world_steps(unsigned long initial)
{
	const char *s = getenv("RWK_TEST_STEPS");

	return s ? strtoul(s, NULL, 0) : initial;
}

uint64_t world_seed(uint64_t initial)
{
	const char *s = getenv("RWK_TEST_SEED");

	return s ? strtoull(s, NULL, 0) : initial;
}
