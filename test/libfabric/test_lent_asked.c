/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shared receive context of ours that another provider imports is asked to look for senders that the provider knows
 * by now: a call since libfabric 2.0, which the test plays towards ours, whatever libfabric runs. What the provider may
 * do of another thread meanwhile, as no lock is held, it does here from within.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "fi_pair.h"

#include "bindings/libfabric/peer_entry.h"

#include <dlfcn.h>

static struct t_domain domain;
static struct fid_ep *srx;
static struct fid_peer_srx *lent;
static struct fi_peer_rx_entry *next; /* what comes while somebody asks */
static bool second;                   /* the libfabric is 2.0 */
static unsigned asked;

/* In place of libfabric's, for the provider too. */
__attribute__((visibility("default"))) uint32_t fi_version(void)
{
	uint32_t (*real)(void);

	if (second)
		return FI_VERSION(2, 0);
	*(void **)&real = dlsym(RTLD_NEXT, "fi_version");
	return real();
}

static int open_lent(void **state)
{
	struct fid *fid;

	(void)state;
	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	assert_int_equal(fi_srx_context(domain.domain, NULL, &srx, NULL), 0);
	second = true;
	asked = 0;
	assert_int_equal(fi_export_fid(&srx->fid, 0, &fid, NULL), 0);
	lent = (struct fid_peer_srx *)fid;
	return 0;
}

static int close_lent(void **state)
{
	(void)state;
	assert_int_equal(fi_close(&lent->ep_fid.fid), 0);
	second = false;
	assert_int_equal(fi_close(&srx->fid), 0);
	t_domain_close(&domain);
	return 0;
}

/* A message of somebody unknown, for which there is no receive. */
static struct fi_peer_rx_entry *comes(void)
{
	const struct rwk_offer m = {.space = RWK_TAGGED, .length = 9, .tag = 1};
	struct fi_peer_rx_entry *entry;

	assert_int_equal(rwk_fi_entry_get(lent, &m, FI_ADDR_UNSPEC, &entry), -FI_ENOENT);
	assert_int_equal(rwk_fi_entry_queue(lent, RWK_TAGGED, entry), 0);
	return entry;
}

static fi_addr_t known(struct fi_peer_rx_entry *entry)
{
	(void)entry;
	asked++;
	return 33;
}

/* The message is over before there is an answer, and another one comes. */
static fi_addr_t known_too_late(struct fi_peer_rx_entry *entry)
{
	asked++;
	assert_int_equal(fi_close(&lent->ep_fid.fid), -FI_EBUSY);
	rwk_fi_entry_free(lent, entry);
	next = comes();
	return 33;
}

/* And somebody else asks, too. */
static fi_addr_t known_by_two(struct fi_peer_rx_entry *entry)
{
	asked++;
	rwk_fi_entry_ask_unknown(lent, known_too_late);
	assert_ptr_not_equal(next, entry);
	return 33;
}

static void known_in_time(void **state)
{
	struct fi_peer_rx_entry *entry = comes();

	(void)state;
	rwk_fi_entry_ask_unknown(lent, known);
	rwk_fi_entry_ask_unknown(lent, known);
	assert_int_equal(rwk_fi_entry_message(entry)->addr, 33);
	assert_int_equal(asked, 1);
}

/* The answer is not taken for the message that came later; the entry is good for another one once nobody asks. */
static void over_meanwhile(void **state)
{
	fi_addr_t (*const ways[])(struct fi_peer_rx_entry *) = {known_too_late, known_by_two};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct fi_peer_rx_entry *entry = comes();

		asked = 0;
		rwk_fi_entry_ask_unknown(lent, ways[i]);
		assert_int_equal(asked, i + 1);
		assert_ptr_not_equal(next, entry);
		assert_int_equal(rwk_fi_entry_message(next)->addr, FI_ADDR_UNSPEC);
		rwk_fi_entry_free(lent, next);
		next = comes();
		assert_ptr_not_equal(comes(), next);
		rwk_fi_entry_ask_unknown(lent, known);
		assert_int_equal(rwk_fi_entry_message(entry)->addr, 33);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(known_in_time, open_lent, close_lent),
		cmocka_unit_test_setup_teardown(over_meanwhile, open_lent, close_lent),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
