/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/bound.h"

#include "base/log.h"
#include "bindings/libfabric/peer.h"

#include <errno.h>

_Static_assert(RWK_F_PLAIN == FI_MSG && RWK_F_TAGGED == FI_TAGGED && RWK_F_RECV == FI_RECV && RWK_F_SEND == FI_SEND &&
		       RWK_F_MULTI == FI_MULTI_RECV && RWK_F_DATA == FI_REMOTE_CQ_DATA && RWK_F_RMA == FI_RMA &&
		       RWK_F_ATOMIC == FI_ATOMIC && RWK_F_READ == FI_READ && RWK_F_WRITE == FI_WRITE &&
		       RWK_F_REMOTE_WRITE == FI_REMOTE_WRITE,
	"an entry's flags need no translation");

#define ONE_SIDED (RWK_F_RMA | RWK_F_ATOMIC)

/* The sides that the bind flags name: FI_TRANSMIT (FI_SEND) and FI_RECV. */
static bool names_side(uint64_t flags, int side)
{
	return flags & (side == RWK_FI_TX ? FI_TRANSMIT : FI_RECV);
}

int rwk_fi_bind_cq(
	struct rwk_fi_side side[RWK_FI_SIDES], const struct rwk_fi_domain *domain, struct rwk_fi_cq *cq, uint64_t flags)
{
	if (flags & ~(uint64_t)(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) || !(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EBADFLAGS;
	if (cq->domain != domain) {
		rwk_warn("fi_ep_bind: the completion queue is another domain's");
		return -FI_EINVAL;
	}
	for (int s = 0; s < RWK_FI_SIDES; s++) {
		if (names_side(flags, s) && side[s].cq) {
			rwk_warn("fi_ep_bind: the endpoint has a completion queue for %s",
				s == RWK_FI_TX ? "sends" : "receives");
			return -FI_EINVAL;
		}
	}
	for (int s = 0; s < RWK_FI_SIDES; s++) {
		if (!names_side(flags, s))
			continue;
		side[s].cq = cq;
		side[s].selective = flags & FI_SELECTIVE_COMPLETION;
		rwk_fi_hold(&cq->refs);
	}
	return 0;
}

bool rwk_fi_is_counted(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], uint64_t flags)
{
	for (int k = 0; k < RWK_FI_COUNTED; k++) {
		if (rwk_fi_counts(flags, k) && cntr[k])
			return true;
	}
	return false;
}

int rwk_fi_check_av(
	const struct rwk_fi_av *bound, const struct rwk_fi_domain *domain, const struct rwk_fi_av *new, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (!bound && new->domain == domain)
		return 0;
	rwk_warn("fi_ep_bind: %s",
		bound ? "the endpoint has an address vector" : "the address vector is another domain's");
	return -FI_EINVAL;
}

int rwk_fi_check_cntr(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], const struct rwk_fi_domain *domain,
	const struct rwk_fi_cntr *new, uint64_t flags, uint64_t known)
{
	if (!flags || flags & ~known) {
		rwk_warn("fi_ep_bind: a counter of %#llx; there are counters of FI_SEND, FI_RECV, FI_READ%s",
			(unsigned long long)flags,
			known & FI_REMOTE_READ ? ", FI_WRITE, FI_REMOTE_READ and FI_REMOTE_WRITE" : " and FI_WRITE");
		return -FI_EINVAL;
	}
	if (new->domain != domain) {
		rwk_warn("fi_ep_bind: the counter is another domain's");
		return -FI_EINVAL;
	}
	if (rwk_fi_is_counted(cntr, flags)) {
		rwk_warn("fi_ep_bind: the endpoint has a counter for some of %#llx", (unsigned long long)flags);
		return -FI_EINVAL;
	}
	return 0;
}

int rwk_fi_bind_eq(struct rwk_fi_eq **slot, struct rwk_fi_eq *eq, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (*slot)
		return -FI_EINVAL;
	*slot = eq;
	rwk_fi_hold(&eq->refs);
	return 0;
}

int rwk_fi_check_bound(
	const struct rwk_fi_side side[RWK_FI_SIDES], struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], uint64_t caps)
{
	static const char *const names[] = {"what it starts", "receives"};
	static const uint64_t directions[] = {FI_SEND | FI_READ | FI_WRITE, FI_RECV};

	for (int s = 0; s < RWK_FI_SIDES; s++) {
		if (caps & directions[s] && !side[s].cq && !rwk_fi_is_counted(cntr, directions[s])) {
			rwk_warn("fi_enable: neither a completion queue nor a counter is bound for %s", names[s]);
			return -FI_ENOCQ;
		}
	}
	return 0;
}

/* What others do here comes by rwk_fi_reached. */
struct rwk_fi_cntr *rwk_fi_counter_of(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], uint32_t flags)
{
	if (flags & (RWK_F_REMOTE_WRITE | RWK_FI_NOT_COUNTED))
		return NULL;
	if (flags & ONE_SIDED)
		return cntr[flags & RWK_F_READ ? RWK_FI_READS : RWK_FI_WRITES];
	return cntr[flags & RWK_F_RECV ? RWK_FI_RECEIVES : RWK_FI_SENDS];
}

void rwk_fi_count(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], const struct rwk_completion *c)
{
	struct rwk_fi_cntr *counter = rwk_fi_counter_of(cntr, c->flags);

	if (counter)
		rwk_fi_cntr_count(counter, c->status);
}

/* Of what has failed. */
static bool wants_failed(const struct rwk_completion *c)
{
	/* Who asks for no entry and has no context could do nothing with one; Open MPI's acknowledgements are sent so,
	 * and it takes every error entry's context for a request. */
	if (c->flags & RWK_FI_INJECTED || (c->flags & RWK_FI_QUIET && !c->context)) {
		rwk_info("%s that nobody waits for was lost: %s",
			c->flags & ONE_SIDED ? "an access to a peer's memory" : "a message", fi_strerror(-c->status));
		return false;
	}
	return true;
}

bool rwk_fi_wants_entry(const struct rwk_fi_cq *cq, const struct rwk_completion *c)
{
	if (rwk_unlikely(c->status))
		return wants_failed(c) && cq;
	/* Quiet are neither errors nor the release of a multi-receive buffer. */
	return cq && (c->flags & (RWK_FI_QUIET | RWK_F_MULTI)) != RWK_FI_QUIET;
}

static int error_of(int status)
{
	return status == -EMSGSIZE ? FI_ETRUNC : -status;
}

void rwk_fi_put_entry(struct rwk_fi_cq *cq, const struct rwk_completion *c, fi_addr_t source)
{
	struct rwk_completion *entry;

	if (rwk_unlikely(cq->owner != NULL)) {
		rwk_fi_peer_cq_put(cq, c, source);
		return;
	}
	entry = rwk_fi_cq_room(cq);
	if (!entry)
		return;
	*entry = *c;
	entry->flags &= RWK_F_SHOWN;
	if (c->status)
		entry->status = error_of(c->status);
	else
		entry->user = source;
	rwk_fi_cq_written(cq);
}

void rwk_fi_unbind(
	struct rwk_fi_side side[RWK_FI_SIDES], struct rwk_fi_cntr *cntr[RWK_FI_COUNTED], struct rwk_fi_eq *eq)
{
	for (int s = 0; s < RWK_FI_SIDES; s++) {
		if (side[s].cq)
			rwk_fi_drop(&side[s].cq->refs);
	}
	for (int k = 0; k < RWK_FI_COUNTED; k++) {
		if (cntr[k])
			rwk_fi_drop(&cntr[k]->refs);
	}
	if (eq)
		rwk_fi_drop(&eq->refs);
}
