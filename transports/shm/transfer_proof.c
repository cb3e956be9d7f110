/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What shows that the bytes of a read are the peer's: that they came from the process image that made the key, and that
 * it still exposed them when they were copied.
 *
 * The cookie of the region's record shows both, when it is fetched behind the bytes in the same call, since the call
 * looks up the process once and copies in order. But it lies in another page, in memory of the peer's that this core
 * has not at hand: 0.45 us of the 2.2 us that a message of 16 KB takes in a ping-pong.
 *
 * So once a cookie has shown who the process is, it is believed for a millisecond to be the same. Whether the region is
 * still exposed is read after each call in the peer's area: no call of the system's, and a line that has been asked for
 * before the call. A process number does not come back so soon. What is given away: of a peer that calls exec within
 * that millisecond while it is still being read, and whose new program has memory at the same address, the new
 * program's bytes are taken for its message. Writes are never believed so (transfer_guard.c).
 */
#include "shm/transfer_area.h"

#define BELIEVED 1000000 /* ns after a proof in which a call without cookies may begin, as far as is known */
#define HELD     2000000 /* ns after it by which that call must have ended: it can lose its core on the way */

/* What the peer's area says of that region; 0: nothing. */
static uint64_t listed(struct rwk_shm_transfers *t, uint64_t cookie)
{
	uint32_t index = rwk_shm_cookie_index(cookie);

	return index < RWK_SHM_LISTED ? rwk_observe64(&rwk_shm_area_of(t, false)->valid[index]) : 0;
}

bool rwk_shm_region_readable(struct rwk_shm_transfers *t, uint64_t cookie)
{
	uint64_t entry = listed(t, cookie);

	return entry && (entry | RWK_SHM_LISTED_WRITABLE) == cookie;
}

bool rwk_shm_region_writable(struct rwk_shm_transfers *t, uint64_t cookie)
{
	return cookie & RWK_SHM_LISTED_WRITABLE && listed(t, cookie) == cookie;
}

bool rwk_shm_proof_needed(struct rwk_shm_transfers *t, const struct rwk_rkey *rkey, uint64_t lately)
{
	uint32_t index = rwk_shm_cookie_index(rkey->word[0]);

	if ((int64_t)(lately - t->proven) >= BELIEVED || !rwk_shm_key_listed(rkey) || index >= RWK_SHM_LISTED)
		return true;
	rwk_prefetch(&rwk_shm_area_of(t, false)->valid[index]);
	return false;
}

bool rwk_shm_proof_held(struct rwk_shm_transfers *t, uint64_t cookie, uint64_t ended)
{
	atomic_thread_fence(memory_order_acquire); /* the bytes were copied before `valid` is read */
	if (ended - t->proven < HELD && rwk_shm_region_readable(t, cookie))
		return true;
	t->proven = 0;
	return false;
}
