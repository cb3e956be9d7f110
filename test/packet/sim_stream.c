/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/sim_stream.h"

#include "base/compiler.h"

#include <errno.h>
#include <stdlib.h>

struct stream {
	struct rwk_link pub;
	struct rwk_link *node;
	uint32_t name; /* number of the lossy node */
};

static uint32_t node_of[UINT16_MAX + 1]; /* by name; 0: there is none */
static uint32_t name_of[UINT16_MAX + 1]; /* by node */

static struct stream *stream_of(const struct rwk_link *l)
{
	return rwk_container_of(l, struct stream, pub);
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_link *l = &((struct stream *)user)->pub;
	struct rwk_link_address name = rwk_sim_address(name_of[rwk_sim_address_number(from)]);

	l->packet(l->user, &name, bytes, len);
}

static struct rwk_link_address there(const struct rwk_link_address *to)
{
	return rwk_sim_address(node_of[rwk_sim_address_number(to)]);
}

static size_t stream_mtu(struct rwk_link *l, const struct rwk_link_address *to)
{
	const struct rwk_link_address at = there(to);

	return stream_of(l)->node->ops->mtu(stream_of(l)->node, &at);
}

static int stream_send(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	const struct rwk_link_address at = there(to);

	return stream_of(l)->node->ops->send(stream_of(l)->node, &at, iov, count);
}

static void stream_flush(struct rwk_link *l)
{
	stream_of(l)->node->ops->flush(stream_of(l)->node);
}

static int stream_progress(struct rwk_link *l, int budget)
{
	return stream_of(l)->node->ops->progress(stream_of(l)->node, budget);
}

static rwk_time stream_now(struct rwk_link *l)
{
	return stream_of(l)->node->ops->now(stream_of(l)->node);
}

static int stream_arm(struct rwk_link *l)
{
	return stream_of(l)->node->ops->arm(stream_of(l)->node);
}

static int stream_wait_fd(struct rwk_link *l, int i)
{
	(void)l;
	(void)i;
	return -1;
}

static void stream_close(struct rwk_link *l)
{
	struct stream *st = stream_of(l);

	node_of[st->name] = 0;
	st->node->ops->close(st->node);
	free(st);
}

static const struct rwk_link_ops stream_ops = {
	.name = "sim stream",
	.traits = RWK_LINK_IS_STREAM,
	.mtu = stream_mtu,
	.send = stream_send,
	.flush = stream_flush,
	.progress = stream_progress,
	.now = stream_now,
	.arm = stream_arm,
	.wait_fd = stream_wait_fd,
	.close = stream_close,
};

int sim_stream_open(struct rwk_sim *s, const struct rwk_link *lossy, struct rwk_link **out)
{
	struct stream *st = calloc(1, sizeof(*st));
	int rc = st ? rwk_sim_node(s, &st->node) : -ENOMEM;

	if (rc) {
		free(st);
		return rc;
	}
	st->pub.ops = &stream_ops;
	st->node->packet = on_packet;
	st->node->user = st;
	st->name = rwk_sim_number(lossy);
	node_of[st->name] = rwk_sim_number(st->node);
	name_of[rwk_sim_number(st->node)] = st->name;
	*out = &st->pub;
	return 0;
}

bool sim_stream_waiting(const struct rwk_link *l)
{
	return rwk_sim_waiting(stream_of(l)->node);
}

void sim_stream_set_path(struct rwk_sim *s, uint32_t from, uint32_t to, const struct rwk_sim_path *path)
{
	rwk_sim_set_path(s, node_of[from], node_of[to], path);
}
