/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By which number the peer's memory is reached: that of a thread of its that sleeps.
 *
 * process_vm_readv and process_vm_writev take any thread of a process. Looking that up, the kernel counts a reference
 * in the thread's own record, in the line that the thread itself looks at whenever it enters or leaves the kernel. So
 * two processes that copy at once, each naming the thread of the other that is copying, wait for each other's lines:
 * of two calls of 32 KB at once each takes 1.8 us instead of 1.6, of 8 bytes 0.78 instead of 0.49. Where somebody
 * sleeps, as the threads do that most runtimes keep for their connection to the daemon of the job, that one is named;
 * by who copies often, as it takes 50 us to find.
 *
 * A thread can end, and its number can come back as somebody else's. That is seen as it is for a process
 * (transfer_proof.c, transfer_guard.c), and whatever fails is tried once more by the process' own number, and from then
 * on nothing else is.
 */
#define _GNU_SOURCE /* process_vm_readv, process_vm_writev */
#include "shm/transfer_state.h"

#include "base/log.h"
#include "base/process.h"

#include <errno.h>

#define OFTEN 16u /* calls */

typedef ssize_t call(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags);

static pid_t number(struct rwk_shm_transfers *t)
{
	if (t->calls < OFTEN && ++t->calls == OFTEN) {
		t->named = rwk_process_idle_thread(rwk_shm_peer_pid(t->ch));
		t->let_in = 0; /* that was by the process' number, which exec does not change */
	}
	return t->named ? t->named : rwk_shm_peer_pid(t->ch);
}

bool rwk_shm_reach_anew(struct rwk_shm_transfers *t)
{
	if (!t->named)
		return false;
	rwk_debug("process %d is not reached by its thread %d any more", (int)rwk_shm_peer_pid(t->ch), (int)t->named);
	t->named = 0;
	return true;
}

static ssize_t reach(struct rwk_shm_transfers *t, call *make, const struct iovec *local, unsigned locals,
	const struct iovec *remote, unsigned remotes)
{
	ssize_t moved = make(number(t), local, locals, remote, remotes, 0);

	if (moved < 0 && rwk_shm_reach_anew(t))
		moved = make(number(t), local, locals, remote, remotes, 0);
	if (moved >= 0)
		return moved;
	return errno == EACCES ? -EPERM : -errno; /* -EACCES is ours: the key does not fit */
}

ssize_t rwk_shm_vm_read(struct rwk_shm_transfers *t, const struct iovec *local, unsigned locals,
	const struct iovec *remote, unsigned remotes)
{
	return reach(t, process_vm_readv, local, locals, remote, remotes);
}

ssize_t rwk_shm_vm_write(struct rwk_shm_transfers *t, const struct iovec *local, unsigned locals,
	const struct iovec *remote, unsigned remotes)
{
	return reach(t, process_vm_writev, local, locals, remote, remotes);
}
