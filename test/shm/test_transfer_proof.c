/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose bytes a read brings: a process is believed to be the peer for a short time after it has shown a cookie, a
 * region no longer than it is exposed.
 */
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"

#include <time.h>
#include <unistd.h>

enum { BYTES = 20000 };

static int read_it(struct rwk_shm_channel *ch, const struct rwk_rkey *key, unsigned char *buf)
{
	struct iovec iov = {buf, BYTES};
	struct tp_op o;
	int rc = tp_read(ch, &o, key, 0, &iov, 1, BYTES);

	return rc ? rc : tp_finish(ch, &o, 20000);
}

static int exposer(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[BYTES];
	struct iovec iov = {buf, BYTES};
	struct tp_side *mine = tp_side(ch, true);

	tp_fill(buf, BYTES, 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, *(const unsigned *)arg, &mine->key[0]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	rwk_shm_conceal(ch, &mine->key[0]);
	tp_say(ch, 1, 2);
	CHECK(tp_wait(ch, 2, 2));
	return 0;
}

/* The number belongs to somebody else, who has memory at the same address, for the time of one read. */
static int read_stranger(struct rwk_shm_channel *ch, const struct rwk_rkey *key, unsigned char *buf)
{
	static unsigned char foreign[BYTES];
	struct rwk_rkey theirs = *key;
	pid_t peer = tp_side(ch, false)->pid;
	int rc;

	theirs.word[2] = (uint64_t)(uintptr_t)foreign;
	theirs.word[1] = (uint64_t)(uintptr_t)(foreign + BYTES - 256);
	tp_side(ch, false)->pid = getpid();
	rc = read_it(ch, &theirs, buf);
	tp_side(ch, false)->pid = peer;
	return rc;
}

static int reader(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	const struct timespec long_enough = {0, 3000000};
	unsigned char *buf = malloc(BYTES);
	struct rwk_shm_transfers *t;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_PULL);
	CHECK(rwk_shm_key_listed(key));
	for (int i = 0; i < 3; i++) {
		memset(buf, 0xff, BYTES);
		CHECK(!read_it(ch, key, buf) && tp_same(buf, BYTES, 0, 0));
	}
	t = *rwk_shm_transfer_state(ch);
	CHECK(t->proven && rwk_clock_now() >= t->proven);
	nanosleep(&long_enough, NULL);
	CHECK(rwk_shm_proof_needed(t, key, rwk_clock_now()));
	CHECK(read_stranger(ch, key, buf) == -EACCES);

	/* a call that has lost its core on the way shows nothing; the next one begins anew */
	CHECK(!rwk_shm_proof_held(t, key->word[0], rwk_clock_now()) && !t->proven);
	CHECK(rwk_shm_proof_needed(t, key, rwk_clock_now()));
	CHECK(!read_it(ch, key, buf) && tp_same(buf, BYTES, 0, 0) && t->proven);
	CHECK(rwk_shm_proof_held(t, key->word[0], t->proven + 1));

	tp_say(ch, 2, 1);
	CHECK(tp_wait(ch, 1, 2));
	CHECK(!rwk_shm_proof_held(t, key->word[0], t->proven + 1) && !t->proven);
	for (int i = 0; i < 3; i++) {
		t->proven = rwk_clock_now();
		CHECK(read_it(ch, key, buf) == -EACCES);
	}
	CHECK(!tp_protocol_error(ch));
	free(buf);
	tp_say(ch, 2, 2);
	return 0;
}

/* Of memory that is exposed for one read, and of a region that stays. */
static void believed_for_a_while(void **state)
{
	static const unsigned access[] = {RWK_EXPOSE_READ, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE};

	(void)state;
	for (size_t i = 0; i < sizeof(access) / sizeof(access[0]); i++)
		tp_run(exposer, reader, &access[i]);
}

static int many_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[BYTES];
	struct iovec iov = {buf, BYTES};
	struct rwk_rkey key, *keys = malloc(RWK_SHM_LISTED * sizeof(*keys));

	(void)arg;
	CHECK(keys);
	tp_fill(buf, BYTES, 0);
	for (uint32_t i = 0; i < RWK_SHM_LISTED; i++)
		CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &keys[i]) && rwk_shm_key_listed(&keys[i]));
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &key) && !rwk_shm_key_listed(&key));
	tp_side(ch, true)->key[0] = key;
	free(keys);
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	rwk_shm_conceal(ch, &key);
	tp_say(ch, 1, 2);
	CHECK(tp_wait(ch, 2, 2));
	return 0;
}

static int many_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	unsigned char *buf = malloc(BYTES);

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_PULL);
	for (int i = 0; i < 3; i++) {
		memset(buf, 0xff, BYTES);
		CHECK(!read_it(ch, key, buf) && tp_same(buf, BYTES, 0, 0));
	}
	tp_say(ch, 2, 1);
	CHECK(tp_wait(ch, 1, 2));
	CHECK(read_it(ch, key, buf) == -EACCES);
	free(buf);
	tp_say(ch, 2, 2);
	return 0;
}

/* More regions than the area lists: each read of those beyond shows the cookie. */
static void more_than_listed(void **state)
{
	(void)state;
	tp_run(many_exposer, many_reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(believed_for_a_while),
		cmocka_unit_test(more_than_listed),
	};

	return cmocka_run_group_tests_name("shm/transfer_proof", tests, NULL, NULL);
}
