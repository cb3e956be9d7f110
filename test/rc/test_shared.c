/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One responder in two processes that have it mapped at two addresses and take turns with the packets of one peer: in
 * the middle of messages, with early packets that one keeps and the other takes, with Reads that one accepts and both
 * answer in part, with atomics that one does and the other answers again.
 */
#define _GNU_SOURCE /* memfd_create */
#include "rwk_test.h"

#include "rc/rc.h"
#include "wire/psn.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PMTU     256u
#define KEY      0x77u
#define BASE     0x40000000u
#define REGION   (64 * PMTU)
#define MESSAGES 600u
#define FIRST    0xffff80u

struct packet {
	struct rwk_wire w;
	uint32_t len;
	uint8_t bytes[PMTU];
};

/* In the segment, beside the responder: what both processes' upcalls touch, and what they send. */
struct shared {
	uint64_t responder[128];
	uint8_t region[REGION];
	uint8_t sent[REGION]; /* Sends append to it */
	uint32_t sent_at, ended, failed;
	uint32_t kept_count;
	struct packet kept[RWK_RC_WINDOW_MAX];
	uint32_t out_count;
	uint32_t room; /* packets that one pump may send */
	struct packet out[64];
};

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct shared *s = user;
	struct packet *p = &s->out[s->out_count];

	if (!s->room)
		return -EAGAIN;
	s->room--;
	assert_in_range(++s->out_count, 1, 64);
	p->w = *w;
	p->len = 0;
	for (int i = 0; i < count; i++) {
		memcpy(p->bytes + p->len, payload[i].iov_base, payload[i].iov_len);
		p->len += (uint32_t)payload[i].iov_len;
	}
	return 0;
}

static void on_failed(void *user, int err)
{
	(void)err;
	((struct shared *)user)->failed++;
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct shared *s = user;

	(void)w;
	if (where & RWK_PIECE_FIRST)
		s->sent_at = 0;
	memcpy(s->sent + s->sent_at, bytes, len);
	s->sent_at += (uint32_t)len;
	s->ended += !!(where & RWK_PIECE_LAST);
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	(void)user;
	(void)w;
	(void)access;
	return key == KEY && address >= BASE && address + len <= BASE + REGION ? 0 : -EACCES;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	int err = on_reach(user, w, key, address, len, RWK_REACH_WRITE);

	if (!err)
		memcpy(((struct shared *)user)->region + (address - BASE), bytes, len);
	return err;
}

static int on_read(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	int err = on_reach(user, NULL, key, address, len, RWK_REACH_READ);

	(void)max;
	*iov = (struct iovec){((struct shared *)user)->region + (address - BASE), len};
	return err ? err : 1;
}

static int on_atomic(void *user, const struct rwk_wire *w, uint64_t *before)
{
	uint8_t *at = ((struct shared *)user)->region + (w->atomic.address - BASE);
	uint64_t value;

	memcpy(before, at, 8);
	value = *before + w->atomic.swap_add;
	memcpy(at, &value, 8);
	return 0;
}

static int on_keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	struct shared *s = user;

	s->kept_count++;
	s->kept[slot].w = *w;
	s->kept[slot].len = (uint32_t)len;
	memcpy(s->kept[slot].bytes, bytes, len); /* none is empty here */
	return 0;
}

static const void *on_kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	struct shared *s = user;

	*w = s->kept[slot].w;
	*len = s->kept[slot].len;
	return s->kept[slot].bytes;
}

static void on_drop(void *user, uint32_t slot)
{
	(void)slot;
	((struct shared *)user)->kept_count--;
}

static const struct rwk_machine_host host = {.emit = on_emit,
	.failed = on_failed,
	.receive = on_receive,
	.reach = on_reach,
	.write = on_write,
	.read = on_read,
	.atomic = on_atomic,
	.keep = on_keep,
	.kept = on_kept,
	.drop = on_drop};

static struct rwk_rc_attr attr(unsigned own)
{
	return (struct rwk_rc_attr){.receive_psn = FIRST,
		.pmtu = PMTU,
		.window = 1,
		.reads = 1,
		.peer_reads = 16,
		.own = own,
		.reach = RWK_REACH_READ | RWK_REACH_WRITE | RWK_REACH_ATOMIC,
		.timeout = 1000000};
}

/* The second to come says what was agreed as well, and finds the responder where it stands. */
static struct rwk_rc *attach(struct shared *s, unsigned own)
{
	void *memory = aligned_alloc(64, (rwk_rc_size() + 63) & ~(size_t)63);
	struct rwk_rc_attr a = attr(own);
	struct rwk_rc *qp;

	if (!memory)
		return NULL;
	qp = rwk_rc_open(memory, s->responder, &host, s);
	return rwk_rc_modify(qp, RWK_QP_INIT, NULL) || rwk_rc_modify(qp, RWK_QP_RTR, &a) ? NULL : qp;
}

static void turn(struct rwk_rc *qp, const struct packet *p, uint32_t now)
{
	if (p->w.opcode != 0xff)
		rwk_rc_packet(qp, &p->w, p->bytes, p->len, now);
	rwk_rc_pump(qp, now);
}

static int other_process(int fd, const void *not_here, int in, int out, unsigned own)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct rwk_rc *qp;
	struct packet p;

	if (s == MAP_FAILED || (const void *)s == not_here)
		return 1;
	qp = attach(s, own);
	if (!qp)
		return 2;
	while (read(in, &p, sizeof(p)) == sizeof(p)) {
		turn(qp, &p, 0);
		if (write(out, "", 1) != 1)
			return 3;
	}
	return 0;
}

struct pair {
	struct rwk_rc *mine;
	struct shared *s;
	int to, from;
	unsigned packets;
};

/* Packets go in turn to the one and to the other process, three for this one, two for that one. */
static void give(struct pair *p, const struct packet *packet)
{
	char c;

	p->s->room = 3;
	if (p->packets++ % 5 < 3) {
		turn(p->mine, packet, 0);
		return;
	}
	assert_int_equal(write(p->to, packet, sizeof(*packet)), sizeof(*packet));
	assert_int_equal(poll(&(struct pollfd){p->from, POLLIN, 0}, 1, 30000), 1);
	assert_int_equal(read(p->from, &c, 1), 1);
}

/* Pumps, by turns, until nothing more comes out. */
static void pump(struct pair *p)
{
	struct packet nothing = {.w.opcode = 0xff};
	uint32_t before;

	do {
		before = p->s->out_count;
		give(p, &nothing);
		give(p, &nothing);
		give(p, &nothing);
	} while (p->s->out_count != before);
}

static void message(struct pair *p, unsigned n, uint32_t *psn, bool is_write, uint32_t packets, bool early)
{
	unsigned op = is_write ? RWK_WIRE_WRITE_FIRST : RWK_WIRE_SEND_FIRST;
	struct packet all[8] = {0};

	for (uint32_t i = 0; i < packets; i++) {
		struct packet *t = &all[i];
		bool last = i + 1 == packets;

		t->w.psn = *psn;
		t->w.opcode = (uint8_t)(op + (packets == 1 ? 4 : last ? 2 : i ? 1 : 0));
		t->w.ack_request = last;
		t->w.reth.address = BASE;
		t->w.reth.key = KEY;
		t->w.reth.length = packets * PMTU;
		t->len = PMTU;
		memset(t->bytes, (int)(n + i), PMTU);
		*psn = rwk_psn_add(*psn, 1);
	}
	for (uint32_t i = 0; i < packets; i++) /* early: all before the first */
		give(p, &all[early ? (i + 1) % packets : i]);
}

static void check_data(const struct shared *s, unsigned n, bool is_write, uint32_t packets)
{
	const uint8_t *there = is_write ? s->region : s->sent;

	for (size_t i = 0; i < packets * PMTU; i++)
		assert_int_equal(there[i], (uint8_t)(n + i / PMTU));
}

static void check_read(struct pair *p, unsigned n, uint32_t *psn)
{
	struct packet r = {.w = {.opcode = RWK_WIRE_READ_REQUEST,
				   .psn = *psn,
				   .reth = {.address = BASE, .key = KEY, .length = 7 * PMTU}}};

	(void)n;
	p->s->out_count = 0;
	give(p, &r);
	pump(p);
	assert_int_equal(p->s->out_count, 7);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(p->s->out[i].w.psn, rwk_psn_add(*psn, i));
		assert_memory_equal(p->s->out[i].bytes, p->s->region + i * PMTU, PMTU);
	}
	*psn = rwk_psn_add(*psn, 7);
}

static void check_atomic(struct pair *p, uint32_t *psn, uint64_t *word)
{
	struct packet a = {.w = {.opcode = RWK_WIRE_FETCH_ADD,
				   .psn = *psn,
				   .atomic = {.address = BASE + REGION - 8, .key = KEY, .swap_add = 3}}};

	for (unsigned i = 0; i < 4; i++) {
		p->s->out_count = 0;
		give(p, &a);
		pump(p);
		assert_int_equal(p->s->out_count, 1);
		assert_int_equal(p->s->out[0].w.atomic_ack, *word);
	}
	*word += 3;
	*psn = rwk_psn_add(*psn, 1);
}

static void run(struct shared *s, struct pair *p, bool own)
{
	uint32_t psn = FIRST, sends = 0;
	uint64_t word = 0;

	for (unsigned n = 0; n < MESSAGES; n++) {
		bool is_write = n / 2 & 1;
		uint32_t packets = n % 7 + 1;

		message(p, n, &psn, is_write, packets, own && n % 3 == 0);
		pump(p);
		sends += !is_write;
		assert_int_equal(s->ended, sends);
		check_data(s, n, is_write, packets);
		assert_int_equal(s->kept_count, 0);
		assert_int_equal(s->out[s->out_count - 1].w.psn, rwk_psn_add(psn, RWK_PSN_MASK));
		s->out_count = 0;
		if (n % 4 == 0)
			check_read(p, n, &psn);
		if (n % 5 == 0)
			check_atomic(p, &psn, &word);
		s->out_count = 0;
	}
	assert_int_equal(s->failed, 0);
}

static void two_processes(unsigned own)
{
	int fd = memfd_create("responder", MFD_CLOEXEC), to[2], from[2], status;
	struct pair p = {0};
	pid_t pid;

	assert_int_equal(ftruncate(fd, sizeof(*p.s)), 0);
	p.s = mmap(NULL, sizeof(*p.s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p.s, MAP_FAILED);
	assert_in_range(rwk_rc_responder_size(), 1, sizeof(p.s->responder));
	p.mine = attach(p.s, own);
	assert_non_null(p.mine);
	assert_int_equal(pipe(to) | pipe(from), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(to[1]);
		_exit(other_process(fd, p.s, to[0], from[1], own));
	}
	close(to[0]);
	close(from[1]);
	p.to = to[1];
	p.from = from[0];
	run(p.s, &p, own);
	close(to[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(from[0]);
	free(p.mine);
	munmap(p.s, sizeof(*p.s));
	close(fd);
}

static void strict(void **state)
{
	(void)state;
	two_processes(0);
}

static void own(void **state)
{
	(void)state;
	two_processes(RWK_RC_SELECTIVE);
}

/* A step on a copy of that responder, as it is done where several are taken in turn: that Read comes, and is answered.
 */
static void step(struct rwk_rc *qp, void *copy, struct shared *s, uint32_t length)
{
	const struct rwk_wire read = {.opcode = RWK_WIRE_RC | RWK_WIRE_READ_REQUEST,
		.psn = FIRST,
		.reth = {.address = BASE, .key = KEY, .length = length}};

	rwk_rc_copy_responder(copy, s->responder);
	rwk_rc_lend(qp, copy);
	if (length)
		rwk_rc_packet(qp, &read, NULL, 0, 1000);
	rwk_rc_pump(qp, 1000);
	rwk_rc_copy_responder(s->responder, copy);
}

/* Who takes many responders in turn by one copy gives none of them answers that are another's, and forgets none. */
static void copies(void **state)
{
	struct shared *each = calloc(2, sizeof(*each));
	void *copy = calloc(1, sizeof(each->responder)), *memory[3];
	struct rwk_rc_attr a = attr(RWK_RC_SELECTIVE);
	struct rwk_rc *qp = NULL;

	(void)state;
	a.reach &= ~(unsigned)RWK_REACH_ATOMIC;
	for (int i = 0; i < 3; i++) {
		memory[i] = aligned_alloc(64, (rwk_rc_size() + 63) & ~(size_t)63);
		assert_non_null(memory[i]);
		qp = rwk_rc_open(memory[i], i < 2 ? (void *)each[i].responder : copy, &host, &each[1]);
		assert_int_equal(rwk_rc_modify(qp, RWK_QP_INIT, NULL), 0);
		assert_int_equal(rwk_rc_modify(qp, RWK_QP_RTR, &a), 0);
	}
	step(qp, copy, &each[0], 2 * PMTU); /* the link has no room */
	assert_int_equal(each[1].out_count, 0);
	each[1].room = 64;
	step(qp, copy, &each[1], PMTU);
	assert_int_equal(each[1].out_count, 1);
	assert_int_equal(each[1].out[0].w.opcode, RWK_WIRE_RC | RWK_WIRE_READ_ONLY);
	step(qp, copy, &each[1], 0);
	assert_int_equal(each[1].out_count, 1);
	step(qp, copy, &each[0], 0);
	assert_int_equal(each[1].out_count, 3);
	assert_int_equal(each[1].out[2].w.opcode, RWK_WIRE_RC | RWK_WIRE_READ_ONLY);
	for (int i = 0; i < 3; i++)
		free(memory[i]);
	free(copy);
	free(each);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict),
		cmocka_unit_test(own),
		cmocka_unit_test(copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
