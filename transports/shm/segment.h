/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that ports share: made sealed, and mapped only if it is. */
#ifndef RWK_SHM_SEGMENT_H
#define RWK_SHM_SEGMENT_H

#include "shm/channel.h"

/** A new memfd of that size, sealed against resizing; negative errno. */
int rwk_shm_segment_make(const char *name, size_t size);
/**
 * Maps a segment that is sealed and has *size bytes (0: any size that a pair can have, which is set); a forked child
 * will not have it. NULL with errno: EPROTO if it is not as it should be.
 */
void *rwk_shm_segment_map(int fd, size_t *size);

/** The port's own inbox. 0 or negative errno; what was made is undone by rwk_shm_attach_close. */
int rwk_shm_inbox_make(struct rwk_port *port);
/** A peer's; NULL with errno. */
struct rwk_shm_inbox *rwk_shm_inbox_map(int fd);

/** Makes the pair of a channel as side 0, whose descriptor is then ch->pair_fd. -EMFILE also when few descriptors are
 * left. */
int rwk_shm_pair_make(struct rwk_shm_channel *ch);
/**
 * Maps the pair that the peer has made, as side 1, and the peer's inbox, or none of both. -EPROTO: they are not what
 * they should be.
 */
int rwk_shm_offer_map(struct rwk_shm_channel *ch, int pair_fd, int inbox_fd);

#endif
