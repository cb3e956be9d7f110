/* SPDX-License-Identifier: BSD-3-Clause */
/* A scalable endpoint with its contexts, each with a queue of its own, as the tests of such endpoints use it. */
#ifndef RWK_FI_SEP_H
#define RWK_FI_SEP_H

#include "fi_test.h"

#define T_TX   2
#define T_RX   3
#define T_BITS 3 /* of an fi_addr_t: more contexts than there are can be named */

struct t_sep {
	struct fid_ep *sep, *tx[T_TX], *rx[T_RX];
	struct fid_cq *txq[T_TX], *rxq[T_RX];
	struct fid_av *av;
	unsigned char name[64];
	size_t name_len;
};

/** Hints for T_TX and T_RX contexts, all capabilities. */
struct fi_info *t_sep_hints(void);

/** Opens one, all of it enabled. */
void t_sep_open(struct t_sep *s, struct t_domain *d);

/**
 * The same up to what is enabled: contexts have their queues, the endpoint has its address vector, which is told to
 * expect so many names (0: nothing).
 */
void t_sep_make(struct t_sep *s, struct t_domain *d, size_t names);

/** And the rest. */
void t_sep_enable(struct t_sep *s);

/** A transmit context that is closed already is NULL. */
void t_sep_close(struct t_sep *s);

/** The number of that name in its vector. */
fi_addr_t t_sep_insert(struct t_sep *s, const void *name);

/** No queue of it has anything. */
void t_sep_nothing(struct t_sep *s);

#endif
