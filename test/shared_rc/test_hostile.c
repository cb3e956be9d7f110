/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sibling that has gone mad writes into the segment: whatever stands in an inbox, or among the early packets, a
 * member reads nothing outside of them, and takes up its work again; whatever stands there of a member's regions, it
 * touches no other memory.
 */
#include "rwk_test.h"

#include "base/param.h"
#include "rc/internal.h"
#include "shared_rc/layout.h"
#include "shared_rc/traffic.h"

#include <sys/mman.h>

#define PMTU 256u

static const struct rwk_src_size size = {4, 4, 65536};

struct reader {
	struct rwk_src_view *view;
	const unsigned char *low, *high; /* what it is told of must lie in there */
	unsigned pieces;
};

static void look(struct reader *r, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	static volatile unsigned char sink;

	assert_true(p >= r->low && p <= r->high && len <= (size_t)(r->high - p));
	for (size_t i = 0; i < len; i++)
		sink = p[i];
	(void)sink;
	r->pieces++;
}

static void on_receive(void *user, uint32_t target, unsigned where, const void *bytes, size_t len)
{
	(void)target;
	(void)where;
	look(user, bytes, len);
}

static void on_write(void *user, uint32_t target, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	(void)target;
	(void)key;
	(void)address;
	look(user, bytes, len);
}

static int on_emit(void *user, const struct rwk_link_address *to, uint32_t cut, const struct rwk_wire *w,
	const struct iovec *payload, int count)
{
	(void)user;
	(void)to;
	assert_true(!cut || (cut >= 256 && cut < RWK_WIRE_OWN_MAX));
	(void)w;
	(void)payload;
	(void)count;
	return 0;
}

static unsigned woken;

static void on_wake(void *user, uint32_t srqn)
{
	(void)user;
	assert_true(rwk_src_seat_of(srqn) < size.members);
	woken++;
}

static const struct rwk_src_host host = {on_emit, on_receive, on_write, on_wake};

struct fixture {
	void *memory;
	struct rwk_src_layout layout;
	struct reader reader[2];
	struct rwk_src_member *member;
	unsigned char *ring; /* of member 0 */
	uint32_t qpn, psn, seed;
};

static struct fixture f;

static int setup(void **state)
{
	struct rwk_src_initiator i = speaker_initiator(0, PMTU);

	(void)state;
	f = (struct fixture){.memory = segment(size.members, size.targets, size.inbox_bytes), .psn = i.psn, .seed = 5};
	assert_int_equal(rwk_src_layout_of(&size, &f.layout), 0);
	f.member = (struct rwk_src_member *)((char *)f.memory + f.layout.members);
	f.ring = (unsigned char *)f.memory + f.layout.inboxes;
	for (unsigned n = 0; n < 2; n++)
		assert_int_equal(rwk_src_view_open(f.memory, &host, &f.reader[n], &f.reader[n].view), 0);
	f.reader[0].low = f.ring;
	f.reader[0].high = f.ring + size.inbox_bytes;
	assert_int_equal(rwk_src_target_make(f.reader[0].view, &i, &f.qpn), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2; n++)
		rwk_src_view_close(f.reader[n].view);
	munmap(f.memory, rwk_src_segment_size(&size));
	return 0;
}

/* A packet for member 0's SRQ, taken by member 1. */
static void serve(uint32_t psn)
{
	struct rwk_link_address from = speaker_initiator(0, PMTU).to;
	uint8_t bytes[PMTU] = {1};
	struct rwk_wire w = {.opcode = RWK_WIRE_SRC | RWK_WIRE_SEND_ONLY,
		.qpn = f.qpn,
		.psn = psn & 0xffffff,
		.srqn = rwk_src_srqn(f.reader[0].view)};

	rwk_src_packet(f.reader[1].view, &from, &w, bytes, sizeof(bytes), 1000);
}

/* The inbox works: what is put in now comes out. */
static void check_works(void)
{
	unsigned before;

	while (rwk_src_drain(f.reader[0].view, 1000))
		;
	before = f.reader[0].pieces;
	serve(f.psn++);
	assert_int_equal(rwk_src_drain(f.reader[0].view, 1000), 1);
	assert_int_equal(f.reader[0].pieces, before + 1);
}

static void scribble(unsigned char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (unsigned char)(chance(&f.seed) >> 8);
}

/* One record with each thing wrong that can be. */
static void mad_records(void **state)
{
	static const struct rwk_src_record cases[] = {
		{.head = {.bytes = 0, .kind = RWK_SRC_SEND}},
		{.head = {.bytes = 48, .kind = RWK_SRC_SEND}, .len = 9},
		{.head = {.bytes = 48, .kind = RWK_SRC_SEND}, .len = UINT32_MAX},
		{.head = {.bytes = 44, .kind = RWK_SRC_SEND}, .len = 4},
		{.head = {.bytes = 32, .kind = RWK_SRC_WRITE}},
		{.head = {.bytes = 0xfffffff8, .kind = RWK_SRC_SEND}, .len = 1 << 20},
		{.head = {.bytes = 128, .kind = RWK_SRC_SEND}, .len = 80},
		{.head = {.bytes = 0, .kind = RWK_SRC_FILLER}},
		{.head = {.bytes = 1 << 17, .kind = RWK_SRC_FILLER}},
		{.head = {.bytes = 48, .kind = 7}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rwk_src_counters *c = rwk_src_get_counters(f.reader[0].view);
		uint64_t tail = atomic_load(&f.member->tail), corrupt = c->corrupt;
		unsigned before = f.reader[0].pieces;

		memcpy(f.ring + tail % size.inbox_bytes, &cases[i], sizeof(cases[i]));
		atomic_store(&f.member->tail, tail + 48);
		assert_int_equal(rwk_src_drain(f.reader[0].view, 10), 0);
		assert_int_equal(f.reader[0].pieces, before);
		assert_int_equal(c->corrupt, corrupt + 1);
		check_works();
	}
}

/* A record that goes on beyond the ring's end, though so much is said to have been put in. */
static void beyond_the_end(void **state)
{
	struct rwk_src_record r = {.head = {.bytes = 1024, .kind = RWK_SRC_SEND}, .len = 900};
	uint64_t tail;

	(void)state;
	serve(f.psn++); /* the inbox is never empty, so it does not begin anew */
	do {
		serve(f.psn++);
		assert_int_equal(rwk_src_drain(f.reader[0].view, 1), 1);
		tail = atomic_load(&f.member->tail);
	} while (size.inbox_bytes - tail % size.inbox_bytes > 512);
	memcpy(f.ring + tail % size.inbox_bytes, &r, sizeof(r));
	atomic_store(&f.member->tail, tail + 1024);
	assert_int_equal(rwk_src_drain(f.reader[0].view, 10), 1);
	assert_int_equal(rwk_src_get_counters(f.reader[0].view)->corrupt, 1);
	check_works();
}

/* A tail that is anywhere, and bytes that are anything. */
static void mad_inbox(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		uint64_t tail = atomic_load(&f.member->tail);
		size_t at = chance(&f.seed) % (size.inbox_bytes - 256);

		switch (i % 4) {
		case 0:
			scribble(f.ring + tail % size.inbox_bytes % (size.inbox_bytes - 256), 256);
			atomic_store(&f.member->tail, tail + chance(&f.seed) % 512);
			break;
		case 1:
			atomic_store(&f.member->tail, (uint64_t)chance(&f.seed) << 32 | chance(&f.seed));
			break;
		case 2:
			scribble(f.ring + at, 256);
			atomic_store(&f.member->tail, tail + size.inbox_bytes);
			break;
		default:
			atomic_store(&f.member->head, (uint64_t)chance(&f.seed) << 32 | chance(&f.seed));
			serve(f.psn);
			rwk_src_drain(f.reader[0].view, 1000);
		}
		rwk_src_drain(f.reader[0].view, 1000);
	}
}

/* Lengths of early packets that were overwritten: no piece is longer than a packet can be. */
static void mad_early_packets(void **state)
{
	struct rwk_src_early *early = (struct rwk_src_early *)((char *)f.memory + f.layout.early);

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		uint32_t target = f.qpn % size.targets;
		struct rwk_src_early *e = (struct rwk_src_early *)((char *)early + target * f.layout.early_stride);

		for (unsigned i = 1; i < 10; i++) {
			serve(f.psn + i);
			e[(f.psn + i) % RWK_RC_WINDOW_MAX].len = i % 2 ? UINT32_MAX : chance(&f.seed);
		}
		serve(f.psn);
		f.psn += 10;
		assert_int_equal(rwk_src_drain(f.reader[0].view, 1000), 10);
	}
	assert_int_equal(rwk_src_get_counters(f.reader[0].view)->corrupt, 0);
}

static struct rwk_rc_responder *state_of(uint32_t qpn)
{
	struct rwk_src_target *t = (struct rwk_src_target *)((char *)f.memory + f.layout.targets +
							     qpn % size.targets * f.layout.target_stride);
	char *states = (char *)(t + 1);

	return (struct rwk_rc_responder *)((struct rwk_src_state *)(states + (t->active & 1) * f.layout.state_bytes))
		->responder;
}

/* One thing that no machine leaves so. */
static void spoil(struct rwk_rc_responder *r, unsigned what)
{
	switch (what) {
	case 0:
		r->pmtu = 0; /* it is divided by */
		break;
	case 1:
		r->pmtu = 8768;
		break;
	case 2:
		r->own |= RWK_RC_UNORDERED; /* there is no such upcall */
		break;
	case 3:
		r->reach |= RWK_REACH_ATOMIC; /* nor such */
		break;
	case 4:
		r->due = 1; /* there is none */
		break;
	case 5:
		for (unsigned i = 0; i < RWK_RC_RESULTS; i++) { /* no place is left */
			r->results[i].kind = RWK_RC_RESULT_READ;
			r->results[i].due = 1;
		}
		r->due = RWK_RC_RESULTS;
		break;
	case 6:
		r->kept_count = 3;
		break;
	case 7:
		r->expected = UINT32_MAX;
		break;
	default:
		r->results[0] = (struct rwk_rc_result){.kind = RWK_RC_RESULT_READ, .due = 1, .left = UINT32_MAX};
		r->due = 1;
	}
}
#define SPOILED 9u

/* A machine's state that makes no sense is not believed: its target has ended, and there is another one. */
static void mad_states(void **state)
{
	const struct rwk_src_counters *c = rwk_src_get_counters(f.reader[1].view);
	struct rwk_src_initiator i = speaker_initiator(0, PMTU);

	(void)state;
	for (unsigned what = 0; what < SPOILED; what++) {
		spoil(state_of(f.qpn), what);
		serve(f.psn);
		assert_int_equal(c->broken_targets, what + 1);
		assert_false(rwk_src_target_lives(f.reader[0].view, f.qpn));
		assert_int_equal(rwk_src_pump(f.reader[1].view, 1000000000), 0);
		assert_int_equal(rwk_src_target_make(f.reader[0].view, &i, &f.qpn), 0);
		f.psn = i.psn;
		check_works();
	}
	/* And whatever stands there: it is survived. */
	for (unsigned n = 0; n < 5000; n++) {
		unsigned char *r = (unsigned char *)state_of(f.qpn);

		scribble(r + chance(&f.seed) % rwk_rc_responder_size(), 1 + chance(&f.seed) % 4);
		for (unsigned k = 0; k < 3; k++)
			serve(f.psn + k);
		rwk_src_pump(f.reader[1].view, 1000000000);
		rwk_src_drain(f.reader[0].view, 1000);
		if (n % 16 == 0) {
			rwk_src_target_end(f.reader[0].view, f.qpn);
			assert_int_equal(rwk_src_target_make(f.reader[0].view, &i, &f.qpn), 0);
			f.psn = i.psn;
		}
	}
}

/* A sleeper whose number is overwritten: who wakes the others looks at no seat that there is not. */
static void mad_sleepers(void **state)
{
	uint32_t srqn = rwk_src_srqn(f.reader[0].view);

	(void)state;
	assert_false(rwk_src_sleep(f.reader[0].view));
	serve(f.psn++);
	woken = 0;
	rwk_src_bury(f.reader[1].view, 0);
	assert_int_equal(woken, 1);
	for (unsigned i = 0; i < 2000; i++) {
		atomic_store(&f.member->srqn, i % 2 ? chance(&f.seed) : srqn | chance(&f.seed) % RWK_SRC_MEMBERS_MAX);
		rwk_src_bury(f.reader[1].view, 0);
	}
	atomic_store(&f.member->srqn, srqn);
	check_works();
}

/*
 * A directory that is overwritten: numbers of targets are those of their places. One that is not its place's leads to
 * nobody else's target, and does not stand in the way of the next one.
 */
static void mad_directory(void **state)
{
	struct rwk_src_entry *e = (struct rwk_src_entry *)((char *)f.memory + f.layout.directory);
	struct rwk_src_initiator i = speaker_initiator(0, PMTU);
	uint32_t qpn = f.qpn;

	(void)state;
	for (unsigned n = 0; n < 1000; n++) {
		int rc;

		atomic_store(&e[qpn % size.targets].qpn, n % 4 ? chance(&f.seed) & 0xffffff : 0);
		rc = rwk_src_target_make(f.reader[0].view, &i, &qpn);
		assert_int_not_equal(rc, -EEXIST);
		if (!rc)
			assert_true(qpn > RWK_WIRE_GSI_QPN && qpn < 0xffffff &&
				    rwk_src_target_lives(f.reader[1].view, qpn));
	}
}

/* A Write of member 0's region, taken by that member. How many bytes there have been changed by now? */
static unsigned write_to(unsigned taker, const uint8_t *at, size_t len)
{
	struct rwk_link_address from = speaker_initiator(0, PMTU).to;
	uint8_t bytes[64];
	struct rwk_wire w = {.opcode = RWK_WIRE_SRC | RWK_WIRE_WRITE_ONLY,
		.qpn = f.qpn,
		.psn = f.psn++ & 0xffffff,
		.srqn = rwk_src_srqn(f.reader[0].view),
		.reth = {RWK_SRC_REACH | 16, 0x1234, sizeof(bytes)}};
	unsigned changed = 0;

	memset(bytes, 0xee, sizeof(bytes));
	rwk_src_packet(f.reader[taker].view, &from, &w, bytes, sizeof(bytes), 1000);
	for (size_t i = 0; i < len; i++)
		changed += at[i] == 0xee;
	return changed;
}

/*
 * Where a region lies its owner knows by itself: no other memory of it is touched, whatever the segment says, and none
 * that it has withdrawn. A sibling that is told nonsense survives it.
 */
static void mad_regions(void **state)
{
	static uint8_t mine[256], other[256];
	struct rwk_src_view *v = f.reader[0].view;
	const struct iovec iov = {mine, sizeof(mine)};
	struct rwk_src_region *r = NULL;
	_Atomic uint64_t *word = NULL;

	(void)state;
	rwk_param_load();
	assert_int_equal(rwk_src_publish(v, f.qpn, 0x1234, &iov, 1), 0);
	for (uint32_t i = 0; i < f.layout.keys; i++) {
		word = (_Atomic uint64_t *)((char *)f.memory + f.layout.key_words) + i;
		r = (struct rwk_src_region *)((char *)f.memory + f.layout.regions) + i;
		if (*word)
			break;
	}
	assert_true(*word);
	r->piece[0].at = (uintptr_t)other;
	assert_int_equal(write_to(0, other, sizeof(other)), 0);
	assert_int_equal(write_to(0, mine + 16, 64), 64);
	r->count = ~0ull;
	r->piece[0].at = 16; /* nothing is there */
	r->piece[0].length = ~0ull >> 1;
	assert_int_equal(write_to(1, other, sizeof(other)), 0);
	assert_int_equal(rwk_src_get_counters(f.reader[1].view)->not_carried_out, 1);

	memset(mine, 0, sizeof(mine));
	rwk_src_withdraw(v, f.qpn, 0x1234);
	r->refused = 0;
	*word = (uint64_t)f.qpn << 32 | 0x1234;
	assert_int_equal(write_to(0, mine, sizeof(mine)), 0);
	assert_int_equal(rwk_src_get_counters(v)->carried_out, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(mad_records, setup, teardown),
		cmocka_unit_test_setup_teardown(beyond_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(mad_inbox, setup, teardown),
		cmocka_unit_test_setup_teardown(mad_early_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(mad_states, setup, teardown),
		cmocka_unit_test_setup_teardown(mad_sleepers, setup, teardown),
		cmocka_unit_test_setup_teardown(mad_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(mad_regions, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
