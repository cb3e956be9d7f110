/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom most packets are from (R. Boyer, J Moore, "MJRTY", 1981). The leader is `lead` packets ahead of all others
 * together; who is far enough ahead becomes the link's favourite.
 */
#include "packet/path.h"
#include "packet/port.h"

#include <string.h>

#define FAVOUR 512           /* packets ahead of all others that make a favourite, */
#define UNSEAT (64 * FAVOUR) /* if there is none yet, else */

/** Whom most packets are from becomes the link's favourite. */
static rwk_noinline void favour(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct rwk_link_address *seen)
{
	const struct rwk_link_ops *ops = port->link[RWK_WAY_LOSSY]->ops;

	port->favourite = path;
	if (!ops->favour || memcmp(&path->to, seen, sizeof(*seen)))
		return;
	port->count.favourites++;
	ops->favour(port->link[RWK_WAY_LOSSY], &path->to);
}

void rwk_packet_vote(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct rwk_link_address *seen, bool eligible)
{
	uint32_t enough = port->favourite ? UNSEAT : FAVOUR;

	if (!port->lead)
		port->leader = path;
	if (path != port->leader) {
		port->lead--;
		return;
	}
	port->lead += port->lead < enough;
	if (rwk_unlikely(port->lead >= enough && path != port->favourite && eligible))
		favour(port, path, seen);
}

void rwk_packet_vote_ends(struct rwk_port *port, const struct rwk_packet_path *path)
{
	if (port->leader == path)
		port->lead = 0;
	if (port->favourite == path)
		port->favourite = NULL;
}
