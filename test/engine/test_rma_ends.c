/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations that are refused, and that it touches nothing; as many as can be under way; regions that go and
 * peers that die in the middle.
 *
 * Links: shm, sim.
 */
#include "engine/area.h"

#include "engine/internal.h"
#include "engine/rma_state.h"

#include <sys/mman.h>
#include <unistd.h>

typedef ssize_t process_vm(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags);
process_vm __real_process_vm_readv, __wrap_process_vm_readv, __real_process_vm_writev, __wrap_process_vm_writev;

/* Bytes that the kernel copies in a call; as it is, 2 GB less a page. */
static size_t kernel_max = SIZE_MAX;

static ssize_t copy_some(process_vm *real, pid_t pid, const struct iovec *local, unsigned long locals,
	const struct iovec *remote, unsigned long remotes, unsigned long flags)
{
	struct iovec some = {local->iov_base, local->iov_len < kernel_max ? local->iov_len : kernel_max};

	return locals > 1 ? real(pid, local, locals, remote, remotes, flags)
			  : real(pid, &some, 1, remote, remotes, flags);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags)
{
	return copy_some(__real_process_vm_readv, pid, local, locals, remote, remotes, flags);
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
	unsigned long remotes, unsigned long flags)
{
	return copy_some(__real_process_vm_writev, pid, local, locals, remote, remotes, flags);
}

static bool all_are(const unsigned char *p, size_t len, int byte)
{
	return p[0] == byte && !memcmp(p, p + 1, len - 1);
}

/* S3-6, S4-4: what must be refused, and is: the memory at both ends stays as it was, the next request goes well. */
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
	unsigned char *buf = malloc(LENGTH + 8), other[64] = {0};
	struct area good;
	struct world w;

	area_open_world(&w, *state, 2);
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
			assert_int_equal(
				area_simple(&w, 0, &a, kind, buf, cases[i].at, cases[i].len, RWK_F_DATA, &bad), 0);
			assert_int_equal(area_simple(&w, 0, &good, kind, other, 0, 64, 0, &after), 0);
			world_wait(&w, &after);
			world_wait(&w, &bad);
			if (bad.c.status != cases[i].status)
				fail_msg("%s: status %d", cases[i].what, bad.c.status);
			assert_int_equal(after.c.status, 0);
			if (cases[i].status) {
				area_check_filled(a.bytes, LENGTH);
				assert_int_equal(a.reached, 0);
				assert_true(all_are(buf, LENGTH + 8, 0x11));
			}
			area_close(&a);
		}
	}
	assert_int_equal(w.writes[1], 1);
	area_close(&good);
	world_close(&w);
	free(buf);
}

/* S3-6: a read-only region is not written, a write-only one not read; nor by atomics. */
static void permission(void **state)
{
	uint64_t operand = 1, result = 0;
	struct iovec iov = {&operand, 8}, into = {&result, 8};
	struct world w;

	area_open_world(&w, *state, 2);
	for (unsigned access = 0; access < 4; access++) {
		for (int way = 0; way < 5; way++) {
			bool reads = way == 1 || way == 3 || way == 4, writes = way != 1 && way != 4;
			unsigned needs = (reads ? RWK_REGION_READ : 0) | (writes ? RWK_REGION_WRITE : 0);
			struct task t = {0};
			struct area a;

			area_open(&a, &w, 1, 8, access, false);
			if (way < 2) {
				assert_int_equal(area_simple(&w, 0, &a, way ? READ : WRITE, &operand, 0, 8, 0, &t), 0);
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

				assert_int_equal(area_atomic(&w, 0, &args), 0);
			}
			world_wait(&w, &t);
			assert_int_equal(t.c.status, needs & ~access ? -EACCES : 0);
			if (needs & ~access)
				area_check_filled(a.bytes, 8);
			area_close(&a);
		}
	}
	world_close(&w);
}

/* All memory: what is not mapped is an error of the request's, whichever way a long one goes. */
static void all_memory(void **state)
{
	static unsigned char memory[100000], buf[sizeof(memory)];
	struct iovec all = {NULL, SIZE_MAX};
	struct rwk_region_attr attr = {.iov = &all, .count = 1, .access = 3};
	unsigned char word[8] = "written", got[8];
	struct area a = {.who = 1};
	struct world w;

	area_open_world(&w, *state, 2);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &a.region), 0);
	a.key = rwk_region_key(a.region);
	for (int target = 0; target < 2; target++) {
		struct task t[4] = {{0}}, t_long[4] = {{0}};

		assert_int_equal(area_simple(&w, 0, &a, WRITE, word, (uintptr_t)memory, 8, 0, &t[0]), 0);
		assert_int_equal(area_simple(&w, 0, &a, READ, got, (uintptr_t)memory, 8, 0, &t[1]), 0);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, word, 16, 8, 0, &t[2]), 0);
		assert_int_equal(area_simple(&w, 0, &a, READ, got, 16, 8, 0, &t[3]), 0);
		for (int i = 0; i < 4; i++) {
			world_wait(&w, &t[i]);
			assert_int_equal(t[i].c.status, i < 2 ? 0 : -EFAULT);
		}
		assert_memory_equal(memory, word, 8);
		assert_memory_equal(got, word, 8);
		for (int i = 0; i < 4; i++) {
			uintptr_t at = i < 2 ? (uintptr_t)memory : 16;

			world_fill(buf, sizeof(buf), target);
			assert_int_equal(
				area_simple(&w, 0, &a, i & 1 ? READ : WRITE, buf, at, sizeof(buf), 0, &t_long[i]), 0);
			world_wait(&w, &t_long[i]);
			assert_int_equal(t_long[i].c.status, i < 2 ? 0 : -EFAULT);
		}
		world_check(memory, sizeof(memory), target);
		memset(memory, 0, 8);
	}
	rwk_region_remove(w.regions[1], a.region);
	world_close(&w);
}

/* All memory again: atomic operations, on what may not be touched so as well. */
static void all_memory_atomic(void **state)
{
	static const struct {
		int protection;
		enum rwk_atomic_op op;
		int status;
	} cases[] = {
		{PROT_READ | PROT_WRITE, RWK_SUM, 0},
		{PROT_READ | PROT_WRITE, RWK_ATOMIC_READ, 0},
		{PROT_READ, RWK_ATOMIC_READ, 0},
		{PROT_READ, RWK_SUM, -EFAULT},
		{PROT_NONE, RWK_ATOMIC_READ, -EFAULT},
		{PROT_NONE, RWK_SUM, -EFAULT},
	};
	struct iovec all = {NULL, SIZE_MAX};
	struct rwk_region_attr attr = {.iov = &all, .count = 1, .access = 3};
	uint64_t operand = 5, result, *word;
	struct iovec iov = {&operand, 8}, into = {&result, 8};
	struct rwk_region *region;
	struct world w;

	area_open_world(&w, *state, 2);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &region), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_remote remote = {.length = 8, .key = rwk_region_key(region)};
		struct task t = {0};
		const struct rwk_atomic_args args = {.rma = {.peer = w.peer[0][1],
							     .iov = &iov,
							     .iov_count = 1,
							     .remote = &remote,
							     .remote_count = 1,
							     .context = &t},
			.op = cases[i].op,
			.type = RWK_UINT64,
			.result = &into,
			.result_count = 1};

		word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(word, MAP_FAILED);
		word[1] = 1000;
		assert_int_equal(mprotect(word, 4096, cases[i].protection), 0);
		remote.address = (uintptr_t)(word + 1);
		result = 0;
		assert_int_equal(area_atomic(&w, 0, &args), 0);
		world_wait(&w, &t);
		assert_int_equal(t.c.status, cases[i].status);
		assert_int_equal(result, cases[i].status ? 0 : 1000);
		munmap(word, 4096);
	}
	rwk_region_remove(w.regions[1], region);
	world_close(&w);
}

/* Words of 16 bytes in pages that may only be read, of a region to match: read if that stores nothing, else refused. */
static void read_only_words(void **state)
{
	const struct iovec iov = {mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096};
	const struct rwk_region_attr attr = {.iov = &iov, .count = 1, .access = RWK_REGION_READ};
	const bool stores = rwk_atomic_stores(RWK_ATOMIC_READ, RWK_UINT128);
	struct rwk_region *region;
	struct world w;

	assert_ptr_not_equal(iov.iov_base, MAP_FAILED);
	area_open_world(&w, *state, 2);
	for (unsigned to = 0; to < 2 && rwk_atomic_valid(RWK_ATOMIC_READ, RWK_UINT128); to++) {
		unsigned char result[16];
		const struct iovec into = {result, sizeof(result)};
		struct rwk_remote remote = {.length = sizeof(result)};
		struct task t = {0};
		const struct rwk_atomic_args args = {
			.rma = {.peer = w.peer[0][to], .remote = &remote, .remote_count = 1, .context = &t},
			.op = RWK_ATOMIC_READ,
			.type = RWK_UINT128,
			.result = &into,
			.result_count = 1};

		assert_int_equal(rwk_region_add(w.regions[to], &attr, &region), 0);
		remote.key = rwk_region_key(region);
		memset(result, 1, sizeof(result));
		assert_int_equal(area_atomic(&w, 0, &args), 0);
		world_wait(&w, &t);
		assert_int_equal(t.c.status, stores ? -EACCES : 0);
		for (size_t i = 0; i < sizeof(result); i++)
			assert_int_equal(result[i], stores);
		rwk_region_remove(w.regions[to], region);
	}
	world_close(&w);
	munmap(iov.iov_base, 4096);
}

/* Adds to two words of the area, the second at `at`, and fetches both. */
static void add_to_two(struct world *w, const struct area *a, uint64_t at, uint64_t result[2], struct task *t)
{
	uint64_t ones[2] = {1, 1};
	const struct iovec iov = {ones, sizeof(ones)}, into = {result, sizeof(ones)};
	const struct rwk_remote remote[] = {{a->base, 8, a->key}, {a->base + at, 8, a->key}};
	const struct rwk_atomic_args args = {.rma = {.peer = w->peer[0][a->who],
						     .iov = &iov,
						     .iov_count = 1,
						     .remote = remote,
						     .remote_count = 2,
						     .context = t},
		.op = RWK_SUM,
		.type = RWK_UINT64,
		.result = &into,
		.result_count = 1};

	assert_int_equal(area_atomic(w, 0, &args), 0);
	world_wait(w, t);
}

static unsigned reasons; /* in the log, for refusing what is not aligned */

static void count_reasons(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	reasons += strstr(text, "at a multiple of its size") != NULL;
}

/*
 * If the second of two ranges is not aligned neither is changed, nor fetched: of a peer's memory and of one's own. The
 * process says why once.
 */
static void misaligned_range(void **state)
{
	struct world w;

	area_open_world(&w, *state, 2);
	for (unsigned who = 0; who < 2; who++) {
		uint64_t result[2] = {7, 7};
		struct task t[2] = {{0}};
		struct area a;

		area_open(&a, &w, who, 64, 3, false);
		add_to_two(&w, &a, 20, result, &t[0]);
		assert_int_equal(t[0].c.status, -EINVAL);
		area_check_filled(a.bytes, 64);
		assert_true(result[0] == 7 && result[1] == 7);
		add_to_two(&w, &a, 24, result, &t[1]);
		assert_int_equal(t[1].c.status, 0);
		assert_true(a.bytes[0] == AREA_FILL + 1 && a.bytes[24] == AREA_FILL + 1);
		assert_true(result[0] != 7 && result[0] == result[1]);
		area_close(&a);
	}
	assert_int_equal(reasons, 1);
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

	area_open_world(&w, *state, 2);
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
	a.iov_count = 2;
	iov[0].iov_len = SIZE_MAX - 7; /* together 8 bytes, if nobody looks */
	iov[1] = (struct iovec){buf, 16};
	assert_int_equal(rwk_engine_write(w.e[0], &a), -EINVAL);
	assert_int_equal(rwk_engine_read(w.e[0], &a), -EINVAL);
	iov[0].iov_len = 8;
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

/* No memory, memory in too many pieces, and such that wraps, by itself or where peers name it: no region. */
static void senseless_regions(void **state)
{
	static char buf[8];
	static const struct {
		struct iovec iov[2];
		size_t count;
		uint64_t base;
		int rc;
	} cases[] = {
		{{{buf, 8}}, 0, 0, -EINVAL},
		{{{buf, SIZE_MAX}}, 1, 0, -EINVAL},
		{{{buf, SIZE_MAX / 2}, {buf, SIZE_MAX / 2}}, 2, 16, -EINVAL},
		{{{buf, 8}, {buf, SIZE_MAX}}, 2, 0, -EINVAL},
		{{{buf, 8}}, 1, UINT64_MAX - 6, -EINVAL},
		{{{NULL, SIZE_MAX}}, 1, 1, 0},
		{{{NULL, SIZE_MAX}}, 1, 2, -EINVAL},
		{{{buf, 8}}, 1, UINT64_MAX - 7, 0},
		{{{buf, 8}}, RWK_ENGINE_IOV_MAX + 1, 0, -EINVAL},
	};
	struct rwk_regions *t;

	(void)state;
	assert_int_equal(rwk_regions_open(&t, false), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct iovec iov[RWK_ENGINE_IOV_MAX + 1] = {cases[i].iov[0], cases[i].iov[1]};
		const struct rwk_region_attr attr = {
			.iov = iov, .count = cases[i].count, .base = cases[i].base, .access = 3, .own_key = true};
		struct rwk_region *r = NULL;

		assert_int_equal(rwk_region_add(t, &attr, &r), cases[i].rc);
		if (r)
			rwk_region_remove(t, r);
	}
	rwk_regions_close(t);
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
	area_open_world(&w, *state, 2);
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
	assert_int_equal(area_simple(&w, 0, &a, READ, word, 0, 8, RWK_F_FENCE, &more), 0);
	world_wait(&w, &more);
	for (int i = 0; i < 1024; i++)
		assert_true(t[i].times == 1 && t[i].order < more.order);
	area_close(&a);
	world_close(&w);
}

/* In a completion: how often each request has ended; with the first the others of its room do, and a new one begins. */
static struct {
	struct area far;
	unsigned ends[3];
} chain;

static unsigned char word_of_chain[8];

static void start_in_chain(struct world *w, const struct area *to, unsigned i, uint32_t flags)
{
	assert_int_equal(area_simple(w, 0, to, WRITE, word_of_chain, 0, 8, flags, (void *)&chain.ends[i]), 0);
}

static void ends_others(struct world *w, unsigned who, const struct rwk_completion *c)
{
	assert_int_equal(who, 0);
	++*(unsigned *)c->context;
	if (c->context != &chain.ends[0])
		return;
	rwk_engine_cancel_room(w->e[0], 0, false);
	start_in_chain(w, &chain.far, 2, 0);
}

/* A completion ends the request behind its own, and begins one to another peer: that ends when it is carried out. */
static void ended_in_completion(void **state)
{
	struct task met[8] = {{0}};
	struct world w;
	struct area a;

	memset(chain.ends, 0, sizeof(chain.ends));
	area_open_world(&w, *state, 3);
	area_open(&a, &w, 1, 8, 3, false);
	area_open(&chain.far, &w, 2, 8, 3, false);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(area_simple(&w, 0, i ? &a : &chain.far, WRITE, word_of_chain, 0, 8, 0, &met[i]), 0);
		world_wait(&w, &met[i]);
	}
	w.on_complete = ends_others;
	w.computes[1] = w.computes[2] = true;
	start_in_chain(&w, &a, 0, 0);
	start_in_chain(&w, &a, 1, RWK_F_FENCE);
	w.computes[1] = false;
	for (int i = 0; i < 300; i++)
		world_step(&w);
	assert_int_equal(chain.ends[0], 1);
	assert_int_equal(chain.ends[1], 1);
	assert_int_equal(chain.ends[2], 0);
	w.computes[2] = false;
	world_settle(&w);
	assert_int_equal(chain.ends[2], 1);
	area_close(&a);
	area_close(&chain.far);
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

		area_open_world(&w, *state, 2);
		area_open(&a, &w, 1, LENGTH, 3, false);
		for (unsigned i = 0; i < REQUESTS; i++)
			assert_int_equal(
				area_simple(&w, 0, &a, i & 1 ? READ : WRITE, buf + i * LENGTH, 0, LENGTH, 0, &t[i]), 0);
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

/*
 * The region goes in the middle of a long request, and its key is another's in the same moment: the request has all of
 * the one, or all of the other, or is refused; never a part of each.
 */
static void key_reused(void **state)
{
	enum { LENGTH = 5 * (MEGA / 16), KEY = 77, MARK = 0x11 };
	unsigned refusals = 0;
	struct world w;

	for (int after = 0; after < 80; after++) {
		enum area_kind kind = after & 1 ? READ : WRITE;
		unsigned char *buf = malloc(LENGTH);
		struct area old, fresh;
		struct task t = {0};

		memset(buf, MARK, LENGTH);
		area_open_world(&w, *state, 2);
		area_open_key(&old, &w, 1, LENGTH, 3, true, KEY);
		assert_int_equal(area_simple(&w, 0, &old, kind, buf, 0, LENGTH, 0, &t), 0);
		for (int i = 0; i < after / 2 * (w.net ? 23 : 1); i++)
			world_step(&w);
		area_remove(&old);
		area_open_key(&fresh, &w, 1, LENGTH, 3, true, KEY);
		if (kind == READ)
			memset(fresh.bytes, MARK + 1, LENGTH);
		world_wait(&w, &t);
		world_settle(&w);
		assert_true(t.c.status == 0 || t.c.status == -EACCES);
		refusals += t.c.status != 0;
		if (kind == READ)
			assert_true(t.c.status || all_are(buf, LENGTH, AREA_FILL) || all_are(buf, LENGTH, MARK + 1));
		else if (t.c.status)
			area_check_filled(fresh.bytes, LENGTH);
		else
			assert_true(all_are(old.bytes, LENGTH, MARK) || all_are(fresh.bytes, LENGTH, MARK));
		area_close(&old);
		area_close(&fresh);
		world_close(&w);
		free(buf);
	}
	assert_true(refusals > 0 || *state == area_direct || *state == &rwk_shm_transport);
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

		area_open_world(&w, *state, 2);
		area_open(&a, &w, 1, LENGTH, 3, false);
		for (unsigned i = 0; i < REQUESTS; i++)
			assert_int_equal(area_simple(&w, 0, &a, i & 1 ? READ : WRITE, buf + i * LENGTH, 0,
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

/* More of all memory than the kernel copies in one call comes whole; with its end missing it fails. */
static void all_memory_long(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 5 * page + 3;
	const struct iovec all = {NULL, SIZE_MAX};
	const struct rwk_region_attr attr = {.iov = &all, .count = 1, .access = 3};
	unsigned char *there = mmap(NULL, 6 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *out = malloc(len), *in = calloc(1, len);
	struct rwk_regions *t;
	struct rwk_region *r;

	(void)state;
	assert_true(there != MAP_FAILED);
	assert_int_equal(rwk_regions_open(&t, false), 0);
	assert_int_equal(rwk_region_add(t, &attr, &r), 0);
	world_fill(out, len, 1);
	kernel_max = 2 * page;
	assert_int_equal(rwk_region_store(r, (uintptr_t)there, out, len), 0);
	world_check(there, len, 1);
	assert_int_equal(rwk_region_load(r, (uintptr_t)there, in, len), 0);
	world_check(in, len, 1);
	assert_int_equal(munmap(there + 5 * page, page), 0);
	assert_int_equal(rwk_region_store(r, (uintptr_t)there, out, len), -EFAULT);
	assert_int_equal(rwk_region_load(r, (uintptr_t)there, in, len), -EFAULT);
	kernel_max = SIZE_MAX;
	rwk_region_remove(t, r);
	rwk_regions_close(t);
	munmap(there, 5 * page);
	free(out);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AREA_EACH(refused),
		AREA_EACH(permission),
		WORLD_EACH(all_memory),
		WORLD_EACH(all_memory_atomic),
		cmocka_unit_test(all_memory_long),
		WORLD_EACH(read_only_words),
		AREA_EACH(misaligned_range),
		AREA_EACH(senseless),
		cmocka_unit_test(senseless_regions),
		AREA_EACH(limit),
		WORLD_EACH(ended_in_completion),
		AREA_EACH(removed_in_the_middle),
		AREA_EACH(key_reused),
		AREA_EACH(target_dies),
	};

	rwk_log_set_sink(count_reasons);
	rwk_log_set_level(RWK_LOG_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
