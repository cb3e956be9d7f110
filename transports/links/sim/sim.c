/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated network. Its state: the clock, the events that are to happen, the nodes by number, and for each node
 * the paths that leave it. A node's record stays until rwk_sim_close, so that packets still under way to it find it
 * dead, not gone.
 */
#include "links/sim/network.h"

#include "base/compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct rwk_sim_attr rwk_sim_attr_default = {
	.seed = 1, .mtu = 512, .word = 50000, .path = {.delay = 1000, .jitter = 200, .reorder_by = 5000}};

/*
 * Sending.
 */

static void put_trace(struct rwk_sim *s, uint64_t v)
{
	s->trace = (s->trace ^ v) * 0x100000001b3u;
	s->trace ^= s->trace >> 29;
}

static void send_copy(struct node *n, struct path *p, uint32_t to, const struct iovec *iov, int count, size_t len,
	enum rwk_sim_fate fate)
{
	struct event *e = rwk_sim_event(PACKET, n->number, to, len);
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
		rwk_sim_schedule(n->sim, e, rwk_sim_arrival(n->sim, p, fate));
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
	if (!rwk_sim_find(s, to))
		return -EHOSTUNREACH;
	if (!n->alive)
		return 0; /* nobody is left to be told */
	if (s->attr.room && n->under_way >= s->attr.room) {
		s->counts.refused++;
		return -EAGAIN;
	}
	s->counts.sent++;
	p = rwk_sim_find_path(s, n->number, to);
	fate = rwk_sim_decide(s, p);
	if (p->how.most && len > p->how.most)
		fate = RWK_SIM_DROP;
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
	rwk_sim_schedule(s, rwk_sim_event(GONE, of, to, 0), at);
}

static void overrun(struct rwk_sim *s, struct event *e)
{
	s->counts.overrun++;
	free(e);
}

/* Of the inbox. Packets alone take something: word has no bytes. */
static size_t takes(const struct rwk_sim *s, const struct event *e)
{
	return e->len ? e->len + s->attr.cost : 0;
}

static void keep(struct node *n, struct event *e)
{
	n->waiting += takes(n->sim, e);
	rwk_list_append(&n->inbox, &e->link);
}

static void happen(struct rwk_sim *s, struct event *e)
{
	struct node *to = rwk_sim_find(s, e->to), *from = rwk_sim_find(s, e->from);

	if (e->kind == PACKET)
		from->under_way--;
	if (!to->alive) {
		if (e->kind == PACKET) {
			s->counts.to_the_dead++;
			send_word(s, e->to, e->from, s->now + rwk_sim_find_path(s, e->from, e->to)->how.delay);
		}
		free(e);
		return;
	}
	if (e->kind == ALARM)
		free(e);
	else if (e->kind == PACKET && s->attr.inbox && to->waiting + takes(s, e) > s->attr.inbox)
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
	rwk_sim_find(s, e->from)->under_way--;
	s->counts.dropped++;
	free(e);
}

bool rwk_sim_step(struct rwk_sim *s)
{
	struct event *e = rwk_sim_pop(s);

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

		n->waiting -= takes(n->sim, e);
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
		rwk_sim_schedule(
			n->sim, rwk_sim_event(ALARM, n->number, n->number, 0), at > n->sim->now ? at : n->sim->now);
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
	struct node *n = rwk_sim_find(s, number);

	return n && n->alive;
}

void rwk_sim_kill(struct rwk_sim *s, uint32_t number)
{
	struct node *n = rwk_sim_find(s, number);

	if (n)
		die(n);
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
	while ((e = rwk_sim_pop(s)))
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
