/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The guard: what keeps a write by process_vm_writev out of memory that has been given back, and out of a process that
 * is not the one that was meant. A read can be looked at afterwards (transfer_pull.c), a write cannot.
 *
 * And of a read that the peer makes for a write of this side's (transfer_help.c): what it brings too late would land in
 * the peer's own region, where it is not meant any more.
 *
 * The guard page is a page of the exposer's at a random address; its address stands in the exposer's area. Each such
 * call has it as its first entry. The kernel copies entry after entry and stops at the first that fails, so
 * where that page is not mapped nothing is written: not in another program after exec, not in another process that has
 * the number now. The forked children of the exposer do not have it.
 *
 * That entry takes 0.15 us of a call. It is left out where the rest can be had without it. Who has got past the guard
 * within the last millisecond by the number of a thread (transfer_reach.c), not of the process, is not about to meet
 * a stranger by that number: exec ends all threads but one, that has the process' number from then on, and no number
 * comes back so soon. And that the guard has not been changed is looked at in the call itself (base/call_if.h): who
 * loses his core between the look and the call does not make it so, but goes by the entry.
 *
 * Who waits for a write to end (conceal, and who gives a read back into which its peer pushes) first makes sure that no
 * new one begins: by a word in shared memory that the writer looks at after it has announced the write, with a full
 * barrier on each side between writing the one and reading the other. Then he waits until the announcement is
 * withdrawn; for a chunk of at most 1 MB. A writer that is dead has left the kernel. One that has been stopped is
 * stopped on its way from or to user space, never in the middle of a call: its call is over, or has not begun. So the
 * guard page is made inaccessible first (and another one takes its place), and when after that all threads of the
 * writer are seen stopped nothing can land any more. For that the writer must have read where the guard is before he
 * announced: else he could be stopped, go on, and get past the new one. test/models/direct.pml is this protocol.
 *
 * A writer that has lost its core, or waits for a page, is waited for, asleep; one that neither withdraws nor is
 * stopped within a second gets a warning, and is not waited for as long again. None of this binds a hostile peer, who
 * announces nothing: a process of the same user that may write into this one by the kernel's leave is kept out by
 * nothing but the kernel.
 */
#include "shm/transfer_area.h"

#include "base/call_if.h"
#include "base/cancel.h"
#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GUARD_BYTES ((size_t)64 << 10) /* a page, whatever the size of one is */
#define SPINS       64u                /* looks between two that cost a system call */
#define PATIENCE    2000000u           /* ns before a writer is suspected: a chunk takes less than a tenth */
#define AGAIN       1000000u           /* ns between two looks whether it is stopped, which cost system calls */
#define LONGEST     1000000000u        /* ns */
#define LET_IN_FOR  1000000u           /* ticks, a millisecond or less, that one call past the guard is good for */

/*
 * The exposer.
 */

/* Pages lie side by side from a random address on, or where the system wants them if something is there. */
static void *new_page(struct rwk_shm_port_transfers *p)
{
	uint64_t random;
	void *page;

	if (!p->guard_next) {
		if (rwk_random_next(&p->random, &random))
			return NULL;
		p->guard_next = (random >> 18 & ~(uint64_t)(GUARD_BYTES - 1)) + GUARD_BYTES; /* below 2^46 */
	}
	page = mmap((void *)(uintptr_t)p->guard_next, GUARD_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	p->guard_next += GUARD_BYTES;
	if (page == MAP_FAILED)
		return NULL;
	if (!madvise(page, GUARD_BYTES, MADV_DONTFORK))
		return page;
	munmap(page, GUARD_BYTES);
	return NULL;
}

static void publish(struct rwk_shm_transfers *t)
{
	rwk_publish64(&rwk_shm_area_of(t, true)->guard.word, (uint64_t)(uintptr_t)t->guard);
}

int rwk_shm_guard_up(struct rwk_shm_transfers *t)
{
	if (t->guard)
		return 0;
	t->guard = new_page(t->port);
	if (!t->guard)
		return -ENOMEM;
	publish(t);
	return 0;
}

/* From now on no call gets past the guard that was. Its place stays taken: what came there could be written. */
static void replace_page(struct rwk_shm_transfers *t)
{
	void *old = t->guard;

	if (!old)
		return;
	t->guard = new_page(t->port);
	t->guard_since = rwk_clock_now();
	publish(t);
	rwk_barrier_full(); /* who is stopped after this sees it when he goes on */
	if (mprotect(old, GUARD_BYTES, PROT_NONE))
		rwk_warn("a page cannot be protected (%s): a write that comes late may land", strerror(errno));
}

void rwk_shm_guard_down(struct rwk_shm_transfers *t)
{
	if (t->guard && rwk_shm_here(t->ch))
		munmap(t->guard, GUARD_BYTES);
	t->guard = NULL;
}

static void nap(void)
{
	const struct timespec ms = {0, 1000000};

	nanosleep(&ms, NULL);
}

static bool guard_wait(struct rwk_shm_transfers *t, bool (*pending)(struct rwk_shm_transfers *t, void *arg), void *arg)
{
	int pid = (int)rwk_shm_peer_pid(t->ch);
	uint64_t start = 0, waited;
	bool replaced = false;

	rwk_barrier_full(); /* what the caller has taken back is seen by who announces from now on */
	for (unsigned n = 1; pending(t, arg); n++) {
		if (n % SPINS) {
			rwk_cpu_relax();
			continue;
		}
		sched_yield();
		if (!rwk_shm_peer_alive(t->ch))
			return false;
		start = start ? start : rwk_clock_now();
		waited = rwk_clock_now() - start;
		if (waited < PATIENCE)
			continue;
		if (!replaced)
			replace_page(t);
		replaced = true;
		if (rwk_process_is_stopped(pid)) {
			rwk_info("process %d was stopped before it wrote into this one: it will not any more", pid);
			return false;
		}
		if (waited > LONGEST || t->waited_in_vain) {
			if (!t->waited_in_vain)
				rwk_warn("process %d does not end a write into this one: memory given back now may "
					 "still change",
					pid);
			t->waited_in_vain = true;
			return true;
		}
		nap();
	}
	t->waited_in_vain = false;
	return false;
}

bool rwk_shm_guard_wait(struct rwk_shm_transfers *t, bool (*pending)(struct rwk_shm_transfers *t, void *arg), void *arg)
{
	int before = rwk_cancel_hold_off();
	bool ended = guard_wait(t, pending, arg);

	rwk_cancel_as_before(before);
	return ended;
}

bool rwk_shm_guard_shuts_out(struct rwk_shm_transfers *t, uint64_t *since)
{
	uint64_t now = rwk_clock_now();

	if (!*since)
		*since = now;
	if (now - *since < PATIENCE || now - t->stopped_asked < AGAIN)
		return false;
	if (t->guard_since < *since)
		replace_page(t);
	t->stopped_asked = now;
	return rwk_process_is_stopped((int)rwk_shm_peer_pid(t->ch));
}

/*
 * The writer.
 */

uint64_t rwk_shm_guard_see(struct rwk_shm_transfers *t)
{
	return rwk_observe64(&rwk_shm_area_of(t, false)->guard.word);
}

/*
 * Without the guard's entry: the guard's address is looked at within the call. -EAGAIN: it is to be made with it. So it
 * is after a pause, and where it is the process that is named, not a thread.
 */
static ssize_t without_entry(struct rwk_shm_transfers *t, long number, uint64_t guard, const struct iovec *local,
	unsigned locals, const struct iovec *remote, unsigned remotes)
{
	const long argument[6] = {t->named, (long)(local + 1), locals - 1, (long)(remote + 1), remotes - 1};

	if (!t->named || !guard || rwk_clock_all_ticks() - t->let_in > LET_IN_FOR)
		return -EAGAIN;
	return rwk_call_if(&rwk_shm_area_of(t, false)->guard.word, guard, number, argument);
}

typedef ssize_t call(struct rwk_shm_transfers *t, const struct iovec *local, unsigned locals,
	const struct iovec *remote, unsigned remotes);

static ssize_t with_entry(struct rwk_shm_transfers *t, call *make, uint64_t guard, struct iovec *local, unsigned locals,
	struct iovec *remote, unsigned remotes)
{
	uint64_t knock = 0, begun = rwk_clock_all_ticks();
	ssize_t moved;

	if (!guard)
		return -ENOMEM; /* the peer could not make another one */
	local[0] = (struct iovec){&knock, sizeof(knock)};
	remote[0] = (struct iovec){(void *)(uintptr_t)guard, sizeof(knock)};
	moved = make(t, local, locals, remote, remotes);
	if (moved == -EFAULT || (moved >= 0 && moved < (ssize_t)sizeof(knock)))
		return -ESTALE;
	if (moved < 0)
		return moved;
	t->let_in = begun;
	return moved - (ssize_t)sizeof(knock);
}

ssize_t rwk_shm_guarded_write(struct rwk_shm_transfers *t, uint64_t guard, struct iovec *local, unsigned locals,
	struct iovec *remote, unsigned remotes)
{
	ssize_t moved = without_entry(t, SYS_process_vm_writev, guard, local, locals, remote, remotes);

	return moved < 0 ? with_entry(t, rwk_shm_vm_write, guard, local, locals, remote, remotes) : moved;
}

ssize_t rwk_shm_guarded_read(struct rwk_shm_transfers *t, uint64_t guard, struct iovec *local, unsigned locals,
	struct iovec *remote, unsigned remotes)
{
	ssize_t moved = without_entry(t, SYS_process_vm_readv, guard, local, locals, remote, remotes);

	return moved < 0 ? with_entry(t, rwk_shm_vm_read, guard, local, locals, remote, remotes) : moved;
}
