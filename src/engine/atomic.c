/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the bottom up: what the CPU does to a word of each width; what each operation makes of two values of a type; and
 * an element as the one or the other: by the CPU's instruction where there is one, else by computing the new value and
 * storing it by compare-and-swap, until nobody has come in between.
 *
 * The values of floating-point types are compared, their bits are swapped. So -0.0 equals 0.0, a NaN equals nothing,
 * and all bits of what is written or exchanged arrive, a NaN's payload too.
 */
#include "engine/atomic.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first bytes of a union element are its low ones");

#define always_inline inline __attribute__((always_inline))

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* An element, in the member of its type. An integer's word is the low bytes of u128, of which the others are ignored:
 * so sums, products and bits are computed alike for integers of any width. */
union element {
	int8_t i8;
	uint8_t u8;
	int16_t i16;
	uint16_t u16;
	int32_t i32;
	uint32_t u32;
	int64_t i64;
	uint64_t u64;
	int128 i128;
	uint128 u128;
	float f;
	double d;
	long double ld;
	float complex fc;
	double complex dc;
	uint64_t half[2];
};

/*
 * Words of 16 bytes. x86-64 has two instructions for them: cmpxchg16b, and the 16-byte load, which its makers promise
 * to be atomic on each CPU that has AVX. In assembler, because compilers leave these to libatomic, which may take a
 * lock, and no lock is shared with other processes.
 */
#if defined(__x86_64__)

static bool has_16_bytes(void)
{
	static int known; /* 1: no, 2: yes; asking takes a microsecond, where there is a hypervisor more */
	int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
	unsigned a, b, c, d;

	if (has)
		return has == 2;
	has = __get_cpuid(1, &a, &b, &c, &d) && c & bit_CMPXCHG16B && c & bit_AVX ? 2 : 1;
	__atomic_store_n(&known, has, __ATOMIC_RELAXED);
	return has == 2;
}

static always_inline union element load_16(void *at)
{
	union element e;
	__attribute__((vector_size(16))) long long v;

	__asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*(uint128 *)at) : "memory");
	memcpy(&e, &v, 16);
	return e;
}

static always_inline bool swap_16(void *at, union element *expected, union element desired)
{
	bool swapped;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(swapped), "+m"(*(uint128 *)at), "+a"(expected->half[0]), "+d"(expected->half[1])
			 : "b"(desired.half[0]), "c"(desired.half[1])
			 : "memory");
	return swapped;
}

#elif defined(__aarch64__)

static bool has_16_bytes(void)
{
	return true;
}

/*
 * Sets *found; stores `desired` if that is what was expected, else what was found: only a pair that has been stored has
 * been loaded in one piece. One piece of assembler: an access to memory between the two instructions may undo the
 * first.
 */
static always_inline void exclusive_16(
	void *at, union element *found, const union element *expected, union element desired)
{
	uint64_t low, high;
	unsigned failed;

	__asm__ volatile("1:	ldaxp	%0, %1, %5\n"
			 "	cmp	%0, %6\n"
			 "	ccmp	%1, %7, #0, eq\n"
			 "	csel	%2, %8, %0, eq\n"
			 "	csel	%3, %9, %1, eq\n"
			 "	stlxp	%w4, %2, %3, %5\n"
			 "	cbnz	%w4, 1b"
			 : "=&r"(found->half[0]), "=&r"(found->half[1]), "=&r"(low), "=&r"(high), "=&r"(failed),
			 "+Q"(*(uint128 *)at)
			 : "r"(expected->half[0]), "r"(expected->half[1]), "r"(desired.half[0]), "r"(desired.half[1])
			 : "cc", "memory");
}

static always_inline union element load_16(void *at)
{
	union element e, any = {.u128 = 0};

	exclusive_16(at, &e, &any, any);
	return e;
}

static always_inline bool swap_16(void *at, union element *expected, union element desired)
{
	union element wanted = *expected;

	exclusive_16(at, expected, &wanted, desired);
	return expected->u128 == wanted.u128;
}

#else

static bool has_16_bytes(void)
{
	return false;
}

static always_inline union element load_16(void *at)
{
	return *(union element *)at;
}

static always_inline bool swap_16(void *at, union element *expected, union element desired)
{
	*expected = *(union element *)at;
	(void)desired;
	return false;
}

#endif

/*
 * Words of each width. Widths and types are constants wherever these are used, and of such a switch one case remains.
 */

static always_inline union element load(size_t width, void *at)
{
	union element e = {.u128 = 0};

	switch (width) {
	case 1:
		e.u8 = __atomic_load_n((uint8_t *)at, __ATOMIC_SEQ_CST);
		return e;
	case 2:
		e.u16 = __atomic_load_n((uint16_t *)at, __ATOMIC_SEQ_CST);
		return e;
	case 4:
		e.u32 = __atomic_load_n((uint32_t *)at, __ATOMIC_SEQ_CST);
		return e;
	case 8:
		e.u64 = __atomic_load_n((uint64_t *)at, __ATOMIC_SEQ_CST);
		return e;
	default:
		return load_16(at);
	}
}

/* Stores `desired` where `expected` stands and returns true; else sets *expected to what stands there. */
static always_inline bool swap(size_t width, void *at, union element *expected, union element desired)
{
	const int order = __ATOMIC_SEQ_CST;

	switch (width) {
	case 1:
		return __atomic_compare_exchange_n((uint8_t *)at, &expected->u8, desired.u8, false, order, order);
	case 2:
		return __atomic_compare_exchange_n((uint16_t *)at, &expected->u16, desired.u16, false, order, order);
	case 4:
		return __atomic_compare_exchange_n((uint32_t *)at, &expected->u32, desired.u32, false, order, order);
	case 8:
		return __atomic_compare_exchange_n((uint64_t *)at, &expected->u64, desired.u64, false, order, order);
	default:
		return swap_16(at, expected, desired);
	}
}

/*
 * What the CPU has an instruction for, on a word of each width: the old value. The operations are those of instructed.
 */
#define INSTRUCT(word)                                                                                                 \
	switch (op) {                                                                                                  \
	case RWK_SUM:                                                                                                  \
		v.word = __atomic_fetch_add((__typeof__(v.word) *)at, v.word, __ATOMIC_SEQ_CST);                       \
		return v;                                                                                              \
	case RWK_BOR:                                                                                                  \
		v.word = __atomic_fetch_or((__typeof__(v.word) *)at, v.word, __ATOMIC_SEQ_CST);                        \
		return v;                                                                                              \
	case RWK_BAND:                                                                                                 \
		v.word = __atomic_fetch_and((__typeof__(v.word) *)at, v.word, __ATOMIC_SEQ_CST);                       \
		return v;                                                                                              \
	case RWK_BXOR:                                                                                                 \
		v.word = __atomic_fetch_xor((__typeof__(v.word) *)at, v.word, __ATOMIC_SEQ_CST);                       \
		return v;                                                                                              \
	default:                                                                                                       \
		v.word = __atomic_exchange_n((__typeof__(v.word) *)at, v.word, __ATOMIC_SEQ_CST);                      \
		return v;                                                                                              \
	}

static always_inline union element instruct(enum rwk_atomic_op op, size_t width, void *at, union element v)
{
	switch (width) {
	case 1:
		INSTRUCT(u8)
	case 2:
		INSTRUCT(u16)
	case 4:
		INSTRUCT(u32)
	default:
		INSTRUCT(u64)
	}
}

#undef INSTRUCT

/* Types. */

static always_inline bool is_integer(enum rwk_atomic_type type)
{
	return type <= RWK_UINT64 || type >= RWK_INT128;
}

static always_inline bool is_complex(enum rwk_atomic_type type)
{
	return type == RWK_FLOAT_COMPLEX || type == RWK_DOUBLE_COMPLEX || type == RWK_LONG_DOUBLE_COMPLEX;
}

/* Bytes of an element, wherever the CPU has words of so many. */
static always_inline size_t width_of(enum rwk_atomic_type type)
{
	switch (type) {
	case RWK_INT8:
	case RWK_UINT8:
		return 1;
	case RWK_INT16:
	case RWK_UINT16:
		return 2;
	case RWK_INT32:
	case RWK_UINT32:
	case RWK_FLOAT:
		return 4;
	case RWK_INT64:
	case RWK_UINT64:
	case RWK_DOUBLE:
	case RWK_FLOAT_COMPLEX:
		return 8;
	default:
		return 16;
	}
}

/* Without the bytes of a long double that are not its value: nothing may depend on what stands in them. */
static always_inline union element clean(enum rwk_atomic_type type, union element e)
{
	if (type == RWK_LONG_DOUBLE && LDBL_MANT_DIG == 64)
		e.u128 &= ((uint128)1 << 80) - 1;
	return e;
}

/* How two values stand to each other, as bits, so that an operation can name those that it acts upon. */
enum { BELOW = 1, EQUAL = 2, ABOVE = 4, UNORDERED = 8 };

static always_inline unsigned order_signed(int64_t a, int64_t b)
{
	return a < b ? BELOW : a == b ? EQUAL : ABOVE;
}

static always_inline unsigned order_unsigned(uint64_t a, uint64_t b)
{
	return a < b ? BELOW : a == b ? EQUAL : ABOVE;
}

/* isless and isgreater raise no floating-point exception over a quiet NaN, which a peer may have sent. */
static always_inline unsigned order_double(double a, double b)
{
	return isless(a, b) ? BELOW : isgreater(a, b) ? ABOVE : a == b ? EQUAL : UNORDERED;
}

static always_inline unsigned order_long_double(long double a, long double b)
{
	return isless(a, b) ? BELOW : isgreater(a, b) ? ABOVE : a == b ? EQUAL : UNORDERED;
}

static always_inline unsigned order(enum rwk_atomic_type type, union element a, union element b)
{
	switch (type) {
	case RWK_INT8:
		return order_signed(a.i8, b.i8);
	case RWK_UINT8:
		return order_unsigned(a.u8, b.u8);
	case RWK_INT16:
		return order_signed(a.i16, b.i16);
	case RWK_UINT16:
		return order_unsigned(a.u16, b.u16);
	case RWK_INT32:
		return order_signed(a.i32, b.i32);
	case RWK_UINT32:
		return order_unsigned(a.u32, b.u32);
	case RWK_INT64:
		return order_signed(a.i64, b.i64);
	case RWK_UINT64:
		return order_unsigned(a.u64, b.u64);
	case RWK_INT128:
		return a.i128 < b.i128 ? BELOW : a.i128 == b.i128 ? EQUAL : ABOVE;
	case RWK_UINT128:
		return a.u128 < b.u128 ? BELOW : a.u128 == b.u128 ? EQUAL : ABOVE;
	case RWK_FLOAT:
		return order_double(a.f, b.f);
	case RWK_DOUBLE:
		return order_double(a.d, b.d);
	case RWK_LONG_DOUBLE:
		return order_long_double(a.ld, b.ld);
	case RWK_FLOAT_COMPLEX:
		return a.fc == b.fc ? EQUAL : UNORDERED;
	case RWK_DOUBLE_COMPLEX:
		return a.dc == b.dc ? EQUAL : UNORDERED;
	default:
		return UNORDERED;
	}
}

/* What C takes for true: all that does not equal 0, a NaN too. */
static always_inline bool truth(enum rwk_atomic_type type, union element e)
{
	return order(type, e, (union element){.u128 = 0}) != EQUAL;
}

/* 1 or 0. */
static always_inline union element of_truth(enum rwk_atomic_type type, bool is_true)
{
	union element e = {.u128 = 0};

	switch (type) {
	case RWK_FLOAT:
		e.f = is_true;
		return e;
	case RWK_DOUBLE:
		e.d = is_true;
		return e;
	case RWK_LONG_DOUBLE:
		e.ld = is_true;
		return e;
	case RWK_FLOAT_COMPLEX:
		e.fc = is_true;
		return e;
	case RWK_DOUBLE_COMPLEX:
		e.dc = is_true;
		return e;
	default:
		e.u128 = is_true;
		return e;
	}
}

static always_inline union element sum(enum rwk_atomic_type type, union element a, union element b)
{
	switch (type) {
	case RWK_FLOAT:
		a.f += b.f;
		return a;
	case RWK_DOUBLE:
		a.d += b.d;
		return a;
	case RWK_LONG_DOUBLE:
		a.ld += b.ld;
		return a;
	case RWK_FLOAT_COMPLEX:
		a.fc += b.fc;
		return a;
	case RWK_DOUBLE_COMPLEX:
		a.dc += b.dc;
		return a;
	default:
		a.u128 += b.u128;
		return a;
	}
}

static always_inline union element product(enum rwk_atomic_type type, union element a, union element b)
{
	switch (type) {
	case RWK_FLOAT:
		a.f *= b.f;
		return a;
	case RWK_DOUBLE:
		a.d *= b.d;
		return a;
	case RWK_LONG_DOUBLE:
		a.ld *= b.ld;
		return a;
	case RWK_FLOAT_COMPLEX:
		a.fc *= b.fc;
		return a;
	case RWK_DOUBLE_COMPLEX:
		a.dc *= b.dc;
		return a;
	default:
		a.u128 *= b.u128;
		return a;
	}
}

/* Sets *fresh to what the operation makes of `old`. False: it leaves it as it is. */
static always_inline bool renew(enum rwk_atomic_op op, enum rwk_atomic_type type, union element old, union element v,
	union element compare, union element *fresh)
{
	*fresh = v;
	switch (op) {
	case RWK_MIN:
		return order(type, v, old) == BELOW;
	case RWK_MAX:
		return order(type, v, old) == ABOVE;
	case RWK_SUM:
		*fresh = sum(type, old, v);
		return true;
	case RWK_PROD:
		*fresh = product(type, old, v);
		return true;
	case RWK_LOR:
		*fresh = of_truth(type, truth(type, old) || truth(type, v));
		return true;
	case RWK_LAND:
		*fresh = of_truth(type, truth(type, old) && truth(type, v));
		return true;
	case RWK_LXOR:
		*fresh = of_truth(type, truth(type, old) != truth(type, v));
		return true;
	case RWK_BOR:
		fresh->u128 = old.u128 | v.u128;
		return true;
	case RWK_BAND:
		fresh->u128 = old.u128 & v.u128;
		return true;
	case RWK_BXOR:
		fresh->u128 = old.u128 ^ v.u128;
		return true;
	case RWK_ATOMIC_WRITE:
		return true;
	case RWK_CSWAP:
		return order(type, compare, old) == EQUAL;
	case RWK_CSWAP_NE:
		return order(type, compare, old) != EQUAL;
	case RWK_CSWAP_LE:
		return order(type, compare, old) & (BELOW | EQUAL);
	case RWK_CSWAP_LT:
		return order(type, compare, old) == BELOW;
	case RWK_CSWAP_GE:
		return order(type, compare, old) & (ABOVE | EQUAL);
	case RWK_CSWAP_GT:
		return order(type, compare, old) == ABOVE;
	case RWK_MSWAP:
		fresh->u128 = (v.u128 & compare.u128) | (old.u128 & ~compare.u128);
		return true;
	default: /* RWK_ATOMIC_READ */
		return false;
	}
}

/* Whether the CPU has an instruction that does it. */
static always_inline bool instructed(enum rwk_atomic_op op, enum rwk_atomic_type type)
{
	if (width_of(type) > 8)
		return false;
	if (op == RWK_ATOMIC_WRITE)
		return true;
	return is_integer(type) && (op == RWK_SUM || op == RWK_BOR || op == RWK_BAND || op == RWK_BXOR);
}

/* One element: the old value. */
static always_inline union element step(
	enum rwk_atomic_op op, enum rwk_atomic_type type, void *at, union element v, union element compare)
{
	size_t width = width_of(type);
	union element old, fresh;

	if (instructed(op, type))
		return instruct(op, width, at, v);
	if (op == RWK_CSWAP && is_integer(type)) {
		/* Equal values are equal bits: no look beforehand, which would fetch the line twice. */
		swap(width, at, &compare, v);
		return compare;
	}
	old = load(width, at);
	while (renew(op, type, old, v, compare, &fresh)) {
		if (swap(width, at, &old, clean(type, fresh)))
			break;
	}
	return clean(type, old);
}

static always_inline void each(enum rwk_atomic_op op, enum rwk_atomic_type type, void *memory, const void *operand,
	const void *compare, void *result, size_t count)
{
	size_t width = width_of(type);
	union element v = {.u128 = 0}, c = {.u128 = 0}, old;

	for (size_t at = 0; at < count * width; at += width) {
		if (op != RWK_ATOMIC_READ)
			memcpy(&v, (const char *)operand + at, width);
		if (rwk_atomic_compares(op))
			memcpy(&c, (const char *)compare + at, width);
		old = step(op, type, (char *)memory + at, v, c);
		if (result)
			memcpy((char *)result + at, &old, width);
	}
}

void rwk_atomic_do(enum rwk_atomic_op op, enum rwk_atomic_type type, void *memory, const void *operand,
	const void *compare, void *result, size_t count)
{
	/* Each type has its own code; what remains of the operation's dispatch goes the same way for all elements. */
	switch (type) {
	case RWK_INT8:
		each(op, RWK_INT8, memory, operand, compare, result, count);
		return;
	case RWK_UINT8:
		each(op, RWK_UINT8, memory, operand, compare, result, count);
		return;
	case RWK_INT16:
		each(op, RWK_INT16, memory, operand, compare, result, count);
		return;
	case RWK_UINT16:
		each(op, RWK_UINT16, memory, operand, compare, result, count);
		return;
	case RWK_INT32:
		each(op, RWK_INT32, memory, operand, compare, result, count);
		return;
	case RWK_UINT32:
		each(op, RWK_UINT32, memory, operand, compare, result, count);
		return;
	case RWK_INT64:
		each(op, RWK_INT64, memory, operand, compare, result, count);
		return;
	case RWK_UINT64:
		each(op, RWK_UINT64, memory, operand, compare, result, count);
		return;
	case RWK_FLOAT:
		each(op, RWK_FLOAT, memory, operand, compare, result, count);
		return;
	case RWK_DOUBLE:
		each(op, RWK_DOUBLE, memory, operand, compare, result, count);
		return;
	case RWK_FLOAT_COMPLEX:
		each(op, RWK_FLOAT_COMPLEX, memory, operand, compare, result, count);
		return;
	case RWK_DOUBLE_COMPLEX:
		each(op, RWK_DOUBLE_COMPLEX, memory, operand, compare, result, count);
		return;
	case RWK_LONG_DOUBLE:
		each(op, RWK_LONG_DOUBLE, memory, operand, compare, result, count);
		return;
	case RWK_INT128:
		each(op, RWK_INT128, memory, operand, compare, result, count);
		return;
	case RWK_UINT128:
		each(op, RWK_UINT128, memory, operand, compare, result, count);
		return;
	default: /* not valid */
		return;
	}
}

size_t rwk_atomic_size(enum rwk_atomic_type type)
{
	size_t width = width_of(type);

	if (type >= RWK_ATOMIC_TYPES || type == RWK_LONG_DOUBLE_COMPLEX)
		return 0;
	if (type == RWK_LONG_DOUBLE && sizeof(long double) != 16)
		return 0;
	return width < 16 || has_16_bytes() ? width : 0;
}

bool rwk_atomic_valid(unsigned op, unsigned type)
{
	if (op >= RWK_ATOMIC_OPS || type >= RWK_ATOMIC_TYPES || !rwk_atomic_size(type))
		return false;
	switch ((enum rwk_atomic_op)op) {
	case RWK_BOR:
	case RWK_BAND:
	case RWK_BXOR:
	case RWK_MSWAP:
		return is_integer(type);
	case RWK_MIN:
	case RWK_MAX:
	case RWK_CSWAP_LE:
	case RWK_CSWAP_LT:
	case RWK_CSWAP_GE:
	case RWK_CSWAP_GT:
		return !is_complex(type);
	default:
		return true;
	}
}
