/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * try_all asks the provider for everything that libfabric has, and prints what it answers;
 * bindings/libfabric/conformance makes the table of bindings/libfabric/README.md of it. It reads the names to try from
 * its standard input, a line each, as the headers have them, so that nothing has to be listed twice:
 *
 *     GROUP NAME VALUE            ("flag FI_PEEK 524288", "wait_obj FI_WAIT_FD 3")
 *
 * and prints lines of five fields with tabs between: group, name, kind of endpoint, where it was tried, and what came
 * back: 0 or a negative errno, or one of the answers below.
 */
#ifndef RWK_TRY_H
#define RWK_TRY_H

#include "fi_msg.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#if __has_include(<rdma/providers/fi_peer.h>)
#include <rdma/providers/fi_peer.h>
#endif

/** Answers beside errno. */
#define T_NOT_NEEDED 1 /* of a mode: the program may offer it, and the provider does not ask for it */
#define T_NEEDED     2 /* of a registration mode: without it there is no access to memory */

/** A name of the headers, with its value. */
struct t_name {
	char group[32], name[64];
	uint64_t value;
};

/** An endpoint of each kind, ready, and what else there is to try things on. */
struct t_target {
	const char *kind;
	enum fi_ep_type type;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	fi_addr_t to;
	uint64_t remote, key; /* of the memory that can be reached */
	struct t_domain d;    /* where ep is of `end`: connectionless */
	struct t_end end;
	struct t_side client, server; /* else ep is the client's */
};

/** Hints for a kind; to be freed with fi_freeinfo. */
struct fi_info *t_kind_hints(enum fi_ep_type type);

/** Prints a line. */
void t_report(const struct t_target *t, const char *group, const char *name, const char *place, long result);

/** Has the provider that value in the hints? True: it was one for fi_getinfo, and is printed. */
bool t_try_hint(struct t_target *t, const struct t_name *n);
/** A bit, in all places that take flags. */
void t_try_flag(struct t_target *t, const struct t_name *n);
/** Values of attributes of objects, options, atomic operations. */
void t_try_object(struct t_target *t, const struct t_name *n);
/** All calls; those for data, for connections, for objects. */
void t_try_transfers(struct t_target *t);
void t_try_connection(struct t_target *t);
void t_try_calls(struct t_target *t);

/** Closes what a call with that result has opened: *object is its pointer (each begins with its fid). The result. */
long t_opened(long result, const void *object);

#endif
