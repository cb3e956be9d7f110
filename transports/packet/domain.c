/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC, receiving: this process's part in the domain of its node (shared_rc/shared_rc.h). It serves packets that come to
 * the domain's socket, whoever they are for, and takes what is for its own channels: those that are shared, each found
 * by the target of its peer.
 */
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/inbound.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/request.h"
#include "packet/streams.h"

#include "base/log.h"
#include "base/param.h"
#include "base/process.h"
#include "shared_rc/shared_rc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET      64                          /* packets, and pieces, a progress */
#define JOIN_WITHIN (2 * 1000 * 1000 * 1000ull) /* ns, from the first progress on */
#define ATTEND_GAP  (2 * 1000 * 1000ull)        /* ns between looks at the door */
#define ANSWER_WAIT 4                           /* progresses that bring nothing more, after a message */
#define WAKING      256                         /* progresses */
#define IDLE_GAP    64                          /* of these one looks, where siblings do */
#define SAY_AGAIN   (1000 * 1000ull)            /* ns between good-byes to who has not heard of the end */
#define ENDED       256u                        /* channels of which that is known, a power of two */

/** A channel that has ended: its target, which the peer's others go by as well, and its QPN. */
struct rwk_packet_ended {
	uint32_t target, qpn;
	rwk_time say_at;
};

/** Where one with that target is, if there is any: a place for each, by the low bits, in which targets differ. */
static struct rwk_packet_ended *ended(const struct rwk_port *port, uint32_t target)
{
	return port->ended ? &port->ended[target % ENDED] : NULL;
}

void rwk_packet_domain_ended(const struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;

	if (!port->ended)
		port->ended = calloc(ENDED, sizeof(*port->ended));
	if (port->ended) /* else it has been told but once */
		*ended(port, ch->target) = (struct rwk_packet_ended){.target = ch->target, .qpn = ch->qpn};
}

/**
 * The domain acknowledges what comes for a channel that is no more: its peer would never find out if the good-bye was
 * lost. Once a millisecond at most. Of a channel that was made since this says nothing: it has another QPN.
 */
static void say_bye_again(struct rwk_port *port, uint32_t target)
{
	struct rwk_packet_ended *e = ended(port, target);
	struct rwk_greeting g = {.type = RWK_GREETING_BYE, .from = port->address};
	struct rwk_src_initiator there;
	struct rwk_link_address at;

	if (!e || e->target != target || rwk_packet_now(port) < e->say_at ||
		rwk_src_target_find(port->view, target, &there))
		return;
	e->say_at = rwk_packet_now(port) + SAY_AGAIN;
	memcpy(&g.to, there.about, sizeof(g.to));
	g.qpn = e->qpn;
	at = port->ways->address(&g.to);
	rwk_packet_greet(port, RWK_WAY_LOSSY, &at, &g);
}

static struct rwk_packet_channel *find(struct rwk_port *port, uint32_t target)
{
	struct rwk_packet_channel *ch = rwk_packet_by_target(port, target);

	if (ch && (ch->state == RWK_CH_OPEN || ch->state == RWK_CH_ACCEPTING) && !ch->deaf)
		return ch;
	port->count.unknown_qp++;
	say_bye_again(port, target);
	return NULL;
}

static void receive(void *user, uint32_t target, unsigned where, const void *bytes, size_t len)
{
	struct rwk_packet_channel *ch = find(user, target);

	if (!ch)
		return;
	if (ch->by->rc) /* what we send there is acknowledged by such messages, and seldom alone */
		rwk_packet_vote(user, &ch->by->path, &ch->by->seen, false);
	ch->port->answers_wait = ANSWER_WAIT;
	rwk_packet_receive(ch, where, bytes, len); /* what it refuses has doomed the channel */
	rwk_packet_stir_for_message(ch);
}

static void write(void *user, uint32_t target, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct rwk_packet_channel *ch = find(user, target);

	if (ch)
		rwk_packet_write(ch, key, address, bytes, len); /* what it refuses, the peer is told when it asks */
}

static int emit(void *user, const struct rwk_link_address *to, uint32_t cut, const struct rwk_wire *w,
	const struct iovec *payload, int count)
{
	struct rwk_port *port = user;

	if (memcmp(&port->answer.to, to, sizeof(*to)))
		port->answer = (struct rwk_packet_path){.to = *to, .way = RWK_WAY_DOMAIN};
	port->answer.cut = (uint16_t)cut;
	return rwk_packet_put(port, &port->answer, w, payload, count);
}

/** A sibling sleeps on its own sockets: a datagram of one byte, which is no packet, makes one of them readable. */
static void wake(void *user, uint32_t srqn)
{
	struct rwk_port *port = user;
	struct rwk_link *l = port->link[RWK_WAY_LOSSY];
	struct rwk_link_address at = rwk_src_bell(port->view, srqn);
	uint8_t byte = 0;
	struct iovec iov = {&byte, sizeof(byte)};

	l->ops->send(l, &at, &iov, 1); /* what is lost, rwk_src_bury makes good */
	l->ops->flush(l);
}

static const struct rwk_src_host host = {.emit = emit, .receive = receive, .write = write, .wake = wake};

static void domain_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	rwk_packet_arrived(user, RWK_WAY_DOMAIN, from, bytes, len);
}

static void give_up(struct rwk_port *port, int rc)
{
	port->joining = false;
	if (port->domain.seat)
		port->ways->depart(&port->domain);
	if (rc == -ETIMEDOUT)
		rwk_info("SRC: no member of this node's domain has let us in within %llu ms: all compute, or are "
			 "stopped; this process shares no connections",
			JOIN_WITHIN / 1000000);
	else
		rwk_info("SRC: this process shares no connections: %s", strerror(-rc));
}

static void show_life(struct rwk_port *port)
{
	uint32_t seat = rwk_src_seat_of(rwk_src_srqn(port->view));
	int fd = port->ways->sit ? port->ways->sit(&port->domain, seat) : -ENOTSUP;

	if (fd >= 0)
		rwk_src_show_life(port->view, fd);
	else if (port->ways->sit)
		rwk_info("SRC: that this process lives is shown by its number alone: %s", strerror(-fd));
}

/** The port is in the domain now. */
static void sit_down(struct rwk_port *port)
{
	struct rwk_link_address bell;
	int rc = rwk_src_view_open(port->domain.memory, &host, port, &port->view);

	if (rc == -EAGAIN) { /* another is just sitting down: as if we had not been let in yet */
		port->domain.link->ops->close(port->domain.link);
		return;
	}
	port->joining = false;
	if (rc) {
		rwk_info("SRC: no seat in the domain of this node: %s", strerror(-rc));
		port->domain.link->ops->close(port->domain.link);
		port->ways->depart(&port->domain);
		return;
	}
	port->link[RWK_WAY_DOMAIN] = port->domain.link;
	port->domain.link->packet = domain_packet;
	port->domain.link->user = port;
	if (port->ways->agree)
		port->ways->agree(&port->domain, rwk_src_socket_word(port->view));
	bell = port->ways->address(&port->address);
	rwk_src_set_bell(port->view, &bell);
	show_life(port);
	rwk_process_let_in(); /* siblings are to see to our memory while we do not */
}

static void try_to_join(struct rwk_port *port)
{
	int rc = port->ways->join(&port->attr, &port->domain);

	if (!rc)
		sit_down(port);
	else if (rc != -EAGAIN)
		give_up(port, rc);
}

void rwk_packet_domain_join(struct rwk_port *port, const struct rwk_port_attr *attr)
{
	port->wants_shared = attr->shared;
	if (!attr->shared || !port->ways->join || !port->link[RWK_WAY_LOSSY])
		return;
	port->attr = *attr;
	port->joining = true;
	try_to_join(port);
}

static const char *why_not_taken(int why)
{
	if (why == -EPERM)
		return "the kernel does not let this process take from them (Yama's ptrace_scope, a seccomp filter)";
	return why == -ESRCH ? "they are not to be seen from here (another PID namespace, or no /proc)" : strerror(-why);
}

static void say_that_alone(bool was_in, int why)
{
	char words[300];

	snprintf(words, sizeof(words),
		"SRC: %s within %llu ms: %s%s%s; "
		"this process has a domain of its own and shares no connections with its siblings",
		was_in ? "there was no seat for us in this node's domain"
		       : "no member of this node's domain has let us in",
		JOIN_WITHIN / 1000000,
		was_in ? "a process that was changing its tables is stopped" : "all compute, or are stopped",
		why ? ", and " : "", why ? why_not_taken(why) : "");
	rwk_info("%s", words);
	if (rwk_params.explain)
		fprintf(stderr, "ropewalk: %s\n", words);
}

/* Connections are shared with nobody then, but others' who share theirs meet us as one who does. */
static void be_alone(struct rwk_port *port)
{
	bool was_in = port->domain.memory; /* but got no seat (sit_down) */
	int why = 0, rc = port->ways->join_alone(&port->attr, &port->domain, &why);

	if (rc) {
		give_up(port, rc);
		return;
	}
	say_that_alone(was_in, was_in ? 0 : why);
	sit_down(port);
}

/**
 * Who was let in by nobody when the port was opened tries again for a while. Members let in who knocks from their
 * progress, and perhaps they wait for us to have opened.
 */
static void go_on_joining(struct rwk_port *port, rwk_time now)
{
	if (!port->join_until)
		port->join_until = now + JOIN_WITHIN;
	if (now < port->join_until)
		try_to_join(port);
	else if (port->ways->join_alone)
		be_alone(port);
	else
		give_up(port, -ETIMEDOUT);
}

void rwk_packet_domain_leave(struct rwk_port *port)
{
	if (port->joining && port->domain.seat)
		port->ways->depart(&port->domain);
	if (!port->view)
		return;
	rwk_src_view_close(port->view);
	port->view = NULL;
	port->link[RWK_WAY_DOMAIN]->ops->close(port->link[RWK_WAY_DOMAIN]);
	port->link[RWK_WAY_DOMAIN] = NULL;
	port->ways->depart(&port->domain);
}

bool rwk_packet_domain_terms(struct rwk_packet_channel *ch, struct rwk_greeting *g)
{
	bool accepts = g->type == RWK_GREETING_ACCEPT;
	struct rwk_port *port = ch->port;
	struct rwk_src_initiator there;

	if (!ch->by)
		ch->by = rwk_packet_initiator(port, ch->address.node, 0);
	if (!ch->by || (accepts && !ch->shared))
		return false;
	if (accepts && !rwk_src_target_find(port->view, ch->target, &there))
		g->pmtu = there.pmtu; /* a sibling may have made it when the way carried more, or less */
	g->shared = (struct rwk_greeting_shared){
		.domain = port->domain.id,
		.srqn = rwk_src_srqn(port->view),
		.target = accepts ? ch->target : 0,
		.qpn = ch->by->qpn,
		.psn = ch->by->psn,
		.port = port->domain.port,
	};
	return true;
}

int rwk_packet_domain_take(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	struct rwk_src_initiator initiator = {
		.nonce = rwk_packet_peer_nonce(ch),
		.to = ch->path.to,
		.qpn = g->shared.qpn,
		.psn = g->shared.psn,
		.pmtu = (uint16_t)ch->pmtu,
		.own = RWK_PACKET_SRC_OWN & g->features,
	};
	uint32_t target;
	int rc;

	if (!ch->by) /* it was shared before, on other terms */
		ch->by = rwk_packet_initiator(ch->port, ch->address.node, g->shared.domain);
	if (!ch->by)
		return -ENOMEM;
	if (ch->by->failed) /* since the peer was told of it */
		return -ENOSPC;
	memcpy(initiator.about, &g->from, sizeof(initiator.about));
	rc = rwk_src_target_make(ch->port->view, &initiator, &target);
	if (!rc && rwk_packet_by_target(ch->port, target))
		rc = -EALREADY; /* one process has one channel to us */
	if (rc)
		return rc;
	ch->target = target;
	rwk_hash_add(&ch->port->by_target, &ch->by_target);
	ch->port->count.targets++;
	ch->srqn = g->shared.srqn;
	ch->shared = true;
	ch->by->channels++;
	ch->by->give_up_at = 0;
	if (!ch->by->domain) /* nobody else's any more: the peer will say where to aim it */
		ch->by->domain = g->shared.domain;
	return 0;
}

void rwk_packet_domain_forget(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;

	rwk_hash_remove(&port->by_target, &ch->by_target);
	if (ch->published)
		rwk_src_withdraw_all(port->view, ch->target);
	ch->published = false;
	rwk_packet_evidence_lost(ch);
	if (ch->gone)
		rwk_src_target_end(port->view, ch->target);
	ch->target = 0;
}

/**
 * An initiator has ceased: all that it sent is its owner's, or in its inbox. Its target becomes nobody's; what of this
 * node still has a channel to its process finds that out as of one that died (evidence.c).
 */
void rwk_packet_domain_greeted(struct rwk_port *port, int way, const struct rwk_greeting *g)
{
	const struct rwk_link_address to = port->ways->address(&g->from);
	struct rwk_src_initiator there;
	struct rwk_greeting a;
	bool lives;

	if (way != RWK_WAY_DOMAIN || g->type != RWK_GREETING_CEASE || g->shared.domain != port->domain.id) {
		port->count.stale++;
		return;
	}
	lives = !rwk_src_target_find(port->view, g->shared.target, &there);
	if (lives && (there.nonce != rwk_packet_nonce(&g->from) || there.qpn != g->qpn)) {
		port->count.stale++;
		return;
	}
	if (lives)
		rwk_src_target_end(port->view, g->shared.target);
	rwk_greeting_answer(&a, g, RWK_GREETING_CEASED, &port->address);
	a.qpn = g->qpn;
	a.shared = g->shared;
	rwk_packet_greet(port, RWK_WAY_LOSSY, &to, &a);
}

/** Has it slept a moment ago? Any sleep begins with a few progresses. */
static bool just_woken(const struct rwk_port *port)
{
	return port->epoch - port->woken_epoch < WAKING;
}

/**
 * Does it take what comes to the domain's socket? Not while it has no channel and nothing that comes there is its own:
 * it would do its siblings' work, and they would have to fetch from their inboxes what they wait for at the socket.
 */
static bool polls(const struct rwk_port *port)
{
	return !just_woken(port) && !rwk_list_empty(&port->all);
}

/** Whether to look there: now and then in any case, else unless siblings do. */
static bool asks_domain(const struct rwk_port *port)
{
	return polls(port) || (just_woken(port) && !port->left_since) || port->epoch % IDLE_GAP == 0;
}

/*
 * The client's answer, which takes along what is due, goes first: what is due waits for one progress, and after a
 * message for a few while nothing more comes: in one the client may hear that its own message has come, and ask in the
 * next for the peer's. When nothing comes the clock is not looked at each time: what becomes due then, the port's own
 * look finds.
 */
int rwk_packet_domain_progress(struct rwk_port *port)
{
	struct rwk_link *l = port->link[RWK_WAY_DOMAIN];
	int n = asks_domain(port) ? l->ops->progress(l, BUDGET) : 0;
	bool was_due = port->answers_due;
	rwk_time next;

	n += rwk_src_drain(port->view, BUDGET);
	next = rwk_src_next(port->view);
	port->answers_due = next != RWK_NEVER && (n || was_due) && next <= rwk_packet_now(port);
	port->answering = port->answers_due && was_due && (n || !port->answers_wait);
	if (port->answers_due && !n && port->answers_wait)
		port->answers_wait--;
	if (next < port->deadline)
		port->deadline = next; /* the process does not sleep over it */
	return n;
}

int rwk_packet_domain_answer(struct rwk_port *port)
{
	int sent = rwk_src_pump(port->view, rwk_packet_now(port));
	rwk_time next = rwk_src_next(port->view);

	port->answers_due = next <= rwk_packet_now(port); /* a long answer goes on */
	port->answers_wait = 0;
	if (next < port->deadline)
		port->deadline = next;
	return sent;
}

void rwk_packet_domain_by_clock(struct rwk_port *port, rwk_time now)
{
	if (rwk_unlikely(port->joining))
		go_on_joining(port, now);
	if (!port->view)
		return;
	if (polls(port))
		rwk_src_polls(port->view, now);
	if (now >= port->attend_at) {
		port->attend_at = now + ATTEND_GAP;
		port->ways->attend(&port->domain);
	}
	if (now >= rwk_packet_evidence_next(port))
		rwk_packet_evidence_by_clock(port, now);
	if (now >= port->bury_at) {
		port->bury_at = now + RWK_SRC_BURY_GAP;
		rwk_src_bury(port->view, now);
	}
}
