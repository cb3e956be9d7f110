/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer: it has attached as it should and then writes what it likes over everything it shares. We may get garbage, and the
 * channel may fail with -EPROTO; we never read or write outside our mappings (meant to run under sanitizers as well) and
 * our other peers do not notice.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "base/log.h"
#include "shm/channel.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

static void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

/* Bytes that are as likely as possible to be taken for something: small numbers, stamps to come, record kinds. */
static uint64_t nasty(struct rwk_shm_channel *ch, unsigned *seed)
{
	static const uint8_t kinds[] = {0, 5, 0x7f, 0xdf, 0xe0, 0xe1, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xff};
	uint64_t r = (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed) << 11 ^ (uint64_t)rand_r(seed);

	switch (rand_r(seed) % 4) {
	case 0: /* a plausible line */
		return (r & 0xffffff0000000000ull) | (uint64_t)kinds[(r >> 32) % sizeof(kinds)] << 32 |
			(ch->tx.stamp + (uint32_t)(rand_r(seed) % 8) * RWK_SHM_STAMP_STEP +
				(rand_r(seed) % 3 ? 1023 : (uint32_t)(rand_r(seed) % 1024)));
	case 1:
		return (uint64_t)(rand_r(seed) % 130) | (uint64_t)(rand_r(seed) % 9000) << 32;
	case 2:
		return (uint64_t)rand_r(seed) % 70000;
	default:
		return r;
	}
}

/* Sends some proper messages, then writes into ring, sides, slabs and inbox; goes on until it is killed. */
static int scribble(int fd, void *arg)
{
	struct end *e = end_open(0, true);
	struct end_peer *p;
	unsigned seed = (unsigned)getpid(), i;
	struct rwk_address to;
	struct rwk_shm_channel *ch;
	(void)arg;

	if (!hear(fd, &to, sizeof(to)) || !hear(fd, &seed, sizeof(seed)))
		return 1;
	e->tolerant = true;
	p = end_connect(e, &to);
	for (i = 0; i < 100 && !p->failed; i++) {
		if (!end_push(e, p, i * 100, 0))
			return 2;
	}
	ch = rwk_shm_channel(p->ch);
	for (;;) {
		struct rwk_shm_line *line = ch->tx.first + (seed % 4 ? (ch->tx.next - ch->tx.first + rand_r(&seed) % 6) %
									 ch->tx.lines
								     : (uint32_t)rand_r(&seed) % ch->tx.lines_max);
		_Atomic uint32_t *side = (_Atomic uint32_t *)ch->pair->side;

		for (int w = 7; w >= 0; w--)
			((_Atomic uint64_t *)line)[w] = nasty(ch, &seed);
		if (rand_r(&seed) % 16 == 0)
			side[(uint32_t)rand_r(&seed) % (2 * sizeof(struct rwk_shm_side) / 4)] = (uint32_t)nasty(ch, &seed);
		if (rand_r(&seed) % 64 == 0)
			ch->inbox->bell[(uint32_t)rand_r(&seed) % (RWK_SHM_BELLS / 64)] = nasty(ch, &seed);
		if (rand_r(&seed) % 64 == 0)
			ch->inbox->asleep = (uint32_t)rand_r(&seed) % 2;
		if (rand_r(&seed) % 8 == 0)
			((_Atomic uint64_t *)rwk_shm_slab(&ch->slabs, (uint32_t)rand_r(&seed) % 128))[rand_r(&seed) % 1000] =
				nasty(ch, &seed);
		if (rand_r(&seed) % 1000 == 0)
			ch->pair->ring_lines = (uint32_t)nasty(ch, &seed);
		if (rand_r(&seed) % 32 == 0)
			ch->tx.stamp += RWK_SHM_STAMP_STEP;
		if (rand_r(&seed) % 32 == 0)
			poll(NULL, 0, 0);
	}
}

/* Has the newest scribbler said all that it says in good order? */
static bool greeted(const struct end *e, unsigned before, const struct end *good)
{
	const struct end_peer *p = e->peers > before ? &e->peer[e->peers - 1] : NULL;

	return p && p->address.nonce_port != good->address.nonce_port && (p->failed || p->received > 100);
}

/* Random garbage, forty peers; a good peer talks all the while and all its messages are right. */
static void scribblers(void **state)
{
	struct end *e = end_open(0, true), *good = end_open(0, true);
	struct end_peer *g = end_connect(good, &e->address);
	unsigned violations = 0;

	(void)state;
	e->tolerant = true;
	good->echo = false;
	rwk_log_set_sink(no_log);
	for (unsigned i = 0; i < 40; i++) {
		unsigned before = e->peers;
		int fd;
		pid_t child = child_run(scribble, NULL, &fd);
		uint64_t end;

		assert_true(tell(fd, &e->address, sizeof(e->address)));
		assert_true(tell(fd, &i, sizeof(i)));
		end = now_ms() + 25;
		while (now_ms() < end || (now_ms() < end + 5000 && !greeted(e, before, good))) {
			struct end_peer *p = &e->peer[e->peers ? e->peers - 1 : 0];

			rwk_shm_transport.progress(e->port);
			rwk_shm_transport.progress(good->port);
			end_send(good, g, 300, 0, false);
			/* We write too: what the peer says about our ring is believed as little. */
			if (e->peers > before && !p->failed && p->ch->error == 0)
				end_send(e, p, (size_t)(i * 37 % 9000), 0, false);
			if (!rwk_shm_transport.arm(e->port))
				rwk_shm_transport.progress(e->port);
		}
		kill(child, SIGKILL);
		assert_int_equal(child_wait(child), 128 + SIGKILL);
		close(fd);
		for (unsigned k = 0; k < e->peers; k++) {
			struct end_peer *p = &e->peer[k];

			if (p->address.nonce_port == good->address.nonce_port || !p->ch)
				continue;
			assert_true(end_until_failed(e, p, 3000));
			assert_true(p->failed == -EPROTO || p->failed == -ECONNRESET);
			assert_int_equal(p->failed_calls, 1);
			violations += p->failed == -EPROTO;
			rwk_shm_transport.disconnect(p->ch);
			p->ch = NULL;
		}
	}
	rwk_log_set_sink(NULL);
	assert_true(violations > 0);
	assert_int_equal(rwk_shm_port_counters(e->port)->violations, violations);
	for (unsigned k = 0; k < e->peers; k++) {
		if (e->peer[k].address.nonce_port != good->address.nonce_port)
			continue;
		assert_int_equal(e->peer[k].failed, 0);
		assert_true(end_until(e, &e->peer[k].received, g->sent, 5000));
	}
	assert_true(g->sent > 100);
	end_close(good);
	end_close(e);
}

/* Single lies, each of which must be found out: two ports in this process, one of which forges a line of its ring. */
struct lie {
	const char *what;
	unsigned kind, len;
	uint64_t word[4]; /* tag, data or body, slab and piece, total */
};

static void forge(struct rwk_shm_channel *ch, const struct lie *l)
{
	struct rwk_shm_line *line = ch->tx.next;

	memcpy(&line->tag, l->word, sizeof(l->word));
	rwk_shm_tx_line(&ch->tx, l->len, l->kind);
}

static uint64_t slab_piece(uint32_t slab, uint32_t piece)
{
	return (uint64_t)piece << 32 | slab;
}

static void single_lies(void **state)
{
	/* The liar is given side 0 or 1 by chance; the slabs 0 and 64 are each side's own, of which one is a lie. */
	const struct lie lies[] = {
		{"a slab beyond the last", 1, RWK_SHM_IN_SLAB, {0, 0, slab_piece(128, 100), 100}},
		{"a slab of the other", 1, RWK_SHM_IN_SLAB, {0, 0, slab_piece(UINT32_MAX, 100), 100}},
		{"a piece longer than a slab", 1, RWK_SHM_IN_SLAB, {0, 0, slab_piece(0, 8193), 8193}},
		{"a piece of nothing", 1, RWK_SHM_IN_SLAB, {0, 0, slab_piece(0, 0), 0}},
		{"a piece longer than its message", 1, RWK_SHM_IN_SLAB, {0, 0, slab_piece(0, 100), 99}},
		{"a message longer than any", 1, RWK_SHM_IN_SLAB, {0, 0, slab_piece(0, 8192), (1 << 20) + 1}},
		{"a piece of no message", RWK_SHM_PIECE, RWK_SHM_IN_SLAB, {0, 0, slab_piece(0, 100), 100}},
		{"too many lines", 1, 273, {0}},
		{"a control record too long", RWK_SHM_BYE, 49, {0}},
		{"an unknown record", 0xff, 0, {0}},
		{"a ring that shrinks", RWK_SHM_GROW, 4, {0, 32}},
		{"a ring that grows too much", RWK_SHM_GROW, 4, {0, 256}},
		{"a ring that grows by a word of the wrong length", RWK_SHM_GROW, 8, {0, 128}},
		{"slabs given back that were ours", RWK_SHM_SLABS_BACK, 2, {0, UINT16_MAX}},
	};

	(void)state;
	rwk_log_set_sink(no_log);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct end *a = end_open(0, false), *b = end_open(0, false);
		struct end_peer *p = end_connect(a, &b->address);
		struct rwk_shm_channel *ch = rwk_shm_channel(p->ch);
		struct lie l = lies[i];

		b->tolerant = true;
		assert_int_equal(end_send(a, p, 8, 0, true), 0);
		for (int k = 0; k < 100000 && (!b->peers || !b->peer[0].received); k++) {
			rwk_shm_transport.progress(a->port);
			rwk_shm_transport.progress(b->port);
		}
		if (l.len == RWK_SHM_IN_SLAB && (uint32_t)l.word[2] == 0)
			l.word[2] += ch->slabs.home; /* his own: the lie is another one */
		if ((uint32_t)l.word[2] == UINT32_MAX)
			l.word[2] = slab_piece(RWK_SHM_SLABS - ch->slabs.home, 100);
		if (l.kind == RWK_SHM_SLABS_BACK)
			l.word[1] = RWK_SHM_SLABS - ch->slabs.home;
		forge(ch, &l);
		if (!end_until_failed(b, &b->peer[0], 1000) || b->peer[0].failed != -EPROTO)
			fail_msg("not found out: %s (%d)", l.what, b->peer[0].failed);
		assert_int_equal(b->peer[0].received, 1);
		end_close(a);
		end_close(b);
	}
	rwk_log_set_sink(NULL);
}

/* A reader that claims to have consumed what was never sent. */
static void false_credit(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_connect(a, &b->address);

	(void)state;
	rwk_log_set_sink(no_log);
	assert_int_equal(end_send(a, p, 8, 0, true), 0);
	for (int k = 0; k < 100000 && (!b->peers || !b->peer[0].received); k++) {
		rwk_shm_transport.progress(a->port);
		rwk_shm_transport.progress(b->port);
	}
	rwk_shm_my_side(rwk_shm_channel(b->peer[0].ch))->consumed += 1000 * RWK_SHM_STAMP_STEP;
	for (int i = 0; i < 100; i++)
		end_send(a, p, 8, 0, true);
	assert_true(end_until_failed(a, p, 1000));
	assert_int_equal(p->failed, -EPROTO);
	rwk_log_set_sink(NULL);
	end_close(a);
	end_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scribblers),
		cmocka_unit_test(single_lies),
		cmocka_unit_test(false_credit),
	};

	return cmocka_run_group_tests_name("shm/hostile", tests, NULL, NULL);
}
