/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider has: capabilities and limits, in one place. info.c offers them, hints.c measures requests by them.
 */
#ifndef RWK_FI_INFO_H
#define RWK_FI_INFO_H

#include "bindings/libfabric/provider.h"
#include "engine/engine.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>

#define RWK_FI_DOMAIN_CAPS ((uint64_t)(FI_LOCAL_COMM | FI_REMOTE_COMM))
#define RWK_FI_AV_CAPS     ((uint64_t)(FI_SHARED_AV | FI_AV_USER_ID))
#define RWK_FI_MAX_ORDER   1024 /* bytes; longer ones may go directly (rwk_channel.direct_min is more, everywhere) */
#define RWK_FI_MAX_MSG     (SIZE_MAX / 2)
#define RWK_FI_TAG_FORMAT  0xaaaaaaaaaaaaaaaaULL /* "generic": all 64 bits can be matched and ignored */
#define RWK_FI_PROTO       (0x80000000u | 0x52574bu)
#define RWK_FI_OBJECTS     65536 /* endpoints, queues, counters of a domain; memory is the real limit */

/** What a kind of endpoint has. */
struct rwk_fi_kind {
	enum fi_ep_type type;
	const char *name;
	uint64_t tx_caps, rx_caps;
	uint64_t domain_caps; /* beside RWK_FI_DOMAIN_CAPS */
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t msg_order;
	uint64_t mode;  /* of the program, without which less works: what it has of it */
	int mr_needed;  /* bits of mr_mode without which no peer can reach memory */
	int mr_granted; /* bits that are given to who asks */
	uint32_t protocol;
	size_t inject_size; /* bytes */
	size_t iov_limit, rma_iov_limit, mr_iov_limit;
	size_t tx_size, tx_size_max; /* operations under way, unless asked otherwise; and if asked */
	size_t rx_size, rx_size_max; /* receives posted */
	size_t max_buffered;         /* bytes that total_buffered_recv may ask for */
	size_t max_msg_size;         /* 0: what a datagram carries */
	size_t max_order_raw, max_order_war, max_order_waw;
	uint64_t tag_format;
	size_t data_size, key_size; /* bytes of remote CQ data, of a key */
	size_t ep_cnt, mr_cnt, srx_cnt, stx_cnt; /* of a domain's: objects of which there may be so many */
	size_t contexts; /* of each direction that an endpoint may have, if it is a scalable one */
	bool native; /* addresses of ropewalk's own format, beside the two of sockets */
};

/** FI_EP_RDM, FI_EP_MSG and FI_EP_DGRAM. */
extern const struct rwk_fi_kind rwk_fi_rdm, rwk_fi_msg, rwk_fi_dgram;

/** Bytes of its longest message: a datagram's are what the parameters say. */
size_t rwk_fi_kind_max_msg(const struct rwk_fi_kind *k);

/** Those of its domain: with the libfabric that runs. */
uint64_t rwk_fi_domain_caps(const struct rwk_fi_kind *k);

static inline uint64_t rwk_fi_kind_caps(const struct rwk_fi_kind *k)
{
	return k->tx_caps | k->rx_caps | rwk_fi_domain_caps(k);
}

/** Capabilities completed: none are all, and what is not restricted to a direction has both. */
uint64_t rwk_fi_complete_caps(const struct rwk_fi_kind *k, uint64_t caps);

/**
 * What an endpoint that was opened with these may do. Programs name what peers may do to their memory (FI_REMOTE_READ)
 * and neither FI_READ nor FI_WRITE, and read all the same (Charm++), since other providers let them: who has sends may.
 */
uint64_t rwk_fi_endpoint_caps(const struct rwk_fi_kind *k, uint64_t caps);

/** Whether what the kind has covers the hints: 0, or -FI_ENODATA with each mismatch logged at info level. */
int rwk_fi_check_hints(const struct rwk_fi_kind *k, uint32_t version, const struct fi_info *hints);

/** Whether peers can reach registered memory in the mr_mode that a program of that API version offers (NULL: any). */
bool rwk_fi_reaches(const struct rwk_fi_kind *k, uint32_t version, const struct fi_domain_attr *d);

/** Whether the hints (or NULL) ask for an endpoint of a shared receive context. */
bool rwk_fi_shares_receives(const struct fi_info *hints);

struct rwk_address;

/**
 * An info like that one, an endpoint's of FI_EP_MSG, between those two ends (`dest` NULL: from there to anyone), for a
 * program of that API version. NULL: no memory, or an end has no form in the info's address format. To be freed with
 * rwk_fi_info_free, or by the program.
 */
struct fi_info *rwk_fi_info_again(
	uint32_t version, const struct fi_info *like, const struct rwk_address *src, const struct rwk_address *dest);
/** NULL: nothing. */
void rwk_fi_info_free(struct fi_info *info);

#endif
