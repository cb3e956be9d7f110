/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ports come to share a pair. Each port has an abstract datagram socket named by its port number: no file is left behind, and
 * the kernel vouches for who sends (SCM_CREDENTIALS) and from which name.
 *
 *   higher                      lower         (by nonce_port: so that two who connect at once make one pair)
 *     | <------ HELLO ----------- |           whoever wants to connect says HELLO first. If that is the lower side, the higher
 *     | ------- HELLO ----------> |           answers with one
 *     | <------ OFFER ----------- |           the pair's memory and the lower port's inbox
 *     | ------- ACCEPT ---------> |           the higher port's inbox
 *
 * Descriptors go only to a name from which a HELLO of the same user, job and protocol has come. Each step is idempotent and repeated on
 * a timer until the next one is seen. REFUSE ends it; only processes of the same user are told. `contact` numbers tell a
 * channel from an earlier one between the same ports.
 *
 * Nobody bound to the name (ECONNREFUSED) is evidence that the endpoint is gone.
 */
#define _GNU_SOURCE /* memfd_create, struct ucred */
#include "shm/channel.h"

#include "base/log.h"
#include "base/param.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum note_type { HELLO = 1, OFFER, ACCEPT, REFUSE };

#define NOTE_MAGIC 0x4b57u

/* A datagram of the handshake. Its first 56 bytes mean the same in every version. */
struct note {
	uint16_t magic;
	uint8_t layout;
	uint8_t type;
	int32_t reason; /* REFUSE: errno, negative */
	struct rwk_address from;
	uint64_t to;        /* nonce_port expected of the receiver; nonce 0 if not known yet */
	uint32_t contact;   /* the sender's number for this channel */
	uint32_t to_contact; /* the receiver's, 0 if not known yet */
	uint32_t bell;      /* what the receiver shall ring in the sender's inbox */
	uint32_t barrier;   /* 1: the sender has joined rwk_barrier_everywhere */
	uint64_t start;     /* of the sender's process, ticks, 0: not known */
};
_Static_assert(offsetof(struct note, to) == 48 && sizeof(struct note) == 80, "the note's layout");

enum { RETRY_FIRST = 10, RETRY_MAX = 250, OFFERS_MAX = 32, DATAGRAMS = 64, DESCRIPTORS_TAKEN = 2, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static uint64_t nonce_of(uint64_t nonce_port)
{
	return nonce_port >> 16;
}

static socklen_t socket_name(struct sockaddr_un *name, uint16_t number)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
		(size_t)snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "ropewalk.%u", number));
}

/* Sends one datagram with at most two descriptors: 0 or negative errno. */
static int send_note(struct rwk_port *port, uint16_t number, const struct note *note, const int *fds, unsigned count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct ucred me = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
	struct iovec iov = {(void *)note, sizeof(*note)};
	struct sockaddr_un name;
	struct msghdr msg = {.msg_name = &name, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	struct cmsghdr *c = &control.align;

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
	return sendmsg(port->sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static struct note note_to(struct rwk_shm_channel *ch, enum note_type type)
{
	struct rwk_port *port = ch->base.port;

	return (struct note){
		.magic = NOTE_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.type = type,
		.from = port->address,
		.to = ch->to.nonce_port,
		.contact = ch->contact,
		.to_contact = ch->peer_contact,
		.bell = ch->bell,
		.barrier = port->have_barrier,
		.start = port->start,
	};
}

static int send_to(struct rwk_shm_channel *ch, enum note_type type, const int *fds, unsigned count)
{
	struct note note = note_to(ch, type);

	return send_note(ch->base.port, rwk_address_port(&ch->to), &note, fds, count);
}

void rwk_shm_attach_wake(struct rwk_shm_channel *ch)
{
	struct sockaddr_un name;
	socklen_t len = socket_name(&name, rwk_address_port(&ch->to));

	/* A full queue is as good: its socket is readable. Nobody there: evidence will tell. */
	sendto(ch->base.port->sock, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&name, len);
}

/* A sealed memfd of that size; negative errno. */
static int make_segment(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Maps what is checked to be sealed and of that size (0: any); NULL with errno. */
static void *map_segment(int fd, size_t *size)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) || fcntl(fd, F_GET_SEALS) < 0 || (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS ||
		(*size && st.st_size != (off_t)*size) || st.st_size < (off_t)RWK_SHM_PAGE || st.st_size > 1 << 30) {
		errno = EPROTO;
		return NULL;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, (size_t)st.st_size, MADV_DONTFORK);
	*size = (size_t)st.st_size;
	return at;
}

static struct rwk_shm_inbox *map_inbox(int fd)
{
	size_t size = sizeof(struct rwk_shm_inbox);
	struct rwk_shm_inbox *inbox = map_segment(fd, &size);

	if (inbox && (rwk_glance(&inbox->magic) != RWK_SHM_INBOX_MAGIC || rwk_glance(&inbox->layout) != RWK_SHM_LAYOUT_VERSION)) {
		munmap(inbox, size);
		errno = EPROTO;
		return NULL;
	}
	return inbox;
}

/* Sets up this side's view of a mapped pair. */
static void use_pair(struct rwk_shm_channel *ch, struct rwk_shm_pair_header *pair, size_t size, uint32_t ring_lines, unsigned side)
{
	unsigned char *base = (unsigned char *)pair;

	ch->pair = pair;
	ch->pair_size = size;
	ch->ring_lines = ring_lines;
	ch->side = side;
	rwk_shm_tx_init(&ch->tx, (void *)(base + rwk_shm_ring_at(ring_lines, side)), ring_lines, &pair->side[!side]);
	rwk_shm_rx_init(&ch->rx, (void *)(base + rwk_shm_ring_at(ring_lines, !side)), ring_lines, &pair->side[side]);
	rwk_shm_slabs_init(&ch->slabs, base + rwk_shm_slabs_at(ring_lines), side);
}

static uint32_t wanted_ring_lines(void)
{
	uint32_t lines = RWK_SHM_RING_MIN;

	while (lines * 2 <= rwk_params.ring_lines && lines < RWK_SHM_RING_MAX)
		lines *= 2;
	return lines;
}

/* Is the limit of descriptors so near that what the peers send could not be taken any more? `fd` is the newest one. */
static bool near_limit(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd + DESCRIPTORS_TAKEN >= limit.rlim_cur;
}

static int make_pair(struct rwk_shm_channel *ch)
{
	uint32_t lines = wanted_ring_lines();
	size_t size = rwk_shm_pair_size(lines);
	struct rwk_shm_pair_header *pair;
	int fd = make_segment("ropewalk pair", size), rc;

	if (fd < 0)
		return fd;
	if (near_limit(fd)) {
		close(fd);
		return -EMFILE;
	}
	pair = map_segment(fd, &size);
	if (!pair)
		goto err_close;
	/* What is needed at once is asked for now, so that a lack of memory is an answer and not a signal. */
	if (madvise(pair, RWK_SHM_PAGE, MADV_POPULATE_WRITE) && errno == ENOMEM)
		goto err_unmap;
	pair->magic = RWK_SHM_PAIR_MAGIC;
	pair->layout = RWK_SHM_LAYOUT_VERSION;
	pair->ring_lines = lines;
	pair->slabs = RWK_SHM_SLABS;
	pair->slab_bytes = RWK_SHM_SLAB_BYTES;
	pair->slab_stride = RWK_SHM_SLAB_STRIDE;
	pair->transfer_bytes = RWK_SHM_TRANSFER_BYTES;
	pair->size = size;
	pair->nonce_port[0] = ch->base.port->address.nonce_port;
	pair->nonce_port[1] = ch->to.nonce_port;
	for (int i = 0; i < 2; i++)
		rwk_publish32(&pair->side[i].consumed, RWK_SHM_STAMP_FIRST);
	use_pair(ch, pair, size, lines, 0);
	ch->pair_fd = fd;
	ch->base.port->offers++;
	return 0;

err_unmap:
	rc = -errno;
	munmap(pair, size);
	close(fd);
	return rc;
err_close:
	rc = -errno;
	close(fd);
	return rc;
}

static int map_pair(struct rwk_shm_channel *ch, int fd)
{
	size_t size = 0;
	struct rwk_shm_pair_header *pair = map_segment(fd, &size);
	struct rwk_shm_pair_header h;

	if (!pair)
		return -errno;
	memcpy(&h, pair, sizeof(h));
	if (h.magic != RWK_SHM_PAIR_MAGIC || h.layout != RWK_SHM_LAYOUT_VERSION || h.ring_lines < RWK_SHM_RING_MIN ||
		h.ring_lines > RWK_SHM_RING_MAX || (h.ring_lines & (h.ring_lines - 1)) || h.slabs != RWK_SHM_SLABS ||
		h.slab_bytes != RWK_SHM_SLAB_BYTES || h.slab_stride != RWK_SHM_SLAB_STRIDE ||
		h.transfer_bytes != RWK_SHM_TRANSFER_BYTES || size != rwk_shm_pair_size(h.ring_lines) ||
		h.nonce_port[0] != ch->to.nonce_port || h.nonce_port[1] != ch->base.port->address.nonce_port) {
		munmap(pair, size);
		return -EPROTO;
	}
	use_pair(ch, pair, size, h.ring_lines, 1);
	return 0;
}

void rwk_shm_attach_drop(struct rwk_shm_channel *ch)
{
	rwk_list_remove(&ch->connecting);
	if (ch->pair_fd >= 0) {
		close(ch->pair_fd);
		ch->base.port->offers--;
	}
	ch->pair_fd = -1;
	if (ch->pair)
		munmap(ch->pair, ch->pair_size);
	ch->pair = NULL;
	if (ch->inbox)
		munmap(ch->inbox, sizeof(*ch->inbox));
	ch->inbox = NULL;
}

static bool we_are_lower(const struct rwk_shm_channel *ch)
{
	return ch->base.port->address.nonce_port < ch->to.nonce_port;
}

static void become_open(struct rwk_shm_channel *ch)
{
	rwk_list_remove(&ch->connecting);
	if (ch->pair_fd >= 0) {
		close(ch->pair_fd);
		ch->base.port->offers--;
	}
	ch->pair_fd = -1;
	ch->state = RWK_SHM_OPEN;
	rwk_shm_enlist(ch);
	rwk_shm_gate(ch);
	if (!rwk_shm_watch(ch))
		rwk_shm_doom(ch, -ECONNRESET);
}

static int try_offer(struct rwk_shm_channel *ch)
{
	int rc = 0, fds[2];

	if (!ch->pair) {
		/* A burst of connections must not use up the program's descriptors: the next ones wait for their turn. */
		if (ch->base.port->offers >= OFFERS_MAX)
			return -EAGAIN;
		rc = make_pair(ch);
	}
	if (rc)
		return rc == -EMFILE || rc == -ENFILE ? -EAGAIN : rc;
	ch->state = RWK_SHM_OFFERED;
	fds[0] = ch->pair_fd;
	fds[1] = ch->base.port->inbox_fd;
	return send_to(ch, OFFER, fds, 2);
}

void rwk_shm_attach_try(struct rwk_shm_channel *ch)
{
	int rc;

	if (ch->doom)
		return;
	if (ch->peer_contact && we_are_lower(ch))
		rc = try_offer(ch);
	else
		rc = send_to(ch, HELLO, NULL, 0);
	if (!rc || rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS || rc == -EINTR)
		return;
	if (rc == -ECONNREFUSED || rc == -ENOENT) {
		rwk_info("shared memory: nobody at port %u", rwk_address_port(&ch->to));
		rwk_shm_doom(ch, ch->partial ? -ECONNREFUSED : -ECONNRESET);
		return;
	}
	rwk_warn("shared memory: cannot attach to port %u: %s", rwk_address_port(&ch->to), strerror(-rc));
	rwk_shm_doom(ch, rc);
}

void rwk_shm_attach_retry(struct rwk_port *port)
{
	for (struct rwk_list *l = port->connecting.next, *next; l != &port->connecting; l = next) {
		struct rwk_shm_channel *ch = rwk_container_of(l, struct rwk_shm_channel, connecting);

		next = l->next;
		if (port->now < ch->retry_at)
			continue;
		ch->retry_gap = ch->retry_gap ? ch->retry_gap * 2 : RETRY_FIRST;
		if (ch->retry_gap > RETRY_MAX)
			ch->retry_gap = RETRY_MAX;
		ch->retry_at = port->now + ch->retry_gap;
		rwk_shm_attach_try(ch);
	}
}

static struct rwk_shm_channel *find(struct rwk_port *port, const struct rwk_address *from)
{
	struct rwk_shm_channel *partial = NULL;

	for (uint32_t i = 0; i < port->bells; i++) {
		struct rwk_shm_channel *ch = port->by_bell[i];

		if (!ch || ch->state == RWK_SHM_FAILED)
			continue;
		if (ch->to.nonce_port == from->nonce_port)
			return ch;
		if (ch->partial && rwk_address_port(&ch->to) == rwk_address_port(from))
			partial = ch;
	}
	return partial;
}

/* What the kernel says about a datagram's sender. */
struct sender {
	struct ucred cred; /* pid 0: not told */
	uint16_t number;   /* of the socket it came from; 0: not one of ours */
	int fd[2], fds;    /* descriptors that came along; closed by who handles the note */
};

static void refuse(struct rwk_port *port, const struct note *note, int reason)
{
	struct note answer = {
		.magic = NOTE_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.type = REFUSE,
		.reason = reason,
		.from = port->address,
		.to = note->from.nonce_port,
		.to_contact = note->contact,
	};

	if (note->type != REFUSE)
		send_note(port, rwk_address_port(&note->from), &answer, NULL, 0);
}

/* A process that is not who it should be, or does not speak as we do. */
static void stranger(struct rwk_port *port, const struct note *note, int reason, const char *what)
{
	port->count.strangers++;
	rwk_debug("shared memory: a datagram is dropped: %s", what);
	if (!note)
		return;
	port->count.refused++;
	refuse(port, note, reason);
}

static bool heard_hello(struct rwk_port *port, struct rwk_shm_channel *ch, const struct note *note)
{
	if (ch->partial) {
		ch->partial = false;
		ch->to = note->from;
		if (ch->to.nonce_port == port->address.nonce_port) {
			rwk_shm_doom(ch, -EHOSTUNREACH);
			return false;
		}
		if (port->client->connected(port->cookie, &ch->base, &note->from)) {
			refuse(port, note, -ECONNREFUSED);
			rwk_shm_doom(ch, -ECONNREFUSED);
			return false;
		}
	}
	ch->peer_contact = note->contact;
	ch->peer_bell = note->bell;
	ch->peer_has_barrier = note->barrier == 1;
	return true;
}

static void on_hello(struct rwk_port *port, const struct note *note)
{
	struct rwk_shm_channel *ch = find(port, &note->from);

	if (!ch) {
		ch = rwk_shm_channel_new(port, &note->from, NULL);
		if (!ch)
			return;
		if (port->client->connected(port->cookie, &ch->base, &note->from)) {
			refuse(port, note, -ECONNREFUSED);
			rwk_shm_channel_free(ch, -ECONNREFUSED);
			return;
		}
	}
	if (ch->peer_contact && ch->peer_contact != note->contact) {
		/* It has given up the channel that we know; it will ask again once we have seen the last of it. */
		rwk_shm_doom(ch, -ECONNRESET);
		return;
	}
	if (!heard_hello(port, ch, note))
		return;
	if (ch->state == RWK_SHM_OPEN && we_are_lower(ch))
		return;
	rwk_shm_attach_try(ch);
}

static void on_offer(struct rwk_port *port, const struct note *note, const struct sender *s)
{
	struct rwk_shm_channel *ch = find(port, &note->from);
	int rc;

	if (!ch || ch->contact != note->to_contact || port->address.nonce_port <= note->from.nonce_port) {
		stranger(port, note, -ECONNREFUSED, "an offer that nobody asked for");
		return;
	}
	if (ch->state == RWK_SHM_ASKING) {
		if (!heard_hello(port, ch, note))
			return;
		if (s->fds != 2) {
			if (!port->warned)
				rwk_warn("shared memory: no file descriptor is left to attach to rank %u (raise `ulimit -n`); will try again",
					rwk_address_rank(&ch->to));
			port->warned = true;
			return;
		}
		rc = map_pair(ch, s->fd[0]);
		if (!rc) {
			ch->inbox = map_inbox(s->fd[1]);
			rc = ch->inbox ? 0 : -errno;
		}
		if (rc) {
			rwk_warn("shared memory: cannot map what rank %u offers: %s", rwk_address_rank(&ch->to), strerror(-rc));
			refuse(port, note, rc);
			rwk_shm_doom(ch, rc);
			return;
		}
		ch->pid = s->cred.pid;
		ch->start = note->start;
		become_open(ch);
	}
	if (ch->state == RWK_SHM_OPEN)
		send_to(ch, ACCEPT, &port->inbox_fd, 1);
}

static void on_accept(struct rwk_port *port, const struct note *note, const struct sender *s)
{
	struct rwk_shm_channel *ch = find(port, &note->from);

	if (!ch || ch->contact != note->to_contact || ch->peer_contact != note->contact) {
		stranger(port, note, -ECONNREFUSED, "an acceptance of nothing");
		return;
	}
	if (ch->state != RWK_SHM_OFFERED || s->fds != 1)
		return;
	ch->inbox = map_inbox(s->fd[0]);
	if (!ch->inbox) {
		rwk_warn("shared memory: cannot map the inbox of rank %u: %s", rwk_address_rank(&ch->to), strerror(errno));
		rwk_shm_doom(ch, errno == ENOMEM ? -ENOMEM : -EPROTO);
		return;
	}
	ch->pid = s->cred.pid;
	ch->start = note->start;
	become_open(ch);
}

static void on_refuse(struct rwk_port *port, const struct note *note)
{
	struct rwk_shm_channel *ch = find(port, &note->from);

	/* From a port that was opened anew under that number the nonce is another one. */
	for (uint32_t i = 0; !ch && i < port->bells; i++) {
		struct rwk_shm_channel *c = port->by_bell[i];

		if (c && c->contact == note->to_contact && rwk_address_port(&c->to) == rwk_address_port(&note->from))
			ch = c;
	}
	if (!ch || ch->contact != note->to_contact || ch->state == RWK_SHM_OPEN || ch->state == RWK_SHM_FAILED)
		return;
	rwk_info("shared memory: port %u refuses: %s", rwk_address_port(&ch->to), strerror(-note->reason));
	rwk_shm_doom(ch, note->reason < 0 && note->reason > -4096 ? note->reason : -ECONNREFUSED);
}

static void handle_note(struct rwk_port *port, const struct note *note, const struct sender *s)
{
	uint64_t mine = port->address.nonce_port;

	if (note->magic != NOTE_MAGIC || !s->number || rwk_address_port(&note->from) != s->number)
		stranger(port, NULL, 0, "not a handshake");
	else if (s->cred.uid != geteuid() || !s->cred.pid)
		stranger(port, NULL, 0, "of another user, or of a process that cannot be seen from here");
	else if (note->layout != RWK_SHM_LAYOUT_VERSION)
		stranger(port, note, -EPROTONOSUPPORT, "of another version");
	else if (note->from.job != port->address.job)
		stranger(port, note, -EACCES, "of another job");
	else if (nonce_of(note->to) && note->to != mine)
		stranger(port, note, -ECONNRESET, "for an endpoint that had this port before");
	else if (!nonce_of(note->from.nonce_port) || !note->contact == (note->type != REFUSE) || note->bell >= RWK_SHM_BELLS)
		stranger(port, NULL, 0, "impossible numbers");
	else if (note->type == HELLO)
		on_hello(port, note);
	else if (note->type == OFFER)
		on_offer(port, note, s);
	else if (note->type == ACCEPT)
		on_accept(port, note, s);
	else if (note->type == REFUSE)
		on_refuse(port, note);
	else
		stranger(port, NULL, 0, "of an unknown type");
}

static void read_control(struct msghdr *msg, struct sender *s)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && bytes == sizeof(s->cred)) {
			memcpy(&s->cred, CMSG_DATA(c), sizeof(s->cred));
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

/* One datagram: false if there is none. */
static bool receive(struct rwk_port *port, int *notes)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct sender s = {.fds = 0};
	struct sockaddr_un name;
	struct note note;
	struct iovec iov = {&note, sizeof(note)};
	struct msghdr msg = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(port->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);

	if (n < 0)
		return false;
	read_control(&msg, &s);
	s.number = number_of(&name, msg.msg_namelen);
	if (n == sizeof(note)) {
		handle_note(port, &note, &s);
		++*notes;
	} else if (n != 1) {
		stranger(port, NULL, 0, "of a length that nothing has");
	}
	while (s.fds)
		close(s.fd[--s.fds]);
	return true;
}

int rwk_shm_attach_poll(struct rwk_port *port)
{
	int notes = 0;

	for (int i = 0; i < DATAGRAMS && receive(port, &notes); i++)
		;
	if (notes)
		port->talk_until = port->now + 1000;
	return notes;
}

static int bind_socket(struct rwk_port *port, uint16_t *number)
{
	uint16_t wanted = *number;
	struct sockaddr_un name;
	socklen_t len;

	for (int i = 0; i < 1000; i++) {
		if (!wanted && getrandom(number, sizeof(*number), 0) != sizeof(*number))
			return -EIO;
		if (*number < 1024 && !wanted)
			continue;
		len = socket_name(&name, *number);
		if (!bind(port->sock, (struct sockaddr *)&name, len))
			return 0;
		if (wanted || errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

static int open_inbox(struct rwk_port *port)
{
	size_t size = sizeof(*port->inbox);

	port->inbox_fd = make_segment("ropewalk inbox", size);
	if (port->inbox_fd < 0)
		return port->inbox_fd;
	port->inbox = map_segment(port->inbox_fd, &size);
	if (!port->inbox)
		return -errno;
	if (madvise(port->inbox, size, MADV_POPULATE_WRITE) && errno == ENOMEM)
		return -ENOMEM;
	port->inbox->magic = RWK_SHM_INBOX_MAGIC;
	port->inbox->layout = RWK_SHM_LAYOUT_VERSION;
	return 0;
}

static int open_descriptors(struct rwk_port *port)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int on = 1;

	port->sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	port->epoll = epoll_create1(EPOLL_CLOEXEC);
	port->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (port->sock < 0 || port->epoll < 0 || port->timer < 0)
		return -errno;
	if (setsockopt(port->sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return -errno;
	ev.data.ptr = &port->sock;
	if (epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->sock, &ev))
		return -errno;
	ev.data.ptr = &port->timer;
	return epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->timer, &ev) ? -errno : 0;
}

int rwk_shm_attach_open(struct rwk_port *port, uint16_t number)
{
	uint64_t nonce = 0;
	int rc;

	port->sock = port->epoll = port->timer = port->inbox_fd = -1;
	rc = open_descriptors(port);
	if (!rc)
		rc = bind_socket(port, &number);
	if (!rc)
		rc = open_inbox(port);
	while (!rc && !nonce_of(nonce)) {
		if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce) ||
			getrandom(&port->contacts, sizeof(port->contacts), 0) != sizeof(port->contacts))
			rc = -EIO;
	}
	if (rc) {
		rwk_shm_attach_close(port);
		return rc;
	}
	port->address.nonce_port = (nonce & ~0xffffull) | number;
	return 0;
}

void rwk_shm_attach_close(struct rwk_port *port)
{
	const int fds[] = {port->timer, port->epoll, port->sock, port->inbox_fd};

	if (port->inbox)
		munmap(port->inbox, sizeof(*port->inbox));
	port->inbox = NULL;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}
