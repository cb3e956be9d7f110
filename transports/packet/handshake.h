/* SPDX-License-Identifier: BSD-3-Clause */
/* Greetings: connect.c is the handshake itself, terms.c says what they agree on, names.c whom they are from. */
#ifndef RWK_PACKET_HANDSHAKE_H
#define RWK_PACKET_HANDSHAKE_H

#include "packet/channel.h"
#include "packet/greeting.h"
#include "packet/port.h"

/* connect.c */
void rwk_packet_greeted(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g);
/** Asks again who has not answered. */
void rwk_packet_ask(struct rwk_packet_channel *ch, rwk_time now);
/** Whether the peer is there cannot be told for sure: it is asked for half a minute more, and given up then. */
void rwk_packet_ask_on(struct rwk_packet_channel *ch);
/** A stream to the peer is open: it is asked as long as that is, unless it can hear us by UDP alone. */
void rwk_packet_ask_there(struct rwk_packet_channel *ch);
/** A packet of the channel's QP has come: the peer has heard our answer. */
void rwk_packet_confirmed(struct rwk_packet_channel *ch);

/* terms.c */
/**
 * Payload of the largest packet that the channel may send by that way. The peer makes its machine by what one greeting
 * says: all with the same QPN say the same by a way, whatever becomes of that meanwhile; but an ACCEPT of SRC says what
 * the target takes that it names.
 */
uint32_t rwk_packet_path_pmtu(struct rwk_packet_channel *ch, int way);
/** Does UDP carry less now than they have said? */
bool rwk_packet_said_too_much(const struct rwk_packet_channel *ch);
/** Writes our terms into a greeting that goes by that way and has its type. */
void rwk_packet_terms(struct rwk_packet_channel *ch, int way, struct rwk_greeting *g);
/**
 * SRC: what the greeting has added to the decision. A peer that has more than one address, and greets from one that it
 * did not name, is not shared: a target hears one address, to which its answers go. Nor is one of another domain than
 * the initiator for its node is aimed at; there an asker has been promised it already, and finds out when it aims.
 */
void rwk_packet_decide(struct rwk_packet_channel *ch, int way, const struct rwk_greeting *g);
/**
 * The peer may be in another container of this machine. The job map shows that to nobody: the kernel's name does. Those
 * of this node are counted already, as local_peers.
 */
void rwk_packet_place(struct rwk_packet_channel *ch, const struct rwk_greeting *g);

/* names.c */
/** The channel to who has sent this greeting: by its nonce, or by where it is while that is all we know; or NULL. */
struct rwk_packet_channel *rwk_packet_find(
	struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g);
/**
 * The peer of `ch` is that of `to` as well: one process, by two of its addresses. It has one connection, `to`'s; the
 * other channel leaves it its stream, and what the client moves, and fails. An upcall.
 */
void rwk_packet_give_way(struct rwk_packet_channel *ch, struct rwk_packet_channel *to);
/**
 * Where we ask is the process with that nonce. Has another channel got it already, which has come so far at least? Then
 * this one gives way. An upcall.
 */
bool rwk_packet_doubles(struct rwk_packet_channel *ch, uint64_t nonce, enum rwk_channel_state least);
/**
 * The peer's full address is known now. 0; -EALREADY, another channel has it; or why the client does not want it.
 * An upcall.
 */
int rwk_packet_acquainted(struct rwk_packet_channel *ch, const struct rwk_greeting *g);
/** A new channel to who has sent this greeting; NULL, and *rc says why there is none. An upcall. */
struct rwk_packet_channel *rwk_packet_channel_from(struct rwk_port *port, const struct rwk_greeting *g, int *rc);
/** Where we ask somebody is, who takes us by SRC if we ask for him by name: there is somebody, and that is the name. */
void rwk_packet_take_name(struct rwk_packet_channel *ch, const struct rwk_greeting *g);

#endif
