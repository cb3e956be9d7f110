/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and writes of a region that stays exposed. RC does them as all others (outbound.c), by the region's process
 * itself, which gains little for short ones.
 *
 * By SRC the region is published in the domain of its process's node (shared_rc.h), where whoever takes the packets
 * carries them out: the region's process may compute, or be stopped. They are RDMA Reads and Writes, and behind them a
 * Read of the region's status word, which says whether all of it could be done; only with that the op is done. Behind a
 * write it follows at once, and behind a read that is alone and not long: among others its answer would stand between
 * theirs, which the link sends by the dozen if they are of one length. What is sent again of a read may find less than
 * what was sent first: if anything was, or the status has not been read, it is read when all data is there.
 *
 * What could not be done ends with -EACCES or -EOPNOTSUPP: the client has other ways then (transport.h, direct_min).
 *
 * Short ones go by messages, which wait for the region's process to look, and so do atomics. Of short ones the client
 * promises order, with each other and with atomics, and that holds only among requests that one end carries out, one
 * after the other: a Write that went directly would overtake all that stands in the inbox of a process that computes.
 * (Many short ones also share a frame, where each of these would be two packets.) And an atomic by somebody else than
 * the process whose memory it is would have to be one against that process's own processor: cross-memory copies are
 * not, and its memory is not mapped anywhere else.
 */
#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/port.h"
#include "packet/reach.h"
#include "packet/regions.h"
#include "packet/request.h"

#include "base/iov.h"
#include "base/param.h"
#include "rc/rc.h"
#include "shared_rc/shared_rc.h"

#include <errno.h>
#include <string.h>

#define LEAST 1025u /* bytes, by SRC: up to 1024 they are promised to stay in order (see rwk_channel.direct_min) */

/*
 * By RC, in bytes. Measured with Ethernet's 1500 and 9000, Reads are ahead of messages from there on (0.97 of the time;
 * 0.85 at 16 KB), and Writes of more than a piece of messages (0.8 at 80 KB; 1.05 at 64 KB).
 */
#define READ_LEAST  8192u
#define WRITE_LEAST 65537u

/* Words of rwk_op.service: losses() when the status was asked for at once; the next answer is about all data. */
enum { OP_LOSSES = 3, OP_SURE };
#define NOT_ASKED UINT64_MAX

void rwk_packet_reach_begin(struct rwk_packet_channel *ch)
{
	ch->base.direct_min = ch->base.direct_write_min = 0; /* it may have been another machine's */
	if (ch->rc && ch->denies) {
		ch->base.direct_min = READ_LEAST;
		ch->base.direct_write_min = WRITE_LEAST;
		ch->base.direct = RWK_DIRECT_FASTER;
	} else if (ch->shared && rwk_params.cma != RWK_OFF) {
		ch->base.direct_min = LEAST;
		ch->base.direct = RWK_DIRECT_ALONE;
	}
}

int rwk_packet_publish(struct rwk_packet_channel *ch, const struct iovec *iov, uint32_t count, struct rwk_rkey *key)
{
	int rc;

	if (rwk_rkey_length(key) == RWK_RKEY_LENGTH_MAX)
		return -EOPNOTSUPP;
	rc = rwk_src_publish(ch->port->view, ch->target, (uint32_t)key->word[0], iov, count);
	if (rc)
		return rc == -EAGAIN ? -ENOSPC : rc;
	ch->published = true;
	key->word[2] = RWK_RKEY_PUBLISHED;
	return 0;
}

void rwk_packet_withdraw_key(struct rwk_packet_channel *ch, uint32_t key)
{
	if (ch->shared && ch->published)
		rwk_src_withdraw(ch->port->view, ch->target, key);
}

/** Packets of the initiator's that were sent again: each answer that was missing when a later one came is one of them. */
static uint64_t losses(const struct rwk_packet_channel *ch)
{
	return rwk_rc_counters(ch->by->rc)->sent_again;
}

static int ask(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	struct rwk_request *r = rwk_packet_request(ch, RWK_REQ_STATUS);

	if (!r)
		return -ENOMEM;
	r->wr.type = RWK_WR_READ;
	r->wr.length = sizeof(uint64_t);
	r->wr.remote = RWK_SRC_STATUS;
	r->wr.key = (uint32_t)op->rkey.word[0];
	r->iov[0] = (struct iovec){r->bytes, sizeof(uint64_t)};
	r->op = op;
	if (rwk_packet_start(r)) {
		rwk_pool_put(r->home, r);
		return -ENOMEM;
	}
	rwk_packet_part_add(op);
	return 0;
}

int rwk_packet_reach_out(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	bool at_once = op->type == RWK_OP_WRITE || (!ch->port->running && op->length <= RWK_SEND_MAX_LESS);

	op->service[OP_LOSSES] = at_once ? losses(ch) : NOT_ASKED;
	op->service[OP_SURE] = op->type == RWK_OP_WRITE;
	if (rwk_packet_rdma(ch, op))
		return -ENOMEM;
	if (at_once && ask(ch, op))
		rwk_packet_part_failed(op, -ENOMEM); /* its parts are on their way */
	return 0;
}

bool rwk_packet_reach_read(struct rwk_packet_channel *ch, struct rwk_op *op)
{
	if (!rwk_packet_is_published(ch, op) || op->service[OP_SURE] || op->service[OP_LOSSES] == losses(ch))
		return false;
	op->service[OP_SURE] = true;
	if (!ask(ch, op))
		return true;
	rwk_packet_part_failed(op, -ENOMEM);
	return false;
}

int rwk_packet_reach_status(const struct rwk_request *r)
{
	uint64_t status;

	memcpy(&status, r->bytes, sizeof(status));
	if (status != EOPNOTSUPP)
		return status ? -EACCES : 0;
	r->ch->base.direct_min = 0;
	return -EOPNOTSUPP;
}
