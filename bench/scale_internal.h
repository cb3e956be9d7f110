/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated job from inside: scale_job.c has what there is, scale_rank.c who works when. */
#ifndef BENCH_SCALE_INTERNAL_H
#define BENCH_SCALE_INTERNAL_H

#include "bench/scale_job.h"

#include "links/sim/sim.h"
#include "rc/rc.h"

#define SCALE_QPN   16u   /* the first number of a queue pair */
#define SCALE_SRQN  256u  /* and of a shared receive queue on a node */
#define SCALE_DELAY 1000u /* ns between any two nodes */

/* In front of each message's bytes. */
struct head {
	uint32_t from, to; /* ranks */
	uint32_t ack;      /* rwk_rc_take_ack's, */
	uint32_t has_ack;  /* if there was one */
};

/* A message on its way; freed when it is done. */
struct message {
	struct rwk_wr wr;
	struct head head;
	struct iovec iov[2];
};

/* An early packet. */
struct kept {
	struct rwk_wire w;
	size_t len;
	uint8_t bytes[];
};

struct half {
	struct rank
		*rank; /* whose processor works for it; of an SRC target who serves it now; NULL: there is no half */
	struct rwk_rc *rc; /* NULL: an SRC target, which is a responder alone */
	void *memory, *responder;
	struct rwk_link_address to;
	uint32_t peer_qpn;
	uint32_t from;      /* the rank that sends to it */
	rwk_time next;      /* rwk_rc_next */
	struct kept **kept; /* RWK_RC_WINDOW_MAX, from the first loss on */
	bool has_sent, has_received, touched;

	/* The message that is arriving. */
	struct head head;
	uint32_t came;    /* bytes */
	bool good, acked; /* acked: the head has an acknowledgement that the machine has not been told */
};

struct rank {
	struct node *node;
	uint32_t number;
	struct rwk_link *link;
	struct half *halves; /* by the peer's rank (RC) or node (SRC) */
	uint32_t half_count;
	void *server;                          /* SRC: the requester half with which targets are served */
	void *idle_responder;                  /* SRC: of all initiators */
	uint32_t sent;                         /* messages */
	rwk_time busy;                         /* until then */
	rwk_time alarm;                        /* the next that is set; 0: none */
	rwk_time earliest;                     /* no half's `next` is before it */
	bool took;                             /* the last thing done was to take packets */
	struct half *touched[SCALE_BATCH_MAX]; /* those that have had one since */
	uint32_t touched_count;
};

struct node {
	struct job *job;
	uint32_t number;
	rwk_time out_free, in_free; /* when its cable has room again */
	/* The domain; SRC. */
	struct rwk_link *link;
	struct half *targets; /* by the sender's rank */
	struct rank *serving; /* takes a packet for them */
	uint32_t turn;        /* the rank of the node that is woken first */
	rwk_time alarm, earliest;
};

struct job {
	struct scale_attr attr;
	struct scale_result result;
	struct rwk_sim *sim;
	uint32_t rank_count;
	struct rank *ranks;
	struct node *nodes;
	struct node **at; /* by number on the simulated network */
	uint8_t *came;    /* [to][from]: how often */
	uint8_t *pattern; /* the bytes of each message */
	uint64_t armed;   /* halves with a deadline */
	rwk_time delivered_at, done_at;
};

/* Opens a half's machine in this memory. */
struct rwk_rc *scale_open(struct half *h, void *memory, void *responder, bool sends);

/* The rank that has this receive queue on that node; one that does not exist: none has. */
uint32_t scale_rank_of_srqn(const struct node *n, uint32_t srqn);
/* A packet's work. */
void scale_work(struct rank *r);
/* All ranks begin. */
void scale_start(struct job *j);

#endif
