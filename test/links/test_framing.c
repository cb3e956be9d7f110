/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets on a stream of bytes: what comes in any pieces, on several streams by turns, and what is no frame. */
#include "rwk_test.h"

#include "framing.h"

#include <sys/socket.h>
#include <unistd.h>

#define PACKETS 40

static struct rwk_frame_reader reader;

static struct stream {
	int in, out;
	struct rwk_frame_part part;
	unsigned next; /* the packet that is due */
} a, b;

static uint8_t bytes[PACKETS * (RWK_FRAME_HEAD + RWK_FRAME_MAX)];
static size_t all; /* of them */

static void open_stream(struct stream *s)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	*s = (struct stream){.in = pair[0], .out = pair[1]};
}

static void close_stream(struct stream *s)
{
	rwk_frame_forget(&reader, &s->part);
	rwk_frame_part_close(&s->part);
	close(s->in);
	close(s->out);
}

/* Lengths from nothing to the longest. */
static uint32_t length(unsigned i)
{
	return i == 3 ? 0 : i == 5 ? RWK_FRAME_MAX : i * 577 % RWK_FRAME_MAX;
}

static int set_up(void **state)
{
	(void)state;
	all = 0;
	for (unsigned i = 0; i < PACKETS; i++) {
		uint32_t len = length(i);

		memcpy(bytes + all, &len, RWK_FRAME_HEAD);
		memset(bytes + all + RWK_FRAME_HEAD, (int)i + 1, len);
		all += RWK_FRAME_HEAD + len;
	}
	open_stream(&a);
	open_stream(&b);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_stream(&a);
	close_stream(&b);
	return 0;
}

static void say(const struct stream *s, const void *what, size_t len)
{
	assert_int_equal(send(s->out, what, len, 0), len);
}

/* Delivers what the reader has of a stream: what ended that. */
static int deliver(struct stream *s)
{
	const uint8_t *packet;
	size_t len;
	int err;

	while (!(err = rwk_frame_next(&reader, &packet, &len))) {
		assert_int_equal(len, length(s->next));
		for (size_t i = 0; i < len; i++)
			assert_int_equal(packet[i], (uint8_t)(s->next + 1));
		s->next++;
	}
	assert_null(reader.part);
	return err;
}

static void say_and_read(struct stream *s, size_t at, size_t len)
{
	say(s, bytes + at, len);
	assert_int_equal(rwk_frame_read(&reader, &s->part, s->in), len);
	assert_int_equal(deliver(s), -EAGAIN);
}

/* Cut anywhere, each packet comes whole, once and in order, while another stream is cut elsewhere. */
static void pieces(void **state)
{
	static const size_t steps[] = {1, 2, 3, 5, 577, RWK_FRAME_HEAD + RWK_FRAME_MAX,
		RWK_FRAME_HEAD + RWK_FRAME_MAX + 1, 30000};

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		size_t n, m, other = 0;

		a.next = b.next = 0;
		for (size_t at = 0; at < all; at += n) {
			n = all - at < steps[i] ? all - at : steps[i];
			say_and_read(&a, at, n);
			m = at + n == all ? all - other : (at + n - other) / 2;
			if (m)
				say_and_read(&b, other, m);
			other += m;
		}
		assert_int_equal(a.next, PACKETS);
		assert_int_equal(b.next, PACKETS);
		assert_int_equal(a.part.len + b.part.len, 0);
	}
	assert_int_equal(rwk_frame_read(&reader, &a.part, a.in), -EAGAIN);
	close(a.out);
	a.out = -1;
	assert_int_equal(rwk_frame_read(&reader, &a.part, a.in), 0);
}

/* A good-bye, and lengths that no frame has, end the stream; what came before them is delivered, what is behind not. */
static void ends(void **state)
{
	static const struct {
		uint32_t length;
		int err;
	} cases[] = {
		{RWK_FRAME_GOODBYE, -ESHUTDOWN},
		{RWK_FRAME_GOODBYE - 1, -EPROTO},
		{RWK_FRAME_MAX + 1, -EPROTO},
		{0x10000, -EPROTO},
		{0x7fffffff, -EPROTO},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tear_down(state);
		set_up(state);
		say(&a, bytes, RWK_FRAME_HEAD + length(0) + RWK_FRAME_HEAD + length(1));
		say(&a, &cases[i].length, sizeof(cases[i].length));
		say(&a, bytes, 100);
		assert_true(rwk_frame_read(&reader, &a.part, a.in) > 0);
		assert_int_equal(deliver(&a), cases[i].err);
		assert_int_equal(a.next, 2);
	}
}

/* One that is forgotten while it is delivered from is not delivered from any more; another that is forgotten is not. */
static void forgotten(void **state)
{
	const uint8_t *packet;
	size_t len;

	(void)state;
	say(&a, bytes, RWK_FRAME_HEAD + length(0) + RWK_FRAME_HEAD + length(1));
	assert_true(rwk_frame_read(&reader, &a.part, a.in) > 0);
	rwk_frame_forget(&reader, &b.part);
	assert_int_equal(rwk_frame_next(&reader, &packet, &len), 0);
	rwk_frame_forget(&reader, &a.part);
	assert_int_equal(rwk_frame_next(&reader, &packet, &len), -EAGAIN);
	say(&b, bytes, RWK_FRAME_HEAD + length(0));
	assert_true(rwk_frame_read(&reader, &b.part, b.in) > 0);
	assert_int_equal(deliver(&b), -EAGAIN);
	assert_int_equal(b.next, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pieces, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forgotten, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("links/framing", tests, NULL, NULL);
}
