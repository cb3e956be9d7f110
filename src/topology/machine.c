/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "topology/machine.h"

#include "base/log.h"

#include <errno.h>
#include <hwloc.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel's set of a process's processors, large enough for any kernel that is configured today. */
#define SET_PROCESSORS 8192
#define WORD_BITS      (8 * sizeof(unsigned long))

struct processor_set {
	unsigned long word[SET_PROCESSORS / WORD_BITS];
};

static const char *const locality_texts[] = {
	[RWK_LOCALITY_CORE] = "same core",
	[RWK_LOCALITY_L2] = "same L2 cache",
	[RWK_LOCALITY_L3] = "same L3 cache",
	[RWK_LOCALITY_NUMA] = "same NUMA node",
	[RWK_LOCALITY_PACKAGE] = "same package",
	[RWK_LOCALITY_MACHINE] = "same machine",
	[RWK_LOCALITY_UNKNOWN] = "not known",
};

const char *rwk_locality_text(enum rwk_locality l)
{
	return locality_texts[l];
}

/* What `pid` may run on. */
static int read_binding(pid_t pid, struct processor_set *set)
{
	memset(set, 0, sizeof(*set));
	return sched_getaffinity(pid, sizeof(*set), (cpu_set_t *)set) < 0 ? -errno : 0;
}

static bool in_set(const struct processor_set *set, uint32_t os_index)
{
	return os_index < SET_PROCESSORS && set->word[os_index / WORD_BITS] >> os_index % WORD_BITS & 1;
}

static uint16_t ancestor_index(hwloc_topology_t t, hwloc_obj_t pu, hwloc_obj_type_t type)
{
	hwloc_obj_t o = hwloc_get_ancestor_obj_by_type(t, type, pu);

	return o && o->logical_index < RWK_NO_OBJECT ? (uint16_t)o->logical_index : RWK_NO_OBJECT;
}

/* Memory hangs off the tree's side: the first NUMA node near the processor. */
static uint16_t numa_index(hwloc_topology_t t, hwloc_obj_t pu)
{
	int os_index = pu->nodeset ? hwloc_bitmap_first(pu->nodeset) : -1;
	hwloc_obj_t o = os_index >= 0 ? hwloc_get_numanode_obj_by_os_index(t, (unsigned)os_index) : NULL;

	return o && o->logical_index < RWK_NO_OBJECT ? (uint16_t)o->logical_index : RWK_NO_OBJECT;
}

static uint32_t count_objects(hwloc_topology_t t, hwloc_obj_type_t type)
{
	int n = hwloc_get_nbobjs_by_type(t, type);

	return n > 0 ? (uint32_t)n : 0;
}

static int list_processors(struct rwk_machine *m, hwloc_topology_t t)
{
	m->processors = count_objects(t, HWLOC_OBJ_PU);
	m->list = calloc(m->processors, sizeof(*m->list));
	m->mine = calloc(m->processors, sizeof(*m->mine));
	if (!m->list || !m->mine)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->processors; i++) {
		hwloc_obj_t pu = hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, i);

		m->list[i] = (struct rwk_processor){.os_index = pu->os_index,
			.at = {[RWK_LOCALITY_CORE] = ancestor_index(t, pu, HWLOC_OBJ_CORE),
				[RWK_LOCALITY_L2] = ancestor_index(t, pu, HWLOC_OBJ_L2CACHE),
				[RWK_LOCALITY_L3] = ancestor_index(t, pu, HWLOC_OBJ_L3CACHE),
				[RWK_LOCALITY_NUMA] = numa_index(t, pu),
				[RWK_LOCALITY_PACKAGE] = ancestor_index(t, pu, HWLOC_OBJ_PACKAGE)}};
	}
	m->packages = count_objects(t, HWLOC_OBJ_PACKAGE);
	m->numa_nodes = count_objects(t, HWLOC_OBJ_NUMANODE);
	m->l3_caches = count_objects(t, HWLOC_OBJ_L3CACHE);
	if (!m->this_system)
		m->memory = hwloc_get_root_obj(t)->total_memory;
	return 0;
}

/*
 * Cores of which some processor is in `set` (NULL: of all). Processors of a core stand side by side in hwloc's order.
 */
static uint32_t count_cores(const struct rwk_machine *m, const bool *set)
{
	uint32_t cores = 0, last = RWK_NO_OBJECT;

	for (uint32_t i = 0; i < m->processors; i++) {
		uint32_t core = m->list[i].at[RWK_LOCALITY_CORE];

		if (set && !set[i])
			continue;
		cores += core == RWK_NO_OBJECT || core != last;
		last = core;
	}
	return cores;
}

static void find_mine(struct rwk_machine *m)
{
	struct processor_set set;
	bool all = !m->this_system || read_binding(getpid(), &set);

	m->my_processors = 0;
	for (uint32_t i = 0; i < m->processors; i++) {
		m->mine[i] = all || in_set(&set, m->list[i].os_index);
		m->my_processors += m->mine[i];
	}
	m->cores = count_cores(m, NULL);
	m->my_cores = count_cores(m, m->mine);
	m->bound = m->my_processors < m->processors;
}

static bool near_me(const struct rwk_machine *m, hwloc_topology_t t, hwloc_obj_t device)
{
	hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(t, device);

	for (uint32_t i = 0; place && place->cpuset && i < m->processors; i++) {
		if (m->mine[i] && hwloc_bitmap_isset(place->cpuset, m->list[i].os_index))
			return true;
	}
	return false;
}

/* The near ones first, each in hwloc's order. */
static void list_nics(struct rwk_machine *m, hwloc_topology_t t)
{
	for (int near = 1; near >= 0; near--) {
		for (hwloc_obj_t o = NULL; (o = hwloc_get_next_osdev(t, o)) && m->nics < RWK_MACHINE_NICS;) {
			if (o->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || !o->name || near_me(m, t, o) != near)
				continue;
			snprintf(m->nic[m->nics], RWK_NIC_NAME, "%s", o->name);
			m->nic_near[m->nics++] = near;
		}
	}
}

/*
 * Only what is asked for above: caches, cores, and network devices without the PCI tree or any accelerator's library,
 * and without asking each processor itself (x86), which sends the process to one after the other.
 */
static hwloc_topology_t load_topology(void)
{
	static const char *const unwanted[] = {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl", "pci", "x86"};
	hwloc_topology_t t;

	if (hwloc_topology_init(&t))
		return NULL;
	for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
	hwloc_topology_set_icache_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_L1CACHE, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	if (!hwloc_topology_load(t))
		return t;
	hwloc_topology_destroy(t);
	return NULL;
}

static const char *const wishes[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC"};

/* hwloc takes this machine in silence where it cannot read the one that it was told of. */
static void check_wish(bool this_system)
{
	static const char *const right[] = {
		"a file that lstopo has written", "a description such as \"pack:2 core:4 pu:2\""};

	for (int i = 0; i < 2 && this_system && !getenv("HWLOC_THISSYSTEM"); i++) {
		const char *text = getenv(wishes[i]);

		if (text)
			rwk_warn("%s=%s is not understood by hwloc; %s would be right; this machine is taken",
				wishes[i], text, right[i]);
	}
}

bool rwk_machine_described(void)
{
	return getenv(wishes[0]) || getenv(wishes[1]);
}

int rwk_machine_load(struct rwk_machine *m)
{
	hwloc_topology_t t = load_topology();
	int rc = 0;

	rwk_machine_count(m);
	if (!t) {
		rwk_info("hwloc cannot tell about this machine; cores are counted, distances are not known");
		return 0;
	}
	m->this_system = hwloc_topology_is_thissystem(t);
	check_wish(m->this_system);
	rc = list_processors(m, t);
	if (rc) {
		rwk_machine_free(m);
	} else {
		m->known = true;
		find_mine(m);
		list_nics(m, t);
	}
	hwloc_topology_destroy(t);
	return rc;
}

void rwk_machine_free(struct rwk_machine *m)
{
	free(m->list);
	free(m->mine);
	memset(m, 0, sizeof(*m));
}

enum rwk_locality rwk_machine_distance(const struct rwk_machine *m, const bool *a, const bool *b)
{
	for (int level = 0; level < RWK_LOCALITY_LEVELS; level++) {
		uint16_t common = RWK_NO_OBJECT;
		bool same = true;

		for (uint32_t i = 0; i < m->processors && same; i++) {
			uint16_t at = m->list[i].at[level];

			if (!a[i] && !b[i])
				continue;
			same = at != RWK_NO_OBJECT && (common == RWK_NO_OBJECT || at == common);
			common = at;
		}
		if (same && common != RWK_NO_OBJECT)
			return (enum rwk_locality)level;
	}
	return RWK_LOCALITY_MACHINE;
}

enum rwk_locality rwk_machine_locality(const struct rwk_machine *m, pid_t pid)
{
	enum rwk_locality l = RWK_LOCALITY_UNKNOWN;
	struct processor_set set;
	uint32_t found = 0;
	bool *his;

	if (!m->known || !m->this_system || read_binding(pid, &set))
		return l;
	his = calloc(m->processors, sizeof(*his));
	if (!his)
		return l;
	for (uint32_t i = 0; i < m->processors; i++) {
		his[i] = in_set(&set, m->list[i].os_index);
		found += his[i];
	}
	if (found)
		l = rwk_machine_distance(m, m->mine, his);
	free(his);
	return l;
}

void rwk_machine_print(const struct rwk_machine *m, FILE *to)
{
	const char *which = m->this_system ? "this one" : "as hwloc was told";

	fprintf(to, "machine: %s\n", m->known ? which : "known by its cores only");
	fprintf(to, "cores: %u, processors: %u\n", m->cores, m->processors);
	if (m->known)
		fprintf(to, "packages: %u, NUMA nodes: %u, L3 caches: %u\n", m->packages, m->numa_nodes, m->l3_caches);
	if (m->memory)
		fprintf(to, "memory: %" PRIu64 " MiB\n", m->memory >> 20);
	fprintf(to, "this process may use: %u cores, %u processors (%s)\n", m->my_cores, m->my_processors,
		m->bound ? "bound" : "not bound");
	fprintf(to, "network interfaces:");
	for (uint32_t i = 0; i < m->nics; i++)
		fprintf(to, " %s%s", m->nic[i], m->nic_near[i] ? " (near)" : "");
	fprintf(to, "%s\n", m->nics ? "" : " none known");
}
