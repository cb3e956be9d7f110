/* SPDX-License-Identifier: BSD-3-Clause */
/* What every unit test includes first: cmocka, whose header wants others before it. */
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

#endif
