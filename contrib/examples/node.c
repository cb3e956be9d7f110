/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

#include <errno.h>
#include <error.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE  64u /* requests and receives of a queue pair */
#define CQ_MAX 1024u
#define PORTS  4000 /* above 4791 */
#define TRIES  64

void demand(int rc, const char *what)
{
	if (rc < 0)
		error(1, -rc, "%s", what);
}

/*
 * An adapter has a UDP port. 4791 is the one that RoCEv2 has been given; whoever runs two programs on one host takes
 * another for the second, and tells the peer.
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
}

/* Children first: what still has some is busy. */
void node_close(struct node *n)
{
	demand(rwk_cq_destroy(n->cq), "the completion queue");
	demand(rwk_pd_destroy(n->pd), "the protection domain");
	demand(rwk_adapter_close(n->adapter), "the adapter");
}

/* A line each way: neither end goes on before the other has come as far. */
static void exchange(int talk, const char *say, char hear[RWK_PLACE_LENGTH])
{
	size_t n = 0;

	if (dprintf(talk, "%s\n", say) < 0)
		error(1, errno, "the peer");
	while (n < RWK_PLACE_LENGTH - 1 && recv(talk, &hear[n], 1, 0) == 1 && hear[n] != '\n')
		n++;
	hear[n] = '\0';
	if (!n)
		error(1, 0, "the peer's program has ended");
}

/* Where we are, for the peer: the address by which it reaches us depends on where it is. */
static void describe(
	struct node *n, const struct peer *p, const struct rwk_mr *mr, const void *address, struct rwk_place *mine)
{
	uint8_t ip[16];

	demand(rwk_meet_peer(p->talk, ip), "the peer's address");
	demand(rwk_adapter_source(n->adapter, ip, mine->ip), "no way to the peer");
	mine->port = rwk_adapter_port(n->adapter);
	mine->qpn = rwk_qp_number(p->qp);
	if (getrandom(&mine->psn, sizeof(mine->psn), 0) != sizeof(mine->psn))
		error(1, errno, "a first packet sequence number");
	mine->psn &= 0xffffff; /* a stranger must guess it to be heard */
	if (mr) {
		mine->key = rwk_mr_key(mr);
		mine->address = (uintptr_t)address;
	}
}

void peer_connect(struct node *n, struct peer *p, int talk, const struct rwk_mr *mr, const void *address)
{
	struct rwk_qp_create_attr create = {
		.type = RWK_QP_RC, .send_cq = n->cq, .send_max = QUEUE, .receive_cq = n->cq, .receive_max = QUEUE};
	struct rwk_place mine = {0};
	char said[RWK_PLACE_LENGTH], heard[RWK_PLACE_LENGTH];
	struct rwk_qp_attr attr = {
		.access = RWK_ACCESS_READ | RWK_ACCESS_WRITE, /* to what is registered so, and by its key */
		.retry = 7,                                   /* times that silence is answered by sending again */
		.rnr_retry = 7,                               /* a receive that is not there yet is waited for, */
		.timeout_ns = 500000000,                      /* a peer that waits for a processor is not dead */
		.rnr_timer = 12 /* 0.64 ms at a time */};

	p->talk = talk;
	demand(rwk_qp_create(n->pd, &create, &p->qp), "the queue pair");
	describe(n, p, mr, address, &mine);
	rwk_place_print(said, &mine);
	exchange(talk, said, heard);
	if (!rwk_place_parse(heard, &p->place))
		error(1, 0, "the peer does not say where it is: %s", heard);
	memcpy(attr.peer_ip, p->place.ip, sizeof(attr.peer_ip));
	attr.peer_port = (uint16_t)p->place.port;
	attr.peer_qpn = p->place.qpn;
	attr.send_psn = mine.psn;
	attr.receive_psn = p->place.psn;
	demand(rwk_qp_modify(p->qp, RWK_QPS_INIT, NULL), "INIT");
	demand(rwk_qp_modify(p->qp, RWK_QPS_RTR, &attr), "ready to receive (RTR)");
	demand(rwk_qp_modify(p->qp, RWK_QPS_RTS, NULL), "ready to send (RTS)");
	exchange(talk, "ready", heard); /* what is sent before the peer is in RTR is lost */
}

/* Nothing is said over TCP after the beginning: what there is to read is its end. */
bool peer_gone(const struct peer *p)
{
	return poll(&(struct pollfd){p->talk, POLLIN, 0}, 1, 0) != 0;
}

void peer_close(struct peer *p)
{
	rwk_qp_destroy(p->qp);
	close(p->talk);
}

/* All work is done by the calls, above all by rwk_cq_poll: who waits polls. */
bool node_await(struct node *n, const struct peer *p, struct rwk_wc *wc)
{
	unsigned polls = 0;

	while (rwk_cq_poll(n->cq, wc, 1) == 0) {
		if (++polls % 1024)
			continue;
		sched_yield();
		if (peer_gone(p))
			return rwk_cq_poll(n->cq, wc, 1) == 1;
	}
	return true;
}
