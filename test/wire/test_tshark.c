/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another's eyes: packets of ours, one or more of every opcode, in a capture file, are what we say they are to tshark
 * too, and none is malformed. Of SRC (XRC), congestion notifications and our own opcodes tshark 4.0 knows no more than
 * BTH: there, only that is compared; but of SRC it names the operations, and shows what stands behind BTH as it is.
 *
 * Links: none: bytes alone.
 */
#include "rwk_test.h"

#include <unistd.h>

#include "base/compiler.h"
#include "wire/icrc.h"
#include "wire/segment.h"
#include "wire/wire.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Dissectors that take a Send's or a datagram's payload for their own are off. */
#define TSHARK                                                                                                         \
	"tshark -r %s --disable-protocol rpcordma --disable-protocol iser --disable-protocol nvme-rdma "               \
	"--disable-protocol smb_direct --disable-protocol infiniband.eoib "

enum { IP_UDP = 28, TEXT = 24, LINE = 1024, PACKETS_MAX = 256 };

/* What tshark is asked for, and what we say in the same words; nothing for what a packet does not have. */
enum field {
	OPCODE,
	SOLICITED,
	MIGRATED,
	PAD,
	PKEY,
	QPN,
	ACK_REQUEST,
	PSN,
	ADDRESS,
	KEY,
	LENGTH,
	SWAP_ADD,
	COMPARE,
	SYNDROME,
	MSN,
	ATOMIC_ACK,
	IMM,
	INVALIDATE,
	QKEY,
	SOURCE_QPN,
	ICRC,
	MALFORMED,
	FIELDS,
};

static const char *const names[FIELDS] = {
	[OPCODE] = "infiniband.bth.opcode",
	[SOLICITED] = "infiniband.bth.se",
	[MIGRATED] = "infiniband.bth.m",
	[PAD] = "infiniband.bth.padcnt",
	[PKEY] = "infiniband.bth.p_key",
	[QPN] = "infiniband.bth.destqp",
	[ACK_REQUEST] = "infiniband.bth.a",
	[PSN] = "infiniband.bth.psn",
	[ADDRESS] = "infiniband.reth.va",
	[KEY] = "infiniband.reth.r_key",
	[LENGTH] = "infiniband.reth.dmalen",
	[SWAP_ADD] = "infiniband.atomiceth.swapdt",
	[COMPARE] = "infiniband.atomiceth.cmpdt",
	[SYNDROME] = "infiniband.aeth.syndrome",
	[MSN] = "infiniband.aeth.msn",
	[ATOMIC_ACK] = "infiniband.atomicacketh.origremdt",
	[IMM] = "infiniband.immdt",
	[INVALIDATE] = "infiniband.ieth",
	[QKEY] = "infiniband.deth.q_key",
	[SOURCE_QPN] = "infiniband.deth.srcqp",
	[ICRC] = "infiniband.invariant.crc",
	[MALFORMED] = "_ws.malformed",
};

/* One packet as it should be seen. */
struct line {
	char field[FIELDS][TEXT];
};

static struct line lines[PACKETS_MAX];
static unsigned count;

static void put16(uint8_t *p, unsigned v)
{
	p[0] = v >> 8;
	p[1] = v;
}

/* IPv4 and UDP below a packet of `len` bytes, as a link of ours would send it: identification 0, do not fragment. */
static void put_ip_udp(uint8_t *p, size_t len)
{
	static const uint8_t head[] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
	uint32_t sum = 0;

	memcpy(p, head, sizeof(head));
	put16(p + 2, IP_UDP + len);
	for (int i = 0; i < 20; i += 2)
		sum += p[i] << 8 | p[i + 1];
	put16(p + 10, ~((sum & 0xffff) + (sum >> 16)));
	put16(p + 20, 0xc123);
	put16(p + 22, RWK_WIRE_UDP_PORT);
	put16(p + 24, 8 + len);
	put16(p + 26, 0);
}

static uint32_t icrc_of(const uint8_t *ip, size_t len)
{
	uint8_t pseudo[8 + IP_UDP];

	memset(pseudo, 0xff, 8);
	memcpy(pseudo + 8, ip, IP_UDP);
	pseudo[8 + 1] = pseudo[8 + 8] = pseudo[8 + 10] = pseudo[8 + 11] = 0xff;
	memset(pseudo + 8 + 26, 0xff, 2);
	return rwk_icrc_bytes(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, pseudo, sizeof(pseudo)), ip + IP_UDP, len);
}

static void rwk_printf(3, 4) say(struct line *line, enum field field, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(line->field[field], TEXT, format, args);
	va_end(args);
}

static void say_bth(struct line *line, const struct rwk_wire *w, size_t payload)
{
	say(line, OPCODE, "%u", w->opcode);
	say(line, SOLICITED, "%d", w->solicited);
	say(line, MIGRATED, "%d", w->migrated);
	say(line, PAD, "%zu", -payload & 3);
	say(line, PKEY, "%u", w->pkey);
	say(line, QPN, "0x%06x", w->qpn);
	say(line, ACK_REQUEST, "%d", w->ack_request);
	say(line, PSN, "%u", w->psn);
}

/* What follows BTH; which operations have what stands here once more, from the standard. */
static void say_rest(struct line *line, const struct rwk_wire *w)
{
	unsigned operation = RWK_WIRE_OPERATION(w->opcode);

	switch (operation) {
	case 0x06:
	case 0x0a:
	case 0x0b:
	case 0x0c:
		say(line, ADDRESS, "0x%016llx", (unsigned long long)w->reth.address);
		say(line, KEY, "0x%08x", w->reth.key);
		say(line, LENGTH, "%u", w->reth.length);
		break;
	case 0x13:
	case 0x14:
		say(line, ADDRESS, "0x%016llx", (unsigned long long)w->atomic.address);
		say(line, KEY, "0x%08x", w->atomic.key);
		say(line, SWAP_ADD, "%llu", (unsigned long long)w->atomic.swap_add);
		say(line, COMPARE, "%llu", (unsigned long long)w->atomic.compare);
		break;
	case 0x12:
		say(line, ATOMIC_ACK, "%llu", (unsigned long long)w->atomic_ack);
		/* fallthrough */
	case 0x0d:
	case 0x0f:
	case 0x10:
	case 0x11:
		say(line, SYNDROME, "%u", w->aeth.syndrome);
		say(line, MSN, "%u", w->aeth.msn);
		break;
	case 0x16:
	case 0x17:
		say(line, INVALIDATE, "%08x", w->invalidate);
		break;
	}
	if (operation == 0x03 || operation == 0x05 || operation == 0x09 || operation == 0x0b)
		say(line, IMM, "%08x", w->imm);
	if (RWK_WIRE_CLASS(w->opcode) == RWK_WIRE_UD) {
		say(line, QKEY, "0x%016x", w->deth.qkey);
		say(line, SOURCE_QPN, "0x%08x", w->deth.qpn);
	}
}

/* Writes one packet of that opcode to the capture, every field another number, and says what is to be seen of it. */
static void add(FILE *file, uint8_t opcode, size_t payload)
{
	uint8_t frame[IP_UDP + RWK_WIRE_HEADER_MAX + 4096 + 4] = {0}, *bth = frame + IP_UDP;
	uint32_t n = count + 1, record[4] = {n, 0};
	struct rwk_wire w = {
		.opcode = opcode,
		.solicited = n % 2,
		.migrated = n % 3 == 0,
		.ack_request = n % 5 < 2,
		.pkey = 0x8000 + n,
		.qpn = 0xabc000 + n,
		.psn = 0xfffff0 + n,
		.srqn = 0x123400 + n,
		.reth = {0x0102030405060000 + n, 0x11110000 + n, 0x22220000 + n},
		.atomic = {0x0102030405060000 + n, 0x33330000 + n, 0x4444444444440000 + n, 0x5555555555550000 + n},
		.aeth = {n % 0x20, 0x666600 + n},
		.atomic_ack = 0x7777777777770000 + n,
		.imm = 0x88880000 + n,
		.invalidate = 0x99990000 + n,
		.deth = {0xaaaa0000 + n, 0xbbbb00 + n},
	};
	size_t size = rwk_wire_pack(&w, payload, bth), len = size + payload + (-payload & 3);
	struct line *line = &lines[count++];
	uint32_t icrc;

	assert_true(size > 0);
	w.psn &= 0xffffff;
	memset(bth + size, 0xee, payload);
	put_ip_udp(frame, len + 4);
	icrc = icrc_of(frame, len);
	for (int i = 0; i < 4; i++)
		bth[len + i] = icrc >> 8 * i;
	record[2] = record[3] = IP_UDP + len + 4;
	assert_int_equal(fwrite(record, sizeof(record), 1, file), 1);
	assert_int_equal(fwrite(frame, record[2], 1, file), 1);
	say_bth(line, &w, payload);
	if (RWK_WIRE_CLASS(opcode) != RWK_WIRE_SRC && RWK_WIRE_CLASS(opcode) != RWK_WIRE_CNP && opcode < RWK_WIRE_OWN) {
		say_rest(line, &w);
		say(line, ICRC, "0x%02x%02x%02x%02x", bth[len], bth[len + 1], bth[len + 2], bth[len + 3]);
	}
}

/* Every opcode from the one to the other, with each pad and with the payloads at the bounds, as far as it may carry
 * them at a PMTU of 1024. */
static void add_all(FILE *file, unsigned from, unsigned to)
{
	static const uint32_t head[] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 101 /* IP, and nothing below */};
	static const size_t payloads[] = {0, 1, 7, 1024};

	count = 0;
	assert_int_equal(fwrite(head, sizeof(head), 1, file), 1);
	for (unsigned opcode = from; opcode <= to; opcode++)
		for (size_t i = 0; i < COUNT(payloads); i++)
			if (rwk_segment_fits(opcode, payloads[i], 1024))
				add(file, opcode, payloads[i]);
}

/* One line of tshark's against what is expected of it. */
static void compare(unsigned n, char *text)
{
	text[strcspn(text, "\n")] = 0;
	for (int i = 0; i < FIELDS; i++) {
		char *value = strsep(&text, "\t");

		if (!value)
			fail_msg("packet %u: tshark says nothing of %s", n, names[i]);
		if (strcmp(value, lines[n].field[i]))
			fail_msg("packet %u, opcode %s: %s is '%s', not '%s'", n, lines[n].field[OPCODE], names[i],
				value, lines[n].field[i]);
	}
}

/* What tshark says of the capture, a line a packet; returns how many. */
static unsigned ask_tshark(const char *path, char (*said)[LINE])
{
	char command[4096];
	size_t len = snprintf(command, sizeof(command), TSHARK "-T fields -E separator=/t -E occurrence=f", path);
	unsigned n = 0;
	FILE *tshark;

	for (int i = 0; i < FIELDS; i++)
		len += snprintf(command + len, sizeof(command) - len, " -e %s", names[i]);
	tshark = popen(command, "r");
	assert_non_null(tshark);
	while (n < PACKETS_MAX && fgets(said[n], LINE, tshark))
		n++;
	assert_int_equal(pclose(tshark), 0);
	return n;
}

/* Every field of every packet is what we put into it, and no packet is malformed. */
static void tshark_sees_the_same(void **state)
{
	static char said[PACKETS_MAX][LINE];
	char path[] = "/tmp/rwk_wire_XXXXXX";
	FILE *file = fdopen(mkstemp(path), "wb");
	unsigned n;

	(void)state;
	assert_non_null(file);
	add_all(file, 0, 255);
	assert_int_equal(fclose(file), 0);
	n = ask_tshark(path, said);
	unlink(path);
	assert_int_equal(n, count);
	assert_true(count > 2 * 61);
	for (n = 0; n < count; n++)
		compare(n, said[n]);
}

/* S1-4: to tshark our requests and responses of SRC are XRC's, and what stands behind a request's BTH is the SRQ
 * number. */
static void tshark_names_src(void **state)
{
	char path[] = "/tmp/rwk_wire_XXXXXX", command[1024], text[LINE], expected[2 * TEXT];
	FILE *file = fdopen(mkstemp(path), "wb"), *tshark;
	unsigned n = 0, numbers = 0, requests = 0;

	(void)state;
	assert_non_null(file);
	add_all(file, RWK_WIRE_SRC, RWK_WIRE_SRC | 0x1f);
	assert_int_equal(fclose(file), 0);
	snprintf(command, sizeof(command), TSHARK "-V", path);
	tshark = popen(command, "r");
	assert_non_null(tshark);
	while (fgets(text, LINE, tshark)) {
		const char *data = strstr(text, "Unknown/Vendor Specific Data: ");
		unsigned operation;

		if (strstr(text, "Opcode: ")) {
			operation = (unsigned)atoi(lines[n].field[OPCODE]) & 0x1f;
			requests += operation < 0x0d || operation > 0x12;
			snprintf(expected, sizeof(expected), "(%s)", lines[n++].field[OPCODE]);
			if (!strstr(text, "Extended Reliable Connection (XRC) - ") || !strstr(text, expected))
				fail_msg("packet %u, opcode %s: %s", n, expected, text);
		} else if (data && requests > numbers) {
			snprintf(expected, sizeof(expected), "Data: 00%06x", 0x123400 + n);
			if (!strstr(text, expected))
				fail_msg("packet %u: not %s, but %s", n, expected, text);
			numbers++;
		}
	}
	assert_int_equal(pclose(tshark), 0);
	unlink(path);
	assert_int_equal(n, count);
	assert_int_equal(numbers, requests);
	assert_true(requests > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tshark_sees_the_same),
		cmocka_unit_test(tshark_names_src),
	};

	if (system("tshark --version >/dev/null 2>&1")) {
		puts("skipped: tshark is not there");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
