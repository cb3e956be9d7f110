/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An entry of an imported receive context, fi_peer_rx_entry, and the owner's calls around it, in all their forms
 * (peer.h). The members stand in the same order in each, in two runs.
 */
#ifndef RWK_FI_PEER_ENTRY_H
#define RWK_FI_PEER_ENTRY_H

#include "bindings/libfabric/peer.h"
#include "engine/foreign.h"

/** The first run of an entry: the message. */
struct rwk_fi_message {
	struct fid_peer_srx *srx;
	fi_addr_t addr;
	size_t size;
	uint64_t tag;
};

/** The second run of an entry: the receive that it has, and what either side keeps with it. */
struct rwk_fi_receive {
	uint64_t flags;
	void *context;
	size_t count;
	void **desc;
	void *peer_context, *owner_context;
	struct iovec *iov;
};

/** That of an entry. */
struct rwk_fi_receive *rwk_fi_entry_receive(struct fi_peer_rx_entry *entry);

/** Its first run: the message. */
struct rwk_fi_message *rwk_fi_entry_message(struct fi_peer_rx_entry *entry);

/** Where the message's data stands; NULL: nowhere. */
uint64_t *rwk_fi_entry_data(struct fi_peer_rx_entry *entry);

/** Has the owner all the calls of its form? */
bool rwk_fi_entry_owner_is_whole(const struct fid_peer_srx *srx);

/** Asks for a receive for that message: 0, or -FI_ENOENT, each with *entry set; or another error. */
int rwk_fi_entry_get(
	struct fid_peer_srx *srx, const struct rwk_offer *m, fi_addr_t from, struct fi_peer_rx_entry **entry);

/** Tells of a message for which there was none. */
int rwk_fi_entry_queue(struct fid_peer_srx *srx, enum rwk_space space, struct fi_peer_rx_entry *entry);

/** Puts the message's data into such an entry, where it has a place. */
void rwk_fi_entry_tell_data(struct fi_peer_rx_entry *entry, const struct rwk_offer *m);

/** Has the owner ask `number` about each message whose sender it does not know, where it has a call for that. */
void rwk_fi_entry_ask_unknown(struct fid_peer_srx *srx, fi_addr_t (*number)(struct fi_peer_rx_entry *entry));

/** Gives an entry back. */
void rwk_fi_entry_free(struct fid_peer_srx *srx, struct fi_peer_rx_entry *entry);

#endif
