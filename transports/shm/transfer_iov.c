/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/transfer_state.h"

#include <string.h>

unsigned rwk_shm_iov_slice(const struct iovec *iov, size_t count, uint64_t offset, size_t *length, struct iovec *out, unsigned most)
{
	size_t left = *length;
	unsigned n = 0;

	for (size_t i = 0; i < count && left && n < most; i++) {
		size_t here = iov[i].iov_len;

		if (offset >= here) {
			offset -= here;
			continue;
		}
		here -= offset;
		if (here > left)
			here = left;
		out[n].iov_base = (char *)iov[i].iov_base + offset;
		out[n++].iov_len = here;
		left -= here;
		offset = 0;
	}
	*length -= left;
	return n;
}

void rwk_shm_iov_gather(void *to, const struct iovec *iov, size_t count, uint64_t offset, size_t length)
{
	struct iovec piece[16];

	while (length) {
		size_t part = length;
		unsigned n = rwk_shm_iov_slice(iov, count, offset, &part, piece, 16);

		if (!n)
			return;
		for (unsigned i = 0; i < n; i++) {
			memcpy(to, piece[i].iov_base, piece[i].iov_len);
			to = (char *)to + piece[i].iov_len;
		}
		offset += part;
		length -= part;
	}
}

void rwk_shm_iov_scatter(const struct iovec *iov, size_t count, uint64_t offset, const void *from, size_t length)
{
	struct iovec piece[16];

	while (length) {
		size_t part = length;
		unsigned n = rwk_shm_iov_slice(iov, count, offset, &part, piece, 16);

		if (!n)
			return;
		for (unsigned i = 0; i < n; i++) {
			memcpy(piece[i].iov_base, from, piece[i].iov_len);
			from = (const char *)from + piece[i].iov_len;
		}
		offset += part;
		length -= part;
	}
}
