/* SPDX-License-Identifier: BSD-3-Clause */
/* Which thread of the peer's is named in cross-memory copies, and what becomes of them when it is no more. */
#include "rwk_test.h"

#include "transfer_roles.h"

#include <unistd.h>

enum { BYTES = 20000 };

/* An exposed buffer, and what it may be used for. */
struct plan {
	unsigned access;
	bool threads;
};

static int exposer(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *plan = arg;
	static unsigned char buf[BYTES];
	struct iovec iov = {buf, BYTES};
	struct tp_sleeper s;

	tp_fill(buf, BYTES, 0);
	CHECK(!plan->threads || tp_sleeper_start(&s));
	CHECK(!rwk_shm_expose(ch, &iov, 1, plan->access, &tp_side(ch, true)->key[0]));
	tp_say(ch, 3, plan->threads ? (uint64_t)s.number : 0);
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	CHECK(!plan->threads || tp_sleeper_end(&s));
	tp_say(ch, 1, 2);
	CHECK(tp_wait(ch, 2, 2));
	CHECK(!(plan->access & RWK_EXPOSE_WRITE) || tp_same(buf, BYTES, 0, 1));
	return 0;
}

static int read_it(struct rwk_shm_channel *ch, const struct rwk_rkey *key)
{
	static unsigned char buf[BYTES];
	struct iovec iov = {buf, BYTES};
	struct tp_op o;
	int rc;

	memset(buf, 0xff, BYTES);
	rc = tp_read(ch, &o, key, 0, &iov, 1, BYTES);
	rc = rc ? rc : tp_finish(ch, &o, 20000);
	return rc ? rc : tp_same(buf, BYTES, 0, 0) ? 0 : -EIO;
}

static int write_it(struct rwk_shm_channel *ch, const struct rwk_rkey *key)
{
	static unsigned char buf[BYTES];
	struct iovec iov = {buf, BYTES};
	struct tp_op o;
	int rc;

	tp_fill(buf, BYTES, 1);
	rc = tp_write(ch, &o, key, 0, &iov, 1, BYTES);
	return rc ? rc : tp_finish(ch, &o, 20000);
}

/* As if the number of the peer's thread were that of one of this process', which has memory at the same addresses. */
static void mistake(struct rwk_shm_transfers *t)
{
	t->named = getpid();
	t->proven = 0;
}

static int user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *plan = arg;
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	struct rwk_shm_transfers *t;

	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_PULL);
	CHECK(!read_it(ch, key));
	t = *rwk_shm_transfer_state(ch);
	CHECK(!t->named); /* not for one copy */
	for (int i = 0; i < 100; i++)
		CHECK(!read_it(ch, key));
	CHECK(t->named == (pid_t)tp_heard(ch, 3));
	tp_say(ch, 2, 1);
	CHECK(tp_wait(ch, 1, 2));
	CHECK(!read_it(ch, key) && !t->named);

	mistake(t);
	CHECK(!read_it(ch, key) && !t->named);
	if (plan->access & RWK_EXPOSE_WRITE) {
		mistake(t);
		CHECK(!write_it(ch, key) && !t->named);
	}
	CHECK(!tp_counts(ch)->denials);
	tp_say(ch, 2, 2);
	return 0;
}

/* One that sleeps; where none does, or it has ended, the process; where its number is another's now, too. */
static void threads_come_and_go(void **state)
{
	static const struct plan plans[] = {{RWK_EXPOSE_READ, true}, {RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, true},
		{RWK_EXPOSE_READ, false}, {RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		tp_run(exposer, user, &plans[i]);
}

/* Of several pieces, whose record in the peer is looked up first. */
static int scattered_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	return tp_expose_and_serve(ch, 1, BYTES, 3);
}

static int mistaken_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_PULL);
	CHECK(!read_it(ch, key));
	for (int i = 0; i < 2; i++) {
		mistake(*rwk_shm_transfer_state(ch));
		CHECK(!read_it(ch, key));
	}
	CHECK(!tp_counts(ch)->denials);
	tp_say(ch, 2, 1);
	return 0;
}

static void pieces_of_a_stranger(void **state)
{
	(void)state;
	tp_run(scattered_exposer, mistaken_reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(pieces_of_a_stranger),
	};

	return cmocka_run_group_tests_name("shm/transfer_reach", tests, NULL, NULL);
}
