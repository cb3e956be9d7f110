/* SPDX-License-Identifier: BSD-3-Clause */
/* SRC: connections to other nodes that channels share: initiator.c. */
#ifndef RWK_PACKET_INITIATOR_H
#define RWK_PACKET_INITIATOR_H

#include "packet/channel.h"
#include "packet/path.h"

#include "base/keyed.h"
#include "base/list.h"

/**
 * SRC: what sends to the processes of one other node, for all channels to them. It lives as long as the port, for the
 * target there does too.
 */
struct rwk_packet_initiator {
	struct rwk_port *port;
	struct rwk_packet_path path;  /* to the domain there */
	struct rwk_link_address seen; /* where its acknowledgements come from */
	uint32_t node;                /* rwk_address.node of those processes */
	uint64_t domain;              /* theirs; 0: not known yet */
	uint32_t target;              /* the QP there; 0: not known yet, and rc is NULL */
	uint32_t qpn, psn;
	struct rwk_rc *rc; /* lies at the start of its memory */
	uint32_t pmtu; /* the target's */
	struct rwk_packet_narrow *narrow; /* as a channel's */
	bool failed;
	bool ceased;         /* the domain knows that nothing more comes, or is gone */
	uint8_t ceases;      /* how often it was told, */
	rwk_time cease_at;   /* and when it is told next; 0: not yet */
	uint16_t window;     /* packets that may be under way, as agreed */
	uint32_t channels;   /* that go by it */
	rwk_time give_up_at; /* no channel is left: what is under way then is given up; 0: there are some */
	struct rwk_list all, dirty;
	UT_hash_handle by_qpn;
};

/** The machine that carries what the channel sends, if that is RC or SRC; else NULL. */
static inline struct rwk_rc *rwk_packet_requester(const struct rwk_packet_channel *ch)
{
	return ch->shared ? ch->by->rc : ch->rc;
}

/**
 * The one to that node and domain (0: whichever is there now), made if there is none: NULL for want of memory.
 */
struct rwk_packet_initiator *rwk_packet_initiator(struct rwk_port *port, uint32_t node, uint64_t domain);
/**
 * Aims it where the peer's ACCEPT says, if it was not yet: 0; -ESTALE: it is aimed at another domain; -ENOMEM.
 */
int rwk_packet_aim(struct rwk_packet_initiator *by, const struct rwk_link_address *from, const struct rwk_greeting *g);
/** A channel goes by it no more; `gone`: the peer's process has ended. */
void rwk_packet_initiator_left(struct rwk_packet_initiator *by, bool gone);
int rwk_packet_initiator_pump(struct rwk_packet_initiator *by);
/** The port wakes when the machine wants to be pumped. */
void rwk_packet_initiator_deadline(struct rwk_packet_initiator *by);
/** A packet to that QPN has come by the lossy way; false: there is no such initiator. */
bool rwk_packet_initiator_packet(struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_wire *w,
	const void *payload, size_t len);
int rwk_packet_initiators_pump(struct rwk_port *port);
void rwk_packet_initiators_ring(struct rwk_port *port, rwk_time now);
/**
 * The port is closed, and its channels are done: those whose packets have all arrived say so where they went. Is there
 * something to wait for? To be called again until there is not.
 */
bool rwk_packet_initiators_cease(struct rwk_port *port);
/** CEASED has come. */
void rwk_packet_initiator_ceased(struct rwk_port *port, const struct rwk_greeting *g);
/** Nobody has that port any more. */
void rwk_packet_initiators_refused(struct rwk_port *port, const struct rwk_link_address *who);
void rwk_packet_initiators_free(struct rwk_port *port);

/* share.c */
/** SRC: an initiator's packets are cut, or cut otherwise: as many are under way as the domain there has room for. */
void rwk_packet_recount(struct rwk_packet_initiator *by);

#endif
