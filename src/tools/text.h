/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that others wrote, as it may be shown: UTF-8, and nothing in it that a terminal would obey. */
#ifndef RWK_TOOLS_TEXT_H
#define RWK_TOOLS_TEXT_H

#include <stddef.h>

/** The bytes of the character at `text`; 0: it may not be shown, or the text ends. */
size_t rwk_text_character(const char *text);

/** Puts ? in the place of each byte that may not be shown. */
void rwk_text_make_safe(char *text);

#endif
