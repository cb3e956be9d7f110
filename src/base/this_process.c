/* SPDX-License-Identifier: BSD-3-Clause */
/* Each process counts on from what it has inherited, when it finds that the kernel has wiped its word. */
#include "base/this_process.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic(_Atomic uint32_t *) word; /* this process's generation, 0 in every child; NULL: nobody has asked yet */
static _Atomic uint32_t latest;          /* of the generations from which this process comes, its own among them */
static _Atomic uint32_t inherited;       /* in place of a word, for good: one may turn up when objects have been made */

static _Atomic uint32_t *make_word(void)
{
	_Atomic uint32_t *made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_Atomic uint32_t *before = NULL;

	if (made == MAP_FAILED)
		made = &inherited;
	else
		madvise((void *)made, sizeof(*made), MADV_WIPEONFORK);
	if (atomic_compare_exchange_strong(&word, &before, made))
		return made;
	if (made != &inherited)
		munmap((void *)made, sizeof(*made));
	return before;
}

static uint32_t generation(void)
{
	_Atomic uint32_t *own = atomic_load(&word);
	uint32_t is = 0, next;

	if (!own)
		own = make_word();
	if (atomic_load(own))
		return atomic_load(own);
	next = atomic_fetch_add(&latest, 1) + 1;
	return atomic_compare_exchange_strong(own, &is, next) ? next : is;
}

uint64_t rwk_this_process(void)
{
	return (uint64_t)getpid() << 32 | generation();
}
