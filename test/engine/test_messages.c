/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between engines, over the simulated service and over shared memory: every size at which a protocol begins or
 * ends, order, the two spaces, scattered buffers, myself. What is bounded: test_bounds.c; what receives can ask for
 * besides: test_receives.c; peers that were not known: test_strangers.c; failures: test_failures.c.
 */
#include "engine/world.h"

#include "base/clock.h"
#include "engine/internal.h"

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
		0, RWK_F_DATA, RWK_F_MATCHED, RWK_F_SILENT, RWK_F_DATA | RWK_F_MATCHED | RWK_F_SILENT};
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
				RWK_F_INJECT | (how & 1 ? RWK_F_MATCHED : 0), how & 1);
	assert_int_equal(
		world_send(&w, 0, 1, RWK_TAGGED, buf, sizeof(buf), 1, RWK_F_INJECT | RWK_F_MATCHED, &t), -EMSGSIZE);
	assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, buf, sizeof(buf), 1, RWK_F_INJECT, &t), -EMSGSIZE);
	world_close(&w);
}

static ssize_t inject_word(struct world *w)
{
	return rwk_engine_send1(
		w->e[0], &(uint32_t){4711}, 4, RWK_F_TAGGED | RWK_F_INJECT | RWK_F_SILENT, 0, w->peer[0][1], 1, NULL);
}

/* What was injected is with a peer that has answered, and one that has not is waited for: the sender may sleep then. */
static void inject_and_sleep(void **state)
{
	struct world_retry retry = {0};
	struct task r = {0};
	uint32_t in = 0;
	struct world w;

	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .inject_wait = UINT64_MAX});
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 4, 1, 0, 0, &r), 0);
	assert_int_equal(inject_word(&w), -EAGAIN);
	assert_int_equal(inject_word(&w), -EAGAIN);
	while (inject_word(&w) == -EAGAIN)
		assert_true(world_retry(&w, 0, 1, &retry));
	w.computes[0] = true;
	world_wait(&w, &r);
	assert_int_equal(in, 4711);
	w.computes[0] = false;
	world_close(&w);
}

/* One that does not answer for long is not waited for: the message is kept. */
static void inject_to_sleeper(void **state)
{
	struct task r = {0};
	struct world w;
	uint32_t in = 0;
	unsigned n = 0;

	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .inject_wait = 1});
	while (inject_word(&w) == -EAGAIN)
		assert_true(n++ < 1000);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 4, 1, 0, 0, &r), 0);
	world_wait(&w, &r);
	assert_int_equal(in, 4711);
	world_close(&w);
}

/*
 * Who injects and does nothing else is told to make progress when a message cannot go at once, and finds there what it
 * lacked: none of them is announced.
 */
static void inject_and_nothing_else(void **state)
{
	struct task r[200] = {0};
	uint32_t in[200] = {0};
	unsigned refused = 0;
	struct world w;

	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .eager_credit = 1000});
	for (int i = 0; i < 200; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in[i], 4, 1, 0, 0, &r[i]), 0);
	for (int i = 0; i < 200; i++) {
		while (inject_word(&w) == -EAGAIN) {
			assert_true(++refused < 100);
			world_settle(&w);
		}
	}
	for (int i = 0; i < 200; i++) {
		world_wait(&w, &r[i]);
		assert_int_equal(in[i], 4711);
	}
	assert_true(refused);
	assert_int_equal(rwk_engine_counters(w.e[0])->sent_rendezvous, 0);
	world_close(&w);
}

#define KEPT 4

/* As inject_word, of that tag; the world goes on while it is refused, for 20 seconds of the real clock. */
static void inject_in_the_end(struct world *w, uint64_t tag)
{
	uint64_t end = rwk_clock_now() + 20000000000u;

	while (rwk_engine_send1(w->e[0], &(uint32_t){4711}, 4, RWK_F_TAGGED | RWK_F_INJECT | RWK_F_SILENT, 0,
		       w->peer[0][1], tag, NULL) == -EAGAIN) {
		assert_true(rwk_clock_now() < end);
		world_step(w);
	}
}

/*
 * As many as may be kept are injected without credit, and the next is refused: its sender is held back. But if that one
 * is what the receiver waits for before it takes the others, it comes.
 */
static void inject_before_others(void **state)
{
	struct task wanted = {0}, r[KEPT + 2] = {0};
	uint32_t in = 0, others[KEPT + 2] = {0};
	unsigned n = 0;
	struct world w;

	world_open(&w, &(struct world_attr){
				.transport = *state, .count = 2, .eager_credit = 1, .inject_limit = KEPT});
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 4, 2, 0, 0, &wanted), 0);
	while (n < KEPT + 2 && !inject_word(&w)) {
		n++;
		world_settle(&w);
	}
	assert_true(n >= KEPT && n < KEPT + 2);
	inject_in_the_end(&w, 2);
	world_wait(&w, &wanted);
	assert_int_equal(in, 4711);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &others[i], 4, 1, 0, 0, &r[i]), 0);
		world_wait(&w, &r[i]);
		assert_int_equal(others[i], 4711);
	}
	world_close(&w);
}

/* The longest that may be injected are kept as they were, and what is kept is bounded by bytes. */
static void inject_long(void **state)
{
	unsigned char in[RWK_INJECT_MAX], out[RWK_INJECT_MAX];
	struct task r = {0};
	unsigned n = 0;
	struct world w;

	world_open(&w, &(struct world_attr){
				.transport = *state, .count = 2, .eager_credit = 1, .inject_limit = 64});
	for (int refused = 0; refused < 3;) {
		memset(out, (int)n + 1, sizeof(out));
		if (rwk_engine_send1(w.e[0], out, sizeof(out), RWK_F_TAGGED | RWK_F_INJECT | RWK_F_SILENT, 0,
			    w.peer[0][1], n, NULL))
			refused += n > 2;
		else
			n++;
		world_settle(&w);
	}
	assert_in_range(n, 3, 10);
	for (unsigned i = n; i--;) {
		memset(out, (int)i + 1, sizeof(out));
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), i, 0, 0, &r), 0);
		world_wait(&w, &r);
		assert_memory_equal(in, out, sizeof(in));
		r.times = 0;
	}
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

		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, lengths[i], 1, RWK_F_MATCHED, &s), 0);
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
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, 8, 1, RWK_F_USER | RWK_F_MATCHED, &s), 0);
	world_wait(&w, &s);
	world_wait(&w, &r);
	assert_int_equal(s.c.flags & ~(RWK_F_USER - 1), RWK_F_USER);
	assert_int_equal(r.c.flags, RWK_F_RECV | RWK_F_TAGGED | RWK_F_USER << 3);
	world_close(&w);
}

/*
 * A message of no length needs no buffer at either end: the first receive or a later one takes it, before and after it
 * came, and one with room for something too.
 */
static void no_buffer(void **state)
{
	static char room[100];
	struct world w;

	world_open_two(&w, *state);
	for (unsigned how = 0; how < 16; how++) {
		unsigned to = how & 1, receives = how & 2 ? 3 : 1;
		size_t len = how & 8 ? sizeof(room) : 0;
		struct task s = {0}, r[3] = {0};

		if (how & 4) {
			assert_int_equal(world_send(&w, 0, to, RWK_TAGGED, NULL, 0, 0, 0, &s), 0);
			world_settle(&w);
		}
		for (unsigned i = receives; i--;)
			assert_int_equal(world_recv(&w, to, 0, RWK_TAGGED, len ? room : NULL, len, i, 0, 0, &r[i]), 0);
		if (!(how & 4))
			assert_int_equal(world_send(&w, 0, to, RWK_TAGGED, NULL, 0, 0, 0, &s), 0);
		world_wait(&w, &r[0]);
		world_wait(&w, &s);
		world_check_receive(&w, &r[0], to, 0, RWK_TAGGED, 0, 0, false);
		for (unsigned i = 1; i < receives; i++) {
			assert_int_equal(rwk_engine_cancel(w.e[to], &r[i]), 0);
			world_wait(&w, &r[i]);
		}
	}
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
			uint32_t flags = (how & 4 ? RWK_F_MATCHED : 0) | (how & 2 ? RWK_F_DATA : 0);

			world_fill(out, len, i);
			memset(in, 0x5a, len + 1);
			if (how & 1)
				assert_int_equal(
					world_recv(&w, 0, how & 2 ? 0 : WORLD_ANY, RWK_TAGGED, in, len, 4, 0, 0, &r),
					0);
			assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, out, len, 4, flags, &s), 0);
			if (!(how & 1)) {
				if (flags & RWK_F_MATCHED)
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

/*
 * Longer than any message may be, in one piece or in several whose lengths would wrap: refused, by whoever it goes to,
 * met or not, and nothing else happens. A receive may be as long as it likes.
 */
static void too_long(void **state)
{
	static const size_t lengths[] = {SIZE_MAX / 2 + 1, SIZE_MAX - 1, SIZE_MAX};
	unsigned char out[2] = {1, 2}, in[2] = {0};
	const struct iovec wrapped[] = {{out, SIZE_MAX}, {out, 2}};
	struct task t = {0}, s = {0}, r = {0};
	struct world w;

	world_open_two(&w, *state);
	for (unsigned met = 0; met < 2; met++) {
		for (unsigned to = 0; to < 2; to++) {
			for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
				assert_int_equal(
					world_send(&w, 0, to, RWK_TAGGED, out, lengths[i], 1, 0, &t), -EMSGSIZE);
				assert_int_equal(
					world_send(&w, 0, to, RWK_PLAIN, out, lengths[i], 1, RWK_F_ARRIVED, &t),
					-EMSGSIZE);
			}
			assert_int_equal(world_sendv(&w, 0, to, RWK_TAGGED, wrapped, 2, 1, 0, &t), -EMSGSIZE);
		}
		r = s = (struct task){0};
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, SIZE_MAX, 1, 0, 0, &r), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, sizeof(out), 1, 0, &s), 0);
		world_wait(&w, &s);
		world_wait(&w, &r);
		assert_int_equal(r.c.status, 0);
		assert_int_equal(r.c.length, sizeof(out));
		assert_memory_equal(in, out, sizeof(out));
	}
	assert_int_equal(t.times, 0);
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

/* Lengths that the peer had rather fetch are announced though there is credit, in order with the others; until it
 * thinks otherwise. */
static void fetched(void **state)
{
	static const size_t lengths[] = {RWK_FETCHED_MIN, RWK_FETCHED_MIN + 1, 2 * RWK_FETCHED_MIN,
		2 * RWK_FETCHED_MIN + 1, 4 * RWK_FETCHED_MIN, 4 * RWK_FETCHED_MIN + 1, 8 * RWK_FETCHED_MIN};
	enum { COUNT = sizeof(lengths) / sizeof(*lengths) };
	static unsigned char out[COUNT][8 * RWK_FETCHED_MIN], in[8 * RWK_FETCHED_MIN];
	struct task s[COUNT] = {0}, r[COUNT] = {0}, hello[2] = {0};
	const struct rwk_engine_counters *a;
	struct world w;

	world_open(&w, &(struct world_attr){.transport = *state,
			       .count = 2,
			       .service = {.send_max = 8 * RWK_FETCHED_MIN, .window = 16, .room = 4, .timeout = 20000}});
	a = rwk_engine_counters(w.e[0]);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 1, 1, 0, 0, &hello[1]), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 1, 1, 0, &hello[0]), 0);
	world_wait(&w, &hello[1]);
	for (unsigned wanted = 0; wanted < 8; wanted++) {
		uint64_t announced = a->sent_rendezvous, expected = 0;

		w.peer[0][1]->channel->fetched = (uint8_t)wanted;
		for (unsigned i = 0; i < COUNT; i++) {
			world_fill(out[i], lengths[i], wanted * COUNT + i);
			assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], lengths[i], 1, 0, &s[i]), 0);
			expected += i && wanted >> (i - 1) / 2 & 1;
		}
		assert_int_equal(a->sent_rendezvous - announced, expected);
		for (unsigned i = 0; i < COUNT; i++) {
			r[i] = (struct task){0};
			assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r[i]), 0);
			world_wait(&w, &r[i]);
			world_wait(&w, &s[i]);
			s[i] = (struct task){0};
			assert_int_equal(r[i].c.length, lengths[i]);
			world_check(in, lengths[i], wanted * COUNT + i);
		}
	}
	assert_int_equal(a->credits_waited, 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(every_size),
		WORLD_EACH(inject),
		WORLD_EACH(inject_and_sleep),
		WORLD_EACH(inject_to_sleeper),
		WORLD_EACH(inject_and_nothing_else),
		WORLD_EACH(inject_before_others),
		WORLD_EACH(inject_long),
		WORLD_EACH(delivered),
		WORLD_EACH(user_flags),
		WORLD_EACH(no_buffer),
		WORLD_EACH(order_holds),
		WORLD_EACH(spaces_apart),
		WORLD_EACH(self),
		WORLD_EACH(scatter_gather),
		WORLD_EACH(too_long),
		WORLD_EACH(counters),
		WORLD_EACH(fetched),
	};

	return cmocka_run_group_tests_name("engine messages", tests, NULL, NULL);
}
