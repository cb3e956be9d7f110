/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

struct t_domain pair_domain;

void pair_open(struct pair *p, const struct t_options *o)
{
	t_end_open(&p->a, &pair_domain, o);
	t_end_open(&p->b, &pair_domain, o);
	p->to_b = t_insert(&p->a, p->b.name);
	p->to_a = t_insert(&p->b, p->a.name);
}

void pair_close(struct pair *p)
{
	t_end_close(&p->a);
	t_end_close(&p->b);
}

void exchange(struct pair *p, size_t len, uint64_t tag, bool expected)
{
	char *out = malloc(len + 1), *in = calloc(1, len + 1);
	struct fi_cq_tagged_entry sent, got;

	assert_true(out && in);
	t_fill(out, len, (unsigned)tag);
	if (expected)
		assert_int_equal(fi_trecv(p->b.ep, in, len, NULL, FI_ADDR_UNSPEC, tag, 0, in), 0);
	t_post(fi_tsend(p->a.ep, out, len, NULL, p->to_b, tag, out), p->a.cq, p->b.cq);
	if (!expected) {
		for (int i = 0; i < 50; i++) {
			t_drive(p->a.cq);
			t_drive(p->b.cq);
		}
		assert_int_equal(fi_trecv(p->b.ep, in, len, NULL, FI_ADDR_UNSPEC, tag, 0, in), 0);
	}
	got = t_wait(p->b.cq, p->a.cq, NULL);
	sent = t_wait(p->a.cq, p->b.cq, NULL);
	assert_ptr_equal(sent.op_context, out);
	assert_int_equal(sent.flags, FI_SEND | FI_TAGGED);
	assert_ptr_equal(got.op_context, in);
	assert_int_equal(got.flags, FI_RECV | FI_TAGGED);
	assert_int_equal(got.len, len);
	assert_int_equal(got.tag, tag);
	t_check(in, len, (unsigned)tag);
	free(out);
	free(in);
}

int open_domain(void **state)
{
	(void)state;
	t_domain_open(&pair_domain, 0, FI_THREAD_DOMAIN);
	return 0;
}

int open_locked_domain(void **state)
{
	(void)state;
	t_domain_open(&pair_domain, 0, FI_THREAD_SAFE);
	return 0;
}

int open_socket_domain(void **state)
{
	(void)state;
	t_domain_open(&pair_domain, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	return 0;
}

int open_ipv6_domain(void **state)
{
	(void)state;
	t_domain_open(&pair_domain, FI_SOCKADDR_IN6, FI_THREAD_DOMAIN);
	return 0;
}

int close_domain(void **state)
{
	(void)state;
	t_domain_close(&pair_domain);
	return 0;
}

void pair_use_provider(void)
{
	t_use_provider();
	setenv("FI_ROPEWALK_CONNECT_WAIT", "1", 1);
}
