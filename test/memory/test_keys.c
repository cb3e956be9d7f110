/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key table: who reaches what with which key, and that nobody else does (S3-6); keys that cannot be guessed from
 * others; one table in two processes that see it at different addresses.
 *
 * Links: none: what the machines of all links ask.
 */
#define _GNU_SOURCE /* memfd_create */
#include "rwk_test.h"
#include "seeded.h"

#include "memory/keys.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PD     7u
#define ALL    (RWK_REACH_READ | RWK_REACH_WRITE | RWK_REACH_ATOMIC)
#define BASE   0x100000u
#define LENGTH 1000u

static uint8_t memory[LENGTH];

static struct rwk_keys *table(uint32_t entries)
{
	struct rwk_keys *t = aligned_alloc(64, rwk_keys_size(entries));

	assert_non_null(t);
	memset(t, 0x5a, rwk_keys_size(entries));
	assert_int_equal(rwk_keys_init(t, entries), 0);
	return t;
}

static uint32_t add(struct rwk_keys *t, unsigned reach)
{
	struct iovec iov = {memory, LENGTH};
	uint32_t key;

	assert_int_equal(rwk_keys_add(t, PD, BASE, &iov, 1, reach, &key), 0);
	return key;
}

/* S3-6: wrong key, protection domain, range or permission is denied, by check and by find; the right one is found. */
static void denied(void **state)
{
	static const struct {
		const char *what;
		uint32_t pd, key_xor;
		uint64_t address;
		size_t len;
		unsigned has, wants;
		bool may;
	} cases[] = {
		{"all of it", PD, 0, BASE, LENGTH, ALL, RWK_REACH_READ, true},
		{"the last byte", PD, 0, BASE + LENGTH - 1, 1, ALL, RWK_REACH_WRITE, true},
		{"nothing, at the end", PD, 0, BASE + LENGTH, 0, ALL, RWK_REACH_WRITE, true},
		{"two permissions", PD, 0, BASE, 8, ALL, RWK_REACH_READ | RWK_REACH_ATOMIC, true},
		{"another domain", PD + 1, 0, BASE, 1, ALL, RWK_REACH_READ, false},
		{"another slot's key", PD, 1, BASE, 1, ALL, RWK_REACH_READ, false},
		{"the slot with other chance bits", PD, 0x80000000u, BASE, 1, ALL, RWK_REACH_READ, false},
		{"one byte before", PD, 0, BASE - 1, 1, ALL, RWK_REACH_READ, false},
		{"from one byte before", PD, 0, BASE - 1, 2, ALL, RWK_REACH_READ, false},
		{"one byte behind", PD, 0, BASE + LENGTH, 1, ALL, RWK_REACH_READ, false},
		{"one byte too many", PD, 0, BASE, LENGTH + 1, ALL, RWK_REACH_READ, false},
		{"one too many at the end", PD, 0, BASE + LENGTH - 1, 2, ALL, RWK_REACH_READ, false},
		{"nothing, beyond the end", PD, 0, BASE + LENGTH + 1, 0, ALL, RWK_REACH_READ, false},
		{"a length that wraps", PD, 0, BASE + 1, SIZE_MAX, ALL, RWK_REACH_READ, false},
		{"a length that wraps to the base", PD, 0, BASE + 8, SIZE_MAX - 7, ALL, RWK_REACH_READ, false},
		{"from the top", PD, 0, UINT64_MAX, 2, ALL, RWK_REACH_READ, false},
		{"from the top to inside", PD, 0, UINT64_MAX, (size_t)BASE + 2, ALL, RWK_REACH_READ, false},
		{"write where read is allowed", PD, 0, BASE, 1, RWK_REACH_READ, RWK_REACH_WRITE, false},
		{"atomic where write is allowed", PD, 0, BASE, 8, RWK_REACH_READ | RWK_REACH_WRITE, RWK_REACH_ATOMIC,
			false},
		{"two where one is allowed", PD, 0, BASE, 8, RWK_REACH_READ, RWK_REACH_READ | RWK_REACH_WRITE, false},
		{"read where nothing is allowed", PD, 0, BASE, 1, 0, RWK_REACH_READ, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_keys *t = table(16);
		uint32_t key = add(t, cases[i].has) ^ cases[i].key_xor;
		struct iovec iov[1] = {{NULL, 77}};
		int rc = rwk_keys_check(t, cases[i].pd, key, cases[i].address, cases[i].len, cases[i].wants);
		int found = rwk_keys_find(t, cases[i].pd, key, cases[i].address, cases[i].len, cases[i].wants, iov, 1);

		if (rc != (cases[i].may ? 0 : -EACCES) || found != (cases[i].may ? cases[i].len > 0 : -EACCES))
			fail_msg("%s: check %d, find %d", cases[i].what, rc, found);
		if (found == 1) {
			assert_ptr_equal(iov[0].iov_base, memory + (cases[i].address - BASE));
			assert_int_equal(iov[0].iov_len, cases[i].len);
		} else {
			assert_int_equal(iov[0].iov_len, 77);
		}
		free(t);
	}
}

/* A region that ends with the address space, and one that would end behind it. */
static void top(void **state)
{
	struct rwk_keys *t = table(4);
	struct iovec iov = {memory, LENGTH}, two[2] = {{memory, SIZE_MAX}, {memory, 2}};
	uint32_t key, other = 99;

	(void)state;
	assert_int_equal(rwk_keys_add(t, PD, UINT64_MAX - LENGTH, &iov, 1, ALL, &key), 0);
	assert_int_equal(rwk_keys_check(t, PD, key, UINT64_MAX - LENGTH, LENGTH, ALL), 0);
	assert_int_equal(rwk_keys_check(t, PD, key, UINT64_MAX - 1, 1, ALL), 0);
	assert_int_equal(rwk_keys_check(t, PD, key, UINT64_MAX - 1, 2, ALL), -EACCES);
	assert_int_equal(rwk_keys_check(t, PD, key, 0, 1, ALL), -EACCES);
	assert_int_equal(rwk_keys_add(t, PD, UINT64_MAX - LENGTH + 1, &iov, 1, ALL, &other), -EINVAL);
	assert_int_equal(rwk_keys_add(t, PD, 0, two, 2, ALL, &other), -EINVAL);
	assert_int_equal(other, 99);
	free(t);
}

/* Each range of a region of pieces (one of them empty) lies where the pieces say. */
static void pieces(void **state)
{
	static const size_t len[RWK_KEYS_IOV] = {3, 1, 0, 5, 2, 0, 1, 4};
	struct rwk_keys *t = table(4);
	struct iovec iov[RWK_KEYS_IOV + 1], found[RWK_KEYS_IOV];
	const uint8_t *where[16];
	unsigned total = 0;
	uint32_t key;

	(void)state;
	for (unsigned i = 0; i < RWK_KEYS_IOV; i++) {
		iov[i] = (struct iovec){memory + 20 * i, len[i]};
		for (size_t j = 0; j < len[i]; j++)
			where[total++] = memory + 20 * i + j;
	}
	assert_int_equal(total, 16);
	assert_int_equal(rwk_keys_add(t, PD, BASE, iov, RWK_KEYS_IOV + 1, ALL, &key), -EINVAL);
	assert_int_equal(rwk_keys_add(t, PD, BASE, iov, RWK_KEYS_IOV, ALL, &key), 0);
	for (unsigned from = 0; from <= 16; from++) {
		for (unsigned to = from; to <= 16; to++) {
			int n = rwk_keys_find(t, PD, key, BASE + from, to - from, ALL, found, RWK_KEYS_IOV);
			unsigned at = from;

			assert_in_range(n, to > from, 6);
			for (int i = 0; i < n; i++)
				for (size_t j = 0; j < found[i].iov_len; j++)
					assert_ptr_equal((uint8_t *)found[i].iov_base + j, where[at++]);
			assert_int_equal(at, to);
			if (n > 1)
				assert_int_equal(rwk_keys_find(t, PD, key, BASE + from, to - from, ALL, found, n - 1),
					-EMSGSIZE);
		}
	}
	assert_int_equal(rwk_keys_find(t, PD, key, BASE, 17, ALL, found, RWK_KEYS_IOV), -EACCES);
	free(t);
}

/* As many regions as entries; each reached with its own key alone; a removed one with none; the place is free again. */
static void full(void **state)
{
	struct iovec iov = {memory, LENGTH};
	struct rwk_keys *t = table(64);
	uint32_t key[64], other = 99, pd;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(rwk_keys_add(t, i, BASE, &iov, 1, ALL, &key[i]), 0);
		assert_in_range(rwk_keys_slot(t, key[i]), 0, 63);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(rwk_keys_slot(t, key[i]), rwk_keys_slot(t, key[j]));
	}
	assert_int_equal(rwk_keys_add(t, 64, BASE, &iov, 1, ALL, &other), -ENOSPC);
	assert_int_equal(other, 99);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(rwk_keys_pd(t, key[i], &pd), 0);
		assert_int_equal(pd, i);
		for (pd = 0; pd < 64; pd++)
			assert_int_equal(rwk_keys_check(t, pd, key[i], BASE, LENGTH, ALL), pd == i ? 0 : -EACCES);
	}
	pd = 99;
	assert_int_equal(rwk_keys_remove(t, key[5] ^ 0x80000000u), -ENOENT);
	assert_int_equal(rwk_keys_remove(t, key[5]), 0);
	assert_int_equal(rwk_keys_remove(t, key[5]), -ENOENT);
	assert_int_equal(rwk_keys_check(t, 5, key[5], BASE, 1, ALL), -EACCES);
	assert_int_equal(rwk_keys_pd(t, key[5], &pd), -EACCES);
	assert_int_equal(rwk_keys_pd(t, key[6] ^ 0x80000000u, &pd), -EACCES);
	assert_int_equal(pd, 99);
	assert_int_equal(rwk_keys_add(t, 5, BASE, &iov, 1, ALL, &other), 0);
	assert_int_not_equal(other, key[5]);
	assert_int_equal(rwk_keys_check(t, 5, key[5], BASE, 1, ALL), -EACCES);
	assert_int_equal(rwk_keys_check(t, 5, other, BASE, 1, ALL), 0);
	free(t);
}

/* Free slots do not keep the keys that open them: in a fresh table no key of a whole slot's worth opens anything. */
static void fresh(void **state)
{
	struct rwk_keys *t = table(0x10000);
	struct iovec iov = {memory, LENGTH};
	uint32_t key;

	(void)state;
	for (uint32_t high = 0; high < 0x10000; high++) {
		assert_int_equal(rwk_keys_check(t, 0, high << 16 | 0x1234, 0, 0, 0), -EACCES);
		assert_int_equal(rwk_keys_remove(t, high << 16 | 0x1234), -ENOENT);
	}
	assert_int_equal(rwk_keys_add(t, 0, 0, &iov, 1, 0, &key), 0);
	assert_int_equal(rwk_keys_remove(t, key), 0);
	for (uint32_t high = 0; high < 0x10000; high++)
		assert_int_equal(rwk_keys_check(t, 0, high << 16 | (key & 0xffff), 0, 0, 0), -EACCES);
	free(t);
}

/*
 * A slot's key is never twice the same in a row (with 16 bits drawn, 15 of these pairs would be by chance); two
 * tables begin differently; and what is drawn has both values in each bit, about as often.
 */
static void drawn(void **state)
{
	struct rwk_keys *t = table(0x10000), *a = table(2), *b = table(2);
	uint32_t last = UINT32_MAX, same = 0, ones[16] = {0};
	uint32_t *before = calloc(0x10000, sizeof(*before));

	(void)state;
	assert_non_null(before);
	for (unsigned i = 0; i < 8; i++) {
		same += add(a, ALL) == add(b, ALL);
		assert_int_equal(rwk_keys_init(a, 2) | rwk_keys_init(b, 2), 0);
	}
	assert_in_range(same, 0, 1);
	for (unsigned i = 0; i < 16 * 0x10000; i++) {
		uint32_t key = add(t, ALL);

		assert_int_not_equal(key, before[key & 0xffff]);
		before[key & 0xffff] = key;
		for (unsigned bit = 0; bit < 16; bit++)
			ones[bit] += key >> (16 + bit) & 1;
		assert_int_equal(rwk_keys_remove(t, key), 0);
		assert_int_not_equal(key & 0xffff, last & 0xffff); /* used again as late as can be */
		last = key;
	}
	for (unsigned bit = 0; bit < 16; bit++) /* 524288 +- 512 a sigma */
		assert_in_range(ones[bit], 524288 - 5000, 524288 + 5000);
	free(before);
	free(t);
	free(a);
	free(b);
}

static void sizes(void **state)
{
	static const uint32_t bad[] = {0, 1, 3, 63, 0x20000, UINT32_MAX};
	struct rwk_keys *t = table(2);

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rwk_keys_init(t, bad[i]), -EINVAL);
	assert_true(rwk_keys_size(4) > rwk_keys_size(2));
	free(t);
}

/* The other process: adds a region, then says which of the parent's keys it finds; its own mapping is elsewhere. */
static int other_process(int fd, const void *not_here, int in, int out)
{
	size_t size = rwk_keys_size(16);
	struct iovec iov = {memory, 500}, found;
	struct rwk_keys *t = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint32_t key;

	if (t == MAP_FAILED || (const void *)t == not_here)
		return 1;
	for (unsigned i = 0; i < 100; i++) {
		if (read(in, &key, sizeof(key)) != sizeof(key))
			return 2;
		if (rwk_keys_find(t, PD, key, BASE + 10, 20, RWK_REACH_READ, &found, 1) != 1)
			return 3;
		if (found.iov_base != memory + 10 || found.iov_len != 20) /* the table keeps the owner's addresses */
			return 4;
		if (rwk_keys_remove(t, key) || rwk_keys_add(t, PD + 1, i, &iov, 1, RWK_REACH_WRITE, &key))
			return 5;
		if (write(out, &key, sizeof(key)) != sizeof(key))
			return 6;
	}
	return 0;
}

/* The regions of one protection domain go over to another; nobody else's do. */
static void moved(void **state)
{
	struct rwk_keys *t = calloc(1, rwk_keys_size(16));
	struct iovec iov = {t, 1};
	uint32_t mine, others;

	(void)state;
	assert_int_equal(rwk_keys_init(t, 16), 0);
	mine = add(t, RWK_REACH_READ);
	assert_int_equal(rwk_keys_add(t, PD + 1, 0, &iov, 1, RWK_REACH_READ, &others), 0);
	rwk_keys_move(t, PD, PD + 2);
	assert_int_equal(rwk_keys_check(t, PD, mine, BASE, 1, RWK_REACH_READ), -EACCES);
	assert_int_equal(rwk_keys_check(t, PD + 2, mine, BASE, 1, RWK_REACH_READ), 0);
	assert_int_equal(rwk_keys_check(t, PD + 1, others, 0, 1, RWK_REACH_READ), 0);
	free(t);
}

/* Those of one protection domain are taken out, once, though one had gone before; nobody else's are. */
static void removed_together(void **state)
{
	struct rwk_keys *t = calloc(1, rwk_keys_size(16));
	struct iovec iov = {t, 1};
	uint32_t key[16];

	(void)state;
	assert_int_equal(rwk_keys_init(t, 16), 0);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(rwk_keys_add(t, PD + i % 2, 0, &iov, 1, RWK_REACH_READ, &key[i]), 0);
	assert_int_equal(rwk_keys_remove(t, key[2]), 0);
	rwk_keys_remove_all(t, PD);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(rwk_keys_check(t, PD + i % 2, key[i], 0, 1, RWK_REACH_READ), i % 2 ? 0 : -EACCES);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(rwk_keys_add(t, PD, 0, &iov, 1, RWK_REACH_READ, &key[i]), 0);
	assert_int_equal(rwk_keys_add(t, PD, 0, &iov, 1, RWK_REACH_READ, &key[0]), -ENOSPC);
	free(t);
}

#define DOMAINS 4u
#define SLOTS   64u

/* What there is, by the table and by a list of our own: whose each of `key` is; 0: it was taken out. */
static void compare(const struct rwk_keys *t, const uint32_t *key, const uint32_t *whose)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		uint32_t pd = 0;

		check(rwk_keys_pd(t, key[i], &pd) == (whose[i] ? 0 : -EACCES));
		check(pd == whose[i]);
	}
}

/* Protection domains of which three are in one list: what is taken out or moved is of one of them, and all that is. */
static void listed(void **state)
{
	static const uint32_t domain[DOMAINS] = {PD, PD + SLOTS, PD + 2 * SLOTS, PD + 1};
	struct rwk_keys *t = table(SLOTS);
	uint32_t key[SLOTS] = {0}, whose[SLOTS] = {0};
	struct iovec iov = {memory, LENGTH};

	(void)state;
	begin_with(1);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t n = pick(SLOTS), pd = domain[pick(DOMAINS)], to = domain[pick(DOMAINS)], what = pick(32);

		if (!what)
			rwk_keys_remove_all(t, pd);
		else if (what == 1)
			rwk_keys_move(t, pd, to);
		else if (whose[n])
			assert_int_equal(rwk_keys_remove(t, key[n]), 0);
		else
			assert_int_equal(rwk_keys_add(t, pd, BASE, &iov, 1, ALL, &key[n]), 0);
		for (unsigned j = 0; what < 2 && j < SLOTS; j++)
			whose[j] = whose[j] != pd ? whose[j] : what ? to : 0;
		if (what >= 2)
			whose[n] = whose[n] ? 0 : pd;
		compare(t, key, whose);
	}
	free(t);
}

/* One table in two processes, mapped at two addresses: they take turns, and each finds what the other has added. */
static void two_processes(void **state)
{
	int fd = memfd_create("keys", MFD_CLOEXEC), to[2], from[2], status;
	size_t size = rwk_keys_size(16);
	struct rwk_keys *t;
	uint32_t mine, key;
	pid_t pid;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	t = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(t, MAP_FAILED);
	assert_int_equal(rwk_keys_init(t, 16), 0);
	assert_int_equal(pipe(to) | pipe(from), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(other_process(fd, t, to[0], from[1]));
	close(to[0]);
	close(from[1]);
	for (unsigned i = 0; i < 100; i++) {
		mine = add(t, RWK_REACH_READ);
		assert_int_equal(write(to[1], &mine, sizeof(mine)), sizeof(mine));
		assert_int_equal(poll(&(struct pollfd){from[0], POLLIN, 0}, 1, 30000), 1);
		if (read(from[0], &key, sizeof(key)) != sizeof(key))
			break;
		assert_int_equal(rwk_keys_check(t, PD, mine, BASE, 1, RWK_REACH_READ), -EACCES);
		assert_int_equal(rwk_keys_check(t, PD + 1, key, i + 499, 1, RWK_REACH_WRITE), 0);
		assert_int_equal(rwk_keys_check(t, PD + 1, key, i + 499, 2, RWK_REACH_WRITE), -EACCES);
		assert_int_equal(rwk_keys_remove(t, key), 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(to[1]);
	close(from[0]);
	munmap(t, size);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denied),
		cmocka_unit_test(top),
		cmocka_unit_test(pieces),
		cmocka_unit_test(full),
		cmocka_unit_test(fresh),
		cmocka_unit_test(drawn),
		cmocka_unit_test(sizes),
		cmocka_unit_test(moved),
		cmocka_unit_test(removed_together),
		cmocka_unit_test(listed),
		cmocka_unit_test(two_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
