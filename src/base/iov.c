/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/iov.h"

#include "base/copy.h"

#include <stdint.h>

size_t rwk_iov_length(const struct iovec *iov, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > SIZE_MAX - n)
			return SIZE_MAX;
		n += iov[i].iov_len;
	}
	return n;
}

/** The part of iov[i] from `*at` on, at most `left` bytes; *at becomes the offset into what follows iov[i]. */
static struct iovec part_of(const struct iovec *iov, size_t i, size_t *at, size_t left)
{
	size_t here = iov[i].iov_len, from = *at;

	if (from >= here) {
		*at = from - here;
		return (struct iovec){0};
	}
	*at = 0;
	here -= from;
	return (struct iovec){(char *)iov[i].iov_base + from, here < left ? here : left};
}

/* What has a word's length may be one that somebody looks at, or changes, meanwhile. */
static void copy_part(void *to, const void *from, size_t len)
{
	if (len > RWK_COPY_WORD_MAX || !rwk_copy_word(to, from, len))
		rwk_copy(to, from, len);
}

unsigned rwk_iov_slice(
	const struct iovec *iov, size_t count, size_t at, size_t *length, struct iovec *out, unsigned most)
{
	size_t left = *length;
	unsigned n = 0;

	for (size_t i = 0; i < count && left && n < most; i++) {
		out[n] = part_of(iov, i, &at, left);
		left -= out[n].iov_len;
		n += out[n].iov_len != 0;
	}
	*length -= left;
	return n;
}

size_t rwk_iov_gather(const struct iovec *iov, size_t count, size_t at, void *to, size_t len)
{
	size_t left = len;

	for (size_t i = 0; i < count && left; i++) {
		struct iovec part = part_of(iov, i, &at, left);

		if (!part.iov_len)
			continue;
		copy_part((char *)to + (len - left), part.iov_base, part.iov_len);
		left -= part.iov_len;
	}
	return len - left;
}

void rwk_iov_scatter(const struct iovec *iov, size_t count, size_t at, const void *from, size_t len)
{
	size_t left = len;

	for (size_t i = 0; i < count && left; i++) {
		struct iovec part = part_of(iov, i, &at, left);

		if (!part.iov_len)
			continue;
		copy_part(part.iov_base, (const char *)from + (len - left), part.iov_len);
		left -= part.iov_len;
	}
}
