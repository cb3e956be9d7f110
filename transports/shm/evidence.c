/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Evidence of death. A peer is dead when the kernel says that its process has ended, or runs another program by now,
 * never because it is silent.
 *
 *   pidfd   one for each channel as long as descriptors are plenty (the last quarter of the limit is left to the host
 *           program); it sits in the port's epoll set: one system call asks for all peers, and a sleeper is woken by
 *           a death
 *   /proc   for the rest: the process with that pid is gone, a zombie, or began at another time; a few peers a look
 *   name    of the peer's socket, which the kernel closes when the process begins another program (exec): its pid, its
 *           pidfd and when it began stay the same. Nobody has the name any more; looked for with a few peers a look.
 *           The name has the nonce in it: the program may be the same one, and open a port of the same number
 *   gone    a word in the pair by which a peer says so that closes and has no room for its good-bye in the ring, or
 *           that has given the channel up for a reason of its own. It rings the bell then, so that this is seen before
 *           one sleeps; who does not sleep looks now and then
 */
#include "shm/note.h"

#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Peers that are looked at in one go, while there are some without a pidfd: 300 within two seconds, also by a sleeper,
 * who looks four times a second. Else it is for their names alone, and a sleeper looks once a second.
 */
enum { LOOKS = 40, NAMES = 10 };

static bool alive_by_proc(const struct rwk_shm_channel *ch)
{
	return rwk_process_is_alive(ch->pid, ch->start);
}

static int open_pidfd(pid_t pid)
{
	struct rlimit limit;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit))
		return fd;
	if ((rlim_t)fd < limit.rlim_cur - limit.rlim_cur / 4)
		return fd;
	close(fd);
	return -1;
}

bool rwk_shm_watch(struct rwk_shm_channel *ch)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = ch}};

	ch->pidfd = open_pidfd(ch->pid);
	/* After the descriptor is open its pid cannot be reused: what is proven now stays so. */
	if (!alive_by_proc(ch))
		return false;
	if (ch->pidfd >= 0 && epoll_ctl(ch->base.port->epoll, EPOLL_CTL_ADD, ch->pidfd, &ev)) {
		close(ch->pidfd);
		ch->pidfd = -1;
	}
	ch->watched = true;
	if (ch->pidfd < 0)
		ch->base.port->unwatched++;
	return true;
}

void rwk_shm_unwatch(struct rwk_shm_channel *ch)
{
	if (ch->watched && ch->pidfd < 0)
		ch->base.port->unwatched--;
	ch->watched = false;
	if (ch->pidfd >= 0) {
		/*
		 * By hand: a forked child that has the descriptor too would keep it in the set. And not in the child
		 * itself.
		 */
		if (*ch->tx.here)
			epoll_ctl(ch->base.port->epoll, EPOLL_CTL_DEL, ch->pidfd, NULL);
		close(ch->pidfd);
	}
	ch->pidfd = -1;
}

bool rwk_shm_peer_alive(struct rwk_shm_channel *ch)
{
	struct pollfd p = {.fd = ch->pidfd, .events = POLLIN};

	if (ch->pidfd < 0)
		return alive_by_proc(ch);
	return poll(&p, 1, 0) <= 0;
}

pid_t rwk_shm_peer_pid(const struct rwk_shm_channel *ch)
{
	return ch->pid;
}

static void found_dead(struct rwk_shm_channel *ch)
{
	ch->base.port->count.deaths++;
	rwk_info("shared memory: process %d, rank %u, has ended, or runs another program", (int)ch->pid,
		rwk_address_rank(&ch->to));
	rwk_shm_doom(ch, -ECONNRESET);
}

static bool has_ended(const struct rwk_shm_channel *ch, int look)
{
	if (ch->pidfd < 0 && !alive_by_proc(ch))
		return true;
	return look >= 0 && rwk_shm_note_look(look, ch->to.nonce_port) == -ECONNREFUSED;
}

static bool says_gone(struct rwk_shm_channel *ch)
{
	return ch->state == RWK_SHM_OPEN && rwk_observe32(&rwk_shm_his_side(ch)->gone);
}

void rwk_shm_look_for_deaths(struct rwk_port *port)
{
	uint32_t most = port->unwatched ? LOOKS : NAMES, looks = 0, i;
	int look = -1;

	for (i = 0; i < port->bells; i++) {
		struct rwk_shm_channel *ch = port->by_bell[i];

		if (ch && says_gone(ch))
			rwk_shm_doom(ch, -ECONNRESET);
	}
	for (i = 0; i < port->bells && looks < most; i++) {
		struct rwk_shm_channel *ch = port->by_bell[(port->evidence_next + i) % port->bells];

		if (!ch || !ch->watched || ch->doom)
			continue;
		if (!looks++)
			look = rwk_shm_note_spare(rwk_address_port(&port->address));
		if (!has_ended(ch, look))
			continue;
		if (says_gone(ch)) /* in between, and has closed its socket then */
			rwk_shm_doom(ch, -ECONNRESET);
		else
			found_dead(ch);
	}
	if (look >= 0)
		close(look);
	if (port->bells)
		port->evidence_next = (port->evidence_next + i) % port->bells;
}

int rwk_shm_events(struct rwk_port *port)
{
	struct epoll_event ev[16];
	int n = epoll_wait(port->epoll, ev, 16, 0), done = 0;

	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr == &port->sock) {
			done += rwk_shm_attach_poll(port);
		} else if (ev[i].data.ptr == &port->timer) {
			uint64_t ticks;

			done += read(port->timer, &ticks, sizeof(ticks)) > 0;
		} else {
			struct rwk_shm_channel *ch = ev[i].data.ptr;

			/* Said once: the descriptor would stay readable. */
			rwk_shm_unwatch(ch);
			found_dead(ch);
			done++;
		}
	}
	return done;
}
