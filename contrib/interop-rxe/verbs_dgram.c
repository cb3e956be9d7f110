/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of fi_dgram, on verbs: for soft RoCE or hardware. It sends back each datagram that comes, all of its
 * bits the other way round, and immediate data greater by one. Over TCP it hears "IP QPN QKEY" of the other end and
 * says its own QPN; it ends when that connection does.
 *
 *   verbs_dgram [TCP-PORT]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRH  40u /* bytes in front of what a datagram brings */
#define LINE 128
#define MTU  4096u

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static struct ibv_mr *mr;
static uint8_t *bytes;
static char own_ip[INET_ADDRSTRLEN], their_ip[INET_ADDRSTRLEN];
static uint32_t their_qpn, qkey;

static void demand(int good, const char *what)
{
	if (!good)
		error(1, errno, "%s", what);
}

/* Waits for the other end on TCP: the connection. */
static int meet(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)}, own;
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, peer;
	socklen_t len = sizeof(own);
	char line[LINE];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	demand(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1), "TCP port");
	peer = accept(fd, NULL, NULL);
	demand(peer >= 0 && !getsockname(peer, (struct sockaddr *)&own, &len), "TCP");
	inet_ntop(AF_INET, &own.sin_addr, own_ip, sizeof(own_ip));
	n = read(peer, line, sizeof(line) - 1);
	line[n < 0 ? 0 : n] = '\0';
	if (sscanf(line, "%15s %i %i", their_ip, (int *)&their_qpn, (int *)&qkey) != 3)
		error(1, 0, "heard '%s'", line);
	close(fd);
	return peer;
}

static void open_all(void)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr create = {.qp_type = IBV_QPT_UD, .sq_sig_all = 1};

	demand(all && all[0], "no device");
	device = ibv_open_device(all[0]);
	demand(!!device, "the device");
	pd = ibv_alloc_pd(device);
	cq = ibv_create_cq(device, 16, NULL, NULL, 0);
	bytes = aligned_alloc(4096, 2 * MTU);
	demand(pd && cq && bytes, "objects");
	mr = ibv_reg_mr(pd, bytes, 2 * MTU, IBV_ACCESS_LOCAL_WRITE);
	create.send_cq = create.recv_cq = cq;
	create.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
	qp = ibv_create_qp(pd, &create);
	demand(mr && qp, "queue pair");
}

static void ip_to_gid(const char *ip, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	inet_pton(AF_INET, ip, &gid->raw[12]);
}

static uint8_t own_gid_index(void)
{
	union ibv_gid want, gid;

	ip_to_gid(own_ip, &want);
	for (uint8_t i = 0; i < 32; i++)
		if (!ibv_query_gid(device, 1, i, &gid) && !memcmp(&gid, &want, sizeof(gid)))
			return i;
	error(1, 0, "no GID for %s", own_ip);
	return 0;
}

static void start_qp(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh.hop_limit = 64};

	demand(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT");
	a.qp_state = IBV_QPS_RTR;
	demand(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR");
	a.qp_state = IBV_QPS_RTS;
	demand(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	to.grh.sgid_index = own_gid_index();
	ip_to_gid(their_ip, &to.grh.dgid);
	ah = ibv_create_ah(pd, &to);
	demand(!!ah, "address handle");
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)bytes, GRH + MTU, mr->lkey};
	struct ibv_recv_wr r = {.sg_list = &sge, .num_sge = 1}, *bad;

	demand(!ibv_post_recv(qp, &r, &bad), "a receive");
}

static void answer(const struct ibv_wc *wc)
{
	uint32_t len = wc->byte_len - GRH;
	struct ibv_sge sge = {(uintptr_t)bytes + GRH, len, mr->lkey};
	struct ibv_send_wr r = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	if (wc->src_qp != their_qpn)
		error(1, 0, "a datagram of queue pair 0x%x", wc->src_qp);
	for (uint32_t i = 0; i < len; i++)
		bytes[GRH + i] ^= 0xff;
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		r.opcode = IBV_WR_SEND_WITH_IMM;
		r.imm_data = htonl(ntohl(wc->imm_data) + 1);
	}
	r.wr.ud.ah = ah;
	r.wr.ud.remote_qpn = their_qpn;
	r.wr.ud.remote_qkey = qkey;
	demand(!ibv_post_send(qp, &r, &bad), "a datagram");
}

int main(int argc, char **argv)
{
	int peer = meet(argc > 1 ? (uint16_t)atoi(argv[1]) : 18516);
	unsigned answered = 0;
	struct ibv_wc wc;
	char byte;

	open_all();
	start_qp();
	post_receive();
	dprintf(peer, "0x%06x\n", qp->qp_num);
	while (recv(peer, &byte, 1, MSG_DONTWAIT)) {
		if (ibv_poll_cq(cq, 1, &wc) <= 0)
			continue;
		if (wc.status)
			error(1, 0, "datagram %u: %s", answered, ibv_wc_status_str(wc.status));
		if (wc.opcode & IBV_WC_RECV)
			answer(&wc);
		else
			answered++, post_receive();
	}
	printf("%u datagrams answered\n", answered);
	return 0;
}
