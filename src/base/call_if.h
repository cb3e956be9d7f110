/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A system call that is made only as long as a word has not been changed, with nothing between the look at the word and
 * the call: a restartable sequence of the kernel's (rseq), whose last instruction is the one that enters the kernel. A
 * thread that loses its core, gets a signal or is stopped within the sequence does not go on in it. So whoever changes
 * the word, and after that sees the thread stopped, knows that the call has been made, or will not be.
 *
 * On x86-64 with Linux 4.18 and a C library that registers its threads (glibc 2.35); elsewhere the call is never made.
 */
#ifndef RWK_BASE_CALL_IF_H
#define RWK_BASE_CALL_IF_H

#include <stdatomic.h>
#include <stdint.h>

/**
 * Makes the system call of that number with these arguments if *word is `expected`. What the kernel returns, an error
 * as negative errno; -EAGAIN: it was not made, because the word is another one, or for want of a quiet moment, or
 * because this cannot be had here.
 */
long rwk_call_if(const _Atomic uint64_t *word, uint64_t expected, long number, const long argument[6]);

#endif
