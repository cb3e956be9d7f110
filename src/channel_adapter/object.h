/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an object of ropewalk.h is: its first word, an enum rwk_ca_kind. In debug builds each call looks at it, and what
 * is destroyed stays for a while, so that a late use is seen; other builds do neither.
 */
#ifndef RWK_CHANNEL_ADAPTER_OBJECT_H
#define RWK_CHANNEL_ADAPTER_OBJECT_H

#include <stdint.h>

enum rwk_ca_kind {
	RWK_CA_DEAD,
	RWK_CA_ADAPTER = 0x72770001,
	RWK_CA_PD,
	RWK_CA_MR,
	RWK_CA_MW,
	RWK_CA_CQ,
	RWK_CA_DOMAIN,
	RWK_CA_SRQ,
	RWK_CA_QP,
	RWK_CA_EVENT_CHANNEL,
	RWK_CA_LISTENER,
	RWK_CA_CONNECTION,
};

/** Ends the program: a call was given something that is no such object (any more). */
void rwk_ca_misused(uint32_t found, enum rwk_ca_kind kind, const char *call) __attribute__((noreturn));

static inline void rwk_ca_use(const void *object, enum rwk_ca_kind kind, const char *call)
{
#ifdef NDEBUG
	(void)object;
	(void)kind;
	(void)call;
#else
	if (*(const uint32_t *)object != (uint32_t)kind)
		rwk_ca_misused(*(const uint32_t *)object, kind, call);
#endif
}

/** In place of free, for objects. */
void rwk_ca_free(void *object);

#endif
