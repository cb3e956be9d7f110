/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include "rwk_test.h"

#include "shared_rc/traffic.h"

#include "base/compiler.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define MESSAGES_MOST 16u /* of one speaker, under way */

uint32_t chance(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t h = (a + 1) * 2654435761u ^ (b + 7) * 2246822519u ^ (c + 13) * 3266489917u;

	for (int i = 0; i < 3; i++)
		chance(&h);
	return h ? h : 1;
}

uint16_t speakers_own = RWK_RC_SELECTIVE | RWK_RC_ENDLESS;

struct message {
	uint32_t seed, len;
	bool write;
};

/*
 * One byte to 64 KB, short ones mostly. Writes are in no order with Sends that wait for a busy SRQ: then
 * there are none.
 */
static struct message message_of(unsigned speaker, unsigned member, uint32_t n)
{
	uint32_t seed = mix(speaker, member, n), kind = seed >> 8 & 15;
	uint32_t most = kind == 0 ? LONGEST : kind < 5 ? 5000 : 200;

	return (struct message){.seed = seed,
		.len = 1 + (seed >> 3) % most,
		.write = !(speakers_own & RWK_RC_BUSY) && seed % 3 == 0};
}

static uint8_t byte_of(const struct message *m, size_t at)
{
	return (uint8_t)(m->seed + at * 7 + at / 251);
}

uint32_t message_length(unsigned speaker, unsigned member, uint32_t n, bool *write)
{
	struct message m = message_of(speaker, member, n);

	*write = m.write;
	return m.len;
}

/* Where a Write goes: no two to the same place. */
static uint64_t address_of(uint32_t n)
{
	return 0x100000000ull + (uint64_t)n * LONGEST;
}

#define KEY 0xabcdu

static void is_wrong(struct ear *e, unsigned speaker, const char *what, size_t is, size_t wanted)
{
	if (!e->wrong++)
		snprintf(e->why, sizeof(e->why), "member %u, speaker %u, message %u at %u: %s is %zu, not %zu",
			e->member, speaker, e->heard[speaker], e->at[speaker], what, is, wanted);
}

/* A piece of that speaker's. */
static void ear_piece(
	struct ear *e, unsigned speaker, bool write, unsigned where, uint64_t address, const void *bytes, size_t len)
{
	struct message m = message_of(speaker, e->member, e->heard[speaker]);
	uint32_t at = e->at[speaker];
	bool last = at + len >= m.len;

	if (write != m.write)
		is_wrong(e, speaker, "write", write, m.write);
	else if (at + len > m.len)
		is_wrong(e, speaker, "end", at + len, m.len);
	else if (write && address != address_of(e->heard[speaker]) + at)
		is_wrong(e, speaker, "address", address, address_of(e->heard[speaker]) + at);
	else if (!write && where != (at ? 0u : RWK_PIECE_FIRST) + (last ? RWK_PIECE_LAST : 0u))
		is_wrong(e, speaker, "where", where, (at ? 0u : RWK_PIECE_FIRST) + (last ? RWK_PIECE_LAST : 0u));
	for (size_t i = 0; i < len && !e->wrong; i++)
		if (((const uint8_t *)bytes)[i] != byte_of(&m, at + i))
			is_wrong(e, speaker, "byte", ((const uint8_t *)bytes)[i], byte_of(&m, at + i));
	e->at[speaker] = last ? 0 : at + (uint32_t)len;
	e->heard[speaker] += last;
}

/* A message that is under way. */
struct outgoing {
	struct rwk_wr wr;
	struct iovec iov;
	uint8_t bytes[];
};

static int on_speaker_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct speaker *s = user;
	struct packet p = {.speaker = s->number, .w = *w};

	p.w.qpn = s->qpn;
	for (int i = 0; i < count; i++) {
		memcpy(p.bytes + p.len, payload[i].iov_base, payload[i].iov_len);
		p.len += (uint32_t)payload[i].iov_len;
	}
	return s->emit(s->user, &p);
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct speaker *s = user;

	(void)status;
	s->under_way--;
	free(rwk_container_of(wr, struct outgoing, wr));
}

static void on_failed(void *user, int err)
{
	((struct speaker *)user)->failed = err;
}

static const struct rwk_machine_host speaker_host = {.emit = on_speaker_emit, .done = on_done, .failed = on_failed};

struct rwk_src_initiator speaker_initiator(unsigned number, uint16_t pmtu)
{
	struct rwk_src_initiator i = {.nonce = 1000 + number,
		.about = {(uint8_t)number, 0x5a},
		.to = {.byte = {(uint8_t)number, 1, 2, 3}},
		.qpn = 0x100 + number,
		.psn = (0xffff00u + 64 * number) & 0xffffff,
		.pmtu = pmtu,
		.own = speakers_own};

	return i;
}

void speaker_open(struct speaker *s, unsigned number, uint32_t qpn, uint16_t pmtu)
{
	struct rwk_rc_attr a = {.peer_qpn = qpn,
		.send_psn = speaker_initiator(number, pmtu).psn,
		.pmtu = pmtu,
		.window = RWK_RC_WINDOW_MAX,
		.reads = 1,
		.retry = 7,
		.rnr_retry = 7,
		.service = RWK_WIRE_SRC,
		.own = speakers_own,
		.ack_delay = 60000,
		.ack_every = 1,
		.timeout = 2000000};
	void *memory = aligned_alloc(64, (rwk_rc_size() + RWK_RC_BUSY_SIZE + 63) / 64 * 64);

	*s = (struct speaker){.number = number, .qpn = qpn, .most = MESSAGES_MOST, .seed = mix(number, 99, 1)};
	s->responder = calloc(1, rwk_rc_responder_size() + RWK_RC_BUSY_RESPONDER_SIZE);
	assert_true(memory && s->responder);
	s->qp = rwk_rc_open(memory, s->responder, &speaker_host, s);
	assert_int_equal(rwk_rc_modify(s->qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_rc_modify(s->qp, RWK_QP_RTR, &a), 0);
	assert_int_equal(rwk_rc_modify(s->qp, RWK_QP_RTS, NULL), 0);
}

void speaker_post(struct speaker *s, unsigned member)
{
	uint32_t n = s->posted[member]++;
	struct message m = message_of(s->number, member, n);
	struct outgoing *o = malloc(sizeof(*o) + m.len);

	assert_non_null(o);
	for (size_t i = 0; i < m.len; i++)
		o->bytes[i] = byte_of(&m, i);
	o->iov = (struct iovec){o->bytes, m.len};
	o->wr = (struct rwk_wr){.type = m.write ? RWK_WR_WRITE : RWK_WR_SEND,
		.iov = &o->iov,
		.iov_count = 1,
		.length = m.len,
		.remote = address_of(n),
		.key = KEY,
		.srqn = s->srqn[member]};
	s->under_way++;
	assert_int_equal(rwk_rc_post(s->qp, &o->wr), 0);
}

uint32_t speaker_posted(const struct speaker *s)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		n += s->posted[i];
	return n;
}

void speaker_speak(struct speaker *s, uint32_t total, rwk_time now)
{
	while (s->under_way < s->most && speaker_posted(s) < total && !s->failed) {
		unsigned member = chance(&s->seed) % MEMBERS;

		if (s->srqn[member])
			speaker_post(s, member);
	}
	rwk_rc_pump(s->qp, now);
}

void speaker_answer(struct speaker *s, const struct packet *p, rwk_time now)
{
	rwk_rc_packet(s->qp, &p->w, p->bytes, p->len, now);
	rwk_rc_pump(s->qp, now);
}

bool speaker_idle(const struct speaker *s)
{
	return rwk_rc_idle(s->qp);
}

void speaker_close(struct speaker *s)
{
	rwk_rc_modify(s->qp, RWK_QP_ERR, NULL);
	free(s->qp);
	free(s->responder);
}

static int on_listener_emit(void *user, const struct rwk_link_address *to, uint32_t cut, const struct rwk_wire *w,
	const struct iovec *payload, int count)
{
	struct listener *l = user;
	struct packet p = {.speaker = to->byte[0], .w = *w, .cut = cut};

	for (int i = 0; i < count; i++) {
		memcpy(p.bytes + p.len, payload[i].iov_base, payload[i].iov_len);
		p.len += (uint32_t)payload[i].iov_len;
	}
	return l->emit(l->user, &p);
}

/* Who that target is: asked within the upcall, as a user would. */
static unsigned speaker_of(struct listener *l, uint32_t target)
{
	struct rwk_src_initiator i;

	return rwk_src_target_find(l->view, target, &i) || i.about[1] != 0x5a ? 0 : i.about[0];
}

static void on_receive(void *user, uint32_t target, unsigned where, const void *bytes, size_t len)
{
	struct listener *l = user;

	ear_piece(l->ear, speaker_of(l, target), false, where, 0, bytes, len);
}

static void on_write(void *user, uint32_t target, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct listener *l = user;
	unsigned speaker = speaker_of(l, target);

	if (key != KEY)
		is_wrong(l->ear, speaker, "key", key, KEY);
	ear_piece(l->ear, speaker, true, 0, address, bytes, len);
}

static void on_wake(void *user, uint32_t srqn)
{
	struct listener *l = user;

	l->woken++;
	l->last_woken = srqn;
}

static const struct rwk_src_host listener_host = {on_listener_emit, on_receive, on_write, on_wake};

int listener_open(struct listener *l, void *memory, struct ear *ear)
{
	l->ear = ear;
	return rwk_src_view_open(memory, &listener_host, l, &l->view);
}

int listener_join(struct listener *l, void *memory, struct ear *ear)
{
	int rc = listener_open(l, memory, ear);

	for (int i = 0; i < 10000 && rc == -EAGAIN; i++) {
		usleep(1000);
		rc = listener_open(l, memory, ear);
	}
	return rc;
}

void listener_packet(struct listener *l, const struct packet *p, rwk_time now)
{
	struct rwk_link_address from = speaker_initiator(p->speaker, 256).to;

	rwk_src_packet(l->view, &from, &p->w, p->bytes, p->len, now);
}

void *shared_memory(size_t bytes, int *fd)
{
	int memfd = memfd_create("shared_rc", MFD_CLOEXEC);
	void *m;

	assert_true(memfd >= 0);
	assert_int_equal(ftruncate(memfd, (off_t)bytes), 0);
	m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_ptr_not_equal(m, MAP_FAILED);
	if (fd)
		*fd = memfd;
	else
		close(memfd);
	return m;
}

void *segment(uint32_t members, uint32_t targets, uint32_t inbox_bytes)
{
	struct rwk_src_size size = {members, targets, inbox_bytes};
	void *m = shared_memory(rwk_src_segment_size(&size), NULL);

	assert_int_equal(rwk_src_segment_format(m, &size), 0);
	return m;
}
