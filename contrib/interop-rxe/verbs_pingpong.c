/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of rwk_pingpong (its man page has what is said over TCP, and its source which bytes are sent), on
 * verbs: for soft RoCE or hardware. It compares every byte, too.
 *
 *   verbs_pingpong [-o OPERATION] [-t TYPE] [-s BYTES] [-n COUNT] [-m PMTU] [-p TCP-PORT] [IPv4-OF-THE-OTHER]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ADD      3  /* what fetch-add adds */
#define PATIENCE 60 /* seconds */
#define LINE     512

static const struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool passive, atomic;
} operations[] = {
	{"send", IBV_WR_SEND, false, false},
	{"write", IBV_WR_RDMA_WRITE, false, false},
	{"read", IBV_WR_RDMA_READ, true, false},
	{"compare-swap", IBV_WR_ATOMIC_CMP_AND_SWP, true, true},
	{"fetch-add", IBV_WR_ATOMIC_FETCH_AND_ADD, true, true},
};

struct place {
	char ip[INET_ADDRSTRLEN];
	unsigned port, qpn, psn, key;
	uint64_t address;
};

static const struct operation *operation = operations;
static bool uc, first;
static uint32_t size = 8, count = 1000, pmtu = 1024;
static struct ibv_context *device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *out_mr, *in_mr;
static uint8_t *out, *in;
static struct place mine, theirs;
static FILE *hear;
static int say;

static void demand(bool good, const char *what)
{
	if (!good)
		error(1, errno, "%s", what);
}

static void read_arguments(int argc, char **argv, const char **host, uint16_t *port)
{
	int c;

	while ((c = getopt(argc, argv, "o:t:s:n:m:p:")) != -1) {
		unsigned n = (unsigned)strtoul(optarg ? optarg : "", NULL, 0);

		switch (c) {
		case 'o':
			for (operation = operations; strcmp(operation->name, optarg); operation++)
				if (operation == &operations[4])
					error(2, 0, "no such operation: %s", optarg);
			break;
		case 't':
			uc = !strcmp(optarg, "uc");
			break;
		case 's':
			size = n;
			break;
		case 'n':
			count = n;
			break;
		case 'm':
			pmtu = n;
			break;
		case 'p':
			*port = (uint16_t)n;
			break;
		default:
			exit(2);
		}
	}
	*host = argv[optind];
	first = *host != NULL;
	if (operation->atomic)
		size = 8;
}

static void meet(const char *host, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)}, own;
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t len = sizeof(own);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (host) {
		inet_pton(AF_INET, host, &at.sin_addr);
		demand(!connect(fd, (struct sockaddr *)&at, sizeof(at)), host);
		say = fd;
	} else {
		demand(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1), "TCP port");
		say = accept(fd, NULL, NULL);
		close(fd);
	}
	demand(say >= 0 && !getsockname(say, (struct sockaddr *)&own, &len), "TCP");
	inet_ntop(AF_INET, &own.sin_addr, mine.ip, sizeof(mine.ip));
	hear = fdopen(say, "r");
}

static void exchange(const char *line, char *answer)
{
	dprintf(say, "%s\n", line);
	demand(fgets(answer, LINE, hear), "the other end has gone");
	answer[strcspn(answer, "\r\n")] = '\0';
}

static uint8_t byte_of(bool by_first, uint32_t i, size_t k)
{
	return (uint8_t)(i + k * 31 + (k >> 8) * 7 + (by_first ? 101 : 1));
}

static void fill(uint8_t *to, bool by_first, uint32_t i)
{
	for (size_t k = 0; k < size; k++)
		to[k] = byte_of(by_first, i, k);
}

static void check(const uint8_t *bytes, bool by_first, uint32_t i)
{
	for (size_t k = 0; k < size; k++)
		if (bytes[k] != byte_of(by_first, i, k))
			error(1, 0, "message %u: byte %zu is 0x%02x, not 0x%02x", i, k, bytes[k],
				byte_of(by_first, i, k));
}

static void open_all(void)
{
	int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr create = {.qp_type = uc ? IBV_QPT_UC : IBV_QPT_RC, .sq_sig_all = 1};
	struct ibv_pd *pd;

	demand(all && all[0], "no device");
	device = ibv_open_device(all[0]);
	demand(device, "the device");
	pd = ibv_alloc_pd(device);
	cq = ibv_create_cq(device, 16, NULL, NULL, 0);
	out = aligned_alloc(4096, (size + 4095) & ~4095u);
	in = aligned_alloc(4096, (size + 4095) & ~4095u);
	demand(pd && cq && out && in, "objects");
	out_mr = ibv_reg_mr(pd, out, size, access);
	in_mr = ibv_reg_mr(pd, in, size, access);
	demand(out_mr && in_mr, "memory regions");
	create.send_cq = create.recv_cq = cq;
	create.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
	qp = ibv_create_qp(pd, &create);
	demand(qp, "queue pair");
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

	ip_to_gid(mine.ip, &want);
	for (uint8_t i = 0; i < 32; i++)
		if (!ibv_query_gid(device, 1, i, &gid) && !memcmp(&gid, &want, sizeof(gid)))
			return i;
	error(1, 0, "no GID for %s", mine.ip);
	return 0;
}

static enum ibv_mtu mtu_code(void)
{
	enum ibv_mtu code = IBV_MTU_256;

	for (uint32_t bytes = 256; bytes < pmtu; bytes *= 2)
		code++;
	return code;
}

static void connect_qp(void)
{
	int both = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	    rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};

	demand(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(),
		.dest_qp_num = theirs.qpn,
		.rq_psn = theirs.psn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12};
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.grh.sgid_index = own_gid_index();
	ip_to_gid(theirs.ip, &a.ah_attr.grh.dgid);
	demand(!ibv_modify_qp(qp, &a, both | (uc ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)), "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.sq_psn = mine.psn,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16};
	demand(!ibv_modify_qp(qp, &a,
		       rts | (uc ? 0 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)),
		"RTS");
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)in, size, in_mr->lkey};
	struct ibv_recv_wr r = {.sg_list = &sge, .num_sge = 1}, *bad;

	demand(!ibv_post_recv(qp, &r, &bad), "a receive");
}

/* As rwk_pingpong does: where the two are not alike the smaller one holds. */
static void agree_on_pmtu(void)
{
	char line[LINE], heard[LINE];
	uint32_t other;

	snprintf(line, sizeof(line), "pmtu %u", pmtu);
	exchange(line, heard);
	if (sscanf(heard, "pmtu %u", &other) != 1)
		error(1, 0, "heard '%s' and not 'pmtu BYTES'", heard);
	if (other < pmtu)
		pmtu = other;
}

static void introduce(void)
{
	char line[LINE], heard[LINE], terms[LINE / 2];
	int at = 0;

	mine.psn = (uint32_t)time(NULL) * 2654435761u >> 8;
	snprintf(terms, sizeof(terms), " %s %s %u %u", operation->name, uc ? "uc" : "rc", size, count);
	snprintf(line, sizeof(line), "%s,4791,0x%06x,0x%06x,0x%08x,0x%" PRIxPTR "%s", mine.ip, qp->qp_num, mine.psn,
		in_mr->rkey, (uintptr_t)in, terms);
	exchange(line, heard);
	if (sscanf(heard, "%15[^,],%u,%i,%i,%i,%" SCNi64 "%n", theirs.ip, &theirs.port, (int *)&theirs.qpn,
		    (int *)&theirs.psn, (int *)&theirs.key, (int64_t *)&theirs.address, &at) != 6 ||
		strcmp(heard + at, terms))
		error(1, 0, "heard '%s', which does not go with '%s'", heard, line);
	agree_on_pmtu();
	if (operation->atomic)
		memset(in, 0, size);
	else if (operation->passive)
		fill(in, first, 0);
	else
		fill(in, !first, UINT32_MAX);
	connect_qp();
	if (operation->opcode == IBV_WR_SEND)
		post_receive();
	exchange("ready", heard);
}

static bool sent, received;

static void step(uint32_t i)
{
	static time_t since;
	static uint32_t at;
	struct ibv_wc wc;

	if (!since || at != i)
		since = time(NULL);
	at = i;
	if (time(NULL) - since > PATIENCE)
		error(1, 0, "message %u: nothing within %d s", i, PATIENCE);
	if (ibv_poll_cq(cq, 1, &wc) <= 0)
		return;
	if (wc.status)
		error(1, 0, "message %u: %s", i, ibv_wc_status_str(wc.status));
	*(wc.opcode & IBV_WC_RECV ? &received : &sent) = true;
}

static void take_message(uint32_t i)
{
	volatile uint8_t *last = &in[size - 1];

	if (operation->opcode == IBV_WR_RDMA_WRITE)
		while (*last != byte_of(!first, i, size - 1))
			step(i);
	while (operation->opcode == IBV_WR_SEND && !received)
		step(i);
	received = false;
	check(in, !first, i);
	if (operation->opcode == IBV_WR_SEND)
		post_receive();
}

static void request(uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)out, size, out_mr->lkey};
	struct ibv_send_wr r = {.opcode = operation->opcode, .sg_list = &sge, .num_sge = 1}, *bad;

	if (operation->atomic) {
		r.wr.atomic.remote_addr = theirs.address;
		r.wr.atomic.rkey = theirs.key;
		r.wr.atomic.compare_add = operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? ADD : i;
		r.wr.atomic.swap = i + 1;
	} else {
		r.wr.rdma.remote_addr = theirs.address;
		r.wr.rdma.rkey = theirs.key;
	}
	if (!operation->passive)
		fill(out, first, i);
	demand(!ibv_post_send(qp, &r, &bad), "a request");
	while (!sent)
		step(i);
	sent = false;
}

static void check_fetched(uint32_t i)
{
	uint64_t before, want = operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? (uint64_t)i * ADD : i;

	memcpy(&before, out, operation->atomic ? sizeof(before) : 0);
	if (!operation->atomic)
		check(out, !first, 0);
	else if (before != want)
		error(1, 0, "operation %u found the value %" PRIu64, i, before);
	memset(out, 0, size);
}

static void to_and_fro(void)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!first)
			take_message(i);
		request(i);
		if (operation->passive)
			check_fetched(i);
		else if (first)
			take_message(i);
	}
}

/* The card answers, not this program: it looks at what is left. */
static void end(void)
{
	uint64_t value, want = (uint64_t)count * (operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? ADD : 1);
	char heard[LINE];

	exchange("done", heard);
	if (strncmp(heard, "done", 4))
		error(1, 0, "the other end has failed");
	if (!operation->passive || first)
		return;
	memcpy(&value, in, operation->atomic ? sizeof(value) : 0);
	if (operation->atomic && value != want)
		error(1, 0, "the value is %" PRIu64 " and should be %" PRIu64, value, want);
	if (!operation->atomic)
		check(in, first, 0);
}

int main(int argc, char **argv)
{
	const char *host;
	uint16_t port = 18515;

	read_arguments(argc, argv, &host, &port);
	meet(host, port);
	open_all();
	introduce();
	if (!operation->passive || first)
		to_and_fro();
	end();
	printf("verbs: %s over %s, %u of %u bytes, all compared\n", operation->name, uc ? "UC" : "RC", count, size);
	return 0;
}
