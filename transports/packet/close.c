/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a port. Its client is told nothing any more; what was sent last may not have arrived yet, and is waited
 * for.
 */
#include "packet/capture.h"
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/port.h"
#include "packet/regions.h"

#include "base/log.h"
#include "base/param.h"
#include "shared_rc/shared_rc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LINGER (2 * 1000 * 1000 * 1000ull) /* ns that it waits for acknowledgements at most */
#define NAP    1                           /* ms that it sleeps meanwhile, until its owner looks at other ports */

void rwk_packet_close_links(struct rwk_port *port)
{
	for (int i = 0; i < RWK_WAYS; i++) {
		if (port->link[i])
			port->link[i]->ops->close(port->link[i]);
	}
}

static bool waits(const struct rwk_packet_channel *ch)
{
	return ch->state == RWK_CH_OPEN && !ch->doom && !rwk_packet_idle(ch);
}

/* What a stream has taken is the peer's only when it has come there: a close cuts it off. */
static bool all_idle(const struct rwk_port *port)
{
	struct rwk_link *stream = port->link[RWK_WAY_STREAM];

	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		if (waits(rwk_container_of(l, struct rwk_packet_channel, all)))
			return false;
	}
	return !stream || !stream->ops->sent || stream->ops->sent(stream);
}

static int nobody_connected(void *client, struct rwk_channel *ch, const struct rwk_address *from)
{
	(void)client;
	(void)ch;
	(void)from;
	return -ECONNREFUSED;
}

static void nobody_message(
	void *client, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	(void)client;
	(void)ch;
	(void)env;
	(void)payload;
	(void)len;
}

static struct rwk_place *nobody_begin(void *client, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	static struct rwk_place nowhere;

	(void)client;
	(void)ch;
	(void)env;
	(void)len;
	return &nowhere;
}

static void nobody_end(void *client, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	(void)client;
	(void)ch;
	(void)place;
	(void)status;
}

static void nobody_failed(void *client, struct rwk_channel *ch, int err)
{
	(void)client;
	(void)ch;
	(void)err;
}

const struct rwk_client rwk_packet_nobody = {
	.connected = nobody_connected,
	.message = nobody_message,
	.begin = nobody_begin,
	.end = nobody_end,
	.failed = nobody_failed,
};

/** Ends the messages of which some pieces have come. */
static void end_places(struct rwk_port *port)
{
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);
		struct rwk_place *place = ch->place;

		if (!place)
			continue;
		port->client->end(port->cookie, &ch->base, place, -ECANCELED);
		ch->place = nobody_begin(NULL, NULL, NULL, 0);
	}
}

bool rwk_packet_go_on(struct rwk_port *port)
{
	rwk_packet_progress(port);
	return !all_idle(port) || rwk_packet_initiators_cease(port);
}

bool rwk_packet_linger(struct rwk_port *port)
{
	struct epoll_event event;

	port->now = 0;
	if (!rwk_packet_go_on(port) || rwk_packet_now(port) >= port->linger_until)
		return false;
	if (!rwk_packet_arm(port))
		epoll_wait(port->epoll, &event, 1, NAP);
	return true;
}

static void tell_in_vain(const struct rwk_port *port)
{
	unsigned waiting = 0;

	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next)
		waiting += waits(rwk_container_of(l, struct rwk_packet_channel, all));
	rwk_info("closed although what was sent last is not known to have come (%u of its channels waited for an "
		 "answer): those peers have not answered for two seconds",
		waiting);
}

void rwk_packet_free(struct rwk_port *port)
{
	if (!all_idle(port))
		tell_in_vain(port);
	while (!rwk_list_empty(&port->all)) {
		struct rwk_packet_channel *ch = rwk_container_of(port->all.next, struct rwk_packet_channel, all);

		rwk_packet_stop(ch, -ECANCELED);
		rwk_packet_channel_free(ch);
	}
	rwk_packet_initiators_free(port);
	rwk_packet_numbers_free(port);
	rwk_packet_domain_leave(port);
	rwk_capture_close(port->capture);
	close(port->epoll);
	close(port->timer);
	rwk_packet_close_links(port);
	rwk_packet_regions_free(port);
	rwk_pool_close(&port->requests);
	rwk_pool_close(&port->frames);
	rwk_spares_close(&port->spares);
	free(port->puzzles);
	free(port->ended);
	free(port);
}

/** The client may do with its memory what it likes. */
static void conceal_all(struct rwk_port *port)
{
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->published)
			rwk_src_withdraw_all(port->view, ch->target);
		ch->published = false;
	}
	rwk_packet_regions_free(port);
}

void rwk_packet_leave(struct rwk_port *port)
{
	if (rwk_params.stats)
		rwk_packet_summary(port);
	end_places(port);
	port->client = &rwk_packet_nobody;
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next)
		rwk_packet_farewell(rwk_container_of(l, struct rwk_packet_channel, all));
	conceal_all(port);
	port->now = 0;
	port->linger_until = rwk_packet_now(port) + LINGER;
}

void rwk_packet_close(struct rwk_port *port)
{
	if (!port->linger_until)
		rwk_packet_leave(port);
	if (port->ways->linger) {
		port->ways->linger(port);
		return;
	}
	while (rwk_packet_linger(port))
		;
	rwk_packet_free(port);
}
