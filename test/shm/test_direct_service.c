/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct reads and writes as the engine has them: through ports, with everything around them; the peer stopped, dead,
 * or gone.
 */
#include "rwk_test.h"

#include "ends.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 16 << 20, REGIONS = 3 };

/* What parent and child tell each other: the keys; and the memory itself, so that the parent can look. */
struct told {
	struct rwk_rkey key[REGIONS];
	bool direct;
};

static unsigned char *memory; /* REGIONS regions of SIZE bytes that both see: the last is for reading alone */

/* Exposes to the one who has sent a message, tells the keys, conceals the region whose number it hears, says so. */
static int exposer(int fd, void *arg)
{
	struct end *e = end_open(0, true);
	struct rwk_channel *ch;
	struct told told;
	uint64_t order;

	(void)arg;
	if (!tell(fd, &e->address, sizeof(e->address)) || !end_until(e, &e->peer[0].received, 1, 10000))
		return 101;
	ch = e->peer[0].ch;
	for (unsigned i = 0; i < REGIONS; i++) {
		struct iovec iov = {memory + (size_t)i * SIZE, SIZE};

		if (ch->transport->expose(ch, &iov, 1,
			RWK_EXPOSE_READ | (i < REGIONS - 1 ? RWK_EXPOSE_WRITE : 0u), &told.key[i]))
			return 102;
	}
	told.direct = ch->direct_min != 0;
	if (!tell(fd, &told, sizeof(told)))
		return 103;
	while (hear(fd, &order, sizeof(order))) {
		if (order == REGIONS) { /* leaves */
			end_close(e);
			tell(fd, &order, sizeof(order));
			pause();
		}
		ch->transport->conceal(ch, &told.key[order]);
		if (!tell(fd, &order, sizeof(order)))
			return 104;
	}
	return 0;
}

struct direct {
	struct rwk_op op;
	struct iovec iov;
	int status; /* 1: under way */
};

static uint64_t done_count;

static void direct_done(struct rwk_op *op, int status)
{
	((struct direct *)op)->status = status;
	done_count++;
}

struct scene {
	struct end *e;
	struct end_peer *p;
	struct told told;
	pid_t child;
	int fd;
	unsigned char *buf;
};

static bool heard_all(struct scene *s)
{
	return recv(s->fd, &s->told, sizeof(s->told), MSG_PEEK | MSG_DONTWAIT) == sizeof(s->told);
}

static void scene_begin(struct scene *s)
{
	struct rwk_address a;

	memory = mmap(NULL, (size_t)REGIONS * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	s->child = child_run(exposer, NULL, &s->fd);
	s->e = end_open(0, true);
	assert_true(hear(s->fd, &a, sizeof(a)));
	s->p = end_connect(s->e, &a);
	assert_int_equal(s->p->ch->direct_min, 0); /* nobody is there yet */
	assert_true(end_push(s->e, s->p, 8, 0));
	for (uint64_t end = now_ms() + 10000; now_ms() < end && !heard_all(s);)
		s->p->ch->transport->progress(s->e->port);
	assert_true(hear(s->fd, &s->told, sizeof(s->told)));
	assert_true(s->told.direct && s->p->ch->direct_min);
	s->buf = calloc(1, SIZE);
	assert_non_null(s->buf);
	done_count = 0;
}

static void scene_end(struct scene *s)
{
	int status;

	if (s->e)
		end_close(s->e);
	kill(s->child, SIGKILL);
	assert_int_equal(waitpid(s->child, &status, 0), s->child);
	close(s->fd);
	free(s->buf);
	munmap(memory, (size_t)REGIONS * SIZE);
}

/* Posts it: what post says. */
static int post(struct scene *s, struct direct *d, bool write, unsigned region, size_t length)
{
	*d = (struct direct){
		.op = {.type = write ? RWK_OP_WRITE : RWK_OP_READ,
			.iov = &d->iov,
			.iov_count = 1,
			.length = length,
			.rkey = s->told.key[region],
			.done = direct_done},
		.iov = {s->buf, length},
		.status = 1,
	};
	return s->p->ch->transport->post(s->p->ch, &d->op);
}

static void order(struct scene *s, uint64_t what)
{
	assert_true(tell(s->fd, &what, sizeof(what)));
	assert_true(hear(s->fd, &what, sizeof(what)));
}

/* With the peer stopped: short ones end in post, long ones in progress, and all is there. */
static void peer_stopped(void **state)
{
	static struct scene s;
	struct direct d, more[2];
	int status;

	(void)state;
	scene_begin(&s);
	kill(s.child, SIGSTOP);
	assert_int_equal(waitpid(s.child, &status, WUNTRACED), s.child);
	assert_true(WIFSTOPPED(status));
	for (uint64_t i = 0; i < 100; i++) {
		size_t length = (size_t)1 << i % 20;

		pattern_fill(s.buf, i, length);
		assert_int_equal(post(&s, &d, true, 0, length), 1);
		assert_true(pattern_is(memory, i, length));
		pattern_fill(memory + (size_t)2 * SIZE, i + 1, length);
		assert_int_equal(post(&s, &d, false, 0, length), 1);
		assert_true(pattern_is(s.buf, i, length));
	}
	pattern_fill(s.buf, 7, SIZE);
	assert_int_equal(post(&s, &d, true, 1, SIZE), 0);
	assert_true(end_until(s.e, &done_count, 1, 10000));
	assert_int_equal(d.status, 0);
	assert_true(pattern_is(memory + SIZE, 7, SIZE));
	assert_int_equal(post(&s, &more[0], false, 1, SIZE), 0);
	assert_int_equal(post(&s, &more[1], false, 0, 8), 0); /* behind it */
	assert_int_equal(s.p->ch->transport->withdraw(s.p->ch, &more[1].op), 0);
	assert_int_equal(s.p->ch->transport->withdraw(s.p->ch, &more[0].op), -EBUSY);
	assert_int_equal(s.p->ch->transport->arm(s.e->port), -EAGAIN); /* nobody would wake it */
	assert_true(end_sleep_until(s.e, &done_count, 2, 10000));
	assert_int_equal(more[0].status, 0);
	assert_int_equal(more[1].status, 1);
	/* what is for reading alone may be helped with, and comes all the same */
	pattern_fill(memory + (size_t)2 * SIZE, 9, SIZE);
	assert_int_equal(post(&s, &d, true, 2, 8), -EACCES);
	assert_int_equal(post(&s, &d, false, 2, SIZE), 0);
	assert_true(end_until(s.e, &done_count, 3, 10000));
	assert_int_equal(d.status, 0);
	assert_true(pattern_is(s.buf, 9, SIZE));
	kill(s.child, SIGCONT);
	scene_end(&s);
}

/* Concealed: refused at once, and what is under way ends; the other region and the channel live. */
static void concealed(void **state)
{
	static struct scene s;
	struct direct d;

	(void)state;
	scene_begin(&s);
	assert_int_equal(post(&s, &d, true, 0, SIZE), 0);
	order(&s, 0);
	memset(memory, 0xee, SIZE);
	assert_true(end_until(s.e, &done_count, 1, 10000));
	assert_int_equal(d.status, -EACCES);
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(memory[i], 0xee);
	assert_int_equal(post(&s, &d, true, 0, 8), -EACCES);
	assert_int_equal(post(&s, &d, false, 0, 8), -EACCES);
	assert_int_equal(post(&s, &d, true, 1, 8), 1);
	assert_int_equal(s.p->failed, 0);
	scene_end(&s);
}

/* The peer is killed while they run: each ends once, with success or -ECONNRESET; then post says so. */
static void killed(void **state)
{
	static struct scene s;
	struct direct d[8];

	(void)state;
	for (unsigned after = 0; after < 6; after++) {
		scene_begin(&s);
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(post(&s, &d[i], i % 2, i % 2, SIZE), 0);
		end_until(s.e, &done_count, after, 10000);
		kill(s.child, SIGKILL);
		assert_true(end_until_failed(s.e, s.p, 20000));
		assert_int_equal(done_count, 8);
		for (unsigned i = 0; i < 8;
			i++) /* the last: while the peer's memory goes and its process is not yet gone */
			assert_true(!d[i].status || d[i].status == -ECONNRESET || d[i].status == -EOPNOTSUPP);
		assert_true(post(&s, &d[0], true, 0, 8) == -ECONNRESET);
		scene_end(&s);
	}
}

/* The port is closed while they run: each ends cancelled. And the peer's is: they end in error. */
static void closed(void **state)
{
	static struct scene s;
	struct direct d[4];

	(void)state;
	scene_begin(&s);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(post(&s, &d[i], i % 2, 0, SIZE), 0);
	end_until(s.e, &done_count, 1, 10000);
	end_close(s.e);
	s.e = NULL;
	assert_int_equal(done_count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_true(!d[i].status || d[i].status == -ECANCELED);
	assert_int_equal(d[3].status, -ECANCELED);
	scene_end(&s);

	scene_begin(&s);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(post(&s, &d[i], i % 2, 0, SIZE), 0);
	order(&s, REGIONS);
	assert_true(end_until_failed(s.e, s.p, 20000));
	assert_int_equal(done_count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_true(d[i].status == -EACCES || d[i].status == -ECONNRESET);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_stopped),
		cmocka_unit_test(concealed),
		cmocka_unit_test(killed),
		cmocka_unit_test(closed),
	};

	rwk_param_load();
	return cmocka_run_group_tests_name("shm/direct_service", tests, NULL, NULL);
}
