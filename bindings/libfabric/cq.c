/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/cq.h"

#include "base/log.h"
#include "bindings/libfabric/peer.h"
#include "bindings/libfabric/wait_set.h"

#include <stdlib.h>

#define RING_MIN    64
#define RING_MAX    ((size_t)1 << 16) /* entries that a program's wish may reserve; the ring may grow beyond */
#define DRIVEN_EACH 8u                /* reads that find something */
#define UNMAPPED    65536u            /* bytes that no pointer points to, unless root has lowered vm.mmap_min_addr */

static struct rwk_fi_cq *cq_of(struct fid_cq *fid)
{
	return rwk_container_of(fid, struct rwk_fi_cq, fid);
}

bool rwk_fi_cq_grow(struct rwk_fi_cq *cq)
{
	struct rwk_completions *q = &cq->done;
	size_t old = q->mask + 1;
	struct rwk_completion *ring = aligned_alloc(RWK_CACHE_LINE, 2 * old * sizeof(*ring));

	if (!ring) {
		if (!cq->overrun)
			rwk_warn("completion queue: no memory for more than %zu entries; completions are lost", old);
		cq->overrun = true;
		rwk_fi_wait_arrived(&cq->wait);
		return false;
	}
	for (uint64_t i = q->head; i != q->tail; i++)
		ring[i & (2 * old - 1)] = q->ring[i & q->mask];
	free(q->ring);
	q->ring = ring;
	q->mask = 2 * old - 1;
	return true;
}

static inline struct rwk_completion *first_entry(const struct rwk_fi_cq *cq)
{
	return &cq->done.ring[cq->done.head & cq->done.mask];
}

static inline bool has_error(const struct rwk_fi_cq *cq)
{
	return !rwk_fi_cq_is_empty(cq) && first_entry(cq)->status;
}

_Static_assert(offsetof(struct fi_cq_tagged_entry, flags) == offsetof(struct rwk_completion, flags) &&
		       offsetof(struct fi_cq_tagged_entry, len) == offsetof(struct rwk_completion, length) &&
		       offsetof(struct fi_cq_tagged_entry, buf) == offsetof(struct rwk_completion, buffer) &&
		       offsetof(struct fi_cq_tagged_entry, data) == offsetof(struct rwk_completion, data) &&
		       offsetof(struct fi_cq_tagged_entry, tag) == offsetof(struct rwk_completion, tag),
	"an entry begins as libfabric's longest format");

/* Copies the first words of an entry; each format is a prefix of the longest. */
static inline void copy_entry(uint64_t *to, const struct rwk_completion *from, size_t words)
{
	to[0] = (uintptr_t)from->context;
	if (words < 3)
		return;
	to[1] = from->flags;
	to[2] = from->length;
	if (words < 5)
		return;
	to[3] = (uintptr_t)from->buffer;
	to[4] = from->data;
	if (words == 6)
		to[5] = from->tag;
}

/* Some sleep until there are many entries, or an error is in front: it may be now. */
static rwk_noinline void took_beside_sleepers(struct rwk_fi_cq *cq)
{
	if (has_error(cq))
		rwk_fi_wait_ring(&cq->wait);
}

/* Copies entries of `words` words each up to the first error. */
static inline size_t take_words(struct rwk_fi_cq *cq, uint64_t *to, size_t words, size_t count, fi_addr_t *source)
{
	struct rwk_completions *q = &cq->done;
	uint64_t head = q->head;
	size_t n;

	for (n = 0; n < count && head != q->tail; n++, head++) {
		const struct rwk_completion *from = &q->ring[head & q->mask];

		if (rwk_unlikely(from->status))
			break;
		copy_entry(to, from, words);
		to += words;
		if (source)
			source[n] = from->flags & (RWK_F_RECV | RWK_F_REMOTE_WRITE) ? from->user : FI_ADDR_NOTAVAIL;
	}
	q->head = head;
	if (rwk_unlikely(cq->wait.armed))
		took_beside_sleepers(cq);
	rwk_fi_cq_open_up(cq);
	return n;
}

static size_t take(struct rwk_fi_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	return take_words(cq, buf, cq->entry_words, count, source);
}

/* Nothing was taken: because of an error entry, because completions were lost, or there is nothing (or no room: count
 * 0). */
static rwk_noinline ssize_t took_nothing(const struct rwk_fi_cq *cq)
{
	if (has_error(cq))
		return -FI_EAVAIL;
	if (cq->overrun)
		return -FI_EOVERRUN;
	return rwk_fi_cq_is_empty(cq) ? -FI_EAGAIN : 0;
}

/*
 * Are the engines to be driven before what is there is told? Where there is nothing, or nothing is wanted but that.
 * Where there is something only now and then: whoever reads one entry after the other need not wait for a look at what
 * may come, but a program that finds its own sends' entries each time must still receive. Not where an error is next, as
 * after each look for a message that has not come: nothing that comes could be told now.
 */
static inline bool is_to_drive(struct rwk_fi_cq *cq, size_t count)
{
	if (rwk_fi_cq_is_empty(cq) || rwk_unlikely(!count))
		return true;
	return ++cq->reads % DRIVEN_EACH == 0 && !has_error(cq);
}

static inline ssize_t read_from(struct rwk_fi_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	size_t n;

	if (is_to_drive(cq, count)) {
		rwk_fi_wait_progress(&cq->wait);
		if (rwk_fi_cq_is_empty(cq) && rwk_likely(!cq->overrun))
			return -FI_EAGAIN;
	}
	rwk_fi_wait_found(&cq->wait);
	/* Open MPI's format and call get code of their own. */
	n = cq->entry_words == 6 && !source ? take_words(cq, buf, 6, count, NULL) : take(cq, buf, count, source);
	return rwk_likely(n) ? (ssize_t)n : took_nothing(cq);
}

static rwk_noinline ssize_t read_locked(struct rwk_fi_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	bool tired;
	ssize_t n;

	rwk_fi_enter(&cq->lock);
	n = read_from(cq, buf, count, source);
	tired = n == -FI_EAGAIN && rwk_fi_wait_tires(&cq->wait);
	rwk_fi_leave(&cq->lock);
	if (rwk_unlikely(tired))
		rwk_fi_rest();
	return n;
}

static inline ssize_t read_alone(struct rwk_fi_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	ssize_t n = read_from(cq, buf, count, source);

	if (n == -FI_EAGAIN && rwk_unlikely(rwk_fi_wait_tires(&cq->wait)))
		rwk_fi_rest();
	return n;
}

static inline bool is_locked(const struct rwk_fi_cq *cq)
{
	return rwk_unlikely(rwk_fi_mutex_of(&cq->lock) != NULL);
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct rwk_fi_cq *cq = cq_of(fid);

	return is_locked(cq) ? read_locked(cq, buf, count, NULL) : read_alone(cq, buf, count, NULL);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	struct rwk_fi_cq *cq = cq_of(fid);

	return is_locked(cq) ? read_locked(cq, buf, count, source) : read_alone(cq, buf, count, source);
}

/* Writes an error entry in the layout of the program's API: err_data_size came with 1.5, and what came later is not
 * ours to touch. */
static void write_error(const struct rwk_fi_cq *cq, const struct rwk_completion *from, struct fi_cq_err_entry *to)
{
	to->op_context = from->context;
	to->flags = from->flags;
	to->len = from->length;
	to->buf = from->buffer;
	to->data = from->data;
	to->tag = from->tag;
	to->olen = from->overflow;
	to->err = from->status;
	to->prov_errno = from->status;
	if (FI_VERSION_LT(cq->domain->fabric->fid.api_version, FI_VERSION(1, 5)))
		to->err_data = NULL;
	else
		to->err_data_size = 0; /* a buffer that the program may have put into err_data stays its own, empty */
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct rwk_fi_cq *cq = cq_of(fid);
	ssize_t n = -FI_EAGAIN;

	(void)flags;
	rwk_fi_enter(&cq->lock);
	if (rwk_fi_cq_is_empty(cq))
		rwk_fi_wait_progress(&cq->wait); /* some programs call nothing else while they wait */
	if (has_error(cq)) {
		write_error(cq, first_entry(cq), buf);
		cq->done.head++;
		n = 1;
	}
	rwk_fi_leave(&cq->lock);
	return n;
}

/* What sread waits for. */
struct want {
	const struct rwk_fi_cq *cq;
	uint64_t entries;
};

static bool enough(const void *arg)
{
	const struct want *w = arg;
	const struct rwk_fi_cq *cq = w->cq;

	return cq->done.tail - cq->done.head >= w->entries || cq->overrun || has_error(cq);
}

/*
 * How many entries sread waits for: no more than it can give. fi_cq(3) has the condition "interpreted as a size_t
 * threshold value": to most that is the number itself in the pointer's place, to some what the pointer points to. No
 * pointer is as small as the number of entries that there is room for.
 */
static uint64_t entries_wanted(const struct rwk_fi_cq *cq, const void *cond, size_t count)
{
	size_t n = (uintptr_t)cond;

	if (!cq->threshold)
		return 1;
	if (n > count && n >= UNMAPPED)
		n = *(const size_t *)cond;
	if (n > count)
		n = count;
	return n ? n : 1;
}

static ssize_t cq_sreadfrom(
	struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source, const void *cond, int timeout)
{
	struct rwk_fi_cq *cq = cq_of(fid);
	struct want want = {cq, entries_wanted(cq, cond, count)};
	ssize_t n;
	int err;

	if (cq->wait.object == FI_WAIT_NONE) {
		rwk_warn("fi_cq_sread: the queue was opened with FI_WAIT_NONE; others can be waited for");
		return -FI_EINVAL;
	}
	rwk_fi_enter(&cq->lock);
	err = rwk_fi_wait_for(&cq->wait, &cq->lock, timeout, enough, &want);
	n = (ssize_t)take(cq, buf, count, source);
	if (!n)
		n = err ? -FI_EAGAIN : took_nothing(cq); /* so says fi_cq(3) of a signal as well as of the time-out */
	rwk_fi_leave(&cq->lock);
	return n;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct rwk_fi_cq *cq = cq_of(fid);

	if (cq->wait.object == FI_WAIT_NONE)
		return -FI_ENOSYS;
	rwk_fi_enter(&cq->lock);
	rwk_fi_wait_signal(&cq->wait);
	rwk_fi_leave(&cq->lock);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid, (void)err_data;
	return rwk_fi_strerror(prov_errno, buf, len);
}

int rwk_fi_cq_trywait(struct rwk_fi_cq *cq)
{
	int err = -FI_EAGAIN;

	rwk_fi_enter(&cq->lock);
	rwk_fi_wait_progress(&cq->wait);
	if (cq->wait.signaled)
		cq->wait.signaled = false; /* it has ended this wait */
	else if (rwk_fi_cq_is_empty(cq) && !cq->overrun)
		err = rwk_fi_wait_arm_given(&cq->wait);
	if (!err)
		rwk_fi_wait_sleeps(&cq->wait, &cq->lock);
	rwk_fi_leave(&cq->lock);
	return err;
}

bool rwk_fi_cq_look(struct rwk_fi_cq *cq, bool waits)
{
	bool found;

	rwk_fi_enter(&cq->lock);
	rwk_fi_wait_progress(&cq->wait);
	found = !rwk_fi_cq_is_empty(cq) || cq->overrun || (waits && cq->wait.signaled);
	cq->wait.signaled &= !waits;
	rwk_fi_leave(&cq->lock);
	return found;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_cq *cq = rwk_container_of(fid, struct rwk_fi_cq, fid.fid);

	return rwk_fi_wait_control(&cq->wait, &cq->lock, command, arg);
}

static int cq_close(struct fid *fid)
{
	struct rwk_fi_cq *cq = rwk_container_of(fid, struct rwk_fi_cq, fid.fid);

	if (rwk_fi_is_inherited(cq->domain->process))
		return 0;
	if (rwk_fi_busy(&cq->refs))
		return -FI_EBUSY;
	rwk_fi_wait_set_leave(cq->wait.set, fid, cq->wait.given_fd);
	rwk_fi_domain_undrive(cq->domain, &cq->wait);
	rwk_fi_enter(&cq->lock);
	rwk_fi_wait_close(&cq->wait);
	rwk_fi_leave(&cq->lock);
	rwk_fi_part(&cq->domain->groups, &cq->member);
	rwk_fi_drop(&cq->domain->refs);
	free(cq->done.ring);
	free(cq);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = cq_close,
	.bind = rwk_fi_no_bind,
	.control = cq_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_cq cq_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cq, strerror),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

/* Bytes of an entry; 0: no such format. Not said: the shortest. */
static size_t format_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	}
	return 0;
}

_Static_assert(offsetof(struct fi_cq_tagged_entry, tag) == sizeof(struct fi_cq_data_entry) &&
		       offsetof(struct fi_cq_data_entry, buf) == sizeof(struct fi_cq_msg_entry) &&
		       offsetof(struct fi_cq_msg_entry, flags) == sizeof(struct fi_cq_entry),
	"each format is a prefix of the next");

static size_t ring_size(size_t wanted)
{
	size_t size = RING_MIN;

	while (size < wanted && size < RING_MAX)
		size *= 2;
	return size;
}

int rwk_fi_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr, struct fid_cq **fid, void *context)
{
	struct fi_cq_attr defaults = {0};
	struct rwk_fi_cq *cq;
	size_t size;
	int err;

	if (!attr)
		attr = &defaults;
	size = format_size(attr->format);
	if (!size || attr->flags & ~(uint64_t)(FI_AFFINITY | FI_PEER)) {
		rwk_warn("fi_cq_open: format %d, flags %#llx; there are the formats 1 to 4, FI_AFFINITY and FI_PEER",
			attr->format, (unsigned long long)attr->flags);
		return size ? -FI_EBADFLAGS : -FI_ENOSYS;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->entry_words = size / sizeof(uint64_t);
	size = ring_size(attr->size);
	cq->done.mask = size - 1;
	err = -FI_ENOMEM;
	cq->done.ring = aligned_alloc(RWK_CACHE_LINE, size * sizeof(*cq->done.ring));
	if (!cq->done.ring)
		goto free_cq;
	err = rwk_fi_wait_open_in(&cq->wait, attr->wait_obj, attr->wait_set,
		rwk_fi_domain_of(domain_fid), "fi_cq_open");
	if (err)
		goto free_ring;
	err = rwk_fi_domain_drive(rwk_fi_domain_of(domain_fid), &cq->wait);
	if (err)
		goto close_wait;
	err = rwk_fi_domain_join(rwk_fi_domain_of(domain_fid), &cq->member, &cq->lock);
	if (err)
		goto undrive;
	cq->wait.done = &cq->done;
	rwk_fi_cq_open_up(cq);
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->domain = rwk_fi_domain_of(domain_fid);
	rwk_fi_hold(&cq->domain->refs);
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = (struct fi_ops *)&fid_ops;
	cq->fid.ops = (struct fi_ops_cq *)&cq_ops;
	err = attr->flags & FI_PEER ? rwk_fi_peer_cq_import(cq, context) : 0;
	if (!err)
		err = rwk_fi_wait_set_enter(cq->wait.set, &cq->fid.fid, cq->wait.given_fd);
	if (err) {
		cq_close(&cq->fid.fid);
		return err;
	}
	*fid = &cq->fid;
	return 0;

undrive:
	rwk_fi_domain_undrive(rwk_fi_domain_of(domain_fid), &cq->wait);
close_wait:
	rwk_fi_wait_close(&cq->wait);
free_ring:
	free(cq->done.ring);
free_cq:
	free(cq);
	return err;
}
