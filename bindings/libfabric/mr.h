/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory registration. What peers may reach is a region of the engine's in the domain's table; a registration for local
 * use alone is none, since any memory can be sent from and received into.
 *
 * Counters: one that is bound to a registration counts what reaches the memory by whatever endpoint of the domain, so
 * it drives all of them.
 */
#ifndef RWK_FI_MR_H
#define RWK_FI_MR_H

#include "bindings/libfabric/domain.h"

#include <rdma/fi_domain.h>

/**
 * The mr_mode bits that a domain heeds. A region needs none of them: peers have offsets and keys of the program's own.
 * A bit that fi_getinfo leaves set says to libfabric's programs that the provider cannot do without, and many that
 * offer one go on without it (fabtests: keys and offsets of their own, regions bound to no endpoint), while all must be
 * able to. So those that change what peers name are not left set; a program that wants one sets it in the info that it
 * opens the domain with.
 */
#define RWK_FI_MR_MODES   (RWK_FI_MR_GRANTED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT)
#define RWK_FI_MR_GRANTED (FI_MR_ALLOCATED | FI_MR_RMA_EVENT)

/** Bits for a domain's mr_mode, which may be one of the two modes of an API before 1.5. */
int rwk_fi_mr_bits(int mr_mode);

/** An endpoint's engine has come, or goes: the counters of registrations drive it. 0 or negative errno. Under the lock.
 */
int rwk_fi_mr_attach(struct rwk_fi_domain *domain, struct rwk_engine *engine);
void rwk_fi_mr_detach(struct rwk_fi_domain *domain, struct rwk_engine *engine);

/** fi_mr_map_raw and fi_mr_unmap_key, which are a domain's: there are no keys but those of 64 bits. */
int rwk_fi_mr_control(struct fid *domain, int command, void *arg);

/** The calls of fi_mr_*. */
extern const struct fi_ops_mr rwk_fi_mr_ops;

#endif
