/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations between engines move what they should, in the order that they should: every size, scattered at
 * both ends, and the order that rma.h promises, against a model.
 *
 * Links: shm, sim.
 */
#include "engine/area.h"

static const size_t sizes[] = {0, 1, 2, 4, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1023, 4096, 4097, 8192, 65535,
	65536, 65537, 200001, 3 * MEGA + 5};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/*
 * S3-2, S3-3, S4-5, S4-15: written and read back, by another and by oneself: whole, and nothing beyond. The target has
 * posted nothing and hears nothing.
 */
static void every_size(void **state)
{
	struct world w;

	area_open_world(&w, *state, 2);
	for (unsigned target = 0; target < 2; target++) {
		for (size_t i = 0; i < SIZES; i++) {
			size_t len = sizes[i], at = i * 3;
			unsigned char *out = malloc(len + 1), *in = malloc(len + 1);
			struct task written = {0}, got = {0};
			struct area a;

			area_open(&a, &w, target, len + 100, RWK_REGION_READ | RWK_REGION_WRITE, i & 1);
			world_fill(out, len, i + 1);
			in[len] = AREA_FILL;
			assert_int_equal(area_simple(&w, 0, &a, WRITE, out, at, len, 0, &written), 0);
			assert_int_equal(area_simple(&w, 0, &a, READ, in, at, len, 0, &got), 0);
			world_wait(&w, &got);
			world_wait(&w, &written);
			area_check_done(&written, RWK_F_RMA | RWK_F_WRITE);
			area_check_done(&got, RWK_F_RMA | RWK_F_READ);
			world_check(a.bytes + at, len, i + 1);
			world_check(in, len, i + 1);
			assert_int_equal(in[len], AREA_FILL);
			area_check_filled(a.bytes, at);
			area_check_filled(a.bytes + at + len, 100 - at);
			assert_int_equal(w.writes[target], 0);
			area_close(&a);
			free(out);
			free(in);
		}
	}
	world_close(&w);
}

/* Several pieces here, several ranges of several regions there, that do not begin and end at the same places. */
static void scattered(void **state)
{
	enum { LENGTH = 150000 };
	static const size_t here[] = {1, 70000, 0, 9, LENGTH - 70010}, there[] = {40000, 3, LENGTH - 40003};
	unsigned char *out = malloc(LENGTH), *in = malloc(LENGTH);
	struct rwk_remote remote[3];
	struct iovec iov[5];
	struct area a[3];
	struct world w;

	area_open_world(&w, *state, 2);
	world_fill(out, LENGTH, 1);
	for (int i = 0; i < 3; i++) {
		area_open(&a[i], &w, 1, there[i] + 5, RWK_REGION_READ | RWK_REGION_WRITE, i & 1);
		remote[i] = (struct rwk_remote){a[i].base + 5, there[i], a[i].key};
	}
	for (int kind = WRITE; kind <= READ; kind++) {
		unsigned char *p = kind == WRITE ? out : in;
		struct rwk_rma_args args = {
			.peer = w.peer[0][1], .iov = iov, .iov_count = 5, .remote = remote, .remote_count = 3};
		struct task t = {0};

		for (int i = 0; i < 5; i++) {
			iov[i] = (struct iovec){p, here[i]};
			p += here[i];
		}
		args.context = &t;
		assert_int_equal(area_request(&w, 0, kind, &args), 0);
		world_wait(&w, &t);
		area_check_done(&t, RWK_F_RMA | (kind == WRITE ? RWK_F_WRITE : RWK_F_READ));
	}
	world_check(in, LENGTH, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(a[i].reached, 2); /* each request */
		assert_int_equal(a[i].reached_bytes, 2 * there[i]);
		area_close(&a[i]);
	}
	assert_int_equal(w.reached[1], 2); /* each request */
	assert_int_equal(w.reached_bytes[1], 2 * LENGTH);
	world_close(&w);
	free(out);
	free(in);
}

/* As many requests, of each kind, as there are calls: that is how often a region, and the endpoint, are told. */
static void count_requests(struct world *w, struct area *a, const struct rwk_remote *remote, size_t count)
{
	static const enum { A_WRITE, A_READ, WITH_DATA, AN_ATOMIC } kinds[] = {
		A_WRITE, A_READ, WITH_DATA, AN_ATOMIC, A_WRITE};
	unsigned target = a->who, before = w->reached[target];
	unsigned char buf[300] = {0};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct iovec iov = {buf, 100 * count};
		struct task t = {0};
		const struct rwk_rma_args args = {.peer = w->peer[0][target],
			.iov = &iov,
			.iov_count = 1,
			.remote = remote,
			.remote_count = count,
			.flags = kinds[i] == WITH_DATA ? RWK_F_DATA : 0,
			.context = &t};
		const struct rwk_atomic_args atomic = {.rma = args, .op = RWK_SUM, .type = RWK_UINT8};

		if (kinds[i] == AN_ATOMIC)
			assert_int_equal(area_atomic(w, 0, &atomic), 0);
		else
			assert_int_equal(area_request(w, 0, kinds[i] == A_READ ? READ : WRITE, &args), 0);
		world_wait(w, &t);
		assert_int_equal(t.c.status, 0);
		world_settle(w);
		assert_int_equal(w->reached[target], before + i + 1);
		assert_int_equal(a->reached, i + 1);
	}
}

/* An operation that names several ranges of a region is one to it, whatever it is and however it goes. */
static void told_once(void **state)
{
	struct world w;

	area_open_world(&w, *state, 2);
	for (unsigned target = 0; target < 2; target++) {
		struct area a, other;
		struct rwk_remote remote[3];

		area_open(&a, &w, target, 300, RWK_REGION_READ | RWK_REGION_WRITE, true);
		area_open(&other, &w, target, 300, RWK_REGION_READ | RWK_REGION_WRITE, true);
		remote[0] = (struct rwk_remote){200, 100, a.key};
		remote[1] = (struct rwk_remote){0, 100, other.key};
		remote[2] = (struct rwk_remote){0, 100, a.key};
		count_requests(&w, &a, remote, 3);
		assert_int_equal(a.reached_bytes, 5 * 200);
		assert_int_equal(other.reached, 5);
		assert_int_equal(other.reached_bytes, 5 * 100);
		area_close(&a);
		area_close(&other);
	}
	world_close(&w);
}

/* A region of several pieces is one range to peers. */
static void region_of_pieces(void **state)
{
	unsigned char memory[3][100], out[220], in[220];
	struct iovec iov[3] = {{memory[2], 100}, {memory[0], 1}, {memory[1], 99}};
	struct rwk_region_attr attr = {.iov = iov,
		.count = 3,
		.base = 1000,
		.access = RWK_REGION_READ | RWK_REGION_WRITE,
		.own_key = true,
		.key = 7};
	struct task written = {0}, got = {0};
	struct rwk_region *r, *other;
	struct area a = {.who = 1, .base = 1000, .key = 7};
	struct world w;

	area_open_world(&w, *state, 2);
	memset(memory, AREA_FILL, sizeof(memory));
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &other), -ENOKEY);
	world_fill(out, 150, 3);
	assert_int_equal(area_simple(&w, 0, &a, WRITE, out, 50, 150, 0, &written), 0);
	assert_int_equal(area_simple(&w, 0, &a, READ, in, 50, 150, 0, &got), 0);
	world_wait(&w, &got);
	world_check(in, 150, 3);
	area_check_filled(memory[2], 50);
	assert_memory_equal(memory[2] + 50, out, 50);
	assert_memory_equal(memory[0], out + 50, 1);
	area_check_filled(memory[0] + 1, 99);
	assert_memory_equal(memory[1], out + 51, 99);
	area_check_filled(memory[1] + 99, 1);
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
}

/* A write with data: one completion at the target, once all of it is there. */
static void with_data(void **state)
{
	static const size_t lengths[] = {0, 8, 70000, 300000};
	struct world w;

	area_open_world(&w, *state, 2);
	for (unsigned i = 0; i < 4; i++) {
		unsigned char *out = malloc(lengths[i] + 1);
		struct task t = {0};
		struct area a;

		area_open(&a, &w, 1, lengths[i], RWK_REGION_WRITE, false);
		world_fill(out, lengths[i], i);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, out, 0, lengths[i], RWK_F_DATA, &t), 0);
		world_wait(&w, &t);
		assert_int_equal(w.writes[1], i + 1);
		assert_int_equal(w.written[1].flags, RWK_F_RMA | RWK_F_REMOTE_WRITE | RWK_F_DATA);
		assert_int_equal(w.written[1].length, lengths[i]);
		assert_true(w.written[1].data == WORLD_DATA(lengths[i]));
		world_check(a.bytes, lengths[i], i);
		assert_int_equal(w.reached[1], i + 1);
		area_close(&a);
		free(out);
	}
	world_close(&w);
}

/* With RWK_F_INJECT the buffer is the caller's on return. */
static void inject(void **state)
{
	unsigned char buf[RWK_INJECT_MAX + 1];
	struct world w;
	struct area a;

	area_open_world(&w, *state, 2);
	area_open(&a, &w, 1, sizeof(buf), 3, false);
	for (size_t len = 0; len <= RWK_INJECT_MAX; len += 37) {
		struct task t = {0};

		world_fill(buf, len, len);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, len, RWK_F_INJECT, &t), 0);
		memset(buf, 0x11, sizeof(buf));
		world_wait(&w, &t);
		world_check(a.bytes, len, len);
	}
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, sizeof(buf), RWK_F_INJECT, NULL), -EMSGSIZE);
	area_close(&a);
	world_close(&w);
}

/*
 * Order: a stream of requests of all kinds and lengths, many under way at once, to one small region. Each read and each
 * fetched word is what a model that carries them out one after the other says.
 */
#define MODEL   8192u
#define ORDERED 64u

static uint64_t random_state;

static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

struct ordered {
	struct task task;
	size_t len;
	unsigned char *got, *expected;
};

static void await_ordered(struct world *w, struct ordered *o)
{
	if (!o->got)
		return;
	world_wait(w, &o->task);
	assert_int_equal(o->task.c.status, 0);
	assert_memory_equal(o->got, o->expected, o->len);
	free(o->got);
	free(o->expected);
	*o = (struct ordered){0};
}

/* Below any service's direct_min; only where that is 0 all are in order. */
#define SHORT 1000u

static size_t longest;

static void issue_ordered(struct world *w, const struct area *a, unsigned char *model, struct ordered *o)
{
	unsigned what = (unsigned)draw() % 3;
	size_t at = draw() % MODEL, len = draw() % (draw() % 4 ? 64 : longest);

	if (what == 2) {
		at &= ~(size_t)7;
		len = 8;
	}
	len = len > MODEL - at ? MODEL - at : len;
	o->len = len;
	o->got = malloc(len + 1);
	o->expected = malloc(len + 1);
	if (what == 0) {
		for (size_t i = 0; i < len; i++)
			o->got[i] = (unsigned char)draw();
		memcpy(model + at, o->got, len);
		memcpy(o->expected, o->got, len);
		assert_int_equal(area_simple(w, 0, a, WRITE, o->got, at, len, 0, &o->task), 0);
	} else if (what == 1) {
		memcpy(o->expected, model + at, len);
		assert_int_equal(area_simple(w, 0, a, READ, o->got, at, len, 0, &o->task), 0);
	} else {
		uint64_t operand = draw(), old;
		const struct rwk_remote remote = {a->base + at, 8, a->key};
		struct iovec iov = {&operand, 8}, into = {o->got, 8};
		struct rwk_atomic_args args = {.rma = {.peer = w->peer[0][1],
						       .iov = &iov,
						       .iov_count = 1,
						       .remote = &remote,
						       .remote_count = 1,
						       .context = &o->task},
			.op = RWK_SUM,
			.type = RWK_UINT64,
			.result = &into,
			.result_count = 1};

		memcpy(&old, model + at, 8);
		memcpy(o->expected, &old, 8);
		old += operand;
		memcpy(model + at, &old, 8);
		assert_int_equal(area_atomic(w, 0, &args), 0);
	}
}

static void in_order(const struct rwk_transport *transport, uint64_t seed, bool bad)
{
	struct world_attr attr = {.transport = transport, .count = 2, .net = rwk_sim_attr_default};
	unsigned long steps = world_steps(4000);
	struct ordered o[ORDERED];
	unsigned char model[MODEL];
	struct world w;
	struct area a;

	memset(o, 0, sizeof(o));
	random_state = attr.net.seed = seed;
	world_open(&w, &attr);
	if (bad)
		world_worsen(&w);
	longest = transport == &rwk_sim_transport ? MODEL : SHORT;
	area_open(&a, &w, 1, MODEL, 3, false);
	memset(model, AREA_FILL, MODEL);
	for (unsigned long i = 0; i < steps; i++) {
		struct ordered *next = &o[draw() % ORDERED];

		await_ordered(&w, next);
		issue_ordered(&w, &a, model, next);
	}
	for (unsigned i = 0; i < ORDERED; i++)
		await_ordered(&w, &o[i]);
	assert_memory_equal(a.bytes, model, MODEL);
	area_close(&a);
	world_close(&w);
}

static void order(void **state)
{
	in_order(*state, world_seed(1), false);
}

/* RWK_TEST_SEED=<seed> runs one alone. */
static void order_on_bad_ways(void **state)
{
	uint64_t only = world_seed(0), last = only ? only : 10;

	for (uint64_t seed = only ? only : 1; seed <= last; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		in_order(*state, seed, true);
	}
}

/*
 * S3-4: vectors, comparands, pieces; several initiators, the owner among them: no addition is lost, no old value comes
 * twice.
 */
static void atomics(void **state)
{
	enum { WORDS = 128, ROUNDS = 20, WHO = 3 };
	static unsigned char seen[WORDS][WHO * ROUNDS];
	static uint64_t old[WHO][ROUNDS][WORDS];
	static struct task task[WHO][ROUNDS];
	uint64_t one[WORDS];
	struct world w;
	struct area a;

	memset(task, 0, sizeof(task));
	memset(seen, 0, sizeof(seen));
	area_open_world(&w, *state, WHO);
	area_open(&a, &w, 1, sizeof(one), 3, false);
	memset(a.bytes, 0, sizeof(one));
	for (int i = 0; i < WORDS; i++)
		one[i] = 1;
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned who = 0; who < WHO; who++) {
			struct iovec iov[2] = {{one, 24}, {one, sizeof(one) - 24}},
				     into = {old[who][round], sizeof(one)};
			const struct rwk_remote remote[2] = {
				{a.base, 512, a.key}, {a.base + 512, sizeof(one) - 512, a.key}};
			struct rwk_atomic_args args = {.rma = {.peer = w.peer[who][1],
							       .iov = iov,
							       .iov_count = 2,
							       .remote = remote,
							       .remote_count = 2,
							       .context = &task[who][round]},
				.op = RWK_SUM,
				.type = RWK_UINT64,
				.result = &into,
				.result_count = 1};

			assert_int_equal(area_atomic(&w, who, &args), 0);
		}
	}
	for (unsigned who = 0; who < WHO; who++) {
		for (int round = 0; round < ROUNDS; round++) {
			world_wait(&w, &task[who][round]);
			area_check_done(&task[who][round], RWK_F_ATOMIC | RWK_F_READ);
			for (int i = 0; i < WORDS; i++) {
				assert_in_range(old[who][round][i], 0, WHO * ROUNDS - 1);
				assert_int_equal(seen[i][old[who][round][i]]++, 0);
			}
		}
	}
	for (int i = 0; i < WORDS; i++)
		assert_int_equal(((uint64_t *)(void *)a.bytes)[i], WHO * ROUNDS);
	area_close(&a);
	world_close(&w);
}

/* S3-5: where the comparand is there the operand is then, and nowhere else; what was before comes back. */
static void compare_and_swap(void **state)
{
	uint32_t operand[4] = {10, 11, 12, 13}, compare[4] = {1, 99, 3, 99}, result[4] = {0};
	struct iovec iov = {operand, 16}, comparands = {compare, 16}, into = {result, 16};
	struct world w;

	area_open_world(&w, *state, 2);
	for (unsigned target = 0; target < 2; target++) {
		uint32_t start[4] = {1, 2, 3, 4}, end[4] = {10, 2, 12, 4};
		struct task t = {0}, crooked = {0};
		struct rwk_remote remote;
		struct rwk_atomic_args args;
		struct area a;

		area_open(&a, &w, target, 64, 3, true);
		memcpy(a.bytes, start, 16);
		remote = (struct rwk_remote){0, 16, a.key};
		args = (struct rwk_atomic_args){.rma = {.peer = w.peer[0][target],
							.iov = &iov,
							.iov_count = 1,
							.remote = &remote,
							.remote_count = 1,
							.context = &t},
			.op = RWK_CSWAP,
			.type = RWK_UINT32,
			.compare = &comparands,
			.compare_count = 1,
			.result = &into,
			.result_count = 1};
		assert_int_equal(area_atomic(&w, 0, &args), 0);
		world_wait(&w, &t);
		area_check_done(&t, RWK_F_ATOMIC | RWK_F_READ);
		assert_memory_equal(result, start, 16);
		assert_memory_equal(a.bytes, end, 16);
		remote.address = 2;
		args.rma.context = &crooked;
		assert_int_equal(area_atomic(&w, 0, &args), 0);
		world_wait(&w, &crooked);
		assert_int_equal(crooked.c.status, -EINVAL);
		assert_memory_equal(a.bytes, end, 16);
		area_close(&a);
	}
	world_close(&w);
}

/*
 * Many at a time, longer than a packet and shorter: the target has given answers that the initiator has and has not
 * acknowledged yet, and gives more.
 */
static void many_reads(void **state)
{
	enum { MANY = 1000 };
	static const size_t lengths[] = {100, 2000, 9000, 16000, 64 << 10};
	static unsigned char got[64 << 10];
	static struct task t[MANY];
	struct world w;
	struct area a;

	area_open_world(&w, *state, 2);
	area_open(&a, &w, 1, sizeof(got), RWK_REGION_READ, false);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(t, 0, sizeof(t));
		for (int k = 0; k < MANY; k++)
			assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, lengths[i], 0, &t[k]), 0);
		for (int k = 0; k < 200; k++) { /* by turns, so that each finds all of what the other has sent */
			w.computes[0] = w.computes[1] = true;
			for (int steps = 0; steps < 50; steps++)
				world_step(&w);
			w.computes[k % 2] = false;
			world_progress(&w, k % 2);
		}
		w.computes[0] = w.computes[1] = false;
		for (int k = 0; k < MANY; k++) {
			world_wait(&w, &t[k]);
			area_check_done(&t[k], RWK_F_RMA | RWK_F_READ);
		}
	}
	area_close(&a);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AREA_EACH(every_size),
		AREA_EACH(scattered),
		AREA_EACH(told_once),
		AREA_EACH(region_of_pieces),
		AREA_EACH(with_data),
		AREA_EACH(inject),
		WORLD_EACH(order),
		{"order_on_bad_ways, packets", order_on_bad_ways, NULL, NULL, (void *)&sim_packet_transport},
		{"order_on_bad_ways, shared", order_on_bad_ways, NULL, NULL, (void *)&sim_shared_transport},
		AREA_EACH(atomics),
		AREA_EACH(many_reads),
		AREA_EACH(compare_and_swap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
