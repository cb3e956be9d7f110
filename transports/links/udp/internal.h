/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the UDP link share.
 *
 *   message   what one msghdr gives to the kernel: a packet, or a batch
 *   staged    taken by send, not yet given to the kernel. The pieces of a message lie in `copy` or, the long ones, with
 *             the caller; once the kernel has refused, all of it lies in `held` and nothing else is taken (`waiting`).
 *   slot      a buffer of the receive pool: what one msghdr has brought, a packet or several joined
 *   notice    an entry of a socket's error queue: an ICMP error, or a packet that was too long
 *   main      the socket that all peers write to and are written to by, but for the one that has the line
 *   line      a socket for the favourite alone (line.c)
 *   plain     of a call that receives: it brings one packet's bytes, and neither its sender nor control data
 *
 * Invariants: messages [first, messages) are staged; open, if not NULL, is the last of them, for `to`, and can be
 * joined; slots [slot, filled) have not been delivered in full, the first of them up to `offset`.
 */
#ifndef RWK_UDP_INTERNAL_H
#define RWK_UDP_INTERNAL_H

#include "links/udp/udp.h"

#include "base/compiler.h"
#include "base/copy.h"
#include "base/hash_table.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define PACKET_MAX 65527          /* bytes: what the length fields of IPv6 can say; those of IPv4, 20 less */
#define MESSAGES   64             /* staged at most */
#define RUN_OUT    64             /* packets in full batches, one behind the other, that do not wait for others */
#define PIECES     1024           /* of all of them; the kernel takes as many of one */
#define JOINED_MAX 2048u          /* bytes of a packet that goes alone, up to which its pieces are joined */
#define STAGED_MAX (256u << 10)   /* bytes of all of them */
#define SEGMENTS   64             /* packets of a batch: what all kernels with UDP_SEGMENT take */
#define SLOTS      16             /* of the receive pool */
#define SLOT_BYTES (65536u + 192) /* any datagram; the rest keeps slots out of each other's cache sets */
/* From the beginning of a page, as the kernel's copy of a batch has it: it uses a string copy (../../../src/base/copy.h),
 * and 16 bytes behind one, where malloc begins, 60 KB took 33 us in place of 5. */
#define POOL_BYTES (((size_t)SLOTS * SLOT_BYTES + RWK_COPY_PAGE - 1) / RWK_COPY_PAGE * RWK_COPY_PAGE)
#define SINGLES    32             /* short packets that came one by one, after which a line is read by plain calls */
#define RUN        4              /* packets one behind the other that end this */

union socket_name {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** struct rwk_link_address, as this link sees it. */
struct place {
	uint8_t ip[16];
	uint16_t port; /* big-endian */
	uint16_t zero;
	uint32_t scope; /* of a link-local IPv6 address, else 0 */
};
_Static_assert(sizeof(struct place) == sizeof(struct rwk_link_address), "a place is an address");

struct message {
	uint32_t size;     /* bytes of a packet; the last may be shorter */
	uint32_t segments; /* packets */
	uint32_t bytes;
	bool by_line;
};

/** The line's word, on which those who share one agree: */
#define LINE_PLAIN 1u /* it is read by plain calls, and the kernel joins no packets */
#define LINE_TURN  2u /* it was turned to another peer once more: all bits from here on count */

/** A socket, as who reads it sees it. */
struct inlet {
	int fd;         /* -1: there is none */
	int width;      /* slots to offer next time */
	bool streak;    /* the last call brought something */
	uint8_t run;    /* of the line: packets in a row that spoke for the other way to read it; of main, if it is
			   shared: messages in a row from one sender */
	bool cut;       /* read by plain calls: the last packet is of the message that the one before it begins or is in, */
	uint32_t first; /* and bytes of the first packet behind calls that brought nothing */
	uint32_t empty; /* calls since something came */
};

struct route {
	struct rwk_hash_link in_table;
	uint8_t ip[16];
	uint8_t source[16]; /* what the kernel chose first: peers know us by it */
	uint32_t scope;
	uint32_t mtu;      /* bytes of a packet */
	uint32_t widest;   /* the most that this has been */
	bool changed;      /* the MTU is to be asked for again */
	uint64_t asked_at; /* ns: when it was asked for again last */
};

/** Where a message is from, and the packets that it is to be cut into. */
union send_control {
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
	struct cmsghdr align;
};

union receive_control {
	char room[2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct cmsghdr align;
};

struct udp {
	struct rwk_link pub;
	struct inlet main, line;
	int family;    /* of main: AF_INET6, which carries IPv4 too; AF_INET where there is no IPv6 */
	bool wildcard; /* bound to no IP */
	bool strict;
	bool shared; /* main and line are other processes' too; favourite: who sent the last packet by main */
	bool gso; /* the kernel cuts batches */
	uint16_t port;
	uint8_t ip[16]; /* bound to */
	int receive_buffer;
	struct rwk_link_address favourite; /* zero: nobody */
	uint8_t line_ip[16];               /* ours, of the line */
	uint64_t line_maker;               /* whose the line is; in a child of its it is another's */
	_Atomic uint32_t *agreed;          /* the line's word: of one that is shared where all see it, or if they have */
	_Atomic uint32_t alone;            /* none, and of one that is not, this */
	uint32_t word;                     /* what it said at the last look, */
	uint32_t known;                    /* and at the one by which it was known who is at its other end: */
	struct rwk_link_address line_peer;

	/* Sending. */
	bool waiting;
	bool fragments;             /* the kernel may cut packets that a way does not carry whole */
	bool notice;                /* there may be one */
	bool told;                  /* that packets have failed */
	struct rwk_link_address to; /* of the last packet; zero: none */
	uint32_t whole;             /* bytes of a packet to `to` that the way carries as it is, */
	uint32_t limit;             /* of one that may be sent, */
	uint32_t joinable;          /* and of one that can be in a batch; 0: none can */
	uint32_t longest;           /* bytes: what mtu has said, of whatever way; of an adopted link PACKET_MAX */
	bool by_line;               /* `to` is the favourite */
	bool says_source;           /* packets to `to` by main are to leave from here, and the kernel is told: */
	uint8_t source[16];
	int messages, first, pieces;
	uint32_t copied, staged;
	struct message *open;

	/* Receiving. */
	int slot, filled;
	uint32_t turn;
	struct inlet *filler; /* the socket that has filled the slots last */
	bool plain;           /* by a plain call */
	uint32_t offset, segment;
	struct rwk_link_address from; /* of the slot that is being delivered */
	bool arrived;                 /* `at` is the address that it was sent to */
	bool congested;               /* its packets have met congestion */
	uint8_t at[16];
	uint8_t *pool;

	struct rwk_udp_counters counters;
	uint8_t *held;

	struct message message[MESSAGES];
	struct mmsghdr out[MESSAGES];
	union socket_name out_name[MESSAGES];
	union send_control out_control[MESSAGES];
	struct iovec out_held[MESSAGES];
	struct iovec piece[PIECES];
	struct mmsghdr in[SLOTS];
	union socket_name in_name[SLOTS];
	union receive_control in_control[SLOTS];
	struct iovec in_piece[SLOTS];
	struct rwk_hash_table routes;
	int asking;               /* of a link on all addresses: asks the kernel for routes (route.c); else -1 */
	uint8_t copy[STAGED_MAX]; /* of short pieces, and of packets that were made here */
};

static inline struct udp *rwk_udp_of(const struct rwk_link *l)
{
	return rwk_container_of(l, struct udp, pub);
}

static inline struct place rwk_udp_place(const struct rwk_link_address *a)
{
	struct place p;

	memcpy(&p, a, sizeof(p));
	return p;
}

static inline bool rwk_udp_is_ip4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(ip, mapped, sizeof(mapped));
}

/** Fills *name for a socket of that family; returns its length. An IPv6 address stays one: AF_INET then refuses it. */
socklen_t rwk_udp_to_name(int family, const struct rwk_link_address *a, union socket_name *name);
struct rwk_link_address rwk_udp_from_name(const union socket_name *name);

/**
 * The way to a place: as it is known, or asked for now (a few system calls); NULL: there is none, and never was; errno
 * says why. Its source stays the same, whatever the kernel would choose later (but rwk_udp_source). What it points to
 * is good until the next call.
 */
const struct route *rwk_udp_route(struct udp *u, const struct rwk_link_address *to);
/** It has changed: its MTU is asked for again when it is needed next. */
void rwk_udp_forget_route(struct udp *u, const struct rwk_link_address *to);
/** A way is as wide again as it was. If another is not, the next packet that is too long for it says so. */
void rwk_udp_forbid_fragments(struct udp *u);
void rwk_udp_init_routes(struct udp *u);
/** Once it is known which addresses the link has. 0; negative errno, which has been told to the user. */
int rwk_udp_open_asking(struct udp *u);
void rwk_udp_free_routes(struct udp *u);

/** Sets the options that every socket of the link has. 0 or negative errno: one that is needed is not to be had. */
int rwk_udp_set_options(int fd, int family, int receive_buffer);
int rwk_udp_set(int fd, int level, int name, int value);
/**
 * May the kernel join the socket's packets, and say so, and which of them have met congestion? Plain calls take
 * neither, and what it says to nobody costs it 25 ns for each packet.
 */
void rwk_udp_join(int fd, bool may);
void rwk_udp_read_drops(const struct inlet *in, uint64_t *drops);

void rwk_udp_favour(struct rwk_link *l, const struct rwk_link_address *peer);
/** The staged message i, which was for the line, goes by main, from that IP. */
void rwk_udp_by_main(struct udp *u, int i, const uint8_t source[16]);
/** That socket is the line from now on, if it is one for the port; else there is none. */
void rwk_udp_adopt_line(struct udp *u, int fd);
/** Main has brought something to who shares it, what `from` has sent first: perhaps the line is turned to it. */
void rwk_udp_judge_shared(struct udp *u);
/** Ends the line, if there is one: what is staged for it goes by main. */
void rwk_udp_line_end(struct udp *u);

size_t rwk_udp_mtu(struct rwk_link *l, const struct rwk_link_address *to);
int rwk_udp_send(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count);
void *rwk_udp_reserve(struct rwk_link *l, const struct rwk_link_address *to, size_t len);
int rwk_udp_hasten(struct rwk_link *l, const struct rwk_link_address *to, const void *bytes, size_t len);
void rwk_udp_flush(struct rwk_link *l);
int rwk_udp_progress(struct rwk_link *l, int budget);
void rwk_udp_init_receive(struct udp *u);
size_t rwk_udp_pseudo(
	struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len, uint16_t id, uint8_t *out);

#endif
