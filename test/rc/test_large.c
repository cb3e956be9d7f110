/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of 2 GB, the longest there are: every packet carries the piece that belongs there, which shows in where its
 * payload lies. Two ends without a network; the longest take half of all packet numbers (RWK_TEST_ALL).
 */
#include "rwk_test.h"

#include "rc/rc.h"
#include "wire/psn.h"

#include <sys/mman.h>

#define LENGTH ((size_t)RWK_WIRE_LENGTH_MAX)
#define BASE   0x40000000ull
#define PIECES 64u /* of a Read's target, all the same memory */
#define QUEUE  1024u

struct packet {
	struct rwk_wire w;
	const uint8_t *payload;
	size_t len;
};

struct end {
	struct rwk_rc *qp;
	void *memory, *responder;
	struct packet out[QUEUE];
	unsigned count;
	size_t at; /* bytes of the message so far */
	unsigned done, messages;
};

static uint8_t *source; /* never written to: pages of zeros */

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct end *e = user;

	assert_in_range(count, 0, 1);
	if (e->count == QUEUE)
		return -EAGAIN;
	e->out[e->count++] = (struct packet){*w, count ? payload->iov_base : NULL, count ? payload->iov_len : 0};
	return 0;
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	(void)wr;
	assert_int_equal(status, 0);
	((struct end *)user)->done++;
}

static void on_failed(void *user, int err)
{
	(void)user;
	fail_msg("failed: %d", err);
}

static void next_piece(struct end *e, size_t at, size_t len)
{
	assert_int_equal(at, e->at);
	e->at += len;
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct end *e = user;

	(void)w;
	assert_int_equal(!!(where & RWK_PIECE_FIRST), e->at == 0);
	next_piece(e, (size_t)((const uint8_t *)bytes - source), len);
	assert_int_equal(!!(where & RWK_PIECE_LAST), e->at == LENGTH);
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	(void)user;
	(void)w;
	(void)access;
	assert_int_equal(key, 1);
	assert_true(address >= BASE && address + len <= BASE + LENGTH);
	return 0;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	(void)w;
	(void)key;
	assert_int_equal((const uint8_t *)bytes - source, address - BASE);
	next_piece(user, address - BASE, len);
	return 0;
}

static int on_read(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	(void)key;
	(void)max;
	if (address - BASE + len != ((struct end *)user)->at) /* else once more: the link had no room */
		next_piece(user, address - BASE, len);
	*iov = (struct iovec){source + (address - BASE), len};
	return 1;
}

static const struct rwk_machine_host host = {.emit = on_emit,
	.done = on_done,
	.failed = on_failed,
	.receive = on_receive,
	.reach = on_reach,
	.write = on_write,
	.read = on_read};

static void open_end(struct end *e, const struct rwk_rc_attr *attr)
{
	memset(e, 0, sizeof(*e));
	e->memory = aligned_alloc(64, (rwk_rc_size() + 63) / 64 * 64);
	e->responder = calloc(1, rwk_rc_responder_size());
	assert_true(e->memory && e->responder);
	e->qp = rwk_rc_open(e->memory, e->responder, &host, e);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTR, attr), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTS, NULL), 0);
}

static void close_end(struct end *e)
{
	rwk_rc_close(e->qp);
	free(e->memory);
	free(e->responder);
}

static void pass(struct end *from, struct end *to)
{
	for (unsigned i = 0; i < from->count; i++)
		rwk_rc_packet(to->qp, &from->out[i].w, from->out[i].payload, from->out[i].len, 1);
	from->count = 0;
}

static void carry(unsigned type, unsigned pmtu, unsigned own, uint32_t chunk)
{
	static struct end a, b;
	static struct iovec iov[PIECES];
	struct rwk_rc_attr attr = {.send_psn = 0xfffff0,
		.receive_psn = 7,
		.pmtu = (uint16_t)pmtu,
		.window = RWK_RC_WINDOW_MAX,
		.reads = 4,
		.peer_reads = 4,
		.own = own,
		.reach = RWK_REACH_READ | RWK_REACH_WRITE,
		.timeout = 1000000000,
		.ack_every = 32,
		.ack_delay = 1000000,
		.read_chunk = chunk};
	struct rwk_wr wr = {.type = (uint8_t)type, .iov = iov, .length = LENGTH, .remote = BASE, .key = 1};
	uint8_t *target = malloc(LENGTH / PIECES);

	assert_non_null(target);
	open_end(&a, &attr);
	attr.send_psn = 7;
	attr.receive_psn = 0xfffff0;
	open_end(&b, &attr);
	wr.iov_count = type == RWK_WR_READ ? PIECES : 1;
	for (unsigned i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){target, LENGTH / PIECES};
	if (type != RWK_WR_READ)
		iov[0] = (struct iovec){source, LENGTH};
	assert_int_equal(rwk_rc_post(a.qp, &wr), 0);
	while (!a.done) {
		assert_true(rwk_rc_pump(a.qp, 1) + rwk_rc_pump(b.qp, 1) > 0);
		pass(&a, &b);
		pass(&b, &a);
	}
	assert_int_equal(b.at, LENGTH);
	assert_int_equal(rwk_rc_counters(a.qp)->sent_again, 0);
	close_end(&a);
	close_end(&b);
	free(target);
}

static void carry_all(unsigned pmtu)
{
	for (unsigned type = RWK_WR_SEND; type <= RWK_WR_READ; type++) {
		carry(type, pmtu, 0, 0);
		carry(type, pmtu, RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS, 65536);
	}
}

static void two_gigabytes(void **state)
{
	(void)state;
	source = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(source, MAP_FAILED);
	carry_all(4096);
	if (getenv("RWK_TEST_ALL"))
		carry_all(256);
	munmap(source, LENGTH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_gigabytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
