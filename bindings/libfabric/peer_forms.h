/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the structures of receives are in each form (peer.h), whatever the headers say that we are compiled with: the
 * entry's has two links at its head until 2.2, and a place for data since 2.0; the calls are the same since 2.0.
 */
#ifndef RWK_FI_PEER_FORMS_H
#define RWK_FI_PEER_FORMS_H

#include "bindings/libfabric/peer_entry.h"

/** Of the libfabric that runs, one of those that rwk_fi_peer_known. */
static inline bool rwk_fi_is_first(void)
{
	return FI_MAJOR(fi_version()) == 1;
}

/** Does an entry begin with links? They are the owner's. */
static inline bool rwk_fi_is_linked(void)
{
	return FI_VERSION_LT(fi_version(), FI_VERSION(2, 3));
}

struct rwk_fi_first_entry {
	void *link[2];
	struct rwk_fi_message message;
	struct rwk_fi_receive receive;
};

struct rwk_fi_second_entry {
	void *link[2];
	struct rwk_fi_message message;
	uint64_t data;
	struct rwk_fi_receive receive;
};

struct rwk_fi_third_entry {
	struct rwk_fi_message message;
	uint64_t data;
	struct rwk_fi_receive receive;
};

/** Room for one of any form. */
union rwk_fi_any_entry {
	struct rwk_fi_first_entry first;
	struct rwk_fi_second_entry second;
	struct rwk_fi_third_entry third;
};

struct rwk_fi_second_match {
	fi_addr_t addr;
	size_t size;
	uint64_t tag;
};

struct rwk_fi_first_owner {
	size_t size;
	int (*get_msg)(struct fid_peer_srx *srx, fi_addr_t addr, size_t size, struct fi_peer_rx_entry **entry);
	int (*get_tag)(struct fid_peer_srx *srx, fi_addr_t addr, uint64_t tag, struct fi_peer_rx_entry **entry);
	int (*queue_msg)(struct fi_peer_rx_entry *entry);
	int (*queue_tag)(struct fi_peer_rx_entry *entry);
	void (*free_entry)(struct fi_peer_rx_entry *entry);
};

struct rwk_fi_second_owner {
	size_t size;
	int (*get_msg)(struct fid_peer_srx *srx, struct rwk_fi_second_match *match, struct fi_peer_rx_entry **entry);
	int (*get_tag)(struct fid_peer_srx *srx, struct rwk_fi_second_match *match, struct fi_peer_rx_entry **entry);
	int (*queue_msg)(struct fi_peer_rx_entry *entry);
	int (*queue_tag)(struct fi_peer_rx_entry *entry);
	void (*foreach_unspec_addr)(
		struct fid_peer_srx *srx, fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry));
	void (*free_entry)(struct fi_peer_rx_entry *entry);
};

#endif
