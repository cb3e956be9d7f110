/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers at the door of a domain (transports/shared_rc): visitors that say what they like to a member, and an
 * impostor that has the door's name and says what it likes to who wants to join. Some know the job's key. What must
 * hold: who does not know it is let in nowhere, and nobody joins him; a message of another length is none; memory is
 * joined only if it is sealed and as large as it says; and no descriptor is left over, whoever hands over what.
 *
 *   byte 0 says who it is; then steps. Time is what we say.
 */
#define _GNU_SOURCE
#undef clock_gettime
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "base/log.h"
#include "shared_rc/door.h"
#include "shared_rc/join.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int fuzz_clock_gettime(clockid_t clock, struct timespec *now);

#define STEPS    40u
#define VISITORS 20u /* more than a porch has places */
#define LONGEST  200u
#define NONCE    32u
#define MAC      32u
#define TICK     7u /* ms that pass at each look at the clock */

static const struct rwk_src_size size = {2, 4, 65536};

static struct {
	const uint8_t *at, *end; /* the input */
	uint8_t key[32];
	struct rwk_src_secret secret;
	uint64_t ms;
} s;

/* What a MAC covers; door.c has it too, and a change there is one of what is said on the node. */
struct said {
	char role[8];
	uint8_t member[NONCE], visitor[NONCE];
	uint8_t terms[24];
	uint32_t uid, zero;
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

int fuzz_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	s.ms += TICK;
	*now = (struct timespec){.tv_sec = (time_t)(s.ms / 1000), .tv_nsec = (long)(s.ms % 1000 * 1000000)};
	return 0;
}

static uint8_t next(void)
{
	return s.at < s.end ? *s.at++ : 0;
}

static int a_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	return fd;
}

/* Descriptors that are open: as many again if none is left over. */
static unsigned descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* The name is free as soon as the kernel has collected what was in flight when the last visit ended. */
static int the_door(void)
{
	int door = -EADDRINUSE;

	for (unsigned i = 0; i < 10000 && door == -EADDRINUSE; i++) {
		door = rwk_src_door_bind(&s.secret);
		if (door < 0)
			usleep(100);
	}
	must(door >= 0 && !rwk_src_door_listen(door));
	return door;
}

static void make_mac(
	const char *role, const uint8_t *member, const uint8_t *visitor, const uint8_t *terms, uint8_t *mac)
{
	struct said said = {.uid = s.secret.uid};

	memcpy(said.role, role, strlen(role));
	memcpy(said.member, member, NONCE);
	memcpy(said.visitor, visitor, NONCE);
	if (terms)
		memcpy(said.terms, terms, sizeof(said.terms));
	crypto_generichash(mac, MAC, (const uint8_t *)&said, sizeof(said), s.secret.key, sizeof(s.secret.key));
}

/* A memfd of a domain of that size, formatted; `how` says what is wrong with it. */
static int memory(uint8_t how)
{
	size_t bytes = rwk_src_segment_size(&size);
	int fd = memfd_create("door", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint32_t word = next();
	void *at;

	must(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(at != MAP_FAILED && !rwk_src_segment_format(at, &size));
	if (how & 1)
		memcpy((char *)at + 4 * (next() % 16), &word, sizeof(word));
	must(!munmap(at, bytes));
	if (how & 2)
		must(!ftruncate(fd, (off_t)bytes - 4096));
	if (!(how & 4))
		must(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	return fd;
}

/* ---- visitors ---- */

struct visitor {
	int fd; /* -1: not there */
	bool met, proven, welcome;
	uint8_t member[NONCE];
};

static void say(struct visitor *v)
{
	uint8_t message[LONGEST], how = next();
	size_t len = how & 1 ? NONCE + MAC : next() % LONGEST;

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = s.at < s.end ? *s.at++ : (uint8_t)i;
	if (how & 2 && v->met && len == NONCE + MAC)
		make_mac("visitor", v->member, message, NULL, message + NONCE);
	if (!len || send(v->fd, message, len, MSG_NOSIGNAL) != (ssize_t)len)
		return;
	v->welcome |= how & 2 && v->met && len == NONCE + MAC && !v->proven;
	v->proven = true; /* what he says first decides */
}

static void hear(struct visitor *v)
{
	uint8_t message[LONGEST];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = {message, sizeof(message)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(v->fd, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd[8];

	if (n == 8 + NONCE && !v->met) {
		memcpy(v->member, message + 8, NONCE);
		v->met = true;
		must(!c);
	} else if (n > 0) { /* let in */
		must(v->welcome && n == 24 + MAC && c && c->cmsg_len == CMSG_LEN(RWK_SRC_THINGS * sizeof(int)));
		memcpy(fd, CMSG_DATA(c), RWK_SRC_THINGS * sizeof(int));
		for (int i = 0; i < RWK_SRC_THINGS; i++)
			close(fd[i]);
	}
}

static void knock(struct visitor *v)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ropewalk.src.");

	sodium_bin2hex(
		name.sun_path + 1 + n, sizeof(name.sun_path) - 1 - (size_t)n, s.secret.name, sizeof(s.secret.name));
	*v = (struct visitor){.fd = a_socket()};
	must(!connect(v->fd, (struct sockaddr *)&name,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1))));
}

static void visit(struct visitor *v, uint8_t what)
{
	if (v->fd < 0) {
		knock(v);
	} else if (what & 4) {
		hear(v);
	} else if (what & 2) {
		say(v);
	} else {
		close(v->fd);
		v->fd = -1;
	}
}

static void at_a_member(void)
{
	struct rwk_src_holding h = {.id = 7, .size = size};
	struct rwk_src_porch porch;
	struct visitor visitors[VISITORS];

	h.fd[RWK_SRC_MEMORY] = memory(0);
	h.fd[RWK_SRC_SOCKET] = a_socket();
	h.fd[RWK_SRC_LINE] = a_socket();
	h.fd[RWK_SRC_WATCH] = epoll_create1(EPOLL_CLOEXEC);
	h.fd[RWK_SRC_DOOR] = the_door();
	must(!rwk_src_porch_open(&porch, &s.secret, &h));
	for (unsigned i = 0; i < VISITORS; i++)
		visitors[i].fd = -1;
	for (unsigned i = 0; i < STEPS && s.at < s.end; i++) {
		uint8_t what = next();

		if (what & 1)
			rwk_src_porch_attend(&porch);
		else
			visit(&visitors[(what >> 3) % VISITORS], what);
	}
	for (unsigned i = 0; i < VISITORS; i++)
		if (visitors[i].fd >= 0)
			close(visitors[i].fd);
	rwk_src_porch_close(&porch);
	rwk_src_holding_close(&h);
}

/* ---- the impostor ---- */

static void send_with(int to, const void *bytes, size_t len, const int *fd, unsigned count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = &control.align;

	if (count) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fd, count * sizeof(int));
	}
	sendmsg(to, &msg, MSG_NOSIGNAL);
}

/* In answer to a proof. Returns whether one of us might have said so. */
static bool welcome(int to, const uint8_t *member, const uint8_t *visitor)
{
	uint64_t id = 9;
	uint8_t message[LONGEST] = {0}, how = next(), wrong = next();
	unsigned count = how & 1 ? RWK_SRC_THINGS : next() % 7;
	size_t len = how & 2 ? 24 + MAC : next() % LONGEST;
	int fd[8];

	memcpy(message, &id, sizeof(id));
	memcpy(message + 8, &size, sizeof(size));
	if (how & 4)
		message[next() % 24] ^= next();
	if (how & 8)
		make_mac("member", member, visitor, message, message + 24);
	fd[0] = memory(wrong);
	for (unsigned i = 1; i < 8; i++)
		fd[i] = how & 16 ? epoll_create1(EPOLL_CLOEXEC) : a_socket();
	send_with(to, message, len, fd, count);
	for (unsigned i = 0; i < 8; i++)
		close(fd[i]);
	return how & 8 && len == 24 + MAC && count >= RWK_SRC_THINGS && !(wrong & 6);
}

static void greet(int to, uint8_t *member)
{
	uint8_t message[LONGEST] = {0x52, 0x53, 0x52, 0x43, 2}, how = next();
	size_t len = how & 1 ? 8 + NONCE : next() % LONGEST;

	for (unsigned i = 8; i < 8 + NONCE; i++)
		message[i] = (uint8_t)(how + i);
	if (how & 2)
		message[next() % 8] ^= next();
	memcpy(member, message + 8, NONCE);
	send_with(to, message, len, NULL, 0);
}

static int no_socket(void *user, int fd[2])
{
	(void)user;
	(void)fd;
	return -EACCES;
}

static void at_an_impostor(void)
{
	struct rwk_src_join_attr attr = {.size = size, .socket = no_socket};
	int door = the_door(), fd = -1;
	struct rwk_src_seat *seat = NULL;
	uint8_t member[NONCE], proof[NONCE + MAC];
	bool good = false;
	int rc;

	memcpy(attr.key, s.key, sizeof(attr.key));
	rc = rwk_src_join(&attr, &seat);
	if (!rc)
		rc = rwk_src_join_go_on(seat);
	for (unsigned i = 0; i < STEPS && s.at < s.end && rc == -EAGAIN; i++) {
		if (fd < 0) {
			fd = accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (fd >= 0)
				greet(fd, member);
		} else if (recv(fd, proof, sizeof(proof), 0) == (ssize_t)sizeof(proof)) {
			good |= welcome(fd, member, proof);
		} else if (next() & 1) {
			close(fd);
			fd = -1;
		}
		if (next() & 3)
			rc = rwk_src_join_go_on(seat);
	}
	must(rc || (good && rwk_src_seat_memory(seat)));
	if (seat)
		rwk_src_leave(seat);
	if (fd >= 0)
		close(fd);
	close(door);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned before = descriptors();
	pid_t pid = getpid();

	if (!len)
		return 0;
	s.at = bytes + 1;
	s.end = bytes + len;
	memcpy(s.key, &pid, sizeof(pid)); /* a name of its own for each process */
	rwk_log_set_sink(no_log);
	rwk_src_secret_draw(s.key, geteuid(), &s.secret);
	if (bytes[0] & 1)
		at_a_member();
	else
		at_an_impostor();
	must(descriptors() == before);
	return 0;
}
