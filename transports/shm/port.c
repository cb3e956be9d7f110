/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port: opening and closing, channels and their end, and progress, which looks at everything in the order of how
 * often it changes:
 *
 *   each call           the rings of the hot channels, bells if any channel is cold, what is queued, transfers
 *   every 64th call     the clock; then by time
 *   each tick of the    events: datagrams, deaths; retries. More often while we connect, and for a second after each
 *   coarse clock        handshake, when more are likely
 *   each 10 ms          which channels are hot, if there are too many
 *   each 100 ms         a few peers: whether they live, and have their name still; those that said good-bye without
 *                       room in the ring; all cold rings
 *
 * Invariants: a channel with a doom is in `failing` and fails at the end of progress, never in the middle of
 * something else. A channel in state OPEN is hot or counted as cold. by_bell holds every channel that is not freed.
 */
#include "shm/deliver.h"
#include "shm/note.h"
#include "shm/transfer.h"
#include "shm/transfer_claim.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/copy.h"
#include "base/demote.h"
#include "base/log.h"
#include "base/param.h"
#include "base/process.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DELIVER_BUDGET = 64, LOOKS = 3, LOOKED_FOR_LONG = 64, BALANCE_GAP = 10, EVIDENCE_GAP = 100 };
enum {
	LONG_REST = 250, /* ticks: more than a rest of the processor's takes */
	AT_ONCE = 512,   /* bytes that it fetches at once: eight lines, with that of the ring and some to spare */
};

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A word that is 1 here and 0 in every child that is forked: a child must not touch what is not mapped there. */
static const uint32_t *make_here(void)
{
	uint32_t *here = mmap(NULL, RWK_SHM_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (here == MAP_FAILED)
		return NULL;
	if (madvise(here, RWK_SHM_PAGE, MADV_WIPEONFORK)) {
		munmap(here, RWK_SHM_PAGE);
		return NULL;
	}
	*here = 1;
	return here;
}

/* Of a client that does not tell: nothing is awaited, so that nothing is left. */
static const size_t nothing = 0;
static const bool never = false;

static int shm_open_port(
	struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **out)
{
	struct rwk_port *port = calloc(1, sizeof(*port));
	int rc = -ENOMEM;

	if (!port)
		return -ENOMEM;
	port->here = make_here();
	if (!port->here)
		goto err_free;
	port->client = client;
	port->cookie = cookie;
	port->oversubscribed = attr->oversubscribed;
	port->address = attr->address;
	for (unsigned kind = 0; kind < RWK_AWAITED_KINDS; kind++)
		port->awaited[kind] = attr->awaited[kind] ? attr->awaited[kind] : &nothing;
	port->looks = attr->looks ? attr->looks : &never;
	port->waits = attr->waits && !attr->oversubscribed ? attr->waits : &never;
	port->have_barrier = rwk_barrier_join();
	port->string_copy = rwk_copy_has_string();
	port->demotes = rwk_demote_possible();
	port->direct_least = rwk_shm_direct_least();
	port->pid = getpid();
	port->start = rwk_process_start(port->pid);
	rwk_list_init(&port->busy);
	rwk_list_init(&port->failing);
	rwk_list_init(&port->connecting);
	rc = rwk_shm_attach_open(port, rwk_address_port(&attr->address));
	if (rc)
		goto err_here;
	port->now = clock_ms();
	port->talk_until = port->now + RWK_SHM_TALK;
	attr->address = port->address;
	*out = port;
	return 0;

err_here:
	munmap((void *)port->here, RWK_SHM_PAGE);
err_free:
	free(port);
	return rc;
}

static uint32_t free_bell(struct rwk_port *port)
{
	struct rwk_shm_channel **more;
	uint32_t i;

	for (i = 0; i < port->bells; i++) {
		if (!port->by_bell[i])
			return i;
	}
	if (i == RWK_SHM_BELLS)
		return RWK_SHM_NO_BELL;
	if (i == port->bell_room) {
		more = realloc(port->by_bell, (i + 16) * 2 * sizeof(*more));
		if (!more)
			return RWK_SHM_NO_BELL;
		port->by_bell = more;
		port->bell_room = (i + 16) * 2;
	}
	port->by_bell[i] = NULL;
	return port->bells++;
}

struct rwk_shm_channel *rwk_shm_channel_new(struct rwk_port *port, const struct rwk_address *to, void *peer)
{
	struct rwk_shm_channel *ch = aligned_alloc(RWK_CACHE_LINE, sizeof(*ch));
	uint32_t bell = ch ? free_bell(port) : RWK_SHM_NO_BELL;

	if (bell == RWK_SHM_NO_BELL) {
		free(ch);
		rwk_info("shared memory: no room for a channel to rank %u", rwk_address_rank(to));
		return NULL;
	}
	memset(ch, 0, sizeof(*ch));
	ch->base.transport = &rwk_shm_transport;
	ch->base.port = port;
	ch->base.peer = peer;
	ch->base.send_arrives = true;
	ch->base.send_max = rwk_params.eager_max < RWK_SHM_MESSAGE_MAX ? rwk_params.eager_max : RWK_SHM_MESSAGE_MAX;
	ch->to = *to;
	ch->partial = to->flags_rank & RWK_ADDR_PARTIAL;
	ch->fill.string = port->string_copy;
	ch->tx.demotes = port->demotes;
	ch->tx.here = port->here;
	ch->tx.shut = 1;
	ch->pidfd = ch->pair_fd = -1;
	ch->bell = bell;
	if (!++port->contacts)
		port->contacts = 1;
	ch->contact = port->contacts;
	rwk_list_init(&ch->controls);
	rwk_list_init(&ch->ops);
	rwk_list_init(&ch->busy);
	rwk_list_init(&ch->failing);
	rwk_list_init(&ch->connecting);
	rwk_list_append(&port->connecting, &ch->connecting);
	port->talk_until = clock_ms() + RWK_SHM_TALK;
	port->by_bell[bell] = ch;
	port->count.channels++;
	return ch;
}

void rwk_shm_channel_stop(struct rwk_shm_channel *ch, int status)
{
	struct rwk_port *port = ch->base.port;
	struct rwk_place *place = ch->assembly.place;

	if (ch->state == RWK_SHM_FAILED)
		return;
	if (ch->state == RWK_SHM_OPEN)
		rwk_shm_delist(ch);
	ch->state = RWK_SHM_FAILED;
	ch->base.error = status;
	rwk_shm_gate(ch);
	rwk_list_remove(&ch->failing);
	rwk_shm_transfer_stop(ch, status);
	rwk_shm_queue_drop(ch, status);
	ch->assembly.place = NULL;
	if (place)
		port->client->end(port->cookie, &ch->base, place, status);
	rwk_shm_unwatch(ch);
	rwk_shm_attach_drop(ch);
}

void rwk_shm_channel_free(struct rwk_shm_channel *ch, int status)
{
	struct rwk_port *port = ch->base.port;

	rwk_shm_channel_stop(ch, status);
	port->count.early += ch->answer.count[false];
	port->count.in_time += ch->answer.count[true];
	port->by_bell[ch->bell] = NULL;
	free(ch);
}

void rwk_shm_doom(struct rwk_shm_channel *ch, int err)
{
	if (ch->doom || ch->state == RWK_SHM_FAILED)
		return;
	ch->doom = err;
	ch->tx.shut = 1;
	rwk_list_append(&ch->base.port->failing, &ch->failing);
}

void rwk_shm_protocol_error(struct rwk_shm_channel *ch, const char *what)
{
	if (ch->doom)
		return;
	rwk_warn("shared memory: process %d, rank %u, broke the protocol: %s; the connection is given up", (int)ch->pid,
		rwk_address_rank(&ch->to), what);
	ch->base.port->count.violations++;
	rwk_shm_doom(ch, -EPROTO);
}

/* Says good-bye: in the stream if there is room, else by a word that the peer looks at when it is rung for. */
static void say_goodbye(struct rwk_shm_channel *ch)
{
	bool said = false;

	if (ch->state == RWK_SHM_OPEN && !ch->doom && rwk_list_empty(&ch->controls))
		said = !rwk_shm_control(ch, RWK_SHM_BYE, "", 0) && rwk_list_empty(&ch->controls);
	if (!ch->pair)
		return;
	rwk_publish32(&rwk_shm_my_side(ch)->gone, 1);
	if (!said)
		rwk_shm_tell_gone(ch);
}

static void shm_disconnect(struct rwk_channel *c)
{
	struct rwk_shm_channel *ch = rwk_shm_channel(c);

	if (*ch->tx.here)
		say_goodbye(ch);
	rwk_shm_channel_free(ch, -ECANCELED);
}

static void summary(struct rwk_port *port)
{
	unsigned rank = rwk_address_rank(&port->address);
	const struct rwk_shm_port_counters *n = &port->count;

	if (n->early + n->in_time)
		fprintf(stderr,
			"ropewalk: rank %u: answers on this node not looked for before they were likely: %" PRIu64
			", of them looked for too early %" PRIu64 "\n",
			rank, n->early + n->in_time, n->early);
	rwk_shm_transfer_summary(port, rank);
}

static void shm_close(struct rwk_port *port)
{
	for (uint32_t i = 0; i < port->bells; i++) {
		if (port->by_bell[i])
			shm_disconnect(&port->by_bell[i]->base);
	}
	if (rwk_params.stats)
		summary(port);
	rwk_shm_transfer_port_stop(port);
	rwk_shm_attach_close(port);
	munmap((void *)port->here, RWK_SHM_PAGE);
	free(port->by_bell);
	free(port);
}

static bool same_node(const struct rwk_port *port, const struct rwk_address *to)
{
	static const uint8_t loopback[13] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};

	if (to->flags_rank & RWK_ADDR_PARTIAL)
		return !memcmp(to->ip, port->address.ip, sizeof(to->ip)) || !memcmp(to->ip, loopback, sizeof(loopback));
	return to->node == port->address.node;
}

static int shm_connect(struct rwk_port *port, const struct rwk_address *to, void *peer, struct rwk_channel **out)
{
	const char *why = NULL;
	struct rwk_shm_channel *ch;

	if (!*port->here)
		return -ECHILD;
	if (!same_node(port, to))
		why = "it is on another node";
	else if (!(to->flags_rank & RWK_ADDR_PARTIAL) && to->job != port->address.job)
		why = "it belongs to another job";
	else if (rwk_address_port(to) == rwk_address_port(&port->address))
		why = "it is this endpoint itself, or has this one's port";
	else if (!rwk_address_port(to))
		why = "its address has no port";
	if (why) {
		rwk_info("shared memory cannot reach rank %u, port %u: %s", rwk_address_rank(to), rwk_address_port(to),
			why);
		return -EHOSTUNREACH;
	}
	ch = rwk_shm_channel_new(port, to, peer);
	if (!ch) /* memory may come again; bells do not */
		return port->bells == RWK_SHM_BELLS ? -ENOSPC : -ENOMEM;
	ch->retry_at = port->now;
	rwk_shm_attach_retry(port);
	*out = &ch->base;
	return 0;
}

static bool shm_finds(const struct rwk_port *port, const struct rwk_address *to)
{
	return !rwk_shm_note_probe(rwk_address_port(&port->address), to->nonce_port);
}

/*
 * Hands over all that a dead peer has sent, also into a pair that it has taken without our having heard so: its answer
 * may have found our socket's queue full; but not if another may have taken it. A control record ends a delivery, so
 * all has come when the stream stands still.
 */
static void deliver_last_words(struct rwk_shm_channel *ch)
{
	uint32_t before = ch->rx.stamp - RWK_SHM_STAMP_STEP;

	if (ch->state == RWK_SHM_OFFERED && ch->astray)
		return;
	if (ch->state == RWK_SHM_OFFERED) {
		ch->state = RWK_SHM_OPEN;
		rwk_shm_enlist(ch);
	}
	for (uint32_t left = 2 * ch->rx.lines_max; left && ch->rx.stamp != before; left--) {
		before = ch->rx.stamp;
		rwk_shm_deliver(ch, DELIVER_BUDGET);
	}
}

/*
 * A channel that is doomed ends. What a dead peer had sent is delivered first. The peer is told: it may be alive, and
 * would wait for ever for one who does not look any more.
 */
static void fail(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;
	int err = ch->doom;

	if (err == -ECONNRESET && ch->pair)
		deliver_last_words(ch);
	say_goodbye(ch);
	rwk_shm_channel_stop(ch, err);
	port->client->failed(port->cookie, &ch->base, err);
}

static int fail_doomed(struct rwk_port *port)
{
	int n = 0;

	while (!rwk_list_empty(&port->failing)) {
		fail(rwk_container_of(port->failing.next, struct rwk_shm_channel, failing));
		n++;
	}
	return n;
}

static int send_all_queued(struct rwk_port *port)
{
	int n = 0;

	for (struct rwk_list *l = port->busy.next, *next; l != &port->busy; l = next) {
		next = l->next;
		n += rwk_shm_send_queued(rwk_container_of(l, struct rwk_shm_channel, busy));
	}
	return n;
}

static int sweep(struct rwk_port *port)
{
	int n = 0;

	for (uint32_t i = 0; i < port->bells; i++) {
		struct rwk_shm_channel *ch = port->by_bell[i];

		if (ch && ch->state == RWK_SHM_OPEN && !ch->hot && rwk_shm_rx_ready(&ch->rx))
			n += rwk_shm_deliver(ch, DELIVER_BUDGET);
	}
	return n;
}

/* What is done by time. */
static rwk_noinline int housekeeping(struct rwk_port *port)
{
	int before = rwk_cancel_hold_off(), n = 0;
	uint64_t now = clock_ms();

	if (now != port->now || !rwk_list_empty(&port->connecting) ||
		(now < port->talk_until && port->polls % 4096 == 0)) {
		port->now = now;
		n += rwk_shm_events(port);
		if (!rwk_list_empty(&port->connecting))
			rwk_shm_attach_retry(port);
	}
	if (rwk_unlikely(port->wakes_owed))
		rwk_shm_wake_owed(port);
	if (port->cold_count && now >= port->balance_at) {
		port->balance_at = now + BALANCE_GAP;
		n += rwk_shm_balance(port);
	}
	if (now >= port->evidence_at) {
		port->evidence_at = now + EVIDENCE_GAP;
		rwk_shm_look_for_deaths(port);
		if (port->cold_count)
			n += sweep(port);
	}
	rwk_cancel_as_before(before);
	return n;
}

static rwk_noinline void idle(struct rwk_port *port)
{
	if (++port->idle_polls < rwk_params.spin || !port->oversubscribed)
		return;
	port->idle_polls = 0;
	port->count.yields++;
	sched_yield();
}

static rwk_noinline int wake_up(struct rwk_port *port)
{
	int before = rwk_cancel_hold_off(), n;

	rwk_shm_disarm(port);
	port->now = clock_ms();
	port->polls |= 63; /* a sleeper polls seldom: what goes by time is looked at in this very progress */
	n = rwk_shm_events(port);
	rwk_cancel_as_before(before);
	return n;
}

/* A poll that copies may take long: what goes by time, a death above all, is looked at before the next one. */
static int transfers(struct rwk_port *port)
{
	int n = rwk_shm_transfer_progress(port);

	if (n)
		port->polls |= 63;
	return n;
}

/*
 * A program that gives its core away after each empty poll has as many turns to wait for, between two looks at the
 * socket, as there are polls; each step of a handshake takes one look. So while a handshake is likely each empty poll
 * is a look: for a second, as the peer may be at work elsewhere.
 */
static inline bool awaits_handshake(const struct rwk_port *port)
{
	return (port->oversubscribed || !rwk_list_empty(&port->connecting)) && port->now < port->talk_until;
}

/*
 * Asks for all that is likely to be there, to come at the same time: the line, further lines, the slab. Not of a slab
 * of which more is to be read than a processor fetches at once; that would only hold up the line.
 */
static inline void expect_answer(const struct rwk_shm_channel *ch)
{
	const unsigned char *slab = rwk_shm_slab(&ch->slabs, ch->slabs.last);

	rwk_prefetch(ch->rx.next);
	rwk_shm_rx_expect(&ch->rx);
	for (uint32_t at = 0; ch->rx.expect_back <= AT_ONCE && at < ch->rx.expect_back; at += RWK_CACHE_LINE)
		rwk_prefetch(slab + at);
}

/* An answer is awaited. Has it come? Not looked for while it is too early. */
static rwk_noinline bool answered(struct rwk_shm_channel *ch)
{
	bool there;

	if (rwk_shm_answer_rest(&ch->answer, rwk_clock_ticks()))
		return false;
	expect_answer(ch);
	there = rwk_shm_rx_ready(&ch->rx);
	if (rwk_shm_answer_look(&ch->answer, there))
		rwk_prefetch_write(ch->tx.next);
	return there;
}

static inline int poll_hot(struct rwk_port *port)
{
	int n = 0;

	for (uint32_t i = 0; i < port->hot_count; i++) {
		struct rwk_shm_channel *ch = port->hot[i];

		if (rwk_unlikely(ch->answer.awaited) ? answered(ch) : rwk_shm_rx_ready(&ch->rx))
			n += rwk_shm_deliver_inline(ch, DELIVER_BUDGET, false);
		else if (rwk_likely(!ch->answer.awaited))
			rwk_shm_rx_expect(&ch->rx);
	}
	return n;
}

/* Rests before the next look: where there is one channel and its answer is awaited, for just as long as it takes. */
static inline void rest(const struct rwk_port *port)
{
	const struct rwk_shm_answer *a = &port->hot[0]->answer;
	uint32_t left;

	if (port->hot_count > 1 || !a->awaited) {
		rwk_cpu_relax();
		return;
	}
	while ((left = rwk_shm_answer_rest(a, rwk_clock_ticks()))) {
		if (left > LONG_REST)
			rwk_cpu_relax();
	}
}

/*
 * Nothing has come, and the client waits: looks again, with a rest before each look. The processor may be half of a
 * core, whose other half is just writing what is awaited here; and a look is sooner back than a caller who has to ask
 * again. Not where ranks share cores: who is waited for may wait for this one. One look is enough where nothing has come
 * for long: what the client waits for may come by another port, and then this one is in the way.
 */
static rwk_noinline int look_again(struct rwk_port *port)
{
	unsigned looks = port->idle_polls < LOOKED_FOR_LONG ? LOOKS : 1;
	int n = 0;

	for (unsigned i = 0; i < looks && !n; i++) {
		rest(port);
		n = poll_hot(port);
	}
	return n;
}

static int shm_progress(struct rwk_port *port)
{
	int n = 0;

	if (rwk_unlikely(!*port->here))
		return 0;
	if (rwk_unlikely(port->armed))
		n += wake_up(port);
	n += poll_hot(port);
	if (!n && *port->waits && port->hot_count && !rwk_shm_transfer_busy(port->transfer))
		n += look_again(port);
	if (rwk_unlikely(port->cold_count || port->bells_rung)) {
		port->bells_rung = false;
		n += rwk_shm_poll_bells(port);
	}
	if (rwk_unlikely(!rwk_list_empty(&port->busy)))
		n += send_all_queued(port);
	if (rwk_unlikely(rwk_shm_transfer_busy(port->transfer)))
		n += transfers(port);
	if (rwk_unlikely((++port->polls & 63) == 0 || (!n && awaits_handshake(port))))
		n += housekeeping(port);
	if (rwk_unlikely(!rwk_list_empty(&port->failing)))
		n += fail_doomed(port);
	if (n)
		port->idle_polls = 0;
	else
		idle(port);
	return n;
}

static int shm_wait_fd(struct rwk_port *port)
{
	return port->epoll;
}

static int shm_expose(
	struct rwk_channel *c, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key)
{
	if (!*rwk_shm_channel(c)->tx.here)
		return -ECHILD;
	return c->error ? c->error : rwk_shm_expose(rwk_shm_channel(c), iov, count, access, key);
}

static void shm_conceal(struct rwk_channel *c, const struct rwk_rkey *key)
{
	rwk_shm_conceal(rwk_shm_channel(c), key);
}

void **rwk_shm_transfer_state(struct rwk_shm_channel *ch)
{
	return &ch->transfer;
}

bool rwk_shm_here(const struct rwk_shm_channel *ch)
{
	return *ch->tx.here;
}

void **rwk_shm_transfer_port_state(struct rwk_port *port)
{
	return &port->transfer;
}

void *rwk_shm_transfer_area(struct rwk_shm_channel *ch, bool mine)
{
	if (rwk_unlikely(!ch->pair))
		return NULL;
	return (unsigned char *)ch->pair + rwk_shm_transfer_at(ch->ring_lines, mine ? ch->side : !ch->side);
}

void rwk_shm_channel_counters(const struct rwk_channel *c, struct rwk_shm_channel_counters *out)
{
	const struct rwk_shm_channel *ch = (const struct rwk_shm_channel *)c;

	*out = (struct rwk_shm_channel_counters){
		.lines_sent = ch->tx.stamp / RWK_SHM_STAMP_STEP,
		.lines_received = ch->rx.stamp / RWK_SHM_STAMP_STEP,
		.slabs_minted = ch->slabs.minted,
		.growths = ch->tx.growths,
		.ring_lines = ch->tx.lines,
	};
}

const struct rwk_shm_port_counters *rwk_shm_port_counters(const struct rwk_port *port)
{
	return &port->count;
}

const struct rwk_transport rwk_shm_transport = {
	.name = "UC/shm",
	.open = shm_open_port,
	.close = shm_close,
	.connect = shm_connect,
	.finds = shm_finds,
	.disconnect = shm_disconnect,
	.progress = shm_progress,
	.arm = rwk_shm_arm,
	.wait_fd = shm_wait_fd,
	.send = rwk_shm_send,
	.post = rwk_shm_post,
	.access = rwk_shm_access,
	.access_max = {RWK_SHM_CHUNK_MOST, RWK_SHM_BOTH_LEAST},
	.withdraw = rwk_shm_withdraw,
	.expose = shm_expose,
	.conceal = shm_conceal,
};
