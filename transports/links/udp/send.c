/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. A packet joins the open message if it may, else it begins one; a message is open as long as its packets are
 * of one size and the destination does not change. flush gives all of them to the kernel by one call if it can.
 *
 * If the kernel has no room, what is left is copied into `held` and waits there for the next flush or progress. Any
 * other error may be that of an earlier packet (an ICMP error is reported by whatever call comes next, which then has
 * sent nothing), so the call is repeated before the packet is given up.
 */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include "base/cancel.h"
#include "base/copy.h"
#include "base/iov.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 3

/* Turns to another destination. If there is no way to it now, it is for the kernel to say so of each packet. */
static rwk_noinline void aim(struct udp *u, const struct rwk_link_address *to)
{
	const struct route *r = rwk_udp_route(u, to);

	u->whole = r ? r->mtu : PACKET_MAX;
	u->joinable = u->gso && !(u->strict && rwk_udp_is_ip4(to->byte)) ? u->whole : 0;
	u->limit = u->whole;
	if (!u->strict && u->limit < u->longest)
		u->limit = u->longest; /* in fragments, if the way has become narrower */
	u->to = *to;
	u->by_line = u->line.fd >= 0 && !u->shared && !memcmp(to, &u->favourite, sizeof(*to));
	u->says_source = u->wildcard && r;
	if (u->says_source)
		memcpy(u->source, r->source, sizeof(u->source));
	u->open = NULL;
}

/* Aims at `to` if need be: each time for a packet that the way does not carry whole, as it may do so again. */
static bool may_send(struct udp *u, const struct rwk_link_address *to, size_t len)
{
	if (rwk_likely(!memcmp(to, &u->to, sizeof(*to)) && len <= u->whole))
		return true;
	aim(u, to);
	return len <= u->limit;
}

static bool fits(const struct udp *u, size_t len, int count)
{
	return u->messages < MESSAGES && u->staged + len <= STAGED_MAX && u->pieces + count <= PIECES;
}

static rwk_noinline bool make_room(struct udp *u)
{
	rwk_udp_flush(&u->pub);
	return !u->waiting;
}

/* One entry more of a message's control data; the last is not padded: the kernel allocates for more than 36 bytes. */
static void add_control(struct msghdr *h, union send_control *room, int level, int type, const void *bytes, size_t size)
{
	size_t at = h->msg_controllen ? CMSG_ALIGN(h->msg_controllen) : 0;
	struct cmsghdr c = {.cmsg_len = CMSG_LEN(size), .cmsg_level = level, .cmsg_type = type};

	memcpy(room->room + at, &c, sizeof(c));
	memcpy(room->room + at + CMSG_LEN(0), bytes, size);
	h->msg_control = room->room;
	h->msg_controllen = at + CMSG_LEN(size);
}

/* Whom the message is from: another address would not be that of its packets' ICRC. It is the first control data. */
static void say_source(const struct udp *u, struct msghdr *h, union send_control *room, const uint8_t ip[16])
{
	struct in6_pktinfo from = {.ipi6_ifindex = 0};
	struct in_pktinfo from4 = {.ipi_ifindex = 0};

	if (rwk_likely(u->family == AF_INET6)) {
		memcpy(&from.ipi6_addr, ip, sizeof(from.ipi6_addr));
		add_control(h, room, IPPROTO_IPV6, IPV6_PKTINFO, &from, sizeof(from));
	} else {
		memcpy(&from4.ipi_spec_dst, ip + 12, sizeof(from4.ipi_spec_dst));
		add_control(h, room, IPPROTO_IP, IP_PKTINFO, &from4, sizeof(from4));
	}
}

/* Lets the kernel cut the message into packets of its size. */
static rwk_outline void make_batch(struct udp *u, int i)
{
	uint16_t size = (uint16_t)u->message[i].size;

	add_control(&u->out[i].msg_hdr, &u->out_control[i], SOL_UDP, UDP_SEGMENT, &size, sizeof(size));
}

void rwk_udp_by_main(struct udp *u, int i, const uint8_t source[16])
{
	struct msghdr *h = &u->out[i].msg_hdr;

	u->message[i].by_line = false;
	h->msg_name = &u->out_name[i];
	h->msg_namelen = u->family == AF_INET ? sizeof(u->out_name->in) : sizeof(u->out_name->in6);
	h->msg_controllen = 0;
	if (u->wildcard)
		say_source(u, h, &u->out_control[i], source);
	if (u->message[i].segments > 1)
		make_batch(u, i);
}

static struct message *begin_message(struct udp *u, size_t len)
{
	int i = u->messages++;
	struct msghdr *h = &u->out[i].msg_hdr;

	h->msg_namelen = rwk_udp_to_name(u->family, &u->to, &u->out_name[i]);
	h->msg_name = &u->out_name[i];
	h->msg_iov = &u->piece[u->pieces];
	h->msg_iovlen = 0;
	h->msg_controllen = 0;
	if (u->by_line) { /* with a name the kernel would look for the way again */
		h->msg_name = NULL;
		h->msg_namelen = 0;
	} else if (u->says_source) {
		say_source(u, h, &u->out_control[i], u->source);
	}
	u->message[i] = (struct message){.size = (uint32_t)len, .by_line = u->by_line};
	return &u->message[i];
}

/* So many bytes more of the message, in memory of our own: the last piece becomes longer if it ends there. */
static uint8_t *copied_piece(struct udp *u, struct msghdr *h, size_t len)
{
	struct iovec *last = h->msg_iov + h->msg_iovlen - 1;
	uint8_t *to = u->copy + u->copied;

	u->copied += (uint32_t)len;
	if (h->msg_iovlen && (uint8_t *)last->iov_base + last->iov_len == to) {
		last->iov_len += len;
	} else {
		h->msg_iov[h->msg_iovlen++] = (struct iovec){to, len};
		u->pieces++;
	}
	return to;
}

static void put_piece(struct udp *u, struct msghdr *h, const struct iovec *from)
{
	size_t len = from->iov_len;

	if (len > RWK_LINK_COPIED) {
		h->msg_iov[h->msg_iovlen++] = *from;
		u->pieces++;
	} else if (len <= RWK_COPY_SHORT_MAX) {
		rwk_copy_short(copied_piece(u, h, len), from->iov_base, len);
	} else {
		memcpy(copied_piece(u, h, len), from->iov_base, len);
	}
}

static bool joins(const struct udp *u, size_t len)
{
	const struct message *m = u->open;

	return m && len && len <= m->size && m->segments < SEGMENTS && m->bytes + len <= RWK_LINK_BATCH;
}

static bool is_full(const struct message *m)
{
	return m->segments == SEGMENTS || m->bytes + m->size > RWK_LINK_BATCH;
}

/*
 * Another message is to begin. What ends with full batches is on its way while the rest is made, if these are of many
 * packets: to make them takes as long as to send them. Not so what comes in other portions, where the peer would look
 * for each.
 */
static bool has_enough(const struct udp *u)
{
	uint32_t packets = 0;

	for (int i = u->messages - 1; i >= u->first && is_full(&u->message[i]); i--)
		packets += u->message[i].segments;
	return packets >= RUN_OUT;
}

/* The message that a packet of `len` bytes in `count` pieces belongs to; or NULL, and *refusal says why. */
static struct message *message_for(
	struct udp *u, const struct rwk_link_address *to, size_t len, int count, int *refusal)
{
	bool joined;

	*refusal = -EMSGSIZE;
	if (rwk_unlikely(!may_send(u, to, len) || count > PIECES))
		return NULL;
	joined = joins(u, len);
	if (rwk_unlikely(u->waiting || !fits(u, len, count) || (!joined && has_enough(u)))) {
		*refusal = -EAGAIN;
		if (!make_room(u))
			return NULL;
		aim(u, to); /* what was refused meanwhile may have changed the way */
		joined = false;
	}
	return joined ? u->open : begin_message(u, len);
}

/* A packet of `len` bytes is in the message, which is the last. */
static void has_joined(struct udp *u, struct message *m, size_t len)
{
	m->bytes += (uint32_t)len;
	u->staged += (uint32_t)len;
	if (++m->segments == 2)
		make_batch(u, u->messages - 1);
	u->open = len <= u->joinable && len == m->size ? m : NULL;
}

int rwk_udp_send(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	struct udp *u = rwk_udp_of(l);
	size_t len = rwk_iov_length(iov, (size_t)count);
	struct message *m;
	struct msghdr *h;
	int refusal;

	m = message_for(u, to, len, count, &refusal);
	if (rwk_unlikely(!m)) {
		u->counters.refused += refusal == -EAGAIN;
		return refusal;
	}
	h = &u->out[u->messages - 1].msg_hdr;
	for (int i = 0; i < count; i++)
		put_piece(u, h, &iov[i]);
	has_joined(u, m, len);
	return 0;
}

void *rwk_udp_reserve(struct rwk_link *l, const struct rwk_link_address *to, size_t len)
{
	struct udp *u = rwk_udp_of(l);
	int refusal;
	struct message *m = message_for(u, to, len, 1, &refusal);
	uint8_t *room;

	if (rwk_unlikely(!m))
		return NULL;
	room = copied_piece(u, &u->out[u->messages - 1].msg_hdr, len);
	has_joined(u, m, len);
	return room;
}

/* By syscall: base/cancel.h says why. */
static long hasten_by_main(struct udp *u, const void *bytes, size_t len)
{
	union socket_name name;
	union send_control control;
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr h = {.msg_name = &name,
		.msg_namelen = rwk_udp_to_name(u->family, &u->to, &name),
		.msg_iov = &iov,
		.msg_iovlen = 1};

	if (!u->says_source)
		return syscall(SYS_sendto, u->main.fd, bytes, len, 0, &name.any, h.msg_namelen);
	say_source(u, &h, &control, u->source);
	return syscall(SYS_sendmsg, u->main.fd, &h, 0);
}

int rwk_udp_hasten(struct rwk_link *l, const struct rwk_link_address *to, const void *bytes, size_t len)
{
	struct udp *u = rwk_udp_of(l);
	long r;

	if (u->messages)
		return -EAGAIN;
	if (rwk_unlikely(!may_send(u, to, len)))
		return -EMSGSIZE;
	if (rwk_likely(u->by_line))
		r = syscall(SYS_sendto, u->line.fd, bytes, len, 0, NULL, 0);
	else
		r = hasten_by_main(u, bytes, len);
	if (r < 0)
		return -errno; /* perhaps that of an earlier packet */
	u->counters.calls_out++;
	u->counters.packets_out++;
	u->counters.bytes_out += len;
	return 0;
}

/* One packet that is not long, in one piece: to copy it costs less than to have the kernel look at several pieces. */
static ssize_t give_joined(int fd, const struct msghdr *h)
{
	uint8_t bytes[JOINED_MAX];
	size_t len = rwk_iov_gather(h->msg_iov, h->msg_iovlen, 0, bytes, sizeof(bytes));
	struct iovec iov = {bytes, len};
	struct msghdr joined = *h;

	if (!h->msg_controllen)
		return sendto(fd, bytes, len, 0, h->msg_name, h->msg_namelen);
	joined.msg_iov = &iov;
	joined.msg_iovlen = 1;
	return sendmsg(fd, &joined, 0);
}

/* Messages at the front of what is staged that go by one socket. */
static int front(const struct udp *u)
{
	int n = 1;

	while (u->first + n < u->messages && u->message[u->first + n].by_line == u->message[u->first].by_line)
		n++;
	return n;
}

/* Gives the kernel what is staged for one socket; returns how many messages it took, or negative errno. */
static int give(struct udp *u)
{
	const struct message *m = &u->message[u->first];
	int n = front(u), fd = m->by_line ? u->line.fd : u->main.fd;
	struct msghdr *h = &u->out[u->first].msg_hdr;
	ssize_t r;

	if (n > 1)
		r = sendmmsg(fd, &u->out[u->first], (unsigned)n, 0);
	else if (h->msg_iovlen == 1 && !h->msg_controllen)
		r = sendto(fd, h->msg_iov->iov_base, h->msg_iov->iov_len, 0, h->msg_name, h->msg_namelen);
	else if (m->segments == 1 && m->bytes <= JOINED_MAX && h->msg_iovlen > 1)
		r = give_joined(fd, h);
	else
		r = sendmsg(fd, h, 0);
	if (r < 0)
		return -errno;
	u->counters.calls_out++;
	if (n == 1)
		return 1;
	u->notice |= r < n; /* an error ended it, which will not be reported again */
	return (int)r;
}

static void took(struct udp *u, int n)
{
	for (; n; n--, u->first++) {
		const struct message *m = &u->message[u->first];

		u->counters.packets_out += m->segments;
		u->counters.bytes_out += m->bytes;
		u->counters.batches_out += m->segments > 1;
	}
}

static bool is_lack_of_room(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == ENOMEM;
}

/* What must wait must not lie with the caller. */
static rwk_noinline void hold(struct udp *u)
{
	size_t at = 0;

	u->counters.no_room++;
	if (u->waiting)
		return;
	for (int i = u->first; i < u->messages; i++) {
		struct msghdr *h = &u->out[i].msg_hdr;
		size_t len = u->message[i].bytes;

		rwk_iov_gather(h->msg_iov, h->msg_iovlen, 0, u->held + at, len);
		u->out_held[i] = (struct iovec){u->held + at, len};
		h->msg_iov = &u->out_held[i];
		h->msg_iovlen = 1;
		at += len;
	}
	u->waiting = true;
}

static void drop(struct udp *u, const struct rwk_link_address *to, uint32_t packets, int err)
{
	char text[INET6_ADDRSTRLEN];

	if (err == EMSGSIZE) {
		u->counters.too_long += packets;
		return;
	}
	u->counters.failed += packets;
	if (u->told)
		return;
	u->told = true;
	rwk_warn("udp: packets to %s, port %u, are not sent: %s; a firewall, a route or an interface of this host "
		 "stops them",
		inet_ntop(AF_INET6, to->byte, text, sizeof(text)), ntohs(rwk_udp_place(to).port), strerror(err));
}

/* Gives the kernel the packets of the first message one by one. Did any go? */
static bool cut_apart(struct udp *u, const struct rwk_link_address *to)
{
	const struct msghdr *batch = &u->out[u->first].msg_hdr;
	const struct message *m = &u->message[u->first];
	struct iovec part[PIECES];
	struct msghdr h = {.msg_name = batch->msg_name, .msg_namelen = batch->msg_namelen, .msg_iov = part};
	const struct cmsghdr *from = CMSG_FIRSTHDR(batch);
	uint64_t before = u->counters.packets_out;

	if (from && from->cmsg_level != SOL_UDP) {
		h.msg_control = batch->msg_control;
		h.msg_controllen = from->cmsg_len;
	}
	for (size_t at = 0; at < m->bytes; at += m->size) {
		size_t len = m->bytes - at < m->size ? m->bytes - at : m->size;

		h.msg_iovlen = rwk_iov_slice(batch->msg_iov, batch->msg_iovlen, at, &len, part, PIECES);
		if (sendmsg(u->main.fd, &h, 0) < 0) {
			if (is_lack_of_room(errno))
				u->counters.no_room++; /* lost, as on the way */
			else
				drop(u, to, 1, errno);
			continue;
		}
		u->counters.calls_out++;
		u->counters.packets_out++;
		u->counters.bytes_out += len;
	}
	return u->counters.packets_out != before;
}

static void set_fragments(struct udp *u, bool may)
{
	u->fragments = may;
	rwk_udp_set(u->main.fd, IPPROTO_IP, IP_MTU_DISCOVER, may ? IP_PMTUDISC_WANT : IP_PMTUDISC_DO);
	if (u->family == AF_INET6)
		rwk_udp_set(u->main.fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, may ? IPV6_PMTUDISC_WANT : IPV6_PMTUDISC_DO);
}

/*
 * The way carries less than it did, and the peers' packets have the length that they have: from now on the kernel cuts
 * into fragments what does not fit. Only then: as long as all fits, nothing is to be cut unnoticed.
 */
static void allow_fragments(struct udp *u, uint32_t mtu)
{
	if (u->fragments)
		return;
	set_fragments(u, true);
	rwk_warn("udp: a way has become narrower, to packets of %u bytes: longer ones are sent in fragments, which is "
		 "slow",
		mtu);
}

/* Of a socket that is shared others may need them. */
void rwk_udp_forbid_fragments(struct udp *u)
{
	if (u->fragments && !u->shared)
		set_fragments(u, false);
}

/* The first message, which the kernel has refused TRIES times: done with, one way or the other. */
static rwk_noinline void refused(struct udp *u, int err)
{
	const struct message *m = &u->message[u->first];
	struct rwk_link_address to = rwk_udp_from_name(&u->out_name[u->first]);
	const struct route *r;

	if (m->by_line) { /* perhaps our address is no longer the one that it has */
		rwk_udp_line_end(u);
		return;
	}
	rwk_udp_forget_route(u, &to);
	r = rwk_udp_route(u, &to);
	if (m->segments > 1 && r && m->size > r->mtu)
		err = EMSGSIZE; /* older kernels say EINVAL of a batch */
	if (err == EMSGSIZE && r && !u->strict) {
		allow_fragments(u, r->mtu);
		cut_apart(u, &to);
	} else if (m->segments > 1 && (err == EIO || err == EINVAL)) {
		if (cut_apart(u, &to)) { /* perhaps it does not cut batches for this device */
			u->gso = false;
			rwk_info("udp: the kernel cuts no batches here; packets are sent one by one");
		}
	} else {
		drop(u, &to, m->segments, err);
	}
	u->first++;
}

/* False: there is no room for the rest. */
static bool give_all(struct udp *u)
{
	int tries = 0;

	while (u->first < u->messages) {
		int n = give(u);

		if (rwk_likely(n > 0)) {
			took(u, n);
			tries = 0;
		} else if (is_lack_of_room(-n)) {
			hold(u);
			return false;
		} else if (++tries < TRIES) {
			u->notice = true;
		} else {
			refused(u, -n);
			tries = 0;
		}
	}
	return true;
}

void rwk_udp_flush(struct rwk_link *l)
{
	struct udp *u = rwk_udp_of(l);

	if (u->first < u->messages) {
		int before = rwk_cancel_hold_off();
		bool all = give_all(u);

		rwk_cancel_as_before(before);
		if (!all)
			return;
	}
	u->messages = u->first = u->pieces = 0;
	u->copied = u->staged = 0;
	u->open = NULL;
	u->waiting = false;
}
