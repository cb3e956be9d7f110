/* SPDX-License-Identifier: BSD-3-Clause */
/* Scattered buffers: `iov` and `count` describe one run of bytes, `at` is an offset into it. */
#ifndef RWK_BASE_IOV_H
#define RWK_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/** Bytes in all; SIZE_MAX: that, or more. */
size_t rwk_iov_length(const struct iovec *iov, size_t count);

/**
 * Describes `*length` bytes from `at` on by at most `most` pieces; returns how many pieces, and in *length how many
 * bytes they have, which is less if the iov ends or there are not enough pieces.
 */
unsigned rwk_iov_slice(
	const struct iovec *iov, size_t count, size_t at, size_t *length, struct iovec *out, unsigned most);

/**
 * Copies at most `len` bytes from `at` on to `to`; returns how many there were. A word (base/copy.h) that lies in one
 * piece, and is all that is copied of it, goes in one step; so it does the other way round.
 */
size_t rwk_iov_gather(const struct iovec *iov, size_t count, size_t at, void *to, size_t len);

/** Copies `len` bytes to `at` and on; what does not fit is dropped. */
void rwk_iov_scatter(const struct iovec *iov, size_t count, size_t at, const void *from, size_t len);

#endif
