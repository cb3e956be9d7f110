/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a channel sends: outbound.c makes frames of messages and requests of ops, and gives them to the machine;
 * requests.c follows them from their beginning to their end, and without the op that they were for.
 */
#ifndef RWK_PACKET_REQUEST_H
#define RWK_PACKET_REQUEST_H

#include "packet/channel.h"

#include "machine.h"

/* A frame: its own four bytes, then records. */
#define RWK_FRAME_HEAD 4u
#define RWK_FRAME_ACK  0x01000000u /* the other bits are rwk_rc_take_ack's */
#define RWK_RECORD_MAX 24u         /* bytes of a record's head, with data */
#define RWK_FRAMES_MAX 64u         /* frames of a channel that are under way; beyond it send says -EAGAIN */
/*
 * Bytes of a message that goes as a Send. Announced, it waits for a round trip first, of its data's time a quarter at
 * 64 KB and an eighth at 256 KB; sent, it is copied once more if its receive comes late, which at 512 KB costs more.
 * Not so by SRC, where what has begun must find room in an inbox, nor on a stream: of messages of 128 KB both ways TCP
 * has more than its buffers hold, and puts these together anew, which took 1.8 times as long.
 */
#define RWK_SEND_MAX      262144u
#define RWK_SEND_MAX_LESS 65536u

#define RWK_RELIEF_MAX (512u << 10) /* bytes of copies for a peer that is late */
#define RWK_COPIES_MAX (64u << 20)  /* of a port's copies; more Writes are not copied when their channels end */

/* Of the response to one Read Request: one batch of the link. */
#define RWK_READ_AROUND  20u /* bytes of a packet of it beside the payload: BTH, AETH, ICRC */
#define RWK_READ_PACKETS 15u /* at most: RWK_RC_READS_MAX requests of them fill a window */

/** Bytes of payload that one Read Request asks for at most. */
static inline uint32_t rwk_packet_read_chunk(uint32_t pmtu)
{
	uint32_t packets = RWK_LINK_BATCH / (pmtu + RWK_READ_AROUND);

	return pmtu * (packets < RWK_READ_PACKETS ? packets : RWK_READ_PACKETS);
}

/** A work request and what it is for. */
struct rwk_request {
	struct rwk_wr wr;
	struct rwk_list all;           /* rwk_packet_channel.requests */
	struct rwk_list lent;          /* rwk_port.lent: of a Send that the client waits for, and that may be copied */
	struct rwk_packet_channel *ch; /* NULL: an orphan */
	struct rwk_pool *home;
	enum rwk_request_kind {
		RWK_REQ_FRAME,  /* records in `bytes`; nobody waits for it */
		RWK_REQ_SEND,   /* a long message of op */
		RWK_REQ_COPY,   /* one of any kind but the first that goes on without its op: `copy` has its bytes */
		RWK_REQ_OP,     /* a part of op, a read or write */
		RWK_REQ_STATUS, /* a part of op: have the others been carried out? The answer comes into `bytes` */
		RWK_REQ_PULL,   /* a part of what the peer has asked for */
		RWK_REQ_ORPHAN, /* SRC: its channel is gone, but its packets stand among those of others */
	} kind;
	uint32_t used; /* bytes of a frame; of a COPY those that rwk_packet_channel.copied has of it */
	struct rwk_op *op;
	struct rwk_pulling *pulling; /* a pull's, whose answer waits for this part; or NULL */
	uint32_t pulled;             /* the key of the region that it reads */
	void *copy; /* of what is sent, where it cannot lie with the client any more; or NULL */
	struct iovec iov[RWK_MACHINE_IOV];
	unsigned char bytes[]; /* of a frame: all of it; of a long message: its head */
};

/**
 * Bytes of an RDMA request at most; longer ops are several. All of one that has begun must be copied when its channel
 * ends in good order, or its region is concealed; and of an orphan.
 */
static inline size_t rwk_packet_part_max(const struct rwk_packet_channel *ch)
{
	return (size_t)1 << (ch->shared ? 20 : 22);
}

/** Does something wait that may want room among the frames: an op, or an answer to what the peer has asked? */
static inline bool rwk_packet_wants_room(const struct rwk_packet_channel *ch)
{
	return !rwk_list_empty(&ch->queue) || ch->pulls;
}

/** Nothing of it is under way, whose end would have it pumped, and something waits: there was no memory. */
static inline bool rwk_packet_lacks_memory(const struct rwk_packet_channel *ch)
{
	return rwk_packet_wants_room(ch) && rwk_list_empty(&ch->requests) && ch->state == RWK_CH_OPEN;
}

/* outbound.c */
/** Tells the machine of the acknowledgements that frames have brought. */
void rwk_packet_take_ack(struct rwk_packet_channel *ch);
/** Moves what waits: ops into requests, requests into packets. Returns packets made. */
int rwk_packet_pump(struct rwk_packet_channel *ch);
/** The client makes progress after a burst: did it so soon enough that messages may wait for that the next time? */
void rwk_packet_judge_burst(struct rwk_packet_channel *ch);
/** A record of the service's own; false: out of memory. */
bool rwk_packet_control(struct rwk_packet_channel *ch, const struct rwk_envelope *env, const void *bytes, size_t len);
/** Posts the parts of an RDMA request, each of at most as much as a machine takes. 0 or -ENOMEM. */
int rwk_packet_rdma(struct rwk_packet_channel *ch, struct rwk_op *op);

/* requests.c */
/** Words of rwk_op.service; a kind of op may have more. */
enum { RWK_WORD_STATE, RWK_WORD_PARTS, RWK_WORD_STATUS };
enum { RWK_OP_QUEUED = 1, RWK_OP_RUNNING };
/** Is a posted send to be told of only when the peer has said that it has come? UC's machine does not know. */
static inline bool rwk_packet_asks_for_arrival(const struct rwk_packet_channel *ch, const struct rwk_op *op)
{
	return ch->uc && op->arrival;
}
/** A request of the channel's, with nothing in it; NULL: out of memory. */
struct rwk_request *rwk_packet_request(struct rwk_packet_channel *ch, enum rwk_request_kind kind);
void rwk_packet_request_free(struct rwk_request *r);
/** Room for its copy, which it has none of yet, and keeps until it is freed; NULL: out of memory. No frame has one. */
void *rwk_packet_copy_room(struct rwk_request *r, size_t len);
/** Posts it to the channel's machine: 0, or why not, and it stays the caller's. */
int rwk_packet_start(struct rwk_request *r);
/** The machine is done with it: an upcall. */
void rwk_packet_done(void *user, struct rwk_wr *wr, int status);
/** Such an op has one part more, or less: with the last it is done. With the first status of a part that failed. */
void rwk_packet_part_add(struct rwk_op *op);
void rwk_packet_part_failed(struct rwk_op *op, int status);
void rwk_packet_part_done(struct rwk_packet_channel *ch, struct rwk_op *op, int status);
/**
 * What is still to be sent of it is its own bytes from now on: the peer may yet take a message as whole, or has an
 * answer behind a Write that says it is. What a Read brings is dropped. False: out of memory.
 */
bool rwk_packet_keep_bytes(struct rwk_request *r);
/**
 * An RDMA request that has not begun ends with that status, and leaves the machine's queue. False: it has begun, or the
 * peer may have been told that it is done, which it is to be then.
 */
bool rwk_packet_take_out(struct rwk_request *r, int status);
/**
 * Takes the ops that run back from the machine, and what the peer has asked for: long messages, and RDMA requests that
 * have begun, go on from copies, and what else there is ends. False: there is no memory, or the port has more copies
 * than RWK_COPIES_MAX; the channel cannot go on.
 */
bool rwk_packet_detach(struct rwk_packet_channel *ch);
/**
 * Who sends need not wait for a peer that answers late: long messages that run end now, and go on from copies, of which
 * there are at most RWK_RELIEF_MAX. An upcall.
 */
void rwk_packet_relieve(struct rwk_packet_channel *ch);
/**
 * Nothing comes, and there is time: the first of rwk_port.lent, which there is, ends so, if there is room for all of
 * them. The peer acknowledges many by and by, but few only with its next message or a good while later. Returns whether
 * it has ended. An upcall.
 */
bool rwk_packet_relieve_first(struct rwk_port *port);
/**
 * SRC: the channel's requests leave its initiator's queue, or stay in it as orphans if packets of them are made: those
 * have numbers that others' packets stand behind. True: some have left it.
 */
bool rwk_packet_release(struct rwk_packet_channel *ch, int status);

#endif
