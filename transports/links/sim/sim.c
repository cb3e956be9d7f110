/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated network. Its state: the clock, a heap of events ordered by (time, number), the nodes by number, and for
 * each node the paths that leave it. A node's record stays until rwk_sim_close, so that packets still under way to it
 * find it dead, not gone.
 */
#include "links/sim/sim.h"

#include "base/compiler.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MILLION 1000000u

enum event_kind { PACKET, GONE, ALARM };

struct event {
	struct rwk_list link; /* in the inbox, once it has happened */
	rwk_time at;
	uint64_t order;
	enum event_kind kind;
	uint32_t from, to;
	size_t len;
	uint8_t bytes[];
};

struct rule {
	struct rwk_list link;
	uint64_t number;
	enum rwk_sim_fate fate;
};

struct path {
	struct rwk_sim_path how;
	uint64_t sent;
	rwk_time last; /* arrival of the latest packet in order */
	struct rwk_list rules;
};

struct node {
	struct rwk_link pub;
	struct rwk_sim *sim;
	struct rwk_sim_hooks hooks;
	uint32_t number;
	uint32_t under_way; /* packets sent and not arrived */
	bool alive;
	struct rwk_list inbox;
	size_t waiting;      /* bytes of packets in it */
	struct path **paths; /* by the number of the other node; NULL: not used yet */
	uint32_t path_count;
};

struct rwk_sim {
	struct rwk_sim_attr attr;
	rwk_time now;
	uint64_t random;
	uint64_t order;
	uint64_t trace;
	struct rwk_sim_counts counts;
	struct rwk_list held; /* packets */
	unsigned held_count;
	bool hold;
	struct event **heap;
	size_t events, heap_size;
	struct node **nodes; /* number - 1 */
	uint32_t node_count;
};

const struct rwk_sim_attr rwk_sim_attr_default = {
	.seed = 1, .mtu = 512, .word = 50000, .path = {.delay = 1000, .jitter = 200, .reorder_by = 5000}};

/* A test cannot go on without memory. */
static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* splitmix64 */
static uint64_t next_random(struct rwk_sim *s)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t rwk_sim_random(struct rwk_sim *s, uint64_t bound)
{
	return bound ? next_random(s) % bound : 0;
}

static bool chance(struct rwk_sim *s, uint32_t parts)
{
	return parts && rwk_sim_random(s, MILLION) < parts;
}

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void schedule(struct rwk_sim *s, struct event *e, rwk_time at)
{
	size_t i = s->events++;

	e->at = at;
	e->order = s->order++;
	if (s->events > s->heap_size) {
		s->heap_size = s->heap_size ? 2 * s->heap_size : 64;
		s->heap = must(realloc(s->heap, s->heap_size * sizeof(*s->heap)));
	}
	for (; i && earlier(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static struct event *pop_event(struct rwk_sim *s)
{
	struct event *first, *last;
	size_t i = 0;

	if (!s->events)
		return NULL;
	first = s->heap[0];
	last = s->heap[--s->events];
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= s->events)
			break;
		if (child + 1 < s->events && earlier(s->heap[child + 1], s->heap[child]))
			child++;
		if (!earlier(s->heap[child], last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return first;
}

static struct event *new_event(enum event_kind kind, uint32_t from, uint32_t to, size_t len)
{
	struct event *e = must(calloc(1, sizeof(*e) + len));

	rwk_list_init(&e->link);
	e->kind = kind;
	e->from = from;
	e->to = to;
	e->len = len;
	return e;
}

static struct node *find_node(const struct rwk_sim *s, uint32_t number)
{
	return number && number <= s->node_count ? s->nodes[number - 1] : NULL;
}

static struct path *find_path(struct rwk_sim *s, uint32_t from, uint32_t to)
{
	struct node *n = find_node(s, from);

	if (to >= n->path_count) {
		n->paths = must(realloc(n->paths, (to + 1) * sizeof(*n->paths)));
		memset(n->paths + n->path_count, 0, (to + 1 - n->path_count) * sizeof(*n->paths));
		n->path_count = to + 1;
	}
	if (!n->paths[to]) {
		n->paths[to] = must(calloc(1, sizeof(*n->paths[to])));
		n->paths[to]->how = s->attr.path;
		rwk_list_init(&n->paths[to]->rules);
	}
	return n->paths[to];
}

/*
 * Sending.
 */

/* The fate that a rule has for the packet of that number. */
static enum rwk_sim_fate rule_for(struct path *p, uint64_t number)
{
	for (struct rwk_list *l = p->rules.next; l != &p->rules; l = l->next) {
		struct rule *r = rwk_container_of(l, struct rule, link);

		if (r->number == number) {
			enum rwk_sim_fate fate = r->fate;

			rwk_list_remove(&r->link);
			free(r);
			return fate;
		}
	}
	return RWK_SIM_PASS;
}

static enum rwk_sim_fate decide(struct rwk_sim *s, struct path *p)
{
	enum rwk_sim_fate fate = rule_for(p, ++p->sent);

	if (fate != RWK_SIM_PASS)
		return fate;
	if (chance(s, p->how.drop))
		return RWK_SIM_DROP;
	if (chance(s, p->how.duplicate))
		return RWK_SIM_DUPLICATE;
	if (chance(s, p->how.corrupt))
		return RWK_SIM_CORRUPT;
	return RWK_SIM_PASS;
}

static rwk_time arrival(struct rwk_sim *s, struct path *p, enum rwk_sim_fate fate)
{
	rwk_time at = s->now + p->how.delay + rwk_sim_random(s, p->how.jitter + 1);

	if (at < p->last)
		at = p->last;
	if (fate == RWK_SIM_DELAY || chance(s, p->how.reorder)) {
		s->counts.reordered++;
		return at + (fate == RWK_SIM_DELAY ? p->how.reorder_by : 1 + rwk_sim_random(s, p->how.reorder_by));
	}
	p->last = at;
	return at;
}

static void put_trace(struct rwk_sim *s, uint64_t v)
{
	s->trace = (s->trace ^ v) * 0x100000001b3u;
	s->trace ^= s->trace >> 29;
}

static void send_copy(struct node *n, struct path *p, uint32_t to, const struct iovec *iov, int count, size_t len,
	enum rwk_sim_fate fate)
{
	struct event *e = new_event(PACKET, n->number, to, len);
	size_t at = 0;

	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(e->bytes + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	if (fate == RWK_SIM_CORRUPT && len)
		e->bytes[rwk_sim_random(n->sim, len)] ^= (uint8_t)(1u << rwk_sim_random(n->sim, 8));
	n->under_way++;
	if (n->sim->hold) {
		rwk_list_append(&n->sim->held, &e->link);
		n->sim->held_count++;
	} else {
		schedule(n->sim, e, arrival(n->sim, p, fate));
	}
}

static void carry_out(struct node *n, struct path *p, uint32_t to, const struct iovec *iov, int count, size_t len,
	enum rwk_sim_fate fate)
{
	struct rwk_sim *s = n->sim;

	switch (fate) {
	case RWK_SIM_DROP:
		s->counts.dropped++;
		return;
	case RWK_SIM_DUPLICATE:
		s->counts.duplicated++;
		send_copy(n, p, to, iov, count, len, fate);
		break;
	case RWK_SIM_CORRUPT:
		s->counts.corrupted++;
		break;
	case RWK_SIM_KILL_RECEIVER:
		rwk_sim_kill(s, to);
		break;
	default:
		break;
	}
	send_copy(n, p, to, iov, count, len, fate);
	if (fate == RWK_SIM_KILL_SENDER)
		rwk_sim_kill(s, n->number);
}

static int node_send(struct rwk_link *l, const struct rwk_link_address *address, const struct iovec *iov, int count)
{
	struct node *n = rwk_container_of(l, struct node, pub);
	struct rwk_sim *s = n->sim;
	uint32_t to = rwk_sim_address_number(address);
	enum rwk_sim_fate fate;
	struct path *p;
	size_t len = 0;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	if (len > s->attr.mtu)
		return -EMSGSIZE;
	if (!find_node(s, to))
		return -EHOSTUNREACH;
	if (!n->alive)
		return 0; /* nobody is left to be told */
	if (s->attr.room && n->under_way >= s->attr.room) {
		s->counts.refused++;
		return -EAGAIN;
	}
	s->counts.sent++;
	p = find_path(s, n->number, to);
	fate = decide(s, p);
	put_trace(s, s->now);
	put_trace(s, (uint64_t)n->number << 32 | to);
	put_trace(s, (uint64_t)len << 8 | fate);
	carry_out(n, p, to, iov, count, len, fate);
	return 0;
}

/*
 * Arriving.
 */

static void wake(struct node *n)
{
	if (n->hooks.wake)
		n->hooks.wake(n->pub.user);
}

static void send_word(struct rwk_sim *s, uint32_t of, uint32_t to, rwk_time at)
{
	schedule(s, new_event(GONE, of, to, 0), at);
}

static void overrun(struct rwk_sim *s, struct event *e)
{
	s->counts.overrun++;
	free(e);
}

static void keep(struct node *n, struct event *e)
{
	n->waiting += e->len; /* of packets alone: word has none */
	rwk_list_append(&n->inbox, &e->link);
}

static void happen(struct rwk_sim *s, struct event *e)
{
	struct node *to = find_node(s, e->to), *from = find_node(s, e->from);

	if (e->kind == PACKET)
		from->under_way--;
	if (!to->alive) {
		if (e->kind == PACKET) {
			s->counts.to_the_dead++;
			send_word(s, e->to, e->from, s->now + find_path(s, e->from, e->to)->how.delay);
		}
		free(e);
		return;
	}
	if (e->kind == ALARM)
		free(e);
	else if (e->kind == PACKET && s->attr.inbox && to->waiting + e->len > s->attr.inbox)
		overrun(s, e);
	else
		keep(to, e);
	wake(to);
}

void rwk_sim_hold(struct rwk_sim *s)
{
	s->hold = true;
}

unsigned rwk_sim_held(const struct rwk_sim *s)
{
	return s->held_count;
}

void rwk_sim_release(struct rwk_sim *s, unsigned nth, enum rwk_sim_fate fate)
{
	struct rwk_list *l = s->held.next;
	struct event *e;

	while (nth--)
		l = l->next;
	e = rwk_container_of(l, struct event, link);
	rwk_list_remove(l);
	s->held_count--;
	if (fate != RWK_SIM_DROP) {
		happen(s, e);
		return;
	}
	find_node(s, e->from)->under_way--;
	s->counts.dropped++;
	free(e);
}

bool rwk_sim_step(struct rwk_sim *s)
{
	struct event *e = pop_event(s);

	if (!e)
		return false;
	s->now = e->at;
	happen(s, e);
	return true;
}

void rwk_sim_run_until(struct rwk_sim *s, rwk_time t)
{
	while (s->events && s->heap[0]->at <= t)
		rwk_sim_step(s);
	if (s->now < t)
		s->now = t;
}

static int node_progress(struct rwk_link *l, int budget)
{
	struct node *n = rwk_container_of(l, struct node, pub);
	int done = 0;

	while (done < budget && !rwk_list_empty(&n->inbox)) {
		struct event *e = rwk_container_of(rwk_list_pop(&n->inbox), struct event, link);
		struct rwk_link_address from = rwk_sim_address(e->from);

		n->waiting -= e->len;
		if (e->kind == GONE) {
			if (n->hooks.gone)
				n->hooks.gone(l->user, &from);
		} else {
			n->sim->counts.delivered++;
			l->packet(l->user, &from, e->bytes, e->len);
			done++;
		}
		free(e);
	}
	return done;
}

void rwk_sim_alarm(struct rwk_link *l, rwk_time at)
{
	struct node *n = rwk_container_of(l, struct node, pub);

	if (n->alive)
		schedule(n->sim, new_event(ALARM, n->number, n->number, 0), at > n->sim->now ? at : n->sim->now);
}

bool rwk_sim_waiting(const struct rwk_link *l)
{
	return !rwk_list_empty(&rwk_container_of(l, struct node, pub)->inbox);
}

/*
 * Nodes.
 */

static size_t node_mtu(struct rwk_link *l, const struct rwk_link_address *to)
{
	(void)to;
	return rwk_container_of(l, struct node, pub)->sim->attr.mtu;
}

static rwk_time node_now(struct rwk_link *l)
{
	return rwk_container_of(l, struct node, pub)->sim->now;
}

static void die(struct node *n)
{
	struct rwk_sim *s = n->sim;
	struct rwk_list *l;

	if (!n->alive)
		return;
	n->alive = false;
	while ((l = rwk_list_pop(&n->inbox)))
		free(rwk_container_of(l, struct event, link));
	for (uint32_t i = 0; i < s->node_count; i++)
		if (s->nodes[i]->alive)
			send_word(s, n->number, i + 1, s->now + s->attr.word);
}

static void node_close(struct rwk_link *l)
{
	struct node *n = rwk_container_of(l, struct node, pub);

	die(n);
	memset(&n->hooks, 0, sizeof(n->hooks));
}

static void node_flush(struct rwk_link *l)
{
	(void)l; /* send has copied everything */
}

static int node_arm(struct rwk_link *l)
{
	return rwk_sim_waiting(l) ? -EAGAIN : 0;
}

static int node_wait_fd(struct rwk_link *l, int i)
{
	(void)l;
	(void)i;
	return -1;
}

static const struct rwk_link_ops node_ops = {
	.name = "sim",
	.traits = RWK_LINK_MAY_LOSE | RWK_LINK_MAY_DUPLICATE | RWK_LINK_MAY_REORDER,
	.mtu = node_mtu,
	.send = node_send,
	.flush = node_flush,
	.progress = node_progress,
	.now = node_now,
	.arm = node_arm,
	.wait_fd = node_wait_fd,
	.close = node_close,
};

int rwk_sim_node(struct rwk_sim *s, struct rwk_link **l)
{
	struct node **nodes = realloc(s->nodes, (s->node_count + 1) * sizeof(*nodes));
	struct node *n;

	if (!nodes)
		return -ENOMEM;
	s->nodes = nodes;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->pub.ops = &node_ops;
	n->sim = s;
	n->alive = true;
	rwk_list_init(&n->inbox);
	s->nodes[s->node_count++] = n;
	n->number = s->node_count;
	*l = &n->pub;
	return 0;
}

void rwk_sim_set_hooks(struct rwk_link *l, const struct rwk_sim_hooks *hooks)
{
	rwk_container_of(l, struct node, pub)->hooks = *hooks;
}

uint32_t rwk_sim_number(const struct rwk_link *l)
{
	return rwk_container_of(l, struct node, pub)->number;
}

struct rwk_link_address rwk_sim_address(uint32_t number)
{
	struct rwk_link_address a = {{0}};

	memcpy(a.byte, &number, sizeof(number));
	return a;
}

uint32_t rwk_sim_address_number(const struct rwk_link_address *a)
{
	uint32_t number;

	memcpy(&number, a->byte, sizeof(number));
	return number;
}

bool rwk_sim_alive(const struct rwk_sim *s, uint32_t number)
{
	struct node *n = find_node(s, number);

	return n && n->alive;
}

void rwk_sim_kill(struct rwk_sim *s, uint32_t number)
{
	struct node *n = find_node(s, number);

	if (n)
		die(n);
}

/*
 * Paths and rules.
 */

void rwk_sim_set_path(struct rwk_sim *s, uint32_t from, uint32_t to, const struct rwk_sim_path *path)
{
	find_path(s, from, to)->how = *path;
}

void rwk_sim_set_paths(struct rwk_sim *s, const struct rwk_sim_path *path)
{
	s->attr.path = *path;
	for (uint32_t i = 0; i < s->node_count; i++)
		for (uint32_t j = 0; j < s->nodes[i]->path_count; j++)
			if (s->nodes[i]->paths[j])
				s->nodes[i]->paths[j]->how = *path;
}

void rwk_sim_rule(struct rwk_sim *s, uint32_t from, uint32_t to, uint64_t nth, enum rwk_sim_fate fate)
{
	struct path *p = find_path(s, from, to);
	struct rule *r = must(calloc(1, sizeof(*r)));

	r->number = p->sent + nth;
	r->fate = fate;
	rwk_list_append(&p->rules, &r->link);
}

uint64_t rwk_sim_sent(const struct rwk_sim *s, uint32_t from, uint32_t to)
{
	const struct node *n = find_node(s, from);

	return n && to < n->path_count && n->paths[to] ? n->paths[to]->sent : 0;
}

/*
 * The whole.
 */

int rwk_sim_open(const struct rwk_sim_attr *attr, struct rwk_sim **out)
{
	struct rwk_sim *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->attr = *attr;
	s->random = attr->seed;
	rwk_list_init(&s->held);
	s->trace = 0xcbf29ce484222325u;
	*out = s;
	return 0;
}

static void free_node(struct node *n)
{
	struct rwk_list *l;

	for (uint32_t i = 0; i < n->path_count; i++) {
		if (!n->paths[i])
			continue;
		while ((l = rwk_list_pop(&n->paths[i]->rules)))
			free(rwk_container_of(l, struct rule, link));
		free(n->paths[i]);
	}
	free(n->paths);
	free(n);
}

void rwk_sim_close(struct rwk_sim *s)
{
	struct event *e;

	for (uint32_t i = 0; i < s->node_count; i++) {
		struct node *n = s->nodes[i];

		if (n->hooks.end)
			n->hooks.end(n->pub.user);
		die(n);
	}
	while ((e = pop_event(s)))
		free(e);
	while (s->held_count)
		rwk_sim_release(s, 0, RWK_SIM_DROP);
	for (uint32_t i = 0; i < s->node_count; i++)
		free_node(s->nodes[i]);
	free(s->nodes);
	free(s->heap);
	free(s);
}

rwk_time rwk_sim_now(const struct rwk_sim *s)
{
	return s->now;
}

const struct rwk_sim_attr *rwk_sim_attr(const struct rwk_sim *s)
{
	return &s->attr;
}

uint64_t rwk_sim_trace(const struct rwk_sim *s)
{
	return s->trace;
}

const struct rwk_sim_counts *rwk_sim_counts(const struct rwk_sim *s)
{
	return &s->counts;
}
