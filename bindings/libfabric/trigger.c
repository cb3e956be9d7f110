/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/trigger.h"

#include "base/log.h"

/* What the context says. */
static int read_condition(const struct rwk_fi_ep *ep, void *context, struct rwk_fi_when *when)
{
	const struct fi_triggered_context *c = context;
	struct fid_cntr *fid;

	if (!(ep->caps & FI_TRIGGER)) {
		rwk_info("the endpoint was opened without the capability FI_TRIGGER");
		return -FI_EOPNOTSUPP;
	}
	if (c && c->event_type != FI_TRIGGER_THRESHOLD) {
		rwk_info("FI_TRIGGER: event type %d; there is FI_TRIGGER_THRESHOLD", c->event_type);
		return -FI_ENOSYS;
	}
	fid = c ? c->trigger.threshold.cntr : NULL;
	*when = (struct rwk_fi_when){.context = context};
	when->cntr = fid ? rwk_container_of(fid, struct rwk_fi_cntr, fid) : NULL;
	if (!fid || when->cntr->domain != ep->domain) {
		rwk_warn("FI_TRIGGER: %s", !c     ? "the context is NULL; it must be a struct fi_triggered_context"
					   : !fid ? "the context names no counter"
						  : "the counter is another domain's");
		return -FI_EINVAL;
	}
	if (when->cntr->owner)
		return -FI_ENOSYS; /* another provider has its numbers */
	when->threshold = c->trigger.threshold.threshold;
	return 0;
}

typedef int deferrer(struct rwk_fi_ep *ep, const struct rwk_fi_letter *l, const struct rwk_fi_when *when);

static ssize_t message(struct rwk_fi_ep *ep, const struct rwk_fi_letter *l, void *context, deferrer *defer)
{
	struct rwk_fi_when when;
	int err = read_condition(ep, context, &when);

	if (!err)
		err = rwk_fi_unite(&ep->domain->groups);
	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	err = defer(ep, l, &when);
	rwk_fi_leave(&ep->lock);
	return err;
}

ssize_t rwk_fi_trigger_send(struct rwk_fi_ep *ep, const struct fi_msg *msg, uint32_t flags)
{
	const struct rwk_fi_letter l = rwk_fi_letter(msg, flags);

	return message(ep, &l, msg->context, rwk_fi_defer_send);
}

ssize_t rwk_fi_trigger_recv(struct rwk_fi_ep *ep, const struct fi_msg *msg, uint32_t flags)
{
	const struct rwk_fi_letter l = rwk_fi_letter(msg, flags);

	return message(ep, &l, msg->context, rwk_fi_defer_recv);
}

ssize_t rwk_fi_trigger_tsend(struct rwk_fi_ep *ep, const struct fi_msg_tagged *msg, uint32_t flags)
{
	const struct rwk_fi_letter l = rwk_fi_tagged_letter(msg, flags);

	return message(ep, &l, msg->context, rwk_fi_defer_send);
}

ssize_t rwk_fi_trigger_trecv(struct rwk_fi_ep *ep, const struct fi_msg_tagged *msg, uint32_t flags)
{
	const struct rwk_fi_letter l = rwk_fi_tagged_letter(msg, flags);

	return message(ep, &l, msg->context, rwk_fi_defer_recv);
}

ssize_t rwk_fi_trigger_access(
	struct rwk_fi_ep *ep, fi_addr_t to, const struct rwk_rma_args *a, rwk_fi_starter *start, bool atomic)
{
	struct rwk_fi_when when;
	int err = 0;

	if (a->flags & RWK_FI_DEFERRED)
		when = *(const struct rwk_fi_when *)a->context;
	else
		err = read_condition(ep, a->context, &when);
	if (!err)
		err = rwk_fi_unite(&ep->domain->groups);
	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	err = rwk_fi_defer_access(ep, to, a, start, atomic, &when);
	rwk_fi_leave(&ep->lock);
	return err;
}
