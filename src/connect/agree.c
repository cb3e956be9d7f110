/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two ends of a connection agree on, and what becomes of the qp by it. Each end names its QP number, its first
 * PSN, the largest PMTU that it can have, the Reads that it keeps and whether it wants the un-ordered types; of values
 * that both have a say in, the smaller one holds.
 *
 * The qp is in INIT while the connection is being made. It takes packets once the peer may send some: by UDP an end
 * that has accepted is in RTR before the peer hears of it. It sends once the peer takes them.
 */
#include "connect/internal.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define READS_MAX      16u
#define RETRY_MAX      7u
#define RNR_TIMER_MAX  31u
#define STREAM_TIMEOUT (4000 * MS) /* nothing is lost there: who is silent is slow */
#define REACH          (unsigned)(RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC)

static bool good_attr(const struct rwk_connection_attr *a)
{
	const struct rwk_qp_attr *q = &a->qp;

	return a->private_length <= RWK_PRIVATE_MAX && !(q->access & ~REACH) && q->reads <= READS_MAX &&
	       q->peer_reads <= READS_MAX && q->retry <= RETRY_MAX && q->rnr_retry <= RETRY_MAX &&
	       q->rnr_timer <= RNR_TIMER_MAX && !(q->pmtu & (q->pmtu - 1)) && (!q->pmtu || q->pmtu >= 256) &&
	       q->pmtu <= 4096 && q->send_psn <= 0xffffff && q->receive_psn <= 0xffffff &&
	       (!a->told || rwk_ca_may_be_qp(q->peer_qpn));
}

static enum rwk_qps state_of(const struct rwk_qp *qp)
{
	struct rwk_qp_info info;

	rwk_qp_query(qp, &info);
	return info.state;
}

int rwk_cm_take_qp(struct rwk_connection *c, struct rwk_qp *qp, const struct rwk_connection_attr *attr)
{
	enum rwk_qps state = state_of(qp);
	int rc;

	if (!good_attr(attr) || rwk_ca_qp_adapter(qp) != c->channel->adapter ||
		(state != RWK_QPS_RESET && state != RWK_QPS_INIT))
		return -EINVAL;
	rc = rwk_ca_stream_join(&c->stream, qp);
	if (rc)
		return rc;
	c->fresh = state == RWK_QPS_RESET;
	if (c->fresh)
		rwk_qp_modify(qp, RWK_QPS_INIT, NULL);
	c->attr = *attr;
	c->mine.service = rwk_ca_qp_type(qp);
	c->mine.private_length = (uint16_t)attr->private_length;
	c->mine.private_data = c->private_data;
	if (attr->private_length)
		memcpy(c->private_data, attr->private_data, attr->private_length);
	return 0;
}

void rwk_cm_give_back_qp(struct rwk_connection *c)
{
	if (c->stream.qp && c->taking)
		rwk_qp_modify(c->stream.qp, RWK_QPS_ERR, NULL);
	rwk_ca_stream_part(&c->stream);
}

void rwk_cm_untake_qp(struct rwk_connection *c)
{
	struct rwk_qp *qp = c->stream.qp;

	rwk_ca_stream_part(&c->stream);
	if (c->fresh)
		rwk_qp_modify(qp, RWK_QPS_RESET, NULL);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* What fits the way there, and not more than the client wants. */
static int find_pmtu(const struct rwk_connection *c, uint32_t *pmtu)
{
	bool udp = c->mine.transport == RWK_TRANSPORT_UDP;
	uint32_t wanted = c->attr.qp.pmtu;
	uint32_t most = udp ? rwk_adapter_pmtu(c->channel->adapter, c->peer_ip) : rwk_ca_stream_pmtu(c->fd);

	/* On a stream a longer one lies across segments: it has none to itself (S2-13). */
	if (!most || (wanted > most && (udp || c->attr.alone)))
		return -ENETUNREACH;
	*pmtu = wanted ? wanted : most;
	return 0;
}

int rwk_cm_make_terms(struct rwk_connection *c)
{
	bool udp = c->mine.transport == RWK_TRANSPORT_UDP;
	uint32_t pmtu;
	int rc = find_pmtu(c, &pmtu);

	if (rc)
		return rc;
	if (getrandom(&c->mine.psn, sizeof(c->mine.psn), 0) != (ssize_t)sizeof(c->mine.psn))
		return -errno;
	c->mine.psn &= 0xffffff;
	c->mine.qpn = rwk_qp_number(c->stream.qp);
	c->mine.pmtu = (uint16_t)pmtu;
	c->mine.udp_port = udp ? rwk_adapter_port(c->channel->adapter) : 0;
	c->mine.unordered = c->attr.qp.unordered && c->mine.service != RWK_QP_UC;
	c->mine.reads = c->mine.service == RWK_QP_UC ? 0 : c->attr.qp.peer_reads ? c->attr.qp.peer_reads : READS_MAX;
	return 0;
}

bool rwk_cm_agrees(const struct rwk_connection *c, const struct rwk_cm *m)
{
	return m->service == c->mine.service && m->transport == c->mine.transport && m->deferred == c->mine.deferred &&
	       m->pmtu <= c->mine.pmtu && m->unordered <= c->mine.unordered;
}

int rwk_cm_check_source(const struct rwk_connection *c)
{
	char of_packets[INET6_ADDRSTRLEN], of_tcp[INET6_ADDRSTRLEN];
	uint8_t source[16], known[16];
	int rc = rwk_adapter_source(c->channel->adapter, c->peer_ip, source);

	if (!rc)
		rc = rwk_socket_own_ip(c->fd, known);
	if (rc || !memcmp(source, known, sizeof(known)))
		return rc;
	inet_ntop(AF_INET6, source, of_packets, sizeof(of_packets));
	inet_ntop(AF_INET6, known, of_tcp, sizeof(of_tcp));
	rwk_warn("a peer has connected to %s, but packets to it would come from %s: open an adapter with ip %s", of_tcp,
		of_packets, of_tcp);
	return -EADDRNOTAVAIL;
}

int rwk_cm_receive_packets(struct rwk_connection *c)
{
	struct rwk_qp_attr q = c->attr.qp;
	int rc;

	memcpy(q.peer_ip, c->peer_ip, 16);
	q.peer_port = c->theirs.udp_port;
	q.one_port = true;
	q.peer_qpn = c->theirs.qpn;
	q.send_psn = c->mine.psn;
	q.receive_psn = c->theirs.psn;
	q.pmtu = smaller(c->mine.pmtu, c->theirs.pmtu);
	q.reads = (uint8_t)smaller(q.reads ? q.reads : READS_MAX, c->theirs.reads);
	q.peer_reads = c->mine.reads;
	q.unordered = c->mine.unordered && c->theirs.unordered; /* S2-1: who does not know them need not answer */
	if (c->mine.transport == RWK_TRANSPORT_STREAM && !q.timeout_ns)
		q.timeout_ns = STREAM_TIMEOUT;
	rc = rwk_qp_modify(c->stream.qp, RWK_QPS_RTR, &q);
	c->taking |= !rc;
	return rc;
}

int rwk_cm_enter(struct rwk_connection *c)
{
	int rc;

	if (!c->stream.qp)
		return -ECANCELED;
	rwk_cm_watch_socket(c, 0);
	rc = rwk_ca_stream_take(&c->stream, c->channel->adapter, c->fd, c->attr.alone);
	if (rc)
		return rc;
	c->fd = -1;
	if (c->mine.transport == RWK_TRANSPORT_STREAM) {
		rwk_ca_stream_carry(&c->stream);
		c->taking = true; /* it has no other link any more */
	}
	rc = state_of(c->stream.qp) == RWK_QPS_RTR ? 0 : rwk_cm_receive_packets(c);
	if (!rc)
		rc = rwk_qp_modify(c->stream.qp, RWK_QPS_RTS, NULL);
	if (rc)
		return rc;
	c->state = ESTABLISHED;
	rwk_cm_set_due(c, NEVER);
	rwk_cm_tell(c, RWK_CONNECTION_ESTABLISHED);
	return 0;
}
