/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_msg.h"

#include <arpa/inet.h>
#include <netinet/in.h>

struct fi_info *t_msg_hints(void)
{
	struct fi_info *hints = t_hints();

	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return hints;
}

void t_side_open(struct t_side *s, const struct t_msg_options *o)
{
	static const struct t_msg_options defaults;
	struct fi_info *hints = t_msg_hints();
	struct fi_eq_attr eq = {0};

	*s = (struct t_side){.o = o ? *o : defaults};
	eq.wait_obj = s->o.wait;
	if (s->o.addr_format)
		hints->addr_format = s->o.addr_format;
	if (s->o.mode)
		hints->mode = s->o.mode;
	hints->caps = s->o.caps;
	hints->tx_attr->op_flags = s->o.tx_op_flags;
	hints->tx_attr->size = s->o.tx_size;
	hints->rx_attr->size = s->o.rx_size;
	hints->domain_attr->threading = s->o.threading;
	hints->domain_attr->data_progress = s->o.progress ? s->o.progress : FI_PROGRESS_MANUAL;
	assert_int_equal(t_getinfo(hints, &s->info), 0);
	fi_freeinfo(hints);
	assert_int_equal(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), 0);
	assert_int_equal(fi_eq_open(s->fabric, &eq, &s->eq, NULL), 0);
	assert_int_equal(fi_domain(s->fabric, s->info, &s->domain, NULL), 0);
	if (s->o.domain_eq)
		assert_int_equal(fi_domain_bind(s->domain, &s->eq->fid, 0), 0);
}

static void loopback(const struct t_side *s, struct sockaddr_storage *name, size_t *len)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	if (s->info->addr_format == FI_SOCKADDR_IN6) {
		memcpy(name, &in6, sizeof(in6));
		*len = sizeof(in6);
	} else {
		memcpy(name, &in, sizeof(in));
		*len = sizeof(in);
	}
}

void t_side_listen(struct t_side *s)
{
	size_t len;

	loopback(s, &s->name, &len);
	assert_int_equal(fi_passive_ep(s->fabric, s->info, &s->pep, s), 0);
	assert_int_equal(fi_setname(&s->pep->fid, &s->name, len), 0);
	assert_int_equal(fi_pep_bind(s->pep, &s->eq->fid, 0), 0);
	assert_int_equal(fi_listen(s->pep), 0);
	len = sizeof(s->name);
	assert_int_equal(fi_getname(&s->pep->fid, &s->name, &len), 0);
	assert_int_not_equal(((struct sockaddr_in *)&s->name)->sin_port, 0);
}

static void bind_cntrs(struct t_side *s)
{
	struct fi_cntr_attr attr = {.wait_obj = s->o.wait};

	assert_int_equal(fi_cntr_open(s->domain, &attr, &s->tx_cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(s->domain, &attr, &s->rx_cntr, NULL), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->tx_cntr->fid, FI_SEND | FI_READ | FI_WRITE), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->rx_cntr->fid, FI_RECV), 0);
}

void t_side_endpoint(struct t_side *s, struct fi_info *info)
{
	struct fi_cq_attr attr = {0};

	attr.format = s->o.format ? s->o.format : FI_CQ_FORMAT_TAGGED;
	attr.wait_obj = s->set ? FI_WAIT_SET : s->o.wait;
	attr.wait_set = s->set;
	assert_int_equal(fi_endpoint(s->domain, info ? info : s->info, &s->ep, s), 0);
	if (!s->o.domain_eq)
		assert_int_equal(fi_ep_bind(s->ep, &s->eq->fid, 0), 0);
	if (s->srx)
		assert_int_equal(fi_ep_bind(s->ep, &s->srx->fid, 0), 0);
	if (s->o.cntrs) {
		bind_cntrs(s);
	} else {
		assert_int_equal(fi_cq_open(s->domain, &attr, &s->cq, NULL), 0);
		assert_int_equal(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV | s->o.bind_flags), 0);
	}
	assert_int_equal(fi_enable(s->ep), 0);
}

static void close_one(struct fid *fid)
{
	assert_int_equal(fi_close(fid), 0);
}

void t_side_close(struct t_side *s)
{
	if (s->ep)
		close_one(&s->ep->fid);
	if (s->cq)
		close_one(&s->cq->fid);
	if (s->tx_cntr)
		close_one(&s->tx_cntr->fid);
	if (s->rx_cntr)
		close_one(&s->rx_cntr->fid);
	if (s->pep)
		close_one(&s->pep->fid);
	close_one(&s->domain->fid);
	close_one(&s->eq->fid);
	close_one(&s->fabric->fid);
	fi_freeinfo(s->info);
}

void t_side_drive(struct t_side *s)
{
	uint32_t number;

	if (!s)
		return;
	t_drive(s->cq);
	fi_eq_read(s->eq, &number, NULL, 0, FI_PEEK);
}

static ssize_t read_event(struct t_side *s, struct t_side *other, uint32_t *number, struct t_event *e)
{
	_Alignas(struct fi_eq_cm_entry) unsigned char buf[sizeof(struct fi_eq_cm_entry) + T_CM_DATA];
	const struct fi_eq_cm_entry *entry = (const struct fi_eq_cm_entry *)(const void *)buf;
	int64_t end = t_now() + T_PATIENCE;
	ssize_t n;

	while ((n = fi_eq_read(s->eq, number, buf, sizeof(buf), 0)) == -FI_EAGAIN) {
		t_side_drive(other);
		t_drive(s->cq);
		if (t_now() > end)
			fail_msg("no event");
	}
	if (n < 0)
		return n;
	assert_true((size_t)n >= sizeof(*entry));
	e->fid = entry->fid;
	e->info = entry->info;
	e->len = (size_t)n - sizeof(*entry);
	memcpy(e->data, buf + sizeof(*entry), e->len);
	return n;
}

struct t_event t_side_event(struct t_side *s, struct t_side *other, uint32_t number)
{
	struct fi_eq_err_entry err = {0};
	struct t_event e = {0};
	uint32_t got = 0;
	ssize_t n = read_event(s, other, &got, &e);

	if (n == -FI_EAVAIL && fi_eq_readerr(s->eq, &err, 0) > 0)
		fail_msg("an error in place of event %u: %s", number, fi_strerror(err.err));
	assert_true(n > 0);
	assert_int_equal(got, number);
	return e;
}

struct fi_eq_err_entry t_side_error(struct t_side *s, struct t_side *other, unsigned char data[T_CM_DATA])
{
	struct fi_eq_err_entry err = {.err_data = data, .err_data_size = T_CM_DATA};
	struct t_event e;
	uint32_t got;

	assert_int_equal(read_event(s, other, &got, &e), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(s->eq, &err, 0), sizeof(err));
	return err;
}

void t_side_no_event(struct t_side *s, struct t_side *other)
{
	unsigned char buf[sizeof(struct fi_eq_cm_entry) + T_CM_DATA];
	uint32_t number;

	for (int i = 0; i < 200; i++) {
		t_side_drive(other);
		t_drive(s->cq);
		assert_int_equal(fi_eq_read(s->eq, &number, buf, sizeof(buf), 0), -FI_EAGAIN);
	}
}

void t_side_connect(struct t_side *client, struct t_side *server)
{
	struct t_event e;

	if (!client->ep)
		t_side_endpoint(client, NULL);
	assert_int_equal(fi_connect(client->ep, &server->name, NULL, 0), 0);
	e = t_side_event(server, client, FI_CONNREQ);
	t_side_endpoint(server, e.info);
	fi_freeinfo(e.info);
	assert_int_equal(fi_accept(server->ep, NULL, 0), 0);
	e = t_side_event(client, server, FI_CONNECTED);
	assert_ptr_equal(e.fid, &client->ep->fid);
	e = t_side_event(server, client, FI_CONNECTED);
	assert_ptr_equal(e.fid, &server->ep->fid);
}

void t_sides_listen(struct t_side *client, struct t_side *server, const struct t_msg_options *o)
{
	t_side_open(server, o);
	t_side_listen(server);
	t_side_open(client, o);
}

void t_sides_open(struct t_side *client, struct t_side *server, const struct t_msg_options *o)
{
	t_sides_listen(client, server, o);
	t_side_connect(client, server);
}

void t_sides_close(struct t_side *client, struct t_side *server)
{
	t_side_close(client);
	t_side_close(server);
}
