/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What hwloc says about this node, boiled down to plain numbers: hwloc is loaded, asked and freed inside
 * rwk_machine_load, nothing of it stays. That takes milliseconds, and all ranks of a node begin at once: what needs no
 * more than numbers counts instead. HWLOC_SYNTHETIC and HWLOC_XMLFILE are honoured as
 * everywhere; the machine is then somebody else's: the process counts as not bound, and distances to living processes
 * are not known.
 */
#ifndef RWK_TOPOLOGY_MACHINE_H
#define RWK_TOPOLOGY_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define RWK_MACHINE_NICS 8
#define RWK_NIC_NAME     32

/** What two processes share at best, nearest first. */
enum rwk_locality {
	RWK_LOCALITY_CORE,
	RWK_LOCALITY_L2,
	RWK_LOCALITY_L3,
	RWK_LOCALITY_NUMA,
	RWK_LOCALITY_PACKAGE,
	RWK_LOCALITY_MACHINE,
	RWK_LOCALITY_UNKNOWN,
};

#define RWK_LOCALITY_LEVELS RWK_LOCALITY_MACHINE /* levels that a processor has an object of: CORE to PACKAGE */

/**
 * One processor (hardware thread): the logical number of its object on each level, RWK_NO_OBJECT where there is none.
 */
struct rwk_processor {
	uint32_t os_index;
	uint16_t at[RWK_LOCALITY_LEVELS];
};
#define RWK_NO_OBJECT UINT16_MAX

struct rwk_machine {
	bool known; /* false: hwloc was not asked, or had no answer; counts are the operating system's, distances are
		       not known */
	bool this_system;                 /* false: HWLOC_SYNTHETIC or HWLOC_XMLFILE describes another one */
	bool bound;                       /* this process may use only some of the node's cores */
	uint32_t cores, processors;       /* of the node, those that the container allows */
	uint32_t my_cores, my_processors; /* of those, what this process may use now */
	uint32_t packages, numa_nodes, l3_caches;
	uint64_t memory;                          /* bytes of the node; 0: not known */
	struct rwk_processor *list;               /* `processors` of them, in hwloc's order */
	bool *mine;                               /* parallel to list: this process may use it */
	uint32_t nics;                            /* names below */
	char nic[RWK_MACHINE_NICS][RWK_NIC_NAME]; /* network interfaces with a device, nearest to this process first */
	bool nic_near[RWK_MACHINE_NICS];          /* on a NUMA node that this process may use */
};

/** Asks hwloc. Never fails for want of hwloc: what it cannot say is counted. Returns 0 or -ENOMEM. */
int rwk_machine_load(struct rwk_machine *m);

/**
 * Numbers alone, of this system: processors, memory, and the binding; cores are taken to have one processor each.
 * There is nothing to be freed.
 */
void rwk_machine_count(struct rwk_machine *m);

/** Whether hwloc's variables describe a machine, which may be another one: then it has to be asked. */
bool rwk_machine_described(void);

/**
 * Processors of this process's container, whatever it is bound to; at least 1. `root` is "", or a test's folder in
 * which /proc and /sys are looked for.
 */
uint32_t rwk_machine_processors(const char *root);

void rwk_machine_free(struct rwk_machine *m);

/**
 * What this process shares at best with process `pid` on this node, wherever in their bindings the two happen to run:
 * two unbound processes of a machine with one L3 share L3. UNKNOWN if the machine or the binding of `pid` is not known.
 * One system call.
 */
enum rwk_locality rwk_machine_locality(const struct rwk_machine *m, pid_t pid);

/** The same for two sets of processors, given as flags parallel to m->list; needs no system call. */
enum rwk_locality rwk_machine_distance(const struct rwk_machine *m, const bool *a, const bool *b);

/** Writes it as text, a "name: value" a line. */
void rwk_machine_print(const struct rwk_machine *m, FILE *to);

/** "same core", "same L2 cache", "same L3 cache", "same NUMA node", "same package", "same machine", "not known". */
const char *rwk_locality_text(enum rwk_locality l);

#endif
