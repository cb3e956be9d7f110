/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this process keeps for itself about ports and channels, and the calls between the files of the service.
 *
 * A channel's life: ASKING (we want it, or the peer has said hello) -> OFFERED (the lower side has made the pair and
 * sent it) -> OPEN (both inboxes and the pair are mapped) -> FAILED. The higher side goes from ASKING to OPEN. See
 * attach.c.
 *
 * A channel of a port that many talk to is hot (its ring is polled) or cold (its peer rings a bell in the inbox). See
 * wake.c.
 */
#ifndef RWK_SHM_CHANNEL_H
#define RWK_SHM_CHANNEL_H

#include "shm/answer.h"
#include "shm/arrival.h"
#include "shm/counters.h"
#include "shm/fill.h"
#include "shm/ring.h"
#include "shm/slab.h"

#include "base/list.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define RWK_SHM_HOT_MAX 16u
#define RWK_SHM_NO_BELL UINT32_MAX
#define RWK_SHM_LACKING_MAX 5000 /* ms without a descriptor to attach with, or memory to send, until that is an error */
#define RWK_SHM_TALK    1000 /* ms after a sign of a handshake in which there may be more */

enum rwk_shm_state { RWK_SHM_ASKING, RWK_SHM_OFFERED, RWK_SHM_OPEN, RWK_SHM_FAILED };

/** A control record that waits for room. */
struct rwk_shm_waiting_control {
	struct rwk_list link;
	uint8_t kind, len;
	unsigned char body[RWK_SHM_CONTROL_MAX];
};

/** A message that comes in pieces. */
struct rwk_shm_assembly {
	struct rwk_place *place; /* the client's; NULL: none is under way */
	size_t total, have;
	uint8_t kind;
};

struct rwk_shm_channel {
	struct rwk_channel base;
	enum rwk_shm_state state;
	int doom; /* negative errno: will fail with this at the end of progress */
	bool hot;
	bool partial;          /* the peer's full address is not known yet */
	bool peer_has_barrier; /* joined rwk_barrier_everywhere */
	bool owes_wake;        /* the peer was to be woken, and that could not be done */
	bool astray;           /* what was offered may have come to another, who has the peer's number by now */
	unsigned side;         /* of the pair: 0 its creator */

	struct rwk_shm_tx tx;
	struct rwk_shm_rx rx;
	struct rwk_shm_answer answer;
	struct rwk_shm_assembly assembly;
	uint32_t in_pieces[RWK_SHM_ARRIVAL_CLASSES]; /* messages sent so that may be answered */
	uint32_t silent; /* tx.stamp as long as the client has sent nothing since the last message in pieces came */
	uint32_t seen;     /* messages since the last choice of hot channels */
	struct rwk_shm_slabs slabs;
	struct rwk_shm_fill fill; /* of slabs that the peer has read last */

	/* What waits: controls go first. In port->busy while either is not empty. */
	struct rwk_list controls, ops;
	struct rwk_list busy, failing, connecting;

	/* The pair and the peer's inbox, mapped. */
	struct rwk_shm_pair_header *pair;
	size_t pair_size;
	uint32_t ring_lines;
	struct rwk_shm_inbox *inbox;

	/* The peer. */
	struct rwk_address to;
	uint32_t bell;         /* of ours, that the peer rings: index into port->by_bell */
	uint32_t peer_bell;    /* of the peer's, that we ring */
	uint32_t contact;      /* number of this channel of ours: a later one to the same peer has another */
	uint32_t peer_contact; /* the peer's; 0: not heard of yet */
	pid_t pid;             /* that has said HELLO; once OPEN, that has the pair. 0: not heard of yet */
	uint64_t start;        /* when that process began, ticks as /proc has it; 0: not known */
	bool watched;          /* by a pidfd or through /proc */
	int pidfd;             /* -1: none, evidence comes from /proc */
	int pair_fd;           /* while OFFERED, else -1 */
	uint64_t retry_at, retry_gap; /* milliseconds, while ASKING or OFFERED */
	uint64_t repeat_at, repeat_gap; /* likewise, of a note that may lie unread; 0: none does */
	uint64_t lacking_since;       /* milliseconds: when descriptors, or memory, were first missed; 0: not so far */
	uint64_t awaited_since;       /* milliseconds: since when nobody is at a partial address; 0: not so far */

	void *transfer;
};

struct rwk_port {
	const uint32_t *here; /* 1; 0 in a forked child */
	uint32_t hot_count, cold_count;
	struct rwk_shm_channel *hot[RWK_SHM_HOT_MAX];
	const struct rwk_client *client;
	void *cookie;
	void *transfer;
	const size_t *awaited[RWK_AWAITED_KINDS]; /* of the client's, as rwk_port_attr.awaited */
	const bool *looks, *waits;                /* likewise */
	uint32_t leave_until[RWK_AWAITED_KINDS];  /* so long (polls) a message is left that nobody waits for */
	struct rwk_list busy;    /* channels with something queued */
	struct rwk_list failing; /* channels with a doom */
	struct rwk_list connecting;

	uint32_t polls, idle_polls;
	bool armed, oversubscribed;
	bool have_barrier; /* rwk_barrier_everywhere is allowed */
	bool string_copy;  /* rwk_copy_has_string */
	bool demotes;      /* rwk_demote_possible */
	bool warned;        /* of want of descriptors: once is enough */
	bool turns_told;    /* likewise, that offers wait for long */
	bool bells_rung;    /* look at the bells once, though no channel is cold */
	uint16_t timer_set; /* milliseconds that the timer was set to; 0: it is not */
	uint32_t unwatched; /* open channels whose peer has no pidfd here */
	uint32_t wakes_owed; /* channels with owes_wake */
	uint64_t now;          /* milliseconds, as of the last look at the clock */
	uint64_t evidence_at;  /* when to look for deaths, */
	uint64_t balance_at;   /* to choose the hot channels anew */
	uint64_t talk_until;   /* until when handshakes are likely: the socket is looked at more often */
	uint32_t evidence_next; /* the channel to begin with */

	/* Channels by number, which is their bell too; NULL where free. */
	struct rwk_shm_channel **by_bell;
	uint32_t bells, bell_room;

	struct rwk_address address;
	uint32_t contacts; /* numbers given to channels */
	int sock, epoll, timer, inbox_fd; /* in a forked child there is no sock, */
	int name;                         /* and not this one, which has the port's full name */
	struct rwk_list all;              /* of the process's ports: attach.c */
	uint32_t offers; /* pairs whose descriptor is still open */
	uint64_t turns_since; /* milliseconds: since when no offer's turn has come; 0: none waits */
	struct rwk_shm_inbox *inbox;
	pid_t pid;
	uint64_t start;
	size_t direct_least; /* rwk_shm_direct_least, when the port was opened */
	struct rwk_shm_port_counters count;
};

static inline struct rwk_shm_channel *rwk_shm_channel(struct rwk_channel *c)
{
	return (struct rwk_shm_channel *)c;
}

static inline struct rwk_shm_side *rwk_shm_my_side(struct rwk_shm_channel *ch)
{
	return &ch->pair->side[ch->side];
}

static inline struct rwk_shm_side *rwk_shm_his_side(struct rwk_shm_channel *ch)
{
	return &ch->pair->side[!ch->side];
}

/* port.c */

/** A channel in state ASKING, entered into the port's lists; NULL: no memory, or no bell left. */
struct rwk_shm_channel *rwk_shm_channel_new(struct rwk_port *port, const struct rwk_address *to, void *peer);
/** Ops are completed with `status`, memory is unmapped, descriptors closed, lists left; base stays for the client.
 * Idempotent. */
void rwk_shm_channel_stop(struct rwk_shm_channel *ch, int status);
/** Stops it and frees it. */
void rwk_shm_channel_free(struct rwk_shm_channel *ch, int status);
/** The channel fails with `err` at the end of the current or the next progress, after what is in its ring has been
 * delivered. */
void rwk_shm_doom(struct rwk_shm_channel *ch, int err);

/* send.c */

int rwk_shm_send(struct rwk_channel *c, const struct rwk_envelope *env, const void *buf, size_t len);
int rwk_shm_post(struct rwk_channel *c, struct rwk_op *op);
int rwk_shm_access(struct rwk_channel *c, const struct rwk_direct_access *a);
int rwk_shm_withdraw(struct rwk_channel *c, struct rwk_op *op);
/** Sends of what is queued as much as goes; returns the number of things done. */
int rwk_shm_send_queued(struct rwk_shm_channel *ch);
/** Could rwk_shm_send_queued do something now? */
bool rwk_shm_queue_can_go(struct rwk_shm_channel *ch);
/** Sets whether messages may go directly. */
void rwk_shm_gate(struct rwk_shm_channel *ch);
/** Completes everything queued. */
void rwk_shm_queue_drop(struct rwk_shm_channel *ch, int status);

/* deliver.c */

/** Hands all that is in the ring to the client, about `budget` messages at most; returns how many. */
int rwk_shm_deliver(struct rwk_shm_channel *ch, int budget);

/* wake.c */

/** After something was published on a channel whose peer asks for more than that: the bell, and a datagram if he
 * sleeps. */
void rwk_shm_ring_bell(struct rwk_shm_channel *ch);
/** The pair says that we have gone: the peer is to look at that before it sleeps, and woken if it does. */
void rwk_shm_tell_gone(struct rwk_shm_channel *ch);
/** Its ring, and whether the peer has gone, is looked at in the next progress, as if it had rung. */
void rwk_shm_look_at(struct rwk_shm_channel *ch);
/** Wakes those whom it could not wake before, unless they are awake. */
void rwk_shm_wake_owed(struct rwk_port *port);
/** The peer may wait for what we have just consumed. */
void rwk_shm_tell_consumed(struct rwk_shm_channel *ch);
int rwk_shm_arm(struct rwk_port *port);
void rwk_shm_disarm(struct rwk_port *port);
/** Polls the channels whose bell was rung. */
int rwk_shm_poll_bells(struct rwk_port *port);
/** A channel has become open, or leaves. */
void rwk_shm_enlist(struct rwk_shm_channel *ch);
void rwk_shm_delist(struct rwk_shm_channel *ch);
/** Chooses the hot channels anew; returns messages delivered on the way. */
int rwk_shm_balance(struct rwk_port *port);

/* attach.c */

/** Makes socket and inbox; fills the address's port and nonce. */
int rwk_shm_attach_open(struct rwk_port *port, uint16_t number);
void rwk_shm_attach_close(struct rwk_port *port);
/** Sends what the state of the channel asks for; later calls are retries. */
void rwk_shm_attach_try(struct rwk_shm_channel *ch);
/** Handles datagrams; returns how many were handshakes. */
int rwk_shm_attach_poll(struct rwk_port *port);
/** Retries what is due. */
void rwk_shm_attach_retry(struct rwk_port *port);
/** Unmaps and closes what attaching has made. */
void rwk_shm_attach_drop(struct rwk_shm_channel *ch);
/** One byte to the peer's socket; false: it could not be sent, and the peer may sleep on. */
bool rwk_shm_attach_wake(struct rwk_shm_channel *ch);
/** Takes an offer back that may have been accepted: then the peer looks at what the pair says. */
void rwk_shm_attach_gone(struct rwk_shm_channel *ch);

/* evidence.c */

/** Begins to watch the peer's process; false: it is not there any more. */
bool rwk_shm_watch(struct rwk_shm_channel *ch);
void rwk_shm_unwatch(struct rwk_shm_channel *ch);
/** Looks at the next few peers without a pidfd, and at who said good-bye. */
void rwk_shm_look_for_deaths(struct rwk_port *port);
/** Handles what the port's epoll descriptor reports: datagrams, deaths, the timer. */
int rwk_shm_events(struct rwk_port *port);

#endif
