/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that have TCP's segments to themselves, for a program that asks for it: the kernel counts the segments that
 * it sends. And how long a packet is at most on such a way. (What the link makes of it, and where segments begin:
 * test/links/test_stream.)
 *
 * Links: tcp.
 */
#include "connect/sides.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEGMENT 1460 /* bytes that are asked for */
#define LENGTH  10000u

static enum rwk_qp_type rc = RWK_QP_RC, uc = RWK_QP_UC;

static uint64_t segments_out(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_data_segs_out - info.tcpi_total_retrans;
}

static uint64_t packets_out(const struct end *e)
{
	struct rwk_qp_info info;

	rwk_qp_query(e->qp, &info);
	return info.packets_out;
}

/* A live connection becomes the qps'. fd: to look at only. */
static void convert_both(int fd[2], int segment, const struct rwk_connection_attr *attr)
{
	sides_tcp_segments(fd, segment);
	assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], attr, &client.c), 0);
	assert_int_equal(rwk_convert(server.channel, far.qp, fd[1], attr, &server.c), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
}

/*
 * S2-13, S4-12: packets of one Send, of which several would fit a segment: alone, each has one; else they share some.
 * What is sent arrives as it was either way.
 */
static void s2_13_one_each(void **state)
{
	for (unsigned alone = 0; alone < 2; alone++) {
		struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
		uint64_t segments, packets;
		int fd[2];

		sides_open(service_of(state));
		attr.alone = alone;
		attr.qp.pmtu = 256;
		convert_both(fd, SEGMENT, &attr);
		segments = segments_out(fd[0]);
		ends_receive(&far, 1, LENGTH);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, LENGTH, 0, 0), 0);
		assert_int_equal(ends_await(&far, far.receive_cq).length, LENGTH);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		segments = segments_out(fd[0]) - segments;
		packets = packets_out(&near);
		assert_int_equal(packets, (LENGTH + 255) / 256);
		if (alone)
			assert_int_equal(segments, packets);
		else
			assert_in_range(segments, 1, packets - 1);
		sides_exchange();
		sides_close();
	}
}

/*
 * S2-13: packets that no segment holds cannot be alone: who asks for them is refused, and the socket is his still. They
 * may lie across segments, or be shorter.
 */
static void s2_13_too_long(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	int fd[2];

	for (unsigned shorter = 0; shorter < 2; shorter++) {
		sides_open(service_of(state));
		attr.alone = true;
		attr.qp.pmtu = 2048;
		sides_tcp_segments(fd, SEGMENT);
		assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &client.c), -ENETUNREACH);
		assert_int_equal(sides_state(&client), RWK_QPS_RESET);
		assert_int_equal(close(fd[0]) | close(fd[1]), 0);
		attr.alone = shorter;
		attr.qp.pmtu = shorter ? 0 : 2048;
		convert_both(fd, SEGMENT, &attr);
		ends_receive(&far, 1, 4096);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 4096, 0, 0), 0);
		assert_int_equal(ends_await(&far, far.receive_cq).length, 4096);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		assert_int_equal(packets_out(&near), shorter ? 4 : 2);
		sides_close();
	}
}

/* S3-7: 4096 bytes at most, and no more than a segment has room for. */
static void s3_7_as_long_as_fits(void **state)
{
	static const struct {
		int segment; /* 0: loopback's, 64 KB */
		unsigned pmtu;
	} cases[] = {{0, 4096}, {4200, 4096}, {4000, 2048}, {SEGMENT, 1024}, {536, 256}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
		int fd[2];

		sides_open(service_of(state));
		attr.qp.pmtu = 0;
		convert_both(fd, cases[i].segment, &attr);
		ends_receive(&far, 1, 8192);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8192, 0, 0), 0);
		assert_int_equal(ends_await(&far, far.receive_cq).length, 8192);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		assert_int_equal(packets_out(&near), 8192 / cases[i].pmtu);
		sides_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(s2_13_one_each, rc),
		in_world_by(s2_13_one_each, uc),
		in_world_by(s2_13_too_long, rc),
		in_world_by(s2_13_too_long, uc),
		in_world_by(s3_7_as_long_as_fits, rc),
		in_world_by(s3_7_as_long_as_fits, uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
