/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: one system call a progress, into the slots of the pool. It asks for one message (recvmsg, the cheapest
 * when there is nothing or little) as long as few or long ones come, and for more at once (recvmmsg) the more the last
 * call brought. What the budget leaves over stays in its slot for the next progress.
 *
 * If there is a line, the socket that has brought something last is asked each time, and the other before it, as long
 * as it brings something too; else only now and then, since a call that brings nothing costs a third of a microsecond.
 *
 * Who waits for each answer wants the cheapest call of all, which brings bytes and nothing else.
 * All that is on the line is from one peer; so this is enough there as long as the kernel joins no packets. It is told
 * not to when short packets come one by one, and to do so again when they come in runs.
 */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CE           3           /* of a traffic class: a router was congested */
#define FECN_BYTE    4           /* of a packet (../../wire/FORMAT.md), not covered by its ICRC */
#define FECN         0x80
#define NOTICES      64          /* heard in one progress, at most */
#define QUIET        256         /* calls that brought nothing, after which a socket is asked less often: */
#define SELDOM       16          /* each so many progresses */
#define LONG_MESSAGE (16u << 10) /* bytes */
#define SHORT_PACKET 2048        /* bytes */
#define LEAST_FIRST  1024        /* bytes: what is cut into packets has a first one of more */

static void reset_slot(struct udp *u, int i)
{
	u->in[i].msg_hdr.msg_namelen = sizeof(u->in_name[i]);
	u->in[i].msg_hdr.msg_controllen = sizeof(u->in_control[i]);
}

void rwk_udp_init_receive(struct udp *u)
{
	u->main.width = 1;
	u->filler = &u->main;
	for (int i = 0; i < SLOTS; i++) {
		u->in_piece[i] = (struct iovec){u->pool + (size_t)i * SLOT_BYTES, SLOT_BYTES};
		u->in[i].msg_hdr.msg_name = &u->in_name[i];
		u->in[i].msg_hdr.msg_control = u->in_control[i].room;
		u->in[i].msg_hdr.msg_iov = &u->in_piece[i];
		u->in[i].msg_hdr.msg_iovlen = 1;
		reset_slot(u, i);
	}
}

/*
 * Notices.
 */

static void judge(struct udp *u, const struct rwk_link_address *who, const struct sock_extended_err *e)
{
	if (e->ee_origin == SO_EE_ORIGIN_ICMP || e->ee_origin == SO_EE_ORIGIN_ICMP6)
		u->counters.notices++;
	if (e->ee_errno == EMSGSIZE)
		rwk_udp_forget_route(u, who);
	if (e->ee_errno == ECONNREFUSED && u->pub.word)
		u->pub.word(u->pub.user, who, -ECONNREFUSED);
}

static bool hear_one(struct udp *u, int fd)
{
	union socket_name name;
	union {
		char room[256];
		struct cmsghdr align;
	} control;
	struct msghdr h = {.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	struct rwk_link_address who;

	if (syscall(SYS_recvmsg, fd, &h, MSG_ERRQUEUE) < 0)
		return errno == EINTR;
	if (!h.msg_namelen)
		return true;
	who = rwk_udp_from_name(&name);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		struct sock_extended_err e;

		if ((c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR) &&
			(c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		judge(u, &who, &e);
	}
	return true;
}

static rwk_noinline void hear(struct udp *u)
{
	int n = 0;

	while (n < NOTICES && hear_one(u, u->main.fd))
		n++;
	while (n < NOTICES && u->line.fd >= 0 && hear_one(u, u->line.fd))
		n++;
	u->notice = n == NOTICES;
}

/*
 * Packets.
 */

/*
 * How many messages to ask for after a call that brought n. Long ones one by one: the call costs little beside them,
 * and the one slot stays in the cache. One by one too what comes alone, with empty calls between: to ask for more is
 * dearer when nothing comes.
 */
static int next_width(const struct udp *u, const struct inlet *in, int n)
{
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += u->in[i].msg_len;
	if (bytes >= (size_t)n * LONG_MESSAGE)
		return 1;
	if (n < in->width)
		return n;
	if (n == 1 && !in->streak)
		return 1;
	return n < SLOTS / 2 ? 2 * n : SLOTS;
}

void rwk_udp_join(int fd, bool may)
{
	rwk_udp_set(fd, IPPROTO_UDP, UDP_GRO, may); /* where it does not know that option it joins nothing */
	rwk_udp_set(fd, IPPROTO_IP, IP_RECVTOS, may);
	rwk_udp_set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, may);
}

/* Is the line read by plain calls? Those who share one read it all in the same way. */
static bool is_plain(struct udp *u)
{
	u->word = atomic_load_explicit(u->agreed, memory_order_relaxed);
	return u->word & LINE_PLAIN;
}

/* False: the line was turned meanwhile, or somebody else has changed how it is read. */
static bool change_word(struct udp *u, uint32_t to)
{
	uint32_t word = u->word;

	return atomic_compare_exchange_strong(u->agreed, &word, to);
}

/*
 * Nothing waits on the line. The kernel says what it has joined only as long as it may join: what came since then would
 * be one packet to a plain call.
 */
static void begin_plain(struct udp *u)
{
	uint8_t byte;

	u->line.run = 0;
	rwk_udp_join(u->line.fd, false);
	if (syscall(SYS_recvfrom, u->line.fd, &byte, sizeof(byte), MSG_PEEK, NULL, NULL) < 0 && errno == EAGAIN &&
		change_word(u, u->word | LINE_PLAIN))
		return;
	if (!is_plain(u)) /* another may have come to the same at once */
		rwk_udp_join(u->line.fd, true);
}

static void end_plain(struct udp *u)
{
	u->line.run = 0;
	if (change_word(u, u->word & ~LINE_PLAIN))
		rwk_udp_join(u->line.fd, true);
}

/* Has the kernel made it of several packets? It says so then. */
static bool is_joined(struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			return true;
	}
	return false;
}

/* Of the n messages that the line has brought: is it one short packet, and the call before brought none? */
static bool came_alone(struct udp *u, int n)
{
	return n == 1 && !u->line.streak && u->in[0].msg_len <= SHORT_PACKET && !is_joined(&u->in[0].msg_hdr);
}

/* The line has brought messages by another call. Short packets that come one by one speak for plain calls. */
static void judge_joining(struct udp *u, int n)
{
	struct inlet *line = &u->line;

	line->run = came_alone(u, n) ? line->run + (line->run < SINGLES) : 0;
}

/*
 * The line has brought a packet by a plain call. What comes right behind others speaks for joining; what comes alone
 * against it, but for the first packet of a message that follows another one that was cut into packets.
 */
static void judge_plain(struct udp *u)
{
	struct inlet *line = &u->line;
	uint32_t len = u->in[0].msg_len;

	if (line->streak)
		line->run++;
	else if (!line->cut)
		line->run = 0;
	line->first = line->streak ? line->first : len;
	line->cut = line->streak && line->first >= LEAST_FIRST && len <= line->first;
	if (line->run == RUN)
		end_plain(u);
}

/* The line has brought nothing. Those who share it and have no word in common cannot know when others begin. */
static bool may_be_plain(const struct udp *u)
{
	return u->line.run == SINGLES && !u->plain && (!u->shared || u->agreed != &u->alone);
}

/* Must the kernel say who has sent what comes by the line? Once, until its word has changed again. */
static bool asks_sender(const struct udp *u)
{
	return u->known != u->word;
}

/* Bytes or negative, with errno. */
static ssize_t receive_plain(struct udp *u, int fd)
{
	bool asks = asks_sender(u);

	return syscall(SYS_recvfrom, fd, u->in_piece[0].iov_base, (size_t)SLOT_BYTES, 0,
		asks ? &u->in_name[0] : NULL, asks ? &u->in[0].msg_hdr.msg_namelen : NULL);
}

/*
 * Messages that have come, or 0. The calls are not the C library's: those are points where a thread can be cancelled,
 * and the host's thread holds our locks here.
 */
static int receive(struct udp *u, struct inlet *in)
{
	int n;

	u->plain = in == &u->line && is_plain(u);
	if (u->plain) {
		ssize_t len = receive_plain(u, in->fd);

		u->in[0].msg_len = (unsigned)len;
		n = len < 0 ? -1 : 1;
	} else if (in->width == 1) {
		ssize_t len = syscall(SYS_recvmsg, in->fd, &u->in[0].msg_hdr, 0);

		u->in[0].msg_len = (unsigned)len;
		n = len < 0 ? -1 : 1;
	} else {
		n = (int)syscall(SYS_recvmmsg, in->fd, u->in, (unsigned)in->width, 0, NULL);
	}
	if (n < 0) {
		in->width = 1;
		in->streak = false;
		in->empty++;
		if (errno != EAGAIN && errno != EINTR)
			hear(u);
		else if (in == &u->line && may_be_plain(u))
			begin_plain(u);
		return 0;
	}
	u->counters.calls_in++;
	if (in == &u->line) {
		u->main.run = 0;
		if (u->plain)
			judge_plain(u);
		else
			judge_joining(u, n);
	}
	in->width = next_width(u, in, n);
	in->streak = true;
	in->empty = 0;
	u->filler = in;
	u->slot = 0;
	u->filled = n;
	return n;
}

static rwk_outline void read_control(struct udp *u, struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		int size; /* or traffic class */

		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
			u->segment = size > 0 ? (uint32_t)size : u->segment;
			u->counters.batches_in++;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(u->at, CMSG_DATA(c) + offsetof(struct in6_pktinfo, ipi6_addr), 16);
			u->arrived = true;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memset(u->at, 0, 10);
			memset(u->at + 10, 0xff, 2);
			memcpy(u->at + 12, CMSG_DATA(c) + offsetof(struct in_pktinfo, ipi_addr), 4);
			u->arrived = true;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			u->congested = (*CMSG_DATA(c) & CE) == CE;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
			u->congested = (size & CE) == CE;
		}
	}
}

/* The first packet of a slot: what the kernel says of it. */
static void begin_slot(struct udp *u)
{
	struct mmsghdr *m = &u->in[u->slot];

	u->congested = false;
	if (u->plain) {
		if (asks_sender(u)) {
			u->line_peer = rwk_udp_from_name(&u->in_name[0]);
			u->known = u->word;
			reset_slot(u, 0);
		}
		u->from = u->line_peer;
		u->segment = m->msg_len;
		u->arrived = true;
		memcpy(u->at, u->line_ip, sizeof(u->at));
		return;
	}
	u->from = rwk_udp_from_name(&u->in_name[u->slot]);
	u->segment = m->msg_len;
	u->arrived = u->filler == &u->line;
	if (u->arrived)
		memcpy(u->at, u->line_ip, sizeof(u->at));
	if (m->msg_hdr.msg_controllen)
		read_control(u, &m->msg_hdr);
	reset_slot(u, u->slot);
}

/* Hands out the packets of one slot, at most `budget`; returns how many. */
static int deliver(struct udp *u, int budget)
{
	uint8_t *bytes = u->in_piece[u->slot].iov_base;
	uint32_t end = u->in[u->slot].msg_len;
	int done = 0;

	if (!u->offset)
		begin_slot(u);
	if (rwk_unlikely(u->shared) && !u->offset && !u->slot && u->filler == &u->main)
		rwk_udp_judge_shared(u);
	do {
		uint32_t at = u->offset, len = end - at < u->segment ? end - at : u->segment;

		u->offset += len;
		u->counters.bytes_in += len;
		if (rwk_unlikely(u->congested) && len > FECN_BYTE) {
			bytes[at + FECN_BYTE] |= FECN;
			u->counters.congested++;
		}
		u->pub.packet(u->pub.user, &u->from, bytes + at, len);
		done++;
	} while (u->offset < end && done < budget);
	if (u->offset == end) {
		u->offset = 0;
		u->slot++;
		u->arrived = false;
	}
	u->counters.packets_in += (unsigned)done;
	return done;
}

/* Which socket to ask beside the one that has brought something last; NULL: none now. */
static struct inlet *other(struct udp *u)
{
	struct inlet *in = u->filler == &u->main ? &u->line : &u->main;

	u->turn++;
	return in->fd >= 0 && (in->empty < QUIET || u->turn % SELDOM == 0) ? in : NULL;
}

/* Something is in the slots then. */
static bool receive_any(struct udp *u)
{
	struct inlet *in = other(u);

	return (in && receive(u, in)) || receive(u, u->filler);
}

int rwk_udp_progress(struct rwk_link *l, int budget)
{
	struct udp *u = rwk_udp_of(l);
	int done = 0;

	if (rwk_unlikely(u->waiting))
		rwk_udp_flush(l);
	if (rwk_unlikely(u->notice))
		hear(u);
	if (u->slot == u->filled && !receive_any(u))
		return 0;
	while (done < budget && u->slot < u->filled)
		done += deliver(u, budget - done);
	return done;
}
