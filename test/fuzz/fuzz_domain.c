/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sibling gone mad, and any packets (transports/shared_rc): it writes what it likes into the segment of the domain,
 * while the members take packets, hand them on, look who has died, leave and come back. What must hold: nothing outside
 * the segment is read or written (pages that nobody may touch lie around it), no piece is longer than a packet, and no
 * member waits for ever. One thing stays as it is, and is believed: what the C library keeps in its locks.
 *
 *   steps, of which byte 0 says what
 */
#define _GNU_SOURCE
#undef process_vm_readv
#undef process_vm_writev
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "shared_rc/door.h"
#include "shared_rc/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
ssize_t fuzz_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags);
ssize_t fuzz_writev(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags);

#define MEMBERS  3u
#define TARGETS  4u
#define SPEAKERS 3u
#define PMTU     256u
#define STEPS    300u
#define PIECES   1000

static const struct rwk_src_size size = {MEMBERS, TARGETS, RWK_SRC_INBOX_MIN};

static struct {
	const uint8_t *at, *end; /* the input */
	unsigned char *memory;   /* between two pages that nobody may touch */
	size_t bytes;
	struct rwk_src_layout layout;
	struct rwk_src_view *view[MEMBERS]; /* NULL: has left */
	uint32_t srqn[MEMBERS];             /* that it had at last */
	uint32_t qpn[SPEAKERS], psn[SPEAKERS];
	rwk_time now;
	uint64_t ms;
	bool refuse; /* the link takes nothing, and no memory of others is there */
} s;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static uint8_t next(void)
{
	return s.at < s.end ? *s.at++ : 0;
}

/* Small numbers, and such as are near an end. */
static uint64_t number(void)
{
	uint8_t b = next();

	if (b < 180)
		return b;
	if (b < 200)
		return UINT64_MAX - (b - 180u);
	if (b < 230)
		return (uint64_t)1 << (b - 200) * 2;
	return (uint64_t)next() << 32 | (uint64_t)next() << 16 | (uint64_t)next() << 8 | b;
}

static void read_all(const void *bytes, size_t len)
{
	static volatile uint8_t sum;

	must(len <= PMTU);
	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)bytes)[i]);
}

static int on_emit(void *user, const struct rwk_link_address *to, uint32_t cut, const struct rwk_wire *w,
	const struct iovec *payload, int count)
{
	(void)user;
	(void)to;
	must(!cut || (cut >= 256 && cut < RWK_WIRE_OWN_MAX));
	(void)w;
	for (int i = 0; i < count; i++)
		read_all(payload[i].iov_base, payload[i].iov_len);
	return s.refuse ? -EAGAIN : 0;
}

static void on_receive(void *user, uint32_t target, unsigned where, const void *bytes, size_t len)
{
	(void)user;
	(void)target;
	(void)where;
	read_all(bytes, len);
}

static void on_write(void *user, uint32_t target, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	(void)user;
	(void)target;
	(void)key;
	(void)address;
	read_all(bytes, len);
}

static void on_wake(void *user, uint32_t srqn)
{
	struct rwk_link_address bell = rwk_src_bell(*(struct rwk_src_view **)user, srqn);

	(void)bell;
}

/* Another process's memory, by whatever pid and address stand in the segment: of ours all is read, or written. */
ssize_t fuzz_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags)
{
	ssize_t sum = 0;

	(void)pid;
	(void)remote;
	(void)remotes;
	(void)flags;
	for (unsigned long i = 0; i < locals; i++) {
		memset(local[i].iov_base, 0, local[i].iov_len);
		sum += (ssize_t)local[i].iov_len;
	}
	return s.refuse ? (errno = EFAULT, -1) : sum;
}

ssize_t fuzz_writev(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags)
{
	ssize_t sum = 0;

	(void)pid;
	(void)remote;
	(void)remotes;
	(void)flags;
	for (unsigned long i = 0; i < locals; i++) {
		read_all(local[i].iov_base, local[i].iov_len);
		sum += (ssize_t)local[i].iov_len;
	}
	return s.refuse ? (errno = EFAULT, -1) : sum;
}

/* In place of door.c's: time is what we say. */
uint64_t rwk_src_ms(void)
{
	return ++s.ms;
}

static const struct rwk_src_host host = {on_emit, on_receive, on_write, on_wake};

/* ---- the members ---- */

static void come(unsigned i)
{
	/* As who joins. */
	if (rwk_src_segment_check(s.memory, &size) || rwk_src_view_open(s.memory, &host, &s.view[i], &s.view[i]))
		s.view[i] = NULL; /* what it found was no domain, or full */
	else
		s.srqn[i] = rwk_src_srqn(s.view[i]);
}

static struct rwk_src_initiator initiator(unsigned i)
{
	struct rwk_src_initiator r = {.nonce = 100 + i, .qpn = 20 + i, .psn = 0xfffff0, .pmtu = PMTU};

	r.own = RWK_RC_SELECTIVE | RWK_RC_ENDLESS | RWK_RC_BUSY;
	r.to.byte[0] = (unsigned char)(1 + i);
	return r;
}

static void make_target(struct rwk_src_view *v, unsigned i)
{
	struct rwk_src_initiator r = initiator(i);
	uint8_t how = next();
	uint32_t qpn;

	if (how & 1)
		r.nonce = number();
	if (how & 2)
		r.pmtu = (uint16_t)number();
	if (how & 4)
		r.own = (uint16_t)number();
	if (!rwk_src_target_make(v, &r, &qpn) && r.pmtu == PMTU) {
		must(qpn > 1 && qpn <= 0xfffffe);
		s.qpn[i] = qpn;
		s.psn[i] = r.psn;
	}
}

static void packet(struct rwk_src_view *v)
{
	static const uint8_t opcodes[] = {RWK_WIRE_SEND_ONLY, RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE,
		RWK_WIRE_SEND_LAST, RWK_WIRE_WRITE_ONLY, RWK_WIRE_WRITE_FIRST, RWK_WIRE_WRITE_MIDDLE,
		RWK_WIRE_WRITE_LAST};
	static uint8_t bytes[PMTU];
	unsigned i = next() % SPEAKERS;
	uint8_t how = next(), ahead = next();
	struct rwk_src_initiator r = initiator(i);
	size_t len = how & 1 ? PMTU : next() % PMTU;
	struct rwk_wire w = {
		.opcode = how & 2 ? next() : RWK_WIRE_SRC | opcodes[next() % sizeof(opcodes)],
		.qpn = s.qpn[i],
		.ack_request = how & 4,
		.srqn = s.srqn[next() % MEMBERS],
	};

	if (how & 8)
		w.srqn = (uint32_t)number() & 0xffffff;
	w.reth.length = how & 16 ? (uint32_t)number() : (uint32_t)len;
	w.psn = (s.psn[i] + (ahead & 1 ? 0 : ahead)) & 0xffffff;
	if (ahead & 1)
		s.psn[i]++;
	rwk_src_packet(v, &r.to, &w, bytes, len, s.now);
}

static void look(struct rwk_src_view *v)
{
	struct rwk_src_initiator r;
	uint32_t qpn = s.qpn[next() % SPEAKERS], srqn = s.srqn[next() % MEMBERS];

	rwk_src_target_find(v, qpn, &r);
	rwk_src_target_lives(v, qpn);
	rwk_src_holder(v, qpn);
	rwk_src_is_dead(v, srqn);
	rwk_src_sleep(v);
	rwk_src_next(v);
}

/* ---- the mad one ---- */

static bool in_lock(size_t at, size_t lock)
{
	return at + 8 > lock && at < lock + sizeof(pthread_mutex_t);
}

static bool is_believed(size_t at)
{
	bool in = in_lock(at, offsetof(struct rwk_src_header, lock));

	for (unsigned i = 0; i < MEMBERS; i++)
		in |= in_lock(at,
			s.layout.members + i * sizeof(struct rwk_src_member) + offsetof(struct rwk_src_member, lock));
	for (unsigned i = 0; i < TARGETS; i++) {
		size_t target = s.layout.targets + i * s.layout.target_stride;

		in |= in_lock(at, target + offsetof(struct rwk_src_target, lock));
	}
	return in;
}

/* A word of eight bytes where something stands. */
static void scribble(void)
{
	uint8_t where = next();
	uint32_t target = s.qpn[where >> 4 & 1] % TARGETS;
	size_t at, room;
	uint64_t word;

	switch (where % 8) {
	case 0:
		at = 0;
		room = sizeof(struct rwk_src_header);
		break;
	case 1:
		at = s.layout.members + (where >> 3) % MEMBERS * sizeof(struct rwk_src_member);
		room = sizeof(struct rwk_src_member);
		break;
	case 2:
		at = s.layout.directory;
		room = TARGETS * sizeof(struct rwk_src_entry);
		break;
	case 3:
	case 4:
		at = s.layout.targets + target * s.layout.target_stride;
		room = where % 8 == 3 ? sizeof(struct rwk_src_target) + 64 : s.layout.target_stride;
		break;
	case 5:
		at = s.layout.inboxes + (where >> 3) % MEMBERS * size.inbox_bytes;
		room = 2048;
		break;
	case 6:
		at = s.layout.early + target * s.layout.early_stride;
		room = sizeof(struct rwk_src_early) * RWK_RC_WINDOW_MAX;
		break;
	default:
		at = 0;
		room = s.bytes;
	}
	at += (number() * 8) % (room & ~(size_t)7);
	if (is_believed(at))
		return;
	memcpy(&word, s.memory + at, sizeof(word));
	word = where & 64 ? word ^ (uint64_t)1 << next() % 64 : where & 128 ? word + number() : number();
	memcpy(s.memory + at, &word, sizeof(word));
}

/* ---- from beginning to end ---- */

static void step(uint8_t what)
{
	unsigned i = (what >> 4) % MEMBERS;
	struct rwk_src_view *v = s.view[i];

	if (what % 16 >= 12) {
		scribble();
		return;
	}
	if (!v) {
		come(i);
		return;
	}
	switch (what % 16) {
	case 0:
	case 1:
	case 2:
	case 3:
		packet(v);
		break;
	case 4:
		must(rwk_src_drain(v, PIECES) <= PIECES);
		break;
	case 5:
		rwk_src_pump(v, s.now);
		break;
	case 6:
		make_target(v, next() % SPEAKERS);
		break;
	case 7:
		look(v);
		break;
	case 8:
		rwk_src_bury(v, s.now);
		break;
	case 9:
		rwk_src_view_close(v);
		s.view[i] = NULL;
		break;
	case 10:
		if (what & 0x80)
			rwk_src_target_end(v, s.qpn[next() % SPEAKERS]);
		else if (what & 0x40)
			rwk_src_let_go(v, s.qpn[next() % SPEAKERS]);
		else
			rwk_src_hold(v, s.qpn[next() % SPEAKERS]);
		break;
	default:
		s.refuse = !s.refuse;
		s.now += number() % 1000000000;
	}
}

static void make_memory(void)
{
	unsigned char *room;

	s.bytes = rwk_src_segment_size(&size);
	must(s.bytes && !rwk_src_layout_of(&size, &s.layout));
	room = mmap(NULL, s.bytes + 2 * RWK_SRC_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(room != MAP_FAILED);
	s.memory = mmap(
		room + RWK_SRC_PAGE, s.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	must(s.memory == room + RWK_SRC_PAGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	memset(&s, 0, sizeof(s));
	s.at = bytes;
	s.end = bytes + len;
	s.now = 1000;
	make_memory();
	must(!rwk_src_segment_format(s.memory, &size));
	for (unsigned i = 0; i < MEMBERS; i++)
		come(i);
	for (unsigned i = 0; i < SPEAKERS; i++) {
		struct rwk_src_initiator r = initiator(i);

		must(!rwk_src_target_make(s.view[i % MEMBERS], &r, &s.qpn[i]));
		s.psn[i] = r.psn;
	}
	for (unsigned i = 0; i < STEPS && s.at < s.end; i++)
		step(next());
	for (unsigned i = 0; i < MEMBERS; i++) {
		if (s.view[i])
			rwk_src_view_close(s.view[i]);
		s.view[i] = NULL;
	}
	must(!munmap(s.memory - RWK_SRC_PAGE, s.bytes + 2 * RWK_SRC_PAGE));
	return 0;
}
