/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/msg_domain.h"

#include "base/log.h"
#include "bindings/libfabric/device.h"

/*
 * The pd, and in it one key for all memory that there is, to be used by our own requests alone: the adapter copies, so
 * nothing need be pinned or translated before.
 */
static int open_pd(struct rwk_fi_domain *domain)
{
	int err = rwk_pd_create(domain->device->adapter, &domain->pd);

	if (err)
		return err;
	err = rwk_mr_register(domain->pd, NULL, SIZE_MAX, RWK_ACCESS_LOCAL_WRITE, &domain->memory);
	if (err) {
		rwk_pd_destroy(domain->pd);
		domain->pd = NULL;
	}
	return err;
}

static void close_pd(struct rwk_fi_domain *domain)
{
	rwk_fi_lock(domain->lock);
	if (domain->pd) {
		rwk_mr_deregister(domain->memory);
		rwk_pd_destroy(domain->pd);
	}
	rwk_fi_unlock(domain->lock);
}

int rwk_fi_msg_domain_open(struct rwk_fi_domain *domain)
{
	int err;

	if (domain->addr_format == RWK_FI_ADDR_FORMAT) {
		rwk_warn("fi_domain: connected endpoints have addresses of FI_SOCKADDR_IN and FI_SOCKADDR_IN6");
		return -FI_EINVAL;
	}
	err = rwk_fi_device_get(domain->fabric, &domain->device);
	if (err)
		return err;
	domain->lock = &domain->device->group.mutex;
	return 0;
}

int rwk_fi_msg_domain_use(struct rwk_fi_domain *domain)
{
	int err = rwk_fi_device_use(domain->device);

	return err || domain->pd ? err : open_pd(domain);
}

int rwk_fi_msg_domain_start(struct rwk_fi_domain *domain)
{
	int err;

	rwk_fi_lock(domain->lock);
	err = rwk_fi_msg_domain_use(domain);
	rwk_fi_unlock(domain->lock);
	return err || !domain->automatic ? err : rwk_fi_device_start(domain->fabric, &domain->started);
}

void rwk_fi_msg_domain_close(struct rwk_fi_domain *domain)
{
	rwk_fi_device_stop(domain->fabric, &domain->started);
	close_pd(domain);
}

/* Who fetches by an atomic reads, who changes by one writes. */
int rwk_fi_msg_mr_add(
	struct rwk_fi_domain *domain, const struct iovec *iov, uint64_t access, struct rwk_mr **mr, uint64_t *key)
{
	bool read = access & FI_REMOTE_READ, write = access & FI_REMOTE_WRITE;
	int err = rwk_fi_msg_domain_use(domain);

	if (err)
		return err;
	err = rwk_mr_register(domain->pd, iov->iov_base, iov->iov_len,
		(read ? (unsigned)RWK_ACCESS_READ : 0) | (write ? (unsigned)RWK_ACCESS_WRITE : 0) |
			(read && write ? (unsigned)RWK_ACCESS_ATOMIC : 0),
		mr);

	if (err)
		rwk_warn("fi_mr_reg: %zu bytes from %p on: %s", iov->iov_len, iov->iov_base, fi_strerror(-err));
	else
		*key = rwk_mr_key(*mr);
	return err;
}

void rwk_fi_msg_mr_remove(struct rwk_mr *mr)
{
	rwk_mr_deregister(mr);
}
