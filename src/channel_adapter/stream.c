/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of an adapter's: all are those of one link, links/stream, which is there once somebody has asked for it. */
#include "channel_adapter/stream.h"

#include "channel_adapter/internal.h"
#include "links/stream/stream.h"

#include <errno.h>

#define FRAME_REST 48u /* bytes of a packet beside its payload: the longest headers, and the ICRC */

static void on_word(void *user, const struct rwk_link_address *at, int status)
{
	struct rwk_adapter *a = user;
	struct rwk_ca_stream *s = rwk_streams_owner(a->streams, at);

	s->open = false;
	s->ended(s, status);
}

int rwk_ca_streams_open(struct rwk_adapter *a)
{
	int rc = a->streams ? 0 : rwk_streams_open(&a->streams);

	if (rc)
		return rc;
	a->streams->packet = rwk_ca_stream_packet;
	a->streams->word = on_word;
	a->streams->user = a;
	rwk_ca_watch_again(a);
	return 0;
}

int rwk_ca_streams_fd(const struct rwk_adapter *a)
{
	return a->streams->ops->wait_fd(a->streams, 0);
}

int rwk_ca_stream_take(struct rwk_ca_stream *s, struct rwk_adapter *a, int fd, bool alone)
{
	int rc = rwk_streams_take(a->streams, fd, alone, s, &s->at);

	if (rc)
		return rc;
	s->adapter = a;
	s->open = true;
	return 0;
}

void rwk_ca_stream_leave(struct rwk_ca_stream *s)
{
	if (!s->open)
		return;
	s->open = false;
	s->adapter->streams->ops->flush(s->adapter->streams);
	rwk_streams_leave(s->adapter->streams, &s->at);
}

int rwk_ca_stream_join(struct rwk_ca_stream *s, struct rwk_qp *qp)
{
	if (qp->stream)
		return -EBUSY;
	qp->stream = s;
	s->qp = qp;
	return 0;
}

void rwk_ca_stream_part(struct rwk_ca_stream *s)
{
	if (!s->qp)
		return;
	s->qp->stream = NULL;
	s->qp->link = s->qp->adapter->link;
	s->qp = NULL;
}

void rwk_ca_forsake_stream(struct rwk_qp *qp)
{
	struct rwk_ca_stream *s = qp->stream;

	if (!s)
		return;
	rwk_ca_stream_part(s);
	s->failed(s, -ECANCELED);
}

void rwk_ca_stream_carry(struct rwk_ca_stream *s)
{
	s->qp->link = s->adapter->streams;
	s->qp->peer = s->at;
}

uint32_t rwk_ca_stream_pmtu(const struct rwk_ca_stream *s)
{
	size_t most = s->adapter->streams->ops->mtu(s->adapter->streams, &s->at);
	uint32_t pmtu = RWK_WIRE_PMTU_MAX;

	while (pmtu > 256 && pmtu + FRAME_REST > most)
		pmtu /= 2;
	return pmtu;
}

void rwk_ca_count_channels(struct rwk_adapter *a, int change)
{
	a->channels += (uint32_t)change;
}
