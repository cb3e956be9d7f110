/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_dgram.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

struct t_domain dgrams;
struct t_end sender, receiver;
fi_addr_t to;
unsigned char out[2 * T_DGRAM_MAX], in[2 * T_DGRAM_MAX];

struct fi_info *t_dgram_hints(const struct t_dgram_how *how)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct fi_info *hints = t_hints();

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->addr_format = how->format ? how->format : T_NATIVE;
	hints->domain_attr->threading = how->threading;
	hints->domain_attr->data_progress = how->progress;
	hints->rx_attr->size = how->rx_size;
	if (!how->family)
		return hints;
	hints->src_addrlen = how->family == AF_INET ? sizeof(in4) : sizeof(in6);
	hints->src_addr = malloc(hints->src_addrlen);
	assert_non_null(hints->src_addr);
	memcpy(hints->src_addr, how->family == AF_INET ? (void *)&in4 : (void *)&in6, hints->src_addrlen);
	return hints;
}

void t_dgram_open(const struct t_dgram_how *how, const struct t_options *o)
{
	static const struct t_dgram_how usual;

	t_domain_open_with(&dgrams, t_dgram_hints(how ? how : &usual));
	t_end_open(&sender, &dgrams, o);
	t_end_open(&receiver, &dgrams, o);
	to = t_insert(&sender, receiver.name);
}

void t_dgram_close(void)
{
	t_end_close(&sender);
	t_end_close(&receiver);
	t_domain_close(&dgrams);
}

void t_dgram_check(const struct fi_cq_tagged_entry *e, void *context, size_t len, unsigned seed)
{
	assert_ptr_equal(e->op_context, context);
	assert_int_equal(e->flags & ~(uint64_t)FI_REMOTE_CQ_DATA, FI_RECV | FI_MSG);
	assert_int_equal(e->len, len);
	assert_ptr_equal(e->buf, in);
	t_check(in, len, seed);
}

void t_dgram_exchange(size_t len, unsigned seed, fi_addr_t from)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source;

	t_fill(out, len, seed);
	memset(in, 0, sizeof(in));
	assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &receiver), 0);
	assert_int_equal(fi_send(sender.ep, out, len, NULL, to, &sender), 0);
	e = t_wait(sender.cq, NULL, &source);
	assert_ptr_equal(e.op_context, &sender);
	assert_int_equal(e.flags, FI_SEND | FI_MSG);
	e = t_wait(receiver.cq, NULL, &source);
	t_dgram_check(&e, &receiver, len, seed);
	assert_int_equal(source, from);
}
