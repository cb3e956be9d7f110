/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what a stranger says on a connection. What must hold whatever they are: nothing outside of them is read
 * (the sanitizers see to that), how they come in pieces changes nothing, more is never asked for than a message has,
 * and what unpack takes, pack gives back.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "connect/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int holds)
{
	if (!holds)
		abort();
}

/* A copy of exactly so many bytes, so that reading behind them is seen. */
static int unpack_beginning(const uint8_t *bytes, size_t len, size_t *whole)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct rwk_cm m;
	int err;

	must(copy != NULL);
	memcpy(copy, bytes, len);
	err = rwk_cm_unpack(&m, copy, len, whole);
	free(copy);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t out[RWK_CM_MAX];
	size_t whole = 0, first = 0;
	struct rwk_cm m;
	int err = -EAGAIN;

	/* As a connection reads: so much as is asked for, and no more. */
	while (first <= len && (err = unpack_beginning(bytes, first, &whole)) == -EAGAIN) {
		must(whole > first && whole <= RWK_CM_MAX);
		first++;
	}
	if (err == -EAGAIN)
		return 0;
	must(err == 0 || err == -EPROTO || err == -EPROTONOSUPPORT);
	must(rwk_cm_unpack(&m, bytes, len, &whole) == err);
	if (err)
		return 0;
	must(whole == first && whole == RWK_CM_HEAD + m.private_length);
	must(m.private_data == bytes + RWK_CM_HEAD);
	must(rwk_cm_pack(&m, out) == whole);
	must(!memcmp(out, bytes, whole));
	return 0;
}
