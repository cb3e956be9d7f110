/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/text.h"

#include <stdint.h>

size_t rwk_text_character(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} form[] = {{0x80, 0, 0x20}, {0xe0, 0xc0, 0xa0}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

	for (size_t n = 0; n < sizeof(form) / sizeof(form[0]); n++) {
		uint32_t c = s[0] & (unsigned char)~form[n].mask;

		if ((s[0] & form[n].mask) != form[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (s[i] & 0x3f);
		}
		return c < form[n].least || c == 0x7f || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n + 1;
	}
	return 0;
}

void rwk_text_make_safe(char *text)
{
	while (*text) {
		size_t n = rwk_text_character(text);

		if (!n)
			*text = '?';
		text += n ? n : 1;
	}
}
