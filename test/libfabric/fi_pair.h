/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes that talk to each other, both of them children: the test's own process never uses libfabric, so that
 * each child reads the parameters anew, and so a test can choose the link between them.
 */
#ifndef RWK_FI_PAIR_H
#define RWK_FI_PAIR_H

#include "fi_test.h"

struct t_process {
	int fd;           /* a socket to the other one */
	const char *link; /* as given to t_two */
	const void *arg;
};

/**
 * Runs `first` and `second` in two processes, with FI_ROPEWALK_LINK set to `link` (NULL: as it is). Fails unless both
 * end well; a process that ends by SIGKILL does.
 */
void t_two(const char *link, void (*first)(struct t_process *), void (*second)(struct t_process *), const void *arg);

/** Tells the other process `len` bytes, and hears as many from it. Fails after T_PATIENCE. */
void t_say(struct t_process *p, const void *buf, size_t len);
void t_hear(struct t_process *p, void *buf, size_t len);

/** The same while `cq` is driven: the other process may need it. */
void t_hear_driving(struct t_process *p, void *buf, size_t len, struct fid_cq *cq);

/** Both have come to this place; `cq` (or NULL) is driven meanwhile. */
void t_meet(struct t_process *p, struct fid_cq *cq);

/** Exchanges names: the other's number in e's address vector. */
fi_addr_t t_greet(struct t_process *p, struct t_end *e);

#endif
