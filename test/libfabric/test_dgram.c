/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_DGRAM: two endpoints (`a` sends, `b` receives) of a domain, each with a real socket. Between sockets of one
 * host a datagram is there when its send returns, so that what is not there after a look has been dropped.
 */
#include "fi_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_rma.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX 1024u /* bytes of a datagram */

static struct t_domain d;
static struct t_end a, b;
static fi_addr_t to; /* b, as a knows it */
static unsigned char out[2 * MAX], in[2 * MAX];

struct how {
	uint32_t format; /* 0: native */
	int family;      /* of loopback, to bind to; 0: to any */
	enum fi_progress progress;
	enum fi_threading threading;
	size_t rx_size;
};

static struct fi_info *hints_for(const struct how *how)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct fi_info *hints = t_hints();

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->addr_format = how->format ? how->format : 0x8052574b;
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

static void open_with(const struct how *how, const struct t_options *o)
{
	static const struct how usual;

	t_domain_open_with(&d, hints_for(how ? how : &usual));
	t_end_open(&a, &d, o);
	t_end_open(&b, &d, o);
	to = t_insert(&a, b.name);
}

static void close_all(void)
{
	t_end_close(&a);
	t_end_close(&b);
	t_domain_close(&d);
}

static void check_received(const struct fi_cq_tagged_entry *e, void *context, size_t len, unsigned seed)
{
	assert_ptr_equal(e->op_context, context);
	assert_int_equal(e->flags & ~(uint64_t)FI_REMOTE_CQ_DATA, FI_RECV | FI_MSG);
	assert_int_equal(e->len, len);
	assert_ptr_equal(e->buf, in);
	t_check(in, len, seed);
}

/* A datagram goes and comes: then what went before is gone. */
static void exchange(size_t len, unsigned seed, fi_addr_t from)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source;

	t_fill(out, len, seed);
	memset(in, 0, sizeof(in));
	assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &b), 0);
	assert_int_equal(fi_send(a.ep, out, len, NULL, to, &a), 0);
	e = t_wait(a.cq, NULL, &source);
	assert_ptr_equal(e.op_context, &a);
	assert_int_equal(e.flags, FI_SEND | FI_MSG);
	e = t_wait(b.cq, NULL, &source);
	check_received(&e, &b, len, seed);
	assert_int_equal(source, from);
}

/* Each length, with each kind of address, bound to any and to one; who sent it is known once it is inserted. */
static void lengths(void **state)
{
	static const struct how ways[] = {{0}, {.format = FI_SOCKADDR_IN}, {.format = FI_SOCKADDR_IN6},
		{.format = FI_SOCKADDR_IN, .family = AF_INET}, {.format = FI_SOCKADDR_IN6, .family = AF_INET6},
		{.threading = FI_THREAD_DOMAIN}};
	static const size_t len[] = {0, 1, 2, 3, 4, 255, 256, 257, MAX - 1, MAX};

	(void)state;
	for (unsigned w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		open_with(&ways[w], NULL);
		exchange(5, w, FI_ADDR_NOTAVAIL);
		t_insert(&b, b.name);
		t_insert(&b, a.name);
		for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++)
			exchange(len[i], w + i, 1);
		close_all();
	}
}

/* All calls that send and receive: pieces, data of 32 bits, injected ones whose memory is the caller's at once. */
static void calls(void **state)
{
	struct iovec pieces[2] = {{in, 100}, {in + 100, 900}}, from[3] = {{out, 1}, {NULL, 0}, {out + 1, 199}};
	struct fi_msg msg = {.msg_iov = from, .iov_count = 3, .context = &a, .data = 0x89abcdef};
	struct fi_msg recv_msg = {.msg_iov = pieces, .iov_count = 2, .context = &b};
	struct fi_cq_tagged_entry e;

	(void)state;
	open_with(NULL, NULL);
	msg.addr = to;
	for (int call = 0; call < 7; call++) {
		bool injected = call == 3 || call == 4, data = call == 1 || call == 2 || call == 4 || call == 6;
		struct fid_ep *ep = a.ep;

		memset(in, 0, sizeof(in));
		t_fill(out, 200, (unsigned)call);
		if (call % 2)
			assert_int_equal(fi_recvv(b.ep, pieces, NULL, 2, 0, &b), 0);
		else
			assert_int_equal(fi_recvmsg(b.ep, &recv_msg, FI_COMPLETION), 0);
		assert_int_equal(call == 0   ? fi_sendv(ep, from, NULL, 3, to, &a)
				 : call == 1 ? fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_MORE)
				 : call == 2 ? fi_senddata(ep, out, 200, NULL, 0x89abcdef, to, &a)
				 : call == 3 ? fi_inject(ep, out, 200, to)
				 : call == 4 ? fi_injectdata(ep, out, 200, 0x89abcdef, to)
				 : call == 5 ? fi_send(ep, out, 200, NULL, to, &a)
					     : fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA | FI_INJECT),
			0);
		memset(out, 0xee, 200); /* it is ours again, whatever the call */
		e = t_wait(b.cq, NULL, NULL);
		check_received(&e, &b, 200, (unsigned)call);
		assert_int_equal(!!(e.flags & FI_REMOTE_CQ_DATA), data);
		assert_int_equal(e.data, data ? 0x89abcdef : 0);
		if (injected) {
			t_nothing(a.cq, NULL);
			continue;
		}
		e = t_wait(a.cq, NULL, NULL);
		assert_ptr_equal(e.op_context, &a);
	}
	close_all();
}

/* What is refused says so, and sends nothing. */
static void refusals(void **state)
{
	struct iovec nine[9] = {{out, 1}};
	struct fi_msg msg = {.msg_iov = nine, .iov_count = 1};
	struct t_domain rdm;
	struct t_end other;
	fi_addr_t foreign;

	(void)state;
	open_with(NULL, NULL);
	msg.addr = to;
	assert_int_equal(d.info->ep_attr->max_msg_size, MAX);
	assert_int_equal(fi_send(a.ep, out, MAX + 1, NULL, to, NULL), -FI_EMSGSIZE);
	assert_int_equal(fi_inject(a.ep, out, 257, to), -FI_EMSGSIZE);
	assert_int_equal(fi_sendv(a.ep, nine, NULL, 9, to, NULL), -FI_EINVAL);
	assert_int_equal(fi_recvv(b.ep, nine, NULL, 9, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(a.ep, out, 1, NULL, to + 1, NULL), -FI_EINVAL);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE), -FI_EBADFLAGS);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_FENCE), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_read(a.ep, in, 1, NULL, to, 0, 0, NULL), -FI_EOPNOTSUPP);
	assert_true(fi_tsend(a.ep, out, 1, NULL, to, 0, NULL) < 0);
	assert_int_equal(fi_connect(a.ep, b.name, NULL, 0), -FI_ENOSYS);
	t_domain_open(&rdm, 0x8052574b, FI_THREAD_SAFE);
	t_end_open(&other, &rdm, NULL);
	foreign = t_insert(&a, other.name);
	assert_int_equal(fi_send(a.ep, out, 1, NULL, foreign, NULL), -FI_EINVAL);
	t_end_close(&other);
	t_domain_close(&rdm);
	t_nothing(a.cq, b.cq);
	exchange(1, 0, FI_ADDR_NOTAVAIL);
	close_all();
}

/* What an endpoint needs before it is enabled, and what holds what. */
static void opening(void **state)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	enum fi_ep_type type;
	size_t len = 64;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_mr *mr;

	(void)state;
	t_domain_open_with(&d, hints_for(&(struct how){0}));
	type = d.info->ep_attr->type;
	d.info->ep_attr->type = FI_EP_RDM;
	assert_int_equal(fi_endpoint(d.domain, d.info, &ep, NULL), -FI_EINVAL);
	d.info->ep_attr->type = type;
	assert_int_equal(fi_endpoint(d.domain, d.info, &ep, NULL), 0);
	assert_int_equal(fi_cq_open(d.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_av_open(d.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_recv(ep, in, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_getname(&ep->fid, in, &len), -FI_EOPBADSTATE);
	assert_int_equal(fi_cancel(&ep->fid, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_mr_reg(d.domain, in, 9, FI_SEND | FI_RECV, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&mr->fid), 0);
	len = 5;
	assert_int_equal(fi_getname(&ep->fid, in, &len), -FI_ETOOSMALL);
	assert_int_equal(len, 40);
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&d.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	t_domain_close(&d);
}

/* A datagram for which no receive is posted is dropped; the receive that is posted then takes the next one. */
static void without_a_receive(void **state)
{
	(void)state;
	open_with(NULL, NULL);
	t_fill(out, 10, 1);
	assert_int_equal(fi_inject(a.ep, out, 10, to), 0);
	t_nothing(b.cq, a.cq);
	exchange(10, 2, FI_ADDR_NOTAVAIL);
	t_nothing(b.cq, a.cq);
	close_all();
}

/* Of a datagram that is longer than its receive the beginning is there. */
static void truncated(void **state)
{
	struct fi_cq_err_entry e;

	(void)state;
	open_with(NULL, NULL);
	t_fill(out, 100, 3);
	memset(in, 0, sizeof(in));
	assert_int_equal(fi_recv(b.ep, in, 60, NULL, 0, &b), 0);
	assert_int_equal(fi_inject(a.ep, out, 100, to), 0);
	e = t_wait_error(b.cq, a.cq);
	assert_int_equal(e.err, FI_ETRUNC);
	assert_int_equal(e.olen, 40);
	assert_int_equal(e.len, 60);
	assert_ptr_equal(e.op_context, &b);
	t_check(in, 60, 3);
	assert_int_equal(in[60], 0);
	close_all();
}

/* As many receives as were asked for can be posted; one that is cancelled makes room, and takes nothing. */
static void posted(void **state)
{
	int tag[3];
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;

	(void)state;
	open_with(&(struct how){.rx_size = 3}, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &tag[i]), 0);
	assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, NULL), -FI_EAGAIN);
	assert_int_equal(fi_cancel(&b.ep->fid, &tag[0]), 0);
	assert_int_equal(fi_cancel(&b.ep->fid, &tag[0]), -FI_ENOENT);
	err = t_wait_error(b.cq, NULL);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &tag[0]);
	assert_int_equal(fi_inject(a.ep, out, 1, to), 0);
	e = t_wait(b.cq, NULL, NULL);
	assert_ptr_equal(e.op_context, &tag[1]);
	assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &tag[1]), 0);
	assert_int_equal(fi_inject(a.ep, out, 1, to), 0);
	e = t_wait(b.cq, NULL, NULL);
	assert_ptr_equal(e.op_context, &tag[2]);
	close_all();
}

/* In the native format QPN and Q_Key stand in the two places where other addresses have SRQ number and job. */
struct name {
	uint32_t version_qpn, flags, qkey, node;
	uint64_t port;
	uint8_t ip[16];
};

static struct name name_of(const struct t_end *e)
{
	struct name n;

	memcpy(&n, e->name, sizeof(n));
	return n;
}

/* A socket at loopback that is no endpoint. */
static int plain_socket(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &len), 0);
	return fd;
}

/* Sends one to `n` and looks that b does not take it. */
static void lost_at(const struct name *n)
{
	fi_addr_t number = t_insert(&a, n);

	assert_int_equal(fi_inject(a.ep, out, 8, number), 0);
	t_nothing(b.cq, a.cq);
}

/*
 * Datagrams with another Q_Key or QPN than b's, bytes that are no packet, and a packet that says all that b wants but
 * was not made for b's port, are none for b. What is on the wire is UD's.
 */
static void strangers(void **state)
{
	struct name n, good;
	struct sockaddr_in at, there = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t packet[2048];
	struct fi_cq_tagged_entry e;
	ssize_t len;
	int fd;

	(void)state;
	open_with(NULL, NULL);
	good = name_of(&b);
	assert_int_equal(good.qkey, 0x11111111);
	assert_int_equal(good.version_qpn & 0xffffff, 0x10000 | (uint16_t)good.port);
	there.sin_port = htons((uint16_t)good.port);
	assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &b), 0);
	n = good;
	n.qkey++;
	lost_at(&n);
	n = good;
	n.version_qpn ^= 1;
	lost_at(&n);

	fd = plain_socket(&at);
	n = good;
	n.port = ntohs(at.sin_port);
	memset(n.ip, 0, 16);
	memcpy(n.ip + 10, "\xff\xff\x7f\0\0\1", 6);
	lost_at(&n);
	len = recv(fd, packet, sizeof(packet), 0);
	assert_int_equal(len, 12 + 8 + 8 + 4);
	assert_int_equal(packet[0], 0x64);
	assert_memory_equal(packet + 12, "\x11\x11\x11\x11", 4);
	assert_int_equal(sendto(fd, packet, (size_t)len, 0, (struct sockaddr *)&there, sizeof(there)), len);
	assert_int_equal(sendto(fd, "", 0, 0, (struct sockaddr *)&there, sizeof(there)), 0);
	assert_int_equal(sendto(fd, packet, 19, 0, (struct sockaddr *)&there, sizeof(there)), 19);
	assert_int_equal(sendto(fd, out, 1500, 0, (struct sockaddr *)&there, sizeof(there)), 1500);
	t_nothing(b.cq, a.cq);
	close(fd);

	/* The receive is there still, and b's own address, with and without QPN and Q_Key, is good. */
	for (int i = 0; i < 2; i++) {
		n = good;
		if (i)
			n.version_qpn &= 0xff000000, n.qkey = 0;
		assert_int_equal(fi_inject(a.ep, out, 8, t_insert(&a, &n)), 0);
		e = t_wait(b.cq, NULL, NULL);
		assert_int_equal(e.len, 8);
		assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &b), 0);
	}
	close_all();
}

/*
 * Others receive at the port of RoCEv2, whatever port they send from: who is known by that and by a QPN is found by it.
 */
static void others(void **state)
{
	struct name n;

	(void)state;
	open_with(NULL, NULL);
	n = name_of(&a);
	n.port = 4791;
	n.version_qpn ^= 2;
	t_insert(&b, &n);
	exchange(9, 1, FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_remove(b.av, &(fi_addr_t){0}, 1, 0), 0);
	n.version_qpn ^= 2;
	exchange(9, 2, FI_ADDR_NOTAVAIL);
	exchange(9, 3, t_insert(&b, &n));
	close_all();
}

/* What a program has given for an address stands for it. */
static void named_by_the_program(void **state)
{
	fi_addr_t number = 0xabcdef;

	(void)state;
	open_with(NULL, NULL);
	assert_int_equal(fi_av_insert(b.av, a.name, 1, &number, FI_AV_USER_ID, NULL), 1);
	exchange(4, 1, 0xabcdef);
	close_all();
}

/* Who closes with receives posted, and datagrams unread, leaves its peer in peace; another may take its place. */
static void closed(void **state)
{
	struct sockaddr_in name;
	struct fi_info *info;

	(void)state;
	open_with(&(struct how){.format = FI_SOCKADDR_IN, .family = AF_INET}, NULL);
	memcpy(&name, b.name, sizeof(name));
	for (int i = 0; i < 60; i++) {
		if (i < 10)
			assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &b), 0);
		if (i == 30)
			t_end_close(&b);
		t_post(fi_inject(a.ep, out, 100, to), a.cq, NULL);
	}
	t_nothing(a.cq, NULL);
	info = fi_dupinfo(d.info);
	memcpy(d.info->src_addr, &name, sizeof(name)); /* b's port is free */
	t_end_open(&b, &d, NULL);
	memcpy(d.info->src_addr, info->src_addr, sizeof(name));
	fi_freeinfo(info);
	assert_memory_equal(b.name, &name, sizeof(name));
	t_nothing(b.cq, a.cq);
	exchange(77, 1, FI_ADDR_NOTAVAIL);
	close_all();
}

/* Counters count what goes and what comes, and wake who waits for them; queues have what is asked for alone. */
static void counters(void **state)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
	struct t_options o = {.bind_flags = FI_SELECTIVE_COMPLETION};

	(void)state;
	t_domain_open_with(&d, hints_for(&(struct how){0}));
	assert_int_equal(fi_cntr_open(d.domain, &attr, &o.tx_cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(d.domain, &attr, &o.rx_cntr, NULL), 0);
	t_end_open(&a, &d, &o);
	to = t_insert(&a, a.name);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fi_recv(a.ep, in, MAX, NULL, 0, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(i % 2 ? fi_send(a.ep, out, 9, NULL, to, NULL) : fi_inject(a.ep, out, 9, to), 0);
	assert_int_equal(fi_cntr_read(o.tx_cntr), 4);
	assert_int_equal(fi_cntr_wait(o.rx_cntr, 4, T_PATIENCE), 0);
	assert_int_equal(fi_cntr_wait(o.rx_cntr, 5, 20), -FI_ETIMEDOUT);
	assert_int_equal(fi_cntr_read(o.rx_cntr), 4);
	t_nothing(a.cq, NULL);
	t_end_close(&a);
	assert_int_equal(fi_close(&o.tx_cntr->fid), 0);
	assert_int_equal(fi_close(&o.rx_cntr->fid), 0);
	t_domain_close(&d);
}

static void *send_later(void *arg)
{
	(void)arg;
	usleep(50000);
	assert_int_equal(fi_inject(a.ep, out, 20, to), 0);
	return NULL;
}

/* Who sleeps, in fi_cq_sread and on the queue's descriptor, is woken by a datagram; sleep is what happens. */
static void asleep(void **state)
{
	struct t_options o = {.wait = FI_WAIT_FD};
	struct fi_cq_tagged_entry e;
	struct pollfd p = {.events = POLLIN};
	struct fid *fids[1];
	pthread_t thread;

	(void)state;
	open_with(NULL, &o);
	fids[0] = &b.cq->fid;
	assert_int_equal(fi_control(&b.cq->fid, FI_GETWAIT, &p.fd), 0);
	for (int way = 0; way < 2; way++) {
		assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &b), 0);
		assert_int_equal(fi_cq_sread(b.cq, &e, 1, NULL, 10), -FI_EAGAIN);
		assert_int_equal(pthread_create(&thread, NULL, send_later, NULL), 0);
		if (way == 0) {
			assert_int_equal(fi_cq_sread(b.cq, &e, 1, NULL, T_PATIENCE), 1);
		} else {
			while (fi_trywait(d.fabric, fids, 1) == 0)
				assert_int_equal(poll(&p, 1, T_PATIENCE), 1);
			e = t_wait(b.cq, NULL, NULL);
		}
		assert_int_equal(e.len, 20);
		pthread_join(thread, NULL);
	}
	assert_int_equal(fi_trywait(d.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	close_all();
}

/* With automatic progress a datagram takes its receive while the program calls nothing. */
static void by_itself(void **state)
{
	volatile unsigned char *last = in + 9;
	int64_t end = t_now() + T_PATIENCE;
	struct fi_cq_tagged_entry e;

	(void)state;
	open_with(&(struct how){.progress = FI_PROGRESS_AUTO}, NULL);
	memset(in, 0, sizeof(in));
	memset(out, 1, 10);
	assert_int_equal(fi_recv(b.ep, in, MAX, NULL, 0, &b), 0);
	assert_int_equal(fi_inject(a.ep, out, 10, to), 0);
	while (!*last) {
		if (t_now() > end)
			fail_msg("no progress");
		usleep(1000);
	}
	e = t_wait(b.cq, NULL, NULL);
	assert_int_equal(e.len, 10);
	close_all();
}

/* Many at once: those that find a receive come whole and in the order in which one socket gives them to another. */
static void many(void **state)
{
	static unsigned char place[128][MAX];
	unsigned next = 0;
	int64_t end = t_now() + T_PATIENCE;

	(void)state;
	open_with(NULL, NULL);
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned i = 0; i < 128; i++)
			assert_int_equal(fi_recv(b.ep, place[i], MAX, NULL, 0, place[i]), 0);
		for (unsigned i = 0; i < 128; i++) {
			t_fill(out, 128 + i, round + i);
			t_post(fi_inject(a.ep, out, 1 + i, to), a.cq, NULL);
		}
		for (unsigned i = 0; i < 128 && t_now() < end; i++, next++) {
			struct fi_cq_tagged_entry e = t_wait(b.cq, NULL, NULL);

			assert_ptr_equal(e.op_context, place[i]);
			assert_int_equal(e.len, 1 + i);
			t_check(place[i], e.len, round + i);
		}
	}
	assert_int_equal(next, 8 * 128);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(calls),
		cmocka_unit_test(refusals),
		cmocka_unit_test(opening),
		cmocka_unit_test(without_a_receive),
		cmocka_unit_test(truncated),
		cmocka_unit_test(posted),
		cmocka_unit_test(strangers),
		cmocka_unit_test(others),
		cmocka_unit_test(named_by_the_program),
		cmocka_unit_test(closed),
		cmocka_unit_test(counters),
		cmocka_unit_test(asleep),
		cmocka_unit_test(by_itself),
		cmocka_unit_test(many),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
