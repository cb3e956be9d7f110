/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams that become the transport of a qp: converted after other use (S4-7), with a peer that says nothing but
 * packets (S4-8), now or later (S4-9). Real TCP connections on loopback; on the simulated network there are none.
 *
 * Links: tcp.
 */
#include "connect/sides.h"
#include "full_sets.h"

#include "connect/message.h"
#include "rc/rc.h"
#include "wire/crc32.h"
#include "wire/wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAMED 100000u

static enum rwk_qp_type rc = RWK_QP_RC, uc = RWK_QP_UC;

#define by(f, service)                                                                                                 \
	{                                                                                                              \
		.name = #f ", " #service, .test_func = f, .setup_func = world_open, .teardown_func = world_close,      \
		.initial_state = &service,                                                                             \
	}

static struct rwk_connection_attr stream_attr(void)
{
	return sides_attr(RWK_TRANSPORT_STREAM, NULL);
}

static void put(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

/* Exactly so many bytes. */
static void take(int fd, void *bytes, size_t len)
{
	assert_int_equal(recv(fd, bytes, len, MSG_WAITALL), len);
}

/* What the two programs say to each other before: in both directions, more than a segment. */
static void use_as_stream(int a, int b)
{
	static uint8_t bytes[STREAMED];

	for (unsigned i = 0; i < 5; i++) {
		put(a, near.out, STREAMED / 5);
		put(b, far.out, STREAMED / 5);
		take(b, bytes, STREAMED / 5);
		assert_memory_equal(bytes, near.out, STREAMED / 5);
		take(a, bytes, STREAMED / 5);
		assert_memory_equal(bytes, far.out, STREAMED / 5);
	}
}

static void convert(struct side *s, int fd, const struct rwk_connection_attr *attr)
{
	assert_int_equal(rwk_convert(s->channel, s->end->qp, fd, attr, &s->c), 0);
}

/* ms: so long may something stay unacknowledged; 0: as long as the kernel likes. */
static int given_up_after(int fd)
{
	int ms;
	socklen_t len = sizeof(ms);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &len), 0);
	return ms;
}

/* Both know their numbers already. */
static void tell(struct rwk_connection_attr *attr, uint32_t peer_qpn, uint32_t send_psn, uint32_t receive_psn)
{
	attr->told = true;
	attr->qp.peer_qpn = peer_qpn;
	attr->qp.send_psn = send_psn;
	attr->qp.receive_psn = receive_psn;
	attr->qp.pmtu = 1024;
}

/*
 * S4-7: a TCP connection that has carried other data becomes the endpoint: nothing of what was said before, and not a
 * byte of what comes after, is taken for the other. The sockets are blocking ones; nothing blocks.
 */
static void s4_7_live_connection(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	struct rwk_connection_event e;
	int fd[2], own = 60000;

	sides_open(service_of(state));
	sides_tcp(fd);
	use_as_stream(fd[0], fd[1]);
	assert_int_equal(setsockopt(fd[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &own, sizeof(own)), 0);
	attr.patient = true;
	attr.private_data = "hello";
	attr.private_length = 5;
	convert(&client, fd[0], &attr);
	assert_int_equal(rwk_connection_fd(client.c), -1);
	assert_int_equal(given_up_after(fd[0]), own); /* the greeting is behind what was said before */
	sides_no_event(&client); /* it waits for the peer's greeting */
	convert(&server, fd[1], &attr);
	e = sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(e.private_length, 5);
	assert_memory_equal(e.private_data, "hello", 5);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(given_up_after(fd[0]), own);
	sides_in_rdma_mode();
	sides_exchange();
	assert_int_equal(rwk_disconnect(server.c), 0);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ESHUTDOWN);
	sides_await(&server, RWK_CONNECTION_DISCONNECTED);
	sides_close();
}

/* Whose socket is it? The caller's after an error, and nothing was done with it. */
static void stays_the_callers(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	struct rwk_connection *c;
	int fd[2], pair[2], lone = socket(AF_INET, SOCK_STREAM, 0);

	sides_open(service_of(state));
	sides_tcp(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(rwk_convert(client.channel, near.qp, lone, &attr, &c), -ENOTCONN);
	assert_int_equal(rwk_convert(client.channel, near.qp, pair[0], &attr, &c), -EINVAL);
	assert_int_equal(rwk_convert(client.channel, far.qp, fd[0], &attr, &c), -EINVAL);
	attr.private_length = RWK_PRIVATE_MAX + 1;
	assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &c), -EINVAL);
	use_as_stream(fd[0], fd[1]);
	assert_int_equal(close(lone) | close(pair[0]) | close(pair[1]) | close(fd[0]) | close(fd[1]), 0);
	sides_close();
}

static size_t refused; /* there is no memory for an array of so many; 0: for all there is */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return refused && count == refused ? NULL : __real_calloc(count, size);
}

/* Who could not hear the peer's greeting sends none: the socket is the caller's as before, and the qp can be used. */
static void no_watch_left(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	struct rwk_connection *c;
	int fd[2];

	sides_open(service_of(state));
	sides_tcp(fd);
	sets_are_full = true;
	assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &c), -ENOSPC);
	sets_are_full = false;
	use_as_stream(fd[0], fd[1]);
	convert(&client, fd[0], &attr);
	convert(&server, fd[1], &attr);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	sides_exchange();
	sides_close();
}

/*
 * The last thing that is wanted, with the stream taken already, is memory for early packets. Without it the socket is
 * the caller's as before, and the qp in the state that it was in: it can be used, with that socket too.
 */
static void no_memory(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	struct rwk_connection *c;
	int fd[2];

	(void)state;
	sides_open(RWK_QP_RC);
	sides_tcp(fd);
	tell(&attr, rwk_qp_number(far.qp), 100, 200);
	attr.qp.unordered = true;
	for (unsigned i = 0; i < 2; i++) {
		refused = RWK_RC_WINDOW_MAX;
		assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &c), -ENOMEM);
		refused = 0;
		assert_int_equal(sides_state(&client), i ? RWK_QPS_INIT : RWK_QPS_RESET);
		sides_poll();
		use_as_stream(fd[0], fd[1]);
		if (!i)
			assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	}
	convert(&client, fd[0], &attr);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	tell(&attr, rwk_qp_number(near.qp), 200, 100);
	convert(&server, fd[1], &attr);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	sides_exchange();
	sides_close();
}

/* The same when the streaming is over: the socket is the connection's, which ends, and leaves the qp in ERR. */
static void no_memory_to_enter(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	int fd[2];

	(void)state;
	sides_open(RWK_QP_RC);
	sides_tcp(fd);
	tell(&attr, rwk_qp_number(far.qp), 100, 200);
	attr.deferred = attr.qp.unordered = true;
	convert(&client, fd[0], &attr);
	refused = RWK_RC_WINDOW_MAX;
	assert_int_equal(rwk_connection_enter(client.c), -ENOMEM);
	refused = 0;
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ENOMEM);
	assert_int_equal(sides_state(&client), RWK_QPS_ERR);
	close(fd[1]);
	sides_close();
}

/* A peer that is not done with its own data: what comes is no greeting, and no packet is made of it. */
static void not_over_yet(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	int fd[2];

	sides_open(service_of(state));
	sides_tcp(fd);
	put(fd[1], "and another thing", 17);
	convert(&client, fd[0], &attr);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -EPROTO);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	close(fd[1]);
	sides_close();
}

/* A peer that says nothing: the wait has an end. One that goes, too. */
static void no_greeting(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	int fd[2];

	sides_open(service_of(state));
	sides_tcp(fd);
	attr.timeout_ms = 50;
	convert(&client, fd[0], &attr);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_TIMED_OUT).status, -ETIMEDOUT);
	close(fd[1]);
	rwk_connection_destroy(client.c);
	sides_tcp(fd);
	close(fd[1]);
	convert(&client, fd[0], &attr);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ECONNRESET);
	sides_close();
}

/* S0-2: a stream leads to one peer; who is told must be told the number of its qp, too. Nothing is changed by less. */
static void s0_2_nobody_told(void **state)
{
	static const uint32_t numbers[] = {0, 1, 0xffffff, 1 << 24 | 5};
	struct rwk_connection_attr attr = stream_attr();
	int fd[2];

	sides_open(service_of(state));
	sides_tcp(fd);
	for (unsigned i = 0; i < 8; i++) {
		tell(&attr, numbers[i / 2], 100, 7);
		attr.deferred = i % 2;
		assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &client.c), -EINVAL);
		assert_null(client.c);
		assert_int_equal(sides_state(&client), RWK_QPS_RESET);
		use_as_stream(fd[0], fd[1]);
	}
	assert_int_equal(close(fd[0]) | close(fd[1]), 0);
	sides_close();
}

/* S4-8: both sides were told what to use: the qp is in RTS on return, and not a byte is sent for that. */
static void s4_8_both_told(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	uint8_t byte;
	int fd[2];

	sides_open(service_of(state));
	sides_tcp(fd);
	use_as_stream(fd[0], fd[1]);
	tell(&attr, rwk_qp_number(far.qp), 100, 0xfffffe);
	convert(&client, fd[0], &attr);
	assert_int_equal(sides_state(&client), RWK_QPS_RTS);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(recv(fd[1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	tell(&attr, rwk_qp_number(near.qp), 0xfffffe, 100);
	convert(&server, fd[1], &attr);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	sides_exchange();
	sides_close();
}

/*
 * A peer by hand: a socket, and packets written down here. The ICRC begins as a CRC-32 does (STREAM.md).
 */

static uint32_t crc_of(const uint8_t *packet, size_t len)
{
	static const uint8_t masked = 0xff;

	return rwk_crc32(RWK_CRC_32, rwk_crc32(RWK_CRC_32, rwk_crc32(RWK_CRC_32, 0, packet, 4), &masked, 1), packet + 5, len - 5);
}

static void put_packet(int fd, uint8_t opcode, uint32_t psn, const void *payload, size_t len)
{
	struct rwk_wire w = {.opcode = opcode,
		.pkey = RWK_WIRE_PKEY,
		.qpn = rwk_qp_number(far.qp),
		.psn = psn,
		.ack_request = true,
		.aeth = {.syndrome = 0x1f, .msn = 1}};
	uint8_t frame[4 + 2000] = {0};
	size_t n = rwk_wire_pack(&w, len, frame + 4);
	uint32_t crc, whole;

	if (len)
		memcpy(frame + 4 + n, payload, len);
	n += len + (-len & 3);
	crc = crc_of(frame + 4, n);
	memcpy(frame + 4 + n, &crc, 4);
	whole = (uint32_t)n + 4;
	memcpy(frame, &whole, 4);
	put(fd, frame, 4 + whole);
}

/* The next frame's packet, whose ICRC must be right; its payload's length. */
static size_t take_packet(int fd, struct rwk_wire *w, uint8_t *payload)
{
	uint8_t packet[2000];
	const uint8_t *at;
	uint32_t len, crc;
	size_t n;

	for (uint64_t end = sides_ms() + 20000; recv(fd, &len, 4, MSG_PEEK | MSG_DONTWAIT) != 4; sides_poll())
		assert_true(sides_ms() < end);
	take(fd, &len, 4);
	assert_true(len <= sizeof(packet));
	take(fd, packet, len);
	assert_int_equal(rwk_wire_unpack(w, packet, len, &at, &n), 0);
	memcpy(&crc, packet + len - 4, 4);
	assert_int_equal(crc, crc_of(packet, len - 4));
	memcpy(payload, at, n);
	return n;
}

/* A greeting and the first packet in one segment: each is read by who it is for. */
static void packet_behind_greeting(void **state)
{
	struct rwk_cm greeting = {.type = RWK_CM_GREETING,
		.transport = RWK_TRANSPORT_STREAM,
		.service = service_of(state),
		.reads = service_of(state) == RWK_QP_RC,
		.pmtu = 1024,
		.qpn = 0x1234,
		.psn = 7};
	uint8_t bytes[RWK_CM_MAX];
	struct rwk_connection_attr attr = stream_attr();
	int fd[2], one = 1, none = 0;

	sides_open(service_of(state));
	sides_tcp(fd);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_INIT, NULL), 0);
	ends_receive(&far, 3, 1000);
	assert_int_equal(setsockopt(fd[0], IPPROTO_TCP, TCP_CORK, &one, sizeof(one)), 0);
	put(fd[0], bytes, rwk_cm_pack(&greeting, bytes));
	put_packet(fd[0], (service_of(state) == RWK_QP_RC ? RWK_WIRE_RC : RWK_WIRE_UC) | RWK_WIRE_SEND_ONLY, 7,
		near.out, 333);
	assert_int_equal(setsockopt(fd[0], IPPROTO_TCP, TCP_CORK, &none, sizeof(none)), 0);
	convert(&server, fd[1], &attr);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 333);
	close(fd[0]);
	sides_await(&server, RWK_CONNECTION_DISCONNECTED);
	sides_close();
}

/*
 * S4-8: a peer that is none of ours, does no handshake and says no good-bye: a socket with packets on it. What it sends
 * comes, what it is sent is a packet and nothing else, and its hanging up is the end.
 */
static void s4_8_peer_by_hand(void **state)
{
	bool is_rc = service_of(state) == RWK_QP_RC;
	uint8_t class = is_rc ? RWK_WIRE_RC : RWK_WIRE_UC;
	struct rwk_connection_attr attr = stream_attr();
	uint8_t payload[2000];
	struct rwk_wire w;
	int fd[2];

	sides_open(service_of(state));
	sides_tcp(fd);
	put(fd[0], "iSCSI login", 11);
	take(fd[1], payload, 11);
	tell(&attr, 0x1234, 500, 7);
	convert(&server, fd[1], &attr);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	ends_receive(&far, 3, 1000);
	put_packet(fd[0], class | RWK_WIRE_SEND_ONLY, 7, near.out, 333);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 333);
	assert_memory_equal(far.in, near.out, 333);
	if (is_rc) {
		assert_int_equal(take_packet(fd[0], &w, payload), 0);
		assert_int_equal(w.opcode, RWK_WIRE_RC | RWK_WIRE_ACK);
		assert_int_equal(w.psn, 7);
		assert_int_equal(w.qpn, 0x1234);
	}
	assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 1500, 0, 0), 0);
	assert_int_equal(take_packet(fd[0], &w, payload), 1024);
	assert_int_equal(w.opcode, class | RWK_WIRE_SEND_FIRST);
	assert_int_equal(w.psn, 500);
	assert_memory_equal(payload, far.out, 1024);
	assert_int_equal(take_packet(fd[0], &w, payload), 1500 - 1024);
	assert_int_equal(w.opcode, class | RWK_WIRE_SEND_LAST);
	if (is_rc)
		put_packet(fd[0], RWK_WIRE_RC | RWK_WIRE_ACK, 501, NULL, 0);
	assert_int_equal(ends_await(&far, far.send_cq).status, 0);
	ends_receive(&far, 4, 1000);
	close(fd[0]);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ECONNRESET);
	assert_int_equal(ends_await(&far, far.receive_cq).status, -ECANCELED);
	sides_close();
}

/* A frame that is no packet of the connection's is dropped, and counted; so is one for the qp of another stream (S0-3).
 */
static void what_is_dropped(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	struct rwk_qp_create_attr create = {.type = service_of(state), .send_max = 1, .receive_max = 1};
	uint8_t class = service_of(state) == RWK_QP_RC ? RWK_WIRE_RC : RWK_WIRE_UC;
	struct rwk_adapter_counters c = {0};
	uint8_t frame[4 + 40] = {40};
	struct rwk_connection *other;
	int fd[2], others[2];
	struct rwk_qp *qp;
	struct rwk_wc wc;

	sides_open(service_of(state));
	sides_tcp(fd);
	sides_tcp(others);
	create.send_cq = far.send_cq;
	create.receive_cq = far.receive_cq;
	assert_int_equal(rwk_qp_create(far.pd, &create, &qp), 0);
	tell(&attr, 0x1234, 500, 7);
	convert(&server, fd[1], &attr);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	ends_receive(&far, 1, 100);
	assert_int_equal(rwk_convert(server.channel, qp, others[1], &attr, &other), 0);
	put(fd[0], frame, sizeof(frame)); /* no packet: opcode 0, but no partition */
	put_packet(fd[0], RWK_WIRE_SRC | RWK_WIRE_ACK, 7, NULL, 0);
	put_packet(others[0], class | RWK_WIRE_SEND_ONLY, 7, near.out, 10);
	for (uint64_t end = sides_ms() + 20000; c.packets_in < 3;) {
		assert_true(sides_ms() < end);
		assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		rwk_adapter_get_counters(far.adapter, &c);
	}
	assert_int_equal(c.wrong_pkey, 1);
	assert_int_equal(c.wrong_service, 1);
	assert_int_equal(c.stranger, 1);
	assert_int_equal(rwk_cq_poll(far.receive_cq, &wc, 1), 0);
	assert_int_equal(sides_state(&server), RWK_QPS_RTS);
	rwk_connection_destroy(other);
	rwk_qp_destroy(qp);
	assert_int_equal(close(fd[0]) | close(others[0]), 0);
	sides_await(&server, RWK_CONNECTION_DISCONNECTED);
	sides_close();
}

/*
 * S4-9, immediate: rwk_convert and rwk_connect make the transition themselves. (connect: test_connect, S4-6; told:
 * S4-8; with a greeting: S4-7.) Deferred: the connection is there and belongs to a qp, and the stream is the program's
 * until it says so, at each end by itself: what one end sends by RDMA before the other is so far waits.
 */
static void s4_9_deferred(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	int a, b;
	char byte;

	sides_open(service_of(state));
	attr.deferred = attr.patient = true;
	sides_connect(&attr);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	assert_int_equal(sides_state(&server), RWK_QPS_INIT);
	a = rwk_connection_fd(client.c);
	b = rwk_connection_fd(server.c);
	assert_true(a >= 0 && b >= 0);
	assert_int_equal(given_up_after(a) + given_up_after(b), 0); /* the hurry of a patient handshake is over */
	for (unsigned i = 0; i < 5; i++) {
		put(a, "to b", 4);
		put(b, "to a", 4);
		sides_poll(); /* takes nothing of it */
	}
	sides_no_event(&client);
	for (unsigned i = 0; i < 20; i++) {
		take(a, &byte, 1);
		assert_int_equal(byte, "to a"[i % 4]);
	}
	ends_receive(&far, 1, 100);
	assert_int_equal(rwk_connection_enter(client.c), 0);
	assert_int_equal(rwk_connection_enter(client.c), -EINVAL);
	assert_int_equal(rwk_connection_fd(client.c), -1);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(sides_state(&client), RWK_QPS_RTS);
	assert_int_equal(sides_state(&server), RWK_QPS_INIT);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 100, 0, 0), 0);
	for (unsigned i = 0; i < 20; i++) {
		take(b, &byte, 1);
		assert_int_equal(byte, "to b"[i % 4]);
		sides_poll();
	}
	assert_int_equal(rwk_connection_enter(server.c), 0);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 100);
	assert_memory_equal(far.in, near.out, 100);
	sides_close();
}

/* The server's program takes what the client has left unread for a packet's: that is a breach, and told. */
static void entered_too_early(void **state)
{
	struct rwk_connection_attr attr = stream_attr();

	sides_open(service_of(state));
	attr.deferred = true;
	sides_connect(&attr);
	put(rwk_connection_fd(client.c), "still ours", 10);
	assert_int_equal(rwk_connection_enter(server.c), 0);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -EPROTO);
	assert_int_equal(rwk_disconnect(client.c), 0);
	sides_await(&client, RWK_CONNECTION_DISCONNECTED);
	sides_close();
}

/* S4-9: a conversion can be deferred too: prepared first, with receives posted, then the last words of the streaming.
 */
static void s4_9_deferred_conversion(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	char words[4];
	int fd[2];

	sides_open(service_of(state));
	sides_tcp(fd);
	attr.deferred = true;
	convert(&server, fd[1], &attr);
	assert_int_equal(rwk_connection_fd(server.c), fd[1]);
	assert_int_equal(sides_state(&server), RWK_QPS_INIT);
	use_as_stream(fd[0], fd[1]);
	put(rwk_connection_fd(server.c), "last", 4);
	assert_int_equal(rwk_connection_enter(server.c), 0);
	take(fd[0], words, 4);
	assert_memory_equal(words, "last", 4);
	attr.deferred = false;
	convert(&client, fd[0], &attr);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	sides_exchange();
	sides_close();
}

/*
 * More than the socket and the link's buffer hold, while the other end does not look: it waits, nothing is lost, and
 * nothing is sent again though it takes longer than UDP's packets are waited for.
 */
static void more_than_fits(void **state)
{
	struct rwk_connection_attr attr = stream_attr();
	struct rwk_qp_info info;

	sides_open(service_of(state));
	sides_connect(&attr);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(
			ends_request(&near, RWK_REQUEST_WRITE, REGION, (uintptr_t)far.in, rwk_mr_key(far.in_mr)), 0);
	for (uint64_t until = sides_ms() + 100; sides_ms() < until;)
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	rwk_qp_query(near.qp, &info);
	assert_int_equal(info.sent_again, 0);
	for (uint64_t end = sides_ms() + 20000; memcmp(far.in, near.out, REGION); sides_poll())
		assert_true(sides_ms() < end);
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		by(s4_7_live_connection, rc),
		by(s4_7_live_connection, uc),
		by(stays_the_callers, rc),
		by(no_watch_left, rc),
		by(no_watch_left, uc),
		by(no_memory, rc),
		by(no_memory_to_enter, rc),
		by(not_over_yet, rc),
		by(no_greeting, uc),
		by(s0_2_nobody_told, rc),
		by(s0_2_nobody_told, uc),
		by(s4_8_both_told, rc),
		by(s4_8_both_told, uc),
		by(packet_behind_greeting, rc),
		by(packet_behind_greeting, uc),
		by(s4_8_peer_by_hand, rc),
		by(s4_8_peer_by_hand, uc),
		by(what_is_dropped, rc),
		by(what_is_dropped, uc),
		by(s4_9_deferred, rc),
		by(s4_9_deferred, uc),
		by(entered_too_early, rc),
		by(s4_9_deferred_conversion, rc),
		by(s4_9_deferred_conversion, uc),
		by(more_than_fits, rc),
		by(more_than_fits, uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
