/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for the segment's content, of which joining needs to know the size alone. */
#include "shared_rc/shared_rc.h"

size_t rwk_src_segment_size(const struct rwk_src_size *size)
{
	if (size->members < 2 || size->members > RWK_SRC_MEMBERS_MAX)
		return 0;
	return 4096 + (size_t)size->members * size->inbox_bytes;
}

int rwk_src_segment_format(void *memory, const struct rwk_src_size *size)
{
	*(struct rwk_src_size *)memory = *size;
	return 0;
}
