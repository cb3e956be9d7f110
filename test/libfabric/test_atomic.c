/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on another process's memory, and on one's own: every operation on every type by every family of
 * calls, either done as it should be or refused as the valid calls say.
 */
#include "fi_target.h"

#include <stdlib.h>
#include <string.h>

#define TYPES (FI_UINT128 + 1)
#define AT    64 /* where the elements stand */

enum family { BASE, FETCH, COMPARE, FAMILIES };

static int valid(struct t_user *u, enum family f, enum fi_datatype type, enum fi_op op, size_t *count)
{
	static const uint64_t flags[] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
	struct fi_atomic_attr attr = {0};
	int rc = f == BASE    ? fi_atomicvalid(u->e.ep, type, op, count)
		 : f == FETCH ? fi_fetch_atomicvalid(u->e.ep, type, op, count)
			      : fi_compare_atomicvalid(u->e.ep, type, op, count);

	assert_int_equal(fi_query_atomic(u->d.domain, type, op, &attr, flags[f]), rc);
	if (!rc) {
		assert_int_equal(attr.count, *count);
		assert_int_equal(attr.count * attr.size, 1024);
	}
	return rc;
}

/* The ways of each family to make the same call. */
enum way { ONE, VECTOR, MESSAGE, INJECT, WAYS };

struct arrays {
	unsigned char operand[1024], compare[1024], result[1024];
};

static struct fi_msg_atomic msg_of(struct t_user *u, const struct fi_ioc *iov, size_t n,
	const struct fi_rma_ioc *remote, enum fi_datatype type, enum fi_op op, void *context)
{
	return (struct fi_msg_atomic){.msg_iov = iov,
		.iov_count = n,
		.addr = u->to,
		.rma_iov = remote,
		.rma_iov_count = n,
		.datatype = type,
		.op = op,
		.context = context};
}

/* Two pieces of one element each, of all arrays and of the memory. */
struct pieces {
	struct fi_ioc operand[2], compare[2], result[2];
	struct fi_rma_ioc remote[2];
};

static void cut(struct t_user *u, struct arrays *a, size_t size, struct pieces *p)
{
	for (size_t i = 0; i < 2; i++) {
		p->operand[i] = (struct fi_ioc){a->operand + i * size, 1};
		p->compare[i] = (struct fi_ioc){a->compare + i * size, 1};
		p->result[i] = (struct fi_ioc){a->result + i * size, 1};
		p->remote[i] = (struct fi_rma_ioc){u->base + AT + i * size, 1, u->key};
	}
}

static ssize_t base(struct t_user *u, enum way way, enum fi_datatype type, enum fi_op op, struct arrays *a, size_t size)
{
	struct pieces p;
	struct fi_msg_atomic msg;

	cut(u, a, size, &p);
	msg = msg_of(u, p.operand, 2, p.remote, type, op, a);
	switch (way) {
	case ONE:
		return fi_atomic(u->e.ep, a->operand, 2, NULL, u->to, u->base + AT, u->key, type, op, a);
	case VECTOR:
		return fi_atomicv(u->e.ep, p.operand, NULL, 2, u->to, u->base + AT, u->key, type, op, a);
	case MESSAGE:
		return fi_atomicmsg(u->e.ep, &msg, FI_DELIVERY_COMPLETE | FI_INJECT);
	default:
		return fi_inject_atomic(u->e.ep, a->operand, 2, u->to, u->base + AT, u->key, type, op);
	}
}

static ssize_t fetch(
	struct t_user *u, enum way way, enum fi_datatype type, enum fi_op op, struct arrays *a, size_t size)
{
	void *operand = op == FI_ATOMIC_READ ? NULL : a->operand;
	struct pieces p;
	struct fi_msg_atomic msg;

	cut(u, a, size, &p);
	msg = msg_of(u, p.operand, 2, p.remote, type, op, a);
	switch (way) {
	case ONE:
		return fi_fetch_atomic(
			u->e.ep, operand, 2, NULL, a->result, NULL, u->to, u->base + AT, u->key, type, op, a);
	case VECTOR:
		return fi_fetch_atomicv(u->e.ep, operand ? p.operand : NULL, NULL, operand ? 2 : 0, p.result, NULL, 2,
			u->to, u->base + AT, u->key, type, op, a);
	default:
		return fi_fetch_atomicmsg(u->e.ep, &msg, p.result, NULL, 2, FI_FENCE);
	}
}

static ssize_t compare(
	struct t_user *u, enum way way, enum fi_datatype type, enum fi_op op, struct arrays *a, size_t size)
{
	struct pieces p;
	struct fi_msg_atomic msg;

	cut(u, a, size, &p);
	msg = msg_of(u, p.operand, 2, p.remote, type, op, a);
	switch (way) {
	case ONE:
		return fi_compare_atomic(u->e.ep, a->operand, 2, NULL, a->compare, NULL, a->result, NULL, u->to,
			u->base + AT, u->key, type, op, a);
	case VECTOR:
		return fi_compare_atomicv(u->e.ep, p.operand, NULL, 2, p.compare, NULL, 2, p.result, NULL, 2, u->to,
			u->base + AT, u->key, type, op, a);
	default:
		return fi_compare_atomicmsg(u->e.ep, &msg, p.compare, NULL, 2, p.result, NULL, 2, FI_COMPLETION);
	}
}

static ssize_t start(struct t_user *u, enum family f, enum way way, enum fi_datatype type, enum fi_op op,
	struct arrays *a, size_t size)
{
	return f == BASE    ? base(u, way, type, op, a, size)
	       : f == FETCH ? fetch(u, way, type, op, a, size)
			    : compare(u, way, type, op, a, size);
}

/* Writes elements of that type there, by fi_write. */
static void put(struct t_user *u, const void *bytes, size_t len)
{
	t_post(fi_write(u->e.ep, bytes, len, NULL, u->to, u->base + AT, u->key, NULL), u->e.cq, NULL);
	t_done(u);
}

static void get(struct t_user *u, void *bytes, size_t len)
{
	t_post(fi_read(u->e.ep, bytes, len, NULL, u->to, u->base + AT, u->key, NULL), u->e.cq, NULL);
	t_done(u);
}

/* What 64-bit numbers become. */
static uint64_t expected(enum fi_op op, uint64_t memory, uint64_t operand, uint64_t comparand)
{
	switch (op) {
	case FI_MIN:
		return operand < memory ? operand : memory;
	case FI_MAX:
		return operand > memory ? operand : memory;
	case FI_SUM:
		return memory + operand;
	case FI_PROD:
		return memory * operand;
	case FI_LOR:
		return memory || operand;
	case FI_LAND:
		return memory && operand;
	case FI_BOR:
		return memory | operand;
	case FI_BAND:
		return memory & operand;
	case FI_LXOR:
		return !memory != !operand;
	case FI_BXOR:
		return memory ^ operand;
	case FI_ATOMIC_READ:
		return memory;
	case FI_ATOMIC_WRITE:
		return operand;
	case FI_CSWAP:
		return comparand == memory ? operand : memory;
	case FI_CSWAP_NE:
		return comparand != memory ? operand : memory;
	case FI_CSWAP_LE:
		return comparand <= memory ? operand : memory;
	case FI_CSWAP_LT:
		return comparand < memory ? operand : memory;
	case FI_CSWAP_GE:
		return comparand >= memory ? operand : memory;
	case FI_CSWAP_GT:
		return comparand > memory ? operand : memory;
	case FI_MSWAP:
		return (operand & comparand) | (memory & ~comparand);
	default:
		fail_msg("operation %d", op);
		return 0;
	}
}

/* Two elements whose bytes are small numbers, so that they are good numbers of every type. */
static void one(struct t_user *u, enum family f, enum way way, enum fi_datatype type, enum fi_op op, size_t size)
{
	static const uint64_t memory[4] = {5, 900, 12, 3}, operand[4] = {7, 900, 1, 2}, comparand[4] = {5, 901, 12, 3};
	struct arrays a = {{0}, {0}, {0}};
	unsigned char before[64] = {0}, after[64] = {0};
	struct fi_cq_tagged_entry e;

	memcpy(before, memory, sizeof(memory));
	memcpy(a.operand, operand, sizeof(operand));
	memcpy(a.compare, comparand, sizeof(comparand));
	put(u, before, 2 * size);
	t_post(start(u, f, way, type, op, &a, size), u->e.cq, NULL);
	if (way != INJECT) {
		e = t_done(u);
		assert_ptr_equal(e.op_context, &a);
		assert_int_equal(e.flags, FI_ATOMIC | (f == BASE ? FI_WRITE : FI_READ));
	}
	get(u, after, 2 * size);
	if (f != BASE)
		assert_memory_equal(a.result, before, 2 * size);
	if (type != FI_UINT64)
		return;
	for (int i = 0; i < 2; i++) {
		uint64_t now;

		memcpy(&now, after + 8 * i, 8);
		assert_int_equal(now, expected(op, memory[i], operand[i], comparand[i]));
	}
}

static void all(struct t_user *u)
{
	struct arrays a = {{0}, {0}, {0}};
	unsigned there = 0;

	for (int type = 0; type < TYPES; type++) {
		for (int op = 0; op < FI_ATOMIC_OP_LAST; op++) {
			for (enum family f = 0; f < FAMILIES; f++) {
				size_t count = 0;
				bool good = !valid(u, f, type, op, &count);

				there += good;
				for (enum way way = 0; way < WAYS - (f != BASE); way++) {
					if (good)
						one(u, f, way, type, op, 1024 / count);
					else
						assert_int_equal(start(u, f, way, type, op, &a, 8), -FI_EOPNOTSUPP);
				}
			}
		}
	}
	assert_true(there > 200);
	t_ask(u, T_EMPTY, 0, 0, 0);
}

static const struct t_setup setup = {0}, passive = {.progress = FI_PROGRESS_AUTO};

static void every_operation(void **state)
{
	(void)state;
	for (int i = 0; i < T_LINKS; i++)
		t_with_target(t_links[i], &setup, all);
	t_with_target("shm", &passive, all);
}

/* What MPI and SHMEM libraries count on; and what is no operation. */
static void needed(struct t_user *u)
{
	static const enum fi_op both[] = {
		FI_SUM, FI_MIN, FI_MAX, FI_BOR, FI_BAND, FI_BXOR, FI_LOR, FI_LAND, FI_LXOR, FI_ATOMIC_WRITE};
	static const enum fi_datatype types[] = {FI_INT32, FI_UINT32, FI_INT64, FI_UINT64};
	struct fi_atomic_attr attr;
	size_t n;

	for (size_t t = 0; t < 4; t++) {
		for (size_t o = 0; o < sizeof(both) / sizeof(both[0]); o++) {
			assert_int_equal(valid(u, BASE, types[t], both[o], &n), 0);
			assert_int_equal(valid(u, FETCH, types[t], both[o], &n), 0);
		}
		assert_int_equal(valid(u, FETCH, types[t], FI_ATOMIC_READ, &n), 0);
		assert_int_equal(valid(u, BASE, types[t], FI_ATOMIC_READ, &n), -FI_EOPNOTSUPP);
		assert_int_equal(valid(u, COMPARE, types[t], FI_CSWAP, &n), 0);
		assert_int_equal(valid(u, COMPARE, types[t], FI_MSWAP, &n), 0);
		assert_int_equal(valid(u, BASE, types[t], FI_CSWAP, &n), -FI_EOPNOTSUPP);
		assert_int_equal(valid(u, COMPARE, types[t], FI_SUM, &n), -FI_EOPNOTSUPP);
	}
	assert_int_equal(valid(u, BASE, FI_DOUBLE, FI_SUM, &n), 0);
	assert_int_equal(fi_atomicvalid(u->e.ep, FI_VOID, FI_SUM, &n), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomicvalid(u->e.ep, FI_INT8, FI_NOOP, &n), -FI_EOPNOTSUPP);
	assert_int_equal(fi_query_atomic(u->d.domain, FI_INT8, FI_SUM, &attr, FI_TAGGED), -FI_EOPNOTSUPP);
	assert_int_equal(
		fi_query_atomic(u->d.domain, FI_INT8, FI_SUM, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC), -FI_EINVAL);
	assert_int_equal(fi_query_atomic(u->d.domain, FI_INT8, FI_SUM, &attr, FI_MORE), -FI_EBADFLAGS);
}

static void what_there_is(void **state)
{
	(void)state;
	t_with_target("self", &setup, needed);
}

/* As much as the valid calls say at once, and not one more; what the target refuses is as it was. */
static void limits(struct t_user *u)
{
	static const struct {
		size_t at;
		enum fi_datatype type;
	} unaligned[] = {{2, FI_UINT32}, {4, FI_DOUBLE}, {4, FI_FLOAT_COMPLEX}, {8, FI_DOUBLE_COMPLEX}};
	uint32_t ones[257], result[257], now[256];
	struct fi_cq_err_entry e;
	struct t_answer before;

	for (int i = 0; i < 257; i++)
		ones[i] = 1;
	get(u, now, sizeof(now));
	t_post(fi_fetch_atomic(
		       u->e.ep, ones, 256, NULL, result, NULL, u->to, u->base + AT, u->key, FI_UINT32, FI_SUM, ones),
		u->e.cq, NULL);
	t_done(u);
	assert_memory_equal(result, now, sizeof(now));
	get(u, result, sizeof(now));
	for (int i = 0; i < 256; i++)
		assert_int_equal(result[i], now[i] + 1);
	assert_int_equal(fi_atomic(u->e.ep, ones, 257, NULL, u->to, u->base + AT, u->key, FI_UINT32, FI_SUM, NULL),
		-FI_EMSGSIZE);
	assert_int_equal(
		fi_atomic(u->e.ep, ones, SIZE_MAX / 2, NULL, u->to, u->base + AT, u->key, FI_UINT32, FI_SUM, NULL),
		-FI_EMSGSIZE);
	before = t_ask(u, T_COPY, 0, 0, 0);
	t_post(fi_atomic(u->e.ep, ones, 1, NULL, u->to, u->base, u->key + 1, FI_UINT32, FI_SUM, ones), u->e.cq, NULL);
	e = t_failed(u);
	assert_int_equal(e.err, FI_EACCES);
	assert_int_equal(e.flags, FI_ATOMIC | FI_WRITE);
	t_post(fi_atomic(u->e.ep, ones, 2, NULL, u->to, u->base + T_MEMORY - 4, u->key, FI_UINT32, FI_SUM, ones),
		u->e.cq, NULL);
	assert_int_equal(t_failed(u).err, FI_EACCES);
	for (size_t i = 0; i < sizeof(unaligned) / sizeof(unaligned[0]); i++) {
		t_post(fi_atomic(u->e.ep, ones, 1, NULL, u->to, u->base + unaligned[i].at, u->key, unaligned[i].type,
			       FI_SUM, ones),
			u->e.cq, NULL);
		assert_int_equal(t_failed(u).err, FI_EINVAL);
	}
	assert_memory_equal(before.word, t_ask(u, T_COPY, 0, 0, 0).word, sizeof(before.word));
}

/* A region that may only be read can be fetched from and not changed, and the other way round. */
static void only_reads(struct t_user *u)
{
	uint64_t n = 1, was = 0;
	struct t_answer a = t_ask(u, T_COPY, 0, 0, 0);

	t_post(fi_fetch_atomic(
		       u->e.ep, NULL, 1, NULL, &was, NULL, u->to, u->base, u->key, FI_UINT64, FI_ATOMIC_READ, &n),
		u->e.cq, NULL);
	t_done(u);
	assert_int_equal(was, a.word[0]);
	t_post(fi_fetch_atomic(u->e.ep, &n, 1, NULL, &was, NULL, u->to, u->base, u->key, FI_UINT64, FI_SUM, &n),
		u->e.cq, NULL);
	assert_int_equal(t_failed(u).err, FI_EACCES);
	t_post(fi_atomic(u->e.ep, &n, 1, NULL, u->to, u->base, u->key, FI_UINT64, FI_SUM, &n), u->e.cq, NULL);
	assert_int_equal(t_failed(u).err, FI_EACCES);
	t_ask(u, T_CHECK, 0, 0, 0);
}

static void only_writes(struct t_user *u)
{
	uint64_t n = 1, was = 0;

	t_post(fi_fetch_atomic(u->e.ep, &n, 1, NULL, &was, NULL, u->to, u->base, u->key, FI_UINT64, FI_SUM, &n),
		u->e.cq, NULL);
	assert_int_equal(t_failed(u).err, FI_EACCES);
	t_ask(u, T_CHECK, 0, 0, 0);
	t_post(fi_atomic(u->e.ep, &n, 1, NULL, u->to, u->base, u->key, FI_UINT64, FI_SUM, &n), u->e.cq, NULL);
	t_done(u);
}

static void limits_and_permissions(void **state)
{
	static const struct t_setup reads = {.access = FI_REMOTE_READ}, writes = {.access = FI_REMOTE_WRITE};

	(void)state;
	for (int i = 0; i < T_LINKS; i++) {
		t_with_target(t_links[i], &setup, limits);
		t_with_target(t_links[i], &reads, only_reads);
		t_with_target(t_links[i], &writes, only_writes);
	}
}

#define TURNS 2000

/* Many at once on one number: none is lost, and what is fetched grows. */
static void adds(struct t_user *u)
{
	uint64_t one = 1, was, last = 0, start;
	int under_way = 0;

	start = t_ask(u, T_COPY, 0, 0, 0).word[0];
	for (int i = 0; i < TURNS; i++) {
		t_post(fi_atomic(u->e.ep, &one, 1, NULL, u->to, u->base, u->key, FI_UINT64, FI_SUM, NULL), u->e.cq,
			NULL);
		if (++under_way == 50) {
			for (; under_way; under_way--)
				t_done(u);
		}
		if (i % 100)
			continue;
		for (; under_way; under_way--)
			t_done(u);
		t_post(fi_fetch_atomic(
			       u->e.ep, &one, 1, NULL, &was, NULL, u->to, u->base, u->key, FI_UINT64, FI_SUM, &was),
			u->e.cq, NULL);
		t_done(u);
		assert_true(was > last);
		last = was;
	}
	for (; under_way; under_way--)
		t_done(u);
	assert_int_equal(t_ask(u, T_COPY, 0, 0, 0).word[0], start + TURNS + TURNS / 100);
}

static void adds_up(void **state)
{
	(void)state;
	for (int i = 0; i < T_LINKS; i++)
		t_with_target(t_links[i], &setup, adds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation),
		cmocka_unit_test(what_there_is),
		cmocka_unit_test(limits_and_permissions),
		cmocka_unit_test(adds_up),
	};

	return cmocka_run_group_tests_name("libfabric/atomic", tests, NULL, NULL);
}
