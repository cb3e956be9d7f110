/* SPDX-License-Identifier: BSD-3-Clause */
/* What the connection layer reports, as events of the endpoints' queues. */
#include "bindings/libfabric/msg.h"

int rwk_fi_msg_make_events(struct rwk_fi_msg_ep *ep)
{
	if (!ep->begins)
		ep->begins = rwk_fi_eq_new_event(RWK_PRIVATE_MAX);
	if (!ep->ends)
		ep->ends = rwk_fi_eq_new_event(RWK_PRIVATE_MAX);
	return ep->begins && ep->ends ? 0 : -FI_ENOMEM;
}

static struct rwk_fi_event *take(struct rwk_fi_event **ev)
{
	struct rwk_fi_event *taken = *ev;

	*ev = NULL;
	return taken;
}

void rwk_fi_msg_put_shutdown(struct rwk_fi_msg_ep *ep)
{
	rwk_fi_eq_put(ep->eq, take(&ep->ends), FI_SHUTDOWN, &ep->fid.fid, NULL, NULL, 0);
}

static void put_error(struct rwk_fi_msg_ep *ep, int err, const struct rwk_connection_event *e)
{
	rwk_fi_eq_put_error(ep->eq, take(&ep->ends), &ep->fid.fid, err, e->private_data, e->private_length);
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
		rwk_fi_msg_put_shutdown(ep);
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
	rwk_fi_eq_put(ep->eq, take(&ep->begins), FI_CONNECTED, &ep->fid.fid, NULL, e->private_data, e->private_length);
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
