/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that open objects, set them up, and ask them. */
#include "try.h"

static void called(struct t_target *t, const char *name, long err)
{
	t_report(t, "call", name, "call", err);
}

/* Of those that find what is not there. */
static long empty(ssize_t n)
{
	return n == -FI_EAGAIN ? 0 : n;
}

static void try_fabric(struct t_target *t)
{
	struct fi_info *hints = t_kind_hints(t->type), *info;
	struct fid *fids[] = {&t->cq->fid};
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	long err = t_getinfo(hints, &info);

	fi_freeinfo(hints);
	called(t, "fi_getinfo", err);
	if (!err)
		fi_freeinfo(info);
	called(t, "fi_fabric", t_opened(fi_fabric(t->info->fabric_attr, &fabric, NULL), &fabric));
	called(t, "fi_domain", t_opened(fi_domain(t->fabric, t->info, &domain, NULL), &domain));
	called(t, "fi_domain2", t_opened(fi_domain2(t->fabric, t->info, &domain, FI_PEER, NULL), &domain));
	called(t, "fi_trywait", empty(fi_trywait(t->fabric, fids, 1)));
	called(t, "fi_open_ops", fi_open_ops(&t->domain->fid, "none", 0, &(void *){NULL}, NULL));
	called(t, "fi_set_ops", fi_set_ops(&t->domain->fid, "none", 0, NULL, NULL));
	called(t, "fi_control", fi_control(&t->cq->fid, FI_GETWAITOBJ, &(enum fi_wait_obj){0}));
	called(t, "fi_get_val", fi_get_val(&t->ep->fid, 0, &(uint64_t[8]){0}));
	called(t, "fi_set_val", fi_set_val(&t->ep->fid, 0, &(uint64_t[8]){0}));
}

/* A wait set of a queue, a poll set of a queue; what holds them is closed before they are. */
static void try_sets(struct t_target *t)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_SET};
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_poll_attr poll_attr = {0};
	struct fid_wait *wait;
	struct fid_poll *poll;
	struct fid_cq *cq;
	void *contexts[4];
	long err = fi_wait_open(t->fabric, &wait_attr, &wait);

	called(t, "fi_wait_open", err);
	if (!err) {
		attr.wait_set = wait;
		err = fi_cq_open(t->domain, &attr, &cq, NULL);
		called(t, "fi_wait", fi_wait(wait, 0) == -FI_ETIMEDOUT ? 0 : -FI_EOTHER);
		t_opened(err, &cq);
		t_opened(0, &wait);
	}
	err = fi_poll_open(t->domain, &poll_attr, &poll);
	called(t, "fi_poll_open", err);
	if (err)
		return;
	called(t, "fi_poll_add", fi_poll_add(poll, &t->cq->fid, 0));
	called(t, "fi_poll", fi_poll(poll, contexts, 4) < 0 ? -FI_EOTHER : 0);
	called(t, "fi_poll_del", fi_poll_del(poll, &t->cq->fid, 0));
	t_opened(0, &poll);
}

static void try_endpoints(struct t_target *t)
{
	struct fid_ep *ep, *alias;
	struct fid *fid;
	unsigned char name[64];
	size_t len = sizeof(name);
	long err = fi_endpoint(t->domain, t->info, &ep, NULL);

	called(t, "fi_endpoint", err);
	called(t, "fi_ep_bind", fi_ep_bind(ep, &t->cq->fid, FI_TRANSMIT | FI_RECV));
	if (t->av)
		fi_ep_bind(ep, &t->av->fid, 0);
	else
		fi_ep_bind(ep, &t->eq->fid, 0);
	called(t, "fi_enable", fi_enable(ep));
	called(t, "fi_close", fi_close(&ep->fid));
	called(t, "fi_getname", fi_getname(&t->ep->fid, name, &len));
	assert_int_equal(fi_endpoint(t->domain, t->info, &ep, NULL), 0);
	called(t, "fi_setname", fi_setname(&ep->fid, name, len));
	t_opened(0, &ep);
	called(t, "fi_endpoint2", t_opened(fi_endpoint2(t->domain, t->info, &ep, FI_PEER, NULL), &ep));
	called(t, "fi_alias", t_opened(fi_alias(&t->ep->fid, &fid, FI_TRANSMIT), &fid));
	called(t, "fi_ep_alias", t_opened(fi_ep_alias(t->ep, &alias, FI_TRANSMIT), &alias));
	len = sizeof(size_t);
	called(t, "fi_getopt",
		fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT,
			t->type == FI_EP_MSG ? FI_OPT_CM_DATA_SIZE : FI_OPT_MIN_MULTI_RECV, name, &len));
	called(t, "fi_setopt", fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &len, sizeof(len)));
}

/* Contexts of a scalable endpoint, or of a plain one where there are none, and such as endpoints share. */
static void try_contexts(struct t_target *t)
{
	struct fi_rx_attr shared = *t->info->rx_attr;
	struct fid_ep *sep, *tx, *rx;
	struct fid_stx *stx;
	struct fid *exported;
	long err = fi_scalable_ep(t->domain, t->info, &sep, NULL);

	called(t, "fi_scalable_ep", err);
	if (!err && t->av)
		called(t, "fi_scalable_ep_bind", fi_scalable_ep_bind(sep, &t->av->fid, 0));
	called(t, "fi_tx_context", t_opened(fi_tx_context(err ? t->ep : sep, 0, NULL, &tx, NULL), &tx));
	called(t, "fi_rx_context", t_opened(fi_rx_context(err ? t->ep : sep, 0, NULL, &rx, NULL), &rx));
	t_opened(err, &sep);
	called(t, "fi_stx_context", t_opened(fi_stx_context(t->domain, t->info->tx_attr, &stx, NULL), &stx));
	shared.caps &= ~(uint64_t)FI_DIRECTED_RECV; /* who hints at a shared context is not offered it */
	err = fi_srx_context(t->domain, &shared, &rx, NULL);
	called(t, "fi_srx_context", err);
	called(t, "fi_export_fid",
		t_opened(fi_export_fid(err ? &t->ep->fid : &rx->fid, 0, &exported, NULL), &exported));
	t_opened(err, &rx);
}

static void try_vector(struct t_target *t)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE}, with_events = {.type = FI_AV_TABLE, .flags = FI_EVENT};
	struct fid_av *av;
	fi_addr_t number[4];
	unsigned char name[64];
	char text[128];
	size_t len = sizeof(name);
	long err;

	if (!t->av)
		return;
	called(t, "fi_av_open", fi_av_open(t->domain, &attr, &av, NULL));
	called(t, "fi_av_insert", fi_av_insert(av, t->end.name, 1, number, 0, NULL) == 1 ? 0 : -FI_EOTHER);
	called(t, "fi_av_lookup", fi_av_lookup(av, number[0], name, &len));
	len = sizeof(text);
	called(t, "fi_av_straddr", fi_av_straddr(av, t->end.name, text, &len) ? 0 : -FI_EOTHER);
	called(t, "fi_av_remove", fi_av_remove(av, number, 1, 0));
	called(t, "fi_av_insertsvc", fi_av_insertsvc(av, "127.0.0.1", "5000", number, 0, NULL) == 1 ? 0 : -FI_EOTHER);
	called(t, "fi_av_insertsym",
		fi_av_insertsym(av, "127.0.0.1", 2, "5000", 2, number, 0, NULL) == 4 ? 0 : -FI_EOTHER);
	t_opened(0, &av);
	err = fi_av_open(t->domain, &with_events, &av, NULL);
	called(t, "fi_av_bind", err ? err : fi_av_bind(av, &t->eq->fid, 0));
	t_opened(err, &av);
}

static void try_memory(struct t_target *t)
{
	static char memory[64];
	struct iovec iov = {memory, sizeof(memory)};
	struct fi_mr_attr attr = {.mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ, .requested_key = 21};
	uint64_t base = 0, key;
	uint8_t raw[64];
	size_t len = sizeof(raw);
	struct fid_mr *mr;
	long err;

	called(t, "fi_mr_regv", t_opened(fi_mr_regv(t->domain, &iov, 1, FI_REMOTE_READ, 0, 22, 0, &mr, NULL), &mr));
	called(t, "fi_mr_regattr", t_opened(fi_mr_regattr(t->domain, &attr, 0, &mr), &mr));
	err = fi_mr_reg(t->domain, memory, sizeof(memory), FI_REMOTE_READ, 0, 23, 0, &mr, NULL);
	called(t, "fi_mr_reg", err);
	if (err)
		return;
	called(t, "fi_mr_raw_attr", fi_mr_raw_attr(mr, &base, raw, &len, 0));
	err = fi_mr_map_raw(t->domain, base, raw, len, &key, 0);
	called(t, "fi_mr_map_raw", err);
	called(t, "fi_mr_unmap_key", fi_mr_unmap_key(t->domain, err ? 1 : key));
	called(t, "fi_mr_refresh", fi_mr_refresh(mr, &iov, 1, 0));
	called(t, "fi_mr_bind", fi_mr_bind(mr, &t->cntr->fid, FI_REMOTE_WRITE));
	called(t, "fi_mr_enable", fi_mr_enable(mr));
	t_opened(0, &mr);
}

static void try_queues(struct t_target *t)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC};
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cq_msg_entry entry;
	struct fi_cq_err_entry error = {0};
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	fi_addr_t from;

	called(t, "fi_cq_open", fi_cq_open(t->domain, &attr, &cq, NULL));
	called(t, "fi_cq_read", empty(fi_cq_read(cq, &entry, 1)));
	called(t, "fi_cq_readfrom", empty(fi_cq_readfrom(cq, &entry, 1, &from)));
	called(t, "fi_cq_readerr", empty(fi_cq_readerr(cq, &error, 0)));
	called(t, "fi_cq_sread", empty(fi_cq_sread(cq, &entry, 1, NULL, 0)));
	called(t, "fi_cq_sreadfrom", empty(fi_cq_sreadfrom(cq, &entry, 1, &from, NULL, 0)));
	called(t, "fi_cq_signal", fi_cq_signal(cq));
	called(t, "fi_cq_strerror", fi_cq_strerror(cq, FI_EINVAL, NULL, NULL, 0) ? 0 : -FI_EOTHER);
	t_opened(0, &cq);
	called(t, "fi_cntr_open", fi_cntr_open(t->domain, &cntr_attr, &cntr, NULL));
	called(t, "fi_cntr_set", fi_cntr_set(cntr, 3));
	called(t, "fi_cntr_add", fi_cntr_add(cntr, 4));
	called(t, "fi_cntr_wait", fi_cntr_wait(cntr, 7, 1000));
	called(t, "fi_cntr_read", fi_cntr_read(cntr) == 7 ? 0 : -FI_EOTHER);
	called(t, "fi_cntr_seterr", fi_cntr_seterr(cntr, 1));
	called(t, "fi_cntr_adderr", fi_cntr_adderr(cntr, 2));
	called(t, "fi_cntr_readerr", fi_cntr_readerr(cntr) == 3 ? 0 : -FI_EOTHER);
	t_opened(0, &cntr);
}

static void try_events(struct t_target *t)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE};
	struct fi_eq_entry entry = {.data = 1};
	struct fi_eq_err_entry error = {0};
	struct fid_domain *domain;
	struct fid_eq *eq;
	uint32_t number;

	called(t, "fi_eq_open", fi_eq_open(t->fabric, &attr, &eq, NULL));
	called(t, "fi_eq_write",
		fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0) == sizeof(entry) ? 0 : -FI_EOTHER);
	called(t, "fi_eq_read", fi_eq_read(eq, &number, &entry, sizeof(entry), 0) == sizeof(entry) ? 0 : -FI_EOTHER);
	called(t, "fi_eq_sread", empty(fi_eq_sread(eq, &number, &entry, sizeof(entry), 0, 0)));
	called(t, "fi_eq_readerr", empty(fi_eq_readerr(eq, &error, 0)));
	called(t, "fi_eq_strerror", fi_eq_strerror(eq, FI_EINVAL, NULL, NULL, 0) ? 0 : -FI_EOTHER);
	assert_int_equal(fi_domain(t->fabric, t->info, &domain, NULL), 0);
	called(t, "fi_domain_bind", fi_domain_bind(domain, &eq->fid, 0));
	t_opened(0, &domain);
	t_opened(0, &eq);
}

void t_try_calls(struct t_target *t)
{
	try_fabric(t);
	try_sets(t);
	try_endpoints(t);
	try_contexts(t);
	try_vector(t);
	try_memory(t);
	try_queues(t);
	try_events(t);
}
