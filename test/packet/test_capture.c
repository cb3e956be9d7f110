/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: what is written is read back, by a parser of our own and by tshark. */
#define _GNU_SOURCE
#include "packet/captured.h"

#include "wire/wire.h"

#include <time.h>

/* A checksum over `len` bytes that holds its own is right if it comes to all ones. */
static uint32_t sum_up(uint32_t sum, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? b[i] : (uint32_t)b[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* One packet of a table of packets, and what is to be found of it. */
struct sample {
	enum rwk_capture_link link;
	bool outgoing;
	const char *from, *to;
	uint16_t from_port, to_port;
	size_t len;
};

static const struct sample samples[] = {
	{RWK_CAPTURE_UDP, true, "10.0.0.1", "10.0.0.2", 40000, 4791, 16},
	{RWK_CAPTURE_UDP, false, "10.0.0.2", "10.0.0.1", 4791, 40000, 17},
	{RWK_CAPTURE_TCP, true, "192.168.255.1", "172.16.0.9", 1, 65535, 18},
	{RWK_CAPTURE_SHM, false, "127.0.0.1", "127.0.0.1", 5, 6, 19},
	{RWK_CAPTURE_SIM, true, "2001:db8::1", "2001:db8::2", 40000, 40001, 20},
	{RWK_CAPTURE_UDP, false, "fe80::ffff", "2001:db8::2", 40000, 4791, 4096},
	{RWK_CAPTURE_UDP, false, "fe80::ffff", "2001:db8::2", 40000, 4791, 4097},
	{RWK_CAPTURE_UDP, true, "10.0.0.1", "2001:db8::2", 40000, 4791, 1},
	{RWK_CAPTURE_UDP, true, "10.0.0.1", "10.0.0.2", 40000, 4791, 0},
};

#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static void write_sample(struct rwk_capture *c, const struct sample *s, uint64_t time)
{
	struct rwk_capture_end from = end_at(s->from, s->from_port), to = end_at(s->to, s->to_port);
	size_t third = s->len / 3;
	struct iovec iov[4] = {
		{content, third}, {NULL, 0}, {content + third, third}, {content + 2 * third, s->len - 2 * third}};

	rwk_capture_packet(c, s->link, s->outgoing, &from, &to, iov, 4, time);
}

static void check_ports(const struct sample *s, const uint8_t *udp)
{
	assert_int_equal(udp[0] << 8 | udp[1], s->from_port);
	assert_int_equal(udp[2] << 8 | udp[3], 4791);
	assert_int_equal(udp[4] << 8 | udp[5], 8 + s->len);
	assert_memory_equal(udp + 8, content, s->len);
}

static void check_v4(const struct sample *s, const struct record *r)
{
	struct rwk_capture_end from = end_at(s->from, 0), to = end_at(s->to, 0);
	const uint8_t *b = r->bytes;

	assert_int_equal(r->kept, 28 + s->len);
	assert_int_equal(b[0], 0x45);
	assert_int_equal(b[2] << 8 | b[3], r->length);
	assert_int_equal(b[9], 17);
	assert_int_equal(sum_up(0, b, 20), 0xffff);
	assert_memory_equal(b + 12, from.ip + 12, 4);
	assert_memory_equal(b + 16, to.ip + 12, 4);
	assert_int_equal(b[26] << 8 | b[27], 0);
	check_ports(s, b + 20);
}

static void check_v6(const struct sample *s, const struct record *r)
{
	struct rwk_capture_end from = end_at(s->from, 0), to = end_at(s->to, 0);
	const uint8_t *b = r->bytes;

	assert_int_equal(r->kept, 48 + s->len);
	assert_int_equal(b[0], 0x60);
	assert_int_equal(b[4] << 8 | b[5], 8 + s->len);
	assert_int_equal(b[6], 17);
	assert_memory_equal(b + 8, from.ip, 16);
	assert_memory_equal(b + 24, to.ip, 16);
	assert_true(b[46] || b[47]);
	assert_int_equal(sum_up(17 + (uint32_t)(8 + s->len), b + 8, 40 + s->len), 0xffff);
	check_ports(s, b + 40);
}

/* All links, both directions, IPv4, IPv6 and mixed, odd lengths, pieces: every byte is where it should be. */
static void round_trip(void **state)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);
	struct file *f;

	(void)state;
	assert_non_null(c);
	for (size_t i = 0; i < SAMPLES; i++)
		write_sample(c, &samples[i], T0 + i);
	rwk_capture_close(c);
	f = parse(path);
	assert_int_equal(f->interfaces, 4);
	assert_string_equal(f->name[RWK_CAPTURE_UDP], "udp");
	assert_string_equal(f->name[RWK_CAPTURE_TCP], "tcp");
	assert_string_equal(f->name[RWK_CAPTURE_SHM], "shm");
	assert_string_equal(f->name[RWK_CAPTURE_SIM], "sim");
	assert_int_equal(f->count, SAMPLES);
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sample *s = &samples[i];
		const struct record *r = &f->record[i];
		char comment[32] = "";

		assert_int_equal(r->interface, s->link);
		assert_int_equal(r->time, T0 + i);
		assert_int_equal(r->length, r->kept);
		assert_int_equal(r->flags, s->outgoing ? 2 : 1);
		if (s->to_port != 4791)
			snprintf(comment, sizeof(comment), "to port %u", s->to_port);
		assert_string_equal(r->comment, comment);
		if (strchr(s->from, ':') || strchr(s->to, ':'))
			check_v6(s, r);
		else
			check_v4(s, r);
	}
	forget(f);
	assert_int_equal(warnings, 0);
}

/* What tshark says of an RC Send and of an answer to it, over all that we show. */
static void tshark(void **state)
{
	static const char command[] = "tshark -n -r %s -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -T fields "
				      "-E separator='|' -e frame.interface_name -e frame.time_epoch "
				      "-e frame.packet_flags_direction -e frame.comment -e ip.src -e ipv6.dst "
				      "-e udp.srcport -e udp.dstport -e ip.checksum.status -e udp.checksum.status "
				      "-e infiniband.bth.opcode -e infiniband.bth.psn -e _ws.malformed 2>/dev/null";
	static const char *const expected[] = {
		"udp|1700000000.123456789|0x00000002||10.0.0.1||40000|4791|1|3|4|1193046|\n",
		"tcp|1700000001.123456789|0x00000001|to port 40000||2001:db8::1|41000|4791||1|17|1193046|\n",
	};
	struct rwk_wire w = {.opcode = RWK_WIRE_RC | RWK_WIRE_SEND_ONLY, .pkey = 0xffff, .qpn = 0x17, .psn = 0x123456};
	struct rwk_capture_end a = end_at("10.0.0.1", 40000), b = end_at("10.0.0.2", 4791),
			       a6 = end_at("2001:db8::1", 40000), b6 = end_at("2001:db8::2", 41000);
	uint8_t head[RWK_WIRE_HEADER_MAX], icrc[4] = {1, 2, 3, 4};
	struct iovec iov[3] = {{head, 0}, {content, 64}, {icrc, 4}};
	struct rwk_capture *c = rwk_capture_open(path, 0);
	char line[1024], run[sizeof(command) + sizeof(path)];
	FILE *out;

	(void)state;
	assert_non_null(c);
	iov[0].iov_len = rwk_wire_pack(&w, 64, head);
	rwk_capture_packet(c, RWK_CAPTURE_UDP, true, &a, &b, iov, 3, T0);
	w.opcode = RWK_WIRE_RC | RWK_WIRE_ACK;
	w.aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT;
	iov[0].iov_len = rwk_wire_pack(&w, 0, head);
	iov[1] = iov[2];
	rwk_capture_packet(c, RWK_CAPTURE_TCP, false, &b6, &a6, iov, 2, T0 + SECOND);
	rwk_capture_close(c);
	snprintf(run, sizeof(run), command, path);
	out = popen(run, "r");
	assert_non_null(out);
	for (size_t i = 0; i < 2; i++) {
		if (!fgets(line, sizeof(line), out))
			fail_msg("tshark (Debian: tshark) cannot be run, or does not see packet %zu", i);
		assert_string_equal(line, expected[i]);
	}
	assert_null(fgets(line, sizeof(line), out));
	assert_int_equal(pclose(out), 0);
}

/* More than IP has a length for is cut, and the next packet is whole. */
static void cut(void **state)
{
	static const size_t lens[] = {65507, 65508, 70000, 100000, 8};
	struct rwk_capture *c = rwk_capture_open(path, 0);
	struct file *f;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		write_packet(c, i, lens[i], T0);
	rwk_capture_close(c);
	f = parse(path);
	assert_int_equal(f->count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(number_of(&f->record[i]), i);
		assert_int_equal(f->record[i].length, 28 + lens[i]);
		assert_int_equal(f->record[i].kept, lens[i] > 65507 ? 65535 : 28 + lens[i]);
		assert_memory_equal(f->record[i].bytes + 32, content, f->record[i].kept - 32);
	}
	forget(f);
}

/* Without a time given, a packet's is now. */
static void clock_time(void **state)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);
	struct timespec before, after;
	struct file *f;

	(void)state;
	clock_gettime(CLOCK_REALTIME, &before);
	write_packet(c, 0, 8, 0);
	clock_gettime(CLOCK_REALTIME, &after);
	rwk_capture_close(c);
	f = parse(path);
	assert_int_equal(f->count, 1);
	assert_in_range(f->record[0].time, (uint64_t)before.tv_sec * SECOND + (uint64_t)before.tv_nsec,
		(uint64_t)after.tv_sec * SECOND + (uint64_t)after.tv_nsec);
	forget(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURED(round_trip),
		CAPTURED(tshark),
		CAPTURED(cut),
		CAPTURED(clock_time),
	};

	return cmocka_run_group_tests_name("packet/capture", tests, captured_open, captured_close);
}
