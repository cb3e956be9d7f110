/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated service from inside.
 *
 *   record   a message, a request or a reply on its way; cut into packets
 *   lane     messages and requests go in one, replies in the other, so that a long reply holds up no message
 *   window   packets sent and not acknowledged; each is gathered anew from its record's source when it is sent again
 *   region   memory exposed to a channel's peer; found by key each time it is touched, so that conceal works at once
 *   orphan   a channel without a client: it goes on until what send had taken and the farewell are acknowledged
 *
 * The files: flow.c numbers, windows, acknowledgements, timers; record.c what a record does where it arrives; port.c
 * ports, handshake, death; service.c the transport's calls.
 */
#ifndef RWK_SIM_INTERNAL_H
#define RWK_SIM_INTERNAL_H

#include "links/sim/service.h"

#include "base/compiler.h"

enum { LANE_MESSAGES, LANE_REPLIES, LANES };

enum packet_type { P_CONNECT, P_ACCEPT, P_REFUSE, P_RESET, P_DATA, P_ACK };

enum packet_flag {
	P_FIRST = 1,
	P_LAST = 2,
	P_VOID = 4, /* the memory that this piece should come from is not ours to read any more: the record is void */
};

/* In front of each packet. */
struct packet {
	uint64_t check; /* of everything behind it */
	uint8_t type, flags, lane, spare;
	uint32_t number; /* P_DATA */
	uint32_t ack;    /* P_DATA, P_ACK: the number expected next */
	uint32_t spare2;
	uint64_t from_id, to_id; /* of the channels at both ends */
};

/* Behind it in P_CONNECT and P_ACCEPT. */
struct greeting {
	struct rwk_address from, to;
};

enum record_kind { R_MESSAGE, R_READ, R_READ_REPLY, R_WRITE, R_WRITE_REPLY, R_FAREWELL };

/* Behind it in a P_DATA with P_FIRST. */
struct head {
	uint32_t kind;
	int32_t status;  /* of a reply */
	uint64_t length; /* of the record's bytes */
	uint64_t id;     /* the requester's number for a request and its reply */
	uint64_t key, offset, amount; /* of a request */
	struct rwk_envelope env;
};

struct record {
	struct rwk_list all;  /* of the channel, until the peer has all of it */
	struct rwk_list lane; /* until all of it is in packets */
	struct head head;
	struct rwk_op *op;    /* a posted send: done at the end; else NULL */
	struct rwk_op *asked; /* of a request, until its reply has come; the op has the record in service[1] */
	const struct iovec *iov;
	uint32_t iov_count;
	bool counts;          /* in the channel's room */
	bool from_region;     /* a read reply: source is the region head.key from head.offset on */
	bool begun, hollow;   /* a packet has been made; the source is gone */
	uint64_t at;          /* bytes in packets so far */
	uint32_t packets;     /* of it in the window */
	struct iovec own;     /* of `bytes` */
	uint8_t bytes[];
};

struct slot {
	struct record *record;
	uint64_t at;
	uint32_t len;
	uint8_t flags, lane;
};

/* A record that is arriving in a lane. */
struct inflow {
	bool busy, skip; /* skip: void before it had a place */
	struct head head;
	uint64_t at;
	int status;
	struct rwk_place *place;
	struct rwk_op *op;
};

struct region {
	struct rwk_list link;
	struct channel *channel;
	uint64_t key;
	size_t length;
	unsigned access; /* RWK_EXPOSE_* */
	uint32_t count;
	struct iovec iov[RWK_EXPOSE_IOV_MAX];
};

enum channel_state { CONNECTING, OPEN, FAILED };

struct channel {
	struct rwk_channel pub;
	struct rwk_list link;
	enum channel_state state;
	bool orphan;
	int failing; /* 0, or the error to fail with at the end of progress */
	struct rwk_link_address to;
	struct rwk_address address; /* of the peer: as given, then as told */
	uint64_t id, peer_id;

	struct rwk_list records, lanes[LANES];
	unsigned turn; /* the lane to look at first */
	struct slot slots[RWK_SIM_WINDOW_MAX];
	uint32_t unacked, next;
	rwk_time timer, timeout; /* when to send again: a P_CONNECT, or the oldest packet; 0: nothing is due ever */
	uint32_t copies;
	struct rwk_list waiting; /* ops that wait for a reply */

	uint32_t expected;
	bool ack_due;
	struct packet *held[RWK_SIM_WINDOW_MAX];
	uint32_t held_len[RWK_SIM_WINDOW_MAX];
	struct inflow inflow[LANES];
};

struct rwk_port {
	struct rwk_sim *sim;
	struct rwk_link *net;
	struct rwk_sim_service how;
	const struct rwk_client *client;
	void *cookie;
	struct rwk_address address;
	struct rwk_list channels, regions;
	uint32_t exposed; /* how many regions */
	uint64_t last_id;
	rwk_time alarm; /* the next that is set; 0: none */
	int event_fd;
	bool armed, lingering, in_progress;
};

/* A breach of the contract by the client ends the test. */
#define breach_if(condition, what)                                                                                     \
	do {                                                                                                           \
		if (condition)                                                                                         \
			rwk_sim_breach(__func__, what);                                                                \
	} while (0)
void rwk_sim_breach(const char *where, const char *what) __attribute__((noreturn));

/* flow.c */

/* A record with `len` bytes of its own, in no list. */
struct record *rwk_sim_record(enum record_kind kind, size_t len);
/* Puts it into a lane; it goes out with the next pump. */
void rwk_sim_enqueue(struct channel *ch, unsigned lane, struct record *r);
/* Takes it out of everything but the window, and frees it. */
void rwk_sim_drop(struct channel *ch, struct record *r);
/* Sends what the window has room for; returns the number of packets. */
int rwk_sim_pump(struct channel *ch);
/* Sends a packet without a number. */
void rwk_sim_signal(struct rwk_port *p, const struct rwk_link_address *to, enum packet_type type, uint64_t from_id,
	uint64_t to_id, uint32_t ack, const void *body, size_t len);
/* Sends again what is due, and acknowledgements; sets the alarm. */
int rwk_sim_timers(struct channel *ch);
void rwk_sim_acked(struct channel *ch, uint32_t ack);
/* A P_DATA of this channel. */
void rwk_sim_data(struct channel *ch, const struct packet *p, size_t len);
void rwk_sim_set_alarm(struct rwk_port *p, rwk_time at);
/* Is the packet whole? */
bool rwk_sim_intact(const void *bytes, size_t len);

/* record.c */

/* The next packet of a lane, in order; `len` bytes behind its packet header. */
void rwk_sim_arrived(struct channel *ch, const struct packet *p, size_t len);
struct region *rwk_sim_region(struct channel *ch, uint64_t key);
void rwk_sim_free_region(struct rwk_port *p, struct region *r);
/* Copies between `len` bytes at `at` of an iov and a buffer; stops where the iov ends. Returns bytes copied. */
size_t rwk_sim_copy_out(const struct iovec *iov, uint32_t count, uint64_t at, void *to, size_t len);
size_t rwk_sim_copy_in(const struct iovec *iov, uint32_t count, uint64_t at, const void *from, size_t len);

/* port.c */

extern const struct rwk_sim_hooks rwk_sim_port_hooks;

struct channel *rwk_sim_channel(
	struct rwk_port *p, const struct rwk_link_address *to, const struct rwk_address *address);
void rwk_sim_free_channel(struct channel *ch);
void rwk_sim_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len);
/* Starts, and sends again, the P_CONNECT. */
void rwk_sim_greet(struct channel *ch);
/* The client leaves: ops and places go back with -ECANCELED; what send has taken and the farewell still go out. */
void rwk_sim_orphan(struct channel *ch);
int rwk_sim_port_progress(struct rwk_port *p);
void rwk_sim_free_port(struct rwk_port *p);

#endif
