/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What members do with packets and pieces: order, memory of what came early, who sleeps, a link that is full, cuts; and
 * the segment's layout and size.
 *
 * Links: none: packets are handed over by hand.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "shared_rc/two.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A member takes a piece itself while one before it is still in its inbox, and one behind it comes there too. */
static void order(void **state)
{
	(void)state;
	post(1, 3);
	serve(0, 0);
	serve(1, 1);
	serve(0, 2);
	assert_int_equal(count(1)->own, 1);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	check_heard(1);
}

/* The memory that early packets need is given back when none is kept. */
static void early_memory(void **state)
{
	struct stat before, kept, after;

	(void)state;
	post(1, 20);
	fstat(f.fd, &before);
	for (unsigned i = 1; i < 20; i++)
		serve(0, i);
	rwk_src_bury(f.listener[0].view, 0);
	fstat(f.fd, &kept);
	assert_true(kept.st_blocks > before.st_blocks);
	serve(0, 0);
	fstat(f.fd, &kept);
	rwk_src_bury(f.listener[0].view, 0);
	fstat(f.fd, &after);
	assert_true(kept.st_blocks - after.st_blocks >= 19 * (int)PMTU / 512);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 100), 20);
	check_heard(1);
}

/* Of many targets the last of a word still keeps something: it is looked at again, and nothing behind it. */
static void early_memory_of_many(void **state)
{
	static const struct rwk_src_size size = {2, 64, 65536};
	void *memory = shared_memory(rwk_src_segment_size(&size), NULL);
	const struct rwk_src_host host = {0};
	struct rwk_src_target *last;
	struct rwk_src_view *v;

	(void)state;
	assert_int_equal(rwk_src_segment_format(memory, &size), 0);
	assert_int_equal(rwk_src_view_open(memory, &host, NULL, &v), 0);
	last = rwk_src_target(v, 63);
	assert_int_equal(rwk_src_lock_init(&last->lock), 0);
	v->has_early[0] = 1ull << 63;
	rwk_src_state(v, last, 0)->early = 1;
	rwk_src_early_tidy(v);
	assert_true(v->has_early[0] == 1ull << 63);
	rwk_src_state(v, last, 0)->early = 0;
	rwk_src_early_tidy(v);
	assert_true(v->has_early[0] == 0);
	rwk_src_view_close(v);
	munmap(memory, rwk_src_segment_size(&size));
}

static long pages(void)
{
	struct stat s;

	assert_int_equal(fstat(f.fd, &s), 0);
	return (long)s.st_blocks * 512 / (long)RWK_SRC_PAGE;
}

/* The inbox of a member that keeps up goes round in a few pages, whatever has gone through it. */
static void inbox_memory(void **state)
{
	long before = pages();

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		post(1, 2);
		serve_all(0);
		assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 2);
	}
	check_heard(1);
	assert_in_range(pages() - before, 1, 6);
}

/* Puts such pieces into the second member's inbox until it takes no more; *n: how many it took. */
static int put_all(enum rwk_src_kind kind, unsigned *n)
{
	static const uint8_t bytes[1000];
	const struct rwk_src_piece p = {
		.kind = kind, .where = RWK_PIECE_FIRST, .target = f.qpn, .bytes = bytes, .len = sizeof(bytes)};
	int rc;

	for (*n = 0; !(rc = rwk_src_inbox_put(f.listener[0].view, f.speaker.srqn[1], &p)); ++*n)
		;
	return rc;
}

/* An inbox that cannot have more memory is full: what begins is turned away, and nothing is stored where none is. */
static void inbox_without_memory(void **state)
{
	const struct rwk_src_view *v = f.listener[1].view;
	off_t ring = rwk_src_inbox((struct rwk_src_view *)v, v->seat) - (unsigned char *)f.memory;
	off_t all = (off_t)rwk_src_segment_size(&v->size);
	unsigned n;

	(void)state;
	assert_int_equal(ftruncate(f.fd, ring + 2 * RWK_SRC_PAGE), 0);
	assert_int_equal(put_all(RWK_SRC_SEND, &n), -EBUSY);
	assert_int_equal(n, 2 * RWK_SRC_PAGE / (1000 + sizeof(struct rwk_src_record)));
	assert_int_equal(put_all(RWK_SRC_WRITE, &n), -EAGAIN);
	assert_int_equal(n, 0);
	assert_int_equal(ftruncate(f.fd, all), 0);
	assert_int_equal(put_all(RWK_SRC_WRITE, &n), -EAGAIN); /* it is full indeed */
	assert_true(n > 50);
}

/* From now on the segment has memory up to there, rounded up to a page; or all of it again. */
static void memory_ends(size_t end)
{
	assert_int_equal(ftruncate(f.fd, (off_t)(end + RWK_SRC_PAGE - 1) / RWK_SRC_PAGE * RWK_SRC_PAGE), 0);
}

static void memory_is_back(void)
{
	assert_int_equal(ftruncate(f.fd, (off_t)rwk_src_segment_size(&two_size)), 0);
}

/* Where there is no memory for what all look at no segment is made. */
static void segment_without_memory(void **state)
{
	const struct rwk_src_layout l = f.listener[0].view->layout;

	(void)state;
	leave(0);
	leave(1);
	memory_ends(RWK_SRC_PAGE);
	assert_int_equal(rwk_src_segment_format(f.memory, &two_size), -ENOMEM);
	memory_ends(l.key_words);
	assert_int_equal(rwk_src_segment_format(f.memory, &two_size), -ENOMEM);
	memory_is_back();
	assert_int_equal(rwk_src_segment_format(f.memory, &two_size), 0);
	open_listener(0);
	open_listener(1);
}

/* A target that cannot have memory has no place; later it has. */
static void targets_without_memory(void **state)
{
	struct rwk_src_view *v = f.listener[1].view;
	uint32_t qpn, most = 0;

	(void)state;
	memory_ends(v->layout.targets + v->layout.target_stride);
	for (unsigned n = 1; n < 4; n++) {
		const struct rwk_src_initiator i = speaker_initiator(n, PMTU);
		int rc = rwk_src_target_make(v, &i, &qpn);

		assert_true(!rc || rc == -ENOSPC);
		most += !rc;
	}
	assert_in_range(most, 0, 2);
	memory_is_back();
	for (unsigned n = 1; n < 4; n++) {
		const struct rwk_src_initiator i = speaker_initiator(n, PMTU);

		assert_int_equal(rwk_src_target_make(v, &i, &qpn), 0);
	}
}

/* Nor is a region published without. */
static void regions_without_memory(void **state)
{
	struct rwk_src_view *v = f.listener[1].view;
	struct iovec iov = {f.memory, 1};
	unsigned published = 0, refused = 0;

	(void)state;
	memory_ends(v->layout.regions);
	for (uint32_t key = 1; key < 100; key++) {
		int rc = rwk_src_publish(v, f.qpn, key, &iov, 1);

		assert_true(!rc || rc == -ENOSPC);
		published += !rc;
		refused += rc == -ENOSPC;
		if (!rc)
			rwk_src_withdraw(v, f.qpn, key);
	}
	assert_true(published && refused);
	memory_is_back();
	for (uint32_t key = 1; key < 100; key++) {
		assert_int_equal(rwk_src_publish(v, f.qpn, key, &iov, 1), 0);
		rwk_src_withdraw(v, f.qpn, key);
	}
}

/* An early packet that cannot be kept, since there is no memory for its head, or its bytes, is lost; it comes again. */
static void early_without_memory(void **state)
{
	const struct rwk_src_view *v = f.listener[0].view;
	size_t area = v->layout.early + rwk_src_place(v, f.qpn) * v->layout.early_stride;
	size_t bytes = area + v->layout.early_stride - RWK_RC_WINDOW_MAX * RWK_WIRE_OWN_MAX;

	(void)state;
	post(1, 3);
	memory_ends(area);
	serve(0, 2);
	memory_ends(bytes);
	serve(0, 2);
	memory_is_back();
	for (unsigned i = 0; i < 3; i++)
		serve(0, i);
	while (rwk_src_drain(f.listener[1].view, 10))
		;
	check_heard(1);
}

/* What a target gives back is nobody else's, whatever the size of a page: 64 KB on some machines. */
static void early_areas_are_whole_pages(void **state)
{
	struct rwk_src_size size = {.inbox_bytes = 1u << 20};
	struct rwk_src_layout l;

	(void)state;
	for (size.members = 2; size.members <= RWK_SRC_MEMBERS_MAX; size.members++) {
		for (size.targets = 1; size.targets <= RWK_SRC_TARGETS_MAX; size.targets *= 2) {
			assert_int_equal(rwk_src_layout_of(&size, &l), 0);
			assert_int_equal(l.early % 65536, 0);
			assert_int_equal(l.early_stride % 65536, 0);
		}
	}
}

static unsigned taken, served;

static void take_and_serve(void *user, uint32_t target, unsigned where, const void *bytes, size_t len)
{
	(void)user;
	(void)target;
	(void)where;
	(void)bytes;
	(void)len;
	taken++;
	if (served < f.queued)
		serve(0, served++);
}

/* What is put in while the last before it is handed over is there, also where the inbox would go round. */
static void inbox_meanwhile(void **state)
{
	static const struct rwk_src_host host = {.receive = take_and_serve};
	struct rwk_src_view *v;

	(void)state;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), 0);
	f.speaker.srqn[2] = rwk_src_srqn(v);
	taken = 0;
	for (unsigned i = 1; i <= 300; i++) {
		post(2, 1);
		post(2, 1);
		assert_int_equal(f.queued, 2);
		serve(0, 0);
		served = 1;
		assert_int_equal(rwk_src_drain(v, 10), 1);
		assert_int_equal(rwk_src_drain(v, 10), 1);
		assert_int_equal(taken, 2 * i);
		f.queued = 0;
		if (rwk_src_pump(f.listener[0].view, 1000))
			speaker_answer(&f.speaker, &f.answer, 2000);
	}
	rwk_src_view_close(v);
}

/*
 * Who sleeps is woken when something is put into its inbox; who does not is left alone. Who only looks for a seat wakes
 * nobody: it has no view yet to do it by.
 */
static void sleeper(void **state)
{
	struct rwk_src_view *none;

	(void)state;
	post(1, 1);
	serve_all(0);
	assert_int_equal(f.listener[0].woken, 0);
	assert_true(rwk_src_sleep(f.listener[1].view));
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	assert_false(rwk_src_sleep(f.listener[1].view));
	post(1, 1);
	serve_all(0);
	assert_int_equal(f.listener[0].woken, 1);
	assert_int_equal(f.listener[0].last_woken, rwk_src_srqn(f.listener[1].view));
	open_listener(2);
	open_listener(3);
	assert_int_equal(rwk_src_view_open(f.memory, &(struct rwk_src_host){.wake = NULL}, NULL, &none), -ENOSPC);
	/* Whoever was to say so may have died: it is said again. */
	rwk_src_bury(f.listener[0].view, 0);
	assert_int_equal(f.listener[0].woken, 2);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	rwk_src_bury(f.listener[0].view, 0);
	post(1, 1);
	serve_all(0);
	assert_int_equal(f.listener[0].woken, 2);
}

#define US 1000u /* ns; more than the word's grain */

/* Of two that poll one says so, now and then; it is believed for a millisecond, and until who has said it sleeps. */
static void who_polls(void **state)
{
	struct rwk_src_view *a = f.listener[0].view, *b = f.listener[1].view;
	rwk_time t = 5000000000u;

	(void)state;
	assert_false(rwk_src_sibling_polls(a, t) || rwk_src_sibling_polls(b, t));
	rwk_src_polls(a, t);
	assert_true(rwk_src_sibling_polls(b, t));
	assert_true(rwk_src_sibling_polls(b, t + 990 * US));
	assert_false(rwk_src_sibling_polls(b, t + 1010 * US));
	assert_false(rwk_src_sibling_polls(b, t - 10 * US));
	assert_false(rwk_src_sibling_polls(a, t));
	rwk_src_polls(b, t + 240 * US);
	assert_false(rwk_src_sibling_polls(a, t + 240 * US));
	rwk_src_polls(b, t + 260 * US);
	assert_true(rwk_src_sibling_polls(a, t + 260 * US));
	assert_false(rwk_src_sleep(a));
	assert_true(rwk_src_sibling_polls(a, t + 260 * US));
	assert_false(rwk_src_sleep(b));
	assert_false(rwk_src_sibling_polls(a, t + 260 * US));
	rwk_src_polls(a, t + 261 * US);
	assert_true(rwk_src_sibling_polls(b, t + 261 * US));
	rwk_src_polls(b, t - 1000 * US); /* of another clock, which is behind: each is right for itself */
	assert_true(rwk_src_sibling_polls(a, t - 1000 * US));
}

/* An acknowledgement for which the link has no room is sent by the next pump. */
static void link_is_full(void **state)
{
	(void)state;
	f.room = 0;
	post(1, 1);
	serve(0, 0);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	f.room = 1;
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 1);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	speaker_answer(&f.speaker, &f.answer, 2000);
	assert_true(speaker_idle(&f.speaker));
}

/* What a stopped sibling has locked is asked for again soon, and its debtor may sleep until then. */
static void debt_is_locked(void **state)
{
	struct rwk_src_view *v = f.listener[0].view;
	struct rwk_src_target *t = rwk_src_target(v, rwk_src_place(v, f.qpn));
	rwk_time now = 1000, next;

	(void)state;
	post(1, 1);
	serve(0, 0);
	assert_true(rwk_src_lock(f.listener[1].view, &t->lock));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rwk_src_pump(v, now), 0);
		next = rwk_src_next(v);
		assert_in_range(next, now + 100000, now + 10000000);
		now = next;
	}
	rwk_src_unlock(&t->lock);
	assert_int_equal(rwk_src_pump(v, now - 1), 0);
	assert_int_equal(rwk_src_pump(v, now), 1);
	speaker_answer(&f.speaker, &f.answer, now);
	assert_true(speaker_idle(&f.speaker));
}

/* One that the link does not carry at all is lost, and stands in no other's way. */
static void link_is_too_narrow(void **state)
{
	(void)state;
	f.room = 0;
	f.refusal = -EMSGSIZE;
	post(1, 1);
	serve(0, 0);
	rwk_src_pump(f.listener[0].view, 1000);
	assert_false(speaker_idle(&f.speaker));
	f.room = 1;
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	f.queued = 0;
	post(1, 1);
	serve_all(0);
	assert_int_equal(f.answers, 1);
	assert_true(speaker_idle(&f.speaker));
}

/*
 * Reads of a few bytes, answered one by one, use the memory for one answer, and no more of it. (There is no such region:
 * what they bring is zeros.)
 */
static void answers_memory(void **state)
{
	struct packet p = {.w = {.opcode = RWK_WIRE_SRC | RWK_WIRE_READ_REQUEST,
				   .qpn = f.qpn,
				   .psn = speaker_initiator(0, PMTU).psn,
				   .srqn = f.speaker.srqn[0],
				   .reth = {.address = RWK_SRC_REACH, .key = 5, .length = 8}}};

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		listener_packet(&f.listener[1], &p, 1000);
		assert_int_equal(rwk_src_pump(f.listener[1].view, 1000), 1);
		assert_int_equal(f.answer.len, 8);
		assert_int_equal(f.listener[1].view->answer.slot, 0);
		p.w.psn = (p.w.psn + 1) & RWK_PSN_MASK;
	}
}

static uint32_t next_cut(unsigned member)
{
	f.queued = 0;
	post(member, 1);
	serve(member, 0);
	assert_int_equal(rwk_src_pump(f.listener[member].view, 1000), 1);
	speaker_answer(&f.speaker, &f.answer, 2000);
	return f.answer.cut;
}

/*
 * How long its answers may be is what the initiator said last, by its own clock, whoever heard it
 * and whoever answers.
 */
static void cuts(void **state)
{
	struct rwk_src_view *v[2] = {f.listener[0].view, f.listener[1].view};
	struct rwk_src_target *t = rwk_src_target(v[0], rwk_src_place(v[0], f.qpn));

	(void)state;
	assert_int_equal(next_cut(0), 0);
	assert_int_equal(rwk_src_target_cut(v[1], f.qpn, 1024, 10), 0);
	assert_int_equal(next_cut(0), 1024);
	assert_int_equal(next_cut(1), 1024);
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn, 0, 9), 0); /* it has lain there for a while */
	assert_int_equal(next_cut(0), 1024);
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn ^ 0x800000, 256, 20), 0); /* somebody else's */
	assert_int_equal(next_cut(1), 1024);
	assert_true(rwk_src_lock(v[1], &t->lock));
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn, 0, 20), -EAGAIN);
	rwk_src_unlock(&t->lock);
	assert_int_equal(rwk_src_target_cut(v[0], f.qpn, 0, 20), 0);
	assert_int_equal(next_cut(1), 0);
	for (uint32_t wrong = 1; wrong < 256; wrong += 3) {
		t->cut = wrong;
		assert_int_equal(next_cut(0), 0);
	}
}

static uint8_t whole[RWK_PUZZLE_MAX];

/* A piece of a packet of three, of which the last is shorter; its bytes follow from the number. */
static size_t put_piece(unsigned member, uint8_t sender, uint32_t serial, unsigned n)
{
	const struct rwk_link_address from = {.byte = {[15] = sender}};
	uint8_t bytes[1000];
	struct rwk_piece piece = {.serial = serial,
		.at = (uint16_t)(n * 1000),
		.of = 2500,
		.unit = 1000,
		.len = n == 2 ? 500 : 1000,
		.bytes = bytes};

	assert_true(rwk_piece_is_sound(&piece));
	memset(bytes, (int)(serial + n), sizeof(bytes));
	return rwk_src_piece(f.listener[member].view, &from, &piece, whole);
}

static void assert_whole(uint32_t serial)
{
	for (unsigned i = 0; i < 2500; i++)
		assert_int_equal(whole[i], (uint8_t)(serial + i / 1000));
}

/* Pieces that siblings have got one each make a packet, in any order and twice; each packet's stay apart. */
static void pieces(void **state)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};

	(void)state;
	for (uint32_t serial = 0; serial < 300; serial++) {
		const unsigned *order = orders[serial % 3];

		assert_int_equal(put_piece(0, 1, serial, order[0]), 0);
		assert_int_equal(put_piece(1, 1, serial + 1000, order[1]), 0);
		assert_int_equal(put_piece(1, 1, serial, order[0]), 0);
		assert_int_equal(put_piece(1, 1, serial, order[1]), 0);
		assert_int_equal(put_piece(serial & 1, 1, serial, order[2]), 2500);
		assert_whole(serial);
		assert_int_equal(put_piece(0, 1, serial + 1000, order[0]), 0);
		assert_int_equal(put_piece(0, 1, serial + 1000, order[2]), 2500);
		assert_whole(serial + 1000);
	}
	assert_int_equal(put_piece(0, 1, 5, 0), 0); /* another packet takes its place: */
	assert_int_equal(put_piece(0, 1, 5 + RWK_SRC_PUZZLES, 0), 0);
	assert_int_equal(put_piece(0, 1, 5, 1), 0);
	assert_int_equal(put_piece(0, 1, 5, 2), 0);
	assert_int_equal(put_piece(0, 1, 5, 0), 2500);
	assert_whole(5);
}

/* Hosts of one network, which differ in their IP's last byte: few of their packets meet in a place. */
static void pieces_of_many(void **state)
{
	unsigned lost = 0;

	(void)state;
	for (uint8_t sender = 0; sender < RWK_SRC_PUZZLES / 4; sender++)
		assert_int_equal(put_piece(0, sender, 7, 0), 0);
	for (uint8_t sender = 0; sender < RWK_SRC_PUZZLES / 4; sender++) {
		assert_int_equal(put_piece(0, sender, 7, 1), 0);
		lost += put_piece(0, sender, 7, 2) != 2500;
	}
	assert_in_range(lost, 0, RWK_SRC_PUZZLES / 8);
}

/* Pieces for which there is no memory are lost; those that come later make a packet. */
static void pieces_without_memory(void **state)
{
	(void)state;
	memory_ends(f.listener[0].view->layout.puzzles);
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(put_piece(n & 1, 1, 7, n), 0);
	memory_is_back();
	assert_int_equal(put_piece(0, 1, 7, 0), 0);
	assert_int_equal(put_piece(1, 1, 7, 1), 0);
	assert_int_equal(put_piece(0, 1, 7, 2), 2500);
	assert_whole(7);
}

/* One message is acknowledged after a while, by whoever took it; many at once, without waiting. */
static void lazy(void **state)
{
	struct rwk_src_view *v = f.listener[0].view;
	rwk_time due;

	(void)state;
	assert_true(rwk_src_next(v) == RWK_NEVER);
	post(0, 1);
	serve(0, 0);
	due = rwk_src_next(v);
	assert_in_range(due, 1, 1000000);
	assert_int_equal(rwk_src_pump(v, due - 1), 0);
	assert_int_equal(rwk_src_pump(v, due), 1);
	assert_int_equal(f.answer.w.psn, f.queue[0].w.psn);
	assert_true(rwk_src_next(v) == RWK_NEVER);
	assert_int_equal(rwk_src_pump(v, RWK_NEVER - 1), 0);
}

/*
 * Acknowledgements of several packets may travel with messages, and none is sent then; that of few is not worth a step,
 * and after some that have travelled one goes alone.
 */
static void rides(void **state)
{
	struct rwk_src_view *v = f.listener[0].view;
	uint32_t word = 0;
	unsigned n = 0;

	(void)state;
	for (unsigned ride = 0; ride < 17; ride++) {
		for (unsigned i = 0; i < 4; i++) {
			assert_false(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_MANY, &word));
			post(0, 1);
			serve(0, n++);
		}
		assert_int_equal(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_MANY, &word), ride < 16);
		if (ride < 16) {
			assert_int_equal(word, f.queue[n - 1].w.psn);
			assert_true(rwk_src_next(v) == RWK_NEVER);
			rwk_rc_acked(f.speaker.qp, word, 2000);
			assert_true(rwk_rc_idle(f.speaker.qp));
		}
		assert_false(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_MANY, &word));
	}
	assert_int_equal(rwk_src_pump(v, RWK_NEVER - 1), 1);
	assert_int_equal(f.answer.w.psn, f.queue[n - 1].w.psn);
	assert_int_equal(f.ear[0].wrong, 0);
}

/*
 * Of one packet, too, also of one that a sibling has taken: who has taken it sends none then. After some of this
 * member's own one goes alone.
 */
static void rides_alone(void **state)
{
	uint32_t word = 0;
	unsigned n = 0;

	(void)state;
	for (unsigned ride = 0; ride < 20; ride++, n++) {
		post(0, 1);
		serve(ride % 2, n);
		assert_int_equal(rwk_src_drain(f.listener[0].view, 64), ride % 2);
		assert_true(rwk_src_take_ack(f.listener[0].view, f.qpn, RWK_SRC_RIDE_ANY, &word));
		assert_int_equal(word, f.queue[n].w.psn);
		assert_false(rwk_src_take_ack(f.listener[0].view, f.qpn, RWK_SRC_RIDE_ANY, &word));
		rwk_rc_acked(f.speaker.qp, word, 2000);
		assert_true(rwk_rc_idle(f.speaker.qp));
		assert_int_equal(rwk_src_pump(f.listener[1].view, RWK_NEVER - 1), 0);
	}
	for (unsigned ride = 10; ride < 17; ride++, n++) {
		post(0, 1);
		serve(0, n);
		assert_int_equal(rwk_src_take_ack(f.listener[0].view, f.qpn, RWK_SRC_RIDE_ANY, &word), ride < 16);
	}
	assert_int_equal(rwk_src_pump(f.listener[0].view, RWK_NEVER - 1), 1);
	assert_int_equal(f.answer.w.psn, f.queue[n - 1].w.psn);
	assert_int_equal(f.ear[0].wrong, 0);
}

/* While a sibling is in the middle of a step, perhaps stopped there, none travels, and the message does not wait. */
static void rides_without_waiting(void **state)
{
	struct rwk_src_view *v = f.listener[0].view, *other = f.listener[1].view;
	uint32_t word = 0;

	(void)state;
	post(0, 1);
	serve(0, 0);
	assert_true(rwk_src_step_begin(other, f.qpn));
	assert_false(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_ANY, &word));
	assert_int_equal(count(0)->locked_out, 0);
	rwk_src_step_abandon(other);
	assert_true(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_ANY, &word));
	assert_int_equal(word, f.queue[0].w.psn);
}

/* Who is waited for gets the acknowledgement of one packet, and of one that a sibling has taken. */
static void rides_for_who_is_waited_for(void **state)
{
	uint32_t word = 0;

	(void)state;
	for (unsigned n = 0; n < 40; n++) {
		struct rwk_src_view *v = f.listener[n % 2].view;

		post(0, 1);
		serve(0, n);
		assert_false(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_MANY, &word));
		assert_true(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_AGAIN, &word));
		assert_int_equal(word, f.queue[n].w.psn);
		assert_false(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_MANY, &word));
		assert_true(rwk_src_take_ack(v, f.qpn, RWK_SRC_RIDE_AGAIN, &word));
		assert_int_equal(word, f.queue[n].w.psn);
		rwk_rc_acked(f.speaker.qp, word, 2000);
		assert_true(rwk_rc_idle(f.speaker.qp));
	}
	assert_int_equal(rwk_src_pump(f.listener[0].view, RWK_NEVER - 1), 0);
	assert_int_equal(f.ear[0].wrong, 0);
}

/* An acknowledgement by a member that looked at the clock before the packet came says that nobody waited. */
static void clocks(void **state)
{
	struct rwk_link_address from = speaker_initiator(0, PMTU).to;

	(void)state;
	post(1, 2);
	serve(0, 0);
	rwk_src_packet(f.listener[1].view, &from, &f.queue[1].w, f.queue[1].bytes, f.queue[1].len, 9000000);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 100000), 1);
	assert_int_equal(f.answer.w.psn, f.queue[1].w.psn);
	assert_int_equal(f.answer.len, 4);
	assert_memory_equal(f.answer.bytes, "\0\0\0", 4);
}

/* Another build's segment, or none, is refused; and sizes that cannot be. */
static void layouts(void **state)
{
	static const struct rwk_src_size bad[] = {{1, 4, 65536}, {1025, 4, 65536}, {4, 3, 65536}, {4, 0, 65536},
		{4, 131072, 65536}, {4, 4, 32768}, {4, 4, 65537}};
	struct rwk_src_header *h = f.memory;
	struct rwk_src_view *v;
	struct rwk_src_host host = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rwk_src_segment_size(&bad[i]), 0);
		assert_int_equal(rwk_src_segment_format(f.memory, &bad[i]), -EINVAL);
	}
	h->layout++;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
	h->layout--;
	h->sizes[3] += 8;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
	h->sizes[3] -= 8;
	h->size.targets *= 2;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
	h->size.targets /= 2;
	h->magic++;
	assert_int_equal(rwk_src_view_open(f.memory, &host, NULL, &v), -EPROTONOSUPPORT);
}

/* A segment of the largest size costs what is used of it. */
static void largest(void **state)
{
	static const struct rwk_src_size most = {RWK_SRC_MEMBERS_MAX, RWK_SRC_TARGETS_MAX, 1 << 20};
	size_t bytes = rwk_src_segment_size(&most);
	struct rwk_src_view *v;
	struct stat st;
	int fd;
	void *m;

	(void)state;
	assert_true(bytes);
	m = shared_memory(bytes, &fd);
	assert_int_equal(rwk_src_segment_format(m, &most), 0);
	assert_int_equal(rwk_src_view_open(m, &(struct rwk_src_host){0}, NULL, &v), 0);
	rwk_src_view_close(v);
	fstat(fd, &st);
	assert_true(st.st_blocks * 512 < 8 << 20);
	munmap(m, bytes);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_two(order),
		with_two(early_memory),
		cmocka_unit_test(early_memory_of_many),
		cmocka_unit_test(early_areas_are_whole_pages),
		with_two(inbox_memory),
		with_two(inbox_without_memory),
		with_two(segment_without_memory),
		with_two(targets_without_memory),
		with_two(regions_without_memory),
		with_two(early_without_memory),
		with_two(inbox_meanwhile),
		with_two(sleeper),
		with_two(who_polls),
		with_two(link_is_full),
		with_two(debt_is_locked),
		with_two(link_is_too_narrow),
		with_two(answers_memory),
		with_two(cuts),
		with_two(pieces),
		with_two(pieces_of_many),
		with_two(pieces_without_memory),
		cmocka_unit_test_setup_teardown(lazy, two_open_lazy, two_close),
		cmocka_unit_test_setup_teardown(rides, two_open_lazy, two_close),
		cmocka_unit_test_setup_teardown(rides_alone, two_open_lazy, two_close),
		cmocka_unit_test_setup_teardown(rides_without_waiting, two_open_lazy, two_close),
		cmocka_unit_test_setup_teardown(rides_for_who_is_waited_for, two_open_lazy, two_close),
		cmocka_unit_test_setup_teardown(clocks, two_open_lazy, two_close),
		with_two(layouts),
		cmocka_unit_test(largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
