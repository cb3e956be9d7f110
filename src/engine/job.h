/* SPDX-License-Identifier: BSD-3-Clause */
/* What the process knows of its job and its node: read once, when the first endpoint opens, and kept. */
#ifndef RWK_ENGINE_JOB_H
#define RWK_ENGINE_JOB_H

#include "engine/status.h"
#include "selection/selection.h"
#include "topology/job_map.h"
#include "transport.h"

/**
 * Reads the job map if that has not been done; 0 or -ENOMEM. Any thread. Blocks for some milliseconds the first time.
 */
int rwk_job_load(void);

/** From now on forked children have the use of all this, whatever other threads do at the fork. 0 or -ENOMEM. */
int rwk_job_watch_forks(void);

/** Forgets it, when no endpoint is open any more and the library goes. */
void rwk_job_unload(void);

/** The facts of selection before any peer is known. After rwk_job_load. */
void rwk_job_facts(struct rwk_sel_facts *f);

/**
 * Fills in job, rank and node of an endpoint's address, and what a port wants to know of the node. After rwk_job_load.
 */
void rwk_job_describe(struct rwk_port_attr *attr);

/** Have `threads` of this process, and one of each other rank on the node, less than a processor each? */
bool rwk_job_is_crowd(unsigned threads);

/** Opens the status page of the endpoint with that address (rwk_status_open). After rwk_job_load. */
void rwk_job_show(struct rwk_status *s, const struct rwk_address *me);

/** Can there be peers on other nodes, and do the parameters let a network reach them? After rwk_job_load. */
bool rwk_job_wants_network(void);

/** Is that IP (IPv4 mapped into IPv6) one of this host's own? Any thread. Asks the kernel at most once a second. */
bool rwk_ip_is_local(const uint8_t ip[16]);

/**
 * Does that address say that it is on this node, which is `node`? By its node and its IP, a partial one by its IP. The
 * node alone does not do: virtual machines that were restored from one snapshot have the same.
 */
bool rwk_address_claims(const struct rwk_address *a, uint32_t node);

/** The same of the node of this job. After rwk_job_load. */
bool rwk_address_is_here(const struct rwk_address *a);

#endif
