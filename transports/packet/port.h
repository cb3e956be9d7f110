/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet service from inside. This header has the port; the others, what their files have to do with one another.
 *
 *   port.c      links, the clock, what the client asks of a port
 *   progress.c  looking: what a progress does, timers
 *   arrive.c    packets in, and to whom they go
 *   vote.c      whom most packets are from
 *   sleep.c     the descriptor to sleep on
 *   close.c     the end of a port
 *   connect.c   the handshake, and which way a channel goes
 *   terms.c     what a greeting says of our end, and what both have agreed on
 *   names.c     which channel a greeting is about, and what the peer's name is
 *   streams.c   streams to peers' processes, and what is heard of them
 *   numbers.c   which channel has a QPN, a target or a nonce
 *   places.c    peers that are at more than one place
 *   channel.c   a channel's life: made, open, failed, gone
 *   outbound.c  messages into frames, ops into work requests
 *   requests.c  those from their beginning to their end, and without the op that they were for
 *   put.c       packets out
 *   inbound.c   frames into messages; what the peer's RDMA touches
 *   regions.c   memory that peers may reach
 *   share.c     how many packets each of those that send may have under way to us
 *   summary.c   counters for the user
 *   initiator.c SRC: connections to other nodes that channels share
 *   domain.c    SRC: what this node's processes take together
 *   evidence.c  SRC: one stream to a process of another node, for all processes of this one
 *   reach.c     SRC: reads and writes that the peer's siblings carry out as well as it does
 *   narrow.c    ways that have become narrower than what was agreed
 *   pieces.c    packets in pieces, for those
 *   pull.c      a Read where the machine has none: asks the peer to write; a Write that nobody answers: asks
 *
 * Upcalls of a machine may call the client, which may send on any channel. Nothing is pumped then: whoever has
 * something to send is in the port's list `dirty`, which is pumped when the machines are done with what has come.
 */
#ifndef RWK_PACKET_PORT_H
#define RWK_PACKET_PORT_H

#include "packet/greeting.h"
#include "packet/packet.h"
#include "packet/path.h"

#include "base/hash_table.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/spares.h"

/* DOMAIN: the socket that this node's processes take SRC's packets by; no channel goes by it. */
enum { RWK_WAY_LOSSY, RWK_WAY_STREAM, RWK_WAY_DOMAIN, RWK_WAYS };

#define RWK_KEY_TABLES      64u         /* 4 million regions */
#define RWK_PACKET_COST     512u        /* bytes that the kernel counts for a packet beside its payload, about */
#define RWK_PACKET_NARROW   1024u       /* bytes of payload that fit IPv6's least MTU, and most tunnels */
#define RWK_PACKET_LEAST    256u        /* bytes of payload that every way is believed to carry */
#define RWK_PACKET_OVERHEAD 80u         /* bytes of a packet beside its payload, at most */
#define RWK_PACKET_GSI_QKEY 0x80010000u /* of management datagrams */

struct rwk_packet_channel;

struct rwk_port {
	const struct rwk_packet_ways *ways;
	const struct rwk_transport *transport;
	struct rwk_link *link[RWK_WAYS];
	const struct rwk_client *client;
	void *cookie;
	struct rwk_address address;
	uint8_t key[32];
	struct rwk_hash_table by_qpn, by_target, by_nonce; /* channels: numbers.c */
	uint32_t unnamed;                              /* channels that are not found by a nonce: it is not known yet */
	struct rwk_packet_channel *last;               /* whose packet came last */
	struct rwk_packet_initiator *initiators;       /* by QPN */
	const struct rwk_packet_path *leader, *favourite; /* of the vote; of the link. NULL: none */
	uint32_t lead;                                 /* packets that the leader is ahead */
	struct rwk_list all, dirty, active, connecting; /* of channels: the last two by `timed` */
	struct rwk_list all_initiators, dirty_initiators;
	struct rwk_packet_domain domain;
	struct rwk_src_view *view;     /* of that domain; NULL: it is in none */
	struct rwk_packet_path answer; /* of the last acknowledgement from there */
	struct rwk_packet_ended *ended; /* channels that were shared: domain.c; NULL: none was */
	rwk_time attend_at, bury_at, evidence_at;
	struct rwk_port_attr attr; /* if shared: as it was opened with */
	bool joining;              /* nothing is decided yet about connections */
	rwk_time join_until;
	struct rwk_keys *keys[RWK_KEY_TABLES]; /* the first key_tables of them exist */
	uint32_t key_tables;
	struct rwk_pool requests, frames;
	struct rwk_spares spares; /* for the requests' copies */
	size_t copied;            /* bytes of these */
	uint64_t last_pull; /* number of a question that a peer will answer */
	uint64_t epoch;     /* counts progress */
	uint64_t own_epoch; /* when the process's own socket brought something for a channel */
	uint64_t woken_epoch; /* when it last slept */
	rwk_time left_since;  /* SRC: since then, while it sleeps, the domain's socket is left to who polls; 0: not */
	rwk_time now, deadline;
	rwk_time stream_at; /* when to look at the streams again */
	rwk_time seek_at;   /* when to look for channels without one, */
	rwk_time again_at;  /* also for those that have lost theirs; RWK_NEVER */
	rwk_time again_gap; /* how long that was put off the last time; 0: since one has come */
	rwk_time cease_until; /* the port is closed, and waits so long for its initiators to have ceased; 0: it is not */
	uint32_t by_stream; /* channels that go by it */
	uint32_t running;   /* of all channels: each waits for an acknowledgement, or for the data of a Read */
	uint32_t asking;    /* of these, those whose answer alone is waited for, by the process's own socket */
	struct rwk_list lent;     /* rwk_request.lent, in order */
	size_t lent_bytes;
	bool inside, armed, doomed, wants_shared;
	rwk_time linger_until; /* it has been left: so long it waits for its peers; 0: it has not */
	bool starved;  /* a send was told to come back after progress, which is to take all that has come */
	bool pressing; /* of what is dirty, something does not wait; */
	bool waited;   /* what can has, for a progress; */
	bool answers_due;     /* SRC: of the domain's targets something is due from this process; */
	uint8_t answers_wait; /* it may wait for so many progresses that bring nothing; */
	bool answering;       /* it goes in this one */
	bool hurry;    /* what is sent now is one packet, for which somebody may wait: at once, all else after it */
	uint32_t room; /* bytes of packets that our receive buffer holds */
	uint32_t period, heard, senders;
	rwk_time period_end, moment_at;
	rwk_time wider_at; /* when to ask whether a narrow way is wide again */
	struct rwk_puzzle *puzzles; /* packets of which pieces have come; NULL: none ever has */
	uint32_t next_puzzle, cut_serial;
	uint32_t machine, processors; /* as in rwk_port_attr */
	uint32_t crowd;      /* processes of the job that are known to be on this machine, this one too */
	rwk_time late_until; /* and more than it has processors: a peer is, or was late a moment ago; 0: none */
	int epoll, timer;
	struct rwk_packet_counters count;
	struct rwk_capture *capture; /* NULL: none */
	struct {
		struct rwk_link_address from;
		size_t len; /* 0: none */
		uint32_t crc;
		enum rwk_crc kind;
	} begun; /* with what the ICRC of the last packet began: senders and lengths repeat */
};

/* port.c */
/** The time, asked for once a progress. */
rwk_time rwk_packet_now(struct rwk_port *port);
/** Sends a datagram of the handshake. */
void rwk_packet_greet(struct rwk_port *port, int way, const struct rwk_link_address *to, const struct rwk_greeting *g);
void rwk_packet_flush(struct rwk_port *port);
int rwk_packet_random(void *to, size_t len);
/** An address as a user would write it; until the next call of this thread. */
const char *rwk_packet_name(const struct rwk_address *a);
/** Payload of the largest packet that reaches `to` by that way. */
uint32_t rwk_packet_pmtu(struct rwk_port *port, int way, const struct rwk_link_address *to);
/** How many packets of that payload may be under way to this port, or be asked for. */
uint16_t rwk_packet_window(const struct rwk_port *port, uint32_t pmtu);
/** The next to be tried if packets of that payload do not get through. */
static inline uint32_t rwk_packet_narrower(uint32_t pmtu)
{
	return pmtu > RWK_PACKET_NARROW ? RWK_PACKET_NARROW : RWK_PACKET_LEAST;
}
/** Writes a packet, from or to `peer`, into port->capture, which there must be. */
void rwk_packet_capture(struct rwk_port *port, int way, bool outgoing, const struct rwk_link_address *peer,
	const struct iovec *iov, int count);

/* arrive.c */
/** A packet has come, by that link. */
void rwk_packet_arrived(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const void *bytes, size_t len);

/* sleep.c */
int rwk_packet_open_waiting(struct rwk_port *port);
void rwk_packet_disarm(struct rwk_port *port);

/* share.c */
/** A period is over. */
void rwk_packet_period(struct rwk_port *port, rwk_time now);

/* summary.c */
/** What FI_ROPEWALK_STATS tells of a port and its connections when it closes. */
void rwk_packet_summary(const struct rwk_port *port);

/* close.c */
void rwk_packet_close_links(struct rwk_port *port);
/** Who is told what comes while a port is being closed. */
extern const struct rwk_client rwk_packet_nobody;
/** Its client has left it. */
static inline bool rwk_packet_is_left(const struct rwk_port *port)
{
	return port->client == &rwk_packet_nobody;
}

#endif
