/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* struct ucred, syscall */
#include "shm/note.h"

#include "base/cancel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <linux/sockios.h>
#include <unistd.h>

/* Room for what may come along with a note. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(2 * sizeof(int))];
};

static socklen_t socket_name(struct sockaddr_un *name, uint16_t number)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
		(size_t)snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "ropewalk.%u", number));
}

static socklen_t full_name(struct sockaddr_un *name, uint64_t nonce_port)
{
	socklen_t len = socket_name(name, (uint16_t)nonce_port);
	size_t end = len - offsetof(struct sockaddr_un, sun_path);

	return len + (socklen_t)snprintf(name->sun_path + end, sizeof(name->sun_path) - end, ".%012" PRIx64,
			     rwk_shm_nonce(nonce_port));
}

int rwk_shm_note_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, room = 1 << 20, rc;

	if (fd < 0)
		return -errno;
	/* For what lies unread with hundreds of peers; as much of it as may be. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int rwk_shm_note_bind(int sock, uint16_t *number)
{
	uint16_t wanted = *number;
	struct sockaddr_un name;
	socklen_t len;

	for (int i = 0; i < 1000; i++) {
		if (!wanted && getrandom(number, sizeof(*number), 0) != sizeof(*number))
			return -EIO;
		if (!wanted)
			*number |= 0x8000; /* those below are for who wants a certain one */
		len = socket_name(&name, *number);
		if (!bind(sock, (struct sockaddr *)&name, len))
			return 0;
		if (wanted || errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

int rwk_shm_note_send(int sock, uint16_t number, const struct rwk_shm_note *note, const int *fds, unsigned count)
{
	union control control = {0};
	struct ucred me = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
	struct iovec iov = {(void *)note, sizeof(*note)};
	struct sockaddr_un name;
	struct msghdr msg = {.msg_name = &name, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	struct cmsghdr *c = &control.align;
	int before, rc;

	msg.msg_namelen = socket_name(&name, number);
	msg.msg_controllen = CMSG_SPACE(sizeof(me)) + (count ? CMSG_SPACE(count * sizeof(int)) : 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_CREDENTIALS;
	c->cmsg_len = CMSG_LEN(sizeof(me));
	memcpy(CMSG_DATA(c), &me, sizeof(me));
	if (count) {
		c = CMSG_NXTHDR(&msg, c);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	before = rwk_cancel_hold_off();
	rc = sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
	rwk_cancel_as_before(before);
	return rc;
}

bool rwk_shm_note_lies_unread(int sock)
{
	int bytes;

	return ioctl(sock, SIOCOUTQ, &bytes) || bytes;
}

/* False: it would have to wait, for room in what it has sent or in the receiver's queue. */
static bool wake_by(int sock, uint16_t number)
{
	struct sockaddr_un name;
	socklen_t len = socket_name(&name, number);

	/* Nobody there: evidence will tell. */
	return syscall(SYS_sendto, sock, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL, &name, len) >= 0 || errno == ECONNREFUSED;
}

int rwk_shm_note_name(uint64_t nonce_port)
{
	struct sockaddr_un name;
	socklen_t len = full_name(&name, nonce_port);
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (sock < 0)
		return -errno;
	if (!bind(sock, (struct sockaddr *)&name, len))
		return sock;
	rc = -errno;
	close(sock);
	return rc;
}

int rwk_shm_note_look(int sock, uint64_t nonce_port)
{
	struct sockaddr_un name;
	bool full = rwk_shm_nonce(nonce_port);
	socklen_t len = full ? full_name(&name, nonce_port) : socket_name(&name, (uint16_t)nonce_port);

	return connect(sock, (struct sockaddr *)&name, len) ? -errno : 0;
}

int rwk_shm_note_spare(uint16_t own)
{
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock >= 0 && rwk_shm_note_look(sock, own)) {
		close(sock);
		return -1;
	}
	return sock;
}

int rwk_shm_note_probe(uint16_t own, uint64_t nonce_port)
{
	int sock = rwk_shm_note_spare(own), rc;

	if (sock < 0)
		return 0;
	rc = rwk_shm_note_look(sock, nonce_port);
	close(sock);
	return rc == -ECONNREFUSED ? rc : 0;
}

/*
 * What lies unread is charged to the socket that has sent it, up to a limit: so many who do not look may keep this one
 * from waking others. A socket that has sent nothing has all its room; if it has to wait, the receiver's queue is full,
 * and that is as good: it is readable.
 */
bool rwk_shm_note_wake(int sock, uint16_t own, uint16_t number)
{
	bool done;
	int spare;

	if (rwk_likely(wake_by(sock, number)))
		return true;
	spare = rwk_shm_note_spare(own);
	if (spare < 0)
		return false;
	done = wake_by(spare, number) || errno == EAGAIN;
	close(spare);
	return done;
}

static void read_control(struct msghdr *msg, struct rwk_shm_sender *s)
{
	struct ucred cred;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && bytes == sizeof(cred)) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			s->pid = cred.pid;
			s->uid = cred.uid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			for (size_t i = 0; i < bytes / sizeof(int) && s->fds < 2; i++)
				memcpy(&s->fd[s->fds++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		}
	}
}

static uint16_t number_of(const struct sockaddr_un *name, socklen_t len)
{
	char text[sizeof(name->sun_path)] = "";
	struct sockaddr_un expected;
	unsigned number;

	if (len <= offsetof(struct sockaddr_un, sun_path) + 1 || len >= sizeof(*name))
		return 0;
	memcpy(text, name->sun_path + 1, len - offsetof(struct sockaddr_un, sun_path) - 1);
	if (sscanf(text, "ropewalk.%5u", &number) != 1 || number > 65535)
		return 0;
	return socket_name(&expected, (uint16_t)number) == len && !memcmp(&expected, name, len) ? (uint16_t)number : 0;
}

ssize_t rwk_shm_note_receive(int sock, struct rwk_shm_note *note, struct rwk_shm_sender *from)
{
	union control control;
	struct sockaddr_un name;
	struct iovec iov = {note, sizeof(*note)};
	struct msghdr msg = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);

	*from = (struct rwk_shm_sender){.fds = 0};
	if (n < 0)
		return -errno;
	read_control(&msg, from);
	from->number = number_of(&name, msg.msg_namelen);
	return n;
}
