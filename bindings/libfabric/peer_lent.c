/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shared receive context of ours, lent to other providers: for each a fid_peer_srx, with the calls by which it asks
 * for receives and tells of messages that find none.
 *
 *   ASKED    a message has come there, and found no receive; the provider may go on to queue it
 *   QUEUED   it waits in our inbox, its payload with the provider
 *   GIVEN    a receive is the provider's, until it frees the entry
 *   DROPPED  we are about to say that it is dropped
 *   ENDED    it is over, but somebody still asks the provider whose message it was: he puts it back
 *
 * Locks: what a provider calls takes ours; what we call of it is called without. Who drives it from one thread and
 * posts receives from another has to keep a post away from between its get and queue, as fi_peer(3) says; a receive
 * that comes there all the same is found by queue, which then starts the message from within.
 */
#include "bindings/libfabric/peer_forms.h"

#include "base/log.h"
#include "base/pool.h"
#include "bindings/libfabric/absent_calls.h"
#include "engine/guest.h"

#include <stdlib.h>

struct lent {
	struct fid_peer_srx fid; /* what the provider has */
	struct rwk_fi_srx *srx;
	struct rwk_list of_srx;
	struct rwk_list entries; /* entry.link: all that are out */
	struct rwk_pool pool;
	unsigned calling; /* threads that are about to call the provider, or in it, for one of its messages */
	bool selective;
};

struct entry {
	union rwk_fi_any_entry shown; /* what the provider has; first */
	struct lent *lent;
	struct rwk_list link;
	enum { ASKED, QUEUED, GIVEN, DROPPED, ENDED } state;
	unsigned asking; /* threads that ask whose it is */
	enum rwk_space space;
	struct rwk_rx *rx;           /* GIVEN */
	struct rwk_unexpected *kept; /* QUEUED */
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	void *desc[RWK_ENGINE_IOV_MAX];
};

static struct lent *lent_of(struct fid_peer_srx *srx)
{
	return rwk_container_of(srx, struct lent, fid);
}

static struct fi_peer_rx_entry *shown(struct entry *e)
{
	return (struct fi_peer_rx_entry *)&e->shown;
}

static struct entry *entry_of(struct fi_peer_rx_entry *e)
{
	return (struct entry *)e;
}

static struct rwk_fi_message *message_of(struct entry *e)
{
	return rwk_fi_entry_message(shown(e));
}

static struct entry *new_entry(struct lent *l, const struct rwk_offer *m, fi_addr_t from)
{
	struct entry *e = rwk_pool_get(&l->pool);

	if (!e)
		return NULL;
	*e = (struct entry){.lent = l, .space = m->space};
	*message_of(e) = (struct rwk_fi_message){
		.srx = &l->fid,
		.addr = from,
		.size = m->length,
		.tag = m->tag,
	};
	rwk_fi_entry_receive(shown(e))->flags = FI_RECV | (m->space == RWK_TAGGED ? FI_TAGGED : FI_MSG);
	rwk_list_append(&l->entries, &e->link);
	return e;
}

static void put_entry(struct entry *e)
{
	rwk_list_remove(&e->link);
	e->state = ENDED;
	if (!e->asking)
		rwk_pool_put(&e->lent->pool, e);
}

/** The entry's receive is the provider's. */
static void give(struct entry *e, struct rwk_rx *rx)
{
	struct rwk_fi_message *m = message_of(e);
	struct rwk_fi_receive *r = rwk_fi_entry_receive(shown(e));
	struct rwk_given g;
	size_t room = 0;

	rwk_guest_receive(rx, &g);
	for (size_t i = 0; i < g.count; i++) {
		e->iov[i] = g.iov[i];
		room += g.iov[i].iov_len;
	}
	e->state = GIVEN;
	e->rx = rx;
	if (rwk_fi_is_first() || m->size > room) /* the first form does not know the length of what is tagged */
		m->size = room;
	r->context = g.handle;
	r->iov = e->iov;
	r->count = g.count;
	r->desc = e->desc;
	if (!e->lent->selective || g.flags & RWK_FI_ASKED)
		r->flags |= FI_COMPLETION;
}

/* What the provider calls. */

static int get(
	struct fid_peer_srx *srx, fi_addr_t from, const struct rwk_offer *m, struct fi_peer_rx_entry **out)
{
	struct lent *l = lent_of(srx);
	struct rwk_rx *rx;
	struct entry *e;
	int err = -FI_ENOMEM;

	rwk_fi_enter(&l->srx->lock);
	e = new_entry(l, m, from);
	if (e)
		err = rwk_guest_match(l->srx->inbox, m, &rx);
	if (!err)
		give(e, rx);
	if (!err || err == -FI_ENOENT)
		*out = shown(e);
	else if (e)
		put_entry(e);
	rwk_fi_leave(&l->srx->lock);
	return err;
}

static int queue(struct fi_peer_rx_entry *entry)
{
	struct entry *e = entry_of(entry);
	struct rwk_fi_srx *srx = e->lent->srx;
	const uint64_t *data = rwk_fi_entry_data(entry);
	const struct rwk_offer m = {
		.space = e->space,
		.length = message_of(e)->size,
		.tag = message_of(e)->tag,
		.data = data ? *data : 0,
		.has_data = rwk_fi_entry_receive(entry)->flags & FI_REMOTE_CQ_DATA,
	};
	bool due;
	int err;

	rwk_fi_enter(&srx->lock);
	err = rwk_guest_keep(srx->inbox, &m, e, &e->kept);
	if (!err)
		e->state = QUEUED;
	due = rwk_guest_is_due(srx->inbox);
	rwk_fi_leave(&srx->lock);
	if (due)
		rwk_fi_lent_tell(srx);
	return err;
}

/** The provider has done with it; `status` as of rwk_guest_end. Under the lock. */
static void end(struct entry *e, int status)
{
	if (e->state == DROPPED) /* who drops it is about to put it back */
		return;
	if (e->state == GIVEN)
		rwk_guest_end(e->lent->srx->inbox, e->rx, status);
	else if (e->state == QUEUED)
		rwk_guest_withdraw(e->kept);
	put_entry(e);
}

static void free_entry(struct fi_peer_rx_entry *entry)
{
	struct rwk_fi_srx *srx = entry_of(entry)->lent->srx;

	rwk_fi_enter(&srx->lock);
	end(entry_of(entry), 0);
	rwk_fi_leave(&srx->lock);
}

/* Whose message waits there, if the provider knows by now. It is asked without the lock: the answer takes its own. */
static void ask_sender(struct lent *l, struct entry *e, fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry))
{
	fi_addr_t from;

	l->calling++;
	e->asking++;
	rwk_fi_leave(&l->srx->lock);
	from = get_addr(shown(e));
	rwk_fi_enter(&l->srx->lock);
	l->calling--;
	e->asking--;
	if (e->state == QUEUED)
		message_of(e)->addr = from;
	else if (e->state == ENDED && !e->asking)
		rwk_pool_put(&l->pool, e);
}

/* Each entry goes round the list once. */
static void foreach_unspec_addr(struct fid_peer_srx *srx, fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry))
{
	struct lent *l = lent_of(srx);
	size_t count;

	rwk_fi_enter(&l->srx->lock);
	count = l->pool.used;
	while (count-- > 0 && !rwk_list_empty(&l->entries)) {
		struct entry *e = rwk_container_of(rwk_list_pop(&l->entries), struct entry, link);

		rwk_list_append(&l->entries, &e->link);
		if (e->state == QUEUED && message_of(e)->addr == FI_ADDR_UNSPEC)
			ask_sender(l, e, get_addr);
	}
	rwk_fi_leave(&l->srx->lock);
}

static int first_get_msg(struct fid_peer_srx *srx, fi_addr_t from, size_t size, struct fi_peer_rx_entry **entry)
{
	const struct rwk_offer m = {.space = RWK_PLAIN, .length = size};

	return get(srx, from, &m, entry);
}

static int first_get_tag(struct fid_peer_srx *srx, fi_addr_t from, uint64_t tag, struct fi_peer_rx_entry **entry)
{
	const struct rwk_offer m = {.space = RWK_TAGGED, .tag = tag};

	return get(srx, from, &m, entry);
}

static int second_get_msg(
	struct fid_peer_srx *srx, struct rwk_fi_second_match *match, struct fi_peer_rx_entry **entry)
{
	return first_get_msg(srx, match->addr, match->size, entry);
}

static int second_get_tag(
	struct fid_peer_srx *srx, struct rwk_fi_second_match *match, struct fi_peer_rx_entry **entry)
{
	const struct rwk_offer m = {.space = RWK_TAGGED, .length = match->size, .tag = match->tag};

	return get(srx, match->addr, &m, entry);
}

static const struct rwk_fi_first_owner first_ops = {
	.size = sizeof(first_ops),
	.get_msg = first_get_msg,
	.get_tag = first_get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.free_entry = free_entry,
};

static const struct rwk_fi_second_owner second_ops = {
	.size = sizeof(second_ops),
	.get_msg = second_get_msg,
	.get_tag = second_get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

/* What we call of it. */

/** Whether it is still out; who could not start a message may have freed it or not. */
static bool is_out(const struct lent *l, const struct entry *e)
{
	for (const struct rwk_list *i = l->entries.next; i != &l->entries; i = i->next) {
		if (i == &e->link)
			return true;
	}
	return false;
}

static void start(struct lent *l, struct entry *e)
{
	const struct fi_ops_srx_peer *ops = l->fid.peer_ops;
	int err = (e->space == RWK_TAGGED ? ops->start_tag : ops->start_msg)(shown(e));

	if (err)
		rwk_warn("another provider's message is lost: it cannot be started: %s", fi_strerror(-err));
	rwk_fi_enter(&l->srx->lock);
	if (err && is_out(l, e))
		end(e, err);
	l->calling--;
	rwk_fi_leave(&l->srx->lock);
}

static void discard(struct lent *l, struct entry *e)
{
	const struct fi_ops_srx_peer *ops = l->fid.peer_ops;
	int err = (e->space == RWK_TAGGED ? ops->discard_tag : ops->discard_msg)(shown(e));

	if (err)
		rwk_warn("another provider cannot drop a message: %s", fi_strerror(-err));
	rwk_fi_enter(&l->srx->lock);
	put_entry(e);
	l->calling--;
	rwk_fi_leave(&l->srx->lock);
}

void rwk_fi_lent_tell(struct rwk_fi_srx *srx)
{
	struct rwk_due due;
	struct lent *l;
	struct entry *e;

	for (;;) {
		rwk_fi_enter(&srx->lock);
		e = rwk_guest_next(srx->inbox, &due) ? due.handle : NULL;
		if (e && due.rx)
			give(e, due.rx);
		else if (e)
			e->state = DROPPED;
		l = e ? e->lent : NULL;
		if (l)
			l->calling++;
		rwk_fi_leave(&srx->lock);
		if (!e)
			return;
		(due.rx ? start : discard)(l, e);
	}
}

/* The context. */

/* What the provider still has of it ends: what is queued is dropped, what is given is cancelled. */
static int lent_close(struct fid *fid)
{
	struct lent *l = rwk_container_of(fid, struct lent, fid.ep_fid.fid);
	struct rwk_fi_srx *srx = l->srx;

	if (rwk_fi_is_inherited(srx->domain->process))
		return 0;
	rwk_fi_enter(&srx->lock);
	if (l->calling) {
		rwk_fi_leave(&srx->lock);
		rwk_warn("fi_close: messages of the borrowed receive context are being started, dropped or asked for");
		return -FI_EBUSY;
	}
	while (!rwk_list_empty(&l->entries))
		end(rwk_container_of(l->entries.next, struct entry, link), -ECANCELED);
	rwk_list_remove(&l->of_srx);
	rwk_fi_leave(&srx->lock);
	rwk_pool_close(&l->pool);
	free(l);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = lent_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

int rwk_fi_lent_open(struct rwk_fi_srx *srx, struct fi_fid_export *export)
{
	struct lent *l;

	if (!rwk_fi_peer_known()) {
		rwk_warn("fi_export_fid: receives of other providers are known of libfabric 1.17 and 2, not of %u.%u",
			FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
		return -FI_ENOSYS;
	}
	if (export->flags & ~(uint64_t)FI_SELECTIVE_COMPLETION)
		return -FI_EBADFLAGS;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -FI_ENOMEM;
	l->srx = srx;
	l->selective = export->flags;
	rwk_pool_init(&l->pool, sizeof(struct entry), 32, 0);
	rwk_list_init(&l->entries);
	/* libfabric 1.17's shm binds the very object to its endpoints, and looks for this class. */
	l->fid.ep_fid.fid.fclass = FI_CLASS_SRX_CTX;
	l->fid.ep_fid.fid.context = export->context;
	l->fid.ep_fid.fid.ops = (struct fi_ops *)&fid_ops;
	l->fid.ep_fid.msg = (struct fi_ops_msg *)&rwk_fi_absent_msg_ops;
	l->fid.ep_fid.tagged = (struct fi_ops_tagged *)&rwk_fi_absent_tagged_ops;
	l->fid.owner_ops = rwk_fi_is_first() ? (struct fi_ops_srx_owner *)&first_ops
					     : (struct fi_ops_srx_owner *)&second_ops;
	rwk_fi_enter(&srx->lock);
	rwk_list_append(&srx->lent, &l->of_srx);
	rwk_fi_leave(&srx->lock);
	*export->fid = &l->fid.ep_fid.fid;
	return 0;
}
