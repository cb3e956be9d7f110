/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between engines, over the simulated service and over shared memory: every size at which a protocol begins or
 * ends, order, the two spaces, scattered buffers, myself, limits, floods. What receives can ask for besides:
 * test_receives.c; failures: test_failures.c.
 */
#include "engine/world.h"

#define MEGA (1u << 20)

/* The first message of a size to be sent, in both spaces, in every way; posted before it comes and after. */
static const size_t sizes[] = {0, 1, 7, 8, 39, 40, 41, 64, 103, 104, 105, 255, 256, 257, 303, 400, 401, 471, 472, 473,
	1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, MEGA, 9 * MEGA + 3};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* One message each way of sending and receiving. */
static void one_message(struct world *w, size_t len, enum rwk_space space, uint32_t flags, bool expected)
{
	unsigned char *out = malloc(len + 1), *in = malloc(len + 1);
	uint64_t tag = len * 5 + flags;
	struct task s = {0}, r = {0};

	world_fill(out, len, tag);
	memset(in, 0x5a, len + 1);
	if (expected)
		assert_int_equal(world_recv(w, 1, WORLD_ANY, space, in, len, tag, 0, 0, &r), 0);
	assert_int_equal(world_send(w, 0, 1, space, out, len, tag, flags, &s), 0);
	if (flags & RWK_F_INJECT)
		memset(out, 0x11, len);
	if (!expected) {
		world_settle(w);
		assert_int_equal(world_recv(w, 1, 0, space, in, len, tag, 0, 0, &r), 0);
	}
	world_wait(w, &r);
	if (!(flags & RWK_F_SILENT))
		world_wait(w, &s);
	world_settle(w);
	world_check_receive(w, &r, 1, 0, space, len, tag, flags & RWK_F_DATA);
	world_check(in, len, tag);
	assert_int_equal(in[len], 0x5a);
	assert_int_equal(s.times, !(flags & RWK_F_SILENT));
	assert_int_equal(s.c.status, 0);
	assert_int_equal(s.c.flags & RWK_F_RECV, 0);
	free(out);
	free(in);
}

/*
 * Every size, both spaces, data or none, delivered or not, silent or not, received before and after it came: whole, and
 * nothing beyond.
 */
static void every_size(void **state)
{
	static const uint32_t ways[] = {
		0, RWK_F_DATA, RWK_F_DELIVERED, RWK_F_SILENT, RWK_F_DATA | RWK_F_DELIVERED | RWK_F_SILENT};
	struct world w;

	world_open_two(&w, *state);
	for (size_t i = 0; i < SIZES; i++)
		for (size_t n = 0; n < sizeof(ways) / sizeof(ways[0]); n++)
			for (int how = 0; how < (sizes[i] > MEGA ? 2 : 4); how++)
				one_message(&w, sizes[i], how & 2 ? RWK_PLAIN : RWK_TAGGED, ways[n], how & 1);
	world_close(&w);
}

/* Inject: the buffer is ours again on return, whatever happens later; beyond RWK_INJECT_MAX it is refused. */
static void inject(void **state)
{
	unsigned char buf[RWK_INJECT_MAX + 1] = {0};
	struct world w;
	struct task t;

	world_open_two(&w, *state);
	for (size_t i = 0; sizes[i] <= RWK_INJECT_MAX; i++)
		for (int how = 0; how < 4; how++)
			one_message(&w, sizes[i], how & 2 ? RWK_PLAIN : RWK_TAGGED,
				RWK_F_INJECT | (how & 1 ? RWK_F_DELIVERED : 0), how & 1);
	assert_int_equal(
		world_send(&w, 0, 1, RWK_TAGGED, buf, sizeof(buf), 1, RWK_F_INJECT | RWK_F_DELIVERED, &t), -EMSGSIZE);
	assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, buf, sizeof(buf), 1, RWK_F_INJECT, &t), -EMSGSIZE);
	world_close(&w);
}

/* Delivered means delivered: no completion before the message has been received. */
static void delivered(void **state)
{
	static const size_t lengths[] = {0, 8, 5000, 200000};
	struct world w;

	world_open_two(&w, *state);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		unsigned char *buf = calloc(1, lengths[i] + 1);
		struct task s = {0}, r = {0};

		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, lengths[i], 1, RWK_F_DELIVERED, &s), 0);
		world_settle(&w);
		assert_int_equal(s.times, 0);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, buf, lengths[i], 1, 0, 0, &r), 0);
		world_wait(&w, &s);
		world_wait(&w, &r);
		assert_true(s.c.status == 0 && r.c.status == 0);
		free(buf);
	}
	world_close(&w);
}

/* The caller's flags come back in the completion, and only those of the operation itself. */
static void user_flags(void **state)
{
	struct task s = {0}, r = {0};
	char buf[8] = "flagged";
	struct world w;

	world_open_two(&w, *state);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, buf, 8, 1, 0, RWK_F_USER << 3, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, 8, 1, RWK_F_USER | RWK_F_DELIVERED, &s), 0);
	world_wait(&w, &s);
	world_wait(&w, &r);
	assert_int_equal(s.c.flags & ~(RWK_F_USER - 1), RWK_F_USER);
	assert_int_equal(r.c.flags, RWK_F_RECV | RWK_F_TAGGED | RWK_F_USER << 3);
	world_close(&w);
}

#define MANY 60

/*
 * Messages of one sender that fit the same receives are matched in the order of sending, posted receives in the order
 * of posting.
 */
static void order_holds(void **state)
{
	static unsigned char out[MANY][200000], in[MANY][200000];

	for (unsigned posted = 0; posted <= MANY; posted += MANY / 2) {
		struct task s[MANY] = {0}, r[MANY] = {0};
		struct world w;

		world_open_two(&w, *state);
		for (unsigned i = 0; i < posted; i++)
			assert_int_equal(world_recv(&w, 1, i % 2 ? 0 : WORLD_ANY, RWK_TAGGED, in[i], sizeof(in[i]), 7,
						 i % 3, 0, &r[i]),
				0);
		for (unsigned i = 0; i < MANY; i++) {
			world_fill(out[i], world_mixed(i), i);
			assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], world_mixed(i), 7, 0, &s[i]), 0);
			if (i % 7 == 0)
				world_poll(&w);
		}
		if (posted)
			world_settle(&w);
		for (unsigned i = posted; i < MANY; i++)
			assert_int_equal(world_recv(&w, 1, i % 2 ? 0 : WORLD_ANY, RWK_TAGGED, in[i], sizeof(in[i]), 7,
						 i % 3, 0, &r[i]),
				0);
		for (unsigned i = 0; i < MANY; i++) {
			world_wait(&w, &r[i]);
			world_wait(&w, &s[i]);
			assert_int_equal(r[i].c.status, 0);
			assert_int_equal(r[i].c.length, world_mixed(i));
			world_check(in[i], world_mixed(i), i);
		}
		world_close(&w);
	}
}

/* Tagged and plain messages of the same tag do not see each other, in order or in peeking. */
static void spaces_apart(void **state)
{
	struct task s[2] = {0}, r[2] = {0}, none = {0};
	uint32_t in[2] = {0};
	struct world w;

	world_open_two(&w, *state);
	assert_int_equal(world_recv(&w, 1, 0, RWK_PLAIN, &in[RWK_PLAIN], 4, 0, 0, 0, &r[RWK_PLAIN]), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, &(uint32_t){11}, 4, 0, RWK_F_INJECT, &s[0]), 0);
	world_settle(&w);
	assert_int_equal(r[RWK_PLAIN].times, 0);
	assert_int_equal(world_recv(&w, 1, 0, RWK_PLAIN, NULL, 0, 0, 0, RWK_F_PEEK, &none), 0);
	assert_int_equal(none.c.status, -ENOMSG);
	assert_int_equal(none.c.flags & RWK_F_TAGGED, 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_PLAIN, &(uint32_t){22}, 4, 0, RWK_F_INJECT, &s[1]), 0);
	world_wait(&w, &r[RWK_PLAIN]);
	assert_int_equal(in[RWK_PLAIN], 22);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in[RWK_TAGGED], 4, 0, 0, 0, &r[RWK_TAGGED]), 0);
	world_wait(&w, &r[RWK_TAGGED]);
	assert_int_equal(in[RWK_TAGGED], 11);
	world_close(&w);
}

/* Messages to myself obey the same rules: sizes, order, truncation, data, delivered, peek, cancel. */
static void self(void **state)
{
	static const size_t lengths[] = {0, 1, 256, 5000, 65536, 65537, 500000};
	static unsigned char out[500000], in[500001];
	struct world w;

	world_open_two(&w, *state);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (int how = 0; how < 8; how++) {
			size_t len = lengths[i];
			struct task s = {0}, r = {0}, peek = {0};
			uint32_t flags = (how & 4 ? RWK_F_DELIVERED : 0) | (how & 2 ? RWK_F_DATA : 0);

			world_fill(out, len, i);
			memset(in, 0x5a, len + 1);
			if (how & 1)
				assert_int_equal(
					world_recv(&w, 0, how & 2 ? 0 : WORLD_ANY, RWK_TAGGED, in, len, 4, 0, 0, &r),
					0);
			assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, out, len, 4, flags, &s), 0);
			if (!(how & 1)) {
				if (flags & RWK_F_DELIVERED)
					assert_int_equal(s.times, 0);
				assert_int_equal(world_recv(&w, 0, 0, RWK_TAGGED, NULL, 0, 4, 0, RWK_F_PEEK, &peek), 0);
				assert_int_equal(peek.c.length, len);
				assert_int_equal(world_recv(&w, 0, 0, RWK_TAGGED, in, len, 4, 0, 0, &r), 0);
			}
			world_wait(&w, &s);
			world_wait(&w, &r);
			world_check_receive(&w, &r, 0, 0, RWK_TAGGED, len, 4, flags & RWK_F_DATA);
			world_check(in, len, i);
			assert_int_equal(in[len], 0x5a);
		}
	}
	world_close(&w);
}

/* Messages to myself that nobody receives are bounded by credit and tx_limit, and all arrive once received. */
static void self_flood(void **state)
{
	enum { COUNT = 500 };
	static unsigned char out[1000], in[1000];
	static struct task s[COUNT], r[COUNT];
	unsigned sent = 0;
	struct world w;

	memset(s, 0, sizeof(s)), memset(r, 0, sizeof(r));
	world_open(&w, &(struct world_attr){.transport = *state, .count = 1, .tx_limit = 50, .eager_credit = 32 << 10});
	while (sent < COUNT &&
		!rwk_engine_send1(w.e[0], RWK_TAGGED, w.peer[0][0], out, sizeof(out), sent, 0, 0, &s[sent]))
		sent++;
	assert_in_range(sent, 50 + 16, 50 + 33);
	assert_true(rwk_engine_counters(w.e[0])->unexpected_bytes_peak <= 33 << 10);
	for (unsigned i = 0; i < sent; i++)
		assert_int_equal(world_recv(&w, 0, 0, RWK_TAGGED, in, sizeof(in), i, 0, 0, &r[i]), 0);
	for (unsigned i = 0; i < sent; i++) {
		world_wait(&w, &r[i]);
		world_wait(&w, &s[i]);
	}
	assert_int_equal(rwk_engine_counters(w.e[0])->unexpected_bytes_now, 0);
	assert_int_equal(rwk_engine_send1(w.e[0], RWK_TAGGED, w.peer[0][0], out, sizeof(out), 0, 0, 0, &s[0]), 0);
	world_close(&w);
}

/* Cuts a buffer into `count` pieces of uneven lengths, some empty. */
static void cut(struct iovec *iov, unsigned count, unsigned char *buf, size_t len)
{
	for (unsigned i = 0; i < count; i++) {
		size_t n = i + 1 == count ? len : i % 3 == 1 ? 0 : len / (count - i) / (i % 2 + 1);

		iov[i] = (struct iovec){buf, n};
		buf += n;
		len -= n;
	}
}

/* Scattered buffers on both sides, of every count up to the limit, cut differently; beyond it -EINVAL. */
static void scatter_gather(void **state)
{
	static const size_t lengths[] = {0, 5, 100, 1024, 1025, 5000, 70000, 300000};
	static unsigned char out[300000], in[300001];
	struct iovec from[RWK_ENGINE_IOV_MAX + 1], to[RWK_ENGINE_IOV_MAX + 1];
	struct task bad = {0};
	struct world w;

	world_open_two(&w, *state);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (unsigned count = 1; count <= RWK_ENGINE_IOV_MAX; count++) {
			for (unsigned how = 0; how < 4; how++) {
				size_t len = lengths[i];
				struct task s = {0}, r = {0};
				unsigned target = how & 2; /* 0: to the other, 2: to myself */
				unsigned who = target ? 0 : 1;

				world_fill(out, len, count);
				memset(in, 0x5a, len + 1);
				cut(from, count, out, len);
				cut(to, RWK_ENGINE_IOV_MAX + 1 - count, in, len);
				if (how & 1)
					assert_int_equal(rwk_engine_recv(w.e[who], RWK_TAGGED, NULL, to,
								 RWK_ENGINE_IOV_MAX + 1 - count, 1, 0, 0, &r), 0);
				assert_int_equal(world_sendv(&w, 0, who, RWK_TAGGED, from, count, 1, 0, &s), 0);
				memset(from, 0xff, sizeof(from)); /* the array is the engine's copy by now */
				if (!(how & 1)) {
					world_settle(&w);
					assert_int_equal(rwk_engine_recv(w.e[who], RWK_TAGGED, NULL, to,
								 RWK_ENGINE_IOV_MAX + 1 - count, 1, 0, 0, &r), 0);
				}
				memset(to, 0xff, sizeof(to));
				world_wait(&w, &r);
				world_wait(&w, &s);
				assert_int_equal(r.c.length, len);
				world_check(in, len, count);
				assert_int_equal(in[len], 0x5a);
			}
		}
	}
	cut(from, RWK_ENGINE_IOV_MAX + 1, out, 100);
	assert_int_equal(world_sendv(&w, 0, 1, RWK_TAGGED, from, RWK_ENGINE_IOV_MAX + 1, 1, 0, &bad), -EINVAL);
	assert_int_equal(
		rwk_engine_recv(w.e[0], RWK_TAGGED, NULL, from, RWK_ENGINE_IOV_MAX + 1, 1, 0, 0, &bad), -EINVAL);
	world_close(&w);
}

/* tx_limit and rx_limit: -EAGAIN at the limit, room again once something has completed. */
static void limits(void **state)
{
	static unsigned char out[5000], in[20][5000];
	struct task s[20] = {0}, r[20] = {0};
	unsigned sent = 0, posted = 0;
	struct world w;

	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .tx_limit = 7, .rx_limit = 9});
	while (sent < 20 &&
		!rwk_engine_send1(w.e[0], RWK_TAGGED, w.peer[0][1], out, sizeof(out), 1, 0, RWK_F_DELIVERED, &s[sent]))
		sent++;
	assert_int_equal(sent, 7);
	assert_int_equal(
		rwk_engine_send1(w.e[0], RWK_TAGGED, w.peer[0][1], out, 10, 1, 0, RWK_F_DELIVERED, &s[7]), -EAGAIN);
	while (posted < 20 && !world_recv(&w, 1, 0, RWK_TAGGED, in[posted], sizeof(in[0]), 99, 0, 0, &r[posted]))
		posted++;
	assert_int_equal(posted, 9);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[9], sizeof(in[0]), 1, 0, 0, &r[9]), -EAGAIN);
	assert_int_equal(rwk_engine_cancel(w.e[1], &r[0]), 0);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[9], sizeof(in[0]), 1, 0, 0, &r[9]), 0);
	world_wait(&w, &r[9]);
	world_wait(&w, &s[0]);
	world_settle(&w);
	assert_int_equal(rwk_engine_send1(w.e[0], RWK_TAGGED, w.peer[0][1], out, 10, 1, 0, RWK_F_DELIVERED, &s[7]), 0);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[10], sizeof(in[0]), 1, 0, 0, &r[10]), 0);
	world_wait(&w, &r[10]);
	world_close(&w);
}

/*
 * A transport that exposes few regions at once: rendezvous wait for their turn with -EAGAIN, each gets one, and gives
 * it back.
 */
static void few_regions(void **state)
{
	enum { COUNT = 30 };
	static unsigned char out[COUNT][100000], in[COUNT][100000];
	struct world_attr a = {.transport = &rwk_sim_transport, .count = 2, .service = rwk_sim_service_default};
	struct task s[COUNT] = {0}, r[COUNT] = {0};
	struct world w;

	(void)state;
	a.service.regions = 3;
	world_open(&w, &a);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[i], sizeof(in[i]), 1, 0, 0, &r[i]), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		world_fill(out[i], sizeof(out[i]), i);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], sizeof(out[i]), 1, 0, &s[i]), 0);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		world_wait(&w, &s[i]);
		world_wait(&w, &r[i]);
		world_check(in[i], sizeof(in[i]), i);
	}
	world_close(&w);
}

/*
 * Without end messages of one tag to a receiver that waits for another: what it keeps stays below the credit, later
 * ones wait at the sender as rendezvous, the awaited message gets through, and all arrive in order in the end.
 */
static void flood(void **state)
{
	enum { COUNT = 3000, CREDIT = 64 << 10 };
	static unsigned char out[COUNT][500], in[500];
	static struct task s[COUNT];
	struct task wanted = {0}, last = {0};
	const struct rwk_engine_counters *c;
	uint32_t got = 0;
	struct world w;

	memset(s, 0, sizeof(s));
	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .eager_credit = CREDIT});
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &got, 4, 2, 0, 0, &wanted), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		world_fill(out[i], sizeof(out[i]), i);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], sizeof(out[i]), 1, 0, &s[i]), 0);
		if (i % 10 == 0)
			world_poll(&w);
	}
	world_settle(&w);
	assert_int_equal(wanted.times, 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, &(uint32_t){4711}, 4, 2, RWK_F_INJECT, &last), 0);
	world_wait(&w, &wanted);
	assert_int_equal(got, 4711);
	c = rwk_engine_counters(w.e[1]);
	assert_true(c->unexpected_bytes_peak <= CREDIT + sizeof(out[0]));
	assert_true(c->unexpected_bytes_peak >= CREDIT / 2);
	assert_true(rwk_engine_counters(w.e[0])->credits_waited > COUNT / 2);
	for (unsigned i = 0; i < COUNT; i++) {
		struct task r = {0};

		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
		world_wait(&w, &r);
		world_wait(&w, &s[i]);
		world_check(in, sizeof(in), i);
	}
	assert_int_equal(c->unexpected_bytes_now, 0);
	/* The credit is back: messages that are received as they come go eagerly again. */
	uint64_t before = rwk_engine_counters(w.e[0])->sent_eager;

	for (unsigned i = 0; i < 200; i++) {
		struct task r = {0}, t = {0};

		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], sizeof(out[i]), 1, 0, &t), 0);
		world_wait(&w, &r);
		world_wait(&w, &t);
	}
	assert_int_equal(rwk_engine_counters(w.e[0])->sent_eager - before, 200);
	world_close(&w);
}

/* Everyone floods one receiver that takes from anyone: nobody starves while the others go on. */
static void fairness(void **state)
{
	enum { SENDERS = 4, EACH = 300, WINDOW = 32 };
	static unsigned char in[2000], out[2000];
	static struct task s[SENDERS][EACH];
	unsigned got[SENDERS + 1] = {0}, sent[SENDERS] = {0}, least = 0;
	struct world w;

	memset(s, 0, sizeof(s));
	world_open(&w, &(struct world_attr){.transport = *state, .count = SENDERS + 1, .tx_limit = WINDOW});
	for (unsigned n = 0; n < SENDERS * EACH / 2; n++) {
		struct task r = {0};

		for (unsigned i = 0; i < SENDERS; i++)
			while (sent[i] < EACH && !rwk_engine_send1(w.e[i + 1], RWK_TAGGED, w.peer[i + 1][0], out,
							 sizeof(out), 1, 0, RWK_F_DELIVERED, &s[i][sent[i]]))
				sent[i]++;
		assert_int_equal(world_recv(&w, 0, WORLD_ANY, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
		world_wait(&w, &r);
		for (unsigned i = 1; i <= SENDERS; i++)
			got[i] += r.c.peer == w.peer[0][i];
	}
	least = got[1];
	for (unsigned i = 2; i <= SENDERS; i++)
		least = got[i] < least ? got[i] : least;
	assert_true(least >= EACH / 4);
	world_close(&w);
}

static void open_strangers(struct world *w, void **state)
{
	world_open(w, &(struct world_attr){.transport = *state, .count = 2, .strangers = true});
}

/* Who was not known makes itself known with its first message: one new_peer, and the peer is the one of its address. */
static void unknown_peer(void **state)
{
	struct task s = {0}, r = {0};
	struct rwk_peer *p;
	uint32_t in = 0;
	struct world w;

	open_strangers(&w, state);
	assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_TAGGED, &in, 4, 1, 0, 0, &r), 0);
	p = rwk_engine_peer(w.e[0], rwk_engine_address(w.e[1]));
	assert_int_equal(rwk_engine_send1(w.e[0], RWK_TAGGED, p, &(uint32_t){5}, 4, 1, 0, RWK_F_INJECT, &s), 0);
	world_wait(&w, &r);
	assert_int_equal(in, 5);
	assert_int_equal(w.new_peers[0], 0);
	assert_int_equal(w.new_peers[1], 1);
	p = r.c.peer;
	assert_ptr_equal(p, rwk_engine_peer(w.e[1], rwk_engine_address(w.e[0])));
	assert_int_equal(rwk_peer_user(p), UINT64_MAX);
	rwk_peer_set_user(p, 12);
	assert_int_equal(rwk_peer_user(p), 12);
	world_close(&w);
}

/*
 * A peer known by IP and port alone: its sends can be cancelled before it has answered, others arrive, and then its
 * address is full and leads to the same peer.
 */
static void partial_address(void **state)
{
	struct rwk_address to = {.flags_rank = RWK_ADDR_PARTIAL};
	struct task cancelled = {0}, s = {0}, r = {0};
	uint32_t out[2] = {6, 7}, in = 0;
	struct rwk_peer *p;
	struct world w;

	open_strangers(&w, state);
	memcpy(to.ip, rwk_engine_address(w.e[1])->ip, sizeof(to.ip));
	to.nonce_port = rwk_address_port(rwk_engine_address(w.e[1]));
	p = rwk_engine_peer(w.e[0], &to);
	assert_ptr_equal(rwk_engine_peer(w.e[0], &to), p);
	assert_int_equal(rwk_engine_send1(w.e[0], RWK_TAGGED, p, &out[0], 4, 1, 0, 0, &cancelled), 0);
	assert_int_equal(rwk_engine_send1(w.e[0], RWK_TAGGED, p, &out[1], 4, 1, 0, 0, &s), 0);
	assert_int_equal(rwk_engine_cancel(w.e[0], &cancelled), 0);
	assert_int_equal(cancelled.c.status, -ECANCELED);
	assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_TAGGED, &in, 4, 1, 0, 0, &r), 0);
	world_wait(&w, &r);
	world_wait(&w, &s);
	assert_int_equal(in, 7);
	world_settle(&w);
	assert_memory_equal(rwk_peer_address(p), rwk_engine_address(w.e[1]), sizeof(to));
	assert_ptr_equal(rwk_engine_peer(w.e[0], rwk_engine_address(w.e[1])), p);
	assert_ptr_equal(rwk_engine_peer(w.e[0], &to), p);
	assert_int_equal(w.new_peers[0], 0);
	world_close(&w);
}

/* Counters say what happened. */
static void counters(void **state)
{
	static unsigned char buf[100000];
	const struct rwk_engine_counters *a, *b;
	struct task s[3] = {0}, r[3] = {0};
	struct world w;

	world_open_two(&w, *state);
	a = rwk_engine_counters(w.e[0]);
	b = rwk_engine_counters(w.e[1]);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, 100, 1, 0, &s[0]), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, 100000, 1, 0, &s[1]), 0);
	world_settle(&w);
	assert_int_equal(b->unexpected, 2);
	assert_int_equal(b->unexpected_bytes_now, 100);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, buf, sizeof(buf), 1, 0, 0, &r[i]), 0);
	world_wait(&w, &r[1]);
	world_settle(&w);
	assert_int_equal(a->sent_eager, 1);
	assert_int_equal(a->sent_rendezvous, 1);
	assert_int_equal(a->sent_bytes, 100100);
	assert_int_equal(b->received, 2);
	assert_int_equal(b->received_bytes, 100100);
	assert_int_equal(b->unexpected_bytes_now, 0);
	assert_int_equal(b->unexpected_bytes_peak, 100);
	assert_int_equal(a->failed_peers + b->failed_peers, 0);
	assert_int_equal(w.new_peers[0] + w.new_peers[1], 0);
	world_close(&w);
}

#define over(test, transport) cmocka_unit_test_prestate(test, (void *)&transport)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_regions),
		over(every_size, rwk_sim_transport),
		over(inject, rwk_sim_transport),
		over(delivered, rwk_sim_transport),
		over(user_flags, rwk_sim_transport),
		over(order_holds, rwk_sim_transport),
		over(spaces_apart, rwk_sim_transport),
		over(self, rwk_sim_transport),
		over(self_flood, rwk_sim_transport),
		over(scatter_gather, rwk_sim_transport),
		over(limits, rwk_sim_transport),
		over(flood, rwk_sim_transport),
		over(fairness, rwk_sim_transport),
		over(unknown_peer, rwk_sim_transport),
		over(partial_address, rwk_sim_transport),
		over(counters, rwk_sim_transport),
		over(every_size, rwk_shm_transport),
		over(inject, rwk_shm_transport),
		over(delivered, rwk_shm_transport),
		over(user_flags, rwk_shm_transport),
		over(order_holds, rwk_shm_transport),
		over(spaces_apart, rwk_shm_transport),
		over(self, rwk_shm_transport),
		over(self_flood, rwk_shm_transport),
		over(scatter_gather, rwk_shm_transport),
		over(limits, rwk_shm_transport),
		over(flood, rwk_shm_transport),
		over(fairness, rwk_shm_transport),
		over(unknown_peer, rwk_shm_transport),
		over(partial_address, rwk_shm_transport),
		over(counters, rwk_shm_transport),
	};

	return cmocka_run_group_tests_name("engine messages", tests, NULL, NULL);
}
