/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_MSG: reads, writes and atomics on the peer's memory. Two sides in one process, each with a fabric of its own,
 * connected; the server has a region that the client reaches.
 */
#include "fi_msg.h"

#include <stdlib.h>

#define LONG ((size_t)(1 << 20) + 5)
#define BOTH ((uint64_t)(FI_REMOTE_READ | FI_REMOTE_WRITE))

static struct t_side client, server;
static struct fid_mr *mr;
static unsigned char *local, *remote; /* of LONG bytes, remote aligned */
static uint64_t base, key;

static int allocate(void **state)
{
	(void)state;
	local = malloc(LONG);
	remote = aligned_alloc(8, (LONG + 7) & ~(size_t)7);
	return !local || !remote;
}

static int release(void **state)
{
	(void)state;
	free(local);
	free(remote);
	return 0;
}

static void open_region(uint64_t access, size_t len)
{
	assert_int_equal(fi_mr_reg(server.domain, remote, len, access, 0, 0, 0, &mr, NULL), 0);
	base = (uintptr_t)remote;
	key = fi_mr_key(mr);
	assert_int_not_equal(key, FI_KEY_NOTAVAIL);
}

static void open_both(const struct t_msg_options *o, uint64_t access)
{
	t_sides_open(&client, &server, o);
	open_region(access, LONG);
	t_fill(local, LONG, 1);
	t_fill(remote, LONG, 2);
}

static void close_both(void)
{
	assert_int_equal(fi_close(&mr->fid), 0);
	t_sides_close(&client, &server);
}

static void done(uint64_t flags)
{
	struct fi_cq_tagged_entry e = t_wait(client.cq, server.cq, NULL);

	assert_ptr_equal(e.op_context, &client);
	assert_int_equal(e.flags, flags);
}

/* Every length, both ways; what is beside stays as it was, and the peer's program hears of nothing. */
static void lengths(void **state)
{
	static const size_t len[] = {0, 1, 256, 4096, 4097, 65536, LONG - 16};

	(void)state;
	open_both(NULL, BOTH);
	for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		size_t n = len[i];

		t_fill(remote, LONG, 2);
		t_fill(local, n, i);
		assert_int_equal(fi_write(client.ep, local, n, NULL, 0, base + 8, key, &client), 0);
		done(FI_RMA | FI_WRITE);
		t_check(remote + 8, n, i);
		t_check(remote, 8, 2);
		assert_int_equal(remote[8 + n], (unsigned char)((8 + n) * 7 + ((8 + n) >> 8) + 2));
		memset(local, 0xee, n + 1);
		assert_int_equal(fi_read(client.ep, local, n, NULL, 0, base + 8, key, &client), 0);
		done(FI_RMA | FI_READ);
		t_check(local, n, i);
		assert_int_equal(local[n], 0xee);
	}
	t_nothing(server.cq, client.cq);
	close_both();
}

/* All calls: pieces, flags, injected writes. */
static void calls(void **state)
{
	struct iovec iov[3] = {{local, 10}, {local + 10, 0}, {local + 10, 90}};
	struct fi_rma_iov at = {.addr = (uintptr_t)remote + 100, .len = 100};
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 3, .rma_iov = &at, .rma_iov_count = 1, .context = &client};

	(void)state;
	open_both(NULL, BOTH);
	at.key = key;
	assert_int_equal(fi_writev(client.ep, iov, NULL, 3, 0, base, key, &client), 0);
	done(FI_RMA | FI_WRITE);
	t_check(remote, 100, 1);
	assert_int_equal(fi_writemsg(client.ep, &msg, FI_DELIVERY_COMPLETE | FI_INJECT), 0);
	memset(local, 0, 100);
	done(FI_RMA | FI_WRITE);
	t_check(remote + 100, 100, 1);
	assert_int_equal(fi_readmsg(client.ep, &msg, FI_FENCE), 0);
	done(FI_RMA | FI_READ);
	t_check(local, 100, 1);
	memset(local, 0, 100);
	assert_int_equal(fi_readv(client.ep, iov, NULL, 3, 0, base, key, &client), 0);
	done(FI_RMA | FI_READ);
	t_check(local, 100, 1);
	t_fill(local, 256, 7);
	assert_int_equal(fi_inject_write(client.ep, local, 256, 0, base, key), 0);
	memset(local, 0, 256);
	assert_int_equal(fi_read(client.ep, local, 256, NULL, 0, base, key, &client), 0); /* behind it */
	done(FI_RMA | FI_READ);
	t_check(local, 256, 7);
	assert_int_equal(fi_inject_write(client.ep, local, 257, 0, base, key), -FI_EMSGSIZE);
	at.len = 99;
	assert_int_equal(fi_writemsg(client.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_writev(client.ep, iov, NULL, 9, 0, base, key, NULL), -FI_EINVAL);
	assert_int_equal(fi_write(client.ep, local, 1, NULL, 0, base, (uint64_t)1 << 32, NULL), -FI_EINVAL);
	t_nothing(client.cq, server.cq);
	close_both();
}

/* A write with data takes a receive, and tells the peer's program; without a receive it waits. */
static void data(void **state)
{
	struct fi_cq_tagged_entry e;

	(void)state;
	open_both(NULL, BOTH);
	for (int i = 0; i < 2; i++) {
		t_fill(local, 100, (unsigned)i + 3);
		if (i)
			assert_int_equal(
				fi_writedata(client.ep, local, 100, NULL, 0x12345678, 0, base, key, &client), 0);
		else
			assert_int_equal(fi_inject_writedata(client.ep, local, 100, 0x12345678, 0, base, key), 0);
		t_nothing(server.cq, client.cq);
		assert_int_equal(fi_recv(server.ep, NULL, 0, NULL, 0, &server), 0);
		e = t_wait(server.cq, client.cq, NULL);
		assert_ptr_equal(e.op_context, &server);
		assert_int_equal(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		assert_int_equal(e.data, 0x12345678);
		assert_int_equal(e.len, 100);
		t_check(remote, 100, (unsigned)i + 3);
		if (i)
			done(FI_RMA | FI_WRITE);
	}
	close_both();
}

/* A program that does not know that would lose a receive: it has no writes with data. */
static void no_data(void **state)
{
	const struct t_msg_options o = {.mode = FI_CONTEXT};

	(void)state;
	open_both(&o, BOTH);
	assert_int_equal(client.info->mode, 0);
	assert_int_equal(fi_writedata(client.ep, local, 1, NULL, 1, 0, base, key, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_inject_writedata(client.ep, local, 1, 1, 0, base, key), -FI_EOPNOTSUPP);
	assert_int_equal(fi_write(client.ep, local, 1, NULL, 0, base, key, &client), 0);
	done(FI_RMA | FI_WRITE);
	close_both();
}

/* What is not opened, or no more, is not reached: an error here, nothing there, and the connection has ended. */
static void not_reached(void **state)
{
	static const struct {
		uint64_t access;
		size_t region;
		bool write, closed, other_key;
	} cases[] = {
		{FI_REMOTE_READ, LONG, true, false, false},
		{FI_REMOTE_WRITE, LONG, false, false, false},
		{BOTH, 99, true, false, false},
		{BOTH, 99, false, false, false},
		{BOTH, LONG, true, true, false},
		{BOTH, LONG, true, false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ssize_t n;

		t_sides_open(&client, &server, NULL);
		open_region(cases[i].access, cases[i].region);
		t_fill(remote, LONG, 2);
		t_fill(local, LONG, 1);
		if (cases[i].closed)
			assert_int_equal(fi_close(&mr->fid), 0);
		key += cases[i].other_key;
		n = cases[i].write ? fi_write(client.ep, local, 100, NULL, 0, base, key, &client)
				   : fi_read(client.ep, local, 100, NULL, 0, base, key, &client);
		assert_int_equal(n, 0);
		assert_int_equal(t_wait_error(client.cq, server.cq).err, FI_EACCES);
		t_check(remote, LONG, 2);
		t_check(local, LONG, 1);
		t_side_event(&client, &server, FI_SHUTDOWN);
		if (!cases[i].closed)
			assert_int_equal(fi_close(&mr->fid), 0);
		t_sides_close(&client, &server);
	}
}

/* An endpoint opened for messages alone lets nobody reach memory, and starts nothing of the kind. */
static void without_caps(void **state)
{
	const struct t_msg_options o = {.caps = FI_MSG};

	(void)state;
	open_both(&o, BOTH);
	assert_int_equal(fi_write(client.ep, local, 1, NULL, 0, base, key, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_read(client.ep, local, 1, NULL, 0, base, key, NULL), -FI_EOPNOTSUPP);
	close_both();
}

/* Registrations: one piece, by the key that is drawn; the peer's doings are not counted. */
static void registrations(void **state)
{
	struct iovec two[2] = {{remote, 1}, {remote + 8, 1}};
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_mr *other;

	(void)state;
	open_both(NULL, BOTH);
	server.info->domain_attr->mr_mode |= FI_MR_ENDPOINT;
	assert_int_equal(fi_domain(server.fabric, server.info, &domain, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regv(server.domain, two, 2, BOTH, 0, 0, 0, &other, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_reg(server.domain, remote, 8, BOTH, 0, key, 0, &other, NULL), 0);
	assert_int_not_equal(fi_mr_key(other), key);
	assert_true(fi_mr_key(other) <= UINT32_MAX);
	assert_int_equal(fi_cntr_open(server.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_mr_bind(other, &cntr->fid, FI_REMOTE_WRITE), -FI_EOPNOTSUPP);
	assert_int_equal(fi_ep_bind(server.ep, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&server.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fi_mr_reg(server.domain, remote, 8, FI_SEND | FI_RECV, 0, 0, 0, &other, NULL), 0);
	assert_int_equal(fi_close(&other->fid), 0);
	close_both();
}

/* FI_SUM and FI_CSWAP on one integer of 64 bits, by all calls; nothing else is claimed, and nothing else is done. */
static void atomics(void **state)
{
	uint64_t one = 1, big = (uint64_t)1 << 40, result = 0, want = 43, *word = (uint64_t *)(void *)remote;
	struct fi_ioc operand = {&big, 1}, comparand = {&want, 1}, results = {&result, 1};
	struct fi_rma_ioc at = {(uintptr_t)remote, 1, 0};
	struct fi_msg_atomic msg = {.msg_iov = &operand,
		.iov_count = 1,
		.rma_iov = &at,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_SUM,
		.context = &client};
	struct fi_atomic_attr attr;
	size_t count;

	(void)state;
	open_both(NULL, BOTH);
	at.key = key;
	*word = 41;
	assert_int_equal(fi_atomic(client.ep, &one, 1, NULL, 0, base, key, FI_UINT64, FI_SUM, &client), 0);
	done(FI_ATOMIC | FI_WRITE);
	assert_int_equal(*word, 42);
	assert_int_equal(
		fi_fetch_atomic(client.ep, &one, 1, NULL, &result, NULL, 0, base, key, FI_INT64, FI_SUM, &client), 0);
	done(FI_ATOMIC | FI_READ);
	assert_int_equal(result, 42);
	assert_int_equal(fi_compare_atomic(client.ep, &big, 1, NULL, &want, NULL, &result, NULL, 0, base, key,
				 FI_UINT64, FI_CSWAP, &client),
		0);
	done(FI_ATOMIC | FI_READ);
	assert_int_equal(result, 43);
	assert_int_equal(*word, big);
	assert_int_equal(fi_compare_atomic(client.ep, &one, 1, NULL, &want, NULL, &result, NULL, 0, base, key,
				 FI_UINT64, FI_CSWAP, &client),
		0);
	done(FI_ATOMIC | FI_READ);
	assert_int_equal(result, big); /* it was not what was expected */
	assert_int_equal(*word, big);
	assert_int_equal(fi_inject_atomic(client.ep, &one, 1, 0, base, key, FI_UINT64, FI_SUM), 0);
	assert_int_equal(fi_atomicmsg(client.ep, &msg, FI_INJECT), 0);
	done(FI_ATOMIC | FI_WRITE);
	assert_int_equal(*word, 2 * big + 1);
	assert_int_equal(fi_fetch_atomicmsg(client.ep, &msg, &results, NULL, 1, 0), 0);
	done(FI_ATOMIC | FI_READ);
	assert_int_equal(result, 2 * big + 1);
	msg.op = FI_CSWAP;
	want = 3 * big + 1;
	assert_int_equal(fi_compare_atomicmsg(client.ep, &msg, &comparand, NULL, 1, &results, NULL, 1, 0), 0);
	done(FI_ATOMIC | FI_READ);
	assert_int_equal(*word, big);

	assert_int_equal(fi_atomic(client.ep, &one, 1, NULL, 0, base, key, FI_UINT32, FI_SUM, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomic(client.ep, &one, 1, NULL, 0, base, key, FI_UINT64, FI_BOR, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomic(client.ep, &one, 2, NULL, 0, base, key, FI_UINT64, FI_SUM, NULL), -FI_EINVAL);
	assert_int_equal(fi_atomic(client.ep, &one, 1, NULL, 0, base + 4, key, FI_UINT64, FI_SUM, NULL), -FI_EINVAL);
	assert_int_equal(fi_atomicvalid(client.ep, FI_UINT64, FI_SUM, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(fi_fetch_atomicvalid(client.ep, FI_INT64, FI_SUM, &count), 0);
	assert_int_equal(fi_compare_atomicvalid(client.ep, FI_INT64, FI_CSWAP, &count), 0);
	assert_int_equal(fi_atomicvalid(client.ep, FI_UINT32, FI_SUM, &count), -FI_EOPNOTSUPP);
	assert_int_equal(fi_fetch_atomicvalid(client.ep, FI_UINT64, FI_ATOMIC_READ, &count), -FI_EOPNOTSUPP);
	assert_int_equal(fi_query_atomic(client.domain, FI_UINT64, FI_CSWAP, &attr, FI_COMPARE_ATOMIC), 0);
	assert_true(attr.count == 1 && attr.size == 8);
	assert_int_equal(fi_query_atomic(client.domain, FI_UINT64, FI_MIN, &attr, 0), -FI_EOPNOTSUPP);
	t_nothing(client.cq, server.cq);
	close_both();
}

/* Operand, comparand and result are one piece each: none of them is as wrong as two. */
static void pieces_of_atomics(void **state)
{
	uint64_t one = 1, result[2] = {0}, want = 0;
	const struct fi_ioc operand[2] = {{&one, 1}, {&one, 1}}, comparand[2] = {{&want, 1}, {&want, 1}};
	struct fi_ioc results[2] = {{result, 1}, {result + 1, 1}};

	(void)state;
	open_both(NULL, BOTH);
	for (size_t n = 0; n < 27; n++) {
		const size_t a = n % 3, b = n / 3 % 3, c = n / 9;
		const struct fi_rma_ioc at = {base, 1, key};
		struct fi_msg_atomic msg = {.msg_iov = a ? operand : NULL,
			.iov_count = a,
			.rma_iov = &at,
			.rma_iov_count = 1,
			.datatype = FI_UINT64,
			.op = FI_SUM};

		if (a == 1 && b == 1 && c == 1)
			continue;
		if (a != 1)
			assert_int_equal(fi_atomicmsg(client.ep, &msg, 0), -FI_EINVAL);
		if (a != 1 || c != 1) {
			assert_int_equal(fi_fetch_atomicv(client.ep, a ? operand : NULL, NULL, a, c ? results : NULL,
						 NULL, c, 0, base, key, FI_UINT64, FI_SUM, NULL),
				-FI_EINVAL);
			assert_int_equal(
				fi_fetch_atomicmsg(client.ep, &msg, c ? results : NULL, NULL, c, 0), -FI_EINVAL);
		}
		msg.op = FI_CSWAP;
		assert_int_equal(fi_compare_atomicv(client.ep, a ? operand : NULL, NULL, a, b ? comparand : NULL, NULL,
					 b, c ? results : NULL, NULL, c, 0, base, key, FI_UINT64, FI_CSWAP, NULL),
			-FI_EINVAL);
		assert_int_equal(fi_compare_atomicmsg(client.ep, &msg, b ? comparand : NULL, NULL, b,
					 c ? results : NULL, NULL, c, 0),
			-FI_EINVAL);
	}
	t_nothing(client.cq, server.cq);
	close_both();
}

/* FI_PROGRESS_AUTO, which is what programs have that ask for RMA and say nothing of progress. */
static void by_itself(void **state)
{
	const struct t_msg_options o = {.caps = FI_MSG | FI_RMA, .progress = FI_PROGRESS_AUTO};

	(void)state;
	open_both(&o, BOTH);
	assert_int_equal(fi_write(client.ep, local, LONG, NULL, 0, base, key, &client), 0);
	assert_int_equal(t_wait(client.cq, NULL, NULL).flags, FI_RMA | FI_WRITE);
	t_check(remote, LONG, 1);
	close_both();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(calls),
		cmocka_unit_test(data),
		cmocka_unit_test(no_data),
		cmocka_unit_test(not_reached),
		cmocka_unit_test(without_caps),
		cmocka_unit_test(registrations),
		cmocka_unit_test(atomics),
		cmocka_unit_test(pieces_of_atomics),
		cmocka_unit_test(by_itself),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, allocate, release);
}
