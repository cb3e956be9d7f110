/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_sep.h"

struct fi_info *t_sep_hints(void)
{
	struct fi_info *hints = t_hints();

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_NAMED_RX_CTX | FI_SOURCE | FI_DIRECTED_RECV |
		      FI_MULTI_RECV | FI_TRIGGER | FI_RMA_EVENT;
	hints->ep_attr->tx_ctx_cnt = T_TX;
	hints->ep_attr->rx_ctx_cnt = T_RX;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	return hints;
}

static struct fid_cq *open_queue(struct t_domain *d, struct fid_ep *ep, uint64_t flags)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(d->domain, &attr, &cq, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, flags), 0);
	return cq;
}

void t_sep_make(struct t_sep *s, struct t_domain *d, size_t names)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .rx_ctx_bits = T_BITS, .count = names};

	assert_int_equal(fi_scalable_ep(d->domain, d->info, &s->sep, NULL), 0);
	assert_int_equal(fi_av_open(d->domain, &attr, &s->av, NULL), 0);
	for (int i = 0; i < T_TX; i++) {
		assert_int_equal(fi_tx_context(s->sep, i, NULL, &s->tx[i], NULL), 0);
		s->txq[i] = open_queue(d, s->tx[i], FI_TRANSMIT);
	}
	for (int i = 0; i < T_RX; i++) {
		assert_int_equal(fi_rx_context(s->sep, i, NULL, &s->rx[i], NULL), 0);
		s->rxq[i] = open_queue(d, s->rx[i], FI_RECV);
	}
	assert_int_equal(fi_scalable_ep_bind(s->sep, &s->av->fid, 0), 0);
}

void t_sep_enable(struct t_sep *s)
{
	for (int i = 0; i < T_TX; i++)
		assert_int_equal(fi_enable(s->tx[i]), 0);
	for (int i = 0; i < T_RX; i++)
		assert_int_equal(fi_enable(s->rx[i]), 0);
	assert_int_equal(fi_enable(s->sep), 0);
	s->name_len = sizeof(s->name);
	assert_int_equal(fi_getname(&s->sep->fid, s->name, &s->name_len), 0);
}

void t_sep_open(struct t_sep *s, struct t_domain *d)
{
	t_sep_make(s, d, 0);
	t_sep_enable(s);
}

void t_sep_close(struct t_sep *s)
{
	for (int i = 0; i < T_TX; i++) {
		if (s->tx[i])
			assert_int_equal(fi_close(&s->tx[i]->fid), 0);
		assert_int_equal(fi_close(&s->txq[i]->fid), 0);
	}
	for (int i = 0; i < T_RX; i++) {
		assert_int_equal(fi_close(&s->rx[i]->fid), 0);
		assert_int_equal(fi_close(&s->rxq[i]->fid), 0);
	}
	assert_int_equal(fi_close(&s->sep->fid), 0);
	assert_int_equal(fi_close(&s->av->fid), 0);
}

fi_addr_t t_sep_insert(struct t_sep *s, const void *name)
{
	fi_addr_t number;

	assert_int_equal(fi_av_insert(s->av, name, 1, &number, 0, NULL), 1);
	return number;
}

static void nothing_in(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;

	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

void t_sep_nothing(struct t_sep *s)
{
	for (int i = 0; i < T_TX; i++)
		nothing_in(s->txq[i]);
	for (int i = 0; i < T_RX; i++)
		nothing_in(s->rxq[i]);
}
