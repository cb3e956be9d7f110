/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations by one thread: each type and operation against a model, written as the man page fi_atomic has it,
 * over all triples of edge values and over random ones. Integers of all widths are 128-bit ones in the model,
 * truncated; floating-point numbers are long doubles, rounded where that is not the type's own sum or product. Several
 * threads: test_atomic_threads.c.
 */
#include "rwk_test.h"

#include "engine/atomic.h"

#include <complex.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <sys/mman.h>

#define WIDEST 16

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* The valid operations of each type, in the order of the enum. */
static const struct {
	size_t size;
	const char *valid;
} expected[RWK_ATOMIC_TYPES] = {
	[RWK_INT8] = {1, "1111111111111111111"},
	[RWK_UINT8] = {1, "1111111111111111111"},
	[RWK_INT16] = {2, "1111111111111111111"},
	[RWK_UINT16] = {2, "1111111111111111111"},
	[RWK_INT32] = {4, "1111111111111111111"},
	[RWK_UINT32] = {4, "1111111111111111111"},
	[RWK_INT64] = {8, "1111111111111111111"},
	[RWK_UINT64] = {8, "1111111111111111111"},
	/*                 <>+*|&|&^^rw=!<<>>m */
	[RWK_FLOAT] = {4, "1111110010111111110"},
	[RWK_DOUBLE] = {8, "1111110010111111110"},
	[RWK_FLOAT_COMPLEX] = {8, "0011110010111100000"},
	[RWK_DOUBLE_COMPLEX] = {16, "0011110010111100000"},
	[RWK_LONG_DOUBLE] = {16, "1111110010111111110"},
	[RWK_LONG_DOUBLE_COMPLEX] = {0, "0000000000000000000"},
	[RWK_INT128] = {16, "1111111111111111111"},
	[RWK_UINT128] = {16, "1111111111111111111"},
};

/* What there is, and what numbers from a peer there is not. */
static void what_is_valid(void **state)
{
	(void)state;
	for (unsigned type = 0; type < RWK_ATOMIC_TYPES; type++) {
		assert_int_equal(rwk_atomic_size(type), expected[type].size);
		for (unsigned op = 0; op < RWK_ATOMIC_OPS; op++)
			assert_int_equal(rwk_atomic_valid(op, type), expected[type].valid[op] == '1');
		assert_false(rwk_atomic_valid(RWK_ATOMIC_OPS, type));
		assert_false(rwk_atomic_valid(UINT32_MAX, type));
	}
	assert_false(rwk_atomic_valid(RWK_SUM, RWK_ATOMIC_TYPES));
	assert_false(rwk_atomic_valid(RWK_SUM, UINT32_MAX));
	for (unsigned op = 0; op < RWK_ATOMIC_OPS; op++)
		assert_int_equal(rwk_atomic_compares(op), op >= RWK_CSWAP && op <= RWK_MSWAP);
}

static bool is_integer(unsigned type)
{
	return type <= RWK_UINT64 || type >= RWK_INT128;
}

static bool is_complex(unsigned type)
{
	return type == RWK_FLOAT_COMPLEX || type == RWK_DOUBLE_COMPLEX;
}

static bool is_signed(unsigned type)
{
	return is_integer(type) && type % 2 == 0;
}

/* A value of any type: an integer, with its sign in all bits above, or a real or complex number. */
struct number {
	uint128 i;
	long double re, im;
};

static struct number decode(unsigned type, const void *bytes)
{
	struct number n = {0};
	float f[2] = {0};
	double d[2] = {0};

	switch (type) {
	case RWK_FLOAT:
	case RWK_FLOAT_COMPLEX:
		memcpy(f, bytes, expected[type].size);
		n.re = f[0];
		n.im = f[1];
		return n;
	case RWK_DOUBLE:
	case RWK_DOUBLE_COMPLEX:
		memcpy(d, bytes, expected[type].size);
		n.re = d[0];
		n.im = d[1];
		return n;
	case RWK_LONG_DOUBLE:
		memcpy(&n.re, bytes, sizeof(n.re));
		return n;
	default:
		memcpy(&n.i, bytes, expected[type].size);
		if (is_signed(type)) {
			unsigned above = 128 - 8 * expected[type].size;

			n.i = (uint128)((int128)(n.i << above) >> above);
		}
		return n;
	}
}

static void encode(unsigned type, struct number n, void *bytes)
{
	float f[2] = {(float)n.re, (float)n.im};
	double d[2] = {(double)n.re, (double)n.im};

	switch (type) {
	case RWK_FLOAT:
	case RWK_FLOAT_COMPLEX:
		memcpy(bytes, f, expected[type].size);
		return;
	case RWK_DOUBLE:
	case RWK_DOUBLE_COMPLEX:
		memcpy(bytes, d, expected[type].size);
		return;
	case RWK_LONG_DOUBLE:
		memset(bytes, 0, WIDEST);
		memcpy(bytes, &n.re, LDBL_MANT_DIG == 64 ? 10 : 16);
		return;
	default:
		memcpy(bytes, &n.i, expected[type].size);
	}
}

static bool below(unsigned type, struct number a, struct number b)
{
	if (!is_integer(type))
		return a.re < b.re;
	return is_signed(type) ? (int128)a.i < (int128)b.i : a.i < b.i;
}

static bool equal(unsigned type, struct number a, struct number b)
{
	return is_integer(type) ? a.i == b.i : a.re == b.re && a.im == b.im;
}

static struct number plus(unsigned type, struct number a, struct number b)
{
	if (type == RWK_DOUBLE || type == RWK_DOUBLE_COMPLEX)
		return (struct number){.re = (double)a.re + (double)b.re, .im = (double)a.im + (double)b.im};
	return (struct number){a.i + b.i, a.re + b.re, a.im + b.im};
}

/* Complex factors are such that nothing is rounded. */
static struct number times(unsigned type, struct number a, struct number b)
{
	if (is_complex(type))
		return (struct number){.re = a.re * b.re - a.im * b.im, .im = a.re * b.im + a.im * b.re};
	if (type == RWK_DOUBLE)
		return (struct number){.re = (double)a.re * (double)b.re};
	return (struct number){.i = a.i * b.i, .re = a.re * b.re};
}

/* What becomes of the memory. */
enum outcome { STAYS, OPERAND, COMPUTED };

static enum outcome model(unsigned op, unsigned type, struct number mem, struct number buf, struct number compare,
	struct number *computed)
{
	const struct number zero = {0};
	bool m = !equal(type, mem, zero), b = !equal(type, buf, zero);
	bool eq = equal(type, compare, mem), lt = below(type, compare, mem), gt = below(type, mem, compare);

	*computed = zero;
	switch (op) {
	case RWK_MIN:
		return below(type, buf, mem) ? OPERAND : STAYS;
	case RWK_MAX:
		return below(type, mem, buf) ? OPERAND : STAYS;
	case RWK_SUM:
		*computed = plus(type, mem, buf);
		return COMPUTED;
	case RWK_PROD:
		*computed = times(type, mem, buf);
		return COMPUTED;
	case RWK_LOR:
		computed->i = m || b;
		break;
	case RWK_LAND:
		computed->i = m && b;
		break;
	case RWK_LXOR:
		computed->i = (m && !b) || (!m && b);
		break;
	case RWK_BOR:
		computed->i = mem.i | buf.i;
		break;
	case RWK_BAND:
		computed->i = mem.i & buf.i;
		break;
	case RWK_BXOR:
		computed->i = mem.i ^ buf.i;
		break;
	case RWK_ATOMIC_READ:
		return STAYS;
	case RWK_ATOMIC_WRITE:
		return OPERAND;
	case RWK_CSWAP:
		return eq ? OPERAND : STAYS;
	case RWK_CSWAP_NE:
		return eq ? STAYS : OPERAND;
	case RWK_CSWAP_LE:
		return lt || eq ? OPERAND : STAYS;
	case RWK_CSWAP_LT:
		return lt ? OPERAND : STAYS;
	case RWK_CSWAP_GE:
		return gt || eq ? OPERAND : STAYS;
	case RWK_CSWAP_GT:
		return gt ? OPERAND : STAYS;
	case RWK_MSWAP:
		computed->i = (buf.i & compare.i) | (mem.i & ~compare.i);
		break;
	}
	computed->re = (long double)computed->i;
	return COMPUTED;
}

static bool same_real(long double a, long double b)
{
	return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* Equal to the bit, except that computed NaNs may be any. */
static bool same(unsigned type, const void *bytes, struct number n)
{
	struct number found = decode(type, bytes);
	unsigned char to_the_bit[WIDEST];

	encode(type, n, to_the_bit);
	n = decode(type, to_the_bit);
	if (is_integer(type))
		return !memcmp(bytes, to_the_bit, expected[type].size);
	return same_real(found.re, n.re) && same_real(found.im, n.im);
}

static void complain(unsigned op, unsigned type, const unsigned char *mem, const unsigned char *buf,
	const unsigned char *compare, const unsigned char *found)
{
	const unsigned char *bytes[] = {mem, buf, compare, found};
	static const char *const names[] = {"memory", "operand", "comparand", "became"};

	for (unsigned i = 0; i < 4; i++) {
		fprintf(stderr, "%s 0x", names[i]);
		for (size_t k = expected[type].size; k-- > 0;)
			fprintf(stderr, "%02x", bytes[i][k]);
		fprintf(stderr, "%s", i < 3 ? ", " : "\n");
	}
	fail_msg("operation %u on type %u is wrong", op, type);
}

/* Whether the memory became what it should have: `before` and the rest as one element's bytes. */
static void check(unsigned op, unsigned type, const unsigned char *before, const unsigned char *buf,
	const unsigned char *compare, const unsigned char *after)
{
	size_t size = expected[type].size;
	struct number computed;
	bool right = false;

	switch (model(op, type, decode(type, before), decode(type, buf), decode(type, compare), &computed)) {
	case STAYS:
		right = !memcmp(after, before, size);
		break;
	case OPERAND:
		right = !memcmp(after, buf, size);
		break;
	case COMPUTED:
		right = same(type, after, computed);
		break;
	}
	if (!right)
		complain(op, type, before, buf, compare, after);
}

/* Edge values, as bytes. Returns how many; with `exact` those alone whose products and sums are exact. */
#define MOST_EDGES 24

static size_t integer_edges(unsigned type, unsigned char (*edge)[WIDEST])
{
	uint128 top = (uint128)1 << (8 * expected[type].size - 1);
	const uint128 all[] = {
		0, 1, 2, 3, 5, 100, top - 1, top, top + 1, top + top / 2, (uint128)-1, (uint128)-2, (uint128)-100};
	size_t n = 0;

	for (; n < sizeof(all) / sizeof(all[0]); n++)
		encode(type, (struct number){.i = all[n]}, edge[n]);
	return n;
}

static size_t real_edges(unsigned type, unsigned char (*edge)[WIDEST], bool exact)
{
	const long double least[] = {
		[RWK_FLOAT] = FLT_TRUE_MIN, [RWK_DOUBLE] = DBL_TRUE_MIN, [RWK_LONG_DOUBLE] = LDBL_TRUE_MIN};
	const long double most[] = {[RWK_FLOAT] = FLT_MAX, [RWK_DOUBLE] = DBL_MAX, [RWK_LONG_DOUBLE] = LDBL_MAX};
	unsigned part = type == RWK_FLOAT_COMPLEX ? RWK_FLOAT : type == RWK_DOUBLE_COMPLEX ? RWK_DOUBLE : type;
	const long double all[] = {0, -0.0L, 1, -1, 2, 0.5L, -7, 3, INFINITY, -INFINITY, NAN, least[part], -most[part],
		most[part], 1 / 3.0L};
	size_t n = 0;

	for (; n < (exact ? 8 : sizeof(all) / sizeof(all[0])); n++)
		encode(type, (struct number){.re = all[n], .im = all[(n * 5 + 1) % 8]}, edge[n]);
	if (is_complex(type)) { /* of one real part */
		encode(type, (struct number){.re = 1, .im = 3}, edge[n++]);
		encode(type, (struct number){.re = 0, .im = 1}, edge[n++]);
		encode(type, (struct number){0}, edge[n++]);
	}
	if (!exact && part == RWK_FLOAT) /* a signalling NaN, which arithmetic would change */
		memcpy(edge[n++], &(uint64_t){0x7f800123}, 8);
	else if (!exact && part == RWK_DOUBLE)
		memcpy(edge[n++], &(uint64_t[2]){0x7ff0000000000123, 0}, 16);
	return n;
}

static size_t edges(unsigned op, unsigned type, unsigned char (*edge)[WIDEST])
{
	memset(edge, 0, MOST_EDGES * WIDEST);
	if (is_integer(type))
		return integer_edges(type, edge);
	return real_edges(type, edge, is_complex(type) && op == RWK_PROD);
}

static void one_edge(
	unsigned op, unsigned type, const unsigned char *mem, const unsigned char *buf, const unsigned char *compare)
{
	_Alignas(WIDEST) unsigned char word[WIDEST];
	unsigned char result[WIDEST];

	memcpy(word, mem, WIDEST);
	memset(result, 0xa5, WIDEST);
	rwk_atomic_do(op, type, word, buf, compare, result, 1);
	check(op, type, mem, buf, compare, word);
	if (memcmp(result, mem, expected[type].size))
		complain(op, type, mem, buf, compare, result);
}

/* All triples of edge values. */
static void edge_values(void **state)
{
	unsigned char edge[MOST_EDGES][WIDEST];

	(void)state;
	for (unsigned type = 0; type < RWK_ATOMIC_TYPES; type++) {
		for (unsigned op = 0; op < RWK_ATOMIC_OPS; op++) {
			size_t n = expected[type].valid[op] == '1' ? edges(op, type, edge) : 0;
			size_t comparands = rwk_atomic_compares(op) ? n : 1;

			for (size_t i = 0; i < n * n * comparands; i++)
				one_edge(op, type, edge[i % n], edge[i / n % n], edge[i / n / n]);
		}
	}
}

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* A random value, often an edge and often near 0. */
static void draw_value(uint64_t *seed, unsigned op, unsigned type, void *bytes)
{
	unsigned char edge[MOST_EDGES][WIDEST];
	size_t n = edges(op, type, edge);
	struct number v = {0};

	if (draw(seed) % 3 == 0) {
		memcpy(bytes, edge[draw(seed) % n], expected[type].size);
		return;
	}
	v.i = draw(seed) % 2 ? (uint128)draw(seed) << 97 | (uint128)draw(seed) << 48 | draw(seed) : draw(seed) % 4;
	v.re = (long double)draw(seed) / (1 << 20) - 1000;
	if (op == RWK_PROD && is_complex(type))
		v.re = draw(seed) % 16;
	v.im = (long double)(draw(seed) % 16) - 8;
	encode(type, v, bytes);
}

#define ELEMENTS 9
#define BEYOND   0xc3

/* One call on several elements, whose arrays lie anywhere; nothing beyond them is touched. */
static void one_array(uint64_t *seed, unsigned op, unsigned type)
{
	size_t size = expected[type].size, count = draw(seed) % (ELEMENTS + 1), bytes = count * size;
	_Alignas(WIDEST) unsigned char memory[(ELEMENTS + 2) * WIDEST];
	unsigned char before[sizeof(memory)], buf[sizeof(memory)], compare[sizeof(memory)], result[sizeof(memory)];
	unsigned char *mem = memory + size, *b = buf + draw(seed) % 9, *c = compare + draw(seed) % 9,
		      *r = result + 1 + draw(seed) % 9;
	bool wanted = draw(seed) % 2;

	memset(memory, BEYOND, sizeof(memory));
	memset(result, BEYOND, sizeof(result));
	for (size_t i = 0; i < count; i++) {
		draw_value(seed, op, type, mem + i * size);
		draw_value(seed, op, type, b + i * size);
		draw_value(seed, op, type, c + i * size);
	}
	memcpy(before, memory, sizeof(before));
	rwk_atomic_do(op, type, mem, op == RWK_ATOMIC_READ ? NULL : b, rwk_atomic_compares(op) ? c : NULL,
		wanted ? r : NULL, count);
	for (size_t i = 0; i < bytes; i += size) {
		unsigned char old[WIDEST] = {0}, v[WIDEST] = {0}, cmp[WIDEST] = {0}, now[WIDEST] = {0};

		memcpy(old, before + size + i, size);
		memcpy(v, b + i, size);
		memcpy(cmp, c + i, size);
		memcpy(now, mem + i, size);
		check(op, type, old, v, cmp, now);
	}
	if (wanted)
		assert_memory_equal(r, before + size, bytes);
	assert_int_equal(r[-1], BEYOND);
	assert_int_equal(r[wanted ? bytes : 0], BEYOND);
	assert_memory_equal(memory, before, size);
	assert_memory_equal(mem + bytes, before + size + bytes, sizeof(memory) - size - bytes);
}

/* Several elements, with and without result, from and to unaligned places. */
static void arrays(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned type = 0; type < RWK_ATOMIC_TYPES; type++) {
			for (unsigned op = 0; op < RWK_ATOMIC_OPS; op++) {
				if (expected[type].valid[op] == '1')
					one_array(&seed, op, type);
			}
		}
	}
}

/* The result may go where the operand came from. */
static void result_over_operand(void **state)
{
	uint64_t memory[3] = {1, 2, 3}, both[3] = {10, 20, 30};

	(void)state;
	rwk_atomic_do(RWK_SUM, RWK_UINT64, memory, both, NULL, both, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(memory[i], 11 * (i + 1));
		assert_int_equal(both[i], i + 1);
	}
}

/* What stands in the bytes of a long double that are no part of its value changes nothing, and does not spread. */
static void bytes_beside_the_value(void **state)
{
	const size_t value = LDBL_MANT_DIG == 64 ? 10 : 16;
	_Alignas(WIDEST) unsigned char memory[WIDEST], v[WIDEST], compare[WIDEST], result[WIDEST], clean[WIDEST] = {0};

	(void)state;
	for (unsigned op = 0; op < RWK_ATOMIC_OPS; op++) {
		if (!rwk_atomic_valid(op, RWK_LONG_DOUBLE))
			continue;
		encode(RWK_LONG_DOUBLE, (struct number){.re = 3}, memory);
		encode(RWK_LONG_DOUBLE, (struct number){.re = op == RWK_MIN ? 2 : 5}, v);
		encode(RWK_LONG_DOUBLE,
			(struct number){.re = op == RWK_CSWAP_NE || op == RWK_CSWAP_LT ? 2
					      : op == RWK_CSWAP_GT                     ? 4
										       : 3},
			compare);
		memcpy(clean, memory, value);
		memset(memory + value, 0x11, WIDEST - value);
		memset(v + value, 0x22, WIDEST - value);
		memset(compare + value, 0x33, WIDEST - value);
		rwk_atomic_do(op, RWK_LONG_DOUBLE, memory, v, compare, result, 1);
		assert_memory_equal(result, clean, WIDEST);
		if (op == RWK_ATOMIC_READ)
			continue;
		assert_memory_not_equal(memory, clean, value);
		for (size_t i = value; i < WIDEST; i++)
			assert_int_equal(memory[i], 0);
	}
}

/* Memory that may only be read can be read, but by what is said to store; nothing else that reads is. */
static void read_only_memory(void **state)
{
	unsigned char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), result[WIDEST];

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	for (unsigned type = 0; type < RWK_ATOMIC_TYPES; type++) {
		if (rwk_atomic_stores(RWK_ATOMIC_READ, type)) {
			assert_int_equal(expected[type].size, 16);
			continue;
		}
		assert_true(rwk_atomic_stores(RWK_SUM, type));
		memset(result, 1, sizeof(result));
		if (!rwk_atomic_valid(RWK_ATOMIC_READ, type))
			continue;
		rwk_atomic_do(RWK_ATOMIC_READ, type, page, NULL, NULL, result, 1);
		for (size_t i = 0; i < expected[type].size; i++)
			assert_int_equal(result[i], 0);
	}
	munmap(page, 4096);
}

/* A NaN from a peer raises no exception where values are only compared: this process may have asked for a signal. */
static void quiet_comparisons(void **state)
{
	static const unsigned types[] = {RWK_FLOAT, RWK_DOUBLE, RWK_LONG_DOUBLE},
			      ops[] = {RWK_MIN, RWK_MAX, RWK_CSWAP, RWK_CSWAP_NE, RWK_CSWAP_LE, RWK_CSWAP_LT,
				      RWK_CSWAP_GE, RWK_CSWAP_GT, RWK_LOR};
	_Alignas(WIDEST) unsigned char memory[WIDEST], nan_[WIDEST];

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(ops) / sizeof(ops[0]); i++) {
		encode(types[i % 3], (struct number){.re = 1}, memory);
		encode(types[i % 3], (struct number){.re = NAN}, nan_);
		feclearexcept(FE_ALL_EXCEPT);
		rwk_atomic_do(ops[i / 3], types[i % 3], memory, nan_, nan_, NULL, 1);
		assert_int_equal(fetestexcept(FE_INVALID), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_valid),
		cmocka_unit_test(edge_values),
		cmocka_unit_test(arrays),
		cmocka_unit_test(result_over_operand),
		cmocka_unit_test(bytes_beside_the_value),
		cmocka_unit_test(read_only_memory),
		cmocka_unit_test(quiet_comparisons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
