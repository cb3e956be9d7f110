/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The format: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html. A file is a section header, an
 * interface description for each link, and an enhanced packet block for each packet; all numbers in the host's byte
 * order, which the section header shows.
 *
 * The buffer holds whole blocks alone. It is written when the next one might not fit, when a second has passed since
 * the last time, and at the end. What a full disk has torn off is taken back, so that the file ends with a whole block.
 */
#define _GNU_SOURCE
#include "packet/capture.h"

#include "base/cancel.h"
#include "base/forked.h"
#include "base/iov.h"
#include "base/list.h"
#include "base/log.h"
#include "base/this_process.h"
#include "transport.h"
#include "wire/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SNAP     65535u /* bytes of a packet that are kept, at most; what IPv4 has a length for */
#define BLOCK    (SNAP + 128u)
#define BUFFER   (2 * BLOCK)
#define SECOND   UINT64_C(1000000000) /* nanoseconds */
#define IPV4     20u
#define IPV6     40u
#define UDP      8u
#define IPPROTO  17u  /* UDP */
#define LINKTYPE 101u /* raw IP */

enum block { SECTION_HEADER = 0x0a0d0d0a, INTERFACE_DESCRIPTION = 1, ENHANCED_PACKET = 6 };

enum option { OPTION_END = 0, OPTION_COMMENT = 1, IF_NAME = 2, EPB_FLAGS = 2, SHB_USERAPPL = 4, IF_TSRESOL = 9 };

enum { INBOUND = 1, OUTBOUND = 2 };

struct rwk_capture {
	struct rwk_list link; /* in `captures`; this and users under captures_lock */
	unsigned users;
	uint64_t process; /* whose it is: not its children's */

	pthread_mutex_t lock; /* for all below */
	int fd;               /* -1: it has ended */
	uint64_t written;     /* bytes in the file */
	uint64_t written_at;  /* when last, by the time of packets */
	size_t used;
	char path[PATH_MAX];
	uint8_t buffer[BUFFER];
};

static pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rwk_list captures = {&captures, &captures};

/* In a forked child: the lock may be another thread's, which is not there, and the list half changed. */
static void forget(void)
{
	pthread_mutex_init(&captures_lock, NULL);
	rwk_list_init(&captures);
}

static struct rwk_forked forgotten = {.in_child = forget};

static const char *const link_names[RWK_CAPTURE_LINKS] = {
	[RWK_CAPTURE_UDP] = "udp",
	[RWK_CAPTURE_TCP] = "tcp",
	[RWK_CAPTURE_SHM] = "shm",
	[RWK_CAPTURE_SIM] = "sim",
};

/* ---- blocks in the buffer ---- */

static void put(struct rwk_capture *c, const void *bytes, size_t len)
{
	memcpy(c->buffer + c->used, bytes, len);
	c->used += len;
}

static void put32(struct rwk_capture *c, uint32_t v)
{
	put(c, &v, sizeof(v));
}

static void pad(struct rwk_capture *c)
{
	static const uint8_t zero[3];

	put(c, zero, -c->used & 3);
}

/* Blocks and their parts begin at multiples of 4 bytes, so that padding can go by the buffer's fill. */
static size_t begin_block(struct rwk_capture *c, enum block type)
{
	size_t at = c->used;

	put32(c, type);
	put32(c, 0); /* its length, known at the end */
	return at;
}

static void end_block(struct rwk_capture *c, size_t at)
{
	uint32_t len = (uint32_t)(c->used - at + 4);

	put32(c, len);
	memcpy(c->buffer + at + 4, &len, sizeof(len));
}

static void put_option(struct rwk_capture *c, enum option code, const void *bytes, size_t len)
{
	uint16_t head[2] = {(uint16_t)code, (uint16_t)len};

	put(c, head, sizeof(head));
	put(c, bytes, len);
	pad(c);
}

static void end_options(struct rwk_capture *c)
{
	put32(c, OPTION_END);
}

static void put_section_header(struct rwk_capture *c)
{
	static const uint16_t version[2] = {1, 0};
	static const int64_t length_unknown = -1;
	size_t at = begin_block(c, SECTION_HEADER);

	put32(c, 0x1a2b3c4d);
	put(c, version, sizeof(version));
	put(c, &length_unknown, sizeof(length_unknown));
	put_option(c, SHB_USERAPPL, "ropewalk", 8);
	end_options(c);
	end_block(c, at);
}

static void put_interface(struct rwk_capture *c, const char *name)
{
	static const uint16_t type[2] = {LINKTYPE, 0};
	static const uint8_t nanoseconds = 9;
	size_t at = begin_block(c, INTERFACE_DESCRIPTION);

	put(c, type, sizeof(type));
	put32(c, SNAP);
	put_option(c, IF_NAME, name, strlen(name));
	put_option(c, IF_TSRESOL, &nanoseconds, 1);
	end_options(c);
	end_block(c, at);
}

/* ---- the headers in front ---- */

static bool is_v4(const struct rwk_capture_end *e)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(e->ip, mapped, sizeof(mapped));
}

/* The Internet checksum of an even number of bytes at `b`, or of an odd one with a zero behind; `sum` from before. */
static uint32_t add_up(uint32_t sum, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2) {
		sum += (uint32_t)b[i] << 8 | b[i + 1];
		sum = (sum & 0xffff) + (sum >> 16);
	}
	if (len & 1)
		sum += (uint32_t)b[len - 1] << 8;
	return (sum & 0xffff) + (sum >> 16);
}

static uint16_t checksum(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void big16(uint8_t *to, uint32_t v)
{
	to[0] = (uint8_t)(v >> 8);
	to[1] = (uint8_t)v;
}

static uint32_t at_most(size_t len, uint32_t most)
{
	return len < most ? (uint32_t)len : most;
}

/* `payload` bytes behind it in all; what has no room in the length is said to be as long as can be said. */
static void put_udp(struct rwk_capture *c, const struct rwk_capture_end *source, size_t payload)
{
	uint8_t h[UDP] = {0};

	big16(h, source->port);
	big16(h + 2, RWK_WIRE_UDP_PORT);
	big16(h + 4, at_most(UDP + payload, UINT16_MAX));
	put(c, h, sizeof(h)); /* without a checksum, which IPv4 does not need */
}

static void put_v4(struct rwk_capture *c, const struct rwk_capture_end *source,
	const struct rwk_capture_end *destination, size_t payload)
{
	uint8_t h[IPV4] = {[0] = 0x45, [6] = 0x40 /* not to be cut */, [8] = 64 /* hops */, [9] = IPPROTO};

	big16(h + 2, at_most(IPV4 + UDP + payload, UINT16_MAX));
	memcpy(h + 12, source->ip + 12, 4);
	memcpy(h + 16, destination->ip + 12, 4);
	big16(h + 10, checksum(add_up(0, h, sizeof(h))));
	put(c, h, sizeof(h));
}

static void put_v6(struct rwk_capture *c, const struct rwk_capture_end *source,
	const struct rwk_capture_end *destination, size_t payload)
{
	uint8_t h[IPV6] = {[0] = 0x60, [6] = IPPROTO, [7] = 64 /* hops */};

	big16(h + 4, at_most(UDP + payload, UINT16_MAX));
	memcpy(h + 8, source->ip, 16);
	memcpy(h + 24, destination->ip, 16);
	put(c, h, sizeof(h));
}

/* IPv6 demands one. `udp` bytes from the UDP header on, the IPv6 header in front of it. */
static void put_udp_checksum(uint8_t *udp_header, uint32_t udp)
{
	uint16_t sum = checksum(add_up(add_up(udp + IPPROTO, udp_header - 32, 32), udp_header, udp));

	big16(udp_header + 6, sum ? sum : UINT16_MAX);
}

/* The lengths of an enhanced packet (kept, and true), headers and payload. */
static void put_packet(struct rwk_capture *c, const struct rwk_capture_end *source,
	const struct rwk_capture_end *destination, const struct iovec *iov, int count)
{
	bool v4 = is_v4(source) && is_v4(destination);
	size_t payload = rwk_iov_length(iov, (size_t)count), headers = (v4 ? IPV4 : IPV6) + UDP;

	put32(c, at_most(headers + payload, SNAP));
	put32(c, at_most(headers + payload, UINT32_MAX));
	if (v4)
		put_v4(c, source, destination, payload);
	else
		put_v6(c, source, destination, payload);
	put_udp(c, source, payload);
	rwk_iov_gather(iov, (size_t)count, 0, c->buffer + c->used, SNAP - headers);
	if (!v4 && headers + payload <= SNAP)
		put_udp_checksum(c->buffer + c->used - UDP, (uint32_t)(UDP + payload));
	c->used += at_most(payload, SNAP - (uint32_t)headers);
}

/* ---- the file ---- */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* The bytes of the whole blocks among the first `len` of the buffer. */
static size_t whole_blocks(const struct rwk_capture *c, size_t len)
{
	size_t at = 0;
	uint32_t block;

	while (at < len) {
		memcpy(&block, c->buffer + at + 4, sizeof(block));
		if (at + block > len)
			break;
		at += block;
	}
	return at;
}

/* Writing beyond what the process may would end it (SIGXFSZ). */
static bool too_large(uint64_t size)
{
	struct rlimit most;

	return !getrlimit(RLIMIT_FSIZE, &most) && size > most.rlim_cur;
}

/* Returns 0 or a negative errno; *done bytes of the buffer are in the file then. */
static int write_out(struct rwk_capture *c, size_t *done)
{
	ssize_t n;

	*done = 0;
	if (too_large(c->written + c->used))
		return -EFBIG;
	while (*done < c->used) {
		n = write(c->fd, c->buffer + *done, c->used - *done);
		if (n < 0 && errno != EINTR)
			return -errno;
		*done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The capture's lock is held, or nobody else knows it yet. */
static int write_buffer(struct rwk_capture *c)
{
	size_t done;
	int rc = write_out(c, &done);

	if (rc) {
		c->written += whole_blocks(c, done);
		/* Some things that can be written cannot be cut. */
		if (ftruncate(c->fd, (off_t)c->written))
			rwk_debug("%s: %s", c->path, strerror(errno));
		rwk_warn("FI_ROPEWALK_PCAP: %s: %s; the capture ends here", c->path, strerror(-rc));
		close(c->fd);
		c->fd = -1;
	} else {
		c->written += done;
	}
	c->used = 0;
	return rc;
}

/* A pipe that nobody reads would end the process (SIGPIPE), or hold it up. */
static int check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISCHR(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return -EBUSY;
	return ftruncate(fd, 0) ? -errno : 0;
}

static int open_file(struct rwk_capture *c)
{
	int rc, fd = open(c->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	rc = fd < 0 ? -errno : check_file(fd);
	if (!rc) {
		c->fd = fd;
		return 0;
	}
	rwk_warn("FI_ROPEWALK_PCAP: %s: %s; nothing is captured", c->path,
		rc == -EBUSY    ? "another process is writing it; %p or %r in the name tells processes apart"
		: rc == -EINVAL ? "neither a file nor a character device"
				: strerror(-rc));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Returns 0 or -ENAMETOOLONG. */
static int expand(const char *pattern, uint32_t rank, char *path)
{
	size_t at = 0;
	int n;

	for (const char *p = pattern; *p; p++) {
		char *to = path + at;
		size_t left = PATH_MAX - at;

		if (p[0] == '%' && p[1] == 'p')
			n = snprintf(to, left, "%d", (int)getpid());
		else if (p[0] == '%' && p[1] == 'r' && rank < RWK_ADDR_NO_RANK)
			n = snprintf(to, left, "%u", rank);
		else if (p[0] == '%' && p[1] == 'r')
			n = snprintf(to, left, "none");
		else
			n = snprintf(to, left, "%c", *p);
		if ((size_t)n >= left)
			return -ENAMETOOLONG;
		at += (size_t)n;
		if (p[0] == '%' && (p[1] == 'p' || p[1] == 'r' || p[1] == '%'))
			p++;
	}
	return 0;
}

/* False in a child of the process that opened it, whose locks may be held for ever. */
static bool is_mine(const struct rwk_capture *c)
{
	return c && c->process == rwk_this_process();
}

/* One that this process has open. */
static struct rwk_capture *find(const char *path)
{
	for (struct rwk_list *l = captures.next; l != &captures; l = l->next) {
		struct rwk_capture *c = (struct rwk_capture *)l;

		if (is_mine(c) && !strcmp(c->path, path)) /* a parent's is none of ours: not every child is a fork's */
			return c;
	}
	return NULL;
}

static struct rwk_capture *make(const char *path)
{
	struct rwk_capture *c = malloc(sizeof(*c));

	if (!c) {
		rwk_warn("FI_ROPEWALK_PCAP: %s: %s; nothing is captured", path, strerror(ENOMEM));
		return NULL;
	}
	strcpy(c->path, path);
	c->users = 0;
	c->process = rwk_this_process();
	c->used = 0;
	c->written = 0;
	c->written_at = 0;
	pthread_mutex_init(&c->lock, NULL);
	if (open_file(c)) {
		free(c);
		return NULL;
	}
	put_section_header(c);
	for (int i = 0; i < RWK_CAPTURE_LINKS; i++)
		put_interface(c, link_names[i]);
	rwk_list_append(&captures, &c->link);
	return c;
}

struct rwk_capture *rwk_capture_open(const char *pattern, uint32_t rank)
{
	char path[PATH_MAX];
	struct rwk_capture *c;

	if (!pattern || !*pattern)
		return NULL;
	if (expand(pattern, rank, path)) {
		rwk_warn("FI_ROPEWALK_PCAP: %.100s...: %s; nothing is captured", pattern, strerror(ENAMETOOLONG));
		return NULL;
	}
	if (rwk_fork_watch(&forgotten)) {
		rwk_warn("FI_ROPEWALK_PCAP: %s: %s; nothing is captured", path, strerror(ENOMEM));
		return NULL;
	}
	pthread_mutex_lock(&captures_lock);
	c = find(path);
	if (!c)
		c = make(path);
	if (c)
		c->users++;
	pthread_mutex_unlock(&captures_lock);
	return c;
}

static void put_options(struct rwk_capture *c, bool outgoing, const struct rwk_capture_end *destination)
{
	uint32_t flags = outgoing ? OUTBOUND : INBOUND;
	char text[32];
	int n;

	if (destination->port != RWK_WIRE_UDP_PORT) {
		n = snprintf(text, sizeof(text), "to port %u", destination->port);
		put_option(c, OPTION_COMMENT, text, (size_t)n);
	}
	put_option(c, EPB_FLAGS, &flags, sizeof(flags));
	end_options(c);
}

void rwk_capture_packet(struct rwk_capture *c, enum rwk_capture_link link, bool outgoing,
	const struct rwk_capture_end *source, const struct rwk_capture_end *destination, const struct iovec *iov,
	int count, uint64_t time)
{
	int before;
	size_t at;

	if (!is_mine(c))
		return;
	before = rwk_cancel_hold_off();
	if (!time)
		time = now();
	pthread_mutex_lock(&c->lock);
	if (c->fd >= 0 && (c->used > BUFFER - BLOCK || time - c->written_at > SECOND)) {
		write_buffer(c);
		c->written_at = time;
	}
	if (c->fd >= 0) {
		at = begin_block(c, ENHANCED_PACKET);
		put32(c, link);
		put32(c, (uint32_t)(time >> 32));
		put32(c, (uint32_t)time);
		put_packet(c, source, destination, iov, count);
		pad(c);
		put_options(c, outgoing, destination);
		end_block(c, at);
	}
	pthread_mutex_unlock(&c->lock);
	rwk_cancel_as_before(before);
}

void rwk_capture_close(struct rwk_capture *c)
{
	if (!is_mine(c))
		return;
	pthread_mutex_lock(&captures_lock);
	if (--c->users) {
		c = NULL;
	} else {
		rwk_list_remove(&c->link);
		if (c->fd >= 0 && !write_buffer(c)) {
			flock(c->fd, LOCK_UN); /* a child may have the file open still */
			close(c->fd);
		}
	}
	pthread_mutex_unlock(&captures_lock);
	free(c);
}
