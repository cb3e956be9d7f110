/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/rma_state.h"

#include "base/cancel.h"
#include "base/log.h"
#include "base/this_process.h"
#include "engine/job.h"

#include <stdlib.h>

#define NETWORK_QUIET  256   /* empty looks at the network, beyond which */
#define NETWORK_SELDOM 1000  /* ns pass between two, */
#define NETWORK_REST   50000 /* or these, as long as no peer has come by it, */
#define NETWORK_UNUSED 8     /* and only each so many calls look at the clock then */

static const struct rwk_client engine_client = {
	.connected = rwk_peer_connected,
	.message = rwk_inbound_message,
	.begin = rwk_inbound_begin,
	.end = rwk_inbound_end,
	.by_stream = rwk_peer_by_stream,
	.unshared = rwk_peer_unshared,
	.moment = rwk_peers_moment,
	.merge = rwk_peers_merge,
	.failed = rwk_peer_failed,
};

#define PORT_TRIES  32
#define SPARES_MOST ((size_t)1 << 20) /* bytes */

const uint8_t rwk_engine_loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
static const uint8_t unset_ip[16];

/** By which the processes of this node are reached. Nothing is warned of if another number will be tried. */
static int open_near(struct rwk_engine *e, struct rwk_port_attr *attr)
{
	int rc = e->transport->open(attr, &e->client, e, &e->port);

	if (rc == -EADDRINUSE && e->attr.port)
		rwk_warn("shared memory: another endpoint of this host has port %u", e->attr.port);
	return rc;
}

/**
 * A network port and one on shared memory, of the same number and nonce: an address names both. The network has the
 * number first, since there more are taken; if shared memory does not have it too, another is tried.
 */
static int open_both(struct rwk_engine *e, struct rwk_port_attr *attr)
{
	uint64_t wanted = attr->address.nonce_port;
	int rc = -EADDRINUSE;

	for (int i = 0; i < PORT_TRIES && rc == -EADDRINUSE; i++) {
		attr->address.nonce_port = wanted;
		rc = rwk_network_transport.open(attr, &e->client, e, &e->network_port);
		if (rc)
			return rc;
		rc = open_near(e, attr);
		if (rc)
			rwk_network_transport.close(e->network_port);
		if (wanted)
			break;
	}
	if (rc)
		e->network_port = NULL;
	else
		e->network = &rwk_network_transport;
	return rc;
}

/** The network's stays, for what is still on its way. */
static void leave_ports(struct rwk_engine *e)
{
	int before = rwk_cancel_hold_off();

	if (e->network_port)
		e->network->leave(e->network_port);
	e->transport->close(e->port);
	rwk_cancel_as_before(before);
}

static void close_ports(struct rwk_engine *e)
{
	leave_ports(e);
	if (e->network_port)
		e->network->close(e->network_port);
}

static int open_ports(struct rwk_engine *e)
{
	struct rwk_port_attr attr = {0};
	int rc;

	rwk_job_describe(&attr);
	for (enum rwk_space s = 0; s < RWK_SPACES; s++)
		attr.awaited[s] = rwk_match_posted_counter(e->matcher[s]);
	attr.looks = &e->looks;
	attr.waits = &e->waits;
	memcpy(attr.address.ip, e->attr.ip, 16);
	attr.address.nonce_port = e->attr.port;
	e->transport = e->attr.transports ? e->attr.transports[0] : &rwk_shm_transport;
	rc = !e->attr.transports && rwk_job_wants_network() ? open_both(e, &attr) : -ENETDOWN;
	if (rc == -ENETDOWN) {
		if (!memcmp(attr.address.ip, unset_ip, 16))
			memcpy(attr.address.ip, rwk_engine_loopback, 16);
		rc = open_near(e, &attr);
	}
	if (rc)
		return rc;
	e->address = attr.address;
	return 0;
}

/** The engine's memory, all zeros, of which the status page is the end. */
static struct rwk_engine *engine_new(void)
{
	int fd;
	struct rwk_status *s = rwk_status_make(offsetof(struct rwk_engine, status), &fd);
	struct rwk_engine *e;

	if (!s)
		return NULL;
	e = rwk_container_of(s, struct rwk_engine, status);
	e->status_fd = fd;
	e->process = rwk_this_process();
	return e;
}

static void engine_free(struct rwk_engine *e)
{
	if (e->process == rwk_this_process()) /* a child of fork has its parent's page in common with it */
		e->status.closed = 1;
	rwk_status_free(&e->status, offsetof(struct rwk_engine, status), e->status_fd);
}

static int open_inbox(struct rwk_engine *e)
{
	const struct rwk_inbox_attr own = {
		.complete = e->complete,
		.owner = e->owner,
		.rx_limit = e->attr.rx_limit,
		.multi_min = e->attr.multi_min,
	};
	int rc = e->attr.inbox ? 0 : rwk_inbox_begin(&e->own_inbox, &own);

	if (rc)
		return rc;
	e->inbox = e->attr.inbox ? e->attr.inbox : &e->own_inbox;
	memcpy(e->matcher, e->inbox->matcher, sizeof(e->matcher));
	e->rooms[0] = e->inbox;
	return rwk_rooms_open(e);
}

static int engine_open(const struct rwk_engine_attr *attr, struct rwk_engine **out)
{
	struct rwk_engine *e;
	int rc = rwk_job_load();

	if (rc)
		return rc;
	e = engine_new();
	if (!e)
		return -ENOMEM;
	e->attr = *attr;
	e->client = engine_client;
	e->complete = attr->complete;
	e->owner = attr->owner;
	rwk_engine_set_queues(e, NULL, NULL, false);
	e->tx_free = RWK_TX_NONE;
	rwk_list_init(&e->failed);
	rwk_list_init(&e->to_offer);
	rwk_list_init(&e->held);
	rwk_list_init(&e->owing);
	e->wants_reached = attr->reached ? RWK_REGION_READ | RWK_REGION_WRITE : 0;
	e->rma_limit = attr->rma_limit ? attr->rma_limit : RWK_RMA_LIMIT;
	rwk_pool_init(&e->rma_requests, sizeof(struct rwk_rma_request), 32, 0);
	rwk_pool_init(&e->rma_pieces, sizeof(struct rwk_rma_piece), 32, 0);
	rwk_pool_init(&e->tx_pool, sizeof(struct rwk_tx), 32, 0);
	rwk_pool_init(&e->unexpected_pool, sizeof(struct rwk_unexpected), 32, 0);
	rwk_pool_init(&e->block_pool, RWK_BLOCK, 32, 0);
	rwk_spares_init(&e->spares, SPARES_MOST);
	rc = open_inbox(e);
	if (!rc)
		rc = open_ports(e);
	if (rc)
		goto leave_inbox;
	rc = rwk_peers_open(e);
	if (rc)
		goto close_ports;
	rwk_job_show(&e->status, &e->address);
	*out = e;
	return 0;

close_ports:
	close_ports(e);
leave_inbox:
	rwk_inbox_leave(e);
	engine_free(e);
	return rc;
}

int rwk_engine_open(const struct rwk_engine_attr *attr, struct rwk_engine **out)
{
	int before = rwk_cancel_hold_off(), rc = engine_open(attr, out);

	rwk_cancel_as_before(before);
	return rc;
}

/**
 * A completion that nobody wants any more, unless it tells of a buffer that was meant for others' messages too, or that
 * is somebody else's.
 */
static void ignore(void *owner, const struct rwk_completion *c)
{
	struct rwk_engine *e = owner;

	if ((rwk_inbox_is_shared(e) || e->foreign) && c->flags & RWK_F_RECV)
		e->attr.complete(e->attr.owner, c);
}

void rwk_engine_leave(struct rwk_engine *e)
{
	e->left = true;
	e->complete = ignore;
	e->owner = e;
	e->own_inbox.complete = ignore;
	e->own_inbox.owner = e;
	rwk_rooms_complete(e, ignore);
	rwk_engine_set_queues(e, NULL, NULL, false);
	/* Those whom `ignore` tells may begin what they like: nothing goes out any more. */
	for (struct rwk_peer *p = e->all_peers; p; p = p->next) {
		p->error = -ECANCELED;
		p->eager_limit = 0;
	}
	leave_ports(e);
	rwk_foreign_leave(e);
	rwk_inbox_leave(e);
	rwk_peers_close(e);
	free(e->tx_table);
	rwk_pool_close(&e->tx_pool);
	rwk_pool_close(&e->unexpected_pool);
	rwk_pool_close(&e->block_pool);
	rwk_spares_close(&e->spares);
	rwk_pool_close(&e->rma_requests);
	rwk_pool_close(&e->rma_pieces);
}

bool rwk_engine_linger(struct rwk_engine *e)
{
	int before = rwk_cancel_hold_off();
	bool lingers = e->network_port && e->network->linger(e->network_port);

	rwk_cancel_as_before(before);
	return lingers;
}

void rwk_engine_close(struct rwk_engine *e)
{
	int before = rwk_cancel_hold_off();

	if (!e->left)
		rwk_engine_leave(e);
	if (e->network_port)
		e->network->close(e->network_port);
	engine_free(e);
	rwk_cancel_as_before(before);
}

void rwk_engine_set_queues(
	struct rwk_engine *e, struct rwk_completions *sends, struct rwk_completions *receives, bool with_user)
{
	static struct rwk_completions none; /* takes nothing */

	e->sends = sends ? sends : &none;
	e->receives = receives ? receives : &none;
	e->with_user = with_user;
}

rwk_outline void rwk_complete_send_call(struct rwk_engine *e, uint32_t flags, void *context, int status)
{
	const struct rwk_completion c = {
		.context = context,
		.flags = (flags & (RWK_F_PLAIN | RWK_F_TAGGED | RWK_F_ROOM | ~(RWK_F_USER - 1u))) | RWK_F_SEND,
		.status = status,
	};

	e->complete(e->owner, &c);
}

const struct rwk_address *rwk_engine_address(const struct rwk_engine *e)
{
	return &e->address;
}

/* By the clock and not by calls: who gives the core away between two may be away for milliseconds. */
static rwk_noinline bool is_rested(struct rwk_engine *e, uint64_t rest)
{
	uint64_t now = rwk_clock_now();

	if (now - e->network_looked < rest)
		return false;
	e->network_looked = now;
	return true;
}

/** Is it time to look at a network by which nothing has come for long? */
static bool looks_again(struct rwk_engine *e)
{
	if (rwk_likely(e->network_used))
		return is_rested(e, NETWORK_SELDOM);
	return ++e->network_quiet % NETWORK_UNUSED == 0 && is_rested(e, NETWORK_REST);
}

/**
 * An empty look at the network is a system call, ten times as dear as one at shared memory. Where nothing comes by the
 * network for long, it is asked less often. And after a look that brought something the next is left out: who reads a
 * queue reads on until it is empty, and has better things to do than to wait for that.
 */
static int network_progress(struct rwk_engine *e)
{
	int n, before;

	if (e->network_fresh) {
		e->network_fresh = false;
		return 0;
	}
	if (e->network_quiet >= NETWORK_QUIET && !looks_again(e))
		return 0;
	before = rwk_cancel_hold_off();
	n = e->network->progress(e->network_port);
	rwk_cancel_as_before(before);
	e->network_fresh = n;
	e->network_quiet = n ? 0 : e->network_quiet + (e->network_quiet < NETWORK_QUIET);
	return n;
}

static rwk_noinline void do_what_is_due(struct rwk_engine *e)
{
	e->due = false;
	rwk_rma_tell(e);
	if (!rwk_list_empty(&e->failed))
		rwk_peers_reap(e);
	rwk_foreign_self(e);
	if (e->again) {
		e->again = false;
		e->attr.again(e->owner);
	}
}

void rwk_engine_call_again(struct rwk_engine *e)
{
	e->again = true;
	e->due = true;
}

int rwk_engine_poll(struct rwk_engine *e, bool waits)
{
	int n;

	e->waits = waits;
	e->sent_before = e->status.counters.sent_eager;
	n = e->transport->progress(e->port);
	if (rwk_unlikely(e->network != NULL))
		n += network_progress(e);
	if (rwk_unlikely(e->due))
		do_what_is_due(e);
	return n;
}

int rwk_engine_progress(struct rwk_engine *e)
{
	return rwk_engine_poll(e, false);
}

void rwk_engine_look(struct rwk_engine *e)
{
	e->looks = true;
	rwk_engine_poll(e, false);
	e->looks = false;
}

int rwk_engine_arm(struct rwk_engine *e)
{
	int rc, before;

	if (!rwk_list_empty(&e->to_offer) || !rwk_list_empty(&e->failed))
		return -EAGAIN;
	before = rwk_cancel_hold_off();
	rc = e->network ? e->network->arm(e->network_port) : 0;
	e->network_quiet = 0;
	e->network_fresh = false;
	if (!rc)
		rc = e->transport->arm(e->port);
	rwk_cancel_as_before(before);
	return rc;
}

int rwk_engine_wait_fd(struct rwk_engine *e, int i)
{
	if (!i)
		return e->transport->wait_fd(e->port);
	return i == 1 && e->network ? e->network->wait_fd(e->network_port) : -1;
}

struct rwk_inbox *rwk_engine_room(struct rwk_engine *e, unsigned room)
{
	return e->rooms[room];
}

struct rwk_inbox *rwk_engine_inbox(struct rwk_engine *e)
{
	return e->inbox;
}

const struct rwk_engine_counters *rwk_engine_counters(const struct rwk_engine *e)
{
	return &e->status.counters;
}
