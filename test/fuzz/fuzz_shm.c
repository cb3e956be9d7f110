/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile process of the same user on the node (transports/shm): it attaches as it should and then writes what it
 * likes into all that it shares with us, lies in its rings, and talks to our socket under other names. What must hold:
 * nothing outside the shared memory is read or written (pages that nobody may touch lie around each mapping, the
 * sanitizers see to the rest), a message is no longer than one may be, what we have posted ends once, whatever it says,
 * and all is given back in the end.
 *
 *     we  <---- pair, inboxes ---->  the liar, a port of this process whose memory the input writes
 *     ^------- datagrams ----------  a stranger, a bare socket
 *
 * The sources are compiled with the names below in place of the system's: memory has guards, reads of the other
 * process's memory are those of our own (it is the same), writes into it do not happen, and time is what we say.
 *
 *   steps, of which byte 0 says what
 */
#define _GNU_SOURCE
#undef mmap
#undef munmap
#undef process_vm_readv
#undef process_vm_writev
#undef clock_gettime
#undef nanosleep
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <sanitizer/asan_interface.h>

#include "base/call_if.h"
#include "base/log.h"
#include "base/param.h"
#include "shm/channel.h"
#include "shm/note.h"
#include "shm/segment.h"
#include "shm/transfer_area.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
void *fuzz_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
int fuzz_munmap(void *at, size_t len);
ssize_t fuzz_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags);
ssize_t fuzz_writev(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags);
int fuzz_clock_gettime(clockid_t clock, struct timespec *now);
int fuzz_nanosleep(const struct timespec *time, struct timespec *left);

#define MAPPINGS 64u
#define OPS      24u
#define REGIONS  6u
#define BYTES    70000u /* of an op or a region, at most: more than two blocks of staging */
#define STEPS    300u
#define TURNS    40u
#define TICK     1000000u /* ns that pass at each look at the clock */

struct party {
	struct rwk_port *port;
	struct rwk_address address;
	struct rwk_channel *ch;
	bool failed;
	unsigned char *place_bytes; /* of the message that comes in pieces; NULL: none does */
	struct iovec iov[2];
	struct rwk_place place;
	struct rwk_rkey key[REGIONS];
	unsigned char *region[REGIONS]; /* NULL: not exposed */
};

struct request {
	struct rwk_op op;
	struct iovec iov[2];
	unsigned char *bytes;
	bool busy;
};

static struct {
	const uint8_t *at, *end; /* the input */
	struct party we, liar;
	struct request request[OPS];
	struct rwk_channel *strangers[OPS]; /* what notes have made of us */
	int stranger, stranger_name;        /* sockets */
	uint16_t stranger_number;
	unsigned vm; /* what calls for the other's memory say */
	uint64_t now;
	struct {
		char *at;
		size_t len;
	} mapping[MAPPINGS];
} s;

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* ---- in place of the system ---- */

void *fuzz_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	char *room;

	if (!(flags & MAP_SHARED))
		return mmap(at, len, prot, flags, fd, offset);
	room = mmap(NULL, len + 2 * RWK_SHM_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(room != MAP_FAILED && !(len % RWK_SHM_PAGE));
	must(mmap(room + RWK_SHM_PAGE, len, prot, flags | MAP_FIXED, fd, offset) == room + RWK_SHM_PAGE);
	for (unsigned i = 0; i < MAPPINGS; i++)
		if (!s.mapping[i].at) {
			s.mapping[i].at = room;
			s.mapping[i].len = len + 2 * RWK_SHM_PAGE;
			return room + RWK_SHM_PAGE;
		}
	abort();
}

int fuzz_munmap(void *at, size_t len)
{
	for (unsigned i = 0; i < MAPPINGS; i++)
		if (s.mapping[i].at && s.mapping[i].at + RWK_SHM_PAGE == at) {
			must(s.mapping[i].len == len + 2 * RWK_SHM_PAGE);
			at = s.mapping[i].at;
			s.mapping[i].at = NULL;
			return munmap(at, s.mapping[i].len);
		}
	return munmap(at, len);
}

/* Memory of ours that a call is about to fill, or to read. */
static size_t look_at(const struct iovec *iov, unsigned long count)
{
	size_t sum = 0;

	for (unsigned long i = 0; i < count; i++) {
		must(!iov[i].iov_len || !__asan_region_is_poisoned(iov[i].iov_base, iov[i].iov_len));
		sum += iov[i].iov_len;
	}
	return sum;
}

static ssize_t refused(void)
{
	static const int errors[] = {EFAULT, EPERM, ESRCH, EACCES};

	errno = errors[s.vm % 4];
	return -1;
}

ssize_t fuzz_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags)
{
	look_at(local, locals);
	return s.vm < 8 ? process_vm_readv(pid, local, locals, remote, remotes, flags) : refused();
}

ssize_t fuzz_writev(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags)
{
	size_t sum = look_at(local, locals);

	(void)pid;
	(void)remote;
	(void)remotes;
	(void)flags;
	return s.vm < 6 ? (ssize_t)sum : s.vm < 8 ? (ssize_t)(sum / 2) : refused();
}

/* Of the calls above, if the peer has left the word alone. */
long rwk_call_if(const _Atomic uint64_t *word, uint64_t expected, long number, const long argument[6])
{
	const struct iovec *local = (const struct iovec *)argument[1], *remote = (const struct iovec *)argument[3];
	ssize_t moved;

	if (*word != expected)
		return -EAGAIN;
	moved = (number == SYS_process_vm_readv ? fuzz_readv : fuzz_writev)((pid_t)argument[0], local,
		(unsigned long)argument[2], remote, (unsigned long)argument[4], 0);
	return moved < 0 ? -errno : moved;
}

int fuzz_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	s.now += TICK;
	*now = (struct timespec){.tv_sec = (time_t)(s.now / 1000000000), .tv_nsec = (long)(s.now % 1000000000)};
	return 0;
}

int fuzz_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	s.now += 100u * (uint64_t)time->tv_nsec;
	return 0;
}

static void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

/* ---- the input ---- */

static uint8_t next(void)
{
	return s.at < s.end ? *s.at++ : 0;
}

/* Small numbers, and such as are near an end. */
static uint64_t number(void)
{
	uint8_t b = next();

	if (b < 160)
		return b;
	if (b < 180)
		return (uint64_t)(b - 159) * 1021;
	if (b < 200)
		return UINT64_MAX - (b - 180u);
	if (b < 220)
		return (uint64_t)1 << (b - 200) * 2;
	return (uint64_t)next() << 32 | (uint64_t)next() << 8 | b;
}

/* ---- the client of both ---- */

static int on_connected(void *cookie, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct party *p = cookie;
	struct party *other = p == &s.we ? &s.liar : &s.we;

	if (from->nonce_port == other->address.nonce_port && (!p->ch || p->ch == ch)) {
		p->ch = ch;
		ch->peer = p;
		return 0;
	}
	for (unsigned i = 0; p == &s.we && i < OPS; i++)
		if (!s.strangers[i]) {
			s.strangers[i] = ch;
			return 0;
		}
	return -EACCES;
}

static void on_message(
	void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	static volatile uint8_t sum;

	(void)cookie;
	must(env->kind < RWK_KIND_SERVICE && len <= RWK_SHM_SLAB_BYTES && !ch->error);
	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)payload)[i]);
}

static struct rwk_place *on_begin(void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct party *p = cookie;

	must(!p->place_bytes && len <= RWK_SHM_MESSAGE_MAX && env->kind < RWK_KIND_SERVICE && ch == p->ch);
	p->place_bytes = malloc(len);
	must(p->place_bytes != NULL);
	p->iov[0] = (struct iovec){p->place_bytes, len / 2};
	p->iov[1] = (struct iovec){p->place_bytes + len / 2, len - len / 2};
	p->place = (struct rwk_place){.iov = p->iov, .iov_count = 2};
	return &p->place;
}

static void on_end(void *cookie, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct party *p = cookie;

	(void)ch;
	must(p->place_bytes && place == &p->place && status <= 0);
	free(p->place_bytes);
	p->place_bytes = NULL;
}

static void on_failed(void *cookie, struct rwk_channel *ch, int err)
{
	struct party *p = cookie;

	must(err < 0 && ch->error == err);
	if (ch != p->ch)
		return;
	must(!p->failed);
	p->failed = true;
}

static const struct rwk_client client = {
	.connected = on_connected, .message = on_message, .begin = on_begin, .end = on_end, .failed = on_failed};

/* ---- what we do ---- */

static void on_done(struct rwk_op *op, int status)
{
	struct request *r = rwk_container_of(op, struct request, op);

	must(r->busy && status <= 0);
	r->busy = false;
	free(r->bytes);
}

static void post(struct party *from, const struct party *to, enum rwk_op_type type)
{
	struct request *r = NULL;
	size_t len = number() % BYTES, first = len ? number() % len : 0;
	int rc;

	for (unsigned i = 0; i < OPS && !r; i++)
		if (!s.request[i].busy)
			r = &s.request[i];
	if (!r || !from->ch)
		return;
	r->bytes = calloc(1, len ? len : 1);
	must(r->bytes != NULL);
	r->iov[0] = (struct iovec){r->bytes, first};
	r->iov[1] = (struct iovec){r->bytes + first, len - first};
	r->op = (struct rwk_op){.type = type, .iov = r->iov, .iov_count = 2, .length = len, .done = on_done};
	r->op.rkey = to->key[next() % REGIONS];
	if (next() & 1)
		r->op.rkey.word[next() % 4] ^= number();
	r->op.offset = next() & 1 ? number() : 0;
	r->op.env.kind = next() % RWK_KIND_SERVICE;
	r->busy = true;
	if (type == RWK_OP_SEND && len > from->ch->send_max)
		rc = -EMSGSIZE;
	else
		rc = rwk_shm_transport.post(from->ch, &r->op);
	if (rc) {
		must(r->busy && rc <= 1);
		r->busy = false;
		free(r->bytes);
	}
}

static void send_one(struct party *p)
{
	static unsigned char bytes[RWK_SHM_SLAB_BYTES];
	struct rwk_envelope env = {.kind = next() % RWK_KIND_SERVICE, .flags = next(), .tag = next()};
	size_t len = number();

	if (p->ch && len <= p->ch->send_max && len <= sizeof(bytes))
		rwk_shm_transport.send(p->ch, &env, bytes, len);
}

static void expose(struct party *p)
{
	unsigned i = next() % REGIONS;
	uint8_t how = next();
	size_t len = 1 + number() % BYTES;
	struct iovec iov[2];

	if (!p->ch || p->failed)
		return;
	if (p->region[i]) {
		rwk_shm_transport.conceal(p->ch, &p->key[i]);
		free(p->region[i]);
		p->region[i] = NULL;
		return;
	}
	p->region[i] = calloc(1, len);
	must(p->region[i] != NULL);
	iov[0] = (struct iovec){p->region[i], len / 3};
	iov[1] = (struct iovec){p->region[i] + len / 3, len - len / 3};
	if (rwk_shm_transport.expose(p->ch, iov, 1 + (how & 1), 1u + how / 2 % 3, &p->key[i])) {
		free(p->region[i]);
		p->region[i] = NULL;
	}
}

/* ---- what the liar does ---- */

static bool can_lie(void)
{
	return s.liar.ch && rwk_shm_channel(s.liar.ch)->state == RWK_SHM_OPEN;
}

/* A line of his ring, as it would stand there, but for what it says. */
static void forge(void)
{
	static const uint8_t kinds[] = {0, 1, RWK_SHM_SLABS_BACK, RWK_SHM_STAGE_ASK, RWK_SHM_READ_STOP,
		RWK_SHM_READ_REFUSED, RWK_SHM_PUSH_ASK, RWK_SHM_PIECE, RWK_SHM_GROW, RWK_SHM_ARRIVAL, RWK_SHM_BYE};
	struct rwk_shm_channel *ch = rwk_shm_channel(s.liar.ch);
	uint8_t which = next();
	uint32_t head = which < 200 ? kinds[which % sizeof(kinds)] : which, len = (uint32_t)number() & 1023;
	struct rwk_shm_line *line;
	uint64_t word[7];

	if (!ch->tx.room && (rwk_shm_tx_look(&ch->tx) == UINT32_MAX || !ch->tx.room))
		return;
	line = ch->tx.next;
	for (unsigned i = 0; i < 7; i++)
		word[i] = number();
	if (which & 1) /* a slab of his, mostly */
		word[2] = (word[2] & 0xffff) << 32 | (next() % 140);
	if (which & 2) /* a cookie of ours */
		word[0] = s.we.key[next() % REGIONS].word[0];
	if (which & 4)
		len = RWK_SHM_IN_SLAB;
	if (which & 8) { /* a message that has half the line, and perhaps another in the other half */
		len = RWK_SHM_HALF + len % (RWK_SHM_RIDER + 4);
		word[3] = word[3] << 32 | (ch->tx.stamp + next() % (RWK_SHM_RIDER + 4));
	}
	memcpy(line->more, word, sizeof(word));
	rwk_shm_tx_line(&ch->tx, len, head | (uint32_t)next() << 8);
}

/* A word anywhere, where something stands rather than nowhere. */
static void scribble(void)
{
	struct rwk_shm_channel *ch = rwk_shm_channel(s.liar.ch);
	struct rwk_shm_area *his = rwk_shm_transfer_area(ch, true), *ours = rwk_shm_transfer_area(ch, false);
	uint8_t where = next();
	_Atomic uint64_t *to = (_Atomic uint64_t *)(void *)ch->pair;
	size_t words;

	switch (where % 8) {
	case 0:
		words = RWK_SHM_PAGE / 8;
		break;
	case 1:
		to = (_Atomic uint64_t *)(void *)ch->tx.next;
		words = 8;
		break;
	case 2:
		to = (_Atomic uint64_t *)(void *)ch->inbox;
		words = RWK_SHM_PAGE / 8;
		break;
	case 3:
	case 4:
		to = (_Atomic uint64_t *)(void *)(where % 8 == 3 ? his : ours);
		words = offsetof(struct rwk_shm_area, valid) / 8 + REGIONS;
		break;
	case 5:
		to = (_Atomic uint64_t *)(void *)(where & 8 ? his->head : ours->head);
		words = 8;
		break;
	case 6:
		to = (_Atomic uint64_t *)(void *)rwk_shm_slab(&ch->slabs, next() % (2 * RWK_SHM_SLABS));
		words = RWK_SHM_SLAB_BYTES / 8;
		break;
	default:
		words = ch->pair_size / 8;
	}
	to += (size_t)number() % words;
	if (where & 16)
		*to ^= (uint64_t)1 << next() % 64;
	else if (where & 32)
		*to += number();
	else
		*to = number();
}

/* ---- the stranger ---- */

/* A segment that is right but for a word of its first page; perhaps not sealed, or of another size. */
static int segment(bool inbox)
{
	size_t size = inbox ? sizeof(struct rwk_shm_inbox) : rwk_shm_pair_size(RWK_SHM_RING_MIN);
	uint8_t how = next();
	struct rwk_shm_pair_header h = {.magic = RWK_SHM_PAIR_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.ring_lines = RWK_SHM_RING_MIN,
		.slabs = RWK_SHM_SLABS,
		.slab_bytes = RWK_SHM_SLAB_BYTES,
		.slab_stride = RWK_SHM_SLAB_STRIDE,
		.transfer_bytes = RWK_SHM_TRANSFER_BYTES,
		.size = size,
		.nonce_port = {7ull << 16 | s.stranger_number, s.we.address.nonce_port}};
	struct rwk_shm_inbox i = {.magic = RWK_SHM_INBOX_MAGIC, .layout = RWK_SHM_LAYOUT_VERSION};
	uint64_t word = number();
	int fd;

	if (how & 1)
		size += number() % (1 << 20);
	fd = how & 2 ? memfd_create("stranger", MFD_CLOEXEC) : rwk_shm_segment_make("stranger", size);
	must(fd >= 0);
	if (how & 2)
		must(!ftruncate(fd, (off_t)size));
	must(pwrite(fd, inbox ? (void *)&i : (void *)&h, inbox ? 16 : sizeof(h), 0) > 0);
	if (how & 4)
		must(pwrite(fd, &word, sizeof(word), (off_t)(8 * (next() % 9))) > 0);
	return fd;
}

static void note(void)
{
	uint8_t how = next(), kind = next();
	struct rwk_shm_note n = {.magic = RWK_SHM_NOTE_MAGIC,
		.layout = RWK_SHM_LAYOUT_VERSION,
		.type = kind % 6,
		.from = s.we.address,
		.to = s.we.address.nonce_port,
		.contact = 1 + (kind >> 6),
		.to_contact = how >> 6};
	int fd[2];
	unsigned fds = how % 3;

	n.from.nonce_port = (how & 4 ? UINT64_MAX << 20 : 7ull << 16) | s.stranger_number;
	for (unsigned i = 0; i < (how >> 3 & 3); i++)
		((uint8_t *)&n)[next() % sizeof(n)] ^= next();
	for (unsigned i = 0; i < fds; i++)
		fd[i] = segment(i);
	rwk_shm_note_send(s.stranger, rwk_address_port(&s.we.address), &n, fd, fds);
	for (unsigned i = 0; i < fds; i++)
		close(fd[i]);
}

/* ---- from beginning to end ---- */

static void open_party(struct party *p)
{
	struct rwk_port_attr attr = {.address = {.version_srq = RWK_ADDR_VERSION << 24, .job = 7, .node = 5}};

	attr.address.ip[10] = attr.address.ip[11] = 0xff;
	attr.address.ip[12] = 127;
	attr.address.ip[15] = 1;
	must(!rwk_shm_transport.open(&attr, &client, p, &p->port));
	p->address = attr.address;
}

static void turn(struct party *p)
{
	must(rwk_shm_transport.progress(p->port) >= 0);
}

static void close_party(struct party *p)
{
	rwk_shm_transport.close(p->port);
	must(!p->place_bytes);
	for (unsigned i = 0; i < REGIONS; i++)
		free(p->region[i]);
}

static void step(uint8_t what)
{
	struct party *p = what & 0x80 ? &s.liar : &s.we;

	switch (what % 16) {
	case 0:
	case 1:
	case 2:
		turn(p);
		break;
	case 3:
		send_one(p);
		break;
	case 4:
	case 5:
	case 6:
		post(p, p == &s.we ? &s.liar : &s.we, what % 16 - 4);
		break;
	case 7:
		expose(p);
		break;
	case 8:
		if (!rwk_shm_transport.arm(p->port) && what & 0x40)
			s.now += 1000 * TICK;
		break;
	case 9:
		note();
		break;
	case 10:
		s.vm = next() % 12;
		break;
	case 11:
	case 12:
		if (can_lie())
			scribble();
		break;
	default:
		if (can_lie())
			forge();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	memset(&s, 0, sizeof(s));
	s.at = bytes;
	s.end = bytes + len;
	if (!rwk_params.eager_max) {
		rwk_log_set_sink(no_log);
		rwk_param_load();
	}
	rwk_params.cma = next() % 3;
	open_party(&s.we);
	open_party(&s.liar);
	s.stranger = rwk_shm_note_socket();
	must(s.stranger >= 0 && !rwk_shm_note_bind(s.stranger, &s.stranger_number));
	s.stranger_name = rwk_shm_note_name(7ull << 16 | s.stranger_number);
	must(s.stranger_name >= 0);
	must(!rwk_shm_transport.connect(s.we.port, &s.liar.address, &s.we, &s.we.ch));
	if (next() & 15) /* mostly they have met */
		while (rwk_shm_channel(s.we.ch)->state != RWK_SHM_OPEN) {
			turn(&s.we);
			turn(&s.liar);
		}
	for (unsigned i = 0; i < STEPS && s.at < s.end; i++)
		step(next());
	for (unsigned i = 0; i < TURNS; i++)
		turn(i & 1 ? &s.we : &s.liar);
	close(s.stranger);
	close(s.stranger_name);
	close_party(&s.we);
	close_party(&s.liar);
	for (unsigned i = 0; i < OPS; i++)
		must(!s.request[i].busy);
	for (unsigned i = 0; i < MAPPINGS; i++)
		must(!s.mapping[i].at);
	return 0;
}
