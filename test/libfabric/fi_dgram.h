/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram endpoints: two of a domain, each with a real socket; one sends, the other receives. Between sockets of one
 * host a datagram is there when its send returns, or a moment later, so that what is not there then has been dropped.
 */
#ifndef RWK_FI_DGRAM_TEST_H
#define RWK_FI_DGRAM_TEST_H

#include "fi_test.h"

#define T_DGRAM_MAX 1024u /* bytes of a datagram */

struct t_dgram_how {
	uint32_t format; /* 0: native */
	int family;      /* of loopback, to bind to; 0: to any */
	enum fi_progress progress;
	enum fi_threading threading;
	size_t rx_size;
};

/** The two, and what they send and receive. */
extern struct t_domain dgrams;
extern struct t_end sender, receiver;
extern fi_addr_t to; /* the receiver, as the sender knows it */
extern unsigned char out[2 * T_DGRAM_MAX], in[2 * T_DGRAM_MAX];

/** To be freed with fi_freeinfo. */
struct fi_info *t_dgram_hints(const struct t_dgram_how *how);

/** Both, and the receiver known to the sender. NULL: as usual. */
void t_dgram_open(const struct t_dgram_how *how, const struct t_options *o);
void t_dgram_close(void);

/** An entry of the receiver's, whose datagram is in `in`. */
void t_dgram_check(const struct fi_cq_tagged_entry *e, void *context, size_t len, unsigned seed);

/** A datagram goes and comes: then what went before is gone. `from`: its source. */
void t_dgram_exchange(size_t len, unsigned seed, fi_addr_t from);

#endif
