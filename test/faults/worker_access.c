/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker's one-sided traffic. Each rank has a region that the others reach: a part that stays as it is, a word for
 * each peer, and a slot for each. Towards each peer there are under way a write into our slot there, which is read back
 * and compared, a fetching addition to our word there, of which each old value is known, and a read of what stays. An
 * error completion means that the peer has died: what is under way with it must end, and after that a further write and
 * a further read must fail. Only then is it "gone".
 *
 * With MIX_REGIONS each rank closes its region again and again and has another with the same key in the next moment,
 * while accesses are under way. Then they may be refused, and what is in slots and words is not known; but the memory
 * of a region that was closed is touched by nobody.
 *
 * With MIX_REACH there are only reads and writes of a length that the target's process need not run for, if the
 * provider has a way; each 16 of them are told.
 */
#include "worker.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum kind { WRITE, BACK, ADD, READ, KINDS };

/* The region: what stays, words, slots. */
enum { REACH_LEAST = 1025, REACH_TOLD = 16 }; /* bytes, as shorter accesses stay in order with messages; accesses */
enum { PART = 128 << 10, WORDS = MAX_RANKS * 8, CLOSED = 0x5a, REGION_KEY = 77 };

struct access {
	struct fi_context2 context; /* first: what a completion points at */
	enum kind kind;
	int peer;
	bool busy;
	uint64_t seq, at;
	size_t len;
	char *buf;
};

enum life { ALIVE, FAILING, PROBED, GONE };

struct peer {
	struct access accesses[KINDS]; /* BACK is the write's other half: the two take turns */
	uint64_t writes, adds, reads, ended;
	bool read_back; /* what was written last is to be compared */
	enum life life;
	int busy, failed, error, late;
};

static struct peer peers[MAX_RANKS];
static struct fabric *fab;
static const struct options *opt;
static struct fid_mr *mr;
static char *memory[2];
static unsigned turns; /* of regions; memory[turns & 1] is reached */
static bool stop;
static uint64_t count, bytes;

static size_t region_size(void)
{
	return PART + WORDS + (size_t)opt->ranks * PART;
}

static uint64_t slot_at(void)
{
	return PART + WORDS + (uint64_t)opt->rank * PART;
}

/* What stays of a rank's region, 8 bytes at an offset. */
static uint64_t constant(int rank, uint64_t at)
{
	return (at + 8 + (uint64_t)rank * PART) * 0x9e3779b97f4a7c15ULL;
}

static bool died(int error)
{
	return error == FI_ECONNRESET;
}

static bool refused(int error)
{
	return error == FI_EACCES && opt->mix == MIX_REGIONS;
}

/*
 * The region.
 */

static void region_open(void)
{
	char *m = memory[turns & 1];
	int rc;

	memset(m, 0, region_size());
	for (uint64_t at = 0; at < PART; at += 8) {
		uint64_t word = constant(opt->rank, at);

		memcpy(m + at, &word, 8);
	}
	rc = fi_mr_reg(fab->domain, m, region_size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, REGION_KEY, 0, &mr, NULL);
	if (rc)
		wrong("fi_mr_reg: %s", fi_strerror(-rc));
}

/* Closes it and has another with the same key. What became of the memory of the one before? */
static void region_turn(void)
{
	const char *before = memory[~turns & 1];

	if (turns) {
		for (size_t i = 0; i < region_size(); i++) {
			if (before[i] != CLOSED)
				wrong("byte %zu of a region that was closed has been written", i);
		}
	}
	if (fi_close(&mr->fid))
		wrong("a region cannot be closed");
	memset(memory[turns & 1], CLOSED, region_size());
	turns++;
	region_open();
}

/*
 * Accesses.
 */

static void failed(struct peer *p, int error)
{
	p->failed++;
	p->error = error;
	if (p->life == ALIVE)
		p->life = FAILING;
	else if (p->life == PROBED)
		p->late++;
}

static ssize_t issue(struct access *a)
{
	fi_addr_t to = fab->peers[a->peer];
	static uint64_t one = 1;

	switch (a->kind) {
	case WRITE:
		return fi_write(fab->ep, a->buf, a->len, NULL, to, a->at, REGION_KEY, &a->context);
	case ADD:
		return fi_fetch_atomic(
			fab->ep, &one, 1, NULL, a->buf, NULL, to, a->at, REGION_KEY, FI_UINT64, FI_SUM, &a->context);
	default:
		return fi_read(fab->ep, a->buf, a->len, NULL, to, a->at, REGION_KEY, &a->context);
	}
}

/* Whether it was taken, or has failed. */
static bool begin(struct access *a)
{
	struct peer *p = &peers[a->peer];
	ssize_t rc = issue(a);

	if (rc == -FI_EAGAIN)
		return false;
	if (rc && !died((int)-rc))
		wrong("access %d of rank %d: %s", a->kind, a->peer, fi_strerror((int)-rc));
	if (rc) {
		failed(p, (int)-rc);
		return true;
	}
	a->busy = true;
	p->busy++;
	return true;
}

/* Every other one is long. */
static size_t length(int from, int to, uint64_t seq)
{
	size_t len = message_size(seq & 1 ? MIX_LARGE : MIX_ALL, from, to, seq);

	if (opt->mix == MIX_REACH && len < REACH_LEAST)
		len = REACH_LEAST;
	return len < PART ? len : PART;
}

static void prepare(struct peer *p, struct access *a)
{
	switch (a->kind) {
	case WRITE:
		a->seq = p->writes;
		a->len = length(opt->rank, a->peer, a->seq);
		a->at = slot_at();
		message_fill(a->buf, a->len, opt->rank, a->peer, a->seq);
		break;
	case BACK:
		a->len = p->accesses[WRITE].len;
		a->at = slot_at();
		break;
	case ADD:
		a->len = 8;
		a->at = PART + 8 * (uint64_t)opt->rank;
		break;
	default:
		a->len = length(a->peer, opt->rank, p->reads++) & ~(size_t)7;
		a->at = p->reads * 4096 % (PART + 1 - a->len) & ~7ull;
	}
	if (a->kind != WRITE)
		memset(a->buf, 0, a->len);
}

/* Keeps one of each under way; a write and its comparison take turns. */
static void feed(struct peer *p)
{
	for (int kind = 0; kind < KINDS && p->life == ALIVE; kind++) {
		struct access *a = &p->accesses[kind];

		if (a->busy || (kind == WRITE && (stop || p->read_back || p->accesses[BACK].busy)) ||
			(kind == BACK && !p->read_back) || (kind > BACK && stop) ||
			(kind == ADD && opt->mix == MIX_REACH))
			continue;
		prepare(p, a);
		if (!begin(a))
			return;
		if (kind == BACK)
			p->read_back = false;
	}
}

static void check_constant(const struct access *a)
{
	for (size_t i = 0; i < a->len; i += 8) {
		uint64_t want = constant(a->peer, a->at + i);

		if (memcmp(a->buf + i, &want, 8))
			wrong("a read of %zu bytes of rank %d: those at %zu are not what is there", a->len, a->peer, i);
	}
}

/* With MIX_REGIONS what was written may have gone with its region. */
static void check_written(const struct peer *p, const struct access *a)
{
	if (opt->mix != MIX_REGIONS && memcmp(a->buf, p->accesses[WRITE].buf, a->len))
		wrong("a write of %zu bytes to rank %d is not there", a->len, a->peer);
}

static void check_added(struct peer *p, const struct access *a)
{
	uint64_t old;

	memcpy(&old, a->buf, 8);
	if (opt->mix != MIX_REGIONS && old != p->adds)
		wrong("addition %llu at rank %d finds %llu", (unsigned long long)p->adds, a->peer,
			(unsigned long long)old);
	p->adds++;
}

static void completed(const struct fi_cq_tagged_entry *e)
{
	struct access *a = e->op_context;
	struct peer *p = &peers[a->peer];

	a->busy = false;
	p->busy--;
	if (p->life == PROBED)
		wrong("an access to rank %d succeeded after its death", a->peer);
	count++;
	bytes += a->len;
	if (++p->ended % REACH_TOLD == 0 && opt->mix == MIX_REACH)
		say("reached peer=%d accesses=%llu", a->peer, (unsigned long long)p->ended);
	switch (a->kind) {
	case WRITE:
		p->writes++;
		p->read_back = true;
		break;
	case BACK:
		check_written(p, a);
		break;
	case ADD:
		check_added(p, a);
		break;
	default:
		check_constant(a);
	}
}

static void completed_in_error(const struct fi_cq_err_entry *e)
{
	struct access *a = e->op_context;

	a->busy = false;
	peers[a->peer].busy--;
	if (refused(e->err))
		return;
	if (!died(e->err))
		wrong("access %d of rank %d: %s", a->kind, a->peer, fi_strerror(e->err));
	failed(&peers[a->peer], e->err);
}

static bool reap(void)
{
	return fabric_reap(fab, 0, completed, completed_in_error);
}

static void probe(struct access *a)
{
	a->len = 8;
	a->at = slot_at();
	while (!begin(a))
		reap();
}

/* What a dying peer still has under way must end; then a write and a read more are tried; then it is gone. */
static void bury(struct peer *p, int rank)
{
	if (p->busy)
		return;
	if (p->life == FAILING) {
		p->life = PROBED;
		probe(&p->accesses[WRITE]);
		probe(&p->accesses[READ]);
		return;
	}
	if (p->late != 2)
		wrong("of two accesses to rank %d after its death %d failed", rank, p->late);
	p->life = GONE;
	say("gone peer=%d failed=%d error=%d (%s)", rank, p->failed, p->error, fi_strerror(p->error));
}

static bool poll_accesses(void)
{
	static unsigned polls;
	bool any = reap();

	if (opt->mix == MIX_REGIONS && !stop && ++polls % 256 == 0)
		region_turn();
	for (int r = 0; r < opt->ranks; r++) {
		if (r == opt->rank)
			continue;
		if (peers[r].life == ALIVE)
			feed(&peers[r]);
		else if (peers[r].life != GONE)
			bury(&peers[r], r);
	}
	return any;
}

static char *pages(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		wrong("no memory for buffers");
	return p;
}

static void start(struct fabric *f, const struct options *o)
{
	(void)f;
	for (int r = 0; r < o->ranks; r++) {
		for (int kind = 0; kind < KINDS && r != o->rank; kind++) {
			struct access *a = &peers[r].accesses[kind];

			a->kind = (enum kind)kind;
			a->peer = r;
			a->buf = pages(PART);
		}
	}
}

static void set_up(struct fabric *f, const struct options *o)
{
	fab = f;
	opt = o;
	for (int i = 0; i < 2; i++)
		memory[i] = pages(region_size());
	region_open();
}

static void stop_accesses(void)
{
	stop = true;
}

static bool done(void)
{
	for (int r = 0; r < opt->ranks; r++) {
		struct peer *p = &peers[r];

		if (r != opt->rank && p->life != GONE && (p->life != ALIVE || p->busy || p->read_back))
			return false;
	}
	return true;
}

static uint64_t counted(void)
{
	return count;
}

static uint64_t moved(void)
{
	return bytes;
}

static void take_down(void)
{
	if (fi_close(&mr->fid))
		wrong("a region cannot be closed");
}

const struct traffic access_traffic = {
	.caps = FI_RMA | FI_ATOMIC,
	.set_up = set_up,
	.start = start,
	.poll = poll_accesses,
	.stop = stop_accesses,
	.done = done,
	.count = counted,
	.bytes = moved,
	.take_down = take_down,
};
