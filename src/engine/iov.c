/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/internal.h"

void rwk_iov_fill(const struct iovec *iov, uint32_t count, size_t at, const void *from, size_t len)
{
	for (uint32_t i = 0; i < count && len; i++) {
		size_t room = iov[i].iov_len, n;

		if (at >= room) {
			at -= room;
			continue;
		}
		n = room - at < len ? room - at : len;
		memcpy((char *)iov[i].iov_base + at, from, n);
		from = (const char *)from + n;
		len -= n;
		at = 0;
	}
}

size_t rwk_iov_gather(const struct iovec *iov, uint32_t count, size_t at, void *to, size_t len)
{
	size_t done = 0;

	for (uint32_t i = 0; i < count && done < len; i++) {
		size_t here = iov[i].iov_len, n;

		if (at >= here) {
			at -= here;
			continue;
		}
		n = here - at < len - done ? here - at : len - done;
		memcpy((char *)to + done, (const char *)iov[i].iov_base + at, n);
		done += n;
		at = 0;
	}
	return done;
}

size_t rwk_iov_length(const struct iovec *iov, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}
