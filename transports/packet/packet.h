/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet service: a channel (transport.h) over a packet machine and a link. RC on udp, the usual way between
 * hosts; UC on tcp, where UDP does not get through. Which of them carries a channel is found out when it connects.
 *
 *   way      the link that a channel goes by, and with it the machine
 *   frame    the payload of one Send between our own ends: a few bytes of the service's, then records
 *   record   a message of the client's (or of the service's) in a frame; small ones share a frame, a long one has a
 *            frame of several packets to itself
 *   greeting what the handshake's datagrams say (greeting.h); HANDSHAKE.md tells how they are used
 *   stream   the tcp link's connection to a peer's process: evidence that it lives, and a way
 *
 * FRAME.md describes frames and records byte by byte.
 */
#ifndef RWK_PACKET_PACKET_H
#define RWK_PACKET_PACKET_H

#include "link.h"
#include "transport.h"

/** What a port gets that joins the domain of its node (shared_rc/join.h), for SRC. */
struct rwk_packet_domain {
	void *seat;            /* the ways' own */
	void *memory;          /* a segment that is formatted */
	struct rwk_link *link; /* its socket */
	uint64_t id;           /* not 0 */
	uint16_t port;         /* of the socket */
};

/** Links for a port, and what only they know. rwk_network_transport has those of the real world, tests have others. */
struct rwk_packet_ways {
	bool simulated; /* captures say so */
	/**
	 * Opens the links for an endpoint: *lossy carries RC, *stream UC and evidence; either may be left NULL, not
	 * both. Sets the port number in attr->address, and the IP if it was zero. 0 or a negative errno.
	 */
	int (*open)(struct rwk_port_attr *attr, struct rwk_link **lossy, struct rwk_link **stream);
	/** Where on the links the endpoint with that address is. */
	struct rwk_link_address (*address)(const struct rwk_address *a);
	/** What an address on the links is as IP and port, for captures; the IP is left as it is if there is none. */
	void (*split)(const struct rwk_link_address *a, uint8_t ip[16], uint16_t *port);
	/** Starts a stream to the process with that nonce (0: whoever is there); `word` tells the rest. */
	int (*reach)(struct rwk_link *stream, const struct rwk_link_address *to, uint64_t nonce);
	/** The nonce of the process that an open stream leads to, or that the word just told is about; 0: not known. */
	uint64_t (*nonce)(struct rwk_link *stream, const struct rwk_link_address *to);
	/** Ends a stream in good order. */
	void (*leave)(struct rwk_link *stream, const struct rwk_link_address *to);
	/** Bytes of packets that the lossy link's receive buffer holds for sure. */
	size_t (*room)(const struct rwk_link *lossy);
	/**
	 * May be NULL: there is no SRC. Joins the domain, or makes it: 0 and *d set (which begins as zeros); -EAGAIN:
	 * nobody has let us in yet, call it again; another negative errno: it cannot be. Never waits.
	 */
	int (*join)(const struct rwk_port_attr *attr, struct rwk_packet_domain *d);
	/**
	 * May be NULL. After -EAGAIN, or in a domain that has no seat for us, whose link is closed: makes a domain of
	 * our own, and from then on goes on as join. Before, *why is set: what stood in the way of helping ourselves, a
	 * negative errno; 0: nothing is known.
	 */
	int (*join_alone)(const struct rwk_port_attr *attr, struct rwk_packet_domain *d, int *why);
	/**
	 * May be NULL. Shows that this process lives (rwk_src_show_life): a descriptor, not ours, or
	 * a negative errno.
	 */
	int (*sit)(const struct rwk_packet_domain *d, uint32_t seat);
	/**
	 * May be NULL, and then it is so. Do our own packets to that place, and what goes there from the domain's
	 * socket, leave from one IP?
	 */
	bool (*same_source)(struct rwk_link *lossy, struct rwk_link *domain, const struct rwk_link_address *to);
	/** May be NULL. A word for the domain's members to agree by on their sockets, as long as there is d->link. */
	void (*agree)(const struct rwk_packet_domain *d, _Atomic uint32_t *word);
	/** Lets others in; cheap. */
	void (*attend)(const struct rwk_packet_domain *d);
	/** May be NULL: never. Is somebody being let in, so that this process is not to sleep over the next attend? */
	bool (*expects)(const struct rwk_packet_domain *d);
	/**
	 * SRC, the evidence that a node's processes have together; both may be NULL, where none of them is ever
	 * stopped. watch: the open stream to `to` is put where all members of the domain see it end, with a key; 0 or a
	 * negative errno. It is there until the word of its end has been told, or it is left. look: the keys of those
	 * that have ended, at most `max`; perhaps the same ones again the next time, until who has put them
	 * there ends them.
	 */
	int (*watch)(struct rwk_link *stream, const struct rwk_link_address *to, const struct rwk_packet_domain *d,
		uint64_t key);
	int (*look)(const struct rwk_packet_domain *d, uint64_t *key, int max);
	/** Leaves, or gives up joining; the link, if there was one, has been closed before. */
	void (*depart)(const struct rwk_packet_domain *d);
	/**
	 * May be NULL: close waits by itself. Else it leaves the port to this, which has rwk_packet_go_on called from
	 * time to time until it says false, and then rwk_packet_free.
	 */
	void (*linger)(struct rwk_port *port);
};

/** The calls of a transport on such ways; a transport's table has them all, `open` as a call of its own. */
int rwk_packet_open(const struct rwk_packet_ways *ways, const struct rwk_transport *transport,
	struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port);
void rwk_packet_close(struct rwk_port *port);
void rwk_packet_leave(struct rwk_port *port);
bool rwk_packet_linger(struct rwk_port *port);
/** A progress of a port that has been left: false, the peers have all that was sent. */
bool rwk_packet_go_on(struct rwk_port *port);
void rwk_packet_free(struct rwk_port *port);
/** When progress has something to do by the clock; UINT64_MAX: never. */
rwk_time rwk_packet_next(const struct rwk_port *port);
int rwk_packet_connect(struct rwk_port *port, const struct rwk_address *to, void *peer, struct rwk_channel **ch);
void rwk_packet_disconnect(struct rwk_channel *ch);
int rwk_packet_progress(struct rwk_port *port);
int rwk_packet_arm(struct rwk_port *port);
int rwk_packet_wait_fd(struct rwk_port *port);
int rwk_packet_send(struct rwk_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len);
int rwk_packet_post(struct rwk_channel *ch, struct rwk_op *op);
int rwk_packet_withdraw(struct rwk_channel *ch, struct rwk_op *op);
int rwk_packet_expose(
	struct rwk_channel *ch, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key);
void rwk_packet_conceal(struct rwk_channel *ch, const struct rwk_rkey *key);
bool rwk_packet_traffic(const struct rwk_channel *ch, struct rwk_traffic *out);

/** What all transports of this service have alike, in an initializer: name, open and progress are missing. */
#define RWK_PACKET_CALLS                                                                                               \
	.close = rwk_packet_close, .connect = rwk_packet_connect, .disconnect = rwk_packet_disconnect,                 \
	.arm = rwk_packet_arm, .wait_fd = rwk_packet_wait_fd, .send = rwk_packet_send, .post = rwk_packet_post,        \
	.withdraw = rwk_packet_withdraw, .expose = rwk_packet_expose, .conceal = rwk_packet_conceal,                   \
	.traffic = rwk_packet_traffic

/** Datagrams that a port has dropped, by reason, and what it has done. */
struct rwk_packet_counters {
	uint64_t packets_in, packets_out;
	uint64_t malformed, wrong_icrc, unknown_qp, wrong_sender, wrong_key, stale, refused;
	uint64_t greetings_in, greetings_out;
	uint64_t frames_out, records_out, frames_in, records_in;
	uint64_t fell_back;   /* channels that went over to the stream */
	uint64_t favourites;  /* peers that the link was told to favour */
	uint64_t queue_pairs; /* made for one peer each */
	uint64_t initiators;  /* made for all processes of a node each */
	uint64_t targets;     /* of its node that it has taken from */
	uint64_t narrowed;    /* times that a way was found to carry less than was agreed */
	uint64_t pieces_out, pieces_in; /* of packets that it does not carry */
	uint64_t yields;      /* of its core, for a peer that was late */
};
const struct rwk_packet_counters *rwk_packet_counters(const struct rwk_port *port);
/** The counters of a channel's machine. */
const struct rwk_qp_counters *rwk_packet_qp_counters(const struct rwk_channel *ch);
/** Does the channel go by the stream? By a shared connection? */
bool rwk_packet_by_stream(const struct rwk_channel *ch);
bool rwk_packet_is_shared(const struct rwk_channel *ch);

#endif
