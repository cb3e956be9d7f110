/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of an adapter's: all are those of one link, links/stream, which is there once somebody has asked for it. */
#include "channel_adapter/stream.h"

#include "channel_adapter/internal.h"
#include "links/stream/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define FRAME_REST 52u /* bytes of a frame beside the payload: its length, the longest headers, and the ICRC */

static void on_word(void *user, const struct rwk_link_address *at, int status)
{
	struct rwk_adapter *a = user;
	struct rwk_ca_stream *s = rwk_streams_owner(a->streams, at);

	s->open = false;
	/* What the peer sent by UDP before it hung up is here, too, and may say why; it was not when UDP was looked at. */
	if (s->qp && s->qp->link == a->link)
		rwk_ca_take_packets(a);
	if (s->qp && !s->qp->error)
		s->qp->error = status;
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

bool rwk_ca_streams_busy(const struct rwk_adapter *a)
{
	return a->streams->ops->arm(a->streams) == -EAGAIN;
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

void rwk_ca_stream_give_back(struct rwk_ca_stream *s)
{
	s->open = false;
	rwk_streams_give_back(s->adapter->streams, &s->at);
	s->qp->link = s->adapter->link;
}

void rwk_ca_stream_leave(struct rwk_ca_stream *s)
{
	if (!s->open)
		return;
	s->open = false;
	s->adapter->link->ops->flush(s->adapter->link); /* what UDP still has does not go behind the good-bye */
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

uint32_t rwk_ca_stream_pmtu(int fd)
{
	uint32_t pmtu = RWK_WIRE_PMTU_MAX;
	int segment;
	socklen_t len = sizeof(segment);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &len))
		return 0;
	while (pmtu > 256 && (int)(pmtu + FRAME_REST) > segment)
		pmtu /= 2;
	return pmtu;
}

enum rwk_qp_type rwk_ca_qp_type(const struct rwk_qp *qp)
{
	return qp->type;
}

struct rwk_adapter *rwk_ca_qp_adapter(const struct rwk_qp *qp)
{
	return qp->adapter;
}

const uint8_t *rwk_ca_adapter_ip(const struct rwk_adapter *a)
{
	return a->ip;
}

void rwk_ca_count_channels(struct rwk_adapter *a, int change)
{
	a->channels += (uint32_t)change;
}
