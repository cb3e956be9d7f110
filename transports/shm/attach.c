/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ports come to share a pair. Each port has an abstract datagram socket named by its port number: no file is
 * left behind, and the kernel vouches for who sends (SCM_CREDENTIALS) and from which name.
 *
 *   higher                      lower         (by nonce_port: so that two who connect at once make one pair)
 *     | <------ HELLO ----------- |           whoever wants to connect says HELLO first. If that is the lower side,
 *     the higher | ------- HELLO ----------> |           answers with one
 *     | <------ OFFER ----------- |           the pair's memory and the lower port's inbox
 *     | ------- ACCEPT ---------> |           the higher port's inbox
 *
 * Descriptors go only to an endpoint from which a HELLO of the same user, job and protocol has come. Each step is
 * idempotent and repeated on a timer until the next one is seen. But what lies unread at a peer who computes says all
 * that there is to say, and is charged to our socket: while anything that this has sent lies so, what a peer's queue
 * has taken is repeated after a second and then ever more seldom. REFUSE ends it; only processes of the same user are
 * told, those of another PID namespace among them. `contact` numbers tell a channel from an earlier one between the
 * same ports.
 *
 * Nobody bound to the name (ECONNREFUSED) is evidence that the endpoint is gone: a forked child lets go of it. But
 * another endpoint may have the number by then: so there is a second name, with the nonce in it, at which nothing is
 * said; there is looked before each try whether somebody is who is known by a full address: the other endpoint may
 * be another user's, and say nothing. Who is known by IP and port alone may not have begun yet: a client that is
 * started before its server asks again for FI_ROPEWALK_CONNECT_WAIT seconds.
 */
#include "shm/note.h"
#include "shm/segment.h"

#include "base/forked.h"
#include "base/log.h"
#include "base/param.h"
#include "base/process.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
	RETRY_FIRST = 10, /* milliseconds; doubles up to */
	RETRY_MAX = 250,
	REPEAT_FIRST = 1000, /* milliseconds; four times as long each time, up to */
	REPEAT_MAX = 64000,
	OFFERS_LEAST = 32, /* pairs whose descriptors may be open at the same time, wherever there are some */
	DATAGRAMS = 64,    /* taken in one go */
	UNSEEN = -ESRCH,   /* why a process is refused that is in another PID namespace */
};

static struct rwk_shm_note note_to(struct rwk_shm_channel *ch, enum rwk_shm_note_type type)
{
	struct rwk_port *port = ch->base.port;

	return (struct rwk_shm_note){
		.magic = RWK_SHM_NOTE_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.type = type,
		.from = port->address,
		.to = ch->to.nonce_port,
		.contact = ch->contact,
		.to_contact = ch->peer_contact,
		.bell = ch->bell,
		.barrier = port->have_barrier,
		.start = port->start,
	};
}

static int send_to(struct rwk_shm_channel *ch, enum rwk_shm_note_type type, const int *fds, unsigned count)
{
	struct rwk_shm_note note = note_to(ch, type);

	return rwk_shm_note_send(ch->base.port->sock, rwk_address_port(&ch->to), &note, fds, count);
}

void rwk_shm_attach_gone(struct rwk_shm_channel *ch)
{
	struct rwk_shm_note note = note_to(ch, RWK_SHM_REFUSE);

	note.reason = -ECONNRESET;
	rwk_shm_note_send(ch->base.port->sock, rwk_address_port(&ch->to), &note, NULL, 0);
}

bool rwk_shm_attach_wake(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;

	return rwk_shm_note_wake(port->sock, rwk_address_port(&port->address), rwk_address_port(&ch->to));
}

void rwk_shm_attach_drop(struct rwk_shm_channel *ch)
{
	rwk_list_remove(&ch->connecting);
	if (ch->pair_fd >= 0) {
		close(ch->pair_fd);
		ch->base.port->offers--;
	}
	ch->pair_fd = -1;
	/* A forked child does not have them: there its own memory may lie where they were. */
	if (ch->pair && *ch->tx.here)
		munmap(ch->pair, ch->pair_size);
	ch->pair = NULL;
	if (ch->inbox && *ch->tx.here)
		munmap(ch->inbox, sizeof(*ch->inbox));
	ch->inbox = NULL;
}

static bool we_are_lower(const struct rwk_shm_channel *ch)
{
	return ch->base.port->address.nonce_port < ch->to.nonce_port;
}

static void become_open(struct rwk_shm_channel *ch)
{
	rwk_list_remove(&ch->connecting);
	if (ch->pair_fd >= 0) {
		close(ch->pair_fd);
		ch->base.port->offers--;
	}
	ch->pair_fd = -1;
	ch->state = RWK_SHM_OPEN;
	ch->lacking_since = 0;
	ch->base.answered = true;
	ch->base.direct_min = (uint32_t)ch->base.port->direct_least;
	rwk_shm_enlist(ch);
	rwk_shm_gate(ch);
	if (!rwk_shm_watch(ch))
		rwk_shm_doom(ch, -ECONNRESET);
}

/*
 * A descriptor or memory is missing. The host may give some back: true once that has been waited for long enough.
 */
static bool lacking_for_long(struct rwk_shm_channel *ch)
{
	uint64_t now = ch->base.port->now;

	if (!ch->lacking_since)
		ch->lacking_since = now;
	return now - ch->lacking_since > RWK_SHM_LACKING_MAX;
}

/* What came has lost its descriptors, as none was free for them here. True once that has been so for long enough. */
static bool took_without(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;

	if (!port->warned)
		rwk_warn("shared memory: no file descriptor is left to attach to rank %u (raise `ulimit -n`); will try "
			 "again",
			rwk_address_rank(&ch->to));
	port->warned = true;
	return lacking_for_long(ch);
}

/*
 * Nobody is at the address. True if that is final: the address was a full one, or has been waited for long enough. The
 * first try comes from connect, which knows no time: the wait begins with the second.
 */
static bool absent_for_good(struct rwk_shm_channel *ch)
{
	uint64_t now = ch->base.port->now;

	if (!ch->partial || !rwk_params.connect_wait)
		return true;
	if (ch->retry_gap == RETRY_FIRST)
		return false;
	if (!ch->awaited_since)
		ch->awaited_since = now;
	return now - ch->awaited_since >= 1000 * rwk_params.connect_wait;
}

/*
 * A burst of connections must not use up all descriptors: a quarter of them is for offers, and the next ones wait for
 * their turn. Not for less: an offer lies unread for as long as its peer computes.
 */
static bool offers_enough(const struct rwk_port *port)
{
	struct rlimit limit;

	return port->offers >= OFFERS_LEAST && (getrlimit(RLIMIT_NOFILE, &limit) || port->offers >= limit.rlim_cur / 4);
}

/* Says so once, if nobody's turn has come for long. */
static int wait_turn(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;

	if (!port->turns_since)
		port->turns_since = port->now;
	if (!port->turns_told && port->now - port->turns_since > RWK_SHM_LACKING_MAX) {
		port->turns_told = true;
		rwk_info("shared memory: %u peers compute and do not answer: until one does, rank %u and others wait "
			 "to be attached to (raise `ulimit -n`)",
			port->offers, rwk_address_rank(&ch->to));
	}
	return -EAGAIN;
}

/*
 * Is the endpoint that has said HELLO still there? Descriptors are for that one, and another user may take the number
 * of one that has ended, or its full name too. That he gets them all the same takes an endpoint that closes before it
 * has answered, in a process that lives on, and one who waits for both names just then.
 */
static bool is_there(const struct rwk_shm_channel *ch)
{
	return rwk_process_is_alive(ch->pid, ch->start) &&
	       !rwk_shm_note_probe(rwk_address_port(&ch->base.port->address), ch->to.nonce_port);
}

static int try_offer(struct rwk_shm_channel *ch)
{
	int rc = 0, fds[2];

	if (!ch->pair && offers_enough(ch->base.port))
		return wait_turn(ch);
	if (!is_there(ch))
		return -ECONNREFUSED;
	if (!ch->pair) {
		ch->base.port->turns_since = 0;
		rc = rwk_shm_pair_make(ch);
	}
	if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
		return lacking_for_long(ch) ? rc : -EAGAIN;
	if (rc)
		return rc;
	if (ch->state == RWK_SHM_ASKING)
		ch->lacking_since = 0; /* there was one; the answer wants another */
	ch->state = RWK_SHM_OFFERED;
	fds[0] = ch->pair_fd;
	fds[1] = ch->base.port->inbox_fd;
	rc = send_to(ch, RWK_SHM_OFFER, fds, 2);
	if (!rc && !is_there(ch))
		ch->astray = true;
	return rc;
}

static bool is_for_now(int rc)
{
	return rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS || rc == -EINTR;
}

/* The answer to an offer. Where it finds no room it is tried again: the other one may not offer again for long. */
static void accept_offer(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;
	int rc = !ch->doom && is_there(ch) ? send_to(ch, RWK_SHM_ACCEPT, &port->inbox_fd, 1) : -ECONNREFUSED;

	rwk_list_remove(&ch->connecting);
	if (!is_for_now(rc))
		return;
	rwk_list_append(&port->connecting, &ch->connecting);
	ch->retry_gap = 0;
	ch->retry_at = port->now + RETRY_FIRST;
}

/* What became of a try: the peer's queue has it, or is to be tried again, or that is the end. */
static void tried(struct rwk_shm_channel *ch, int rc)
{
	if (!rc || is_for_now(rc))
		return;
	if (rc == -ECONNREFUSED || rc == -ENOENT) {
		ch->repeat_at = ch->repeat_gap = 0; /* who comes there has heard nothing yet */
		if (!absent_for_good(ch))
			return;
		rwk_info("shared memory: nobody at port %u", rwk_address_port(&ch->to));
		rwk_shm_doom(ch, ch->partial ? -ECONNREFUSED : -ECONNRESET);
		return;
	}
	rwk_warn("shared memory: cannot attach to port %u: %s%s", rwk_address_port(&ch->to), strerror(-rc),
		rc == -EMFILE ? " (raise `ulimit -n`)" : "");
	rwk_shm_doom(ch, rc);
}

void rwk_shm_attach_try(struct rwk_shm_channel *ch)
{
	int rc;

	if (ch->doom)
		return;
	if (ch->peer_contact && we_are_lower(ch))
		rc = try_offer(ch);
	else
		rc = send_to(ch, RWK_SHM_HELLO, NULL, 0);
	if (!rc) {
		if (ch->repeat_gap < REPEAT_MAX)
			ch->repeat_gap = ch->repeat_gap ? ch->repeat_gap * 4 : REPEAT_FIRST;
		ch->repeat_at = ch->base.port->now + ch->repeat_gap;
	}
	tried(ch, rc);
}

/* Tries again, if somebody is there, unless what was sent last may still lie there. */
static void try_again(struct rwk_shm_channel *ch)
{
	struct rwk_port *port = ch->base.port;
	int rc;

	if (ch->state == RWK_SHM_OPEN) {
		accept_offer(ch);
		return;
	}
	rc = rwk_shm_note_probe(rwk_address_port(&port->address), ch->to.nonce_port);
	if (rc || (port->now < ch->repeat_at && rwk_shm_note_lies_unread(port->sock)))
		tried(ch, rc);
	else
		rwk_shm_attach_try(ch);
}

void rwk_shm_attach_retry(struct rwk_port *port)
{
	for (struct rwk_list *l = port->connecting.next, *next; l != &port->connecting; l = next) {
		struct rwk_shm_channel *ch = rwk_container_of(l, struct rwk_shm_channel, connecting);

		next = l->next;
		if (port->now < ch->retry_at)
			continue;
		ch->retry_gap = ch->retry_gap ? ch->retry_gap * 2 : RETRY_FIRST;
		if (ch->retry_gap > RETRY_MAX)
			ch->retry_gap = RETRY_MAX;
		ch->retry_at = port->now + ch->retry_gap;
		try_again(ch);
	}
}

static struct rwk_shm_channel *find(struct rwk_port *port, const struct rwk_address *from)
{
	struct rwk_shm_channel *partial = NULL;

	for (uint32_t i = 0; i < port->bells; i++) {
		struct rwk_shm_channel *ch = port->by_bell[i];

		if (!ch || ch->state == RWK_SHM_FAILED)
			continue;
		if (ch->to.nonce_port == from->nonce_port)
			return ch;
		if (ch->partial && rwk_address_port(&ch->to) == rwk_address_port(from))
			partial = ch;
	}
	return partial;
}

static void refuse(struct rwk_port *port, const struct rwk_shm_note *note, int reason)
{
	struct rwk_shm_note answer = {
		.magic = RWK_SHM_NOTE_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.type = RWK_SHM_REFUSE,
		.reason = reason,
		.from = port->address,
		.to = note->from.nonce_port,
		.to_contact = note->contact,
	};

	if (note->type != RWK_SHM_REFUSE)
		rwk_shm_note_send(port->sock, rwk_address_port(&note->from), &answer, NULL, 0);
}

/* A process that is not who it should be, or does not speak as we do. */
static void stranger(struct rwk_port *port, const struct rwk_shm_note *note, int reason, const char *what)
{
	port->count.strangers++;
	rwk_debug("shared memory: a datagram is dropped: %s", what);
	if (!note)
		return;
	port->count.refused++;
	refuse(port, note, reason);
}

static bool heard_hello(struct rwk_port *port, struct rwk_shm_channel *ch, const struct rwk_shm_note *note,
	const struct rwk_shm_sender *s)
{
	if (ch->partial) {
		ch->partial = false;
		ch->to = note->from;
		if (ch->to.nonce_port == port->address.nonce_port) {
			rwk_shm_doom(ch, -EHOSTUNREACH);
			return false;
		}
		if (port->client->connected(port->cookie, &ch->base, &note->from)) {
			refuse(port, note, -ECONNREFUSED);
			rwk_shm_doom(ch, -ECONNREFUSED);
			return false;
		}
	}
	ch->repeat_at = ch->repeat_gap = 0;
	ch->peer_contact = note->contact;
	ch->peer_bell = note->bell;
	ch->peer_has_barrier = note->barrier == 1;
	if (ch->state != RWK_SHM_OPEN) {
		ch->pid = s->pid;
		ch->start = note->start;
	}
	return true;
}

/* For somebody who has said HELLO. NULL: he is refused; or, as long as there is no memory, heard when he asks again. */
static struct rwk_shm_channel *begin_channel(struct rwk_port *port, const struct rwk_shm_note *note)
{
	struct rwk_shm_channel *ch = rwk_shm_channel_new(port, &note->from, NULL);
	int rc;

	if (!ch)
		return NULL;
	rc = port->client->connected(port->cookie, &ch->base, &note->from);
	if (!rc)
		return ch;
	if (rc != -ENOMEM)
		refuse(port, note, -ECONNREFUSED);
	rwk_shm_channel_free(ch, -ECONNREFUSED);
	return NULL;
}

static void on_hello(struct rwk_port *port, const struct rwk_shm_note *note, const struct rwk_shm_sender *s)
{
	struct rwk_shm_channel *ch = find(port, &note->from);

	if (!ch) {
		ch = begin_channel(port, note);
		if (!ch)
			return;
	}
	if (ch->peer_contact && ch->peer_contact != note->contact) {
		/* It has given up the channel that we know; it will ask again once we have seen the last of it. */
		rwk_shm_doom(ch, -ECONNRESET);
		return;
	}
	if (!heard_hello(port, ch, note, s))
		return;
	if (ch->state == RWK_SHM_OPEN && we_are_lower(ch))
		return;
	rwk_shm_attach_try(ch);
}

static void on_offer(struct rwk_port *port, const struct rwk_shm_note *note, const struct rwk_shm_sender *s)
{
	struct rwk_shm_channel *ch = find(port, &note->from);
	int rc;

	if (ch && ch->doom)
		return; /* it has been refused already */
	if (!ch || ch->contact != note->to_contact || port->address.nonce_port <= note->from.nonce_port) {
		stranger(port, note, -ECONNREFUSED, "an offer that nobody asked for");
		return;
	}
	if (ch->state == RWK_SHM_ASKING) {
		if (!heard_hello(port, ch, note, s))
			return;
		if (s->fds != 2) {
			if (took_without(ch)) {
				refuse(port, note, -EMFILE);
				rwk_shm_doom(ch, -EMFILE);
			}
			return;
		}
		rc = rwk_shm_offer_map(ch, s->fd[0], s->fd[1]);
		if (rc == -ENOMEM && !lacking_for_long(ch))
			return; /* it is offered again */
		if (rc) {
			rwk_warn("shared memory: cannot map what rank %u offers: %s", rwk_address_rank(&ch->to),
				strerror(-rc));
			refuse(port, note, rc);
			rwk_shm_doom(ch, rc);
			return;
		}
		become_open(ch);
	}
	if (ch->state == RWK_SHM_OPEN)
		accept_offer(ch);
}

static void on_accept(struct rwk_port *port, const struct rwk_shm_note *note, const struct rwk_shm_sender *s)
{
	struct rwk_shm_channel *ch = find(port, &note->from);

	if (!ch || ch->contact != note->to_contact || ch->peer_contact != note->contact) {
		stranger(port, note, -ECONNREFUSED, "an acceptance of nothing");
		return;
	}
	if (ch->state != RWK_SHM_OFFERED)
		return;
	if (s->fds != 1) { /* another offer, as soon as ever */
		ch->repeat_at = ch->repeat_gap = 0;
		if (took_without(ch))
			rwk_shm_doom(ch, -EMFILE);
		return;
	}
	ch->inbox = rwk_shm_inbox_map(s->fd[0]);
	if (!ch->inbox && errno == ENOMEM && !lacking_for_long(ch)) {
		ch->repeat_at = ch->repeat_gap = 0;
		return;
	}
	if (!ch->inbox) {
		rwk_warn("shared memory: cannot map the inbox of rank %u: %s", rwk_address_rank(&ch->to),
			strerror(errno));
		rwk_shm_doom(ch, errno == ENOMEM ? -ENOMEM : -EPROTO);
		return;
	}
	ch->pid = s->pid;
	ch->start = note->start;
	become_open(ch);
}

static void doom_unseen(struct rwk_shm_channel *ch, const struct rwk_shm_note *note)
{
	rwk_warn("shared memory cannot reach rank %u, port %u: it is in another PID namespace "
		 "(start the containers with `--pid=host`, or set FI_ROPEWALK_LINK=udp for all of the job)",
		rwk_address_rank(&note->from), rwk_address_port(&note->from));
	rwk_shm_doom(ch, -EHOSTUNREACH);
}

/* The channel that a refusal names: a port that has its number by now, and a channel with us, may say it. */
static struct rwk_shm_channel *refused(const struct rwk_port *port, const struct rwk_shm_note *note)
{
	for (uint32_t i = 0; i < port->bells; i++) {
		struct rwk_shm_channel *ch = port->by_bell[i];

		if (ch && ch->contact == note->to_contact && rwk_address_port(&ch->to) == rwk_address_port(&note->from))
			return ch;
	}
	return NULL;
}

static void on_refuse(struct rwk_port *port, const struct rwk_shm_note *note)
{
	struct rwk_shm_channel *ch = refused(port, note);

	if (!ch || ch->doom || ch->state == RWK_SHM_FAILED)
		return;
	if (ch->state == RWK_SHM_OPEN) {
		rwk_shm_look_at(ch); /* ends by what its pair says, and by nothing else */
		return;
	}
	if (note->reason == UNSEEN) {
		doom_unseen(ch, note);
		return;
	}
	if (note->reason == -EACCES || note->reason == -EPROTONOSUPPORT)
		rwk_warn("shared memory: port %u cannot be reached: it %s", rwk_address_port(&ch->to),
			note->reason == -EACCES ? "belongs to another job" : "has another version of ropewalk");
	else
		rwk_info("shared memory: port %u refuses: %s", rwk_address_port(&ch->to), strerror(-note->reason));
	rwk_shm_doom(ch, note->reason < 0 && note->reason > -4096 ? note->reason : -ECONNREFUSED);
}

/*
 * A process in another PID namespace could be neither watched nor read from. The kernel names none, or one that began
 * at another time than it says: what it has found under its own number in /proc is another one.
 */
static bool is_seen(pid_t pid, uint64_t start)
{
	return pid && (rwk_process_is_alive(pid, start) || !rwk_process_is_alive(pid, 0));
}

/*
 * Both sides are told, so that none waits for an answer. But if nobody has the sender's name, it has ended, and another
 * process has its number: a channel to it finds nobody with its next try.
 */
static void unseen(struct rwk_port *port, const struct rwk_shm_note *note)
{
	struct rwk_shm_channel *ch = find(port, &note->from);

	if (rwk_shm_note_probe(rwk_address_port(&port->address), note->from.nonce_port))
		return;
	stranger(port, note, UNSEEN, "of a process that cannot be seen from here");
	if (ch && !ch->doom && ch->state != RWK_SHM_OPEN)
		doom_unseen(ch, note);
}

static void handle_note(struct rwk_port *port, const struct rwk_shm_note *note, const struct rwk_shm_sender *s)
{
	uint64_t mine = port->address.nonce_port;

	if (note->magic != RWK_SHM_NOTE_MAGIC || !s->number || rwk_address_port(&note->from) != s->number)
		stranger(port, NULL, 0, "not a handshake");
	else if (s->uid != geteuid())
		stranger(port, NULL, 0, "of another user");
	else if (note->type == RWK_SHM_REFUSE && note->to == mine)
		on_refuse(port, note); /* of whatever job and version: that may be why */
	else if (rwk_shm_nonce(note->to) && note->to != mine)
		stranger(port, note, -ECONNRESET, "for an endpoint that had this port before");
	else if (note->layout != RWK_SHM_LAYOUT_VERSION)
		stranger(port, note, -EPROTONOSUPPORT, "of another version");
	else if (note->from.job != port->address.job)
		stranger(port, note, -EACCES, "of another job");
	else if (!rwk_shm_nonce(note->from.nonce_port) || !note->contact || note->bell >= RWK_SHM_BELLS)
		stranger(port, NULL, 0, "impossible numbers");
	else if (!is_seen(s->pid, note->start))
		unseen(port, note);
	else if (note->type == RWK_SHM_HELLO)
		on_hello(port, note, s);
	else if (note->type == RWK_SHM_OFFER)
		on_offer(port, note, s);
	else if (note->type == RWK_SHM_ACCEPT)
		on_accept(port, note, s);
	else
		stranger(port, NULL, 0, "of an unknown type");
}

/* One datagram: false if there is none. */
static bool receive(struct rwk_port *port, int *notes)
{
	struct rwk_shm_sender from;
	struct rwk_shm_note note;
	ssize_t n = rwk_shm_note_receive(port->sock, &note, &from);

	if (n < 0)
		return false;
	if (n == sizeof(note)) {
		handle_note(port, &note, &from);
		++*notes;
	} else if (n != 1) {
		stranger(port, NULL, 0, "of a length that nothing has");
	}
	while (from.fds)
		close(from.fd[--from.fds]);
	return true;
}

int rwk_shm_attach_poll(struct rwk_port *port)
{
	int notes = 0;

	for (int i = 0; i < DATAGRAMS && receive(port, &notes); i++)
		;
	if (notes)
		port->talk_until = port->now + RWK_SHM_TALK;
	return notes;
}

/* The ports of this process that have a socket; they and those are under the lock of forked.h. */
static struct rwk_list ports = {&ports, &ports};

static void close_sockets(struct rwk_port *port)
{
	rwk_list_remove(&port->all);
	if (port->sock >= 0)
		close(port->sock);
	if (port->name >= 0)
		close(port->name);
	port->sock = port->name = -1;
}

/* In a forked child. Its other copies do no harm: nobody finds the parent by them. */
static void let_go(void)
{
	while (!rwk_list_empty(&ports))
		close_sockets(rwk_container_of(ports.next, struct rwk_port, all));
}

static struct rwk_forked forked = {.in_child = let_go};

static int open_socket(struct rwk_port *port)
{
	int rc = rwk_fork_watch(&forked);

	if (rc)
		return rc;
	rwk_fork_lock();
	port->sock = rwk_shm_note_socket();
	if (port->sock >= 0)
		rwk_list_append(&ports, &port->all);
	rwk_fork_unlock();
	return port->sock < 0 ? port->sock : 0;
}

static int open_name(struct rwk_port *port, uint64_t nonce_port)
{
	rwk_fork_lock();
	port->name = rwk_shm_note_name(nonce_port);
	rwk_fork_unlock();
	return port->name < 0 ? port->name : 0;
}

static int open_descriptors(struct rwk_port *port)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int rc = open_socket(port);

	if (rc)
		return rc;
	port->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (port->epoll < 0)
		return -errno;
	port->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (port->timer < 0)
		return -errno;
	ev.data.ptr = &port->sock;
	if (epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->sock, &ev))
		return -errno;
	ev.data.ptr = &port->timer;
	return epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->timer, &ev) ? -errno : 0;
}

int rwk_shm_attach_open(struct rwk_port *port, uint16_t number)
{
	uint64_t nonce = port->address.nonce_port & ~0xffffull; /* another port's of the same endpoint, or zero */
	int rc;

	port->sock = port->name = port->epoll = port->timer = port->inbox_fd = -1;
	rwk_list_init(&port->all);
	rc = open_descriptors(port);
	if (!rc)
		rc = rwk_shm_note_bind(port->sock, &number);
	if (!rc)
		rc = rwk_shm_inbox_make(port);
	if (!rc && getrandom(&port->contacts, sizeof(port->contacts), 0) != sizeof(port->contacts))
		rc = -EIO;
	while (!rc && !rwk_shm_nonce(nonce)) {
		if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
			rc = -EIO;
	}
	nonce = (nonce & ~0xffffull) | number;
	if (!rc)
		rc = open_name(port, nonce);
	if (rc) {
		rwk_shm_attach_close(port);
		return rc;
	}
	port->address.nonce_port = nonce;
	return 0;
}

void rwk_shm_attach_close(struct rwk_port *port)
{
	const int fds[] = {port->timer, port->epoll, port->inbox_fd};

	if (port->inbox && *port->here)
		munmap(port->inbox, sizeof(*port->inbox));
	port->inbox = NULL;
	rwk_fork_lock();
	close_sockets(port);
	rwk_fork_unlock();
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}
