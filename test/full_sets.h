/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel lets no more be watched than is: as when the user has as many descriptors in epoll sets as the system
 * allows. A program that is linked with this has an epoll_ctl of its own, before the C library's; for a library that it
 * loads it must be linked with -export-dynamic.
 */
#ifndef RWK_TEST_FULL_SETS_H
#define RWK_TEST_FULL_SETS_H

#include <stdbool.h>

extern bool sets_are_full; /* false at first */

#endif
