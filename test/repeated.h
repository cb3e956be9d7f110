/* SPDX-License-Identifier: BSD-3-Clause */
/* Much address space and little memory: the same bytes again and again, for messages that are longer than the machine.
 */
#ifndef RWK_TEST_REPEATED_H
#define RWK_TEST_REPEATED_H

#include "rwk_test.h"

#include <sys/mman.h>
#include <unistd.h>

#define REPEATED_PERIOD 0x200000u /* bytes of memory */

/** `length` bytes, whole periods: what is stored to one of them stands in all. Ended by munmap. */
static inline uint8_t *repeated_map(size_t length)
{
	int fd = memfd_create("repeated", MFD_CLOEXEC);
	uint8_t *p;

	assert_int_equal(ftruncate(fd, REPEATED_PERIOD), 0);
	p = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	for (size_t at = 0; at < length; at += REPEATED_PERIOD)
		assert_ptr_equal(
			mmap(p + at, REPEATED_PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), p + at);
	close(fd);
	return p;
}

/** Fills a period with what does not repeat within it. */
static inline void repeated_fill(uint8_t *p)
{
	uint32_t x = 1;

	for (size_t i = 0; i < REPEATED_PERIOD; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = x >> 24;
	}
}

#endif
