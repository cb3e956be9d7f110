/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage: the exposer copies into blocks of its transfer area, the reader out of them, both at once. The blocks are
 * few, so that they stay in the caches, and pass from hand to hand like the slots of a ring: block k of the area's
 * history sits in place k % RWK_SHM_BLOCKS and carries the number k + 1 once it is full; the reader publishes how many
 * it has given back.
 *
 * Each side writes its own area alone. Of the other's area every word is read once, checked, then used: a reader takes
 * a block only if it continues a read of its own within that read's bounds; a block for a read that is over is given
 * back unseen.
 */
#include "shm/transfer_area.h"

#include "base/shared.h"

#include <errno.h>

#define BLOCK_LEAST ((size_t)8 << 10)
#define PAGE        4096u

/* A read of the peer's that waits for blocks. */
struct serve {
	struct rwk_list link;
	struct rwk_shm_region *region;
	uint64_t cookie;
	uint64_t offset, end; /* in the region: the next byte, and where to stop */
	size_t block;         /* bytes a block */
	uint32_t id;
};

void rwk_shm_stage_open(struct rwk_shm_transfers *t)
{
	rwk_list_init(&t->serves);
	rwk_pool_init(&t->serve_pool, sizeof(struct serve), 8, RWK_SHM_SERVES);
}

void rwk_shm_stage_close(struct rwk_shm_transfers *t)
{
	rwk_list_init(&t->serves);
	rwk_pool_close(&t->serve_pool);
}

/*
 * The reader.
 */

int rwk_shm_stage_ask(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	struct rwk_shm_ask ask = {
		.cookie = op->rkey.word[0],
		.offset = op->offset + op->at,
		.length = r->back - op->at,
		.id = r->id,
	};
	int rc = rwk_shm_tell(t, RWK_SHM_STAGE_ASK, &ask, sizeof(ask));

	if (rc)
		return rc;
	if (!t->asked++)
		t->last_news = rwk_clock_now();
	r->method = RWK_SHM_STAGE;
	r->asked = true;
	r->asked_end = r->back;
	return 0;
}

void rwk_shm_stage_leave(struct rwk_shm_transfers *t, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	struct rwk_shm_verdict stop = {.id = r->id};

	if (r->method == RWK_SHM_STAGE && r->begun)
		t->asked--;
	if (r->asked && op->at < r->asked_end)
		rwk_shm_tell(t, RWK_SHM_READ_STOP, &stop, sizeof(stop)); /* if it is lost, blocks are staged in vain */
	r->asked = false;
}

/*
 * Takes what a full block brings. Returns the read that it belongs to; NULL if that is over already (the peer did not
 * know yet), or with *bad set if the block does not continue its read as it should.
 */
static struct rwk_op *take_block(
	struct rwk_shm_transfers *t, const struct rwk_shm_block_head *head, const char *bytes, bool *bad)
{
	uint32_t id = *(const volatile uint32_t *)&head->id;
	uint32_t length = *(const volatile uint32_t *)&head->length;
	uint64_t offset = *(const volatile uint64_t *)&head->offset;
	struct rwk_op *op = rwk_shm_read_find(t, id);
	struct rwk_shm_read *r = op ? rwk_shm_read_of(op) : NULL;

	if (!r || !r->asked)
		return NULL;
	if (!length || length > RWK_SHM_BLOCK_BYTES || offset != op->offset + op->at ||
		length > r->asked_end - op->at) {
		*bad = true;
		return NULL;
	}
	if (length > r->back - op->at)
		length = (uint32_t)(r->back - op->at); /* the rest has been pulled */
	rwk_iov_scatter(op->iov, op->iov_count, op->at, bytes, length);
	op->at += length;
	t->port->counts.unstaged += length;
	return op;
}

int rwk_shm_stage_read(struct rwk_shm_transfers *t)
{
	const struct rwk_shm_area *theirs = rwk_shm_area_of(t, false);
	struct rwk_shm_area *mine = rwk_shm_area_of(t, true);
	bool bad = false;
	int n = 0;

	while (n < (int)RWK_SHM_BLOCKS && !rwk_list_empty(&t->reads)) {
		uint64_t place = t->blocks_read % RWK_SHM_BLOCKS;
		struct rwk_op *op;

		if (atomic_load_explicit(&theirs->head[place].number, memory_order_acquire) != t->blocks_read + 1)
			break;
		op = take_block(t, &theirs->head[place], theirs->bytes + place * RWK_SHM_BLOCK_BYTES, &bad);
		if (bad) {
			rwk_shm_transfers_broken(t, "a staged block that continues no read");
			break;
		}
		n++;
		t->blocks_read++;
		atomic_store_explicit(&mine->given_back.word, t->blocks_read, memory_order_release);
		if (op)
			rwk_shm_read_finish_if_whole(t, op, 0);
	}
	if (n)
		t->last_news = rwk_clock_now();
	return n;
}

/*
 * The exposer.
 */

static void refuse(struct rwk_shm_transfers *t, uint32_t id, int status)
{
	struct rwk_shm_verdict v = {.id = id, .status = status};

	rwk_shm_tell(t, RWK_SHM_READ_REFUSED, &v, sizeof(v));
}

/* A block holds a quarter of what is asked, so that both sides soon have something to do. */
static size_t block_for(uint64_t length)
{
	uint64_t b = (length / 4 + PAGE - 1) / PAGE * PAGE;

	return b < BLOCK_LEAST ? BLOCK_LEAST : b > RWK_SHM_BLOCK_BYTES ? RWK_SHM_BLOCK_BYTES : b;
}

/* Has all blocks have memory for so many bytes; who has none says so, as a store cannot. */
static bool blocks_grow(struct rwk_shm_transfers *t, size_t block)
{
	char *bytes = rwk_shm_area_of(t, true)->bytes;

	if (block <= t->blocks_there)
		return true;
	for (size_t place = 0; place < RWK_SHM_BLOCKS; place++) {
		if (!rwk_shared_populate(bytes + place * RWK_SHM_BLOCK_BYTES, block))
			return false;
	}
	t->blocks_there = block;
	return true;
}

void rwk_shm_stage_asked(struct rwk_shm_transfers *t, const struct rwk_shm_ask *ask)
{
	struct rwk_shm_region *region = rwk_shm_region_find(t, ask->cookie);
	struct serve *s;

	if (!region || region->direct) {
		refuse(t, ask->id, -EACCES);
		return;
	}
	if (!ask->length || ask->offset > region->length || ask->length > region->length - ask->offset) {
		refuse(t, ask->id, -EINVAL);
		return;
	}
	if (!blocks_grow(t, block_for(ask->length))) {
		refuse(t, ask->id, -ENOMEM);
		return;
	}
	if (t->serve_pool.used == RWK_SHM_SERVES) {
		rwk_shm_transfers_broken(t, "more reads at once than agreed");
		return;
	}
	s = rwk_pool_get(&t->serve_pool);
	if (!s) {
		refuse(t, ask->id, -ENOMEM);
		return;
	}
	s->region = region;
	s->cookie = ask->cookie;
	s->offset = ask->offset;
	s->end = ask->offset + ask->length;
	s->block = block_for(ask->length);
	s->id = ask->id;
	rwk_list_append(&t->serves, &s->link);
	rwk_shm_transfers_activate(t);
}

static void serve_end(struct rwk_shm_transfers *t, struct serve *s)
{
	rwk_list_remove(&s->link);
	rwk_pool_put(&t->serve_pool, s);
}

void rwk_shm_stage_stopped(struct rwk_shm_transfers *t, uint32_t id)
{
	for (struct rwk_list *n = t->serves.next; n != &t->serves; n = n->next) {
		struct serve *s = rwk_container_of(n, struct serve, link);

		if (s->id == id) {
			serve_end(t, s);
			return;
		}
	}
}

void rwk_shm_stage_concealed(struct rwk_shm_transfers *t, uint64_t cookie)
{
	struct rwk_list *n, *next;

	for (n = t->serves.next; n != &t->serves; n = next) {
		struct serve *s = rwk_container_of(n, struct serve, link);

		next = n->next;
		if (s->cookie != cookie)
			continue;
		refuse(t, s->id, -EACCES);
		serve_end(t, s);
	}
}

/* Blocks of mine that the peer has not given back; false if it says nonsense. */
static bool blocks_out(struct rwk_shm_transfers *t, uint64_t *out)
{
	uint64_t back = atomic_load_explicit(&rwk_shm_area_of(t, false)->given_back.word, memory_order_acquire);

	if (back < t->blocks_back || back > t->blocks_written) {
		rwk_shm_transfers_broken(t, "more blocks given back than were staged");
		return false;
	}
	t->blocks_back = back;
	*out = t->blocks_written - back;
	return true;
}

static void fill_block(struct rwk_shm_transfers *t, struct rwk_shm_area *mine, struct serve *s)
{
	uint64_t place = t->blocks_written % RWK_SHM_BLOCKS;
	struct rwk_shm_block_head *head = &mine->head[place];
	size_t length = s->end - s->offset < s->block ? s->end - s->offset : s->block;

	if (s->region->count == 1)
		rwk_shm_fill(&t->fill, mine->bytes + place * RWK_SHM_BLOCK_BYTES,
			(const char *)s->region->iov->iov_base + s->offset, length);
	else
		rwk_iov_gather(s->region->iov, s->region->count, s->offset, mine->bytes + place * RWK_SHM_BLOCK_BYTES,
			length);
	head->id = s->id;
	head->length = (uint32_t)length;
	head->offset = s->offset;
	atomic_store_explicit(&head->number, ++t->blocks_written, memory_order_release);
	s->offset += length;
	t->port->counts.staged += length;
}

int rwk_shm_stage_write(struct rwk_shm_transfers *t)
{
	struct rwk_shm_area *mine;
	uint64_t out;
	int n = 0;

	if (rwk_list_empty(&t->serves))
		return 0;
	mine = rwk_shm_area_of(t, true);
	while (n < (int)RWK_SHM_BLOCKS && !rwk_list_empty(&t->serves) && blocks_out(t, &out) && out < RWK_SHM_BLOCKS) {
		struct serve *s = rwk_container_of(t->serves.next, struct serve, link);

		fill_block(t, mine, s);
		n++;
		if (s->offset == s->end)
			serve_end(t, s);
	}
	return n;
}
