/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC, sending: one requester for each other node. All channels to processes there post to it; each request names the
 * SRQ of the process it is for. Acknowledgements come to its own QPN, from the domain's socket.
 *
 * It is made when the first greeting to a process of that node is written, since the greeting says its QPN and first
 * PSN; and aimed when an ACCEPT has told which QP of which domain takes for it. When the port is closed, and all that
 * it has sent has arrived, it *ceases*: the domain there is told that the QP can be another's. That is said a few times
 * at most, since nobody may be left there; a QP of which nobody hears stays taken as long as its domain.
 */
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/initiator.h"
#include "packet/narrow.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/request.h"

#include "base/log.h"
#include "base/param.h"
#include "wire/psn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT   (2 * 1000 * 1000ull)        /* ns, until there are measurements */
#define LINGER    (2 * 1000 * 1000 * 1000ull) /* ns that what was sent last is sent again, once no channel is left */
#define ACK_DELAY (60 * 1000ull)              /* ns that the domain may take to acknowledge */

#define CEASE_FIRST  (2 * 1000 * 1000ull)   /* ns until an initiator says for the second time that it ceases, */
#define CEASE_WITHIN (100 * 1000 * 1000ull) /* and that a close waits for answers */

static void failed(void *user, int err)
{
	struct rwk_packet_initiator *by = user;
	struct rwk_port *port = by->port;

	by->failed = true;
	if (!by->give_up_at)
		rwk_warn("packets: the connection to the processes of a node has failed: %s", strerror(-err));
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->shared && ch->by == by)
			rwk_packet_doom(ch, -EPROTO);
	}
}

static int emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct rwk_packet_initiator *by = user;

	return rwk_packet_put(by->port, &by->path, w, payload, count);
}

static void silent(void *user, bool anew)
{
	rwk_packet_node_silent(user, anew);
}

/* It takes no requests: rwk_packet_initiator_packet lets none through to it. */
static const struct rwk_machine_host host = {.emit = emit, .done = rwk_packet_done, .failed = failed, .silent = silent};

static struct rwk_packet_initiator *make(struct rwk_port *port, uint32_t node)
{
	struct rwk_packet_initiator *by = calloc(1, sizeof(*by));

	if (!by)
		return NULL;
	by->qpn = rwk_packet_new_qpn(port);
	if (!by->qpn || rwk_packet_random(&by->psn, sizeof(by->psn))) {
		free(by);
		return NULL;
	}
	by->psn &= RWK_PSN_MASK;
	by->port = port;
	by->node = node;
	by->path.way = RWK_WAY_LOSSY;
	rwk_list_init(&by->dirty);
	HASH_ADD(by_qpn, port->initiators, qpn, sizeof(by->qpn), by);
	if (!rwk_keyed_is_in(&by->by_qpn)) {
		free(by);
		return NULL;
	}
	rwk_list_append(&port->all_initiators, &by->all);
	return by;
}

struct rwk_packet_initiator *rwk_packet_initiator(struct rwk_port *port, uint32_t node, uint64_t domain)
{
	struct rwk_packet_initiator *found = NULL;

	for (struct rwk_list *l = port->all_initiators.next; l != &port->all_initiators; l = l->next) {
		struct rwk_packet_initiator *by = rwk_container_of(l, struct rwk_packet_initiator, all);

		if (by->node == node && !by->failed && (!domain || !by->domain || by->domain == domain))
			found = by; /* the last: the latest domain of that node */
	}
	if (!found)
		return make(port, node);
	found->give_up_at = 0;
	return found;
}

static int open_machine(struct rwk_packet_initiator *by, const struct rwk_greeting *g)
{
	uint32_t window = rwk_params.window ? (uint32_t)rwk_params.window : RWK_RC_WINDOW_MAX;
	const struct rwk_rc_attr attr = {
		.peer_qpn = g->shared.target,
		.send_psn = by->psn,
		.pmtu = g->pmtu,
		.window = (uint16_t)(g->window < window ? g->window : window),
		.read_window = rwk_packet_window(by->port, g->pmtu),
		.reads = RWK_RC_READS_MAX,
		.retry = 7,
		.rnr_retry = 7,
		.service = RWK_WIRE_SRC,
		.own = RWK_PACKET_SRC_OWN & g->features,
		.timeout = TIMEOUT,
		.ack_delay = ACK_DELAY,
		.ack_every = 1,
		.read_chunk = rwk_packet_read_chunk(g->pmtu),
	};
	void *memory, *responder;
	int rc;

	memory = rwk_packet_machine_memory(
		rwk_rc_size() + RWK_RC_BUSY_SIZE, rwk_rc_responder_size() + RWK_RC_BUSY_RESPONDER_SIZE, &responder);
	if (!memory)
		return -ENOMEM;
	by->window = attr.window;
	by->rc = rwk_rc_open(memory, responder, &host, by);
	rc = rwk_rc_modify(by->rc, RWK_QP_INIT, NULL);
	if (!rc)
		rc = rwk_rc_modify(by->rc, RWK_QP_RTR, &attr);
	if (!rc)
		rc = rwk_rc_modify(by->rc, RWK_QP_RTS, NULL);
	by->port->count.initiators += !rc;
	if (rc) {
		free(by->rc);
		by->rc = NULL;
	}
	return rc;
}

/* The same host, the domain's port. */
static struct rwk_link_address at_port(struct rwk_port *port, const struct rwk_link_address *host_at, uint16_t number)
{
	struct rwk_address a = {.nonce_port = number};
	uint16_t ignored;

	port->ways->split(host_at, a.ip, &ignored);
	return port->ways->address(&a);
}

int rwk_packet_aim(struct rwk_packet_initiator *by, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_link_address told = by->port->ways->address(&g->from);

	if (by->failed)
		return -ESTALE;
	by->give_up_at = 0;
	if (by->rc)
		return by->domain == g->shared.domain && by->target == g->shared.target ? 0 : -ESTALE;
	if (by->domain && by->domain != g->shared.domain)
		return -ESTALE;
	by->path.to = at_port(by->port, &told, g->shared.port);
	by->seen = at_port(by->port, from, g->shared.port);
	by->domain = g->shared.domain;
	by->target = g->shared.target;
	by->pmtu = g->pmtu;
	return open_machine(by, g);
}

void rwk_packet_initiator_left(struct rwk_packet_initiator *by, bool gone)
{
	struct rwk_port *port = by->port;

	if (--by->channels)
		return;
	if (!by->rc)
		by->domain = 0; /* nobody is left who could say where to aim it */
	by->give_up_at = rwk_packet_now(port) + (gone ? 0 : LINGER);
	if (by->give_up_at < port->deadline)
		port->deadline = by->give_up_at;
}

/** Nobody is left there who could acknowledge. */
static bool is_to_be_given_up(struct rwk_packet_initiator *by, rwk_time now)
{
	return by->give_up_at && now >= by->give_up_at && by->rc && !rwk_rc_idle(by->rc);
}

/** Those who wait look whether the domain is late. */
static void stir_waiting(struct rwk_packet_initiator *by)
{
	struct rwk_port *port = by->port;

	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->shared && ch->by == by && ch->running)
			rwk_packet_stir(ch);
	}
}

void rwk_packet_initiator_deadline(struct rwk_packet_initiator *by)
{
	rwk_time next = rwk_rc_next(by->rc);

	if (next < by->port->deadline)
		by->port->deadline = next;
}

int rwk_packet_initiator_pump(struct rwk_packet_initiator *by)
{
	const struct rwk_qp_counters *c;
	uint64_t silences;
	int n;

	rwk_list_remove(&by->dirty);
	if (!by->rc)
		return 0;
	c = rwk_rc_counters(by->rc);
	silences = c->probes + c->timeouts;
	n = rwk_rc_pump(by->rc, rwk_packet_now(by->port));
	if (rwk_unlikely(c->probes + c->timeouts != silences))
		stir_waiting(by);
	rwk_packet_initiator_deadline(by);
	return n;
}

bool rwk_packet_initiator_packet(struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_wire *w,
	const void *payload, size_t len)
{
	unsigned operation = RWK_WIRE_OPERATION(w->opcode);
	struct rwk_packet_initiator *by;

	HASH_FIND(by_qpn, port->initiators, &w->qpn, sizeof(w->qpn), by);
	if (!by)
		return false;
	if (memcmp(&by->seen, from, sizeof(*from))) {
		port->count.wrong_sender++;
		return true;
	}
	if (!by->rc || operation < RWK_WIRE_READ_FIRST || operation > RWK_WIRE_ATOMIC_ACK) {
		port->count.unknown_qp++;
		return true;
	}
	rwk_packet_vote(port, &by->path, &by->seen, true);
	rwk_rc_packet(by->rc, w, payload, len, rwk_packet_now(port));
	if (rwk_list_empty(&by->dirty))
		rwk_list_append(&port->dirty_initiators, &by->dirty);
	return true;
}

int rwk_packet_initiators_pump(struct rwk_port *port)
{
	struct rwk_list *l;
	int n = 0;

	while ((l = rwk_list_pop(&port->dirty_initiators)))
		n += rwk_packet_initiator_pump(rwk_container_of(l, struct rwk_packet_initiator, dirty));
	return n;
}

void rwk_packet_initiators_ring(struct rwk_port *port, rwk_time now)
{
	for (struct rwk_list *l = port->all_initiators.next; l != &port->all_initiators; l = l->next) {
		struct rwk_packet_initiator *by = rwk_container_of(l, struct rwk_packet_initiator, all);
		rwk_time at = by->rc ? rwk_rc_next(by->rc) : RWK_NEVER;

		if (is_to_be_given_up(by, now))
			rwk_rc_fail(by->rc, -ECONNRESET);
		if (at <= now && rwk_list_empty(&by->dirty))
			rwk_list_append(&port->dirty_initiators, &by->dirty);
		else if (at > now && at < port->deadline)
			port->deadline = at;
	}
}

/** Whom it is for is a domain, which has a place and an identity, but no name as a process has. */
static void say_ceased(struct rwk_packet_initiator *by)
{
	struct rwk_port *port = by->port;
	struct rwk_greeting g = {.type = RWK_GREETING_CEASE,
		.from = port->address,
		.to = {.version_srq = RWK_ADDR_VERSION << 24, .job = port->address.job, .node = by->node},
		.qpn = by->qpn,
		.shared = {.domain = by->domain, .target = by->target}};
	uint16_t number;

	port->ways->split(&by->path.to, g.to.ip, &number);
	g.to.nonce_port = (by->domain | 1) << 16 | number;
	rwk_packet_greet(port, RWK_WAY_LOSSY, &by->path.to, &g);
}

/** Something is to be waited for: what was sent last is not acknowledged yet, or the answer has not come. */
static bool cease(struct rwk_packet_initiator *by, rwk_time now)
{
	if (!by->rc || by->failed || by->ceased)
		return false;
	if (!rwk_rc_idle(by->rc))
		return true;
	if (now >= by->cease_at) {
		by->cease_at = now + (CEASE_FIRST << by->ceases++);
		say_ceased(by);
	}
	if (by->cease_at < by->port->deadline)
		by->port->deadline = by->cease_at;
	return true;
}

bool rwk_packet_initiators_cease(struct rwk_port *port)
{
	rwk_time now = rwk_packet_now(port);
	bool waits = false;

	if (!port->cease_until)
		port->cease_until = now + CEASE_WITHIN;
	if (now >= port->cease_until)
		return false;
	for (struct rwk_list *l = port->all_initiators.next; l != &port->all_initiators; l = l->next)
		waits |= cease(rwk_container_of(l, struct rwk_packet_initiator, all), now);
	return waits;
}

void rwk_packet_initiator_ceased(struct rwk_port *port, const struct rwk_greeting *g)
{
	struct rwk_packet_initiator *by;

	HASH_FIND(by_qpn, port->initiators, &g->qpn, sizeof(g->qpn), by);
	if (by && by->cease_at && by->domain == g->shared.domain && by->target == g->shared.target)
		by->ceased = true;
	else
		port->count.stale++;
}

void rwk_packet_initiators_refused(struct rwk_port *port, const struct rwk_link_address *who)
{
	for (struct rwk_list *l = port->all_initiators.next; l != &port->all_initiators; l = l->next) {
		struct rwk_packet_initiator *by = rwk_container_of(l, struct rwk_packet_initiator, all);

		if (port->cease_until && !memcmp(&by->path.to, who, sizeof(*who)))
			by->ceased = true;
	}
}

void rwk_packet_initiators_free(struct rwk_port *port)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&port->all_initiators))) {
		struct rwk_packet_initiator *by = rwk_container_of(l, struct rwk_packet_initiator, all);

		HASH_DELETE(by_qpn, port->initiators, by);
		rwk_packet_vote_ends(port, &by->path);
		rwk_list_remove(&by->dirty);
		if (by->rc)
			rwk_rc_close(by->rc);
		free(by->rc);
		free(by->narrow);
		free(by);
	}
}
