/* SPDX-License-Identifier: BSD-3-Clause */
/* A flag, in every place that takes flags. */
#include "try.h"

#define TRIES 1000 /* of a call that says -FI_EAGAIN: a fence waits for what is under way */

static char buf[64], other[64], third[64];

/* What a triggered operation waits for: never. Others take it for a context as any. */
static void *context_of(const struct t_target *t)
{
	static struct fi_triggered_context2 contexts[4096];
	static unsigned n;
	struct fi_triggered_context2 *c = &contexts[n++ % 4096];

	c->event_type = FI_TRIGGER_THRESHOLD;
	c->trigger.threshold.cntr = t->cntr;
	c->trigger.threshold.threshold = 1000000;
	return c;
}

static struct iovec iov = {buf, 8};

static ssize_t sendmsg_with(struct t_target *t, uint64_t flags)
{
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = t->to, .context = context_of(t)};

	return fi_sendmsg(t->ep, &msg, flags);
}

/* Both are said of a peek. */
static uint64_t with_peek(uint64_t flags)
{
	return flags & (FI_CLAIM | FI_DISCARD) ? flags | FI_PEEK : flags;
}

static ssize_t recvmsg_with(struct t_target *t, uint64_t flags)
{
	struct iovec in = {other, sizeof(other)};
	struct fi_msg msg = {.msg_iov = &in, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context_of(t)};

	return fi_recvmsg(t->ep, &msg, with_peek(flags));
}

static ssize_t tsendmsg_with(struct t_target *t, uint64_t flags)
{
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = t->to, .tag = 1, .context = context_of(t)};

	return t->ep->tagged ? fi_tsendmsg(t->ep, &msg, flags) : -FI_ENOSYS;
}

static ssize_t trecvmsg_with(struct t_target *t, uint64_t flags)
{
	struct iovec in = {other, sizeof(other)};
	struct fi_msg_tagged msg = {
		.msg_iov = &in, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 2, .context = context_of(t)};

	return t->ep->tagged ? fi_trecvmsg(t->ep, &msg, with_peek(flags)) : -FI_ENOSYS;
}

static ssize_t rma_with(struct t_target *t, uint64_t flags, bool write)
{
	struct fi_rma_iov there = {t->remote, 8, t->key};
	struct fi_msg_rma msg = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = t->to,
		.rma_iov = &there,
		.rma_iov_count = 1,
		.context = context_of(t)};

	if (!t->ep->rma)
		return -FI_ENOSYS;
	return write ? fi_writemsg(t->ep, &msg, flags) : fi_readmsg(t->ep, &msg, flags);
}

static ssize_t writemsg_with(struct t_target *t, uint64_t flags)
{
	return rma_with(t, flags, true);
}

static ssize_t readmsg_with(struct t_target *t, uint64_t flags)
{
	return rma_with(t, flags, false);
}

static ssize_t atomic_with(struct t_target *t, uint64_t flags, int results)
{
	struct fi_ioc here = {buf, 1}, result = {other, 1}, compare = {third, 1};
	struct fi_rma_ioc there = {t->remote, 1, t->key};
	struct fi_msg_atomic msg = {.msg_iov = &here,
		.iov_count = 1,
		.addr = t->to,
		.rma_iov = &there,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = results < 2 ? FI_SUM : FI_CSWAP,
		.context = context_of(t)};

	if (!t->ep->atomic)
		return -FI_ENOSYS;
	if (!results)
		return fi_atomicmsg(t->ep, &msg, flags);
	if (results == 1)
		return fi_fetch_atomicmsg(t->ep, &msg, &result, NULL, 1, flags);
	return fi_compare_atomicmsg(t->ep, &msg, &compare, NULL, 1, &result, NULL, 1, flags);
}

static ssize_t atomicmsg_with(struct t_target *t, uint64_t flags)
{
	return atomic_with(t, flags, 0);
}

static ssize_t fetch_atomicmsg_with(struct t_target *t, uint64_t flags)
{
	return atomic_with(t, flags, 1);
}

static ssize_t compare_atomicmsg_with(struct t_target *t, uint64_t flags)
{
	return atomic_with(t, flags, 2);
}

static ssize_t av_open_with(struct t_target *t, uint64_t flags)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = flags};
	struct fid_av *av;

	return t_opened(fi_av_open(t->domain, &attr, &av, NULL), &av);
}

static ssize_t av_insert_with(struct t_target *t, uint64_t flags)
{
	fi_addr_t number = 0;
	int errors[1] = {0};
	int n;

	if (!t->av)
		return -FI_ENOSYS;
	n = fi_av_insert(t->av, t->end.name, 1, &number, flags, flags & FI_SYNC_ERR ? errors : NULL);
	return n == 1 ? 0 : n;
}

static ssize_t cq_open_with(struct t_target *t, uint64_t flags)
{
	static struct fi_ops_cq_owner ops = {.size = sizeof(ops)}; /* of a queue that never has an entry */
	static struct fid_peer_cq owner = {.fid = {.fclass = FI_CLASS_PEER_CQ}, .owner_ops = &ops};
	struct fi_peer_cq_context peer = {.size = sizeof(peer), .cq = &owner};
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .flags = flags};
	struct fid_cq *cq;

	return t_opened(fi_cq_open(t->domain, &attr, &cq, flags & FI_PEER ? &peer : NULL), &cq);
}

static ssize_t cntr_open_with(struct t_target *t, uint64_t flags)
{
	struct fi_cntr_attr attr = {.flags = flags};
	struct fid_cntr *cntr;

	return t_opened(fi_cntr_open(t->domain, &attr, &cntr, NULL), &cntr);
}

static ssize_t eq_open_with(struct t_target *t, uint64_t flags)
{
	struct fi_eq_attr attr = {.flags = flags};
	struct fid_eq *eq;

	return t_opened(fi_eq_open(t->fabric, &attr, &eq, NULL), &eq);
}

static ssize_t mr_access_with(struct t_target *t, uint64_t access)
{
	struct fid_mr *mr;

	return t_opened(fi_mr_reg(t->domain, third, sizeof(third), access, 0, 77, 0, &mr, NULL), &mr);
}

static ssize_t mr_reg_with(struct t_target *t, uint64_t flags)
{
	struct fid_mr *mr;

	return t_opened(fi_mr_reg(t->domain, third, sizeof(third), FI_REMOTE_READ, 0, 78, flags, &mr, NULL), &mr);
}

static struct fid_ep *fresh_ep(struct t_target *t)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(t->domain, t->info, &ep, NULL), 0);
	return ep;
}

static ssize_t bind_cq_with(struct t_target *t, uint64_t flags)
{
	struct fid_ep *ep = fresh_ep(t);
	ssize_t err = fi_ep_bind(ep, &t->cq->fid, flags & (FI_TRANSMIT | FI_RECV) ? flags : flags | FI_TRANSMIT);

	return t_opened(0, &ep) ? -FI_EOTHER : err;
}

static ssize_t bind_cntr_with(struct t_target *t, uint64_t flags)
{
	struct fid_ep *ep = fresh_ep(t);
	ssize_t err = fi_ep_bind(ep, &t->cntr->fid, flags);

	return t_opened(0, &ep) ? -FI_EOTHER : err;
}

static ssize_t domain_bind_with(struct t_target *t, uint64_t flags)
{
	struct fid_domain *domain;
	ssize_t err = fi_domain(t->fabric, t->info, &domain, NULL);

	if (err)
		return err;
	err = fi_domain_bind(domain, &t->eq->fid, flags);
	return t_opened(0, &domain) ? -FI_EOTHER : err;
}

static ssize_t getinfo_with(struct t_target *t, uint64_t flags)
{
	struct fi_info *hints = t_kind_hints(t->type), *info;
	ssize_t err = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "5000", flags, hints, &info);

	fi_freeinfo(hints);
	if (!err)
		fi_freeinfo(info);
	return err;
}

static ssize_t default_with(struct t_target *t, uint64_t flags, bool tx)
{
	struct fi_info *hints = t_kind_hints(t->type), *info;
	ssize_t err;

	*(tx ? &hints->tx_attr->op_flags : &hints->rx_attr->op_flags) = flags;
	err = t_getinfo(hints, &info);
	fi_freeinfo(hints);
	if (!err)
		fi_freeinfo(info);
	return err;
}

static ssize_t tx_default_with(struct t_target *t, uint64_t flags)
{
	return default_with(t, flags, true);
}

static ssize_t rx_default_with(struct t_target *t, uint64_t flags)
{
	return default_with(t, flags, false);
}

static ssize_t query_atomic_with(struct t_target *t, uint64_t flags)
{
	struct fi_atomic_attr attr;

	return fi_query_atomic(t->domain, FI_UINT64, flags & FI_COMPARE_ATOMIC ? FI_CSWAP : FI_SUM, &attr, flags);
}

static const struct place {
	const char *name;
	ssize_t (*try)(struct t_target *t, uint64_t flags);
} places[] = {
	{"fi_sendmsg", sendmsg_with},
	{"fi_recvmsg", recvmsg_with},
	{"fi_tsendmsg", tsendmsg_with},
	{"fi_trecvmsg", trecvmsg_with},
	{"fi_readmsg", readmsg_with},
	{"fi_writemsg", writemsg_with},
	{"fi_atomicmsg", atomicmsg_with},
	{"fi_fetch_atomicmsg", fetch_atomicmsg_with},
	{"fi_compare_atomicmsg", compare_atomicmsg_with},
	{"tx_attr.op_flags", tx_default_with},
	{"rx_attr.op_flags", rx_default_with},
	{"fi_getinfo", getinfo_with},
	{"fi_av_open", av_open_with},
	{"fi_av_insert", av_insert_with},
	{"fi_cq_open", cq_open_with},
	{"fi_cntr_open", cntr_open_with},
	{"fi_eq_open", eq_open_with},
	{"fi_mr_reg(access)", mr_access_with},
	{"fi_mr_reg(flags)", mr_reg_with},
	{"fi_ep_bind(cq)", bind_cq_with},
	{"fi_ep_bind(cntr)", bind_cntr_with},
	{"fi_domain_bind", domain_bind_with},
	{"fi_query_atomic", query_atomic_with},
};

void t_try_flag(struct t_target *t, const struct t_name *n)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		ssize_t result = -FI_EAGAIN;

		for (int tries = 0; result == -FI_EAGAIN && tries < TRIES; tries++) {
			struct fi_cq_tagged_entry entry;
			struct fi_cq_err_entry err;

			if (fi_cq_read(t->cq, &entry, 1) == -FI_EAVAIL)
				fi_cq_readerr(t->cq, &err, 0);
			if (t->type == FI_EP_MSG)
				t_side_drive(&t->server);
			result = places[i].try(t, n->value);
		}
		t_report(t, n->group, n->name, places[i].name, result);
	}
}
