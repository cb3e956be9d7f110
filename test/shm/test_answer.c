/* SPDX-License-Identifier: BSD-3-Clause */
/* How answers are awaited: two sides that ask each other in turn, on a clock of the test's, and two real ones. */
#include "rwk_test.h"

#include "ends.h"

#include "base/clock.h"
#include "shm/channel.h"

#include <unistd.h>

#define ROUND_TRIP 300u /* ticks */
#define TAKEN_AWAY 150u /* so much later comes an answer whose line has been looked at */
#define PERIOD     RWK_SHM_ANSWER_PERIOD
#define FEWEST     600u   /* questions to a real one, of which each length is twice */
#define LONGEST    10000u /* ms that more than those may take, where two processes have one processor */

struct side {
	struct rwk_shm_answer a;
	bool never, rested;
	uint64_t waited; /* ticks, from its questions to their answers */
	uint64_t longer; /* of them after the answer had come */
};

struct talk {
	struct side side[2];
	uint32_t now, line;
	uint32_t work;   /* ticks that an answer takes, */
	uint32_t jitter; /* and at random so many more */
	unsigned seed;
};

static uint32_t takes(struct talk *t)
{
	return ROUND_TRIP + t->work + (t->jitter ? (uint32_t)rand_r(&t->seed) % t->jitter : 0);
}

/* Side `who` asks, and its answer is the other's next question. A look that is too early is in the way of both sides.
 */
static void ask(struct talk *t, int who)
{
	struct side *me = &t->side[who], *other = &t->side[!who];
	uint32_t comes = takes(t), look = 0;

	me->rested = false;
	if (rwk_shm_answer_matters(&me->a, t->line))
		me->rested = rwk_shm_answer_asked(&me->a, t->line, t->now) && !me->never;
	if (me->rested)
		look = rwk_shm_answer_rest(&me->a, t->now);
	if (look < comes || !other->rested)
		comes += TAKEN_AWAY;
	if (me->rested)
		rwk_shm_answer_look(&me->a, look >= comes);
	if (look < comes)
		look = comes;
	me->waited += look;
	me->longer += look - comes;
	t->now += look;
	t->line += (uint32_t)who; /* of both, one side's lines count */
}

static void rounds(struct talk *t, unsigned n)
{
	while (n--) {
		ask(t, 0);
		ask(t, 1);
	}
}

static uint64_t mean(struct talk *t, unsigned n)
{
	t->side[0].waited = t->side[1].waited = t->side[0].longer = t->side[1].longer = 0;
	rounds(t, n);
	return (t->side[0].waited + t->side[1].waited) / 2 / n;
}

/* Answers that take the same time: both rest, few looks come too early, and hardly any late; also where ticks begin
 * again. */
static void steady(void **state)
{
	struct talk t = {.work = 200, .now = UINT32_MAX - 100000};

	(void)state;
	rounds(&t, 200);
	assert_true(t.side[0].a.rests && t.side[1].a.rests);
	assert_in_range(mean(&t, 2 * PERIOD), 500, 540);
	rounds(&t, 1000); /* a trial puts it off a little */
	for (int i = 0; i < 2; i++) {
		assert_in_range(t.side[i].a.rest, 490, 530);
		assert_true(t.side[i].a.count[false] * 10 < t.side[i].a.count[true]);
		assert_true(t.side[i].longer < (uint64_t)2 * PERIOD * 20);
	}
}

/* Answers that take any time: nobody rests, but in trials, and they take as long as ever. */
static void unsteady(void **state)
{
	struct talk t = {.jitter = 2000, .seed = 3}, plain = t;
	uint64_t with, without;

	(void)state;
	plain.side[0].never = plain.side[1].never = true;
	rounds(&t, 200);
	assert_true(!t.side[0].a.rests && !t.side[1].a.rests);
	with = mean(&t, 8 * PERIOD);
	without = mean(&plain, 8 * PERIOD);
	assert_true(with * 100 < without * 102);
}

/* Where the other side does not, this one gives it up, too. */
static void alone(void **state)
{
	struct talk t = {.work = 200};

	(void)state;
	t.side[1].never = true;
	rounds(&t, 200);
	assert_false(t.side[0].a.rests);
	rounds(&t, 2 * PERIOD);
	assert_false(t.side[0].a.rests);
}

/* What has become of it is found out at the next trial, either way. */
static void changes(void **state)
{
	struct talk t = {.work = 200, .seed = 5};

	(void)state;
	rounds(&t, 200);
	t.jitter = 1000;
	rounds(&t, 2 * PERIOD);
	assert_true(!t.side[0].a.rests && !t.side[1].a.rests);
	t.jitter = 0;
	rounds(&t, 2 * PERIOD);
	assert_true(t.side[0].a.rests && t.side[1].a.rests);
}

/* Answers that come sooner from now on are soon found sooner, and later ones are not looked for too early for long. */
static void sooner(void **state)
{
	struct talk t = {.work = 600};

	(void)state;
	rounds(&t, 1000);
	assert_in_range(t.side[0].a.rest, 890, 930);
	t.work = 100;
	rounds(&t, 250);
	assert_true(t.side[0].a.rest < 450);
	t.work = 500;
	rounds(&t, 50);
	assert_true(t.side[0].a.rest > 790);
}

/* Nobody rests longer than REST_MAX, nor for what was asked long ago; what takes longer needs none. */
static void too_long(void **state)
{
	struct talk t = {.work = 20000};
	struct rwk_shm_answer *a = &t.side[0].a;

	(void)state;
	rounds(&t, 200);
	assert_true(!a->rests && !t.side[1].a.rests);
	assert_in_range(a->rest, RWK_SHM_ANSWER_REST_MAX - 100, RWK_SHM_ANSWER_REST_MAX);
	a->rested = true;
	rwk_shm_answer_asked(a, RWK_SHM_ANSWER_TRIAL, 1000);
	assert_int_equal(rwk_shm_answer_rest(a, 1100), a->rest - 100);
	assert_int_equal(rwk_shm_answer_rest(a, 1000 + a->rest), 0);
	assert_int_equal(rwk_shm_answer_rest(a, 1000 + UINT32_MAX / 2), 0);
	assert_int_equal(rwk_shm_answer_rest(a, 1000 + UINT32_MAX - 2000), 0);
}

/* A trial in which nearly nothing is asked decides nothing: it stays as it was. */
static void nothing_tried(void **state)
{
	struct talk t = {.work = 200};

	(void)state;
	rounds(&t, 200);
	t.line = PERIOD + RWK_SHM_ANSWER_SETTLE;
	t.work = 0;
	t.side[0].a.rest = t.side[1].a.rest = 900; /* would decide against it */
	rounds(&t, 20);
	t.line = PERIOD + RWK_SHM_ANSWER_TRIAL;
	rounds(&t, 20);
	assert_true(t.side[0].a.rests && t.side[1].a.rests);
}

static int echoing(int fd, void *arg)
{
	struct end *e = end_open(0, false);

	(void)arg;
	e->echo = true;
	if (!tell(fd, &e->address, sizeof(e->address)))
		return 100;
	if (!end_until_peers(e, 1, 10000) || !end_until_failed(e, &e->peer[0], 60000))
		return 101;
	return e->wrong != 0;
}

/* Of real ones each answer comes, in order, after a rest or not, in one line, in two and in a slab. */
static void real(void **state)
{
	static const size_t lengths[] = {8, 100, 4000};
	struct end *e = end_open(0, false);
	struct rwk_shm_answer *a;
	struct rwk_address to;
	uint64_t end = now_ms() + LONGEST;
	struct end_peer *p;
	pid_t child;
	int fd;

	(void)state;
	child = child_run(echoing, NULL, &fd);
	assert_true(hear(fd, &to, sizeof(to)));
	p = end_connect(e, &to);
	a = &rwk_shm_channel(p->ch)->answer;
	for (unsigned i = 0; i < FEWEST || (i < 6000 && now_ms() < end); i++) {
		assert_true(end_push(e, p, lengths[i / 100 % 3], 0));
		assert_true(end_until(e, &p->received, p->sent, 10000));
	}
	assert_true(a->count[false] + a->count[true] > 50);
	assert_int_equal(e->wrong, 0);
	end_close(e);
	assert_int_equal(child_wait(child), 0);
	close(fd);
}

/* What comes back in the slab that went is expected to do so again; nothing in another one, nor what is shorter. */
static void slab_back(void **state)
{
	static const struct {
		unsigned times; /* as many are sent one after the other, of that length; the last one */
		size_t length;
		uint32_t expected;
	} back[] = {{1, 4000, 4000}, {1, 8, 0}, {1, 3000, 3000}, {2, 4000, 0}};
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *there = end_meet(a, b), *here = &b->peer[0];

	(void)state;
	for (size_t i = 0; i < sizeof(back) / sizeof(*back); i++) {
		assert_true(end_push(a, there, 4000, 0));
		assert_true(end_until(b, &here->received, there->sent, 10000));
		for (unsigned k = 0; k < back[i].times; k++)
			assert_true(end_push(b, here, back[i].length, 0));
		assert_true(end_until(a, &there->received, here->sent, 10000));
		assert_int_equal(rwk_shm_channel(there->ch)->rx.expect_back, back[i].expected);
	}
	end_close(a);
	end_close(b);
}

/* Whoever goes to sleep while it is too early for a look finds what has come all the same. */
static void no_sleep(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_meet(a, b);
	struct rwk_shm_answer *answer = &rwk_shm_channel(p->ch)->answer;

	(void)state;
	assert_true(end_push(b, &b->peer[0], 8, 0));
	answer->awaited = true;
	answer->rest = RWK_SHM_ANSWER_REST_MAX;
	answer->asked = rwk_clock_ticks();
	assert_int_equal(rwk_shm_transport.arm(a->port), -EAGAIN);
	assert_true(end_until(a, &p->received, 1, 10000));
	end_close(a);
	end_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady),
		cmocka_unit_test(unsteady),
		cmocka_unit_test(alone),
		cmocka_unit_test(changes),
		cmocka_unit_test(sooner),
		cmocka_unit_test(too_long),
		cmocka_unit_test(nothing_tried),
		cmocka_unit_test(real),
		cmocka_unit_test(slab_back),
		cmocka_unit_test(no_sleep),
	};

	return cmocka_run_group_tests_name("shm/answer", tests, NULL, NULL);
}
