/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link on ordinary UDP sockets: one unconnected, non-blocking socket, and for the favourite a connected one beside
 * it on the same port; no privilege. It may lose, duplicate and reorder. One thread at a time.
 *
 *   batch   packets of one size to one destination (the last may be shorter) that one call gives to the kernel, which
 *           cuts them apart (UDP_SEGMENT); the other way round, packets that the kernel has joined (UDP_GRO)
 *   room    bytes of packets that may wait in the socket's receive buffer without being dropped
 *   route   what the kernel says of the way to an IP: source address, MTU; asked once and kept. A link on all addresses
 *           sends from that source for good, whatever the kernel would choose later: peers know it by that one.
 *
 * IPs are 16 bytes: IPv6, or IPv4 mapped into it, as in struct rwk_address. Ports are in the host's byte order.
 *
 * send says -EMSGSIZE to a packet longer than mtu has ever been. mtu can become smaller, when an interface or the path
 * is narrower than it was. Peers that have agreed on packets of the old length are to go on: from then on the kernel
 * cuts into fragments what does not fit (and what a router had refused by then is lost). A strict link has no
 * fragments: it drops such packets (too_long), and says -EMSGSIZE to the next. A way that swallows long packets without
 * a word of ICMP is not noticed here (but by ../../packet/narrow.c). Whether a way is as wide again as it was is asked
 * of the kernel every two seconds while it is used. Destinations that the kernel refuses to send to (no route, a
 * firewall) are no error of send either: their packets are dropped (failed).
 *
 * Routers may mark congestion on our packets (ECN). A packet that comes with that mark is handed on with FECN set in
 * its BTH, where the machines look for it; on a line that is read in the short way marks are not seen.
 *
 * Every IPv4 packet has DF set but for the fragments; its identification is 0, in a batch its place there (0, 1, 2,
 * ...), and towards the favourite whatever the kernel likes. IPv6 has none.
 */
#ifndef RWK_UDP_H
#define RWK_UDP_H

#include "link.h"

#include <stdatomic.h>

#define RWK_UDP_RECEIVE_BUFFER (4u << 20) /* bytes: what is asked for by default */
#define RWK_UDP_RECEIVE_LEAST  (64 << 10) /* and at least: what has no room for a burst in one piece may drop each */
#define RWK_UDP_ROOM_PACKET    1024u      /* bytes: what the shortest packet counts as in rwk_udp_room */

struct rwk_udp_attr {
	uint8_t ip[16];                 /* to bind to; zero: all addresses of this host, IPv4 and IPv6 */
	uint16_t port;                  /* 0: one of the range; without a range the kernel's choice */
	uint16_t port_first, port_last; /* the range, both ends in it; 0 and 0: none */
	int receive_buffer;             /* bytes to ask for; 0: RWK_UDP_RECEIVE_BUFFER. The kernel may give less. */
	bool strict; /* the peers are not our own ends: no batches over IPv4 and no favourite, so that each
			identification is 0 */
};

/** What has happened so far. */
struct rwk_udp_counters {
	uint64_t packets_out, bytes_out; /* given to the kernel */
	uint64_t batches_out;            /* messages of more than one packet among them */
	uint64_t calls_out;              /* system calls that sent something */
	uint64_t packets_in, bytes_in;   /* handed to `packet` */
	uint64_t batches_in;             /* messages that the kernel had joined */
	uint64_t calls_in;               /* system calls that brought something */
	uint64_t refused;                /* -EAGAIN said by send */
	uint64_t no_room;                /* the kernel had no room for what was to be sent, and it waits */
	uint64_t failed;                 /* packets dropped because the kernel does not send to that destination */
	uint64_t too_long;               /* packets dropped because the way there has become narrower */
	uint64_t notices;                /* ICMP errors heard; those of a closed port are given as word */
	uint64_t congested;              /* packets in that had been marked on their way */
	uint64_t lines;                  /* times that a favourite got a line */
	uint64_t overruns;               /* datagrams for which the kernel had no room in the receive buffer */
};

/**
 * Opens a link; `packet`, `word` and `user` are the caller's to set before the first progress. 0 and *l set.
 * -EADDRINUSE: the port, or each of the range, is taken; -EADDRNOTAVAIL: the IP is none of this host's; -EINVAL: the
 * range ends before it begins, or begins at 0; -EACCES: a port below 1024; -EMFILE, -ENOMEM. What went wrong has been
 * logged. Makes system calls, never waits. Ended by the link's close, which drops what has not been flushed.
 */
int rwk_udp_open(const struct rwk_udp_attr *attr, struct rwk_link **l);

/**
 * A link on a socket that is open already: one that rwk_udp_open has made, here or in another process of this host,
 * which shares it. A packet goes to one of those who ask for it. `line` is what rwk_udp_spare has made for it; if it is
 * anything else, the link never has a favourite. How long packets may be is agreed elsewhere: what a way does not carry
 * whole goes in fragments, and only what UDP cannot say is refused with -EMSGSIZE. The descriptors stay the caller's. 0
 * and *l set; -EINVAL: `fd` is no such socket; -EMFILE, -ENOMEM.
 */
int rwk_udp_adopt(int fd, int line, struct rwk_link **l);
/**
 * A socket for the favourite of those who will share that link's: its descriptor, the caller's; or a negative errno.
 * `ip` is that of this host which peers write to. To be made before anybody does: a packet may be lost.
 */
int rwk_udp_spare(struct rwk_link *l, const uint8_t ip[16]);

/**
 * Those who share a line agree on how to read it by a word that they share, which is 0 at first. Before the first
 * progress; the word has to be there as long as the link makes progress. Whatever is written into it, packets are lost
 * at worst, provided that their ICRC is looked at, which covers whom they are from. Without it the line is read in the
 * dearer way.
 */
void rwk_udp_agree(struct rwk_link *l, _Atomic uint32_t *word);

/** The port the link is bound to. */
uint16_t rwk_udp_port(const struct rwk_link *l);

/**
 * Bytes of packets that may wait unread at this end without one being dropped: the windows of all peers together. A
 * packet counts with its length, at least RWK_UDP_ROOM_PACKET. It is a quarter of what getsockopt says the buffer has,
 * because the kernel charges for the memory that a packet lies in, not for its bytes: up to 2.7 times its length from
 * 1024 bytes on (an allocation of a power of two, its own header), and because it may give back what has been read
 * only when that is a quarter of the buffer. A driver that spends a page on each frame of 1500 bytes goes beyond that.
 */
size_t rwk_udp_room(const struct rwk_link *l);

void rwk_udp_get_counters(const struct rwk_link *l, struct rwk_udp_counters *c);

/** The link's name for that IP and port, and back. */
struct rwk_link_address rwk_udp_address(const uint8_t ip[16], uint16_t port);
void rwk_udp_split(const struct rwk_link_address *a, uint8_t ip[16], uint16_t *port);

/**
 * Which of this host's addresses others should be told. Of the interfaces that are up and match `include` (all if it
 * is NULL or empty) and not `exclude`: the earlier in `include` first, then the one that the default route leaves by,
 * then ordinary ones, then bridges and those without a carrier, and loopback if there is nothing else; IPv4 before
 * IPv6; never a link-local IPv6 address. Both lists have interface names and networks ("eth0,10.1.0.0/16,fd00::/8"),
 * separated by commas. 0 and ip set. -EINVAL: a list is malformed; -EADDRNOTAVAIL: nothing matches; `why` (of `size`
 * bytes) then has a sentence for the user. Makes system calls, never waits.
 */
int rwk_udp_own_ip(const char *include, const char *exclude, uint8_t ip[16], char *why, size_t size);

/**
 * Do packets to that place leave from one IP, whichever of two links of this host they go by? Those of links on all
 * addresses do; else there has to be a way there.
 */
bool rwk_udp_same_source(struct rwk_link *l, struct rwk_link *other, const struct rwk_link_address *to);

/**
 * The address of this host by which packets to `peer` leave. 0 and source set; -ENETUNREACH, -EHOSTUNREACH and the
 * like: there is no route to it. No packet is sent.
 */
int rwk_udp_route_ip(const uint8_t peer[16], uint8_t source[16]);
/**
 * The same of this link's packets, which come from there for good; but `anew`: no peer at that host knows them by their
 * source, and it may become another.
 */
int rwk_udp_source(struct rwk_link *l, const uint8_t peer[16], bool anew, uint8_t source[16]);

#endif
