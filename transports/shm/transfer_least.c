/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From which size on a direct copy beats a message. A message copies its payload twice where a direct copy does it
 * once, but that is a call of the kernel's, which costs as much for a byte as for a page. So direct pays from the size
 * on that is copied in the time of such a call; rounded up to a power of two, as a peer who polls copies his half of a
 * message by himself. Both are measured here, the call on this process itself: it takes the same way through the kernel
 * as one into another process, and can be had before there is a peer. The least of some trials: who loses the core in
 * between has not measured anything. Above 1 KB: a shorter message is a few lines, whose copies cost nothing, and stays
 * in order with others, as programs are promised. Not above 64 KB: there a message takes longer than any such call.
 */
#define _GNU_SOURCE /* process_vm_readv */
#include "shm/transfer_state.h"

#include "base/param.h"

#include <string.h>
#include <unistd.h>

#define LEAST_LEAST ((size_t)1 << 10) /* messages of so many bytes stay in order */
#define LEAST_MOST  ((size_t)64 << 10)
#define TRIALS      8
#define TRIAL_BYTES ((size_t)4 << 10)

/* Out of this core's caches with them: so lines are that another core has written. Where that cannot be had they stay.
 */
static void flush(const unsigned char *at, size_t length)
{
	for (size_t i = 0; i < length; i += RWK_CACHE_LINE) {
#if defined(__x86_64__)
		__builtin_ia32_clflush(at + i);
#elif defined(__aarch64__)
		__asm__ volatile("dc civac, %0" : : "r"(at + i) : "memory");
#endif
	}
	rwk_barrier_full();
}

/* ns that a call takes which copies next to nothing; 0: denied. */
static uint64_t call_takes(void)
{
	uint64_t word = 1, got = 0, least = UINT64_MAX;
	struct iovec local = {&got, sizeof(got)}, remote = {&word, sizeof(word)};
	pid_t self = getpid();

	for (int i = 0; i < TRIALS; i++) {
		uint64_t start = rwk_clock_now(), took;

		if (process_vm_readv(self, &local, 1, &remote, 1, 0) != sizeof(got))
			return 0;
		took = rwk_clock_now() - start;
		least = took < least ? took : least;
	}
	return least ? least : 1;
}

/* ns that it takes to copy `bytes` from and to `at`, of which there are twice as many. */
static uint64_t copy_takes(unsigned char *at, size_t bytes)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIALS; i++) {
		uint64_t start, took;

		memset(at, i, 2 * bytes);
		flush(at, 2 * bytes);
		start = rwk_clock_now();
		memcpy(at + bytes, at, bytes);
		__asm__ volatile("" : : "r"(at) : "memory"); /* it is wanted */
		took = rwk_clock_now() - start;
		least = took < least ? took : least;
	}
	return least ? least : 1;
}

size_t rwk_shm_direct_least(void)
{
	uint64_t call = rwk_params.cma == RWK_OFF ? 0 : call_takes(), copy;
	unsigned char page[2 * TRIAL_BYTES] rwk_aligned;
	size_t least = LEAST_LEAST;

	if (!call)
		return 0;
	copy = copy_takes(page, TRIAL_BYTES);
	while (least < LEAST_MOST && least * copy < call * TRIAL_BYTES)
		least *= 2;
	return least > LEAST_LEAST ? least : LEAST_LEAST + 1;
}
