/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on this process's memory, carried out by the CPU's own atomic instructions, so that they are atomic
 * towards everything that uses such instructions on the same words: other threads of this process, and other processes
 * that have the memory mapped. Pure: no state, no engine.
 *
 * Each element is one atomic step; several elements are several steps.
 *
 * Which there are: all operations for integers; for floating-point types all but those on bits (BOR, BAND, BXOR,
 * MSWAP), for complex ones neither those that need an order (MIN, MAX, CSWAP_LE to _GT). Elements of 16 bytes need a
 * CPU with atomic loads and compare-and-swap of that width; there are none of 32 (LONG_DOUBLE_COMPLEX). Integers wrap.
 * Logical results are 1 or 0 of the type. -0.0 equals 0.0, a NaN is true and neither equal to, below nor above
 * anything. The bytes of a long double that hold nothing are not looked at, and 0 in what is stored and in results.
 */
#ifndef RWK_ENGINE_ATOMIC_H
#define RWK_ENGINE_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Types of elements, with the numbers of libfabric's enum fi_datatype; the binding asserts that. Travel on the wire.
 */
enum rwk_atomic_type {
	RWK_INT8,
	RWK_UINT8,
	RWK_INT16,
	RWK_UINT16,
	RWK_INT32,
	RWK_UINT32,
	RWK_INT64,
	RWK_UINT64,
	RWK_FLOAT,
	RWK_DOUBLE,
	RWK_FLOAT_COMPLEX,
	RWK_DOUBLE_COMPLEX,
	RWK_LONG_DOUBLE,
	RWK_LONG_DOUBLE_COMPLEX,
	RWK_INT128,
	RWK_UINT128,
	RWK_ATOMIC_TYPES
};

/** Operations, with the numbers of libfabric's enum fi_op. Travel on the wire. */
enum rwk_atomic_op {
	RWK_MIN,
	RWK_MAX,
	RWK_SUM,
	RWK_PROD,
	RWK_LOR,
	RWK_LAND,
	RWK_BOR,
	RWK_BAND,
	RWK_LXOR,
	RWK_BXOR,
	RWK_ATOMIC_READ,  /* the operand is not used */
	RWK_ATOMIC_WRITE, /* with a result: exchange */
	RWK_CSWAP,        /* operand if the memory equals the comparand */
	RWK_CSWAP_NE,     /* if the comparand is not equal to the memory, */
	RWK_CSWAP_LE,     /* <=: the comparand to the memory, */
	RWK_CSWAP_LT,
	RWK_CSWAP_GE,
	RWK_CSWAP_GT,
	RWK_MSWAP, /* those bits of the operand that are set in the comparand, the others stay */
	RWK_ATOMIC_OPS
};

/** Bytes of an element; 0: there is no such type on this CPU. */
size_t rwk_atomic_size(enum rwk_atomic_type type);

/** Whether there is that operation for that type here. Numbers out of range, which a peer may send, are answered false.
 */
bool rwk_atomic_valid(unsigned op, unsigned type);

/**
 * Does the operation store into its memory? ATOMIC_READ does not, but for words of 16 bytes on aarch64, of which only a
 * pair that is stored again has been loaded in one piece.
 */
static inline bool rwk_atomic_stores(enum rwk_atomic_op op, enum rwk_atomic_type type)
{
#if defined(__aarch64__)
	if (rwk_atomic_size(type) == 16)
		return true;
#else
	(void)type;
#endif
	return op != RWK_ATOMIC_READ;
}

/** Does the operation take a comparand (CSWAP family, MSWAP)? */
static inline bool rwk_atomic_compares(enum rwk_atomic_op op)
{
	return op >= RWK_CSWAP;
}

/**
 * Carries out `count` elements at `memory`, aligned to the size of an element and valid (rwk_atomic_valid).
 * `operand` (unused for ATOMIC_READ), `compare` (for those that compare) and `result` (NULL: not wanted; what stood in
 * memory before) need no alignment; the result may be the operand's memory. Each step is sequentially consistent, as
 * C11 has it. Memory must be writable if the operation stores (rwk_atomic_stores), else readable.
 */
void rwk_atomic_do(enum rwk_atomic_op op, enum rwk_atomic_type type, void *memory, const void *operand,
	const void *compare, void *result, size_t count);

#endif
