/* SPDX-License-Identifier: BSD-3-Clause */
/* How messages should come, by what either way takes: a sender that does as it is told, on a clock of the test's. */
#include "rwk_test.h"

#include "shm/arrival.h"

#define LENGTH ((size_t)32 << 10)

struct sender {
	struct rwk_shm_arrival a;
	size_t length;
	uint64_t now;       /* ns */
	uint64_t pieces_ns; /* that a message takes, */
	uint64_t fetch_ns;
	uint64_t gap_ns;    /* and between two, */
	uint64_t wait_ns;   /* of which so much more where what is fetched holds its sender up */
	uint64_t late_ns;   /* before the receiver looks, from when one in pieces is begun */
	unsigned answers;   /* one goes back after so many messages; 0: none does */
	unsigned announced; /* one of so many is, though nobody asked; 0: none */
	unsigned lag; /* messages that are under way when it is told */
	unsigned changes;
	uint64_t in_pieces, fetched, spent; /* messages, ns */
	uint8_t heard[64]; /* what it will know: the one told `lag` messages ago */
	uint64_t sent;
};

#define TOLD 8 /* one of so many in pieces that are answered tells when it was begun */

static bool in_pieces(struct sender *s)
{
	struct rwk_shm_arrival *a = &s->a;
	bool silent = !s->answers || s->sent % s->answers;
	bool told = !silent && s->in_pieces % TOLD == 0;

	s->now += s->late_ns;
	rwk_shm_arrival_begins(a, s->length, silent, told ? (uint32_t)s->late_ns : 0, told ? s->now : 0);
	s->now += s->pieces_ns;
	s->in_pieces++;
	return rwk_shm_arrival_whole(a, s->length, rwk_shm_arrival_measures(a, s->length) ? s->now : 0);
}

/* A message goes the way that the sender knows of. */
static void message(struct sender *s)
{
	struct rwk_shm_arrival *a = &s->a;
	uint8_t knows = s->heard[s->sent % 64];
	uint64_t before = s->now;
	bool changed;

	s->now += s->gap_ns;
	if (knows >> rwk_fetched_class(s->length) & 1 || (s->announced && s->sent % s->announced == 0)) {
		s->now += s->wait_ns + s->fetch_ns;
		s->fetched++;
		changed = rwk_shm_arrival_fetched(a, s->length, (float)s->fetch_ns / (float)(s->length / 1024), s->now);
	} else {
		changed = in_pieces(s);
	}
	s->changes += changed;
	s->spent += s->now - before;
	s->sent++;
	s->heard[(s->sent + s->lag) % 64] = a->wanted;
}

static void messages(struct sender *s, unsigned n)
{
	while (n--)
		message(s);
}

static void begin(struct sender *s, uint64_t pieces_ns, uint64_t fetch_ns, unsigned lag)
{
	*s = (struct sender){
		.length = LENGTH,
		.pieces_ns = pieces_ns,
		.fetch_ns = fetch_ns,
		.gap_ns = 500,
		.answers = 1,
		.lag = lag,
	};
}

static void begin_stream(struct sender *s, uint64_t pieces_ns, uint64_t fetch_ns)
{
	begin(s, pieces_ns, fetch_ns, 0);
	s->answers = 0;
	s->gap_ns = 0;
}

static const unsigned lags[] = {0, 1, 60};

/* The quicker way is found soon, and kept to; what is tried beside it costs little. */
static void quicker_way(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lags) / sizeof(*lags); i++) {
		struct sender s;

		begin(&s, 3000, 2000, lags[i]);
		messages(&s, 200);
		assert_true(rwk_fetched_class(LENGTH) == 1 && s.a.wanted == 2);
		messages(&s, 20000);
		assert_true(s.in_pieces < 20200 / 40);
		begin(&s, 2000, 3000, lags[i]);
		messages(&s, 20000);
		assert_int_equal(s.a.wanted & 2, 0);
		assert_in_range(s.fetched, 16, 20000 / 32);
		assert_true(s.spent < (uint64_t)20000 * 2500 * 1008 / 1000);
	}
}

/* A little quicker is not enough to change; in a stream less is enough. */
static void about_the_same(void **state)
{
	static const struct {
		bool stream;
		uint64_t takes; /* when it is fetched, of 2000 ns */
		bool enough;
	} cases[] = {
		{false, 1550, false},
		{false, 1350, true},
		{true, 1900, false},
		{true, 1700, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sender s;

		if (cases[i].stream)
			begin_stream(&s, 2000, cases[i].takes);
		else
			begin(&s, 2000, cases[i].takes, 0);
		messages(&s, 5000);
		assert_true(cases[i].enough ? s.in_pieces < 500 : s.fetched >= 16 && s.fetched < 500);
	}
}

/* After so many messages these are to be fetched. */
static void come_to(struct sender *s, unsigned n, uint8_t wanted)
{
	messages(s, n);
	assert_int_equal(s->a.wanted, wanted);
}

/* Fetching becomes quicker, slower, quicker; then pieces do. What has to be tried first takes many messages. */
static void found_out(struct sender *s, unsigned first, unsigned seldom, unsigned soon, unsigned in_the_end)
{
	come_to(s, first, 0);
	s->fetch_ns = 1000;
	come_to(s, seldom, 2);
	s->fetch_ns = 4000;
	come_to(s, soon, 0);
	s->fetch_ns = 1000;
	come_to(s, seldom, 2);
	s->pieces_ns = 500;
	come_to(s, in_the_end, 0);
}

/* What changes is found out, in both directions, whatever part of the messages is not measured when it does. */
static void changes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct sender s;

		begin(&s, 2000, 4000, 1);
		found_out(&s, 5000 + i * 8, 20000, 200, 1000);
	}
}

/* Of a stream more is measured at a time: longer trials are made, and fewer. */
static void changes_of_a_stream(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct sender s;

		begin_stream(&s, 2000, 4000);
		s.lag = 1;
		found_out(&s, 5000 + i * 8, 100000, 640, 100000);
		assert_true(s.changes < 20);
	}
}

/*
 * In a stream the time between two counts, in which the sender makes the next one; where something goes back it does
 * not. And a sender whose messages are fetched cannot make the next one meanwhile.
 */
static void time_between(void **state)
{
	static const struct {
		unsigned answers;
		uint64_t gap, wait; /* ns, beside 2000 in pieces and 1300 fetched */
		uint8_t wanted;
	} cases[] = {
		{0, 0, 0, 2},
		{0, 6000, 0, 0}, /* 7300 of 8000 */
		{0, 500, 1000, 0},
		{1, 3000, 0, 2},
		{1, 500, 1000, 2},
		{16, 500, 1000, 0}, /* as in windows both ways */
		{2, 500, 1000, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sender s;

		begin(&s, 2000, 1300, 0);
		s.answers = cases[i].answers;
		s.gap_ns = cases[i].gap;
		s.wait_ns = cases[i].wait;
		come_to(&s, 1000, cases[i].wanted);
	}
}

/* What was a stream is answered, and is a stream again: each time the better way under the circumstances is found. */
static void end_of_stream(void **state)
{
	struct sender s;

	(void)state;
	begin_stream(&s, 2000, 1300);
	s.gap_ns = 500;
	s.wait_ns = 1000;
	come_to(&s, 1000, 0);
	s.answers = 1;
	come_to(&s, 1000, 2);
	s.answers = 0;
	come_to(&s, 10000, 0);
	come_to(&s, 1000, 0);
}

/* What is answered is no measure of a stream, which begins later. */
static void begin_of_stream(void **state)
{
	struct sender s;

	(void)state;
	begin(&s, 2000, 3000, 0);
	come_to(&s, 1000, 0);
	assert_int_equal(s.changes, 2);
	s.answers = 0;
	messages(&s, 5 * 64);
	assert_int_equal(s.changes, 2);
	messages(&s, 5 * 64);
	assert_int_equal(s.changes, 4);
}

/* A trial that shows nothing is no reason for the next one. */
static void nothing_known(void **state)
{
	struct sender s;

	(void)state;
	begin(&s, 2000, 0, 0);
	messages(&s, 20000);
	assert_in_range(s.fetched, 16, 20000 / 64);
}

/*
 * Some that are announced for want of credit do not keep the others from being measured, however many they are; nor do
 * they decide by themselves before anything is known of these.
 */
static void announced(void **state)
{
	struct sender s;

	(void)state;
	begin_stream(&s, 20000, 2500);
	s.announced = 6;
	come_to(&s, 64, 0);
	s.pieces_ns = 2000;
	come_to(&s, 20000, 0);
	s.fetch_ns = 1000;
	come_to(&s, 60000, 2);
	begin_stream(&s, 2000, 1000);
	s.announced = 2;
	come_to(&s, 1000, 2);
}

/* Behind each message another one of 64 KB, which takes 4000 ns either way. */
static void with_another(struct sender *s, unsigned n)
{
	const size_t other = (size_t)64 << 10;

	while (n--) {
		message(s);
		s->now += 4000;
		if (s->a.wanted >> rwk_fetched_class(other) & 1) {
			rwk_shm_arrival_fetched(&s->a, other, 62, s->now);
			continue;
		}
		rwk_shm_arrival_begins(&s->a, other, true, 0, 0);
		rwk_shm_arrival_whole(&s->a, other, rwk_shm_arrival_measures(&s->a, other) ? s->now : 0);
	}
}

/* Where messages of two classes take turns each has its own way. */
static void turns(void **state)
{
	struct sender s;

	(void)state;
	begin_stream(&s, 2000, 3000);
	with_another(&s, 5000);
	assert_int_equal(s.a.wanted & 2, 0);
	assert_in_range(s.fetched, 16, 5000 / 20);
	begin_stream(&s, 2000, 1000);
	with_another(&s, 5000);
	assert_int_equal(s.a.wanted & 2, 2);
	assert_in_range(s.in_pieces, 64, 5000 / 8);
}

/* Reads that one call brings end at once; what they take together counts. */
static void several_at_once(void **state)
{
	struct rwk_shm_arrival a = {.wanted = 2};

	(void)state;
	rwk_shm_arrival_begins(&a, LENGTH, true, 0, 0);
	rwk_shm_arrival_whole(&a, LENGTH, 1);
	for (unsigned i = 0; i < 256; i++)
		rwk_shm_arrival_fetched(&a, LENGTH, 10, 1000 + i / 8 * 8192);
	assert_true(a.class[rwk_fetched_class(LENGTH)].flows[RWK_SHM_FETCHED].least == 32);
}

/*
 * What a message takes before the receiver looks is nothing that the way could change; but if that is more than half of
 * what it takes then, the receiver has been filling slabs himself.
 */
static void busy_receiver(void **state)
{
	struct sender s;

	(void)state;
	for (unsigned busy = 0; busy < 2; busy++) {
		begin(&s, 2000, 1900, 0);
		s.late_ns = busy ? 1100 : 900;
		messages(&s, 5000);
		assert_int_equal(s.a.wanted, busy ? 2 : 0);
	}
}

/* The first messages meet with memory that nobody has touched: what they take does not decide for long. */
static void slow_start(void **state)
{
	static const unsigned slow[] = {10, 24, 60};

	(void)state;
	for (size_t i = 0; i < sizeof(slow) / sizeof(*slow); i++) {
		struct sender s;

		begin(&s, 100000, 4000, 0);
		messages(&s, slow[i]);
		s.pieces_ns = 2000;
		messages(&s, 10000);
		assert_int_equal(s.a.wanted, 0);
		assert_true(s.fetched < (slow[i] < 30 ? 100 : 9000));
	}
}

/*
 * Where the sender of a stream is ahead each of its slabs comes from afar once: what messages take until then decides
 * neither at first nor after a time in which all were fetched.
 */
static void cold_slabs(void **state)
{
	struct sender s;

	(void)state;
	begin_stream(&s, 4000, 2500);
	messages(&s, 100);
	s.pieces_ns = 2000;
	come_to(&s, 2000, 0);
	s.pieces_ns = 4000;
	come_to(&s, 40000, 2);
	for (unsigned i = 0; i < 8; i++) {
		while (s.a.wanted)
			message(&s);
		messages(&s, 32);
		s.pieces_ns = 2000;
		come_to(&s, 2000, 0);
		s.pieces_ns = 4000;
		come_to(&s, 40000 + i, 2);
	}
}

/* Each class has its own way, and one that nobody uses is not touched. */
static void classes(void **state)
{
	const size_t other = (size_t)1 << 20;
	struct sender s;

	(void)state;
	begin(&s, 3000, 2000, 0);
	for (unsigned i = 0; i < 500; i++) {
		message(&s);
		if (s.a.wanted >> rwk_fetched_class(other) & 1) {
			rwk_shm_arrival_fetched(&s.a, other, 100, s.now);
			continue;
		}
		rwk_shm_arrival_begins(&s.a, other, false, 0, s.now);
		s.now += 50000;
		rwk_shm_arrival_whole(&s.a, other, s.now);
	}
	assert_int_equal(s.a.wanted, 2);
}

/* The printed table names the way that most took, of all that were added, and fits whatever room there is. */
static void prints(void **state)
{
	struct rwk_shm_arrivals all = {0};
	struct sender s;
	char buf[256], tiny[10];

	(void)state;
	assert_int_equal(rwk_shm_arrival_print(&all, buf, sizeof(buf)), 0);
	begin(&s, 8192, 4096, 0);
	for (int i = 0; i < 2; i++) {
		messages(&s, 10);
		rwk_shm_arrival_add(&all, &s.a);
		s = (struct sender){.length = 16384, .pieces_ns = 8192, .answers = 1};
	}
	rwk_shm_arrival_fetched(&s.a, 32768, 256, s.now);
	rwk_shm_arrival_add(&all, &s.a);
	rwk_shm_arrival_print(&all, buf, sizeof(buf));
	assert_string_equal(buf, "to      16 KB: in pieces  in pieces 2.0 GB/s (10)\n"
				 "to      32 KB: in pieces  in pieces 4.0 GB/s (10)  fetched 4.0 GB/s (1)\n");
	assert_true(rwk_shm_arrival_print(&all, tiny, sizeof(tiny)) < sizeof(tiny));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quicker_way),
		cmocka_unit_test(about_the_same),
		cmocka_unit_test(changes),
		cmocka_unit_test(changes_of_a_stream),
		cmocka_unit_test(time_between),
		cmocka_unit_test(end_of_stream),
		cmocka_unit_test(begin_of_stream),
		cmocka_unit_test(nothing_known),
		cmocka_unit_test(announced),
		cmocka_unit_test(turns),
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(cold_slabs),
		cmocka_unit_test(busy_receiver),
		cmocka_unit_test(slow_start),
		cmocka_unit_test(classes),
		cmocka_unit_test(prints),
	};

	return cmocka_run_group_tests_name("shm/arrival", tests, NULL, NULL);
}
