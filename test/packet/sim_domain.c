/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/sim_domain.h"

#include "base/compiler.h"
#include "shared_rc/shared_rc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

struct domain {
	struct rwk_link *node; /* NULL: there is none */
	void *memory;
	size_t size;
	unsigned taps;
	uint64_t id;
	struct tap *asks; /* who is in progress */
};

/** A member's own link on the node that all share. */
struct tap {
	struct rwk_link pub;
	struct domain *d;
};

static struct rwk_sim *sim;
static struct domain domains[SIM_HOSTS];
static struct domain own; /* of who is let in nowhere */
static bool shut;
static uint64_t last_id;

void sim_domain_use(struct rwk_sim *s)
{
	sim = s;
}

static struct tap *tap_of(struct rwk_link *l)
{
	return rwk_container_of(l, struct tap, pub);
}

static struct rwk_link *node_of(struct rwk_link *l)
{
	return tap_of(l)->d->node;
}

static void to_who_asks(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_link *l = &((struct domain *)user)->asks->pub;

	l->packet(l->user, from, bytes, len);
}

static size_t tap_mtu(struct rwk_link *l, const struct rwk_link_address *to)
{
	return node_of(l)->ops->mtu(node_of(l), to);
}

static int tap_send(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	return node_of(l)->ops->send(node_of(l), to, iov, count);
}

static void tap_flush(struct rwk_link *l)
{
	node_of(l)->ops->flush(node_of(l));
}

static int tap_progress(struct rwk_link *l, int budget)
{
	tap_of(l)->d->asks = tap_of(l);
	return node_of(l)->ops->progress(node_of(l), budget);
}

static rwk_time tap_now(struct rwk_link *l)
{
	return node_of(l)->ops->now(node_of(l));
}

static int tap_arm(struct rwk_link *l)
{
	return node_of(l)->ops->arm(node_of(l));
}

static int tap_wait_fd(struct rwk_link *l, int i)
{
	(void)l;
	(void)i;
	return -1;
}

static void tap_close(struct rwk_link *l)
{
	struct domain *d = tap_of(l)->d;

	if (!--d->taps) {
		d->node->ops->close(d->node);
		d->node = NULL;
	}
	free(tap_of(l));
}

static const struct rwk_link_ops tap_ops = {
	.name = "sim",
	.traits = RWK_LINK_MAY_LOSE | RWK_LINK_MAY_DUPLICATE | RWK_LINK_MAY_REORDER,
	.mtu = tap_mtu,
	.send = tap_send,
	.flush = tap_flush,
	.progress = tap_progress,
	.now = tap_now,
	.arm = tap_arm,
	.wait_fd = tap_wait_fd,
	.close = tap_close,
};

static int make(struct domain *d)
{
	const struct rwk_src_size size = {.members = 16, .targets = 64, .inbox_bytes = 1 << 17};
	int rc;

	d->size = rwk_src_segment_size(&size);
	d->memory = mmap(NULL, d->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (d->memory == MAP_FAILED)
		return -errno;
	rc = rwk_src_segment_format(d->memory, &size);
	if (!rc)
		rc = rwk_sim_node(sim, &d->node);
	if (rc) {
		munmap(d->memory, d->size);
		return rc;
	}
	d->node->packet = to_who_asks;
	d->node->user = d;
	d->id = ++last_id;
	return 0;
}

void sim_domain_shut(bool now)
{
	shut = now;
}

static int enter(struct domain *d, struct rwk_packet_domain *out)
{
	struct tap *t = malloc(sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	rc = d->node ? 0 : make(d);
	if (rc) {
		free(t);
		return rc;
	}
	d->taps++;
	*t = (struct tap){.pub = {.ops = &tap_ops}, .d = d};
	*out = (struct rwk_packet_domain){.seat = d,
		.memory = d->memory,
		.link = &t->pub,
		.id = d->id,
		.port = (uint16_t)rwk_sim_number(d->node)};
	return 0;
}

int sim_domain_join(const struct rwk_port_attr *attr, struct rwk_packet_domain *out)
{
	return shut ? -EAGAIN : enter(&domains[attr->address.node], out);
}

int sim_domain_join_alone(const struct rwk_port_attr *attr, struct rwk_packet_domain *out, int *why)
{
	(void)attr;
	*why = -EPERM;
	return enter(&own, out);
}

void sim_domain_attend(const struct rwk_packet_domain *d)
{
	(void)d;
}

void sim_domain_depart(const struct rwk_packet_domain *out)
{
	struct domain *d = out->seat;

	if (!d->node)
		munmap(d->memory, d->size);
}
