/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that debug builds end the program at: each in a process of its own. */
#ifndef RWK_TEST_MISUSE_H
#define RWK_TEST_MISUSE_H

struct misuse {
	const char *name; /* of the call that says so */
	void (*call)(void);
};

/** Each must end its process by abort(), which names the call before. */
void misuses_are_caught(const struct misuse *cases, unsigned count);

#endif
