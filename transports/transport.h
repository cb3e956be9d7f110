/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel: the one contract between those who have messages (the engine, later the channel adapter: the clients)
 * and those who move them (the services: UC on shared memory, RC, UC, SRC over packet links, the simulator).
 *
 *   transport  a service on a link ("UC on shm"), a constant table of calls
 *   port       an endpoint's presence on one transport: what its peers reach it by, what its owner polls
 *   channel    one peer as seen from a port; messages on a channel arrive in the order of send and post, each once
 *   envelope   the few words that every message carries beside its payload
 *   op         a request that lasts: a send that did not go at once, a read, a write, an atomic; memory of the client's
 *   rkey       what a peer needs to reach a region that was exposed; opaque, travels in a message's payload
 *
 * Threads: the caller holds the port's lock (or is the only thread) for every call; a port has no lock of its own.
 * Upcalls come from progress alone, on the caller's thread, with that lock held; an upcall may call send, post, read
 * and write, on any channel, and must not call progress, disconnect or close. Nothing blocks unless it says so.
 *
 * Death: silence is not death. A channel fails on evidence only (the peer's process has ended, the peer broke the
 * protocol). Then each outstanding op of the channel is completed with the error, `failed` is called once, and later
 * calls on the channel return that error. The client then disconnects it.
 */
#ifndef RWK_TRANSPORT_H
#define RWK_TRANSPORT_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct rwk_transport;
struct rwk_port;
struct rwk_channel;
struct rwk_op;

/**
 * Where an endpoint is: 40 bytes, the same on every machine (little-endian words), handed to users as it is.
 * A peer known only by IP and port (a socket address) has RWK_ADDR_PARTIAL set and job, rank, node, nonce zero. That of
 * a datagram's queue pair is one of these, and may have a QPN in place of the SRQ number and a Q_Key in place
 * of the job.
 */
struct rwk_address {
	uint32_t version_srq; /* version in the top 8 bits, SRQ number in the low 24 */
	uint32_t flags_rank;  /* RWK_ADDR_* in the top 8 bits, rank in the low 24; RWK_ADDR_NO_RANK without a job */
	uint32_t job;         /* hash of the job's name; 0: none */
	uint32_t node;        /* hash of what is shared by the processes of one booted system and network namespace; of
				 systems restored from one snapshot it is the same */
	uint64_t nonce_port;  /* nonce, fresh for each endpoint, in the top 48 bits; port in the low 16 */
	uint8_t ip[16];       /* IPv6, or IPv4 mapped into it */
};
_Static_assert(sizeof(struct rwk_address) == 40, "an address has 40 bytes");

#define RWK_ADDR_VERSION 1u
#define RWK_ADDR_PARTIAL (1u << 24) /* in flags_rank */
#define RWK_ADDR_NO_RANK 0xffffffu

static inline uint32_t rwk_address_rank(const struct rwk_address *a)
{
	return a->flags_rank & 0xffffffu;
}

static inline uint16_t rwk_address_port(const struct rwk_address *a)
{
	return (uint16_t)a->nonce_port;
}

/** What every message carries. kind, flags, tag and data are the client's; a service does not look at them but for
 * RWK_ENV_DATA. */
struct rwk_envelope {
	union {
		struct {
			uint8_t kind; /* below RWK_KIND_SERVICE; from there on the numbers are the services' own */
			uint8_t flags;
			uint16_t small; /* a small number of the client's */
			uint32_t spare; /* zero */
		};
		uint64_t head; /* all of them, kind in the lowest bits */
	};
	uint64_t tag;
	uint64_t data; /* travels only if RWK_ENV_DATA is set in flags, else arrives as 0 */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "head has kind in its lowest bits");

#define RWK_KIND_SERVICE 0xe0u
#define RWK_ENV_DATA     0x80u

/**
 * An envelope's head in one word. A service loads it as one, which after stores of its parts would have to wait until
 * they have left the store buffer, and whatever is before them.
 */
static inline uint64_t rwk_envelope_head(uint8_t kind, uint8_t flags, uint16_t small)
{
	return kind | (uint64_t)flags << 8 | (uint64_t)small << 16;
}

/** What lets a peer read or write an exposed region. Opaque to clients but for its length, and valid until conceal. */
struct rwk_rkey {
	uint64_t word[4]; /* the low 48 bits of the last are the region's length */
};

#define RWK_RKEY_LENGTH_MAX ((1ull << 48) - 1) /* and stands for all that is longer */

/** Bytes of the region, at most RWK_RKEY_LENGTH_MAX. */
static inline uint64_t rwk_rkey_length(const struct rwk_rkey *key)
{
	return key->word[3] & RWK_RKEY_LENGTH_MAX;
}

enum rwk_op_type { RWK_OP_SEND, RWK_OP_READ, RWK_OP_WRITE };

/**
 * A request that lasts. The client's memory; the service owns it, and what iov points to, from post until `done`.
 * The iov array itself must stay as long. A service keeps what it needs while the op runs in `link`, `at` and
 * `service`.
 */
struct rwk_op {
	enum rwk_op_type type;
	uint16_t iov_count;
	bool arrival;            /* RWK_OP_SEND: `done` waits until the message is with the peer's port */
	bool behind;             /* RWK_OP_READ, RWK_OP_WRITE: one of several, of the first of which the program does not
				    know yet that they are done */
	const struct iovec *iov; /* local memory: source of a send or write, target of a read */
	size_t length;           /* bytes in all: the sum of iov, or less */
	struct rwk_envelope env; /* RWK_OP_SEND */
	struct rwk_rkey rkey;    /* RWK_OP_READ, RWK_OP_WRITE */
	uint64_t offset;         /* into the exposed region, bytes */
	/** Called once, from progress: status 0, or negative errno. The op is the client's again. */
	void (*done)(struct rwk_op *op, int status);

	struct rwk_list link;
	size_t at;
	uint64_t service[6];
};

/** A read or write of one piece of memory that does not last. */
struct rwk_direct_access {
	enum rwk_op_type type; /* RWK_OP_READ, RWK_OP_WRITE */
	void *here;            /* target of a read, source of a write */
	size_t length;         /* bytes */
	const struct rwk_rkey *rkey;
	uint64_t offset; /* into the exposed region, bytes */
};

/**
 * Where the payload of a message of several pieces goes; the client's memory, given to the service from begin to end.
 * Bytes beyond the sum of iov are dropped by the service. Until `end` the client may set iov_count to 0: the service
 * looks at it for each piece, and drops what comes from then on.
 */
struct rwk_place {
	const struct iovec *iov;
	uint32_t iov_count;
	size_t at; /* bytes placed so far, kept by the service */
	bool awaited; /* the client's, looked at in the end: a receive waits for it (rwk_port_attr.awaited) */
};

/** What a connection has carried so far. Of a shared one (SRC): for all who go by it, in this process. */
struct rwk_traffic {
	union {
		struct {
			uint64_t packets_out, bytes_out, packets_in, bytes_in; /* bytes of payload */
			uint64_t sent_again, timeouts, probes;
			uint64_t naks_out, naks_in, rnr_out, rnr_in;
			uint64_t duplicates, early, lost, refused;
		};
		uint64_t count[15];
	};
};
#define RWK_TRAFFIC_COUNTS (sizeof(struct rwk_traffic) / sizeof(uint64_t))

/** What a client is told. `client` is what was given to open. */
struct rwk_client {
	/**
	 * A peer has connected that this port has not connected to: `from` is its full address. Set ch->peer and return
	 * 0, or return a negative errno to refuse it; -ENOMEM: for now, where a peer asks again until it is answered
	 * (shm). Also called for a channel of ours whose partial address has become known: then ch->peer is set
	 * already.
	 */
	int (*connected)(void *client, struct rwk_channel *ch, const struct rwk_address *from);
	/** A whole message: `payload` is the service's memory, valid until return. */
	void (*message)(
		void *client, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len);
	/** The head of a message whose payload comes in pieces: returns the place for all of its `len` bytes; never
	 * NULL. */
	struct rwk_place *(*begin)(void *client, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len);
	/** Its last piece is in place (status 0), or none will follow (negative errno). The place is the client's
	 * again. */
	void (*end)(void *client, struct rwk_channel *ch, struct rwk_place *place, int status);
	/** May be NULL: UDP does not get through to the channel's peer, and the channel goes by a stream. Its send_max
	 * may be less than before; what is longer and posted already goes all the same. */
	void (*by_stream)(void *client, struct rwk_channel *ch);
	/** May be NULL: connections were to be shared (rwk_port_attr.shared), and this channel has one of its own. */
	void (*unshared)(void *client, struct rwk_channel *ch);
	/** May be NULL: from progress, a few times a second at most: time for what needs not be done at once. Not while
	 * nobody calls progress. */
	void (*moment)(void *client);
	/**
	 * May be NULL: the peer of `ch` is that of `into`, one process by two of its addresses, which has one
	 * connection, that of `into`. Nothing has come or gone by `ch`, nor will it. 0: the client has taken all back
	 * that it had posted and exposed there (withdraw, conceal), and goes on with `into`; or a negative errno. Then
	 * `failed` is called for `ch`, as ever, with that error or -EALREADY.
	 */
	int (*merge)(void *client, struct rwk_channel *ch, struct rwk_channel *into);
	/** The channel has failed for ever; `err` negative: -ECONNRESET the peer's process ended, -EPROTO it broke the
	 * protocol. */
	void (*failed)(void *client, struct rwk_channel *ch, int err);
};

/**
 * What is to be expected of posting a read or write of a region that stays exposed, of rwk_channel.direct_min bytes or
 * more.
 */
enum rwk_direct {
	RWK_DIRECT_TRIED,  /* it goes without the peer's help. Where the peer is quick to answer messages may beat it */
	RWK_DIRECT_FASTER, /* it beats messages, and like them it waits until the peer makes progress */
	RWK_DIRECT_ALONE,  /* it beats messages, and goes without the peer's help */
};

/** The part of a channel that clients see; a service puts it first in its own. */
struct rwk_channel {
	const struct rwk_transport *transport;
	struct rwk_port *port;
	void *peer;        /* the client's */
	size_t send_max;   /* longest payload of send and of a posted send; by_stream and unshared may change it */
	uint32_t direct_min; /* bytes from which on post of a READ or WRITE of a region that stays exposed does as
				`direct` says; 0: not at all. Becomes 0 when the system turns out to deny it; what
				cannot go on ends with -EOPNOTSUPP then, in part perhaps, and may be done again by
				messages. Look at it before each post */
	uint32_t direct_write_min; /* the same for a WRITE, where that is more */
	bool send_arrives; /* what send has taken, or a post has done with, is with the peer's port, and stays there if
			      this process ends; else a post with rwk_op.arrival tells when it is */
	uint8_t direct;    /* enum rwk_direct */
	bool answered;     /* the peer has: from now on send says -EAGAIN for lack of room alone */
	uint8_t fetched;   /* lengths that the peer had rather fetch than be sent, as rwk_channel_fetches has it. It may
			      say so at any time */
	int error;         /* 0, or why the channel failed */
};

#define RWK_FETCHED_LOG 13 /* a message of more bytes than two to this may be one that is better fetched */
#define RWK_FETCHED_MIN (1u << RWK_FETCHED_LOG)

/** Which doubling of that a length, of more bytes, is in: 0 up to the first. */
static inline unsigned rwk_fetched_class(size_t len)
{
	return 63u - RWK_FETCHED_LOG - (unsigned)__builtin_clzll(len - 1);
}

/**
 * Would the peer have a message of that length sooner if it were announced, and read by it, than by send? A bit for
 * each class. `len` from RWK_FETCHED_MIN + 1 to send_max.
 */
static inline bool rwk_channel_fetches(const struct rwk_channel *ch, size_t len)
{
	return ch->fetched >> rwk_fetched_class(len) & 1;
}

#define RWK_AWAITED_KINDS 2u
#define RWK_AWAITED_POLLS 2u

struct rwk_port_attr {
	struct rwk_address address; /* ip, job, rank, node and SRQ number filled in; port 0: the transport picks one,
				       and so with the nonce */
	uint32_t local_peers;       /* how many are expected on this node; a hint */
	uint8_t key[32];            /* the job's: what those who may connect have in common, and nobody is told */
	bool oversubscribed;        /* more ranks than cores: yield when idle */
	bool shared;                /* network: connections are to be shared where that is possible (SRC) */
	uint32_t remote_peers;      /* how many are expected on other nodes; a hint */
	uint32_t machine;           /* names the running kernel, in every container alike, 24 bits; 0: not known */
	uint32_t processors;        /* hardware threads that this node's ranks may use; 0: not known */
	/**
	 * How many of the client's receives wait for messages of kind 0 and 1; may be NULL. Read during progress: once
	 * all that waited for a kind have got their message, others of that kind, and what comes behind them, may be
	 * left where they are for RWK_AWAITED_POLLS calls. A client that receives one after the other would have to put
	 * them aside otherwise.
	 */
	const size_t *awaited[RWK_AWAITED_KINDS];
	const bool *looks; /* may be NULL; while it is true nothing is left: it wants to know of all that has come */
	const bool *waits; /* may be NULL; while it is true it has nothing else to do than to wait for a moment */
};

/** A service on a link. */
struct rwk_transport {
	const char *name; /* "UC/shm", as printed */

	/**
	 * Makes a port. On success *port is its owner's, attr->address has port number and nonce filled in.
	 * -EADDRINUSE: the port number asked for is taken. May make system calls, never waits.
	 */
	int (*open)(struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port);
	/**
	 * Ends the port. Messages already accepted by send stay readable for the peers; ops still outstanding, and
	 * messages of which some pieces have come, are ended with -ECANCELED first. All its channels are gone. Never
	 * waits, but as conceal does for what is still exposed, and where there is `leave`.
	 */
	void (*close)(struct rwk_port *port);
	/**
	 * May be NULL, as linger then. Ends the port for its client, as close does, but does not wait until what send
	 * has accepted is with the peers. There are no upcalls any more, and the port touches nothing that it has in
	 * common with anybody: from now on it needs no lock.
	 */
	void (*leave)(struct rwk_port *port);
	/**
	 * After leave: goes on with what the peers have not got yet, asleep for a millisecond at most. False: they
	 * have all of it, or it has taken too long. What is left then is close, which waits for nothing; without this
	 * it goes on until then.
	 */
	bool (*linger)(struct rwk_port *port);
	/**
	 * Starts a channel to `to`. Returns at once; send says -EAGAIN until the peer has answered, post queues.
	 * -EHOSTUNREACH: `to` is not reachable by this transport (the reason has been logged at info level). -ENOMEM: no
	 * memory, and it may be tried again.
	 */
	int (*connect)(struct rwk_port *port, const struct rwk_address *to, void *peer, struct rwk_channel **ch);
	/**
	 * May be NULL: it cannot tell. Is the endpoint with that full address there, within this transport's reach?
	 * Makes system calls, and sends nothing. True where the system does not say.
	 */
	bool (*finds)(const struct rwk_port *port, const struct rwk_address *to);
	/** Ends a channel, failed or not; its ops and places are ended with -ECANCELED first, and all that is exposed
	 * to it is concealed. */
	void (*disconnect)(struct rwk_channel *ch);

	/** Handles what has come and what can go, bounded per call; returns how many things it did, 0 for an empty
	 * poll. */
	int (*progress)(struct rwk_port *port);
	/**
	 * To sleep: arm; if it returns 0, wait until wait_fd is readable; then progress (which disarms). -EAGAIN: there
	 * is something to do already. A peer that sends after arm has returned 0 makes wait_fd readable.
	 */
	int (*arm)(struct rwk_port *port);
	int (*wait_fd)(struct rwk_port *port);

	/**
	 * Sends a whole message from one buffer if that is possible now: 0, and the buffer is the caller's again.
	 * -EAGAIN: no room, or something is queued before it (nothing was done; post it). len <= ch->send_max.
	 */
	int (*send)(struct rwk_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len);
	/**
	 * Starts an op: 1, it is finished already (done is not called, status 0); 0, done will be called; negative:
	 * refused or failed at once, done is not called (the channel has failed, or the rkey is none of this
	 * transport's; for a read or write also any of the errors below). Sends are taken in order with send. A send's
	 * `done` means that the buffer may be reused; with op->arrival that the message is with the peer's port. A
	 * read's or write's means that the data is in place; they are in no order with sends, nor with each other.
	 * Errors of reads and writes that leave the channel as it is: -EACCES the key is wrong, concealed by now, or
	 * not for writing; -EINVAL beyond the region (-EACCES, where packets carry it); -EFAULT memory of one of the
	 * two sides is not mapped, or not writable (a part may have been written); -EOPNOTSUPP as direct_min says.
	 */
	int (*post)(struct rwk_channel *ch, struct rwk_op *op);
	/**
	 * May be NULL. Carries out a read or write here and now, without the peer: 0, the data is in place. -EAGAIN:
	 * others are under way, the peer would better copy a part of it, or something is wrong (a part may have been
	 * done): post will tell.
	 */
	int (*access)(struct rwk_channel *ch, const struct rwk_direct_access *a);
	uint32_t access_max[2]; /* longest that may be better done so than by post: of what comes alone, and of what is
				   behind others (rwk_op.behind); bytes, 0 without it */
	/**
	 * Takes back a posted op that has not begun: 0, it is the client's again and done is not called; -EBUSY: it
	 * runs.
	 */
	int (*withdraw)(struct rwk_channel *ch, struct rwk_op *op);

	/**
	 * Lets the channel's peer read or write the region described by iov until conceal, or both (RWK_EXPOSE_*); what
	 * it may not do ends with -EACCES. iov is copied (at most RWK_EXPOSE_IOV_MAX entries). One entry at NULL, with
	 * a length up to SIZE_MAX, is all memory. A region that is writable or all memory is one that stays, of which
	 * not all need be mapped, and which may change while it is read; any other does not change, and of it the peer
	 * may ask for help with reading. 0 and *key set; -ENOSPC: too many regions at once; -EINVAL: too many entries,
	 * or one that wraps; -ENOTCONN: one that stays, and the peer has not answered yet; -EOPNOTSUPP: all memory, by
	 * a transport that cannot tell what of it is mapped, or writing without reading, by one that lets others carry
	 * out both.
	 */
	int (*expose)(
		struct rwk_channel *ch, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key);
	/**
	 * Ends that. After return no access through `key` begins, none is under way in this process, and no write of
	 * the peer's lands any more. Waits for a write that is under way, which takes some 100 us at most while the
	 * peer has its core; a dead or stopped peer is seen, one of which nothing is heard gets a second, and a warning
	 * that memory may still change.
	 */
	void (*conceal)(struct rwk_channel *ch, const struct rwk_rkey *key);

	/** May be NULL, where nothing of the kind is counted. False: there is no connection yet. Also of a failed
	 * channel. */
	bool (*traffic)(const struct rwk_channel *ch, struct rwk_traffic *out);
};

#define RWK_EXPOSE_IOV_MAX 8

/** What a region is exposed for, as bits. */
enum { RWK_EXPOSE_READ = 1, RWK_EXPOSE_WRITE = 2 };

/** UC on shared memory: the peers of this node. */
extern const struct rwk_transport rwk_shm_transport;

/**
 * RC on udp, UC on tcp where UDP does not get through: the peers of other nodes. Its open takes the port number and
 * nonce that it is given, if any; close, or linger, waits for what has been sent to be acknowledged, up to two seconds.
 * -ENETDOWN: there is no network, or the parameters leave none.
 */
extern const struct rwk_transport rwk_network_transport;

#endif
