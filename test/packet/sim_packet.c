/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/sim_packet.h"

#include "packet/internal.h"

static struct rwk_sim *sim;
static rwk_time alarms[UINT16_MAX + 1]; /* by node: the next that is set */

void sim_packet_use(struct rwk_sim *s)
{
	sim = s;
}

/** What the kernel would say of a process that has ended. */
static void on_gone(void *user, const struct rwk_link_address *who)
{
	rwk_packet_word(user, who, -ECONNRESET);
}

static void set_alarm(struct rwk_port *port)
{
	rwk_time at = rwk_packet_next(port), *set = &alarms[rwk_sim_number(port->link[RWK_WAY_LOSSY])];

	if (at == RWK_NEVER || (*set > rwk_sim_now(sim) && *set <= at))
		return;
	*set = at;
	rwk_sim_alarm(port->link[RWK_WAY_LOSSY], at);
}

/** A closed port lives on, driven by the network, until its peers have all that it has sent. */
static void on_wake(void *user)
{
	struct rwk_port *port = user;

	if (port->client != &rwk_packet_nobody)
		return;
	if (rwk_packet_linger(port))
		set_alarm(port);
	else
		rwk_packet_free(port);
}

static void on_end(void *user)
{
	rwk_packet_free(user);
}

static const struct rwk_sim_hooks hooks = {.gone = on_gone, .wake = on_wake, .end = on_end};

static int open_node(struct rwk_port_attr *attr, struct rwk_link **lossy, struct rwk_link **stream)
{
	int rc = sim ? rwk_sim_node(sim, lossy) : -ENETDOWN;

	if (rc)
		return rc;
	*stream = NULL;
	rwk_sim_set_hooks(*lossy, &hooks);
	alarms[rwk_sim_number(*lossy)] = 0;
	attr->address.nonce_port = (attr->address.nonce_port & ~0xffffull) | rwk_sim_number(*lossy);
	return 0;
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

static size_t room(const struct rwk_link *lossy)
{
	(void)lossy;
	return 100000;
}

static void linger(struct rwk_port *port)
{
	rwk_sim_alarm(port->link[RWK_WAY_LOSSY], 0);
}

static const struct rwk_packet_ways ways = {
	.simulated = true,
	.open = open_node,
	.address = node_address,
	.split = split,
	.room = room,
	.linger = linger,
};

static int open_port(struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port)
{
	return rwk_packet_open(&ways, &sim_packet_transport, attr, client, cookie, port);
}

static int progress(struct rwk_port *port)
{
	int n = rwk_packet_progress(port);

	set_alarm(port);
	return n;
}

const struct rwk_transport sim_packet_transport = {
	.name = "RC/sim",
	.open = open_port,
	.close = rwk_packet_close,
	.connect = rwk_packet_connect,
	.disconnect = rwk_packet_disconnect,
	.progress = progress,
	.arm = rwk_packet_arm,
	.wait_fd = rwk_packet_wait_fd,
	.send = rwk_packet_send,
	.post = rwk_packet_post,
	.withdraw = rwk_packet_withdraw,
	.expose = rwk_packet_expose,
	.conceal = rwk_packet_conceal,
};
