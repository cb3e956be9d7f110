/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers as the engine has them: exposed and read through ports, with everything around them; awake, asleep, and
 * when the peer dies.
 */
#include "rwk_test.h"

#include "ends.h"

#include <signal.h>
#include <unistd.h>

enum { READS = 24, SIZE = 700001 };

/* Exposes its buffers to the one who has sent a message, tells the keys, and serves until that one goes away. */
static int exposer(int fd, void *arg)
{
	struct end *e = end_open(0, true);
	struct rwk_rkey key[READS];
	struct rwk_channel *ch;

	(void)arg;
	if (!tell(fd, &e->address, sizeof(e->address)) || !end_until_peers(e, 1, 10000) ||
		!end_until(e, &e->peer[0].received, 1, 10000))
		return 101;
	ch = e->peer[0].ch;
	for (uint64_t i = 0; i < READS; i++) {
		unsigned char *buf = malloc(SIZE);
		struct iovec iov[2] = {{buf, SIZE / 3}, {buf + SIZE / 3, SIZE - SIZE / 3}};

		if (!buf)
			return 102;
		pattern_fill(buf, i, SIZE);
		if (ch->transport->expose(ch, iov, 2, RWK_EXPOSE_READ, &key[i]))
			return 103;
	}
	if (!tell(fd, key, sizeof(key)) || !end_until_failed(e, &e->peer[0], 60000))
		return 104;
	return 0;
}

struct read {
	struct rwk_op op;
	struct iovec iov;
	unsigned char *buf;
	int status;
};

static uint64_t reads_done;

static void read_done(struct rwk_op *op, int status)
{
	((struct read *)op)->status = status;
	reads_done++;
}

struct scene {
	struct end *e;
	struct end_peer *p;
	struct rwk_rkey key[READS];
	struct read read[READS];
	pid_t child;
	int fd;
};

static void scene_begin(struct scene *s)
{
	struct rwk_address a;

	s->child = child_run(exposer, NULL, &s->fd);
	s->e = end_open(0, true);
	assert_true(hear(s->fd, &a, sizeof(a)));
	s->p = end_connect(s->e, &a);
	assert_true(end_push(s->e, s->p, 8, 0));
	assert_true(hear(s->fd, s->key, sizeof(s->key)));
	reads_done = 0;
}

static void post_all(struct scene *s)
{
	for (int i = 0; i < READS; i++) {
		struct read *r = &s->read[i];

		r->buf = calloc(1, SIZE);
		assert_non_null(r->buf);
		r->iov = (struct iovec){r->buf, SIZE};
		r->op = (struct rwk_op){.type = RWK_OP_READ,
			.iov = &r->iov,
			.iov_count = 1,
			.length = SIZE,
			.rkey = s->key[i],
			.done = read_done};
		assert_int_equal(s->p->ch->transport->post(s->p->ch, &r->op), 0);
	}
}

/* Every read that succeeded has its bytes; returns how many did. */
static int look_at_all(struct scene *s)
{
	int good = 0;

	for (int i = 0; i < READS; i++) {
		if (!s->read[i].status) {
			assert_true(pattern_is(s->read[i].buf, (uint64_t)i, SIZE));
			good++;
		}
		free(s->read[i].buf);
	}
	return good;
}

static void scene_end(struct scene *s, int expected)
{
	end_close(s->e);
	assert_int_equal(child_wait(s->child), expected);
	close(s->fd);
}

/* Many reads at once through ports that are polled. */
static void awake(void **state)
{
	static struct scene s;

	(void)state;
	scene_begin(&s);
	post_all(&s);
	assert_true(end_until(s.e, &reads_done, READS, 10000));
	assert_int_equal(look_at_all(&s), READS);
	scene_end(&s, 0);
}

/* A reader that sleeps whenever it has nothing to do gets them, too. */
static void asleep(void **state)
{
	static struct scene s;

	(void)state;
	scene_begin(&s);
	post_all(&s);
	assert_true(end_sleep_until(s.e, &reads_done, READS, 10000));
	assert_int_equal(look_at_all(&s), READS);
	scene_end(&s, 0);
}

/*
 * The exposer is killed while they run: each read ends, with its bytes or with -ECONNRESET. Three
 * seconds are promised; a busy machine may take longer.
 */
static void killed(void **state)
{
	static struct scene s;

	(void)state;
	for (uint64_t after = 0; after < 10; after++) {
		scene_begin(&s);
		post_all(&s);
		end_until(s.e, &reads_done, after, 10000);
		kill(s.child, SIGKILL);
		assert_true(end_until(s.e, &reads_done, READS, 20000));
		for (int i = 0; i < READS; i++)
			assert_true(!s.read[i].status || s.read[i].status == -ECONNRESET);
		assert_true(look_at_all(&s) >= (int)after);
		scene_end(&s, 128 + SIGKILL);
	}
}

/* The reader closes its port while they run: each read is given back once, cancelled, and the exposer is told. */
static void closed(void **state)
{
	static struct scene s;

	(void)state;
	scene_begin(&s);
	post_all(&s);
	end_until(s.e, &reads_done, 3, 10000);
	end_close(s.e);
	assert_int_equal(reads_done, READS);
	for (int i = 0; i < READS; i++)
		assert_true(!s.read[i].status || s.read[i].status == -ECANCELED);
	look_at_all(&s);
	assert_int_equal(child_wait(s.child), 0);
	close(s.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(awake),
		cmocka_unit_test(asleep),
		cmocka_unit_test(killed),
		cmocka_unit_test(closed),
	};

	return cmocka_run_group_tests_name("shm/transfer_service", tests, NULL, NULL);
}
