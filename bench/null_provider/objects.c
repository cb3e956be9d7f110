/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabric, domain, address vector and completion queue. */
#include "bench/null_provider/null.h"

#include <stdlib.h>
#include <string.h>

/* What does not exist here; each signature that is called needs its own. */
static int no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid;
	(void)other;
	(void)flags;
	return -FI_ENOSYS;
}

static int no_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)command;
	(void)arg;
	return -FI_ENOSYS;
}

static int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

/* Each object is one allocation that begins with its fid. */
static int close_object(struct fid *fid)
{
	free(fid);
	return 0;
}

/* `size` ends each table at the last call that is there; libfabric takes the rest for absent. */
static struct fi_ops plain_ops = {
	.size = offsetof(struct fi_ops, tostr),
	.close = close_object,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
};

static int av_insert(
	struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	(void)av;
	(void)flags;
	(void)context;
	for (size_t i = 0; fi_addr && i < count; i++)
		fi_addr[i] = ((const uint64_t *)addr)[i];
	return (int)count;
}

static int av_insertsvc(
	struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	(void)av;
	(void)node;
	(void)service;
	(void)fi_addr;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static int av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service, size_t svccnt,
	fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	(void)nodecnt;
	(void)svccnt;
	return av_insertsvc(av, node, service, fi_addr, flags, context);
}

static int av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	(void)av;
	(void)fi_addr;
	(void)count;
	(void)flags;
	return 0;
}

static struct fi_ops_av av_ops = {
	.size = offsetof(struct fi_ops_av, lookup),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
};

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	struct fid_av *av = calloc(1, sizeof(*av));

	(void)domain;
	(void)attr;
	if (!av)
		return -FI_ENOMEM;
	av->fid = (struct fid){.fclass = FI_CLASS_AV, .context = context, .ops = &plain_ops};
	av->ops = &av_ops;
	*out = av;
	return 0;
}

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct null_cq *q = (struct null_cq *)cq;
	char *to = buf;
	size_t n;

	for (n = 0; n < count && q->tail != q->head; n++, to += q->entry_size)
		memcpy(to, &q->entry[q->tail++ % NULL_QUEUE], q->entry_size);
	return n || !count ? (ssize_t)n : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	ssize_t n = cq_read(cq, buf, count);

	for (ssize_t i = 0; i < n; i++)
		src_addr[i] = 0;
	return n;
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *e, uint64_t flags)
{
	(void)cq;
	(void)e;
	(void)flags;
	return -FI_EAGAIN; /* nothing goes wrong where nothing is done */
}

static struct fi_ops_cq cq_ops = {
	.size = offsetof(struct fi_ops_cq, sread),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
};

int null_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	static const size_t entry_size[] = {
		[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_tagged_entry),
		[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
		[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
	};
	struct null_cq *q;

	(void)domain;
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -FI_ENOMEM;
	q->cq.fid = (struct fid){.fclass = FI_CLASS_CQ, .context = context, .ops = &plain_ops};
	q->cq.ops = &cq_ops;
	q->entry_size = entry_size[attr->format];
	*out = &q->cq;
	return 0;
}

static struct fi_ops_domain domain_ops = {
	.size = offsetof(struct fi_ops_domain, scalable_ep),
	.av_open = av_open,
	.cq_open = null_cq_open,
	.endpoint = null_endpoint,
};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, void *context)
{
	struct fid_domain *d = calloc(1, sizeof(*d));

	(void)fabric;
	(void)info;
	if (!d)
		return -FI_ENOMEM;
	d->fid = (struct fid){.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &plain_ops};
	d->ops = &domain_ops;
	*out = d;
	return 0;
}

static struct fi_ops_fabric fabric_ops = {
	.size = offsetof(struct fi_ops_fabric, passive_ep),
	.domain = domain_open,
};

int null_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct fid_fabric *f;

	(void)attr;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->fid = (struct fid){.fclass = FI_CLASS_FABRIC, .context = context, .ops = &plain_ops};
	f->ops = &fabric_ops;
	*out = f;
	return 0;
}
