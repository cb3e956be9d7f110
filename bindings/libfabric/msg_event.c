/* SPDX-License-Identifier: BSD-3-Clause */
/* What the connection layer reports, as events of the endpoints' queues. */
#include "bindings/libfabric/msg.h"

#include "base/log.h"

static void lost(const char *what)
{
	rwk_warn("event queue: no memory for %s, which is lost", what);
}

static void put(struct rwk_fi_msg_ep *ep, uint32_t number, const struct rwk_connection_event *e)
{
	if (rwk_fi_eq_put(ep->eq, number, &ep->fid.fid, NULL, e->private_data, e->private_length))
		lost(number == FI_CONNECTED ? "FI_CONNECTED" : "FI_SHUTDOWN");
}

static void put_error(struct rwk_fi_msg_ep *ep, int err, const struct rwk_connection_event *e)
{
	if (rwk_fi_eq_put_error(ep->eq, &ep->fid.fid, err, e->private_data, e->private_length))
		lost("an error");
}

/* The last event of a connection: nothing is left of it but what is posted, which comes back. */
static void over(struct rwk_fi_msg_ep *ep, const struct rwk_connection_event *e)
{
	bool connected = ep->state == RWK_FI_CONNECTED;

	rwk_connection_destroy(ep->connection);
	ep->connection = NULL;
	ep->state = RWK_FI_OVER;
	rwk_qp_modify(ep->qp, RWK_QPS_ERR, NULL);
	if (connected)
		put(ep, FI_SHUTDOWN, e);
	else if (e->type == RWK_CONNECTION_REJECTED)
		put_error(ep, FI_ECONNREFUSED, e);
	else
		put_error(ep, e->status ? -e->status : FI_ECONNABORTED, e);
}

static void of_endpoint(struct rwk_fi_msg_ep *ep, const struct rwk_connection_event *e)
{
	if (e->type != RWK_CONNECTION_ESTABLISHED) {
		over(ep, e);
		return;
	}
	ep->state = RWK_FI_CONNECTED;
	put(ep, FI_CONNECTED, e);
}

static void asked(struct rwk_fi_device *d, const struct rwk_connection_event *e)
{
	for (struct rwk_list *l = d->passives.next; l != &d->passives; l = l->next) {
		struct rwk_fi_msg_passive *pep = rwk_container_of(l, struct rwk_fi_msg_passive, link);

		if (pep->listener != e->listener)
			continue;
		rwk_fi_msg_ask(pep, e);
		return;
	}
	rwk_connection_destroy(e->connection); /* who listened does so no more */
}

static void withdrawn(struct rwk_fi_device *d, const struct rwk_connection_event *e)
{
	for (struct rwk_list *l = d->requests.next; l != &d->requests; l = l->next) {
		struct rwk_fi_msg_request *r = rwk_container_of(l, struct rwk_fi_msg_request, link);

		if (r->connection != e->connection)
			continue;
		rwk_fi_msg_withdraw(r);
		return;
	}
}

void rwk_fi_msg_event(struct rwk_fi_device *d, const struct rwk_connection_event *e)
{
	if (e->type == RWK_CONNECTION_REQUEST)
		asked(d, e);
	else if (e->user)
		of_endpoint(e->user, e);
	else
		withdrawn(d, e);
}
