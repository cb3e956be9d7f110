/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated service's calls: what transport.h promises, checked against what the client owes. */
#include "links/sim/internal.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define KEY_MAGIC 0x73696d6b65790000u
#define FIRST_PORT 1000

/* Where ports are opened, and the node behind each port number. */
static struct rwk_sim *network;
static struct rwk_sim_service service;
static uint32_t node_of[65536];
static struct rwk_port *port_of[65536];

const struct rwk_sim_service rwk_sim_service_default = {.send_max = 4096, .window = 16, .room = 4, .timeout = 20000};

void rwk_sim_breach(const char *where, const char *what)
{
	fprintf(stderr, "simulated service: a breach of the contract of transport.h: %s: %s\n", where, what);
	abort();
}

void rwk_sim_transport_use(struct rwk_sim *s, const struct rwk_sim_service *how)
{
	network = s;
	memset(node_of, 0, sizeof(node_of));
	memset(port_of, 0, sizeof(port_of));
	if (!s)
		return;
	service = how ? *how : rwk_sim_service_default;
	breach_if(!service.window || service.window > RWK_SIM_WINDOW_MAX, "the window is not 1 to RWK_SIM_WINDOW_MAX");
}

uint32_t rwk_sim_node_of(const struct rwk_address *a)
{
	return node_of[rwk_address_port(a)];
}

static struct channel *of(struct rwk_channel *ch)
{
	return rwk_container_of(ch, struct channel, pub);
}

static int choose_port(struct rwk_port *p, uint16_t wanted)
{
	uint32_t number = wanted ? wanted : FIRST_PORT + rwk_sim_number(p->net);

	while (!wanted && number < 65536 && node_of[number])
		number++;
	if (number >= 65536 || (node_of[number] && rwk_sim_alive(network, node_of[number])))
		return -EADDRINUSE;
	node_of[number] = rwk_sim_number(p->net);
	port_of[number] = p;
	return (int)number;
}

static int port_open(struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port)
{
	struct rwk_port *p;
	int rc;

	if (!network)
		return -ENETDOWN;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->sim = network;
	p->how = service;
	p->client = client;
	p->cookie = cookie;
	p->event_fd = -1;
	rwk_list_init(&p->channels);
	rwk_list_init(&p->regions);
	rc = rwk_sim_node(network, &p->net);
	if (rc)
		goto free_port;
	rc = choose_port(p, rwk_address_port(&attr->address));
	if (rc < 0)
		goto close_node;
	p->net->packet = rwk_sim_packet;
	p->net->user = p;
	rwk_sim_set_hooks(p->net, &rwk_sim_port_hooks);
	attr->address.nonce_port = (1 + rwk_sim_random(network, UINT64_MAX >> 17)) << 16 | (uint64_t)rc;
	p->address = attr->address;
	*port = p;
	return 0;
close_node:
	p->net->ops->close(p->net);
free_port:
	free(p);
	return rc;
}

static void port_close(struct rwk_port *p)
{
	struct rwk_list *l, *next;
	uint16_t number = rwk_address_port(&p->address);

	breach_if(p->in_progress, "close called from an upcall");
	if (port_of[number] == p)
		port_of[number] = NULL;
	for (l = p->channels.next; l != &p->channels; l = next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		next = l->next;
		if (!ch->orphan)
			rwk_sim_orphan(ch);
	}
	p->client = NULL;
	p->lingering = true;
	if (rwk_list_empty(&p->channels))
		rwk_sim_free_port(p);
	else
		rwk_sim_alarm(p->net, 0);
}

static int port_connect(struct rwk_port *p, const struct rwk_address *to, void *peer, struct rwk_channel **out)
{
	uint32_t node = rwk_sim_node_of(to);
	struct rwk_link_address address = rwk_sim_address(node);
	struct channel *ch;

	if (!node) {
		rwk_info("port %u is not on the simulated network", rwk_address_port(to));
		return -EHOSTUNREACH;
	}
	ch = rwk_sim_channel(p, &address, to);
	if (!ch)
		return -ENOMEM;
	ch->pub.peer = peer;
	rwk_sim_greet(ch);
	ch->timer = rwk_sim_now(p->sim) + ch->timeout;
	rwk_sim_set_alarm(p, ch->timer);
	*out = &ch->pub;
	return 0;
}

static void channel_disconnect(struct rwk_channel *c)
{
	breach_if(c->port->in_progress, "disconnect called from an upcall");
	rwk_sim_orphan(of(c));
}

static int port_progress(struct rwk_port *p)
{
	uint64_t count;

	p->armed = false;
	if (p->event_fd >= 0 && read(p->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		abort();
	return rwk_sim_port_progress(p);
}

static int port_wait_fd(struct rwk_port *p)
{
	if (p->event_fd < 0)
		p->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return p->event_fd < 0 ? -errno : p->event_fd;
}

static int port_arm(struct rwk_port *p)
{
	struct rwk_list *l;
	int rc = port_wait_fd(p);

	if (rc < 0)
		return rc;
	if (rwk_sim_waiting(p->net))
		return -EAGAIN;
	for (l = p->channels.next; l != &p->channels; l = l->next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		if ((ch->failing && ch->state != FAILED) || (ch->timer && ch->timer <= rwk_sim_now(p->sim)))
			return -EAGAIN;
	}
	p->armed = true;
	return 0;
}

/*
 * Sending.
 */

static void check_envelope(const struct rwk_envelope *env)
{
	breach_if(env->kind >= RWK_KIND_SERVICE, "the kind is one of the services' own");
	breach_if(env->spare, "the envelope's spare word is not zero");
}

static struct rwk_envelope trimmed(const struct rwk_envelope *env)
{
	struct rwk_envelope e = *env;

	if (!(e.flags & RWK_ENV_DATA))
		e.data = 0;
	return e;
}

/* Is a posted send still to go out? Then nothing may overtake it. */
static bool posted_before(const struct channel *ch)
{
	for (const struct rwk_list *l = ch->lanes[LANE_MESSAGES].next; l != &ch->lanes[LANE_MESSAGES]; l = l->next)
		if (rwk_container_of(l, struct record, lane)->op)
			return true;
	return false;
}

/* Takes a copy of a message, if there is room. */
static bool take_copy(
	struct channel *ch, const struct rwk_envelope *env, const struct iovec *iov, uint32_t count, size_t len)
{
	struct record *r;

	if (ch->state != OPEN || ch->copies >= ch->pub.port->how.room || posted_before(ch))
		return false;
	r = rwk_sim_record(R_MESSAGE, len);
	rwk_sim_copy_out(iov, count, 0, r->bytes, len);
	r->head.env = trimmed(env);
	r->counts = true;
	rwk_sim_enqueue(ch, LANE_MESSAGES, r);
	rwk_sim_pump(ch);
	return true;
}

static bool by_chance(const struct rwk_port *p, uint32_t parts)
{
	return parts && rwk_sim_random(p->sim, 1000000) < parts;
}

/* 0, or why nothing goes out any more. */
static int is_over(const struct channel *ch)
{
	return ch->orphan ? -ECANCELED : ch->state == FAILED ? ch->pub.error : ch->failing;
}

static int channel_send(struct rwk_channel *c, const struct rwk_envelope *env, const void *buf, size_t len)
{
	struct channel *ch = of(c);
	struct iovec iov = {(void *)buf, len};

	check_envelope(env);
	breach_if(len > c->send_max, "send of more than send_max");
	if (is_over(ch))
		return is_over(ch);
	if (by_chance(c->port, c->port->how.refuse))
		return -EAGAIN;
	return take_copy(ch, env, &iov, 1, len) ? 0 : -EAGAIN;
}

static void post_send(struct channel *ch, struct rwk_op *op)
{
	struct record *r = rwk_sim_record(R_MESSAGE, 0);

	r->op = op;
	r->iov = op->iov;
	r->iov_count = op->iov_count;
	r->head.length = op->length;
	r->head.env = trimmed(&op->env);
	op->service[1] = (uintptr_t)r;
	rwk_sim_enqueue(ch, LANE_MESSAGES, r);
}

static void post_request(struct channel *ch, struct rwk_op *op)
{
	struct record *r = rwk_sim_record(op->type == RWK_OP_READ ? R_READ : R_WRITE, 0);

	op->service[0] = ++ch->pub.port->last_id;
	op->service[1] = (uintptr_t)r;
	r->asked = op;
	r->head.id = op->service[0];
	r->head.key = op->rkey.word[1];
	r->head.offset = op->offset;
	r->head.amount = op->length;
	if (op->type == RWK_OP_WRITE) {
		r->iov = op->iov;
		r->iov_count = op->iov_count;
		r->head.length = op->length;
	}
	rwk_list_append(&ch->waiting, &op->link);
	rwk_sim_enqueue(ch, LANE_MESSAGES, r);
}

static void check_op(const struct rwk_channel *c, const struct rwk_op *op)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < op->iov_count; i++)
		sum += op->iov[i].iov_len;
	breach_if(op->length > sum, "an op is longer than its iov");
	breach_if(!op->done, "an op has no done");
	if (op->type == RWK_OP_SEND) {
		check_envelope(&op->env);
		breach_if(op->length > c->send_max, "a posted send of more than send_max");
	}
}

static int channel_post(struct rwk_channel *c, struct rwk_op *op)
{
	struct channel *ch = of(c);

	check_op(c, op);
	if (is_over(ch))
		return is_over(ch);
	if (op->type != RWK_OP_SEND && op->rkey.word[0] != KEY_MAGIC)
		return -EINVAL;
	if (op->type == RWK_OP_SEND && by_chance(c->port, c->port->how.finish) &&
		take_copy(ch, &op->env, op->iov, op->iov_count, op->length))
		return 1;
	if (op->type == RWK_OP_SEND)
		post_send(ch, op);
	else
		post_request(ch, op);
	rwk_sim_pump(ch);
	return 0;
}

static int channel_withdraw(struct rwk_channel *c, struct rwk_op *op)
{
	struct record *r = (struct record *)(uintptr_t)op->service[1];

	if (!r || r->begun)
		return -EBUSY;
	rwk_sim_drop(of(c), r);
	if (op->type != RWK_OP_SEND)
		rwk_list_remove(&op->link);
	return 0;
}

/*
 * Regions.
 */

static int channel_expose(
	struct rwk_channel *c, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key)
{
	struct rwk_port *p = c->port;
	struct region *r;

	breach_if(count > RWK_EXPOSE_IOV_MAX, "a region of too many pieces");
	if (p->how.regions && p->exposed >= p->how.regions)
		return -ENOSPC;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOSPC;
	r->channel = of(c);
	r->key = rwk_sim_random(p->sim, UINT64_MAX);
	r->access = access;
	r->count = count;
	memcpy(r->iov, iov, count * sizeof(*iov));
	for (uint32_t i = 0; i < count; i++)
		r->length += iov[i].iov_len;
	rwk_list_append(&p->regions, &r->link);
	p->exposed++;
	*key = (struct rwk_rkey){{KEY_MAGIC, r->key, 0, r->length}};
	return 0;
}

static void channel_conceal(struct rwk_channel *c, const struct rwk_rkey *key)
{
	struct region *r = rwk_sim_region(of(c), key->word[1]);

	breach_if(!r, "conceal of a region that is not exposed on this channel");
	rwk_sim_free_region(c->port, r);
}

bool rwk_sim_break(const struct rwk_address *a, const struct rwk_address *b, int err)
{
	struct rwk_port *p = port_of[rwk_address_port(a)];
	struct rwk_link_address to = rwk_sim_address(rwk_sim_node_of(b));

	if (!p)
		return false;
	for (struct rwk_list *l = p->channels.next; l != &p->channels; l = l->next) {
		struct channel *ch = rwk_container_of(l, struct channel, link);

		if (!memcmp(&ch->to, &to, sizeof(to)) && !ch->failing && !ch->orphan) {
			ch->failing = err;
			rwk_sim_alarm(p->net, 0);
			return true;
		}
	}
	return false;
}

const struct rwk_transport rwk_sim_transport = {
	.name = "simulated",
	.open = port_open,
	.close = port_close,
	.connect = port_connect,
	.disconnect = channel_disconnect,
	.progress = port_progress,
	.arm = port_arm,
	.wait_fd = port_wait_fd,
	.send = channel_send,
	.post = channel_post,
	.withdraw = channel_withdraw,
	.expose = channel_expose,
	.conceal = channel_conceal,
};
