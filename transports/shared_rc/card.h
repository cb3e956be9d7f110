/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member's card, for those who come while nobody looks at the door: all members may compute, be stopped, or stand in
 * a read that only the visitor would end. It is a small sealed memory that the member has open, and says by what
 * numbers it has the domain's descriptors. Who may trace the member by the kernel's word (the same user, and Yama
 * allows it) finds the card among its descriptors and takes copies of what it names (pidfd_getfd).
 *
 * The card's name is public, its MAC is by who has the job's key. So whose domain it is is as sure as at the door; that
 * the visitor has the key the member does not see, but who may trace a process needs no leave from it.
 */
#ifndef RWK_SHARED_RC_CARD_H
#define RWK_SHARED_RC_CARD_H

#include "shared_rc/door.h"

/** A card that says what `holding` has: a descriptor, the caller's; negative errno. With the lock of forked.h. */
int rwk_src_card_make(const struct rwk_src_secret *secret, const struct rwk_src_holding *holding);
/**
 * Takes what a member has, by its card: 0 and *holding set, as rwk_src_door_knock does. -ENOENT: that process has none
 * that is good; -ESRCH: it is not to be seen; -EPERM: the kernel does not let us; -EACCES: what it has is not what the
 * card says; -EMFILE. Does not wait. With the lock of forked.h.
 */
int rwk_src_card_take(pid_t member, const struct rwk_src_secret *secret, struct rwk_src_holding *holding);

#endif
