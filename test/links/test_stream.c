/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link on streams that it is given: real TCP connections on loopback, of which one end or both are the link's.
 *
 *     a  ----- stream -----  b          a  ----- stream -----  a bare socket
 *
 * Segments of TCP's are looked at twice: the kernel counts those that it has sent, and where this may be done (as root,
 * in a network of this process's own) each is captured and taken apart.
 *
 * Links: tcp.
 */
#define _GNU_SOURCE /* unshare */
#include "rwk_test.h"

#include "links/stream/stream.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/tcp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GOODBYE RWK_FRAME_GOODBYE
#define MSS     1460 /* what is asked for */

struct end {
	struct rwk_link *l;
	struct rwk_link_address to;
	unsigned got, words;
	int word;
	uint32_t next;     /* number that the next packet must have */
	bool leave_inside; /* from the next packet's upcall */
};

static struct end a, b;
static size_t mss; /* bytes of a segment, as the kernel says it: options take some of MSS */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* A packet is its number, and bytes that follow from it. */
static void make(uint8_t *packet, uint32_t number, size_t len)
{
	for (size_t i = 0; i < len; i++)
		packet[i] = (uint8_t)(number * 31 + i * 7 + i / 251);
	memcpy(packet, &number, sizeof(number));
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	static uint8_t expected[RWK_STREAMS_MTU];
	struct end *e = user;

	assert_memory_equal(from, &e->to, sizeof(*from));
	assert_ptr_equal(rwk_streams_owner(e->l, from), e);
	make(expected, e->next, len);
	assert_memory_equal(bytes, expected, len);
	e->next++;
	e->got++;
	if (e->leave_inside)
		rwk_streams_leave(e->l, from);
}

static void on_word(void *user, const struct rwk_link_address *who, int status)
{
	struct end *e = user;

	assert_memory_equal(who, &e->to, sizeof(*who));
	assert_ptr_equal(rwk_streams_owner(e->l, who), e);
	e->word = status;
	e->words++;
}

static bool small_window; /* of the next pair's second end, as small as the kernel makes it */

static void look_at_mss(int fd)
{
	int bytes;
	socklen_t len = sizeof(bytes);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, &len), 0);
	mss = (size_t)bytes;
}

/* Two ends of a TCP connection whose segments have at most so many bytes; 0: what the kernel likes. */
static void tcp_pair(int fd[2], int most)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	if (most)
		assert_int_equal(setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &most, sizeof(most)), 0);
	if (small_window)
		assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (most)
		assert_int_equal(setsockopt(fd[0], IPPROTO_TCP, TCP_MAXSEG, &most, sizeof(most)), 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&at, sizeof(at)), 0);
	fd[1] = accept(listener, NULL, NULL);
	assert_true(fd[1] >= 0);
	look_at_mss(fd[0]);
	close(listener);
}

static void open_end(struct end *e, int fd, bool alone)
{
	memset(e, 0, sizeof(*e));
	assert_int_equal(rwk_streams_open(&e->l), 0);
	e->l->packet = on_packet;
	e->l->word = on_word;
	e->l->user = e;
	assert_int_equal(rwk_streams_take(e->l, fd, alone, e, &e->to), 0);
}

/* Returns a's socket, to look at only. */
static int open_both(int most, bool alone)
{
	int fd[2];

	tcp_pair(fd, most);
	open_end(&a, fd[0], alone);
	open_end(&b, fd[1], alone);
	return fd[0];
}

static int a_fd; /* to look at only */

/* a's; returns the bare socket at the other end. */
static int open_a(void)
{
	int fd[2];

	tcp_pair(fd, 0);
	a_fd = fd[0];
	open_end(&a, fd[0], false);
	b.l = NULL;
	return fd[1];
}

static void close_both(void)
{
	a.l->ops->close(a.l);
	if (b.l)
		b.l->ops->close(b.l);
}

static int send_packet(struct end *e, uint32_t number, size_t len)
{
	static uint8_t packet[RWK_STREAMS_MTU + 1];
	size_t half = len / 3;
	struct iovec iov[] = {{packet, half}, {packet + half, len - half}};

	make(packet, number, len);
	return e->l->ops->send(e->l, &e->to, iov, 2);
}

static void run(void)
{
	a.l->ops->flush(a.l);
	if (b.l)
		b.l->ops->flush(b.l);
	a.l->ops->progress(a.l, 8);
	if (b.l)
		b.l->ops->progress(b.l, 8);
}

static void until_got(struct end *e, unsigned n)
{
	for (uint64_t end = now_ms() + 20000; e->got < n;) {
		assert_true(now_ms() < end);
		run();
	}
	assert_int_equal(e->got, n);
}

static int until_word(struct end *e)
{
	for (uint64_t end = now_ms() + 20000; !e->words;) {
		assert_true(now_ms() < end);
		run();
	}
	run();
	assert_int_equal(e->words, 1);
	return e->word;
}

/* Packets of all lengths come as they were, in order, in both directions. */
static void whole_and_in_order(void **state)
{
	(void)state;
	open_both(0, false);
	for (uint32_t i = 0; i < 500; i++) {
		while (send_packet(&a, i, 4 + i * 997 % (RWK_STREAMS_MTU - 3)) == -EAGAIN)
			run();
		assert_int_equal(send_packet(&b, i, 4 + i), 0);
	}
	until_got(&b, 500);
	until_got(&a, 500);
	assert_int_equal(send_packet(&a, 0, RWK_STREAMS_MTU + 1), -EMSGSIZE);
	close_both();
}

/*
 * A reader that is away: send says -EAGAIN in the end, nothing is lost of what it took, though the socket takes packets
 * in part, and a good-bye comes behind it.
 */
static void full_then_left(void **state)
{
	uint32_t sent = 0;
	int small = 1, fd;

	(void)state;
	small_window = true;
	fd = open_both(MSS, false);
	small_window = false;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	for (unsigned times = 0; times < 2; times++) {
		uint32_t before = sent;

		until_got(&b, sent);
		while (send_packet(&a, sent, 4000) == 0)
			sent++;
		assert_true(sent - before > 60); /* its own buffer at least */
		assert_int_equal(send_packet(&a, sent, 4000), -EAGAIN);
	}
	rwk_streams_leave(a.l, &a.to);
	assert_int_equal(a.l->ops->send(a.l, &a.to, NULL, 0), -ENOTCONN);
	assert_int_equal(until_word(&b), -ESHUTDOWN);
	assert_int_equal(b.got, sent);
	run();
	assert_int_equal(a.words, 0);
	close_both();
}

/* Closing the link says good-bye too; that comes behind the packets. */
static void close_says_goodbye(void **state)
{
	(void)state;
	open_both(0, false);
	assert_int_equal(send_packet(&a, 0, 100), 0);
	a.l->ops->close(a.l);
	for (uint64_t end = now_ms() + 20000; !b.words && now_ms() < end;)
		b.l->ops->progress(b.l, 8);
	assert_int_equal(b.word, -ESHUTDOWN);
	assert_int_equal(b.got, 1);
	b.l->ops->close(b.l);
}

/* A stream that its owner leaves from within a packet's upcall brings nothing more. */
static void left_inside(void **state)
{
	(void)state;
	open_both(0, false);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(send_packet(&a, i, 100), 0);
	b.leave_inside = true;
	assert_int_equal(until_word(&a), -ESHUTDOWN);
	assert_int_equal(b.got, 1);
	assert_int_equal(b.words, 0);
	close_both();
}

/* Frames by hand, a byte at a time, a good-bye at the end. */
static void byte_by_byte(void **state)
{
	uint8_t bytes[3 * (4 + 50) + 4];
	uint32_t len = 50, goodbye = GOODBYE;
	int fd = open_a();

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		memcpy(bytes + i * 54, &len, 4);
		make(bytes + i * 54 + 4, i, 50);
	}
	memcpy(bytes + 3 * 54, &goodbye, 4);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		assert_int_equal(send(fd, bytes + i, 1, 0), 1);
		run();
	}
	assert_int_equal(until_word(&a), -ESHUTDOWN);
	assert_int_equal(a.got, 3);
	close(fd);
	close_both();
}

/* It ends without a good-bye: between frames, in a length, in a packet. It is no good order. */
static void ends_anywhere(void **state)
{
	(void)state;
	for (size_t n = 0; n < 12; n++) {
		uint8_t bytes[12] = {8};
		int fd = open_a();

		assert_int_equal(send(fd, bytes, n, 0), n);
		close(fd);
		assert_int_equal(until_word(&a), -ECONNRESET);
		assert_int_equal(a.got, 0);
		close_both();
	}
}

/*
 * The peer's host has vanished: what comes to its socket is dropped before TCP sees it. The kernel says so once, and
 * here to a write; reading finds no more than an end then.
 */
static void silence_told_to_a_write(void **state)
{
	struct sock_filter drop = {BPF_RET | BPF_K, 0, 0, 0};
	struct sock_fprog all = {1, &drop};
	unsigned patience = 1; /* ms */
	struct pollfd p = {.events = 0};
	int fd = open_a();

	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)), 0);
	p.fd = a_fd;
	assert_int_equal(setsockopt(p.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof(patience)), 0);
	assert_int_equal(send_packet(&a, 0, 100), 0);
	a.l->ops->flush(a.l);
	assert_int_equal(poll(&p, 1, 20000), 1); /* its end, with the error that waits */
	assert_int_equal(send_packet(&a, 1, 100), 0);
	assert_int_equal(until_word(&a), -ETIMEDOUT);
	close(fd);
	close_both();
}

/* Lengths that no packet has. */
static void no_frame(void **state)
{
	static const uint32_t wrong[] = {RWK_STREAMS_MTU + 1, 0x10000, 0x7fffffff, GOODBYE - 1};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int fd = open_a();

		assert_int_equal(send(fd, &wrong[i], 4, 0), 4);
		assert_int_equal(until_word(&a), -EPROTO);
		close(fd);
		close_both();
	}
}

/* What is no connected TCP socket stays its owner's. */
static void not_a_stream(void **state)
{
	struct rwk_link_address at;
	struct rwk_link *l;
	int pair[2], fd = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(rwk_streams_open(&l), 0);
	assert_int_equal(rwk_streams_take(l, fd, false, NULL, &at), -ENOTCONN);
	assert_int_equal(rwk_streams_take(l, udp, false, NULL, &at), -EINVAL);
	assert_int_equal(rwk_streams_take(l, pair[0], false, NULL, &at), -EINVAL);
	assert_int_equal(close(fd) | close(udp) | close(pair[0]) | close(pair[1]), 0);
	assert_int_equal(rwk_streams_take(l, fd, false, NULL, &at), -EINVAL);
	l->ops->close(l);
}

/*
 * Segments.
 */

static struct tcp_info look(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info;
}

/* Segments with data that a's kernel sends for `n` packets of that length, all ready at once. */
static unsigned segments_for(uint32_t n, size_t len, bool alone)
{
	int fd = open_both(MSS, alone);
	unsigned segments;

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(send_packet(&a, i, len), 0);
	until_got(&b, n);
	segments = look(fd).tcpi_data_segs_out - look(fd).tcpi_total_retrans;
	close_both();
	return segments;
}

/* S2-13: one of ours is one of TCP's, the longest that fit and short ones, though all are ready at once. */
static void s2_13_one_segment_each(void **state)
{
	(void)state;
	assert_int_equal(segments_for(1, 40, true), 1); /* mss is known now */
	assert_int_equal(segments_for(100, mss - 4, true), 100);
	assert_int_equal(segments_for(100, 1072, true), 100);
	assert_int_equal(segments_for(100, 40, true), 100);
	/* Those of which no two fit one are so in any case. */
	assert_int_equal(segments_for(100, 1072, false), 100);
	assert_int_equal(segments_for(100, mss / 2, false), 100);
}

/* S4-12: several of ours share one of TCP's, as many as fit. */
static void s4_12_several_in_one(void **state)
{
	(void)state;
	assert_int_equal(segments_for(100, 40, false), (100 + mss / 44 - 1) / (mss / 44));
	assert_int_equal(segments_for(99, mss / 3 - 4, false), 33);
	assert_int_equal(segments_for(100, mss / 2 - 4, false), 50);
}

/* mtu is what fits a segment beside its length. */
static void mtu_is_a_segment(void **state)
{
	(void)state;
	open_both(MSS, false);
	assert_int_equal(a.l->ops->mtu(a.l, &a.to), mss - 4);
	close_both();
	open_both(0, false);
	assert_int_equal(a.l->ops->mtu(a.l, &a.to), RWK_STREAMS_MTU);
	close_both();
}

/* A network of this process's own, and a socket that sees all packets on its loopback; -1: not to be had. */
static int open_capture(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING};
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	int size = 8 << 20, fd;

	if (unshare(CLONE_NEWNET))
		return -1;
	fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	assert_int_equal(ioctl(fd, SIOCGIFINDEX, &lo), 0);
	at.sll_ifindex = lo.ifr_ifindex;
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return fd;
}

/* Frames in a segment's payload: whole ones alone, one at least. */
static unsigned frames_in(const uint8_t *p, size_t len)
{
	unsigned frames = 0;

	while (len) {
		uint32_t n;

		assert_true(len >= 4);
		memcpy(&n, p, 4);
		n = n == GOODBYE ? 0 : n;
		assert_true(len - 4 >= n);
		p += 4 + n;
		len -= 4 + n;
		frames++;
	}
	return frames;
}

static uint32_t sequence_of(const uint8_t *tcp)
{
	return (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 | (uint32_t)tcp[6] << 8 | tcp[7];
}

/*
 * Takes what was captured from that port; returns how many segments had data. One that is sent again is looked at, too,
 * and not counted.
 */
static unsigned take_apart(int capture, uint16_t port, unsigned *frames, unsigned *most)
{
	static uint8_t packet[70000];
	unsigned segments = 0;
	uint32_t end = 0; /* of what was there already */
	ssize_t n;

	while ((n = recv(capture, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		const uint8_t *tcp = packet + (packet[0] & 15) * 4u;
		const uint8_t *data = tcp + (tcp[12] >> 4) * 4u;
		size_t len = (size_t)(packet[2] << 8 | packet[3]) - (size_t)(data - packet);
		unsigned here;

		if ((tcp[0] << 8 | tcp[1]) != port || !len)
			continue;
		assert_true(len <= mss);
		here = frames_in(data, len);
		if (segments && (int32_t)(sequence_of(tcp) + len - end) <= 0)
			continue;
		end = sequence_of(tcp) + (uint32_t)len;
		*frames += here;
		*most = here > *most ? here : *most;
		segments++;
	}
	return segments;
}

static void aligned(int capture, bool alone)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	unsigned frames = 0, most = 0, segments;
	int fd = open_both(MSS, alone);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(send_packet(&a, i, 4 + i * 331 % (mss - 7)), 0);
		if (i % 60 == 59)
			until_got(&b, i + 1);
	}
	close_both();
	segments = take_apart(capture, ntohs(own.sin_port), &frames, &most);
	assert_int_equal(frames, 301); /* the good-bye too */
	assert_true(segments <= frames);
	if (alone)
		assert_int_equal(segments, frames);
	else
		assert_true(most >= 3);
}

/* S2-13, S4-12: each segment on the wire begins with a frame and holds whole frames alone, whatever their lengths. */
static void s2_13_s4_12_captured(void **state)
{
	int capture = open_capture();

	(void)state;
	if (capture < 0) {
		print_message("no network of its own to capture in: segments were only counted\n");
		skip();
	}
	aligned(capture, true);
	aligned(capture, false);
	close(capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_and_in_order), cmocka_unit_test(full_then_left),
		cmocka_unit_test(close_says_goodbye), cmocka_unit_test(left_inside), cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(ends_anywhere), cmocka_unit_test(silence_told_to_a_write), cmocka_unit_test(no_frame),
		cmocka_unit_test(not_a_stream), cmocka_unit_test(s2_13_one_segment_each),
		cmocka_unit_test(s4_12_several_in_one), cmocka_unit_test(mtu_is_a_segment),
		cmocka_unit_test(s2_13_s4_12_captured), /* last: it leaves the network of the others */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
