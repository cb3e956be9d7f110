/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_DGRAM: what is refused, who is whom, what is heard of strangers, and what becomes of those who stay.
 */
#include "fi_dgram.h"
#include "own_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_rma.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is refused says so, and sends nothing. */
static void refusals(void **state)
{
	struct iovec nine[9] = {{out, 1}};
	struct fi_msg msg = {.msg_iov = nine, .iov_count = 1};
	struct t_domain rdm;
	struct t_end other;
	fi_addr_t foreign;

	(void)state;
	t_dgram_open(NULL, NULL);
	msg.addr = to;
	assert_int_equal(dgrams.info->ep_attr->max_msg_size, T_DGRAM_MAX);
	assert_int_equal(fi_send(sender.ep, out, T_DGRAM_MAX + 1, NULL, to, NULL), -FI_EMSGSIZE);
	assert_int_equal(fi_inject(sender.ep, out, 257, to), -FI_EMSGSIZE);
	assert_int_equal(fi_sendv(sender.ep, nine, NULL, 9, to, NULL), -FI_EINVAL);
	assert_int_equal(fi_recvv(receiver.ep, nine, NULL, 9, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(sender.ep, out, 1, NULL, to + 1, NULL), -FI_EINVAL);
	assert_int_equal(fi_sendmsg(sender.ep, &msg, FI_DELIVERY_COMPLETE), -FI_EBADFLAGS);
	assert_int_equal(fi_sendmsg(sender.ep, &msg, FI_FENCE), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(receiver.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_read(sender.ep, in, 1, NULL, to, 0, 0, NULL), -FI_EOPNOTSUPP);
	assert_true(fi_tsend(sender.ep, out, 1, NULL, to, 0, NULL) < 0);
	assert_int_equal(fi_connect(sender.ep, receiver.name, NULL, 0), -FI_ENOSYS);
	t_domain_open(&rdm, T_NATIVE, FI_THREAD_SAFE);
	t_end_open(&other, &rdm, NULL);
	foreign = t_insert(&sender, other.name);
	assert_int_equal(fi_send(sender.ep, out, 1, NULL, foreign, NULL), -FI_EINVAL);
	t_end_close(&other);
	t_domain_close(&rdm);
	t_nothing(sender.cq, receiver.cq);
	t_dgram_exchange(1, 0, FI_ADDR_NOTAVAIL);
	t_dgram_close();
}

/* What an endpoint needs before it is enabled, and what holds what. */
static void opening(void **state)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	enum fi_ep_type type;
	size_t len = 64;
	struct fid_domain *other;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_mr *mr;

	(void)state;
	t_domain_open_with(&dgrams, t_dgram_hints(&(struct t_dgram_how){0}));
	dgrams.info->domain_attr->mr_mode |= FI_MR_ENDPOINT;
	assert_int_equal(fi_domain(dgrams.fabric, dgrams.info, &other, NULL), -FI_EINVAL);
	dgrams.info->domain_attr->mr_mode &= ~FI_MR_ENDPOINT;
	type = dgrams.info->ep_attr->type;
	dgrams.info->ep_attr->type = FI_EP_RDM;
	assert_int_equal(fi_endpoint(dgrams.domain, dgrams.info, &ep, NULL), -FI_EINVAL);
	dgrams.info->ep_attr->type = type;
	assert_int_equal(fi_endpoint(dgrams.domain, dgrams.info, &ep, NULL), 0);
	assert_int_equal(fi_cq_open(dgrams.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_av_open(dgrams.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_recv(ep, in, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_trecv(ep, in, 1, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_getname(&ep->fid, in, &len), -FI_EOPBADSTATE);
	assert_int_equal(fi_cancel(&ep->fid, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_mr_reg(dgrams.domain, in, 9, FI_SEND | FI_RECV, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&mr->fid), 0);
	len = 5;
	assert_int_equal(fi_getname(&ep->fid, in, &len), -FI_ETOOSMALL);
	assert_int_equal(len, 40);
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&dgrams.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	t_domain_close(&dgrams);
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

/* Sends one to `n` and looks that the receiver does not take it. */
static void lost_at(const struct name *n)
{
	fi_addr_t number = t_insert(&sender, n);

	assert_int_equal(fi_inject(sender.ep, out, 8, number), 0);
	t_nothing(receiver.cq, sender.cq);
}

/*
 * Datagrams with another Q_Key or QPN than the receiver's, bytes that are no packet, and a packet that says all that it
 * wants but was not made for its port, are none for it. What is on the wire is UD's.
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
	t_dgram_open(NULL, NULL);
	good = name_of(&receiver);
	assert_int_equal(good.qkey, 0x11111111);
	assert_int_equal(good.version_qpn & 0xffffff, 0x10000 | (uint16_t)good.port);
	there.sin_port = htons((uint16_t)good.port);
	assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &receiver), 0);
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
	t_nothing(receiver.cq, sender.cq);
	close(fd);

	/* The receive is there still, and its own address, with and without QPN and Q_Key, is good. */
	for (int i = 0; i < 2; i++) {
		n = good;
		if (i)
			n.version_qpn &= 0xff000000, n.qkey = 0;
		assert_int_equal(fi_inject(sender.ep, out, 8, t_insert(&sender, &n)), 0);
		e = t_wait(receiver.cq, NULL, NULL);
		assert_int_equal(e.len, 8);
		assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &receiver), 0);
	}
	t_dgram_close();
}

/*
 * Others receive at the port of RoCEv2, whatever port they send from: who is known by that and by a QPN is found by it.
 */
static void others(void **state)
{
	struct name n;

	(void)state;
	t_dgram_open(NULL, NULL);
	n = name_of(&sender);
	n.port = 4791;
	n.version_qpn ^= 2;
	t_insert(&receiver, &n);
	t_dgram_exchange(9, 1, FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_remove(receiver.av, &(fi_addr_t){0}, 1, 0), 0);
	n.version_qpn ^= 2;
	t_dgram_exchange(9, 2, FI_ADDR_NOTAVAIL);
	t_dgram_exchange(9, 3, t_insert(&receiver, &n));
	t_dgram_close();
}

/* Of several queue pairs at one IP each is found, the first that came into the vector and the last. */
static void others_of_one_host(void **state)
{
	fi_addr_t number[3];
	struct name n;

	(void)state;
	for (unsigned which = 0; which < 3; which++) {
		t_dgram_open(NULL, NULL);
		for (unsigned i = 0; i < 3; i++) {
			n = name_of(&sender);
			n.port = 4791;
			n.version_qpn ^= 2 * (which ^ i);
			number[i] = t_insert(&receiver, &n);
		}
		t_dgram_exchange(9, which, number[which]);
		t_dgram_close();
	}
}

/* What a program has given for an address stands for it. */
static void named_by_the_program(void **state)
{
	fi_addr_t number = 0xabcdef;

	(void)state;
	t_dgram_open(NULL, NULL);
	assert_int_equal(fi_av_insert(receiver.av, sender.name, 1, &number, FI_AV_USER_ID, NULL), 1);
	t_dgram_exchange(4, 1, 0xabcdef);
	t_dgram_close();
}

/* Who closes with receives posted, and datagrams unread, leaves its peer in peace; another may take its place. */
static void closed(void **state)
{
	struct sockaddr_in name;

	(void)state;
	t_dgram_open(&(struct t_dgram_how){.format = FI_SOCKADDR_IN, .family = AF_INET}, NULL);
	t_end_close(&receiver);
	((struct sockaddr_in *)dgrams.info->src_addr)->sin_port = htons(own_port());
	t_end_open(&receiver, &dgrams, NULL);
	to = t_insert(&sender, receiver.name);
	memcpy(&name, receiver.name, sizeof(name));
	for (int i = 0; i < 60; i++) {
		if (i < 10)
			assert_int_equal(fi_recv(receiver.ep, in, T_DGRAM_MAX, NULL, 0, &receiver), 0);
		if (i == 30)
			t_end_close(&receiver);
		t_post(fi_inject(sender.ep, out, 100, to), sender.cq, NULL);
	}
	t_nothing(sender.cq, NULL);
	t_end_open(&receiver, &dgrams, NULL);
	assert_memory_equal(receiver.name, &name, sizeof(name));
	t_nothing(receiver.cq, sender.cq);
	t_dgram_exchange(77, 1, FI_ADDR_NOTAVAIL);
	t_dgram_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(opening),
		cmocka_unit_test(strangers),
		cmocka_unit_test(others),
		cmocka_unit_test(others_of_one_host),
		cmocka_unit_test(named_by_the_program),
		cmocka_unit_test(closed),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
