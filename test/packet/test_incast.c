/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many to one that is slow and has a small receive buffer, on the simulated network:
 *
 *   end 1 --\
 *   ...      >--> end 0, which is busy for some time with each packet, or looks rarely
 *   end 8 --/
 *
 * All of them together keep 80 % of what one of them has alone, and each has at least half of its share. Times are the
 * network's own: the numbers are the same in each run. RWK_TEST_SHORT: one setting of each kind.
 */
#include "links/ends.h"

#include "base/param.h"

#define SENDERS 8
#define AHEAD   4 /* messages that a sender has posted */
#define READS   2 /* that the receiver has posted to each */
#define US      1000ull
#define MS      (1000 * US)
#define KB      1024u

struct setting {
	const char *name;
	rwk_time cost, gap; /* of the receiver: for each packet, between looks */
	size_t inbox;       /* bytes */
	size_t length;      /* of messages */
	enum { SEND, WRITE, READ } kind;
};

/* The ordinary limit of a receive buffer, and larger and smaller ones. */
static const struct setting settings[] = {
	{"frames", 10 * US, 0, 208 * KB, 4000, SEND},
	{"frames of many messages", 2 * US, 0, 208 * KB, 200, SEND},
	{"frames, the receiver looks rarely", 0, 100 * US, 208 * KB, 4000, SEND},
	{"long messages", 10 * US, 0, 208 * KB, 64 * KB, SEND},
	{"long messages, a fast receiver", 2 * US, 0, 208 * KB, 64 * KB, SEND},
	{"long messages, the receiver looks rarely", 0, MS, 208 * KB, 64 * KB, SEND},
	{"long messages, little room", 10 * US, 0, 52 * KB, 64 * KB, SEND},
	{"long messages, much room", 10 * US, 0, 1024 * KB, 64 * KB, SEND},
	{"written, as asked for", 10 * US, 0, 208 * KB, 1024 * KB, WRITE},
	{"written, much room", 10 * US, 0, 1024 * KB, 1024 * KB, WRITE},
	{"read", 10 * US, 0, 208 * KB, 128 * KB, READ},
	{"read, much room", 10 * US, 0, 1024 * KB, 1024 * KB, READ},
};

/* What end 0 fetches from one of the others. */
struct fetched {
	struct ends_op op[READS];
	struct rwk_rkey key;
	uint8_t *there, *here;
	uint64_t done;
};

struct outcome {
	uint64_t sum, least;
};

static struct fetched fetched[SENDERS + 1];
static struct rwk_link *clock_node; /* whose alarms move time on while the receiver is busy */
static rwk_time busy_until;

static void fetch(const struct setting *how, unsigned from)
{
	struct fetched *f = &fetched[from];

	for (unsigned i = 0; i < READS; i++) {
		struct ends_op *op = &f->op[i];

		if (op->op.length && !op->done)
			continue;
		f->done += op->done;
		ends_make_op(op, RWK_OP_READ, f->here, how->length);
		op->op.rkey = f->key;
		assert_int_equal(ends_transport->post(ends_side(0, from)->ch, &op->op), 0);
	}
}

static void expose(const struct setting *how, unsigned from)
{
	struct fetched *f = &fetched[from];
	struct iovec iov = {calloc(1, how->length), how->length};

	*f = (struct fetched){.there = iov.iov_base, .here = malloc(how->length)};
	assert_true(f->there && f->here);
	assert_int_equal(ends_transport->expose(ends_side(from, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &f->key), 0);
}

static void send_on(unsigned from)
{
	while (ends_side(from, 0)->ops < AHEAD)
		assert_in_range(ends_post(ends_side(from, 0)), 0, 1);
}

/* End 0 takes what is there, and is busy for as long as that costs. */
static void receive(const struct setting *how, unsigned senders)
{
	uint64_t before = rwk_packet_counters(ends[0]->port)->packets_in, n;

	if (rwk_sim_now(ends_net) < busy_until)
		return;
	for (unsigned i = 1; how->kind != SEND && i <= senders; i++)
		fetch(how, i);
	ends_progress(ends[0]);
	n = rwk_packet_counters(ends[0]->port)->packets_in - before;
	busy_until = rwk_sim_now(ends_net) + n * how->cost + how->gap;
	if (busy_until > rwk_sim_now(ends_net))
		rwk_sim_alarm(clock_node, busy_until);
}

static void run(const struct setting *how, unsigned senders, rwk_time time)
{
	rwk_time end = rwk_sim_now(ends_net) + time;

	while (rwk_sim_now(ends_net) < end) {
		for (unsigned i = 1; i <= senders; i++) {
			if (how->kind == SEND)
				send_on(i);
			while (ends_progress(ends[i]))
				;
		}
		receive(how, senders);
		assert_true(rwk_sim_step(ends_net));
	}
}

static uint64_t taken(const struct setting *how, unsigned from)
{
	return how->kind == SEND ? ends_side(0, from)->received : fetched[from].done;
}

static void begin(const struct setting *how, unsigned senders)
{
	static const size_t greeting = 8;
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.mtu = 4096 + 80;
	attr.inbox = how->inbox;
	attr.path.delay = 5 * US;
	ends_lengths = how->kind == SEND ? &how->length : &greeting;
	ends_lengths_count = 1;
	rwk_params.rendezvous = how->kind == READ ? RWK_RENDEZVOUS_READ : RWK_RENDEZVOUS_WRITE;
	ends_open(&attr, NULL, senders + 1);
	assert_int_equal(rwk_sim_node(ends_net, &clock_node), 0);
	for (unsigned i = 1; i <= senders; i++) {
		ends_connect(i, 0);
		ends_settle();
		if (how->kind == SEND)
			continue;
		assert_int_equal(ends_send(ends_side(i, 0)), 0);
		ends_settle();
		expose(how, i);
	}
	busy_until = 0;
}

static void end(const struct setting *how, unsigned senders)
{
	clock_node->ops->close(clock_node);
	ends_close();
	for (unsigned i = 1; how->kind != SEND && i <= senders; i++) {
		free(fetched[i].there);
		free(fetched[i].here);
	}
}

static struct outcome measure(const struct setting *how, unsigned senders)
{
	struct outcome o = {.least = UINT64_MAX};
	uint64_t before[SENDERS + 1];

	begin(how, senders);
	run(how, senders, 100 * MS);
	for (unsigned i = 1; i <= senders; i++)
		before[i] = taken(how, i);
	run(how, senders, 300 * MS);
	for (unsigned i = 1; i <= senders; i++) {
		uint64_t n = taken(how, i) - before[i];

		o.sum += n;
		o.least = n < o.least ? n : o.least;
	}
	end(how, senders);
	return o;
}

static void shared_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const struct setting *how = &settings[i];
		struct outcome one, all;

		if (i && how->kind == how[-1].kind && getenv("RWK_TEST_SHORT"))
			continue;
		one = measure(how, 1);
		all = measure(how, SENDERS);

		print_message("%s: one %llu, all %llu, the least %llu\n", how->name, (unsigned long long)one.sum,
			(unsigned long long)all.sum, (unsigned long long)all.least);
		assert_true(one.sum > 50); /* else the next lines say nothing */
		assert_true(all.sum * 100 >= one.sum * 80);
		assert_true(all.least * SENDERS * 2 >= all.sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(shared_out),
	};

	return cmocka_run_group_tests_name("packet/incast", tests, NULL, NULL);
}
