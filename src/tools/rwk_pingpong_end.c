/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This end of rwk_pingpong: the adapter and all that belongs to it, and how it is connected with the peer's.
 *
 * Over SRC each end has several SRQs in one domain, with the numbers from 1 on, and the messages go to them in turn.
 */
#include "tools/rwk_pingpong.h"
#include "tools/text.h"

#include <errno.h>
#include <error.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCESS  (RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC)
#define TIMEOUT 500000000u /* ns; eight of them: a peer that waits for its core is no dead one */

#define IDLE_MAX 32767u /* s: TCP_KEEPIDLE */
#define ASKED    3      /* s */

struct rwk_adapter *adapter;
struct rwk_cq *cq;
struct rwk_qp *qp;
uint8_t *out, *in;
struct rwk_mr *out_mr;
struct rwk_place theirs;
int talk = -1;
FILE *listen_to;

static struct rwk_srq *srqs[SRQS]; /* SRC */
static struct rwk_mr *in_mr;
static struct rwk_place mine;

void demand(int rc, const char *what)
{
	if (rc < 0)
		error(1, -rc, "%s", what);
}

static void set_talk(int level, int option, int value)
{
	setsockopt(talk, level, option, &value, sizeof(value));
}

/*
 * Who says nothing is not waited for without end; nor is a host that is gone while no word is due: the kernel asks it,
 * once it has acknowledged our last one, and else sends that again, for as long. After two hours where `seconds` are
 * more than the nine hours that the kernel can be told.
 */
static void limit_patience(void)
{
	const struct timeval most = {.tv_sec = want.seconds};

	setsockopt(talk, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	set_talk(SOL_SOCKET, SO_KEEPALIVE, 1);
	if (want.seconds > IDLE_MAX)
		return;
	set_talk(IPPROTO_TCP, TCP_KEEPIDLE, (int)want.seconds);
	set_talk(IPPROTO_TCP, TCP_KEEPINTVL, 1);
	set_talk(IPPROTO_TCP, TCP_USER_TIMEOUT, ((int)want.seconds + ASKED) * 1000);
}

/* A line, with nothing in it that a terminal would obey. */
static void hear(char *line)
{
	if (fgets(line, LINE, listen_to)) {
		line[strcspn(line, "\r\n")] = '\0';
		rwk_text_make_safe(line);
	} else if (ferror(listen_to) && errno == EAGAIN) {
		error(1, 0, "the peer says nothing within %u s", want.seconds);
	} else {
		error(1, 0, "the peer's program has ended");
	}
}

/* Says a line and hears one: both ends do, so neither goes on before the other has come so far. */
static void exchange(const char *say, char *line)
{
	dprintf(talk, "%s\n", say);
	hear(line);
}

uint8_t byte_of(bool first, uint32_t i, size_t k)
{
	return (uint8_t)(i + k * 31 + (k >> 8) * 7 + (first ? 101 : 1));
}

void fill(uint8_t *to, bool first, uint32_t i)
{
	for (size_t k = 0; k < want.size; k++)
		to[k] = byte_of(first, i, k);
}

void check(const uint8_t *bytes, bool first, uint32_t i)
{
	for (size_t k = 0; k < want.size; k++)
		if (bytes[k] != byte_of(first, i, k))
			error(1, 0, "message %u: byte %zu is 0x%02x, not 0x%02x", i, k, bytes[k], byte_of(first, i, k));
}

/* Returns what stands behind the place. */
static const char *parse_place(const char *line, struct rwk_place *p)
{
	const char *rest = rwk_place_parse(line, p);

	if (!rest)
		error(1, 0,
			"the peer's place must be IP,PORT,QPN,PSN,KEY,ADDRESS (PORT up to 65535, QPN and PSN up to "
			"0xffffff, KEY up to 0xffffffff), and is: %s",
			line);
	return rest;
}

static void open_qp(struct rwk_pd *pd)
{
	struct rwk_qp_create_attr create = {
		.type = want.type, .send_cq = cq, .send_max = 4, .receive_cq = cq, .receive_max = 4};
	struct rwk_srq_attr srq = {.receive_max = 1, .cq = cq};

	if (want.type == RWK_QP_SRC) {
		demand(rwk_src_domain_create(adapter, &srq.domain), "the SRC domain");
		for (srq.number = 1; srq.number <= SRQS; srq.number++)
			demand(rwk_srq_create(pd, &srq, &srqs[srq.number - 1]), "a shared receive queue");
		create.domain = srq.domain;
		create.receive_cq = NULL;
		create.receive_max = 0;
	}
	demand(rwk_qp_create(pd, &create, &qp), "the queue pair");
}

void open_end(void)
{
	struct rwk_adapter_attr attr = {.port = (uint16_t)want.udp_port};
	struct rwk_pd *pd;
	int err;

	if (want.ip && rwk_ip_from_text(want.ip, attr.ip))
		error(1, 0, "'%s' is not an IP address", want.ip);
	out = aligned_alloc(4096, (want.size + 4095) & ~4095u);
	in = aligned_alloc(4096, (want.size + 4095) & ~4095u);
	if (!out || !in)
		error(1, ENOMEM, "%u bytes", want.size);
	err = rwk_adapter_open(&attr, &adapter);
	if (err == -EADDRINUSE)
		error(1, -err, "the adapter; two programs on one host need a UDP port each (--udp-port)");
	demand(err, "the adapter");
	demand(rwk_pd_create(adapter, &pd), "the protection domain");
	demand(rwk_cq_create(adapter, 16, &cq), "the completion queue");
	demand(rwk_mr_register(pd, out, want.size, RWK_ACCESS_LOCAL_WRITE, &out_mr), "memory to send from");
	demand(rwk_mr_register(pd, in, want.size, ACCESS | RWK_ACCESS_LOCAL_WRITE, &in_mr), "memory to receive into");
	open_qp(pd);
}

static void describe_mine(const uint8_t peer_ip[16])
{
	mine.port = rwk_adapter_port(adapter);
	mine.qpn = rwk_qp_number(qp);
	mine.key = rwk_mr_key(in_mr);
	mine.address = (uintptr_t)in;
	demand(rwk_adapter_source(adapter, peer_ip, mine.ip), "no way to the peer");
	if (getrandom(&mine.psn, sizeof(mine.psn), 0) != sizeof(mine.psn))
		error(1, errno, "a first PSN");
	mine.psn &= 0xffffff;
}

/* SRC: the number of the SRQ that message i is for; else 0. */
uint32_t srqn_of(uint32_t i)
{
	return want.type == RWK_QP_SRC ? 1 + i % SRQS : 0;
}

/* Where message i will come. */
void post_receive(uint32_t i)
{
	struct rwk_sge sge = {in, want.size, rwk_mr_key(in_mr)};
	struct rwk_receive r = {.sge = &sge, .sge_count = 1};
	uint32_t srqn = srqn_of(i);

	demand(srqn ? rwk_srq_post_receive(srqs[srqn - 1], &r) : rwk_qp_post_receive(qp, &r), "a receive");
}

/* What is there before the first message. */
static void prepare_memory(void)
{
	if (want.operation->atomic)
		memset(in, 0, want.size);
	else if (want.operation->passive)
		fill(in, want.first, 0);
	else
		fill(in, !want.first, UINT32_MAX);
}

static void connect_qp(void)
{
	struct rwk_qp_attr attr = {.peer_port = (uint16_t)theirs.port,
		.peer_qpn = theirs.qpn,
		.send_psn = mine.psn,
		.receive_psn = theirs.psn,
		.pmtu = want.pmtu,
		.access = ACCESS,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 12,
		.timeout_ns = TIMEOUT};

	memcpy(attr.peer_ip, theirs.ip, sizeof(attr.peer_ip));
	demand(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), "INIT");
	demand(rwk_qp_modify(qp, RWK_QPS_RTR, &attr), "the peer's place, or PMTU (RTR)");
	demand(rwk_qp_modify(qp, RWK_QPS_RTS, NULL), "RTS");
}

static void begin_talk(int fd)
{
	talk = fd;
	if (talk < 0)
		exit(1);
	limit_patience();
	listen_to = fdopen(talk, "r");
	if (!listen_to)
		error(1, errno, "TCP");
}

/* Both must have the same, and a packet must fit the way of each end: where these are not alike, the narrower. */
static void agree_on_pmtu(void)
{
	char said[LINE], heard[LINE];
	uint32_t other;

	if (!want.pmtu)
		want.pmtu = rwk_adapter_pmtu(adapter, theirs.ip);
	snprintf(said, sizeof(said), "pmtu %u", want.pmtu);
	exchange(said, heard);
	if (sscanf(heard, "pmtu %u", &other) != 1)
		error(1, 0, "the peer must say its PMTU, and says: %s", heard);
	if (other < want.pmtu)
		want.pmtu = other;
}

static void introduce_by_tcp(void)
{
	char said[LINE], heard[LINE], terms[LINE / 2];
	const char *rest;
	uint8_t ip[16];

	if (want.host)
		begin_talk(rwk_meet(want.host, want.tcp_port, want.seconds));
	else
		begin_talk(rwk_meet_await(want.tcp_port, want.seconds, heard, sizeof(heard)));
	demand(rwk_meet_peer(talk, ip), "TCP");
	describe_mine(ip);
	rwk_place_print(said, &mine);
	snprintf(terms, sizeof(terms), " %s %s %u %u", want.operation->name, type_name(want.type), want.size,
		want.count);
	strcat(said, terms);
	dprintf(talk, "%s\n", said);
	if (want.host)
		hear(heard);
	rest = parse_place(heard, &theirs);
	if (strcmp(rest, terms))
		error(1, 0, "the peer was started with%s, and this end with%s", rest, terms);
	agree_on_pmtu();
}

static void introduce_by_hand(void)
{
	bool typed = !strcmp(want.peer, "-");
	char said[RWK_PLACE_LENGTH], heard[LINE];
	uint8_t ip[16];

	if (!typed) {
		parse_place(want.peer, &theirs);
		memcpy(ip, theirs.ip, sizeof(ip));
	} else if (!want.ip || rwk_ip_from_text(want.ip, ip)) {
		error(1, 0, "--peer=- needs --ip, to say what this end's address is");
	}
	describe_mine(ip);
	rwk_place_print(said, &mine);
	printf("%s\n", said);
	fflush(stdout);
	if (typed && (!fgets(heard, sizeof(heard), stdin) || !parse_place(heard, &theirs)))
		error(1, 0, "no place was typed");
}

/* Both places are known to both ends, and both are ready, when this returns. */
void introduce(void)
{
	char heard[LINE];

	if (want.peer)
		introduce_by_hand();
	else
		introduce_by_tcp();
	prepare_memory();
	connect_qp();
	if (want.operation->type == RWK_REQUEST_SEND)
		for (uint32_t i = 0; i < (want.type == RWK_QP_SRC ? SRQS : 1); i++)
			post_receive(i);
	if (talk >= 0) {
		exchange("ready", heard);
		return;
	}
	printf("ready\n");
	fflush(stdout);
}
