/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entries of imported receives as each libfabric has them (fi_peer_rx_entry): where we look for what is in them
 * goes by the libfabric that runs, which the test plays.
 */
#include "rwk_test.h"

#include "bindings/libfabric/peer_entry.h"

static uint32_t version;

/* In place of libfabric's. */
uint32_t fi_version(void)
{
	return version;
}

/* What all have in common, in this order. */
#define MESSAGE                                                                                                        \
	void *srx;                                                                                                     \
	uint64_t addr;                                                                                                 \
	size_t size;                                                                                                   \
	uint64_t tag
#define RECEIVE                                                                                                        \
	uint64_t flags;                                                                                                \
	void *context;                                                                                                 \
	size_t count;                                                                                                  \
	void **desc;                                                                                                   \
	void *peer_context, *owner_context;                                                                            \
	struct iovec *iov

struct of_1_17 {
	void *next, *prev;
	MESSAGE;
	RECEIVE;
};

struct of_2_0 {
	void *next, *prev;
	MESSAGE;
	uint64_t data;
	RECEIVE;
};

struct of_2_3 {
	MESSAGE;
	uint64_t data;
	RECEIVE;
};

/* In a libfabric of that version an entry has these there. */
static void check(
	uint32_t v, void *entry, void *srx, uint64_t *tag, uint64_t *data, uint64_t *flags, struct iovec **iov)
{
	const struct rwk_offer with_data = {.data = 77, .has_data = true};

	version = v;
	assert_true(rwk_fi_peer_known());
	assert_ptr_equal(rwk_fi_entry_message(entry), srx);
	assert_ptr_equal(&rwk_fi_entry_message(entry)->tag, tag);
	assert_ptr_equal(&rwk_fi_entry_receive(entry)->flags, flags);
	assert_ptr_equal(&rwk_fi_entry_receive(entry)->iov, iov);
	assert_ptr_equal(rwk_fi_entry_data(entry), data);
	rwk_fi_entry_tell_data(entry, &with_data);
	assert_true(*flags & FI_REMOTE_CQ_DATA);
	if (data)
		assert_int_equal(*data, 77);
	*flags = 0;
}

static void test_1_17(void **state)
{
	struct of_1_17 e = {0};

	(void)state;
	check(FI_VERSION(1, 17), &e, &e.srx, &e.tag, NULL, &e.flags, &e.iov);
}

/* Debian 13 has 2.1. */
static void test_2_0(void **state)
{
	struct of_2_0 e = {0};

	(void)state;
	for (unsigned minor = 0; minor <= 2; minor++)
		check(FI_VERSION(2, minor), &e, &e.srx, &e.tag, &e.data, &e.flags, &e.iov);
	assert_null(e.next);
	assert_null(e.prev);
}

static void test_2_3(void **state)
{
	struct of_2_3 e = {0};

	(void)state;
	for (unsigned minor = 3; minor <= 12; minor++)
		check(FI_VERSION(2, minor), &e, &e.srx, &e.tag, &e.data, &e.flags, &e.iov);
}

static void test_in_between(void **state)
{
	(void)state;
	for (unsigned minor = 18; minor <= 22; minor++) {
		version = FI_VERSION(1, minor);
		assert_false(rwk_fi_peer_known());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_1_17),
		cmocka_unit_test(test_2_0),
		cmocka_unit_test(test_2_3),
		cmocka_unit_test(test_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
