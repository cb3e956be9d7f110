/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From packets to messages: what a channel's machine calls. A frame of one packet is read where it lies in the link's
 * receive pool; of a longer one the first packet has the record's head, and all go where the client says.
 */
#include "packet/channel.h"
#include "packet/inbound.h"
#include "packet/narrow.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/pull.h"
#include "packet/regions.h"
#include "packet/request.h"

#include "base/iov.h"
#include "base/log.h"
#include "rc/rc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct record {
	struct rwk_envelope env;
	uint32_t len;
	const unsigned char *payload;
};

/** Reads a record's head; false: it does not fit into what is left. */
static bool take_head(const unsigned char *p, const unsigned char *end, struct record *r)
{
	size_t size = 16;

	if (end - p < 16)
		return false;
	memcpy(&r->env.head, p, 8);
	memcpy(&r->env.tag, p + 8, 8);
	r->env.data = 0;
	r->len = r->env.spare;
	r->env.spare = 0;
	if (r->env.flags & RWK_ENV_DATA) {
		size = 24;
		if (end - p < 24)
			return false;
		memcpy(&r->env.data, p + 16, 8);
	}
	r->payload = p + size;
	return true;
}

/** A record of the service's own; `last`: of its frame. */
static void own_record(struct rwk_packet_channel *ch, const struct record *r, bool last)
{
	switch (r->env.kind) {
	case RWK_KIND_PULL:
		rwk_packet_pull_asked(ch, r->payload, r->len);
		break;
	case RWK_KIND_PULLED:
		rwk_packet_pull_answered(ch, &r->env);
		break;
	case RWK_KIND_WROTE:
		rwk_packet_push_asked(ch, &r->env);
		break;
	case RWK_KIND_BYE:
		if (!last) {
			rwk_packet_breach(ch, "something behind its good-bye");
			break;
		}
		ch->deaf = true;
		rwk_packet_say_bye(ch);
		rwk_packet_doom(ch, -ECONNRESET);
		break;
	default:
		rwk_packet_breach(ch, "a record of an unknown kind");
	}
}

static int whole_records(struct rwk_packet_channel *ch, const unsigned char *p, const unsigned char *end)
{
	const struct rwk_client *client = ch->port->client;
	void *cookie = ch->port->cookie;
	struct record r;

	while (p < end) {
		if (!take_head(p, end, &r) || r.len > (size_t)(end - r.payload)) {
			rwk_packet_breach(ch, "a record longer than its frame");
			return -EINVAL;
		}
		ch->port->count.records_in++;
		if (rwk_likely(r.env.kind < RWK_KIND_SERVICE))
			client->message(cookie, &ch->base, &r.env, r.payload, r.len);
		else
			own_record(ch, &r, r.payload + r.len == end);
		if (ch->deaf)
			return ch->doom == -EPROTO ? -EINVAL : 0; /* nothing comes after good-bye */
		p = r.payload + r.len;
	}
	return 0;
}

static int piece(struct rwk_packet_channel *ch, unsigned where, const void *bytes, size_t len)
{
	struct rwk_place *place = ch->place;

	if (!place || len > ch->expected - ch->arrived) {
		rwk_packet_breach(ch, "a frame longer than its record");
		return -EINVAL;
	}
	rwk_iov_scatter(place->iov, place->iov_count, place->at, bytes, len);
	place->at += len;
	ch->arrived += (uint32_t)len;
	if (!(where & RWK_PIECE_LAST))
		return 0;
	if (ch->arrived != ch->expected) {
		rwk_packet_breach(ch, "a frame shorter than its record");
		return -EINVAL;
	}
	ch->place = NULL;
	ch->port->client->end(ch->port->cookie, &ch->base, place, 0);
	return 0;
}

/** Bytes of a message that comes by that connection. What the port's own ends send is another matter. */
static uint32_t longest(const struct rwk_packet_channel *ch)
{
	return ch->shared ? RWK_SEND_MAX_LESS : RWK_SEND_MAX;
}

/** The first packet of a long message. */
static int begin(struct rwk_packet_channel *ch, const unsigned char *p, const unsigned char *end)
{
	struct record r;

	if (ch->place || !take_head(p, end, &r) || r.env.kind >= RWK_KIND_SERVICE || r.len > longest(ch)) {
		rwk_packet_breach(ch, "a long message without a head");
		return -EINVAL;
	}
	ch->port->count.records_in++;
	ch->expected = r.len;
	ch->arrived = 0;
	ch->place = ch->port->client->begin(ch->port->cookie, &ch->base, &r.env, r.len);
	ch->place->at = 0;
	return piece(ch, RWK_PIECE_FIRST, r.payload, (size_t)(end - r.payload));
}

int rwk_packet_receive(struct rwk_packet_channel *ch, unsigned where, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t word;

	if (!(where & RWK_PIECE_FIRST))
		return piece(ch, where, bytes, len);
	if (len < RWK_FRAME_HEAD) {
		rwk_packet_breach(ch, "a frame without its head");
		return -EINVAL;
	}
	ch->port->count.frames_in++;
	memcpy(&word, p, sizeof(word));
	if (word & RWK_FRAME_ACK) {
		ch->ack = word;
		if (ch->shared) /* the initiator's machine is another; clients of other channels may wait for it, too */
			rwk_packet_take_ack(ch);
	}
	p += RWK_FRAME_HEAD;
	if (where & RWK_PIECE_LAST)
		return whole_records(ch, p, p + len - RWK_FRAME_HEAD);
	return begin(ch, p, p + len - RWK_FRAME_HEAD);
}

static int receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	(void)w;
	return rwk_packet_receive(user, where, bytes, len);
}

static int reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	struct rwk_packet_channel *ch = user;
	int rc = rwk_packet_region_check(ch, key, address, len, access);

	(void)w;
	if (rc)
		ch->denied = (int16_t)rc;
	return rc;
}

int rwk_packet_write(struct rwk_packet_channel *ch, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct iovec iov[RWK_KEYS_IOV];
	int n = rwk_packet_region_find(ch, key, address, len, RWK_REACH_WRITE, iov, RWK_KEYS_IOV);

	if (n < 0) {
		ch->denied = (int16_t)n;
		return n;
	}
	rwk_iov_scatter(iov, (size_t)n, 0, bytes, len);
	return 0;
}

static int write_piece(
	void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	(void)w;
	return rwk_packet_write(user, key, address, bytes, len);
}

static int written(void *user, const struct rwk_wire *w)
{
	(void)user;
	(void)w;
	return -EINVAL; /* we never send one */
}

static int read_piece(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	struct rwk_packet_channel *ch = user;

	return rwk_packet_region_find(ch, key, address, len, RWK_REACH_READ, iov, max);
}

static int atomic(void *user, const struct rwk_wire *w, uint64_t *before)
{
	(void)user;
	(void)w;
	(void)before;
	return -EACCES; /* no region is exposed for them */
}

/*
 * Early packets. They are kept by number in a table that exists from the first loss on.
 */
struct rwk_kept {
	struct rwk_wire w;
	size_t len;
	unsigned char bytes[];
};

static int keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	struct rwk_packet_channel *ch = user;
	struct rwk_kept *k = malloc(sizeof(*k) + len);

	if (!k)
		return -ENOMEM;
	if (!ch->kept)
		ch->kept = calloc(RWK_RC_WINDOW_MAX, sizeof(struct rwk_kept *));
	if (!ch->kept) {
		free(k);
		return -ENOMEM;
	}
	k->w = *w;
	k->len = len;
	memcpy(k->bytes, bytes, len);
	free(ch->kept[slot]);
	ch->kept[slot] = k;
	return 0;
}

static const void *kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	struct rwk_packet_channel *ch = user;

	*w = ch->kept[slot]->w;
	*len = ch->kept[slot]->len;
	return ch->kept[slot]->bytes;
}

static void drop(void *user, uint32_t slot)
{
	struct rwk_packet_channel *ch = user;

	free(ch->kept[slot]);
	ch->kept[slot] = NULL;
}

void rwk_packet_kept_free(struct rwk_packet_channel *ch)
{
	for (uint32_t i = 0; ch->kept && i < RWK_RC_WINDOW_MAX; i++)
		free(ch->kept[i]);
	free(ch->kept);
	ch->kept = NULL;
}

static void failed(void *user, int err)
{
	struct rwk_packet_channel *ch = user;

	rwk_warn("packets: the connection to rank %u failed: %s", rwk_address_rank(&ch->address), strerror(-err));
	rwk_packet_doom(ch, -EPROTO);
}

static void silent(void *user, bool anew)
{
	rwk_packet_silent(user, anew);
}

const struct rwk_machine_host rwk_packet_host = {
	.emit = rwk_packet_emit,
	.done = rwk_packet_done,
	.failed = failed,
	.silent = silent,
	.receive = receive,
	.reach = reach,
	.write = write_piece,
	.written = written,
	.read = read_piece,
	.atomic = atomic,
	.keep = keep,
	.kept = kept,
	.drop = drop,
};
