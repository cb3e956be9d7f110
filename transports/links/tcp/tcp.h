/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP link (link.h): streams to the processes of peers. It serves two purposes: a stream is a sentinel, which the
 * kernel keeps alive while the process exists, running or stopped, and breaks when it ends; and it carries packets
 * where UDP does not get through.
 *
 *   stream     to one process, in both directions; there is at most one between two processes, whoever began it. (Two,
 *              if both begin one at once, each at an address of which it does not know whose it is)
 *   nonce      who a process is: drawn at random by it; a restarted one has another
 *   secret     what the processes of a job share; an end that does not prove that it knows it is a stranger
 *   goodbye    what an end sends that leaves in good order; a stream that ends without one ended with its process
 *
 * What is evidence of what, as `word` (link.h) tells it:
 *
 *   0              the stream is open; also when the peer began it
 *   -ECONNRESET    the stream was open and ended without a goodbye, and the process does not answer where it listened:
 *                  it has ended. (It is asked, because an end whose kernel gives a stream up for silence looks the
 *                  same.)
 *   -ECONNREFUSED  nobody listens there. A process that was there before has ended; a firewall that rejects says the
 *                  same of one that never was.
 *   -ESTALE        a process of the job listens there, but not the one asked for: that one has ended
 *   -ESHUTDOWN     the peer has left in good order: no death
 *   -ETIMEDOUT, -EHOSTUNREACH   no way through: a firewall, a cut, a host that is gone; or the stream broke, and its
 *                  process is alive. No evidence about the process.
 *   -EACCES        whoever listens there does not know the secret, or is no link of this kind
 *   -EPROTONOSUPPORT  a link of another version
 *   -EPROTO        the peer broke the rules of a stream; it was left
 *   -EMFILE, -EADDRNOTAVAIL, -ENOMEM, -ENOBUFS   something is missing at this end; nothing is known about the peer
 *
 * After a negative word the stream is gone; before it, all packets that had come were delivered. A stopped process
 * (SIGSTOP, a debugger) leads to no word, for as long as it is stopped: its kernel answers, accepts connections and
 * keeps what is sent. A host that has vanished is noticed about three seconds later, if this end's progress is called
 * (see socket.c; longer where the stream was full because its reader was stopped, up to as long again).
 * A child forked without exec shares its parent's sockets: it hides the parent's death until it ends or execs.
 *
 * Nothing blocks. One thread at a time. Upcalls come from progress; they may call send, flush, rwk_tcp_reach and
 * rwk_tcp_leave, not progress or close.
 */
#ifndef RWK_LINKS_TCP_H
#define RWK_LINKS_TCP_H

#include "framing.h"
#include "link.h"

#include <stdint.h>

#define RWK_TCP_MTU RWK_FRAME_MAX /* bytes of the longest packet */

struct rwk_tcp_attr {
	uint8_t ip[16];                 /* where to listen, and where streams come from: IPv6, or IPv4 mapped into it;
					   zero: any */
	uint16_t port;                  /* to listen at; 0: any */
	uint16_t port_first, port_last; /* with port 0: one of these, both included; both 0: any */
	bool another;                   /* will be tried if that port is taken, of which nothing is said then */
	uint64_t nonce;                 /* this process; not 0, below 2^48 */
	uint64_t secret[2];             /* the job's */
	uint32_t connect_ms;            /* a connection that is not answered for so long has no way through; 0: 5000 */
	uint32_t stranger_ms;           /* so long may one who has connected take to show that he is none; 0: 5000 */
	uint32_t strangers;             /* so many may be about to show it at once; 0: 128 */
};

/** What has happened so far. */
struct rwk_tcp_counts {
	uint64_t opened; /* streams */
	uint64_t broken; /* that ended without a goodbye */
	uint64_t packets_out, bytes_out, packets_in, bytes_in;
	uint64_t full;        /* times that send said -EAGAIN */
	uint64_t strangers;   /* connections dropped: wrong magic, wrong proof */
	uint64_t silent;      /* connections dropped: too slow to prove anything, or pushed out by others */
	uint64_t again;       /* own attempts made again: the peer let go before the stream was open */
	uint64_t meetings;    /* streams given up for the one that the peer had begun at the same time */
	uint64_t accept_full; /* times that no descriptor was left for a peer who had connected */
};

/**
 * Makes a link that listens. `packet`, `word` and `user` of the link are the caller's to set before anything else.
 * 0 and *l set; -EADDRINUSE; -EADDRNOTAVAIL: the ip is none of this host; -EINVAL: no nonce; -EMFILE; -ENOMEM. Its
 * close leaves every stream as far as that can be done without waiting.
 */
int rwk_tcp_open(const struct rwk_tcp_attr *attr, struct rwk_link **l);

/** Where it listens. */
uint16_t rwk_tcp_port(const struct rwk_link *l);

/** The address of who listens at ip (IPv6 or mapped IPv4, 16 bytes) and port: the same bytes as on the udp link. */
struct rwk_link_address rwk_tcp_address(const uint8_t ip[16], uint16_t port);

/**
 * Wants a stream to the process with that nonce (0: whoever is there) at `to`. `word` tells how it went; if it is open
 * already, that it is. 0; -EINVAL: no port, or this link itself; -EEXIST: there is, or begins, a stream to a process
 * with another nonce at that address, which must end first; -ENOMEM. A stream that the peer began under another of its
 * addresses is from then on at `to`.
 */
int rwk_tcp_reach(struct rwk_link *l, const struct rwk_link_address *to, uint64_t nonce);

/**
 * Ends the stream to `to`, or what is on the way to one, in good order: packets that send has taken still go, the peer
 * hears -ESHUTDOWN. No more word of it here; packets that come are dropped.
 */
void rwk_tcp_leave(struct rwk_link *l, const struct rwk_link_address *to);

/**
 * Puts the open stream to `to` into an epoll set of the caller's, which other processes may look into as well, as one
 * that hangs up (EPOLLRDHUP) with `key` in its event. It is there, as it is then, until the word of its end has been
 * told, or it is left, or this process ends. 0; -ENOTCONN; -ENOSPC, -ENOMEM: the kernel has no room. Once more: with
 * another key, in the same set.
 */
int rwk_tcp_watch(struct rwk_link *l, const struct rwk_link_address *to, int epoll, uint64_t key);

/**
 * The nonce of the process that the open stream to `to` leads to; 0: there is none. While `word` is told of `to`: of
 * the process that it is about, which need not be the one that is there now; 0: of whoever was there.
 */
uint64_t rwk_tcp_nonce(struct rwk_link *l, const struct rwk_link_address *to);

const struct rwk_tcp_counts *rwk_tcp_counts(const struct rwk_link *l);

/*
 * Of link.h's calls: send says -ENOTCONN where no stream is open (or none any more: the word may still be on its way),
 * -EMSGSIZE beyond RWK_TCP_MTU, -EAGAIN while the stream's buffer (256 KiB) is full. What it has taken is delivered in
 * order and once, or the stream breaks. A progress that finds nothing costs one epoll_wait that does not wait.
 */

#endif
