/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bells and sleeping: how a receiver that does not poll a ring learns that something is in it.
 *
 *   hot    up to RWK_SHM_HOT_MAX channels of a port are polled; their `attention` is 0, so a sender publishes and is
 *          done
 *   cold   the others have BELL set: the sender publishes, sets the channel's bit in the inbox, and looks whether the
 *   port sleeps asleep the port sets `asleep` and makes every hot channel cold for the time being; then it looks at
 *   everything once more
 *
 * No wake-up is lost. The sender writes its line, then reads `attention`; the receiver writes `attention`, then reads
 * the lines. If each has a full barrier in between, at least one sees what the other wrote. The receiver, who does
 * this rarely, pays for both with rwk_barrier_everywhere; where that is denied (or the sender could not join) FENCE
 * stays set in `attention` and the sender has a barrier of its own. The second pair of words is bell and `asleep`:
 * there the sender's barrier is its atomic OR, or stands behind it where an atomic operation is none, and the
 * receiver's is the same as before. test/models/wake.pml is this protocol, but for datagrams that cannot be sent.
 *
 * Who changes `asleep` from 1 to 0 sends the one datagram. If the socket's queue is full it is readable anyway. If it
 * cannot be sent for another reason `asleep` becomes 1 again, and he tries later, as does whoever rings next.
 */
#include "shm/channel.h"
#include "shm/transfer.h"

#include "base/log.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Milliseconds that a sleeper sleeps at most while there is something that nobody will wake it for. */
enum { NAP_TRANSFER = 1, NAP_MEMORY = 10, NAP_CONNECT = 20, NAP_OWED = 20, NAP_EVIDENCE = 250, NAP_NAMES = 1000 };

static void owe_wake(struct rwk_shm_channel *ch, bool owed)
{
	struct rwk_port *port = ch->base.port;

	port->wakes_owed = port->wakes_owed - ch->owes_wake + owed;
	ch->owes_wake = owed;
}

/* After a bell: a datagram if the peer sleeps. */
static void wake(struct rwk_shm_channel *ch)
{
	struct rwk_shm_inbox *inbox = ch->inbox;

	if (!rwk_glance(&inbox->asleep) || !atomic_exchange_explicit(&inbox->asleep, 0, memory_order_seq_cst))
		return;
	ch->base.port->count.wakes++;
	if (rwk_likely(rwk_shm_attach_wake(ch)))
		return;
	rwk_publish32(&inbox->asleep, 1);
	owe_wake(ch, true);
}

rwk_noinline void rwk_shm_wake_owed(struct rwk_port *port)
{
	for (uint32_t i = 0; i < port->bells; i++) {
		struct rwk_shm_channel *ch = port->by_bell[i];

		if (!ch || !ch->owes_wake)
			continue;
		owe_wake(ch, false);
		if (ch->state == RWK_SHM_OPEN)
			wake(ch);
	}
}

static void ring(struct rwk_shm_channel *ch)
{
	uint32_t bell = ch->peer_bell;

	atomic_fetch_or_explicit(&ch->inbox->bell[bell / 64], 1ull << bell % 64, memory_order_seq_cst);
	rwk_barrier_behind_atomic();
	ch->base.port->count.bells++;
	wake(ch);
}

rwk_noinline void rwk_shm_ring_bell(struct rwk_shm_channel *ch)
{
	if (!ch->inbox) /* the peer has ended before we had it: deliver_last_words */
		return;
	if (rwk_glance(ch->tx.attention) & RWK_SHM_FENCE) {
		rwk_barrier_full();
		if (!(rwk_glance(ch->tx.attention) & RWK_SHM_BELL))
			return;
	}
	ring(ch);
}

void rwk_shm_tell_gone(struct rwk_shm_channel *ch)
{
	/* Also if it polls our ring and asks for no bell: it looks at the bells before it sleeps. */
	if (ch->inbox)
		ring(ch);
	else
		rwk_shm_attach_gone(ch);
}

void rwk_shm_look_at(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;

	atomic_fetch_or(&port->inbox->bell[ch->bell / 64], 1ull << ch->bell % 64);
	port->bells_rung = true;
}

void rwk_shm_tell_consumed(struct rwk_shm_channel *ch)
{
	if (rwk_likely(!rwk_glance(ch->tx.attention)))
		return;
	rwk_barrier_full();
	if (rwk_glance(&rwk_shm_his_side(ch)->starved))
		rwk_shm_ring_bell(ch);
}

/* Says how a hot or a cold channel wants to be told. */
static void set_attention(struct rwk_shm_channel *ch, uint32_t bell)
{
	uint32_t fence = ch->base.port->have_barrier && ch->peer_has_barrier ? 0 : RWK_SHM_FENCE;

	rwk_publish32(&rwk_shm_my_side(ch)->attention, bell | fence);
}

bool rwk_shm_peer_polls(const struct rwk_shm_channel *ch)
{
	return ch->inbox && !rwk_glance(&ch->inbox->asleep);
}

static void barrier_for_both(struct rwk_port *port)
{
	if (!port->have_barrier || !rwk_barrier_everywhere())
		rwk_barrier_full();
}

void rwk_shm_enlist(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;

	ch->hot = port->hot_count < RWK_SHM_HOT_MAX;
	if (ch->hot)
		port->hot[port->hot_count++] = ch;
	else
		port->cold_count++;
	/* A sender that has published before this is heard by the first poll, or by the bell that we ring ourselves. */
	set_attention(ch, ch->hot ? 0 : RWK_SHM_BELL);
	if (!ch->hot || rwk_observe32(&rwk_shm_his_side(ch)->gone))
		rwk_shm_look_at(ch);
}

void rwk_shm_delist(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;

	owe_wake(ch, false);
	if (!ch->hot) {
		port->cold_count--;
		return;
	}
	for (uint32_t i = 0; i < port->hot_count; i++) {
		if (port->hot[i] == ch) {
			port->hot[i] = port->hot[--port->hot_count];
			break;
		}
	}
	ch->hot = false;
}

int rwk_shm_poll_bells(struct rwk_port *port)
{
	int n = 0;

	for (uint32_t w = 0; w * 64 < port->bells; w++) {
		uint64_t bits;

		if (rwk_likely(!rwk_glance(&port->inbox->bell[w])))
			continue;
		bits = atomic_exchange_explicit(&port->inbox->bell[w], 0, memory_order_seq_cst);
		for (; bits; bits &= bits - 1) {
			uint32_t bell = w * 64 + (uint32_t)__builtin_ctzll(bits);
			struct rwk_shm_channel *ch = bell < port->bells ? port->by_bell[bell] : NULL;

			if (!ch || ch->state != RWK_SHM_OPEN)
				continue;
			n += rwk_shm_deliver(ch, 64);
			if (rwk_observe32(&rwk_shm_his_side(ch)->gone))
				rwk_shm_doom(ch, -ECONNRESET);
			else if (rwk_shm_rx_ready(&ch->rx) && !ch->doom)
				atomic_fetch_or(&port->inbox->bell[w], 1ull << bell % 64);
		}
	}
	return n;
}

static struct rwk_shm_channel *quietest_hot(struct rwk_port *port, uint32_t *at)
{
	*at = 0;
	for (uint32_t i = 1; i < port->hot_count; i++) {
		if (port->hot[i]->seen < port->hot[*at]->seen)
			*at = i;
	}
	return port->hot[*at];
}

int rwk_shm_balance(struct rwk_port *port)
{
	struct rwk_shm_channel *left[4];
	uint32_t at, swaps = 0;
	int n = 0;

	for (uint32_t i = 0; i < port->bells && swaps < 4; i++) {
		struct rwk_shm_channel *ch = port->by_bell[i], *quiet;

		if (!ch || ch->state != RWK_SHM_OPEN || ch->hot)
			continue;
		if (port->hot_count < RWK_SHM_HOT_MAX) {
			port->hot[port->hot_count++] = ch;
		} else {
			quiet = quietest_hot(port, &at);
			if (ch->seen < 8 || ch->seen / 2 < quiet->seen)
				continue;
			quiet->hot = false;
			set_attention(quiet, RWK_SHM_BELL);
			left[swaps++] = quiet;
			port->hot[at] = ch;
			port->cold_count++;
			port->count.demotions++;
		}
		ch->hot = true;
		port->cold_count--;
		set_attention(ch, 0);
	}
	for (uint32_t i = 0; i < port->bells; i++) {
		if (port->by_bell[i])
			port->by_bell[i]->seen = 0;
	}
	if (swaps)
		barrier_for_both(port);
	/* Poll those left behind once more: a sender may have looked at `attention` before it said BELL. */
	for (uint32_t i = 0; i < swaps; i++)
		atomic_fetch_or(&port->inbox->bell[left[i]->bell / 64], 1ull << left[i]->bell % 64);
	n += rwk_shm_poll_bells(port);
	return n;
}

static bool lacks_memory(const struct rwk_port *port)
{
	for (struct rwk_list *l = port->busy.next; l != &port->busy; l = l->next) {
		if (rwk_container_of(l, struct rwk_shm_channel, busy)->slabs.lacks)
			return true;
	}
	return false;
}

static void set_timer(struct rwk_port *port)
{
	struct itimerspec when = {{0, 0}, {0, 0}};
	uint16_t ms = 0;

	if (rwk_shm_transfer_busy(port->transfer))
		ms = NAP_TRANSFER;
	else if (lacks_memory(port))
		ms = NAP_MEMORY;
	else if (!rwk_list_empty(&port->connecting))
		ms = NAP_CONNECT;
	else if (port->wakes_owed)
		ms = NAP_OWED;
	else if (port->unwatched)
		ms = NAP_EVIDENCE;
	else if (port->hot_count + port->cold_count)
		ms = NAP_NAMES;
	if (ms == NAP_NAMES && port->timer_set == NAP_NAMES) /* goes on by itself, at no cost for each sleep */
		return;
	when.it_value.tv_sec = ms / 1000;
	when.it_value.tv_nsec = ms % 1000 * 1000000l;
	if (ms == NAP_NAMES)
		when.it_interval = when.it_value;
	if (ms || port->timer_set)
		timerfd_settime(port->timer, 0, &when, NULL);
	port->timer_set = ms;
}

/* Is there anything to do already? */
static bool anything(struct rwk_port *port)
{
	struct rwk_list *l;

	if (!rwk_list_empty(&port->failing))
		return true;
	for (uint32_t i = 0; i < port->hot_count; i++) {
		if (rwk_shm_rx_ready(&port->hot[i]->rx))
			return true;
	}
	for (uint32_t w = 0; w * 64 < port->bells; w++) {
		if (rwk_glance(&port->inbox->bell[w]))
			return true;
	}
	for (l = port->busy.next; l != &port->busy; l = l->next) {
		if (rwk_shm_queue_can_go(rwk_container_of(l, struct rwk_shm_channel, busy)))
			return true;
	}
	return rwk_shm_transfer_can_go(port);
}

int rwk_shm_arm(struct rwk_port *port)
{
	if (!*port->here)
		return -ECHILD;
	if (port->armed)
		rwk_shm_disarm(port);
	port->armed = true;
	atomic_store_explicit(&port->inbox->asleep, 1, memory_order_relaxed);
	for (uint32_t i = 0; i < port->hot_count; i++)
		set_attention(port->hot[i], RWK_SHM_BELL);
	for (struct rwk_list *l = port->busy.next; l != &port->busy; l = l->next)
		rwk_publish32(&rwk_shm_my_side(rwk_container_of(l, struct rwk_shm_channel, busy))->starved, 1);
	barrier_for_both(port);
	if (anything(port)) {
		rwk_shm_disarm(port);
		return -EAGAIN;
	}
	set_timer(port);
	port->count.sleeps++;
	return 0;
}

void rwk_shm_disarm(struct rwk_port *port)
{
	port->armed = false;
	atomic_exchange_explicit(&port->inbox->asleep, 0, memory_order_seq_cst);
	for (uint32_t i = 0; i < port->hot_count; i++)
		set_attention(port->hot[i], 0);
	for (struct rwk_list *l = port->busy.next; l != &port->busy; l = l->next)
		rwk_publish32(&rwk_shm_my_side(rwk_container_of(l, struct rwk_shm_channel, busy))->starved, 0);
	/*
	 * Bells that were rung for hot channels are for naught now, but whose they are is not known: the next poll
	 * finds out.
	 */
	port->bells_rung = true;
}
