/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations between engines, over the simulated service, over packets and over shared memory: every size,
 * scattered at both ends; the order that rma.h promises, against a model; what is refused, and that it touches nothing;
 * regions that go and peers that die in the middle.
 */
#include "engine/world.h"

#include "engine/rma.h"

#define MEGA  (1u << 20)
#define GUARD 64u
#define FILL  0x5a

/* A region of engine `who`, with guards around. */
struct area {
	struct world *w;
	unsigned who;
	size_t length;
	unsigned char *bytes, *guarded;
	struct rwk_region *region;
	uint64_t key, base;
	unsigned reached;
	size_t reached_bytes;
};

static void on_reached(void *owner, const struct rwk_reached *r)
{
	struct area *a = owner;

	a->reached++;
	a->reached_bytes += r->length;
}

/* With that key, or if it is 0 with any. */
static void area_open_key(
	struct area *a, struct world *w, unsigned who, size_t length, unsigned access, bool offsets, uint64_t key)
{
	struct rwk_region_attr attr = {
		.count = 1, .access = access, .reached = on_reached, .owner = a, .own_key = key != 0, .key = key};
	struct iovec iov;

	*a = (struct area){.w = w, .who = who, .length = length};
	a->guarded = aligned_alloc(GUARD, (length + 3 * GUARD) & ~(size_t)(GUARD - 1));
	assert_non_null(a->guarded);
	memset(a->guarded, FILL, length + 2 * GUARD);
	a->bytes = a->guarded + GUARD;
	a->base = offsets ? 0 : (uintptr_t)a->bytes;
	iov = (struct iovec){a->bytes, length};
	attr.iov = &iov;
	attr.base = a->base;
	assert_int_equal(rwk_region_add(w->regions[who], &attr, &a->region), 0);
	assert_ptr_equal(rwk_region_owner(a->region), a);
	a->key = rwk_region_key(a->region);
}

static void area_open(struct area *a, struct world *w, unsigned who, size_t length, unsigned access, bool offsets)
{
	area_open_key(a, w, who, length, access, offsets, 0);
}

static void check_filled(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], FILL);
}

static void area_remove(struct area *a)
{
	if (a->region)
		rwk_region_remove(a->w->regions[a->who], a->region);
	a->region = NULL;
}

static void area_close(struct area *a)
{
	check_filled(a->guarded, GUARD);
	check_filled(a->bytes + a->length, GUARD);
	area_remove(a);
	free(a->guarded);
}

/* These go on while the engine says -EAGAIN. */
enum kind { WRITE, READ };

/* The test's state is a transport, or this: the simulated service, which carries out all but the shortest by itself. */
static const char direct[] = "direct";

static void open_some(struct world *w, void *state, unsigned count)
{
	struct world_attr attr = {.transport = state, .count = count};

	if (state == direct) {
		attr.transport = &rwk_sim_transport;
		attr.service = rwk_sim_service_default;
		attr.service.direct_min = 4;
		attr.service.late = 300000;
	}
	world_open(w, &attr);
}

static void open_two(struct world *w, void *state)
{
	open_some(w, state, 2);
}

static ssize_t rma(struct world *w, unsigned from, enum kind kind, const struct rwk_rma_args *a)
{
	struct world_retry retry = {0};
	ssize_t rc;

	do {
		rc = kind == WRITE ? rwk_engine_write(w->e[from], a) : rwk_engine_read(w->e[from], a);
	} while (rc == -EAGAIN && world_retry(w, from, from, &retry));
	return rc;
}

static ssize_t atomic(struct world *w, unsigned from, const struct rwk_atomic_args *a)
{
	struct world_retry retry = {0};
	ssize_t rc;

	do {
		rc = rwk_engine_atomic(w->e[from], a);
	} while (rc == -EAGAIN && world_retry(w, from, from, &retry));
	return rc;
}

/* One buffer, one range. */
static ssize_t simple(struct world *w, unsigned from, const struct area *to, enum kind kind, void *buf, size_t at,
	size_t len, uint32_t flags, struct task *t)
{
	const struct iovec iov = {buf, len};
	const struct rwk_remote remote = {to->base + at, len, to->key};
	const struct rwk_rma_args a = {.peer = w->peer[from][to->who],
		.iov = &iov,
		.iov_count = 1,
		.remote = &remote,
		.remote_count = 1,
		.data = WORLD_DATA(len),
		.flags = flags,
		.context = t};

	return rma(w, from, kind, &a);
}

static void check_done(const struct task *t, uint32_t flags)
{
	assert_int_equal(t->times, 1);
	assert_int_equal(t->c.status, 0);
	assert_int_equal(t->c.flags & RWK_F_SHOWN, flags);
}

static const size_t sizes[] = {0, 1, 2, 4, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1023, 4096, 4097, 8192, 65535,
	65536, 65537, 200001, 3 * MEGA + 5};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Written and read back, by another and by oneself: whole, and nothing beyond. */
static void every_size(void **state)
{
	struct world w;

	open_two(&w, *state);
	for (unsigned target = 0; target < 2; target++) {
		for (size_t i = 0; i < SIZES; i++) {
			size_t len = sizes[i], at = i * 3;
			unsigned char *out = malloc(len + 1), *in = malloc(len + 1);
			struct task written = {0}, got = {0};
			struct area a;

			area_open(&a, &w, target, len + 100, RWK_ACCESS_READ | RWK_ACCESS_WRITE, i & 1);
			world_fill(out, len, i + 1);
			in[len] = FILL;
			assert_int_equal(simple(&w, 0, &a, WRITE, out, at, len, 0, &written), 0);
			assert_int_equal(simple(&w, 0, &a, READ, in, at, len, 0, &got), 0);
			world_wait(&w, &got);
			world_wait(&w, &written);
			check_done(&written, RWK_F_RMA | RWK_F_WRITE);
			check_done(&got, RWK_F_RMA | RWK_F_READ);
			world_check(a.bytes + at, len, i + 1);
			world_check(in, len, i + 1);
			assert_int_equal(in[len], FILL);
			check_filled(a.bytes, at);
			check_filled(a.bytes + at + len, 100 - at);
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

	open_two(&w, *state);
	world_fill(out, LENGTH, 1);
	for (int i = 0; i < 3; i++) {
		area_open(&a[i], &w, 1, there[i] + 5, RWK_ACCESS_READ | RWK_ACCESS_WRITE, i & 1);
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
		assert_int_equal(rma(&w, 0, kind, &args), 0);
		world_wait(&w, &t);
		check_done(&t, RWK_F_RMA | (kind == WRITE ? RWK_F_WRITE : RWK_F_READ));
	}
	world_check(in, LENGTH, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(a[i].reached, 2); /* each range of each request */
		assert_int_equal(a[i].reached_bytes, 2 * there[i]);
		area_close(&a[i]);
	}
	assert_int_equal(w.reached[1], 2); /* each request */
	assert_int_equal(w.reached_bytes[1], 2 * LENGTH);
	world_close(&w);
	free(out);
	free(in);
}

/* A region of several pieces is one range to peers. */
static void region_of_pieces(void **state)
{
	unsigned char memory[3][100], out[220], in[220];
	struct iovec iov[3] = {{memory[2], 100}, {memory[0], 1}, {memory[1], 99}};
	struct rwk_region_attr attr = {.iov = iov,
		.count = 3,
		.base = 1000,
		.access = RWK_ACCESS_READ | RWK_ACCESS_WRITE,
		.own_key = true,
		.key = 7};
	struct task written = {0}, got = {0};
	struct rwk_region *r, *other;
	struct area a = {.who = 1, .base = 1000, .key = 7};
	struct world w;

	open_two(&w, *state);
	memset(memory, FILL, sizeof(memory));
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &other), -ENOKEY);
	world_fill(out, 150, 3);
	assert_int_equal(simple(&w, 0, &a, WRITE, out, 50, 150, 0, &written), 0);
	assert_int_equal(simple(&w, 0, &a, READ, in, 50, 150, 0, &got), 0);
	world_wait(&w, &got);
	world_check(in, 150, 3);
	check_filled(memory[2], 50);
	assert_memory_equal(memory[2] + 50, out, 50);
	assert_memory_equal(memory[0], out + 50, 1);
	check_filled(memory[0] + 1, 99);
	assert_memory_equal(memory[1], out + 51, 99);
	check_filled(memory[1] + 99, 1);
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
}

/* A write with data: one completion at the target, once all of it is there. */
static void with_data(void **state)
{
	static const size_t lengths[] = {0, 8, 70000, 300000};
	struct world w;

	open_two(&w, *state);
	for (unsigned i = 0; i < 4; i++) {
		unsigned char *out = malloc(lengths[i] + 1);
		struct task t = {0};
		struct area a;

		area_open(&a, &w, 1, lengths[i], RWK_ACCESS_WRITE, false);
		world_fill(out, lengths[i], i);
		assert_int_equal(simple(&w, 0, &a, WRITE, out, 0, lengths[i], RWK_F_DATA, &t), 0);
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

/* What must be refused, and is: the memory stays as it was, the next request goes well. */
static void refused(void **state)
{
	enum { LENGTH = 100000 };
	static const struct {
		const char *what;
		size_t at, len;
		unsigned access;
		bool wrong_key, removed;
		int status;
	} cases[] = {
		{"good", 0, LENGTH, 3, false, false, 0},
		{"wrong key", 0, 8, 3, true, false, -EACCES},
		{"one byte beyond", LENGTH - 7, 8, 3, false, false, -EACCES},
		{"beyond, long", 1, LENGTH, 3, false, false, -EACCES},
		{"before", (size_t)-1, 8, 3, false, false, -EACCES},
		{"wraps", (size_t)-4, 8, 3, false, false, -EACCES},
		{"no access", 0, 8, 0, false, false, -EACCES},
		{"removed", 0, 8, 3, false, true, -EACCES},
		{"removed, long", 0, LENGTH, 3, false, true, -EACCES},
	};
	unsigned char *buf = malloc(LENGTH + 8);
	struct area good;
	struct world w;

	open_two(&w, *state);
	area_open(&good, &w, 1, 64, 3, false);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int kind = WRITE; kind <= READ; kind++) {
			struct task bad = {0}, after = {0};
			struct area a;

			area_open(&a, &w, 1, LENGTH, cases[i].access, false);
			a.key ^= cases[i].wrong_key;
			if (cases[i].removed)
				area_remove(&a);
			memset(buf, 0x11, LENGTH + 8);
			assert_int_equal(simple(&w, 0, &a, kind, buf, cases[i].at, cases[i].len, RWK_F_DATA, &bad), 0);
			assert_int_equal(simple(&w, 0, &good, kind, buf, 0, 64, 0, &after), 0);
			world_wait(&w, &after);
			world_wait(&w, &bad);
			if (bad.c.status != cases[i].status)
				fail_msg("%s: status %d", cases[i].what, bad.c.status);
			assert_int_equal(after.c.status, 0);
			if (cases[i].status) {
				check_filled(a.bytes, LENGTH);
				assert_int_equal(a.reached, 0);
			}
			area_close(&a);
		}
	}
	assert_int_equal(w.writes[1], 1);
	area_close(&good);
	world_close(&w);
	free(buf);
}

/* A read-only region is not written, a write-only one not read; nor by atomics. */
static void permission(void **state)
{
	uint64_t operand = 1, result = 0;
	struct iovec iov = {&operand, 8}, into = {&result, 8};
	struct world w;

	open_two(&w, *state);
	for (unsigned access = 0; access < 4; access++) {
		for (int way = 0; way < 5; way++) {
			bool reads = way == 1 || way == 3 || way == 4, writes = way != 1 && way != 4;
			unsigned needs = (reads ? RWK_ACCESS_READ : 0) | (writes ? RWK_ACCESS_WRITE : 0);
			struct task t = {0};
			struct area a;

			area_open(&a, &w, 1, 8, access, false);
			if (way < 2) {
				assert_int_equal(simple(&w, 0, &a, way ? READ : WRITE, &operand, 0, 8, 0, &t), 0);
			} else {
				const struct rwk_remote remote = {a.base, 8, a.key};
				struct rwk_atomic_args args = {.rma = {.peer = w.peer[0][1],
								       .iov = &iov,
								       .iov_count = 1,
								       .remote = &remote,
								       .remote_count = 1,
								       .context = &t},
					.op = way == 4 ? RWK_ATOMIC_READ : RWK_SUM,
					.type = RWK_UINT64,
					.result = reads ? &into : NULL,
					.result_count = 1};

				assert_int_equal(atomic(&w, 0, &args), 0);
			}
			world_wait(&w, &t);
			assert_int_equal(t.c.status, needs & ~access ? -EACCES : 0);
			if (needs & ~access)
				check_filled(a.bytes, 8);
			area_close(&a);
		}
	}
	world_close(&w);
}

/* All memory: what is not mapped is an error of the request's. */
static void all_memory(void **state)
{
	struct iovec all = {NULL, SIZE_MAX};
	struct rwk_region_attr attr = {.iov = &all, .count = 1, .access = 3};
	unsigned char word[8] = "written", got[8];
	struct area a = {.who = 1};
	struct world w;

	open_two(&w, *state);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &a.region), 0);
	a.key = rwk_region_key(a.region);
	for (int target = 0; target < 2; target++) {
		static unsigned char memory[100000];
		struct task t[4] = {{0}};

		assert_int_equal(simple(&w, 0, &a, WRITE, word, (uintptr_t)memory, 8, 0, &t[0]), 0);
		assert_int_equal(simple(&w, 0, &a, READ, got, (uintptr_t)memory, 8, 0, &t[1]), 0);
		assert_int_equal(simple(&w, 0, &a, WRITE, word, 16, 8, 0, &t[2]), 0);
		assert_int_equal(simple(&w, 0, &a, READ, got, 16, 8, 0, &t[3]), 0);
		for (int i = 0; i < 4; i++) {
			world_wait(&w, &t[i]);
			assert_int_equal(t[i].c.status, i < 2 ? 0 : -EFAULT);
		}
		assert_memory_equal(memory, word, 8);
		assert_memory_equal(got, word, 8);
		memset(memory, 0, 8);
	}
	rwk_region_remove(w.regions[1], a.region);
	world_close(&w);
}

/* With RWK_F_INJECT the buffer is the caller's on return. */
static void inject(void **state)
{
	unsigned char buf[RWK_INJECT_MAX + 1];
	struct world w;
	struct area a;

	open_two(&w, *state);
	area_open(&a, &w, 1, sizeof(buf), 3, false);
	for (size_t len = 0; len <= RWK_INJECT_MAX; len += 37) {
		struct task t = {0};

		world_fill(buf, len, len);
		assert_int_equal(simple(&w, 0, &a, WRITE, buf, 0, len, RWK_F_INJECT, &t), 0);
		memset(buf, 0x11, sizeof(buf));
		world_wait(&w, &t);
		world_check(a.bytes, len, len);
	}
	assert_int_equal(simple(&w, 0, &a, WRITE, buf, 0, sizeof(buf), RWK_F_INJECT, NULL), -EMSGSIZE);
	area_close(&a);
	world_close(&w);
}

/* Lengths that differ, pieces that are too many, operations that are not there. */
static void senseless(void **state)
{
	char buf[2000];
	struct iovec iov[RWK_ENGINE_IOV_MAX + 1] = {{buf, 8}};
	struct rwk_remote remote[RWK_ENGINE_IOV_MAX + 1] = {{0, 16, 0}};
	struct rwk_rma_args a = {.iov = iov, .iov_count = 1, .remote = remote, .remote_count = 1};
	struct rwk_atomic_args atom = {.rma = a, .type = RWK_UINT64, .op = RWK_SUM};
	struct world w;

	open_two(&w, *state);
	atom.rma.peer = a.peer = w.peer[0][1];
	assert_int_equal(rwk_engine_write(w.e[0], &a), -EINVAL);
	assert_int_equal(rwk_engine_read(w.e[0], &a), -EINVAL);
	assert_int_equal(rwk_engine_atomic(w.e[0], &atom), -EINVAL);
	remote[0].length = 8;
	a.remote_count = 0;
	assert_int_equal(rwk_engine_write(w.e[0], &a), -EINVAL);
	a.remote_count = RWK_ENGINE_IOV_MAX + 1;
	assert_int_equal(rwk_engine_write(w.e[0], &a), -EINVAL);
	a.remote_count = 1;
	a.iov_count = RWK_ENGINE_IOV_MAX + 1;
	assert_int_equal(rwk_engine_write(w.e[0], &a), -EINVAL);
	atom.op = RWK_MSWAP + 1;
	assert_int_equal(rwk_engine_atomic(w.e[0], &atom), -EOPNOTSUPP);
	atom.op = RWK_BOR;
	atom.type = RWK_DOUBLE;
	assert_int_equal(rwk_engine_atomic(w.e[0], &atom), -EOPNOTSUPP);
	atom.op = RWK_SUM;
	iov[0].iov_len = remote[0].length = RWK_ATOMIC_BYTES + 8;
	assert_int_equal(rwk_engine_atomic(w.e[0], &atom), -EMSGSIZE);
	iov[0].iov_len = remote[0].length = 12;
	assert_int_equal(rwk_engine_atomic(w.e[0], &atom), -EINVAL);
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

/* Below any service's direct_min. */
#define SHORT 1000u

static void issue_ordered(struct world *w, const struct area *a, unsigned char *model, struct ordered *o)
{
	unsigned what = (unsigned)draw() % 3;
	size_t at = draw() % MODEL, len = draw() % (draw() % 4 ? 64 : w->net ? MODEL : SHORT);

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
		assert_int_equal(simple(w, 0, a, WRITE, o->got, at, len, 0, &o->task), 0);
	} else if (what == 1) {
		memcpy(o->expected, model + at, len);
		assert_int_equal(simple(w, 0, a, READ, o->got, at, len, 0, &o->task), 0);
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
		assert_int_equal(atomic(w, 0, &args), 0);
	}
}

static void order(void **state)
{
	unsigned long steps = world_steps(4000);
	struct ordered o[ORDERED];
	unsigned char model[MODEL];
	struct world w;
	struct area a;

	memset(o, 0, sizeof(o));
	random_state = world_seed(1);
	open_two(&w, *state);
	area_open(&a, &w, 1, MODEL, 3, false);
	memset(model, FILL, MODEL);
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

/* Vectors, comparands, pieces; several initiators, the owner among them: no addition is lost, no old value comes twice.
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
	open_some(&w, *state, WHO);
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

			assert_int_equal(atomic(&w, who, &args), 0);
		}
	}
	for (unsigned who = 0; who < WHO; who++) {
		for (int round = 0; round < ROUNDS; round++) {
			world_wait(&w, &task[who][round]);
			check_done(&task[who][round], RWK_F_ATOMIC | RWK_F_READ);
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

static void compare_and_swap(void **state)
{
	uint32_t operand[4] = {10, 11, 12, 13}, compare[4] = {1, 99, 3, 99}, result[4] = {0};
	struct iovec iov = {operand, 16}, comparands = {compare, 16}, into = {result, 16};
	struct world w;

	open_two(&w, *state);
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
		assert_int_equal(atomic(&w, 0, &args), 0);
		world_wait(&w, &t);
		check_done(&t, RWK_F_ATOMIC | RWK_F_READ);
		assert_memory_equal(result, start, 16);
		assert_memory_equal(a.bytes, end, 16);
		remote.address = 2;
		args.rma.context = &crooked;
		assert_int_equal(atomic(&w, 0, &args), 0);
		world_wait(&w, &crooked);
		assert_int_equal(crooked.c.status, -EINVAL);
		assert_memory_equal(a.bytes, end, 16);
		area_close(&a);
	}
	world_close(&w);
}

/* As many as may be under way, then -EAGAIN; all of them complete. */
static void limit(void **state)
{
	static struct task t[1024];
	unsigned char word[8] = {0};
	struct task more = {0};
	struct world w;
	struct area a;

	memset(t, 0, sizeof(t));
	open_two(&w, *state);
	area_open(&a, &w, 1, 8, 3, false);
	for (int i = 0; i < 1024; i++) {
		const struct iovec iov = {word, 8};
		const struct rwk_remote remote = {a.base, 8, a.key};
		const struct rwk_rma_args args = {.peer = w.peer[0][1],
			.iov = &iov,
			.iov_count = 1,
			.remote = &remote,
			.remote_count = 1,
			.context = &t[i]};

		assert_int_equal(rwk_engine_write(w.e[0], &args), 0);
		if (i == 1023)
			assert_int_equal(rwk_engine_write(w.e[0], &args), -EAGAIN);
	}
	assert_int_equal(simple(&w, 0, &a, READ, word, 0, 8, RWK_F_FENCE, &more), 0);
	world_wait(&w, &more);
	for (int i = 0; i < 1024; i++)
		assert_true(t[i].times == 1 && t[i].order < more.order);
	area_close(&a);
	world_close(&w);
}

/* The region goes while long requests are under way: nothing touches its memory from then on, each request ends once.
 */
static void removed_in_the_middle(void **state)
{
	enum { LENGTH = MEGA / 2, REQUESTS = 4 };
	struct world w;

	for (int after = 0; after < 60; after++) {
		unsigned char *buf = calloc(REQUESTS, LENGTH), *copy = malloc(LENGTH);
		struct task t[REQUESTS] = {{0}};
		struct area a;

		open_two(&w, *state);
		area_open(&a, &w, 1, LENGTH, 3, false);
		for (unsigned i = 0; i < REQUESTS; i++)
			assert_int_equal(
				simple(&w, 0, &a, i & 1 ? READ : WRITE, buf + i * LENGTH, 0, LENGTH, 0, &t[i]), 0);
		for (int i = 0; i < after * (w.net ? 43 : 1); i++)
			world_step(&w);
		area_remove(&a);
		memcpy(copy, a.bytes, LENGTH);
		for (unsigned i = 0; i < REQUESTS; i++) {
			world_wait(&w, &t[i]);
			assert_true(t[i].c.status == 0 || t[i].c.status == -EACCES);
		}
		world_settle(&w);
		assert_memory_equal(a.bytes, copy, LENGTH);
		for (unsigned i = 0; i < REQUESTS; i++)
			assert_int_equal(t[i].times, 1);
		area_close(&a);
		world_close(&w);
		free(buf);
		free(copy);
	}
}

/* The target's process ends in the middle: every request ends once, and the survivor can be closed. */
static void target_dies(void **state)
{
	enum { LENGTH = MEGA, REQUESTS = 6 };
	struct world w;

	for (int after = 0; after < 30; after++) {
		unsigned char *buf = calloc(REQUESTS, LENGTH);
		struct task t[REQUESTS] = {{0}};
		struct area a;

		open_two(&w, *state);
		area_open(&a, &w, 1, LENGTH, 3, false);
		for (unsigned i = 0; i < REQUESTS; i++)
			assert_int_equal(simple(&w, 0, &a, i & 1 ? READ : WRITE, buf + i * LENGTH, 0,
						 i < 4 ? LENGTH : 8, 0, &t[i]),
				0);
		for (int i = 0; i < after * (w.net ? 43 : 1); i++)
			world_step(&w);
		area_remove(&a);
		world_kill(&w, 1);
		for (unsigned i = 0; i < REQUESTS; i++) {
			world_wait(&w, &t[i]);
			assert_true(t[i].c.status == 0 || t[i].c.status == -ECONNRESET || t[i].c.status == -EACCES);
		}
		free(a.guarded);
		world_close(&w);
		free(buf);
	}
}

/* A request that names a region again: the first goes by messages, and asks; the others are direct, until it goes. */
static void direct_again(void **state)
{
	unsigned char buf[1000], got[1000];
	struct world w;
	struct area a;

	open_two(&w, *state);
	for (int region = 0; region < 3; region++) {
		area_open_key(&a, &w, 1, 1000, 3, region & 1, 77); /* the same key each time */
		for (int i = 0; i < 4; i++) {
			struct task t[3] = {{0}};

			world_fill(buf, 1000, i);
			assert_int_equal(simple(&w, 0, &a, WRITE, buf, 0, 1000, i & 1 ? RWK_F_DATA : 0, &t[0]), 0);
			world_wait(&w, &t[0]);
			assert_int_equal(simple(&w, 0, &a, READ, got, 0, 1000, 0, &t[1]), 0);
			world_wait(&w, &t[1]);
			world_check(got, 1000, i);
			assert_int_equal(simple(&w, 0, &a, WRITE, buf, 1, 1000, 0, &t[2]), 0);
			world_wait(&w, &t[2]);
			assert_int_equal(t[2].c.status, -EACCES);
		}
		assert_int_equal(a.reached, 8);
		assert_int_equal(a.reached_bytes, 8000);
		area_close(&a);
	}
	assert_int_equal(w.writes[1], 6);
	assert_int_equal(w.reached[1], 24);
	world_close(&w);
}

/* What nobody wants to know of is not told, but for data. */
static void direct_untold(void **state)
{
	unsigned char memory[1000] = {0}, buf[1000];
	struct iovec iov = {memory, sizeof(memory)};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .base = 5, .access = 3, .own_key = true, .key = 9};
	struct area a = {.who = 1, .base = 5, .key = 9};
	struct rwk_region *r;
	struct world w;

	open_two(&w, *state);
	rwk_engine_want_reached(w.e[1], false);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct task t = {0};

		if (i == 4)
			rwk_engine_want_reached(w.e[1], true);
		world_fill(buf, 1000, i);
		assert_int_equal(simple(&w, 0, &a, WRITE, buf, 0, 1000, i & 1 ? RWK_F_DATA : 0, &t), 0);
		world_wait(&w, &t);
		assert_int_equal(t.c.status, 0);
		world_check(memory, 1000, i);
		assert_int_equal(w.writes[1], (i + 1) / 2);
		world_settle(&w);
		if (i == 3)
			w.reached[1] = 0;
	}
	assert_int_equal(w.reached[1], 2);
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
}

/* A fenced read sees what all writes before it have written, direct ones too. */
static void fence(void **state)
{
	enum { LENGTH = 200000 };
	unsigned char *buf = malloc(LENGTH), *got = malloc(LENGTH);
	struct world w;
	struct area a;

	open_two(&w, *state);
	area_open(&a, &w, 1, LENGTH, 3, false);
	for (int i = 0; i < 20; i++) {
		struct task t[2] = {{0}};

		world_fill(buf, LENGTH, i);
		assert_int_equal(simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[0]), 0);
		assert_int_equal(simple(&w, 0, &a, READ, got, 0, LENGTH, RWK_F_FENCE, &t[1]), 0);
		world_wait(&w, &t[1]);
		world_check(got, LENGTH, i);
		assert_true(t[0].times == 1 && t[0].order < t[1].order);
	}
	area_close(&a);
	world_close(&w);
	free(buf);
	free(got);
}

/* A fenced request behind a direct one of which nobody is told, and nothing else under way that would remind of it. */
static void fence_untold(void **state)
{
	enum { LENGTH = 100000 };
	unsigned char *memory = calloc(1, LENGTH), *buf = malloc(LENGTH), *got = malloc(LENGTH);
	struct iovec iov = {memory, LENGTH};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .access = 3, .own_key = true, .key = 9};
	struct area a = {.who = 1, .key = 9};
	struct rwk_region *r;
	struct world w;

	open_two(&w, *state);
	rwk_engine_want_reached(w.e[1], false);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	for (int i = 0; i < 4; i++) {
		struct task t[2] = {{0}};

		world_fill(buf, LENGTH, i);
		assert_int_equal(simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[0]), 0);
		assert_int_equal(simple(&w, 0, &a, READ, got, 0, LENGTH, RWK_F_FENCE, &t[1]), 0);
		world_wait(&w, &t[1]);
		world_check(got, LENGTH, i);
		assert_true(t[0].times == 1 && t[0].order < t[1].order);
	}
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
	free(memory);
	free(buf);
	free(got);
}

#define EACH(test)                                                                                                     \
	WORLD_EACH(test),                                                                                              \
	{                                                                                                              \
#test ", direct", test, NULL, NULL, (void *)direct                                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(every_size),
		EACH(scattered),
		EACH(region_of_pieces),
		EACH(with_data),
		EACH(refused),
		EACH(permission),
		WORLD_EACH(all_memory),
		EACH(inject),
		EACH(senseless),
		WORLD_EACH(order),
		EACH(atomics),
		EACH(compare_and_swap),
		EACH(limit),
		EACH(removed_in_the_middle),
		EACH(target_dies),
		EACH(direct_again),
		EACH(direct_untold),
		EACH(fence),
		EACH(fence_untold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
