/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S3-4, S3-5: an atomic is one towards the host's own atomic instructions, too: far's program has a thread that uses
 * the word that near's requests change.
 *
 *     near   qp ---- RC ---- qp   far ---- word ---- thread
 *
 * Links: udp.
 */
#define _GNU_SOURCE /* REG_ERR */
#include "channel_adapter/ends.h"

#include "watched.h"

#include <pthread.h>
#include <time.h>

#define ENOUGH 2000u /* requests that met the thread at work */

/* What the word is to the flipper: its own two values, and that of near's, which it leaves alone. */
enum { LEFT, RIGHT, TAKEN };

static struct {
	uint64_t *word;
	bool stop;
	uint64_t added;   /* the adder's sum */
	uint64_t foreign; /* times that the flipper did not find what nobody else may change */
} host;

static void *add(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&host.stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(host.word, 1, __ATOMIC_SEQ_CST);
		host.added++;
	}
	return NULL;
}

static bool swap(uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(host.word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* LEFT may be TAKEN at any time, RIGHT never. */
static void *flip(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&host.stop, __ATOMIC_RELAXED))
		if (swap(LEFT, RIGHT))
			host.foreign += !swap(RIGHT, LEFT);
	return NULL;
}

static pthread_t open_with(void *(*thread)(void *))
{
	pthread_t t;

	ends_open(RWK_QP_RC);
	host.word = (uint64_t *)(void *)far.in;
	host.stop = false;
	host.added = host.foreign = *host.word = 0;
	assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
	return t;
}

static void join(pthread_t t)
{
	__atomic_store_n(&host.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(t, NULL), 0);
}

/* One request for that word. */
static struct rwk_request request(
	enum rwk_request_type type, struct rwk_sge *sge, unsigned i, const void *word, const struct rwk_mr *mr)
{
	*sge = (struct rwk_sge){near.out + 8 * i, 8, rwk_mr_key(near.out_mr)};
	return (struct rwk_request){
		.type = type, .sge = sge, .sge_count = 1, .remote = (uintptr_t)word, .key = rwk_mr_key(mr)};
}

/* DEPTH requests, carried out one after the other; before[i]: what was there. */
static void request_all(
	enum rwk_request_type type, const uint64_t swap_add[2], const uint64_t compare[2], uint64_t *before)
{
	struct rwk_request r[DEPTH];
	struct rwk_sge sge[DEPTH];
	uint32_t posted;

	for (unsigned i = 0; i < DEPTH; i++) {
		r[i] = request(type, &sge[i], i, far.in, far.in_mr);
		r[i].flags = i + 1 < DEPTH ? RWK_REQUEST_UNSIGNALLED : 0;
		r[i].swap_add = swap_add[i % 2];
		r[i].compare = compare[i % 2];
	}
	assert_int_equal(rwk_qp_post_batch(near.qp, r, DEPTH, &posted), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	memcpy(before, near.out, 8 * DEPTH);
}

/* Both add: the sum is that of both. */
static void adds(void **state)
{
	static const uint64_t one[2] = {1, 1}, none[2];
	pthread_t t = open_with(add);
	time_t until = time(NULL) + 3; /* on one processor they hardly meet */
	uint64_t before[DEPTH], n = 0;

	(void)state;
	for (unsigned met = 0; met < ENOUGH && time(NULL) < until; n += DEPTH) {
		request_all(RWK_REQUEST_FETCH_ADD, one, none, before);
		for (unsigned i = 1; i < DEPTH; i++)
			met += before[i] > before[i - 1] + 1;
	}
	join(t);
	assert_int_equal(*host.word, host.added + n);
	ends_close();
}

/* near takes and gives back one of two values between which the thread goes to and fro: never the other one. */
static void swaps(void **state)
{
	static const uint64_t new[2] = {TAKEN, LEFT}, old[2] = {LEFT, TAKEN};
	pthread_t t = open_with(flip);
	time_t until = time(NULL) + 3;
	unsigned taken = 0, missed = 0;
	uint64_t before[DEPTH];

	(void)state;
	while ((taken < ENOUGH || missed < ENOUGH) && time(NULL) < until) {
		request_all(RWK_REQUEST_COMPARE_SWAP, new, old, before);
		for (unsigned i = 0; i < DEPTH; i += 2) {
			bool was_left = before[i] == LEFT;

			assert_int_equal(before[i + 1] == TAKEN, was_left);
			taken += was_left;
			missed += !was_left;
		}
	}
	join(t);
	assert_int_equal(host.foreign, 0);
	ends_close();
}

/* And one instruction does it, so that there is nothing between look and store: no luck is needed to see that. */
static void by_one_instruction(void **state)
{
	struct rwk_request r;
	struct rwk_sge sge;
	struct rwk_mr *mr;

	(void)state;
	watched_open();
	if (!watched.page)
		skip();
	ends_open(RWK_QP_RC);
	assert_int_equal(rwk_mr_register(far.pd, watched.page, watched.length, ACCESS, &mr), 0);
	for (unsigned type = RWK_REQUEST_COMPARE_SWAP; type <= RWK_REQUEST_FETCH_ADD; type++) {
		r = request(type, &sge, 0, watched.page, mr);
		watched_begin();
		assert_int_equal(rwk_qp_post(near.qp, &r), 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		watched_end();
		assert_int_equal(watched.stores, 1);
		assert_int_equal(watched.loads, 0);
	}
	rwk_mr_deregister(mr);
	ends_close();
	watched_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds),
		cmocka_unit_test(swaps),
		cmocka_unit_test(by_one_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
