/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rwk_pingpong: two queue pairs, this one and a peer's, which may be of another maker: each operation in turn, all
 * bytes compared, and the time that it takes. It is a program on ropewalk.h and on nothing else of ropewalk.
 */
#include "tools/rwk_pingpong.h"

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ADD 3u /* what FETCH_ADD adds */

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
		want.operation->name, type_title(want.type), want.count, want.size,
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
	printf("%s over %s: answered\n", want.operation->name, type_title(want.type));
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
	read_arguments(argc, argv);
	setvbuf(stdin, NULL, _IONBF, 0); /* what is typed ahead must be seen by poll */
	open_end();
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
