/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/copy.h"

/* No C library makes a string copy of so little. */
#define PIECE 1024u

void rwk_copy_pieces(void *to_, const void *from_, size_t len)
{
	const char *from = from_;
	char *to = to_;

	while (len) {
		size_t n = len < PIECE ? len : PIECE;

		__asm__("" : "+r"(n)); /* of a length that it knows the compiler itself makes a string copy */
		memcpy(to, from, n);
		to += n;
		from += n;
		len -= n;
	}
}
