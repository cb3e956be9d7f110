/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures: what is written is read back, by a parser of our own and by tshark; what cannot be written is said once,
 * what is in the file by then can be read, and the process goes on.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "base/log.h"
#include "packet/capture.h"
#include "transport.h"
#include "wire/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define T0      UINT64_C(1700000000123456789)
#define SECOND  UINT64_C(1000000000)
#define RECORDS 20000

static char folder[] = "/tmp/rwk-test-capture-XXXXXX";
static char path[sizeof(folder) + 20];
static int warnings;
static char warning[1024];

static void keep_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level != RWK_LOG_WARN)
		return;
	warnings++;
	snprintf(warning, sizeof(warning), "%s", text);
}

static int begin(void **state)
{
	(void)state;
	warnings = 0;
	rwk_log_set_sink(keep_warning);
	snprintf(path, sizeof(path), "%s/capture", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	rwk_log_set_sink(NULL);
	unlink(path);
	return 0;
}

static struct rwk_capture_end end_at(const char *ip, uint16_t port)
{
	struct rwk_capture_end e = {.port = port};

	if (inet_pton(AF_INET, ip, e.ip + 12) == 1)
		e.ip[10] = e.ip[11] = 0xff;
	else
		assert_int_equal(inet_pton(AF_INET6, ip, e.ip), 1);
	return e;
}

/* ---- the parser ---- */

struct record {
	uint32_t interface, kept, length, flags;
	uint64_t time;
	const uint8_t *bytes;
	char comment[32];
};

struct file {
	uint8_t *bytes;
	size_t len;
	unsigned interfaces;
	char name[8][8];
	unsigned count;
	struct record record[RECORDS];
};

static uint32_t word(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Finds an option between `at` and `stop`; the list must end as it should. */
static const uint8_t *option(const uint8_t *at, const uint8_t *stop, uint16_t code, uint16_t *len)
{
	const uint8_t *found = NULL;
	uint16_t head[2];

	for (;;) {
		assert_true(at + 4 <= stop);
		memcpy(head, at, 4);
		at += 4;
		if (!head[0])
			break;
		assert_true(at + head[1] <= stop);
		if (head[0] == code) {
			found = at;
			*len = head[1];
		}
		at += (head[1] + 3) & ~3;
	}
	assert_ptr_equal(at, stop);
	return found;
}

static void parse_interface(struct file *f, const uint8_t *body, const uint8_t *stop)
{
	const uint8_t *o;
	uint16_t len;

	assert_int_equal(body[0] | body[1] << 8, 101);
	assert_int_equal(word(body + 4), 65535);
	o = option(body + 8, stop, 9, &len);
	assert_non_null(o);
	assert_int_equal(*o, 9);
	o = option(body + 8, stop, 2, &len);
	assert_non_null(o);
	assert_true(f->interfaces < 8 && len < 8);
	memcpy(f->name[f->interfaces], o, len);
	f->name[f->interfaces++][len] = 0;
}

static void parse_packet(struct file *f, const uint8_t *body, const uint8_t *stop)
{
	struct record *r = &f->record[f->count++];
	const uint8_t *o;
	uint16_t len;

	assert_true(f->count < RECORDS);
	memset(r, 0, sizeof(*r));
	r->interface = word(body);
	assert_true(r->interface < f->interfaces);
	r->time = (uint64_t)word(body + 4) << 32 | word(body + 8);
	r->kept = word(body + 12);
	r->length = word(body + 16);
	r->bytes = body + 20;
	assert_true(r->kept <= r->length && r->bytes + r->kept <= stop);
	body = r->bytes + ((r->kept + 3) & ~3u);
	o = option(body, stop, 2, &len);
	assert_non_null(o);
	assert_int_equal(len, 4);
	r->flags = word(o);
	o = option(body, stop, 1, &len);
	if (o) {
		assert_true(len < sizeof(r->comment));
		memcpy(r->comment, o, len);
	}
}

/* Reads a whole file; every block must be whole. */
static struct file *parse(const char *name)
{
	struct file *f = calloc(1, sizeof(*f));
	FILE *in = fopen(name, "r");
	size_t at = 0;

	assert_non_null(f);
	assert_non_null(in);
	f->bytes = malloc(64 << 20);
	assert_non_null(f->bytes);
	f->len = fread(f->bytes, 1, 64 << 20, in);
	assert_true(feof(in));
	fclose(in);
	while (at < f->len) {
		const uint8_t *b = f->bytes + at;
		uint32_t len;

		assert_true(f->len - at >= 12);
		len = word(b + 4);
		assert_true(len >= 12 && len % 4 == 0 && len <= f->len - at);
		assert_int_equal(word(b + len - 4), len);
		assert_true(at || word(b) == 0x0a0d0d0a);
		if (word(b) == 1) {
			parse_interface(f, b + 8, b + len - 4);
		} else if (word(b) == 6) {
			parse_packet(f, b + 8, b + len - 4);
		} else {
			assert_int_equal(word(b), 0x0a0d0d0a);
			assert_int_equal(at, 0);
			assert_int_equal(word(b + 8), 0x1a2b3c4d);
			assert_int_equal(word(b + 12), 1); /* version 1.0 */
		}
		at += len;
	}
	return f;
}

static void forget(struct file *f)
{
	free(f->bytes);
	free(f);
}

/* ---- packets to write ---- */

static uint8_t content[100000];

/* A packet of `len` bytes of content, whose first word is `number`. */
static void write_packet(struct rwk_capture *c, uint32_t number, size_t len, uint64_t time)
{
	struct rwk_capture_end from = end_at("10.0.0.1", 40000), to = end_at("10.0.0.2", 4791);
	struct iovec iov[2] = {{&number, sizeof(number)}, {content, len - sizeof(number)}};

	rwk_capture_packet(c, RWK_CAPTURE_UDP, true, &from, &to, iov, 2, time);
}

static uint32_t number_of(const struct record *r)
{
	return word(r->bytes + 28);
}

/* ---- tests ---- */

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

/* Names: the parts that are replaced, and those that are not. */
static void names(void **state)
{
	static const struct {
		const char *pattern;
		uint32_t rank;
		const char *name;
	} cases[] = {
		{"a", 7, "a"},
		{"a.%r", 7, "a.7"},
		{"%r%r", 12, "1212"},
		{"%r", RWK_ADDR_NO_RANK, "none"},
		{"100%%r", 7, "100%r"},
		{"%x%", 7, "%x%"},
	};
	char pattern[PATH_MAX + 100], name[PATH_MAX];
	struct rwk_capture *c;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(pattern, sizeof(pattern), "%s/%s", folder, cases[i].pattern);
		snprintf(name, sizeof(name), "%s/%s", folder, cases[i].name);
		c = rwk_capture_open(pattern, cases[i].rank);
		assert_non_null(c);
		rwk_capture_close(c);
		assert_int_equal(unlink(name), 0);
	}
	snprintf(pattern, sizeof(pattern), "%s/%%p.%%r", folder);
	snprintf(name, sizeof(name), "%s/%d.3", folder, (int)getpid());
	c = rwk_capture_open(pattern, 3);
	rwk_capture_close(c);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(warnings, 0);
	memset(pattern, 'a', sizeof(pattern) - 1);
	pattern[PATH_MAX - 1] = 0;
	pattern[PATH_MAX - 3] = '%';
	pattern[PATH_MAX - 2] = 'p';
	assert_null(rwk_capture_open(pattern, 0));
	assert_int_equal(warnings, 1);
}

/* Nothing asked for, nothing done. */
static void nothing(void **state)
{
	(void)state;
	assert_null(rwk_capture_open(NULL, 0));
	assert_null(rwk_capture_open("", 0));
	write_packet(NULL, 0, 8, T0);
	rwk_capture_close(NULL);
	assert_int_equal(warnings, 0);
}

/* Ports of a process share the file; the last one closes it. What was there before is gone. */
static void shared(void **state)
{
	struct rwk_capture *a = rwk_capture_open(path, 0), *b;
	struct stat st;
	struct file *f;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600); /* it has the users' data */
	for (uint32_t i = 0; i < 100; i++)
		write_packet(a, i, 4000, T0);
	rwk_capture_close(a);
	a = rwk_capture_open(path, 0);
	b = rwk_capture_open(path, 0);
	assert_ptr_equal(a, b);
	write_packet(a, 1, 8, T0);
	rwk_capture_close(a);
	write_packet(b, 2, 8, T0);
	rwk_capture_close(b);
	f = parse(path);
	assert_int_equal(f->count, 2);
	assert_int_equal(number_of(&f->record[0]), 1);
	assert_int_equal(number_of(&f->record[1]), 2);
	forget(f);
	assert_int_equal(warnings, 0);
}

static void *write_many(void *arg)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);

	for (uint32_t i = 0; i < 2000; i++)
		write_packet(c, i, 100, T0);
	rwk_capture_close(c);
	return arg;
}

/* Threads write at the same time: every packet is there, whole. */
static void threads(void **state)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);
	unsigned seen[2000] = {0};
	pthread_t thread[4];
	struct file *f;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_many, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	rwk_capture_close(c);
	f = parse(path);
	assert_int_equal(f->count, 8000);
	for (unsigned i = 0; i < f->count; i++) {
		assert_true(number_of(&f->record[i]) < 2000);
		seen[number_of(&f->record[i])]++;
	}
	for (int i = 0; i < 2000; i++)
		assert_int_equal(seen[i], 4);
	forget(f);
}

/* Places that cannot be written to: said once, with the reason, and no capture. */
static void refused(void **state)
{
	char name[sizeof(folder) + 30], fifo[sizeof(folder) + 30];
	const struct {
		const char *name, *why;
	} cases[] = {
		{name, "No such file"},
		{folder, "Is a directory"},
		{fifo, "No such device or address"},
	};
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "%s/absent/file", folder);
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (size_t i = 0; i < 3; i++) {
		warnings = 0;
		assert_null(rwk_capture_open(cases[i].name, 0));
		assert_int_equal(warnings, 1);
		assert_non_null(strstr(warning, "FI_ROPEWALK_PCAP"));
		assert_non_null(strstr(warning, cases[i].name));
		assert_non_null(strstr(warning, cases[i].why));
	}
	fd = open(fifo, O_RDONLY | O_NONBLOCK); /* a reader, who may go away */
	assert_null(rwk_capture_open(fifo, 0));
	assert_int_equal(warnings, 2);
	assert_non_null(strstr(warning, "neither a file nor a character device"));
	close(fd);
	unlink(fifo);
}

/* The status of a child that has run `body`. */
static int in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* A device that is always full: the first write says so, later packets do nothing. */
static void full_device(void **state)
{
	struct rwk_capture *c = rwk_capture_open("/dev/full", 0);

	(void)state;
	assert_non_null(c);
	for (uint32_t i = 0; i < 1000; i++)
		write_packet(c, i, 4000, T0);
	rwk_capture_close(c);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, "/dev/full: No space left on device; the capture ends here"));
}

#define DISK 300000 /* bytes, of 1000 packets of 1000 bytes */

static void check_full(const char *name)
{
	struct file *f = parse(name);

	assert_int_equal(warnings, 1);
	assert_true(f->len <= DISK + 4096 && f->count > 50 && f->count < 1000);
	for (unsigned i = 0; i < f->count; i++) {
		assert_int_equal(number_of(&f->record[i]), i);
		assert_int_equal(f->record[i].kept, 1028);
	}
	forget(f);
}

static void fill(const char *name)
{
	struct rwk_capture *c = rwk_capture_open(name, 0);

	for (uint32_t i = 0; i < 1000; i++)
		write_packet(c, i, 1000, T0);
	rwk_capture_close(c);
}

#define CANNOT 77

static void fill_disk(void)
{
	char size[40];

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(CANNOT);
	snprintf(size, sizeof(size), "size=%d", DISK);
	if (mount("rwk-test", folder, "tmpfs", 0, size))
		_exit(CANNOT);
	fill(path);
	check_full(path);
}

/* A disk becomes full in the middle of a packet: the file ends with the last whole one before. */
static void full_disk(void **state)
{
	int status = in_child(fill_disk);

	(void)state;
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
		print_message("no right to mount a disk: only the other tests of full ones have run\n");
		return;
	}
	assert_int_equal(status, 0);
}

static void reach_limit(void)
{
	struct rlimit limit = {DISK, DISK};

	setrlimit(RLIMIT_FSIZE, &limit);
	fill(path);
	check_full(path);
}

/* A file that reaches the limit of the process's files (ulimit -f) ends the capture and not the process. */
static void file_limit(void **state)
{
	(void)state;
	assert_int_equal(in_child(reach_limit), 0);
}

static struct rwk_capture *inherited;

static void meddle(void)
{
	write_packet(inherited, 99, 8, T0);
	write_packet(inherited, 99, 8, T0 + 9 * SECOND);
	if (rwk_capture_open(path, 0) || warnings != 1 || !strstr(warning, "another process"))
		_exit(1);
	rwk_capture_close(inherited);
	exit(0); /* with what exit does to buffers */
}

/* A child of fork adds nothing to its parent's file, neither of its own nor of what was buffered. */
static void forked(void **state)
{
	struct file *f;

	(void)state;
	inherited = rwk_capture_open(path, 0);
	write_packet(inherited, 1, 8, T0);
	write_packet(inherited, 2, 8, T0);
	assert_int_equal(in_child(meddle), 0);
	write_packet(inherited, 3, 8, T0);
	rwk_capture_close(inherited);
	f = parse(path);
	assert_int_equal(f->count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(number_of(&f->record[i]), i + 1);
	forget(f);
	assert_int_equal(warnings, 0);
}

static void be_killed(void)
{
	struct rwk_capture *c = rwk_capture_open(path, 0);

	write_packet(c, 1, 8, T0);
	write_packet(c, 2, 8, T0 + SECOND / 2);
	write_packet(c, 3, 8, T0 + SECOND + 1);
	kill(getpid(), SIGKILL);
}

/* A process that is killed takes a second of packets with it, not more. */
static void killed(void **state)
{
	int status = in_child(be_killed);
	struct file *f;

	(void)state;
	assert_true(WIFSIGNALED(status));
	f = parse(path);
	assert_int_equal(f->count, 2);
	assert_int_equal(number_of(&f->record[1]), 2);
	forget(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(round_trip),
		TEST(tshark),
		TEST(cut),
		TEST(clock_time),
		TEST(names),
		TEST(nothing),
		TEST(shared),
		TEST(threads),
		TEST(refused),
		TEST(full_device),
		TEST(full_disk),
		TEST(file_limit),
		TEST(forked),
		TEST(killed),
	};
	int failed;

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 7 + i / 251);
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	failed = cmocka_run_group_tests_name("packet/capture", tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
