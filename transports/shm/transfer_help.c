/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Help: what this side does for a transfer that the peer has asked it to share (transfer_both.c). It takes chunks from
 * the front and copies them between its region and the peer's memory: pushes them into a read of the peer's, fetches
 * them out of a write of the peer's. Of several transfers it copies a chunk each with one call: a window of 64 KB goes
 * 1.4 times as fast as with a call for each half.
 *
 * The peer names its own memory, and the region by its cookie: that the region is exposed to it, has that range, and
 * may be written is looked at here, whatever the peer has looked at before; and a region that goes takes the help with
 * it. All copies are calls of the kernel's, for parts of either memory may not be mapped; and they go behind the peer's
 * guard (transfer_guard.c), so that a late one neither lands in memory that has been given back nor brings bytes that
 * are not meant any more.
 */
#include "shm/transfer_area.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A transfer of the peer's that this side shares. There is one a place: who asks again with the same place needs no
 * more help with what he asked for before, and whoever has computed for a while finds many such asks.
 */
struct rwk_shm_help {
	struct rwk_list link; /* of t->helps; in none: the place is free */
	struct rwk_shm_region *region;
	struct rwk_shm_help_ask ask;
	bool fetch;        /* it is a write */
	uint32_t finished; /* chunks */
};

void rwk_shm_help_open(struct rwk_shm_transfers *t)
{
	rwk_list_init(&t->helps);
}

void rwk_shm_help_close(struct rwk_shm_transfers *t)
{
	free(t->help);
	t->help = NULL;
}

/* What stands in that place; NULL when out of memory. */
static struct rwk_shm_help *help_at(struct rwk_shm_transfers *t, uint32_t place)
{
	if (!t->help) {
		t->help = calloc(RWK_SHM_CLAIMS, sizeof(*t->help));
		for (unsigned i = 0; t->help && i < RWK_SHM_CLAIMS; i++)
			rwk_list_init(&t->help[i].link);
	}
	return t->help ? &t->help[place] : NULL;
}

static void publish(struct rwk_shm_transfers *t, const struct rwk_shm_help_ask *ask, uint32_t finished, bool give_up)
{
	atomic_store_explicit(&rwk_shm_area_of(t, true)->pushed[ask->place].word,
		rwk_shm_claim_pack(ask->id, give_up, finished), memory_order_release);
}

/* The region, if the peer may have that of it; NULL: what is wrong with the key the peer finds out by itself. */
static struct rwk_shm_region *region_for(struct rwk_shm_transfers *t, const struct rwk_shm_help_ask *ask, bool fetch)
{
	struct rwk_shm_region *region = rwk_shm_region_find(t, ask->cookie);

	if (!region || !(region->access & (fetch ? RWK_EXPOSE_WRITE : RWK_EXPOSE_READ)))
		return NULL;
	return ask->offset <= region->length && ask->length <= region->length - ask->offset ? region : NULL;
}

void rwk_shm_help_asked(struct rwk_shm_transfers *t, const struct rwk_shm_help_ask *ask, bool fetch)
{
	struct rwk_shm_region *region;
	struct rwk_shm_help *h;

	if (ask->place >= RWK_SHM_CLAIMS || !ask->length || rwk_shm_chunks_in(ask->length) > RWK_SHM_CHUNKS_MOST ||
		abs(ask->lead) > rwk_shm_lead_most(ask->length)) {
		rwk_shm_transfers_broken(t, "a transfer to share that cannot be");
		return;
	}
	region = t->help_denied ? NULL : region_for(t, ask, fetch);
	h = help_at(t, ask->place);
	if (h)
		rwk_list_remove(&h->link);
	if (!h || !region) {
		publish(t, ask, 0, true);
		return;
	}
	*h = (struct rwk_shm_help){.region = region, .ask = *ask, .fetch = fetch};
	rwk_list_append(&t->helps, &h->link);
	rwk_shm_transfers_activate(t);
	rwk_prefetch_write((const void *)&rwk_shm_area_of(t, false)->claim[ask->place].word);
}

/* Takes the next chunk; false if there is none left for us. *again: somebody was faster. */
static bool take_chunk(struct rwk_shm_transfers *t, const struct rwk_shm_help *h, bool *again)
{
	_Atomic uint64_t *claim = &rwk_shm_area_of(t, false)->claim[h->ask.place].word;
	uint64_t word = atomic_load_explicit(claim, memory_order_acquire);
	struct rwk_shm_claim c = rwk_shm_claim_unpack(word);

	if (c.id != h->ask.id || c.theirs != h->finished || c.theirs + c.mine >= rwk_shm_chunks_in(h->ask.length))
		return false;
	*again = !atomic_compare_exchange_strong(claim, &word, rwk_shm_claim_pack(c.id, c.theirs + 1, c.mine));
	return true;
}

/* Chunks that one call copies. */
struct batch {
	struct iovec local[1 + RWK_SHM_SHARED_MOST * RWK_EXPOSE_IOV_MAX], remote[1 + RWK_SHM_SHARED_MOST];
	unsigned locals; /* the guard's among them */
	struct rwk_shm_help *help[RWK_SHM_SHARED_MOST];
	unsigned count;
	size_t bytes;
};

static void add_chunk(struct batch *b, struct rwk_shm_help *h)
{
	uint64_t at = rwk_shm_chunk_at(h->ask.length, h->ask.lead, h->finished);
	size_t length = rwk_shm_chunk_at(h->ask.length, h->ask.lead, h->finished + 1) - at;

	b->help[b->count++] = h;
	b->remote[b->count] = (struct iovec){(void *)(uintptr_t)(h->ask.target + at), length};
	b->bytes += length;
	b->locals += rwk_iov_slice(h->region->iov, h->region->count, h->ask.offset + at, &length, b->local + b->locals,
		RWK_EXPOSE_IOV_MAX);
}

/* Claims the next chunk of each of the first, as many as one call copies. Returns how many it has looked at. */
static int claim_chunks(struct rwk_shm_transfers *t, struct batch *b)
{
	struct rwk_list *n, *next;
	int looked = 0;

	for (n = t->helps.next; n != &t->helps && b->count < RWK_SHM_SHARED_MOST && b->bytes < RWK_SHM_AT_ONCE;
		n = next) {
		struct rwk_shm_help *h = rwk_container_of(n, struct rwk_shm_help, link);
		bool again = false, taken;

		next = n->next;
		if (b->count && h->fetch != b->help[0]->fetch)
			break;
		taken = take_chunk(t, h, &again);
		if (!taken) {
			publish(t, &h->ask, h->finished, false); /* who asks for many sees that we listen */
			rwk_list_remove(&h->link);
		} else if (!again) {
			add_chunk(b, h);
		}
		looked++;
	}
	return looked;
}

static void denied(struct rwk_shm_transfers *t, int err)
{
	if (t->help_denied)
		return;
	t->help_denied = true;
	t->port->counts.denials++;
	rwk_info("copies to and from process %d for what it reads and writes are denied (%s)",
		(int)rwk_shm_peer_pid(t->ch), strerror(-err));
}

/* Copies what has been claimed; the peer's guard was there when it was. Who falls short gives up, and who is behind. */
static void copy_chunks(struct rwk_shm_transfers *t, struct batch *b, uint64_t guard)
{
	bool fetch = b->help[0]->fetch;
	ssize_t done = (fetch ? rwk_shm_guarded_read : rwk_shm_guarded_write)(
		t, guard, b->local, b->locals, b->remote, 1 + b->count);

	if (done < 0 && done != -EFAULT && done != -ESTALE)
		denied(t, (int)done);
	for (unsigned i = 0; i < b->count; i++) {
		struct rwk_shm_help *h = b->help[i];
		size_t length = b->remote[1 + i].iov_len;
		bool whole = done >= (ssize_t)length;

		done = whole ? done - (ssize_t)length : 0;
		if (whole)
			*(fetch ? &t->port->counts.fetched : &t->port->counts.pushed) += length;
		h->finished += whole;
		publish(t, &h->ask, h->finished, !whole);
		if (!whole || h->finished == rwk_shm_chunks_to_help(h->ask.length))
			rwk_list_remove(&h->link);
	}
}

int rwk_shm_help(struct rwk_shm_transfers *t)
{
	struct batch b;
	uint64_t guard;
	int looked;

	if (rwk_list_empty(&t->helps))
		return 0;
	b.locals = 1;
	b.count = 0;
	b.bytes = 0;
	guard = rwk_shm_guard_see(t);
	looked = claim_chunks(t, &b);
	if (b.count)
		copy_chunks(t, &b, guard);
	return looked;
}

void rwk_shm_help_concealed(struct rwk_shm_transfers *t, uint64_t cookie)
{
	struct rwk_list *n, *next;

	for (n = t->helps.next; n != &t->helps; n = next) {
		struct rwk_shm_help *h = rwk_container_of(n, struct rwk_shm_help, link);

		next = n->next;
		if (h->ask.cookie != cookie)
			continue;
		publish(t, &h->ask, h->finished, true);
		rwk_list_remove(&h->link);
	}
}
