/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_owner.h"

static struct o_entry *entry_of(struct fi_peer_rx_entry *e)
{
	return (struct o_entry *)((char *)e - offsetof(struct o_entry, entry));
}

static struct o_owner *owner_of(struct fid_peer_srx *srx)
{
	return (struct o_owner *)((char *)srx - offsetof(struct o_owner, srx));
}

static struct o_entry *new_entry(struct o_owner *o, enum o_space space)
{
	struct o_entry *e = &o->entries[o->used++];

	assert_true(o->used <= O_RECEIVES);
	*e = (struct o_entry){.space = space};
	e->entry.srx = &o->srx;
	e->entry.iov = e->iov;
	e->entry.flags = FI_RECV | (space == O_TAGGED ? FI_TAGGED : FI_MSG);
	return e;
}

static bool fits(const struct o_entry *receive, fi_addr_t from, uint64_t tag)
{
	return (receive->entry.addr == FI_ADDR_UNSPEC || receive->entry.addr == from) &&
	       (receive->space == O_PLAIN || !((receive->entry.tag ^ tag) & ~receive->ignore));
}

/* A message has come: the first posted receive that fits, or a fresh record of the message. */
static int get(struct o_owner *o, enum o_space space, fi_addr_t from, uint64_t tag, struct fi_peer_rx_entry **out)
{
	struct o_entry *e;

	if (!o->calling)
		fail_msg("a message is offered from within a call that makes no progress");
	for (unsigned i = 0; i < o->used; i++) {
		e = &o->entries[i];
		if (e->state == O_POSTED && e->space == space && fits(e, from, tag)) {
			e->state = O_GIVEN;
			*out = &e->entry;
			return 0;
		}
	}
	e = new_entry(o, space);
	e->state = O_ASKED;
	e->entry.addr = from;
	e->entry.tag = tag;
	*out = &e->entry;
	return -FI_ENOENT;
}

#if FI_MAJOR_VERSION < 2
static int get_msg(struct fid_peer_srx *srx, fi_addr_t from, size_t size, struct fi_peer_rx_entry **entry)
{
	(void)size;
	return get(owner_of(srx), O_PLAIN, from, 0, entry);
}

static int get_tag(struct fid_peer_srx *srx, fi_addr_t from, uint64_t tag, struct fi_peer_rx_entry **entry)
{
	return get(owner_of(srx), O_TAGGED, from, tag, entry);
}

uint64_t o_data(const struct o_entry *e)
{
	(void)e;
	return 0;
}
#else
static int get_msg(struct fid_peer_srx *srx, struct fi_peer_match_attr *m, struct fi_peer_rx_entry **entry)
{
	int err = get(owner_of(srx), O_PLAIN, m->addr, 0, entry);

	assert_int_equal(m->tag, 0);
	(*entry)->msg_size = m->msg_size;
	return err;
}

static int get_tag(struct fid_peer_srx *srx, struct fi_peer_match_attr *m, struct fi_peer_rx_entry **entry)
{
	int err = get(owner_of(srx), O_TAGGED, m->addr, m->tag, entry);

	(*entry)->msg_size = m->msg_size;
	return err;
}

static void foreach_unspec_addr(struct fid_peer_srx *srx, fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct o_owner *o = owner_of(srx);

	if (o->told)
		o->told(o);
	for (unsigned i = 0; i < o->used; i++) {
		if (o->entries[i].state == O_QUEUED && o->entries[i].entry.addr == FI_ADDR_UNSPEC)
			o->entries[i].entry.addr = get_addr(&o->entries[i].entry);
	}
}

uint64_t o_data(const struct o_entry *e)
{
	return e->entry.cq_data;
}
#endif

static int queue(struct fi_peer_rx_entry *entry)
{
	assert_int_equal(entry_of(entry)->state, O_ASKED);
	assert_non_null(entry->peer_context);
	entry_of(entry)->state = O_QUEUED;
	return 0;
}

static void free_entry(struct fi_peer_rx_entry *entry)
{
	assert_int_equal(entry_of(entry)->state, O_GIVEN);
	entry_of(entry)->state = O_BACK;
}

static struct fi_ops_srx_owner srx_ops = {
	.size = sizeof(srx_ops),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
#if FI_MAJOR_VERSION >= 2
	.foreach_unspec_addr = foreach_unspec_addr,
#endif
	.free_entry = free_entry,
};

static struct o_done *next_done(struct fid_peer_cq *cq)
{
	struct o_owner *o = (struct o_owner *)((char *)cq - offsetof(struct o_owner, peer_cq));

	assert_true(o->written < O_RECEIVES);
	return &o->done[o->written++];
}

static ssize_t write_entry(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len, void *buf, uint64_t data,
	uint64_t tag, fi_addr_t source)
{
	*next_done(cq) = (struct o_done){
		.entry = {.op_context = context, .flags = flags, .len = len, .buf = buf, .data = data, .tag = tag},
		.source = source,
	};
	return 0;
}

static ssize_t write_error(struct fid_peer_cq *cq, const struct fi_cq_err_entry *e)
{
	assert_int_equal(e->err, e->prov_errno);
	*next_done(cq) = (struct o_done){
		.entry = {.op_context = e->op_context, .flags = e->flags, .len = e->len, .tag = e->tag},
		.err = e->err,
		.overflow = e->olen,
	};
	return 0;
}

static struct fi_ops_cq_owner cq_ops = {.size = sizeof(cq_ops), .write = write_entry, .writeerr = write_error};

struct fi_cq_attr o_cq_attr(void)
{
	return (struct fi_cq_attr){.flags = FI_PEER, .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
}

struct fi_rx_attr o_srx_attr(void)
{
	return (struct fi_rx_attr){.op_flags = FI_PEER};
}

void o_open(struct o_owner *o, struct t_domain *d, uint64_t bind_flags)
{
	struct fi_peer_cq_context cq_context = {.size = sizeof(cq_context), .cq = &o->peer_cq};
	struct fi_peer_srx_context srx_context = {.size = sizeof(srx_context), .srx = &o->srx};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = o_cq_attr();
	struct fi_rx_attr srx_attr = o_srx_attr();

	memset(o, 0, sizeof(*o));
	o->d = d;
	o->name_len = sizeof(o->name);
	o->peer_cq.owner_ops = &cq_ops;
	o->srx.owner_ops = &srx_ops;
	assert_int_equal(fi_cq_open(d->domain, &cq_attr, &o->cq, &cq_context), 0);
	assert_int_equal(fi_srx_context(d->domain, &srx_attr, &o->srx_ep, &srx_context), 0);
	assert_non_null(o->srx.peer_ops);
	assert_int_equal(fi_av_open(d->domain, &av_attr, &o->av, NULL), 0);
	assert_int_equal(fi_endpoint(d->domain, d->info, &o->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV | bind_flags), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->srx_ep->fid, 0), 0);
	assert_int_equal(fi_enable(o->ep), 0);
	assert_int_equal(fi_getname(&o->ep->fid, o->name, &o->name_len), 0);
}

void o_close(struct o_owner *o)
{
	o->calling = true;
	assert_int_equal(fi_close(&o->srx_ep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&o->ep->fid), 0);
	assert_int_equal(fi_close(&o->srx_ep->fid), 0);
	assert_int_equal(fi_close(&o->cq->fid), 0);
	assert_int_equal(fi_close(&o->av->fid), 0);
}

void o_drive(struct o_owner *o)
{
	o->calling = true;
	assert_int_equal(fi_cq_read(o->cq, NULL, 0), -FI_EAGAIN);
	o->calling = false;
}

/* The message takes the receive's place: it is the message's entry that the peer goes on with. */
static void start(struct o_owner *o, struct o_entry *message, struct o_entry *receive)
{
	receive->state = O_FREE;
	memcpy(message->iov, receive->iov, sizeof(message->iov));
	message->entry.count = receive->entry.count;
	message->entry.context = receive->entry.context;
	message->entry.flags |= receive->entry.flags;
	message->state = O_GIVEN;
	assert_int_equal((message->space == O_TAGGED ? o->srx.peer_ops->start_tag
						     : o->srx.peer_ops->start_msg)(&message->entry),
		0);
}

void o_receive(struct o_owner *o, enum o_space space, void *buf, size_t len, fi_addr_t from, uint64_t tag,
	uint64_t ignore, uint64_t flags)
{
	struct o_entry *e = new_entry(o, space);

	e->iov[0] = (struct iovec){buf, len};
	e->entry.count = 1;
	e->entry.addr = from;
	e->entry.tag = tag;
	e->entry.context = buf;
	e->entry.flags |= flags;
	e->ignore = ignore;
	e->state = O_POSTED;
	for (unsigned i = 0; i < o->used; i++) {
		struct o_entry *m = &o->entries[i];

		if (m->state == O_QUEUED && m->space == space && fits(e, m->entry.addr, m->entry.tag)) {
			start(o, m, e);
			return;
		}
	}
}

struct o_entry *o_first_queued(struct o_owner *o)
{
	for (unsigned i = 0; i < o->used; i++) {
		if (o->entries[i].state == O_QUEUED)
			return &o->entries[i];
	}
	return NULL;
}

unsigned o_queued(const struct o_owner *o)
{
	unsigned n = 0;

	for (unsigned i = 0; i < o->used; i++)
		n += o->entries[i].state == O_QUEUED;
	return n;
}

void o_discard(struct o_owner *o, struct o_entry *e)
{
	e->state = O_BACK;
	assert_int_equal(
		(e->space == O_TAGGED ? o->srx.peer_ops->discard_tag : o->srx.peer_ops->discard_msg)(&e->entry), 0);
}

struct o_done o_wait(struct o_owner *o)
{
	int64_t end = t_now() + T_PATIENCE;

	while (o->taken == o->written) {
		o_drive(o);
		if (t_now() > end)
			fail_msg("no completion");
	}
	return o->done[o->taken++];
}

void o_check_all_back(const struct o_owner *o)
{
	for (unsigned i = 0; i < o->used; i++)
		assert_true(o->entries[i].state == O_BACK || o->entries[i].state == O_FREE);
	assert_int_equal(o->taken, o->written);
}
