/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rwk_pingpong: two queue pairs, this one and a peer's, which may be of another maker: each operation in turn, all
 * bytes compared, and the time that it takes. It is a program on ropewalk.h and on nothing else of ropewalk.
 *
 *   place    what one end must know of the other: IP, UDP port, QP number, first PSN, key and address of its memory
 *   terms    what both ends must have been told alike: operation, type, size, count, PMTU
 *   passive  the end that answers Reads and atomics: its program has nothing to do but to poll
 *
 * Over SRC each end has several SRQs in one domain, with the numbers from 1 on, and the messages go to them in turn.
 *
 * Message i of an end consists of bytes that follow from i and the end; the last byte is another one for i + 1, so that
 * it shows that a Write is there.
 */
#include "include/ropewalk.h"
#include "config.h"

#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MOST  (1u << 30)
#define COUNT_MOST 10000000u
#define ADD        3u /* what FETCH_ADD adds */
#define SRQS       4u
#define ACCESS     (RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC)
#define LINE       256
#define TIMEOUT    500000000u /* ns; eight of them: a peer that waits for its core is no dead one */

const char *argp_program_version = "rwk_pingpong " PACKAGE_VERSION;

static const struct operation {
	const char *name;
	enum rwk_request_type type;
	bool passive; /* the responder's program takes no part */
	bool atomic;
} operations[] = {
	{"send", RWK_REQUEST_SEND, false, false},
	{"write", RWK_REQUEST_WRITE, false, false},
	{"read", RWK_REQUEST_READ, true, false},
	{"compare-swap", RWK_REQUEST_COMPARE_SWAP, true, true},
	{"fetch-add", RWK_REQUEST_FETCH_ADD, true, true},
};

static const struct {
	const char *name, *title;
} types[] = {
	[RWK_QP_RC] = {"rc", "RC"},
	[RWK_QP_UC] = {"uc", "UC"},
	[RWK_QP_SRC] = {"src", "SRC"},
};

struct place {
	uint8_t ip[16];
	unsigned port, qpn, psn, key;
	uint64_t address;
};

static struct {
	const struct operation *operation;
	enum rwk_qp_type type;
	uint32_t size, count, pmtu;
	unsigned tcp_port, udp_port, seconds;
	const char *ip, *peer, *host;
	bool first; /* this end begins */
} want = {operations, RWK_QP_RC, 8, 1000, 0, 18515, RWK_PORT, 10, NULL, NULL, NULL, false};

static struct rwk_adapter *adapter;
static struct rwk_cq *cq;
static struct rwk_qp *qp;
static struct rwk_srq *srqs[SRQS]; /* SRC */
static uint8_t *out, *in;          /* the peer reaches `in` */
static struct rwk_mr *out_mr, *in_mr;
static struct place mine, theirs;
static int talk = -1;   /* with the peer, over TCP; negative: places are typed */
static FILE *listen_to; /* the same */

/* ---- arguments ---- */

enum { KEY_PEER = 256, KEY_FIRST };

static const struct argp_option options[] = {
	{"operation", 'o', "NAME", 0, "send (the default), write, read, compare-swap or fetch-add", 0},
	{"type", 't', "TYPE", 0, "rc (the default), uc or src", 0},
	{"size", 's', "BYTES", 0, "bytes of a message, 1 to 1073741824 (8); atomics always have 8", 0},
	{"count", 'n', "N", 0, "messages there, and back (1000)", 0},
	{"pmtu", 'm', "BYTES", 0, "256, 512, 1024, 2048 or 4096 (the largest that fits)", 0},
	{"ip", 'a', "IP", 0, "this end's address (by the route to the peer)", 0},
	{"udp-port", 'u', "PORT", 0, "this end's UDP port (4791, the only one that others use)", 0},
	{"tcp-port", 'p', "PORT", 0, "where the two programs find each other (18515)", 0},
	{"wait", 'w', "SECONDS", 0, "how long to wait for the peer (10)", 0},
	{"peer", KEY_PEER, "PLACE", 0,
		"the other end, which cannot be asked: IP,PORT,QPN,PSN,KEY,ADDRESS; - : it will be typed", 0},
	{"first", KEY_FIRST, NULL, 0, "with --peer: this end begins", 0},
	{NULL, 0, NULL, 0, NULL, 0},
};

static uint32_t number(struct argp_state *state, const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || n < least || n > most)
		argp_error(state, "'%s' is not a number from %u to %u", text, least, most);
	return (uint32_t)n;
}

static const struct operation *find_operation(struct argp_state *state, const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	argp_error(state, "'%s' is no operation: send, write, read, compare-swap or fetch-add", name);
	return NULL;
}

static enum rwk_qp_type find_type(struct argp_state *state, const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, name))
			return (enum rwk_qp_type)i;
	argp_error(state, "'%s' is no type: rc, uc or src", name);
	return RWK_QP_RC;
}

static void check_together(struct argp_state *state)
{
	if (want.type == RWK_QP_UC && want.operation->passive)
		argp_error(state, "uc has send and write alone");
	if (want.peer && want.host)
		argp_error(state, "the other end is either asked (HOST) or given (--peer)");
	if (want.operation->atomic)
		want.size = sizeof(uint64_t);
	want.first |= want.host != NULL;
}

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'o':
		want.operation = find_operation(state, arg);
		break;
	case 't':
		want.type = find_type(state, arg);
		break;
	case 's':
		want.size = number(state, arg, 1, SIZE_MOST);
		break;
	case 'n':
		want.count = number(state, arg, 1, COUNT_MOST);
		break;
	case 'm':
		want.pmtu = number(state, arg, 256, 4096);
		break;
	case 'a':
		want.ip = arg;
		break;
	case 'u':
		want.udp_port = number(state, arg, 1, 65535);
		break;
	case 'p':
		want.tcp_port = number(state, arg, 1, 65535);
		break;
	case 'w':
		want.seconds = number(state, arg, 1, 86400);
		break;
	case KEY_PEER:
		want.peer = arg;
		break;
	case KEY_FIRST:
		want.first = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_usage(state);
		want.host = arg;
		break;
	case ARGP_KEY_END:
		check_together(state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp parser = {options, read_option, "[HOST]",
	"Sends messages to and fro between two queue pairs over RoCEv2, compares every byte, and says how long it "
	"takes.\v"
	"Without HOST and --peer it waits for another rwk_pingpong, which is given this host's name as HOST. Both are "
	"given "
	"the same operation, type, size, count and PMTU.",
	NULL, NULL, NULL};

/* ---- the two ends ---- */

static void demand(int rc, const char *what)
{
	if (rc < 0)
		error(1, -rc, "%s", what);
}

static bool text_to_ip(const char *text, uint8_t ip[16])
{
	char mapped[LINE];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	return inet_pton(AF_INET6, mapped, ip) == 1;
}

static void print_place(char *line, const struct place *p)
{
	char ip[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, p->ip, ip, sizeof(ip));
	snprintf(line, LINE, "%s,%u,0x%06x,0x%06x,0x%08x,0x%" PRIx64,
		!strncmp(ip, "::ffff:", 7) && strchr(ip, '.') ? ip + 7 : ip, p->port, p->qpn, p->psn, p->key,
		p->address);
}

/* Returns what stands behind the place. */
static const char *parse_place(const char *line, struct place *p)
{
	char ip[INET6_ADDRSTRLEN];
	int read = 0;

	if (sscanf(line, "%45[^,],%u,%i,%i,%i,%" SCNi64 "%n", ip, &p->port, (int *)&p->qpn, (int *)&p->psn,
		    (int *)&p->key, (int64_t *)&p->address, &read) != 6 ||
		!text_to_ip(ip, p->ip))
		error(1, 0, "the peer's place must be IP,PORT,QPN,PSN,KEY,ADDRESS, and is: %s", line);
	return line + read;
}

/* A TCP connection with the other program: as HOST's client, or the first that comes. */
static int meet(void)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *at;
	struct timespec pause = {.tv_nsec = 20000000};
	int fd, on = 1, off = 0, tries = (int)want.seconds * 50, rc;
	char port[8];

	hints.ai_family = want.host ? AF_UNSPEC : AF_INET6;
	snprintf(port, sizeof(port), "%u", want.tcp_port);
	rc = getaddrinfo(want.host, port, &hints, &at);
	if (rc)
		error(1, 0, "%s: %s", want.host ? want.host : "TCP", gai_strerror(rc));
	fd = socket(at->ai_family, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!want.host) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, 1))
			error(1, errno, "TCP port %u", want.tcp_port);
		if (poll(&(struct pollfd){fd, POLLIN, 0}, 1, (int)want.seconds * 1000) != 1)
			error(1, 0, "nobody came to TCP port %u within %u s", want.tcp_port, want.seconds);
		rc = accept(fd, NULL, NULL);
		close(fd);
		fd = rc;
	} else {
		while (connect(fd, at->ai_addr, at->ai_addrlen)) {
			if (errno != ECONNREFUSED || !tries--)
				error(1, errno, "%s, TCP port %u", want.host, want.tcp_port);
			nanosleep(&pause, NULL);
			close(fd);
			fd = socket(at->ai_family, SOCK_STREAM, 0);
		}
	}
	freeaddrinfo(at);
	return fd;
}

static void ip_of_peer(int fd, uint8_t ip[16])
{
	struct sockaddr_in6 a = {0};
	socklen_t len = sizeof(a);
	char text[INET_ADDRSTRLEN];

	if (getpeername(fd, (struct sockaddr *)&a, &len))
		error(1, errno, "TCP");
	memcpy(ip, &a.sin6_addr, 16);
	if (a.sin6_family == AF_INET) {
		inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, text, sizeof(text));
		text_to_ip(text, ip);
	}
}

/* Says a line and hears one: both ends do, so neither goes on before the other has come so far. */
static void exchange(const char *say, char *hear)
{
	dprintf(talk, "%s\n", say);
	if (!fgets(hear, LINE, listen_to))
		error(1, 0, "the peer's program has ended");
	hear[strcspn(hear, "\r\n")] = '\0';
}

static uint8_t byte_of(bool first, uint32_t i, size_t k)
{
	return (uint8_t)(i + k * 31 + (k >> 8) * 7 + (first ? 101 : 1));
}

static void fill(uint8_t *to, bool first, uint32_t i)
{
	for (size_t k = 0; k < want.size; k++)
		to[k] = byte_of(first, i, k);
}

static void check(const uint8_t *bytes, bool first, uint32_t i)
{
	for (size_t k = 0; k < want.size; k++)
		if (bytes[k] != byte_of(first, i, k))
			error(1, 0, "message %u: byte %zu is 0x%02x, not 0x%02x", i, k, bytes[k], byte_of(first, i, k));
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

static void open_all(void)
{
	struct rwk_adapter_attr attr = {.port = (uint16_t)want.udp_port};
	struct rwk_pd *pd;

	if (want.ip && !text_to_ip(want.ip, attr.ip))
		error(1, 0, "'%s' is not an IP address", want.ip);
	out = aligned_alloc(4096, (want.size + 4095) & ~4095u);
	in = aligned_alloc(4096, (want.size + 4095) & ~4095u);
	if (!out || !in)
		error(1, ENOMEM, "%u bytes", want.size);
	demand(rwk_adapter_open(&attr, &adapter), "the adapter");
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
static uint32_t srqn_of(uint32_t i)
{
	return want.type == RWK_QP_SRC ? 1 + i % SRQS : 0;
}

/* Where message i will come. */
static void post_receive(uint32_t i)
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

/* Both places are known to both ends, and both are ready, when this returns. */
static void introduce(void)
{
	char said[LINE], heard[2 * LINE], terms[LINE];
	uint8_t ip[16] = {0};
	const char *rest;

	if (want.peer && strcmp(want.peer, "-")) {
		parse_place(want.peer, &theirs);
		memcpy(ip, theirs.ip, sizeof(ip));
	} else if (!want.peer) {
		talk = meet();
		ip_of_peer(talk, ip);
		listen_to = fdopen(talk, "r");
	} else if (!want.ip || !text_to_ip(want.ip, ip)) {
		error(1, 0, "--peer=- needs --ip, to say what this end's address is");
	}
	describe_mine(ip);
	print_place(said, &mine);
	if (talk >= 0) {
		snprintf(terms, sizeof(terms), " %s %s %u %u", want.operation->name, types[want.type].name, want.size,
			want.count);
		strcat(said, terms);
		exchange(said, heard);
		rest = parse_place(heard, &theirs);
		if (strcmp(rest, terms))
			error(1, 0, "the peer was started with%s, and this end with%s", rest, terms);
	} else {
		printf("%s\n", said);
		fflush(stdout);
		if (!strcmp(want.peer, "-") && (!fgets(heard, sizeof(heard), stdin) || !parse_place(heard, &theirs)))
			error(1, 0, "no place was typed");
	}
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

/* ---- to and fro ---- */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static bool sent, received;
static uint32_t received_at; /* the SRQ's number */

/* Polls once; says whether anything completed. The clock is asked now and then. */
static void step(const char *what, uint32_t i, double *until)
{
	static unsigned polls;
	struct rwk_wc wc[4];
	int n = rwk_cq_poll(cq, wc, 4);

	for (int k = 0; k < n; k++) {
		if (wc[k].status)
			error(1, -wc[k].status, "message %u: %s", i, what);
		*(wc[k].type == RWK_WC_RECEIVE ? &received : &sent) = true;
		if (wc[k].type == RWK_WC_RECEIVE)
			received_at = wc[k].srqn;
	}
	if (n || ++polls % 1024)
		return;
	sched_yield(); /* the peer may want this core */
	if (!*until)
		*until = now_us() + want.seconds * 1e6;
	else if (now_us() > *until)
		error(1, 0, "message %u: no %s within %u s", i, what, want.seconds);
}

/* Answers the peer, and waits for nothing. */
static void poll_on(void)
{
	double never = 0;

	step("end", want.count, &never);
}

static void await_sent(uint32_t i)
{
	double until = 0;

	while (!sent)
		step("completion of the request", i, &until);
	sent = false;
}

/* The peer's message i is in `in`. */
static void await_message(uint32_t i)
{
	volatile uint8_t *last = &in[want.size - 1];
	double until = 0;

	if (want.operation->type == RWK_REQUEST_WRITE) {
		while (*last != byte_of(!want.first, i, want.size - 1))
			step("Write of the peer's", i, &until);
	} else {
		while (!received)
			step("message of the peer's", i, &until);
		received = false;
		if (received_at != srqn_of(i))
			error(1, 0, "message %u came to SRQ %u, not %u", i, received_at, srqn_of(i));
	}
}

static void request(uint32_t i)
{
	bool target = want.operation->passive;
	struct rwk_sge sge = {out, want.size, rwk_mr_key(out_mr)};
	struct rwk_request r = {.id = i,
		.type = want.operation->type,
		.sge = &sge,
		.sge_count = 1,
		.remote = theirs.address,
		.key = theirs.key,
		.srqn = srqn_of(i)};

	if (!target)
		fill(out, want.first, i);
	r.compare = i;
	r.swap_add = r.type == RWK_REQUEST_FETCH_ADD ? ADD : i + 1;
	demand(rwk_qp_post(qp, &r), "a request");
}

/* What a Read or an atomic has brought. */
static void check_fetched(uint32_t i)
{
	uint64_t before;

	if (!want.operation->atomic) {
		check(out, !want.first, 0);
		memset(out, 0, want.size);
		return;
	}
	memcpy(&before, out, sizeof(before));
	if (before != (want.operation->type == RWK_REQUEST_FETCH_ADD ? (uint64_t)i * ADD : i))
		error(1, 0, "operation %u found the value %" PRIu64, i, before);
}

static void take_message(uint32_t i)
{
	await_message(i);
	check(in, !want.first, i);
	if (want.operation->type == RWK_REQUEST_SEND)
		post_receive(i); /* the SRQ of i is the next one's to come there, too */
}

static void one_way_and_back(uint32_t i)
{
	if (!want.first)
		take_message(i);
	request(i);
	await_sent(i);
	if (want.operation->passive)
		check_fetched(i);
	else if (want.first)
		take_message(i);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Times are of one way, or of an operation. */
static void active(void)
{
	double *took = calloc(want.count, sizeof(*took)), from, sum = 0, share = want.operation->passive ? 1 : 2;

	if (!took)
		error(1, ENOMEM, "%u times", want.count);
	for (uint32_t i = 0; i < want.count; i++) {
		from = now_us();
		one_way_and_back(i);
		took[i] = (now_us() - from) / share;
		sum += took[i];
	}
	qsort(took, want.count, sizeof(*took), by_value);
	printf("%s over %s: %u of %u bytes, all compared; %s %.2f us, median %.2f, 99 %% below %.2f\n",
		want.operation->name, types[want.type].title, want.count, want.size,
		want.operation->passive ? "each takes" : "one way takes", sum / want.count, took[want.count / 2],
		took[want.count - 1 - want.count / 100]);
	free(took);
}

static bool peer_speaks(void)
{
	struct pollfd p = {talk >= 0 ? talk : STDIN_FILENO, POLLIN, 0};

	return poll(&p, 1, 0) != 0;
}

/* By hand: whoever begins must be told that the other end is ready. */
static void await_word(void)
{
	char line[LINE];

	printf("waiting for a line, or the end of the input: is the other end ready?\n");
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin))
		printf("beginning\n");
}

static void passive(void)
{
	uint64_t value, expected;

	if (talk < 0)
		printf("answering until a line, or the end of the input\n");
	fflush(stdout);
	while (!peer_speaks())
		for (int i = 0; i < 64; i++)
			poll_on();
	memcpy(&value, in, want.operation->atomic ? sizeof(value) : 0);
	expected = (uint64_t)want.count * (want.operation->type == RWK_REQUEST_FETCH_ADD ? ADD : 1);
	if (want.operation->atomic && value != expected)
		error(1, 0, "the value is %" PRIu64 " and should be %" PRIu64, value, expected);
	if (!want.operation->atomic)
		check(in, want.first, 0);
	printf("%s over %s: answered\n", want.operation->name, types[want.type].title);
}

/* Acknowledgements that the peer still waits for are answered meanwhile. */
static void part(void)
{
	double until = now_us() + 1e6;
	char heard[LINE];

	if (talk < 0) {
		while (now_us() < until)
			poll_on();
		return;
	}
	dprintf(talk, "done\n");
	while (!peer_speaks() && now_us() < until + want.seconds * 1e6)
		poll_on();
	if (!peer_speaks() || !fgets(heard, sizeof(heard), listen_to) || strncmp(heard, "done", 4))
		error(1, 0, "the peer has failed");
}

static void print_counters(void)
{
	struct rwk_adapter_counters c;
	struct rwk_qp_info q;

	rwk_adapter_get_counters(adapter, &c);
	rwk_qp_query(qp, &q);
	printf("packets: %" PRIu64 " out, %" PRIu64 " in; again %" PRIu64 ", naks in %" PRIu64 " out %" PRIu64
	       ", duplicates %" PRIu64 ", lost %" PRIu64 "; dropped: icrc %" PRIu64 ", malformed %" PRIu64
	       ", unknown qp %" PRIu64 ", stranger %" PRIu64 "; identifications solved %" PRIu64 "\n",
		q.packets_out, q.packets_in, q.sent_again, q.naks_in, q.naks_out, q.duplicates, q.lost, c.bad_icrc,
		c.malformed, c.unknown_qp, c.stranger, c.id_solved);
}

int main(int argc, char **argv)
{
	argp_parse(&parser, argc, argv, 0, NULL, NULL);
	setvbuf(stdin, NULL, _IONBF, 0); /* what is typed ahead must be seen by poll */
	open_all();
	introduce();
	if (talk < 0 && want.first)
		await_word();
	if (want.operation->passive && !want.first)
		passive();
	else
		active();
	part();
	print_counters();
	return 0;
}
