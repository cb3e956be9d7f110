/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with a datagram endpoint of ropewalk's and a peer that is none: a queue pair of verbs_dgram, to which it
 * sends datagrams of many lengths, and compares every byte of the answers.
 *
 *   fi_dgram [-n COUNT] OWN-IPv4 IPv4-OF-THE-OTHER [TCP-PORT]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NATIVE   0x8052574bu
#define QPN      0x00abcdu
#define QKEY     0x12345678u
#define LONGEST  1024u
#define PATIENCE 60 /* seconds */

/* Ropewalk's own format of addresses, as fi_ropewalk(7) has it for datagrams. */
struct name {
	uint32_t version_qpn, flags, qkey, node;
	uint64_t port;
	uint8_t ip[16];
};

static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av;
static uint8_t out[LONGEST], in[LONGEST];

static void demand(long ret, const char *what)
{
	if (ret < 0)
		error(1, 0, "%s: %s", what, fi_strerror((int)-ret));
}

static struct name name_of(const char *ip, uint32_t qpn)
{
	struct name n = {.version_qpn = 1u << 24 | qpn, .flags = 1u << 24, .qkey = QKEY, .port = 4791};

	n.ip[10] = n.ip[11] = 0xff;
	inet_pton(AF_INET, ip, n.ip + 12);
	return n;
}

static void open_endpoint(const char *ip)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_info *hints = fi_allocinfo(), *info;
	struct name source = name_of(ip, QPN);
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	hints->fabric_attr->prov_name = strdup("ropewalk");
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG | FI_SOURCE;
	hints->addr_format = NATIVE;
	hints->src_addr = memcpy(malloc(sizeof(source)), &source, sizeof(source));
	hints->src_addrlen = sizeof(source);
	demand(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	demand(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	demand(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	demand(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	demand(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	demand(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	demand(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	demand(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION), "fi_ep_bind");
	demand(fi_enable(ep), "fi_enable");
}

/* Tells the other end who we are, and hears its QPN; the connection stays. */
static uint32_t meet(const char *ip, const char *other, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	time_t end = time(NULL) + PATIENCE;
	char line[128] = "";
	int fd;

	inet_pton(AF_INET, other, &at.sin_addr);
	while (fd = socket(AF_INET, SOCK_STREAM, 0), connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		if (time(NULL) > end)
			error(1, errno, "%s", other);
		close(fd);
		usleep(100000);
	}
	dprintf(fd, "%s 0x%x 0x%x\n", ip, QPN, QKEY);
	if (read(fd, line, sizeof(line) - 1) <= 0)
		error(1, 0, "the other end has gone");
	return (uint32_t)strtoul(line, NULL, 0);
}

/* Waits for an answer for a while: 1, or 0. */
static long heard(struct fi_cq_data_entry *e, fi_addr_t *from)
{
	time_t end = time(NULL) + 5;
	long n;

	while ((n = fi_cq_readfrom(cq, e, 1, from)) == -FI_EAGAIN && time(NULL) < end)
		;
	return n == -FI_EAGAIN ? 0 : n;
}

/* Sends datagram `i` until its answer comes; returns how often that was. */
static unsigned ask(unsigned i, fi_addr_t to)
{
	size_t len = i < 8 ? i : i * 37 % (LONGEST + 1);
	unsigned tries = 0;
	struct fi_cq_data_entry e;
	fi_addr_t from;
	long n;

	for (size_t k = 0; k < len; k++)
		out[k] = (uint8_t)(k * 3 + i);
	demand(fi_recvmsg(
		       ep, &(struct fi_msg){.msg_iov = &(struct iovec){in, sizeof(in)}, .iov_count = 1}, FI_COMPLETION),
		"fi_recvmsg");
	do {
		if (++tries > PATIENCE / 5)
			error(1, 0, "datagram %u: no answer", i);
		demand(i % 2 ? fi_senddata(ep, out, len, NULL, i, to, NULL) : fi_send(ep, out, len, NULL, to, NULL),
			"fi_send");
		n = heard(&e, &from);
		demand(n, "fi_cq_readfrom");
	} while (!n);
	if (e.len != len || from != to || !!(e.flags & FI_REMOTE_CQ_DATA) != i % 2 || (i % 2 && e.data != i + 1))
		error(1, 0, "datagram %u: %zu bytes, data %u, of %u", i, e.len, (unsigned)e.data, (unsigned)from);
	for (size_t k = 0; k < len; k++)
		if ((in[k] ^ out[k]) != 0xff)
			error(1, 0, "datagram %u: byte %zu is wrong", i, k);
	return tries;
}

int main(int argc, char **argv)
{
	unsigned count = 50, again = 0;
	struct name peer;
	fi_addr_t to;

	if (argc > 2 && !strcmp(argv[1], "-n")) {
		count = (unsigned)atoi(argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc < 3)
		error(2, 0, "usage: fi_dgram [-n COUNT] OWN-IPv4 IPv4-OF-THE-OTHER [TCP-PORT]");
	open_endpoint(argv[1]);
	peer = name_of(argv[2], meet(argv[1], argv[2], argc > 3 ? (uint16_t)atoi(argv[3]) : 18516));
	if (fi_av_insert(av, &peer, 1, &to, 0, NULL) != 1)
		error(1, 0, "fi_av_insert");
	for (unsigned i = 0; i < count; i++)
		again += ask(i, to) - 1;
	printf("%u datagrams answered, again %u\n", count, again);
	return fi_close(&ep->fid) ? 1 : 0;
}
