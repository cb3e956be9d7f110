/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/sim_packet.h"

#include "machine.h"
#include "packet/port.h"
#include "packet/sim_domain.h"
#include "packet/sim_stream.h"
#include "packet/streams.h"

#include <errno.h>
#include <string.h>

#define POLL   1000       /* ns */
#define LINGER 2000000000 /* ns */

static struct rwk_sim *sim;
static rwk_time alarms[UINT16_MAX + 1]; /* by node: the next that is set */
static rwk_time lingers_until[UINT16_MAX + 1];
static uint32_t host; /* of the next SRC port, and 1; 0: each in turn */

void sim_packet_use(struct rwk_sim *s)
{
	sim = s;
	host = 0;
	sim_domain_use(s);
}

void sim_packet_host(uint32_t number)
{
	host = number + 1;
}

static struct rwk_link *node(const struct rwk_port *port)
{
	return port->link[RWK_WAY_LOSSY] ? port->link[RWK_WAY_LOSSY] : port->link[RWK_WAY_STREAM];
}

/** What the kernel would say of a process that has ended. */
static void on_gone(void *user, const struct rwk_link_address *who)
{
	rwk_packet_word(user, who, -ECONNRESET);
}

/** Wakes the port when it has something to do by the clock. What is overdue waits for the link: looked at in POLL. */
static void set_alarm(struct rwk_port *port)
{
	rwk_time at = rwk_packet_next(port), now = rwk_sim_now(sim), *set = &alarms[rwk_sim_number(node(port))];

	if (at == RWK_NEVER)
		return;
	if (at <= now)
		at = now + POLL;
	if (*set > now && *set <= at)
		return;
	*set = at;
	rwk_sim_alarm(node(port), at);
}

static bool waits_on_stream(const struct rwk_port *port)
{
	const struct rwk_link *stream = port->link[RWK_WAY_STREAM];

	if (!stream)
		return false;
	return port->link[RWK_WAY_LOSSY] ? sim_stream_waiting(stream) : rwk_sim_waiting(stream);
}

/** Time is taken note of, as after a sleep. */
static int take(struct rwk_port *port)
{
	if (waits_on_stream(port)) {
		port->stream_at =
			0; /* streams are looked at rarely while they carry nothing; that is not to be tested */
		port->armed = true;
	}
	if (rwk_packet_next(port) <= rwk_sim_now(sim))
		port->armed = true;
	return rwk_packet_progress(port);
}

/** A closed port lives on, driven by the network, until its peers have all that it has sent, or as long as a real one.
 */
static void on_wake(void *user)
{
	struct rwk_port *port = user;

	if (port->client != &rwk_packet_nobody)
		return;
	take(port);
	if (rwk_packet_go_on(port) && rwk_sim_now(sim) < lingers_until[rwk_sim_number(node(port))])
		set_alarm(port);
	else
		rwk_packet_free(port);
}

static void on_end(void *user)
{
	rwk_packet_free(user);
}

static const struct rwk_sim_hooks hooks = {.gone = on_gone, .wake = on_wake, .end = on_end};

static int open_node(struct rwk_port_attr *attr, struct rwk_link **l)
{
	int rc = sim ? rwk_sim_node(sim, l) : -ENETDOWN;

	if (rc)
		return rc;
	rwk_sim_set_hooks(*l, &hooks);
	alarms[rwk_sim_number(*l)] = 0;
	attr->address.nonce_port = (attr->address.nonce_port & ~0xffffull) | rwk_sim_number(*l);
	return 0;
}

static int open_lossy(struct rwk_port_attr *attr, struct rwk_link **lossy, struct rwk_link **stream)
{
	*stream = NULL;
	return open_node(attr, lossy);
}

/** Hosts, which is what connections are shared by. */
static int open_host(struct rwk_port_attr *attr, struct rwk_link **lossy, struct rwk_link **stream)
{
	static const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 203, [14] = 113}; /* nobody's */
	static uint32_t opened;

	attr->address.node = host ? host - 1 : opened++ % 2;
	memcpy(attr->address.ip, ip, sizeof(ip));
	attr->address.ip[15] = (uint8_t)(1 + attr->address.node);
	return open_lossy(attr, lossy, stream);
}

static int open_both(struct rwk_port_attr *attr, struct rwk_link **lossy, struct rwk_link **stream)
{
	int rc = open_host(attr, lossy, stream);

	return rc ? rc : sim_stream_open(sim, *lossy, stream);
}

static int open_stream(struct rwk_port_attr *attr, struct rwk_link **lossy, struct rwk_link **stream)
{
	*lossy = NULL;
	return open_node(attr, stream);
}

static struct rwk_link_address node_address(const struct rwk_address *a)
{
	return rwk_sim_address(rwk_address_port(a));
}

static void split(const struct rwk_link_address *a, uint8_t ip[16], uint16_t *port)
{
	(void)ip;
	*port = (uint16_t)rwk_sim_address_number(a);
}

/** As udp does: less than the receive buffer holds of long packets, since of short ones it holds less. */
static size_t room(const struct rwk_link *lossy)
{
	size_t inbox = rwk_sim_attr(sim)->inbox;

	(void)lossy;
	return inbox ? inbox / 2 : 100000;
}

static void linger(struct rwk_port *port)
{
	if (!rwk_sim_alive(sim, rwk_sim_number(node(port)))) { /* the process has ended: its seat in a domain too */
		rwk_packet_free(port);
		return;
	}
	lingers_until[rwk_sim_number(node(port))] = rwk_sim_now(sim) + LINGER;
	rwk_sim_alarm(node(port), 0);
}

/** A simulated stream is open at once. */
static int reach(struct rwk_link *stream, const struct rwk_link_address *to, uint64_t nonce)
{
	(void)nonce;
	stream->word(stream->user, to, 0);
	return 0;
}

static void leave(struct rwk_link *stream, const struct rwk_link_address *to)
{
	(void)stream;
	(void)to;
}

static const struct rwk_packet_ways lossy_ways = {
	.simulated = true,
	.open = open_lossy,
	.address = node_address,
	.split = split,
	.room = room,
	.linger = linger,
};

static const struct rwk_packet_ways shared_ways = {
	.simulated = true,
	.open = open_host,
	.address = node_address,
	.split = split,
	.room = room,
	.linger = linger,
	.join = sim_domain_join,
	.join_alone = sim_domain_join_alone,
	.attend = sim_domain_attend,
	.depart = sim_domain_depart,
};

static const struct rwk_packet_ways both_ways = {
	.simulated = true,
	.open = open_both,
	.address = node_address,
	.split = split,
	.room = room,
	.linger = linger,
	.join = sim_domain_join,
	.join_alone = sim_domain_join_alone,
	.attend = sim_domain_attend,
	.depart = sim_domain_depart,
	.reach = reach,
	.leave = leave,
};

static const struct rwk_packet_ways stream_ways = {
	.simulated = true,
	.open = open_stream,
	.address = node_address,
	.split = split,
	.reach = reach,
	.leave = leave,
	.linger = linger,
};

static int open_rc(struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port)
{
	return rwk_packet_open(&lossy_ways, &sim_packet_transport, attr, client, cookie, port);
}

static int open_src(struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port)
{
	attr->shared = true;
	return rwk_packet_open(&shared_ways, &sim_shared_transport, attr, client, cookie, port);
}

static int open_two(struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port)
{
	attr->shared = true;
	return rwk_packet_open(&both_ways, &sim_both_transport, attr, client, cookie, port);
}

static int open_uc(struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port)
{
	return rwk_packet_open(&stream_ways, &sim_stream_transport, attr, client, cookie, port);
}

static int progress(struct rwk_port *port)
{
	int n = take(port);

	set_alarm(port);
	return n;
}

const struct rwk_transport sim_packet_transport = {
	.name = "RC/sim",
	.open = open_rc,
	RWK_PACKET_CALLS,
	.progress = progress,
};

const struct rwk_transport sim_shared_transport = {
	.name = "SRC/sim",
	.open = open_src,
	RWK_PACKET_CALLS,
	.progress = progress,
};

const struct rwk_transport sim_both_transport = {
	.name = "SRC and UC/sim",
	.open = open_two,
	RWK_PACKET_CALLS,
	.progress = progress,
};

const struct rwk_transport sim_stream_transport = {
	.name = "UC/sim",
	.open = open_uc,
	RWK_PACKET_CALLS,
	.progress = progress,
};
