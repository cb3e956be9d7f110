/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/internal.h"

#include "engine/job.h"

#include <sched.h>
#include <stdlib.h>

static const struct rwk_client engine_client = {
	.connected = rwk_peer_connected,
	.message = rwk_inbound_message,
	.begin = rwk_inbound_begin,
	.end = rwk_inbound_end,
	.failed = rwk_peer_failed,
};

static int open_port(struct rwk_engine *e)
{
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	static const uint8_t unset[16];
	struct rwk_port_attr attr = {0};
	int rc;

	rwk_job_describe(&attr);
	memcpy(attr.address.ip, memcmp(e->attr.ip, unset, 16) ? e->attr.ip : loopback, 16);
	attr.address.nonce_port = e->attr.port;
	e->transport = e->attr.transports ? e->attr.transports[0] : &rwk_shm_transport;
	rc = e->transport->open(&attr, &engine_client, e, &e->port);
	if (!rc)
		e->address = attr.address;
	return rc;
}

int rwk_engine_open(const struct rwk_engine_attr *attr, struct rwk_engine **out)
{
	struct rwk_engine *e;
	int rc = rwk_job_load();

	if (rc)
		return rc;
	e = aligned_alloc(RWK_CACHE_LINE, (sizeof(*e) + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1));
	if (!e)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	e->attr = *attr;
	e->complete = attr->complete;
	e->owner = attr->owner;
	e->rx_limit = attr->rx_limit ? attr->rx_limit : SIZE_MAX;
	e->multi_min = attr->multi_min;
	rwk_engine_set_queues(e, NULL, NULL, false);
	e->tx_free = RWK_TX_NONE;
	rwk_list_init(&e->failed);
	rwk_list_init(&e->claimed);
	rwk_pool_init(&e->rx_pool, sizeof(struct rwk_rx), 32, 0);
	rwk_pool_init(&e->tx_pool, sizeof(struct rwk_tx), 32, 0);
	rwk_pool_init(&e->unexpected_pool, sizeof(struct rwk_unexpected), 32, 0);
	rwk_pool_init(&e->block_pool, RWK_BLOCK, 32, 0);
	for (enum rwk_space s = 0; s < RWK_SPACES; s++) {
		rc = rwk_matcher_open(&e->matcher[s]);
		if (rc)
			goto close_matchers;
	}
	rc = open_port(e);
	if (rc)
		goto close_matchers;
	rc = rwk_peers_open(e);
	if (rc)
		goto close_port;
	*out = e;
	return 0;

close_port:
	e->transport->close(e->port);
close_matchers:
	for (enum rwk_space s = 0; s < RWK_SPACES; s++) {
		if (e->matcher[s])
			rwk_matcher_close(e->matcher[s]);
	}
	free(e);
	return rc;
}

/** A completion that nobody wants any more. */
static void ignore(void *owner, const struct rwk_completion *c)
{
	(void)owner;
	(void)c;
}

static int free_kept(struct rwk_arrived *a, void *arg)
{
	struct rwk_engine *e = arg;
	struct rwk_unexpected *u = rwk_container_of(a, struct rwk_unexpected, arrived);

	rwk_match_take(e->matcher[u->space], a);
	rwk_unexpected_free(u);
	return 0;
}

void rwk_engine_close(struct rwk_engine *e)
{
	struct rwk_list *l;

	e->complete = ignore;
	rwk_engine_set_queues(e, NULL, NULL, false);
	for (struct rwk_peer *p = e->all_peers; p; p = p->next)
		p->error = -ECANCELED;
	e->transport->close(e->port);
	for (enum rwk_space s = 0; s < RWK_SPACES; s++) {
		rwk_match_each_kept(e->matcher[s], free_kept, e);
		rwk_matcher_close(e->matcher[s]);
	}
	while ((l = rwk_list_pop(&e->claimed)))
		rwk_unexpected_free(rwk_container_of(l, struct rwk_unexpected, claimed));
	rwk_peers_close(e);
	free(e->tx_table);
	rwk_pool_close(&e->rx_pool);
	rwk_pool_close(&e->tx_pool);
	rwk_pool_close(&e->unexpected_pool);
	rwk_pool_close(&e->block_pool);
	free(e);
}

void rwk_engine_set_queues(
	struct rwk_engine *e, struct rwk_completions *sends, struct rwk_completions *receives, bool with_user)
{
	static struct rwk_completions none; /* takes nothing */

	e->sends = sends ? sends : &none;
	e->receives = receives ? receives : &none;
	e->with_user = with_user;
}

rwk_noinline void rwk_complete_send_call(struct rwk_engine *e, uint32_t flags, void *context, int status)
{
	const struct rwk_completion c = {
		.context = context,
		.flags = (flags & (RWK_F_PLAIN | RWK_F_TAGGED | ~(RWK_F_USER - 1u))) | RWK_F_SEND,
		.status = status,
	};

	e->complete(e->owner, &c);
}

const struct rwk_address *rwk_engine_address(const struct rwk_engine *e)
{
	return &e->address;
}

int rwk_engine_progress(struct rwk_engine *e)
{
	int n = e->transport->progress(e->port);

	if (rwk_unlikely(!rwk_list_empty(&e->failed)))
		rwk_peers_reap(e);
	return n;
}

int rwk_engine_arm(struct rwk_engine *e)
{
	return e->transport->arm(e->port);
}

int rwk_engine_wait_fd(struct rwk_engine *e)
{
	return e->transport->wait_fd(e->port);
}

void rwk_engine_set_multi_min(struct rwk_engine *e, size_t bytes)
{
	e->multi_min = bytes;
}

const struct rwk_engine_counters *rwk_engine_counters(const struct rwk_engine *e)
{
	return &e->counters;
}
