/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_read, fi_write and their kin. */
#include "bindings/libfabric/trigger.h"

#include "base/iov.h"
#include "base/log.h"

_Static_assert(sizeof(struct fi_rma_iov) == sizeof(struct rwk_remote) &&
		       offsetof(struct fi_rma_iov, addr) == offsetof(struct rwk_remote, address) &&
		       offsetof(struct fi_rma_iov, len) == offsetof(struct rwk_remote, length) &&
		       offsetof(struct fi_rma_iov, key) == offsetof(struct rwk_remote, key),
	"a list of ranges is passed on as it is");

#define READ  ((uint64_t)(FI_RMA | FI_READ))
#define WRITE ((uint64_t)(FI_RMA | FI_WRITE))

/* Data is for the peer's receive context that the address names. */
static void set_room(const struct rwk_fi_ep *ep, fi_addr_t to, struct rwk_rma_args *a)
{
	unsigned room = rwk_fi_av_context(ep->av, to);

	if (a->flags & RWK_F_DATA && room < RWK_ROOMS)
		a->flags |= rwk_to_room_flag(room);
}

/* Later, or never. */
static rwk_noinline ssize_t not_now(
	struct rwk_fi_ep *ep, uint64_t needs, fi_addr_t to, struct rwk_rma_args *a, rwk_fi_starter *start)
{
	if (!ep->engine)
		return -FI_EOPBADSTATE;
	if (!(needs & ~ep->caps)) {
		set_room(ep, to, a);
		return rwk_fi_trigger_access(ep, to, a, start, needs & FI_ATOMIC);
	}
	rwk_info("the endpoint was opened without the capabilities %#llx", (unsigned long long)(needs & ~ep->caps));
	return -FI_EOPNOTSUPP;
}

/*
 * Has the program not looked yet at what has been completed before? Entries of sends, and of receives that have the same
 * queue, count as well: it only widens the choice of how the next one is copied, which is measured.
 */
static inline uint32_t behind(const struct rwk_fi_ep *ep)
{
	const struct rwk_fi_cq *cq = ep->side[RWK_FI_TX].cq;

	return cq && !rwk_fi_cq_is_empty(cq) ? RWK_F_BEHIND : 0;
}

/* An order with sends, or data for one of the peer's receive contexts. */
static rwk_noinline int take_wishes(struct rwk_fi_ep *ep, fi_addr_t to, struct rwk_rma_args *a)
{
	if (a->flags & RWK_F_FENCE && rwk_peer_sending(a->peer))
		return -FI_EAGAIN; /* the engine's fence is one of reads and writes */
	set_room(ep, to, a);
	return 0;
}

ssize_t rwk_fi_rma_start(
	struct rwk_fi_ep *ep, uint64_t needs, fi_addr_t to, struct rwk_rma_args *a, rwk_fi_starter *start)
{
	ssize_t err;

	if (rwk_unlikely(!ep->engine || (needs & ~ep->caps) | (a->flags & RWK_FI_TRIGGERED)))
		return not_now(ep, needs, to, a, start);
	rwk_fi_enter(&ep->lock);
	err = rwk_fi_ep_whole(ep, to, &a->peer);
	if (rwk_likely(!err) && rwk_unlikely(a->flags & (RWK_F_FENCE | RWK_F_DATA)))
		err = take_wishes(ep, to, a);
	a->flags |= behind(ep);
	if (rwk_likely(!err))
		err = start(ep->engine, a);
	rwk_fi_leave(&ep->lock);
	return err;
}

int rwk_fi_rma_flags(const struct rwk_fi_ep *ep, const char *call, uint64_t flags, uint64_t known, uint32_t *out)
{
	if (flags & ~known) {
		rwk_info("%s: flags %#llx are not there", call, (unsigned long long)(flags & ~known));
		return -FI_EBADFLAGS;
	}
	*out = ep->rmamsg_flags[!!(flags & FI_COMPLETION)];
	if (flags & FI_TRIGGER) {
		if (flags & FI_INJECT)
			return -FI_EINVAL; /* the buffer is looked at when it begins */
		*out |= RWK_FI_TRIGGERED;
	}
	if (flags & FI_INJECT)
		*out |= RWK_F_INJECT;
	if (flags & FI_REMOTE_CQ_DATA)
		*out |= RWK_F_DATA;
	if (flags & FI_FENCE)
		*out |= RWK_F_FENCE;
	return 0;
}

/* One range of the peer's memory, as long as the local pieces. */
static ssize_t one_range(struct rwk_fi_ep *ep, uint64_t needs, const struct iovec *iov, size_t count, fi_addr_t to,
	uint64_t address, uint64_t key, uint64_t data, uint32_t flags, void *context)
{
	struct rwk_remote remote = {.address = address, .key = key};
	struct rwk_rma_args a = {
		.iov = iov,
		.iov_count = count,
		.remote = &remote,
		.remote_count = 1,
		.data = data,
		.flags = flags,
		.context = context,
	};

	if (rwk_unlikely(count > RWK_ENGINE_IOV_MAX))
		return -FI_EINVAL;
	remote.length = rwk_iov_length(iov, count);
	return rwk_fi_rma_start(ep, needs, to, &a, needs == READ ? rwk_engine_read : rwk_engine_write);
}

ssize_t rwk_fi_rma_message(struct rwk_fi_ep *ep, bool read, const struct fi_msg_rma *msg, uint32_t flags)
{
	struct rwk_rma_args a = {
		.iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.remote = (const struct rwk_remote *)msg->rma_iov,
		.remote_count = msg->rma_iov_count,
		.data = msg->data,
		.flags = flags,
		.context = msg->context,
	};

	return rwk_fi_rma_start(ep, read ? READ : WRITE, msg->addr, &a, read ? rwk_engine_read : rwk_engine_write);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t address,
	uint64_t key, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct iovec iov = {buf, len};

	(void)desc;
	return one_range(ep, READ, &iov, 1, from, address, key, 0, ep->read_flags, context);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	uint64_t address, uint64_t key, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return one_range(ep, READ, iov, count, from, address, key, 0, ep->read_flags, context);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	uint32_t f;
	int err = rwk_fi_rma_flags(ep, "fi_readmsg", flags, RWK_FI_RMA_FLAGS, &f);

	return err ? err : rwk_fi_rma_message(ep, true, msg, f);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t address,
	uint64_t key, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return one_range(ep, WRITE, &iov, 1, to, address, key, 0, ep->write_flags, context);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	uint64_t address, uint64_t key, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return one_range(ep, WRITE, iov, count, to, address, key, 0, ep->write_flags, context);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	uint32_t f;
	int err = rwk_fi_rma_flags(ep, "fi_writemsg", flags, RWK_FI_RMA_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA, &f);

	return err ? err : rwk_fi_rma_message(ep, false, msg, f);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t address, uint64_t key)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return one_range(
		rwk_fi_ep_of(fid), WRITE, &iov, 1, to, address, key, 0, rwk_fi_rma_inject(rwk_fi_ep_of(fid)), NULL);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
	uint64_t address, uint64_t key, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return one_range(ep, WRITE, &iov, 1, to, address, key, data, ep->write_flags | RWK_F_DATA, context);
}

static ssize_t rma_injectdata(
	struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t address, uint64_t key)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return one_range(
		rwk_fi_ep_of(fid), WRITE, &iov, 1, to, address, key, data,
		rwk_fi_rma_inject(rwk_fi_ep_of(fid)) | RWK_F_DATA, NULL);
}

const struct fi_ops_rma rwk_fi_rma_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_rma, injectdata),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
