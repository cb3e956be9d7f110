/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening an endpoint, posting on it, waiting for it. */
#include "bench/common/clock.h"
#include "bench/ofi/one_sided.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MAX_ADDRESS    256
#define POLLS_PER_LOOK 65536 /* between two looks at the clock and the other process */

int bench_pair_failed(const struct bench_pair *p, const char *call, long rc)
{
	fprintf(stderr, "rank %d: provider %s: %s: %s\n", p->team.rank, p->provider, call, fi_strerror((int)-rc));
	return (int)rc;
}

static int get_info(struct bench_pair *p, bool delivered)
{
	const char *flags = p->one_sided ? p->one_sided->flags : "FI_TAGGED";
	const char *what = p->one_sided ? "one-sided operations" : "tagged messages";
	struct fi_info *hints = fi_allocinfo();
	int rc;

	if (!hints)
		return -ENOMEM;
	hints->caps = p->one_sided ? p->one_sided->caps : FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	/* What a write's completion says is the same everywhere: it is in place. */
	if (p->one_sided || delivered)
		hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	if (p->one_sided) {
		hints->domain_attr->mr_mode =
			FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL | FI_MR_ENDPOINT;
	} else {
		hints->tx_attr->msg_order = FI_ORDER_SAS;
		hints->rx_attr->msg_order = FI_ORDER_SAS;
	}
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(p->provider);
	rc = hints->fabric_attr->prov_name ? fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &p->info) : -ENOMEM;
	fi_freeinfo(hints);
	if (rc == -FI_ENODATA && !p->team.rank)
		fprintf(stderr,
			"--provider %s: libfabric has none of this name with RDM endpoints for %s; `fi_info -t "
			"FI_EP_RDM -c %s` lists those it has, FI_PROVIDER_PATH names the folder of others\n",
			p->provider, what, flags);
	else if (rc && rc != -FI_ENODATA)
		bench_pair_failed(p, "fi_getinfo", rc);
	return rc;
}

static int open_endpoint(struct bench_pair *p)
{
	struct fi_av_attr av_attr = {.type = p->info->domain_attr->av_type, .count = 2};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .size = 2 * p->contexts};
	int rc;

	rc = fi_fabric(p->info->fabric_attr, &p->fabric, NULL);
	if (rc)
		return bench_pair_failed(p, "fi_fabric", rc);
	rc = fi_domain(p->fabric, p->info, &p->domain, NULL);
	if (rc)
		return bench_pair_failed(p, "fi_domain", rc);
	rc = fi_av_open(p->domain, &av_attr, &p->av, NULL);
	if (rc)
		return bench_pair_failed(p, "fi_av_open", rc);
	rc = fi_cq_open(p->domain, &cq_attr, &p->cq, NULL);
	if (rc)
		return bench_pair_failed(p, "fi_cq_open", rc);
	rc = fi_endpoint(p->domain, p->info, &p->ep, NULL);
	if (rc)
		return bench_pair_failed(p, "fi_endpoint", rc);
	rc = fi_ep_bind(p->ep, &p->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV);
	if (rc)
		return bench_pair_failed(p, "fi_ep_bind", rc);
	rc = fi_enable(p->ep);
	return rc ? bench_pair_failed(p, "fi_enable", rc) : 0;
}

static int exchange_addresses(struct bench_pair *p)
{
	char mine[MAX_ADDRESS] = {0}, theirs[MAX_ADDRESS];
	size_t len = sizeof(mine);
	int rc = fi_getname(&p->ep->fid, mine, &len);

	if (rc)
		return bench_pair_failed(p, "fi_getname", rc);
	/* Packets of one size: the other side need not know its length. A process that ends closes its end. */
	if (send(p->channel, mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine) ||
		recv(p->channel, theirs, sizeof(theirs), 0) != sizeof(theirs)) {
		fprintf(stderr, "rank %d: the other process has ended before it sent its address\n", p->team.rank);
		return -ECONNRESET;
	}
	rc = fi_av_insert(p->av, theirs, 1, &p->peer, 0, NULL);
	return rc == 1 ? 0 : bench_pair_failed(p, "fi_av_insert", rc < 0 ? rc : -FI_EINVAL);
}

int bench_pair_open(struct bench_pair *p, const struct bench_options *o)
{
	int rc;

	p->provider = o->provider;
	p->contexts = o->window + 1;
	p->receive_context = calloc(p->contexts, sizeof(*p->receive_context));
	p->send_context = calloc(p->contexts, sizeof(*p->send_context));
	if (!p->receive_context || !p->send_context)
		return -ENOMEM;
	rc = get_info(p, o->delivered);
	if (!rc)
		rc = open_endpoint(p);
	if (!rc)
		rc = exchange_addresses(p);
	if (rc)
		return rc;
	p->inject_size = o->inject ? p->info->tx_attr->inject_size : 0;
	snprintf(p->library, sizeof(p->library), "libfabric %u.%u, provider %s %u.%u", FI_MAJOR(fi_version()),
		FI_MINOR(fi_version()), p->info->fabric_attr->prov_name, FI_MAJOR(p->info->fabric_attr->prov_version),
		FI_MINOR(p->info->fabric_attr->prov_version));
	p->team.library = p->library;
	return 0;
}

static void close_object(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

void bench_pair_close(struct bench_pair *p)
{
	close_object(p->ep ? &p->ep->fid : NULL);
	close_object(p->cq ? &p->cq->fid : NULL);
	close_object(p->av ? &p->av->fid : NULL);
	close_object(p->domain ? &p->domain->fid : NULL);
	close_object(p->fabric ? &p->fabric->fid : NULL);
	fi_freeinfo(p->info);
	free(p->send_context);
	free(p->receive_context);
}

static int completion_error(struct bench_pair *p, long rc)
{
	struct fi_cq_err_entry e = {0};
	char detail[120];

	if (rc != -FI_EAVAIL)
		return bench_pair_failed(p, "fi_cq_read", rc);
	if (fi_cq_readerr(p->cq, &e, 0) != 1)
		return bench_pair_failed(p, "fi_cq_readerr", rc);
	fprintf(stderr, "rank %d: provider %s: an operation failed: %s (%s)\n", p->team.rank, p->provider,
		fi_strerror(e.err), fi_cq_strerror(p->cq, e.prov_errno, e.err_data, detail, sizeof(detail)));
	return e.err ? -e.err : -EIO;
}

/* Takes what is in the queue. Returns the number of entries, or a negative errno, reported. */
static int reap(struct bench_pair *p)
{
	struct fi_cq_entry entry[16];
	long n = fi_cq_read(p->cq, entry, sizeof(entry) / sizeof(entry[0]));

	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0)
		return completion_error(p, n);
	for (long i = 0; i < n; i++) {
		struct fi_context2 *c = entry[i].op_context;

		if (c >= p->receive_context && c < p->receive_context + p->contexts)
			p->receives_done++;
		else
			p->sends_done++;
	}
	return (int)n;
}

static int peer_is_gone(const struct bench_pair *p)
{
	struct pollfd f = {.fd = p->channel, .events = POLLIN};

	return poll(&f, 1, 0) > 0 && f.revents & POLLHUP;
}

int bench_pair_poll(struct bench_pair *p, struct bench_wait *w)
{
	int n = reap(p);

	if (n) {
		w->empty = 0;
		w->since = 0;
		return n < 0 ? n : 0;
	}
	if (++w->empty % POLLS_PER_LOOK)
		return 0;
	if (peer_is_gone(p)) {
		fprintf(stderr, "rank %d: the other process has ended\n", p->team.rank);
		return -ECONNRESET;
	}
	if (w->since == 0)
		w->since = bench_now();
	if (bench_now() - w->since < BENCH_PATIENCE)
		return 0;
	fprintf(stderr,
		"rank %d: provider %s: nothing has completed for %d s; %lu of %lu sends and %lu of %lu receives are "
		"done\n",
		p->team.rank, p->provider, BENCH_PATIENCE, p->sends_done, p->sends, p->receives_done, p->receives);
	return -ETIMEDOUT;
}

int bench_pair_wait_receives(struct bench_pair *p, unsigned long done)
{
	struct bench_wait w = {0};
	int rc = 0;

	while (!rc && p->receives_done < done)
		rc = bench_pair_poll(p, &w);
	return rc;
}

int bench_pair_wait_sends(struct bench_pair *p)
{
	struct bench_wait w = {0};
	int rc = 0;

	while (!rc && p->sends_done < p->sends)
		rc = bench_pair_poll(p, &w);
	return rc;
}

int bench_pair_receive(struct bench_pair *p, void *data, size_t size, uint64_t tag, unsigned i)
{
	struct bench_wait w = {0};
	long rc;

	while ((rc = fi_trecv(p->ep, data, size, NULL, p->peer, tag, 0, &p->receive_context[i])) == -FI_EAGAIN) {
		rc = bench_pair_poll(p, &w);
		if (rc)
			return (int)rc;
	}
	if (rc)
		return bench_pair_failed(p, "fi_trecv", rc);
	p->receives++;
	return 0;
}

int bench_pair_send(struct bench_pair *p, const void *data, size_t size, uint64_t tag, unsigned i)
{
	bool inject = p->inject_size && size <= p->inject_size;
	struct bench_wait w = {0};
	long rc;

	for (;;) {
		if (inject)
			rc = fi_tinject(p->ep, data, size, p->peer, tag);
		else
			rc = fi_tsend(p->ep, data, size, NULL, p->peer, tag, &p->send_context[i]);
		if (rc != -FI_EAGAIN)
			break;
		rc = bench_pair_poll(p, &w);
		if (rc)
			return (int)rc;
	}
	if (rc)
		return bench_pair_failed(p, inject ? "fi_tinject" : "fi_tsend", rc);
	p->sends += !inject;
	return 0;
}

int bench_pair_exchange(struct bench_pair *p, const void *mine, void *theirs, size_t size)
{
	struct bench_wait w = {0};
	ssize_t n;
	int rc;

	if (send(p->channel, mine, size, MSG_NOSIGNAL) != (ssize_t)size)
		return -ECONNRESET;
	while ((n = recv(p->channel, theirs, size, MSG_DONTWAIT)) != (ssize_t)size) {
		if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
			fprintf(stderr, "rank %d: the other process has ended\n", p->team.rank);
			return -ECONNRESET;
		}
		rc = bench_pair_poll(p, &w);
		if (rc)
			return rc;
	}
	return 0;
}

int bench_pair_largest(struct bench_team *team, double *value)
{
	double theirs;
	int rc = bench_pair_exchange((struct bench_pair *)team, value, &theirs, sizeof(theirs));

	if (!rc && theirs > *value)
		*value = theirs;
	return rc;
}
