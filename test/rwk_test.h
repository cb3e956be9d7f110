/* SPDX-License-Identifier: BSD-3-Clause */
/* What every unit test includes first: cmocka, whose header wants others before it. And what many do. */
#ifndef RWK_TEST_H
#define RWK_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** Overwrites what nobody may read any more. The compiler must not leave that out, as it does where it is freed next.
 */
static inline void trash(void *p, size_t len)
{
	memset(p, 0xdd, len);
	__asm__ volatile("" : : "r"(p) : "memory");
}

#endif
