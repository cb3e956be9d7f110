/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer: it has attached as it should and then writes what it likes over everything it shares. We may get
 * garbage, and the channel may fail with -EPROTO; we never read or write outside our mappings (meant to run under
 * sanitizers as well) and our other peers do not notice.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "base/log.h"
#include "shm/note.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
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
		struct rwk_shm_line *line =
			ch->tx.first + (seed % 4 ? (ch->tx.next - ch->tx.first + rand_r(&seed) % 6) % ch->tx.lines
						: (uint32_t)rand_r(&seed) % ch->tx.lines_max);
		_Atomic uint32_t *side = (_Atomic uint32_t *)ch->pair->side;

		for (int w = 7; w >= 0; w--)
			((_Atomic uint64_t *)line)[w] = nasty(ch, &seed);
		if (rand_r(&seed) % 16 == 0)
			side[(uint32_t)rand_r(&seed) % (2 * sizeof(struct rwk_shm_side) / 4)] =
				(uint32_t)nasty(ch, &seed);
		if (rand_r(&seed) % 64 == 0)
			ch->inbox->bell[(uint32_t)rand_r(&seed) % (RWK_SHM_BELLS / 64)] = nasty(ch, &seed);
		if (rand_r(&seed) % 64 == 0)
			ch->inbox->asleep = (uint32_t)rand_r(&seed) % 2;
		if (rand_r(&seed) % 8 == 0)
			((_Atomic uint64_t *)rwk_shm_slab(
				&ch->slabs, (uint32_t)rand_r(&seed) % 128))[rand_r(&seed) % 1000] = nasty(ch, &seed);
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
			assert_true(end_until_failed(e, p, 20000));
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
		assert_true(end_until(e, &e->peer[k].received, g->sent, 20000));
	}
	assert_true(g->sent > 100);
	end_close(good);
	end_close(e);
}

/*
 * Single lies, each of which must be found out: two ports in this process, one of which forges a line of its ring. It
 * might be a mistake of one who lives and waits: it is told that nobody listens any more.
 */
struct lie {
	const char *what;
	unsigned kind, len;
	uint64_t word[4]; /* tag, data or body, slab and piece, total or, with HALF, the rider's word less its stamp */
};

static bool has_rider(const struct lie *l)
{
	return l->len & RWK_SHM_HALF && l->len != RWK_SHM_IN_SLAB;
}

static void forge(struct rwk_shm_channel *ch, const struct lie *l)
{
	struct rwk_shm_line *line = ch->tx.next;

	memcpy(&line->tag, l->word, sizeof(l->word));
	if (has_rider(l))
		line->rider += ch->tx.stamp;
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
		{"lengths to fetch that there are not", RWK_SHM_ARRIVAL, 1, {0, 0x80}},
		{"lengths to fetch by a word of the wrong length", RWK_SHM_ARRIVAL, 2, {0, 1}},
		{"slabs given back that were ours", RWK_SHM_SLABS_BACK, 2, {0, UINT16_MAX}},
		{"a rider longer than half a line", 1, RWK_SHM_HALF + 8, {0, 0, 0, RWK_SHM_RIDER + 1}},
		{"a rider with data and more than half a line", 1, RWK_SHM_HALF + 8,
			{0, 0, 0, (uint64_t)RWK_ENV_DATA << 40 | (RWK_SHM_RIDER_DATA + 1)}},
		{"a rider in a slab", 1, RWK_SHM_HALF + 8, {0, 0, 0, RWK_SHM_IN_SLAB}},
		{"a rider with a rider", 1, RWK_SHM_HALF + 8, {0, 0, 0, RWK_SHM_HALF + 8}},
		{"a control record that rides", 1, RWK_SHM_HALF + 8, {0, 0, 0, (uint64_t)RWK_SHM_BYE << 32}},
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
		if (!end_until_failed(b, &b->peer[0], 20000) || b->peer[0].failed != -EPROTO)
			fail_msg("not found out: %s (%d)", l.what, b->peer[0].failed);
		assert_int_equal(b->peer[0].received, has_rider(&l) ? 2 : 1);
		if (!end_until_failed(a, p, 10000) || p->failed != -ECONNRESET)
			fail_msg("not told that it is given up: %s (%d)", l.what, p->failed);
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
		end_send(a, p, RWK_SHM_BODY, 0, true);
	assert_true(end_until_failed(a, p, 20000));
	assert_int_equal(p->failed, -EPROTO);
	rwk_log_set_sink(NULL);
	end_close(a);
	end_close(b);
}

/* A peer that offers memory that is not as it should be: it could be taken away under us (SIGBUS), or is too small. */
static void bad_offers(void **state)
{
	static const struct {
		const char *what;
		off_t pair_size, inbox_size; /* 0: as it should be */
		bool sealed, magic;
	} cases[] = {
		{"not sealed", 0, 0, false, true},
		{"a pair of another size", 1 << 20, 0, true, true},
		{"an empty pair", 1, 0, true, true},
		{"no pair at all", 0, 0, true, false},
		{"an inbox of another size", 0, 8192, true, true},
		{"nothing wrong", 0, 0, true, true},
	};

	(void)state;
	rwk_log_set_sink(no_log);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end *e = end_open(0, false);
		bool good = i + 1 == sizeof(cases) / sizeof(cases[0]);
		struct rwk_shm_note note = {
			.magic = RWK_SHM_NOTE_MAGIC, .layout = RWK_SHM_LAYOUT_VERSION, .type = RWK_SHM_HELLO};
		struct rwk_shm_pair_header h = {.magic = cases[i].magic ? RWK_SHM_PAIR_MAGIC : 0,
			.layout = RWK_SHM_LAYOUT_VERSION,
			.ring_lines = 64,
			.slabs = RWK_SHM_SLABS,
			.slab_bytes = RWK_SHM_SLAB_BYTES,
			.slab_stride = RWK_SHM_SLAB_STRIDE,
			.transfer_bytes = RWK_SHM_TRANSFER_BYTES};
		struct rwk_shm_inbox inbox = {.magic = RWK_SHM_INBOX_MAGIC, .layout = RWK_SHM_LAYOUT_VERSION};
		struct rwk_shm_sender from;
		int fd[2], sock = rwk_shm_note_socket(), name;
		uint16_t number = 0;
		uint64_t end = now_ms() + 20000;

		assert_int_equal(rwk_shm_note_bind(sock, &number), 0);
		note.from = e->address;
		note.from.nonce_port = 1 << 16 | number; /* lower than any, so that we make the pair */
		name = rwk_shm_note_name(note.from.nonce_port);
		assert_true(name >= 0);
		note.contact = 1;
		h.nonce_port[0] = note.from.nonce_port;
		h.nonce_port[1] = note.to = e->address.nonce_port;
		assert_int_equal(rwk_shm_note_send(sock, rwk_address_port(&e->address), &note, NULL, 0), 0);
		while (rwk_shm_note_receive(sock, &note, &from) != sizeof(note) && now_ms() < end)
			rwk_shm_transport.progress(e->port);
		assert_int_equal(note.type, RWK_SHM_HELLO);
		note.type = RWK_SHM_OFFER;
		note.to = note.from.nonce_port;
		note.from.nonce_port = h.nonce_port[0];
		note.to_contact = note.contact;
		note.contact = 1;
		for (int k = 0; k < 2; k++) {
			off_t size = k ? cases[i].inbox_size : cases[i].pair_size;

			fd[k] = memfd_create("bad", MFD_ALLOW_SEALING);
			assert_int_equal(k ? write(fd[k], &inbox, sizeof(inbox)) : write(fd[k], &h, sizeof(h)),
				k ? sizeof(inbox) : sizeof(h));
			if (!size)
				size = k ? (off_t)sizeof(inbox) : (off_t)rwk_shm_pair_size(64);
			assert_int_equal(ftruncate(fd[k], size), 0);
			if (cases[i].sealed)
				assert_int_equal(
					fcntl(fd[k], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
		}
		assert_int_equal(rwk_shm_note_send(sock, rwk_address_port(&e->address), &note, fd, 2), 0);
		do {
			rwk_shm_transport.progress(e->port);
			if (rwk_shm_note_receive(sock, &note, &from) != sizeof(note))
				note.type = 0;
		} while (note.type != RWK_SHM_REFUSE && note.type != RWK_SHM_ACCEPT && now_ms() < end);
		if (note.type != (good ? RWK_SHM_ACCEPT : RWK_SHM_REFUSE))
			fail_msg("%s: answer %u", cases[i].what, note.type);
		while (from.fds)
			close(from.fd[--from.fds]);
		assert_int_equal(end_until_failed(e, &e->peer[0], good ? 50 : 20000), !good);
		assert_int_equal(e->peer[0].failed, good ? 0 : -EPROTO);
		close(fd[0]);
		close(fd[1]);
		close(sock);
		close(name);
		end_close(e);
	}
	rwk_log_set_sink(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scribblers),
		cmocka_unit_test(single_lies),
		cmocka_unit_test(false_credit),
		cmocka_unit_test(bad_offers),
	};

	return cmocka_run_group_tests_name("shm/hostile", tests, NULL, NULL);
}
