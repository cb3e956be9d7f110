/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints within one process, and tests of them that hold for every kind of domain: without a lock, with one, and
 * with socket addresses.
 */
#ifndef RWK_FI_PAIR_H
#define RWK_FI_PAIR_H

#include "fi_test.h"

#define TAG 0x1122334455667788u /* a long one */

/** The domain of the group that runs. */
extern struct t_domain pair_domain;

/* Two endpoints that know each other, opened alike. */
struct pair {
	struct t_end a, b;
	fi_addr_t to_a, to_b; /* b's number of a, a's of b */
};

void pair_open(struct pair *p, const struct t_options *o);
void pair_close(struct pair *p);

/** One tagged message from a to b with a completion at each end; the receive is posted first if `expected`. */
void exchange(struct pair *p, size_t len, uint64_t tag, bool expected);

int open_domain(void **state);
int open_locked_domain(void **state);
int open_socket_domain(void **state);
int open_ipv6_domain(void **state);
int close_domain(void **state);

/** Runs all of them four times, and says how many have failed. To be called first in main. */
#define pair_run(tests) \
	(pair_use_provider(), \
		cmocka_run_group_tests_name("FI_THREAD_DOMAIN", tests, open_domain, close_domain) + \
			cmocka_run_group_tests_name("FI_THREAD_SAFE", tests, open_locked_domain, close_domain) + \
			cmocka_run_group_tests_name("FI_SOCKADDR_IN", tests, open_socket_domain, close_domain) + \
			cmocka_run_group_tests_name("FI_SOCKADDR_IN6", tests, open_ipv6_domain, close_domain))

/** t_use_provider; who is known by IP and port alone, and has gone, is waited for one second. */
void pair_use_provider(void);

#endif
