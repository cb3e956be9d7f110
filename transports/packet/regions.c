/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The regions that a port has exposed, of any number: each message that waits at its sender is one, and MPI may have
 * hundreds of thousands. Key tables have a fixed size, so there are several, each twice as large as the one before; the
 * first is enough for nearly all. A key is in one table at most.
 */
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/regions.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST   1024u /* regions of the first table, */
#define DOUBLED 6u    /* doubled so many times */

static int add_table(struct rwk_port *port)
{
	uint32_t entries = FIRST << (port->key_tables < DOUBLED ? port->key_tables : DOUBLED);
	struct rwk_keys *t;
	int rc;

	if (port->key_tables == RWK_KEY_TABLES)
		return -ENOSPC;
	t = aligned_alloc(RWK_CACHE_LINE, rwk_keys_size(entries));
	if (!t)
		return -ENOMEM;
	rc = rwk_keys_init(t, entries);
	if (rc) {
		free(t);
		return rc;
	}
	port->keys[port->key_tables++] = t;
	return 0;
}

/** Has another table that key already? */
static bool elsewhere(const struct rwk_port *port, uint32_t table, uint32_t pd, uint32_t key)
{
	for (uint32_t i = 0; i < port->key_tables; i++) {
		if (i != table && !rwk_keys_check(port->keys[i], pd, key, 0, 0, 0))
			return true;
	}
	return false;
}

int rwk_packet_region_add(
	struct rwk_packet_channel *ch, const struct iovec *iov, uint32_t count, unsigned reach, uint32_t *key)
{
	struct rwk_port *port = ch->port;
	int rc = -ENOSPC;

	for (uint32_t i = port->key_tables; i-- > 0 && rc == -ENOSPC;) {
		rc = rwk_keys_add(port->keys[i], ch->qpn, 0, iov, count, reach, key);
		while (!rc && elsewhere(port, i, ch->qpn, *key)) {
			rwk_keys_remove(port->keys[i], *key);
			rc = rwk_keys_add(port->keys[i], ch->qpn, 0, iov, count, reach, key);
		}
	}
	if (rc != -ENOSPC)
		return rc;
	rc = add_table(port);
	return rc ? rc : rwk_packet_region_add(ch, iov, count, reach, key);
}

void rwk_packet_region_remove(struct rwk_packet_channel *ch, uint32_t key)
{
	struct rwk_port *port = ch->port;

	for (uint32_t i = 0; i < port->key_tables; i++) {
		if (!rwk_keys_check(port->keys[i], ch->qpn, key, 0, 0, 0)) {
			rwk_keys_remove(port->keys[i], key);
			return;
		}
	}
}

void rwk_packet_regions_drop(struct rwk_packet_channel *ch)
{
	for (uint32_t i = 0; i < ch->port->key_tables; i++)
		rwk_keys_remove_all(ch->port->keys[i], ch->qpn);
}

int rwk_packet_region_check(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, size_t len, unsigned reach)
{
	int rc = -EACCES;

	for (uint32_t i = 0; i < ch->port->key_tables && rc; i++)
		rc = rwk_keys_check(ch->port->keys[i], ch->qpn, key, address, len, reach);
	return rc;
}

int rwk_packet_region_find(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, size_t len, unsigned reach,
	struct iovec *iov, int max)
{
	int n = -EACCES;

	for (uint32_t i = 0; i < ch->port->key_tables && n < 0; i++)
		n = rwk_keys_find(ch->port->keys[i], ch->qpn, key, address, len, reach, iov, max);
	return n;
}

void rwk_packet_regions_move(struct rwk_packet_channel *ch, uint32_t qpn)
{
	for (uint32_t i = 0; i < ch->port->key_tables; i++)
		rwk_keys_move(ch->port->keys[i], ch->qpn, qpn);
}

void rwk_packet_regions_free(struct rwk_port *port)
{
	for (uint32_t i = 0; i < port->key_tables; i++)
		free(port->keys[i]);
	port->key_tables = 0;
}
