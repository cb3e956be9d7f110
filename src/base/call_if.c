/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/call_if.h"

#include <errno.h>

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif
#endif

#ifdef RSEQ_SIG

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)

long rwk_call_if(const _Atomic uint64_t *word, uint64_t expected, long number, const long argument[6])
{
	struct rseq *mine = (struct rseq *)(void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint64_t *sequence = (uint64_t *)(void *)&mine->rseq_cs; /* older headers have a union there */
	register long a4 __asm__("r10") = argument[3], a5 __asm__("r8") = argument[4], a6 __asm__("r9") = argument[5];
	long rc = -EAGAIN;

	if (!__rseq_size || (int32_t)mine->cpu_id < 0)
		return -EAGAIN; /* the thread is not registered */
	__asm__ volatile(
		/* what the kernel is to know of the sequence: struct rseq_cs */
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"0: .long 0, 0\n"
		"   .quad 1f, 2f - 1f, 3f\n"
		".popsection\n"
		"   leaq 0b(%%rip), %%rcx\n"
		"   movq %%rcx, %[sequence]\n"
		"1: cmpq %[expected], %[word]\n"
		"   jne 2f\n"
		"   movq %[number], %%rax\n"
		"   syscall\n"
		"2:\n"
		/* where the kernel goes on when it has broken the sequence off, behind the signature it wants */
		".pushsection __rseq_abort, \"ax\"\n"
		"   .byte 0x0f, 0xb9, 0x3d\n"
		"   .long " VALUE(RSEQ_SIG) "\n"
		"3: movq %[again], %%rax\n"
		"   jmp 2b\n"
		".popsection\n"
		: "+&a"(rc), [sequence] "=m"(*sequence)
		: [expected] "r"(expected), [word] "m"(*word), [number] "r"(number), [again] "i"(-EAGAIN),
		"D"(argument[0]), "S"(argument[1]), "d"(argument[2]), "r"(a4), "r"(a5), "r"(a6)
		: "rcx", "r11", "cc", "memory");
	__atomic_store_n(sequence, 0, __ATOMIC_RELAXED); /* this code may be unloaded before the kernel looks again */
	return rc;
}

#else

long rwk_call_if(const _Atomic uint64_t *word, uint64_t expected, long number, const long argument[6])
{
	(void)word;
	(void)expected;
	(void)number;
	(void)argument;
	return -EAGAIN;
}

#endif
