/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of rwk_info: each writes what it is asked for to stdout, as text or into a document. */
#ifndef RWK_TOOLS_INFO_H
#define RWK_TOOLS_INFO_H

#include "tools/doc.h"
#include "topology/job_map.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* info_parameters.c */
void rwk_info_parameters(void);
void rwk_info_parameters_doc(struct rwk_doc *d);

/* info_map.c */
void rwk_info_map_doc(struct rwk_doc *d, const char *name, const struct rwk_job_map *map);

/* info_drawing.c */
/** The map as a drawing, SVG: a box a node, a square a rank, coloured by what carries it. Of large jobs a part. */
void rwk_info_draw(const struct rwk_job_map *map, FILE *to);

/* info_job.c: a job that does not exist; 0 or a negative errno, which has been told. */
int rwk_info_job(uint32_t nodes, uint32_t per_node);
int rwk_info_job_doc(struct rwk_doc *d, uint32_t nodes, uint32_t per_node);

/* info_devices.c */
void rwk_info_devices(struct rwk_doc *d);

/* info_process.c */
/** What process `pid` shows of itself; 0 or a negative errno, which has been told. */
int rwk_info_process(struct rwk_doc *d, pid_t pid);
/**
 * Its counters again and again, a line each `seconds` and endpoint that is open, until it ends or `times` (0: for
 * ever) are over.
 */
int rwk_info_watch(pid_t pid, double seconds, unsigned times);

#endif
