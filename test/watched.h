/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the accesses to a page. While it is watched nobody may access it: an instruction that does faults and is
 * counted, goes on with the page accessible, and is stopped behind itself by the trap flag, where the page is closed
 * again. An access by the kernel fails with -EFAULT. One page at a time, and one thread; only on x86-64.
 */
#ifndef RWK_TEST_WATCHED_H
#define RWK_TEST_WATCHED_H

#include "rwk_test.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct watched {
	unsigned char *page; /* NULL: there is no way to watch one here */
	size_t length;
	volatile unsigned loads, stores; /* instructions */
	struct sigaction fault, trap;    /* that were set before */
};

static struct watched watched;

#if defined(__x86_64__)

#define WATCHED_TRAP  0x100 /* of the flags: stop behind the next instruction */
#define WATCHED_WRITE 2     /* of what the processor says of a fault */

static inline void watched_fault(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	if ((uintptr_t)info->si_addr - (uintptr_t)watched.page >= watched.length) {
		signal(number, SIG_DFL);
		return;
	}
	if (registers[REG_ERR] & WATCHED_WRITE)
		watched.stores++;
	else
		watched.loads++;
	mprotect(watched.page, watched.length, PROT_READ | PROT_WRITE);
	registers[REG_EFL] |= WATCHED_TRAP;
}

static inline void watched_trap(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	mprotect(watched.page, watched.length, PROT_NONE);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)WATCHED_TRAP;
}

static inline void watched_open(void)
{
	watched.length = (size_t)sysconf(_SC_PAGESIZE);
	watched.page = mmap(NULL, watched.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(watched.page != MAP_FAILED);
}

/** From here on accesses are counted. */
static inline void watched_begin(void)
{
	struct sigaction fault = {.sa_sigaction = watched_fault, .sa_flags = SA_SIGINFO};
	struct sigaction trap = {.sa_sigaction = watched_trap, .sa_flags = SA_SIGINFO};

	watched.loads = watched.stores = 0;
	assert_int_equal(sigaction(SIGSEGV, &fault, &watched.fault), 0);
	assert_int_equal(sigaction(SIGTRAP, &trap, &watched.trap), 0);
	assert_int_equal(mprotect(watched.page, watched.length, PROT_NONE), 0);
}

static inline void watched_end(void)
{
	assert_int_equal(mprotect(watched.page, watched.length, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(sigaction(SIGSEGV, &watched.fault, NULL), 0);
	assert_int_equal(sigaction(SIGTRAP, &watched.trap, NULL), 0);
}

static inline void watched_close(void)
{
	munmap(watched.page, watched.length);
}

#else

static inline void watched_open(void)
{
	watched.page = NULL;
}

static inline void watched_begin(void)
{
}

static inline void watched_end(void)
{
}

static inline void watched_close(void)
{
}

#endif

#endif
