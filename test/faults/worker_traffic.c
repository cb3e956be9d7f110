/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker's traffic. Towards each peer WINDOW sends and WINDOW directed receives are under way, numbered, so that
 * some messages are expected and some are not. An error completion means that the peer has died: what is under way
 * with it must end too, and after that a further receive and a further send must fail as well. (A short send may still
 * complete once or twice: it says that the buffer is free, not that anyone has read it. It is tried again.) Only then
 * is the peer "gone".
 */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum kind { SEND, RECEIVE, KINDS };

struct op {
	struct fi_context2 context; /* first: what a completion points at */
	enum kind kind;
	int peer;
	bool busy, last, cancelled;
	uint64_t seq;
	char *buf;
};

enum life { ALIVE, FAILING, PROBED, GONE };

struct peer {
	struct op ops[KINDS][WINDOW];
	uint64_t next[KINDS];
	bool sent_last, seen_last;
	enum life life;
	int busy, failed, error;
	bool late[KINDS]; /* what was tried after the death has failed */
};

/* tag: 16 bits sender, 1 bit "the last one", the rest the number */
static const uint64_t LAST = 1ULL << 47;

/* The number of what is tried after a death: of a message that the dead rank cannot have sent. */
static const uint64_t NEVER_SENT = 1ULL << 40;

static struct peer peers[MAX_RANKS];
static struct fabric *fab;
static const struct options *opt;
static bool stop;
static uint64_t messages, bytes;

static uint64_t counted(void)
{
	return messages;
}

static uint64_t moved(void)
{
	return bytes;
}

static uint64_t hash(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
	return x ^ (x >> 32);
}

static uint64_t seed_of(int from, int to, uint64_t seq)
{
	return hash((uint64_t)from << 56 ^ (uint64_t)to << 48 ^ seq ^ 1);
}

size_t message_size(enum mix mix, int from, int to, uint64_t seq)
{
	static const size_t sizes[] = {0, 1, 8, 40, 41, 104, 200, 1000, 4096, 8192, 8193, 16384, 30000, 65536, 65537,
		100000, 262144, 1 << 20, 3 << 20, MOST};
	uint64_t dice = seed_of(from, to, seq) >> 7;

	switch (mix) {
	case MIX_SMALL:
		return sizes[dice % 9];
	case MIX_LARGE:
		return sizes[14 + dice % 6];
	default:
		return sizes[dice % 16 ? (dice >> 4) % 14 : 14 + (dice >> 4) % 6];
	}
}

void message_fill(void *buf, size_t len, int from, int to, uint64_t seq)
{
	uint64_t key = seed_of(from, to, seq), word;

	for (size_t i = 0; i < len; i += 8) {
		word = (key + i) * 0x9e3779b97f4a7c15ULL;
		memcpy((char *)buf + i, &word, len - i < 8 ? len - i : 8);
	}
}

/* Exits with a complaint unless `len` bytes at `buf` are that message. */
static void message_check(const void *buf, size_t len, enum mix mix, int from, int to, uint64_t seq)
{
	uint64_t key = seed_of(from, to, seq), word;
	size_t expected = message_size(mix, from, to, seq);

	if (len != expected)
		wrong("message %llu of rank %d has %zu bytes, should have %zu", (unsigned long long)seq, from, len,
			expected);
	for (size_t i = 0; i < len; i += 8) {
		word = (key + i) * 0x9e3779b97f4a7c15ULL;
		if (memcmp((const char *)buf + i, &word, len - i < 8 ? len - i : 8))
			wrong("message %llu of rank %d, %zu bytes: those at %zu are not what was sent",
				(unsigned long long)seq, from, len, i);
	}
}

/* An operation towards `p` has failed: with everything that ends until it is gone, it makes the peer's death. */
static void failed(struct peer *p, enum kind kind, int error)
{
	p->failed++;
	p->error = error;
	if (p->life == ALIVE)
		p->life = FAILING;
	else if (p->life == PROBED)
		p->late[kind] = true;
}

/* Starts an operation; tries later if the provider says so. Returns whether it was taken or has failed. */
static bool begin(struct op *op)
{
	struct peer *p = &peers[op->peer];
	fi_addr_t to = fab->peers[op->peer];
	uint64_t from = (uint64_t)(op->kind == SEND ? opt->rank : op->peer) << 48;
	size_t len = MOST;
	ssize_t rc;

	if (op->kind == SEND) {
		len = op->last ? 0 : message_size(opt->mix, opt->rank, op->peer, op->seq);
		rc = fi_tsend(fab->ep, op->buf, len, NULL, to, from | op->seq | (op->last ? LAST : 0), &op->context);
	} else {
		rc = fi_trecv(fab->ep, op->buf, len, NULL, to, from | op->seq, LAST, &op->context);
	}
	if (rc == -FI_EAGAIN)
		return false;
	if (rc) {
		failed(p, op->kind, (int)-rc);
		return true;
	}
	op->busy = true;
	p->busy++;
	return true;
}

static bool begin_next(struct op *op)
{
	struct peer *p = &peers[op->peer];

	op->seq = p->next[op->kind];
	op->last = op->kind == SEND && stop;
	op->cancelled = false;
	if (op->kind == SEND && !op->last)
		message_fill(
			op->buf, message_size(opt->mix, opt->rank, op->peer, op->seq), opt->rank, op->peer, op->seq);
	if (!begin(op))
		return false;
	p->next[op->kind]++;
	if (op->last)
		p->sent_last = true;
	return true;
}

/* Keeps the windows towards a living peer full. */
static void feed(struct peer *p)
{
	for (int kind = 0; kind < KINDS; kind++) {
		for (int i = 0; i < WINDOW && p->life == ALIVE; i++) {
			bool over = kind == SEND ? p->sent_last || (opt->mix == MIX_WAIT && !stop) : p->seen_last;

			if (!p->ops[kind][i].busy && !over && !begin_next(&p->ops[kind][i]))
				break;
		}
	}
}

static void cancel_rest(struct peer *p)
{
	for (int i = 0; i < WINDOW; i++) {
		struct op *op = &p->ops[RECEIVE][i];

		if (op->busy) {
			op->cancelled = true;
			fi_cancel(&fab->ep->fid, &op->context);
		}
	}
}

static void completed(const struct fi_cq_tagged_entry *e)
{
	struct op *op = e->op_context;
	struct peer *p = &peers[op->peer];

	op->busy = false;
	p->busy--;
	if (op->kind == SEND)
		return;
	if ((e->tag & ~LAST) != ((uint64_t)op->peer << 48 | op->seq))
		wrong("a receive for message %llu of rank %d got tag %llx", (unsigned long long)op->seq, op->peer,
			(unsigned long long)e->tag);
	if (e->tag & LAST) {
		p->seen_last = true;
		cancel_rest(p);
		return;
	}
	message_check(op->buf, e->len, opt->mix, op->peer, opt->rank, op->seq);
	messages++;
	bytes += e->len;
}

static void completed_in_error(const struct fi_cq_err_entry *e)
{
	struct op *op = e->op_context;

	op->busy = false;
	peers[op->peer].busy--;
	if (e->err == FI_ECANCELED && op->cancelled)
		return;
	if (e->err == FI_ETRUNC || e->err == FI_ECANCELED)
		wrong("operation %llu with rank %d: %s", (unsigned long long)op->seq, op->peer, fi_strerror(e->err));
	failed(&peers[op->peer], op->kind, e->err);
}

static bool reap(void)
{
	return fabric_reap(fab, opt->sread ? 20 : 0, completed, completed_in_error);
}

static void probe(struct op *op)
{
	op->last = false;
	op->seq = NEVER_SENT;
	while (!begin(op))
		reap();
}

/* What a dying peer still has under way must end; then one more send and receive are tried; then it is gone. */
static void bury(struct peer *p, int rank)
{
	if (p->busy)
		return;
	if (p->life == FAILING) {
		p->life = PROBED;
		probe(&p->ops[RECEIVE][0]);
		probe(&p->ops[SEND][0]);
		return;
	}
	if (!p->late[RECEIVE])
		wrong("a receive for what rank %d has never sent succeeded after its death", rank);
	if (!p->late[SEND]) {
		probe(&p->ops[SEND][0]);
		return;
	}
	p->life = GONE;
	say("gone peer=%d failed=%d error=%d (%s)", rank, p->failed, p->error, fi_strerror(p->error));
}

static bool poll_messages(void)
{
	bool any = reap();

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

static void start(struct fabric *f, const struct options *o)
{
	fab = f;
	opt = o;
	for (int r = 0; r < o->ranks; r++) {
		for (int kind = 0; kind < KINDS && r != o->rank; kind++) {
			for (int i = 0; i < WINDOW; i++) {
				struct op *op = &peers[r].ops[kind][i];

				/* not from malloc: pages that were never touched cost nothing */
				op->buf = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
				if (op->buf == MAP_FAILED)
					wrong("no memory for buffers");
				op->kind = (enum kind)kind;
				op->peer = r;
			}
		}
	}
}

static void stop_messages(void)
{
	stop = true;
}

static bool done(void)
{
	for (int r = 0; r < opt->ranks; r++) {
		struct peer *p = &peers[r];

		if (r == opt->rank || p->life == GONE)
			continue;
		if (p->life != ALIVE || !p->sent_last || !p->seen_last || p->busy)
			return false;
	}
	return true;
}

const struct traffic message_traffic = {
	.start = start,
	.poll = poll_messages,
	.stop = stop_messages,
	.done = done,
	.count = counted,
	.bytes = moved,
};
