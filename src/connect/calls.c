/* SPDX-License-Identifier: BSD-3-Clause */
/* What ropewalk.h has of connections, but for their end, which is in connection.c. */
#include "connect/internal.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_MS 5000u
#define READS_MAX  16u

static rwk_time timeout_of(const struct rwk_connection *c)
{
	return (c->attr.timeout_ms ? c->attr.timeout_ms : TIMEOUT_MS) * MS;
}

/* It is the client's: whoever calls it has had no error. */
static void hand_out(struct rwk_connection *c, struct rwk_connection **out)
{
	c->known = true;
	c->channel->children++;
	*out = c;
}

/* A connection that came to nothing in the call that made it. Its descriptor is the caller's, if there is one. */
static void undo(struct rwk_connection *c)
{
	if (c->stream.open) /* since just now: nothing has gone by it */
		rwk_ca_stream_give_back(&c->stream);
	rwk_cm_untake_qp(c);
	rwk_cm_free(c);
}

static int refuse_transport(const struct rwk_connection *c)
{
	if (c->mine.transport > RWK_TRANSPORT_STREAM)
		return -EINVAL;
	if (c->mine.transport == RWK_TRANSPORT_STREAM)
		return c->mine.service == RWK_QP_SRC ? -EOPNOTSUPP : 0;
	return c->mine.deferred ? -EOPNOTSUPP : 0;
}

/* By UDP the peer takes packets from where the TCP connection comes from: `from`, which is set here if it is zero. */
static int prepare_udp(struct rwk_connection *c, uint8_t from[16])
{
	uint8_t source[16];
	int rc = rwk_adapter_source(c->channel->adapter, c->peer_ip, source);

	if (rc)
		return rc;
	if (rwk_ip_is_any(from))
		memcpy(from, source, sizeof(source));
	if (!memcmp(from, source, sizeof(source)))
		return rwk_cm_make_terms(c);
	rwk_warn("source_ip by UDP is where packets to that peer come from: open an adapter with that ip");
	return -EADDRNOTAVAIL;
}

/*
 * The kernel begins to connect: 0 and c->fd. A stream of an adapter of all addresses comes from where the kernel says
 * now: what it said once, by which peers know packets, may be this host's address no more.
 */
static int begin(struct rwk_connection *c)
{
	const uint8_t *own = rwk_ca_adapter_ip(c->channel->adapter);
	uint8_t from[16];
	int rc = 0;

	memcpy(from, rwk_ip_is_any(c->attr.source_ip) ? own : c->attr.source_ip, sizeof(from));
	/* What can be known already is said at once. */
	if (c->mine.transport == RWK_TRANSPORT_UDP)
		rc = prepare_udp(c, from);
	if (rc)
		return rc;
	rc = rwk_socket_connect(rwk_ip_is_any(from) ? NULL : from, c->attr.source_port, c->peer_ip, c->peer_port);
	if (rc < 0)
		return rc;
	c->fd = rc;
	if (c->mine.transport == RWK_TRANSPORT_UDP)
		c->stream.peer_ip = c->peer_ip;
	rc = rwk_cm_watch_socket(c, EPOLLOUT);
	if (rc) {
		close(c->fd);
		return rc;
	}
	rwk_cm_set_due(c, rwk_clock_now() + timeout_of(c));
	return 0;
}

int rwk_connect(struct rwk_event_channel *ch, struct rwk_qp *qp, const uint8_t ip[16], uint16_t port,
	const struct rwk_connection_attr *attr, struct rwk_connection **out)
{
	struct rwk_connection *c;
	int rc;

	rwk_ca_use(ch, RWK_CA_EVENT_CHANNEL, __func__);
	rwk_ca_use(qp, RWK_CA_QP, __func__);
	c = rwk_cm_new(ch, CONNECTING, -1);
	if (!c)
		return -ENOMEM;
	memcpy(c->peer_ip, ip, 16);
	c->peer_port = port;
	rc = attr->told || !port ? -EINVAL : rwk_cm_take_qp(c, qp, attr);
	c->mine.transport = attr->transport;
	c->mine.deferred = attr->deferred;
	if (!rc)
		rc = refuse_transport(c);
	if (!rc)
		rc = begin(c);
	if (rc && rc != -ECONNREFUSED) {
		undo(c);
		return rc;
	}
	hand_out(c, out);
	if (rc) /* the kernel knows already */
		rwk_cm_over(c, RWK_CONNECTION_UNREACHABLE, rc);
	return 0;
}

int rwk_accept(struct rwk_connection *c, struct rwk_qp *qp, const struct rwk_connection_attr *attr)
{
	struct rwk_connection_attr before;
	int rc;

	rwk_ca_use(c, RWK_CA_CONNECTION, __func__);
	rwk_ca_use(qp, RWK_CA_QP, __func__);
	before = c->attr;
	if (c->state != ASKED)
		return c->state == OVER ? -ENOTCONN : -EINVAL;
	if (attr->told || rwk_ca_qp_type(qp) != c->theirs.service)
		return -EINVAL;
	rc = rwk_cm_take_qp(c, qp, attr);
	if (rc)
		return rc;
	c->mine.transport = c->theirs.transport;
	c->mine.deferred = c->theirs.deferred;
	rc = rwk_cm_make_terms(c);
	if (rc)
		goto give_back;
	if (c->mine.pmtu > c->theirs.pmtu)
		c->mine.pmtu = c->theirs.pmtu;
	c->mine.unordered &= c->theirs.unordered; /* a client that has not heard of it would refuse the answer */
	if (c->mine.transport == RWK_TRANSPORT_UDP) {
		rc = rwk_cm_check_source(c);
		if (!rc)
			rc = rwk_cm_receive_packets(c);
	}
	if (rc)
		goto give_back;
	rwk_cm_leave_listener(c);
	c->state = ANSWERED;
	rwk_cm_await(c, c->attr.patient, timeout_of(c));
	rwk_cm_send(c, RWK_CM_ACCEPT);
	return 0;

give_back:
	rwk_cm_untake_qp(c);
	c->attr = before;
	return rc;
}

int rwk_reject(struct rwk_connection *c, const void *private_data, uint32_t private_length)
{
	rwk_ca_use(c, RWK_CA_CONNECTION, __func__);
	if (c->state != ASKED || private_length > RWK_PRIVATE_MAX)
		return -EINVAL;
	c->mine.private_length = (uint16_t)private_length;
	c->mine.private_data = private_data;
	rwk_cm_send(c, RWK_CM_REJECT); /* nothing is in the socket's buffer yet: it takes all of it */
	rwk_connection_destroy(c);
	return 0;
}

/* What both sides were told stands for what they would have told each other (S4-8). */
static void believe(struct rwk_connection *c)
{
	const struct rwk_qp_attr *q = &c->attr.qp;

	c->mine.psn = q->send_psn;
	c->theirs = c->mine;
	c->theirs.reads = READS_MAX;
	c->theirs.qpn = q->peer_qpn;
	c->theirs.psn = q->receive_psn;
}

/* The streaming is over, or there was none: what is to be said is said, or all is known. */
static int leave_streaming(struct rwk_connection *c)
{
	int rc;

	if (c->attr.told || c->theirs.type)
		return rwk_cm_enter(c);
	rc = rwk_cm_watch_socket(c, EPOLLIN);
	if (rc)
		return rc;
	c->state = GREETING;
	rwk_cm_await(c, c->attr.patient, timeout_of(c));
	rwk_cm_send(c, RWK_CM_GREETING);
	return 0;
}

int rwk_convert(struct rwk_event_channel *ch, struct rwk_qp *qp, int fd, const struct rwk_connection_attr *attr,
	struct rwk_connection **out)
{
	struct rwk_connection *c;
	int rc;

	rwk_ca_use(ch, RWK_CA_EVENT_CHANNEL, __func__);
	rwk_ca_use(qp, RWK_CA_QP, __func__);
	c = rwk_cm_new(ch, STREAMING, -1);
	if (!c)
		return -ENOMEM;
	c->mine.transport = RWK_TRANSPORT_STREAM;
	rc = rwk_socket_peer(fd, c->peer_ip, &c->peer_port);
	if (!rc)
		rc = rwk_cm_take_qp(c, qp, attr);
	if (!rc)
		rc = refuse_transport(c);
	c->fd = fd;
	if (!rc)
		rc = rwk_cm_make_terms(c);
	if (!rc && attr->told)
		believe(c);
	if (!rc && !attr->deferred)
		rc = leave_streaming(c);
	if (rc) {
		undo(c);
		return rc;
	}
	hand_out(c, out);
	return 0;
}

int rwk_connection_fd(const struct rwk_connection *c)
{
	rwk_ca_use(c, RWK_CA_CONNECTION, __func__);
	return c->state == STREAMING ? c->fd : -1;
}

int rwk_connection_enter(struct rwk_connection *c)
{
	int rc;

	rwk_ca_use(c, RWK_CA_CONNECTION, __func__);
	if (c->state != STREAMING)
		return -EINVAL;
	rc = leave_streaming(c);
	if (rc)
		rwk_cm_over(c, RWK_CONNECTION_DISCONNECTED, rc);
	return rc;
}

int rwk_disconnect(struct rwk_connection *c)
{
	rwk_ca_use(c, RWK_CA_CONNECTION, __func__);
	if (c->state != ESTABLISHED && c->state != STREAMING)
		return -ENOTCONN;
	rwk_cm_over(c, RWK_CONNECTION_DISCONNECTED, 0);
	return 0;
}
