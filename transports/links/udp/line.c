/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The line: a second socket, on the same IP and port as main, connected to one peer. On the wire nothing tells them
 * apart. To send by it, the kernel need not look for the way; what the peer sends comes to it, and is found without
 * looking for a way either: a microsecond for both together, there and back.
 *
 * Two sockets share a port only if both allow it. They do while the line is made, and in the way that lets in nobody
 * but this user (SO_REUSEPORT): so nobody else can put a socket beside ours, then or later.
 *
 * Between its bind and its connect the line gets what others send to that address; so who reads it looks at each
 * packet's sender, as on main. It ends with an error that main might not have (our address has gone, say; or a
 * packet is too long, which main sends in fragments then), or when there is another favourite; what still waits in it
 * then is lost.
 *
 * Processes that share main share a line, too, which was there before them and ends with the last of them. Whoever has
 * got SINGLES messages of the kernel's by main from one sender, with nothing between, connects the line to it. Nobody
 * knows what another has done a moment ago: so each sends by main alone. How the line is read, and how often it was
 * turned, stands in a word that they share; by each turn each asks for the sender once. Who has not seen in time that
 * another has changed it may take packets that were joined for one, or those of one sender for another's, which their
 * ICRC gives away: they are lost, as any may be.
 */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include "base/cancel.h"
#include "base/this_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int allow_second(int fd, int value)
{
	return rwk_udp_set(fd, SOL_SOCKET, SO_REUSEPORT, value);
}

static int bind_to(int fd, int family, const struct rwk_link_address *a)
{
	union socket_name name;
	socklen_t len = rwk_udp_to_name(family, a, &name);

	return bind(fd, &name.any, len) ? -errno : 0;
}

static int connect_to(int fd, int family, const struct rwk_link_address *a)
{
	union socket_name name;
	socklen_t len = rwk_udp_to_name(family, a, &name);

	return connect(fd, &name.any, len) ? -errno : 0;
}

/* A socket from our `own` IP and the link's port to the peer; or negative errno. */
static int open_line(struct udp *u, const struct rwk_link_address *own, const struct rwk_link_address *peer)
{
	int family = rwk_udp_is_ip4(own->byte) ? AF_INET : AF_INET6, err;
	int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	err = rwk_udp_set_options(fd, family, u->receive_buffer);
	if (!err)
		err = allow_second(fd, 1);
	if (!err)
		err = allow_second(u->main.fd, 1);
	if (!err)
		err = bind_to(fd, family, own);
	if (!err)
		err = connect_to(fd, family, peer);
	allow_second(u->main.fd, 0);
	allow_second(fd, 0);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void end_line(struct udp *u)
{
	struct rwk_link_address own = rwk_udp_address(u->line_ip, u->port);

	if (u->line.fd < 0)
		return;
	for (int i = u->first; i < u->messages; i++) {
		if (u->message[i].by_line)
			rwk_udp_by_main(u, i, u->line_ip);
	}
	rwk_udp_read_drops(&u->line, &u->counters.overruns);
	if (u->shared) {
		close(u->line.fd);
		u->line.fd = -1;
		return;
	}
	/*
	 * A child of this process may have it open too: then it must not keep the peer's packets for itself. But where
	 * this is the child the parent still has its line.
	 */
	if (u->line_maker == rwk_this_process())
		connect_to(u->line.fd, rwk_udp_is_ip4(u->line_ip) ? AF_INET : AF_INET6, &own);
	close(u->line.fd);
	u->line.fd = -1;
	u->filler = &u->main;
	memset(&u->favourite, 0, sizeof(u->favourite));
	memset(&u->to, 0, sizeof(u->to));
}

void rwk_udp_line_end(struct udp *u)
{
	int before = rwk_cancel_hold_off();

	end_line(u);
	rwk_cancel_as_before(before);
}

/* Our IP, if it is the same in both directions. */
static bool same_ip(struct udp *u, const struct rwk_link_address *peer, uint8_t own[16])
{
	const struct route *r;

	memcpy(own, u->ip, 16);
	if (!u->wildcard)
		return true;
	r = rwk_udp_route(u, peer);
	memcpy(own, u->at, 16);
	return r && u->arrived && !memcmp(&u->from, peer, sizeof(*peer)) && !memcmp(r->source, own, 16);
}

/* Somebody else is at the other end of the line, and the kernel joins what comes. */
static void say_turned(struct udp *u)
{
	uint32_t word = atomic_load(u->agreed);

	while (!atomic_compare_exchange_weak(u->agreed, &word, (word + LINE_TURN) & ~LINE_PLAIN))
		;
}

void rwk_udp_favour(struct rwk_link *l, const struct rwk_link_address *peer)
{
	struct udp *u = rwk_udp_of(l);
	struct rwk_link_address own;
	uint8_t ip[16];
	int fd;

	if (u->shared || u->strict || u->fragments || rwk_udp_place(peer).scope || !same_ip(u, peer, ip))
		return;
	rwk_udp_line_end(u);
	own = rwk_udp_address(ip, u->port);
	fd = open_line(u, &own, peer);
	if (fd < 0)
		return;
	u->line = (struct inlet){.fd = fd, .width = 1};
	u->line_maker = rwk_this_process();
	say_turned(u);
	u->favourite = *peer;
	memcpy(u->line_ip, ip, sizeof(ip));
	memset(&u->to, 0, sizeof(u->to));
	u->counters.lines++;
}

/*
 * A line that is shared.
 */

int rwk_udp_spare(struct rwk_link *l, const uint8_t ip[16])
{
	struct udp *u = rwk_udp_of(l);
	struct rwk_link_address own = rwk_udp_address(ip, u->port);

	return open_line(u, &own, &own);
}

void rwk_udp_adopt_line(struct udp *u, int fd)
{
	union socket_name name, peer;
	socklen_t len = sizeof(name), peer_len = sizeof(peer);
	struct rwk_link_address a;

	if (fd < 0 || getsockname(fd, &name.any, &len) || getpeername(fd, &peer.any, &peer_len))
		return;
	a = rwk_udp_from_name(&name);
	if (ntohs(rwk_udp_place(&a).port) != u->port)
		return;
	memcpy(u->line_ip, rwk_udp_place(&a).ip, sizeof(u->line_ip));
	u->line = (struct inlet){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .width = 1};
}

void rwk_udp_agree(struct rwk_link *l, _Atomic uint32_t *word)
{
	struct udp *u = rwk_udp_of(l);

	u->agreed = word ? word : &u->alone;
}

/* What comes by it then is told apart by its ICRC as long as somebody has not seen that it was turned. */
static void turn_line(struct udp *u, const struct rwk_link_address *peer)
{
	connect_to(u->line.fd, rwk_udp_is_ip4(u->line_ip) ? AF_INET : AF_INET6, peer);
	rwk_udp_join(u->line.fd, true);
	say_turned(u);
}

/* Its sender has sent all that came by main of late: is it for the line from now on? */
static bool earns_line(struct udp *u)
{
	const uint8_t *at = u->arrived ? u->at : u->ip;

	return ++u->main.run == SINGLES && !memcmp(at, u->line_ip, sizeof(u->line_ip)) &&
	       !rwk_udp_place(&u->from).scope;
}

void rwk_udp_judge_shared(struct udp *u)
{
	if (u->line.fd < 0)
		return;
	if (u->filled > 1) {
		u->main.run = 0;
	} else if (u->main.run % SINGLES == 0 || memcmp(&u->from, &u->favourite, sizeof(u->from))) {
		u->favourite = u->from;
		u->main.run = 1;
	} else if (earns_line(u)) {
		turn_line(u, &u->from);
		u->counters.lines++;
	}
}
