/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects by themselves: opening, binding, enabling, closing in and out of order, address vectors, event queues, names
 * and options.
 */
#include "fi_test.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>

static struct t_domain native, sockets;

static int open_domains(void **state)
{
	(void)state;
	t_domain_open(&native, 0, FI_THREAD_DOMAIN);
	t_domain_open(&sockets, FI_SOCKADDR_IN, FI_THREAD_SAFE);
	return 0;
}

static int close_domains(void **state)
{
	(void)state;
	t_domain_close(&sockets);
	t_domain_close(&native);
	return 0;
}

/* Every call within a table's declared size is a function. */
static void check_table(const char *name, const void *table)
{
	size_t size = *(const size_t *)table;

	assert_true(size >= 2 * sizeof(void *));
	for (size_t at = sizeof(size_t); at < size; at += sizeof(void *)) {
		if (!*(void *const *)((const char *)table + at))
			fail_msg("%s: no function at %zu of %zu", name, at, size);
	}
}

static void tables_are_full(void **state)
{
	struct fid_cntr *cntr;
	struct fid_eq *eq;
	struct fid_mr *mr;
	struct t_end e;

	(void)state;
	t_end_open(&e, &native, NULL);
	assert_int_equal(fi_cntr_open(native.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_eq_open(native.fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_mr_reg(native.domain, &e, sizeof(e), FI_SEND | FI_RECV, 0, 7, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_key(mr), 7);
	check_table("fabric", native.fabric->fid.ops);
	check_table("fabric calls", native.fabric->ops);
	check_table("domain", native.domain->fid.ops);
	check_table("domain calls", native.domain->ops);
	check_table("mr calls", native.domain->mr);
	check_table("mr", mr->fid.ops);
	check_table("ep", e.ep->fid.ops);
	check_table("ep calls", e.ep->ops);
	check_table("cm", e.ep->cm);
	check_table("msg", e.ep->msg);
	check_table("tagged", e.ep->tagged);
	check_table("rma", e.ep->rma);
	check_table("atomic", e.ep->atomic);
	check_table("collective", e.ep->collective);
	check_table("cq", e.cq->fid.ops);
	check_table("cq calls", e.cq->ops);
	check_table("av", e.av->fid.ops);
	check_table("av calls", e.av->ops);
	check_table("cntr", cntr->fid.ops);
	check_table("cntr calls", cntr->ops);
	check_table("eq", eq->fid.ops);
	check_table("eq calls", eq->ops);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	t_end_close(&e);
}

/* What is not claimed answers and does nothing. */
static void absent_calls(void **state)
{
	uint64_t word = 5;
	struct fid_mr *mr;
	struct t_end e;

	(void)state;
	t_end_open(&e, &native, NULL);
	assert_int_equal(fi_barrier(e.ep, 0, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_connect(e.ep, e.name, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_mr_reg(native.domain, &word, 8, FI_MULTI_RECV, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_reg(native.domain, &word, 8, FI_REMOTE_READ, 8, 0, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(
		fi_mr_reg(native.domain, &word, 8, FI_REMOTE_READ, 0, 0, FI_RMA_PMEM, &mr, NULL), -FI_EBADFLAGS);
	assert_int_equal(word, 5);
	t_end_close(&e);
}

/* An object that is in use refuses to close. */
static void close_order(void **state)
{
	struct t_domain d;
	struct t_end e;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	assert_int_equal(fi_close(&d.fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&d.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e.cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e.av->fid), -FI_EBUSY);
	t_end_close(&e);
	t_domain_close(&d);
}

/* fi_enable says what is missing; calls before it say that they come too early. */
static void enable_rules(void **state)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {0};
	unsigned char name[64];
	size_t len = sizeof(name);
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	char byte = 0;

	(void)state;
	assert_int_equal(fi_endpoint(native.domain, native.info, &ep, NULL), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	assert_int_equal(fi_av_open(native.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(av_attr.type, FI_AV_TABLE);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_cq_open(native.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ); /* none for receives */
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_RECV), 0);
	assert_int_equal(fi_tsend(ep, &byte, 1, NULL, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_recv(ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_cancel(&ep->fid, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_getname(&ep->fid, name, &len), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_tsend(ep, &byte, 1, NULL, 0, 0, NULL), -FI_EINVAL); /* nobody is inserted */
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
}

/* Objects of one domain are not bound to endpoints of another. */
static void foreign_objects(void **state)
{
	struct fi_cq_attr cq_attr = {0};
	struct fi_av_attr av_attr = {0};
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;

	(void)state;
	assert_int_equal(fi_endpoint(native.domain, native.info, &ep, NULL), 0);
	assert_int_equal(fi_cq_open(sockets.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_av_open(sockets.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &native.domain->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
}

/* What cannot be opened says so. */
static void refused_attributes(void **state)
{
	struct fi_av_attr flags = {.flags = FI_MORE}, nameless = {.flags = FI_READ}, contexts = {.rx_ctx_bits = 17};
	struct fi_cq_attr set = {.wait_obj = FI_WAIT_SET}, format = {.format = (enum fi_cq_format)9};
	struct fi_cntr_attr mutex = {.wait_obj = FI_WAIT_MUTEX_COND};
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_av *av;

	(void)state;
	assert_int_equal(fi_av_open(native.domain, &flags, &av, NULL), -FI_ENOSYS);
	assert_int_equal(fi_av_open(native.domain, &nameless, &av, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_open(native.domain, &contexts, &av, NULL), -FI_EINVAL);
	assert_int_equal(fi_cq_open(native.domain, &set, &cq, NULL), -FI_EINVAL); /* there is none */
	assert_int_equal(fi_cq_open(native.domain, &format, &cq, NULL), -FI_ENOSYS);
	assert_int_equal(fi_cntr_open(native.domain, &mutex, &cntr, NULL), -FI_ENOSYS);
}

static struct sockaddr_in socket_address(uint32_t ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	in.sin_addr.s_addr = htonl(ip);
	return in;
}

/* Numbers count up in the order of insertion; a removed one is given out again; bad addresses are told one by one. */
static void av_table(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct sockaddr_in in[4], out;
	fi_addr_t number[4];
	size_t len = sizeof(out);
	struct fid_av *av;
	int errors[4];
	char text[64];

	(void)state;
	assert_int_equal(fi_av_open(sockets.domain, &attr, &av, NULL), 0);
	for (int i = 0; i < 4; i++)
		in[i] = socket_address(INADDR_LOOPBACK, (uint16_t)(5000 + i));
	in[2].sin_family = AF_UNIX;
	assert_int_equal(fi_av_insert(av, in, 4, number, FI_SYNC_ERR, errors), 3);
	assert_int_equal(number[0], 0);
	assert_int_equal(number[1], 1);
	assert_int_equal(number[2], FI_ADDR_NOTAVAIL);
	assert_int_equal(number[3], 2);
	assert_int_equal(errors[0], 0);
	assert_int_equal(errors[2], FI_EINVAL);
	assert_int_equal(fi_av_lookup(av, 1, &out, &len), 0);
	assert_int_equal(len, sizeof(out));
	assert_int_equal(ntohs(out.sin_port), 5001);
	len = 2;
	assert_int_equal(fi_av_lookup(av, 1, &out, &len), 0);
	assert_int_equal(len, sizeof(out));
	assert_int_equal(fi_av_remove(av, &number[1], 1, 0), 0);
	assert_int_equal(fi_av_remove(av, &number[1], 1, 0), -FI_EINVAL);
	len = sizeof(out);
	assert_int_equal(fi_av_lookup(av, 1, &out, &len), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, &in[1], 1, &number[1], 0, NULL), 1);
	assert_int_equal(number[1], 1);
	assert_int_equal(fi_av_insert(av, &in[0], 1, NULL, FI_AV_USER_ID, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, NULL, 1, &number[1], 0, NULL), -FI_EINVAL);
	len = sizeof(text);
	assert_string_equal(fi_av_straddr(av, &in[0], text, &len), "fi_sockaddr_in://127.0.0.1:5000");
	assert_int_equal(len, strlen(text) + 1);
	assert_int_equal(fi_close(&av->fid), 0);
}

/* The first IP of an interface other than loopback, or 0. */
static uint32_t interface_ip(void)
{
	struct ifaddrs *all;
	uint32_t ip = 0;

	assert_int_equal(getifaddrs(&all), 0);
	for (struct ifaddrs *i = all; i && !ip; i = i->ifa_next) {
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
			ip = ntohl(((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr.s_addr);
		if (ip >> 24 == IN_LOOPBACKNET)
			ip = 0;
	}
	freeifaddrs(all);
	return ip;
}

/* One byte to a number of `from`'s vector: the number that it has at `to`. */
static fi_addr_t send_byte(struct t_end *from, fi_addr_t number, struct t_end *to)
{
	fi_addr_t source;
	char in;

	assert_int_equal(fi_trecv(to->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
	t_post(fi_tinject(from->ep, "x", 1, number, 0), from->cq, to->cq);
	t_wait(to->cq, from->cq, &source);
	assert_int_equal(in, 'x');
	return source;
}

/* Opens an end that has that IP. */
static void open_at(struct t_end *e, uint32_t ip)
{
	struct sockaddr_in *source = sockets.info->src_addr;
	struct in_addr before = source->sin_addr;

	source->sin_addr.s_addr = htonl(ip);
	t_end_open(e, &sockets, NULL);
	source->sin_addr = before;
}

/* a has the IP `own`, b knows it by the IP `known`, both of this host; `first`: b speaks first. */
static void by_other_ip(uint32_t own, uint32_t known, bool first)
{
	struct sockaddr_in in, out;
	size_t len = sizeof(out);
	fi_addr_t to_a, to_b;
	struct t_end a, b;

	open_at(&a, own);
	t_end_open(&b, &sockets, NULL);
	memcpy(&in, a.name, sizeof(in));
	assert_int_equal(ntohl(in.sin_addr.s_addr), own);
	in.sin_addr.s_addr = htonl(known);
	to_b = t_insert(&a, b.name);
	t_insert(&b, b.name);
	to_a = t_insert(&b, &in);
	assert_int_equal(fi_av_lookup(b.av, to_a, &out, &len), 0);
	assert_memory_equal(&out, &in, sizeof(in));
	if (first)
		assert_int_equal(send_byte(&b, to_a, &a), to_b);
	assert_int_equal(send_byte(&a, to_b, &b), to_a);
	assert_int_equal(send_byte(&b, to_a, &a), to_b);
	t_end_close(&a);
	t_end_close(&b);
}

/*
 * A host has several IPs, and an endpoint is reached by each of them: its messages have the number under which it was
 * inserted, by whichever IP, answers arrive, and a look-up gives what was inserted.
 */
static void av_other_ip(void **state)
{
	uint32_t ips[] = {INADDR_LOOPBACK, INADDR_LOOPBACK + 1, interface_ip()};

	(void)state;
	for (int own = 0; own < 3 && ips[own]; own++) {
		for (int known = 0; known < 3 && ips[known]; known++) {
			by_other_ip(ips[own], ips[known], false);
			by_other_ip(ips[own], ips[known], true);
		}
	}
}

/* Nodes and services by name, one and many. */
static void av_names(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_MAP};
	struct sockaddr_in out;
	size_t len = sizeof(out);
	fi_addr_t number[6];
	struct fid_av *av;

	(void)state;
	assert_int_equal(fi_av_open(sockets.domain, &attr, &av, NULL), 0);
	assert_int_equal(fi_av_insertsvc(av, "127.0.0.1", "6000", number, 0, NULL), 1);
	assert_int_equal(fi_av_insertsym(av, "127.0.0.1", 2, "6001", 3, number, 0, NULL), 6);
	assert_int_equal(fi_av_lookup(av, number[5], &out, &len), 0);
	assert_int_equal(ntohs(out.sin_port), 6003);
	assert_int_equal(ntohl(out.sin_addr.s_addr), INADDR_LOOPBACK + 1);
	assert_int_equal(
		fi_av_insertsym(av, "127.0.0.1", 1, "65535", 2, number, 0, NULL), 1); /* there is no port 65536 */
	assert_int_equal(number[1], FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_close(&av->fid), 0);
}

/*
 * Names of hosts count by the numbers at their ends; behind one without a number there is none. These names are such
 * as the resolver takes for IPs, and asks nobody; of IPs the next one would be 0x7f00000a.
 */
static void av_hosts(void **state)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	uint32_t ips[] = {0x7f000009, 0x7f000009, 0x7f000010, 0x7f000010};
	struct sockaddr_in out;
	size_t len = sizeof(out);
	fi_addr_t number[4];
	struct fid_av *av;
	int errors[4];

	(void)state;
	assert_int_equal(fi_av_open(sockets.domain, &attr, &av, NULL), 0);
	assert_int_equal(fi_av_insertsym(av, "0x7f000009", 2, "6001", 2, number, 0, NULL), 4);
	for (fi_addr_t i = 0; i < 4; i++) {
		assert_int_equal(number[i], i);
		assert_int_equal(fi_av_lookup(av, i, &out, &len), 0);
		assert_int_equal(ntohl(out.sin_addr.s_addr), ips[i]);
		assert_int_equal(ntohs(out.sin_port), 6001 + i % 2);
	}
	assert_int_equal(fi_av_insertsym(av, "0x7f0000aa", 2, "6001", 1, number, FI_SYNC_ERR, errors), 1);
	assert_int_equal(number[0], 4);
	assert_int_equal(errors[0], 0);
	assert_int_equal(number[1], FI_ADDR_NOTAVAIL);
	assert_int_equal(errors[1], FI_EINVAL);
	assert_int_equal(fi_close(&av->fid), 0);
}

/* Bytes that the process has allocated; always 0 where a sanitizer allocates. */
static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/*
 * Many addresses, native: each is found again under its number after the table has grown, also with removals in
 * between. With the 8 bytes that an endpoint may take for it, one that is not talked to costs at most 64.
 */
static void av_grows(void **state)
{
	enum { COUNT = 1 << 17 };
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	uint64_t name[5], back[5];
	size_t len, before;
	fi_addr_t number;
	struct fid_av *av;
	struct t_end e;

	(void)state;
	t_end_open(&e, &native, NULL);
	assert_int_equal(e.name_len, sizeof(name));
	memcpy(name, e.name, sizeof(name));
	t_end_close(&e);
	before = allocated();
	assert_int_equal(fi_av_open(native.domain, &attr, &av, NULL), 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		name[2] = i << 16 | 4711;
		assert_int_equal(fi_av_insert(av, name, 1, &number, 0, NULL), 1);
		assert_int_equal(number, i);
	}
	assert_in_range(allocated() - before, 0, COUNT * (64 - sizeof(void *)));
	for (number = 0; number < COUNT; number += 3)
		assert_int_equal(fi_av_remove(av, &number, 1, 0), 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		len = sizeof(back);
		assert_int_equal(fi_av_lookup(av, i, back, &len), i % 3 ? 0 : -FI_EINVAL);
		if (i % 3)
			assert_int_equal(back[2], i << 16 | 4711);
	}
	((unsigned char *)name)[3] = 99; /* a version that is not ours */
	assert_int_equal(fi_av_insert(av, name, 1, &number, 0, NULL), 0);
	assert_int_equal(fi_close(&av->fid), 0);
}

/* The name fits, or says how much it needs; a name set before is the one it gets. */
static void names(void **state)
{
	struct sockaddr_in want = socket_address(INADDR_LOOPBACK, 0), got;
	struct fi_cq_attr cq_attr = {0};
	struct fi_av_attr av_attr = {0};
	size_t len = 3;
	struct fid_cq *cq;
	struct fid_av *av;
	struct t_end e;
	struct fid_ep *ep;
	uint16_t port;

	(void)state;
	t_end_open(&e, &sockets, NULL);
	assert_int_equal(fi_getname(&e.ep->fid, &got, &len), -FI_ETOOSMALL);
	assert_int_equal(len, sizeof(got));
	assert_int_equal(fi_getname(&e.ep->fid, &got, &len), 0);
	assert_int_equal(got.sin_family, AF_INET);
	port = ntohs(got.sin_port);
	assert_int_not_equal(port, 0);
	t_end_close(&e);

	want.sin_port = htons(port); /* free a moment ago */
	assert_int_equal(fi_endpoint(sockets.domain, sockets.info, &ep, NULL), 0);
	assert_int_equal(fi_setname(&ep->fid, &want, sizeof(want)), 0);
	assert_int_equal(fi_cq_open(sockets.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_av_open(sockets.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_getname(&ep->fid, &got, &len), 0);
	assert_memory_equal(&got, &want, sizeof(got));
	assert_int_equal(fi_setname(&ep->fid, &want, sizeof(want)), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
}

static void options(void **state)
{
	size_t value = 0, len = sizeof(value);
	struct t_end e;

	(void)state;
	t_end_open(&e, &native, NULL);
	value = 4096;
	assert_int_equal(fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)), 0);
	value = 0;
	assert_int_equal(fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len), 0);
	assert_int_equal(value, 4096);
	assert_int_equal(
		fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &value, sizeof(value)), -FI_ENOPROTOOPT);
	assert_int_equal(fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &len), -FI_ENOPROTOOPT);
	assert_int_equal(fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1), -FI_EINVAL);
	t_end_close(&e);
}

/* Events come out as they went in, once, in order; the descriptor and fi_trywait follow. */
static void event_queue(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fi_eq_entry in = {.data = 1}, out;
	struct pollfd p = {.events = POLLIN};
	struct fi_eq_err_entry err;
	struct fid *fid;
	struct fid_eq *eq;
	uint32_t event = 0;
	int64_t start;

	(void)state;
	assert_int_equal(fi_eq_open(native.fabric, &attr, &eq, NULL), 0);
	fid = &eq->fid;
	assert_int_equal(fi_control(fid, FI_GETWAIT, &p.fd), 0);
	assert_int_equal(fi_eq_read(eq, &event, &out, sizeof(out), 0), -FI_EAGAIN);
	assert_int_equal(fi_trywait(native.fabric, &fid, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	start = t_now();
	assert_int_equal(fi_eq_sread(eq, &event, &out, sizeof(out), 20, 0), -FI_EAGAIN);
	assert_true(t_now() - start >= 19);
	for (in.data = 1; in.data <= 2; in.data++)
		assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	assert_int_equal(fi_trywait(native.fabric, &fid, 1), -FI_EAGAIN);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(fi_eq_read(eq, &event, &out, 1, 0), -FI_ETOOSMALL);
	assert_int_equal(fi_eq_read(eq, &event, &out, sizeof(out), FI_PEEK), sizeof(out));
	assert_int_equal(out.data, 1);
	for (uint64_t i = 1; i <= 2; i++) {
		assert_int_equal(fi_eq_sread(eq, &event, &out, sizeof(out), T_PATIENCE, 0), sizeof(out));
		assert_int_equal(event, FI_NOTIFY);
		assert_int_equal(out.data, i);
	}
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_close(fid), 0);
}

/* A domain takes one event queue of its fabric, and holds it; registrations do not end later. */
static void event_queue_of_domain(void **state)
{
	struct fi_eq_attr attr = {0};
	struct fid_eq *eq, *other, *foreign;
	struct t_domain d;

	(void)state;
	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	assert_int_equal(fi_eq_open(d.fabric, &attr, &eq, NULL), 0);
	assert_int_equal(fi_eq_open(d.fabric, &attr, &other, NULL), 0);
	assert_int_equal(fi_eq_open(native.fabric, &attr, &foreign, NULL), 0);
	assert_int_equal(fi_domain_bind(d.domain, &eq->fid, 1ULL << 59), -FI_EBADFLAGS); /* FI_REG_MR */
	assert_int_equal(fi_domain_bind(d.domain, &d.domain->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_domain_bind(d.domain, &foreign->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_domain_bind(d.domain, &eq->fid, 0), 0);
	assert_int_equal(fi_domain_bind(d.domain, &other->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&d.domain->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fi_close(&foreign->fid), 0);
	assert_int_equal(fi_close(&d.fabric->fid), 0);
	fi_freeinfo(d.info);
}

/* An event queue that yields the core can be waited for, but has no descriptor; one without a wait object cannot. */
static void event_queue_waits(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_YIELD};
	struct fi_eq_entry out;
	struct fid_eq *eq;
	uint32_t event;
	int fd;

	(void)state;
	assert_int_equal(fi_eq_open(native.fabric, &attr, &eq, NULL), 0);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
	assert_int_equal(fi_eq_sread(eq, &event, &out, sizeof(out), 1, 0), -FI_EAGAIN);
	assert_int_equal(fi_close(&eq->fid), 0);
	attr.wait_obj = FI_WAIT_NONE;
	assert_int_equal(fi_eq_open(native.fabric, &attr, &eq, NULL), 0);
	assert_int_equal(fi_eq_sread(eq, &event, &out, sizeof(out), 1, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&eq->fid), 0);
}

/* A counter does what it is told, by itself. */
static void counter_alone(void **state)
{
	struct fid_cntr *cntr;
	int64_t start;

	(void)state;
	assert_int_equal(fi_cntr_open(native.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_set(cntr, 5), 0);
	assert_int_equal(fi_cntr_add(cntr, 2), 0);
	assert_int_equal(fi_cntr_read(cntr), 7);
	assert_int_equal(fi_cntr_wait(cntr, 7, 0), 0);
	start = t_now();
	assert_int_equal(fi_cntr_wait(cntr, 8, 20), -FI_ETIMEDOUT);
	assert_true(t_now() - start >= 19);
	assert_int_equal(fi_cntr_seterr(cntr, 3), 0);
	assert_int_equal(fi_cntr_adderr(cntr, 1), 0);
	assert_int_equal(fi_cntr_readerr(cntr), 4);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_full),
		cmocka_unit_test(absent_calls),
		cmocka_unit_test(close_order),
		cmocka_unit_test(enable_rules),
		cmocka_unit_test(foreign_objects),
		cmocka_unit_test(refused_attributes),
		cmocka_unit_test(av_table),
		cmocka_unit_test(av_other_ip),
		cmocka_unit_test(av_names),
		cmocka_unit_test(av_hosts),
		cmocka_unit_test(av_grows),
		cmocka_unit_test(names),
		cmocka_unit_test(options),
		cmocka_unit_test(event_queue),
		cmocka_unit_test(event_queue_waits),
		cmocka_unit_test(event_queue_of_domain),
		cmocka_unit_test(counter_alone),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, open_domains, close_domains);
}
