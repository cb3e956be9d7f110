/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel: what a port has for each peer.
 *
 *   CONNECTING  we have asked; greetings are sent again until there is an answer
 *   ACCEPTING   the peer has asked, and we have answered; its packets are taken, ours wait until it has heard us
 *   OPEN
 *   FAILED      the client has been told, or will be in this progress
 */
#ifndef RWK_PACKET_CHANNEL_H
#define RWK_PACKET_CHANNEL_H

#include "packet/greeting.h"
#include "packet/path.h"

#include "base/compiler.h"
#include "base/hash_table.h"
#include "base/list.h"
#include "transport.h"

enum rwk_channel_state { RWK_CH_CONNECTING, RWK_CH_ACCEPTING, RWK_CH_OPEN, RWK_CH_FAILED };

/** Where a peer is that is not at one place. */
struct rwk_packet_elsewhere {
	struct rwk_link_address seen;   /* its packets come from there, */
	struct rwk_link_address stream; /* and its stream leads there */
};

/**
 * There is one for each peer, of which there may be as many as a job has ranks: it is kept small, and in the order in
 * which it is used. What an SRC message touches, out or in, lies in the first three lines, one of RC in the first four;
 * the rest is for what is rare.
 */
struct rwk_packet_channel {
	union {
		struct rwk_channel base;
		struct {
			const struct rwk_transport *transport;
			struct rwk_port *port;
		};
	};
	uint32_t qpn;
	uint32_t target; /* SRC: of our domain, what takes from the peer; 0: it is not shared */
	struct rwk_packet_initiator *by; /* SRC: it sends by this one, */

	uint32_t srqn;  /* to this SRQ, */
	bool shared;    /* if it goes so at all */
	bool deaf;      /* the peer has said good-bye, or broken the protocol: nothing more is taken */
	bool has_taken : 1; /* what the peer waits to hear of; the next frame acknowledges it */
	uint8_t frames; /* under way; at most RWK_FRAMES_MAX and a good-bye */
	uint32_t ack;   /* 0, or the last word of an acknowledgement by a frame, which the machine has not been told of */
	uint32_t pmtu;
	struct rwk_rc *rc; /* one of the two from ACCEPTING or OPEN on, at the start of its memory; neither if `shared` */
	struct rwk_uc *uc;
	struct rwk_request *frame; /* records gather in it; NULL: none */
	struct rwk_pulling *pulls; /* what the peer has asked for, in order */
	enum rwk_channel_state state : 8;
	uint8_t burst;         /* sends in the port's epoch `sent_in`, to one more than go singly, */
	uint8_t few : 4;       /* and how many go within the send without a question */
	bool burst_is_new : 1; /* there has been no progress since a burst */
	bool is_closed : 1;    /* since `went_at` the machine's window lets nothing go */
	bool returns : 1;      /* the client made progress soon after its last burst */
	uint16_t sent_in;      /* its low bits */
	int16_t doom;          /* 0, or the error with which it fails at the end of this progress */
	uint32_t went_at;      /* when something last went within a send; rwk_clock_moments */
	uint32_t running; /* requests under way that are neither frames nor go on from copies */

	struct rwk_list queue;    /* rwk_op.link: sends in order; reads and writes stand behind the sends before them */
	struct rwk_list requests; /* rwk_request.all: posted to the machine */
	struct rwk_list dirty;
	struct rwk_place *place;    /* of a message in several packets that is arriving */
	uint32_t expected, arrived; /* bytes of it */

	struct rwk_packet_path path;
	uint32_t heard_in;                      /* rwk_port.period in which it last sent something of length */
	struct rwk_packet_elsewhere *elsewhere; /* NULL: the peer is where `path` leads, with all that is its */
	struct rwk_list timed;                  /* rwk_port.connecting, until it is open; then active */

	struct rwk_list asked; /* rwk_op.link: reads that the peer is asked to write */
	struct rwk_list all;
	struct rwk_hash_link by_qpn, by_target, by_nonce; /* numbers.c */
	uint32_t copied;    /* bytes of long messages under way that go on from copies */
	int16_t denied;     /* UC, SRC: 0, or why a Write of the peer's was not taken that it has not asked about yet */
	uint16_t pmtu_most; /* as much as has got through, or may; 0: what the link says */
	struct rwk_kept **kept;           /* early packets, from the first loss on */
	struct rwk_packet_narrow *narrow; /* NULL: no doubt yet that packets get through, or it is shared */

	/* The handshake. */
	struct rwk_address address; /* the peer's, perhaps partial */
	uint64_t token, peer_token; /* of our CONNECT and the peer's */
	rwk_time ask_at;
	union {
		rwk_time give_up_at; /* CONNECTING */
		rwk_time alone_at;   /* SRC, OPEN: from then on it gets a stream if nobody else holds one */
	};
	uint32_t peer_qpn, psn;
	uint16_t peer_pad; /* of the CONNECT that is being answered */
	uint16_t said;     /* PMTU that greetings by UDP with our QPN name; 0: there was none */
	uint8_t tries, tries_with_stream; /* greetings without an answer; the last number stands for more, too */
	bool may_share : 1, decided : 1;  /* SRC: may this channel go so? Decided once */
	bool gone : 1;                    /* the peer's process has ended */
	bool published : 1;               /* SRC: regions of ours, to this peer */
	bool stream_open : 1, stream_asked : 1;
	bool answered_short : 1, asked_since : 1; /* by an answer that does not show that long packets get through */
	bool release_said : 1, release_came : 1; /* SRC: neither this end, nor the peer, needs the stream that is open */
	bool stream_lost : 1;                    /* there is no stream, and none is to be had now: no evidence */
	bool on_this_machine : 1;                /* in whichever container */
	bool takes_pieces : 1;                   /* the peer joins packets that come in pieces, */
	bool denies : 1;                         /* and what it refuses to reach fails alone (RWK_RC_DENIES) */
	bool named : 1;                          /* it is found by its peer's nonce */
	bool asks_by_stream : 1;                 /* CONNECTING: and by nothing else any more */
};
_Static_assert(offsetof(struct rwk_packet_channel, port) == offsetof(struct rwk_channel, port), "port is base.port");
_Static_assert(offsetof(struct rwk_packet_channel, srqn) == RWK_CACHE_LINE &&
		       offsetof(struct rwk_packet_channel, queue) == 2 * RWK_CACHE_LINE &&
		       offsetof(struct rwk_packet_channel, path) == 3 * RWK_CACHE_LINE &&
		       offsetof(struct rwk_packet_channel, asked) == 4 * RWK_CACHE_LINE,
	"a message touches the first lines of its channel");
_Static_assert(sizeof(struct rwk_packet_channel) <= 424, "a process may have a channel for each rank (cost.h)");

static inline struct rwk_packet_channel *rwk_packet_channel(struct rwk_channel *ch)
{
	return (struct rwk_packet_channel *)ch;
}

/* summary.c */
/** What FI_ROPEWALK_STATS tells of a connection: a line. Of a shared one the numbers are those of all who go by it. */
void rwk_packet_summary_of(const struct rwk_packet_channel *ch);

/* channel.c */
/** A number that no QP of this port has; 0: none could be drawn. */
uint32_t rwk_packet_new_qpn(struct rwk_port *port);
struct rwk_packet_channel *rwk_packet_channel_new(struct rwk_port *port, const struct rwk_address *to);
void rwk_packet_channel_free(struct rwk_packet_channel *ch);
/**
 * Makes the machine for the way, in place of one that is there; the channel is CONNECTING then, until its peer is told
 * of this one. 0; -EAGAIN: the domain is busy; else why there is none.
 */
int rwk_packet_machine(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
/** One piece of memory: machine, then responder. NULL: there is none. */
void *rwk_packet_machine_memory(size_t size, size_t responder, void **responder_at);
/** It may send. */
void rwk_packet_opened(struct rwk_packet_channel *ch);
/** Ends all that is under way with `status`. */
void rwk_packet_stop(struct rwk_packet_channel *ch, int status);
/** It fails at the end of this progress. */
void rwk_packet_doom(struct rwk_packet_channel *ch, int err);
void rwk_packet_breach(struct rwk_packet_channel *ch, const char *what);
bool rwk_packet_idle(const struct rwk_packet_channel *ch);
/** The client leaves: its ops are cancelled, a good-bye goes behind what it has sent. */
void rwk_packet_farewell(struct rwk_packet_channel *ch);
/** Tells a peer that has said good-bye that it was heard. */
void rwk_packet_say_bye(struct rwk_packet_channel *ch);

/* places.c */
/** Where packets of the peer come from, which need not be where ours go: it may have several IPs. */
static inline const struct rwk_link_address *rwk_packet_seen(const struct rwk_packet_channel *ch)
{
	return rwk_unlikely(ch->elsewhere != NULL) ? &ch->elsewhere->seen : &ch->path.to;
}
/** By what the link knows the stream: it may have come from another address than the peer's first. */
static inline const struct rwk_link_address *rwk_packet_stream(const struct rwk_packet_channel *ch)
{
	return ch->elsewhere ? &ch->elsewhere->stream : &ch->path.to;
}
/** The channel's packets go there from now on, and the peer's come from there: 0 or -ENOMEM. */
int rwk_packet_goes(
	struct rwk_packet_channel *ch, const struct rwk_link_address *to, const struct rwk_link_address *from);
/** The peer's packets come from there; its stream leads there. 0 or -ENOMEM. */
int rwk_packet_set_seen(struct rwk_packet_channel *ch, const struct rwk_link_address *from);
int rwk_packet_set_stream(struct rwk_packet_channel *ch, const struct rwk_link_address *at);

/* progress.c */
/** Something is to be sent: the channel is pumped at the end of the progress, or now if we are not in one. */
void rwk_packet_stir(struct rwk_packet_channel *ch);
/** The same, after a message has come: at the end of this progress or, if that can wait, of the next. */
void rwk_packet_stir_for_message(struct rwk_packet_channel *ch);
/** The machine wants to be pumped then. */
void rwk_packet_deadline(struct rwk_packet_channel *ch, rwk_time at);

/* share.c */
/** A packet that takes room has come, the first of its channel in this period. */
void rwk_packet_heard(struct rwk_packet_channel *ch);

#endif
