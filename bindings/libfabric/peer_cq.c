/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/peer.h"

#include "base/log.h"

/* All that can be read is that there is nothing: a read of no entries makes progress. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct rwk_fi_cq *cq = rwk_container_of(fid, struct rwk_fi_cq, fid);

	if (buf || count)
		return -FI_ENOSYS;
	rwk_fi_enter(&cq->lock);
	rwk_fi_wait_progress(&cq->wait);
	rwk_fi_leave(&cq->lock);
	return -FI_EAGAIN;
}

static ssize_t no_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	(void)fid, (void)buf, (void)count, (void)source;
	return -FI_ENOSYS;
}

static ssize_t no_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	(void)fid, (void)buf, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	(void)fid, (void)buf, (void)count, (void)cond, (void)timeout;
	return -FI_ENOSYS;
}

static ssize_t no_sreadfrom(
	struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source, const void *cond, int timeout)
{
	(void)fid, (void)buf, (void)count, (void)source, (void)cond, (void)timeout;
	return -FI_ENOSYS;
}

static int no_signal(struct fid_cq *fid)
{
	(void)fid;
	return -FI_ENOSYS;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid, (void)err_data;
	return rwk_fi_strerror(prov_errno, buf, len);
}

static const struct fi_ops_cq peer_cq_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cq, strerror),
	.read = cq_read,
	.readfrom = no_readfrom,
	.readerr = no_readerr,
	.sread = no_sread,
	.sreadfrom = no_sreadfrom,
	.signal = no_signal,
	.strerror = cq_strerror,
};

int rwk_fi_peer_cq_import(struct rwk_fi_cq *cq, const struct fi_peer_cq_context *context)
{
	if (!context || context->size < sizeof(*context) || !context->cq || !context->cq->owner_ops) {
		rwk_warn("fi_cq_open: with FI_PEER the context is a struct fi_peer_cq_context with the owner's queue");
		return -FI_EINVAL;
	}
	cq->owner = context->cq;
	cq->fid.ops = (struct fi_ops_cq *)&peer_cq_ops;
	return rwk_fi_unite(&cq->domain->groups);
}

/* An error entry, as long as one of any libfabric: the owner copies its own length. */
union long_entry {
	struct fi_cq_err_entry entry;
	unsigned char room[sizeof(struct fi_cq_err_entry) + RWK_FI_SPARE];
};

void rwk_fi_peer_cq_put(const struct rwk_fi_cq *cq, const struct rwk_completion *c, fi_addr_t source)
{
	const struct fi_ops_cq_owner *ops = cq->owner->owner_ops;
	uint64_t flags = c->flags & RWK_F_SHOWN;
	union long_entry e = {.room = {0}};
	ssize_t err;

	if (!c->status) {
		err = ops->write(cq->owner, c->context, flags, c->length, c->buffer, c->data, c->tag, source);
	} else {
		e.entry = (struct fi_cq_err_entry){
			.op_context = c->context,
			.flags = flags,
			.len = c->length,
			.buf = c->buffer,
			.data = c->data,
			.tag = c->tag,
			.olen = c->status == -EMSGSIZE ? c->overflow : 0,
			.err = c->status == -EMSGSIZE ? FI_ETRUNC : -c->status,
		};
		e.entry.prov_errno = e.entry.err;
		err = ops->writeerr(cq->owner, &e.entry);
	}
	if (err < 0)
		rwk_warn("a completion is lost: the owner of the queue cannot take it: %s", fi_strerror((int)-err));
}
