/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <error.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUEUE  64u /* requests and receives of a queue pair */
#define CQ_MAX 1024u
#define PORTS  4000 /* above 4791 */
#define TRIES  64

/* An offer on the network: numbers there have an order of bytes, big-endian. */
struct offer_told {
	uint64_t address;
	uint32_t key;
} __attribute__((packed));

void demand(int rc, const char *what)
{
	if (rc < 0)
		error(1, -rc, "%s", what);
}

unsigned number_of(const char *what, const char *text, unsigned most)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || end == text || *end || strchr(text, '-') || v < 1 || v > most)
		error(64, 0, "%s: '%s' is not a number from 1 to %u", what, text, most);
	return (unsigned)v;
}

/*
 * An adapter has a UDP port. 4791 is the one that RoCEv2 has been given; whoever runs two programs on one host takes
 * another for the second. The peer is told when it connects.
 */
void node_open(struct node *n, bool well_known)
{
	struct rwk_adapter_attr attr = {.port = RWK_PORT};
	int rc, tries = 0;

	if (!well_known)
		attr.port = (uint16_t)(RWK_PORT + 1 + getpid() % PORTS);
	while ((rc = rwk_adapter_open(&attr, &n->adapter)) == -EADDRINUSE && tries++ < TRIES)
		attr.port = (uint16_t)(RWK_PORT + 1 + (getpid() + tries) % PORTS);
	demand(rc, "the adapter");
	demand(rwk_pd_create(n->adapter, &n->pd), "the protection domain");
	demand(rwk_cq_create(n->adapter, CQ_MAX, &n->cq), "the completion queue");
	demand(rwk_event_channel_create(n->adapter, &n->channel), "the event channel");
}

/* Children first: what still has some is busy. */
void node_close(struct node *n)
{
	demand(rwk_event_channel_destroy(n->channel), "the event channel");
	demand(rwk_cq_destroy(n->cq), "the completion queue");
	demand(rwk_pd_destroy(n->pd), "the protection domain");
	demand(rwk_adapter_close(n->adapter), "the adapter");
}

/*
 * Events. rwk_event_channel_poll never waits; its descriptor is readable when there is something to do for connections,
 * deadlines included. (Packets by UDP do not make it readable: while work goes on, poll the completion queue, or sleep
 * on its descriptor.)
 */
struct rwk_connection_event node_await_event(struct node *n, enum rwk_connection_event_type type, unsigned seconds)
{
	struct pollfd p = {.fd = rwk_event_channel_fd(n->channel), .events = POLLIN};
	time_t end = time(NULL) + seconds;
	struct rwk_connection_event e;

	while (!rwk_event_channel_poll(n->channel, &e)) {
		if (time(NULL) > end)
			error(1, 0, "nobody came within %u s", seconds);
		poll(&p, 1, 100);
	}
	if (e.type != type)
		error(1, -e.status, "the connection came to nothing");
	return e;
}

/* A queue pair may exist before its connection: receives that are posted now are there when the peer's first Send is.
 */
static void create_qp(struct node *n, struct peer *p)
{
	struct rwk_qp_create_attr create = {
		.type = RWK_QP_RC, .send_cq = n->cq, .send_max = QUEUE, .receive_cq = n->cq, .receive_max = QUEUE};

	*p = (struct peer){0};
	demand(rwk_qp_create(n->pd, &create, &p->qp), "the queue pair");
}

/* What this end wants of the connection; numbers, packet size and the like the two ends agree on by themselves. */
static const struct rwk_connection_attr wanted = {
	.transport = RWK_TRANSPORT_UDP,
	.qp =
		{
			.access = RWK_ACCESS_READ | RWK_ACCESS_WRITE, /* to what is registered so, and by its key */
			.retry = 7,              /* times that silence is answered by sending again */
			.rnr_retry = 7,          /* a receive that is not there yet is waited for, */
			.rnr_timer = 12,         /* 0.64 ms at a time */
			.timeout_ns = 500000000, /* who waits for a processor is not dead */
		},
};

/* An IPv6 address, or an IPv4 one mapped into it: so does ropewalk.h have them. */
static void look_up_host(const char *host, uint8_t ip[16])
{
	struct addrinfo hints = {.ai_family = AF_INET6, .ai_flags = AI_V4MAPPED, .ai_socktype = SOCK_STREAM}, *found;
	int rc = getaddrinfo(host, NULL, &hints, &found);

	if (rc)
		error(1, 0, "%s: %s", host, gai_strerror(rc));
	memcpy(ip, &((const struct sockaddr_in6 *)(const void *)found->ai_addr)->sin6_addr, 16);
	freeaddrinfo(found);
}

/* The answer to one attempt; true: connected. */
static bool try_to_connect(struct node *n, struct peer *p, const uint8_t ip[16], unsigned port)
{
	struct pollfd wait = {.fd = rwk_event_channel_fd(n->channel), .events = POLLIN};
	struct rwk_connection_event e;
	struct offer_told told;

	demand(rwk_connect(n->channel, p->qp, ip, (uint16_t)port, &wanted, &p->connection), "no way to the peer");
	while (!rwk_event_channel_poll(n->channel, &e)) /* an answer, or that there is none: it always comes */
		poll(&wait, 1, -1);
	if (e.type == RWK_CONNECTION_UNREACHABLE && e.status == -ECONNREFUSED)
		return false;
	if (e.type != RWK_CONNECTION_ESTABLISHED)
		error(1, -e.status, "the peer grants no connection");
	if (e.private_length == sizeof(told)) {
		memcpy(&told, e.private_data, sizeof(told));
		p->offer = (struct offer){be64toh(told.address), be32toh(told.key)};
	}
	return true;
}

void peer_connect(struct node *n, struct peer *p, const char *host, unsigned port, unsigned seconds)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	time_t end = time(NULL) + seconds;
	uint8_t ip[16];

	look_up_host(host, ip);
	create_qp(n, p);
	while (!try_to_connect(n, p, ip, port)) { /* nobody listens there, yet */
		rwk_connection_destroy(p->connection);
		if (time(NULL) > end)
			error(1, ECONNREFUSED, "%s, port %u", host, port);
		nanosleep(&pause, NULL);
	}
}

bool peer_accept(struct node *n, struct peer *p, struct rwk_connection *c, const struct offer *offer)
{
	struct rwk_connection_attr attr = wanted;
	struct offer_told told;
	int rc;

	create_qp(n, p);
	p->connection = c;
	if (offer) {
		told = (struct offer_told){htobe64(offer->address), htobe32(offer->key)};
		attr.private_data = &told;
		attr.private_length = sizeof(told);
	}
	attr.user = p; /* in each event of this connection */
	rc = rwk_accept(c, p->qp, &attr);
	if (rc && rc != -ENOTCONN && rc != -EADDRNOTAVAIL)
		demand(rc, "a connection");
	if (rc)
		peer_close(p);
	return !rc;
}

/* In this order: a queue pair that is destroyed first would end the connection, too, but as if something had failed. */
void peer_close(struct peer *p)
{
	rwk_connection_destroy(p->connection);
	rwk_qp_destroy(p->qp);
}

/*
 * All work is done by the calls, above all by rwk_cq_poll: who waits polls. What has completed is taken before the end
 * of the connection is: the last request may have completed, and the peer have left then.
 */
bool node_await(struct node *n, struct peer *p, struct rwk_wc *wc)
{
	struct rwk_connection_event e;
	unsigned polls = 0;

	while (rwk_cq_poll(n->cq, wc, 1) == 0) {
		if (p->over)
			return false;
		if (++polls % 256)
			continue;
		sched_yield();
		if (rwk_event_channel_poll(n->channel, &e))
			p->over = e.type == RWK_CONNECTION_DISCONNECTED;
	}
	return true;
}
