/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfer_pair.h"

#include "base/shared.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct rwk_shm_channel {
	struct rwk_channel base; /* first, as in the service */
	struct tp_side *mine, *theirs;
	int pidfd;
	void *transfers;
	const char *wrong;
	bool behind;
};

struct rwk_port {
	void *transfers;
};

static struct rwk_port port;

int rwk_shm_control(struct rwk_shm_channel *ch, enum rwk_shm_control kind, const void *body, size_t len)
{
	uint64_t n = ch->mine->posted;

	if (ch->base.error)
		return ch->base.error;
	if (n - ch->theirs->taken >= TP_RECORDS)
		return -ENOMEM;
	ch->mine->record[n % TP_RECORDS].kind = kind;
	ch->mine->record[n % TP_RECORDS].len = (uint32_t)len;
	memcpy(ch->mine->record[n % TP_RECORDS].body, body, len);
	atomic_store_explicit(&ch->mine->posted, n + 1, memory_order_release);
	return 0;
}

void *rwk_shm_transfer_area(struct rwk_shm_channel *ch, bool mine)
{
	return mine ? ch->mine->area : ch->theirs->area;
}

bool rwk_shm_here(const struct rwk_shm_channel *ch)
{
	(void)ch;
	return true;
}

bool rwk_shm_peer_polls(const struct rwk_shm_channel *ch)
{
	return !ch->theirs->word[15];
}

pid_t rwk_shm_peer_pid(const struct rwk_shm_channel *ch)
{
	return ch->theirs->pid;
}

bool rwk_shm_peer_alive(struct rwk_shm_channel *ch)
{
	struct pollfd p = {.fd = ch->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

void **rwk_shm_transfer_state(struct rwk_shm_channel *ch)
{
	return &ch->transfers;
}

void **rwk_shm_transfer_port_state(struct rwk_port *p)
{
	return &p->transfers;
}

void rwk_shm_protocol_error(struct rwk_shm_channel *ch, const char *what)
{
	if (!ch->wrong)
		ch->wrong = what;
}

size_t tp_memory;

struct tp_shared *tp_shared_new(void)
{
	int fd = rwk_shared_make("test", tp_memory ? tp_memory : sizeof(struct tp_shared));
	struct tp_shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (s == MAP_FAILED)
		abort();
	close(fd);
	return s;
}

void tp_shared_free(struct tp_shared *s)
{
	munmap(s, sizeof(*s));
}

struct rwk_shm_channel *tp_open(struct tp_shared *s, int side)
{
	struct rwk_shm_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		abort();
	ch->base.port = &port;
	ch->base.direct_min = rwk_shm_direct_least();
	ch->mine = &s->side[side];
	ch->theirs = &s->side[!side];
	ch->mine->pid = getpid();
	atomic_store(&ch->mine->word[0], 1);
	while (!atomic_load(&ch->theirs->word[0]))
		sched_yield();
	ch->pidfd = (int)syscall(SYS_pidfd_open, ch->theirs->pid, 0);
	if (ch->pidfd < 0)
		abort();
	return ch;
}

static void stop(struct rwk_shm_channel *ch, int status)
{
	if (!ch->base.error)
		ch->base.error = status;
	rwk_shm_transfer_stop(ch, status);
}

void tp_close(struct rwk_shm_channel *ch, int status)
{
	stop(ch, status);
	rwk_shm_transfer_port_stop(&port);
	close(ch->pidfd);
	free(ch);
}

void tp_tell(struct rwk_shm_channel *ch, unsigned rank)
{
	stop(ch, -ECANCELED);
	rwk_shm_transfer_summary(&port, rank);
}

int tp_progress(struct rwk_shm_channel *ch)
{
	char body[RWK_SHM_CONTROL_MAX];
	uint64_t n = ch->mine->taken;
	int did = 0;

	while (!ch->base.error && n < atomic_load_explicit(&ch->theirs->posted, memory_order_acquire)) {
		uint32_t kind = ch->theirs->record[n % TP_RECORDS].kind, len = ch->theirs->record[n % TP_RECORDS].len;

		if (len > sizeof(body))
			abort();
		memcpy(body, ch->theirs->record[n % TP_RECORDS].body, len);
		atomic_store_explicit(&ch->mine->taken, ++n, memory_order_release);
		rwk_shm_transfer_control(ch, kind, body, len);
		did++;
	}
	did += rwk_shm_transfer_progress(&port);
	if (ch->wrong && !ch->base.error)
		stop(ch, -EPROTO);
	return did;
}

/* As the port does when it learns of the peer's death. */
static void tp_check_peer(struct rwk_shm_channel *ch)
{
	if (!ch->base.error && !rwk_shm_peer_alive(ch))
		stop(ch, -ECONNRESET);
}

const char *tp_protocol_error(struct rwk_shm_channel *ch)
{
	return ch->wrong;
}

bool tp_busy(const struct rwk_shm_channel *ch)
{
	return rwk_shm_transfer_busy(ch->base.port->transfers);
}

struct rwk_shm_transfer_counts *tp_counts(struct rwk_shm_channel *ch)
{
	return &rwk_shm_transfers_of(ch)->port->counts;
}

void tp_force(struct rwk_shm_channel *ch, int method)
{
	rwk_shm_transfers_of(ch)->force = method < 0 ? 0 : 1u << method;
}

void tp_behind(struct rwk_shm_channel *ch, bool behind)
{
	ch->behind = behind;
}

struct tp_side *tp_side(struct rwk_shm_channel *ch, bool mine)
{
	return mine ? ch->mine : ch->theirs;
}

void tp_say(struct rwk_shm_channel *ch, unsigned word, uint64_t value)
{
	atomic_store_explicit(&ch->mine->word[word], value, memory_order_release);
}

uint64_t tp_heard(struct rwk_shm_channel *ch, unsigned word)
{
	return atomic_load_explicit(&ch->theirs->word[word], memory_order_acquire);
}

static bool late(uint64_t end)
{
	return rwk_clock_now() > end;
}

bool tp_wait_deaf(struct rwk_shm_channel *ch, unsigned word, uint64_t value)
{
	uint64_t end = rwk_clock_now() + 20000000000u;

	while (tp_heard(ch, word) < value && rwk_clock_now() < end && rwk_shm_peer_alive(ch))
		sched_yield();
	return tp_heard(ch, word) >= value;
}

bool tp_wait(struct rwk_shm_channel *ch, unsigned word, uint64_t value)
{
	uint64_t end = rwk_clock_now() + 10000000000u;

	for (unsigned n = 1; tp_heard(ch, word) < value; n++) {
		if (tp_progress(ch))
			continue;
		rwk_cpu_relax();
		if (n % 1024)
			continue;
		sched_yield();
		if (late(end) || !rwk_shm_peer_alive(ch))
			return tp_heard(ch, word) >= value;
	}
	return true;
}

static void op_done(struct rwk_op *op, int status)
{
	rwk_container_of(op, struct tp_op, op)->status = status;
}

static int start(struct rwk_shm_channel *ch, struct tp_op *o, enum rwk_op_type type, const struct rwk_rkey *key,
	uint64_t offset, const struct iovec *iov, uint32_t count, size_t length)
{
	int rc;

	memset(o, 0, sizeof(*o));
	o->op.type = type;
	o->op.behind = ch->behind;
	o->op.rkey = *key;
	o->op.offset = offset;
	o->op.iov = iov;
	o->op.iov_count = count;
	o->op.length = length;
	o->op.done = op_done;
	o->status = 1;
	rc = rwk_shm_transfer_post(ch, &o->op);
	if (rc == 1)
		o->status = 0;
	return rc < 0 ? rc : 0;
}

int tp_read(struct rwk_shm_channel *ch, struct tp_op *o, const struct rwk_rkey *key, uint64_t offset,
	const struct iovec *iov, uint32_t count, size_t length)
{
	return start(ch, o, RWK_OP_READ, key, offset, iov, count, length);
}

int tp_write(struct rwk_shm_channel *ch, struct tp_op *o, const struct rwk_rkey *key, uint64_t offset,
	const struct iovec *iov, uint32_t count, size_t length)
{
	return start(ch, o, RWK_OP_WRITE, key, offset, iov, count, length);
}

int tp_finish(struct rwk_shm_channel *ch, struct tp_op *o, unsigned ms)
{
	uint64_t end = rwk_clock_now() + ms * 1000000ull;

	for (unsigned n = 1; o->status == 1; n++) {
		if (tp_progress(ch))
			continue;
		rwk_cpu_relax();
		if (n % 1024)
			continue;
		sched_yield();
		tp_check_peer(ch);
		if (late(end))
			break;
	}
	return o->status;
}
